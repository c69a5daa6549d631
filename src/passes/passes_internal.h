/* SPDX-License-Identifier: Apache-2.0 */
/* What the passes share. */
#ifndef CTI_PASSES_PASSES_INTERNAL_H
#define CTI_PASSES_PASSES_INTERNAL_H

#include "passes/passes.h"

/* Tensor parallelism: see pass_tensor.c. Parameters' placements on the axis tp are set; the forward graph's follow. */
CT_MUST_CHECK ct_status cti_pass_tensor(ct_graph *graph, const ct_mesh *mesh, const ct_shard_options *options, ct_err *err);

/* Length of the block's name at the head of a scope: "layers.3" of "layers.3.attention"; 0: no block. */
size_t cti_block_len(const char *scope);
bool cti_same_block(const char *scope_a, const char *scope_b);
/* The value whose memory this one is or lies in. */
ct_value_id cti_root_value(const ct_graph *graph, ct_value_id value);
/* What running a node again is taken to cost, in FLOPs (pass_budget.c). */
double cti_recompute_cost(const ct_graph *graph, const ct_node *node);
/* Recomputing by budget, see pass_budget.c. keep, per value: 1 where it is kept in any case, 0 where it may be made again; of the latter
 * those that the budget (0 to 1) holds become 1. */
CT_MUST_CHECK ct_status cti_budget_keep(ct_graph *graph, double budget, uint8_t *keep, ct_err *err);
/* Collectives of Flat groups on stream 1, their starts and waits: see pass_overlap.c. The order is by program, without dead nodes, all on
 * stream 0. */
CT_MUST_CHECK ct_status cti_pass_overlap(ct_graph *graph, ct_err *err);

#endif
