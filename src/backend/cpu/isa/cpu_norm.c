/* SPDX-License-Identifier: Apache-2.0 */
/* rmsnorm and its gradient (Zhang and Sennrich 2019, arXiv 1910.07467). In f32; a row's sum is over vector lanes, then halves. */
#include <math.h>

#include "backend/cpu/isa/cpu_kernel.h"
#include "base/pool.h"

/* sum of a[i] b[i] c[i]; c NULL counts as ones. Adds to *tail and *acc, whose order does not depend on blocks of CTI_BLOCK. */
CTI_INLINE void dot3(const float *a, const float *b, const float *c, int64_t n, vf acc[2], float *tail)
{
    int64_t i = 0;
    for (; i + 2 * CTI_VL <= n; i += 2 * CTI_VL) {
        vf p0 = v_load(a + i), p1 = v_load(a + i + CTI_VL);
        if (c) {
            p0 *= v_load(c + i);
            p1 *= v_load(c + i + CTI_VL);
        }
        acc[0] = v_fma(p0, v_load(b + i), acc[0]);
        acc[1] = v_fma(p1, v_load(b + i + CTI_VL), acc[1]);
    }
    for (; i < n; i++) {
        *tail += (c ? a[i] * c[i] : a[i]) * b[i];
    }
}

static void norm_rows(void *ctx, int64_t first, int64_t end, int thread)
{
    const ct_launch *launch = ctx;
    const ct_tensor *x = &launch->in[0], *w = &launch->in[1], *y = &launch->out[0];
    float *rstd = launch->out[1].data;
    const float eps = (float)((const ct_attrs_rmsnorm *)launch->attrs)->eps;
    const int64_t d = t_last(x);
    (void)thread;
    for (int64_t r = first; r < end; r++) {
        float bx[CTI_BLOCK], bw[CTI_BLOCK], by[CTI_BLOCK];
        vf acc[2] = {{0}, {0}};
        float tail = 0;
        for (int64_t i = 0; i < d; i += CTI_BLOCK) {
            int64_t n = cti_min_i64(CTI_BLOCK, d - i);
            const float *px = v_view(x->data, x->dtype, r * d + i, n, bx);
            dot3(px, px, NULL, n, acc, &tail);
        }
        const float mean = (v_hsum(acc[0] + acc[1]) + tail) / (float)d;
        const float s = 1.0f / sqrtf(mean + eps);
        rstd[r] = s;
        for (int64_t i = 0; i < d; i += CTI_BLOCK) {
            int64_t n = cti_min_i64(CTI_BLOCK, d - i);
            const float *px = v_view(x->data, x->dtype, r * d + i, n, bx);
            const float *pw = v_view(w->data, w->dtype, i, n, bw);
            float *py = v_out(y->data, y->dtype, r * d + i, by);
            for (int64_t j = 0; j < n; j++) {
                py[j] = px[j] * s * pw[j];
            }
            v_put(y->data, y->dtype, r * d + i, by, n);
        }
    }
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

/* With s = rstd: dx = s (dy w - x s^2 mean(dy w x)) + c, dw += dy x s. */
static void grad_row(const ct_launch *launch, int64_t r, int64_t d, float *dw)
{
    const ct_tensor *dy = &launch->in[0], *x = &launch->in[1], *w = &launch->in[2], *dx = &launch->out[0];
    const float s = ((const float *)launch->in[3].data)[r];
    const ct_tensor *add = launch->n_in > 4 ? &launch->in[4] : NULL;
    float bd[CTI_BLOCK], bx[CTI_BLOCK], bw[CTI_BLOCK], bdx[CTI_BLOCK], badd[CTI_BLOCK];
    vf acc[2] = {{0}, {0}};
    float tail = 0;
    for (int64_t i = 0; i < d; i += CTI_BLOCK) {
        int64_t n = cti_min_i64(CTI_BLOCK, d - i);
        const float *pd = v_view(dy->data, dy->dtype, r * d + i, n, bd);
        const float *px = v_view(x->data, x->dtype, r * d + i, n, bx);
        dot3(pd, px, v_view(w->data, w->dtype, i, n, bw), n, acc, &tail);
        float *pdw = dw + i;
        for (int64_t j = 0; j < n; j++) {
            pdw[j] += pd[j] * (px[j] * s);
        }
    }
    const float c = (v_hsum(acc[0] + acc[1]) + tail) / (float)d * s * s;
    for (int64_t i = 0; i < d; i += CTI_BLOCK) {
        int64_t n = cti_min_i64(CTI_BLOCK, d - i);
        const float *pd = v_view(dy->data, dy->dtype, r * d + i, n, bd);
        const float *px = v_view(x->data, x->dtype, r * d + i, n, bx);
        const float *pw = v_view(w->data, w->dtype, i, n, bw);
        const float *pa = add != NULL ? v_view(add->data, add->dtype, r * d + i, n, badd) : NULL;
        float *pdx = v_out(dx->data, dx->dtype, r * d + i, bdx);
        for (int64_t j = 0; j < n; j++) {
            pdx[j] = s * (pd[j] * pw[j] - px[j] * c) + (pa ? pa[j] : 0.0f);
        }
        v_put(dx->data, dx->dtype, r * d + i, bdx, n);
    }
}

typedef struct norm_sums {
    const ct_launch *launch;
    int64_t rows, d;
    int64_t step, n_chunks; /* of rows */
    float *part;            /* [n_chunks][d] shares of dw */
} norm_sums;

static void grad_chunks(void *ctx, int64_t first, int64_t end, int thread)
{
    const norm_sums *s = ctx;
    (void)thread;
    for (int64_t c = first; c < end; c++) {
        memset(s->part + c * s->d, 0, (size_t)s->d * sizeof(float));
        for (int64_t r = c * s->step; r < cti_min_i64(s->rows, (c + 1) * s->step); r++) {
            grad_row(s->launch, r, s->d, s->part + c * s->d);
        }
    }
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
