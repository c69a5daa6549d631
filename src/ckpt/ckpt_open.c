/* SPDX-License-Identifier: Apache-2.0 */
/* One checkpoint: its manifest checked, its files mapped and verified, elements read. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "ckpt/ckpt_internal.h"
#include "ckpt/safetensors.h"

typedef struct stored_file {
    const char *name;
    ct_st *st; /* owns; NULL where only sizes are looked at */
} stored_file;

typedef struct stored_piece {
    int64_t begin, end;        /* among the elements of its columns */
    int64_t column, n_columns; /* all of them: 0 and the last dim */
    const unsigned char *data; /* mapped */
} stored_piece;

typedef struct stored_tensor {
    ct_ckpt_piece whole; /* begin 0, end numel */
    stored_piece *pieces; /* by columns, then end to end: they tile the tensor */
    size_t n_pieces;
} stored_tensor;

struct ct_ckpt {
    const ct_alloc *alloc;
    ct_arena *arena;
    char *path; /* the arena's, as the rest */
    int64_t step;
    json_t *manifest; /* owns */
    stored_file *files;
    size_t n_files;
    stored_tensor *tensors; /* by name */
    size_t n_tensors;
};

/* ---- files ------------------------------------------------------------------------------------------------------- */

static ct_status check_file(ct_ckpt *c, const char *name, const json_t *facts, cti_ckpt_depth depth, ct_err *err)
{
    const char *hash;
    int64_t size, found;
    if (strchr(name, '/') != NULL || name[0] == '.' || name[0] == '\0') {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': its manifest names the file '%s', which is no plain name", c->path, name);
    }
    CT_TRY(cti_json_get_i64(facts, "size", name, &size, err));
    CT_TRY(cti_json_get_str(facts, "xxh3_128", name, &hash, err));
    stored_file *file = &c->files[c->n_files];
    char *path = cti_path_join(c->alloc, c->path, name, err);
    file->name = ct_arena_strdup(c->arena, name, err);
    ct_status st = path != NULL && file->name != NULL ? CT_OK : CT_ERR_MEMORY;
    CT_TRY_GOTO(st, st, out);
    CT_TRY_GOTO(st, cti_file_size(path, &found, err), out);
    if (found != size) {
        st = CT_FAIL(err, CT_ERR_FORMAT, "'%s' has %" PRId64 " bytes, its manifest says %" PRId64 ": it was probably cut short",
                     path, found, size);
        goto out;
    }
    if (depth != CTI_CKPT_SIZES) {
        char hex[33];
        CT_TRY_GOTO(st, ct_st_open(c->alloc, path, &file->st, err), out);
        c->n_files++; /* from here it is closed with the rest */
        if (depth == CTI_CKPT_ALL) {
            ct_st_hash(file->st, hex, &found);
        }
        if (depth == CTI_CKPT_ALL && strcmp(hex, hash) != 0) {
            st = CT_FAIL(err, CT_ERR_FORMAT, "'%s' is damaged: its XXH3-128 is %s, its manifest says %s", path, hex, hash);
        }
    }
out:
    ct_alloc_free(c->alloc, path);
    return st;
}

static ct_status check_files(ct_ckpt *c, json_t *files, cti_ckpt_depth depth, ct_err *err)
{
    c->files = ct_arena_alloc(c->arena, (json_object_size(files) + 1) * sizeof *c->files, err);
    if (c->files == NULL) {
        return CT_ERR_MEMORY;
    }
    for (void *it = json_object_iter(files); it != NULL; it = json_object_iter_next(files, it)) {
        CT_TRY(check_file(c, json_object_iter_key(it), json_object_iter_value(it), depth, err));
    }
    return CT_OK;
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

/* Where the piece after those read so far must begin. */
typedef struct cursor {
    int64_t at, column, n_columns; /* n_columns: of the block begun; 0: none is */
} cursor;

static ct_status read_columns(const ct_ckpt *c, const stored_tensor *t, const json_t *json, stored_piece *p, int64_t *out_block, ct_err *err)
{
    const json_t *columns = json_object_get(json, "columns");
    ct_ckpt_piece block = t->whole;
    if (columns != NULL) {
        block.column = json_integer_value(json_array_get(columns, 0));
        block.n_columns = json_integer_value(json_array_get(columns, 1));
    }
    *out_block = cti_ckpt_block(&block);
    if (*out_block < 0 || (columns != NULL && json_array_size(columns) != 2)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': tensor '%s': a piece has columns %" PRId64 " to %" PRId64 " of the last dim, which it has not",
                       c->path, t->whole.name, block.column, block.n_columns);
    }
    p->column = block.column;
    p->n_columns = block.n_columns;
    return CT_OK;
}

static ct_status read_piece(const ct_ckpt *c, const stored_tensor *t, const json_t *json, cursor *next, stored_piece *p,
                            ct_err *err)
{
    const char *file, *name = t->whole.name, *tensor;
    const ct_st_tensor *found = NULL;
    CT_TRY(cti_json_get_str(json, "file", name, &file, err));
    CT_TRY(cti_json_get_str(json, "tensor", name, &tensor, err));
    CT_TRY(cti_json_get_i64(json, "begin", name, &p->begin, err));
    CT_TRY(cti_json_get_i64(json, "end", name, &p->end, err));
    int64_t block;
    CT_TRY(read_columns(c, t, json, p, &block, err));
    if (p->column != next->column || (next->n_columns > 0 && p->n_columns != next->n_columns)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': tensor '%s': a piece has columns from %" PRId64 " on, expected those from %" PRId64 " on", c->path,
                       name, p->column, next->column);
    }
    if (p->begin != next->at || p->end < p->begin || p->end > block) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': tensor '%s': a piece goes from %" PRId64 " to %" PRId64 ", expected one from %"
                       PRId64 " on, to %" PRId64 " at most", c->path, name, p->begin, p->end, next->at, block);
    }
    *next = p->end < block ? (cursor){p->end, p->column, p->n_columns} : (cursor){0, p->column + p->n_columns, 0};
    for (size_t i = 0; i < c->n_files; i++) {
        if (strcmp(c->files[i].name, file) == 0) {
            found = ct_st_find(c->files[i].st, tensor);
            break;
        }
    }
    if (found == NULL || found->dtype != t->whole.dtype || found->numel != p->end - p->begin) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': tensor '%s': its elements %" PRId64 " to %" PRId64 " are not in '%s' as '%s'",
                       c->path, name, p->begin, p->end, file, tensor);
    }
    p->data = found->data;
    return CT_OK;
}

static ct_status read_tensor(ct_ckpt *c, const char *name, const json_t *json, ct_err *err)
{
    stored_tensor *t = &c->tensors[c->n_tensors];
    json_t *dims, *pieces;
    const char *dtype;
    CT_TRY(cti_json_get_str(json, "dtype", name, &dtype, err));
    CT_TRY(cti_json_get_arr(json, "dims", name, &dims, err));
    CT_TRY(cti_json_get_arr(json, "pieces", name, &pieces, err));
    if (!ct_dtype_parse(dtype, &t->whole.dtype) || json_array_size(dims) > CT_CKPT_MAX_NDIM) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': tensor '%s' has %zu dims of dtype '%s'", c->path, name, json_array_size(dims),
                       dtype);
    }
    t->whole.ndim = (int32_t)json_array_size(dims);
    for (int32_t d = 0; d < t->whole.ndim; d++) {
        const json_t *dim = json_array_get(dims, (size_t)d);
        t->whole.dims[d] = json_is_integer(dim) ? json_integer_value(dim) : -1;
    }
    t->whole.end = cti_dims_product(t->whole.dims, t->whole.ndim);
    if (t->whole.end < 0) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': tensor '%s': its dims are not numbers from 0 up, or overflow", c->path, name);
    }
    t->whole.name = ct_arena_strdup(c->arena, name, err);
    t->n_pieces = json_array_size(pieces);
    t->pieces = ct_arena_alloc(c->arena, (t->n_pieces + 1) * sizeof *t->pieces, err);
    if (t->whole.name == NULL || t->pieces == NULL) {
        return CT_ERR_MEMORY;
    }
    cursor next = {0, 0, 0};
    const int64_t last = t->whole.ndim > 0 ? t->whole.dims[t->whole.ndim - 1] : 1;
    for (size_t i = 0; i < t->n_pieces; i++) {
        CT_TRY(read_piece(c, t, json_array_get(pieces, i), &next, &t->pieces[i], err));
    }
    if (t->whole.end > 0 && (next.at != 0 || next.column != last)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': tensor '%s': its pieces end at column %" PRId64 " of %" PRId64 ", element %" PRId64, c->path,
                       name, next.column, last, next.at);
    }
    c->n_tensors++;
    return CT_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const stored_tensor *)a)->whole.name, ((const stored_tensor *)b)->whole.name);
}

static ct_status read_tensors(ct_ckpt *c, json_t *tensors, ct_err *err)
{
    c->tensors = ct_arena_alloc(c->arena, (json_object_size(tensors) + 1) * sizeof *c->tensors, err);
    if (c->tensors == NULL) {
        return CT_ERR_MEMORY;
    }
    for (void *it = json_object_iter(tensors); it != NULL; it = json_object_iter_next(tensors, it)) {
        CT_TRY(read_tensor(c, json_object_iter_key(it), json_object_iter_value(it), err));
    }
    qsort(c->tensors, c->n_tensors, sizeof *c->tensors, by_name);
    return CT_OK;
}

/* ---- the manifest ------------------------------------------------------------------------------------------------ */

/* A folder of --checkpoint.last-save-in-hf has config.json and no manifest. */
static ct_status refuse_hf(const ct_ckpt *c, const char *manifest, ct_err *err)
{
    char *config = cti_path_join(c->alloc, c->path, "config.json", err);
    if (config == NULL) {
        return CT_ERR_MEMORY;
    }
    const bool is_hf = !cti_path_exists(manifest) && cti_path_exists(config);
    ct_alloc_free(c->alloc, config);
    return is_hf ? CT_FAIL(err, CT_ERR_NOT_FOUND, "'%s' holds weights in Hugging Face's form; a run begins with them by "
                           "--checkpoint.initial-load-path and --checkpoint.initial-load-in-hf, `ctitan generate --checkpoint` takes this folder",
                           c->path)
                 : CT_OK;
}

static ct_status read_manifest(ct_ckpt *c, cti_ckpt_depth depth, ct_err *err)
{
    const char *format;
    int64_t version;
    json_t *files, *tensors, *extra;
    char *path = cti_path_join(c->alloc, c->path, CTI_CKPT_MANIFEST, err);
    if (path == NULL) {
        return CT_ERR_MEMORY;
    }
    ct_status st = refuse_hf(c, path, err);
    st = st == CT_OK ? cti_json_read_file(c->alloc, path, &c->manifest, err) : st;
    ct_alloc_free(c->alloc, path);
    CT_TRY(st);
    if (!json_is_object(c->manifest)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': its manifest is no JSON object", c->path);
    }
    CT_TRY(cti_json_get_str(c->manifest, "format", c->path, &format, err));
    CT_TRY(cti_json_get_i64(c->manifest, "version", c->path, &version, err));
    if (strcmp(format, CTI_CKPT_FORMAT) != 0) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': its manifest is of format '%s', not '" CTI_CKPT_FORMAT "'", c->path, format);
    }
    if (version < 1 || version > CTI_CKPT_VERSION) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': its manifest has version %" PRId64 ", this program reads 1 to %d", c->path, version,
                       CTI_CKPT_VERSION);
    }
    CT_TRY(cti_json_get_i64(c->manifest, "step", c->path, &c->step, err));
    CT_TRY(cti_json_get_obj(c->manifest, "files", c->path, &files, err));
    CT_TRY(cti_json_get_obj(c->manifest, "tensors", c->path, &tensors, err));
    CT_TRY(cti_json_get_obj(c->manifest, "extra", c->path, &extra, err));
    if (c->step < 0) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': its manifest is of step %" PRId64, c->path, c->step);
    }
    CT_TRY(check_files(c, files, depth, err));
    return depth != CTI_CKPT_SIZES ? read_tensors(c, tensors, err) : CT_OK;
}

ct_status cti_ckpt_open_path(const ct_alloc *alloc, const char *path, cti_ckpt_depth depth, ct_ckpt **out_ckpt, ct_err *err)
{
    ct_ckpt *c = CT_NEW(alloc, ct_ckpt, err);
    if (c == NULL) {
        return CT_ERR_MEMORY;
    }
    c->alloc = alloc;
    ct_status st = ct_arena_create(alloc, 0, &c->arena, err);
    if (st == CT_OK) {
        c->path = ct_arena_strdup(c->arena, path, err);
        st = c->path != NULL ? read_manifest(c, depth, err) : CT_ERR_MEMORY;
    }
    if (st != CT_OK) {
        ct_ckpt_close(&c);
        return st;
    }
    *out_ckpt = c;
    return CT_OK;
}

void ct_ckpt_close(ct_ckpt **ckpt)
{
    ct_ckpt *c = *ckpt;
    if (c == NULL) {
        return;
    }
    for (size_t i = 0; i < c->n_files; i++) {
        ct_st_close(&c->files[i].st);
    }
    json_decref(c->manifest);
    ct_arena_destroy(&c->arena);
    ct_alloc_free(c->alloc, c);
    *ckpt = NULL;
}

int64_t ct_ckpt_step(const ct_ckpt *ckpt)
{
    return ckpt->step;
}

const char *ct_ckpt_path(const ct_ckpt *ckpt)
{
    return ckpt->path;
}

const json_t *ct_ckpt_extra(const ct_ckpt *ckpt)
{
    return json_object_get(ckpt->manifest, "extra");
}

static const stored_tensor *find(const ct_ckpt *c, const char *name)
{
    const stored_tensor key = {.whole = {.name = name}};
    return c->n_tensors > 0 ? bsearch(&key, c->tensors, c->n_tensors, sizeof *c->tensors, by_name) : NULL;
}

const ct_ckpt_piece *ct_ckpt_tensor_at(const ct_ckpt *ckpt, size_t i)
{
    return i < ckpt->n_tensors ? &ckpt->tensors[i].whole : NULL;
}

const ct_ckpt_piece *ct_ckpt_find(const ct_ckpt *ckpt, const char *name)
{
    const stored_tensor *t = find(ckpt, name);
    return t != NULL ? &t->whole : NULL;
}

/* The piece that holds element `at` of the tensor, where in it, and how many of the n from there on lie end to end in both. */
static const stored_piece *piece_at(const stored_tensor *t, int64_t at, int64_t n, int64_t *out_inside, int64_t *out_n)
{
    const int64_t last = t->whole.ndim > 0 ? t->whole.dims[t->whole.ndim - 1] : 1, row = at / last, column = at % last;
    size_t low = 0, high = t->n_pieces;
    while (high - low > 1) { /* the last that does not begin after it */
        const size_t middle = low + (high - low) / 2;
        const stored_piece *p = &t->pieces[middle];
        const bool is_after = p->column > column || (p->column + p->n_columns > column && p->begin > row * p->n_columns + column - p->column);
        low = is_after ? low : middle;
        high = is_after ? middle : high;
    }
    const stored_piece *p = &t->pieces[low];
    const int64_t local = row * p->n_columns + column - p->column;
    *out_inside = local - p->begin;
    *out_n = cti_min_i64(n, p->end - local);
    if (p->n_columns < last) {
        *out_n = cti_min_i64(*out_n, p->column + p->n_columns - column);
    }
    return p;
}

ct_status ct_ckpt_read(const ct_ckpt *ckpt, const char *name, int64_t begin, int64_t end, ct_dtype dtype, void *dst, ct_err *err)
{
    const stored_tensor *t = find(ckpt, name);
    if (t == NULL) {
        return CT_FAIL(err, CT_ERR_NOT_FOUND, "'%s' has no tensor '%s'", ckpt->path, name);
    }
    if (begin < 0 || end < begin || end > t->whole.end) {
        return CT_FAIL(err, CT_ERR_RANGE, "'%s': tensor '%s' has %" PRId64 " elements, %" PRId64 " to %" PRId64 " were asked for",
                       ckpt->path, name, t->whole.end, begin, end);
    }
    if (dtype != t->whole.dtype && (!ct_dtype_is_float(dtype) || !ct_dtype_is_float(t->whole.dtype))) {
        return CT_FAIL(err, CT_ERR_SHAPE, "'%s': tensor '%s' is of %s, which is not converted to %s", ckpt->path, name,
                       ct_dtype_name(t->whole.dtype), ct_dtype_name(dtype));
    }
    const size_t from_size = ct_dtype_size_bytes(t->whole.dtype), to_size = ct_dtype_size_bytes(dtype);
    for (int64_t at = begin, n; at < end; at += n) {
        int64_t inside;
        const stored_piece *p = piece_at(t, at, end - at, &inside, &n);
        cti_ckpt_convert(p->data + (size_t)inside * from_size, t->whole.dtype, (unsigned char *)dst + (size_t)(at - begin) * to_size, dtype, n);
    }
    return CT_OK;
}
