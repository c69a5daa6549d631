/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of base: cmocka with what it wants before it, an allocator that fails on demand, a folder of
 * one's own. */
#ifndef CT_TESTS_BASE_TEST_H
#define CT_TESTS_BASE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "ctitan/alloc.h"

#define N_OF(array) (sizeof(array) / sizeof *(array))

/* Passes calls on to the system's allocator; the fail_at-th allocation from now (1 is the next) gets NULL. */
typedef struct test_alloc {
    ct_alloc alloc;
    int64_t n_live;  /* blocks given out and not freed */
    int64_t n_calls; /* allocations asked for */
    int64_t fail_at; /* 0: never */
} test_alloc;

static inline void *test_alloc_resize(void *ctx, void *ptr, size_t size_bytes)
{
    test_alloc *t = ctx;
    const ct_alloc *under = ct_alloc_system();
    if (size_bytes == 0) {
        t->n_live -= ptr != NULL;
        return under->resize(under->ctx, ptr, 0);
    }
    t->n_calls++;
    if (t->n_calls == t->fail_at) {
        return NULL;
    }
    void *p = under->resize(under->ctx, ptr, size_bytes);
    t->n_live += ptr == NULL && p != NULL;
    if (ptr == NULL && p != NULL) {
        memset(p, 0xa5, size_bytes); /* nobody may count on zeros */
    }
    return p;
}

static inline void test_alloc_init(test_alloc *t, int64_t fail_at)
{
    *t = (test_alloc){.alloc = {.resize = test_alloc_resize, .ctx = t}, .fail_at = fail_at};
}

/* A fresh empty folder below the build folder; test_folder_remove takes it away with all in it. */
static inline void test_folder_make(char *buf, size_t size)
{
    const int n = snprintf(buf, size, "%s/test-base-XXXXXX", CT_BINARY_DIR);
    assert_true(n > 0 && (size_t)n < size);
    assert_non_null(mkdtemp(buf));
}

static inline void test_folder_remove(const char *path)
{
    ct_err err = {0};
    if (cti_remove_tree(path, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
}

#endif
