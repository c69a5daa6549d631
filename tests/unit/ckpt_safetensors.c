/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: ckpt base */
/* labels: fast */
/* safetensors: what is written reads back; damaged files are refused by name; deterministic mutations of a header never crash the reader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "ckpt/safetensors.h"

static const ct_alloc *alloc;
static char path[256];

static void put_file(const char *header, uint64_t header_len, const void *data, size_t size)
{
    ct_err err = {0};
    cti_str s = {.alloc = alloc};
    unsigned char head[8];
    for (int i = 0; i < 8; i++) {
        head[i] = (unsigned char)(header_len >> (8 * i));
    }
    cti_str_add_n(&s, head, 8);
    cti_str_add(&s, header);
    cti_str_add_n(&s, data, size);
    assert_int_equal(cti_file_write_atomic(path, cti_str_text(&s), s.len, &err), CT_OK);
    cti_str_deinit(&s);
}

static void test_round_trip(void **state)
{
    (void)state;
    const ct_st_spec specs[] = {{"a", CT_DTYPE_F32, 2, {2, 3}}, {"empty", CT_DTYPE_F32, 2, {0, 5}},
                                {"scalar", CT_DTYPE_I64, 0, {0}}, {"b.é", CT_DTYPE_BF16, 1, {3}}};
    const float a[6] = {1, 2, 3, 4, 5, 6};
    const int64_t scalar = -7;
    const uint16_t b[3] = {1, 2, 3};
    ct_err err = {0};
    ct_st_writer *w = NULL;
    int64_t size, size2;
    char hex[33], hex2[33];
    assert_int_equal(ct_st_writer_open(alloc, path, specs, 4, &w, &err), CT_OK);
    assert_int_equal(ct_st_writer_add(w, a, 10, &err), CT_OK); /* in pieces of any size */
    assert_int_equal(ct_st_writer_add(w, (const char *)a + 10, 14, &err), CT_OK);
    assert_int_equal(ct_st_writer_add(w, &scalar, sizeof scalar, &err), CT_OK);
    assert_int_equal(ct_st_writer_add(w, b, sizeof b, &err), CT_OK);
    assert_int_equal(ct_st_writer_add(w, b, 1, &err), CT_ERR_STATE);
    assert_int_equal(ct_st_writer_finish(&w, &size, hex, &err), CT_OK);
    ct_st *st = NULL;
    err = (ct_err){0};
    if (ct_st_open(alloc, path, &st, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(ct_st_n_tensors(st), 4);
    assert_memory_equal(ct_st_find(st, "a")->data, a, sizeof a);
    assert_memory_equal(ct_st_find(st, "b.é")->data, b, sizeof b);
    assert_memory_equal(ct_st_find(st, "scalar")->data, &scalar, sizeof scalar);
    assert_int_equal(ct_st_find(st, "empty")->numel, 0);
    assert_null(ct_st_find(st, "c"));
    ct_st_hash(st, hex2, &size2);
    assert_string_equal(hex, hex2);
    assert_int_equal(size, size2);
    ct_st_close(&st);
    assert_int_equal(ct_st_writer_open(alloc, path, specs, 4, &w, &err), CT_OK);
    assert_int_equal(ct_st_writer_finish(&w, &size, hex, &err), CT_ERR_STATE); /* bytes never came */
    assert_null(w);
}

static void test_damaged(void **state)
{
    (void)state;
    static const struct {
        const char *what, *header;
        size_t data_bytes;
        const char *words;
    } rows[] = {
        {"fine", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, NULL},
        {"fine with metadata", "{\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1, NULL},
        {"no json", "{\"a\":", 0, ""},
        {"a list", "[1]", 0, "no JSON object"},
        {"twice", "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, ""},
        {"dtype", "{\"a\":{\"dtype\":\"F99\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "F99"},
        {"no dtype", "{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "dtype"},
        {"size", "{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8, "do not make"},
        {"negative dim", "{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8, "dim 0"},
        {"overflow", "{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,8]}}", 8, "overflow"},
        {"past the end", "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}", 8, "not within"},
        {"backwards", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, "not within"},
        {"hole", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "hole"},
        {"overlap", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "overlaps"},
        {"trailing", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 9, "follow"},
        {"offsets", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "data_offsets"},
        {"shape no list", "{\"a\":{\"dtype\":\"F32\",\"shape\":4,\"data_offsets\":[0,4]}}", 4, "shape"},
        {"float dim", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4, "dim 0"},
        {"metadata no object", "{\"__metadata__\":3}", 0, "__metadata__"},
    };
    const char zeros[32] = {0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ct_err err = {0};
        ct_st *st = NULL;
        put_file(rows[i].header, strlen(rows[i].header), zeros, rows[i].data_bytes);
        const ct_status status = ct_st_open(alloc, path, &st, &err);
        if (rows[i].words == NULL) {
            assert_int_equal(status, CT_OK);
            ct_st_close(&st);
            continue;
        }
        if (status != CT_ERR_FORMAT || strstr(err.message, path) == NULL || strstr(err.message, rows[i].words) == NULL) {
            fail_msg("%s: status %s, message '%s'", rows[i].what, ct_status_name(status), err.message);
        }
    }
    ct_err err = {0};
    ct_st *st = NULL;
    put_file("{}", UINT64_C(1) << 62, zeros, 0); /* a header longer than the file */
    assert_int_equal(ct_st_open(alloc, path, &st, &err), CT_ERR_FORMAT);
    assert_int_equal(cti_file_write_atomic(path, "abc", 3, NULL), CT_OK);
    assert_int_equal(ct_st_open(alloc, path, &st, NULL), CT_ERR_FORMAT);
    assert_int_equal(ct_st_open(alloc, "/nonexistent/x", &st, NULL), CT_ERR_NOT_FOUND);
}

/* Bytes changed, cut and doubled: any status, no crash, and what opens stays within the file. */
static void test_mutations(void **state)
{
    (void)state;
    static const char header[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"BF16\",\"shape\":[2,2],"
                                 "\"data_offsets\":[8,16]}}";
    int n_open = 0;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        const cti_rng_key key = cti_rng_key_make(seed, "safetensors");
        char copy[sizeof header];
        memcpy(copy, header, sizeof header);
        for (uint64_t k = 0; k < 1 + seed % 4; k++) {
            copy[cti_rng_below(key, 2 * k, sizeof header - 1)] = (char)(1 + cti_rng_below(key, 2 * k + 1, 127));
        }
        ct_st *st = NULL;
        put_file(copy, strlen(copy) - (seed % 17 == 0), "0123456789abcdef", seed % 5 == 0 ? 12 : 16);
        if (ct_st_open(alloc, path, &st, NULL) == CT_OK) {
            n_open++;
            unsigned sum = 0;
            for (int32_t t = 0; t < ct_st_n_tensors(st); t++) {
                for (size_t b = 0; b < ct_st_at(st, t)->size_bytes; b++) {
                    sum += ct_st_at(st, t)->data[b];
                }
            }
            assert_true(sum > 0);
            ct_st_close(&st);
        }
    }
    assert_true(n_open > 0);
}

int main(void)
{
    alloc = ct_alloc_system();
    snprintf(path, sizeof path, "/tmp/ctitan-st-%d.safetensors", (int)getpid());
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip), cmocka_unit_test(test_damaged),
                                       cmocka_unit_test(test_mutations)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(path);
    return failed;
}
