/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: data base */
/* One line of JSON: what is taken, what is refused, where. */
#include "data/data_internal.h"
#include "unit/data_test.h"

#define LINE(text) text, sizeof text - 1

typedef struct line_case {
    const char *line;
    size_t size;
    ct_bad bad;
    const char *text; /* of a good line */
    size_t text_size;
    size_t column; /* of a bad one */
    const char *says;
} line_case;

#define GOOD(line, text) {LINE(line), CT_BAD_NONE, LINE(text), 0, NULL}
#define BAD(line, kind, column, says) {LINE(line), CT_BAD_##kind, NULL, 0, column, says}
#define FFFD "\xef\xbf\xbd"

static const line_case cases[] = {
    GOOD("{\"text\":\"a\"}", "a"),
    GOOD(" \t{ \"text\" : \"a\" } \r", "a"),
    GOOD("\xef\xbb\xbf{\"text\":\"a\"}", "a"),
    GOOD("{\"text\":\"\"}", ""),
    GOOD("{\"id\":[1,-0.5e+3,{\"text\":\"no\"},[],{}],\"text\":\"yes\",\"z\":null}", "yes"),
    GOOD("{\"a\":NaN,\"b\":-Infinity,\"c\":Infinity,\"t\":true,\"f\":false,\"text\":\"x\"}", "x"),
    GOOD("{\"te\\u0078t\":\"escaped name\"}", "escaped name"),
    GOOD("{\"text\\u0000\":1,\"text\":\"b\"}", "b"),
    GOOD("{\"text\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u20AC\"}", "\"\\/\b\f\n\r\t\xc3\xa9\xe2\x82\xac"),
    GOOD("{\"text\":\"A\\u0000B\"}", "A\0B"),
    GOOD("{\"text\":\"\\ud83d\\ude00\"}", "\xf0\x9f\x98\x80"),
    GOOD("{\"text\":\"\\ud800\"}", FFFD),
    GOOD("{\"text\":\"\\ud800x\"}", FFFD "x"),
    GOOD("{\"text\":\"\\udc00\"}", FFFD),
    GOOD("{\"text\":\"\\ud800\\ud83d\\ude00\"}", FFFD "\xf0\x9f\x98\x80"),
    GOOD("{\"text\":\"\\ud800\\n\"}", FFFD "\n"),
    GOOD("{\"text\":\"a\xff" "b\"}", "a" FFFD "b"),
    GOOD("{\"other\":\"\xff\",\"text\":\"\xe2\x82\"}", FFFD),
    GOOD("{\"text\":\"\x7f \xe2\x80\xa8\"}", "\x7f \xe2\x80\xa8"),
    BAD("{\"text\":\"\\ud800\\u12\"}", SYNTAX, 20, "hexadecimal digit"),
    BAD("{\"text\":\"\\ud800\\q\"}", SYNTAX, 17, "after a backslash"),
    BAD("{\"text\":\"\\u00g0\"}", SYNTAX, 14, "found 'g'"),
    BAD("{\"text\":\"a\tb\"}", SYNTAX, 11, "0x09"),
    BAD("{\"text\":\"a\0b\"}", SYNTAX, 11, "0x00"),
    BAD("\0{\"text\":\"a\"}", SYNTAX, 1, "0x00"),
    BAD("not json", SYNTAX, 2, "a value is wanted"),
    BAD("{text:\"a\"}", SYNTAX, 2, "name in quotes"),
    BAD("{'text':'a'}", SYNTAX, 2, "name in quotes"),
    BAD("{\"text\":\"a\",}", SYNTAX, 13, "name in quotes"),
    BAD("{\"text\" \"a\"}", SYNTAX, 9, "':'"),
    BAD("{\"text\":\"a\" \"b\":1}", SYNTAX, 13, "',' or '}'"),
    BAD("{\"a\":[1 2],\"text\":\"a\"}", SYNTAX, 9, "',' or ']'"),
    BAD("{\"a\":[1},\"text\":\"a\"}", SYNTAX, 8, "',' or ']'"),
    BAD("{\"a\":[1,],\"text\":\"a\"}", SYNTAX, 9, "a value"),
    BAD("{\"a\":01,\"text\":\"a\"}", SYNTAX, 7, "begin with 0"),
    BAD("{\"a\":1.,\"text\":\"a\"}", SYNTAX, 8, "a digit"),
    BAD("{\"a\":-,\"text\":\"a\"}", SYNTAX, 7, "a digit"),
    BAD("{\"a\":1e,\"text\":\"a\"}", SYNTAX, 8, "a digit"),
    BAD("{\"a\":trux,\"text\":\"a\"}", SYNTAX, 9, "a value"),
    BAD("{\"text\":\"a\"", CUT_OFF, 12, "ends where"),
    BAD("{\"text\":\"a", CUT_OFF, 11, "middle of a string"),
    BAD("{\"text\":\"a\\", CUT_OFF, 12, "ends where"),
    BAD("{\"text\":\"\\u12", CUT_OFF, 14, "ends where"),
    BAD("{\"text\":", CUT_OFF, 9, "a value"),
    BAD("{", CUT_OFF, 2, "name"),
    BAD("", CUT_OFF, 1, "a value"),
    BAD("{\"text\":\"a\"}{\"text\":\"b\"}", TRAILING, 13, "one object a line"),
    BAD("{\"text\":\"a\"} x", TRAILING, 14, "one object a line"),
    BAD("[{\"text\":\"a\"}]", NOT_OBJECT, 1, "an array"),
    BAD("\"text\"", NOT_OBJECT, 1, "a string"),
    BAD(" 12", NOT_OBJECT, 2, "a number"),
    BAD("{}", NO_FIELD, 1, "no field 'text'"),
    BAD("{\"Text\":\"a\"}", NO_FIELD, 1, "no field 'text'"),
    BAD("{\"text\":null}", FIELD_TYPE, 9, "'text' is null"),
    BAD("{\"text\":12}", FIELD_TYPE, 9, "'text' is a number"),
    BAD("{\"text\":[\"a\"]}", FIELD_TYPE, 9, "'text' is an array"),
    BAD("{\"text\":{\"a\":1}}", FIELD_TYPE, 9, "'text' is an object"),
    BAD("{\"text\":true}", FIELD_TYPE, 9, "'text' is a boolean"),
    BAD("{\"text\":\"a\", \"text\":\"b\"}", FIELD_TWICE, 14, "twice"),
};

static void lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        const line_case *c = &cases[i];
        cti_str text = {.alloc = ct_alloc_system()};
        ct_text_repairs repairs = {0};
        cti_line_fault fault;
        cti_str_add(&text, "before ");
        const ct_bad bad = cti_jsonl_text((const unsigned char *)c->line, c->size, "text", &text, &repairs, &fault);
        if (bad != c->bad || fault.bad != c->bad) {
            fail_msg("%s: '%s' instead of '%s' (%s)", c->line, ct_bad_words(bad), ct_bad_words(c->bad), fault.detail);
        }
        if (bad == CT_BAD_NONE) {
            assert_int_equal(text.len, 7 + c->text_size);
            assert_memory_equal(text.data + 7, c->text, c->text_size + 1);
        } else {
            assert_string_equal(text.data, "before ");
            assert_int_equal(repairs.n_lone_surrogates + repairs.n_invalid_utf8, 0);
            if (fault.column != c->column || strstr(fault.detail, c->says) == NULL) {
                fail_msg("%s: column %zu, '%s'", c->line, fault.column, fault.detail);
            }
        }
        cti_str_deinit(&text);
    }
}

static void repairs_are_counted(void **state)
{
    (void)state;
    static const char line[] = "{\"a\":\"\\ud800\xff\",\"text\":\"\\ud800\\udc00 \\ud800 \\udc00\xff\xe2\x82\"}";
    cti_str text = {.alloc = ct_alloc_system()};
    ct_text_repairs repairs = {.n_invalid_utf8 = 10};
    cti_line_fault fault;
    assert_int_equal(cti_jsonl_text((const unsigned char *)line, sizeof line - 1, "text", &text, &repairs, &fault), CT_BAD_NONE);
    assert_int_equal(repairs.n_lone_surrogates, 2);
    assert_int_equal(repairs.n_invalid_utf8, 12);
    cti_str_deinit(&text);
}

/* Depth is counted, not recursed into: a million brackets are an answer, not a crash. */
static void depth(void **state)
{
    (void)state;
    for (int n = CTI_JSONL_MAX_DEPTH - 1; n <= CTI_JSONL_MAX_DEPTH + 1; n++) {
        cti_str line = {.alloc = ct_alloc_system()};
        cti_str text = {.alloc = ct_alloc_system()};
        ct_text_repairs repairs = {0};
        cti_line_fault fault;
        cti_str_add(&line, "{\"a\":");
        for (int i = 0; i < n; i++) {
            cti_str_add(&line, i % 2 == 0 ? "[" : "{\"b\":");
        }
        cti_str_add(&line, "0");
        for (int i = n - 1; i >= 0; i--) {
            cti_str_add(&line, i % 2 == 0 ? "]" : "}");
        }
        cti_str_add(&line, ",\"text\":\"deep\"}");
        const ct_bad bad = cti_jsonl_text((const unsigned char *)line.data, line.len, "text", &text, &repairs, &fault);
        assert_int_equal(bad, n <= CTI_JSONL_MAX_DEPTH ? CT_BAD_NONE : CT_BAD_TOO_DEEP);
        cti_str_deinit(&line);
        cti_str_deinit(&text);
    }
    static unsigned char brackets[1000000];
    memset(brackets, '[', sizeof brackets);
    cti_str text = {.alloc = ct_alloc_system()};
    ct_text_repairs repairs = {0};
    cti_line_fault fault;
    assert_int_equal(cti_jsonl_text(brackets, sizeof brackets, "text", &text, &repairs, &fault), CT_BAD_TOO_DEEP);
    cti_str_deinit(&text);
}

/* Ill-formed bytes and what Python's bytes.decode("utf-8", "replace") makes of them (CPython 3.11). */
static void utf8_repair(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *text;
        int n;
    } rows[] = {
        {LINE("plain"), "plain", 0},
        {LINE("\xc3\xa9"), "\xc3\xa9", 0},
        {LINE("\x80"), FFFD, 1},
        {LINE("\xc0\xaf"), FFFD FFFD, 2},
        {LINE("\xe2\x82"), FFFD, 1},
        {LINE("\xe2\x82x"), FFFD "x", 1},
        {LINE("\xed\xa0\x80"), FFFD FFFD FFFD, 3},
        {LINE("\xf0\x9f\x98"), FFFD, 1},
        {LINE("\xf0\x9f\x98\xf0\x9f\x98\x80"), FFFD "\xf0\x9f\x98\x80", 1},
        {LINE("\xf4\x90\x80\x80"), FFFD FFFD FFFD FFFD, 4},
        {LINE("\xf0\x80\x80\x80"), FFFD FFFD FFFD FFFD, 4},
        {LINE("\xe0\x9f\x80"), FFFD FFFD FFFD, 3},
        {LINE("\xf8\x88\x80\x80\x80"), FFFD FFFD FFFD FFFD FFFD, 5},
        {LINE("\xc3(\xa9"), FFFD "(" FFFD, 2},
        {LINE("\xff\xfe"), FFFD FFFD, 2},
    };
    for (size_t i = 0; i < N_OF(rows); i++) {
        cti_str out = {.alloc = ct_alloc_system()};
        cti_str_add(&out, "");
        assert_int_equal(cti_text_add_repaired(&out, (const unsigned char *)rows[i].bytes, rows[i].size), rows[i].n);
        assert_string_equal(cti_str_text(&out), rows[i].text);
        cti_str_deinit(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines),
        cmocka_unit_test(repairs_are_counted),
        cmocka_unit_test(depth),
        cmocka_unit_test(utf8_repair),
    };
    return cmocka_run_group_tests_name("data_jsonl", tests, NULL, NULL);
}
