/* SPDX-License-Identifier: Apache-2.0 */
/* The model: one word becomes characters, and characters are merged, lowest rank first, leftmost first among equals.
 *
 * Short words scan an array for the lowest rank; long ones are in tokenizer_bpe_long.c. Both give the same ids. */
#include "tokenizer/tokenizer_internal.h"

enum { SHORT_WORD = 32 };

ct_status ct_tokens_reserve(ct_tokens *tokens, int64_t n_more, ct_err *err)
{
    if (tokens->cap - tokens->n < n_more) {
        const int64_t cap = cti_max_i64(cti_max_i64(64, tokens->cap * 2), tokens->n + n_more);
        int32_t *ids = ct_alloc_resize(tokens->alloc, tokens->ids, (size_t)cap, sizeof *ids, err);
        if (ids == NULL) {
            return CT_ERR_MEMORY;
        }
        tokens->ids = ids;
        tokens->cap = cap;
    }
    return CT_OK;
}

ct_status ct_tokens_push(ct_tokens *tokens, int32_t id, ct_err *err)
{
    CT_TRY(ct_tokens_reserve(tokens, 1, err));
    tokens->ids[tokens->n++] = id;
    return CT_OK;
}

static ct_status push_ids(ct_tokens *tokens, const int32_t *ids, size_t n, ct_err *err)
{
    CT_TRY(ct_tokens_reserve(tokens, (int64_t)n, err));
    if (n > 0) {
        memcpy(tokens->ids + tokens->n, ids, n * sizeof *ids);
    }
    tokens->n += (int64_t)n;
    return CT_OK;
}

/* The word as symbols of one character each. An unknown token waits until the next character has a token of its own, as
 * in the library: the bytes of a character that falls back come before it. */
static ct_status lay_out(const ct_tokenizer *tok, int32_t *ids, const char *word, size_t size, size_t origin, ct_tokens *tokens,
                         size_t *out_n, ct_err *err)
{
    const unsigned char *p = (const unsigned char *)word, *end = p + size;
    size_t n = 0;
    bool unk_waits = false;
    while (p < end) {
        unsigned len = 0;
        const uint32_t cp = cti_point_at(p, &len);
        const int32_t id = cp < 2048 ? tok->char_ids[cp] : cti_model_id(tok, (const char *)p, len);
        bool fall_back = id < 0 && tok->byte_fallback; /* all bytes of the character, or none */
        for (unsigned i = 0; i < len && fall_back; i++) {
            fall_back = tok->byte_ids[p[i]] >= 0;
        }
        if (id >= 0) {
            if (unk_waits) {
                ids[n++] = tok->unk_id;
            }
            unk_waits = false;
            ids[n++] = id;
        } else if (fall_back) {
            for (unsigned i = 0; i < len; i++) {
                ids[n++] = tok->byte_ids[p[i]];
            }
        } else if (tok->unk_id >= 0) {
            if (unk_waits && !tok->fuse_unk) {
                ids[n++] = tok->unk_id;
            }
            unk_waits = true;
        } else {
            CT_TRY(cti_unknown(tok, (const char *)p, len, origin, tokens, err));
        }
        p += len;
    }
    if (unk_waits) {
        ids[n++] = tok->unk_id;
    }
    *out_n = n;
    return CT_OK;
}

/* The merge of the bytes p[0] and p[1]. */
static inline const cti_merge *merge_of_bytes(const ct_tokenizer *tok, const unsigned char *p)
{
    const uint32_t index = tok->byte_pairs[p[0] * 256u + p[1]];
    return index > 0 ? &tok->merges.list[index - 1] : NULL;
}

/* Merges n symbols in place; returns how many are left. bytes: what they stand for, NULL: symbols that are not bytes. */
static size_t merge_short(const ct_tokenizer *tok, const unsigned char *bytes, int32_t *ids, size_t n)
{
    const cti_merges *merges = &tok->merges;
    int32_t rank[SHORT_WORD + 1], merged[SHORT_WORD + 1];
    for (size_t i = 0; i + 1 < n; i++) {
        const cti_merge *m = bytes ? merge_of_bytes(tok, bytes + i) : cti_merges_find(merges, ids[i], ids[i + 1]);
        rank[i] = m ? m->rank : INT32_MAX;
        merged[i] = m ? m->id : -1;
    }
    while (n > 1) {
        size_t best = 0;
        int32_t lowest = rank[0];
        for (size_t i = 1; i + 1 < n; i++) {
            best = rank[i] < lowest ? i : best;
            lowest = rank[i] < lowest ? rank[i] : lowest;
        }
        if (lowest == INT32_MAX) {
            break;
        }
        ids[best] = merged[best];
        for (size_t i = best + 1; i + 1 < n; i++) {
            ids[i] = ids[i + 1];
            rank[i] = rank[i + 1];
            merged[i] = merged[i + 1];
        }
        n--;
        for (size_t i = best > 0 ? best - 1 : 0; i <= best && i + 1 < n; i++) {
            const cti_merge *m = cti_merges_find(merges, ids[i], ids[i + 1]);
            rank[i] = m ? m->rank : INT32_MAX;
            merged[i] = m ? m->id : -1;
        }
    }
    return n;
}

static ct_status ids_reserve(cti_scratch *s, size_t n, ct_err *err)
{
    if (n > INT32_MAX / 4) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "a word of %zu bytes is above the limit of %d", n, INT32_MAX / 4);
    }
    if (n > s->cap_ids) {
        const size_t cap = n + n / 2 + 64;
        int32_t *ids = ct_alloc_resize(s->alloc, s->ids, cap, sizeof *ids, err);
        if (ids == NULL) {
            return CT_ERR_MEMORY;
        }
        s->ids = ids;
        s->cap_ids = cap;
    }
    return CT_OK;
}

/* bytes: as for merge_short(). */
static ct_status merge_and_push(const ct_tokenizer *tok, cti_scratch *s, const char *bytes, size_t n, ct_tokens *tokens, ct_err *err)
{
    if (n <= SHORT_WORD) {
        n = merge_short(tok, (const unsigned char *)bytes, s->ids, n);
    } else {
        CT_TRY(cti_merge_long(&tok->merges, &s->long_word, s->ids, &n, err));
    }
    return push_ids(tokens, s->ids, n, err);
}

static ct_status word_uncached(const ct_tokenizer *tok, cti_scratch *s, const char *word, size_t size, size_t origin,
                               ct_tokens *tokens, ct_err *err)
{
    if (tok->ignore_merges && size <= (size_t)tok->longest) {
        const int32_t whole = cti_model_id(tok, word, size);
        if (whole >= 0) {
            return ct_tokens_push(tokens, whole, err);
        }
    }
    /* With affixes a character can fall back to their bytes too. */
    const size_t per_char = 1 + (tok->prefix ? strlen(tok->prefix) : 0), at_end = tok->suffix ? strlen(tok->suffix) : 0;
    if (size > INT32_MAX / 4 / per_char) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "a word of %zu bytes is above the limit of %zu", size, INT32_MAX / 4 / per_char);
    }
    CT_TRY(ids_reserve(s, size * per_char + at_end, err));
    size_t n = 0;
    if (tok->prefix || tok->suffix) {
        CT_TRY(cti_bpe_lay_out_affixed(tok, s->ids, word, size, origin, tokens, &n, err));
    } else {
        CT_TRY(lay_out(tok, s->ids, word, size, origin, tokens, &n, err));
    }
    return merge_and_push(tok, s, NULL, n, tokens, err);
}

static ct_status bytes_uncached(const ct_tokenizer *tok, cti_scratch *s, const char *word, size_t size, size_t origin,
                                ct_tokens *tokens, ct_err *err)
{
    if (tok->ignore_merges && size <= (size_t)tok->longest) {
        cti_str_reset(&s->spelt);
        cti_bytes_to_alphabet(word, size, &s->spelt);
        CT_TRY(cti_str_check(&s->spelt, err));
        const int32_t whole = cti_model_id(tok, cti_str_text(&s->spelt), s->spelt.len);
        if (whole >= 0) {
            return ct_tokens_push(tokens, whole, err);
        }
    }
    CT_TRY(ids_reserve(s, size, err));
    int32_t lowest = 0;
    for (size_t i = 0; i < size; i++) {
        s->ids[i] = tok->raw_ids[(unsigned char)word[i]];
        lowest |= s->ids[i];
    }
    if (lowest < 0) { /* a byte without a token: what becomes of it is said in one place only */
        cti_str_reset(&s->spelt);
        cti_bytes_to_alphabet(word, size, &s->spelt);
        CT_TRY(cti_str_check(&s->spelt, err));
        return word_uncached(tok, s, cti_str_text(&s->spelt), s->spelt.len, origin, tokens, err);
    }
    return merge_and_push(tok, s, word, size, tokens, err);
}

typedef ct_status (*uncached_fn)(const ct_tokenizer *, cti_scratch *, const char *, size_t, size_t, ct_tokens *, ct_err *);

static inline ct_status cached(const ct_tokenizer *tok, cti_scratch *s, const char *word, size_t size, size_t origin,
                               ct_tokens *tokens, uncached_fn uncached, ct_err *err)
{
    if (s->cache == NULL || size > CTI_CACHE_LONG_WORD) {
        return uncached(tok, s, word, size, origin, tokens, err);
    }
    uint64_t key[2] = {0};
    const int64_t before = tokens->n, dropped = tokens->n_dropped;
    if (size <= CTI_CACHE_WORD) {
        cti_cache_key((const unsigned char *)word, (const unsigned char *)word + size, size, key);
        const cti_cache_slot *slot = cti_cache_find(s->cache, key);
        if (slot != NULL) {
            CT_TRY(ct_tokens_reserve(tokens, CTI_CACHE_IDS, err));
            memcpy(tokens->ids + tokens->n, slot->ids, sizeof slot->ids);
            tokens->n += cti_cache_count(slot);
            return CT_OK;
        }
    } else {
        const cti_cache_long *slot = cti_cache_find_long(s->cache, word, size);
        if (slot != NULL) {
            return push_ids(tokens, slot->ids, slot->n_ids, err);
        }
    }
    CT_TRY(uncached(tok, s, word, size, origin, tokens, err));
    if (tokens->n_dropped == dropped) {
        if (size <= CTI_CACHE_WORD) {
            cti_cache_put(s->cache, key, tokens->ids + before, tokens->n - before);
        } else {
            cti_cache_put_long(s->cache, word, size, tokens->ids + before, tokens->n - before);
        }
    }
    return CT_OK;
}

/* Behind the blanks' marks at p and what follows up to the next mark. */
static const char *mark_end(const char *p, const char *end)
{
    while (end - p >= 3 && memcmp(p, CTI_MARK, 3) == 0) {
        p += 3;
    }
    const char *next = memmem(p, (size_t)(end - p), CTI_MARK, 3);
    return next ? next : end;
}

ct_status cti_bpe_word(const ct_tokenizer *tok, cti_scratch *s, const char *word, size_t size, size_t origin, ct_tokens *tokens,
                       ct_err *err)
{
    const char *p = word, *end = word + size;
    while (tok->parts_at_mark && end - p > CTI_CACHE_WORD) {
        const char *stop = mark_end(p, end);
        CT_TRY(cached(tok, s, p, (size_t)(stop - p), origin, tokens, word_uncached, err));
        p = stop;
    }
    return p < end ? cached(tok, s, p, (size_t)(end - p), origin, tokens, word_uncached, err) : CT_OK;
}

ct_status cti_bpe_bytes(const ct_tokenizer *tok, cti_scratch *s, const char *word, size_t size, size_t origin, ct_tokens *tokens,
                        ct_err *err)
{
    return cached(tok, s, word, size, origin, tokens, bytes_uncached, err);
}
