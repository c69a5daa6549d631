/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment says about the pool; for pool.c and its test. */
#ifndef CTI_BASE_POOL_SETTINGS_H
#define CTI_BASE_POOL_SETTINGS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cti_pool_settings {
    int n_threads;
    int64_t spin_ns;  /* a thread that waits spins this long, then sleeps */
    bool is_bound;    /* to cores */
    bool is_spread;   /* workers stand as far from each other as the share allows */
    cpu_set_t share;  /* this process's cores, where is_bound */
    char why[64];     /* where n_threads comes from */
    char wrong[256];  /* the first value that is not understood: name, value, wanted; "" where there is none */
} cti_pool_settings;

/* Reads the environment; a wrong value counts as not given. */
void cti_pool_settings_read(cti_pool_settings *out);

/* Binds the calling thread as worker `worker` (from 1), or the process's first thread; nothing where not is_bound. */
void cti_pool_bind_worker(const cti_pool_settings *s, int worker);
void cti_pool_bind_process(const cti_pool_settings *s);

#endif
