/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens to expressions, in jinja2's order of precedence: if-else, or, and, not, comparisons, + -, ~, * / //
 * %, **, signs, then what follows a value (subscripts, calls) and filters and tests. */
#include "jinja/jinja_internal.h"

const cti_jn_token *cti_jn_now(const cti_jn_compiler *c)
{
    return &c->tokens[c->pos];
}

bool cti_jn_is_op(const cti_jn_token *t, const char *op)
{
    return t->kind == JN_T_OP && strcmp(t->p, op) == 0;
}

bool cti_jn_is_name(const cti_jn_token *t, const char *name)
{
    return t->kind == JN_T_NAME && t->n == strlen(name) && memcmp(t->p, name, t->n) == 0;
}

bool cti_jn_skip_op(cti_jn_compiler *c, const char *op)
{
    const bool is = cti_jn_is_op(cti_jn_now(c), op);
    c->pos += is;
    return is;
}

bool cti_jn_skip_name(cti_jn_compiler *c, const char *name)
{
    const bool is = cti_jn_is_name(cti_jn_now(c), name);
    c->pos += is;
    return is;
}

ct_status cti_jn_unexpected(cti_jn_compiler *c, const char *wanted)
{
    const cti_jn_token *t = cti_jn_now(c);
    static const char *const words[] = {
        "text",       "'{{'",       "the end of '{{'", "'{%'", "the end of the tag",     "name",
        "the string", "the number", "the number",      "",     "the end of the template"};
    const bool quoted = t->kind == JN_T_NAME || t->kind == JN_T_STRING || t->kind == JN_T_OP ||
                        t->kind == JN_T_INT || t->kind == JN_T_FLOAT;
    return JN_SYNTAX(c, t->line, t->col, CT_ERR_FORMAT, "%s wanted, found %s%s'%.*s'", wanted, words[t->kind],
                     words[t->kind][0] == '\0' ? "" : " ", quoted ? (int)(t->n > 40 ? 40 : t->n) : 0, t->p);
}

ct_status cti_jn_expect_op(cti_jn_compiler *c, const char *op)
{
    char wanted[8];
    (void)snprintf(wanted, sizeof wanted, "'%s'", op);
    return cti_jn_skip_op(c, op) ? CT_OK : cti_jn_unexpected(c, wanted);
}

ct_status cti_jn_node_new(cti_jn_compiler *c, cti_jn_node_kind kind, const cti_jn_token *at,
                          cti_jn_node **out)
{
    cti_jn_node *n = cti_jn_compile_alloc(c, 1, sizeof *n);
    if (n == NULL) {
        return CT_ERR_MEMORY;
    }
    n->kind = kind;
    n->line = at->line;
    n->col = at->col;
    *out = n;
    return CT_OK;
}

static void deepen(int32_t *depth, const cti_jn_node *n)
{
    if (n != NULL && n->depth > *depth) {
        *depth = n->depth;
    }
}

ct_status cti_jn_node_done(cti_jn_compiler *c, cti_jn_node *n)
{
    int32_t depth = 0;
    deepen(&depth, n->a);
    deepen(&depth, n->b);
    deepen(&depth, n->c);
    deepen(&depth, n->d);
    for (int32_t i = 0; i < n->n_items; i++) {
        deepen(&depth, n->items[i]);
    }
    for (int32_t i = 0; i < n->n_keys && n->key_values != NULL; i++) {
        deepen(&depth, n->key_values[i]);
    }
    n->depth = depth + 1;
    return n->depth > JN_MAX_NODE_DEPTH ? JN_SYNTAX(c, n->line, n->col, CT_ERR_RANGE,
                                                    "nested deeper than %d levels", (int)JN_MAX_NODE_DEPTH)
                                        : CT_OK;
}

ct_status cti_jn_list_add(cti_jn_compiler *c, cti_jn_list *list, const cti_jn_node *n)
{
    if (list->n == list->cap) {
        const int32_t cap = list->cap == 0 ? 4 : 2 * list->cap;
        const cti_jn_node **v = cti_jn_compile_alloc(c, (size_t)cap, sizeof *v);
        if (v == NULL) {
            return CT_ERR_MEMORY;
        }
        if (list->n > 0) {
            memcpy(v, list->v, (size_t)list->n * sizeof *v);
        }
        list->v = v;
        list->cap = cap;
    }
    list->v[list->n++] = n;
    return CT_OK;
}

/* One level deeper in the parser itself, so that it does not recurse without end. */
static ct_status enter(cti_jn_compiler *c)
{
    const cti_jn_token *t = cti_jn_now(c);
    return ++c->depth > JN_MAX_NODE_DEPTH ? JN_SYNTAX(c, t->line, t->col, CT_ERR_RANGE,
                                                      "nested deeper than %d levels", (int)JN_MAX_NODE_DEPTH)
                                          : CT_OK;
}

static ct_status binary(cti_jn_compiler *c, cti_jn_node_kind kind, cti_jn_op op, const cti_jn_token *at,
                        cti_jn_node *a, cti_jn_node *b, cti_jn_node **out)
{
    cti_jn_node *n = NULL;
    CT_TRY(cti_jn_node_new(c, kind, at, &n));
    n->op = op;
    n->a = a;
    n->b = b;
    *out = n;
    return cti_jn_node_done(c, n);
}

static ct_status str_const(cti_jn_compiler *c, const char *p, size_t n, cti_jn_node *node)
{
    cti_jn_str *s = cti_jn_compile_alloc(c, 1, sizeof *s);
    if (s == NULL) {
        return CT_ERR_MEMORY;
    }
    *s = (cti_jn_str){.p = p, .n = n, .chars = cti_jn_count_chars(p, n)};
    node->v = cti_jn_text(s);
    return CT_OK;
}

/* --- values
 * ------------------------------------------------------------------------------------------------------ */

static ct_status parse_name(cti_jn_compiler *c, const cti_jn_token *t, cti_jn_node **out)
{
    cti_jn_node *n = NULL;
    const bool is_true = cti_jn_is_name(t, "true") || cti_jn_is_name(t, "True");
    const bool is_none = cti_jn_is_name(t, "none") || cti_jn_is_name(t, "None");
    if (is_true || is_none || cti_jn_is_name(t, "false") || cti_jn_is_name(t, "False")) {
        CT_TRY(cti_jn_node_new(c, JN_N_CONST, t, &n));
        n->v = is_none ? cti_jn_none() : cti_jn_bool(is_true);
    } else {
        static const char *const left_out[] = {"self", "cycler", "joiner", "lipsum"};
        for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++) {
            if (cti_jn_is_name(t, left_out[i]) && (i == 0 || cti_jn_is_op(cti_jn_now(c), "("))) {
                return JN_SYNTAX(c, t->line, t->col, CT_ERR_UNSUPPORTED,
                                 "'%s' is not supported in templates here", left_out[i]);
            }
        }
        c->uses |= (cti_jn_is_name(t, "caller") ? (uint32_t)JN_USES_CALLER : 0) |
                   (cti_jn_is_name(t, "kwargs") ? (uint32_t)JN_USES_KWARGS : 0) |
                   (cti_jn_is_name(t, "varargs") ? (uint32_t)JN_USES_VARARGS : 0);
        CT_TRY(cti_jn_node_new(c, JN_N_NAME, t, &n));
        CT_TRY(cti_jn_intern(c, t->p, t->n, true, &n->s));
    }
    *out = n;
    return cti_jn_node_done(c, n);
}

/* Neighbouring strings are one. */
static ct_status parse_strings(cti_jn_compiler *c, const cti_jn_token *t, cti_jn_node **out)
{
    cti_jn_node *n = NULL;
    CT_TRY(cti_jn_node_new(c, JN_N_CONST, t, &n));
    size_t size = 0;
    const size_t from = c->pos - 1;
    while (cti_jn_now(c)->kind == JN_T_STRING) {
        c->pos++;
    }
    for (size_t i = from; i < c->pos; i++) {
        size += c->tokens[i].n;
    }
    char *text = cti_jn_compile_alloc(c, size, 1);
    if (text == NULL) {
        return CT_ERR_MEMORY;
    }
    size = 0;
    for (size_t i = from; i < c->pos; i++) {
        memcpy(text + size, c->tokens[i].p, c->tokens[i].n);
        size += c->tokens[i].n;
    }
    CT_TRY(str_const(c, text, size, n));
    *out = n;
    return cti_jn_node_done(c, n);
}

static ct_status parse_list(cti_jn_compiler *c, const cti_jn_token *t, cti_jn_node **out)
{
    cti_jn_node *n = NULL;
    cti_jn_list list = {0};
    CT_TRY(cti_jn_node_new(c, JN_N_LIST, t, &n));
    while (!cti_jn_is_op(cti_jn_now(c), "]")) {
        if (list.n > 0) {
            CT_TRY(cti_jn_expect_op(c, ","));
            if (cti_jn_is_op(cti_jn_now(c), "]")) {
                break;
            }
        }
        cti_jn_node *item = NULL;
        CT_TRY(cti_jn_parse_expr(c, true, &item));
        CT_TRY(cti_jn_list_add(c, &list, item));
    }
    n->items = list.v;
    n->n_items = list.n;
    *out = n;
    CT_TRY(cti_jn_expect_op(c, "]"));
    return cti_jn_node_done(c, n);
}

static ct_status parse_dict(cti_jn_compiler *c, const cti_jn_token *t, cti_jn_node **out)
{
    cti_jn_node *n = NULL;
    cti_jn_list list = {0};
    CT_TRY(cti_jn_node_new(c, JN_N_DICT, t, &n));
    while (!cti_jn_is_op(cti_jn_now(c), "}")) {
        if (list.n > 0) {
            CT_TRY(cti_jn_expect_op(c, ","));
            if (cti_jn_is_op(cti_jn_now(c), "}")) {
                break;
            }
        }
        cti_jn_node *item = NULL;
        CT_TRY(cti_jn_parse_expr(c, true, &item));
        CT_TRY(cti_jn_list_add(c, &list, item));
        CT_TRY(cti_jn_expect_op(c, ":"));
        CT_TRY(cti_jn_parse_expr(c, true, &item));
        CT_TRY(cti_jn_list_add(c, &list, item));
    }
    n->items = list.v;
    n->n_items = list.n;
    *out = n;
    CT_TRY(cti_jn_expect_op(c, "}"));
    return cti_jn_node_done(c, n);
}

ct_status cti_jn_parse_primary(cti_jn_compiler *c, cti_jn_node **out)
{
    const cti_jn_token *t = cti_jn_now(c);
    cti_jn_node *n = NULL;
    switch (t->kind) {
    case JN_T_NAME:
        c->pos++;
        return parse_name(c, t, out);
    case JN_T_STRING:
        c->pos++;
        return parse_strings(c, t, out);
    case JN_T_INT:
    case JN_T_FLOAT:
        c->pos++;
        CT_TRY(cti_jn_node_new(c, JN_N_CONST, t, &n));
        n->v = t->kind == JN_T_INT ? cti_jn_int(t->i) : cti_jn_float(t->f);
        *out = n;
        return cti_jn_node_done(c, n);
    case JN_T_OP:
        if (cti_jn_skip_op(c, "(")) {
            CT_TRY(cti_jn_parse_tuple(c, true, true, NULL, out));
            return cti_jn_expect_op(c, ")");
        }
        if (cti_jn_skip_op(c, "[")) {
            return parse_list(c, t, out);
        }
        if (cti_jn_skip_op(c, "{")) {
            return parse_dict(c, t, out);
        }
        break;
    case JN_T_DATA:
    case JN_T_VAR_BEGIN:
    case JN_T_VAR_END:
    case JN_T_BLOCK_BEGIN:
    case JN_T_BLOCK_END:
    case JN_T_END:
        break;
    }
    return cti_jn_unexpected(c, "an expression");
}

/* --- what follows a value
 * ---------------------------------------------------------------------------------------- */

/* *out NULL where the part is left out. */
static ct_status slice_part(cti_jn_compiler *c, const cti_jn_node **out)
{
    cti_jn_node *n = NULL;
    if (!cti_jn_is_op(cti_jn_now(c), ":") && !cti_jn_is_op(cti_jn_now(c), "]") &&
        !cti_jn_is_op(cti_jn_now(c), ",")) {
        CT_TRY(cti_jn_parse_expr(c, true, &n));
    }
    *out = n;
    return CT_OK;
}

static ct_status parse_subscript(cti_jn_compiler *c, cti_jn_node *base, const cti_jn_token *t,
                                 cti_jn_node **out)
{
    cti_jn_node *n = NULL;
    CT_TRY(cti_jn_node_new(c, JN_N_ITEM, t, &n));
    n->a = base;
    CT_TRY(slice_part(c, &n->b));
    if (cti_jn_skip_op(c, ":")) {
        n->kind = JN_N_SLICE;
        CT_TRY(slice_part(c, &n->c));
        if (cti_jn_skip_op(c, ":")) {
            CT_TRY(slice_part(c, &n->d));
        }
    } else if (n->b == NULL) {
        return cti_jn_unexpected(c, "a subscript");
    }
    if (cti_jn_is_op(cti_jn_now(c), ",")) {
        const cti_jn_token *at = cti_jn_now(c);
        return JN_SYNTAX(c, at->line, at->col, CT_ERR_UNSUPPORTED,
                         "a tuple as a subscript is not supported in templates here");
    }
    *out = n;
    CT_TRY(cti_jn_expect_op(c, "]"));
    return cti_jn_node_done(c, n);
}

static ct_status parse_attr(cti_jn_compiler *c, cti_jn_node *base, const cti_jn_token *t, cti_jn_node **out)
{
    const cti_jn_token *name = cti_jn_now(c);
    cti_jn_node *n = NULL, *key = NULL;
    if (name->kind == JN_T_NAME) {
        CT_TRY(cti_jn_node_new(c, JN_N_ATTR, t, &n));
        CT_TRY(cti_jn_intern(c, name->p, name->n, false, &n->s));
        c->pos++;
    } else if (name->kind == JN_T_INT) {
        CT_TRY(cti_jn_node_new(c, JN_N_ITEM, t, &n));
        CT_TRY(cti_jn_parse_primary(c, &key));
        n->b = key;
    } else {
        return cti_jn_unexpected(c, "a name or a number after '.'");
    }
    n->a = base;
    *out = n;
    return cti_jn_node_done(c, n);
}

static ct_status keyword_arg(cti_jn_compiler *c, cti_jn_list *keys, const cti_jn_str ***names,
                             const cti_jn_token *name)
{
    const cti_jn_str *s = NULL;
    CT_TRY(cti_jn_intern(c, name->p, name->n, false, &s));
    for (int32_t i = 0; i < keys->n; i++) {
        if ((*names)[i] == s) {
            return JN_SYNTAX(c, name->line, name->col, CT_ERR_FORMAT, "the argument '%.*s' is given twice",
                             JN_P(s));
        }
    }
    const cti_jn_str **grown = cti_jn_compile_alloc(c, (size_t)keys->n + 1, sizeof *grown);
    if (grown == NULL) {
        return CT_ERR_MEMORY;
    }
    if (keys->n > 0) {
        memcpy(grown, *names, (size_t)keys->n * sizeof *grown);
    }
    grown[keys->n] = s;
    *names = grown;
    c->pos += 2;
    cti_jn_node *value = NULL;
    CT_TRY(cti_jn_parse_expr(c, true, &value));
    return cti_jn_list_add(c, keys, value);
}

/* The arguments after '(', and ')'. */
ct_status cti_jn_parse_call_args(cti_jn_compiler *c, cti_jn_node *call)
{
    enum { MAX_ARGS = 255 };
    cti_jn_list list = {0}, keys = {0};
    const cti_jn_str **names = NULL;
    while (!cti_jn_is_op(cti_jn_now(c), ")")) {
        if (list.n + keys.n > 0) {
            CT_TRY(cti_jn_expect_op(c, ","));
            if (cti_jn_is_op(cti_jn_now(c), ")")) {
                break;
            }
        }
        const cti_jn_token *t = cti_jn_now(c);
        if (cti_jn_is_op(t, "*") || cti_jn_is_op(t, "**")) {
            return JN_SYNTAX(c, t->line, t->col, CT_ERR_UNSUPPORTED,
                             "'%s' before an argument is not supported in templates here", t->p);
        }
        if (list.n + keys.n == MAX_ARGS) {
            return JN_SYNTAX(c, t->line, t->col, CT_ERR_RANGE, "a call takes at most %d arguments",
                             (int)MAX_ARGS);
        }
        if (t->kind == JN_T_NAME && cti_jn_is_op(t + 1, "=")) {
            CT_TRY(keyword_arg(c, &keys, &names, t));
            continue;
        }
        if (keys.n > 0) {
            return JN_SYNTAX(c, t->line, t->col, CT_ERR_FORMAT,
                             "an argument without a name after one with a name");
        }
        cti_jn_node *value = NULL;
        CT_TRY(cti_jn_parse_expr(c, true, &value));
        CT_TRY(cti_jn_list_add(c, &list, value));
    }
    call->items = list.v;
    call->n_items = list.n;
    call->keys = names;
    call->key_values = keys.v;
    call->n_keys = keys.n;
    return cti_jn_expect_op(c, ")");
}

/* strftime_now('…') with a format that is not there is told now. */
static ct_status check_time_format(cti_jn_compiler *c, const cti_jn_node *call)
{
    const bool is_time =
        call->a->kind == JN_N_NAME && cti_jn_is_text(cti_jn_text(call->a->s), "strftime_now");
    if (!is_time || call->n_items != 1 || call->items[0]->kind != JN_N_CONST ||
        call->items[0]->v.kind != JN_STR) {
        return CT_OK;
    }
    const cti_jn_str *s = call->items[0]->v.as.s;
    const char *bad = NULL;
    return cti_jn_time_check(s->p, s->n, &bad)
               ? CT_OK
               : JN_SYNTAX(c, call->line, call->col, CT_ERR_UNSUPPORTED,
                           "strftime_now: '%.*s' is not supported in templates here", 2, bad);
}

static ct_status parse_call(cti_jn_compiler *c, cti_jn_node *base, const cti_jn_token *t, cti_jn_node **out)
{
    cti_jn_node *n = NULL;
    CT_TRY(cti_jn_node_new(c, JN_N_CALL, t, &n));
    n->a = base;
    CT_TRY(cti_jn_parse_call_args(c, n));
    CT_TRY(check_time_format(c, n));
    *out = n;
    return cti_jn_node_done(c, n);
}

static ct_status parse_postfix(cti_jn_compiler *c, cti_jn_node **n)
{
    for (;;) {
        const cti_jn_token *t = cti_jn_now(c);
        if (cti_jn_skip_op(c, ".")) {
            CT_TRY(parse_attr(c, *n, t, n));
        } else if (cti_jn_skip_op(c, "[")) {
            CT_TRY(parse_subscript(c, *n, t, n));
        } else if (cti_jn_skip_op(c, "(")) {
            CT_TRY(parse_call(c, *n, t, n));
        } else {
            return CT_OK;
        }
    }
}

/* --- filters and tests
 * ------------------------------------------------------------------------------------------- */

static ct_status refuse(cti_jn_compiler *c, const cti_jn_token *t, const char *kind, const char *p, size_t n,
                        bool is_known)
{
    return JN_SYNTAX(c, t->line, t->col, is_known ? CT_ERR_UNSUPPORTED : CT_ERR_FORMAT,
                     is_known ? "the %s '%.*s' is not supported in templates here" : "there is no %s '%.*s'",
                     kind, (int)(n > 60 ? 60 : n), p);
}

static ct_status find_filter(cti_jn_compiler *c, const cti_jn_token *t, const char *p, size_t n,
                             const cti_jn_filter_row **out)
{
    const cti_jn_filter_row *row = cti_jn_filter_find(p, n);
    if (row == NULL || row->fn == NULL) {
        return refuse(c, t, "filter", p, n, row != NULL);
    }
    *out = row;
    return CT_OK;
}

static ct_status find_test(cti_jn_compiler *c, const cti_jn_token *t, const char *p, size_t n,
                           const cti_jn_test_row **out)
{
    const cti_jn_test_row *row = cti_jn_test_find(p, n);
    if (row == NULL || row->fn == NULL) {
        return refuse(c, t, "test", p, n, row != NULL);
    }
    *out = row;
    return CT_OK;
}

/* map('upper'), select('string'), selectattr('a', 'equalto'): the names inside are looked up now. */
static ct_status check_named(cti_jn_compiler *c, const cti_jn_token *t, const cti_jn_node *f,
                             const char *name, size_t n)
{
    static const struct {
        const char *filter;
        int32_t arg;
    } rows[] = {{"map", 0}, {"select", 0}, {"reject", 0}, {"selectattr", 1}, {"rejectattr", 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strlen(rows[i].filter) != n || memcmp(rows[i].filter, name, n) != 0 ||
            f->n_items <= rows[i].arg) {
            continue;
        }
        const cti_jn_node *arg = f->items[rows[i].arg];
        if (arg->kind != JN_N_CONST || arg->v.kind != JN_STR) {
            continue;
        }
        const cti_jn_filter_row *filter;
        const cti_jn_test_row *test;
        CT_TRY(i == 0 ? find_filter(c, t, arg->v.as.s->p, arg->v.as.s->n, &filter)
                      : find_test(c, t, arg->v.as.s->p, arg->v.as.s->n, &test));
    }
    return CT_OK;
}

ct_status cti_jn_parse_filters(cti_jn_compiler *c, cti_jn_node *base, bool starts_inline, cti_jn_node **out)
{
    *out = base;
    while (starts_inline || cti_jn_is_op(cti_jn_now(c), "|")) {
        c->pos += !starts_inline;
        starts_inline = false;
        const cti_jn_token *t = cti_jn_now(c);
        if (t->kind != JN_T_NAME) {
            return cti_jn_unexpected(c, "a filter's name");
        }
        c->pos++;
        cti_jn_node *n = NULL;
        const cti_jn_filter_row *row = NULL;
        CT_TRY(cti_jn_node_new(c, JN_N_FILTER, t, &n));
        CT_TRY(find_filter(c, t, t->p, t->n, &row));
        n->row = row;
        n->a = *out;
        if (cti_jn_skip_op(c, "(")) {
            CT_TRY(cti_jn_parse_call_args(c, n));
            CT_TRY(check_named(c, t, n, t->p, t->n));
        }
        CT_TRY(cti_jn_node_done(c, n));
        *out = n;
    }
    return CT_OK;
}

static bool starts_test_arg(const cti_jn_token *t)
{
    return (t->kind == JN_T_NAME && !cti_jn_is_name(t, "else") && !cti_jn_is_name(t, "or") &&
            !cti_jn_is_name(t, "and")) ||
           t->kind == JN_T_STRING || t->kind == JN_T_INT || t->kind == JN_T_FLOAT || cti_jn_is_op(t, "[") ||
           cti_jn_is_op(t, "{");
}

static ct_status parse_test(cti_jn_compiler *c, cti_jn_node *base, cti_jn_node **out)
{
    const bool is_negated = cti_jn_skip_name(c, "not");
    const cti_jn_token *t = cti_jn_now(c);
    if (t->kind != JN_T_NAME) {
        return cti_jn_unexpected(c, "a test's name");
    }
    c->pos++;
    cti_jn_node *n = NULL;
    const cti_jn_test_row *row = NULL;
    CT_TRY(cti_jn_node_new(c, JN_N_TEST, t, &n));
    CT_TRY(find_test(c, t, t->p, t->n, &row));
    n->row = row;
    n->a = base;
    if (cti_jn_skip_op(c, "(")) {
        CT_TRY(cti_jn_parse_call_args(c, n));
    } else if (starts_test_arg(cti_jn_now(c))) {
        if (cti_jn_is_name(cti_jn_now(c), "is")) {
            return cti_jn_unexpected(c, "the end of a test ('is' cannot follow 'is')");
        }
        cti_jn_list list = {0};
        cti_jn_node *arg = NULL;
        CT_TRY(cti_jn_parse_primary(c, &arg));
        CT_TRY(parse_postfix(c, &arg));
        CT_TRY(cti_jn_list_add(c, &list, arg));
        n->items = list.v;
        n->n_items = list.n;
    }
    CT_TRY(cti_jn_node_done(c, n));
    *out = n;
    return is_negated ? binary(c, JN_N_NOT, JN_ADD, t, n, NULL, out) : CT_OK;
}

/* --- operators
 * --------------------------------------------------------------------------------------------------- */

ct_status cti_jn_parse_unary(cti_jn_compiler *c, bool with_filter, cti_jn_node **out)
{
    CT_TRY(enter(c));
    const cti_jn_token *t = cti_jn_now(c);
    if (cti_jn_is_op(t, "-") || cti_jn_is_op(t, "+")) {
        c->pos++;
        cti_jn_node *operand = NULL;
        CT_TRY(cti_jn_parse_unary(c, false, &operand));
        CT_TRY(binary(c, t->p[0] == '-' ? JN_N_NEG : JN_N_POS, JN_ADD, t, operand, NULL, out));
    } else {
        CT_TRY(cti_jn_parse_primary(c, out));
    }
    CT_TRY(parse_postfix(c, out));
    while (with_filter) {
        t = cti_jn_now(c);
        if (cti_jn_is_op(t, "|")) {
            CT_TRY(cti_jn_parse_filters(c, *out, false, out));
        } else if (cti_jn_skip_name(c, "is")) {
            CT_TRY(parse_test(c, *out, out));
        } else if (cti_jn_skip_op(c, "(")) {
            CT_TRY(parse_call(c, *out, t, out));
        } else {
            break;
        }
    }
    c->depth--;
    return CT_OK;
}

typedef ct_status (*parse_fn)(cti_jn_compiler *c, cti_jn_node **out);
typedef struct op_row {
    const char *text;
    cti_jn_op op;
} op_row;

static ct_status left_chain(cti_jn_compiler *c, const op_row *rows, size_t n_rows, parse_fn below,
                            cti_jn_node **out)
{
    CT_TRY(below(c, out));
    for (;;) {
        const cti_jn_token *t = cti_jn_now(c);
        size_t i = 0;
        while (i < n_rows && !cti_jn_is_op(t, rows[i].text)) {
            i++;
        }
        if (i == n_rows) {
            return CT_OK;
        }
        c->pos++;
        cti_jn_node *right = NULL;
        CT_TRY(below(c, &right));
        CT_TRY(binary(c, JN_N_BINARY, rows[i].op, t, *out, right, out));
    }
}

static ct_status parse_signed(cti_jn_compiler *c, cti_jn_node **out)
{
    return cti_jn_parse_unary(c, true, out);
}

static ct_status parse_pow(cti_jn_compiler *c, cti_jn_node **out)
{
    static const op_row rows[] = {{"**", JN_POW}};
    return left_chain(c, rows, 1, parse_signed, out);
}

static ct_status parse_mul(cti_jn_compiler *c, cti_jn_node **out)
{
    static const op_row rows[] = {{"*", JN_MUL}, {"/", JN_DIV}, {"//", JN_FLOORDIV}, {"%", JN_MOD}};
    return left_chain(c, rows, 4, parse_pow, out);
}

static ct_status parse_concat(cti_jn_compiler *c, cti_jn_node **out)
{
    const cti_jn_token *t = cti_jn_now(c);
    CT_TRY(parse_mul(c, out));
    if (!cti_jn_is_op(cti_jn_now(c), "~")) {
        return CT_OK;
    }
    cti_jn_node *n = NULL;
    cti_jn_list list = {0};
    CT_TRY(cti_jn_node_new(c, JN_N_CONCAT, t, &n));
    CT_TRY(cti_jn_list_add(c, &list, *out));
    while (cti_jn_skip_op(c, "~")) {
        cti_jn_node *item = NULL;
        CT_TRY(parse_mul(c, &item));
        CT_TRY(cti_jn_list_add(c, &list, item));
    }
    n->items = list.v;
    n->n_items = list.n;
    *out = n;
    return cti_jn_node_done(c, n);
}

static ct_status parse_add(cti_jn_compiler *c, cti_jn_node **out)
{
    static const op_row rows[] = {{"+", JN_ADD}, {"-", JN_SUB}};
    return left_chain(c, rows, 2, parse_concat, out);
}

/* A comparison's operator, taken. */
static bool take_comparison(cti_jn_compiler *c, cti_jn_op *out)
{
    static const op_row rows[] = {{"==", JN_EQ}, {"!=", JN_NE}, {"<", JN_LT},
                                  {"<=", JN_LE}, {">", JN_GT},  {">=", JN_GE}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (cti_jn_skip_op(c, rows[i].text)) {
            *out = rows[i].op;
            return true;
        }
    }
    if (cti_jn_skip_name(c, "in")) {
        *out = JN_IN;
        return true;
    }
    if (cti_jn_is_name(cti_jn_now(c), "not") && cti_jn_is_name(cti_jn_now(c) + 1, "in")) {
        c->pos += 2;
        *out = JN_NOT_IN;
        return true;
    }
    return false;
}

static ct_status parse_compare(cti_jn_compiler *c, cti_jn_node **out)
{
    const cti_jn_token *t = cti_jn_now(c);
    CT_TRY(parse_add(c, out));
    cti_jn_list list = {0};
    cti_jn_op *ops = NULL, op;
    cti_jn_node *n = NULL;
    while (take_comparison(c, &op)) {
        cti_jn_node *right = NULL;
        cti_jn_op *grown = cti_jn_compile_alloc(c, (size_t)list.n + 1, sizeof *grown);
        if (grown == NULL) {
            return CT_ERR_MEMORY;
        }
        if (list.n >= JN_MAX_NODE_DEPTH) {
            return JN_SYNTAX(c, t->line, t->col, CT_ERR_RANGE, "a chain of more than %d comparisons",
                             (int)JN_MAX_NODE_DEPTH);
        }
        if (list.n > 0) {
            memcpy(grown, ops, (size_t)list.n * sizeof *grown);
        }
        grown[list.n] = op;
        ops = grown;
        CT_TRY(parse_add(c, &right));
        CT_TRY(cti_jn_list_add(c, &list, right));
    }
    if (list.n == 0) {
        return CT_OK;
    }
    CT_TRY(cti_jn_node_new(c, JN_N_COMPARE, t, &n));
    n->a = *out;
    n->items = list.v;
    n->n_items = list.n;
    n->ops = ops;
    *out = n;
    return cti_jn_node_done(c, n);
}

static ct_status parse_not(cti_jn_compiler *c, cti_jn_node **out)
{
    const cti_jn_token *t = cti_jn_now(c);
    if (!cti_jn_skip_name(c, "not")) {
        return parse_compare(c, out);
    }
    CT_TRY(enter(c));
    cti_jn_node *operand = NULL;
    CT_TRY(parse_not(c, &operand));
    c->depth--;
    return binary(c, JN_N_NOT, JN_ADD, t, operand, NULL, out);
}

static ct_status parse_and(cti_jn_compiler *c, cti_jn_node **out)
{
    CT_TRY(parse_not(c, out));
    for (const cti_jn_token *t = cti_jn_now(c); cti_jn_skip_name(c, "and"); t = cti_jn_now(c)) {
        cti_jn_node *right = NULL;
        CT_TRY(parse_not(c, &right));
        CT_TRY(binary(c, JN_N_AND, JN_ADD, t, *out, right, out));
    }
    return CT_OK;
}

static ct_status parse_or(cti_jn_compiler *c, cti_jn_node **out)
{
    CT_TRY(parse_and(c, out));
    for (const cti_jn_token *t = cti_jn_now(c); cti_jn_skip_name(c, "or"); t = cti_jn_now(c)) {
        cti_jn_node *right = NULL;
        CT_TRY(parse_and(c, &right));
        CT_TRY(binary(c, JN_N_OR, JN_ADD, t, *out, right, out));
    }
    return CT_OK;
}

ct_status cti_jn_parse_expr(cti_jn_compiler *c, bool with_cond, cti_jn_node **out)
{
    CT_TRY(enter(c));
    CT_TRY(parse_or(c, out));
    for (const cti_jn_token *t = cti_jn_now(c); with_cond && cti_jn_skip_name(c, "if"); t = cti_jn_now(c)) {
        cti_jn_node *n = NULL, *test = NULL, *otherwise = NULL;
        CT_TRY(cti_jn_node_new(c, JN_N_COND, t, &n));
        CT_TRY(parse_or(c, &test));
        if (cti_jn_skip_name(c, "else")) {
            CT_TRY(cti_jn_parse_expr(c, true, &otherwise));
        }
        n->a = *out;
        n->b = test;
        n->c = otherwise;
        CT_TRY(cti_jn_node_done(c, n));
        *out = n;
    }
    c->depth--;
    return CT_OK;
}

ct_status cti_jn_parse_tuple(cti_jn_compiler *c, bool with_cond, bool in_parens, const char *stop,
                             cti_jn_node **out)
{
    const cti_jn_token *t = cti_jn_now(c);
    cti_jn_list list = {0};
    bool is_tuple = false;
    for (;;) {
        const cti_jn_token *now = cti_jn_now(c);
        if (now->kind == JN_T_VAR_END || now->kind == JN_T_BLOCK_END || cti_jn_is_op(now, ")") ||
            (stop != NULL && cti_jn_is_name(now, stop))) {
            break;
        }
        cti_jn_node *item = NULL;
        CT_TRY(cti_jn_parse_expr(c, with_cond, &item));
        CT_TRY(cti_jn_list_add(c, &list, item));
        if (!cti_jn_skip_op(c, ",")) {
            break;
        }
        is_tuple = true;
    }
    if (!is_tuple && list.n == 1) {
        *out = (cti_jn_node *)(uintptr_t)list.v[0];
        return CT_OK;
    }
    if (list.n == 0 && !in_parens) {
        return cti_jn_unexpected(c, "an expression");
    }
    cti_jn_node *n = NULL;
    CT_TRY(cti_jn_node_new(c, JN_N_TUPLE, t, &n));
    n->items = list.v;
    n->n_items = list.n;
    *out = n;
    return cti_jn_node_done(c, n);
}
