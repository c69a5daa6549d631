/* SPDX-License-Identifier: Apache-2.0 */
/* What the passes share. */
#ifndef CTI_PASSES_PASSES_INTERNAL_H
#define CTI_PASSES_PASSES_INTERNAL_H

#include "passes/passes.h"

/* Tensor parallelism: see pass_tensor.c. Parameters' placements on the axis tp are set; the forward graph's follow. */
CT_MUST_CHECK ct_status cti_pass_tensor(ct_graph *graph, const ct_mesh *mesh, const ct_shard_options *options, ct_err *err);

#endif
