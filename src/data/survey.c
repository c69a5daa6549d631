/* SPDX-License-Identifier: Apache-2.0 */
/* What a corpus holds, document by document. Entropy of token frequencies: H = -sum p ln p over the shares p (Shannon 1948), in nats. */
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

/* What the walk over a corpus needs. */
typedef struct walk {
    const ct_corpus *corpus;
    const ct_processor *processor;
    ct_survey *survey;
    counts c;
    ct_reader *reader; /* owns */
    void *state;       /* owns */
    ct_document document;
    ct_sample sample;
} walk;

static void note_bad(walk *w, int64_t number, const cti_line_fault *fault)
{
    ct_survey *s = w->survey;
    s->n_bad[fault->bad]++;
    s->n_bad_total++;
    if (s->n_examples < CT_SURVEY_N_EXAMPLES) {
        ct_err why = {0};
        (void)cti_corpus_fail(w->corpus, number, fault, &why); /* for its words */
        (void)snprintf(s->examples[s->n_examples++], sizeof s->examples[0], "%.*s", (int)sizeof s->examples[0] - 1, why.message);
    }
}

/* The processor's work; a document it cannot use is bad. */
static ct_status count_labels(walk *w, int64_t number, ct_err *err)
{
    ct_err why = {0};
    void *state = w->processor->open != NULL ? w->state : (void *)(uintptr_t)w->processor->ctx;
    w->sample.ids.n = w->sample.labels.n = 0;
    w->sample.is_long = false;
    const ct_status st = w->processor->process(state, &w->document, &w->sample, &why);
    if (st == CT_ERR_DATA) {
        cti_line_fault fault = {.bad = CT_BAD_CONTENT};
        (void)snprintf(fault.detail, sizeof fault.detail, "%.*s", (int)sizeof fault.detail - 1, why.message);
        note_bad(w, number, &fault);
        return CT_OK;
    }
    if (st != CT_OK) {
        return CT_FAIL(err, st, "document %lld: %s", (long long)number, why.message);
    }
    w->survey->n_long += w->sample.is_long;
    w->survey->n_short += w->sample.ids.n < 2 && !w->sample.is_long;
    const ct_tokens *labels = w->sample.labels.n > 0 ? &w->sample.labels : &w->sample.ids;
    return labels->n >= 2 ? count(&w->c, labels->ids + 1, labels->n - 1, err) : CT_OK;
}

static ct_status see_document(walk *w, int64_t number, ct_err *err)
{
    ct_survey *s = w->survey;
    cti_line_fault fault;
    CT_TRY(cti_reader_read(w->reader, number, &w->document, &s->repairs, &fault, err));
    s->n_documents++;
    if (fault.bad != CT_BAD_NONE) {
        note_bad(w, number, &fault);
        return CT_OK;
    }
    const bool is_ids = w->document.kind == CT_DOCUMENT_IDS;
    const int64_t size = is_ids ? w->document.ids.n : (int64_t)w->document.text.len;
    s->n_empty += size == 0;
    s->text_bytes += is_ids ? 0 : size;
    if (s->longest < 0 || size > s->longest_size) {
        s->longest = number;
        s->longest_size = size;
    }
    return w->processor != NULL ? count_labels(w, number, err) : CT_OK;
}

ct_status ct_corpus_survey(const ct_alloc *alloc, const ct_corpus *corpus, const ct_processor *processor, int64_t max_tokens,
                           ct_survey *out, ct_err *err)
{
    *out = (ct_survey){.longest = -1};
    walk w = {.corpus = corpus, .processor = processor, .survey = out, .c = {.alloc = alloc}};
    ct_document_init(&w.document, alloc);
    ct_sample_init(&w.sample, alloc);
    ct_status st;
    CT_TRY_GOTO(st, ct_reader_create(alloc, corpus, &w.reader, err), out);
    if (processor != NULL && processor->open != NULL) {
        CT_TRY_GOTO(st, processor->open(processor->ctx, alloc, &w.state, err), out);
    }
    for (int64_t i = 0; i < ct_corpus_n_documents(corpus) && (max_tokens == 0 || w.c.n_total < max_tokens); i++) {
        CT_TRY_GOTO(st, see_document(&w, i, err), out);
    }
    out->nats = entropy(&w.c);
    out->n_tokens = w.c.n_total;
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
