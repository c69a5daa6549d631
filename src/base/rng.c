/* SPDX-License-Identifier: Apache-2.0 */
/* The counter-based generator: Philox 4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as
 * easy as 1, 2, 3", 2011, sections 3 and 4; normals by the transform of Box and Muller, 1958.
 *
 * Only + - * / and sqrt on doubles: IEEE 754 rounds each of them correctly, so that any machine gives the
 * same bits. */
#include "base/rng.h"

#include <float.h>
#include <string.h>

#include "base/hash.h"
#include "base/rng_normals.h"

_Static_assert(FLT_EVAL_METHOD == 0, "doubles must be evaluated as doubles");

/* The counter is (index, attempt, stream): streams keep the functions below apart at the same index. */
enum { STREAM_BITS, STREAM_UNIFORM, STREAM_NORMAL = CTI_RNG_STREAM_NORMAL, STREAM_BELOW, STREAM_TAIL };

enum { TRUNC_PLAIN_ATTEMPTS = 64, TRUNC_TAIL_ATTEMPTS = 4096 };

static void philox(cti_rng_key key, uint64_t index, uint32_t attempt, uint32_t stream, uint32_t out[4])
{
    uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32), c2 = attempt, c3 = stream;
    uint32_t k0 = (uint32_t)key.k, k1 = (uint32_t)(key.k >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xd2511f53u * c0;
        const uint64_t p1 = (uint64_t)0xcd9e8d57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

static uint64_t join(uint32_t low, uint32_t high)
{
    return (uint64_t)high << 32 | low;
}

/* Odd multiples of 2^-53: exact, symmetric, never 0 or 1. */
static double open_unit(uint64_t bits)
{
    return (double)((bits >> 12) * 2 + 1) * 0x1p-53;
}

/* Natural logarithm of a normal x in (0, 1). x = 2^e * m with m in [sqrt(1/2), sqrt(2)), f = (m - 1) / (m +
 * 1): log m = 2 atanh f = 2 (f + f^3/3 + f^5/5 + …), |f| < 0.1716, cut where a term falls below 2^-57. */
static double log_unit(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int e = (int)(bits >> 52) - 1022;
    bits = (bits & 0x000fffffffffffffu) | 0x3fe0000000000000u;
    double m;
    memcpy(&m, &bits, sizeof m); /* [0.5, 1) */
    if (m < 0.70710678118654752) {
        m = m * 2.0;
        e--;
    }
    const double f = (m - 1.0) / (m + 1.0);
    const double s = f * f;
    double sum = 0.0;
    for (int k = 23; k >= 3; k -= 2) {
        sum = (sum + 1.0 / (double)k) * s;
    }
    const double log_m = 2.0 * f + 2.0 * f * sum;
    /* log 2 in two parts: the first has 16 trailing zero bits, so that e times it is exact. */
    return (double)e * 0x1.62e42fefap-1 + ((double)e * 0x1.cf79abc9e3b3ap-40 + log_m);
}

/* sin and cos of a random angle: three bits choose the octant, 49 the place in (0, pi/4), where Taylor's
 * series cut at the 19th power err by less than 2^-56. */
static void sin_cos_random(uint64_t bits, double *out_sin, double *out_cos)
{
    const double x = (double)((bits >> 15) % ((uint64_t)1 << 49) * 2 + 1) * 0x1p-50;
    const double t = x * 0.78539816339744831;
    const double s = t * t;
    double sin_sum = 0.0, cos_sum = 0.0;
    for (int k = 19; k >= 3; k -= 2) {
        sin_sum = (1.0 - sin_sum) * s * (1.0 / (double)(k * (k - 1)));
        cos_sum = (1.0 - cos_sum) * s * (1.0 / (double)((k - 1) * (k - 2)));
    }
    double a = t - t * sin_sum, b = 1.0 - cos_sum;
    if ((bits & 1) != 0) {
        const double swap = a;
        a = b;
        b = swap;
    }
    *out_sin = (bits & 2) != 0 ? -a : a;
    *out_cos = (bits & 4) != 0 ? -b : b;
}

cti_rng_key cti_rng_key_make(uint64_t seed, const char *name)
{
    return (cti_rng_key){.k = cti_hash64(name, strlen(name), seed)};
}

void cti_rng_bits(cti_rng_key key, uint64_t counter, uint32_t out[4])
{
    philox(key, counter, 0, STREAM_BITS, out);
}

double cti_rng_uniform(cti_rng_key key, uint64_t index)
{
    uint32_t r[4];
    philox(key, index, 0, STREAM_UNIFORM, r);
    return open_unit(join(r[0], r[1]));
}

static double normal_attempt(cti_rng_key key, uint64_t index, uint32_t attempt)
{
    uint32_t r[4];
    philox(key, index / 2, attempt, STREAM_NORMAL, r);
    const double radius = __builtin_sqrt(-2.0 * log_unit(open_unit(join(r[0], r[1]))));
    double sine, cosine;
    sin_cos_random(join(r[2], r[3]), &sine, &cosine);
    return radius * (index % 2 == 0 ? cosine : sine);
}

double cti_rng_normal(cti_rng_key key, uint64_t index)
{
    return normal_attempt(key, index, 0);
}

/* Where plain redrawing does not hit [low, high] (a narrow or far interval): a uniform proposal over the part
 * of it that matters, accepted with probability exp(-(x^2 - m^2) / 2 std^2), m being the point nearest to 0.
 * The part left out holds less than e^-40 of the interval's mass. */
static double trunc_tail(cti_rng_key key, uint64_t index, double std, double low, double high)
{
    const double m = low > 0.0 ? low : high < 0.0 ? high : 0.0;
    const double size = m < 0.0 ? -m : m;
    double reach = 9.0 * std;
    if (size > 0.0 && 40.0 * std * (std / size) < reach) {
        reach = 40.0 * std * (std / size);
    }
    const double from = low > m - reach ? low : m - reach;
    const double to = high < m + reach ? high : m + reach;
    for (uint32_t attempt = 0; attempt < TRUNC_TAIL_ATTEMPTS; attempt++) {
        uint32_t r[4];
        philox(key, index, attempt, STREAM_TAIL, r);
        const double x = from + (to - from) * open_unit(join(r[0], r[1]));
        const double excess = (x - m) / std * ((x + m) / std) / 2.0;
        if (x >= low && x <= high && log_unit(open_unit(join(r[2], r[3]))) <= -excess) {
            return x;
        }
    }
    return m; /* reached only where std is 0 or not finite beside the interval */
}

double cti_rng_trunc_normal(cti_rng_key key, uint64_t index, double std, double low, double high)
{
    for (uint32_t attempt = 0; attempt < TRUNC_PLAIN_ATTEMPTS; attempt++) {
        const double x = normal_attempt(key, index, attempt) * std;
        if (x >= low && x <= high) {
            return x;
        }
    }
    return trunc_tail(key, index, std, low, high);
}

uint64_t cti_rng_below(cti_rng_key key, uint64_t index, uint64_t n)
{
    if (n < 2) {
        return 0;
    }
    const uint64_t threshold = (0 - n) % n; /* 2^64 mod n: draws below it would favour the small results */
    for (uint32_t attempt = 0;; attempt++) {
        uint32_t r[4];
        philox(key, index, attempt, STREAM_BELOW, r);
        const uint64_t draw = join(r[0], r[1]);
        if (draw >= threshold) {
            return draw % n;
        }
    }
}
