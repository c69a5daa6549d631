/* SPDX-License-Identifier: Apache-2.0 */
/* AMX's tiles: eight registers of 16 rows of 64 bytes, or the same in plain C.
 *
 * amx_dp(c, a, b): c[i][j] += sum over the 32 k of a's row i and b's column j; a's rows are bf16, b's are words of two neighbours along k,
 * c's are f32. Even and odd k are summed apart, each as fused multiply-adds in f32 from zero, then added to each other, then to c; rounding
 * to nearest with ties to even, subnormal operands and results are zeros, whatever the floating point environment says (Intel's manual,
 * TDPBF16PS). Tile numbers are constants at every call. amx_begin() before a thread's first, amx_end() after its last.
 *
 * CTI_HAS_AMX: this level has the instructions, or CTI_CPU_AMX_MODEL asks for the plain form, which tests are made of. */
#ifndef CTI_BACKEND_CPU_ISA_CPU_AMX_H
#define CTI_BACKEND_CPU_ISA_CPU_AMX_H

#include "backend/cpu/isa/cpu_dot_bf16.h"

#if defined(CTI_CPU_AMX_MODEL)
#define CTI_HAS_AMX 1
#define CTI_USE_AMX 0
#elif (defined(__AMX_BF16__) || defined(__AMXBF16__)) && !defined(CTI_CPU_BF16_MODEL) /* clang before 17 has the second name */
#define CTI_HAS_AMX 1
#define CTI_USE_AMX 1
#else
#define CTI_HAS_AMX 0
#define CTI_USE_AMX 0
#endif
#if defined(CTI_CPU_AMX_MODEL) && !defined(CTI_CPU_BF16_MODEL)
#error "the plain form of tiles is made of that of dot products"
#endif
#if defined(CTI_CPU_WANTS_AMX) && !CTI_HAS_AMX
#error "this level is for AMX, which the compiler does not offer under a name known here"
#endif

#if CTI_USE_AMX

/* gcc does not know that these two read memory. */
#define AMX_MEMORY_IS_READ __asm__ volatile("" ::: "memory")
#define amx_zero(t) _tile_zero(t)
#define amx_load(t, p, stride_bytes)                                                                                 \
    do {                                                                                                             \
        AMX_MEMORY_IS_READ;                                                                                          \
        _tile_loadd(t, p, stride_bytes);                                                                             \
    } while (0)
#define amx_store(t, p, stride_bytes) _tile_stored(t, p, stride_bytes)
#define amx_dp(c, a, b) _tile_dpbf16ps(c, a, b)

CTI_INLINE void amx_begin(void)
{
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = {.palette = 1};
    _Static_assert(sizeof config == 64, "the instruction reads 64 bytes");
    for (int t = 0; t < 8; t++) {
        config.row_bytes[t] = 64;
        config.rows[t] = 16;
    }
    AMX_MEMORY_IS_READ;
    _tile_loadconfig(&config);
}
CTI_INLINE void amx_end(void)
{
    _tile_release();
}

#elif CTI_HAS_AMX

static _Thread_local char amx_tiles[8][16][64];

static void amx_zero(int t)
{
    memset(amx_tiles[t], 0, sizeof amx_tiles[t]);
}
static void amx_load(int t, const void *p, int64_t stride_bytes)
{
    for (int64_t i = 0; i < 16; i++) {
        memcpy(amx_tiles[t][i], (const char *)p + i * stride_bytes, 64);
    }
}
static void amx_store(int t, void *p, int64_t stride_bytes)
{
    for (int64_t i = 0; i < 16; i++) {
        memcpy((char *)p + i * stride_bytes, amx_tiles[t][i], 64);
    }
}
static void amx_dp(int c, int a, int b)
{
    for (int i = 0; i < 16; i++) {
        vf16 even = {0}, odd = {0};
        for (int k = 0; k < 16; k++) {
            const vi16 x = vi16_set1(amx_tiles[a][i] + 4 * k), y = vi16_load(amx_tiles[b][k]);
            const vf16 x0 = vf16_flush((vf16)((vu16)x << 16)), y0 = vf16_flush((vf16)((vu16)y << 16));
            const vf16 x1 = vf16_flush((vf16)(x & ~0xffff)), y1 = vf16_flush((vf16)(y & ~0xffff));
            for (int j = 0; j < 16; j++) {
                even[j] = __builtin_fmaf(x0[j], y0[j], even[j]);
                odd[j] = __builtin_fmaf(x1[j], y1[j], odd[j]);
            }
            even = vf16_flush(even);
            odd = vf16_flush(odd);
        }
        vf16 sum;
        memcpy(&sum, amx_tiles[c][i], sizeof sum);
        sum = vf16_flush(vf16_flush(sum) + vf16_flush(even + odd));
        memcpy(amx_tiles[c][i], &sum, sizeof sum);
    }
}
static void amx_begin(void)
{
}
static void amx_end(void)
{
}

#endif
#endif
