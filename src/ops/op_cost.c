/* SPDX-License-Identifier: Apache-2.0 */
/* What a node costs: FLOPs by its row's rule, bytes by its shapes. */
#include "ops/ops.h"

enum { MAX_COUNTED_IN = 16 }; /* rows with a FLOPs rule have fewer inputs */

double cti_node_flops(const ct_graph *graph, const ct_node *node)
{
    const ct_op *op = ct_op_row(node->op);
    if (op == NULL || op->flops == NULL) {
        return 0.0;
    }
    CT_ASSERT(node->n_in <= MAX_COUNTED_IN);
    const ct_value *in[MAX_COUNTED_IN];
    for (int32_t i = 0; i < node->n_in; i++) {
        in[i] = node->in[i] == CT_NO_VALUE ? NULL : ct_graph_value_c(graph, node->in[i]);
    }
    return op->flops(in, node->n_in, node->attrs);
}

double cti_node_bytes(const ct_graph *graph, const ct_node *node)
{
    const ct_op *op = ct_op_row(node->op);
    if (op != NULL && (op->flags & CT_OP_VIEW) != 0) {
        return 0.0;
    }
    double bytes = 0.0;
    for (int32_t i = 0; i < node->n_in; i++) {
        if (node->in[i] != CT_NO_VALUE) {
            bytes += (double)ct_value_size_bytes(ct_graph_value_c(graph, node->in[i]));
        }
    }
    for (int32_t i = 0; i < node->n_out; i++) {
        bytes += (double)ct_value_size_bytes(ct_graph_value_c(graph, node->out[i]));
    }
    return bytes;
}

double ct_graph_flops(const ct_graph *graph, ct_program_id program)
{
    double flops = 0.0;
    for (int32_t i = 0; i < ct_graph_order_len(graph); i++) {
        const ct_node *node = ct_graph_node_c(graph, ct_graph_order(graph)[i]);
        if (node->program == program) {
            flops += cti_node_flops(graph, node);
        }
    }
    return flops;
}
