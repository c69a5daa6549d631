/* SPDX-License-Identifier: Apache-2.0 */
/* A data file's contents, decompressed, from any offset: identity, decoders, cursors and the index of its documents.
 *
 *     cti_source    which file, and what it was when it was indexed        source.c
 *     cti_decoder   its contents in order, from a point of the index       decode.c
 *     cti_cursor    lines and blocks of the contents by offset             cursor.c
 *     cti_index     where documents begin, and the points                  index.c (built), index_cache.c (kept)
 *
 * Files are read with pread, never mapped: one that is cut while it is read is an error, not a signal. */
#ifndef CTI_DATA_SOURCE_H
#define CTI_DATA_SOURCE_H

#include <zlib.h>
#include <zstd.h>

#include "base/file.h"
#include "data/corpus.h"

/* --- source --- */

/* What a file was when it was indexed. */
typedef struct cti_stamp {
    int64_t size_bytes;
    int64_t mtime_ns;
    uint64_t fingerprint; /* XXH3-64 of the first and last 4 KiB, seeded with the size */
} cti_stamp;

/* A place in the contents where decoding can begin. Also the form on disk (docs/formats/data-index.md). */
typedef struct cti_point {
    int64_t out;          /* offset in the contents */
    int64_t in;           /* offset in the file */
    int64_t line;         /* newlines before it */
    int64_t window;       /* gzip: where its window begins in the index's windows */
    uint32_t window_size; /* compressed with zstd; 0: none */
    uint32_t bits;        /* gzip: bits of the byte before `in` that are still to be read, 0 to 7 */
} cti_point;

typedef struct cti_source {
    const char *path; /* borrows */
    ct_codec codec;
    cti_stamp stamp;
    const cti_point *points; /* borrows from the index; rising; the beginning is none of them */
    int64_t n_points;
    const unsigned char *windows; /* borrows */
    int64_t windows_size;
} cti_source;

/* Opens a regular file for reading: links that go in circles, folders, pipes, sockets and devices are refused by name. Caller closes. */
CT_MUST_CHECK ct_status cti_data_open(const char *path, int *out_fd, ct_err *err);
CT_MUST_CHECK ct_status cti_stamp_take(const char *path, int fd, cti_stamp *out_stamp, ct_err *err);
/* CT_ERR_DATA where the file is another one than the stamp's; a new time of change with the old contents is let through. */
CT_MUST_CHECK ct_status cti_source_check(const cti_source *source, int fd, ct_err *err);
/* cti_data_open and cti_source_check. */
CT_MUST_CHECK ct_status cti_source_open(const cti_source *source, int *out_fd, ct_err *err);
/* size bytes from offset, all of them. CT_ERR_DATA where the file is shorter than it was. */
CT_MUST_CHECK ct_status cti_source_read(const cti_source *source, int fd, int64_t offset, void *out, size_t size, ct_err *err);
/* The last point at or before offset; NULL: the beginning. */
const cti_point *cti_source_point(const cti_source *source, int64_t offset);

/* --- decoder --- */

enum { CTI_DAMAGE_BYTES = 160 };

/* Points and windows while they are gathered. */
typedef struct cti_points {
    const ct_alloc *alloc;
    cti_point *points; /* owns */
    int64_t n, cap;
    cti_str windows; /* owns; bytes */
    int64_t span;    /* bytes of contents between two points, at least */
} cti_points;
CT_MUST_CHECK ct_status cti_points_add(cti_points *points, const cti_point *point, const void *window, size_t window_size,
                                       ct_err *err);
void cti_points_deinit(cti_points *points);

typedef struct cti_decoder {
    const ct_alloc *alloc;
    const cti_source *source; /* borrows */
    int fd;                   /* borrows */
    cti_points *record;       /* borrows; NULL: points are not gathered */
    int64_t out;              /* contents given so far */
    int64_t in;               /* file offset behind the input buffer */
    unsigned char *input;     /* owns */
    size_t n_input, at_input;
    z_stream z;
    ZSTD_DCtx *zstd; /* owns */
    int state;
    unsigned trailer_left; /* gzip, raw: bytes of the member's trailer still to be passed over */
    bool has_z, is_raw, has_member;
    bool is_at_end;
    char damage[CTI_DAMAGE_BYTES]; /* "" or what is wrong with the compressed data; nothing comes behind it */
} cti_decoder;

CT_MUST_CHECK ct_status cti_decoder_init(cti_decoder *decoder, const ct_alloc *alloc, const cti_source *source, int fd,
                                         cti_points *record, ct_err *err);
void cti_decoder_deinit(cti_decoder *decoder);
/* From a point of the source on; NULL: from the beginning. */
CT_MUST_CHECK ct_status cti_decoder_seek(cti_decoder *decoder, const cti_point *point, ct_err *err);
/* Up to size bytes. 0 at the end of the contents and at damage (CT_OK: damage is not this function's failure). While points are
 * gathered a call ends where one was added. */
CT_MUST_CHECK ct_status cti_decoder_next(cti_decoder *decoder, unsigned char *out, size_t size, size_t *out_n, ct_err *err);

/* --- cursor --- */

/* A window of the contents that moves. One thread at a time. */
typedef struct cti_cursor {
    const ct_alloc *alloc;
    const cti_source *source; /* borrows; NULL: not open */
    int fd;                   /* owns */
    cti_decoder decoder;
    bool has_decoder;
    unsigned char *data; /* owns: contents [begin, begin + size) */
    int64_t begin;
    size_t size, cap;
    uint64_t used; /* the owner's, for what to give up */
} cti_cursor;

void cti_cursor_init(cti_cursor *cursor, const ct_alloc *alloc);
void cti_cursor_deinit(cti_cursor *cursor);
/* Goes over to another source, or stays; the contents are read when they are asked for. twin: a cursor that has the file open, whose
 * hold on it is shared, even where it is gone from its folder meanwhile; or NULL. */
CT_MUST_CHECK ct_status cti_cursor_open(cti_cursor *cursor, const cti_source *source, const cti_cursor *twin, ct_err *err);
/* Whether reading on at offset costs no more than going on from where it stands. */
bool cti_cursor_is_near(const cti_cursor *cursor, const cti_source *source, int64_t offset);
/* The line at offset, without its newline; borrowed until the next call. out_is_long: it has more than max_size bytes (then nothing
 * is given). `hint`: how many bytes are worth reading at once. */
CT_MUST_CHECK ct_status cti_cursor_line(cti_cursor *cursor, int64_t offset, size_t hint, size_t max_size,
                                        const unsigned char **out_line, size_t *out_size, bool *out_is_long, ct_err *err);
/* All from offset on; else as above. */
CT_MUST_CHECK ct_status cti_cursor_rest(cti_cursor *cursor, int64_t offset, size_t max_size, const unsigned char **out_data,
                                        size_t *out_size, bool *out_is_long, ct_err *err);
/* size bytes from offset on, all of them. */
CT_MUST_CHECK ct_status cti_cursor_bytes(cti_cursor *cursor, int64_t offset, size_t size, const unsigned char **out_data, ct_err *err);

/* --- index --- */

enum { CTI_FLAG_NO_NEWLINE = 1u << 0 }; /* the last line has none */

/* The documents of one file. */
typedef struct cti_index {
    const int64_t *offsets; /* [n] in bytes of the contents (llm.c: in tokens); rising */
    int64_t n;              /* one more than there are where the compressed data is damaged: the last stands for the rest */
    const cti_point *points;
    int64_t n_points;
    const unsigned char *windows;
    int64_t windows_size;
    int64_t size_bytes; /* of the contents */
    unsigned flags;
    char damage[CTI_DAMAGE_BYTES];
    int64_t *own_offsets; /* owns; NULL: of the map */
    cti_points own_points;
    cti_file_map map; /* owns; the cache's file */
} cti_index;

/* Reads all of the contents. format: CT_FILE_JSONL or CT_FILE_TEXT. */
CT_MUST_CHECK ct_status cti_index_build(const ct_alloc *alloc, const cti_source *source, ct_file_format format, cti_index *out_index,
                                        ct_err *err);
void cti_index_deinit(const ct_alloc *alloc, cti_index *index);

/* --- index cache (docs/formats/data-index.md) --- */

/* What must be equal for a kept index to be used: the file's path and stamp, and how it is read (format, codec; llm.c: the id at which
 * documents begin). */
typedef struct cti_index_key {
    const char *path; /* absolute */
    cti_stamp stamp;
    uint32_t format, codec;
    int64_t detail;
} cti_index_key;

/* The file's name below the cache folder. Caller frees. */
CT_MUST_CHECK ct_status cti_index_cache_path(const ct_alloc *alloc, const char *folder, const cti_index_key *key, char **out_path,
                                             ct_err *err);
/* CT_ERR_NOT_FOUND: none is kept; CT_ERR_DATA: it is of another file or time; CT_ERR_FORMAT: it is damaged or of another version. */
CT_MUST_CHECK ct_status cti_index_load(const char *cache_path, const cti_index_key *key, cti_index *out_index, ct_err *err);
CT_MUST_CHECK ct_status cti_index_store(const ct_alloc *alloc, const char *cache_path, const cti_index_key *key, const cti_index *index,
                                        ct_err *err);

#endif
