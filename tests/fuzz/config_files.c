/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: model component config passes autodiff ops ir mesh base */
/* labels: fast */
/* Files of settings, changed at random: resolved or refused with a line for each fault, never a crash, never without end; what was resolved
 * saves as YAML and loads again without a complaint about the file. */
#include <unistd.h>

#include "base/base.h"
#include "component/component.h"
#include "config/files.h"
#include "fuzz/fuzz.h"
#include "model/model.h"

static const char yaml[] =
    "base: llama3_debugmodel\nmodule: llama3\ngiven: [training.steps]\n"
    "training: {steps: 5, seq-len: 64, max_norm: .inf, dtype: float32}\n"
    "optimizer:\n  param_groups:\n    - pattern: 'norm|bias'\n      optimizer_kwargs: &k {lr: 1e-3, betas: [0.9, 0.95], eps: 1e-8}\n    - optimizer_kwargs: *k\n"
    "lr_scheduler.decay_ratio: ~\nactivation_checkpoint: full\nloss: {class: CrossEntropyLoss}\n"
    "parallelism:\n  module_fqns_per_model_part: [[a, b], 'c,d', []]\ncheckpoint:\n  exclude_from_loading: [optimizer, lr_scheduler]\n"
    "dump_folder: \"out\\n\\u00e9\"\nhf_assets_path: |\n  folded\n  text\nmodel_spec:\n  n_layers: 2\n  dim: 64\n  n_heads: 4\n  n_kv_heads: 2\n"
    "  model: {layers: {'*': {attention: {rope: {theta: 1e4}}}, 0: {feed_forward: {w1: {init_std: 0.5}}}}}\n";
static const char json[] =
    "{\"base\": \"llama3_debugmodel\", \"training\": {\"steps\": 5, \"max_norm\": \"inf\"}, \"activation_checkpoint\": {\"class\": \"FullAC\"},\n"
    " \"optimizer\": {\"param_groups\": [{\"optimizer_kwargs\": {\"betas\": [0.9, 0.95]}}]}, \"dump_folder\": \"\\ud83d\\ude00\\n\", \"debug\": {\"seed\": null}}\n";
static const char *const words[] = {"base", "base: ", "- ", ": ", "{", "}", "[", "]", "&a ", "*a", "*k", "!!str ", "!!python/x ", "<<: ", "---\n", "...\n", "null", "~", "no", "010",
                                    "1e-8", "1:30", "\t", "\r\n", "\xef\xbb\xbf", "\xff", "\"", "'", "|\n", ">\n", "? ", "#", "%YAML 1.1\n", "\\u0000", "\\ud800", "training.steps: 3\n",
                                    "n_layers: 4096", "dim: 7", "given: ", "'*': ", "class: ", "model_spec", "\n", "  "};

static void run_one(fuzz_case *c, const ct_registry *registry, const char *path, int *n_ok)
{
    const ct_alloc *alloc = ct_alloc_system();
    const char *argv[] = {"--config", path};
    const cti_resolve_options o = {.argc = 2, .argv = argv};
    cti_problems problems = {.text = {.alloc = alloc}};
    cti_run_config run = {0};
    ct_err err = {0};
    const ct_status st = cti_run_config_resolve(alloc, registry, NULL, &o, &problems, &run, &err);
    int lines = 0;
    for (const char *p = cti_str_text(&problems.text); *p != '\0'; p++) {
        lines += *p == '\n';
    }
    if ((st != CT_OK && st != CT_ERR_USAGE) || (st == CT_OK) != (problems.n == 0) || lines != problems.n) {
        fail_msg("case %llu: %s, %d problems in %d lines: %s", (unsigned long long)c->seed, ct_status_name(st), problems.n, lines, cti_str_text(&problems.text));
    }
    if (st == CT_OK) {
        char again[96];
        cti_str text = {.alloc = alloc};
        (*n_ok)++;
        snprintf(again, sizeof again, "%s.again.yaml", path);
        assert_int_equal(cti_run_config_yaml(&run, &text, &err), CT_OK);
        FILE *f = fopen(again, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(text.data, 1, text.len, f), text.len);
        fclose(f);
        const char *argv2[] = {"--config", again};
        const cti_resolve_options o2 = {.argc = 2, .argv = argv2};
        cti_run_config back = {0};
        if (cti_run_config_resolve(alloc, registry, NULL, &o2, &problems, &back, &err) != CT_OK) {
            fail_msg("case %llu: what was saved is refused: %s", (unsigned long long)c->seed, cti_str_text(&problems.text));
        }
        cti_run_config_deinit(&back);
        cti_str_deinit(&text);
    }
    cti_run_config_deinit(&run);
    cti_problems_deinit(&problems);
}

static void test_mutations(void **state)
{
    (void)state;
    ct_registry *registry;
    ct_err err = {0};
    char dir[] = "/tmp/ct_fuzz_XXXXXX", path[2][64];
    assert_non_null(mkdtemp(dir));
    snprintf(path[0], sizeof path[0], "%s/a.yaml", dir);
    snprintf(path[1], sizeof path[1], "%s/a.json", dir);
    assert_int_equal(ct_registry_create(ct_alloc_system(), &registry, &err), CT_OK);
    assert_int_equal(cti_register_llama3(registry, &err), CT_OK);
    cti_str bytes = {.alloc = ct_alloc_system()};
    int n_ok = 0, n = 0;
    for (fuzz_case c = fuzz_begin("config files", 1500); fuzz_next(&c); n++) {
        const bool is_json = fuzz_below(&c, 4) == 0;
        fuzz_mutate(&c, &bytes, is_json ? json : yaml, (is_json ? sizeof json : sizeof yaml) - 1, words, N_OF(words));
        FILE *f = fopen(path[is_json], "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(cti_str_text(&bytes), 1, bytes.len, f), bytes.len);
        fclose(f);
        run_one(&c, registry, path[is_json], &n_ok);
    }
    printf("%d of %d resolved\n", n_ok, n);
    assert_true(n < 1500 || (n_ok > n / 50 && n_ok < n));
    cti_str_deinit(&bytes);
    ct_registry_destroy(&registry);
    assert_int_equal(cti_remove_tree(dir, &err), CT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mutations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
