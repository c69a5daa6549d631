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

/* Forgets accesses that every future task and host call is ordered after. */
static void compact(struct block *block)
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
    for (size_t i = 0; i < block->naccesses; i++) {
        if (block->accesses[i].step > least.at[block->accesses[i].slot]) {
            block->accesses[kept++] = block->accesses[i];
        }
    }
    block->naccesses = kept;
    block->compact_at = 2 * kept < 256 ? 256 : 2 * kept;
}

void access_check(struct block *block, const struct access *access, const struct clock *clock)
{
    size_t kept = 0;
    bool told = false;
    for (size_t i = 0; i < block->naccesses; i++) {
        struct access *old = &block->accesses[i];
        bool overlap = old->from < access->to && access->from < old->to;
        bool ordered = old->slot == access->slot || old->step <= clock->at[old->slot];
        if (overlap && !ordered && (old->write || access->write) && !told) {
            bool host = old->slot == 0 || access->slot == 0;
            fake_trap(host ? FAKE_R_UNORDERED_HOST : FAKE_R_UNORDERED,
                      "%s (%s, step %llu of %s %d) %s bytes [%zu, %zu) of block %u, and nothing orders it "
                      "after %s (step %llu of %s %d), which %s "
                      "bytes [%zu, %zu)",
                      access->name, access->slot == 0 ? "host" : "stream", (unsigned long long)access->step,
                      access->slot == 0 ? "host" : "slot", access->slot, access->write ? "writes" : "reads",
                      access->from - block->start, access->to - block->start, block->number, old->name,
                      (unsigned long long)old->step, old->slot == 0 ? "host" : "slot", old->slot,
                      old->write ? "writes" : "reads", old->from - block->start, old->to - block->start);
            told = true;
        }
        /* Who is ordered after the new access is ordered after this one. */
        bool covered = access->from <= old->from && old->to <= access->to && ordered &&
                       (access->write || !old->write) && (access->write || old->slot == access->slot);
        if (!covered) {
            block->accesses[kept++] = *old;
        }
    }
    block->naccesses = kept;
    if (kept >= (block->compact_at == 0 ? 256 : block->compact_at)) {
        compact(block);
    }
    if (block->naccesses == block->room) {
        block->room = block->room == 0 ? 16 : 2 * block->room;
        block->accesses = realloc(block->accesses, block->room * sizeof block->accesses[0]);
        if (block->accesses == NULL) {
            abort();
        }
    }
    block->accesses[block->naccesses++] = *access;
}

void host_access(const char *name, struct block *block, uintptr_t from, size_t size, bool write)
{
    struct access access = {from, from + size, ++cann.host.at[0], name, 0, write};
    access_check(block, &access, &cann.host);
}

const struct access *access_unsynced(const struct block *block)
{
    for (size_t i = 0; i < block->naccesses; i++) {
        if (block->accesses[i].step > cann.host.at[block->accesses[i].slot]) {
            return &block->accesses[i];
        }
    }
    return NULL;
}
