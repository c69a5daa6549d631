/* SPDX-License-Identifier: Apache-2.0 */
/* Views of device memory, and their descriptors. */
#include <stdio.h>
#include <string.h>

#include "backend/npu/npu_seq.h"

aclDataType cti_npu_dtype(ct_dtype dtype)
{
    switch (dtype) {
    case CT_DTYPE_F32:
        return ACL_FLOAT;
    case CT_DTYPE_BF16:
        return ACL_BF16;
    case CT_DTYPE_F16:
        return ACL_FLOAT16;
    case CT_DTYPE_F64:
        return ACL_DOUBLE;
    case CT_DTYPE_I32:
        return ACL_INT32;
    case CT_DTYPE_I64:
        return ACL_INT64;
    case CT_DTYPE_U8:
        return ACL_UINT8;
    case CT_DTYPE_COUNT:
        break;
    }
    return ACL_DT_UNDEFINED;
}

size_t cti_npu_dtype_bytes(aclDataType dtype)
{
    switch (dtype) {
    case ACL_INT8:
    case ACL_UINT8:
    case ACL_BOOL:
        return 1;
    case ACL_FLOAT16:
    case ACL_BF16:
        return 2;
    case ACL_FLOAT:
    case ACL_INT32:
        return 4;
    case ACL_INT64:
    case ACL_DOUBLE:
        return 8;
    case ACL_DT_UNDEFINED:
        break;
    }
    return 1;
}

int64_t cti_npu_count(const ct_tensor *t)
{
    int64_t n = 1;
    for (int32_t d = 0; d < t->ndim; d++) {
        n *= t->dims[d];
    }
    return n;
}

int64_t cti_npu_last(const ct_tensor *t)
{
    return t->ndim > 0 ? t->dims[t->ndim - 1] : 1;
}

int64_t cti_npu_n_rows(const ct_tensor *t)
{
    int64_t n = 1;
    for (int32_t d = 0; d + 1 < t->ndim; d++) {
        n *= t->dims[d];
    }
    return n;
}

int64_t cti_npu_numel(const cti_npu_view *v)
{
    int64_t n = 1;
    for (int32_t d = 0; d < v->ndim; d++) {
        n *= v->dims[d];
    }
    return n;
}

cti_npu_view cti_npu_as(cti_npu_view v, int32_t ndim, const int64_t *dims)
{
    int64_t stride = 1;
    v.ndim = ndim;
    for (int32_t d = ndim - 1; d >= 0; d--) {
        v.dims[d] = dims[d];
        v.strides[d] = stride;
        stride *= dims[d];
    }
    return v;
}

cti_npu_view cti_npu_part(cti_npu_view v, int64_t offset, int32_t ndim, const int64_t *dims)
{
    v.offset += offset;
    return cti_npu_as(v, ndim, dims);
}

cti_npu_view cti_npu_strided(cti_npu_view v, int64_t offset, int32_t ndim, const int64_t *dims, const int64_t *strides)
{
    v.offset += offset;
    v.ndim = ndim;
    memcpy(v.dims, dims, (size_t)ndim * sizeof *dims);
    memcpy(v.strides, strides, (size_t)ndim * sizeof *strides);
    return v;
}

cti_npu_view cti_npu_of(const ct_tensor *t)
{
    const cti_npu_view v = {.data = t->data, .dtype = cti_npu_dtype(t->dtype)};
    return cti_npu_as(v, t->ndim, t->dims);
}

cti_npu_view cti_npu_flat(const ct_tensor *t)
{
    return cti_npu_as(cti_npu_of(t), NPU_DIMS(cti_npu_count(t)));
}

cti_npu_view cti_npu_rows(const ct_tensor *t)
{
    return cti_npu_as(cti_npu_of(t), NPU_DIMS(cti_npu_n_rows(t), cti_npu_last(t)));
}

cti_npu_view cti_npu_t(cti_npu_view v)
{
    const int32_t a = v.ndim - 2, b = v.ndim - 1;
    const int64_t dim = v.dims[a], stride = v.strides[a];
    v.dims[a] = v.dims[b];
    v.strides[a] = v.strides[b];
    v.dims[b] = dim;
    v.strides[b] = stride;
    return v;
}

/* CANN wants addresses at multiples of 32 bytes: the rest goes into the offset. The storage is one dim that holds the view. */
const aclTensor *cti_npu_tensor(cti_npu_seq *s, cti_npu_view v)
{
    enum { ALIGN = 32 };
    const size_t size = cti_npu_dtype_bytes(v.dtype), above = (uintptr_t)v.data % ALIGN;
    int64_t extent = 1;
    if (s->st != CT_OK) {
        return NULL;
    }
    CT_ASSERT(s->n_tensors < CTI_NPU_MAX_TENSORS);
    for (int32_t d = 0; d < v.ndim; d++) {
        extent = v.dims[d] == 0 ? 0 : extent + (v.dims[d] - 1) * v.strides[d];
        if (extent == 0) {
            break;
        }
    }
    if (above % size != 0) {
        NPU_FAIL(s, CT_ERR_STATE, "%s: a tensor lies at %p, not at a multiple of its elements' %zu bytes", s->op, v.data, size);
        return NULL;
    }
    v.data = v.data != NULL ? (char *)v.data - above : NULL;
    v.offset += (int64_t)(above / size);
    const int64_t storage = v.offset + extent;
    const aclTensor *t = s->cann->aclCreateTensor(v.dims, (uint64_t)v.ndim, v.dtype, v.strides, v.offset, ACL_FORMAT_ND, &storage, 1, v.data);
    if (t == NULL) {
        cti_npu_stop(s, cti_aclnn_fail(s->cann, ACL_ERROR_BAD_ALLOC, s->err, "npu: aclCreateTensor for %s", s->op));
        return NULL;
    }
    s->views[s->n_tensors] = v;
    s->tensors[s->n_tensors++] = t;
    return t;
}

const aclScalar *cti_npu_scalar(cti_npu_seq *s, aclDataType dtype, double value)
{
    const float f32 = (float)value;
    const bool is_integer = dtype == ACL_INT32 || dtype == ACL_INT64;
    int64_t i64 = is_integer ? (int64_t)value : 0; /* of an infinity there is none */
    int32_t i32 = (int32_t)i64;
    if (s->st != CT_OK) {
        return NULL;
    }
    CT_ASSERT(s->n_scalars < CTI_NPU_MAX_SCALARS);
    const aclScalar *scalar = s->cann->aclCreateScalar(
        dtype == ACL_FLOAT ? (void *)&f32 : dtype == ACL_INT32 ? (void *)&i32 : dtype == ACL_INT64 ? (void *)&i64 : (void *)&value,
        dtype == ACL_FLOAT || dtype == ACL_INT32 || dtype == ACL_INT64 ? dtype : ACL_DOUBLE);
    if (scalar == NULL) {
        cti_npu_stop(s, cti_aclnn_fail(s->cann, ACL_ERROR_BAD_ALLOC, s->err, "npu: aclCreateScalar for %s", s->op));
        return NULL;
    }
    s->scalars[s->n_scalars++] = scalar;
    return scalar;
}

const aclIntArray *cti_npu_array(cti_npu_seq *s, const int64_t *values, int64_t n)
{
    if (s->st != CT_OK) {
        return NULL;
    }
    CT_ASSERT(s->n_arrays < CTI_NPU_MAX_ARRAYS);
    const aclIntArray *array = s->cann->aclCreateIntArray(values, (uint64_t)n);
    if (array == NULL) {
        cti_npu_stop(s, cti_aclnn_fail(s->cann, ACL_ERROR_BAD_ALLOC, s->err, "npu: aclCreateIntArray for %s", s->op));
        return NULL;
    }
    s->arrays[s->n_arrays++] = array;
    return array;
}
