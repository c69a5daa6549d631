/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix product that matmul, the loss and attention share: its micro-kernel, its packing and its driver. */
#ifndef CTI_BACKEND_CPU_ISA_CPU_GEMM_H
#define CTI_BACKEND_CPU_ISA_CPU_GEMM_H

#include "backend/cpu/isa/cpu_simd.h"

/* Sums over k are cut into blocks of CTI_KC, in order; inside a block the micro-kernel adds k by k. No element's sum depends on
 * how the output is tiled, so neither on the number of threads. */
#define CTI_KC 256
/* Row stride of packed A rows, floats: off the powers of two, so that rows fall into different cache sets. */
#define CTI_KLD (CTI_KC + 16)
/* Rows between packed panels that are left free, so that panels fall into different cache sets. */
#define CTI_PAD 1
/* Rows of the largest output tile. */
#define CTI_MC (CTI_MR * (132 / CTI_MR))

/* An operand: element (i, j) at data[i * row + j * col]; one of row and col is 1. f32 or bf16. */
typedef struct cti_cpu_mat {
    const void *data;
    ct_dtype dtype;
    int64_t row, col;
} cti_cpu_mat;

typedef struct cti_cpu_gemm {
    int64_t m, n, k;
    cti_cpu_mat a;  /* [m, k] */
    cti_cpu_mat b;  /* [k, n] */
    const void *c0; /* NULL, or [m, n] of y's dtype and stride, added; may be y itself */
    void *y;
    ct_dtype y_dtype;
    int64_t ldy;
    bool may_round_a; /* where b is bf16, an f32 a may be rounded to bf16, so that a level's bf16 products take it */
    /* NULL, or an epilogue: columns [j0, j0 + n) of both halves of rows [i0, i0 + m) of y are done and still in a cache; n is even. */
    void (*halves_done)(void *ctx, int64_t i0, int64_t m, int64_t j0, int64_t n);
    void *ctx;
} cti_cpu_gemm;

/* y = a b (+ c0). scratch_bytes of at least gemm_scratch_bytes(1); all threads of the pool share the work where there is room for
 * all of them, else one does it. k == 0 gives c0 or zeros. */
void CTI_CPU_FN(gemm)(const cti_cpu_gemm *g, void *scratch, size_t scratch_bytes);
size_t CTI_CPU_FN(gemm_scratch_bytes)(int n_threads);

/* Where the micro-kernel finds element (i, k) of A. */
typedef enum cti_a_layout {
    CTI_A_ROWS,  /* a[i * CTI_KLD + k] */
    CTI_A_PLAIN, /* a[i * lda + k]: not packed */
    CTI_A_PANEL  /* a[k * CTI_MR + i] */
} cti_a_layout;

/* cout[i, j] = cin[i, j] (0 where NULL) + sum over k of A(i, k) b[k * nv * CTI_VL + j], rows by nv * CTI_VL, rows at most CTI_MR, nv 1
 * or 2. nv, rows and layout are constants at every call. */
CTI_INLINE void cti_ukr_rows(const int nv, const int rows, const cti_a_layout layout, int64_t kc, const float *a, int64_t lda,
                             const float *b, const float *cin, int64_t ldin, float *cout, int64_t ldout)
{
    const int64_t is = layout == CTI_A_PLAIN ? lda : layout == CTI_A_ROWS ? CTI_KLD : 1;
    const int64_t ks = layout == CTI_A_PANEL ? CTI_MR : 1;
    vf acc[CTI_MR][2];
    CTI_UNROLL
    for (int i = 0; i < rows; i++) {
        __builtin_prefetch(cout + i * ldout, 1);
        __builtin_prefetch(cout + i * ldout + CTI_NR - 1, 1);
        acc[i][0] = acc[i][1] = (vf){0};
    }
#pragma GCC unroll 4
    for (int64_t k = 0; k < kc; k++) {
        vf b0 = v_load(b);
        vf b1 = nv == 2 ? v_load(b + CTI_VL) : b0;
        CTI_UNROLL
        for (int i = 0; i < rows; i++) {
            vf x = v_set1(a[i * is]);
            acc[i][0] = v_fma(x, b0, acc[i][0]);
            if (nv == 2) {
                acc[i][1] = v_fma(x, b1, acc[i][1]);
            }
        }
        a += ks;
        b += nv * CTI_VL;
    }
    if (cin) {
        CTI_UNROLL
        for (int i = 0; i < rows; i++) {
            acc[i][0] += v_load(cin + i * ldin);
            if (nv == 2) {
                acc[i][1] += v_load(cin + i * ldin + CTI_VL);
            }
        }
    }
    CTI_UNROLL
    for (int i = 0; i < rows; i++) {
        v_store(cout + i * ldout, acc[i][0]);
        if (nv == 2) {
            v_store(cout + i * ldout + CTI_VL, acc[i][1]);
        }
    }
}

CTI_INLINE void cti_ukr_lda(const int nv, const cti_a_layout layout, int64_t kc, const float *a, int64_t lda, const float *b,
                            const float *cin, int64_t ldin, float *cout, int64_t ldout)
{
    cti_ukr_rows(nv, CTI_MR, layout, kc, a, lda, b, cin, ldin, cout, ldout);
}

CTI_INLINE void cti_ukr(const int nv, const cti_a_layout layout, int64_t kc, const float *a, const float *b, const float *cin,
                        int64_t ldin, float *cout, int64_t ldout)
{
    cti_ukr_lda(nv, layout, kc, a, CTI_KLD, b, cin, ldin, cout, ldout);
}

/* dst[k * width + j] = src(j, k) for j < n <= width, k < kc, zeros for j in [n, width); src's k is contiguous, its row j starts
 * at element (first_j + j) * ld + first_k. The transposing pack of B, and of K and V in attention. */
void CTI_CPU_FN(pack_transposed)(float *dst, int64_t width, const void *src, ct_dtype dtype, int64_t ld, int64_t first_j,
                                 int64_t n, int64_t first_k, int64_t kc);
/* dst[k * width + j] = src(k, j): rows of n <= width elements at (first_k + k) * ld + first_j, padded with zeros. */
void CTI_CPU_FN(pack_rows)(float *dst, int64_t width, const void *src, ct_dtype dtype, int64_t ld, int64_t first_k, int64_t kc,
                           int64_t first_j, int64_t n);

#endif
