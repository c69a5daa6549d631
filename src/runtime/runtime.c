/* SPDX-License-Identifier: Apache-2.0 */
/* Runs planned graphs. */
#include "runtime/runtime.h"

#include <inttypes.h>
#include <string.h>

#include "backend/backend.h"
#include "base/clock.h"

typedef struct step { /* one node, ready to run */
    const ct_node *node;
    const ct_op *op;
    ct_kernel_fn run; /* NULL: a view or a collective */
    ct_comm *comm;    /* collectives */
    ct_launch launch;
} step;

typedef struct bound_graph {
    ct_runtime_graph planned;
    step *steps;       /* one per position of the order */
    ct_tensor *tensors;
} bound_graph;

struct ct_runtime {
    const ct_alloc *alloc;
    const ct_backend *backend; /* borrowed */
    void *device;              /* borrowed */
    unsigned char *block;      /* owns: device memory */
    int64_t block_bytes;
    bound_graph *graphs;
    int32_t n_graphs;
    ct_runtime_hook hook; /* NULL: none */
    void *hook_ctx;
};

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
    if (node->op >= CT_OP_COUNT || backend->kernels[node->op].workspace_bytes == NULL) {
        return 0;
    }
    return backend->kernels[node->op].workspace_bytes(shapes_only);
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

static ct_status bind_tensor(ct_runtime *rt, const bound_graph *bg, const ct_node *node, ct_value_id id, ct_tensor *t,
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
    return CT_OK;
}

static ct_status bind_step(ct_runtime *rt, const bound_graph *bg, int32_t at, ct_tensor **tensors,
                           const ct_runtime_layout *layout, ct_comm *const comms[CT_MAX_AXES], ct_err *err)
{
    const ct_graph *g = bg->planned.graph;
    const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[at]);
    step *s = &bg->steps[at];
    s->node = node;
    s->op = ct_op_row(node->op);
    s->launch = (ct_launch){.in = *tensors,
                            .n_in = node->n_in,
                            .out = *tensors + node->n_in,
                            .n_out = node->n_out,
                            .attrs = node->attrs,
                            .workspace = rt->block + layout->workspace_offset,
                            .workspace_bytes = (size_t)layout->workspace_bytes};
    for (int32_t i = 0; i < node->n_in + node->n_out; i++) {
        CT_TRY(bind_tensor(rt, bg, node, i < node->n_in ? node->in[i] : node->out[i - node->n_in], (*tensors)++, err));
    }
    if (s->op->flags & CT_OP_COLLECTIVE) {
        const int64_t axis = ((const ct_attrs_collective *)node->attrs)->axis;
        s->comm = axis >= 0 && axis < CT_MAX_AXES ? comms[axis] : NULL;
        const int64_t degree = ((const ct_attrs_collective *)node->attrs)->degree;
        if (s->comm == NULL || ct_comm_size(s->comm) != degree) {
            return CT_FAIL(err, CT_ERR_STATE, "node '%s' (%s): a group of %" PRId64 " ranks is wanted on mesh axis %" PRId64
                           ", there is %d", node->scope, s->op->name, degree, axis,
                           s->comm == NULL ? 0 : ct_comm_size(s->comm));
        }
        return CT_OK;
    }
    if (s->op->flags & CT_OP_VIEW) {
        return CT_OK;
    }
    const ct_kernel *kernel;
    CT_TRY(kernel_of(rt->backend, g, node, &kernel, err));
    s->run = kernel->run;
    return CT_OK;
}

static ct_status bind_graph(ct_runtime *rt, bound_graph *bg, const ct_runtime_layout *layout,
                            ct_comm *const comms[CT_MAX_AXES], ct_err *err)
{
    const ct_graph *g = bg->planned.graph;
    const int32_t n = ct_graph_order_len(g);
    size_t n_tensors = 0;
    for (int32_t i = 0; i < n; i++) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[i]);
        n_tensors += (size_t)(node->n_in + node->n_out);
    }
    bg->steps = CT_NEW_ARRAY(rt->alloc, step, n + 1, err);
    bg->tensors = CT_NEW_ARRAY(rt->alloc, ct_tensor, n_tensors + 1, err);
    if (bg->steps == NULL || bg->tensors == NULL) {
        return CT_ERR_MEMORY;
    }
    ct_tensor *at = bg->tensors;
    for (int32_t i = 0; i < n; i++) {
        CT_TRY(bind_step(rt, bg, i, &at, layout, comms, err));
    }
    return CT_OK;
}

ct_status ct_runtime_create(const ct_alloc *alloc, const ct_backend *backend, void *device,
                            const ct_runtime_layout *layout, ct_comm *const comms[CT_MAX_AXES], ct_runtime **out_runtime,
                            ct_err *err)
{
    ct_runtime *rt = CT_NEW(alloc, ct_runtime, err);
    if (rt == NULL) {
        return CT_ERR_MEMORY;
    }
    *rt = (ct_runtime){.alloc = alloc, .backend = backend, .device = device, .block_bytes = layout->total_bytes};
    void *block = NULL;
    ct_status st = CT_ERR_MEMORY;
    rt->graphs = CT_NEW_ARRAY(alloc, bound_graph, layout->n_graphs, err);
    if (rt->graphs != NULL) {
        st = backend->memory_alloc(device, (size_t)layout->total_bytes, &block, err);
    }
    rt->block = block;
    for (int32_t i = 0; i < layout->n_graphs && st == CT_OK; i++) {
        rt->graphs[i].planned = layout->graphs[i];
        rt->n_graphs = i + 1;
        st = bind_graph(rt, &rt->graphs[i], layout, comms, err);
    }
    if (st != CT_OK) {
        ct_runtime_destroy(&rt);
        return st;
    }
    *out_runtime = rt;
    return CT_OK;
}

void ct_runtime_destroy(ct_runtime **runtime)
{
    ct_runtime *rt = *runtime;
    if (rt == NULL) {
        return;
    }
    for (int32_t i = 0; i < rt->n_graphs; i++) {
        ct_alloc_free(rt->alloc, rt->graphs[i].steps);
        ct_alloc_free(rt->alloc, rt->graphs[i].tensors);
    }
    if (rt->block != NULL) {
        rt->backend->memory_free(rt->device, rt->block, (size_t)rt->block_bytes);
    }
    ct_alloc_free(rt->alloc, rt->graphs);
    ct_alloc_free(rt->alloc, rt);
    *runtime = NULL;
}

static ct_status value_at(const ct_runtime *rt, int32_t graph, ct_value_id value, size_t bytes, int64_t *out_offset,
                          ct_err *err)
{
    const ct_runtime_graph *p = &rt->graphs[graph].planned;
    const size_t have = ct_value_size_bytes(ct_graph_value_c(p->graph, value));
    if (have != bytes || p->offset[value] < 0) {
        return CT_FAIL(err, CT_ERR_SHAPE, "value '%s' of graph '%s' holds %zu bytes at %" PRId64 ", the host has %zu",
                       ct_graph_value_c(p->graph, value)->name, ct_graph_name(p->graph), have, p->offset[value], bytes);
    }
    *out_offset = p->offset[value];
    return CT_OK;
}

ct_status ct_runtime_write(ct_runtime *rt, int32_t graph, ct_value_id value, const void *host, size_t bytes, ct_err *err)
{
    int64_t offset;
    CT_TRY(value_at(rt, graph, value, bytes, &offset, err));
    return rt->backend->copy_to_device(rt->device, rt->block + offset, host, bytes, NULL, err);
}

ct_status ct_runtime_read(ct_runtime *rt, int32_t graph, ct_value_id value, void *host, size_t bytes, ct_err *err)
{
    int64_t offset;
    CT_TRY(value_at(rt, graph, value, bytes, &offset, err));
    return rt->backend->copy_to_host(rt->device, host, rt->block + offset, bytes, NULL, err);
}

ct_status ct_runtime_write_at(ct_runtime *rt, int64_t offset, const void *host, size_t bytes, ct_err *err)
{
    if (offset < 0 || offset + (int64_t)bytes > rt->block_bytes) {
        return CT_FAIL(err, CT_ERR_RANGE, "bytes %" PRId64 "+%zu are outside of the block", offset, bytes);
    }
    return rt->backend->copy_to_device(rt->device, rt->block + offset, host, bytes, NULL, err);
}

ct_status ct_runtime_read_at(ct_runtime *rt, int64_t offset, void *host, size_t bytes, ct_err *err)
{
    if (offset < 0 || offset + (int64_t)bytes > rt->block_bytes) {
        return CT_FAIL(err, CT_ERR_RANGE, "bytes %" PRId64 "+%zu are outside of the block", offset, bytes);
    }
    return rt->backend->copy_to_host(rt->device, host, rt->block + offset, bytes, NULL, err);
}

/* Counts come from the shapes: one row per collective of the op list. */
static ct_status run_collective(const step *s, ct_err *err)
{
    const ct_tensor *in = &s->launch.in[0], *out = &s->launch.out[0];
    int64_t n_in = 1, n_out = 1;
    for (int32_t d = 0; d < in->ndim; d++) {
        n_in *= in->dims[d];
    }
    for (int32_t d = 0; d < out->ndim; d++) {
        n_out *= out->dims[d];
    }
    switch (s->node->op) {
    case CT_OP_all_gather:
        return ct_comm_all_gather(s->comm, in->data, out->data, n_in, in->dtype, s->launch.stream, err);
    case CT_OP_reduce_scatter:
        return ct_comm_reduce_scatter(s->comm, in->data, out->data, n_out, in->dtype, CT_REDUCE_SUM, s->launch.stream,
                                      err);
    case CT_OP_all_reduce:
        return ct_comm_all_reduce(s->comm, in->data, out->data, n_in, in->dtype, CT_REDUCE_SUM, s->launch.stream, err);
    default:
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "collective '%s' has no engine call", s->op->name);
    }
}

void ct_runtime_set_hook(ct_runtime *rt, ct_runtime_hook hook, void *ctx)
{
    rt->hook = hook;
    rt->hook_ctx = ctx;
}

static ct_status run_step(const step *s, ct_err *err)
{
    return s->run != NULL ? s->run(&s->launch, err) : s->comm != NULL ? run_collective(s, err) : CT_OK;
}

/* The time is that of the host: launches must have ended when it is taken. */
static ct_status run_watched(ct_runtime *rt, int32_t graph, int32_t at, ct_err *err)
{
    const step *s = &rt->graphs[graph].steps[at];
    const int64_t begin = cti_now_ns();
    CT_TRY(run_step(s, err));
    if (s->run != NULL || s->comm != NULL) {
        CT_TRY(rt->backend->synchronize(rt->device, NULL, err));
        rt->hook(rt->hook_ctx, graph, at, begin, cti_now_ns());
    }
    return CT_OK;
}

ct_status ct_runtime_run(ct_runtime *rt, int32_t graph, ct_program_id program, ct_err *err)
{
    const bound_graph *bg = &rt->graphs[graph];
    for (int32_t i = bg->planned.begin[program]; i < bg->planned.end[program]; i++) {
        const step *s = &bg->steps[i];
        const ct_status st = rt->hook == NULL ? run_step(s, err) : run_watched(rt, graph, i, err);
        if (st != CT_OK) {
            ct_err_prefix(err, "%s: node '%s'", ct_program_name(program), s->node->scope);
            return st;
        }
    }
    return CT_OK;
}

ct_status ct_runtime_synchronize(ct_runtime *rt, ct_err *err)
{
    return rt->backend->synchronize(rt->device, NULL, err);
}
