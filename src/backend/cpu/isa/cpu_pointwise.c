/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise kernels: add, mul, scale, cast, accumulate, silu_mul and swiglu and their gradients. In f32, rounded once; outputs may be
 * written over inputs. */
#include "backend/cpu/isa/cpu_vector.h"
#include "base/pool.h"

/* Blocks [at, at + n) of [first, end). */
#define FOR_BLOCKS(first, end, at, n)                                                                                \
    for (int64_t at = (first), n; (n = cti_min_i64(CTI_BLOCK, (end) - at)) > 0; at += n)

/* Turns of grain_of(1) elements begin at whole vectors, also of what is written past the caches. */
static ct_status run_spans(const ct_launch *launch, cti_pool_fn spans)
{
    cti_pool_run(t_numel(&launch->out[0]), grain_of(1), spans, (void *)launch); /* only read */
    return CT_OK;
}

CTI_INLINE void add_span(const ct_launch *l, int64_t first, int64_t end, const int how)
{
    const void *a = l->in[0].data, *b = l->in[1].data;
    void *y = l->out[0].data;
    FOR_VECTORS(first, end, i, n, v_set(y, i, n, v_get(a, i, n, how) + v_get(b, i, n, how), how);)
}

static void add_spans(void *ctx, int64_t first, int64_t end, int thread)
{
    (void)thread;
    CTI_HOW(how_of(ctx, 0, CTI_VL), add_span, ctx, first, end);
    v_fence();
}

ct_status CTI_CPU_FN(add)(const ct_launch *launch, ct_err *err)
{
    CT_TRY(check_floats("add", "input", launch->in, 2, err));
    return run_spans(launch, add_spans);
}

CTI_INLINE void mul_span(const ct_launch *l, int64_t first, int64_t end, const int how)
{
    const void *a = l->in[0].data, *b = l->in[1].data;
    void *y = l->out[0].data;
    FOR_VECTORS(first, end, i, n, v_set(y, i, n, v_get(a, i, n, how) * v_get(b, i, n, how), how);)
}

static void mul_spans(void *ctx, int64_t first, int64_t end, int thread)
{
    (void)thread;
    CTI_HOW(how_of(ctx, 0, CTI_VL), mul_span, ctx, first, end);
    v_fence();
}

ct_status CTI_CPU_FN(mul)(const ct_launch *launch, ct_err *err)
{
    CT_TRY(check_floats("mul", "input", launch->in, 2, err));
    return run_spans(launch, mul_spans);
}

CTI_INLINE void scale_span(const ct_launch *l, int64_t first, int64_t end, const int how)
{
    const vf alpha = v_set1((float)((const ct_attrs_scale *)l->attrs)->alpha);
    const void *a = l->in[0].data;
    void *y = l->out[0].data;
    FOR_VECTORS(first, end, i, n, v_set(y, i, n, alpha * v_get(a, i, n, how), how);)
}

static void scale_spans(void *ctx, int64_t first, int64_t end, int thread)
{
    (void)thread;
    CTI_HOW(how_of(ctx, 0, CTI_VL), scale_span, ctx, first, end);
    v_fence();
}

ct_status CTI_CPU_FN(scale)(const ct_launch *launch, ct_err *err)
{
    CT_TRY(check_floats("scale", "input", launch->in, 1, err));
    return run_spans(launch, scale_spans);
}

/* Element i of any dtype as a double, and back: for the dtypes that no step casts between. */
static double load_any(const ct_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case CT_DTYPE_F32:
        return (double)((const float *)t->data)[i];
    case CT_DTYPE_BF16:
        return (double)cti_bf16_to_f32(((const uint16_t *)t->data)[i]);
    case CT_DTYPE_F16:
        return (double)cti_f16_to_f32(((const uint16_t *)t->data)[i]);
    case CT_DTYPE_F64:
        return ((const double *)t->data)[i];
    case CT_DTYPE_I32:
        return (double)((const int32_t *)t->data)[i];
    case CT_DTYPE_I64:
        return (double)((const int64_t *)t->data)[i];
    case CT_DTYPE_U8:
        return (double)((const uint8_t *)t->data)[i];
    case CT_DTYPE_COUNT:
        break;
    }
    return 0;
}
static void store_float(const ct_tensor *t, int64_t i, double x)
{
    if (t->dtype == CT_DTYPE_F64) {
        ((double *)t->data)[i] = x;
    } else if (t->dtype == CT_DTYPE_F32) {
        ((float *)t->data)[i] = (float)x;
    } else {
        ((uint16_t *)t->data)[i] = t->dtype == CT_DTYPE_BF16 ? cti_f32_to_bf16((float)x) : cti_f32_to_f16((float)x);
    }
}

/* Between f32 and bf16. */
CTI_INLINE void cast_span(const ct_launch *l, int64_t first, int64_t end, const int how)
{
    const void *a = l->in[0].data;
    void *y = l->out[0].data;
    FOR_VECTORS(first, end, i, n, v_set(y, i, n, v_get(a, i, n, how & CTI_IS_BF16 ? 0 : CTI_IS_BF16), how);)
}

static void cast_spans(void *ctx, int64_t first, int64_t end, int thread)
{
    (void)thread;
    CTI_HOW(how_of(ctx, 0, CTI_VL), cast_span, ctx, first, end);
    v_fence();
}

ct_status CTI_CPU_FN(cast)(const ct_launch *launch, ct_err *err)
{
    const ct_tensor *a = &launch->in[0], *y = &launch->out[0];
    const int64_t total = t_numel(y);
    if (a->dtype == y->dtype) {
        memmove(y->data, a->data, (size_t)total * ct_dtype_size_bytes(y->dtype));
        return CT_OK;
    }
    if (!ct_dtype_is_float(y->dtype)) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "cast: from %s to %s: only casts to a float dtype are defined",
                       ct_dtype_name(a->dtype), ct_dtype_name(y->dtype));
    }
    const uint32_t fast = CT_BIT(F32) | CT_BIT(BF16);
    if (!(fast & 1u << a->dtype) || !(fast & 1u << y->dtype)) {
        for (int64_t i = 0; i < total; i++) {
            store_float(y, i, load_any(a, i));
        }
        return CT_OK;
    }
    return run_spans(launch, cast_spans);
}

static void accumulate_spans(void *ctx, int64_t first, int64_t end, int thread)
{
    const ct_launch *launch = ctx;
    const ct_tensor *x = &launch->in[1], *acc = &launch->out[0];
    const bool is_first = *(const int32_t *)launch->in[2].data == 1;
    (void)thread;
    FOR_BLOCKS(first, end, at, n) {
        float bx[CTI_BLOCK], bacc[CTI_BLOCK];
        const float *px = bx;
        if (x->dtype == CT_DTYPE_F32 || x->dtype == CT_DTYPE_BF16) {
            px = v_view(x->data, x->dtype, at, n, bx);
        } else {
            for (int64_t i = 0; i < n; i++) {
                bx[i] = (float)load_any(x, at + i);
            }
        }
        if (is_first) {
            v_narrow(acc->data, acc->dtype, at, px, n);
        } else {
            /* x is cast to acc's dtype before it is added */
            if (acc->dtype == CT_DTYPE_BF16 && x->dtype != CT_DTYPE_BF16) {
                for (int64_t i = 0; i < n; i++) {
                    bx[i] = cti_bf16_to_f32(cti_f32_to_bf16(px[i]));
                }
                px = bx;
            }
            float *pacc = v_out(acc->data, acc->dtype, at, bacc);
            if (pacc == bacc) {
                v_widen(bacc, acc->data, acc->dtype, at, n);
            }
            for (int64_t i = 0; i < n; i++) {
                pacc[i] = pacc[i] + px[i];
            }
            v_put(acc->data, acc->dtype, at, bacc, n);
        }
    }
}

ct_status CTI_CPU_FN(accumulate)(const ct_launch *launch, ct_err *err)
{
    if (launch->out[0].dtype == CT_DTYPE_F64) { /* scalars: the loss */
        double *sum = launch->out[0].data;
        const bool starts = *(const int32_t *)launch->in[2].data == 1;
        for (int64_t i = 0; i < t_numel(&launch->out[0]); i++) {
            const double x = load_any(&launch->in[1], i);
            sum[i] = starts ? x : sum[i] + x;
        }
        return CT_OK;
    }
    CT_TRY(check_floats("accumulate", "input", launch->in, 1, err));
    return run_spans(launch, accumulate_spans);
}

/* 1 / (1 + exp(-g)); 0 below -87.3, so that g times it is, however large g. */
CTI_INLINE vf sigmoid(vf g)
{
    const vf one = v_set1(1.0f);
    return (vf)((vi)(one / (one + v_exp(-g))) & ~(vi)(g < v_set1(-CTI_EXP_MAX)));
}

CTI_INLINE void silu_mul_span(const ct_launch *l, int64_t first, int64_t end, const int how)
{
    const void *g = l->in[0].data, *u = l->in[1].data;
    void *y = l->out[0].data;
    FOR_VECTORS(first, end, i, n, {
        v_ahead(g, i, how);
        v_ahead(u, i, how);
        const vf vg = v_get(g, i, n, how);
        v_set(y, i, n, vg * sigmoid(vg) * v_get(u, i, n, how), how);
    })
}

static void silu_mul_spans(void *ctx, int64_t first, int64_t end, int thread)
{
    (void)thread;
    CTI_HOW(how_of(ctx, 0, CTI_VL), silu_mul_span, ctx, first, end);
    v_fence();
}

ct_status CTI_CPU_FN(silu_mul)(const ct_launch *launch, ct_err *err)
{
    CT_TRY(check_floats("silu_mul", "input", launch->in, 2, err));
    return run_spans(launch, silu_mul_spans);
}

/* d(g s(g) u): dg = dy u s (1 + g (1 - s)), du = dy g s, with s = sigmoid(g). */
CTI_INLINE void silu_grad(vf dy, vf g, vf u, vf *dg, vf *du)
{
    const vf one = v_set1(1.0f);
    vf s = sigmoid(g);
    *du = dy * g * s;
    *dg = dy * u * s * (one + g * (one - s));
}

CTI_INLINE void silu_mul_grad_span(const ct_launch *l, int64_t first, int64_t end, const int how)
{
    const void *dy = l->in[0].data, *g = l->in[1].data, *u = l->in[2].data;
    void *dg = l->out[0].data, *du = l->out[1].data;
    int64_t at = first;
    for (; at + 2 * CTI_VL <= end; at += 2 * CTI_VL) { /* by two, so that a cache line of each result is written at once */
        vf vg[2], vu_[2];
        v_ahead(dy, at, how);
        v_ahead(g, at, how);
        v_ahead(u, at, how);
        for (int k = 0; k < 2; k++) {
            const int64_t i = at + k * CTI_VL;
            silu_grad(v_get(dy, i, CTI_VL, how), v_get(g, i, CTI_VL, how), v_get(u, i, CTI_VL, how), &vg[k], &vu_[k]);
        }
        v_set(dg, at, CTI_VL, vg[0], how);
        v_set(dg, at + CTI_VL, CTI_VL, vg[1], how);
        v_set(du, at, CTI_VL, vu_[0], how);
        v_set(du, at + CTI_VL, CTI_VL, vu_[1], how);
    }
    FOR_VECTORS(at, end, i, n, {
        vf vg, vu_;
        silu_grad(v_get(dy, i, n, how), v_get(g, i, n, how), v_get(u, i, n, how), &vg, &vu_);
        v_set(dg, i, n, vg, how);
        v_set(du, i, n, vu_, how);
    })
}

static void silu_mul_grad_spans(void *ctx, int64_t first, int64_t end, int thread)
{
    (void)thread;
    CTI_HOW(how_of(ctx, 0, CTI_VL) & how_of(ctx, 1, CTI_VL), silu_mul_grad_span, ctx, first, end);
    v_fence();
}

ct_status CTI_CPU_FN(silu_mul_grad)(const ct_launch *launch, ct_err *err)
{
    CT_TRY(check_floats("silu_mul_grad", "input", launch->in, 3, err));
    return run_spans(launch, silu_mul_grad_spans);
}

/* Columns [j0, j0 + n) of rows [first, end) of y [., f], from the halves of the rows of gu; is_far: gu comes from memory. */
CTI_INLINE void swiglu_part(const void *gu, void *y, int64_t f, int64_t first, int64_t end, int64_t j0, int64_t n_cols, const bool is_far, const int how)
{
    for (int64_t r = first; r < end; r++) {
        FOR_VECTORS(j0, j0 + n_cols, i, n, {
            if (is_far) {
                v_ahead(gu, 2 * r * f + i, how);
                v_ahead(gu, (2 * r + 1) * f + i, how);
            }
            const vf g = v_get(gu, 2 * r * f + i, n, how);
            v_set(y, r * f + i, n, g * sigmoid(g) * v_get(gu, (2 * r + 1) * f + i, n, how), how);
        })
    }
}

void CTI_CPU_FN(swiglu_tile)(const ct_tensor *gu, const ct_tensor *y, int64_t i0, int64_t m, int64_t j0, int64_t n)
{
    if (y->dtype == CT_DTYPE_BF16) {
        swiglu_part(gu->data, y->data, t_last(y), i0, i0 + m, j0, n, false, CTI_IS_BF16);
    } else {
        swiglu_part(gu->data, y->data, t_last(y), i0, i0 + m, j0, n, false, 0);
    }
}

CTI_INLINE void swiglu_span(const ct_launch *l, int64_t first, int64_t end, const int how)
{
    const int64_t f = t_last(&l->out[0]);
    swiglu_part(l->in[0].data, l->out[0].data, f, first, end, 0, f, true, how);
}

static void swiglu_rows(void *ctx, int64_t first, int64_t end, int thread)
{
    const ct_launch *launch = ctx;
    (void)thread;
    CTI_HOW(how_of(launch, 0, t_last(&launch->out[0])), swiglu_span, launch, first, end);
    v_fence();
}

ct_status CTI_CPU_FN(swiglu)(const ct_launch *launch, ct_err *err)
{
    CT_TRY(check_floats("swiglu", "input", launch->in, 1, err));
    cti_pool_run(t_rows(&launch->out[0]), grain_of(t_last(&launch->in[0])), swiglu_rows, (void *)launch); /* only read */
    return CT_OK;
}

/* Rows of dgu, which may be gu. */
CTI_INLINE void swiglu_grad_span(const ct_launch *l, int64_t first, int64_t end, const int how)
{
    const int64_t f = t_last(&l->in[0]);
    const void *dy = l->in[0].data, *gu = l->in[1].data;
    void *dgu = l->out[0].data;
    for (int64_t r = first; r < end; r++) {
        const int64_t at_g = 2 * r * f, at_u = at_g + f;
        FOR_VECTORS(0, f, i, n, {
            vf dg, du;
            v_ahead(dy, r * f + i, how);
            v_ahead(gu, at_g + i, how);
            v_ahead(gu, at_u + i, how);
            silu_grad(v_get(dy, r * f + i, n, how), v_get(gu, at_g + i, n, how), v_get(gu, at_u + i, n, how), &dg, &du);
            v_set(dgu, at_g + i, n, dg, how);
            v_set(dgu, at_u + i, n, du, how);
        })
    }
}

static void swiglu_grad_rows(void *ctx, int64_t first, int64_t end, int thread)
{
    const ct_launch *launch = ctx;
    (void)thread;
    CTI_HOW(how_of(launch, 0, t_last(&launch->in[0])), swiglu_grad_span, launch, first, end);
    v_fence();
}

ct_status CTI_CPU_FN(swiglu_grad)(const ct_launch *launch, ct_err *err)
{
    CT_TRY(check_floats("swiglu_grad", "input", launch->in, 2, err));
    cti_pool_run(t_rows(&launch->in[0]), grain_of(t_last(&launch->out[0])), swiglu_grad_rows, (void *)launch); /* only read */
    return CT_OK;
}
