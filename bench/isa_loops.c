/* SPDX-License-Identifier: Apache-2.0 */
/* The loop that measures a level's exponentials; compiled once per level, with the flags of its kernels. */
#include "backend/cpu/isa/cpu_simd.h"

double CTI_CPU_FN(bench_exp)(int64_t n);

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
