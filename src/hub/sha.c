/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-1 and SHA-256: FIPS 180-4, sections 5.1.1, 6.1.2 and 6.2.2. */
#include "hub/sha.h"

#include <string.h>

static const uint32_t k256[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotl(uint32_t x, int n)
{
    return (x << n) | (x >> (32 - n));
}

static uint32_t load_be(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void block_1(uint32_t h[8], const unsigned char *p)
{
    uint32_t w[80];
    for (int t = 0; t < 80; t++) {
        w[t] = t < 16 ? load_be(p + 4 * t) : rotl(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
    }
    uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (int t = 0; t < 80; t++) {
        const uint32_t f = t < 20 ? (b & c) | (~b & d) : t < 40 || t >= 60 ? b ^ c ^ d : (b & c) | (b & d) | (c & d);
        const uint32_t k = t < 20 ? 0x5a827999 : t < 40 ? 0x6ed9eba1 : t < 60 ? 0x8f1bbcdc : 0xca62c1d6;
        const uint32_t sum = rotl(a, 5) + f + e + k + w[t];
        e = d;
        d = c;
        c = rotl(b, 30);
        b = a;
        a = sum;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

/* The eight variables change places by the order in which they are named. */
#define ROUND_256(a, b, c, d, e, f, g, h_, t)                                                                                       \
    h_ += (rotl(e, 26) ^ rotl(e, 21) ^ rotl(e, 7)) + (g ^ (e & (f ^ g))) + k256[t] + w[t];                                              \
    d += h_;                                                                                                                       \
    h_ += (rotl(a, 30) ^ rotl(a, 19) ^ rotl(a, 10)) + ((a & b) | (c & (a | b)))

static void block_256(uint32_t h[8], const unsigned char *p)
{
    uint32_t w[64];
    for (int t = 0; t < 16; t++) {
        w[t] = load_be(p + 4 * t);
    }
    for (int t = 16; t < 64; t++) {
        const uint32_t x = w[t - 15], y = w[t - 2];
        w[t] = (rotl(y, 15) ^ rotl(y, 13) ^ (y >> 10)) + w[t - 7] + (rotl(x, 25) ^ rotl(x, 14) ^ (x >> 3)) + w[t - 16];
    }
    uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], i = h[7];
    for (int t = 0; t < 64; t += 8) {
        ROUND_256(a, b, c, d, e, f, g, i, t);
        ROUND_256(i, a, b, c, d, e, f, g, t + 1);
        ROUND_256(g, i, a, b, c, d, e, f, t + 2);
        ROUND_256(f, g, i, a, b, c, d, e, t + 3);
        ROUND_256(e, f, g, i, a, b, c, d, t + 4);
        ROUND_256(d, e, f, g, i, a, b, c, t + 5);
        ROUND_256(c, d, e, f, g, i, a, b, t + 6);
        ROUND_256(b, c, d, e, f, g, i, a, t + 7);
    }
    const uint32_t v[8] = {a, b, c, d, e, f, g, i};
    for (int k = 0; k < 8; k++) {
        h[k] += v[k];
    }
}

void cti_sha1_init(cti_sha *sha)
{
    *sha = (cti_sha){.h = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}};
}

void cti_sha256_init(cti_sha *sha)
{
    *sha = (cti_sha){.h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}, .is_256 = true};
}

void cti_sha_update(cti_sha *sha, const void *data, size_t size)
{
    void (*const block)(uint32_t *, const unsigned char *) = sha->is_256 ? block_256 : block_1;
    const unsigned char *p = data;
    const size_t held = sha->n_bytes % 64;
    if (size == 0) {
        return;
    }
    sha->n_bytes += size;
    if (held > 0) {
        const size_t take = size < 64 - held ? size : 64 - held;
        memcpy(sha->block + held, p, take);
        if (held + take < 64) {
            return;
        }
        block(sha->h, sha->block);
        p += take;
        size -= take;
    }
    for (; size >= 64; p += 64, size -= 64) {
        block(sha->h, p);
    }
    if (size > 0) {
        memcpy(sha->block, p, size);
    }
}

void cti_sha_hex(cti_sha *sha, char out_hex[65])
{
    const uint64_t n_bits = sha->n_bytes * 8;
    unsigned char tail[72] = {0x80};
    const size_t n_pad = (sha->n_bytes % 64 < 56 ? 56 : 120) - sha->n_bytes % 64;
    for (int i = 0; i < 8; i++) {
        tail[n_pad + (size_t)i] = (unsigned char)(n_bits >> (56 - 8 * i));
    }
    cti_sha_update(sha, tail, n_pad + 8);
    const int n_digits = sha->is_256 ? 64 : 40;
    for (int i = 0; i < n_digits; i++) {
        out_hex[i] = "0123456789abcdef"[sha->h[i / 8] >> (28 - 4 * (i % 8)) & 15];
    }
    out_hex[n_digits] = '\0';
}
