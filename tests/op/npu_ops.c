/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: backend/npu cann backend/ref backend ops ir mesh base */
/* labels: slow */
/* Every kernel of the npu backend, over the doubles of CANN's libraries (tests/fake/cann), against the reference. */
#include "op/harness.h"

#include "npu.h"

#include "backend/npu/npu.h"
#include "backend/ref/ref.h"

static const char *only; /* an op's name: no other runs */

static void all_ops(void **state)
{
    (void)state;
    int n_cases = 0, n_kernels = 0;
    for (int32_t op = 0; op < CT_OP_COUNT; op++) {
        const ct_kernel *kernel = &ct_backend_npu()->kernels[op];
        if (kernel->run == NULL || (only != NULL && strcmp(only, ct_op_row(op)->name) != 0)) {
            continue;
        }
        const int n = op_check_op(ct_backend_npu(), ct_backend_ref(), op, 7);
        assert_true(n > 0);
        print_message("%s: %d cases\n", ct_op_row(op)->name, n);
        n_cases += n;
        n_kernels++;
    }
    print_message("%d kernels, %d cases\n", n_kernels, n_cases);
}

/* Kernels that take values from the host, where it did not write them. */
static void values_read_back(void **state)
{
    (void)state;
    static const int32_t ops[] = {CT_OP_local_ids,     CT_OP_sdpa,  CT_OP_sdpa_grad, CT_OP_segment_ends, CT_OP_sdpa_tnd,  CT_OP_sdpa_tnd_grad,
                                  CT_OP_adamw, CT_OP_momentum,  CT_OP_descend,      CT_OP_accumulate, CT_OP_kv_append};
    op_hides_host = true;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0] && only == NULL; i++) {
        assert_true(op_check_op(ct_backend_npu(), ct_backend_ref(), ops[i], 11) > 0);
    }
    op_hides_host = false;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_ops), cmocka_unit_test(values_read_back)};
    if (!npu_use_doubles()) {
        return 77;
    }
    only = argc > 1 ? argv[1] : NULL;
    ct_backend_npu_set_deterministic(true);
    op_has_f32_scalars = true;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    op_close_device();
    return failed;
}
