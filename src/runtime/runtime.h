/* SPDX-License-Identifier: Apache-2.0 */
/* Runs planned graphs: one device block, launches resolved once, then only replayed. After ct_runtime_create nothing is allocated.
 *
 *     ct_runtime *rt;
 *     CT_TRY(ct_runtime_create(alloc, backend, device, plan, comms, &rt, err));
 *     CT_TRY(ct_runtime_write(rt, 0, tokens, host, bytes, err));
 *     CT_TRY(ct_runtime_run(rt, 0, CT_PROGRAM_FORWARD, err));
 *     CT_TRY(ct_runtime_read(rt, 0, loss, &host, sizeof host, err));
 *     ct_runtime_destroy(&rt);
 */
#ifndef CTI_RUNTIME_RUNTIME_H
#define CTI_RUNTIME_RUNTIME_H

#include "comm/comm.h"
#include "ctitan/backend.h"
#include "ctitan/ops.h"

/* What the runtime needs to know of a planned graph; made from a ct_plan by whoever owns one, so that `runtime` stands below `passes`. */
typedef struct ct_runtime_graph {
    const ct_graph *graph;  /* borrowed */
    const int64_t *offset;  /* per value, bytes in the block; -1 none; borrowed */
    int32_t begin[CT_PROGRAM_COUNT], end[CT_PROGRAM_COUNT];
} ct_runtime_graph;

typedef struct ct_runtime_layout {
    const ct_runtime_graph *graphs; /* copied */
    int32_t n_graphs;
    int64_t total_bytes;
    int64_t workspace_offset, workspace_bytes;
} ct_runtime_layout;

typedef struct ct_runtime ct_runtime;

/* comms[axis]: the group of each mesh axis of degree above 1, NULL else; borrowed. Nodes of stream 1 run on groups of the same ranks that
 * this makes ("dp_shard.beside"), on a stream of collectives (comm/stream.h), which exists where a graph has such nodes; on a device, on its
 * stream 1. Groups must work in the backend's memory. The block is zeroed. */
CT_MUST_CHECK ct_status ct_runtime_create(const ct_alloc *alloc, const ct_backend *backend, void *device,
                                          const ct_runtime_layout *layout, ct_comm *const comms[CT_MAX_AXES],
                                          ct_runtime **out_runtime, ct_err *err);
void ct_runtime_destroy(ct_runtime **runtime);

/* Copies between the host and a value of graph `graph`; bytes must be the value's size. */
CT_MUST_CHECK ct_status ct_runtime_write(ct_runtime *rt, int32_t graph, ct_value_id value, const void *host, size_t bytes,
                                         ct_err *err);
CT_MUST_CHECK ct_status ct_runtime_read(ct_runtime *rt, int32_t graph, ct_value_id value, void *host, size_t bytes,
                                        ct_err *err);
/* The same at an offset of the block (persistent buffers by their planned offset). */
CT_MUST_CHECK ct_status ct_runtime_write_at(ct_runtime *rt, int64_t offset, const void *host, size_t bytes, ct_err *err);
CT_MUST_CHECK ct_status ct_runtime_read_at(ct_runtime *rt, int64_t offset, void *host, size_t bytes, ct_err *err);

/* Runs one program of one graph, in order, and returns when all of it has ended, nodes of stream 1 too; on a device, when all of it is enqueued
 * (reads and ct_runtime_synchronize wait for it, and tell faults). Errors name the node. */
CT_MUST_CHECK ct_status ct_runtime_run(ct_runtime *rt, int32_t graph, ct_program_id program, ct_err *err);

/* What a hook is told of a run. Nodes of stream 0 and starts and waits come in their order; what stream 1 did comes at the program's end. */
typedef enum ct_runtime_event_kind {
    CT_RUNTIME_NODE,  /* a node that computes or communicates ran (views do neither), on its stream */
    CT_RUNTIME_START, /* a node of stream 1 was started */
    CT_RUNTIME_WAIT   /* stream 0 stood still for the nodes of stream 1 up to number `wait`, before the node at `position` or, where that is
                         the program's end, before its end */
} ct_runtime_event_kind;
typedef struct ct_runtime_event {
    ct_runtime_event_kind kind;
    int32_t graph, position; /* in the graph's order */
    int32_t number;          /* of NODE on stream 1 and START: the node's among those of stream 1 in its program, from 1; of WAIT: the last waited for */
    int64_t begin_ns, end_ns; /* cti_now_ns */
} ct_runtime_event;
/* NULL: nobody looks, and no clock is read on stream 0. What a hook does is counted between nodes, not in them. */
typedef void (*ct_runtime_hook)(void *ctx, const ct_runtime_event *event);
void ct_runtime_set_hook(ct_runtime *rt, ct_runtime_hook hook, void *ctx);
/* Adds what nodes of stream 1 moved on an axis so far to `stats`, which holds what the axis's own group did. */
void ct_runtime_add_stats(const ct_runtime *rt, int axis, ct_comm_stats *stats);
CT_MUST_CHECK ct_status ct_runtime_synchronize(ct_runtime *rt, ct_err *err);

/* Bytes of workspace the backend's kernel for `node` asks for; 0 for views, collectives and missing kernels. */
size_t ct_runtime_workspace(const ct_backend *backend, const ct_node *node, const ct_launch *shapes_only);
/* ERR_UNSUPPORTED naming the first node that the backend has no kernel for, and the reason. */
CT_MUST_CHECK ct_status ct_runtime_check(const ct_backend *backend, const ct_graph *graph, ct_err *err);

#endif
