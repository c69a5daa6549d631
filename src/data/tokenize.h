/* SPDX-License-Identifier: Apache-2.0 */
/* What a corpus holds; a corpus to files of tokens. */
#ifndef CTI_DATA_TOKENIZE_H
#define CTI_DATA_TOKENIZE_H

#include "data/loader.h"

#define CT_SURVEY_N_EXAMPLES 8

/* All documents seen once. */
typedef struct ct_survey {
    int64_t n_documents;
    int64_t text_bytes;  /* of good documents, as UTF-8 */
    int64_t n_empty;
    int64_t n_short;      /* good, but fewer than 2 ids */
    int64_t n_long;       /* good, but of more ids than the processor's limit; not among n_short */
    int64_t longest;      /* number of the longest good document; -1: none is good */
    int64_t longest_size; /* in bytes of text, or in ids */
    int64_t n_tokens;     /* labels */
    double nats;          /* entropy of their frequencies, a token */
    int64_t n_bad[CT_BAD_COUNT];
    int64_t n_bad_total;
    ct_text_repairs repairs;
    int32_t n_examples;   /* the first bad documents, in words */
    char examples[CT_SURVEY_N_EXAMPLES][256];
} ct_survey;
/* Reads all documents. processor NULL: tokens are not counted. Stops after the document that reaches max_tokens labels (0: all).
 * Fails: as ct_reader_read, but for bad documents, which are counted; what the processor fails with. */
CT_MUST_CHECK ct_status ct_corpus_survey(const ct_alloc *alloc, const ct_corpus *corpus, const ct_processor *processor,
                                         int64_t max_tokens, ct_survey *out_survey, ct_err *err);

/* Zero-initialise and set what is not zero. */
typedef struct ct_tokenize_options {
    const char *output;      /* X.ctok: one file; else a folder that gets tokens-00000.ctok and so on */
    int64_t shard_tokens;    /* of a folder: a file ends with the document that reaches this many; 0: 2^30 */
    int64_t vocab_size;      /* above every id; up to 65536 a token has 2 bytes, else 4 */
    uint64_t tokenizer_hash; /* ct_text_processor_hash */
    ct_bad_policy bad_policy;
    bool replace;            /* an X.ctok that is there is replaced; files of another set in the folder are removed */
    void (*progress)(void *ctx, int64_t n_documents, int64_t n_tokens); /* now and then, from the calling thread; may be NULL */
    void *ctx;
} ct_tokenize_options;

typedef struct ct_tokenize_result {
    int64_t n_documents, n_tokens, n_files;
    int64_t n_files_kept;        /* whole files of an earlier, interrupted call that were taken over */
    int64_t n_bad[CT_BAD_COUNT]; /* of this call; each is an empty document */
    int64_t n_bad_total;
    int64_t n_short;             /* documents of fewer than 2 ids, bad ones included: the loader drops them */
    ct_text_repairs repairs;
    int32_t n_examples;
    char examples[CT_LOADER_N_EXAMPLES][256];
} ct_tokenize_result;

/**
 * Writes what the processor makes of each document (docs/formats/token-file.md). Training on the files sees the rows that training on
 * the corpus sees: documents keep their number, bad ones are empty. The bytes are the same with any number of threads (base/pool.h).
 *
 * A file appears under its name when it is whole and on the disk. Where a call for a folder was interrupted, the next one with the same
 * corpus, tokenizer and options takes over the files that are whole and goes on behind them.
 *
 * Fails: CT_ERR_USAGE where output exists and is not to be replaced, or the folder holds files of another set; CT_ERR_DATA for a bad
 * document (CT_BAD_FAIL), an id at or above vocab_size, or a processor that leaves out labels; CT_ERR_IO naming the file: nothing of
 * a file that was not finished is left.
 */
CT_MUST_CHECK ct_status ct_corpus_tokenize(const ct_alloc *alloc, const ct_corpus *corpus, const ct_processor *processor,
                                           const ct_tokenize_options *options, ct_tokenize_result *out_result, ct_err *err);

#endif
