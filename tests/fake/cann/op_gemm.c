/* SPDX-License-Identifier: Apache-2.0 */
/* Products: columns of b in panels of 16, six rows of a at a time, the block's sums in registers. */
#include "op_gemm.h"

#include <stdlib.h>
#include <string.h>

typedef float v8 __attribute__((vector_size(32), aligned(4)));

enum { ROWS = 6, COLUMNS = 16 };

#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5)
#define ROW_ZERO(i) v8 lo##i = {0}, hi##i = {0};
#define ROW_ADD(i)                \
    lo##i += a[i * lda + p] * b0; \
    hi##i += a[i * lda + p] * b1;
#define ROW_PUT(i)                              \
    *(v8 *)(void *)(out + i * COLUMNS) = lo##i; \
    *(v8 *)(void *)(out + i * COLUMNS + 8) = hi##i;

/* Sums of six rows, lda apart, with one panel (k x 16), into `out` (6 x 16). */
static inline __attribute__((always_inline)) void block(int64_t k, const float *a, int64_t lda,
                                                        const float *panel, float *out)
{
    EACH_ROW(ROW_ZERO)
    for (int64_t p = 0; p < k; p++) {
        v8 b0 = *(const v8 *)(const void *)(panel + p * COLUMNS),
           b1 = *(const v8 *)(const void *)(panel + p * COLUMNS + 8);
        EACH_ROW(ROW_ADD)
    }
    EACH_ROW(ROW_PUT)
}

static inline __attribute__((always_inline)) void
panel_rows(int64_t m, int64_t k, const float *a, const float *panel, int64_t width, float *c, int64_t ldc)
{
    float out[ROWS * COLUMNS];
    for (int64_t i = 0; i < m;) {
        int64_t rows = m - i >= ROWS ? ROWS : 1;
        block(k, a + i * k, rows == 1 ? 0 : k, panel, out); /* a single row is read six times */
        for (int64_t r = 0; r < rows; r++, i++) {
            memcpy(c + i * ldc, out + r * COLUMNS, (size_t)width * sizeof(float));
        }
    }
}

static void panel_plain(int64_t m, int64_t k, const float *a, const float *panel, int64_t width, float *c,
                        int64_t ldc)
{
    panel_rows(m, k, a, panel, width, c, ldc);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static void
panel_avx2(int64_t m, int64_t k, const float *a, const float *panel, int64_t width, float *c, int64_t ldc)
{
    panel_rows(m, k, a, panel, width, c, ldc);
}
#endif

void op_gemm(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c)
{
    void (*run)(int64_t, int64_t, const float *, const float *, int64_t, float *, int64_t) = panel_plain;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        run = panel_avx2;
    }
#endif
    float *panel = malloc((size_t)(k > 0 ? k : 1) * COLUMNS * sizeof *panel);
    if (!panel) {
        abort();
    }
    for (int64_t j = 0; j < n; j += COLUMNS) {
        int64_t width = n - j < COLUMNS ? n - j : COLUMNS;
        for (int64_t p = 0; p < k; p++) {
            memset(panel + p * COLUMNS, 0, COLUMNS * sizeof *panel);
            memcpy(panel + p * COLUMNS, b + p * n + j, (size_t)width * sizeof *panel);
        }
        run(m, k, a, panel, width, c + j, n);
    }
    free(panel);
}
