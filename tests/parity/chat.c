/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: jinja base */
/* Templates rendered as jinja2 renders them in the environment that transformers makes for chat templates:
 * cases and outputs in tests/parity/chat/recorded.json, written by record.py there.
 *
 *     test_parity_chat --render FILE     renders the cases of FILE (lines of {"t": template, "v": variables})
 * and prints, for each, {"o": output} or {"e": message, "s": status}: what record.py --fuzz compares
 */
#include "unit/base_test.h"

#include "base/json.h"
#include "jinja/jinja.h"

static const struct tm recorded_now = {.tm_year = 124,
                                       .tm_mon = 6,
                                       .tm_mday = 26,
                                       .tm_hour = 15,
                                       .tm_min = 4,
                                       .tm_sec = 5,
                                       .tm_wday = 5,
                                       .tm_yday = 207};

static ct_status render(const char *text, size_t size, const json_t *variables, cti_str *out, ct_err *err)
{
    ct_jinja *t = NULL;
    const ct_jinja_options options = {.now = &recorded_now};
    CT_TRY(ct_jinja_compile(ct_alloc_system(), text, size, "case", &t, err));
    const ct_status st = ct_jinja_render(t, variables, &options, out, err);
    ct_jinja_destroy(&t);
    return st;
}

static const char *member(const json_t *obj, const char *key, size_t *out_size)
{
    const json_t *v = json_object_get(obj, key);
    assert_true(json_is_string(v));
    *out_size = json_string_length(v);
    return json_string_value(v);
}

/* "o" is what is wanted; "e" says that jinja2 fails, where we may fail in any way; "r" that we refuse by
 * name. */
static void recorded(void **state)
{
    (void)state;
    json_t *all = NULL;
    ct_err err = {0};
    assert_int_equal(
        cti_json_read_file(ct_alloc_system(), CT_SOURCE_DIR "/tests/parity/chat/recorded.json", &all, &err),
        CT_OK);
    const json_t *cases = json_object_get(all, "cases"), *shared = json_object_get(all, "variables");
    int n_wrong = 0, n_fail = 0;
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *c = json_array_get(cases, i), *v = json_object_get(c, "v");
        size_t size, want_size;
        const char *text = member(c, "t", &size);
        cti_str out = {.alloc = ct_alloc_system()};
        err = (ct_err){0};
        const ct_status st = render(
            text, size, json_is_string(v) ? json_object_get(shared, json_string_value(v)) : v, &out, &err);
        if (json_object_get(c, "o") != NULL) {
            const char *want = member(c, "o", &want_size);
            if (st != CT_OK || out.len != want_size || memcmp(cti_str_text(&out), want, want_size) != 0) {
                print_message("case %zu: %s\n  wanted '%s'\n  found  '%s' %s\n", i, text, want,
                              cti_str_text(&out), err.message);
                n_wrong++;
            }
        } else {
            const bool must_refuse = json_object_get(c, "r") != NULL;
            if (st == CT_OK || (must_refuse && st != CT_ERR_UNSUPPORTED) ||
                strstr(err.message, "line ") == NULL) {
                print_message("case %zu: %s\n  should fail, gave '%s' %s\n", i, text, cti_str_text(&out),
                              err.message);
                n_wrong++;
            }
            n_fail++;
        }
        cti_str_deinit(&out);
    }
    print_message("%zu cases, %d of them failures\n", json_array_size(cases), n_fail);
    assert_true(json_array_size(cases) > 300);
    assert_int_equal(n_wrong, 0);
    json_decref(all);
}

static int render_file(const char *path)
{
    char *text;
    size_t size;
    ct_err err = {0};
    if (cti_file_read(ct_alloc_system(), path, 0, &text, &size, &err) != CT_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        const size_t n = end == NULL ? size - at : (size_t)(end - text) - at;
        json_t *c = NULL;
        cti_str out = {.alloc = ct_alloc_system()};
        err = (ct_err){0};
        if (cti_json_parse(text + at, n, "case", &c, &err) != CT_OK) {
            fprintf(stderr, "%s\n", err.message);
            return 1;
        }
        size_t t_size;
        const char *t = member(c, "t", &t_size);
        const ct_status st = render(t, t_size, json_object_get(c, "v"), &out, &err);
        json_t *answer = st == CT_OK ? json_pack("{s:s%}", "o", cti_str_text(&out), out.len)
                                     : json_pack("{s:s, s:s}", "e", err.message, "s", ct_status_name(st));
        char *line;
        if (answer == NULL || cti_json_dump(ct_alloc_system(), answer, 0, &line, &err) != CT_OK) {
            fprintf(stderr, "an answer is not UTF-8: %s\n", t);
            return 1;
        }
        puts(line);
        ct_alloc_free(ct_alloc_system(), line);
        json_decref(answer);
        json_decref(c);
        cti_str_deinit(&out);
        at += n + 1;
    }
    ct_alloc_free(ct_alloc_system(), text);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--render") == 0) {
        return render_file(argv[2]);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(recorded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
