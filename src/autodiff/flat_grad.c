/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient of flat_split: the gradients of its views laid end to end; those of views that nobody read are
 * zero. */
#include "autodiff/grad.h"

typedef struct part {
    int64_t offset;
    ct_value_id grad;
} part;

/* Insertion sort: views nearly always come in order. */
static void insert(part *parts, int32_t n, part p)
{
    int32_t at = n;
    while (at > 0 && parts[at - 1].offset > p.offset) {
        parts[at] = parts[at - 1];
        at--;
    }
    parts[at] = p;
}

ct_status cti_rule_flat_split(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    const ct_attrs_flat_split *attrs = node->attrs;
    ct_graph *g = ct_grad_graph(ctx);
    const size_t n_views = (size_t)node->n_out;
    part *parts = ct_arena_alloc(ct_graph_arena(g), n_views * sizeof *parts, err);
    ct_value_id *in = ct_arena_alloc(ct_graph_arena(g), n_views * sizeof *in, err);
    int64_t *offsets = ct_arena_alloc(ct_graph_arena(g), n_views * sizeof *offsets, err);
    if (parts == NULL || in == NULL || offsets == NULL) {
        return CT_ERR_MEMORY;
    }
    int32_t n = 0;
    for (int32_t i = 0; i < node->n_out; i++) {
        ct_value_id dy;
        CT_TRY(ct_grad_output(ctx, node, i, &dy, err));
        if (dy != CT_NO_VALUE) {
            insert(parts, n, (part){.offset = attrs->offsets.items[i], .grad = dy});
            n++;
        }
    }
    for (int32_t i = 0; i < n; i++) {
        in[i] = parts[i].grad;
        offsets[i] = parts[i].offset;
    }
    /* Views that overlap are refused by flat_concat's shape rule. */
    const ct_attrs_flat_concat back = {.offsets = {.n = n, .items = offsets},
                                       .total = ct_graph_value_c(g, node->in[0])->dims[0]};
    ct_value_id dflat;
    CT_TRY(ct_op_emit(g, CT_OP_flat_concat, &back, in, n, &dflat, err));
    return ct_grad_add(ctx, node->in[0], dflat, err);
}
