/* SPDX-License-Identifier: Apache-2.0 */
/* Weights from a Hugging Face folder. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "ckpt/ckpt_internal.h"
#include "ckpt/hf_internal.h"

struct ct_hf {
    const ct_alloc *alloc;
    ct_hf_shape shape;
    ct_st **files; /* owns */
    int32_t n_files;
    cti_hf_tensor *tensors; /* owns; all of the model's */
    const ct_st_tensor **found;
    int32_t n_tensors;
};

/* ---- which files ------------------------------------------------------------------------------------------------- */

static ct_status open_file(ct_hf *hf, const char *folder, const char *name, ct_err *err)
{
    char *path = cti_path_join(hf->alloc, folder, name, err);
    if (path == NULL) {
        return CT_ERR_MEMORY;
    }
    const ct_status st = ct_st_open(hf->alloc, path, &hf->files[hf->n_files], err);
    hf->n_files += st == CT_OK;
    ct_alloc_free(hf->alloc, path);
    return st;
}

/* Adds " 'name'" where that file is not in the folder. */
static ct_status note_missing(const ct_hf *hf, const char *folder, const char *name, cti_str *missing, ct_err *err)
{
    char *path = cti_path_join(hf->alloc, folder, name, err);
    if (path == NULL) {
        return CT_ERR_MEMORY;
    }
    if (!cti_path_is_file(path)) {
        cti_str_printf(missing, " '%s'", name);
    }
    ct_alloc_free(hf->alloc, path);
    return CT_OK;
}

/* The distinct files of model.safetensors.index.json; those that are not there are named together. */
static ct_status open_indexed(ct_hf *hf, const char *folder, const char *index_path, ct_err *err)
{
    json_t *json = NULL, *map, *seen = NULL;
    cti_str missing = {.alloc = hf->alloc};
    CT_TRY(cti_json_read_file(hf->alloc, index_path, &json, err));
    ct_status st = cti_json_get_obj(json, "weight_map", index_path, &map, err);
    if (st == CT_OK) {
        hf->files = CT_NEW_ARRAY(hf->alloc, ct_st *, json_object_size(map) + 1, err);
        seen = json_object();
        st = hf->files != NULL && seen != NULL ? CT_OK : CT_ERR_MEMORY;
    }
    for (void *it = st == CT_OK ? json_object_iter(map) : NULL; it != NULL && st == CT_OK;
         it = json_object_iter_next(map, it)) {
        const char *name = json_string_value(json_object_iter_value(it));
        if (name == NULL || strchr(name, '/') != NULL || strcmp(name, "..") == 0) {
            st = CT_FAIL(err, CT_ERR_FORMAT, "'%s': the file of tensor '%s' must be the name of a file beside the index, found '%s'",
                         index_path, json_object_iter_key(it), name != NULL ? name : "(no text)");
        } else if (json_object_get(seen, name) == NULL) {
            st = json_object_set_new(seen, name, json_true()) == 0 ? note_missing(hf, folder, name, &missing, err) : CT_ERR_MEMORY;
        }
    }
    if (st == CT_OK && missing.len > 0) {
        st = CT_FAIL(err, CT_ERR_NOT_FOUND, "'%s' names files that are not beside it:%s", index_path, cti_str_text(&missing));
    }
    for (void *it = st == CT_OK ? json_object_iter(seen) : NULL; it != NULL && st == CT_OK; it = json_object_iter_next(seen, it)) {
        st = open_file(hf, folder, json_object_iter_key(it), err);
    }
    cti_str_deinit(&missing);
    json_decref(seen);
    json_decref(json);
    return st;
}

/* Without an index: the one file that is named for the model, or else all there are. */
static ct_status open_all(ct_hf *hf, const char *folder, ct_err *err)
{
    static const char one[] = "model.safetensors";
    cti_str missing = {.alloc = hf->alloc};
    cti_names names = {0};
    CT_TRY(note_missing(hf, folder, one, &missing, err));
    const bool has_one = missing.len == 0;
    cti_str_deinit(&missing);
    CT_TRY(cti_list_dir(hf->alloc, folder, &names, err));
    hf->files = CT_NEW_ARRAY(hf->alloc, ct_st *, names.n + 1, err);
    ct_status st = hf->files != NULL ? CT_OK : CT_ERR_MEMORY;
    for (size_t i = 0; i < names.n && st == CT_OK; i++) {
        if (has_one ? strcmp(names.names[i], one) == 0 : cti_ends_with(names.names[i], ".safetensors")) {
            st = open_file(hf, folder, names.names[i], err);
        }
    }
    cti_names_free(hf->alloc, &names);
    if (st == CT_OK && hf->n_files == 0) {
        st = CT_FAIL(err, CT_ERR_NOT_FOUND, "'%s' holds no *.safetensors", folder);
    }
    return st;
}

static ct_status open_files(ct_hf *hf, const char *folder, ct_err *err)
{
    if (!cti_path_is_dir(folder)) {
        return CT_FAIL(err, CT_ERR_NOT_FOUND, "'%s' is no folder", folder);
    }
    char *index_path = cti_path_join(hf->alloc, folder, "model.safetensors.index.json", err);
    if (index_path == NULL) {
        return CT_ERR_MEMORY;
    }
    const ct_status st =
        cti_path_is_file(index_path) ? open_indexed(hf, folder, index_path, err) : open_all(hf, folder, err);
    ct_alloc_free(hf->alloc, index_path);
    return st;
}

/* ---- which tensors ----------------------------------------------------------------------------------------------- */

/* The first of that name, and how many there are. */
static const ct_st_tensor *find_tensor(const ct_hf *hf, const char *name, int32_t *out_n)
{
    const ct_st_tensor *first = NULL;
    *out_n = 0;
    for (int32_t f = 0; f < hf->n_files; f++) {
        const ct_st_tensor *found = ct_st_find(hf->files[f], name);
        first = first != NULL ? first : found;
        *out_n += found != NULL;
    }
    return first;
}

static void add_dims(cti_str *text, const int64_t *dims, int32_t ndim)
{
    cti_str_add(text, "[");
    for (int32_t d = 0; d < ndim; d++) {
        cti_str_printf(text, "%s%" PRId64, d > 0 ? ", " : "", dims[d]);
    }
    cti_str_add(text, "]");
}

static void match_tensors(ct_hf *hf, cti_str *problems)
{
    for (int32_t i = 0; i < hf->n_tensors; i++) {
        cti_hf_tensor *t = &hf->tensors[i];
        cti_hf_tensor_at(&hf->shape, i, t);
        int32_t n;
        const ct_st_tensor *found = find_tensor(hf, t->hf, &n);
        hf->found[i] = found;
        if (found == NULL) {
            cti_str_printf(problems, "; '%s' is missing", t->hf);
        } else if (n > 1) {
            cti_str_printf(problems, "; '%s' is in %d files", t->hf, n);
        } else if (found->ndim != t->ndim || memcmp(found->dims, t->dims, (size_t)t->ndim * sizeof *t->dims) != 0) {
            cti_str_printf(problems, "; '%s' is ", t->hf);
            add_dims(problems, found->dims, found->ndim);
            cti_str_add(problems, ", wanted ");
            add_dims(problems, t->dims, t->ndim);
        } else if (found->dtype == CT_DTYPE_COUNT || !ct_dtype_is_float(found->dtype)) {
            cti_str_printf(problems, "; '%s' has dtype %s, one of F32, BF16, F16, F64 is wanted", t->hf, found->dtype_name);
        }
    }
}

static void find_unknown(const ct_hf *hf, cti_str *problems)
{
    for (int32_t f = 0; f < hf->n_files; f++) {
        for (int32_t i = 0; i < ct_st_n_tensors(hf->files[f]); i++) {
            const char *name = ct_st_at(hf->files[f], i)->name;
            bool known = ct_st_at(hf->files[f], i)->dtype == CT_DTYPE_COUNT || cti_ends_with(name, ".rotary_emb.inv_freq") ||
                         (hf->shape.is_tied && strcmp(name, "lm_head.weight") == 0);
            for (int32_t t = 0; t < hf->n_tensors && !known; t++) {
                known = strcmp(hf->tensors[t].hf, name) == 0;
            }
            if (!known) {
                cti_str_printf(problems, "; '%s' is not known in this model", name);
            }
        }
    }
}

/* ---- config.json ------------------------------------------------------------------------------------------------- */

static void check_number(const json_t *config, const char *key, double wanted, cti_str *problems)
{
    const json_t *value = json_object_get(config, key);
    if (value == NULL || json_is_null(value)) {
        return;
    }
    if (!json_is_number(value) || fabs(json_number_value(value) - wanted) > 1e-9 * fabs(wanted)) {
        char want[32], found[32] = "no number";
        if (json_is_number(value)) {
            cti_format_f64(json_number_value(value), found);
        }
        cti_str_printf(problems, "; config.json: %s is %s, the model has %s", key, found, cti_format_f64(wanted, want));
    }
}

static ct_status check_config(const ct_hf *hf, const char *folder, cti_str *problems, ct_err *err)
{
    char *path = cti_path_join(hf->alloc, folder, "config.json", err);
    json_t *config = NULL;
    ct_status st = path != NULL ? CT_OK : CT_ERR_MEMORY;
    if (st == CT_OK && cti_path_is_file(path)) {
        st = cti_json_read_file(hf->alloc, path, &config, err);
    }
    ct_alloc_free(hf->alloc, path);
    if (st == CT_OK && config != NULL) {
        const ct_hf_shape *s = &hf->shape;
        check_number(config, "hidden_size", (double)s->dim, problems);
        check_number(config, "num_hidden_layers", (double)s->n_layers, problems);
        check_number(config, "num_attention_heads", (double)s->n_heads, problems);
        check_number(config, "num_key_value_heads", (double)s->n_kv_heads, problems);
        check_number(config, "intermediate_size", (double)s->ffn_hidden, problems);
        check_number(config, "vocab_size", (double)s->vocab_size, problems);
        check_number(config, "rope_theta", s->rope_theta, problems);
        check_number(config, "rms_norm_eps", s->norm_eps, problems);
    }
    json_decref(config);
    return st;
}

ct_status ct_hf_open(const ct_alloc *alloc, const char *folder, const ct_hf_shape *shape, ct_hf **out_hf, ct_err *err)
{
    ct_hf *hf = CT_NEW(alloc, ct_hf, err);
    cti_str problems = {.alloc = alloc};
    if (hf == NULL) {
        return CT_ERR_MEMORY;
    }
    hf->alloc = alloc;
    hf->shape = *shape;
    hf->n_tensors = cti_hf_n_tensors(shape);
    hf->tensors = CT_NEW_ARRAY(alloc, cti_hf_tensor, hf->n_tensors, err);
    hf->found = CT_NEW_ARRAY(alloc, const ct_st_tensor *, hf->n_tensors, err);
    ct_status st = hf->tensors != NULL && hf->found != NULL ? open_files(hf, folder, err) : CT_ERR_MEMORY;
    if (st == CT_OK) {
        match_tensors(hf, &problems);
        find_unknown(hf, &problems);
        st = check_config(hf, folder, &problems, err);
    }
    if (st == CT_OK && problems.len > 0) {
        st = CT_FAIL(err, CT_ERR_SHAPE, "'%s' does not hold this model: %s", folder, cti_str_text(&problems) + 2);
    }
    cti_str_deinit(&problems);
    if (st != CT_OK) {
        ct_hf_close(&hf);
        return st;
    }
    *out_hf = hf;
    return CT_OK;
}

void ct_hf_close(ct_hf **hf)
{
    ct_hf *h = *hf;
    if (h == NULL) {
        return;
    }
    for (int32_t i = 0; i < h->n_files; i++) {
        ct_st_close(&h->files[i]);
    }
    ct_alloc_free(h->alloc, h->files);
    ct_alloc_free(h->alloc, h->tensors);
    ct_alloc_free(h->alloc, (void *)h->found);
    ct_alloc_free(h->alloc, h);
    *hf = NULL;
}

ct_status ct_hf_read(const ct_hf *hf, const char *native_name, int64_t begin, int64_t end, ct_dtype dtype, void *dst,
                     ct_err *err)
{
    const cti_hf_tensor *t = NULL;
    int32_t at = 0;
    for (; at < hf->n_tensors && t == NULL; at++) {
        t = strcmp(hf->tensors[at].native, native_name) == 0 ? &hf->tensors[at] : NULL;
    }
    if (t == NULL) {
        return CT_FAIL(err, CT_ERR_NOT_FOUND, "Hugging Face's layout has no place for '%s'", native_name);
    }
    const ct_st_tensor *src = hf->found[at - 1];
    if (begin < 0 || end < begin || end > src->numel) {
        return CT_FAIL(err, CT_ERR_RANGE, "'%s': elements %" PRId64 " to %" PRId64 " of %" PRId64, t->hf, begin, end, src->numel);
    }
    const size_t from_size = ct_dtype_size_bytes(src->dtype), to_size = ct_dtype_size_bytes(dtype);
    const int64_t cols = t->dims[1];
    for (int64_t e = begin; e < end;) {
        const int64_t row = e / cols, stop = t->permuted_heads > 0 ? cti_min_i64(end, (row + 1) * cols) : end;
        const int64_t from = t->permuted_heads > 0 ? cti_hf_row_of(row, hf->shape.head_dim) * cols + e % cols : e;
        cti_ckpt_convert(src->data + (size_t)from * from_size, src->dtype, (char *)dst + (size_t)(e - begin) * to_size, dtype,
                         stop - e);
        e = stop;
    }
    return CT_OK;
}
