/* SPDX-License-Identifier: Apache-2.0 */
/* Dtypes and dims of elementwise results. */
#include "op_promote.h"

static int category(aclDataType t)
{
    return fake_dtype_is_float(t) ? 2 : t == ACL_BOOL ? 0 : 1;
}

static bool is_unsigned(aclDataType t)
{
    return t == ACL_UINT8 || t == ACL_UINT16 || t == ACL_UINT32 || t == ACL_UINT64;
}

aclDataType op_promote(aclDataType a, aclDataType b)
{
    if (a == b) {
        return a;
    }
    if (category(a) != category(b)) {
        return category(a) > category(b) ? a : b;
    }
    if (category(a) == 2) {
        return a == ACL_DOUBLE || b == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT;
    }
    size_t x = fake_dtype_size(a), y = fake_dtype_size(b);
    if (is_unsigned(a) == is_unsigned(b)) {
        return x > y ? a : b;
    }
    size_t u = is_unsigned(a) ? x : y, s = is_unsigned(a) ? y : x;
    if (s > u) {
        return x > y ? a : b;
    }
    return u == 1 ? ACL_INT16 : u == 2 ? ACL_INT32 : u == 4 ? ACL_INT64 : ACL_DT_UNDEFINED;
}

aclDataType op_promote_scalar(aclDataType tensor, aclDataType scalar)
{
    if (category(scalar) <= category(tensor)) {
        return tensor;
    }
    return category(scalar) == 2 ? ACL_FLOAT : scalar;
}

bool op_castable(aclDataType from, aclDataType to)
{
    return category(to) >= category(from) || category(from) == 0;
}

int op_want_castable(fake_call *c, aclDataType from, int out)
{
    aclDataType to = c->arg[out].view.dtype;
    if (from == ACL_DT_UNDEFINED) {
        return fake_refuse(c, FAKE_R_ACLNN_PROMOTION, ACLNN_INVALID, "the dtypes do not promote to one");
    }
    if (!op_castable(from, to)) {
        return fake_refuse(c, FAKE_R_ACLNN_PROMOTION, ACLNN_INVALID, "a result of %s can't be cast to %s",
                           fake_dtype_name(from), fake_dtype_name(to));
    }
    return 0;
}

bool op_broadcast_dims(const fake_view *a, const fake_view *b, int *ndim, int64_t *dim)
{
    int n = a->ndim > b->ndim ? a->ndim : b->ndim;
    for (int d = 0; d < n; d++) {
        int i = d - (n - a->ndim), j = d - (n - b->ndim);
        int64_t x = i < 0 ? 1 : a->dim[i], y = j < 0 ? 1 : b->dim[j];
        if (x != y && x != 1 && y != 1) {
            return false;
        }
        dim[d] = x == 1 ? y : x;
    }
    *ndim = n;
    return true;
}

void op_store_f64(fake_call *c, double *x, int64_t n, aclDataType mid, const fake_view *out)
{
    if (mid != out->dtype && mid != ACL_BOOL) {
        fake_view v = fake_view_dense(mid, 1, &n, fake_scrap_new(c, n, fake_dtype_size(mid)));
        fake_store_f64(&v, x);
        fake_load_f64(&v, x);
    }
    fake_store_f64(out, x);
}

void op_store_f32(fake_call *c, float *x, int64_t n, aclDataType mid, const fake_view *out)
{
    if (mid != out->dtype && mid != ACL_FLOAT) {
        fake_view v = fake_view_dense(mid, 1, &n, fake_scrap_new(c, n, fake_dtype_size(mid)));
        fake_store_f32(&v, x);
        fake_load_f32(&v, x);
    }
    fake_store_f32(out, x);
}
