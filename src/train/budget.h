/* SPDX-License-Identifier: Apache-2.0 */
/* How long a run is: a number of steps, of tokens, or of passes over the data. A step takes whole rows (training.seq-len tokens each, those that pad
 * a row too), so that tokens and epochs are rounded up to whole steps; what is given twice must agree.
 *
 *     cti_budget b;
 *     CT_TRY(cti_budget_make(run, shape.global_batch * shape.seq_len, epoch_tokens, &b, err));   // epoch_tokens 0: not known, as for a plan
 *     last = cti_budget_last_step(&b, current_step, tokens_seen);
 */
#ifndef CTI_TRAIN_BUDGET_H
#define CTI_TRAIN_BUDGET_H

#include "component/component.h"

typedef struct cti_budget {
    int64_t step_tokens; /* of one step, over all ranks */
    int64_t steps;       /* of a whole run; 0: only the data can tell */
    int64_t tokens;      /* to train on; 0: the steps were given */
    double epochs;       /* 0: not given */
} cti_budget;

/* ERR_USAGE: two of --training.steps (where somebody set it), --training.tokens and --training.epochs contradict; numbers past 2^62. */
CT_MUST_CHECK ct_status cti_budget_make(const cti_run_config *run, int64_t step_tokens, int64_t epoch_tokens, cti_budget *out_budget, ct_err *err);
/* The number of the last step of a run that stands after current_step with so many tokens behind it: what is left of a budget in tokens is counted
 * in steps of today's size. */
int64_t cti_budget_last_step(const cti_budget *budget, int64_t current_step, int64_t tokens_seen);
/* "2,500 tokens, 40 steps of 64". buf holds 128 bytes. */
char *cti_budget_text(const cti_budget *budget, char buf[128]);

#endif
