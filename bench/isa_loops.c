/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that measure what a level's instructions can reach; compiled once per level, with the flags of the kernels. */
#include "backend/cpu/isa/cpu_simd.h"

double CTI_CPU_FN(bench_dot)(int64_t n);
double CTI_CPU_FN(bench_exp)(int64_t n);

/* FLOPs of n rounds of independent bf16 dot products with f32 sums; 0: this level has none. */
#if defined(__AVX512BF16__)
double CTI_CPU_FN(bench_dot)(int64_t n)
{
    enum { CHAINS = 12 };
    __m512 acc[CHAINS];
    const __m512bh x = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5F), _mm512_set1_ps(0.25F));
    for (int i = 0; i < CHAINS; i++) {
        acc[i] = _mm512_set1_ps((float)i);
    }
    for (int64_t k = 0; k < n; k++) {
#pragma GCC unroll 16
        for (int i = 0; i < CHAINS; i++) {
            acc[i] = _mm512_dpbf16_ps(acc[i], x, x);
        }
    }
    for (int i = 1; i < CHAINS; i++) {
        acc[0] = _mm512_add_ps(acc[0], acc[i]);
    }
    volatile float sink = _mm512_reduce_add_ps(acc[0]);
    (void)sink;
    return (double)n * CHAINS * 16 * 4;
}
#else
double CTI_CPU_FN(bench_dot)(int64_t n)
{
    (void)n;
    return 0;
}
#endif

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
