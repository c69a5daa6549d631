/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas: a list of blocks, filled in order, freed at once. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ctitan/alloc.h"

enum { ARENA_ALIGN = 16, ARENA_BLOCK_BYTES = 64 * 1024 };

typedef struct arena_block {
    struct arena_block *next; /* owns */
    size_t size, used;        /* bytes of `bytes` */
    _Alignas(ARENA_ALIGN) unsigned char bytes[];
} arena_block;

struct ct_arena {
    const ct_alloc *alloc; /* borrows until ct_arena_destroy */
    size_t block_bytes;
    arena_block *first;   /* owns */
    arena_block *current; /* the block being filled; those after it are empty */
    size_t used;
};

ct_status ct_arena_create(const ct_alloc *alloc, size_t block_bytes, ct_arena **out_arena, ct_err *err)
{
    ct_arena *arena = CT_NEW(alloc, ct_arena, err);
    if (arena == NULL) {
        return CT_ERR_MEMORY;
    }
    arena->alloc = alloc;
    arena->block_bytes = block_bytes == 0 ? ARENA_BLOCK_BYTES : block_bytes;
    *out_arena = arena;
    return CT_OK;
}

void ct_arena_destroy(ct_arena **arena)
{
    if (arena == NULL || *arena == NULL) {
        return;
    }
    const ct_alloc *alloc = (*arena)->alloc;
    arena_block *block = (*arena)->first;
    while (block != NULL) {
        arena_block *next = block->next;
        ct_alloc_free(alloc, block);
        block = next;
    }
    ct_alloc_free(alloc, *arena);
    *arena = NULL;
}

void ct_arena_reset(ct_arena *arena)
{
    for (arena_block *block = arena->first; block != NULL; block = block->next) {
        block->used = 0;
    }
    arena->current = arena->first;
    arena->used = 0;
}

/* The first block from the current one on with room for `bytes`; a new one where there is none. */
static arena_block *block_for(ct_arena *arena, size_t bytes, ct_err *err)
{
    arena_block *last = NULL;
    for (arena_block *block = arena->current; block != NULL; block = block->next) {
        if (block->size - block->used >= bytes) {
            return block;
        }
        last = block;
    }
    const size_t size = bytes > arena->block_bytes ? bytes : arena->block_bytes;
    arena_block *block = NULL;
    if (size <= PTRDIFF_MAX - sizeof *block) {
        block = ct_alloc_resize(arena->alloc, NULL, sizeof *block + size, 1, err);
    } else {
        (void)CT_FAIL(err, CT_ERR_MEMORY, "no memory for %zu bytes", size);
    }
    if (block == NULL) {
        return NULL;
    }
    *block = (arena_block){.size = size};
    if (last == NULL) {
        arena->first = block;
    } else {
        last->next = block;
    }
    return block;
}

void *ct_arena_alloc(ct_arena *arena, size_t size_bytes, ct_err *err)
{
    if (size_bytes > PTRDIFF_MAX - ARENA_ALIGN) {
        (void)CT_FAIL(err, CT_ERR_MEMORY, "no memory for %zu bytes", size_bytes);
        return NULL;
    }
    const size_t wanted = size_bytes == 0 ? 1 : size_bytes;
    const size_t bytes = (wanted + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    arena_block *block = block_for(arena, bytes, err);
    if (block == NULL) {
        return NULL;
    }
    arena->current = block;
    void *ptr = block->bytes + block->used;
    block->used += bytes;
    arena->used += bytes;
    return memset(ptr, 0, bytes);
}

char *ct_arena_strdup(ct_arena *arena, const char *text, ct_err *err)
{
    const size_t bytes = strlen(text) + 1;
    char *copy = ct_arena_alloc(arena, bytes, err);
    if (copy != NULL) {
        memcpy(copy, text, bytes);
    }
    return copy;
}

char *ct_arena_printf(ct_arena *arena, ct_err *err, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    char *text = NULL;
    const int n = vsnprintf(NULL, 0, fmt, args);
    if (n < 0) {
        (void)CT_FAIL(err, CT_ERR_FORMAT, "a text cannot be formatted");
    } else {
        text = ct_arena_alloc(arena, (size_t)n + 1, err);
    }
    if (text != NULL) {
        (void)vsnprintf(text, (size_t)n + 1, fmt, again);
    }
    va_end(again);
    va_end(args);
    return text;
}

size_t ct_arena_used_bytes(const ct_arena *arena)
{
    return arena->used;
}
