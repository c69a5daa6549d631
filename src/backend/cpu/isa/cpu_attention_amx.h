/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of bf16 on AMX's tiles, for cpu_attention.c and cpu_attention_grad.c.
 *
 * Products of operands are exact, for they are bf16. Weights, and what the gradient makes of them, are f32 numbers: each goes into the tiles
 * as the sum of two bf16 numbers, |x - h - l| < 2^-16 |x| + 2^-126: h is rounded (from 255.5 * 2^120 on it is infinite), l cut off, in two
 * products. Queries lie in the lanes, as elsewhere; what is summed over is cut into 32s from the start of a key block, or of a block of
 * queries, and what is missing is zero. */
#ifndef CTI_BACKEND_CPU_ISA_CPU_ATTENTION_AMX_H
#define CTI_BACKEND_CPU_ISA_CPU_ATTENTION_AMX_H

#include "backend/cpu/isa/cpu_amx.h"
#include "backend/cpu/isa/cpu_attention.h"
#include "backend/cpu/isa/cpu_pairs.h"

#if CTI_HAS_AMX

enum {
    AT = 16,     /* rows of a tile, and its words or f32 a row */
    AK = 32,     /* terms of a product of tiles */
    QUERIES = 64 /* a block's queries, up to whole terms of a product of tiles */
};
_Static_assert(CTI_VL == AT && CTI_AC == AK && CTI_ANQ <= QUERIES && QUERIES % AK == 0, "lanes and chunks are those of tiles");

/* bf16 operands, head dims of whole tiles, and a scale that keeps the order of scores. */
CTI_INLINE bool attn_on_tiles(const attn *a)
{
    return a->h % AT == 0 && a->scale > 0 && a->q->dtype == CT_DTYPE_BF16 && a->k->dtype == CT_DTYPE_BF16 && a->v->dtype == CT_DTYPE_BF16;
}
CTI_INLINE int64_t tile_h(const attn *a)
{
    return cti_round_up(a->h, AK);
}

/* Rows [first, first + n) of one head, ld elements apart, zeros up to ld and up to row n_pad. */
CTI_INLINE void pack_tile_rows(uint16_t *dst, int64_t ld, const attn *a, const ct_tensor *t, int64_t heads, int64_t head, int64_t first,
                               int64_t n, int64_t n_pad)
{
    const uint16_t *src = (const uint16_t *)t->data + (first * heads + head) * a->h;
    for (int64_t i = 0; i < n; i++, src += heads * a->h) {
        for (int64_t e = 0; e < a->h; e += 16) {
            memcpy(dst + i * ld + e, src + e, 32);
        }
        memset(dst + i * ld + a->h, 0, (size_t)(ld - a->h) * sizeof *dst);
    }
    memset(dst + n * ld, 0, (size_t)((n_pad - n) * ld) * sizeof *dst);
}
/* Words of two neighbours along h of such rows, n_lanes of them, in lanes: [ld / 2][n_lanes]. */
CTI_INLINE void pack_tile_lanes(uint16_t *dst, const uint16_t *rows, int64_t ld, int64_t n_lanes)
{
    for (int64_t i = 0; i < n_lanes; i += AT) {
        for (int64_t e = 0; e < ld; e += AK) {
            transpose16(dst + e * n_lanes + 2 * i, 2 * n_lanes, rows + i * ld + e, ld);
        }
    }
}
/* Words of two neighbouring rows: [n / 2][h]. */
CTI_INLINE void pack_tile_pairs(uint16_t *dst, int64_t h, const uint16_t *rows, int64_t ld, int64_t n)
{
    for (int64_t i = 0; i < n; i += 2) {
        for (int64_t e = 0; e < h; e += AT) {
            vi16_store(dst + i * h + 2 * e, pair_rows(rows + i * ld + e, rows + (i + 1) * ld + e, AT));
        }
    }
}
/* Columns of n such rows as rows: [h][len]. */
CTI_INLINE void pack_tile_columns(uint16_t *dst, int64_t len, int64_t h, const uint16_t *rows, int64_t ld, int64_t n)
{
    for (int64_t i = 0; i < n; i += AK) {
        for (int64_t e = 0; e < h; e += AT) {
            vi16 words[AT];
            CTI_UNROLL
            for (int64_t p = 0; p < AT; p++) {
                words[p] = pair_rows(rows + (i + 2 * p) * ld + e, rows + (i + 2 * p + 1) * ld + e, AT);
            }
            transpose16_regs(dst + e * len + i, len, words);
        }
    }
}

/* s[16 rows][nv vectors] = sum over ld of rows times words of lanes [ld / 2][nv * 16]. */
CTI_INLINE void tile_lanes(const int nv, int64_t ld, const uint16_t *rows, const uint16_t *lanes, float *s)
{
    const int64_t row = nv * 64;
    amx_zero(0);
    amx_zero(1);
    amx_zero(2);
    for (int64_t e = 0; e < ld; e += AK) {
        amx_load(3, rows + e, ld * 2);
        amx_load(4, lanes + e * nv * AT, row);
        amx_dp(0, 3, 4);
        if (nv > 1) {
            amx_load(5, lanes + e * nv * AT + 2 * AT, row);
            amx_dp(1, 3, 5);
        }
        if (nv > 2) {
            amx_load(6, lanes + e * nv * AT + 4 * AT, row);
            amx_dp(2, 3, 6);
        }
    }
    amx_store(0, s, row);
    if (nv > 1) {
        amx_store(1, s + AT, row);
    }
    if (nv > 2) {
        amx_store(2, s + 2 * AT, row);
    }
}

/* c[16 rows][nv vectors] += sum over n of rows [16][n], `len` apart, times words of lanes [n / 2][nv * 16], in two parts. */
CTI_INLINE void tile_add_lanes(const int nv, int64_t n, const uint16_t *rows, int64_t len, const uint16_t *high, const uint16_t *low,
                               float *c)
{
    const int64_t row = nv * 64;
    amx_load(0, c, row);
    if (nv > 1) {
        amx_load(1, c + AT, row);
    }
    if (nv > 2) {
        amx_load(2, c + 2 * AT, row);
    }
    for (int64_t k = 0; k < n; k += AK) {
        amx_load(3, rows + k, len * 2);
        for (int part = 0; part < 2; part++) {
            const uint16_t *b = (part == 0 ? high : low) + k * nv * AT;
            amx_load(4, b, row);
            amx_dp(0, 3, 4);
            if (nv > 1) {
                amx_load(5, b + 2 * AT, row);
                amx_dp(1, 3, 5);
            }
            if (nv > 2) {
                amx_load(6, b + 4 * AT, row);
                amx_dp(2, 3, 6);
            }
        }
    }
    amx_store(0, c, row);
    if (nv > 1) {
        amx_store(1, c + AT, row);
    }
    if (nv > 2) {
        amx_store(2, c + 2 * AT, row);
    }
}

/* c[16 rows][16] += sum over n queries of rows [16][n], `len` apart, in two parts, times words of two queries [n / 2][h]; c's rows are hp
 * apart. */
CTI_INLINE void tile_add_rows(int64_t n, const uint16_t *high, const uint16_t *low, int64_t len, const uint16_t *pairs, int64_t h, float *c,
                              int64_t hp)
{
    amx_load(0, c, hp * 4);
    for (int64_t k = 0; k < n; k += AK) {
        amx_load(4, pairs + k * h, h * 4);
        amx_load(3, high + k, len * 2);
        amx_dp(0, 3, 4);
        amx_load(5, low + k, len * 2);
        amx_dp(0, 5, 4);
    }
    amx_store(0, c, hp * 4);
}

/* The upper part of an f32 vector, its low bits zero; what is left is the lower part's. */
CTI_INLINE vf upper_part(vf x)
{
    return (vf)(((vu)x + 0x8000u) & 0xffff0000u);
}
/* The upper halves of 16 f32 as bf16. */
CTI_INLINE void store_upper(uint16_t *p, vf x)
{
    const vh16 h = __builtin_convertvector((vu)x >> 16, vh16);
    memcpy(p, &h, sizeof h);
}
/* Words of two neighbours along what is summed over, one in each vector, from their upper halves. */
CTI_INLINE vi16 pair_of(vf first, vf second)
{
    return (vi16)(((vu)first >> 16) | ((vu)second & 0xffff0000u));
}

CTI_INLINE void attn_tiles_begin(const void *tiles)
{
    if (tiles) {
        amx_begin();
    }
}
CTI_INLINE void attn_tiles_end(const void *tiles)
{
    if (tiles) {
        amx_end();
    }
}

#else

CTI_INLINE void attn_tiles_begin(const void *tiles)
{
    (void)tiles;
}
CTI_INLINE void attn_tiles_end(const void *tiles)
{
    (void)tiles;
}

#endif
#endif
