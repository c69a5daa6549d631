/* SPDX-License-Identifier: Apache-2.0 */
/* Exactly one row per op: a kernel (HAVE), a kernel that wants workspace (SCRATCH), or a reason (NONE). */
#ifndef CTI_BACKEND_CPU_SUPPORT_H
#define CTI_BACKEND_CPU_SUPPORT_H

#include "ctitan/dtype.h"
#include "ctitan/op_list.h"

/* clang-format off */
#define CTI_CPU_FLOATS (CT_BIT(F32) | CT_BIT(BF16))
#define CTI_CPU_ANY (CT_BIT(F32) | CT_BIT(BF16) | CT_BIT(F16) | CT_BIT(F64) | CT_BIT(I32) | CT_BIT(I64) | CT_BIT(U8))
#define CTI_CPU_SUPPORT(HAVE, SCRATCH, NONE)                     \
    HAVE(embedding, CTI_CPU_FLOATS)                              \
    SCRATCH(embedding_grad, CTI_CPU_FLOATS)                      \
    HAVE(local_ids, CT_BIT(I32))                                 \
    SCRATCH(matmul, CTI_CPU_FLOATS)                              \
    SCRATCH(matmul_swiglu, CTI_CPU_FLOATS)                       \
    HAVE(add, CTI_CPU_FLOATS)                                    \
    HAVE(mul, CTI_CPU_FLOATS)                                    \
    HAVE(scale, CTI_CPU_FLOATS)                                  \
    HAVE(cast, CTI_CPU_ANY)                                      \
    NONE(reshape, "a view: its output is its input's memory")    \
    HAVE(transpose, CTI_CPU_ANY)                                 \
    HAVE(slice, CTI_CPU_ANY)                                     \
    HAVE(slice_grad, CTI_CPU_ANY)                                \
    HAVE(concat, CTI_CPU_ANY)                                    \
    HAVE(rmsnorm, CTI_CPU_FLOATS)                                \
    SCRATCH(rmsnorm_grad, CTI_CPU_FLOATS)                        \
    HAVE(rope, CTI_CPU_FLOATS)                                   \
    HAVE(qkv_rope, CTI_CPU_FLOATS)                               \
    HAVE(qkv_rope_grad, CTI_CPU_FLOATS)                          \
    HAVE(rope_rows, CT_BIT(F32))                                 \
    HAVE(rotary_mul, CTI_CPU_FLOATS)                             \
    SCRATCH(sdpa, CTI_CPU_FLOATS)                                \
    SCRATCH(sdpa_grad, CTI_CPU_FLOATS)                           \
    HAVE(segment_ends, CT_BIT(I32))                              \
    SCRATCH(sdpa_tnd, CTI_CPU_FLOATS)                            \
    SCRATCH(sdpa_tnd_grad, CTI_CPU_FLOATS)                       \
    HAVE(silu_mul, CTI_CPU_FLOATS)                               \
    HAVE(silu_mul_grad, CTI_CPU_FLOATS)                          \
    HAVE(swiglu, CTI_CPU_FLOATS)                                 \
    HAVE(swiglu_grad, CTI_CPU_FLOATS)                            \
    SCRATCH(linear_cross_entropy, CTI_CPU_FLOATS)                \
    SCRATCH(linear_cross_entropy_eval, CTI_CPU_FLOATS)           \
    SCRATCH(linear_lse, CTI_CPU_FLOATS)                          \
    HAVE(lse_merge, CT_BIT(F32))                                 \
    SCRATCH(sumsq, CTI_CPU_FLOATS)                               \
    HAVE(add_n, CT_BIT(F64))                                     \
    HAVE(clip_coef, CT_BIT(F64))                                 \
    HAVE(adamw, CTI_CPU_FLOATS)                                  \
    HAVE(momentum, CTI_CPU_FLOATS)                               \
    SCRATCH(newton_schulz, CTI_CPU_FLOATS)                       \
    HAVE(descend, CTI_CPU_FLOATS)                                \
    HAVE(accumulate, CTI_CPU_FLOATS | CT_BIT(F64))               \
    NONE(flat_split, "a view: its outputs are parts of its input's memory") \
    HAVE(flat_concat, CTI_CPU_ANY)                               \
    HAVE(fill, CTI_CPU_ANY)                                      \
    HAVE(kv_append, CTI_CPU_ANY)                                 \
    NONE(owe, "a view: its output is its input's memory")        \
    NONE(all_gather, "a collective: run by a comm engine")       \
    NONE(reduce_scatter, "a collective: run by a comm engine")   \
    NONE(all_reduce, "a collective: run by a comm engine")
/* clang-format on */

#endif
