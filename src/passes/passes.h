/* SPDX-License-Identifier: Apache-2.0 */
/* The map of the room `passes`: graph to graph, in this order for a training step:
 *
 *   pass_shard.c      placements -> local shapes: the batch on the data axes
 *   pass_tensor.c     (its part for tp) cut parameters -> placements of all values, and the collectives between
 *   pass_flat.c       parameters -> Flat groups, stored as shards and gathered before use (FSDP)
 *   pass_precision.c  the compute dtype: one cast behind every parameter group, dtypes inferred anew
 *   pass_merge.c      products of one input with neighbouring weights -> one product
 *   (autodiff, optim)
 *   pass_recompute.c  activation checkpointing and FSDP's resharding: what backward computes again instead of keeping
 *   pass_budget.c     (its part for budgets) which values to keep in so many bytes
 *   pass_fuse.c       sums -> addends of the nodes before them
 *   pass_schedule.c   order of programs and nodes, dead nodes dropped
 *   pass_overlap.c    (its part) collectives of Flat groups beside the computation
 *   plan.c            every buffer gets an offset
 *
 * A pass leaves a graph that ct_graph_verify accepts, or fails and the graph is to be destroyed.
 */
#ifndef CTI_PASSES_PASSES_H
#define CTI_PASSES_PASSES_H

#include "ctitan/component.h"
#include "ctitan/ops.h"
#include "mesh/flat.h"
#include "mesh/mesh.h"

typedef struct ct_shard_options {
    bool is_sequence_parallel; /* with tp above 1: between products the tokens are shared by its ranks */
} ct_shard_options;
/* Placements of INPUT values (data axes) and PARAM values (tp: SHARD or REPLICATE) are set by whoever declares them; every other value
 * follows by its op's shard class. Then dims become local. A replicated parameter that is used on a part of the tokens becomes OWING.
 * ERR_SHAPE where a dim does not divide, ERR_UNSUPPORTED naming the node where an op cannot be sharded so. */
CT_MUST_CHECK ct_status ct_pass_shard(ct_graph *graph, const ct_mesh *mesh, const ct_shard_options *options, ct_err *err);

/* Replaces every parameter by a view of its Flat group: PARAM "flat.<group>" [total / degree]; an owe over dp_replicate, and over tp where the
 * group is owing; all_gather over dp_shard; each where the degree is above 1 (gradients reduced in reduce_dtype); flat_split. out_flats: the
 * PARAM values, one per group; they belong to the graph's arena. These nodes have the scope "flat.<group>" and stand before the group's
 * first use. mesh NULL: one rank. */
CT_MUST_CHECK ct_status ct_pass_flat(ct_graph *graph, const ct_param *params, int32_t n_params,
                                     const ct_flat_layout *layout, const ct_mesh *mesh, ct_dtype reduce_dtype, ct_value_id **out_flats,
                                     ct_err *err);

/* Computation in `compute`: a cast behind every PARAM whose dtype differs, then all dtypes follow. */
CT_MUST_CHECK ct_status ct_pass_precision(ct_graph *graph, ct_dtype compute, ct_err *err);

typedef enum ct_recompute_mode { CT_RECOMPUTE_NONE, CT_RECOMPUTE_SELECTIVE, CT_RECOMPUTE_FULL, CT_RECOMPUTE_BUDGET } ct_recompute_mode;
typedef struct ct_recompute_options {
    ct_recompute_mode mode;
    double budget;       /* of BUDGET, 0 to 1: the share, of the bytes that NONE keeps and FULL does not, that may be kept */
    bool reshard_blocks; /* gathered parameters of blocks are gathered again for backward */
    bool reshard_head;   /* those of the group "head" too */
} ct_recompute_options;
/* Blocks are scopes "layers.<i>". NONE keeps all; FULL keeps a block's inputs only; SELECTIVE keeps the outputs of EXPENSIVE ops, of
 * matmuls the 1st, 3rd, ... of each block; BUDGET keeps what spares most recomputing within its share of the bytes: 0 is FULL, 1 is NONE,
 * and a larger one never recomputes more (pass_budget.c). What is not kept is cloned into the backward program before its first need. */
typedef struct ct_recompute_report { /* bytes of values made in blocks that backward reads; of one micro-batch and rank */
    int64_t whole_bytes, kept_bytes; /* without recomputing; as chosen */
    double again_cost;               /* of the blocks' nodes that backward runs again: FLOPs, and bytes at what a device computes meanwhile */
} ct_recompute_report;
CT_MUST_CHECK ct_status ct_pass_recompute(ct_graph *graph, const ct_recompute_options *options, ct_recompute_report *out_report, ct_err *err);

/* matmuls of one input with weights that lie side by side in a Flat group -> one matmul, where an op takes its rows whole: rope of q and
 * k -> qkv_rope, silu_mul -> swiglu. Before autodiff, so that the gradients are whole too. */
CT_MUST_CHECK ct_status ct_pass_merge(ct_graph *graph, ct_err *err);

/* add(x, y) -> y's node with the addend x, where that op takes one (CT_OP_ADDEND) and y has no other reader; swiglu(matmul(a, b)) ->
 * matmul_swiglu. Behind recomputing, which decides what is kept of each. */
CT_MUST_CHECK ct_status ct_pass_fuse(ct_graph *graph, ct_err *err);

/* Drops nodes whose outputs nobody needs (roots: updates, collectives' readers, keep[]), orders programs. overlap: gathers of parameters and
 * reductions of gradients go to stream 1, started ahead and waited for where they are needed; else all nodes run in line on stream 0. */
CT_MUST_CHECK ct_status ct_pass_schedule(ct_graph *graph, const ct_value_id *keep, int32_t n_keep, bool overlap, ct_err *err);

/* Inserts `ids` into the order before position `at`; for passes. */
CT_MUST_CHECK ct_status cti_order_insert(ct_graph *graph, int32_t at, const ct_node_id *ids, int32_t n, ct_err *err);
/* Takes the nodes at the end of the order, from position `from`, and moves them to position `at`. */
CT_MUST_CHECK ct_status cti_order_move_tail(ct_graph *graph, int32_t from, int32_t at, ct_err *err);
/* First position of the order that reads the value, or the order's length. */
int32_t cti_first_use(const ct_graph *graph, ct_value_id value);
/* Takes nodes out of the order: nothing reads them any more. */
CT_MUST_CHECK ct_status cti_order_drop(ct_graph *graph, const ct_node_id *ids, int32_t n, ct_err *err);
/* Position of a node in the order, or the order's length. */
int32_t cti_position(const ct_graph *graph, ct_node_id node);
/* The one node that reads the value, once; NULL where there are none or more. Valid until the next node is added. */
const ct_node *cti_only_reader(const ct_graph *graph, ct_value_id value);

#endif
