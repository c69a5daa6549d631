/* SPDX-License-Identifier: Apache-2.0 */
/* rope, alone and with the split of q, k and v, rope_rows and rotary_mul (Su et al. 2021, arXiv 2104.09864). In f32, products rounded before they are added, so the
 * bits are the reference's. */
#include <inttypes.h>

#include "backend/cpu/isa/cpu_kernel.h"
#include "backend/cpu/isa/cpu_vector.h"
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

/* `heads` heads of h elements of one token, from element `at` of x to `to` of y: pairs (x[2j], x[2j+1]) times (c + i s) of the table's
 * row, s times sign. */
CTI_INLINE void rotate_heads(const void *x, int64_t at, void *y, int64_t to, int64_t heads, int64_t h, const float *row, float sign,
                             const bool is_bf16)
{
    for (int64_t j = 0; j < h; j += CTI_BLOCK) { /* a block is an even number of elements */
        float c[CTI_BLOCK + CTI_VL], s[CTI_BLOCK + CTI_VL];
        const int64_t n = cti_min_i64(CTI_BLOCK, h - j), whole = n / CTI_VL * CTI_VL;
        for (int64_t e = 0; e < n; e += CTI_VL) {
            const vf t = e < whole ? v_load(row + j + e) : v_load_part(row + j + e, n - e, 0);
            v_store(c + e, v_even_twice(t));
            v_store(s + e, v_odd_twice(t) * v_set1(sign));
        }
        for (int64_t i = j; i < heads * h; i += h) {
            for (int64_t e = 0; e < whole; e += CTI_VL) {
                v_place(y, to + i + e, rotate(v_fetch(x, at + i + e, is_bf16), v_load(c + e), v_load(s + e)), is_bf16);
            }
            if (whole < n) {
                const vf v = v_fetch_part(x, at + i + whole, n - whole, is_bf16);
                v_place_part(y, to + i + whole, n - whole, rotate(v, v_load(c + whole), v_load(s + whole)), is_bf16);
            }
        }
    }
}

/* One token: q's and k's heads are turned between the parts and the row that holds all, v's are moved. */
typedef struct qkv_run {
    void *row, *part[3]; /* q, k, v */
    const int32_t *pos;
    const float *table;
    int64_t h, heads[3];
    bool is_split; /* else the parts go into the row, turned back */
    bool is_bf16;
} qkv_run;

CTI_INLINE void qkv_token(const qkv_run *r, int64_t t, const bool is_bf16)
{
    const float *table = r->table + r->pos[t] * r->h;
    int64_t at = t * (r->heads[0] + r->heads[1] + r->heads[2]) * r->h;
    for (int i = 0; i < 3; i++) {
        const int64_t n = r->heads[i] * r->h, size = is_bf16 ? 2 : 4;
        if (i < 2) {
            rotate_heads(r->is_split ? r->row : r->part[i], r->is_split ? at : t * n, r->is_split ? r->part[i] : r->row,
                         r->is_split ? t * n : at, r->heads[i], r->h, table, r->is_split ? 1.0f : -1.0f, is_bf16);
        } else {
            char *row = (char *)r->row + at * size, *part = (char *)r->part[i] + t * n * size;
            memcpy(r->is_split ? part : row, r->is_split ? row : part, (size_t)(n * size));
        }
        at += n;
    }
}

static void qkv_tokens(void *ctx, int64_t first, int64_t end, int thread)
{
    const qkv_run *r = ctx;
    (void)thread;
    for (int64_t t = first; t < end; t++) {
        if (r->is_bf16) {
            qkv_token(r, t, true);
        } else {
            qkv_token(r, t, false);
        }
    }
}

static ct_status run_qkv(const ct_tensor *row, const ct_tensor part[3], const ct_tensor *pos, const ct_tensor *table, bool is_split)
{
    qkv_run r = {.row = row->data, .pos = pos->data, .table = table->data, .h = t_last(&part[0])};
    for (int i = 0; i < 3; i++) {
        r.part[i] = part[i].data;
        r.heads[i] = part[i].dims[2];
    }
    r.is_split = is_split;
    r.is_bf16 = row->dtype == CT_DTYPE_BF16;
    cti_pool_run(t_numel(pos), grain_of(t_last(row)), qkv_tokens, &r);
    return CT_OK;
}

ct_status CTI_CPU_FN(qkv_rope)(const ct_launch *launch, ct_err *err)
{
    CT_TRY(check_floats("qkv_rope", "input", launch->in, 1, err));
    CT_TRY(check_positions("qkv_rope", &launch->in[1], &launch->in[2], err));
    return run_qkv(&launch->in[0], launch->out, &launch->in[1], &launch->in[2], true);
}

ct_status CTI_CPU_FN(qkv_rope_grad)(const ct_launch *launch, ct_err *err)
{
    CT_TRY(check_floats("qkv_rope_grad", "input", launch->in, 3, err));
    CT_TRY(check_positions("qkv_rope_grad", &launch->in[3], &launch->in[4], err));
    return run_qkv(&launch->out[0], launch->in, &launch->in[3], &launch->in[4], false);
}

static void rope_tokens(void *ctx, int64_t first, int64_t end, int thread)
{
    const ct_launch *launch = ctx;
    const ct_tensor *x = &launch->in[0], *pos = &launch->in[1], *table = &launch->in[2], *y = &launch->out[0];
    const float sign = ((const ct_attrs_rope *)launch->attrs)->inverse ? -1.0f : 1.0f;
    const int64_t h = t_last(x), heads = x->dims[x->ndim - 2];
    (void)thread;
    for (int64_t t = first; t < end; t++) {
        const float *row = (const float *)table->data + ((const int32_t *)pos->data)[t] * h;
        if (x->dtype == CT_DTYPE_BF16) {
            rotate_heads(x->data, t * heads * h, y->data, t * heads * h, heads, h, row, sign, true);
        } else {
            rotate_heads(x->data, t * heads * h, y->data, t * heads * h, heads, h, row, sign, false);
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
