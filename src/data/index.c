/* SPDX-License-Identifier: Apache-2.0 */
/* Where the documents of a file begin: one pass over its contents. */
#include <unistd.h>

#include "base/num.h"
#include "data/data_internal.h"

enum {
    CHUNK_BYTES = 1 << 20,
    PLAIN_SPAN_BYTES = 16 << 20,
    LEAST_SPAN_BYTES = 64 << 10, /* compressed: between two points, at least and at most */
    MOST_SPAN_BYTES = 512 << 10,
    SPAN_DOCUMENTS = 256 /* and as many documents of the usual size */
};

typedef struct pass {
    const ct_alloc *alloc;
    ct_file_format format;
    int64_t *offsets; /* owns */
    int64_t n, cap;
    int64_t at;         /* contents seen */
    int64_t line_start; /* of the line that is open */
    int64_t n_lines;    /* newlines seen */
    bool is_blank;      /* the open line, so far */
} pass;

static ct_status add(pass *p, int64_t offset, ct_err *err)
{
    if (p->n == p->cap) {
        const int64_t cap = p->cap == 0 ? 1024 : p->cap + p->cap / 2;
        int64_t *offsets = ct_alloc_resize(p->alloc, p->offsets, (size_t)cap, sizeof *offsets, err);
        if (offsets == NULL) {
            return CT_ERR_MEMORY;
        }
        p->offsets = offsets;
        p->cap = cap;
    }
    p->offsets[p->n++] = offset;
    return CT_OK;
}

static bool are_blank(const unsigned char *p, const unsigned char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n')) {
        p++;
    }
    return p == end;
}

static ct_status see(pass *s, const unsigned char *data, size_t size, ct_err *err)
{
    const unsigned char *p = data;
    const unsigned char *end = data + size;
    while (p < end) {
        const unsigned char *newline = memchr(p, '\n', (size_t)(end - p));
        const unsigned char *stop = newline != NULL ? newline : end;
        s->is_blank = s->is_blank && are_blank(p, stop);
        if (newline == NULL) {
            break;
        }
        s->n_lines++;
        p = newline + 1;
        if (s->format == CT_FILE_JSONL) {
            if (!s->is_blank) {
                CT_TRY(add(s, s->line_start, err));
            }
            s->line_start = s->at + (p - data);
            s->is_blank = true;
        }
    }
    s->at += (int64_t)size;
    return CT_OK;
}

/* Reading a document from the middle decompresses half the way between two points, which many short documents would pay for dearly;
 * a point costs some 12 KiB. */
static int64_t packed_span(const pass *s)
{
    const int64_t usual = s->at / cti_max_i64(s->n, 1);
    return cti_min_i64(cti_max_i64(cti_min_i64(usual, MOST_SPAN_BYTES) * SPAN_DOCUMENTS, LEAST_SPAN_BYTES), MOST_SPAN_BYTES);
}

/* All of the contents through `see`. */
static ct_status run(pass *s, cti_decoder *d, cti_points *points, unsigned char *chunk, ct_err *err)
{
    size_t n_held = 0;
    bool is_first = true;
    for (;;) {
        size_t n = 0;
        const int64_t n_points = points->n;
        CT_TRY(cti_decoder_next(d, chunk + n_held, CHUNK_BYTES - n_held, &n, err));
        n_held += n;
        if (is_first && n > 0 && n_held < 3) {
            continue; /* a byte order mark has three bytes */
        }
        const size_t bom = is_first ? cti_bom_bytes(chunk, n_held) : 0;
        is_first = false;
        if (bom > 0) {
            s->at = s->line_start = (int64_t)bom;
        }
        CT_TRY(see(s, chunk + bom, n_held - bom, err));
        n_held = 0;
        points->span = d->source->codec == CT_CODEC_NONE ? PLAIN_SPAN_BYTES : packed_span(s);
        if (points->n > n_points) {
            points->points[points->n - 1].line = s->n_lines;
        } else if (d->source->codec == CT_CODEC_NONE && s->at - (points->n > 0 ? points->points[points->n - 1].out : 0) >= points->span) {
            CT_TRY(cti_points_add(points, &(cti_point){.out = s->at, .in = s->at, .line = s->n_lines}, NULL, 0, err));
        }
        if (n == 0) {
            return CT_OK;
        }
    }
}

ct_status cti_index_build(const ct_alloc *alloc, const cti_source *source, ct_file_format format, cti_index *out, ct_err *err)
{
    pass s = {.alloc = alloc, .format = format, .is_blank = true};
    cti_points points = {.alloc = alloc, .windows = {.alloc = alloc}, .span = MOST_SPAN_BYTES};
    cti_decoder d = {.alloc = alloc};
    unsigned char *chunk = NULL;
    int fd = -1;
    ct_status st;
    *out = (cti_index){0};
    CT_TRY_GOTO(st, cti_source_open(source, &fd, err), out);
    CT_TRY_GOTO(st, cti_decoder_init(&d, alloc, source, fd, &points, err), out);
    CT_TRY_GOTO(st, cti_decoder_seek(&d, NULL, err), out);
    chunk = ct_alloc_resize(alloc, NULL, CHUNK_BYTES, 1, err);
    CT_TRY_GOTO(st, chunk != NULL ? CT_OK : CT_ERR_MEMORY, out);
    CT_TRY_GOTO(st, run(&s, &d, &points, chunk, err), out);
    if (!s.is_blank || d.damage[0] != '\0') {
        CT_TRY_GOTO(st, add(&s, s.line_start, err), out);
    }
    out->flags = s.is_blank || format != CT_FILE_JSONL ? 0 : CTI_FLAG_NO_NEWLINE;
    memcpy(out->damage, d.damage, sizeof out->damage);
    out->size_bytes = s.at;
    out->offsets = out->own_offsets = s.offsets;
    out->n = s.n;
    out->own_points = points;
    out->points = points.points;
    out->n_points = points.n;
    out->windows = (const unsigned char *)cti_str_text(&points.windows);
    out->windows_size = (int64_t)points.windows.len;
out:
    ct_alloc_free(alloc, chunk);
    cti_decoder_deinit(&d);
    if (fd >= 0) {
        (void)close(fd); /* nothing was written */
    }
    if (st != CT_OK) {
        ct_alloc_free(alloc, s.offsets);
        cti_points_deinit(&points);
    }
    return st;
}

void cti_index_deinit(const ct_alloc *alloc, cti_index *index)
{
    ct_alloc_free(alloc, index->own_offsets);
    if (index->own_points.alloc != NULL) {
        cti_points_deinit(&index->own_points);
    }
    cti_file_map_close(&index->map);
    *index = (cti_index){0};
}
