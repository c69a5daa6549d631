/* SPDX-License-Identifier: Apache-2.0 */
/* The loader: checks, delivery of batches, and where the streams stand. */
#include <float.h>

#include "base/num.h"
#include "data/stream.h"

struct ct_loader {
    const ct_alloc *alloc;
    cti_maker maker;            /* the thread's while it runs */
    cti_ahead ahead;            /* unused where prefetch_batches is 0 */
    int64_t *delivered; /* owns; states after the last batch given out */
    ct_loader_stats stats;      /* as of the last batch given out */
    ct_status status;           /* of the end or the failure that every later call returns */
    ct_err error;
};

static ct_status want(bool ok, const char *what, int64_t found, ct_err *err)
{
    return ok ? CT_OK : CT_FAIL(err, CT_ERR_RANGE, "%s, found %lld", what, (long long)found);
}

static ct_status check_sources(const ct_data_source *sources, int32_t n_sources, const ct_loader_options *o, ct_err *err)
{
    CT_TRY(want(n_sources > 0 && n_sources <= CT_DATA_SOURCES_MAX, "sources must be in [1, 64]", n_sources, err));
    for (int32_t i = 0; i < n_sources; i++) {
        const int64_t n = ct_corpus_n_documents(sources[i].corpus);
        if (!(sources[i].weight > 0.0 && sources[i].weight <= DBL_MAX / CT_DATA_SOURCES_MAX)) {
            return CT_FAIL(err, CT_ERR_RANGE, "the weight of source %d must be finite and above 0, found %g", i, sources[i].weight);
        }
        if (n < o->streams) {
            char place[CTI_PLACE_BYTES];
            ct_corpus_place(sources[i].corpus, 0, place, sizeof place);
            return CT_FAIL(err, CT_ERR_DATA, "the dataset that begins at %s has %lld documents, fewer than the %lld streams", place, (long long)n,
                           (long long)o->streams);
        }
        if (o->bad_policy == CT_BAD_FAIL) {
            CT_TRY(ct_corpus_check_whole(sources[i].corpus, err));
        }
        if (o->shuffle) {
            CT_TRY(ct_corpus_check_random_access(sources[i].corpus, err));
        }
    }
    return CT_OK;
}

static ct_status check_options(const ct_loader_options *o, ct_err *err)
{
    CT_TRY(want(o->seq_len > 0, "seq_len must be above 0", o->seq_len, err));
    CT_TRY(want(o->rows > 0, "rows of a micro-batch must be above 0", o->rows, err));
    CT_TRY(want(o->streams > 0, "dataloader.streams must be above 0", o->streams, err));
    CT_TRY(want(o->first_stream >= 0 && o->first_stream < o->streams, "first_stream must be one of the streams", o->first_stream, err));
    CT_TRY(want(o->n_local_streams > 0 && o->n_local_streams <= o->streams - o->first_stream,
                "n_local_streams must be above 0 and end within the streams", o->n_local_streams, err));
    CT_TRY(want(o->prefetch_batches >= 0 && o->prefetch_batches <= 1024, "prefetch_batches must be in [0, 1024]",
                o->prefetch_batches, err));
    CT_TRY(want(o->workers >= 0 && o->workers <= 256, "dataloader.num_workers must be in [0, 256]", o->workers, err));
    CT_TRY(want(o->packing_bins >= 0 && o->packing_bins <= 1 << 20, "dataloader.num_packing_bins must be in [1, 1048576]",
                o->packing_bins, err));
    CT_TRY(want(o->seed >= 0, "dataloader.seed must not be negative", o->seed, err));
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
    if (o->packing == CT_PACK_FIRST_FIT) {
        CT_TRY(want(o->packing_bins > 0, "dataloader.num_packing_bins must be in [1, 1048576]", o->packing_bins, err));
        if (!cti_mul_i64(o->packing_bins, o->seq_len, &tokens) || tokens > INT32_MAX) {
            return CT_FAIL(err, CT_ERR_RANGE, "%d open rows of %lld tokens are more than 2^31 - 1 tokens", o->packing_bins,
                           (long long)o->seq_len);
        }
    }
    return CT_OK;
}

ct_status ct_loader_create(const ct_alloc *alloc, const ct_data_source *sources, int32_t n_sources,
                           const ct_processor *processor, const ct_loader_options *options, ct_loader **out_loader, ct_err *err)
{
    CT_TRY(check_options(options, err));
    CT_TRY(check_sources(sources, n_sources, options, err));
    ct_loader *loader = CT_NEW(alloc, ct_loader, err);
    if (loader == NULL) {
        return CT_ERR_MEMORY;
    }
    ct_status st;
    loader->alloc = alloc;
    loader->maker.alloc = alloc;
    CT_TRY_GOTO(st, cti_maker_init(&loader->maker, alloc, sources, n_sources, processor, options, err), fail);
    loader->delivered = CT_NEW_ARRAY(alloc, int64_t, options->n_local_streams * ct_stream_state_width(n_sources), err);
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
    cti_ahead_stop(&l->ahead);
    cti_feed_stop(&l->maker.feed);
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

static size_t state_bytes(const ct_loader *loader)
{
    return (size_t)(loader->maker.options.n_local_streams * ct_stream_state_width(loader->maker.n_sources)) * sizeof(int64_t);
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
    memcpy(loader->delivered, slot->states, state_bytes(loader));
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

int64_t ct_stream_state_width(int32_t n_sources)
{
    return CTI_STATE_HEAD + CTI_STATE_A_SOURCE * (int64_t)n_sources;
}

int64_t ct_stream_state_token(const int64_t *state)
{
    return state[CTI_STATE_TOKEN];
}

int64_t ct_stream_state_epoch(const int64_t *state, int32_t n_sources)
{
    int64_t epoch = state[CTI_STATE_HEAD];
    for (int32_t k = 1; k < n_sources; k++) {
        epoch = cti_min_i64(epoch, state[CTI_STATE_HEAD + CTI_STATE_A_SOURCE * (int64_t)k]);
    }
    return epoch;
}

void ct_loader_state(const ct_loader *loader, int64_t *out_states)
{
    memcpy(out_states, loader->delivered, state_bytes(loader));
}

/* Whether these are numbers that a stream can stand at. */
static ct_status check_state(const ct_loader *loader, int64_t i, const int64_t *s, ct_err *err)
{
    const ct_loader_options *o = &loader->maker.options;
    const bool is_whole = o->packing == CT_PACK_FIRST_FIT;
    const long long number = (long long)(o->first_stream + i);
    const bool in_set = s[CTI_STATE_SET_ROWS] >= 0 && s[CTI_STATE_SET_ROWS] < (is_whole ? o->packing_bins : 1);
    if (s[CTI_STATE_ROWS] < 0 || s[CTI_STATE_ROWS] > INT64_MAX / 2 || !in_set || (!is_whole && s[CTI_STATE_ROWS] != 0)) {
        return CT_FAIL(err, CT_ERR_RANGE, "stream %lld: %lld rows and %lld of a set are no place in rows of this packing", number,
                       (long long)s[CTI_STATE_ROWS], (long long)s[CTI_STATE_SET_ROWS]);
    }
    if (s[CTI_STATE_SOURCE] < 0 || s[CTI_STATE_SOURCE] >= loader->maker.n_sources || s[CTI_STATE_TOKEN] < 0 ||
        (is_whole && s[CTI_STATE_TOKEN] > 0)) {
        return CT_FAIL(err, CT_ERR_RANGE, "stream %lld: token %lld of source %lld is no place in %d source(s)", number,
                       (long long)s[CTI_STATE_TOKEN], (long long)s[CTI_STATE_SOURCE], loader->maker.n_sources);
    }
    for (int32_t k = 0; k < loader->maker.n_sources; k++) {
        const int64_t *mark = s + CTI_STATE_HEAD + CTI_STATE_A_SOURCE * (int64_t)k;
        const int64_t n = loader->maker.streams[i].tracks[k].n;
        if (mark[0] < 0 || mark[0] > INT64_MAX / 2 || mark[1] < 0 || mark[1] >= n || mark[2] < 0 || mark[2] > INT64_MAX / 128) {
            return CT_FAIL(err, CT_ERR_RANGE, "stream %lld: epoch %lld, document %lld, %lld tokens is no place in a slice of %lld documents",
                           number, (long long)mark[0], (long long)mark[1], (long long)mark[2], (long long)n);
        }
    }
    return CT_OK;
}

ct_status ct_loader_seek(ct_loader *loader, const int64_t *states, ct_err *err)
{
    const ct_loader_options *o = &loader->maker.options;
    const int64_t width = ct_stream_state_width(loader->maker.n_sources);
    for (int64_t i = 0; i < o->n_local_streams; i++) {
        CT_TRY(check_state(loader, i, states + i * width, err));
    }
    if (o->prefetch_batches > 0) {
        cti_ahead_stop(&loader->ahead);
    }
    cti_maker_seek(&loader->maker, states);
    memcpy(loader->delivered, states, state_bytes(loader));
    loader->status = CT_OK;
    loader->error = (ct_err){0};
    return CT_OK;
}

ct_loader_stats ct_loader_get_stats(const ct_loader *loader)
{
    return loader->stats;
}
