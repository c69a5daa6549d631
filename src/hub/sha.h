/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-1 and SHA-256 (FIPS 180-4). SHA-1 only names Git's blobs: it finds damage, not attackers. */
#ifndef CTI_HUB_SHA_H
#define CTI_HUB_SHA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cti_sha {
    uint32_t h[8];
    uint64_t n_bytes;
    unsigned char block[64]; /* the bytes that fill no block yet */
    bool is_256;
} cti_sha;

void cti_sha1_init(cti_sha *sha);
void cti_sha256_init(cti_sha *sha);
void cti_sha_update(cti_sha *sha, const void *data, size_t size);
/* Lower-case digits and NUL: 40 of SHA-1, 64 of SHA-256. Ends the sum. */
void cti_sha_hex(cti_sha *sha, char out_hex[65]);

#endif
