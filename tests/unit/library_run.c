/* SPDX-License-Identifier: Apache-2.0 */
/* labels: fast */
/* The public ct_run_ functions: runs one after the other in one process, each with the same losses; wrong structs and calls are refused by
 * name; a failed open leaves nothing open; stopping, saving and going on; structs of older and of newer callers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "ctitan/run.h"

static char folder[64];

typedef struct log_lines {
    int n, n_starts;
} log_lines;

static void on_log(void *ctx, ct_log_level level, const char *text)
{
    (void)level;
    log_lines *lines = ctx;
    lines->n++;
    lines->n_starts += strstr(text, "Training starts at step") != NULL;
}

enum { MAX_SETTINGS = 24 };
typedef struct settings {
    const char *items[MAX_SETTINGS];
    size_t n;
} settings;

/* Three steps of a small model, and what is given. */
static settings with(const char *const *more, size_t n_more)
{
    settings s = {{"--module", "llama3", "--config", "llama3_debugmodel", "--training.local-batch-size", "1", "--training.seq-len", "16",
                   "--debug.seed", "7", "--model-spec.n-layers", "1", "--dump-folder", folder, "--training.steps"},
                  15};
    assert_true(s.n + n_more + 1 <= MAX_SETTINGS);
    s.items[s.n++] = "3";
    for (size_t i = 0; i < n_more; i++) {
        s.items[s.n++] = more[i];
    }
    return s;
}
#define WITH(...) with((const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static ct_run *open_run(const settings *s, log_lines *lines)
{
    const ct_run_options o = {.size_bytes = sizeof o, .settings = s->items, .n_settings = s->n, .on_log = lines != NULL ? on_log : NULL, .log_ctx = lines};
    ct_err err = {0};
    ct_run *run = NULL;
    if (ct_run_open(&o, &run, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    assert_non_null(run);
    return run;
}

static void refused(const ct_run_options *o, ct_status status, const char *text)
{
    ct_err err = {0};
    ct_run *run = (ct_run *)&err; /* must become NULL */
    assert_int_equal(ct_run_open(o, &run, &err), status);
    assert_null(run);
    if (strstr(err.message, text) == NULL) {
        fail_msg("wanted '%s' in: %s", text, err.message);
    }
}

static void one_after_the_other(void **state)
{
    (void)state;
    double losses[2][3];
    for (int k = 0; k < 2; k++) {
        log_lines lines = {0};
        const settings s = WITH("--metrics.log-freq", "1");
        ct_run *run = open_run(&s, &lines);
        ct_run_facts facts = {.size_bytes = sizeof facts};
        assert_int_equal(ct_run_facts_get(run, &facts, NULL), CT_OK);
        assert_int_equal(facts.first_step, 1);
        assert_int_equal(facts.last_step, 3);
        assert_int_equal(facts.global_batch, 1);
        assert_int_equal(facts.seq_len, 16);
        assert_int_equal(facts.world_size, 1);
        assert_true(facts.n_parameters > 1000 && facts.planned_bytes > facts.n_parameters * 4);
        ct_step_metrics m = {.size_bytes = sizeof m};
        for (int i = 0; i < 3; i++) {
            assert_int_equal(ct_run_step(run, &m, NULL), CT_OK);
            assert_int_equal(m.step, i + 1);
            assert_int_equal(m.tokens_seen, 16 * (i + 1));
            assert_int_equal(m.is_last, i == 2);
            assert_int_equal(m.was_updated, 1);
            assert_true(m.seconds > 0.0 && m.learning_rate > 0.0 && m.grad_norm > 0.0 && m.peak_memory_bytes > 0);
            assert_true(m.max_loss == m.loss);
            losses[k][i] = m.loss;
        }
        for (int i = 0; i < 2; i++) { /* again and again */
            assert_int_equal(ct_run_step(run, &m, NULL), CT_END_OF_DATA);
        }
        assert_int_equal(lines.n_starts, 1);
        ct_run_close(&run);
        assert_null(run);
        ct_run_close(&run);
    }
    assert_memory_equal(losses[0], losses[1], sizeof losses[0]);
}

static void wrong_options(void **state)
{
    (void)state;
    const settings s = WITH("--training.stepss", "3", "--training.seq-len", "-4");
    refused(&(ct_run_options){0}, CT_ERR_USAGE, "size_bytes is 0");
    refused(&(ct_run_options){.size_bytes = sizeof(ct_run_options)}, CT_ERR_USAGE, "--module");
    refused(&(ct_run_options){.size_bytes = sizeof(ct_run_options), .n_settings = 2}, CT_ERR_USAGE, "n_settings");
    refused(&(ct_run_options){.size_bytes = sizeof(ct_run_options), .reserved = 1}, CT_ERR_USAGE, "reserved");
    const char *const with_null[] = {"--module", NULL};
    refused(&(ct_run_options){.size_bytes = sizeof(ct_run_options), .settings = with_null, .n_settings = 2}, CT_ERR_USAGE, "settings[1] is NULL");
    ct_run_options o = {.size_bytes = sizeof o, .settings = s.items, .n_settings = s.n};
    refused(&o, CT_ERR_USAGE, "unknown flag (nearest: --training.steps)\n--training.seq-len: '-4' is too small"); /* all of them */
    const settings help = WITH("--help");
    o = (ct_run_options){.size_bytes = sizeof o, .settings = help.items, .n_settings = help.n};
    refused(&o, CT_ERR_USAGE, "--help");
    const settings good = WITH("--training.dtype", "float32");
    o = (ct_run_options){.size_bytes = sizeof o, .settings = good.items, .n_settings = good.n, .prefix = "/nowhere/at/all"};
    refused(&o, CT_ERR_NOT_FOUND, "/nowhere/at/all");
    ct_run *run = open_run(&good, NULL); /* what failed before left nothing open */
    o.prefix = NULL;
    refused(&o, CT_ERR_STATE, "a run is open");
    ct_run_close(&run);
}

/* A caller that was compiled with fewer fields, or with more. */
static void sizes(void **state)
{
    (void)state;
    const settings s = WITH("--training.dtype", "float32");
    ct_run *run = open_run(&s, NULL);
    ct_err err = {0};
    ct_step_metrics m = {.size_bytes = offsetof(ct_step_metrics, grad_norm), .grad_norm = -1.0};
    assert_int_equal(ct_run_step(run, &m, &err), CT_OK);
    assert_true(m.loss > 0.0 && m.grad_norm == -1.0);
    struct {
        ct_step_metrics known;
        double later[3];
    } more = {.known.size_bytes = sizeof more, .later = {1, 2, 3}};
    assert_int_equal(ct_run_step(run, &more.known, &err), CT_OK);
    assert_int_equal(more.known.step, 2);
    assert_true(more.known.size_bytes == sizeof more && more.later[0] == 0.0 && more.later[2] == 0.0);
    m.size_bytes = 0;
    assert_int_equal(ct_run_step(run, &m, &err), CT_ERR_USAGE); /* before the step: the run is as it was */
    assert_non_null(strstr(err.message, "ct_step_metrics.size_bytes is 0"));
    m.size_bytes = sizeof m;
    assert_int_equal(ct_run_step(run, &m, NULL), CT_OK);
    assert_int_equal(m.step, 3);
    assert_int_equal(ct_run_step(run, NULL, NULL), CT_END_OF_DATA);
    ct_run_close(&run);

    struct {
        ct_run_options known;
        const char *later;
    } options = {.known = {.size_bytes = sizeof options, .settings = s.items, .n_settings = s.n}, .later = "x"};
    refused(&options.known, CT_ERR_USAGE, "does not know");
    options.later = NULL;
    err = (ct_err){0};
    assert_int_equal(ct_run_open(&options.known, &run, &err), CT_OK);
    ct_run_close(&run);
    options.known.size_bytes = offsetof(ct_run_options, reads_environment);
    assert_int_equal(ct_run_open(&options.known, &run, &err), CT_OK);
    ct_run_close(&run);
}

static void stop_save_and_go_on(void **state)
{
    (void)state;
    ct_step_metrics m = {.size_bytes = sizeof m};
    const settings plain = WITH("--training.dtype", "float32");
    ct_err err = {0};
    ct_run *run = open_run(&plain, NULL);
    assert_int_equal(ct_run_step(run, &m, &err), CT_OK);
    assert_int_equal(ct_run_save(run, &err), CT_ERR_STATE);
    assert_non_null(strstr(err.message, "checkpoint.enable is off"));
    double want[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ct_run_step(run, &m, NULL), CT_OK); /* the refusal changed nothing */
        want[i] = m.loss;
    }
    ct_run_close(&run);

    const settings saving = WITH("--checkpoint.enable", "--checkpoint.interval", "1000");
    run = open_run(&saving, NULL);
    err = (ct_err){0};
    assert_int_equal(ct_run_save(run, &err), CT_ERR_STATE);
    assert_non_null(strstr(err.message, "no step is done"));
    assert_int_equal(ct_run_step(run, &m, NULL), CT_OK);
    assert_int_equal(ct_run_save(run, NULL), CT_OK);
    ct_run_close(&run); /* without the end */
    run = open_run(&saving, NULL);
    ct_run_facts facts = {.size_bytes = sizeof facts};
    assert_int_equal(ct_run_facts_get(run, &facts, NULL), CT_OK);
    assert_int_equal(facts.first_step, 2);
    ct_run_request_stop(run);
    assert_int_equal(ct_run_step(run, &m, NULL), CT_OK); /* and saves */
    assert_true(m.step == 2 && m.is_last && m.loss == want[0]);
    err = (ct_err){0};
    assert_int_equal(ct_run_step(run, &m, &err), CT_ERR_STOPPED);
    assert_non_null(strstr(err.message, "after step 2 of 3"));
    err = (ct_err){0};
    assert_int_equal(ct_run_step(run, &m, &err), CT_ERR_STATE);
    assert_non_null(strstr(err.message, "can only be closed"));
    ct_run_close(&run);
    run = open_run(&saving, NULL);
    assert_int_equal(ct_run_step(run, &m, NULL), CT_OK);
    assert_true(m.step == 3 && m.loss == want[1]);
    ct_run_close(&run);
}

/* A rate that ruins the weights at step 1: step 2 is not finite, goes back to step 1, and is not finite again. */
static void going_back_is_told(void **state)
{
    (void)state;
    ct_step_metrics m = {.size_bytes = sizeof m};
    const settings s = WITH("--checkpoint.enable", "--checkpoint.interval=1", "--checkpoint.folder=back", "--optimizer.lr=1e30", "--training.max-rollbacks=1");
    ct_err err = {0};
    ct_run *run = open_run(&s, NULL);
    assert_int_equal(ct_run_step(run, &m, NULL), CT_OK);
    assert_true(m.step == 1 && m.was_updated == 1);
    assert_int_equal(ct_run_step(run, &m, NULL), CT_OK);
    assert_true(m.step == 1 && m.was_updated == 0 && m.is_last == 0 && !(m.loss < HUGE_VAL && m.grad_norm < HUGE_VAL) && m.seconds > 0.0);
    assert_int_equal(ct_run_step(run, &m, &err), CT_ERR_NUMERIC);
    assert_non_null(strstr(err.message, "step 2: loss is"));
    ct_run_close(&run);
}

int main(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/ct-library-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_after_the_other), cmocka_unit_test(wrong_options), cmocka_unit_test(sizes),
                                       cmocka_unit_test(stop_save_and_go_on), cmocka_unit_test(going_back_is_told)};
    const int code = cmocka_run_group_tests(tests, NULL, NULL);
    return cti_remove_tree(folder, NULL) == CT_OK ? code : 1;
}
