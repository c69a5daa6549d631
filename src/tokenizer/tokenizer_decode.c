/* SPDX-License-Identifier: Apache-2.0 */
/* Ids to bytes. What each token stands for is worked out once, when the tokenizer is opened. */
#include "tokenizer/tokenizer_internal.h"

/* "<0x0A>" -> 10, else -1. */
static int fallback_byte(const char *text, size_t size)
{
    static const char digits[] = "0123456789ABCDEF";
    if (size != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>') {
        return -1;
    }
    const char *high = memchr(digits, text[3], 16), *low = memchr(digits, text[4], 16);
    return high && low ? (int)(16 * (high - digits) + (low - digits)) : -1;
}

static void replace_all(const cti_dec *dec, const char *text, size_t size, cti_str *out)
{
    const char *p = text, *end = text + size;
    while (p < end) {
        const char *hit = memmem(p, (size_t)(end - p), dec->from, dec->from_size);
        cti_str_add_n(out, p, (size_t)((hit ? hit : end) - p));
        if (hit == NULL) {
            break;
        }
        cti_str_add_n(out, dec->to, dec->to_size);
        p = hit + dec->from_size;
    }
}

/* Appends the bytes of one token to tok->decoded. a, b: scratch. */
static void decode_token(ct_tokenizer *tok, const char *text, size_t size, bool is_added, cti_str *a, cti_str *b)
{
    cti_str_reset(a);
    cti_str_add_n(a, text, size);
    for (size_t i = 0; i < tok->n_decs; i++) {
        const cti_dec *dec = &tok->decs[i];
        cti_str_reset(b);
        const int byte = dec->kind == CTI_DEC_BYTE_FALLBACK ? fallback_byte(cti_str_text(a), a->len) : -1;
        if (dec->kind == CTI_DEC_REPLACE) {
            replace_all(dec, cti_str_text(a), a->len, b);
        } else if (byte >= 0) {
            cti_str_add_char(b, (char)byte);
        } else if (dec->kind != CTI_DEC_BYTE_LEVEL || is_added || !cti_alphabet_to_bytes(cti_str_text(a), a->len, b)) {
            continue; /* this step leaves the token alone; an added token is its own text */
        }
        const cti_str swap = *a;
        *a = *b;
        *b = swap;
    }
    cti_str_add_n(&tok->decoded, cti_str_text(a), a->len);
}

ct_status cti_decode_prepare(ct_tokenizer *tok, ct_err *err)
{
    const int32_t n = tok->vocab.n_ids;
    bool *is_added = CT_NEW_ARRAY(tok->alloc, bool, n, err);
    tok->special = CT_NEW_ARRAY(tok->alloc, bool, n, err);
    tok->decoded_at = CT_NEW_ARRAY(tok->alloc, size_t, n + 1, err);
    if (is_added == NULL || tok->special == NULL || tok->decoded_at == NULL) {
        ct_alloc_free(tok->alloc, is_added);
        return CT_ERR_MEMORY;
    }
    for (size_t i = 0; i < tok->n_added; i++) {
        is_added[tok->added[i].id] = true;
        tok->special[tok->added[i].id] = tok->added[i].special;
    }
    cti_str a = {.alloc = tok->alloc}, b = {.alloc = tok->alloc};
    for (int32_t id = 0; id < n; id++) {
        tok->decoded_at[id] = tok->decoded.len;
        if (cti_vocab_has(&tok->vocab, id)) {
            decode_token(tok, cti_vocab_text(&tok->vocab, id), (size_t)tok->vocab.tokens[id].size, is_added[id], &a, &b);
        }
    }
    tok->decoded_at[n] = tok->decoded.len;
    ct_status st = cti_str_check(&a, err);
    st = st == CT_OK ? cti_str_check(&b, err) : st;
    st = st == CT_OK ? cti_str_check(&tok->decoded, err) : st;
    cti_str_deinit(&a);
    cti_str_deinit(&b);
    ct_alloc_free(tok->alloc, is_added);
    return st;
}

/* Appends one token's bytes. *started: something came before. */
static ct_status emit(const ct_tokenizer *tok, int32_t id, unsigned flags, bool *started, cti_str *out, ct_err *err)
{
    if (!cti_vocab_has(&tok->vocab, id)) {
        return CT_FAIL(err, CT_ERR_RANGE, "id %d has no token (ids are 0..%d)", (int)id, (int)tok->vocab.n_ids - 1);
    }
    if ((flags & CT_DECODE_SKIP_SPECIAL) && tok->special[id]) {
        return CT_OK;
    }
    const char *bytes = cti_str_text(&tok->decoded) + tok->decoded_at[id];
    size_t size = tok->decoded_at[id + 1] - tok->decoded_at[id];
    if (*started && !tok->has_decoder) {
        cti_str_add_char(out, ' ');
    }
    const size_t strip = strlen(tok->strip_first);
    if (!*started && strip > 0 && size >= strip && memcmp(bytes, tok->strip_first, strip) == 0) {
        bytes += strip;
        size -= strip;
    }
    *started = true;
    cti_str_add_n(out, bytes, size);
    return CT_OK;
}

ct_status ct_tokenizer_decode(const ct_tokenizer *tok, const int32_t *ids, int64_t n_ids, unsigned flags, cti_str *out,
                              ct_err *err)
{
    const size_t before = out->len;
    bool started = false;
    ct_status st = CT_OK;
    for (int64_t i = 0; i < n_ids && st == CT_OK; i++) {
        st = emit(tok, ids[i], flags, &started, out, err);
    }
    if (st == CT_OK) {
        st = cti_str_check(out, err);
    }
    if (st != CT_OK && out->len > before) {
        out->len = before;
        out->data[before] = '\0';
    }
    return st;
}

ct_status ct_decode_stream_push(ct_decode_stream *stream, const ct_tokenizer *tok, int32_t id, unsigned flags, cti_str *out,
                                ct_err *err)
{
    cti_str bytes = {.alloc = tok->alloc};
    cti_str_add_n(&bytes, stream->held, (size_t)stream->n_held);
    ct_status st = emit(tok, id, flags, &stream->started, &bytes, err);
    st = st == CT_OK ? cti_str_check(&bytes, err) : st;
    if (st == CT_OK) {
        const unsigned char *p = (const unsigned char *)cti_str_text(&bytes), *end = p + bytes.len;
        stream->n_held = 0;
        while (p < end) {
            const int n = cti_utf8_len(p, end);
            if (n > 0) {
                cti_str_add_n(out, p, (size_t)n);
                p += n;
                continue;
            }
            bool open = false;
            const size_t bad = cti_utf8_ill_formed(p, end, &open);
            if (open) {
                memcpy(stream->held, p, bad);
                stream->n_held = (int)bad;
            } else {
                cti_str_add(out, "\xef\xbf\xbd");
            }
            p += bad;
        }
        st = cti_str_check(out, err);
    }
    cti_str_deinit(&bytes);
    return st;
}

void ct_decode_stream_finish(ct_decode_stream *stream, cti_str *out)
{
    if (stream->n_held > 0) {
        cti_str_add(out, "\xef\xbf\xbd");
        stream->n_held = 0;
    }
}
