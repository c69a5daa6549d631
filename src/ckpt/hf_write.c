/* SPDX-License-Identifier: Apache-2.0 */
/* Weights into a Hugging Face folder. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "ckpt/ckpt_internal.h"
#include "ckpt/hf_internal.h"

typedef struct export {
    const ct_alloc *alloc;
    const char *folder; /* the temporary one */
    const ct_hf_shape *shape;
    ct_dtype dtype;
    ct_hf_source source;
    void *ctx;
    float *rows;  /* one native tensor */
    void *out;
    json_t *map;  /* weight_map */
    int64_t total_bytes;
} export;

static ct_status write_config(const export *x, ct_err *err)
{
    const ct_hf_shape *s = x->shape;
    json_t *scaling = s->has_rope_scaling
                          ? json_pack("{s:s, s:f, s:f, s:f, s:I}", "rope_type", "llama3", "factor", s->rope_factor,
                                      "low_freq_factor", s->rope_low_freq_factor, "high_freq_factor", s->rope_high_freq_factor,
                                      "original_max_position_embeddings", (json_int_t)s->rope_original_max)
                          : json_null();
    json_t *config = json_pack(
        "{s:[s], s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:f, s:f, s:o, s:b, s:b, s:b, s:s}", "architectures",
        "LlamaForCausalLM", "model_type", "llama", "hidden_size", (json_int_t)s->dim, "intermediate_size",
        (json_int_t)s->ffn_hidden, "num_hidden_layers", (json_int_t)s->n_layers, "num_attention_heads", (json_int_t)s->n_heads,
        "num_key_value_heads", (json_int_t)s->n_kv_heads, "head_dim", (json_int_t)s->head_dim, "vocab_size",
        (json_int_t)s->vocab_size, "max_position_embeddings", (json_int_t)s->max_seq_len, "hidden_act", "silu", "rms_norm_eps",
        s->norm_eps, "rope_theta", s->rope_theta, "rope_scaling", scaling, "tie_word_embeddings", (int)s->is_tied,
        "attention_bias", 0, "mlp_bias", 0, "torch_dtype", ct_dtype_torch_name(x->dtype));
    if (config == NULL) {
        return CT_FAIL(err, CT_ERR_MEMORY, "out of memory for config.json");
    }
    if (s->bos_id >= 0) {
        (void)json_object_set_new(config, "bos_token_id", json_integer(s->bos_id)); /* a member less where memory is out */
    }
    if (s->eos_id >= 0) {
        (void)json_object_set_new(config, "eos_token_id", json_integer(s->eos_id));
    }
    char *path = cti_path_join(x->alloc, x->folder, "config.json", err);
    const ct_status st = path != NULL ? cti_json_write_file(path, config, 2, err) : CT_ERR_MEMORY;
    ct_alloc_free(x->alloc, path);
    json_decref(config);
    return st;
}

/* One tensor: read whole, rows put in Hugging Face's order, converted. */
static ct_status write_tensor(export *x, ct_st_writer *w, const cti_hf_tensor *t, ct_err *err)
{
    const int64_t rows = t->dims[0], cols = t->dims[1], numel = rows * cols;
    for (int64_t at = 0; at < numel; at += CTI_CKPT_CHUNK) {
        CT_TRY(x->source(x->ctx, t->native, at, cti_min_i64(at + CTI_CKPT_CHUNK, numel), x->rows + at, err));
    }
    const size_t size = ct_dtype_size_bytes(x->dtype);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t to = t->permuted_heads > 0 ? cti_hf_row_of(r, x->shape->head_dim) : r;
        cti_ckpt_convert(x->rows + r * cols, CT_DTYPE_F32, (char *)x->out + (size_t)(to * cols) * size, x->dtype, cols);
    }
    return ct_st_writer_add(w, x->out, (size_t)numel * size, err);
}

static ct_status write_file(export *x, const char *name, int32_t first, int32_t n, ct_err *err)
{
    ct_st_spec *specs = CT_NEW_ARRAY(x->alloc, ct_st_spec, n, err);
    cti_hf_tensor *tensors = CT_NEW_ARRAY(x->alloc, cti_hf_tensor, n, err);
    char *path = cti_path_join(x->alloc, x->folder, name, err);
    ct_st_writer *w = NULL;
    char hex[33];
    int64_t size = 0;
    ct_status st = specs != NULL && tensors != NULL && path != NULL ? CT_OK : CT_ERR_MEMORY;
    for (int32_t i = 0; i < n && st == CT_OK; i++) {
        cti_hf_tensor_at(x->shape, first + i, &tensors[i]);
        specs[i] = (ct_st_spec){tensors[i].hf, x->dtype, tensors[i].ndim, {tensors[i].dims[0], tensors[i].dims[1]}};
        x->total_bytes += tensors[i].dims[0] * tensors[i].dims[1] * (int64_t)ct_dtype_size_bytes(x->dtype);
        st = json_object_set_new(x->map, tensors[i].hf, json_string(name)) == 0 ? CT_OK : CT_ERR_MEMORY;
    }
    if (st == CT_OK) {
        st = ct_st_writer_open(x->alloc, path, specs, n, &w, err);
    }
    for (int32_t i = 0; i < n && st == CT_OK; i++) {
        st = write_tensor(x, w, &tensors[i], err);
    }
    if (st == CT_OK) {
        st = ct_st_writer_finish(&w, &size, hex, err);
    } else {
        ct_st_writer_abort(&w);
    }
    ct_alloc_free(x->alloc, specs);
    ct_alloc_free(x->alloc, tensors);
    ct_alloc_free(x->alloc, path);
    return st;
}

static int64_t tensor_bytes(const export *x, int32_t i)
{
    cti_hf_tensor t;
    cti_hf_tensor_at(x->shape, i, &t);
    return t.dims[0] * t.dims[1] * (int64_t)ct_dtype_size_bytes(x->dtype);
}

/* First tensor of the file after the one that begins at `first`. */
static int32_t file_end(const export *x, int32_t first, int64_t max_bytes)
{
    const int32_t n = cti_hf_n_tensors(x->shape);
    int64_t bytes = 0;
    int32_t i = first;
    for (; i < n && (i == first || bytes + tensor_bytes(x, i) <= max_bytes); i++) {
        bytes += tensor_bytes(x, i);
    }
    return i;
}

static ct_status write_files(export *x, int64_t max_bytes, ct_err *err)
{
    const int32_t n = cti_hf_n_tensors(x->shape);
    int32_t n_files = 0;
    for (int32_t at = 0; at < n; at = file_end(x, at, max_bytes)) {
        n_files++;
    }
    for (int32_t at = 0, f = 1; at < n; f++) {
        char name[64];
        const int32_t end = file_end(x, at, max_bytes);
        (void)snprintf(name, sizeof name, n_files == 1 ? "model.safetensors" : "model-%05d-of-%05d.safetensors", f, n_files);
        CT_TRY(write_file(x, name, at, end - at, err));
        at = end;
    }
    if (n_files == 1) {
        return CT_OK;
    }
    json_t *index = json_pack("{s:{s:I}, s:O}", "metadata", "total_size", (json_int_t)x->total_bytes, "weight_map", x->map);
    char *path = cti_path_join(x->alloc, x->folder, "model.safetensors.index.json", err);
    const ct_status st = index != NULL && path != NULL ? cti_json_write_file(path, index, 2, err) : CT_ERR_MEMORY;
    ct_alloc_free(x->alloc, path);
    json_decref(index);
    return st;
}

/* An export that was there before stays whole until this one is. */
static ct_status put_in_place(const export *x, const char *folder, ct_err *err)
{
    cti_str old = {.alloc = x->alloc}, parent = {.alloc = x->alloc};
    const size_t parent_len = (size_t)(cti_path_base(folder) - folder);
    cti_str_printf(&old, "%s.old", folder);
    cti_str_add_n(&parent, parent_len > 0 ? folder : "./", parent_len > 0 ? parent_len : 2);
    ct_status st = cti_str_check(parent.failed ? &parent : &old, err);
    if (st == CT_OK && cti_path_exists(cti_str_text(&old))) {
        st = cti_path_exists(folder) ? cti_remove_tree(cti_str_text(&old), err) : cti_rename(cti_str_text(&old), folder, err);
    }
    if (st == CT_OK) {
        st = cti_ckpt_put_in_place(cti_str_text(&parent), x->folder, folder, cti_str_text(&old), err);
    }
    cti_str_deinit(&old);
    cti_str_deinit(&parent);
    return st;
}

ct_status ct_hf_write(const ct_alloc *alloc, const char *folder, const ct_hf_shape *shape, ct_dtype dtype,
                      int64_t max_file_bytes, ct_hf_source source, void *ctx, ct_err *err)
{
    cti_str temp = {.alloc = alloc};
    export x = {.alloc = alloc, .shape = shape, .dtype = dtype, .source = source, .ctx = ctx, .map = json_object()};
    int64_t largest = 0;
    for (int32_t i = 0; i < cti_hf_n_tensors(shape); i++) {
        largest = cti_max_i64(largest, tensor_bytes(&x, i) / (int64_t)ct_dtype_size_bytes(dtype));
    }
    x.rows = CT_NEW_ARRAY(alloc, float, largest, err);
    x.out = ct_alloc_zeroed(alloc, (size_t)largest, ct_dtype_size_bytes(dtype), err);
    cti_str_printf(&temp, "%s.tmp", folder);
    x.folder = cti_str_text(&temp);
    ct_status st = x.rows != NULL && x.out != NULL && x.map != NULL ? cti_str_check(&temp, err) : CT_ERR_MEMORY;
    if (st == CT_OK && cti_path_exists(x.folder)) {
        st = cti_remove_tree(x.folder, err); /* of an export that was cut off */
    }
    st = st == CT_OK ? cti_make_dirs(x.folder, err) : st;
    st = st == CT_OK ? write_files(&x, max_file_bytes > 0 ? max_file_bytes : INT64_C(5000000000), err) : st;
    st = st == CT_OK ? write_config(&x, err) : st;
    st = st == CT_OK ? cti_fsync_path(x.folder, err) : st;
    st = st == CT_OK ? put_in_place(&x, folder, err) : st;
    if (st != CT_OK && x.folder[0] != '\0') { /* gives the space back; the next export would do it, too */
        const ct_status ignored = cti_remove_tree(x.folder, NULL);
        (void)ignored;
    }
    json_decref(x.map);
    ct_alloc_free(alloc, x.rows);
    ct_alloc_free(alloc, x.out);
    cti_str_deinit(&temp);
    return st;
}
