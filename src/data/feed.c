/* SPDX-License-Identifier: Apache-2.0 */
/* Documents made into samples, in order, by the maker itself or by threads that work ahead. */
#include <sys/resource.h>

#include "base/num.h"
#include "data/stream.h"

enum {
    RING_DEPTH = 16,           /* items ahead of each track */
    HELD_IDS_MAX = 4 << 20,    /* with these many ids made, only a track that has none may go on */
    KEPT_IDS = 1 << 16,        /* room for ids that an item made ahead keeps; above, it is given back */
    WORKER_NICENESS = 5        /* the trainer's threads come first */
};

static ct_status open_hand(cti_feed *feed, cti_hand *hand, ct_err *err)
{
    ct_document_init(&hand->document, feed->alloc);
    if (feed->processor.open == NULL) {
        hand->state = (void *)(uintptr_t)feed->processor.ctx;
        return CT_OK;
    }
    return feed->processor.open(feed->processor.ctx, feed->alloc, &hand->state, err);
}

static void close_hand(cti_feed *feed, cti_hand *hand)
{
    if (feed->processor.open != NULL && hand->state != NULL) {
        feed->processor.close(hand->state);
    }
    ct_document_deinit(&hand->document);
}

static ct_status open_track(cti_feed *feed, cti_track *track, ct_err *err)
{
    track->order_epoch = -1;
    CT_TRY(ct_reader_create(feed->alloc, track->corpus, &track->reader, err));
    track->ring = CT_NEW_ARRAY(feed->alloc, cti_item, feed->depth, err);
    if (track->ring == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int32_t i = 0; i < feed->depth; i++) {
        ct_sample_init(&track->ring[i].sample, feed->alloc);
    }
    return CT_OK;
}

ct_status cti_feed_init(cti_feed *feed, const ct_alloc *alloc, const ct_processor *processor, const ct_loader_options *options,
                        cti_track *tracks, int64_t n_tracks, ct_err *err)
{
    const int32_t n_workers = options->workers;
    *feed = (cti_feed){.alloc = alloc,
                       .options = options,
                       .processor = *processor,
                       .tracks = tracks,
                       .n_tracks = n_tracks,
                       .depth = n_workers > 0 ? RING_DEPTH : 1};
    for (int64_t i = 0; i < n_tracks; i++) {
        CT_TRY(open_track(feed, &tracks[i], err));
    }
    feed->hands = CT_NEW_ARRAY(alloc, cti_hand, n_workers > 0 ? n_workers : 1, err);
    feed->threads = CT_NEW_ARRAY(alloc, pthread_t, n_workers > 0 ? n_workers : 1, err);
    if (feed->hands == NULL || feed->threads == NULL) {
        return CT_ERR_MEMORY;
    }
    do {
        CT_TRY(open_hand(feed, &feed->hands[feed->n_hands++], err));
    } while (feed->n_hands < n_workers);
    feed->has_lock = pthread_mutex_init(&feed->lock, NULL) == 0;
    feed->has_work = pthread_cond_init(&feed->work, NULL) == 0;
    feed->has_done = pthread_cond_init(&feed->done, NULL) == 0;
    return feed->has_lock && feed->has_work && feed->has_done
               ? CT_OK
               : CT_FAIL(err, CT_ERR_MEMORY, "the system gives no lock for the loader's workers");
}

void cti_feed_stop(cti_feed *feed)
{
    if (feed->n_threads == 0) {
        return;
    }
    (void)pthread_mutex_lock(&feed->lock);
    feed->is_stopping = true;
    (void)pthread_cond_broadcast(&feed->work);
    (void)pthread_mutex_unlock(&feed->lock);
    for (int32_t i = 0; i < feed->n_threads; i++) {
        (void)pthread_join(feed->threads[i], NULL);
    }
    feed->n_threads = 0;
    feed->is_stopping = false;
}

void cti_feed_deinit(cti_feed *feed)
{
    if (feed->alloc == NULL) {
        return;
    }
    cti_feed_stop(feed);
    for (int64_t i = 0; i < feed->n_tracks; i++) {
        cti_track *track = &feed->tracks[i];
        for (int32_t k = 0; track->ring != NULL && k < feed->depth; k++) {
            ct_sample_deinit(&track->ring[k].sample);
        }
        ct_alloc_free(feed->alloc, track->ring);
        ct_reader_destroy(&track->reader);
    }
    for (int32_t i = 0; i < feed->n_hands; i++) {
        close_hand(feed, &feed->hands[i]);
    }
    ct_alloc_free(feed->alloc, feed->hands);
    ct_alloc_free(feed->alloc, feed->threads);
    ct_alloc_free(feed->alloc, feed->tracks);
    if (feed->has_done) {
        (void)pthread_cond_destroy(&feed->done);
    }
    if (feed->has_work) {
        (void)pthread_cond_destroy(&feed->work);
    }
    if (feed->has_lock) {
        (void)pthread_mutex_destroy(&feed->lock);
    }
    *feed = (cti_feed){0};
}

void cti_feed_restart(cti_feed *feed)
{
    cti_feed_stop(feed);
    feed->held_ids = 0;
    for (int64_t i = 0; i < feed->n_tracks; i++) {
        cti_track *track = &feed->tracks[i];
        track->head = track->n_used = 0;
        track->is_reading = track->has_failed = false;
        track->next_epoch = track->at.epoch;
        track->next_place = track->at.place;
        for (int32_t k = 0; k < feed->depth; k++) {
            track->ring[k].is_done = false;
        }
    }
}

bool cti_track_is_at_end(const cti_track *track, bool repeat)
{
    return !repeat && track->at.epoch > 0;
}

/* The next item of the track, which is not full: its document's number is set, and the track gone one on. */
static cti_item *claim(cti_feed *feed, cti_track *track)
{
    cti_item *item = &track->ring[(track->head + track->n_used++) % feed->depth];
    int64_t place = track->begin + track->next_place;
    if (feed->options->shuffle) {
        if (track->order_epoch != track->next_epoch) {
            const uint32_t seed = (uint32_t)((uint64_t)track->seed + (uint64_t)track->next_epoch);
            track->order = cti_permutation_make(ct_corpus_n_documents(track->corpus), seed);
            track->order_epoch = track->next_epoch;
        }
        place = cti_permutation_at(&track->order, place);
    }
    item->number = place;
    item->is_done = item->is_empty = false;
    item->status = CT_OK;
    item->err = (ct_err){0};
    item->repairs = (ct_text_repairs){0};
    item->fault = (cti_line_fault){.bad = CT_BAD_NONE};
    item->sample.ids.n = item->sample.labels.n = 0;
    if (++track->next_place == track->n) {
        track->next_place = 0;
        track->next_epoch++;
    }
    return item;
}

static ct_status check_ids(const ct_loader_options *o, const cti_item *item, ct_err *err)
{
    const int64_t limit = o->vocab_size > 0 ? o->vocab_size : INT64_MAX;
    for (int64_t i = 0; i < item->sample.ids.n; i++) {
        const int32_t id = item->sample.ids.ids[i];
        if (id < 0 || id >= limit) {
            return CT_FAIL(err, CT_ERR_DATA, "document %lld gives the token id %d; ids of [0, %lld) are wanted: the tokenizer does not fit the model",
                           (long long)item->number, id, (long long)limit);
        }
    }
    return CT_OK;
}

static ct_status check_labels(const cti_item *item, ct_err *err)
{
    const ct_sample *s = &item->sample;
    return s->labels.n == 0 || s->labels.n == s->ids.n
               ? CT_OK
               : CT_FAIL(err, CT_ERR_DATA, "document %lld: %lld ids and %lld labels", (long long)item->number,
                         (long long)s->ids.n, (long long)s->labels.n);
}

static ct_status read_item(cti_hand *hand, cti_track *track, cti_item *item)
{
    CT_TRY(cti_reader_read(track->reader, item->number, &hand->document, &item->repairs, &item->fault, &item->err));
    item->is_empty = item->fault.bad == CT_BAD_NONE && hand->document.kind == CT_DOCUMENT_TEXT && hand->document.text.len == 0;
    return CT_OK;
}

/* The processor's work on the document that was read; a fault of its contents is in item->fault. */
static ct_status process_item(const cti_feed *feed, cti_hand *hand, cti_item *item)
{
    ct_err why = {0};
    if (item->fault.bad != CT_BAD_NONE) {
        return CT_OK;
    }
    const ct_status st = feed->processor.process(hand->state, &hand->document, &item->sample, &why);
    if (st == CT_ERR_DATA) {
        item->fault = (cti_line_fault){.bad = CT_BAD_CONTENT};
        (void)snprintf(item->fault.detail, sizeof item->fault.detail, "%.*s", (int)sizeof item->fault.detail - 1, why.message);
        return CT_OK;
    }
    if (st != CT_OK) {
        return CT_FAIL(&item->err, st, "document %lld: %s", (long long)item->number, why.message);
    }
    CT_TRY(check_labels(item, &item->err));
    return check_ids(feed->options, item, &item->err);
}

/* --- workers ------------------------------------------------------------------------------------------------------- */

/* The track with the fewest items that can be worked on; NULL: none can. */
static cti_track *choose(const cti_feed *feed)
{
    cti_track *best = NULL;
    for (int64_t i = 0; i < feed->n_tracks; i++) {
        cti_track *c = &feed->tracks[i];
        const bool has_room = c->n_used == 0 || (c->n_used < feed->depth && feed->held_ids < HELD_IDS_MAX);
        const bool has_more = feed->options->repeat || c->next_epoch == 0;
        if (has_room && has_more && !c->is_reading && !c->has_failed && (best == NULL || c->n_used < best->n_used)) {
            best = c;
        }
    }
    return best;
}

/* One item; the lock is held at the call and on return, and free during the work. */
static void work_on(cti_feed *feed, cti_hand *hand, cti_track *track)
{
    cti_item *item = claim(feed, track);
    track->is_reading = true; /* a reader goes forward best, and is one thread's at a time */
    (void)pthread_mutex_unlock(&feed->lock);
    ct_status st = read_item(hand, track, item);
    (void)pthread_mutex_lock(&feed->lock);
    track->is_reading = false;
    track->has_failed = st != CT_OK;
    (void)pthread_cond_signal(&feed->work);
    (void)pthread_mutex_unlock(&feed->lock);
    if (st == CT_OK) {
        st = process_item(feed, hand, item);
    }
    (void)pthread_mutex_lock(&feed->lock);
    item->status = st;
    track->has_failed = track->has_failed || st != CT_OK;
    item->is_done = true;
    feed->held_ids += item->sample.ids.n + item->sample.labels.n;
    (void)pthread_cond_signal(&feed->done);
}

static void *run_worker(void *arg)
{
    cti_feed *feed = arg;
    (void)setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + WORKER_NICENESS); /* on Linux: of this thread */
    (void)pthread_mutex_lock(&feed->lock);
    cti_hand *hand = &feed->hands[feed->n_ready++];
    while (!feed->is_stopping) {
        cti_track *track = choose(feed);
        if (track != NULL) {
            work_on(feed, hand, track);
        } else {
            (void)pthread_cond_wait(&feed->work, &feed->lock);
        }
    }
    (void)pthread_mutex_unlock(&feed->lock);
    return NULL;
}

static ct_status start_workers(cti_feed *feed, ct_err *err)
{
    feed->n_ready = 0;
    while (feed->n_threads < feed->options->workers) {
        CT_TRY(cti_start_thread(&feed->threads[feed->n_threads], run_worker, feed, err));
        feed->n_threads++;
    }
    return CT_OK;
}

/* --- the maker ----------------------------------------------------------------------------------------------------- */

static bool is_told_to_stop(const cti_feed *feed)
{
    return feed->stop != NULL && atomic_load(feed->stop);
}

static ct_status take_from_workers(cti_feed *feed, cti_track *track, cti_item *item, ct_err *err)
{
    if (feed->n_threads == 0) {
        CT_TRY(start_workers(feed, err));
    }
    (void)pthread_mutex_lock(&feed->lock);
    while (!(track->n_used > 0 && item->is_done) && !is_told_to_stop(feed)) {
        (void)pthread_cond_wait(&feed->done, &feed->lock);
    }
    (void)pthread_mutex_unlock(&feed->lock);
    return CT_OK;
}

ct_status cti_feed_take(cti_feed *feed, cti_track *track, cti_item **out_item, ct_err *err)
{
    cti_item *item = &track->ring[track->head];
    if (is_told_to_stop(feed)) {
        return CT_FAIL(err, CT_ERR_STOPPED, "the loader was stopped");
    }
    if (feed->options->workers > 0) {
        CT_TRY(take_from_workers(feed, track, item, err));
        if (is_told_to_stop(feed)) {
            return CT_FAIL(err, CT_ERR_STOPPED, "the loader was stopped");
        }
    } else if (track->n_used == 0) {
        (void)claim(feed, track);
        item->status = read_item(&feed->hands[0], track, item);
        if (item->status == CT_OK) {
            item->status = process_item(feed, &feed->hands[0], item);
        }
        item->is_done = true;
    }
    if (item->status != CT_OK) {
        return CT_FAIL(err, item->status, "%s", item->err.message);
    }
    *out_item = item;
    return CT_OK;
}

static void trim(ct_tokens *ids)
{
    if (ids->cap > KEPT_IDS) {
        ct_alloc_free(ids->alloc, ids->ids);
        *ids = (ct_tokens){.alloc = ids->alloc};
    }
}

void cti_feed_release(cti_feed *feed, cti_track *track)
{
    cti_item *item = &track->ring[track->head];
    const bool is_shared = feed->options->workers > 0;
    if (is_shared) {
        (void)pthread_mutex_lock(&feed->lock);
        feed->held_ids -= item->sample.ids.n + item->sample.labels.n;
        trim(&item->sample.ids);
        trim(&item->sample.labels);
    }
    item->is_done = false;
    track->head = (track->head + 1) % feed->depth;
    track->n_used--;
    if (is_shared) {
        (void)pthread_cond_signal(&feed->work);
        (void)pthread_mutex_unlock(&feed->lock);
    }
    if (++track->at.place == track->n) {
        track->at.place = 0;
        track->at.epoch++;
    }
}

void cti_feed_wake(cti_feed *feed)
{
    if (feed->has_done) {
        (void)pthread_mutex_lock(&feed->lock);
        (void)pthread_cond_broadcast(&feed->done);
        (void)pthread_mutex_unlock(&feed->lock);
    }
}
