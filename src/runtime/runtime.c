/* SPDX-License-Identifier: Apache-2.0 */
/* Runs planned graphs. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "runtime/runtime_internal.h"

/* As many as one program has nodes of stream 1. */
static ct_status start_stream(ct_runtime *rt, ct_err *err)
{
    if (rt->has_streams) {
        return CT_OK;
    }
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
    *rt = (ct_runtime){.alloc = alloc, .backend = backend, .device = device, .has_streams = backend->stream != NULL, .block_bytes = layout->total_bytes};
    void *block = NULL;
    ct_status st = CT_ERR_MEMORY;
    rt->graphs = CT_NEW_ARRAY(alloc, cti_bound_graph, layout->n_graphs, err);
    if (rt->graphs != NULL) {
        st = backend->memory_alloc(device, (size_t)layout->total_bytes, &block, err);
    }
    rt->block = block;
    for (int32_t i = 0; i < layout->n_graphs && st == CT_OK; i++) {
        rt->graphs[i].planned = layout->graphs[i];
        rt->n_graphs = i + 1;
        st = cti_runtime_bind(rt, &rt->graphs[i], layout, comms, err);
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
    for (int number = 0; number < 2 && rt->has_streams; number++) {
        const ct_status st = rt->backend->synchronize(rt->device, rt->backend->stream(rt->device, number), NULL);
        (void)st; /* what is enqueued uses what is freed below; who wanted to know of its faults has read results */
    }
    for (int32_t i = 0; i < rt->n_graphs; i++) {
        cti_runtime_unbind(rt, &rt->graphs[i]);
    }
    if (rt->block != NULL) {
        rt->backend->memory_free(rt->device, rt->block, (size_t)rt->block_bytes);
    }
    ct_alloc_free(rt->alloc, rt->graphs);
    ct_alloc_free(rt->alloc, rt);
    *runtime = NULL;
}

static void *main_stream(const ct_runtime *rt)
{
    return rt->has_streams ? rt->backend->stream(rt->device, 0) : NULL;
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
    void *mirror = rt->graphs[graph].mirrors[value];
    if (mirror != NULL) {
        memcpy(mirror, host, bytes);
    }
    return rt->backend->copy_to_device(rt->device, rt->block + offset, host, bytes, main_stream(rt), err);
}

ct_status ct_runtime_read(ct_runtime *rt, int32_t graph, ct_value_id value, void *host, size_t bytes, ct_err *err)
{
    int64_t offset;
    CT_TRY(value_at(rt, graph, value, bytes, &offset, err));
    return rt->backend->copy_to_host(rt->device, host, rt->block + offset, bytes, main_stream(rt), err);
}

ct_status ct_runtime_write_at(ct_runtime *rt, int64_t offset, const void *host, size_t bytes, ct_err *err)
{
    if (offset < 0 || offset + (int64_t)bytes > rt->block_bytes) {
        return CT_FAIL(err, CT_ERR_RANGE, "bytes %" PRId64 "+%zu are outside of the block", offset, bytes);
    }
    return rt->backend->copy_to_device(rt->device, rt->block + offset, host, bytes, main_stream(rt), err);
}

ct_status ct_runtime_read_at(ct_runtime *rt, int64_t offset, void *host, size_t bytes, ct_err *err)
{
    if (offset < 0 || offset + (int64_t)bytes > rt->block_bytes) {
        return CT_FAIL(err, CT_ERR_RANGE, "bytes %" PRId64 "+%zu are outside of the block", offset, bytes);
    }
    return rt->backend->copy_to_host(rt->device, host, rt->block + offset, bytes, main_stream(rt), err);
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

/* On a device, event 0 is that computation has come to a start, event k that the k-th of stream 1 in this program has ended. Who watches gets the
 * host's times: those of stream 1 end where they are waited for. */
static ct_status wait_on_device(const replay *r, int32_t number, ct_err *err)
{
    const ct_runtime *rt = r->rt;
    CT_TRY(rt->backend->stream_wait(rt->device, main_stream(rt), number, err));
    return rt->hook != NULL ? rt->backend->synchronize(rt->device, rt->backend->stream(rt->device, 1), err) : CT_OK;
}

static ct_status wait_for(const replay *r, int32_t number, int32_t position, ct_err *err)
{
    const int64_t begin = r->rt->hook != NULL ? cti_now_ns() : 0;
    const ct_status st = r->rt->has_streams ? wait_on_device(r, number, err) : ct_comm_stream_wait(r->rt->stream, r->first + number, err);
    if (r->rt->hook != NULL) {
        tell(r, CT_RUNTIME_WAIT, position, number, begin, cti_now_ns());
    }
    return st;
}

static ct_status run_node(const cti_step *s, ct_err *err)
{
    return s->run != NULL ? s->run(&s->launch, err) : s->call.comm != NULL ? ct_comm_call_run(&s->call, err) : CT_OK;
}

static ct_status start_on_device(replay *r, cti_step *s, ct_err *err)
{
    const ct_runtime *rt = r->rt;
    CT_TRY(rt->backend->event_record(rt->device, 0, main_stream(rt), err));
    CT_TRY(rt->backend->stream_wait(rt->device, s->call.stream, 0, err));
    CT_TRY(ct_comm_call_run(&s->call, err));
    return rt->backend->event_record(rt->device, ++r->started, s->call.stream, err);
}

static ct_status start(replay *r, int32_t at, ct_err *err)
{
    const bool is_watched = r->rt->hook != NULL;
    const int64_t begin = is_watched ? cti_now_ns() : 0;
    cti_step *s = &r->rt->graphs[r->graph].steps[at];
    if (r->rt->has_streams) {
        s->begin_ns = begin;
        CT_TRY(start_on_device(r, s, err));
    } else {
        const int64_t number = ct_comm_stream_start(r->rt->stream, &s->call);
        r->started++;
        r->first = number - r->started;
    }
    if (is_watched) {
        tell(r, CT_RUNTIME_START, at, r->started, begin, cti_now_ns());
    }
    return CT_OK;
}

static ct_status run_watched(replay *r, int32_t at, ct_err *err)
{
    const cti_step *s = &r->rt->graphs[r->graph].steps[at];
    const int64_t begin = cti_now_ns();
    CT_TRY(run_node(s, err));
    if (s->run != NULL || s->call.comm != NULL) { /* the time is the host's: launches must have ended when it is taken */
        CT_TRY(r->rt->backend->synchronize(r->rt->device, main_stream(r->rt), err));
        tell(r, CT_RUNTIME_NODE, at, 0, begin, cti_now_ns());
    }
    return CT_OK;
}

static ct_status run_step(replay *r, int32_t at, ct_err *err)
{
    const cti_step *s = &r->rt->graphs[r->graph].steps[at];
    if (s->node->wait > 0) {
        CT_TRY(wait_for(r, s->node->wait, at, err)); /* what fails says which node it is */
    }
    if (s->node->stream != 0) {
        return start(r, at, err);
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
    const int64_t end_ns = cti_now_ns(); /* of a device: it has ended by now */
    int32_t number = 0;
    for (int32_t i = begin; i < end; i++) {
        if (r->rt->graphs[r->graph].steps[i].node->stream != 0) {
            int64_t from = r->rt->graphs[r->graph].steps[i].begin_ns, to = end_ns;
            number++;
            if (!r->rt->has_streams) {
                ct_comm_stream_times(r->rt->stream, r->first + number, &from, &to);
            }
            tell(r, CT_RUNTIME_NODE, i, number, from, to);
        }
    }
}

ct_status ct_runtime_run(ct_runtime *rt, int32_t graph, ct_program_id program, ct_err *err)
{
    const cti_bound_graph *bg = &rt->graphs[graph];
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
    return rt->backend->synchronize(rt->device, main_stream(rt), err);
}
