/* SPDX-License-Identifier: Apache-2.0 */
/* One thread's reads of a corpus: documents by number, and their places in words. */
#include "base/num.h"
#include "data/data_internal.h"

enum { MAX_CURSORS = 2 }; /* files of tokens are read in two places at once */

struct ct_reader {
    const ct_alloc *alloc;
    const ct_corpus *corpus; /* borrows */
    cti_cursor cursors[MAX_CURSORS]; /* not moved while open: zlib's state points to itself */
    cti_str bytes; /* owns; of a plug-in's document */
    uint64_t now;
};

ct_status ct_reader_create(const ct_alloc *alloc, const ct_corpus *corpus, ct_reader **out_reader, ct_err *err)
{
    ct_reader *reader = CT_NEW(alloc, ct_reader, err);
    if (reader == NULL) {
        return CT_ERR_MEMORY;
    }
    *reader = (ct_reader){.alloc = alloc, .corpus = corpus, .bytes = {.alloc = alloc}};
    for (int i = 0; i < MAX_CURSORS; i++) {
        cti_cursor_init(&reader->cursors[i], alloc);
    }
    *out_reader = reader;
    return CT_OK;
}

void ct_reader_destroy(ct_reader **reader)
{
    if (reader != NULL && *reader != NULL) {
        for (int i = 0; i < MAX_CURSORS; i++) {
            cti_cursor_deinit(&(*reader)->cursors[i]);
        }
        cti_str_deinit(&(*reader)->bytes);
        ct_alloc_free((*reader)->alloc, *reader);
        *reader = NULL;
    }
}

/* The cursor that stands nearest before offset; else the one whose last use is longest ago, brought to the source. */
static ct_status cursor_at(ct_reader *reader, const cti_source *source, int64_t offset, cti_cursor **out, ct_err *err)
{
    cti_cursor *best = NULL, *oldest = NULL;
    const cti_cursor *twin = NULL;
    for (int i = 0; i < MAX_CURSORS; i++) {
        cti_cursor *c = &reader->cursors[i];
        if (cti_cursor_is_near(c, source, offset) && (best == NULL || c->begin > best->begin)) {
            best = c;
        }
        oldest = oldest == NULL || c->used < oldest->used ? c : oldest;
        twin = c->source == source ? c : twin;
    }
    best = best != NULL ? best : oldest;
    best->used = ++reader->now;
    *out = best;
    return cti_cursor_open(best, source, twin, err);
}

static void set_fault(cti_line_fault *fault, ct_bad bad, const char *fmt, ...) CT_PRINTF(3, 4);

static void set_fault(cti_line_fault *fault, ct_bad bad, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    *fault = (cti_line_fault){.bad = bad};
    (void)vsnprintf(fault->detail, sizeof fault->detail, fmt, args);
    va_end(args);
}

static void set_too_long(cti_line_fault *fault, const ct_corpus *corpus)
{
    char most[32];
    set_fault(fault, CT_BAD_TOO_LONG, "more than %s (max_document_bytes)", cti_format_bytes(corpus->max_document_bytes, most));
}

/* The bytes that a document's line may have, from its offset to the next document's. */
static size_t span_of(const cti_corpus_part *part, int64_t local)
{
    const int64_t next = local + 1 < part->index.n ? part->index.offsets[local + 1] : part->index.size_bytes;
    return (size_t)cti_max_i64(next - part->index.offsets[local], 0);
}

/* A file's text, a line of one, or what a plug-in gave: as the options say, mended or bad. */
static ct_status take_text(const ct_corpus *corpus, ct_file_format format, const unsigned char *data, size_t size, ct_document *document,
                           ct_text_repairs *repairs, cti_line_fault *fault, ct_err *err)
{
    ct_text_repairs own = {0};
    cti_str *text = &document->text;
    if (format == CT_FILE_TEXT || (format == CT_FILE_PLUGIN && !corpus->records)) {
        own.n_invalid_utf8 = cti_text_add_repaired(text, data, size);
    } else if (corpus->records) {
        document->kind = CT_DOCUMENT_RECORD;
        if (cti_jsonl_text(data, size, NULL, text, &own, fault) == CT_BAD_NONE) {
            own.n_invalid_utf8 = cti_text_add_repaired(text, data, size);
        }
    } else {
        (void)cti_jsonl_text(data, size, corpus->text_field, text, &own, fault); /* in fault->bad */
    }
    if (fault->bad == CT_BAD_NONE && corpus->utf8 == CT_UTF8_BAD && own.n_invalid_utf8 + own.n_lone_surrogates > 0) {
        set_fault(fault, CT_BAD_UTF8, "%lld ill-formed part(s), %lld escaped surrogate(s) without the other half",
                  (long long)own.n_invalid_utf8, (long long)own.n_lone_surrogates);
        cti_str_reset(text);
    } else {
        repairs->n_invalid_utf8 += own.n_invalid_utf8;
        repairs->n_lone_surrogates += own.n_lone_surrogates;
    }
    return cti_str_check(text, err);
}

static ct_status read_text(ct_reader *reader, const cti_corpus_part *part, int64_t local, ct_document *document, ct_text_repairs *repairs,
                           cti_line_fault *fault, ct_err *err)
{
    const ct_corpus *corpus = reader->corpus;
    const int64_t offset = part->index.offsets[local];
    const size_t most = (size_t)corpus->max_document_bytes;
    const unsigned char *data;
    size_t size;
    bool is_long;
    cti_cursor *cursor;
    CT_TRY(cursor_at(reader, &part->source, offset, &cursor, err));
    if (part->format == CT_FILE_TEXT) {
        CT_TRY(cti_cursor_rest(cursor, offset, most, &data, &size, &is_long, err));
    } else {
        CT_TRY(cti_cursor_line(cursor, offset, span_of(part, local), most, &data, &size, &is_long, err));
    }
    if (is_long) {
        set_too_long(fault, corpus);
        return CT_OK;
    }
    return take_text(corpus, part->format, data, size, document, repairs, fault, err);
}

static ct_status read_dataset(ct_reader *reader, const cti_corpus_part *part, int64_t local, ct_document *document, ct_text_repairs *repairs,
                              cti_line_fault *fault, ct_err *err)
{
    bool is_long;
    cti_str_reset(&reader->bytes);
    CT_TRY(cti_dataset_read(part, local, (size_t)reader->corpus->max_document_bytes, &reader->bytes, &is_long, fault, err));
    if (is_long) {
        set_too_long(fault, reader->corpus);
    }
    if (fault->bad != CT_BAD_NONE) {
        return CT_OK;
    }
    return take_text(reader->corpus, part->format, (const unsigned char *)cti_str_text(&reader->bytes), reader->bytes.len, document, repairs, fault, err);
}

/* --- tokens --- */

static ct_status reserve_ids(ct_tokens *ids, int64_t n, ct_err *err)
{
    if (n > ids->cap) {
        int32_t *grown = ct_alloc_resize(ids->alloc, ids->ids, (size_t)n, sizeof *grown, err);
        if (grown == NULL) {
            return CT_ERR_MEMORY;
        }
        ids->ids = grown;
        ids->cap = n;
    }
    return CT_OK;
}

/* An element of a file of tokens; -1 where it is no id. */
static int32_t id_at(const cti_token_file *f, const unsigned char *p)
{
    uint16_t u16;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    switch (f->token_bytes) {
    case 1:
        return f->is_signed && p[0] > 127 ? -1 : p[0];
    case 2:
        memcpy(&u16, p, sizeof u16);
        memcpy(&i16, p, sizeof i16);
        return f->is_signed ? (i16 < 0 ? -1 : i16) : u16;
    case 4: /* also u32: what is above 2^31 is no id */
        memcpy(&i32, p, sizeof i32);
        return i32 < 0 ? -1 : i32;
    default:
        memcpy(&i64, p, sizeof i64);
        return i64 < 0 || i64 > INT32_MAX ? -1 : (int32_t)i64;
    }
}

/* Appends n tokens from a byte of the file. */
static ct_status add_ids(ct_reader *reader, const cti_corpus_part *part, int64_t at, int64_t n, ct_tokens *ids, cti_line_fault *fault,
                         ct_err *err)
{
    const cti_token_file *f = &part->tokens;
    const unsigned char *p;
    cti_cursor *cursor;
    int64_t bytes;
    if (!cti_mul_i64(n, f->token_bytes, &bytes) || bytes > reader->corpus->max_document_bytes - ids->n * f->token_bytes) {
        set_too_long(fault, reader->corpus);
        return CT_OK;
    }
    if (n == 0) {
        return CT_OK;
    }
    CT_TRY(cursor_at(reader, &part->source, at, &cursor, err));
    CT_TRY(cti_cursor_bytes(cursor, at, (size_t)bytes, &p, err));
    CT_TRY(reserve_ids(ids, ids->n + n, err));
    for (int64_t i = 0; i < n; i++, p += f->token_bytes) {
        ids->ids[ids->n] = id_at(f, p);
        if (ids->ids[ids->n] < 0 && fault->bad == CT_BAD_NONE) {
            set_fault(fault, CT_BAD_CONTENT, "token %lld is no id: it is below 0 or above %d", (long long)ids->n, INT32_MAX);
        }
        ids->n++;
    }
    return CT_OK;
}

/* Two neighbours of an array of int64 in a file. */
static ct_status read_pair(ct_reader *reader, const cti_source *source, int64_t at, int64_t out[2], ct_err *err)
{
    cti_cursor *cursor;
    const unsigned char *p;
    CT_TRY(cursor_at(reader, source, at, &cursor, err));
    CT_TRY(cti_cursor_bytes(cursor, at, 16, &p, err));
    memcpy(out, p, 16);
    return CT_OK;
}

static ct_status damaged_offsets(const cti_corpus_part *part, int64_t local, ct_err *err)
{
    return CT_FAIL(err, CT_ERR_DATA, "'%s' has changed while it is in use: document %lld lies outside of it now", part->path, (long long)local);
}

static ct_status read_megatron(ct_reader *reader, const cti_corpus_part *part, int64_t local, ct_tokens *ids, cti_line_fault *fault,
                               ct_err *err)
{
    const cti_token_file *f = &part->tokens;
    int64_t sequences[2];
    CT_TRY(read_pair(reader, &f->idx, f->documents_at + 8 * local, sequences, err));
    if (sequences[0] < 0 || sequences[0] > sequences[1] || sequences[1] > f->n_sequences) {
        return damaged_offsets(part, local, err);
    }
    for (int64_t s = sequences[0]; s < sequences[1] && fault->bad != CT_BAD_TOO_LONG; s++) {
        cti_cursor *cursor;
        const unsigned char *p;
        int32_t length;
        int64_t at;
        CT_TRY(cursor_at(reader, &f->idx, f->lengths_at + 4 * s, &cursor, err));
        CT_TRY(cti_cursor_bytes(cursor, f->lengths_at + 4 * s, sizeof length, &p, err));
        memcpy(&length, p, sizeof length);
        CT_TRY(cursor_at(reader, &f->idx, f->pointers_at + 8 * s, &cursor, err));
        CT_TRY(cti_cursor_bytes(cursor, f->pointers_at + 8 * s, sizeof at, &p, err));
        memcpy(&at, p, sizeof at);
        if (length < 0 || at < 0 || at > part->source.stamp.size_bytes || (int64_t)length * f->token_bytes > part->source.stamp.size_bytes - at) {
            return damaged_offsets(part, local, err);
        }
        CT_TRY(add_ids(reader, part, at, length, ids, fault, err));
    }
    return CT_OK;
}

static ct_status read_ids(ct_reader *reader, const cti_corpus_part *part, int64_t local, ct_tokens *ids, cti_line_fault *fault, ct_err *err)
{
    const cti_token_file *f = &part->tokens;
    int64_t range[2];
    if (part->format == CT_FILE_MEGATRON) {
        return read_megatron(reader, part, local, ids, fault, err);
    }
    if (part->format == CT_FILE_TOKENS) {
        CT_TRY(read_pair(reader, &part->source, f->offsets_at + 8 * local, range, err));
    } else {
        range[0] = part->index.offsets[local];
        range[1] = local + 1 < part->index.n ? part->index.offsets[local + 1] : f->n_tokens;
    }
    if (range[0] < 0 || range[0] > range[1] || range[1] > f->n_tokens) {
        return damaged_offsets(part, local, err);
    }
    return add_ids(reader, part, f->tokens_at + range[0] * f->token_bytes, range[1] - range[0], ids, fault, err);
}

ct_status cti_reader_read(ct_reader *reader, int64_t number, ct_document *document, ct_text_repairs *repairs,
                          cti_line_fault *fault, ct_err *err)
{
    const cti_corpus_part *part = cti_corpus_part_of(reader->corpus, number);
    const int64_t local = number - part->first;
    document->kind = CT_DOCUMENT_TEXT;
    document->ids.n = 0;
    *fault = (cti_line_fault){.bad = CT_BAD_NONE};
    cti_str_reset(&document->text);
    cti_str_add_n(&document->text, "", 0);
    if (part->dataset != NULL) {
        return read_dataset(reader, part, local, document, repairs, fault, err);
    }
    if (part->tokens.token_bytes > 0) {
        document->kind = CT_DOCUMENT_IDS;
        return read_ids(reader, part, local, &document->ids, fault, err);
    }
    if (part->index.damage[0] != '\0' && local == part->n - 1) {
        set_fault(fault, CT_BAD_DAMAGED, "%s", part->index.damage);
        return CT_OK;
    }
    return read_text(reader, part, local, document, repairs, fault, err);
}

ct_status cti_corpus_fail(const ct_corpus *corpus, int64_t number, const cti_line_fault *fault, ct_err *err)
{
    char place[CTI_PLACE_BYTES];
    ct_corpus_place(corpus, number, place, sizeof place);
    return fault->column > 0 ? CT_FAIL(err, CT_ERR_DATA, "%s: %s, at byte %zu: %s", place, ct_bad_words(fault->bad),
                                       fault->column, fault->detail)
                             : CT_FAIL(err, CT_ERR_DATA, "%s: %s: %s", place, ct_bad_words(fault->bad), fault->detail);
}

ct_status ct_reader_read(ct_reader *reader, int64_t number, ct_document *document, ct_bad *out_bad, ct_text_repairs *repairs,
                         ct_err *err)
{
    ct_text_repairs unused = {0};
    cti_line_fault fault = {.bad = CT_BAD_NONE};
    if (number < 0 || number >= reader->corpus->n_documents) {
        return CT_FAIL(err, CT_ERR_RANGE, "document %lld of %lld", (long long)number, (long long)reader->corpus->n_documents);
    }
    const ct_status st = cti_reader_read(reader, number, document, repairs != NULL ? repairs : &unused, &fault, err);
    if (out_bad != NULL) {
        *out_bad = fault.bad;
    }
    CT_TRY(st);
    return fault.bad == CT_BAD_NONE ? CT_OK : cti_corpus_fail(reader->corpus, number, &fault, err);
}

/* --- places --- */

/* Newlines before offset, from the nearest point on; -1 where the file cannot be read. */
static int64_t count_lines(const ct_corpus *corpus, const cti_source *source, int64_t offset)
{
    const cti_point *point = cti_source_point(source, offset);
    int64_t at = point != NULL ? point->out : 0;
    int64_t n = point != NULL ? point->line : 0;
    cti_cursor cursor;
    cti_cursor_init(&cursor, corpus->alloc);
    ct_status st = cti_cursor_open(&cursor, source, NULL, NULL);
    while (st == CT_OK && at < offset) {
        const unsigned char *p;
        const size_t size = (size_t)cti_min_i64(offset - at, 256 << 10);
        st = cti_cursor_bytes(&cursor, at, size, &p, NULL);
        for (size_t i = 0; st == CT_OK && i < size; i++) {
            n += p[i] == '\n';
        }
        at += (int64_t)size;
    }
    cti_cursor_deinit(&cursor);
    return st == CT_OK ? n : -1;
}

void ct_corpus_place(const ct_corpus *corpus, int64_t number, char *out, size_t size)
{
    const cti_corpus_part *part = cti_corpus_part_of(corpus, number);
    const int64_t local = number - part->first;
    if (part->format == CT_FILE_TEXT) {
        (void)snprintf(out, size, "'%s'", part->path);
        return;
    }
    const int64_t n = part->format == CT_FILE_JSONL ? count_lines(corpus, &part->source, part->index.offsets[local]) : -1;
    const bool is_open = (part->index.flags & CTI_FLAG_NO_NEWLINE) != 0 && local == part->n - 1 && part->index.damage[0] == '\0';
    if (n < 0) {
        (void)snprintf(out, size, "'%s' document %lld", part->path, (long long)local);
    } else {
        (void)snprintf(out, size, "'%s' line %lld%s", part->path, (long long)n + 1, is_open ? " (the last, without a newline)" : "");
    }
}
