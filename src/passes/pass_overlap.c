/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of Flat groups beside the computation (part of the schedule; docs/design/overlap.md).
 *
 * Nodes of a group (scope "flat.<group>") are of two sides: the gather, which depends on parameters alone, and the reduction of gradients.
 * Groups of one block ("layers.3", "layers.3.whole") are a batch. Within each program
 *   - gathers of batch k + 1 stand where batch k was first needed, those of the first batch at the program's begin: while a block computes,
 *     the next one's parameters come, and never more than two blocks' are there;
 *   - a batch's reductions run while the next block computes; that batch's own wait for them, so that never more than two blocks' whole
 *     gradients are there.
 * What nothing would run beside stays in line. */
#include <string.h>

#include "passes/passes_internal.h"

typedef struct overlap {
    ct_graph *g;
    uint8_t *is_gathered; /* per value: comes of parameters by nodes of groups alone */
    ct_node_id *order;    /* the new one */
    int32_t n;
    int32_t *made, *used; /* per value that has memory of its own: the last node of stream 1 that makes it, that reads or makes it */
} overlap;

/* Length of the batch's name in the scope of a group's node: "flat.layers.3" of "flat.layers.3.whole"; 0: no group's. */
static size_t batch_len(const char *scope)
{
    if (strncmp(scope, "flat.", 5) != 0) {
        return 0;
    }
    const char *from = strncmp(scope + 5, "layers.", 7) == 0 ? scope + 12 : scope + 5, *dot = strchr(from, '.');
    return dot != NULL ? (size_t)(dot - scope) : strlen(scope);
}

static bool same_batch(const ct_node *a, const ct_node *b)
{
    const size_t n = batch_len(a->scope);
    return n == batch_len(b->scope) && strncmp(a->scope, b->scope, n) == 0;
}

static bool is_collective(const ct_node *node)
{
    return (ct_op_row(node->op)->flags & CT_OP_COLLECTIVE) != 0;
}

static bool is_kernel(const ct_node *node)
{
    return node->stream == 0 && (ct_op_row(node->op)->flags & CT_OP_VIEW) == 0;
}

static const ct_node *at(const overlap *o, int32_t position)
{
    return ct_graph_node_c(o->g, ct_graph_order(o->g)[position]);
}

static bool is_gather_side(const overlap *o, const ct_node *node)
{
    return node->n_out > 0 && o->is_gathered[node->out[0]];
}

/* Values that come of parameters by nodes of groups alone. */
static void mark_gathered(overlap *o)
{
    for (int32_t v = 0; v < ct_graph_n_values(o->g); v++) {
        const ct_value *value = ct_graph_value_c(o->g, v);
        o->is_gathered[v] = value->producer < 0 && value->kind == CT_VALUE_PARAM;
    }
    for (int32_t i = 0; i < ct_graph_order_len(o->g); i++) {
        const ct_node *node = at(o, i);
        bool all = batch_len(node->scope) > 0;
        for (int32_t k = 0; k < node->n_in; k++) {
            all = all && node->in[k] != CT_NO_VALUE && o->is_gathered[node->in[k]];
        }
        for (int32_t k = 0; k < node->n_out; k++) {
            o->is_gathered[node->out[k]] = all;
        }
    }
}

/* From `position` on within [.., end), the first node of the gather side of another batch than `than` (NULL: of any), if that batch has a
 * collective; `end`: there is none. */
static int32_t next_batch(const overlap *o, int32_t position, int32_t end, const ct_node *than)
{
    for (int32_t i = position; i < end; i++) {
        const ct_node *first = at(o, i);
        if (!is_gather_side(o, first) || (than != NULL && same_batch(first, than))) {
            continue;
        }
        for (int32_t k = i; k < end; k++) {
            if (is_gather_side(o, at(o, k)) && same_batch(at(o, k), first) && is_collective(at(o, k))) {
                return i;
            }
        }
    }
    return end;
}

/* The batch that begins at `first`: its nodes up to the next batch's begin. */
static void put_batch(overlap *o, int32_t first, int32_t end, uint8_t *is_put)
{
    const ct_node *head = at(o, first);
    for (int32_t i = first; i < end; i++) {
        const ct_node *node = at(o, i);
        if (is_gather_side(o, node) && same_batch(node, head) && !is_put[i]) {
            is_put[i] = 1;
            if (is_collective(node)) {
                ct_graph_node(o->g, ct_graph_order(o->g)[i])->stream = 1;
            }
            o->order[o->n++] = ct_graph_order(o->g)[i];
        }
    }
}

/* [begin, end): one program. */
static void place_gathers(overlap *o, int32_t begin, int32_t end, uint8_t *is_put)
{
    int32_t next = next_batch(o, begin, end, NULL);
    if (next < end) {
        put_batch(o, next, end, is_put);
    }
    for (int32_t i = begin; i < end; i++) {
        if (i == next) { /* this block is about to compute: the next one's parameters */
            const int32_t after = next_batch(o, i, end, at(o, i));
            if (after < end) {
                put_batch(o, after, end, is_put);
            }
            next = after;
        }
        if (!is_put[i]) {
            o->order[o->n++] = ct_graph_order(o->g)[i];
        }
    }
}

static ct_status place_all(overlap *o, ct_err *err)
{
    const int32_t n = ct_graph_order_len(o->g);
    uint8_t *is_put = CT_NEW_ARRAY(ct_graph_allocator(o->g), uint8_t, n + 1, err);
    if (is_put == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int32_t begin = 0, end; begin < n; begin = end) {
        for (end = begin; end < n && at(o, end)->program == at(o, begin)->program; end++) {
        }
        place_gathers(o, begin, end, is_put);
    }
    ct_alloc_free(ct_graph_allocator(o->g), is_put);
    CT_ASSERT(o->n == n);
    return ct_graph_set_order(o->g, o->order, o->n, err);
}

static void choose_reductions(overlap *o)
{
    for (int32_t i = 0; i < ct_graph_order_len(o->g); i++) {
        const ct_node *node = at(o, i);
        if (is_collective(node) && batch_len(node->scope) > 0 && !is_gather_side(o, node)) {
            ct_graph_node(o->g, ct_graph_order(o->g)[i])->stream = 1;
        }
    }
}

/* ---- waits ------------------------------------------------------------------------------------------------------- */

/* The last node of stream 1 that must have ended before this one of stream 0 begins. */
static int32_t needs(const overlap *o, const ct_node *node)
{
    const ct_op *op = ct_op_row(node->op);
    int32_t need = 0;
    for (int32_t k = 0; k < node->n_in && (op->flags & CT_OP_VIEW) == 0; k++) {
        const int32_t made = node->in[k] != CT_NO_VALUE ? o->made[cti_root_value(o->g, node->in[k])] : 0;
        need = made > need ? made : need;
    }
    for (int32_t k = 0; k < node->n_out && (op->flags & CT_OP_UPDATE) != 0; k++) {
        const int32_t used = o->used[cti_root_value(o->g, node->out[k])];
        need = used > need ? used : need;
    }
    return need;
}

static void note_started(overlap *o, const ct_node *node, int32_t number)
{
    for (int32_t k = 0; k < node->n_in; k++) {
        o->used[cti_root_value(o->g, node->in[k])] = number;
    }
    for (int32_t k = 0; k < node->n_out; k++) {
        const ct_value_id root = cti_root_value(o->g, node->out[k]);
        o->used[root] = o->made[root] = number;
    }
}

/* The fewest waits that are enough. */
static void set_waits(overlap *o)
{
    int32_t started = 0, waited = 0, reduced = 0; /* reduced: number of the last reduction */
    const ct_node *reduction = NULL;              /* that one */
    for (int32_t i = 0; i < ct_graph_order_len(o->g); i++) {
        ct_node *node = ct_graph_node(o->g, ct_graph_order(o->g)[i]);
        if (i == 0 || node->program != at(o, i - 1)->program) {
            started = waited = reduced = 0;
            reduction = NULL;
            memset(o->made, 0, (size_t)ct_graph_n_values(o->g) * sizeof *o->made);
            memset(o->used, 0, (size_t)ct_graph_n_values(o->g) * sizeof *o->used);
        }
        int32_t need = 0;
        if (node->stream == 0) {
            need = needs(o, node);
        } else {
            started++;
            note_started(o, node, started);
            if (!is_gather_side(o, node)) {
                need = reduction != NULL && !same_batch(reduction, node) ? reduced : 0;
                reduction = node;
                reduced = started;
            }
        }
        node->wait = need > waited ? need : 0;
        waited = need > waited ? need : waited;
    }
}

/* Whether a kernel runs between the start of this node of stream 1 and the wait for it. */
static bool is_beside_some(const overlap *o, int32_t position, int32_t number)
{
    const ct_node *node = at(o, position);
    for (int32_t i = position + 1; i < ct_graph_order_len(o->g); i++) {
        const ct_node *later = at(o, i);
        if (later->program != node->program || later->wait >= number) {
            return false;
        }
        if (is_kernel(later)) {
            return true;
        }
    }
    return false;
}

/* Puts back in line what nothing runs beside. True where there was some. */
static bool demote(overlap *o)
{
    int32_t number = 0;
    bool any = false;
    for (int32_t i = 0; i < ct_graph_order_len(o->g); i++) {
        const ct_node *node = at(o, i);
        number = i == 0 || node->program != at(o, i - 1)->program ? 0 : number;
        if (node->stream != 0) {
            number++;
            if (!is_beside_some(o, i, number)) {
                ct_graph_node(o->g, ct_graph_order(o->g)[i])->stream = 2; /* until all have been looked at */
                any = true;
            }
        }
    }
    for (int32_t i = 0; i < ct_graph_order_len(o->g) && any; i++) {
        ct_node *node = ct_graph_node(o->g, ct_graph_order(o->g)[i]);
        node->stream = node->stream == 2 ? 0 : node->stream;
    }
    return any;
}

ct_status cti_pass_overlap(ct_graph *g, ct_err *err)
{
    const ct_alloc *alloc = ct_graph_allocator(g);
    overlap o = {.g = g};
    o.is_gathered = CT_NEW_ARRAY(alloc, uint8_t, ct_graph_n_values(g) + 1, err);
    o.order = CT_NEW_ARRAY(alloc, ct_node_id, ct_graph_order_len(g) + 1, err);
    o.made = CT_NEW_ARRAY(alloc, int32_t, ct_graph_n_values(g) + 1, err);
    o.used = CT_NEW_ARRAY(alloc, int32_t, ct_graph_n_values(g) + 1, err);
    ct_status st = CT_ERR_MEMORY;
    if (o.is_gathered != NULL && o.order != NULL && o.made != NULL && o.used != NULL) {
        mark_gathered(&o);
        st = place_all(&o, err);
        if (st == CT_OK) {
            choose_reductions(&o);
            set_waits(&o);
            if (demote(&o)) {
                set_waits(&o);
            }
        }
    }
    ct_alloc_free(alloc, o.is_gathered);
    ct_alloc_free(alloc, o.order);
    ct_alloc_free(alloc, o.made);
    ct_alloc_free(alloc, o.used);
    return st;
}
