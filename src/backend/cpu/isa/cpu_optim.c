/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the optimizer program: sumsq, add_n, clip_coef, adamw. */
#include <inttypes.h>
#include <math.h>

#include "backend/cpu/isa/cpu_vector.h"
#include "base/pool.h"

enum { SUM_BLOCK = 4096 };

/* Blocks do not cross the border of a leaf. */
static int64_t blocks_of_leaf(const ct_launch *launch)
{
    return cti_ceil_div(t_numel(&launch->in[0]) / ((const ct_attrs_sumsq *)launch->attrs)->leaves, SUM_BLOCK);
}

size_t CTI_CPU_WORKSPACE(sumsq)(const ct_launch *shapes)
{
    return (size_t)(((const ct_attrs_sumsq *)shapes->attrs)->leaves * blocks_of_leaf(shapes)) * sizeof(double);
}

/* Squares of a vector's elements in f64, added to the lanes of two sums. */
CTI_INLINE void add_squares(vf v, vd acc[2])
{
    vf_half half[2];
    memcpy(half, &v, sizeof v);
    CTI_UNROLL
    for (int k = 0; k < 2; k++) {
        const vd d = __builtin_convertvector(half[k], vd);
        acc[k] += d * d;
    }
}

/* Both halves of a block at once: two streams are read faster than one. Then what is left, lanes and all in a fixed order. */
CTI_INLINE void block_sumsq(const void *x, int64_t first, int64_t n, double *out, const int how)
{
    const int64_t half = n / 2 - n / 2 % (2 * CTI_VL);
    vd acc[8] = {{0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}};
    double sum = 0;
    for (int64_t i = first; i < first + half; i += 2 * CTI_VL) {
        add_squares(v_get(x, i, CTI_VL, how), acc);
        add_squares(v_get(x, i + CTI_VL, CTI_VL, how), acc + 2);
        add_squares(v_get(x, i + half, CTI_VL, how), acc + 4);
        add_squares(v_get(x, i + half + CTI_VL, CTI_VL, how), acc + 6);
    }
    FOR_VECTORS(first + 2 * half, first + n, i, k, add_squares(v_get(x, i, k, how), acc);)
    const vd all = ((acc[0] + acc[1]) + (acc[2] + acc[3])) + ((acc[4] + acc[5]) + (acc[6] + acc[7]));
    for (int i = 0; i < CTI_VL / 2; i++) {
        sum += all[i];
    }
    *out = sum;
}

typedef struct sum_run {
    const ct_tensor *x;
    double *part; /* of every block */
    int64_t leaf, blocks; /* elements and blocks of a leaf */
} sum_run;

static void sum_blocks(void *ctx, int64_t first, int64_t end, int thread)
{
    const sum_run *r = ctx;
    (void)thread;
    for (int64_t b = first; b < end; b++) {
        const int64_t in_leaf = b % r->blocks * SUM_BLOCK;
        const int64_t at = b / r->blocks * r->leaf + in_leaf, count = cti_min_i64(SUM_BLOCK, r->leaf - in_leaf);
        if (r->x->dtype == CT_DTYPE_BF16) {
            block_sumsq(r->x->data, at, count, &r->part[b], CTI_IS_BF16);
        } else {
            block_sumsq(r->x->data, at, count, &r->part[b], 0);
        }
    }
}

/* Leaves [first, first + n): blocks in order, leaves by halves. */
static double sum_leaves(const sum_run *r, int64_t first, int64_t n)
{
    if (n > 1) {
        return sum_leaves(r, first, n / 2) + sum_leaves(r, first + n / 2, n - n / 2);
    }
    double sum = 0;
    for (int64_t b = first * r->blocks; b < (first + 1) * r->blocks; b++) {
        sum += r->part[b];
    }
    return sum;
}

ct_status CTI_CPU_FN(sumsq)(const ct_launch *launch, ct_err *err)
{
    CT_TRY(check_floats("sumsq", "input", launch->in, 1, err));
    CT_TRY(check_scratch("sumsq", launch, CTI_CPU_WORKSPACE(sumsq)(launch), err));
    const int64_t leaves = ((const ct_attrs_sumsq *)launch->attrs)->leaves;
    sum_run r = {&launch->in[0], launch->workspace, t_numel(&launch->in[0]) / leaves, blocks_of_leaf(launch)};
    cti_pool_run(leaves * r.blocks, 2, sum_blocks, &r);
    *(double *)launch->out[0].data = sum_leaves(&r, 0, leaves);
    return CT_OK;
}

ct_status CTI_CPU_FN(add_n)(const ct_launch *launch, ct_err *err)
{
    (void)err;
    double sum = 0;
    bool has_any = false;
    for (int32_t k = 0; k < launch->n_in; k++) {
        const double *a = launch->in[k].data;
        const int64_t n = t_numel(&launch->in[k]);
        for (int64_t i = 0; i < n; i++) {
            sum = has_any ? sum + a[i] : a[i]; /* so that one -0 stays what it is */
            has_any = true;
        }
    }
    *(double *)launch->out[0].data = sum;
    return CT_OK;
}

ct_status CTI_CPU_FN(clip_coef)(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const double max_norm = ((const ct_attrs_clip *)launch->attrs)->max_norm;
    const double norm = sqrt(*(const double *)launch->in[0].data), loss = *(const double *)launch->in[1].data;
    *(float *)launch->out[0].data = (float)fmin(1.0, max_norm / (norm + 1e-6));
    *(double *)launch->out[1].data = norm;
    *(int32_t *)launch->out[2].data = isfinite(norm) && isfinite(loss);
    return CT_OK;
}

typedef struct adamw_numbers {
    float coef, beta2, eps;
    float rest1, rest2; /* 1 - beta1, 1 - beta2, rounded once */
    float decay;     /* 1 - lr * weight_decay */
    float step_size; /* lr / (1 - beta1^t) */
    float root_bias; /* sqrt(1 - beta2^t) */
    float l2;        /* times the parameter, added to the gradient */
} adamw_numbers;

/* Loshchilov and Hutter 2019, arXiv 1711.05101, algorithm 2, with the bias corrections of Kingma and Ba 2015 in PyTorch's order. */
CTI_INLINE void adamw_vector(const adamw_numbers *a, vf *p, vf g, vf *m, vf *v)
{
    g *= v_set1(a->coef);
    if (a->l2 != 0) {
        g = v_fma(v_set1(a->l2), *p, g);
    }
    *m = *m + v_set1(a->rest1) * (g - *m);
    *v = v_set1(a->beta2) * *v + v_set1(a->rest2) * g * g;
    vf denom = v_sqrt(*v) / v_set1(a->root_bias) + v_set1(a->eps);
    *p = *p * v_set1(a->decay) - v_set1(a->step_size) * (*m / denom);
}

static void adamw_range(const ct_launch *launch, const adamw_numbers *a, int64_t begin, int64_t end)
{
    const ct_tensor *tg = &launch->in[1];
    const ct_tensor *tp = &launch->out[0], *tm = &launch->out[1], *tv = &launch->out[2];
    for (int64_t first = begin; first < end; first += CTI_BLOCK) {
        float bp[CTI_BLOCK], bg[CTI_BLOCK], bm[CTI_BLOCK], bv[CTI_BLOCK];
        const int64_t n = cti_min_i64(CTI_BLOCK, end - first);
        const float *g = v_view(tg->data, tg->dtype, first, n, bg);
        const ct_tensor *t[3] = {tp, tm, tv};
        float *buf[3] = {bp, bm, bv}, *x[3];
        for (int i = 0; i < 3; i++) {
            x[i] = v_out(t[i]->data, t[i]->dtype, first, buf[i]);
            if (x[i] == buf[i]) {
                v_widen(x[i], t[i]->data, t[i]->dtype, first, n);
            }
        }
        for (int64_t i = 0; i < n; i += CTI_VL) {
            const int64_t left = n - i;
            const bool whole = left >= CTI_VL;
            vf p = whole ? v_load(x[0] + i) : v_load_part(x[0] + i, left, 0);
            vf m = whole ? v_load(x[1] + i) : v_load_part(x[1] + i, left, 0);
            vf v = whole ? v_load(x[2] + i) : v_load_part(x[2] + i, left, 0);
            adamw_vector(a, &p, whole ? v_load(g + i) : v_load_part(g + i, left, 0), &m, &v);
            if (whole) {
                v_store(x[0] + i, p);
                v_store(x[1] + i, m);
                v_store(x[2] + i, v);
            } else {
                v_store_part(x[0] + i, left, p);
                v_store_part(x[1] + i, left, m);
                v_store_part(x[2] + i, left, v);
            }
        }
        for (int i = 0; i < 3; i++) {
            v_put(t[i]->data, t[i]->dtype, first, buf[i], n);
        }
    }
}

static adamw_numbers adamw_of_group(const ct_launch *launch, int64_t group)
{
    const ct_attrs_adamw *attrs = launch->attrs;
    const double lr = ((const double *)launch->in[4].data)[group];
    const double step = (double)*(const int64_t *)launch->in[5].data;
    const double beta1 = attrs->beta1.items[group], beta2 = attrs->beta2.items[group];
    return (adamw_numbers){
        .coef = *(const float *)launch->in[6].data,
        .beta2 = (float)beta2,
        .rest1 = (float)(1.0 - beta1),
        .rest2 = (float)(1.0 - beta2),
        .eps = (float)attrs->eps.items[group],
        .decay = (float)(1.0 - lr * attrs->weight_decay.items[group]),
        .step_size = (float)(lr / (1.0 - pow(beta1, step))),
        .root_bias = (float)sqrt(1.0 - pow(beta2, step)),
        .l2 = attrs->l2.n > 0 ? (float)attrs->l2.items[group] : 0.0F,
    };
}

static ct_status check_adamw(const ct_launch *launch, ct_err *err)
{
    const ct_attrs_adamw *attrs = launch->attrs;
    const int64_t n = t_numel(&launch->in[0]), step = *(const int64_t *)launch->in[5].data;
    const int64_t of_all = cti_min_i64(cti_min_i64(attrs->beta1.n, attrs->beta2.n),
                                       cti_min_i64(cti_min_i64(attrs->eps.n, attrs->weight_decay.n), t_numel(&launch->in[4])));
    const int64_t groups = attrs->l2.n > 0 ? cti_min_i64(of_all, attrs->l2.n) : of_all;
    if (step < 1) {
        return CT_FAIL(err, CT_ERR_RANGE, "adamw: step is %" PRId64 ", steps count from 1", step);
    }
    for (int64_t s = 0; s + 2 < attrs->segments.n; s += 3) {
        const int64_t *seg = attrs->segments.items + s;
        if (seg[0] < 0 || seg[1] < seg[0] || seg[1] > n || seg[2] < 0 || seg[2] >= groups) {
            return CT_FAIL(err, CT_ERR_RANGE,
                           "adamw: segment %" PRId64 " is [%" PRId64 ", %" PRId64 ") of group %" PRId64 ", there are %" PRId64
                           " elements and %" PRId64 " groups", s / 3, seg[0], seg[1], seg[2], n, groups);
        }
    }
    return CT_OK;
}

static void adamw_span(void *ctx, int64_t first, int64_t last, int thread)
{
    const ct_launch *launch = ctx;
    const ct_attrs_adamw *attrs = launch->attrs;
    (void)thread;
    for (int64_t s = 0; s + 2 < attrs->segments.n; s += 3) {
        const int64_t *seg = attrs->segments.items + s; /* begin, end, group */
        const int64_t begin = cti_max_i64(seg[0], first), end = cti_min_i64(seg[1], last);
        if (begin < end) {
            adamw_numbers a = adamw_of_group(launch, seg[2]);
            adamw_range(launch, &a, begin, end);
        }
    }
}

ct_status CTI_CPU_FN(adamw)(const ct_launch *launch, ct_err *err)
{
    CT_TRY(check_floats("adamw", "input", launch->in, 4, err));
    if (*(const int32_t *)launch->in[7].data == 0) {
        return CT_OK;
    }
    CT_TRY(check_adamw(launch, err));
    cti_pool_run(t_numel(&launch->out[0]), 2 * grain_of(1), adamw_span, (void *)launch); /* only read */
    return CT_OK;
}
