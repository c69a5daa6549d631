/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory: the allocator that is handed in at the top, and arenas cut from it.
 *
 *     ct_arena *arena;
 *     CT_TRY(ct_arena_create(alloc, 0, &arena, err));
 *     int64_t *dims = ct_arena_alloc(arena, 4 * sizeof *dims, err);   // NULL: err is set
 *     ct_arena_destroy(&arena);                                       // everything goes at once
 */
#ifndef CTITAN_ALLOC_H
#define CTITAN_ALLOC_H

#include <stddef.h>
#include <stdint.h>

#include "ctitan/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An allocator. resize(ctx, NULL, n) allocates; resize(ctx, p, 0) frees and returns NULL; else reallocates.
 * Memory is aligned for any C object. Returns NULL where memory ran out. Threads: any. */
typedef struct ct_alloc {
    void *(*resize)(void *ctx, void *ptr, size_t size_bytes);
    void *ctx;
} ct_alloc;

/* The process's own allocator (libc). Static storage, never freed. */
const ct_alloc *ct_alloc_system(void);

/* Zeroed memory for count objects of size_bytes each; NULL and err (ERR_MEMORY) where it is not to be had or
 * the product overflows. count or size_bytes of 0 gives a valid, freeable, 1-byte block. */
void *ct_alloc_zeroed(const ct_alloc *alloc, size_t count, size_t size_bytes, ct_err *err);
/* Grows or shrinks to count*size_bytes; new bytes are NOT zeroed. On failure NULL and the old block stays. */
void *ct_alloc_resize(const ct_alloc *alloc, void *ptr, size_t count, size_t size_bytes, ct_err *err);
char *ct_alloc_strdup(const ct_alloc *alloc, const char *text, ct_err *err);
void ct_alloc_free(const ct_alloc *alloc, void *ptr); /* NULL is fine */

#define CT_NEW(alloc, type, err) ((type *)ct_alloc_zeroed((alloc), 1, sizeof(type), (err)))
#define CT_NEW_ARRAY(alloc, type, n, err) ((type *)ct_alloc_zeroed((alloc), (size_t)(n), sizeof(type), (err)))

typedef struct ct_arena ct_arena;

/* block_bytes: size of the blocks taken from alloc; 0 means 64 KiB. Not thread-safe. */
CT_MUST_CHECK ct_status ct_arena_create(const ct_alloc *alloc, size_t block_bytes, ct_arena **out_arena,
                                        ct_err *err);
void ct_arena_destroy(ct_arena **arena);
void ct_arena_reset(ct_arena *arena); /* forgets everything, keeps the blocks */
/* Zeroed, 16-byte aligned; NULL and err where memory ran out. */
void *ct_arena_alloc(ct_arena *arena, size_t size_bytes, ct_err *err);
char *ct_arena_strdup(ct_arena *arena, const char *text, ct_err *err);
char *ct_arena_printf(ct_arena *arena, ct_err *err, const char *fmt, ...) CT_PRINTF(3, 4);
size_t ct_arena_used_bytes(const ct_arena *arena);

#ifdef __cplusplus
}
#endif
#endif
