/* SPDX-License-Identifier: Apache-2.0 */
/* Handles live in address ranges of their own and are never reused, so that a destroyed, wrong or invented
 * one is recognised without being read. */
#include "acl_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static const size_t sizes[] = {[HANDLE_CONTEXT] = sizeof(struct context),
                               [HANDLE_STREAM] = sizeof(struct stream),
                               [HANDLE_EVENT] = sizeof(struct event)};
static const size_t limits[] = {
    [HANDLE_CONTEXT] = 1024, [HANDLE_STREAM] = MAX_EVENTS / 16, [HANDLE_EVENT] = MAX_EVENTS};
static struct {
    char *base;
    size_t used;
} ranges[3];

static size_t step_of(enum handle_kind kind)
{
    return (sizes[kind] + 63) / 64 * 64;
}

void *handle_new(enum handle_kind kind)
{
    size_t step = step_of(kind);
    if (ranges[kind].base == NULL) {
        void *base = mmap(NULL, step * limits[kind], PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (base == MAP_FAILED) {
            perror("fake cann: handles");
            abort();
        }
        ranges[kind].base = base;
    }
    if (ranges[kind].used == limits[kind]) {
        (void)fprintf(
            stderr,
            "fake cann: %zu handles of one kind were made in this process; the double keeps them all\n",
            limits[kind]);
        abort();
    }
    return ranges[kind].base + step * ranges[kind].used++;
}

bool handle_is(enum handle_kind kind, const void *handle)
{
    uintptr_t base = (uintptr_t)ranges[kind].base, at = (uintptr_t)handle;
    size_t step = step_of(kind);
    return base != 0 && at >= base && at < base + step * ranges[kind].used && (at - base) % step == 0;
}
