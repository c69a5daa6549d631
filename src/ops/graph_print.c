/* SPDX-License-Identifier: Apache-2.0 */
/* The text form of a graph: every value in order of id, the live nodes in execution order, then the dead
 * ones. The format is docs/formats/graph.md; graph_parse.c reads it. */
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "ops/ops.h"

/* "text" with \" \\ and \xNN for what is not printable ASCII or UTF-8. */
static void add_quoted(cti_str *s, const char *text)
{
    cti_str_add_char(s, '"');
    for (const char *p = text; *p != '\0'; p++) {
        const unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\') {
            cti_str_add_char(s, '\\');
            cti_str_add_char(s, *p);
        } else if (c < 0x20 || c == 0x7f) {
            cti_str_printf(s, "\\x%02x", c);
        } else {
            cti_str_add_char(s, *p);
        }
    }
    cti_str_add_char(s, '"');
}

static void add_placements(cti_str *s, const ct_value *v)
{
    static const char letters[] = {[CT_PLACE_REPLICATE] = 'R',
                                   [CT_PLACE_OWING] = 'O',
                                   [CT_PLACE_SHARD] = 'S',
                                   [CT_PLACE_PARTIAL] = 'P',
                                   [CT_PLACE_FLAT] = 'F'};
    bool is_plain = true;
    for (int i = 0; i < CT_MAX_AXES; i++) {
        is_plain = is_plain && v->placement[i].kind == CT_PLACE_REPLICATE && v->placement[i].dim == 0 && v->placement[i].parts == 0;
    }
    if (is_plain) {
        return;
    }
    cti_str_add(s, " place [");
    for (int i = 0; i < CT_MAX_AXES; i++) {
        const ct_placement p = v->placement[i];
        cti_str_printf(s, "%s%c", i == 0 ? "" : " ", p.kind < sizeof letters ? letters[p.kind] : '?');
        if (p.kind == CT_PLACE_SHARD || p.dim != 0) {
            cti_str_printf(s, "%d", p.dim);
        }
        if (p.parts != 0) {
            cti_str_printf(s, "/%d", p.parts);
        }
    }
    cti_str_add_char(s, ']');
}

static void add_value(cti_str *s, const ct_graph *g, ct_value_id id)
{
    const ct_value *v = ct_graph_value_c(g, id);
    cti_str_printf(s, "%%%d %s %s [", (int)id, cti_value_kind_name(v->kind), ct_dtype_name(v->dtype));
    for (int32_t i = 0; i < v->ndim; i++) {
        cti_str_printf(s, "%s%" PRId64, i == 0 ? "" : " ", v->dims[i]);
    }
    cti_str_add_char(s, ']');
    if (v->name[0] != '\0') {
        cti_str_add_char(s, ' ');
        add_quoted(s, v->name);
    }
    add_placements(s, v);
    if (v->alias_of != CT_NO_VALUE) {
        cti_str_printf(s, " alias %%%d %" PRId64, (int)v->alias_of, v->alias_offset);
    }
    cti_str_add_char(s, '\n');
}

static void add_ids(cti_str *s, const ct_value_id *ids, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        if (ids[i] == CT_NO_VALUE) {
            cti_str_add(s, i == 0 ? "_" : ", _");
        } else {
            cti_str_printf(s, "%s%%%d", i == 0 ? "" : ", ", (int)ids[i]);
        }
    }
}

static ct_status add_attrs(cti_str *s, const ct_op *op, const void *attrs, ct_arena *scratch, ct_err *err)
{
    for (int32_t i = 0; i < op->n_attr_fields; i++) {
        const ct_field *field = &op->attr_fields[i];
        const char *text = ct_field_text(field, attrs, scratch, err);
        if (text == NULL) {
            return CT_ERR_MEMORY;
        }
        cti_str_printf(s, "%s%s=", i == 0 ? " {" : ", ", field->name);
        const bool is_bare =
            text[0] != '\0' &&
            strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-._") ==
                strlen(text);
        if (is_bare) {
            cti_str_add(s, text);
        } else {
            add_quoted(s, text);
        }
    }
    if (op->n_attr_fields > 0) {
        cti_str_add_char(s, '}');
    }
    return CT_OK;
}

static ct_status add_node(cti_str *s, const ct_graph *g, ct_node_id id, bool is_dead, ct_arena *scratch,
                          ct_err *err)
{
    const ct_node *node = ct_graph_node_c(g, id);
    const ct_op *op = ct_op_row(node->op);
    if (op == NULL) {
        return CT_FAIL(err, CT_ERR_STATE, "node %d of graph '%s': %d is no op's id", (int)id,
                       ct_graph_name(g), (int)node->op);
    }
    if (op->attrs_bytes > 0 && node->attrs == NULL) {
        return CT_FAIL(err, CT_ERR_STATE, "node %d (%s) of graph '%s' has no attributes", (int)id, op->name,
                       ct_graph_name(g));
    }
    cti_str_printf(s, "%s#%d ", is_dead ? "dead " : "", (int)id);
    add_ids(s, node->out, node->n_out);
    cti_str_printf(s, " = %s(", op->name);
    add_ids(s, node->in, node->n_in);
    cti_str_add_char(s, ')');
    CT_TRY(add_attrs(s, op, node->attrs, scratch, err));
    cti_str_printf(s, " %s", ct_program_name(node->program));
    if (node->scope[0] != '\0') {
        cti_str_add_char(s, ' ');
        add_quoted(s, node->scope);
    }
    if (node->stream != 0) {
        cti_str_printf(s, " stream %d", (int)node->stream);
    }
    if (node->wait != 0) {
        cti_str_printf(s, " wait %d", (int)node->wait);
    }
    cti_str_add(s, node->is_recompute ? " recompute\n" : "\n");
    return CT_OK;
}

static ct_status add_graph(cti_str *s, const ct_graph *g, bool *is_live, ct_arena *scratch, ct_err *err)
{
    cti_str_add(s, CTI_GRAPH_TEXT_HEAD "\n");
    for (int32_t i = 0; i < ct_graph_n_values(g); i++) {
        add_value(s, g, i);
    }
    for (int32_t i = 0; i < ct_graph_order_len(g); i++) {
        const ct_node_id id = ct_graph_order(g)[i];
        is_live[id] = true;
        CT_TRY(add_node(s, g, id, false, scratch, err));
        ct_arena_reset(scratch);
    }
    for (int32_t i = 0; i < ct_graph_n_nodes(g); i++) {
        if (!is_live[i]) {
            CT_TRY(add_node(s, g, i, true, scratch, err));
            ct_arena_reset(scratch);
        }
    }
    return cti_str_check(s, err);
}

ct_status ct_graph_print(const ct_graph *graph, const ct_alloc *alloc, char **out_text, ct_err *err)
{
    cti_str s = {.alloc = alloc};
    ct_arena *scratch = NULL;
    bool *is_live = CT_NEW_ARRAY(alloc, bool, ct_graph_n_nodes(graph), err);
    ct_status st = is_live == NULL ? CT_ERR_MEMORY : ct_arena_create(alloc, 0, &scratch, err);
    CT_TRY_GOTO(st, st, out);
    CT_TRY_GOTO(st, add_graph(&s, graph, is_live, scratch, err), out);
    *out_text = s.data;
    s.data = NULL;
out:
    cti_str_deinit(&s);
    ct_arena_destroy(&scratch);
    ct_alloc_free(alloc, is_live);
    return st;
}
