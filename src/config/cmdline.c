/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: argv into the tree. The flags are those of the instantiated tree.
 *
 *   --section.field VALUE   --section.field=VALUE      kebab or snake case; the last one wins
 *   --section.flag  --section.no-flag  --section.flag=true|false
 *   --section.list A B C                               up to the next flag
 *   activation-checkpoint:KIND                         a word of its own, anywhere
 *   --module X --config Y -h --help                    taken out before the tree is made
 */
#include <string.h>

#include "base/fields.h"
#include "config/config_internal.h"

static bool is_flag_like(const char *token)
{
    double number;
    return token[0] == '-' && token[1] != '\0' && !cti_parse_f64(token, &number);
}

/* The text after "activation-checkpoint:", NULL where the token is another. */
static const char *ac_word(const char *token)
{
    const char *colon = strchr(token, ':');
    if (colon == NULL || colon - token != 21) {
        return NULL;
    }
    return (strncmp(token, "activation-checkpoint", 21) == 0 || strncmp(token, "activation_checkpoint", 21) == 0)
               ? colon + 1
               : NULL;
}

/* ---- what must be known before the tree ------------------------------------------------------------------------ */

/* "--name V" or "--name=V" at args[*i]: stores V and steps over it. False where it is another argument. */
static bool take_named(int argc, const char *const *argv, int *i, const char *name, const char **value,
                       cti_problems *problems)
{
    const size_t n = strlen(name);
    const char *arg = argv[*i];
    if (strncmp(arg, name, n) != 0 || (arg[n] != '\0' && arg[n] != '=')) {
        return false;
    }
    if (arg[n] == '=') {
        *value = arg + n + 1;
    } else if (*i + 1 < argc && !is_flag_like(argv[*i + 1])) {
        *value = argv[++*i];
    } else {
        cti_problem_add(problems, "%s: a value is missing", name);
        return true;
    }
    if ((*value)[0] == '\0') {
        cti_problem_add(problems, "%s: the value is empty", name);
    }
    return true;
}

ct_status cti_cmdline_scan(int argc, const char *const *argv, ct_arena *arena, cti_cmdline *out_cmdline,
                           cti_problems *problems, ct_err *err)
{
    cti_cmdline found = {.args = ct_arena_alloc(arena, ((size_t)argc + 1) * sizeof(char *), err)};
    if (found.args == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int i = 0; i < argc; i++) {
        if (take_named(argc, argv, &i, "--module", &found.module, problems) ||
            take_named(argc, argv, &i, "--config", &found.config, problems)) {
            continue;
        }
        if (cti_str_eq(argv[i], "--help") || cti_str_eq(argv[i], "-h")) {
            found.wants_help = true;
            continue;
        }
        found.args[found.n_args++] = argv[i];
    }
    *out_cmdline = found;
    return CT_OK;
}

/* ---- flags ----------------------------------------------------------------------------------------------------- */

typedef struct parser {
    ct_tree *tree;
    ct_arena *arena;
    const cti_settings *settings;
    const cti_cmdline *line;
    size_t at;              /* the argument to look at next */
    const cti_setting *last; /* the flag before it; NULL: none or unknown */
    cti_problems *problems;
    ct_err *err;
} parser;

/* The argument to look at next if it is neither a flag nor the activation-checkpoint word; else NULL. */
static const char *next_value(const parser *p)
{
    if (p->at >= p->line->n_args) {
        return NULL;
    }
    const char *token = p->line->args[p->at];
    return is_flag_like(token) || ac_word(token) != NULL ? NULL : token;
}

/* "a.no-b" -> "a.b" in `buf`, which has room for all of path; false where the last name has no "no-". */
static bool without_no(const char *path, char *buf)
{
    const char *dot = strrchr(path, '.');
    const char *name = dot != NULL ? dot + 1 : path;
    if (strncmp(name, "no-", 3) != 0 && strncmp(name, "no_", 3) != 0) {
        return false;
    }
    const size_t head = (size_t)(name - path);
    memcpy(buf, path, head);
    memcpy(buf + head, name + 3, strlen(name + 3) + 1);
    return true;
}

static ct_status set_tokens(parser *p, const cti_setting *setting, const char *given, const char *const *tokens,
                            size_t n)
{
    const char *path = strncmp(given, "--", 2) == 0 ? given + 2 : given;
    return cti_setting_set_named(p->tree, p->settings, path, setting, given, tokens, n, CT_SOURCE_FLAG, p->problems, p->err);
}

static ct_status apply_bool(parser *p, const cti_setting *setting, const char *given, bool negated, const char *value)
{
    const char *token = negated ? "false" : "true";
    if (value != NULL && negated) {
        cti_problem_add(p->problems, "%s: takes no value", given);
        return CT_OK;
    }
    token = value != NULL ? value : token;
    return set_tokens(p, setting, given, &token, 1);
}

static ct_status apply_list(parser *p, const cti_setting *setting, const char *given, const char *value)
{
    if (value == NULL) {
        const size_t first = p->at;
        while (next_value(p) != NULL) {
            p->at++;
        }
        if (p->at == first && setting->field->kind != CT_FIELD_TOKENS) {
            cti_problem_add(p->problems, "%s: a value is missing, wanted %s", given, ct_field_metavar(setting->field));
            return CT_OK;
        }
        return set_tokens(p, setting, given, p->line->args + first, p->at - first);
    }
    if (setting->field->kind == CT_FIELD_TOKENS) {
        return set_tokens(p, setting, given, &value, 1);
    }
    cti_tokens tokens;
    ct_err why = {0};
    const ct_status st = cti_field_split(setting->field, value, p->arena, &tokens, &why);
    if (st == CT_ERR_USAGE) {
        cti_problem_add(p->problems, "%s: %s", given, why.message);
        return CT_OK;
    }
    CT_TRY(st);
    return set_tokens(p, setting, given, tokens.items, tokens.n);
}

static ct_status apply_one(parser *p, const cti_setting *setting, const char *given, const char *value)
{
    if (value == NULL) {
        value = next_value(p);
        if (value == NULL) {
            const char *metavar = cti_setting_metavar(setting, p->arena, p->err);
            if (metavar == NULL) {
                return CT_ERR_MEMORY;
            }
            cti_problem_add(p->problems, "%s: a value is missing, wanted %s", given, metavar);
            return CT_OK;
        }
        p->at++;
    }
    return set_tokens(p, setting, given, &value, 1);
}

/* One "--name[=value]" at p->at with what belongs to it. */
static ct_status apply_flag(parser *p)
{
    const char *token = p->line->args[p->at++];
    const char *equals = strchr(token, '=');
    const size_t n = equals != NULL ? (size_t)(equals - token) : strlen(token);
    const char *value = equals != NULL ? equals + 1 : NULL;
    char *given = ct_arena_alloc(p->arena, n + 1, p->err);
    char *positive = ct_arena_alloc(p->arena, n + 1, p->err);
    if (given == NULL || positive == NULL) {
        return CT_ERR_MEMORY;
    }
    memcpy(given, token, n);
    const char *path = strncmp(given, "--", 2) == 0 ? given + 2 : NULL;
    const cti_setting *setting = path != NULL ? cti_settings_find(p->settings, path) : NULL;
    bool negated = false;
    if (setting == NULL && path != NULL && without_no(path, positive)) {
        setting = cti_settings_find(p->settings, positive);
        negated = setting != NULL;
    }
    if (setting == NULL || !setting->is_flag || (negated && setting->field->kind != CT_FIELD_BOOL)) {
        while (next_value(p) != NULL) { /* most likely its values: one problem is enough */
            p->at++;
        }
        p->last = NULL;
        if (setting != NULL && !setting->is_flag) {
            cti_problem_add(p->problems, "%s: follows from other settings and the registry function: it is not set itself", given);
            return CT_OK;
        }
        if (setting != NULL) {
            cti_problem_add(p->problems, "%s: takes a value and has no opposite", given);
            return CT_OK;
        }
        return cti_unknown_setting(p->tree, p->settings, given, path != NULL ? path : given, CTI_AS_FLAG, p->problems,
                                   p->err);
    }
    p->last = setting;
    if (setting->field->kind == CT_FIELD_BOOL) {
        return apply_bool(p, setting, given, negated, value);
    }
    return cti_field_is_variadic(setting->field) ? apply_list(p, setting, given, value)
                                                 : apply_one(p, setting, given, value);
}

static ct_status stray(parser *p)
{
    const char *token = p->line->args[p->at++];
    if (p->last == NULL) {
        cti_problem_add(p->problems, "'%s': no flag stands before it", token);
        return CT_OK;
    }
    const char *flag = cti_flag_name(p->arena, p->last->path, p->err);
    if (flag == NULL) {
        return CT_ERR_MEMORY;
    }
    if (p->last->field->kind == CT_FIELD_BOOL) {
        cti_problem_add(p->problems, "'%s': %s takes no value of its own, wanted %s=true or %s=false", token, flag,
                        flag, flag);
    } else {
        cti_problem_add(p->problems, "'%s': %s takes one value and already has it%s", token, flag,
                        cti_ends_with(flag, "path") ? " (a pattern goes in quotes)" : "");
    }
    return CT_OK;
}

/* Puts the kind of activation checkpointing in place that the command line names. */
static ct_status apply_ac(ct_tree *tree, ct_component *root, const cti_cmdline *line, cti_problems *problems,
                          ct_err *err)
{
    const cti_ac_kind *chosen = NULL;
    for (size_t i = 0; i < line->n_args; i++) {
        const char *word = ac_word(line->args[i]);
        if (word == NULL) {
            continue;
        }
        const cti_ac_kind *kind = cti_ac_kind_find(word, line->args[i], problems);
        if (kind != NULL && chosen != NULL && kind != chosen) {
            cti_problem_add(problems, "%s: 'activation-checkpoint:%s' was chosen before it, wanted one of them",
                            line->args[i], chosen->name);
        } else if (kind != NULL) {
            chosen = kind;
        }
    }
    return chosen != NULL ? cti_set_ac(tree, root, chosen->cls, err) : CT_OK;
}

ct_status cti_cmdline_apply(ct_tree *tree, ct_component *root, const cti_cmdline *cmdline, cti_problems *problems,
                            ct_err *err)
{
    CT_TRY(apply_ac(tree, root, cmdline, problems, err));
    cti_settings settings;
    CT_TRY(cti_settings_list(tree, root, &settings, err));
    parser p = {.tree = tree,
                .arena = ct_tree_arena(tree),
                .settings = &settings,
                .line = cmdline,
                .problems = problems,
                .err = err};
    while (p.at < cmdline->n_args) {
        if (ac_word(cmdline->args[p.at]) != NULL) {
            p.at++;
            p.last = NULL;
        } else if (is_flag_like(cmdline->args[p.at])) {
            CT_TRY(apply_flag(&p));
        } else {
            CT_TRY(stray(&p));
        }
    }
    return cti_str_check(&problems->text, err);
}
