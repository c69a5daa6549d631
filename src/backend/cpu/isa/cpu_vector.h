/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of f32 from and to memory of f32 or bf16, for kernels that go through memory once.
 *
 * Such a kernel is an inline function whose last parameter, `how`, is a constant at each call; CTI_HOW picks the call:
 *
 *     CTI_INLINE void add_span(const ct_launch *l, int64_t first, int64_t end, const int how)
 *     {
 *         FOR_VECTORS(first, end, i, n, v_set(y, i, n, v_get(a, i, n, how) + v_get(b, i, n, how), how);)
 *     }
 *     ... CTI_HOW(how_of(launch, 0, CTI_VL), add_span, launch, first, end);
 *     v_fence();
 */
#ifndef CTI_BACKEND_CPU_ISA_CPU_VECTOR_H
#define CTI_BACKEND_CPU_ISA_CPU_VECTOR_H

#include "backend/cpu/cpu.h"
#include "backend/cpu/isa/cpu_kernel.h"

enum {
    CTI_IS_BF16 = 1, /* else f32 */
    CTI_PAST = 2     /* results are written past the caches: too large to be found there later, and no line is read to be written */
};

#define CTI_HOW(how, f, ...)                                                                                         \
    ((how) == 0 ? f(__VA_ARGS__, 0) : (how) == 1 ? f(__VA_ARGS__, 1) : (how) == 2 ? f(__VA_ARGS__, 2) : f(__VA_ARGS__, 3))

/* The body for i = first, first + CTI_VL, ...; n is CTI_VL, and what is left the last time. */
#define FOR_VECTORS(first, end, i, n, ...)                                                                           \
    {                                                                                                                \
        int64_t i = (first);                                                                                         \
        for (; i + CTI_VL <= (end); i += CTI_VL) {                                                                   \
            enum { n = CTI_VL };                                                                                     \
            __VA_ARGS__                                                                                              \
        }                                                                                                            \
        if (i < (end)) {                                                                                             \
            const int64_t n = (end) - i;                                                                             \
            __VA_ARGS__                                                                                              \
        }                                                                                                            \
    }

/* For result `out` of a launch, which is written in rows of `row` elements: past the caches go whole vectors only, and nothing that takes
 * the place of an input, whose lines are there. */
CTI_INLINE int how_of(const ct_launch *launch, int32_t out, int64_t row)
{
    const ct_tensor *y = &launch->out[out];
    const int64_t size = (int64_t)ct_dtype_size_bytes(y->dtype);
    bool past = t_numel(y) * size >= cti_cpu_past_bytes && row % CTI_VL == 0 && (uintptr_t)y->data % 64 == 0;
    for (int32_t i = 0; i < launch->n_in; i++) {
        past = past && launch->in[i].data != y->data;
    }
    return (size == 2 ? CTI_IS_BF16 : 0) | (past ? CTI_PAST : 0);
}

/* Elements [i, i + n); lanes from n on are zero. */
CTI_INLINE vf v_get(const void *data, int64_t i, int64_t n, const int how)
{
    if (n == CTI_VL) {
        return how & CTI_IS_BF16 ? v_from_bf16((const uint16_t *)data + i) : v_load((const float *)data + i);
    }
    float buf[CTI_VL] = {0};
    for (int64_t k = 0; k < n; k++) {
        buf[k] = how & CTI_IS_BF16 ? cti_bf16_to_f32(((const uint16_t *)data)[i + k]) : ((const float *)data)[i + k];
    }
    return v_load(buf);
}

/* 2 or 4 * CTI_VL bytes, aligned to as many. */
CTI_INLINE void v_store_past(void *to, const void *from, const int bytes)
{
#if defined(__AVX512F__)
    if (bytes == 64) {
        _mm512_stream_si512(to, _mm512_loadu_si512(from));
        return;
    }
#endif
#if defined(__AVX2__)
    if (bytes == 32) {
        _mm256_stream_si256(to, _mm256_loadu_si256(from));
        return;
    }
#endif
#if defined(__SSE2__)
    if (bytes == 16) {
        _mm_stream_si128(to, _mm_loadu_si128(from));
        return;
    }
#endif
    memcpy(to, from, (size_t)bytes);
}

CTI_INLINE void v_set(void *data, int64_t i, int64_t n, vf v, const int how)
{
    if (n < CTI_VL) {
        for (int64_t k = 0; k < n; k++) {
            if (how & CTI_IS_BF16) {
                ((uint16_t *)data)[i + k] = cti_f32_to_bf16(v[k]);
            } else {
                ((float *)data)[i + k] = v[k];
            }
        }
    } else if (how == (CTI_IS_BF16 | CTI_PAST)) {
        uint16_t half[CTI_VL];
        v_to_bf16(half, v);
        v_store_past((uint16_t *)data + i, half, sizeof half);
    } else if (how == CTI_PAST) {
        v_store_past((float *)data + i, &v, sizeof v);
    } else if (how & CTI_IS_BF16) {
        v_to_bf16((uint16_t *)data + i, v);
    } else {
        v_store((float *)data + i, v);
    }
}

/* Asks for what lies 4 KiB behind element i, where a kernel computes so much that the processor does not look that far by itself. */
CTI_INLINE void v_ahead(const void *data, int64_t i, const int how)
{
    enum { AHEAD = 4096 };
    __builtin_prefetch((const char *)data + i * (how & CTI_IS_BF16 ? 2 : 4) + AHEAD);
}

/* At the end of a turn that wrote past the caches: what it wrote is seen by whoever sees the turn as done. */
CTI_INLINE void v_fence(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

#endif
