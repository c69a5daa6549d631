/* SPDX-License-Identifier: Apache-2.0 */
/* The tree as one flat list of settings: their names in all spellings, aliases, problems. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fields.h"
#include "base/nearest.h"
#include "config/config_internal.h"

/* ---- problems -------------------------------------------------------------------------------------------------- */

void cti_problem_add(cti_problems *problems, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const size_t begin = problems->text.len;
    cti_str_vprintf(&problems->text, fmt, args);
    va_end(args);
    for (size_t i = begin; i < problems->text.len; i++) { /* a value may hold anything: one problem is one line */
        const unsigned char c = (unsigned char)problems->text.data[i];
        problems->text.data[i] = (char)(c < ' ' || c == 0x7f ? ' ' : c);
    }
    cti_str_add_char(&problems->text, '\n');
    problems->n++;
}

void cti_problem_refused(cti_problems *problems, const ct_field *field)
{
    if (problems->n_refused < CTI_MAX_REFUSED) {
        problems->refused[problems->n_refused++] = field;
    }
}

void cti_problems_add_all(cti_problems *problems, const cti_problems *more)
{
    cti_str_add_n(&problems->text, cti_str_text(&more->text), more->text.len);
    problems->n += more->n;
    for (int i = 0; i < more->n_refused; i++) {
        cti_problem_refused(problems, more->refused[i]);
    }
}

void cti_problems_reset(cti_problems *problems)
{
    cti_str_reset(&problems->text);
    problems->n = problems->n_refused = 0;
}

void cti_problems_deinit(cti_problems *problems)
{
    cti_str_deinit(&problems->text);
    problems->n = 0;
}

/* ---- the list -------------------------------------------------------------------------------------------------- */

static size_t count_fields(const ct_component *component)
{
    size_t n = (size_t)component->cls->n_fields;
    for (int32_t i = 0; i < component->n_children; i++) {
        n += count_fields(component->children[i]);
    }
    return n;
}

static ct_status list_fields(ct_arena *arena, ct_component *component, const char *prefix, bool is_hidden,
                             cti_settings *settings, ct_err *err)
{
    is_hidden = is_hidden || component->is_hidden;
    for (int32_t i = 0; i < component->cls->n_fields; i++) {
        const ct_field *field = &component->cls->fields[i];
        const char *path = ct_arena_printf(arena, err, "%s%s", prefix, field->name);
        if (path == NULL) {
            return CT_ERR_MEMORY;
        }
        settings->items[settings->n++] =
            (cti_setting){path, component, field, (field->flags & CT_SET_HIDDEN) == 0, !is_hidden};
    }
    for (int32_t i = 0; i < component->n_children; i++) {
        ct_component *child = component->children[i];
        const char *below = ct_arena_printf(arena, err, "%s%s.", prefix, child->name);
        if (below == NULL) {
            return CT_ERR_MEMORY;
        }
        CT_TRY(list_fields(arena, child, below, is_hidden, settings, err));
    }
    return CT_OK;
}

ct_status cti_settings_list(ct_tree *tree, ct_component *root, cti_settings *out_settings, ct_err *err)
{
    ct_arena *arena = ct_tree_arena(tree);
    cti_settings settings = {ct_arena_alloc(arena, (count_fields(root) + 1) * sizeof(cti_setting), err), 0};
    if (settings.items == NULL) {
        return CT_ERR_MEMORY;
    }
    CT_TRY(list_fields(arena, root, "", false, &settings, err));
    *out_settings = settings;
    return CT_OK;
}

/* Short names for long ones; tried where the short one is no setting itself. */
static const char *const aliases[][2] = {
    {"optimizer.name", "optimizer.param_groups.0.optimizer_name"},
    {"optimizer.lr", "optimizer.param_groups.0.optimizer_kwargs.lr"},
    {"optimizer.betas", "optimizer.param_groups.0.optimizer_kwargs.betas"},
    {"optimizer.eps", "optimizer.param_groups.0.optimizer_kwargs.eps"},
    {"optimizer.weight_decay", "optimizer.param_groups.0.optimizer_kwargs.weight_decay"},
    {"loss.global_vocab_size", "loss.loss_fn.global_vocab_size"},
};

static const cti_setting *find_exact(const cti_settings *settings, const char *path)
{
    for (size_t i = 0; i < settings->n; i++) {
        if (cti_name_eq(settings->items[i].path, path)) {
            return &settings->items[i];
        }
    }
    return NULL;
}

const char *cti_alias_path(const char *path)
{
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        if (cti_name_eq(aliases[i][0], path)) {
            return aliases[i][1];
        }
    }
    return NULL;
}

bool cti_alias_at(size_t i, const char **out_short, const char **out_long)
{
    if (i >= sizeof aliases / sizeof aliases[0]) {
        return false;
    }
    *out_short = aliases[i][0];
    *out_long = aliases[i][1];
    return true;
}

const cti_setting *cti_settings_find(const cti_settings *settings, const char *path)
{
    const cti_setting *found = find_exact(settings, path);
    const char *whole = found == NULL ? cti_alias_path(path) : NULL;
    return whole != NULL ? find_exact(settings, whole) : found;
}

/* ---- short names of all groups ----------------------------------------------------------------------------------- */

bool cti_alias_group_path(const char *whole, int32_t i, char *buf, size_t size)
{
    static const char first[] = "optimizer.param_groups.0.";
    return cti_starts_with(whole, first) &&
           (size_t)snprintf(buf, size, "optimizer.param_groups.%" PRId32 ".%s", i, whole + sizeof first - 1) < size;
}

bool cti_alias_groups_differ(const cti_alias_group *groups, int32_t n, const ct_field *field, const char *given, cti_problems *problems)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s", field->name);
    for (char *p = name; *p != '\0'; p++) {
        *p = *p == '_' ? '-' : *p;
    }
    for (int32_t i = 1; i < n; i++) {
        if (!ct_field_equal(field, groups[0].component->values, groups[i].component->values)) {
            cti_problem_add(problems, "%s: the optimizer's %" PRId32 " param groups have different values, which one for all would undo; name the "
                            "group: --optimizer.param-groups.N.%s%s", given, n,
                            cti_str_eq(groups[0].component->name, "optimizer_kwargs") ? "optimizer-kwargs." : "", name);
            return true;
        }
    }
    return false;
}

ct_status cti_setting_set_named(ct_tree *tree, const cti_settings *settings, const char *path, const cti_setting *setting, const char *given,
                                const char *const *tokens, size_t n_tokens, ct_source source, cti_problems *problems, ct_err *err)
{
    const char *whole = find_exact(settings, path) == NULL ? cti_alias_path(path) : NULL;
    const cti_setting *same[CTI_MAX_PARAM_GROUPS];
    cti_alias_group groups[CTI_MAX_PARAM_GROUPS];
    char buf[128];
    int32_t n = 0;
    while (whole != NULL && n < CTI_MAX_PARAM_GROUPS && cti_alias_group_path(whole, n, buf, sizeof buf)) {
        const cti_setting *s = find_exact(settings, buf);
        if (s == NULL || s->field != setting->field) {
            break;
        }
        same[n] = s;
        groups[n++] = (cti_alias_group){s->component};
    }
    if (n < 2) {
        return cti_setting_set(tree, setting, given, tokens, n_tokens, source, problems, err);
    }
    if (cti_alias_groups_differ(groups, n, setting->field, given, problems)) {
        cti_problem_refused(problems, setting->field);
        return CT_OK;
    }
    const int before = problems->n;
    for (int32_t i = 0; i < n && problems->n == before; i++) { /* a refused value is told once */
        CT_TRY(cti_setting_set(tree, same[i], given, tokens, n_tokens, source, problems, err));
    }
    return CT_OK;
}

/* ---- names ----------------------------------------------------------------------------------------------------- */

const char *cti_flag_name(ct_arena *arena, const char *path, ct_err *err)
{
    char *flag = ct_arena_printf(arena, err, "--%s", path);
    for (char *p = flag; p != NULL && *p != '\0'; p++) {
        *p = *p == '_' ? '-' : *p;
    }
    return flag;
}

const char *cti_environ_name(ct_arena *arena, const char *path, ct_err *err)
{
    char *name = ct_arena_alloc(arena, sizeof "CTITAN_" + 2 * strlen(path), err);
    if (name == NULL) {
        return NULL;
    }
    memcpy(name, "CTITAN_", sizeof "CTITAN_" - 1);
    char *out = name + sizeof "CTITAN_" - 1;
    for (const char *p = path; *p != '\0'; p++) {
        if (*p == '.') {
            *out++ = '_';
            *out++ = '_';
        } else if (*p >= 'a' && *p <= 'z') {
            *out++ = (char)(*p - 'a' + 'A');
        } else {
            *out++ = *p == '-' ? '_' : *p;
        }
    }
    *out = '\0';
    return name;
}

const char *cti_setting_metavar(const cti_setting *setting, ct_arena *arena, ct_err *err)
{
    if (setting->field->kind != CT_FIELD_CHOICE) {
        return ct_field_metavar(setting->field);
    }
    char *text = ct_arena_printf(arena, err, "{%s}", setting->field->choices);
    for (char *p = text; p != NULL && *p != '\0'; p++) {
        *p = *p == '|' ? ',' : *p;
    }
    return text;
}

const char *cti_setting_source(const cti_setting *setting)
{
    const ptrdiff_t i = setting->field - setting->component->cls->fields;
    const char **origins = setting->component->origins;
    return origins != NULL && origins[i] != NULL ? origins[i] : cti_source_name((ct_source)setting->component->sources[i]);
}

const char *cti_source_name(ct_source source)
{
    static const char *const names[CT_SOURCE_COUNT] = {
#define SOURCE_NAME(NAME, name) [CT_SOURCE_##NAME] = #name,
        CT_SOURCE_LIST(SOURCE_NAME)
#undef SOURCE_NAME
    };
    return names[source];
}

/* ---- unknown names --------------------------------------------------------------------------------------------- */

/* What older releases and other launchers of the same family call it, and where it is now. */
static const char *const moved[][2] = {
    {"model.name", "choose the model with --module and --config"},
    {"model.flavor", "choose the model with --module and --config"},
    {"model.hf_assets_path", "it is --hf-assets-path"},
    {"model.tokenizer_path", "it is --hf-assets-path, a folder"},
    {"job.config_file", "choose a run with --module and --config"},
    {"job.dump_folder", "it is --dump-folder"},
    {"job.print_config", "it is --debug.print-config"},
    {"job.print_args", "it is --debug.print-config"},
    {"training.dataset", "it is --dataloader.dataset"},
    {"training.dataset_path", "it is --dataloader.dataset-path"},
    {"training.seed", "it is --debug.seed"},
    {"training.deterministic", "it is --debug.deterministic"},
    {"training.compile", "it is --compile.enable"},
    {"training.warmup_steps", "it is --lr-scheduler.warmup-steps"},
    {"activation_checkpoint.mode", "write the word activation-checkpoint:KIND instead"},
    {"parallelism.enable_async_tensor_parallel", "it is --compile.enable-async-tensor-parallel"},
    {"profiling", "the section is --profiler"},
    {"validation", "the section is --validator"},
    {"float8", "float8 training is not there yet"},
    {"quantize", "quantized training is not there yet"},
    {"experimental", "there is no such section"},
    {"fault_tolerance", "replicas that come and go are not there yet"},
};

const char *cti_moved_flag(const char *path)
{
    const size_t section_bytes = strcspn(path, ".");
    for (size_t i = 0; i < sizeof moved / sizeof moved[0]; i++) {
        const char *old = moved[i][0];
        const bool whole = strchr(old, '.') != NULL;
        if (whole ? cti_name_eq(old, path)
                  : strlen(old) == section_bytes && path[section_bytes] == '.' &&
                        strncmp(old, path, section_bytes) == 0) {
            return moved[i][1];
        }
    }
    return NULL;
}

static const char *last_name(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot != NULL ? dot + 1 : path;
}

/* The best guess at what `path` was meant to be: by spelling, else the only setting with the same last name. */
static const cti_setting *nearest_setting(ct_tree *tree, const cti_settings *settings, const char *path, ct_err *err)
{
    ct_arena *arena = ct_tree_arena(tree);
    const char **names = ct_arena_alloc(arena, (settings->n + 1) * sizeof *names, err);
    const cti_setting **of = ct_arena_alloc(arena, (settings->n + 1) * sizeof *of, err);
    char *wanted = ct_arena_strdup(arena, path, err);
    if (names == NULL || of == NULL || wanted == NULL) {
        return NULL;
    }
    for (char *p = wanted; *p != '\0'; p++) {
        *p = *p == '-' ? '_' : *p;
    }
    size_t n = 0;
    for (size_t i = 0; i < settings->n; i++) {
        if (settings->items[i].is_flag && settings->items[i].is_listed) {
            of[n] = &settings->items[i];
            names[n++] = settings->items[i].path;
        }
    }
    const cti_setting *same_name = NULL;
    int n_same = 0;
    for (size_t i = 0; i < n; i++) {
        if (cti_str_eq(last_name(names[i]), last_name(wanted))) {
            same_name = of[i];
            n_same++;
        }
    }
    if (n_same == 1) {
        return same_name;
    }
    const int nearest = cti_nearest(wanted, names, n);
    return nearest >= 0 ? of[nearest] : NULL;
}

/* The kind of activation checkpointing that has this field, where the tree's kind has not. */
static const cti_ac_kind *other_ac_kind(const char *path)
{
    static const char section[] = "activation_checkpoint.";
    const size_t n = sizeof section - 1;
    if (strlen(path) <= n || strncmp(path + 11, section + 11, n - 11) != 0 ||
        strncmp(path, section, 10) != 0) { /* byte 10 is '_' or '-' */
        return NULL;
    }
    for (int i = 0; i < cti_n_ac_kinds; i++) {
        const ct_class *cls = cti_ac_kinds[i].cls;
        if (ct_field_find(cls->fields, (size_t)cls->n_fields, path + n) != NULL) {
            return &cti_ac_kinds[i];
        }
    }
    return NULL;
}

ct_status cti_unknown_setting(ct_tree *tree, const cti_settings *settings, const char *given, const char *path,
                              cti_name_form form, cti_problems *problems, ct_err *err)
{
    static const char *const words[] = {"unknown flag", "unknown setting", "unknown key"};
    const char *what = words[form];
    const cti_ac_kind *kind = other_ac_kind(path);
    const char *now = cti_moved_flag(path);
    if (kind != NULL) {
        cti_problem_add(problems, "%s: belongs to 'activation-checkpoint:%s', which was not chosen", given, kind->name);
        return CT_OK;
    }
    if (now != NULL) {
        cti_problem_add(problems, "%s: %s: %s", given, what, now);
        return CT_OK;
    }
    const cti_setting *nearest = nearest_setting(tree, settings, path, err);
    if (nearest == NULL) {
        cti_problem_add(problems, "%s: %s; --help lists them all", given, what);
        return CT_OK;
    }
    ct_arena *arena = ct_tree_arena(tree);
    const char *name = form == CTI_AS_KEY       ? nearest->path
                       : form == CTI_AS_ENVIRON ? cti_environ_name(arena, nearest->path, err)
                                                : cti_flag_name(arena, nearest->path, err);
    if (name == NULL) {
        return CT_ERR_MEMORY;
    }
    cti_problem_add(problems, "%s: %s (nearest: %s)", given, what, name);
    return CT_OK;
}

/* ---- setting --------------------------------------------------------------------------------------------------- */

const cti_ac_kind *cti_ac_kind_find(const char *name, const char *given, cti_problems *problems)
{
    const char *names[8];
    for (int i = 0; i < cti_n_ac_kinds; i++) {
        names[i] = cti_ac_kinds[i].name;
        if (cti_name_eq(names[i], name)) {
            return &cti_ac_kinds[i];
        }
    }
    const int nearest = cti_nearest(name, names, (size_t)cti_n_ac_kinds);
    cti_problem_add(problems, "%s: '%s' is none of selective, full, memory-budget, none%s%s%s", given, name,
                    nearest >= 0 ? " (nearest: '" : "", nearest >= 0 ? names[nearest] : "", nearest >= 0 ? "')" : "");
    return NULL;
}

ct_status cti_setting_set(ct_tree *tree, const cti_setting *setting, const char *given, const char *const *tokens,
                          size_t n_tokens, ct_source source, cti_problems *problems, ct_err *err)
{
    ct_err why = {0};
    const ct_status st =
        ct_component_set(tree, setting->component, setting->field->name, tokens, n_tokens, source, &why);
    if (st == CT_ERR_MEMORY) {
        return CT_FAIL(err, st, "%s", why.message);
    }
    if (st != CT_OK) {
        cti_problem_add(problems, "%s: %s", given, why.message);
        cti_problem_refused(problems, setting->field);
    }
    return CT_OK;
}
