/* rooms: base */
/* labels: fast */
/* SPDX-License-Identifier: Apache-2.0 */
/* The thread pool: every turn once, whoever calls it. */
#include "pool_test.h"

#include <pthread.h>

enum { MANY = 10007 };

typedef struct counted {
    int64_t n, grain;
    int max_threads;
    _Atomic int64_t calls, wrong;
    _Atomic int inside[CTI_POOL_MAX]; /* by thread */
    unsigned char done[MANY];         /* not atomic: a turn taken twice is a race, too */
    int64_t inner;                    /* turns of a run inside of every call */
    _Atomic int64_t inner_done;
} counted;

static void add_inner(void *ctx, int64_t first, int64_t end, int thread)
{
    counted *c = ctx;
    c->wrong += thread != 0; /* runs inside of runs are in line */
    c->inner_done += end - first;
}

static void count(void *ctx, int64_t first, int64_t end, int thread)
{
    counted *c = ctx;
    c->calls++;
    if (first % c->grain != 0 || first >= end || end > c->n || thread < 0 || thread >= c->max_threads) {
        c->wrong++;
        return;
    }
    c->wrong += c->inside[thread]++ != 0;
    for (int64_t i = first; i < end; i++) {
        c->done[i]++;
    }
    if (c->inner > 0) {
        cti_pool_run(c->inner, 1, add_inner, c);
    }
    c->inside[thread]--;
}

static void check_counted(const counted *c)
{
    assert_int_equal(c->wrong, 0);
    for (int64_t i = 0; i < MANY; i++) {
        assert_int_equal(c->done[i], i < c->n);
    }
}

static void every_turn_once(void **state)
{
    (void)state;
    static const int64_t SIZES[] = {0, 1, 2, 3, 7, 64, 1001, MANY}, GRAINS[] = {1, 2, 3, 10, 999, 100000};
    static counted c;
    for (int threads = 1; threads <= 5; threads++) {
        cti_pool_set_threads(threads);
        assert_int_equal(cti_pool_threads(), threads);
        for (size_t s = 0; s < N_OF(SIZES); s++) {
            for (size_t g = 0; g < N_OF(GRAINS); g++) {
                memset(&c, 0, sizeof c);
                c.n = SIZES[s];
                c.grain = GRAINS[g];
                c.max_threads = threads;
                cti_pool_run(c.n, c.grain, count, &c);
                check_counted(&c);
                if (threads == 1 || c.n <= c.grain) { /* in line, in one call */
                    assert_int_equal(c.calls, c.n > 0);
                } else {
                    assert_int_equal(c.calls, cti_ceil_div(c.n, c.grain));
                }
            }
            for (int most = 1; most <= threads; most++) {
                memset(&c, 0, sizeof c);
                c.n = SIZES[s];
                c.grain = 1;
                c.max_threads = most;
                cti_pool_tasks(c.n, most, count, &c);
                check_counted(&c);
            }
        }
    }
}

static void runs_inside_of_runs(void **state)
{
    (void)state;
    static counted c;
    memset(&c, 0, sizeof c);
    c.n = 100;
    c.grain = 3;
    c.max_threads = 3;
    c.inner = 10;
    cti_pool_set_threads(3);
    cti_pool_run(c.n, c.grain, count, &c);
    check_counted(&c);
    assert_int_equal(c.inner_done, c.calls * c.inner);
}

static void workers_take_part(void **state)
{
    (void)state;
    cti_pool_set_threads(2);
    for (int i = 0; i < 20; i++) {
        _Atomic int64_t met = 0;
        cti_pool_tasks(2, 2, meet, &met);
        assert_int_equal(met, 2);
    }
}

static void *host_thread(void *arg)
{
    counted *c = arg;
    for (int i = 0; i < 300; i++) {
        memset(c->done, 0, sizeof c->done);
        cti_pool_run(c->n, c->grain, count, c);
        for (int64_t k = 0; k < c->n; k++) {
            c->wrong += c->done[k] != 1;
        }
    }
    return NULL;
}

static void two_callers(void **state)
{
    (void)state;
    static counted c[2];
    pthread_t threads[2];
    memset(c, 0, sizeof c);
    cti_pool_set_threads(3);
    for (int i = 0; i < 2; i++) {
        c[i].n = 500 + i;
        c[i].grain = 7;
        c[i].max_threads = 3;
        assert_int_equal(pthread_create(&threads[i], NULL, host_thread, &c[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        check_counted(&c[i]);
    }
}

static void add_one(void *ctx, int64_t first, int64_t end, int thread)
{
    int64_t *sums = ctx;
    (void)thread;
    for (int64_t i = first; i < end; i++) {
        sums[8 * i]++; /* the next run reads it: an order between runs */
    }
}

static void many_short_runs(void **state)
{
    (void)state;
    enum { RUNS = 20000 };
    int64_t sums[8 * 4] = {0};
    cti_pool_set_threads(3);
    for (int i = 0; i < RUNS; i++) {
        cti_pool_run(4, 1, add_one, sums);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(sums[8 * i], RUNS);
    }
}

static void child_meets(void)
{
    for (int i = 0; i < 3; i++) {
        _Atomic int64_t met = 0;
        cti_pool_tasks(2, 2, meet, &met);
    }
}

static void grandchild(void)
{
    child_meets();
    const pid_t pid = fork();
    if (pid == 0) {
        child_meets();
        _exit(0);
    }
    int status = 1;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
        _exit(1);
    }
}

static void forked_children_compute(void **state)
{
    (void)state;
#if defined(CT_EMULATED)
    skip(); /* QEMU 7.2's user mode fails an assertion of its own where a child of a process with threads makes a thread */
#endif
    cti_pool_set_threads(2);
    child_meets();
    in_child(child_meets);
    in_child(grandchild);
    child_meets();
}

/* Where workers and callers sleep at once, each meeting needs its wake-ups. */
static void child_passive(void)
{
    (void)setenv("OMP_WAIT_POLICY", "passive", 1);
    cti_pool_set_threads(4);
    int64_t sums[8 * 4] = {0};
    for (int i = 0; i < 300; i++) {
        child_meets();
        cti_pool_run(4, 1, add_one, sums);
    }
    for (int i = 0; i < 4; i++) {
        if (sums[8 * i] != 300) {
            _exit(1);
        }
    }
}

static void sleepers_are_woken(void **state)
{
    (void)state;
    in_child(child_passive);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sleepers_are_woken), /* first: its child reads another environment */
        cmocka_unit_test(every_turn_once),
        cmocka_unit_test(runs_inside_of_runs),
        cmocka_unit_test(workers_take_part),
        cmocka_unit_test(two_callers),
        cmocka_unit_test(many_short_runs),
        cmocka_unit_test(forked_children_compute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
