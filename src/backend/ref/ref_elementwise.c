/* SPDX-License-Identifier: Apache-2.0 */
/* add, mul, scale, cast, fill, accumulate, silu_mul, swiglu and their gradients. Outputs may be written over inputs. */
#include "backend/ref/ref.h"

ct_status cti_ref_add(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_tensor *y = &launch->out[0];
    const int64_t n = cti_ref_numel(y);
    for (int64_t i = 0; i < n; i++) {
        cti_ref_store(y, i, cti_ref_load(&launch->in[0], i) + cti_ref_load(&launch->in[1], i));
    }
    return CT_OK;
}

ct_status cti_ref_mul(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_tensor *y = &launch->out[0];
    const int64_t n = cti_ref_numel(y);
    for (int64_t i = 0; i < n; i++) {
        cti_ref_store(y, i, cti_ref_load(&launch->in[0], i) * cti_ref_load(&launch->in[1], i));
    }
    return CT_OK;
}

ct_status cti_ref_scale(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_attrs_scale *attrs = launch->attrs;
    const ct_tensor *a = &launch->in[0], *y = &launch->out[0];
    const double alpha = a->dtype == CT_DTYPE_F64 ? attrs->alpha : (double)(float)attrs->alpha;
    const int64_t n = cti_ref_numel(y);
    for (int64_t i = 0; i < n; i++) {
        cti_ref_store(y, i, alpha * cti_ref_load(a, i));
    }
    return CT_OK;
}

ct_status cti_ref_cast(const ct_launch *launch, ct_err *err)
{
    const ct_tensor *a = &launch->in[0], *y = &launch->out[0];
    if (!ct_dtype_is_float(y->dtype) && y->dtype != a->dtype) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "cast: to %s: only casts to a float dtype are defined",
                       ct_dtype_name(y->dtype));
    }
    const int64_t n = cti_ref_numel(y);
    if (y->dtype == a->dtype) {
        memmove(y->data, a->data, (size_t)n * ct_dtype_size_bytes(y->dtype));
        return CT_OK;
    }
    for (int64_t i = 0; i < n; i++) {
        cti_ref_store(y, i, cti_ref_load(a, i));
    }
    return CT_OK;
}

ct_status cti_ref_fill(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_attrs_fill *attrs = launch->attrs;
    const ct_tensor *y = &launch->out[0];
    const int64_t n = cti_ref_numel(y);
    for (int64_t i = 0; i < n; i++) {
        cti_ref_store(y, i, attrs->value);
    }
    return CT_OK;
}

ct_status cti_ref_accumulate(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_tensor *acc = &launch->in[0], *x = &launch->in[1], *y = &launch->out[0];
    const int32_t first = *(const int32_t *)launch->in[2].data;
    const int64_t n = cti_ref_numel(y);
    for (int64_t i = 0; i < n; i++) {
        const double old = first == 1 ? 0.0 : cti_ref_load(acc, i);
        cti_ref_store(y, i, cti_ref_load(x, i)); /* x in acc's dtype */
        if (first != 1) {
            cti_ref_store(y, i, old + cti_ref_load(y, i));
        }
    }
    return CT_OK;
}

/* 1 / (1 + exp(-x)) without overflow on either side. */
static double sigmoid(double x)
{
    const double e = exp(-fabs(x));
    return x >= 0.0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
}

static void silu_mul(const ct_tensor *g, int64_t at_g, const ct_tensor *u, int64_t at_u, const ct_tensor *y, int64_t at_y)
{
    const double x = cti_ref_load(g, at_g);
    cti_ref_store(y, at_y, x * sigmoid(x) * cti_ref_load(u, at_u));
}

static void silu_mul_grad(double dy, double g, double u, double *dg, double *du)
{
    const double s = sigmoid(g);
    *dg = dy * u * s * (1.0 + g * (1.0 - s));
    *du = dy * g * s;
}

ct_status cti_ref_silu_mul(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_tensor *y = &launch->out[0];
    const int64_t n = cti_ref_numel(y);
    for (int64_t i = 0; i < n; i++) {
        silu_mul(&launch->in[0], i, &launch->in[1], i, y, i);
    }
    return CT_OK;
}

ct_status cti_ref_silu_mul_grad(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const int64_t n = cti_ref_numel(&launch->out[0]);
    for (int64_t i = 0; i < n; i++) {
        double dg, du;
        silu_mul_grad(cti_ref_load(&launch->in[0], i), cti_ref_load(&launch->in[1], i), cti_ref_load(&launch->in[2], i), &dg, &du);
        cti_ref_store(&launch->out[0], i, dg);
        cti_ref_store(&launch->out[1], i, du);
    }
    return CT_OK;
}

ct_status cti_ref_swiglu(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_tensor *gu = &launch->in[0], *y = &launch->out[0];
    const int64_t n = cti_ref_rows(y), f = cti_ref_last_dim(y);
    for (int64_t t = 0; t < n; t++) {
        for (int64_t j = 0; j < f; j++) {
            silu_mul(gu, 2 * t * f + j, gu, (2 * t + 1) * f + j, y, t * f + j);
        }
    }
    return CT_OK;
}

ct_status cti_ref_swiglu_grad(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_tensor *dy = &launch->in[0], *gu = &launch->in[1], *dgu = &launch->out[0];
    const int64_t n = cti_ref_rows(dy), f = cti_ref_last_dim(dy);
    for (int64_t t = 0; t < n; t++) {
        for (int64_t j = 0; j < f; j++) {
            const int64_t at_g = 2 * t * f + j, at_u = at_g + f;
            double dg, du;
            silu_mul_grad(cti_ref_load(dy, t * f + j), cti_ref_load(gu, at_g), cti_ref_load(gu, at_u), &dg, &du);
            cti_ref_store(dgu, at_g, dg);
            cti_ref_store(dgu, at_u, du);
        }
    }
    return CT_OK;
}
