/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient of embedding: rows of dy added up by id. */
#include "autodiff/grad.h"

ct_status cti_rule_embedding(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    ct_graph *g = ct_grad_graph(ctx);
    ct_value_id dy, dw;
    CT_TRY(ct_grad_output(ctx, node, 0, &dy, err));
    const ct_attrs_embedding_grad attrs = {.vocab = ct_graph_value_c(g, node->in[0])->dims[0]};
    CT_TRY(ct_op_emit(g, CT_OP_embedding_grad, &attrs, (ct_value_id[]){dy, node->in[1]}, 2, &dw, err));
    return ct_grad_add(ctx, node->in[0], dw, err);
}
