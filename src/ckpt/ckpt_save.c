/* SPDX-License-Identifier: Apache-2.0 */
/* Saving: each rank its own file, then one manifest over all of them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/ckpt_internal.h"
#include "ckpt/safetensors.h"

enum { FILE_NAME_BYTES = 64 };

static void file_name(char out[FILE_NAME_BYTES], int rank, int world_size, const char *suffix)
{
    (void)snprintf(out, FILE_NAME_BYTES, "rank-%05d-of-%05d.%s", rank, world_size, suffix); /* fits */
}

static ct_status check_save(int64_t step, const char *token, int rank, int world_size, ct_err *err)
{
    if (step < 0 || !cti_ckpt_token_ok(token) || rank < 0 || world_size < 1 || rank >= world_size) {
        return CT_FAIL(err, CT_ERR_RANGE, "a checkpoint of step %" PRId64 ", token '%s', rank %d of %d cannot be saved", step, token,
                       rank, world_size);
    }
    return CT_OK;
}

/* ---- a rank's file ----------------------------------------------------------------------------------------------- */

static bool is_whole(const ct_ckpt_piece *p)
{
    return p->begin == 0 && p->end == cti_dims_product(p->dims, p->ndim) && p->n_columns == 0;
}

/* One spec a piece that has elements; a whole tensor under its own name and dims, so that others' readers see it as it is. */
static ct_status make_specs(const ct_ckpt_piece *pieces, int32_t n, ct_arena *arena, ct_st_spec **out_specs, int32_t *out_n,
                            int64_t *out_bytes, ct_err *err)
{
    ct_st_spec *specs = ct_arena_alloc(arena, ((size_t)n + 1) * sizeof *specs, err);
    int32_t used = 0;
    int64_t total = 0;
    if (specs == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int32_t i = 0; i < n; i++) {
        const ct_ckpt_piece *p = &pieces[i];
        ct_ckpt_piece block = *p;
        const int64_t numel = cti_ckpt_block(&block);
        int64_t bytes;
        if (numel < 0 || p->begin < 0 || p->end < p->begin || p->end > numel || p->name[0] == '\0' ||
            strcmp(p->name, "__metadata__") == 0 ||
            !cti_mul_i64(p->end - p->begin, (int64_t)ct_dtype_size_bytes(p->dtype), &bytes) || !cti_add_i64(total, bytes, &total)) {
            return CT_FAIL(err, CT_ERR_SHAPE, "tensor '%s': elements %" PRId64 " to %" PRId64 " of %" PRId64 " in %d dims cannot be "
                           "saved", p->name, p->begin, p->end, numel, p->ndim);
        }
        ct_st_spec *s = &specs[used];
        if (is_whole(p)) {
            *s = (ct_st_spec){.name = p->name, .dtype = p->dtype, .ndim = p->ndim};
            memcpy(s->dims, p->dims, (size_t)p->ndim * sizeof p->dims[0]);
        } else if (p->begin < p->end) {
            *s = (ct_st_spec){.dtype = p->dtype, .ndim = 1, .dims = {p->end - p->begin}};
            s->name = p->n_columns == 0 ? ct_arena_printf(arena, err, "%s@%" PRId64 "-%" PRId64, p->name, p->begin, p->end)
                                        : ct_arena_printf(arena, err, "%s@%" PRId64 "+%" PRId64 "@%" PRId64 "-%" PRId64, p->name, p->column,
                                                          p->n_columns, p->begin, p->end);
        } else {
            continue;
        }
        if (s->name == NULL) {
            return CT_ERR_MEMORY;
        }
        used++;
    }
    *out_specs = specs;
    *out_n = used;
    *out_bytes = total;
    return CT_OK;
}

static ct_status write_pieces(const ct_alloc *alloc, const char *path, const ct_st_spec *specs, int32_t n_specs,
                              const ct_ckpt_piece *pieces, int32_t n, ct_ckpt_source source, void *ctx, int64_t *out_size,
                              char out_hex[33], ct_err *err)
{
    ct_st_writer *w = NULL;
    void *chunk = ct_alloc_zeroed(alloc, (size_t)CTI_CKPT_CHUNK, sizeof(int64_t), err);
    ct_status st = chunk != NULL ? ct_st_writer_open(alloc, path, specs, n_specs, &w, err) : CT_ERR_MEMORY;
    for (int32_t i = 0; i < n && st == CT_OK; i++) {
        const ct_ckpt_piece *p = &pieces[i];
        for (int64_t at = p->begin; at < p->end && st == CT_OK; at += CTI_CKPT_CHUNK) {
            const int64_t to = cti_min_i64(at + CTI_CKPT_CHUNK, p->end);
            st = source(ctx, i, at, to, chunk, err);
            if (st == CT_OK) {
                st = ct_st_writer_add(w, chunk, (size_t)(to - at) * ct_dtype_size_bytes(p->dtype), err);
            }
        }
    }
    if (st == CT_OK) {
        st = ct_st_writer_finish(&w, out_size, out_hex, err);
    }
    ct_st_writer_abort(&w);
    ct_alloc_free(alloc, chunk);
    return st;
}

static json_t *dims_json(const int64_t *dims, int32_t ndim)
{
    json_t *list = json_array();
    for (int32_t d = 0; d < ndim; d++) {
        if (json_array_append_new(list, json_integer(dims[d])) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* [first, number], or NULL where all are meant. */
static json_t *columns_json(const ct_ckpt_piece *p)
{
    return p->n_columns > 0 ? json_pack("[I, I]", (json_int_t)p->column, (json_int_t)p->n_columns) : NULL;
}

static ct_status describe_rank(const char *path, const char *file, int64_t size, const char *hex, const ct_ckpt_piece *pieces,
                               int32_t n, const ct_st_spec *specs, ct_err *err)
{
    json_t *list = json_array();
    bool ok = list != NULL;
    int32_t at = 0; /* in specs */
    for (int32_t i = 0; i < n && ok; i++) {
        const ct_ckpt_piece *p = &pieces[i];
        const bool has_spec = is_whole(p) || p->begin < p->end;
        ok = json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:I, s:I, s:s, s:o*}", "name", p->name, "dtype",
                                                   ct_dtype_name(p->dtype), "dims", dims_json(p->dims, p->ndim), "begin",
                                                   (json_int_t)p->begin, "end", (json_int_t)p->end, "tensor",
                                                   has_spec ? specs[at].name : "", "columns", columns_json(p))) == 0;
        at += has_spec;
    }
    json_t *json = ok ? json_pack("{s:s, s:i, s:s, s:I, s:s, s:O}", "format", CTI_CKPT_RANK_FORMAT, "version", 1,
                                  "file", file, "size", (json_int_t)size, "xxh3_128", hex, "pieces", list)
                      : NULL;
    const ct_status st = json != NULL ? cti_json_write_file(path, json, 0, err)
                                      : CT_FAIL(err, CT_ERR_MEMORY, "out of memory (or a name that is not UTF-8) for '%s'", path);
    json_decref(json);
    json_decref(list);
    return st;
}

static ct_status check_space(const char *folder, int64_t bytes, ct_err *err)
{
    int64_t free_bytes;
    char want[32], have[32];
    CT_TRY(cti_disk_free_bytes(folder, &free_bytes, err));
    if (free_bytes < bytes) {
        return CT_FAIL(err, CT_ERR_IO, "'%s': a checkpoint takes %s (%" PRId64 " bytes), its disk has %s (%" PRId64 " bytes) left",
                       folder, cti_format_bytes(bytes, want), bytes, cti_format_bytes(free_bytes, have), free_bytes);
    }
    return CT_OK;
}

int64_t cti_ckpt_block(ct_ckpt_piece *p)
{
    const int64_t numel = p->ndim >= 0 && p->ndim <= CT_CKPT_MAX_NDIM ? cti_dims_product(p->dims, p->ndim) : -1;
    const int64_t last = p->ndim > 0 ? p->dims[p->ndim - 1] : 1;
    if (p->n_columns == 0 && p->column == 0) {
        p->n_columns = last;
    }
    if (numel < 0 || p->column < 0 || p->n_columns < 0 || p->n_columns > last || p->column > last - p->n_columns ||
        (p->n_columns == 0 && last > 0)) {
        return -1;
    }
    return last == 0 ? 0 : numel / last * p->n_columns;
}

ct_status ct_ckpt_write_rank(const ct_alloc *alloc, const char *folder, int64_t step, const char *token, int rank, int world_size,
                             const ct_ckpt_piece *pieces, int32_t n_pieces, ct_ckpt_source source, void *ctx, ct_err *err)
{
    char file[FILE_NAME_BYTES], facts[FILE_NAME_BYTES], hex[33];
    char *temp = NULL, *path = NULL, *facts_path = NULL;
    ct_arena *arena = NULL;
    ct_st_spec *specs;
    int32_t n_specs;
    int64_t bytes, size = 0;
    ct_status st;
    CT_TRY(check_save(step, token, rank, world_size, err));
    CT_TRY(ct_arena_create(alloc, 0, &arena, err));
    CT_TRY_GOTO(st, make_specs(pieces, n_pieces, arena, &specs, &n_specs, &bytes, err), out);
    file_name(file, rank, world_size, "safetensors");
    file_name(facts, rank, world_size, "json");
    temp = cti_ckpt_temp_path(alloc, folder, step, token, err);
    path = temp != NULL ? cti_path_join(alloc, temp, file, err) : NULL;
    facts_path = temp != NULL ? cti_path_join(alloc, temp, facts, err) : NULL;
    CT_TRY_GOTO(st, path != NULL && facts_path != NULL ? CT_OK : CT_ERR_MEMORY, out);
    CT_TRY_GOTO(st, check_space(folder, bytes, err), out);
    CT_TRY_GOTO(st, cti_make_dirs(temp, err), out);
    st = write_pieces(alloc, path, specs, n_specs, pieces, n_pieces, source, ctx, &size, hex, err);
    if (st == CT_OK) { /* fsyncs the folder, too */
        st = describe_rank(facts_path, file, size, hex, pieces, n_pieces, specs, err);
    }
    if (st != CT_OK) { /* gives the space back; the folder goes with the last rank's file */
        (void)unlink(path);
        (void)rmdir(temp);
    }
out:
    ct_alloc_free(alloc, temp);
    ct_alloc_free(alloc, path);
    ct_alloc_free(alloc, facts_path);
    ct_arena_destroy(&arena);
    return st;
}

/* ---- the manifest over all ranks ----------------------------------------------------------------------------------- */

typedef struct part {
    ct_ckpt_piece piece;
    const char *file, *tensor;
    int32_t rank;
} part;

typedef struct merge {
    const ct_alloc *alloc;
    ct_arena *arena;
    const char *temp;
    part *parts; /* owns */
    size_t n, cap;
    json_t *files; /* owns */
    bool has_columns;
} merge;

static ct_status add_part(merge *m, const json_t *json, const char *file, int rank, const char *where, ct_err *err)
{
    const char *name, *dtype, *tensor;
    json_t *dims;
    part p = {.rank = rank, .file = file};
    CT_TRY(cti_json_get_str(json, "name", where, &name, err));
    CT_TRY(cti_json_get_str(json, "dtype", where, &dtype, err));
    CT_TRY(cti_json_get_str(json, "tensor", where, &tensor, err));
    CT_TRY(cti_json_get_arr(json, "dims", where, &dims, err));
    CT_TRY(cti_json_get_i64(json, "begin", where, &p.piece.begin, err));
    CT_TRY(cti_json_get_i64(json, "end", where, &p.piece.end, err));
    if (!ct_dtype_parse(dtype, &p.piece.dtype) || json_array_size(dims) > CT_CKPT_MAX_NDIM) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': tensor '%s' has %zu dims of dtype '%s'", where, name, json_array_size(dims), dtype);
    }
    p.piece.ndim = (int32_t)json_array_size(dims);
    for (int32_t d = 0; d < p.piece.ndim; d++) {
        p.piece.dims[d] = json_integer_value(json_array_get(dims, (size_t)d));
    }
    const json_t *columns = json_object_get(json, "columns");
    p.piece.column = json_integer_value(json_array_get(columns, 0));
    p.piece.n_columns = json_integer_value(json_array_get(columns, 1));
    m->has_columns = m->has_columns || columns != NULL;
    p.piece.name = ct_arena_strdup(m->arena, name, err);
    p.tensor = ct_arena_strdup(m->arena, tensor, err);
    if (p.piece.name == NULL || p.tensor == NULL) {
        return CT_ERR_MEMORY;
    }
    if (m->n == m->cap) {
        const size_t cap = m->cap == 0 ? 256 : 2 * m->cap;
        part *grown = ct_alloc_resize(m->alloc, m->parts, cap, sizeof *grown, err);
        if (grown == NULL) {
            return CT_ERR_MEMORY;
        }
        m->parts = grown;
        m->cap = cap;
    }
    m->parts[m->n++] = p;
    return CT_OK;
}

static ct_status check_rank_file(const merge *m, const char *file, int64_t size, ct_err *err)
{
    int64_t found;
    char *path = cti_path_join(m->alloc, m->temp, file, err);
    if (path == NULL) {
        return CT_ERR_MEMORY;
    }
    ct_status st = cti_file_size(path, &found, err);
    if (st == CT_OK && found != size) {
        st = CT_FAIL(err, CT_ERR_FORMAT, "'%s' has %" PRId64 " bytes, its rank wrote %" PRId64, path, found, size);
    }
    ct_alloc_free(m->alloc, path);
    return st;
}

static ct_status add_rank(merge *m, int rank, int world_size, ct_err *err)
{
    char name[FILE_NAME_BYTES], expected[FILE_NAME_BYTES];
    const char *file, *hex;
    int64_t size;
    json_t *json = NULL, *pieces;
    ct_status st;
    file_name(name, rank, world_size, "json");
    file_name(expected, rank, world_size, "safetensors");
    char *path = cti_path_join(m->alloc, m->temp, name, err);
    if (path == NULL) {
        return CT_ERR_MEMORY;
    }
    CT_TRY_GOTO(st, cti_json_read_file(m->alloc, path, &json, err), out);
    CT_TRY_GOTO(st, cti_json_get_str(json, "file", path, &file, err), out);
    CT_TRY_GOTO(st, cti_json_get_i64(json, "size", path, &size, err), out);
    CT_TRY_GOTO(st, cti_json_get_str(json, "xxh3_128", path, &hex, err), out);
    CT_TRY_GOTO(st, cti_json_get_arr(json, "pieces", path, &pieces, err), out);
    if (strcmp(file, expected) != 0) {
        st = CT_FAIL(err, CT_ERR_FORMAT, "'%s' describes '%s'", path, file);
        goto out;
    }
    CT_TRY_GOTO(st, check_rank_file(m, file, size, err), out);
    if (json_object_set_new(m->files, file, json_pack("{s:I, s:s}", "size", (json_int_t)size, "xxh3_128", hex)) != 0) {
        st = CT_FAIL(err, CT_ERR_MEMORY, "out of memory for the manifest of '%s'", m->temp);
        goto out;
    }
    file = ct_arena_strdup(m->arena, file, err);
    st = file != NULL ? CT_OK : CT_ERR_MEMORY;
    for (size_t i = 0; i < json_array_size(pieces) && st == CT_OK; i++) {
        st = add_part(m, json_array_get(pieces, i), file, rank, path, err);
    }
out:
    json_decref(json);
    ct_alloc_free(m->alloc, path);
    return st;
}

static int by_place(const void *pa, const void *pb)
{
    const part *a = pa, *b = pb;
    const int names = strcmp(a->piece.name, b->piece.name);
    if (names != 0) {
        return names;
    }
    if (a->piece.column != b->piece.column) {
        return a->piece.column < b->piece.column ? -1 : 1;
    }
    if (a->piece.begin != b->piece.begin) {
        return a->piece.begin < b->piece.begin ? -1 : 1;
    }
    if (a->piece.end != b->piece.end) {
        return a->piece.end < b->piece.end ? -1 : 1;
    }
    return a->rank - b->rank;
}

static bool same_tensor(const ct_ckpt_piece *a, const ct_ckpt_piece *b)
{
    return a->dtype == b->dtype && a->ndim == b->ndim && memcmp(a->dims, b->dims, sizeof a->dims) == 0;
}

/* Columns follow each other: where one block of them is whole, the next begins. at: elements of the block so far; column: where the next one
 * begins. */
static void next_block(const ct_ckpt_piece *last, int64_t *at, int64_t *column)
{
    ct_ckpt_piece block = *last;
    if (last->n_columns > 0 && *at == cti_ckpt_block(&block)) {
        *at = 0;
        *column += last->n_columns;
    }
}

/* parts [first, last) are those of one tensor. Replicas save the same range: the lowest rank's is taken. */
static ct_status merge_tensor(const merge *m, size_t first, size_t last, json_t *tensors, ct_err *err)
{
    const ct_ckpt_piece *whole = &m->parts[first].piece;
    const int64_t numel = cti_dims_product(whole->dims, whole->ndim);
    int64_t at = 0, column = 0;
    bool is_taken = false, has_columns = false; /* of zero elements, one is taken */
    json_t *pieces = json_array();
    ct_status st = pieces != NULL ? CT_OK : CT_FAIL(err, CT_ERR_MEMORY, "out of memory for the manifest");
    for (size_t i = first; i < last && st == CT_OK; i++) {
        const part *p = &m->parts[i], *before = i > first ? &m->parts[i - 1] : NULL;
        if (!same_tensor(&p->piece, whole)) {
            st = CT_FAIL(err, CT_ERR_FORMAT, "tensor '%s': rank %d and rank %d saved it with different dims or dtypes", whole->name,
                         m->parts[first].rank, p->rank);
        } else if (p->piece.begin == p->piece.end && (numel > 0 || is_taken)) {
            continue;
        } else if (before != NULL && before->piece.begin == p->piece.begin && before->piece.end == p->piece.end &&
                   before->piece.column == p->piece.column && before->piece.n_columns == p->piece.n_columns) {
            continue;
        } else if (p->piece.column != column || (p->piece.n_columns > 0) != has_columns) {
            if (is_taken || p->piece.column != column) {
                st = CT_FAIL(err, CT_ERR_FORMAT, "tensor '%s': rank %d saved columns from %" PRId64 " on, expected the ones from %" PRId64 " on",
                             whole->name, p->rank, p->piece.column, column);
            }
            has_columns = p->piece.n_columns > 0;
        }
        if (st == CT_OK && p->piece.begin != at) {
            st = CT_FAIL(err, CT_ERR_FORMAT, "tensor '%s': rank %d saved elements %" PRId64 " to %" PRId64 ", expected the ones from %"
                         PRId64 " on", whole->name, p->rank, p->piece.begin, p->piece.end, at);
        } else if (st == CT_OK &&
                   json_array_append_new(pieces, json_pack("{s:s, s:s, s:I, s:I, s:o*}", "file", p->file, "tensor", p->tensor, "begin",
                                                           (json_int_t)p->piece.begin, "end", (json_int_t)p->piece.end, "columns",
                                                           columns_json(&p->piece))) != 0) {
            st = CT_FAIL(err, CT_ERR_MEMORY, "out of memory for the manifest");
        }
        at = p->piece.end;
        is_taken = true;
        next_block(&p->piece, &at, &column);
    }
    if (st == CT_OK && has_columns && (at != 0 || column != whole->dims[whole->ndim - 1])) {
        st = CT_FAIL(err, CT_ERR_FORMAT, "tensor '%s': the ranks saved %" PRId64 " of its %" PRId64 " columns whole", whole->name, column,
                     whole->dims[whole->ndim - 1]);
    }
    if (st == CT_OK && !has_columns && at != numel) {
        st = CT_FAIL(err, CT_ERR_FORMAT, "tensor '%s': the ranks saved %" PRId64 " of its %" PRId64 " elements", whole->name, at, numel);
    }
    json_t *json = st == CT_OK ? json_pack("{s:s, s:o, s:O}", "dtype", ct_dtype_name(whole->dtype), "dims",
                                           dims_json(whole->dims, whole->ndim), "pieces", pieces)
                               : NULL;
    json_decref(pieces);
    if (st == CT_OK && json_object_set_new(tensors, whole->name, json) != 0) {
        st = CT_FAIL(err, CT_ERR_MEMORY, "out of memory for the manifest");
    }
    return st;
}

static ct_status merge_tensors(const merge *m, json_t *tensors, ct_err *err)
{
    if (m->n > 0) {
        qsort(m->parts, m->n, sizeof *m->parts, by_place);
    }
    for (size_t first = 0, last; first < m->n; first = last) {
        for (last = first + 1; last < m->n && strcmp(m->parts[last].piece.name, m->parts[first].piece.name) == 0; last++) {
        }
        CT_TRY(merge_tensor(m, first, last, tensors, err));
    }
    return CT_OK;
}

static ct_status write_manifest(merge *m, int64_t step, int world_size, const json_t *extra, ct_err *err)
{
    json_t *tensors = json_object(), *json = NULL;
    char *path = cti_path_join(m->alloc, m->temp, CTI_CKPT_MANIFEST, err);
    m->files = json_object();
    ct_status st = tensors != NULL && m->files != NULL && path != NULL
                       ? CT_OK
                       : CT_FAIL(err, CT_ERR_MEMORY, "out of memory for the manifest");
    for (int r = 0; r < world_size && st == CT_OK; r++) {
        st = add_rank(m, r, world_size, err);
    }
    CT_TRY_GOTO(st, st, out);
    CT_TRY_GOTO(st, merge_tensors(m, tensors, err), out);
    json = json_pack("{s:s, s:i, s:I, s:i, s:O, s:O, s:o}", "format", CTI_CKPT_FORMAT, "version", m->has_columns ? CTI_CKPT_VERSION : 1, "step",
                     (json_int_t)step, "world_size", world_size, "files", m->files, "tensors", tensors, "extra",
                     extra != NULL ? json_deep_copy(extra) : json_object());
    st = json != NULL ? cti_json_write_file(path, json, 1, err) : CT_FAIL(err, CT_ERR_MEMORY, "out of memory for the manifest");
out:
    json_decref(json);
    json_decref(tensors);
    json_decref(m->files);
    ct_alloc_free(m->alloc, path);
    return st;
}

/* What the manifest now says itself. */
static ct_status drop_rank_facts(const merge *m, int world_size, ct_err *err)
{
    for (int r = 0; r < world_size; r++) {
        char name[FILE_NAME_BYTES];
        file_name(name, r, world_size, "json");
        char *path = cti_path_join(m->alloc, m->temp, name, err);
        if (path == NULL) {
            return CT_ERR_MEMORY;
        }
        const ct_status st = cti_remove_tree(path, err);
        ct_alloc_free(m->alloc, path);
        CT_TRY(st);
    }
    return cti_fsync_path(m->temp, err);
}

ct_status ct_ckpt_commit(const ct_alloc *alloc, const char *folder, int64_t step, const char *token, int world_size,
                         const json_t *extra, ct_err *err)
{
    CT_TRY(check_save(step, token, 0, world_size, err));
    char old_name[128];
    char *temp = cti_ckpt_temp_path(alloc, folder, step, token, err), *target = cti_ckpt_step_path(alloc, folder, step, err);
    (void)snprintf(old_name, sizeof old_name, ".old-step-%" PRId64 "-%s", step, token); /* fits */
    char *old = cti_path_join(alloc, folder, old_name, err);
    merge m = {.alloc = alloc, .temp = temp};
    ct_status st;
    CT_TRY_GOTO(st, temp != NULL && target != NULL && old != NULL ? CT_OK : CT_ERR_MEMORY, out);
    CT_TRY_GOTO(st, ct_arena_create(alloc, 0, &m.arena, err), out);
    CT_TRY_GOTO(st, write_manifest(&m, step, world_size, extra, err), out);
    CT_TRY_GOTO(st, drop_rank_facts(&m, world_size, err), out);
    CT_TRY_GOTO(st, cti_ckpt_put_in_place(folder, temp, target, old, err), out);
    cti_ckpt_remove_stale(alloc, folder);
out:
    ct_arena_destroy(&m.arena);
    ct_alloc_free(alloc, m.parts);
    ct_alloc_free(alloc, temp);
    ct_alloc_free(alloc, target);
    ct_alloc_free(alloc, old);
    return st;
}
