/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of reshape, transpose, slice, concat: the elements go back where they came from. */
#include "autodiff/grad.h"

ct_status cti_rule_reshape(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    ct_value_id dy, dx;
    CT_TRY(ct_grad_output(ctx, node, 0, &dy, err));
    CT_TRY(cti_grad_reshape_like(ct_grad_graph(ctx), dy, node->in[0], &dx, err));
    return ct_grad_add(ctx, node->in[0], dx, err);
}

/* y.dims[i] = x.dims[perm[i]], so the gradient's perm is the inverse. */
ct_status cti_rule_transpose(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    const ct_attrs_transpose *attrs = node->attrs;
    int64_t inverse[CT_MAX_NDIM];
    for (int64_t i = 0; i < attrs->perm.n; i++) {
        inverse[attrs->perm.items[i]] = i;
    }
    const ct_attrs_transpose back = {.perm = {.n = attrs->perm.n, .items = inverse}};
    ct_value_id dy, dx;
    CT_TRY(ct_grad_output(ctx, node, 0, &dy, err));
    CT_TRY(ct_op_emit(ct_grad_graph(ctx), CT_OP_transpose, &back, &dy, 1, &dx, err));
    return ct_grad_add(ctx, node->in[0], dx, err);
}

ct_status cti_rule_slice(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    const ct_attrs_slice *attrs = node->attrs;
    ct_graph *g = ct_grad_graph(ctx);
    const ct_attrs_slice_grad back = {
        .dim = attrs->dim, .start = attrs->start, .full = ct_graph_value_c(g, node->in[0])->dims[attrs->dim]};
    ct_value_id dy, dx;
    CT_TRY(ct_grad_output(ctx, node, 0, &dy, err));
    CT_TRY(ct_op_emit(g, CT_OP_slice_grad, &back, &dy, 1, &dx, err));
    return ct_grad_add(ctx, node->in[0], dx, err);
}

ct_status cti_rule_concat(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    const ct_attrs_concat *attrs = node->attrs;
    ct_graph *g = ct_grad_graph(ctx);
    ct_value_id dy, dx;
    CT_TRY(ct_grad_output(ctx, node, 0, &dy, err));
    ct_attrs_slice part = {.dim = attrs->dim};
    for (int32_t i = 0; i < node->n_in; i++) {
        part.len = ct_graph_value_c(g, node->in[i])->dims[attrs->dim];
        if (ct_grad_is_wanted(ctx, node->in[i])) {
            CT_TRY(ct_op_emit(g, CT_OP_slice, &part, &dy, 1, &dx, err));
            CT_TRY(ct_grad_add(ctx, node->in[i], dx, err));
        }
        part.start += part.len;
    }
    return CT_OK;
}
