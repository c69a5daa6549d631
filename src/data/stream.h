/* SPDX-License-Identifier: Apache-2.0 */
/* What the files between documents and batches share.
 *
 *   permutation     which document comes next                feed      documents made into samples, ahead, by threads
 *   mix             which source comes next                  first_fit rows of whole documents
 *   stream          a stream's rows, a batch of streams      loader_thread  batches made ahead
 *
 * Two threads at most hold this together: the one that makes batches (the maker's: the caller's, or the loader's own), and the
 * one that takes them. The feed's workers see tracks and items only.
 */
#ifndef CTI_DATA_STREAM_H
#define CTI_DATA_STREAM_H

#include <pthread.h>
#include <stdatomic.h>

#include "data/data_internal.h"

/* --- permutation --------------------------------------------------------------------------------------------------- */

/* A permutation of [0, n) that costs nothing to keep: a block cipher walked until it lands below n, as TensorFlow's and Grain's
 * index_shuffle with 4 rounds. */
typedef struct cti_permutation {
    uint64_t max, mask;
    unsigned half; /* bits of half a block */
    uint64_t key[4];
} cti_permutation;
/* 0 < n <= 2^62. */
cti_permutation cti_permutation_make(int64_t n, uint32_t seed);
/* The image of i, 0 <= i < n. At most 4 rounds of the cipher on average, but for n below 2^14: then 2^16 / n. */
int64_t cti_permutation_at(const cti_permutation *permutation, int64_t i);
/* What numpy.random.default_rng(seed).permuted(numpy.arange(n)) gives. */
void cti_row_order(uint64_t seed, int32_t n, int32_t *out_order);

/* --- mix ----------------------------------------------------------------------------------------------------------- */

/* The sources' weights as integers, so that choices are the same on every machine. */
enum { CTI_MIX_UNIT = 1000000000 };
/* Parts of CTI_MIX_UNIT, at least 1 each, of weights above 0. */
void cti_mix_parts(const ct_data_source *sources, int32_t n, int64_t *out_parts);
/* --- feed ---------------------------------------------------------------------------------------------------------- */

/* What became of one document. */
typedef struct cti_item {
    int64_t number;        /* in its corpus */
    ct_sample sample;      /* owns */
    ct_text_repairs repairs;
    cti_line_fault fault;  /* bad != NONE: the document is bad, the sample is nothing */
    bool is_empty;         /* its text has no byte */
    bool is_done;
    ct_status status;      /* a failure that ends the run */
    ct_err err;
} cti_item;

/* Place in one source's documents; given: tokens of the source that went into rows. */
typedef struct cti_mark {
    int64_t epoch, place, given;
} cti_mark;

/* One stream's way through its slice of one source. */
typedef struct cti_track {
    /* constant */
    const ct_corpus *corpus; /* borrows */
    int64_t begin, n;        /* slice of the order */
    uint32_t seed;           /* of epoch 0's order */
    /* the maker's */
    cti_mark at;      /* the next document to take, or the one taken */
    int64_t n_seen;   /* documents since creation or seek, bounded use: the first pass counts faults */
    int64_t n_barren; /* documents since one gave tokens */
    /* the feed's */
    ct_reader *reader; /* owns; of whoever set is_reading */
    cti_item *ring;    /* owns; samples made ahead, oldest first from `head` */
    int32_t head, n_used;
    bool is_reading, has_failed;
    int64_t next_epoch, next_place; /* to be read next */
    cti_permutation order;          /* of order_epoch, where the loader shuffles */
    int64_t order_epoch;
} cti_track;

/* The source that is furthest behind its share of the tokens given so far, the first of equals. */
int32_t cti_mix_pick(const int64_t *parts, const cti_track *tracks, int32_t n);

/* What one thread needs to make samples. */
typedef struct cti_hand {
    void *state; /* owns; the processor's */
    ct_document document;
} cti_hand;

typedef struct cti_feed {
    const ct_alloc *alloc;
    const ct_loader_options *options; /* borrows */
    ct_processor processor;
    cti_track *tracks; /* owns */
    int64_t n_tracks;
    int32_t depth;       /* of each ring */
    cti_hand *hands;     /* owns; one a worker, or one */
    int32_t n_hands;
    pthread_t *threads;  /* owns */
    int32_t n_threads;   /* that run */
    int32_t n_ready;     /* hands that a worker has taken */
    pthread_mutex_t lock;
    pthread_cond_t work, done; /* for workers; for the maker */
    bool has_lock, has_work, has_done;
    bool is_stopping;
    int64_t held_ids;    /* in items that are done and not yet released */
    const atomic_bool *stop; /* the maker's: cti_feed_take gives up once true */
} cti_feed;

/* Cursors are set up: corpus, begin, n, seed. */
CT_MUST_CHECK ct_status cti_feed_init(cti_feed *feed, const ct_alloc *alloc, const ct_processor *processor,
                                      const ct_loader_options *options, cti_track *tracks, int64_t n_tracks, ct_err *err);
void cti_feed_deinit(cti_feed *feed);
/* Joins the workers, each of which finishes the document it is at. */
void cti_feed_stop(cti_feed *feed);
/* Stops, and begins anew at each track's `at`. */
void cti_feed_restart(cti_feed *feed);
/* The sample of the document at the track, which stays the feed's; not past the end where the loader does not repeat. Waits for a
 * worker, or does the work. Fails: what ended the run at this document; CT_ERR_STOPPED. */
CT_MUST_CHECK ct_status cti_feed_take(cti_feed *feed, cti_track *track, cti_item **out_item, ct_err *err);
/* Done with it: the track goes one on. */
void cti_feed_release(cti_feed *feed, cti_track *track);
/* Makes a waiting cti_feed_take look at `stop`. Any thread. */
void cti_feed_wake(cti_feed *feed);
/* The track has gone through its documents for good. */
bool cti_track_is_at_end(const cti_track *track, bool repeat);

/* --- first_fit ----------------------------------------------------------------------------------------------------- */

/* Open rows that documents are put into whole. */
typedef struct cti_bins {
    int32_t n_bins;
    int64_t seq_len;
    int32_t *tokens, *labels, *positions; /* owns; [n_bins, seq_len] */
    int64_t *filled;                      /* owns; [n_bins] */
    int32_t *order;                       /* owns; [n_bins] rows in the order of their going out */
    int32_t n_rows;                       /* that hold something */
} cti_bins;
CT_MUST_CHECK ct_status cti_bins_init(cti_bins *bins, const ct_alloc *alloc, int32_t n_bins, int64_t seq_len, ct_err *err);
void cti_bins_deinit(cti_bins *bins, const ct_alloc *alloc);
void cti_bins_clear(cti_bins *bins);
/* Puts a sample of at most seq_len + 1 ids into the first row with room; false: there is none. */
bool cti_bins_add(cti_bins *bins, const ct_sample *sample);
/* No more documents: sets the order of the rows. */
void cti_bins_close(cti_bins *bins, bool is_shuffled, uint64_t seed);

/* --- stream -------------------------------------------------------------------------------------------------------- */

/* The numbers of a stream's state before those of its sources (docs/formats/data-state.md). */
enum { CTI_STATE_ROWS, CTI_STATE_SET_ROWS, CTI_STATE_SOURCE, CTI_STATE_TOKEN, CTI_STATE_HEAD, CTI_STATE_A_SOURCE = 3 };

typedef struct cti_stream {
    cti_track *tracks; /* the feed's; one a source */
    int32_t source;      /* of the document in progress */
    int64_t token;       /* inputs of it already given */
    cti_item *item;      /* of it; NULL: none is in progress */
    /* first-fit */
    cti_bins bins;
    cti_mark *set_begin;  /* owns; where the set in `bins` began */
    int64_t rows_before;  /* rows of the sets before it */
    int64_t rows_given;   /* of it */
    bool has_set;
} cti_stream;

/* What batches are made with: all of it belongs to the thread that makes them. */
typedef struct cti_maker {
    const ct_alloc *alloc;
    int32_t n_sources;
    int64_t *parts;      /* owns; of the mix */
    ct_loader_options options;
    int64_t local_rows;
    cti_feed feed;
    cti_stream *streams; /* owns; n_local_streams */
    int64_t n_local_documents;
    ct_loader_stats stats;
} cti_maker;

CT_MUST_CHECK ct_status cti_maker_init(cti_maker *maker, const ct_alloc *alloc, const ct_data_source *sources, int32_t n_sources,
                                       const ct_processor *processor, const ct_loader_options *options, ct_err *err);
void cti_maker_deinit(cti_maker *maker);
/* states were checked (loader.c). */
void cti_maker_seek(cti_maker *maker, const int64_t *states);
void cti_maker_states(const cti_maker *maker, int64_t *out_states);
/* Fills a batch whose arrays hold a whole local micro-batch (segments_cap: its tokens). */
CT_MUST_CHECK ct_status cti_maker_next(cti_maker *maker, ct_batch *batch, ct_err *err);

/* --- loader_thread ------------------------------------------------------------------------------------------------- */

/* One batch made ahead, with where the streams stood after it. */
typedef struct cti_slot {
    ct_batch batch;
    int64_t *states;
    ct_loader_stats stats;
} cti_slot;

/* A ring of slots between the thread that makes batches and the one that takes them. */
typedef struct cti_ahead {
    cti_maker *maker; /* borrows; the thread's while it runs */
    cti_slot *slots;  /* owns */
    int32_t n_slots;
    pthread_mutex_t lock; /* guards head, n_full, status, error */
    pthread_cond_t changed;
    int32_t head, n_full;
    ct_status status; /* CT_OK while the thread makes batches */
    ct_err error;
    atomic_bool stop;
    bool has_lock, has_cond, is_running; /* the caller's */
    pthread_t thread;
} cti_ahead;

CT_MUST_CHECK ct_status cti_ahead_init(cti_ahead *ahead, cti_maker *maker, int32_t n_slots, ct_err *err);
void cti_ahead_deinit(cti_ahead *ahead);
CT_MUST_CHECK ct_status cti_ahead_start(cti_ahead *ahead, ct_err *err);
void cti_ahead_stop(cti_ahead *ahead); /* joins, forgets what was made */
/* Waits for the oldest slot; borrowed until cti_ahead_release. Failures come after the batches made before them. */
CT_MUST_CHECK ct_status cti_ahead_acquire(cti_ahead *ahead, const cti_slot **out_slot, ct_err *err);
void cti_ahead_release(cti_ahead *ahead);
/* Starts a thread that takes no signals, so that the caller's waits see them. */
CT_MUST_CHECK ct_status cti_start_thread(pthread_t *out_thread, void *(*run)(void *arg), void *arg, ct_err *err);

#endif
