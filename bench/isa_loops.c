/* SPDX-License-Identifier: Apache-2.0 */
/* The loops that measure a level's exponentials and its micro-kernel; compiled once per level, with the flags of its kernels. */
#include <assert.h>

#include "backend/cpu/isa/cpu_gemm.h"
#include "bench.h"

double CTI_CPU_FN(bench_exp)(int64_t n);
double CTI_CPU_FN(bench_ukr)(int64_t n, float *tile, int64_t lda);

/* Exponentials of n passes over a row in the first cache, summed as softmax sums them. */
double CTI_CPU_FN(bench_exp)(int64_t n)
{
    enum { ROW = 1024, CHAINS = 4 };
    float row[ROW];
    for (int i = 0; i < ROW; i++) {
        row[i] = (float)-i / 64.0F;
    }
    vf sum[CHAINS] = {{0}};
    for (int64_t k = 0; k < n; k++) {
        for (int i = 0; i < ROW; i += CHAINS * CTI_VL) {
#pragma GCC unroll 4
            for (int c = 0; c < CHAINS; c++) {
                sum[c] += v_exp2_neg(v_load(row + i + c * CTI_VL));
            }
        }
        row[k % ROW] -= 1e-3F; /* so that no pass can be done once for all */
    }
    volatile float sink = v_hsum((sum[0] + sum[1]) + (sum[2] + sum[3]));
    (void)sink;
    return (double)n * ROW;
}

/* n tiles of products over CTI_KC, the same one each time; returns their FLOPs. Operands and result lie in `tile`, BENCH_TILE
 * floats; A in rows `lda` apart, or packed as a panel where lda is 0. */
double CTI_CPU_FN(bench_ukr)(int64_t n, float *tile, int64_t lda)
{
    enum { A = BENCH_MAX_LDA * CTI_MR, B = CTI_KC * CTI_NR };
    static_assert(A + B + CTI_MR * CTI_NR <= BENCH_TILE, "a tile has room");
    const float *b = tile + A;
    float *c = tile + A + B;
    for (int64_t k = 0; k < n; k++) {
        if (lda > 0) {
            cti_ukr_lda(2, CTI_A_PLAIN, CTI_KC, tile, lda, b, NULL, 0, c, CTI_NR);
        } else {
            cti_ukr(2, CTI_A_PANEL, CTI_KC, tile, b, NULL, 0, c, CTI_NR);
        }
    }
    return 2.0 * (double)n * CTI_MR * CTI_NR * CTI_KC;
}
