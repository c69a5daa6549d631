/* SPDX-License-Identifier: Apache-2.0 */
/* The micro-kernel of bf16 on AMX's tiles: 32 rows by 32 columns of f32 sums in four of them, two for A and two for B.
 * Included by cpu_gemm_bf16.c only. */
#ifndef CTI_BACKEND_CPU_ISA_CPU_UKR_AMX_H
#define CTI_BACKEND_CPU_ISA_CPU_UKR_AMX_H

#include "backend/cpu/isa/cpu_tile_bf16.h"

enum {
    TILE = 16, /* rows of a tile, and its words or f32 a row */
    B_ROW = 2 * NR * (int)sizeof(uint16_t)
};

/* A whose columns are contiguous, as A_ROWS. */
static void pack_a_columns(uint16_t *dst, const cti_cpu_mat *a, int64_t rows, int64_t i0, int64_t m, int64_t k0, int64_t kc)
{
    (void)rows;
    for (int64_t k = 0; k < kc; k += STEP) {
        for (int64_t i = 0; i < m; i += TILE) {
            vi16 words[TILE]; /* of two neighbours along k, 16 rows of A each */
            for (int64_t p = 0; p < TILE; p++) {
                const int64_t x = k + 2 * p, first = (k0 + x) * a->col + i0 + i, next = x + 1 < kc ? a->col : 0;
                const int64_t n = cti_min_i64(TILE, m - i);
                if (x >= kc) {
                    words[p] = (vi16){0};
                } else if (a->dtype == CT_DTYPE_F32) {
                    const float *r = (const float *)a->data + first;
                    words[p] = pair_f32_rows(r, next ? r + next : NULL, n);
                } else {
                    const uint16_t *r = (const uint16_t *)a->data + first;
                    words[p] = pair_rows(r, next ? r + next : NULL, n);
                }
            }
            transpose16_regs(dst + i * KLD + k, KLD, words);
        }
    }
}

/* Sums of one tile's rows, or two tiles', in tiles 0 to 3. ahead: NULL, or the panel of A that comes next, which is asked for. */
CTI_INLINE void tile_sums(const bool has_two, int64_t kc, const uint16_t *a, int64_t ld, const uint16_t *b, const uint16_t *ahead)
{
    const int64_t row = ld * (int64_t)sizeof *a;
    amx_zero(0);
    amx_zero(1);
    if (has_two) {
        amx_zero(2);
        amx_zero(3);
    }
    for (int64_t k = 0; k < kc; k += STEP) {
        if (ahead) {
            for (int64_t i = 0; i < MR; i++) {
                __builtin_prefetch(ahead + i * ld + k, 0, 2);
            }
        }
        amx_load(4, a + k, row);
        amx_load(6, b + k * NR, B_ROW);
        amx_dp(0, 4, 6);
        amx_load(7, b + k * NR + 2 * TILE, B_ROW);
        amx_dp(1, 4, 7);
        if (has_two) {
            amx_load(5, a + TILE * ld + k, row);
            amx_dp(2, 5, 6);
            amx_dp(3, 5, 7);
        }
    }
}

/* n whole vectors of one row, from its sums; as put_part(). */
CTI_INLINE void put_row(const float *sums, const target *t, int64_t i, int64_t j)
{
    CTI_UNROLL
    for (int64_t v = 0; v < NR; v += TILE) {
        vf16 x = vf16_load(sums + v);
        if (t->in && t->in_dtype == CT_DTYPE_F32) {
            x += vf16_load((const float *)t->in + i * t->ld_in + j + v);
        } else if (t->in) {
            x += vf16_from_bf16((const uint16_t *)t->in + i * t->ld_in + j + v);
        }
        if (t->out_dtype == CT_DTYPE_F32) {
            vf16_store((float *)t->out + i * t->ld_out + j + v, x);
        } else {
            v_store_bf16((uint16_t *)t->out + i * t->ld_out + j + v, x);
        }
    }
}

/* A micro-tile of mi rows and nj columns, whose sums are in the tiles. */
static void put_tile(const target *t, int64_t i0, int64_t mi, int64_t j0, int64_t nj)
{
    if (mi == MR && nj == NR && !t->in && t->out_dtype == CT_DTYPE_F32) {
        float *out = (float *)t->out + i0 * t->ld_out + j0;
        const int64_t row = t->ld_out * (int64_t)sizeof *out;
        amx_store(0, out, row);
        amx_store(1, out + TILE, row);
        amx_store(2, out + TILE * t->ld_out, row);
        amx_store(3, out + TILE * t->ld_out + TILE, row);
        return;
    }
    float sums[MR * NR] __attribute__((aligned(64)));
    const int64_t row = NR * (int64_t)sizeof *sums;
    amx_store(0, sums, row);
    amx_store(1, sums + TILE, row);
    if (mi > TILE) {
        amx_store(2, sums + TILE * NR, row);
        amx_store(3, sums + TILE * NR + TILE, row);
    }
    for (int64_t i = 0; i < mi; i++) {
        if (nj == NR) {
            put_row(sums + i * NR, t, i0 + i, j0);
            continue;
        }
        for (int64_t j = 0; j < nj; j += TILE) {
            put_part(sums + i * NR + j, cti_min_i64(TILE, nj - j), t, i0 + i, j0 + j);
        }
    }
}

/* Asks for what put_tile() will write. */
CTI_INLINE void want_tile(const target *t, int64_t i0, int64_t mi, int64_t j0)
{
    const int64_t size = t->out_dtype == CT_DTYPE_F32 ? 4 : 2;
    const char *out = (const char *)t->out + (i0 * t->ld_out + j0) * size;
    for (int64_t i = 0; i < mi; i++) {
        __builtin_prefetch(out + i * t->ld_out * size, 1);
        __builtin_prefetch(out + i * t->ld_out * size + (NR - 1) * size, 1);
    }
}

/* All micro-tiles of one panel of B. */
static void panel_rows(const a_block *a, int64_t m, int64_t kc, const uint16_t *b, const target *t, int64_t j, int64_t nj)
{
    for (int64_t i = 0; i < m; i += MR) {
        const int64_t mi = cti_min_i64(MR, m - i);
        want_tile(t, i, mi, j);
        const uint16_t *rows = mi < MR ? a->last : a->data + i * a->ld;
        const int64_t ld = mi < MR ? KLD : a->ld;
        if (mi > TILE) {
            tile_sums(true, kc, rows, ld, b, j == 0 && i + 2 * MR <= m && a->ld != KLD ? rows + MR * ld : NULL);
        } else {
            tile_sums(false, kc, rows, ld, b, NULL);
        }
        put_tile(t, i, mi, j, nj);
    }
}

CTI_INLINE void ukr_begin(void)
{
    amx_begin();
}
CTI_INLINE void ukr_end(void)
{
    amx_end();
}

/* Products of tiles that take about as long as n rounds of a loop of vectors; returns their FLOPs. */
static double amx_loop(int64_t n)
{
    n = cti_ceil_div(n, 8);
    uint16_t one[TILE * STEP] __attribute__((aligned(64)));
    float sums[4][TILE * TILE] __attribute__((aligned(64)));
    for (int i = 0; i < TILE * STEP; i++) {
        one[i] = i % 2 == 0 ? 0x3f80 : 0xbf80; /* 1, -1: sums stay zero */
    }
    amx_begin();
    amx_load(4, one, 2 * STEP);
    amx_load(5, one, 2 * STEP);
    amx_load(6, one, 2 * STEP);
    amx_load(7, one, 2 * STEP);
    amx_zero(0);
    amx_zero(1);
    amx_zero(2);
    amx_zero(3);
    for (int64_t k = 0; k < n; k++) {
        amx_dp(0, 4, 6);
        amx_dp(1, 4, 7);
        amx_dp(2, 5, 6);
        amx_dp(3, 5, 7);
    }
    amx_store(0, sums[0], 64);
    amx_store(1, sums[1], 64);
    amx_store(2, sums[2], 64);
    amx_store(3, sums[3], 64);
    amx_end();
    volatile float sink = sums[0][0] + sums[1][0] + sums[2][0] + sums[3][0]; /* keeps the loop */
    (void)sink;
    return (double)n * 4 * TILE * TILE * STEP * 2;
}

#endif
