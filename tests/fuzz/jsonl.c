/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: data base */
/* Mutated JSON lines: never a crash; what is given is UTF-8; whatever jansson takes, we take, with the same text. */
#include "base/json.h"
#include "fuzz/data_files.h"

static const char *const samples[] = {
    "{\"text\": \"plain words, \\\"quoted\\\", \\\\ and \\n\\t\\u00e9\"}",
    "{\"id\": 12, \"meta\": {\"a\": [1, 2.5e-3, null, true, false, {\"b\": []}], \"c\": \"\"}, \"text\": \"\\ud83d\\ude00 \\ud800\", \"z\": -0.0}",
    "\xef\xbb\xbf { \"te\\u0078t\" : \"\xe6\x96\x87 \xf0\x9f\x98\x80 \\u0000 \xff\" } \r",
    "{\"text\":\"a\",\"more\":[[[[[[[[\"deep\"]]]]]]]],\"n\":1E+10}",
};
static const char *const words[] = {"\"text\"", "\\u", "\\ud83d", "\\ude00", "{", "}", "[", "]", ",", ":", "\"", "\\", "null", "NaN",
                                    "-Infinity", "1e400", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\x80", "\n", "\t", " "};

static void lines(void **state)
{
    (void)state;
    cti_str line = {.alloc = ct_alloc_system()}, text = {.alloc = ct_alloc_system()};
    int64_t n_good = 0, n_both = 0, n = 0;
    for (fuzz_case c = fuzz_begin("jsonl", 20000); fuzz_next(&c); n++) {
        const char *sample = samples[fuzz_below(&c, N_OF(samples))];
        ct_text_repairs repairs = {0};
        cti_line_fault fault = {.bad = CT_BAD_COUNT};
        fuzz_mutate(&c, &line, sample, strlen(sample), words, N_OF(words));
        unsigned char *copy = ct_alloc_resize(ct_alloc_system(), NULL, line.len, 1, NULL); /* so that one byte too far is seen */
        memcpy(copy, line.data, line.len);
        cti_str_reset(&text);
        cti_str_add(&text, "before");
        const ct_bad bad = cti_jsonl_text(copy, line.len, "text", &text, &repairs, &fault);
        assert_int_equal(bad, fault.bad);
        assert_true(bad < CT_BAD_COUNT);
        assert_memory_equal(text.data, "before", 6);
        for (size_t at = 0; at < text.len;) {
            const int size = cti_utf8_len((unsigned char *)text.data + at, (unsigned char *)text.data + text.len);
            if (size <= 0) {
                fail_msg("case %llu: not UTF-8 at %zu", (unsigned long long)c.seed, at);
            }
            at += (size_t)size;
        }
        assert_true(bad != CT_BAD_NONE ? text.len == 6 && fault.detail[0] != '\0' && fault.column <= line.len + 1 : true);
        n_good += bad == CT_BAD_NONE;
        json_t *json = NULL;
        const size_t bom = cti_bom_bytes(copy, line.len);
        if (memchr(copy, '\0', line.len) == NULL && /* which jansson does not see everywhere */
            cti_json_parse((char *)copy + bom, line.len - bom, "line", &json, NULL) == CT_OK) {
            const json_t *want = json_is_object(json) ? json_object_get(json, "text") : NULL;
            if (json_is_string(want)) {
                const size_t size = json_string_length(want);
                if (bad != CT_BAD_NONE || text.len - 6 != size || memcmp(text.data + 6, json_string_value(want), size) != 0) {
                    fail_msg("case %llu: jansson takes it, we do not alike: %s", (unsigned long long)c.seed, fault.detail);
                }
                n_both++;
            }
            json_decref(json);
        }
        ct_text_repairs none = {0};
        cti_str_reset(&text);
        const ct_bad as_record = cti_jsonl_text(copy, line.len, NULL, &text, &none, &fault);
        assert_true(bad != CT_BAD_NONE || as_record == CT_BAD_NONE);
        ct_alloc_free(ct_alloc_system(), copy);
    }
    printf("%lld lines: %lld good, %lld of them by jansson, too\n", (long long)n, (long long)n_good, (long long)n_both);
    assert_true(n < 1000 || (n_good > n / 50 && n_good < n && n_both > n / 100)); /* or it tests one half only */
    cti_str_deinit(&line), cti_str_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
