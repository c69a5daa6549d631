/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: cursors over slices of the corpus, and the packing of their documents into rows. */
#include "base/hash.h"
#include "base/num.h"
#include "data/data_internal.h"

ct_status cti_maker_init(cti_maker *maker, const ct_alloc *alloc, const ct_corpus *corpus,
                         const ct_processor *processor, const ct_loader_options *options, ct_err *err)
{
    *maker = (cti_maker){.alloc = alloc,
                         .corpus = corpus,
                         .processor = *processor,
                         .options = *options,
                         .local_rows = options->rows / options->streams * options->n_local_streams};
    ct_document_init(&maker->document, alloc);
    maker->streams = CT_NEW_ARRAY(alloc, cti_stream, options->n_local_streams, err);
    if (maker->streams == NULL) {
        return CT_ERR_MEMORY;
    }
    CT_TRY(ct_reader_create(alloc, corpus, &maker->reader, err));
    ct_reader_expect(maker->reader, options->n_local_streams);
    if (processor->open != NULL) {
        CT_TRY(processor->open(processor->ctx, alloc, &maker->state, err));
    }
    for (int64_t i = 0; i < options->n_local_streams; i++) {
        cti_stream *stream = &maker->streams[i];
        int64_t end;
        ct_slice(ct_corpus_n_documents(corpus), options->streams, options->first_stream + i, &stream->begin, &end);
        stream->n = end - stream->begin;
        ct_sample_init(&stream->sample, alloc);
        maker->n_local_documents += stream->n;
    }
    return CT_OK;
}

void cti_maker_deinit(cti_maker *maker)
{
    for (int64_t i = 0; maker->streams != NULL && i < maker->options.n_local_streams; i++) {
        ct_sample_deinit(&maker->streams[i].sample);
    }
    ct_alloc_free(maker->alloc, maker->streams);
    if (maker->state != NULL) {
        maker->processor.close(maker->state);
    }
    ct_reader_destroy(&maker->reader);
    ct_document_deinit(&maker->document);
    maker->streams = NULL;
    maker->state = NULL;
}

void cti_maker_seek(cti_maker *maker, const ct_stream_state *states)
{
    for (int64_t i = 0; i < maker->options.n_local_streams; i++) {
        cti_stream *stream = &maker->streams[i];
        stream->at = states[i];
        stream->is_loaded = false;
        stream->n_barren = 0;
    }
}

void cti_maker_states(const cti_maker *maker, ct_stream_state *out_states)
{
    for (int64_t i = 0; i < maker->options.n_local_streams; i++) {
        out_states[i] = maker->streams[i].at;
    }
}

static bool is_at_end(const cti_maker *maker, const cti_stream *stream)
{
    return !maker->options.repeat && stream->at.epoch > 0;
}

static void next_document(cti_stream *stream)
{
    stream->is_loaded = false;
    stream->at.token = 0;
    if (++stream->at.document == stream->n) {
        stream->at.document = 0;
        stream->at.epoch++;
    }
}

/* Counts a bad document once; fails where there are too many. */
static ct_status skip_bad(cti_maker *maker, const cti_stream *stream, int64_t document, const cti_line_fault *fault,
                          ct_err *err)
{
    ct_loader_stats *stats = &maker->stats;
    if (stream->n_seen > stream->n) {
        return CT_OK; /* counted in the first pass */
    }
    stats->n_bad[fault->bad]++;
    stats->n_bad_total++;
    const double share = maker->options.max_bad_share;
    const bool is_too_much = share > 0.0 && (double)stats->n_bad_total > share * (double)maker->n_local_documents;
    if (!is_too_much && stats->n_examples == CT_LOADER_N_EXAMPLES) {
        return CT_OK;
    }
    ct_err why = {0};
    (void)cti_corpus_fail(maker->corpus, document, fault, &why); /* for its words */
    if (is_too_much) {
        return CT_FAIL(err, CT_ERR_DATA, "%lld of %lld documents are bad, more than the share of %g allowed; the latest: %s",
                       (long long)stats->n_bad_total, (long long)maker->n_local_documents, share, why.message);
    }
    (void)snprintf(stats->examples[stats->n_examples++], sizeof stats->examples[0], "%.*s",
                   (int)sizeof stats->examples[0] - 1, why.message);
    return CT_OK;
}

static ct_status check_ids(const cti_maker *maker, const cti_stream *stream, ct_err *err)
{
    const int64_t limit = maker->options.vocab_size > 0 ? maker->options.vocab_size : INT64_MAX;
    for (int64_t i = 0; i < stream->sample.ids.n; i++) {
        const int32_t id = stream->sample.ids.ids[i];
        if (id < 0 || id >= limit) {
            return CT_FAIL(err, CT_ERR_DATA, "document %lld gives the token id %d; ids of [0, %lld) are wanted: the tokenizer does not fit the model",
                           (long long)(stream->begin + stream->at.document), id, (long long)limit);
        }
    }
    return CT_OK;
}

/* The processor's work on the document that was read; a fault of its contents is in fault. */
static ct_status process(cti_maker *maker, cti_stream *stream, int64_t document, cti_line_fault *fault, ct_err *err)
{
    ct_err why = {0};
    void *state = maker->processor.open != NULL ? maker->state : (void *)(uintptr_t)maker->processor.ctx;
    const ct_status st = maker->processor.process(state, &maker->document, &stream->sample, &why);
    if (st == CT_ERR_DATA) {
        *fault = (cti_line_fault){.bad = CT_BAD_CONTENT};
        (void)snprintf(fault->detail, sizeof fault->detail, "%.*s", (int)sizeof fault->detail - 1, why.message);
        return CT_OK;
    }
    if (st != CT_OK) {
        return CT_FAIL(err, st, "document %lld: %s", (long long)document, why.message);
    }
    return check_ids(maker, stream, err);
}

/* Reads and processes the document at the cursor: is_loaded, or the cursor has gone one on. */
static ct_status try_document(cti_maker *maker, cti_stream *stream, ct_err *err)
{
    const int64_t document = stream->begin + stream->at.document;
    ct_sample *sample = &stream->sample;
    cti_line_fault fault;
    stream->n_seen += stream->n_seen <= stream->n;
    maker->stats.n_documents++;
    sample->ids.n = sample->labels.n = 0;
    CT_TRY(cti_reader_read(maker->reader, document, &maker->document, &maker->stats.repairs, &fault, err));
    if (fault.bad == CT_BAD_NONE) {
        maker->stats.n_empty += maker->document.kind == CT_DOCUMENT_TEXT && maker->document.text.len == 0;
        CT_TRY(process(maker, stream, document, &fault, err));
    }
    if (fault.bad != CT_BAD_NONE && maker->options.bad_policy == CT_BAD_FAIL) {
        return cti_corpus_fail(maker->corpus, document, &fault, err);
    }
    if (fault.bad != CT_BAD_NONE) {
        sample->ids.n = sample->labels.n = 0;
        CT_TRY(skip_bad(maker, stream, document, &fault, err));
    } else {
        maker->stats.n_short += sample->ids.n < 2 && stream->n_seen <= stream->n;
    }
    if (stream->at.token > 0 && stream->at.token >= sample->ids.n - 1) {
        return CT_FAIL(err, CT_ERR_DATA, "the saved state is at token %lld of document %lld, which has %lld: data or tokenizer have changed",
                       (long long)stream->at.token, (long long)document, (long long)cti_max_i64(sample->ids.n - 1, 0));
    }
    if (sample->ids.n >= 2) {
        stream->is_loaded = true;
        stream->n_barren = 0;
        return CT_OK;
    }
    next_document(stream);
    if (++stream->n_barren >= stream->n) {
        return CT_FAIL(err, CT_ERR_DATA, "none of the %lld documents from number %lld on gives 2 tokens or more", (long long)stream->n,
                       (long long)stream->begin);
    }
    return CT_OK;
}

/* Puts pieces of documents into row `row` until it is full or the stream at its end; returns the tokens placed. */
static ct_status fill_row(cti_maker *maker, cti_stream *stream, int64_t row, ct_batch *batch, int64_t *out_filled, ct_err *err)
{
    const int64_t seq_len = maker->options.seq_len;
    int64_t filled = 0;
    while (filled < seq_len && !is_at_end(maker, stream)) {
        if (!stream->is_loaded) {
            if (maker->stop != NULL && atomic_load(maker->stop)) {
                return CT_FAIL(err, CT_ERR_STOPPED, "the loader was stopped");
            }
            CT_TRY(try_document(maker, stream, err));
            continue;
        }
        const ct_tokens *labels = stream->sample.labels.n > 0 ? &stream->sample.labels : &stream->sample.ids;
        const int64_t n = cti_min_i64(stream->sample.ids.n - 1 - stream->at.token, seq_len - filled);
        const int64_t at = row * seq_len + filled;
        memcpy(batch->tokens + at, stream->sample.ids.ids + stream->at.token, (size_t)n * sizeof(int32_t));
        memcpy(batch->labels + at, labels->ids + stream->at.token + 1, (size_t)n * sizeof(int32_t));
        for (int64_t i = 0; i < n; i++) {
            batch->positions[at + i] = (int32_t)i;
            batch->n_valid += batch->labels[at + i] != CT_LABEL_IGNORE;
        }
        int32_t *segment = batch->segments + 4 * batch->n_segments++;
        segment[0] = segment[2] = (int32_t)at;
        segment[1] = segment[3] = (int32_t)n;
        filled += n;
        stream->at.token += n;
        if (stream->at.token == stream->sample.ids.n - 1) {
            next_document(stream);
        }
    }
    *out_filled = filled;
    return CT_OK;
}

static void pad(ct_batch *batch, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        batch->tokens[i] = 0;
        batch->labels[i] = CT_LABEL_IGNORE;
        batch->positions[i] = 0;
        int32_t *segment = batch->segments + 4 * batch->n_segments++;
        segment[0] = segment[2] = (int32_t)i;
        segment[1] = segment[3] = 1;
    }
}

static void clear_counts(ct_batch *batch)
{
    batch->n_segments = 0;
    batch->n_valid = 0;
    batch->epoch = 0;
    batch->hash = 0;
}

ct_status cti_maker_next(cti_maker *maker, ct_batch *batch, ct_err *err)
{
    const ct_loader_options *o = &maker->options;
    const int64_t rows_a_stream = o->rows / o->streams;
    bool has_data = false, has_tokens = false;
    for (int64_t s = 0; s < o->n_local_streams; s++) {
        has_data = has_data || !is_at_end(maker, &maker->streams[s]);
    }
    if (!has_data) {
        return CT_END_OF_DATA;
    }
    clear_counts(batch);
    for (int64_t row = 0; row < maker->local_rows; row++) {
        cti_stream *stream = &maker->streams[row / rows_a_stream];
        int64_t filled;
        CT_TRY(fill_row(maker, stream, row, batch, &filled, err));
        has_tokens = has_tokens || filled > 0;
        pad(batch, row * o->seq_len + filled, (row + 1) * o->seq_len);
        batch->hash += cti_hash64(batch->tokens + row * o->seq_len, (size_t)o->seq_len * sizeof(int32_t),
                                  (uint64_t)(o->first_stream * rows_a_stream + row));
    }
    batch->epoch = INT64_MAX;
    for (int64_t s = 0; s < o->n_local_streams; s++) {
        batch->epoch = cti_min_i64(batch->epoch, maker->streams[s].at.epoch);
    }
    memset(batch->segments + 4 * batch->n_segments, 0,
           (size_t)(batch->segments_cap - batch->n_segments) * 4 * sizeof(int32_t));
    /* Bad and short documents may leave the streams at their ends without a token: nothing to give. */
    return has_tokens ? CT_OK : CT_END_OF_DATA;
}

ct_status ct_batch_fill_padding(ct_batch *batch, int64_t n_tokens, ct_err *err)
{
    if (batch->segments_cap < n_tokens) {
        return CT_FAIL(err, CT_ERR_RANGE, "segments_cap is %lld, %lld tokens of padding need as many",
                       (long long)batch->segments_cap, (long long)n_tokens);
    }
    clear_counts(batch);
    pad(batch, 0, n_tokens);
    memset(batch->segments + 4 * n_tokens, 0, (size_t)(batch->segments_cap - n_tokens) * 4 * sizeof(int32_t));
    return CT_OK;
}
