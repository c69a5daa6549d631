/* SPDX-License-Identifier: Apache-2.0 */
/* What products of the debug model lose on their way from the FMA peak:
 *
 *     bench_bounds [--quick] [--tsv] [part of a name]
 *
 * Short calls of a loop of independent FMAs take turns with calls of the level's micro-kernel alone on one tile, of a product whose
 * operands are in the caches, and of the same product with operands that come from memory. Shown are medians and quartiles of their
 * rates over that of the loop right before, so that what other tenants do to the cores hits both; f32.
 * fwd: y = x w^T, dgrad: dx = dy w, wgrad: dw = dy^T x. --tsv: bounds, name, threads, then median and quartiles of each.
 * Threads: OMP_NUM_THREADS; level: CTITAN_CPU_ISA. */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/pool.h"
#include "bench.h"

enum { UKR, CACHED, FROM_MEMORY, N_STAGES };

/* A product and its operands: set 0 for the caches, the others one after the other. */
typedef struct product {
    job shape; /* of one set */
    job sets;  /* one operand: all of them, end to end */
    int n_sets;
    ct_launch launch;
} product;

/* Of the operands that come from memory, together: no cache holds them. */
static int64_t memory_bytes(void)
{
    return cti_max_i64(160 << 20, sysconf(_SC_LEVEL3_CACHE_SIZE) / 4 * 5);
}

/* FLOPs a second of one call on the operands of a set. */
static double product_rate(const bench *b, product *p, int set)
{
    char *at = (char *)p->sets.t[0].data + (size_t)set * (size_t)p->shape.bytes;
    for (int i = 0; i < p->shape.n_in + p->shape.n_out; i++) {
        p->shape.t[i].data = at;
        at += tensor_bytes(&p->shape.t[i]);
    }
    kernel_call c = {&b->backend->kernels[p->shape.op], &p->launch};
    const int64_t start = cti_now_ns();
    bench_call(&c);
    return p->shape.flops / cti_seconds_since(start);
}

static void print_row(const bench *b, const char *name, sample_set *shares)
{
    (void)printf(b->is_tsv ? "bounds\t%s\t%d" : "%-24s", name, cti_pool_threads());
    for (int s = 0; s < N_STAGES; s++) {
        sample_sort(&shares[s]);
        const sample_set *all = &shares[s];
        const double median = sample_at(all, 0.5), q1 = sample_at(all, 0.25), q3 = sample_at(all, 0.75);
        if (b->is_tsv) {
            (void)printf("\t%.4f\t%.4f\t%.4f", median, q1, q3);
        } else {
            (void)printf("   %5.1f %% [%5.1f .. %5.1f]", 100 * median, 100 * q1, 100 * q3);
        }
    }
    (void)printf("\n");
    (void)fflush(stdout);
}

/* lda: as the product takes its A. */
static void alternate(const bench *b, product *p, float *tiles, int64_t lda)
{
    sample_set shares[N_STAGES] = {{.n = 0}};
    const int rounds = b->is_quick ? 15 : BENCH_MAX_SAMPLES;
    for (int r = 0; r < rounds; r++) {
        for (int s = 0; s < N_STAGES; s++) {
            if (s == CACHED) { /* the loop in between leaves them there */
                (void)product_rate(b, p, 0);
            }
            const double fma = bench_fma_rate(b, 0);
            const int set = s == CACHED ? 0 : 1 + r % (p->n_sets - 1);
            shares[s].value[shares[s].n++] = (s == UKR ? bench_ukr_rate(b, tiles, lda) : product_rate(b, p, set)) / fma;
        }
    }
    print_row(b, p->shape.name, shares);
}

static void bounds_of(const bench *b, int way, int64_t m, int64_t n, int64_t k, float *tiles)
{
    static const char *const WAYS[] = {"fwd", "dgrad", "wgrad"};
    const ct_attrs_matmul attrs = {.ta = way == 2, .tb = way == 0};
    char name[64];
    (void)snprintf(name, sizeof name, "%s %lldx%lldx%lld", WAYS[way], (long long)m, (long long)n, (long long)k);
    if (!bench_wants(b, name)) {
        return;
    }
    product p = {.shape = {.name = name, .op = CT_OP_matmul, .attrs = &attrs, .flops = 2.0 * (double)(m * n * k)}};
    (void)job_add(&p.shape, false, b->f, m, way == 0 ? k : n, 0, 0);
    (void)job_add(&p.shape, false, b->f, way == 2 ? m : n, k, 0, 0);
    (void)job_add(&p.shape, true, b->f, way == 2 ? n : m, way == 0 ? n : k, 0, 0);
    p.n_sets = 2 + (int)(memory_bytes() / (int64_t)p.shape.bytes);
    (void)job_add(&p.sets, false, b->f, p.n_sets, (int64_t)p.shape.bytes / (int64_t)sizeof(float), 0, 0);
    job_alloc(b, &p.sets);
    ct_err err = {0};
    p.launch = (ct_launch){.in = p.shape.t, .n_in = 2, .out = p.shape.t + 2, .n_out = 1, .attrs = &attrs};
    const ct_kernel *kernel = &b->backend->kernels[CT_OP_matmul];
    p.launch.workspace_bytes = kernel->workspace_bytes ? kernel->workspace_bytes(&p.launch) : 0;
    bench_must(b->backend->memory_alloc(b->device, p.launch.workspace_bytes, &p.launch.workspace, &err), &err);
    alternate(b, &p, tiles, way == 2 ? 0 : way == 1 ? n : k);
    b->backend->memory_free(b->device, p.launch.workspace, p.launch.workspace_bytes);
    job_free(b, &p.sets);
}

int main(int argc, char **argv)
{
    static const int64_t SHAPES[][2] = {{768, 256}, {256, 768}, {256, 256}}; /* n, k of y = x w^T */
    bench b;
    bench_open(&b, argc, argv);
    if (b.f != CT_DTYPE_F32) {
        (void)fprintf(stderr, "%s: products of f32 only\n", argv[0]);
        return 2;
    }
    if (!b.is_tsv) {
        (void)printf("%-24s   %-24s   %-24s   %s\n", "of the FMA loop's rate", "micro-kernel", "operands in caches",
                     "operands from memory");
    }
    job tiles = {.n_in = 0};
    const int64_t n_tiles = cti_max_i64(16, cti_pool_threads()); /* 2 MiB: huge pages */
    (void)job_add(&tiles, false, CT_DTYPE_F32, n_tiles, BENCH_TILE, 0, 0);
    job_alloc(&b, &tiles);
    for (size_t s = 0; s < sizeof SHAPES / sizeof SHAPES[0]; s++) {
        for (int way = 0; way < 3; way++) {
            bounds_of(&b, way, 2048, SHAPES[s][0], SHAPES[s][1], tiles.t[0].data);
        }
    }
    job_free(&b, &tiles);
    bench_close(&b);
    return 0;
}
