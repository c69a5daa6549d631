/* SPDX-License-Identifier: Apache-2.0 */
/* Step lines, rates and memory. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/base.h"
#include "train/checkpoint_glue.h"
#include "train/trainer.h"

#define GIB (1024.0 * 1024.0 * 1024.0)

/* Colours of the step line, as upstream's. */
typedef struct palette {
    const char *red, *green, *orange, *turquoise, *blue, *cyan, *magenta, *reset;
} palette;
static const palette colors = {"\033[31m", "\033[32m", "\033[38;2;180;60;0m", "\033[38;2;54;234;195m",
                               "\033[34m", "\033[36m", "\033[35m",            "\033[39m"};
static const palette plain = {"", "", "", "", "", "", "", ""};

void cti_metrics_start(cti_metrics *m, const ct_device_facts *facts, ct_dtype compute_dtype, double flops_per_token, int64_t device_bytes, bool color)
{
    m->device_bytes = device_bytes;
    m->last_ns = cti_now_ns();
    m->tokens = m->steps = m->fetches = m->fetch_ns = 0;
    m->flops_per_token = flops_per_token;
    m->peak_flops = compute_dtype == CT_DTYPE_BF16 && facts->peak_flops_bf16 > 0.0 ? facts->peak_flops_bf16 : facts->peak_flops;
    m->memory_bytes = facts->memory_bytes;
    m->color = color;
}

/* On the host the most that the process had, which its libraries and data are part of. */
static int64_t peak_bytes(const cti_metrics *m)
{
    return m->device_bytes > 0 ? m->device_bytes : cti_peak_rss_bytes();
}

/* 1234.5 -> "1,234.50" */
static const char *thousands_2(double value, char buf[64])
{
    char whole[32];
    const double rounded = nearbyint(value * 100.0) / 100.0;
    const double floor_part = floor(rounded);
    (void)snprintf(buf, 64, "%s.%02d", cti_format_thousands((int64_t)floor_part, whole),
                   (int)nearbyint((rounded - floor_part) * 100.0)); /* at most 32 + 3 bytes */
    return buf;
}

void cti_metrics_log(cti_metrics *m, ct_log *log, int64_t step, double loss, double grad_norm, cti_step_numbers *out)
{
    const int64_t now = cti_now_ns();
    const double seconds = (double)(now - m->last_ns) / 1e9, waited = (double)m->fetch_ns / 1e9;
    *out = (cti_step_numbers){.loss = loss,
                              .max_loss = loss,
                              .grad_norm = grad_norm,
                              .rates = cti_rates_of((double)m->tokens, seconds, 1, m->flops_per_token, m->peak_flops),
                              .seconds_per_step = m->steps > 0 ? seconds / (double)m->steps : seconds,
                              .data_seconds = m->fetches > 0 ? waited / (double)m->fetches : 0.0,
                              .data_percent = seconds > 0.0 ? 100.0 * waited / seconds : 0.0,
                              .peak_bytes = peak_bytes(m)};
    const double peak_memory = (double)out->peak_bytes;
    const palette *c = m->color ? &colors : &plain;
    char tps_text[32], tflops_text[64], mfu[32] = "N/A";
    if (out->rates.has_mfu) {
        (void)snprintf(mfu, sizeof mfu, "%.2f%%", out->rates.mfu_percent);
    }
    CT_INFO(log, "%sstep: %2" PRId64 "  %sloss: %8.5f  %sgrad_norm: %7.4f  %smemory: %5.2fGiB(%.2f%%)  %stps: %s  "
                 "%stflops: %s  %smfu: %s%s",
            c->red, step, c->green, loss, c->orange, grad_norm, c->turquoise, peak_memory / GIB,
            m->memory_bytes > 0 ? 100.0 * peak_memory / (double)m->memory_bytes : 0.0, c->blue,
            cti_format_thousands((int64_t)nearbyint(out->rates.tokens_per_second), tps_text), c->cyan,
            thousands_2(out->rates.tflops, tflops_text), c->magenta, mfu, c->reset);
    m->last_ns = now;
    m->tokens = m->steps = m->fetches = m->fetch_ns = 0;
}

void cti_metrics_log_validation(const cti_metrics *m, ct_log *log, int64_t step, double loss, double tokens, int64_t spent_ns)
{
    const double peak_memory = (double)peak_bytes(m);
    char tps[32];
    CT_INFO(log, "%svalidate step: %2" PRId64 "  %sloss: %7.4f  %smemory: %5.2fGiB(%.2f%%)  %stps: %s%s", m->color ? "\033[33m" : "", step,
            m->color ? colors.green : "", loss, m->color ? colors.turquoise : "", peak_memory / GIB,
            m->memory_bytes > 0 ? 100.0 * peak_memory / (double)m->memory_bytes : 0.0, m->color ? colors.blue : "",
            cti_format_thousands((int64_t)nearbyint(tokens / ((double)spent_ns / 1e9)), tps), m->color ? colors.reset : "");
}

char *cti_format_timedelta(int64_t seconds, char buf[32])
{
    const int64_t days = seconds / 86400, rest = seconds % 86400;
    int used = 0;
    if (days > 0) {
        used = snprintf(buf, 32, "%" PRId64 " day%s, ", days, days == 1 ? "" : "s");
    }
    if (used >= 0 && used < 32) {
        (void)snprintf(buf + used, (size_t)(32 - used), "%" PRId64 ":%02" PRId64 ":%02" PRId64, rest / 3600,
                       rest / 60 % 60, rest % 60); /* cut only for absurd day counts */
    }
    return buf;
}

void cti_log_plan(ct_log *log, const ct_plan *plan)
{
    static const struct {
        ct_value_kind kind;
        const char *name;
    } rows[] = {{CT_VALUE_PARAM, "parameters"}, {CT_VALUE_STATE, "optimizer states"}, {CT_VALUE_GRAD, "gradients"},
                {CT_VALUE_CONST, "tables"},     {CT_VALUE_INPUT, "inputs"},           {CT_VALUE_ACT, "activations"}};
    char line[512], text[32];
    size_t used = 0;
    const bool keeps_gradients = plan->class_bytes[CT_VALUE_GRAD] > 0; /* else they lie among the activations */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].kind == CT_VALUE_GRAD && !keeps_gradients) {
            continue;
        }
        const bool is_mixed = rows[i].kind == CT_VALUE_ACT && !keeps_gradients;
        const int n = snprintf(line + used, sizeof line - used, "%s %s, ", is_mixed ? "activations and gradients" : rows[i].name,
                               cti_format_bytes(plan->class_bytes[rows[i].kind], text));
        used += n > 0 ? (size_t)n : 0;
    }
    (void)snprintf(line + used, sizeof line - used, "workspace %s", cti_format_bytes(plan->workspace_bytes, text));
    char total[32];
    CT_INFO(log, "Planned memory: %s in one block (%s)", cti_format_bytes(plan->total_bytes, total), line);
}

void cti_log_shards(ct_log *log, const cti_trainer *t)
{
    const ct_flat_layout *l = t->step->layout;
    for (int32_t g = 0; g < l->n_groups; g++) {
        for (int32_t m = 0; m < l->groups[g].n_members; m++) {
            int64_t begin, end;
            ct_flat_local_range(&l->groups[g], m, l->degree, t->mesh.coord[CT_AXIS_DP_SHARD], &begin, &end);
            for (int32_t p = 0; p < CTI_N_SAVED_STATES; p++) {
                if (!cti_engine_has_flat(t->engine, cti_saved_states[p], l->groups[g].name)) {
                    continue;
                }
                const ct_flat_member *member = &l->groups[g].members[m];
                char part[96] = "";
                if (member->cut.is_cut) {
                    (void)snprintf(part, sizeof part, ", its part [%" PRId64 ", %" PRId64 ") of %" PRId64 " along dim %d", member->cut.begin,
                                   member->cut.begin + member->dims[member->cut.dim], member->cut.whole, member->cut.dim);
                }
                CT_INFO(log, "[Shard] rank %" PRId64 ": %s%s%s [%" PRId64 ", %" PRId64 ") of %" PRId64 "%s", t->mesh.rank,
                        p == 0 ? "" : cti_saved_states[p], p == 0 ? "" : ".", member->name, begin, end, member->numel, part);
            }
        }
    }
}
