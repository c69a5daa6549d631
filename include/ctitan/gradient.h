/* SPDX-License-Identifier: Apache-2.0 */
/* What gradient rules are written with. A rule is called for a node of which some output has a gradient and some input wants one; it emits
 * nodes (program BACKWARD, in the scope of the node) and hands their outputs to ct_grad_add. Every float input that is wanted must get one.
 *
 *     static ct_status scale_gradient(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
 *     {
 *         const ct_attrs_scale *attrs = node->attrs;
 *         ct_value_id dy, dx;
 *         CT_TRY(ct_grad_output(ctx, node, 0, &dy, err));
 *         CT_TRY(ct_op_scale(ct_grad_graph(ctx), dy, attrs->alpha, &dx, err));
 *         return ct_grad_add(ctx, node->in[0], dx, err);
 *     }
 */
#ifndef CTITAN_GRADIENT_H
#define CTITAN_GRADIENT_H

#include "ctitan/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

ct_graph *ct_grad_graph(const ct_grad_ctx *ctx);
/* Does this value need a gradient? False for CT_NO_VALUE. A rule may skip work for those that do not. */
bool ct_grad_is_wanted(const ct_grad_ctx *ctx, ct_value_id value);
/* The gradient of output `out` in that output's dtype; CT_NO_VALUE where it has none (only rows that take several outputs). */
CT_MUST_CHECK ct_status ct_grad_output(ct_grad_ctx *ctx, const ct_node *node, int32_t out, ct_value_id *out_grad, ct_err *err);
/* Adds `grad` to the gradient of `value`; nothing happens where it is not wanted. ERR_STATE where the dims differ. */
CT_MUST_CHECK ct_status ct_grad_add(ct_grad_ctx *ctx, ct_value_id value, ct_value_id grad, ct_err *err);

#ifdef __cplusplus
}
#endif
#endif
