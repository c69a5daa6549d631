/* SPDX-License-Identifier: Apache-2.0 */
/* A sum with what a node makes that can add it itself becomes that node's addend: products and the residual stream, the gradients
 * that meet at a norm's input. A product and the swiglu of it become one node, whose kernel finds the product in its caches. */
#include "passes/passes.h"

/* The node behind one side of the add at position `at`, where it may take the other side as its addend: nobody else reads that output,
 * and its other outputs are read behind the add only, to whose place it moves. */
static const ct_node *node_to_extend(const ct_graph *g, const ct_node *add, int side, int32_t at)
{
    const ct_value *v = ct_graph_value_c(g, add->in[side]);
    const ct_node *node = v->producer >= 0 ? ct_graph_node_c(g, v->producer) : NULL;
    if (node == NULL || !(ct_op_row(node->op)->flags & CT_OP_ADDEND) || node->n_in != ct_op_row(node->op)->n_in_min ||
        node->out[0] != add->in[side] || node->program != add->program || cti_only_reader(g, node->out[0]) != add) {
        return NULL;
    }
    for (int32_t o = 1; o < node->n_out; o++) {
        if (cti_first_use(g, node->out[o]) < at) {
            return NULL;
        }
    }
    return node;
}

static ct_status extend(ct_graph *g, const ct_node *add, const ct_node *node, ct_value_id addend, int32_t at, ct_err *err)
{
    ct_value_id *in = ct_arena_alloc(ct_graph_arena(g), (size_t)(node->n_in + 1 + node->n_out) * sizeof *in, err);
    if (in == NULL) {
        return CT_ERR_MEMORY;
    }
    ct_value_id *out = in + node->n_in + 1;
    for (int32_t i = 0; i < node->n_in; i++) {
        in[i] = node->in[i];
    }
    in[node->n_in] = addend;
    const ct_node from = *node;
    const ct_node_id dead[2] = {ct_graph_value_c(g, from.out[0])->producer, ct_graph_order(g)[at]};
    const ct_value_id sum = add->out[0];
    const bool is_recompute = add->is_recompute;
    const int32_t tail = ct_graph_order_len(g);
    CT_TRY(ct_graph_set_scope(g, from.scope, err));
    ct_graph_set_program(g, (ct_program_id)from.program);
    CT_TRY(ct_op_emit(g, from.op, from.attrs, in, from.n_in + 1, out, err));
    ct_graph_node(g, ct_graph_value_c(g, out[0])->producer)->is_recompute = is_recompute;
    CT_TRY(cti_order_move_tail(g, tail, at, err));
    ct_graph_replace_uses(g, sum, out[0], at);
    for (int32_t o = 1; o < from.n_out; o++) {
        ct_graph_replace_uses(g, from.out[o], out[o], at);
    }
    return cti_order_drop(g, dead, 2, err);
}

/* The product that the swiglu at position `at` reads first, where one node can make both. */
static const ct_node *product_before(const ct_graph *g, const ct_node *swiglu, int32_t at)
{
    const ct_value *v = ct_graph_value_c(g, swiglu->in[0]);
    const ct_node *node = v->producer >= 0 ? ct_graph_node_c(g, v->producer) : NULL;
    const bool is_one = node != NULL && node->op == CT_OP_matmul && node->n_in == 2 && node->program == swiglu->program &&
                        node->is_recompute == swiglu->is_recompute;
    return is_one && cti_first_use(g, swiglu->in[0]) == at ? node : NULL;
}

static ct_status join_swiglu(ct_graph *g, const ct_node *swiglu, const ct_node *product, int32_t at, ct_err *err)
{
    const ct_value_id in[2] = {product->in[0], product->in[1]}, gu = product->out[0], y = swiglu->out[0];
    const ct_node_id dead[2] = {ct_graph_value_c(g, gu)->producer, ct_graph_order(g)[at]};
    const bool is_recompute = swiglu->is_recompute;
    const int32_t tail = ct_graph_order_len(g);
    ct_value_id out[2];
    CT_TRY(ct_graph_set_scope(g, product->scope, err));
    ct_graph_set_program(g, (ct_program_id)product->program);
    CT_TRY(ct_op_emit(g, CT_OP_matmul_swiglu, product->attrs, in, 2, out, err));
    ct_graph_node(g, ct_graph_value_c(g, out[0])->producer)->is_recompute = is_recompute;
    CT_TRY(cti_order_move_tail(g, tail, at, err));
    ct_graph_replace_uses(g, gu, out[0], at);
    ct_graph_replace_uses(g, y, out[1], at);
    return cti_order_drop(g, dead, 2, err);
}

ct_status ct_pass_fuse(ct_graph *g, ct_err *err)
{
    for (int32_t at = 0; at < ct_graph_order_len(g); at++) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[at]);
        const ct_node *product = node->op == CT_OP_swiglu ? product_before(g, node, at) : NULL;
        if (product != NULL) {
            CT_TRY(join_swiglu(g, node, product, at, err));
            at--; /* two nodes before the next one became one */
            continue;
        }
        for (int side = 1; side >= 0 && node->op == CT_OP_add && node->in[0] != node->in[1]; side--) {
            const ct_node *other = node_to_extend(g, node, side, at);
            if (other != NULL) {
                CT_TRY(extend(g, node, other, node->in[1 - side], at, err));
                at--;
                break;
            }
        }
    }
    return ct_graph_set_scope(g, "", err);
}
