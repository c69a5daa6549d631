/* SPDX-License-Identifier: Apache-2.0 */
/* The models beside BPE: WordPiece (the longest token at each place of a word), WordLevel (a word is a token or unknown) and
 * Unigram (the cut of a word with the highest sum of scores). Their rules are those of the library's models. */
#include "tokenizer/tokenizer_internal.h"

/* --- what they share --- */

ct_status cti_unknown(const ct_tokenizer *tok, const char *text, size_t size, size_t origin, ct_tokens *tokens, ct_err *err)
{
    uint32_t cp = 0;
    const unsigned char *p = (const unsigned char *)text, *end = p + size;
    const int n = cti_utf8_decode(p, end, &cp);
    if (tok->options.on_unknown == CT_ON_UNKNOWN_DROP) {
        while (p < end) {
            p += cti_max_i64(1, cti_utf8_len(p, end));
            tokens->n_dropped++;
        }
        return CT_OK;
    }
    if ((size_t)n != size) {
        return CT_FAIL(err, CT_ERR_DATA, "the word '%.*s' at byte %zu has no token in the vocabulary",
                       (int)cti_min_i64((int64_t)size, 80), text, origin);
    }
    return CT_FAIL(err, CT_ERR_DATA, "character U+%04X '%.*s' of the word at byte %zu has no token in the vocabulary",
                   (unsigned)cp, n, text, origin);
}

static ct_status push_unknown(const ct_tokenizer *tok, const char *word, size_t size, size_t origin, ct_tokens *tokens,
                              ct_err *err)
{
    return tok->unk_id >= 0 ? ct_tokens_push(tokens, tok->unk_id, err)
                            : cti_unknown(tok, word, size, origin, tokens, err);
}

ct_status cti_get_affix(ct_tokenizer *tok, const json_t *model, const char *key, const char *where, char **out, ct_err *err)
{
    const json_t *affix = json_object_get(model, key);
    if (affix == NULL || json_is_null(affix) || (json_is_string(affix) && json_string_length(affix) == 0)) {
        return CT_OK;
    }
    if (!json_is_string(affix) || strlen(json_string_value(affix)) != json_string_length(affix)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: '%s' must be a string without NUL, or null", where, key);
    }
    *out = ct_alloc_strdup(tok->alloc, json_string_value(affix), err);
    return *out ? CT_OK : CT_ERR_MEMORY;
}

/* unk_token of WordPiece and WordLevel: a token of the model, or none where the vocabulary lacks it. */
static ct_status get_unk(ct_tokenizer *tok, const json_t *model, const char *where, ct_err *err)
{
    const json_t *unk = json_object_get(model, "unk_token");
    if (!json_is_string(unk)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: 'unk_token' must be a string", where);
    }
    tok->unk_id = cti_vocab_find(&tok->vocab, json_string_value(unk), json_string_length(unk));
    return CT_OK;
}

/* --- BPE with affixes: each character is looked up with the prefix (all but the first) and the suffix (the last) --- */

ct_status cti_bpe_lay_out_affixed(const ct_tokenizer *tok, int32_t *ids, const char *word, size_t size, size_t origin,
                                  ct_tokens *tokens, size_t *out_n, ct_err *err)
{
    const unsigned char *p = (const unsigned char *)word, *end = p + size;
    cti_str s = {.alloc = tok->alloc};
    ct_status st = CT_OK;
    size_t n = 0;
    bool unk_waits = false;
    while (p < end && st == CT_OK) {
        const size_t len = (size_t)cti_utf8_len(p, end);
        cti_str_reset(&s);
        if (tok->prefix && p > (const unsigned char *)word) {
            cti_str_add(&s, tok->prefix);
        }
        cti_str_add_n(&s, p, len);
        if (tok->suffix && p + len == end) {
            cti_str_add(&s, tok->suffix);
        }
        CT_TRY_GOTO(st, cti_str_check(&s, err), out);
        const int32_t id = cti_model_id(tok, s.data, s.len);
        bool fall_back = id < 0 && tok->byte_fallback;
        for (size_t i = 0; i < s.len && fall_back; i++) { /* the affixes' bytes too, as in the library */
            fall_back = tok->byte_ids[(unsigned char)s.data[i]] >= 0;
        }
        if (id >= 0) {
            if (unk_waits) {
                ids[n++] = tok->unk_id;
            }
            unk_waits = false;
            ids[n++] = id;
        } else if (fall_back) {
            for (size_t i = 0; i < s.len; i++) {
                ids[n++] = tok->byte_ids[(unsigned char)s.data[i]];
            }
        } else if (tok->unk_id >= 0) {
            if (unk_waits && !tok->fuse_unk) {
                ids[n++] = tok->unk_id;
            }
            unk_waits = true;
        } else {
            st = cti_unknown(tok, (const char *)p, len, origin, tokens, err);
        }
        p += len;
    }
    if (unk_waits) {
        ids[n++] = tok->unk_id;
    }
    *out_n = n;
out:
    cti_str_deinit(&s);
    return st;
}

/* --- WordPiece --- */

ct_status cti_parse_wordpiece(ct_tokenizer *tok, const json_t *model, const char *where, ct_err *err)
{
    static const char *const keys[] = {"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab",
                                       NULL};
    CT_TRY(cti_check_keys(model, keys, where, err));
    tok->model = CTI_MODEL_WORDPIECE;
    tok->max_word_chars = 100;
    if (json_object_get(model, "max_input_chars_per_word") != NULL) {
        CT_TRY(cti_json_get_i64(model, "max_input_chars_per_word", where, &tok->max_word_chars, err));
        if (tok->max_word_chars < 0) {
            return CT_FAIL(err, CT_ERR_FORMAT, "%s: 'max_input_chars_per_word' must not be negative", where);
        }
    }
    CT_TRY(cti_get_affix(tok, model, "continuing_subword_prefix", where, &tok->prefix, err));
    CT_TRY(cti_parse_vocab(tok, json_object_get(model, "vocab"), where, err));
    for (int32_t id = 0; id < tok->vocab.n_ids; id++) {
        tok->max_token_bytes = tok->vocab.tokens[id].size > tok->max_token_bytes ? tok->vocab.tokens[id].size
                                                                                 : tok->max_token_bytes;
    }
    return get_unk(tok, model, where, err);
}

static size_t chars_of(const char *text, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < size; i++) {
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    }
    return n;
}

/* The longest token that begins at word[start]: its id, -1 for none, and its end. s holds the prefix, scratch behind it. */
static int32_t longest_piece(const ct_tokenizer *tok, const char *word, size_t size, size_t start, cti_str *s, size_t *out_end)
{
    const size_t prefix = start > 0 && tok->prefix ? strlen(tok->prefix) : 0;
    size_t end = start + (size_t)cti_min_i64((int64_t)(size - start), tok->max_token_bytes);
    while (end < size && ((unsigned char)word[end] & 0xc0) == 0x80) {
        end++;
    }
    cti_str_reset(s);
    cti_str_add_n(s, tok->prefix ? tok->prefix : "", prefix);
    cti_str_add_n(s, word + start, end - start);
    for (; !s->failed && end > start; end--) {
        if (end < size && ((unsigned char)word[end] & 0xc0) == 0x80) {
            continue; /* not between two characters */
        }
        const int32_t id = cti_model_id(tok, s->data, prefix + end - start);
        if (id >= 0) {
            *out_end = end;
            return id;
        }
    }
    return -1;
}

static ct_status wordpiece_word(const ct_tokenizer *tok, cti_scratch *scratch, const char *word, size_t size, size_t origin,
                                ct_tokens *tokens, ct_err *err)
{
    const int64_t before = tokens->n;
    bool known = (int64_t)chars_of(word, size) <= tok->max_word_chars;
    for (size_t start = 0; known && start < size;) {
        const int32_t id = longest_piece(tok, word, size, start, &scratch->piece, &start);
        CT_TRY(cti_str_check(&scratch->piece, err));
        known = id >= 0;
        if (known) {
            CT_TRY(ct_tokens_push(tokens, id, err));
        }
    }
    if (!known) { /* one part without a token makes the whole word unknown */
        tokens->n = before;
        return push_unknown(tok, word, size, origin, tokens, err);
    }
    return CT_OK;
}

/* --- WordLevel --- */

ct_status cti_parse_wordlevel(ct_tokenizer *tok, const json_t *model, const char *where, ct_err *err)
{
    static const char *const keys[] = {"type", "unk_token", "vocab", NULL};
    CT_TRY(cti_check_keys(model, keys, where, err));
    tok->model = CTI_MODEL_WORDLEVEL;
    CT_TRY(cti_parse_vocab(tok, json_object_get(model, "vocab"), where, err));
    return get_unk(tok, model, where, err);
}

/* --- Unigram --- */

#define UNK_PENALTY 10.0 /* below the lowest score, per unknown character (SentencePiece's constant) */

ct_status cti_parse_unigram(ct_tokenizer *tok, const json_t *model, const char *where, ct_err *err)
{
    static const char *const keys[] = {"type", "unk_id", "vocab", "byte_fallback", NULL};
    CT_TRY(cti_check_keys(model, keys, where, err));
    tok->model = CTI_MODEL_UNIGRAM;
    CT_TRY(cti_get_bool(model, "byte_fallback", false, where, &tok->byte_fallback, err));
    const json_t *vocab = json_object_get(model, "vocab"), *unk = json_object_get(model, "unk_id");
    const size_t n = json_array_size(vocab);
    if (!json_is_array(vocab) || n >= CTI_MAX_IDS) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: 'vocab' must be a list of below %d [token, score]", where, CTI_MAX_IDS);
    }
    if (unk != NULL && !json_is_null(unk)) {
        if (!json_is_integer(unk) || json_integer_value(unk) < 0 || (size_t)json_integer_value(unk) >= n) {
            return CT_FAIL(err, CT_ERR_FORMAT, "%s: 'unk_id' must be null or one of the %zu ids", where, n);
        }
        tok->unk_id = (int32_t)json_integer_value(unk);
    }
    tok->scores = CT_NEW_ARRAY(tok->alloc, double, n > 0 ? n : 1, err);
    if (tok->scores == NULL) {
        return CT_ERR_MEMORY;
    }
    double lowest = 0.0;
    for (size_t i = 0; i < n; i++) {
        const json_t *entry = json_array_get(vocab, i), *text = json_array_get(entry, 0), *score = json_array_get(entry, 1);
        if (json_array_size(entry) != 2 || !json_is_string(text) || !json_is_number(score)) {
            return CT_FAIL(err, CT_ERR_FORMAT, "%s: entry %zu of 'vocab' is not [token, score]", where, i);
        }
        const ct_status st = cti_vocab_add(&tok->vocab, (int32_t)i, json_string_value(text), json_string_length(text), err);
        if (st != CT_OK) {
            ct_err_prefix(err, "%s", where);
            return st;
        }
        tok->scores[i] = json_number_value(score);
        lowest = i == 0 || tok->scores[i] < lowest ? tok->scores[i] : lowest;
        CT_TRY(cti_trie_add(&tok->pieces, tok->alloc, json_string_value(text), json_string_length(text), (int32_t)i, err));
    }
    tok->unk_score = lowest - UNK_PENALTY;
    CT_TRY(cti_vocab_finish(tok, err));
    return cti_model_finish(tok, err);
}

/* The best cut of word[0, end): reached by a token (or unknown) that begins at `start`. */
struct cti_best {
    double score;
    int32_t start; /* -1: not reached */
    int32_t id;
};

static void offer(struct cti_best *at, double score, size_t start, int32_t id)
{
    if (at->start < 0 || score > at->score) {
        *at = (struct cti_best){.score = score, .start = (int32_t)start, .id = id};
    }
}

static ct_status viterbi(const ct_tokenizer *tok, struct cti_best *best, const char *word, size_t size, size_t origin,
                         ct_err *err)
{
    for (size_t start = 0; start < size;) {
        const double so_far = best[start].score;
        const size_t len = (size_t)cti_utf8_len((const unsigned char *)word + start, (const unsigned char *)word + size);
        bool has_single = false;
        int32_t node = -1;
        for (size_t end = start; end < size;) {
            node = cti_trie_step(&tok->pieces, node, (unsigned char)word[end]);
            if (node < 0) {
                break;
            }
            end++;
            const int32_t id = tok->pieces.nodes[node].value;
            if (id >= 0) {
                offer(&best[end], tok->scores[id] + so_far, start, id);
                has_single |= end - start == len;
            }
        }
        if (!has_single) {
            if (tok->unk_id < 0) {
                return CT_FAIL(err, CT_ERR_DATA,
                               "'%.*s' of the word at byte %zu has no token in the vocabulary, and the model has no unk_id", (int)len,
                               word + start, origin);
            }
            offer(&best[start + len], tok->unk_score + so_far, start, tok->unk_id);
        }
        start += len;
    }
    return CT_OK;
}

/* A part of the best cut: its token; where it is none, its bytes' tokens or the unknown one. */
static ct_status push_part(const ct_tokenizer *tok, const char *part, size_t size, ct_tokens *tokens, ct_err *err)
{
    const int32_t id = cti_model_id(tok, part, size);
    if (id >= 0) {
        return ct_tokens_push(tokens, id, err);
    }
    bool fall_back = tok->byte_fallback;
    for (size_t i = 0; i < size && fall_back; i++) {
        fall_back = tok->byte_ids[(unsigned char)part[i]] >= 0;
    }
    for (size_t i = 0; i < size && fall_back; i++) {
        CT_TRY(ct_tokens_push(tokens, tok->byte_ids[(unsigned char)part[i]], err));
    }
    return fall_back ? CT_OK : ct_tokens_push(tokens, tok->unk_id, err);
}

static ct_status unigram_word(const ct_tokenizer *tok, cti_scratch *scratch, const char *word, size_t size, size_t origin,
                              ct_tokens *tokens, ct_err *err)
{
    if (size >= INT32_MAX) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "a word of %zu bytes is above the limit of %d", size, INT32_MAX - 1);
    }
    if (size + 1 > scratch->cap_best) {
        struct cti_best *grown = ct_alloc_resize(scratch->alloc, scratch->best, size + size / 2 + 64, sizeof *grown, err);
        if (grown == NULL) {
            return CT_ERR_MEMORY;
        }
        scratch->best = grown;
        scratch->cap_best = size + size / 2 + 64;
    }
    struct cti_best *best = scratch->best;
    for (size_t i = 0; i <= size; i++) {
        best[i] = (struct cti_best){.start = -1};
    }
    CT_TRY(viterbi(tok, best, word, size, origin, err));
    /* Backwards along the best cut; unknown parts in a row are one. Each part's end is noted where it begins. */
    struct cti_best part = best[size];
    for (int32_t end = (int32_t)size; end > 0;) {
        int32_t start = part.start;
        while (part.id == tok->unk_id && start > 0 && best[start].id == tok->unk_id) {
            start = best[start].start;
        }
        part = best[start];
        best[start].id = end;
        end = start;
    }
    for (size_t at = 0; at < size;) {
        const size_t end = (size_t)best[at].id;
        CT_TRY(push_part(tok, word + at, end - at, tokens, err));
        at = end;
    }
    return CT_OK;
}

/* --- all of them --- */

ct_status cti_model_word(const ct_tokenizer *tok, cti_scratch *scratch, const char *word, size_t size, size_t origin,
                         ct_tokens *tokens, ct_err *err)
{
    switch (tok->model) {
    case CTI_MODEL_BPE:
        return cti_bpe_word(tok, scratch, word, size, origin, tokens, err);
    case CTI_MODEL_WORDPIECE:
        return wordpiece_word(tok, scratch, word, size, origin, tokens, err);
    case CTI_MODEL_WORDLEVEL: {
        const int32_t id = cti_model_id(tok, word, size);
        return id >= 0 ? ct_tokens_push(tokens, id, err) : push_unknown(tok, word, size, origin, tokens, err);
    }
    case CTI_MODEL_UNIGRAM:
        return unigram_word(tok, scratch, word, size, origin, tokens, err);
    case CTI_MODEL_COUNT:
        break;
    }
    return CT_OK;
}
