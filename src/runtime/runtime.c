/* SPDX-License-Identifier: Apache-2.0 */
/* Runs planned graphs. */
#include "runtime/runtime.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "base/clock.h"
#include "comm/stream.h"

typedef struct step { /* one node, ready to run */
    const ct_node *node;
    const ct_op *op;
    ct_kernel_fn run;  /* NULL: a view or a collective */
    ct_comm_call call; /* collectives; comm NULL: none */
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
    ct_comm_stream *stream;        /* owns; NULL: no graph has nodes of stream 1 */
    ct_comm *beside[CT_MAX_AXES];  /* owns: the groups of those nodes */
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
static ct_status bind_collective(ct_runtime *rt, step *s, ct_comm *const comms[CT_MAX_AXES], ct_err *err)
{
    const ct_attrs_collective *attrs = s->node->attrs;
    ct_comm *comm = attrs->axis >= 0 && attrs->axis < CT_MAX_AXES ? comms[attrs->axis] : NULL;
    if (comm == NULL || ct_comm_size(comm) != attrs->degree) {
        return CT_FAIL(err, CT_ERR_STATE, "node '%s' (%s): a group of %" PRId64 " ranks is wanted on mesh axis %" PRId64
                       ", there is %d", s->node->scope, s->op->name, attrs->degree, attrs->axis, comm == NULL ? 0 : ct_comm_size(comm));
    }
    const bool is_beside = s->node->stream != 0;
    if (is_beside) {
        CT_TRY(beside(rt, comm, attrs->axis, &comm, err));
    }
    const ct_tensor *in = &s->launch.in[0], *out = &s->launch.out[0];
    s->call = (ct_comm_call){.comm = comm, .in = in->data, .out = out->data, .count = numel(in), .dtype = in->dtype, .reduce = CT_REDUCE_SUM,
                             .what = is_beside ? s->node->scope : NULL};
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
        return bind_collective(rt, s, comms, err);
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

/* As many as one program has nodes of stream 1. */
static ct_status start_stream(ct_runtime *rt, ct_err *err)
{
    int32_t most = 0;
    for (int32_t g = 0; g < rt->n_graphs; g++) {
        const ct_runtime_graph *p = &rt->graphs[g].planned;
        for (int program = 0; program < CT_PROGRAM_COUNT; program++) {
            int32_t n = 0;
            for (int32_t i = p->begin[program]; i < p->end[program]; i++) {
                n += rt->graphs[g].steps[i].node->stream != 0;
            }
            most = n > most ? n : most;
        }
    }
    return most > 0 ? ct_comm_stream_create(rt->alloc, most, &rt->stream, err) : CT_OK;
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
    if (st == CT_OK) {
        st = start_stream(rt, err);
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
    ct_comm_stream_destroy(&rt->stream);
    for (int a = 0; a < CT_MAX_AXES; a++) {
        ct_comm_destroy(&rt->beside[a]);
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

void ct_runtime_set_hook(ct_runtime *rt, ct_runtime_hook hook, void *ctx)
{
    rt->hook = hook;
    rt->hook_ctx = ctx;
}

/* A program that runs. */
typedef struct replay {
    ct_runtime *rt;
    int32_t graph;
    int64_t first;   /* number on the stream of collectives of this program's first, less one */
    int32_t started; /* this program's so far */
} replay;

static void tell(const replay *r, ct_runtime_event_kind kind, int32_t position, int32_t number, int64_t begin_ns, int64_t end_ns)
{
    r->rt->hook(r->rt->hook_ctx, &(ct_runtime_event){kind, r->graph, position, number, begin_ns, end_ns});
}

static ct_status wait_for(const replay *r, int32_t number, int32_t position, ct_err *err)
{
    const int64_t begin = r->rt->hook != NULL ? cti_now_ns() : 0;
    const ct_status st = ct_comm_stream_wait(r->rt->stream, r->first + number, err);
    if (r->rt->hook != NULL) {
        tell(r, CT_RUNTIME_WAIT, position, number, begin, cti_now_ns());
    }
    return st;
}

static ct_status run_node(const step *s, ct_err *err)
{
    return s->run != NULL ? s->run(&s->launch, err) : s->call.comm != NULL ? ct_comm_call_run(&s->call, err) : CT_OK;
}

static void start(replay *r, int32_t at)
{
    const bool is_watched = r->rt->hook != NULL;
    const int64_t begin = is_watched ? cti_now_ns() : 0;
    const int64_t number = ct_comm_stream_start(r->rt->stream, &r->rt->graphs[r->graph].steps[at].call);
    r->started++;
    r->first = number - r->started;
    if (is_watched) {
        tell(r, CT_RUNTIME_START, at, r->started, begin, cti_now_ns());
    }
}

static ct_status run_watched(replay *r, int32_t at, ct_err *err)
{
    const step *s = &r->rt->graphs[r->graph].steps[at];
    const int64_t begin = cti_now_ns();
    CT_TRY(run_node(s, err));
    if (s->run != NULL || s->call.comm != NULL) { /* the time is the host's: launches must have ended when it is taken */
        CT_TRY(r->rt->backend->synchronize(r->rt->device, NULL, err));
        tell(r, CT_RUNTIME_NODE, at, 0, begin, cti_now_ns());
    }
    return CT_OK;
}

static ct_status run_step(replay *r, int32_t at, ct_err *err)
{
    const step *s = &r->rt->graphs[r->graph].steps[at];
    if (s->node->wait > 0) {
        CT_TRY(wait_for(r, s->node->wait, at, err)); /* what fails says which node it is */
    }
    if (s->node->stream != 0) {
        start(r, at);
        return CT_OK;
    }
    const ct_status st = r->rt->hook == NULL ? run_node(s, err) : run_watched(r, at, err);
    if (st != CT_OK) {
        ct_err_prefix(err, "node '%s'", s->node->scope);
    }
    return st;
}

/* What stream 1 did. */
static void tell_beside(const replay *r, int32_t begin, int32_t end)
{
    int32_t number = 0;
    for (int32_t i = begin; i < end; i++) {
        if (r->rt->graphs[r->graph].steps[i].node->stream != 0) {
            int64_t from, to;
            number++;
            ct_comm_stream_times(r->rt->stream, r->first + number, &from, &to);
            tell(r, CT_RUNTIME_NODE, i, number, from, to);
        }
    }
}

ct_status ct_runtime_run(ct_runtime *rt, int32_t graph, ct_program_id program, ct_err *err)
{
    const bound_graph *bg = &rt->graphs[graph];
    const int32_t begin = bg->planned.begin[program], end = bg->planned.end[program];
    replay r = {.rt = rt, .graph = graph};
    ct_status st = CT_OK;
    for (int32_t i = begin; i < end && st == CT_OK; i++) {
        st = run_step(&r, i, err);
    }
    if (r.started > 0) { /* after a failure too: what is in flight uses the block */
        ct_err ignored = {0};
        const ct_status ended = wait_for(&r, r.started, end, st == CT_OK ? err : &ignored);
        st = st == CT_OK ? ended : st;
    }
    if (st != CT_OK) {
        ct_err_prefix(err, "%s", ct_program_name(program));
    } else if (r.started > 0 && rt->hook != NULL) {
        tell_beside(&r, begin, end);
    }
    return st;
}

void ct_runtime_add_stats(const ct_runtime *rt, int axis, ct_comm_stats *stats)
{
    if (rt->beside[axis] == NULL) {
        return;
    }
    ct_comm_stats more;
    ct_comm_get_stats(rt->beside[axis], &more);
    for (int op = 0; op < CT_COMM_OP_COUNT; op++) {
        stats->op[op].n_calls += more.op[op].n_calls;
        stats->op[op].sent_bytes += more.op[op].sent_bytes;
        stats->op[op].received_bytes += more.op[op].received_bytes;
    }
}

ct_status ct_runtime_synchronize(ct_runtime *rt, ct_err *err)
{
    return rt->backend->synchronize(rt->device, NULL, err);
}
