/* SPDX-License-Identifier: Apache-2.0 */
/* Command line, environment and registry into the settings of a run. */
#include <string.h>

#include "component/component.h"

static const char default_module[] = "llama3";
static const char default_config[] = "llama3_debugmodel";

/* The tree of --module and --config. Where that cannot be, a problem, and a tree of defaults against which the other arguments are
 * still checked. */
static ct_status make_tree(const ct_registry *registry, cti_plugins *plugins, const cti_cmdline *line,
                           cti_problems *problems, cti_run_config *run, ct_err *err)
{
    const int n_before = problems->n;
    ct_arena *arena = ct_tree_arena(run->tree);
    const char *module = line->module != NULL || !line->wants_help ? line->module : default_module;
    const char *config = line->config != NULL || !line->wants_help ? line->config : default_config;
    if (module == NULL && n_before == 0) {
        cti_problem_add(problems, "--module: is missing, such as --module %s", default_module);
    }
    if (config == NULL && n_before == 0) {
        cti_problem_add(problems, "--config: is missing, such as --config %s", default_config);
    }
    if (problems->n > n_before || n_before > 0) {
        return cti_trainer_create(run->tree, &run->root, err);
    }
    ct_err why = {0};
    ct_status st = CT_OK;
    if (plugins != NULL && !cti_registry_has_module(registry, module) && cti_plugins_finds(plugins, module)) {
        st = cti_plugins_load(plugins, module, &why);
    }
    if (st == CT_OK) {
        st = cti_registry_make(registry, module, config, run->tree, &run->root, &why);
    }
    if (st == CT_OK) {
        run->module = ct_arena_strdup(arena, module, err);
        run->config = ct_arena_strdup(arena, config, err);
        return run->module != NULL && run->config != NULL ? CT_OK : CT_ERR_MEMORY;
    }
    if (st != CT_ERR_USAGE) {
        return CT_FAIL(err, st, "%s", why.message);
    }
    cti_problem_add(problems, "%s", why.message);
    return cti_trainer_create(run->tree, &run->root, err);
}

/* override.imports, as far as it can be judged without opening anything. */
static ct_status check_imports(const ct_component *root, ct_arena *arena, cti_problems *problems, ct_err *err)
{
    const ct_component *section = ct_component_child(root, "override");
    if (section == NULL || !ct_class_is_a(section->cls, &cti_override_class)) {
        return CT_OK;
    }
    cti_override_entry *entries;
    size_t n;
    ct_err why = {0};
    const ct_status st =
        cti_override_entries(&((const cti_override_config *)section->values)->imports, arena, &entries, &n, &why);
    if (st == CT_ERR_USAGE) {
        cti_problem_add(problems, "%s", why.message);
        return CT_OK;
    }
    return st == CT_OK ? CT_OK : CT_FAIL(err, st, "%s", why.message);
}

/* A registry function of a plug-in may leave sections out that everything later relies on. */
static ct_status check_sections(const ct_component *root, ct_err *err)
{
    static const struct {
        const char *path;
        const ct_class *cls;
    } wanted[] = {
        {"", &cti_trainer_class},           {"profiler", &cti_profiler_class},
        {"metrics", &cti_metrics_class},    {"tokenizer", &cti_tokenizer_class},
        {"dataloader", &cti_dataloader_class}, {"optimizer", &cti_optimizer_class},
        {"lr_scheduler", &cti_lr_scheduler_class}, {"training", &cti_training_class},
        {"parallelism", &cti_parallelism_class}, {"checkpoint", &cti_checkpoint_class},
        {"compile", &cti_compile_class},    {"comm", &cti_comm_class},
        {"validator", &cti_validator_class}, {"validator.dataloader", &cti_dataloader_class},
        {"debug", &cti_debug_class},        {"override", &cti_override_class},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const ct_component *section = ct_component_find(root, wanted[i].path);
        if (section == NULL || !ct_class_is_a(section->cls, wanted[i].cls)) {
            return CT_FAIL(err, CT_ERR_PLUGIN, "the registry function's tree has no '%s' of class '%s'", wanted[i].path,
                           wanted[i].cls->name);
        }
    }
    return CT_OK;
}

ct_status cti_run_config_resolve(const ct_alloc *alloc, const ct_registry *registry, cti_plugins *plugins,
                                 const cti_resolve_options *options, cti_problems *problems, cti_run_config *out, ct_err *err)
{
    memset(out, 0, sizeof *out);
    CT_TRY(ct_tree_create(alloc, &out->tree, err));
    ct_arena *arena = ct_tree_arena(out->tree);
    cti_cmdline line;
    CT_TRY(cti_cmdline_scan(options->argc, options->argv, arena, &line, problems, err));
    out->wants_help = line.wants_help;
    CT_TRY(make_tree(registry, plugins, &line, problems, out, err));
    const bool is_made = out->module != NULL;
    CT_TRY(check_sections(out->root, err));
    CT_TRY(cti_environ_apply(out->tree, out->root, options->environ_list, problems, err));
    CT_TRY(cti_cmdline_apply(out->tree, out->root, &line, problems, err));
    if (is_made && !line.wants_help) { /* the checks of a tree that nobody asked for are of no use */
        CT_TRY(check_imports(out->root, arena, problems, err));
        CT_TRY(cti_checks_run(out->tree, out->root, options->world_size, problems, err));
    }
    CT_TRY(cti_str_check(&problems->text, err));
    if (problems->n > 0 && !(line.wants_help && is_made)) {
        const char *text = cti_str_text(&problems->text);
        return CT_FAIL(err, CT_ERR_USAGE, "%.*s", (int)strcspn(text, "\n"), text);
    }
    return CT_OK;
}

void cti_run_config_deinit(cti_run_config *run)
{
    ct_tree_destroy(&run->tree);
    memset(run, 0, sizeof *run);
}
