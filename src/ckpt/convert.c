/* SPDX-License-Identifier: Apache-2.0 */
/* Floats from one width to another. */
#include <string.h>

#include "base/base.h"
#include "ckpt/ckpt_internal.h"

static double load(const unsigned char *at, ct_dtype dtype)
{
    double d;
    float f;
    uint16_t h;
    switch (dtype) {
    case CT_DTYPE_F64:
        memcpy(&d, at, sizeof d);
        return d;
    case CT_DTYPE_F32:
        memcpy(&f, at, sizeof f);
        return (double)f;
    case CT_DTYPE_BF16:
        memcpy(&h, at, sizeof h);
        return (double)cti_bf16_to_f32(h);
    case CT_DTYPE_F16:
        memcpy(&h, at, sizeof h);
        return (double)cti_f16_to_f32(h);
    case CT_DTYPE_I32:
    case CT_DTYPE_I64:
    case CT_DTYPE_U8:
    case CT_DTYPE_COUNT:
        break;
    }
    CT_ASSERT(!"a float");
    return 0.0;
}

static void store(double d, unsigned char *at, ct_dtype dtype)
{
    const float f = (float)d; /* exact for all but f64, which then rounds twice on its way to 16 bits */
    uint16_t h;
    switch (dtype) {
    case CT_DTYPE_F64:
        memcpy(at, &d, sizeof d);
        return;
    case CT_DTYPE_F32:
        memcpy(at, &f, sizeof f);
        return;
    case CT_DTYPE_BF16:
        h = cti_f32_to_bf16(f);
        memcpy(at, &h, sizeof h);
        return;
    case CT_DTYPE_F16:
        h = cti_f32_to_f16(f);
        memcpy(at, &h, sizeof h);
        return;
    case CT_DTYPE_I32:
    case CT_DTYPE_I64:
    case CT_DTYPE_U8:
    case CT_DTYPE_COUNT:
        break;
    }
    CT_ASSERT(!"a float");
}

void cti_ckpt_convert(const void *src, ct_dtype from, void *dst, ct_dtype to, int64_t n)
{
    const size_t from_bytes = ct_dtype_size_bytes(from), to_bytes = ct_dtype_size_bytes(to);
    const unsigned char *s = src;
    unsigned char *d = dst;
    if (from == to) {
        if (n > 0) {
            memcpy(dst, src, (size_t)n * from_bytes);
        }
        return;
    }
    for (int64_t i = 0; i < n; i++, s += from_bytes, d += to_bytes) {
        store(load(s, from), d, to);
    }
}
