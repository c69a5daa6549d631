/* SPDX-License-Identifier: Apache-2.0 */
/* RmsNorm, RmsNormGrad. Everything inside in float; dgamma is FLOAT and its rows are added in any order
 * unless determinism is switched on. */
#include "nnop.h"
#include "op_vector.h"

/* gamma: FLOAT beside a half-precision x, or x's dtype. */
static int check_gamma(fake_call *c, int x, int gamma)
{
    aclDataType t = c->arg[x].view.dtype, g = c->arg[gamma].view.dtype;
    if (g != t && g != ACL_FLOAT) {
        return fake_refuse(c, FAKE_R_ACLNN_DTYPE_DIFFERS, ACLNN_INVALID, "'gamma' is %s, wanted %s or FLOAT",
                           fake_dtype_name(g), fake_dtype_name(t));
    }
    return 0;
}

/* Whether gamma's dims are x's trailing ones. */
static int check_trailing(fake_call *c, int x, int gamma)
{
    const fake_view *v = fake_arg_view(c, x), *g = fake_arg_view(c, gamma);
    int lead = v->ndim - g->ndim;
    bool ok = lead >= 0 && g->ndim >= 1;
    for (int d = 0; ok && d < g->ndim; d++) {
        ok = v->dim[lead + d] == g->dim[d];
    }
    return ok ? 0 : fake_refuse_shape(c, "the dims of 'gamma' should be the last ones of 'x'");
}

/* x, gamma, epsilon, yOut, rstdOut */
static int check_norm(fake_call *c)
{
    const fake_view *x = fake_arg_view(c, 0);
    int64_t dim[FAKE_RANK_MAX];
    int lead = x->ndim - c->arg[1].view.ndim;
    TRY(check_gamma(c, 0, 1));
    TRY(check_trailing(c, 0, 1));
    TRY(fake_want_dims_of(c, 3, 0));
    for (int d = 0; d < x->ndim; d++) {
        dim[d] = d < lead ? x->dim[d] : 1;
    }
    return fake_want_dims(c, 4, x->ndim, dim);
}

static void run_norm(fake_call *c)
{
    int64_t width = fake_view_count(fake_arg_view(c, 1)), n = fake_view_count(fake_arg_view(c, 0));
    int64_t rows = width > 0 ? n / width : 0;
    float *x = fake_arg_f32(c, 0), *gamma = fake_arg_f32(c, 1), *rstd = fake_new_f32(c, rows);
    for (int64_t r = 0; r < rows; r++) {
        float *y = x + r * width, sum = op_dot(y, y, width);
        rstd[r] = 1.0f / sqrtf(sum / (float)width + (float)c->arg[2].d);
        for (int64_t i = 0; i < width; i++) {
            y[i] = y[i] * rstd[r] * gamma[i];
        }
    }
    fake_store_f32(fake_arg_view(c, 3), x);
    fake_store_f32(fake_arg_view(c, 4), rstd);
}

static const fake_operand norm[] = {IN("x", FAKE_FLOAT3), IN("gamma", FAKE_FLOAT3), NUMBER("epsilon"),
                                    OUT("yOut", FAKE_FLOAT3, .like = 1), OUT("rstdOut", FAKE_F32)};
OP(RmsNorm, ARGS(norm), .check = check_norm, .run = run_norm, .flags = FAKE_OP_GENERATED | FAKE_OP_NOT_910A);
PHASE1(RmsNorm, const aclTensor *x, const aclTensor *gamma, double epsilon, const aclTensor *yOut,
       const aclTensor *rstdOut)
{
    PLAN(RmsNorm, T(x), T(gamma), D(epsilon), T(yOut), T(rstdOut));
}
PHASE2(RmsNorm)

/* dy, x, rstd, gamma, dxOut, dgammaOut */
static int check_grad(fake_call *c)
{
    const fake_view *x = fake_arg_view(c, 1), *rstd = fake_arg_view(c, 2);
    int lead = x->ndim - c->arg[3].view.ndim;
    TRY(check_gamma(c, 1, 3));
    if (x->ndim < 2) {
        return fake_refuse_shape(c, "'x' should have 2 to 8 dims");
    }
    TRY(fake_want_dims_of(c, 0, 1));
    TRY(check_trailing(c, 1, 3));
    int64_t rows = 1;
    for (int d = 0; d < lead; d++) {
        rows *= x->dim[d];
        if (d >= rstd->ndim || rstd->dim[d] != x->dim[d]) {
            return fake_refuse_shape(c, "the first dims of 'rstd' should be those of 'x'");
        }
    }
    if (fake_view_count(rstd) != rows) {
        return fake_refuse_shape(c, "'rstd' should have %lld elements", (long long)rows);
    }
    TRY(fake_want_dims_of(c, 4, 1));
    return fake_want_dims_of(c, 5, 3);
}

static void run_grad(fake_call *c)
{
    int64_t width = fake_view_count(fake_arg_view(c, 3)), rows = fake_view_count(fake_arg_view(c, 2));
    float *dy = fake_arg_f32(c, 0), *x = fake_arg_f32(c, 1), *rstd = fake_arg_f32(c, 2),
          *gamma = fake_arg_f32(c, 3);
    float *dgamma = fake_new_f32(c, width);
    int64_t *order = fake_sum_order(c, rows);
    for (int64_t k = 0; k < rows; k++) {
        float *g = dy + order[k] * width, *y = x + order[k] * width, r = rstd[order[k]];
        for (int64_t i = 0; i < width; i++) {
            y[i] *= r;
            dgamma[i] += g[i] * y[i];
            g[i] *= gamma[i];
        }
        float dot = op_dot(g, y, width) / (float)width;
        for (int64_t i = 0; i < width; i++) {
            g[i] = r * (g[i] - y[i] * dot);
        }
    }
    fake_store_f32(fake_arg_view(c, 4), dy);
    fake_store_f32(fake_arg_view(c, 5), dgamma);
}

static const fake_operand grad[] = {
    IN("dy", FAKE_FLOAT3),    IN("x", FAKE_FLOAT3, .like = 1),      IN("rstd", FAKE_F32),
    IN("gamma", FAKE_FLOAT3), OUT("dxOut", FAKE_FLOAT3, .like = 2), OUT("dgammaOut", FAKE_F32)};
OP(RmsNormGrad, ARGS(grad), .check = check_grad, .run = run_grad,
   .flags = FAKE_OP_GENERATED | FAKE_OP_NOT_910A);
PHASE1(RmsNormGrad, const aclTensor *dy, const aclTensor *x, const aclTensor *rstd, const aclTensor *gamma,
       const aclTensor *dxOut, const aclTensor *dgammaOut)
{
    PLAN(RmsNormGrad, T(dy), T(x), T(rstd), T(gamma), T(dxOut), T(dgammaOut));
}
PHASE2(RmsNormGrad)
