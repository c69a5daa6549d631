/* SPDX-License-Identifier: Apache-2.0 */
/* The graph: values and nodes in one arena, in SSA form. Node order is execution order.
 *
 *     ct_graph *g;
 *     CT_TRY(ct_graph_create(alloc, "train", &g, err));
 *     ct_value_id x, w, y;
 *     CT_TRY(ct_graph_add_value(g, &(ct_value_spec){"x", CT_DTYPE_F32, 2, {8, 256}, CT_VALUE_INPUT}, &x, err));
 *     ...
 *     CT_TRY(ct_op_matmul(g, x, w, CT_NO_VALUE, false, true, &y, err));      // ctitan/ops.h
 *     CT_TRY(ct_graph_verify(g, err));
 *     ct_graph_destroy(&g);
 *
 * A graph knows nothing of devices. Passes append nodes, or rebuild the node list with ct_graph_set_order. */
#ifndef CTITAN_GRAPH_H
#define CTITAN_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "ctitan/alloc.h"
#include "ctitan/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CT_MAX_NDIM 6
#define CT_NO_VALUE (-1)
#define CT_MAX_AXES 6

typedef int32_t ct_value_id;
typedef int32_t ct_node_id;

/* X(NAME, name, lifetime) */
#define CT_VALUE_KIND_LIST(X)                                                                                        \
    X(ACT, act, "made by a node, lives until its last reader")                                                       \
    X(INPUT, input, "written by the host before each micro-batch or step")                                           \
    X(PARAM, param, "persistent; written by the optimizer; in checkpoints")                                          \
    X(STATE, state, "persistent; optimizer moments, KV caches, accumulators")                                        \
    X(GRAD, grad, "persistent through one step: accumulated gradients")                                              \
    X(CONST, const, "persistent; computed once by a fill rule, never written again")
typedef enum ct_value_kind {
#define CT_VALUE_KIND_ENUM(NAME, name, sentence) CT_VALUE_##NAME,
    CT_VALUE_KIND_LIST(CT_VALUE_KIND_ENUM)
#undef CT_VALUE_KIND_ENUM
        CT_VALUE_KIND_COUNT
} ct_value_kind;

/* Which program of the set a node belongs to; a node list is ordered by program. */
#define CT_PROGRAM_LIST(X) X(FORWARD, forward) X(BACKWARD, backward) X(BACKWARD_INPUT, backward_input)               \
    X(BACKWARD_WEIGHT, backward_weight) X(OPTIMIZER, optimizer) X(EVAL, eval) X(PREFILL, prefill) X(DECODE, decode)
typedef enum ct_program_id {
#define CT_PROGRAM_ENUM(NAME, name) CT_PROGRAM_##NAME,
    CT_PROGRAM_LIST(CT_PROGRAM_ENUM)
#undef CT_PROGRAM_ENUM
        CT_PROGRAM_COUNT
} ct_program_id;
const char *ct_program_name(ct_program_id program);

/* Where a value lies on one mesh axis (reference: the algebra in mesh/placement.h). */
typedef enum ct_placement_kind {
    CT_PLACE_REPLICATE, /* same on every rank; gradient replicated too */
    CT_PLACE_OWING,     /* same on every rank; gradient is a partial sum, a reduction is owed */
    CT_PLACE_SHARD,     /* split along tensor dim `dim`, equal parts */
    CT_PLACE_PARTIAL,   /* the true value is the sum over ranks */
    CT_PLACE_FLAT       /* parameters and states: an equal cut of a Flat group */
} ct_placement_kind;
typedef struct ct_placement {
    uint8_t kind; /* ct_placement_kind */
    int8_t dim;   /* of SHARD */
    uint8_t parts; /* of SHARD: above 1, so many equal parts of the dim are cut each for itself, as rows that were joined (ct_build_join) */
} ct_placement;

typedef struct ct_value {
    const char *name; /* unique among PARAM, STATE, GRAD, CONST and INPUT values; "" allowed for ACT */
    ct_dtype dtype;
    int32_t ndim;
    int64_t dims[CT_MAX_NDIM]; /* elements; row-major, contiguous */
    ct_value_kind kind;
    ct_placement placement[CT_MAX_AXES]; /* one per mesh axis */
    ct_node_id producer;                 /* -1: none */
    ct_value_id alias_of;                /* shares this value's memory (a view or an update in place); CT_NO_VALUE: own */
    int64_t alias_offset;                /* elements of this value's dtype from the start of alias_of */
} ct_value;

typedef struct ct_value_spec {
    const char *name;
    ct_dtype dtype;
    int32_t ndim;
    int64_t dims[CT_MAX_NDIM];
    ct_value_kind kind;
} ct_value_spec;

typedef struct ct_node {
    int32_t op;        /* ct_op_id, or a registered id from CT_OP_COUNT on */
    const void *attrs; /* the op's attribute struct, in the arena; NULL where it has none */
    int32_t n_in, n_out;
    ct_value_id *in;   /* arena; CT_NO_VALUE for an absent optional input */
    ct_value_id *out;  /* arena */
    const char *scope; /* "layers.3.attention.wq"; "" at the top */
    uint8_t program;   /* ct_program_id */
    uint8_t stream;    /* 0 compute, 1 communication; set by the schedule pass */
    int32_t wait;      /* before this node begins, so many nodes of its program on stream 1 have ended; 0: it waits for none */
    bool is_recompute; /* a clone made by the recompute pass */
} ct_node;

typedef struct ct_graph ct_graph;

CT_MUST_CHECK ct_status ct_graph_create(const ct_alloc *alloc, const char *name, ct_graph **out_graph, ct_err *err);
void ct_graph_destroy(ct_graph **graph);
const char *ct_graph_name(const ct_graph *graph);
ct_arena *ct_graph_arena(ct_graph *graph);
const ct_alloc *ct_graph_allocator(const ct_graph *graph);

int32_t ct_graph_n_values(const ct_graph *graph);
int32_t ct_graph_n_nodes(const ct_graph *graph);            /* nodes ever made; order is below */
ct_value *ct_graph_value(ct_graph *graph, ct_value_id id);   /* valid until the next add; id must be in range */
const ct_value *ct_graph_value_c(const ct_graph *graph, ct_value_id id);
ct_node *ct_graph_node(ct_graph *graph, ct_node_id id);
const ct_node *ct_graph_node_c(const ct_graph *graph, ct_node_id id);
ct_value_id ct_graph_find(const ct_graph *graph, const char *value_name); /* CT_NO_VALUE where there is none */
int64_t ct_value_numel(const ct_value *value);
size_t ct_value_size_bytes(const ct_value *value);

/* Execution order: ids of the live nodes. */
int32_t ct_graph_order_len(const ct_graph *graph);
const ct_node_id *ct_graph_order(const ct_graph *graph);
/* Replaces the order (ids copied). Nodes left out are dead. */
CT_MUST_CHECK ct_status ct_graph_set_order(ct_graph *graph, const ct_node_id *ids, int32_t n, ct_err *err);

/* Adds a value without a producer. ERR_SHAPE for bad dims, ERR_RANGE for a name that exists. */
CT_MUST_CHECK ct_status ct_graph_add_value(ct_graph *graph, const ct_value_spec *spec, ct_value_id *out_id, ct_err *err);
/* Adds a node whose outputs are new ACT values of the given specs, at the end of the order, in the current scope and
 * program. attrs (attrs_bytes) are copied shallowly. Ops' typed emitters (ctitan/ops.h) are the usual way in. */
CT_MUST_CHECK ct_status ct_graph_add_node(ct_graph *graph, int32_t op, const void *attrs, size_t attrs_bytes,
                                          const ct_value_id *in, int32_t n_in, const ct_value_spec *out_specs,
                                          int32_t n_out, ct_node_id *out_node, ct_err *err);

/* The scope and program that new nodes get. push appends ".name" (or "name" at the top). */
CT_MUST_CHECK ct_status ct_graph_push_scope(ct_graph *graph, const char *name, ct_err *err);
void ct_graph_pop_scope(ct_graph *graph);
const char *ct_graph_scope(const ct_graph *graph);
CT_MUST_CHECK ct_status ct_graph_set_scope(ct_graph *graph, const char *scope, ct_err *err); /* whole, for passes */
void ct_graph_set_program(ct_graph *graph, ct_program_id program);

/* Replaces every use of `from` by `to` as a node input, in the nodes of the order after position `from_pos`. */
void ct_graph_replace_uses(ct_graph *graph, ct_value_id from, ct_value_id to, int32_t from_pos);

#ifdef __cplusplus
}
#endif
#endif
