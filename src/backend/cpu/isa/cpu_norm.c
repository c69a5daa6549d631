/* SPDX-License-Identifier: Apache-2.0 */
/* rmsnorm and its gradient (Zhang and Sennrich 2019, arXiv 1910.07467). In f32; a row's sum is over vector lanes, then halves. */
#include <math.h>

#include "backend/cpu/isa/cpu_vector.h"
#include "base/pool.h"

enum { CHAINS = 4 }; /* sums side by side, so that one need not wait for the other */

CTI_INLINE float sum_chains(const vf acc[CHAINS])
{
    return v_hsum((acc[0] + acc[1]) + (acc[2] + acc[3]));
}

CTI_INLINE void norm_span(const ct_launch *l, int64_t first, int64_t end, const int how)
{
    const void *x = l->in[0].data, *w = l->in[1].data;
    const float eps = (float)((const ct_attrs_rmsnorm *)l->attrs)->eps;
    const int64_t d = t_last(&l->in[0]), whole = d - d % (CHAINS * CTI_VL);
    for (int64_t r = first; r < end; r++) {
        vf acc[CHAINS] = {{0}, {0}, {0}, {0}};
        for (int64_t i = 0; i < whole; i += CHAINS * CTI_VL) {
            CTI_UNROLL
            for (int k = 0; k < CHAINS; k++) {
                const vf v = v_get(x, r * d + i + k * CTI_VL, CTI_VL, how);
                acc[k] = v_fma(v, v, acc[k]);
            }
        }
        FOR_VECTORS(whole, d, i, n, {
            const vf v = v_get(x, r * d + i, n, how);
            acc[0] = v_fma(v, v, acc[0]);
        })
        const float s = 1.0f / sqrtf(sum_chains(acc) / (float)d + eps);
        ((float *)l->out[1].data)[r] = s;
        FOR_VECTORS(0, d, i, n, {
            v_set(l->out[0].data, r * d + i, n, v_get(x, r * d + i, n, how) * v_set1(s) * v_get(w, i, n, how), how);
        })
    }
}

static void norm_rows(void *ctx, int64_t first, int64_t end, int thread)
{
    const ct_launch *launch = ctx;
    (void)thread;
    CTI_HOW(how_of(launch, 0, t_last(&launch->in[0])), norm_span, launch, first, end);
    v_fence();
}

ct_status CTI_CPU_FN(rmsnorm)(const ct_launch *launch, ct_err *err)
{
    CT_TRY(check_floats("rmsnorm", "input", launch->in, 2, err));
    cti_pool_run(t_rows(&launch->in[0]), grain_of(t_last(&launch->in[0])), norm_rows, (void *)launch); /* only read */
    return CT_OK;
}

/* Rows whose share of dw is summed in one run; from the shape alone, so that the order of sums is. */
static int64_t chunk_rows(int64_t rows)
{
    return cti_max_i64(16, cti_ceil_div(rows, 256));
}

size_t CTI_CPU_WORKSPACE(rmsnorm_grad)(const ct_launch *shapes)
{
    const ct_tensor *x = &shapes->in[1];
    int64_t rows = t_rows(x);
    return (size_t)(cti_ceil_div(rows, chunk_rows(rows)) * t_last(x)) * sizeof(float);
}

typedef struct norm_sums {
    const ct_launch *launch;
    int64_t rows, d;
    int64_t step, n_chunks; /* of rows */
    float *part;            /* [n_chunks][d] shares of dw */
} norm_sums;

/* Row r. With s = rstd: dx = s (dy w - x s^2 mean(dy w x)) + c, dw += dy x s. dx may be any of dy, x, c. */
CTI_INLINE void grad_row(const ct_launch *l, int64_t r, int64_t d, float *dw, const bool has_c, const int how)
{
    const void *dy = l->in[0].data, *x = l->in[1].data, *w = l->in[2].data, *c = has_c ? l->in[4].data : NULL;
    const float s = ((const float *)l->in[3].data)[r];
    const int64_t at = r * d, whole = d - d % (CHAINS * CTI_VL);
    vf acc[CHAINS] = {{0}, {0}, {0}, {0}};
    for (int64_t i = 0; i < whole; i += CHAINS * CTI_VL) {
        CTI_UNROLL
        for (int k = 0; k < CHAINS; k++) {
            const int64_t j = i + k * CTI_VL;
            const vf g = v_get(dy, at + j, CTI_VL, how), v = v_get(x, at + j, CTI_VL, how);
            acc[k] = v_fma(g * v_get(w, j, CTI_VL, how), v, acc[k]);
            v_store(dw + j, v_load(dw + j) + g * (v * v_set1(s)));
        }
    }
    FOR_VECTORS(whole, d, j, n, {
        const vf g = v_get(dy, at + j, n, how), v = v_get(x, at + j, n, how);
        acc[0] = v_fma(g * v_get(w, j, n, how), v, acc[0]);
        v_set(dw, j, n, v_get(dw, j, n, 0) + g * (v * v_set1(s)), 0);
    })
    const vf mean = v_set1(sum_chains(acc) / (float)d * s * s);
    FOR_VECTORS(0, d, j, n, {
        vf dx = v_set1(s) * (v_get(dy, at + j, n, how) * v_get(w, j, n, how) - v_get(x, at + j, n, how) * mean);
        if (has_c) {
            dx += v_get(c, at + j, n, how);
        }
        v_set(l->out[0].data, at + j, n, dx, how);
    })
}

CTI_INLINE void grad_span(const norm_sums *s, int64_t first, int64_t end, const int how)
{
    const bool has_c = s->launch->n_in > 4;
    for (int64_t c = first; c < end; c++) {
        float *part = s->part + c * s->d;
        memset(part, 0, (size_t)s->d * sizeof(float));
        for (int64_t r = c * s->step; r < cti_min_i64(s->rows, (c + 1) * s->step); r++) {
            if (has_c) {
                grad_row(s->launch, r, s->d, part, true, how);
            } else {
                grad_row(s->launch, r, s->d, part, false, how);
            }
        }
    }
}

static void grad_chunks(void *ctx, int64_t first, int64_t end, int thread)
{
    const norm_sums *s = ctx;
    (void)thread;
    CTI_HOW(how_of(s->launch, 0, s->d), grad_span, s, first, end);
    v_fence();
}

/* Columns of dw, from the chunks in order. */
static void sum_columns(void *ctx, int64_t first, int64_t end, int thread)
{
    const norm_sums *s = ctx;
    const ct_tensor *dw = &s->launch->out[1];
    (void)thread;
    for (int64_t i = first; i < end; i += 64) {
        float sum[64] = {0};
        int64_t n = cti_min_i64(64, end - i);
        for (int64_t c = 0; c < s->n_chunks; c++) {
            for (int64_t j = 0; j < n; j++) {
                sum[j] += s->part[c * s->d + i + j];
            }
        }
        v_narrow(dw->data, dw->dtype, i, sum, n);
    }
}

ct_status CTI_CPU_FN(rmsnorm_grad)(const ct_launch *launch, ct_err *err)
{
    CT_TRY(check_floats("rmsnorm_grad", "input", launch->in, launch->n_in, err));
    CT_TRY(check_scratch("rmsnorm_grad", launch, CTI_CPU_WORKSPACE(rmsnorm_grad)(launch), err));
    norm_sums s = {.launch = launch, .rows = t_rows(&launch->in[1]), .d = t_last(&launch->in[1]), .part = launch->workspace};
    s.step = chunk_rows(s.rows);
    s.n_chunks = cti_ceil_div(s.rows, s.step);
    cti_pool_run(s.n_chunks, grain_of(s.step * s.d), grad_chunks, &s);
    cti_pool_run(s.d, cti_round_up(grain_of(s.n_chunks), 64), sum_columns, &s);
    return CT_OK;
}
