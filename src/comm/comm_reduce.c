/* SPDX-License-Identifier: Apache-2.0 */
/* The ordered combination of n parts: blocks small enough for the cache, a recursion over halves of the ranks. */
#include "base/num.h"
#include "comm/comm_internal.h"

enum { BLOCK = 256 /* elements */ };

#define SUM_FLOAT(a, b) ((a) + (b))
#define SUM_I32(a, b) ((int32_t)((uint32_t)(a) + (uint32_t)(b)))
#define SUM_I64(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
/* A NaN on either side wins: it is the one value that differs from itself. */
#define MAX(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define MIN(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))

#define DEFINE_COMBINE(suffix, type, SUM)                                                                              \
    static void combine_##suffix(type *dst, const type *src, int n, ct_reduce_op op)                                   \
    {                                                                                                                  \
        if (op == CT_REDUCE_SUM) {                                                                                     \
            for (int i = 0; i < n; i++) {                                                                              \
                dst[i] = SUM(dst[i], src[i]);                                                                          \
            }                                                                                                          \
        } else if (op == CT_REDUCE_MAX) {                                                                              \
            for (int i = 0; i < n; i++) {                                                                              \
                dst[i] = MAX(dst[i], src[i]);                                                                          \
            }                                                                                                          \
        } else {                                                                                                       \
            for (int i = 0; i < n; i++) {                                                                              \
                dst[i] = MIN(dst[i], src[i]);                                                                          \
            }                                                                                                          \
        }                                                                                                              \
    }

DEFINE_COMBINE(f32, float, SUM_FLOAT)
DEFINE_COMBINE(f64, double, SUM_FLOAT)
DEFINE_COMBINE(i32, int32_t, SUM_I32)
DEFINE_COMBINE(i64, int64_t, SUM_I64)

#define COPY(to, from) ((to) = (from))
#define WIDEN(to, from) ((to) = cti_bf16_to_f32(from))
#define NARROW(to, from) ((to) = cti_f32_to_bf16(from))

/* tree_X: dst = parts[a..b) of one block that starts at element `at`, in accumulators. The depth is log2 of the ranks.
 * Reading a whole block before any of it is written lets out be one of the parts. */
#define DEFINE_TREE(suffix, acc, accsuffix, stored, LOAD, STORE)                                                       \
    static void tree_##suffix(const void *const *parts, int a, int b, int64_t at, int n, ct_reduce_op op, acc *dst)    \
    {                                                                                                                  \
        if (b - a == 1) {                                                                                              \
            const stored *src = (const stored *)parts[a] + at;                                                         \
            for (int i = 0; i < n; i++) {                                                                              \
                LOAD(dst[i], src[i]);                                                                                  \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        acc upper[BLOCK];                                                                                              \
        int middle = a + (b - a) / 2;                                                                                  \
        tree_##suffix(parts, a, middle, at, n, op, dst);                                                               \
        tree_##suffix(parts, middle, b, at, n, op, upper);                                                             \
        combine_##accsuffix(dst, upper, n, op);                                                                        \
    }                                                                                                                  \
    static void reduce_##suffix(const void *const *parts, int n_parts, void *out, int64_t count, ct_reduce_op op)      \
    {                                                                                                                  \
        stored *dst = out;                                                                                             \
        acc sum[BLOCK];                                                                                                \
        for (int64_t at = 0; at < count; at += BLOCK) {                                                                \
            int n = (int)cti_min_i64(BLOCK, count - at);                                                               \
            tree_##suffix(parts, 0, n_parts, at, n, op, sum);                                                          \
            for (int i = 0; i < n; i++) {                                                                              \
                STORE(dst[at + i], sum[i]);                                                                            \
            }                                                                                                          \
        }                                                                                                              \
    }

DEFINE_TREE(f32, float, f32, float, COPY, COPY)
DEFINE_TREE(bf16, float, f32, uint16_t, WIDEN, NARROW)
DEFINE_TREE(f64, double, f64, double, COPY, COPY)
DEFINE_TREE(i32, int32_t, i32, int32_t, COPY, COPY)
DEFINE_TREE(i64, int64_t, i64, int64_t, COPY, COPY)

void cti_reduce_halves(const void *const *parts, int n, void *out, int64_t count, ct_dtype dtype, ct_reduce_op op)
{
    switch (dtype) {
    case CT_DTYPE_F32:
        reduce_f32(parts, n, out, count, op);
        return;
    case CT_DTYPE_BF16:
        reduce_bf16(parts, n, out, count, op);
        return;
    case CT_DTYPE_F64:
        reduce_f64(parts, n, out, count, op);
        return;
    case CT_DTYPE_I32:
        reduce_i32(parts, n, out, count, op);
        return;
    case CT_DTYPE_I64:
        reduce_i64(parts, n, out, count, op);
        return;
    case CT_DTYPE_F16:
    case CT_DTYPE_U8:
    case CT_DTYPE_COUNT:
        break;
    }
    CT_ASSERT(!"a dtype that cannot be reduced gets past the checks of comm.c");
}
