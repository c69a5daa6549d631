/* SPDX-License-Identifier: Apache-2.0 */
/* The typed emitters: what model code calls. */
#include "ops/ops.h"

#define IN(...)                         \
    (const ct_value_id[]){__VA_ARGS__}, \
        (int32_t)(sizeof((const ct_value_id[]){__VA_ARGS__}) / sizeof(ct_value_id))

ct_status ct_op_embedding(ct_graph *g, ct_value_id w, ct_value_id ids, ct_value_id *out_y, ct_err *err)
{
    return ct_op_emit(g, CT_OP_embedding, NULL, IN(w, ids), out_y, err);
}

ct_status ct_op_matmul(ct_graph *g, ct_value_id a, ct_value_id b, ct_value_id c, bool ta, bool tb,
                       ct_value_id *out_y, ct_err *err)
{
    const ct_attrs_matmul attrs = {.ta = ta, .tb = tb};
    const ct_value_id in[] = {a, b, c};
    return ct_op_emit(g, CT_OP_matmul, &attrs, in, c == CT_NO_VALUE ? 2 : 3, out_y, err);
}

ct_status ct_op_add(ct_graph *g, ct_value_id a, ct_value_id b, ct_value_id *out_y, ct_err *err)
{
    return ct_op_emit(g, CT_OP_add, NULL, IN(a, b), out_y, err);
}

ct_status ct_op_mul(ct_graph *g, ct_value_id a, ct_value_id b, ct_value_id *out_y, ct_err *err)
{
    return ct_op_emit(g, CT_OP_mul, NULL, IN(a, b), out_y, err);
}

ct_status ct_op_scale(ct_graph *g, ct_value_id a, double alpha, ct_value_id *out_y, ct_err *err)
{
    const ct_attrs_scale attrs = {.alpha = alpha};
    return ct_op_emit(g, CT_OP_scale, &attrs, IN(a), out_y, err);
}

ct_status ct_op_cast(ct_graph *g, ct_value_id a, ct_dtype dtype, ct_value_id *out_y, ct_err *err)
{
    const ct_attrs_cast attrs = {.dtype = dtype};
    return ct_op_emit(g, CT_OP_cast, &attrs, IN(a), out_y, err);
}

ct_status ct_op_reshape(ct_graph *g, ct_value_id a, const int64_t *dims, int32_t ndim, ct_value_id *out_y,
                        ct_err *err)
{
    const ct_attrs_reshape attrs = {
        .dims = {.n = ndim, .items = (int64_t *)dims}}; /* copied, never written */
    return ct_op_emit(g, CT_OP_reshape, &attrs, IN(a), out_y, err);
}

/* Emits an op of two outputs; NULL for an output that the caller has no use for. */
static ct_status emit2(ct_graph *g, int32_t op, const void *attrs, const ct_value_id *in, int32_t n_in,
                       ct_value_id *out_0, ct_value_id *out_1, ct_err *err)
{
    ct_value_id outs[2];
    CT_TRY(ct_op_emit(g, op, attrs, in, n_in, outs, err));
    *out_0 = outs[0];
    if (out_1 != NULL) {
        *out_1 = outs[1];
    }
    return CT_OK;
}

ct_status ct_op_rmsnorm(ct_graph *g, ct_value_id x, ct_value_id w, double eps, ct_value_id *out_y,
                        ct_err *err)
{
    const ct_attrs_rmsnorm attrs = {.eps = eps};
    return emit2(g, CT_OP_rmsnorm, &attrs, IN(x, w), out_y, NULL, err);
}

ct_status ct_op_rope(ct_graph *g, ct_value_id x, ct_value_id pos, ct_value_id table, ct_value_id *out_y,
                     ct_err *err)
{
    const ct_attrs_rope attrs = {.inverse = false};
    return ct_op_emit(g, CT_OP_rope, &attrs, IN(x, pos, table), out_y, err);
}

ct_status ct_op_rope_rows(ct_graph *g, ct_value_id pos, ct_value_id table, ct_value_id *out_cos,
                          ct_value_id *out_sin, ct_err *err)
{
    return emit2(g, CT_OP_rope_rows, NULL, IN(pos, table), out_cos, out_sin, err);
}

ct_status ct_op_rotary_mul(ct_graph *g, ct_value_id x, ct_value_id cos, ct_value_id sin, ct_value_id *out_y,
                           ct_err *err)
{
    const ct_attrs_rope attrs = {.inverse = false};
    return ct_op_emit(g, CT_OP_rotary_mul, &attrs, IN(x, cos, sin), out_y, err);
}

ct_status ct_op_sdpa(ct_graph *g, ct_value_id q, ct_value_id k, ct_value_id v, ct_value_id segments,
                     ct_value_id n_segments, double scale, ct_value_id *out_o, ct_err *err)
{
    const ct_attrs_sdpa attrs = {.scale = scale, .causal = true};
    return emit2(g, CT_OP_sdpa, &attrs, IN(q, k, v, segments, n_segments), out_o, NULL, err);
}

ct_status ct_op_segment_ends(ct_graph *g, ct_value_id segments, ct_value_id n_segments,
                             ct_value_id *out_ends_q, ct_value_id *out_ends_k, ct_err *err)
{
    return emit2(g, CT_OP_segment_ends, NULL, IN(segments, n_segments), out_ends_q, out_ends_k, err);
}

ct_status ct_op_sdpa_tnd(ct_graph *g, ct_value_id q, ct_value_id k, ct_value_id v, ct_value_id ends_q,
                         ct_value_id ends_k, ct_value_id n_segments, double scale, ct_value_id *out_o,
                         ct_err *err)
{
    const ct_attrs_sdpa attrs = {.scale = scale, .causal = true};
    return emit2(g, CT_OP_sdpa_tnd, &attrs, IN(q, k, v, ends_q, ends_k, n_segments), out_o, NULL, err);
}

ct_status ct_op_silu_mul(ct_graph *g, ct_value_id gate, ct_value_id up, ct_value_id *out_y, ct_err *err)
{
    return ct_op_emit(g, CT_OP_silu_mul, NULL, IN(gate, up), out_y, err);
}

ct_status ct_op_kv_append(ct_graph *g, ct_value_id cache, ct_value_id x, ct_value_id start,
                          ct_value_id *out_cache, ct_err *err)
{
    return ct_op_emit(g, CT_OP_kv_append, NULL, IN(cache, x, start), out_cache, err);
}
