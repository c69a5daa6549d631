/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor and sequence parallelism: from the placements of parameters on the axis tp, those of everything else, and the collectives between.
 *
 * The residual stream is between products: the same on every rank (I), or with sequence parallelism its tokens are shared by the ranks
 * (S(0) of [tokens, D]; any cut will do, since norms and sums work on single tokens). Before a product whose weight is cut by rows the
 * stream is made whole for use (I -> R, S -> R); behind one whose weight is cut by columns, and behind the embedding, the partial sums
 * become the stream again (P -> I, P -> S). What each step costs, and its gradient: mesh/placement.h. Each value is made whole once. */
#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "mesh/placement.h"
#include "ops/ops.h"
#include "passes/passes_internal.h"

enum { AXIS = CT_AXIS_TP };

typedef struct note { /* of a value */
    ct_value_id used; /* it as R; CT_NO_VALUE: not made yet */
    ct_value_id like; /* of a stream's value: one with the dims of the whole, [B, S, D] */
    int64_t begin;    /* of a cut parameter: where this rank's part begins, along the cut */
} note;

typedef struct tensor {
    ct_graph *g;
    int64_t degree, coord;
    bool is_sequence;
    note *notes; /* owns; per value */
    int32_t n_notes;
    int32_t at; /* position of the node at hand */
} tensor;

static ct_placement place_of(const tensor *t, ct_value_id id)
{
    return ct_graph_value_c(t->g, id)->placement[AXIS];
}

static bool is_shard(ct_placement p, int dim)
{
    return p.kind == CT_PLACE_SHARD && p.dim == dim && ct_placement_parts(p) == 1;
}

static int last_dim(const tensor *t, ct_value_id id)
{
    return ct_graph_value_c(t->g, id)->ndim - 1;
}

static ct_status note_of(tensor *t, ct_value_id id, note **out, ct_err *err)
{
    if (id >= t->n_notes) {
        const int32_t n = 2 * ct_graph_n_values(t->g) + 64;
        note *grown = ct_alloc_resize(ct_graph_allocator(t->g), t->notes, (size_t)n, sizeof *grown, err);
        if (grown == NULL) {
            return CT_ERR_MEMORY;
        }
        for (int32_t i = t->n_notes; i < n; i++) {
            grown[i] = (note){CT_NO_VALUE, CT_NO_VALUE, 0};
        }
        t->notes = grown;
        t->n_notes = n;
    }
    *out = &t->notes[id];
    return CT_OK;
}

static ct_status cannot(const tensor *t, const ct_node *node, const char *why, ct_err *err)
{
    char text[16];
    const ct_placement p = node->n_in > 0 && node->in[0] != CT_NO_VALUE ? place_of(t, node->in[0]) : ct_replicate();
    return CT_FAIL(err, CT_ERR_UNSUPPORTED, "tensor parallelism: node '%s' (%s) whose first input is placed %s: %s", node->scope,
                   ct_op_row(node->op)->name, ct_placement_text(p, text), why);
}

/* Emits a node at the position of the one at hand (before it), which moves one on. */
static ct_status emit_before(tensor *t, int32_t op, const void *attrs, const ct_value_id *in, int32_t n_in, ct_value_id *out, ct_err *err)
{
    const int32_t tail = ct_graph_order_len(t->g);
    CT_TRY(ct_op_emit(t->g, op, attrs, in, n_in, out, err));
    CT_TRY(cti_order_move_tail(t->g, tail, t->at, err));
    t->at++;
    return CT_OK;
}

static ct_status reshape_before(tensor *t, ct_value_id x, int64_t *dims, int32_t ndim, ct_value_id *out, ct_err *err)
{
    const ct_attrs_reshape attrs = {{ndim, dims}};
    return emit_before(t, CT_OP_reshape, &attrs, &x, 1, out, err);
}

static int64_t *new_dims(tensor *t, int32_t n, ct_err *err)
{
    return ct_arena_alloc(ct_graph_arena(t->g), (size_t)n * sizeof(int64_t), err);
}

/* The stream's value x as R, in the dims of the whole. */
static ct_status as_used(tensor *t, ct_value_id x, ct_value_id *out, ct_err *err)
{
    note *n;
    CT_TRY(note_of(t, x, &n, err));
    if (n->used != CT_NO_VALUE) {
        *out = n->used;
        return CT_OK;
    }
    const ct_attrs_all_gather attrs = {AXIS, t->degree, -1};
    const ct_placement p = place_of(t, x);
    const ct_value_id like = n->like;
    if (p.kind == CT_PLACE_REPLICATE) {
        CT_TRY(emit_before(t, CT_OP_owe, &attrs, &x, 1, out, err));
    } else if (is_shard(p, 0) && like != CT_NO_VALUE) {
        const int32_t ndim = ct_graph_value_c(t->g, like)->ndim;
        int64_t *dims = new_dims(t, ndim, err);
        if (dims == NULL) {
            return CT_ERR_MEMORY;
        }
        memcpy(dims, ct_graph_value_c(t->g, like)->dims, (size_t)ndim * sizeof *dims);
        dims[0] = -1;
        ct_value_id flat;
        CT_TRY(emit_before(t, CT_OP_all_gather, &attrs, &x, 1, &flat, err));
        CT_TRY(reshape_before(t, flat, dims, ndim, out, err));
    } else {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "tensor parallelism: a value of '%s' cannot be made whole",
                       ct_graph_node_c(t->g, ct_graph_order(t->g)[t->at])->scope);
    }
    ct_graph_value(t->g, *out)->placement[AXIS] = (ct_placement){.kind = CT_PLACE_OWING};
    CT_TRY(note_of(t, x, &n, err));
    n->used = *out;
    return CT_OK;
}

/* Outputs' dims from the inputs' as they are now. */
static ct_status infer(tensor *t, const ct_node *node, ct_err *err)
{
    enum { MAX_OUT = 8 };
    ct_value_spec specs[MAX_OUT];
    CT_ASSERT(node->n_out <= MAX_OUT);
    CT_TRY(cti_op_infer(t->g, ct_op_row(node->op), node->attrs, node->in, node->n_in, specs, err));
    for (int32_t o = 0; o < node->n_out; o++) {
        ct_value *v = ct_graph_value(t->g, node->out[o]);
        v->ndim = specs[o].ndim;
        memcpy(v->dims, specs[o].dims, sizeof v->dims);
    }
    return CT_OK;
}

/* The partial sums that the node at hand makes become the stream: P -> S or P -> I, behind it. */
static ct_status finish_partial(tensor *t, const ct_node *node, ct_err *err)
{
    const ct_value_id sums = node->out[0];
    const ct_value v = *ct_graph_value_c(t->g, sums);
    const ct_attrs_collective attrs = {AXIS, t->degree};
    const int32_t from = t->at;
    ct_value_id out = sums, flat;
    ct_graph_value(t->g, sums)->placement[AXIS] = ct_partial();
    t->at++;
    if (t->is_sequence) {
        const int64_t tokens = ct_value_numel(&v) / v.dims[v.ndim - 1];
        if (tokens % t->degree != 0) {
            return CT_FAIL(err, CT_ERR_SHAPE, "sequence parallelism: %" PRId64 " tokens of a micro-batch do not divide by the tp degree %" PRId64,
                           tokens, t->degree);
        }
        int64_t *dims = new_dims(t, 2, err);
        if (dims == NULL) {
            return CT_ERR_MEMORY;
        }
        dims[0] = -1;
        dims[1] = v.dims[v.ndim - 1];
        CT_TRY(reshape_before(t, sums, dims, 2, &flat, err));
        CT_TRY(emit_before(t, CT_OP_reduce_scatter, &attrs, &flat, 1, &out, err));
        ct_graph_value(t->g, out)->placement[AXIS] = ct_shard(0);
    } else {
        CT_TRY(emit_before(t, CT_OP_all_reduce, &attrs, &sums, 1, &out, err));
    }
    t->at--; /* the last of what was inserted */
    note *n;
    CT_TRY(note_of(t, out, &n, err));
    n->like = sums;
    ct_graph_replace_uses(t->g, sums, out, from + (t->is_sequence ? 2 : 1));
    return CT_OK;
}

/* A parameter used on a part of the tokens: its gradient is a partial sum. */
static ct_status owe_params(tensor *t, const ct_node *node, ct_err *err)
{
    for (int32_t i = 0; i < node->n_in; i++) {
        ct_value *v = node->in[i] != CT_NO_VALUE ? ct_graph_value(t->g, node->in[i]) : NULL;
        if (v == NULL || v->kind != CT_VALUE_PARAM) {
            continue;
        }
        if (v->placement[AXIS].kind == CT_PLACE_SHARD) {
            return cannot(t, node, "its parameter is cut, and so are its tokens", err);
        }
        v->placement[AXIS].kind = CT_PLACE_OWING;
    }
    return CT_OK;
}

static ct_status stream_out(tensor *t, const ct_node *node, ct_err *err)
{
    note *in;
    CT_TRY(note_of(t, node->in[0], &in, err));
    const ct_value_id like = in->like;
    for (int32_t o = 0; o < node->n_out; o++) {
        note *out;
        ct_graph_value(t->g, node->out[o])->placement[AXIS] = ct_shard(0);
        CT_TRY(note_of(t, node->out[o], &out, err));
        out->like = like;
    }
    return CT_OK;
}

/* ---- one class of ops each ----------------------------------------------------------------------------------------- */

static ct_status place_product(tensor *t, ct_node *node, ct_err *err)
{
    /* A product of a plug-in has no transposes among its attributes: it is x w^T. */
    const ct_attrs_matmul *a = node->op < CT_OP_COUNT ? node->attrs : NULL;
    const ct_placement w = place_of(t, node->in[1]), x = place_of(t, node->in[0]);
    if (w.kind == CT_PLACE_SHARD && ((a != NULL && (a->ta || !a->tb)) || node->n_in > 2)) {
        return cannot(t, node, "a cut parameter is wanted as x w^T", err);
    }
    if (w.kind == CT_PLACE_SHARD && w.dim == 0) {
        ct_value_id used;
        CT_TRY(as_used(t, node->in[0], &used, err));
        node->in[0] = used;
        CT_TRY(infer(t, node, err));
        ct_placement cut = ct_shard(last_dim(t, node->out[0]));
        cut.parts = w.parts;
        ct_graph_value(t->g, node->out[0])->placement[AXIS] = cut;
        return CT_OK;
    }
    if (is_shard(w, 1)) {
        if (!is_shard(x, last_dim(t, node->in[0]))) {
            return cannot(t, node, "its weight is cut by columns, so its input must be", err);
        }
        CT_TRY(infer(t, node, err));
        return finish_partial(t, node, err);
    }
    if (is_shard(x, 0)) {
        CT_TRY(owe_params(t, node, err));
        CT_TRY(infer(t, node, err));
        return stream_out(t, node, err);
    }
    return x.kind == CT_PLACE_REPLICATE ? infer(t, node, err) : cannot(t, node, "its weight is whole", err);
}

static ct_status place_lookup(tensor *t, ct_node *node, ct_err *err)
{
    const ct_value_id w = node->in[0];
    if (!is_shard(place_of(t, w), 0)) {
        return place_of(t, w).kind == CT_PLACE_REPLICATE ? infer(t, node, err) : cannot(t, node, "its rows may be cut, nothing else", err);
    }
    note *n;
    CT_TRY(note_of(t, w, &n, err));
    const ct_attrs_local_ids attrs = {.start = n->begin, .count = ct_graph_value_c(t->g, w)->dims[0]};
    ct_value_id ids;
    CT_TRY(emit_before(t, CT_OP_local_ids, &attrs, &node->in[1], 1, &ids, err));
    node->in[1] = ids;
    CT_TRY(infer(t, node, err));
    return finish_partial(t, node, err);
}

/* Each rank has some rows of the vocabulary: the whole's log-sum-exp is merged from theirs, then each makes its part of the loss. */
static ct_status place_loss(tensor *t, ct_node *node, ct_err *err)
{
    const ct_value_id w = node->in[1], labels = node->in[2];
    if (!is_shard(place_of(t, w), 0)) {
        return place_of(t, node->in[0]).kind == CT_PLACE_REPLICATE ? infer(t, node, err) : cannot(t, node, "its head must be cut by rows", err);
    }
    ct_value_id x, own, all, parts, lse, local, in[2];
    CT_TRY(as_used(t, node->in[0], &x, err));
    in[0] = x;
    in[1] = w;
    CT_TRY(emit_before(t, CT_OP_linear_lse, node->attrs, in, 2, &own, err));
    const ct_attrs_all_gather gather = {AXIS, t->degree, -1};
    CT_TRY(emit_before(t, CT_OP_all_gather, &gather, &own, 1, &all, err));
    const ct_value v = *ct_graph_value_c(t->g, own);
    int64_t *dims = new_dims(t, v.ndim + 1, err);
    ct_value_id *ins = ct_arena_alloc(ct_graph_arena(t->g), 5 * sizeof *ins, err);
    if (dims == NULL || ins == NULL) {
        return CT_ERR_MEMORY;
    }
    dims[0] = t->degree;
    memcpy(dims + 1, v.dims, (size_t)v.ndim * sizeof *dims);
    dims[1] = -1;
    CT_TRY(reshape_before(t, all, dims, v.ndim + 1, &parts, err));
    CT_TRY(emit_before(t, CT_OP_lse_merge, NULL, &parts, 1, &lse, err));
    note *n;
    CT_TRY(note_of(t, w, &n, err));
    const ct_attrs_local_ids ids = {.start = n->begin, .count = ct_graph_value_c(t->g, w)->dims[0]};
    CT_TRY(emit_before(t, CT_OP_local_ids, &ids, &labels, 1, &local, err));
    ins[0] = x;
    ins[1] = w;
    ins[2] = local;
    ins[3] = node->in[3];
    ins[4] = lse;
    node->in = ins;
    node->n_in = 5;
    CT_TRY(infer(t, node, err));
    ct_graph_value(t->g, node->out[0])->placement[AXIS] = ct_partial();
    for (int32_t o = 1; o < node->n_out; o++) {
        ct_graph_value(t->g, node->out[o])->placement[AXIS] = o == 1 ? ct_partial() : ct_shard(0);
    }
    return CT_OK;
}

/* The cut dim goes to the output's dim with as many elements before it. */
static ct_status place_reshape(tensor *t, ct_node *node, ct_err *err)
{
    const ct_value in = *ct_graph_value_c(t->g, node->in[0]), out = *ct_graph_value_c(t->g, node->out[0]); /* out: still as before the cut */
    const ct_placement p = in.placement[AXIS];
    if (p.kind == CT_PLACE_REPLICATE) {
        return infer(t, node, err);
    }
    int64_t before = 1, seen = 1;
    int to = 0;
    for (int d = 0; d < p.dim; d++) {
        before *= in.dims[d];
    }
    while (to < out.ndim && (seen < before || out.dims[to] == 1)) { /* a dim of one element is never the one that is cut */
        seen *= out.dims[to++];
    }
    if (p.kind != CT_PLACE_SHARD || p.dim == 0 || ct_placement_parts(p) > 1 || seen != before || to >= out.ndim || out.dims[to] % t->degree != 0) {
        return cannot(t, node, "the cut does not fall between dims of the output", err);
    }
    const ct_attrs_reshape *old = node->attrs;
    ct_attrs_reshape *attrs = ct_arena_alloc(ct_graph_arena(t->g), sizeof *attrs, err);
    int64_t *dims = new_dims(t, out.ndim, err);
    if (attrs == NULL || dims == NULL) {
        return CT_ERR_MEMORY;
    }
    memcpy(dims, old->dims.items, (size_t)out.ndim * sizeof *dims);
    dims[to] = dims[to] < 0 ? dims[to] : dims[to] / t->degree;
    attrs->dims = (ct_i64_list){out.ndim, dims};
    node->attrs = attrs;
    CT_TRY(infer(t, node, err));
    ct_graph_value(t->g, node->out[0])->placement[AXIS] = ct_shard(to);
    return CT_OK;
}

static ct_status place_heads(tensor *t, const ct_node *node, ct_err *err)
{
    const ct_value *first = ct_graph_value_c(t->g, node->in[0]);
    const ct_placement p = first->placement[AXIS];
    if (p.kind == CT_PLACE_REPLICATE) {
        return infer(t, node, err);
    }
    if (!is_shard(p, first->ndim - 2)) {
        return cannot(t, node, "its heads may be cut, nothing else", err);
    }
    const int32_t ndim = first->ndim;
    CT_TRY(infer(t, node, err));
    for (int32_t o = 0; o < node->n_out; o++) {
        ct_value *v = ct_graph_value(t->g, node->out[o]);
        v->placement[AXIS] = ct_shard(v->ndim == ndim ? v->ndim - 2 : v->ndim - 1);
    }
    return CT_OK;
}

static ct_status place_rows(tensor *t, const ct_node *node, ct_err *err)
{
    const ct_placement p = node->n_in > 0 ? place_of(t, node->in[0]) : ct_replicate();
    if (is_shard(p, 0)) {
        CT_TRY(owe_params(t, node, err));
        CT_TRY(infer(t, node, err));
        return stream_out(t, node, err);
    }
    return p.kind == CT_PLACE_REPLICATE ? infer(t, node, err) : cannot(t, node, "it works on whole tokens", err);
}

/* Each half of the last dim is cut for itself: what a rank holds of them belongs together. */
static ct_status place_halves(tensor *t, const ct_node *node, ct_err *err)
{
    const int last = last_dim(t, node->in[0]);
    const ct_placement p = place_of(t, node->in[0]);
    if (p.kind != CT_PLACE_SHARD || p.dim != last) {
        return place_rows(t, node, err);
    }
    if (ct_placement_parts(p) != 2) {
        return cannot(t, node, "each half of its last dim must be cut for itself", err);
    }
    CT_TRY(infer(t, node, err));
    ct_graph_value(t->g, node->out[0])->placement[AXIS] = ct_shard(last);
    return CT_OK;
}

static ct_status place_element(tensor *t, const ct_node *node, ct_err *err)
{
    const ct_placement p = place_of(t, node->in[0]);
    for (int32_t i = 1; i < node->n_in; i++) {
        if (node->in[i] != CT_NO_VALUE && !ct_placement_equal(p, place_of(t, node->in[i]))) {
            return cannot(t, node, "its inputs are placed differently", err);
        }
    }
    CT_TRY(infer(t, node, err));
    if (is_shard(p, 0)) {
        return stream_out(t, node, err);
    }
    for (int32_t o = 0; o < node->n_out; o++) {
        ct_graph_value(t->g, node->out[o])->placement[AXIS] = p;
    }
    return CT_OK;
}

static ct_status place_node(tensor *t, ct_node *node, ct_err *err)
{
    CT_TRY(ct_graph_set_scope(t->g, node->scope, err));
    ct_graph_set_program(t->g, (ct_program_id)node->program);
    switch (ct_op_row(node->op)->shard) {
    case CT_SHARD_PRODUCT:
        return place_product(t, node, err);
    case CT_SHARD_LOOKUP:
        return place_lookup(t, node, err);
    case CT_SHARD_LOSS:
        return place_loss(t, node, err);
    case CT_SHARD_RESHAPE:
        return place_reshape(t, node, err);
    case CT_SHARD_HEADS:
        return place_heads(t, node, err);
    case CT_SHARD_ROWS:
        return place_rows(t, node, err);
    case CT_SHARD_HALVES:
        return place_halves(t, node, err);
    case CT_SHARD_ELEMENT:
        return place_element(t, node, err);
    case CT_SHARD_REPLICATED:
    case CT_SHARD_COLLECTIVE:
    case CT_SHARD_COUNT:
        break;
    }
    for (int32_t i = 0; i < node->n_in; i++) {
        if (node->in[i] != CT_NO_VALUE && place_of(t, node->in[i]).kind != CT_PLACE_REPLICATE) {
            return cannot(t, node, "it wants its inputs whole", err);
        }
    }
    return infer(t, node, err);
}

/* Parameters take the dims of this rank's part. */
static ct_status cut_params(tensor *t, ct_err *err)
{
    for (ct_value_id id = 0; id < ct_graph_n_values(t->g); id++) {
        ct_value *v = ct_graph_value(t->g, id);
        const ct_placement p = v->placement[AXIS];
        if (v->kind != CT_VALUE_PARAM || p.kind != CT_PLACE_SHARD) {
            continue;
        }
        const int64_t parts = ct_placement_parts(p);
        int64_t begin, end;
        ct_shard_range(v->dims[p.dim] / parts, t->degree, t->coord, &begin, &end);
        if (begin == end) {
            return CT_FAIL(err, CT_ERR_SHAPE, "'%s': dim %d of %" PRId64 " leaves rank %" PRId64 " of the %" PRId64 " of axis tp without a part",
                           v->name, p.dim, v->dims[p.dim], t->coord, t->degree);
        }
        v->dims[p.dim] = parts * (end - begin);
        note *n;
        CT_TRY(note_of(t, id, &n, err));
        n->begin = begin;
    }
    return CT_OK;
}

ct_status cti_pass_tensor(ct_graph *g, const ct_mesh *mesh, const ct_shard_options *options, ct_err *err)
{
    tensor t = {.g = g, .degree = mesh->degree[AXIS], .coord = mesh->coord[AXIS], .is_sequence = options->is_sequence_parallel};
    ct_status st = cut_params(&t, err);
    for (t.at = 0; t.at < ct_graph_order_len(g) && st == CT_OK; t.at++) {
        /* Nodes move in memory when others are added: work on a copy. Its list of inputs stays where it is. */
        const ct_node_id id = ct_graph_order(g)[t.at];
        ct_node node = *ct_graph_node_c(g, id);
        st = place_node(&t, &node, err);
        ct_node *placed = ct_graph_node(g, id);
        placed->attrs = node.attrs;
        placed->in = node.in;
        placed->n_in = node.n_in;
    }
    ct_alloc_free(ct_graph_allocator(g), t.notes);
    CT_TRY(st);
    return ct_graph_set_scope(g, "", err);
}
