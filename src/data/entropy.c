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

/* What the counting of a corpus needs. */
typedef struct walk {
    counts c;
    ct_reader *reader; /* owns */
    void *state;       /* owns */
    ct_document document;
    ct_sample sample;
} walk;

/* Counts the labels of one document, unless it is bad. */
static ct_status count_document(walk *w, const ct_processor *processor, int64_t number, ct_err *err)
{
    cti_line_fault fault;
    ct_text_repairs repairs = {0};
    CT_TRY(cti_reader_read(w->reader, number, &w->document, &repairs, &fault, err));
    if (fault.bad != CT_BAD_NONE) {
        return CT_OK;
    }
    w->sample.ids.n = w->sample.labels.n = 0;
    ct_err why = {0};
    void *state = processor->open != NULL ? w->state : (void *)(uintptr_t)processor->ctx;
    const ct_status st = processor->process(state, &w->document, &w->sample, &why);
    if (st != CT_OK) {
        return st == CT_ERR_DATA ? CT_OK : CT_FAIL(err, st, "document %lld: %s", (long long)number, why.message);
    }
    const ct_tokens *labels = w->sample.labels.n > 0 ? &w->sample.labels : &w->sample.ids;
    return labels->n >= 2 ? count(&w->c, labels->ids + 1, labels->n - 1, err) : CT_OK;
}

ct_status ct_dataset_unigram_entropy(const ct_alloc *alloc, const ct_corpus *corpus, const ct_processor *processor,
                                     int64_t max_tokens, double *out_nats, int64_t *out_n_tokens, ct_err *err)
{
    walk w = {.c = {.alloc = alloc}};
    ct_document_init(&w.document, alloc);
    ct_sample_init(&w.sample, alloc);
    ct_status st;
    CT_TRY_GOTO(st, ct_reader_create(alloc, corpus, &w.reader, err), out);
    if (processor->open != NULL) {
        CT_TRY_GOTO(st, processor->open(processor->ctx, alloc, &w.state, err), out);
    }
    for (int64_t i = 0; i < ct_corpus_n_documents(corpus) && (max_tokens == 0 || w.c.n_total < max_tokens); i++) {
        CT_TRY_GOTO(st, count_document(&w, processor, i, err), out);
    }
    *out_nats = entropy(&w.c);
    if (out_n_tokens != NULL) {
        *out_n_tokens = w.c.n_total;
    }
out:
    if (w.state != NULL) {
        processor->close(w.state);
    }
    ct_reader_destroy(&w.reader);
    ct_alloc_free(alloc, w.c.of);
    ct_document_deinit(&w.document);
    ct_sample_deinit(&w.sample);
    return st;
}
