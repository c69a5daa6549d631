/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns -> fused ops of the op list. One row a pattern; so far: a sum with a product becomes the product's accumulate. */
#include <string.h>

#include "passes/passes.h"


/* add(x, p) with p = matmul(a, b) read by nobody else: matmul(a, b, x) at the place of the add. */
static ct_status fuse_add(ct_graph *g, const int32_t *uses, int32_t at, bool *out_done, ct_err *err)
{
    const ct_node *add = ct_graph_node_c(g, ct_graph_order(g)[at]);
    *out_done = false;
    for (int side = 1; side >= 0; side--) {
        const ct_value *p = ct_graph_value_c(g, add->in[side]);
        const ct_node *product = p->producer >= 0 ? ct_graph_node_c(g, p->producer) : NULL;
        if (product == NULL || product->op != CT_OP_matmul || product->n_in != 2 || product->program != add->program ||
            uses[add->in[side]] != 1) {
            continue;
        }
        const ct_value_id in[3] = {product->in[0], product->in[1], add->in[1 - side]};
        const ct_value_id old = add->out[0];
        CT_TRY(ct_graph_set_scope(g, product->scope, err));
        ct_graph_set_program(g, (ct_program_id)add->program);
        ct_value_id fused;
        const int32_t tail = ct_graph_order_len(g);
        const bool recompute = add->is_recompute;
        CT_TRY(ct_op_emit(g, CT_OP_matmul, product->attrs, in, 3, &fused, err));
        ct_graph_node(g, ct_graph_value_c(g, fused)->producer)->is_recompute = recompute;
        CT_TRY(cti_order_move_tail(g, tail, at, err));
        ct_graph_replace_uses(g, old, fused, at);
        *out_done = true;
        return CT_OK;
    }
    return CT_OK;
}

/* The nodes that were replaced stay behind without readers; the schedule pass drops them. */
ct_status ct_pass_fuse(ct_graph *g, ct_err *err)
{
    const int32_t n_values = ct_graph_n_values(g);
    int32_t *uses = CT_NEW_ARRAY(ct_graph_allocator(g), int32_t, n_values + 1, err);
    if (uses == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int32_t i = 0; i < ct_graph_order_len(g); i++) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[i]);
        for (int32_t k = 0; k < node->n_in; k++) {
            if (node->in[k] >= 0) {
                uses[node->in[k]]++;
            }
        }
    }
    ct_status st = CT_OK;
    for (int32_t i = 0; i < ct_graph_order_len(g) && st == CT_OK; i++) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[i]);
        bool done = false;
        if (node->op == CT_OP_add && node->in[0] < n_values && node->in[1] < n_values && node->in[0] != node->in[1]) {
            st = fuse_add(g, uses, i, &done, err);
            i += done; /* the add itself moved one place on; it is dead now */
        }
    }
    ct_alloc_free(ct_graph_allocator(g), uses);
    CT_TRY(st);
    return ct_graph_set_scope(g, "", err);
}
