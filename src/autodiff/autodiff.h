/* SPDX-License-Identifier: Apache-2.0 */
/* The map of the room `autodiff`: one gradient rule per op, and the walk that applies them.
 *
 *   autodiff/autodiff.h       ct_autodiff, and what tables and docs ask about an op's gradient
 *   autodiff/autodiff.c       the walk: which values need a gradient, reverse order, sums of fan-in
 *   autodiff/grad_list.h      exactly one row per op: a rule or a reason
 *   autodiff/grad.h           what rules are written with
 *   autodiff/<family>_grad.c  the rules
 *
 * The convention for collectives: the loss is the sum of the losses of all ranks, and a rule is the adjoint of the op as a linear
 * map over the values of all ranks; a value that is the same on every rank counts once. So the gradient of all_gather, whose ranks
 * use their copies each in their own way, is reduce_scatter; of all_reduce, whose result every rank uses alike, the identity; and of
 * owe, which hands such a value to ranks that use it each in their own way, all_reduce (mesh/placement.h).
 *
 * It takes no second derivatives, and does not decide what is kept in memory (the recompute pass does). */
#ifndef CTI_AUTODIFF_AUTODIFF_H
#define CTI_AUTODIFF_AUTODIFF_H

#include "ctitan/ops.h"

/**
 * Appends the nodes of program BACKWARD that compute the gradient of `loss` with respect to wrt[0..n_wrt).
 *
 * loss       output 0 of a linear_cross_entropy node that no node reads. That op makes the gradients of its
 *            inputs itself, and the gradient of the loss by itself is 1, so nothing is multiplied by it.
 * wrt        float values; they may be activations
 * out_grads  n_wrt ids, CT_NO_VALUE where wrt[i] does not reach the loss. A gradient has the dims and the
 *            dtype of its value, but for values read by an all_gather or an owe, which get that op's reduce_dtype.
 *
 * Nodes come in reverse order of the forward nodes, in the scope of the forward node they answer to. Where a
 * value is read several times its gradients are added in the order in which they are made. The current scope
 * and program are unchanged.
 *
 * Fails, with the order as it was: ERR_UNSUPPORTED for another root, an op on the way that has no rule (with
 * node and reason), or an input on the way for which the rule has no gradient; ERR_RANGE for ids that do not
 * exist.
 *
 * Threads: one per graph.
 */
CT_MUST_CHECK ct_status ct_autodiff(ct_graph *g, ct_value_id loss, const ct_value_id *wrt, int32_t n_wrt,
                                    ct_value_id *out_grads, ct_err *err);

/* Why an op has no gradient rule; NULL where it has one, or for an unknown id. */
const char *cti_grad_why_not(int32_t op);

#endif
