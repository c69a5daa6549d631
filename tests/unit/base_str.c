/* rooms: base */
/* SPDX-License-Identifier: Apache-2.0 */
/* The text buffer, glob, UTF-8 and nearest names. */
#include "base_test.h"

#include "base/nearest.h"
#include "base/str.h"

static void buffer_grows(void **state)
{
    (void)state;
    test_alloc t;
    test_alloc_init(&t, 0);
    cti_str s = {.alloc = &t.alloc};
    assert_string_equal(cti_str_text(&s), "");
    cti_str_add_n(&s, NULL, 0);
    assert_non_null(s.data);
    assert_string_equal(s.data, "");
    for (int i = 0; i < 1000; i++) {
        cti_str_add_char(&s, (char)('a' + i % 26));
        assert_int_equal(s.data[s.len], '\0');
    }
    assert_int_equal(s.len, 1000);
    cti_str_printf(&s, "[%d]", 42);
    assert_true(cti_ends_with(s.data, "[42]"));
    for (int width = 1; width < 300; width++) {
        const size_t before = s.len;
        cti_str_printf(&s, "%*d", width, 1);
        assert_int_equal(s.len, before + (size_t)width);
        assert_int_equal(strlen(s.data), s.len);
    }
    cti_str_reset(&s);
    assert_string_equal(cti_str_text(&s), "");
    cti_str_add_n(&s, "a\0b", 3);
    assert_int_equal(s.len, 3);
    assert_memory_equal(s.data, "a\0b", 4);
    assert_int_equal(cti_str_check(&s, NULL), CT_OK);
    cti_str_deinit(&s);
    assert_null(s.data);
    assert_int_equal(t.n_live, 0);
}

static void buffer_fails_once_and_for_all(void **state)
{
    (void)state;
    test_alloc t;
    test_alloc_init(&t, 2);
    cti_str s = {.alloc = &t.alloc};
    cti_str_add(&s, "kept");
    cti_str_printf(&s, "%01000d", 1);
    assert_true(s.failed);
    cti_str_add(&s, "not added");
    assert_string_equal(cti_str_text(&s), "kept");
    ct_err err = {0};
    assert_int_equal(cti_str_check(&s, &err), CT_ERR_MEMORY);
    assert_int_equal(err.status, CT_ERR_MEMORY);
    assert_false(cti_str_reserve(&s, 1));
    cti_str_deinit(&s);
    assert_int_equal(t.n_live, 0);
    cti_str huge = {.alloc = ct_alloc_system()};
    assert_false(cti_str_reserve(&huge, SIZE_MAX - 3));
    assert_true(huge.failed);
    cti_str_deinit(&huge);
}

static void comparisons(void **state)
{
    (void)state;
    assert_true(cti_str_eq(NULL, NULL));
    assert_false(cti_str_eq("", NULL));
    assert_false(cti_str_eq(NULL, "a"));
    assert_true(cti_str_eq("a", "a"));
    assert_true(cti_starts_with("abc", ""));
    assert_true(cti_starts_with("abc", "ab"));
    assert_false(cti_starts_with("ab", "abc"));
    assert_true(cti_ends_with("abc", "bc"));
    assert_true(cti_ends_with("abc", ""));
    assert_false(cti_ends_with("bc", "abc"));
}

static void glob(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text;
        bool match;
    } rows[] = {{"", "", true},
                {"", "a", false},
                {"*", "", true},
                {"*", "layers.0/attention", true},
                {"layers.*.attention", "layers.12.attention", true},
                {"layers.*.attention", "layers.attention", false},
                {"layers.*", "layers.0.feed_forward.w1", true},
                {"*.w1", "layers.0.feed_forward.w1", true},
                {"*.w1", "layers.0.feed_forward.w12", false},
                {"a?c", "abc", true},
                {"a?c", "ac", false},
                {"?", "", false},
                {"***a***", "bab", true},
                {"a*b*c", "a1b2c3", false},
                {"a*b*c", "aXbXcXbXc", true},
                {"[abc]x", "bx", true},
                {"[abc]x", "dx", false},
                {"[!abc]x", "dx", true},
                {"[^abc]x", "ax", false},
                {"[a-c0-9]", "5", true},
                {"[a-c0-9]", "d", false},
                {"[a-]", "-", true},
                {"[-a]", "-", true},
                {"[]a]", "]", true},
                {"[!]a]", "]", false},
                {"[!]a]", "b", true},
                {"[abc", "[abc", true}, /* never closed: itself */
                {"[", "[", true},
                {"[!", "[!", true},
                {"[]", "[]", true},
                {"[c-a]", "b", false},
                {"layers.[0-3].*", "layers.2.wq", true},
                {"layers.[0-3].*", "layers.12.wq", false},
                {"*[0-9]", "abc1", true},
                {"A", "a", false},
                {"\\*", "\\x", true}};
    for (size_t i = 0; i < N_OF(rows); i++) {
        if (cti_glob_match(rows[i].pattern, rows[i].text) != rows[i].match) {
            fail_msg("'%s' on '%s'", rows[i].pattern, rows[i].text);
        }
    }
}

/* A matcher that recursed on every star would not end within the life of the machine. */
static void glob_does_not_blow_up(void **state)
{
    (void)state;
    cti_str pattern = {.alloc = ct_alloc_system()}, text = {.alloc = ct_alloc_system()};
    for (int i = 0; i < 100; i++) {
        cti_str_add(&pattern, i % 2 == 0 ? "*a" : "*[a-z]");
    }
    for (int i = 0; i < 5000; i++) {
        cti_str_add_char(&text, 'a');
    }
    assert_true(cti_glob_match(pattern.data, text.data));
    cti_str_add_char(&pattern, 'B');
    assert_false(cti_glob_match(pattern.data, text.data));
    cti_str_deinit(&pattern);
    cti_str_deinit(&text);
}

static void utf8_takes_the_valid(void **state)
{
    (void)state;
    for (uint32_t cp = 0; cp <= 0x110100; cp++) {
        char out[4];
        const int n = cti_utf8_encode(cp, out);
        const bool valid = cp <= 0x10ffff && !(cp >= 0xd800 && cp <= 0xdfff);
        const int want = !valid ? 0 : cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
        assert_int_equal(n, want);
        if (valid) {
            const unsigned char *p = (const unsigned char *)out;
            uint32_t back = ~cp;
            assert_int_equal(cti_utf8_decode(p, p + n, &back), n);
            assert_int_equal(back, cp);
            for (int cut = 0; cut < n; cut++) {
                assert_int_equal(cti_utf8_len(p, p + cut), 0);
            }
        }
    }
}

static void utf8_refuses_the_rest(void **state)
{
    (void)state;
    static const char *const wrong[] = {"\x80",
                                        "\xbf",
                                        "\xc0\x80",
                                        "\xc1\xbf",
                                        "\xe0\x80\x80",
                                        "\xe0\x9f\xbf",
                                        "\xed\xa0\x80",
                                        "\xed\xbf\xbf",
                                        "\xf0\x80\x80\x80",
                                        "\xf0\x8f\xbf\xbf",
                                        "\xf4\x90\x80\x80",
                                        "\xf5\x80\x80\x80",
                                        "\xff",
                                        "\xfe",
                                        "\xc3(",
                                        "\xe2\x82(",
                                        "\xf0\x9f\x98(",
                                        "\xe2(\xac",
                                        "\xc3\xc3"};
    for (size_t i = 0; i < N_OF(wrong); i++) {
        const unsigned char *p = (const unsigned char *)wrong[i];
        uint32_t cp = 77;
        assert_int_equal(cti_utf8_decode(p, p + strlen(wrong[i]), &cp), 0);
        assert_int_equal(cp, 77);
    }
    /* All pairs and triples of bytes: what is taken encodes back to the same bytes. */
    for (uint32_t i = 0; i < 0x1000000; i += i < 0x10000 ? 1 : 7) {
        const unsigned char bytes[3] = {(unsigned char)(i >> 16), (unsigned char)(i >> 8), (unsigned char)i};
        uint32_t cp;
        const int n = cti_utf8_decode(bytes, bytes + 3, &cp);
        char out[4];
        if (n > 0 && (cti_utf8_encode(cp, out) != n || memcmp(out, bytes, (size_t)n) != 0)) {
            fail_msg("%06x", i);
        }
    }
}

static void nearest_names(void **state)
{
    (void)state;
    static const char *const names[] = {
        "training.steps", "training.seq_len", "optimizer.lr", "lr", "warmup_steps", "cp"};
    static const struct {
        const char *word;
        int index;
    } rows[] = {{"training.steps", 0},
                {"training.step", 0},
                {"trainign.steps", 0},
                {"training.seqlen", 1},
                {"optimzer.lr", 2},
                {"l", 3},
                {"rl", 3},
                {"warmpu_step", 4},
                {"xyzzy.plugh", -1},
                {"", 3},
                {"abcdefghij", -1},
                {"pc", 5}};
    for (size_t i = 0; i < N_OF(rows); i++) {
        if (cti_nearest(rows[i].word, names, N_OF(names)) != rows[i].index) {
            fail_msg("'%s' got %d", rows[i].word, cti_nearest(rows[i].word, names, N_OF(names)));
        }
    }
    assert_int_equal(cti_nearest("lr", names, 0), -1);
    static const char *const ties[] = {"abd", "abe", "abc"};
    assert_int_equal(cti_nearest("abx", ties, 3), 0);
    assert_int_equal(cti_nearest("abc", ties, 3), 2);
    /* length 9 allows 3 edits, length 8 only 2 */
    static const char *const nine[] = {"aaaaaaxyz"};
    assert_int_equal(cti_nearest("aaaaaaaaa", nine, 1), 0);
    static const char *const eight[] = {"aaaaaxyz"};
    assert_int_equal(cti_nearest("aaaaaaaa", eight, 1), -1);
    char word[1001];
    memset(word, 'q', 1000);
    word[1000] = '\0';
    assert_int_equal(cti_nearest(word, names, N_OF(names)), -1);
    const char *const itself[] = {"lr", word};
    assert_int_equal(cti_nearest(word, itself, 2), 1);
    assert_int_equal(cti_nearest("lrx", itself, 2), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffer_grows),          cmocka_unit_test(buffer_fails_once_and_for_all),
        cmocka_unit_test(comparisons),           cmocka_unit_test(glob),
        cmocka_unit_test(glob_does_not_blow_up), cmocka_unit_test(utf8_takes_the_valid),
        cmocka_unit_test(utf8_refuses_the_rest), cmocka_unit_test(nearest_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
