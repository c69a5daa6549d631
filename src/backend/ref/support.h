/* SPDX-License-Identifier: Apache-2.0 */
/* What the reference backend runs: exactly one row per op, a kernel with the dtypes `f` it takes, or a reason.
 * HAVE(op, dtypes)  WORK(op, dtypes): has a workspace  NONE(op, reason) */
#ifndef CTI_BACKEND_REF_SUPPORT_H
#define CTI_BACKEND_REF_SUPPORT_H

#define CTI_REF_FLOATS (CT_BIT(F32) | CT_BIT(BF16) | CT_BIT(F64))
#define CTI_REF_COPIES (CTI_REF_FLOATS | CT_BIT(F16) | CT_BIT(I32) | CT_BIT(I64) | CT_BIT(U8))
#define CTI_REF_BY_COMM "run by a comm engine, not by a kernel"
#define CTI_REF_VIEW "a view: it needs no kernel"

/* clang-format off */
#define CTI_REF_SUPPORT(HAVE, WORK, NONE)                  \
    HAVE(embedding,                 CTI_REF_FLOATS)        \
    WORK(embedding_grad,            CTI_REF_FLOATS)        \
    HAVE(local_ids,                 CT_BIT(I32))           \
    WORK(matmul,                    CTI_REF_FLOATS)        \
    WORK(matmul_swiglu,             CTI_REF_FLOATS)        \
    HAVE(add,                       CTI_REF_FLOATS)        \
    HAVE(mul,                       CTI_REF_FLOATS)        \
    HAVE(scale,                     CTI_REF_FLOATS)        \
    HAVE(cast,                      CTI_REF_COPIES)        \
    NONE(reshape,                   CTI_REF_VIEW)          \
    HAVE(transpose,                 CTI_REF_COPIES)        \
    HAVE(slice,                     CTI_REF_COPIES)        \
    HAVE(slice_grad,                CTI_REF_COPIES)        \
    HAVE(concat,                    CTI_REF_COPIES)        \
    HAVE(rmsnorm,                   CTI_REF_FLOATS)        \
    WORK(rmsnorm_grad,              CTI_REF_FLOATS)        \
    HAVE(rope,                      CTI_REF_FLOATS)        \
    HAVE(qkv_rope,                  CTI_REF_FLOATS)        \
    HAVE(qkv_rope_grad,             CTI_REF_FLOATS)        \
    HAVE(rope_rows,                 CT_BIT(F32))           \
    HAVE(rotary_mul,                CTI_REF_FLOATS)        \
    WORK(sdpa,                      CTI_REF_FLOATS)        \
    WORK(sdpa_grad,                 CTI_REF_FLOATS)        \
    HAVE(segment_ends,              CT_BIT(I32))           \
    WORK(sdpa_tnd,                  CTI_REF_FLOATS)        \
    WORK(sdpa_tnd_grad,             CTI_REF_FLOATS)        \
    HAVE(silu_mul,                  CTI_REF_FLOATS)        \
    HAVE(silu_mul_grad,             CTI_REF_FLOATS)        \
    HAVE(swiglu,                    CTI_REF_FLOATS)        \
    HAVE(swiglu_grad,               CTI_REF_FLOATS)        \
    WORK(linear_cross_entropy,      CTI_REF_FLOATS)        \
    WORK(linear_cross_entropy_eval, CTI_REF_FLOATS)        \
    WORK(linear_lse,                CTI_REF_FLOATS)        \
    HAVE(lse_merge,                 CT_BIT(F32))           \
    HAVE(sumsq,                     CTI_REF_FLOATS)        \
    HAVE(add_n,                     CTI_REF_FLOATS)        \
    HAVE(clip_coef,                 CT_BIT(F64))           \
    HAVE(adamw,                     CTI_REF_FLOATS)        \
    HAVE(momentum,                  CTI_REF_FLOATS)        \
    WORK(newton_schulz,             CTI_REF_FLOATS)        \
    HAVE(descend,                   CTI_REF_FLOATS)        \
    HAVE(accumulate,                CTI_REF_FLOATS)        \
    NONE(flat_split,                CTI_REF_VIEW)          \
    HAVE(flat_concat,               CTI_REF_COPIES)        \
    HAVE(fill,                      CTI_REF_COPIES)        \
    HAVE(kv_append,                 CTI_REF_FLOATS)        \
    NONE(owe,                       CTI_REF_VIEW)          \
    NONE(all_gather,                CTI_REF_BY_COMM)       \
    NONE(reduce_scatter,            CTI_REF_BY_COMM)       \
    NONE(all_reduce,                CTI_REF_BY_COMM)
/* clang-format on */

#endif
