/* SPDX-License-Identifier: Apache-2.0 */
/* Field tables at work: defaults, parsing, printing, comparing and copying of one field. */
#include "base/fields.h"

#include <inttypes.h>
#include <string.h>

#include "base/nearest.h"
#include "base/str.h"

enum { MAX_CHOICES = 64, MAX_SHOWN_BYTES = 160 };

/* Room for a field of any kind. */
typedef union field_value {
#define FIELD_VALUE_MEMBER(KIND, type, metavar) ct_field_type_##KIND as_##KIND;
    CT_FIELD_KIND_LIST(FIELD_VALUE_MEMBER)
#undef FIELD_VALUE_MEMBER
} field_value;

static const size_t value_sizes[CT_FIELD_KIND_COUNT] = {
#define FIELD_VALUE_SIZE(KIND, type, metavar) [CT_FIELD_##KIND] = sizeof(ct_field_type_##KIND),
    CT_FIELD_KIND_LIST(FIELD_VALUE_SIZE)
#undef FIELD_VALUE_SIZE
};

static const char *const metavars[CT_FIELD_KIND_COUNT] = {
#define FIELD_METAVAR(KIND, type, metavar) [CT_FIELD_##KIND] = metavar,
    CT_FIELD_KIND_LIST(FIELD_METAVAR)
#undef FIELD_METAVAR
};

const char *ct_field_metavar(const ct_field *field)
{
    return metavars[field->kind];
}

static char fold_dash(char c)
{
    return c == '-' ? '_' : c;
}

bool cti_name_eq(const char *a, const char *b)
{
    while (*a != '\0' && fold_dash(*a) == fold_dash(*b)) {
        a++;
        b++;
    }
    return *a == '\0' && *b == '\0';
}

const ct_field *ct_field_find(const ct_field *fields, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (cti_name_eq(fields[i].name, name)) {
            return &fields[i];
        }
    }
    return NULL;
}

bool cti_field_is_variadic(const ct_field *field)
{
    return field->kind == CT_FIELD_STR_LISTS || field->kind == CT_FIELD_I64_LIST || field->kind == CT_FIELD_F64_LIST ||
           field->kind == CT_FIELD_TOKENS;
}

static const void *value_at(const ct_field *field, const void *values)
{
    return (const char *)values + field->offset;
}

/* ---- text to tokens ------------------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Takes one token from *p into `out` (which has room for all of *p). False where a quote stays open. */
static bool take_token(const char **p, char *out)
{
    bool quoted = false;
    while (**p != '\0' && (quoted || !is_blank(**p))) {
        if (**p == '\'') {
            if (quoted && (*p)[1] == '\'') {
                *out++ = '\'';
                *p += 2;
                continue;
            }
            quoted = !quoted;
        } else {
            *out++ = **p;
        }
        (*p)++;
    }
    *out = '\0';
    return !quoted;
}

ct_status cti_field_split(const ct_field *field, const char *text, ct_arena *arena, cti_tokens *out_tokens, ct_err *err)
{
    const size_t length = strlen(text);
    const char **items = ct_arena_alloc(arena, (length / 2 + 1) * sizeof *items, err);
    if (items == NULL) {
        return CT_ERR_MEMORY;
    }
    size_t n = 0;
    if (!cti_field_is_variadic(field)) {
        items[n] = ct_arena_strdup(arena, text, err);
        if (items[n++] == NULL) {
            return CT_ERR_MEMORY;
        }
    } else {
        for (const char *p = text;;) {
            while (is_blank(*p)) {
                p++;
            }
            if (*p == '\0') {
                break;
            }
            char *token = ct_arena_alloc(arena, strlen(p) + 1, err);
            if (token == NULL) {
                return CT_ERR_MEMORY;
            }
            if (!take_token(&p, token)) {
                return CT_FAIL(err, CT_ERR_USAGE, "'%.*s': a quote is not closed", MAX_SHOWN_BYTES, text);
            }
            items[n++] = token;
        }
    }
    *out_tokens = (cti_tokens){items, n};
    return CT_OK;
}

/* ---- parsing of single values --------------------------------------------------------------------------------- */

static ct_status check_i64(const ct_field *field, const char *text, int64_t value, ct_err *err)
{
    const char *unit_gap = field->unit[0] != '\0' ? " " : "";
    int64_t bound;
    if (cti_parse_i64(field->low, &bound) &&
        (value < bound || (value == bound && (field->flags & CT_SET_EXCLUSIVE_LOW) != 0))) {
        return CT_FAIL(err, CT_ERR_USAGE, "'%.*s' is too small, wanted %s %" PRId64 "%s%s", MAX_SHOWN_BYTES, text,
                       (field->flags & CT_SET_EXCLUSIVE_LOW) != 0 ? "more than" : "at least", bound, unit_gap,
                       field->unit);
    }
    if (cti_parse_i64(field->high, &bound) && value > bound) {
        return CT_FAIL(err, CT_ERR_USAGE, "'%.*s' is too large, wanted at most %" PRId64 "%s%s", MAX_SHOWN_BYTES, text,
                       bound, unit_gap, field->unit);
    }
    return CT_OK;
}

static ct_status check_f64(const ct_field *field, const char *text, double value, ct_err *err)
{
    const bool exclusive = (field->flags & CT_SET_EXCLUSIVE_LOW) != 0;
    double bound;
    if (__builtin_isnan(value) && (field->low[0] != '\0' || field->high[0] != '\0')) {
        return CT_FAIL(err, CT_ERR_USAGE, "'%.*s' is no number (FLOAT)", MAX_SHOWN_BYTES, text);
    }
    if (cti_parse_f64(field->low, &bound) && (exclusive ? value <= bound : value < bound)) {
        return CT_FAIL(err, CT_ERR_USAGE, "'%.*s' is too small, wanted %s %s", MAX_SHOWN_BYTES, text,
                       exclusive ? "more than" : "at least", field->low);
    }
    if (cti_parse_f64(field->high, &bound) && value > bound) {
        return CT_FAIL(err, CT_ERR_USAGE, "'%.*s' is too large, wanted at most %s", MAX_SHOWN_BYTES, text, field->high);
    }
    return CT_OK;
}

static ct_status parse_i64(const ct_field *field, const char *text, int64_t *out, ct_err *err)
{
    int64_t value;
    if (!cti_parse_i64(text, &value)) {
        return CT_FAIL(err, CT_ERR_USAGE, "'%.*s' is no whole number (INT) that fits in 64 bits", MAX_SHOWN_BYTES, text);
    }
    CT_TRY(check_i64(field, text, value, err));
    *out = value;
    return CT_OK;
}

static ct_status parse_f64(const ct_field *field, const char *text, double *out, ct_err *err)
{
    double value;
    if (!cti_parse_f64(text, &value)) {
        return CT_FAIL(err, CT_ERR_USAGE, "'%.*s' is no number (FLOAT)", MAX_SHOWN_BYTES, text);
    }
    CT_TRY(check_f64(field, text, value, err));
    *out = value;
    return CT_OK;
}

static ct_status parse_bool(const char *text, bool *out, ct_err *err)
{
    static const char *const words[] = {"true", "True", "1", "false", "False", "0"};
    for (int i = 0; i < 6; i++) {
        if (cti_str_eq(text, words[i])) {
            *out = i < 3;
            return CT_OK;
        }
    }
    return CT_FAIL(err, CT_ERR_USAGE, "'%.*s' is neither true nor false", MAX_SHOWN_BYTES, text);
}

/* Text as it is; low and high are bounds of its length in bytes. */
static ct_status parse_str(const ct_field *field, const char *text, ct_arena *arena, const char **out, ct_err *err)
{
    const size_t length = strlen(text);
    int64_t bound;
    if (cti_parse_i64(field->low, &bound) && (int64_t)length < bound) {
        return CT_FAIL(err, CT_ERR_USAGE, "'%.*s' is too short, wanted %" PRId64 " byte%s or more", MAX_SHOWN_BYTES,
                       text, bound, bound == 1 ? "" : "s");
    }
    if (cti_parse_i64(field->high, &bound) && (int64_t)length > bound) {
        return CT_FAIL(err, CT_ERR_USAGE, "'%.*s…' has %zu bytes, at most %" PRId64 " are taken", MAX_SHOWN_BYTES,
                       text, length, bound);
    }
    const char *copy = ct_arena_strdup(arena, text, err);
    if (copy == NULL) {
        return CT_ERR_MEMORY;
    }
    *out = copy;
    return CT_OK;
}

static ct_status parse_choice(const ct_field *field, const char *text, ct_arena *arena, const char **out, ct_err *err)
{
    char *names = ct_arena_strdup(arena, field->choices, err);
    if (names == NULL) {
        return CT_ERR_MEMORY;
    }
    const char *list[MAX_CHOICES];
    size_t n = 0;
    for (char *p = names; p != NULL && n < MAX_CHOICES; n++) {
        list[n] = p;
        p = strchr(p, '|');
        if (p != NULL) {
            *p++ = '\0';
        }
        if (strcmp(list[n], text) == 0) {
            *out = list[n];
            return CT_OK;
        }
    }
    const char *dot = strrchr(text, '.');
    if ((field->flags & CT_SET_PLUGIN) != 0 && dot != NULL && dot != text && dot[1] != '\0') {
        *out = ct_arena_strdup(arena, text, err);
        return *out != NULL ? CT_OK : CT_ERR_MEMORY;
    }
    const char *all = "";
    for (size_t i = 0; i < n && all != NULL; i++) {
        all = ct_arena_printf(arena, err, "%s%s%s", all, i > 0 ? ", " : "", list[i]);
    }
    if (all == NULL) {
        return CT_ERR_MEMORY;
    }
    const int nearest = cti_nearest(text, list, n);
    return CT_FAIL(err, CT_ERR_USAGE, "'%.*s' is none of %s%s%s%s", MAX_SHOWN_BYTES, text, all,
                   nearest >= 0 ? " (nearest: '" : "", nearest >= 0 ? list[nearest] : "", nearest >= 0 ? "')" : "");
}

/* "a,b" -> [a, b]; "" -> []. */
static ct_status parse_str_list(const char *text, ct_arena *arena, ct_str_list *out, ct_err *err)
{
    if (text[0] == '\0') {
        *out = (ct_str_list){0};
        return CT_OK;
    }
    size_t n = 1;
    for (const char *p = text; *p != '\0'; p++) {
        n += *p == ',';
    }
    char *copy = ct_arena_strdup(arena, text, err);
    const char **items = ct_arena_alloc(arena, n * sizeof *items, err);
    if (copy == NULL || items == NULL) {
        return CT_ERR_MEMORY;
    }
    for (size_t i = 0; i < n; i++) {
        items[i] = copy;
        copy = strchr(copy, ',');
        if (copy != NULL) {
            *copy++ = '\0';
        }
    }
    *out = (ct_str_list){(int64_t)n, items};
    return CT_OK;
}

/* ---- parsing of several tokens -------------------------------------------------------------------------------- */

static ct_status parse_str_lists(const char *const *tokens, size_t n, ct_arena *arena, ct_str_lists *out, ct_err *err)
{
    if (n == 1 && cti_str_eq(tokens[0], "None")) {
        *out = (ct_str_lists){0};
        return CT_OK;
    }
    ct_str_list *items = ct_arena_alloc(arena, (n + 1) * sizeof *items, err);
    if (items == NULL) {
        return CT_ERR_MEMORY;
    }
    for (size_t i = 0; i < n; i++) {
        CT_TRY(parse_str_list(tokens[i], arena, &items[i], err));
    }
    *out = (ct_str_lists){true, (int64_t)n, items};
    return CT_OK;
}

static ct_status parse_numbers(const ct_field *field, const char *const *tokens, size_t n, ct_arena *arena,
                               field_value *out, ct_err *err)
{
    const bool whole = field->kind == CT_FIELD_I64_LIST;
    void *items = ct_arena_alloc(arena, (n + 1) * (whole ? sizeof(int64_t) : sizeof(double)), err);
    if (items == NULL) {
        return CT_ERR_MEMORY;
    }
    for (size_t i = 0; i < n; i++) {
        if (whole) {
            CT_TRY(parse_i64(field, tokens[i], (int64_t *)items + i, err));
        } else {
            CT_TRY(parse_f64(field, tokens[i], (double *)items + i, err));
        }
    }
    if (whole) {
        out->as_I64_LIST = (ct_i64_list){(int64_t)n, items};
    } else {
        out->as_F64_LIST = (ct_f64_list){(int64_t)n, items};
    }
    return CT_OK;
}

static ct_status copy_strings(ct_str_list src, ct_arena *arena, ct_str_list *out, ct_err *err)
{
    const char **items = ct_arena_alloc(arena, ((size_t)src.n + 1) * sizeof *items, err);
    if (items == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int64_t i = 0; i < src.n; i++) {
        items[i] = ct_arena_strdup(arena, src.items[i], err);
        if (items[i] == NULL) {
            return CT_ERR_MEMORY;
        }
    }
    *out = (ct_str_list){src.n, items};
    return CT_OK;
}

static ct_status parse_value(const ct_field *field, const char *const *tokens, size_t n, ct_arena *arena,
                             field_value *out, ct_err *err)
{
    if (!cti_field_is_variadic(field) && n != 1) {
        return CT_FAIL(err, CT_ERR_USAGE, "wanted one value, found %zu", n);
    }
    switch (field->kind) {
    case CT_FIELD_BOOL:
        return parse_bool(tokens[0], &out->as_BOOL, err);
    case CT_FIELD_I64:
        return parse_i64(field, tokens[0], &out->as_I64, err);
    case CT_FIELD_F64:
        return parse_f64(field, tokens[0], &out->as_F64, err);
    case CT_FIELD_STR:
        return parse_str(field, tokens[0], arena, &out->as_STR, err);
    case CT_FIELD_CHOICE:
        return parse_choice(field, tokens[0], arena, &out->as_CHOICE, err);
    case CT_FIELD_OPT_I64:
        out->as_OPT_I64 = (ct_opt_i64){.is_set = !cti_str_eq(tokens[0], "None")};
        return out->as_OPT_I64.is_set ? parse_i64(field, tokens[0], &out->as_OPT_I64.value, err) : CT_OK;
    case CT_FIELD_OPT_F64:
        out->as_OPT_F64 = (ct_opt_f64){.is_set = !cti_str_eq(tokens[0], "None")};
        return out->as_OPT_F64.is_set ? parse_f64(field, tokens[0], &out->as_OPT_F64.value, err) : CT_OK;
    case CT_FIELD_OPT_STR:
        out->as_OPT_STR = NULL;
        return cti_str_eq(tokens[0], "None") ? CT_OK : parse_str(field, tokens[0], arena, &out->as_OPT_STR, err);
    case CT_FIELD_STR_LIST:
        return parse_str_list(tokens[0], arena, &out->as_STR_LIST, err);
    case CT_FIELD_STR_LISTS:
        return parse_str_lists(tokens, n, arena, &out->as_STR_LISTS, err);
    case CT_FIELD_I64_LIST:
    case CT_FIELD_F64_LIST:
        return parse_numbers(field, tokens, n, arena, out, err);
    case CT_FIELD_TOKENS: {
        const ct_str_list list = {(int64_t)n, (const char **)(uintptr_t)tokens};
        return copy_strings(list, arena, &out->as_TOKENS, err);
    }
    case CT_FIELD_KIND_COUNT:
        break;
    }
    CT_ASSERT(field->kind < CT_FIELD_KIND_COUNT);
    return CT_ERR_STATE;
}

static bool value_equal(ct_field_kind kind, const field_value *a, const field_value *b);

static void load_value(const ct_field *field, const void *values, field_value *out)
{
    memset(out, 0, sizeof *out);
    memcpy(out, value_at(field, values), value_sizes[field->kind]);
}

static ct_status parse_default(const ct_field *field, ct_arena *arena, field_value *out, ct_err *err)
{
    cti_tokens tokens;
    CT_TRY(cti_field_split(field, field->default_text, arena, &tokens, err));
    return parse_value(field, tokens.items, tokens.n, arena, out, err);
}

ct_status ct_fields_default(const ct_field *fields, size_t n, void *values, ct_arena *arena, ct_err *err)
{
    for (size_t i = 0; i < n; i++) {
        field_value value;
        memset(&value, 0, sizeof value);
        ct_err why = {0};
        const ct_status st = parse_default(&fields[i], arena, &value, &why);
        if (st != CT_OK) { /* but for memory: a table whose default does not parse */
            return CT_FAIL(err, st == CT_ERR_USAGE ? CT_ERR_STATE : st, "the default of the field '%s': %s", fields[i].name, why.message);
        }
        memcpy((char *)values + fields[i].offset, &value, value_sizes[fields[i].kind]);
    }
    return CT_OK;
}

static ct_status check_field(const ct_field *f, size_t values_bytes, ct_arena *arena, ct_err *err)
{
    static const char legal[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    const char *name = f->name != NULL ? f->name : "";
    if (name[0] == '\0' || strspn(name, legal) != strlen(name)) {
        return CT_FAIL(err, CT_ERR_RANGE, "the field '%.80s': wanted a name of small letters, digits and '_'", name);
    }
    if ((unsigned)f->kind >= CT_FIELD_KIND_COUNT) {
        return CT_FAIL(err, CT_ERR_RANGE, "the field '%s' has kind %d, which does not exist", name, (int)f->kind);
    }
    if (f->default_text == NULL || f->low == NULL || f->high == NULL || f->choices == NULL || f->unit == NULL || f->help == NULL) {
        return CT_FAIL(err, CT_ERR_RANGE, "the field '%s' lacks a text: its default, bounds, choices, unit and help may be \"\", not NULL", name);
    }
    if (f->offset > values_bytes || value_sizes[f->kind] > values_bytes - f->offset) {
        return CT_FAIL(err, CT_ERR_RANGE, "the field '%s' lies in bytes %zu to %zu of %zu", name, f->offset, f->offset + value_sizes[f->kind], values_bytes);
    }
    field_value value;
    ct_err why = {0};
    memset(&value, 0, sizeof value);
    const ct_status st = parse_default(f, arena, &value, &why);
    return st == CT_OK ? CT_OK : CT_FAIL(err, st == CT_ERR_USAGE ? CT_ERR_RANGE : st, "the default of the field '%s': %s", name, why.message);
}

ct_status cti_fields_check(const ct_field *fields, int64_t n, size_t values_bytes, ct_err *err)
{
    ct_arena *arena = NULL;
    CT_TRY(ct_arena_create(ct_alloc_system(), 0, &arena, err));
    ct_status st = CT_OK;
    for (int64_t i = 0; i < n && st == CT_OK; i++) {
        st = check_field(&fields[i], values_bytes, arena, err);
        for (int64_t k = 0; k < i && st == CT_OK; k++) {
            const size_t begin = fields[i].offset, end = begin + value_sizes[fields[i].kind];
            if (strcmp(fields[k].name, fields[i].name) == 0) {
                st = CT_FAIL(err, CT_ERR_RANGE, "there are two fields '%s'", fields[i].name);
            } else if (fields[k].offset < end && begin < fields[k].offset + value_sizes[fields[k].kind]) {
                st = CT_FAIL(err, CT_ERR_RANGE, "the fields '%s' and '%s' lie upon each other", fields[k].name, fields[i].name);
            }
        }
    }
    ct_arena_destroy(&arena);
    return st;
}

ct_status ct_field_set(const ct_field *field, void *values, const char *const *tokens, size_t n_tokens, ct_arena *arena,
                       ct_err *err)
{
    field_value value;
    memset(&value, 0, sizeof value);
    CT_TRY(parse_value(field, tokens, n_tokens, arena, &value, err));
    if (field->refusal != NULL) {
        field_value usual;
        memset(&usual, 0, sizeof usual);
        CT_TRY(parse_default(field, arena, &usual, err));
        if (!value_equal(field->kind, &value, &usual)) {
            return CT_FAIL(err, CT_ERR_USAGE, "'%.*s' is refused: %s (leave it at '%s')", MAX_SHOWN_BYTES,
                           n_tokens > 0 ? tokens[0] : "", field->refusal, field->default_text);
        }
    }
    memcpy((char *)values + field->offset, &value, value_sizes[field->kind]);
    return CT_OK;
}

/* ---- printing, comparing, copying ----------------------------------------------------------------------------- */

static const char *i64_text(int64_t value, ct_arena *arena, ct_err *err)
{
    return ct_arena_printf(arena, err, "%" PRId64, value);
}

static const char *f64_text(double value, ct_arena *arena, ct_err *err)
{
    char buf[32];
    return ct_arena_strdup(arena, cti_format_f64(value, buf), err);
}

static const char *str_list_text(ct_str_list list, ct_arena *arena, ct_err *err)
{
    const char *text = "";
    for (int64_t i = 0; i < list.n && text != NULL; i++) {
        text = ct_arena_printf(arena, err, "%s%s%s", text, i > 0 ? "," : "", list.items[i]);
    }
    return text;
}

/* A token as cti_field_split reads it back. */
static const char *quoted_token(const char *token, ct_arena *arena, ct_err *err)
{
    bool plain = token[0] != '\0';
    size_t n_quotes = 0;
    for (const char *p = token; *p != '\0'; p++) {
        n_quotes += *p == '\'';
        plain = plain && *p != '\'' && !is_blank(*p);
    }
    if (plain) {
        return token;
    }
    char *text = ct_arena_alloc(arena, strlen(token) + n_quotes + 3, err);
    if (text == NULL) {
        return NULL;
    }
    char *out = text;
    *out++ = '\'';
    for (const char *p = token; *p != '\0'; p++) {
        if (*p == '\'') {
            *out++ = '\'';
        }
        *out++ = *p;
    }
    *out++ = '\'';
    *out = '\0';
    return text;
}

static const char *list_text(const ct_field *field, const field_value *v, ct_arena *arena, ct_err *err)
{
    int64_t n = 0;
    if (field->kind == CT_FIELD_I64_LIST) {
        n = v->as_I64_LIST.n;
    } else if (field->kind == CT_FIELD_F64_LIST) {
        n = v->as_F64_LIST.n;
    } else {
        n = field->kind == CT_FIELD_TOKENS ? v->as_TOKENS.n : v->as_STR_LISTS.n;
    }
    const char *text = "";
    for (int64_t i = 0; i < n && text != NULL; i++) {
        const char *item;
        if (field->kind == CT_FIELD_I64_LIST) {
            item = i64_text(v->as_I64_LIST.items[i], arena, err);
        } else if (field->kind == CT_FIELD_F64_LIST) {
            item = f64_text(v->as_F64_LIST.items[i], arena, err);
        } else if (field->kind == CT_FIELD_TOKENS) {
            item = quoted_token(v->as_TOKENS.items[i], arena, err);
        } else {
            item = str_list_text(v->as_STR_LISTS.items[i], arena, err);
            item = item != NULL ? quoted_token(item, arena, err) : NULL;
        }
        text = item != NULL ? ct_arena_printf(arena, err, "%s%s%s", text, i > 0 ? " " : "", item) : NULL;
    }
    return text;
}

const char *ct_field_text(const ct_field *field, const void *values, ct_arena *arena, ct_err *err)
{
    field_value v;
    load_value(field, values, &v);
    switch (field->kind) {
    case CT_FIELD_BOOL:
        return v.as_BOOL ? "true" : "false";
    case CT_FIELD_I64:
        return i64_text(v.as_I64, arena, err);
    case CT_FIELD_F64:
        return f64_text(v.as_F64, arena, err);
    case CT_FIELD_STR:
    case CT_FIELD_CHOICE:
        return v.as_STR != NULL ? v.as_STR : "";
    case CT_FIELD_OPT_I64:
        return v.as_OPT_I64.is_set ? i64_text(v.as_OPT_I64.value, arena, err) : "None";
    case CT_FIELD_OPT_F64:
        return v.as_OPT_F64.is_set ? f64_text(v.as_OPT_F64.value, arena, err) : "None";
    case CT_FIELD_OPT_STR:
        return v.as_OPT_STR != NULL ? v.as_OPT_STR : "None";
    case CT_FIELD_STR_LIST:
        return str_list_text(v.as_STR_LIST, arena, err);
    case CT_FIELD_STR_LISTS:
        return v.as_STR_LISTS.is_set ? list_text(field, &v, arena, err) : "None";
    case CT_FIELD_I64_LIST:
    case CT_FIELD_F64_LIST:
    case CT_FIELD_TOKENS:
        return list_text(field, &v, arena, err);
    case CT_FIELD_KIND_COUNT:
        break;
    }
    CT_ASSERT(field->kind < CT_FIELD_KIND_COUNT);
    return NULL;
}

static bool f64_equal(double a, double b)
{
    return a == b || (a != a && b != b);
}

static bool str_list_equal(ct_str_list a, ct_str_list b)
{
    bool equal = a.n == b.n;
    for (int64_t i = 0; equal && i < a.n; i++) {
        equal = cti_str_eq(a.items[i], b.items[i]);
    }
    return equal;
}

static bool list_equal(ct_field_kind kind, const field_value *a, const field_value *b)
{
    bool equal;
    if (kind == CT_FIELD_I64_LIST) {
        equal = a->as_I64_LIST.n == b->as_I64_LIST.n;
        for (int64_t i = 0; equal && i < a->as_I64_LIST.n; i++) {
            equal = a->as_I64_LIST.items[i] == b->as_I64_LIST.items[i];
        }
    } else if (kind == CT_FIELD_F64_LIST) {
        equal = a->as_F64_LIST.n == b->as_F64_LIST.n;
        for (int64_t i = 0; equal && i < a->as_F64_LIST.n; i++) {
            equal = f64_equal(a->as_F64_LIST.items[i], b->as_F64_LIST.items[i]);
        }
    } else {
        equal = a->as_STR_LISTS.is_set == b->as_STR_LISTS.is_set && a->as_STR_LISTS.n == b->as_STR_LISTS.n;
        for (int64_t i = 0; equal && i < a->as_STR_LISTS.n; i++) {
            equal = str_list_equal(a->as_STR_LISTS.items[i], b->as_STR_LISTS.items[i]);
        }
    }
    return equal;
}

static bool value_equal(ct_field_kind kind, const field_value *a, const field_value *b)
{
    switch (kind) {
    case CT_FIELD_BOOL:
        return a->as_BOOL == b->as_BOOL;
    case CT_FIELD_I64:
        return a->as_I64 == b->as_I64;
    case CT_FIELD_F64:
        return f64_equal(a->as_F64, b->as_F64);
    case CT_FIELD_STR:
    case CT_FIELD_CHOICE:
    case CT_FIELD_OPT_STR:
        return cti_str_eq(a->as_STR, b->as_STR);
    case CT_FIELD_OPT_I64:
        return a->as_OPT_I64.is_set == b->as_OPT_I64.is_set &&
               (!a->as_OPT_I64.is_set || a->as_OPT_I64.value == b->as_OPT_I64.value);
    case CT_FIELD_OPT_F64:
        return a->as_OPT_F64.is_set == b->as_OPT_F64.is_set &&
               (!a->as_OPT_F64.is_set || f64_equal(a->as_OPT_F64.value, b->as_OPT_F64.value));
    case CT_FIELD_STR_LIST:
    case CT_FIELD_TOKENS:
        return str_list_equal(a->as_STR_LIST, b->as_STR_LIST);
    case CT_FIELD_STR_LISTS:
    case CT_FIELD_I64_LIST:
    case CT_FIELD_F64_LIST:
        return list_equal(kind, a, b);
    case CT_FIELD_KIND_COUNT:
        break;
    }
    return false;
}

bool ct_field_equal(const ct_field *field, const void *values_a, const void *values_b)
{
    field_value a, b;
    load_value(field, values_a, &a);
    load_value(field, values_b, &b);
    return value_equal(field->kind, &a, &b);
}

static ct_status copy_numbers(void **items, int64_t n, size_t size, ct_arena *arena, ct_err *err)
{
    void *copy = ct_arena_alloc(arena, ((size_t)n + 1) * size, err);
    if (copy == NULL) {
        return CT_ERR_MEMORY;
    }
    if (n > 0) {
        memcpy(copy, *items, (size_t)n * size);
    }
    *items = copy;
    return CT_OK;
}

static ct_status copy_str_lists(ct_str_lists src, ct_arena *arena, ct_str_lists *out, ct_err *err)
{
    ct_str_list *items = ct_arena_alloc(arena, ((size_t)src.n + 1) * sizeof *items, err);
    if (items == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int64_t i = 0; i < src.n; i++) {
        CT_TRY(copy_strings(src.items[i], arena, &items[i], err));
    }
    *out = (ct_str_lists){src.is_set, src.n, items};
    return CT_OK;
}

ct_status ct_field_copy(const ct_field *field, void *dst, const void *src, ct_arena *arena, ct_err *err)
{
    field_value v;
    load_value(field, src, &v);
    switch (field->kind) {
    case CT_FIELD_STR:
    case CT_FIELD_CHOICE:
    case CT_FIELD_OPT_STR:
        if (v.as_STR != NULL) {
            v.as_STR = ct_arena_strdup(arena, v.as_STR, err);
            if (v.as_STR == NULL) {
                return CT_ERR_MEMORY;
            }
        }
        break;
    case CT_FIELD_STR_LIST:
    case CT_FIELD_TOKENS:
        CT_TRY(copy_strings(v.as_STR_LIST, arena, &v.as_STR_LIST, err));
        break;
    case CT_FIELD_STR_LISTS:
        CT_TRY(copy_str_lists(v.as_STR_LISTS, arena, &v.as_STR_LISTS, err));
        break;
    case CT_FIELD_I64_LIST: {
        void *items = v.as_I64_LIST.items;
        CT_TRY(copy_numbers(&items, v.as_I64_LIST.n, sizeof(int64_t), arena, err));
        v.as_I64_LIST.items = items;
        break;
    }
    case CT_FIELD_F64_LIST: {
        void *items = v.as_F64_LIST.items;
        CT_TRY(copy_numbers(&items, v.as_F64_LIST.n, sizeof(double), arena, err));
        v.as_F64_LIST.items = items;
        break;
    }
    case CT_FIELD_BOOL:
    case CT_FIELD_I64:
    case CT_FIELD_F64:
    case CT_FIELD_OPT_I64:
    case CT_FIELD_OPT_F64:
    case CT_FIELD_KIND_COUNT:
        break;
    }
    memcpy((char *)dst + field->offset, &v, value_sizes[field->kind]);
    return CT_OK;
}
