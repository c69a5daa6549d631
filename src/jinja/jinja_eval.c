/* SPDX-License-Identifier: Apache-2.0 */
/* Statements carried out, and a rendering as a whole. */
#include "jinja/jinja_internal.h"

enum { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE };

/* --- names
 * ------------------------------------------------------------------------------------------------------- */

static ct_status out_of_memory(const cti_jn_ctx *x)
{
    return x->memory > x->max_memory ? CT_ERR_RANGE : CT_ERR_MEMORY;
}

ct_status cti_jn_scope_push(cti_jn_ctx *x, cti_jn_scope *parent)
{
    cti_jn_scope *s = cti_jn_alloc(x, 1, sizeof *s);
    if (s == NULL) {
        return out_of_memory(x);
    }
    s->parent = parent;
    x->scope = s;
    return CT_OK;
}

static cti_jn_var *scope_find(const cti_jn_scope *s, const cti_jn_str *name)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->vars[i].name == name) {
            return &s->vars[i];
        }
    }
    return NULL;
}

ct_status cti_jn_scope_set(cti_jn_ctx *x, cti_jn_scope *scope, const cti_jn_str *name, cti_jn_val value)
{
    cti_jn_var *var = scope_find(scope, name);
    CT_TRY(cti_jn_step(x, (int64_t)(scope->n / 8)));
    if (var != NULL) {
        var->value = value;
        return CT_OK;
    }
    if (scope->n == scope->cap) {
        const size_t cap = scope->cap == 0 ? 4 : 2 * scope->cap;
        cti_jn_var *vars = cti_jn_alloc(x, cap, sizeof *vars);
        if (vars == NULL) {
            return out_of_memory(x);
        }
        if (scope->n > 0) {
            memcpy(vars, scope->vars, scope->n * sizeof *vars);
        }
        scope->vars = vars;
        scope->cap = cap;
    }
    scope->vars[scope->n++] = (cti_jn_var){.name = name, .value = value};
    return CT_OK;
}

ct_status cti_jn_lookup(cti_jn_ctx *x, const cti_jn_str *name, cti_jn_val *out)
{
    for (const cti_jn_scope *s = x->scope; s != NULL; s = s->parent) {
        const cti_jn_var *var = scope_find(s, name);
        CT_TRY(cti_jn_step(x, (int64_t)(s->n / 8)));
        if (var != NULL) {
            *out = var->value;
            return CT_OK;
        }
    }
    const cti_jn_var *known = scope_find(x->globals, name);
    if (known != NULL) {
        *out = known->value;
        return CT_OK;
    }
    char key[256];
    const json_t *json = NULL;
    if (x->variables != NULL && name->n < sizeof key) {
        memcpy(key, name->p, name->n);
        key[name->n] = '\0';
        json = json_object_get(x->variables, key);
    }
    if (json != NULL) {
        CT_TRY(cti_jn_from_json(x, json, 0, out));
    } else if (!cti_jn_function_find(name, out)) {
        CT_TRY(cti_jn_undefined(x, out, "'%.*s' is undefined", JN_P(name)));
    }
    return cti_jn_scope_set(x, x->globals, name, *out);
}

static ct_status assign_attr(cti_jn_ctx *x, const cti_jn_node *target, cti_jn_val value)
{
    cti_jn_val ns;
    CT_TRY(cti_jn_lookup(x, target->s, &ns));
    if (ns.kind != JN_NAMESPACE) {
        return JN_FAIL(x, CT_ERR_DATA,
                       "'%.*s' should be a namespace for an attribute of it to be set, but is of type %s",
                       JN_P(target->s), cti_jn_type_name(ns));
    }
    return cti_jn_dict_put(x, ns.as.dict, target->v, value);
}

ct_status cti_jn_assign(cti_jn_ctx *x, const cti_jn_node *target, cti_jn_val value)
{
    if (target->kind == JN_N_NAME) {
        return cti_jn_scope_set(x, x->scope, target->s, value);
    }
    if (target->kind == JN_N_NS_TARGET) {
        return cti_jn_place(x, target, assign_attr(x, target, value));
    }
    cti_jn_seq *seq = NULL;
    CT_TRY(cti_jn_iterate(x, value, &seq));
    if ((int64_t)seq->n != target->n_items) {
        return cti_jn_place(
            x, target,
            JN_FAIL(x, CT_ERR_DATA, "%d values are wanted, but there are %zu", target->n_items, seq->n));
    }
    for (int32_t i = 0; i < target->n_items; i++) {
        CT_TRY(cti_jn_assign(x, target->items[i], seq->v[i]));
    }
    return CT_OK;
}

/* --- loops
 * ------------------------------------------------------------------------------------------------------- */

/* The next item that the loop's filter lets through, into loop->after. */
ct_status cti_jn_loop_peek(cti_jn_ctx *x, cti_jn_loop *loop)
{
    while (!loop->has_after && loop->at < loop->seq->n) {
        const cti_jn_val item = loop->seq->v[loop->at++];
        bool passes = true;
        CT_TRY(cti_jn_step(x, 1));
        if (loop->node->c != NULL) {
            cti_jn_scope *saved = x->scope;
            cti_jn_val test;
            CT_TRY(cti_jn_scope_push(x, loop->outer));
            CT_TRY(cti_jn_assign(x, loop->node->a, item));
            CT_TRY(cti_jn_eval(x, loop->node->c, &test));
            CT_TRY(cti_jn_truth(x, test, &passes));
            x->scope = saved;
        }
        if (passes) {
            loop->after = item;
            loop->has_after = true;
        }
    }
    return CT_OK;
}

ct_status cti_jn_loop_next(cti_jn_ctx *x, cti_jn_loop *loop, bool *out_has)
{
    CT_TRY(cti_jn_loop_peek(x, loop));
    *out_has = loop->has_after;
    if (loop->has_after) {
        loop->index0++;
        loop->before = loop->current;
        loop->current = loop->after;
        loop->has_after = false;
    }
    return CT_OK;
}

/* With a filter all that is left is gone over now, as jinja2 does. */
ct_status cti_jn_loop_length(cti_jn_ctx *x, cti_jn_loop *loop, int64_t *out)
{
    if (!loop->is_sized && loop->node->c != NULL) {
        cti_jn_val rest;
        size_t n = 0;
        CT_TRY(cti_jn_seq_new(x, JN_LIST, loop->seq->n - loop->at + 1, &rest));
        for (;;) {
            CT_TRY(cti_jn_loop_peek(x, loop));
            if (!loop->has_after) {
                break;
            }
            rest.as.seq->v[n++] = loop->after;
            loop->has_after = false;
        }
        rest.as.seq->n = n;
        loop->length = (int64_t)n + loop->index0 + 1;
        loop->seq = rest.as.seq;
        loop->at = 0;
        cti_jn_node *plain = cti_jn_alloc(x, 1, sizeof *plain); /* what is left has been filtered */
        if (plain == NULL) {
            return out_of_memory(x);
        }
        *plain = *loop->node;
        plain->c = NULL;
        loop->node = plain;
    } else if (!loop->is_sized) {
        loop->length = (int64_t)loop->seq->n;
    }
    loop->is_sized = true;
    *out = loop->length;
    return CT_OK;
}

static ct_status exec_for(cti_jn_ctx *x, const cti_jn_node *n, int *out_flow)
{
    cti_jn_val over;
    cti_jn_scope *const outer = x->scope;
    cti_jn_loop *loop = cti_jn_alloc(x, 1, sizeof *loop);
    if (loop == NULL) {
        return out_of_memory(x);
    }
    const cti_jn_str *name = n->s; /* "loop", interned */
    *loop = (cti_jn_loop){.node = n, .outer = outer, .index0 = -1};
    CT_TRY(cti_jn_eval(x, n->b, &over));
    CT_TRY(cti_jn_place(x, n->b, cti_jn_iterate(x, over, &loop->seq)));
    bool is_untouched = true, has = false;
    for (;;) {
        int flow = FLOW_ON;
        CT_TRY(cti_jn_loop_next(x, loop, &has));
        if (!has) {
            break;
        }
        CT_TRY(cti_jn_scope_push(x, outer));
        CT_TRY(cti_jn_scope_set(x, x->scope, name, JN_VALUE(JN_LOOP, loop, loop)));
        CT_TRY(cti_jn_assign(x, n->a, loop->current));
        CT_TRY(cti_jn_exec(x, n->items[0], &flow));
        x->scope = outer;
        if (flow == FLOW_BREAK) {
            break;
        }
        is_untouched =
            is_untouched && flow == FLOW_CONTINUE; /* jinja2 notes a turn at the end of its body only */
    }
    if (is_untouched && n->n_items > 1) {
        CT_TRY(cti_jn_scope_push(x, outer));
        CT_TRY(cti_jn_exec(x, n->items[1], out_flow)); /* a break in it leaves the loop round this one */
        x->scope = outer;
    }
    return CT_OK;
}

/* --- other statements
 * -------------------------------------------------------------------------------------------- */

/* The text of a body, taken out of the output. */
ct_status cti_jn_capture(cti_jn_ctx *x, const cti_jn_node *body, int *out_flow, cti_jn_val *out)
{
    const size_t from = x->out.len;
    CT_TRY(cti_jn_exec(x, body, out_flow));
    CT_TRY(cti_jn_str_new(x, cti_str_text(&x->out) + from, x->out.len - from, out));
    if (x->out.data != NULL) {
        x->out.len = from;
        x->out.data[from] = '\0';
    }
    return CT_OK;
}

static ct_status exec_if(cti_jn_ctx *x, const cti_jn_node *n, int *flow)
{
    for (int32_t i = 0; i < n->n_items; i += 2) {
        cti_jn_val test;
        bool is = false;
        CT_TRY(cti_jn_eval(x, n->items[i], &test));
        CT_TRY(cti_jn_truth(x, test, &is));
        if (is) {
            return cti_jn_exec(x, n->items[i + 1], flow);
        }
    }
    return n->a == NULL ? CT_OK : cti_jn_exec(x, n->a, flow);
}

static ct_status exec_set_block(cti_jn_ctx *x, const cti_jn_node *n, int *flow)
{
    cti_jn_scope *const outer = x->scope;
    cti_jn_val text;
    CT_TRY(cti_jn_scope_push(x, outer));
    CT_TRY(cti_jn_capture(x, n->c, flow, &text));
    x->scope = outer;
    if (*flow != FLOW_ON) {
        return CT_OK;
    }
    if (n->b != NULL) {
        x->block_text = text;
        CT_TRY(cti_jn_eval(x, n->b, &text));
    }
    return cti_jn_assign(x, n->a, text);
}

static ct_status exec_filter_block(cti_jn_ctx *x, const cti_jn_node *n, int *flow)
{
    cti_jn_scope *const outer = x->scope;
    cti_jn_val text;
    CT_TRY(cti_jn_scope_push(x, outer));
    CT_TRY(cti_jn_capture(x, n->b, flow, &text));
    x->scope = outer;
    if (*flow != FLOW_ON) {
        return CT_OK;
    }
    x->block_text = text;
    CT_TRY(cti_jn_eval(x, n->a, &text));
    return cti_jn_add_str(x, &x->out, text);
}

/* The values are evaluated before the names are set. */
static ct_status exec_with(cti_jn_ctx *x, const cti_jn_node *n, int *flow)
{
    cti_jn_scope *const outer = x->scope;
    cti_jn_val values;
    CT_TRY(cti_jn_seq_new(x, JN_LIST, (size_t)n->n_items, &values));
    for (int32_t i = 1; i < n->n_items; i += 2) {
        CT_TRY(cti_jn_eval(x, n->items[i], &values.as.seq->v[i]));
    }
    CT_TRY(cti_jn_scope_push(x, outer));
    for (int32_t i = 0; i < n->n_items; i += 2) {
        CT_TRY(cti_jn_assign(x, n->items[i], values.as.seq->v[i + 1]));
    }
    CT_TRY(cti_jn_exec(x, n->a, flow));
    x->scope = outer;
    return CT_OK;
}

static ct_status macro_value(cti_jn_ctx *x, const cti_jn_node *n, cti_jn_val *out)
{
    cti_jn_macro *m = cti_jn_alloc(x, 1, sizeof *m);
    if (m == NULL) {
        return out_of_memory(x);
    }
    *m = (cti_jn_macro){.node = n, .scope = x->scope};
    *out = JN_VALUE(JN_MACRO, macro, m);
    return CT_OK;
}

/* The call, with its own arguments and the body as `caller`. */
static ct_status exec_call_block(cti_jn_ctx *x, const cti_jn_node *n)
{
    cti_jn_val callee, text;
    const cti_jn_node *call = n->a;
    const size_t n_keys = (size_t)call->n_keys + 1;
    cti_jn_val *v = cti_jn_alloc(x, (size_t)call->n_items, sizeof *v),
               *kv = cti_jn_alloc(x, n_keys, sizeof *kv);
    const cti_jn_str **keys = cti_jn_alloc(x, n_keys, sizeof *keys);
    if (v == NULL || kv == NULL || keys == NULL) {
        return out_of_memory(x);
    }
    CT_TRY(macro_value(x, n->b, &kv[n_keys - 1]));
    keys[n_keys - 1] = n->b->s;
    CT_TRY(cti_jn_eval(x, call->a, &callee));
    for (int32_t i = 0; i < call->n_items; i++) {
        CT_TRY(cti_jn_eval(x, call->items[i], &v[i]));
    }
    for (int32_t i = 0; i < call->n_keys; i++) {
        keys[i] = call->keys[i];
        CT_TRY(cti_jn_eval(x, call->key_values[i], &kv[i]));
    }
    const cti_jn_args args = {
        .v = v, .n = (size_t)call->n_items, .keys = keys, .key_values = kv, .n_keys = n_keys};
    CT_TRY(cti_jn_place(x, call, cti_jn_call(x, callee, &args, &text)));
    return cti_jn_add_str(x, &x->out, text);
}

static ct_status exec_scope(cti_jn_ctx *x, const cti_jn_node *n, int *flow)
{
    cti_jn_scope *const outer = x->scope;
    CT_TRY(cti_jn_scope_push(x, outer));
    CT_TRY(cti_jn_exec(x, n->a, flow));
    x->scope = outer;
    return CT_OK;
}

static ct_status exec_body(cti_jn_ctx *x, const cti_jn_node *n, int *flow)
{
    for (int32_t i = 0; i < n->n_items && *flow == FLOW_ON; i++) {
        CT_TRY(cti_jn_exec(x, n->items[i], flow));
    }
    return CT_OK;
}

static ct_status exec_output(cti_jn_ctx *x, const cti_jn_node *n)
{
    cti_jn_val v;
    CT_TRY(cti_jn_eval(x, n->a, &v));
    return cti_jn_add_str(x, &x->out, v);
}

static ct_status exec_set(cti_jn_ctx *x, const cti_jn_node *n)
{
    cti_jn_val v;
    CT_TRY(cti_jn_eval(x, n->b, &v));
    return cti_jn_assign(x, n->a, v);
}

static ct_status exec(cti_jn_ctx *x, const cti_jn_node *n, int *flow)
{
    cti_jn_val v;
    switch (n->kind) {
    case JN_N_BODY:
        return exec_body(x, n, flow);
    case JN_N_DATA:
        cti_str_add_n(&x->out, n->s->p, n->s->n);
        return cti_jn_check_text(x, &x->out);
    case JN_N_OUTPUT:
        return exec_output(x, n);
    case JN_N_IF:
        return exec_if(x, n, flow);
    case JN_N_FOR:
        return exec_for(x, n, flow);
    case JN_N_SET:
        return exec_set(x, n);
    case JN_N_SET_BLOCK:
        return exec_set_block(x, n, flow);
    case JN_N_MACRO:
        CT_TRY(macro_value(x, n, &v));
        return cti_jn_scope_set(x, x->scope, n->s, v);
    case JN_N_CALL_BLOCK:
        return exec_call_block(x, n);
    case JN_N_FILTER_BLOCK:
        return exec_filter_block(x, n, flow);
    case JN_N_WITH:
        return exec_with(x, n, flow);
    case JN_N_SCOPE:
        return exec_scope(x, n, flow);
    case JN_N_BREAK:
        *flow = FLOW_BREAK;
        return CT_OK;
    case JN_N_CONTINUE:
        *flow = FLOW_CONTINUE;
        return CT_OK;
    case JN_N_CONST:
    case JN_N_NAME:
    case JN_N_LIST:
    case JN_N_TUPLE:
    case JN_N_DICT:
    case JN_N_ATTR:
    case JN_N_ITEM:
    case JN_N_SLICE:
    case JN_N_CALL:
    case JN_N_FILTER:
    case JN_N_TEST:
    case JN_N_NOT:
    case JN_N_NEG:
    case JN_N_POS:
    case JN_N_AND:
    case JN_N_OR:
    case JN_N_BINARY:
    case JN_N_COMPARE:
    case JN_N_CONCAT:
    case JN_N_COND:
    case JN_N_BLOCK_TEXT:
    case JN_N_NS_TARGET:
        break;
    }
    CT_ASSERT(false && "an expression where a statement belongs");
    return CT_ERR_STATE;
}

ct_status cti_jn_exec(cti_jn_ctx *x, const cti_jn_node *n, int *out_flow)
{
    CT_TRY(cti_jn_enter(x, n));
    const ct_status st = cti_jn_place(x, n, exec(x, n, out_flow));
    x->depth--;
    return st;
}

/* --- a rendering
 * ------------------------------------------------------------------------------------------------- */

static ct_status render(cti_jn_ctx *x)
{
    int flow = FLOW_ON;
    CT_TRY(ct_arena_create(x->template->alloc, 0, &x->arena, x->err));
    CT_TRY(cti_jn_scope_push(x, NULL));
    x->globals = x->scope;
    CT_TRY(cti_jn_scope_push(x, NULL));
    return cti_jn_exec(x, x->template->root, &flow);
}

ct_status ct_jinja_render(const ct_jinja *template, const json_t *variables, const ct_jinja_options *options,
                          cti_str *out, ct_err *err)
{
    const ct_jinja_options defaults = {0};
    const ct_jinja_options *o = options == NULL ? &defaults : options;
    cti_jn_ctx x = {.template = template,
                    .variables = variables,
                    .err = err,
                    .out = {.alloc = template->alloc},
                    .max_output = o->max_output_bytes <= 0 ? (size_t)64 << 20 : (size_t)o->max_output_bytes,
                    .max_memory = o->max_memory_bytes <= 0 ? (int64_t)256 << 20 : o->max_memory_bytes,
                    .max_steps = o->max_steps <= 0 ? 20000000 : o->max_steps};
    if (o->now != NULL) {
        x.now = *o->now;
        x.has_now = true;
    }
    ct_status st = render(&x);
    if (st == CT_OK) {
        st = cti_str_check(&x.out, err);
    }
    if (st == CT_OK) {
        cti_str_add_n(out, cti_str_text(&x.out), x.out.len);
        st = cti_str_check(out, err);
    }
    cti_str_deinit(&x.out);
    ct_arena_destroy(&x.arena);
    return st;
}
