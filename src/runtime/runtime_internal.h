/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the room `runtime`: what a graph is once it is bound to memory, kernels and groups. */
#ifndef CTI_RUNTIME_INTERNAL_H
#define CTI_RUNTIME_INTERNAL_H

#include "comm/stream.h"
#include "runtime/runtime.h"

typedef struct cti_step { /* one node, ready to run */
    const ct_node *node;
    const ct_op *op;
    ct_kernel_fn run;  /* NULL: a view or a collective */
    void (*release)(void *device, void *state); /* NULL: nothing was prepared */
    ct_comm_call call; /* collectives; comm NULL: none */
    ct_launch launch;
    int64_t begin_ns;  /* on stream 1 of a device that is watched: when it was enqueued */
} cti_step;

typedef struct cti_bound_graph {
    ct_runtime_graph planned;
    cti_step *steps;       /* one per position of the order */
    ct_tensor *tensors;
    void **mirrors; /* owns; per value: what the host wrote into an input, zeros before that; NULL: none is kept */
} cti_bound_graph;

struct ct_runtime {
    const ct_alloc *alloc;
    const ct_backend *backend; /* borrowed */
    void *device;              /* borrowed */
    bool has_streams;          /* the backend enqueues */
    unsigned char *block;      /* owns: device memory */
    int64_t block_bytes;
    cti_bound_graph *graphs;
    int32_t n_graphs;
    ct_comm_stream *stream;        /* owns; NULL: no graph has nodes of stream 1 */
    ct_comm *beside[CT_MAX_AXES];  /* owns: the groups of those nodes */
    ct_runtime_hook hook; /* NULL: none */
    void *hook_ctx;
};

/* Memory, kernels, groups and what kernels prepare, for every node of bg->planned. Where it fails, cti_runtime_unbind is called all the same. */
CT_MUST_CHECK ct_status cti_runtime_bind(ct_runtime *rt, cti_bound_graph *bg, const ct_runtime_layout *layout,
                                         ct_comm *const comms[CT_MAX_AXES], ct_err *err);
void cti_runtime_unbind(const ct_runtime *rt, cti_bound_graph *bg);

#endif
