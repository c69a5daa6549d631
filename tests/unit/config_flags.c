/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: model component config passes autodiff ops ir mesh base */
/* labels: fast */
/* docs/flags.md is what the tables say of every flag (CT_UPDATE_DOCS=1 writes it); TorchTitan's 120 are all there; what is refused has a
 * reason and a place. */
#include "base/base.h"
#include "component/component.h"
#include "config/flags.h"
#include "model/model.h"
#include "unit/base_test.h"

static const char *const state_words[] = {"works", "without effect", "refused", "waits"};

static bool is_torchtitans(const char *tsv, const char *flag)
{
    const size_t n = strlen(flag);
    for (const char *line = tsv; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, flag, n) == 0 && line[n] == '\t') {
            return true;
        }
    }
    /* not in the list, since they stand behind a word; but for ours */
    return cti_starts_with(flag, "activation-checkpoint.") && strcmp(flag, "activation-checkpoint.memory-limit-gib") != 0;
}

static void add_row(cti_str *page, const cti_settings *settings, const cti_setting *s, const char *flag, bool ours, int counts[2][4])
{
    const cti_flag_report r = cti_flag_report_of(settings, s);
    cti_str_printf(page, "| `--%s` | %s | ", flag, state_words[r.state]);
    if (r.state == CTI_FLAG_REFUSED) {
        if (r.place == NULL) {
            fail_msg("%s is refused and has no place in src/config/flags.c", s->path);
        }
        cti_str_printf(page, "%s | %s |\n", r.reason, r.place);
    } else if (r.state == CTI_FLAG_WAITS) {
        ct_err err = {0};
        ct_arena *arena;
        assert_int_equal(ct_arena_create(ct_alloc_system(), 0, &arena, &err), CT_OK);
        cti_str_printf(page, "for `%s` | |\n", cti_flag_name(arena, r.reason, &err));
        ct_arena_destroy(&arena);
    } else {
        cti_str_add(page, r.state == CTI_FLAG_NO_EFFECT ? s->field->help : "");
        cti_str_add(page, " | |\n");
    }
    counts[ours][r.state]++;
}

static void test_page(void **state)
{
    (void)state;
    ct_registry *registry;
    ct_err err = {0};
    cti_problems problems = {.text = {.alloc = ct_alloc_system()}};
    cti_run_config run;
    cti_settings settings;
    char *tsv, *have = NULL;
    size_t size;
    const char *argv[] = {"--module", "llama3", "--config", "llama3_debugmodel"};
    const cti_resolve_options o = {.argc = 4, .argv = argv};
    assert_int_equal(ct_registry_create(ct_alloc_system(), &registry, &err), CT_OK);
    assert_int_equal(cti_register_llama3(registry, &err), CT_OK);
    assert_int_equal(cti_run_config_resolve(ct_alloc_system(), registry, NULL, &o, &problems, &run, &err), CT_OK);
    assert_int_equal(cti_file_read(ct_alloc_system(), CT_SOURCE_DIR "/tests/cli/flags_torchtitan_0.3.0.tsv", 0, &tsv, &size, &err), CT_OK);
    cti_str rows[2] = {{.alloc = ct_alloc_system()}, {.alloc = ct_alloc_system()}}, page = {.alloc = ct_alloc_system()};
    int counts[2][4] = {{0}};
    for (int k = 0; k < cti_n_ac_kinds; k++) {
        assert_int_equal(cti_set_ac(run.tree, run.root, cti_ac_kinds[k].cls, &err), CT_OK);
        assert_int_equal(cti_settings_list(run.tree, run.root, &settings, &err), CT_OK);
        for (size_t i = 0; i < settings.n; i++) {
            const cti_setting *s = &settings.items[i];
            const char *flag = cti_flag_name(ct_tree_arena(run.tree), s->path, &err) + 2;
            const bool is_ac = cti_starts_with(s->path, "activation_checkpoint.");
            char begin[160];
            snprintf(begin, sizeof begin, "| `--%s` |", flag);
            if (!s->is_listed || !s->is_flag || (k > 0 && (!is_ac || strstr(cti_str_text(&rows[0]), begin) != NULL))) {
                continue;
            }
            const bool ours = !is_torchtitans(tsv, flag);
            add_row(&rows[ours], &settings, s, flag, ours, counts);
        }
    }
    cti_str_printf(&page, "# Flags of TorchTitan 0.3.0 in ctitan\n\nMade from the tables (`src/config/`); `unit.config_flags` holds this page to them. *works*: as its help says "
                          "([settings.md](settings.md)). *without effect*: taken, since scripts carry it; nothing here depends on it. *refused*: any value but the default ends with this "
                          "sentence and exit code 2. *waits*: belongs to a part that is refused.\n\nOf %d: %d work, %d are without effect, %d are refused, %d wait.\n\n| flag | state | why, or for what | "
                          "its place |\n| --- | --- | --- | --- |\n%s",
                   counts[0][0] + counts[0][1] + counts[0][2] + counts[0][3], counts[0][0], counts[0][1], counts[0][2], counts[0][3], cti_str_text(&rows[0]));
    cti_str_printf(&page, "\n## ctitan's own\n\n| flag | state | why, or for what | its place |\n| --- | --- | --- | --- |\n%s", cti_str_text(&rows[1]));
    assert_int_equal(counts[0][0] + counts[0][1] + counts[0][2] + counts[0][3], 120 + 6); /* and six of the kinds of activation checkpointing */
    const char *path = CT_SOURCE_DIR "/docs/flags.md";
    if (getenv("CT_UPDATE_DOCS") != NULL) {
        assert_int_equal(cti_file_write_atomic(path, page.data, page.len, &err), CT_OK);
    }
    assert_int_equal(cti_file_read(ct_alloc_system(), path, 0, &have, &size, &err), CT_OK);
    if (strcmp(have, page.data) != 0) {
        fail_msg("docs/flags.md is not what the tables say: CT_UPDATE_DOCS=1 writes it");
    }
    ct_alloc_free(ct_alloc_system(), have);
    ct_alloc_free(ct_alloc_system(), tsv);
    cti_str_deinit(&rows[0]);
    cti_str_deinit(&rows[1]);
    cti_str_deinit(&page);
    cti_run_config_deinit(&run);
    cti_problems_deinit(&problems);
    ct_registry_destroy(&registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_page)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
