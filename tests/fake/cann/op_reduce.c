/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over dims: ReduceSum, Mean, Amax, LogSumExp, LinalgVectorNorm. Sums in float (integers: int64,
 * DOUBLE: double), pairwise. */
#include "nnop.h"

#include <math.h>

enum { SUM, MEAN, AMAX, LSE, NORM };

typedef struct places {
    int dims, keep, dtype, out; /* argument numbers; dtype < 0: none */
} places;

static places places_of(const fake_call *c)
{
    switch (c->op->code) {
    case AMAX:
    case LSE:
        return (places){1, 2, -1, 3};
    case NORM:
        return (places){2, 3, 4, 5};
    }
    return (places){1, 2, 3, 4};
}

/* A set of the dims; none given: all. A refusal where one is out of range or given twice. */
static int reduced_dims(fake_call *c, int dims, unsigned *set)
{
    const fake_view *v = fake_arg_view(c, 0);
    int ndim = v->ndim > 0 ? v->ndim : 1;
    *set = 0;
    for (int64_t i = 0; i < c->arg[dims].n; i++) {
        int64_t d = c->arg[dims].ints[i];
        if (d < -ndim || d >= ndim) {
            return fake_refuse_value(c, "dim %lld is outside [%d, %d)", (long long)d, -ndim, ndim);
        }
        unsigned bit = 1u << (d < 0 ? d + ndim : d);
        if (*set & bit) {
            return fake_refuse_value(c, "dim %lld is given twice", (long long)d);
        }
        *set |= bit;
    }
    if (c->arg[dims].n == 0) {
        *set = (1u << v->ndim) - 1;
    }
    return 0;
}

static int check_norm_types(fake_call *c)
{
    aclDataType from = c->arg[0].view.dtype, to = c->arg[5].view.dtype;
    if (c->arg[1].dtype != ACL_FLOAT) {
        return fake_refuse(c, FAKE_R_ACLNN_DTYPE, ACLNN_INVALID, "'ord' is %s, wanted FLOAT",
                           fake_dtype_name(c->arg[1].dtype));
    }
    return to == from || to == ACL_FLOAT
               ? 0
               : fake_refuse(c, FAKE_R_ACLNN_PROMOTION, ACLNN_INVALID, "a norm of %s can't be %s",
                             fake_dtype_name(from), fake_dtype_name(to));
}

static int check_reduce(fake_call *c)
{
    places p = places_of(c);
    const fake_view *v = fake_arg_view(c, 0), *out = fake_arg_view(c, p.out);
    unsigned set;
    int ndim = 0;
    int64_t dim[FAKE_RANK_MAX], n = 1;
    if (p.dtype >= 0 && c->arg[p.dtype].dtype != out->dtype) {
        return fake_refuse(c, FAKE_R_ACLNN_DTYPE_DIFFERS, ACLNN_INVALID, "'dtype' is %s, 'out' is %s",
                           fake_dtype_name(c->arg[p.dtype].dtype), fake_dtype_name(out->dtype));
    }
    if (c->op->code == NORM) {
        TRY(check_norm_types(c));
    }
    TRY(reduced_dims(c, p.dims, &set));
    for (int d = 0; d < v->ndim; d++) {
        bool gone = set & 1u << d;
        n *= gone ? v->dim[d] : 1;
        if (!gone || c->arg[p.keep].i) {
            dim[ndim++] = gone ? 1 : v->dim[d];
        }
    }
    if (n == 0 && c->op->code == AMAX) {
        return fake_refuse(c, FAKE_R_ACLNN_EMPTY, ACLNN_INVALID, "there is nothing to take the maximum of");
    }
    return fake_want_dims(c, p.out, ndim, dim);
}

/* Self with the dims that go at the end: rows of `*width`. */
static fake_view in_rows(fake_call *c, int64_t *rows, int64_t *width)
{
    const fake_view *v = fake_arg_view(c, 0);
    fake_view r = *v;
    unsigned set = 0;
    reduced_dims(c, places_of(c).dims, &set);
    *rows = *width = 1;
    int at = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int d = 0; d < v->ndim; d++) {
            if (((set >> d) & 1u) == (unsigned)pass) {
                *(pass ? width : rows) *= v->dim[d];
                r.dim[at] = v->dim[d];
                r.stride[at++] = v->stride[d];
            }
        }
    }
    return r;
}

static float sum_pairs(const float *x, int64_t n)
{
    if (n > 64) {
        int64_t half = n / 2;
        return sum_pairs(x, half) + sum_pairs(x + half, n - half);
    }
    float sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i];
    }
    return sum;
}

static float reduce_row(fake_call *c, float *x, int64_t n)
{
    float top = -INFINITY;
    switch (c->op->code) {
    case SUM:
        return sum_pairs(x, n);
    case MEAN:
        return sum_pairs(x, n) / (float)n;
    case AMAX:
    case LSE:
        for (int64_t i = 0; i < n; i++) {
            top = isnan(x[i]) || isnan(top) ? x[i] + top : x[i] > top ? x[i] : top;
        }
        if (c->op->code == AMAX || isnan(top)) {
            return top;
        }
        top = isinf(top) ? 0 : top;
        for (int64_t i = 0; i < n; i++) {
            x[i] = expf(x[i] - top);
        }
        return top + logf(sum_pairs(x, n));
    }
    return 0;
}

/* Parts of 256 elements, added in any order unless determinism is switched on. */
static float norm_row(fake_call *c, const float *x, int64_t n, float ord)
{
    int64_t parts = (n + 255) / 256, *order = fake_sum_order(c, parts);
    float sum = 0, top = 0, low = INFINITY;
    for (int64_t k = 0; k < parts; k++) {
        int64_t from = order[k] * 256, to = from + 256 < n ? from + 256 : n;
        float part = 0;
        for (int64_t i = from; i < to; i++) {
            float a = fabsf(x[i]);
            part += ord == 2.0f   ? a * a
                    : ord == 1.0f ? a
                    : ord == 0.0f ? (a > 0 ? 1.0f : 0.0f)
                    : isinf(ord)  ? 0.0f
                                  : powf(a, ord);
            top = a > top || isnan(a) ? a : top;
            low = a < low || isnan(a) ? a : low;
        }
        sum += part;
    }
    if (isinf(ord)) {
        return ord > 0 ? top : low;
    }
    return ord == 2.0f ? sqrtf(sum) : ord == 1.0f || ord == 0.0f ? sum : powf(sum, 1 / ord);
}

static void run_exact(fake_call *c, const fake_view *v, int64_t rows, int64_t width, const fake_view *out)
{
    bool is_double = v->dtype == ACL_DOUBLE;
    int64_t *x = fake_scrap_new(c, rows * width, sizeof *x), *r = fake_scrap_new(c, rows, sizeof *r);
    double *y = fake_new_f64(c, rows * width), *s = fake_new_f64(c, rows);
    if (is_double) {
        fake_load_f64(v, y);
    } else {
        fake_load_i64(v, x);
    }
    for (int64_t k = 0; k < rows; k++) {
        for (int64_t i = 0; i < width; i++) {
            int64_t e = x[k * width + i];
            double f = y[k * width + i];
            if (c->op->code == AMAX) {
                r[k] = i == 0 || e > r[k] ? e : r[k];
                s[k] = i == 0 || f > s[k] ? f : s[k];
            } else {
                r[k] += e;
                s[k] += f;
            }
        }
        s[k] /= c->op->code == MEAN ? (double)width : 1;
    }
    if (is_double) {
        fake_store_f64(out, s);
    } else {
        fake_store_i64(out, r);
    }
}

static void run_reduce(fake_call *c)
{
    int64_t rows, width;
    fake_view v = in_rows(c, &rows, &width);
    const fake_view *out = fake_arg_view(c, places_of(c).out);
    if (v.dtype == ACL_DOUBLE || !fake_dtype_is_float(v.dtype)) {
        run_exact(c, &v, rows, width, out);
        return;
    }
    float *x = fake_new_f32(c, rows * width), *r = fake_new_f32(c, rows);
    fake_load_f32(&v, x);
    for (int64_t k = 0; k < rows; k++) {
        r[k] = c->op->code == NORM ? norm_row(c, x + k * width, width, (float)c->arg[1].d)
                                   : reduce_row(c, x + k * width, width);
    }
    fake_store_f32(out, r);
}

static const fake_operand sum[] = {IN("self", FAKE_ANY), INTS("dims"), INT("keepDims"), DTYPE("dtype"),
                                   OUT("out", FAKE_ANY)};
static const fake_operand mean[] = {IN("self", FAKE_FLOAT4), INTS("dim"), INT("keepDim"), DTYPE("dtype"),
                                    OUT("out", FAKE_FLOAT4)};
static const fake_operand amax[] = {IN("self", FAKE_ANY), INTS("dim"), INT("keepDim"),
                                    OUT("out", FAKE_ANY, .like = 1)};
static const fake_operand lse[] = {IN("self", FAKE_FLOAT3), INTS("dim"), INT("keepDim"),
                                   OUT("out", FAKE_FLOAT3)};
static const fake_operand norm[] = {IN("self", FAKE_FLOAT3), SCALAR("ord"),  INTS("dims"),
                                    INT("keepDims"),         DTYPE("dtype"), OUT("out", FAKE_FLOAT3)};

#define REDUCE(Name, list, code_)                                                                  \
    OP(Name, ARGS(list), .code = code_, .check = check_reduce, .run = run_reduce);                 \
    PHASE1(Name, const aclTensor *self, const aclIntArray *dims, bool keepDims, aclDataType dtype, \
           aclTensor *out)                                                                         \
    {                                                                                              \
        PLAN(Name, T(self), A(dims), I(keepDims), DT(dtype), T(out));                              \
    }                                                                                              \
    PHASE2(Name)
#define REDUCE_PLAIN(Name, list, code_)                                                       \
    OP(Name, ARGS(list), .code = code_, .check = check_reduce, .run = run_reduce);            \
    PHASE1(Name, const aclTensor *self, const aclIntArray *dim, bool keepDim, aclTensor *out) \
    {                                                                                         \
        PLAN(Name, T(self), A(dim), I(keepDim), T(out));                                      \
    }                                                                                         \
    PHASE2(Name)
REDUCE(ReduceSum, sum, SUM)
REDUCE(Mean, mean, MEAN)
REDUCE_PLAIN(Amax, amax, AMAX)
REDUCE_PLAIN(LogSumExp, lse, LSE)

OP(LinalgVectorNorm, ARGS(norm), .code = NORM, .check = check_reduce, .run = run_reduce);
PHASE1(LinalgVectorNorm, const aclTensor *self, const aclScalar *ord, const aclIntArray *dims, bool keepDims,
       const aclDataType dtype, aclTensor *out)
{
    PLAN(LinalgVectorNorm, T(self), S(ord), A(dims), I(keepDims), DT(dtype), T(out));
}
PHASE2(LinalgVectorNorm)
