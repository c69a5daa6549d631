/* SPDX-License-Identifier: Apache-2.0 */
/* The two hash tables of a vocabulary: token text to id, and pair of ids to merge. */
#include "tokenizer/tokenizer_internal.h"

void cti_vocab_init(cti_vocab *vocab, const ct_alloc *alloc)
{
    *vocab = (cti_vocab){.alloc = alloc, .bytes = {.alloc = alloc}};
}

void cti_vocab_deinit(cti_vocab *vocab)
{
    cti_str_deinit(&vocab->bytes);
    ct_alloc_free(vocab->alloc, vocab->tokens);
    ct_alloc_free(vocab->alloc, vocab->slots);
    vocab->tokens = NULL;
    vocab->slots = NULL;
    vocab->n_slots = 0;
    vocab->n_ids = vocab->cap_ids = vocab->n_tokens = 0;
}

/* The slot that holds text, or the free one where it belongs. n_slots > 0. */
static size_t vocab_slot(const cti_vocab *vocab, const char *text, size_t size)
{
    const size_t mask = vocab->n_slots - 1;
    size_t at = (size_t)cti_hash64(text, size, 0) & mask;
    while (vocab->slots[at] != 0) {
        const cti_token *token = &vocab->tokens[vocab->slots[at] - 1];
        if ((size_t)token->size == size && memcmp(vocab->bytes.data + token->offset, text, size) == 0) {
            break;
        }
        at = (at + 1) & mask;
    }
    return at;
}

int32_t cti_vocab_find(const cti_vocab *vocab, const char *text, size_t size)
{
    if (vocab->n_slots == 0) {
        return -1;
    }
    return vocab->slots[vocab_slot(vocab, text, size)] - 1;
}

static ct_status vocab_grow_slots(cti_vocab *vocab, ct_err *err)
{
    const size_t n_slots = vocab->n_slots ? vocab->n_slots * 2 : 1024;
    int32_t *slots = CT_NEW_ARRAY(vocab->alloc, int32_t, n_slots, err);
    if (slots == NULL) {
        return CT_ERR_MEMORY;
    }
    ct_alloc_free(vocab->alloc, vocab->slots);
    vocab->slots = slots;
    vocab->n_slots = n_slots;
    for (int32_t id = 0; id < vocab->n_ids; id++) {
        if (vocab->tokens[id].size >= 0) {
            slots[vocab_slot(vocab, cti_vocab_text(vocab, id), (size_t)vocab->tokens[id].size)] = id + 1;
        }
    }
    return CT_OK;
}

static ct_status vocab_grow_ids(cti_vocab *vocab, int32_t id, ct_err *err)
{
    if (id >= vocab->cap_ids) {
        const int32_t cap = (int32_t)cti_max_i64(cti_max_i64(1024, (int64_t)vocab->cap_ids * 2), (int64_t)id + 1);
        cti_token *tokens =
            ct_alloc_resize(vocab->alloc, vocab->tokens, (size_t)cap, sizeof *vocab->tokens, err);
        if (tokens == NULL) {
            return CT_ERR_MEMORY;
        }
        vocab->tokens = tokens;
        vocab->cap_ids = cap;
    }
    while (vocab->n_ids <= id) {
        vocab->tokens[vocab->n_ids++] = (cti_token){.size = -1};
    }
    return CT_OK;
}

ct_status cti_vocab_add(cti_vocab *vocab, int32_t id, const char *text, size_t size, ct_err *err)
{
    if (id < 0 || id >= CTI_MAX_IDS) {
        return CT_FAIL(err, CT_ERR_FORMAT, "id %d of token '%.*s' is outside 0..%d", (int)id, (int)cti_min_i64((int64_t)size, 80),
                       text, CTI_MAX_IDS - 1);
    }
    if (size > INT32_MAX) {
        return CT_FAIL(err, CT_ERR_FORMAT, "token %d is longer than 2 GiB", (int)id);
    }
    if (cti_vocab_has(vocab, id)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "id %d is given to two tokens: '%.*s' and '%.*s'", (int)id,
                       (int)cti_min_i64(vocab->tokens[id].size, 80), cti_vocab_text(vocab, id), (int)cti_min_i64((int64_t)size, 80), text);
    }
    if ((size_t)vocab->n_tokens * 2 >= vocab->n_slots) {
        CT_TRY(vocab_grow_slots(vocab, err));
    }
    const size_t slot = vocab_slot(vocab, text, size);
    if (vocab->slots[slot] != 0) {
        return CT_FAIL(err, CT_ERR_FORMAT, "token '%.*s' has two ids: %d and %d", (int)cti_min_i64((int64_t)size, 80), text,
                       (int)vocab->slots[slot] - 1, (int)id);
    }
    CT_TRY(vocab_grow_ids(vocab, id, err));
    const size_t offset = vocab->bytes.len;
    cti_str_add_n(&vocab->bytes, text, size);
    CT_TRY(cti_str_check(&vocab->bytes, err));
    vocab->tokens[id] = (cti_token){.offset = offset, .size = (int32_t)size};
    vocab->slots[slot] = id + 1;
    vocab->n_tokens++;
    return CT_OK;
}

ct_status cti_merges_init(cti_merges *merges, const ct_alloc *alloc, ct_err *err)
{
    *merges = (cti_merges){.alloc = alloc, .slots = CT_NEW_ARRAY(alloc, uint32_t, 1024, err), .mask = 1023};
    return merges->slots ? CT_OK : CT_ERR_MEMORY;
}

void cti_merges_deinit(cti_merges *merges)
{
    ct_alloc_free(merges->alloc, merges->list);
    ct_alloc_free(merges->alloc, merges->slots);
    *merges = (cti_merges){.alloc = merges->alloc};
}

static void merges_enter(cti_merges *merges, int32_t index)
{
    const cti_merge *m = &merges->list[index];
    const uint64_t hash = cti_mix_pair(m->left, m->right);
    size_t at = (size_t)hash & merges->mask;
    while (merges->slots[at] != 0) {
        at = (at + 1) & merges->mask;
    }
    merges->slots[at] = (uint32_t)(hash >> 56) << 24 | (uint32_t)(index + 1);
}

ct_status cti_merges_put(cti_merges *merges, cti_merge merge, ct_err *err)
{
    const cti_merge *known = cti_merges_find(merges, merge.left, merge.right);
    if (known != NULL) {
        merges->list[known - merges->list] = merge;
        return CT_OK;
    }
    if (merges->n == 0xffffff) {
        return CT_FAIL(err, CT_ERR_FORMAT, "there are more than %d merges", 0xffffff);
    }
    if (merges->n == merges->cap) {
        const int32_t cap = merges->cap ? 2 * merges->cap : 512;
        cti_merge *list = ct_alloc_resize(merges->alloc, merges->list, (size_t)cap, sizeof *list, err);
        if (list == NULL) {
            return CT_ERR_MEMORY;
        }
        merges->list = list;
        merges->cap = cap;
    }
    if ((size_t)merges->n * 2 > merges->mask) {
        const size_t n_slots = 2 * (merges->mask + 1);
        uint32_t *slots = CT_NEW_ARRAY(merges->alloc, uint32_t, n_slots, err);
        if (slots == NULL) {
            return CT_ERR_MEMORY;
        }
        ct_alloc_free(merges->alloc, merges->slots);
        merges->slots = slots;
        merges->mask = n_slots - 1;
        for (int32_t i = 0; i < merges->n; i++) {
            merges_enter(merges, i);
        }
    }
    merges->list[merges->n] = merge;
    merges_enter(merges, merges->n++);
    return CT_OK;
}
