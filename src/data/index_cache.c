/* SPDX-License-Identifier: Apache-2.0 */
/* Indexes kept between runs (docs/formats/data-index.md). A kept index is never trusted: it is used where its check sum, its key and its
 * numbers are right, else it is built again. */
#include "base/hash.h"
#include "base/num.h"
#include "data/output.h"
#include "data/source.h"

enum { VERSION = 1, HEADER_BYTES = 272, MAX_PATH_BYTES = 1 << 16 };
static const unsigned char magic[8] = {'C', 'T', 'I', 'D', 'X', '\r', '\n', 0x1a};

/* The file's first bytes; little-endian, as every machine this runs on. */
typedef struct header {
    unsigned char magic[8];
    uint32_t version, header_bytes;
    uint64_t check_sum; /* of all behind it */
    int64_t file_bytes; /* of this file */
    int64_t size_bytes, mtime_ns;
    uint64_t fingerprint;
    uint32_t format, codec;
    int64_t detail;
    int64_t n_documents, n_points, windows_bytes, contents_bytes;
    uint32_t flags, path_bytes;
    char damage[CTI_DAMAGE_BYTES];
} header;
_Static_assert(sizeof(header) == HEADER_BYTES, "the header's form on disk");
_Static_assert(sizeof(cti_point) == 40, "a point's form on disk");
enum { SUMMED_FROM = 24 }; /* behind check_sum */

static size_t padded(size_t n)
{
    return (n + 7) / 8 * 8;
}

/* The parts of the file behind the header, in order. */
typedef struct layout {
    size_t path, offsets, points, windows, end;
} layout;

/* False where the numbers do not fit a file. */
static bool lay_out(const header *h, layout *out)
{
    int64_t offsets, points, end;
    if (h->path_bytes == 0 || h->path_bytes > MAX_PATH_BYTES || h->n_documents < 0 || h->n_points < 0 || h->windows_bytes < 0 ||
        !cti_mul_i64(h->n_documents, 8, &offsets) || !cti_mul_i64(h->n_points, (int64_t)sizeof(cti_point), &points) ||
        !cti_add_i64(offsets, points, &end) || !cti_add_i64(end, h->windows_bytes, &end) ||
        !cti_add_i64(end, (int64_t)(HEADER_BYTES + padded(h->path_bytes)), &end)) {
        return false;
    }
    out->path = HEADER_BYTES;
    out->offsets = HEADER_BYTES + padded(h->path_bytes);
    out->points = out->offsets + (size_t)offsets;
    out->windows = out->points + (size_t)points;
    out->end = (size_t)end;
    return true;
}

ct_status cti_index_cache_path(const ct_alloc *alloc, const char *folder, const cti_index_key *key, char **out_path, ct_err *err)
{
    char hex[33], name[64];
    cti_hash128_hex(key->path, strlen(key->path), hex);
    (void)snprintf(name, sizeof name, "index/%s-%u.ctidx", hex, key->format); /* fits */
    *out_path = cti_path_join(alloc, folder, name, err);
    return *out_path != NULL ? CT_OK : CT_ERR_MEMORY;
}

static uint64_t sum_of(const header *h, const void *const *parts, const size_t *sizes, size_t n_parts)
{
    uint64_t sum = cti_hash64((const unsigned char *)h + SUMMED_FROM, HEADER_BYTES - SUMMED_FROM, VERSION);
    for (size_t i = 0; i < n_parts; i++) {
        sum = cti_hash64(parts[i], sizes[i], sum);
    }
    return sum;
}

static ct_status damaged(const char *path, const char *what, ct_err *err)
{
    return CT_FAIL(err, CT_ERR_FORMAT, "the kept index '%s' %s", path, what);
}

/* Offsets and points rise and lie within the contents and the file. */
static bool are_in_order(const header *h, const int64_t *offsets, const cti_point *points)
{
    int64_t last = -1;
    for (int64_t i = 0; i < h->n_documents; i++) {
        if (offsets[i] <= last) {
            return false;
        }
        last = offsets[i];
    }
    bool is_right = last <= h->contents_bytes;
    int64_t out = 0, in = 0;
    for (int64_t i = 0; is_right && i < h->n_points; i++) {
        const cti_point *p = &points[i];
        is_right = p->out > out && p->out <= h->contents_bytes && p->in >= in && p->in <= h->size_bytes && p->line >= 0 && p->bits <= 7 &&
                   p->window >= 0 && p->window <= h->windows_bytes && (int64_t)p->window_size <= h->windows_bytes - p->window;
        out = p->out;
        in = p->in;
    }
    return is_right;
}

static bool is_of_key(const header *h, const unsigned char *path, const cti_index_key *key)
{
    return h->size_bytes == key->stamp.size_bytes && h->mtime_ns == key->stamp.mtime_ns && h->fingerprint == key->stamp.fingerprint &&
           h->format == key->format && h->codec == key->codec && h->detail == key->detail && h->path_bytes == strlen(key->path) &&
           memcmp(path, key->path, h->path_bytes) == 0;
}

/* Checks the map and points the index into it. */
static ct_status take(const char *path, const cti_file_map *map, const cti_index_key *key, cti_index *out, ct_err *err)
{
    header h;
    layout at;
    if (map->size < HEADER_BYTES || memcmp(map->data, magic, sizeof magic) != 0) {
        return damaged(path, "is none by its first bytes", err);
    }
    memcpy(&h, map->data, sizeof h);
    if (h.version != VERSION || h.header_bytes != HEADER_BYTES) {
        return CT_FAIL(err, CT_ERR_FORMAT, "the kept index '%s' has version %u, %d is wanted", path, h.version, VERSION);
    }
    if (!lay_out(&h, &at) || at.end != map->size || h.file_bytes != (int64_t)map->size) {
        return damaged(path, "is cut off, or its sizes are wrong", err);
    }
    const void *parts[] = {map->data + at.path, map->data + at.offsets, map->data + at.points, map->data + at.windows};
    const size_t sizes[] = {at.offsets - at.path, at.points - at.offsets, at.windows - at.points, at.end - at.windows};
    if (sum_of(&h, parts, sizes, 4) != h.check_sum) {
        return damaged(path, "has a wrong check sum", err);
    }
    if (!is_of_key(&h, map->data + at.path, key)) {
        return CT_FAIL(err, CT_ERR_DATA, "the kept index '%s' is of another state of '%s'", path, key->path);
    }
    /* Maps begin at a page and the parts at multiples of 8. */
    const int64_t *offsets = (const int64_t *)(const void *)(map->data + at.offsets);
    const cti_point *points = (const cti_point *)(const void *)(map->data + at.points);
    if (h.contents_bytes < 0 || !are_in_order(&h, offsets, points) || memchr(h.damage, '\0', sizeof h.damage) == NULL ||
        (h.damage[0] != '\0' && h.n_documents == 0)) {
        return damaged(path, "holds numbers that cannot be", err);
    }
    *out = (cti_index){.offsets = offsets,
                       .n = h.n_documents,
                       .points = points,
                       .n_points = h.n_points,
                       .windows = map->data + at.windows,
                       .windows_size = h.windows_bytes,
                       .size_bytes = h.contents_bytes,
                       .flags = h.flags,
                       .map = *map};
    memcpy(out->damage, h.damage, sizeof out->damage);
    return CT_OK;
}

ct_status cti_index_load(const char *cache_path, const cti_index_key *key, cti_index *out_index, ct_err *err)
{
    cti_file_map map;
    CT_TRY(cti_file_map_open(cache_path, &map, err));
    const ct_status st = take(cache_path, &map, key, out_index, err);
    if (st != CT_OK) {
        cti_file_map_close(&map);
    }
    return st;
}

ct_status cti_index_store(const ct_alloc *alloc, const char *cache_path, const cti_index_key *key, const cti_index *index, ct_err *err)
{
    header h = {.version = VERSION,
                .header_bytes = HEADER_BYTES,
                .size_bytes = key->stamp.size_bytes,
                .mtime_ns = key->stamp.mtime_ns,
                .fingerprint = key->stamp.fingerprint,
                .format = key->format,
                .codec = key->codec,
                .detail = key->detail,
                .n_documents = index->n,
                .n_points = index->n_points,
                .windows_bytes = index->windows_size,
                .contents_bytes = index->size_bytes,
                .flags = index->flags,
                .path_bytes = (uint32_t)strlen(key->path)};
    layout at;
    cti_output o = {.fd = -1};
    cti_str path = {.alloc = alloc};
    memcpy(h.magic, magic, sizeof magic);
    memcpy(h.damage, index->damage, sizeof h.damage);
    if (!lay_out(&h, &at)) {
        return CT_FAIL(err, CT_ERR_RANGE, "the index of '%s' is too large to be kept", key->path);
    }
    h.file_bytes = (int64_t)at.end;
    cti_str_add_n(&path, key->path, h.path_bytes);
    for (size_t n = h.path_bytes; n < at.offsets - at.path; n++) {
        cti_str_add_char(&path, '\0');
    }
    const void *parts[] = {path.data, index->offsets, index->points, index->windows};
    const size_t sizes[] = {at.offsets - at.path, at.points - at.offsets, at.windows - at.points, at.end - at.windows};
    ct_status st;
    CT_TRY_GOTO(st, cti_str_check(&path, err), out);
    h.check_sum = sum_of(&h, parts, sizes, 4);
    CT_TRY_GOTO(st, cti_output_open(&o, alloc, cache_path, err), out);
    CT_TRY_GOTO(st, cti_output_add(&o, &h, sizeof h, err), out);
    for (size_t i = 0; i < 4; i++) {
        CT_TRY_GOTO(st, cti_output_add(&o, parts[i], sizes[i], err), out);
    }
    st = cti_output_finish(&o, err);
out:
    cti_output_deinit(&o);
    cti_str_deinit(&path);
    return st;
}
