/* SPDX-License-Identifier: Apache-2.0 */
/* The hot path of encoding: a known pattern cuts the text, and the model works on bytes. And where a long text may be cut. */
#include "tokenizer/tokenizer_internal.h"
#include "tokenizer/tokenizer_words.h"

typedef const unsigned char *(*next_fn)(const cti_classes *classes, const unsigned char *p, const unsigned char *end);

/* Words are cut some ahead of where their ids are looked up, so that the cache's lines are on their way meanwhile. */
enum { AHEAD = 32 };
typedef struct ahead {
    uint64_t key[2];
    size_t size;
} ahead;

/* Ids of n words from p on; returns behind them. */
static ct_status encode_words(const ct_tokenizer *tok, cti_scratch *s, const unsigned char *p, const ahead *words, size_t n, size_t origin,
                              ct_tokens *tokens, ct_err *err)
{
    CT_TRY(ct_tokens_reserve(tokens, AHEAD * CTI_CACHE_IDS, err));
    for (size_t i = 0; i < n; i++) {
        const size_t size = words[i].size;
        const cti_cache_slot *slot = size <= CTI_CACHE_WORD ? cti_cache_find(s->cache, words[i].key) : NULL;
        if (slot != NULL) {
            memcpy(tokens->ids + tokens->n, slot->ids, sizeof slot->ids);
            tokens->n += cti_cache_count(slot);
        } else {
            CT_TRY(cti_bpe_bytes(tok, s, (const char *)p, size, origin, tokens, err));
            CT_TRY(ct_tokens_reserve(tokens, AHEAD * CTI_CACHE_IDS, err));
        }
        p += size;
        origin += size;
    }
    return CT_OK;
}

/* Compiled once a pattern. */
CTI_HOT ct_status encode_tiled(const ct_tokenizer *tok, cti_scratch *s, const cti_piece *text, ct_tokens *tokens, next_fn next,
                               ct_err *err)
{
    const unsigned char *base = (const unsigned char *)text->text, *p = base, *end = p + text->size;
    const cti_classes *classes = tok->classes;
    while (p < end && s->cache == NULL) {
        const unsigned char *stop = next(classes, p, end);
        CT_TRY(cti_bpe_bytes(tok, s, (const char *)p, (size_t)(stop - p), text->origin + (size_t)(p - base), tokens, err));
        p = stop;
    }
    while (p < end) {
        ahead words[AHEAD];
        const unsigned char *first = p;
        size_t n = 0;
        for (; n < AHEAD && p < end; n++) {
            const unsigned char *stop = next(classes, p, end);
            ahead *w = &words[n];
            w->size = (size_t)(stop - p);
            if (w->size <= CTI_CACHE_WORD) {
                cti_cache_key(p, end, w->size, w->key);
                __builtin_prefetch(s->cache->slots[cti_cache_set(w->key)]);
            }
            p = stop;
        }
        CT_TRY(encode_words(tok, s, first, words, n, text->origin + (size_t)(first - base), tokens, err));
    }
    return CT_OK;
}

ct_status cti_encode_known(const ct_tokenizer *tok, cti_scratch *s, const cti_piece *text, ct_tokens *tokens, ct_err *err)
{
    switch (tok->known) {
    case CTI_KNOWN_GPT2:
        return encode_tiled(tok, s, text, tokens, cti_next_gpt2, err);
    case CTI_KNOWN_LLAMA3:
        return encode_tiled(tok, s, text, tokens, cti_next_llama3, err);
    case CTI_KNOWN_QWEN2:
        return encode_tiled(tok, s, text, tokens, cti_next_qwen2, err);
    case CTI_KNOWN_QWEN3_5:
        return encode_tiled(tok, s, text, tokens, cti_next_qwen3_5, err);
    case CTI_KNOWN_O200K:
        return encode_tiled(tok, s, text, tokens, cti_next_o200k, err);
    case CTI_KNOWN_DIGITS3:
    case CTI_KNOWN_CJK:
    case CTI_KNOWN_DEEPSEEK:
    case CTI_KNOWN_NONE:
    case CTI_KNOWN_COUNT:
        break; /* cti_encode_prepare() sets none of these */
    }
    return CT_FAIL(err, CT_ERR_STATE, "pattern %d is not one that covers a text", (int)tok->known);
}

/* --- cutting a long text --- */

static bool is_letter(char c)
{
    return (unsigned char)(((unsigned char)c | 0x20u) - 'a') < 26;
}

/* The cuts are before a blank between two letters of ASCII, and behind a newline before such a letter or a character of U+4000 to
 * U+9FFF: every known pattern ends a match there, and no normal form joins what is on both sides. GPT-2's pattern parts blanks before
 * a word otherwise than those that end a text, so there the newline must be alone. */
size_t cti_cut(const ct_tokenizer *tok, const char *text, size_t size, size_t want)
{
    if (!tok->can_cut) {
        return size;
    }
    for (size_t i = want; i + 1 < size; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == ' ' && i > 0 && is_letter(text[i - 1]) && is_letter(text[i + 1])) {
            return i;
        }
        if (i > 1 && text[i - 1] == '\n' && (is_letter(text[i]) || (c >= 0xe4 && c <= 0xe9)) &&
            (tok->can_cut_behind_blanks || (text[i - 2] > ' ' && text[i - 2] < 0x7f))) {
            return i;
        }
    }
    return size;
}

/* The known pattern of the last split, where all steps but the bytes are splits by such patterns. */
static cti_known last_known(const ct_tokenizer *tok)
{
    cti_known known = CTI_KNOWN_NONE;
    for (size_t i = 0; i + 1 < tok->n_steps; i++) {
        const cti_step *step = &tok->steps[i];
        const cti_classes *classes = NULL;
        if (step->kind != CTI_STEP_SPLIT || step->behaviour != CTI_BEHAVIOUR_ISOLATED || step->pattern.regex == NULL) {
            return CTI_KNOWN_NONE;
        }
        known = cti_regex_known(step->pattern.regex, &classes);
        if (known == CTI_KNOWN_NONE) {
            return known;
        }
    }
    return known;
}

/* Whether normalizing and added tokens leave the parts of a text alone. */
static bool are_parts_free(const ct_tokenizer *tok)
{
    for (size_t i = 0; i < tok->n_norms; i++) {
        if (tok->norms[i].kind > CTI_NORM_LOWERCASE) {
            return false;
        }
    }
    for (size_t i = 0; i < tok->n_added; i++) { /* none may lie across a cut, or look across one */
        const cti_added *token = &tok->added[i];
        if (token->lstrip || token->rstrip || token->single_word || memchr(token->content, ' ', token->size) ||
            memchr(token->content, '\n', token->size)) {
            return false;
        }
        for (size_t k = 0; k < token->size; k++) {
            if (token->normalized && (unsigned char)token->content[k] >= 0x80) {
                return false; /* a normal form could hold one of these */
            }
        }
    }
    return true;
}

/* Which merge two bytes have, by the bytes. */
static ct_status make_byte_pairs(ct_tokenizer *tok, ct_err *err)
{
    tok->byte_pairs = CT_NEW_ARRAY(tok->alloc, uint32_t, 65536, err);
    int16_t *byte_of = CT_NEW_ARRAY(tok->alloc, int16_t, tok->vocab.n_ids, err); /* byte + 1 by id */
    if (tok->byte_pairs == NULL || byte_of == NULL) {
        ct_alloc_free(tok->alloc, byte_of);
        return CT_ERR_MEMORY;
    }
    for (int byte = 0; byte < 256; byte++) {
        if (tok->raw_ids[byte] >= 0) {
            byte_of[tok->raw_ids[byte]] = (int16_t)(byte + 1);
        }
    }
    for (int32_t i = 0; i < tok->merges.n; i++) {
        const cti_merge *m = &tok->merges.list[i];
        if (byte_of[m->left] > 0 && byte_of[m->right] > 0) {
            tok->byte_pairs[(byte_of[m->left] - 1) * 256 + byte_of[m->right] - 1] = (uint32_t)i + 1;
        }
    }
    ct_alloc_free(tok->alloc, byte_of);
    return CT_OK;
}

static bool holds_late_mark(const char *text, size_t size)
{
    for (size_t i = 1; i + 3 <= size; i++) {
        if (memcmp(text + i, CTI_MARK, 3) == 0 && (i < 3 || memcmp(text + i - 3, CTI_MARK, 3) != 0)) {
            return true;
        }
    }
    return false;
}

/* Whether a word may be cut before each mark that follows another character: where no merge makes a token that holds these two,
 * nothing is ever merged across. The mark must have a token, and so must, in one way or another, every other character: with one
 * left out, its neighbours would meet. */
static bool parts_at_mark(const ct_tokenizer *tok)
{
    bool all_bytes = tok->byte_fallback;
    for (int byte = 0; byte < 256; byte++) {
        all_bytes = all_bytes && tok->byte_ids[byte] >= 0;
    }
    if (tok->model != CTI_MODEL_BPE || tok->is_raw || tok->prefix || tok->suffix || tok->ignore_merges ||
        cti_model_id(tok, CTI_MARK, 3) < 0 || (tok->unk_id < 0 && !all_bytes)) {
        return false;
    }
    if (tok->unk_id >= 0 && memmem(cti_vocab_text(&tok->vocab, tok->unk_id), (size_t)tok->vocab.tokens[tok->unk_id].size, CTI_MARK, 3)) {
        return false;
    }
    for (int32_t i = 0; i < tok->merges.n; i++) {
        const int32_t id = tok->merges.list[i].id;
        if (holds_late_mark(cti_vocab_text(&tok->vocab, id), (size_t)tok->vocab.tokens[id].size)) {
            return false;
        }
    }
    return true;
}

ct_status cti_encode_prepare(ct_tokenizer *tok, ct_err *err)
{
    for (int32_t id = 0; id < tok->vocab.n_ids; id++) {
        tok->longest = tok->vocab.tokens[id].size > tok->longest ? tok->vocab.tokens[id].size : tok->longest;
    }
    tok->is_raw = tok->model == CTI_MODEL_BPE && !tok->prefix && !tok->suffix && tok->n_steps > 0 && tok->steps[tok->n_steps - 1].kind == CTI_STEP_BYTES;
    for (size_t i = 0; i + 1 < tok->n_steps; i++) {
        tok->is_raw = tok->is_raw && tok->steps[i].kind != CTI_STEP_BYTES;
    }
    for (unsigned byte = 0; byte < 256; byte++) {
        tok->raw_ids[byte] = tok->char_ids[cti_byte_to_char((unsigned char)byte)];
    }
    const cti_step *split = tok->steps;
    if (tok->is_raw && tok->n_steps == 2 && split->kind == CTI_STEP_SPLIT && split->behaviour == CTI_BEHAVIOUR_ISOLATED &&
        split->pattern.regex != NULL) {
        /* inverted, the matches would be gaps; isolated, that is the same pieces */
        const cti_known known = cti_regex_known(split->pattern.regex, &tok->classes);
        tok->known = cti_known_tiles(known) ? known : CTI_KNOWN_NONE;
    }
    tok->parts_at_mark = parts_at_mark(tok);
    const cti_known last = last_known(tok); /* the splits before it only cut more */
    tok->can_cut = tok->is_raw && (cti_known_tiles(last) || last == CTI_KNOWN_DEEPSEEK) && are_parts_free(tok);
    tok->can_cut_behind_blanks = last != CTI_KNOWN_GPT2;
    return tok->is_raw ? make_byte_pairs(tok, err) : CT_OK;
}
