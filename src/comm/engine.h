/* SPDX-License-Identifier: Apache-2.0 */
/* What an engine provides to comm.c. Nothing but engines and comm.c includes this.
 *
 * An engine must move messages between ranks (`exchange`); all other calls are optional: where a pointer is NULL, comm.c
 * builds the collective from `exchange` in host memory, with sums in the fixed order of halves. A device engine provides
 * all of them. Arguments are checked before an engine sees them: ranks in range, counts above 0. A group of
 * one member reaches an engine only where the engine has its own collectives.
 */
#ifndef CT_COMM_ENGINE_H
#define CT_COMM_ENGINE_H

#include "comm/comm.h"

#define CT_COMM_ABI 2u

/* What an engine is told of a group. */
typedef struct ct_comm_group_desc {
    const char *name;       /* borrowed while the group lives */
    const int *world_ranks; /* [size], borrowed while the group lives */
    int size, rank;         /* rank: of this process in the group */
    uint64_t id;            /* the same on all members, different from that of every other open group */
    bool is_world;          /* the group of all ranks, which runs on a mesh do not call: an engine may make it at its first call */
    bool is_deterministic;  /* sums must have the same bits in each run: for engines with an order of their own */
} ct_comm_group_desc;

/* One message of an exchange in bytes. Messages match by peer and tag. */
typedef struct ct_comm_message {
    int peer; /* member of the group; this rank only where the engine works on a device: its k-th send is its k-th receive, of equal size */
    bool is_send;
    void *data;
    size_t size_bytes; /* above 0 */
    uint64_t tag;      /* holds group, call number, kind and length */
} ct_comm_message;

typedef struct ct_comm_engine {
    uint32_t abi;        /* CT_COMM_ABI */
    uint32_t size_bytes; /* sizeof(ct_comm_engine) */
    const char *name;
    int max_world_size; /* 1: one process only; 0: any */
    const char *device; /* the backend in whose memory it works, and on whose streams: "npu"; NULL: host memory, no streams */

    /* Required. Connects the ranks of boot; *out_ctx is handed to every other call. */
    ct_status (*open)(const ct_alloc *alloc, ct_bootstrap *boot, int64_t timeout_ms, void **out_ctx, ct_err *err);
    void (*close)(void *ctx); /* required; ctx may be NULL */
    /* Required. Closes the connections now, so that others notice; later calls fail. Any thread. */
    void (*abort)(void *ctx);

    /* Optional (NULL: the group is desc and nothing more). */
    ct_status (*group_open)(void *ctx, const ct_comm_group_desc *desc, int64_t timeout_ms, void **out_group, ct_err *err);
    void (*group_close)(void *ctx, void *group);

    /* Required unless max_world_size is 1. Starts all messages, returns when all are done. */
    ct_status (*exchange)(void *ctx, void *group, const ct_comm_group_desc *desc, const ct_comm_message *messages, int n,
                          int64_t timeout_ms, void *stream, ct_err *err);

    /* Optional, all or none; a device engine has them. The rules of comm.h hold. */
    ct_status (*all_reduce)(void *ctx, void *group, const void *in, void *out, int64_t count, ct_dtype dtype,
                            ct_reduce_op op, void *stream, ct_err *err);
    ct_status (*all_gather)(void *ctx, void *group, const void *in, void *out, int64_t count, ct_dtype dtype,
                            void *stream, ct_err *err);
    ct_status (*reduce_scatter)(void *ctx, void *group, const void *in, void *out, int64_t count, ct_dtype dtype,
                                ct_reduce_op op, void *stream, ct_err *err);
    ct_status (*broadcast)(void *ctx, void *group, void *data, int64_t count, ct_dtype dtype, int root, void *stream,
                           ct_err *err);
    ct_status (*all_to_all_v)(void *ctx, void *group, const void *in, const int64_t *in_counts, void *out,
                              const int64_t *out_counts, ct_dtype dtype, void *stream, ct_err *err);
    ct_status (*barrier)(void *ctx, void *group, void *stream, ct_err *err);
} ct_comm_engine;

#endif
