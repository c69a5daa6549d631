/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of the collectives: adjoints over the values of all ranks (see autodiff.h for the convention). */
#include "autodiff/grad.h"

/* The output's gradient in reduce_dtype, whatever dtype it was made in; -1: the output's own. */
static ct_status as_reduced(ct_grad_ctx *ctx, const ct_node *node, int64_t reduce_dtype, ct_value_id *out, ct_err *err)
{
    return reduce_dtype < 0 ? ct_grad_output(ctx, node, 0, out, err)
                            : cti_grad_cast(ct_grad_graph(ctx), cti_grad_output_as_made(ctx, node, 0), (ct_dtype)reduce_dtype, out, err);
}

ct_status cti_rule_owe(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    const ct_attrs_all_gather *attrs = node->attrs;
    const ct_attrs_collective back = {.axis = attrs->axis, .degree = attrs->degree};
    ct_value_id dy, dx;
    CT_TRY(as_reduced(ctx, node, attrs->reduce_dtype, &dy, err));
    CT_TRY(ct_op_emit(ct_grad_graph(ctx), CT_OP_all_reduce, &back, &dy, 1, &dx, err));
    return ct_grad_add(ctx, node->in[0], dx, err);
}

ct_status cti_rule_all_gather(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    const ct_attrs_all_gather *attrs = node->attrs;
    const ct_attrs_collective back = {.axis = attrs->axis, .degree = attrs->degree};
    ct_graph *g = ct_grad_graph(ctx);
    ct_value_id dy, dx;
    CT_TRY(as_reduced(ctx, node, attrs->reduce_dtype, &dy, err));
    CT_TRY(ct_op_emit(g, CT_OP_reduce_scatter, &back, &dy, 1, &dx, err));
    return ct_grad_add(ctx, node->in[0], dx, err);
}

ct_status cti_rule_reduce_scatter(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    const ct_attrs_collective *attrs = node->attrs;
    ct_graph *g = ct_grad_graph(ctx);
    ct_value_id dy, dx;
    CT_TRY(ct_grad_output(ctx, node, 0, &dy, err));
    const ct_attrs_all_gather back = {.axis = attrs->axis, .degree = attrs->degree, .reduce_dtype = -1};
    CT_TRY(ct_op_emit(g, CT_OP_all_gather, &back, &dy, 1, &dx, err));
    return ct_grad_add(ctx, node->in[0], dx, err);
}

/* The sum is the same on every rank, and what depends on it is computed on each: so is the gradient, of every rank's part. */
ct_status cti_rule_all_reduce(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    ct_value_id dy;
    CT_TRY(ct_grad_output(ctx, node, 0, &dy, err));
    return ct_grad_add(ctx, node->in[0], dy, err);
}
