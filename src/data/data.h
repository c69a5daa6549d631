/* SPDX-License-Identifier: Apache-2.0 */
/* The map of the room `data`: documents -> tokens -> packed rows -> batches, exactly resumable.
 *
 *     ct_corpus *corpus = NULL;
 *     CT_TRY(ct_dataset_resolve(alloc, "c4_test", dataset_path, share_dir, &path, err));
 *     CT_TRY(ct_corpus_open(alloc, path, NULL, &corpus, err));
 *     ct_loader_options options = {.seq_len = 256, .rows = 8, .streams = 2, .n_local_streams = 2, .repeat = true,
 *                                  .prefetch_batches = 2};
 *     ct_loader *loader = NULL;
 *     CT_TRY(ct_loader_create(alloc, corpus, ct_encode_document, encoder, &options, &loader, err));
 *     CT_TRY(ct_loader_next(loader, &batch, err));                     // as often as wanted; CT_END_OF_DATA ends it
 *     ct_loader_destroy(&loader);
 *     ct_corpus_destroy(&corpus);
 *
 * The order. A corpus is a list of documents in file order. Stream s of G reads the s-th of G contiguous, balanced
 * slices of it (the first N mod G are one document longer), in file order in every epoch, and fills the rows
 * [s*B/G, (s+1)*B/G) of each micro-batch of B rows; micro-batches are consecutive calls. A document's ids are what the
 * encode function gives (BOS + tokens + EOS); input = ids[:-1], label = ids[1:], so no label crosses documents. Inputs
 * are concatenated and cut at seq_len: a document that does not fit goes on at the start of the stream's next row, and
 * nothing is lost. Positions count within the document and start again at 0 at a row's start. Documents of fewer than 2
 * ids give nothing. This is TorchTitan's order without shuffling where G is its data-parallel degree.
 *
 * What it does not do yet: shuffling, mixing, first-fit packing, token files, compressed files (refused by name).
 *
 * Files: dataset (names), corpus_files (paths to files), corpus (index), jsonl (one line), text_repair (UTF-8),
 * stream (cursor and packing), loader (batches), loader_thread (prefetch), loader_state (resume), entropy,
 * encode_document (the tokenizer as an encode function).
 */
#ifndef CTI_DATA_DATA_H
#define CTI_DATA_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "ctitan/alloc.h"
#include "ctitan/status.h"
#include "tokenizer/tokenizer.h"

/* --- names of datasets ------------------------------------------------------------------------------------------ */

/**
 * The path behind a dataset's name.
 *
 * name          `c4_test`, `demo` and others of the list, or a path (holds a '/' or exists)
 * dataset_path  wins over the name where it is not NULL and not ""
 * share_dir     the folder that holds demo.jsonl, the corpus that comes with the program
 * out_path      caller frees with ct_alloc_free; whether it exists is ct_corpus_open's business
 *
 * Fails: CT_ERR_UNSUPPORTED for a name that lives on a hub, with the way out; CT_ERR_USAGE for an unknown name, with
 * the nearest and the list.
 */
CT_MUST_CHECK ct_status ct_dataset_resolve(const ct_alloc *alloc, const char *name, const char *dataset_path,
                                           const char *share_dir, char **out_path, ct_err *err);
/* The i-th name that resolves to a local file, NULL past the last. */
const char *ct_dataset_name(size_t i);

/* --- corpus: files and an index of documents -------------------------------------------------------------------- */

typedef enum ct_file_format { CT_FILE_JSONL, CT_FILE_TEXT, CT_FILE_FORMAT_COUNT } ct_file_format;

/* What can be wrong with a document. X(NAME, words) */
#define CT_BAD_LIST(X)                                                                                                 \
    X(NONE, "fine")                                                                                                    \
    X(SYNTAX, "not JSON")                                                                                              \
    X(CUT_OFF, "cut off at the end of the line")                                                                       \
    X(TRAILING, "more than one value on the line")                                                                     \
    X(NOT_OBJECT, "not a JSON object")                                                                                 \
    X(NO_FIELD, "text field missing")                                                                                  \
    X(FIELD_TYPE, "text field not a string")                                                                           \
    X(FIELD_TWICE, "text field given twice")                                                                           \
    X(TOO_DEEP, "nested too deeply")
typedef enum ct_bad {
#define CT_BAD_ENUM(NAME, words) CT_BAD_##NAME,
    CT_BAD_LIST(CT_BAD_ENUM)
#undef CT_BAD_ENUM
        CT_BAD_COUNT
} ct_bad;
const char *ct_bad_words(ct_bad bad);

typedef struct ct_corpus ct_corpus;

typedef struct ct_corpus_options {
    const char *text_field; /* member of each JSONL object that holds the text; NULL: "text" */
} ct_corpus_options;

typedef struct ct_corpus_file {
    const char *path; /* the corpus's */
    ct_file_format format;
    int64_t size_bytes;
    int64_t n_documents;
    uint64_t fingerprint; /* of the size and the first and last 4 KiB */
} ct_corpus_file;

/* What had to be repaired in a document's text. */
typedef struct ct_text_repairs {
    int64_t n_invalid_utf8;    /* ill-formed parts, each now U+FFFD (Unicode 15, section 3.9) */
    int64_t n_lone_surrogates; /* escapes such as \ud800 without its other half, each now U+FFFD */
} ct_text_repairs;

/**
 * Maps files and builds the index of documents, once.
 *
 * path     a file; a folder (the .jsonl, .ndjson, .json or .txt files directly in it, sorted by name; hidden ones are
 *          left out; files of one kind only, else a pattern must say which); or a pattern with * ? [ ] { , } (sorted)
 * options  NULL: the defaults
 *
 * JSON lines (.jsonl, .ndjson, .json, and any other name whose first byte is '{'): each line that is not blank is a
 * document; what is wrong with it is found when it is read. LF or CRLF, a byte order mark is left out, the last line
 * needs no newline. Text (.txt, .text): a file is one document, taken byte for byte but for a byte order mark; a file of
 * blanks alone is none.
 *
 * The files must not change while the corpus is open. Cost: reads every JSONL file once; 8 bytes a document.
 * Fails: CT_ERR_NOT_FOUND, CT_ERR_IO; CT_ERR_UNSUPPORTED for compressed, Parquet and UTF-16 files by name; CT_ERR_DATA
 * where there is no usable file, one file twice, or no document. Threads: the result is constant; any may read it.
 */
CT_MUST_CHECK ct_status ct_corpus_open(const ct_alloc *alloc, const char *path, const ct_corpus_options *options,
                                       ct_corpus **out_corpus, ct_err *err);
void ct_corpus_destroy(ct_corpus **corpus);

int64_t ct_corpus_n_documents(const ct_corpus *corpus);
int64_t ct_corpus_n_files(const ct_corpus *corpus);
int64_t ct_corpus_size_bytes(const ct_corpus *corpus);
const char *ct_corpus_text_field(const ct_corpus *corpus);
ct_corpus_file ct_corpus_file_at(const ct_corpus *corpus, int64_t i);

/**
 * The text of a document: valid UTF-8, may hold NUL; may be empty (that is no fault: BOS and EOS still make an input).
 *
 * document     0 <= document < n_documents
 * text         emptied, then filled (the caller's)
 * out_bad      CT_BAD_NONE, or what is wrong (with CT_ERR_DATA); may be NULL
 * out_repairs  added to; may be NULL
 *
 * Fails: CT_ERR_DATA naming file, line, column and fault; CT_ERR_MEMORY; CT_ERR_RANGE.
 */
CT_MUST_CHECK ct_status ct_corpus_text(const ct_corpus *corpus, int64_t document, cti_str *text, ct_bad *out_bad,
                                       ct_text_repairs *out_repairs, ct_err *err);

/* The part-th of n_parts contiguous, balanced slices of n things: [*out_begin, *out_end). The first n mod n_parts are
 * one longer. 0 <= part < n_parts. Exact for all int64. */
void ct_slice(int64_t n, int64_t n_parts, int64_t part, int64_t *out_begin, int64_t *out_end);

/* --- loader: packed batches ------------------------------------------------------------------------------------- */

/* Appends the ids of one document to ids (BOS and EOS included). text is valid UTF-8 of size bytes and may hold NUL.
 * Called from one thread at a time, which is the loader's own where it prefetches. */
typedef ct_status (*ct_encode_fn)(void *ctx, const char *text, size_t size, ct_tokens *ids, ct_err *err);
/* The ct_encode_fn of a tokenizer: ctx is a ct_encoder of the loader's alone; CT_ENCODE_DOCUMENT. */
CT_MUST_CHECK ct_status ct_encode_document(void *encoder, const char *text, size_t size, ct_tokens *ids, ct_err *err);
/* Appends one id; for encode functions of one's own. */
CT_MUST_CHECK ct_status ct_tokens_push(ct_tokens *ids, int32_t id, ct_err *err);

typedef enum ct_bad_policy {
    CT_BAD_FAIL, /* a bad document ends the run with its file, line and fault */
    CT_BAD_SKIP, /* it gives nothing, and is counted by kind */
    CT_BAD_POLICY_COUNT
} ct_bad_policy;

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
    bool repeat;              /* endless epochs; else CT_END_OF_DATA after one */
    int32_t prefetch_batches; /* batches made ahead by a thread of the loader's; 0: made in ct_loader_next */
} ct_loader_options;

#define CT_LABEL_IGNORE (-100)

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

/* Where a stream stands, at a row's border: what it takes to go on. Plain numbers, so that ranks can exchange them. */
typedef struct ct_stream_state {
    int64_t epoch;    /* from 0; without repeat, 1 is the end */
    int64_t document; /* within the stream's slice */
    int64_t token;    /* inputs of the document already given out */
} ct_stream_state;

#define CT_LOADER_N_EXAMPLES 4

/* Since creation, up to the last batch delivered. Bad and short documents are counted in the first pass only. */
typedef struct ct_loader_stats {
    int64_t n_documents;          /* read, each pass counts */
    int64_t n_empty;              /* with empty text (used: BOS and EOS) */
    int64_t n_short;              /* dropped: fewer than 2 ids */
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
 * corpus, encode_ctx  borrowed until ct_loader_destroy
 *
 * Fails: CT_ERR_RANGE naming the option; CT_ERR_DATA where the corpus has fewer documents than streams; CT_ERR_MEMORY.
 * Threads: one thread at a time calls a loader's functions.
 */
CT_MUST_CHECK ct_status ct_loader_create(const ct_alloc *alloc, const ct_corpus *corpus, ct_encode_fn encode,
                                         void *encode_ctx, const ct_loader_options *options, ct_loader **out_loader,
                                         ct_err *err);
void ct_loader_destroy(ct_loader **loader); /* stops and joins the thread */

int64_t ct_loader_local_rows(const ct_loader *loader); /* rows / streams * n_local_streams */

/**
 * The next micro-batch. Allocates nothing once the longest document has been seen.
 *
 * Returns CT_END_OF_DATA (err untouched) where repeat is off and every stream of this rank is at its end; a stream that
 * ends earlier gives padding meanwhile. Other ranks may have data left: agree, and use ct_batch_fill_padding.
 * Fails: CT_ERR_DATA naming file, line and fault; what encode fails with, naming the document. After these and after
 * the end each call returns the same, until ct_loader_seek. CT_ERR_RANGE where segments_cap is too small (nothing changes).
 */
CT_MUST_CHECK ct_status ct_loader_next(ct_loader *loader, ct_batch *batch, ct_err *err);
/* A batch of padding alone; n_tokens as ct_loader_next would fill. */
CT_MUST_CHECK ct_status ct_batch_fill_padding(ct_batch *batch, int64_t n_tokens, ct_err *err);

/* Where each local stream stands after the last batch delivered: n_local_streams entries. Prefetched batches do not
 * count. */
void ct_loader_state(const ct_loader *loader, ct_stream_state *out_states);
/* Goes there: the next batch is the one that followed. Fails: CT_ERR_RANGE naming the stream and number (then nothing
 * has changed). A token past its document's end is found by ct_loader_next (CT_ERR_DATA). */
CT_MUST_CHECK ct_status ct_loader_seek(ct_loader *loader, const ct_stream_state *states, ct_err *err);
ct_loader_stats ct_loader_get_stats(const ct_loader *loader);

/* --- state on disk ---------------------------------------------------------------------------------------------- */

/**
 * All streams' states and the identity of the data, as one line of JSON (docs/formats/data-state.md).
 * states  n_streams entries, those of all ranks in the order of the streams
 * out_text  caller frees with ct_alloc_free
 */
CT_MUST_CHECK ct_status ct_data_state_write(const ct_alloc *alloc, const ct_corpus *corpus, uint64_t encode_hash,
                                            const ct_stream_state *states, int64_t n_streams, char **out_text,
                                            ct_err *err);
/**
 * Reads it back. The number of streams is the saved one and wins over any setting: the order of the data hangs on it.
 * corpus      compared with what was saved; NULL: not compared
 * out_states  n_streams entries, caller frees with ct_alloc_free
 *
 * Fails: CT_ERR_FORMAT; CT_ERR_DATA naming what changed (files, sizes, contents, documents, text field, tokenizer).
 */
CT_MUST_CHECK ct_status ct_data_state_read(const ct_alloc *alloc, const char *text, size_t size,
                                           const ct_corpus *corpus, uint64_t encode_hash, ct_stream_state **out_states,
                                           int64_t *out_n_streams, ct_err *err);

/* --- token frequencies ------------------------------------------------------------------------------------------ */

/* -sum p ln p over the frequencies of tokens, in nats a token; negative ones (ignored labels) do not count. 0 for none.
 * Fails: CT_ERR_MEMORY. */
CT_MUST_CHECK ct_status ct_unigram_entropy(const ct_alloc *alloc, const int32_t *tokens, int64_t n_tokens,
                                           double *out_nats, ct_err *err);
/**
 * The same over the labels of a corpus: the loss of a model that knows the frequencies and nothing else. Bad documents
 * are left out. Stops after the document that reaches max_tokens (0: all).
 * out_n_tokens  labels counted; may be NULL
 */
CT_MUST_CHECK ct_status ct_dataset_unigram_entropy(const ct_alloc *alloc, const ct_corpus *corpus, ct_encode_fn encode,
                                                   void *encode_ctx, int64_t max_tokens, double *out_nats,
                                                   int64_t *out_n_tokens, ct_err *err);

#endif
