/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: tokenizer base */
/* labels: fast */
/* Ids and texts against PyPI's `tokenizers` and `tiktoken` (tests/parity/tokenizer/record.py): small tokenizers with the pipelines of
 * well-known families, and the vocabulary that our own trainer wrote; special text as text and matched; the file's post-processor; texts back,
 * with special tokens and without; bytes that are not UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "tokenizer/tokenizer.h"

enum { BLOCK = 10 };

static const ct_alloc *alloc;
static json_t *recorded;

static ct_tokenizer *open_folder(const char *name)
{
    char path[1024];
    ct_err err = {0};
    ct_tokenizer *tok = NULL;
    snprintf(path, sizeof path, strcmp(name, "shipped") == 0 ? "%s/share/ctitan/tokenizer" : "%s/tests/parity/tokenizer/%s",
             CT_SOURCE_DIR, name);
    /* As the library: a character without a token is left out. */
    const ct_tokenizer_options options = {.on_unknown = CT_ON_UNKNOWN_DROP};
    if (ct_tokenizer_open(alloc, path, &options, &tok, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    return tok;
}

static uint64_t fnv(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++) {
        h = (h ^ p[i]) * 0x100000001b3u;
    }
    return h;
}

static uint64_t hash_ids(uint64_t h, const ct_tokens *ids)
{
    for (int64_t i = 0; i < ids->n; i++) {
        const uint32_t id = (uint32_t)ids->ids[i];
        const unsigned char bytes[4] = {(unsigned char)id, (unsigned char)(id >> 8), (unsigned char)(id >> 16), (unsigned char)(id >> 24)};
        h = fnv(h, bytes, 4);
    }
    return fnv(h, "\xff", 1);
}

#define FNV_START 0xcbf29ce484222325u

/* Called behind each string; compares at the end of a block. */
static void end_of_string(const char *name, const char *row, const json_t *rows, size_t i, size_t n, uint64_t *h)
{
    if ((i + 1) % BLOCK != 0 && i + 1 < n) {
        return;
    }
    char hex[24];
    const json_t *blocks = json_object_get(json_object_get(rows, row), "blocks");
    const char *wanted = json_string_value(json_array_get(blocks, i / BLOCK));
    snprintf(hex, sizeof hex, "%016llx", (unsigned long long)*h);
    if (wanted == NULL || strcmp(hex, wanted) != 0) {
        fail_msg("%s, %s: strings %zu to %zu differ", name, row, i / BLOCK * BLOCK, i);
    }
    *h = FNV_START;
}

static void compare_shown(const char *name, const char *row, const json_t *wanted, size_t i, const ct_tokens *found)
{
    bool same = wanted == NULL || found->n == (int64_t)json_array_size(wanted);
    for (int64_t k = 0; wanted != NULL && k < found->n && same; k++) {
        same = found->ids[k] == (int32_t)json_integer_value(json_array_get(wanted, (size_t)k));
    }
    if (!same) {
        fail_msg("%s, %s: string %zu: %d ids, wanted %zu, or other ones", name, row, i, (int)found->n, json_array_size(wanted));
    }
}

/* The bytes of string i: of "strings", or of "raw", which is hexadecimal. */
static void input(const char *list, size_t i, cti_str *out)
{
    const json_t *s = json_array_get(json_object_get(recorded, list), i);
    cti_str_reset(out);
    if (strcmp(list, "strings") == 0) {
        cti_str_add_n(out, json_string_value(s), json_string_length(s));
        return;
    }
    for (const char *p = json_string_value(s); *p != '\0'; p += 2) {
        unsigned byte = 0;
        assert_int_equal(sscanf(p, "%2x", &byte), 1);
        cti_str_add_char(out, (char)byte);
    }
}

static void compare(const ct_tokenizer *tok, const char *name, const char *list, const char *row, unsigned flags)
{
    const json_t *rows = json_object_get(json_object_get(recorded, "tokenizers"), name);
    const size_t n = json_array_size(json_object_get(recorded, list));
    const json_t *shown = json_object_get(json_object_get(rows, row), "ids");
    cti_str text = {.alloc = alloc};
    uint64_t h = FNV_START;
    assert_true(n >= 100);
    for (size_t i = 0; i < n; i++) {
        ct_tokens found = {.alloc = alloc};
        ct_err err = {0};
        input(list, i, &text);
        if (ct_tokenizer_encode(tok, cti_str_text(&text), text.len, flags, &found, &err) != CT_OK) {
            fail_msg("%s, string %zu: %s", name, i, err.message);
        }
        compare_shown(name, row, json_array_get(shown, i), i, &found);
        h = hash_ids(h, &found);
        end_of_string(name, row, rows, i, n, &h);
        ct_tokens_deinit(&found);
    }
    cti_str_deinit(&text);
}

static bool is_cut(const json_t *rows, size_t i)
{
    const json_t *cut = json_object_get(rows, "cut");
    for (size_t k = 0; k < json_array_size(cut); k++) {
        if ((size_t)json_integer_value(json_array_get(cut, k)) == i) {
            return true;
        }
    }
    return false;
}

/* Ids with the template back to text, whole and one at a time. */
static void compare_decoded(const ct_tokenizer *tok, const char *name, const char *row, unsigned flags)
{
    const json_t *rows = json_object_get(json_object_get(recorded, "tokenizers"), name);
    const size_t n = json_array_size(json_object_get(recorded, "strings"));
    uint64_t h = FNV_START;
    cti_str text = {.alloc = alloc};
    for (size_t i = 0; i < n; i++) {
        ct_tokens ids = {.alloc = alloc};
        cti_str out = {.alloc = alloc}, streamed = {.alloc = alloc};
        ct_decode_stream stream = {0};
        ct_err err = {0};
        input("strings", i, &text);
        assert_int_equal(ct_tokenizer_encode(tok, cti_str_text(&text), text.len, CT_ENCODE_MATCH_SPECIAL | CT_ENCODE_TEMPLATE, &ids, &err), CT_OK);
        assert_int_equal(ct_tokenizer_decode(tok, ids.ids, ids.n, flags, &out, &err), CT_OK);
        for (int64_t k = 0; k < ids.n; k++) {
            assert_int_equal(ct_decode_stream_push(&stream, tok, ids.ids[k], flags, &streamed, &err), CT_OK);
        }
        ct_decode_stream_finish(&stream, &streamed);
        if (!is_cut(rows, i)) {
            if (streamed.len != out.len || memcmp(cti_str_text(&streamed), cti_str_text(&out), out.len) != 0) {
                fail_msg("%s, string %zu: '%s' one at a time, '%s' at once", name, i, cti_str_text(&streamed), cti_str_text(&out));
            }
            h = fnv(h, cti_str_text(&out), out.len);
        }
        h = fnv(h, "\xff", 1);
        end_of_string(name, row, rows, i, n, &h);
        cti_str_deinit(&out);
        cti_str_deinit(&streamed);
        ct_tokens_deinit(&ids);
    }
    cti_str_deinit(&text);
}

static void test_folder(void **state)
{
    const char *name = *state;
    const json_t *rows = json_object_get(json_object_get(recorded, "tokenizers"), name);
    ct_tokenizer *tok = open_folder(name);
    compare(tok, name, "strings", "text", 0);
    compare(tok, name, "strings", "match", CT_ENCODE_MATCH_SPECIAL);
    compare(tok, name, "strings", "template", CT_ENCODE_MATCH_SPECIAL | CT_ENCODE_TEMPLATE);
    if (json_object_get(rows, "raw") != NULL) {
        compare(tok, name, "raw", "raw", 0);
    }
    compare_decoded(tok, name, "decoded", 0);
    if (json_object_get(rows, "skipped") != NULL) {
        compare_decoded(tok, name, "skipped", CT_DECODE_SKIP_SPECIAL);
    }
    ct_tokenizer_destroy(&tok);
}

/* BOS and EOS as tokenizer_config.json says; one that the file's template adds already is not added twice. */
static void test_documents(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt2", "llama3", "bytes", "shipped", "tiktoken"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ct_tokenizer *tok = open_folder(names[i]);
        ct_tokens ids = {.alloc = alloc};
        ct_err err = {0};
        assert_int_equal(ct_tokenizer_encode(tok, "cat", 3, CT_ENCODE_DOCUMENT, &ids, &err), CT_OK);
        assert_true(ids.n >= 3);
        assert_int_equal(ids.ids[0], ct_tokenizer_id_of(tok, "<|begin_of_text|>", 17));
        assert_int_not_equal(ids.ids[1], ids.ids[0]);
        assert_int_equal(ids.ids[ids.n - 1], ct_tokenizer_id_of(tok, "<|end_of_text|>", 15));
        ct_tokens_deinit(&ids);
        ct_tokenizer_destroy(&tok);
    }
}

int main(void)
{
    ct_err err = {0};
    alloc = ct_alloc_system();
    if (cti_json_read_file(alloc, CT_SOURCE_DIR "/tests/parity/tokenizer/recorded.json", &recorded, &err) != CT_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    static char names[][16] = {"gpt2",        "llama3", "bytes",     "llama2", "mistral", "qwen2",   "deepseek_v3",  "o200k",
                               "bert",        "t5",     "gemma",     "wordlevel", "clip", "added",   "shipped",      "vocab_merges",
                               "tiktoken",    "marks"};
    enum { N = sizeof names / sizeof *names };
    struct CMUnitTest tests[N + 1] = {0};
    for (size_t i = 0; i < N; i++) {
        tests[i] = (struct CMUnitTest){names[i], test_folder, NULL, NULL, names[i]};
    }
    tests[N] = (struct CMUnitTest){"documents", test_documents, NULL, NULL, NULL};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    json_decref(recorded);
    return failed;
}
