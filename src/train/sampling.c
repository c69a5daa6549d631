/* SPDX-License-Identifier: Apache-2.0 */
/* The next token. A heap gives the candidates in order, as many as are needed: nothing sorts the vocabulary. */
#include "train/sampling.h"

#include <inttypes.h>
#include <math.h>

#include "base/base.h"

ct_status cti_sampler_init(cti_sampler *s, const ct_alloc *alloc, int64_t n_vocab, ct_err *err)
{
    *s = (cti_sampler){.alloc = alloc, .n_vocab = n_vocab};
    s->ids = CT_NEW_ARRAY(alloc, int32_t, n_vocab, err);
    s->weights = CT_NEW_ARRAY(alloc, double, n_vocab, err);
    s->scores = CT_NEW_ARRAY(alloc, double, n_vocab, err);
    s->heap = CT_NEW_ARRAY(alloc, int32_t, n_vocab, err);
    return s->ids != NULL && s->weights != NULL && s->scores != NULL && s->heap != NULL ? CT_OK : CT_ERR_MEMORY;
}

void cti_sampler_deinit(cti_sampler *s)
{
    ct_alloc_free(s->alloc, s->ids);
    ct_alloc_free(s->alloc, s->weights);
    ct_alloc_free(s->alloc, s->scores);
    ct_alloc_free(s->alloc, s->heap);
    *s = (cti_sampler){0};
}

static bool is_before(const cti_sampler *s, int32_t a, int32_t b)
{
    return s->scores[a] > s->scores[b] || (!(s->scores[a] < s->scores[b]) && a < b);
}

static void sift_down(const cti_sampler *s, int64_t at, int64_t n)
{
    const int32_t id = s->heap[at];
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        child += child + 1 < n && is_before(s, s->heap[child + 1], s->heap[child]);
        if (!is_before(s, s->heap[child], id)) {
            break;
        }
        s->heap[at] = s->heap[child];
    }
    s->heap[at] = id;
}

/* The next candidate goes behind those that are kept. */
static void take(cti_sampler *s)
{
    const int64_t n = s->n_vocab - s->n_kept;
    const int32_t id = s->heap[0];
    s->heap[0] = s->heap[n - 1];
    sift_down(s, 0, n - 1);
    s->ids[s->n_kept] = id;
    s->weights[s->n_kept] = exp(s->scores[id] - s->scores[s->ids[0]]);
    s->n_kept++;
}

static ct_status make_scores(cti_sampler *s, const cti_sampling *how, const float *logits, const uint8_t *seen, int64_t *out_best, ct_err *err)
{
    const double temperature = how->temperature > 0.0 ? how->temperature : 1.0;
    *out_best = 0;
    for (int64_t i = 0; i < s->n_vocab; i++) {
        double score = (double)logits[i];
        if (!isfinite(score)) {
            return CT_FAIL(err, CT_ERR_NUMERIC, "the model's logit of token %" PRId64 " is not finite", i);
        }
        if (seen != NULL && seen[i] != 0) {
            score = score > 0.0 ? score / how->repetition_penalty : score * how->repetition_penalty;
        }
        s->scores[i] = score / temperature;
        *out_best = s->scores[i] > s->scores[*out_best] ? i : *out_best;
    }
    return CT_OK;
}

/* All by their ids; gives the sum of the weights. */
static double keep_all(cti_sampler *s, int64_t best)
{
    double sum = 0.0;
    for (int64_t i = 0; i < s->n_vocab; i++) {
        s->ids[i] = (int32_t)i;
        s->weights[i] = exp(s->scores[i] - s->scores[best]);
        sum += s->weights[i];
    }
    s->n_kept = s->n_vocab;
    return sum;
}

ct_status cti_sampler_keep(cti_sampler *s, const cti_sampling *how, const float *logits, const uint8_t *seen, ct_err *err)
{
    int64_t best;
    CT_TRY(make_scores(s, how, logits, seen, &best, err));
    if (how->temperature <= 0.0) {
        s->ids[0] = (int32_t)best;
        s->weights[0] = 1.0;
        s->n_kept = 1;
        return CT_OK;
    }
    const int64_t limit = how->top_k > 0 ? cti_min_i64(how->top_k, s->n_vocab) : s->n_vocab;
    double sum = limit == s->n_vocab ? keep_all(s, best) : 0.0;
    if (limit == s->n_vocab && how->top_p >= 1.0 && how->min_p <= 0.0) {
        return CT_OK;
    }
    for (int64_t i = 0; i < s->n_vocab; i++) {
        s->heap[i] = (int32_t)i;
    }
    for (int64_t i = s->n_vocab / 2; i-- > 0;) {
        sift_down(s, i, s->n_vocab);
    }
    s->n_kept = 0;
    while (limit < s->n_vocab && s->n_kept < limit) {
        take(s);
        sum += s->weights[s->n_kept - 1];
    }
    double before = 0.0; /* the weight of those that are likelier */
    int64_t n = 0;
    for (; n < limit; n++) {
        if (n == s->n_kept) {
            take(s);
        }
        if (n > 0 && ((how->top_p < 1.0 && before >= how->top_p * sum) || s->weights[n] < how->min_p)) {
            break;
        }
        before += s->weights[n];
    }
    s->n_kept = n;
    return CT_OK;
}

int32_t cti_sampler_draw(const cti_sampler *s, double uniform)
{
    double sum = 0.0;
    for (int64_t i = 0; i < s->n_kept; i++) {
        sum += s->weights[i];
    }
    double rest = uniform * sum;
    int64_t pick = 0;
    while (pick < s->n_kept - 1 && rest >= s->weights[pick]) {
        rest -= s->weights[pick++];
    }
    return s->ids[pick];
}
