/* SPDX-License-Identifier: Apache-2.0 */
/* Many normals at once, for AVX2 (room.cmake compiles this file with it on x86-64; elsewhere it is empty). */
#define CTI_RNG_NORMALS_BODY
#include "base/rng_normals.h"

#if defined(__AVX2__)
void cti_rng_normals_avx2(cti_rng_key key, uint64_t counter, double *out, int64_t n)
{
    normals_body(key, counter, out, n);
}
#endif
