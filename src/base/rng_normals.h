/* SPDX-License-Identifier: Apache-2.0 */
/* The body of cti_rng_normals() on vectors of LANES counters, compiled once per instruction set: in rng_normals.c for the compiler's
 * baseline, in rng_normals_avx2.c for AVX2. The formulas are rng.c's, operation for operation: a lane computes what the scalar functions compute, and
 * IEEE 754 gives every machine and every width the same bits. No contraction (-ffp-contract=off), no libm. */
#ifndef CTI_BASE_RNG_NORMALS_H
#define CTI_BASE_RNG_NORMALS_H

#include <stdint.h>

#include "base/rng.h"

enum { CTI_RNG_STREAM_NORMAL = 2, CTI_RNG_NORMALS_UNIT = 128 };

/* n normals of the elements from 2 * counter on; n is a multiple of the unit. */
void cti_rng_normals_base(cti_rng_key key, uint64_t counter, double *out, int64_t n);
void cti_rng_normals_avx2(cti_rng_key key, uint64_t counter, double *out, int64_t n);

#ifdef CTI_RNG_NORMALS_BODY

#if defined(__AVX2__) || defined(__SSE2__)
#include <immintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(__AVX2__)
enum { LANES = 4 };
#else
enum { LANES = 2 };
#endif

#pragma GCC diagnostic ignored "-Wpsabi" /* vectors are passed to inlined functions only */
typedef uint64_t vec_u64 __attribute__((vector_size(LANES * 8)));
typedef int64_t vec_i64 __attribute__((vector_size(LANES * 8)));
typedef double vec_f64 __attribute__((vector_size(LANES * 8)));

#define INLINE static inline __attribute__((always_inline))

/* The product of lanes that hold 32 bits each. */
INLINE vec_u64 mul_32(vec_u64 a, vec_u64 b)
{
#if defined(__AVX2__)
    return (vec_u64)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    return (vec_u64)_mm_mul_epu32((__m128i)a, (__m128i)b);
#elif defined(__ARM_NEON) && defined(__aarch64__)
    return (vec_u64)vmull_u32(vmovn_u64((uint64x2_t)a), vmovn_u64((uint64x2_t)b));
#else
    return a * b;
#endif
}

INLINE vec_f64 square_root(vec_f64 x)
{
#if defined(__AVX2__)
    return (vec_f64)_mm256_sqrt_pd((__m256d)x);
#elif defined(__SSE2__)
    return (vec_f64)_mm_sqrt_pd((__m128d)x);
#elif defined(__ARM_NEON) && defined(__aarch64__)
    return (vec_f64)vsqrtq_f64((float64x2_t)x);
#else
    for (int i = 0; i < LANES; i++) {
        x[i] = __builtin_sqrt(x[i]);
    }
    return x;
#endif
}

INLINE vec_u64 all_u64(uint64_t x)
{
    return x + (vec_u64){0};
}

INLINE vec_f64 all_f64(double x)
{
    return (vec_f64)all_u64((union { double f; uint64_t u; }){.f = x}.u);
}

/* where ? a : b, bit by bit. */
INLINE vec_f64 pick(vec_i64 where, vec_f64 a, vec_f64 b)
{
    return (vec_f64)(((vec_i64)a & where) | ((vec_i64)b & ~where));
}

/* An integer below 2^52 as a double: exact. */
INLINE vec_f64 exact_f64(vec_u64 x)
{
    return (vec_f64)(x | 0x4330000000000000u) - 0x1p52;
}

INLINE void philox_lanes(cti_rng_key key, vec_u64 c[4])
{
    const vec_u64 low = all_u64(0xffffffffu), m0 = all_u64(0xd2511f53u), m1 = all_u64(0xcd9e8d57u);
    uint32_t k0 = (uint32_t)key.k, k1 = (uint32_t)(key.k >> 32);
    for (int round = 0; round < 10; round++) {
        const vec_u64 p0 = mul_32(m0, c[0]), p1 = mul_32(m1, c[2]);
        c[0] = (p1 >> 32) ^ c[1] ^ (uint64_t)k0;
        c[2] = (p0 >> 32) ^ c[3] ^ (uint64_t)k1;
        c[1] = p1 & low;
        c[3] = p0 & low;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
}

INLINE vec_f64 log_lanes(vec_f64 x)
{
    const vec_u64 bits = (vec_u64)x;
    vec_f64 e = exact_f64(bits >> 52) - 1022.0;
    vec_f64 m = (vec_f64)((bits & 0x000fffffffffffffu) | 0x3fe0000000000000u);
    const vec_i64 is_low = (vec_i64)(m < all_f64(0.70710678118654752));
    m = pick(is_low, m * 2.0, m);
    e = pick(is_low, e - 1.0, e);
    const vec_f64 f = (m - 1.0) / (m + 1.0);
    const vec_f64 s = f * f;
    vec_f64 sum = all_f64(0.0);
#pragma GCC unroll 16
    for (int k = 23; k >= 3; k -= 2) {
        sum = (sum + 1.0 / (double)k) * s;
    }
    const vec_f64 log_m = 2.0 * f + 2.0 * f * sum;
    return e * 0x1.62e42fefap-1 + (e * 0x1.cf79abc9e3b3ap-40 + log_m);
}

INLINE void sin_cos_lanes(vec_u64 bits, vec_f64 *out_sin, vec_f64 *out_cos)
{
    const vec_f64 x = (exact_f64(bits >> 15) * 2.0 + 1.0) * 0x1p-50;
    const vec_f64 t = x * 0.78539816339744831;
    const vec_f64 s = t * t;
    vec_f64 sin_sum = all_f64(0.0), cos_sum = all_f64(0.0);
#pragma GCC unroll 16
    for (int k = 19; k >= 3; k -= 2) {
        sin_sum = (1.0 - sin_sum) * s * (1.0 / (double)(k * (k - 1)));
        cos_sum = (1.0 - cos_sum) * s * (1.0 / (double)((k - 1) * (k - 2)));
    }
    const vec_f64 a = t - t * sin_sum, b = 1.0 - cos_sum;
    const vec_i64 is_swapped = -(vec_i64)(bits & 1);
    *out_sin = (vec_f64)((vec_u64)pick(is_swapped, b, a) ^ (bits & 2) << 62);
    *out_cos = (vec_f64)((vec_u64)pick(is_swapped, a, b) ^ (bits & 4) << 61);
}

/* In stages of GROUP vectors, so that the long chains of several vectors overlap. */
INLINE void normals_body(cti_rng_key key, uint64_t counter, double *out, int64_t n)
{
    enum { GROUP = CTI_RNG_NORMALS_UNIT / 2 / LANES };
    vec_u64 at = all_u64(counter), place[GROUP], turn[GROUP];
    vec_f64 radius[GROUP];
    for (int lane = 0; lane < LANES; lane++) {
        at[lane] += (uint64_t)lane;
    }
    for (int64_t i = 0; i < n; i += CTI_RNG_NORMALS_UNIT) {
        for (int g = 0; g < GROUP; g++) {
            vec_u64 c[4] = {at & 0xffffffffu, at >> 32, all_u64(0), all_u64(CTI_RNG_STREAM_NORMAL)};
            philox_lanes(key, c);
            place[g] = c[1] << 32 | c[0];
            turn[g] = c[3] << 32 | c[2];
            at += LANES;
        }
        for (int g = 0; g < GROUP; g++) { /* the uniform: odd multiples of 2^-53 */
            const vec_f64 unit = (vec_f64)(place[g] >> 12 | 0x3ff0000000000000u) - (1.0 - 0x1p-53);
            radius[g] = square_root(-2.0 * log_lanes(unit));
        }
        for (int g = 0; g < GROUP; g++) {
            vec_f64 sine, cosine;
            sin_cos_lanes(turn[g], &sine, &cosine);
            sine = radius[g] * sine;
            cosine = radius[g] * cosine;
            for (int lane = 0; lane < LANES; lane++) {
                out[i + 2 * (g * LANES + lane)] = cosine[lane];
                out[i + 2 * (g * LANES + lane) + 1] = sine[lane];
            }
        }
    }
}

#endif
#endif
