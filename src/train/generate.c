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
                                 .param_dtype = CT_DTYPE_F32,
                                 .batch = 1,
                                 .seq_len = i == 0 ? CTI_PREFILL_CHUNK : 1,
                                 .cache_len = gen->cache_len,
                                 .loss_chunks = 1};
    CT_TRY(cti_graph_build(gen->alloc, spec, &o, &gen->graphs[i], &gen->builds[i], &gen->logits[i], err));
    if (gen->layout == NULL) {
        CT_TRY(cti_layout_of(gen->alloc, &gen->builds[i], NULL, &gen->layout, err));
    }
    ct_graph *g = gen->graphs[i];
    ct_value_id *flats;
    CT_TRY(ct_pass_flat(g, gen->builds[i].params, gen->builds[i].n_params, gen->layout, NULL, CT_DTYPE_F32, &flats, err));
    CT_TRY(ct_pass_merge(g, err));
    CT_TRY(ct_pass_fuse(g, err));
    CT_TRY(ct_pass_schedule(g, &gen->logits[i], 1, err));
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
    gen->weights = CT_NEW_ARRAY(gen->alloc, double, gen->vocab_size, err);
    gen->order = CT_NEW_ARRAY(gen->alloc, int32_t, gen->vocab_size, err);
    return gen->logit_values != NULL && gen->weights != NULL && gen->order != NULL ? CT_OK : CT_ERR_MEMORY;
}

ct_status cti_generator_create(const ct_alloc *alloc, const ct_backend *backend, const ct_component *model_spec,
                               int64_t cache_len, cti_generator **out_generator, ct_err *err)
{
    cti_generator *gen = CT_NEW(alloc, cti_generator, err);
    if (gen == NULL) {
        return CT_ERR_MEMORY;
    }
    gen->alloc = alloc;
    gen->cache_len = cache_len;
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
    ct_alloc_free(gen->alloc, gen->weights);
    ct_alloc_free(gen->alloc, gen->order);
    ct_alloc_free(gen->alloc, gen);
    *generator = NULL;
}

static ct_status put(cti_generator *gen, int graph, ct_value_id value, const void *host, ct_err *err)
{
    return ct_runtime_write(gen->engine->runtime, graph, value, host,
                            ct_value_size_bytes(ct_graph_value_c(gen->graphs[graph], value)), err);
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
        positions[i] = (int32_t)cti_min_i64(start + i, gen->cache_len - 1);
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
    return ct_runtime_read(gen->engine->runtime, graph, gen->logits[graph], gen->logit_values,
                           (size_t)gen->vocab_size * sizeof(float), err);
}

ct_status cti_generator_feed(cti_generator *gen, const int32_t *ids, int64_t n, ct_err *err)
{
    if (n > gen->cache_len - gen->n_cached) {
        return CT_FAIL(err, CT_ERR_RANGE, "%" PRId64 " more tokens do not fit: the cache holds %" PRId64 " of %" PRId64, n,
                       gen->n_cached, gen->cache_len);
    }
    for (int64_t at = 0; at < n;) {
        const int32_t len = (int32_t)cti_min_i64(n - at, CTI_PREFILL_CHUNK);
        CT_TRY(run_chunk(gen, len == 1 ? 1 : 0, ids + at, len, err));
        at += len;
    }
    return CT_OK;
}

/* Index of the largest logit at or after position `from` of order[]; ties go to the lower id. */
static void select_top(const float *logits, int32_t *order, int64_t n, int64_t from)
{
    int64_t best = from;
    for (int64_t i = from + 1; i < n; i++) {
        const float a = logits[order[i]], b = logits[order[best]];
        if (a > b || (!(a < b) && order[i] < order[best])) {
            best = i;
        }
    }
    const int32_t id = order[from];
    order[from] = order[best];
    order[best] = id;
}

ct_status cti_generator_sample(cti_generator *gen, const cti_sampling *s, int32_t *out_id, ct_err *err)
{
    const int64_t n = gen->vocab_size;
    const int64_t k = s->temperature <= 0.0 ? 1 : s->top_k > 0 ? cti_min_i64(s->top_k, n) : n;
    for (int64_t i = 0; i < n; i++) {
        gen->order[i] = (int32_t)i;
        if (!isfinite(gen->logit_values[i])) {
            return CT_FAIL(err, CT_ERR_NUMERIC, "the model's logit of token %" PRId64 " is not finite", i);
        }
    }
    for (int64_t i = 0; i < k && k < n; i++) {
        select_top(gen->logit_values, gen->order, n, i);
    }
    if (k == 1) {
        *out_id = gen->order[0];
        return CT_OK;
    }
    float top = gen->logit_values[gen->order[0]];
    for (int64_t i = 0; i < k; i++) {
        top = fmaxf(top, gen->logit_values[gen->order[i]]);
    }
    double sum = 0.0;
    for (int64_t i = 0; i < k; i++) {
        gen->weights[i] = exp(((double)gen->logit_values[gen->order[i]] - (double)top) / s->temperature);
        sum += gen->weights[i];
    }
    double rest = cti_rng_uniform(s->key, (uint64_t)gen->n_cached) * sum;
    int64_t pick = 0;
    while (pick < k - 1 && rest >= gen->weights[pick]) {
        rest -= gen->weights[pick++];
    }
    *out_id = gen->order[pick];
    return CT_OK;
}
