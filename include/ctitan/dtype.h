/* SPDX-License-Identifier: Apache-2.0 */
/* Element types. */
#ifndef CTITAN_DTYPE_H
#define CTITAN_DTYPE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, name, size_bytes, mantissa_bits incl. the hidden one (0: integer), torch name, safetensors name) */
/* clang-format off */
#define CT_DTYPE_LIST(X)                                      \
    X(F32,  f32,  4, 24, "float32",  "F32")                   \
    X(BF16, bf16, 2,  8, "bfloat16", "BF16")                  \
    X(F16,  f16,  2, 11, "float16",  "F16")                   \
    X(F64,  f64,  8, 53, "float64",  "F64")                   \
    X(I32,  i32,  4,  0, "int32",    "I32")                   \
    X(I64,  i64,  8,  0, "int64",    "I64")                   \
    X(U8,   u8,   1,  0, "uint8",    "U8")
/* clang-format on */

typedef enum ct_dtype {
#define CT_DTYPE_ENUM(NAME, name, size, mant, torch, st) CT_DTYPE_##NAME,
    CT_DTYPE_LIST(CT_DTYPE_ENUM)
#undef CT_DTYPE_ENUM
        CT_DTYPE_COUNT
} ct_dtype;

#define CT_BIT(NAME) (1u << CT_DTYPE_##NAME)

const char *ct_dtype_name(ct_dtype dtype);       /* "bf16" */
const char *ct_dtype_torch_name(ct_dtype dtype); /* "bfloat16" */
size_t ct_dtype_size_bytes(ct_dtype dtype);
int ct_dtype_is_float(ct_dtype dtype);
double ct_dtype_unit_roundoff(ct_dtype dtype); /* 2^-mantissa_bits; 0 for integers */
/* Returns 0 and leaves *out alone where the name is none of ours; accepts our, torch's and safetensors' names. */
int ct_dtype_parse(const char *name, ct_dtype *out_dtype);

/* bfloat16 = the upper half of a float; rounding to nearest, ties to even; NaN stays NaN. */
static inline float ct_bf16_to_f32(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}
static inline uint16_t ct_f32_to_bf16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return (uint16_t)((bits >> 16) | 0x40u);
    }
    bits += 0x7fffu + ((bits >> 16) & 1u);
    return (uint16_t)(bits >> 16);
}

#ifdef __cplusplus
}
#endif
#endif
