/* SPDX-License-Identifier: Apache-2.0 */
/* OMP_PLACES as sets of cores; for pool_settings.c and the pool's test. */
#ifndef CTI_BASE_POOL_PLACES_H
#define CTI_BASE_POOL_PLACES_H

#include <sched.h>
#include <stdbool.h>

typedef struct cti_places {
    cpu_set_t *items; /* borrows: room for CTI_POOL_MAX */
    int n;
} cti_places;

/* The places of "threads", "cores" or "sockets", each with "(most)" behind it or not, or of a list such as "{0,1},{2,3}" or
 * "{0:2}:4:2", without cores outside `usable` and without places that are then empty. False where the text is none of these. */
bool cti_places_read(const char *text, const cpu_set_t *usable, cti_places *out);

#endif
