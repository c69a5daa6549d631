/* SPDX-License-Identifier: Apache-2.0 */
/* labels: fast */
/* The loop as `ctitan train` runs it, with its loader's thread and its log: once warm, a step allocates nothing and takes no page fault, with
 * one rank and with two, whose collectives run beside the computation; and the device's memory is of huge pages where the system has them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/cpu/cpu.h"
#include "base/base.h"
#include "comm/store.h"
#include "model/model.h"
#include "train/trainer.h"

enum { WARM = 16, WINDOW = 8, N_WINDOWS = 3, N_STEPS = WARM + WINDOW * N_WINDOWS };

/* What the process had done when a step's line was written. */
typedef struct counts {
    int64_t allocations, faults;
} counts;
static counts at_step[N_STEPS + 1];
static int n_lines;

static atomic_int_fast64_t n_allocations;

static void *counting_resize(void *ctx, void *ptr, size_t size_bytes)
{
    const ct_alloc *inner = ctx;
    atomic_fetch_add(&n_allocations, size_bytes > 0);
    return inner->resize(inner->ctx, ptr, size_bytes);
}

static counts count_now(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return (counts){atomic_load(&n_allocations), usage.ru_minflt + usage.ru_majflt};
}

static void on_line(void *ctx, ct_log_level level, const char *text)
{
    (void)ctx;
    (void)level;
    const char *step = strstr(text, "step: ");
    if (step != NULL && strstr(text, "loss: ") != NULL) {
        n_lines++;
        const long number = strtol(step + 6, NULL, 10);
        assert_true(number == n_lines && number <= N_STEPS);
        at_step[number] = count_now();
    }
}

/* Few enough documents for all pages of the file to be read while the loop warms up. */
static void write_corpus(const char *path)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < 12; i++) {
        assert_true(fprintf(f, "{\"text\": \"Document %d of the corpus tells %d things, %d of them twice.\"}\n", i, i * 7, i * i) > 0);
    }
    assert_int_equal(fclose(f), 0);
}

/* Bytes in huge pages, and the largest mapping that asks for them ("hg" among its flags), over the process. */
static void huge_pages(int64_t *out_bytes, int64_t *out_asked)
{
    FILE *f = fopen("/proc/self/smaps", "r");
    assert_non_null(f);
    char line[512];
    int64_t size = 0;
    long long kib;
    *out_bytes = *out_asked = 0;
    while (fgets(line, sizeof line, f) != NULL) {
        if (sscanf(line, "Size: %lld kB", &kib) == 1) {
            size = kib * 1024;
        } else if (sscanf(line, "AnonHugePages: %lld kB", &kib) == 1) {
            *out_bytes += kib * 1024;
        } else if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " hg") != NULL) {
            *out_asked = cti_max_i64(*out_asked, size);
        }
    }
    assert_int_equal(fclose(f), 0);
}

typedef struct run {
    ct_alloc alloc;
    char folder[256], corpus[300];
    ct_log *log;
    FILE *sink;
    ct_registry *registry;
    ct_bootstrap *boot;
    cti_problems problems;
    cti_run_config config;
    cti_trainer *trainer;
    ct_err err;
} run;

static void ok(const run *r, ct_status st)
{
    if (st != CT_OK) {
        fail_msg("%s: %s", ct_status_name(st), r->err.message);
    }
}

/* place NULL: one rank, as the environment says. */
static void open_run(run *r, const ct_place *place)
{
    static const ct_backend *backends[2];
    static char n_steps[16];
    backends[0] = ct_backend_cpu();
    r->alloc = (ct_alloc){counting_resize, (void *)(uintptr_t)ct_alloc_system()};
    snprintf(r->folder, sizeof r->folder, "%s/test-warm-%d", CT_BINARY_DIR, (int)getpid());
    snprintf(r->corpus, sizeof r->corpus, "%s/corpus.jsonl", r->folder);
    snprintf(n_steps, sizeof n_steps, "%d", N_STEPS);
    ok(r, cti_make_dirs(r->folder, &r->err));
    write_corpus(r->corpus);
    const char *argv[] = {"--module", "llama3", "--config", "llama3_debugmodel", "--training.steps", n_steps,
                          "--training.local-batch-size", "1", "--training.seq-len", "64", "--metrics.log-freq", "1",
                          "--dump-folder", r->folder, "--dataloader.dataset-path", r->corpus, "--parallelism.data-parallel-overlap", "always"};
    ct_place one;
    ok(r, ct_place_from_env(NULL, NULL, &one, &r->err));
    ok(r, ct_bootstrap_create(&r->alloc, place != NULL ? place : &one, 60000, &r->boot, &r->err));
    ok(r, ct_registry_create(&r->alloc, &r->registry, &r->err));
    ok(r, cti_register_llama3(r->registry, &r->err));
    r->problems = (cti_problems){.text = {.alloc = &r->alloc}};
    const cti_resolve_options ro = {(int)(sizeof argv / sizeof argv[0]), argv, NULL, 1, false};
    ok(r, cti_run_config_resolve(&r->alloc, r->registry, NULL, &ro, &r->problems, &r->config, &r->err));
    r->sink = fopen("/dev/null", "w");
    assert_non_null(r->sink);
    ok(r, ct_log_create(&r->alloc, r->sink, CT_LOG_INFO, &r->log, &r->err));
    ct_log_set_hook(r->log, on_line, NULL);
    const cti_trainer_options o = {.alloc = &r->alloc,
                                   .log = r->log,
                                   .registry = r->registry,
                                   .run = &r->config,
                                   .module = "llama3",
                                   .bootstrap = r->boot,
                                   .share_dir = CT_SOURCE_DIR "/share/ctitan",
                                   .version = "test",
                                   .backends = backends};
    ok(r, cti_trainer_open(&o, &r->trainer, &r->err));
}

static void close_run(run *r)
{
    cti_trainer_close(&r->trainer);
    cti_run_config_deinit(&r->config);
    cti_problems_deinit(&r->problems);
    ct_registry_destroy(&r->registry);
    ct_bootstrap_destroy(&r->boot);
    ct_log_destroy(&r->log);
    assert_int_equal(fclose(r->sink), 0);
    ok(r, cti_remove_tree(r->folder, &r->err));
}

static bool has_huge_pages(void)
{
    char text[64] = "";
    FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
    if (f != NULL) {
        (void)fgets(text, sizeof text, f);
        (void)fclose(f);
    }
    return f != NULL && strstr(text, "[never]") == NULL;
}

static void memory_is_huge(const run *r)
{
    int64_t bytes, asked;
    const int64_t planned = r->trainer->engine->plan->total_bytes, huge = 2 << 20;
    huge_pages(&bytes, &asked);
    printf("planned %lld bytes, %lld of them in huge pages\n", (long long)planned, (long long)bytes);
    if (!has_huge_pages()) {
        printf("huge pages: not checked, the system has none\n");
        return;
    }
    assert_true(asked >= cti_round_up(planned, huge));
    /* The system may be short of them; that it gives none where all was asked for would be our mistake. */
    assert_true(bytes > 0);
}

static void run_quietly(const ct_place *place)
{
    run r = {0};
    open_run(&r, place);
    memory_is_huge(&r);
    n_lines = 0;
    ok(&r, cti_trainer_run(r.trainer, &r.err));
    close_run(&r);
    assert_int_equal(n_lines, N_STEPS);
    assert_int_equal(at_step[N_STEPS].allocations, at_step[WARM].allocations);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    printf("page faults: not counted, a sanitizer takes its own\n");
#else
    int64_t fewest = INT64_MAX; /* a page that the system took away comes back with a fault: not in each window */
    for (int w = 0; w < N_WINDOWS; w++) {
        const int64_t faults = at_step[WARM + (w + 1) * WINDOW].faults - at_step[WARM + w * WINDOW].faults;
        printf("%d steps: %lld page faults\n", WINDOW, (long long)faults);
        fewest = cti_min_i64(fewest, faults);
    }
    assert_int_equal(fewest, 0);
#endif
}

static void a_warm_step_is_quiet(void **state)
{
    (void)state;
    run_quietly(NULL);
}

static void so_it_is_on_two_ranks(void **state)
{
    (void)state;
    enum { N = 2 };
    if (access(CT_BINARY_DIR "/lib/ctitan/engines/gloo.so", R_OK) != 0) {
        printf("two ranks: left out, this build has no Gloo\n");
        return;
    }
    ct_err err = {0};
    int fd, port;
    pid_t pids[N];
    cti_store_server *server = NULL;
    assert_int_equal(cti_store_listen("127.0.0.1", 0, &fd, &port, &err), CT_OK);
    for (int rank = 0; rank < N; rank++) {
        pids[rank] = fork();
        assert_true(pids[rank] >= 0);
        if (pids[rank] == 0) { /* a failure here ends main() with it */
            ct_place place = {.rank = rank, .world_size = N, .local_rank = rank, .local_world_size = N, .master_port = port,
                              .store_is_supervised = true};
            (void)snprintf(place.master_addr, sizeof place.master_addr, "127.0.0.1");
            (void)close(fd);
            run_quietly(&place);
            exit(0);
        }
    }
    assert_int_equal(cti_store_server_start(ct_alloc_system(), fd, N, "", &server, &err), CT_OK);
    for (int rank = 0; rank < N; rank++) {
        int status = -1;
        assert_int_equal(waitpid(pids[rank], &status, 0), pids[rank]);
        assert_int_equal(status, 0);
    }
    cti_store_server_stop(&server);
}

int main(void)
{
#if defined(CT_EMULATED)
    printf("skipped: page faults and huge pages would be the emulator's\n");
    return 77;
#endif
    const struct CMUnitTest tests[] = {cmocka_unit_test(so_it_is_on_two_ranks), cmocka_unit_test(a_warm_step_is_quiet)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
