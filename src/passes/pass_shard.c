/* SPDX-License-Identifier: Apache-2.0 */
/* Placements -> local shapes: tensor parallelism first (pass_tensor.c inserts what it needs), then the rows of the batch on the data axes. */
#include <inttypes.h>

#include "passes/passes.h"
#include "passes/passes_internal.h"

static bool is_batch(const ct_value *v, int axis)
{
    return v->placement[axis].kind == CT_PLACE_SHARD && v->placement[axis].dim == 0;
}

static bool follows_rows(const ct_op *op, bool all_sharded)
{
    switch (op->shard) {
    case CT_SHARD_ROWS:
    case CT_SHARD_HALVES:
    case CT_SHARD_RESHAPE:
    case CT_SHARD_HEADS:
    case CT_SHARD_PRODUCT:
    case CT_SHARD_LOOKUP:
    case CT_SHARD_LOSS:
    case CT_SHARD_COLLECTIVE: /* over another axis, which cuts dim 0 within this one */
        return true;
    case CT_SHARD_ELEMENT:
        return all_sharded;
    case CT_SHARD_REPLICATED:
    case CT_SHARD_COUNT:
        break;
    }
    return false;
}

/* Placement of the node's outputs on one data axis, from its inputs'. */
static ct_status follow(ct_graph *g, const ct_node *node, int axis, ct_err *err)
{
    const ct_op *op = ct_op_row(node->op);
    int32_t n_sharded = 0, n_there = 0;
    for (int32_t i = 0; i < node->n_in; i++) {
        if (node->in[i] == CT_NO_VALUE) {
            continue;
        }
        const ct_value *v = ct_graph_value_c(g, node->in[i]);
        const uint8_t kind = v->placement[axis].kind;
        if (kind != CT_PLACE_REPLICATE && !is_batch(v, axis)) {
            return CT_FAIL(err, CT_ERR_UNSUPPORTED,
                           "node '%s' (%s): input %d is neither replicated nor split along dim 0 on axis %s", node->scope,
                           op->name, i, ct_axis_name((ct_axis)axis));
        }
        n_sharded += kind == CT_PLACE_SHARD;
        n_there++;
    }
    if (n_sharded == 0) {
        return CT_OK;
    }
    if (!follows_rows(op, n_sharded == n_there)) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "node '%s' (%s) cannot be split along dim 0 on axis %s", node->scope,
                       op->name, ct_axis_name((ct_axis)axis));
    }
    for (int32_t i = 0; i < node->n_out; i++) {
        const bool partial = op->shard == CT_SHARD_LOSS && i != 1;
        ct_graph_value(g, node->out[i])->placement[axis] = partial ? ct_partial() : ct_shard(0);
    }
    return CT_OK;
}

/* Divides the split dim of values without a producer; reshapes leave dim 0 to be inferred. */
static ct_status localize(ct_graph *g, const ct_mesh *mesh, ct_err *err)
{
    for (ct_value_id id = 0; id < ct_graph_n_values(g); id++) {
        ct_value *v = ct_graph_value(g, id);
        for (int axis = 0; axis < CT_AXIS_TP && v->producer < 0; axis++) {
            const int64_t degree = mesh->degree[axis];
            if (degree == 1 || v->placement[axis].kind != CT_PLACE_SHARD) {
                continue;
            }
            if (v->dims[0] % degree != 0) {
                return CT_FAIL(err, CT_ERR_SHAPE, "'%s': %" PRId64 " rows do not divide by the %s degree %" PRId64,
                               v->name, v->dims[0], ct_axis_name((ct_axis)axis), degree);
            }
            v->dims[0] /= degree;
        }
    }
    return CT_OK;
}

ct_status ct_pass_shard(ct_graph *g, const ct_mesh *mesh, const ct_shard_options *options, ct_err *err)
{
    if (mesh->degree[CT_AXIS_TP] > 1) {
        CT_TRY(cti_pass_tensor(g, mesh, options, err));
    }
    for (int axis = 0; axis < CT_AXIS_TP; axis++) {
        for (int32_t i = 0; mesh->degree[axis] > 1 && i < ct_graph_order_len(g); i++) {
            CT_TRY(follow(g, ct_graph_node_c(g, ct_graph_order(g)[i]), axis, err));
        }
    }
    CT_TRY(localize(g, mesh, err));
    CT_TRY(ct_graph_reinfer(g, err));
    return ct_graph_verify(g, err);
}
