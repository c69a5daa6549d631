/* SPDX-License-Identifier: Apache-2.0 */
/* Where documents come from: names of data sets, files, and an index of their documents. */
#ifndef CTI_DATA_CORPUS_H
#define CTI_DATA_CORPUS_H

#include "ctitan/plugin.h"
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

/* What a file is. X(NAME, words) */
#define CT_FILE_FORMAT_LIST(X)                                                                                         \
    X(JSONL, "JSON lines")                                                                                             \
    X(TEXT, "text")                                                                                                    \
    X(TOKENS, "tokens")                                                                                                \
    X(MEGATRON, "Megatron tokens")                                                                                     \
    X(LLMC, "llm.c tokens")                                                                                            \
    X(PLUGIN, "a plug-in's data set")
typedef enum ct_file_format {
#define CT_FILE_FORMAT_ENUM(NAME, words) CT_FILE_##NAME,
    CT_FILE_FORMAT_LIST(CT_FILE_FORMAT_ENUM)
#undef CT_FILE_FORMAT_ENUM
        CT_FILE_FORMAT_COUNT
} ct_file_format;
const char *ct_file_format_words(ct_file_format format);

typedef enum ct_codec { CT_CODEC_NONE, CT_CODEC_GZIP, CT_CODEC_ZSTD, CT_CODEC_COUNT } ct_codec;
const char *ct_codec_words(ct_codec codec); /* "plain", "gzip", "zstd" */

typedef struct ct_corpus ct_corpus;

/* What becomes of bytes of a text that are no UTF-8, and of escaped surrogates without their other half. */
typedef enum ct_utf8_policy {
    CT_UTF8_REPAIR, /* each maximal ill-formed part becomes U+FFFD, and is counted */
    CT_UTF8_BAD,    /* the document is bad (CT_BAD_UTF8) */
    CT_UTF8_POLICY_COUNT
} ct_utf8_policy;

#define CT_MAX_DOCUMENT_BYTES ((int64_t)256 << 20)

/* Zero-initialise and set what is not zero. */
typedef struct ct_corpus_options {
    const char *text_field; /* member of each JSONL object that holds the text; NULL: "text" */
    bool records;           /* documents are the JSONL objects themselves (CT_DOCUMENT_RECORD); text_field is not looked for */
    ct_utf8_policy utf8;
    int64_t max_document_bytes; /* a longer line, text or run of tokens is bad (CT_BAD_TOO_LONG); 0: CT_MAX_DOCUMENT_BYTES */
    int32_t begin_id;           /* llm.c files: the id each document begins with; 0: 50256 (GPT-2) or 128000 (Llama 3), by the file */
    const char *cache_dir;      /* where indexes are kept; NULL: ct_data_cache_dir(); "": nowhere */
} ct_corpus_options;

typedef struct ct_corpus_file {
    const char *path; /* the corpus's */
    ct_file_format format;
    ct_codec codec;
    int64_t size_bytes;     /* of the file */
    int64_t contents_bytes; /* of what it holds, decompressed */
    int64_t n_documents;
    int64_t n_tokens;     /* of a file of tokens; else -1 */
    uint64_t fingerprint; /* of the size and the first and last 4 KiB */
    const char *damage;   /* NULL, or what is wrong with the compressed data: the last document stands for what cannot be read */
    bool is_index_kept;   /* the index lies in the cache */
    bool is_index_built;  /* this call has built it */
} ct_corpus_file;

/**
 * The folder where indexes are kept: $CTITAN_CACHE_DIR, else $XDG_CACHE_HOME/ctitan, else $HOME/.cache/ctitan, else "" (none). This is
 * one of the places that read the environment. out_path: caller frees with ct_alloc_free.
 */
CT_MUST_CHECK ct_status ct_data_cache_dir(const ct_alloc *alloc, char **out_path, ct_err *err);

/**
 * Opens files and builds, or fetches, the index of their documents.
 *
 * path     a file; a folder (the data files directly in it, sorted by name; hidden ones are left out; files of one kind only, else a
 *          pattern must say which); a pattern with * ? [ ] { , } (sorted); or the common beginning of a .bin and its .idx
 * options  NULL: the defaults
 *
 * JSON lines (.jsonl, .ndjson, .json, and any other name whose contents begin with '{'): each line that is not blank is a
 * document; what is wrong with it is found when it is read. LF or CRLF, a byte order mark is left out, the last line
 * needs no newline. Text (.txt, .text): a file is one document, taken byte for byte but for a byte order mark; a file of
 * blanks alone is none. Both plain or compressed with gzip (.gz) or zstd (.zst), which the first bytes decide.
 * Tokens: .ctok (docs/formats/token-file.md), Megatron's .bin with .idx, llm.c's .bin; a document's ids are taken as they are.
 *
 * Compressed data that is cut off or damaged ends in a document that is bad (CT_BAD_DAMAGED), so that the policy for bad documents
 * decides; ct_corpus_check_whole tells before. The files must not change while the corpus is open: it is noticed (CT_ERR_DATA).
 * Cost: reads each JSONL, text and llm.c file once, several at a time (base/pool.h), unless its index is kept; 8 bytes a document,
 * mapped where the index is kept. Indexes of large or compressed files are kept in cache_dir; a cache that cannot be used is a note.
 *
 * Fails: CT_ERR_NOT_FOUND, CT_ERR_IO; CT_ERR_UNSUPPORTED for Parquet, archives, other compressions and UTF-16 by name;
 * CT_ERR_FORMAT for files of tokens; CT_ERR_DATA where there is no usable file, one file twice, or no document.
 * Threads: the result is constant; any may read it.
 */
CT_MUST_CHECK ct_status ct_corpus_open(const ct_alloc *alloc, const char *path, const ct_corpus_options *options,
                                       ct_corpus **out_corpus, ct_err *err);
/* Several paths as one corpus, in the order given. */
CT_MUST_CHECK ct_status ct_corpus_open_list(const ct_alloc *alloc, const char *const *paths, int64_t n_paths,
                                            const ct_corpus_options *options, ct_corpus **out_corpus, ct_err *err);
/* A plug-in's data set (ctitan/plugin.h) as a corpus of one "file" that is called by its name. path: "" or what the data set is told. */
CT_MUST_CHECK ct_status ct_corpus_open_dataset(const ct_alloc *alloc, const ct_dataset *dataset, const char *path,
                                               const ct_corpus_options *options, ct_corpus **out_corpus, ct_err *err);
void ct_corpus_destroy(ct_corpus **corpus);

/* Lines (each ended by a newline) for a program's log: indexes that were built, caches that could not be used. "": none. */
const char *ct_corpus_notes(const ct_corpus *corpus);
/* CT_ERR_DATA naming the first file whose compressed data is cut off or damaged, and what is. */
CT_MUST_CHECK ct_status ct_corpus_check_whole(const ct_corpus *corpus, ct_err *err);
/* CT_ERR_UNSUPPORTED naming the first file where reading a document from the middle costs too much (more than 16 MiB of one zstd
 * frame), and the way out. Reading in rising order is always cheap. */
CT_MUST_CHECK ct_status ct_corpus_check_random_access(const ct_corpus *corpus, ct_err *err);
bool ct_corpus_is_random_access(const ct_corpus *corpus);
/* Files of tokens: CT_ERR_DATA naming the first whose tokenizer is another one (tokenizer_hash: ct_text_processor_hash, 0: not
 * compared) or whose vocabulary is larger than vocab_size (0: not compared). Files that do not say are let through. */
CT_MUST_CHECK ct_status ct_corpus_check_tokens(const ct_corpus *corpus, uint64_t tokenizer_hash, int64_t vocab_size, ct_err *err);

/* Reads all tokens of our files of tokens: CT_ERR_FORMAT naming the first whose check sum is wrong. */
CT_MUST_CHECK ct_status ct_corpus_verify(const ct_corpus *corpus, ct_err *err);

int64_t ct_corpus_n_documents(const ct_corpus *corpus);
int64_t ct_corpus_n_files(const ct_corpus *corpus);
int64_t ct_corpus_size_bytes(const ct_corpus *corpus); /* of the files as they are, compressed or not */
const char *ct_corpus_text_field(const ct_corpus *corpus);
ct_corpus_file ct_corpus_file_at(const ct_corpus *corpus, int64_t i);

/* --- reading ------------------------------------------------------------------------------------------------------- */

/* One thread's way into a corpus: what must be kept between reads (windows, decoders of compressed files). A reader for each stream of
 * rising numbers, or what was decompressed is decompressed again. */
typedef struct ct_reader ct_reader;
CT_MUST_CHECK ct_status ct_reader_create(const ct_alloc *alloc, const ct_corpus *corpus /* borrowed */, ct_reader **out_reader,
                                         ct_err *err);
void ct_reader_destroy(ct_reader **reader);

/**
 * Reads one document. In rising order each byte of compressed data is decompressed once. Memory: two windows (a quarter of a MiB, and
 * what the decompressor needs, each) and the longest document.
 *
 * number    0 <= number < n_documents
 * document  emptied, then filled (the caller's)
 * out_bad   CT_BAD_NONE, or what is wrong (with CT_ERR_DATA); may be NULL
 * repairs   added to; may be NULL
 *
 * Fails: CT_ERR_DATA naming file, line, column and fault, or a file that has changed (then out_bad is CT_BAD_NONE);
 * CT_ERR_IO; CT_ERR_MEMORY; CT_ERR_RANGE.
 * Threads: one thread at a time a reader; any number of readers.
 */
CT_MUST_CHECK ct_status ct_reader_read(ct_reader *reader, int64_t number, ct_document *document, ct_bad *out_bad,
                                       ct_text_repairs *repairs, ct_err *err);
/* "'FILE' line N" of a document ("'FILE' document N" of tokens), for messages; bounded by size. Counts the lines before it: for what is
 * told, not for each. */
void ct_corpus_place(const ct_corpus *corpus, int64_t number, char *out, size_t size);

/* The part-th of n_parts contiguous, balanced slices of n things: [*out_begin, *out_end). The first n mod n_parts are
 * one longer. 0 <= part < n_parts. Exact for all int64. */
void ct_slice(int64_t n, int64_t n_parts, int64_t part, int64_t *out_begin, int64_t *out_end);

#endif
