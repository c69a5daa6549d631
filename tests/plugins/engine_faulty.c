/* SPDX-License-Identifier: Apache-2.0 */
/* An engine module that carries messages by Gloo and damages some, as the environment says; it goes by the name mpi.
 *   TEST_FAULT=flip:FROM:TO   one bit of every message of 512 bytes and more from world rank FROM to TO
 *   TEST_FAULT=swap:AT        at world rank AT, equally long messages of members 1 and 2 change places, so that sums are of another order
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/module.h"

const ct_comm_engine *ct_comm_mpi_engine(void);

static const ct_comm_engine *gloo;

static const ct_comm_message *from_member(const ct_comm_message *messages, int n, int member)
{
    for (int i = 0; i < n; i++) {
        if (!messages[i].is_send && messages[i].peer == member) {
            return &messages[i];
        }
    }
    return NULL;
}

static void damage(const ct_comm_group_desc *desc, const ct_comm_message *messages, int n)
{
    const char *fault = getenv("TEST_FAULT");
    const int me = desc->world_ranks[desc->rank];
    int a = -1, b = -1;
    if (fault != NULL && sscanf(fault, "flip:%d:%d", &a, &b) == 2 && me == b) {
        for (int i = 0; i < n; i++) {
            if (!messages[i].is_send && desc->world_ranks[messages[i].peer] == a && messages[i].size_bytes >= 512) {
                ((unsigned char *)messages[i].data)[messages[i].size_bytes / 2] ^= 1;
            }
        }
    }
    if (fault != NULL && sscanf(fault, "swap:%d", &a) == 1 && me == a) {
        const ct_comm_message *one = from_member(messages, n, 1), *two = from_member(messages, n, 2);
        if (one != NULL && two != NULL && one->size_bytes == two->size_bytes && one->size_bytes >= 512) {
            unsigned char *x = one->data, *y = two->data;
            for (size_t i = 0; i < one->size_bytes; i++) {
                const unsigned char t = x[i];
                x[i] = y[i];
                y[i] = t;
            }
        }
    }
}

static ct_status exchange(void *ctx, void *group, const ct_comm_group_desc *desc, const ct_comm_message *messages, int n, int64_t timeout_ms,
                          void *stream, ct_err *err)
{
    CT_TRY(gloo->exchange(ctx, group, desc, messages, n, timeout_ms, stream, err));
    damage(desc, messages, n);
    return CT_OK;
}

const ct_comm_engine *ct_comm_mpi_engine(void)
{
    static ct_comm_engine engine;
    if (cti_comm_module_load("gloo", "build it", &gloo, NULL) != CT_OK) {
        return NULL;
    }
    engine = *gloo;
    engine.name = "mpi";
    engine.exchange = exchange;
    return &engine;
}
