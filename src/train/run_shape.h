/* SPDX-License-Identifier: Apache-2.0 */
/* What the settings say of a step, before there are ranks, data or a device: batch sizes, optimizer groups, recomputation.
 * Training and `ctitan plan` both begin here.
 *
 *     cti_run_shape shape;
 *     CT_TRY(cti_run_shape_make(run, &mesh, CT_DTYPE_BF16, &shape, err));
 *     CT_TRY(cti_step_create(alloc, ct_component_find(run->root, "model_spec"), &shape.step, &step, err));
 */
#ifndef CTI_TRAIN_RUN_SHAPE_H
#define CTI_TRAIN_RUN_SHAPE_H

#include "component/component.h"
#include "train/step.h"

typedef struct cti_run_shape {
    int64_t local_batch;  /* rows of a micro-batch of one data rank */
    int64_t global_batch; /* rows of a step over all ranks */
    int64_t seq_len;
    int64_t accumulation; /* micro-batches of a step */
    int64_t memory_limit_bytes; /* of recomputing by budget: it is to be fitted to this (cti_fit_budget); 0: it is given */
    cti_step_options step; /* borrows the mesh and the tree's arena */
} cti_run_shape;

/* mesh is borrowed for the shape's life. Fails: ERR_USAGE naming the setting, what was found, and the nearest that fit. */
CT_MUST_CHECK ct_status cti_run_shape_make(const cti_run_config *run, const ct_mesh *mesh, ct_dtype compute_dtype,
                                           cti_run_shape *out_shape, ct_err *err);

/* What a run computes in on this device: bfloat16 where it was asked for by a user; where it is the default, only if the device has it. */
ct_dtype cti_run_compute_dtype(const ct_component *root, bool has_native_bf16);

#endif
