/* SPDX-License-Identifier: Apache-2.0 */
/* Plain, gzip (RFC 1952) and zstd (RFC 8878) files to their contents, in order, from the beginning or a point.
 *
 * A gzip point stands at the border of two deflate blocks (RFC 1951): decoding goes on there with the 32 KiB of contents before
 * it as dictionary and the bits left of the byte before it. The check sums of a member are compared when it is read whole, which
 * is when the index is built. A zstd point stands where a frame begins. */
#include "data/source.h"

enum { INPUT_BYTES = 128 << 10, GZIP_WINDOW_BYTES = 32768, GZIP_TRAILER_BYTES = 8, GZIP_BITS = 15 + 16, RAW_BITS = -15 };

/* Where a decoder stands: before a member or frame, in one, or behind the last one. */
enum { BEFORE, INSIDE, TRAILER, FINISHED };

ct_status cti_points_add(cti_points *points, const cti_point *point, const void *window, size_t window_size, ct_err *err)
{
    if (points->n == points->cap) {
        const int64_t cap = points->cap == 0 ? 64 : 2 * points->cap;
        cti_point *grown = ct_alloc_resize(points->alloc, points->points, (size_t)cap, sizeof *grown, err);
        if (grown == NULL) {
            return CT_ERR_MEMORY;
        }
        points->points = grown;
        points->cap = cap;
    }
    cti_point *p = &points->points[points->n];
    *p = *point;
    p->window = (int64_t)points->windows.len;
    p->window_size = 0;
    if (window_size > 0) {
        const size_t bound = ZSTD_compressBound(window_size);
        if (!cti_str_reserve(&points->windows, bound)) {
            return cti_str_check(&points->windows, err);
        }
        const size_t n = ZSTD_compress(points->windows.data + points->windows.len, bound, window, window_size, 1);
        if (ZSTD_isError(n)) {
            return CT_FAIL(err, CT_ERR_MEMORY, "a window of %zu bytes cannot be compressed: %s", window_size, ZSTD_getErrorName(n));
        }
        points->windows.len += n;
        p->window_size = (uint32_t)n;
    }
    points->n++;
    return CT_OK;
}

void cti_points_deinit(cti_points *points)
{
    ct_alloc_free(points->alloc, points->points);
    cti_str_deinit(&points->windows);
    points->points = NULL;
    points->n = points->cap = 0;
}

static void damaged(cti_decoder *d, const char *what)
{
    (void)snprintf(d->damage, sizeof d->damage, "%s", what);
}

/* Bytes of the file not yet consumed lie before this offset. */
static int64_t consumed(const cti_decoder *d)
{
    return d->in - (int64_t)(d->n_input - d->at_input);
}

/* More input where there is none; n_input == at_input afterwards: the file is at its end. */
static ct_status fill_input(cti_decoder *d, ct_err *err)
{
    if (d->at_input < d->n_input) {
        return CT_OK;
    }
    const int64_t left = d->source->stamp.size_bytes - d->in;
    const size_t n = left > INPUT_BYTES ? INPUT_BYTES : (size_t)left;
    d->at_input = d->n_input = 0;
    CT_TRY(cti_source_check(d->source, d->fd, err));
    CT_TRY(cti_source_read(d->source, d->fd, d->in, d->input, n, err));
    d->n_input = n;
    d->in += (int64_t)n;
    return CT_OK;
}

ct_status cti_decoder_init(cti_decoder *d, const ct_alloc *alloc, const cti_source *source, int fd, cti_points *record, ct_err *err)
{
    *d = (cti_decoder){.alloc = alloc, .source = source, .fd = fd, .record = record};
    if (source->codec == CT_CODEC_NONE) {
        return CT_OK;
    }
    d->input = ct_alloc_resize(alloc, NULL, INPUT_BYTES, 1, err);
    if (d->input == NULL) {
        return CT_ERR_MEMORY;
    }
    if (source->codec == CT_CODEC_GZIP) {
        d->has_z = inflateInit2(&d->z, GZIP_BITS) == Z_OK;
    } else {
        d->zstd = ZSTD_createDCtx();
    }
    if (!d->has_z && d->zstd == NULL) {
        return CT_FAIL(err, CT_ERR_MEMORY, "no memory to decompress '%s'", source->path);
    }
    return CT_OK;
}

void cti_decoder_deinit(cti_decoder *d)
{
    if (d->has_z) {
        (void)inflateEnd(&d->z); /* fails only on a stream that was never made */
    }
    (void)ZSTD_freeDCtx(d->zstd); /* takes NULL */
    ct_alloc_free(d->alloc, d->input);
    d->has_z = false;
    d->zstd = NULL;
    d->input = NULL;
}

static ct_status bad_point(const cti_decoder *d, const char *what, ct_err *err)
{
    return CT_FAIL(err, CT_ERR_DATA, "the index kept of '%s' is wrong (%s): remove it, it is built again", d->source->path, what);
}

/* Sets inflate up to go on within a member. */
static ct_status seek_gzip(cti_decoder *d, const cti_point *point, ct_err *err)
{
    unsigned char window[GZIP_WINDOW_BYTES];
    unsigned char before = 0;
    size_t n = 0;
    if (point->bits > 7 || point->in <= 0 || point->window < 0 || point->window > d->source->windows_size ||
        (int64_t)point->window_size > d->source->windows_size - point->window) {
        return bad_point(d, "a point out of range", err);
    }
    if (point->window_size > 0) {
        n = ZSTD_decompress(window, sizeof window, d->source->windows + point->window, point->window_size);
        if (ZSTD_isError(n)) {
            return bad_point(d, "a window cannot be decompressed", err);
        }
    }
    if (inflateReset2(&d->z, RAW_BITS) != Z_OK) {
        return CT_FAIL(err, CT_ERR_MEMORY, "no memory to decompress '%s'", d->source->path);
    }
    if (point->bits > 0) {
        CT_TRY(cti_source_read(d->source, d->fd, point->in - 1, &before, 1, err));
        (void)inflatePrime(&d->z, (int)point->bits, before >> (8 - point->bits)); /* 0 to 7 bits always fit */
    }
    if (n > 0 && inflateSetDictionary(&d->z, window, (uInt)n) != Z_OK) {
        return bad_point(d, "a window is not taken", err);
    }
    d->is_raw = true;
    d->state = INSIDE;
    return CT_OK;
}

ct_status cti_decoder_seek(cti_decoder *d, const cti_point *point, ct_err *err)
{
    const int64_t in = point != NULL ? point->in : 0;
    if (in < 0 || in > d->source->stamp.size_bytes) {
        return bad_point(d, "a point behind the end", err);
    }
    d->in = in;
    d->out = point != NULL ? point->out : 0;
    d->n_input = d->at_input = 0;
    d->state = BEFORE;
    d->is_raw = d->is_at_end = false;
    d->has_member = point != NULL;
    d->damage[0] = '\0';
    if (d->zstd != NULL) {
        (void)ZSTD_DCtx_reset(d->zstd, ZSTD_reset_session_only); /* cannot fail for the session */
    }
    return d->has_z && point != NULL ? seek_gzip(d, point, err) : CT_OK;
}

/* Adds a point here where the last one is far enough behind. */
static ct_status record_point(cti_decoder *d, unsigned bits, bool *out_added, ct_err *err)
{
    unsigned char window[GZIP_WINDOW_BYTES];
    uInt n = 0;
    cti_points *r = d->record;
    *out_added = false;
    if (r == NULL || d->out - (r->n > 0 ? r->points[r->n - 1].out : 0) < r->span) {
        return CT_OK;
    }
    if (d->has_z && inflateGetDictionary(&d->z, window, &n) != Z_OK) {
        return CT_OK; /* no point then */
    }
    *out_added = true;
    return cti_points_add(r, &(cti_point){.out = d->out, .in = consumed(d), .bits = bits}, window, n, err);
}

/* At the border of members: begins the next one, or ends. Zeros behind the last one are filling, as gzip takes them. */
static ct_status begin_member(cti_decoder *d, ct_err *err)
{
    char what[CTI_DAMAGE_BYTES];
    int64_t n_zeros = 0;
    for (;;) {
        CT_TRY(fill_input(d, err));
        if (d->at_input == d->n_input) {
            d->is_at_end = true;
            if (!d->has_member) {
                damaged(d, "gzip data is wanted, the file is empty");
            }
            return CT_OK;
        }
        if (!d->has_member || d->input[d->at_input] != 0) {
            break;
        }
        d->at_input++;
        n_zeros++;
    }
    if (d->input[d->at_input] != 0x1f || n_zeros > 0) {
        const int64_t at = consumed(d);
        (void)snprintf(what, sizeof what, "%lld bytes that are no gzip data stand at byte %lld",
                       (long long)(d->source->stamp.size_bytes - at), (long long)at);
        damaged(d, what);
        return CT_OK;
    }
    if (inflateReset2(&d->z, GZIP_BITS) != Z_OK) {
        return CT_FAIL(err, CT_ERR_MEMORY, "no memory to decompress '%s'", d->source->path);
    }
    d->is_raw = false;
    d->state = INSIDE;
    return CT_OK;
}

static ct_status skip_trailer(cti_decoder *d, ct_err *err)
{
    while (d->trailer_left > 0) {
        CT_TRY(fill_input(d, err));
        if (d->at_input == d->n_input) {
            damaged(d, "gzip data is cut off in a member's check sum");
            return CT_OK;
        }
        d->at_input++;
        d->trailer_left--;
    }
    d->state = BEFORE;
    return CT_OK;
}

/* One call of inflate. */
static ct_status inflate_some(cti_decoder *d, unsigned char *out, size_t size, size_t *n, bool *out_stop, ct_err *err)
{
    char what[CTI_DAMAGE_BYTES];
    CT_TRY(fill_input(d, err));
    if (d->at_input == d->n_input) {
        (void)snprintf(what, sizeof what, "gzip data is cut off: the file ends at byte %lld within a member", (long long)d->in);
        damaged(d, what);
        return CT_OK;
    }
    const size_t room = size - *n > ((size_t)1 << 30) ? (size_t)1 << 30 : size - *n;
    d->z.next_in = d->input + d->at_input;
    d->z.avail_in = (uInt)(d->n_input - d->at_input);
    d->z.next_out = out + *n;
    d->z.avail_out = (uInt)room;
    const int rc = inflate(&d->z, d->record != NULL ? Z_BLOCK : Z_NO_FLUSH);
    d->at_input = d->n_input - d->z.avail_in;
    *n += room - d->z.avail_out;
    d->out += (int64_t)(room - d->z.avail_out);
    if (rc == Z_MEM_ERROR) {
        return CT_FAIL(err, CT_ERR_MEMORY, "no memory to decompress '%s'", d->source->path);
    }
    if (rc == Z_STREAM_END) {
        d->state = d->is_raw ? TRAILER : BEFORE;
        d->trailer_left = d->is_raw ? GZIP_TRAILER_BYTES : 0;
        d->has_member = true;
    } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
        (void)snprintf(what, sizeof what, "gzip data is damaged before byte %lld: %.60s", (long long)consumed(d),
                       d->z.msg != NULL ? d->z.msg : "a dictionary is wanted");
        damaged(d, what);
    } else if ((d->z.data_type & 128) != 0 && (d->z.data_type & 64) == 0) {
        return record_point(d, (unsigned)d->z.data_type & 7u, out_stop, err);
    }
    return CT_OK;
}

static ct_status next_gzip(cti_decoder *d, unsigned char *out, size_t size, size_t *n, ct_err *err)
{
    bool stop = false;
    while (*n < size && !stop && !d->is_at_end && d->damage[0] == '\0') {
        if (d->state == BEFORE) {
            CT_TRY(begin_member(d, err));
        } else if (d->state == TRAILER) {
            CT_TRY(skip_trailer(d, err));
        } else {
            CT_TRY(inflate_some(d, out, size, n, &stop, err));
        }
    }
    return CT_OK;
}

static ct_status next_zstd(cti_decoder *d, unsigned char *out, size_t size, size_t *n, ct_err *err)
{
    char what[CTI_DAMAGE_BYTES];
    bool stop = false;
    while (*n < size && !stop && !d->is_at_end && d->damage[0] == '\0') {
        CT_TRY(fill_input(d, err));
        const bool is_end = d->at_input == d->n_input;
        if (is_end && d->state == BEFORE) {
            d->is_at_end = true;
            if (!d->has_member) {
                damaged(d, "zstd data is wanted, the file is empty");
            }
            return CT_OK;
        }
        ZSTD_inBuffer in = {.src = d->input, .size = d->n_input, .pos = d->at_input};
        ZSTD_outBuffer to = {.dst = out, .size = size, .pos = *n};
        const size_t left = ZSTD_decompressStream(d->zstd, &to, &in);
        const bool has_moved = in.pos > d->at_input || to.pos > *n;
        d->out += (int64_t)(to.pos - *n);
        d->at_input = in.pos;
        *n = to.pos;
        if (ZSTD_isError(left)) {
            (void)snprintf(what, sizeof what, "zstd data is %s before byte %lld: %.80s", d->state == BEFORE ? "wanted" : "damaged",
                           (long long)consumed(d), ZSTD_getErrorName(left));
            damaged(d, what);
        } else if (left == 0) {
            d->state = BEFORE;
            d->has_member = true;
            CT_TRY(record_point(d, 0, &stop, err));
        } else if (is_end && !has_moved) {
            (void)snprintf(what, sizeof what, "zstd data is cut off: the file ends at byte %lld within a frame", (long long)d->in);
            damaged(d, what);
        } else {
            d->state = INSIDE;
        }
    }
    return CT_OK;
}

ct_status cti_decoder_next(cti_decoder *d, unsigned char *out, size_t size, size_t *out_n, ct_err *err)
{
    size_t n = 0;
    switch (d->source->codec) {
    case CT_CODEC_GZIP:
        CT_TRY(next_gzip(d, out, size, &n, err));
        break;
    case CT_CODEC_ZSTD:
        CT_TRY(next_zstd(d, out, size, &n, err));
        break;
    case CT_CODEC_NONE: {
        const int64_t left = d->source->stamp.size_bytes - d->out;
        n = left > (int64_t)size ? size : left > 0 ? (size_t)left : 0;
        CT_TRY(cti_source_check(d->source, d->fd, err));
        CT_TRY(cti_source_read(d->source, d->fd, d->out, out, n, err));
        d->out += (int64_t)n;
        d->is_at_end = d->out == d->source->stamp.size_bytes;
        break;
    }
    case CT_CODEC_COUNT:
        break;
    }
    *out_n = n;
    return CT_OK;
}
