/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise kernels: add, mul, scale, cast, accumulate, silu_mul and swiglu and their gradients. In f32, rounded once; outputs may be
 * written over inputs. */
#include "backend/cpu/isa/cpu_kernel.h"
#include "backend/cpu/isa/cpu_vector.h"
#include "base/pool.h"

/* Blocks [at, at + n) of [first, end). */
#define FOR_BLOCKS(first, end, at, n)                                                                                \
    for (int64_t at = (first), n; (n = cti_min_i64(CTI_BLOCK, (end) - at)) > 0; at += n)

static ct_status run_spans(const ct_launch *launch, cti_pool_fn spans)
{
    cti_pool_run(t_numel(&launch->out[0]), grain_of(1), spans, (void *)launch); /* only read */
    return CT_OK;
}

static void add_spans(void *ctx, int64_t first, int64_t end, int thread)
{
    const ct_launch *launch = ctx;
    const ct_tensor *a = &launch->in[0], *b = &launch->in[1], *y = &launch->out[0];
    (void)thread;
    FOR_BLOCKS(first, end, at, n) {
        float ba[CTI_BLOCK], bb[CTI_BLOCK], by[CTI_BLOCK];
        const float *pa = v_view(a->data, a->dtype, at, n, ba);
        const float *pb = v_view(b->data, b->dtype, at, n, bb);
        float *py = v_out(y->data, y->dtype, at, by);
        for (int64_t i = 0; i < n; i++) {
            py[i] = pa[i] + pb[i];
        }
        v_put(y->data, y->dtype, at, by, n);
    }
}

ct_status CTI_CPU_FN(add)(const ct_launch *launch, ct_err *err)
{
    CT_TRY(check_floats("add", "input", launch->in, 2, err));
    return run_spans(launch, add_spans);
}

static void mul_spans(void *ctx, int64_t first, int64_t end, int thread)
{
    const ct_launch *launch = ctx;
    const ct_tensor *a = &launch->in[0], *b = &launch->in[1], *y = &launch->out[0];
    (void)thread;
    FOR_BLOCKS(first, end, at, n) {
        float ba[CTI_BLOCK], bb[CTI_BLOCK], by[CTI_BLOCK];
        const float *pa = v_view(a->data, a->dtype, at, n, ba);
        const float *pb = v_view(b->data, b->dtype, at, n, bb);
        float *py = v_out(y->data, y->dtype, at, by);
        for (int64_t i = 0; i < n; i++) {
            py[i] = pa[i] * pb[i];
        }
        v_put(y->data, y->dtype, at, by, n);
    }
}

ct_status CTI_CPU_FN(mul)(const ct_launch *launch, ct_err *err)
{
    CT_TRY(check_floats("mul", "input", launch->in, 2, err));
    return run_spans(launch, mul_spans);
}

static void scale_spans(void *ctx, int64_t first, int64_t end, int thread)
{
    const ct_launch *launch = ctx;
    const ct_tensor *a = &launch->in[0], *y = &launch->out[0];
    const float alpha = (float)((const ct_attrs_scale *)launch->attrs)->alpha;
    (void)thread;
    FOR_BLOCKS(first, end, at, n) {
        float ba[CTI_BLOCK], by[CTI_BLOCK];
        const float *pa = v_view(a->data, a->dtype, at, n, ba);
        float *py = v_out(y->data, y->dtype, at, by);
        for (int64_t i = 0; i < n; i++) {
            py[i] = alpha * pa[i];
        }
        v_put(y->data, y->dtype, at, by, n);
    }
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

static void cast_spans(void *ctx, int64_t first, int64_t end, int thread)
{
    const ct_launch *launch = ctx;
    const ct_tensor *a = &launch->in[0], *y = &launch->out[0];
    (void)thread;
    FOR_BLOCKS(first, end, at, n) {
        float buf[CTI_BLOCK];
        v_narrow(y->data, y->dtype, at, v_view(a->data, a->dtype, at, n, buf), n);
    }
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

/* 1 / (1 + exp(-g)), from exp(-|g|), which cannot overflow. */
CTI_INLINE vf sigmoid(vf g)
{
    const vf one = v_set1(1.0f);
    const vf e = v_exp_neg((vf)((vi)g | INT32_MIN));
    return v_select((vi)(g < v_set1(0.0f)), e, one) / (one + e);
}

static void silu_mul_spans(void *ctx, int64_t first, int64_t end, int thread)
{
    const ct_launch *launch = ctx;
    const ct_tensor *g = &launch->in[0], *u = &launch->in[1], *y = &launch->out[0];
    (void)thread;
    FOR_BLOCKS(first, end, at, n) {
        float bg[CTI_BLOCK], bu[CTI_BLOCK], by[CTI_BLOCK];
        const float *pg = v_view(g->data, g->dtype, at, n, bg);
        const float *pu = v_view(u->data, u->dtype, at, n, bu);
        float *py = v_out(y->data, y->dtype, at, by);
        int64_t i = 0;
        for (; i + CTI_VL <= n; i += CTI_VL) {
            vf vg = v_load(pg + i);
            v_store(py + i, vg * sigmoid(vg) * v_load(pu + i));
        }
        if (i < n) {
            vf vg = v_load_part(pg + i, n - i, 0);
            v_store_part(py + i, n - i, vg * sigmoid(vg) * v_load_part(pu + i, n - i, 0));
        }
        v_put(y->data, y->dtype, at, by, n);
    }
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

static void silu_mul_grad_spans(void *ctx, int64_t first, int64_t end, int thread)
{
    const ct_launch *launch = ctx;
    const ct_tensor *dy = &launch->in[0], *g = &launch->in[1], *u = &launch->in[2];
    const ct_tensor *dg = &launch->out[0], *du = &launch->out[1];
    (void)thread;
    FOR_BLOCKS(first, end, at, n) {
        float bd[CTI_BLOCK], bg[CTI_BLOCK], bu[CTI_BLOCK], bdg[CTI_BLOCK], bdu[CTI_BLOCK];
        const float *pd = v_view(dy->data, dy->dtype, at, n, bd);
        const float *pg = v_view(g->data, g->dtype, at, n, bg);
        const float *pu = v_view(u->data, u->dtype, at, n, bu);
        float *pdg = v_out(dg->data, dg->dtype, at, bdg);
        float *pdu = v_out(du->data, du->dtype, at, bdu);
        vf vg, vu_;
        int64_t i = 0;
        for (; i + CTI_VL <= n; i += CTI_VL) {
            silu_grad(v_load(pd + i), v_load(pg + i), v_load(pu + i), &vg, &vu_);
            v_store(pdg + i, vg);
            v_store(pdu + i, vu_);
        }
        if (i < n) {
            silu_grad(v_load_part(pd + i, n - i, 0), v_load_part(pg + i, n - i, 0), v_load_part(pu + i, n - i, 0), &vg, &vu_);
            v_store_part(pdg + i, n - i, vg);
            v_store_part(pdu + i, n - i, vu_);
        }
        v_put(dg->data, dg->dtype, at, bdg, n);
        v_put(du->data, du->dtype, at, bdu, n);
    }
}

ct_status CTI_CPU_FN(silu_mul_grad)(const ct_launch *launch, ct_err *err)
{
    CT_TRY(check_floats("silu_mul_grad", "input", launch->in, 3, err));
    return run_spans(launch, silu_mul_grad_spans);
}

/* Row r of y, from the halves of row r of gu. */
CTI_INLINE void swiglu_row(const void *gu, void *y, int64_t r, int64_t f, const bool is_bf16)
{
    const int64_t g = 2 * r * f, u = g + f, to = r * f;
    int64_t i = 0;
    for (; i + CTI_VL <= f; i += CTI_VL) {
        const vf vg = v_fetch(gu, g + i, is_bf16);
        v_place(y, to + i, vg * sigmoid(vg) * v_fetch(gu, u + i, is_bf16), is_bf16);
    }
    if (i < f) {
        const vf vg = v_fetch_part(gu, g + i, f - i, is_bf16);
        v_place_part(y, to + i, f - i, vg * sigmoid(vg) * v_fetch_part(gu, u + i, f - i, is_bf16), is_bf16);
    }
}

static void swiglu_rows(void *ctx, int64_t first, int64_t end, int thread)
{
    const ct_launch *launch = ctx;
    const ct_tensor *gu = &launch->in[0], *y = &launch->out[0];
    (void)thread;
    for (int64_t r = first; r < end; r++) {
        if (y->dtype == CT_DTYPE_BF16) {
            swiglu_row(gu->data, y->data, r, t_last(y), true);
        } else {
            swiglu_row(gu->data, y->data, r, t_last(y), false);
        }
    }
}

ct_status CTI_CPU_FN(swiglu)(const ct_launch *launch, ct_err *err)
{
    CT_TRY(check_floats("swiglu", "input", launch->in, 1, err));
    cti_pool_run(t_rows(&launch->out[0]), grain_of(t_last(&launch->in[0])), swiglu_rows, (void *)launch);
    return CT_OK;
}

/* Row r of dgu, which may be gu. */
CTI_INLINE void swiglu_grad_row(const void *dy, const void *gu, void *dgu, int64_t r, int64_t f, const bool is_bf16)
{
    const int64_t from = r * f, g = 2 * from, u = g + f;
    vf dg, du;
    int64_t i = 0;
    for (; i + CTI_VL <= f; i += CTI_VL) {
        silu_grad(v_fetch(dy, from + i, is_bf16), v_fetch(gu, g + i, is_bf16), v_fetch(gu, u + i, is_bf16), &dg, &du);
        v_place(dgu, g + i, dg, is_bf16);
        v_place(dgu, u + i, du, is_bf16);
    }
    if (i < f) {
        const int64_t n = f - i;
        silu_grad(v_fetch_part(dy, from + i, n, is_bf16), v_fetch_part(gu, g + i, n, is_bf16), v_fetch_part(gu, u + i, n, is_bf16),
                  &dg, &du);
        v_place_part(dgu, g + i, n, dg, is_bf16);
        v_place_part(dgu, u + i, n, du, is_bf16);
    }
}

static void swiglu_grad_rows(void *ctx, int64_t first, int64_t end, int thread)
{
    const ct_launch *launch = ctx;
    const ct_tensor *dy = &launch->in[0], *gu = &launch->in[1], *dgu = &launch->out[0];
    (void)thread;
    for (int64_t r = first; r < end; r++) {
        if (dy->dtype == CT_DTYPE_BF16) {
            swiglu_grad_row(dy->data, gu->data, dgu->data, r, t_last(dy), true);
        } else {
            swiglu_grad_row(dy->data, gu->data, dgu->data, r, t_last(dy), false);
        }
    }
}

ct_status CTI_CPU_FN(swiglu_grad)(const ct_launch *launch, ct_err *err)
{
    CT_TRY(check_floats("swiglu_grad", "input", launch->in, 2, err));
    cti_pool_run(t_rows(&launch->in[0]), grain_of(t_last(&launch->out[0])), swiglu_grad_rows, (void *)launch);
    return CT_OK;
}
