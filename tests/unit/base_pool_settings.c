/* rooms: base */
/* labels: fast */
/* SPDX-License-Identifier: Apache-2.0 */
/* How many threads the pool has and where they are: the environment, the quota, the cores. */
#include "pool_test.h"

#include "base/pool_places.h"
#include "base/pool_settings.h"
#include "base/sys.h"

static const char *const VARIABLES[] = {"OMP_NUM_THREADS", "OMP_THREAD_LIMIT", "OMP_WAIT_POLICY", "OMP_PROC_BIND", "OMP_PLACES",
                                        "LOCAL_WORLD_SIZE", "LOCAL_RANK"};

static void clear_environment(void)
{
    for (size_t i = 0; i < N_OF(VARIABLES); i++) {
        (void)unsetenv(VARIABLES[i]);
    }
}

static void set_environment(const char *const *pairs)
{
    clear_environment();
    for (; *pairs != NULL; pairs += 2) {
        assert_int_equal(setenv(pairs[0], pairs[1], 1), 0);
    }
}

static void settings_of_the_environment(void **state)
{
    (void)state;
    const int cores = cti_usable_cores();
    enum { CORES = -1, SHARED = -2 };
    static const struct {
        const char *env[7];
        int threads;
        const char *wrong; /* part of it */
    } ROWS[] = {
        {{NULL}, CORES, NULL},
        {{"OMP_NUM_THREADS", "", NULL}, CORES, NULL},
        {{"OMP_NUM_THREADS", "3", NULL}, 3, NULL},
        {{"OMP_NUM_THREADS", " 3 , 2,1", NULL}, 3, NULL},
        {{"OMP_NUM_THREADS", "999999", NULL}, CTI_POOL_MAX, NULL},
        {{"OMP_NUM_THREADS", "5", "OMP_THREAD_LIMIT", "2", NULL}, 2, NULL},
        {{"OMP_NUM_THREADS", "2", "OMP_THREAD_LIMIT", "5", NULL}, 2, NULL},
        {{"OMP_THREAD_LIMIT", "1", NULL}, 1, NULL},
        {{"OMP_NUM_THREADS", "4", "LOCAL_WORLD_SIZE", "2", NULL}, 4, NULL},
        {{"LOCAL_WORLD_SIZE", "2", NULL}, SHARED, NULL},
        {{"LOCAL_WORLD_SIZE", "100000", NULL}, 1, NULL},
        {{"OMP_NUM_THREADS", "0", NULL}, CORES, "OMP_NUM_THREADS: expected a number of threads from 1 on, or a list of such, got '0'"},
        {{"OMP_NUM_THREADS", "-1", NULL}, CORES, "got '-1'"},
        {{"OMP_NUM_THREADS", "two", NULL}, CORES, "got 'two'"},
        {{"OMP_NUM_THREADS", "2x", NULL}, CORES, "got '2x'"},
        {{"OMP_NUM_THREADS", ",2", NULL}, CORES, "got ',2'"},
        {{"OMP_NUM_THREADS", "99999999999999999999999999999999999999", NULL}, CORES, "OMP_NUM_THREADS"},
        {{"OMP_THREAD_LIMIT", "many", NULL}, CORES, "OMP_THREAD_LIMIT: expected"},
        {{"OMP_WAIT_POLICY", "Passive", NULL}, CORES, NULL},
        {{"OMP_WAIT_POLICY", "lazy", NULL}, CORES, "OMP_WAIT_POLICY: expected active or passive, got 'lazy'"},
        {{"OMP_PROC_BIND", "FALSE", NULL}, CORES, NULL},
        {{"OMP_PROC_BIND", "spread,close", NULL}, CORES, NULL},
        {{"OMP_PROC_BIND", "truely", NULL}, CORES, "OMP_PROC_BIND: expected false, true, close, spread or primary, got 'truely'"},
        {{"OMP_PLACES", "{0", NULL}, CORES, "OMP_PLACES: expected threads, cores, sockets or a list"},
        {{"OMP_PLACES", "cores", "OMP_PROC_BIND", "false", NULL}, CORES, NULL},
    };
    for (size_t i = 0; i < N_OF(ROWS); i++) {
        set_environment(ROWS[i].env);
        cti_pool_settings s;
        cti_pool_settings_read(&s);
        const int64_t shared = cti_max_i64(1, cores / 2);
        assert_int_equal(s.n_threads, ROWS[i].threads == CORES ? cores : ROWS[i].threads == SHARED ? shared : ROWS[i].threads);
        if (ROWS[i].wrong == NULL) {
            assert_string_equal(s.wrong, "");
        } else {
            assert_non_null(strstr(s.wrong, ROWS[i].wrong));
        }
        cti_pool_settings_deinit(&s);
    }
    cti_pool_settings s[3];
    static const char *const POLICIES[] = {"passive", "", "active"};
    for (int i = 0; i < 3; i++) {
        set_environment((const char *const[]){"OMP_WAIT_POLICY", POLICIES[i], NULL});
        cti_pool_settings_read(&s[i]);
    }
    assert_true(s[0].long_spin_ns == 0 && s[1].long_spin_ns > s[1].spin_ns && s[2].spin_ns > s[1].long_spin_ns);
    clear_environment();
}

/* The first read counts, and the check tells of it: in children, since this process has read its own long ago. */
static void child_wrong(void)
{
    ct_err err = {0};
    char line[96];
    (void)setenv("OMP_NUM_THREADS", "none", 1);
    if (cti_pool_check(&err) != CT_ERR_USAGE || strstr(err.message, "OMP_NUM_THREADS") == NULL) {
        _exit(1);
    }
    (void)setenv("OMP_NUM_THREADS", "7", 1);
    if (cti_pool_threads() != cti_usable_cores() || strstr(cti_pool_describe(line, sizeof line), "usable core") == NULL) {
        _exit(2);
    }
}

static void child_right(void)
{
    char line[96];
    (void)setenv("OMP_NUM_THREADS", "3", 1);
    if (cti_pool_check(NULL) != CT_OK || strcmp(cti_pool_describe(line, sizeof line), "3 threads (OMP_NUM_THREADS)") != 0) {
        _exit(1);
    }
    cti_pool_set_threads(1);
    if (cti_pool_threads() != 1) {
        _exit(2);
    }
}

static void settings_are_read_once(void **state)
{
    (void)state;
    clear_environment();
    in_child(child_wrong);
    in_child(child_right);
}

static void write_text(const char *root, const char *name, const char *text)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", root, name);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    assert_int_equal(cti_make_dirs(path, NULL), CT_OK);
    *slash = '/';
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void quota_of_the_groups(void **state)
{
    (void)state;
    static const struct {
        const char *files[9]; /* name, text */
        int cores;            /* of 16 */
    } ROWS[] = {
        {{NULL}, 16},
        {{"proc/self/cgroup", "0::/\n", "sys/fs/cgroup/cpu.max", "max 100000\n", NULL}, 16},
        {{"proc/self/cgroup", "0::/\n", "sys/fs/cgroup/cpu.max", "150000 100000\n", NULL}, 2},
        {{"proc/self/cgroup", "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max", "max 100000\n", "sys/fs/cgroup/a/cpu.max", "400000 100000\n",
          NULL}, 4},
        {{"proc/self/cgroup", "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max", "300000 100000\n", "sys/fs/cgroup/a/cpu.max",
          "800000 100000\n", NULL}, 3},
        {{"proc/self/cgroup", "0::/not/seen/here\n", "sys/fs/cgroup/cpu.max", "10000 100000\n", NULL}, 1},
        {{"proc/self/cgroup", "0::/\n", "sys/fs/cgroup/cpu.max", "1600001 100000\n", NULL}, 16},
        {{"proc/self/cgroup", "0::/\n", "sys/fs/cgroup/cpu.max", "nonsense\n", NULL}, 16},
        {{"proc/self/cgroup", "5:cpu,cpuacct:/job\n1:name=systemd:/job\n", "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "250000\n",
          "sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n", NULL}, 3},
        {{"proc/self/cgroup", "5:cpuacct,cpu:/job\n", "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n",
          "sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n", NULL}, 16},
    };
    for (size_t i = 0; i < N_OF(ROWS); i++) {
        char root[256];
        test_folder_make(root, sizeof root);
        for (const char *const *f = ROWS[i].files; *f != NULL; f += 2) {
            write_text(root, f[0], f[1]);
        }
        assert_int_equal(cti_quota_cores(root, 16), ROWS[i].cores);
        test_folder_remove(root);
    }
}

static void places_of_the_environment(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int n;                /* -1: wrong */
        unsigned long sets[4]; /* of cores 0 to 7, of which 1 to 6 are usable */
    } ROWS[] = {
        {"threads", 6, {0x02, 0x04, 0x08, 0x10}},
        {"Threads (2)", 2, {0x02, 0x04}},
        {"{1},{2}", 2, {0x02, 0x04}},
        {"{0,1},{7},{2,3}", 2, {0x02, 0x0c}},
        {"{0:2}:4:2", 4, {0x02, 0x0c, 0x30, 0x40}},
        {" {1:3:2} ", 1, {0x2a}},
        {"{6}:3:-2", 3, {0x40, 0x10, 0x04}},
        {"{99999}", -1, {0}},
        {"{1", -1, {0}},
        {"{}", -1, {0}},
        {"{1}:0", -1, {0}},
        {"threads(0)", -1, {0}},
        {"threads 2", -1, {0}},
        {"numa_domains", -1, {0}},
        {"{1},", -1, {0}},
    };
    static cpu_set_t items[CTI_POOL_MAX];
    cpu_set_t usable;
    CPU_ZERO(&usable);
    for (size_t c = 1; c < 7; c++) {
        CPU_SET(c, &usable);
    }
    for (size_t i = 0; i < N_OF(ROWS); i++) {
        cti_places places = {.items = items};
        const bool is_right = cti_places_read(ROWS[i].text + strspn(ROWS[i].text, " "), &usable, &places);
        assert_int_equal(is_right, ROWS[i].n >= 0);
        if (is_right) {
            assert_int_equal(places.n, ROWS[i].n);
        }
        for (int p = 0; is_right && p < places.n && p < 4; p++) {
            unsigned long set = 0;
            for (size_t c = 0; c < 8; c++) {
                set |= (unsigned long)CPU_ISSET(c, &items[p]) << c;
            }
            assert_int_equal(set, ROWS[i].sets[p]);
        }
    }
    cti_places cores = {.items = items}, sockets = {.items = items};
    assert_int_equal(sched_getaffinity(0, sizeof usable, &usable), 0);
    assert_true(cti_places_read("cores", &usable, &cores));
    assert_true(cores.n >= 1 && cores.n <= CPU_COUNT(&usable));
    assert_true(cti_places_read("sockets", &usable, &sockets));
    assert_true(sockets.n >= 1 && sockets.n <= cores.n);
}

/* Where the threads of a bound pool are. */
typedef struct masks {
    cpu_set_t of[CTI_POOL_MAX];
    _Atomic int64_t met;
} masks;

static void read_mask(void *ctx, int64_t first, int64_t end, int thread)
{
    masks *m = ctx;
    (void)sched_getaffinity(0, sizeof m->of[thread], &m->of[thread]);
    meet(&m->met, first, end, thread);
}

static void child_bound(void)
{
    static masks m;
    cpu_set_t usable;
    (void)sched_getaffinity(0, sizeof usable, &usable);
    (void)setenv("OMP_PROC_BIND", "close", 1);
    (void)setenv("OMP_NUM_THREADS", "2", 1);
    cti_pool_tasks(2, 2, read_mask, &m);
    int nth = 0, core = -1; /* the worker has the second usable core, or the only one */
    for (int c = 0; c < CPU_SETSIZE; c++) {
        if (CPU_ISSET((size_t)c, &usable) && nth++ <= 1) {
            core = c;
        }
    }
    if (CPU_COUNT(&m.of[1]) != 1 || !CPU_ISSET((size_t)core, &m.of[1]) || !CPU_EQUAL(&m.of[0], &usable)) {
        _exit(1);
    }
}

static void child_second_rank(void)
{
    cpu_set_t before, after;
    (void)sched_getaffinity(0, sizeof before, &before);
    (void)setenv("OMP_PROC_BIND", "true", 1);
    (void)setenv("LOCAL_WORLD_SIZE", "2", 1);
    (void)setenv("LOCAL_RANK", "1", 1);
    if (cti_pool_threads() != cti_max_i64(1, cti_quota_cores("", CPU_COUNT(&before)) / 2)) {
        _exit(1);
    }
    (void)sched_getaffinity(0, sizeof after, &after);
    const int n = CPU_COUNT(&before);
    for (int c = 0, nth = 0; c < CPU_SETSIZE; c++) {
        if (CPU_ISSET((size_t)c, &before) && (nth++ >= n / 2) != (CPU_ISSET((size_t)c, &after) != 0)) {
            _exit(2);
        }
    }
}

static void threads_are_bound_when_asked(void **state)
{
    (void)state;
    clear_environment();
    in_child(child_bound);
    in_child(child_second_rank);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* in children of a process that has not read its environment yet */
        cmocka_unit_test(settings_are_read_once),
        cmocka_unit_test(threads_are_bound_when_asked),
        cmocka_unit_test(settings_of_the_environment),
        cmocka_unit_test(quota_of_the_groups),
        cmocka_unit_test(places_of_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
