/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: comm/gloo comm/local comm base */
/* Every collective, dtype and odd size on 2, 3 and 4 processes and on groups of them, against plain host loops. */
#include "dist/comm_bodies.h"

static void test_two(void **state)
{
    (void)state;
    expect_ranks(2, collectives);
    expect_ranks(2, statistics);
}

static void test_three(void **state)
{
    (void)state;
    expect_ranks(3, collectives);
    expect_ranks(3, statistics);
}

static void test_four(void **state)
{
    (void)state;
    expect_ranks(4, collectives);
    expect_ranks(4, statistics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_two), cmocka_unit_test(test_three),
                                       cmocka_unit_test(test_four)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
