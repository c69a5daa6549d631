/* SPDX-License-Identifier: Apache-2.0 */
/* The compute dtype. */
#include "passes/passes.h"

ct_status ct_pass_precision(ct_graph *g, ct_dtype compute, ct_err *err)
{
    const int32_t n_values = ct_graph_n_values(g);
    for (ct_value_id id = 0; id < n_values; id++) {
        const ct_value *v = ct_graph_value_c(g, id);
        const int32_t at = v->kind == CT_VALUE_PARAM && v->dtype != compute ? cti_first_use(g, id) : 0;
        if (v->kind != CT_VALUE_PARAM || v->dtype == compute || at == ct_graph_order_len(g)) {
            continue;
        }
        const ct_node *user = ct_graph_node_c(g, ct_graph_order(g)[at]);
        CT_TRY(ct_graph_set_scope(g, user->scope, err));
        ct_graph_set_program(g, (ct_program_id)user->program);
        const int32_t tail = ct_graph_order_len(g);
        ct_value_id cast;
        CT_TRY(ct_op_cast(g, id, compute, &cast, err));
        CT_TRY(cti_order_move_tail(g, tail, at, err));
        ct_graph_replace_uses(g, id, cast, at);
    }
    CT_TRY(ct_graph_set_scope(g, "", err));
    CT_TRY(ct_graph_reinfer(g, err));
    return ct_graph_verify(g, err);
}
