/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens to values, and what follows a value: attributes, subscripts, calls. */
#include "jinja/jinja_internal.h"

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

ct_status cti_jn_parse_call(cti_jn_compiler *c, cti_jn_node *base, const cti_jn_token *t, cti_jn_node **out)
{
    cti_jn_node *n = NULL;
    CT_TRY(cti_jn_node_new(c, JN_N_CALL, t, &n));
    n->a = base;
    CT_TRY(cti_jn_parse_call_args(c, n));
    CT_TRY(check_time_format(c, n));
    *out = n;
    return cti_jn_node_done(c, n);
}

ct_status cti_jn_parse_postfix(cti_jn_compiler *c, cti_jn_node **n)
{
    for (;;) {
        const cti_jn_token *t = cti_jn_now(c);
        if (cti_jn_skip_op(c, ".")) {
            CT_TRY(parse_attr(c, *n, t, n));
        } else if (cti_jn_skip_op(c, "[")) {
            CT_TRY(parse_subscript(c, *n, t, n));
        } else if (cti_jn_skip_op(c, "(")) {
            CT_TRY(cti_jn_parse_call(c, *n, t, n));
        } else {
            return CT_OK;
        }
    }
}
