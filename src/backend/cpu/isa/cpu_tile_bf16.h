/* SPDX-License-Identifier: Apache-2.0 */
/* What the micro-kernels of bf16 share: blocks of A, packing, and where sums go. Included by cpu_gemm_bf16.c only. */
#ifndef CTI_BACKEND_CPU_ISA_CPU_TILE_BF16_H
#define CTI_BACKEND_CPU_ISA_CPU_TILE_BF16_H

#include "backend/cpu/isa/cpu_amx.h"
#include "backend/cpu/isa/cpu_gemm.h"
#include "backend/cpu/isa/cpu_pairs.h"

enum {
    NR = 32,       /* columns of a micro-tile: two vectors of sums */
    KC = 512,      /* longest block of k: a panel of B, 32 KiB, stays in the first-level cache while A's panels pass by */
    KLD = KC + 32, /* row stride of packed A, elements: off the powers of two, so that rows fall into different cache sets */
    STEP = 32      /* blocks of k are cut at multiples of it */
};
#if CTI_HAS_AMX
enum {
    MR = 32,       /* rows of a micro-tile: two tiles */
    K_UNIT = STEP, /* packed blocks are filled up with zeros to a multiple of it */
    PACK_COST = 64 /* packing an element costs as much as this many multiply-adds */
};
#else
enum { MR = 14, K_UNIT = 2, PACK_COST = 8 };
#endif

/* Where the micro-kernel finds the pair (k, k + 1) of row i of A. */
typedef enum a_layout {
    A_ROWS, /* a[i * ld + k] */
    A_PANEL /* a[k * MR + 2 * i]: words */
} a_layout;

/* A block of A. Panel p of MR rows starts at data + p * MR * ld; `last` is the one that is not whole, always packed. */
typedef struct a_block {
    const uint16_t *data, *last;
    int64_t ld;
    a_layout layout;
} a_block;

/* One block's results: out = sums (+ in). in is NULL, or c0, or what earlier blocks left. */
typedef struct target {
    const void *in;
    void *out;
    ct_dtype in_dtype, out_dtype;
    int64_t ld_in, ld_out;
} target;

/* n <= 16 elements of one row, in steps of at most a vector: out = sums (+ in), with whole_tile()'s arithmetic. */
static void put_part(const float *sums, int64_t n, const target *t, int64_t i, int64_t j)
{
    float buf[16] = {0};
    uint16_t half[16] = {0};
    vf16 v = vf16_load(sums);
    if (t->in && t->in_dtype == CT_DTYPE_F32) {
        memcpy(buf, (const float *)t->in + i * t->ld_in + j, (size_t)n * sizeof *buf);
        v += vf16_load(buf);
    } else if (t->in) {
        memcpy(half, (const uint16_t *)t->in + i * t->ld_in + j, (size_t)n * sizeof *half);
        v += vf16_from_bf16(half);
    }
    if (t->out_dtype == CT_DTYPE_F32) {
        vf16_store(buf, v);
        memcpy((float *)t->out + i * t->ld_out + j, buf, (size_t)n * sizeof *buf);
    } else {
        v_store_bf16(half, v);
        memcpy((uint16_t *)t->out + i * t->ld_out + j, half, (size_t)n * sizeof *half);
    }
}

/* A_ROWS; rows end with zeros up to K_UNIT, rows past m up to a whole panel are zero. */
static void pack_a_rows(uint16_t *dst, const cti_cpu_mat *a, int64_t i0, int64_t m, int64_t k0, int64_t kc)
{
    for (int64_t i = 0; i < cti_round_up(m, MR); i++) {
        uint16_t *row = dst + i * KLD;
        const int64_t first = (i0 + i) * a->row + k0;
        const int64_t pad = cti_round_up(kc, K_UNIT) - kc;
        if (i >= m) {
            memset(row, 0, (size_t)(kc + pad) * sizeof *row);
        } else if (a->dtype == CT_DTYPE_BF16) {
            memcpy(row, (const uint16_t *)a->data + first, (size_t)kc * sizeof *row);
            memset(row + kc, 0, (size_t)pad * sizeof *row);
        } else {
            const float *s = (const float *)a->data + first;
            int64_t k = 0;
            for (; k + 16 <= kc; k += 16) {
                v_store_bf16(row + k, vf16_load(s + k));
            }
            float rest[16] = {0};
            memcpy(rest, s + k, (size_t)(kc - k) * sizeof *s);
            v_store_bf16(row + k, vf16_load(rest)); /* of whole vectors: KLD has room */
            memset(row + kc, 0, (size_t)pad * sizeof *row);
        }
    }
}

/* Columns [j0, j0 + n) of k [k0, k0 + kc), n at most NR; what is missing to NR columns and to a multiple of K_UNIT is zero. */
static void pack_b(uint16_t *dst, const cti_cpu_mat *b, int64_t j0, int64_t n, int64_t k0, int64_t kc)
{
    const uint16_t *s = (const uint16_t *)b->data + k0 * b->row + j0 * b->col;
    for (int64_t j = 0; j < NR; j += 16) {
        int64_t k = 0;
        if (b->col == 1) {
            const int64_t nj = cti_max_i64(0, cti_min_i64(16, n - j));
            for (; k < kc && nj > 0; k += 2) {
                const uint16_t *r = s + k * b->row + j;
                vi16_store(dst + k * NR + 2 * j, pair_rows(r, k + 1 < kc ? r + b->row : NULL, nj));
            }
        } else {
            for (; k + 32 <= kc && j + 16 <= n; k += 32) {
                transpose16(dst + k * NR + 2 * j, 2 * NR, s + j * b->col + k, b->col);
            }
        }
        for (; k < kc; k += 2) {
            uint16_t *words = dst + k * NR + 2 * j;
            for (int64_t i = 0; i < 16; i++) {
                const uint16_t *pair = s + (j + i) * b->col + k * b->row;
                words[2 * i] = j + i < n ? pair[0] : 0;
                words[2 * i + 1] = j + i < n && k + 1 < kc ? pair[b->row] : 0;
            }
        }
        for (; k < cti_round_up(kc, K_UNIT); k += 2) {
            vi16_store(dst + k * NR + 2 * j, (vi16){0});
        }
    }
}

#endif
