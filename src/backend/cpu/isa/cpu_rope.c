/* SPDX-License-Identifier: Apache-2.0 */
/* rope, rope_rows and rotary_mul (Su et al. 2021, arXiv 2104.09864). In f32, products rounded before they are added, so the
 * bits are the reference's. */
#include <inttypes.h>

#include "backend/cpu/isa/cpu_kernel.h"
#include "base/pool.h"

static ct_status check_positions(const char *op, const ct_tensor *pos, const ct_tensor *table, ct_err *err)
{
    const int32_t *p = pos->data;
    const int64_t n = t_numel(pos);
    for (int64_t t = 0; t < n; t++) {
        if (p[t] < 0 || p[t] >= table->dims[0]) {
            return CT_FAIL(err, CT_ERR_RANGE, "%s: position %" PRId32 " of token %" PRId64 " is outside [0, %" PRId64 ")", op, p[t],
                           t, table->dims[0]);
        }
    }
    return CT_OK;
}

/* y = x c + r(x) s, r(x) = (-x[1], x[0], -x[3], x[2], ...): the negated product has the bits of the subtraction. On vectors by
 * hand, for gcc makes fused operations of such pairs whatever -ffp-contract says (gcc 12, vfmaddsub). */
CTI_INLINE vf rotate(vf x, vf c, vf s)
{
    return x * c + v_negate_even(v_swap_pairs(x) * s);
}

/* n elements of one head, n even: pairs (x[2j], x[2j+1]) times (c + i s) of the table, s times sign. */
CTI_INLINE void rotate_pairs(float *y, const float *x, const float *table, int64_t n, float sign)
{
    int64_t i = 0;
    for (; i + CTI_VL <= n; i += CTI_VL) {
        vf t = v_load(table + i);
        v_store(y + i, rotate(v_load(x + i), v_even_twice(t), v_odd_twice(t) * v_set1(sign)));
    }
    if (i < n) {
        vf t = v_load_part(table + i, n - i, 0);
        v_store_part(y + i, n - i, rotate(v_load_part(x + i, n - i, 0), v_even_twice(t), v_odd_twice(t) * v_set1(sign)));
    }
}

static void rope_tokens(void *ctx, int64_t first, int64_t end, int thread)
{
    const ct_launch *launch = ctx;
    const ct_tensor *x = &launch->in[0], *pos = &launch->in[1], *table = &launch->in[2], *y = &launch->out[0];
    const int32_t *p = pos->data;
    const float sign = ((const ct_attrs_rope *)launch->attrs)->inverse ? -1.0f : 1.0f;
    const int64_t h = t_last(x), heads = x->dims[x->ndim - 2];
    (void)thread;
    for (int64_t t = first; t < end; t++) {
        const float *row = (const float *)table->data + p[t] * h;
        for (int64_t i = t * heads; i < (t + 1) * heads; i++) {
            for (int64_t j = 0; j < h; j += CTI_BLOCK) { /* a block is an even number of elements */
                float bx[CTI_BLOCK], by[CTI_BLOCK];
                int64_t n = cti_min_i64(CTI_BLOCK, h - j);
                const float *px = v_view(x->data, x->dtype, i * h + j, n, bx);
                float *py = v_out(y->data, y->dtype, i * h + j, by);
                rotate_pairs(py, px, row + j, n, sign);
                v_put(y->data, y->dtype, i * h + j, by, n);
            }
        }
    }
}

ct_status CTI_CPU_FN(rope)(const ct_launch *launch, ct_err *err)
{
    const ct_tensor *x = &launch->in[0], *pos = &launch->in[1];
    CT_TRY(check_floats("rope", "input", launch->in, 1, err));
    CT_TRY(check_positions("rope", pos, &launch->in[2], err));
    const int64_t tokens = t_numel(pos);
    cti_pool_run(tokens, grain_of(t_numel(x) / cti_max_i64(1, tokens)), rope_tokens, (void *)launch); /* only read */
    return CT_OK;
}

ct_status CTI_CPU_FN(rope_rows)(const ct_launch *launch, ct_err *err)
{
    const ct_tensor *pos = &launch->in[0], *table = &launch->in[1];
    CT_TRY(check_positions("rope_rows", pos, table, err));
    const int32_t *p = pos->data;
    float *c = launch->out[0].data, *s = launch->out[1].data;
    const int64_t h = t_last(&launch->out[0]), tokens = t_numel(pos);
    for (int64_t t = 0; t < tokens; t++) {
        const float *row = (const float *)table->data + p[t] * h;
        for (int64_t j = 0; j < h; j++) {
            c[t * h + j] = row[j & ~(int64_t)1];
            s[t * h + j] = row[j | 1];
        }
    }
    return CT_OK;
}

static void rotary_tokens(void *ctx, int64_t first, int64_t end, int thread)
{
    const ct_launch *launch = ctx;
    const ct_tensor *x = &launch->in[0], *y = &launch->out[0];
    const float *cos_bsh = launch->in[1].data, *sin_bsh = launch->in[2].data;
    const float sign = ((const ct_attrs_rope *)launch->attrs)->inverse ? -1.0f : 1.0f;
    const int64_t h = t_last(x), heads = x->dims[x->ndim - 2];
    (void)thread;
    for (int64_t t = first; t < end; t++) {
        for (int64_t i = t * heads; i < (t + 1) * heads; i++) {
            for (int64_t j = 0; j < h; j += CTI_BLOCK) {
                float bx[CTI_BLOCK], by[CTI_BLOCK];
                int64_t n = cti_min_i64(CTI_BLOCK, h - j);
                const float *px = v_view(x->data, x->dtype, i * h + j, n, bx);
                const float *c = cos_bsh + t * h + j, *s = sin_bsh + t * h + j;
                float *py = v_out(y->data, y->dtype, i * h + j, by);
                int64_t e = 0;
                for (; e + CTI_VL <= n; e += CTI_VL) {
                    v_store(py + e, rotate(v_load(px + e), v_load(c + e), v_load(s + e) * v_set1(sign)));
                }
                if (e < n) {
                    vf vs = v_load_part(s + e, n - e, 0) * v_set1(sign);
                    v_store_part(py + e, n - e, rotate(v_load_part(px + e, n - e, 0), v_load_part(c + e, n - e, 0), vs));
                }
                v_put(y->data, y->dtype, i * h + j, by, n);
            }
        }
    }
}

ct_status CTI_CPU_FN(rotary_mul)(const ct_launch *launch, ct_err *err)
{
    const ct_tensor *x = &launch->in[0];
    CT_TRY(check_floats("rotary_mul", "input", launch->in, 1, err));
    const int64_t tokens = t_rows(&launch->in[1]);
    cti_pool_run(tokens, grain_of(t_numel(x) / cti_max_i64(1, tokens)), rotary_tokens, (void *)launch);
    return CT_OK;
}
