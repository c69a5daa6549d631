/* SPDX-License-Identifier: Apache-2.0 */
/* A document, and what becomes of it: text, record or ids in; ids and labels out. */
#ifndef CTI_DATA_DOCUMENT_H
#define CTI_DATA_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "ctitan/alloc.h"
#include "ctitan/status.h"
#include "tokenizer/tokenizer.h"

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
    X(TOO_DEEP, "nested too deeply")                                                                                   \
    X(UTF8, "not UTF-8")                                                                                               \
    X(TOO_LONG, "longer than allowed")                                                                                 \
    X(DAMAGED, "compressed data damaged")                                                                              \
    X(CONTENT, "cannot be used")
typedef enum ct_bad {
#define CT_BAD_ENUM(NAME, words) CT_BAD_##NAME,
    CT_BAD_LIST(CT_BAD_ENUM)
#undef CT_BAD_ENUM
        CT_BAD_COUNT
} ct_bad;
const char *ct_bad_words(ct_bad bad);

/* What had to be repaired in a document's text. */
typedef struct ct_text_repairs {
    int64_t n_invalid_utf8;    /* ill-formed parts, each now U+FFFD (Unicode 15, section 3.9) */
    int64_t n_lone_surrogates; /* escapes such as \ud800 without its other half, each now U+FFFD */
} ct_text_repairs;

typedef enum ct_document_kind {
    CT_DOCUMENT_TEXT,   /* text: well-formed UTF-8, may hold NUL, may be empty */
    CT_DOCUMENT_RECORD, /* text: one JSON object as the file has it, checked; for processors that read several members */
    CT_DOCUMENT_IDS,    /* ids: as a token file has them */
    CT_DOCUMENT_KIND_COUNT
} ct_document_kind;

/* One document as a reader gives it. Zero-initialise with the allocators in text and ids; reused from read to read. */
typedef struct ct_document {
    ct_document_kind kind;
    cti_str text;  /* owns */
    ct_tokens ids; /* owns */
} ct_document;
void ct_document_init(ct_document *document, const ct_alloc *alloc);
void ct_document_deinit(ct_document *document);

#define CT_LABEL_IGNORE (-100)

/* What a processor makes of a document: row inputs are ids[0..n-1), the label of ids[i] is ids[i+1], so no label crosses
 * documents. Fewer than 2 ids give nothing. */
typedef struct ct_sample {
    ct_tokens ids;    /* BOS and EOS included */
    ct_tokens labels; /* n = 0: each id is a label; else as many as ids: ids[i], or CT_LABEL_IGNORE where it is none */
    bool is_long;     /* no ids, because there would be more than the processor's limit; set by processors that have one */
} ct_sample;
void ct_sample_init(ct_sample *sample, const ct_alloc *alloc);
void ct_sample_deinit(ct_sample *sample);

/* Documents to samples. Several threads may each have a state of their own; the context is constant. */
typedef struct ct_processor {
    const void *ctx; /* borrowed */
    /* One state a thread; NULL: the state is ctx itself. */
    ct_status (*open)(const void *ctx, const ct_alloc *alloc, void **out_state, ct_err *err);
    void (*close)(void *state);
    /* Fills sample (emptied by the caller). The same document gives the same sample, always. CT_ERR_DATA: the document
     * cannot be used (err says why, without its place): a bad document of kind CT_BAD_CONTENT. Other failures end the run. */
    ct_status (*process)(void *state, const ct_document *document, ct_sample *sample, ct_err *err);
} ct_processor;

/* The processor of pre-training: text is encoded, ids are taken as they are, records are refused. */
typedef struct ct_text_processor {
    const ct_tokenizer *tokenizer; /* borrowed */
    unsigned flags;                /* CT_ENCODE_*; usually CT_ENCODE_DOCUMENT */
} ct_text_processor;
ct_processor ct_processor_of_text(const ct_text_processor *text /* borrowed */);
/* Identity of what it makes of texts, for files of tokens and saved states: XXH3-64 over flags, each token by its id, BOS, EOS and the
 * ids of three texts: one that many rules of splitting touch, one of the added tokens in several surroundings, one of all tokens. The
 * same for every form of one tokenizer's files, and whatever their members' order or layout; never 0. Takes as long as encoding one
 * document of the vocabulary's size. */
CT_MUST_CHECK ct_status ct_text_processor_hash(const ct_alloc *alloc, const ct_text_processor *text, uint64_t *out_hash, ct_err *err);

#endif
