/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of bytes, whatever the dtype: transpose, slice, slice_grad, concat, flat_concat, kv_append. */
#include "backend/ref/ref.h"

/* Bytes of dims (dim, ndim) of t: what one step along `dim` skips. */
static size_t inner_bytes(const ct_tensor *t, int32_t dim)
{
    return (size_t)cti_ref_count(t, dim + 1, t->ndim) * ct_dtype_size_bytes(t->dtype);
}

ct_status cti_ref_transpose(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_attrs_transpose *attrs = launch->attrs;
    const ct_tensor *a = &launch->in[0], *y = &launch->out[0];
    const size_t size = ct_dtype_size_bytes(a->dtype);
    int64_t stride[CT_MAX_NDIM]; /* of a, in elements, in y's order of dims */
    for (int32_t d = 0; d < y->ndim; d++) {
        stride[d] = cti_ref_count(a, (int32_t)attrs->perm.items[d] + 1, a->ndim);
    }
    const int64_t n = cti_ref_numel(y);
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, from = 0;
        for (int32_t d = y->ndim - 1; d >= 0; d--) {
            from += rest % y->dims[d] * stride[d];
            rest /= y->dims[d];
        }
        memcpy((char *)y->data + (size_t)i * size, (const char *)a->data + (size_t)from * size, size);
    }
    return CT_OK;
}

ct_status cti_ref_slice(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_attrs_slice *attrs = launch->attrs;
    const ct_tensor *a = &launch->in[0], *y = &launch->out[0];
    const int32_t dim = (int32_t)attrs->dim;
    const size_t inner = inner_bytes(a, dim), part = (size_t)attrs->len * inner, whole = (size_t)a->dims[dim] * inner;
    const int64_t outer = cti_ref_count(a, 0, dim);
    for (int64_t i = 0; i < outer && part > 0; i++) {
        memcpy((char *)y->data + (size_t)i * part, (const char *)a->data + (size_t)i * whole + (size_t)attrs->start * inner,
               part);
    }
    return CT_OK;
}

ct_status cti_ref_slice_grad(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_attrs_slice_grad *attrs = launch->attrs;
    const ct_tensor *dy = &launch->in[0], *y = &launch->out[0];
    const int32_t dim = (int32_t)attrs->dim;
    const size_t inner = inner_bytes(y, dim), part = (size_t)dy->dims[dim] * inner, whole = (size_t)y->dims[dim] * inner;
    const int64_t outer = cti_ref_count(y, 0, dim);
    memset(y->data, 0, (size_t)outer * whole);
    for (int64_t i = 0; i < outer && part > 0; i++) {
        memcpy((char *)y->data + (size_t)i * whole + (size_t)attrs->start * inner, (const char *)dy->data + (size_t)i * part,
               part);
    }
    return CT_OK;
}

ct_status cti_ref_concat(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_attrs_concat *attrs = launch->attrs;
    const ct_tensor *y = &launch->out[0];
    const int32_t dim = (int32_t)attrs->dim;
    const size_t inner = inner_bytes(y, dim);
    const int64_t outer = cti_ref_count(y, 0, dim);
    char *to = y->data;
    for (int64_t i = 0; i < outer; i++) {
        for (int32_t k = 0; k < launch->n_in; k++) {
            const size_t part = (size_t)launch->in[k].dims[dim] * inner;
            if (part > 0) {
                memcpy(to, (const char *)launch->in[k].data + (size_t)i * part, part);
                to += part;
            }
        }
    }
    return CT_OK;
}

/* Inputs come in the order of their offsets; one may lie in its part of the output already. */
ct_status cti_ref_flat_concat(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_attrs_flat_concat *attrs = launch->attrs;
    const ct_tensor *flat = &launch->out[0];
    const size_t size = ct_dtype_size_bytes(flat->dtype);
    char *to = flat->data;
    size_t end = 0; /* bytes written so far */
    for (int32_t k = 0; k < launch->n_in; k++) {
        const size_t part = (size_t)cti_ref_numel(&launch->in[k]) * size, at = (size_t)attrs->offsets.items[k] * size;
        if (part == 0) {
            continue;
        }
        memset(to + end, 0, at - end);
        if (launch->in[k].data != to + at) {
            memcpy(to + at, launch->in[k].data, part);
        }
        end = at + part;
    }
    memset(to + end, 0, (size_t)cti_ref_numel(flat) * size - end);
    return CT_OK;
}

ct_status cti_ref_kv_append(const ct_launch *launch, ct_err *err)
{
    const ct_tensor *x = &launch->in[1], *cache = &launch->out[0];
    const int32_t start = *(const int32_t *)launch->in[2].data;
    if (start < 0) {
        return CT_FAIL(err, CT_ERR_RANGE, "kv_append: start is %d; it must be at least 0", (int)start);
    }
    const int64_t rows = cti_min_i64(x->dims[1], cti_max_i64(cache->dims[1] - start, 0));
    const size_t row = inner_bytes(x, 1), part = (size_t)x->dims[1] * row, whole = (size_t)cache->dims[1] * row;
    for (int64_t b = 0; b < x->dims[0] && rows > 0; b++) {
        memcpy((char *)cache->data + (size_t)b * whole + (size_t)start * row, (const char *)x->data + (size_t)b * part,
               (size_t)rows * row);
    }
    return CT_OK;
}
