/* SPDX-License-Identifier: Apache-2.0 */
/* What backward computes again instead of keeping: activation checkpointing and FSDP's resharding.
 *
 * Forward values fall into keep or recompute. A backward node that reads a value of the second kind gets a clone of the value's
 * producer, placed before it, whose own inputs are resolved the same way; clones are shared within the backward program. */
#include <stdlib.h>
#include <string.h>

#include "passes/passes_internal.h"

typedef struct recompute {
    ct_graph *g;
    const ct_recompute_options *options;
    uint8_t *keep;       /* per value of the forward program */
    ct_value_id *clone;  /* per value: its clone, or CT_NO_VALUE */
    int32_t n_values;    /* when the pass began */
    ct_node_id *order;   /* the new order, owned */
    int32_t n_order, cap_order;
} recompute;

/* Length of the block's name at the head of a scope: "layers.3" of "layers.3.attention"; 0: no block. */
size_t cti_block_len(const char *scope)
{
    if (strncmp(scope, "layers.", 7) != 0) {
        return 0;
    }
    const char *dot = strchr(scope + 7, '.');
    return dot != NULL ? (size_t)(dot - scope) : strlen(scope);
}

bool cti_same_block(const char *a, const char *b)
{
    const size_t la = cti_block_len(a), lb = cti_block_len(b);
    return la == lb && strncmp(a, b, la) == 0;
}

ct_value_id cti_root_value(const ct_graph *g, ct_value_id id)
{
    while (ct_graph_value_c(g, id)->alias_of != CT_NO_VALUE) {
        id = ct_graph_value_c(g, id)->alias_of;
    }
    return id;
}

/* Whether the policy keeps a node's outputs; `matmuls` counts those of the current block. */
static bool keeps_node(const recompute *r, const ct_node *node, int32_t *matmuls)
{
    if (strncmp(node->scope, "flat.", 5) == 0) {
        const bool head = strncmp(node->scope, "flat.head", 9) == 0;
        return !(head ? r->options->reshard_head : r->options->reshard_blocks);
    }
    if (r->options->mode == CT_RECOMPUTE_NONE || cti_block_len(node->scope) == 0) {
        return true;
    }
    const ct_op *op = ct_op_row(node->op);
    if (r->options->mode == CT_RECOMPUTE_FULL || r->options->mode == CT_RECOMPUTE_BUDGET || !(op->flags & CT_OP_EXPENSIVE)) {
        return false;
    }
    return !(op->flags & CT_OP_MATMUL) || (*matmuls)++ % 2 == 0;
}

/* keep[]: by policy, and every value that leaves its block within the forward program; then what the budget holds. */
static ct_status choose(recompute *r, ct_err *err)
{
    ct_graph *g = r->g;
    const int32_t n = ct_graph_order_len(g);
    int32_t matmuls = 0;
    const char *scope = "";
    memset(r->keep, 1, (size_t)r->n_values);
    for (int32_t i = 0; i < n; i++) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[i]);
        if (node->program != CT_PROGRAM_FORWARD) {
            continue;
        }
        if (!cti_same_block(scope, node->scope)) {
            matmuls = 0;
            scope = node->scope;
        }
        const bool keep = keeps_node(r, node, &matmuls);
        for (int32_t o = 0; o < node->n_out; o++) {
            r->keep[node->out[o]] = keep;
        }
    }
    for (int32_t i = 0; i < n; i++) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[i]);
        for (int32_t k = 0; k < node->n_in && node->program == CT_PROGRAM_FORWARD; k++) {
            const ct_value *v = node->in[k] >= 0 ? ct_graph_value_c(g, node->in[k]) : NULL;
            if (v == NULL || v->producer < 0) {
                continue;
            }
            const ct_node *from = ct_graph_node_c(g, v->producer);
            if (strncmp(from->scope, "flat.", 5) != 0 && !cti_same_block(from->scope, node->scope)) {
                r->keep[cti_root_value(g, node->in[k])] = 1;
            }
        }
    }
    return r->options->mode == CT_RECOMPUTE_BUDGET ? cti_budget_keep(g, r->options->budget, r->keep, err) : CT_OK;
}

/* Bytes of the blocks' values that backward reads; the edge of a block counts. seen: per value, zeroed. */
static int64_t kept_bytes(const ct_graph *g, uint8_t *seen)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < ct_graph_order_len(g); i++) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[i]);
        for (int32_t k = 0; k < node->n_in && node->program == CT_PROGRAM_BACKWARD; k++) {
            const ct_value_id root = node->in[k] >= 0 ? cti_root_value(g, node->in[k]) : CT_NO_VALUE;
            const ct_value *v = root >= 0 ? ct_graph_value_c(g, root) : NULL;
            const ct_node *from = v != NULL && v->producer >= 0 ? ct_graph_node_c(g, v->producer) : NULL;
            if (from != NULL && from->program == CT_PROGRAM_FORWARD && cti_block_len(from->scope) > 0 && !seen[root]) {
                seen[root] = 1;
                sum += (int64_t)ct_value_size_bytes(v);
            }
        }
    }
    return sum;
}

static ct_status report_bytes(const ct_graph *g, int64_t *out_bytes, ct_err *err)
{
    uint8_t *seen = CT_NEW_ARRAY(ct_graph_allocator(g), uint8_t, ct_graph_n_values(g) + 1, err);
    if (seen == NULL) {
        return CT_ERR_MEMORY;
    }
    *out_bytes = kept_bytes(g, seen);
    ct_alloc_free(ct_graph_allocator(g), seen);
    return CT_OK;
}

static ct_status push(recompute *r, ct_node_id id, ct_err *err)
{
    if (r->n_order == r->cap_order) {
        const int32_t cap = r->cap_order * 2 + 64;
        ct_node_id *order = ct_alloc_resize(ct_graph_allocator(r->g), r->order, (size_t)cap, sizeof *order, err);
        if (order == NULL) {
            return CT_ERR_MEMORY;
        }
        r->order = order;
        r->cap_order = cap;
    }
    r->order[r->n_order++] = id;
    return CT_OK;
}

/* A view is available where its root is; PARAM, INPUT, CONST and STATE always are. */
static bool is_available(const recompute *r, ct_value_id id)
{
    if (id < 0 || id >= r->n_values) {
        return true;
    }
    const ct_value *v = ct_graph_value_c(r->g, cti_root_value(r->g, id));
    const ct_node *node = v->producer >= 0 ? ct_graph_node_c(r->g, v->producer) : NULL;
    return node == NULL || node->program != CT_PROGRAM_FORWARD || r->keep[cti_root_value(r->g, id)];
}

/* *value becomes what a backward node is to read instead. Depth is bounded by the nodes of one block. */
static ct_status resolve(recompute *r, ct_value_id *value, int depth, ct_err *err)
{
    if (is_available(r, *value)) {
        return CT_OK;
    }
    if (r->clone[*value] != CT_NO_VALUE) {
        *value = r->clone[*value];
        return CT_OK;
    }
    ct_graph *g = r->g;
    const ct_node node = *ct_graph_node_c(g, ct_graph_value_c(g, *value)->producer);
    if (depth > 4096 || node.n_in > 64) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "recompute: the chain behind '%s' is too long", node.scope);
    }
    ct_value_id in[64];
    for (int32_t k = 0; k < node.n_in; k++) {
        in[k] = node.in[k];
        CT_TRY(resolve(r, &in[k], depth + 1, err));
    }
    ct_value_id *out = ct_arena_alloc(ct_graph_arena(g), (size_t)node.n_out * sizeof *out, err);
    if (out == NULL) {
        return CT_ERR_MEMORY;
    }
    CT_TRY(ct_graph_set_scope(g, node.scope, err));
    CT_TRY(ct_op_emit(g, node.op, node.attrs, in, node.n_in, out, err));
    const ct_node_id id = ct_graph_value_c(g, out[0])->producer;
    ct_graph_node(g, id)->is_recompute = true;
    CT_TRY(push(r, id, err));
    for (int32_t o = 0; o < node.n_out; o++) {
        r->clone[node.out[o]] = out[o];
    }
    *value = r->clone[*value];
    return CT_OK;
}

static ct_status rewrite(recompute *r, ct_err *err)
{
    ct_graph *g = r->g;
    const int32_t n = ct_graph_order_len(g);
    ct_node_id *old = CT_NEW_ARRAY(ct_graph_allocator(g), ct_node_id, n + 1, err);
    if (old == NULL) {
        return CT_ERR_MEMORY;
    }
    memcpy(old, ct_graph_order(g), (size_t)n * sizeof *old);
    ct_graph_set_program(g, CT_PROGRAM_BACKWARD);
    ct_status st = CT_OK;
    for (int32_t i = 0; i < n && st == CT_OK; i++) {
        const ct_node *node = ct_graph_node_c(g, old[i]);
        const int32_t n_in = node->program == CT_PROGRAM_BACKWARD ? node->n_in : 0;
        ct_value_id *in = node->in; /* the arena's: stays where it is */
        for (int32_t k = 0; k < n_in && st == CT_OK; k++) {
            st = resolve(r, &in[k], 0, err);
        }
        if (st == CT_OK) {
            st = push(r, old[i], err);
        }
    }
    ct_alloc_free(ct_graph_allocator(g), old);
    CT_TRY(st);
    return ct_graph_set_order(g, r->order, r->n_order, err);
}

ct_status ct_pass_recompute(ct_graph *g, const ct_recompute_options *options, ct_recompute_report *out_report, ct_err *err)
{
    CT_TRY(report_bytes(g, &out_report->whole_bytes, err));
    const ct_alloc *alloc = ct_graph_allocator(g);
    recompute r = {.g = g, .options = options, .n_values = ct_graph_n_values(g)};
    r.keep = CT_NEW_ARRAY(alloc, uint8_t, r.n_values + 1, err);
    r.clone = CT_NEW_ARRAY(alloc, ct_value_id, r.n_values + 1, err);
    ct_status st = CT_ERR_MEMORY;
    if (r.keep != NULL && r.clone != NULL) {
        for (int32_t i = 0; i < r.n_values; i++) {
            r.clone[i] = CT_NO_VALUE;
        }
        st = choose(&r, err);
        st = st == CT_OK ? rewrite(&r, err) : st;
    }
    ct_alloc_free(alloc, r.keep);
    ct_alloc_free(alloc, r.clone);
    ct_alloc_free(alloc, r.order);
    CT_TRY(st);
    CT_TRY(report_bytes(g, &out_report->kept_bytes, err));
    out_report->again_cost = 0.0;
    for (int32_t i = 0; i < ct_graph_order_len(g); i++) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[i]);
        out_report->again_cost += node->is_recompute && cti_block_len(node->scope) > 0 ? cti_recompute_cost(g, node) : 0.0;
    }
    CT_TRY(ct_graph_set_scope(g, "", err));
    return ct_graph_verify(g, err);
}
