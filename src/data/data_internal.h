/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the room `data` that read documents share; what makes rows of them: stream.h. */
#ifndef CTI_DATA_DATA_INTERNAL_H
#define CTI_DATA_DATA_INTERNAL_H

#include <stdarg.h>

#include "base/file.h"
#include "data/data.h"
#include "data/source.h"
#include "data/tokens.h"

#define CTI_JSONL_MAX_DEPTH 512

/* --- text_repair --- */

/* Length of the maximal ill-formed part at p (p < end, no valid character there): 1 to 3 bytes (Unicode 15, section 3.9,
 * U+FFFD substitution of maximal subparts). */
size_t cti_utf8_bad_part(const unsigned char *p, const unsigned char *end);
/* Appends size bytes to out with each ill-formed part as U+FFFD; returns how many. Memory: out->failed. */
int64_t cti_text_add_repaired(cti_str *out, const unsigned char *bytes, size_t size);

/* --- jsonl --- */

typedef struct cti_line_fault {
    ct_bad bad;
    size_t column;    /* in bytes, from 1; 0: none to tell */
    char detail[200]; /* in words, with the field's name where it matters */
} cti_line_fault;

/* field NULL: checks only. Checks one line (a JSON object, RFC 8259, with NaN and infinities as Python writes them; a byte order
 * mark is left out) and appends the text of its member `field` to text. A member's name may be spelt with escapes. Lone surrogate
 * escapes and ill-formed UTF-8 in the text become U+FFFD and are counted; elsewhere they are let through. No recursion.
 * Returns CT_BAD_NONE or what is wrong (fault is set and text as before). Memory: text->failed. */
ct_bad cti_jsonl_text(const unsigned char *line, size_t size, const char *field, cti_str *text,
                      ct_text_repairs *repairs, cti_line_fault *fault);

/* --- corpus_files --- */

/* The files behind a path, sorted; each exists. Caller frees with cti_names_free. */
CT_MUST_CHECK ct_status cti_corpus_list(const ct_alloc *alloc, const char *path, cti_names *out_files, ct_err *err);
/* One file under two names, or one beside its compressed form, would be read twice: CT_ERR_DATA. */
CT_MUST_CHECK ct_status cti_corpus_check_distinct(const ct_alloc *alloc, const cti_names *files, ct_err *err);

/* --- corpus_format --- */

/* What a file's name says. */
typedef enum cti_name_kind {
    CTI_NAME_LINES,
    CTI_NAME_JSON,
    CTI_NAME_TEXT,
    CTI_NAME_TOKENS,
    CTI_NAME_BIN,
    CTI_NAME_IDX, /* belongs to a .bin */
    CTI_NAME_OTHER,
    CTI_NAME_REFUSED,
    CTI_NAME_COUNT
} cti_name_kind;
/* out_codec: by the ending behind the kind's; out_stem: bytes of the name without that ending. */
cti_name_kind cti_name_kind_of(const char *name, ct_codec *out_codec, size_t *out_stem);
/* CT_ERR_UNSUPPORTED with the way out, for a name of CTI_NAME_REFUSED. */
ct_status cti_name_refuse(const char *path, ct_err *err);
/* The format and compression of a file by its name and first bytes. Refuses what cannot be read, with the way out. */
CT_MUST_CHECK ct_status cti_corpus_format(const ct_alloc *alloc, const char *path, int fd, const cti_stamp *stamp,
                                          ct_file_format *out_format, ct_codec *out_codec, ct_err *err);
/* Bytes of a byte order mark at the start: 0 or 3. */
size_t cti_bom_bytes(const unsigned char *data, size_t size);

/* --- corpus --- */


typedef struct cti_corpus_part {
    char *path; /* owns */
    ct_file_format format;
    cti_source source;
    cti_index index;       /* JSON lines, text, llm.c */
    cti_token_file tokens; /* files of tokens */
    bool is_index_built;
    const ct_dataset *dataset; /* borrows; NULL: a file */
    void *state;                      /* owns; the data set's */
    char note[600]; /* "" or a line for the log */
    int64_t first;  /* document */
    int64_t n;
} cti_corpus_part;

struct ct_corpus {
    const ct_alloc *alloc;
    char *text_field; /* owns */
    bool records;
    ct_utf8_policy utf8;
    int64_t max_document_bytes;
    int32_t begin_id;
    char *cache_dir;        /* owns; "": none */
    cti_corpus_part *parts; /* owns */
    int64_t n_parts;
    int64_t n_documents;
    int64_t size_bytes;
    cti_str notes; /* owns */
};

/* Options of a corpus that has none yet. */
CT_MUST_CHECK ct_status cti_corpus_set_options(ct_corpus *corpus, const ct_corpus_options *options, ct_err *err);
/* The bytes of a document of a plug-in's data set, at most `most` of them; what is wrong with it is in fault only. */
CT_MUST_CHECK ct_status cti_dataset_read(const cti_corpus_part *part, int64_t local, size_t most, cti_str *bytes, bool *out_is_long,
                                         cti_line_fault *fault, ct_err *err);
/* The last part whose first document is not after `number` and that is not empty. */
const cti_corpus_part *cti_corpus_part_of(const ct_corpus *corpus, int64_t number);

/* --- reader --- */

enum { CTI_PLACE_BYTES = 512 };

/* As ct_reader_read for 0 <= number < n_documents; what is wrong with the document is in fault only. */
CT_MUST_CHECK ct_status cti_reader_read(ct_reader *reader, int64_t number, ct_document *document, ct_text_repairs *repairs,
                                        cti_line_fault *fault, ct_err *err);
/* CT_ERR_DATA with file, line and fault. Counts the lines before it: for what is told, not for each bad document. */
ct_status cti_corpus_fail(const ct_corpus *corpus, int64_t number, const cti_line_fault *fault, ct_err *err);

#endif
