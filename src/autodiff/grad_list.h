/* SPDX-License-Identifier: Apache-2.0 */
/* Exactly one row per op: a gradient rule or a reason.
 * GRAD(op, FIRST): only output 0 may carry a gradient; ALL: every output may. NONE(op, reason). */
#ifndef CTI_AUTODIFF_GRAD_LIST_H
#define CTI_AUTODIFF_GRAD_LIST_H

#include <assert.h>

#include "ctitan/op_list.h"

#define CTI_NO_SECOND "it is itself a gradient, and second derivatives are not taken"
#define CTI_NO_STATE "it updates state in place"
#define CTI_NO_STEP "it runs once a step, outside the model"

/* clang-format off */
#define CTI_GRAD_LIST(GRAD, NONE)                                              \
    GRAD(embedding,                 FIRST)                                     \
    NONE(embedding_grad,            CTI_NO_SECOND)                             \
    NONE(local_ids,                 "its input and output are integers")       \
    GRAD(matmul,                    FIRST)                                     \
    NONE(matmul_swiglu,             "the fuse pass makes it, of a product whose gradient is there") \
    GRAD(add,                       FIRST)                                     \
    GRAD(mul,                       FIRST)                                     \
    GRAD(scale,                     FIRST)                                     \
    GRAD(cast,                      FIRST)                                     \
    GRAD(reshape,                   FIRST)                                     \
    GRAD(transpose,                 FIRST)                                     \
    GRAD(slice,                     FIRST)                                     \
    NONE(slice_grad,                CTI_NO_SECOND)                             \
    GRAD(concat,                    FIRST)                                     \
    GRAD(rmsnorm,                   FIRST)                                     \
    NONE(rmsnorm_grad,              CTI_NO_SECOND)                             \
    GRAD(rope,                      FIRST)                                     \
    GRAD(qkv_rope,                  ALL)                                       \
    NONE(qkv_rope_grad,             CTI_NO_SECOND)                             \
    NONE(rope_rows,                 "positions and tables are not trained")    \
    GRAD(rotary_mul,                FIRST)                                     \
    GRAD(sdpa,                      FIRST)                                     \
    NONE(sdpa_grad,                 CTI_NO_SECOND)                             \
    NONE(segment_ends,              "its inputs and outputs are integers")     \
    GRAD(sdpa_tnd,                  FIRST)                                     \
    NONE(sdpa_tnd_grad,             CTI_NO_SECOND)                             \
    GRAD(silu_mul,                  FIRST)                                     \
    NONE(silu_mul_grad,             CTI_NO_SECOND)                             \
    GRAD(swiglu,                    FIRST)                                     \
    NONE(swiglu_grad,               CTI_NO_SECOND)                             \
    GRAD(linear_cross_entropy,      FIRST)                                     \
    NONE(linear_cross_entropy_eval, "it is for evaluation; train with linear_cross_entropy") \
    NONE(linear_lse,                "the loss that reads it makes its gradients") \
    NONE(lse_merge,                 "the loss that reads it makes its gradients") \
    NONE(sumsq,                     CTI_NO_STEP)                               \
    NONE(add_n,                     CTI_NO_STEP)                               \
    NONE(clip_coef,                 CTI_NO_STEP)                               \
    NONE(adamw,                     CTI_NO_STATE)                              \
    NONE(momentum,                  CTI_NO_STATE)                              \
    NONE(newton_schulz,             CTI_NO_STEP)                               \
    NONE(descend,                   CTI_NO_STATE)                              \
    NONE(accumulate,                CTI_NO_STATE)                              \
    GRAD(flat_split,                ALL)                                       \
    NONE(flat_concat,               CTI_NO_SECOND)                             \
    NONE(fill,                      "it has no inputs")                        \
    NONE(kv_append,                 CTI_NO_STATE)                              \
    GRAD(owe,                       FIRST)                                     \
    GRAD(all_gather,                FIRST)                                     \
    GRAD(reduce_scatter,            FIRST)                                     \
    GRAD(all_reduce,                FIRST)
/* clang-format on */

#define CTI_GRAD_ONE(op, x) +1
static_assert(0 CTI_GRAD_LIST(CTI_GRAD_ONE, CTI_GRAD_ONE) == CT_OP_COUNT, "autodiff: one row per op");
#undef CTI_GRAD_ONE

#endif
