/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of rope, qkv_rope and rotary_mul. All rotate pairs, so the transpose is the rotation by the opposite
 * angle; for rotary_mul that holds because rope_rows writes each cos and sin twice, side by side. */
#include "autodiff/grad.h"

static ct_status rotate_back(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    const ct_attrs_rope *attrs = node->attrs;
    const ct_attrs_rope back = {.inverse = !attrs->inverse};
    ct_value_id dy, dx;
    CT_TRY(ct_grad_output(ctx, node, 0, &dy, err));
    const ct_value_id in[] = {dy, node->in[1], node->in[2]};
    CT_TRY(ct_op_emit(ct_grad_graph(ctx), node->op, &back, in, 3, &dx, err));
    return ct_grad_add(ctx, node->in[0], dx, err);
}

ct_status cti_rule_rope(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    return rotate_back(ctx, node, err);
}

ct_status cti_rule_rotary_mul(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    return rotate_back(ctx, node, err);
}

/* An output that nothing depends on has a gradient of zeros. */
ct_status cti_rule_qkv_rope(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    ct_graph *g = ct_grad_graph(ctx);
    ct_value_id in[5] = {[3] = node->in[1], [4] = node->in[2]}, dqkv;
    for (int32_t i = 0; i < 3; i++) {
        CT_TRY(ct_grad_output(ctx, node, i, &in[i], err));
        if (in[i] == CT_NO_VALUE) {
            ct_value v = *ct_graph_value_c(g, node->out[i]);
            const ct_attrs_fill zeros = {.dtype = v.dtype, .dims = {v.ndim, v.dims}};
            CT_TRY(ct_op_emit(g, CT_OP_fill, &zeros, NULL, 0, &in[i], err));
        }
    }
    CT_TRY(ct_op_emit(g, CT_OP_qkv_rope_grad, NULL, in, 5, &dqkv, err));
    return ct_grad_add(ctx, node->in[0], dqkv, err);
}
