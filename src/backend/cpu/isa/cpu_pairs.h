/* SPDX-License-Identifier: Apache-2.0 */
/* Words of two neighbours along what is summed over, made of rows of bf16 or f32, and 16 by 16 of them transposed. */
#ifndef CTI_BACKEND_CPU_ISA_CPU_PAIRS_H
#define CTI_BACKEND_CPU_ISA_CPU_PAIRS_H

#include "backend/cpu/isa/cpu_dot_bf16.h"

#if CTI_HAS_DP_BF16

/* Words of columns [0, n) of two rows; further lanes are zero, and so is the second row where it is NULL. */
CTI_INLINE vi16 pair_rows(const uint16_t *r0, const uint16_t *r1, int64_t n)
{
    if (n >= 16) {
        return vi16_pairs(vh16_load(r0), r1 ? vh16_load(r1) : (vh16){0});
    }
    uint16_t h[2][16] = {{0}};
    memcpy(h[0], r0, (size_t)n * sizeof *r0);
    if (r1) {
        memcpy(h[1], r1, (size_t)n * sizeof *r1);
    }
    return vi16_pairs(vh16_load(h[0]), vh16_load(h[1]));
}
CTI_INLINE vi16 pair_f32_rows(const float *r0, const float *r1, int64_t n)
{
    if (n >= 16) {
        return vi16_round_pairs(vf16_load(r0), r1 ? vf16_load(r1) : (vf16){0});
    }
    float f[2][16] = {{0}};
    memcpy(f[0], r0, (size_t)n * sizeof *r0);
    if (r1) {
        memcpy(f[1], r1, (size_t)n * sizeof *r1);
    }
    return vi16_round_pairs(vf16_load(f[0]), vf16_load(f[1]));
}

#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (vi16){__VA_ARGS__})
#endif
/* The same choice in each of the four quarters. */
#define QUARTERS(w, x, y, z) w, x, y, z, w + 4, x + 4, y + 4, z + 4, w + 8, x + 8, y + 8, z + 8, w + 12, x + 12, y + 12, z + 12

/* 16 rows of 16 words: dst[k][j] = r[j][k], row stride in elements. First blocks of 4 by 4 in every quarter, then quarters. */
CTI_INLINE void transpose16_regs(uint16_t *dst, int64_t ld_dst, vi16 r[16])
{
    vi16 t[16];
    CTI_UNROLL
    for (int i = 0; i < 16; i += 2) {
        t[i] = SHUFFLE(r[i], r[i + 1], QUARTERS(0, 16, 1, 17));
        t[i + 1] = SHUFFLE(r[i], r[i + 1], QUARTERS(2, 18, 3, 19));
    }
    CTI_UNROLL
    for (int i = 0; i < 16; i += 4) {
        r[i] = SHUFFLE(t[i], t[i + 2], QUARTERS(0, 1, 16, 17));
        r[i + 1] = SHUFFLE(t[i], t[i + 2], QUARTERS(2, 3, 18, 19));
        r[i + 2] = SHUFFLE(t[i + 1], t[i + 3], QUARTERS(0, 1, 16, 17));
        r[i + 3] = SHUFFLE(t[i + 1], t[i + 3], QUARTERS(2, 3, 18, 19));
    }
    CTI_UNROLL
    for (int i = 0; i < 4; i++) { /* quarter q of r[4 g + i] has columns 4 q + i of rows 4 g and on */
        const vi16 low02 = SHUFFLE(r[i], r[4 + i], 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
        const vi16 low13 = SHUFFLE(r[i], r[4 + i], 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
        const vi16 high02 = SHUFFLE(r[8 + i], r[12 + i], 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
        const vi16 high13 = SHUFFLE(r[8 + i], r[12 + i], 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
        t[i] = SHUFFLE(low02, high02, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
        t[i + 4] = SHUFFLE(low13, high13, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
        t[i + 8] = SHUFFLE(low02, high02, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
        t[i + 12] = SHUFFLE(low13, high13, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    }
    CTI_UNROLL
    for (int i = 0; i < 16; i++) {
        vi16_store(dst + i * ld_dst, t[i]);
    }
}

CTI_INLINE void transpose16(uint16_t *dst, int64_t ld_dst, const uint16_t *src, int64_t ld_src)
{
    vi16 r[16];
    CTI_UNROLL
    for (int i = 0; i < 16; i++) {
        r[i] = vi16_load(src + i * ld_src);
    }
    transpose16_regs(dst, ld_dst, r);
}

#endif
#endif
