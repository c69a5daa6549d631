/* SPDX-License-Identifier: Apache-2.0 */
/* The memory plan of a set of graphs: every buffer gets an offset in one device block before anything runs.
 *
 *     ct_plan *plan;
 *     CT_TRY(ct_plan_create(alloc, items, n_items, workspace, ctx, &plan, err));
 *     plan->total_bytes; plan->class_bytes[CT_VALUE_PARAM]; plan->graphs[0].offset[value];
 *     ct_plan_destroy(&plan);
 *
 * Persistent values (PARAM, STATE, GRAD, CONST) of equal name are one buffer in all graphs; inputs are each graph's own; activations
 * of all graphs share one arena, since only one graph runs at a time. Within a graph two activations share memory only where one's
 * last reader stands before the other's writer in the order that the schedule fixed. Nodes of stream 0 run in that order; one of stream 1
 * (a collective beside the computation) begins no sooner than where it stands, and holds what it reads and makes until a node that waits
 * for it, or the end of its program. An
 * ELEMENTWISE or IN_PLACE node may write over an input of the same size that dies there; what a JOIN lays end to end is made at its place in the
 * whole, which then lives from the first part on. */
#ifndef CTI_PASSES_PLAN_H
#define CTI_PASSES_PLAN_H

#include "ctitan/backend.h"
#include "ctitan/ops.h"

#define CT_PLAN_ALIGN 64 /* bytes */

/* Bytes of workspace that the backend's kernel wants for this launch (shapes only, no data). */
typedef size_t (*ct_workspace_fn)(void *ctx, const ct_node *node, const ct_launch *shapes_only);

typedef struct ct_plan_item {
    ct_graph *graph;          /* borrowed for the plan's life */
    const ct_value_id *keep;  /* values that the host reads after a program ran: alive to the graph's end */
    int32_t n_keep;
} ct_plan_item;

typedef struct ct_buffer { /* a persistent buffer */
    const char *name;
    ct_value_kind kind;
    ct_dtype dtype;
    int32_t ndim;
    int64_t dims[CT_MAX_NDIM];
    int64_t offset, size_bytes; /* offset from the block's start */
} ct_buffer;

typedef struct ct_graph_plan {
    ct_graph *graph;
    int64_t *offset; /* per value, bytes from the block's start; -1: no memory (dead) */
    ct_value_id *part_of; /* per value: the one whose memory it lies in; itself where it has its own */
    int32_t n_values;
    int32_t begin[CT_PROGRAM_COUNT], end[CT_PROGRAM_COUNT]; /* positions in the order */
    int64_t arena_bytes, workspace_bytes, input_bytes;
    int64_t largest_live_bytes; /* largest sum of activations alive at once */
    int32_t largest_live_at;    /* position in the order */
    int64_t *live_bytes;        /* per position: sum of activations alive */
} ct_graph_plan;

typedef struct ct_plan {
    const ct_alloc *alloc;
    ct_arena *arena;
    ct_buffer *buffers;
    int32_t n_buffers, cap_buffers;
    ct_graph_plan *graphs;
    int32_t n_graphs;
    int64_t class_bytes[CT_VALUE_KIND_COUNT]; /* ACT: the shared arena */
    int64_t workspace_bytes, workspace_offset;
    int64_t total_bytes;
} ct_plan;

CT_MUST_CHECK ct_status ct_plan_create(const ct_alloc *alloc, const ct_plan_item *items, int32_t n_items,
                                       ct_workspace_fn workspace, void *ctx, ct_plan **out_plan, ct_err *err);
void ct_plan_destroy(ct_plan **plan);
const ct_buffer *ct_plan_find(const ct_plan *plan, const char *name); /* NULL where there is none */
/* Shapes of a node's inputs and outputs; arrays hold n_in and n_out entries; data NULL. */
void ct_launch_shapes(const ct_graph *graph, const ct_node *node, ct_tensor *in, ct_tensor *out);

#endif
