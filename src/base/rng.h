/* SPDX-License-Identifier: Apache-2.0 */
/* A counter-based generator: the value at (seed, name, index) is a pure function, the same bits in every layout and
 * on every machine. Integer mixing as in Salmon et al. 2011 (Philox 4x32-10); log, sin, cos are our own polynomials
 * in plain IEEE double arithmetic without contraction, so no libm enters. */
#ifndef CTI_BASE_RNG_H
#define CTI_BASE_RNG_H

#include <stdint.h>

typedef struct cti_rng_key {
    uint64_t k; /* from seed and name */
} cti_rng_key;

cti_rng_key cti_rng_key_make(uint64_t seed, const char *name);
/* 128 random bits for a counter. */
void cti_rng_bits(cti_rng_key key, uint64_t counter, uint32_t out[4]);
/* Uniform in (0, 1), 53 bits, never 0 or 1. */
double cti_rng_uniform(cti_rng_key key, uint64_t index);
/* Standard normal (Box-Muller; element 2j and 2j+1 share one counter). */
double cti_rng_normal(cti_rng_key key, uint64_t index);
/* Normal with mean 0 and std, redrawn (at further counters of the same index) until within [low, high]. */
double cti_rng_trunc_normal(cti_rng_key key, uint64_t index, double std, double low, double high);
/* The two above for elements [first, first + n): the same bits (rng_normals.h), at a tenth of the time. */
void cti_rng_normals(cti_rng_key key, uint64_t first, double *out, int64_t n);
void cti_rng_trunc_normals(cti_rng_key key, uint64_t first, double std, double low, double high, double *out, int64_t n);
/* Uniform integer in [0, n), n > 0, without bias. */
uint64_t cti_rng_below(cti_rng_key key, uint64_t index, uint64_t n);

#endif
