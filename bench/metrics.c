/* SPDX-License-Identifier: Apache-2.0 */
/* bench_metrics: what the records of a step cost the thread that trains, and what the thread that writes them spends. Every step logs:
 * nine spans and two scalars of the trace, a row of metrics.csv, an event of TensorBoard, the progress line (to /dev/null).
 *
 *     bench_metrics [STEPS]     microseconds of a step, by part, medians of 9 rounds */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base.h"
#include "metrics/metrics.h"

enum { ROUNDS = 9, N_SPANS = 9, N_SCALARS = 17 };

static void must(ct_status st, const ct_err *err)
{
    if (st != CT_OK) {
        (void)fprintf(stderr, "bench_metrics: %s\n", err->message);
        exit(1);
    }
}

typedef struct things {
    cti_trace *trace;
    cti_writer_file *csv, *events;
    cti_progress progress;
    cti_scalar scalars[N_SCALARS];
    cti_str text;
} things;

static void trace_step(things *t, int64_t step)
{
    static const char *const names[N_SPANS] = {"step", "fetching_batch", "fwd_bwd", "post_dataloading_process", "optim", "collect_dist_metrics", "a", "b", "c"};
    cti_trace_step(t->trace, step, step);
    for (int i = 0; i < N_SPANS; i++) {
        CTI_SPAN_END(t->trace, names[i], CTI_SPAN_BEGIN(t->trace, names[i]), true);
    }
    cti_trace_scalar(t->trace, CTI_HERE, "local_valid_tokens", 256.0);
    cti_trace_scalar(t->trace, CTI_HERE, "global_valid_tokens", 256.0);
}

static void csv_step(things *t, int64_t step)
{
    cti_str_reset(&t->text);
    cti_csv_row(&t->text, step, 1796036636.945, t->scalars, N_SCALARS);
    cti_writer_add(t->csv, t->text.data, t->text.len);
}

static void events_step(things *t, int64_t step)
{
    cti_str_reset(&t->text);
    cti_tfevents_scalars(&t->text, 1796036636.945, step, t->scalars, N_SCALARS);
    cti_writer_add(t->events, t->text.data, t->text.len);
}

static void progress_step(things *t, int64_t step)
{
    cti_progress_step(&t->progress, step, 8.0 / (double)step, 256, cti_now_ns());
}

static double cpu_of(int who)
{
    struct rusage use;
    (void)getrusage(who, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) + (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(things *t, int64_t step);
    } parts[] = {{"trace", trace_step}, {"metrics.csv", csv_step}, {"TensorBoard", events_step}, {"progress", progress_step}};
    int64_t n_steps = 1000;
    if (argc > 1 && (!cti_parse_i64(argv[1], &n_steps) || n_steps < 1)) {
        (void)fprintf(stderr, "usage: bench_metrics [STEPS]\n");
        return 2;
    }
    const ct_alloc *alloc = ct_alloc_system();
    char dir[] = "/tmp/bench-metrics-XXXXXX", path[64];
    ct_err err = {0};
    cti_writer *w;
    ct_log *log;
    things t = {.text.alloc = alloc};
    FILE *nowhere = fopen("/dev/null", "w");
    if (mkdtemp(dir) == NULL || nowhere == NULL) {
        perror(dir);
        return 1;
    }
    must(ct_log_create(alloc, nowhere, CT_LOG_INFO, &log, &err), &err);
    must(cti_writer_create(alloc, NULL, &w, &err), &err);
    must(cti_trace_open(alloc, w, &(cti_trace_options){.folder = dir, .source = "training"}, &t.trace, &err), &err);
    (void)snprintf(path, sizeof path, "%s/metrics.csv", dir);
    t.csv = cti_writer_open(w, path);
    (void)snprintf(path, sizeof path, "%s/events", dir);
    t.events = cti_writer_open(w, path);
    cti_progress_init(&t.progress, alloc, log, 1 << 30);
    for (int i = 0; i < N_SCALARS; i++) {
        t.scalars[i] = (cti_scalar){"memory/max_reserved(GiB)", 8.230227188102972 / (i + 1), true};
    }
    double all = 0.0;
    for (size_t p = 0; p < sizeof parts / sizeof parts[0]; p++) {
        double us[ROUNDS], of_writer[ROUNDS];
        for (int r = 0; r < ROUNDS; r++) {
            const double process = cpu_of(RUSAGE_SELF), thread = cpu_of(RUSAGE_THREAD);
            for (int64_t step = 1; step <= n_steps; step++) {
                parts[p].run(&t, step);
            }
            us[r] = (cpu_of(RUSAGE_THREAD) - thread) * 1e6 / (double)n_steps;
            cti_writer_flush(w);
            of_writer[r] = (cpu_of(RUSAGE_SELF) - process) * 1e6 / (double)n_steps - us[r];
        }
        qsort(us, ROUNDS, sizeof us[0], by_value);
        qsort(of_writer, ROUNDS, sizeof of_writer[0], by_value);
        printf("%-12s %7.2f us a step, and %6.2f us of the thread that writes\n", parts[p].name, us[ROUNDS / 2], of_writer[ROUNDS / 2]);
        all += us[ROUNDS / 2];
    }
    printf("%-12s %7.2f us a step: below 1 %% of steps longer than %.1f ms\n", "all", all, all / 10.0);
    cti_progress_deinit(&t.progress);
    cti_trace_close(&t.trace);
    cti_writer_destroy(&w);
    cti_str_deinit(&t.text);
    ct_log_destroy(&log);
    (void)fclose(nowhere);
    must(cti_remove_tree(dir, &err), &err);
    return 0;
}
