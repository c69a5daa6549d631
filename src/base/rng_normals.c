/* SPDX-License-Identifier: Apache-2.0 */
/* Many normals at once: the choice of the instruction set, and the ends that do not fill a unit. */
#define CTI_RNG_NORMALS_BODY
#include "base/rng_normals.h"

#include <string.h>

#include "base/num.h"

void cti_rng_normals_base(cti_rng_key key, uint64_t counter, double *out, int64_t n)
{
    normals_body(key, counter, out, n);
}

static void whole_units(cti_rng_key key, uint64_t counter, double *out, int64_t n)
{
#if defined(CTI_RNG_HAS_AVX2)
    if (__builtin_cpu_supports("avx2")) {
        cti_rng_normals_avx2(key, counter, out, n);
        return;
    }
#endif
    cti_rng_normals_base(key, counter, out, n);
}

void cti_rng_normals(cti_rng_key key, uint64_t first, double *out, int64_t n)
{
    while (n > 0) {
        const int64_t skip = (int64_t)(first % 2); /* an odd element is the second of its counter */
        int64_t done;
        if (skip == 0 && n >= CTI_RNG_NORMALS_UNIT) {
            done = n - n % CTI_RNG_NORMALS_UNIT;
            whole_units(key, first / 2, out, done);
        } else {
            double unit[CTI_RNG_NORMALS_UNIT];
            done = cti_min_i64(n, CTI_RNG_NORMALS_UNIT - skip);
            whole_units(key, first / 2, unit, CTI_RNG_NORMALS_UNIT);
            memcpy(out, unit + skip, (size_t)done * sizeof *out);
        }
        first += (uint64_t)done;
        out += done;
        n -= done;
    }
}

void cti_rng_trunc_normals(cti_rng_key key, uint64_t first, double std, double low, double high, double *out, int64_t n)
{
    enum { PIECE = 64 }; /* looked through again where any lies outside */
    cti_rng_normals(key, first, out, n);
    for (int64_t at = 0; at < n; at += PIECE) {
        const int64_t end = cti_min_i64(at + PIECE, n);
        int64_t n_inside = 0;
        for (int64_t i = at; i < end; i++) {
            out[i] *= std;
            n_inside += (out[i] >= low) & (out[i] <= high);
        }
        for (int64_t i = n_inside < end - at ? at : end; i < end; i++) {
            if (!(out[i] >= low && out[i] <= high)) {
                out[i] = cti_rng_trunc_normal(key, first + (uint64_t)i, std, low, high);
            }
        }
    }
}
