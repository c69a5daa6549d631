/* SPDX-License-Identifier: Apache-2.0 */
/* Executors: what phase 1 leaves for phase 2. Inside libnnopbase's double only. */
#ifndef FAKE_CANN_NNOP_EXEC_H
#define FAKE_CANN_NNOP_EXEC_H

#include "nnop.h"

struct aclOpExecutor {
    struct fake_object object;
    fake_call *call; /* its own */
    int device;
    bool ran;
    bool repeatable;
    bool writes; /* some output has elements: phase 2 queues a task */
    uint64_t workspace;
};

/* The arguments' own memory. */
void fake_call_clear(fake_call *c);
/* Takes the call over, holds its descriptors, and is the one that this thread may make repeatable. */
struct aclOpExecutor *fake_executor_new(const fake_call *c);
void fake_scraps_free(fake_call *c);
#endif
