/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: tokenizer base */
/* labels: fast */
/* The hot path against the plain one on random texts: hand-written split patterns against PCRE2, match by match; ids against words
 * cut by PCRE2 and merged by the definition of BPE; with a cache and without; vocabularies whose merges are random. And that the work
 * on one long word grows with its length, on a small stack. CT_FAST_RUNS: texts of each kind (default 60), for long runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "tokenizer/tokenizer_internal.h"

static const ct_alloc *alloc;
static uint64_t n_runs = 60;

/* --- random texts: characters at which patterns decide, and any others --- */

typedef struct dice {
    cti_rng_key key;
    uint64_t turn;
} dice;

static uint64_t below(dice *d, uint64_t n)
{
    return cti_rng_below(d->key, d->turn++, n);
}

static dice dice_of(const char *name, uint64_t seed)
{
    return (dice){.key = cti_rng_key_make(seed, name)};
}

static void random_char(dice *d, cti_str *out)
{
    static const char *const picked[] = {
        " ", " ", " ", "  ", "\t", "\n", "\r", "\r\n", "\n\n", "'", "'s", "'S", "'re", "'VE", "'lL", "'\xc5\xbf", "'t", "'x", "/", "//",
        ".", "...", "!?", "_", "-", "(", "a", "b", "the", "The", "HTTP", "x", "0", "7", "12345", "\xc3\xa9", "\xc3\x89", "e\xcc\x81",
        "\xcc\x81", "\xcc\xa3\xcc\x81", "\xc2\xa0", "\xc2\x85", "\xe2\x80\xa8", "\xe3\x80\x80", "\xe1\xa0\x8e", "\xe2\x80\x8d", "\xe4\xb8\x80", "\xe9\xbe\xa5",
        "\xe9\xbe\xa6", "\xe3\x82\x9f", "\xe3\x82\xa0", "\xe3\x81\x82", "\xe3\x83\xbf", "\xc2\xbd", "\xe2\x85\xa7", "\xd9\xa3", "\xc7\x85", "\xca\xb0", "\xd7\xa9", "\xf0\x9f\x98\x80",
        "\xf0\x9d\x94\x98", "\xef\xbf\xbd", "$", "+", "\x01", "\x7f", "\xee\x80\x80", "\xf0\x90\x91\xa6", "\xe0\xa4\xbe", "\xe0\xa4\x95\xe0\xa5\x8d"};
    const uint64_t kind = below(d, 12);
    if (kind < 8) {
        cti_str_add(out, picked[below(d, sizeof picked / sizeof *picked)]);
    } else if (kind < 10) {
        cti_str_add_char(out, (char)(32 + below(d, 95)));
    } else {
        char text[4];
        const int n = cti_utf8_encode((uint32_t)below(d, kind == 10 ? 0x3000 : 0x110000), text);
        cti_str_add_n(out, text, (size_t)n);
    }
}

static void random_text(dice *d, cti_str *out)
{
    cti_str_reset(out);
    const uint64_t n = below(d, 60);
    for (uint64_t i = 0; i < n; i++) {
        const size_t from = out->len;
        random_char(d, out);
        const size_t size = out->len - from;
        for (uint64_t again = below(d, 20) == 0 ? below(d, 40) : 0; again > 0; again--) { /* runs */
            (void)cti_str_reserve(out, size);
            cti_str_add_n(out, out->data + from, size);
        }
    }
}

/* --- patterns --- */

static void compare_matches(const cti_regex *regex, cti_matcher *matcher, const char *pattern, const char *text, size_t size)
{
    for (size_t from = 0; from <= size;) {
        size_t start = 0, end = 0, plain_start = 0, plain_end = 0;
        assert_int_equal(cti_regex_find(regex, matcher, text, size, from, &start, &end, NULL), CT_OK);
        assert_int_equal(cti_regex_find_plain(regex, matcher, text, size, from, &plain_start, &plain_end, NULL), CT_OK);
        if (start != plain_start || (start != SIZE_MAX && end != plain_end)) {
            fail_msg("'%s' on '%s' from %zu: %zu..%zu by hand, %zu..%zu by PCRE2", pattern, text, from, start, end, plain_start, plain_end);
        }
        if (start == SIZE_MAX) {
            break;
        }
        from = end;
    }
}

static void test_patterns(void **state)
{
    (void)state;
    static const char *const spelt[] = {"'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
                                        "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|"
                                        "\\s+(?!\\S)|\\s+"};
    cti_matcher *matcher = NULL;
    assert_int_equal(cti_matcher_create(alloc, &matcher, NULL), CT_OK);
    for (int k = 1; k < CTI_KNOWN_COUNT + 2; k++) {
        const char *pattern = k < CTI_KNOWN_COUNT ? cti_known_text((cti_known)k) : spelt[k - CTI_KNOWN_COUNT];
        cti_regex *regex = NULL;
        const cti_classes *classes = NULL;
        assert_non_null(pattern);
        assert_int_equal(cti_regex_create(alloc, pattern, strlen(pattern), "test", &regex, NULL), CT_OK);
        assert_int_not_equal(cti_regex_known(regex, &classes), CTI_KNOWN_NONE);
        cti_str text = {.alloc = alloc};
        for (uint64_t seed = 0; seed < n_runs; seed++) {
            dice d = dice_of("pattern", seed);
            random_text(&d, &text);
            compare_matches(regex, matcher, pattern, cti_str_text(&text), text.len);
        }
        cti_str_deinit(&text);
        cti_regex_destroy(&regex);
    }
    assert_int_equal(cti_known_pattern(CTI_GPT2_PATTERN, strlen(CTI_GPT2_PATTERN)), CTI_KNOWN_GPT2);
    assert_int_equal(cti_known_pattern(CT_TOKENIZER_DEFAULT_PATTERN, strlen(CT_TOKENIZER_DEFAULT_PATTERN)), CTI_KNOWN_LLAMA3);
    cti_matcher_destroy(&matcher);
}

/* Every code point alone and between letters: the class table against PCRE2's own. */
static void test_every_character(void **state)
{
    (void)state;
    cti_matcher *matcher = NULL;
    assert_int_equal(cti_matcher_create(alloc, &matcher, NULL), CT_OK);
    static const cti_known kinds[] = {CTI_KNOWN_QWEN3_5, CTI_KNOWN_O200K, CTI_KNOWN_DEEPSEEK};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const char *pattern = cti_known_text(kinds[k]);
        cti_regex *regex = NULL;
        assert_int_equal(cti_regex_create(alloc, pattern, strlen(pattern), "test", &regex, NULL), CT_OK);
        cti_str text = {.alloc = alloc};
        for (uint32_t cp = 0; cp < 0x110000; cp += k == 0 ? 1 : 7) {
            char c[4];
            cti_str_add_n(&text, c, (size_t)cti_utf8_encode(cp, c));
            cti_str_add_n(&text, "aB", cp % 3);
            if (cp % 512 < 7 || cp + 7 >= 0x110000) {
                compare_matches(regex, matcher, pattern, cti_str_text(&text), text.len);
                cti_str_reset(&text);
            }
        }
        cti_str_deinit(&text);
        cti_regex_destroy(&regex);
    }
    cti_matcher_destroy(&matcher);
}

/* --- ids --- */

/* BPE as it is defined: the merge of the lowest rank, the leftmost of several, again and again. */
static size_t plain_merge(const ct_tokenizer *tok, int32_t *ids, size_t n)
{
    for (;;) {
        size_t best = n;
        const cti_merge *lowest = NULL;
        for (size_t i = 0; i + 1 < n; i++) {
            const cti_merge *m = cti_merges_find(&tok->merges, ids[i], ids[i + 1]);
            if (m != NULL && (lowest == NULL || m->rank < lowest->rank)) {
                lowest = m;
                best = i;
            }
        }
        if (lowest == NULL) {
            return n;
        }
        ids[best] = lowest->id;
        memmove(ids + best + 1, ids + best + 2, (n - best - 2) * sizeof *ids);
        n--;
    }
}

static void plain_word(const ct_tokenizer *tok, const char *word, size_t size, ct_tokens *out)
{
    cti_str spelt = {.alloc = alloc};
    cti_bytes_to_alphabet(word, size, &spelt);
    const int32_t whole = tok->ignore_merges ? cti_vocab_find(&tok->vocab, spelt.data, spelt.len) : -1;
    int32_t *ids = ct_alloc_zeroed(alloc, size + 1, sizeof *ids, NULL);
    size_t n = 0;
    for (size_t at = 0; at < spelt.len && whole < 0;) {
        const int len = cti_utf8_len((const unsigned char *)spelt.data + at, (const unsigned char *)spelt.data + spelt.len);
        ids[n] = cti_vocab_find(&tok->vocab, spelt.data + at, (size_t)len);
        assert_true(ids[n] >= 0);
        n++;
        at += (size_t)len;
    }
    n = plain_merge(tok, ids, n);
    if (whole >= 0) {
        ids[n++] = whole;
    }
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(ct_tokens_push(out, ids[i], NULL), CT_OK);
    }
    ct_alloc_free(alloc, ids);
    cti_str_deinit(&spelt);
}

static void plain_text(const ct_tokenizer *tok, const cti_regex *regex, cti_matcher *matcher, const char *text, size_t size, ct_tokens *out)
{
    size_t start = 0, end = 0, from = 0;
    while (from < size) {
        assert_int_equal(cti_regex_find_plain(regex, matcher, text, size, from, &start, &end, NULL), CT_OK);
        if (start == SIZE_MAX) {
            start = end = size;
        }
        if (start > from) {
            plain_word(tok, text + from, start - from, out);
        }
        if (end > start) {
            plain_word(tok, text + start, end - start, out);
        }
        from = end;
    }
}

/* Byte-level BPE with random merges of tokens there are; ids in no order; pattern k of the known ones. */
static ct_tokenizer *random_tokenizer(dice *d, cti_known known, const char *normalizer, bool ignore_merges)
{
    cti_vocab vocab;
    cti_vocab_init(&vocab, alloc);
    for (uint32_t byte = 0; byte < 256; byte++) {
        char text[4];
        const int n = cti_utf8_encode(cti_byte_to_char((unsigned char)(byte * 77)), text);
        assert_int_equal(cti_vocab_add(&vocab, (int32_t)byte, text, (size_t)n, NULL), CT_OK);
    }
    json_t *merges = json_array(), *words = json_object();
    for (int i = 0; i < 400; i++) {
        static const char common[] = " aet'hT12\n.";
        const char a = common[below(d, sizeof common - 1)], b = common[below(d, sizeof common - 1)];
        cti_str pair[2] = {{.alloc = alloc}, {.alloc = alloc}}, whole = {.alloc = alloc};
        for (int side = 0; side < 2; side++) {
            const int32_t id = below(d, 3) == 0 || vocab.n_ids < 300 ? -1 : (int32_t)(256 + below(d, (uint64_t)vocab.n_ids - 256));
            if (id < 0) {
                cti_bytes_to_alphabet(side == 0 ? &a : &b, 1, &pair[side]);
            } else {
                cti_str_add_n(&pair[side], cti_vocab_text(&vocab, id), (size_t)vocab.tokens[id].size);
            }
            cti_str_add_n(&whole, pair[side].data, pair[side].len);
        }
        if (whole.len < 60 && cti_vocab_find(&vocab, whole.data, whole.len) < 0) {
            assert_int_equal(cti_vocab_add(&vocab, vocab.n_ids, whole.data, whole.len, NULL), CT_OK);
            (void)json_array_insert_new(merges, (size_t)below(d, json_array_size(merges) + 1),
                                        json_pack("[s#,s#]", pair[0].data, (int)pair[0].len, pair[1].data, (int)pair[1].len));
        }
        cti_str_deinit(&pair[0]);
        cti_str_deinit(&pair[1]);
        cti_str_deinit(&whole);
    }
    for (int32_t id = 0; id < vocab.n_ids; id++) {
        cti_str key = {.alloc = alloc};
        cti_str_add_n(&key, cti_vocab_text(&vocab, id), (size_t)vocab.tokens[id].size);
        (void)json_object_set_new(words, key.data, json_integer(id));
        cti_str_deinit(&key);
    }
    cti_vocab_deinit(&vocab);
    json_t *root = json_pack("{s:{s:s,s:o,s:o,s:b},s:{s:s,s:[{s:s,s:{s:s},s:s,s:b},{s:s,s:b,s:b,s:b}]}}", "model", "type", "BPE", "vocab",
                             words, "merges", merges, "ignore_merges", (int)ignore_merges, "pre_tokenizer", "type", "Sequence",
                             "pretokenizers", "type", "Split", "pattern", "Regex", cti_known_text(known), "behavior", "Isolated", "invert",
                             0, "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 1, "use_regex", 0);
    assert_non_null(root);
    (void)json_object_set_new(root, "decoder", json_pack("{s:s,s:b,s:b,s:b}", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 1,
                                                         "use_regex", 0));
    if (normalizer != NULL) {
        (void)json_object_set_new(root, "normalizer", json_pack("{s:s}", "type", normalizer));
    }
    char *text = json_dumps(root, 0);
    json_decref(root);
    ct_tokenizer *tok = NULL;
    ct_err err = {0};
    if (ct_tokenizer_from_json(alloc, text, strlen(text), NULL, 0, "random.json", NULL, &tok, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    free(text);
    return tok;
}

static void same(const ct_tokens *found, const ct_tokens *wanted, const char *how, const char *text)
{
    if (found->n != wanted->n || (wanted->n > 0 && memcmp(found->ids, wanted->ids, (size_t)wanted->n * sizeof *wanted->ids) != 0)) {
        fail_msg("%s: %lld ids, the definition gives %lld, or other ones, of '%s'", how, (long long)found->n, (long long)wanted->n, text);
    }
}

static void compare_ids(const ct_tokenizer *tok, const char *name, uint64_t n_texts)
{
    ct_encoder *encoder = NULL;
    cti_matcher *matcher = NULL;
    assert_int_equal(ct_encoder_create(alloc, tok, &encoder, NULL), CT_OK);
    assert_int_equal(cti_matcher_create(alloc, &matcher, NULL), CT_OK);
    assert_int_equal(tok->n_steps, 2);
    cti_str text = {.alloc = alloc};
    ct_tokens wanted = {.alloc = alloc}, found = {.alloc = alloc};
    cti_str back = {.alloc = alloc};
    for (uint64_t seed = 0; seed < n_texts; seed++) {
        dice d = dice_of(name, seed);
        random_text(&d, &text);
        wanted.n = 0;
        plain_text(tok, tok->steps[0].pattern.regex, matcher, cti_str_text(&text), text.len, &wanted);
        for (int turn = 0; turn < 2; turn++) { /* the second time words come from the cache */
            found.n = 0;
            assert_int_equal(ct_encoder_encode(encoder, cti_str_text(&text), text.len, 0, &found, NULL), CT_OK);
            same(&found, &wanted, name, cti_str_text(&text));
        }
        found.n = 0;
        assert_int_equal(ct_tokenizer_encode(tok, cti_str_text(&text), text.len, 0, &found, NULL), CT_OK);
        same(&found, &wanted, name, cti_str_text(&text));
        cti_str_reset(&back);
        assert_int_equal(ct_tokenizer_decode(tok, found.ids, found.n, 0, &back, NULL), CT_OK);
        assert_int_equal(back.len, text.len);
        assert_memory_equal(cti_str_text(&back), cti_str_text(&text), text.len);
    }
    cti_str_deinit(&back);
    ct_tokens_deinit(&wanted);
    ct_tokens_deinit(&found);
    cti_str_deinit(&text);
    cti_matcher_destroy(&matcher);
    ct_encoder_destroy(&encoder);
}

static void test_ids(void **state)
{
    (void)state;
    static const char *const folders[] = {"share/ctitan/tokenizer", "tests/parity/tokenizer/gpt2", "tests/parity/tokenizer/llama3"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[1024];
        ct_tokenizer *tok = NULL;
        (void)snprintf(path, sizeof path, "%s/%s", CT_SOURCE_DIR, folders[i]);
        assert_int_equal(ct_tokenizer_open(alloc, path, NULL, &tok, NULL), CT_OK);
        compare_ids(tok, folders[i], n_runs);
        ct_tokenizer_destroy(&tok);
    }
    for (uint64_t i = 0; i < 12; i++) {
        dice d = dice_of("vocabulary", i);
        const cti_known known = (cti_known)(CTI_KNOWN_GPT2 + i % 5);
        ct_tokenizer *tok = random_tokenizer(&d, known, NULL, i % 4 == 3);
        assert_int_equal(tok->known, known);
        compare_ids(tok, "random merges", n_runs / 3);
        ct_tokenizer_destroy(&tok);
    }
}

/* Parts of a text, cut where the tokenizer says so, give the ids of the whole; so do many texts in one batch. */
static void compare_parts(const ct_tokenizer *tok, uint64_t n_texts)
{
    ct_encoder *encoder = NULL;
    ct_batch_encoder *batch = NULL;
    assert_int_equal(ct_encoder_create(alloc, tok, &encoder, NULL), CT_OK);
    assert_int_equal(ct_batch_encoder_create(alloc, tok, 0, &batch, NULL), CT_OK);
    ct_tokens whole = {.alloc = alloc}, parts = {.alloc = alloc}, all = {.alloc = alloc};
    cti_str text = {.alloc = alloc}, texts = {.alloc = alloc};
    uint64_t n_cuts = 0;
    for (uint64_t seed = 0; seed < n_texts; seed++) {
        dice d = dice_of("parts", seed);
        random_text(&d, &text);
        for (uint64_t word = below(&d, 4); word > 0; word--) { /* more of the places where it may be cut */
            cti_str_add(&text, below(&d, 2) ? "a word" : below(&d, 2) ? "\nb" : " \n\xe4\xb8\x80");
        }
        whole.n = parts.n = 0;
        assert_int_equal(ct_encoder_encode(encoder, cti_str_text(&text), text.len, 0, &whole, NULL), CT_OK);
        const size_t cut = cti_cut(tok, cti_str_text(&text), text.len, below(&d, text.len + 1));
        n_cuts += cut < text.len;
        assert_int_equal(ct_encoder_encode(encoder, cti_str_text(&text), cut, 0, &parts, NULL), CT_OK);
        assert_int_equal(ct_encoder_encode(encoder, cti_str_text(&text) + cut, text.len - cut, 0, &parts, NULL), CT_OK);
        same(&parts, &whole, "in parts", cti_str_text(&text));
        cti_str_add_n(&texts, cti_str_text(&text), text.len);
    }
    assert_true(n_cuts > n_texts / 8);
    while (texts.len < 3 << 18) {
        (void)cti_str_reserve(&texts, texts.len);
        cti_str_add_n(&texts, texts.data, texts.len);
    }
    const ct_text list[] = {{texts.data, texts.len}, {"", 0}, {"x y", 3}, {texts.data, texts.len / 3}};
    int64_t ends[4] = {0};
    parts.n = 0;
    assert_int_equal(ct_batch_encoder_encode(batch, list, 4, 0, &all, ends, NULL), CT_OK);
    for (int i = 0; i < 4; i++) {
        whole.n = 0;
        assert_int_equal(ct_tokenizer_encode(tok, list[i].data, list[i].size, 0, &whole, NULL), CT_OK);
        for (int64_t k = 0; k < whole.n; k++) {
            assert_int_equal(ct_tokens_push(&parts, whole.ids[k], NULL), CT_OK);
        }
        assert_int_equal(ends[i], parts.n);
    }
    same(&all, &parts, "in a batch", "");
    ct_tokens_deinit(&whole);
    ct_tokens_deinit(&parts);
    ct_tokens_deinit(&all);
    cti_str_deinit(&text);
    cti_str_deinit(&texts);
    ct_batch_encoder_destroy(&batch);
    ct_encoder_destroy(&encoder);
}

/* A tokenizer of SentencePiece's kind: blanks are marks, a text is one word, merges of marks and letters at random; some
 * characters fall back to bytes, some are unknown. */
static ct_tokenizer *marks_tokenizer(dice *d, bool late_marks, bool byte_fallback)
{
    static const char *const chars[] = {"\xe2\x96\x81", "a", "b", "t", "h", "e", "\xc3\xa9"};
    cti_str s = {.alloc = alloc}, merges = {.alloc = alloc};
    cti_str_add(&s, "{\"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"\xe2\x96\x81\"}, \"model\": {\"type\": \"BPE\", ");
    cti_str_printf(&s, "\"unk_token\": \"<unk>\", \"fuse_unk\": %s, \"byte_fallback\": %s, \"vocab\": {\"<unk>\": 0, \"<0xC2>\": 1, \"<0xA0>\": 2", byte_fallback ? "true" : "false",
                   byte_fallback ? "true" : "false");
    cti_vocab vocab;
    cti_vocab_init(&vocab, alloc);
    for (int i = 0; i < 7; i++) {
        assert_int_equal(cti_vocab_add(&vocab, vocab.n_ids, chars[i], strlen(chars[i]), NULL), CT_OK);
    }
    for (int i = 0; i < 200; i++) {
        const int32_t pair[2] = {(int32_t)below(d, (uint64_t)vocab.n_ids), (int32_t)below(d, (uint64_t)vocab.n_ids)};
        cti_str whole = {.alloc = alloc};
        for (int k = 0; k < 2; k++) {
            cti_str_add_n(&whole, cti_vocab_text(&vocab, pair[k]), (size_t)vocab.tokens[pair[k]].size);
        }
        const char *text = cti_str_text(&whole);
        const int32_t left = vocab.tokens[pair[0]].size;
        const bool late = cti_vocab_text(&vocab, pair[1])[0] == CTI_MARK[0] &&
                          (left < 3 || memcmp(cti_vocab_text(&vocab, pair[0]) + left - 3, CTI_MARK, 3) != 0);
        if ((late_marks || !late) && whole.len < 40 && cti_vocab_find(&vocab, text, whole.len) < 0) {
            cti_str_printf(&merges, "%s[\"%.*s\", \"%.*s\"]", merges.len > 0 ? "," : "", (int)vocab.tokens[pair[0]].size, cti_vocab_text(&vocab, pair[0]),
                           (int)vocab.tokens[pair[1]].size, cti_vocab_text(&vocab, pair[1]));
            assert_int_equal(cti_vocab_add(&vocab, vocab.n_ids, text, whole.len, NULL), CT_OK);
        }
        cti_str_deinit(&whole);
    }
    for (int32_t id = 0; id < vocab.n_ids; id++) {
        cti_str_printf(&s, ", \"%.*s\": %d", (int)vocab.tokens[id].size, cti_vocab_text(&vocab, id), (int)id + 3);
    }
    cti_str_printf(&s, "}, \"merges\": [%s]}}", cti_str_text(&merges));
    cti_vocab_deinit(&vocab);
    ct_tokenizer *tok = NULL;
    ct_err err = {0};
    if (ct_tokenizer_from_json(alloc, s.data, s.len, NULL, 0, "marks.json", NULL, &tok, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    cti_str_deinit(&s);
    cti_str_deinit(&merges);
    return tok;
}

/* Words that are cut before marks, and the whole text as one word. */
static void test_marks(void **state)
{
    (void)state;
    static const char *const parts[] = {" ", " ", "  ", "a", "b", "the", " the", "h", "e", "\xc3\xa9", "\xc2\xa0", "?", "\xe4\xb8\x80", "tat"};
    int n_cut = 0;
    for (uint64_t v = 0; v < 12; v++) {
        dice d = dice_of("marks", v);
        ct_tokenizer *tok = marks_tokenizer(&d, v % 3 == 0, v % 2 == 0);
        ct_encoder *encoder = NULL;
        assert_int_equal(ct_encoder_create(alloc, tok, &encoder, NULL), CT_OK);
        const bool cuts = tok->parts_at_mark;
        n_cut += cuts;
        cti_str text = {.alloc = alloc};
        ct_tokens found = {.alloc = alloc}, wanted = {.alloc = alloc};
        for (uint64_t i = 0; i < n_runs; i++) {
            cti_str_reset(&text);
            for (uint64_t n = below(&d, 80); n > 0; n--) {
                cti_str_add(&text, parts[below(&d, sizeof parts / sizeof *parts)]);
            }
            found.n = wanted.n = 0;
            assert_int_equal(ct_encoder_encode(encoder, cti_str_text(&text), text.len, 0, &found, NULL), CT_OK);
            tok->parts_at_mark = false;
            assert_int_equal(ct_tokenizer_encode(tok, cti_str_text(&text), text.len, 0, &wanted, NULL), CT_OK);
            tok->parts_at_mark = cuts;
            same(&found, &wanted, "marks", cti_str_text(&text));
        }
        ct_tokens_deinit(&found);
        ct_tokens_deinit(&wanted);
        cti_str_deinit(&text);
        ct_encoder_destroy(&encoder);
        ct_tokenizer_destroy(&tok);
    }
    assert_true(n_cut >= 6 && n_cut < 12);
}

static void test_parts(void **state)
{
    (void)state;
    static const char *const normalizers[] = {NULL, "NFC", "NFKD", "Lowercase", "NFKC"};
    cti_pool_set_threads(3);
    for (uint64_t i = 0; i < 5; i++) {
        dice d = dice_of("parts of", i);
        ct_tokenizer *tok = random_tokenizer(&d, (cti_known)(CTI_KNOWN_GPT2 + i), normalizers[i], i == 1);
        assert_true(tok->can_cut);
        compare_parts(tok, n_runs);
        ct_tokenizer_destroy(&tok);
    }
}

/* --- one long word --- */

static void *long_words(void *out_ok)
{
    enum { N = 1 << 17 };
    static const char *const fills[] = {"a", "ab", "aet", "^", " ", "tthe", "1"};
    char *text = ct_alloc_zeroed(alloc, N + 1, 1, NULL);
    for (uint64_t v = 0; v < 3; v++) {
        dice d = dice_of("long words", v);
        ct_tokenizer *tok = random_tokenizer(&d, CTI_KNOWN_GPT2, NULL, false);
        cti_scratch s;
        if (cti_scratch_init(&s, alloc, false, NULL) != CT_OK) {
            return NULL;
        }
        for (size_t f = 0; f < sizeof fills / sizeof *fills; f++) {
            for (size_t i = 0; i < N; i++) {
                text[i] = fills[f][i % strlen(fills[f])];
            }
            for (size_t n = N / 8; n <= N; n *= 8) {
                ct_tokens ids = {.alloc = alloc};
                s.long_word.n_lookups = 0;
                const ct_status st = cti_bpe_bytes(tok, &s, text, n, 0, &ids, NULL);
                ct_tokens_deinit(&ids);
                if (st != CT_OK || s.long_word.n_lookups > 3 * n) { /* n - 1 pairs, at most n - 1 merges with two new pairs each */
                    return NULL;
                }
            }
        }
        cti_scratch_deinit(&s);
        ct_tokenizer_destroy(&tok);
    }
    ct_alloc_free(alloc, text);
    *(bool *)out_ok = true;
    return NULL;
}

static void test_long_words(void **state)
{
    (void)state;
    bool ok = false;
    pthread_t thread;
    pthread_attr_t attr;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, 256 * 1024), 0);
    assert_int_equal(pthread_create(&thread, &attr, long_words, &ok), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)pthread_attr_destroy(&attr);
    assert_true(ok);
}

int main(void)
{
    alloc = ct_alloc_system();
    int64_t n = 0;
    if (getenv("CT_FAST_RUNS") != NULL && cti_parse_i64(getenv("CT_FAST_RUNS"), &n) && n > 0) {
        n_runs = (uint64_t)n;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_patterns), cmocka_unit_test(test_every_character), cmocka_unit_test(test_ids),
                                       cmocka_unit_test(test_parts), cmocka_unit_test(test_marks),
                                       cmocka_unit_test(test_long_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
