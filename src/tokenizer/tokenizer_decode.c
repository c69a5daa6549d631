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

void cti_dec_deinit(cti_dec *dec, const ct_alloc *alloc)
{
    cti_pattern_deinit(&dec->pattern, alloc);
    ct_alloc_free(alloc, dec->text);
}

static void replace_all(const char *text, size_t size, const char *from, size_t from_size, const char *to, cti_str *out)
{
    const char *p = text, *end = text + size;
    for (const char *hit; (hit = memmem(p, (size_t)(end - p), from, from_size)) != NULL; p = hit + from_size) {
        cti_str_add_n(out, p, (size_t)(hit - p));
        cti_str_add(out, to);
    }
    cti_str_add_n(out, p, (size_t)(end - p));
}

/* Takes the mark off both ends, so often at most. */
static void strip_token(const cti_dec *dec, const char *text, size_t size, cti_str *out)
{
    const size_t n = strlen(dec->mark);
    for (int64_t i = 0; i < dec->start && size >= n && memcmp(text, dec->mark, n) == 0; i++) {
        text += n;
        size -= n;
    }
    for (int64_t i = 0; i < dec->stop && size >= n && memcmp(text + size - n, dec->mark, n) == 0; i++) {
        size -= n;
    }
    cti_str_add_n(out, text, size);
}

/* WordPiece. The clean-up is that of the library, a token at a time and in this order. */
static void wordpiece_token(const cti_dec *dec, const char *text, size_t size, int place, cti_str *out, cti_str *tmp)
{
    static const char *const pairs[][2] = {{" .", "."},    {" ?", "?"},     {" !", "!"},           {" ,", ","},
                                           {" ' ", "'"},   {" n't", "n't"}, {" 'm", "'m"},         {" do not", " don't"},
                                           {" 's", "'s"},  {" 've", "'ve"}, {" 're", "'re"}};
    if (place == CTI_PLACE_FIRST) {
        cti_str_add_n(out, text, size);
    } else if (size >= dec->text_size && memcmp(text, dec->text, dec->text_size) == 0) {
        cti_str_add_n(out, text + dec->text_size, size - dec->text_size);
    } else {
        cti_str_add_char(out, ' ');
        cti_str_add_n(out, text, size);
    }
    for (size_t i = 0; dec->cleanup && i < sizeof pairs / sizeof *pairs; i++) {
        cti_str_reset(tmp);
        replace_all(cti_str_text(out), out->len, pairs[i][0], strlen(pairs[i][0]), pairs[i][1], tmp);
        const cti_str swap = *out;
        *out = *tmp;
        *tmp = swap;
    }
}

typedef struct decoding {
    ct_tokenizer *tok;
    cti_scratch *scratch;
    const cti_added **added; /* by id; NULL: no added token */
    cti_str a, b, tmp;
} decoding;

/* One step on the token in d->a; what it makes is in d->b. False: it leaves the token alone. */
static bool step(decoding *d, const cti_dec *dec, int place, bool is_added, ct_status *st, ct_err *err)
{
    const char *text = cti_str_text(&d->a);
    const size_t size = d->a.len;
    cti_str_reset(&d->b);
    switch (dec->kind) {
    case CTI_DEC_BYTE_LEVEL: /* an added token is its own text */
        return !is_added && cti_alphabet_to_bytes(text, size, &d->b);
    case CTI_DEC_BYTE_FALLBACK: {
        const int byte = fallback_byte(text, size);
        if (byte >= 0) {
            cti_str_add_char(&d->b, (char)byte);
        }
        return byte >= 0;
    }
    case CTI_DEC_REPLACE:
        *st = cti_pattern_replace(&dec->pattern, d->scratch->matcher, text, size, dec->text, dec->text_size, &d->b, err);
        return true;
    case CTI_DEC_STRIP:
        strip_token(dec, text, size, &d->b);
        return true;
    case CTI_DEC_METASPACE:
        replace_all(text, size, dec->mark, strlen(dec->mark), place == CTI_PLACE_FIRST && dec->by_first ? "" : " ", &d->b);
        return true;
    case CTI_DEC_WORDPIECE:
        wordpiece_token(dec, text, size, place, &d->b, &d->tmp);
        return true;
    case CTI_DEC_BPE:
        replace_all(text, size, dec->text, dec->text_size, place == CTI_PLACE_LAST ? "" : " ", &d->b);
        return true;
    case CTI_DEC_COUNT:
        break;
    }
    return false;
}

enum { COPY = 16 }; /* bytes that are copied of a token without asking for its size */

/* The token's text into d->a: as the file spells it; of an added token that is matched in normalized text, its normal form. */
static ct_status spell(decoding *d, int32_t id, ct_err *err)
{
    const ct_tokenizer *tok = d->tok;
    const char *text = cti_vocab_text(&tok->vocab, id);
    size_t size = (size_t)tok->vocab.tokens[id].size;
    if (d->added[id] != NULL && d->added[id]->normalized) {
        CT_TRY(cti_normalize(tok->norms, tok->n_norms, d->scratch, text, size, &text, &size, NULL, err));
    }
    cti_str_reset(&d->a);
    cti_str_add_n(&d->a, text, size);
    return CT_OK;
}

static ct_status decode_all_tokens(decoding *d, int place, ct_err *err)
{
    ct_tokenizer *tok = d->tok;
    cti_decoded *table = &tok->decoded[place];
    ct_status st = CT_OK;
    table->bytes.alloc = tok->alloc;
    table->at = CT_NEW_ARRAY(tok->alloc, size_t, tok->vocab.n_ids + 1, err);
    if (table->at == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int32_t id = 0; id < tok->vocab.n_ids; id++) {
        table->at[id] = table->bytes.len;
        if (!cti_vocab_has(&tok->vocab, id)) {
            continue;
        }
        CT_TRY(spell(d, id, err));
        for (size_t i = 0; i < tok->n_decs; i++) {
            if (step(d, &tok->decs[i], place, d->added[id] != NULL, &st, err)) {
                const cti_str swap = d->a;
                d->a = d->b;
                d->b = swap;
            }
            CT_TRY(st);
        }
        cti_str_add_n(&table->bytes, cti_str_text(&d->a), d->a.len);
    }
    table->at[tok->vocab.n_ids] = table->bytes.len;
    static const char room[COPY] = "";
    cti_str_add_n(&table->bytes, room, COPY); /* emit_inside() reads beyond */
    CT_TRY(cti_str_check(&d->a, err));
    CT_TRY(cti_str_check(&d->b, err));
    return cti_str_check(&table->bytes, err);
}

ct_status cti_decode_prepare(ct_tokenizer *tok, cti_scratch *scratch, ct_err *err)
{
    const int32_t n = tok->vocab.n_ids;
    const cti_added **added = CT_NEW_ARRAY(tok->alloc, const cti_added *, n, err);
    tok->special = CT_NEW_ARRAY(tok->alloc, bool, n, err);
    if (added == NULL || tok->special == NULL) {
        ct_alloc_free(tok->alloc, added);
        return CT_ERR_MEMORY;
    }
    for (size_t i = 0; i < tok->n_added; i++) {
        added[tok->added[i].id] = &tok->added[i];
        tok->special[tok->added[i].id] = tok->added[i].special;
    }
    bool wanted[CTI_PLACE_COUNT] = {[CTI_PLACE_INSIDE] = true};
    for (size_t i = 0; i < tok->n_decs; i++) {
        wanted[CTI_PLACE_FIRST] |= tok->decs[i].by_first;
        wanted[CTI_PLACE_LAST] |= tok->decs[i].by_last;
    }
    decoding d = {.tok = tok,
                  .scratch = scratch,
                  .added = added,
                  .a = {.alloc = tok->alloc},
                  .b = {.alloc = tok->alloc},
                  .tmp = {.alloc = tok->alloc}};
    ct_status st = CT_OK;
    for (int place = 0; place < CTI_PLACE_COUNT && st == CT_OK; place++) {
        st = wanted[place] ? decode_all_tokens(&d, place, err) : CT_OK;
    }
    cti_str_deinit(&d.a);
    cti_str_deinit(&d.b);
    cti_str_deinit(&d.tmp);
    ct_alloc_free(tok->alloc, added);
    return st;
}

/* Appends one token's bytes. *started: a token came before. */
static void emit(const ct_tokenizer *tok, int32_t id, bool is_last, bool *started, cti_str *out)
{
    const cti_decoded *first = &tok->decoded[CTI_PLACE_FIRST], *last = &tok->decoded[CTI_PLACE_LAST];
    const cti_decoded *table = !*started && first->at ? first : is_last && last->at ? last : &tok->decoded[CTI_PLACE_INSIDE];
    const char *bytes = cti_str_text(&table->bytes) + table->at[id];
    size_t size = table->at[id + 1] - table->at[id];
    if (*started && !tok->has_decoder) {
        cti_str_add_char(out, ' ');
    }
    *started = true;
    cti_str_add_n(out, bytes, size);
}

/* Takes the mark off the beginning of a whole text. */
static void strip_start(const ct_tokenizer *tok, cti_str *out, size_t start)
{
    const size_t n = strlen(tok->strip_mark);
    size_t from = start;
    for (int32_t i = 0; i < tok->strip_count && out->len - from >= n && memcmp(out->data + from, tok->strip_mark, n) == 0; i++) {
        from += n;
    }
    if (from > start) {
        memmove(out->data + start, out->data + from, out->len - from + 1);
        out->len -= from - start;
    }
}

/* Appends tokens that are neither the first nor the last. */
static void emit_inside(const ct_tokenizer *tok, const int32_t *ids, int64_t n, bool skips, cti_str *out)
{
    const cti_decoded *table = &tok->decoded[CTI_PLACE_INSIDE];
    const char *bytes = cti_str_text(&table->bytes);
    for (int64_t i = 0; i < n; i++) {
        const size_t start = table->at[ids[i]], size = table->at[ids[i] + 1] - start;
        if (skips && tok->special[ids[i]]) {
            continue;
        }
        if (out->cap - out->len < size + COPY && !cti_str_reserve(out, size + COPY + 3 * (size_t)(n - i))) {
            return;
        }
        char *to = out->data + out->len;
        memcpy(to, bytes + start, COPY);
        if (size > COPY) {
            memcpy(to + COPY, bytes + start + COPY, size - COPY);
        }
        out->len += size;
    }
    if (out->data != NULL) {
        out->data[out->len] = '\0';
    }
}

static ct_status check_id(const ct_tokenizer *tok, int32_t id, ct_err *err)
{
    if (!cti_vocab_has(&tok->vocab, id)) {
        return CT_FAIL(err, CT_ERR_RANGE, "id %d has no token (ids are 0..%d)", (int)id, (int)tok->vocab.n_ids - 1);
    }
    return CT_OK;
}

ct_status ct_tokenizer_decode(const ct_tokenizer *tok, const int32_t *ids, int64_t n_ids, unsigned flags, cti_str *out,
                              ct_err *err)
{
    const size_t before = out->len;
    const bool skips = (flags & CT_DECODE_SKIP_SPECIAL) != 0;
    bool started = false;
    int64_t n = n_ids; /* up to the last one that is shown */
    const bool has_holes = tok->vocab.n_tokens < tok->vocab.n_ids;
    for (int64_t i = 0; i < n_ids; i++) {
        if (has_holes || (uint32_t)ids[i] >= (uint32_t)tok->vocab.n_ids) {
            CT_TRY(check_id(tok, ids[i], err));
        }
    }
    while (n > 0 && skips && tok->special[ids[n - 1]]) {
        n--;
    }
    for (int64_t i = 0; i < n; i++) {
        if (started && tok->has_decoder && i + 1 < n) {
            emit_inside(tok, ids + i, n - 1 - i, skips, out);
            i = n - 1;
        }
        if (!(skips && tok->special[ids[i]])) {
            emit(tok, ids[i], i + 1 == n, &started, out);
        }
    }
    const ct_status st = cti_str_check(out, err);
    if (st == CT_OK && started) {
        strip_start(tok, out, before);
    }
    if (st != CT_OK && out->len > before) {
        out->len = before;
        out->data[before] = '\0';
    }
    return st;
}

/* --- one token at a time --- */

/* Appends whole characters of bytes, U+FFFD for what cannot become one; holds back a beginning. The mark is taken off the
 * first ones. */
static void push_bytes(ct_decode_stream *stream, const ct_tokenizer *tok, const cti_str *bytes, cti_str *out)
{
    const size_t n_mark = strlen(tok->strip_mark);
    const unsigned char *p = (const unsigned char *)cti_str_text(bytes), *end = p + bytes->len;
    stream->n_held = 0;
    while (p < end) {
        const int n = cti_utf8_len(p, end);
        if (n > 0) {
            const bool strips = stream->n_stripped < tok->strip_count && (size_t)n == n_mark && memcmp(p, tok->strip_mark, n_mark) == 0;
            stream->n_stripped = strips ? stream->n_stripped + 1 : INT32_MAX;
            cti_str_add_n(out, p, strips ? 0 : (size_t)n);
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
            stream->n_stripped = INT32_MAX;
        }
        p += bad;
    }
}

ct_status ct_decode_stream_push(ct_decode_stream *stream, const ct_tokenizer *tok, int32_t id, unsigned flags, cti_str *out,
                                ct_err *err)
{
    CT_TRY(check_id(tok, id, err));
    if ((flags & CT_DECODE_SKIP_SPECIAL) && tok->special[id]) {
        return CT_OK;
    }
    cti_str bytes = {.alloc = tok->alloc};
    cti_str_add_n(&bytes, stream->held, (size_t)stream->n_held);
    if (stream->owes_blank) { /* the token before was not the last */
        cti_str_add_char(&bytes, ' ');
    }
    /* A decoder that treats the last token otherwise makes its suffix a blank: the blank waits for the next token. */
    const cti_decoded *inside = &tok->decoded[CTI_PLACE_INSIDE], *last = &tok->decoded[CTI_PLACE_LAST];
    const size_t n_inside = inside->at[id + 1] - inside->at[id], n_last = last->at ? last->at[id + 1] - last->at[id] : 0;
    stream->owes_blank = last->at && n_inside == n_last + 1 && cti_str_text(&inside->bytes)[inside->at[id + 1] - 1] == ' ';
    emit(tok, id, stream->owes_blank, &stream->started, &bytes);
    const ct_status st = cti_str_check(&bytes, err);
    if (st == CT_OK) {
        push_bytes(stream, tok, &bytes, out);
    }
    cti_str_deinit(&bytes);
    return st == CT_OK ? cti_str_check(out, err) : st;
}

void ct_decode_stream_finish(ct_decode_stream *stream, cti_str *out)
{
    if (stream->n_held > 0) {
        cti_str_add(out, "\xef\xbf\xbd");
        stream->n_held = 0;
    }
}
