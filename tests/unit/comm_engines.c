/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing an engine; this file links neither Gloo nor MPI. What is said where their modules are missing: cli.library. */
/* rooms: comm/local comm base */
/* labels: fast */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "comm/engines.h"

static void one_rank_is_local(void **state)
{
    (void)state;
    const char *const names[] = {NULL, "auto", "local", "mpi"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const ct_comm_engine *engine = NULL;
        assert_int_equal(cti_comm_engine_pick(names[i], 1, &engine, NULL), CT_OK);
        assert_ptr_equal(engine, ct_comm_local_engine());
    }
}

static void unknown_names_are_refused(void **state)
{
    (void)state;
    const ct_comm_engine *engine = NULL;
    ct_err err = {0};
    assert_int_equal(cti_comm_engine_pick("nccl", 1, &engine, &err), CT_ERR_USAGE);
    assert_non_null(strstr(err.message, "nccl"));
}

static void modules_that_are_not_there_are_refused(void **state)
{
    (void)state;
    const ct_comm_engine *engine = NULL;
    ct_err err = {0};
    assert_int_equal(cti_comm_module_load("nowhere", "build it first", &engine, &err), CT_ERR_UNSUPPORTED);
    assert_null(engine);
    assert_non_null(strstr(err.message, "comm engine 'nowhere' cannot be loaded: "));
    assert_non_null(strstr(err.message, "/lib/ctitan/engines/nowhere.so: "));
    assert_non_null(strstr(err.message, "(build it first)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(modules_that_are_not_there_are_refused),
                                       cmocka_unit_test(one_rank_is_local),
                                       cmocka_unit_test(unknown_names_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
