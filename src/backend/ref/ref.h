/* SPDX-License-Identifier: Apache-2.0 */
/* The reference backend: the meaning of each op in plain loops, and the oracle of all other backends.
 *
 *     const ct_backend *ref = ct_backend_ref();
 *
 * It is right, not fast: one thread, one accessor for all dtypes, sums in f64 from the first to the last element. What the op
 * list leaves open is settled here, so that EXACT ops have the same bits everywhere:
 *
 *  - A store rounds to f32 first and from there to bf16 (both to nearest, ties to even), since that is what hardware with f32
 *    registers does. cast(f64 -> bf16) goes the same way.
 *  - add, mul, scale, accumulate on f32 and bf16 are one f32 operation and then the store; scale's alpha is rounded to f32
 *    first; accumulate rounds x to acc's dtype first. On f64 they are one f64 operation. A sum or product of two floats in
 *    f64, rounded to f32, is that f32 operation (53 >= 2 * 24 + 2 bits), which is why the loops below may use doubles.
 *  - rope and rotary_mul are float operations in the order the op list writes them, and double operations with the same f32
 *    table where x is f64.
 *  - A data-dependent fault (an id, label, position or segment out of its range) is ERR_RANGE with the op, the index, the value
 *    and the limit, found before anything is written.
 */
#ifndef CTI_BACKEND_REF_REF_H
#define CTI_BACKEND_REF_REF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/num.h"
#include "ctitan/backend.h"

const ct_backend *ct_backend_ref(void);

/* Element i as a double; integers up to 2^53 exactly. */
static inline double cti_ref_load(const ct_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case CT_DTYPE_F32:
        return (double)((const float *)t->data)[i];
    case CT_DTYPE_BF16:
        return (double)cti_bf16_to_f32(((const uint16_t *)t->data)[i]);
    case CT_DTYPE_F16:
        return (double)cti_f16_to_f32(((const uint16_t *)t->data)[i]);
    case CT_DTYPE_F64:
        return ((const double *)t->data)[i];
    case CT_DTYPE_I32:
        return (double)((const int32_t *)t->data)[i];
    case CT_DTYPE_I64:
        return (double)((const int64_t *)t->data)[i];
    case CT_DTYPE_U8:
        return (double)((const uint8_t *)t->data)[i];
    case CT_DTYPE_COUNT:
    default:
        return 0.0;
    }
}

/* Rounds as the head of this file says; integers truncate towards zero. */
static inline void cti_ref_store(const ct_tensor *t, int64_t i, double x)
{
    switch (t->dtype) {
    case CT_DTYPE_F32:
        ((float *)t->data)[i] = (float)x;
        break;
    case CT_DTYPE_BF16:
        ((uint16_t *)t->data)[i] = cti_f32_to_bf16((float)x);
        break;
    case CT_DTYPE_F16:
        ((uint16_t *)t->data)[i] = cti_f32_to_f16((float)x);
        break;
    case CT_DTYPE_F64:
        ((double *)t->data)[i] = x;
        break;
    case CT_DTYPE_I32:
        ((int32_t *)t->data)[i] = (int32_t)x;
        break;
    case CT_DTYPE_I64:
        ((int64_t *)t->data)[i] = (int64_t)x;
        break;
    case CT_DTYPE_U8:
        ((uint8_t *)t->data)[i] = (uint8_t)x;
        break;
    case CT_DTYPE_COUNT:
    default:
        break;
    }
}

/* Product of dims [from, to); 1 where empty. Shapes were checked by the op's shape rule. */
static inline int64_t cti_ref_count(const ct_tensor *t, int32_t from, int32_t to)
{
    int64_t n = 1;
    for (int32_t d = from; d < to; d++) {
        n *= t->dims[d];
    }
    return n;
}
static inline int64_t cti_ref_numel(const ct_tensor *t)
{
    return cti_ref_count(t, 0, t->ndim);
}
static inline int64_t cti_ref_last_dim(const ct_tensor *t)
{
    return t->ndim > 0 ? t->dims[t->ndim - 1] : 1;
}
/* All dims but the last. */
static inline int64_t cti_ref_rows(const ct_tensor *t)
{
    return t->ndim > 0 ? cti_ref_count(t, 0, t->ndim - 1) : 1;
}

/* Every value of an i32 tensor is in [0, limit), or ERR_RANGE "op: what[i] is v, outside [0, limit)". */
CT_MUST_CHECK ct_status cti_ref_check_ids(const char *op, const char *what, const ct_tensor *ids, int64_t limit,
                                          ct_err *err);

/* One kernel per op of the support table. */
#define CTI_REF_KERNEL(name) ct_status cti_ref_##name(const ct_launch *launch, ct_err *err)
#define CTI_REF_WORKSPACE(name) size_t cti_ref_##name##_workspace_bytes(const ct_launch *launch)
CTI_REF_KERNEL(embedding);
CTI_REF_KERNEL(embedding_grad);
CTI_REF_KERNEL(local_ids);
CTI_REF_KERNEL(linear_lse);
CTI_REF_KERNEL(lse_merge);
CTI_REF_KERNEL(matmul);
CTI_REF_KERNEL(matmul_swiglu);
CTI_REF_KERNEL(add);
CTI_REF_KERNEL(mul);
CTI_REF_KERNEL(scale);
CTI_REF_KERNEL(cast);
CTI_REF_KERNEL(fill);
CTI_REF_KERNEL(accumulate);
CTI_REF_KERNEL(transpose);
CTI_REF_KERNEL(slice);
CTI_REF_KERNEL(slice_grad);
CTI_REF_KERNEL(concat);
CTI_REF_KERNEL(flat_concat);
CTI_REF_KERNEL(kv_append);
CTI_REF_KERNEL(rmsnorm);
CTI_REF_KERNEL(rmsnorm_grad);
CTI_REF_KERNEL(rope);
CTI_REF_KERNEL(qkv_rope);
CTI_REF_KERNEL(qkv_rope_grad);
CTI_REF_KERNEL(rope_rows);
CTI_REF_KERNEL(rotary_mul);
CTI_REF_KERNEL(sdpa);
CTI_REF_KERNEL(sdpa_grad);
CTI_REF_KERNEL(segment_ends);
CTI_REF_KERNEL(sdpa_tnd);
CTI_REF_KERNEL(sdpa_tnd_grad);
CTI_REF_KERNEL(silu_mul);
CTI_REF_KERNEL(silu_mul_grad);
CTI_REF_KERNEL(swiglu);
CTI_REF_KERNEL(swiglu_grad);
CTI_REF_KERNEL(linear_cross_entropy);
CTI_REF_KERNEL(linear_cross_entropy_eval);
CTI_REF_KERNEL(sumsq);
CTI_REF_KERNEL(add_n);
CTI_REF_KERNEL(clip_coef);
CTI_REF_KERNEL(adamw);
CTI_REF_KERNEL(momentum);
CTI_REF_KERNEL(newton_schulz);
size_t cti_ref_newton_schulz_workspace_bytes(const ct_launch *launch);
CTI_REF_KERNEL(descend);
CTI_REF_WORKSPACE(embedding_grad);
CTI_REF_WORKSPACE(linear_lse);
CTI_REF_WORKSPACE(matmul);
CTI_REF_WORKSPACE(matmul_swiglu);
CTI_REF_WORKSPACE(rmsnorm_grad);
CTI_REF_WORKSPACE(sdpa);
CTI_REF_WORKSPACE(sdpa_grad);
CTI_REF_WORKSPACE(sdpa_tnd);
CTI_REF_WORKSPACE(sdpa_tnd_grad);
CTI_REF_WORKSPACE(linear_cross_entropy);
CTI_REF_WORKSPACE(linear_cross_entropy_eval);

#endif
