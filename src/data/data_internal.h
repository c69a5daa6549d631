/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the room `data` share. */
#ifndef CTI_DATA_DATA_INTERNAL_H
#define CTI_DATA_DATA_INTERNAL_H

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>

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
    bool is_index_kept;
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

/* The last part whose first document is not after `number` and that is not empty. */
const cti_corpus_part *cti_corpus_part_of(const ct_corpus *corpus, int64_t number);

/* --- reader --- */

enum { CTI_PLACE_BYTES = 512 };

/* As ct_reader_read for 0 <= number < n_documents; what is wrong with the document is in fault only. */
CT_MUST_CHECK ct_status cti_reader_read(ct_reader *reader, int64_t number, ct_document *document, ct_text_repairs *repairs,
                                        cti_line_fault *fault, ct_err *err);
/* CT_ERR_DATA with file, line and fault. Counts the lines before it: for what is told, not for each bad document. */
ct_status cti_corpus_fail(const ct_corpus *corpus, int64_t number, const cti_line_fault *fault, ct_err *err);

/* --- stream --- */

/* One stream's cursor and the sample of the document it is in. */
typedef struct cti_stream {
    int64_t begin, n; /* slice of the corpus's documents */
    ct_stream_state at;
    int64_t n_seen;   /* documents since creation or seek, bounded use: the first pass counts faults */
    int64_t n_barren; /* documents since one gave tokens */
    bool is_loaded;   /* sample is of document `at` */
    ct_sample sample; /* owns */
} cti_stream;

/* What batches are made with: all of it belongs to the thread that makes them. */
typedef struct cti_maker {
    const ct_alloc *alloc;
    const ct_corpus *corpus; /* borrows */
    ct_reader *reader;       /* owns */
    ct_processor processor;
    void *state; /* owns; the processor's */
    ct_loader_options options;
    int64_t local_rows;
    cti_stream *streams; /* owns; n_local_streams */
    ct_document document; /* owns; scratch */
    int64_t n_local_documents;
    const atomic_bool *stop; /* CT_ERR_STOPPED at the next document once true */
    ct_loader_stats stats;
} cti_maker;

CT_MUST_CHECK ct_status cti_maker_init(cti_maker *maker, const ct_alloc *alloc, const ct_corpus *corpus,
                                       const ct_processor *processor, const ct_loader_options *options, ct_err *err);
void cti_maker_deinit(cti_maker *maker);
void cti_maker_seek(cti_maker *maker, const ct_stream_state *states);
void cti_maker_states(const cti_maker *maker, ct_stream_state *out_states);
/* Fills a batch whose arrays hold a whole local micro-batch (segments_cap: its tokens). */
CT_MUST_CHECK ct_status cti_maker_next(cti_maker *maker, ct_batch *batch, ct_err *err);

/* --- loader_thread --- */

/* One batch made ahead, with where the streams stood after it. */
typedef struct cti_slot {
    ct_batch batch;
    ct_stream_state *states;
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

#endif
