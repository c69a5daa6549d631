/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: backend/cpu backend/ref backend ops ir mesh base */
/* Shapes that reach every border inside the CPU backend's kernels (tiles, blocks of k, vector tails, rows split over tasks), at
 * every level, against the reference; and the same bits with 1, 2 and 3 threads. */
#include "op/harness.h"
#include "op/levels.h"

#include "backend/cpu/cpu.h"
#include "backend/ref/ref.h"
#include "base/pool.h"

/* Compares with the reference, then the bits over thread counts. */
static void check(const op_case *c)
{
    const int threads = cti_pool_threads();
    for (int level = 0; level < level_count(); level++) {
        const ct_backend *cpu = level_at(level);
        if (cpu == NULL) {
            continue;
        }
        cti_pool_set_threads(2);
        op_compare(cpu, ct_backend_ref(), c);
        op_result one, other;
        cti_pool_set_threads(1);
        op_execute_once(cpu, c, OP_NO_ALIAS, &one);
        for (int n = 2; n <= 3 && one.status == CT_OK; n++) {
            cti_pool_set_threads(n);
            op_execute_once(cpu, c, OP_NO_ALIAS, &other);
            op_same_bits(level_name(level), c, &one, &other, "with more threads");
        }
    }
    cti_pool_set_threads(threads);
}

static ct_arena *arena_new(void)
{
    ct_arena *arena = NULL;
    assert_int_equal(ct_arena_create(ct_alloc_system(), 1 << 20, &arena, NULL), CT_OK);
    return arena;
}

static const ct_dtype FLOATS[] = {CT_DTYPE_F32, CT_DTYPE_BF16};

static void matmul_tiles(void **state)
{
    (void)state;
    static const int64_t SHAPES[][3] = {{1, 1, 1},   {2, 17, 165}, {3, 70, 513}, {4, 33, 31},  {5, 64, 0},
                                        {15, 32, 257}, {300, 31, 9}, {31, 420, 20}, {61, 48, 520}, {0, 3, 2}};
    for (size_t s = 0; s < sizeof SHAPES / sizeof SHAPES[0]; s++) {
        for (int flags = 0; flags < 8; flags++) {
            const int64_t m = SHAPES[s][0], n = SHAPES[s][1], k = SHAPES[s][2];
            const bool ta = flags & 1, tb = flags & 2;
            const ct_attrs_matmul attrs = {.ta = ta, .tb = tb};
            ct_arena *arena = arena_new();
            op_case c = op_case_begin(arena, 100 + s, CT_OP_matmul, FLOATS[(s + (flags >> 2)) % 2], &attrs);
            (void)op_add_f(&c, 1.0, OP_DIMS(ta ? k : m, ta ? m : k));
            (void)op_add_f(&c, 1.0, OP_DIMS(tb ? n : k, tb ? k : n));
            if (flags & 4) {
                (void)op_add_f(&c, 1.0, OP_DIMS(m, n));
            }
            check(&c);
            ct_arena_destroy(&arena);
        }
    }
}

/* Rows of segments end in {-1}. */
typedef struct attn_shape {
    int64_t q, k, heads, kv_heads, h, window;
    bool causal, by_ends;
    int32_t segments[8][4];
} attn_shape;

static const attn_shape ATTENTION[] = {
    {40, 40, 4, 2, 16, 0, true, false, {{0, 40, 0, 40}, {-1}}},
    {40, 40, 2, 1, 16, 0, true, true, {{0, 13, 0, 13}, {13, 0, 13, 0}, {13, 27, 13, 27}, {-1}}},
    {50, 70, 2, 2, 5, 0, true, false, {{3, 20, 0, 20}, {30, 15, 22, 40}, {-1}}},
    {33, 20, 3, 3, 24, 0, false, true, {{0, 33, 0, 20}, {-1}}},
    {30, 40, 2, 1, 40, 0, true, false, {{0, 10, 0, 40}, {10, 10, 0, 40}, {20, 5, 10, 20}, {-1}}},
    {20, 30, 1, 1, 8, 11, false, false, {{0, 20, 0, 30}, {-1}}},
    {12, 6, 2, 1, 16, 0, true, false, {{0, 12, 0, 6}, {-1}}},
    {300, 300, 1, 1, 16, 0, true, false, {{0, 300, 0, 300}, {-1}}},
    {4, 600, 2, 2, 64, 0, true, false, {{0, 4, 0, 600}, {-1}}},
    {290, 290, 1, 1, 80, 100, true, false, {{0, 290, 0, 290}, {-1}}},
    {600, 600, 1, 1, 16, 0, true, false, {{0, 600, 0, 600}, {-1}}},
    {70, 90, 3, 1, 48, 33, true, false, {{0, 20, 0, 40}, {20, 50, 40, 50}, {-1}}},
    {35, 35, 2, 1, 128, 0, true, true, {{0, 35, 0, 35}, {-1}}},
};

static int32_t segment_count(const attn_shape *s)
{
    int32_t n = 0;
    while (s->segments[n][0] >= 0) {
        n++;
    }
    return n;
}

/* Appends the table or the ends, with a capacity above the count. */
static void add_segments(op_case *c, const attn_shape *s)
{
    const int32_t n = segment_count(s);
    if (!s->by_ends) {
        int32_t table[8][4];
        memset(table, 0x7f, sizeof table); /* rows past n are never read */
        memcpy(table, s->segments, (size_t)n * sizeof table[0]);
        (void)op_add_data(c, CT_DTYPE_I32, false, table, OP_DIMS(8, 4));
    } else {
        for (int side = 0; side < 2; side++) {
            int32_t ends[8];
            for (int32_t i = 0; i < 8; i++) {
                const int32_t *r = s->segments[i < n ? i : n - 1];
                ends[i] = r[2 * side] + r[2 * side + 1];
            }
            (void)op_add_data(c, CT_DTYPE_I32, false, ends, OP_DIMS(8));
        }
    }
    (void)op_add_i32(c, n);
}

static void attention_borders(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * sizeof ATTENTION / sizeof ATTENTION[0]; i++) {
        const attn_shape *s = &ATTENTION[i / 2];
        const ct_dtype f = FLOATS[i % 2];
        const ct_attrs_sdpa attrs = {.scale = 0.3, .causal = s->causal, .window = s->window};
        ct_arena *arena = arena_new();
        op_case fwd = op_case_begin(arena, 200 + i, s->by_ends ? CT_OP_sdpa_tnd : CT_OP_sdpa, f, &attrs);
        (void)op_add_f(&fwd, 1.0, OP_DIMS(s->q, s->heads, s->h));
        (void)op_add_f(&fwd, 1.0, OP_DIMS(s->k, s->kv_heads, s->h));
        (void)op_add_f(&fwd, 1.0, OP_DIMS(s->k, s->kv_heads, s->h));
        add_segments(&fwd, s);
        check(&fwd);
        op_result o;
        op_execute_once(ct_backend_ref(), &fwd, OP_NO_ALIAS, &o);
        op_case bwd = op_case_begin(arena, 300 + i, s->by_ends ? CT_OP_sdpa_tnd_grad : CT_OP_sdpa_grad, f, &attrs);
        (void)op_add_f(&bwd, 1.0, OP_DIMS(s->q, s->heads, s->h));
        for (int t = 0; t < 3; t++) {
            (void)op_add_data(&bwd, f, true, fwd.in[t].data, fwd.in[t].ndim, fwd.in[t].dims);
        }
        (void)op_add_data(&bwd, f, true, o.out[0].data, o.out[0].ndim, o.out[0].dims);
        (void)op_add_data(&bwd, CT_DTYPE_F32, false, o.out[1].data, o.out[1].ndim, o.out[1].dims);
        add_segments(&bwd, s);
        check(&bwd);
        ct_arena_destroy(&arena);
    }
}

/* Scores so large that a rounding of theirs is more than a unit of the exponent: the largest of a row takes all. */
static void attention_of_large_scores(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof FLOATS / sizeof FLOATS[0]; i++) {
        const ct_attrs_sdpa attrs = {.scale = 0.25, .causal = true};
        ct_arena *arena = arena_new();
        op_case c = op_case_begin(arena, 350 + i, CT_OP_sdpa, FLOATS[i], &attrs);
        (void)op_add_f(&c, 1e6, OP_DIMS(20, 2, 16));
        (void)op_add_f(&c, 1e6, OP_DIMS(20, 2, 16));
        (void)op_add_f(&c, 1.0, OP_DIMS(20, 2, 16));
        const int32_t table[1][4] = {{0, 20, 0, 20}};
        (void)op_add_data(&c, CT_DTYPE_I32, false, table, OP_DIMS(1, 4));
        (void)op_add_i32(&c, 1);
        check(&c);
        ct_arena_destroy(&arena);
    }
}

static void loss_chunks(void **state)
{
    (void)state;
    static const int64_t SHAPES[][4] = {{5, 8, 20, 1}, {33, 24, 37, 4}, {7, 300, 65, 7}, {20, 9, 130, 3}, {1, 3, 1, 2}};
    for (size_t i = 0; i < 4 * sizeof SHAPES / sizeof SHAPES[0]; i++) {
        const int64_t *s = SHAPES[i / 4];
        const ct_attrs_loss attrs = {.chunks = s[3]};
        ct_arena *arena = arena_new();
        op_case c = op_case_begin(arena, 400 + i, i & 1 ? CT_OP_linear_cross_entropy_eval : CT_OP_linear_cross_entropy,
                                  FLOATS[(i >> 1) & 1], &attrs);
        (void)op_add_f(&c, 1.0, OP_DIMS(s[0], s[1]));
        (void)op_add_f(&c, 1.0, OP_DIMS(s[2], s[1]));
        ct_tensor *labels = op_add_ids(&c, (uint64_t)s[2], OP_DIMS(s[0]));
        if (s[0] > 2) {
            op_set(labels, 2, -100);
        }
        const float inv = 0.37f;
        (void)op_add_data(&c, CT_DTYPE_F32, false, &inv, OP_DIMS(1));
        check(&c);
        ct_arena_destroy(&arena);
    }
}

static void pointwise_tails(void **state)
{
    (void)state;
    static const int64_t SIZES[] = {0, 1, 15, 1023, 1041, 40000};
    static const struct {
        int32_t op, n_in;
    } OPS[] = {{CT_OP_add, 2}, {CT_OP_mul, 2}, {CT_OP_scale, 1}, {CT_OP_silu_mul, 2}, {CT_OP_silu_mul_grad, 3}, {CT_OP_sumsq, 1}};
    for (size_t o = 0; o < sizeof OPS / sizeof OPS[0]; o++) {
        for (size_t i = 0; i < 2 * sizeof SIZES / sizeof SIZES[0]; i++) {
            const ct_attrs_scale attrs = {.alpha = 1.0 / 3.0};
            const ct_attrs_sumsq sum = {1};
            ct_arena *arena = arena_new();
            op_case c = op_case_begin(arena, 500 + i, OPS[o].op, FLOATS[i % 2],
                                      OPS[o].op == CT_OP_scale ? (const void *)&attrs : OPS[o].op == CT_OP_sumsq ? &sum : NULL);
            for (int k = 0; k < OPS[o].n_in; k++) {
                (void)op_add_f(&c, 3.0, OP_DIMS(SIZES[i / 2]));
            }
            check(&c);
            ct_arena_destroy(&arena);
        }
    }
}

static void norm_rows(void **state)
{
    (void)state;
    static const int64_t SHAPES[][2] = {{1, 1}, {3, 17}, {130, 64}, {40, 256}, {2, 2100}};
    for (size_t i = 0; i < 2 * sizeof SHAPES / sizeof SHAPES[0]; i++) {
        const int64_t *s = SHAPES[i / 2];
        const ct_attrs_rmsnorm attrs = {.eps = 1e-5};
        ct_arena *arena = arena_new();
        op_case fwd = op_case_begin(arena, 600 + i, CT_OP_rmsnorm, FLOATS[i % 2], &attrs);
        (void)op_add_f(&fwd, 2.0, OP_DIMS(s[0], s[1]));
        (void)op_add_f(&fwd, 1.0, OP_DIMS(s[1]));
        check(&fwd);
        op_result y;
        op_execute_once(ct_backend_ref(), &fwd, OP_NO_ALIAS, &y);
        op_case bwd = op_case_begin(arena, 700 + i, CT_OP_rmsnorm_grad, FLOATS[i % 2], NULL);
        (void)op_add_f(&bwd, 1.0, OP_DIMS(s[0], s[1]));
        (void)op_add_data(&bwd, fwd.f, true, fwd.in[0].data, OP_DIMS(s[0], s[1]));
        (void)op_add_data(&bwd, fwd.f, true, fwd.in[1].data, OP_DIMS(s[1]));
        (void)op_add_data(&bwd, CT_DTYPE_F32, false, y.out[1].data, OP_DIMS(s[0]));
        check(&bwd);
        (void)op_add_f(&bwd, 1.0, OP_DIMS(s[0], s[1])); /* the addend */
        check(&bwd);
        ct_arena_destroy(&arena);
    }
}

static void split_rows(void **state)
{
    (void)state;
    static const int64_t SHAPES[][4] = {{1, 1, 1, 2}, {70, 3, 1, 16}, {40, 2, 2, 22}, {9, 4, 1, 128}}; /* tokens, heads, kv heads, h */
    for (size_t i = 0; i < 2 * sizeof SHAPES / sizeof SHAPES[0]; i++) {
        const int64_t *s = SHAPES[i / 2], width = (s[1] + 2 * s[2]) * s[3];
        const ct_attrs_qkv_rope attrs = {.heads = s[1], .kv_heads = s[2]};
        ct_arena *arena = arena_new();
        op_case c[4] = {op_case_begin(arena, 900 + i, CT_OP_qkv_rope, FLOATS[i % 2], &attrs),
                        op_case_begin(arena, 920 + i, CT_OP_qkv_rope_grad, FLOATS[i % 2], NULL),
                        op_case_begin(arena, 940 + i, CT_OP_swiglu, FLOATS[i % 2], NULL),
                        op_case_begin(arena, 960 + i, CT_OP_swiglu_grad, FLOATS[i % 2], NULL)};
        (void)op_add_f(&c[0], 1.0, OP_DIMS(1, s[0], width));
        for (int k = 0; k < 3; k++) {
            (void)op_add_f(&c[1], 1.0, OP_DIMS(1, s[0], k == 0 ? s[1] : s[2], s[3]));
        }
        for (int k = 0; k < 2; k++) {
            (void)op_add_ids(&c[k], 50, OP_DIMS(1, s[0]));
            op_add_rope_table(&c[k], 50, s[3] / 2);
        }
        (void)op_add_f(&c[2], 2.0, OP_DIMS(s[0], 2 * width));
        (void)op_add_f(&c[3], 1.0, OP_DIMS(s[0], width));
        (void)op_add_f(&c[3], 2.0, OP_DIMS(s[0], 2 * width));
        for (int k = 0; k < 4; k++) {
            check(&c[k]);
        }
        ct_arena_destroy(&arena);
    }
}

static void embedding_rows(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        const ct_attrs_embedding_grad attrs = {.vocab = 37};
        ct_arena *arena = arena_new();
        op_case c = op_case_begin(arena, 800 + (uint64_t)i, CT_OP_embedding_grad, FLOATS[i % 2], &attrs);
        (void)op_add_f(&c, 1.0, OP_DIMS(200, i < 2 ? 9 : 1100));
        (void)op_add_ids(&c, 30, OP_DIMS(200));
        check(&c);
        ct_arena_destroy(&arena);
    }
}

/* The same kernels where they write past the caches, as they do with results of many MiB. */
/* Small inputs, whose mean square is of the order of eps, in both floats; and weights of 0 and next to 0 with a row of zeros, backwards. */
static void small_norms(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++) {
        for (int64_t d = 4; d <= 32; d += 28) {
            ct_arena *arena = arena_new();
            const ct_attrs_rmsnorm attrs = {.eps = 1e-5};
            op_case c = op_case_begin(arena, 900, CT_OP_rmsnorm, FLOATS[f], &attrs);
            const ct_tensor *x = op_add_f(&c, d == 4 ? 1.0 : 0.058, OP_DIMS(9, d)), *w = op_add_f(&c, 1.0, OP_DIMS(d));
            op_set(w, 0, 0.0);
            op_set(w, 1, 1e-30);
            for (int64_t i = 0; i < d; i++) {
                op_set(x, d + i, 0.0);
            }
            check(&c);
            op_result y, grads;
            op_execute_once(ct_backend_ref(), &c, OP_NO_ALIAS, &y);
            /* y is rounded once; models that round before the weight too are at most two roundings further off */
            const double u = ct_dtype_unit_roundoff(FLOATS[f]);
            for (int64_t i = 0; i < 9 * d; i++) {
                const double normed = op_get(x, i) * op_get(&y.out[1], i / d);
                const double twice = f == 0 ? (double)((float)normed * (float)op_get(w, i % d))
                                            : (double)cti_bf16_to_f32(cti_f32_to_bf16(cti_bf16_to_f32(cti_f32_to_bf16((float)normed)) * (float)op_get(w, i % d)));
                assert_true(fabs(op_get(&y.out[0], i) - twice) <= 3.2 * u * fabs(twice) + 1e-38);
            }
            op_case back = op_case_begin(arena, 901, CT_OP_rmsnorm_grad, FLOATS[f], NULL);
            (void)op_add_f(&back, 1.0, OP_DIMS(9, d));
            (void)op_add_data(&back, FLOATS[f], true, x->data, OP_DIMS(9, d));
            (void)op_add_data(&back, FLOATS[f], true, w->data, OP_DIMS(d));
            (void)op_add_data(&back, CT_DTYPE_F32, false, y.out[1].data, OP_DIMS(9));
            check(&back);
            op_execute_once(ct_backend_ref(), &back, OP_NO_ALIAS, &grads);
            for (int64_t i = 0; i < 9 * d; i++) {
                assert_true(isfinite(op_get(&grads.out[0], i)));
            }
            ct_arena_destroy(&arena);
        }
    }
}

static void past_the_caches(void **state)
{
    static const int32_t OPS[] = {CT_OP_rope, CT_OP_rotary_mul, CT_OP_cast, CT_OP_embedding, CT_OP_qkv_rope, CT_OP_swiglu, CT_OP_rmsnorm};
    const int64_t was = cti_cpu_past_bytes;
    cti_cpu_past_bytes = 0;
    pointwise_tails(state);
    norm_rows(state);
    split_rows(state);
    embedding_rows(state);
    for (int level = 0; level < level_count(); level++) {
        for (size_t i = 0; i < sizeof OPS / sizeof OPS[0] && level_at(level) != NULL; i++) {
            assert_true(op_check_op(level_at(level), ct_backend_ref(), OPS[i], 31) > 0);
        }
    }
    cti_cpu_past_bytes = was;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matmul_tiles), cmocka_unit_test(attention_borders),
        cmocka_unit_test(attention_of_large_scores), cmocka_unit_test(loss_chunks),
        cmocka_unit_test(pointwise_tails), cmocka_unit_test(norm_rows), cmocka_unit_test(small_norms), cmocka_unit_test(split_rows), cmocka_unit_test(past_the_caches), cmocka_unit_test(embedding_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
