/* SPDX-License-Identifier: Apache-2.0 */
/* What every kernel file of this folder uses: the kernels' prototypes, made from the support table, and checks of operands. */
#ifndef CTI_BACKEND_CPU_ISA_CPU_KERNEL_H
#define CTI_BACKEND_CPU_ISA_CPU_KERNEL_H

#include "backend/cpu/isa/cpu_simd.h"
#include "backend/cpu/support.h"
#include "ctitan/backend.h"

#define CTI_CPU_HAVE_PROTO(op, types) ct_status CTI_CPU_FN(op)(const ct_launch *launch, ct_err *err);
#define CTI_CPU_SCRATCH_PROTO(op, types)                                                                             \
    ct_status CTI_CPU_FN(op)(const ct_launch *launch, ct_err *err);                                                  \
    size_t CTI_CPU_PASTE(CTI_CPU_FN(op), workspace)(const ct_launch *shapes);
#define CTI_CPU_NONE_PROTO(op, reason)
CTI_CPU_SUPPORT(CTI_CPU_HAVE_PROTO, CTI_CPU_SCRATCH_PROTO, CTI_CPU_NONE_PROTO)

/* cpu_internal.h's, of this level. */
double CTI_CPU_FN(fma_loop)(int64_t n);
double CTI_CPU_FN(dot_loop)(int64_t n);

/* The name of a workspace function of this level: cti_cpu_matmul_v3_workspace. */
#define CTI_CPU_WORKSPACE(op) CTI_CPU_PASTE(CTI_CPU_FN(op), workspace)

/* swiglu of columns [j0, j0 + n) of rows [i0, i0 + m) of y, from a gu that lies in a cache. */
void CTI_CPU_FN(swiglu_tile)(const ct_tensor *gu, const ct_tensor *y, int64_t i0, int64_t m, int64_t j0, int64_t n);

/* Elements that a pointwise loop holds in its buffers at a time. */
enum { CTI_BLOCK = 1024 };

CTI_INLINE int64_t t_numel(const ct_tensor *t)
{
    int64_t n = 1;
    for (int32_t i = 0; i < t->ndim; i++) {
        n *= t->dims[i]; /* checked when the graph was made */
    }
    return n;
}
CTI_INLINE int64_t t_last(const ct_tensor *t)
{
    return t->ndim > 0 ? t->dims[t->ndim - 1] : 1;
}
CTI_INLINE int64_t t_rows(const ct_tensor *t)
{
    int64_t n = 1;
    for (int32_t i = 0; i + 1 < t->ndim; i++) {
        n *= t->dims[i];
    }
    return n;
}
CTI_INLINE bool t_absent(const ct_tensor *t)
{
    return t->ndim < 0;
}

/* Turns of a loop that one thread takes at a time, where one turn touches so many elements: a share of at least 32 KiB of f32. */
CTI_INLINE int64_t grain_of(int64_t elements)
{
    return elements < 8192 ? 8192 / cti_max_i64(1, elements) : 1;
}

/* ERR_UNSUPPORTED unless every one of the first n tensors that is present is f32 or bf16. */
CTI_INLINE ct_status check_floats(const char *op, const char *side, const ct_tensor *t, int n, ct_err *err)
{
    for (int i = 0; i < n; i++) {
        if (!t_absent(&t[i]) && t[i].dtype != CT_DTYPE_F32 && t[i].dtype != CT_DTYPE_BF16) {
            return CT_FAIL(err, CT_ERR_UNSUPPORTED, "cpu: %s takes f32 and bf16, its %s %d is %s", op, side, i,
                           ct_dtype_name(t[i].dtype));
        }
    }
    return CT_OK;
}
CTI_INLINE ct_status check_scratch(const char *op, const ct_launch *launch, size_t need, ct_err *err)
{
    if (launch->workspace_bytes < need) {
        return CT_FAIL(err, CT_ERR_STATE, "cpu: %s needs %zu bytes of workspace, it got %zu", op, need,
                       launch->workspace_bytes);
    }
    return CT_OK;
}

#endif
