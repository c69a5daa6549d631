/* SPDX-License-Identifier: Apache-2.0 */
/* Products of dims and the IEEE half-precision float. */
#include "base/num.h"

int64_t cti_dims_product(const int64_t *dims, int n)
{
    int64_t product = 1;
    bool empty = false;
    for (int i = 0; i < n; i++) {
        if (dims[i] < 0) {
            return -1;
        }
        empty = empty || dims[i] == 0;
    }
    if (empty) {
        return 0; /* whatever the others multiply to */
    }
    for (int i = 0; i < n; i++) {
        if (!cti_mul_i64(product, dims[i], &product)) {
            return -1;
        }
    }
    return product;
}

static float float_of_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

float cti_f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    const uint32_t exponent = (h >> 10) & 0x1fu;
    const uint32_t mantissa = h & 0x3ffu;
    if (exponent == 0x1f) {
        return float_of_bits(sign | 0x7f800000u | mantissa << 13);
    }
    if (exponent != 0) {
        return float_of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
    }
    const float magnitude = (float)mantissa * 0x1p-24f; /* exact: ten bits times a power of two */
    return sign != 0 ? -magnitude : magnitude;
}

uint16_t cti_f32_to_f16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    bits &= 0x7fffffffu;
    if (bits > 0x7f800000u) { /* NaN: made quiet, upper payload kept */
        return (uint16_t)(sign | 0x7e00u | ((bits >> 13) & 0x3ffu));
    }
    if (bits >= 0x47800000u) { /* 2^16 and above; 65520 and above get there by rounding below */
        return (uint16_t)(sign | 0x7c00u);
    }
    if (bits >= 0x38800000u) { /* 2^-14: normal halves */
        bits -= 112u << 23;
        bits += 0xfffu + ((bits >> 13) & 1u);
        return (uint16_t)(sign | bits >> 13);
    }
    if (bits <= 0x33000000u) { /* 2^-25 is the tie between 0 and the smallest half: even is 0 */
        return (uint16_t)sign;
    }
    const uint32_t shift = 126u - (bits >> 23); /* 14..24: units of 2^-24 */
    const uint32_t mantissa = (bits & 0x7fffffu) | 0x800000u;
    const uint32_t rest = mantissa & ((1u << shift) - 1u);
    const uint32_t half = 1u << (shift - 1u);
    uint32_t units = mantissa >> shift;
    units += rest > half || (rest == half && (units & 1u) != 0);
    return (uint16_t)(sign | units);
}
