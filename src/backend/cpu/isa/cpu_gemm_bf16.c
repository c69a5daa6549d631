/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix product of bf16 operands. B is packed as words, [k / 2][n] pairs of two neighbours along k; A is read where it lies or
 * packed likewise; a micro-tile is 14 rows by 32 columns of f32 sums, which leaves two registers for B and one for A. */
#include "backend/cpu/isa/cpu_gemm_bf16.h"

#if CTI_HAS_DP_BF16

#include "base/pool.h"

enum {
    MR = 14,
    NR = 32,       /* two vectors of sums */
    KC = 512,      /* longest block of k: a panel of B, 32 KiB, stays in the first-level cache while A's panels pass by */
    KLD = KC + 32, /* row stride of packed A, elements: off the powers of two, so that rows fall into different cache sets */
    MC = MR * 36,  /* largest output tile of one task */
    NC = NR * 12,
    STEP = 32 /* blocks of k are cut at multiples of it */
};

/* One task's buffers. */
typedef struct tile_scratch {
    uint16_t a[MC * KLD];
    uint16_t b[KC * NR];
    float sums[MC * NC]; /* between blocks of k, where y is not f32 */
} tile_scratch;

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

size_t CTI_CPU_FN(gemm_bf16_scratch_bytes)(int n_threads)
{
    return (size_t)n_threads * sizeof(tile_scratch);
}

bool CTI_CPU_FN(gemm_is_bf16)(const cti_cpu_gemm *g)
{
    return g->b.dtype == CT_DTYPE_BF16 && (g->a.dtype == CT_DTYPE_BF16 || (g->a.dtype == CT_DTYPE_F32 && g->may_round_a));
}

/* ---- packing ----------------------------------------------------------------------------------------------------- */

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

/* A_PANEL. Vectors are stored whole: the two words too many are overwritten by the next pair, or lie behind the last one. */
static void pack_a_panels(uint16_t *dst, const cti_cpu_mat *a, int64_t rows, int64_t i0, int64_t m, int64_t k0, int64_t kc)
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

/* A_ROWS; an odd row ends with a zero, rows past m up to a whole panel are zero. */
static void pack_a_rows(uint16_t *dst, const cti_cpu_mat *a, int64_t i0, int64_t m, int64_t k0, int64_t kc)
{
    for (int64_t i = 0; i < cti_round_up(m, MR); i++) {
        uint16_t *row = dst + i * KLD;
        const int64_t first = (i0 + i) * a->row + k0;
        if (i >= m) {
            memset(row, 0, (size_t)(kc + 1) * sizeof *row);
        } else if (a->dtype == CT_DTYPE_BF16) {
            memcpy(row, (const uint16_t *)a->data + first, (size_t)kc * sizeof *row);
            row[kc] = 0;
        } else {
            const float *s = (const float *)a->data + first;
            int64_t k = 0;
            for (; k + 16 <= kc; k += 16) {
                v_store_bf16(row + k, vf16_load(s + k));
            }
            float rest[16] = {0};
            memcpy(rest, s + k, (size_t)(kc - k) * sizeof *s);
            v_store_bf16(row + k, vf16_load(rest));
        }
    }
}

/* Even rows of bf16 are read in place, unless their stride is a multiple of 4 KiB: then all rows of a panel fall into one set
 * of the cache. */
static a_block take_a(uint16_t *buf, const cti_cpu_gemm *g, int64_t i0, int64_t m, int64_t k0, int64_t kc)
{
    const cti_cpu_mat *a = &g->a;
    const int64_t whole = m / MR * MR;
    if (a->col != 1) {
        pack_a_panels(buf, a, g->m, i0, m, k0, kc);
        const a_block panels = {buf, buf + whole * KLD, KLD, A_PANEL};
        return panels;
    }
    if (a->dtype == CT_DTYPE_BF16 && kc % 2 == 0 && a->row % 2048 != 0) {
        if (whole < m) {
            pack_a_rows(buf, a, i0 + whole, m - whole, k0, kc);
        }
        const a_block plain = {(const uint16_t *)a->data + i0 * a->row + k0, buf, a->row, A_ROWS};
        return plain;
    }
    pack_a_rows(buf, a, i0, m, k0, kc);
    const a_block rows = {buf, buf + whole * KLD, KLD, A_ROWS};
    return rows;
}

#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (vi16){__VA_ARGS__})
#endif
/* The same choice in each of the four quarters. */
#define QUARTERS(w, x, y, z) w, x, y, z, w + 4, x + 4, y + 4, z + 4, w + 8, x + 8, y + 8, z + 8, w + 12, x + 12, y + 12, z + 12

/* 16 rows of 16 words, row strides in elements: dst[k][j] = src[j][k]. First blocks of 4 by 4 in every quarter, then quarters. */
CTI_INLINE void transpose16(uint16_t *dst, int64_t ld_dst, const uint16_t *src, int64_t ld_src)
{
    vi16 r[16], t[16];
    CTI_UNROLL
    for (int i = 0; i < 16; i++) {
        r[i] = vi16_load(src + i * ld_src);
    }
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

/* Columns [j0, j0 + n) of k [k0, k0 + kc), n at most NR; what is missing to NR columns and to an even k is zero. */
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
    }
}

/* ---- micro-kernel ------------------------------------------------------------------------------------------------ */

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

/* ---- driver ------------------------------------------------------------------------------------------------------ */

/* All micro-tiles of one panel of B. */
static void panel_rows(const a_block *a, int64_t m, int64_t pairs, const uint16_t *b, const target *t, int64_t j, int64_t nj)
{
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

static void run_tile(const cti_cpu_gemm *g, tile_scratch *s, int64_t i0, int64_t m, int64_t j0, int64_t n)
{
    const int64_t blocks = cti_max_i64(1, cti_ceil_div(g->k, KC));
    const int64_t step = cti_max_i64(STEP, cti_round_up(cti_ceil_div(g->k, blocks), STEP));
    const size_t y_at = (size_t)(i0 * g->ldy + j0) * ct_dtype_size_bytes(g->y_dtype);
    const target y = {g->c0 ? (const char *)g->c0 + y_at : NULL, (char *)g->y + y_at, g->y_dtype, g->y_dtype, g->ldy, g->ldy};
    const bool in_y = g->y_dtype == CT_DTYPE_F32;
    target t = y;
    for (int64_t k = 0; k < g->k || k == 0; k += step) {
        const int64_t kc = cti_min_i64(step, g->k - k);
        const bool is_last = k + kc >= g->k;
        const a_block a = take_a(s->a, g, i0, m, k, kc);
        t.out = is_last || in_y ? y.out : s->sums;
        t.out_dtype = is_last ? y.out_dtype : CT_DTYPE_F32;
        t.ld_out = is_last || in_y ? y.ld_out : NC;
        for (int64_t j = 0; j < n; j += NR) {
            const int64_t nj = cti_min_i64(NR, n - j);
            pack_b(s->b, &g->b, j0 + j, nj, k, kc);
            panel_rows(&a, m, (kc + 1) / 2, s->b, &t, j, nj);
        }
        t.in = t.out;
        t.in_dtype = t.out_dtype;
        t.ld_in = t.ld_out;
    }
}

/* The tile with the least time of the busiest thread: its products, and what it packs. No result depends on the choice. */
static void choose_tiles(const cti_cpu_gemm *g, int threads, int64_t *out_m, int64_t *out_n)
{
    const int64_t pack = 8; /* packing an element costs as much as this many multiply-adds */
    const int64_t low_m = cti_ceil_div(g->m, MC), low_n = cti_ceil_div(g->n, NC);
    int64_t best = -1;
    for (int64_t n_m = low_m; n_m <= low_m + threads; n_m++) {
        for (int64_t n_n = low_n; n_n <= low_n + threads; n_n++) {
            const int64_t m = cti_round_up(cti_ceil_div(g->m, n_m), MR), n = cti_round_up(cti_ceil_div(g->n, n_n), NR);
            const int64_t tiles = cti_ceil_div(g->m, m) * cti_ceil_div(g->n, n);
            const int64_t cost = cti_ceil_div(tiles, threads) * (m * n + pack * (m + n));
            if (best < 0 || cost < best) {
                best = cost;
                *out_m = m;
                *out_n = n;
            }
        }
    }
}

typedef struct gemm_run {
    const cti_cpu_gemm *g;
    tile_scratch *scratch;
    int64_t step_m, step_n, n_n;
} gemm_run;

/* Tiles row by row: a thread has the same rows in every product of one height. */
static void run_tasks(void *ctx, int64_t first, int64_t end, int thread)
{
    const gemm_run *r = ctx;
    for (int64_t t = first; t < end; t++) {
        const int64_t i0 = t / r->n_n * r->step_m, j0 = t % r->n_n * r->step_n;
        run_tile(r->g, &r->scratch[thread], i0, cti_min_i64(r->step_m, r->g->m - i0), j0, cti_min_i64(r->step_n, r->g->n - j0));
    }
}

void CTI_CPU_FN(gemm_bf16)(const cti_cpu_gemm *g, void *scratch, size_t scratch_bytes)
{
    if (g->m == 0 || g->n == 0) {
        return;
    }
    const bool is_shared = scratch_bytes / sizeof(tile_scratch) >= (size_t)cti_pool_threads();
    gemm_run r = {.g = g, .scratch = scratch};
    choose_tiles(g, is_shared ? cti_pool_threads() : 1, &r.step_m, &r.step_n);
    r.n_n = cti_ceil_div(g->n, r.step_n);
    const int64_t n_tiles = cti_ceil_div(g->m, r.step_m) * r.n_n;
    if (is_shared) {
        cti_pool_run(n_tiles, 1, run_tasks, &r);
    } else {
        run_tasks(&r, 0, n_tiles, 0);
    }
}

double CTI_CPU_FN(dot_loop)(int64_t n)
{
    enum { CHAINS = 20 };
    vf16 sums[CHAINS];
    for (int i = 0; i < CHAINS; i++) {
        sums[i] = (float)i - (vf16){0};
    }
    const uint16_t one[2] = {0x3f80, 0x3f80}, half[2] = {0x3f00, 0xbf00};
    const vi16 x = vi16_set1(one), y = vi16_set1(half);
    for (int64_t k = 0; k < n; k++) {
#pragma GCC unroll 20
        for (int i = 0; i < CHAINS; i++) {
            sums[i] = v_dp_bf16(sums[i], x, y);
        }
    }
    vf16 sum = sums[0];
    for (int i = 1; i < CHAINS; i++) {
        sum += sums[i];
    }
    volatile float sink = sum[0] + sum[15]; /* keeps the loop */
    (void)sink;
    return (double)n * CHAINS * 16 * 4;
}

#else

double CTI_CPU_FN(dot_loop)(int64_t n)
{
    (void)n;
    return 0;
}

#endif
