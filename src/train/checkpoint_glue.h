/* SPDX-License-Identifier: Apache-2.0 */
/* What saving (checkpoint_save.c), loading (checkpoint_load.c) and the beginning of a run (checkpoint_glue.c) share. */
#ifndef CTI_TRAIN_CHECKPOINT_GLUE_H
#define CTI_TRAIN_CHECKPOINT_GLUE_H

#include "ckpt/ckpt.h"
#include "ckpt/hf.h"
#include "train/trainer.h"

/* Of each parameter, in this order; the first is the parameter itself. */
/* Weights, then the states of optimizers; which of them a Flat group has, cti_engine_has_flat says. */
enum { CTI_N_SAVED_STATES = 4 };
extern const char *const cti_saved_states[CTI_N_SAVED_STATES];

/* All ranks learn whether any of them failed, so that none waits for one that gave up. */
CT_MUST_CHECK ct_status cti_all_or_none(cti_trainer *t, ct_status mine, ct_err *err);
/* Caller frees; NULL: out of memory. */
char *cti_checkpoint_folder(cti_trainer *t, ct_err *err);
/* The shape of a model as Hugging Face's config.json tells it. */
CT_MUST_CHECK ct_status cti_hf_shape(const ct_component *model_spec, int64_t max_seq_len, ct_hf_shape *out_shape, ct_err *err);

/* A checkpoint of our own; step -1: the newest. is_model_only: weights, and nothing of where the run stood. opened: that of the step, on a
 * rank that has verified it (taken over, closed on return); of a step that is asked for, rank 0 alone reads the checksums. */
CT_MUST_CHECK ct_status cti_load_native(cti_trainer *t, const char *folder, int64_t step, bool is_model_only, ct_ckpt *opened, ct_err *err);
/* Weights, states and counters of a checkpoint of this run; nothing of the data, whatever the settings leave out. opened: as above. */
CT_MUST_CHECK ct_status cti_load_back(cti_trainer *t, const char *folder, int64_t step, ct_ckpt *opened, ct_err *err);
CT_MUST_CHECK ct_status cti_load_hf(cti_trainer *t, const char *folder, ct_err *err);

#endif
