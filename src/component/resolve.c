/* SPDX-License-Identifier: Apache-2.0 */
/* Command line, environment and registry into the settings of a run. */
#include <string.h>

#include "component/registry_internal.h"
#include "config/files.h"

static const char default_module[] = "llama3";
static const char default_config[] = "llama3_debugmodel";

/* What names the run: the registry function, and the files that go on from it. */
typedef struct origin {
    const char *module, *config; /* NULL: a problem was added */
    cti_config_files files;
} origin;

/* The module that has a registry function of this name; NULL where none or several have. */
static const char *only_module(const ct_registry *registry, const char *config)
{
    const char *module, *name, *refusal, *found = NULL;
    for (size_t i = 0; cti_registry_config_at(registry, i, &module, &name, &refusal); i++) {
        if (cti_str_eq(name, config)) {
            if (found != NULL) {
                return NULL;
            }
            found = module;
        }
    }
    return found;
}

static ct_status find_origin(const ct_registry *registry, const cti_cmdline *line, cti_problems *problems, cti_run_config *run,
                             origin *out, ct_err *err)
{
    const int n_before = problems->n;
    *out = (origin){.module = line->module, .config = line->config};
    if (line->config != NULL && n_before == 0 && cti_config_is_file(line->config)) {
        CT_TRY(cti_config_files_read(run->tree, line->config, &out->files, problems, err));
        run->file = line->config;
        out->config = out->files.base;
        if (out->config == NULL) {
            return CT_OK;
        }
        out->module = out->module != NULL ? out->module : out->files.module;
        out->module = out->module != NULL ? out->module : only_module(registry, out->config);
        out->module = out->module != NULL ? out->module : default_module; /* it says which names there are */
        return CT_OK;
    }
    if (line->wants_help) {
        out->module = out->module != NULL ? out->module : default_module;
        out->config = out->config != NULL ? out->config : default_config;
    }
    if (out->module == NULL && n_before == 0) {
        cti_problem_add(problems, "--module: is missing, such as --module %s", default_module);
    }
    if (out->config == NULL && n_before == 0) {
        cti_problem_add(problems, "--config: is missing, such as --config %s", default_config);
    }
    if (problems->n > 0) {
        out->module = out->config = NULL;
    }
    return CT_OK;
}

/* The tree of the registry function. Where that cannot be, a problem, and a tree of defaults against which the other arguments are
 * still checked. */
static ct_status make_tree(const ct_registry *registry, cti_plugins *plugins, const origin *from, cti_problems *problems,
                           cti_run_config *run, ct_err *err)
{
    ct_arena *arena = ct_tree_arena(run->tree);
    if (from->module == NULL || from->config == NULL) {
        return cti_trainer_create(run->tree, &run->root, err);
    }
    ct_err why = {0};
    ct_status st = CT_OK;
    if (plugins != NULL && !cti_registry_has_module(registry, from->module) && cti_plugins_finds(plugins, from->module)) {
        st = cti_plugins_load(plugins, from->module, &why);
    }
    if (st == CT_OK) {
        st = cti_registry_make(registry, from->module, from->config, run->tree, &run->root, &why);
    }
    if (st == CT_OK) {
        run->module = ct_arena_strdup(arena, from->module, err);
        run->config = ct_arena_strdup(arena, from->config, err);
        return run->module != NULL && run->config != NULL ? CT_OK : CT_ERR_MEMORY;
    }
    if (st != CT_ERR_USAGE) {
        return CT_FAIL(err, st, "%s", why.message);
    }
    if (from->files.base_place != NULL) {
        const size_t skip = cti_starts_with(why.message, "--config: ") ? sizeof "--config: " - 1 : 0;
        cti_problem_add(problems, "%s: base: %s", from->files.base_place, why.message + skip);
    } else {
        cti_problem_add(problems, "%s", why.message);
    }
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

/* Files, environment and flags, in order. */
static ct_status apply_all(const cti_resolve_options *options, const origin *from, const cti_cmdline *line, cti_run_config *run,
                           cti_problems *problems, ct_err *err)
{
    CT_TRY(cti_config_files_apply(run->tree, run->root, &from->files, problems, err));
    CT_TRY(cti_environ_apply(run->tree, run->root, options->environ_list, problems, err));
    return cti_cmdline_apply(run->tree, run->root, line, problems, err);
}

/* Sizes of the model decide which parts it has. Where the settings change them, the parts are built anew, and all settings are
 * applied once more to the tree as it is then. */
static ct_status rebuild_model(const ct_registry *registry, cti_plugins *plugins, const origin *from, const void *before,
                               cti_problems *problems, cti_run_config *run, bool *out_again, ct_err *err)
{
    const ct_component *sized = ct_component_child(run->root, "model_spec");
    *out_again = false;
    if (sized == NULL || before == NULL || !cti_spec_differs(sized, before)) {
        return CT_OK;
    }
    const cti_builder_fn build = cti_registry_builder(registry, sized->cls);
    if (build == NULL) {
        return CT_OK;
    }
    CT_TRY(make_tree(registry, plugins, from, problems, run, err));
    ct_component *spec = ct_component_child(run->root, "model_spec");
    CT_ASSERT(spec != NULL && spec->cls == sized->cls);
    for (int32_t i = 0; i < spec->cls->n_fields; i++) {
        CT_TRY(ct_field_copy(&spec->cls->fields[i], spec->values, sized->values, ct_tree_arena(run->tree), err));
    }
    CT_TRY(build(run->tree, spec, err));
    *out_again = true;
    return cti_mark_registry_sources(run->tree, run->root, err);
}

static ct_status make_settings(const ct_registry *registry, cti_plugins *plugins, const cti_resolve_options *options,
                               const cti_cmdline *line, cti_problems *problems, cti_run_config *run, ct_err *err)
{
    origin from;
    void *before;
    bool again;
    cti_problems first = {.text = {.alloc = problems->text.alloc}};
    CT_TRY(find_origin(registry, line, problems, run, &from, err));
    CT_TRY(make_tree(registry, plugins, &from, problems, run, err));
    CT_TRY(check_sections(run->root, err));
    CT_TRY(cti_spec_copy(run->root, ct_tree_arena(run->tree), &before, err));
    ct_status st = apply_all(options, &from, line, run, &first, err);
    if (st == CT_OK) {
        st = rebuild_model(registry, plugins, &from, before, problems, run, &again, err);
    }
    if (st == CT_OK && again) {
        cti_problems_reset(&first);
        st = apply_all(options, &from, line, run, &first, err);
    }
    if (st == CT_OK) {
        cti_problems_add_all(problems, &first);
    }
    cti_problems_deinit(&first);
    return st;
}

ct_status cti_run_config_resolve(const ct_alloc *alloc, const ct_registry *registry, cti_plugins *plugins,
                                 const cti_resolve_options *options, cti_problems *problems, cti_run_config *out, ct_err *err)
{
    memset(out, 0, sizeof *out);
    out->registry = registry;
    CT_TRY(ct_tree_create(alloc, &out->tree, err));
    ct_arena *arena = ct_tree_arena(out->tree);
    cti_cmdline line;
    CT_TRY(cti_cmdline_scan(options->argc, options->argv, arena, &line, problems, err));
    out->wants_help = line.wants_help;
    CT_TRY(make_settings(registry, plugins, options, &line, problems, out, err));
    const bool is_made = out->module != NULL;
    if (is_made && !line.wants_help) { /* the checks of a tree that nobody asked for are of no use */
        CT_TRY(check_imports(out->root, arena, problems, err));
        CT_TRY(cti_extensions_load(registry, plugins, out->tree, out->root, problems, err));
        CT_TRY(cti_checks_run(out->tree, out->root, options->world_size, options->plan_only, problems, err));
    }
    CT_TRY(cti_str_check(&problems->text, err));
    if (problems->n > 0 && !(line.wants_help && is_made)) {
        const char *text = cti_str_text(&problems->text);
        return CT_FAIL(err, CT_ERR_USAGE, "%.*s", (int)strcspn(text, "\n"), text);
    }
    return CT_OK;
}

ct_status cti_run_config_json(const cti_run_config *run, json_t **out_json, ct_err *err)
{
    return cti_config_file_json(run->tree, run->root, run->module, run->config, out_json, err);
}

ct_status cti_run_config_yaml(const cti_run_config *run, cti_str *out, ct_err *err)
{
    return cti_config_file_yaml(run->tree, run->root, run->module, run->config, out, err);
}

void cti_run_config_deinit(cti_run_config *run)
{
    ct_tree_destroy(&run->tree);
    memset(run, 0, sizeof *run);
}
