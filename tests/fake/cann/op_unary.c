/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise ops of one operand, SiluBackward, SigmoidBackward, SWhere. Computed in double, rounded to the
 * input's dtype, then cast. */
#include "op_promote.h"
#include "op_vector.h"

#include <math.h>

enum {
    NEG,
    EXP,
    LOG,
    SQRT,
    RSQRT,
    RECIPROCAL,
    SIGMOID,
    SILU,
    ABS,
    TANH,
    IS_FINITE,
    NOT,
    UNARY_KIND = 31,
    SELF_ONLY = 32
};

static double sigmoid(double x)
{
    return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

static double compute(int kind, double x)
{
    switch (kind) {
    case NEG:
        return -x;
    case EXP:
        return exp(x);
    case LOG:
        return log(x);
    case SQRT:
        return sqrt(x);
    case RSQRT:
        return 1 / sqrt(x);
    case RECIPROCAL:
        return 1 / x;
    case SIGMOID:
        return sigmoid(x);
    case SILU:
        return x * sigmoid(x);
    case ABS:
        return fabs(x);
    case TANH:
        return tanh(x);
    case IS_FINITE:
        return isfinite(x);
    case NOT:
        return x == 0;
    }
    return 0;
}

static int check_unary(fake_call *c)
{
    int kind = c->op->code & UNARY_KIND, out = c->op->code & SELF_ONLY ? 0 : 1;
    aclDataType r = kind == IS_FINITE || kind == NOT ? ACL_BOOL : c->arg[0].view.dtype;
    TRY(op_want_castable(c, r, out));
    return fake_want_dims_of(c, out, 0);
}

static void run_unary(fake_call *c)
{
    int kind = c->op->code & UNARY_KIND, out = c->op->code & SELF_ONLY ? 0 : 1;
    int64_t n = fake_view_count(fake_arg_view(c, 0));
    if ((kind == SIGMOID || kind == SILU) && c->arg[0].view.dtype != ACL_DOUBLE) {
        float *y = fake_arg_f32(c, 0);
        for (int64_t i = 0; i < n; i++) {
            float s = op_sigmoid(y[i]);
            y[i] = kind == SILU ? y[i] * s : s;
        }
        op_store_f32(c, y, n, c->arg[0].view.dtype, fake_arg_view(c, out));
        return;
    }
    double *x = fake_arg_f64(c, 0);
    for (int64_t i = 0; i < n; i++) {
        x[i] = compute(kind, x[i]);
    }
    op_store_f64(c, x, n, kind == IS_FINITE || kind == NOT ? ACL_BOOL : c->arg[0].view.dtype,
                 fake_arg_view(c, out));
}

/* SiluBackward (code 0): gradOutput, self, gradInput; SigmoidBackward (code 1): gradOutput, output,
 * gradInput. */
static int check_backward(fake_call *c)
{
    TRY(op_want_castable(c, op_promote(c->arg[0].view.dtype, c->arg[1].view.dtype), 2));
    TRY(fake_want_dims_of(c, 1, 0));
    return fake_want_dims_of(c, 2, 0);
}

static void run_backward(fake_call *c)
{
    int64_t n = fake_view_count(fake_arg_view(c, 0));
    float *g = fake_arg_f32(c, 0), *x = fake_arg_f32(c, 1);
    for (int64_t i = 0; i < n; i++) {
        float s = c->op->code ? x[i] : op_sigmoid(x[i]);
        x[i] = g[i] * s * (c->op->code ? 1 - s : 1 + x[i] * (1 - s));
    }
    op_store_f32(c, x, n, op_promote(c->arg[0].view.dtype, c->arg[1].view.dtype), fake_arg_view(c, 2));
}

/* condition, self, other, out */
static bool where_dims(const fake_call *c, int *ndim, int64_t *dim)
{
    fake_view both = {0};
    if (!op_broadcast_dims(&c->arg[1].view, &c->arg[2].view, &both.ndim, both.dim)) {
        return false;
    }
    return op_broadcast_dims(&c->arg[0].view, &both, ndim, dim);
}

static int check_where(fake_call *c)
{
    int ndim;
    int64_t dim[FAKE_RANK_MAX];
    TRY(op_want_castable(c, op_promote(c->arg[1].view.dtype, c->arg[2].view.dtype), 3));
    if (!where_dims(c, &ndim, dim)) {
        return fake_refuse_shape(c, "'condition', 'self' and 'other' do not broadcast");
    }
    return fake_want_dims(c, 3, ndim, dim);
}

static void run_where(fake_call *c)
{
    int ndim;
    int64_t dim[FAKE_RANK_MAX];
    fake_view v[3];
    where_dims(c, &ndim, dim);
    for (int i = 0; i < 3; i++) {
        fake_view_broadcast(fake_arg_view(c, i), ndim, dim, &v[i]);
    }
    int64_t n = fake_view_count(&v[0]), *w = fake_scrap_new(c, n, sizeof *w);
    fake_load_i64(&v[0], w);
    if (fake_dtype_is_float(op_promote(v[1].dtype, v[2].dtype))) {
        double *x = fake_new_f64(c, n), *y = fake_new_f64(c, n);
        fake_load_f64(&v[1], x);
        fake_load_f64(&v[2], y);
        for (int64_t i = 0; i < n; i++) {
            x[i] = w[i] ? x[i] : y[i];
        }
        fake_store_f64(fake_arg_view(c, 3), x);
        return;
    }
    int64_t *x = fake_scrap_new(c, n, sizeof *x), *y = fake_scrap_new(c, n, sizeof *y);
    fake_load_i64(&v[1], x);
    fake_load_i64(&v[2], y);
    for (int64_t i = 0; i < n; i++) {
        x[i] = w[i] ? x[i] : y[i];
    }
    fake_store_i64(fake_arg_view(c, 3), x);
}

static const fake_operand floats[] = {IN("self", FAKE_FLOAT4), OUT("out", FAKE_FLOAT4)};
static const fake_operand numbers[] = {IN("self", FAKE_NUMBERS), OUT("out", FAKE_NUMBERS)};
static const fake_operand flags[] = {IN("self", FAKE_ANY), OUT("out", FAKE_SET(ACL_BOOL))};
static const fake_operand floats_in_place[] = {REF("selfRef", FAKE_FLOAT4)};
static const fake_operand backward[] = {IN("gradOutput", FAKE_FLOAT3), IN("self", FAKE_FLOAT3),
                                        OUT("gradInput", FAKE_FLOAT3)};
static const fake_operand where[] = {IN("condition", FAKE_FLAGS), IN("self", FAKE_ANY), IN("other", FAKE_ANY),
                                     OUT("out", FAKE_ANY)};

#define UNARY(Name, kind, list)                                                  \
    OP(Name, ARGS(list), .code = (kind), .check = check_unary, .run = run_unary, \
       .flags = FAKE_OP_ELEMENTWISE);                                            \
    PHASE1(Name, const aclTensor *self, aclTensor *out)                          \
    {                                                                            \
        PLAN(Name, T(self), T(out));                                             \
    }                                                                            \
    PHASE2(Name)
#define UNARY_IN_PLACE(Name, kind)                                                                       \
    OP(Name, ARGS(floats_in_place), .code = (kind) | SELF_ONLY, .check = check_unary, .run = run_unary); \
    PHASE1(Name, aclTensor *selfRef)                                                                     \
    {                                                                                                    \
        PLAN(Name, T(selfRef));                                                                          \
    }                                                                                                    \
    PHASE2(Name)
#define BACKWARD(Name, code_)                                                              \
    OP(Name, ARGS(backward), .code = code_, .check = check_backward, .run = run_backward,  \
       .flags = FAKE_OP_ELEMENTWISE);                                                      \
    PHASE1(Name, const aclTensor *gradOutput, const aclTensor *self, aclTensor *gradInput) \
    {                                                                                      \
        PLAN(Name, T(gradOutput), T(self), T(gradInput));                                  \
    }                                                                                      \
    PHASE2(Name)

UNARY(Neg, NEG, numbers)
UNARY(Abs, ABS, numbers)
UNARY(Exp, EXP, floats)
UNARY(Log, LOG, floats)
UNARY(Sqrt, SQRT, floats)
UNARY(Rsqrt, RSQRT, floats)
UNARY(Reciprocal, RECIPROCAL, floats)
UNARY(Sigmoid, SIGMOID, floats)
UNARY(Silu, SILU, floats)
UNARY(Tanh, TANH, floats)
UNARY(IsFinite, IS_FINITE, flags)
UNARY(LogicalNot, NOT, flags)
UNARY_IN_PLACE(InplaceSqrt, SQRT)
UNARY_IN_PLACE(InplaceExp, EXP)
UNARY_IN_PLACE(InplaceRsqrt, RSQRT)
UNARY_IN_PLACE(InplaceSigmoid, SIGMOID)
UNARY_IN_PLACE(InplaceReciprocal, RECIPROCAL)
BACKWARD(SiluBackward, 0)
BACKWARD(SigmoidBackward, 1)

OP(SWhere, ARGS(where), .check = check_where, .run = run_where, .flags = FAKE_OP_ELEMENTWISE);
PHASE1(SWhere, const aclTensor *condition, const aclTensor *self, const aclTensor *other, aclTensor *out)
{
    PLAN(SWhere, T(condition), T(self), T(other), T(out));
}
PHASE2(SWhere)
