/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of the pool: children that have not read their environment yet, and runs that need two threads. */
#ifndef CT_TESTS_POOL_TEST_H
#define CT_TESTS_POOL_TEST_H

#include "base_test.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/num.h"
#include "base/pool.h"

/* A child of a process with threads makes threads of its own here; what the sanitizer refuses otherwise. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "die_after_fork=0";
}

/* Runs `body` in a child, whose exit code says whether it went well. */
static inline void in_child(void (*body)(void))
{
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)alarm(60); /* a child that hangs fails */
        body();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Both threads of a run are inside it at once: needs a second thread, and proves that it takes part. */
static inline void meet(void *ctx, int64_t first, int64_t end, int thread)
{
    _Atomic int64_t *met = ctx;
    (void)first;
    (void)end;
    (void)thread;
    ++*met;
    while (*met < 2) {
        (void)sched_yield();
    }
}

#endif
