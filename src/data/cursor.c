/* SPDX-License-Identifier: Apache-2.0 */
/* Lines and blocks of a file's contents by offset, through a window that moves. */
#include <fcntl.h>
#include <unistd.h>

#include "base/num.h"
#include "data/source.h"

enum {
    READ_BYTES = 256 << 10,   /* at once, where reading goes on */
    LEAST_BYTES = 4 << 10,    /* at once, after a jump */
    NEAR_BYTES = 1 << 20,     /* decoding this far ahead is cheaper than a point */
    LARGE_BYTES = 4 << 20     /* a window that was made for one large document is given back */
};

void cti_cursor_init(cti_cursor *c, const ct_alloc *alloc)
{
    *c = (cti_cursor){.alloc = alloc, .fd = -1};
}

static void close_source(cti_cursor *c)
{
    if (c->has_decoder) {
        cti_decoder_deinit(&c->decoder);
    }
    if (c->fd >= 0) {
        (void)close(c->fd); /* nothing was written */
    }
    c->has_decoder = false;
    c->fd = -1;
    c->source = NULL;
    c->begin = 0;
    c->size = 0;
}

void cti_cursor_deinit(cti_cursor *c)
{
    if (c->alloc != NULL) {
        close_source(c);
        ct_alloc_free(c->alloc, c->data);
        c->data = NULL;
    }
}

ct_status cti_cursor_open(cti_cursor *c, const cti_source *source, const cti_cursor *twin, ct_err *err)
{
    if (c->source == source) {
        return CT_OK;
    }
    close_source(c);
    c->fd = twin != NULL ? fcntl(twin->fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (c->fd < 0) {
        CT_TRY(cti_source_open(source, &c->fd, err));
    }
    if (source->codec != CT_CODEC_NONE) {
        const ct_status st = cti_decoder_init(&c->decoder, c->alloc, source, c->fd, NULL, err);
        c->has_decoder = true;
        if (st != CT_OK) {
            close_source(c);
            return st;
        }
    }
    c->source = source;
    return CT_OK;
}

bool cti_cursor_is_near(const cti_cursor *c, const cti_source *source, int64_t offset)
{
    return c->source == source && offset >= c->begin && offset - (c->begin + (int64_t)c->size) <= (c->has_decoder ? NEAR_BYTES : 0);
}

static bool is_at_end(const cti_cursor *c)
{
    return c->has_decoder ? c->decoder.is_at_end || c->decoder.damage[0] != '\0'
                          : c->begin + (int64_t)c->size >= c->source->stamp.size_bytes;
}

static ct_status reserve(cti_cursor *c, size_t cap, ct_err *err)
{
    if (cap <= c->cap && (c->cap <= LARGE_BYTES || cap > LARGE_BYTES / 4)) {
        return CT_OK;
    }
    const size_t grown = cap > c->cap && cap < 2 * c->cap ? 2 * c->cap : cap;
    unsigned char *data = ct_alloc_resize(c->alloc, c->data, grown, 1, err);
    if (data == NULL) {
        return CT_ERR_MEMORY;
    }
    c->data = data;
    c->cap = grown;
    return CT_OK;
}

/* Reads on behind the window, forgetting what lies before `keep`. */
static ct_status more(cti_cursor *c, int64_t keep, size_t want, ct_err *err)
{
    const size_t n_gone = (size_t)(cti_min_i64(keep, c->begin + (int64_t)c->size) - c->begin);
    if (n_gone > 0) {
        memmove(c->data, c->data + n_gone, c->size - n_gone);
        c->begin += (int64_t)n_gone;
        c->size -= n_gone;
    }
    CT_TRY(reserve(c, c->size + want, err));
    size_t n = 0;
    if (c->has_decoder) {
        CT_TRY(cti_decoder_next(&c->decoder, c->data + c->size, want, &n, err));
    } else {
        const int64_t at = c->begin + (int64_t)c->size;
        n = (size_t)cti_min_i64((int64_t)want, cti_max_i64(c->source->stamp.size_bytes - at, 0));
        CT_TRY(cti_source_check(c->source, c->fd, err));
        CT_TRY(cti_source_read(c->source, c->fd, at, c->data + c->size, n, err));
    }
    c->size += n;
    return CT_OK;
}

/* Brings the window to where offset is in it or at its end. out_has_jumped: it was elsewhere. */
static ct_status go_to(cti_cursor *c, int64_t offset, bool *out_has_jumped, ct_err *err)
{
    const int64_t end = c->begin + (int64_t)c->size;
    *out_has_jumped = offset < c->begin || offset > end;
    if (!*out_has_jumped) {
        return CT_OK;
    }
    if (!c->has_decoder) {
        c->begin = offset;
        c->size = 0;
        return CT_OK;
    }
    const cti_point *point = cti_source_point(c->source, offset);
    if (offset < c->begin || (point != NULL && point->out > end)) {
        c->size = 0;
        c->begin = point != NULL ? point->out : 0;
        CT_TRY(cti_decoder_seek(&c->decoder, point, err));
    }
    while (c->begin + (int64_t)c->size < offset && !is_at_end(c)) {
        const int64_t left = offset - c->begin - (int64_t)c->size;
        CT_TRY(more(c, offset, (size_t)cti_min_i64(left, READ_BYTES), err));
    }
    if (c->begin + (int64_t)c->size < offset) {
        return CT_FAIL(err, CT_ERR_DATA, "'%s': its contents end at byte %lld, byte %lld is wanted%s%s", c->source->path,
                       (long long)(c->begin + (int64_t)c->size), (long long)offset, c->decoder.damage[0] != '\0' ? ": " : "",
                       c->decoder.damage);
    }
    return CT_OK;
}

/* The bytes from offset to `stop` (-1: the end). */
static ct_status take(cti_cursor *c, int64_t offset, int stop, size_t hint, size_t max_size, const unsigned char **out_data,
                      size_t *out_size, bool *out_is_long, ct_err *err)
{
    bool has_jumped;
    size_t n_seen = 0;
    *out_is_long = false;
    CT_TRY(go_to(c, offset, &has_jumped, err));
    size_t want = has_jumped ? (size_t)cti_min_i64(cti_max_i64((int64_t)hint, LEAST_BYTES), READ_BYTES) : READ_BYTES;
    for (;;) {
        const size_t at = (size_t)(offset - c->begin);
        const unsigned char *p = c->data != NULL ? c->data + at : (const unsigned char *)"";
        const size_t n = c->size - at;
        const unsigned char *found = stop >= 0 && n > n_seen ? memchr(p + n_seen, stop, n - n_seen) : NULL;
        const size_t size = found != NULL ? (size_t)(found - p) : n;
        if (size > max_size) {
            *out_is_long = true;
            *out_size = 0;
            *out_data = p;
            return CT_OK;
        }
        if (found != NULL || is_at_end(c)) {
            *out_data = p;
            *out_size = size;
            return CT_OK;
        }
        n_seen = n;
        CT_TRY(more(c, offset, want, err));
        want = READ_BYTES;
    }
}

ct_status cti_cursor_line(cti_cursor *c, int64_t offset, size_t hint, size_t max_size, const unsigned char **out_line,
                          size_t *out_size, bool *out_is_long, ct_err *err)
{
    return take(c, offset, '\n', hint, max_size, out_line, out_size, out_is_long, err);
}

ct_status cti_cursor_rest(cti_cursor *c, int64_t offset, size_t max_size, const unsigned char **out_data, size_t *out_size,
                          bool *out_is_long, ct_err *err)
{
    return take(c, offset, -1, READ_BYTES, max_size, out_data, out_size, out_is_long, err);
}

ct_status cti_cursor_bytes(cti_cursor *c, int64_t offset, size_t size, const unsigned char **out_data, ct_err *err)
{
    bool has_jumped;
    CT_TRY(go_to(c, offset, &has_jumped, err));
    size_t want = has_jumped ? (size_t)cti_max_i64((int64_t)size, LEAST_BYTES) : READ_BYTES;
    while (c->begin + (int64_t)c->size < offset + (int64_t)size) {
        if (is_at_end(c)) {
            return CT_FAIL(err, CT_ERR_DATA, "'%s': its contents end at byte %lld, %zu bytes at %lld are wanted", c->source->path,
                           (long long)(c->begin + (int64_t)c->size), size, (long long)offset);
        }
        CT_TRY(more(c, offset, want, err));
        want = READ_BYTES;
    }
    *out_data = size > 0 ? c->data + (offset - c->begin) : (const unsigned char *)"";
    return CT_OK;
}
