/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in's data set as a corpus: one part, whose documents are asked for by number. */
#include "base/hash.h"
#include "ctitan/plugin.h"
#include "data/data_internal.h"

struct ct_text_sink {
    cti_str *bytes; /* borrows */
    size_t most;
    bool is_long;
};

ct_status ct_text_add(ct_text_sink *sink, const char *bytes, size_t size, ct_err *err)
{
    if (sink->is_long || size > sink->most - sink->bytes->len) {
        sink->is_long = true; /* the rest need not be kept */
        return CT_OK;
    }
    cti_str_add_n(sink->bytes, bytes, size);
    return cti_str_check(sink->bytes, err);
}

ct_status cti_dataset_read(const cti_corpus_part *part, int64_t local, size_t most, cti_str *bytes, bool *out_is_long, cti_line_fault *fault, ct_err *err)
{
    ct_text_sink sink = {bytes, most, false};
    ct_err why = {0};
    const ct_status st = part->dataset->read(part->state, local, &sink, &why);
    *out_is_long = sink.is_long;
    if (st == CT_OK) {
        return CT_OK;
    }
    const char *what = why.message[0] != '\0' ? why.message : ct_status_sentence(st);
    if (st != CT_ERR_DATA) {
        return CT_FAIL(err, st, "the data set '%s', document %lld: %s", part->path, (long long)local, what);
    }
    *fault = (cti_line_fault){.bad = CT_BAD_CONTENT};
    (void)snprintf(fault->detail, sizeof fault->detail, "%.*s", (int)sizeof fault->detail - 1, what);
    return CT_OK;
}

static ct_status open_state(const ct_alloc *alloc, const char *path, cti_corpus_part *part, ct_err *err)
{
    const ct_dataset *d = part->dataset;
    uint64_t identity = 0;
    ct_err why = {0};
    const ct_status st = d->open(alloc, path, &part->state, &part->n, &identity, &why);
    if (st != CT_OK) {
        part->state = NULL; /* nothing to close */
        return CT_FAIL(err, st, "the data set '%s': %s", d->name, why.message[0] != '\0' ? why.message : ct_status_sentence(st));
    }
    if (part->state == NULL || part->n < 1) {
        return CT_FAIL(err, part->state == NULL ? CT_ERR_PLUGIN : CT_ERR_DATA, "the data set '%s' has %s", d->name,
                       part->state == NULL ? "opened to nothing" : "no document");
    }
    const uint64_t numbers[2] = {(uint64_t)part->n, identity};
    part->source.stamp.fingerprint = cti_hash64(numbers, sizeof numbers, 0);
    return CT_OK;
}

ct_status ct_corpus_open_dataset(const ct_alloc *alloc, const ct_dataset *dataset, const char *path, const ct_corpus_options *options,
                                 ct_corpus **out_corpus, ct_err *err)
{
    ct_corpus *corpus = CT_NEW(alloc, ct_corpus, err);
    if (corpus == NULL) {
        return CT_ERR_MEMORY;
    }
    corpus->alloc = alloc;
    corpus->notes.alloc = alloc;
    ct_status st;
    CT_TRY_GOTO(st, cti_corpus_set_options(corpus, options, err), fail);
    corpus->parts = CT_NEW_ARRAY(alloc, cti_corpus_part, 1, err);
    CT_TRY_GOTO(st, corpus->parts != NULL ? CT_OK : CT_ERR_MEMORY, fail);
    corpus->n_parts = 1;
    cti_corpus_part *part = &corpus->parts[0];
    part->format = CT_FILE_PLUGIN;
    part->dataset = dataset;
    part->path = ct_alloc_strdup(alloc, dataset->name, err);
    CT_TRY_GOTO(st, part->path != NULL ? CT_OK : CT_ERR_MEMORY, fail);
    part->source.path = part->path;
    CT_TRY_GOTO(st, open_state(alloc, path, part, err), fail);
    corpus->n_documents = part->n;
    *out_corpus = corpus;
    return CT_OK;
fail:
    ct_corpus_destroy(&corpus);
    return st;
}
