/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: ckpt base */
/* Mutated safetensors files, indexes and config.json of Hugging Face folders, manifests, descriptions that ranks leave for the commit, and files
 * of checkpoints whose size and checksum the manifest tells right: refused with a reason, or every element can be read. */
#include <fcntl.h>
#include <unistd.h>

#include "base/hash.h"
#include "ckpt/ckpt.h"
#include "ckpt/hf.h"
#include "ckpt/safetensors.h"
#include "fuzz/fuzz.h"

static const ct_alloc *alloc;
static char folder[200];

static const char *const words[] = {"{", "}", "[", "]", "\"", ",", ":", "0", "-1", "9223372036854775807", "9223372036854775808", "1e308", "null", "true",
                                    "\"dims\": [4294967296, 4294967296, 4294967296]", "\"shape\":[0]", "\"shape\":[2,0]", "\"data_offsets\":[0,0]",
                                    "\"dtype\":\"F32\"", "\"dtype\":\"F4\"", "\"dtype\":\"XYZ\"", "\"columns\": [0, 3]", "\"columns\": [1]", "\"begin\": 0",
                                    "\"end\": 4", "\"pieces\": []", "\"files\": {}", "\"tensors\": {}", "\"step\": 7", "__metadata__", "../x", "/", "..",
                                    "model-00001-of-00002.safetensors", "rank-00000-of-00002.safetensors", "a@0-17", "b", "\\u0000", "\xff"};

static void put(const char *path, const void *data, size_t size)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    assert_true(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    assert_int_equal(close(fd), 0);
}

static void take(const char *path, cti_str *out)
{
    char *data;
    size_t size;
    ct_err err = {0};
    assert_int_equal(cti_file_read(alloc, path, 0, &data, &size, &err), CT_OK);
    *out = (cti_str){.alloc = alloc};
    cti_str_add_n(out, data, size);
    ct_alloc_free(alloc, data);
}

static const char *in(char out[300], const char *name)
{
    assert_true(snprintf(out, 300, "%s/%s", folder, name) < 300);
    return out;
}

static void refused(const fuzz_case *c, ct_status st, const ct_err *err)
{
    if (st == CT_OK || st == CT_ERR_MEMORY || err->message[0] == '\0' || memchr(err->message, '\0', sizeof err->message) == NULL) {
        fail_msg("seed %llu: %s '%s'", (unsigned long long)c->seed, ct_status_name(st), err->message);
    }
}

/* Begins and ends with the words of a JSON text; of a safetensors file, whose header's length is mended more often than not. */
static void mutate_file(fuzz_case *c, cti_str *bytes, const cti_str *sample)
{
    fuzz_mutate(c, bytes, sample->data, sample->len, words, N_OF(words));
    if (fuzz_below(c, 4) > 0 && bytes->len >= 16) {
        size_t end = bytes->len; /* of the header: behind the last brace */
        while (end > 8 && bytes->data[end - 1] != '}') {
            end--;
        }
        const uint64_t header = end > 8 ? end - 8 : 0;
        memcpy(bytes->data, &header, sizeof header);
    }
}

/* ---- safetensors ------------------------------------------------------------------------------------------------- */

static uint64_t sum_of(const unsigned char *data, size_t size)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < size; i++) {
        sum += data[i];
    }
    return sum;
}

static bool check_safetensors(fuzz_case *c, const char *path)
{
    ct_st *st = NULL;
    ct_err err = {0};
    const ct_status status = ct_st_open(alloc, path, &st, &err);
    if (status != CT_OK) {
        refused(c, status, &err);
        return false;
    }
    volatile uint64_t sum = 0;
    for (int32_t i = 0; i < ct_st_n_tensors(st); i++) {
        const ct_st_tensor *t = ct_st_at(st, i);
        sum += sum_of(t->data, t->size_bytes);
        assert_ptr_equal(ct_st_find(st, t->name)->name, t->name);
    }
    (void)sum;
    ct_st_close(&st);
    return true;
}

/* ---- Hugging Face folders ---------------------------------------------------------------------------------------- */

static const ct_hf_shape shape = {.dim = 8, .n_layers = 1, .n_heads = 2, .n_kv_heads = 1, .head_dim = 4, .ffn_hidden = 12, .vocab_size = 10,
                                  .rope_theta = 10000.0, .norm_eps = 1e-5, .max_seq_len = 64, .bos_id = -1, .eos_id = -1};

static ct_status ones(void *ctx, const char *name, int64_t begin, int64_t end, float *dst, ct_err *err)
{
    (void)ctx;
    (void)name;
    (void)err;
    for (int64_t i = begin; i < end; i++) {
        dst[i - begin] = 1.0F;
    }
    return CT_OK;
}

static bool check_hf(const fuzz_case *c, const char *path)
{
    static const char *const names[] = {"tok_embeddings.weight", "layers.0.attention.qkv_linear.wq.weight", "layers.0.attention.qkv_linear.wk.weight",
                                        "layers.0.feed_forward.w2.weight", "norm.weight", "lm_head.weight", "output.weight"};
    static const int64_t sizes[] = {80, 64, 32, 96, 8, 80, 80};
    ct_hf *hf = NULL;
    ct_err err = {0};
    const ct_status st = ct_hf_open(alloc, path, &shape, &hf, &err);
    if (st != CT_OK) {
        refused(c, st, &err);
        return false;
    }
    for (size_t i = 0; i < N_OF(names); i++) {
        float got[96];
        ct_err none = {0};
        const ct_status read = ct_hf_read(hf, names[i], 0, sizes[i], CT_DTYPE_F32, got, &none);
        assert_true(read == CT_OK || read == CT_ERR_NOT_FOUND); /* the head has one of two names */
    }
    ct_hf_close(&hf);
    return true;
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

enum { WORLD = 2, N_A = 35, N_B = 12 };

static ct_status source(void *ctx, int32_t piece, int64_t begin, int64_t end, void *dst, ct_err *err)
{
    (void)ctx;
    (void)piece;
    (void)err;
    for (int64_t i = begin; i < end; i++) {
        ((float *)dst)[i - begin] = (float)i;
    }
    return CT_OK;
}

/* "a" in two runs, "b" in columns. */
static void write_ranks(const char *at, const char *token)
{
    ct_err err = {0};
    for (int r = 0; r < WORLD; r++) {
        const ct_ckpt_piece pieces[] = {{"a", CT_DTYPE_F32, 2, {7, 5}, r == 0 ? 0 : 17, r == 0 ? 17 : N_A, 0, 0},
                                        {"b", CT_DTYPE_F32, 2, {4, 3}, 0, r == 0 ? 4 : 8, r, r + 1}};
        assert_int_equal(ct_ckpt_write_rank(alloc, at, 7, token, r, WORLD, pieces, 2, source, NULL, &err), CT_OK);
    }
}

static bool check_checkpoint(fuzz_case *c, const char *at)
{
    ct_ckpt *ckpt = NULL;
    ct_err err = {0};
    cti_str notes = {.alloc = alloc};
    const ct_status st = fuzz_below(c, 2) == 0 ? ct_ckpt_open(alloc, at, -1, &ckpt, &notes, &err) : ct_ckpt_open_verified(alloc, at, 7, &ckpt, &err);
    if (st != CT_OK) {
        refused(c, st, &err);
    }
    const ct_ckpt_piece *t;
    for (size_t i = 0; st == CT_OK && (t = ct_ckpt_tensor_at(ckpt, i)) != NULL; i++) {
        if (t->end > 4096) {
            fail_msg("seed %llu: '%s' has %lld elements, the files hold fewer", (unsigned long long)c->seed, t->name, (long long)t->end);
        }
        char *got = ct_alloc_zeroed(alloc, (size_t)t->end + 1, 8, NULL);
        const int64_t middle = (int64_t)fuzz_below(c, (size_t)t->end + 1);
        assert_int_equal(ct_ckpt_read(ckpt, t->name, 0, middle, t->dtype, got, &err), CT_OK);
        assert_int_equal(ct_ckpt_read(ckpt, t->name, middle, t->end, t->dtype, got, &err), CT_OK);
        ct_alloc_free(alloc, got);
    }
    ct_ckpt_close(&ckpt);
    cti_str_deinit(&notes);
    return st == CT_OK;
}

/* Size and checksum of the changed file, told by the manifest. */
static void mend_manifest(const cti_str *manifest, const cti_str *file, const char *path)
{
    char hex[33], line[300];
    cti_hash128_hex(file->data, file->len, hex);
    json_t *json = json_loadb(manifest->data, manifest->len, 0, NULL);
    json_t *facts = json_object_get(json_object_get(json, "files"), "rank-00000-of-00002.safetensors");
    assert_true(json_object_set_new(facts, "size", json_integer((json_int_t)file->len)) == 0);
    assert_true(json_object_set_new(facts, "xxh3_128", json_string(hex)) == 0);
    char *text = json_dumps(json, 0);
    assert_non_null(text);
    put(in(line, path), text, strlen(text));
    free(text);
    json_decref(json);
}

int main(void)
{
    enum { ST, INDEX, CONFIG, MANIFEST, FACTS, FILE_OF_RANK, N_KINDS };
    static const char *const kinds[N_KINDS] = {"safetensors", "index", "config", "manifest", "facts", "file of a rank"};
    int64_t n_taken[N_KINDS] = {0}, n_cases[N_KINDS] = {0};
    cti_str shard, index, config, manifest, facts, file, bytes = {.alloc = alloc};
    char path[300], more[300];
    ct_err err = {0};
    alloc = bytes.alloc = ct_alloc_system();
    snprintf(folder, sizeof folder, "%s/ctitan-fuzz-ckpt-%d", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (int)getpid());
    assert_int_equal(ct_hf_write(alloc, in(path, "hf"), &shape, CT_DTYPE_F32, 1200, ones, NULL, &err), CT_OK);
    write_ranks(in(path, "ckpt"), "t");
    take(in(more, "ckpt/.tmp-step-7-t/rank-00001-of-00002.json"), &facts);
    assert_int_equal(ct_ckpt_commit(alloc, path, 7, "t", WORLD, NULL, &err), CT_OK);
    take(in(path, "ckpt/step-7/manifest.json"), &manifest);
    take(in(path, "ckpt/step-7/rank-00000-of-00002.safetensors"), &file);
    cti_names names = {0};
    assert_int_equal(cti_list_dir(alloc, in(path, "hf"), &names, &err), CT_OK);
    for (size_t i = 0; i < names.n; i++) {
        if (cti_starts_with(names.names[i], "model-00001")) {
            snprintf(more, sizeof more, "hf/%s", names.names[i]);
            take(in(path, more), &shard);
        }
    }
    cti_names_free(alloc, &names);
    take(in(path, "hf/model.safetensors.index.json"), &index);
    take(in(path, "hf/config.json"), &config);
    for (fuzz_case c = fuzz_begin("checkpoint_files", 3000); fuzz_next(&c);) {
        const size_t kind = fuzz_below(&c, N_KINDS);
        bool taken = false;
        n_cases[kind]++;
        if (kind == ST) {
            mutate_file(&c, &bytes, fuzz_below(&c, 2) == 0 ? &shard : &file);
            put(in(path, "one.safetensors"), bytes.data, bytes.len);
            taken = check_safetensors(&c, path);
        } else if (kind == INDEX || kind == CONFIG) {
            const cti_str *sample = kind == INDEX ? &index : &config;
            const char *name = kind == INDEX ? "hf/model.safetensors.index.json" : "hf/config.json";
            fuzz_mutate(&c, &bytes, sample->data, sample->len, words, N_OF(words));
            put(in(more, name), bytes.data, bytes.len);
            taken = check_hf(&c, in(path, "hf"));
            put(more, sample->data, sample->len);
        } else if (kind == MANIFEST) {
            fuzz_mutate(&c, &bytes, manifest.data, manifest.len, words, N_OF(words));
            put(in(more, "ckpt/step-7/manifest.json"), bytes.data, bytes.len);
            taken = check_checkpoint(&c, in(path, "ckpt"));
            put(more, manifest.data, manifest.len);
        } else if (kind == FACTS) {
            write_ranks(in(path, "new"), "t");
            fuzz_mutate(&c, &bytes, facts.data, facts.len, words, N_OF(words));
            put(in(more, "new/.tmp-step-7-t/rank-00001-of-00002.json"), bytes.data, bytes.len);
            err = (ct_err){0};
            const ct_status st = ct_ckpt_commit(alloc, path, 7, "t", WORLD, NULL, &err);
            if (st != CT_OK) {
                refused(&c, st, &err);
            } else {
                taken = check_checkpoint(&c, path);
            }
            err = (ct_err){0};
            assert_int_equal(cti_remove_tree(path, &err), CT_OK);
        } else {
            mutate_file(&c, &bytes, &file);
            put(in(path, "ckpt/step-7/rank-00000-of-00002.safetensors"), bytes.data, bytes.len);
            mend_manifest(&manifest, &bytes, "ckpt/step-7/manifest.json");
            taken = check_checkpoint(&c, in(more, "ckpt"));
            put(path, file.data, file.len);
            put(in(more, "ckpt/step-7/manifest.json"), manifest.data, manifest.len);
        }
        n_taken[kind] += taken;
    }
    for (int k = 0; k < N_KINDS; k++) {
        printf("%s: %lld of %lld taken\n", kinds[k], (long long)n_taken[k], (long long)n_cases[k]);
    }
    cti_str *all[] = {&shard, &index, &config, &manifest, &facts, &file, &bytes};
    for (size_t i = 0; i < N_OF(all); i++) {
        cti_str_deinit(all[i]);
    }
    assert_int_equal(cti_remove_tree(folder, &err), CT_OK);
    return 0;
}
