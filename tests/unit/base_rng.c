/* rooms: base */
/* SPDX-License-Identifier: Apache-2.0 */
/* The counter-based generator and the hash under it: recorded bits, and the distributions. */
#include "base_test.h"

#include <float.h>
#include <math.h>

#include "base/hash.h"
/* The file itself, for its static functions. */
#include "base/rng.c"

/* Recorded from an independent version in Python 3.11 (whose floats are IEEE doubles, never contracted) with
 * the package xxhash 4.1.0. Any machine, compiler and level of optimisation must give these bits. */
/* clang-format off */
static const struct {
    uint64_t seed;
    const char *name;
    uint64_t index;
    uint32_t bits[4];
    double uniform, normal; /* normal of std 1 */
    double narrow;          /* std 0.02 in [-0.01, 0.03]: plain redrawing */
    double tail;            /* std 0.02 in [0.3, 1]: fifteen std away, the other way */
    uint64_t below;         /* below 3 * 2^62: a quarter of all draws is rejected */
} recorded[] = {
    {UINT64_C(0x0), "", UINT64_C(0x0), {0xbc15b398, 0x7a88f56d, 0xa21be419, 0x6e894cff},
     0x1.1db0db373a343p-1, -0x1.61c26feabdddcp-1, -0x1.e084277c7300ep-8, 0x1.365369bc60c1cp-2, UINT64_C(0x92b8b98e25cf117d)},
    {UINT64_C(0x0), "", UINT64_C(0x1), {0x58f43ab5, 0xe3832b9e, 0xa5a0f2de, 0x6fa83ecf},
     0x1.bc5c75e549c0ep-2, -0x1.50dfed1f64c81p-2, -0x1.af331b0976c2ap-8, 0x1.340bd505a32c9p-2, UINT64_C(0x222c78557f05a1fb)},
    {UINT64_C(0x0), "", UINT64_C(0x2), {0xcdd2c250, 0x3a2a479a, 0xb28681e7, 0x8dfb9dcb},
     0x1.3476b60b40b47p-1, -0x1.112085343b0c5p+0, 0x1.6c2f3fc2f9029p-9, 0x1.37262b609e419p-2, UINT64_C(0x83ecd8877ee6e74a)},
    {UINT64_C(0x0), "", UINT64_C(0x3039), {0x5a01ff1a, 0xee206f19, 0xcf7d60f4, 0x161507f3},
     0x1.cd9bb64467313p-1, -0x1.7c099e26c88d1p-1, 0x1.8e88138d6590cp-7, 0x1.3708a8aa4cdcbp-2, UINT64_C(0xa32568a1cf2177ce)},
    {UINT64_C(0x0), "", UINT64_C(0x100000007), {0xdcf5708e, 0x77ee3e5b, 0x40548161, 0xd1150aa8},
     0x1.ddd91f0a13405p-1, 0x1.f67529c85f023p-4, 0x1.4192aa19d667dp-9, 0x1.33485f83965a0p-2, UINT64_C(0x334421faa27f8d2c)},
    {UINT64_C(0x0), "", UINT64_C(0xffffffffffffffff), {0xbee17e6b, 0x121b10a2, 0x6245ebe5, 0x67460ec},
     0x1.df120f1f5758fp-1, 0x1.b9b913b629aa7p+0, -0x1.b42efadfc7b8cp-8, 0x1.3446c1ab4acd6p-2, UINT64_C(0xa95b5817b9e1ee4d)},
    {UINT64_C(0x2a), "layers.0.attention.wq.weight", UINT64_C(0x0), {0xf23da360, 0xa7b64c15, 0x6bde0842, 0xc2efbb29},
     0x1.3051699590b65p-1, -0x1.336ea19320985p-4, -0x1.89835e2cf6858p-10, 0x1.33981c1fb329bp-2, UINT64_C(0x68f13fa9ccf6b1ad)},
    {UINT64_C(0x2a), "layers.0.attention.wq.weight", UINT64_C(0x1), {0x65c0a0c4, 0xf4f5ab06, 0xbb90c32c, 0xb0e8c886},
     0x1.ffb8a77f4d7e3p-1, 0x1.1ba6e8cf97125p-2, 0x1.6b13158498696p-8, 0x1.334c58592afedp-2, UINT64_C(0xee6cc5d47eb90e7)},
    {UINT64_C(0x2a), "layers.0.attention.wq.weight", UINT64_C(0x2), {0xa7757448, 0x4d3f2737, 0x1c723f6d, 0x3d069036},
     0x1.a4e2828d52cecp-3, -0x1.0a3be64634882p-3, -0x1.54c78d26a9a40p-9, 0x1.34adc22021046p-2, UINT64_C(0x24c3f9da8402858e)},
    {UINT64_C(0x2a), "layers.0.attention.wq.weight", UINT64_C(0x3039), {0xc2d95b4, 0xc5f824c0, 0xb980089a, 0x3e326064},
     0x1.eec34fab0b3cdp-1, -0x1.c7685a99f643ep-5, -0x1.2375fc8b7ee3cp-10, 0x1.3727731e78f3ep-2, UINT64_C(0x63fc4883ceaa453e)},
    {UINT64_C(0x2a), "layers.0.attention.wq.weight", UINT64_C(0x100000007), {0x3c7cc17e, 0x203d8818, 0x36a0341d, 0x8b0294e},
     0x1.4cf54ca6c042bp-1, -0x1.2ecae3e607216p-2, -0x1.83930f3aea683p-8, 0x1.3519cd2b65c42p-2, UINT64_C(0x894b932a886ccd19)},
    {UINT64_C(0x2a), "layers.0.attention.wq.weight", UINT64_C(0xffffffffffffffff), {0x20594cfc, 0x4aa908a4, 0xa11a39e7, 0x62b8ff83},
     0x1.6508c12312b94p-3, 0x1.378d6f96d3e29p-1, 0x1.8ec984981973fp-7, 0x1.336cc7ccc94b4p-2, UINT64_C(0x8686e186b4993d55)},
    {UINT64_C(0xffffffffffffffff), "tok_embeddings.weight", UINT64_C(0x0), {0x2faf5cd4, 0x76cf2879, 0xff79694a, 0x6350eba3},
     0x1.8e8a9aecb89e0p-6, -0x1.1c7389314a691p+0, -0x1.54150b75fed5bp-9, 0x1.341c78ae63906p-2, UINT64_C(0x8ddaea9fe9a4eca8)},
    {UINT64_C(0xffffffffffffffff), "tok_embeddings.weight", UINT64_C(0x1), {0x70fbb24a, 0xe3fa6e94, 0x992bdc47, 0x24c43957},
     0x1.41e6b29fb027ap-2, -0x1.c88884fe27469p-1, 0x1.499dd10c010c0p-9, 0x1.33964553e8b71p-2, UINT64_C(0x454de40e847cc00c)},
    {UINT64_C(0xffffffffffffffff), "tok_embeddings.weight", UINT64_C(0x2), {0x8f4195f7, 0x930671f6, 0x1d2f4f50, 0xbfa60582},
     0x1.e6c0d665498f1p-1, 0x1.4b7ceefe10086p-2, 0x1.a84dfeb5d7150p-8, 0x1.335340dd94576p-2, UINT64_C(0xb32700e8207ae47d)},
    {UINT64_C(0xffffffffffffffff), "tok_embeddings.weight", UINT64_C(0x3039), {0x8b012968, 0x136e8b94, 0xcc089351, 0x6786cbd},
     0x1.9395527b240a0p-6, 0x1.4a3712acf800bp+0, 0x1.a6ace4b470a4cp-6, 0x1.370117388c86ap-2, UINT64_C(0x760d940599305903)},
    {UINT64_C(0xffffffffffffffff), "tok_embeddings.weight", UINT64_C(0x100000007), {0x1647cb47, 0x6439ee5a, 0xc2ca9446, 0x21b618bd},
     0x1.01461f13fb778p-4, 0x1.bea2570281082p+0, 0x1.603b70ad0b0f1p-8, 0x1.337b99dfb66e5p-2, UINT64_C(0x4b8a096f12c09b6e)},
    {UINT64_C(0xffffffffffffffff), "tok_embeddings.weight", UINT64_C(0xffffffffffffffff), {0x44a366d2, 0x79f11b6f, 0xb28d0908, 0x93e5bc49},
     0x1.3f217f6e7979fp-1, 0x1.0e736b57d2610p+0, 0x1.5a2d5632f8ce1p-6, 0x1.33b1fed7a3ec6p-2, UINT64_C(0x67697b3904aa980a)},
};
/* clang-format on */

static void bits_are_the_recorded_ones(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(recorded); i++) {
        const cti_rng_key key = cti_rng_key_make(recorded[i].seed, recorded[i].name);
        const uint64_t index = recorded[i].index;
        uint32_t bits[4];
        cti_rng_bits(key, index, bits);
        assert_memory_equal(bits, recorded[i].bits, sizeof bits);
        const double got[] = {cti_rng_uniform(key, index), cti_rng_normal(key, index),
                              cti_rng_trunc_normal(key, index, 0.02, -0.01, 0.03),
                              cti_rng_trunc_normal(key, index, 0.02, 0.3, 1.0)};
        const double want[] = {recorded[i].uniform, recorded[i].normal, recorded[i].narrow, recorded[i].tail};
        for (size_t k = 0; k < N_OF(got); k++) {
            if (memcmp(&got[k], &want[k], sizeof got[k]) != 0) {
                fail_msg("row %zu, number %zu: %a, recorded %a", i, k, got[k], want[k]);
            }
        }
        assert_true(cti_rng_below(key, index, (uint64_t)3 << 62) == recorded[i].below);
    }
}

/* The known answers that the authors of Philox publish with Random123 (kat_vectors, philox4x32 with 10
 * rounds). */
static void philox_known_answers(void **state)
{
    (void)state;
    static const struct {
        uint64_t key, index;
        uint32_t attempt, stream, out[4];
    } rows[] = {
        {0, 0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT32_MAX, UINT32_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {UINT64_C(0x299f31d0a4093822),
         UINT64_C(0x85a308d3243f6a88),
         0x13198a2e,
         0x03707344,
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < N_OF(rows); i++) {
        uint32_t out[4];
        philox((cti_rng_key){.k = rows[i].key}, rows[i].index, rows[i].attempt, rows[i].stream, out);
        assert_memory_equal(out, rows[i].out, sizeof out);
    }
}

/* Recorded with the package xxhash 4.1.0 (library 0.8.4): XXH3-64 with seeds 0 and 42, XXH3-128. */
static void hash_known_answers(void **state)
{
    (void)state;
    unsigned char bytes[5000];
    for (int i = 0; i < 5000; i++) {
        bytes[i] = (unsigned char)(i % 251);
    }
    unsigned char all[256];
    for (int i = 0; i < 256; i++) {
        all[i] = (unsigned char)i;
    }
    const struct {
        const void *data;
        size_t size;
        uint64_t seed_0, seed_42;
        const char *hex;
    } rows[] = {
        {"", 0, UINT64_C(0x2d06800538d394c2), UINT64_C(0xb029411ff43d84d2),
         "99aa06d3014798d86001c324468d497f"},
        {NULL, 0, UINT64_C(0x2d06800538d394c2), UINT64_C(0xb029411ff43d84d2),
         "99aa06d3014798d86001c324468d497f"},
        {"a", 1, UINT64_C(0xe6c632b61e964e1f), UINT64_C(0x4c437dd47f0716f4),
         "a96faf705af16834e6c632b61e964e1f"},
        {"abc", 3, UINT64_C(0x78af5f94892f3950), UINT64_C(0xd8438def21bbdcc3),
         "06b05ab6733a618578af5f94892f3950"},
        {"The quick brown fox jumps over the lazy dog", 43, UINT64_C(0xce7d19a5418fb365),
         UINT64_C(0xb4a3f3c36b3c7d26), "ddd650205ca3e7fa24a1cc2e3a8a7651"},
        {all, 256, UINT64_C(0x9408a4433b952d71), UINT64_C(0xc1a55ca180b3fd0a),
         "f1f8a93f50849ac39408a4433b952d71"},
        {bytes, 5000, UINT64_C(0xb418500fc42320ee), UINT64_C(0xcbb923d7fcf9cd33),
         "b92ec02c39d33ce7b418500fc42320ee"},
    };
    for (size_t i = 0; i < N_OF(rows); i++) {
        assert_true(cti_hash64(rows[i].data, rows[i].size, 0) == rows[i].seed_0);
        assert_true(cti_hash64(rows[i].data, rows[i].size, 42) == rows[i].seed_42);
        char hex[33];
        cti_hash128_hex(rows[i].data, rows[i].size, hex);
        assert_string_equal(hex, rows[i].hex);
    }
}

static void keys_differ(void **state)
{
    (void)state;
    static const char *const names[] = {"", "a", "b", "ab", "layers.0.w", "layers.1.w"};
    for (size_t i = 0; i < N_OF(names); i++) {
        for (uint64_t seed = 0; seed < 4; seed++) {
            for (size_t j = 0; j <= i; j++) {
                for (uint64_t other = 0; other < 4; other++) {
                    const bool same = i == j && seed == other;
                    assert_int_equal(
                        cti_rng_key_make(seed, names[i]).k == cti_rng_key_make(other, names[j]).k, same);
                }
            }
        }
    }
}

/* Each operation errs by at most half a unit in the last place; the constant counts those that reach the
 * result. */
static void polynomials_are_good(void **state)
{
    (void)state;
    const cti_rng_key key = cti_rng_key_make(3, "polynomials");
    for (uint64_t i = 0; i < 200000; i++) {
        uint32_t r[4];
        cti_rng_bits(key, i, r);
        double x = open_unit(join(r[0], r[1]));
        x = i % 4 == 1 ? ldexp(x, -(int)(r[2] % 53)) : i % 4 == 2 ? 1.0 - ldexp(x, -(int)(r[2] % 50)) : x;
        x = x >= 1.0 ? 1.0 - 0x1p-53 : x;
        const double want = log(x);
        if (!(fabs(log_unit(x) - want) <= 3.0 * DBL_EPSILON * fabs(want))) {
            fail_msg("log(%a) = %a, want %a", x, log_unit(x), want);
        }
        double sine, cosine;
        sin_cos_random(join(r[2], r[3]), &sine, &cosine);
        assert_true(fabs(sine * sine + cosine * cosine - 1.0) <= 4.0 * DBL_EPSILON);
    }
    /* The angle that the bits stand for, octant by octant. */
    const double eighth = 0.78539816339744830962;
    for (uint64_t octant = 0; octant < 8; octant++) {
        for (uint64_t k = 0; k < 1000; k++) {
            const uint64_t place = k << 39 | 12345; /* of 2^49 */
            const double angle = ldexp((double)(2 * place + 1), -50) * eighth;
            const double a = (octant & 1) != 0 ? cos(angle) : sin(angle),
                         b = (octant & 1) != 0 ? sin(angle) : cos(angle);
            double sine, cosine;
            sin_cos_random(place << 15 | octant, &sine, &cosine);
            assert_true(fabs(sine - ((octant & 2) != 0 ? -a : a)) <= 2.0 * DBL_EPSILON);
            assert_true(fabs(cosine - ((octant & 4) != 0 ? -b : b)) <= 2.0 * DBL_EPSILON);
        }
    }
}

static void extremes_stay_inside(void **state)
{
    (void)state;
    assert_true(open_unit(0) == 0x1p-53);
    assert_true(open_unit(UINT64_MAX) == 1.0 - 0x1p-53);
    assert_true(isfinite(log_unit(0x1p-53)) && log_unit(1.0 - 0x1p-53) < 0.0);
    double sine, cosine;
    sin_cos_random(UINT64_MAX, &sine, &cosine);
    assert_true(fabs(sine) <= 1.0 && fabs(cosine) <= 1.0);
    sin_cos_random(0, &sine, &cosine);
    assert_true(fabs(sine) <= 1.0 && fabs(cosine) <= 1.0);
}

enum { N_SAMPLES = 400000, N_BINS = 64 };

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The largest distance between the samples' distribution and cdf, times sqrt(n). Sorts the samples. */
static double kolmogorov(double *samples, int n, double (*cdf)(double x, const double *args),
                         const double *args)
{
    qsort(samples, (size_t)n, sizeof *samples, compare_doubles);
    double worst = 0.0;
    for (int i = 0; i < n; i++) {
        const double p = cdf(samples[i], args);
        const double below = fabs(p - (double)i / n), above = fabs((double)(i + 1) / n - p);
        worst = below > worst ? below : worst; /* gcc 12 for aarch64 fails inside on a reduction by fmax() */
        worst = above > worst ? above : worst;
    }
    return worst * sqrt((double)n);
}

/* Kolmogorov's bound for a chance of one in a million: 2 exp(-2 d^2) = 1e-6. */
static double kolmogorov_bound(void)
{
    return sqrt(-log(0.5e-6) / 2.0);
}

static double uniform_cdf(double x, const double *args)
{
    (void)args;
    return x;
}

static double normal_cdf(double x, const double *args)
{
    (void)args;
    return 0.5 * erfc(-x / sqrt(2.0));
}

/* args: std, low, high. The difference of erfc is taken on the side where it loses nothing. */
static double trunc_cdf(double x, const double *args)
{
    const double s = args[0] * sqrt(2.0);
    if (args[1] > 0.0) {
        return (erfc(args[1] / s) - erfc(x / s)) / (erfc(args[1] / s) - erfc(args[2] / s));
    }
    if (args[2] < 0.0) {
        return (erfc(-x / s) - erfc(-args[1] / s)) / (erfc(-args[2] / s) - erfc(-args[1] / s));
    }
    return (erf(x / s) - erf(args[1] / s)) / (erf(args[2] / s) - erf(args[1] / s));
}

/* Sample means of powers against the true ones, five standard errors wide. */
static void check_moments(const double *x, int n, const double want[4], const double variance[4])
{
    for (int power = 1; power <= 4; power++) {
        double sum = 0.0;
        for (int i = 0; i < n; i++) {
            double p = x[i];
            for (int k = 1; k < power; k++) {
                p *= x[i];
            }
            sum += p;
        }
        if (!(fabs(sum / n - want[power - 1]) <= 5.0 * sqrt(variance[power - 1] / n))) {
            fail_msg("power %d: mean %g, want %g", power, sum / n, want[power - 1]);
        }
    }
}

static void check_uncorrelated(const double *x, int n, int lag, double mean, double variance)
{
    double sum = 0.0;
    for (int i = 0; i + lag < n; i++) {
        sum += (x[i] - mean) * (x[i + lag] - mean);
    }
    assert_true(fabs(sum / (n - lag)) <= 5.0 * variance / sqrt((double)(n - lag)));
}

static void uniform_is_uniform(void **state)
{
    (void)state;
    double *x = ct_alloc_zeroed(ct_alloc_system(), N_SAMPLES, sizeof *x, NULL);
    const cti_rng_key key = cti_rng_key_make(5, "uniform");
    int bins[N_BINS] = {0};
    for (int i = 0; i < N_SAMPLES; i++) {
        x[i] = cti_rng_uniform(key, (uint64_t)i);
        assert_true(x[i] > 0.0 && x[i] < 1.0);
        bins[(int)(x[i] * N_BINS)]++;
    }
    const double mean[4] = {1.0 / 2, 1.0 / 3, 1.0 / 4, 1.0 / 5};
    const double variance[4] = {1.0 / 3 - 1.0 / 4, 1.0 / 5 - 1.0 / 9, 1.0 / 7 - 1.0 / 16, 1.0 / 9 - 1.0 / 25};
    check_moments(x, N_SAMPLES, mean, variance);
    for (int lag = 1; lag < 5; lag++) {
        check_uncorrelated(x, N_SAMPLES, lag, 0.5, 1.0 / 12);
    }
    double chi = 0.0;
    for (int i = 0; i < N_BINS; i++) {
        const double expected = (double)N_SAMPLES / N_BINS;
        chi += (bins[i] - expected) * (bins[i] - expected) / expected;
    }
    assert_true(fabs(chi - (N_BINS - 1)) <= 5.0 * sqrt(2.0 * (N_BINS - 1)));
    assert_true(kolmogorov(x, N_SAMPLES, uniform_cdf, NULL) <= kolmogorov_bound());
    ct_alloc_free(ct_alloc_system(), x);
}

static void normal_is_normal(void **state)
{
    (void)state;
    double *x = ct_alloc_zeroed(ct_alloc_system(), N_SAMPLES, sizeof *x, NULL);
    const cti_rng_key key = cti_rng_key_make(6, "normal");
    for (int i = 0; i < N_SAMPLES; i++) {
        x[i] = cti_rng_normal(key, (uint64_t)i);
    }
    const double mean[4] = {0.0, 1.0, 0.0, 3.0};
    const double variance[4] = {1.0, 2.0, 15.0, 96.0}; /* moments 2, 4, 6, 8 less the squares of the means */
    check_moments(x, N_SAMPLES, mean, variance);
    for (int lag = 1; lag < 5; lag++) { /* lag 1 holds the pairs that share a counter */
        check_uncorrelated(x, N_SAMPLES, lag, 0.0, 1.0);
    }
    assert_true(kolmogorov(x, N_SAMPLES, normal_cdf, NULL) <= kolmogorov_bound());
    ct_alloc_free(ct_alloc_system(), x);
}

static void trunc_normal_stays_within(void **state)
{
    (void)state;
    enum { N = 50000 };
    static const double rows[][3] = {{0.02, -0.06, 0.06}, {0.02, -2.0, 2.0},   {1.0, -0.5, 0.25},
                                     {1.0, 1.0, 8.0},     {1.0, -100.0, -4.0}, {1.0, 5.0, 5.5},
                                     {1.0, 6.0, 1e6},     {1000.0, -2.0, 2.0}, {1.0, -1e-9, 1e-9},
                                     {0.02, 0.02, 0.021}, {1.0, 10.0, 1e30},   {1.0, 20.0, 21.0}};
    double *x = ct_alloc_zeroed(ct_alloc_system(), N, sizeof *x, NULL);
    for (size_t r = 0; r < N_OF(rows); r++) {
        const double std = rows[r][0], low = rows[r][1], high = rows[r][2];
        const cti_rng_key key = cti_rng_key_make(r, "trunc");
        for (int i = 0; i < N; i++) {
            x[i] = cti_rng_trunc_normal(key, (uint64_t)i, std, low, high);
            assert_true(x[i] >= low && x[i] <= high);
        }
        const double distance = kolmogorov(x, N, trunc_cdf, rows[r]);
        if (!(distance <= kolmogorov_bound())) {
            fail_msg("std %g in [%g, %g]: %g", std, low, high, distance);
        }
    }
    ct_alloc_free(ct_alloc_system(), x);
    /* Where there is nothing to draw it still ends, inside. */
    const cti_rng_key key = cti_rng_key_make(1, "nothing");
    assert_true(cti_rng_trunc_normal(key, 0, 0.0, -1.0, 1.0) == 0.0);
    assert_true(cti_rng_trunc_normal(key, 0, 0.0, 0.5, 1.0) == 0.5);
    assert_true(cti_rng_trunc_normal(key, 0, 1.0, 0.5, 0.5) == 0.5);
    assert_true(cti_rng_trunc_normal(key, 0, 1.0, -3.0, -3.0) == -3.0);
    const double far = cti_rng_trunc_normal(key, 0, 1.0, 1e300, 1e301);
    assert_true(far >= 1e300 && far <= 1e301);
    const double wide = cti_rng_trunc_normal(key, 0, (double)INFINITY, -1.0, 1.0);
    assert_true(wide >= -1.0 && wide <= 1.0);
}

static void below_has_no_bias(void **state)
{
    (void)state;
    const cti_rng_key key = cti_rng_key_make(9, "below");
    assert_true(cti_rng_below(key, 0, 0) == 0);
    assert_true(cti_rng_below(key, 0, 1) == 0);
    static const uint64_t limits[] = {2, 3, 7, 10, 64, 63};
    for (size_t r = 0; r < N_OF(limits); r++) {
        enum { N = 100000 };
        int bins[64] = {0};
        for (uint64_t i = 0; i < N; i++) {
            const uint64_t x = cti_rng_below(key, i, limits[r]);
            assert_true(x < limits[r]);
            bins[x]++;
        }
        double chi = 0.0;
        for (uint64_t i = 0; i < limits[r]; i++) {
            const double expected = (double)N / (double)limits[r];
            chi += (bins[i] - expected) * (bins[i] - expected) / expected;
        }
        const double freedom = (double)(limits[r] - 1);
        assert_true(fabs(chi - freedom) <=
                    5.0 * sqrt(2.0 * freedom) + 10.0); /* chi-square's tail is longer for few bins */
    }
    /* Plain modulo of 64 bits would put half of these into the first third. */
    int n_first = 0;
    enum { N_BIG = 90000 };
    const uint64_t big = (uint64_t)3 << 62;
    for (uint64_t i = 0; i < N_BIG; i++) {
        n_first += cti_rng_below(key, i, big) < big / 3;
    }
    assert_true(fabs(n_first - N_BIG / 3.0) <= 5.0 * sqrt(N_BIG * (1.0 / 3) * (2.0 / 3)));
}

/* Element by element and in bulk: the same bits, at every instruction set, wherever a range begins and ends. */
static void bulk_is_the_scalar(void **state)
{
    (void)state;
    enum { N_MAX = 1000 };
    static const uint64_t firsts[] = {0, 1, 2, 127, 128, 129, ((uint64_t)1 << 33) - 301, UINT64_MAX - N_MAX};
    static const int64_t sizes[] = {0, 1, 2, 3, 127, 128, 129, 255, 257, N_MAX};
    static const double rows[][3] = {{0.02, -2.0, 2.0}, {0.02, -0.01, 0.03}, {0.02, 0.3, 1.0}, {1.0, -3.0, 3.0}};
    const cti_rng_key key = cti_rng_key_make(11, "bulk");
    double out[N_MAX + 1];
    for (size_t f = 0; f < N_OF(firsts); f++) {
        for (size_t s = 0; s < N_OF(sizes); s++) {
            out[sizes[s]] = 1234.5;
            cti_rng_normals(key, firsts[f], out, sizes[s]);
            assert_true(out[sizes[s]] == 1234.5);
            for (int64_t i = 0; i < sizes[s]; i++) {
                const double want = cti_rng_normal(key, firsts[f] + (uint64_t)i);
                assert_memory_equal(&out[i], &want, sizeof want);
            }
            const double *r = rows[(f + s) % N_OF(rows)];
            cti_rng_trunc_normals(key, firsts[f], r[0], r[1], r[2], out, sizes[s]);
            assert_true(out[sizes[s]] == 1234.5);
            for (int64_t i = 0; i < sizes[s]; i++) {
                const double want = cti_rng_trunc_normal(key, firsts[f] + (uint64_t)i, r[0], r[1], r[2]);
                assert_memory_equal(&out[i], &want, sizeof want);
            }
        }
    }
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx2")) {
        print_message("avx2: not run, this CPU has no such instructions\n");
        return;
    }
    static double base[200 * CTI_RNG_NORMALS_UNIT], avx2[200 * CTI_RNG_NORMALS_UNIT];
    for (uint64_t counter = 0; counter < (uint64_t)1 << 36; counter = counter * 5 + 12345) {
        cti_rng_normals_base(key, counter, base, N_OF(base));
        cti_rng_normals_avx2(key, counter, avx2, N_OF(avx2));
        assert_memory_equal(base, avx2, sizeof base);
    }
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_the_recorded_ones), cmocka_unit_test(philox_known_answers),
        cmocka_unit_test(hash_known_answers),         cmocka_unit_test(keys_differ),
        cmocka_unit_test(polynomials_are_good),       cmocka_unit_test(extremes_stay_inside),
        cmocka_unit_test(uniform_is_uniform),         cmocka_unit_test(normal_is_normal),
        cmocka_unit_test(trunc_normal_stays_within),  cmocka_unit_test(below_has_no_bias),
        cmocka_unit_test(bulk_is_the_scalar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
