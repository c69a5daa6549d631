/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise ops of two operands: tensor and tensor, tensor and scalar, in place. Computed in double
 * (integers: int64), rounded to the promoted dtype, then cast to the output's. */
#include "op_promote.h"

#include <math.h>

enum {
    ADD,
    SUB,
    MUL,
    DIV,
    MINIMUM,
    MAXIMUM,
    AND,
    OR,
    EQ,
    NE,
    LT,
    LE,
    GT,
    GE,
    KIND = 31,
    ALPHA = 32,
    IN_PLACE = 64,
    BY_SCALAR = 128
};

static bool is_logical(int kind)
{
    return kind >= AND;
}

static int out_of(const fake_call *c)
{
    int code = c->op->code;
    return code & IN_PLACE ? 0 : code & ALPHA ? 3 : 2;
}

/* The dtype in which elements meet. */
static aclDataType meeting(const fake_call *c)
{
    aclDataType a = c->arg[0].view.dtype;
    return c->op->code & BY_SCALAR ? op_promote_scalar(a, c->arg[1].dtype)
                                   : op_promote(a, c->arg[1].view.dtype);
}

/* The dtype of the result, before it is cast. */
static aclDataType result(const fake_call *c)
{
    int kind = c->op->code & KIND;
    aclDataType t = meeting(c);
    if (is_logical(kind)) {
        return ACL_BOOL;
    }
    return kind == DIV && !fake_dtype_is_float(t) ? ACL_FLOAT : t;
}

static int check_binary(fake_call *c)
{
    int code = c->op->code, out = out_of(c), ndim = c->arg[0].view.ndim;
    int64_t dim[FAKE_RANK_MAX];
    if (meeting(c) == ACL_DT_UNDEFINED) {
        return op_want_castable(c, ACL_DT_UNDEFINED, out);
    }
    TRY(op_want_castable(c, result(c), out));
    if ((code & ALPHA) && fake_dtype_is_float(c->arg[2].dtype) && !fake_dtype_is_float(meeting(c))) {
        return fake_refuse(c, FAKE_R_ACLNN_PROMOTION, ACLNN_INVALID,
                           "'alpha' is %s, which can't be cast to %s", fake_dtype_name(c->arg[2].dtype),
                           fake_dtype_name(meeting(c)));
    }
    if (code & BY_SCALAR) {
        return fake_want_dims_of(c, out, 0);
    }
    if (!op_broadcast_dims(&c->arg[0].view, &c->arg[1].view, &ndim, dim)) {
        return fake_refuse_shape(c, "'self' and 'other' do not broadcast");
    }
    return fake_want_dims(c, out, ndim, dim);
}

static double compute(int kind, double x, double y)
{
    switch (kind) {
    case ADD:
        return x + y;
    case SUB:
        return x - y;
    case MUL:
        return x * y;
    case DIV:
        return x / y;
    case MINIMUM:
        return isnan(x) || isnan(y) ? x + y : x < y ? x : y;
    case MAXIMUM:
        return isnan(x) || isnan(y) ? x + y : x > y ? x : y;
    case AND:
        return x != 0 && y != 0;
    case OR:
        return x != 0 || y != 0;
    case EQ:
        return x == y;
    case NE:
        return x != y;
    case LT:
        return x < y;
    case LE:
        return x <= y;
    case GT:
        return x > y;
    case GE:
        return x >= y;
    }
    return 0;
}

static int64_t compute_int(int kind, int64_t x, int64_t y)
{
    switch (kind) {
    case ADD:
        return (int64_t)((uint64_t)x + (uint64_t)y);
    case SUB:
        return (int64_t)((uint64_t)x - (uint64_t)y);
    case MUL:
        return (int64_t)((uint64_t)x * (uint64_t)y);
    case MINIMUM:
        return x < y ? x : y;
    case MAXIMUM:
        return x > y ? x : y;
    case AND:
        return x != 0 && y != 0;
    case OR:
        return x != 0 || y != 0;
    case EQ:
        return x == y;
    case NE:
        return x != y;
    case LT:
        return x < y;
    case LE:
        return x <= y;
    case GT:
        return x > y;
    case GE:
        return x >= y;
    }
    return 0;
}

/* Integers wrap in their own width, as two's complement does. */
static int64_t wrap(int64_t x, aclDataType t)
{
    switch ((int)t) {
    case ACL_INT8:
        return (int8_t)x;
    case ACL_UINT8:
        return (uint8_t)x;
    case ACL_INT16:
        return (int16_t)x;
    case ACL_INT32:
        return (int32_t)x;
    case ACL_BOOL:
        return x != 0;
    }
    return x;
}

static void run_int(fake_call *c, const fake_view *a, const fake_view *b, int64_t n)
{
    int code = c->op->code, kind = code & KIND;
    int64_t *x = fake_scrap_new(c, n, sizeof *x), *y = fake_scrap_new(c, n, sizeof *y);
    fake_load_i64(a, x);
    if (b) {
        fake_load_i64(b, y);
    }
    int64_t alpha = code & ALPHA ? c->arg[2].i : 1;
    for (int64_t i = 0; i < n; i++) {
        int64_t o = b ? y[i] : c->arg[1].i;
        x[i] = wrap(compute_int(kind, x[i], code & ALPHA ? (int64_t)((uint64_t)o * (uint64_t)alpha) : o),
                    result(c));
    }
    fake_store_i64(fake_arg_view(c, out_of(c)), x);
}

/* Results of BOOL and of DIV beside them, from floats that the dtype at hand has. */
static void run_double(fake_call *c, const fake_view *a, const fake_view *b, int64_t n)
{
    int code = c->op->code, kind = code & KIND;
    aclDataType meet = meeting(c);
    double *x = fake_new_f64(c, n), *y = fake_new_f64(c, n), alpha = code & ALPHA ? c->arg[2].d : 1;
    fake_load_f64(a, x);
    if (b) {
        fake_load_f64(b, y);
    } else {
        double s = fake_round(c->arg[1].d, fake_dtype_is_float(meet) ? meet : ACL_FLOAT);
        for (int64_t i = 0; i < n; i++) {
            y[i] = s;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        x[i] = compute(kind, x[i], code & ALPHA ? alpha * y[i] : y[i]);
    }
    op_store_f64(c, x, n, result(c), fake_arg_view(c, out_of(c)));
}

/* The four that a step is full of, in float. */
static bool run_float(fake_call *c, const fake_view *a, const fake_view *b, int64_t n)
{
    int code = c->op->code, kind = code & KIND;
    aclDataType meet = meeting(c);
    if (kind > DIV || !fake_dtype_is_float(meet) || meet == ACL_DOUBLE) {
        return false;
    }
    float *x = fake_scrap_raw(c, n, sizeof *x), *y = fake_scrap_raw(c, n, sizeof *y),
          alpha = code & ALPHA ? (float)c->arg[2].d : 1;
    fake_load_f32(a, x);
    if (b) {
        fake_load_f32(b, y);
    }
    float s = (float)fake_round(c->arg[1].d, meet);
    for (int64_t i = 0; !b && i < n; i++) {
        y[i] = s;
    }
    alpha = kind == SUB ? -alpha : alpha;
    if (kind == MUL) {
        for (int64_t i = 0; i < n; i++) {
            x[i] *= y[i];
        }
    } else if (kind == DIV) {
        for (int64_t i = 0; i < n; i++) {
            x[i] /= y[i];
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            x[i] += alpha * y[i];
        }
    }
    op_store_f32(c, x, n, result(c), fake_arg_view(c, out_of(c)));
    return true;
}

static void run_binary(fake_call *c)
{
    int ndim = c->arg[0].view.ndim;
    int64_t dim[FAKE_RANK_MAX];
    fake_view a = c->arg[0].view, b = c->arg[1].view;
    bool by_scalar = c->op->code & BY_SCALAR;
    if (!by_scalar) {
        op_broadcast_dims(&a, &b, &ndim, dim);
        fake_view_broadcast(&c->arg[0].view, ndim, dim, &a);
        fake_view_broadcast(&c->arg[1].view, ndim, dim, &b);
    }
    int64_t n = fake_view_count(&a);
    if (!fake_dtype_is_float(meeting(c)) && (c->op->code & KIND) != DIV) {
        run_int(c, &a, by_scalar ? NULL : &b, n);
    } else if (!run_float(c, &a, by_scalar ? NULL : &b, n)) {
        run_double(c, &a, by_scalar ? NULL : &b, n);
    }
}

#define ELEMENTS (FAKE_NUMBERS | FAKE_SET(ACL_BOOL))
static const fake_operand two[] = {IN("self", ELEMENTS), IN("other", ELEMENTS), OUT("out", ELEMENTS)};
static const fake_operand two_alpha[] = {IN("self", ELEMENTS), IN("other", ELEMENTS), SCALAR("alpha"),
                                         OUT("out", ELEMENTS)};
static const fake_operand two_in_place[] = {REF("selfRef", ELEMENTS), IN("other", ELEMENTS)};
static const fake_operand two_alpha_in_place[] = {REF("selfRef", ELEMENTS), IN("other", ELEMENTS),
                                                  SCALAR("alpha")};
static const fake_operand scalar[] = {IN("self", ELEMENTS), SCALAR("other"), OUT("out", ELEMENTS)};
static const fake_operand scalar_alpha[] = {IN("self", ELEMENTS), SCALAR("other"), SCALAR("alpha"),
                                            OUT("out", ELEMENTS)};
static const fake_operand scalar_in_place[] = {REF("selfRef", ELEMENTS), SCALAR("other")};
static const fake_operand scalar_alpha_in_place[] = {REF("selfRef", ELEMENTS), SCALAR("other"),
                                                     SCALAR("alpha")};

#define BINARY_OP(Name, list, code_)                                                \
    OP(Name, ARGS(list), .code = (code_), .check = check_binary, .run = run_binary, \
       .flags = FAKE_OP_ELEMENTWISE)

#define TWO(Name, kind)                                                         \
    BINARY_OP(Name, two, kind);                                                 \
    PHASE1(Name, const aclTensor *self, const aclTensor *other, aclTensor *out) \
    {                                                                           \
        PLAN(Name, T(self), T(other), T(out));                                  \
    }                                                                           \
    PHASE2(Name)
#define TWO_ALPHA(Name, kind)                                                                           \
    BINARY_OP(Name, two_alpha, kind | ALPHA);                                                           \
    PHASE1(Name, const aclTensor *self, const aclTensor *other, const aclScalar *alpha, aclTensor *out) \
    {                                                                                                   \
        PLAN(Name, T(self), T(other), S(alpha), T(out));                                                \
    }                                                                                                   \
    PHASE2(Name)
#define TWO_IN_PLACE(Name, kind)                             \
    BINARY_OP(Name, two_in_place, kind | IN_PLACE);          \
    PHASE1(Name, aclTensor *selfRef, const aclTensor *other) \
    {                                                        \
        PLAN(Name, T(selfRef), T(other));                    \
    }                                                        \
    PHASE2(Name)
#define TWO_ALPHA_IN_PLACE(Name, kind)                                                     \
    BINARY_OP(Name, two_alpha_in_place, kind | IN_PLACE | ALPHA);                          \
    PHASE1(Name, const aclTensor *selfRef, const aclTensor *other, const aclScalar *alpha) \
    {                                                                                      \
        PLAN(Name, T(selfRef), T(other), S(alpha));                                        \
    }                                                                                      \
    PHASE2(Name)
#define BY(Name, kind)                                                          \
    BINARY_OP(Name, scalar, kind | BY_SCALAR);                                  \
    PHASE1(Name, const aclTensor *self, const aclScalar *other, aclTensor *out) \
    {                                                                           \
        PLAN(Name, T(self), S(other), T(out));                                  \
    }                                                                           \
    PHASE2(Name)
#define BY_ALPHA(Name, kind)                                                                            \
    BINARY_OP(Name, scalar_alpha, kind | BY_SCALAR | ALPHA);                                            \
    PHASE1(Name, const aclTensor *self, const aclScalar *other, const aclScalar *alpha, aclTensor *out) \
    {                                                                                                   \
        PLAN(Name, T(self), S(other), S(alpha), T(out));                                                \
    }                                                                                                   \
    PHASE2(Name)
#define BY_IN_PLACE(Name, kind)                                    \
    BINARY_OP(Name, scalar_in_place, kind | BY_SCALAR | IN_PLACE); \
    PHASE1(Name, aclTensor *selfRef, const aclScalar *other)       \
    {                                                              \
        PLAN(Name, T(selfRef), S(other));                          \
    }                                                              \
    PHASE2(Name)
#define BY_ALPHA_IN_PLACE(Name, kind)                                                      \
    BINARY_OP(Name, scalar_alpha_in_place, kind | BY_SCALAR | ALPHA | IN_PLACE);           \
    PHASE1(Name, const aclTensor *selfRef, const aclScalar *other, const aclScalar *alpha) \
    {                                                                                      \
        PLAN(Name, T(selfRef), S(other), S(alpha));                                        \
    }                                                                                      \
    PHASE2(Name)

TWO_ALPHA(Add, ADD)
TWO_ALPHA(Sub, SUB)
TWO_ALPHA_IN_PLACE(InplaceAdd, ADD)
TWO_ALPHA_IN_PLACE(InplaceSub, SUB)
TWO(Mul, MUL)
TWO(Div, DIV)
TWO(Minimum, MINIMUM)
TWO(Maximum, MAXIMUM)
TWO(LogicalAnd, AND)
TWO(LogicalOr, OR)
TWO(EqTensor, EQ)
TWO(NeTensor, NE)
TWO(LtTensor, LT)
TWO(LeTensor, LE)
TWO(GtTensor, GT)
TWO(GeTensor, GE)
TWO_IN_PLACE(InplaceMul, MUL)
TWO_IN_PLACE(InplaceDiv, DIV)
BY_ALPHA(Adds, ADD)
BY_ALPHA(Subs, SUB)
BY_ALPHA_IN_PLACE(InplaceAdds, ADD)
BY(Muls, MUL)
BY(Divs, DIV)
BY_IN_PLACE(InplaceMuls, MUL)
BY_IN_PLACE(InplaceDivs, DIV)
BY(EqScalar, EQ)
BY(NeScalar, NE)
BY(LtScalar, LT)
BY(LeScalar, LE)
BY(GtScalar, GT)
BY(GeScalar, GE)
