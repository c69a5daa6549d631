/* SPDX-License-Identifier: Apache-2.0 */
/* SwiGlu and its gradient; ApplyAdamWV2. */
#include "nnop.h"
#include "op_vector.h"

#include <math.h>

/* ---- SwiGlu: x, dim, out ---- */

/* The dims of the halves of argument x along argument dim. */
static int check_halves(fake_call *c, int x, int dim, fake_view *half)
{
    *half = *fake_arg_view(c, x);
    if (half->ndim == 0) {
        return fake_refuse_shape(c, "'x' should have dims");
    }
    TRY(fake_want_dim(c, dim, half->ndim));
    int64_t *n = &half->dim[c->arg[dim].i];
    if (*n % 2 != 0) {
        return fake_refuse_shape(c, "dim %lld has %lld elements, which are not two halves",
                                 (long long)c->arg[dim].i, (long long)*n);
    }
    *n /= 2;
    return 0;
}

static int check_swiglu(fake_call *c)
{
    fake_view half;
    TRY(check_halves(c, 0, 1, &half));
    return fake_want_dims(c, 2, half.ndim, half.dim);
}

/* x as [n, 2, inner]: the two halves of each piece. */
static void pieces(const fake_view *x, int64_t dim, int64_t *n, int64_t *inner)
{
    *n = *inner = 1;
    for (int d = 0; d < x->ndim; d++) {
        *(d < dim ? n : inner) *= x->dim[d];
    }
    *inner /= 2;
}

static void run_swiglu(fake_call *c)
{
    const fake_view *v = fake_arg_view(c, 0);
    int64_t n, inner;
    pieces(v, c->arg[1].i, &n, &inner);
    float *x = fake_arg_f32(c, 0), *y = fake_new_f32(c, n * inner);
    for (int64_t p = 0; p < n; p++) {
        const float *a = x + p * 2 * inner, *b = a + inner;
        for (int64_t i = 0; i < inner; i++) {
            y[p * inner + i] = a[i] * op_sigmoid(a[i]) * b[i];
        }
    }
    fake_store_f32(fake_arg_view(c, 2), y);
}

static const fake_operand swiglu[] = {IN("x", FAKE_FLOAT3, .flags = FAKE_DENSE), INT("dim"),
                                      OUT("out", FAKE_FLOAT3, .like = 1)};
OP(SwiGlu, ARGS(swiglu), .check = check_swiglu, .run = run_swiglu,
   .flags = FAKE_OP_GENERATED | FAKE_OP_NOT_910A);
PHASE1(SwiGlu, const aclTensor *x, int64_t dim, const aclTensor *out)
{
    PLAN(SwiGlu, T(x), I(dim), T(out));
}
PHASE2(SwiGlu)

/* yGrad, x, dim, out */
static int check_swiglu_grad(fake_call *c)
{
    fake_view half;
    TRY(check_halves(c, 1, 2, &half));
    TRY(fake_want_dims(c, 0, half.ndim, half.dim));
    return fake_want_dims_of(c, 3, 1);
}

static void run_swiglu_grad(fake_call *c)
{
    const fake_view *v = fake_arg_view(c, 1);
    int64_t n, inner;
    pieces(v, c->arg[2].i, &n, &inner);
    float *dy = fake_arg_f32(c, 0), *x = fake_arg_f32(c, 1);
    for (int64_t p = 0; p < n; p++) {
        float *a = x + p * 2 * inner, *b = a + inner, *g = dy + p * inner;
        for (int64_t i = 0; i < inner; i++) {
            float s = op_sigmoid(a[i]), silu = a[i] * s;
            a[i] = g[i] * b[i] * s * (1 + a[i] * (1 - s));
            b[i] = g[i] * silu;
        }
    }
    fake_store_f32(fake_arg_view(c, 3), x);
}

static const fake_operand swiglu_grad[] = {IN("yGrad", FAKE_FLOAT3, .flags = FAKE_DENSE),
                                           IN("x", FAKE_FLOAT3, .like = 1, .flags = FAKE_DENSE), INT("dim"),
                                           OUT("out", FAKE_FLOAT3, .like = 1)};
OP(SwiGluGrad, ARGS(swiglu_grad), .check = check_swiglu_grad, .run = run_swiglu_grad,
   .flags = FAKE_OP_GENERATED | FAKE_OP_NOT_910A | FAKE_OP_NOT_EMPTY);
PHASE1(SwiGluGrad, const aclTensor *yGrad, const aclTensor *x, int64_t dim, const aclTensor *out)
{
    PLAN(SwiGluGrad, T(yGrad), T(x), I(dim), T(out));
}
PHASE2(SwiGluGrad)

/* ---- ApplyAdamWV2: var, m, v, maxGradNorm, grad, step, lr, beta1, beta2, weightDecay, eps, amsgrad,
 * maximize ---- */

enum { VAR, M, V, MAX, GRAD, STEP, LR, BETA1, BETA2, DECAY, EPS, AMSGRAD, MAXIMIZE };

static int check_adamw(fake_call *c)
{
    aclDataType g = c->arg[GRAD].view.dtype, p = c->arg[VAR].view.dtype;
    if (g != p && p != ACL_FLOAT) {
        return fake_refuse(c, FAKE_R_ACLNN_DTYPE_DIFFERS, ACLNN_INVALID,
                           "'grad' is %s beside parameters of %s", fake_dtype_name(g), fake_dtype_name(p));
    }
    TRY(fake_want_dims_of(c, M, VAR));
    TRY(fake_want_dims_of(c, V, VAR));
    TRY(fake_want_dims_of(c, GRAD, VAR));
    if (fake_view_count(fake_arg_view(c, STEP)) != 1) {
        return fake_refuse_shape(c, "'step' should have one element");
    }
    if (c->arg[AMSGRAD].i && !c->arg[MAX].given) {
        return fake_refuse(c, FAKE_R_ACLNN_NULL_OPERAND, ACLNN_NULLPTR,
                           "'maxGradNormOptionalRef' is NULL with amsgrad");
    }
    if (!c->arg[AMSGRAD].i && c->arg[MAX].given) {
        return fake_refuse_value(c, "'maxGradNormOptionalRef' is given without amsgrad");
    }
    return c->arg[MAX].given ? fake_want_dims_of(c, MAX, VAR) : 0;
}

/* The kernel adds 1 to `step`. */
static void run_adamw(fake_call *c)
{
    int64_t n = fake_view_count(fake_arg_view(c, VAR));
    double step;
    fake_load_f64(fake_arg_view(c, STEP), &step);
    float *p = fake_arg_f32(c, VAR), *m = fake_arg_f32(c, M), *v = fake_arg_f32(c, V),
          *g = fake_arg_f32(c, GRAD);
    float *top = c->arg[AMSGRAD].i ? fake_arg_f32(c, MAX) : NULL;
    float lr = (float)c->arg[LR].d, beta1 = (float)c->arg[BETA1].d, beta2 = (float)c->arg[BETA2].d;
    float decay = (float)c->arg[DECAY].d, eps = (float)c->arg[EPS].d, sign = c->arg[MAXIMIZE].i ? -1 : 1;
    float correction1 = (float)(1 - pow((double)beta1, step + 1)),
          correction2 = (float)(1 - pow((double)beta2, step + 1));
    float keep = 1 - lr * decay, rate = lr / correction1, root = sqrtf(correction2);
    for (int64_t i = 0; i < n; i++) {
        float e = sign * g[i];
        p[i] *= keep;
        m[i] = m[i] + (1 - beta1) * (e - m[i]);
        v[i] = beta2 * v[i] + (1 - beta2) * e * e;
    }
    for (int64_t i = 0; top && i < n; i++) {
        top[i] = v[i] > top[i] ? v[i] : top[i];
    }
    const float *second = top ? top : v;
    for (int64_t i = 0; i < n; i++) {
        p[i] -= rate * m[i] / (sqrtf(second[i]) / root + eps);
    }
    fake_store_f32(fake_arg_view(c, VAR), p);
    fake_store_f32(fake_arg_view(c, M), m);
    fake_store_f32(fake_arg_view(c, V), v);
    if (top) {
        fake_store_f32(fake_arg_view(c, MAX), top);
    }
}

static const fake_operand adamw[] = {
    [VAR] = REF("varRef", FAKE_FLOAT3),
    [M] = REF("mRef", FAKE_FLOAT3, .like = 1),
    [V] = REF("vRef", FAKE_FLOAT3, .like = 1),
    [MAX] = REF("maxGradNormOptionalRef", FAKE_FLOAT3, .like = 1, .flags = FAKE_OPTIONAL),
    [GRAD] = IN("grad", FAKE_FLOAT3),
    [STEP] = IN("step", FAKE_F32 | FAKE_SET(ACL_INT64)),
    [LR] = NUMBER("lr"),
    [BETA1] = NUMBER("beta1"),
    [BETA2] = NUMBER("beta2"),
    [DECAY] = NUMBER("weightDecay"),
    [EPS] = NUMBER("eps"),
    [AMSGRAD] = INT("amsgrad"),
    [MAXIMIZE] = INT("maximize")};
OP(ApplyAdamWV2, ARGS(adamw), .check = check_adamw, .run = run_adamw);
PHASE1(ApplyAdamWV2, aclTensor *varRef, aclTensor *mRef, aclTensor *vRef, aclTensor *maxGradNormOptionalRef,
       const aclTensor *grad, const aclTensor *step, float lr, float beta1, float beta2, float weightDecay,
       float eps, bool amsgrad, bool maximize)
{
    PLAN(ApplyAdamWV2, T(varRef), T(mRef), T(vRef), T(maxGradNormOptionalRef), T(grad), T(step), D(lr),
         D(beta1), D(beta2), D(weightDecay), D(eps), I(amsgrad), I(maximize));
}
PHASE2(ApplyAdamWV2)
