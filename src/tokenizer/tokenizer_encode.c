/* SPDX-License-Identifier: Apache-2.0 */
/* Text to ids: repair, added tokens, normalizer, added tokens again, words, model, template. */
#include "tokenizer/tokenizer_internal.h"

void ct_tokens_deinit(ct_tokens *tokens)
{
    ct_alloc_free(tokens->alloc, tokens->ids);
    *tokens = (ct_tokens){.alloc = tokens->alloc};
}

/* Text without added tokens. */
static ct_status encode_plain(const ct_tokenizer *tok, cti_scratch *scratch, const char *text, size_t size, size_t origin,
                              bool at_start, ct_tokens *tokens, ct_err *err)
{
    const cti_pieces *pieces = NULL;
    CT_TRY(cti_pretokenize(tok->steps, tok->n_steps, scratch, text, size, origin, at_start, &pieces, err));
    for (size_t i = 0; i < pieces->n; i++) {
        const cti_span *span = &pieces->spans[i];
        CT_TRY(cti_model_word(tok, scratch, pieces->text + span->start, span->size, span->origin, tokens, err));
    }
    return CT_OK;
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
            CT_TRY(encode_plain(tok, scratch, normed + hit.start, hit.end - hit.start, origin + (is_same ? hit.start : 0),
                                origin + hit.start == 0, tokens, err));
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
