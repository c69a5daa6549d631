/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, each step rounded to the type as a reduction in memory does it. */
#include "hccl_internal.h"

#include <string.h>

static double pick(double a, double b, int op)
{
    switch (op) {
    case R_SUM:
        return a + b;
    case R_PROD:
        return a * b;
    case R_MAX:
        return b > a || b != b ? b : a; /* NaN wins */
    default:
        return b < a || b != b ? b : a;
    }
}

static int64_t pick_int(int64_t a, int64_t b, int op)
{
    switch (op) {
    case R_SUM:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case R_PROD:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case R_MAX:
        return b > a ? b : a;
    default:
        return b < a ? b : a;
    }
}

static float from_bf16(uint16_t value)
{
    uint32_t bits = (uint32_t)value << 16;
    float out = 0;
    (void)memcpy(&out, &bits, 4);
    return out;
}

/* Round to nearest, ties to even. */
static uint16_t to_bf16(float value)
{
    uint32_t bits = 0;
    (void)memcpy(&bits, &value, 4);
    if (value != value) {
        return (uint16_t)(bits >> 16 | 0x40);
    }
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#define EACH(type, expression)                 \
    do {                                       \
        type *a = into;                        \
        const type *b = from;                  \
        for (uint64_t i = 0; i < count; i++) { \
            a[i] = (type)(expression);         \
        }                                      \
    } while (0)

void reduce_into(void *into, const void *from, uint64_t count, int type, int op)
{
    switch (type) {
    case T_FP32:
        if (op == R_SUM) {
            EACH(float, a[i] + b[i]);
        } else {
            EACH(float, pick((double)a[i], (double)b[i], op)); /* exact products of floats round once */
        }
        break;
    case T_FP64:
        EACH(double, pick(a[i], b[i], op));
        break;
    case T_FP16: /* a sum or product of two is exact in double, or rounds the same */
        EACH(uint16_t,
             fake_to_half((float)pick((double)fake_from_half(a[i]), (double)fake_from_half(b[i]), op)));
        break;
    case T_BFP16:
        EACH(uint16_t, to_bf16((float)pick((double)from_bf16(a[i]), (double)from_bf16(b[i]), op)));
        break;
    case T_INT8:
        EACH(int8_t, pick_int(a[i], b[i], op));
        break;
    case T_INT16:
        EACH(int16_t, pick_int(a[i], b[i], op));
        break;
    case T_INT32:
        EACH(int32_t, pick_int(a[i], b[i], op));
        break;
    case T_INT64:
        EACH(int64_t, pick_int(a[i], b[i], op));
        break;
    case T_UINT64:
        EACH(uint64_t, op == R_SUM    ? a[i] + b[i]
                       : op == R_PROD ? a[i] * b[i]
                       : op == R_MAX  ? (b[i] > a[i] ? b[i] : a[i])
                                      : (b[i] < a[i] ? b[i] : a[i]));
        break;
    default:
        break;
    }
}
