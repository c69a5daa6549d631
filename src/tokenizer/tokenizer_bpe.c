/* SPDX-License-Identifier: Apache-2.0 */
/* The model: one word becomes characters, and characters are merged, lowest rank first, leftmost first among equals.
 *
 * Short words scan an array for the lowest rank; long ones keep candidates in a heap over a linked list, so that a
 * word of n characters costs O(n log n). Both give the same ids. */
#include "tokenizer/tokenizer_internal.h"

enum { SHORT_WORD = 32 };

ct_status cti_tokens_push(ct_tokens *tokens, int32_t id, ct_err *err)
{
    if (tokens->n == tokens->cap) {
        const int64_t cap = tokens->cap ? tokens->cap * 2 : 64;
        int32_t *ids = ct_alloc_resize(tokens->alloc, tokens->ids, (size_t)cap, sizeof *ids, err);
        if (ids == NULL) {
            return CT_ERR_MEMORY;
        }
        tokens->ids = ids;
        tokens->cap = cap;
    }
    tokens->ids[tokens->n++] = id;
    return CT_OK;
}

/* The word as symbols of one character each. An unknown token waits until the next character has a token of its own, as
 * in the library: the bytes of a character that falls back come before it. */
static ct_status lay_out(const ct_tokenizer *tok, cti_symbol *symbols, const char *word, size_t size, size_t origin,
                         ct_tokens *tokens, size_t *out_n, ct_err *err)
{
    const unsigned char *p = (const unsigned char *)word, *end = p + size;
    size_t n = 0;
    bool unk_waits = false;
    while (p < end) {
        uint32_t cp = 0;
        const int len = cti_utf8_decode(p, end, &cp);
        CT_ASSERT(len > 0);
        const int32_t id = cp < 2048 ? tok->char_ids[cp] : cti_model_id(tok, (const char *)p, (size_t)len);
        bool fall_back = id < 0 && tok->byte_fallback; /* all bytes of the character, or none */
        for (int i = 0; i < len && fall_back; i++) {
            fall_back = tok->byte_ids[p[i]] >= 0;
        }
        if (id >= 0) {
            if (unk_waits) {
                symbols[n++].id = tok->unk_id;
            }
            unk_waits = false;
            symbols[n++].id = id;
        } else if (fall_back) {
            for (int i = 0; i < len; i++) {
                symbols[n++].id = tok->byte_ids[p[i]];
            }
        } else if (tok->unk_id >= 0) {
            if (unk_waits && !tok->fuse_unk) {
                symbols[n++].id = tok->unk_id;
            }
            unk_waits = true;
        } else {
            CT_TRY(cti_unknown(tok, (const char *)p, (size_t)len, origin, tokens, err));
        }
        p += len;
    }
    if (unk_waits) {
        symbols[n++].id = tok->unk_id;
    }
    *out_n = n;
    return CT_OK;
}

static size_t merge_short(const cti_merges *merges, cti_symbol *symbols, size_t n)
{
    int32_t rank[SHORT_WORD], merged[SHORT_WORD];
    for (size_t i = 0; i + 1 < n; i++) {
        const cti_merge *m = cti_merges_find(merges, symbols[i].id, symbols[i + 1].id);
        rank[i] = m ? m->rank : INT32_MAX;
        merged[i] = m ? m->id : -1;
    }
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++) {
            best = rank[i] < rank[best] ? i : best;
        }
        if (rank[best] == INT32_MAX) {
            break;
        }
        symbols[best].id = merged[best];
        for (size_t i = best + 1; i + 1 < n; i++) {
            symbols[i].id = symbols[i + 1].id;
            rank[i] = rank[i + 1 < n - 1 ? i + 1 : i];
            merged[i] = merged[i + 1 < n - 1 ? i + 1 : i];
        }
        n--;
        for (size_t i = best > 0 ? best - 1 : 0; i <= best && i + 1 < n; i++) {
            const cti_merge *m = cti_merges_find(merges, symbols[i].id, symbols[i + 1].id);
            rank[i] = m ? m->rank : INT32_MAX;
            merged[i] = m ? m->id : -1;
        }
    }
    return n;
}

static bool candidate_before(cti_candidate a, cti_candidate b)
{
    return a.rank != b.rank ? a.rank < b.rank : a.pos < b.pos;
}

/* Puts the pair that begins at pos into the heap if it is one that merges. The heap has room: see merge_long. */
static void consider(const cti_merges *merges, cti_scratch *s, int32_t pos)
{
    const int32_t next = s->symbols[pos].next;
    const cti_merge *m = next < 0 ? NULL : cti_merges_find(merges, s->symbols[pos].id, s->symbols[next].id);
    if (m == NULL) {
        return;
    }
    const cti_candidate c = {.rank = m->rank, .pos = pos, .left = m->left, .right = m->right, .id = m->id};
    size_t at = s->n_heap++;
    while (at > 0 && candidate_before(c, s->heap[(at - 1) / 2])) {
        s->heap[at] = s->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    s->heap[at] = c;
}

static cti_candidate pop(cti_scratch *s)
{
    const cti_candidate top = s->heap[0], last = s->heap[--s->n_heap];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= s->n_heap) {
            break;
        }
        child += child + 1 < s->n_heap && candidate_before(s->heap[child + 1], s->heap[child]);
        if (!candidate_before(s->heap[child], last)) {
            break;
        }
        s->heap[at] = s->heap[child];
        at = child;
    }
    s->heap[at] = last;
    return top;
}

static ct_status merge_long(const cti_merges *merges, cti_scratch *s, size_t *n, ct_err *err)
{
    /* n - 1 pairs to begin with, and each of at most n - 1 merges adds two. */
    const size_t most = 3 * *n;
    if (most > s->cap_heap) {
        cti_candidate *heap = ct_alloc_resize(s->alloc, s->heap, most, sizeof *heap, err);
        if (heap == NULL) {
            return CT_ERR_MEMORY;
        }
        s->heap = heap;
        s->cap_heap = most;
    }
    const int32_t count = (int32_t)*n;
    s->n_heap = 0;
    for (int32_t i = 0; i < count; i++) {
        s->symbols[i].prev = i - 1;
        s->symbols[i].next = i + 1 < count ? i + 1 : -1;
    }
    for (int32_t i = 0; i < count; i++) {
        consider(merges, s, i);
    }
    while (s->n_heap > 0) {
        const cti_candidate c = pop(s);
        cti_symbol *left = &s->symbols[c.pos];
        if (left->id != c.left || left->next < 0 || s->symbols[left->next].id != c.right) {
            continue; /* one of the two was merged meanwhile */
        }
        cti_symbol *right = &s->symbols[left->next];
        left->id = c.id;
        left->next = right->next;
        right->id = -1;
        if (left->next >= 0) {
            s->symbols[left->next].prev = c.pos;
        }
        consider(merges, s, c.pos);
        if (left->prev >= 0) {
            consider(merges, s, left->prev);
        }
    }
    size_t kept = 0;
    for (int32_t i = 0; i >= 0 && kept < *n; i = s->symbols[i].next) {
        s->heap[kept++].id = s->symbols[i].id; /* the heap is free now */
    }
    for (size_t i = 0; i < kept; i++) {
        s->symbols[i].id = s->heap[i].id;
    }
    *n = kept;
    return CT_OK;
}

static ct_status symbols_reserve(cti_scratch *s, size_t n, ct_err *err)
{
    if (n > INT32_MAX / 4) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "a word of %zu bytes is above the limit of %d", n, INT32_MAX / 4);
    }
    if (n > s->cap_symbols) {
        const size_t cap = n + n / 2 + 64;
        cti_symbol *symbols = ct_alloc_resize(s->alloc, s->symbols, cap, sizeof *symbols, err);
        if (symbols == NULL) {
            return CT_ERR_MEMORY;
        }
        s->symbols = symbols;
        s->cap_symbols = cap;
    }
    return CT_OK;
}

static ct_status push_symbols(const cti_symbol *symbols, size_t n, ct_tokens *tokens, ct_err *err)
{
    for (size_t i = 0; i < n; i++) {
        CT_TRY(cti_tokens_push(tokens, symbols[i].id, err));
    }
    return CT_OK;
}

static ct_status bpe_uncached(const ct_tokenizer *tok, cti_scratch *s, const char *word, size_t size, size_t origin,
                              ct_tokens *tokens, ct_err *err)
{
    if (tok->ignore_merges) {
        const int32_t whole = cti_model_id(tok, word, size);
        if (whole >= 0) {
            return cti_tokens_push(tokens, whole, err);
        }
    }
    CT_TRY(symbols_reserve(s, size, err));
    size_t n = 0;
    if (tok->prefix || tok->suffix) {
        CT_TRY(cti_bpe_lay_out_affixed(tok, s->symbols, word, size, origin, tokens, &n, err));
    } else {
        CT_TRY(lay_out(tok, s->symbols, word, size, origin, tokens, &n, err));
    }
    if (n <= SHORT_WORD) {
        n = merge_short(&tok->merges, s->symbols, n);
    } else {
        CT_TRY(merge_long(&tok->merges, s, &n, err));
    }
    return push_symbols(s->symbols, n, tokens, err);
}

ct_status cti_bpe_word(const ct_tokenizer *tok, cti_scratch *s, const char *word, size_t size, size_t origin,
                       ct_tokens *tokens, ct_err *err)
{
    if (s->cache == NULL || size > CTI_CACHE_KEY_BYTES) {
        return bpe_uncached(tok, s, word, size, origin, tokens, err);
    }
    cti_cache_slot *slot = &s->cache[cti_hash64(word, size, 0) % CTI_CACHE_SLOTS];
    if (slot->size != size || memcmp(slot->key, word, size) != 0) {
        const int64_t before = tokens->n, dropped = tokens->n_dropped;
        CT_TRY(bpe_uncached(tok, s, word, size, origin, tokens, err));
        const int64_t n = tokens->n - before;
        if (n <= CTI_CACHE_IDS && tokens->n_dropped == dropped) {
            slot->size = (unsigned char)size;
            slot->n_ids = (unsigned char)n;
            memcpy(slot->key, word, size);
            if (n > 0) {
                memcpy(slot->ids, tokens->ids + before, (size_t)n * sizeof *slot->ids);
            }
        }
        return CT_OK;
    }
    for (int i = 0; i < slot->n_ids; i++) {
        CT_TRY(cti_tokens_push(tokens, slot->ids[i], err));
    }
    return CT_OK;
}
