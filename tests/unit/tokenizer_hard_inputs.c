/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: tokenizer base */
/* labels: fast */
/* Inputs that other tokenizers got wrong: how text is cut into words, marks of Metaspace beside special tokens, normal forms, added tokens made of
 * blanks or of the byte alphabet, a small stack, memory over many documents, a config that names another class. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "tokenizer/tokenizer_internal.h"

static const ct_alloc *alloc;

static ct_tokenizer *from_json(const char *json, const char *config)
{
    ct_tokenizer *tok = NULL;
    ct_err err = {0};
    if (ct_tokenizer_from_json(alloc, json, strlen(json), config, config ? strlen(config) : 0, "case.json", NULL, &tok, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    return tok;
}

static ct_tokenizer *open_parity(const char *name)
{
    char path[1024];
    ct_tokenizer *tok = NULL;
    ct_err err = {0};
    snprintf(path, sizeof path, "%s/tests/parity/tokenizer/%s", CT_SOURCE_DIR, name);
    if (ct_tokenizer_open(alloc, path, NULL, &tok, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    return tok;
}

/* The words of a text, with '|' between them. The steps but the last, which would spell bytes. */
static void expect_words(const char *text, const char *wanted)
{
    ct_tokenizer *tok = open_parity("llama3");
    cti_scratch scratch;
    cti_str found = {.alloc = alloc};
    cti_piece piece;
    const cti_piece whole = {.text = text, .size = strlen(text), .first_size = 1};
    assert_int_equal(cti_scratch_init(&scratch, alloc, false, NULL), CT_OK);
    assert_int_equal(cti_pieces_start(&scratch, tok->steps, tok->n_steps - 1, &whole, NULL), CT_OK);
    while (cti_pieces_next(&scratch, &piece, NULL) == CT_OK && piece.size > 0) {
        cti_str_add(&found, found.len > 0 ? "|" : "");
        cti_str_add_n(&found, piece.text, piece.size);
    }
    assert_string_equal(cti_str_text(&found), wanted);
    cti_str_deinit(&found);
    cti_scratch_deinit(&scratch);
    ct_tokenizer_destroy(&tok);
}

static void test_last_blank_goes_to_the_word(void **state)
{
    (void)state;
    expect_words("a  b", "a| | b");
    expect_words("    x", "   | x");
    expect_words("a   ", "a|   ");
    expect_words("\t\tq", "\t|\tq");
    expect_words("a\xc2\xa0\xc2\xa0" "b", "a|\xc2\xa0|\xc2\xa0" "b");
}

static void test_words_across_digits_and_scripts(void **state)
{
    (void)state;
    expect_words("12345678", "123|456|78");
    expect_words("3.14159", "3|.|141|59");
    expect_words("\xd9\xa1\xd9\xa2\xd9\xa3\xd9\xa4", "\xd9\xa1\xd9\xa2\xd9\xa3|\xd9\xa4");
    expect_words("x\xc2\xb2\xc2\xb3", "x|\xc2\xb2\xc2\xb3");
    expect_words("\xe4\xbd\xa0\xe5\xa5\xbd" "123\xe4\xb8\x96", "\xe4\xbd\xa0\xe5\xa5\xbd|123|\xe4\xb8\x96");
    expect_words("_under_score__", "_under|_score|__");
    expect_words("e\xcc\x81" "a", "e|\xcc\x81" "a");
}

static void test_contractions_of_any_case(void **state)
{
    (void)state;
    expect_words("I'M don'T", "I|'M| don|'T");
    expect_words("(word", "(word");
}

#define LETTERS_MODEL                                                                                                                                         \
    "\"model\": {\"type\": \"BPE\", \"merges\": [], \"vocab\": {\"a\": 0, \"b\": 1, \"c\": 2, \"d\": 3, \"\u2581\": 4}}, "                                    \
    "\"added_tokens\": [{\"id\": 5, \"content\": \"<s>\", \"special\": true, \"normalized\": false}]"

static void expect_ids(const ct_tokenizer *tok, const char *text, unsigned flags, const int32_t *wanted, int64_t n)
{
    ct_tokens ids = {.alloc = alloc};
    ct_err err = {0};
    if (ct_tokenizer_encode(tok, text, strlen(text), flags, &ids, &err) != CT_OK) {
        fail_msg("'%s': %s", text, err.message);
    }
    if (ids.n != n || memcmp(ids.ids, wanted, (size_t)n * sizeof *wanted) != 0) {
        fail_msg("'%s': %d ids, or other ones than wanted", text, (int)ids.n);
    }
    ct_tokens_deinit(&ids);
}
#define EXPECT(tok, text, flags, ...)                                                                                  \
    expect_ids(tok, text, flags, (const int32_t[]){__VA_ARGS__}, sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

static void test_metaspace_beside_special_tokens(void **state)
{
    (void)state;
    static const char *const schemes[] = {"always", "first", "never"};
    for (int i = 0; i < 3; i++) {
        char json[1024];
        snprintf(json, sizeof json, "{" LETTERS_MODEL ", \"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"\u2581\", \"prepend_scheme\": \"%s\"}}", schemes[i]);
        ct_tokenizer *tok = from_json(json, NULL);
        const unsigned match = CT_ENCODE_MATCH_SPECIAL;
        if (i == 0) {
            EXPECT(tok, "ab c<s>d", match, 4, 0, 1, 4, 2, 5, 4, 3);
            EXPECT(tok, "<s>d", match, 5, 4, 3);
        } else if (i == 1) {
            EXPECT(tok, "ab c<s>d", match, 4, 0, 1, 4, 2, 5, 3);
            EXPECT(tok, "<s>d", match, 5, 3);
        } else {
            EXPECT(tok, "ab c<s>d", match, 0, 1, 4, 2, 5, 3);
            EXPECT(tok, "<s>d", match, 5, 3);
        }
        ct_tokenizer_destroy(&tok);
    }
}

/* A normalizer of one kind in front of byte-level BPE without merges. */
static ct_tokenizer *bytes_with(const char *more)
{
    cti_str s = {.alloc = alloc};
    cti_str_add(&s, "{\"model\": {\"type\": \"BPE\", \"merges\": [], \"vocab\": {");
    for (unsigned byte = 0; byte < 256; byte++) {
        cti_str_printf(&s, "%s\"\\u%04x\": %u", byte > 0 ? ", " : "", (unsigned)cti_byte_to_char((unsigned char)byte), byte);
    }
    cti_str_printf(&s, "}}, \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": false}, \"decoder\": {\"type\": \"ByteLevel\"}%s}", more);
    ct_tokenizer *tok = from_json(cti_str_text(&s), NULL);
    cti_str_deinit(&s);
    return tok;
}

static void expect_same_ids(const ct_tokenizer *tok, const char *a, const char *b)
{
    ct_tokens ids = {.alloc = alloc};
    assert_int_equal(ct_tokenizer_encode(tok, b, strlen(b), 0, &ids, NULL), CT_OK);
    expect_ids(tok, a, 0, ids.ids, ids.n);
    ct_tokens_deinit(&ids);
}

static void test_normal_form_reorders_and_composes(void **state)
{
    (void)state;
    ct_tokenizer *tok = bytes_with(", \"normalizer\": {\"type\": \"NFC\"}");
    expect_same_ids(tok, "e\xcc\x81", "\xc3\xa9");
    expect_same_ids(tok, "\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8", "\xea\xb0\x81");
    expect_same_ids(tok, "s\xcc\x87\xcc\xa3", "\xe1\xb9\xa9");
    expect_same_ids(tok, "s\xcc\xa3\xcc\x87", "\xe1\xb9\xa9");
    expect_same_ids(tok, "\xe2\x84\xaa", "K");
    expect_same_ids(tok, "\xe2\x84\xab", "\xc3\x85");
    ct_tokenizer_destroy(&tok);
}

static void test_compatibility_form_brings_blanks(void **state)
{
    (void)state;
    static const char text[] = "\xce\xb4\xe1\xbe\xbd \xe1\xbc\xb5"; /* U+03B4 U+1FBD, blank, U+1F35 */
    static const char *const forms[] = {"NFC", "NFKC"};
    for (int i = 0; i < 2; i++) {
        char json[512];
        snprintf(json, sizeof json, "{\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"?\": 0}, \"unk_token\": \"?\"}, \"normalizer\": {\"type\": \"%s\"}, "
                 "\"pre_tokenizer\": {\"type\": \"WhitespaceSplit\"}}", forms[i]);
        ct_tokenizer *tok = from_json(json, NULL);
        if (i == 0) {
            EXPECT(tok, text, 0, 0, 0);
        } else {
            EXPECT(tok, text, 0, 0, 0, 0);
        }
        ct_tokenizer_destroy(&tok);
    }
}

static void expect_round_trip(const ct_tokenizer *tok, const char *text)
{
    ct_tokens ids = {.alloc = alloc};
    cti_str back = {.alloc = alloc};
    assert_int_equal(ct_tokenizer_encode(tok, text, strlen(text), 0, &ids, NULL), CT_OK);
    assert_int_equal(ct_tokenizer_decode(tok, ids.ids, ids.n, 0, &back, NULL), CT_OK);
    assert_string_equal(cti_str_text(&back), text);
    cti_str_deinit(&back);
    ct_tokens_deinit(&ids);
}

static void test_added_tokens_of_blanks(void **state)
{
    (void)state;
    ct_tokenizer *tok = bytes_with(", \"added_tokens\": [{\"id\": 256, \"content\": \"    \", \"normalized\": false, \"special\": false}, "
                                   "{\"id\": 257, \"content\": \"  \", \"normalized\": false, \"special\": false}]");
    char text[64];
    for (int n = 1; n <= 20; n++) {
        snprintf(text, sizeof text, "hello%*sworld", n, "");
        expect_round_trip(tok, text);
    }
    EXPECT(tok, "a       b", 0, 'a', 256, 257, ' ', 'b');
    ct_tokenizer_destroy(&tok);
}

/* Added tokens made of characters that stand for bytes elsewhere are their own text. */
static void test_added_tokens_of_the_byte_alphabet(void **state)
{
    (void)state;
    ct_tokenizer *tok = bytes_with(", \"added_tokens\": [{\"id\": 256, \"content\": \"il\xc3\x96ve\", \"special\": false}, {\"id\": 13, \"content\": \"\xc4\x8d\", \"special\": false}]");
    expect_round_trip(tok, "il\xc3\x96ve \xc4\x8d!");
    ct_tokenizer_destroy(&tok);
}

/* The pipeline is tokenizer.json's, whatever class the config names. */
static void test_config_names_another_class(void **state)
{
    (void)state;
    char path[1024], *json = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "%s/tests/parity/tokenizer/gpt2/tokenizer.json", CT_SOURCE_DIR);
    assert_int_equal(cti_file_read(alloc, path, 0, &json, &size, NULL), CT_OK);
    ct_tokenizer *tok = from_json(json, "{\"tokenizer_class\": \"LlamaTokenizer\", \"legacy\": true}");
    expect_round_trip(tok, "a (b : c) := d");
    ct_tokenizer_destroy(&tok);
    ct_alloc_free(alloc, json);
}

/* A list of ids that ends within a character, where each byte is an id: the bytes are exact, the text says U+FFFD, a stream waits for the rest. */
static void test_cut_in_a_character(void **state)
{
    (void)state;
    static const char emoji[] = "\xf0\x9f\x98\x80";
    static const int32_t ids[4] = {0xf0, 0x9f, 0x98, 0x80};
    ct_tokenizer *tok = bytes_with("");
    cti_str out = {.alloc = alloc};
    EXPECT(tok, emoji, 0, 0xf0, 0x9f, 0x98, 0x80);
    for (int64_t n = 1; n <= 4; n++) {
        ct_decode_stream stream = {0};
        cti_str_reset(&out);
        assert_int_equal(ct_tokenizer_decode(tok, ids, n, 0, &out, NULL), CT_OK);
        assert_true(out.len == (size_t)n && memcmp(out.data, emoji, out.len) == 0);
        cti_str_reset(&out);
        for (int64_t i = 0; i < n; i++) {
            assert_int_equal(out.len, 0);
            assert_int_equal(ct_decode_stream_push(&stream, tok, ids[i], 0, &out, NULL), CT_OK);
        }
        ct_decode_stream_finish(&stream, &out);
        assert_string_equal(cti_str_text(&out), n == 4 ? emoji : "\xef\xbf\xbd");
    }
    cti_str_deinit(&out);
    ct_tokenizer_destroy(&tok);
}

/* Long runs, on a thread with a stack of 256 KiB, for three kinds of tokenizers. */
static void *encode_long_runs(void *arg)
{
    static const char *const names[] = {"llama3", "llama2", "t5"};
    enum { N = 1000000 };
    int *failures = arg;
    char *text = ct_alloc_zeroed(alloc, N + 2, 1, NULL);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[1024];
        ct_tokenizer *tok = NULL;
        const ct_tokenizer_options options = {.on_unknown = CT_ON_UNKNOWN_DROP};
        snprintf(path, sizeof path, "%s/tests/parity/tokenizer/%s", CT_SOURCE_DIR, names[i]);
        *failures += ct_tokenizer_open(alloc, path, &options, &tok, NULL) != CT_OK;
        for (int f = 0; f < 3 && tok != NULL; f++) {
            ct_tokens ids = {.alloc = alloc};
            ct_err err = {0};
            memset(text, "^ a"[f], N);
            text[N] = 'q';
            if (ct_tokenizer_encode(tok, text, N + 1, 0, &ids, &err) != CT_OK) {
                fprintf(stderr, "%s: %s\n", names[i], err.message);
                ++*failures;
            }
            ct_tokens_deinit(&ids);
        }
        ct_tokenizer_destroy(&tok);
    }
    ct_alloc_free(alloc, text);
    return NULL;
}

static void test_small_stack(void **state)
{
    (void)state;
    pthread_attr_t attr;
    pthread_t thread;
    int failures = 0;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, 256 * 1024), 0);
    assert_int_equal(pthread_create(&thread, &attr, encode_long_runs, &failures), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(pthread_attr_destroy(&attr), 0);
    assert_int_equal(failures, 0);
}

/* Bytes that an encoder holds. */
typedef struct counting {
    ct_alloc alloc;
    size_t held;
} counting;

static void *count_resize(void *ctx, void *ptr, size_t size)
{
    counting *c = ctx;
    size_t *block = ptr ? (size_t *)ptr - 2 : NULL;
    c->held -= block ? block[0] : 0;
    if (size == 0) {
        ct_alloc_free(alloc, block);
        return NULL;
    }
    block = ct_alloc_resize(alloc, block, size + 16, 1, NULL);
    block[0] = size;
    c->held += size;
    return block + 2;
}

/* Many long documents, each of another number said again and again: what an encoder keeps does not grow. */
static void test_memory_over_documents(void **state)
{
    (void)state;
    ct_tokenizer *tok = open_parity("llama3");
    counting c = {.alloc = {.resize = count_resize, .ctx = &c}};
    ct_encoder *encoder = NULL;
    ct_tokens ids = {.alloc = alloc};
    char *text = ct_alloc_zeroed(alloc, 100032, 1, NULL);
    assert_int_equal(ct_encoder_create(&c.alloc, tok, &encoder, NULL), CT_OK);
    size_t after_100 = 0;
    for (int document = 0; document < 160; document++) {
        int n = 0;
        while (n < 100000) {
            n += snprintf(text + n, 32, document % 3 == 0 ? "%d" : " %dx", 1000 + document);
        }
        ids.n = 0;
        assert_int_equal(ct_encoder_encode(encoder, text, (size_t)n, 0, &ids, NULL), CT_OK);
        after_100 = document == 99 ? c.held : after_100;
    }
    assert_true(c.held <= after_100 + 4096);
    ct_alloc_free(alloc, text);
    ct_tokens_deinit(&ids);
    ct_encoder_destroy(&encoder);
    assert_int_equal(c.held, 0);
    ct_tokenizer_destroy(&tok);
}

/* A table of characters whose texts are no UTF-8, or are cut in a character, left text behind in which the next step found no end. */
static void test_damaged_charsmap(void **state)
{
    (void)state;
    static const struct {
        const char *base64, *words; /* NULL: nothing is wrong */
    } rows[] = {
        {"BAAAAAAAAABhAMMoAA==", "byte 2 of its texts is not UTF-8"},
        {"BAAAAAcAAIDDqQA=", "unit 0 of its trie wants a text at byte 7"},
        {"BAAAAAEAAIDDqQA=", "unit 0 of its trie wants a text at byte 1"},
        {"BAAAAAAAAIA=", "where none of the 0 bytes"},
        {"BAAAAAAAAIDDqQA=", NULL},
        {"AAAA", "empty"},
        {"!", "not base64"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cti_charsmap *map = NULL;
        ct_err err = {0};
        const ct_status st = cti_charsmap_create(alloc, rows[i].base64, strlen(rows[i].base64), "case.json", &map, &err);
        if (rows[i].words == NULL) {
            assert_int_equal(st, CT_OK);
            cti_charsmap_destroy(&map);
            continue;
        }
        assert_int_equal(st, CT_ERR_FORMAT);
        assert_null(map);
        assert_non_null(strstr(err.message, "case.json: 'precompiled_charsmap' is damaged"));
        assert_non_null(strstr(err.message, rows[i].words));
    }
}

int main(void)
{
    alloc = ct_alloc_system();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_last_blank_goes_to_the_word),
                                       cmocka_unit_test(test_words_across_digits_and_scripts),
                                       cmocka_unit_test(test_contractions_of_any_case),
                                       cmocka_unit_test(test_metaspace_beside_special_tokens),
                                       cmocka_unit_test(test_normal_form_reorders_and_composes),
                                       cmocka_unit_test(test_compatibility_form_brings_blanks),
                                       cmocka_unit_test(test_added_tokens_of_blanks),
                                       cmocka_unit_test(test_added_tokens_of_the_byte_alphabet),
                                       cmocka_unit_test(test_config_names_another_class),
                                       cmocka_unit_test(test_cut_in_a_character),
                                       cmocka_unit_test(test_small_stack),
                                       cmocka_unit_test(test_memory_over_documents),
                                       cmocka_unit_test(test_damaged_charsmap)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
