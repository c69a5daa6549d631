/* SPDX-License-Identifier: Apache-2.0 */
/* Dims and dtypes of every output again, in order, after a pass changed those of inputs. */
#include <string.h>

#include "ops/ops.h"

static ct_status reinfer_node(ct_graph *graph, ct_node *node, ct_value_spec *specs, ct_err *err)
{
    const ct_op *op = ct_op_row(node->op);
    CT_TRY(cti_op_infer(graph, op, node->attrs, node->in, node->n_in, specs, err));
    for (int32_t i = 0; i < node->n_out; i++) {
        ct_value *v = ct_graph_value(graph, node->out[i]);
        v->dtype = specs[i].dtype;
        v->ndim = specs[i].ndim;
        memset(v->dims, 0, sizeof v->dims);
        memcpy(v->dims, specs[i].dims, (size_t)specs[i].ndim * sizeof v->dims[0]);
        int64_t offset;
        const int32_t from = ct_op_alias(op, node->attrs, i, &offset);
        v->alias_of = from < 0 ? CT_NO_VALUE : node->in[from];
        v->alias_offset = offset;
    }
    return CT_OK;
}

ct_status ct_graph_reinfer(ct_graph *graph, ct_err *err)
{
    ct_value_spec *specs = CT_NEW_ARRAY(ct_graph_allocator(graph), ct_value_spec, CTI_OP_MAX_IN, err);
    if (specs == NULL) {
        return CT_ERR_MEMORY;
    }
    ct_status st = CT_OK;
    for (int32_t i = 0; i < ct_graph_order_len(graph) && st == CT_OK; i++) {
        ct_node *node = ct_graph_node(graph, ct_graph_order(graph)[i]);
        const ct_op *op = ct_op_row(node->op);
        if (op == NULL || ct_op_n_out(op, node->attrs) != node->n_out || node->n_out > CTI_OP_MAX_IN) {
            st = CT_FAIL(err, CT_ERR_STATE, "its op or its number of outputs is not as its row says");
        } else {
            st = reinfer_node(graph, node, specs, err);
        }
        if (st != CT_OK) {
            ct_err_prefix(err, "node %d in '%s'", (int)ct_graph_order(graph)[i], node->scope);
        }
    }
    ct_alloc_free(ct_graph_allocator(graph), specs);
    return st;
}
