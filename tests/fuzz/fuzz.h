/* SPDX-License-Identifier: Apache-2.0 */
/* For the fuzz tests: how many cases to run, and mutations of bytes from a printed seed.
 *
 * CTITAN_FUZZ_RUNS sets the number of cases (tools/long: 10^6), CTITAN_FUZZ_SEED the first seed. Case i depends on its seed alone, so
 * that a failing case is run again by CTITAN_FUZZ_SEED=i CTITAN_FUZZ_RUNS=1. A case that takes a minute of processor time hangs, and fails.
 *
 *     for (fuzz_case c = fuzz_begin("jsonl", 3000); fuzz_next(&c);) {
 *         fuzz_mutate(&c, &bytes, sample, sample_size);
 *         ... must not crash; what must hold is asserted, with c.seed in the message ...
 *     }
 */
#ifndef CT_TESTS_FUZZ_FUZZ_H
#define CT_TESTS_FUZZ_FUZZ_H

#include <sys/time.h>

#include "base/rng.h"
#include "base/str.h"
#include "unit/base_test.h"

typedef struct fuzz_case {
    const char *name;
    uint64_t seed; /* of this case */
    uint64_t end;
    uint64_t draw; /* numbers drawn so far */
    bool begun;
} fuzz_case;

static inline uint64_t fuzz_setting(const char *name, uint64_t without)
{
    const char *text = getenv(name);
    return text != NULL && text[0] != '\0' ? strtoull(text, NULL, 10) : without;
}

static inline fuzz_case fuzz_begin(const char *name, uint64_t runs)
{
    fuzz_case c = {.name = name, .seed = fuzz_setting("CTITAN_FUZZ_SEED", 0)};
    runs = fuzz_setting("CTITAN_FUZZ_RUNS", runs);
    c.end = c.seed + runs;
    printf("%s: cases %llu to %llu\n", name, (unsigned long long)c.seed, (unsigned long long)c.end);
    return c;
}

static inline bool fuzz_next(fuzz_case *c)
{
    /* A case that takes so much processor time hangs: the signal ends the test. Behind the last one there is no limit. */
    enum { CASE_SECONDS = 60 };
    c->seed += c->begun;
    c->begun = true;
    c->draw = 0;
    const bool is_case = c->seed < c->end;
    const struct itimerval limit = {.it_value = {.tv_sec = is_case ? CASE_SECONDS : 0}};
    assert_int_equal(setitimer(ITIMER_PROF, &limit, NULL), 0);
    return is_case;
}

/* A number in [0, n); 0 where n is 0. */
static inline size_t fuzz_below(fuzz_case *c, size_t n)
{
    return n == 0 ? 0 : (size_t)cti_rng_below(cti_rng_key_make(c->seed, c->name), c->draw++, n);
}

static inline void fuzz_splice(cti_str *bytes, size_t at, size_t n, const void *by, size_t n_by)
{
    cti_str fresh = {.alloc = ct_alloc_system()};
    cti_str_add_n(&fresh, bytes->data, at);
    cti_str_add_n(&fresh, by, n_by);
    cti_str_add_n(&fresh, bytes->data + at + n, bytes->len - at - n);
    assert_false(fresh.failed);
    cti_str_deinit(bytes);
    *bytes = fresh;
}

/* bytes = sample with one to four changes: a bit, a byte, a cut, a run left out or doubled, an extreme number of 1, 2, 4 or 8 bytes
 * (little-endian), one of the words (may be NULL). */
static inline void fuzz_mutate(fuzz_case *c, cti_str *bytes, const void *sample, size_t size, const char *const *words, size_t n_words)
{
    static const uint64_t extremes[] = {0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, INT64_MAX, 1ull << 63, UINT64_MAX};
    cti_str_reset(bytes);
    cti_str_add_n(bytes, sample, size);
    for (size_t n = 1 + fuzz_below(c, 4); n > 0; n--) {
        const size_t at = fuzz_below(c, bytes->len + 1), room = bytes->len - at;
        const size_t run = fuzz_below(c, (room < 64 ? room : 64) + 1);
        unsigned char one = (unsigned char)fuzz_below(c, 256);
        switch (fuzz_below(c, 7)) {
        case 0:
            if (room > 0) {
                one = (unsigned char)((unsigned char)bytes->data[at] ^ (1u << fuzz_below(c, 8)));
                fuzz_splice(bytes, at, 1, &one, 1);
            }
            break;
        case 1:
            fuzz_splice(bytes, at, room > 0, &one, 1);
            break;
        case 2:
            fuzz_splice(bytes, at, fuzz_below(c, 3) == 0 ? room : 0, "", 0);
            break;
        case 3:
            fuzz_splice(bytes, at, run, "", 0);
            break;
        case 4: {
            cti_str copy = {.alloc = ct_alloc_system()};
            cti_str_add_n(&copy, bytes->data + at, run);
            fuzz_splice(bytes, at, 0, copy.data, copy.len);
            cti_str_deinit(&copy);
            break;
        }
        case 5: {
            const uint64_t number = extremes[fuzz_below(c, N_OF(extremes))];
            const size_t width = (size_t)1 << fuzz_below(c, 4);
            if (room >= width) {
                fuzz_splice(bytes, at, width, &number, width);
            }
            break;
        }
        default:
            if (n_words > 0) {
                const char *word = words[fuzz_below(c, n_words)];
                fuzz_splice(bytes, at, fuzz_below(c, 2) * run, word, strlen(word));
            }
            break;
        }
    }
}

#endif
