/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of built-in ops, and what they are written with beside ctitan/gradient.h. */
#ifndef CTI_AUTODIFF_GRAD_H
#define CTI_AUTODIFF_GRAD_H

#include "autodiff/autodiff.h"
#include "autodiff/grad_list.h"
#include "ctitan/gradient.h"
#include "ir/ir.h"

/* Is the node the root, the one that makes the loss? */
bool cti_grad_is_root(const ct_grad_ctx *ctx, const ct_node *node);
/* The gradient of output `out` in whatever dtype it was made. */
ct_value_id cti_grad_output_as_made(const ct_grad_ctx *ctx, const ct_node *node, int32_t out);
/* Casts, or hands `a` through where it has that dtype already. */
CT_MUST_CHECK ct_status cti_grad_cast(ct_graph *g, ct_value_id a, ct_dtype dtype, ct_value_id *out,
                                      ct_err *err);
/* Reshapes to the dims of `like`, or hands `a` through where it has them already. */
CT_MUST_CHECK ct_status cti_grad_reshape_like(ct_graph *g, ct_value_id a, ct_value_id like, ct_value_id *out,
                                              ct_err *err);

#define CTI_GRAD_DECLARE(op, outs) \
    ct_status cti_rule_##op(ct_grad_ctx *ctx, const ct_node *node, ct_err *err);
#define CTI_GRAD_SKIP(op, reason)
CTI_GRAD_LIST(CTI_GRAD_DECLARE, CTI_GRAD_SKIP)
#undef CTI_GRAD_DECLARE
#undef CTI_GRAD_SKIP

#endif
