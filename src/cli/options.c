/* SPDX-License-Identifier: Apache-2.0 */
/* Options of the small commands. */
#include "cli/options.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"

enum { MAX_FIELDS = 64 };

/* What is printed of an option's help for a sub-command: behind "one, other: ", or NULL where others have the option. */
static const char *help_for(const char *text, const char *sub_command)
{
    const size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz, ");
    if (sub_command == NULL || strncmp(text + n, ": ", 2) != 0) {
        return text;
    }
    const size_t size = strlen(sub_command);
    for (size_t at = 0; at < n;) {
        const size_t word = strcspn(text + at, ",:");
        if (memchr(text + at, ' ', word) != NULL) {
            return text; /* "llm.c files: ": no list of names */
        }
        if (word == size && strncmp(text + at, sub_command, size) == 0) {
            return text + n + 2;
        }
        at += word + 2;
    }
    return NULL;
}

static void print_option(const ct_field *f, const char *what)
{
    char name[96];
    const int n = snprintf(name, sizeof name, "--%s ", f->name);
    for (int i = 0; i < n; i++) {
        name[i] = name[i] == '_' ? '-' : name[i];
    }
    const bool is_choice = f->kind == CT_FIELD_CHOICE;
    const char *metavar = (f->flags & CT_SET_REPEATED) != 0 ? "STR" : ct_field_metavar(f);
    (void)snprintf(name + n, sizeof name - (size_t)n, is_choice ? "{%s}" : "%s", is_choice ? f->choices : metavar);
    for (char *c = name + n; is_choice && *c != '\0'; c++) {
        *c = *c == '|' ? ',' : *c;
    }
    const bool has_default = f->default_text[0] != '\0' && f->kind != CT_FIELD_BOOL && !cti_str_eq(f->default_text, "None");
    printf(strlen(name) <= 28 ? "  %-28s %s" : "  %s\n                               %s", name, what);
    if (has_default) {
        printf(" (default: %s)", f->default_text);
    }
    putchar('\n');
}

static void print_help(const ct_field *fields, size_t n, const cti_command_help *help)
{
    printf("usage: %s\n\n%s\n\n", help->usage, help->summary);
    for (size_t i = 0; i < n; i++) {
        const char *what = help_for(fields[i].help, help->sub_command);
        if (what != NULL) {
            print_option(&fields[i], what);
        }
    }
}

static void complain_unknown(const char *arg, const ct_field *fields, size_t n)
{
    const char *names[MAX_FIELDS];
    for (size_t i = 0; i < n; i++) {
        names[i] = fields[i].name;
    }
    const int nearest = cti_nearest(arg + 2, names, n);
    fprintf(stderr, "%s: there is no such option%s", arg, nearest >= 0 ? "; nearest is --" : "");
    for (const char *c = nearest >= 0 ? names[nearest] : ""; *c != '\0'; c++) {
        fputc(*c == '_' ? '-' : *c, stderr);
    }
    fputc('\n', stderr);
}

/* The words that the list has, and one more. */
static ct_status add_to_list(const ct_field *f, const void *values, const char *word, ct_arena *arena, const char ***out_words, size_t *out_n,
                             ct_err *err)
{
    const ct_str_list *have = (const ct_str_list *)(const void *)((const char *)values + f->offset);
    const size_t n = (size_t)have->n;
    const char **words = ct_arena_alloc(arena, (n + 1) * sizeof *words, err);
    if (words == NULL) {
        return CT_ERR_MEMORY;
    }
    for (size_t i = 0; i < n; i++) {
        words[i] = have->items[i];
    }
    words[n] = word;
    *out_words = words;
    *out_n = n + 1;
    return CT_OK;
}

/* One option at argv[*at]; moves *at past it. */
static ct_status parse_one(int argc, char **argv, int *at, const ct_field *fields, size_t n, void *values, const cti_command_help *help,
                           ct_arena *arena, ct_err *err)
{
    char *arg = ct_arena_strdup(arena, argv[(*at)++], err);
    if (arg == NULL) {
        return CT_ERR_MEMORY;
    }
    if (strncmp(arg, "--", 2) != 0) {
        fprintf(stderr, "%s: an option that begins with -- is wanted (a pattern goes in quotes)\n", arg);
        return CT_ERR_USAGE;
    }
    char *equals = strchr(arg, '=');
    if (equals != NULL) {
        *equals = '\0';
    }
    const ct_field *f = ct_field_find(fields, n, arg + 2);
    const bool is_no = f == NULL && strncmp(arg, "--no-", 5) == 0 && ct_field_find(fields, n, arg + 5) != NULL;
    f = is_no ? ct_field_find(fields, n, arg + 5) : f;
    if (f == NULL || (is_no && f->kind != CT_FIELD_BOOL)) {
        complain_unknown(arg, fields, n);
        return CT_ERR_USAGE;
    }
    const char *value = equals != NULL ? equals + 1 : f->kind == CT_FIELD_BOOL ? (is_no ? "false" : "true") : NULL;
    const char *const *tokens = &value;
    size_t n_tokens = 1;
    if (value == NULL) { /* the next word; lists take all words up to the next option */
        const bool is_list = (f->kind == CT_FIELD_STR_LISTS || f->kind == CT_FIELD_TOKENS) && (f->flags & CT_SET_REPEATED) == 0;
        tokens = (const char *const *)argv + *at;
        n_tokens = *at < argc && !(is_list && strncmp(argv[*at], "--", 2) == 0);
        *at += (int)n_tokens;
        for (; is_list && n_tokens > 0 && *at < argc && strncmp(argv[*at], "--", 2) != 0; (*at)++) {
            n_tokens++;
        }
    }
    if (help_for(f->help, help->sub_command) == NULL) {
        fprintf(stderr, "%s: is an option of %.*s, not of %s\n", arg, (int)strcspn(f->help, ":"), f->help, help->sub_command);
        return CT_ERR_USAGE;
    }
    if (n_tokens == 0) {
        fprintf(stderr, "%s: a value is wanted\n", arg);
        return CT_ERR_USAGE;
    }
    ct_err why = {0};
    const char **all = NULL;
    if ((f->flags & CT_SET_REPEATED) != 0) {
        CT_TRY(add_to_list(f, values, tokens[0], arena, &all, &n_tokens, err));
        tokens = all;
    }
    const ct_status st = ct_field_set(f, values, tokens, n_tokens, arena, &why);
    if (st != CT_OK) {
        fprintf(stderr, "%s: %s\n", arg, why.message);
    }
    return st;
}

ct_status cti_options_parse(int argc, char **argv, const ct_field *fields, size_t n, void *values,
                            const cti_command_help *help, ct_arena *arena, bool *out_done, ct_err *err)
{
    CT_ASSERT(n <= MAX_FIELDS);
    *out_done = false;
    CT_TRY(ct_fields_default(fields, n, values, arena, err));
    for (int i = 1; i < argc; i++) {
        if (cti_str_eq(argv[i], "--help") || cti_str_eq(argv[i], "-h")) {
            print_help(fields, n, help);
            *out_done = true;
            return CT_OK;
        }
    }
    bool is_bad = false;
    for (int at = 1; at < argc;) {
        const ct_status st = parse_one(argc, argv, &at, fields, n, values, help, arena, err);
        if (st == CT_ERR_MEMORY) {
            return st;
        }
        is_bad = is_bad || st != CT_OK;
    }
    return is_bad ? CT_FAIL(err, CT_ERR_USAGE, "wrong options; --help lists them") : CT_OK;
}

const char *cti_option_value(const char *name, int argc, char **argv, int *i)
{
    const size_t n = strlen(name);
    if (strncmp(argv[*i], name, n) != 0 || (argv[*i][n] != '=' && argv[*i][n] != '\0')) {
        return NULL;
    }
    return argv[*i][n] == '=' ? argv[*i] + n + 1 : *i + 1 < argc ? argv[++*i] : "";
}
