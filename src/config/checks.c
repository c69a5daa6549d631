/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the optimizer and the rest, what is not there yet, and what runs the rows. */
#include <inttypes.h>
#include <string.h>

#include "config/checks.h"

static bool no_cp(cti_check_run *r)
{
    return r->degrees.cp == 1;
}
static bool no_pp(cti_check_run *r)
{
    return r->degrees.pp == 1;
}
static bool no_ep(cti_check_run *r)
{
    return r->degrees.ep == 1;
}
/* ---- optimizer and the rest ------------------------------------------------------------------------------------ */

/* The i-th param group's kwargs; NULL past the last one. */
static const ct_component *group_at(const cti_check_run *r, int32_t i)
{
    const ct_component *groups = ct_component_find(r->root, "optimizer.param_groups");
    return groups != NULL && i < groups->n_children ? groups->children[i] : NULL;
}

static bool has_groups(cti_check_run *r)
{
    return group_at(r, 0) != NULL;
}

/* The kwargs of group i as the class has them; NULL past the last one. */
static const cti_optimizer_kwargs_config *kwargs_at(const cti_check_run *r, int32_t i, const char **out_name)
{
    const ct_component *group = group_at(r, i);
    const ct_component *kwargs = group != NULL ? ct_component_child(group, "optimizer_kwargs") : NULL;
    if (kwargs == NULL || !ct_class_is_a(kwargs->cls, &cti_optimizer_kwargs_class) || !ct_class_is_a(group->cls, &cti_param_group_class)) {
        return NULL;
    }
    *out_name = ((const cti_param_group_config *)group->values)->optimizer_name;
    return kwargs->values;
}

static bool muon_has_whole_matrices(cti_check_run *r)
{
    const char *name;
    for (int32_t i = 0; r->degrees.tp > 1 && kwargs_at(r, i, &name) != NULL; i++) {
        if (cti_ends_with(name, "Muon")) {
            cti_str_printf(r->detail, "group %" PRId32 " is Muon's", i);
            return false;
        }
    }
    return true;
}

static bool nesterov_has_momentum(cti_check_run *r)
{
    const char *name;
    const cti_optimizer_kwargs_config *k;
    for (int32_t i = 0; (k = kwargs_at(r, i, &name)) != NULL; i++) {
        const double momentum = k->momentum.is_set ? k->momentum.value : cti_ends_with(name, "Muon") ? 0.95 : 0.0;
        if (cti_str_eq(k->nesterov, "true") && momentum == 0.0 && (cti_str_eq(name, "SGD") || cti_ends_with(name, "Muon"))) {
            cti_str_printf(r->detail, "group %" PRId32, i);
            return false;
        }
    }
    return true;
}

/* Who takes what. An option that is set and that no group's optimizer takes has no meaning; PyTorch's optimizers refuse it, too. (One flag sets all
 * groups, so a group may well hold what is another's.) */
static const struct {
    const char *field, *optimizers; /* suffixes of the names that take it */
} optimizer_options[] = {
    {"betas", "AdamW Adam ."}, {"eps", "AdamW Adam Muon ."}, {"momentum", "SGD Muon ."}, {"nesterov", "SGD Muon ."}, /* ".": those of plug-ins */
    {"ns_steps", "Muon"},    {"ns_coefficients", "Muon"}, {"adjust_lr_fn", "Muon"},
};

static bool takes(const char *optimizers, const char *name)
{
    char one[16];
    for (const char *at = optimizers; *at != '\0'; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        (void)snprintf(one, sizeof one, "%.*s", (int)n, at);
        const bool is_plugin = strchr(name, '.') != NULL;
        if (is_plugin ? cti_str_eq(one, ".") : cti_str_eq(name, one) || (cti_str_eq(one, "Muon") && cti_ends_with(name, one))) {
            return true;
        }
        at += n;
    }
    return false;
}

static bool some_group_takes(const cti_check_run *r, const char *optimizers)
{
    const char *name;
    for (int32_t i = 0; kwargs_at(r, i, &name) != NULL; i++) {
        if (takes(optimizers, name)) {
            return true;
        }
    }
    return false;
}

static bool options_are_the_optimizers(cti_check_run *r)
{
    const char *name;
    for (int32_t i = 0; kwargs_at(r, i, &name) != NULL; i++) {
        const ct_component *kwargs = ct_component_child(group_at(r, i), "optimizer_kwargs");
        for (size_t k = 0; k < sizeof optimizer_options / sizeof optimizer_options[0]; k++) {
            const ct_field *field = ct_field_find(kwargs->cls->fields, (size_t)kwargs->cls->n_fields, optimizer_options[k].field);
            CT_ASSERT(field != NULL);
            ct_err ignored = {0};
            const char *text = ct_field_text(field, kwargs->values, ct_tree_arena(r->tree), &ignored);
            if (kwargs->sources[field - kwargs->cls->fields] > CT_SOURCE_REGISTRY && !some_group_takes(r, optimizer_options[k].optimizers) &&
                text != NULL && !cti_str_eq(text, field->default_text)) {
                cti_str_printf(r->detail, "%s %s of group %" PRId32 ", which is %s's", field->name, text, i, name);
                return false;
            }
        }
    }
    return true;
}

static bool coefficients_are_three(cti_check_run *r)
{
    const char *name;
    const cti_optimizer_kwargs_config *k;
    for (int32_t i = 0; (k = kwargs_at(r, i, &name)) != NULL; i++) {
        if (k->ns_coefficients.n != 3) {
            cti_str_printf(r->detail, "group %" PRId32 " has %" PRId64, i, k->ns_coefficients.n);
            return false;
        }
    }
    return true;
}

static bool betas_are_two(cti_check_run *r)
{
    const ct_component *group;
    for (int32_t i = 0; (group = group_at(r, i)) != NULL; i++) {
        const ct_component *kwargs = ct_component_child(group, "optimizer_kwargs");
        if (kwargs == NULL || !ct_class_is_a(kwargs->cls, &cti_optimizer_kwargs_class)) {
            continue;
        }
        const ct_f64_list *betas = &((const cti_optimizer_kwargs_config *)kwargs->values)->betas;
        if (betas->n != 2 || !(betas->items[0] < 1.0) || !(betas->items[1] < 1.0)) {
            cti_str_printf(r->detail, "group %" PRId32, i);
            return false;
        }
    }
    return true;
}

/* The model's own tables are not known here: the field is looked up by name. */
static bool no_converters(cti_check_run *r)
{
    const ct_component *spec = ct_component_find(r->root, "model_spec");
    const ct_field *field = spec != NULL ? ct_field_find(spec->cls->fields, (size_t)spec->cls->n_fields, "converters") : NULL;
    ct_str_list list = {0};
    if (field == NULL || field->kind != CT_FIELD_STR_LIST) {
        return true;
    }
    memcpy(&list, (const char *)spec->values + field->offset, sizeof list);
    return list.n == 0;
}

static bool no_async_tp(cti_check_run *r)
{
    return !CTI_SECTION(r->root, "compile", compile)->enable_async_tensor_parallel;
}

static bool rollback_has_checkpoints(cti_check_run *r)
{
    return r->training->max_rollbacks == 0 || (r->checkpoint->enable && !r->checkpoint->load_only);
}

/* What an epoch is must be clear: one data set, no padding, and more than one only where the data begins again. */
static bool epochs_are_of_one_corpus(cti_check_run *r)
{
    return !r->training->epochs.is_set || (r->dataloader->sources.n < 2 && !cti_str_eq(r->dataloader->packing, "first-fit"));
}

static bool epochs_can_be_read(cti_check_run *r)
{
    return !r->training->epochs.is_set || r->training->epochs.value <= 1.0 || r->dataloader->infinite;
}

static bool profile_cycle_fits(cti_check_run *r)
{
    return !r->profiler->enable_profiling || r->profiler->profile_freq - r->profiler->profiler_warmup >=
                                                 r->profiler->profiler_active;
}

/* ---- the rows -------------------------------------------------------------------------------------------------- */

#define P "parallelism."
/* Other values of the first setting are known, and not there yet: for training only, for a plan too. */
static const cti_check not_trained[] = {
    {"no_converters", "model_spec.converters", no_converters,
     "training in float8, mxfp8 or nvfp4 and products fused with collectives are not there yet: set --model-spec.converters ''"},
    {"no_async_tp", "compile.enable_async_tensor_parallel", no_async_tp,
     "collectives cut up between the products of tensor parallelism are not there yet: set --compile.no-enable-async-tensor-parallel"},
};
static const cti_check not_yet[] = {
    {"no_cp", P "context_parallel_degree", no_cp,
     "context parallelism is not there yet: set --parallelism.context-parallel-degree 1"},
    {"no_pp", P "pipeline_parallel_degree", no_pp,
     "pipeline parallelism is not there yet: set --parallelism.pipeline-parallel-degree 1"},
    {"no_ep", P "expert_parallel_degree", no_ep,
     "expert parallelism is not there yet: set --parallelism.expert-parallel-degree 1"},
};
static const cti_check checks[] = {
    {"has_groups", "optimizer.implementation", has_groups, "the optimizer has no param group"},
    {"betas_are_two", "optimizer.param_groups.0.optimizer_kwargs.betas", betas_are_two,
     "wanted two numbers, at least 0 and below 1"},
    {"coefficients_are_three", "optimizer.param_groups.0.optimizer_kwargs.ns_coefficients", coefficients_are_three, "wanted three numbers"},
    {"nesterov_has_momentum", "optimizer.param_groups.0.optimizer_kwargs.nesterov optimizer.param_groups.0.optimizer_kwargs.momentum",
     nesterov_has_momentum, "there is nothing to look ahead along without momentum"},
    {"options_are_the_optimizers", "optimizer.param_groups.0.optimizer_name", options_are_the_optimizers,
     "an option that this optimizer does not have; leave it out, or take the optimizer that has it (docs/optimizers.md)"},
    {"muon_has_whole_matrices", "optimizer.param_groups.0.optimizer_name parallelism.tensor_parallel_degree", muon_has_whole_matrices,
     "Muon takes whole matrices, tensor parallelism cuts them: set --parallelism.tensor-parallel-degree 1 (FSDP, HSDP and DDP work), or take AdamW"},
    {"rollback_has_checkpoints", "training.max_rollbacks checkpoint.enable checkpoint.load_only", rollback_has_checkpoints,
     "a run goes back to checkpoints of its own: they must be saved"},
    {"epochs_are_of_one_corpus", "training.epochs dataloader.sources dataloader.packing", epochs_are_of_one_corpus,
     "an epoch is one pass over one data set whose documents are cut into rows: with a mixture or first-fit, give --training.tokens"},
    {"epochs_can_be_read", "training.epochs dataloader.infinite", epochs_can_be_read, "data that ends after one pass has no second epoch"},
    {"profile_cycle_fits", "profiler.profile_freq profiler.profiler_warmup profiler.profiler_active",
     profile_cycle_fits, "a cycle must hold its warm-up and its traced steps"},
};
#undef P

/* "--a.b 3 (flag), --c 1 (default)" */
static ct_status add_settings(ct_tree *tree, const cti_settings *settings, const char *paths, cti_str *out, ct_err *err)
{
    ct_arena *arena = ct_tree_arena(tree);
    bool is_first = true;
    for (const char *at = paths; *at != '\0';) {
        const size_t n = strcspn(at, " ");
        const char *path = ct_arena_printf(arena, err, "%.*s", (int)n, at);
        if (path == NULL) {
            return CT_ERR_MEMORY;
        }
        const cti_setting *s = cti_settings_find(settings, path);
        if (s != NULL) {
            const char *flag = cti_flag_name(arena, s->path, err);
            const char *value = ct_field_text(s->field, s->component->values, arena, err);
            if (flag == NULL || value == NULL) {
                return CT_ERR_MEMORY;
            }
            cti_str_printf(out, "%s%s %s (%s)", is_first ? "" : ", ", flag, value, cti_setting_source(s));
            is_first = false;
        }
        at += n + (at[n] == ' ');
    }
    return cti_str_check(out, err);
}

/* Whether the row speaks of a setting whose value was refused already. */
static bool names_refused(const cti_settings *settings, const char *paths, const cti_problems *problems)
{
    for (const char *at = paths; *at != '\0';) {
        const size_t n = strcspn(at, " ");
        char path[128];
        CT_ASSERT(n < sizeof path); /* our own rows */
        memcpy(path, at, n);
        path[n] = '\0';
        const cti_setting *s = cti_settings_find(settings, path);
        for (int i = 0; s != NULL && i < problems->n_refused; i++) {
            if (problems->refused[i] == s->field) {
                return true;
            }
        }
        at += n + (at[n] == ' ');
    }
    return false;
}

static ct_status run_rows(ct_tree *tree, cti_check_run *r, const cti_check *rows, size_t n_rows, const cti_settings *settings,
                          cti_problems *problems, cti_str *line, ct_err *err)
{
    for (size_t i = 0; i < n_rows; i++) {
        cti_str_reset(r->detail);
        if (rows[i].holds(r) || names_refused(settings, rows[i].settings, problems)) {
            continue;
        }
        cti_str_reset(line);
        CT_TRY(add_settings(tree, settings, rows[i].settings, line, err));
        CT_TRY(cti_str_check(r->detail, err));
        cti_problem_add(problems, "%s: %s%s%s%s", cti_str_text(line), rows[i].sentence, r->detail->len > 0 ? " (" : "",
                        cti_str_text(r->detail), r->detail->len > 0 ? ")" : "");
    }
    return CT_OK;
}

/* The checks that classes bring along (plug-ins' components too). */
static ct_status run_class_checks(ct_tree *tree, const ct_component *component, cti_problems *problems, ct_err *err)
{
    if (component->cls->check != NULL) {
        ct_err why = {0};
        const ct_status st = component->cls->check(component, &why);
        if (st == CT_ERR_MEMORY) {
            return CT_FAIL(err, st, "%s", why.message);
        }
        if (st != CT_OK) {
            const char *fqn = ct_component_fqn(tree, component, err);
            if (fqn == NULL) {
                return CT_ERR_MEMORY;
            }
            cti_problem_add(problems, "%s: %s", fqn[0] != '\0' ? fqn : component->cls->name, why.message);
        }
    }
    for (int32_t i = 0; i < component->n_children; i++) {
        CT_TRY(run_class_checks(tree, component->children[i], problems, err));
    }
    return CT_OK;
}

const char *cti_check_missing(const char *path)
{
    for (size_t i = 0; i < sizeof not_yet / sizeof not_yet[0]; i++) {
        if (cti_str_eq(not_yet[i].settings, path)) {
            return not_yet[i].sentence;
        }
    }
    for (size_t i = 0; i < sizeof not_trained / sizeof not_trained[0]; i++) {
        if (cti_str_eq(not_trained[i].settings, path)) {
            return not_trained[i].sentence;
        }
    }
    return NULL;
}

ct_status cti_checks_run(ct_tree *tree, ct_component *root, int64_t world_size, bool plan_only, cti_problems *problems,
                         ct_err *err)
{
    cti_str detail = {.alloc = problems->text.alloc};
    cti_str line = {.alloc = problems->text.alloc};
    cti_settings settings;
    CT_TRY(cti_settings_list(tree, root, &settings, err));
    cti_check_run r = {.tree = tree,
             .root = root,
             .world = world_size,
             .training = CTI_SECTION(root, "training", training),
             .parallelism = CTI_SECTION(root, "parallelism", parallelism),
             .checkpoint = CTI_SECTION(root, "checkpoint", checkpoint),
             .dataloader = CTI_SECTION(root, "dataloader", dataloader),
             .validator = CTI_SECTION(root, "validator", validator),
             .validator_data = CTI_SECTION(root, "validator.dataloader", dataloader),
             .profiler = CTI_SECTION(root, "profiler", profiler),
             .detail = &detail};
    cti_degrees_of(root, world_size, &r.degrees);
    ct_status st = CT_OK;
    const struct {
        const cti_check *rows;
        size_t n;
    } tables[] = {{not_trained, plan_only ? 0 : sizeof not_trained / sizeof not_trained[0]},
                  {not_yet, sizeof not_yet / sizeof not_yet[0]},
                  {cti_layout_checks, cti_n_layout_checks},
                  {cti_data_checks, cti_n_data_checks},
                  {checks, sizeof checks / sizeof checks[0]}};
    for (size_t i = 0; st == CT_OK && i < sizeof tables / sizeof tables[0]; i++) {
        st = run_rows(tree, &r, tables[i].rows, tables[i].n, &settings, problems, &line, err);
    }
    if (st == CT_OK) {
        st = run_class_checks(tree, root, problems, err);
    }
    cti_str_deinit(&detail);
    cti_str_deinit(&line);
    CT_TRY(st);
    return cti_str_check(&problems->text, err);
}

ct_status cti_config_no_effect(ct_tree *tree, ct_component *root, const char **out_flags, ct_err *err)
{
    ct_arena *arena = ct_tree_arena(tree);
    cti_settings settings;
    CT_TRY(cti_settings_list(tree, root, &settings, err));
    const char *text = "";
    for (size_t i = 0; i < settings.n; i++) {
        const cti_setting *s = &settings.items[i];
        const ct_source source = s->component->sources[s->field - s->component->cls->fields];
        if ((s->field->flags & CTI_SET_NO_EFFECT) == 0 || source <= CT_SOURCE_REGISTRY) {
            continue;
        }
        const char *flag = cti_flag_name(arena, s->path, err);
        text = flag != NULL ? ct_arena_printf(arena, err, "%s%s%s", text, text[0] != '\0' ? ", " : "", flag) : NULL;
        if (text == NULL) {
            return CT_ERR_MEMORY;
        }
    }
    *out_flags = text;
    return CT_OK;
}
