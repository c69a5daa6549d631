/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: ckpt base */
/* labels: fast */
/* Checkpoints written by random layouts read back by any range; damaged ones are passed over or refused by name; retention keeps the newest;
 * Hugging Face folders go there and back byte for byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "ckpt/hf.h"
#include "ckpt/safetensors.h"

static const ct_alloc *alloc;
static char folder[256];

static void ok(ct_status st, const ct_err *err)
{
    if (st != CT_OK) {
        fail_msg("%s: %s", ct_status_name(st), err->message);
    }
}

/* Element i of tensor t at a step. */
static float value_of(int t, int64_t i, int64_t step)
{
    return (float)(t * 1000 + i) + (float)step / 128.0F;
}

typedef struct writer {
    const ct_ckpt_piece *pieces;
    int64_t step;
} writer;

static ct_status source(void *ctx, int32_t piece, int64_t begin, int64_t end, void *dst, ct_err *err)
{
    const writer *w = ctx;
    (void)err;
    assert_true(begin >= w->pieces[piece].begin && end <= w->pieces[piece].end && end - begin <= 1 << 20);
    for (int64_t i = begin; i < end; i++) {
        const ct_ckpt_piece *p = &w->pieces[piece];
        const int64_t at = p->n_columns > 0 ? i / p->n_columns * p->dims[1] + p->column + i % p->n_columns : i;
        ((float *)dst)[i - begin] = value_of(p->name[1] - '0', at, w->step);
    }
    return CT_OK;
}

enum { N_TENSORS = 4 };
static const int64_t dims[N_TENSORS][2] = {{7, 5}, {1, 1}, {64, 33}, {3, 257}};

/* Cuts every tensor at random places over `world` ranks, some of which get nothing. */
static void save(int64_t step, int world, uint64_t seed)
{
    const cti_rng_key key = cti_rng_key_make(seed, "layout");
    ct_err err = {0};
    int64_t at[N_TENSORS] = {0};
    char token[17];
    snprintf(token, sizeof token, "t%llu", (unsigned long long)seed);
    for (int r = 0; r < world; r++) {
        static const char *const names[N_TENSORS] = {"t0", "t1", "t2", "t3"};
        ct_ckpt_piece pieces[N_TENSORS];
        for (int t = 0; t < N_TENSORS; t++) {
            const int64_t numel = dims[t][0] * dims[t][1], left = numel - at[t];
            const int64_t n = r == world - 1 ? left : (int64_t)cti_rng_below(key, (uint64_t)(r * N_TENSORS + t), (uint64_t)left + 1);
            pieces[t] = (ct_ckpt_piece){names[t], CT_DTYPE_F32, 2, {dims[t][0], dims[t][1]}, at[t], at[t] + n, 0, 0};
            at[t] += n;
        }
        writer w = {pieces, step};
        ok(ct_ckpt_write_rank(alloc, folder, step, token, r, world, pieces, N_TENSORS, source, &w, &err), &err);
    }
    json_t *extra = json_pack("{s:I}", "step", (json_int_t)step);
    ok(ct_ckpt_commit(alloc, folder, step, token, world, extra, &err), &err);
    json_decref(extra);
}

/* The same, where some tensors are cut into two or three blocks of columns first, each of them over the ranks. */
static void save_columns(int64_t step, int world, uint64_t seed)
{
    enum { MAX_BLOCKS = 3 };
    static const char *const names[N_TENSORS] = {"t0", "t1", "t2", "t3"};
    const cti_rng_key key = cti_rng_key_make(seed, "columns");
    ct_err err = {0};
    int64_t at[N_TENSORS][MAX_BLOCKS] = {{0}}, cut[N_TENSORS][MAX_BLOCKS + 1];
    int n_blocks[N_TENSORS];
    char token[17];
    snprintf(token, sizeof token, "c%llu", (unsigned long long)seed);
    for (int t = 0; t < N_TENSORS; t++) {
        n_blocks[t] = dims[t][1] >= MAX_BLOCKS ? 1 + (int)cti_rng_below(key, 900 + (uint64_t)t, MAX_BLOCKS) : 1;
        for (int b = 0; b <= n_blocks[t]; b++) {
            cut[t][b] = dims[t][1] * b / n_blocks[t];
        }
    }
    for (int r = 0; r < world; r++) {
        ct_ckpt_piece pieces[N_TENSORS * MAX_BLOCKS];
        int n = 0;
        for (int t = 0; t < N_TENSORS; t++) {
            for (int b = 0; b < n_blocks[t]; b++) {
                const int64_t columns = cut[t][b + 1] - cut[t][b], left = dims[t][0] * columns - at[t][b];
                const int64_t some = r == world - 1 ? left : (int64_t)cti_rng_below(key, (uint64_t)(r * 16 + t * 4 + b), (uint64_t)left + 1);
                pieces[n++] = (ct_ckpt_piece){names[t], CT_DTYPE_F32, 2, {dims[t][0], dims[t][1]}, at[t][b], at[t][b] + some,
                                              n_blocks[t] > 1 ? cut[t][b] : 0, n_blocks[t] > 1 ? columns : 0};
                at[t][b] += some;
            }
        }
        writer w = {pieces, step};
        ok(ct_ckpt_write_rank(alloc, folder, step, token, r, world, pieces, n, source, &w, &err), &err);
    }
    json_t *extra = json_pack("{s:I}", "step", (json_int_t)step);
    ok(ct_ckpt_commit(alloc, folder, step, token, world, extra, &err), &err);
    json_decref(extra);
}

/* A column that no rank saved is named. */
static void test_missing_columns(void **state)
{
    (void)state;
    ct_err err = {0};
    const ct_ckpt_piece piece = {"t0", CT_DTYPE_F32, 2, {7, 5}, 0, 7 * 3, 0, 3};
    writer w = {&piece, 1};
    ok(ct_ckpt_write_rank(alloc, folder, 900, "gap", 0, 1, &piece, 1, source, &w, &err), &err);
    assert_int_equal(ct_ckpt_commit(alloc, folder, 900, "gap", 1, NULL, &err), CT_ERR_FORMAT);
    assert_non_null(strstr(err.message, "saved 3 of its 5 columns whole"));
}

static void check(const ct_ckpt *ckpt, uint64_t seed)
{
    const cti_rng_key key = cti_rng_key_make(seed, "read");
    ct_err err = {0};
    for (int t = 0; t < N_TENSORS; t++) {
        const char name[3] = {'t', (char)('0' + t), '\0'};
        const ct_ckpt_piece *p = ct_ckpt_find(ckpt, name);
        assert_non_null(p);
        assert_true(p->ndim == 2 && p->dims[0] == dims[t][0] && p->dims[1] == dims[t][1]);
        const int64_t numel = dims[t][0] * dims[t][1];
        for (uint64_t k = 0; k < 8; k++) {
            const int64_t begin = (int64_t)cti_rng_below(key, 100 * (uint64_t)t + 2 * k, (uint64_t)numel);
            const int64_t end = begin + 1 + (int64_t)cti_rng_below(key, 100 * (uint64_t)t + 2 * k + 1, (uint64_t)(numel - begin));
            float *got = CT_NEW_ARRAY(alloc, float, end - begin, &err);
            ok(ct_ckpt_read(ckpt, name, begin, end, CT_DTYPE_F32, got, &err), &err);
            for (int64_t i = begin; i < end; i++) {
                assert_true(got[i - begin] == value_of(t, i, ct_ckpt_step(ckpt)));
            }
            ct_alloc_free(alloc, got);
        }
        float one;
        assert_int_equal(ct_ckpt_read(ckpt, name, 0, numel + 1, CT_DTYPE_F32, &one, NULL), CT_ERR_RANGE);
    }
    float one;
    assert_int_equal(ct_ckpt_read(ckpt, "t9", 0, 1, CT_DTYPE_F32, &one, NULL), CT_ERR_NOT_FOUND);
}

static void test_layouts(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        ct_err err = {0};
        ct_ckpt *ckpt = NULL;
        const int64_t step = (int64_t)seed;
        save(step, 1 + (int)(seed % 5), seed);
        ok(ct_ckpt_open(alloc, folder, -1, &ckpt, NULL, &err), &err);
        assert_int_equal(ct_ckpt_step(ckpt), step);
        assert_int_equal(json_integer_value(json_object_get(ct_ckpt_extra(ckpt), "step")), step);
        check(ckpt, seed);
        ct_ckpt_close(&ckpt);
        save(step, 1 + (int)(seed % 3), seed + 1000); /* the same step again takes its place */
        ok(ct_ckpt_open(alloc, folder, step, &ckpt, NULL, &err), &err);
        check(ckpt, seed);
        ct_ckpt_close(&ckpt);
        save_columns(step, 1 + (int)(seed % 4), seed + 2000);
        ok(ct_ckpt_open(alloc, folder, step, &ckpt, NULL, &err), &err);
        check(ckpt, seed);
        ct_ckpt_close(&ckpt);
    }
}

static void damage(int64_t step)
{
    char cmd[512];
    snprintf(cmd, sizeof cmd, "f=$(ls %s/step-%lld/*.safetensors | head -1); printf X | dd of=\"$f\" bs=1 seek=900 conv=notrunc status=none",
             folder, (long long)step);
    assert_int_equal(system(cmd), 0);
}

static void test_damage_and_retention(void **state)
{
    (void)state;
    ct_err err = {0};
    ct_ckpt *ckpt = NULL;
    cti_str notes = {.alloc = alloc};
    ok(ct_ckpt_retain(alloc, folder, 3, NULL, NULL, &err), &err);
    assert_int_equal(ct_ckpt_open(alloc, folder, 21, &ckpt, NULL, NULL), CT_ERR_NOT_FOUND); /* 22, 23, 24 stay */
    damage(24);
    ok(ct_ckpt_open(alloc, folder, -1, &ckpt, &notes, &err), &err);
    assert_int_equal(ct_ckpt_step(ckpt), 23);
    assert_non_null(strstr(cti_str_text(&notes), "step-24"));
    ct_ckpt_close(&ckpt);
    assert_int_not_equal(ct_ckpt_open(alloc, folder, 24, &ckpt, NULL, &err), CT_OK); /* asked for by number: an error */
    assert_non_null(strstr(err.message, "step-24"));
    ok(ct_ckpt_newest(alloc, "/tmp/ctitan-no-such-folder", &ckpt, NULL, NULL, &err), &err);
    assert_null(ckpt);
    /* One that is known to be damaged counts for nothing, and stays; another rank's word is taken for checksums, not for sizes. */
    ct_ckpt_steps damaged = {0};
    ok(ct_ckpt_newest(alloc, folder, &ckpt, &damaged, NULL, &err), &err);
    ct_ckpt_close(&ckpt);
    assert_true(damaged.n == 1 && damaged.steps[0] == 24);
    err = (ct_err){0};
    ok(ct_ckpt_retain(alloc, folder, 2, &damaged, NULL, &err), &err);
    ok(ct_ckpt_open(alloc, folder, 22, &ckpt, NULL, &err), &err);
    ct_ckpt_close(&ckpt);
    ok(ct_ckpt_open_verified(alloc, folder, 24, &ckpt, &err), &err);
    ct_ckpt_close(&ckpt);
    ok(ct_ckpt_retain(alloc, folder, 1, &damaged, NULL, &err), &err);
    assert_int_equal(ct_ckpt_open(alloc, folder, 22, &ckpt, NULL, NULL), CT_ERR_NOT_FOUND);
    ok(ct_ckpt_open(alloc, folder, 23, &ckpt, NULL, &err), &err);
    ct_ckpt_close(&ckpt);
    cti_str_deinit(&notes);
}

/* The newest are those of the largest numbers, not of the last names: at each moment two are kept. */
static void test_retention_by_number(void **state)
{
    (void)state;
    static const int64_t steps[] = {8, 9, 10, 11, 100};
    enum { N = sizeof steps / sizeof steps[0] };
    ct_err err = {0};
    ct_ckpt *ckpt = NULL;
    char outer[sizeof folder];
    memcpy(outer, folder, sizeof outer);
    snprintf(folder, sizeof folder, "%.200s/numbers", outer);
    for (int i = 0; i < N; i++) {
        save(steps[i], 2, (uint64_t)steps[i]);
        ok(ct_ckpt_retain(alloc, folder, 2, NULL, NULL, &err), &err);
        for (int j = 0; j <= i; j++) {
            const ct_status st = ct_ckpt_open(alloc, folder, steps[j], &ckpt, NULL, NULL);
            assert_int_equal(st, j + 2 > i ? CT_OK : CT_ERR_NOT_FOUND);
            ct_ckpt_close(&ckpt);
        }
        ok(ct_ckpt_newest(alloc, folder, &ckpt, NULL, NULL, &err), &err);
        assert_int_equal(ct_ckpt_step(ckpt), steps[i]);
        ct_ckpt_close(&ckpt);
    }
    memcpy(folder, outer, sizeof outer);
}

static ct_status hf_source(void *ctx, const char *name, int64_t begin, int64_t end, float *dst, ct_err *err)
{
    (void)ctx;
    (void)err;
    const cti_rng_key key = cti_rng_key_make(3, name);
    for (int64_t i = begin; i < end; i++) {
        dst[i - begin] = cti_bf16_to_f32(cti_f32_to_bf16((float)cti_rng_normal(key, (uint64_t)i)));
    }
    return CT_OK;
}

static ct_status hf_back(void *ctx, const char *name, int64_t begin, int64_t end, float *dst, ct_err *err)
{
    return ct_hf_read(ctx, name, begin, end, CT_DTYPE_F32, dst, err);
}

static void test_hugging_face(void **state)
{
    (void)state;
    ct_err err = {0};
    char a[300], b[300], cmd[700];
    snprintf(a, sizeof a, "%s/hf-a", folder);
    snprintf(b, sizeof b, "%s/hf-b", folder);
    for (int tied = 0; tied < 2; tied++) {
        for (int dtype = 0; dtype < 2; dtype++) {
            const ct_hf_shape shape = {.dim = 32, .n_layers = 2, .n_heads = 4, .n_kv_heads = 2, .head_dim = 8, .ffn_hidden = 48,
                                       .vocab_size = 100, .rope_theta = 500000.0, .norm_eps = 1e-5, .is_tied = tied,
                                       .has_rope_scaling = true, .rope_factor = 8, .rope_low_freq_factor = 1,
                                       .rope_high_freq_factor = 4, .rope_original_max = 8192, .max_seq_len = 64, .bos_id = 1,
                                       .eos_id = 2};
            const ct_dtype d = dtype == 0 ? CT_DTYPE_F32 : CT_DTYPE_BF16;
            ct_hf *hf = NULL;
            ok(ct_hf_write(alloc, a, &shape, d, 4096, hf_source, NULL, &err), &err); /* several files and an index */
            ok(ct_hf_open(alloc, a, &shape, &hf, &err), &err);
            float want[256], got[256];
            ok(hf_source(NULL, "layers.1.attention.qkv_linear.wk.weight", 33, 289, want, &err), &err);
            ok(ct_hf_read(hf, "layers.1.attention.qkv_linear.wk.weight", 33, 289, CT_DTYPE_F32, got, &err), &err);
            assert_memory_equal(want, got, sizeof want);
            ok(ct_hf_write(alloc, b, &shape, d, 4096, hf_back, hf, &err), &err);
            ct_hf_close(&hf);
            snprintf(cmd, sizeof cmd, "diff -r %s %s", a, b);
            assert_int_equal(system(cmd), 0);
            ct_hf_shape wrong = shape;
            wrong.ffn_hidden = 64;
            wrong.rope_theta = 10000.0;
            err = (ct_err){0};
            assert_int_equal(ct_hf_open(alloc, a, &wrong, &hf, &err), CT_ERR_SHAPE);
            assert_non_null(strstr(err.message, "model.layers.0.mlp.gate_proj.weight' is [48, 32], wanted [64, 32]"));
            assert_non_null(strstr(err.message, "rope_theta"));
            err = (ct_err){0};
        }
    }
}

/* ---- Hugging Face folders that are not as they should be ---------------------------------------------------------- */

static const ct_hf_shape small = {.dim = 8, .n_layers = 1, .n_heads = 2, .n_kv_heads = 1, .head_dim = 4, .ffn_hidden = 12, .vocab_size = 10,
                                  .rope_theta = 10000.0, .norm_eps = 1e-5, .max_seq_len = 64, .bos_id = -1, .eos_id = -1};

/* Norms of one value each, by native name; all else is `other`. */
static ct_status norms_source(void *ctx, const char *name, int64_t begin, int64_t end, float *dst, ct_err *err)
{
    (void)err;
    const float *other = ctx;
    const float value = strstr(name, "attention_norm") != NULL ? 2.0F : strstr(name, "ffn_norm") != NULL ? 3.0F : *other;
    for (int64_t i = begin; i < end; i++) {
        dst[i - begin] = value;
    }
    return CT_OK;
}

static void put_shape(const char *at, float other, int64_t max_file_bytes)
{
    ct_err err = {0};
    ok(ct_hf_write(alloc, at, &small, CT_DTYPE_F32, max_file_bytes, norms_source, &other, &err), &err);
}

static void sh(const char *command, const char *at)
{
    char line[700];
    snprintf(line, sizeof line, "cd '%s' && %s", at, command);
    assert_int_equal(system(line), 0);
}

static void hf_refused(const char *at, const char *says, const char *says_too)
{
    ct_err err = {0};
    ct_hf *hf = NULL;
    const ct_status st = ct_hf_open(alloc, at, &small, &hf, &err);
    if (st == CT_OK || strstr(err.message, says) == NULL || strstr(err.message, says_too) == NULL) {
        fail_msg("%s, '%s'; wanted '%s', '%s'", ct_status_name(st), err.message, says, says_too);
    }
}

static void expect_all(const char *at, const char *native, float want)
{
    ct_err err = {0};
    ct_hf *hf = NULL;
    float got[8];
    ok(ct_hf_open(alloc, at, &small, &hf, &err), &err);
    ok(ct_hf_read(hf, native, 0, 8, CT_DTYPE_F32, got, &err), &err);
    for (int i = 0; i < 8; i++) {
        assert_true(got[i] == want);
    }
    ct_hf_close(&hf);
}

/* The two norms of a block have the names that they have there, on the way out and on the way in. */
static void test_norms_keep_their_places(void **state)
{
    (void)state;
    ct_err err = {0};
    ct_st *st = NULL;
    char at[300], file[340];
    snprintf(at, sizeof at, "%s/norms", folder);
    snprintf(file, sizeof file, "%s/model.safetensors", at);
    put_shape(at, 0.5F, 0);
    ok(ct_st_open(alloc, file, &st, &err), &err);
    for (int i = 0; i < 8; i++) {
        assert_true(((const float *)(const void *)ct_st_find(st, "model.layers.0.input_layernorm.weight")->data)[i] == 2.0F);
        assert_true(((const float *)(const void *)ct_st_find(st, "model.layers.0.post_attention_layernorm.weight")->data)[i] == 3.0F);
    }
    ct_st_close(&st);
    expect_all(at, "layers.0.attention_norm.weight", 2.0F);
    expect_all(at, "layers.0.ffn_norm.weight", 3.0F);
    expect_all(at, "norm.weight", 0.5F);
}

/* Only the files of the index are read, all of them must be there, and none from elsewhere; without an index no tensor comes from two files. */
static void test_files_of_a_folder(void **state)
{
    (void)state;
    char at[300], old[300];
    snprintf(at, sizeof at, "%s/sharded", folder);
    snprintf(old, sizeof old, "%s/old", folder);
    put_shape(old, 9.0F, 0);
    put_shape(at, 0.5F, 1200); /* two files and more */
    sh("[ -f model-00002-of-*.safetensors ] && cp ../old/model.safetensors old.safetensors && cp ../old/model.safetensors a.safetensors", at);
    expect_all(at, "norm.weight", 0.5F);
    expect_all(at, "tok_embeddings.weight", 0.5F);
    sh("mv model-00002-of-*.safetensors hidden && mv model-00001-of-*.safetensors hidden.too", at);
    hf_refused(at, "'model-00001-of-", "'model-00002-of-");
    sh("mv hidden model-00002-of-x.safetensors && sed -i 's|\"model-00001-of|\"../model-00001-of|' model.safetensors.index.json", at);
    hf_refused(at, "beside the index", "../model-00001-of");
    sh("cp model.safetensors second.safetensors", old); /* model.safetensors is the model */
    expect_all(old, "norm.weight", 9.0F);
    sh("mv model.safetensors first.safetensors", old);
    hf_refused(old, "'model.norm.weight' is in 2 files", "'model.embed_tokens.weight' is in 2 files");
    sh("rm second.safetensors", old);
    expect_all(old, "norm.weight", 9.0F);
}

/* A dtype that we do not hold stops the load where the model needs the tensor, by name, and nowhere else. */
static void test_dtypes_of_a_folder(void **state)
{
    (void)state;
    ct_err err = {0};
    char at[300], file[340], *bytes = NULL;
    size_t size = 0;
    snprintf(at, sizeof at, "%s/dtypes", folder);
    snprintf(file, sizeof file, "%s/model.safetensors", at);
    put_shape(at, 0.5F, 0);
    ok(cti_file_read(alloc, file, 0, &bytes, &size, &err), &err);
    char *name = NULL;
    for (size_t i = 8; i + 20 < size && name == NULL; i++) {
        name = memcmp(bytes + i, "\"model.norm.weight\"", 19) == 0 ? bytes + i : NULL;
    }
    assert_non_null(name);
    char *dtype = strstr(name, "F32");
    memcpy(dtype, "XYZ", 3);
    ok(cti_file_write_atomic(file, bytes, size, &err), &err);
    hf_refused(at, "'model.norm.weight' has dtype XYZ", "F32, BF16, F16, F64");
    memcpy(dtype, "F32", 3);
    ok(cti_file_write_atomic(file, bytes, size, &err), &err);
    static const char header[] = "{\"scale\":{\"dtype\":\"F8_E8M0\",\"shape\":[2],\"data_offsets\":[0,2]},\"odd\":{\"dtype\":\"XYZ\",\"shape\":[1],\"data_offsets\":[2,5]}}";
    char more[400] = {0}; /* two tensors that no model needs, in a file of their own */
    more[0] = (char)(sizeof header - 1);
    memcpy(more + 8, header, sizeof header - 1);
    sh("mv model.safetensors first.safetensors", at);
    snprintf(file, sizeof file, "%s/more.safetensors", at);
    ok(cti_file_write_atomic(file, more, 8 + sizeof header - 1 + 5, &err), &err);
    expect_all(at, "norm.weight", 0.5F);
    ct_alloc_free(alloc, bytes);
}

int main(void)
{
    alloc = ct_alloc_system();
    snprintf(folder, sizeof folder, "/tmp/ctitan-ckpt-%d", (int)getpid());
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_missing_columns), cmocka_unit_test(test_layouts), cmocka_unit_test(test_damage_and_retention),
                                       cmocka_unit_test(test_retention_by_number),
                                       cmocka_unit_test(test_hugging_face), cmocka_unit_test(test_norms_keep_their_places),
                                       cmocka_unit_test(test_files_of_a_folder), cmocka_unit_test(test_dtypes_of_a_folder)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (failed == 0) {
        (void)!cti_remove_tree(folder, NULL);
    }
    return failed;
}
