/* SPDX-License-Identifier: Apache-2.0 */
/* Text to ids: repair, added tokens, normalizer, added tokens again, words, model, template. */
#include "tokenizer/tokenizer_internal.h"

void ct_tokens_deinit(ct_tokens *tokens)
{
    ct_alloc_free(tokens->alloc, tokens->ids);
    *tokens = (ct_tokens){.alloc = tokens->alloc};
}

/* Text without added tokens. */
static ct_status encode_plain(const ct_tokenizer *tok, cti_scratch *scratch, const cti_piece *text, ct_tokens *tokens, ct_err *err)
{
    if (tok->known != CTI_KNOWN_NONE) {
        return cti_encode_known(tok, scratch, text, tokens, err);
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
    size_t first = 0;
    CT_TRY(cti_normalize(tok->norms, tok->n_norms, scratch, text, size, &normed, &normed_size,
                         tok->wants_start && origin == 0 ? &first : NULL, err));
    const bool is_same = normed == text;
    const bool match_special = (flags & CT_ENCODE_MATCH_SPECIAL) != 0;
    cti_added_walk walk = {0};
    cti_hit hit;
    while (cti_added_next(tok, tok->normed, match_special, normed, normed_size, &walk, &hit)) {
        if (hit.added >= 0) {
            CT_TRY(ct_tokens_push(tokens, tok->added[hit.added].id, err));
        } else {
            const cti_piece piece = {.text = normed + hit.start,
                                     .size = hit.end - hit.start,
                                     .origin = origin + (is_same ? hit.start : 0),
                                     .first_size = cti_left_of(first, hit.start, hit.end)};
            CT_TRY(encode_plain(tok, scratch, &piece, tokens, err));
        }
    }
    return CT_OK;
}

/* One part of a text, such as cti_cut() makes them; origin: where it begins. */
static ct_status encode_part(const ct_tokenizer *tok, cti_scratch *scratch, const char *text, size_t size, size_t origin,
                             unsigned flags, ct_tokens *tokens, ct_err *err)
{
    if (!cti_utf8_is_valid(text, size)) {
        cti_str_reset(&scratch->repaired);
        cti_utf8_repair(text, size, &scratch->repaired);
        CT_TRY(cti_str_check(&scratch->repaired, err));
        text = scratch->repaired.data;
        size = scratch->repaired.len;
    }
    const bool match_special = (flags & CT_ENCODE_MATCH_SPECIAL) != 0;
    cti_added_walk walk = {0};
    cti_hit hit;
    while (cti_added_next(tok, tok->raw, match_special, text, size, &walk, &hit)) {
        if (hit.added >= 0) {
            CT_TRY(ct_tokens_push(tokens, tok->added[hit.added].id, err));
        } else {
            CT_TRY(encode_stretch(tok, scratch, text + hit.start, hit.end - hit.start, origin + hit.start, flags, tokens, err));
        }
    }
    return CT_OK;
}

/* In parts where the tokenizer allows that, so that repairing and normalizing need no memory for the whole text, and what one pass
 * has read is still near for the next. */
ct_status cti_encode_text(const ct_tokenizer *tok, cti_scratch *scratch, const char *text, size_t size, size_t origin, unsigned flags,
                          ct_tokens *tokens, ct_err *err)
{
    enum { PART = 1 << 16 };
    for (size_t from = 0; from < size;) {
        const size_t to = cti_cut(tok, text, size, from + PART);
        CT_TRY(encode_part(tok, scratch, text + from, to - from, origin + from, flags, tokens, err));
        from = to;
    }
    return CT_OK;
}

static ct_status push_all(const int32_t *ids, size_t n, ct_tokens *tokens, ct_err *err)
{
    for (size_t i = 0; i < n; i++) {
        CT_TRY(ct_tokens_push(tokens, ids[i], err));
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

ct_status cti_encode_before(const ct_tokenizer *tok, unsigned flags, ct_tokens *tokens, ct_err *err)
{
    const size_t n = flags & CT_ENCODE_TEMPLATE ? tok->n_before : 0;
    if ((flags & CT_ENCODE_BOS) && tok->bos_id >= 0 && !among(tok->bos_id, tok->template_before, n)) {
        CT_TRY(ct_tokens_push(tokens, tok->bos_id, err));
    }
    return push_all(tok->template_before, n, tokens, err);
}

ct_status cti_encode_after(const ct_tokenizer *tok, unsigned flags, ct_tokens *tokens, ct_err *err)
{
    const size_t n = flags & CT_ENCODE_TEMPLATE ? tok->n_after : 0;
    CT_TRY(push_all(tok->template_after, n, tokens, err));
    if ((flags & CT_ENCODE_EOS) && tok->eos_id >= 0 && !among(tok->eos_id, tok->template_after, n)) {
        CT_TRY(ct_tokens_push(tokens, tok->eos_id, err));
    }
    return CT_OK;
}

static ct_status encode_all(const ct_tokenizer *tok, cti_scratch *scratch, const char *text, size_t size, unsigned flags,
                            ct_tokens *tokens, ct_err *err)
{
    CT_TRY(cti_encode_before(tok, flags, tokens, err));
    CT_TRY(cti_encode_text(tok, scratch, text, size, 0, flags, tokens, err));
    return cti_encode_after(tok, flags, tokens, err);
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
    enum { CACHE_PAYS = 1 << 15 };
    cti_scratch scratch;
    ct_status st = cti_scratch_init(&scratch, tok->alloc, size >= CACHE_PAYS, err);
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

cti_scratch *cti_encoder_scratch(ct_encoder *encoder)
{
    return &encoder->scratch;
}

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
