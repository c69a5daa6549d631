/* SPDX-License-Identifier: Apache-2.0 */
/* Writing one file of tokens (docs/formats/token-file.md). */
#ifndef CTI_DATA_TOKEN_WRITER_H
#define CTI_DATA_TOKEN_WRITER_H

#include "data/output.h"
#include "data/tokens.h"

/* Zero-initialise. */
typedef struct cti_token_writer {
    const ct_alloc *alloc;
    cti_output output;
    cti_tokens_header header; /* counts and sums so far */
    unsigned char *block;     /* owns; not yet summed and written */
    size_t n_block;
    int64_t *offsets; /* owns */
    int64_t cap_offsets;
} cti_token_writer;

/* header: token_bytes, vocab_size, tokenizer_hash, first_document, source_documents, source_hash and shard_tokens count; the rest is set here. */
CT_MUST_CHECK ct_status cti_token_writer_open(cti_token_writer *writer, const ct_alloc *alloc, const char *path,
                                              const cti_tokens_header *header, ct_err *err);
/* Adds a document. The ids fit token_bytes. */
CT_MUST_CHECK ct_status cti_token_writer_add(cti_token_writer *writer, const int32_t *ids, int64_t n, ct_err *err);
CT_MUST_CHECK ct_status cti_token_writer_finish(cti_token_writer *writer, bool is_last, ct_err *err);
void cti_token_writer_deinit(cti_token_writer *writer); /* what was not finished is removed */

#endif
