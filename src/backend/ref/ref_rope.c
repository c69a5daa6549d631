/* SPDX-License-Identifier: Apache-2.0 */
/* rope, qkv_rope, rope_rows, rotary_mul: rotations of adjacent pairs. Every product and sum is rounded on its own, to f32 for f32 and
 * bf16 inputs and to f64 for f64 inputs: other backends have the same bits. */
#include "backend/ref/ref.h"

/* The pair x[at], x[at + 1] turned into y[to], y[to + 1]: y0 = x0 c0 - x1 s0, y1 = x0 s1 + x1 c1. */
static void rotate_pair(const ct_tensor *x, int64_t at, const ct_tensor *y, int64_t to, const float c[2], const float s[2])
{
    if (x->dtype == CT_DTYPE_F64) {
        const double x0 = ((const double *)x->data)[at], x1 = ((const double *)x->data)[at + 1];
        ((double *)y->data)[to] = x0 * (double)c[0] - x1 * (double)s[0];
        ((double *)y->data)[to + 1] = x0 * (double)s[1] + x1 * (double)c[1];
        return;
    }
    const float x0 = (float)cti_ref_load(x, at), x1 = (float)cti_ref_load(x, at + 1);
    const float y0 = x0 * c[0] - x1 * s[0], y1 = x0 * s[1] + x1 * c[1];
    cti_ref_store(y, to, (double)y0);
    cti_ref_store(y, to + 1, (double)y1);
}

/* n heads of h elements of token t: x from element `at` on, turned, to y from `to` on. */
static void rotate_heads(const ct_tensor *x, int64_t at, const ct_tensor *y, int64_t to, int64_t n, int64_t h, const ct_tensor *pos,
                         const ct_tensor *table, int64_t t, bool inverse)
{
    const float *row = (const float *)table->data + (int64_t)((const int32_t *)pos->data)[t] * h;
    for (int64_t i = 0; i < n * h; i += 2) {
        const float c = row[i % h], s = inverse ? -row[i % h + 1] : row[i % h + 1];
        rotate_pair(x, at + i, y, to + i, (const float[2]){c, c}, (const float[2]){s, s});
    }
}

ct_status cti_ref_rope(const ct_launch *launch, ct_err *err)
{
    const ct_attrs_rope *attrs = launch->attrs;
    const ct_tensor *x = &launch->in[0], *pos = &launch->in[1], *table = &launch->in[2], *y = &launch->out[0];
    CT_TRY(cti_ref_check_ids("rope", "pos", pos, table->dims[0], err));
    const int64_t n = cti_ref_numel(pos), heads = x->dims[2], h = x->dims[3];
    for (int64_t t = 0; t < n; t++) {
        rotate_heads(x, t * heads * h, y, t * heads * h, heads, h, pos, table, t, attrs->inverse);
    }
    return CT_OK;
}

ct_status cti_ref_qkv_rope(const ct_launch *launch, ct_err *err)
{
    const ct_tensor *qkv = &launch->in[0], *pos = &launch->in[1], *table = &launch->in[2];
    const ct_tensor *q = &launch->out[0], *k = &launch->out[1], *v = &launch->out[2];
    CT_TRY(cti_ref_check_ids("qkv_rope", "pos", pos, table->dims[0], err));
    const int64_t n = cti_ref_numel(pos), h = q->dims[3], heads = q->dims[2], kv_heads = k->dims[2], row = qkv->dims[2];
    for (int64_t t = 0; t < n; t++) {
        rotate_heads(qkv, t * row, q, t * heads * h, heads, h, pos, table, t, false);
        rotate_heads(qkv, t * row + heads * h, k, t * kv_heads * h, kv_heads, h, pos, table, t, false);
        for (int64_t i = 0; i < kv_heads * h; i++) {
            cti_ref_store(v, t * kv_heads * h + i, cti_ref_load(qkv, t * row + (heads + kv_heads) * h + i));
        }
    }
    return CT_OK;
}

ct_status cti_ref_qkv_rope_grad(const ct_launch *launch, ct_err *err)
{
    const ct_tensor *dq = &launch->in[0], *dk = &launch->in[1], *dv = &launch->in[2];
    const ct_tensor *pos = &launch->in[3], *table = &launch->in[4], *dqkv = &launch->out[0];
    CT_TRY(cti_ref_check_ids("qkv_rope_grad", "pos", pos, table->dims[0], err));
    const int64_t n = cti_ref_numel(pos), h = dq->dims[3], heads = dq->dims[2], kv_heads = dk->dims[2], row = dqkv->dims[2];
    for (int64_t t = 0; t < n; t++) {
        rotate_heads(dq, t * heads * h, dqkv, t * row, heads, h, pos, table, t, true);
        rotate_heads(dk, t * kv_heads * h, dqkv, t * row + heads * h, kv_heads, h, pos, table, t, true);
        for (int64_t i = 0; i < kv_heads * h; i++) {
            cti_ref_store(dqkv, t * row + (heads + kv_heads) * h + i, cti_ref_load(dv, t * kv_heads * h + i));
        }
    }
    return CT_OK;
}

ct_status cti_ref_rope_rows(const ct_launch *launch, ct_err *err)
{
    const ct_tensor *pos = &launch->in[0], *table = &launch->in[1];
    float *cos_out = launch->out[0].data, *sin_out = launch->out[1].data;
    CT_TRY(cti_ref_check_ids("rope_rows", "pos", pos, table->dims[0], err));
    const int64_t n = cti_ref_numel(pos), half = table->dims[1];
    for (int64_t t = 0; t < n; t++) {
        const float *row = (const float *)table->data + (int64_t)((const int32_t *)pos->data)[t] * half * 2;
        for (int64_t j = 0; j < half; j++) {
            cos_out[(t * half + j) * 2] = cos_out[(t * half + j) * 2 + 1] = row[2 * j];
            sin_out[(t * half + j) * 2] = sin_out[(t * half + j) * 2 + 1] = row[2 * j + 1];
        }
    }
    return CT_OK;
}

ct_status cti_ref_rotary_mul(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_attrs_rope *attrs = launch->attrs;
    const ct_tensor *x = &launch->in[0], *y = &launch->out[0];
    const float *cos_in = launch->in[1].data, *sin_in = launch->in[2].data;
    const int64_t n = x->dims[0] * x->dims[1], heads = x->dims[2], h = x->dims[3];
    for (int64_t t = 0; t < n; t++) {
        for (int64_t i = 0; i < heads; i++) {
            for (int64_t j = 0; j < h; j += 2) {
                const float *c = cos_in + t * h + j, *s = sin_in + t * h + j;
                const float signed_s[2] = {attrs->inverse ? -s[0] : s[0], attrs->inverse ? -s[1] : s[1]};
                const int64_t at = (t * heads + i) * h + j;
                rotate_pair(x, at, y, at, c, signed_s);
            }
        }
    }
    return CT_OK;
}
