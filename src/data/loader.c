/* SPDX-License-Identifier: Apache-2.0 */
/* The loader: checks, delivery of batches, and where the streams stand. */
#include "base/num.h"
#include "data/data_internal.h"

struct ct_loader {
    const ct_alloc *alloc;
    cti_maker maker;            /* the thread's while it runs */
    cti_ahead ahead;            /* unused where prefetch_batches is 0 */
    ct_stream_state *delivered; /* owns; after the last batch given out */
    ct_loader_stats stats;      /* as of the last batch given out */
    ct_status status;           /* of the end or the failure that every later call returns */
    ct_err error;
};

static ct_status want(bool ok, const char *what, int64_t found, ct_err *err)
{
    return ok ? CT_OK : CT_FAIL(err, CT_ERR_RANGE, "%s, found %lld", what, (long long)found);
}

static ct_status check_options(const ct_corpus *corpus, const ct_loader_options *o, ct_err *err)
{
    const int64_t n = ct_corpus_n_documents(corpus);
    CT_TRY(want(o->seq_len > 0, "seq_len must be above 0", o->seq_len, err));
    CT_TRY(want(o->rows > 0, "rows of a micro-batch must be above 0", o->rows, err));
    CT_TRY(want(o->streams > 0, "dataloader.streams must be above 0", o->streams, err));
    CT_TRY(want(o->first_stream >= 0 && o->first_stream < o->streams, "first_stream must be one of the streams", o->first_stream, err));
    CT_TRY(want(o->n_local_streams > 0 && o->n_local_streams <= o->streams - o->first_stream,
                "n_local_streams must be above 0 and end within the streams", o->n_local_streams, err));
    CT_TRY(want(o->prefetch_batches >= 0 && o->prefetch_batches <= 1024, "prefetch_batches must be in [0, 1024]",
                o->prefetch_batches, err));
    CT_TRY(want(o->vocab_size >= 0, "vocab_size must not be negative", o->vocab_size, err));
    if (!(o->max_bad_share >= 0.0 && o->max_bad_share <= 1.0)) {
        return CT_FAIL(err, CT_ERR_RANGE, "max_bad_share must be in [0, 1], found %g", o->max_bad_share);
    }
    if (o->rows % o->streams != 0) {
        return CT_FAIL(err, CT_ERR_RANGE, "%lld rows of a micro-batch cannot be shared evenly by %lld streams: rows must be a multiple",
                       (long long)o->rows, (long long)o->streams);
    }
    int64_t tokens;
    if (!cti_mul_i64(o->rows / o->streams * o->n_local_streams, o->seq_len, &tokens) || tokens > INT32_MAX) {
        return CT_FAIL(err, CT_ERR_RANGE, "%lld rows of %lld tokens on one rank are more than 2^31 - 1 tokens",
                       (long long)(o->rows / o->streams * o->n_local_streams), (long long)o->seq_len);
    }
    if (n < o->streams) {
        return CT_FAIL(err, CT_ERR_DATA, "the dataset has %lld documents, fewer than the %lld streams", (long long)n,
                       (long long)o->streams);
    }
    return CT_OK;
}

ct_status ct_loader_create(const ct_alloc *alloc, const ct_corpus *corpus, const ct_processor *processor,
                           const ct_loader_options *options, ct_loader **out_loader, ct_err *err)
{
    CT_TRY(check_options(corpus, options, err));
    if (options->bad_policy == CT_BAD_FAIL) {
        CT_TRY(ct_corpus_check_whole(corpus, err));
    }
    ct_loader *loader = CT_NEW(alloc, ct_loader, err);
    if (loader == NULL) {
        return CT_ERR_MEMORY;
    }
    ct_status st;
    loader->alloc = alloc;
    loader->maker.alloc = alloc;
    CT_TRY_GOTO(st, cti_maker_init(&loader->maker, alloc, corpus, processor, options, err), fail);
    loader->delivered = CT_NEW_ARRAY(alloc, ct_stream_state, options->n_local_streams, err);
    if (loader->delivered == NULL) {
        st = CT_ERR_MEMORY;
        goto fail;
    }
    if (options->prefetch_batches > 0) {
        CT_TRY_GOTO(st, cti_ahead_init(&loader->ahead, &loader->maker, options->prefetch_batches, err), fail);
    }
    *out_loader = loader;
    return CT_OK;
fail:
    ct_loader_destroy(&loader);
    return st;
}

void ct_loader_destroy(ct_loader **loader)
{
    if (loader == NULL || *loader == NULL) {
        return;
    }
    ct_loader *l = *loader;
    cti_ahead_deinit(&l->ahead);
    cti_maker_deinit(&l->maker);
    ct_alloc_free(l->alloc, l->delivered);
    ct_alloc_free(l->alloc, l);
    *loader = NULL;
}

int64_t ct_loader_local_rows(const ct_loader *loader)
{
    return loader->maker.local_rows;
}

static void copy_batch(ct_batch *to, const ct_batch *from)
{
    const size_t bytes = (size_t)from->segments_cap * sizeof(int32_t);
    memcpy(to->tokens, from->tokens, bytes);
    memcpy(to->labels, from->labels, bytes);
    memcpy(to->positions, from->positions, bytes);
    memcpy(to->segments, from->segments, (size_t)from->n_segments * 4 * sizeof(int32_t));
    memset(to->segments + 4 * from->n_segments, 0, (size_t)(to->segments_cap - from->n_segments) * 4 * sizeof(int32_t));
    to->n_segments = from->n_segments;
    to->n_valid = from->n_valid;
    to->epoch = from->epoch;
    to->hash = from->hash;
}

static ct_status next_ahead(ct_loader *loader, ct_batch *batch, ct_err *err)
{
    const cti_slot *slot = NULL;
    CT_TRY(cti_ahead_start(&loader->ahead, err));
    const ct_status st = cti_ahead_acquire(&loader->ahead, &slot, err);
    if (st != CT_OK) {
        loader->stats = loader->maker.stats; /* the thread has ended */
        return st;
    }
    copy_batch(batch, &slot->batch);
    memcpy(loader->delivered, slot->states, (size_t)loader->maker.options.n_local_streams * sizeof *slot->states);
    loader->stats = slot->stats;
    cti_ahead_release(&loader->ahead);
    return CT_OK;
}

static ct_status next_here(ct_loader *loader, ct_batch *batch, ct_err *err)
{
    const ct_status st = cti_maker_next(&loader->maker, batch, err);
    loader->stats = loader->maker.stats;
    CT_TRY(st);
    cti_maker_states(&loader->maker, loader->delivered);
    return CT_OK;
}

ct_status ct_loader_next(ct_loader *loader, ct_batch *batch, ct_err *err)
{
    const int64_t n_tokens = loader->maker.local_rows * loader->maker.options.seq_len;
    if (batch->segments_cap < n_tokens) {
        return CT_FAIL(err, CT_ERR_RANGE, "segments_cap is %lld, a batch of %lld tokens wants as many",
                       (long long)batch->segments_cap, (long long)n_tokens);
    }
    if (loader->status == CT_OK) {
        loader->status = loader->maker.options.prefetch_batches > 0 ? next_ahead(loader, batch, &loader->error)
                                                                    : next_here(loader, batch, &loader->error);
    }
    if (loader->status != CT_OK && loader->status != CT_END_OF_DATA) {
        return CT_FAIL(err, loader->status, "%s", loader->error.message);
    }
    return loader->status;
}

void ct_loader_state(const ct_loader *loader, ct_stream_state *out_states)
{
    memcpy(out_states, loader->delivered, (size_t)loader->maker.options.n_local_streams * sizeof *out_states);
}

ct_status ct_loader_seek(ct_loader *loader, const ct_stream_state *states, ct_err *err)
{
    const ct_loader_options *o = &loader->maker.options;
    for (int64_t i = 0; i < o->n_local_streams; i++) {
        const ct_stream_state *s = &states[i];
        const int64_t n = loader->maker.streams[i].n;
        if (s->epoch < 0 || s->document < 0 || s->document >= n || s->token < 0) {
            return CT_FAIL(err, CT_ERR_RANGE,
                           "stream %lld: epoch %lld, document %lld, token %lld is no place in a slice of %lld documents",
                           (long long)(o->first_stream + i), (long long)s->epoch, (long long)s->document,
                           (long long)s->token, (long long)n);
        }
    }
    if (o->prefetch_batches > 0) {
        cti_ahead_stop(&loader->ahead);
    }
    cti_maker_seek(&loader->maker, states);
    memcpy(loader->delivered, states, (size_t)o->n_local_streams * sizeof *states);
    loader->status = CT_OK;
    loader->error = (ct_err){0};
    return CT_OK;
}

ct_loader_stats ct_loader_get_stats(const ct_loader *loader)
{
    return loader->stats;
}
