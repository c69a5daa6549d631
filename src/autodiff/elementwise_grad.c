/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of add, mul, scale, cast, silu_mul, swiglu. */
#include "autodiff/grad.h"

ct_status cti_rule_add(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    ct_value_id dy;
    CT_TRY(ct_grad_output(ctx, node, 0, &dy, err));
    CT_TRY(ct_grad_add(ctx, node->in[0], dy, err));
    return ct_grad_add(ctx, node->in[1], dy, err);
}

ct_status cti_rule_mul(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    ct_graph *g = ct_grad_graph(ctx);
    ct_value_id dy, d;
    CT_TRY(ct_grad_output(ctx, node, 0, &dy, err));
    for (int32_t i = 0; i < 2; i++) {
        if (ct_grad_is_wanted(ctx, node->in[i])) {
            CT_TRY(ct_op_mul(g, dy, node->in[1 - i], &d, err));
            CT_TRY(ct_grad_add(ctx, node->in[i], d, err));
        }
    }
    return CT_OK;
}

ct_status cti_rule_scale(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    const ct_attrs_scale *attrs = node->attrs;
    ct_value_id dy, dx;
    CT_TRY(ct_grad_output(ctx, node, 0, &dy, err));
    CT_TRY(ct_op_scale(ct_grad_graph(ctx), dy, attrs->alpha, &dx, err));
    return ct_grad_add(ctx, node->in[0], dx, err);
}

/* Back to the input's dtype, from the dtype in which the gradient was made (all_gather's reduce_dtype, at
 * times). */
ct_status cti_rule_cast(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    ct_graph *g = ct_grad_graph(ctx);
    const ct_dtype dtype = ct_graph_value_c(g, node->in[0])->dtype;
    ct_value_id dx;
    CT_TRY(cti_grad_cast(g, cti_grad_output_as_made(ctx, node, 0), dtype, &dx, err));
    return ct_grad_add(ctx, node->in[0], dx, err);
}

ct_status cti_rule_silu_mul(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    ct_value_id dy, d[2];
    CT_TRY(ct_grad_output(ctx, node, 0, &dy, err));
    const ct_value_id in[] = {dy, node->in[0], node->in[1]};
    CT_TRY(ct_op_emit(ct_grad_graph(ctx), CT_OP_silu_mul_grad, NULL, in, 3, d, err));
    CT_TRY(ct_grad_add(ctx, node->in[0], d[0], err));
    return ct_grad_add(ctx, node->in[1], d[1], err);
}

ct_status cti_rule_swiglu(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    ct_value_id dy, dgu;
    CT_TRY(ct_grad_output(ctx, node, 0, &dy, err));
    const ct_value_id in[] = {dy, node->in[0]};
    CT_TRY(ct_op_emit(ct_grad_graph(ctx), CT_OP_swiglu_grad, NULL, in, 2, &dgu, err));
    return ct_grad_add(ctx, node->in[0], dgu, err);
}
