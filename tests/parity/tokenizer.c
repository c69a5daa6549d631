/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: tokenizer base */
/* labels: fast */
/* Ids against PyPI's `tokenizers` (tests/parity/tokenizer/record.py): folders made by the library, with merges and with none, and the vocabulary
 * that our own trainer wrote; special text as text and matched; the file's post-processor; and the texts back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "tokenizer/tokenizer.h"

static const ct_alloc *alloc;
static json_t *recorded;

static ct_tokenizer *open_folder(const char *name)
{
    char path[1024];
    ct_err err = {0};
    ct_tokenizer *tok = NULL;
    snprintf(path, sizeof path, strcmp(name, "shipped") == 0 ? "%s/share/ctitan/tokenizer" : "%s/tests/parity/tokenizer/%s",
             CT_SOURCE_DIR, name);
    if (ct_tokenizer_open(alloc, path, NULL, &tok, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    return tok;
}

static void compare(const ct_tokenizer *tok, const char *name, const char *row, unsigned flags)
{
    const json_t *strings = json_object_get(recorded, "strings");
    const json_t *wanted = json_object_get(json_object_get(json_object_get(recorded, "ids"), name), row);
    assert_int_equal(json_array_size(strings), json_array_size(wanted));
    for (size_t i = 0; i < json_array_size(strings); i++) {
        const json_t *s = json_array_get(strings, i), *ids = json_array_get(wanted, i);
        ct_tokens found = {.alloc = alloc};
        ct_err err = {0};
        if (ct_tokenizer_encode(tok, json_string_value(s), json_string_length(s), flags, &found, &err) != CT_OK) {
            fail_msg("%s, string %zu: %s", name, i, err.message);
        }
        bool same = found.n == (int64_t)json_array_size(ids);
        for (int64_t k = 0; k < found.n && same; k++) {
            same = found.ids[k] == (int32_t)json_integer_value(json_array_get(ids, (size_t)k));
        }
        if (!same) {
            fail_msg("%s, %s: string %zu '%s': %d ids, wanted %zu, or other ones", name, row, i, json_string_value(s),
                     (int)found.n, json_array_size(ids));
        }
        ct_tokens_deinit(&found);
    }
}

static void compare_decoded(const ct_tokenizer *tok, const char *name)
{
    const json_t *rows = json_object_get(json_object_get(recorded, "ids"), name);
    const json_t *ids = json_object_get(rows, "match"), *texts = json_object_get(rows, "decoded");
    for (size_t i = 0; i < json_array_size(ids); i++) {
        cti_str out = {.alloc = alloc};
        ct_err err = {0};
        for (size_t k = 0; k < json_array_size(json_array_get(ids, i)); k++) {
            const int32_t id = (int32_t)json_integer_value(json_array_get(json_array_get(ids, i), k));
            assert_int_equal(ct_tokenizer_decode(tok, &id, 1, 0, &out, &err), CT_OK);
        }
        const json_t *text = json_array_get(texts, i);
        assert_int_equal(out.len, json_string_length(text));
        assert_memory_equal(cti_str_text(&out), json_string_value(text), out.len);
        cti_str_deinit(&out);
    }
}

static void test_folder(void **state)
{
    const char *name = *state;
    ct_tokenizer *tok = open_folder(name);
    compare(tok, name, "text", 0);
    compare(tok, name, "match", CT_ENCODE_MATCH_SPECIAL);
    compare(tok, name, "template", CT_ENCODE_MATCH_SPECIAL | CT_ENCODE_TEMPLATE);
    compare_decoded(tok, name);
    ct_tokenizer_destroy(&tok);
}

/* BOS and EOS as tokenizer_config.json says; one that the file's template adds already is not added twice. */
static void test_documents(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt2", "llama3", "bytes", "shipped"};
    for (size_t i = 0; i < 4; i++) {
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
    static char gpt2[] = "gpt2", llama3[] = "llama3", bytes[] = "bytes", shipped[] = "shipped";
    const struct CMUnitTest tests[] = {
        {"gpt2", test_folder, NULL, NULL, gpt2},
        {"llama3", test_folder, NULL, NULL, llama3},
        {"bytes", test_folder, NULL, NULL, bytes},
        {"shipped", test_folder, NULL, NULL, shipped},
        cmocka_unit_test(test_documents),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    json_decref(recorded);
    return failed;
}
