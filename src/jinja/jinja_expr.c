/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens to expressions, in jinja2's order of precedence: if-else, or, and, not, comparisons, + -, ~, * / //
 * %, **, signs, then a value (jinja_primary.c) and filters and tests. */
#include "jinja/jinja_internal.h"

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
        CT_TRY(cti_jn_parse_postfix(c, &arg));
        CT_TRY(cti_jn_list_add(c, &list, arg));
        n->items = list.v;
        n->n_items = list.n;
    }
    CT_TRY(cti_jn_node_done(c, n));
    *out = n;
    return is_negated ? cti_jn_node_of_two(c, JN_N_NOT, JN_ADD, t, n, NULL, out) : CT_OK;
}

/* --- operators
 * --------------------------------------------------------------------------------------------------- */

ct_status cti_jn_parse_unary(cti_jn_compiler *c, bool with_filter, cti_jn_node **out)
{
    CT_TRY(cti_jn_descend(c));
    const cti_jn_token *t = cti_jn_now(c);
    if (cti_jn_is_op(t, "-") || cti_jn_is_op(t, "+")) {
        c->pos++;
        cti_jn_node *operand = NULL;
        CT_TRY(cti_jn_parse_unary(c, false, &operand));
        CT_TRY(cti_jn_node_of_two(c, t->p[0] == '-' ? JN_N_NEG : JN_N_POS, JN_ADD, t, operand, NULL, out));
    } else {
        CT_TRY(cti_jn_parse_primary(c, out));
    }
    CT_TRY(cti_jn_parse_postfix(c, out));
    while (with_filter) {
        t = cti_jn_now(c);
        if (cti_jn_is_op(t, "|")) {
            CT_TRY(cti_jn_parse_filters(c, *out, false, out));
        } else if (cti_jn_skip_name(c, "is")) {
            CT_TRY(parse_test(c, *out, out));
        } else if (cti_jn_skip_op(c, "(")) {
            CT_TRY(cti_jn_parse_call(c, *out, t, out));
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
        CT_TRY(cti_jn_node_of_two(c, JN_N_BINARY, rows[i].op, t, *out, right, out));
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
    CT_TRY(cti_jn_descend(c));
    cti_jn_node *operand = NULL;
    CT_TRY(parse_not(c, &operand));
    c->depth--;
    return cti_jn_node_of_two(c, JN_N_NOT, JN_ADD, t, operand, NULL, out);
}

static ct_status parse_and(cti_jn_compiler *c, cti_jn_node **out)
{
    CT_TRY(parse_not(c, out));
    for (const cti_jn_token *t = cti_jn_now(c); cti_jn_skip_name(c, "and"); t = cti_jn_now(c)) {
        cti_jn_node *right = NULL;
        CT_TRY(parse_not(c, &right));
        CT_TRY(cti_jn_node_of_two(c, JN_N_AND, JN_ADD, t, *out, right, out));
    }
    return CT_OK;
}

static ct_status parse_or(cti_jn_compiler *c, cti_jn_node **out)
{
    CT_TRY(parse_and(c, out));
    for (const cti_jn_token *t = cti_jn_now(c); cti_jn_skip_name(c, "or"); t = cti_jn_now(c)) {
        cti_jn_node *right = NULL;
        CT_TRY(parse_and(c, &right));
        CT_TRY(cti_jn_node_of_two(c, JN_N_OR, JN_ADD, t, *out, right, out));
    }
    return CT_OK;
}

ct_status cti_jn_parse_expr(cti_jn_compiler *c, bool with_cond, cti_jn_node **out)
{
    CT_TRY(cti_jn_descend(c));
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
