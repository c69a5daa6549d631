/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors: writing. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/safetensors.h"

struct ct_st_writer {
    const ct_alloc *alloc;
    char *path; /* owns */
    int fd;
    int64_t left; /* bytes of tensors still to come */
};

static const char *dtype_name(ct_dtype dtype)
{
    static const char *const names[CT_DTYPE_COUNT] = {
#define CASE(NAME, ours, size, mant, torch, st) [CT_DTYPE_##NAME] = st,
        CT_DTYPE_LIST(CASE)
#undef CASE
    };
    return names[dtype];
}

static ct_status write_all(ct_st_writer *w, const void *bytes, size_t size, ct_err *err)
{
    const char *at = bytes;
    while (size > 0) {
        const ssize_t n = write(w->fd, at, size);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return CT_FAIL(err, CT_ERR_IO, "'%s' cannot be written: %s", w->path, n < 0 ? strerror(errno) : "no progress");
        }
        at += n;
        size -= (size_t)n;
    }
    return CT_OK;
}

static ct_status write_header(ct_st_writer *w, const ct_st_spec *specs, int32_t n, ct_err *err)
{
    json_t *json = json_object();
    int64_t at = 0;
    ct_status st = json != NULL ? CT_OK : CT_FAIL(err, CT_ERR_MEMORY, "out of memory");
    for (int32_t i = 0; i < n && st == CT_OK; i++) {
        int64_t bytes;
        const int64_t numel = cti_dims_product(specs[i].dims, specs[i].ndim);
        if (json_object_get(json, specs[i].name) != NULL) {
            st = CT_FAIL(err, CT_ERR_STATE, "tensor '%s' is given twice for '%s'", specs[i].name, w->path);
            break;
        }
        if (numel < 0 || !cti_mul_i64(numel, (int64_t)ct_dtype_size_bytes(specs[i].dtype), &bytes)) {
            st = CT_FAIL(err, CT_ERR_SHAPE, "tensor '%s' is too large", specs[i].name);
            break;
        }
        json_t *shape = json_array();
        for (int32_t d = 0; d < specs[i].ndim; d++) {
            (void)json_array_append_new(shape, json_integer(specs[i].dims[d])); /* failure shows in json_pack */
        }
        json_t *entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype_name(specs[i].dtype), "shape", shape, "data_offsets",
                                  (json_int_t)at, (json_int_t)(at + bytes));
        if (entry == NULL || json_object_set_new(json, specs[i].name, entry) != 0) {
            st = CT_FAIL(err, CT_ERR_MEMORY, "out of memory for the header of '%s'", w->path);
        }
        at += bytes;
    }
    char *text = NULL;
    if (st == CT_OK) {
        st = cti_json_dump(w->alloc, json, 0, &text, err);
    }
    json_decref(json);
    if (st == CT_OK) { /* blanks pad the header, so that data is 8-byte aligned */
        const size_t len = strlen(text), padded = (len + 7) / 8 * 8;
        unsigned char head[8];
        for (int i = 0; i < 8; i++) {
            head[i] = (unsigned char)((uint64_t)padded >> (8 * i));
        }
        st = write_all(w, head, 8, err);
        st = st == CT_OK ? write_all(w, text, len, err) : st;
        st = st == CT_OK ? write_all(w, "        ", padded - len, err) : st;
        w->left = at;
    }
    ct_alloc_free(w->alloc, text);
    return st;
}

ct_status ct_st_writer_open(const ct_alloc *alloc, const char *path, const ct_st_spec *specs, int32_t n_specs,
                            ct_st_writer **out_writer, ct_err *err)
{
    ct_st_writer *w = CT_NEW(alloc, ct_st_writer, err);
    if (w == NULL) {
        return CT_ERR_MEMORY;
    }
    w->alloc = alloc;
    w->fd = -1;
    w->path = ct_alloc_strdup(alloc, path, err);
    ct_status st = w->path != NULL ? CT_OK : CT_ERR_MEMORY;
    if (st == CT_OK) {
        w->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        st = w->fd >= 0 ? CT_OK : CT_FAIL(err, CT_ERR_IO, "'%s' cannot be made: %s", path, strerror(errno));
    }
    if (st == CT_OK) {
        st = write_header(w, specs, n_specs, err);
    }
    if (st != CT_OK) {
        ct_st_writer_abort(&w);
        return st;
    }
    *out_writer = w;
    return CT_OK;
}

ct_status ct_st_writer_add(ct_st_writer *w, const void *bytes, size_t size_bytes, ct_err *err)
{
    if ((int64_t)size_bytes > w->left) {
        return CT_FAIL(err, CT_ERR_STATE, "'%s': %zu bytes come, %" PRId64 " are left by its header", w->path, size_bytes, w->left);
    }
    CT_TRY(write_all(w, bytes, size_bytes, err));
    w->left -= (int64_t)size_bytes;
    return CT_OK;
}

void ct_st_writer_abort(ct_st_writer **writer)
{
    ct_st_writer *w = *writer;
    if (w == NULL) {
        return;
    }
    if (w->fd >= 0) {
        (void)close(w->fd); /* the file is given up */
    }
    ct_alloc_free(w->alloc, w->path);
    ct_alloc_free(w->alloc, w);
    *writer = NULL;
}

/* The hash is of the file as it was read back through the page cache: what the disk was given, not what we meant to give it. */
ct_status ct_st_writer_finish(ct_st_writer **writer, int64_t *out_size, char out_hex[33], ct_err *err)
{
    ct_st_writer *w = *writer;
    ct_status st = CT_OK;
    if (w->left != 0) {
        st = CT_FAIL(err, CT_ERR_STATE, "'%s': %" PRId64 " bytes of its tensors never came", w->path, w->left);
    } else if (fsync(w->fd) != 0) {
        st = CT_FAIL(err, CT_ERR_IO, "'%s' cannot be brought to the disk: %s", w->path, strerror(errno));
    }
    if (close(w->fd) != 0 && st == CT_OK) {
        st = CT_FAIL(err, CT_ERR_IO, "'%s' cannot be closed: %s", w->path, strerror(errno));
    }
    w->fd = -1;
    cti_file_map map = {0};
    if (st == CT_OK) {
        st = cti_file_map_open(w->path, &map, err);
    }
    if (st == CT_OK) {
        cti_hash128_hex(map.data, map.size, out_hex);
        *out_size = (int64_t)map.size;
        cti_file_map_close(&map);
    }
    ct_st_writer_abort(writer);
    return st;
}
