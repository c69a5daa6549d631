/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes (XXH3). Not cryptographic: they find damage, not attackers. */
#ifndef CTI_BASE_HASH_H
#define CTI_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t cti_hash64(const void *data, size_t size, uint64_t seed);
/* XXH3-128 as 32 lower-case hex digits and a NUL. */
void cti_hash128_hex(const void *data, size_t size, char out_hex[33]);

#endif
