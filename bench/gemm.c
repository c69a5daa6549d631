/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix products of the debug model and of a block of dim 2048, ours and oneDNN's in turn on the same operands:
 *
 *     bench_gemm [f32|bf16] [--quick] [--tsv] [part of a name]
 *
 * fwd: y = x w^T, dgrad: dx = dy w, wgrad: dw = dy^T x. --tsv: gemm, name, dtype, FLOPs, our seconds
 * (median, quartiles), oneDNN's (0: absent), FLOPs a second of the limit. */
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "bench.h"
#include "peer_onednn.h"

/* The other's threads have gone to sleep (libgomp's spin for some milliseconds), ours are awake and the caches warm. */
static void take_turn(sample_set *s, void (*fn)(void *ctx), void *ctx)
{
    const struct timespec rest = {.tv_nsec = 15000000};
    (void)nanosleep(&rest, NULL);
    for (const int64_t start = cti_now_ns(); cti_seconds_since(start) < 0.008;) {
        fn(ctx);
    }
    for (int i = 0; i < 3; i++) {
        sample_add(s, fn, ctx);
    }
}

static void print_row(const bench *b, const job *j, const sample_set *ours, const sample_set *peer)
{
    const double limit = b->f == CT_DTYPE_BF16 && b->limit.dot > 0 ? b->limit.dot : b->limit.fma;
    const double o = sample_at(ours, 0.5), p = peer->n > 0 ? sample_at(peer, 0.5) : 0;
    if (b->is_tsv) {
        (void)printf("gemm\t%s\t%s\t%.6g\t%.6g\t%.6g\t%.6g\t%.6g\t%.6g\t%.6g\t%.6g\n", j->name, ct_dtype_name(b->f), j->flops, o,
                     sample_at(ours, 0.25), sample_at(ours, 0.75), p, peer->n > 0 ? sample_at(peer, 0.25) : 0,
                     peer->n > 0 ? sample_at(peer, 0.75) : 0, limit);
    } else {
        (void)printf("%-28s %5s %7.1f GFLOP/s [%.1f .. %.1f] %3.0f %%", j->name, ct_dtype_name(b->f), j->flops / o / 1e9,
                     j->flops / sample_at(ours, 0.75) / 1e9, j->flops / sample_at(ours, 0.25) / 1e9, 100 * j->flops / o / limit);
        if (peer->n > 0) {
            (void)printf("   oneDNN %7.1f [%.1f .. %.1f]  ratio %.2f", j->flops / p / 1e9, j->flops / sample_at(peer, 0.75) / 1e9,
                         j->flops / sample_at(peer, 0.25) / 1e9, p / o);
        }
        (void)printf("\n");
    }
    (void)fflush(stdout);
}

static void product(const bench *b, int way, int64_t m, int64_t n, int64_t k)
{
    static const char *const WAYS[] = {"fwd", "dgrad", "wgrad"};
    const ct_attrs_matmul attrs = {.ta = way == 2, .tb = way == 0};
    char name[64];
    (void)snprintf(name, sizeof name, "%s %lldx%lldx%lld", WAYS[way], (long long)m, (long long)n, (long long)k);
    if (!bench_wants(b, name)) {
        return;
    }
    job j = {.name = name, .op = CT_OP_matmul, .attrs = &attrs, .flops = 2.0 * (double)m * (double)n * (double)k};
    (void)job_add(&j, false, b->f, m, way == 0 ? k : n, 0, 0);
    (void)job_add(&j, false, b->f, way == 2 ? m : n, k, 0, 0);
    (void)job_add(&j, true, b->f, way == 2 ? n : m, way == 0 ? n : k, 0, 0);
    job_alloc(b, &j);
    const ct_kernel *kernel = &b->backend->kernels[CT_OP_matmul];
    ct_launch launch = {.in = j.t, .n_in = 2, .out = j.t + 2, .n_out = 1, .attrs = &attrs};
    ct_err err = {0};
    launch.workspace_bytes = kernel->workspace_bytes ? kernel->workspace_bytes(&launch) : 0;
    bench_must(b->backend->memory_alloc(b->device, launch.workspace_bytes, &launch.workspace, &err), &err);
    kernel_call c = {kernel, &launch};
    const int64_t rows = way == 2 ? n : m, columns = way == 0 ? n : k, inner = way == 0 ? k : way == 1 ? n : m;
    peer_product *peer = peer_onednn_create(b->f == CT_DTYPE_BF16, attrs.ta, attrs.tb, rows, columns, inner, j.t[0].data, j.t[1].data,
                                            j.t[2].data);
    sample_set ours = {0}, theirs = {0};
    for (const int64_t start = cti_now_ns(); ours.n < 6 || (cti_seconds_since(start) < b->seconds && ours.n < BENCH_MAX_SAMPLES);) {
        take_turn(&ours, bench_call, &c);
        if (peer) {
            take_turn(&theirs, peer_onednn_run, peer);
        }
    }
    sample_sort(&ours);
    sample_sort(&theirs);
    print_row(b, &j, &ours, &theirs);
    peer_onednn_destroy(peer);
    b->backend->memory_free(b->device, launch.workspace, launch.workspace_bytes);
    job_free(b, &j);
}

static void shapes(const bench *b, int64_t m, const int64_t (*weights)[2], int n_weights)
{
    for (int w = 0; w < n_weights; w++) {
        for (int way = 0; way < 3; way++) {
            product(b, way, m, weights[w][0], weights[w][1]);
        }
    }
}

int main(int argc, char **argv)
{
    /* [rows, columns] of the weights: (q, k, v), wo, w1 and w3, w2, head */
    static const int64_t DEBUGMODEL[][2] = {{768, 256}, {256, 256}, {256, 768}, {2048, 256}};
    static const int64_t DIM_2048[][2] = {{3072, 2048}, {2048, 2048}, {8192, 2048}, {2048, 8192}};
    bench b;
    bench_open(&b, argc, argv);
    const char *version = peer_onednn_version();
    (void)printf(b.is_tsv ? "peer\t%s\n" : "beside %s\n", version ? version : "no oneDNN (the build found none)");
    shapes(&b, 256, DEBUGMODEL, 4);
    shapes(&b, 2048, DEBUGMODEL, 4);
    if (!b.is_quick) {
        shapes(&b, 16384, DEBUGMODEL, 4);
    }
    shapes(&b, 512, DIM_2048, 4);
    bench_close(&b);
    return 0;
}
