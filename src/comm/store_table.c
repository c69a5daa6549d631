/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the store: chained hashing over a fixed number of buckets (runs hold thousands of keys, not millions). */
#include <inttypes.h>

#include "base/hash.h"
#include "base/num.h"
#include "base/str.h"
#include "comm/store.h"

void cti_store_table_init(cti_store_table *table, const ct_alloc *alloc)
{
    *table = (cti_store_table){.alloc = alloc};
}

static void free_entry(const ct_alloc *alloc, cti_store_entry *entry)
{
    ct_alloc_free(alloc, entry->key);
    ct_alloc_free(alloc, entry->value);
    ct_alloc_free(alloc, entry);
}

void cti_store_table_deinit(cti_store_table *table)
{
    for (size_t i = 0; table->alloc != NULL && i < CTI_STORE_BUCKETS; i++) {
        while (table->buckets[i] != NULL) {
            cti_store_entry *entry = table->buckets[i];
            table->buckets[i] = entry->next;
            free_entry(table->alloc, entry);
        }
    }
    table->total_bytes = 0;
}

static size_t bucket_of(const char *key)
{
    return (size_t)(cti_hash64(key, strlen(key), 0) % CTI_STORE_BUCKETS);
}

static cti_store_entry *find(const cti_store_table *table, const char *key)
{
    for (cti_store_entry *e = table->buckets[bucket_of(key)]; e != NULL; e = e->next) {
        if (strcmp(e->key, key) == 0) {
            return e;
        }
    }
    return NULL;
}

const cti_store_entry *cti_store_table_find(const cti_store_table *table, const char *key)
{
    return find(table, key);
}

/* The entry of key, made (as a counter of 0) where it is absent. */
static ct_status find_or_make(cti_store_table *table, const char *key, size_t extra_bytes, cti_store_entry **out,
                              ct_err *err)
{
    cti_store_entry *entry = find(table, key);
    size_t more = extra_bytes + (entry == NULL ? strlen(key) + sizeof *entry : 0);
    if (more > CTI_STORE_MAX_TOTAL_BYTES - table->total_bytes) {
        return CT_FAIL(err, CT_ERR_RANGE, "the store is full: it holds %zu bytes, at most %u are kept",
                       table->total_bytes, CTI_STORE_MAX_TOTAL_BYTES);
    }
    if (entry == NULL) {
        entry = CT_NEW(table->alloc, cti_store_entry, err);
        if (entry == NULL) {
            return CT_ERR_MEMORY;
        }
        entry->key = ct_alloc_strdup(table->alloc, key, err);
        if (entry->key == NULL) {
            ct_alloc_free(table->alloc, entry);
            return CT_ERR_MEMORY;
        }
        entry->is_counter = true;
        cti_store_entry **bucket = &table->buckets[bucket_of(key)];
        entry->next = *bucket;
        *bucket = entry;
        table->total_bytes += strlen(key) + sizeof *entry;
    }
    *out = entry;
    return CT_OK;
}

ct_status cti_store_table_set(cti_store_table *table, const char *key, const void *value, size_t size_bytes,
                              ct_err *err)
{
    char *copy = ct_alloc_zeroed(table->alloc, size_bytes + 1, 1, err);
    if (copy == NULL) {
        return CT_ERR_MEMORY;
    }
    if (size_bytes > 0) {
        memcpy(copy, value, size_bytes);
    }
    cti_store_entry *entry;
    ct_status st = find_or_make(table, key, size_bytes, &entry, err);
    if (st != CT_OK) {
        ct_alloc_free(table->alloc, copy);
        return st;
    }
    table->total_bytes = table->total_bytes - entry->size_bytes + size_bytes;
    ct_alloc_free(table->alloc, entry->value);
    entry->value = copy;
    entry->size_bytes = size_bytes;
    entry->is_counter = false;
    return CT_OK;
}

ct_status cti_store_table_add(cti_store_table *table, const char *key, int64_t amount, int64_t *out_value, ct_err *err)
{
    cti_store_entry *entry;
    CT_TRY(find_or_make(table, key, 0, &entry, err));
    if (!entry->is_counter) {
        return CT_FAIL(err, CT_ERR_STATE, "store key '%s' holds a value of %zu bytes, not a counter", key,
                       entry->size_bytes);
    }
    if (!cti_add_i64(entry->counter, amount, &entry->counter)) {
        return CT_FAIL(err, CT_ERR_RANGE, "store counter '%s' is %" PRId64 ": adding %" PRId64 " overflows", key,
                       entry->counter, amount);
    }
    *out_value = entry->counter;
    return CT_OK;
}

const void *cti_store_entry_bytes(const cti_store_entry *entry, char buf[32], size_t *out_size)
{
    if (entry->is_counter) {
        *out_size = (size_t)snprintf(buf, 32, "%" PRId64, entry->counter);
        return buf;
    }
    *out_size = entry->size_bytes;
    return entry->value;
}
