/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: tokenizer base */
/* labels: fast */
/* Small inputs that broke other tokenizers, and files that must be refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "tokenizer/tokenizer.h"

static const ct_alloc *alloc;
#define LETTERS "abcdefghijklmnopqrstuvwxyz_0123456789 <>|"

/* tokenizer.json with one token per character of `chars`, no merges, and the given members ("" for none). */
static ct_status make(const char *chars, const char *model_more, const char *added, const char *top_more, const char *config,
                      const ct_tokenizer_options *options, ct_tokenizer **out, ct_err *err)
{
    cti_str s = {.alloc = alloc};
    cti_str_add(&s, "{\"model\": {\"type\": \"BPE\", \"merges\": [], \"vocab\": {");
    for (int i = 0; chars[i] != '\0'; i++) {
        cti_str_printf(&s, "%s\"%c\": %d", i > 0 ? ", " : "", chars[i], i);
    }
    cti_str_printf(&s, "}%s}, \"added_tokens\": [%s]%s}", model_more, added, top_more);
    const ct_status st = ct_tokenizer_from_json(alloc, s.data, s.len, config, config != NULL ? strlen(config) : 0, "case.json",
                                                options, out, err);
    cti_str_deinit(&s);
    return st;
}

/* Space-separated ids of a text. */
static const char *ids_of(const ct_tokenizer *tok, const char *text, size_t size, unsigned flags)
{
    static char buf[4096];
    ct_tokens ids = {.alloc = alloc};
    ct_err err = {0};
    buf[0] = '\0';
    if (ct_tokenizer_encode(tok, text, size, flags, &ids, &err) != CT_OK) {
        snprintf(buf, sizeof buf, "%s: %s", ct_status_name(err.status), err.message);
    }
    for (int64_t i = 0; i < ids.n; i++) {
        snprintf(buf + strlen(buf), sizeof buf - strlen(buf), "%s%d", i > 0 ? " " : "", ids.ids[i]);
    }
    ct_tokens_deinit(&ids);
    return buf;
}

static void expect(const char *chars, const char *model_more, const char *added, const char *top_more, const char *text,
                   const char *wanted)
{
    ct_tokenizer *tok = NULL;
    ct_err err = {0};
    if (make(chars, model_more, added, top_more, NULL, NULL, &tok, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    assert_string_equal(ids_of(tok, text, strlen(text), 0), wanted);
    ct_tokenizer_destroy(&tok);
}

#define ADDED(id, text, more) "{\"id\": " #id ", \"content\": \"" text "\", \"special\": false, \"normalized\": false" more "}"

/* The longest added token at each place, whatever the order of declaration. */
static void test_added_longest(void **state)
{
    (void)state;
    expect(LETTERS, "", ADDED(41, "my_1", "") "," ADDED(42, "my_12", "") "," ADDED(43, "my_123", ""), "", "my_1 my_12 my_123",
           "41 37 42 37 43");
    expect(LETTERS, "", ADDED(41, "my_123", "") "," ADDED(42, "my_12", "") "," ADDED(43, "my_1", ""), "", "my_1 my_12 my_123",
           "43 37 42 37 41");
    expect(LETTERS, "", ADDED(41, "aa", "") "," ADDED(42, "bb", "") "," ADDED(43, "bbaa", ""), "", "aabbaa", "41 43");
}

static void test_added_words_and_blanks(void **state)
{
    (void)state;
    const char *m = ADDED(41, "<m>", ", \"single_word\": true");
    expect(LETTERS, "", m, "", "<m>", "41");
    expect(LETTERS, "", m, "", "<m> a", "41 37 0");
    expect(LETTERS, "", m, "", "a <m>", "0 37 41");
    expect(LETTERS, "", m, "", "a<m>", "0 38 12 39");
    expect(LETTERS, "", m, "", "<m>a", "38 12 39 0");
    expect(LETTERS ".", "", ADDED(42, "<m>", ", \"single_word\": true"), "", "a.<m>", "0 41 42");
    const char *strip = ADDED(41, "<m>", ", \"lstrip\": true") "," ADDED(42, "<n>", ", \"rstrip\": true");
    expect(LETTERS, "", strip, "", "a  <m> b", "0 41 37 1");
    expect(LETTERS, "", strip, "", "a <n>   b", "0 37 42 1");
}

static void byte_vocab(cti_str *s, int leave_out)
{
    cti_str_add(s, "{\"model\": {\"type\": \"BPE\", \"byte_fallback\": true, \"unk_token\": \"<unk>\", \"merges\": [], \"vocab\": {\"<unk>\": 0");
    for (int b = 0; b < 256; b++) {
        if (b != leave_out) {
            cti_str_printf(s, ", \"<0x%02X>\": %d", b, b + 1);
        }
    }
    cti_str_add(s, ", \"a\": 257, \"b\": 258}}}");
}

static void test_byte_fallback(void **state)
{
    (void)state;
    static const struct {
        int leave_out;
        const char *text, *wanted;
    } rows[] = {{-1, "a\n\xc3\xa9\xf0\x9f\x98\x80", "257 11 196 170 241 160 153 129"}, {0xa9, "a\xc3\xa9" "b", "257 0 258"}};
    for (size_t i = 0; i < 2; i++) {
        cti_str s = {.alloc = alloc};
        ct_tokenizer *tok = NULL;
        ct_err err = {0};
        byte_vocab(&s, rows[i].leave_out);
        if (ct_tokenizer_from_json(alloc, s.data, s.len, NULL, 0, "bytes.json", NULL, &tok, &err) != CT_OK) {
            fail_msg("%s", err.message);
        }
        assert_string_equal(ids_of(tok, rows[i].text, strlen(rows[i].text), 0), rows[i].wanted);
        ct_tokenizer_destroy(&tok);
        cti_str_deinit(&s);
    }
}

/* A character without a token is an error that names it and its place; dropping it is a choice, and counted. */
static void test_unknown(void **state)
{
    (void)state;
    ct_tokenizer *tok = NULL;
    ct_err err = {0};
    assert_int_equal(make("ab", "", "", "", NULL, NULL, &tok, &err), CT_OK);
    const char *text = "a\xc3\xa9" "bc";
    assert_non_null(strstr(ids_of(tok, text, strlen(text), 0), "ERR_DATA"));
    assert_non_null(strstr(ids_of(tok, text, strlen(text), 0), "U+00E9"));
    ct_tokenizer_destroy(&tok);
    const ct_tokenizer_options drop = {.on_unknown = CT_ON_UNKNOWN_DROP};
    assert_int_equal(make("ab", "", "", "", NULL, &drop, &tok, &err), CT_OK);
    ct_tokens ids = {.alloc = alloc};
    assert_int_equal(ct_tokenizer_encode(tok, text, strlen(text), 0, &ids, &err), CT_OK);
    assert_true(ids.n == 2 && ids.n_dropped == 2);
    ct_tokens_deinit(&ids);
    ct_tokenizer_destroy(&tok);
    const char *unk = ", \"unk_token\": \"u\", \"fuse_unk\": ";
    char more[96];
    snprintf(more, sizeof more, "%strue", unk);
    expect("uab", more, "", "", "a\xc3\xa9\xc3\xa8" "b", "1 0 2");
    snprintf(more, sizeof more, "%sfalse", unk);
    expect("uab", more, "", "", "a\xc3\xa9\xc3\xa8" "b", "1 0 0 2");
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *model_more, *added, *top_more, *words;
    } rows[] = {
        {"", "", ", \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"(unclosed\"}, \"behavior\": \"Isolated\", \"invert\": false}", "(unclosed"},
        {"", "", ", \"pre_tokenizer\": {\"type\": \"Wonder\"}", "Wonder"},
        {"", "", ", \"normalizer\": {\"type\": \"Magic\"}", "Magic"},
        {"", "", ", \"post_processor\": {\"type\": \"Odd\"}", "Odd"},
        {"", "", ", \"decoder\": {\"type\": \"Strange\"}", "Strange"},
        {", \"dropout\": 0.1", "", "", "dropout"},
        {"", ADDED(0, "zz", ""), "", "zz"},
        {"", "{\"content\": \"x\"}", "", "id"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ct_tokenizer *tok = NULL;
        ct_err err = {0};
        const ct_status st = make("ab", rows[i].model_more, rows[i].added, rows[i].top_more, NULL, NULL, &tok, &err);
        if (st == CT_OK || strstr(err.message, rows[i].words) == NULL || strstr(err.message, "case.json") == NULL) {
            fail_msg("row %zu: %s, '%s'", i, ct_status_name(st), err.message);
        }
    }
    ct_tokenizer *tok = NULL;
    ct_err err = {0};
    assert_int_equal(ct_tokenizer_open(alloc, "/nonexistent-folder", NULL, &tok, &err), CT_ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, "/nonexistent-folder"));
    static const char *const broken[] = {"", "{", "[]", "{\"model\": 3}", "{\"model\": {\"type\": \"Unigram\"}}", "{\"model\": {\"type\": \"BPE\"}}"};
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        assert_int_not_equal(ct_tokenizer_from_json(alloc, broken[i], strlen(broken[i]), NULL, 0, "x.json", NULL, &tok, NULL), CT_OK);
    }
}

/* BOS and EOS of the same text; exactly what is asked for, whether or not the file's template adds BOS itself. */
static void test_bos_eos(void **state)
{
    (void)state;
    ct_tokenizer *tok = NULL;
    ct_err err = {0};
    const char *e = "{\"id\": 41, \"content\": \"<e>\", \"special\": true, \"normalized\": false}";
    assert_int_equal(make(LETTERS, "", e, "", "{\"bos_token\": \"<e>\", \"eos_token\": \"<e>\"}", NULL, &tok, &err), CT_OK);
    assert_string_equal(ids_of(tok, "a", 1, CT_ENCODE_BOS | CT_ENCODE_EOS), "41 0 41");
    ct_tokenizer_destroy(&tok);
    const char *both = "{\"id\": 41, \"content\": \"<b>\", \"special\": true, \"normalized\": false},"
                       "{\"id\": 42, \"content\": \"<e>\", \"special\": true, \"normalized\": false}";
    const char *post = ", \"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"<b>\", \"type_id\": 0}},"
                       "{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}], \"pair\": [], \"special_tokens\": {\"<b>\": {\"id\": \"<b>\", \"ids\": [41], \"tokens\": [\"<b>\"]}}}";
    if (make(LETTERS, "", both, post, "{\"bos_token\": \"<b>\", \"eos_token\": {\"content\": \"<e>\"}}", NULL, &tok, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    assert_string_equal(ids_of(tok, "a", 1, 0), "0");
    assert_string_equal(ids_of(tok, "a", 1, CT_ENCODE_BOS), "41 0");
    assert_string_equal(ids_of(tok, "a", 1, CT_ENCODE_EOS), "0 42");
    assert_string_equal(ids_of(tok, "a", 1, CT_ENCODE_BOS | CT_ENCODE_EOS), "41 0 42");
    assert_string_equal(ids_of(tok, "a", 1, CT_ENCODE_DOCUMENT), "41 0 42"); /* not twice */
    /* special text in a document stays text unless it is asked to match */
    assert_string_equal(ids_of(tok, "<e>", 3, 0), "38 4 39");
    assert_string_equal(ids_of(tok, "<e>", 3, CT_ENCODE_MATCH_SPECIAL), "42");
    ct_tokenizer_destroy(&tok);
}

static ct_tokenizer *shipped(void)
{
    ct_tokenizer *tok = NULL;
    ct_err err = {0};
    if (ct_tokenizer_open(alloc, CT_SOURCE_DIR "/share/ctitan/tokenizer", NULL, &tok, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    return tok;
}

/* A million equal letters, blanks and carets: no recursion, no quadratic time (the test's own limit would end it). */
static void test_long_runs(void **state)
{
    (void)state;
    ct_tokenizer *tok = shipped();
    enum { N = 1000000 };
    char *text = ct_alloc_zeroed(alloc, N + 2, 1, NULL);
    static const char fills[] = "a^ \n";
    for (int f = 0; fills[f] != '\0'; f++) {
        ct_tokens ids = {.alloc = alloc};
        cti_str back = {.alloc = alloc};
        ct_err err = {0};
        memset(text, fills[f], N);
        text[N] = 'q';
        if (ct_tokenizer_encode(tok, text, N + 1, 0, &ids, &err) != CT_OK) {
            fail_msg("%s", err.message);
        }
        assert_int_equal(ct_tokenizer_decode(tok, ids.ids, ids.n, 0, &back, &err), CT_OK);
        assert_true(back.len == N + 1 && memcmp(back.data, text, N + 1) == 0);
        ct_tokens_deinit(&ids);
        cti_str_deinit(&back);
    }
    ct_alloc_free(alloc, text);
    ct_tokenizer_destroy(&tok);
}

/* An emoji's bytes one by one: raw decode is exact, the stream shows the character once it is whole, a cut one becomes U+FFFD. */
static void test_streaming(void **state)
{
    (void)state;
    ct_tokenizer *tok = shipped();
    ct_tokens ids = {.alloc = alloc};
    ct_err err = {0};
    cti_str out = {.alloc = alloc};
    ct_decode_stream stream = {0};
    assert_int_equal(ct_tokenizer_encode(tok, "\xf0\x9f\x98\x80", 4, 0, &ids, &err), CT_OK);
    for (int64_t i = 0; i < ids.n; i++) {
        assert_true(i == 0 || i == ids.n || out.len == 0);
        assert_int_equal(ct_decode_stream_push(&stream, tok, ids.ids[i], 0, &out, &err), CT_OK);
    }
    assert_string_equal(cti_str_text(&out), "\xf0\x9f\x98\x80");
    cti_str_reset(&out);
    if (ids.n > 1) {
        stream = (ct_decode_stream){0};
        assert_int_equal(ct_decode_stream_push(&stream, tok, ids.ids[0], 0, &out, &err), CT_OK);
        ct_decode_stream_finish(&stream, &out);
        assert_string_equal(cti_str_text(&out), "\xef\xbf\xbd");
    }
    assert_int_equal(ct_tokenizer_decode(tok, (const int32_t[]){1 << 20}, 1, 0, &out, &err), CT_ERR_RANGE);
    cti_str_deinit(&out);
    ct_tokens_deinit(&ids);
    ct_tokenizer_destroy(&tok);
}

/* The shipped vocabulary is what our trainer makes of the shipped corpus, byte for byte. */
static void test_shipped_is_trained(void **state)
{
    (void)state;
    static const char *const files[] = {CT_SOURCE_DIR "/share/ctitan/demo.jsonl"};
    static const char *const names[] = {"tokenizer.json", "tokenizer_config.json"};
    const ct_tokenizer_train_config config = {.vocab_size = 2048};
    ct_err err = {0};
    char folder[128];
    snprintf(folder, sizeof folder, "%s/retrained-vocabulary", CT_BINARY_DIR);
    if (ct_tokenizer_train(alloc, &config, files, 1, NULL, folder, NULL, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    for (int i = 0; i < 2; i++) {
        char a[512], b[512], *x = NULL, *y = NULL;
        size_t nx = 0, ny = 0;
        snprintf(a, sizeof a, "%s/%s", folder, names[i]);
        snprintf(b, sizeof b, "%s/share/ctitan/tokenizer/%s", CT_SOURCE_DIR, names[i]);
        assert_int_equal(cti_file_read(alloc, a, 0, &x, &nx, &err), CT_OK);
        assert_int_equal(cti_file_read(alloc, b, 0, &y, &ny, &err), CT_OK);
        assert_int_equal(nx, ny);
        assert_memory_equal(x, y, nx);
        ct_alloc_free(alloc, x);
        ct_alloc_free(alloc, y);
    }
    ct_tokenizer *tok = shipped();
    assert_int_equal(ct_tokenizer_vocab_size(tok), 2048);
    ct_tokenizer_destroy(&tok);
}

/* Bytes of the shipped file changed: any status, no crash; what opens encodes without a crash. */
static void test_mutated_file(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    ct_err err = {0};
    assert_int_equal(cti_file_read(alloc, CT_SOURCE_DIR "/tests/parity/tokenizer/llama3/tokenizer.json", 0, &text, &size, &err), CT_OK);
    for (uint64_t seed = 0; seed < 400; seed++) {
        const cti_rng_key key = cti_rng_key_make(seed, "tokenizer");
        char *copy = ct_alloc_zeroed(alloc, size + 1, 1, &err);
        memcpy(copy, text, size);
        for (uint64_t k = 0; k < 1 + seed % 3; k++) { /* most of the places that matter are in the first 3 KB and the last 200 bytes */
            const uint64_t at = k % 2 == 0 ? cti_rng_below(key, 3 * k, 3000) : size - 1 - cti_rng_below(key, 3 * k, 200);
            copy[at] = (char)(32 + cti_rng_below(key, 3 * k + 1, 95));
        }
        ct_tokenizer *tok = NULL;
        if (ct_tokenizer_from_json(alloc, copy, seed % 11 == 0 ? size / 2 : size, NULL, 0, "mutated.json", NULL, &tok, NULL) == CT_OK) {
            static const char hard[] = "the cat, 12345 caf\xc3\xa9\xff <|pad|>";
            (void)ids_of(tok, hard, sizeof hard - 1, (unsigned)(seed % 16));
            ct_tokenizer_destroy(&tok);
        }
        ct_alloc_free(alloc, copy);
    }
    ct_alloc_free(alloc, text);
}

int main(void)
{
    alloc = ct_alloc_system();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_added_longest), cmocka_unit_test(test_added_words_and_blanks), cmocka_unit_test(test_byte_fallback),
        cmocka_unit_test(test_unknown),       cmocka_unit_test(test_refused),                cmocka_unit_test(test_bos_eos),
        cmocka_unit_test(test_long_runs),     cmocka_unit_test(test_streaming),              cmocka_unit_test(test_shipped_is_trained),
        cmocka_unit_test(test_mutated_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
