/* SPDX-License-Identifier: Apache-2.0 */
/* Order of execution: dead nodes dropped, programs in their order, each program's nodes as they were given. */
#include "passes/passes_internal.h"

/* A node that must run whatever reads its outputs. */
static bool is_root(const ct_node *node, const ct_value_id *keep, int32_t n_keep)
{
    const ct_op *op = ct_op_row(node->op);
    if (op->flags & CT_OP_UPDATE) {
        return true;
    }
    for (int32_t o = 0; o < node->n_out; o++) {
        for (int32_t k = 0; k < n_keep; k++) {
            if (node->out[o] == keep[k]) {
                return true;
            }
        }
    }
    return false;
}

static int32_t mark_live(ct_graph *g, const ct_value_id *keep, int32_t n_keep, uint8_t *live_value, uint8_t *live_node)
{
    int32_t n_live = 0;
    for (int32_t i = ct_graph_order_len(g) - 1; i >= 0; i--) {
        const ct_node_id id = ct_graph_order(g)[i];
        const ct_node *node = ct_graph_node_c(g, id);
        bool live = is_root(node, keep, n_keep);
        for (int32_t o = 0; o < node->n_out && !live; o++) {
            live = live_value[node->out[o]];
        }
        if (!live) {
            continue;
        }
        live_node[id] = 1;
        n_live++;
        for (int32_t k = 0; k < node->n_in; k++) {
            if (node->in[k] >= 0) {
                live_value[node->in[k]] = 1;
            }
        }
    }
    return n_live;
}

static ct_status order_nodes(ct_graph *g, const uint8_t *live_node, int32_t n_live, ct_err *err)
{
    const ct_alloc *alloc = ct_graph_allocator(g);
    ct_node_id *ids = CT_NEW_ARRAY(alloc, ct_node_id, n_live + 1, err);
    if (ids == NULL) {
        return CT_ERR_MEMORY;
    }
    int32_t n = 0;
    for (int program = 0; program < CT_PROGRAM_COUNT; program++) {
        for (int32_t i = 0; i < ct_graph_order_len(g); i++) {
            const ct_node_id id = ct_graph_order(g)[i];
            if (live_node[id] && ct_graph_node_c(g, id)->program == program) {
                ct_graph_node(g, id)->stream = 0;
                ct_graph_node(g, id)->wait = 0;
                ids[n++] = id;
            }
        }
    }
    const ct_status st = ct_graph_set_order(g, ids, n, err);
    ct_alloc_free(alloc, ids);
    return st;
}

ct_status ct_pass_schedule(ct_graph *g, const ct_value_id *keep, int32_t n_keep, bool overlap, ct_err *err)
{
    const ct_alloc *alloc = ct_graph_allocator(g);
    uint8_t *live_value = CT_NEW_ARRAY(alloc, uint8_t, ct_graph_n_values(g) + 1, err);
    uint8_t *live_node = CT_NEW_ARRAY(alloc, uint8_t, ct_graph_n_nodes(g) + 1, err);
    ct_status st = CT_ERR_MEMORY;
    if (live_value != NULL && live_node != NULL) {
        const int32_t n_live = mark_live(g, keep, n_keep, live_value, live_node);
        st = order_nodes(g, live_node, n_live, err);
    }
    ct_alloc_free(alloc, live_value);
    ct_alloc_free(alloc, live_node);
    CT_TRY(st);
    if (overlap) {
        CT_TRY(cti_pass_overlap(g, err));
    }
    return ct_graph_verify(g, err);
}
