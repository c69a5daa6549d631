/* SPDX-License-Identifier: Apache-2.0 */
/* Text to ids: repair, added tokens, normalizer, added tokens again, words, model, template. */
#include "tokenizer/tokenizer_internal.h"
#include "tokenizer/tokenizer_words.h"

void ct_tokens_deinit(ct_tokens *tokens)
{
    ct_alloc_free(tokens->alloc, tokens->ids);
    *tokens = (ct_tokens){.alloc = tokens->alloc};
}

/* --- the hot path: a known pattern, then the model on bytes --- */

typedef const unsigned char *(*next_fn)(const cti_classes *classes, const unsigned char *p, const unsigned char *end);

/* Compiled once a pattern. n and ids are tokens->n and tokens->ids, kept in registers. */
CTI_HOT ct_status encode_tiled(const ct_tokenizer *tok, cti_scratch *s, const cti_piece *text, ct_tokens *tokens, next_fn next,
                               ct_err *err)
{
    const unsigned char *base = (const unsigned char *)text->text, *p = base, *end = p + text->size;
    const cti_classes *classes = tok->classes;
    const cti_cache *cache = s->cache;
    while (p < end) {
        CT_TRY(cti_tokens_reserve(tokens, 1024, err));
        int32_t *ids = tokens->ids;
        int64_t n = tokens->n;
        const int64_t limit = tokens->cap - CTI_CACHE_IDS;
        while (p < end && n <= limit) {
            const unsigned char *stop = next(classes, p, end);
            const size_t size = (size_t)(stop - p);
            uint64_t key[2];
            const cti_cache_slot *slot = NULL;
            if (size <= CTI_CACHE_WORD && cache != NULL) {
                cti_cache_key(p, end, size, key);
                slot = cti_cache_find(cache, key);
            }
            if (slot == NULL) {
                tokens->n = n;
                CT_TRY(cti_bpe_bytes(tok, s, (const char *)p, size, text->origin + (size_t)(p - base), tokens, err));
                p = stop;
                n = tokens->n;
                break; /* the ids may have moved */
            }
            memcpy(ids + n, slot->ids, sizeof slot->ids);
            n += cti_cache_count(slot);
            p = stop;
        }
        tokens->n = n;
    }
    return CT_OK;
}

static ct_status encode_known(const ct_tokenizer *tok, cti_scratch *s, const cti_piece *text, ct_tokens *tokens, ct_err *err)
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

void cti_encode_prepare(ct_tokenizer *tok)
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
}

/* Text without added tokens. */
static ct_status encode_plain(const ct_tokenizer *tok, cti_scratch *scratch, const cti_piece *text, ct_tokens *tokens, ct_err *err)
{
    if (tok->known != CTI_KNOWN_NONE) {
        return encode_known(tok, scratch, text, tokens, err);
    }
    cti_piece piece;
    CT_TRY(cti_pieces_start(scratch, tok->steps, tok->n_steps - tok->is_raw, text, err));
    for (;;) {
        CT_TRY(cti_pieces_next(scratch, &piece, err));
        if (piece.size == 0) {
            return CT_OK;
        }
        CT_TRY(tok->is_raw ? cti_bpe_bytes(tok, scratch, piece.text, piece.size, piece.origin, tokens, err)
                           : cti_model_word(tok, scratch, piece.text, piece.size, piece.origin, tokens, err));
    }
}

/* Text between tokens that are matched before normalizing. */
static ct_status encode_stretch(const ct_tokenizer *tok, cti_scratch *scratch, const char *text, size_t size, size_t origin,
                                unsigned flags, ct_tokens *tokens, ct_err *err)
{
    const char *normed = NULL;
    size_t normed_size = 0;
    CT_TRY(cti_normalize(tok->norms, tok->n_norms, scratch, text, size, &normed, &normed_size, err));
    const bool is_same = normed == text;
    cti_added_walk walk = {0};
    cti_hit hit;
    while (cti_added_next(tok, &tok->normed[(flags & CT_ENCODE_MATCH_SPECIAL) != 0], normed, normed_size, &walk, &hit)) {
        if (hit.added >= 0) {
            CT_TRY(cti_tokens_push(tokens, tok->added[hit.added].id, err));
        } else {
            const cti_piece piece = {.text = normed + hit.start,
                                     .size = hit.end - hit.start,
                                     .origin = origin + (is_same ? hit.start : 0),
                                     .at_start = origin + hit.start == 0};
            CT_TRY(encode_plain(tok, scratch, &piece, tokens, err));
        }
    }
    return CT_OK;
}

static ct_status encode_text(const ct_tokenizer *tok, cti_scratch *scratch, const char *text, size_t size, unsigned flags,
                             ct_tokens *tokens, ct_err *err)
{
    if (!cti_utf8_is_valid(text, size)) {
        cti_str_reset(&scratch->repaired);
        cti_utf8_repair(text, size, &scratch->repaired);
        CT_TRY(cti_str_check(&scratch->repaired, err));
        text = scratch->repaired.data;
        size = scratch->repaired.len;
    }
    cti_added_walk walk = {0};
    cti_hit hit;
    while (cti_added_next(tok, &tok->raw[(flags & CT_ENCODE_MATCH_SPECIAL) != 0], text, size, &walk, &hit)) {
        if (hit.added >= 0) {
            CT_TRY(cti_tokens_push(tokens, tok->added[hit.added].id, err));
        } else {
            CT_TRY(encode_stretch(tok, scratch, text + hit.start, hit.end - hit.start, hit.start, flags, tokens, err));
        }
    }
    return CT_OK;
}

static ct_status push_all(const int32_t *ids, size_t n, ct_tokens *tokens, ct_err *err)
{
    for (size_t i = 0; i < n; i++) {
        CT_TRY(cti_tokens_push(tokens, ids[i], err));
    }
    return CT_OK;
}

static bool among(int32_t id, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (ids[i] == id) {
            return true;
        }
    }
    return false;
}

static ct_status encode_all(const ct_tokenizer *tok, cti_scratch *scratch, const char *text, size_t size, unsigned flags,
                            ct_tokens *tokens, ct_err *err)
{
    const bool use_template = (flags & CT_ENCODE_TEMPLATE) != 0;
    const size_t n_before = use_template ? tok->n_before : 0, n_after = use_template ? tok->n_after : 0;
    if ((flags & CT_ENCODE_BOS) && tok->bos_id >= 0 && !among(tok->bos_id, tok->template_before, n_before)) {
        CT_TRY(cti_tokens_push(tokens, tok->bos_id, err));
    }
    CT_TRY(push_all(tok->template_before, n_before, tokens, err));
    CT_TRY(encode_text(tok, scratch, text, size, flags, tokens, err));
    CT_TRY(push_all(tok->template_after, n_after, tokens, err));
    if ((flags & CT_ENCODE_EOS) && tok->eos_id >= 0 && !among(tok->eos_id, tok->template_after, n_after)) {
        CT_TRY(cti_tokens_push(tokens, tok->eos_id, err));
    }
    return CT_OK;
}

static ct_status encode_or_undo(const ct_tokenizer *tok, cti_scratch *scratch, const void *text, size_t size,
                                unsigned flags, ct_tokens *tokens, ct_err *err)
{
    const int64_t n = tokens->n, n_dropped = tokens->n_dropped;
    const ct_status st = encode_all(tok, scratch, size > 0 ? text : "", size, flags, tokens, err);
    if (st != CT_OK) {
        tokens->n = n;
        tokens->n_dropped = n_dropped;
    }
    return st;
}

ct_status ct_tokenizer_encode(const ct_tokenizer *tok, const void *text, size_t size, unsigned flags, ct_tokens *tokens,
                              ct_err *err)
{
    cti_scratch scratch;
    ct_status st = cti_scratch_init(&scratch, tok->alloc, false, err);
    if (st == CT_OK) {
        st = encode_or_undo(tok, &scratch, text, size, flags, tokens, err);
    }
    cti_scratch_deinit(&scratch);
    return st;
}

struct ct_encoder {
    const ct_alloc *alloc;   /* borrows */
    const ct_tokenizer *tok; /* borrows */
    cti_scratch scratch;
};

ct_status ct_encoder_create(const ct_alloc *alloc, const ct_tokenizer *tokenizer, ct_encoder **out_encoder, ct_err *err)
{
    ct_encoder *encoder = CT_NEW(alloc, ct_encoder, err);
    if (encoder == NULL) {
        return CT_ERR_MEMORY;
    }
    encoder->alloc = alloc;
    encoder->tok = tokenizer;
    const ct_status st = cti_scratch_init(&encoder->scratch, alloc, true, err);
    if (st != CT_OK) {
        ct_encoder_destroy(&encoder);
        return st;
    }
    *out_encoder = encoder;
    return CT_OK;
}

void ct_encoder_destroy(ct_encoder **encoder)
{
    if (*encoder != NULL) {
        cti_scratch_deinit(&(*encoder)->scratch);
        ct_alloc_free((*encoder)->alloc, *encoder);
        *encoder = NULL;
    }
}

ct_status ct_encoder_encode(ct_encoder *encoder, const void *text, size_t size, unsigned flags, ct_tokens *tokens, ct_err *err)
{
    return encode_or_undo(encoder->tok, &encoder->scratch, text, size, flags, tokens, err);
}
