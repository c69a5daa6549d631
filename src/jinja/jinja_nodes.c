/* SPDX-License-Identifier: Apache-2.0 */
/* What parsing is made of: the token at hand, nodes and lists of them. */
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

ct_status cti_jn_descend(cti_jn_compiler *c)
{
    const cti_jn_token *t = cti_jn_now(c);
    return ++c->depth > JN_MAX_NODE_DEPTH ? JN_SYNTAX(c, t->line, t->col, CT_ERR_RANGE,
                                                      "nested deeper than %d levels", (int)JN_MAX_NODE_DEPTH)
                                          : CT_OK;
}

ct_status cti_jn_node_of_two(cti_jn_compiler *c, cti_jn_node_kind kind, cti_jn_op op, const cti_jn_token *at,
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
