/* SPDX-License-Identifier: Apache-2.0 */
/* Exactly one row per op: KEPT, a kernel whose operators are prepared once a launch; EACH, one that begins anew in each run because it takes values
 * from the host; NONE, a reason. */
#ifndef CTI_BACKEND_NPU_SUPPORT_H
#define CTI_BACKEND_NPU_SUPPORT_H

#include "ctitan/dtype.h"
#include "ctitan/op_list.h"

/* clang-format off */
#define CTI_NPU_FLOATS (CT_BIT(F32) | CT_BIT(BF16))
#define CTI_NPU_ANY (CT_BIT(F32) | CT_BIT(BF16) | CT_BIT(F16) | CT_BIT(F64) | CT_BIT(I32) | CT_BIT(I64) | CT_BIT(U8))
#define CTI_NPU_SUPPORT(KEPT, EACH, NONE)                      \
    KEPT(embedding, CTI_NPU_FLOATS)                            \
    KEPT(embedding_grad, CTI_NPU_FLOATS)                       \
    EACH(local_ids, CT_BIT(I32))                               \
    KEPT(matmul, CTI_NPU_FLOATS)                               \
    KEPT(matmul_swiglu, CTI_NPU_FLOATS)                        \
    KEPT(add, CTI_NPU_FLOATS)                                  \
    KEPT(mul, CTI_NPU_FLOATS)                                  \
    KEPT(scale, CTI_NPU_FLOATS)                                \
    KEPT(cast, CTI_NPU_ANY)                                    \
    NONE(reshape, "a view: its output is its input's memory")  \
    KEPT(transpose, CTI_NPU_ANY)                               \
    KEPT(slice, CTI_NPU_ANY)                                   \
    KEPT(slice_grad, CTI_NPU_ANY)                              \
    KEPT(concat, CTI_NPU_ANY)                                  \
    KEPT(rmsnorm, CTI_NPU_FLOATS)                              \
    KEPT(rmsnorm_grad, CTI_NPU_FLOATS)                         \
    KEPT(rope, CTI_NPU_FLOATS)                                 \
    KEPT(qkv_rope, CTI_NPU_FLOATS)                             \
    KEPT(qkv_rope_grad, CTI_NPU_FLOATS)                        \
    KEPT(rope_rows, CT_BIT(F32))                               \
    KEPT(rotary_mul, CTI_NPU_FLOATS)                           \
    EACH(sdpa, CTI_NPU_FLOATS)                                 \
    EACH(sdpa_grad, CTI_NPU_FLOATS)                            \
    EACH(segment_ends, CT_BIT(I32))                            \
    EACH(sdpa_tnd, CTI_NPU_FLOATS)                             \
    EACH(sdpa_tnd_grad, CTI_NPU_FLOATS)                        \
    KEPT(silu_mul, CTI_NPU_FLOATS)                             \
    KEPT(silu_mul_grad, CTI_NPU_FLOATS)                        \
    KEPT(swiglu, CTI_NPU_FLOATS)                               \
    KEPT(swiglu_grad, CTI_NPU_FLOATS)                          \
    KEPT(linear_cross_entropy, CTI_NPU_FLOATS)                 \
    KEPT(linear_cross_entropy_eval, CTI_NPU_FLOATS)            \
    KEPT(linear_lse, CTI_NPU_FLOATS)                           \
    KEPT(lse_merge, CT_BIT(F32))                               \
    KEPT(sumsq, CTI_NPU_FLOATS)                                \
    KEPT(add_n, CT_BIT(F64))                                   \
    KEPT(clip_coef, CT_BIT(F64))                               \
    EACH(adamw, CTI_NPU_FLOATS)                                \
    EACH(momentum, CTI_NPU_FLOATS)                             \
    KEPT(newton_schulz, CTI_NPU_FLOATS)                        \
    EACH(descend, CTI_NPU_FLOATS)                              \
    EACH(accumulate, CTI_NPU_FLOATS | CT_BIT(F64))             \
    NONE(flat_split, "a view: its outputs are parts of its input's memory") \
    KEPT(flat_concat, CTI_NPU_ANY)                             \
    KEPT(fill, CTI_NPU_ANY)                                    \
    EACH(kv_append, CTI_NPU_ANY)                               \
    NONE(owe, "a view: its output is its input's memory")      \
    NONE(all_gather, "a collective: run by a comm engine")     \
    NONE(reduce_scatter, "a collective: run by a comm engine") \
    NONE(all_reduce, "a collective: run by a comm engine")
/* clang-format on */

#endif
