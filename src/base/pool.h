/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of this process that compute: one pool, for the kernels of the CPU backend and for whatever else shares a loop.
 *
 * How many: OMP_NUM_THREADS (the first number of its list), at most OMP_THREAD_LIMIT; without it the usable cores
 * (cti_usable_cores: affinity mask and cgroup quota) divided by LOCAL_WORLD_SIZE, the ranks that share the host; at least 1.
 * Where: as the system likes. With OMP_PROC_BIND (true, close, spread) or OMP_PLACES each worker is bound to one usable core and
 * the process to its share of them, which begins behind those of the ranks with a lower LOCAL_RANK.
 * Waiting: a thread spins for 50 us, or 1 ms where nothing took its core away of late, then sleeps; OMP_WAIT_POLICY=active: spins for
 * 100 ms, passive: not at all.
 * This is one of the places that read the environment: once, at the first call of cti_pool_threads().
 *
 * Which thread runs what is decided while it runs: a result must not depend on it. A function called here must not fork without
 * exec. Workers never keep a process from ending, take no signals, and a forked child makes its own. */
#ifndef CTI_BASE_POOL_H
#define CTI_BASE_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "ctitan/status.h"

/* Turns [first, end) of a loop. `thread` is in [0, cti_pool_threads()), and no other call of the same run has it at the same
 * time: it may pick a buffer of that run. */
typedef void (*cti_pool_fn)(void *ctx, int64_t first, int64_t end, int thread);

/* Threads of a run, the caller's included. Fixed at the first call, but for cti_pool_set_threads(). */
int cti_pool_threads(void);

/* ERR_USAGE names the first variable of the above whose value is not understood; its default is used then. */
CT_MUST_CHECK ct_status cti_pool_check(ct_err *err);

/* One line for a log: "2 threads (2 usable cores)", "3 threads (OMP_NUM_THREADS)". Returns buf. */
const char *cti_pool_describe(char *buf, size_t size);

/* For tests and benchmarks: from now on n threads (1 to CTI_POOL_MAX), whatever the environment says. Not while a run is on. */
void cti_pool_set_threads(int n);
enum { CTI_POOL_MAX = 1024 };

/* Runs fn over [0, n) in calls that begin at multiples of `grain` (> 0) and returns when all are done; what they wrote is seen by
 * the caller. Each thread has a part of its own, the same one for the same n and grain, so that loops over the same rows find
 * them in the same core's cache; one that is done takes from the others. A grain is best some 16 to 64 KiB of work.
 * In the caller alone, as one call with thread 0: where n <= grain, with one thread, and in a run within a run or beside one of
 * another thread (the pool serves one at a time, nobody waits for it). */
void cti_pool_run(int64_t n, int64_t grain, cti_pool_fn fn, void *ctx);

/* As cti_pool_run() for tasks of their own: turns are taken one by one, in order, by at most max_threads threads (`thread` is
 * below it). Put the longest first. */
void cti_pool_tasks(int64_t n, int max_threads, cti_pool_fn fn, void *ctx);

#endif
