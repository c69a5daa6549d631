/* SPDX-License-Identifier: Apache-2.0 */
/* The map of the room `ops`: what an op is. The list itself is ctitan/op_list.h; this room makes the rows
 * from it, and all that reads a graph through its rows.
 *
 *   ctitan/op_list.h, ctitan/ops.h   the list, the row, the typed emitters (public)
 *   ops/op_table.c       rows and attribute tables, number of outputs, aliases
 *   ops/op_register.c    rows of plug-ins
 *   ops/<family>_op.c    shape rules and FLOPs: embedding, matmul, elementwise, layout, rmsnorm, rope, sdpa,
 *                        loss, optimizer, flat, kv_append, collective
 *   ops/op_check.h       what shape rules are written with
 *   ops/op_emit.c        ct_op_emit
 *   ops/op_emitters.c    the typed emitters
 *   ops/op_cost.c        FLOPs of a program, bytes of a node
 *   ops/graph_reinfer.c  dims and dtypes again, after a pass changed inputs
 *   ops/graph_verify.c   the verifier
 *   ops/graph_print.c, ops/graph_parse.c   the text form (docs/formats/graph.md)
 *
 * A new op: a row in op_list.h, cti_shape_<op> in its family's file (the link fails without it), a gradient
 * row in autodiff, a kernel row in each backend. */
#ifndef CTI_OPS_OPS_H
#define CTI_OPS_OPS_H

#include "ctitan/ops.h"
#include "ir/ir.h"

#define CTI_OP_MAX_IN 4096
#define CTI_GRAPH_TEXT_HEAD "ctitan graph 1"

/* One shape rule per op. */
#define CTI_SHAPE_DECLARE(op, ...)                                                           \
    ct_status cti_shape_##op(const ct_graph *graph, const ct_value *const *in, int32_t n_in, \
                             const void *attrs, ct_value_spec *out_specs, ct_err *err);
CT_OP_LIST(CTI_SHAPE_DECLARE)
#undef CTI_SHAPE_DECLARE

/* Rows of plug-ins: one table of the process, ids from CT_OP_COUNT on. A row is taken into it where cti_op_check finds nothing wrong; the same
 * one again (a second registry of the process) is counted and keeps its id. What it points to must stay until it is released as often.
 * ERR_RANGE for what is wrong with it, naming it, or a name that another row has; ERR_UNSUPPORTED where the table is full.
 * Threads: any; but an id is only looked up by who registered it or was handed it later. */
enum { CTI_MAX_REGISTERED_OPS = 256, CTI_REGISTERED_MAX_IN = 16, CTI_REGISTERED_MAX_OUT = 8 };
CT_MUST_CHECK ct_status cti_op_register(const ct_op *row, int32_t *out_id, ct_err *err);
void cti_op_release(int32_t id);
/* NULL for an id that nobody holds. */
const ct_op *cti_op_registered(int32_t id);
CT_MUST_CHECK ct_status cti_op_check(const ct_op *row, ct_err *err);

/* For kernels of optimizers: (begin, end, group) triples inside n elements, of groups that there are; ERR_RANGE names the op and the segment. */
CT_MUST_CHECK ct_status cti_check_segments(const char *op, const ct_i64_list *segments, int64_t n_elements, int64_t n_groups, ct_err *err);

/* Ops whose FLOPs are worth counting. */
#define CTI_FLOPS_LIST(X)   \
    X(matmul)               \
    X(matmul_swiglu)        \
    X(sdpa)                 \
    X(sdpa_grad)            \
    X(sdpa_tnd)             \
    X(sdpa_tnd_grad)        \
    X(linear_cross_entropy) \
    X(linear_cross_entropy_eval) \
    X(linear_lse)           \
    X(newton_schulz)
#define CTI_FLOPS_DECLARE(op) \
    double cti_flops_##op(const ct_value *const *in, int32_t n_in, const void *attrs);
CTI_FLOPS_LIST(CTI_FLOPS_DECLARE)
#undef CTI_FLOPS_DECLARE

/* Arity and shapes of a node by its op's row. out_specs: ct_op_n_out() of them (names NULL, kinds ACT).
 * ERR_SHAPE with the op's name, the shapes found, and what was wanted. n_in is at most CTI_OP_MAX_IN. */
CT_MUST_CHECK ct_status cti_op_infer(const ct_graph *graph, const ct_op *op, const void *attrs,
                                     const ct_value_id *in, int32_t n_in, ct_value_spec *out_specs,
                                     ct_err *err);

/* Bytes one run of the node reads and writes: every input once, every output once; 0 for views. */
double cti_node_bytes(const ct_graph *graph, const ct_node *node);
/* FLOPs of one run of the node. */
double cti_node_flops(const ct_graph *graph, const ct_node *node);

#endif
