/* SPDX-License-Identifier: Apache-2.0 */
/* Command line, limits, operands, samples and rows of the timing programs; see bench.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/cpu_internal.h"
#include "base/clock.h"
#include "base/num.h"
#include "base/pool.h"
#include "base/rng.h"
#include "base/sys.h"
#include "bench.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { MAX_TRIES = 20 };

typedef double (*loop_fn)(int64_t n);
typedef double (*ukr_fn)(int64_t n, float *tile, int64_t lda);
#define LOOP_PROTO(name, text)                                                                                       \
    double cti_cpu_bench_exp_##name(int64_t n);                                                                      \
    double cti_cpu_bench_ukr_##name(int64_t n, float *tile, int64_t lda);
CTI_CPU_LEVEL_LIST(LOOP_PROTO)
#undef LOOP_PROTO
static const struct {
    loop_fn fma, exp;
    ukr_fn ukr;
} LOOPS[] = {
#define LEVEL_LOOPS(name, text) {cti_cpu_fma_loop_##name, cti_cpu_bench_exp_##name, cti_cpu_bench_ukr_##name},
    CTI_CPU_LEVEL_LIST(LEVEL_LOOPS)
#undef LEVEL_LOOPS
};

static double greater(double a, double b)
{
    return a > b ? a : b;
}

void bench_must(ct_status st, const ct_err *err)
{
    if (st != CT_OK) {
        (void)fprintf(stderr, "bench: %s\n", err->message);
        exit(1);
    }
}

/* ---- limits ---- */

typedef struct rate_run {
    loop_fn loop; /* or NULL, and: */
    ukr_fn ukr;
    float *tiles; /* one a thread */
    int64_t lda;
    int64_t n; /* rounds of a turn */
    _Atomic int64_t done;
} rate_run;

static void rate_turn(void *ctx, int64_t first, int64_t end, int thread)
{
    rate_run *r = ctx;
    const int64_t n = (end - first) * r->n;
    r->done += (int64_t)(r->loop ? r->loop(n) : r->ukr(n, r->tiles + (int64_t)thread * BENCH_TILE, r->lda));
}

/* What is done a second on all threads, by so many turns a thread, again until `seconds` have passed. Several turns, so that a
 * thread that comes late does not halve the rate. */
static double rate_of(rate_run *run, int turns, double seconds)
{
    const int threads = cti_pool_threads();
    const int64_t start = cti_now_ns();
    double took;
    do {
        cti_pool_tasks((int64_t)threads * turns, threads, rate_turn, run);
        took = cti_seconds_since(start);
    } while (took < seconds);
    return (double)run->done / took;
}

/* Exponentials: the best of some rounds of about half a millisecond. */
static double exp_rate(int level)
{
    double best = 0;
    for (int r = 0; r < 8; r++) {
        best = greater(best, rate_of(&(rate_run){.loop = LOOPS[level].exp, .n = 400}, 8, 0));
    }
    return best;
}

/* Turns of about a sixtieth of a millisecond. */
enum { FMA_ROUNDS = 10000, UKR_ROUNDS = 32, MS_TURNS = 64 };

double bench_fma_rate(const bench *b, double seconds)
{
    return rate_of(&(rate_run){.loop = LOOPS[b->level].fma, .n = FMA_ROUNDS}, MS_TURNS, seconds);
}

double bench_ukr_rate(const bench *b, float *tiles, int64_t lda)
{
    return rate_of(&(rate_run){.ukr = LOOPS[b->level].ukr, .tiles = tiles, .lda = lda, .n = UKR_ROUNDS}, MS_TURNS, 0);
}

/* Bytes of a block that memory's rates are measured with. */
enum { BLOCK = 256 << 20 };

static void copy_plain(void *to_from, int64_t first, int64_t end, int thread)
{
    char **p = to_from;
    (void)thread;
    memcpy(p[0] + first, p[1] + first, (size_t)(end - first));
}

/* Stores that do not read the line they write; stream_end() behind the last. Multiples of 64 bytes. */
static void stream(char *to, const char *from, int64_t bytes)
{
#if defined(__SSE2__)
    for (int64_t i = 0; i < bytes; i += 16) {
        _mm_stream_si128((__m128i *)(void *)(to + i), _mm_load_si128((const __m128i *)(const void *)(from + i)));
    }
#else
    memcpy(to, from, (size_t)bytes);
#endif
}
static void stream_end(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

static void copy_stream(void *to_from, int64_t first, int64_t end, int thread)
{
    char **p = to_from;
    (void)thread;
    stream(p[0] + first, p[1] + first, end - first);
    stream_end();
}

/* Sums lines in vectors, so that it is memory that is waited for. */
static void read_part(void *to_from, int64_t first, int64_t end, int thread)
{
    const uint64_t *words = (const uint64_t *)(const void *)((char **)to_from)[1]; /* what memory_alloc gave: of no type yet */
    uint64_t sum[4] = {0}; /* scalars: gcc keeps vectors wider than the machine's in memory */
    for (int64_t i = first / 8; i < end / 8; i += 8) {
        sum[0] += words[i] ^ words[i + 4];
        sum[1] += words[i + 1] ^ words[i + 5];
        sum[2] += words[i + 2] ^ words[i + 6];
        sum[3] += words[i + 3] ^ words[i + 7];
    }
    volatile uint64_t sink = sum[0] + sum[1] + sum[2] + sum[3];
    (void)sink;
    (void)thread;
}

/* Copies a row of a KiB to each place from a place drawn by lot. */
static void gather_part(void *to_from, int64_t first, int64_t end, int thread)
{
    enum { ROW = 1024, AHEAD = 2 };
    char **p = to_from;
    const cti_rng_key key = cti_rng_key_make(1, "rows");
    const char *from[AHEAD + 1] = {p[1], p[1], p[1]};
    (void)thread;
    for (int64_t i = first - AHEAD * ROW; i < end; i += ROW) {
        const char *soon = p[1] + (int64_t)(cti_rng_uniform(key, (uint64_t)(i / ROW + AHEAD)) * (double)(BLOCK / ROW)) * ROW;
        for (int64_t k = 0; k < ROW; k += 64) {
            __builtin_prefetch(soon + k);
        }
        memmove(from, from + 1, AHEAD * sizeof *from);
        from[AHEAD] = soon;
        if (i >= first) {
            stream(p[0] + i, from[0], ROW);
        }
    }
    stream_end();
}

/* Raises what limits memory to what is measured. */
static void memory_rates(bench *b)
{
    enum { PART = 4 << 20, ROUNDS = 2 };
    const struct {
        cti_pool_fn fn;
        double *best;
        int64_t moved; /* bytes, for a byte of the block */
    } ways[] = {{copy_plain, &b->limit.copy, 2}, {copy_stream, &b->limit.copy, 2}, {read_part, &b->limit.read, 1}, {gather_part, &b->limit.rows, 2}};
    enum { WAYS = sizeof ways / sizeof ways[0] };
    void *from, *to;
    ct_err err = {0};
    bench_must(b->backend->memory_alloc(b->device, BLOCK, &from, &err), &err);
    bench_must(b->backend->memory_alloc(b->device, BLOCK, &to, &err), &err);
    for (int r = 0; r < WAYS * ROUNDS; r++) {
        const int64_t start = cti_now_ns();
        cti_pool_run(BLOCK, PART, ways[r % WAYS].fn, (char *[]){to, from});
        *ways[r % WAYS].best = greater(*ways[r % WAYS].best, (double)(ways[r % WAYS].moved * BLOCK) / cti_seconds_since(start));
    }
    b->backend->memory_free(b->device, from, BLOCK);
    b->backend->memory_free(b->device, to, BLOCK);
}

/* In turns, so that other processes that come and go spoil none of them wholly. */
void bench_measure_limits(bench *b)
{
    b->limit = (bench_limits){0};
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < 4; i++) {
            b->limit.fma = greater(b->limit.fma, cti_cpu_measure_peak(b->level));
            b->limit.dot = greater(b->limit.dot, cti_cpu_measure_peak_bf16(b->level));
            b->limit.exp = greater(b->limit.exp, exp_rate(b->level));
        }
        memory_rates(b);
    }
    b->limit.sustained = bench_fma_rate(b, 0.3);
}

void bench_print_limits(const bench *b)
{
    char cpu[128];
    cti_cpu_name(cpu, sizeof cpu);
    if (b->is_tsv) {
        (void)printf("limits\t%.6g\t%.6g\t%.6g\t%.6g\t%.6g\t%s\t%d\t%s\t%s\t%.6g\t%.6g\n", b->limit.fma, b->limit.dot, b->limit.copy,
                     b->limit.read, b->limit.exp, cti_cpu_level_name(b->level), cti_pool_threads(), cpu, __VERSION__, b->limit.sustained,
                     b->limit.rows);
        return;
    }
    (void)printf("%s, %d threads, level %s, compiler %s\n", cpu, cti_pool_threads(), cti_cpu_level_name(b->level), __VERSION__);
    (void)printf("limits: f32 FMA %.1f GFLOP/s (%.1f over a third of a second), bf16 dot ", b->limit.fma / 1e9, b->limit.sustained / 1e9);
    if (b->limit.dot > 0) {
        (void)printf("%.1f GFLOP/s", b->limit.dot / 1e9);
    } else {
        (void)printf("none");
    }
    (void)printf(", copy %.1f GB/s (read and written), rows at random %.1f GB/s, read %.1f GB/s, exp %.2f G/s\n", b->limit.copy / 1e9,
                 b->limit.rows / 1e9, b->limit.read / 1e9, b->limit.exp / 1e9);
}

void bench_open(bench *b, int argc, char **argv)
{
    ct_err err = {0};
    *b = (bench){.backend = ct_backend_cpu(), .f = CT_DTYPE_F32};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--tsv") == 0) {
            b->is_tsv = true;
        } else if (strcmp(argv[i], "--quick") == 0) {
            b->is_quick = true;
        } else if (argv[i][0] == '-') {
            (void)fprintf(stderr, "usage: %s [f32|bf16] [--tsv] [--quick] [part of a row's name]\n", argv[0]);
            exit(2);
        } else if (!ct_dtype_parse(argv[i], &b->f)) {
            b->filter = argv[i];
        }
    }
    b->seconds = b->is_quick ? 0.06 : 0.3;
    bench_must(b->backend->device_open(ct_alloc_system(), 0, &b->device, &err), &err);
    for (int i = 0; i < cti_cpu_level_count(); i++) {
        b->level = cti_cpu_backend_at(i) == b->backend ? i : b->level;
    }
    bench_measure_limits(b);
    bench_print_limits(b);
}

void bench_close(bench *b)
{
    b->backend->device_close(&b->device);
}

/* ---- operands ---- */

size_t tensor_bytes(const ct_tensor *t)
{
    size_t n = ct_dtype_size_bytes(t->dtype);
    for (int i = 0; i < t->ndim; i++) {
        n *= (size_t)t->dims[i];
    }
    return n;
}

ct_tensor *job_add(job *j, bool is_out, ct_dtype dtype, int64_t d0, int64_t d1, int64_t d2, int64_t d3)
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

typedef struct fill_run {
    ct_tensor *t;
    cti_rng_key key;
    double n_ids;
} fill_run;

static void fill_part(void *ctx, int64_t first, int64_t end, int thread)
{
    const fill_run *f = ctx;
    (void)thread;
    for (int64_t i = first; i < end; i++) {
        const double u = cti_rng_uniform(f->key, (uint64_t)i);
        const float x = (float)u - 0.5F;
        if (f->t->dtype == CT_DTYPE_F32) {
            ((float *)f->t->data)[i] = x;
        } else if (f->t->dtype == CT_DTYPE_BF16) {
            ((uint16_t *)f->t->data)[i] = cti_f32_to_bf16(x);
        } else if (f->t->dtype == CT_DTYPE_I32) {
            ((int32_t *)f->t->data)[i] = (int32_t)(u * f->n_ids);
        }
    }
}

static void fill(const bench *b, ct_tensor *t, int index, int64_t n_ids)
{
    ct_err err = {0};
    bench_must(b->backend->memory_alloc(b->device, tensor_bytes(t), &t->data, &err), &err);
    fill_run run = {t, cti_rng_key_make((uint64_t)index, "bench"), n_ids > 0 ? (double)n_ids : 256.0};
    cti_pool_run((int64_t)(tensor_bytes(t) / ct_dtype_size_bytes(t->dtype)), 1 << 14, fill_part, &run);
}

void job_alloc(const bench *b, job *j)
{
    for (int i = 0; i < j->n_in + j->n_out && !j->is_borrowed; i++) {
        ct_tensor *t = &j->t[i];
        fill(b, t, i, j->n_ids);
        if (j->segments && t->dtype == CT_DTYPE_I32) {
            memcpy(t->data, t->ndim == 2 ? j->segments : &j->n_segments, tensor_bytes(t));
        }
    }
}

void job_free(const bench *b, job *j)
{
    for (int i = 0; i < j->n_in + j->n_out && !j->is_borrowed; i++) {
        b->backend->memory_free(b->device, j->t[i].data, tensor_bytes(&j->t[i]));
    }
}

/* ---- samples and rows ---- */

/* How often the system took a core away from a thread of ours that wanted it. */
static int64_t preemptions(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage); /* cannot fail with these arguments */
    return usage.ru_nivcsw;
}

void sample_add(sample_set *s, void (*fn)(void *ctx), void *ctx)
{
    if (s->calls == 0) {
        s->calls = 1;
        fn(ctx);
    }
    for (int tries = 0; s->n < BENCH_MAX_SAMPLES;) {
        const int64_t before = preemptions(), start = cti_now_ns();
        for (int i = 0; i < s->calls; i++) {
            fn(ctx);
        }
        const double seconds = cti_seconds_since(start);
        if (seconds < 0.004 && s->calls <= (1 << 20)) {
            s->calls *= 2;
        } else if (preemptions() - before <= (int64_t)(seconds / 0.1) || ++tries > MAX_TRIES) {
            s->value[s->n++] = seconds / s->calls;
            return;
        }
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void sample_sort(sample_set *s)
{
    qsort(s->value, (size_t)s->n, sizeof *s->value, by_value);
}

double sample_at(const sample_set *s, double quantile)
{
    return s->value[(int)((double)(s->n - 1) * quantile + 0.5)];
}

bool bench_wants(const bench *b, const char *name)
{
    return !b->filter || strstr(name, b->filter);
}

void bench_row(const bench *b, const char *name, const sample_set *s, double limit_s, const char *bound)
{
    const double median = sample_at(s, 0.5), q1 = sample_at(s, 0.25), q3 = sample_at(s, 0.75);
    if (b->is_tsv) {
        (void)printf("row\t%s\t%s\t%.6g\t%.6g\t%.6g\t%.6g\t%s\n", name, ct_dtype_name(b->f), median, q1, q3, limit_s, bound);
    } else {
        (void)printf("%-38s %5s %10.1f us [%.1f .. %.1f]  limit %10.1f us (%s)  %3.0f %%\n", name, ct_dtype_name(b->f), median * 1e6,
                     q1 * 1e6, q3 * 1e6, limit_s * 1e6, bound, 100 * limit_s / median);
    }
    (void)fflush(stdout);
}

void bench_call(void *ctx)
{
    const kernel_call *c = ctx;
    ct_err err = {0};
    bench_must(c->kernel->run(c->launch, &err), &err);
}

/* Multiply-adds at the rate of the operands' type plus exponentials; or each operand once at a rate of memory. */
static double limit_seconds(const bench *b, const job *j, const char **bound)
{
    if (j->flops <= 0 && j->exps <= 0) {
        *bound = j->is_reader ? "read" : j->is_gather ? "rows" : "copy";
        return j->bytes / (j->is_reader ? b->limit.read : j->is_gather ? b->limit.rows : b->limit.copy);
    }
    const bool has_dot = j->t[0].dtype == CT_DTYPE_BF16 && b->limit.dot > 0;
    *bound = j->exps > 0 ? "FMA + exp" : "FMA";
    if (has_dot) {
        *bound = j->exps > 0 ? "dot + exp" : "dot";
    }
    return j->flops / (has_dot ? b->limit.dot : b->limit.fma) + j->exps / b->limit.exp;
}

void bench_run(const bench *b, job *j)
{
    if (!bench_wants(b, j->name)) {
        return;
    }
    const ct_kernel *kernel = &b->backend->kernels[j->op];
    if (!kernel->run || !(kernel->dtypes & (1U << b->f))) {
        return;
    }
    job_alloc(b, j);
    ct_err err = {0};
    ct_launch launch = {.in = j->t, .n_in = j->n_in, .out = j->t + j->n_in, .n_out = j->n_out, .attrs = j->attrs};
    launch.workspace_bytes = kernel->workspace_bytes ? kernel->workspace_bytes(&launch) : 0;
    bench_must(b->backend->memory_alloc(b->device, launch.workspace_bytes, &launch.workspace, &err), &err);
    kernel_call c = {kernel, &launch};
    sample_set s = {0};
    for (const int64_t start = cti_now_ns(); s.n < 7 || (cti_seconds_since(start) < b->seconds && s.n < BENCH_MAX_SAMPLES);) {
        sample_add(&s, bench_call, &c);
    }
    sample_sort(&s);
    const char *bound;
    const double limit_s = limit_seconds(b, j, &bound);
    bench_row(b, j->name, &s, limit_s, bound);
    b->backend->memory_free(b->device, launch.workspace, launch.workspace_bytes);
    job_free(b, j);
}
