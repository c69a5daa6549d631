/* SPDX-License-Identifier: Apache-2.0 */
/* Validation: the loss on other documents, between steps. It has its own forward graph (program EVAL) on the parameters of training, its own
 * loader, and writes nothing that training reads.
 *
 *     CT_TRY(cti_validator_open(t, &t->validator, err));       // after the training step is built; before the engine is made
 *     CT_TRY(cti_validator_run(t, step, err));                 // at step 1 and every validator.freq
 *     cti_validator_close(t);
 */
#ifndef CTI_TRAIN_VALIDATE_H
#define CTI_TRAIN_VALIDATE_H

#include "data/data.h"
#include "train/step.h"

struct cti_trainer;

typedef struct cti_validator {
    cti_eval *eval;       /* owns; NULL: validation is off */
    ct_sources sources;   /* owns */
    ct_loader_options loader_options;
    ct_chat *chat;        /* owns; NULL: text */
    int32_t *room;        /* owns what the batch points into */
    ct_batch batch;
} cti_validator;

/* The graph alone: what the plan needs. Does nothing where validator.enable is off. */
CT_MUST_CHECK ct_status cti_validator_build(struct cti_trainer *t, const cti_step_options *options, ct_err *err);
/* Sources and the batch's memory; after the tokenizer is open. */
CT_MUST_CHECK ct_status cti_validator_open(struct cti_trainer *t, ct_err *err);
/* One validation where step `step` is due: 1 and the multiples of validator.freq. The loss is the sum over all ranks' labels divided by their
 * number, from the beginning of the data, the same each time. ERR_DATA where no label counts. */
CT_MUST_CHECK ct_status cti_validator_run(struct cti_trainer *t, int64_t step, ct_err *err);
void cti_validator_close(struct cti_trainer *t);

#endif
