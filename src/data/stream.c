/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: the rows that each of them gives, and batches of their rows. */
#include "data/stream.h"

#include "base/hash.h"
#include "base/num.h"

static ct_status init_streams(cti_maker *maker, const ct_data_source *sources, const ct_processor *processor, ct_err *err)
{
    const ct_alloc *alloc = maker->alloc;
    const ct_loader_options *o = &maker->options;
    const int64_t n_tracks = o->n_local_streams * maker->n_sources;
    cti_track *tracks = CT_NEW_ARRAY(alloc, cti_track, n_tracks, err);
    if (tracks == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int64_t i = 0; i < o->n_local_streams; i++) {
        cti_stream *stream = &maker->streams[i];
        stream->tracks = tracks + i * maker->n_sources;
        for (int32_t k = 0; k < maker->n_sources; k++) {
            cti_track *c = &stream->tracks[k];
            int64_t end;
            c->corpus = sources[k].corpus;
            ct_slice(ct_corpus_n_documents(c->corpus), o->streams, o->first_stream + i, &c->begin, &end);
            c->n = end - c->begin;
            c->seed = (uint32_t)((uint64_t)o->seed + (uint64_t)k);
            maker->n_local_documents += c->n;
        }
    }
    CT_TRY(cti_feed_init(&maker->feed, alloc, processor, o, tracks, n_tracks, err)); /* takes the tracks, failing too */
    for (int64_t i = 0; o->packing == CT_PACK_FIRST_FIT && i < o->n_local_streams; i++) {
        cti_stream *stream = &maker->streams[i];
        stream->set_begin = CT_NEW_ARRAY(alloc, cti_mark, maker->n_sources, err);
        if (stream->set_begin == NULL) {
            return CT_ERR_MEMORY;
        }
        CT_TRY(cti_bins_init(&stream->bins, alloc, o->packing_bins, o->seq_len, err));
    }
    return CT_OK;
}

ct_status cti_maker_init(cti_maker *maker, const ct_alloc *alloc, const ct_data_source *sources, int32_t n_sources,
                         const ct_processor *processor, const ct_loader_options *options, ct_err *err)
{
    *maker = (cti_maker){.alloc = alloc,
                         .n_sources = n_sources,
                         .options = *options,
                         .local_rows = options->rows / options->streams * options->n_local_streams};
    maker->streams = CT_NEW_ARRAY(alloc, cti_stream, options->n_local_streams, err);
    maker->parts = CT_NEW_ARRAY(alloc, int64_t, n_sources, err);
    if (maker->streams == NULL || maker->parts == NULL) {
        return CT_ERR_MEMORY;
    }
    cti_mix_parts(sources, n_sources, maker->parts);
    return init_streams(maker, sources, processor, err);
}

void cti_maker_deinit(cti_maker *maker)
{
    cti_feed_deinit(&maker->feed);
    for (int64_t i = 0; maker->streams != NULL && i < maker->options.n_local_streams; i++) {
        cti_bins_deinit(&maker->streams[i].bins, maker->alloc);
        ct_alloc_free(maker->alloc, maker->streams[i].set_begin);
    }
    ct_alloc_free(maker->alloc, maker->streams);
    ct_alloc_free(maker->alloc, maker->parts);
    maker->streams = NULL;
    maker->parts = NULL;
}

void cti_maker_seek(cti_maker *maker, const int64_t *states)
{
    const int64_t width = ct_stream_state_width(maker->n_sources);
    for (int64_t i = 0; i < maker->options.n_local_streams; i++) {
        cti_stream *stream = &maker->streams[i];
        const int64_t *s = states + i * width;
        stream->rows_before = s[CTI_STATE_ROWS];
        stream->rows_given = s[CTI_STATE_SET_ROWS];
        stream->source = (int32_t)s[CTI_STATE_SOURCE];
        stream->token = s[CTI_STATE_TOKEN];
        stream->item = NULL;
        stream->has_set = false;
        for (int32_t k = 0; k < maker->n_sources; k++) {
            cti_track *track = &stream->tracks[k];
            const int64_t *mark = s + CTI_STATE_HEAD + CTI_STATE_A_SOURCE * (int64_t)k;
            track->at = (cti_mark){mark[0], mark[1], mark[2]};
            track->n_barren = 0;
        }
    }
    cti_feed_restart(&maker->feed);
}

void cti_maker_states(const cti_maker *maker, int64_t *out_states)
{
    const int64_t width = ct_stream_state_width(maker->n_sources);
    for (int64_t i = 0; i < maker->options.n_local_streams; i++) {
        const cti_stream *stream = &maker->streams[i];
        int64_t *s = out_states + i * width;
        const bool is_set_done = stream->has_set && stream->rows_given == stream->bins.n_rows;
        const bool is_in_set = stream->has_set && !is_set_done; /* it is made again from its beginning */
        s[CTI_STATE_ROWS] = stream->rows_before + (is_set_done ? stream->rows_given : 0);
        s[CTI_STATE_SET_ROWS] = is_set_done ? 0 : stream->rows_given;
        s[CTI_STATE_SOURCE] = stream->token > 0 ? stream->source : 0;
        s[CTI_STATE_TOKEN] = stream->token;
        for (int32_t k = 0; k < maker->n_sources; k++) {
            const cti_mark *at = is_in_set ? &stream->set_begin[k] : &stream->tracks[k].at;
            int64_t *mark = s + CTI_STATE_HEAD + CTI_STATE_A_SOURCE * (int64_t)k;
            mark[0] = at->epoch;
            mark[1] = at->place;
            mark[2] = at->given;
        }
    }
}

/* --- documents ----------------------------------------------------------------------------------------------------- */

/* The track of the next document. */
static cti_track *pick(const cti_maker *maker, cti_stream *stream)
{
    if (stream->token == 0) { /* else a saved state is within a document */
        stream->source = cti_mix_pick(maker->parts, stream->tracks, maker->n_sources);
    }
    return &stream->tracks[stream->source];
}

/* Counts a bad document once; fails where it must not be, or where there are too many. */
static ct_status skip_bad(cti_maker *maker, const cti_track *track, const cti_item *item, ct_err *err)
{
    ct_loader_stats *stats = &maker->stats;
    if (maker->options.bad_policy == CT_BAD_FAIL) {
        return cti_corpus_fail(track->corpus, item->number, &item->fault, err);
    }
    if (track->n_seen > track->n) {
        return CT_OK; /* counted in the first pass */
    }
    stats->n_bad[item->fault.bad]++;
    stats->n_bad_total++;
    const double share = maker->options.max_bad_share;
    const bool is_too_much = share > 0.0 && (double)stats->n_bad_total > share * (double)maker->n_local_documents;
    if (!is_too_much && stats->n_examples == CT_LOADER_N_EXAMPLES) {
        return CT_OK;
    }
    ct_err why = {0};
    (void)cti_corpus_fail(track->corpus, item->number, &item->fault, &why); /* for its words */
    if (is_too_much) {
        return CT_FAIL(err, CT_ERR_DATA, "%lld of %lld documents are bad, more than the share of %g allowed; the latest: %s",
                       (long long)stats->n_bad_total, (long long)maker->n_local_documents, share, why.message);
    }
    (void)snprintf(stats->examples[stats->n_examples++], sizeof stats->examples[0], "%.*s",
                   (int)sizeof stats->examples[0] - 1, why.message);
    return CT_OK;
}

static void count(cti_maker *maker, const cti_track *track, const cti_item *item)
{
    ct_loader_stats *stats = &maker->stats;
    const bool is_first_pass = track->n_seen <= track->n;
    const bool is_good = item->fault.bad == CT_BAD_NONE;
    stats->n_documents++;
    stats->repairs.n_invalid_utf8 += item->repairs.n_invalid_utf8;
    stats->repairs.n_lone_surrogates += item->repairs.n_lone_surrogates;
    stats->n_empty += item->is_empty;
    stats->n_short += is_good && is_first_pass && item->sample.ids.n < 2 && !item->sample.is_long;
    stats->n_long += is_good && is_first_pass &&
                     (item->sample.is_long || (maker->options.packing == CT_PACK_FIRST_FIT && item->sample.ids.n - 1 > maker->options.seq_len));
}

/* Looks at the track's document: stream->item is set, or it is of no use and the track has gone one on. */
static ct_status try_document(cti_maker *maker, cti_stream *stream, cti_track *track, ct_err *err)
{
    cti_item *item;
    CT_TRY(cti_feed_take(&maker->feed, track, &item, err));
    track->n_seen += track->n_seen <= track->n;
    count(maker, track, item);
    const bool is_good = item->fault.bad == CT_BAD_NONE;
    const int64_t n = is_good ? cti_max_i64(item->sample.ids.n - 1, 0) : 0; /* inputs */
    if (!is_good) {
        CT_TRY(skip_bad(maker, track, item, err));
    }
    if (stream->token > 0 && stream->token >= n) {
        return CT_FAIL(err, CT_ERR_DATA, "the saved state is at token %lld of document %lld, which has %lld: data or tokenizer have changed",
                       (long long)stream->token, (long long)item->number, (long long)n);
    }
    if (n > 0 && (maker->options.packing != CT_PACK_FIRST_FIT || n <= maker->options.seq_len)) {
        stream->item = item;
        track->n_barren = 0;
        return CT_OK;
    }
    cti_feed_release(&maker->feed, track);
    /* Shuffled, the slice holds other documents in the next epoch. */
    const int64_t n_enough = maker->options.shuffle ? ct_corpus_n_documents(track->corpus) : track->n;
    if (++track->n_barren >= n_enough) {
        return CT_FAIL(err, CT_ERR_DATA, "none of the %lld documents from number %lld on gives 2 tokens or more%s", (long long)n_enough,
                       (long long)track->begin,
                       maker->options.packing == CT_PACK_FIRST_FIT ? " and fits into a row whole" : "");
    }
    return CT_OK;
}

/* --- rows ---------------------------------------------------------------------------------------------------------- */

static void add_segment(ct_batch *batch, int64_t at, int64_t n)
{
    int32_t *segment = batch->segments + 4 * batch->n_segments++;
    segment[0] = segment[2] = (int32_t)at;
    segment[1] = segment[3] = (int32_t)n;
}

static void pad(ct_batch *batch, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        batch->tokens[i] = 0;
        batch->labels[i] = CT_LABEL_IGNORE;
        batch->positions[i] = 0;
        add_segment(batch, i, 1);
    }
}

/* The document that the stream is in, or its next one; item stays NULL at the end of the data. */
static ct_status next_item(cti_maker *maker, cti_stream *stream, ct_err *err)
{
    while (stream->item == NULL) {
        cti_track *track = pick(maker, stream);
        if (cti_track_is_at_end(track, maker->options.repeat)) {
            break;
        }
        CT_TRY(try_document(maker, stream, track, err));
    }
    return CT_OK;
}

/* Puts pieces of documents into the row at `at` until it is full or the stream at its end. */
static ct_status fill_split_row(cti_maker *maker, cti_stream *stream, int64_t at, ct_batch *batch, int64_t *out_filled,
                                ct_err *err)
{
    const int64_t end = at + maker->options.seq_len;
    const int64_t begin = at;
    while (at < end) {
        CT_TRY(next_item(maker, stream, err));
        if (stream->item == NULL) {
            break;
        }
        cti_track *track = &stream->tracks[stream->source];
        const ct_sample *sample = &stream->item->sample;
        const ct_tokens *labels = sample->labels.n > 0 ? &sample->labels : &sample->ids;
        const int64_t n_inputs = sample->ids.n - 1;
        const int64_t n = cti_min_i64(n_inputs - stream->token, end - at);
        memcpy(batch->tokens + at, sample->ids.ids + stream->token, (size_t)n * sizeof(int32_t));
        memcpy(batch->labels + at, labels->ids + stream->token + 1, (size_t)n * sizeof(int32_t));
        for (int64_t i = 0; i < n; i++) {
            batch->positions[at + i] = (int32_t)i;
            batch->n_valid += batch->labels[at + i] != CT_LABEL_IGNORE;
        }
        add_segment(batch, at, n);
        at += n;
        stream->token += n;
        track->at.given += n;
        if (stream->token == n_inputs) {
            stream->token = 0;
            stream->item = NULL;
            cti_feed_release(&maker->feed, track);
        }
    }
    *out_filled = at - begin;
    return CT_OK;
}

/* Fills the stream's open rows with documents until one fits nowhere or the data ends. */
static ct_status make_set(cti_maker *maker, cti_stream *stream, ct_err *err)
{
    for (int32_t k = 0; k < maker->n_sources; k++) {
        stream->set_begin[k] = stream->tracks[k].at;
    }
    cti_bins_clear(&stream->bins);
    for (;;) {
        CT_TRY(next_item(maker, stream, err));
        if (stream->item == NULL) {
            break;
        }
        cti_track *track = &stream->tracks[stream->source];
        if (!cti_bins_add(&stream->bins, &stream->item->sample)) {
            break; /* it begins the next set */
        }
        track->at.given += stream->item->sample.ids.n - 1;
        stream->item = NULL;
        cti_feed_release(&maker->feed, track);
    }
    cti_bins_close(&stream->bins, maker->options.shuffle, (uint64_t)maker->options.seed + (uint64_t)stream->rows_before);
    stream->has_set = true;
    return CT_OK;
}

/* The next row of whole documents; 0 tokens where there is none. */
static ct_status fill_whole_row(cti_maker *maker, cti_stream *stream, int64_t at, ct_batch *batch, int64_t *out_filled,
                                ct_err *err)
{
    cti_bins *bins = &stream->bins;
    *out_filled = 0;
    if (stream->has_set && stream->rows_given == bins->n_rows) {
        stream->rows_before += stream->rows_given;
        stream->rows_given = 0;
        stream->has_set = false;
    }
    if (!stream->has_set) {
        CT_TRY(make_set(maker, stream, err));
        if (stream->rows_given > 0 && stream->rows_given >= bins->n_rows) {
            return CT_FAIL(err, CT_ERR_DATA, "the saved state is at row %lld of a set of %d: data or tokenizer have changed",
                           (long long)stream->rows_given, bins->n_rows);
        }
    }
    if (stream->rows_given == bins->n_rows) {
        return CT_OK; /* the data is at its end */
    }
    const int32_t b = bins->order[stream->rows_given++];
    const int64_t n = bins->filled[b], from = b * bins->seq_len;
    memcpy(batch->tokens + at, bins->tokens + from, (size_t)n * sizeof(int32_t));
    memcpy(batch->labels + at, bins->labels + from, (size_t)n * sizeof(int32_t));
    memcpy(batch->positions + at, bins->positions + from, (size_t)n * sizeof(int32_t));
    for (int64_t i = 0, begin = 0; i < n; i++) {
        batch->n_valid += batch->labels[at + i] != CT_LABEL_IGNORE;
        if (i + 1 == n || batch->positions[at + i + 1] == 0) {
            add_segment(batch, at + begin, i + 1 - begin);
            begin = i + 1;
        }
    }
    *out_filled = n;
    return CT_OK;
}

/* --- batches ------------------------------------------------------------------------------------------------------- */

static void clear_counts(ct_batch *batch)
{
    batch->n_segments = 0;
    batch->n_valid = 0;
    batch->epoch = 0;
    batch->hash = 0;
}

/* The lowest epoch of any track. */
static int64_t lowest_epoch(const cti_maker *maker)
{
    int64_t epoch = INT64_MAX;
    for (int64_t i = 0; i < maker->feed.n_tracks; i++) {
        epoch = cti_min_i64(epoch, maker->feed.tracks[i].at.epoch);
    }
    return epoch;
}

ct_status cti_maker_next(cti_maker *maker, ct_batch *batch, ct_err *err)
{
    const ct_loader_options *o = &maker->options;
    const int64_t rows_a_stream = o->rows / o->streams;
    bool has_tokens = false;
    clear_counts(batch);
    for (int64_t row = 0; row < maker->local_rows; row++) {
        cti_stream *stream = &maker->streams[row / rows_a_stream];
        int64_t filled;
        CT_TRY(o->packing == CT_PACK_FIRST_FIT ? fill_whole_row(maker, stream, row * o->seq_len, batch, &filled, err)
                                               : fill_split_row(maker, stream, row * o->seq_len, batch, &filled, err));
        has_tokens = has_tokens || filled > 0;
        pad(batch, row * o->seq_len + filled, (row + 1) * o->seq_len);
        batch->hash += cti_hash64(batch->tokens + row * o->seq_len, (size_t)o->seq_len * sizeof(int32_t),
                                  (uint64_t)(o->first_stream * rows_a_stream + row));
    }
    batch->epoch = lowest_epoch(maker);
    memset(batch->segments + 4 * batch->n_segments, 0,
           (size_t)(batch->segments_cap - batch->n_segments) * 4 * sizeof(int32_t));
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
