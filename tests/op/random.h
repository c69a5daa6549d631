/* SPDX-License-Identifier: Apache-2.0 */
/* Cases at sizes that nobody chose: products and sums of 1 and of primes, past every block, from a printed seed (CT_SEED repeats one). */
#ifndef CT_TESTS_OP_RANDOM_H
#define CT_TESTS_OP_RANDOM_H

#include <time.h>

#include "backend/ref/ref.h"
#include "op/harness.h"

static uint64_t seed, draws;

static int64_t below(int64_t n)
{
    return (int64_t)cti_rng_below(cti_rng_key_make(seed, "sizes"), draws++, (uint64_t)n);
}

/* 1 or a prime, below `end`. */
static int64_t size_below(int64_t end)
{
    static const int64_t sizes[] = {1, 2, 3, 5, 7, 11, 13, 17, 31, 37, 61, 67, 127, 131, 257, 521, 1031, 4099, 16411};
    int n = 0;
    while (n < OP_COUNT_OF(sizes) && sizes[n] < end) {
        n++;
    }
    return sizes[below(n)];
}

/* In f32 and bf16; the case is built anew for each dtype with the same sizes. */
static void random_both(void (*build)(op_case *c), int32_t op, void (*check)(const op_case *c))
{
    const uint64_t at = draws;
    for (int f = 0; f < 2; f++) {
        ct_arena *arena = NULL;
        assert_int_equal(ct_arena_create(ct_alloc_system(), 1 << 20, &arena, NULL), CT_OK);
        op_case c = op_case_begin(arena, seed + at, op, f == 0 ? CT_DTYPE_F32 : CT_DTYPE_BF16, NULL);
        draws = at;
        build(&c);
        check(&c);
        ct_arena_destroy(&arena);
    }
}

static void build_elements(op_case *c)
{
    const int64_t n = size_below(20000) + below(3) * size_below(300);
    if (c->op == CT_OP_scale) {
        c->attrs = OP_ATTRS(c->arena, ct_attrs_scale, 1.0 / 3.0);
    } else if (c->op == CT_OP_cast) {
        c->attrs = OP_ATTRS(c->arena, ct_attrs_cast, below(2) == 0 ? CT_DTYPE_F32 : CT_DTYPE_BF16);
    }
    const int64_t leaves = c->op == CT_OP_sumsq ? 1 + below(64) : 1;
    if (c->op == CT_OP_sumsq) {
        c->attrs = OP_ATTRS(c->arena, ct_attrs_sumsq, leaves);
    }
    for (int32_t k = 0; k < ct_op_row(c->op)->n_in_min; k++) {
        (void)op_add_f(c, 2.0, OP_DIMS((n + leaves - 1) / leaves * leaves));
    }
}

static void build_swiglu(op_case *c)
{
    const int64_t rows = size_below(200), width = size_below(600);
    if (c->op == CT_OP_swiglu_grad) {
        (void)op_add_f(c, 2.0, OP_DIMS(rows, width));
    }
    (void)op_add_f(c, 2.0, OP_DIMS(rows, 2 * width));
}

static void build_matmul(op_case *c)
{
    const bool is_swiglu = c->op == CT_OP_matmul_swiglu;
    const int64_t m = size_below(300), n = size_below(300) * (is_swiglu ? 2 : 1), k = size_below(600) + below(2) * size_below(20);
    const bool ta = below(2) != 0, tb = below(2) != 0;
    c->attrs = OP_ATTRS(c->arena, ct_attrs_matmul, ta, tb);
    (void)op_add_f(c, 1.0, OP_DIMS(ta ? k : m, ta ? m : k));
    (void)op_add_f(c, 1.0, OP_DIMS(tb ? n : k, tb ? k : n));
    if (!is_swiglu && below(2) != 0) {
        (void)op_add_f(c, 1.0, OP_DIMS(m, n));
    }
}

static void build_rmsnorm(op_case *c)
{
    const int64_t rows = size_below(300), d = size_below(1200);
    c->attrs = OP_ATTRS(c->arena, ct_attrs_rmsnorm, 1e-5);
    (void)op_add_f(c, 1.5, OP_DIMS(rows, d));
    (void)op_add_f(c, 1.0, OP_DIMS(d));
}

static void build_rmsnorm_grad(op_case *c)
{
    const int64_t rows = size_below(300), d = size_below(1200);
    (void)op_add_f(c, 1.0, OP_DIMS(rows, d));
    const ct_tensor *x = op_add_f(c, 1.5, OP_DIMS(rows, d));
    (void)op_add_f(c, 1.0, OP_DIMS(d));
    const ct_tensor *rstd = op_add(c, CT_DTYPE_F32, false, OP_DIMS(rows));
    for (int64_t t = 0; t < rows; t++) {
        double sum = 0.0;
        for (int64_t j = 0; j < d; j++) {
            sum += op_get(x, t * d + j) * op_get(x, t * d + j);
        }
        op_set(rstd, t, 1.0 / sqrt(sum / (double)d + 1e-5));
    }
    if (below(2) != 0) {
        (void)op_add_f(c, 1.0, OP_DIMS(rows, d));
    }
}

static void build_qkv(op_case *c)
{
    const int64_t batch = size_below(4), len = size_below(70), kv_heads = size_below(4), heads = kv_heads * size_below(4),
                  h = 2 * size_below(40), length = len + below(5);
    if (c->op == CT_OP_qkv_rope) {
        c->attrs = OP_ATTRS(c->arena, ct_attrs_qkv_rope, heads, kv_heads);
        (void)op_add_f(c, 1.0, OP_DIMS(batch, len, (heads + 2 * kv_heads) * h));
    } else {
        for (int k = 0; k < 3; k++) {
            (void)op_add_f(c, 1.0, OP_DIMS(batch, len, k == 0 ? heads : kv_heads, h));
        }
    }
    (void)op_add_ids(c, (uint64_t)length, OP_DIMS(batch, len));
    op_add_rope_table(c, length, h / 2);
}

static void build_embedding(op_case *c)
{
    const int64_t vocab = size_below(300), d = size_below(600), tokens = size_below(600);
    if (c->op == CT_OP_embedding) {
        (void)op_add_f(c, 1.0, OP_DIMS(vocab, d));
    } else {
        c->attrs = OP_ATTRS(c->arena, ct_attrs_embedding_grad, vocab);
        (void)op_add_f(c, 1.0, OP_DIMS(tokens, d));
    }
    (void)op_add_ids(c, (uint64_t)vocab, OP_DIMS(tokens));
}

static void build_transpose(op_case *c)
{
    static const int64_t perms[][3] = {{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    c->attrs = OP_ATTRS(c->arena, ct_attrs_transpose, {3, op_keep(c->arena, perms[below(5)], sizeof perms[0])});
    (void)op_add_f(c, 1.0, OP_DIMS(size_below(70), size_below(70), size_below(140)));
}

static void build_loss(op_case *c)
{
    const int64_t tokens = size_below(140), d = size_below(140), vocab = size_below(600);
    c->attrs = OP_ATTRS(c->arena, ct_attrs_loss, 1 + below(5));
    (void)op_add_f(c, 0.5, OP_DIMS(tokens, d));
    (void)op_add_f(c, 1.0, OP_DIMS(vocab, d));
    const ct_tensor *labels = op_add_ids(c, (uint64_t)vocab, OP_DIMS(tokens));
    op_set(labels, below(tokens), -100.0);
    const float inv = (float)(1.0 / (double)tokens);
    (void)op_add_data(c, CT_DTYPE_F32, false, &inv, OP_DIMS(1));
}

static void build_adamw(op_case *c)
{
    const int64_t n = size_below(20000) + below(100), cut = below(n + 1), step = 1 + below(1000);
    const float coef = 0.5F;
    c->attrs = OP_ATTRS(c->arena, ct_attrs_adamw, OP_LIST(c->arena, 6, 0, cut, 0, cut, n, 1),
                        {2, op_keep(c->arena, (const double[]){0.9, 0.8}, 16)},
                        {2, op_keep(c->arena, (const double[]){0.95, 0.999}, 16)},
                        {2, op_keep(c->arena, (const double[]){1e-8, 1e-6}, 16)},
                        {2, op_keep(c->arena, (const double[]){0.1, 0.0}, 16)}, {0, NULL});
    (void)op_add_f(c, 1.0, OP_DIMS(n));
    (void)op_add_f(c, 0.1, OP_DIMS(n));
    (void)op_add_f(c, 0.1, OP_DIMS(n));
    const ct_tensor *v = op_add_f(c, 0.1, OP_DIMS(n));
    for (int64_t i = 0; i < n; i++) {
        op_set(v, i, fabs(op_get(v, i)));
    }
    (void)op_add_data(c, CT_DTYPE_F64, false, (const double[]){8e-4, 1e-2}, OP_DIMS(2));
    (void)op_add_data(c, CT_DTYPE_I64, false, &step, OP_DIMS(1));
    (void)op_add_data(c, CT_DTYPE_F32, false, &coef, OP_DIMS(1));
    (void)op_add_i32(c, 1);
}

/* Documents of random lengths end to end; the last tokens may be in none. */
static void add_documents(op_case *c, int64_t tokens)
{
    enum { CAP = 8 };
    int32_t table[CAP][4], n = 0;
    memset(table, 0x7f, sizeof table);
    for (int64_t at = 0; at < tokens && n < CAP;) {
        const int64_t len = cti_min_i64(size_below(tokens + 1), tokens - at);
        const int32_t row[4] = {(int32_t)at, (int32_t)len, (int32_t)at, (int32_t)len};
        memcpy(table[n++], row, sizeof row);
        at += len;
    }
    (void)op_add_data(c, CT_DTYPE_I32, false, table, OP_DIMS(CAP, 4));
    (void)op_add_i32(c, n);
}

static void build_attention(op_case *c)
{
    const int64_t tokens = size_below(300), kv_heads = size_below(4), heads = kv_heads * size_below(4), h = size_below(70);
    const bool causal = below(3) > 0;
    const int64_t window = below(3) == 0 ? size_below(60) : 0;
    c->attrs = OP_ATTRS(c->arena, ct_attrs_sdpa, 1.0 / sqrt((double)h), causal, window);
    for (int k = 0; k < 3; k++) {
        (void)op_add_f(c, 1.0, OP_DIMS(tokens, k == 0 ? heads : kv_heads, h));
    }
    add_documents(c, tokens);
}

static void build_attention_grad(op_case *c)
{
    op_case forward = op_case_begin(c->arena, c->seed, CT_OP_sdpa, c->f, NULL);
    op_result o;
    build_attention(&forward);
    op_execute_once(ct_backend_ref(), &forward, OP_NO_ALIAS, &o);
    assert_int_equal(o.status, CT_OK);
    c->attrs = forward.attrs;
    (void)op_add_f(c, 1.0, forward.in[0].ndim, forward.in[0].dims);
    for (int k = 0; k < 3; k++) {
        (void)op_add_data(c, c->f, true, forward.in[k].data, forward.in[k].ndim, forward.in[k].dims);
    }
    (void)op_add_data(c, c->f, true, o.out[0].data, o.out[0].ndim, o.out[0].dims);
    (void)op_add_data(c, CT_DTYPE_F32, false, o.out[1].data, o.out[1].ndim, o.out[1].dims);
    for (int k = 3; k < 5; k++) {
        (void)op_add_data(c, CT_DTYPE_I32, false, forward.in[k].data, forward.in[k].ndim, forward.in[k].dims);
    }
}

/* n_each cases of each op and dtype. */
static void random_run(int n_each, void (*check)(const op_case *c))
{
    static const struct {
        int32_t op;
        void (*build)(op_case *c);
    } rows[] = {{CT_OP_add, build_elements},
                {CT_OP_mul, build_elements},
                {CT_OP_scale, build_elements},
                {CT_OP_silu_mul, build_elements},
                {CT_OP_silu_mul_grad, build_elements},
                {CT_OP_cast, build_elements},
                {CT_OP_sumsq, build_elements},
                {CT_OP_swiglu, build_swiglu},
                {CT_OP_swiglu_grad, build_swiglu},
                {CT_OP_matmul, build_matmul},
                {CT_OP_matmul_swiglu, build_matmul},
                {CT_OP_rmsnorm, build_rmsnorm},
                {CT_OP_rmsnorm_grad, build_rmsnorm_grad},
                {CT_OP_qkv_rope, build_qkv},
                {CT_OP_qkv_rope_grad, build_qkv},
                {CT_OP_embedding, build_embedding},
                {CT_OP_embedding_grad, build_embedding},
                {CT_OP_transpose, build_transpose},
                {CT_OP_linear_cross_entropy, build_loss},
                {CT_OP_linear_cross_entropy_eval, build_loss},
                {CT_OP_adamw, build_adamw},
                {CT_OP_sdpa, build_attention},
                {CT_OP_sdpa_grad, build_attention_grad}};
    const char *given = getenv("CT_SEED");
    seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    print_message("CT_SEED=%llu\n", (unsigned long long)seed);
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        for (int i = 0; i < n_each; i++) {
            random_both(rows[r].build, rows[r].op, check);
        }
    }
}

#endif
