/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: backend/cpu backend/ref backend ops ir mesh base */
/* The CPU backend's kernels at sizes that nobody chose (op/random.h), at every level, against the reference. What a run checks beside the values is
 * in op/harness.h. */
#include "op/levels.h"
#include "op/random.h"

static void check(const op_case *c)
{
    for (int level = 0; level < level_count(); level++) {
        if (level_at(level) != NULL) {
            op_compare(level_at(level), ct_backend_ref(), c);
        }
    }
}

static void random_sizes(void **state)
{
    (void)state;
    random_run(6, check);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_sizes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
