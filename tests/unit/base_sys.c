/* rooms: base */
/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about the host, held against what the system says otherwise. */
#include "base_test.h"

#include <sched.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"

static void cores(void **state)
{
    (void)state;
    const int n = cti_usable_cores();
    assert_true(n >= 1);
    cpu_set_t set, one;
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        skip();
    }
    assert_true(n <= CPU_COUNT(&set));
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &set)) {
            CPU_SET(i, &one);
            break;
        }
    }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(cti_usable_cores(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof set, &set), 0);
    assert_int_equal(cti_usable_cores(), n);
}

static void memory(void **state)
{
    (void)state;
    const int64_t total = cti_memory_bytes();
    assert_true(total > 0);
    assert_true(total <= (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
    const int64_t before = cti_rss_bytes();
    assert_true(before > 0 && before <= total);
    assert_true(cti_peak_rss_bytes() >= before);
    const int64_t size = (int64_t)64 << 20;
    volatile char *block = ct_alloc_zeroed(ct_alloc_system(), (size_t)size, 1, NULL);
    assert_non_null(block);
    for (int64_t i = 0; i < size; i += 4096) {
        block[i] = 1;
    }
    assert_true(cti_rss_bytes() >= before + size / 2);
    assert_true(cti_peak_rss_bytes() >= before + size / 2);
    ct_alloc_free(ct_alloc_system(), (void *)(uintptr_t)block);
}

static void names(void **state)
{
    (void)state;
    char name[128] = "", small[5] = "";
    cti_cpu_name(name, sizeof name);
    assert_true(strlen(name) > 0 && strchr(name, '\n') == NULL);
    cti_cpu_name(small, sizeof small);
    assert_true(strlen(small) < sizeof small);
    assert_true(cti_starts_with(name, small));
    char *dir = NULL;
    ct_err err = {0};
    assert_int_equal(cti_exe_dir(ct_alloc_system(), &dir, &err), CT_OK);
    assert_int_equal(dir[0], '/');
    char *self = cti_path_join(ct_alloc_system(), dir, "test_unit_base_sys", NULL);
    assert_true(cti_path_is_file(self));
    ct_alloc_free(ct_alloc_system(), self);
    ct_alloc_free(ct_alloc_system(), dir);
    test_alloc t;
    test_alloc_init(&t, 1);
    assert_int_equal(cti_exe_dir(&t.alloc, &dir, &err), CT_ERR_MEMORY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cores), cmocka_unit_test(memory),
                                       cmocka_unit_test(names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
