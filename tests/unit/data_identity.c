/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: data tokenizer base */
/* labels: fast */
/* ct_text_processor_hash: one for all forms of a tokenizer's files, another one for whatever changes ids, in files of each kind. */
#include <unistd.h>

#include "tokenizer/tokenizer_internal.h"
#include "unit/data_test.h"

/* The tokenizer of these tests: the 256 bytes, then "th", "he", "the"; "<eos>" and "<x>" are added. */
#define EOS "{\"id\": 259, \"content\": \"<eos>\", \"special\": true, \"normalized\": false, \"lstrip\": false, \"rstrip\": false, \"single_word\": false}"
#define X(lstrip) "{\"id\": 260, \"content\": \"<x>\", \"special\": false, \"normalized\": false, \"lstrip\": " lstrip ", \"rstrip\": false, \"single_word\": false}"
#define DECODER(lstrip) "\"added_tokens_decoder\": {\"259\": " EOS ", \"260\": " X(lstrip) "}"
#define CONFIG(lstrip) "{\"eos_token\": \"<eos>\", " DECODER(lstrip) "}"

static void add_vocab(cti_str *out)
{
    cti_str_add(out, "{");
    for (int b = 0; b < 256; b++) {
        const char byte = (char)b;
        cti_str letter = {.alloc = ct_alloc_system()};
        cti_bytes_to_alphabet(&byte, 1, &letter);
        cti_str_printf(out, "\"%s%s\": %d, ", b == '"' || b == '\\' ? "\\" : "", cti_str_text(&letter), b);
        cti_str_deinit(&letter);
    }
    cti_str_add(out, "\"th\": 256, \"he\": 257, \"the\": 258}");
}

static void put_json(data_folder *f, const char *merges, const char *pattern, const char *lstrip)
{
    cti_str text = {.alloc = ct_alloc_system()};
    cti_str_printf(&text,
                   "{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"pattern\": {\"Regex\": \"%s\"}, "
                   "\"behavior\": \"Isolated\", \"invert\": false}, {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": "
                   "false}]}, \"decoder\": {\"type\": \"ByteLevel\"}, \"added_tokens\": [%s, %s], \"model\": {\"type\": \"BPE\", \"merges\": %s, \"vocab\": ",
                   pattern, strcmp(lstrip, "true") == 0 ? X("true") : X("false"), EOS, merges);
    add_vocab(&text);
    cti_str_add(&text, "}}");
    put(f, "tokenizer.json", cti_str_text(&text));
    cti_str_deinit(&text);
}

static uint64_t identity(const data_folder *f, unsigned flags)
{
    ct_tokenizer *tokenizer = NULL;
    ct_err err = {0};
    uint64_t hash = 0;
    if (ct_tokenizer_open(ct_alloc_system(), f->path, NULL, &tokenizer, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    const ct_text_processor text = {.tokenizer = tokenizer, .flags = flags};
    if (ct_text_processor_hash(ct_alloc_system(), &text, &hash, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    assert_int_not_equal(hash, 0);
    ct_tokenizer_destroy(&tokenizer);
    return hash;
}

static void drop(data_folder *f, const char *name)
{
    (void)snprintf(f->file, sizeof f->file, "%s/%s", f->path, name);
    assert_int_equal(unlink(f->file), 0);
}

/* GPT-2's pattern, which folders without tokenizer.json have. */
#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\\\p{L}+| ?\\\\p{N}+| ?[^\\\\s\\\\p{L}\\\\p{N}]+|\\\\s+(?!\\\\S)|\\\\s+"
/* "the" stays in two, one way or the other: the same tokens, other ids. */
#define TH_FIRST "[\"t h\", \"h e\"]"
#define HE_FIRST "[\"h e\", \"t h\"]"

static void tokenizer_json(void **state)
{
    data_folder *f = *state;
    put(f, "tokenizer_config.json", "{\"eos_token\": \"<eos>\"}");
    put_json(f, TH_FIRST, GPT2, "false");
    const uint64_t hash = identity(f, CT_ENCODE_DOCUMENT);
    assert_int_equal(identity(f, CT_ENCODE_DOCUMENT), hash);
    assert_int_not_equal(identity(f, CT_ENCODE_DOCUMENT | CT_ENCODE_MATCH_SPECIAL), hash);
    put(f, "tokenizer_config.json", "{\"eos_token\": \"<eos>\", \"model_max_length\": 7, \"chat_template\": \"x\"}"); /* touches no ids */
    assert_int_equal(identity(f, CT_ENCODE_DOCUMENT), hash);
    put(f, "tokenizer_config.json", "{\"eos_token\": \"<x>\"}");
    assert_int_not_equal(identity(f, CT_ENCODE_DOCUMENT), hash);
    put(f, "tokenizer_config.json", "{\"eos_token\": \"<eos>\", \"pad_token\": \"<pad>\"}");
    assert_int_not_equal(identity(f, CT_ENCODE_DOCUMENT), hash);
    put(f, "tokenizer_config.json", "{\"eos_token\": \"<eos>\"}");
    put_json(f, "[[\"t\", \"h\"], [\"h\", \"e\"]]", GPT2, "false"); /* another spelling */
    assert_int_equal(identity(f, CT_ENCODE_DOCUMENT), hash);
    put_json(f, HE_FIRST, GPT2, "false");
    assert_int_not_equal(identity(f, CT_ENCODE_DOCUMENT), hash);
    put_json(f, TH_FIRST, "\\\\s+|\\\\S+", "false");
    const uint64_t other = identity(f, CT_ENCODE_DOCUMENT);
    put_json(f, TH_FIRST, ".", "false");
    assert_int_not_equal(identity(f, CT_ENCODE_DOCUMENT), other);
    put_json(f, TH_FIRST, GPT2, "true");
    assert_int_not_equal(identity(f, CT_ENCODE_DOCUMENT), hash);
}

/* Who says how a token of both files is matched (docs/differences.md). */
static void flags_of_both(void **state)
{
    data_folder *f = *state;
    put_json(f, TH_FIRST, GPT2, "false");
    put(f, "tokenizer_config.json", CONFIG("false"));
    const unsigned flags = CT_ENCODE_DOCUMENT | CT_ENCODE_MATCH_SPECIAL;
    const uint64_t hash = identity(f, flags);
    put(f, "tokenizer_config.json", CONFIG("true")); /* of one that is not special */
    assert_int_not_equal(identity(f, flags), hash);
    put(f, "tokenizer_config.json",
        "{\"eos_token\": \"<eos>\", \"added_tokens_decoder\": {\"259\": {\"content\": \"<eos>\", \"lstrip\": true, \"special\": true}}}");
    assert_int_equal(identity(f, flags), hash);
}

static void vocab_and_merges(void **state)
{
    data_folder *f = *state;
    put(f, "tokenizer_config.json", CONFIG("false"));
    put_json(f, TH_FIRST, GPT2, "false");
    const uint64_t of_json = identity(f, CT_ENCODE_DOCUMENT);
    drop(f, "tokenizer.json");
    cti_str vocab = {.alloc = ct_alloc_system()};
    add_vocab(&vocab);
    put(f, "vocab.json", cti_str_text(&vocab));
    cti_str_deinit(&vocab);
    put(f, "merges.txt", "#version: 0.2\nt h\nh e\n");
    const uint64_t hash = identity(f, CT_ENCODE_DOCUMENT);
    assert_int_equal(hash, of_json);
    put(f, "merges.txt", "h e\nt h\n");
    assert_int_not_equal(identity(f, CT_ENCODE_DOCUMENT), hash);
    put(f, "merges.txt", "t h\nh e\n");
    assert_int_equal(identity(f, CT_ENCODE_DOCUMENT), hash);
    put(f, "tokenizer_config.json", CONFIG("true"));
    assert_int_not_equal(identity(f, CT_ENCODE_DOCUMENT), hash);
}

static void words(void **state)
{
    data_folder *f = *state;
    put(f, "tokenizer_config.json", "{\"eos_token\": \"</s>\"}");
    put(f, "vocab.txt", "[UNK]\none\ntwo\n</s>\n");
    const uint64_t hash = identity(f, CT_ENCODE_DOCUMENT);
    put(f, "vocab.txt", "[UNK]\none\nTwo\n</s>\n");
    assert_int_not_equal(identity(f, CT_ENCODE_DOCUMENT), hash);
    put(f, "vocab.txt", "[UNK]\ntwo\none\n</s>\n");
    assert_int_not_equal(identity(f, CT_ENCODE_DOCUMENT), hash);
    put(f, "vocab.txt", "[UNK]\none\ntwo\n</s>\n");
    assert_int_equal(identity(f, CT_ENCODE_DOCUMENT), hash);
}

/* All bytes by rank, then two words of three letters by rank. */
static void put_ranks(data_folder *f, const char *first, const char *second)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    cti_str text = {.alloc = ct_alloc_system()};
    for (int b = 0; b < 256; b++) {
        cti_str_printf(&text, "%c%c== %d\n", digits[b >> 2], digits[b << 4 & 63], b);
    }
    cti_str_printf(&text, "%s 256\n%s 257\n", first, second);
    put(f, "tokenizer.model", cti_str_text(&text));
    cti_str_deinit(&text);
}

static void ranks(void **state)
{
    data_folder *f = *state;
    static const char th[] = "dGg=", he[] = "aGU="; /* "th", "he" */
    put_ranks(f, th, he);
    const uint64_t llama3 = identity(f, CT_ENCODE_DOCUMENT);
    put(f, "tokenizer_config.json", "{\"eos_token\": \"<eos>\", " DECODER("false") "}");
    const uint64_t hash = identity(f, CT_ENCODE_DOCUMENT);
    assert_int_not_equal(hash, llama3);
    put_ranks(f, he, th);
    assert_int_not_equal(identity(f, CT_ENCODE_DOCUMENT), hash);
    put_ranks(f, th, he);
    assert_int_equal(identity(f, CT_ENCODE_DOCUMENT), hash);
    put(f, "tokenizer_config.json", "{\"eos_token\": \"<eos>\", " DECODER("true") "}");
    assert_int_not_equal(identity(f, CT_ENCODE_DOCUMENT), hash);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)
    const struct CMUnitTest tests[] = {IN_FOLDER(tokenizer_json), IN_FOLDER(flags_of_both), IN_FOLDER(vocab_and_merges), IN_FOLDER(words), IN_FOLDER(ranks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
