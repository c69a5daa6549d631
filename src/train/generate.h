/* SPDX-License-Identifier: Apache-2.0 */
/* Text from a model: prefill in chunks, then one token at a time with a KV cache.
 *
 *     cti_generator *gen;
 *     const cti_generator_options o = {.cache_len = 512, .dtype = CT_DTYPE_F32};
 *     CT_TRY(cti_generator_create(alloc, backend, model_spec, &o, &gen, err));
 *     CT_TRY(cti_generator_load(gen, read_weights, ctx, err));
 *     CT_TRY(cti_generator_feed(gen, ids, n, err));                        // the prompt
 *     CT_TRY(cti_generator_sample(gen, &sampling, key, &id, err));         // from the last logits
 *     CT_TRY(cti_generator_feed(gen, &id, 1, err));
 *     cti_generator_reset(gen);                                            // another prompt
 *     cti_generator_destroy(&gen);
 */
#ifndef CTI_TRAIN_GENERATE_H
#define CTI_TRAIN_GENERATE_H

#include "base/rng.h"
#include "ctitan/component.h"
#include "train/engine.h"
#include "train/sampling.h"

typedef struct cti_generator_options {
    int64_t cache_len; /* tokens that the caches hold: prompt and what is written */
    ct_dtype dtype;    /* of parameters, caches and sums between ops: F32, BF16 */
} cti_generator_options;

typedef struct cti_generator {
    const ct_alloc *alloc;
    ct_graph *graphs[2];    /* prefill of CTI_PREFILL_CHUNK tokens, decode of one */
    ct_build builds[2];
    ct_value_id logit_row[2], logits[2];
    ct_flat_layout *layout; /* degree 1 */
    cti_engine *engine;
    cti_generator_options o;
    int64_t n_cached;       /* tokens that the caches hold */
    int64_t vocab_size;
    float *logit_values;    /* [vocab_size] of the last token fed */
    uint16_t *logit_bits;   /* [vocab_size] the same as the device gives them, in BF16; NULL in F32 */
    uint8_t *seen;          /* [vocab_size] 1: was fed since the last reset */
    cti_sampler sampler;
} cti_generator;

enum { CTI_PREFILL_CHUNK = 32 };

CT_MUST_CHECK ct_status cti_generator_create(const ct_alloc *alloc, const ct_backend *backend,
                                             const ct_component *model_spec, const cti_generator_options *options,
                                             cti_generator **out_generator, ct_err *err);
void cti_generator_destroy(cti_generator **generator);
/* Gives elements [begin, end) of a parameter in `dtype`. */
typedef ct_status (*cti_weight_source)(const void *ctx, const char *name, int64_t begin, int64_t end, ct_dtype dtype, void *dst, ct_err *err);
CT_MUST_CHECK ct_status cti_generator_load(cti_generator *gen, cti_weight_source source, const void *ctx, ct_err *err);
/* Forgets what the model has read. */
void cti_generator_reset(cti_generator *gen);
/* Appends n tokens to what the model has read. ERR_RANGE where the cache is full, or an id is none of the model's. */
CT_MUST_CHECK ct_status cti_generator_feed(cti_generator *gen, const int32_t *ids, int64_t n, ct_err *err);
/* The draw depends on the logits, the key and the number of tokens read, and on nothing else. */
CT_MUST_CHECK ct_status cti_generator_sample(cti_generator *gen, const cti_sampling *sampling, cti_rng_key key, int32_t *out_id,
                                             ct_err *err);

#endif
