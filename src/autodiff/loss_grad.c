/* SPDX-License-Identifier: Apache-2.0 */
/* The root: linear_cross_entropy has made the gradients of its inputs in its forward pass. */
#include "autodiff/grad.h"

ct_status cti_rule_linear_cross_entropy(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    if (!cti_grad_is_root(ctx, node)) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "it is a loss inside a loss; a graph has one");
    }
    CT_TRY(ct_grad_add(ctx, node->in[0], node->out[1], err));
    return ct_grad_add(ctx, node->in[1], node->out[2], err);
}
