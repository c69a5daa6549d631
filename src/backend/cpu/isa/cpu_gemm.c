/* SPDX-License-Identifier: Apache-2.0 */
/* The blocked matrix product.
 *
 * Caches of two cores are further apart than they look: what one core wrote, another reads several times slower than its own, and
 * to write what another has read is slower still. So a thread packs for itself what it needs, and threads share the rows of the
 * output, the same part each in every product of the same height: it finds the rows that it made itself. Only where rows are few
 * do they share columns, since each would pack all of B for too little work. */
#include "backend/cpu/isa/cpu_gemm_bf16.h"

#include "base/pool.h"

/* Columns and depth of what a thread holds packed of B. */
enum { STRIP = 512 / CTI_NR * CTI_NR, DEPTH = CTI_VL == 16 ? 2 * CTI_KC : 4 * CTI_KC };

/* A thread's buffers, floats. */
typedef struct thread_scratch {
    float a[CTI_MC * CTI_KLD];              /* one tile of A, one block of k */
    float b[(DEPTH + CTI_PAD) * STRIP];     /* panels of CTI_NR columns, [depth + CTI_PAD][CTI_NR] each */
    float sums[CTI_MC * STRIP];             /* only where y is not f32 */
    int64_t strip, k0;                      /* what b holds of the product that runs; strip -1: nothing */
} thread_scratch;

size_t CTI_CPU_FN(gemm_scratch_bytes)(int n_threads)
{
    size_t bytes = (size_t)n_threads * sizeof(thread_scratch);
#if CTI_HAS_DP_BF16
    const size_t bf16 = CTI_CPU_FN(gemm_bf16_scratch_bytes)(n_threads);
    bytes = bf16 > bytes ? bf16 : bytes;
#endif
    return bytes;
}

#if defined(__AVX2__)
/* Stores the columns of 8 rows of 8 floats as rows. */
CTI_INLINE void transpose8_regs(__m256 r[8], float *dst, int64_t ld_dst)
{
    __m256 t[8];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        r[4 * i] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
        r[4 * i + 1] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0xee);
        r[4 * i + 2] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
        r[4 * i + 3] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xee);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        _mm256_storeu_ps(dst + i * ld_dst, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
        _mm256_storeu_ps(dst + (i + 4) * ld_dst, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
    }
}

/* 8 rows of 8 floats, strides in floats: dst[k][j] = src[j][k]. */
CTI_INLINE void transpose8(float *dst, int64_t ld_dst, const float *src, int64_t ld_src)
{
    __m256 r[8];
    CTI_UNROLL
    for (int i = 0; i < 8; i++) {
        r[i] = _mm256_loadu_ps(src + i * ld_src);
    }
    transpose8_regs(r, dst, ld_dst);
}
#endif

#if defined(__AVX2__) && CTI_VL == 8
/* A panel of 6 rows: stores are 8 wide, the 2 too many are overwritten by the next one; kc % 8 == 0, kc > 0. */
static void transpose_panel6(float *dst, const float *src, int64_t ld, int64_t kc)
{
    for (int64_t k = 0; k < kc; k += 8) {
        float t[64];
        const float *rows = src + k;
        __m256 r[8];
        CTI_UNROLL
        for (int i = 0; i < 8; i++) {
            r[i] = i < 6 ? _mm256_loadu_ps(rows + i * ld) : _mm256_setzero_ps();
        }
        transpose8_regs(r, t, 8);
        CTI_UNROLL
        for (int i = 0; i < 7; i++) {
            _mm256_storeu_ps(dst + (k + i) * 6, _mm256_loadu_ps(t + 8 * i));
        }
        memcpy(dst + (k + 7) * 6, t + 56, 6 * sizeof(float));
    }
}
#endif

static void transpose_panel(float *dst, int64_t width, const float *src, int64_t ld, int64_t n, int64_t kc)
{
    int64_t j = 0;
#if defined(__AVX2__) && CTI_VL == 8
    if (n == 6 && width == 6 && kc % 8 == 0) {
        transpose_panel6(dst, src, ld, kc);
        return;
    }
#endif
#if defined(__AVX2__)
    for (; j + 8 <= n; j += 8) {
        int64_t k = 0;
        for (; k + 8 <= kc; k += 8) {
            transpose8(dst + k * width + j, width, src + j * ld + k, ld);
        }
        for (; k < kc; k++) {
            for (int64_t i = j; i < j + 8; i++) {
                dst[k * width + i] = src[i * ld + k];
            }
        }
    }
#endif
    for (; j < n; j++) {
        for (int64_t k = 0; k < kc; k++) {
            dst[k * width + j] = src[j * ld + k];
        }
    }
}

void CTI_CPU_FN(pack_transposed)(float *dst, int64_t width, const void *src, ct_dtype dtype, int64_t ld, int64_t first_j,
                                 int64_t n, int64_t first_k, int64_t kc)
{
    for (int64_t k = 0; k < kc && n < width; k++) {
        memset(dst + k * width + n, 0, (size_t)(width - n) * sizeof(float));
    }
    if (dtype == CT_DTYPE_F32) {
        transpose_panel(dst, width, (const float *)src + first_j * ld + first_k, ld, n, kc);
        return;
    }
    enum { STEP = 64 }; /* columns of k widened at a time */
    float rows[CTI_NR * STEP];
    for (int64_t k = 0; k < kc; k += STEP) {
        int64_t nk = cti_min_i64(STEP, kc - k);
        for (int64_t j = 0; j < n; j += CTI_NR) {
            int64_t nj = cti_min_i64(CTI_NR, n - j);
            for (int64_t i = 0; i < nj; i++) {
                v_widen(rows + i * STEP, src, dtype, (first_j + j + i) * ld + first_k + k, nk);
            }
            transpose_panel(dst + k * width + j, width, rows, STEP, nj, nk);
        }
    }
}

void CTI_CPU_FN(pack_rows)(float *dst, int64_t width, const void *src, ct_dtype dtype, int64_t ld, int64_t first_k, int64_t kc,
                           int64_t first_j, int64_t n)
{
    if (dtype == CT_DTYPE_F32 && n == CTI_NR && width == CTI_NR) {
        const float *s = (const float *)src + first_k * ld + first_j;
        for (int64_t k = 0; k < kc; k++) {
            v_store(dst + k * CTI_NR, v_load(s + k * ld));
            v_store(dst + k * CTI_NR + CTI_VL, v_load(s + k * ld + CTI_VL));
        }
        return;
    }
    for (int64_t k = 0; k < kc; k++) {
        v_widen(dst + k * width, src, dtype, (first_k + k) * ld + first_j, n);
        for (int64_t j = n; j < width; j++) {
            dst[k * width + j] = 0;
        }
    }
}

/* A rows [i0, i0 + m) by k [k0, k0 + kc) in panels of CTI_MR rows; rows past m are zero. */
static void pack_a(float *dst, const cti_cpu_mat *a, int64_t i0, int64_t m, int64_t k0, int64_t kc)
{
    if (a->col == 1) { /* CTI_A_ROWS */
        for (int64_t i = 0; i < cti_round_up(m, CTI_MR); i++) {
            if (i < m) {
                v_widen(dst + i * CTI_KLD, a->data, a->dtype, (i0 + i) * a->row + k0, kc);
            } else {
                memset(dst + i * CTI_KLD, 0, (size_t)kc * sizeof(float));
            }
        }
        return;
    }
    float row[CTI_MC];
    for (int64_t k = 0; k < kc; k++) { /* CTI_A_PANEL; a panel is CTI_MR * CTI_KLD floats long, as in the other layout */
        int64_t first = (k0 + k) * a->col + i0;
        const float *s = row;
        const char *ahead = (const char *)a->data + (first + 8 * a->col) * (int64_t)ct_dtype_size_bytes(a->dtype);
        for (int64_t i = 0; i < m && k + 8 < kc; i += 16) {
            __builtin_prefetch(ahead + i * 4);
        }
        if (a->dtype == CT_DTYPE_F32 && m % CTI_MR == 0) {
            s = (const float *)a->data + first;
        } else {
            v_widen(row, a->data, a->dtype, first, m);
            memset(row + m, 0, (size_t)(cti_round_up(m, CTI_MR) - m) * sizeof(float));
        }
        for (int64_t i = 0; i < m; i += CTI_MR) {
            memcpy(dst + i * CTI_KLD + k * CTI_MR, s + i, CTI_MR * sizeof(float));
        }
    }
}

/* Whole panels of f32 rows, four at a time, so that what is read from a row lies together. Returns the columns done. */
static int64_t pack_b_quads(float *dst, int64_t stride, const cti_cpu_mat *b, int64_t j0, int64_t n, int64_t k0, int64_t kc)
{
    enum { QUAD = 4 };
    int64_t j = 0;
    for (; j + QUAD * CTI_NR <= n; j += QUAD * CTI_NR) {
        const float *s = (const float *)b->data + k0 * b->row + j0 + j;
        float *d = dst + j / CTI_NR * stride;
        for (int64_t k = 0; k < kc; k++) {
            for (int p = 0; p < QUAD && k + 8 < kc; p++) {
                __builtin_prefetch(s + 8 * b->row + p * CTI_NR);
            }
            CTI_UNROLL
            for (int p = 0; p < QUAD; p++) {
                v_store(d + p * stride, v_load(s + p * CTI_NR));
                v_store(d + p * stride + CTI_VL, v_load(s + p * CTI_NR + CTI_VL));
            }
            s += b->row;
            d += CTI_NR;
        }
    }
    return j;
}

/* Columns [j0, j0 + n), k [k0, k0 + kc): panel p is [kc][CTI_NR] at dst + p * stride. */
static void pack_b(float *dst, int64_t stride, const cti_cpu_mat *b, int64_t j0, int64_t n, int64_t k0, int64_t kc)
{
    const bool has_rows = b->col == 1;
    int64_t j = has_rows && b->dtype == CT_DTYPE_F32 ? pack_b_quads(dst, stride, b, j0, n, k0, kc) : 0;
    for (; j < n; j += CTI_NR) {
        const int64_t nj = cti_min_i64(CTI_NR, n - j);
        float *panel = dst + j / CTI_NR * stride;
        if (has_rows) {
            CTI_CPU_FN(pack_rows)(panel, CTI_NR, b->data, b->dtype, b->row, k0, kc, j0 + j, nj);
        } else {
            CTI_CPU_FN(pack_transposed)(panel, CTI_NR, b->data, b->dtype, b->col, j0 + j, nj, k0, kc);
        }
    }
}

/* A packed block, or whole rows of A where they lie. Panel p starts at data + p * CTI_MR * ld. */
typedef struct a_block {
    const float *data, *last; /* last: the panel that is not whole, always packed */
    int64_t ld;
    cti_a_layout layout;
} a_block;

/* f32 rows are read in place, unless their stride is a multiple of 4 KiB: then all rows of a panel fall into one set of the cache. */
static a_block take_a(float *buf, const cti_cpu_mat *a, int64_t i0, int64_t m, int64_t k0, int64_t kc)
{
    const bool plain = a->col == 1 && a->dtype == CT_DTYPE_F32 && a->row % 1024 != 0;
    if (!plain) {
        pack_a(buf, a, i0, m, k0, kc);
        const a_block packed = {buf, buf + m / CTI_MR * CTI_MR * CTI_KLD, CTI_KLD, a->col == 1 ? CTI_A_ROWS : CTI_A_PANEL};
        return packed;
    }
    const int64_t whole = m / CTI_MR * CTI_MR;
    if (whole < m) {
        pack_a(buf, a, i0 + whole, m - whole, k0, kc);
    }
    const a_block rows = {(const float *)a->data + i0 * a->row + k0, buf, a->row, CTI_A_PLAIN};
    return rows;
}

/* The first `rows` rows of a panel that is not whole, or of a packed one. */
CTI_INLINE void ukr_few(const int rows, const a_block *a, const float *panel, int64_t kc, const float *b, const float *cin, int64_t ldin,
                        float *cout, int64_t ld)
{
    if (a->layout == CTI_A_PANEL) {
        cti_ukr_rows(2, rows, CTI_A_PANEL, kc, panel, 0, b, cin, ldin, cout, ld);
    } else {
        cti_ukr_rows(2, rows, CTI_A_ROWS, kc, panel, 0, b, cin, ldin, cout, ld);
    }
}

/* One micro-tile at the border, mi by nj: with as few rows as need be, and where it is not whole through a tile of its own. */
static void ukr_edge(const a_block *a, const float *panel, int64_t kc, const float *b, const float *cin, int64_t ldin, float *cout,
                     int64_t ld, int64_t mi, int64_t nj)
{
    enum { FEW = CTI_MR / 3, HALF = CTI_MR * 4 / 7 };
    if (nj == CTI_NR && mi == FEW) {
        ukr_few(FEW, a, panel, kc, b, cin, ldin, cout, ld);
        return;
    }
    if (nj == CTI_NR && mi == HALF) {
        ukr_few(HALF, a, panel, kc, b, cin, ldin, cout, ld);
        return;
    }
    float tile[CTI_MR * CTI_NR];
    if (mi == CTI_MR && a->layout == CTI_A_PLAIN) {
        cti_ukr_lda(2, CTI_A_PLAIN, kc, panel, a->ld, b, NULL, 0, tile, CTI_NR);
    } else if (mi <= FEW) {
        ukr_few(FEW, a, panel, kc, b, NULL, 0, tile, CTI_NR);
    } else if (mi <= HALF) {
        ukr_few(HALF, a, panel, kc, b, NULL, 0, tile, CTI_NR);
    } else {
        ukr_few(CTI_MR, a, panel, kc, b, NULL, 0, tile, CTI_NR);
    }
    for (int64_t i = 0; i < mi; i++) {
        for (int64_t j = 0; j < nj; j++) {
            float s = tile[i * CTI_NR + j];
            cout[i * ld + j] = cin ? s + cin[i * ldin + j] : s;
        }
    }
}

/* All micro-tiles of one k block. The B panel stays in the first-level cache while A's panels pass by. */
static void block_rows(const a_block *a, int64_t m, int64_t n, int64_t kc, const float *b, int64_t b_stride, const float *cin,
                       int64_t ldin, float *cout, int64_t ld)
{
    for (int64_t j = 0; j < n; j += CTI_NR, b += b_stride) {
        for (int64_t i = 0; i < m; i += CTI_MR) {
            const float *panel = i + CTI_MR > m ? a->last : a->data + i * a->ld;
            const float *ci = cin ? cin + i * ldin + j : NULL;
            float *co = cout + i * ld + j;
            if (i + CTI_MR > m || j + CTI_NR > n) {
                ukr_edge(a, panel, kc, b, ci, ldin, co, ld, cti_min_i64(CTI_MR, m - i), cti_min_i64(CTI_NR, n - j));
            } else if (a->layout == CTI_A_PANEL) {
                cti_ukr(2, CTI_A_PANEL, kc, panel, b, ci, ldin, co, ld);
            } else if (a->layout == CTI_A_ROWS) {
                cti_ukr(2, CTI_A_ROWS, kc, panel, b, ci, ldin, co, ld);
            } else {
                cti_ukr_lda(2, CTI_A_PLAIN, kc, panel, a->ld, b, ci, ldin, co, ld);
            }
        }
    }
}

/* A product that runs, over k [k0, k1), of which at most `depth` are packed at once, cut into strips of columns and tiles of rows. */
typedef struct product {
    const cti_cpu_gemm *g;
    const void *c0;
    thread_scratch *scratch; /* one a thread */
    int64_t k0, k1, depth;
    int64_t strip_cols, tile_rows, n_tiles;
    int64_t first_strip; /* of the turns that are shared */
    int64_t parts, part; /* a strip is the same columns of each part: of y, or of its two halves, `part` columns wide */
} product;

static int64_t columns_of(const product *w, int64_t strip)
{
    return cti_min_i64(w->strip_cols, w->part - strip * w->strip_cols);
}

/* The strip's columns in t->b, k [k0, k0 + depth). */
static void need_strip(const product *w, thread_scratch *t, int64_t strip, int64_t k0)
{
    if (t->strip == strip && t->k0 == k0) {
        return;
    }
    const int64_t stride = (w->depth + CTI_PAD) * CTI_NR, kc = cti_min_i64(w->depth, w->k1 - k0);
    for (int64_t p = 0; p < w->parts; p++) {
        pack_b(t->b + p * w->strip_cols / CTI_NR * stride, stride, &w->g->b, p * w->part + strip * w->strip_cols, columns_of(w, strip), k0, kc);
    }
    t->strip = strip;
    t->k0 = k0;
}

/* Rows [i0, i0 + m) of one strip in one part. */
static void run_part(const product *w, thread_scratch *t, int64_t strip, int64_t part, int64_t i0, int64_t m)
{
    const cti_cpu_gemm *g = w->g;
    const int64_t j0 = part * w->part + strip * w->strip_cols, n = columns_of(w, strip);
    const bool is_f32 = g->y_dtype == CT_DTYPE_F32;
    float *acc = is_f32 ? (float *)g->y + i0 * g->ldy + j0 : t->sums;
    const int64_t ld = is_f32 ? g->ldy : w->strip_cols, stride = (w->depth + CTI_PAD) * CTI_NR;
    const float *b = t->b + part * w->strip_cols / CTI_NR * stride, *cin = NULL;
    if (w->c0 && is_f32) {
        cin = (const float *)w->c0 + i0 * g->ldy + j0;
    } else if (w->c0) {
        for (int64_t i = 0; i < m; i++) {
            v_widen(acc + i * ld, w->c0, g->y_dtype, (i0 + i) * g->ldy + j0, n);
        }
        cin = acc;
    }
    int64_t k0 = w->k0;
    do { /* once at least: without k the output is c0 or zero */
        need_strip(w, t, strip, k0);
        for (int64_t k = k0; k == k0 || (k < k0 + w->depth && k < w->k1); k += CTI_KC) {
            const int64_t kc = cti_min_i64(CTI_KC, w->k1 - k);
            const a_block a = take_a(t->a, &g->a, i0, m, k, kc);
            block_rows(&a, m, n, kc, b + (k - k0) * CTI_NR, stride, cin, ld, acc, ld);
            cin = acc;
        }
        k0 += w->depth;
    } while (k0 < w->k1);
    for (int64_t i = 0; i < m && !is_f32; i++) {
        v_narrow(g->y, g->y_dtype, (i0 + i) * g->ldy + j0, acc + i * ld, n);
    }
}

/* Rows [i0, i0 + m) of one strip. */
static void run_tile(const product *w, thread_scratch *t, int64_t strip, int64_t i0, int64_t m)
{
    for (int64_t p = 0; p < w->parts; p++) {
        run_part(w, t, strip, p, i0, m);
    }
    if (w->parts == 2 && w->k1 == w->g->k) {
        w->g->halves_done(w->g->ctx, i0, m, strip * w->strip_cols, columns_of(w, strip));
    }
}

/* Turn t is tile t % n_tiles of strip t / n_tiles. */
static void run_turns(void *ctx, int64_t first, int64_t end, int thread)
{
    const product *w = ctx;
    thread_scratch *s = &w->scratch[thread];
    for (int64_t t = first; t < end; t++) {
        const int64_t i0 = t % w->n_tiles * w->tile_rows;
        run_tile(w, s, w->first_strip + t / w->n_tiles, i0, cti_min_i64(w->tile_rows, w->g->m - i0));
    }
}

/* Few rows (decoding): every output is a dot product of two contiguous rows, nothing is packed. */
static void run_dots(void *ctx, int64_t first, int64_t end, int thread)
{
    const cti_cpu_gemm *g = ctx;
    (void)thread;
    for (int64_t j = first; j < end; j++) {
        for (int64_t i = 0; i < g->m; i++) {
            vf s[4] = {{0}, {0}, {0}, {0}};
            float tail = 0;
            for (int64_t k = 0; k < g->k; k += CTI_KC) {
                float a[CTI_KC], b[CTI_KC];
                const float *pa = a, *pb = b;
                int64_t kc = cti_min_i64(CTI_KC, g->k - k);
                if (g->a.dtype == CT_DTYPE_F32) {
                    pa = (const float *)g->a.data + i * g->a.row + k;
                } else {
                    v_widen(a, g->a.data, g->a.dtype, i * g->a.row + k, kc);
                }
                if (g->b.dtype == CT_DTYPE_F32) {
                    pb = (const float *)g->b.data + j * g->b.col + k;
                } else {
                    v_widen(b, g->b.data, g->b.dtype, j * g->b.col + k, kc);
                }
                int64_t x = 0;
                for (; x + 4 * CTI_VL <= kc; x += 4 * CTI_VL) {
                    for (int u = 0; u < 4; u++) {
                        s[u] = v_fma(v_load(pa + x + u * CTI_VL), v_load(pb + x + u * CTI_VL), s[u]);
                    }
                }
                for (; x < kc; x++) {
                    tail += pa[x] * pb[x];
                }
            }
            float y = v_hsum((s[0] + s[1]) + (s[2] + s[3])) + tail;
            int64_t at = i * g->ldy + j;
            if (g->c0) {
                float c;
                v_widen(&c, g->c0, g->y_dtype, at, 1);
                y += c;
            }
            v_narrow(g->y, g->y_dtype, at, &y, 1);
        }
    }
}

/* Fewest rows of a thread that are worth packing all of B for. */
enum { ROWS_MIN = 192 };

/* Panels of rows in a tile, at most `most`: so that the thread with most rows has few. */
static int64_t choose_tile(int64_t panels, int64_t most, int threads)
{
    int64_t best = most, least = INT64_MAX;
    for (int64_t p = most; p >= cti_max_i64(1, most / 2); p--) {
        const int64_t rows = cti_ceil_div(cti_ceil_div(panels, p), threads) * p;
        if (rows < least) {
            least = rows;
            best = p;
        }
    }
    return best;
}

/* All of the output, k [k0, k1). */
static void run_product(product *w, int threads)
{
    const cti_cpu_gemm *g = w->g;
    const int64_t most = (int64_t)(DEPTH + CTI_PAD) * STRIP / (w->depth + CTI_PAD) / CTI_NR * CTI_NR;
    const bool by_rows = threads == 1 || g->m >= threads * ROWS_MIN || g->n < 2 * threads * CTI_NR;
    w->parts = g->halves_done ? 2 : 1;
    w->part = g->n / w->parts;
    const int64_t max_cols = cti_max_i64(CTI_NR, cti_min_i64(STRIP, most) / w->parts / CTI_NR * CTI_NR);
    const int64_t panels = cti_ceil_div(g->m, CTI_MR), least_tiles = by_rows ? 2 * threads : 2;
    w->tile_rows = CTI_MR * choose_tile(panels, cti_min_i64(CTI_MC / CTI_MR, cti_ceil_div(panels, least_tiles)), by_rows ? threads : 1);
    w->n_tiles = cti_ceil_div(g->m, w->tile_rows);
    int64_t strips = cti_ceil_div(w->part, max_cols);
    strips = by_rows ? strips : cti_round_up(strips, threads);
    w->strip_cols = cti_round_up(cti_ceil_div(w->part, strips), CTI_NR);
    strips = cti_ceil_div(w->part, w->strip_cols);
    for (int i = 0; i < threads; i++) {
        w->scratch[i].strip = -1;
    }
    for (w->first_strip = 0; w->first_strip < strips; w->first_strip += by_rows ? 1 : strips) {
        const int64_t turns = (by_rows ? 1 : strips) * w->n_tiles;
        if (threads > 1) {
            cti_pool_run(turns, 1, run_turns, w);
        } else {
            run_turns(w, 0, turns, 0);
        }
    }
}

static void rows_done(void *ctx, int64_t first, int64_t end, int thread)
{
    const cti_cpu_gemm *g = ctx;
    (void)thread;
    g->halves_done(g->ctx, first, end - first, 0, g->n / 2);
}

/* Products that are not cut into tiles of this file; their epilogue comes behind them. Returns false where g is none. */
static bool run_other(const cti_cpu_gemm *g, void *scratch, size_t scratch_bytes)
{
    if (g->m <= 3 && g->a.col == 1 && g->b.row == 1) {
        cti_pool_run(g->n, cti_max_i64(1, 8192 / cti_max_i64(1, g->k)), run_dots, (void *)g); /* only read */
#if CTI_HAS_DP_BF16
    } else if (CTI_CPU_FN(gemm_is_bf16)(g)) {
        CTI_CPU_FN(gemm_bf16)(g, scratch, scratch_bytes);
#endif
    } else {
        (void)scratch;
        (void)scratch_bytes;
        return false;
    }
    if (g->halves_done) {
        cti_pool_run(g->m, cti_max_i64(1, 8192 / g->n), rows_done, (void *)g); /* only read */
    }
    return true;
}

void CTI_CPU_FN(gemm)(const cti_cpu_gemm *g, void *scratch, size_t scratch_bytes)
{
    if (g->m == 0 || g->n == 0 || run_other(g, scratch, scratch_bytes)) {
        return;
    }
    const int threads = scratch_bytes >= (size_t)cti_pool_threads() * sizeof(thread_scratch) ? cti_pool_threads() : 1;
    product w = {.g = g, .c0 = g->c0, .scratch = scratch};
    if (g->y_dtype != CT_DTYPE_F32) { /* sums stay with their tile until they are rounded */
        w.k1 = g->k;
        w.depth = cti_max_i64(1, cti_min_i64(g->k, 4 * DEPTH));
        run_product(&w, threads);
        return;
    }
    for (w.k0 = 0; w.k0 < g->k || w.k0 == 0; w.k0 += DEPTH) {
        w.k1 = cti_min_i64(w.k0 + DEPTH, g->k);
        w.depth = cti_max_i64(1, w.k1 - w.k0);
        run_product(&w, threads);
        w.c0 = g->y;
    }
}
