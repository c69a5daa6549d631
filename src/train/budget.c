/* SPDX-License-Identifier: Apache-2.0 */
/* How long a run is. */
#include "train/budget.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"

/* Somebody asked for it: neither a default nor the registry function's. */
static bool is_asked_for(const ct_component *c, const char *field)
{
    const ct_field *f = ct_field_find(c->cls->fields, (size_t)c->cls->n_fields, field);
    return f != NULL && c->sources[f - c->cls->fields] > CT_SOURCE_REGISTRY;
}

static int64_t steps_for(int64_t tokens, int64_t step_tokens)
{
    return tokens / step_tokens + (tokens % step_tokens != 0);
}

ct_status cti_budget_make(const cti_run_config *run, int64_t step_tokens, int64_t epoch_tokens, cti_budget *out, ct_err *err)
{
    const ct_component *section = ct_component_find(run->root, "training");
    const cti_training_config *c = ct_component_values(section);
    cti_budget b = {.step_tokens = step_tokens, .epochs = c->epochs.is_set ? c->epochs.value : 0.0};
    char what[128];
    if (c->epochs.is_set && epoch_tokens > 0) {
        const double tokens = ceil(b.epochs * (double)epoch_tokens);
        if (!(tokens < 4e18)) {
            return CT_FAIL(err, CT_ERR_USAGE, "--training.epochs %g: %g tokens are too many", b.epochs, tokens);
        }
        b.tokens = cti_max_i64(1, (int64_t)tokens);
    }
    if (c->tokens.is_set) {
        if (b.tokens > 0 && steps_for(b.tokens, step_tokens) != steps_for(c->tokens.value, step_tokens)) {
            return CT_FAIL(err, CT_ERR_USAGE, "--training.tokens %" PRId64 " and --training.epochs %g contradict: an epoch of this data has %" PRId64
                           " tokens; give one of them", c->tokens.value, b.epochs, epoch_tokens);
        }
        b.tokens = c->tokens.value;
    }
    b.steps = b.tokens > 0 ? steps_for(b.tokens, step_tokens) : c->epochs.is_set ? 0 : c->steps;
    if (b.tokens > 0 && is_asked_for(section, "steps") && c->steps != b.steps) {
        return CT_FAIL(err, CT_ERR_USAGE, "--training.steps %" PRId64 " and --training.%s contradict: %s; give one of them", c->steps,
                       c->tokens.is_set ? "tokens" : "epochs", cti_budget_text(&b, what));
    }
    *out = b;
    return CT_OK;
}

int64_t cti_budget_last_step(const cti_budget *b, int64_t current_step, int64_t tokens_seen)
{
    return b->tokens == 0 ? b->steps : current_step + steps_for(cti_max_i64(0, b->tokens - tokens_seen), b->step_tokens);
}

char *cti_budget_text(const cti_budget *b, char buf[128])
{
    char tokens[32], steps[32], each[32];
    if (b->steps == 0) {
        (void)snprintf(buf, 128, "%g epochs, whose tokens are counted when training starts", b->epochs);
    } else {
        (void)snprintf(buf, 128, "%s tokens, %s steps of %s", cti_format_thousands(b->tokens > 0 ? b->tokens : b->steps * b->step_tokens, tokens),
                       cti_format_thousands(b->steps, steps), cti_format_thousands(b->step_tokens, each));
    }
    return buf;
}
