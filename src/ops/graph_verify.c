/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier. One walk over the order proves:
 *   - every value read has no producer, or is made by a node earlier in the order (SSA, no dead producers);
 *   - every value is made once, by the node that it names; the order is by program;
 *   - arity, dims and dtypes are what the op's row says, and so are aliases;
 *   - nothing reads memory that an update has overwritten since the value was made;
 *   - what a node of stream 1 makes is read, and what it reads or makes is overwritten, only after a wait for it;
 *   - constants are never overwritten;
 *   - names of values that are not activations are there and unique. */
#include <inttypes.h>
#include <string.h>

#include "ops/op_check.h"

/* An update wrote elements [begin, end) of a value's memory at a position of the order. */
typedef struct overwrite {
    int32_t pos;
    int64_t begin, end;
    int32_t next; /* index of the one before it on the same memory; -1: none */
} overwrite;

typedef struct place {
    ct_value_id root; /* owns the memory */
    int64_t begin;    /* first element in root */
    int32_t pos;      /* of the node that made the value; -1: none */
    int32_t last;     /* of roots: the latest overwrite; -1: none */
    bool is_made;     /* defined at this point of the walk */
    int32_t written, touched; /* of roots: the last node of stream 1 that makes it, that reads or makes it; as n_started counts */
} place;

typedef struct verify {
    const ct_graph *graph;
    place *places;         /* owns: one per value */
    overwrite *overwrites; /* owns: room for one per output of an update */
    int32_t n_overwrites;
    ct_value_spec *specs; /* owns: CTI_OP_MAX_IN */
    uint8_t *programs;    /* owns: program of each position */
    int32_t n_started, n_waited; /* nodes of stream 1 so far, and those known to have ended */
    int32_t n_before;            /* those of earlier programs */
    ct_err *err;
} verify;

/* "%12 'name'" for messages. */
static const char *label(const verify *v, ct_value_id id, char buf[160])
{
    const char *name = ct_graph_value_c(v->graph, id)->name;
    (void)snprintf(buf, 160, name[0] == '\0' ? "%%%d" : "%%%d '%.120s'", (int)id, name);
    return buf;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const ct_value *const *)a)->name, (*(const ct_value *const *)b)->name);
}

static ct_status check_names(const verify *v)
{
    const int32_t n = ct_graph_n_values(v->graph);
    const ct_alloc *alloc = ct_graph_allocator(v->graph);
    const ct_value **named = CT_NEW_ARRAY(alloc, const ct_value *, n, v->err);
    if (named == NULL) {
        return CT_ERR_MEMORY;
    }
    ct_status st = CT_OK;
    size_t n_named = 0;
    for (int32_t i = 0; i < n && st == CT_OK; i++) {
        const ct_value *value = ct_graph_value_c(v->graph, i);
        if (value->kind == CT_VALUE_ACT) {
            continue;
        }
        named[n_named++] = value;
        if (value->name[0] == '\0') {
            st = CT_FAIL(v->err, CT_ERR_STATE, "value %%%d of kind '%s' has no name", (int)i,
                         cti_value_kind_name(value->kind));
        }
    }
    qsort(named, n_named, sizeof *named, by_name);
    for (size_t i = 1; i < n_named && st == CT_OK; i++) {
        if (strcmp(named[i - 1]->name, named[i]->name) == 0) {
            st = CT_FAIL(v->err, CT_ERR_STATE, "two values have the name '%s'", named[i]->name);
        }
    }
    ct_alloc_free(alloc, named);
    return st;
}

/* Values without a producer own their memory and are there from the start. */
static ct_status check_sources(const verify *v)
{
    char buf[160];
    for (int32_t i = 0; i < ct_graph_n_values(v->graph); i++) {
        const ct_value *value = ct_graph_value_c(v->graph, i);
        if ((unsigned)value->kind >= CT_VALUE_KIND_COUNT || (unsigned)value->dtype >= CT_DTYPE_COUNT) {
            return CT_FAIL(v->err, CT_ERR_STATE, "value %s: its kind or dtype is out of range",
                           label(v, i, buf));
        }
        v->places[i] = (place){.root = i, .pos = -1, .last = -1, .is_made = value->producer < 0};
        if (value->producer >= 0) {
            continue;
        }
        if (value->alias_of != CT_NO_VALUE) {
            return CT_FAIL(v->err, CT_ERR_STATE, "value %s has no producer but aliases %%%d",
                           label(v, i, buf), (int)value->alias_of);
        }
        if (value->kind == CT_VALUE_ACT) {
            return CT_FAIL(v->err, CT_ERR_STATE, "value %s is an activation that no node makes",
                           label(v, i, buf));
        }
    }
    return CT_OK;
}

/* Is the memory of `id` as it was when the value was made, for a reader at `pos`? An update in an earlier
 * program does not spoil a persistent value: a program reads what the one before it left there. */
static ct_status check_fresh(const verify *v, ct_value_id id, int32_t pos)
{
    const place *p = &v->places[id];
    const int64_t end = p->begin + ct_value_numel(ct_graph_value_c(v->graph, id));
    for (int32_t w = v->places[p->root].last; w >= 0; w = v->overwrites[w].next) {
        const overwrite *o = &v->overwrites[w];
        const bool is_source = p->pos < 0;
        if (o->pos <= p->pos || o->pos >= pos || o->end <= p->begin || end <= o->begin) {
            continue;
        }
        if (is_source && v->programs[o->pos] != v->programs[pos]) {
            continue;
        }
        char buf[160];
        return CT_FAIL(v->err, CT_ERR_STATE, "reads %s after node %d overwrote it", label(v, id, buf),
                       (int)ct_graph_order(v->graph)[o->pos]);
    }
    return CT_OK;
}

static ct_status check_inputs(const verify *v, const ct_node *node, int32_t pos)
{
    char buf[160];
    for (int32_t i = 0; i < node->n_in; i++) {
        const ct_value_id id = node->in[i];
        if (id == CT_NO_VALUE) {
            continue; /* cti_op_infer says whether it may be absent */
        }
        if (id < 0 || id >= ct_graph_n_values(v->graph)) {
            return CT_FAIL(v->err, CT_ERR_STATE, "input %d is value %d, which does not exist", (int)i,
                           (int)id);
        }
        if (!v->places[id].is_made) {
            return CT_FAIL(v->err, CT_ERR_STATE, "reads %s, which no earlier node of the order makes",
                           label(v, id, buf));
        }
        CT_TRY(check_fresh(v, id, pos));
    }
    return CT_OK;
}

/* An output: who makes it, its shape, its alias; then it is made. */
static ct_status check_output(verify *v, const ct_op *op, ct_node_id node_id, int32_t out, int32_t pos)
{
    const ct_node *node = ct_graph_node_c(v->graph, node_id);
    const ct_value_id id = node->out[out];
    char buf[160], have[96], want[96];
    if (id < 0 || id >= ct_graph_n_values(v->graph)) {
        return CT_FAIL(v->err, CT_ERR_STATE, "output %d is value %d, which does not exist", (int)out,
                       (int)id);
    }
    const ct_value *value = ct_graph_value_c(v->graph, id);
    if (value->producer != node_id || v->places[id].is_made) {
        return CT_FAIL(v->err, CT_ERR_STATE, "makes %s, which node %d makes", label(v, id, buf),
                       (int)value->producer);
    }
    const ct_value_spec *spec = &v->specs[out];
    const ct_value wanted = {
        .dtype = spec->dtype,
        .ndim = spec->ndim,
        .dims = {spec->dims[0], spec->dims[1], spec->dims[2], spec->dims[3], spec->dims[4], spec->dims[5]}};
    if (value->dtype != spec->dtype || !cti_same_dims(&wanted, value)) {
        cti_value_text(value, have, sizeof have);
        cti_value_text(&wanted, want, sizeof want);
        return CT_FAIL(v->err, CT_ERR_STATE, "output %s is %s; its op makes %s", label(v, id, buf), have,
                       want);
    }
    int64_t offset;
    const int32_t from = ct_op_alias(op, node->attrs, out, &offset);
    const ct_value_id of = from < 0 ? CT_NO_VALUE : node->in[from];
    if (value->alias_of != of || value->alias_offset != offset) {
        return CT_FAIL(v->err, CT_ERR_STATE,
                       "output %s aliases %%%d at %" PRId64 "; its op wants %%%d at %" PRId64,
                       label(v, id, buf), (int)value->alias_of, value->alias_offset, (int)of, offset);
    }
    v->places[id].is_made = true;
    v->places[id].pos = pos;
    if (of != CT_NO_VALUE) {
        v->places[id].root = v->places[of].root;
        v->places[id].begin = v->places[of].begin + offset;
    }
    return CT_OK;
}

/* What an update writes over. */
static ct_status note_overwrites(verify *v, const ct_node *node, int32_t pos)
{
    for (int32_t i = 0; i < node->n_out; i++) {
        const place *p = &v->places[node->out[i]];
        const ct_value *root = ct_graph_value_c(v->graph, p->root);
        if (root->kind == CT_VALUE_CONST) {
            return CT_FAIL(v->err, CT_ERR_STATE, "overwrites the constant '%s'", root->name);
        }
        const int64_t end = p->begin + ct_value_numel(ct_graph_value_c(v->graph, node->out[i]));
        v->overwrites[v->n_overwrites] = (overwrite){pos, p->begin, end, v->places[p->root].last};
        v->places[p->root].last = v->n_overwrites++;
    }
    return CT_OK;
}

static void note_started(verify *v, const ct_node *node)
{
    v->n_started++;
    for (int32_t i = 0; i < node->n_in + node->n_out; i++) {
        const ct_value_id id = i < node->n_in ? node->in[i] : node->out[i - node->n_in];
        if (id != CT_NO_VALUE) {
            place *root = &v->places[v->places[id].root];
            root->touched = v->n_started;
            root->written = i < node->n_in ? root->written : v->n_started;
        }
    }
}

/* Nodes of stream 1 run in their order beside those of stream 0; a program ends when both have. */
static ct_status check_streams(verify *v, const ct_op *op, const ct_node *node, int32_t pos)
{
    char buf[160];
    if (pos > 0 && node->program != v->programs[pos - 1]) {
        v->n_before = v->n_waited = v->n_started;
    }
    if (node->wait < 0 || node->wait > v->n_started - v->n_before) {
        return CT_FAIL(v->err, CT_ERR_STATE, "waits for %d nodes of stream 1; %d have begun", (int)node->wait,
                       (int)(v->n_started - v->n_before));
    }
    const int32_t waited = v->n_before + node->wait;
    v->n_waited = waited > v->n_waited ? waited : v->n_waited;
    if (node->stream != 0) {
        note_started(v, node);
        return CT_OK;
    }
    for (int32_t i = 0; i < node->n_in && (op->flags & CT_OP_VIEW) == 0; i++) {
        if (node->in[i] != CT_NO_VALUE && v->places[v->places[node->in[i]].root].written > v->n_waited) {
            return CT_FAIL(v->err, CT_ERR_STATE, "reads %s, which stream 1 may not have made yet", label(v, node->in[i], buf));
        }
    }
    for (int32_t i = 0; i < node->n_out && (op->flags & CT_OP_UPDATE) != 0; i++) {
        if (v->places[v->places[node->out[i]].root].touched > v->n_waited) {
            return CT_FAIL(v->err, CT_ERR_STATE, "overwrites %s, which stream 1 may still use", label(v, node->out[i], buf));
        }
    }
    return CT_OK;
}

static ct_status check_node(verify *v, int32_t pos)
{
    const ct_node_id id = ct_graph_order(v->graph)[pos];
    const ct_node *node = ct_graph_node_c(v->graph, id);
    const ct_op *op = ct_op_row(node->op);
    if (op == NULL) {
        return CT_FAIL(v->err, CT_ERR_STATE, "%d is no op's id", (int)node->op);
    }
    if (op->attrs_bytes > 0 && node->attrs == NULL) {
        return CT_FAIL(v->err, CT_ERR_STATE, "has no attributes");
    }
    if (node->program >= CT_PROGRAM_COUNT || (pos > 0 && node->program < v->programs[pos - 1])) {
        return CT_FAIL(v->err, CT_ERR_STATE,
                       "of program '%s' comes after one of '%s'; the order is by program",
                       ct_program_name(node->program), pos > 0 ? ct_program_name(v->programs[pos - 1]) : "");
    }
    v->programs[pos] = node->program;
    CT_TRY(check_inputs(v, node, pos));
    const int32_t n_out = ct_op_n_out(op, node->attrs);
    if (n_out != node->n_out || n_out > CTI_OP_MAX_IN) {
        return CT_FAIL(v->err, CT_ERR_STATE, "has %d outputs; its op makes %d", (int)node->n_out, (int)n_out);
    }
    ct_err why = {0};
    const ct_status st = cti_op_infer(v->graph, op, node->attrs, node->in, node->n_in, v->specs, &why);
    if (st != CT_OK) {
        return st == CT_ERR_MEMORY ? CT_FAIL(v->err, st, "%s", why.message)
                                   : CT_FAIL(v->err, CT_ERR_STATE, "%s", why.message);
    }
    for (int32_t i = 0; i < n_out; i++) {
        CT_TRY(check_output(v, op, id, i, pos));
    }
    CT_TRY(check_streams(v, op, node, pos));
    return (op->flags & CT_OP_UPDATE) != 0 ? note_overwrites(v, node, pos) : CT_OK;
}

static ct_status walk(verify *v)
{
    CT_TRY(check_sources(v));
    CT_TRY(check_names(v));
    for (int32_t pos = 0; pos < ct_graph_order_len(v->graph); pos++) {
        const ct_status st = check_node(v, pos);
        if (st != CT_OK) {
            const ct_node_id id = ct_graph_order(v->graph)[pos];
            const ct_node *node = ct_graph_node_c(v->graph, id);
            const ct_op *op = ct_op_row(node->op);
            ct_err_prefix(v->err, "node %d (%s) in '%s'", (int)id, op == NULL ? "?" : op->name, node->scope);
            return st;
        }
    }
    return CT_OK;
}

ct_status ct_graph_verify(const ct_graph *graph, ct_err *err)
{
    const ct_alloc *alloc = ct_graph_allocator(graph);
    verify v = {.graph = graph, .err = err};
    v.places = CT_NEW_ARRAY(alloc, place, ct_graph_n_values(graph), err);
    v.overwrites = CT_NEW_ARRAY(alloc, overwrite, ct_graph_n_values(graph), err);
    v.specs = CT_NEW_ARRAY(alloc, ct_value_spec, CTI_OP_MAX_IN, err);
    v.programs = CT_NEW_ARRAY(alloc, uint8_t, ct_graph_order_len(graph), err);
    ct_status st = CT_ERR_MEMORY;
    if (v.places != NULL && v.overwrites != NULL && v.specs != NULL && v.programs != NULL) {
        st = walk(&v);
        if (st != CT_OK) {
            ct_err_prefix(err, "graph '%s'", ct_graph_name(graph));
        }
    }
    ct_alloc_free(alloc, v.places);
    ct_alloc_free(alloc, v.overwrites);
    ct_alloc_free(alloc, v.specs);
    ct_alloc_free(alloc, v.programs);
    return st;
}
