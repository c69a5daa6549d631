/* SPDX-License-Identifier: Apache-2.0 */
/* Entropy of token frequencies: H = -sum p ln p over the shares p (Shannon 1948), in nats. */
#include <math.h>

#include "base/num.h"
#include "data/data_internal.h"

typedef struct counts {
    const ct_alloc *alloc;
    int64_t *of; /* owns: of each id */
    int64_t cap, n_total;
} counts;

static ct_status count(counts *c, const int32_t *tokens, int64_t n, ct_err *err)
{
    for (int64_t i = 0; i < n; i++) {
        const int32_t id = tokens[i];
        if (id < 0) {
            continue;
        }
        if (id >= c->cap) {
            const int64_t cap = cti_max_i64((int64_t)id + 1, 2 * c->cap);
            int64_t *grown = ct_alloc_resize(c->alloc, c->of, (size_t)cap, sizeof *grown, err);
            if (grown == NULL) {
                return CT_ERR_MEMORY;
            }
            memset(grown + c->cap, 0, (size_t)(cap - c->cap) * sizeof *grown);
            c->of = grown;
            c->cap = cap;
        }
        c->of[id]++;
        c->n_total++;
    }
    return CT_OK;
}

static double entropy(const counts *c)
{
    double sum = 0.0;
    for (int64_t i = 0; i < c->cap; i++) {
        if (c->of[i] > 0) {
            const double p = (double)c->of[i] / (double)c->n_total;
            sum -= p * log(p);
        }
    }
    return sum;
}

ct_status ct_unigram_entropy(const ct_alloc *alloc, const int32_t *tokens, int64_t n_tokens, double *out_nats, ct_err *err)
{
    counts c = {.alloc = alloc};
    const ct_status st = count(&c, tokens, n_tokens, err);
    if (st == CT_OK) {
        *out_nats = entropy(&c);
    }
    ct_alloc_free(alloc, c.of);
    return st;
}

/* Counts the labels of one document, unless it is bad. */
static ct_status count_document(counts *c, const ct_corpus *corpus, int64_t document, ct_encode_fn encode, void *encode_ctx,
                                cti_str *text, ct_tokens *ids, ct_err *err)
{
    cti_line_fault fault;
    ct_text_repairs repairs = {0};
    CT_TRY(cti_corpus_read(corpus, document, text, &repairs, &fault, err));
    if (fault.bad != CT_BAD_NONE) {
        return CT_OK;
    }
    ids->n = 0;
    CT_TRY(encode(encode_ctx, cti_str_text(text), text->len, ids, err));
    return ids->n >= 2 ? count(c, ids->ids + 1, ids->n - 1, err) : CT_OK;
}

ct_status ct_dataset_unigram_entropy(const ct_alloc *alloc, const ct_corpus *corpus, ct_encode_fn encode, void *encode_ctx,
                                     int64_t max_tokens, double *out_nats, int64_t *out_n_tokens, ct_err *err)
{
    counts c = {.alloc = alloc};
    cti_str text = {.alloc = alloc};
    ct_tokens ids = {.alloc = alloc};
    ct_status st = CT_OK;
    for (int64_t i = 0; st == CT_OK && i < ct_corpus_n_documents(corpus); i++) {
        st = count_document(&c, corpus, i, encode, encode_ctx, &text, &ids, err);
        if (max_tokens > 0 && c.n_total >= max_tokens) {
            break;
        }
    }
    if (st == CT_OK) {
        *out_nats = entropy(&c);
        if (out_n_tokens != NULL) {
            *out_n_tokens = c.n_total;
        }
    }
    ct_alloc_free(alloc, c.of);
    cti_str_deinit(&text);
    ct_alloc_free(alloc, ids.ids);
    return st;
}
