/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: model component config passes autodiff ops ir mesh base */
/* labels: fast */
/* Random command lines and environments: the settings are resolved or refused with a line for each fault, never a crash; what is resolved
 * dumps as JSON. */
#include "base/base.h"
#include "component/component.h"
#include "fuzz/fuzz.h"
#include "model/model.h"

static const char *const words[] = {
    "--module", "llama3", "--config", "llama3_debugmodel", "llama3_8b", "--training.steps", "--training.seq_len", "--training.seq-len=64",
    "-1", "0", "1", "2", "10", "1e3", "1_000", "99999999999999999999", "nan", "inf", "None", "none", "true", "false", "", "-", "--",
    "--checkpoint.enable", "--checkpoint.no-enable", "--checkpoint.enable=maybe", "--optimizer.param-groups.0.optimizer-kwargs.betas",
    "--optimizer.param-groups.9.pattern", "--optimizer.lr", "0.9", "0.95", "--override.imports", "a.b", "a.b={\"k\": 1}", "={", "a,b",
    "activation-checkpoint:full", "activation-checkpoint:", "activation-checkpoint:memory-budget", "--activation-checkpoint.memory-budget",
    "--parallelism.module-fqns-per-model-part", "x,y", "z", "--parallelism.tensor-parallel-degree", "--dataloader.streams", "--help", "-h",
    "--training.global-batch-size", "--training.local-batch-size=4", "--debug.seed", "--loss.num-chunks", "--\xff\xfe", "--a.b.c.d.e.f",
    "--training", "--training.", "--.steps", "--training.steps=", "--module=", "--checkpoint.exclude-from-loading", "optimizer,lr_scheduler"};
enum { N_WORDS = sizeof words / sizeof words[0], MAX_ARGS = 24 };

static void test_random(void **state)
{
    (void)state;
    const ct_alloc *alloc = ct_alloc_system();
    ct_registry *registry = NULL;
    ct_err err = {0};
    int n_ok = 0, n_refused = 0;
    assert_int_equal(ct_registry_create(alloc, &registry, &err), CT_OK);
    assert_int_equal(cti_register_llama3(registry, &err), CT_OK);
    fuzz_case c = fuzz_begin("cmdline", 3000);
    const bool is_whole = c.end - c.seed >= 3000;
    while (fuzz_next(&c)) {
        const uint64_t seed = c.seed;
        const cti_rng_key key = cti_rng_key_make(seed, "cmdline");
        const char *argv[MAX_ARGS + 5];
        int argc = 0;
        if (seed % 3 != 0) { /* most cases get past the first hurdle */
            argv[argc++] = "--module";
            argv[argc++] = "llama3";
            argv[argc++] = "--config";
            argv[argc++] = "llama3_debugmodel";
        }
        const int n = (int)cti_rng_below(key, 0, seed % 5 == 0 ? MAX_ARGS : 4);
        for (int i = 0; i < n; i++) {
            argv[argc++] = words[cti_rng_below(key, 1 + (uint64_t)i, N_WORDS)];
        }
        static const char *const environs[][2] = {{NULL}, {"CTITAN_TRAINING__STEPS=5", NULL}, {"CTITAN_TRAINING__STEPS=x", NULL}, {"CTITAN_NO__SUCH=1", NULL}};
        cti_problems problems = {.text = {.alloc = alloc}};
        cti_run_config run = {0};
        const cti_resolve_options o = {argc, argv, environs[seed % 4], (int64_t)(seed % 3), seed % 7 == 0};
        ct_err why = {0};
        const ct_status st = cti_run_config_resolve(alloc, registry, NULL, &o, &problems, &run, &why);
        if (st == CT_OK) {
            json_t *json = NULL;
            n_ok++;
            if (problems.n != 0 && !run.wants_help) { /* with --help the help is all that is wanted */
                fail_msg("case %d: resolved with problems: %s", (int)seed, cti_str_text(&problems.text));
            }
            assert_int_equal(cti_config_json(run.tree, run.root, &json, &why), CT_OK);
            json_decref(json);
        } else {
            n_refused++;
            assert_int_equal(st, CT_ERR_USAGE);
            assert_true(problems.n > 0 && why.message[0] != '\0');
            int lines = 0;
            for (const char *p = cti_str_text(&problems.text); *p != '\0'; p++) {
                lines += *p == '\n';
            }
            assert_int_equal(lines, problems.n);
        }
        cti_run_config_deinit(&run);
        cti_problems_deinit(&problems);
    }
    printf("%d resolved, %d refused\n", n_ok, n_refused);
    assert_true(!is_whole || (n_ok > 100 && n_refused > 1000));
    ct_registry_destroy(&registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
