/* rooms: base */
/* SPDX-License-Identifier: Apache-2.0 */
/* Statuses and the record of the first failure. */
#include "base_test.h"

#include "base/str.h"
#include "ctitan/status.h"

static void table_is_whole(void **state)
{
    (void)state;
    for (int i = 0; i < CT_STATUS_COUNT; i++) {
        const ct_status s = (ct_status)i;
        assert_true(strlen(ct_status_name(s)) > 0);
        assert_true(strlen(ct_status_sentence(s)) > 0);
        assert_int_equal(ct_status_exit_code(s) == 75, ct_status_is_retryable(s));
        for (int j = 0; j < i; j++) {
            assert_string_not_equal(ct_status_name(s), ct_status_name((ct_status)j));
        }
    }
    static const struct {
        ct_status status;
        const char *name;
        int exit_code;
    } rows[] = {{CT_OK, "OK", 0},
                {CT_ERR_USAGE, "ERR_USAGE", 2},
                {CT_ERR_IO, "ERR_IO", 1},
                {CT_ERR_PEER, "ERR_PEER", 75},
                {CT_END_OF_DATA, "END_OF_DATA", 0}};
    for (size_t i = 0; i < N_OF(rows); i++) {
        assert_string_equal(ct_status_name(rows[i].status), rows[i].name);
        assert_int_equal(ct_status_exit_code(rows[i].status), rows[i].exit_code);
    }
    assert_int_equal(ct_status_exit_code(CT_STATUS_COUNT), 1); /* none of ours: still answered */
    assert_string_equal(ct_status_name((ct_status)-1), ct_status_name(CT_STATUS_COUNT));
}

static void first_failure_wins(void **state)
{
    (void)state;
    ct_err err = {0};
    assert_int_equal(ct_err_set(&err, CT_ERR_IO, "a.c", 7, "first %d", 1), CT_ERR_IO);
    assert_int_equal(ct_err_set(&err, CT_ERR_SHAPE, "b.c", 8, "second"), CT_ERR_SHAPE);
    assert_int_equal(err.status, CT_ERR_IO);
    assert_string_equal(err.file, "a.c");
    assert_int_equal(err.line, 7);
    assert_string_equal(err.message, "first 1");
    assert_int_equal(CT_FAIL(NULL, CT_ERR_DATA, "nobody listens"), CT_ERR_DATA);
}

static ct_status try_it(ct_status with, int *n_after)
{
    CT_TRY(with);
    ++*n_after;
    return CT_OK;
}

static ct_status try_goto(ct_status with, int *n_undone)
{
    ct_status st = CT_OK;
    CT_TRY_GOTO(st, with, out);
    st = CT_END_OF_DATA;
out:
    ++*n_undone;
    return st;
}

static void try_returns(void **state)
{
    (void)state;
    int n = 0;
    assert_int_equal(try_it(CT_ERR_PEER, &n), CT_ERR_PEER);
    assert_int_equal(n, 0);
    assert_int_equal(try_it(CT_OK, &n), CT_OK);
    assert_int_equal(n, 1);
    n = 0;
    assert_int_equal(try_goto(CT_ERR_PEER, &n), CT_ERR_PEER);
    assert_int_equal(try_goto(CT_OK, &n), CT_END_OF_DATA);
    assert_int_equal(n, 2);
}

static void prefix_comes_before(void **state)
{
    (void)state;
    ct_err err = {0};
    ct_err_prefix(&err, "nothing");
    assert_string_equal(err.message, "");
    ct_err_prefix(NULL, "nothing");
    (void)CT_FAIL(&err, CT_ERR_FORMAT, "line 3 is empty");
    ct_err_prefix(&err, "'%s'", "a.txt");
    ct_err_prefix(&err, "rank %d", 3);
    assert_string_equal(err.message, "rank 3: 'a.txt': line 3 is empty");
}

static int is_utf8(const char *text)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + strlen(text);
    while (p < end) {
        const int n = cti_utf8_len(p, end);
        if (n == 0) {
            return 0;
        }
        p += n;
    }
    return 1;
}

/* Every length of lead, so that every place inside a character is the place of the cut. */
static void long_messages_are_cut_at_characters(void **state)
{
    (void)state;
    static const char *const characters[] = {"x", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    for (size_t c = 0; c < N_OF(characters); c++) {
        for (int lead = 0; lead < 5; lead++) {
            cti_str text = {.alloc = ct_alloc_system()};
            cti_str_add_n(&text, "aaaaa", (size_t)lead);
            while (text.len < 2 * CT_ERR_MESSAGE_BYTES) {
                cti_str_add(&text, characters[c]);
            }
            ct_err err = {0};
            (void)CT_FAIL(&err, CT_ERR_DATA, "%s", text.data);
            const size_t n = strlen(err.message);
            assert_true(n < CT_ERR_MESSAGE_BYTES && n + strlen(characters[c]) >= CT_ERR_MESSAGE_BYTES);
            assert_true(is_utf8(err.message));
            assert_memory_equal(err.message, text.data, n);
            for (int i = 0; i < 4; i++) {
                ct_err_prefix(&err, "p%d", i);
                assert_true(is_utf8(err.message));
                assert_true(strlen(err.message) + strlen(characters[c]) >= CT_ERR_MESSAGE_BYTES - 1);
            }
            ct_err_prefix(&err, "%s", text.data);
            assert_true(is_utf8(err.message));
            cti_str_deinit(&text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_whole),
        cmocka_unit_test(first_failure_wins),
        cmocka_unit_test(try_returns),
        cmocka_unit_test(prefix_comes_before),
        cmocka_unit_test(long_messages_are_cut_at_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
