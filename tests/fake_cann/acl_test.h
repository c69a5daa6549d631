/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of the double of libascendcl: a device, streams (also ones that are held up by a gate),
 * memory. */
#ifndef CT_TESTS_FAKE_CANN_ACL_TEST_H
#define CT_TESTS_FAKE_CANN_ACL_TEST_H

#include "fake_cann.h"

#include <stdatomic.h>

enum { SYNC = 1, TIME = 8 };
enum { H2H, H2D, D2H, D2D };
static char host[65536];
static atomic_bool gate_open;

__attribute__((unused)) static void gate(void *unused)
{
    (void)unused;
    while (!atomic_load(&gate_open)) {
        (void)usleep(200);
    }
}

__attribute__((unused)) static void begin(void)
{
    GIVES(0, acl.aclInit(NULL));
    GIVES(0, acl.aclrtSetDevice(0));
}

__attribute__((unused)) static void *stream(void)
{
    void *made = NULL;
    GIVES(0, acl.aclrtCreateStream(&made));
    return made;
}

__attribute__((unused)) static void *held_stream(void)
{
    void *made = stream();
    GIVES(0, acl.aclrtLaunchHostFunc(made, gate, NULL));
    return made;
}

__attribute__((unused)) static void let_go(void *held)
{
    atomic_store(&gate_open, true);
    (void)acl.aclrtSynchronizeStream(held);
}

__attribute__((unused)) static char *device(size_t size)
{
    void *made = NULL;
    GIVES(0, acl.aclrtMalloc(&made, size, 0));
    return made;
}

__attribute__((unused)) static char *pinned(size_t size)
{
    void *made = NULL;
    GIVES(0, acl.aclrtMallocHost(&made, size));
    return made;
}

__attribute__((unused)) static void *event(unsigned flags)
{
    void *made = NULL;
    GIVES(0, acl.aclrtCreateEventExWithFlag(&made, flags));
    return made;
}

#endif
