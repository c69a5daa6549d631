/* SPDX-License-Identifier: Apache-2.0 */
/* Field tables: one row per field of a C struct. From a table come the struct's defaults, its command-line flags, help,
 * YAML and JSON reader and writer, checks of type and range, and the printed form. Settings, components and op attributes
 * use the same tables. Rows are written with X-macros so that struct and table cannot part:
 *
 *     #define CT_TRAINING_FIELDS(X)                                                                     \
 *         X(steps, I64, "10000", "1", "", "", "steps", 0, NULL, "optimizer updates to run")
 *     typedef struct ct_training_config { CT_TRAINING_FIELDS(CT_FIELD_MEMBER) } ct_training_config;
 *     static const ct_field fields[] = { CT_TRAINING_FIELDS(CT_FIELD_ROW(ct_training_config)) } -- see CT_FIELD_TABLE
 */
#ifndef CTITAN_FIELD_H
#define CTITAN_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctitan/alloc.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ct_opt_i64 {
    bool is_set;
    int64_t value;
} ct_opt_i64;
typedef struct ct_opt_f64 {
    bool is_set;
    double value;
} ct_opt_f64;
typedef struct ct_str_list {
    int64_t n;
    const char **items;
} ct_str_list;
typedef struct ct_str_lists {
    bool is_set; /* false: None */
    int64_t n;
    ct_str_list *items;
} ct_str_lists;
typedef struct ct_i64_list {
    int64_t n;
    int64_t *items;
} ct_i64_list;
typedef struct ct_f64_list {
    int64_t n;
    double *items;
} ct_f64_list;

/* X(KIND, C type, metavar). How text becomes a value and back is the kind's; strings and lists live in an arena. */
/* clang-format off */
#define CT_FIELD_KIND_LIST(X)                                                              \
    X(BOOL,      bool,         "")              /* flags --x and --no-x; text true|false */ \
    X(I64,       int64_t,      "INT")                                                      \
    X(F64,       double,       "FLOAT")                                                    \
    X(STR,       const char *, "STR")                                                      \
    X(CHOICE,    const char *, "")              /* one of `choices` */                     \
    X(OPT_I64,   ct_opt_i64,   "{None}|INT")                                               \
    X(OPT_F64,   ct_opt_f64,   "{None}|FLOAT")                                             \
    X(OPT_STR,   const char *, "{None}|STR")    /* NULL: None */                           \
    X(STR_LIST,  ct_str_list,  "A,B,C,...")     /* one token, split at commas */           \
    X(STR_LISTS, ct_str_lists, "{None}|A,B C,D") /* several tokens, each split at commas */ \
    X(I64_LIST,  ct_i64_list,  "[INT ...]")                                                \
    X(F64_LIST,  ct_f64_list,  "[FLOAT ...]")   /* several tokens */                       \
    X(TOKENS,    ct_str_list,  "TOKEN ...")     /* several tokens, kept as they are (override.imports) */
/* clang-format on */

typedef enum ct_field_kind {
#define CT_FIELD_KIND_ENUM(KIND, type, metavar) CT_FIELD_##KIND,
    CT_FIELD_KIND_LIST(CT_FIELD_KIND_ENUM)
#undef CT_FIELD_KIND_ENUM
        CT_FIELD_KIND_COUNT
} ct_field_kind;

#define CT_FIELD_KIND_TYPEDEF(KIND, type, metavar) typedef type ct_field_type_##KIND;
CT_FIELD_KIND_LIST(CT_FIELD_KIND_TYPEDEF)
#undef CT_FIELD_KIND_TYPEDEF

enum {
    CT_SET_PLAN = 1,   /* changes the plan: enters its hash, must agree on all ranks */
    CT_SET_HIDDEN = 2, /* not on the command line (but printed, saved, overridable) */
    CT_SET_EXCLUSIVE_LOW = 4, /* `low` itself is out of range */
    CT_SET_REPEATED = 8,      /* TOKENS of a command's options: one word each time the option is given */
    CT_SET_PLUGIN = 16        /* CHOICE: takes "<plug-in>.<name>" as well */
};

typedef struct ct_field {
    const char *name; /* snake_case */
    ct_field_kind kind;
    size_t offset;             /* in the values struct, bytes */
    const char *default_text;  /* parsed with the kind's parser; lists: tokens separated by blanks */
    const char *low, *high;    /* inclusive bounds as text, "" for none */
    const char *choices;       /* CHOICE: "a|b|c" */
    const char *unit;          /* "steps", "seconds", "" */
    uint32_t flags;            /* CT_SET_* */
    const char *refusal;       /* not NULL: any value but the default is refused with this reason */
    const char *help;
} ct_field;

/* Use: X(name, KIND, default, low, high, choices, unit, flags, refusal, help) */
#define CT_FIELD_MEMBER(name, KIND, ...) ct_field_type_##KIND name;
#define CT_FIELD_ROW_IN(type, name_, KIND, def, low_, high_, choices_, unit_, flags_, refusal_, help_)              \
    {#name_, CT_FIELD_##KIND, offsetof(type, name_), def, low_, high_, choices_, unit_, flags_, refusal_, help_},

/* Sets every field of `values` from its default text. ERR_STATE for a table whose default does not parse. */
CT_MUST_CHECK ct_status ct_fields_default(const ct_field *fields, size_t n, void *values, ct_arena *arena, ct_err *err);
/* Parses tokens[0..n_tokens) into one field, range-checked. n_tokens is 1 except for STR_LISTS, *_LIST and TOKENS. On failure
 * ERR_USAGE with "'<tokens>' is no <kind> …" or the bounds; the field is unchanged. */
CT_MUST_CHECK ct_status ct_field_set(const ct_field *field, void *values, const char *const *tokens, size_t n_tokens,
                                     ct_arena *arena, ct_err *err);
/* The text form that ct_field_set reads back (lists: tokens joined with blanks; None for unset). Arena's memory. */
const char *ct_field_text(const ct_field *field, const void *values, ct_arena *arena, ct_err *err);
bool ct_field_equal(const ct_field *field, const void *values_a, const void *values_b);
/* Deep copy of one field from src to dst (strings and lists into arena). */
CT_MUST_CHECK ct_status ct_field_copy(const ct_field *field, void *dst, const void *src, ct_arena *arena, ct_err *err);
const ct_field *ct_field_find(const ct_field *fields, size_t n, const char *name); /* '-' counts as '_'; NULL if none */
const char *ct_field_metavar(const ct_field *field); /* "{a,b}" for CHOICE is made by the caller from choices */

#ifdef __cplusplus
}
#endif
#endif
