/* SPDX-License-Identifier: Apache-2.0 */
/* Where documents come from: names of data sets, files, and an index of their documents. */
#ifndef CTI_DATA_CORPUS_H
#define CTI_DATA_CORPUS_H

#include "data/document.h"

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

/* --- reading ------------------------------------------------------------------------------------------------------- */

/* One thread's way into a corpus: what must be kept between reads (decoders of compressed files; nothing for plain ones). */
typedef struct ct_reader ct_reader;
CT_MUST_CHECK ct_status ct_reader_create(const ct_alloc *alloc, const ct_corpus *corpus /* borrowed */, ct_reader **out_reader,
                                         ct_err *err);
void ct_reader_destroy(ct_reader **reader);

/**
 * Reads one document.
 *
 * number    0 <= number < n_documents
 * document  emptied, then filled (the caller's)
 * out_bad   CT_BAD_NONE, or what is wrong (with CT_ERR_DATA); may be NULL
 * repairs   added to; may be NULL
 *
 * Fails: CT_ERR_DATA naming file, line, column and fault; CT_ERR_IO; CT_ERR_MEMORY; CT_ERR_RANGE.
 * Threads: one thread at a time a reader; any number of readers.
 */
CT_MUST_CHECK ct_status ct_reader_read(ct_reader *reader, int64_t number, ct_document *document, ct_bad *out_bad,
                                       ct_text_repairs *repairs, ct_err *err);
/* "'FILE' line N" of a document, for messages; bounded by size. Counts the lines before it: for what is told, not for each. */
void ct_corpus_place(const ct_corpus *corpus, int64_t number, char *out, size_t size);

/* The part-th of n_parts contiguous, balanced slices of n things: [*out_begin, *out_end). The first n mod n_parts are
 * one longer. 0 <= part < n_parts. Exact for all int64. */
void ct_slice(int64_t n, int64_t n_parts, int64_t part, int64_t *out_begin, int64_t *out_end);

#endif
