/* SPDX-License-Identifier: Apache-2.0 */
/* Files of tokens: ours (docs/formats/token-file.md), Megatron's .bin with .idx, llm.c's .bin. */
#ifndef CTI_DATA_TOKENS_H
#define CTI_DATA_TOKENS_H

#include "data/source.h"

#define CTI_TOKENS_VERSION 1
#define CTI_TOKENS_HEADER_BYTES 128
#define CTI_TOKENS_SUM_BLOCK_BYTES (1 << 20)

/* The first bytes of our format; little-endian. */
typedef struct cti_tokens_header {
    unsigned char magic[8];
    uint32_t version, header_bytes;
    uint64_t header_sum; /* XXH3-64 of the header behind this field, seeded with the version */
    int64_t file_bytes;
    int64_t n_tokens, n_documents;
    uint32_t token_bytes; /* 2 or 4 */
    uint32_t flags;       /* CTI_TOKENS_LAST */
    int64_t vocab_size;   /* 0: not said */
    uint64_t tokenizer_hash; /* ct_text_processor_hash; 0: not said */
    uint64_t tokens_sum;  /* XXH3-64 chained over blocks of 1 MiB, from 0 */
    uint64_t offsets_sum; /* likewise, over the offsets */
    int64_t first_document;   /* of the source that was tokenized */
    int64_t source_documents; /* 0: not said */
    uint64_t source_hash; /* of the source's files and how they are read */
    int64_t shard_tokens; /* at which the files of a set end; 0: one file */
    uint64_t unused;      /* 0 */
} cti_tokens_header;
extern const unsigned char cti_tokens_magic[8];
enum { CTI_TOKENS_LAST = 1u << 0 }; /* the last file of its set */
uint64_t cti_tokens_header_sum(const cti_tokens_header *header);

/* Where things lie in a file that was checked. */
typedef struct cti_token_file {
    int token_bytes; /* 1, 2, 4 or 8; 0: no file of tokens */
    bool is_signed;
    int64_t n_tokens, n_documents;
    int64_t tokens_at;    /* byte of the first token */
    int64_t offsets_at;   /* ours: byte of the offsets */
    cti_tokens_header header; /* ours */
    char *idx_path;           /* Megatron: owns */
    cti_source idx;           /* Megatron */
    int64_t n_sequences, lengths_at, pointers_at, documents_at; /* Megatron: bytes of the .idx */
} cti_token_file;

CT_MUST_CHECK ct_status cti_tokens_open_own(const cti_source *source, int fd, cti_token_file *out, ct_err *err);
CT_MUST_CHECK ct_status cti_tokens_open_megatron(const ct_alloc *alloc, const cti_source *source, cti_token_file *out, ct_err *err);
CT_MUST_CHECK ct_status cti_tokens_open_llmc(const cti_source *source, int fd, int32_t *begin_id, cti_token_file *out, ct_err *err);
void cti_token_file_deinit(const ct_alloc *alloc, cti_token_file *file);
/* Where the documents of an llm.c file begin: at each begin_id, and at the first token. */
CT_MUST_CHECK ct_status cti_tokens_index_llmc(const ct_alloc *alloc, const cti_source *source, int fd, const cti_token_file *file,
                                              int32_t begin_id, cti_index *out_index, ct_err *err);
/* Compares the check sum of our format's tokens: reads all of them. */
CT_MUST_CHECK ct_status cti_tokens_verify(const cti_source *source, const cti_token_file *file, ct_err *err);
/* "X.bin" -> "X.idx". Caller frees. */
CT_MUST_CHECK ct_status cti_tokens_idx_path(const ct_alloc *alloc, const char *bin_path, char **out_path, ct_err *err);
/* True where the first bytes are llm.c's header. */
bool cti_tokens_is_llmc(const unsigned char *bytes, size_t size);

#endif
