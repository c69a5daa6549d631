/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over floats that compilers turn into vector code: exponentials, sums, maxima. */
#ifndef FAKE_CANN_OP_VECTOR_H
#define FAKE_CANN_OP_VECTOR_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* e^x within two units of the last place; 0 where the result would be below the normal numbers. 2^n * e^r,
 * |r| <= ln 2 / 2, and the Taylor sum of e^r to r^7. No branches. */
static inline float op_exp(float x)
{
    float clipped = x > 88.8f ? 88.8f : x < -88.0f ? -88.0f : x;
    float n = clipped * 1.44269504f + 12582912.0f; /* 1.5 * 2^23: the sum has no fraction */
    n -= 12582912.0f;
    float r = clipped - n * 0.693359375f + n * 2.12194440e-4f; /* ln 2 in two parts, the first exact */
    float p = 1.98412698e-4f;
    p = p * r + 1.38888889e-3f;
    p = p * r + 8.33333333e-3f;
    p = p * r + 4.16666667e-2f;
    p = p * r + 1.66666667e-1f;
    p = p * r + 0.5f;
    p = p * r * r + r + 1.0f;
    /* 2^n in two factors, so that the largest results do not overflow on the way */
    int32_t whole = (int32_t)n, half = whole / 2;
    uint32_t a = (uint32_t)(half + 127) << 23, b = (uint32_t)(whole - half + 127) << 23;
    float fa, fb;
    memcpy(&fa, &a, 4);
    memcpy(&fb, &b, 4);
    p = p * fa * fb;
    p = x < -87.33f ? 0.0f : p;
    return x != x ? x : p;
}

static inline float op_sigmoid(float x)
{
    return 1.0f / (1.0f + op_exp(-x));
}

enum { OP_LANES = 16 };

/* Sixteen sums side by side, then their sum. */
static inline float op_sum(const float *x, int64_t n)
{
    float lane[OP_LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + OP_LANES <= n; i += OP_LANES) {
        for (int l = 0; l < OP_LANES; l++) {
            lane[l] += x[i + l];
        }
    }
    for (; i < n; i++) {
        sum += x[i];
    }
    for (int l = 0; l < OP_LANES; l++) {
        sum += lane[l];
    }
    return sum;
}

static inline float op_dot(const float *x, const float *y, int64_t n)
{
    float lane[OP_LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + OP_LANES <= n; i += OP_LANES) {
        for (int l = 0; l < OP_LANES; l++) {
            lane[l] += x[i + l] * y[i + l];
        }
    }
    for (; i < n; i++) {
        sum += x[i] * y[i];
    }
    for (int l = 0; l < OP_LANES; l++) {
        sum += lane[l];
    }
    return sum;
}

/* The largest; what is NaN is passed over, and comes back in whatever is computed of the row. */
static inline float op_top(const float *x, int64_t n)
{
    float lane[OP_LANES], top = -INFINITY;
    for (int l = 0; l < OP_LANES; l++) {
        lane[l] = -INFINITY;
    }
    int64_t i = 0;
    for (; i + OP_LANES <= n; i += OP_LANES) {
        for (int l = 0; l < OP_LANES; l++) {
            lane[l] = x[i + l] > lane[l] ? x[i + l] : lane[l];
        }
    }
    for (; i < n; i++) {
        top = x[i] > top ? x[i] : top;
    }
    for (int l = 0; l < OP_LANES; l++) {
        top = lane[l] > top ? lane[l] : top;
    }
    return top;
}
#endif
