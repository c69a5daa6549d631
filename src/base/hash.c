/* SPDX-License-Identifier: Apache-2.0 */
/* XXH3 through libxxhash. */
#include "base/hash.h"

#include <xxhash.h>

uint64_t cti_hash64(const void *data, size_t size, uint64_t seed)
{
    return XXH3_64bits_withSeed(size == 0 ? "" : data, size, seed);
}

void cti_hash128_hex(const void *data, size_t size, char out_hex[33])
{
    static const char digits[] = "0123456789abcdef";
    XXH128_canonical_t bytes;
    XXH128_canonicalFromHash(&bytes, XXH3_128bits(size == 0 ? "" : data, size));
    for (int i = 0; i < 16; i++) {
        out_hex[2 * i] = digits[bytes.digest[i] >> 4];
        out_hex[2 * i + 1] = digits[bytes.digest[i] & 15];
    }
    out_hex[32] = '\0';
}
