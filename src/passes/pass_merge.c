/* SPDX-License-Identifier: Apache-2.0 */
/* Products of one input with weights that lie side by side in a Flat group -> one product.
 *
 * The weights of q, k, v and of gate, up are neighbours in their block's group, so their rows are one matrix already: the input is read
 * once, the product is larger, and so are its gradients. It pays only where no copy takes the result apart: where q and k go to rope, and
 * gate and up to silu_mul. Other models' graphs, and those of overrides that use other ops, do not match and stay. */
#include <string.h>

#include "passes/passes.h"

typedef struct run { /* products of one input with neighbouring weights */
    int32_t n;
    const ct_node *product[3];
    const ct_node *split;  /* the flat_split that has the weights as outputs first, first + 1, ... */
    int32_t first;
} run;

static bool is_product(const ct_node *node, ct_value_id x)
{
    const ct_attrs_matmul *a = node != NULL && node->op == CT_OP_matmul && node->n_in == 2 ? node->attrs : NULL;
    return a != NULL && !a->ta && a->tb && (x == CT_NO_VALUE || node->in[0] == x);
}

static bool find_run(const ct_graph *g, const ct_node *node, int32_t n, run *out)
{
    if (!is_product(node, CT_NO_VALUE)) {
        return false;
    }
    const ct_value *w = ct_graph_value_c(g, node->in[1]);
    const ct_node *split = w->producer >= 0 ? ct_graph_node_c(g, w->producer) : NULL;
    if (split == NULL || split->op != CT_OP_flat_split) {
        return false;
    }
    const int64_t *offsets = ((const ct_attrs_flat_split *)split->attrs)->offsets.items;
    *out = (run){.n = n, .split = split};
    while (split->out[out->first] != node->in[1]) {
        out->first++;
    }
    for (int32_t k = 0; k < n; k++) {
        const int32_t at = out->first + k;
        const ct_node *product = at < split->n_out ? cti_only_reader(g, split->out[at]) : NULL;
        if (!is_product(product, node->in[0]) || product->in[1] != split->out[at] || product->program != node->program) {
            return false;
        }
        const ct_value *view = ct_graph_value_c(g, split->out[at]);
        if (view->dims[1] != w->dims[1] ||
            (k > 0 && offsets[at] != offsets[at - 1] + ct_value_numel(ct_graph_value_c(g, split->out[at - 1])))) {
            return false;
        }
        out->product[k] = product;
    }
    return true;
}

/* The views of the run become one: a new flat_split in the place of the old one. */
static ct_status merge_views(ct_graph *g, const run *r, ct_value_id *out_w, ct_err *err)
{
    const ct_node split = *r->split;
    const ct_node_id old = ct_graph_value_c(g, split.out[0])->producer;
    const int32_t n = split.n_out - r->n + 1, at = cti_position(g, old), tail = ct_graph_order_len(g);
    const ct_attrs_flat_split *from = split.attrs;
    int64_t *lists = ct_arena_alloc(ct_graph_arena(g), (size_t)(2 * n + from->dims.n) * sizeof *lists, err);
    ct_value_id *views = ct_arena_alloc(ct_graph_arena(g), (size_t)n * sizeof *views, err);
    if (lists == NULL || views == NULL) {
        return CT_ERR_MEMORY;
    }
    int64_t *ndims = lists + n, *dims = lists + 2 * n, n_dims = 0;
    for (int32_t i = 0; i < split.n_out; i++) {
        const ct_value *v = ct_graph_value_c(g, split.out[i]);
        const bool joins = i > r->first && i < r->first + r->n;
        const int32_t to = i <= r->first ? i : i < r->first + r->n ? r->first : i - r->n + 1;
        if (joins) {
            dims[n_dims - 2] += v->dims[0];
            continue;
        }
        lists[to] = from->offsets.items[i];
        ndims[to] = v->ndim;
        memcpy(dims + n_dims, v->dims, (size_t)v->ndim * sizeof *dims);
        n_dims += v->ndim;
    }
    const ct_attrs_flat_split attrs = {{n, lists}, {n, ndims}, {n_dims, dims}};
    CT_TRY(ct_graph_set_scope(g, split.scope, err));
    ct_graph_set_program(g, (ct_program_id)split.program);
    CT_TRY(ct_op_emit(g, CT_OP_flat_split, &attrs, split.in, 1, views, err));
    CT_TRY(cti_order_move_tail(g, tail, at, err));
    for (int32_t i = 0; i < split.n_out; i++) {
        if (i <= r->first || i >= r->first + r->n) {
            ct_graph_replace_uses(g, split.out[i], views[i <= r->first ? i : i - r->n + 1], at);
        }
    }
    *out_w = views[r->first];
    return cti_order_drop(g, &old, 1, err);
}

/* The run's product and `op` on it, whose outputs take the place of `results`; the nodes of `dead` go, of which the last in order is where
 * the new ones stand. */
static ct_status replace(ct_graph *g, const run *r, ct_op_id op, const void *attrs, const ct_value_id *more_in, int32_t n_more,
                         const ct_value_id *results, int32_t n_results, const ct_node_id *dead, int32_t n_dead, ct_err *err)
{
    const ct_node product = *r->product[0];
    const char *scope = ct_graph_node_c(g, dead[n_dead - 1])->scope;
    ct_value_id w, in[3], out[3];
    CT_TRY(merge_views(g, r, &w, err));
    const int32_t tail = ct_graph_order_len(g);
    int32_t at = 0;
    for (int32_t i = 0; i < n_dead; i++) {
        const int32_t position = cti_position(g, dead[i]);
        at = position > at ? position : at;
    }
    CT_TRY(ct_graph_set_scope(g, product.scope, err));
    ct_graph_set_program(g, (ct_program_id)product.program);
    CT_TRY(ct_op_matmul(g, product.in[0], w, CT_NO_VALUE, false, true, &in[0], err));
    for (int32_t i = 0; i < n_more; i++) {
        in[1 + i] = more_in[i];
    }
    CT_TRY(ct_graph_set_scope(g, scope, err));
    CT_TRY(ct_op_emit(g, op, attrs, in, 1 + n_more, out, err));
    CT_TRY(cti_order_move_tail(g, tail, at + 1, err));
    memcpy(ct_graph_value(g, in[0])->placement, ct_graph_value_c(g, product.out[0])->placement,
           sizeof ct_graph_value_c(g, in[0])->placement);
    for (int32_t i = 0; i < n_results; i++) {
        memcpy(ct_graph_value(g, out[i])->placement, ct_graph_value_c(g, results[i])->placement,
               sizeof ct_graph_value_c(g, out[i])->placement);
        ct_graph_replace_uses(g, results[i], out[i], at + 1);
    }
    return cti_order_drop(g, dead, n_dead, err);
}

static ct_node_id id_of(const ct_graph *g, const ct_node *node)
{
    return ct_graph_value_c(g, node->out[0])->producer;
}

/* gate and up -> silu_mul */
static ct_status try_swiglu(ct_graph *g, const ct_node *node, bool *out_done, ct_err *err)
{
    run r;
    *out_done = false;
    if (!find_run(g, node, 2, &r)) {
        return CT_OK;
    }
    const ct_node *silu = cti_only_reader(g, r.product[0]->out[0]);
    if (silu == NULL || silu->op != CT_OP_silu_mul || silu->in[0] != r.product[0]->out[0] || silu->in[1] != r.product[1]->out[0] ||
        cti_only_reader(g, silu->in[1]) != silu || silu->program != node->program) {
        return CT_OK;
    }
    const ct_value_id y = silu->out[0];
    const ct_node_id dead[3] = {id_of(g, r.product[0]), id_of(g, r.product[1]), id_of(g, silu)};
    *out_done = true;
    return replace(g, &r, CT_OP_swiglu, NULL, NULL, 0, &y, 1, dead, 3, err);
}

/* q, k and v as heads; q and k -> rope at the same positions */
static ct_status try_qkv(ct_graph *g, const ct_node *node, bool *out_done, ct_err *err)
{
    run r;
    *out_done = false;
    if (!find_run(g, node, 3, &r) || ct_graph_value_c(g, node->out[0])->ndim != 3) {
        return CT_OK;
    }
    const ct_node *heads[3], *rope[2] = {NULL, NULL};
    ct_value_id results[3];
    ct_node_id dead[8];
    int32_t last = 0;
    for (int i = 0; i < 3; i++) {
        heads[i] = cti_only_reader(g, r.product[i]->out[0]);
        if (heads[i] == NULL || heads[i]->op != CT_OP_reshape || ct_graph_value_c(g, heads[i]->out[0])->ndim != 4) {
            return CT_OK;
        }
        results[i] = heads[i]->out[0];
        if (i < 2) {
            rope[i] = cti_only_reader(g, results[i]);
            if (rope[i] == NULL || rope[i]->op != CT_OP_rope || rope[i]->in[0] != results[i] ||
                ((const ct_attrs_rope *)rope[i]->attrs)->inverse || rope[i]->program != node->program) {
                return CT_OK;
            }
            results[i] = rope[i]->out[0];
        }
        dead[i] = id_of(g, r.product[i]);
        dead[3 + i] = id_of(g, heads[i]);
        last = cti_position(g, dead[3 + i]) > last ? cti_position(g, dead[3 + i]) : last;
    }
    for (int i = 0; i < 2; i++) {
        dead[6 + i] = id_of(g, rope[i]);
        last = cti_position(g, dead[6 + i]) > last ? cti_position(g, dead[6 + i]) : last;
    }
    const ct_value *x = ct_graph_value_c(g, node->out[0]), *q = ct_graph_value_c(g, results[0]);
    const ct_value *k = ct_graph_value_c(g, results[1]), *v = ct_graph_value_c(g, results[2]);
    if (rope[0]->in[1] != rope[1]->in[1] || rope[0]->in[2] != rope[1]->in[2] || q->dims[0] != x->dims[0] || q->dims[1] != x->dims[1] ||
        q->dims[3] != k->dims[3] || memcmp(k->dims, v->dims, 4 * sizeof k->dims[0]) != 0 || k->dims[0] != q->dims[0] ||
        k->dims[1] != q->dims[1]) {
        return CT_OK;
    }
    for (int i = 0; i < 3; i++) {
        if (cti_first_use(g, results[i]) <= last) {
            return CT_OK;
        }
    }
    const ct_attrs_qkv_rope attrs = {.heads = q->dims[2], .kv_heads = k->dims[2]};
    const ct_value_id more[2] = {rope[0]->in[1], rope[0]->in[2]};
    *out_done = true;
    return replace(g, &r, CT_OP_qkv_rope, &attrs, more, 2, results, 3, dead, 8, err);
}

ct_status ct_pass_merge(ct_graph *g, ct_err *err)
{
    enum { MOST_GONE = 9 };
    for (int32_t at = 0; at < ct_graph_order_len(g); at++) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[at]);
        bool done = false;
        if (node->op == CT_OP_matmul) {
            CT_TRY(try_qkv(g, node, &done, err));
        }
        if (node->op == CT_OP_matmul && !done) {
            CT_TRY(try_swiglu(g, node, &done, err));
        }
        /* Positions have moved back by what is gone, at most the 8 nodes of a run: nodes before them are as they were. */
        at = done ? (at > MOST_GONE ? at - MOST_GONE - 1 : -1) : at;
    }
    CT_TRY(ct_graph_set_scope(g, "", err));
    return ct_graph_verify(g, err);
}
