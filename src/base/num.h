/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers: checked integer arithmetic and the 16-bit floats. */
#ifndef CTI_BASE_NUM_H
#define CTI_BASE_NUM_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "ctitan/status.h"

#include "ctitan/dtype.h"

/* *out = a * b (or a + b). False where it does not fit; *out is then untouched. */
static inline bool cti_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    int64_t r;
    if (__builtin_mul_overflow(a, b, &r)) {
        return false;
    }
    *out = r;
    return true;
}
static inline bool cti_add_i64(int64_t a, int64_t b, int64_t *out)
{
    int64_t r;
    if (__builtin_add_overflow(a, b, &r)) {
        return false;
    }
    *out = r;
    return true;
}
/* Product of n dims; 1 for n == 0; -1 where one is negative or the product overflows. */
int64_t cti_dims_product(const int64_t *dims, int n);

static inline int64_t cti_ceil_div(int64_t a, int64_t b) /* a >= 0, b > 0 */
{
    return a / b + (a % b != 0);
}
static inline int64_t cti_round_up(int64_t a, int64_t multiple)
{
    return cti_ceil_div(a, multiple) * multiple;
}
static inline int64_t cti_min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t cti_max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline float cti_bf16_to_f32(uint16_t h)
{
    return ct_bf16_to_f32(h);
}
static inline uint16_t cti_f32_to_bf16(float f)
{
    return ct_f32_to_bf16(f);
}
float cti_f16_to_f32(uint16_t h);
uint16_t cti_f32_to_f16(float f); /* nearest, ties to even; overflow gives infinity */

#endif
