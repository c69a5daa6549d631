/* SPDX-License-Identifier: Apache-2.0 */
/* Added tokens: found in the text before anything else, leftmost first, the longest at each place. */
#include "tokenizer/tokenizer_internal.h"

/* --- the trie --- */

static ct_status trie_node(cti_trie *trie, const ct_alloc *alloc, unsigned char byte, int32_t *link, ct_err *err)
{
    const bool link_is_root = link >= trie->roots && link < trie->roots + 256;
    const size_t link_at = link_is_root ? 0 : (size_t)((char *)link - (char *)trie->nodes);
    if (trie->n == trie->cap) {
        const int32_t cap = trie->cap ? trie->cap * 2 : 64;
        cti_trie_node *nodes = ct_alloc_resize(alloc, trie->nodes, (size_t)cap, sizeof *nodes, err);
        if (nodes == NULL) {
            return CT_ERR_MEMORY;
        }
        trie->nodes = nodes;
        trie->cap = cap;
        if (!link_is_root) {
            link = (int32_t *)(void *)((char *)nodes + link_at);
        }
    }
    trie->nodes[trie->n] = (cti_trie_node){.child = -1, .sibling = -1, .value = -1, .byte = byte};
    *link = trie->n++;
    return CT_OK;
}

ct_status cti_trie_add(cti_trie *trie, const ct_alloc *alloc, const char *text, size_t size, int32_t value, ct_err *err)
{
    if (trie->cap == 0) {
        for (int i = 0; i < 256; i++) {
            trie->roots[i] = -1;
        }
    }
    int32_t node = -1;
    for (size_t i = 0; i < size; i++) {
        const unsigned char byte = (unsigned char)text[i];
        int32_t *link = i == 0 ? &trie->roots[byte] : &trie->nodes[node].child;
        while (*link >= 0 && trie->nodes[*link].byte != byte) {
            link = &trie->nodes[*link].sibling;
        }
        if (*link >= 0) {
            node = *link;
        } else {
            CT_TRY(trie_node(trie, alloc, byte, link, err));
            node = trie->n - 1;
        }
    }
    if (node >= 0 && trie->nodes[node].value < 0) {
        trie->nodes[node].value = value;
    }
    return CT_OK;
}

void cti_trie_deinit(cti_trie *trie, const ct_alloc *alloc)
{
    ct_alloc_free(alloc, trie->nodes);
    trie->nodes = NULL;
    trie->n = trie->cap = 0;
}

/* The longest entry that begins at text[from]: its value (-1: none) and end. */
static int32_t trie_longest(const cti_trie *trie, const char *text, size_t size, size_t from, size_t *out_end)
{
    int32_t value = -1, node = trie->roots[(unsigned char)text[from]];
    size_t at = from + 1;
    while (node >= 0) {
        if (trie->nodes[node].value >= 0) {
            value = trie->nodes[node].value;
            *out_end = at;
        }
        if (at == size) {
            break;
        }
        const unsigned char byte = (unsigned char)text[at++];
        node = trie->nodes[node].child;
        while (node >= 0 && trie->nodes[node].byte != byte) {
            node = trie->nodes[node].sibling;
        }
    }
    return value;
}

/* --- characters round a token --- */

/* The character before `at`; *out_start: where it begins. at > 0. */
static uint32_t char_before(const char *text, size_t at, size_t *out_start)
{
    size_t start = at - 1;
    while (start > 0 && ((unsigned char)text[start] & 0xc0) == 0x80) {
        start--;
    }
    uint32_t cp = 0;
    (void)cti_utf8_decode((const unsigned char *)text + start, (const unsigned char *)text + at, &cp);
    *out_start = start;
    return cp;
}

static uint32_t char_at(const char *text, size_t size, size_t at, size_t *out_end)
{
    uint32_t cp = 0;
    const int n = cti_utf8_decode((const unsigned char *)text + at, (const unsigned char *)text + size, &cp);
    *out_end = at + (n > 0 ? (size_t)n : 1);
    return cp;
}

static bool stands_alone(const char *text, size_t size, size_t start, size_t end)
{
    size_t unused = 0;
    return (start == 0 || !cti_is_word(char_before(text, start, &unused))) &&
           (end == size || !cti_is_word(char_at(text, size, end, &unused)));
}

/* --- walking through a text --- */

bool cti_added_next(const ct_tokenizer *tok, const cti_trie tries[2], bool match_special, const char *text, size_t size,
                    cti_added_walk *walk, cti_hit *out_hit)
{
    const cti_trie *trie = &tries[match_special];
    if (walk->waiting) {
        walk->waiting = false;
        *out_hit = walk->token;
        return true;
    }
    for (size_t at = walk->search; trie->n > 0 && at < size; at++) {
        size_t end = 0;
        const int32_t value = trie->roots[(unsigned char)text[at]] < 0 ? -1 : trie_longest(trie, text, size, at, &end);
        if (value < 0) {
            continue;
        }
        const cti_added *token = &tok->added[value];
        if ((token->special && !match_special) || (token->single_word && !stands_alone(text, size, at, end))) {
            at = end - 1; /* what begins inside is passed over too, as in the library */
            continue;
        }
        size_t start = at;
        for (size_t before = start; token->lstrip && start > walk->place && cti_is_space(char_before(text, start, &before));) {
            start = before;
        }
        walk->search = end;
        for (size_t after = end; token->rstrip && end < size && cti_is_space(char_at(text, size, end, &after));) {
            end = after;
        }
        if (token->lstrip && at < walk->place) { /* it begins among the blanks that the token before took */
            start = walk->place;
            if (start >= end) { /* and ends there: nothing is left of it, as in the library */
                at = walk->search - 1;
                continue;
            }
        }
        walk->token = (cti_hit){.added = value, .start = start, .end = end};
        *out_hit = walk->token;
        if (walk->place < start) {
            walk->waiting = true;
            *out_hit = (cti_hit){.added = -1, .start = walk->place, .end = start};
        }
        walk->place = end;
        return true;
    }
    walk->search = size;
    if (walk->place < size) {
        *out_hit = (cti_hit){.added = -1, .start = walk->place, .end = size};
        walk->place = size;
        return true;
    }
    return false;
}

/* --- the list --- */

/* Gives the token its id: the one of the file, the vocabulary's, or the next. */
static ct_status added_id(ct_tokenizer *tok, cti_added *token, const char *where, ct_err *err)
{
    const int32_t known = cti_vocab_find(&tok->vocab, token->content, token->size);
    const int shown = (int)cti_min_i64((int64_t)token->size, 80);
    if (known >= 0) {
        if (token->id >= 0 && token->id != known) {
            return CT_FAIL(err, CT_ERR_FORMAT, "%s: added token '%.*s' has id %d, but the vocabulary gives it %d", where, shown,
                           token->content, (int)token->id, (int)known);
        }
        token->id = known;
        return CT_OK;
    }
    if (token->id < 0) {
        token->id = tok->vocab.n_ids;
    }
    if (cti_vocab_has(&tok->vocab, token->id)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: added token '%.*s' has id %d, which is that of '%.*s'", where, shown,
                       token->content, (int)token->id, (int)cti_min_i64(tok->vocab.tokens[token->id].size, 80),
                       cti_vocab_text(&tok->vocab, token->id));
    }
    if (token->id > tok->vocab.n_ids + (1 << 20)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: added token '%.*s' has id %d, far above the %d tokens there are", where,
                       shown, token->content, (int)token->id, (int)tok->vocab.n_tokens);
    }
    return cti_vocab_add(&tok->vocab, token->id, token->content, token->size, err);
}

ct_status cti_added_put(ct_tokenizer *tok, cti_added token, const char *where, ct_err *err)
{
    if (token.size == 0) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: an added token is empty", where);
    }
    CT_TRY(added_id(tok, &token, where, err));
    for (size_t i = 0; i < tok->n_added; i++) {
        if (tok->added[i].id == token.id) {
            char *content = tok->added[i].content;
            tok->added[i] = token;
            tok->added[i].content = content;
            return CT_OK;
        }
    }
    cti_added *added = ct_alloc_resize(tok->alloc, tok->added, tok->n_added + 1, sizeof *added, err);
    if (added == NULL) {
        return CT_ERR_MEMORY;
    }
    tok->added = added;
    char *content = CT_NEW_ARRAY(tok->alloc, char, token.size + 1, err);
    if (content == NULL) {
        return CT_ERR_MEMORY;
    }
    memcpy(content, token.content, token.size);
    added[tok->n_added] = token;
    added[tok->n_added++].content = content;
    return CT_OK;
}

/* tries[1] finds all tokens; so does tries[0], unless all of them are special: then nothing needs to be looked for. */
ct_status cti_added_finish(ct_tokenizer *tok, cti_scratch *scratch, ct_err *err)
{
    bool any_plain[2] = {false, false}; /* by `normalized` */
    for (size_t i = 0; i < tok->n_added; i++) {
        any_plain[tok->added[i].normalized] |= !tok->added[i].special;
    }
    for (int special = 1; special >= 0; special--) { /* of two that read alike once normalized, the special one is found */
        for (size_t i = 0; i < tok->n_added; i++) {
            const cti_added *token = &tok->added[i];
            const char *text = token->content;
            size_t size = token->size;
            if (token->special != (special == 1)) {
                continue;
            }
            cti_trie *tries = token->normalized ? tok->normed : tok->raw;
            if (token->normalized) {
                CT_TRY(cti_normalize(tok->norms, tok->n_norms, scratch, text, size, &text, &size, NULL, err));
            }
            CT_TRY(cti_trie_add(&tries[1], tok->alloc, text, size, (int32_t)i, err));
            if (any_plain[token->normalized]) {
                CT_TRY(cti_trie_add(&tries[0], tok->alloc, text, size, (int32_t)i, err));
            }
        }
    }
    return CT_OK;
}
