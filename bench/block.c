/* SPDX-License-Identifier: Apache-2.0 */
/* Forward and backward of one transformer block of dim 2048 (llama3 1B's: 32 heads, 8 key and value heads, hidden 8192), as the
 * compiled step runs them:
 *
 *     bench_block [f32|bf16] [--quick] [--tsv] [part of a name]
 *
 * The block stands between an embedding and a tied head of 256 words, which are 0.9 % of the work and counted. Model FLOPs: 6 a
 * weight and token, attention's two products over the causal half thrice. */
#include <stdio.h>
#include <stdlib.h>

#include "backend/cpu/cpu.h"
#include "base/base.h"
#include "base/clock.h"
#include "bench.h"
#include "model/model.h"
#include "train/engine.h"
#include "train/step.h"

enum { DIM = 2048, QKV = 3072, HIDDEN = 8192, VOCAB = 256 };

static void one_block(ct_tree *tree, ct_component **out_spec)
{
    ct_err err = {0};
    bench_must(cti_llama3_spec(tree, "1B", out_spec, &err), &err);
    ct_component *model = ct_component_find(*out_spec, "model");
    ct_component_find(*out_spec, "model.layers")->n_children = 1;
    ((cti_decoder_config *)model->values)->vocab_size = VOCAB;
    ((cti_embedding_config *)ct_component_find(*out_spec, "model.tok_embeddings")->values)->num_embeddings = VOCAB;
}

static void put(const cti_engine *e, const cti_step *s, ct_value_id v, const void *data)
{
    ct_err err = {0};
    if (v != CT_NO_VALUE) {
        bench_must(ct_runtime_write(e->runtime, 0, v, data, ct_value_size_bytes(ct_graph_value_c(s->graph, v)), &err), &err);
    }
}

static void put_inputs(const cti_engine *e, const cti_step *s, int32_t tokens)
{
    ct_err err = {0};
    const ct_alloc *alloc = ct_alloc_system();
    int32_t *ids = ct_alloc_zeroed(alloc, (size_t)tokens, sizeof *ids, &err);
    int32_t *places = ct_alloc_zeroed(alloc, (size_t)tokens, sizeof *places, &err);
    int32_t *segments = ct_alloc_zeroed(alloc, (size_t)tokens, 4 * sizeof *segments, &err);
    if (!ids || !places || !segments) {
        bench_must(CT_ERR_MEMORY, &err);
        return;
    }
    for (int32_t i = 0; i < tokens; i++) {
        ids[i] = i * 7 % VOCAB;
        places[i] = i;
    }
    segments[1] = segments[3] = tokens; /* one segment: the row is one document */
    const int32_t n_segments = 1, first = 1;
    const float inv = 1.0F / (float)tokens;
    put(e, s, s->build.tokens, ids);
    put(e, s, s->build.labels, ids);
    put(e, s, s->build.positions, places);
    put(e, s, s->build.segments, segments);
    put(e, s, s->build.n_segments, &n_segments);
    put(e, s, s->build.inv_tokens, &inv);
    put(e, s, s->optim.first, &first);
    ct_alloc_free(alloc, ids);
    ct_alloc_free(alloc, places);
    ct_alloc_free(alloc, segments);
}

static void forward_backward(void *engine)
{
    ct_err err = {0};
    const cti_engine *e = engine;
    bench_must(ct_runtime_run(e->runtime, 0, CT_PROGRAM_FORWARD, &err), &err);
    bench_must(ct_runtime_run(e->runtime, 0, CT_PROGRAM_BACKWARD, &err), &err);
}

static void block(const bench *b, int32_t tokens)
{
    char name[64];
    (void)snprintf(name, sizeof name, "block 1x%d", (int)tokens);
    if (!bench_wants(b, name)) {
        return;
    }
    ct_err err = {0};
    const ct_alloc *alloc = ct_alloc_system();
    ct_tree *tree;
    ct_component *spec;
    bench_must(ct_tree_create(alloc, &tree, &err), &err);
    one_block(tree, &spec);
    ct_mesh mesh;
    const int64_t degree[CT_AXIS_COUNT] = {1, 1, 1, 1, 1, 1};
    bench_must(ct_mesh_init(&mesh, degree, 1, 0, &err), &err);
    const ct_optim_group group = {.pattern = ".*", .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1};
    const cti_step_options options = {.mesh = &mesh, .param_dtype = CT_DTYPE_F32, .compute_dtype = b->f,
                                      .reduce_dtype = CT_DTYPE_F32, .batch = 1, .seq_len = tokens, .loss_chunks = 1,
                                      .recompute = {.mode = CT_RECOMPUTE_NONE},
                                      .optim = {.groups = &group, .n_groups = 1, .max_norm = 1.0, .has_one_micro_batch = true}};
    cti_step *s;
    bench_must(cti_step_create(alloc, spec, &options, &s, &err), &err);
    const ct_value_id keep[3] = {s->optim.loss, s->optim.norm, s->optim.go};
    const ct_plan_item item = {s->graph, keep, 3};
    ct_comm *comms[CT_MAX_AXES] = {0};
    cti_engine *e;
    bench_must(cti_engine_create(alloc, b->backend, &item, 1, comms, &e, &err), &err);
    bench_must(cti_engine_init_weights(e, s->layout, &s->build, 0, 42, &err), &err);
    bench_must(cti_engine_init_consts(e, &s->build, &err), &err);
    put_inputs(e, s, tokens);
    sample_set set = {0};
    const int wanted = b->is_quick ? 3 : 9;
    while (set.n < wanted) {
        sample_add(&set, forward_backward, e);
    }
    sample_sort(&set);
    const double weights = (double)QKV * DIM + (double)DIM * DIM + 3.0 * HIDDEN * DIM + (double)VOCAB * DIM;
    const double flops = tokens * (6 * weights + 3.0 * 2 * 2 * DIM * (tokens + 1) / 2);
    bench_row(b, name, &set, flops / (b->f == CT_DTYPE_BF16 && b->limit.dot > 0 ? b->limit.dot : b->limit.fma), "FMA");
    cti_engine_destroy(&e);
    cti_step_destroy(&s);
    ct_tree_destroy(&tree);
}

int main(int argc, char **argv)
{
    bench b;
    bench_open(&b, argc, argv);
    block(&b, 512);
    block(&b, 2048);
    bench_close(&b);
    return 0;
}
