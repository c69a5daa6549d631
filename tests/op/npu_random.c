/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: backend/npu cann backend/ref backend ops ir mesh base */
/* labels: slow */
/* The npu backend's kernels at sizes that nobody chose (op/random.h), over the doubles of CANN's libraries, against the reference; and attention over
 * more segments than CANN takes in one call. */
#include "op/random.h"

#include "backend/npu/npu.h"
#include "npu.h"

static void check(const op_case *c)
{
    op_compare(ct_backend_npu(), ct_backend_ref(), c);
}

static void random_sizes(void **state)
{
    (void)state;
    random_run(4, check);
}

/* 2100 documents of one to three tokens, forward and backward. */
static void many_documents(void **state)
{
    (void)state;
    enum { N = 2100 };
    static int32_t table[N][4];
    int32_t at = 0;
    for (int i = 0; i < N; i++) {
        const int32_t len = 1 + i % 3, row[4] = {at, len, at, len};
        memcpy(table[i], row, sizeof row);
        at += len;
    }
    ct_arena *arena = NULL;
    assert_int_equal(ct_arena_create(ct_alloc_system(), 1 << 20, &arena, NULL), CT_OK);
    const ct_attrs_sdpa attrs = {.scale = 0.5, .causal = true};
    op_case forward = op_case_begin(arena, 5, CT_OP_sdpa, CT_DTYPE_F32, &attrs), backward = op_case_begin(arena, 6, CT_OP_sdpa_grad, CT_DTYPE_F32, &attrs);
    for (int k = 0; k < 3; k++) {
        (void)op_add_f(&forward, 1.0, OP_DIMS(at, k == 0 ? 2 : 1, 4));
    }
    (void)op_add_data(&forward, CT_DTYPE_I32, false, table, OP_DIMS(N, 4));
    (void)op_add_i32(&forward, N);
    check(&forward);
    op_result o;
    op_execute_once(ct_backend_ref(), &forward, OP_NO_ALIAS, &o);
    (void)op_add_f(&backward, 1.0, forward.in[0].ndim, forward.in[0].dims);
    for (int k = 0; k < 3; k++) {
        (void)op_add_data(&backward, CT_DTYPE_F32, true, forward.in[k].data, forward.in[k].ndim, forward.in[k].dims);
    }
    (void)op_add_data(&backward, CT_DTYPE_F32, true, o.out[0].data, o.out[0].ndim, o.out[0].dims);
    (void)op_add_data(&backward, CT_DTYPE_F32, false, o.out[1].data, o.out[1].ndim, o.out[1].dims);
    (void)op_add_data(&backward, CT_DTYPE_I32, false, table, OP_DIMS(N, 4));
    (void)op_add_i32(&backward, N);
    check(&backward);
    ct_arena_destroy(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_sizes), cmocka_unit_test(many_documents)};
    if (!npu_use_doubles()) {
        return 77;
    }
    ct_backend_npu_set_deterministic(true);
    op_has_f32_scalars = true;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    op_close_device();
    return failed;
}
