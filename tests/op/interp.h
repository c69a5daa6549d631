/* SPDX-License-Identifier: Apache-2.0 */
/* A tiny interpreter for tests: every value has a buffer of its own (views and updates share their input's),
 * nodes run in order on a backend's kernels. It plans nothing and knows no streams; collectives are those of
 * one rank, so they copy.
 *
 *     interp run;
 *     interp_init(&run, graph, ct_backend_ref());
 *     interp_set(&run, x, i, 0.5);
 *     interp_run(&run, CT_PROGRAM_FORWARD);      // fails the cmocka test where a kernel fails
 *     double loss = interp_get(&run, loss_id, 0);
 *     interp_deinit(&run); */
#ifndef CT_TESTS_OP_INTERP_H
#define CT_TESTS_OP_INTERP_H

#include "unit/base_test.h"

#include "base/num.h"
#include "backend/backend.h"
#include "ctitan/ops.h"

typedef struct interp {
    const ct_graph *graph;
    const ct_backend *backend;
    ct_tensor *tensors; /* owns the array; one per value */
    bool *owns;         /* owns the array; whether tensors[i].data is this value's own block */
    void *workspace;    /* owns */
    size_t workspace_bytes;
} interp;

static inline void interp_init(interp *run, const ct_graph *graph, const ct_backend *backend)
{
    const int32_t n = ct_graph_n_values(graph);
    const ct_alloc *alloc = ct_alloc_system();
    *run = (interp){.graph = graph, .backend = backend};
    run->tensors = CT_NEW_ARRAY(alloc, ct_tensor, n, NULL);
    run->owns = CT_NEW_ARRAY(alloc, bool, n, NULL);
    assert_true(run->tensors != NULL && run->owns != NULL);
    for (int32_t i = 0; i < n; i++) {
        const ct_value *v = ct_graph_value_c(graph, i);
        ct_tensor *t = &run->tensors[i];
        *t = (ct_tensor){.dtype = v->dtype, .ndim = v->ndim};
        memcpy(t->dims, v->dims, sizeof t->dims);
        if (v->alias_of == CT_NO_VALUE) {
            run->owns[i] = true;
            t->data = ct_alloc_zeroed(alloc, (size_t)ct_value_numel(v), ct_dtype_size_bytes(v->dtype), NULL);
            assert_non_null(t->data);
        } else { /* emitted after what it aliases, so that one's data is known */
            assert_true(v->alias_of < i);
            t->data = (char *)run->tensors[v->alias_of].data +
                      (size_t)v->alias_offset * ct_dtype_size_bytes(v->dtype);
        }
    }
}

static inline void interp_deinit(interp *run)
{
    for (int32_t i = 0; i < ct_graph_n_values(run->graph); i++) {
        if (run->owns[i]) {
            ct_alloc_free(ct_alloc_system(), run->tensors[i].data);
        }
    }
    ct_alloc_free(ct_alloc_system(), run->tensors);
    ct_alloc_free(ct_alloc_system(), run->owns);
    ct_alloc_free(ct_alloc_system(), run->workspace);
}

static inline double interp_get(const interp *run, ct_value_id id, int64_t i)
{
    const ct_tensor *t = &run->tensors[id];
    switch ((int)t->dtype) {
    case CT_DTYPE_F64:
        return ((const double *)t->data)[i];
    case CT_DTYPE_F32:
        return (double)((const float *)t->data)[i];
    case CT_DTYPE_BF16:
        return (double)cti_bf16_to_f32(((const uint16_t *)t->data)[i]);
    default:
        assert_int_equal(t->dtype, CT_DTYPE_I32);
        return (double)((const int32_t *)t->data)[i];
    }
}

static inline void interp_set(interp *run, ct_value_id id, int64_t i, double x)
{
    ct_tensor *t = &run->tensors[id];
    switch ((int)t->dtype) {
    case CT_DTYPE_F64:
        ((double *)t->data)[i] = x;
        break;
    case CT_DTYPE_F32:
        ((float *)t->data)[i] = (float)x;
        break;
    case CT_DTYPE_BF16:
        ((uint16_t *)t->data)[i] = cti_f32_to_bf16((float)x);
        break;
    default:
        assert_int_equal(t->dtype, CT_DTYPE_I32);
        ((int32_t *)t->data)[i] = (int32_t)x;
    }
}

/* One rank gathers from, scatters to and reduces over itself. */
static inline void interp_collective(interp *run, const ct_node *node)
{
    const ct_tensor *in = &run->tensors[node->in[0]], *out = &run->tensors[node->out[0]];
    const size_t bytes = ct_value_size_bytes(ct_graph_value_c(run->graph, node->in[0]));
    assert_int_equal(bytes, ct_value_size_bytes(ct_graph_value_c(run->graph, node->out[0])));
    memcpy(out->data, in->data, bytes);
}

static inline void interp_node(interp *run, const ct_node *node)
{
    enum { MAX_IN = 64, MAX_OUT = 16 };
    const ct_op *op = ct_op_row(node->op);
    if ((op->flags & CT_OP_VIEW) != 0) {
        return;
    }
    if ((op->flags & CT_OP_COLLECTIVE) != 0) {
        interp_collective(run, node);
        return;
    }
    assert_true(node->n_in <= MAX_IN && node->n_out <= MAX_OUT);
    ct_tensor in[MAX_IN], out[MAX_OUT];
    for (int32_t i = 0; i < node->n_in; i++) {
        in[i] = node->in[i] == CT_NO_VALUE ? (ct_tensor){.ndim = -1} : run->tensors[node->in[i]];
    }
    for (int32_t i = 0; i < node->n_out; i++) {
        out[i] = run->tensors[node->out[i]];
    }
    ct_launch launch = {.in = in, .n_in = node->n_in, .out = out, .n_out = node->n_out, .attrs = node->attrs};
    const ct_kernel *kernel = cti_backend_kernel(run->backend, node->op);
    if (kernel == NULL || kernel->run == NULL) {
        fail_msg("%s has no kernel: %s", op->name, kernel == NULL ? "of a plug-in" : kernel->why_not);
    }
    const size_t need = kernel->workspace_bytes == NULL ? 0 : kernel->workspace_bytes(&launch);
    if (need > run->workspace_bytes) {
        ct_alloc_free(ct_alloc_system(), run->workspace);
        run->workspace = ct_alloc_zeroed(ct_alloc_system(), 1, need + 64, NULL);
        assert_non_null(run->workspace);
        run->workspace_bytes = need;
    }
    launch.workspace = (char *)run->workspace + (64 - (uintptr_t)run->workspace % 64) % 64;
    launch.workspace_bytes = need;
    ct_err err = {0};
    if (kernel->run(&launch, &err) != CT_OK) {
        fail_msg("%s: %s", op->name, err.message);
    }
}

/* Runs the nodes of one program. */
static inline void interp_run(interp *run, ct_program_id program)
{
    for (int32_t i = 0; i < ct_graph_order_len(run->graph); i++) {
        const ct_node *node = ct_graph_node_c(run->graph, ct_graph_order(run->graph)[i]);
        if (node->program == program) {
            interp_node(run, node);
        }
    }
}

#endif
