/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: component config base ir mesh ops */
/* labels: fast */
/* Random tokens of override.imports and random arguments: taken or refused with a reason, never a crash; a component that took its arguments has every
 * value in its bounds. */
#include "component/component.h"
#include "fuzz/fuzz.h"

static const char *const words[] = {"{}", "\"", "lr", "\"lr\": ", "betas", "[0.9, 0.95]", "null", "true", "-1", "1e400", "1e-5", "[", "]", "{", "}", ",", "=", ".",
                                    "folder", "\"folder\": \"x\"", "exclude_from_loading", "[\"dataloader\"]", "\\u0000", "log_freq", "99999999999999999999", "nan"};
static const char *const samples[] = {"{\"lr\": 0.001, \"betas\": [0.9, 0.95], \"weight_decay\": 0}",
                                      "{\"folder\": \"kept here\", \"interval\": 5, \"exclude_from_loading\": [\"dataloader\"], \"initial_load_path\": null}",
                                      "{\"log_freq\": 3, \"enable_tensorboard\": true}", "{\"steps\": 10, \"max_norm\": 1.5, \"dtype\": \"float32\"}"};

static void arguments(void **state)
{
    (void)state;
    static const ct_class *const classes[] = {&cti_optimizer_kwargs_class, &cti_checkpoint_class, &cti_metrics_class, &cti_training_class};
    cti_str bytes = {.alloc = ct_alloc_system()};
    int n_taken = 0, n_refused = 0;
    fuzz_case c = fuzz_begin("override-args", 4000);
    const bool is_whole = c.end - c.seed >= 4000;
    while (fuzz_next(&c)) {
        ct_err err = {0};
        ct_tree *tree;
        ct_component *component;
        const size_t k = fuzz_below(&c, N_OF(samples));
        fuzz_mutate(&c, &bytes, samples[k], strlen(samples[k]), words, N_OF(words));
        assert_int_equal(ct_tree_create(ct_alloc_system(), &tree, &err), CT_OK);
        assert_int_equal(ct_component_create(tree, classes[fuzz_below(&c, 8) == 0 ? 0 : k], &component, &err), CT_OK);
        const ct_status st = ct_component_set_json(tree, component, cti_str_text(&bytes), &err);
        if (st == CT_OK) {
            n_taken++;
        } else {
            n_refused++;
            if ((st != CT_ERR_USAGE && st != CT_ERR_FORMAT) || err.message[0] == '\0') {
                fail_msg("case %llu: status %d, '%s'", (unsigned long long)c.seed, (int)st, err.message);
            }
        }
        for (int32_t i = 0; i < component->cls->n_fields; i++) { /* reads all of it */
            assert_non_null(ct_field_text(&component->cls->fields[i], component->values, ct_tree_arena(tree), &err));
        }
        ct_tree_destroy(&tree);
    }
    printf("%d taken, %d refused\n", n_taken, n_refused);
    assert_true(!is_whole || (n_taken > 0 && n_refused > 0));
    cti_str_deinit(&bytes);
}

static void tokens(void **state)
{
    (void)state;
    static const char *const tokens[] = {"npu_compat.npu_attention", "a.b,c.d,e.f", "a.b={\"k\": [1, {\"l\": null}]}", "a.b={}"};
    cti_str bytes = {.alloc = ct_alloc_system()};
    fuzz_case c = fuzz_begin("override-tokens", 4000);
    while (fuzz_next(&c)) {
        ct_err err = {0};
        ct_tree *tree;
        cti_override_entry *entries;
        size_t n = 0;
        const size_t k = fuzz_below(&c, N_OF(tokens));
        fuzz_mutate(&c, &bytes, tokens[k], strlen(tokens[k]), words, N_OF(words));
        const char *items[2] = {cti_str_text(&bytes), tokens[fuzz_below(&c, N_OF(tokens))]};
        assert_int_equal(ct_tree_create(ct_alloc_system(), &tree, &err), CT_OK);
        const ct_str_list list = {2, items};
        const ct_status st = cti_override_entries(&list, ct_tree_arena(tree), &entries, &n, &err);
        if (st != CT_OK && (st != CT_ERR_USAGE || err.message[0] == '\0')) {
            fail_msg("case %llu: status %d, '%s'", (unsigned long long)c.seed, (int)st, err.message);
        }
        for (size_t i = 0; st == CT_OK && i < n; i++) { /* a target with a dot, arguments that are an object */
            assert_non_null(strchr(entries[i].target, '.'));
            assert_non_null(strchr(entries[i].args_json, '{'));
        }
        ct_tree_destroy(&tree);
    }
    cti_str_deinit(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(arguments), cmocka_unit_test(tokens)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
