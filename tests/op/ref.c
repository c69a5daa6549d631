/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: backend/ref */
/* The reference backend against itself in f64 on every standard case: guards, unwritten outputs, aliasing, repeatability, the status
 * of faulty cases, and the rounding of bf16 and f32. What the f64 answers are worth is the subject of the other tests here. */
#include "op/harness.h"

#include "backend/ref/ref.h"

enum { SEED = 20240601 };

#define OP_TEST(name, ...)                                                                                           \
    static void test_##name(void **state)                                                                            \
    {                                                                                                                \
        (void)state;                                                                                                 \
        const int n = op_check_op(ct_backend_ref(), ct_backend_ref(), CT_OP_##name, SEED);                           \
        assert_true((n > 0) == (ct_backend_ref()->kernels[CT_OP_##name].run != NULL));                               \
    }
CT_OP_LIST(OP_TEST)

int main(void)
{
    const struct CMUnitTest tests[] = {
#define OP_ROW(name, ...) {#name, test_##name, NULL, NULL, NULL},
        CT_OP_LIST(OP_ROW)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
