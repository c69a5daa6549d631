/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of the rotary position ops: rope, qkv_rope, rope_rows, rotary_mul. x is [B, S, H, h] with an even h. */
#include <inttypes.h>

#include "base/num.h"
#include "ops/op_check.h"

/* Input i is a table of complex numbers, f32 [L, half, 2]. half -1: any. */
static ct_status want_table(const cti_check *c, int32_t i, int64_t half)
{
    CT_TRY(cti_want_dtype(c, i, CT_DTYPE_F32));
    CT_TRY(cti_want_ndim(c, i, 3));
    CT_TRY(cti_want(c, c->in[i]->dims[2] == 2, "the last dim of input %d must be 2 (cos, sin)", (int)i));
    return cti_want(c, half < 0 || c->in[i]->dims[1] == half,
                    "dim 1 of input %d must be half of x's last dim", (int)i);
}

static ct_status want_x(const cti_check *c)
{
    CT_TRY(cti_want_float(c, 0));
    CT_TRY(cti_want_ndim(c, 0, 4));
    return cti_want(c, c->in[0]->dims[3] % 2 == 0, "the last dim of input 0 must be even");
}

ct_status cti_shape_rope(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs,
                         ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    (void)attrs;
    const cti_check c = CTI_CHECK("rope");
    CT_TRY(want_x(&c));
    CT_TRY(cti_want_dtype(&c, 1, CT_DTYPE_I32));
    CT_TRY(cti_want_dims(&c, 1, in[0]->dims, 2));
    CT_TRY(want_table(&c, 2, in[0]->dims[3] / 2));
    out_specs[0] = cti_spec_like(in[0]);
    return CT_OK;
}

ct_status cti_shape_qkv_rope(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs,
                             ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    const ct_attrs_qkv_rope *a = attrs;
    const cti_check c = CTI_CHECK("qkv_rope");
    CT_TRY(cti_want_float(&c, 0));
    CT_TRY(cti_want_ndim(&c, 0, 3));
    const int64_t limit = INT32_MAX; /* so that the count of heads cannot overflow */
    CT_TRY(cti_want(&c, a->heads > 0 && a->kv_heads > 0 && a->heads <= limit && a->kv_heads <= limit,
                    "'heads' %" PRId64 " and 'kv_heads' %" PRId64 " must be at least 1", a->heads, a->kv_heads));
    const int64_t heads = a->heads + 2 * a->kv_heads, h = in[0]->dims[2] / heads;
    CT_TRY(cti_want(&c, in[0]->dims[2] % heads == 0 && h % 2 == 0,
                    "the last dim of input 0 must be %" PRId64 " heads of an even size", heads));
    CT_TRY(cti_want_dtype(&c, 1, CT_DTYPE_I32));
    CT_TRY(cti_want_dims(&c, 1, in[0]->dims, 2));
    CT_TRY(want_table(&c, 2, h / 2));
    for (int i = 0; i < 3; i++) {
        const int64_t dims[] = {in[0]->dims[0], in[0]->dims[1], i == 0 ? a->heads : a->kv_heads, h};
        out_specs[i] = cti_spec(in[0]->dtype, 4, dims);
    }
    return CT_OK;
}

ct_status cti_shape_qkv_rope_grad(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs,
                                  ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    (void)attrs;
    const cti_check c = CTI_CHECK("qkv_rope_grad");
    CT_TRY(want_x(&c));
    CT_TRY(cti_want_same_dtype(&c, 1, 0));
    CT_TRY(cti_want_ndim(&c, 1, 4));
    CT_TRY(cti_want_same(&c, 2, 1));
    const int64_t *d = in[0]->dims;
    CT_TRY(cti_want_dims(&c, 1, (const int64_t[]){d[0], d[1], in[1]->dims[2], d[3]}, 4));
    CT_TRY(cti_want_dtype(&c, 3, CT_DTYPE_I32));
    CT_TRY(cti_want_dims(&c, 3, d, 2));
    CT_TRY(want_table(&c, 4, d[3] / 2));
    int64_t width = 0;
    CT_TRY(cti_want(&c, cti_mul_i64(in[1]->dims[2], 2, &width) && cti_add_i64(width, d[2], &width) && cti_mul_i64(width, d[3], &width),
                    "the result is too large"));
    out_specs[0] = cti_spec(in[0]->dtype, 3, (const int64_t[]){d[0], d[1], width});
    return CT_OK;
}

ct_status cti_shape_rope_rows(const ct_graph *graph, const ct_value *const *in, int32_t n_in,
                              const void *attrs, ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    (void)attrs;
    const cti_check c = CTI_CHECK("rope_rows");
    CT_TRY(cti_want_dtype(&c, 0, CT_DTYPE_I32));
    CT_TRY(cti_want_ndim(&c, 0, 2));
    CT_TRY(want_table(&c, 1, -1));
    const int64_t dims[] = {in[0]->dims[0], in[0]->dims[1], 2 * in[1]->dims[1]};
    out_specs[0] = cti_spec(CT_DTYPE_F32, 3, dims);
    out_specs[1] = out_specs[0];
    return CT_OK;
}

ct_status cti_shape_rotary_mul(const ct_graph *graph, const ct_value *const *in, int32_t n_in,
                               const void *attrs, ct_value_spec *out_specs, ct_err *err)
{
    (void)graph;
    (void)attrs;
    const cti_check c = CTI_CHECK("rotary_mul");
    CT_TRY(want_x(&c));
    const int64_t dims[] = {in[0]->dims[0], in[0]->dims[1], in[0]->dims[3]};
    for (int32_t i = 1; i <= 2; i++) {
        CT_TRY(cti_want_dtype(&c, i, CT_DTYPE_F32));
        CT_TRY(cti_want_dims(&c, i, dims, 3));
    }
    out_specs[0] = cti_spec_like(in[0]);
    return CT_OK;
}
