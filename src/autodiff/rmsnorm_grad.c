/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient of rmsnorm, from the rstd that the forward op saved. */
#include "autodiff/grad.h"

ct_status cti_rule_rmsnorm(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    ct_value_id dy, d[2];
    CT_TRY(ct_grad_output(ctx, node, 0, &dy, err));
    const ct_value_id in[] = {dy, node->in[0], node->in[1], node->out[1]};
    CT_TRY(ct_op_emit(ct_grad_graph(ctx), CT_OP_rmsnorm_grad, NULL, in, 4, d, err));
    CT_TRY(ct_grad_add(ctx, node->in[0], d[0], err));
    return ct_grad_add(ctx, node->in[1], d[1], err);
}
