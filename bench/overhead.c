/* SPDX-License-Identifier: Apache-2.0 */
/* bench_overhead: what all records of a run add to its step time, end to end. Three runs of llama3_debugmodel in one process take turns, a block
 * of steps each: without any record; with metrics.csv, TensorBoard, the trace and the progress line, every step logged; and with the profiler
 * besides. A block ends when the thread that writes has nothing left, so its work counts too. Blocks are compared with the block without
 * records of the same round, by the clock and by the processor time of the process, which others on the machine disturb less.
 *
 *     bench_overhead [ROWS] [ROUNDS] [STEPS]     rows of 256 tokens (1), rounds (40), steps a block (10, a cycle of the profiler) */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "backend/cpu/cpu.h"
#include "base/base.h"
#include "base/clock.h"
#include "model/model.h"
#include "train/trainer.h"

enum { N_KINDS = 3, MAX_ROUNDS = 1000 };
static const char *const kind_names[N_KINDS] = {"no records", "all records", "and profiler"};

static void must(ct_status st, const ct_err *err)
{
    if (st != CT_OK) {
        (void)fprintf(stderr, "bench_overhead: %s\n", err->message);
        exit(1);
    }
}

typedef struct run {
    ct_log *log;
    FILE *sink;
    ct_registry *registry;
    ct_bootstrap *boot;
    cti_problems problems;
    cti_run_config config;
    cti_trainer *trainer;
} run;

static void open_run(run *r, int kind, const char *dir, const char *rows)
{
    static const ct_backend *backends[2];
    static const char *const off[] = {"--metrics.no-enable-csv", "--debug.no-enable-structured-logging", "--metrics.no-enable-progress"};
    static const char *const on[] = {"--metrics.enable-csv", "--metrics.enable-tensorboard", "--debug.enable-structured-logging"};
    static const char *const profiled[] = {"--profiler.enable-profiling"};
    const ct_alloc *alloc = ct_alloc_system();
    char folder[128];
    const char *argv[32] = {"--module", "llama3", "--config", "llama3_debugmodel", "--training.steps", "1000000", "--training.seq-len", "256",
                            "--training.mixed-precision-param", "float32", "--debug.seed", "1", "--metrics.log-freq", "1",
                            "--training.local-batch-size", rows, "--dump-folder", folder};
    int argc = 18;
    ct_err err = {0};
    ct_place place;
    backends[0] = ct_backend_cpu();
    (void)snprintf(folder, sizeof folder, "%s/%d", dir, kind);
    for (size_t i = 0; i < 3; i++) {
        argv[argc++] = kind == 0 ? off[i] : on[i];
    }
    if (kind == 2) {
        argv[argc++] = profiled[0];
    }
    must(ct_place_from_env(NULL, NULL, &place, &err), &err);
    must(ct_bootstrap_create(alloc, &place, 1000, &r->boot, &err), &err);
    must(ct_registry_create(alloc, &r->registry, &err), &err);
    must(cti_register_llama3(r->registry, &err), &err);
    r->problems = (cti_problems){.text = {.alloc = alloc}};
    const cti_resolve_options ro = {argc, argv, NULL, 1, false};
    const ct_status st = cti_run_config_resolve(alloc, r->registry, NULL, &ro, &r->problems, &r->config, &err);
    if (st != CT_OK && r->problems.n > 0) {
        (void)fprintf(stderr, "%s", cti_str_text(&r->problems.text));
    }
    must(st, &err);
    r->sink = fopen("/dev/null", "w");
    must(ct_log_create(alloc, r->sink, CT_LOG_INFO, &r->log, &err), &err);
    const cti_trainer_options o = {.alloc = alloc, .log = r->log, .registry = r->registry, .run = &r->config, .module = "llama3",
                                   .bootstrap = r->boot, .share_dir = CT_BENCH_SHARE, .version = "bench", .backends = backends,
                                   .is_interactive = kind != 0};
    must(cti_trainer_open(&o, &r->trainer, &err), &err);
    must(cti_trainer_start(r->trainer, &err), &err);
}

static void close_run(run *r)
{
    cti_trainer_close(&r->trainer);
    cti_run_config_deinit(&r->config);
    cti_problems_deinit(&r->problems);
    ct_registry_destroy(&r->registry);
    ct_bootstrap_destroy(&r->boot);
    ct_log_destroy(&r->log);
    (void)fclose(r->sink);
}

/* By the clock, and of the processor. */
typedef struct cost {
    double seconds, processor;
} cost;

static double processor_seconds(void)
{
    struct rusage use;
    (void)getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) + (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

static cost block(run *r, int64_t n_steps)
{
    ct_err err = {0};
    cti_step_report report;
    const double processor = processor_seconds();
    const int64_t start = cti_now_ns();
    for (int64_t i = 0; i < n_steps; i++) {
        must(cti_trainer_advance(r->trainer, &report, &err), &err);
    }
    cti_observer_flush(r->trainer);
    return (cost){cti_seconds_since(start), processor_seconds() - processor};
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    int64_t rows = 1, rounds = 40, steps = 10;
    if ((argc > 1 && (!cti_parse_i64(argv[1], &rows) || rows < 1)) ||
        (argc > 2 && (!cti_parse_i64(argv[2], &rounds) || rounds < 1 || rounds > MAX_ROUNDS)) ||
        (argc > 3 && (!cti_parse_i64(argv[3], &steps) || steps < 1))) {
        (void)fprintf(stderr, "usage: bench_overhead [ROWS] [ROUNDS] [STEPS]\n");
        return 2;
    }
    static double ratios[2][N_KINDS][MAX_ROUNDS]; /* clock, processor */
    char dir[] = "/tmp/bench-overhead-XXXXXX";
    ct_err err = {0};
    run runs[N_KINDS] = {0};
    if (mkdtemp(dir) == NULL) {
        perror(dir);
        return 1;
    }
    for (int k = 0; k < N_KINDS; k++) {
        open_run(&runs[k], k, dir, argc > 1 ? argv[1] : "1");
        (void)block(&runs[k], steps); /* buffers, files, the first profile */
    }
    for (int64_t n = 0; n < rounds; n++) {
        cost costs[N_KINDS];
        for (int64_t i = 0; i < N_KINDS; i++) { /* who goes first changes */
            const int64_t k = n % 2 == 0 ? (i + n) % N_KINDS : (2 * N_KINDS - 1 - i + n) % N_KINDS;
            costs[k] = block(&runs[k], steps);
        }
        for (int k = 0; k < N_KINDS; k++) {
            ratios[0][k][n] = costs[k].seconds / (k == 0 ? 1.0 : costs[0].seconds);
            ratios[1][k][n] = costs[k].processor / (k == 0 ? 1.0 : costs[0].processor);
        }
    }
    for (int k = 0; k < 2 * N_KINDS; k++) {
        qsort(ratios[k / N_KINDS][k % N_KINDS], (size_t)rounds, sizeof(double), by_value);
    }
    printf("%lldx256: %.2f ms a step without records, %.2f of the processor; %lld rounds of %lld steps\n", (long long)rows,
           ratios[0][0][rounds / 2] * 1e3 / (double)steps, ratios[1][0][rounds / 2] * 1e3 / (double)steps, (long long)rounds, (long long)steps);
    for (int k = 1; k < N_KINDS; k++) {
        for (int by = 0; by < 2; by++) {
            const double *r = ratios[by][k];
            printf("  %-12s %-9s %+.2f %% (quartiles %+.2f .. %+.2f)\n", kind_names[k], by == 0 ? "clock" : "processor", 100.0 * (r[rounds / 2] - 1.0),
                   100.0 * (r[rounds / 4] - 1.0), 100.0 * (r[3 * rounds / 4] - 1.0));
        }
    }
    for (int k = 0; k < N_KINDS; k++) {
        close_run(&runs[k]);
    }
    must(cti_remove_tree(dir, &err), &err);
    return 0;
}
