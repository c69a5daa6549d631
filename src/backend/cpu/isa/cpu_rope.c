/* SPDX-License-Identifier: Apache-2.0 */
/* rope, alone and with the split of q, k and v, rope_rows and rotary_mul (Su et al. 2021, arXiv 2104.09864). In f32, products
 * rounded before they are added, so the bits are the reference's. */
#include <inttypes.h>

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
                             const int how)
{
    for (int64_t j = 0; j < h; j += CTI_BLOCK) { /* a block is an even number of elements */
        float c[CTI_BLOCK], s[CTI_BLOCK];
        const int64_t end = cti_min_i64(h, j + CTI_BLOCK);
        FOR_VECTORS(j, end, i, n, {
            const vf t = v_get(row, i, n, 0);
            v_set(c, i - j, CTI_VL, v_even_twice(t), 0);
            v_set(s, i - j, CTI_VL, v_odd_twice(t) * v_set1(sign), 0);
        })
        for (int64_t k = 0; k < heads * h; k += h) {
            FOR_VECTORS(j, end, i, n, {
                v_set(y, to + k + i, n, rotate(v_get(x, at + k + i, n, how), v_load(c + i - j), v_load(s + i - j)), how);
            })
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
    int how;
} qkv_run;

CTI_INLINE void qkv_token(const qkv_run *r, int64_t t, const int how)
{
    const float *table = r->table + r->pos[t] * r->h;
    int64_t at = t * (r->heads[0] + r->heads[1] + r->heads[2]) * r->h;
    for (int i = 0; i < 3; i++) {
        const int64_t n = r->heads[i] * r->h, size = how & CTI_IS_BF16 ? 2 : 4;
        if (i < 2) {
            rotate_heads(r->is_split ? r->row : r->part[i], r->is_split ? at : t * n, r->is_split ? r->part[i] : r->row,
                         r->is_split ? t * n : at, r->heads[i], r->h, table, r->is_split ? 1.0f : -1.0f, how);
        } else if (how & CTI_PAST) {
            FOR_VECTORS(0, n, e, k, {
                v_set(r->is_split ? r->part[i] : r->row, (r->is_split ? t * n : at) + e, k,
                      v_get(r->is_split ? r->row : r->part[i], (r->is_split ? at : t * n) + e, k, how), how);
            })
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
        CTI_HOW(r->how, qkv_token, r, t);
    }
    v_fence();
}

static ct_status run_qkv(const ct_launch *launch, const ct_tensor *row, const ct_tensor part[3], const ct_tensor *pos,
                         const ct_tensor *table, bool is_split)
{
    qkv_run r = {.row = row->data, .pos = pos->data, .table = table->data, .h = t_last(&part[0])};
    for (int i = 0; i < 3; i++) {
        r.part[i] = part[i].data;
        r.heads[i] = part[i].dims[2];
    }
    r.is_split = is_split;
    r.how = how_of(launch, 0, r.h);
    for (int32_t i = 1; is_split && i < 3; i++) {
        r.how &= how_of(launch, i, r.h);
    }
    cti_pool_run(t_numel(pos), grain_of(t_last(row)), qkv_tokens, &r);
    return CT_OK;
}

ct_status CTI_CPU_FN(qkv_rope)(const ct_launch *launch, ct_err *err)
{
    CT_TRY(check_floats("qkv_rope", "input", launch->in, 1, err));
    CT_TRY(check_positions("qkv_rope", &launch->in[1], &launch->in[2], err));
    return run_qkv(launch, &launch->in[0], launch->out, &launch->in[1], &launch->in[2], true);
}

ct_status CTI_CPU_FN(qkv_rope_grad)(const ct_launch *launch, ct_err *err)
{
    CT_TRY(check_floats("qkv_rope_grad", "input", launch->in, 3, err));
    CT_TRY(check_positions("qkv_rope_grad", &launch->in[3], &launch->in[4], err));
    return run_qkv(launch, &launch->out[0], launch->in, &launch->in[3], &launch->in[4], false);
}

static void rope_tokens(void *ctx, int64_t first, int64_t end, int thread)
{
    const ct_launch *launch = ctx;
    const ct_tensor *x = &launch->in[0], *pos = &launch->in[1], *table = &launch->in[2], *y = &launch->out[0];
    const float sign = ((const ct_attrs_rope *)launch->attrs)->inverse ? -1.0f : 1.0f;
    const int64_t h = t_last(x), heads = x->dims[x->ndim - 2];
    const int how = how_of(launch, 0, h);
    (void)thread;
    for (int64_t t = first; t < end; t++) {
        const float *row = (const float *)table->data + ((const int32_t *)pos->data)[t] * h;
        CTI_HOW(how, rotate_heads, x->data, t * heads * h, y->data, t * heads * h, heads, h, row, sign);
    }
    v_fence();
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

CTI_INLINE void rotary_span(const ct_launch *l, int64_t first, int64_t end, const int how)
{
    const ct_tensor *x = &l->in[0];
    const float *c = l->in[1].data, *s = l->in[2].data;
    const vf sign = v_set1(((const ct_attrs_rope *)l->attrs)->inverse ? -1.0f : 1.0f);
    const int64_t h = t_last(x), heads = x->dims[x->ndim - 2];
    for (int64_t t = first; t < end; t++) {
        for (int64_t at = t * heads * h; at < (t + 1) * heads * h; at += h) {
            FOR_VECTORS(0, h, i, n, {
                const vf turned = rotate(v_get(x->data, at + i, n, how), v_get(c, t * h + i, n, 0), v_get(s, t * h + i, n, 0) * sign);
                v_set(l->out[0].data, at + i, n, turned, how);
            })
        }
    }
}

static void rotary_tokens(void *ctx, int64_t first, int64_t end, int thread)
{
    const ct_launch *launch = ctx;
    (void)thread;
    CTI_HOW(how_of(launch, 0, t_last(&launch->in[0])), rotary_span, launch, first, end);
    v_fence();
}

ct_status CTI_CPU_FN(rotary_mul)(const ct_launch *launch, ct_err *err)
{
    const ct_tensor *x = &launch->in[0];
    CT_TRY(check_floats("rotary_mul", "input", launch->in, 1, err));
    const int64_t tokens = t_rows(&launch->in[1]);
    cti_pool_run(tokens, grain_of(t_numel(x) / cti_max_i64(1, tokens)), rotary_tokens, (void *)launch);
    return CT_OK;
}
