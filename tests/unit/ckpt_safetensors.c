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

/* Without fsync: thousands of these are written. */
static void put_bytes(const void *bytes, size_t size)
{
    (void)unlink(path); /* a new file: to write over one is slow on some file systems */
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void put_file(const char *header, uint64_t header_len, const void *data, size_t size)
{
    cti_str s = {.alloc = alloc};
    unsigned char head[8];
    for (int i = 0; i < 8; i++) {
        head[i] = (unsigned char)(header_len >> (8 * i));
    }
    cti_str_add_n(&s, head, 8);
    cti_str_add(&s, header);
    cti_str_add_n(&s, data, size);
    put_bytes(cti_str_text(&s), s.len);
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
        {"a list", "[1]", 0, "begins with '{'"},
        {"twice", "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}", 2, "duplicate"},
        {"blanks behind the header", "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}   ", 1, NULL},
        {"a blank before it", " {\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "begins with '{'"},
        {"metadata alone", "{\"__metadata__\":{\"k\":\"a \\\"quote\\\",\\na line, Ã©\"}}", 0, NULL},
        {"no dtype", "{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "dtype"},
        {"size", "{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8, "do not make"},
        {"size of two dims", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,20]}}", 20, "6 elements of F32 do not make the 20 bytes"},
        {"size of bytes", "{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[3],\"data_offsets\":[0,4]}}", 4, "do not make"},
        {"half a byte", "{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", 1, "do not make"},
        {"negative dim", "{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8, "dim 0"},
        {"overflow", "{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,8]}}", 8, "overflow"},
        {"overflow to 0", "{\"a\":{\"dtype\":\"F32\",\"shape\":[65536,65536,65536,65536],\"data_offsets\":[0,0]}}", 0, "overflow"},
        {"past the end", "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}", 8, "not within"},
        {"backwards", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, "no range"},
        {"hole", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "hole"},
        {"overlap", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "overlaps"},
        {"trailing", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 5, "1 bytes follow"},
        {"much trailing", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4 + (1 << 20), "1048576 bytes follow"},
        {"offsets", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "data_offsets"},
        {"shape no list", "{\"a\":{\"dtype\":\"F32\",\"shape\":4,\"data_offsets\":[0,4]}}", 4, "shape"},
        {"float dim", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4, "dim 0"},
        {"metadata no object", "{\"__metadata__\":3}", 0, "__metadata__"},
    };
    static const char zeros[4 + (1 << 20)];
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
    assert_int_equal(ct_st_open(alloc, "/nonexistent/x", &(ct_st *){NULL}, NULL), CT_ERR_NOT_FOUND);
}

static void refused(const char *says, const char *says_too)
{
    ct_err err = {0};
    ct_st *st = NULL;
    const ct_status status = ct_st_open(alloc, path, &st, &err);
    if (status != CT_ERR_FORMAT || strstr(err.message, path) == NULL || strstr(err.message, says) == NULL || strstr(err.message, says_too) == NULL) {
        fail_msg("status %s, message '%s'; wanted '%s', '%s'", ct_status_name(status), err.message, says, says_too);
    }
}

/* Lengths of the header that are not those of the file: told with both sizes, before anything of that size is asked for. */
static void test_wrong_lengths(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {UINT64_MAX, UINT64_MAX - 7, UINT64_C(1) << 62, 200000000, 11, 3, 0}; /* 11: file size - 7 */
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        char says[32];
        put_file("{}        ", lengths[i], "", 0); /* 18 bytes */
        (void)snprintf(says, sizeof says, "%llu bytes", (unsigned long long)lengths[i]);
        if (lengths[i] == 3) { /* right, with a blank: the rest is too much */
            refused("7 bytes follow", "");
        } else {
            refused(says, "the file has 18");
        }
    }
    put_bytes("", 0);
    refused("0 bytes are too few", "cut short");
    put_bytes("abcde", 5);
    refused("5 bytes are too few", "cut short");
}

/* A file of which only the first bytes arrived says so, with what is there and what is wanted. */
static void test_cut_anywhere(void **state)
{
    (void)state;
    static const char header[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]}}";
    const size_t whole = 8 + strlen(header) + 16;
    char *bytes = NULL;
    size_t size = 0;
    put_file(header, strlen(header), "0123456789abcdef", 16);
    assert_int_equal(cti_file_read(alloc, path, 0, &bytes, &size, NULL), CT_OK);
    assert_int_equal(size, whole);
    for (size_t cut = 0; cut < whole; cut++) {
        char found[48], wanted[48];
        put_bytes(bytes, cut);
        (void)snprintf(found, sizeof found, cut < 8 ? "%zu bytes are too few" : "the file has %zu", cut);
        (void)snprintf(wanted, sizeof wanted, cut < 8 ? "8 are the least" : cut < whole - 16 ? "said to have %zu bytes" : "at least %zu are wanted",
                       cut < whole - 16 ? strlen(header) : cut < whole - 8 ? whole - 8 : whole);
        refused(found, wanted);
        refused("cut short", "");
    }
    ct_alloc_free(alloc, bytes);
}

/* Tensors of dtypes that we do not hold are listed with their sizes and stop nobody who does not need them. */
static void test_other_dtypes(void **state)
{
    (void)state;
    static const struct {
        const char *name, *dtype;
        size_t size;
    } rows[] = {{"a", "F8_E4M3", 4}, {"b", "F8_E5M2", 4}, {"c", "F8_E8M0", 4}, {"d", "F32", 16}, {"e", "F4", 2}, {"f", "XYZ", 5}, {"g", "BOOL", 4}};
    cti_str header = {.alloc = alloc};
    ct_err err = {0};
    ct_st *st = NULL;
    size_t at = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cti_str_printf(&header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[4],\"data_offsets\":[%zu,%zu]}", i > 0 ? "," : "{", rows[i].name, rows[i].dtype, at, at + rows[i].size);
        at += rows[i].size;
    }
    cti_str_add(&header, "}");
    static const char data[64] = {1, 2, 3};
    put_file(cti_str_text(&header), header.len, data, at);
    if (ct_st_open(alloc, path, &st, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(ct_st_n_tensors(st), sizeof rows / sizeof rows[0]);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const ct_st_tensor *t = ct_st_find(st, rows[i].name);
        assert_string_equal(t->dtype_name, rows[i].dtype);
        assert_int_equal(t->size_bytes, rows[i].size);
        assert_int_equal(t->numel, 4);
        assert_int_equal(t->dtype == CT_DTYPE_F32, i == 3);
        assert_int_equal(t->dtype == CT_DTYPE_COUNT, i != 3);
    }
    ct_st_close(&st);
    cti_str_deinit(&header);
}

/* Nothing at all, and several tensors without an element, are files like others. */
static void test_empty(void **state)
{
    (void)state;
    static const ct_st_spec specs[] = {{"a", CT_DTYPE_F32, 1, {0}}, {"b", CT_DTYPE_F32, 1, {0}}};
    for (int32_t n = 0; n <= 2; n += 2) {
        ct_err err = {0};
        ct_st_writer *w = NULL;
        ct_st *st = NULL;
        int64_t size;
        char hex[33];
        assert_int_equal(ct_st_writer_open(alloc, path, specs, n, &w, &err), CT_OK);
        assert_int_equal(ct_st_writer_finish(&w, &size, hex, &err), CT_OK);
        if (ct_st_open(alloc, path, &st, &err) != CT_OK) {
            fail_msg("%s", err.message);
        }
        assert_int_equal(ct_st_n_tensors(st), n);
        assert_true(n == 0 || (ct_st_find(st, "a")->numel == 0 && ct_st_find(st, "b")->numel == 0));
        ct_st_close(&st);
    }
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip), cmocka_unit_test(test_damaged), cmocka_unit_test(test_wrong_lengths),
                                       cmocka_unit_test(test_cut_anywhere), cmocka_unit_test(test_other_dtypes), cmocka_unit_test(test_empty),
                                       cmocka_unit_test(test_mutations)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(path);
    return failed;
}
