/* SPDX-License-Identifier: Apache-2.0 */
/* The word cache of one encoder: ids of words seen lately. Its size is fixed, so a hostile text can only make it useless. */
#include "tokenizer/tokenizer_internal.h"

ct_status cti_cache_create(const ct_alloc *alloc, cti_cache **out_cache, ct_err *err)
{
    cti_cache *cache = CT_NEW(alloc, cti_cache, err);
    if (cache == NULL) {
        return CT_ERR_MEMORY;
    }
    cache->alloc = alloc;
    *out_cache = cache;
    return CT_OK;
}

void cti_cache_destroy(cti_cache **cache)
{
    if (*cache != NULL) {
        ct_alloc_free((*cache)->alloc, *cache);
        *cache = NULL;
    }
}

void cti_cache_put(cti_cache *cache, const uint64_t key[2], const int32_t *ids, int64_t n)
{
    if (n < 1 || n > CTI_CACHE_IDS) {
        return;
    }
    cti_cache_slot *slot = cache->slots[cti_cache_set(key)];
    slot[1] = slot[0];
    slot[0] = (cti_cache_slot){.key = {key[0], key[1]}, .ids = {-1, -1, -1, -1}};
    memcpy(slot[0].ids, ids, (size_t)n * sizeof *ids);
}

static cti_cache_long *long_slot(cti_cache *cache, const char *word, size_t size)
{
    return &cache->longs[cti_hash64(word, size, 0) % CTI_CACHE_LONGS];
}

const cti_cache_long *cti_cache_find_long(cti_cache *cache, const char *word, size_t size)
{
    const cti_cache_long *slot = long_slot(cache, word, size);
    return slot->size == size && memcmp(slot->key, word, size) == 0 ? slot : NULL;
}

void cti_cache_put_long(cti_cache *cache, const char *word, size_t size, const int32_t *ids, int64_t n)
{
    if (n < 1 || n > CTI_CACHE_LONG_IDS) {
        return;
    }
    cti_cache_long *slot = long_slot(cache, word, size);
    slot->size = (uint8_t)size;
    slot->n_ids = (uint8_t)n;
    memcpy(slot->key, word, size);
    memcpy(slot->ids, ids, (size_t)n * sizeof *ids);
}
