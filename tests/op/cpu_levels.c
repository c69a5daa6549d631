/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: backend/cpu backend/ref backend ops ir mesh base */
/* Every op of the CPU backend, at every instruction-set level that this machine runs, in every dtype, against the reference. */
#include "op/harness.h"
#include "op/levels.h"

#include "backend/cpu/cpu.h"
#include "backend/ref/ref.h"

static void every_op_at_every_level(void **state)
{
    (void)state;
    int n_levels = 0;
    for (int level = 0; level < level_count(); level++) {
        const ct_backend *cpu = level_at(level);
        if (cpu == NULL) {
            print_message("level %s: not run, this CPU has no such instructions\n", level_name(level));
            continue;
        }
        n_levels++;
        for (int32_t op = 0; op < CT_OP_COUNT; op++) {
            const int n = op_check_op(cpu, ct_backend_ref(), op, 17);
            if (cpu->kernels[op].run != NULL && n == 0) {
                fail_msg("level %s: %s has no standard case", level_name(level), ct_op_row(op)->name);
            }
        }
    }
    assert_true(n_levels > 0);
}

/* What the reference refuses is the only thing that may be missing here. */
static void every_op_of_ref_is_there(void **state)
{
    (void)state;
    for (int32_t op = 0; op < CT_OP_COUNT; op++) {
        assert_int_equal(ct_backend_cpu()->kernels[op].run != NULL, ct_backend_ref()->kernels[op].run != NULL);
    }
}

static void the_environment_picks_a_level(void **state)
{
    (void)state;
    ct_err err = {0};
    void *device = NULL;
    for (int level = 0; level < cti_cpu_level_count(); level++) {
        if (cti_cpu_backend_at(level) != NULL) {
            assert_int_equal(setenv("CTITAN_CPU_ISA", cti_cpu_level_name(level), 1), 0);
            assert_ptr_equal(ct_backend_cpu(), cti_cpu_backend_at(level));
            assert_int_equal(ct_backend_cpu()->device_open(ct_alloc_system(), 0, &device, &err), CT_OK);
            ct_backend_cpu()->device_close(&device);
            assert_null(device);
        }
    }
#if defined(__aarch64__)
    assert_string_equal(cti_cpu_level_name(0), "neon");
#else
    assert_string_equal(cti_cpu_level_name(0), "base");
#endif
    assert_int_equal(setenv("CTITAN_CPU_ISA", "sse9", 1), 0);
    assert_int_equal(ct_backend_cpu()->device_open(ct_alloc_system(), 0, &device, &err), CT_ERR_USAGE);
    assert_non_null(strstr(err.message, "sse9"));
    for (int level = 0; level < cti_cpu_level_count(); level++) {
        assert_non_null(strstr(err.message, cti_cpu_level_name(level)));
    }
    assert_int_equal(unsetenv("CTITAN_CPU_ISA"), 0);
}

static void a_device_has_facts_and_memory(void **state)
{
    (void)state;
    const ct_backend *cpu = ct_backend_cpu();
    ct_err err = {0};
    void *device = NULL;
    ct_device_facts facts;
    assert_int_equal(cpu->device_open(ct_alloc_system(), 1, &device, &err), CT_ERR_RANGE);
    assert_int_equal(cpu->device_open(ct_alloc_system(), 0, &device, NULL), CT_OK);
    assert_int_equal(cpu->device_facts(device, &facts, NULL), CT_OK);
    assert_string_equal(facts.type, "CPU");
    assert_true(facts.peak_flops > 0 && facts.memory_bytes > 0);
    const size_t sizes[] = {0, 1, 4096, (2 << 20) - 1, 2 << 20, (5 << 20) + 3, 40 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *p = NULL;
        assert_int_equal(cpu->memory_alloc(device, sizes[i], (void **)&p, NULL), CT_OK);
        assert_int_equal((uintptr_t)p % 64, 0);
        for (size_t k = 0; k < sizes[i]; k++) {
            if (p[k] != 0) {
                fail_msg("byte %zu of %zu is not zero", k, sizes[i]);
            }
        }
        if (sizes[i] > 0) {
            memset(p, 1, sizes[i]);
        }
        cpu->memory_free(device, p, sizes[i]);
    }
    void *p = NULL;
    assert_int_equal(cpu->memory_alloc(device, SIZE_MAX, &p, &err), CT_ERR_MEMORY);
    cpu->device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_op_of_ref_is_there),
        cmocka_unit_test(every_op_at_every_level),
        cmocka_unit_test(the_environment_picks_a_level),
        cmocka_unit_test(a_device_has_facts_and_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
