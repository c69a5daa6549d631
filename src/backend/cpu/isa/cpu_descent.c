/* SPDX-License-Identifier: Apache-2.0 */
/* momentum and descend: the two halves of SGD, and of Muon around its newton_schulz. Whole vectors and what is left at the end of a block take the
 * same operations: the bits of an element do not depend on where its segment is cut. */
#include "backend/cpu/isa/cpu_kernel.h"
#include "base/pool.h"
#include "ops/ops.h"

CTI_INLINE vf load_up_to(const float *p, int64_t n)
{
    return n >= CTI_VL ? v_load(p) : v_load_part(p, n, 0);
}

CTI_INLINE void store_up_to(float *p, int64_t n, vf v)
{
    if (n >= CTI_VL) {
        v_store(p, v);
    } else {
        v_store_part(p, n, v);
    }
}

/* A tensor's elements as f32: its own memory, or a buffer that put() writes back. */
CTI_INLINE float *take(const ct_tensor *t, int64_t first, int64_t n, float *buf)
{
    float *x = v_out(t->data, t->dtype, first, buf);
    if (x == buf) {
        v_widen(buf, t->data, t->dtype, first, n);
    }
    return x;
}

typedef struct momentum_numbers {
    float coef, mu, share, decay;
    bool is_nesterov;
} momentum_numbers;

static void momentum_range(const ct_launch *launch, const momentum_numbers *a, int64_t begin, int64_t end)
{
    const ct_tensor *tg = &launch->in[1], *tp = &launch->in[2], *tm = &launch->out[0], *td = &launch->out[1];
    for (int64_t first = begin; first < end; first += CTI_BLOCK) {
        float bm[CTI_BLOCK], bg[CTI_BLOCK], bp[CTI_BLOCK], bd[CTI_BLOCK];
        const int64_t n = cti_min_i64(CTI_BLOCK, end - first);
        const float *g = v_view(tg->data, tg->dtype, first, n, bg), *p = v_view(tp->data, tp->dtype, first, n, bp);
        float *m = take(tm, first, n, bm), *d = v_out(td->data, td->dtype, first, bd);
        for (int64_t i = 0; i < n; i += CTI_VL) {
            vf x = load_up_to(g + i, n - i) * v_set1(a->coef);
            if (a->decay != 0) {
                x = v_fma(v_set1(a->decay), load_up_to(p + i, n - i), x);
            }
            x *= v_set1(a->share);
            const vf kept = v_fma(v_set1(a->mu), load_up_to(m + i, n - i), x);
            store_up_to(m + i, n - i, kept);
            store_up_to(d + i, n - i, a->is_nesterov ? v_fma(v_set1(a->mu), kept, x) : kept);
        }
        v_put(tm->data, tm->dtype, first, bm, n);
        v_put(td->data, td->dtype, first, bd, n);
    }
}

static void momentum_span(void *ctx, int64_t first, int64_t last, int thread)
{
    const ct_launch *launch = ctx;
    const ct_attrs_momentum *attrs = launch->attrs;
    const size_t size = ct_dtype_size_bytes(launch->out[1].dtype);
    (void)thread;
    memset((char *)launch->out[1].data + (size_t)first * size, 0, (size_t)(last - first) * size);
    if (*(const int32_t *)launch->in[4].data == 0) {
        return;
    }
    for (int64_t s = 0; s + 2 < attrs->segments.n; s += 3) {
        const int64_t *seg = attrs->segments.items + s; /* begin, end, group */
        const momentum_numbers a = {*(const float *)launch->in[3].data, (float)attrs->momentum.items[seg[2]], (float)attrs->share.items[seg[2]],
                                    (float)attrs->weight_decay.items[seg[2]], attrs->nesterov.items[seg[2]] != 0};
        momentum_range(launch, &a, cti_max_i64(seg[0], first), cti_min_i64(seg[1], last));
    }
}

ct_status CTI_CPU_FN(momentum)(const ct_launch *launch, ct_err *err)
{
    CT_TRY(check_floats("momentum", "input", launch->in, 3, err));
    CT_TRY(check_floats("momentum", "output", launch->out, 2, err));
    const ct_attrs_momentum *attrs = launch->attrs;
    const int64_t n = t_numel(&launch->out[0]);
    CT_TRY(cti_check_segments("momentum", &attrs->segments, n, attrs->momentum.n, err));
    cti_pool_run(n, 2 * grain_of(1), momentum_span, (void *)launch); /* only read */
    return CT_OK;
}

typedef struct descend_numbers {
    float coef, rate, keep, l2; /* keep: 1 - lr * weight_decay */
} descend_numbers;

static void descend_range(const ct_launch *launch, const descend_numbers *a, int64_t begin, int64_t end)
{
    const ct_tensor *td = &launch->in[1], *tp = &launch->out[0];
    for (int64_t first = begin; first < end; first += CTI_BLOCK) {
        float bp[CTI_BLOCK], bd[CTI_BLOCK];
        const int64_t n = cti_min_i64(CTI_BLOCK, end - first);
        const float *d = v_view(td->data, td->dtype, first, n, bd);
        float *p = take(tp, first, n, bp);
        for (int64_t i = 0; i < n; i += CTI_VL) {
            const vf old = load_up_to(p + i, n - i);
            const vf x = v_fma(v_set1(a->l2), old, load_up_to(d + i, n - i) * v_set1(a->coef));
            store_up_to(p + i, n - i, v_fma(v_set1(-a->rate), x, old * v_set1(a->keep)));
        }
        v_put(tp->data, tp->dtype, first, bp, n);
    }
}

static void descend_span(void *ctx, int64_t first, int64_t last, int thread)
{
    const ct_launch *launch = ctx;
    const ct_attrs_descend *attrs = launch->attrs;
    const bool has_coef = launch->n_in > 4 && !t_absent(&launch->in[4]);
    (void)thread;
    for (int64_t s = 0; s + 2 < attrs->segments.n; s += 3) {
        const int64_t *seg = attrs->segments.items + s;
        const double lr = ((const double *)launch->in[2].data)[seg[2]];
        const descend_numbers a = {has_coef ? *(const float *)launch->in[4].data : 1.0F, (float)lr,
                                   (float)(1.0 - lr * attrs->weight_decay.items[seg[2]]), (float)attrs->l2.items[seg[2]]};
        descend_range(launch, &a, cti_max_i64(seg[0], first), cti_min_i64(seg[1], last));
    }
}

ct_status CTI_CPU_FN(descend)(const ct_launch *launch, ct_err *err)
{
    CT_TRY(check_floats("descend", "input", launch->in, 2, err));
    const ct_attrs_descend *attrs = launch->attrs;
    const int64_t n = t_numel(&launch->out[0]);
    if (*(const int32_t *)launch->in[3].data == 0) {
        return CT_OK;
    }
    CT_TRY(cti_check_segments("descend", &attrs->segments, n, cti_min_i64(attrs->weight_decay.n, t_numel(&launch->in[2])), err));
    cti_pool_run(n, 2 * grain_of(1), descend_span, (void *)launch); /* only read */
    return CT_OK;
}
