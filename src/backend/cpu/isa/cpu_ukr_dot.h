/* SPDX-License-Identifier: Apache-2.0 */
/* The micro-kernel of bf16 on vectors: 14 rows by 32 columns of f32 sums, which leaves two registers for B and one for A.
 * Included by cpu_gemm_bf16.c only. */
#ifndef CTI_BACKEND_CPU_ISA_CPU_UKR_DOT_H
#define CTI_BACKEND_CPU_ISA_CPU_UKR_DOT_H

#include "backend/cpu/isa/cpu_tile_bf16.h"

/* A whose columns are contiguous, as A_PANEL. Vectors are stored whole: the two words too many are overwritten by the next pair, or lie
 * behind the last one. */
static void pack_a_columns(uint16_t *dst, const cti_cpu_mat *a, int64_t rows, int64_t i0, int64_t m, int64_t k0, int64_t kc)
{
    for (int64_t k = 0; k < kc; k += 2) {
        const int64_t first = (k0 + k) * a->col + i0, next = k + 1 < kc ? a->col : 0;
        for (int64_t i = 0; i < m; i += MR) {
            const int64_t n = cti_min_i64(16, rows - i0 - i); /* what is there to read; only the tile's own rows are used */
            vi16 words;
            if (a->dtype == CT_DTYPE_F32) {
                const float *r = (const float *)a->data + first + i;
                words = pair_f32_rows(r, next ? r + next : NULL, n);
            } else {
                const uint16_t *r = (const uint16_t *)a->data + first + i;
                words = pair_rows(r, next ? r + next : NULL, n);
            }
            vi16_store(dst + i * KLD + k * MR, words);
        }
    }
}

/* Sums of `rows` rows (at most MR) by NR columns over pairs of k. layout and rows are constants at every call. */
CTI_INLINE void tile_sums(const a_layout layout, const int rows, int64_t pairs, const uint16_t *a, int64_t ld, const uint16_t *b,
                          vf16 sums[MR][2])
{
    const int64_t is = layout == A_ROWS ? ld : 2, ks = layout == A_ROWS ? 2 : 2 * MR;
    const uint16_t *third[(MR + 2) / 3]; /* every third row: base, once and twice the stride are one address each */
    CTI_UNROLL
    for (int i = 0; i < rows; i += 3) {
        third[i / 3] = a + i * is;
    }
    CTI_UNROLL
    for (int i = 0; i < rows; i++) {
        sums[i][0] = sums[i][1] = (vf16){0};
    }
#pragma GCC unroll 4
    for (int64_t k = 0; k < pairs; k++) {
        const vi16 b0 = vi16_load(b), b1 = vi16_load(b + NR);
        CTI_UNROLL
        for (int i = 0; i < rows; i++) {
            const vi16 x = vi16_set1(third[i / 3] + i % 3 * is + k * ks);
            sums[i][0] = v_dp_bf16(sums[i][0], x, b0);
            sums[i][1] = v_dp_bf16(sums[i][1], x, b1);
        }
        b += 2 * NR;
    }
}

/* A whole micro-tile, from registers to where it belongs. */
CTI_INLINE void whole_tile(const a_layout layout, int64_t pairs, const uint16_t *a, int64_t ld, const uint16_t *b, const target *t,
                           int64_t i0, int64_t j0)
{
    vf16 sums[MR][2];
    char *out = (char *)t->out + (i0 * t->ld_out + j0) * (t->out_dtype == CT_DTYPE_F32 ? 4 : 2);
    const int64_t row_bytes = t->ld_out * (t->out_dtype == CT_DTYPE_F32 ? 4 : 2);
    CTI_UNROLL
    for (int i = 0; i < MR; i++) {
        __builtin_prefetch(out + i * row_bytes, 1);
    }
    tile_sums(layout, MR, pairs, a, ld, b, sums);
    if (t->in && t->in_dtype == CT_DTYPE_F32) {
        const float *in = (const float *)t->in + i0 * t->ld_in + j0;
        CTI_UNROLL
        for (int i = 0; i < MR; i++) {
            sums[i][0] += vf16_load(in + i * t->ld_in);
            sums[i][1] += vf16_load(in + i * t->ld_in + 16);
        }
    } else if (t->in) {
        const uint16_t *in = (const uint16_t *)t->in + i0 * t->ld_in + j0;
        CTI_UNROLL
        for (int i = 0; i < MR; i++) {
            sums[i][0] += vf16_from_bf16(in + i * t->ld_in);
            sums[i][1] += vf16_from_bf16(in + i * t->ld_in + 16);
        }
    }
    if (t->out_dtype == CT_DTYPE_F32) {
        CTI_UNROLL
        for (int i = 0; i < MR; i++) {
            vf16_store((float *)(out + i * row_bytes), sums[i][0]);
            vf16_store((float *)(out + i * row_bytes) + 16, sums[i][1]);
        }
    } else {
        CTI_UNROLL
        for (int i = 0; i < MR; i++) {
            v_store_bf16((uint16_t *)(out + i * row_bytes), sums[i][0]);
            v_store_bf16((uint16_t *)(out + i * row_bytes) + 16, sums[i][1]);
        }
    }
}

/* A micro-tile at the border, mi by nj: with as few rows as need be, and through memory. */
static void border_tile(a_layout layout, int64_t pairs, const uint16_t *a, int64_t ld, const uint16_t *b, const target *t, int64_t i0,
                        int64_t mi, int64_t j0, int64_t nj)
{
    enum { FEW = 4, HALF = 8 };
    vf16 sums[MR][2];
    float tile[MR][NR];
    if (layout == A_ROWS) {
        if (mi <= FEW) {
            tile_sums(A_ROWS, FEW, pairs, a, ld, b, sums);
        } else if (mi <= HALF) {
            tile_sums(A_ROWS, HALF, pairs, a, ld, b, sums);
        } else {
            tile_sums(A_ROWS, MR, pairs, a, ld, b, sums);
        }
    } else if (mi <= FEW) {
        tile_sums(A_PANEL, FEW, pairs, a, ld, b, sums);
    } else if (mi <= HALF) {
        tile_sums(A_PANEL, HALF, pairs, a, ld, b, sums);
    } else {
        tile_sums(A_PANEL, MR, pairs, a, ld, b, sums);
    }
    for (int64_t i = 0; i < mi; i++) {
        vf16_store(tile[i], sums[i][0]);
        vf16_store(tile[i] + 16, sums[i][1]);
        for (int64_t j = 0; j < nj; j += 16) {
            put_part(tile[i] + j, cti_min_i64(16, nj - j), t, i0 + i, j0 + j);
        }
    }
}

/* All micro-tiles of one panel of B. */
static void panel_rows(const a_block *a, int64_t m, int64_t kc, const uint16_t *b, const target *t, int64_t j, int64_t nj)
{
    const int64_t pairs = (kc + 1) / 2;
    for (int64_t i = 0; i < m; i += MR) {
        const bool is_last = i + MR > m;
        const uint16_t *rows = is_last ? a->last : a->data + i * a->ld;
        if (is_last || nj < NR) {
            const int64_t ld = is_last ? KLD : a->ld;
            border_tile(a->layout, pairs, rows, ld, b, t, i, cti_min_i64(MR, m - i), j, nj);
        } else if (a->layout == A_PANEL) {
            whole_tile(A_PANEL, pairs, rows, a->ld, b, t, i, j);
        } else {
            whole_tile(A_ROWS, pairs, rows, a->ld, b, t, i, j);
        }
    }
}

CTI_INLINE void ukr_begin(void)
{
}
CTI_INLINE void ukr_end(void)
{
}

#endif
