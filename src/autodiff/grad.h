/* SPDX-License-Identifier: Apache-2.0 */
/* What gradient rules are written with. A rule is called for a node of which some output has a gradient and
 * some input wants one; it emits nodes and hands their outputs to cti_grad_add.
 *
 *     ct_status cti_rule_scale(cti_grad_ctx *ctx, const ct_node *node, ct_err *err)
 *     {
 *         ct_value_id dy, dx;
 *         CT_TRY(cti_grad_output(ctx, node, 0, &dy, err));
 *         const ct_attrs_scale *attrs = node->attrs;
 *         CT_TRY(ct_op_scale(cti_grad_graph(ctx), dy, attrs->alpha, &dx, err));
 *         return cti_grad_add(ctx, node->in[0], dx, err);
 *     }
 */
#ifndef CTI_AUTODIFF_GRAD_H
#define CTI_AUTODIFF_GRAD_H

#include "autodiff/autodiff.h"
#include "autodiff/grad_list.h"
#include "ir/ir.h"

typedef struct cti_grad_ctx cti_grad_ctx;
typedef ct_status (*cti_grad_rule)(cti_grad_ctx *ctx, const ct_node *node, ct_err *err);

ct_graph *cti_grad_graph(const cti_grad_ctx *ctx);
/* Does this value need a gradient? False for CT_NO_VALUE. A rule may skip work for those that do not. */
bool cti_grad_is_wanted(const cti_grad_ctx *ctx, ct_value_id value);
/* Is the node the root, the one that makes the loss? */
bool cti_grad_is_root(const cti_grad_ctx *ctx, const ct_node *node);
/* The gradient of output `out` in that output's dtype; CT_NO_VALUE where it has none (only rows that take
 * several outputs). */
CT_MUST_CHECK ct_status cti_grad_output(cti_grad_ctx *ctx, const ct_node *node, int32_t out,
                                        ct_value_id *out_grad, ct_err *err);
/* The same in whatever dtype it was made. */
ct_value_id cti_grad_output_as_made(const cti_grad_ctx *ctx, const ct_node *node, int32_t out);
/* Adds `grad` to the gradient of `value`; nothing happens where it is not wanted. ERR_STATE where the dims
 * differ. */
CT_MUST_CHECK ct_status cti_grad_add(cti_grad_ctx *ctx, ct_value_id value, ct_value_id grad, ct_err *err);
/* Casts, or hands `a` through where it has that dtype already. */
CT_MUST_CHECK ct_status cti_grad_cast(ct_graph *g, ct_value_id a, ct_dtype dtype, ct_value_id *out,
                                      ct_err *err);
/* Reshapes to the dims of `like`, or hands `a` through where it has them already. */
CT_MUST_CHECK ct_status cti_grad_reshape_like(ct_graph *g, ct_value_id a, ct_value_id like, ct_value_id *out,
                                              ct_err *err);

#define CTI_GRAD_DECLARE(op, outs) \
    ct_status cti_rule_##op(cti_grad_ctx *ctx, const ct_node *node, ct_err *err);
#define CTI_GRAD_SKIP(op, reason)
CTI_GRAD_LIST(CTI_GRAD_DECLARE, CTI_GRAD_SKIP)
#undef CTI_GRAD_DECLARE
#undef CTI_GRAD_SKIP

#endif
