/* SPDX-License-Identifier: Apache-2.0 */
/* The map of the room `component`: what names on the command line mean, and components that emit ops.
 *
 *   registry.c    ct_registry: registry functions, overrides, classes; transactions
 *   registry_extend.c  ops, data sets, optimizers, variants of registry functions
 *   plugins.c     shared objects that register more of them
 *   extensions.c  plug-ins that settings name: data sets, optimizers
 *   overrides.c   override.imports: replacing nodes of the tree before anything is built (override_rules.c: what may take a node's place;
 *                 override_words.c: what is logged)
 *   resolve.c     command line, environment, files and registry into the settings of a run
 *   build.c       ct_build_child, ct_build_param, ct_build_const, ct_build_state
 *
 *     CT_TRY(ct_registry_create(alloc, &registry, err));
 *     CT_TRY(cti_register_llama3(registry, err));
 *     CT_TRY(cti_plugins_create(alloc, registry, getenv("CTITAN_PLUGIN_PATH"), install_dir, &plugins, err));
 *     cti_problems problems = {.text = {.alloc = alloc}};
 *     cti_run_config run;
 *     st = cti_run_config_resolve(alloc, registry, plugins, &options, &problems, &run, err);
 *     … st == CT_ERR_USAGE: print problems.text, exit 2 …
 *     CT_TRY(cti_run_config_override(alloc, registry, plugins, &run, world_size, false, &applied, err));   // log applied.lines
 *     … build and train …
 *     cti_run_config_deinit(&run);
 *     cti_plugins_destroy(&plugins);       // after every tree: classes live in the plug-ins
 *     ct_registry_destroy(&registry);
 */
#ifndef CTI_COMPONENT_COMPONENT_H
#define CTI_COMPONENT_COMPONENT_H

#include "config/config.h"
#include "ctitan/plugin.h"

/* ---- registry -------------------------------------------------------------------------------------------------- */

/* How full the registry is; going back to a mark forgets what came after it. */
typedef struct cti_registry_mark {
    size_t n_configs, n_overrides, n_classes, n_ops, n_datasets, n_optimizers;
} cti_registry_mark;
cti_registry_mark cti_registry_mark_now(const ct_registry *registry);
void cti_registry_rollback(ct_registry *registry, cti_registry_mark mark);

bool cti_registry_has_module(const ct_registry *registry, const char *module);
/* Makes the tree of (module, config). ERR_USAGE with the nearest names and the legal ones, or with the refusal. */
CT_MUST_CHECK ct_status cti_registry_make(const ct_registry *registry, const char *module, const char *config,
                                          ct_tree *tree, ct_component **out_root, ct_err *err);
/* Builds the parts of a model anew below `spec`, whose fields say how. */
typedef ct_status (*cti_builder_fn)(ct_tree *tree, ct_component *spec, ct_err *err);
/* For the specs of one class; a second one for it takes the first's place. CT_ASSERTs that there are few. */
void cti_registry_add_builder(ct_registry *registry, const ct_class *spec_class, cti_builder_fn build);
/* NULL where the class has none: its registry functions build the model, and its fields stay as they are. */
cti_builder_fn cti_registry_builder(const ct_registry *registry, const ct_class *spec_class);
/* NULL where no override has this name. */
const ct_override *cti_registry_override(const ct_registry *registry, const char *name);
/* "a.x, a.y" of the overrides whose name begins with "<plugin>."; "" where none does. Arena's memory. */
const char *cti_registry_override_names(const ct_registry *registry, const char *plugin, ct_arena *arena, ct_err *err);
/* In order of registration; NULL at the end. */
const ct_dataset *cti_registry_dataset_at(const ct_registry *registry, size_t i);
const ct_optimizer *cti_registry_optimizer_at(const ct_registry *registry, size_t i);
const ct_op *cti_registry_op_at(const ct_registry *registry, size_t i);
const ct_class *cti_registry_class_at(const ct_registry *registry, size_t i);
/* NULL where none has this name. registry NULL: none. */
const ct_dataset *cti_registry_dataset(const ct_registry *registry, const char *name);
const ct_optimizer *cti_registry_optimizer(const ct_registry *registry, const char *name);
/* Overrides in order of registration, for `ctitan check-overrides`; NULL at the end. */
const ct_override *cti_registry_override_at(const ct_registry *registry, size_t i);
/* (module, config) in order of registration; false at the end. refusal NULL: can be used. */
bool cti_registry_config_at(const ct_registry *registry, size_t i, const char **out_module, const char **out_config,
                            const char **out_refusal);

/* ---- plug-ins -------------------------------------------------------------------------------------------------- */

typedef struct cti_plugins cti_plugins;

/* path: folders joined by ':' (CTITAN_PLUGIN_PATH; NULL or "": none), searched in order, then install_dir (NULL: none).
 * Both texts are copied. Nothing is opened yet. The registry is borrowed until destroy. */
CT_MUST_CHECK ct_status cti_plugins_create(const ct_alloc *alloc, ct_registry *registry, const char *path,
                                           const char *install_dir, cti_plugins **out_plugins, ct_err *err);
void cti_plugins_destroy(cti_plugins **plugins);
/* Opens `<name>.so` and lets it register, once; a second call does nothing. Where it fails the registry is as before.
 * Fails: ERR_USAGE where no folder holds it (all are named), ERR_PLUGIN where it cannot be opened, has no entry symbol, is of
 * another ABI, has another name, or its setup failed. */
CT_MUST_CHECK ct_status cti_plugins_load(cti_plugins *plugins, const char *name, ct_err *err);
/* Of an open plug-in: its file, its version, and what it registered: from `before` on, up to `after`. The plug-ins' memory. */
typedef struct cti_plugin_facts {
    const char *path, *version;
    cti_registry_mark before, after;
} cti_plugin_facts;
bool cti_plugins_describe(const cti_plugins *plugins, const char *name, cti_plugin_facts *out);
/* The folders that are searched, in order; NULL past the last. */
const char *cti_plugins_folder(const cti_plugins *plugins, size_t i);
/* Opens the plug-ins that settings name: data sets and optimizers called "<plug-in>.<name>" that the registry does not have. Adds to problems
 * what is named and not there; fails for plug-ins that cannot be used. plugins NULL: nothing is opened. */
CT_MUST_CHECK ct_status cti_extensions_load(const ct_registry *registry, cti_plugins *plugins, ct_tree *tree, const ct_component *root,
                                            cti_problems *problems, ct_err *err);
/* Whether a folder holds `<name>.so`. */
bool cti_plugins_finds(const cti_plugins *plugins, const char *name);

/* ---- overrides ------------------------------------------------------------------------------------------------- */

/* One entry of override.imports: "target", "t1,t2" (two entries) or "target={json object}". */
typedef struct cti_override_entry {
    const char *target;    /* "npu_compat.npu_attention" */
    const char *args_json; /* "{}" where none was given */
} cti_override_entry;
/* ERR_USAGE for a target without a dot, listed twice, with JSON that is no object. Arena's memory. */
CT_MUST_CHECK ct_status cti_override_entries(const ct_str_list *tokens, ct_arena *arena, cti_override_entry **out_entries,
                                             size_t *out_n, ct_err *err);

/* Memory of the tree's arena. */
typedef struct cti_overrides_applied {
    const char **lines; /* INFO lines: one per node, then "Applied N override(s)" where N > 0 */
    size_t n_lines;
    const char *warning; /* NULL, or which entries matched nothing */
    const char **fqns; /* of the nodes, n_nodes */
    int64_t n_nodes;
} cti_overrides_applied;
/* Applies `override.imports` of the root: loads plug-ins (`plugins` may be NULL), collects every claim on the tree as it is, refuses
 * conflicts, replaces. A node that an override matches is not searched below for that override. Where it fails the tree may hold
 * some of the replacements: do not use it. */
CT_MUST_CHECK ct_status cti_overrides_apply(const ct_registry *registry, cti_plugins *plugins, ct_tree *tree,
                                            ct_component *root, cti_overrides_applied *out_applied, ct_err *err);

/* The classes of the sections, so that overrides of plug-ins find them ("OptimizersContainer"). */
CT_MUST_CHECK ct_status cti_register_sections(ct_registry *registry, ct_err *err);

/* ---- the settings of a run ------------------------------------------------------------------------------------- */

typedef struct cti_resolve_options {
    int argc; /* arguments after the program's and the command's name */
    const char *const *argv;
    const char *const *environ_list; /* as environ; NULL: no environment */
    int64_t world_size;              /* 0: not known, the checks that need it are left out */
    bool plan_only;                  /* nothing will run: number formats that cannot be trained in yet are taken */
} cti_resolve_options;

typedef struct cti_run_config {
    ct_tree *tree; /* owns; NULL where none was made */
    ct_component *root;
    const char *module, *config; /* the registry function; the tree's arena; NULL where it could not be had: the tree holds defaults */
    const char *file;            /* --config where it named a file; NULL: it named the function */
    const ct_registry *registry; /* borrows: what names in the settings mean */
    bool wants_help;             /* the caller prints cti_help(tree, root, …) and ends with 0 */
} cti_run_config;

/* Everything in order: registry function, files, environment, flags, checks. `plugins` may be NULL; else a module that the registry does
 * not know is looked for as a plug-in. With --help, a missing --module and --config are llama3 and llama3_debugmodel.
 * ERR_USAGE where anything is wrong: problems holds every line, err the first of them. *out is always to be deinited. */
CT_MUST_CHECK ct_status cti_run_config_resolve(const ct_alloc *alloc, const ct_registry *registry, cti_plugins *plugins,
                                               const cti_resolve_options *options, cti_problems *problems,
                                               cti_run_config *out, ct_err *err);
void cti_run_config_deinit(cti_run_config *run);
/* cti_overrides_apply on the run's tree; then the checks across fields once more, since overrides may have changed sections. ERR_USAGE with the
 * first of them that fails. */
CT_MUST_CHECK ct_status cti_run_config_override(const ct_alloc *alloc, const ct_registry *registry, cti_plugins *plugins,
                                                const cti_run_config *run, int64_t world_size, bool plan_only,
                                                cti_overrides_applied *out_applied, ct_err *err);

/* The settings as a file that --config takes back (cti_config_json and cti_config_yaml with `module`, `base` and `given`). */
CT_MUST_CHECK ct_status cti_run_config_json(const cti_run_config *run, json_t **out_json, ct_err *err);
CT_MUST_CHECK ct_status cti_run_config_yaml(const cti_run_config *run, cti_str *out, ct_err *err);

#endif
