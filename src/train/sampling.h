/* SPDX-License-Identifier: Apache-2.0 */
/* Which tokens may come next, and the draw among them. The steps and their order are those of transformers' logits processors: repetition
 * penalty, temperature, top-k, top-p, min-p; in float64.
 *
 *     cti_sampler sampler;
 *     CT_TRY(cti_sampler_init(&sampler, alloc, vocab_size, err));
 *     const cti_sampling how = {.temperature = 0.8, .top_k = 50, .top_p = 0.95, .repetition_penalty = 1.0};
 *     CT_TRY(cti_sampler_keep(&sampler, &how, logits, NULL, err));       // sampler.ids, .weights, .n_kept
 *     id = cti_sampler_draw(&sampler, cti_rng_uniform(key, position));
 *     cti_sampler_deinit(&sampler);
 */
#ifndef CTI_TRAIN_SAMPLING_H
#define CTI_TRAIN_SAMPLING_H

#include <stdint.h>

#include "ctitan/alloc.h"

typedef struct cti_sampling {
    double temperature;        /* 0: the likeliest token, of equal ones that of the lowest id; nothing below counts but the penalty */
    int64_t top_k;             /* the likeliest k, of equal ones those of the lowest ids; 0: all */
    double top_p;              /* those before which less than this probability lies; the likeliest always; 1: all */
    double min_p;              /* those of at least this share of the likeliest one's probability; 0: all */
    double repetition_penalty; /* logits of tokens that were seen: divided by it where positive, else multiplied; 1: as they are */
} cti_sampling;

typedef struct cti_sampler {
    const ct_alloc *alloc;
    int64_t n_vocab;
    int32_t *ids;    /* owns; what may come next: the likeliest first, or all by their ids where nothing is left out */
    double *weights; /* owns; in proportion to the probabilities, the likeliest 1 */
    int64_t n_kept;
    double *scores;  /* owns; scratch, [n_vocab] */
    int32_t *heap;   /* owns; scratch, [n_vocab] */
} cti_sampler;

CT_MUST_CHECK ct_status cti_sampler_init(cti_sampler *sampler, const ct_alloc *alloc, int64_t n_vocab, ct_err *err);
void cti_sampler_deinit(cti_sampler *sampler);
/* logits: [n_vocab]. seen: NULL, or [n_vocab] of which those that are not 0 take the penalty. ERR_NUMERIC naming a logit that is not finite. */
CT_MUST_CHECK ct_status cti_sampler_keep(cti_sampler *sampler, const cti_sampling *sampling, const float *logits, const uint8_t *seen,
                                         ct_err *err);
/* One of what was kept; uniform: in [0, 1). */
int32_t cti_sampler_draw(const cti_sampler *sampler, double uniform);

#endif
