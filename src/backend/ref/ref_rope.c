/* SPDX-License-Identifier: Apache-2.0 */
/* rope, rope_rows, rotary_mul: rotations of adjacent pairs. Every product and sum is rounded on its own, to f32 for f32 and
 * bf16 inputs and to f64 for f64 inputs: other backends have the same bits. */
#include "backend/ref/ref.h"

/* The pair x[at], x[at + 1] turned: y0 = x0 c0 - x1 s0, y1 = x0 s1 + x1 c1. */
static void rotate_pair(const ct_tensor *x, const ct_tensor *y, int64_t at, const float c[2], const float s[2])
{
    if (x->dtype == CT_DTYPE_F64) {
        const double x0 = ((const double *)x->data)[at], x1 = ((const double *)x->data)[at + 1];
        ((double *)y->data)[at] = x0 * (double)c[0] - x1 * (double)s[0];
        ((double *)y->data)[at + 1] = x0 * (double)s[1] + x1 * (double)c[1];
        return;
    }
    const float x0 = (float)cti_ref_load(x, at), x1 = (float)cti_ref_load(x, at + 1);
    const float y0 = x0 * c[0] - x1 * s[0], y1 = x0 * s[1] + x1 * c[1];
    cti_ref_store(y, at, (double)y0);
    cti_ref_store(y, at + 1, (double)y1);
}

ct_status cti_ref_rope(const ct_launch *launch, ct_err *err)
{
    const ct_attrs_rope *attrs = launch->attrs;
    const ct_tensor *x = &launch->in[0], *pos = &launch->in[1], *table = &launch->in[2], *y = &launch->out[0];
    CT_TRY(cti_ref_check_ids("rope", "pos", pos, table->dims[0], err));
    const int64_t n = cti_ref_numel(pos), heads = x->dims[2], h = x->dims[3], half = h / 2;
    for (int64_t t = 0; t < n; t++) {
        const float *row = (const float *)table->data + (int64_t)((const int32_t *)pos->data)[t] * half * 2;
        for (int64_t i = 0; i < heads; i++) {
            for (int64_t j = 0; j < half; j++) {
                const float c = row[2 * j], s = attrs->inverse ? -row[2 * j + 1] : row[2 * j + 1];
                rotate_pair(x, y, (t * heads + i) * h + 2 * j, (const float[2]){c, c}, (const float[2]){s, s});
            }
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
                rotate_pair(x, y, (t * heads + i) * h + j, c, signed_s);
            }
        }
    }
    return CT_OK;
}
