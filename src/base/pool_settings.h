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
    int64_t spin_ns, long_spin_ns; /* a thread that waits spins so long before it sleeps: long where nobody else wants the core */
    cpu_set_t *places; /* owns: this process's share of them; NULL: threads are not bound */
    int n_places;
    int step_places;   /* worker i has place (i * step_places) % n_places; 0: all have the first */
    char why[64];      /* where n_threads comes from */
    char wrong[256];   /* the first value that is not understood: name, wanted, value; "" where there is none */
} cti_pool_settings;

/* Reads the environment; a wrong value counts as not given. */
void cti_pool_settings_read(cti_pool_settings *out);
void cti_pool_settings_deinit(cti_pool_settings *s);

/* Binds the calling thread to the place of worker `worker` (from 1), or to all places as the process's first thread, from which
 * other threads inherit. Nothing where there are no places. */
void cti_pool_bind_worker(const cti_pool_settings *s, int worker);
void cti_pool_bind_process(const cti_pool_settings *s);

#endif
