/* SPDX-License-Identifier: Apache-2.0 */
/* Copies, casts, fills: Cast, InplaceCopy, InplaceZero, InplaceOne, InplaceFillScalar, Cat, Arange, Permute.
 */
#include "nnop.h"

#include <math.h>

/* Elements of `from` (broadcast to the dims of `to`) into `to`. */
static void convert(fake_call *c, const fake_view *from, const fake_view *to)
{
    fake_view wide;
    int64_t n = fake_view_count(to);
    fake_view_broadcast(from, to->ndim, to->dim, &wide);
    if (fake_dtype_is_float(from->dtype) && from->dtype != ACL_DOUBLE) { /* all of them are floats, exactly */
        float *x = fake_scrap_raw(c, n, sizeof *x);
        fake_load_f32(&wide, x);
        fake_store_f32(to, x);
    } else if (from->dtype == ACL_DOUBLE) {
        double *x = fake_scrap_raw(c, n, sizeof *x);
        fake_load_f64(&wide, x);
        fake_store_f64(to, x);
    } else {
        int64_t *x = fake_scrap_raw(c, n, sizeof *x);
        fake_load_i64(&wide, x);
        fake_store_i64(to, x);
    }
}

/* ---- Cast: self, dtype, out ---- */

static int check_cast(fake_call *c)
{
    const fake_view *self = fake_arg_view(c, 0), *out = fake_arg_view(c, 2);
    if (c->arg[1].dtype != out->dtype) {
        return fake_refuse(c, FAKE_R_ACLNN_DTYPE_DIFFERS, ACLNN_INVALID, "'dtype' is %s, 'out' is %s",
                           fake_dtype_name(c->arg[1].dtype), fake_dtype_name(out->dtype));
    }
    if (self->dtype == ACL_BOOL && !fake_view_is_contiguous(self)) {
        return fake_refuse(c, FAKE_R_ACLNN_STRIDED, ACLNN_INNER_NULLPTR,
                           "'self' of BOOL should be contiguous");
    }
    return fake_want_dims_of(c, 2, 0);
}

static void run_cast(fake_call *c)
{
    convert(c, fake_arg_view(c, 0), fake_arg_view(c, 2));
}

static const fake_operand cast[] = {IN("self", FAKE_ANY), DTYPE("dtype"), OUT("out", FAKE_ANY)};
OP(Cast, ARGS(cast), .check = check_cast, .run = run_cast, .flags = FAKE_OP_ELEMENTWISE);
PHASE1(Cast, const aclTensor *self, const aclDataType dtype, aclTensor *out)
{
    PLAN(Cast, T(self), DT(dtype), T(out));
}
PHASE2(Cast)

/* ---- InplaceCopy: selfRef, src ---- */

static int check_copy(fake_call *c)
{
    fake_view wide;
    const fake_view *self = fake_arg_view(c, 0);
    if (!fake_view_broadcast(fake_arg_view(c, 1), self->ndim, self->dim, &wide)) {
        return fake_refuse_shape(c, "'src' can't be broadcast to 'selfRef'");
    }
    return 0;
}

static void run_copy(fake_call *c)
{
    convert(c, fake_arg_view(c, 1), fake_arg_view(c, 0));
}

static const fake_operand copy[] = {OUT("selfRef", FAKE_ANY), IN("src", FAKE_ANY)};
OP(InplaceCopy, ARGS(copy), .check = check_copy, .run = run_copy, .flags = FAKE_OP_ELEMENTWISE);
PHASE1(InplaceCopy, aclTensor *selfRef, const aclTensor *src)
{
    PLAN(InplaceCopy, T(selfRef), T(src));
}
PHASE2(InplaceCopy)

/* ---- fills ---- */

static void fill(fake_call *c, double d, int64_t i)
{
    const fake_view *v = fake_arg_view(c, 0);
    int64_t n = fake_view_count(v), *x = fake_scrap_new(c, n, sizeof *x);
    double *y = (double *)(void *)x;
    for (int64_t k = 0; k < n; k++) {
        if (fake_dtype_is_float(v->dtype)) {
            y[k] = d;
        } else {
            x[k] = i;
        }
    }
    if (fake_dtype_is_float(v->dtype)) {
        fake_store_f64(v, y);
    } else {
        fake_store_i64(v, x);
    }
}

static void run_constant(fake_call *c)
{
    fill(c, c->op->code, c->op->code);
}

static const fake_operand filled[] = {OUT("selfRef", FAKE_ANY)};
#define CONSTANT(Name, value)                                   \
    OP(Name, ARGS(filled), .code = value, .run = run_constant); \
    PHASE1(Name, aclTensor *selfRef)                            \
    {                                                           \
        PLAN(Name, T(selfRef));                                 \
    }                                                           \
    PHASE2(Name)
CONSTANT(InplaceZero, 0)
CONSTANT(InplaceOne, 1)

static int check_fill(fake_call *c)
{
    aclDataType s = c->arg[1].dtype, t = c->arg[0].view.dtype;
    if (fake_dtype_is_float(s) && !fake_dtype_is_float(t)) {
        return fake_refuse(c, FAKE_R_ACLNN_PROMOTION, ACLNN_INVALID, "a value of %s can't fill %s",
                           fake_dtype_name(s), fake_dtype_name(t));
    }
    return 0;
}

static void run_fill(fake_call *c)
{
    fill(c, c->arg[1].d, c->arg[1].i);
}

static const fake_operand fill_scalar[] = {OUT("selfRef", FAKE_ANY), SCALAR("value")};
OP(InplaceFillScalar, ARGS(fill_scalar), .check = check_fill, .run = run_fill);
PHASE1(InplaceFillScalar, aclTensor *selfRef, const aclScalar *value)
{
    PLAN(InplaceFillScalar, T(selfRef), S(value));
}
PHASE2(InplaceFillScalar)

/* ---- Cat: tensors, dim, out ---- */

static int check_cat(fake_call *c)
{
    const fake_arg *list = &c->arg[0];
    const fake_view *out = fake_arg_view(c, 2);
    if (list->n == 0) {
        return fake_refuse_shape(c, "'tensors' is empty");
    }
    TRY(fake_want_dim(c, 1, list->views[0].ndim));
    int dim = (int)c->arg[1].i;
    fake_view sum = list->views[0];
    for (int64_t i = 0; i < list->n; i++) {
        const fake_view *v = &list->views[i];
        if (v->dtype != out->dtype) {
            return fake_refuse(c, FAKE_R_ACLNN_DTYPE_DIFFERS, ACLNN_INVALID, "tensor %lld is %s, 'out' is %s",
                               (long long)i, fake_dtype_name(v->dtype), fake_dtype_name(out->dtype));
        }
        for (int d = 0; d < sum.ndim; d++) {
            if (v->ndim != sum.ndim || (d != dim && v->dim[d] != sum.dim[d])) {
                return fake_refuse_shape(c, "tensor %lld does not fit beside the first", (long long)i);
            }
        }
        sum.dim[dim] += i > 0 ? v->dim[dim] : 0;
    }
    return fake_want_dims(c, 2, sum.ndim, sum.dim);
}

static void run_cat(fake_call *c)
{
    int dim = (int)c->arg[1].i;
    fake_view part = *fake_arg_view(c, 2);
    for (int64_t i = 0; i < c->arg[0].n; i++) {
        const fake_view *v = &c->arg[0].views[i];
        part.dim[dim] = v->dim[dim];
        convert(c, v, &part);
        part.offset += part.stride[dim] * v->dim[dim];
    }
}

static const fake_operand cat[] = {INS("tensors", FAKE_ANY), INT("dim"), OUT("out", FAKE_ANY)};
OP(Cat, ARGS(cat), .check = check_cat, .run = run_cat);
PHASE1(Cat, const aclTensorList *tensors, int64_t dim, aclTensor *out)
{
    PLAN(Cat, TS(tensors), I(dim), T(out));
}
PHASE2(Cat)

/* ---- Arange: start, end, step, out ---- */

static int check_arange(fake_call *c)
{
    const fake_view *out = fake_arg_view(c, 3);
    for (int i = 0; i < 3; i++) {
        if (c->arg[i].dtype != out->dtype) {
            return fake_refuse(c, FAKE_R_ACLNN_DTYPE_DIFFERS, ACLNN_INVALID, "'%s' is %s, 'out' is %s",
                               c->op->args[i].name, fake_dtype_name(c->arg[i].dtype),
                               fake_dtype_name(out->dtype));
        }
    }
    double n = c->arg[2].d != 0 ? ceil((c->arg[1].d - c->arg[0].d) / c->arg[2].d) : -1;
    if (n < 0) {
        return fake_refuse_value(c, "'step' never reaches 'end'");
    }
    return fake_want_dims(c, 3, 1, (int64_t[]){(int64_t)n});
}

static void run_arange(fake_call *c)
{
    const fake_view *out = fake_arg_view(c, 3);
    int64_t n = fake_view_count(out);
    double *x = fake_new_f64(c, n);
    for (int64_t i = 0; i < n; i++) {
        x[i] = c->arg[0].d + (double)i * c->arg[2].d;
    }
    fake_store_f64(out, x);
}

static const fake_operand arange[] = {SCALAR("start"), SCALAR("end"), SCALAR("step"),
                                      OUT("out", FAKE_NUMBERS)};
OP(Arange, ARGS(arange), .check = check_arange, .run = run_arange);
PHASE1(Arange, const aclScalar *start, const aclScalar *end, const aclScalar *step, aclTensor *out)
{
    PLAN(Arange, S(start), S(end), S(step), T(out));
}
PHASE2(Arange)

/* ---- Permute: self, dims, out ---- */

static int check_permute(fake_call *c)
{
    const fake_view *v = fake_arg_view(c, 0);
    int64_t dim[FAKE_RANK_MAX];
    unsigned seen = 0;
    if (c->arg[1].n != v->ndim) {
        return fake_refuse_shape(c, "'dims' should have %d entries", v->ndim);
    }
    for (int d = 0; d < v->ndim; d++) {
        int64_t *p = &c->arg[1].ints[d];
        *p += *p < 0 ? v->ndim : 0;
        if (*p < 0 || *p >= v->ndim || (seen & 1u << *p)) {
            return fake_refuse_value(c, "'dims' is no permutation");
        }
        seen |= 1u << *p;
        dim[d] = v->dim[*p];
    }
    TRY(fake_want_dims(c, 2, v->ndim, dim));
    return c->arg[2].view.dtype == v->dtype
               ? 0
               : fake_refuse(c, FAKE_R_ACLNN_DTYPE_DIFFERS, ACLNN_INVALID, "'out' is another dtype");
}

static void run_permute(fake_call *c)
{
    const fake_view *v = fake_arg_view(c, 0);
    fake_view p = *v;
    for (int d = 0; d < v->ndim; d++) {
        p.dim[d] = v->dim[c->arg[1].ints[d]];
        p.stride[d] = v->stride[c->arg[1].ints[d]];
    }
    convert(c, &p, fake_arg_view(c, 2));
}

static const fake_operand permute[] = {IN("self", FAKE_ANY), INTS("dims"), OUT("out", FAKE_ANY)};
OP(Permute, ARGS(permute), .check = check_permute, .run = run_permute);
PHASE1(Permute, const aclTensor *self, const aclIntArray *dims, aclTensor *out)
{
    PLAN(Permute, T(self), A(dims), T(out));
}
PHASE2(Permute)
