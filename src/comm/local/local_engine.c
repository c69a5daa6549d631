/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/local/local_engine.h"

/* The context must be something; there is nothing to keep. */
static int nothing;

static ct_status local_open(const ct_alloc *alloc, ct_bootstrap *boot, int64_t timeout_ms, void **out_ctx, ct_err *err)
{
    (void)alloc;
    (void)boot;
    (void)timeout_ms;
    (void)err;
    *out_ctx = &nothing;
    return CT_OK;
}

static void local_close(void *ctx)
{
    (void)ctx;
}

const ct_comm_engine *ct_comm_local_engine(void)
{
    static const ct_comm_engine engine = {
        .abi = CT_COMM_ABI,
        .size_bytes = sizeof(ct_comm_engine),
        .name = "local",
        .max_world_size = 1,
        .open = local_open,
        .close = local_close,
        .abort = local_close,
    };
    return &engine;
}
