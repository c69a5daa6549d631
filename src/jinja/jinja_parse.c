/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens to statements, and the template as a whole. */
#include "jinja/jinja_internal.h"

enum { MAX_NAMES = 4000 };

ct_status cti_jn_intern(cti_jn_compiler *c, const char *p, size_t n, bool is_read, const cti_jn_str **out)
{
    ct_jinja *t = c->template;
    size_t i = 0;
    while (i < t->n_names && (t->names[i]->n != n || memcmp(t->names[i]->p, p, n) != 0)) {
        i++;
    }
    if (i == MAX_NAMES) {
        return CT_FAIL(c->err, CT_ERR_RANGE, "'%s': more than %d different names", t->name, (int)MAX_NAMES);
    }
    if (i == t->n_names) {
        cti_jn_str *s = cti_jn_compile_alloc(c, 1, sizeof *s);
        if (s == NULL) {
            return CT_ERR_MEMORY;
        }
        *s = (cti_jn_str){.p = p, .n = n, .chars = (int64_t)n};
        t->names[t->n_names++] = s;
    }
    t->is_read[i] = t->is_read[i] || is_read;
    *out = t->names[i];
    return CT_OK;
}

static ct_status parse_body(cti_jn_compiler *c, const char *const *ends, cti_jn_node **out);

static ct_status expect_block_end(cti_jn_compiler *c)
{
    if (cti_jn_now(c)->kind != JN_T_BLOCK_END) {
        return cti_jn_unexpected(c, "the end of the tag");
    }
    c->pos++;
    return CT_OK;
}

/* The end of the tag, then statements up to a tag that starts with one of ends (a list that NULL ends), whose
 * name is left to be taken. */
static ct_status parse_block(cti_jn_compiler *c, const char *const *ends, cti_jn_node **out)
{
    CT_TRY(expect_block_end(c));
    return parse_body(c, ends, out);
}

/* A body up to the one end, which is taken. */
static ct_status parse_block_to(cti_jn_compiler *c, const char *end, cti_jn_node **out)
{
    const char *const ends[] = {end, NULL};
    CT_TRY(parse_block(c, ends, out));
    c->pos++;
    return CT_OK;
}

/* --- targets of assignments
 * -------------------------------------------------------------------------------------- */

static ct_status target_name(cti_jn_compiler *c, bool with_namespace, cti_jn_node **out)
{
    const cti_jn_token *t = cti_jn_now(c);
    static const char *const literals[] = {"true", "false", "none", "True", "False", "None"};
    if (t->kind != JN_T_NAME) {
        return cti_jn_unexpected(c, "a name to assign to");
    }
    for (size_t i = 0; i < sizeof literals / sizeof *literals; i++) {
        if (cti_jn_is_name(t, literals[i])) {
            return JN_SYNTAX(c, t->line, t->col, CT_ERR_FORMAT, "'%s' cannot be assigned to", literals[i]);
        }
    }
    c->pos++;
    const bool is_attr = with_namespace && cti_jn_is_op(cti_jn_now(c), ".");
    cti_jn_node *n = NULL;
    CT_TRY(cti_jn_node_new(c, is_attr ? JN_N_NS_TARGET : JN_N_NAME, t, &n));
    CT_TRY(cti_jn_intern(c, t->p, t->n, is_attr, &n->s));
    if (is_attr) {
        c->pos++;
        const cti_jn_token *attr = cti_jn_now(c);
        if (attr->kind != JN_T_NAME) {
            return cti_jn_unexpected(c, "an attribute's name");
        }
        const cti_jn_str *s = NULL;
        CT_TRY(cti_jn_intern(c, attr->p, attr->n, false, &s));
        if (s->p[0] == '_') {
            return JN_SYNTAX(c, attr->line, attr->col, CT_ERR_FORMAT,
                             "a namespace takes no attribute that starts with '_'");
        }
        n->v = cti_jn_text(s);
        c->pos++;
    }
    *out = n;
    return cti_jn_node_done(c, n);
}

/* a | a, b | (a, b), nested ones too. */
static ct_status parse_target(cti_jn_compiler *c, bool with_namespace, cti_jn_node **out)
{
    const cti_jn_token *t = cti_jn_now(c);
    cti_jn_list list = {0};
    bool is_tuple = false;
    if (++c->depth > JN_MAX_NODE_DEPTH) {
        return JN_SYNTAX(c, t->line, t->col, CT_ERR_RANGE, "nested deeper than %d levels",
                         (int)JN_MAX_NODE_DEPTH);
    }
    for (;;) {
        const cti_jn_token *now = cti_jn_now(c);
        if (list.n > 0 && (now->kind == JN_T_BLOCK_END || cti_jn_is_op(now, ")") || cti_jn_is_op(now, "=") ||
                           cti_jn_is_name(now, "in"))) {
            break;
        }
        cti_jn_node *item = NULL;
        if (cti_jn_skip_op(c, "(")) {
            CT_TRY(parse_target(c, with_namespace, &item));
            CT_TRY(cti_jn_expect_op(c, ")"));
        } else {
            CT_TRY(target_name(c, with_namespace, &item));
        }
        CT_TRY(cti_jn_list_add(c, &list, item));
        if (!cti_jn_skip_op(c, ",")) {
            break;
        }
        is_tuple = true;
    }
    c->depth--;
    if (!is_tuple) {
        *out = (cti_jn_node *)(uintptr_t)list.v[0];
        return CT_OK;
    }
    cti_jn_node *n = NULL;
    CT_TRY(cti_jn_node_new(c, JN_N_TUPLE, t, &n));
    n->items = list.v;
    n->n_items = list.n;
    *out = n;
    return cti_jn_node_done(c, n);
}

/* --- statements
 * -------------------------------------------------------------------------------------------------- */

static ct_status parse_if(cti_jn_compiler *c, const cti_jn_token *t, cti_jn_node **out)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    cti_jn_node *n = NULL, *otherwise = NULL;
    cti_jn_list list = {0};
    CT_TRY(cti_jn_node_new(c, JN_N_IF, t, &n));
    do {
        cti_jn_node *test = NULL, *body = NULL;
        CT_TRY(cti_jn_parse_tuple(c, false, false, NULL, &test));
        CT_TRY(cti_jn_list_add(c, &list, test));
        CT_TRY(parse_block(c, ends, &body));
        CT_TRY(cti_jn_list_add(c, &list, body));
    } while (cti_jn_skip_name(c, "elif"));
    if (cti_jn_skip_name(c, "else")) {
        CT_TRY(parse_block_to(c, "endif", &otherwise));
    } else {
        c->pos++; /* endif */
    }
    n->a = otherwise;
    n->items = list.v;
    n->n_items = list.n;
    *out = n;
    return cti_jn_node_done(c, n);
}

static ct_status parse_for(cti_jn_compiler *c, const cti_jn_token *t, cti_jn_node **out)
{
    static const char *const ends[] = {"endfor", "else", NULL};
    cti_jn_node *n = NULL, *target = NULL, *over = NULL, *filter = NULL, *body = NULL, *otherwise = NULL;
    cti_jn_list list = {0};
    CT_TRY(cti_jn_node_new(c, JN_N_FOR, t, &n));
    CT_TRY(cti_jn_intern(c, "loop", 4, false, &n->s));
    CT_TRY(parse_target(c, false, &target));
    if (target->kind == JN_N_NAME && cti_jn_is_text(cti_jn_text(target->s), "loop")) {
        return JN_SYNTAX(c, target->line, target->col, CT_ERR_FORMAT,
                         "'loop' cannot be what a for loop assigns to");
    }
    if (!cti_jn_skip_name(c, "in")) {
        return cti_jn_unexpected(c, "'in'");
    }
    CT_TRY(cti_jn_parse_tuple(c, false, false, "recursive", &over));
    if (cti_jn_skip_name(c, "if")) {
        CT_TRY(cti_jn_parse_expr(c, true, &filter));
    }
    const cti_jn_token *now = cti_jn_now(c);
    if (cti_jn_is_name(now, "recursive")) {
        return JN_SYNTAX(c, now->line, now->col, CT_ERR_UNSUPPORTED,
                         "a recursive for loop is not supported in templates here");
    }
    c->loops++;
    CT_TRY(parse_block(c, ends, &body));
    c->loops--;
    CT_TRY(cti_jn_list_add(c, &list, body));
    if (cti_jn_skip_name(c, "else")) {
        CT_TRY(parse_block_to(c, "endfor", &otherwise));
        CT_TRY(cti_jn_list_add(c, &list, otherwise));
    } else {
        c->pos++; /* endfor */
    }
    n->a = target;
    n->b = over;
    n->c = filter;
    n->items = list.v;
    n->n_items = list.n;
    *out = n;
    return cti_jn_node_done(c, n);
}

static ct_status parse_set(cti_jn_compiler *c, const cti_jn_token *t, cti_jn_node **out)
{
    cti_jn_node *n = NULL, *target = NULL, *value = NULL, *base = NULL, *body = NULL;
    CT_TRY(cti_jn_node_new(c, JN_N_SET, t, &n));
    CT_TRY(parse_target(c, true, &target));
    n->a = target;
    if (cti_jn_skip_op(c, "=")) {
        CT_TRY(cti_jn_parse_tuple(c, true, false, NULL, &value));
        n->b = value;
    } else {
        n->kind = JN_N_SET_BLOCK;
        CT_TRY(cti_jn_node_new(c, JN_N_BLOCK_TEXT, t, &base));
        CT_TRY(cti_jn_parse_filters(c, base, false, &value));
        CT_TRY(parse_block_to(c, "endset", &body));
        n->b = value == base ? NULL : value;
        n->c = body;
    }
    *out = n;
    return cti_jn_node_done(c, n);
}

/* (a, b=1): parameters of a macro or of a call block's caller. */
static ct_status parse_signature(cti_jn_compiler *c, cti_jn_node *macro)
{
    cti_jn_list defaults = {0}, names = {0};
    CT_TRY(cti_jn_expect_op(c, "("));
    while (!cti_jn_is_op(cti_jn_now(c), ")")) {
        if (names.n > 0) {
            CT_TRY(cti_jn_expect_op(c, ","));
        }
        cti_jn_node *name = NULL, *value = NULL;
        CT_TRY(target_name(c, false, &name));
        for (int32_t i = 0; i < names.n; i++) {
            if (names.v[i]->s == name->s) {
                return JN_SYNTAX(c, name->line, name->col, CT_ERR_FORMAT,
                                 "the parameter '%.*s' is there twice", JN_P(name->s));
            }
        }
        CT_TRY(cti_jn_list_add(c, &names, name));
        if (cti_jn_skip_op(c, "=")) {
            CT_TRY(cti_jn_parse_expr(c, true, &value));
            CT_TRY(cti_jn_list_add(c, &defaults, value));
        } else if (defaults.n > 0) {
            return JN_SYNTAX(c, name->line, name->col, CT_ERR_FORMAT,
                             "a parameter without a default after one with a default");
        }
    }
    c->pos++;
    if (names.n > 255) {
        return JN_SYNTAX(c, macro->line, macro->col, CT_ERR_RANGE, "a macro takes at most 255 parameters");
    }
    macro->keys = cti_jn_compile_alloc(c, (size_t)names.n, sizeof *macro->keys);
    if (macro->keys == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int32_t i = 0; i < names.n; i++) {
        macro->keys[i] = names.v[i]->s;
    }
    macro->n_keys = names.n;
    macro->items = defaults.v;
    macro->n_items = defaults.n;
    return CT_OK;
}

/* The body of a macro: loops round it are not its own; which special names it reads is noted. */
static ct_status parse_macro_body(cti_jn_compiler *c, cti_jn_node *macro, const char *end)
{
    const int32_t loops = c->loops;
    const uint32_t uses = c->uses;
    cti_jn_node *body = NULL;
    c->loops = 0;
    c->uses = 0;
    CT_TRY(parse_block_to(c, end, &body));
    macro->a = body;
    macro->uses = c->uses;
    for (int32_t i = 0; i < macro->n_keys; i++) {
        const cti_jn_val name = cti_jn_text(macro->keys[i]);
        macro->uses &= ~((cti_jn_is_text(name, "caller") ? (uint32_t)JN_USES_CALLER : 0) |
                         (cti_jn_is_text(name, "kwargs") ? (uint32_t)JN_USES_KWARGS : 0) |
                         (cti_jn_is_text(name, "varargs") ? (uint32_t)JN_USES_VARARGS : 0));
    }
    c->loops = loops;
    c->uses |= uses;
    return cti_jn_node_done(c, macro);
}

static ct_status parse_macro(cti_jn_compiler *c, const cti_jn_token *t, cti_jn_node **out)
{
    cti_jn_node *n = NULL, *name = NULL;
    CT_TRY(cti_jn_node_new(c, JN_N_MACRO, t, &n));
    CT_TRY(target_name(c, false, &name));
    n->s = name->s;
    CT_TRY(parse_signature(c, n));
    for (int32_t i = 0; i < n->n_keys; i++) {
        if (cti_jn_is_text(cti_jn_text(n->keys[i]), "caller")) {
            return JN_SYNTAX(c, t->line, t->col, CT_ERR_UNSUPPORTED,
                             "a parameter named 'caller' is not supported in templates here");
        }
    }
    *out = n;
    return parse_macro_body(c, n, "endmacro");
}

static ct_status parse_call_block(cti_jn_compiler *c, const cti_jn_token *t, cti_jn_node **out)
{
    cti_jn_node *n = NULL, *caller = NULL, *call = NULL;
    CT_TRY(cti_jn_node_new(c, JN_N_CALL_BLOCK, t, &n));
    CT_TRY(cti_jn_node_new(c, JN_N_MACRO, t, &caller));
    CT_TRY(cti_jn_intern(c, "caller", 6, false, &caller->s));
    if (cti_jn_is_op(cti_jn_now(c), "(")) {
        CT_TRY(parse_signature(c, caller));
    }
    CT_TRY(cti_jn_parse_expr(c, true, &call));
    if (call->kind != JN_N_CALL) {
        return JN_SYNTAX(c, call->line, call->col, CT_ERR_FORMAT, "'call' wants a call of a macro");
    }
    CT_TRY(parse_macro_body(c, caller, "endcall"));
    n->a = call;
    n->b = caller;
    *out = n;
    return cti_jn_node_done(c, n);
}

static ct_status parse_filter_block(cti_jn_compiler *c, const cti_jn_token *t, cti_jn_node **out)
{
    cti_jn_node *n = NULL, *base = NULL, *filters = NULL, *body = NULL;
    CT_TRY(cti_jn_node_new(c, JN_N_FILTER_BLOCK, t, &n));
    CT_TRY(cti_jn_node_new(c, JN_N_BLOCK_TEXT, t, &base));
    CT_TRY(cti_jn_parse_filters(c, base, true, &filters));
    CT_TRY(parse_block_to(c, "endfilter", &body));
    n->a = filters;
    n->b = body;
    *out = n;
    return cti_jn_node_done(c, n);
}

static ct_status parse_with(cti_jn_compiler *c, const cti_jn_token *t, cti_jn_node **out)
{
    cti_jn_node *n = NULL, *body = NULL;
    cti_jn_list list = {0};
    CT_TRY(cti_jn_node_new(c, JN_N_WITH, t, &n));
    while (cti_jn_now(c)->kind != JN_T_BLOCK_END) {
        cti_jn_node *target = NULL, *value = NULL;
        if (list.n > 0) {
            CT_TRY(cti_jn_expect_op(c, ","));
        }
        CT_TRY(target_name(c, false, &target));
        CT_TRY(cti_jn_expect_op(c, "="));
        CT_TRY(cti_jn_parse_expr(c, true, &value));
        CT_TRY(cti_jn_list_add(c, &list, target));
        CT_TRY(cti_jn_list_add(c, &list, value));
    }
    CT_TRY(parse_block_to(c, "endwith", &body));
    n->items = list.v;
    n->n_items = list.n;
    n->a = body;
    *out = n;
    return cti_jn_node_done(c, n);
}

/* {% generation %}: its body, with names of its own; loops round it cannot be left from inside. */
static ct_status parse_generation(cti_jn_compiler *c, const cti_jn_token *t, cti_jn_node **out)
{
    cti_jn_node *n = NULL, *body = NULL;
    const int32_t loops = c->loops;
    c->loops = 0;
    CT_TRY(cti_jn_node_new(c, JN_N_SCOPE, t, &n));
    CT_TRY(parse_block_to(c, "endgeneration", &body));
    c->loops = loops;
    n->a = body;
    *out = n;
    return cti_jn_node_done(c, n);
}

static ct_status parse_print(cti_jn_compiler *c, const cti_jn_token *t, cti_jn_node **out)
{
    cti_jn_node *n = NULL;
    cti_jn_list list = {0};
    CT_TRY(cti_jn_node_new(c, JN_N_BODY, t, &n));
    while (cti_jn_now(c)->kind != JN_T_BLOCK_END) {
        cti_jn_node *value = NULL, *output = NULL;
        if (list.n > 0) {
            CT_TRY(cti_jn_expect_op(c, ","));
        }
        CT_TRY(cti_jn_node_new(c, JN_N_OUTPUT, t, &output));
        CT_TRY(cti_jn_parse_expr(c, true, &value));
        output->a = value;
        CT_TRY(cti_jn_node_done(c, output));
        CT_TRY(cti_jn_list_add(c, &list, output));
    }
    n->items = list.v;
    n->n_items = list.n;
    *out = n;
    return cti_jn_node_done(c, n);
}

static ct_status parse_jump(cti_jn_compiler *c, const cti_jn_token *t, cti_jn_node **out)
{
    const bool is_break = cti_jn_is_name(t, "break");
    if (c->loops == 0) {
        return JN_SYNTAX(c, t->line, t->col, CT_ERR_FORMAT, "'%s' outside a for loop",
                         is_break ? "break" : "continue");
    }
    cti_jn_node *n = NULL;
    CT_TRY(cti_jn_node_new(c, is_break ? JN_N_BREAK : JN_N_CONTINUE, t, &n));
    *out = n;
    return cti_jn_node_done(c, n);
}

static ct_status parse_statement(cti_jn_compiler *c, cti_jn_node **out)
{
    static const struct {
        const char *name;
        ct_status (*parse)(cti_jn_compiler *c, const cti_jn_token *t,
                           cti_jn_node **out); /* NULL: jinja2 has it, we do not */
    } rows[] = {{"if", parse_if},
                {"for", parse_for},
                {"set", parse_set},
                {"macro", parse_macro},
                {"call", parse_call_block},
                {"filter", parse_filter_block},
                {"with", parse_with},
                {"generation", parse_generation},
                {"print", parse_print},
                {"break", parse_jump},
                {"continue", parse_jump},
                {"block", NULL},
                {"extends", NULL},
                {"include", NULL},
                {"from", NULL},
                {"import", NULL},
                {"autoescape", NULL},
                {"do", NULL},
                {"trans", NULL},
                {"debug", NULL}};
    const cti_jn_token *t = cti_jn_now(c);
    if (t->kind != JN_T_NAME) {
        return cti_jn_unexpected(c, "a statement's name");
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (cti_jn_is_name(t, rows[i].name)) {
            c->pos++;
            return rows[i].parse != NULL
                       ? rows[i].parse(c, t, out)
                       : JN_SYNTAX(c, t->line, t->col, CT_ERR_UNSUPPORTED,
                                   "the statement '%s' is not supported in templates here", rows[i].name);
        }
    }
    return JN_SYNTAX(c, t->line, t->col, CT_ERR_FORMAT,
                     "there is no statement '%.*s', or nothing that it could end",
                     (int)(t->n > 60 ? 60 : t->n), t->p);
}

/* Text, outputs and statements; ends NULL: up to the end of the template. */
static ct_status parse_body(cti_jn_compiler *c, const char *const *ends, cti_jn_node **out)
{
    const cti_jn_token *from = cti_jn_now(c);
    cti_jn_node *body = NULL;
    cti_jn_list list = {0};
    if (++c->depth > JN_MAX_NODE_DEPTH) {
        return JN_SYNTAX(c, from->line, from->col, CT_ERR_RANGE, "nested deeper than %d levels",
                         (int)JN_MAX_NODE_DEPTH);
    }
    CT_TRY(cti_jn_node_new(c, JN_N_BODY, from, &body));
    for (bool ended = false; !ended;) {
        const cti_jn_token *t = cti_jn_now(c);
        cti_jn_node *n = NULL, *value = NULL;
        if (t->kind == JN_T_END) {
            if (ends != NULL) {
                char wanted[64];
                size_t last = 0;
                while (ends[last + 1] != NULL) {
                    last++;
                }
                (void)snprintf(wanted, sizeof wanted, "'%s'",
                               ends[last][0] == 'e' && ends[last][1] == 'l' ? ends[0] : ends[last]);
                return cti_jn_unexpected(c, wanted);
            }
            break;
        }
        c->pos++;
        if (t->kind == JN_T_DATA) {
            CT_TRY(cti_jn_node_new(c, JN_N_DATA, t, &n));
            cti_jn_str *s = cti_jn_compile_alloc(c, 1, sizeof *s);
            if (s == NULL) {
                return CT_ERR_MEMORY;
            }
            *s = (cti_jn_str){.p = t->p, .n = t->n};
            n->s = s;
        } else if (t->kind == JN_T_VAR_BEGIN) {
            CT_TRY(cti_jn_node_new(c, JN_N_OUTPUT, t, &n));
            CT_TRY(cti_jn_parse_tuple(c, true, false, NULL, &value));
            n->a = value;
            if (cti_jn_now(c)->kind != JN_T_VAR_END) {
                return cti_jn_unexpected(c, "'}}'");
            }
            c->pos++;
            CT_TRY(cti_jn_node_done(c, n));
        } else {
            for (size_t i = 0; ends != NULL && ends[i] != NULL && !ended; i++) {
                ended = cti_jn_is_name(cti_jn_now(c), ends[i]);
            }
            if (ended) {
                break;
            }
            CT_TRY(parse_statement(c, &n));
            CT_TRY(expect_block_end(c));
        }
        CT_TRY(cti_jn_list_add(c, &list, n));
    }
    c->depth--;
    body->items = list.v;
    body->n_items = list.n;
    *out = body;
    return cti_jn_node_done(c, body);
}

/* --- the template
 * ------------------------------------------------------------------------------------------------ */

static ct_status compile(cti_jn_compiler *c, const char *name)
{
    ct_jinja *t = c->template;
    CT_TRY(ct_arena_create(t->alloc, 0, &t->arena, c->err));
    t->name = ct_arena_strdup(t->arena, name, c->err);
    t->names = cti_jn_compile_alloc(c, MAX_NAMES, sizeof *t->names);
    t->is_read = cti_jn_compile_alloc(c, MAX_NAMES, sizeof *t->is_read);
    if (t->name == NULL || t->names == NULL || t->is_read == NULL) {
        return CT_ERR_MEMORY;
    }
    CT_TRY(cti_jn_lex(c));
    cti_jn_node *root = NULL;
    CT_TRY(parse_body(c, NULL, &root));
    t->root = root;
    return CT_OK;
}

ct_status ct_jinja_compile(const ct_alloc *alloc, const char *text, size_t size, const char *name,
                           ct_jinja **out_template, ct_err *err)
{
    ct_jinja *t = CT_NEW(alloc, ct_jinja, err);
    if (t == NULL) {
        return CT_ERR_MEMORY;
    }
    t->alloc = alloc;
    cti_jn_compiler c = {.template = t, .err = err, .src = text, .n = size};
    const ct_status st = compile(&c, name);
    ct_alloc_free(alloc, c.tokens);
    if (st != CT_OK) {
        ct_jinja_destroy(&t);
        return st;
    }
    *out_template = t;
    return CT_OK;
}

void ct_jinja_destroy(ct_jinja **template)
{
    if (template == NULL || *template == NULL) {
        return;
    }
    ct_arena_destroy(&(*template)->arena);
    ct_alloc_free((*template)->alloc, *template);
    *template = NULL;
}

bool ct_jinja_uses(const ct_jinja *template, const char *name)
{
    for (size_t i = 0; i < template->n_names; i++) {
        if (cti_jn_is_text(cti_jn_text(template->names[i]), name)) {
            return template->is_read[i];
        }
    }
    return false;
}
