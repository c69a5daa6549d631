/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of this process that compute, for kernels of the CPU backend: how many, and where, is the environment's (OMP_NUM_THREADS …). */
#ifndef CTITAN_PARALLEL_H
#define CTITAN_PARALLEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Turns [first, end) of a loop. `thread` is in [0, ct_parallel_threads()), and no other call of the same loop has it at the same time. */
typedef void (*ct_parallel_fn)(void *ctx, int64_t first, int64_t end, int thread);
int ct_parallel_threads(void);
/* Runs fn over [0, n) in calls that begin at multiples of `grain` (> 0; best some 16 to 64 KiB of work) and returns when all are done. Which
 * thread runs what is decided while it runs: a result must not depend on it. fn waits for nothing and calls nothing that does. */
void ct_parallel_for(int64_t n, int64_t grain, ct_parallel_fn fn, void *ctx);

#ifdef __cplusplus
}
#endif
#endif
