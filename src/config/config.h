/* SPDX-License-Identifier: Apache-2.0 */
/* The map of the room `config`: the settings of a run as a tree of components, and what reads and prints them.
 *
 *   sections.h, sections.c   one field table per section; the tree with every default
 *   tree.c                   ct_tree, ct_component of ctitan/component.h
 *   settings.c               the tree as one flat list of settings: names, aliases, sources
 *   cmdline.c                argv into the tree         environ.c   CTITAN_* into the tree
 *   files.h, doc.h           YAML and JSON files into the tree
 *   flags.h                  which settings have an effect, for docs/flags.md
 *   checks.c                 rows of checks across fields
 *   help.c                   --help                     dump.c      JSON, text with sources, hash of the plan
 *
 *     cti_problems problems = {.text = {.alloc = alloc}};
 *     ct_component *root;
 *     CT_TRY(cti_trainer_create(tree, &root, err));           // or a registry function
 *     CT_TRY(cti_cmdline_apply(tree, root, &cmdline, &problems, err));
 *     CT_TRY(cti_checks_run(tree, root, world_size, &problems, err));
 *     if (problems.n > 0) { … print problems.text, exit 2 … }
 *
 * Users of a whole run call cti_run_config_resolve (component/component.h), which does all of it in order.
 * Wrong settings are no failures here but *problems*: they are collected, so that all are told at once. A failing status
 * means that memory ran out.
 */
#ifndef CTI_CONFIG_CONFIG_H
#define CTI_CONFIG_CONFIG_H

#include <jansson.h>

#include "base/str.h"
#include "config/sections.h"

enum { CTI_MAX_PARAM_GROUPS = 64 }; /* of optimizer.param_groups */

/* ---- problems -------------------------------------------------------------------------------------------------- */

/* One line each, "--training.steps: '-3' is too small, wanted at least 1 steps". */
enum { CTI_MAX_REFUSED = 32 };
typedef struct cti_problems {
    cti_str text; /* lines, each ended by a newline; give it an allocator */
    int n;
    /* Settings whose value was refused: they stand at another value than asked for, and checks leave them alone. */
    const ct_field *refused[CTI_MAX_REFUSED];
    int n_refused;
} cti_problems;
void cti_problem_add(cti_problems *problems, const char *fmt, ...) CT_PRINTF(2, 3);
void cti_problems_add_all(cti_problems *problems, const cti_problems *more);
void cti_problems_reset(cti_problems *problems); /* none, memory kept */
void cti_problems_deinit(cti_problems *problems);

/* ---- the tree of a run ----------------------------------------------------------------------------------------- */

/* The root (class Trainer) with all sections at their defaults: one param group "0", activation_checkpoint none, a chunked
 * loss; without `model_spec`. */
CT_MUST_CHECK ct_status cti_trainer_create(ct_tree *tree, ct_component **out_root, ct_err *err);
/* Replaces `activation_checkpoint` by a component of class `cls` unless it already is one. */
CT_MUST_CHECK ct_status cti_set_ac(ct_tree *tree, ct_component *root, const ct_class *cls, ct_err *err);
/* Replaces `loss` by one of class ChunkedCELoss or CrossEntropyLoss unless it already is one; global_vocab_size is kept. */
CT_MUST_CHECK ct_status cti_set_loss(ct_tree *tree, ct_component *root, const ct_class *cls, ct_err *err);
/* Marks as REGISTRY every DEFAULT value that differs from its class's default (after a registry function ran). */
CT_MUST_CHECK ct_status cti_mark_registry_sources(ct_tree *tree, ct_component *root, ct_err *err);

/* The classes of sections, and of what stands below them; NULL at the end. */
const ct_class *cti_section_class_at(size_t i);
/* Classes that can stand in each other's place where the trainer reads them: the kinds of activation checkpointing, the losses, and each section
 * with the classes that are derived from it. -1: none of them. */
int cti_section_family(const ct_class *cls);

/* Values of the section at `path` (dotted); the section must be there: CT_ASSERTs. `type` without cti_ and _config. */
#define CTI_SECTION(root, path, id) ((const cti_##id##_config *)cti_section_values((root), (path), &cti_##id##_class))
const void *cti_section_values(const ct_component *root, const char *path, const ct_class *cls);

/* ---- settings: the tree, flat ---------------------------------------------------------------------------------- */

typedef struct cti_setting {
    const char *path; /* "optimizer.param_groups.0.optimizer_kwargs.lr" */
    ct_component *component;
    const ct_field *field;
    bool is_flag; /* can be set; false: only the registry function does */
    bool is_listed; /* in --help: not below a hidden component */
} cti_setting;
typedef struct cti_settings {
    cti_setting *items;
    size_t n;
} cti_settings;
/* All fields in tree order, sections in the order of --help; memory of the tree's arena. */
CT_MUST_CHECK ct_status cti_settings_list(ct_tree *tree, ct_component *root, cti_settings *out_settings, ct_err *err);
/* By path or alias ("optimizer.lr"); '-' counts as '_'. NULL where there is none. */
const cti_setting *cti_settings_find(const cti_settings *settings, const char *path);
/* "--optimizer.param-groups.0.pattern". Arena's memory. */
const char *cti_flag_name(ct_arena *arena, const char *path, ct_err *err);
/* "INT", "{a,b}" … Arena's memory. */
const char *cti_setting_metavar(const cti_setting *setting, ct_arena *arena, ct_err *err);
const char *cti_source_name(ct_source source); /* "registry" */
const char *cti_setting_source(const cti_setting *setting); /* "registry", or where a file says it: "my.yaml:12" */
/* The short names, in order; false at the end. */
bool cti_alias_at(size_t i, const char **out_short, const char **out_long);

/* ---- command line and environment ------------------------------------------------------------------------------ */

/* argv with what must be known before the tree is made taken out. */
typedef struct cti_cmdline {
    const char *module, *config; /* last given; NULL: not given */
    bool wants_help;
    const char **args; /* the rest, in order; arena's memory */
    size_t n_args;
} cti_cmdline;
/* argv[0] is the first argument, not the program. */
CT_MUST_CHECK ct_status cti_cmdline_scan(int argc, const char *const *argv, ct_arena *arena, cti_cmdline *out_cmdline,
                                         cti_problems *problems, ct_err *err);
/* Sets what the flags say (source FLAG). Grammar: docs/settings.md. */
CT_MUST_CHECK ct_status cti_cmdline_apply(ct_tree *tree, ct_component *root, const cti_cmdline *cmdline,
                                          cti_problems *problems, ct_err *err);
/* Sets what CTITAN_SECTION__FIELD=value says (source ENV). `environ_list` ends with NULL, as environ does. */
CT_MUST_CHECK ct_status cti_environ_apply(ct_tree *tree, ct_component *root, const char *const *environ_list,
                                          cti_problems *problems, ct_err *err);

/* ---- checks ---------------------------------------------------------------------------------------------------- */

/* All checks across fields. world_size: ranks of the run; 0: not known, checks that need it are left out. plan_only: so are those
 * that refuse number formats which a plan can do without. */
CT_MUST_CHECK ct_status cti_checks_run(ct_tree *tree, ct_component *root, int64_t world_size, bool plan_only,
                                       cti_problems *problems, ct_err *err);
/* "tensor parallelism is not there yet …" where a check lets the setting at `path` stand at its default only; NULL: it does not. */
const char *cti_check_missing(const char *path);
/* One token of dataloader.sources: a path or a data set's name, then, if it ends so, a colon and its weight (else 1). False
 * where the path is empty or the weight not above 0 and below 1e300. */
bool cti_source_spec(const char *text, size_t *out_path_len, double *out_weight);
/* The degrees of a run that passed its checks: shard is what -1 stands for. */
typedef struct cti_degrees {
    int64_t pp, dp_replicate, dp_shard, cp, tp, ep;
} cti_degrees;
void cti_degrees_of(const ct_component *root, int64_t world_size, cti_degrees *out_degrees);
/* "--compile.enable, --dataloader.num-workers": flags set by file, environment or command line that have no effect here; ""
 * where there are none. Arena's memory. One log line of the trainer's. */
CT_MUST_CHECK ct_status cti_config_no_effect(ct_tree *tree, ct_component *root, const char **out_flags, ct_err *err);

/* ---- printed forms --------------------------------------------------------------------------------------------- */

/* Help for every flag of the tree, `width` columns wide, appended to out. */
CT_MUST_CHECK ct_status cti_help(ct_tree *tree, ct_component *root, const char *program, int width, cti_str *out,
                                 ct_err *err);
/* The whole tree as nested objects, hidden fields too; lists of components are arrays. A component of a class with a base
 * or of activation_checkpoint has a member "class". Caller: json_decref. */
CT_MUST_CHECK ct_status cti_config_json(ct_tree *tree, ct_component *root, json_t **out_json, ct_err *err);
/* {"training.steps": {"value": 10, "source": "registry"}, …} */
CT_MUST_CHECK ct_status cti_config_json_sources(ct_tree *tree, ct_component *root, json_t **out_json, ct_err *err);
/* One line each: "training.steps = 10  (registry)". Without `all`, the fields of a model's parts only where someone set them. */
CT_MUST_CHECK ct_status cti_config_text(ct_tree *tree, ct_component *root, bool all, cti_str *out, ct_err *err);
/* "training.seq_len 128 -> 64, …": what shapes the training and is another in `saved`, the settings of a checkpoint (cti_config_json); ""
 * where nothing is. */
CT_MUST_CHECK ct_status cti_config_changes(ct_tree *tree, ct_component *root, const json_t *saved, cti_str *out, ct_err *err);
/* Files that --config reads back to the same settings, sources included: every value, the registry function as `module` and `base`,
 * and under `given` what was asked for by name. YAML leaves out the parts of the model that follow from its sizes.
 * ERR_USAGE for a text that is no UTF-8. Caller: json_decref. */
CT_MUST_CHECK ct_status cti_config_file_json(ct_tree *tree, ct_component *root, const char *module, const char *config,
                                             json_t **out_json, ct_err *err);
CT_MUST_CHECK ct_status cti_config_file_yaml(ct_tree *tree, ct_component *root, const char *module, const char *config,
                                             cti_str *out, ct_err *err);
/* Lines "path=value" of the settings that all ranks of a run must have alike, and "path=class" of their components. */
CT_MUST_CHECK ct_status cti_config_shared(ct_tree *tree, ct_component *root, cti_str *out, ct_err *err);
/* Hash of class names and of all CT_SET_PLAN values: equal hashes, equal plan. 32 hex digits and NUL. */
CT_MUST_CHECK ct_status cti_config_plan_hash(ct_tree *tree, ct_component *root, char out_hex[33], ct_err *err);

#endif
