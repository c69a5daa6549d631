/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient of matmul, y = op(a) op(b) + c:  d op(a) = dy op(b)^T,  d op(b) = op(a)^T dy,  dc = dy.
 * Written out for the four cases so that no transpose is ever made:
 *
 *     ta tb   da            db
 *      -  -   dy b^T        a^T dy
 *      -  t   dy b          dy^T a
 *      t  -   b dy^T        a dy
 *      t  t   b^T dy^T      dy^T a^T
 *
 * Operands with several leading dims are matrices here; results get the operand's dims back by a view. */
#include "autodiff/grad.h"

typedef struct product {
    bool dy_is_left, t_left, t_right;
} product;

static const product of_a[2][2] = {/* [ta][tb], with b */
                                   {{true, false, true}, {true, false, false}},
                                   {{false, false, true}, {false, true, true}}};
static const product of_b[2][2] = {/* [ta][tb], with a */
                                   {{false, true, false}, {true, true, false}},
                                   {{false, false, false}, {true, true, true}}};

static ct_status add_product(ct_grad_ctx *ctx, product p, ct_value_id dy, ct_value_id other, ct_value_id of,
                             ct_err *err)
{
    if (!ct_grad_is_wanted(ctx, of)) {
        return CT_OK;
    }
    ct_graph *g = ct_grad_graph(ctx);
    ct_value_id d;
    CT_TRY(ct_op_matmul(g, p.dy_is_left ? dy : other, p.dy_is_left ? other : dy, CT_NO_VALUE, p.t_left,
                        p.t_right, &d, err));
    CT_TRY(cti_grad_reshape_like(g, d, of, &d, err));
    return ct_grad_add(ctx, of, d, err);
}

ct_status cti_rule_matmul(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    const ct_attrs_matmul *attrs = node->attrs;
    const ct_value_id a = node->in[0], b = node->in[1];
    ct_value_id dy;
    CT_TRY(ct_grad_output(ctx, node, 0, &dy, err));
    CT_TRY(add_product(ctx, of_a[attrs->ta][attrs->tb], dy, b, a, err));
    CT_TRY(add_product(ctx, of_b[attrs->ta][attrs->tb], dy, a, b, err));
    return node->n_in == 3 ? ct_grad_add(ctx, node->in[2], dy, err) : CT_OK;
}
