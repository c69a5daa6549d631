/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of f32 of the instruction set that this file is compiled for.
 *
 * Every file of this folder is compiled once per level (room.cmake) with CTI_CPU_ISA as the suffix of its symbols. Code is
 * written on GCC's vector types, width CTI_VL; only fused multiply-add, max and the reductions need intrinsics. A level
 * without FMA multiplies and adds; host code is built with -ffp-contract=off, so nothing else is ever fused.
 *
 * CTI_CPU_WIDE_MODEL: the 16 lanes of AVX-512 in plain C, which tests are made of. */
#ifndef CTI_BACKEND_CPU_ISA_CPU_SIMD_H
#define CTI_BACKEND_CPU_ISA_CPU_SIMD_H

#include <stdint.h>
#include <string.h>

#include "base/num.h"
#include "ctitan/dtype.h"

#if defined(__AVX512F__) || defined(__AVX2__) || defined(__SSE2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif
#if defined(__aarch64__) && !defined(CTI_CPU_WIDE_MODEL)
#define CTI_HAS_NEON 1
#else
#define CTI_HAS_NEON 0
#endif

#ifndef CTI_CPU_ISA
#error "CTI_CPU_ISA names the level: base, v3, v4, v4bf16, v4amx, neon or a test's"
#endif
#define CTI_CPU_PASTE2(a, b) a##_##b
#define CTI_CPU_PASTE(a, b) CTI_CPU_PASTE2(a, b)
/* cti_cpu_matmul_v3 */
#define CTI_CPU_FN(name) CTI_CPU_PASTE(cti_cpu_##name, CTI_CPU_ISA)
#define CTI_INLINE static inline __attribute__((always_inline, unused))
/* Before a loop over registers, of at most 16 turns: it is to be written out. */
#if defined(CTI_CPU_WIDE_MODEL)
#define CTI_UNROLL
#elif defined(__clang__)
#define CTI_UNROLL _Pragma("unroll")
#else
#define CTI_UNROLL _Pragma("GCC unroll 16")
#endif

/* Vector length, and the micro-kernel's tile: CTI_MR rows by CTI_NR columns of f32 in registers. */
#if defined(__AVX512F__) || defined(CTI_CPU_WIDE_MODEL)
#define CTI_VL 16
#define CTI_MR 14
#elif defined(__AVX2__)
#define CTI_VL 8
#define CTI_MR 6
#elif CTI_HAS_NEON
#define CTI_VL 4
#define CTI_MR 8
#else
#define CTI_VL 4
#define CTI_MR 6
#endif
#define CTI_NR (2 * CTI_VL)

typedef float vf __attribute__((vector_size(4 * CTI_VL)));
typedef int32_t vi __attribute__((vector_size(4 * CTI_VL)));
typedef uint32_t vu __attribute__((vector_size(4 * CTI_VL)));
typedef uint16_t vh __attribute__((vector_size(2 * CTI_VL)));
/* half a vector, and as many doubles */
typedef float vf_half __attribute__((vector_size(2 * CTI_VL)));
typedef double vd __attribute__((vector_size(4 * CTI_VL)));

CTI_INLINE vf v_load(const float *p)
{
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}
CTI_INLINE void v_store(float *p, vf v)
{
    memcpy(p, &v, sizeof v);
}
CTI_INLINE vf v_set1(float x)
{
#if defined(__AVX512F__)
    return (vf)_mm512_set1_ps(x);
#elif defined(__AVX2__)
    return (vf)_mm256_set1_ps(x);
#else
    return x - (vf){0};
#endif
}
CTI_INLINE vi v_set1i(int32_t x)
{
    return x - (vi){0};
}
/* a * b + c, fused where the level has it */
CTI_INLINE vf v_fma(vf a, vf b, vf c)
{
#if defined(__AVX512F__)
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__)
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif CTI_HAS_NEON
    return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + c;
#endif
}
CTI_INLINE vf v_select(vi mask, vf yes, vf no)
{
    return (vf)(((vi)yes & mask) | ((vi)no & ~mask));
}
CTI_INLINE vf v_max(vf a, vf b)
{
#if defined(__AVX512F__)
    return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
    return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#elif CTI_HAS_NEON
    return (vf)vmaxq_f32((float32x4_t)a, (float32x4_t)b); /* NaN where one is */
#else
    return v_select((vi)(a > b), a, b); /* b where one is NaN, as the instructions do */
#endif
}
CTI_INLINE vf v_min(vf a, vf b)
{
#if defined(__AVX512F__)
    return (vf)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
    return (vf)_mm256_min_ps((__m256)a, (__m256)b);
#elif CTI_HAS_NEON
    return (vf)vminq_f32((float32x4_t)a, (float32x4_t)b); /* NaN where one is */
#else
    return v_select((vi)(a < b), a, b); /* b where one is NaN, as the instructions do */
#endif
}
CTI_INLINE vf v_sqrt(vf a)
{
#if defined(__AVX512F__)
    return (vf)_mm512_sqrt_ps((__m512)a);
#elif defined(__AVX2__)
    return (vf)_mm256_sqrt_ps((__m256)a);
#else
    vf r;
    for (int i = 0; i < CTI_VL; i++) {
        r[i] = __builtin_sqrtf(a[i]);
    }
    return r;
#endif
}
/* Lanes in pairs: (1, 0, 3, 2, ...), (0, 0, 2, 2, ...), (1, 1, 3, 3, ...). */
#if defined(__clang__)
#if CTI_VL == 16
#define CTI_PAIRS(v, a, b)                                                                                           \
    __builtin_shufflevector(v, v, a, b, 2 + a, 2 + b, 4 + a, 4 + b, 6 + a, 6 + b, 8 + a, 8 + b, 10 + a, 10 + b, 12 + a,  \
                            12 + b, 14 + a, 14 + b)
#elif CTI_VL == 8
#define CTI_PAIRS(v, a, b) __builtin_shufflevector(v, v, a, b, 2 + a, 2 + b, 4 + a, 4 + b, 6 + a, 6 + b)
#else
#define CTI_PAIRS(v, a, b) __builtin_shufflevector(v, v, a, b, 2 + a, 2 + b)
#endif
#else
#if CTI_VL == 16
#define CTI_PAIRS(v, a, b)                                                                                           \
    __builtin_shuffle(v, (vi){a, b, 2 + a, 2 + b, 4 + a, 4 + b, 6 + a, 6 + b, 8 + a, 8 + b, 10 + a, 10 + b, 12 + a, 12 + b, \
                              14 + a, 14 + b})
#elif CTI_VL == 8
#define CTI_PAIRS(v, a, b) __builtin_shuffle(v, (vi){a, b, 2 + a, 2 + b, 4 + a, 4 + b, 6 + a, 6 + b})
#else
#define CTI_PAIRS(v, a, b) __builtin_shuffle(v, (vi){a, b, 2 + a, 2 + b})
#endif
#endif
CTI_INLINE vf v_swap_pairs(vf v)
{
    return CTI_PAIRS(v, 1, 0);
}
CTI_INLINE vf v_even_twice(vf v)
{
    return CTI_PAIRS(v, 0, 0);
}
CTI_INLINE vf v_odd_twice(vf v)
{
    return CTI_PAIRS(v, 1, 1);
}
/* -v in even lanes. */
CTI_INLINE vf v_negate_even(vf v)
{
    vi sign;
    for (int i = 0; i < CTI_VL; i++) {
        sign[i] = i % 2 == 0 ? INT32_MIN : 0;
    }
    return (vf)((vi)v ^ sign);
}

/* Sum of the lanes by halves; the order is fixed. */
CTI_INLINE float v_hsum(vf a)
{
#if defined(__AVX2__)
#if defined(__AVX512F__)
    __m256 h = _mm256_add_ps(_mm512_castps512_ps256((__m512)a),
                             _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd((__m512)a), 1)));
#else
    __m256 h = (__m256)a;
#endif
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    q = _mm_add_ss(q, _mm_shuffle_ps(q, q, 1));
    return _mm_cvtss_f32(q);
#elif CTI_HAS_NEON
    const float32x2_t h = vadd_f32(vget_low_f32((float32x4_t)a), vget_high_f32((float32x4_t)a));
    return vget_lane_f32(vpadd_f32(h, h), 0);
#else
    for (int n = CTI_VL / 2; n > 0; n /= 2) {
        for (int i = 0; i < n; i++) {
            a[i] += a[i + n];
        }
    }
    return a[0];
#endif
}
CTI_INLINE float v_hmax(vf a)
{
#if defined(__AVX2__)
#if defined(__AVX512F__)
    __m256 h = _mm256_max_ps(_mm512_castps512_ps256((__m512)a),
                             _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd((__m512)a), 1)));
#else
    __m256 h = (__m256)a;
#endif
    __m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_max_ps(q, _mm_movehl_ps(q, q));
    q = _mm_max_ss(q, _mm_shuffle_ps(q, q, 1));
    return _mm_cvtss_f32(q);
#elif CTI_HAS_NEON
    return vmaxvq_f32((float32x4_t)a);
#else
    float m = a[0];
    for (int i = 1; i < CTI_VL; i++) {
        m = a[i] > m ? a[i] : m;
    }
    return m;
#endif
}
CTI_INLINE vf v_from_bf16(const uint16_t *p)
{
#if CTI_HAS_NEON
    return (vf)vshlq_n_u32(vmovl_u16(vld1_u16(p)), 16); /* gcc 12 takes the general form apart lane by lane */
#else
    vh h;
    memcpy(&h, p, sizeof h);
    return (vf)(__builtin_convertvector(h, vu) << 16);
#endif
}
/* Nearest, ties to even; NaN stays NaN (cti_f32_to_bf16 on every lane). */
CTI_INLINE void v_to_bf16(uint16_t *p, vf v)
{
#if defined(__AVX512BF16__) && CTI_VL == 16
    enum { SUBNORMAL = 0x20 };
    if (__builtin_expect(_mm512_fpclass_ps_mask((__m512)v, SUBNORMAL) == 0, 1)) { /* the instruction would make them zeros */
        const __m256bh bf16 = _mm512_cvtneps_pbh((__m512)v);
        memcpy(p, &bf16, sizeof bf16);
        return;
    }
#endif
    vu bits = (vu)v;
    vu rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    vu nan = (vu)(v != v);
    vu out = (rounded & ~nan) | (((bits >> 16) | 0x40u) & nan);
    vh h = __builtin_convertvector(out, vh);
    memcpy(p, &h, sizeof h);
}

/* x[i] = 2^n p(x[i]) for integers n from -126 to 127, which the low bits of t[i] are. p(r) = 1 + r q(r), of degree 5, is 2^r on |r| <= 1/2
 * with the least relative error (9.1e-08, found by weighted least squares), or with is_natural e^r on |r| <= ln 2 / 2, the same
 * polynomial of r log2 e. p(0) is 1 exactly, so n = -127 and x = 0 give 0. Of `many` <= 4 vectors, step by step side by side; both are
 * constants at every call. */
CTI_INLINE void v_pow2s(const bool is_natural, const int many, vf *x, const vf *t)
{
    static const float coef[2][6] = {{1.326472727e-03f, 9.671512768e-03f, 5.550733744e-02f, 2.402224208e-01f, 6.931469776e-01f, 1.0f},
                                     {8.290315047e-03f, 4.189793020e-02f, 1.666763574e-01f, 4.999915063e-01f, 9.999997020e-01f, 1.0f}};
    vf p[4];
    CTI_UNROLL
    for (int i = 0; i < many; i++) {
        p[i] = v_set1(coef[is_natural][0]);
    }
    CTI_UNROLL
    for (int c = 1; c < 6; c++) {
        CTI_UNROLL
        for (int i = 0; i < many; i++) {
            p[i] = v_fma(p[i], x[i], v_set1(coef[is_natural][c]));
        }
    }
    CTI_UNROLL
    for (int i = 0; i < many; i++) {
        x[i] = (vf)((vu)p[i] + ((vu)t[i] << 23)); /* other bits of t shift out */
    }
}

/* Adding it rounds to an integer: 1.5 * 2^23. */
#define CTI_MAGIC 12582912.0f
#define CTI_LOG2E 1.44269504088896341f
#define CTI_LN2 0.693147180559945309f
/* The largest |x| whose e^x v_exp() makes: its power of two, 2^-126 to 2^126, is a normal number. */
#define CTI_EXP_MAX 87.3f

/* 2^x for x <= 0 (a rounding above is fine), error below 3 units in the last place (op.exp); 0 from -127 down. A NaN as arithmetic makes it
 * stays NaN. Of `many` <= 4 vectors, a constant at every call. */
CTI_INLINE void v_exp2_negs(const int many, vf *x)
{
    const vf magic = v_set1(CTI_MAGIC);
    vf t[4];
    CTI_UNROLL
    for (int i = 0; i < many; i++) {
        x[i] = v_max(v_set1(-127.0f), x[i]);
        t[i] = x[i] + magic;
    }
    CTI_UNROLL
    for (int i = 0; i < many; i++) {
        x[i] -= t[i] - magic;
    }
    v_pow2s(false, many, x, t);
}
CTI_INLINE vf v_exp2_neg(vf x)
{
    v_exp2_negs(1, &x);
    return x;
}

/* exp(x) for |x| <= CTI_EXP_MAX, nearest of the bounds beyond it; error below 3 units in the last place (op.exp). A NaN as
 * arithmetic makes it stays NaN. x = n ln 2 + r, with ln 2 in two parts, the first of which has so few bits that n times it is exact. */
CTI_INLINE vf v_exp(vf x)
{
    const vf c = v_min(v_set1(CTI_EXP_MAX), v_max(v_set1(-CTI_EXP_MAX), x));
    const vf t = v_fma(c, v_set1(CTI_LOG2E), v_set1(CTI_MAGIC)), n = t - v_set1(CTI_MAGIC);
    vf r = v_fma(n, v_set1(2.12194440e-4f), v_fma(n, v_set1(-0.693359375f), c));
    v_pow2s(true, 1, &r, &t);
    return r;
}
/* exp(x) for x <= 0 (a rounding above is fine); 0 below -CTI_EXP_MAX, so that what is masked by -inf is left out. */
CTI_INLINE vf v_exp_neg(vf x)
{
    return (vf)((vi)v_exp(x) & ~(vi)(x < v_set1(-CTI_EXP_MAX)));
}

/* n <= CTI_VL elements; lanes past n hold `rest`. */
CTI_INLINE vf v_load_part(const float *p, int64_t n, float rest)
{
    float buf[CTI_VL];
    for (int i = 0; i < CTI_VL; i++) {
        buf[i] = i < n ? p[i] : rest;
    }
    return v_load(buf);
}
CTI_INLINE void v_store_part(float *p, int64_t n, vf v)
{
    float buf[CTI_VL];
    v_store(buf, v);
    for (int64_t i = 0; i < n && i < CTI_VL; i++) {
        p[i] = buf[i];
    }
}

/* n elements, often few: vector by vector. */
CTI_INLINE void v_copy(float *dst, const float *src, int64_t n)
{
    int64_t i = 0;
    for (; i + CTI_VL <= n; i += CTI_VL) {
        v_store(dst + i, v_load(src + i));
    }
    for (; i < n; i++) {
        dst[i] = src[i];
    }
}

/* n elements of f32 or bf16, as f32, and back. */
CTI_INLINE void v_widen(float *dst, const void *src, ct_dtype dtype, int64_t first, int64_t n)
{
    if (dtype == CT_DTYPE_F32) {
        v_copy(dst, (const float *)src + first, n);
        return;
    }
    const uint16_t *s = (const uint16_t *)src + first;
    int64_t i = 0;
    for (; i + CTI_VL <= n; i += CTI_VL) {
        v_store(dst + i, v_from_bf16(s + i));
    }
    for (; i < n; i++) {
        dst[i] = cti_bf16_to_f32(s[i]);
    }
}
CTI_INLINE void v_narrow(void *dst, ct_dtype dtype, int64_t first, const float *src, int64_t n)
{
    if (dtype == CT_DTYPE_F32) {
        v_copy((float *)dst + first, src, n);
        return;
    }
    uint16_t *d = (uint16_t *)dst + first;
    int64_t i = 0;
    for (; i + CTI_VL <= n; i += CTI_VL) {
        v_to_bf16(d + i, v_load(src + i));
    }
    for (; i < n; i++) {
        d[i] = cti_f32_to_bf16(src[i]);
    }
}

/* n elements from `first` as f32: in place where they are f32, else widened into buf. */
CTI_INLINE const float *v_view(const void *src, ct_dtype dtype, int64_t first, int64_t n, float *buf)
{
    if (dtype == CT_DTYPE_F32) {
        return (const float *)src + first;
    }
    v_widen(buf, src, dtype, first, n);
    return buf;
}
/* Where to compute f32 results that belong at `first`: in place, or in buf, which v_put then rounds. */
CTI_INLINE float *v_out(void *dst, ct_dtype dtype, int64_t first, float *buf)
{
    return dtype == CT_DTYPE_F32 ? (float *)dst + first : buf;
}
CTI_INLINE void v_put(void *dst, ct_dtype dtype, int64_t first, const float *buf, int64_t n)
{
    if (dtype != CT_DTYPE_F32) {
        v_narrow(dst, dtype, first, buf, n);
    }
}

#endif
