/* SPDX-License-Identifier: Apache-2.0 */
/* Dot products of pairs of bf16, 16 lanes at a time: AVX512_BF16's instructions, or the same in plain C.
 *
 * A word is a pair of neighbours along k, the lower half first. v_dp_bf16() adds both products of each lane's pair to its sum, each as
 * a fused multiply-add in f32, the upper one first, rounded to nearest with ties to even; subnormal operands are zeros and
 * subnormal results become zeros, of the same sign, whatever the floating point environment says (Intel's manual, VDPBF16PS).
 * v_store_bf16() rounds to nearest with ties to even, takes subnormal numbers as zeros, and keeps NaNs (VCVTNEPS2BF16).
 * A processor may round an element otherwise than told here (once for both products, say): that stays inside the bound for sums of
 * products in any order, 2 n u sum |a b|, but its bits are its own.
 *
 * CTI_HAS_DP_BF16: this level has the instructions, or CTI_CPU_BF16_MODEL asks for the plain form, which tests are made of. */
#ifndef CTI_BACKEND_CPU_ISA_CPU_DOT_BF16_H
#define CTI_BACKEND_CPU_ISA_CPU_DOT_BF16_H

#include "backend/cpu/isa/cpu_simd.h"

#if defined(__AVX512BF16__) && !defined(CTI_CPU_BF16_MODEL)
#define CTI_HAS_DP_BF16 1
#define CTI_USE_DP_BF16 1
#elif defined(CTI_CPU_BF16_MODEL)
#define CTI_HAS_DP_BF16 1
#define CTI_USE_DP_BF16 0
#else
#define CTI_HAS_DP_BF16 0
#define CTI_USE_DP_BF16 0
#endif

#if CTI_HAS_DP_BF16

/* 16 lanes at every level, so that the plain form has the instructions' shapes. */
typedef float vf16 __attribute__((vector_size(64)));
typedef int32_t vi16 __attribute__((vector_size(64)));
typedef uint32_t vu16 __attribute__((vector_size(64)));
typedef uint16_t vh16 __attribute__((vector_size(32)));

CTI_INLINE vf16 vf16_load(const float *p)
{
    vf16 v;
    memcpy(&v, p, sizeof v);
    return v;
}
CTI_INLINE void vf16_store(float *p, vf16 v)
{
    memcpy(p, &v, sizeof v);
}
CTI_INLINE vi16 vi16_load(const void *p)
{
    vi16 v;
    memcpy(&v, p, sizeof v);
    return v;
}
CTI_INLINE void vi16_store(void *p, vi16 v)
{
    memcpy(p, &v, sizeof v);
}
CTI_INLINE vh16 vh16_load(const uint16_t *p)
{
    vh16 v;
    memcpy(&v, p, sizeof v);
    return v;
}
/* The same word, a pair at p, in all lanes. */
CTI_INLINE vi16 vi16_set1(const void *p)
{
    int32_t word;
    memcpy(&word, p, sizeof word);
#if CTI_USE_DP_BF16
    return (vi16)_mm512_set1_epi32(word);
#else
    return word - (vi16){0};
#endif
}
/* bf16 to f32: exact, subnormal numbers too. */
CTI_INLINE vf16 vf16_from_bf16(const uint16_t *p)
{
    return (vf16)(__builtin_convertvector(vh16_load(p), vu16) << 16);
}
/* Words (a, b) of two neighbouring rows of bf16. */
CTI_INLINE vi16 vi16_pairs(vh16 a, vh16 b)
{
    return (vi16)(__builtin_convertvector(a, vu16) | (__builtin_convertvector(b, vu16) << 16));
}

#if !CTI_USE_DP_BF16
/* Subnormal numbers become zeros of their sign. */
CTI_INLINE vf16 vf16_flush(vf16 v)
{
    const vi16 is_small = ((vi16)v & 0x7f800000) == 0;
    return (vf16)((vi16)v & ~(is_small & 0x7fffffff));
}
/* The 16 bits of bf16, as 32. */
CTI_INLINE vu16 vf16_round(vf16 v)
{
    const vu16 bits = (vu16)vf16_flush(v);
    const vu16 is_nan = (vu16)(v != v);
    return (((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16) & ~is_nan) | (((bits >> 16) | 0x40u) & is_nan);
}
#endif

#if !CTI_USE_DP_BF16
/* By address and not inline: micro-kernels made of it would take a compiler minutes. */
static __attribute__((noinline, unused)) void dp_plain(vf16 *sum, const vi16 *a, const vi16 *b)
{
    const vf16 a1 = vf16_flush((vf16)(*a & ~0xffff)), b1 = vf16_flush((vf16)(*b & ~0xffff));
    const vf16 a0 = vf16_flush((vf16)((vu16)*a << 16)), b0 = vf16_flush((vf16)((vu16)*b << 16));
    vf16 s = vf16_flush(*sum);
    for (int i = 0; i < 16; i++) {
        s[i] = __builtin_fmaf(a1[i], b1[i], s[i]);
    }
    s = vf16_flush(s);
    for (int i = 0; i < 16; i++) {
        s[i] = __builtin_fmaf(a0[i], b0[i], s[i]);
    }
    *sum = vf16_flush(s);
}
#endif
CTI_INLINE vf16 v_dp_bf16(vf16 sum, vi16 a, vi16 b)
{
#if CTI_USE_DP_BF16
    return (vf16)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
#else
    dp_plain(&sum, &a, &b);
    return sum;
#endif
}
CTI_INLINE void v_store_bf16(uint16_t *p, vf16 v)
{
#if CTI_USE_DP_BF16
    const __m256bh h = _mm512_cvtneps_pbh((__m512)v);
    memcpy(p, &h, sizeof h);
#else
    const vh16 h = __builtin_convertvector(vf16_round(v), vh16);
    memcpy(p, &h, sizeof h);
#endif
}
/* Words (a, b) of two rows of f32, rounded as v_store_bf16() does. */
CTI_INLINE vi16 vi16_round_pairs(vf16 a, vf16 b)
{
#if CTI_USE_DP_BF16
    const __m256bh ha = _mm512_cvtneps_pbh((__m512)a), hb = _mm512_cvtneps_pbh((__m512)b);
    return vi16_pairs((vh16)ha, (vh16)hb);
#else
    return (vi16)(vf16_round(a) | (vf16_round(b) << 16));
#endif
}

#endif
#endif
