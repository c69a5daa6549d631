/* SPDX-License-Identifier: Apache-2.0 */
/* bench_sharing: how fast data moves between the first two cores that this process may use: one thread touches a buffer, then the
 * other one reads or writes it. GB/s, the best of ROUNDS. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/sys.h"

enum { MOST = 16 << 20, ROUNDS = 15 }; /* bytes */

typedef enum deed { NOTHING, WRITE, READ, LEAVE } deed;

static _Alignas(64) _Atomic int wanted; /* a deed for the other thread, which sets NOTHING when it is done */
static uint64_t *buffer;
static size_t n; /* words */

static void do_it(deed d)
{
    if (d == WRITE) {
        for (size_t i = 0; i < n; i++) {
            buffer[i] = i;
        }
        return;
    }
    uint64_t sums[16] = {0}; /* integers: their sums may be made side by side */
    for (size_t i = 0; i < n; i += 16) {
        for (size_t j = 0; j < 16; j++) {
            sums[j] ^= buffer[i + j];
        }
    }
    uint64_t all = 0;
    for (size_t j = 0; j < 16; j++) {
        all ^= sums[j];
    }
    volatile uint64_t sink = all;
    (void)sink;
}

static void bind_to(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)core, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        (void)fprintf(stderr, "bench_sharing: cannot bind a thread to core %d\n", core);
        exit(1);
    }
}

static void *other(void *arg)
{
    bind_to(*(const int *)arg);
    for (;;) {
        const int d = atomic_load(&wanted);
        if (d == LEAVE) {
            return NULL;
        }
        if (d != NOTHING) {
            do_it((deed)d);
            atomic_store(&wanted, NOTHING);
        }
    }
}

/* GB/s of `mine` on a buffer that this thread (first == NOTHING: wrote it) or the other one touched before. */
static double rate(deed first, deed mine)
{
    double best = 0;
    for (int r = 0; r < ROUNDS; r++) {
        do_it(first == READ ? READ : WRITE); /* READ: both have it then */
        if (first != NOTHING) {
            atomic_store(&wanted, first);
            while (atomic_load(&wanted) != NOTHING) {
            }
        }
        const int64_t start = cti_now_ns();
        do_it(mine);
        const double gb = (double)(n * sizeof *buffer) / (double)(cti_now_ns() - start);
        best = gb > best ? gb : best;
    }
    return best;
}

int main(void)
{
    cpu_set_t set;
    int cores[2] = {-1, -1}, found = 0;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        for (int c = 0; c < CPU_SETSIZE && found < 2; c++) {
            if (CPU_ISSET((size_t)c, &set)) {
                cores[found++] = c;
            }
        }
    }
    buffer = aligned_alloc(2 << 20, MOST);
    if (found < 2 || buffer == NULL) {
        (void)fprintf(stderr, "bench_sharing: wants two cores and %d bytes\n", MOST);
        return 1;
    }
    memset(buffer, 0, MOST);
    bind_to(cores[0]);
    pthread_t thread;
    if (pthread_create(&thread, NULL, other, &cores[1]) != 0) {
        (void)fprintf(stderr, "bench_sharing: no second thread\n");
        return 1;
    }
    char name[128];
    cti_cpu_name(name, sizeof name);
    (void)printf("%s, cores %d and %d, compiler %s; GB/s, best of %d\n", name, cores[0], cores[1], __VERSION__, ROUNDS);
    (void)printf("%10s %12s %12s %12s %12s %12s\n", "KiB", "read own", "read other's", "write own", "write other's", "write read");
    for (size_t bytes = 16 << 10; bytes <= MOST; bytes *= 4) {
        n = bytes / sizeof *buffer;
        (void)printf("%10zu %12.1f %12.1f %12.1f %12.1f %12.1f\n", bytes >> 10, rate(NOTHING, READ), rate(WRITE, READ),
                     rate(NOTHING, WRITE), rate(WRITE, WRITE), rate(READ, WRITE));
    }
    atomic_store(&wanted, LEAVE);
    (void)pthread_join(thread, NULL);
    free(buffer);
    return 0;
}
