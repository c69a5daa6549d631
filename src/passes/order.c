/* SPDX-License-Identifier: Apache-2.0 */
/* The node order: small edits that passes share. */
#include <string.h>

#include "passes/passes.h"

static ct_node_id *order_copy(ct_graph *g, int32_t extra, ct_err *err)
{
    const int32_t n = ct_graph_order_len(g);
    ct_node_id *ids = ct_alloc_zeroed(ct_graph_allocator(g), (size_t)(n + extra + 1), sizeof *ids, err);
    if (ids != NULL && n > 0) {
        memcpy(ids, ct_graph_order(g), (size_t)n * sizeof *ids);
    }
    return ids;
}

ct_status cti_order_insert(ct_graph *g, int32_t at, const ct_node_id *ids, int32_t n, ct_err *err)
{
    const int32_t len = ct_graph_order_len(g);
    ct_node_id *order = order_copy(g, n, err);
    if (order == NULL) {
        return CT_ERR_MEMORY;
    }
    memmove(order + at + n, order + at, (size_t)(len - at) * sizeof *order);
    memcpy(order + at, ids, (size_t)n * sizeof *order);
    const ct_status st = ct_graph_set_order(g, order, len + n, err);
    ct_alloc_free(ct_graph_allocator(g), order);
    return st;
}

ct_status cti_order_move_tail(ct_graph *g, int32_t from, int32_t at, ct_err *err)
{
    const int32_t len = ct_graph_order_len(g), n = len - from;
    ct_node_id *order = order_copy(g, 0, err);
    if (order == NULL) {
        return CT_ERR_MEMORY;
    }
    memmove(order + at + n, order + at, (size_t)(from - at) * sizeof *order);
    memcpy(order + at, ct_graph_order(g) + from, (size_t)n * sizeof *order);
    const ct_status st = ct_graph_set_order(g, order, len, err);
    ct_alloc_free(ct_graph_allocator(g), order);
    return st;
}

ct_status cti_order_drop(ct_graph *g, const ct_node_id *ids, int32_t n, ct_err *err)
{
    const int32_t len = ct_graph_order_len(g);
    ct_node_id *order = order_copy(g, 0, err);
    if (order == NULL) {
        return CT_ERR_MEMORY;
    }
    int32_t left = 0;
    for (int32_t i = 0; i < len; i++) {
        bool keep = true;
        for (int32_t k = 0; k < n; k++) {
            keep = keep && order[i] != ids[k];
        }
        order[left] = order[i];
        left += keep;
    }
    const ct_status st = ct_graph_set_order(g, order, left, err);
    ct_alloc_free(ct_graph_allocator(g), order);
    return st;
}

int32_t cti_position(const ct_graph *g, ct_node_id node)
{
    const int32_t n = ct_graph_order_len(g);
    int32_t i = 0;
    while (i < n && ct_graph_order(g)[i] != node) {
        i++;
    }
    return i;
}

const ct_node *cti_only_reader(const ct_graph *g, ct_value_id value)
{
    const ct_node *reader = NULL;
    for (int32_t i = 0; i < ct_graph_order_len(g); i++) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[i]);
        for (int32_t k = 0; k < node->n_in; k++) {
            if (node->in[k] == value && reader != NULL) {
                return NULL;
            }
            reader = node->in[k] == value ? node : reader;
        }
    }
    return reader;
}

int32_t cti_first_use(const ct_graph *g, ct_value_id value)
{
    const int32_t n = ct_graph_order_len(g);
    for (int32_t i = 0; i < n; i++) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[i]);
        for (int32_t k = 0; k < node->n_in; k++) {
            if (node->in[k] == value) {
                return i;
            }
        }
    }
    return n;
}
