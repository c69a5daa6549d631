/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: tokenizer base */
/* labels: slow */
/* Every code point against PyPI's `tokenizers` (tests/parity/tokenizer/unicode.py): classes of patterns and components, normal forms
 * and the other normalizers. A hash over all code points each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "tokenizer/tokenizer_internal.h"

static const ct_alloc *alloc;
static json_t *recorded;

static uint64_t fnv(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++) {
        h = (h ^ p[i]) * 0x100000001b3u;
    }
    return h;
}

static uint64_t fnv_point(uint64_t h, uint32_t cp)
{
    const unsigned char bytes[3] = {(unsigned char)cp, (unsigned char)(cp >> 8), (unsigned char)(cp >> 16)};
    return fnv(h, bytes, 3);
}

#define FNV_START 0xcbf29ce484222325u

/* The ends of the ranges of a set; surrogates are no characters and part a range. */
static uint64_t hash_set(bool (*is_in)(uint32_t cp, void *ctx), void *ctx)
{
    uint64_t h = FNV_START;
    bool inside = false;
    for (uint32_t cp = 0; cp <= 0x110000; cp++) {
        const bool is = cp < 0x110000 && !(cp >= 0xd800 && cp < 0xe000) && is_in(cp, ctx);
        if (is != inside) {
            h = fnv_point(h, is ? cp : cp - 1);
        }
        inside = is;
    }
    return h;
}

static void expect_hash(const char *group, const char *name, uint64_t found)
{
    char hex[24];
    snprintf(hex, sizeof hex, "%016llx", (unsigned long long)found);
    const char *wanted = json_string_value(json_object_get(json_object_get(recorded, group), name));
    if (wanted == NULL || strcmp(wanted, hex) != 0) {
        fail_msg("%s: %s, the library has %s", name, hex, wanted ? wanted : "nothing");
    }
}

typedef struct pattern_ctx {
    cti_regex *regex;
    cti_matcher *matcher;
} pattern_ctx;

static bool matches(uint32_t cp, void *ctx)
{
    const pattern_ctx *c = ctx;
    char utf8[4];
    size_t start = 0, end = 0;
    const size_t n = (size_t)cti_utf8_encode(cp, utf8);
    assert_int_equal(cti_regex_find(c->regex, c->matcher, utf8, n, 0, &start, &end, NULL), CT_OK);
    return start == 0 && end == n;
}

static void test_patterns(void **state)
{
    (void)state;
    static const char *const patterns[] = {"\\p{L}", "\\p{M}", "\\p{N}",  "\\p{P}",  "\\p{S}",  "\\p{Z}",  "\\p{Lu}",  "\\p{Ll}",
                                           "\\p{Lt}", "\\p{Lm}", "\\p{Lo}", "\\p{Nd}", "\\p{Han}", "\\w",    "\\s",      "\\d"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        /* as it is, and once more as the complement of its negation in a class */
        for (int twice = 0; twice < 2; twice++) {
            char text[32], name[32];
            ct_err err = {0};
            pattern_ctx c = {0};
            snprintf(text, sizeof text, twice ? "[^%s]" : "%s", patterns[i]);
            snprintf(name, sizeof name, "regex %s", patterns[i]);
            assert_int_equal(cti_matcher_create(alloc, &c.matcher, &err), CT_OK);
            if (cti_regex_create(alloc, text, strlen(text), "test", &c.regex, &err) != CT_OK) {
                fail_msg("%s", err.message);
            }
            uint64_t h = FNV_START;
            bool inside = false;
            for (uint32_t cp = 0; cp <= 0x110000; cp++) {
                const bool is = cp < 0x110000 && !(cp >= 0xd800 && cp < 0xe000) && matches(cp, &c) != (twice == 1);
                h = is != inside ? fnv_point(h, is ? cp : cp - 1) : h;
                inside = is;
            }
            expect_hash("sets", name, h);
            cti_regex_destroy(&c.regex);
            cti_matcher_destroy(&c.matcher);
        }
    }
}

static bool call(uint32_t cp, void *ctx)
{
    bool (*const *is_in)(uint32_t) = ctx;
    return (*is_in)(cp);
}

static void test_classes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool (*is_in)(uint32_t cp);
    } rows[] = {{"punctuation", cti_is_punctuation}, {"numeric", cti_is_numeric},      {"word", cti_is_word},
                {"space", cti_is_space},             {"marks", cti_is_combining_mark}, {"nonspacing", cti_is_nonspacing_mark}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool (*is_in)(uint32_t) = rows[i].is_in;
        expect_hash("sets", rows[i].name, hash_set(call, &is_in));
    }
}

/* A tokenizer of one normalizer, for its steps. */
static ct_tokenizer *with_normalizer(const char *type)
{
    char json[256];
    ct_tokenizer *tok = NULL;
    ct_err err = {0};
    snprintf(json, sizeof json, "{\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"a\": 0}, \"unk_token\": \"a\"}, \"normalizer\": {\"type\": \"%s\"}}", type);
    if (ct_tokenizer_from_json(alloc, json, strlen(json), NULL, 0, "test", NULL, &tok, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    return tok;
}

static uint64_t hash_map(const char *type, const char *before, const char *after, bool marks_only)
{
    ct_tokenizer *tok = with_normalizer(type);
    cti_scratch scratch;
    uint64_t h = FNV_START;
    assert_int_equal(cti_scratch_init(&scratch, alloc, false, NULL), CT_OK);
    for (uint32_t cp = 0; cp < 0x110000; cp++) {
        char text[32] = "", utf8[4];
        const size_t n = (size_t)cti_utf8_encode(cp, utf8), lead = strlen(before);
        const int c = cti_category(cp);
        if (n == 0 || (marks_only && (c < 6 || c > 8))) { /* utf8proc's Mn, Mc, Me */
            continue;
        }
        memcpy(text, before, lead);
        memcpy(text + lead, utf8, n);
        memcpy(text + lead + n, after, strlen(after));
        const char *out = NULL;
        size_t size = 0;
        assert_int_equal(cti_normalize(tok->norms, tok->n_norms, &scratch, text, lead + n + strlen(after), &out, &size, NULL, NULL), CT_OK);
        if (size != n || memcmp(out, utf8, n) != 0) {
            h = fnv_point(h, cp);
            h = fnv(h, out, size);
            h = fnv(h, "\xff", 1);
        }
    }
    cti_scratch_deinit(&scratch);
    ct_tokenizer_destroy(&tok);
    return h;
}

static void test_normalizers(void **state)
{
    (void)state;
    static const char *const types[] = {"NFC", "NFD", "NFKC", "NFKD", "Nmt", "Strip", "Lowercase", "StripAccents", "ByteLevel", "BertNormalizer"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        expect_hash("maps", types[i], hash_map(types[i], "", "", false));
    }
    /* Each mark between one of class 230 and one of class 220: the order of marks, and what composes. */
    expect_hash("maps", "order", hash_map("NFC", "a\xcc\x81", "\xcc\xa3", true));
}

int main(void)
{
    ct_err err = {0};
    alloc = ct_alloc_system();
    if (cti_json_read_file(alloc, CT_SOURCE_DIR "/tests/parity/tokenizer/unicode.json", &recorded, &err) != CT_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_classes), cmocka_unit_test(test_normalizers), cmocka_unit_test(test_patterns)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    json_decref(recorded);
    return failed;
}
