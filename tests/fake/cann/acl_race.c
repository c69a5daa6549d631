/* SPDX-License-Identifier: Apache-2.0 */
/* Which accesses are ordered: a vector clock for the host and for each stream, and for each block the
 * accesses that later ones must be ordered after. An access of a step is ordered before a task when the
 * task's clock has that step. */
#include "acl_internal.h"

#include <stdlib.h>
#include <string.h>

void clock_join(struct clock *into, const struct clock *other)
{
    for (int i = 0; i < MAX_SLOTS; i++) {
        if (other->at[i] > into->at[i]) {
            into->at[i] = other->at[i];
        }
    }
}

enum { MAX_BUCKETS = 256, MIN_BUCKET = 4096 };

/* The bucket of an address of the block. */
static size_t bucket_of(const struct block *block, uintptr_t address)
{
    return (address - block->start) / block->bucket_bytes;
}

static void make_buckets(struct block *block)
{
    block->nbuckets = block->size / MIN_BUCKET + 1;
    block->nbuckets = block->nbuckets > MAX_BUCKETS ? MAX_BUCKETS : block->nbuckets;
    block->bucket_bytes = block->size / block->nbuckets + 1;
    block->buckets = calloc(block->nbuckets, sizeof block->buckets[0]);
    if (block->buckets == NULL) {
        abort();
    }
}

/* Forgets accesses that every future task and host call is ordered after. */
static void compact(struct bucket *bucket)
{
    struct clock least = cann.host;
    for (int s = 1; s < MAX_SLOTS; s++) {
        for (int i = 0; cann.slots[s] != NULL && i < MAX_SLOTS; i++) {
            if (cann.slots[s]->clock.at[i] < least.at[i]) {
                least.at[i] = cann.slots[s]->clock.at[i];
            }
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < bucket->n; i++) {
        if (bucket->accesses[i].step > least.at[bucket->accesses[i].slot]) {
            bucket->accesses[kept++] = bucket->accesses[i];
        }
    }
    bucket->n = kept;
    bucket->compact_at = 2 * kept < 128 ? 128 : 2 * kept;
}

static void tell(const struct block *block, const struct access *access, const struct access *old)
{
    bool host = old->slot == 0 || access->slot == 0;
    fake_trap(host ? FAKE_R_UNORDERED_HOST : FAKE_R_UNORDERED,
              "%s (%s, step %llu of %s %d) %s bytes [%zu, %zu) of block %u, and nothing orders it after %s "
              "(step %llu of %s %d), "
              "which %s bytes [%zu, %zu)",
              access->name, access->slot == 0 ? "host" : "stream", (unsigned long long)access->step,
              access->slot == 0 ? "host" : "slot", access->slot, access->write ? "writes" : "reads",
              access->from - block->start, access->to - block->start, block->number, old->name,
              (unsigned long long)old->step, old->slot == 0 ? "host" : "slot", old->slot,
              old->write ? "writes" : "reads", old->from - block->start, old->to - block->start);
}

/* Checks the access against one bucket, [low, high), and adds it there; whether something was told. */
static bool check_bucket(const struct block *block, struct bucket *bucket, uintptr_t low, uintptr_t high,
                         const struct access *access, const struct clock *clock, bool told)
{
    uintptr_t from = access->from > low ? access->from : low, to = access->to < high ? access->to : high;
    size_t kept = 0;
    for (size_t i = 0; i < bucket->n; i++) {
        const struct access *old = &bucket->accesses[i];
        bool overlap = old->from < access->to && access->from < old->to;
        bool ordered = old->slot == access->slot || old->step <= clock->at[old->slot];
        if (overlap && !ordered && (old->write || access->write) && !told) {
            tell(block, access, old);
            told = true;
        }
        /* Who is ordered after the new access is ordered after this one, as far as the bucket goes. */
        uintptr_t old_from = old->from > low ? old->from : low, old_to = old->to < high ? old->to : high;
        bool covered = from <= old_from && old_to <= to && ordered &&
                       (access->write || (!old->write && old->slot == access->slot));
        if (!covered) {
            bucket->accesses[kept++] = *old;
        }
    }
    bucket->n = kept;
    if (kept >= (bucket->compact_at == 0 ? 128 : bucket->compact_at)) {
        compact(bucket);
    }
    if (bucket->n == bucket->room) {
        bucket->room = bucket->room == 0 ? 8 : 2 * bucket->room;
        bucket->accesses = realloc(bucket->accesses, bucket->room * sizeof bucket->accesses[0]);
        if (bucket->accesses == NULL) {
            abort();
        }
    }
    bucket->accesses[bucket->n++] = *access;
    return told;
}

void access_check(struct block *block, const struct access *access, const struct clock *clock)
{
    if (block->buckets == NULL) {
        make_buckets(block);
    }
    bool told = false;
    for (size_t b = bucket_of(block, access->from); b <= bucket_of(block, access->to - 1); b++) {
        uintptr_t low = block->start + b * block->bucket_bytes;
        told = check_bucket(block, &block->buckets[b], low, low + block->bucket_bytes, access, clock, told);
    }
}

void host_access(const char *name, struct block *block, uintptr_t from, size_t size, bool write)
{
    struct access access = {from, from + size, ++cann.host.at[0], name, 0, write};
    access_check(block, &access, &cann.host);
}

const struct access *access_unsynced(const struct block *block, uintptr_t from, uintptr_t to)
{
    for (size_t b = 0; block->buckets != NULL && b < block->nbuckets; b++) {
        for (size_t i = 0; i < block->buckets[b].n; i++) {
            const struct access *access = &block->buckets[b].accesses[i];
            if (access->from < to && from < access->to && access->step > cann.host.at[access->slot]) {
                return access;
            }
        }
    }
    return NULL;
}

void access_forget(struct block *block)
{
    for (size_t b = 0; block->buckets != NULL && b < block->nbuckets; b++) {
        free(block->buckets[b].accesses);
    }
    free(block->buckets);
    block->buckets = NULL;
}
