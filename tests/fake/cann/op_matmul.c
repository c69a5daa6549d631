/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products: Mm, Matmul, BatchMatMul, Addmm, InplaceAddmm. Sums in float, one rounding to the output's
 * dtype. */
#include "nnop.h"
#include "op_gemm.h"

#include <string.h>

/* FLOAT16 with FLOAT is FLOAT; BFLOAT16 goes with itself only. UNDEFINED where there is none. */
static aclDataType promote(aclDataType a, aclDataType b)
{
    if (a == b) {
        return a;
    }
    return a == ACL_BF16 || b == ACL_BF16 ? ACL_DT_UNDEFINED : ACL_FLOAT;
}

/* Dtypes of the factors a and b and the output, and the way of computing. */
static int check_types(fake_call *c, int a, int b, int out, int cube)
{
    aclDataType x = c->arg[a].view.dtype, y = c->arg[b].view.dtype, r = promote(x, y),
                o = c->arg[out].view.dtype;
    int64_t mode = c->arg[cube].i;
    if (r == ACL_DT_UNDEFINED) {
        return fake_refuse(c, FAKE_R_ACLNN_PROMOTION, ACLNN_INVALID, "%s and %s can't be mixed",
                           fake_dtype_name(x), fake_dtype_name(y));
    }
    if (o != r) {
        return fake_refuse(c, FAKE_R_ACLNN_DTYPE_DIFFERS, ACLNN_INVALID, "the output is %s, wanted %s",
                           fake_dtype_name(o), fake_dtype_name(r));
    }
    if (mode < 0 || mode > (fake_version() >= 901 ? 4 : 3)) {
        return fake_refuse_value(c, "cubeMathType %lld does not exist", (long long)mode);
    }
    if ((mode == 2 && r == ACL_BF16) || (mode == 3 && r != ACL_FLOAT)) {
        return fake_refuse_value(c, "cubeMathType %lld does not go with %s", (long long)mode,
                                 fake_dtype_name(r));
    }
    if (mode == 0 && r == ACL_FLOAT && fake_soc_is("Ascend910A")) {
        return fake_refuse_value(c, "cubeMathType 0 with FLOAT does not exist on %s", fake_soc());
    }
    return 0;
}

static int check_mm(fake_call *c)
{
    const fake_view *a = fake_arg_view(c, 0), *b = fake_arg_view(c, 1);
    TRY(check_types(c, 0, 1, 2, 3));
    if (a->ndim != 2 || b->ndim != 2) {
        return fake_refuse_shape(c, "both factors should have 2 dims");
    }
    if (a->dim[1] != b->dim[0]) {
        return fake_refuse_shape(c, "the inner dims %lld and %lld differ", (long long)a->dim[1],
                                 (long long)b->dim[0]);
    }
    return fake_want_dims(c, 2, 2, (int64_t[]){a->dim[0], b->dim[1]});
}

static int check_bmm(fake_call *c)
{
    const fake_view *a = fake_arg_view(c, 0), *b = fake_arg_view(c, 1);
    TRY(check_types(c, 0, 1, 2, 3));
    if (a->ndim != 3 || b->ndim != 3) {
        return fake_refuse_shape(c, "both factors should have 3 dims");
    }
    if (a->dim[2] != b->dim[1] || (a->dim[0] != b->dim[0] && a->dim[0] != 1 && b->dim[0] != 1)) {
        return fake_refuse_shape(c, "the inner dims or the batches do not fit");
    }
    int64_t batch = a->dim[0] == 1 ? b->dim[0] : a->dim[0];
    return fake_want_dims(c, 2, 3, (int64_t[]){batch, a->dim[1], b->dim[2]});
}

/* A factor as a batch of matrices; `column`: a vector is one column, else one row. */
static fake_view as_matrix(const fake_view *v, bool column)
{
    fake_view r = *v;
    if (v->ndim == 1) {
        r.ndim = 2;
        r.dim[0] = column ? v->dim[0] : 1;
        r.dim[1] = column ? 1 : v->dim[0];
        r.stride[0] = column ? v->stride[0] : 0;
        r.stride[1] = column ? 0 : v->stride[0];
    }
    return r;
}

/* Dims of the product without those that vectors do not have; false where the factors do not fit. `batch`
 * gets the dims of the batch. */
static bool product_dims(const fake_view *a, const fake_view *b, int *ndim, int64_t *dim, int *nbatch,
                         int64_t *batch)
{
    fake_view x = as_matrix(a, false), y = as_matrix(b, true);
    int n = (x.ndim > y.ndim ? x.ndim : y.ndim) - 2;
    if (x.dim[x.ndim - 1] != y.dim[y.ndim - 2]) {
        return false;
    }
    for (int d = 0; d < n; d++) {
        int i = d - (n - (x.ndim - 2)), j = d - (n - (y.ndim - 2));
        int64_t p = i < 0 ? 1 : x.dim[i], q = j < 0 ? 1 : y.dim[j];
        if (p != q && p != 1 && q != 1) {
            return false;
        }
        batch[d] = dim[d] = p == 1 ? q : p;
    }
    *nbatch = *ndim = n;
    if (a->ndim > 1) {
        dim[(*ndim)++] = x.dim[x.ndim - 2];
    }
    if (b->ndim > 1) {
        dim[(*ndim)++] = y.dim[y.ndim - 1];
    }
    return true;
}

static int check_matmul(fake_call *c)
{
    const fake_view *a = fake_arg_view(c, 0), *b = fake_arg_view(c, 1);
    int ndim, nbatch;
    int64_t dim[FAKE_RANK_MAX + 2], batch[FAKE_RANK_MAX];
    TRY(check_types(c, 0, 1, 2, 3));
    if (a->ndim < 1 || b->ndim < 1 || a->ndim > 6 || b->ndim > 6) {
        return fake_refuse_shape(c, "the factors should have 1 to 6 dims");
    }
    if (!product_dims(a, b, &ndim, dim, &nbatch, batch)) {
        return fake_refuse_shape(c, "the inner dims or the batches do not fit");
    }
    return fake_want_dims(c, 2, ndim, dim);
}

/* FLOAT computed as HF32: 10 bits behind the point. How hardware rounds is not known; to the nearest here. */
static void to_hf32(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], 4);
        if ((bits & 0x7f800000u) != 0x7f800000u) {
            bits = (bits + 0xfffu + (bits >> 13 & 1)) & ~0x1fffu;
        }
        memcpy(&x[i], &bits, 4);
    }
}

/* The product of two batches of matrices, dense. */
static float *multiply(fake_call *c, const fake_view *a, const fake_view *b, int nbatch, const int64_t *batch,
                       int64_t mode)
{
    fake_view x = as_matrix(a, false), y = as_matrix(b, true);
    int64_t m = x.dim[x.ndim - 2], k = x.dim[x.ndim - 1], n = y.dim[y.ndim - 1], count = 1;
    int64_t xd[FAKE_RANK_MAX + 2], yd[FAKE_RANK_MAX + 2];
    for (int d = 0; d < nbatch; d++) {
        xd[d] = yd[d] = batch[d];
        count *= batch[d];
    }
    xd[nbatch] = m;
    xd[nbatch + 1] = yd[nbatch] = k;
    yd[nbatch + 1] = n;
    fake_view_broadcast(&x, nbatch + 2, xd, &x);
    fake_view_broadcast(&y, nbatch + 2, yd, &y);
    float *p = fake_scrap_raw(c, count * m * k, sizeof *p), *q = fake_scrap_raw(c, count * k * n, sizeof *q);
    float *r = fake_scrap_raw(c, count * m * n, sizeof *r);
    fake_load_f32(&x, p);
    fake_load_f32(&y, q);
    bool is_float = a->dtype == ACL_FLOAT || b->dtype == ACL_FLOAT;
    if (is_float && (mode == 1 || mode == 3)) {
        to_hf32(p, count * m * k);
        to_hf32(q, count * k * n);
    }
    for (int64_t i = 0; i < count; i++) {
        op_gemm(m, n, k, p + i * m * k, q + i * k * n, r + i * m * n);
    }
    return r;
}

static void run_matmul(fake_call *c)
{
    const fake_view *a = fake_arg_view(c, 0), *b = fake_arg_view(c, 1);
    int ndim, nbatch;
    int64_t dim[FAKE_RANK_MAX + 2], batch[FAKE_RANK_MAX];
    product_dims(a, b, &ndim, dim, &nbatch, batch);
    fake_store_f32(fake_arg_view(c, 2), multiply(c, a, b, nbatch, batch, c->arg[3].i));
}

/* Addmm: self, mat1, mat2, beta, alpha, out, cubeMathType; InplaceAddmm is without out. */
static int check_addmm(fake_call *c)
{
    bool in_place = c->op->code;
    int out = in_place ? 0 : 5;
    const fake_view *self = fake_arg_view(c, 0), *a = fake_arg_view(c, 1), *b = fake_arg_view(c, 2);
    fake_view wide;
    TRY(check_types(c, 1, 2, out, in_place ? 5 : 6));
    if (promote(self->dtype, a->dtype) == ACL_DT_UNDEFINED) {
        return fake_refuse(c, FAKE_R_ACLNN_PROMOTION, ACLNN_INVALID, "'self' is %s",
                           fake_dtype_name(self->dtype));
    }
    if (a->ndim != 2 || b->ndim != 2 || a->dim[1] != b->dim[0]) {
        return fake_refuse_shape(c, "'mat1' and 'mat2' should be matrices with one inner dim");
    }
    int64_t dim[2] = {a->dim[0], b->dim[1]};
    TRY(fake_want_dims(c, out, 2, dim));
    if (!fake_view_broadcast(self, 2, dim, &wide)) {
        return fake_refuse_shape(c, "'self' can't be broadcast to (%lld,%lld)", (long long)dim[0],
                                 (long long)dim[1]);
    }
    return 0;
}

static void run_addmm(fake_call *c)
{
    bool in_place = c->op->code;
    const fake_view *a = fake_arg_view(c, 1), *b = fake_arg_view(c, 2);
    int64_t dim[2] = {a->dim[0], b->dim[1]}, n = dim[0] * dim[1];
    float *r = multiply(c, a, b, 0, NULL, c->arg[in_place ? 5 : 6].i), *s = fake_new_f32(c, n);
    fake_view wide;
    fake_view_broadcast(fake_arg_view(c, 0), 2, dim, &wide);
    fake_load_f32(&wide, s);
    float beta = (float)c->arg[3].d, alpha = (float)c->arg[4].d;
    for (int64_t i = 0; i < n; i++) {
        r[i] = beta * s[i] + alpha * r[i];
    }
    fake_store_f32(fake_arg_view(c, in_place ? 0 : 5), r);
}

static const fake_operand product[] = {IN("self", FAKE_FLOAT3), IN("mat2", FAKE_FLOAT3),
                                       OUT("out", FAKE_FLOAT3), INT("cubeMathType")};
static const fake_operand sum[] = {IN("self", FAKE_FLOAT3), IN("mat1", FAKE_FLOAT3), IN("mat2", FAKE_FLOAT3),
                                   SCALAR("beta"),          SCALAR("alpha"),         OUT("out", FAKE_FLOAT3),
                                   INT("cubeMathType")};
static const fake_operand sum_in_place[] = {REF("selfRef", FAKE_FLOAT3),
                                            IN("mat1", FAKE_FLOAT3),
                                            IN("mat2", FAKE_FLOAT3),
                                            SCALAR("beta"),
                                            SCALAR("alpha"),
                                            INT("cubeMathType")};

#define PRODUCT(Name, check_)                                                                       \
    OP(Name, ARGS(product), .check = check_, .run = run_matmul);                                    \
    PHASE1(Name, const aclTensor *self, const aclTensor *mat2, aclTensor *out, int8_t cubeMathType) \
    {                                                                                               \
        PLAN(Name, T(self), T(mat2), T(out), I(cubeMathType));                                      \
    }                                                                                               \
    PHASE2(Name)
PRODUCT(Mm, check_mm)
PRODUCT(Matmul, check_matmul)
PRODUCT(BatchMatMul, check_bmm)

OP(Addmm, ARGS(sum), .check = check_addmm, .run = run_addmm, .code = 0);
PHASE1(Addmm, const aclTensor *self, const aclTensor *mat1, const aclTensor *mat2, const aclScalar *beta,
       const aclScalar *alpha, aclTensor *out, int8_t cubeMathType)
{
    PLAN(Addmm, T(self), T(mat1), T(mat2), S(beta), S(alpha), T(out), I(cubeMathType));
}
PHASE2(Addmm)

OP(InplaceAddmm, ARGS(sum_in_place), .check = check_addmm, .run = run_addmm, .code = 1);
PHASE1(InplaceAddmm, const aclTensor *selfRef, const aclTensor *mat1, const aclTensor *mat2,
       const aclScalar *beta, const aclScalar *alpha, int8_t cubeMathType)
{
    PLAN(InplaceAddmm, T(selfRef), T(mat1), T(mat2), S(beta), S(alpha), I(cubeMathType));
}
PHASE2(InplaceAddmm)
