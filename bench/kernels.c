/* SPDX-License-Identifier: Apache-2.0 */
/* Times the CPU backend's kernels beside what limits them, which the same run measures:
 *
 *     bench_kernels [f32|bf16] [--quick] [--tsv] [part of a name]
 *
 * One row a kernel. Products: the FMA peak (bf16: the dot product's, where the level has one); what is fused to them is not counted.
 * Attention and cross-entropy: the time of their multiply-adds and that of their exponentials added, since both need the same units;
 * a pair of query and key that the mask hides counts for neither. All else: each operand once at the rate of a copy (at that of
 * reading where next to nothing is written, at that of rows in random order where rows are looked up), with operands of 128 MiB and
 * more together, which most caches do not hold.
 * Threads: OMP_NUM_THREADS; level: CTITAN_CPU_ISA. */
#include <stdio.h>
#include <string.h>

#include "bench.h"

static void products(bench *b, int64_t m)
{
    static const int64_t SHAPES[][2] = {{768, 256}, {256, 256}, {256, 768}}; /* n, k of y = x w^T */
    static const char *const WAYS[] = {"fwd", "dgrad", "wgrad"};
    for (int s = 0; s < 3; s++) {
        const int64_t n = SHAPES[s][0], k = SHAPES[s][1];
        for (int way = 0; way < 3; way++) {
            const ct_attrs_matmul attrs = {.ta = way == 2, .tb = way == 0};
            char name[64];
            (void)snprintf(name, sizeof name, "matmul %s %lldx%lldx%lld", WAYS[way], (long long)m, (long long)n, (long long)k);
            job j = {.name = name, .op = CT_OP_matmul, .attrs = &attrs, .flops = 2.0 * (double)(m * n * k)};
            (void)job_add(&j, false, b->f, m, way == 0 ? k : n, 0, 0);
            (void)job_add(&j, false, b->f, way == 2 ? m : n, k, 0, 0);
            (void)job_add(&j, true, b->f, way == 2 ? n : m, way == 0 ? n : k, 0, 0);
            bench_run(b, &j);
        }
    }
}

/* y = swiglu(x w^T), w the gate's and the other half's f rows each. */
static void swiglu_product(const bench *b, int64_t m, int64_t f, int64_t k)
{
    const ct_attrs_matmul attrs = {.tb = true};
    char name[64];
    (void)snprintf(name, sizeof name, "matmul_swiglu %lldx%lldx%lld", (long long)m, (long long)(2 * f), (long long)k);
    job j = {.name = name, .op = CT_OP_matmul_swiglu, .attrs = &attrs, .flops = 2.0 * (double)(m * 2 * f * k)};
    (void)job_add(&j, false, b->f, m, k, 0, 0);
    (void)job_add(&j, false, b->f, 2 * f, k, 0, 0);
    (void)job_add(&j, true, b->f, m, 2 * f, 0, 0);
    (void)job_add(&j, true, b->f, m, f, 0, 0);
    bench_run(b, &j);
}

/* `batch` segments of `len` tokens, causal: two products forward, five backward (the scores are made again), one exponential a
 * pair each way. */
static void attention(bench *b, int64_t batch, int64_t len, int64_t heads, int64_t kv_heads, int64_t h)
{
    enum { MAX_BATCH = 8 };
    int32_t segments[4 * MAX_BATCH];
    for (int64_t i = 0; i < batch; i++) {
        const int32_t row[4] = {(int32_t)(i * len), (int32_t)len, (int32_t)(i * len), (int32_t)len};
        memcpy(segments + 4 * i, row, sizeof row);
    }
    const ct_attrs_sdpa attrs = {.scale = 0.25, .causal = true};
    const int64_t t = batch * len;
    const double pairs = (double)(batch * heads) * (double)(len * (len + 1) / 2);
    for (int grad = 0; grad < 2; grad++) {
        char name[64];
        (void)snprintf(name, sizeof name, "sdpa%s %lldx%lld %lld/%lldx%lld", grad ? "_grad" : "", (long long)batch, (long long)len,
                       (long long)heads, (long long)kv_heads, (long long)h);
        job j = {.name = name, .op = grad ? CT_OP_sdpa_grad : CT_OP_sdpa, .attrs = &attrs, .segments = segments};
        j.n_segments = (int32_t)batch;
        j.flops = pairs * (double)h * 2 * (grad ? 5 : 2);
        j.exps = pairs;
        if (grad) {
            (void)job_add(&j, false, b->f, t, heads, h, 0);
        }
        (void)job_add(&j, false, b->f, t, heads, h, 0);
        (void)job_add(&j, false, b->f, t, kv_heads, h, 0);
        (void)job_add(&j, false, b->f, t, kv_heads, h, 0);
        if (grad) {
            (void)job_add(&j, false, b->f, t, heads, h, 0);
            (void)job_add(&j, false, CT_DTYPE_F32, t, heads, 0, 0);
        }
        (void)job_add(&j, false, CT_DTYPE_I32, batch, 4, 0, 0);
        (void)job_add(&j, false, CT_DTYPE_I32, 1, 0, 0, 0);
        (void)job_add(&j, true, b->f, t, heads, h, 0);
        if (grad) {
            (void)job_add(&j, true, b->f, t, kv_heads, h, 0);
            (void)job_add(&j, true, b->f, t, kv_heads, h, 0);
        } else {
            (void)job_add(&j, true, CT_DTYPE_F32, t, heads, 0, 0);
        }
        bench_run(b, &j);
    }
}

/* Three products and one exponential a logit. */
static void loss(bench *b, int64_t t, int64_t d, int64_t vocab, int64_t chunks)
{
    const ct_attrs_loss attrs = {.chunks = chunks};
    char name[64];
    (void)snprintf(name, sizeof name, "linear_cross_entropy %lldx%lldx%lld", (long long)t, (long long)vocab, (long long)d);
    job j = {.name = name, .op = CT_OP_linear_cross_entropy, .attrs = &attrs};
    j.flops = 6.0 * (double)(t * d * vocab);
    j.exps = (double)(t * vocab);
    (void)job_add(&j, false, b->f, t, d, 0, 0);
    (void)job_add(&j, false, b->f, vocab, d, 0, 0);
    (void)job_add(&j, false, CT_DTYPE_I32, t, 0, 0, 0);
    (void)job_add(&j, false, CT_DTYPE_F32, 1, 0, 0, 0);
    (void)job_add(&j, true, CT_DTYPE_F64, 1, 0, 0, 0);
    (void)job_add(&j, true, b->f, t, d, 0, 0);
    (void)job_add(&j, true, b->f, vocab, d, 0, 0);
    bench_run(b, &j);
}

/* Kernels of n_in operands and n_out results of one shape, [t, width]. */
static void elementwise(bench *b, int64_t t, int64_t width)
{
    static const struct {
        const char *name;
        int32_t op;
        int n_in, n_out;
    } ROWS[] = {{"add", CT_OP_add, 2, 1},
                {"silu_mul", CT_OP_silu_mul, 2, 1},
                {"silu_mul_grad", CT_OP_silu_mul_grad, 3, 2}};
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        job j = {.name = ROWS[i].name, .op = ROWS[i].op};
        for (int k = 0; k < ROWS[i].n_in + ROWS[i].n_out; k++) {
            (void)job_add(&j, k >= ROWS[i].n_in, b->f, t, width, 0, 0);
        }
        bench_run(b, &j);
    }
    for (int grad = 0; grad < 2; grad++) { /* the two halves of a row, one operand */
        job j = {.name = grad ? "swiglu_grad" : "swiglu", .op = grad ? CT_OP_swiglu_grad : CT_OP_swiglu};
        if (grad) {
            (void)job_add(&j, false, b->f, t, width, 0, 0);
        }
        (void)job_add(&j, false, b->f, t, 2 * width, 0, 0);
        (void)job_add(&j, true, b->f, t, grad ? 2 * width : width, 0, 0);
        bench_run(b, &j);
    }
    const ct_dtype other = b->f == CT_DTYPE_F32 ? CT_DTYPE_BF16 : CT_DTYPE_F32;
    const ct_attrs_cast attrs = {.dtype = (int64_t)other};
    job c = {.name = other == CT_DTYPE_BF16 ? "cast to bf16" : "cast to f32", .op = CT_OP_cast, .attrs = &attrs};
    (void)job_add(&c, false, b->f, 2 * t, width, 0, 0);
    (void)job_add(&c, true, other, 2 * t, width, 0, 0);
    bench_run(b, &c);
}

static void norms(bench *b, int64_t t, int64_t d)
{
    const ct_attrs_rmsnorm attrs = {.eps = 1e-5};
    job n = {.name = "rmsnorm", .op = CT_OP_rmsnorm, .attrs = &attrs};
    (void)job_add(&n, false, b->f, t, d, 0, 0);
    (void)job_add(&n, false, b->f, d, 0, 0, 0);
    (void)job_add(&n, true, b->f, t, d, 0, 0);
    (void)job_add(&n, true, CT_DTYPE_F32, t, 0, 0, 0);
    bench_run(b, &n);
    for (int addend = 0; addend < 2; addend++) {
        job g = {.name = addend ? "rmsnorm_grad + residual" : "rmsnorm_grad", .op = CT_OP_rmsnorm_grad};
        (void)job_add(&g, false, b->f, t, d, 0, 0);
        (void)job_add(&g, false, b->f, t, d, 0, 0);
        (void)job_add(&g, false, b->f, d, 0, 0, 0);
        (void)job_add(&g, false, CT_DTYPE_F32, t, 0, 0, 0);
        if (addend) {
            (void)job_add(&g, false, b->f, t, d, 0, 0);
        }
        (void)job_add(&g, true, b->f, t, d, 0, 0);
        (void)job_add(&g, true, b->f, d, 0, 0, 0);
        bench_run(b, &g);
    }
}

static void rotations(bench *b, int64_t t, int64_t heads, int64_t h)
{
    const ct_attrs_rope attrs = {.inverse = false};
    job r = {.name = "rope", .op = CT_OP_rope, .attrs = &attrs};
    (void)job_add(&r, false, b->f, 1, t, heads, h);
    (void)job_add(&r, false, CT_DTYPE_I32, 1, t, 0, 0);
    (void)job_add(&r, false, CT_DTYPE_F32, 256, h / 2, 2, 0);
    (void)job_add(&r, true, b->f, 1, t, heads, h);
    bench_run(b, &r);
}

/* q, k and v of one row side by side, split and turned; and back. */
static void fused_rotations(bench *b, int64_t t, int64_t heads, int64_t h)
{
    const ct_attrs_qkv_rope attrs = {.heads = heads, .kv_heads = heads};
    for (int grad = 0; grad < 2; grad++) {
        job j = {.name = grad ? "qkv_rope_grad" : "qkv_rope", .op = grad ? CT_OP_qkv_rope_grad : CT_OP_qkv_rope, .attrs = &attrs};
        for (int i = 0; i < (grad ? 3 : 0); i++) {
            (void)job_add(&j, false, b->f, 1, t, heads, h);
        }
        if (!grad) {
            (void)job_add(&j, false, b->f, 1, t, 3 * heads * h, 0);
        }
        (void)job_add(&j, false, CT_DTYPE_I32, 1, t, 0, 0);
        (void)job_add(&j, false, CT_DTYPE_F32, 256, h / 2, 2, 0);
        for (int i = 0; i < (grad ? 0 : 3); i++) {
            (void)job_add(&j, true, b->f, 1, t, heads, h);
        }
        if (grad) {
            (void)job_add(&j, true, b->f, 1, t, 3 * heads * h, 0);
        }
        bench_run(b, &j);
    }
}

/* As many tokens as the table has rows, in random order, so that rows, of a KiB, come from memory. */
static void embeddings(bench *b, int64_t t, int64_t d)
{
    job e = {.name = "embedding", .op = CT_OP_embedding, .n_ids = t, .is_gather = true};
    (void)job_add(&e, false, b->f, t, d, 0, 0);
    (void)job_add(&e, false, CT_DTYPE_I32, t, 0, 0, 0);
    (void)job_add(&e, true, b->f, t, d, 0, 0);
    bench_run(b, &e);
    const ct_attrs_embedding_grad attrs = {.vocab = t};
    job g = {.name = "embedding_grad", .op = CT_OP_embedding_grad, .attrs = &attrs, .n_ids = t, .is_gather = true};
    (void)job_add(&g, false, b->f, t, d, 0, 0);
    (void)job_add(&g, false, CT_DTYPE_I32, t, 0, 0, 0);
    (void)job_add(&g, true, b->f, t, d, 0, 0);
    bench_run(b, &g);
}

/* p, m and v are read and written, g is read: seven times n. */
static void optimizer(bench *b, int64_t n)
{
    const ct_attrs_sumsq sum = {64};
    job s = {.name = "sumsq", .op = CT_OP_sumsq, .attrs = &sum, .is_reader = true};
    (void)job_add(&s, false, b->f, 4 * n, 0, 0, 0);
    (void)job_add(&s, true, CT_DTYPE_F64, 1, 0, 0, 0);
    bench_run(b, &s);
    if (b->f != CT_DTYPE_F32) {
        return; /* masters are f32 */
    }
    static int32_t first = 0, go = 1;
    static int64_t step = 1;
    static double lr = 1e-3;
    static float coef = 1.0F;
    ct_err err = {0};
    ct_tensor held[4] = {{.ndim = 0}}; /* p, g, m, v: updated in place, so inputs and outputs are the same memory */
    if (!bench_wants(b, "adamw") && !bench_wants(b, "accumulate")) {
        return;
    }
    for (int i = 0; i < 4; i++) {
        held[i] = (ct_tensor){.dtype = CT_DTYPE_F32, .ndim = 1, .dims = {n}};
        bench_must(b->backend->memory_alloc(b->device, tensor_bytes(&held[i]), &held[i].data, &err), &err);
    }
    const ct_tensor scalars[] = {{.data = &lr, .dtype = CT_DTYPE_F64, .ndim = 1, .dims = {1}},
                                 {.data = &step, .dtype = CT_DTYPE_I64, .ndim = 1, .dims = {1}},
                                 {.data = &coef, .dtype = CT_DTYPE_F32, .ndim = 1, .dims = {1}},
                                 {.data = &go, .dtype = CT_DTYPE_I32, .ndim = 1, .dims = {1}},
                                 {.data = &first, .dtype = CT_DTYPE_I32, .ndim = 1, .dims = {1}}};
    int64_t segments[] = {0, n, 0};
    double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, decay = 0.1;
    const ct_attrs_adamw attrs = {.segments = {3, segments}, .beta1 = {1, &beta1}, .beta2 = {1, &beta2}, .eps = {1, &eps},
                                  .weight_decay = {1, &decay}};
    const double each = (double)tensor_bytes(&held[0]);
    job a = {.name = "adamw", .op = CT_OP_adamw, .attrs = &attrs, .n_in = 8, .n_out = 3, .bytes = 7 * each, .is_borrowed = true};
    memcpy(a.t, held, sizeof held);
    memcpy(a.t + 4, scalars, 4 * sizeof scalars[0]);
    a.t[8] = held[0];
    a.t[9] = held[2];
    a.t[10] = held[3];
    bench_run(b, &a);
    job c = {.name = "accumulate", .op = CT_OP_accumulate, .n_in = 3, .n_out = 1, .bytes = 3 * each, .is_borrowed = true};
    c.t[0] = c.t[3] = held[0];
    c.t[1] = held[1];
    c.t[2] = scalars[4];
    bench_run(b, &c);
    for (int i = 0; i < 4; i++) {
        b->backend->memory_free(b->device, held[i].data, tensor_bytes(&held[i]));
    }
}

int main(int argc, char **argv)
{
    bench b;
    bench_open(&b, argc, argv);
    for (int64_t m = 256; m <= 2048; m *= 8) {
        products(&b, m);
        swiglu_product(&b, m, 768, 256);
    }
    attention(&b, 1, 256, 16, 16, 16);
    attention(&b, 8, 256, 16, 16, 16);
    attention(&b, 1, 2048, 16, 16, 16);
    attention(&b, 1, 1024, 32, 8, 64);
    loss(&b, 256, 256, 2048, 1);
    loss(&b, 2048, 256, 2048, 8);
    const int64_t wide = b.f == CT_DTYPE_BF16 ? 2 : 1; /* as many bytes as f32 */
    elementwise(&b, 16384 * wide, 768);
    norms(&b, 65536 * wide, 256);
    rotations(&b, 65536 * wide, 16, 16);
    fused_rotations(&b, 32768 * wide, 16, 16);
    embeddings(&b, 131072, 256 * wide);
    optimizer(&b, 8 << 20);
    bench_close(&b);
    return 0;
}
