/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: tokenizer base */
/* labels: fast */
/* Mutated tokenizer files: tokenizer.json, tokenizer_config.json, vocab.json with merges.txt, vocab.txt,
 * tiktoken files. Each opens or is refused with a message; what opens encodes hard texts, decodes all that
 * comes out, and gives the same ids with a kept encoder. CTITAN_FUZZ_RUNS: how many of each kind;
 * CTITAN_FUZZ_ONLY: a pattern of the tests' names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "fuzz.h"
#include "tokenizer/tokenizer_internal.h"

static const ct_alloc *alloc;

typedef struct file {
    char *data;
    size_t size;
} file;

static file read_file(const char *name)
{
    char path[1024];
    file f = {0};
    ct_err err = {0};
    snprintf(path, sizeof path, "%s/tests/parity/tokenizer/%s", CT_SOURCE_DIR, name);
    if (cti_file_read(alloc, path, 0, &f.data, &f.size, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    return f;
}

/* --- structure: a JSON tree with values changed, taken away, moved --- */

static json_t *odd_value(fuzz_case *c)
{
    static const char *const strings[] = {
        "",          "a",      " ",      "\u2581",    "Sequence", "Replace", "Split",    "ByteLevel",
        "Metaspace", "(a|b)*", "\\s+|$", "[^\\p{L}]", "isolated", "Removed", "Isolated", "first",
        "always",    "never",  "<unk>",  "WordPiece", "BPE",      "Unigram", "Fuse",     "ByteFallback",
        "NFC",       "NFKD",   "Strip",  "(?=a)|b?",  "\\b",      "AAAA",    "th e",     "##a",
        "</w>"};
    switch (fuzz_below(c, 9)) {
    case 0:
        return json_null();
    case 1:
        return json_boolean(fuzz_below(c, 2) == 1);
    case 2:
        return json_integer((json_int_t)fuzz_below(c, 600) - 50);
    case 3:
        return json_integer(fuzz_below(c, 2) ? INT64_MAX : (json_int_t)1 << 31);
    case 4:
        return json_real(fuzz_below(c, 2) ? -1.5 : 1e300);
    case 5:
        return json_array();
    case 6:
        return json_object();
    default:
        return json_string(strings[fuzz_below(c, sizeof strings / sizeof *strings)]);
    }
}

/* A random container: from root down, each child chosen at random, stopping now and then. Members of large
 * objects are rare. */
static json_t *random_container(fuzz_case *c, json_t *root)
{
    json_t *at = root;
    for (int depth = 0; depth < 12; depth++) {
        json_t *children[64];
        size_t n = 0;
        if (json_is_object(at)) {
            const char *key = NULL;
            json_t *value = NULL;
            json_object_foreach(at, key, value)
            {
                if ((json_is_object(value) || json_is_array(value)) && n < 64) {
                    children[n++] = value;
                }
            }
        } else {
            const size_t size = json_array_size(at), from = size > 64 ? fuzz_below(c, size - 64) : 0;
            for (size_t i = from; i < size && n < 64; i++) {
                json_t *value = json_array_get(at, i);
                if (json_is_object(value) || json_is_array(value)) {
                    children[n++] = value;
                }
            }
        }
        if (n == 0 || fuzz_below(c, 5) == 0) {
            break;
        }
        at = children[fuzz_below(c, n)];
    }
    return at;
}

static const char *random_key(fuzz_case *c, json_t *object)
{
    size_t left = fuzz_below(c, json_object_size(object));
    void *iter = json_object_iter(object);
    while (iter != NULL && left-- > 0) {
        iter = json_object_iter_next(object, iter);
    }
    return iter ? json_object_iter_key(iter) : NULL;
}

static void mutate_tree(fuzz_case *c, json_t *root, json_t *other)
{
    json_t *at = random_container(c, root);
    const size_t what = fuzz_below(c, 6);
    if (json_is_array(at)) {
        const size_t n = json_array_size(at), i = fuzz_below(c, n);
        if (what == 0 && n > 0) {
            json_array_remove(at, i);
        } else if (what == 1 && n > 0) {
            json_array_append(at, json_array_get(at, i));
        } else if (what == 2 && n > 0) {
            json_array_insert_new(at, fuzz_below(c, n), json_deep_copy(json_array_get(at, i)));
        } else if (n > 0) {
            json_array_set_new(at, i, odd_value(c));
        } else {
            json_array_append_new(at, odd_value(c));
        }
        return;
    }
    const char *key = random_key(c, at);
    if (key == NULL) {
        json_object_set_new(at, "type", odd_value(c));
        return;
    }
    char name[256];
    snprintf(name, sizeof name, "%s", key);
    if (what == 0) {
        json_object_del(at, name);
    } else if (what == 1) { /* the member of another tokenizer in its place */
        json_t *theirs = json_object_get(json_is_object(other) ? random_container(c, other) : NULL, name);
        theirs = theirs ? theirs : json_object_get(other, name);
        if (theirs != NULL) {
            json_object_set_new(at, name, json_deep_copy(theirs));
        }
    } else {
        json_object_set_new(at, name, odd_value(c));
    }
}

/* --- bytes --- */

static void mutate_bytes(fuzz_case *c, cti_str *s)
{
    static const char *const bits[] = {"\n",      "\"",          "{",    "}",        "[",  ",",
                                       "\\u0000", "\\ud800",     "\xff", "\xc3",     " ",  "#",
                                       "==",      "99999999999", "-1",   "AA== 1\n", "\t", "\r\n"};
    const char *bit = bits[fuzz_below(c, sizeof bits / sizeof *bits)];
    const size_t at = fuzz_below(c, s->len + 1), left = s->len - at,
                 cut = fuzz_below(c, 4) < left ? fuzz_below(c, 4) : 0;
    cti_str fresh = {.alloc = alloc};
    cti_str_add_n(&fresh, cti_str_text(s), at);
    switch (fuzz_below(c, 4)) {
    case 0:
        cti_str_add_char(&fresh, (char)fuzz_below(c, 256));
        break;
    case 1:
        cti_str_add(&fresh, bit);
        break;
    case 2: { /* a piece of it once more */
        const size_t from = fuzz_below(c, s->len), n = fuzz_below(c, 40);
        cti_str_add_n(&fresh, cti_str_text(s) + from, from + n < s->len ? n : 0);
        break;
    }
    default:
        break;
    }
    cti_str_add_n(&fresh, cti_str_text(s) + at + cut, fuzz_below(c, 40) == 0 ? 0 : left - cut);
    cti_str_deinit(s);
    *s = fresh;
}

/* --- what every tokenizer that opens must do --- */

static void use(ct_tokenizer *tok, uint64_t seed)
{
    static const char *const texts[] = {
        "the cat, 12345 caf\xc3\xa9\xff <|pad|><s>",
        "  \xe6\x9d\xb1\xe4\xba\xac  they're\n\n\tX",
        "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa9 e\xcc\x81\xcc\xa3 \xef\xac\x81x",
        "",
        " ",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    ct_encoder *encoder = NULL;
    ct_err err = {0};
    assert_int_equal(ct_encoder_create(alloc, tok, &encoder, &err), CT_OK);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ct_tokens a = {.alloc = alloc}, b = {.alloc = alloc};
        cti_str out = {.alloc = alloc};
        const unsigned flags = (unsigned)((seed + i) % 16);
        const ct_status st = ct_tokenizer_encode(tok, texts[i], strlen(texts[i]), flags, &a, &err);
        assert_int_equal(ct_encoder_encode(encoder, texts[i], strlen(texts[i]), flags, &b, NULL), st);
        assert_true(a.n == b.n && (a.n == 0 || memcmp(a.ids, b.ids, (size_t)a.n * sizeof *a.ids) == 0));
        assert_true(st == CT_OK || (err.message[0] != '\0' && a.n == 0));
        for (int64_t k = 0; k < a.n; k++) {
            assert_true(a.ids[k] >= 0 && a.ids[k] < ct_tokenizer_vocab_size(tok));
        }
        assert_int_equal(
            ct_tokenizer_decode(tok, a.ids, a.n, seed % 2 ? CT_DECODE_SKIP_SPECIAL : 0u, &out, NULL), CT_OK);
        ct_decode_stream stream = {0};
        for (int64_t k = 0; k < a.n; k++) {
            assert_int_equal(ct_decode_stream_push(&stream, tok, a.ids[k], 0, &out, NULL), CT_OK);
        }
        ct_decode_stream_finish(&stream, &out);
        err = (ct_err){0};
        cti_str_deinit(&out);
        ct_tokens_deinit(&a);
        ct_tokens_deinit(&b);
    }
    ct_encoder_destroy(&encoder);
}

typedef struct tally {
    long runs, n_ok; /* cases; how many of them opened */
} tally;

/* Mutations that break all or nothing would test little. */
static void check_tally(const tally *t)
{
    print_message("%ld of %ld opened\n", t->n_ok, t->runs);
    assert_true(t->runs < 100 || (t->n_ok > t->runs / 20 && t->n_ok < t->runs));
}

static void open_json(const char *json, size_t size, const char *config, size_t config_size, uint64_t seed,
                      tally *t)
{
    ct_tokenizer *tok = NULL;
    ct_err err = {0};
    const ct_tokenizer_options options = {.on_unknown = seed % 2 ? CT_ON_UNKNOWN_DROP : CT_ON_UNKNOWN_REFUSE};
    const ct_status st =
        ct_tokenizer_from_json(alloc, json, size, config, config_size, "fuzz.json", &options, &tok, &err);
    if (st == CT_OK) {
        use(tok, seed);
        ct_tokenizer_destroy(&tok);
        t->n_ok++;
    } else {
        assert_null(tok);
        assert_int_equal(err.status, st);
        assert_true(err.message[0] != '\0' && st != CT_ERR_MEMORY);
    }
}

static const char *const families[] = {"gpt2", "llama3", "llama2",    "mistral", "deepseek_v3", "bert",
                                       "t5",   "gemma",  "wordlevel", "clip",    "added", "marks"};
enum { N_FAMILIES = sizeof families / sizeof *families };

static void test_tokenizer_json(void **state)
{
    (void)state;
    json_t *trees[N_FAMILIES];
    for (size_t i = 0; i < N_FAMILIES; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s/tokenizer.json", families[i]);
        file f = read_file(name);
        assert_int_equal(cti_json_parse(f.data, f.size, name, &trees[i], NULL), CT_OK);
        ct_alloc_free(alloc, f.data);
        /* Smaller: the first of the vocabulary and the merges they allow. Most cases spend their time in what
         * surrounds them. */
        json_t *vocab = json_object_get(json_object_get(trees[i], "model"), "vocab");
        if (json_is_array(vocab)) {
            while (json_array_size(vocab) > 290) {
                json_array_remove(vocab, json_array_size(vocab) - 1);
            }
        }
    }
    tally t = {0};
    for (fuzz_case c = fuzz_begin("tokenizer_json", 500); fuzz_next(&c); t.runs++) {
        json_t *tree = json_deep_copy(trees[fuzz_below(&c, N_FAMILIES)]);
        for (size_t n = fuzz_below(&c, 4); n > 0; n--) {
            mutate_tree(&c, tree, trees[fuzz_below(&c, N_FAMILIES)]);
        }
        char *text = NULL;
        assert_int_equal(cti_json_dump(alloc, tree, 0, &text, NULL), CT_OK);
        cti_str s = {.alloc = alloc};
        cti_str_add(&s, text);
        for (size_t n = fuzz_below(&c, 8) == 0 ? 2 : 0; n > 0; n--) {
            mutate_bytes(&c, &s);
        }
        open_json(cti_str_text(&s), s.len, NULL, 0, c.seed, &t);
        cti_str_deinit(&s);
        ct_alloc_free(alloc, text);
        json_decref(tree);
    }
    check_tally(&t);
    for (size_t i = 0; i < N_FAMILIES; i++) {
        json_decref(trees[i]);
    }
}

static void test_config(void **state)
{
    (void)state;
    static const char json[] =
        "{\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"a\": 0, \"the\": 1, \"[UNK]\": 2}, "
        "\"unk_token\": \"[UNK]\"}, \"added_tokens\": [{\"id\": 3, "
        "\"content\": \"<s>\", \"special\": true}], \"pre_tokenizer\": {\"type\": \"Whitespace\"}}";
    static const char config[] =
        "{\"bos_token\": \"<s>\", \"eos_token\": {\"content\": \"</s>\", \"lstrip\": true, \"normalized\": "
        "false}, \"pad_token\": null, \"unk_token\": \"[UNK]\", "
        "\"add_bos_token\": true, \"added_tokens_decoder\": {\"3\": {\"content\": \"<s>\", \"special\": "
        "true}, \"4\": {\"content\": \"<x>\", \"single_word\": true, "
        "\"special\": false}}, \"chat_template\": \"{{ messages }}\", \"tokenizer_class\": "
        "\"LlamaTokenizer\"}";
    json_t *whole = NULL;
    assert_int_equal(cti_json_parse(config, sizeof config - 1, "config", &whole, NULL), CT_OK);
    tally t = {0};
    for (fuzz_case c = fuzz_begin("tokenizer_config", 1200); fuzz_next(&c); t.runs++) {
        json_t *tree = json_deep_copy(whole);
        for (size_t n = 1 + fuzz_below(&c, 3); n > 0; n--) {
            mutate_tree(&c, tree, whole);
        }
        char *text = NULL;
        assert_int_equal(cti_json_dump(alloc, tree, 0, &text, NULL), CT_OK);
        cti_str s = {.alloc = alloc};
        cti_str_add(&s, text);
        for (size_t n = fuzz_below(&c, 3) == 0 ? 1 : 0; n > 0; n--) {
            mutate_bytes(&c, &s);
        }
        open_json(json, sizeof json - 1, cti_str_text(&s), s.len, c.seed, &t);
        cti_str_deinit(&s);
        ct_alloc_free(alloc, text);
        json_decref(tree);
    }
    check_tally(&t);
    json_decref(whole);
}

static void write_file(const char *folder, const char *name, const cti_str *s)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(cti_str_text(s), 1, s->len, f), s->len);
    assert_int_equal(fclose(f), 0);
}

static void open_folder(const char *folder, uint64_t seed, tally *t)
{
    ct_tokenizer *tok = NULL;
    ct_err err = {0};
    const ct_status st = ct_tokenizer_open(alloc, folder, NULL, &tok, &err);
    if (st == CT_OK) {
        use(tok, seed);
        ct_tokenizer_destroy(&tok);
        t->n_ok++;
    } else {
        assert_true(err.message[0] != '\0' && st != CT_ERR_MEMORY);
    }
}

/* Files by name of one folder: each mutated at random. */
static void fuzz_folder(const char *label, const char *const *names, const char *const *sources,
                        size_t n_files, const char *more, long usual)
{
    char folder[1024];
    file files[2];
    snprintf(folder, sizeof folder, "/tmp/ctitan-fuzz-%s-XXXXXX", label);
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < n_files; i++) {
        files[i] = read_file(sources[i]);
    }
    tally t = {0};
    for (fuzz_case c = fuzz_begin(label, usual); fuzz_next(&c); t.runs++) {
        for (size_t k = 0; k < n_files; k++) {
            cti_str s = {.alloc = alloc};
            cti_str_add_n(&s, files[k].data, files[k].size);
            if (fuzz_below(&c, 10) == 0) {
                cti_str_add(&s, more);
            }
            for (size_t n = fuzz_below(&c, 2); n > 0; n--) {
                mutate_bytes(&c, &s);
            }
            write_file(folder, names[k], &s);
            cti_str_deinit(&s);
        }
        open_folder(folder, c.seed, &t);
    }
    check_tally(&t);
    for (size_t i = 0; i < n_files; i++) {
        char path[1200];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        assert_int_equal(unlink(path), 0);
        ct_alloc_free(alloc, files[i].data);
    }
    assert_int_equal(rmdir(folder), 0);
}

static void test_vocab_merges(void **state)
{
    (void)state;
    fuzz_folder("vocab_merges", (const char *const[]){"vocab.json", "merges.txt"},
                (const char *const[]){"vocab_merges/vocab.json", "vocab_merges/merges.txt"}, 2, "a b\n# c\n",
                150);
}

static void test_vocab_txt(void **state)
{
    (void)state;
    fuzz_folder("vocab_txt", (const char *const[]){"vocab.txt"},
                (const char *const[]){"vocab_merges/merges.txt"}, 1, "\n\n x \n", 150);
}

static void test_tiktoken(void **state)
{
    (void)state;
    fuzz_folder("tiktoken", (const char *const[]){"tokenizer.model"},
                (const char *const[]){"tiktoken/tokenizer.model"}, 1, "YWJjZGVm 5000\n", 150);
}

int main(void)
{
    alloc = ct_alloc_system();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tokenizer_json), cmocka_unit_test(test_config),
                                       cmocka_unit_test(test_vocab_merges), cmocka_unit_test(test_vocab_txt),
                                       cmocka_unit_test(test_tiktoken)};
    if (getenv("CTITAN_FUZZ_ONLY") != NULL) {
        cmocka_set_test_filter(getenv("CTITAN_FUZZ_ONLY"));
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
