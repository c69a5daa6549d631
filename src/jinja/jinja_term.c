/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions evaluated. */
#include "jinja/jinja_internal.h"

ct_status cti_jn_enter(cti_jn_ctx *x, const cti_jn_node *n)
{
    CT_TRY(cti_jn_place(x, n, cti_jn_step(x, 1)));
    if (x->depth >= JN_MAX_DEPTH) {
        return cti_jn_place(x, n,
                            JN_FAIL(x, CT_ERR_RANGE,
                                    "nested deeper than %d levels; a macro that calls itself without end?",
                                    (int)JN_MAX_DEPTH));
    }
    x->depth++;
    return CT_OK;
}

ct_status cti_jn_place(cti_jn_ctx *x, const cti_jn_node *n, ct_status st)
{
    if (st != CT_OK && !x->is_placed) {
        x->is_placed = true;
        ct_err_prefix(x->err, "'%s', line %d, column %d", x->template->name, n->line, n->col);
    }
    return st;
}

static ct_status eval_seq(cti_jn_ctx *x, const cti_jn_node *n, cti_jn_val *out)
{
    cti_jn_val v;
    CT_TRY(cti_jn_seq_new(x, n->kind == JN_N_LIST ? JN_LIST : JN_TUPLE, (size_t)n->n_items, &v));
    for (int32_t i = 0; i < n->n_items; i++) {
        CT_TRY(cti_jn_eval(x, n->items[i], &v.as.seq->v[i]));
    }
    *out = v;
    return CT_OK;
}

static ct_status eval_dict(cti_jn_ctx *x, const cti_jn_node *n, cti_jn_val *out)
{
    cti_jn_val v;
    CT_TRY(cti_jn_dict_new(x, JN_DICT, (size_t)n->n_items / 2, &v));
    for (int32_t i = 0; i < n->n_items; i += 2) {
        cti_jn_val key, value;
        CT_TRY(cti_jn_eval(x, n->items[i], &key));
        CT_TRY(cti_jn_eval(x, n->items[i + 1], &value));
        CT_TRY(cti_jn_dict_put(x, v.as.dict, key, value));
    }
    *out = v;
    return CT_OK;
}

static ct_status eval_slice(cti_jn_ctx *x, const cti_jn_node *n, cti_jn_val *out)
{
    cti_jn_val v, parts[3];
    const cti_jn_node *const nodes[3] = {n->b, n->c, n->d};
    CT_TRY(cti_jn_eval(x, n->a, &v));
    for (int i = 0; i < 3; i++) {
        parts[i] = cti_jn_none();
        if (nodes[i] != NULL) {
            CT_TRY(cti_jn_eval(x, nodes[i], &parts[i]));
        }
    }
    return cti_jn_slice(x, v, parts, out);
}

/* The arguments of a call, filter or test. */
static ct_status eval_args(cti_jn_ctx *x, const cti_jn_node *n, cti_jn_args *out)
{
    cti_jn_val *v = cti_jn_alloc(x, (size_t)n->n_items, sizeof *v);
    cti_jn_val *kv = v == NULL ? NULL : cti_jn_alloc(x, (size_t)n->n_keys, sizeof *kv);
    if (kv == NULL) {
        return x->memory > x->max_memory ? CT_ERR_RANGE : CT_ERR_MEMORY;
    }
    for (int32_t i = 0; i < n->n_items; i++) {
        CT_TRY(cti_jn_eval(x, n->items[i], &v[i]));
    }
    for (int32_t i = 0; i < n->n_keys; i++) {
        CT_TRY(cti_jn_eval(x, n->key_values[i], &kv[i]));
    }
    *out = (cti_jn_args){
        .v = v, .n = (size_t)n->n_items, .keys = n->keys, .key_values = kv, .n_keys = (size_t)n->n_keys};
    return CT_OK;
}

static ct_status eval_call(cti_jn_ctx *x, const cti_jn_node *n, cti_jn_val *out)
{
    cti_jn_val callee;
    cti_jn_args args;
    CT_TRY(cti_jn_eval(x, n->a, &callee));
    CT_TRY(eval_args(x, n, &args));
    return cti_jn_call(x, callee, &args, out);
}

static ct_status eval_filter(cti_jn_ctx *x, const cti_jn_node *n, cti_jn_val *out)
{
    cti_jn_val v;
    cti_jn_args args;
    const cti_jn_filter_row *row = n->row;
    CT_TRY(cti_jn_eval(x, n->a, &v));
    CT_TRY(eval_args(x, n, &args));
    return row->fn(x, v, &args, out);
}

static ct_status eval_test(cti_jn_ctx *x, const cti_jn_node *n, cti_jn_val *out)
{
    cti_jn_val v;
    cti_jn_args args;
    bool is = false;
    CT_TRY(cti_jn_eval(x, n->a, &v));
    CT_TRY(eval_args(x, n, &args));
    CT_TRY(cti_jn_test_run(x, n->row, v, &args, &is));
    *out = cti_jn_bool(is);
    return CT_OK;
}

static ct_status eval_compare(cti_jn_ctx *x, const cti_jn_node *n, cti_jn_val *out)
{
    cti_jn_val left, right;
    bool is = true;
    CT_TRY(cti_jn_eval(x, n->a, &left));
    for (int32_t i = 0; i < n->n_items && is; i++, left = right) {
        const cti_jn_op op = n->ops[i];
        CT_TRY(cti_jn_eval(x, n->items[i], &right));
        if (op == JN_IN || op == JN_NOT_IN) {
            CT_TRY(cti_jn_contains(x, left, right, &is));
            is = is == (op == JN_IN);
        } else if (op == JN_EQ || op == JN_NE) {
            CT_TRY(cti_jn_equal(x, left, right, 0, &is));
            is = is == (op == JN_EQ);
        } else {
            CT_TRY(cti_jn_compare(x, op, left, right, 0, &is));
        }
    }
    *out = cti_jn_bool(is);
    return CT_OK;
}

static ct_status eval_concat(cti_jn_ctx *x, const cti_jn_node *n, cti_jn_val *out)
{
    cti_str text = {.alloc = x->template->alloc};
    ct_status st = CT_OK;
    for (int32_t i = 0; i < n->n_items && st == CT_OK; i++) {
        cti_jn_val v;
        st = cti_jn_eval(x, n->items[i], &v);
        if (st == CT_OK) {
            st = cti_jn_add_str(x, &text, v);
        }
    }
    if (st != CT_OK) {
        cti_str_deinit(&text);
        return st;
    }
    return cti_jn_str_of(x, &text, out);
}

static ct_status eval_logic(cti_jn_ctx *x, const cti_jn_node *n, cti_jn_val *out)
{
    bool is = false;
    if (n->kind == JN_N_COND) {
        cti_jn_val test;
        CT_TRY(cti_jn_eval(x, n->b, &test));
        CT_TRY(cti_jn_truth(x, test, &is));
        if (is || n->c != NULL) {
            return cti_jn_eval(x, is ? n->a : n->c, out);
        }
        return cti_jn_undefined(x, out, "the 'if' in the expression of line %d was false and has no 'else'",
                                n->line);
    }
    CT_TRY(cti_jn_eval(x, n->a, out));
    CT_TRY(cti_jn_truth(x, *out, &is));
    if (n->kind == JN_N_NOT) {
        *out = cti_jn_bool(!is);
        return CT_OK;
    }
    return is == (n->kind == JN_N_AND) ? cti_jn_eval(x, n->b, out) : CT_OK;
}

static ct_status eval_two(cti_jn_ctx *x, const cti_jn_node *n, cti_jn_val *out)
{
    cti_jn_val a, b;
    CT_TRY(cti_jn_eval(x, n->a, &a));
    CT_TRY(cti_jn_eval(x, n->b, &b));
    return n->kind == JN_N_ITEM ? cti_jn_item(x, a, b, out) : cti_jn_binary(x, n->op, a, b, out);
}

static ct_status eval_one(cti_jn_ctx *x, const cti_jn_node *n, cti_jn_val *out)
{
    cti_jn_val a;
    CT_TRY(cti_jn_eval(x, n->a, &a));
    return n->kind == JN_N_ATTR ? cti_jn_attr(x, a, n->s, out) : cti_jn_unary(x, n->kind == JN_N_NEG, a, out);
}

static ct_status eval(cti_jn_ctx *x, const cti_jn_node *n, cti_jn_val *out)
{
    switch (n->kind) {
    case JN_N_CONST:
        *out = n->v;
        return CT_OK;
    case JN_N_NAME:
        return cti_jn_lookup(x, n->s, out);
    case JN_N_LIST:
    case JN_N_TUPLE:
        return eval_seq(x, n, out);
    case JN_N_DICT:
        return eval_dict(x, n, out);
    case JN_N_ATTR:
    case JN_N_NEG:
    case JN_N_POS:
        return eval_one(x, n, out);
    case JN_N_ITEM:
    case JN_N_BINARY:
        return eval_two(x, n, out);
    case JN_N_SLICE:
        return eval_slice(x, n, out);
    case JN_N_CALL:
        return eval_call(x, n, out);
    case JN_N_FILTER:
        return eval_filter(x, n, out);
    case JN_N_TEST:
        return eval_test(x, n, out);
    case JN_N_NOT:
    case JN_N_AND:
    case JN_N_OR:
    case JN_N_COND:
        return eval_logic(x, n, out);
    case JN_N_COMPARE:
        return eval_compare(x, n, out);
    case JN_N_CONCAT:
        return eval_concat(x, n, out);
    case JN_N_BLOCK_TEXT:
        *out = x->block_text;
        return CT_OK;
    case JN_N_NS_TARGET:
    case JN_N_BODY:
    case JN_N_DATA:
    case JN_N_OUTPUT:
    case JN_N_IF:
    case JN_N_FOR:
    case JN_N_SET:
    case JN_N_SET_BLOCK:
    case JN_N_MACRO:
    case JN_N_CALL_BLOCK:
    case JN_N_FILTER_BLOCK:
    case JN_N_WITH:
    case JN_N_SCOPE:
    case JN_N_BREAK:
    case JN_N_CONTINUE:
        break;
    }
    CT_ASSERT(false && "a statement where an expression belongs");
    return CT_ERR_STATE;
}

ct_status cti_jn_eval(cti_jn_ctx *x, const cti_jn_node *n, cti_jn_val *out)
{
    CT_TRY(cti_jn_enter(x, n));
    const ct_status st = cti_jn_place(x, n, eval(x, n, out));
    x->depth--;
    return st;
}
