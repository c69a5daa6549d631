/* SPDX-License-Identifier: Apache-2.0 */
/* Binding: each node of a planned graph gets addresses, its kernel or its group. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "runtime/runtime_internal.h"

static ct_status kernel_of(const ct_backend *backend, const ct_graph *g, const ct_node *node, const ct_kernel **out,
                           ct_err *err)
{
    const ct_status st = ct_kernel_find(backend, node->op, cti_node_dtype(g, node), out, err);
    if (st != CT_OK) {
        ct_err_prefix(err, "node '%s'", node->scope);
    }
    return st;
}

size_t ct_runtime_workspace(const ct_backend *backend, const ct_node *node, const ct_launch *shapes_only)
{
    const ct_kernel *kernel = cti_backend_kernel(backend, node->op);
    return kernel != NULL && kernel->workspace_bytes != NULL ? kernel->workspace_bytes(shapes_only) : 0;
}

ct_status ct_runtime_check(const ct_backend *backend, const ct_graph *g, ct_err *err)
{
    for (int32_t i = 0; i < ct_graph_order_len(g); i++) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[i]);
        const ct_kernel *kernel;
        if (!(ct_op_row(node->op)->flags & (CT_OP_VIEW | CT_OP_COLLECTIVE))) {
            CT_TRY(kernel_of(backend, g, node, &kernel, err));
        }
    }
    return CT_OK;
}

static ct_status bind_tensor(ct_runtime *rt, const cti_bound_graph *bg, const ct_node *node, ct_value_id id, ct_tensor *t,
                             ct_err *err)
{
    *t = (ct_tensor){.ndim = -1};
    if (id == CT_NO_VALUE) {
        return CT_OK;
    }
    const ct_value *v = ct_graph_value_c(bg->planned.graph, id);
    const int64_t offset = bg->planned.offset[id];
    if (offset < 0 || offset + (int64_t)ct_value_size_bytes(v) > rt->block_bytes) {
        return CT_FAIL(err, CT_ERR_STATE, "node '%s' (%s): value %d has no memory in the plan", node->scope,
                       ct_op_row(node->op)->name, id);
    }
    t->data = rt->block + offset;
    t->dtype = v->dtype;
    t->ndim = v->ndim;
    memcpy(t->dims, v->dims, sizeof t->dims);
    ct_value_id root = id;
    while (ct_graph_value_c(bg->planned.graph, root)->alias_of != CT_NO_VALUE) {
        root = ct_graph_value_c(bg->planned.graph, root)->alias_of;
    }
    if (bg->mirrors[root] != NULL) {
        t->host = (const unsigned char *)bg->mirrors[root] + (offset - bg->planned.offset[root]);
    }
    return CT_OK;
}

/* Inputs that kernels of a device may ask the host for. */
static ct_status make_mirrors(ct_runtime *rt, cti_bound_graph *bg, ct_err *err)
{
    const ct_graph *g = bg->planned.graph;
    const int32_t n = ct_graph_n_values(g);
    bg->mirrors = CT_NEW_ARRAY(rt->alloc, void *, n + 1, err);
    if (bg->mirrors == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int32_t i = 0; i < n && rt->has_streams; i++) {
        const ct_value *v = ct_graph_value_c(g, i);
        const size_t bytes = ct_value_size_bytes(v);
        if (v->kind == CT_VALUE_INPUT && v->alias_of == CT_NO_VALUE && bg->planned.offset[i] >= 0 && bytes > 0 && bytes <= CT_MIRROR_MAX_BYTES) {
            bg->mirrors[i] = ct_alloc_zeroed(rt->alloc, bytes, 1, err);
            if (bg->mirrors[i] == NULL) {
                return CT_ERR_MEMORY;
            }
        }
    }
    return CT_OK;
}

static int64_t numel(const ct_tensor *t)
{
    int64_t n = 1;
    for (int32_t d = 0; d < t->ndim; d++) {
        n *= t->dims[d];
    }
    return n;
}

/* The group of stream 1 on an axis: the ranks of the axis's own, made at the first use. */
static ct_status beside(ct_runtime *rt, ct_comm *comm, int64_t axis, ct_comm **out, ct_err *err)
{
    if (rt->beside[axis] == NULL) {
        int *ranks = CT_NEW_ARRAY(rt->alloc, int, ct_comm_size(comm), err);
        if (ranks == NULL) {
            return CT_ERR_MEMORY;
        }
        char name[64];
        for (int i = 0; i < ct_comm_size(comm); i++) {
            ranks[i] = i;
        }
        (void)snprintf(name, sizeof name, "%.50s.beside", ct_comm_name(comm));
        const ct_status st = ct_comm_split(comm, name, ranks, ct_comm_size(comm), &rt->beside[axis], err);
        ct_alloc_free(rt->alloc, ranks);
        CT_TRY(st);
    }
    *out = rt->beside[axis];
    return CT_OK;
}

/* Counts come from the shapes: one row per collective of the op list. */
static ct_status bind_collective(ct_runtime *rt, cti_step *s, ct_comm *const comms[CT_MAX_AXES], ct_err *err)
{
    const ct_attrs_collective *attrs = s->node->attrs;
    ct_comm *comm = attrs->axis >= 0 && attrs->axis < CT_MAX_AXES ? comms[attrs->axis] : NULL;
    if (comm == NULL || ct_comm_size(comm) != attrs->degree) {
        return CT_FAIL(err, CT_ERR_STATE, "node '%s' (%s): a group of %" PRId64 " ranks is wanted on mesh axis %" PRId64
                       ", there is %d", s->node->scope, s->op->name, attrs->degree, attrs->axis, comm == NULL ? 0 : ct_comm_size(comm));
    }
    const char *where = ct_comm_device(comm);
    if (rt->has_streams ? where == NULL || strcmp(where, rt->backend->name) != 0 : where != NULL) {
        return CT_FAIL(err, CT_ERR_STATE, "node '%s' (%s): the group '%s' works in memory of %s by '%s', the graph is on %s", s->node->scope,
                       s->op->name, ct_comm_name(comm), where == NULL ? "the host" : where, ct_comm_engine_name(comm), rt->backend->name);
    }
    const bool is_beside = s->node->stream != 0;
    if (is_beside) {
        CT_TRY(beside(rt, comm, attrs->axis, &comm, err));
    }
    const ct_tensor *in = &s->launch.in[0], *out = &s->launch.out[0];
    s->call = (ct_comm_call){.comm = comm, .in = in->data, .out = out->data, .count = numel(in), .dtype = in->dtype, .reduce = CT_REDUCE_SUM,
                             .what = is_beside ? s->node->scope : NULL,
                             .stream = rt->has_streams ? rt->backend->stream(rt->device, is_beside) : NULL};
    switch (s->node->op) {
    case CT_OP_all_gather:
        s->call.kind = CT_COMM_ALL_GATHER;
        return CT_OK;
    case CT_OP_reduce_scatter:
        s->call.kind = CT_COMM_REDUCE_SCATTER;
        s->call.count = numel(out);
        return CT_OK;
    case CT_OP_all_reduce:
        s->call.kind = CT_COMM_ALL_REDUCE;
        return CT_OK;
    default:
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "collective '%s' has no engine call", s->op->name);
    }
}

static ct_status bind_step(ct_runtime *rt, const cti_bound_graph *bg, int32_t at, ct_tensor **tensors,
                           const ct_runtime_layout *layout, ct_comm *const comms[CT_MAX_AXES], ct_err *err)
{
    const ct_graph *g = bg->planned.graph;
    const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[at]);
    cti_step *s = &bg->steps[at];
    s->node = node;
    s->op = ct_op_row(node->op);
    s->launch = (ct_launch){.in = *tensors,
                            .n_in = node->n_in,
                            .out = *tensors + node->n_in,
                            .n_out = node->n_out,
                            .attrs = node->attrs,
                            .workspace = rt->block + layout->workspace_offset,
                            .workspace_bytes = (size_t)layout->workspace_bytes,
                            .stream = rt->has_streams ? rt->backend->stream(rt->device, 0) : NULL,
                            .device = rt->device};
    for (int32_t i = 0; i < node->n_in + node->n_out; i++) {
        CT_TRY(bind_tensor(rt, bg, node, i < node->n_in ? node->in[i] : node->out[i - node->n_in], (*tensors)++, err));
    }
    if (s->op->flags & CT_OP_COLLECTIVE) {
        return bind_collective(rt, s, comms, err);
    }
    if (s->op->flags & CT_OP_VIEW) {
        return CT_OK;
    }
    const ct_kernel *kernel;
    CT_TRY(kernel_of(rt->backend, g, node, &kernel, err));
    s->run = kernel->run;
    if (kernel->prepare != NULL) {
        const ct_status st = kernel->prepare(&s->launch, &s->launch.state, err);
        if (st != CT_OK) {
            ct_err_prefix(err, "node '%s'", node->scope);
            return st;
        }
        s->release = kernel->release;
    }
    return CT_OK;
}

ct_status cti_runtime_bind(ct_runtime *rt, cti_bound_graph *bg, const ct_runtime_layout *layout, ct_comm *const comms[CT_MAX_AXES], ct_err *err)
{
    const ct_graph *g = bg->planned.graph;
    const int32_t n = ct_graph_order_len(g);
    size_t n_tensors = 0;
    for (int32_t i = 0; i < n; i++) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[i]);
        n_tensors += (size_t)(node->n_in + node->n_out);
    }
    bg->steps = CT_NEW_ARRAY(rt->alloc, cti_step, n + 1, err);
    bg->tensors = CT_NEW_ARRAY(rt->alloc, ct_tensor, n_tensors + 1, err);
    if (bg->steps == NULL || bg->tensors == NULL) {
        return CT_ERR_MEMORY;
    }
    CT_TRY(make_mirrors(rt, bg, err));
    ct_tensor *at = bg->tensors;
    for (int32_t i = 0; i < n; i++) {
        CT_TRY(bind_step(rt, bg, i, &at, layout, comms, err));
    }
    return CT_OK;
}

void cti_runtime_unbind(const ct_runtime *rt, cti_bound_graph *bg)
{
    for (int32_t i = 0; bg->steps != NULL && i < ct_graph_order_len(bg->planned.graph); i++) {
        if (bg->steps[i].release != NULL) {
            bg->steps[i].release(rt->device, bg->steps[i].launch.state);
        }
    }
    for (int32_t i = 0; bg->mirrors != NULL && i < ct_graph_n_values(bg->planned.graph); i++) {
        ct_alloc_free(rt->alloc, bg->mirrors[i]);
    }
    ct_alloc_free(rt->alloc, bg->mirrors);
    ct_alloc_free(rt->alloc, bg->steps);
    ct_alloc_free(rt->alloc, bg->tensors);
}
