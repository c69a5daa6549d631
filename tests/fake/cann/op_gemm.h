/* SPDX-License-Identifier: Apache-2.0 */
/* Dense products in float, fast enough that a step of a small model takes a fraction of a second. */
#ifndef FAKE_CANN_OP_GEMM_H
#define FAKE_CANN_OP_GEMM_H

#include <stdint.h>

/* c[m,n] = a[m,k] * b[k,n], all dense rows; each sum runs over k in order, in one accumulator. */
void op_gemm(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c);
#endif
