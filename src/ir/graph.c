/* SPDX-License-Identifier: Apache-2.0 */
/* The graph: values and nodes in an arena, their order, scopes and names. */
#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "base/num.h"
#include "base/str.h"
#include "ir/ir.h"

struct ct_graph {
    const ct_alloc *alloc; /* borrows until ct_graph_destroy */
    ct_arena *arena;       /* owns */
    const char *name;      /* arena */

    ct_value **values; /* owns the array; the values are the arena's */
    int32_t n_values, cap_values;
    ct_node **nodes; /* owns the array; the nodes are the arena's */
    int32_t n_nodes, cap_nodes;
    ct_node_id *order; /* owns */
    int32_t n_order, cap_order;

    /* Open addressing over the names of values that have to be unique: id + 1, 0 where free. A power of two
     * long. */
    int32_t *names; /* owns */
    int32_t n_names, cap_names;

    const char **scopes; /* owns the array; scopes[n_scopes - 1] is the current one */
    int32_t n_scopes, cap_scopes;
    ct_program_id program;
};

const char *ct_program_name(ct_program_id program)
{
    static const char *const names[] = {
#define CT_PROGRAM_NAME(NAME, name) #name,
        CT_PROGRAM_LIST(CT_PROGRAM_NAME)
#undef CT_PROGRAM_NAME
    };
    return (unsigned)program < CT_PROGRAM_COUNT ? names[program] : "?";
}

const char *cti_value_kind_name(ct_value_kind kind)
{
    static const char *const names[] = {
#define CT_VALUE_KIND_NAME(NAME, name, sentence) #name,
        CT_VALUE_KIND_LIST(CT_VALUE_KIND_NAME)
#undef CT_VALUE_KIND_NAME
    };
    return (unsigned)kind < CT_VALUE_KIND_COUNT ? names[kind] : "?";
}

/* Makes room for `wanted` items of item_bytes in *array, doubling. */
static ct_status reserve(const ct_alloc *alloc, void **array, int32_t *cap, int64_t wanted, size_t item_bytes,
                         ct_err *err)
{
    if (wanted <= *cap) {
        return CT_OK;
    }
    const int64_t new_cap = cti_max_i64(wanted, cti_max_i64(16, 2 * (int64_t)*cap));
    if (new_cap > INT32_MAX / 2) {
        return CT_FAIL(err, CT_ERR_RANGE, "a graph holds at most %d values and nodes", INT32_MAX / 2);
    }
    void *grown = ct_alloc_resize(alloc, *array, (size_t)new_cap, item_bytes, err);
    if (grown == NULL) {
        return CT_ERR_MEMORY;
    }
    *array = grown;
    *cap = (int32_t)new_cap;
    return CT_OK;
}
#define RESERVE(g, items, wanted, err) \
    reserve((g)->alloc, (void **)&(g)->items, &(g)->cap_##items, (wanted), sizeof *(g)->items, (err))

ct_status ct_graph_create(const ct_alloc *alloc, const char *name, ct_graph **out_graph, ct_err *err)
{
    ct_graph *g = CT_NEW(alloc, ct_graph, err);
    if (g == NULL) {
        return CT_ERR_MEMORY;
    }
    g->alloc = alloc;
    ct_status st = CT_OK;
    CT_TRY_GOTO(st, ct_arena_create(alloc, 0, &g->arena, err), fail);
    g->name = ct_arena_strdup(g->arena, name, err);
    st = g->name == NULL ? CT_ERR_MEMORY : CT_OK;
    CT_TRY_GOTO(st, st, fail);
    CT_TRY_GOTO(st, RESERVE(g, scopes, 1, err), fail);
    g->scopes[0] = "";
    g->n_scopes = 1;
    *out_graph = g;
    return CT_OK;
fail:
    ct_graph_destroy(&g);
    return st;
}

void ct_graph_destroy(ct_graph **graph)
{
    if (graph == NULL || *graph == NULL) {
        return;
    }
    ct_graph *g = *graph;
    const ct_alloc *alloc = g->alloc;
    ct_alloc_free(alloc, g->values);
    ct_alloc_free(alloc, g->nodes);
    ct_alloc_free(alloc, g->order);
    ct_alloc_free(alloc, g->names);
    ct_alloc_free(alloc, g->scopes);
    ct_arena_destroy(&g->arena);
    ct_alloc_free(alloc, g);
    *graph = NULL;
}

const char *ct_graph_name(const ct_graph *graph)
{
    return graph->name;
}
ct_arena *ct_graph_arena(ct_graph *graph)
{
    return graph->arena;
}
const ct_alloc *ct_graph_allocator(const ct_graph *graph)
{
    return graph->alloc;
}
int32_t ct_graph_n_values(const ct_graph *graph)
{
    return graph->n_values;
}
int32_t ct_graph_n_nodes(const ct_graph *graph)
{
    return graph->n_nodes;
}
int32_t ct_graph_order_len(const ct_graph *graph)
{
    return graph->n_order;
}
const ct_node_id *ct_graph_order(const ct_graph *graph)
{
    return graph->order;
}

const ct_value *ct_graph_value_c(const ct_graph *graph, ct_value_id id)
{
    CT_ASSERT(id >= 0 && id < graph->n_values);
    return graph->values[id];
}
ct_value *ct_graph_value(ct_graph *graph, ct_value_id id)
{
    CT_ASSERT(id >= 0 && id < graph->n_values);
    return graph->values[id];
}
const ct_node *ct_graph_node_c(const ct_graph *graph, ct_node_id id)
{
    CT_ASSERT(id >= 0 && id < graph->n_nodes);
    return graph->nodes[id];
}
ct_node *ct_graph_node(ct_graph *graph, ct_node_id id)
{
    CT_ASSERT(id >= 0 && id < graph->n_nodes);
    return graph->nodes[id];
}

int64_t ct_value_numel(const ct_value *value)
{
    return cti_dims_product(value->dims, value->ndim);
}
size_t ct_value_size_bytes(const ct_value *value)
{
    return (size_t)ct_value_numel(value) * ct_dtype_size_bytes(value->dtype);
}

bool cti_same_dims(const ct_value *a, const ct_value *b)
{
    return a->ndim == b->ndim && memcmp(a->dims, b->dims, (size_t)a->ndim * sizeof a->dims[0]) == 0;
}

/* The slot of a name in the table of unique names: its own, or the free one where it would go. cap_names > 0.
 */
static int32_t name_slot(const ct_graph *g, const char *name)
{
    const uint32_t mask = (uint32_t)g->cap_names - 1;
    uint32_t slot = (uint32_t)cti_hash64(name, strlen(name), 0) & mask;
    while (g->names[slot] != 0 && strcmp(g->values[g->names[slot] - 1]->name, name) != 0) {
        slot = (slot + 1) & mask;
    }
    return (int32_t)slot;
}

/* Doubles the table of names where it is half full. */
static ct_status names_grow(ct_graph *g, ct_err *err)
{
    if (2 * (g->n_names + 1) <= g->cap_names) {
        return CT_OK;
    }
    const int32_t old_cap = g->cap_names;
    int32_t *old = g->names;
    const int32_t new_cap = old_cap == 0 ? 64 : 2 * old_cap;
    int32_t *fresh = CT_NEW_ARRAY(g->alloc, int32_t, new_cap, err);
    if (fresh == NULL) {
        return CT_ERR_MEMORY;
    }
    g->names = fresh;
    g->cap_names = new_cap;
    for (int32_t i = 0; i < old_cap; i++) {
        if (old[i] != 0) {
            g->names[name_slot(g, g->values[old[i] - 1]->name)] = old[i];
        }
    }
    ct_alloc_free(g->alloc, old);
    return CT_OK;
}

ct_value_id ct_graph_find(const ct_graph *graph, const char *value_name)
{
    if (value_name[0] == '\0') {
        return CT_NO_VALUE;
    }
    if (graph->cap_names > 0) {
        const int32_t hit = graph->names[name_slot(graph, value_name)];
        if (hit != 0) {
            return hit - 1;
        }
    }
    /* Names of activations, and names that a pass set later, are not in the table. */
    for (int32_t i = 0; i < graph->n_values; i++) {
        if (strcmp(graph->values[i]->name, value_name) == 0) {
            return i;
        }
    }
    return CT_NO_VALUE;
}

static ct_status check_spec(const ct_value_spec *spec, ct_err *err)
{
    const char *name = spec->name == NULL ? "" : spec->name;
    if ((unsigned)spec->dtype >= CT_DTYPE_COUNT) {
        return CT_FAIL(err, CT_ERR_SHAPE, "value '%s': %d is no dtype", name, (int)spec->dtype);
    }
    if (spec->ndim < 0 || spec->ndim > CT_MAX_NDIM) {
        return CT_FAIL(err, CT_ERR_SHAPE, "value '%s': %d dims; a tensor has 0 to %d", name, (int)spec->ndim,
                       CT_MAX_NDIM);
    }
    for (int32_t i = 0; i < spec->ndim; i++) {
        if (spec->dims[i] < 0) {
            return CT_FAIL(err, CT_ERR_SHAPE, "value '%s': dim %d is %" PRId64 ", less than 0", name, (int)i,
                           spec->dims[i]);
        }
    }
    const int64_t numel = cti_dims_product(spec->dims, spec->ndim);
    int64_t bytes;
    if (numel < 0 || !cti_mul_i64(numel, (int64_t)ct_dtype_size_bytes(spec->dtype), &bytes)) {
        return CT_FAIL(err, CT_ERR_SHAPE, "value '%s': its size does not fit into 63 bits", name);
    }
    return CT_OK;
}

/* A new value in the arena, not yet in the graph; NULL where memory ran out. */
static ct_value *new_value(ct_graph *g, const ct_value_spec *spec, ct_value_kind kind, ct_node_id producer,
                           ct_err *err)
{
    ct_value *v = ct_arena_alloc(g->arena, sizeof *v, err);
    if (v == NULL) {
        return NULL;
    }
    *v = (ct_value){.name = "",
                    .dtype = spec->dtype,
                    .ndim = spec->ndim,
                    .kind = kind,
                    .producer = producer,
                    .alias_of = CT_NO_VALUE};
    memcpy(v->dims, spec->dims, (size_t)spec->ndim * sizeof v->dims[0]);
    if (spec->name != NULL && spec->name[0] != '\0') {
        v->name = ct_arena_strdup(g->arena, spec->name, err);
        return v->name == NULL ? NULL : v;
    }
    return v;
}

ct_status ct_graph_add_value(ct_graph *graph, const ct_value_spec *spec, ct_value_id *out_id, ct_err *err)
{
    ct_graph *g = graph;
    CT_TRY(check_spec(spec, err));
    const bool is_act = spec->kind == CT_VALUE_ACT;
    if ((unsigned)spec->kind >= CT_VALUE_KIND_COUNT) {
        return CT_FAIL(err, CT_ERR_RANGE, "value '%s': %d is no kind of value",
                       spec->name == NULL ? "" : spec->name, (int)spec->kind);
    }
    if (!is_act && (spec->name == NULL || spec->name[0] == '\0')) {
        return CT_FAIL(err, CT_ERR_RANGE, "a value of kind '%s' needs a name",
                       cti_value_kind_name(spec->kind));
    }
    CT_TRY(RESERVE(g, values, (int64_t)g->n_values + 1, err));
    if (!is_act) {
        CT_TRY(names_grow(g, err));
        if (g->names[name_slot(g, spec->name)] != 0) {
            return CT_FAIL(err, CT_ERR_RANGE, "graph '%s' has a value '%s' already", g->name, spec->name);
        }
    }
    ct_value *v = new_value(g, spec, spec->kind, -1, err);
    if (v == NULL) {
        return CT_ERR_MEMORY;
    }
    g->values[g->n_values] = v;
    g->n_values++;
    if (!is_act) {
        g->names[name_slot(g, v->name)] = g->n_values; /* id + 1 */
        g->n_names++;
    }
    *out_id = g->n_values - 1;
    return CT_OK;
}

/* The node with its arrays, in the arena; inputs and attributes filled. NULL where memory ran out. */
static ct_node *new_node(ct_graph *g, int32_t op, const void *attrs, size_t attrs_bytes,
                         const ct_value_id *in, int32_t n_in, int32_t n_out, ct_err *err)
{
    ct_node *node = ct_arena_alloc(g->arena, sizeof *node, err);
    ct_value_id *ids = ct_arena_alloc(g->arena, ((size_t)n_in + (size_t)n_out) * sizeof *ids, err);
    void *copy = attrs_bytes == 0 ? NULL : ct_arena_alloc(g->arena, attrs_bytes, err);
    if (node == NULL || ids == NULL || (attrs_bytes > 0 && copy == NULL)) {
        return NULL;
    }
    *node = (ct_node){.op = op,
                      .attrs = copy,
                      .n_in = n_in,
                      .n_out = n_out,
                      .in = ids,
                      .out = ids + n_in,
                      .scope = ct_graph_scope(g),
                      .program = (uint8_t)g->program};
    if (n_in > 0) {
        memcpy(node->in, in, (size_t)n_in * sizeof *in);
    }
    if (attrs_bytes > 0) {
        memcpy(copy, attrs, attrs_bytes);
    }
    return node;
}

ct_status ct_graph_add_node(ct_graph *graph, int32_t op, const void *attrs, size_t attrs_bytes,
                            const ct_value_id *in, int32_t n_in, const ct_value_spec *out_specs,
                            int32_t n_out, ct_node_id *out_node, ct_err *err)
{
    ct_graph *g = graph;
    CT_ASSERT(op >= 0 && n_in >= 0 && n_out >= 0 && (attrs_bytes == 0 || attrs != NULL));
    for (int32_t i = 0; i < n_in; i++) {
        if (in[i] < CT_NO_VALUE || in[i] >= g->n_values) {
            return CT_FAIL(err, CT_ERR_RANGE, "input %d of a new node is value %d; graph '%s' has %d values",
                           (int)i, (int)in[i], g->name, (int)g->n_values);
        }
    }
    for (int32_t i = 0; i < n_out; i++) {
        CT_TRY(check_spec(&out_specs[i], err));
    }
    CT_TRY(RESERVE(g, values, (int64_t)g->n_values + n_out, err));
    CT_TRY(RESERVE(g, nodes, (int64_t)g->n_nodes + 1, err));
    CT_TRY(RESERVE(g, order, (int64_t)g->n_order + 1, err));
    ct_node *node = new_node(g, op, attrs, attrs_bytes, in, n_in, n_out, err);
    if (node == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int32_t i = 0; i < n_out; i++) {
        ct_value *v = new_value(g, &out_specs[i], CT_VALUE_ACT, g->n_nodes, err);
        if (v == NULL) {
            return CT_ERR_MEMORY; /* slots beyond n_values are nobody's */
        }
        g->values[g->n_values + i] = v;
        node->out[i] = g->n_values + i;
    }
    g->n_values += n_out;
    g->nodes[g->n_nodes] = node;
    g->order[g->n_order] = g->n_nodes;
    g->n_order++;
    *out_node = g->n_nodes++;
    return CT_OK;
}

ct_status ct_graph_set_order(ct_graph *graph, const ct_node_id *ids, int32_t n, ct_err *err)
{
    ct_graph *g = graph;
    CT_TRY(RESERVE(g, order, n, err));
    bool *is_seen = CT_NEW_ARRAY(g->alloc, bool, g->n_nodes, err);
    if (is_seen == NULL) {
        return CT_ERR_MEMORY;
    }
    ct_status st = CT_OK;
    for (int32_t i = 0; i < n && st == CT_OK; i++) {
        if (ids[i] < 0 || ids[i] >= g->n_nodes) {
            st = CT_FAIL(err, CT_ERR_RANGE, "order: node %d at %d; graph '%s' has %d nodes", (int)ids[i],
                         (int)i, g->name, (int)g->n_nodes);
        } else if (is_seen[ids[i]]) {
            st = CT_FAIL(err, CT_ERR_RANGE, "order: node %d comes twice", (int)ids[i]);
        } else {
            is_seen[ids[i]] = true;
        }
    }
    ct_alloc_free(g->alloc, is_seen);
    CT_TRY(st);
    if (n > 0) {
        memmove(g->order, ids, (size_t)n * sizeof *ids);
    }
    g->n_order = n;
    return CT_OK;
}

ct_status ct_graph_push_scope(ct_graph *graph, const char *name, ct_err *err)
{
    ct_graph *g = graph;
    CT_TRY(RESERVE(g, scopes, (int64_t)g->n_scopes + 1, err));
    const char *now = ct_graph_scope(g);
    const char *scope = now[0] == '\0' ? ct_arena_strdup(g->arena, name, err)
                                       : ct_arena_printf(g->arena, err, "%s.%s", now, name);
    if (scope == NULL) {
        return CT_ERR_MEMORY;
    }
    g->scopes[g->n_scopes++] = scope;
    return CT_OK;
}

void ct_graph_pop_scope(ct_graph *graph)
{
    CT_ASSERT(graph->n_scopes > 1);
    graph->n_scopes--;
}

const char *ct_graph_scope(const ct_graph *graph)
{
    return graph->scopes[graph->n_scopes - 1];
}

ct_status ct_graph_set_scope(ct_graph *graph, const char *scope, ct_err *err)
{
    const char **top = &graph->scopes[graph->n_scopes - 1];
    if (*top == scope || strcmp(*top, scope) == 0) {
        return CT_OK;
    }
    const char *copy = ct_arena_strdup(graph->arena, scope, err);
    if (copy == NULL) {
        return CT_ERR_MEMORY;
    }
    *top = copy;
    return CT_OK;
}

void ct_graph_set_program(ct_graph *graph, ct_program_id program)
{
    CT_ASSERT((unsigned)program < CT_PROGRAM_COUNT);
    graph->program = program;
}

ct_program_id cti_graph_program(const ct_graph *graph)
{
    return graph->program;
}

void ct_graph_replace_uses(ct_graph *graph, ct_value_id from, ct_value_id to, int32_t from_pos)
{
    for (int32_t pos = from_pos < 0 ? 0 : from_pos + 1; pos < graph->n_order; pos++) {
        ct_node *node = graph->nodes[graph->order[pos]];
        bool redirected = false;
        for (int32_t i = 0; i < node->n_in; i++) {
            if (node->in[i] == from) {
                node->in[i] = to;
                redirected = true;
            }
        }
        for (int32_t o = 0; o < node->n_out && redirected; o++) { /* views of the old value are views of the new one */
            ct_value *v = ct_graph_value(graph, node->out[o]);
            v->alias_of = v->alias_of == from ? to : v->alias_of;
        }
    }
}
