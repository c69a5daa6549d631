/* SPDX-License-Identifier: Apache-2.0 */
/* The shape of a model as Hugging Face's config.json tells it. */
#ifndef CTI_TRAIN_CHECKPOINT_GLUE_H
#define CTI_TRAIN_CHECKPOINT_GLUE_H

#include "ckpt/hf.h"
#include "ctitan/component.h"

CT_MUST_CHECK ct_status cti_hf_shape(const ct_component *model_spec, int64_t max_seq_len, ct_hf_shape *out_shape,
                                     ct_err *err);

#endif
