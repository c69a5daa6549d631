/* SPDX-License-Identifier: Apache-2.0 */
/* Text from a model. */
#include "train/generate.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "model/model.h"
#include "passes/passes.h"
#include "train/step.h"

static ct_status build_graph(cti_generator *gen, int i, const ct_component *spec, ct_err *err)
{
    const cti_graph_options o = {.mode = i == 0 ? CT_BUILD_PREFILL : CT_BUILD_DECODE,
                                 .param_dtype = gen->o.dtype,
                                 .batch = 1,
                                 .seq_len = i == 0 ? CTI_PREFILL_CHUNK : 1,
                                 .cache_len = gen->o.cache_len,
                                 .loss_chunks = 1};
    CT_TRY(cti_graph_build(gen->alloc, spec, &o, &gen->graphs[i], &gen->builds[i], &gen->logits[i], err));
    if (gen->layout == NULL) {
        CT_TRY(cti_layout_of(gen->alloc, &gen->builds[i], NULL, NULL, &gen->layout, err));
    }
    ct_graph *g = gen->graphs[i];
    ct_value_id *flats;
    CT_TRY(ct_pass_flat(g, gen->builds[i].params, gen->builds[i].n_params, gen->layout, NULL, gen->o.dtype, &flats, err));
    CT_TRY(ct_pass_merge(g, err));
    CT_TRY(ct_pass_fuse(g, err));
    CT_TRY(ct_pass_schedule(g, &gen->logits[i], 1, false, err));
    gen->logit_row[i] = ct_graph_find(g, "logit_row");
    return CT_OK;
}

static ct_status create(cti_generator *gen, const ct_backend *backend, const ct_component *spec, ct_err *err)
{
    ct_plan_item items[2];
    for (int i = 0; i < 2; i++) {
        CT_TRY(build_graph(gen, i, spec, err));
        items[i] = (ct_plan_item){gen->graphs[i], &gen->logits[i], 1};
    }
    ct_comm *comms[CT_MAX_AXES] = {0};
    CT_TRY(cti_engine_create(gen->alloc, backend, items, 2, comms, &gen->engine, err));
    CT_TRY(cti_engine_init_consts(gen->engine, &gen->builds[0], err));
    const ct_value *logits = ct_graph_value_c(gen->graphs[0], gen->logits[0]);
    gen->vocab_size = logits->dims[logits->ndim - 1];
    gen->logit_values = CT_NEW_ARRAY(gen->alloc, float, gen->vocab_size, err);
    gen->seen = CT_NEW_ARRAY(gen->alloc, uint8_t, gen->vocab_size, err);
    const bool is_wide = gen->o.dtype == CT_DTYPE_F32;
    gen->logit_bits = is_wide ? NULL : CT_NEW_ARRAY(gen->alloc, uint16_t, gen->vocab_size, err);
    if (gen->logit_values == NULL || gen->seen == NULL || (!is_wide && gen->logit_bits == NULL)) {
        return CT_ERR_MEMORY;
    }
    return cti_sampler_init(&gen->sampler, gen->alloc, gen->vocab_size, err);
}

ct_status cti_generator_create(const ct_alloc *alloc, const ct_backend *backend, const ct_component *model_spec,
                               const cti_generator_options *options, cti_generator **out_generator, ct_err *err)
{
    cti_generator *gen = CT_NEW(alloc, cti_generator, err);
    if (gen == NULL) {
        return CT_ERR_MEMORY;
    }
    gen->alloc = alloc;
    gen->o = *options;
    const ct_status st = create(gen, backend, model_spec, err);
    if (st != CT_OK) {
        cti_generator_destroy(&gen);
        return st;
    }
    *out_generator = gen;
    return CT_OK;
}

void cti_generator_destroy(cti_generator **generator)
{
    cti_generator *gen = *generator;
    if (gen == NULL) {
        return;
    }
    cti_engine_destroy(&gen->engine);
    for (int i = 0; i < 2; i++) {
        ct_graph_destroy(&gen->graphs[i]);
    }
    ct_flat_layout_destroy(&gen->layout);
    ct_alloc_free(gen->alloc, gen->logit_values);
    ct_alloc_free(gen->alloc, gen->logit_bits);
    ct_alloc_free(gen->alloc, gen->seen);
    if (gen->sampler.alloc != NULL) {
        cti_sampler_deinit(&gen->sampler);
    }
    ct_alloc_free(gen->alloc, gen);
    *generator = NULL;
}

ct_status cti_generator_load(cti_generator *gen, cti_weight_source source, const void *ctx, ct_err *err)
{
    enum { CHUNK = 1 << 20 };
    const ct_flat_layout *l = gen->layout;
    float *host = CT_NEW_ARRAY(gen->alloc, float, CHUNK, err);
    ct_status st = host == NULL ? CT_ERR_MEMORY : CT_OK;
    for (int32_t g = 0; g < l->n_groups && st == CT_OK; g++) {
        for (int32_t i = 0; i < l->groups[g].n_members && st == CT_OK; i++) {
            const ct_flat_member *member = &l->groups[g].members[i];
            for (int64_t at = 0; at < member->numel && st == CT_OK; at += CHUNK) {
                const int64_t to = cti_min_i64(at + CHUNK, member->numel);
                st = source(ctx, member->name, at, to, gen->o.dtype, host, err);
                if (st == CT_OK) {
                    st = cti_engine_write_flat(gen->engine, "flat", l->groups[g].name, member->offset + at, to - at, host, err);
                }
            }
        }
    }
    ct_alloc_free(gen->alloc, host);
    return st;
}

void cti_generator_reset(cti_generator *gen)
{
    gen->n_cached = 0;
    memset(gen->seen, 0, (size_t)gen->vocab_size);
}

static ct_status put(cti_generator *gen, int graph, ct_value_id value, const void *host, ct_err *err)
{
    return ct_runtime_write(gen->engine->runtime, graph, value, host,
                            ct_value_size_bytes(ct_graph_value_c(gen->graphs[graph], value)), err);
}

static ct_status read_logits(cti_generator *gen, int graph, ct_err *err)
{
    const size_t size = (size_t)gen->vocab_size * ct_dtype_size_bytes(gen->o.dtype);
    if (gen->logit_bits == NULL) {
        return ct_runtime_read(gen->engine->runtime, graph, gen->logits[graph], gen->logit_values, size, err);
    }
    CT_TRY(ct_runtime_read(gen->engine->runtime, graph, gen->logits[graph], gen->logit_bits, size, err));
    for (int64_t i = 0; i < gen->vocab_size; i++) {
        gen->logit_values[i] = cti_bf16_to_f32(gen->logit_bits[i]);
    }
    return CT_OK;
}

/* n tokens of one call: n is 1 for decode, at most CTI_PREFILL_CHUNK for prefill. Rows past n are padding: what they leave in the
 * caches is overwritten before anything attends to it. */
static ct_status run_chunk(cti_generator *gen, int graph, const int32_t *ids, int32_t n, ct_err *err)
{
    const ct_build *b = &gen->builds[graph];
    const int32_t room = graph == 0 ? CTI_PREFILL_CHUNK : 1, start = (int32_t)gen->n_cached;
    int32_t tokens[CTI_PREFILL_CHUNK] = {0}, positions[CTI_PREFILL_CHUNK], segments[CTI_PREFILL_CHUNK * 4] = {0};
    memcpy(tokens, ids, (size_t)n * sizeof *ids);
    for (int32_t i = 0; i < room; i++) {
        positions[i] = (int32_t)cti_min_i64(start + i, gen->o.cache_len - 1);
    }
    const int32_t row[4] = {0, n, 0, start + n}, one = 1, last = n - 1;
    memcpy(segments, row, sizeof row);
    CT_TRY(put(gen, graph, b->tokens, tokens, err));
    CT_TRY(put(gen, graph, b->positions, positions, err));
    CT_TRY(put(gen, graph, b->segments, segments, err));
    CT_TRY(put(gen, graph, b->n_segments, &one, err));
    CT_TRY(put(gen, graph, b->cache_start, &start, err));
    CT_TRY(put(gen, graph, gen->logit_row[graph], &last, err));
    CT_TRY(ct_runtime_run(gen->engine->runtime, graph, graph == 0 ? CT_PROGRAM_PREFILL : CT_PROGRAM_DECODE, err));
    gen->n_cached += n;
    return read_logits(gen, graph, err);
}

ct_status cti_generator_feed(cti_generator *gen, const int32_t *ids, int64_t n, ct_err *err)
{
    if (n > gen->o.cache_len - gen->n_cached) {
        return CT_FAIL(err, CT_ERR_RANGE, "%" PRId64 " more tokens do not fit: the cache holds %" PRId64 " of %" PRId64, n,
                       gen->n_cached, gen->o.cache_len);
    }
    for (int64_t i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= gen->vocab_size) {
            return CT_FAIL(err, CT_ERR_RANGE, "token id %d is not below the %" PRId64 " of the model's vocabulary", ids[i], gen->vocab_size);
        }
        gen->seen[ids[i]] = 1;
    }
    for (int64_t at = 0; at < n;) {
        const int32_t len = (int32_t)cti_min_i64(n - at, CTI_PREFILL_CHUNK);
        CT_TRY(run_chunk(gen, len == 1 ? 1 : 0, ids + at, len, err));
        at += len;
    }
    return CT_OK;
}

ct_status cti_generator_sample(cti_generator *gen, const cti_sampling *sampling, cti_rng_key key, int32_t *out_id, ct_err *err)
{
    const bool has_penalty = sampling->repetition_penalty > 0.0 && fabs(sampling->repetition_penalty - 1.0) > 0.0;
    CT_TRY(cti_sampler_keep(&gen->sampler, sampling, gen->logit_values, has_penalty ? gen->seen : NULL, err));
    *out_id = cti_sampler_draw(&gen->sampler, cti_rng_uniform(key, (uint64_t)gen->n_cached));
    return CT_OK;
}
