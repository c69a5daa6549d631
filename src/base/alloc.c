/* SPDX-License-Identifier: Apache-2.0 */
/* The process's allocator and the checked calls through any allocator. */
#include "ctitan/alloc.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void *system_resize(void *ctx, void *ptr, size_t size_bytes)
{
    (void)ctx;
    if (size_bytes == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, size_bytes);
}

const ct_alloc *ct_alloc_system(void)
{
    static const ct_alloc system_alloc = {.resize = system_resize, .ctx = NULL};
    return &system_alloc;
}

/* count * size_bytes, at least 1. False: does not fit, err is set. */
static bool checked_bytes(size_t count, size_t size_bytes, size_t *out_bytes, ct_err *err)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size_bytes, &bytes) || bytes > PTRDIFF_MAX) {
        (void)CT_FAIL(err, CT_ERR_MEMORY, "%zu objects of %zu bytes do not fit in the address space", count,
                      size_bytes);
        return false;
    }
    *out_bytes = bytes == 0 ? 1 : bytes;
    return true;
}

void *ct_alloc_zeroed(const ct_alloc *alloc, size_t count, size_t size_bytes, ct_err *err)
{
    size_t bytes;
    if (!checked_bytes(count, size_bytes, &bytes, err)) {
        return NULL;
    }
    /* calloc knows fresh pages to be zero and does not touch them. */
    const bool fresh = alloc->resize == system_resize;
    void *ptr = fresh ? calloc(1, bytes) : alloc->resize(alloc->ctx, NULL, bytes);
    if (ptr == NULL) {
        (void)CT_FAIL(err, CT_ERR_MEMORY, "no memory for %zu bytes", bytes);
        return NULL;
    }
    return fresh ? ptr : memset(ptr, 0, bytes);
}

void *ct_alloc_resize(const ct_alloc *alloc, void *ptr, size_t count, size_t size_bytes, ct_err *err)
{
    size_t bytes;
    if (!checked_bytes(count, size_bytes, &bytes, err)) {
        return NULL;
    }
    void *grown = alloc->resize(alloc->ctx, ptr, bytes);
    if (grown == NULL) {
        (void)CT_FAIL(err, CT_ERR_MEMORY, "no memory for %zu bytes", bytes);
    }
    return grown;
}

char *ct_alloc_strdup(const ct_alloc *alloc, const char *text, ct_err *err)
{
    const size_t bytes = strlen(text) + 1;
    char *copy = ct_alloc_resize(alloc, NULL, bytes, 1, err);
    if (copy != NULL) {
        memcpy(copy, text, bytes);
    }
    return copy;
}

void ct_alloc_free(const ct_alloc *alloc, void *ptr)
{
    if (ptr != NULL) {
        (void)alloc->resize(alloc->ctx, ptr, 0);
    }
}
