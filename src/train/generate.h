/* SPDX-License-Identifier: Apache-2.0 */
/* Text from a model: prefill in chunks, then one token at a time with a KV cache. Computes in float32.
 *
 *     cti_generator *gen;
 *     CT_TRY(cti_generator_create(alloc, backend, model_spec, 512, &gen, err));
 *     ... fill gen->engine's parameters (cti_engine_write_flat, layout gen->layout)
 *     CT_TRY(cti_generator_feed(gen, ids, n, err));               // the prompt
 *     CT_TRY(cti_generator_sample(gen, &sampling, &id, err));     // from the last logits
 *     CT_TRY(cti_generator_feed(gen, &id, 1, err));
 *     cti_generator_destroy(&gen);
 */
#ifndef CTI_TRAIN_GENERATE_H
#define CTI_TRAIN_GENERATE_H

#include "base/rng.h"
#include "ctitan/component.h"
#include "train/engine.h"

typedef struct cti_sampling {
    double temperature; /* 0: the likeliest token */
    int64_t top_k;      /* 0: all */
    cti_rng_key key;
} cti_sampling;

typedef struct cti_generator {
    const ct_alloc *alloc;
    ct_graph *graphs[2];    /* prefill of CTI_PREFILL_CHUNK tokens, decode of one */
    ct_build builds[2];
    ct_value_id logit_row[2], logits[2];
    ct_flat_layout *layout; /* degree 1 */
    cti_engine *engine;
    int64_t cache_len, n_cached; /* tokens that the caches hold, and can hold */
    int64_t vocab_size;
    float *logit_values;    /* [vocab_size] of the last token fed */
    double *weights;        /* [vocab_size] scratch */
    int32_t *order;         /* [vocab_size] scratch */
} cti_generator;

enum { CTI_PREFILL_CHUNK = 32 };

CT_MUST_CHECK ct_status cti_generator_create(const ct_alloc *alloc, const ct_backend *backend,
                                             const ct_component *model_spec, int64_t cache_len,
                                             cti_generator **out_generator, ct_err *err);
void cti_generator_destroy(cti_generator **generator);
/* Appends n tokens to what the model has read. ERR_RANGE where the cache is full. */
CT_MUST_CHECK ct_status cti_generator_feed(cti_generator *gen, const int32_t *ids, int64_t n, ct_err *err);
CT_MUST_CHECK ct_status cti_generator_sample(cti_generator *gen, const cti_sampling *sampling, int32_t *out_id,
                                             ct_err *err);

#endif
