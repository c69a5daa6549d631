/* SPDX-License-Identifier: Apache-2.0 */
/* The forward graphs of a run from its tree, and the counts made from them. */
#include <inttypes.h>
#include <string.h>

#include "base/base.h"
#include "mesh/mesh.h"
#include "model/model.h"

static ct_status input(ct_graph *g, const char *name, ct_dtype dtype, int32_t ndim, int64_t d0, int64_t d1,
                       ct_value_id *out, ct_err *err)
{
    const ct_value_spec spec = {name, dtype, ndim, {d0, d1}, CT_VALUE_INPUT};
    CT_TRY(ct_graph_add_value(g, &spec, out, err));
    if (ndim > 1) { /* rows of the batch lie on the data axes; scalars are each rank's own */
        ct_graph_value(g, *out)->placement[CT_AXIS_DP_REPLICATE] = ct_shard(0);
        ct_graph_value(g, *out)->placement[CT_AXIS_DP_SHARD] = ct_shard(0);
    }
    return CT_OK;
}

static ct_status add_inputs(ct_build *b, const cti_graph_options *o, ct_err *err)
{
    ct_graph *g = b->graph;
    const bool cached = o->mode == CT_BUILD_PREFILL || o->mode == CT_BUILD_DECODE;
    int64_t n_tokens;
    if (!cti_mul_i64(o->batch, o->seq_len, &n_tokens) || n_tokens > INT32_MAX) {
        return CT_FAIL(err, CT_ERR_RANGE,
                       "a micro-batch of %" PRId64 " rows of %" PRId64 " tokens is above the limit of 2^31 tokens",
                       o->batch, o->seq_len);
    }
    CT_TRY(input(g, "tokens", CT_DTYPE_I32, 2, o->batch, o->seq_len, &b->tokens, err));
    CT_TRY(input(g, "positions", CT_DTYPE_I32, 2, o->batch, o->seq_len, &b->positions, err));
    CT_TRY(input(g, "segments", CT_DTYPE_I32, 2, n_tokens, 4, &b->segments, err));
    CT_TRY(input(g, "n_segments", CT_DTYPE_I32, 1, 1, 0, &b->n_segments, err));
    if (cached) {
        return input(g, "cache_start", CT_DTYPE_I32, 1, 1, 0, &b->cache_start, err);
    }
    CT_TRY(input(g, "labels", CT_DTYPE_I32, 2, o->batch, o->seq_len, &b->labels, err));
    return input(g, "inv_tokens", CT_DTYPE_F32, 1, 1, 0, &b->inv_tokens, err);
}

static ct_status build_all(ct_build *b, const ct_component *spec, const cti_graph_options *o, ct_value_id *out,
                           ct_err *err)
{
    const ct_component *model = ct_component_child(spec, "model");
    if (model == NULL || model->cls->build == NULL) {
        return CT_FAIL(err, CT_ERR_STATE, "the model spec has no 'model' that can be built");
    }
    ct_graph_set_program(b->graph, o->mode == CT_BUILD_TRAIN     ? CT_PROGRAM_FORWARD
                                   : o->mode == CT_BUILD_EVAL    ? CT_PROGRAM_EVAL
                                   : o->mode == CT_BUILD_PREFILL ? CT_PROGRAM_PREFILL
                                                                 : CT_PROGRAM_DECODE);
    CT_TRY(add_inputs(b, o, err));
    ct_value_id hidden_and_head[2];
    CT_TRY(model->cls->build(model, b, NULL, 0, hidden_and_head, 2, err));
    const ct_value_id hidden = hidden_and_head[0], head = hidden_and_head[1];
    if (o->mode == CT_BUILD_PREFILL || o->mode == CT_BUILD_DECODE) {
        ct_value_id row, picked;
        CT_TRY(input(b->graph, "logit_row", CT_DTYPE_I32, 1, 1, 0, &row, err));
        const int64_t dims[2] = {-1, ct_graph_value_c(b->graph, head)->dims[1]};
        ct_value_id flat;
        CT_TRY(ct_op_reshape(b->graph, hidden, dims, 2, &flat, err));
        CT_TRY(ct_op_embedding(b->graph, flat, row, &picked, err)); /* rows of the hidden states */
        return ct_op_matmul(b->graph, picked, head, CT_NO_VALUE, false, true, out, err);
    }
    const ct_value_id in[4] = {hidden, head, b->labels, b->inv_tokens};
    const ct_attrs_loss attrs = {.chunks = o->loss_chunks};
    ct_value_id outs[3];
    CT_TRY(ct_graph_push_scope(b->graph, "loss", err));
    if (o->loss != NULL && o->loss->cls->build != NULL) {
        CT_TRY(o->loss->cls->build(o->loss, b, in, 4, out, 1, err));
        ct_graph_pop_scope(b->graph);
        return CT_OK;
    }
    CT_TRY(ct_op_emit(b->graph,
                      o->mode == CT_BUILD_TRAIN ? CT_OP_linear_cross_entropy : CT_OP_linear_cross_entropy_eval, &attrs,
                      in, 4, outs, err));
    ct_graph_pop_scope(b->graph);
    *out = outs[0];
    return CT_OK;
}

ct_status cti_graph_build(const ct_alloc *alloc, const ct_component *spec, const cti_graph_options *o,
                          ct_graph **out_graph, ct_build *build, ct_value_id *out, ct_err *err)
{
    static const char *const names[] = {[CT_BUILD_TRAIN] = "train",
                                        [CT_BUILD_EVAL] = "eval",
                                        [CT_BUILD_PREFILL] = "prefill",
                                        [CT_BUILD_DECODE] = "decode"};
    ct_graph *g = NULL;
    CT_TRY(ct_graph_create(alloc, names[o->mode], &g, err));
    *build = (ct_build){.graph = g,
                        .mode = o->mode,
                        .param_dtype = o->param_dtype,
                        .batch = o->batch,
                        .seq_len = o->seq_len,
                        .cache_len = o->cache_len,
                        .tokens = CT_NO_VALUE,
                        .labels = CT_NO_VALUE,
                        .positions = CT_NO_VALUE,
                        .segments = CT_NO_VALUE,
                        .n_segments = CT_NO_VALUE,
                        .cache_start = CT_NO_VALUE,
                        .inv_tokens = CT_NO_VALUE};
    const ct_status st = build_all(build, spec, o, out, err);
    if (st != CT_OK) {
        ct_graph_destroy(&g);
        return st;
    }
    *out_graph = g;
    return CT_OK;
}

ct_status cti_model_count(const ct_alloc *alloc, const ct_component *spec, int64_t seq_len, cti_model_counts *out_counts,
                          ct_err *err)
{
    const cti_graph_options options = {
        .mode = CT_BUILD_EVAL, .param_dtype = CT_DTYPE_F32, .batch = 1, .seq_len = seq_len, .loss_chunks = 1};
    ct_graph *g = NULL;
    ct_build build;
    ct_value_id loss;
    CT_TRY(cti_graph_build(alloc, spec, &options, &g, &build, &loss, err));
    const ct_component *model = ct_component_child(spec, "model");
    const cti_decoder_config *d = ct_component_values(model);
    const bool is_tied = ct_class_is_a(model->cls, &cti_decoder_class) && d->tied_embeddings;
    const ct_component *layers = ct_component_child(model, "layers");
    cti_model_counts counts = {.n_tensors = build.n_params};
    int64_t embedding = 0;
    for (int32_t i = 0; i < build.n_params; i++) {
        const int64_t numel = cti_dims_product(build.params[i].dims, build.params[i].ndim);
        counts.n_params += numel;
        if (strcmp(build.params[i].name, "tok_embeddings.weight") == 0 && !is_tied) {
            embedding = numel;
        }
    }
    double attention = 0.0;
    for (int32_t i = 0; layers != NULL && i < layers->n_children; i++) {
        const ct_component *a = ct_component_child(layers->children[i], "attention");
        if (a != NULL && ct_class_is_a(a->cls, &cti_attention_class)) {
            const cti_attention_config *c = ct_component_values(a);
            attention += 6.0 * (double)c->n_heads * 2.0 * (double)c->head_dim * (double)seq_len;
        }
    }
    counts.flops_per_token = 6.0 * (double)(counts.n_params - embedding) + attention;
    ct_graph_destroy(&g);
    *out_counts = counts;
    return CT_OK;
}
