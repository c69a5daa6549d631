/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of sdpa and sdpa_tnd, from the outputs and log-sum-exps that the forward ops saved. */
#include "autodiff/grad.h"

/* (q, k, v, masks...) -> (o, lse) is answered by (do, q, k, v, o, lse, masks...) -> (dq, dk, dv). */
static ct_status attention(ct_grad_ctx *ctx, const ct_node *node, int32_t grad_op, ct_err *err)
{
    enum { QKV = 3, MAX_MASKS = 3 };
    CT_ASSERT(node->n_in - QKV <= MAX_MASKS);
    ct_value_id in[6 + MAX_MASKS], d[QKV];
    CT_TRY(ct_grad_output(ctx, node, 0, &in[0], err));
    for (int32_t i = 0; i < QKV; i++) {
        in[1 + i] = node->in[i];
    }
    in[4] = node->out[0];
    in[5] = node->out[1];
    for (int32_t i = QKV; i < node->n_in; i++) {
        in[3 + i] = node->in[i];
    }
    CT_TRY(ct_op_emit(ct_grad_graph(ctx), grad_op, node->attrs, in, 3 + node->n_in, d, err));
    for (int32_t i = 0; i < QKV; i++) {
        CT_TRY(ct_grad_add(ctx, node->in[i], d[i], err));
    }
    return CT_OK;
}

ct_status cti_rule_sdpa(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    return attention(ctx, node, CT_OP_sdpa_grad, err);
}

ct_status cti_rule_sdpa_tnd(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    return attention(ctx, node, CT_OP_sdpa_tnd_grad, err);
}
