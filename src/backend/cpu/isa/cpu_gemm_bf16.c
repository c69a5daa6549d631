/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix product of bf16 operands. B is packed as words, [k / 2][n] pairs of two neighbours along k; A is read where it lies or
 * packed likewise. The micro-kernel is that of vectors (cpu_ukr_dot.h) or of AMX's tiles (cpu_ukr_amx.h). */
#include "backend/cpu/isa/cpu_gemm_bf16.h"

#include "backend/cpu/isa/cpu_amx.h"

#if CTI_HAS_DP_BF16

#include "base/pool.h"
#if CTI_HAS_AMX
#include "backend/cpu/isa/cpu_ukr_amx.h"
#else
#include "backend/cpu/isa/cpu_ukr_dot.h"
#endif

enum {
    MC = MR * (512 / MR), /* largest output tile of one task */
    NC = NR * 12
};

/* One task's buffers. */
typedef struct tile_scratch {
    uint16_t a[MC * KLD];
    uint16_t b[KC * NR];
    float sums[MC * NC]; /* between blocks of k, where y is not f32 */
} tile_scratch;

size_t CTI_CPU_FN(gemm_bf16_scratch_bytes)(int n_threads)
{
    return (size_t)n_threads * sizeof(tile_scratch);
}

bool CTI_CPU_FN(gemm_is_bf16)(const cti_cpu_gemm *g)
{
    return g->b.dtype == CT_DTYPE_BF16 && (g->a.dtype == CT_DTYPE_BF16 || (g->a.dtype == CT_DTYPE_F32 && g->may_round_a));
}

/* Rows of bf16 are read in place where kc is a multiple of K_UNIT, unless their stride is a multiple of 4 KiB: then all rows of a panel
 * fall into one set of the cache. */
static a_block take_a(uint16_t *buf, const cti_cpu_gemm *g, int64_t i0, int64_t m, int64_t k0, int64_t kc)
{
    const cti_cpu_mat *a = &g->a;
    const int64_t whole = m / MR * MR;
    if (a->col != 1) {
        pack_a_columns(buf, a, g->m, i0, m, k0, kc);
        const a_block columns = {buf, buf + whole * KLD, KLD, CTI_HAS_AMX ? A_ROWS : A_PANEL};
        return columns;
    }
    if (a->dtype == CT_DTYPE_BF16 && kc % K_UNIT == 0 && a->row % 2048 != 0) {
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

/* ---- driver ------------------------------------------------------------------------------------------------------ */

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
            panel_rows(&a, m, kc, s->b, &t, j, nj);
        }
        t.in = t.out;
        t.in_dtype = t.out_dtype;
        t.ld_in = t.ld_out;
    }
}

/* The tile with the least time of the busiest thread: its products, and what it packs. No result depends on the choice. */
static void choose_tiles(const cti_cpu_gemm *g, int threads, int64_t *out_m, int64_t *out_n)
{
    const int64_t low_m = cti_ceil_div(g->m, MC), low_n = cti_ceil_div(g->n, NC);
    int64_t best = -1;
    for (int64_t n_m = low_m; n_m <= low_m + threads; n_m++) {
        for (int64_t n_n = low_n; n_n <= low_n + threads; n_n++) {
            const int64_t m = cti_round_up(cti_ceil_div(g->m, n_m), MR), n = cti_round_up(cti_ceil_div(g->n, n_n), NR);
            const int64_t tiles = cti_ceil_div(g->m, m) * cti_ceil_div(g->n, n);
            const int64_t cost = cti_ceil_div(tiles, threads) * (m * n + PACK_COST * (m + n));
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
    ukr_begin();
    for (int64_t t = first; t < end; t++) {
        const int64_t i0 = t / r->n_n * r->step_m, j0 = t % r->n_n * r->step_n;
        run_tile(r->g, &r->scratch[thread], i0, cti_min_i64(r->step_m, r->g->m - i0), j0, cti_min_i64(r->step_n, r->g->n - j0));
    }
    ukr_end();
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

#if CTI_HAS_AMX

double CTI_CPU_FN(dot_loop)(int64_t n)
{
    return amx_loop(n);
}

#else

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

#endif

#else

double CTI_CPU_FN(dot_loop)(int64_t n)
{
    (void)n;
    return 0;
}

#endif
