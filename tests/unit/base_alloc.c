/* rooms: base */
/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator's checks and arenas. */
#include "base_test.h"

static int is_zero(const void *p, size_t n)
{
    const unsigned char *bytes = p;
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != 0) {
            return 0;
        }
    }
    return 1;
}

static void zeroed_is_zero(void **state)
{
    (void)state;
    test_alloc t;
    test_alloc_init(&t, 0);
    const ct_alloc *allocs[] = {ct_alloc_system(), &t.alloc};
    for (size_t i = 0; i < N_OF(allocs); i++) {
        ct_err err = {0};
        unsigned char *p = ct_alloc_zeroed(allocs[i], 1000, 7, &err);
        assert_non_null(p);
        assert_true(is_zero(p, 7000));
        memset(p, 1, 7000);
        unsigned char *q = ct_alloc_resize(allocs[i], p, 9000, 1, &err);
        assert_non_null(q);
        assert_int_equal(q[6999], 1);
        ct_alloc_free(allocs[i], q);
        char *empty = ct_alloc_zeroed(allocs[i], 0, 8, &err);
        assert_non_null(empty);
        empty[0] = 'x';
        ct_alloc_free(allocs[i], empty);
        char *copy = ct_alloc_strdup(allocs[i], "text", &err);
        assert_string_equal(copy, "text");
        ct_alloc_free(allocs[i], copy);
        ct_alloc_free(allocs[i], NULL);
        assert_int_equal(err.status, CT_OK);
    }
    assert_int_equal(t.n_live, 0);
}

static void overflow_is_an_error(void **state)
{
    (void)state;
    static const size_t pairs[][2] = {
        {SIZE_MAX, 2}, {SIZE_MAX / 2 + 1, 2}, {(size_t)1 << 32, (size_t)1 << 32}, {SIZE_MAX, 1}};
    for (size_t i = 0; i < N_OF(pairs); i++) {
        ct_err err = {0};
        volatile size_t count = pairs[i][0];
        assert_null(ct_alloc_zeroed(ct_alloc_system(), count, pairs[i][1], &err));
        assert_int_equal(err.status, CT_ERR_MEMORY);
        err = (ct_err){0};
        assert_null(ct_alloc_resize(ct_alloc_system(), NULL, count, pairs[i][1], &err));
        assert_int_equal(err.status, CT_ERR_MEMORY);
    }
}

static void failed_resize_keeps_the_block(void **state)
{
    (void)state;
    test_alloc t;
    test_alloc_init(&t, 2);
    ct_err err = {0};
    char *p = ct_alloc_strdup(&t.alloc, "kept", &err);
    assert_non_null(p);
    assert_null(ct_alloc_resize(&t.alloc, p, 100, 1, &err));
    assert_int_equal(err.status, CT_ERR_MEMORY);
    assert_string_equal(p, "kept");
    ct_alloc_free(&t.alloc, p);
    assert_int_equal(t.n_live, 0);
}

static void arena_aligns_and_zeroes(void **state)
{
    (void)state;
    static const size_t blocks[] = {0, 1, 64, 100, 1 << 16};
    for (size_t b = 0; b < N_OF(blocks); b++) {
        test_alloc t;
        test_alloc_init(&t, 0);
        ct_err err = {0};
        ct_arena *arena;
        assert_int_equal(ct_arena_create(&t.alloc, blocks[b], &arena, &err), CT_OK);
        for (int round = 0; round < 3; round++) {
            unsigned char *last = NULL;
            size_t used = 0;
            for (size_t size = 0; size < 300; size++) {
                unsigned char *p = ct_arena_alloc(arena, size, &err);
                assert_non_null(p);
                assert_int_equal((uintptr_t)p % 16, 0);
                assert_ptr_not_equal(p, last);
                assert_true(is_zero(p, size));
                memset(p, 0xff, size);
                if (last != NULL && size > 1) {
                    assert_int_equal(last[size - 2], 0xff); /* the one before still has its bytes */
                }
                last = p;
                used += size;
                assert_true(ct_arena_used_bytes(arena) >= used);
            }
            assert_true(ct_arena_used_bytes(arena) <= used + 300 * 16);
            const int64_t n_calls = t.n_calls;
            ct_arena_reset(arena);
            assert_int_equal(ct_arena_used_bytes(arena), 0);
            /* The second time round the blocks are there already. */
            if (round > 0) {
                assert_int_equal(t.n_calls, n_calls);
            }
        }
        ct_arena_destroy(&arena);
        assert_null(arena);
        assert_int_equal(t.n_live, 0);
    }
    ct_arena_destroy(NULL);
    ct_arena *none = NULL;
    ct_arena_destroy(&none);
}

static void arena_reset_asks_for_nothing(void **state)
{
    (void)state;
    test_alloc t;
    test_alloc_init(&t, 0);
    ct_err err = {0};
    ct_arena *arena;
    assert_int_equal(ct_arena_create(&t.alloc, 128, &arena, &err), CT_OK);
    int64_t after_first = 0;
    for (int round = 0; round < 5; round++) {
        static const size_t sizes[] = {100, 20, 1000, 5, 128, 400, 16};
        for (size_t i = 0; i < N_OF(sizes); i++) {
            assert_non_null(ct_arena_alloc(arena, sizes[i], &err));
        }
        if (round == 0) {
            after_first = t.n_calls;
        }
        assert_int_equal(t.n_calls, after_first);
        ct_arena_reset(arena);
    }
    ct_arena_destroy(&arena);
    assert_int_equal(t.n_live, 0);
}

static void arena_texts(void **state)
{
    (void)state;
    ct_err err = {0};
    ct_arena *arena;
    assert_int_equal(ct_arena_create(ct_alloc_system(), 32, &arena, &err), CT_OK);
    assert_string_equal(ct_arena_strdup(arena, "one", &err), "one");
    assert_string_equal(ct_arena_printf(arena, &err, "%s-%05d", "two", 42), "two-00042");
    const char *wide = ct_arena_printf(arena, &err, "%500d", 1);
    assert_int_equal(strlen(wide), 500);
    assert_null(ct_arena_alloc(arena, SIZE_MAX - 5, &err));
    assert_int_equal(err.status, CT_ERR_MEMORY);
    ct_arena_destroy(&arena);
}

static void arena_survives_failures(void **state)
{
    (void)state;
    for (int64_t fail_at = 1; fail_at <= 4; fail_at++) {
        test_alloc t;
        test_alloc_init(&t, fail_at);
        ct_err err = {0};
        ct_arena *arena = NULL;
        const ct_status st = ct_arena_create(&t.alloc, 64, &arena, &err);
        assert_int_equal(st == CT_OK, fail_at != 1);
        for (int i = 0; arena != NULL && i < 3; i++) {
            const char *p = ct_arena_alloc(arena, 64, &err);
            assert_int_equal(p == NULL, t.n_calls == fail_at);
        }
        assert_int_equal(err.status, CT_ERR_MEMORY);
        if (arena != NULL) {
            assert_non_null(ct_arena_alloc(arena, 1, NULL)); /* and goes on */
        }
        ct_arena_destroy(&arena);
        assert_int_equal(t.n_live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeroed_is_zero),
        cmocka_unit_test(overflow_is_an_error),
        cmocka_unit_test(failed_resize_keeps_the_block),
        cmocka_unit_test(arena_aligns_and_zeroes),
        cmocka_unit_test(arena_reset_asks_for_nothing),
        cmocka_unit_test(arena_texts),
        cmocka_unit_test(arena_survives_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
