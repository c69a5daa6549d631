/* SPDX-License-Identifier: Apache-2.0 */
/* Orders that others made known: a permutation of an index without a table, and one of a few rows. */
#include "data/stream.h"

/* The four words that C++'s std::seed_seq gives for one 32-bit number (ISO C++ 2017, 29.6.7.1: n = 4, s = 1, so t = 1, p = 1,
 * q = 2, m = 4). */
static void seed_words(uint32_t seed, uint32_t b[4])
{
    for (int i = 0; i < 4; i++) {
        b[i] = UINT32_C(0x8b8b8b8b);
    }
    for (uint32_t k = 0; k < 4; k++) {
        const uint32_t x = b[k] ^ b[(k + 1) % 4] ^ b[(k + 3) % 4];
        const uint32_t r = UINT32_C(1664525) * (x ^ (x >> 27));
        b[(k + 1) % 4] += r;
        b[k] = r + (k == 0 ? 1 : k == 1 ? 1 + seed : k);
        b[(k + 2) % 4] += b[k];
    }
    for (uint32_t k = 0; k < 4; k++) {
        const uint32_t x = b[k] + b[(k + 1) % 4] + b[(k + 3) % 4];
        const uint32_t r = UINT32_C(1566083941) * (x ^ (x >> 27));
        b[(k + 1) % 4] ^= r;
        b[k] = r - k;
        b[(k + 2) % 4] ^= b[k];
    }
}

cti_permutation cti_permutation_make(int64_t n, uint32_t seed)
{
    cti_permutation p = {.max = (uint64_t)n - 1};
    uint32_t words[4];
    unsigned bits = 16;
    /* Enough for every index up to max. Upstream takes ceil(log2(max)), which leaves max = 4^k one index without a place of its own. */
    while ((p.max >> bits) != 0) {
        bits += 2;
    }
    p.half = bits / 2;
    p.mask = (UINT64_C(1) << p.half) - 1;
    seed_words(seed, words);
    for (int i = 0; i < 4; i++) {
        p.key[i] = words[i] & p.mask;
    }
    return p;
}

/* The round function of Simon (Beaulieu et al. 2013), on words of `half` bits. */
static uint64_t simon(const cti_permutation *p, uint64_t x)
{
    const unsigned w = p->half;
    const uint64_t by_1 = ((x << 1) | (x >> (w - 1))) & p->mask;
    const uint64_t by_8 = ((x << (8 % w)) | (x >> (w - 8 % w))) & p->mask;
    const uint64_t by_2 = ((x << 2) | (x >> (w - 2))) & p->mask;
    return (by_1 & by_8) ^ by_2;
}

int64_t cti_permutation_at(const cti_permutation *p, int64_t i)
{
    uint64_t v = (uint64_t)i;
    if (p->max == 0) {
        return 0;
    }
    do { /* cycle walking: the blocks are a permutation of 2^bits values, of which at most max + 1 are wanted */
        uint64_t left = v >> p->half, right = v & p->mask;
        for (int k = 0; k < 4; k += 2) {
            left ^= simon(p, right) ^ p->key[k];
            right ^= simon(p, left) ^ p->key[k + 1];
        }
        v = (left << p->half) | right;
    } while (v > p->max);
    return (int64_t)v;
}

/* --- NumPy's default_rng(seed).permuted ---------------------------------------------------------------------------- */

/* 128-bit arithmetic modulo 2^128. */
__extension__ typedef unsigned __int128 u128;

typedef struct pcg64 {
    u128 state, inc;
    bool has_half; /* the upper half of the last output is still to be given */
    uint32_t half;
} pcg64;

static uint32_t hash_in(uint32_t value, uint32_t *constant)
{
    value ^= *constant;
    *constant *= UINT32_C(0x931e8875);
    value *= *constant;
    return value ^ (value >> 16);
}

static uint32_t mix(uint32_t x, uint32_t y)
{
    const uint32_t r = UINT32_C(0xca01f9dd) * x - UINT32_C(0x4973f715) * y;
    return r ^ (r >> 16);
}

/* NumPy's SeedSequence(seed).generate_state(8, uint32): O'Neill's seed_seq_fe (2015) with a pool of four words. */
static void seed_sequence(uint64_t seed, uint32_t out[8])
{
    const uint32_t entropy[4] = {(uint32_t)seed, (uint32_t)(seed >> 32), 0, 0};
    uint32_t pool[4];
    uint32_t constant = UINT32_C(0x43b0d7e5);
    for (int i = 0; i < 4; i++) {
        pool[i] = hash_in(entropy[i], &constant);
    }
    for (int from = 0; from < 4; from++) {
        for (int to = 0; to < 4; to++) {
            if (from != to) {
                pool[to] = mix(pool[to], hash_in(pool[from], &constant));
            }
        }
    }
    constant = UINT32_C(0x8b51f9dd);
    for (int i = 0; i < 8; i++) {
        uint32_t v = pool[i % 4] ^ constant;
        constant *= UINT32_C(0x58f38ded);
        v *= constant;
        out[i] = v ^ (v >> 16);
    }
}

static void pcg64_step(pcg64 *r)
{
    const u128 multiplier = ((u128)UINT64_C(0x2360ed051fc65da4) << 64) | UINT64_C(0x4385df649fccf645);
    r->state = r->state * multiplier + r->inc;
}

static pcg64 pcg64_make(uint64_t seed)
{
    uint32_t w[8];
    uint64_t v[4];
    seed_sequence(seed, w);
    for (int i = 0; i < 4; i++) {
        v[i] = w[2 * i] | (uint64_t)w[2 * i + 1] << 32;
    }
    pcg64 r = {.inc = ((((u128)v[2] << 64) | v[3]) << 1) | 1};
    pcg64_step(&r);
    r.state += ((u128)v[0] << 64) | v[1];
    pcg64_step(&r);
    return r;
}

/* PCG XSL RR 128/64 (O'Neill 2014), its outputs halved, the lower half first. */
static uint32_t pcg64_next_32(pcg64 *r)
{
    if (r->has_half) {
        r->has_half = false;
        return r->half;
    }
    pcg64_step(r);
    const uint64_t x = (uint64_t)(r->state >> 64) ^ (uint64_t)r->state;
    const unsigned turn = (unsigned)(r->state >> 122);
    const uint64_t v = (x >> turn) | (x << ((64 - turn) & 63));
    r->has_half = true;
    r->half = (uint32_t)(v >> 32);
    return (uint32_t)v;
}

/* Uniform in [0, limit]: drawn within the mask above it until it fits. */
static uint32_t below(pcg64 *r, uint32_t limit)
{
    uint32_t mask = limit;
    for (int shift = 1; shift < 32; shift *= 2) {
        mask |= mask >> shift;
    }
    uint32_t value;
    do {
        value = pcg64_next_32(r) & mask;
    } while (value > limit);
    return value;
}

void cti_row_order(uint64_t seed, int32_t n, int32_t *out_order)
{
    pcg64 r = pcg64_make(seed);
    for (int32_t i = 0; i < n; i++) {
        out_order[i] = i;
    }
    for (int32_t i = n - 1; i > 0; i--) { /* Fisher and Yates, from the end */
        const int32_t j = (int32_t)below(&r, (uint32_t)i);
        const int32_t kept = out_order[i];
        out_order[i] = out_order[j];
        out_order[j] = kept;
    }
}
