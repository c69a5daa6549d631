/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: backend/cpu backend ops ir mesh base */
/* The product of bf16 operands: its packing, borders and order of sums, with the instruction in plain C, so that they are tested on
 * every machine: bit for bit against the sums written out, and against f64 within a computed bound. Where this CPU has the
 * instruction, the level that uses it must stay inside the bound too; whether its bits are the same is printed. The instruction is
 * the dot product of pairs; gemm_amx.c includes this file for that of AMX's tiles. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#pragma GCC diagnostic ignored "-Wpsabi"
#define CTI_CPU_ISA model
#define CTI_CPU_BF16_MODEL
#include "backend/cpu/isa/cpu_gemm_bf16.c"

#include "backend/cpu/cpu.h"
#include "base/rng.h"
#include "ctitan/op_list.h"

enum { GUARD = 0x5a, GAP = 3 }; /* GAP: elements between rows of y that nobody may touch */

typedef struct product {
    int64_t m, n, k;
    bool ta, tb;           /* a is [k, m], b is [n, k] */
    bool has_c, c_is_y;    /* c0; y over it */
    ct_dtype a, y;
} product;

/* Owned copies of the operands; a and b without slack, so that the address sanitizer sees every read past them. */
typedef struct operands {
    void *a, *y, *c;
    uint16_t *b;
    int64_t ldy;
    size_t y_bytes;
} operands;

static void *make(size_t bytes)
{
    void *p = malloc(bytes > 0 ? bytes : 1);
    assert_non_null(p);
    memset(p, GUARD, bytes > 0 ? bytes : 1);
    return p;
}

static double get(const void *p, ct_dtype dtype, int64_t i)
{
    return dtype == CT_DTYPE_F32 ? (double)((const float *)p)[i] : (double)cti_bf16_to_f32(((const uint16_t *)p)[i]);
}

static void put(void *p, ct_dtype dtype, int64_t i, float x)
{
    if (dtype == CT_DTYPE_F32) {
        ((float *)p)[i] = x;
    } else {
        ((uint16_t *)p)[i] = cti_f32_to_bf16(x);
    }
}

/* Numbers of several magnitudes, so that sums depend on their order. */
static float draw(cti_rng_key key, int64_t i)
{
    const float x = (float)cti_rng_uniform(key, (uint64_t)(2 * i)) - 0.5f;
    return ldexpf(x, (int)(8.0 * cti_rng_uniform(key, (uint64_t)(2 * i + 1))));
}

static operands operands_make(const product *p, uint64_t seed)
{
    operands o = {.ldy = p->n + GAP};
    const size_t a_size = ct_dtype_size_bytes(p->a), y_size = ct_dtype_size_bytes(p->y);
    o.y_bytes = (size_t)(p->m * o.ldy) * y_size;
    o.a = make((size_t)(p->m * p->k) * a_size);
    o.b = make((size_t)(p->n * p->k) * sizeof *o.b);
    o.y = make(o.y_bytes);
    o.c = make(o.y_bytes);
    for (int64_t i = 0; i < p->m * p->k; i++) {
        put(o.a, p->a, i, draw(cti_rng_key_make(seed, "a"), i));
    }
    for (int64_t i = 0; i < p->n * p->k; i++) {
        o.b[i] = cti_f32_to_bf16(draw(cti_rng_key_make(seed, "b"), i));
    }
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            put(o.c, p->y, i * o.ldy + j, draw(cti_rng_key_make(seed, "c"), i * p->n + j));
        }
    }
    return o;
}

static void operands_free(operands *o)
{
    free(o->a);
    free(o->b);
    free(o->y);
    free(o->c);
}

static cti_cpu_gemm gemm_of(const product *p, const operands *o)
{
    cti_cpu_gemm g = {.m = p->m, .n = p->n, .k = p->k, .y = o->y, .y_dtype = p->y, .ldy = o->ldy, .may_round_a = true};
    g.a = (cti_cpu_mat){o->a, p->a, p->ta ? 1 : p->k, p->ta ? p->m : 1};
    g.b = (cti_cpu_mat){o->b, CT_DTYPE_BF16, p->tb ? 1 : p->n, p->tb ? p->k : 1};
    g.c0 = !p->has_c ? NULL : p->c_is_y ? o->y : o->c;
    return g;
}

/* ---- the sums written out ---------------------------------------------------------------------------------------- */

static float flush(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0.0f, x) : x;
}

#if !CTI_HAS_AMX
/* A pair's product added as the instruction's description says. */
static float dot(float sum, float a0, float a1, float b0, float b1)
{
    sum = flush(fmaf(flush(a1), flush(b1), flush(sum)));
    return flush(fmaf(flush(a0), flush(b0), sum));
}
#endif

static uint16_t round_bf16(float x)
{
    return cti_f32_to_bf16(flush(x));
}

static float a_at(const product *p, const operands *o, int64_t i, int64_t k)
{
    const float x = (float)get(o->a, p->a, p->ta ? k * p->m + i : i * p->k + k);
    return cti_bf16_to_f32(round_bf16(x));
}

static float b_at(const product *p, const operands *o, int64_t k, int64_t j)
{
    return cti_bf16_to_f32(o->b[p->tb ? j * p->k + k : k * p->n + j]);
}

/* k [k0, end) of element (i, j), as the instruction adds. */
static float block_sum(const product *p, const operands *o, int64_t i, int64_t j, int64_t k0, int64_t end)
{
    float sum = 0.0f;
#if CTI_HAS_AMX
    for (int64_t k = k0; k < end; k += 32) {
        float even_odd[2] = {0.0f, 0.0f};
        for (int64_t e = k; e < end && e < k + 32; e++) {
            float *part = &even_odd[(e - k) % 2];
            *part = flush(fmaf(flush(a_at(p, o, i, e)), flush(b_at(p, o, e, j)), *part));
        }
        sum = flush(flush(sum) + flush(even_odd[0] + even_odd[1]));
    }
#else
    for (int64_t k = k0; k < end; k += 2) {
        const bool is_pair = k + 1 < end;
        sum = dot(sum, a_at(p, o, i, k), is_pair ? a_at(p, o, i, k + 1) : 0.0f, b_at(p, o, k, j), is_pair ? b_at(p, o, k + 1, j) : 0.0f);
    }
#endif
    return sum;
}

/* Element (i, j) in f32, before its last rounding; blocks of k as cpu_gemm_bf16.h says. */
static float element(const product *p, const operands *o, int64_t i, int64_t j)
{
    int64_t blocks = (p->k + 511) / 512, step = 512;
    if (blocks > 0) {
        step = ((p->k + blocks - 1) / blocks + 31) / 32 * 32;
    }
    float total = p->has_c ? (float)get(o->c, p->y, i * o->ldy + j) : 0.0f;
    for (int64_t k0 = 0; k0 < p->k; k0 += step) {
        const int64_t end = k0 + step < p->k ? k0 + step : p->k;
        const float sum = block_sum(p, o, i, j, k0, end);
        total = k0 == 0 && !p->has_c ? sum : sum + total;
    }
    return total;
}

/* The exact element and its error bound: n additions in any order, one more per block and for c, the last rounding, and what
 * flushing takes. */
static double exact(const product *p, const operands *o, int64_t i, int64_t j, double *bound)
{
    double sum = p->has_c ? get(o->c, p->y, i * o->ldy + j) : 0.0, magnitude = fabs(sum);
    for (int64_t k = 0; k < p->k; k++) {
        const double x = (double)a_at(p, o, i, k) * (double)b_at(p, o, k, j);
        sum += x;
        magnitude += fabs(x);
    }
    const double terms = (double)(p->k + 1 + p->k / 32 + 2);
    const double by_sum = 2.0 * terms * ct_dtype_unit_roundoff(CT_DTYPE_F32) * magnitude + terms * (double)FLT_MIN;
    *bound = by_sum + ct_dtype_unit_roundoff(p->y) * (fabs(sum) + by_sum);
    return sum;
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static void describe(const product *p)
{
    print_error("  m %lld n %lld k %lld ta %d tb %d c %d%s a %s y %s\n", (long long)p->m, (long long)p->n, (long long)p->k, p->ta, p->tb,
                p->has_c, p->c_is_y ? " = y" : "", ct_dtype_name(p->a), ct_dtype_name(p->y));
}

/* y against the bound; returns how many elements have other bits than the sums written out. */
static int64_t check_values(const product *p, const operands *o)
{
    int64_t others = 0;
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < o->ldy; j++) {
            const int64_t at = i * o->ldy + j;
            if (j >= p->n) {
                const char *gap = (const char *)o->y + (size_t)at * ct_dtype_size_bytes(p->y);
                for (size_t e = 0; e < ct_dtype_size_bytes(p->y); e++) {
                    assert_int_equal(gap[e], GUARD);
                }
                continue;
            }
            double bound = 0.0;
            const double want = exact(p, o, i, j, &bound), got = get(o->y, p->y, at);
            if (!(fabs(got - want) <= bound)) {
                describe(p);
                fail_msg("element (%lld, %lld) is %.9g, not %.9g: off by %.3g, bound %.3g", (long long)i, (long long)j, got, want,
                         fabs(got - want), bound);
            }
            const float model = element(p, o, i, j);
            if (p->y == CT_DTYPE_F32) {
                others += memcmp(&((const float *)o->y)[at], &model, sizeof model) != 0;
            } else {
                others += ((const uint16_t *)o->y)[at] != round_bf16(model);
            }
        }
    }
    return others;
}

static void set_y(const product *p, const operands *o)
{
    memset(o->y, GUARD, o->y_bytes);
    for (int64_t i = 0; i < p->m && p->c_is_y; i++) {
        const size_t size = ct_dtype_size_bytes(p->y), at = (size_t)(i * o->ldy) * size;
        memcpy((char *)o->y + at, (const char *)o->c + at, (size_t)p->n * size);
    }
}

static void check_product(const product *p, uint64_t seed)
{
    operands o = operands_make(p, seed);
    const cti_cpu_gemm g = gemm_of(p, &o);
    const int before = cti_pool_threads();
    void *first = make(o.y_bytes);
    assert_true(CTI_CPU_FN(gemm_is_bf16)(&g));
    for (int threads = 1; threads <= 3; threads += 2) {
        const size_t bytes = CTI_CPU_FN(gemm_bf16_scratch_bytes)(threads);
        char *block = aligned_alloc(64, bytes + 64);
        assert_non_null(block);
        memset(block, 0xff, bytes + 64); /* NaNs: what is used must have been packed */
        cti_pool_set_threads(threads);
        set_y(p, &o);
        CTI_CPU_FN(gemm_bf16)(&g, block, bytes);
        for (size_t i = 0; i < 64; i++) {
            assert_int_equal((unsigned char)block[bytes + i], 0xff);
        }
        free(block);
        if (threads == 1) {
            const int64_t others = check_values(p, &o);
            if (others != 0) {
                describe(p);
                fail_msg("%lld elements have other bits than the sums written out", (long long)others);
            }
            memcpy(first, o.y, o.y_bytes);
        } else if (memcmp(first, o.y, o.y_bytes) != 0) {
            describe(p);
            fail_msg("other bits with %d threads", threads);
        }
    }
    cti_pool_set_threads(before);
    free(first);
    operands_free(&o);
}

/* Borders of rows (4, 8, 14; 16, 32), of columns (16, 32), of k (2, 32, 512), and none of them. */
static const int64_t SHAPES[][3] = {{1, 1, 1},    {4, 16, 2},   {5, 17, 3},   {8, 31, 31},   {9, 32, 32},   {13, 33, 33}, {14, 48, 64},
                                    {15, 64, 65}, {14, 32, 512}, {9, 17, 513}, {5, 33, 1030}, {3, 40, 97}, {32, 15, 0},  {0, 3, 2},
                                    {2, 0, 5},    {100, 96, 40}, {15, 18, 1024}, {33, 32, 64}, {47, 33, 96}};
enum { N_SHAPES = sizeof SHAPES / sizeof SHAPES[0] };

/* False where there is no such product, or a big one has been left out: of those a quarter is run, all transposes among them. */
static bool product_at(int shape, int flags, product *out)
{
    const int64_t *s = SHAPES[shape];
    const bool is_big = s[0] * s[1] * s[2] > 50000;
    *out = (product){s[0], s[1], s[2], (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0, (flags & 12) == 12,
                     (flags & 16) != 0 ? CT_DTYPE_F32 : CT_DTYPE_BF16, (flags & 32) != 0 ? CT_DTYPE_F32 : CT_DTYPE_BF16};
    return (flags & 12) != 8 && (!is_big || (flags / 4 + flags + shape) % 4 == 0); /* y over a c that is not there */
}

static void products_have_the_bits_of_their_sums(void **state)
{
    (void)state;
    for (int s = 0; s < N_SHAPES; s++) {
        for (int flags = 0; flags < 64; flags++) {
            product p;
            if (product_at(s, flags, &p)) {
                check_product(&p, (uint64_t)(64 * s + flags));
            }
        }
    }
}

/* Larger than one tile of a task in both directions; a row stride of 4 KiB. */
static void products_of_many_tiles(void **state)
{
    (void)state;
    static const product P[] = {
        {510, 17, 20, false, true, true, false, CT_DTYPE_BF16, CT_DTYPE_BF16},
        {17, 420, 34, true, false, false, false, CT_DTYPE_F32, CT_DTYPE_F32},
        {15, 18, 2048, false, true, false, false, CT_DTYPE_BF16, CT_DTYPE_BF16},
    };
    for (size_t i = 0; i < sizeof P / sizeof P[0]; i++) {
        check_product(&P[i], 5000 + i);
    }
}

static float pair_dot(float sum, uint16_t a0, uint16_t a1, uint16_t b0, uint16_t b1)
{
    const uint16_t a[2] = {a0, a1}, b[2] = {b0, b1};
    return v_dp_bf16(sum - (vf16){0}, vi16_set1(a), vi16_set1(b))[7];
}

static void pairs_keep_to_the_instruction(void **state)
{
    (void)state;
    const uint16_t one = 0x3f80, two = 0x4000, tiny = 0x0001, least = 0x0080, inf = 0x7f80, nan = 0x7fc1;
    const float big = 16777216.0f; /* 2^24: + 1 rounds to even */
    assert_true(pair_dot(1.0f, one, two, two, two) == 7.0f);
    assert_true(pair_dot(big, one, one, one, one) == big);        /* 1, then 1: both lost */
    assert_true(pair_dot(big, two, one, one, one) == big + 2.0f); /* 1 first, and lost, then 2 */
    assert_true(pair_dot(big, one, two, one, one) == big + 4.0f); /* 2 first, then 1: a tie, to even */
    assert_true(pair_dot(0.0f, tiny, 0, two, 0) == 0.0f);          /* subnormal operands */
    assert_true(pair_dot(FLT_MIN / 2.0f, 0, 0, one, one) == 0.0f); /* and sums */
    assert_true(signbit(pair_dot(-FLT_MIN / 2.0f, 0x8000, 0x8000, one, one)) != 0);
    assert_true(pair_dot(0.0f, least, 0, 0x3f00, 0) == 0.0f);      /* a subnormal result */
    assert_true(pair_dot(0.0f, least, 0, one, 0) == FLT_MIN);
    assert_true(isinf(pair_dot(0.0f, inf, one, one, one)));
    assert_true(isnan(pair_dot(0.0f, inf, 0xff80, one, one)));
    assert_true(isnan(pair_dot(0.0f, inf, 0, 0, 0)));
    assert_true(isnan(pair_dot(0.0f, one, nan, one, one)));
    float from[16];
    uint16_t to[16];
    for (int i = 0; i < 16; i++) {
        from[i] = 1.0f + (float)i * 0x1p-9f; /* quarters of a unit of bf16 */
    }
    from[0] = (float)NAN;
    from[1] = FLT_MIN / 4.0f;
    from[2] = -INFINITY;
    from[3] = FLT_MAX;
    v_store_bf16(to, vf16_load(from));
    for (int i = 0; i < 16; i++) {
        assert_int_equal(to[i], round_bf16(from[i]));
    }
}

/* The level with the instruction, through its matmul. */
static void the_instruction_stays_inside_the_bound(void **state)
{
    (void)state;
    const ct_backend *cpu = NULL;
    for (int level = 0; level < cti_cpu_level_count(); level++) {
        if (strcmp(cti_cpu_level_name(level), CTI_HAS_AMX ? "v4amx" : "v4bf16") == 0) {
            cpu = cti_cpu_backend_at(level);
        }
    }
    if (cpu == NULL) {
        print_message("this CPU has no such instruction: only its plain form was tested\n");
        skip();
    }
    int64_t others = 0, all = 0;
    for (int s = 0; s < N_SHAPES; s++) {
        for (int flags = 0; flags < 64; flags++) {
            product p;
            if (!product_at(s, flags, &p) || p.a != CT_DTYPE_BF16) {
                continue;
            }
            operands o = operands_make(&p, (uint64_t)(64 * s + flags));
            ct_err err = {0};
            const ct_attrs_matmul attrs = {.ta = p.ta, .tb = p.tb};
            ct_tensor in[3] = {{.data = o.a, .dtype = p.a, .ndim = 2, .dims = {p.ta ? p.k : p.m, p.ta ? p.m : p.k}},
                               {.data = o.b, .dtype = CT_DTYPE_BF16, .ndim = 2, .dims = {p.tb ? p.n : p.k, p.tb ? p.k : p.n}},
                               {.data = p.c_is_y ? o.y : o.c, .dtype = p.y, .ndim = 2, .dims = {p.m, p.n}}};
            ct_tensor out = {.data = o.y, .dtype = p.y, .ndim = 2, .dims = {p.m, p.n}};
            ct_launch launch = {.in = in, .n_in = p.has_c ? 3 : 2, .out = &out, .n_out = 1, .attrs = &attrs};
            launch.workspace_bytes = cpu->kernels[CT_OP_matmul].workspace_bytes(&launch);
            launch.workspace = aligned_alloc(64, (launch.workspace_bytes + 63) / 64 * 64);
            assert_non_null(launch.workspace);
            o.ldy = p.n; /* a tensor has no gaps */
            for (int64_t i = 0; i < p.m * p.n; i++) {
                put(o.c, p.y, i, draw(cti_rng_key_make((uint64_t)s, "c"), i));
            }
            set_y(&p, &o);
            if (cpu->kernels[CT_OP_matmul].run(&launch, &err) != CT_OK) {
                fail_msg("%s", err.message);
            }
            others += check_values(&p, &o);
            all += p.m * p.n;
            free(launch.workspace);
            operands_free(&o);
        }
    }
    print_message("%lld of %lld elements have other bits than the plain form\n", (long long)others, (long long)all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_keep_to_the_instruction),
        cmocka_unit_test(products_have_the_bits_of_their_sums),
        cmocka_unit_test(products_of_many_tiles),
        cmocka_unit_test(the_instruction_stays_inside_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
