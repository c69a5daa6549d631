/* SPDX-License-Identifier: Apache-2.0 */
/* Times the CPU backend's kernels at the shapes of the debug model, beside the machine's limits measured in the same run:
 *
 *     bench_kernels [name part] [f32|bf16]
 *
 * One line a kernel: the median of samples of at least 4 ms, their spread (quartiles), and the share of the limit that binds it:
 * fused multiply-adds for products and attention, copying for the rest. Threads: OMP_NUM_THREADS; level: CTITAN_CPU_ISA. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "base/clock.h"
#include "base/num.h"
#include "base/pool.h"
#include "base/rng.h"
#include "base/sys.h"

enum { MAX_SAMPLES = 60, MAX_TENSORS = 12 };

typedef struct limits {
    double flops, bytes; /* per second */
} limits;

typedef struct bench {
    const ct_backend *backend;
    void *device;
    limits limit;
    ct_dtype f;
    const char *filter;
} bench;

/* One kernel's operands; a dims list ends at 0. */
typedef struct job {
    const char *name;
    int32_t op;
    const void *attrs;
    int n_in, n_out;
    ct_tensor t[MAX_TENSORS]; /* inputs, then outputs */
    double flops, bytes;      /* of one call; flops 0: bound by memory */
} job;

static void must(ct_status st, const ct_err *err)
{
    if (st != CT_OK) {
        (void)fprintf(stderr, "bench_kernels: %s\n", err->message);
        exit(1);
    }
}

static size_t tensor_bytes(const ct_tensor *t)
{
    size_t n = ct_dtype_size_bytes(t->dtype);
    for (int i = 0; i < t->ndim; i++) {
        n *= (size_t)t->dims[i];
    }
    return n;
}

static ct_tensor *add(job *j, bool is_out, ct_dtype dtype, int64_t d0, int64_t d1, int64_t d2, int64_t d3)
{
    ct_tensor *t = &j->t[j->n_in + j->n_out];
    const int64_t dims[4] = {d0, d1, d2, d3};
    *t = (ct_tensor){.dtype = dtype};
    for (int i = 0; i < 4 && dims[i] > 0; i++) {
        t->dims[t->ndim++] = dims[i];
    }
    if (is_out) {
        j->n_out++;
    } else {
        j->n_in++;
    }
    j->bytes += (double)tensor_bytes(t);
    return t;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds of one call: samples of at least 4 ms, sorted. */
static int sample(const ct_kernel *kernel, const ct_launch *launch, double *out)
{
    ct_err err = {0};
    int n = 0, calls = 1;
    must(kernel->run(launch, &err), &err);
    for (double total = 0; n < MAX_SAMPLES && (total < 0.3 || n < 7);) {
        const int64_t start = cti_now_ns();
        for (int i = 0; i < calls; i++) {
            must(kernel->run(launch, &err), &err);
        }
        const double s = cti_seconds_since(start);
        total += s;
        if (s < 0.004) {
            calls *= 2;
        } else {
            out[n++] = s / calls;
        }
    }
    qsort(out, (size_t)n, sizeof *out, by_value);
    return n;
}

static void fill(const bench *b, ct_tensor *t, int index)
{
    const cti_rng_key key = cti_rng_key_make((uint64_t)index, "bench");
    const int64_t n = (int64_t)(tensor_bytes(t) / ct_dtype_size_bytes(t->dtype));
    ct_err err = {0};
    must(b->backend->memory_alloc(b->device, tensor_bytes(t), &t->data, &err), &err);
    for (int64_t i = 0; i < n; i++) {
        const float x = (float)cti_rng_uniform(key, (uint64_t)i) - 0.5f;
        if (t->dtype == CT_DTYPE_F32) {
            ((float *)t->data)[i] = x;
        } else if (t->dtype == CT_DTYPE_BF16) {
            ((uint16_t *)t->data)[i] = cti_f32_to_bf16(x);
        } else if (t->dtype == CT_DTYPE_I32) {
            ((int32_t *)t->data)[i] = (int32_t)(i % 100);
        }
    }
}

static void run_job(const bench *b, job *j, const int32_t *segments)
{
    if (b->filter && !strstr(j->name, b->filter)) {
        return;
    }
    double s[MAX_SAMPLES];
    ct_err err = {0};
    const ct_kernel *kernel = &b->backend->kernels[j->op];
    for (int i = 0; i < j->n_in + j->n_out; i++) {
        fill(b, &j->t[i], i);
        const bool is_table = segments && j->t[i].dtype == CT_DTYPE_I32;
        if (is_table) {
            memcpy(j->t[i].data, j->t[i].ndim == 2 ? segments : segments + 4 * segments[-1], tensor_bytes(&j->t[i]));
        }
    }
    ct_launch launch = {.in = j->t, .n_in = j->n_in, .out = j->t + j->n_in, .n_out = j->n_out, .attrs = j->attrs};
    launch.workspace_bytes = kernel->workspace_bytes ? kernel->workspace_bytes(&launch) : 0;
    must(b->backend->memory_alloc(b->device, launch.workspace_bytes, &launch.workspace, &err), &err);
    const int n = sample(kernel, &launch, s);
    const double work = j->flops > 0 ? j->flops : j->bytes, limit = j->flops > 0 ? b->limit.flops : b->limit.bytes;
    (void)printf("%-34s %9.1f us  %7.1f %-7s [%.1f .. %.1f]  %3.0f %%\n", j->name, s[n / 2] * 1e6, work / s[n / 2] / 1e9,
                 j->flops > 0 ? "GFLOP/s" : "GB/s", work / s[n * 3 / 4] / 1e9, work / s[n / 4] / 1e9, 100 * work / s[n / 2] / limit);
    b->backend->memory_free(b->device, launch.workspace, launch.workspace_bytes);
    for (int i = 0; i < j->n_in + j->n_out; i++) {
        b->backend->memory_free(b->device, j->t[i].data, tensor_bytes(&j->t[i]));
    }
}

static void products(const bench *b, int64_t m)
{
    static const int64_t SHAPES[][2] = {{256, 256}, {768, 256}, {256, 768}, {2048, 256}}; /* n, k of y = x w^T */
    static const char *const NAMES[] = {"fwd", "dgrad", "wgrad"};
    for (int s = 0; s < 4; s++) {
        const int64_t n = SHAPES[s][0], k = SHAPES[s][1];
        for (int way = 0; way < 3; way++) {
            const ct_attrs_matmul attrs = {.ta = way == 2, .tb = way == 0};
            char name[64];
            (void)snprintf(name, sizeof name, "matmul %s %lldx%lldx%lld", NAMES[way], (long long)m, (long long)n, (long long)k);
            job j = {.name = name, .op = CT_OP_matmul, .attrs = &attrs, .flops = 2.0 * (double)(m * n * k)};
            if (way == 0) {
                (void)add(&j, false, b->f, m, k, 0, 0);
                (void)add(&j, false, b->f, n, k, 0, 0);
                (void)add(&j, true, b->f, m, n, 0, 0);
            } else if (way == 1) {
                (void)add(&j, false, b->f, m, n, 0, 0);
                (void)add(&j, false, b->f, n, k, 0, 0);
                (void)add(&j, true, b->f, m, k, 0, 0);
            } else {
                (void)add(&j, false, b->f, m, n, 0, 0);
                (void)add(&j, false, b->f, m, k, 0, 0);
                (void)add(&j, true, b->f, n, k, 0, 0);
            }
            run_job(b, &j, NULL);
        }
    }
}

/* batch segments of len tokens, causal; flops of the causal half, the gradient's with the scores made again. */
static void attention(const bench *b, int64_t batch, int64_t len, int64_t heads, int64_t h)
{
    int32_t table[1 + 4 * 8 + 1]; /* count, rows, count */
    for (int64_t i = 0; i < batch; i++) {
        const int32_t row[4] = {(int32_t)(i * len), (int32_t)len, (int32_t)(i * len), (int32_t)len};
        memcpy(table + 1 + 4 * i, row, sizeof row);
    }
    table[0] = table[1 + 4 * batch] = (int32_t)batch;
    const ct_attrs_sdpa attrs = {.scale = 0.25, .causal = true};
    const int64_t t = batch * len;
    const double half = (double)(batch * heads * len * (len + 1) / 2 * h) * 2;
    for (int grad = 0; grad < 2; grad++) {
        char name[64];
        (void)snprintf(name, sizeof name, "sdpa%s %lldx%lldx%lldx%lld", grad ? "_grad" : "", (long long)batch, (long long)heads,
                       (long long)len, (long long)h);
        job j = {.name = name, .op = grad ? CT_OP_sdpa_grad : CT_OP_sdpa, .attrs = &attrs, .flops = half * (grad ? 5 : 2)};
        for (int i = 0; i < (grad ? 5 : 3); i++) {
            (void)add(&j, false, b->f, t, heads, h, 0);
        }
        if (grad) {
            (void)add(&j, false, CT_DTYPE_F32, t, heads, 0, 0);
        }
        (void)add(&j, false, CT_DTYPE_I32, batch, 4, 0, 0);
        (void)add(&j, false, CT_DTYPE_I32, 1, 0, 0, 0);
        for (int i = 0; i < (grad ? 3 : 1); i++) {
            (void)add(&j, true, b->f, t, heads, h, 0);
        }
        if (!grad) {
            (void)add(&j, true, CT_DTYPE_F32, t, heads, 0, 0);
        }
        run_job(b, &j, table + 1);
    }
}

static void loss(const bench *b, int64_t t, int64_t d, int64_t vocab, int64_t chunks)
{
    const ct_attrs_loss attrs = {.chunks = chunks};
    char name[64];
    (void)snprintf(name, sizeof name, "linear_cross_entropy %lldx%lldx%lld", (long long)t, (long long)vocab, (long long)d);
    job j = {.name = name, .op = CT_OP_linear_cross_entropy, .attrs = &attrs, .flops = 6.0 * (double)(t * d * vocab)};
    (void)add(&j, false, b->f, t, d, 0, 0);
    (void)add(&j, false, b->f, vocab, d, 0, 0);
    (void)add(&j, false, CT_DTYPE_I32, t, 0, 0, 0);
    (void)add(&j, false, CT_DTYPE_F32, 1, 0, 0, 0);
    (void)add(&j, true, CT_DTYPE_F64, 1, 0, 0, 0);
    (void)add(&j, true, b->f, t, d, 0, 0);
    (void)add(&j, true, b->f, vocab, d, 0, 0);
    run_job(b, &j, NULL);
}

static void streams(const bench *b, int64_t t)
{
    const ct_attrs_rmsnorm norm = {.eps = 1e-5};
    const ct_attrs_rope rope = {.inverse = false};
    static const struct {
        const char *name;
        int32_t op;
        int n_in, n_out;
    } WIDE[] = {{"add", CT_OP_add, 2, 1}, {"silu_mul", CT_OP_silu_mul, 2, 1}, {"silu_mul_grad", CT_OP_silu_mul_grad, 3, 2}};
    for (int i = 0; i < 3; i++) {
        job j = {.name = WIDE[i].name, .op = WIDE[i].op};
        for (int k = 0; k < WIDE[i].n_in + WIDE[i].n_out; k++) {
            (void)add(&j, k >= WIDE[i].n_in, b->f, t, 768, 0, 0);
        }
        run_job(b, &j, NULL);
    }
    job n = {.name = "rmsnorm", .op = CT_OP_rmsnorm, .attrs = &norm};
    (void)add(&n, false, b->f, t, 256, 0, 0);
    (void)add(&n, false, b->f, 256, 0, 0, 0);
    (void)add(&n, true, b->f, t, 256, 0, 0);
    (void)add(&n, true, CT_DTYPE_F32, t, 0, 0, 0);
    run_job(b, &n, NULL);
    job g = {.name = "rmsnorm_grad", .op = CT_OP_rmsnorm_grad};
    (void)add(&g, false, b->f, t, 256, 0, 0);
    (void)add(&g, false, b->f, t, 256, 0, 0);
    (void)add(&g, false, b->f, 256, 0, 0, 0);
    (void)add(&g, false, CT_DTYPE_F32, t, 0, 0, 0);
    (void)add(&g, true, b->f, t, 256, 0, 0);
    (void)add(&g, true, b->f, 256, 0, 0, 0);
    run_job(b, &g, NULL);
    job r = {.name = "rope", .op = CT_OP_rope, .attrs = &rope};
    (void)add(&r, false, b->f, 1, t, 16, 16);
    (void)add(&r, false, CT_DTYPE_I32, 1, t, 0, 0);
    (void)add(&r, false, CT_DTYPE_F32, 100, 8, 2, 0);
    (void)add(&r, true, b->f, 1, t, 16, 16);
    run_job(b, &r, NULL);
}

static void optimizer(const bench *b, int64_t n)
{
    job s = {.name = "sumsq", .op = CT_OP_sumsq};
    (void)add(&s, false, b->f, n, 0, 0, 0);
    (void)add(&s, true, CT_DTYPE_F64, 1, 0, 0, 0);
    run_job(b, &s, NULL);
    int64_t segments[] = {0, n, 0};
    double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, decay = 0.1;
    const ct_attrs_adamw attrs = {.segments = {3, segments}, .beta1 = {1, &beta1}, .beta2 = {1, &beta2}, .eps = {1, &eps},
                                  .weight_decay = {1, &decay}};
    static int64_t step = 1;
    static int32_t go = 1;
    static double lr = 1e-3;
    static float coef = 1.0f;
    double out[MAX_SAMPLES];
    if (b->filter && !strstr("adamw", b->filter)) {
        return;
    }
    ct_tensor in[8] = {{.ndim = 1}}, *scalars = in + 4;
    for (int i = 0; i < 4; i++) {
        in[i] = (ct_tensor){.dtype = b->f, .ndim = 1, .dims = {n}};
        fill(b, &in[i], i);
    }
    scalars[0] = (ct_tensor){.data = &lr, .dtype = CT_DTYPE_F64, .ndim = 1, .dims = {1}};
    scalars[1] = (ct_tensor){.data = &step, .dtype = CT_DTYPE_I64, .ndim = 1, .dims = {1}};
    scalars[2] = (ct_tensor){.data = &coef, .dtype = CT_DTYPE_F32, .ndim = 1, .dims = {1}};
    scalars[3] = (ct_tensor){.data = &go, .dtype = CT_DTYPE_I32, .ndim = 1, .dims = {1}};
    const ct_tensor to[3] = {in[0], in[2], in[3]};
    const ct_launch launch = {.in = in, .n_in = 8, .out = to, .n_out = 3, .attrs = &attrs};
    const int k = sample(&b->backend->kernels[CT_OP_adamw], &launch, out);
    const double bytes = 7.0 * (double)n * (double)ct_dtype_size_bytes(b->f);
    (void)printf("%-34s %9.1f us  %7.1f %-7s [%.1f .. %.1f]  %3.0f %%\n", "adamw", out[k / 2] * 1e6, bytes / out[k / 2] / 1e9,
                 "GB/s", bytes / out[k * 3 / 4] / 1e9, bytes / out[k / 4] / 1e9, 100 * bytes / out[k / 2] / b->limit.bytes);
}

static void copy_part(void *to_from, int64_t first, int64_t end, int thread)
{
    char **p = to_from;
    (void)thread;
    memcpy(p[0] + first, p[1] + first, (size_t)(end - first));
}

/* Bytes read and written per second by memcpy on all threads, 128 MiB each way. */
static double copy_rate(const bench *b)
{
    enum { BYTES = 128 << 20, PART = 1 << 20 };
    void *from, *to;
    ct_err err = {0};
    double best = 0;
    must(b->backend->memory_alloc(b->device, BYTES, &from, &err), &err);
    must(b->backend->memory_alloc(b->device, BYTES, &to, &err), &err);
    for (int r = 0; r < 5; r++) {
        const int64_t start = cti_now_ns();
        cti_pool_run(BYTES, PART, copy_part, (char *[]){to, from});
        const double rate = 2.0 * BYTES / cti_seconds_since(start);
        best = rate > best ? rate : best;
    }
    b->backend->memory_free(b->device, from, BYTES);
    b->backend->memory_free(b->device, to, BYTES);
    return best;
}

int main(int argc, char **argv)
{
    bench b = {.backend = ct_backend_cpu(), .f = CT_DTYPE_F32};
    ct_err err = {0};
    char cpu[128];
    for (int i = 1; i < argc; i++) {
        if (!ct_dtype_parse(argv[i], &b.f)) {
            b.filter = argv[i];
        }
    }
    must(b.backend->device_open(ct_alloc_system(), 0, &b.device, &err), &err);
    int level = 0;
    for (int i = 0; i < cti_cpu_level_count(); i++) {
        level = cti_cpu_backend_at(i) == b.backend ? i : level;
    }
    cti_cpu_name(cpu, sizeof cpu);
    for (int i = 0; i < 5; i++) {
        const double rate = cti_cpu_measure_peak(level);
        b.limit.flops = rate > b.limit.flops ? rate : b.limit.flops;
    }
    b.limit.bytes = copy_rate(&b);
    (void)printf("%s, %d threads, level %s, %s, compiler %s\n", cpu, cti_pool_threads(), cti_cpu_level_name(level),
                 ct_dtype_name(b.f), __VERSION__);
    (void)printf("fused multiply-add %.1f GFLOP/s, copy %.1f GB/s (read and written)\n", b.limit.flops / 1e9, b.limit.bytes / 1e9);
    (void)printf("%-34s %12s  %15s %s\n", "kernel", "median", "median", "[quartiles], share of the limit");
    products(&b, 256);
    products(&b, 2048);
    attention(&b, 1, 256, 16, 16);
    attention(&b, 8, 256, 16, 16);
    attention(&b, 1, 2048, 16, 16);
    attention(&b, 1, 1024, 8, 64);
    loss(&b, 256, 256, 2048, 1);
    loss(&b, 2048, 256, 2048, 8);
    streams(&b, 2048);
    optimizer(&b, 6163712);
    b.backend->device_close(&b.device);
    return 0;
}
