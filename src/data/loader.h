/* SPDX-License-Identifier: Apache-2.0 */
/* Documents to packed batches, and the state that resumes them. */
#ifndef CTI_DATA_LOADER_H
#define CTI_DATA_LOADER_H

#include "data/corpus.h"

typedef enum ct_bad_policy {
    CT_BAD_FAIL, /* a bad document ends the run with its file, line and fault */
    CT_BAD_SKIP, /* it gives nothing, and is counted by kind */
    CT_BAD_POLICY_COUNT
} ct_bad_policy;

typedef enum ct_packing {
    CT_PACK_SPLIT,     /* documents end to end, cut at seq_len: nothing is lost, rows are full */
    CT_PACK_FIRST_FIT, /* whole documents into open rows: none is cut, longer ones are dropped, rows end with padding */
    CT_PACKING_COUNT
} ct_packing;

#define CT_DATA_SOURCES_MAX 64

/* One of the sources that are mixed. */
typedef struct ct_data_source {
    const ct_corpus *corpus; /* borrowed */
    double weight;           /* share of the tokens given, relative to the other weights; > 0 */
} ct_data_source;

/* How settings and commands name sources: a data set or a path; or, where n_specs > 0, PATH or PATH:WEIGHT each. */
typedef struct ct_sources_options {
    const char *dataset, *dataset_path, *share_dir; /* as ct_dataset_resolve */
    const char *const *specs;
    int64_t n_specs;
    const ct_corpus_options *corpus; /* of each corpus; NULL: the defaults */
    const ct_registry *registry; /* holds the data sets of plug-ins; NULL: none */
} ct_sources_options;

typedef struct ct_sources {
    const ct_alloc *alloc;
    int32_t n;
    ct_data_source *items; /* owns */
    ct_corpus **corpora;   /* owns */
    char **paths;          /* owns; what was opened */
} ct_sources;

/* Fails: as ct_dataset_resolve and ct_corpus_open; CT_ERR_USAGE for a spec that is none. Then there is nothing to close. */
CT_MUST_CHECK ct_status ct_sources_open(const ct_alloc *alloc, const ct_sources_options *options, ct_sources *out_sources,
                                        ct_err *err);
void ct_sources_close(ct_sources *sources); /* takes zeros, too */
int64_t ct_sources_size_bytes(const ct_sources *sources);

/* Zero-initialise and set what is not zero. */
typedef struct ct_loader_options {
    int64_t seq_len;          /* tokens a row, > 0 */
    int64_t rows;             /* rows of a micro-batch over all ranks, > 0 */
    int64_t streams;          /* > 0; divides rows; at most the number of documents */
    int64_t first_stream;     /* of this rank */
    int64_t n_local_streams;  /* of this rank, > 0: streams [first_stream, first_stream + n_local_streams) */
    int64_t vocab_size;       /* ids at or above it are refused, naming the document; 0: not checked */
    uint64_t encode_hash;     /* identity of tokenizer and flags, kept in the saved state; 0: unknown, not compared */
    ct_bad_policy bad_policy;
    double max_bad_share;     /* CT_BAD_SKIP: more than this share of this rank's documents ends the run; 0: no limit */
    bool repeat;              /* endless epochs; else CT_END_OF_DATA after one, or after that of the source that ends first */
    bool shuffle;             /* each epoch another order of each source's documents */
    int64_t seed;             /* of these orders, >= 0: source k's epoch e has (seed + k + e) mod 2^32 */
    ct_packing packing;
    int32_t packing_bins;     /* CT_PACK_FIRST_FIT: rows open at once, > 0 */
    int32_t workers;          /* threads that make samples ahead, at a lower priority; 0: whoever makes the batches */
    int32_t prefetch_batches; /* batches made ahead by a thread of the loader's; 0: made in ct_loader_next */
} ct_loader_options;

/* Arrays are the caller's; T = ct_loader_local_rows() * seq_len tokens, row after row. */
typedef struct ct_batch {
    int32_t *tokens;      /* [T] */
    int32_t *labels;      /* [T] CT_LABEL_IGNORE where there is none (padding) */
    int32_t *positions;   /* [T] 0 starts a document or a row, always */
    int32_t *segments;    /* [segments_cap, 4] q_start, q_len, k_start, k_len in tokens of the local rows: one for each
                             piece of a document in a row, in order, back to back; the rest is 0. A padding token (input
                             0, position 0) is a piece of its own. */
    int64_t segments_cap; /* T or more */
    /* written: */
    int64_t n_segments;
    int64_t n_valid; /* labels that count */
    int64_t epoch;   /* the lowest of this rank's streams after this batch, from 0 */
    uint64_t hash;   /* of the tokens: the sum over rows, modulo 2^64, of the XXH3 of the row seeded with the row's global
                        index, so that the sum over ranks does not depend on their number */
} ct_batch;

/* Where a stream stands, at a row's border: what it takes to go on, as plain numbers that ranks can exchange. All of them
 * are zero at the beginning; docs/formats/data-state.md names them. */
int64_t ct_stream_state_width(int32_t n_sources);
/* Of a state: inputs already given of the document that goes on in the next row; 0: the next row begins with a document. */
int64_t ct_stream_state_token(const int64_t *state);
/* Of a state: the lowest epoch of its sources. */
int64_t ct_stream_state_epoch(const int64_t *state, int32_t n_sources);

#define CT_LOADER_N_EXAMPLES 4

/* Since creation, up to the last batch delivered. Bad, short and long documents are counted in the first pass only. */
typedef struct ct_loader_stats {
    int64_t n_documents;          /* read, each pass counts */
    int64_t n_empty;              /* with empty text (used: BOS and EOS) */
    int64_t n_short;              /* dropped: fewer than 2 ids */
    int64_t n_long;               /* dropped: longer than a row (first-fit) */
    int64_t n_bad[CT_BAD_COUNT];  /* skipped, by kind */
    int64_t n_bad_total;
    ct_text_repairs repairs;
    int32_t n_examples;           /* the first bad documents, in words */
    char examples[CT_LOADER_N_EXAMPLES][256];
} ct_loader_stats;

typedef struct ct_loader ct_loader;

/**
 * A loader at the beginning of the data. Its thread starts at the first ct_loader_next.
 *
 * sources    n_sources of them, at most CT_DATA_SOURCES_MAX; their corpora are borrowed until ct_loader_destroy
 * processor  makes ids of documents; what it borrows is borrowed until ct_loader_destroy, too
 *
 * Fails: CT_ERR_RANGE naming the option; CT_ERR_DATA where a corpus has fewer documents than streams; CT_ERR_MEMORY.
 * Threads: one thread at a time calls a loader's functions.
 */
CT_MUST_CHECK ct_status ct_loader_create(const ct_alloc *alloc, const ct_data_source *sources, int32_t n_sources,
                                         const ct_processor *processor, const ct_loader_options *options,
                                         ct_loader **out_loader, ct_err *err);
void ct_loader_destroy(ct_loader **loader); /* stops and joins the threads; each finishes the document it is at */

int64_t ct_loader_local_rows(const ct_loader *loader); /* rows / streams * n_local_streams */

/**
 * The next micro-batch. Allocates nothing once the longest document has been seen.
 *
 * Returns CT_END_OF_DATA (err untouched) where repeat is off and every stream of this rank is at its end; a stream that
 * ends earlier gives padding meanwhile. Other ranks may have data left: agree, and use ct_batch_fill_padding.
 * Fails: CT_ERR_DATA naming file, line and fault; what the processor fails with, naming the document. After these and after
 * the end each call returns the same, until ct_loader_seek. CT_ERR_RANGE where segments_cap is too small (nothing changes).
 */
CT_MUST_CHECK ct_status ct_loader_next(ct_loader *loader, ct_batch *batch, ct_err *err);
/* A batch of padding alone; n_tokens as ct_loader_next would fill. */
CT_MUST_CHECK ct_status ct_batch_fill_padding(ct_batch *batch, int64_t n_tokens, ct_err *err);

/* Where each local stream stands after the last batch delivered: n_local_streams states of ct_stream_state_width numbers. Prefetched batches do not
 * count. */
void ct_loader_state(const ct_loader *loader, int64_t *out_states);
/* Goes there: the next batch is the one that followed. Fails: CT_ERR_RANGE naming the stream and number (then nothing
 * has changed). A token past its document's end is found by ct_loader_next (CT_ERR_DATA). */
CT_MUST_CHECK ct_status ct_loader_seek(ct_loader *loader, const int64_t *states, ct_err *err);
ct_loader_stats ct_loader_get_stats(const ct_loader *loader);

/* --- state on disk ---------------------------------------------------------------------------------------------- */

/**
 * All streams' states and the identity of the data, as one line of JSON (docs/formats/data-state.md).
 * options   those of the loader; of them encode_hash and what the order hangs on is kept
 * states    n_streams states, those of all ranks in the order of the streams
 * out_text  caller frees with ct_alloc_free
 */
CT_MUST_CHECK ct_status ct_data_state_write(const ct_alloc *alloc, const ct_data_source *sources, int32_t n_sources,
                                            const ct_loader_options *options, const int64_t *states, int64_t n_streams,
                                            char **out_text, ct_err *err);
/**
 * Reads it back. The number of streams is the saved one and wins over any setting: the order of the data hangs on it.
 * options     compared with what was saved, as are the sources
 * out_states  n_streams states, caller frees with ct_alloc_free
 *
 * Fails: CT_ERR_FORMAT; CT_ERR_DATA naming what changed (sources, weights, files, sizes, contents, documents, text field,
 * tokenizer, shuffle, its seed, packing and what first-fit hangs on).
 */
CT_MUST_CHECK ct_status ct_data_state_read(const ct_alloc *alloc, const char *text, size_t size,
                                           const ct_data_source *sources, int32_t n_sources, const ct_loader_options *options,
                                           int64_t **out_states, int64_t *out_n_streams, ct_err *err);

#endif
