/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors: reading. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "ckpt/safetensors.h"

struct ct_st {
    const ct_alloc *alloc;
    ct_arena *arena;
    cti_file_map map;
    ct_st_tensor *tensors; /* by offset */
    int32_t n;
};

enum { MAX_HEADER_BYTES = 100 * 1000 * 1000 };

static int dtype_of(const char *name, ct_dtype *out)
{
#define CASE(NAME, ours, size, mant, torch, st)                                                                      \
    if (strcmp(name, st) == 0) {                                                                                     \
        *out = CT_DTYPE_##NAME;                                                                                      \
        return 1;                                                                                                    \
    }
    CT_DTYPE_LIST(CASE)
#undef CASE
    return 0;
}

/* Bits of an element of the dtypes that the format has and we have not; 0 where the format has none of that name (safetensors 0.8). */
static int64_t bits_of(const char *name)
{
    static const struct {
        const char *name;
        int64_t bits;
    } others[] = {{"BOOL", 8}, {"I8", 8}, {"I16", 16}, {"U16", 16}, {"U32", 32}, {"U64", 64}, {"F4", 4}, {"F6_E2M3", 6}, {"F6_E3M2", 6},
                  {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"C64", 64}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strcmp(others[i].name, name) == 0) {
            return others[i].bits;
        }
    }
    return 0;
}

/* The size is what dtype and dims make, as far as the dtype is known. */
static bool size_fits(const ct_st_tensor *t, int64_t bytes)
{
    const int64_t each = t->dtype != CT_DTYPE_COUNT ? 8 * (int64_t)ct_dtype_size_bytes(t->dtype) : bits_of(t->dtype_name);
    int64_t bits;
    return each == 0 || (cti_mul_i64(t->numel, each, &bits) && bits % 8 == 0 && bits / 8 == bytes);
}

static ct_status read_dims(const json_t *shape, const char *path, ct_st_tensor *t, ct_err *err)
{
    if (!json_is_array(shape) || json_array_size(shape) > CT_ST_MAX_NDIM) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': tensor '%s': 'shape' must be a list of at most %d numbers", path, t->name,
                       CT_ST_MAX_NDIM);
    }
    t->ndim = (int32_t)json_array_size(shape);
    for (int32_t d = 0; d < t->ndim; d++) {
        const json_t *dim = json_array_get(shape, (size_t)d);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0) {
            return CT_FAIL(err, CT_ERR_FORMAT, "'%s': tensor '%s': dim %d is no number from 0 up", path, t->name, d);
        }
        t->dims[d] = json_integer_value(dim);
    }
    t->numel = cti_dims_product(t->dims, t->ndim);
    return t->numel >= 0 ? CT_OK : CT_FAIL(err, CT_ERR_FORMAT, "'%s': tensor '%s': the dims overflow", path, t->name);
}

static ct_status read_entry(ct_st *s, const char *path, const char *name, const json_t *entry, uint64_t data_start,
                            ct_err *err)
{
    ct_st_tensor *t = &s->tensors[s->n];
    t->name = ct_arena_strdup(s->arena, name, err);
    if (t->name == NULL) {
        return CT_ERR_MEMORY;
    }
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    if (dtype == NULL) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': tensor '%s' has no dtype", path, name);
    }
    t->dtype_name = ct_arena_strdup(s->arena, dtype, err);
    if (t->dtype_name == NULL) {
        return CT_ERR_MEMORY;
    }
    if (!dtype_of(dtype, &t->dtype)) {
        t->dtype = CT_DTYPE_COUNT;
    }
    CT_TRY(read_dims(json_object_get(entry, "shape"), path, t, err));
    const json_t *offsets = json_object_get(entry, "data_offsets");
    if (!json_is_array(offsets) || json_array_size(offsets) != 2 || !json_is_integer(json_array_get(offsets, 0)) ||
        !json_is_integer(json_array_get(offsets, 1))) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': tensor '%s': 'data_offsets' must be two numbers", path, name);
    }
    const int64_t begin = json_integer_value(json_array_get(offsets, 0)), end = json_integer_value(json_array_get(offsets, 1));
    const int64_t room = (int64_t)(s->map.size - data_start);
    if (begin < 0 || end < begin) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': tensor '%s': %" PRId64 " to %" PRId64 " is no range of bytes", path, name, begin, end);
    }
    if (end > room) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': tensor '%s': bytes %" PRId64 " to %" PRId64 " are not within the %" PRId64
                       " bytes of data: the file has %zu bytes, at least %" PRIu64 " are wanted; it is likely cut short", path, name, begin, end,
                       room, s->map.size, data_start + (uint64_t)end);
    }
    if (!size_fits(t, end - begin)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': tensor '%s': %" PRId64 " elements of %s do not make the %" PRId64
                       " bytes of its data_offsets", path, name, t->numel, dtype, end - begin);
    }
    t->data = s->map.data + data_start + begin;
    t->size_bytes = (size_t)(end - begin);
    s->n++;
    return CT_OK;
}

static int by_data(const void *pa, const void *pb)
{
    const ct_st_tensor *a = pa, *b = pb;
    if (a->data != b->data) {
        return a->data < b->data ? -1 : 1;
    }
    return a->size_bytes < b->size_bytes ? -1 : a->size_bytes > b->size_bytes; /* empty ones first */
}

/* Tensors cover the data end to end. */
static ct_status check_cover(ct_st *s, const char *path, uint64_t data_start, ct_err *err)
{
    const unsigned char *at = s->map.data + data_start, *end = s->map.data + s->map.size;
    qsort(s->tensors, (size_t)s->n, sizeof *s->tensors, by_data);
    for (int32_t i = 0; i < s->n; i++) {
        if (s->tensors[i].data != at) {
            return CT_FAIL(err, CT_ERR_FORMAT, "'%s': tensor '%s' %s: its data begins at byte %td, expected %td", path,
                           s->tensors[i].name, s->tensors[i].data < at ? "overlaps the one before" : "leaves a hole before it",
                           s->tensors[i].data - (s->map.data + data_start), at - (s->map.data + data_start));
        }
        at += s->tensors[i].size_bytes;
    }
    return at == end ? CT_OK
                     : CT_FAIL(err, CT_ERR_FORMAT, "'%s': %td bytes follow the last tensor", path, end - at);
}

static ct_status parse(ct_st *s, const char *path, ct_err *err)
{
    uint64_t header = 0;
    if (s->map.size < 8) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': %zu bytes are too few for a safetensors file, 8 are the least; it is likely cut short", path,
                       s->map.size);
    }
    for (int i = 7; i >= 0; i--) {
        header = header << 8 | s->map.data[i];
    }
    if (header > MAX_HEADER_BYTES || header > s->map.size - 8) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': the header is said to have %" PRIu64 " bytes, the file has %zu: %s", path, header, s->map.size,
                       header > MAX_HEADER_BYTES ? "it is no safetensors file" : "it is likely cut short");
    }
    if (header == 0 || s->map.data[8] != '{') {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': a header of %" PRIu64 " bytes that begins with '{' is wanted; the file has %zu bytes", path, header,
                       s->map.size);
    }
    json_t *json = NULL;
    CT_TRY(cti_json_parse((const char *)s->map.data + 8, (size_t)header, path, &json, err));
    ct_status st = json_is_object(json) ? CT_OK : CT_FAIL(err, CT_ERR_FORMAT, "'%s': the header is no JSON object", path);
    if (st == CT_OK) {
        s->tensors = ct_arena_alloc(s->arena, (json_object_size(json) + 1) * sizeof *s->tensors, err);
        st = s->tensors != NULL ? CT_OK : CT_ERR_MEMORY;
    }
    for (void *it = json_object_iter(json); it != NULL && st == CT_OK; it = json_object_iter_next(json, it)) {
        const char *name = json_object_iter_key(it);
        if (strcmp(name, "__metadata__") == 0) {
            st = json_is_object(json_object_iter_value(it))
                     ? CT_OK
                     : CT_FAIL(err, CT_ERR_FORMAT, "'%s': '__metadata__' is no JSON object", path);
            continue;
        }
        st = read_entry(s, path, name, json_object_iter_value(it), 8 + header, err);
    }
    json_decref(json);
    CT_TRY(st);
    return check_cover(s, path, 8 + header, err);
}

ct_status ct_st_open(const ct_alloc *alloc, const char *path, ct_st **out_st, ct_err *err)
{
    ct_st *s = CT_NEW(alloc, ct_st, err);
    if (s == NULL) {
        return CT_ERR_MEMORY;
    }
    s->alloc = alloc;
    ct_status st = ct_arena_create(alloc, 0, &s->arena, err);
    if (st == CT_OK) {
        st = cti_file_map_open(path, &s->map, err);
    }
    if (st == CT_OK) {
        st = parse(s, path, err);
    }
    if (st != CT_OK) {
        ct_st_close(&s);
        return st;
    }
    *out_st = s;
    return CT_OK;
}

void ct_st_close(ct_st **st)
{
    if (*st == NULL) {
        return;
    }
    if ((*st)->map.data != NULL) {
        cti_file_map_close(&(*st)->map);
    }
    ct_arena_destroy(&(*st)->arena);
    ct_alloc_free((*st)->alloc, *st);
    *st = NULL;
}

int32_t ct_st_n_tensors(const ct_st *st)
{
    return st->n;
}

const ct_st_tensor *ct_st_at(const ct_st *st, int32_t i)
{
    return &st->tensors[i];
}

const ct_st_tensor *ct_st_find(const ct_st *st, const char *name)
{
    for (int32_t i = 0; i < st->n; i++) {
        if (strcmp(st->tensors[i].name, name) == 0) {
            return &st->tensors[i];
        }
    }
    return NULL;
}

void ct_st_hash(const ct_st *st, char out_hex[33], int64_t *out_size)
{
    cti_hash128_hex(st->map.data, st->map.size, out_hex);
    *out_size = (int64_t)st->map.size;
}
