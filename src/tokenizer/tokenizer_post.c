/* SPDX-License-Identifier: Apache-2.0 */
/* The components behind the model: the post-processor becomes ids before and after the text, the decoder steps. */
#include "tokenizer/tokenizer_component.h"

/* --- post-processor: ids before and after the text --- */

static ct_status push_id(const cti_component *c, int64_t id, int32_t **ids, size_t *n, ct_err *err)
{
    if (id < 0 || id >= CTI_MAX_IDS || !cti_vocab_has(&c->tok->vocab, (int32_t)id)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: id %lld is not in the vocabulary", c->where, (long long)id);
    }
    int32_t *grown = ct_alloc_resize(c->tok->alloc, *ids, *n + 1, sizeof *grown, err);
    if (grown == NULL) {
        return CT_ERR_MEMORY;
    }
    *ids = grown;
    grown[(*n)++] = (int32_t)id;
    return CT_OK;
}

/* Ids that go in front of those that are there. */
static void rotate(int32_t *ids, size_t n, size_t n_old)
{
    for (size_t i = n_old; i < n; i++) {
        const int32_t id = ids[i];
        memmove(ids + (i - n_old) + 1, ids + (i - n_old), n_old * sizeof *ids);
        ids[i - n_old] = id;
    }
}

static ct_status post_byte_level(const cti_component *c, ct_err *err)
{
    (void)c; /* it moves offsets only */
    (void)err;
    return CT_OK;
}

static ct_status template_token(const cti_component *c, const char *id, int32_t **ids, size_t *n, ct_err *err)
{
    const json_t *token = json_object_get(json_object_get(c->json, "special_tokens"), id);
    const json_t *list = json_object_get(token, "ids");
    if (!json_is_array(list)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: special token '%.80s' has no ids", c->where, id);
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *value = json_array_get(list, i);
        CT_TRY(push_id(c, json_is_integer(value) ? json_integer_value(value) : -1, ids, n, err));
    }
    return CT_OK;
}

static ct_status post_template(const cti_component *c, ct_err *err)
{
    const json_t *single = json_object_get(c->json, "single");
    if (!json_is_array(single)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: 'single' must be a list", c->where);
    }
    ct_tokenizer *tok = c->tok;
    const size_t n_old = tok->n_before;
    int n_texts = 0;
    for (size_t i = 0; i < json_array_size(single); i++) {
        const json_t *piece = json_array_get(single, i);
        const json_t *special = json_object_get(piece, "SpecialToken"), *text = json_object_get(piece, "Sequence");
        const char *id = json_string_value(json_object_get(special ? special : text, "id"));
        if (id == NULL || json_object_size(piece) != 1) {
            return CT_FAIL(err, CT_ERR_FORMAT, "%s: piece %zu of 'single' is neither SpecialToken nor Sequence", c->where, i);
        }
        if (special != NULL) {
            CT_TRY(n_texts == 0 ? template_token(c, id, &tok->template_before, &tok->n_before, err)
                                : template_token(c, id, &tok->template_after, &tok->n_after, err));
        } else if (strcmp(id, "A") != 0 || n_texts++ > 0) {
            return CT_FAIL(err, CT_ERR_UNSUPPORTED, "%s: 'single' must hold the text, $A, once", c->where);
        }
    }
    if (n_texts == 0) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "%s: 'single' leaves out the text, $A", c->where);
    }
    rotate(tok->template_before, tok->n_before, n_old);
    return CT_OK;
}

/* BertProcessing and RobertaProcessing: cls, text, sep. */
static ct_status post_cls_sep(const cti_component *c, ct_err *err)
{
    ct_tokenizer *tok = c->tok;
    const json_t *cls = json_array_get(json_object_get(c->json, "cls"), 1);
    const json_t *sep = json_array_get(json_object_get(c->json, "sep"), 1);
    const size_t n_old = tok->n_before;
    CT_TRY(push_id(c, json_is_integer(cls) ? json_integer_value(cls) : -1, &tok->template_before, &tok->n_before, err));
    CT_TRY(push_id(c, json_is_integer(sep) ? json_integer_value(sep) : -1, &tok->template_after, &tok->n_after, err));
    rotate(tok->template_before, tok->n_before, n_old);
    return CT_OK;
}

ct_status cti_parse_post_processor(ct_tokenizer *tok, const json_t *json, const char *name, ct_err *err)
{
    const cti_component_row rows[] = {{"ByteLevel", post_byte_level, CTI_KEYS("add_prefix_space", "trim_offsets", "use_regex")},
                                  {"TemplateProcessing", post_template, CTI_KEYS("single", "pair", "special_tokens")},
                                  {"BertProcessing", post_cls_sep, CTI_KEYS("sep", "cls")},
                                  {"RobertaProcessing", post_cls_sep, CTI_KEYS("sep", "cls", "trim_offsets", "add_prefix_space")},
                                  {0}};
    return cti_parse_components(tok, json, "post_processor", "processors", name, rows, err);
}

/* --- decoder --- */

/* Takes what dec owns, also on failure. */
static ct_status add_dec(ct_tokenizer *tok, cti_dec dec, ct_err *err)
{
    cti_dec *decs = ct_alloc_resize(tok->alloc, tok->decs, tok->n_decs + 1, sizeof *decs, err);
    if (decs == NULL) {
        cti_dec_deinit(&dec, tok->alloc);
        return CT_ERR_MEMORY;
    }
    tok->decs = decs;
    decs[tok->n_decs++] = dec;
    tok->has_decoder = true;
    return CT_OK;
}

ct_status cti_add_decoder_byte_level(ct_tokenizer *tok, ct_err *err)
{
    tok->joins = true;
    return add_dec(tok, (cti_dec){.kind = CTI_DEC_BYTE_LEVEL}, err);
}

/* Steps of one token each come first. Behind what joins tokens (Fuse, ByteLevel) or makes parts of characters
 * (ByteFallback) they would have to look across tokens. */
static ct_status before_joining(const cti_component *c, ct_err *err)
{
    const bool has_bytes = c->tok->n_decs > 0 && c->tok->decs[c->tok->n_decs - 1].kind == CTI_DEC_BYTE_FALLBACK;
    return c->tok->joins || has_bytes
               ? CT_FAIL(err, CT_ERR_UNSUPPORTED, "%s behind Fuse, ByteLevel or ByteFallback is not implemented", c->where)
               : CT_OK;
}

static ct_status dec_byte_level(const cti_component *c, ct_err *err)
{
    CT_TRY(before_joining(c, err));
    return cti_add_decoder_byte_level(c->tok, err);
}

static ct_status dec_byte_fallback(const cti_component *c, ct_err *err)
{
    CT_TRY(before_joining(c, err));
    return add_dec(c->tok, (cti_dec){.kind = CTI_DEC_BYTE_FALLBACK}, err);
}

static ct_status dec_fuse(const cti_component *c, ct_err *err)
{
    (void)err;
    c->tok->has_decoder = true; /* tokens are always put together without blanks here */
    c->tok->joins = true;
    return CT_OK;
}

static ct_status dec_replace(const cti_component *c, ct_err *err)
{
    cti_dec dec = {.kind = CTI_DEC_REPLACE};
    const char *to = NULL;
    CT_TRY(before_joining(c, err));
    CT_TRY(cti_get_string(c, "content", &to, &dec.text_size, err));
    CT_TRY(cti_get_pattern(c, &dec.pattern, err));
    dec.text = cti_copy_bytes(c->tok->alloc, to, dec.text_size, err);
    if (dec.text == NULL) {
        cti_dec_deinit(&dec, c->tok->alloc);
        return CT_ERR_MEMORY;
    }
    return add_dec(c->tok, dec, err);
}

static ct_status dec_strip(const cti_component *c, ct_err *err)
{
    cti_dec dec = {.kind = CTI_DEC_STRIP};
    ct_tokenizer *tok = c->tok;
    CT_TRY(cti_get_character(c, "content", dec.mark, err));
    CT_TRY(cti_json_get_i64(c->json, "start", c->where, &dec.start, err));
    CT_TRY(cti_json_get_i64(c->json, "stop", c->where, &dec.stop, err));
    if (dec.start < 0 || dec.stop < 0 || dec.start > INT32_MAX || dec.stop > INT32_MAX) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: 'start' and 'stop' must be from 0 to %d", c->where, INT32_MAX);
    }
    if (!tok->joins) {
        CT_TRY(before_joining(c, err));
        return add_dec(tok, dec, err);
    }
    if (dec.stop > 0 || tok->strip_count > 0) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "%s behind Fuse is implemented once and at the start of the text only", c->where);
    }
    memcpy(tok->strip_mark, dec.mark, sizeof dec.mark);
    tok->strip_count = (int32_t)dec.start;
    return CT_OK;
}

static ct_status dec_metaspace(const cti_component *c, ct_err *err)
{
    cti_dec dec = {.kind = CTI_DEC_METASPACE};
    cti_scheme scheme = CTI_SCHEME_ALWAYS;
    CT_TRY(before_joining(c, err));
    CT_TRY(cti_get_character(c, "replacement", dec.mark, err));
    CT_TRY(cti_get_scheme(c, &scheme, err));
    dec.by_first = scheme != CTI_SCHEME_NEVER;
    return add_dec(c->tok, dec, err);
}

/* The member `key`, a string, as the step's text. */
static ct_status dec_with_text(const cti_component *c, const char *key, cti_dec dec, ct_err *err)
{
    const char *text = NULL;
    CT_TRY(before_joining(c, err));
    CT_TRY(cti_get_string(c, key, &text, &dec.text_size, err));
    if (dec.text_size == 0) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "%s: an empty '%s' is not implemented", c->where, key);
    }
    dec.text = cti_copy_bytes(c->tok->alloc, text, dec.text_size, err);
    return dec.text ? add_dec(c->tok, dec, err) : CT_ERR_MEMORY;
}

static ct_status dec_wordpiece(const cti_component *c, ct_err *err)
{
    cti_dec dec = {.kind = CTI_DEC_WORDPIECE, .by_first = true};
    CT_TRY(cti_get_bool(c->json, "cleanup", true, c->where, &dec.cleanup, err));
    return dec_with_text(c, "prefix", dec, err);
}

static ct_status dec_bpe(const cti_component *c, ct_err *err)
{
    return dec_with_text(c, "suffix", (cti_dec){.kind = CTI_DEC_BPE, .by_last = true}, err);
}

ct_status cti_parse_decoder(ct_tokenizer *tok, const json_t *json, const char *name, ct_err *err)
{
    const cti_component_row rows[] = {{"ByteLevel", dec_byte_level, CTI_KEYS("add_prefix_space", "trim_offsets", "use_regex")},
                                      {"ByteFallback", dec_byte_fallback, CTI_NO_KEYS},
                                      {"Fuse", dec_fuse, CTI_NO_KEYS},
                                      {"Replace", dec_replace, CTI_KEYS("pattern", "content")},
                                      {"Strip", dec_strip, CTI_KEYS("content", "start", "stop")},
                                      {"Metaspace", dec_metaspace, CTI_METASPACE_KEYS},
                                      {"WordPiece", dec_wordpiece, CTI_KEYS("prefix", "cleanup")},
                                      {"BPEDecoder", dec_bpe, CTI_KEYS("suffix")},
                                      {0}};
    CT_TRY(cti_parse_components(tok, json, "decoder", "decoders", name, rows, err));
    bool by_first = false, by_last = false;
    for (size_t i = 0; i < tok->n_decs; i++) {
        by_first |= tok->decs[i].by_first;
        by_last |= tok->decs[i].by_last;
    }
    return by_first && by_last ? CT_FAIL(err, CT_ERR_UNSUPPORTED,
                                         "%s: a decoder of BPEDecoder with Metaspace or WordPiece is not implemented", name)
                               : CT_OK;
}
