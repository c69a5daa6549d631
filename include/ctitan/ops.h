/* SPDX-License-Identifier: Apache-2.0 */
/* Ops: the row of each op as passes see it, and the typed emitters that model code calls. */
#ifndef CTITAN_OPS_H
#define CTITAN_OPS_H

#include <stdbool.h>

#include "ctitan/graph.h"
#include "ctitan/op_list.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Shape rule: fills out_specs (dtype, ndim, dims) of `node`'s outputs from its inputs' values and attrs; ERR_SHAPE with the op's
 * name and the shapes found. */
typedef ct_status (*ct_shape_fn)(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs,
                                 ct_value_spec *out_specs, ct_err *err);
/* Floating-point operations of one run (multiply and add count as two); bytes are made from the shapes by the caller. */
typedef double (*ct_flops_fn)(const ct_value *const *in, int32_t n_in, const void *attrs);

/* Emits the nodes of a node's gradient (ctitan/gradient.h). */
typedef struct ct_grad_ctx ct_grad_ctx;
typedef ct_status (*ct_gradient_fn)(ct_grad_ctx *ctx, const ct_node *node, ct_err *err);

typedef struct ct_op {
    const char *name; /* "matmul"; of a plug-in: "<plug-in>.<name>" */
    int32_t id;       /* given by registration to rows of plug-ins */
    int32_t n_in_min, n_in_max, n_out;
    uint32_t flags;          /* CT_OP_* */
    ct_shard_class shard;
    ct_tolerance tolerance;
    const ct_field *attr_fields; /* for printing, parsing and comparing attributes */
    int32_t n_attr_fields;
    size_t attrs_bytes;
    ct_shape_fn shape;
    ct_flops_fn flops; /* NULL: none worth counting */
    const int32_t *alias; /* of UPDATE and VIEW ops, n_out long: the input whose memory each output is, -1: its own; NULL: input 0 for all */
    /* Rows of plug-ins; the built-in ones have theirs in autodiff and in the tables of backends. */
    ct_gradient_fn gradient;  /* NULL: no_gradient */
    const char *no_gradient;  /* why there is none; NULL where there is one */
    bool gradient_takes_all;  /* every output may carry a gradient, not only output 0 */
    const struct ct_op_kernel *kernels; /* ctitan/backend.h: at most one a backend */
    int32_t n_kernels;
} ct_op;

/* The row of an op, built in or registered; NULL for an unknown id. */
const ct_op *ct_op_row(int32_t id);
const ct_op *ct_op_find(const char *name);
const char *ct_shard_class_name(ct_shard_class shard);
const char *ct_tolerance_name(ct_tolerance tolerance);
/* Outputs of a node of this op with these attributes (rows with n_out -1). */
int32_t ct_op_n_out(const ct_op *op, const void *attrs);
/* For CT_OP_UPDATE and CT_OP_VIEW ops: which input output `out` aliases, and at which element offset; -1: none. */
int32_t ct_op_alias(const ct_op *op, const void *attrs, int32_t out, int64_t *out_offset);

/* Checks arity and shapes by the op's rule, adds the node, sets aliases. out_ids: ct_op_n_out() ids. */
CT_MUST_CHECK ct_status ct_op_emit(ct_graph *graph, int32_t op, const void *attrs, const ct_value_id *in, int32_t n_in,
                                   ct_value_id *out_ids, ct_err *err);
/* Computes all outputs' dtypes and dims again, in order, after inputs' dtypes or dims changed (precision, shard). */
CT_MUST_CHECK ct_status ct_graph_reinfer(ct_graph *graph, ct_err *err);
/* Total FLOPs of the nodes of one program. */
double ct_graph_flops(const ct_graph *graph, ct_program_id program);

/* SSA, order by program, single definition, arity, shapes as the rules say, aliases legal: nothing reads a value after an update
 * overwrote it, and only UPDATE and VIEW ops alias. ERR_STATE naming the node. */
CT_MUST_CHECK ct_status ct_graph_verify(const ct_graph *graph, ct_err *err);
/* Text form, one line a value and a node; ct_graph_parse reads it back to an equal graph (docs/formats/graph.md). */
CT_MUST_CHECK ct_status ct_graph_print(const ct_graph *graph, const ct_alloc *alloc, char **out_text, ct_err *err);
CT_MUST_CHECK ct_status ct_graph_parse(const ct_alloc *alloc, const char *text, size_t size, const char *name,
                                       ct_graph **out_graph, ct_err *err);

/* Typed emitters: what model code calls. See op_list.h for the meaning. */
CT_MUST_CHECK ct_status ct_op_embedding(ct_graph *g, ct_value_id w, ct_value_id ids, ct_value_id *out_y, ct_err *err);
CT_MUST_CHECK ct_status ct_op_matmul(ct_graph *g, ct_value_id a, ct_value_id b, ct_value_id c, bool ta, bool tb,
                                     ct_value_id *out_y, ct_err *err);
CT_MUST_CHECK ct_status ct_op_add(ct_graph *g, ct_value_id a, ct_value_id b, ct_value_id *out_y, ct_err *err);
CT_MUST_CHECK ct_status ct_op_mul(ct_graph *g, ct_value_id a, ct_value_id b, ct_value_id *out_y, ct_err *err);
CT_MUST_CHECK ct_status ct_op_scale(ct_graph *g, ct_value_id a, double alpha, ct_value_id *out_y, ct_err *err);
CT_MUST_CHECK ct_status ct_op_cast(ct_graph *g, ct_value_id a, ct_dtype dtype, ct_value_id *out_y, ct_err *err);
CT_MUST_CHECK ct_status ct_op_reshape(ct_graph *g, ct_value_id a, const int64_t *dims, int32_t ndim, ct_value_id *out_y,
                                      ct_err *err);
CT_MUST_CHECK ct_status ct_op_rmsnorm(ct_graph *g, ct_value_id x, ct_value_id w, double eps, ct_value_id *out_y, ct_err *err);
CT_MUST_CHECK ct_status ct_op_rope(ct_graph *g, ct_value_id x, ct_value_id pos, ct_value_id table, ct_value_id *out_y,
                                   ct_err *err);
CT_MUST_CHECK ct_status ct_op_rope_rows(ct_graph *g, ct_value_id pos, ct_value_id table, ct_value_id *out_cos,
                                        ct_value_id *out_sin, ct_err *err);
CT_MUST_CHECK ct_status ct_op_rotary_mul(ct_graph *g, ct_value_id x, ct_value_id cos, ct_value_id sin, ct_value_id *out_y,
                                         ct_err *err);
CT_MUST_CHECK ct_status ct_op_sdpa(ct_graph *g, ct_value_id q, ct_value_id k, ct_value_id v, ct_value_id segments,
                                   ct_value_id n_segments, double scale, ct_value_id *out_o, ct_err *err);
CT_MUST_CHECK ct_status ct_op_segment_ends(ct_graph *g, ct_value_id segments, ct_value_id n_segments, ct_value_id *out_ends_q,
                                           ct_value_id *out_ends_k, ct_err *err);
CT_MUST_CHECK ct_status ct_op_sdpa_tnd(ct_graph *g, ct_value_id q, ct_value_id k, ct_value_id v, ct_value_id ends_q,
                                       ct_value_id ends_k, ct_value_id n_segments, double scale, ct_value_id *out_o, ct_err *err);
CT_MUST_CHECK ct_status ct_op_silu_mul(ct_graph *g, ct_value_id gate, ct_value_id up, ct_value_id *out_y, ct_err *err);
CT_MUST_CHECK ct_status ct_op_kv_append(ct_graph *g, ct_value_id cache, ct_value_id x, ct_value_id start,
                                        ct_value_id *out_cache, ct_err *err);

#ifdef __cplusplus
}
#endif
#endif
