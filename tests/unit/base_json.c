/* rooms: base */
/* SPDX-License-Identifier: Apache-2.0 */
/* JSON: what is refused and where it says it is, what is written, and the typed getters. */
#include "base_test.h"

#include "base/json.h"
#include "base/str.h"

static ct_status parse(const char *text, json_t **out, ct_err *err)
{
    return cti_json_parse(text, strlen(text), "in.json", out, err);
}

static void errors_have_a_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *place, *words;
    } rows[] = {{"", "line 1", ""},
                {"{", "line 1, column 1", "end of file"},
                {"{\"a\": 1,\n \"b\": }", "line 2, column 7", "unexpected token"},
                {"{\"a\": 1, \"a\": 2}", "line 1, column 12", "duplicate object key"},
                {"{\"x\": {\n\"a\": 1,\n\"a\": 1}}", "line 3, column 3", "duplicate object key"},
                {"[1, 2] 3", "line 1, column 8", "end of file expected"},
                {"{} x", "line 1", "end of file expected"},
                {"[1,]", "line 1, column 4", ""},
                {"[01]", "line 1", ""},
                {"[NaN]", "line 1", ""},
                {"[1e400]", "line 1", "overflow"},
                {"[9223372036854775808]", "line 1", "too big integer"},
                {"[\"a\nb\"]", "line 1", "newline"},
                {"[\"\xff\"]", "line 1", "unable to decode byte"},
                {"[\"\xed\xa0\x80\"]", "line 1", "unable to decode byte"},
                {"[\"\\ud800\"]", "line 1", ""},
                {"\xef\xbb\xbf{}", "line 1", ""},
                {"'a'", "line 1", ""},
                {"nul", "line 1", ""}};
    for (size_t i = 0; i < N_OF(rows); i++) {
        ct_err err = {0};
        json_t *json = NULL;
        assert_int_equal(parse(rows[i].text, &json, &err), CT_ERR_FORMAT);
        assert_null(json);
        if (strstr(err.message, "in.json") == NULL || strstr(err.message, rows[i].place) == NULL ||
            strstr(err.message, rows[i].words) == NULL) {
            fail_msg("'%s' gave: %s", rows[i].text, err.message);
        }
    }
    json_t *json = NULL;
    assert_int_equal(parse("[", &json, NULL), CT_ERR_FORMAT);
}

static void deep_nesting_is_refused(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        cti_str s = {.alloc = ct_alloc_system()};
        for (int i = 0; i < 200000; i++) {
            cti_str_add(&s, kind == 0 ? "[" : "{\"a\":");
        }
        json_t *json = NULL;
        ct_err err = {0};
        assert_int_equal(parse(s.data, &json, &err), CT_ERR_FORMAT);
        assert_non_null(strstr(err.message, "depth"));
        cti_str_deinit(&s);
    }
    /* And what holds itself is not written for ever. */
    json_t *a = json_array(), *b = json_array();
    assert_int_equal(json_array_append(a, b), 0);
    assert_int_equal(json_array_append_new(b, json_incref(a)), 0);
    char *text = NULL;
    ct_err err = {0};
    assert_int_equal(cti_json_dump(ct_alloc_system(), a, 0, &text, &err), CT_ERR_FORMAT);
    assert_null(text);
    assert_int_equal(json_array_clear(b), 0);
    json_decref(b);
    json_decref(a);
}

static void written_as_it_was(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"z\": 1, \"a\": [true, false, null], \"m\": {}}",
        "[]",
        "{}",
        "[0.0008, 1e-08, 1.0, -0.0, 5e-324, 1.7976931348623157e+308, 0.1, 1e+16]",
        "[9223372036854775807, -9223372036854775808, 0]",
        "\"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \\\\ \\\" / \\b\\f\\n\\r\\t\\u0001\\u001f \x7f\"",
        "\"a\\u0000b\"",
        "{\"\": {\"k\\ney\": [[[]]]}}",
        "7",
        "null",
    };
    for (size_t i = 0; i < N_OF(texts); i++) {
        json_t *json = NULL;
        ct_err err = {0};
        if (parse(texts[i], &json, &err) != CT_OK) {
            fail_msg("%s", err.message);
        }
        char *text = NULL;
        assert_int_equal(cti_json_dump(ct_alloc_system(), json, 0, &text, &err), CT_OK);
        assert_string_equal(text, texts[i]);
        ct_alloc_free(ct_alloc_system(), text);
        for (int64_t fail_at = 1; fail_at < 3; fail_at++) {
            test_alloc t;
            test_alloc_init(&t, fail_at);
            text = NULL;
            const ct_status st = cti_json_dump(&t.alloc, json, 7, &text, NULL);
            assert_true(st == CT_ERR_MEMORY || t.n_calls < fail_at);
            ct_alloc_free(&t.alloc, text);
            assert_int_equal(t.n_live, 0);
        }
        json_decref(json);
    }
}

static void indented(void **state)
{
    (void)state;
    json_t *json = NULL;
    assert_int_equal(parse("{\"b\":[1,2.5],\"a\":{},\"c\":[]}", &json, NULL), CT_OK);
    char *text = NULL;
    assert_int_equal(cti_json_dump(ct_alloc_system(), json, 2, &text, NULL), CT_OK);
    assert_string_equal(text, "{\n  \"b\": [\n    1,\n    2.5\n  ],\n  \"a\": {},\n  \"c\": []\n}");
    ct_alloc_free(ct_alloc_system(), text);
    json_decref(json);
}

static void files(void **state)
{
    (void)state;
    char folder[512], path[600];
    test_folder_make(folder, sizeof folder);
    (void)snprintf(path, sizeof path, "%s/x.json", folder);
    ct_err err = {0};
    json_t *json = NULL, *back = NULL;
    assert_int_equal(parse("{\"lr\": 0.0008}", &json, &err), CT_OK);
    assert_int_equal(cti_json_write_file(path, json, 0, &err), CT_OK);
    char *data = NULL;
    size_t size;
    assert_int_equal(cti_file_read(ct_alloc_system(), path, 0, &data, &size, &err), CT_OK);
    assert_string_equal(data, "{\"lr\": 0.0008}\n");
    ct_alloc_free(ct_alloc_system(), data);
    assert_int_equal(cti_json_read_file(ct_alloc_system(), path, &back, &err), CT_OK);
    assert_true(json_equal(json, back));
    json_decref(back);
    assert_int_equal(cti_file_write_atomic(path, "{\n\n  oops}", 10, &err), CT_OK);
    assert_int_equal(cti_json_read_file(ct_alloc_system(), path, &back, &err), CT_ERR_FORMAT);
    assert_non_null(strstr(err.message, path));
    assert_non_null(strstr(err.message, "line 3, column 6"));
    err = (ct_err){0};
    (void)snprintf(path, sizeof path, "%s/none/x.json", folder);
    assert_int_equal(cti_json_write_file(path, json, 0, &err), CT_ERR_NOT_FOUND);
    err = (ct_err){0};
    assert_int_equal(cti_json_read_file(ct_alloc_system(), path, &back, &err), CT_ERR_NOT_FOUND);
    json_decref(json);
    test_folder_remove(folder);
}

static void getters(void **state)
{
    (void)state;
    json_t *json = NULL;
    assert_int_equal(parse("{\"s\": \"x\", \"i\": 7, \"f\": 2.5, \"t\": true, \"o\": {}, \"a\": [], \"n\": "
                           "null, \"z\": \"a\\u0000b\"}",
                           &json, NULL),
                     CT_OK);
    const char *s = NULL;
    int64_t i = 0;
    double f = 0.0;
    bool t = false;
    json_t *o = NULL, *a = NULL;
    assert_int_equal(cti_json_get_str(json, "s", "w", &s, NULL), CT_OK);
    assert_string_equal(s, "x");
    assert_int_equal(cti_json_get_i64(json, "i", "w", &i, NULL), CT_OK);
    assert_int_equal(i, 7);
    assert_int_equal(cti_json_get_f64(json, "f", "w", &f, NULL), CT_OK);
    assert_true(f == 2.5);
    assert_int_equal(cti_json_get_f64(json, "i", "w", &f, NULL), CT_OK);
    assert_true(f == 7.0);
    assert_int_equal(cti_json_get_bool(json, "t", "w", &t, NULL), CT_OK);
    assert_true(t);
    assert_int_equal(cti_json_get_obj(json, "o", "w", &o, NULL), CT_OK);
    assert_int_equal(cti_json_get_arr(json, "a", "w", &a, NULL), CT_OK);
    /* Each getter on each other type, and on what is not there. */
    static const char *const keys[] = {"s", "i", "f", "t", "o", "a", "n", "none"};
    static const char *const accepted[] = {"s", "i", "fi", "t", "o", "a"};
    for (size_t k = 0; k < N_OF(keys); k++) {
        for (int g = 0; g < 6; g++) {
            ct_err err = {0};
            ct_status st = CT_OK;
            st = g == 0   ? cti_json_get_str(json, keys[k], "cfg.json", &s, &err)
                 : g == 1 ? cti_json_get_i64(json, keys[k], "cfg.json", &i, &err)
                 : g == 2 ? cti_json_get_f64(json, keys[k], "cfg.json", &f, &err)
                 : g == 3 ? cti_json_get_bool(json, keys[k], "cfg.json", &t, &err)
                 : g == 4 ? cti_json_get_obj(json, keys[k], "cfg.json", &o, &err)
                          : cti_json_get_arr(json, keys[k], "cfg.json", &a, &err);
            const bool fits = keys[k][1] == '\0' && strchr(accepted[g], keys[k][0]) != NULL;
            assert_int_equal(st, fits ? CT_OK : CT_ERR_FORMAT);
            if (!fits) {
                assert_non_null(strstr(err.message, "cfg.json"));
                assert_non_null(strstr(err.message, keys[k]));
            }
        }
    }
    ct_err err = {0};
    assert_int_equal(cti_json_get_str(json, "z", "w", &s, &err), CT_ERR_FORMAT);
    err = (ct_err){0};
    assert_int_equal(cti_json_get_i64(json_object_get(json, "a"), "i", "w", &i, &err), CT_ERR_FORMAT);
    assert_non_null(strstr(err.message, "an array"));
    assert_int_equal(cti_json_get_i64(NULL, "i", "w", &i, NULL), CT_ERR_FORMAT);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_have_a_place),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(written_as_it_was),
        cmocka_unit_test(indented),
        cmocka_unit_test(files),
        cmocka_unit_test(getters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
