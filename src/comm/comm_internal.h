/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by comm.c (groups), comm_calls.c (their calls), comm_built.c (collectives built from exchange), comm_own.c (engines that have their own) and comm_reduce.c (ordered
 * sums). */
#ifndef CTI_COMM_COMM_INTERNAL_H
#define CTI_COMM_COMM_INTERNAL_H

#include <pthread.h>

#include "comm/comm.h"
#include "comm/comm_reduce.h"
#include "comm/engine.h"
#include "comm/recorder.h"

/* What all groups of a process share. Owned by the world's ct_comm. */
typedef struct cti_comm_world {
    const ct_alloc *alloc;        /* borrows */
    const ct_comm_engine *engine; /* borrows */
    ct_bootstrap *boot;           /* borrows */
    void *ctx;                    /* the engine's; owns */
    pthread_mutex_t lock;         /* guards what follows */
    int64_t timeout_ms;
    ct_status broken; /* CT_OK while all is well */
    char broken_text[512];
    struct ct_comm *groups; /* open groups, the world last */
    cti_recorder *recorder; /* owns unless it is another world's; NULL: off */
    bool shares_recorder, is_deterministic;
    /* calls of a device engine since the last ct_comm_settle: how many, the first, the last */
    int64_t n_enqueued;
    struct cti_enqueued {
        const struct ct_comm *comm; /* NULL: the group is closed */
        ct_comm_op op;
        uint64_t number, record;
    } first_enqueued, last_enqueued;
} cti_comm_world;

struct ct_comm {
    cti_comm_world *world; /* shares; the world's group owns it */
    struct ct_comm *next;  /* in world->groups */
    char name[64];
    int *world_ranks; /* owns; [size] */
    ct_comm_group_desc desc;
    void *group;              /* the engine's; owns */
    int recorder_group;       /* of this group in the recorder */
    uint64_t n_collectives;   /* calls so far, for tags */
    uint64_t *n_sent, *n_got; /* owns; [size] messages of exchanges so far, for tags */
    ct_comm_message *messages; /* owns; [cap_messages] */
    int cap_messages;
    unsigned char *scratch; /* owns; CTI_COMM_SCRATCH_BYTES, made at the first reduction */
    const void **parts;     /* owns; [size] */
    int64_t *counts;        /* owns; [size]; those of an all_to_all of equal pieces */
    ct_comm_stats stats;
};

/* Staging of a reduction: the pieces of all members of one round. */
#define CTI_COMM_SCRATCH_BYTES ((size_t)4 << 20)

/* One call in progress. */
typedef struct cti_comm_call {
    ct_comm *comm;
    ct_comm_op op;
    uint64_t number; /* of the call, or of the messages of an exchange */
    int n_messages;  /* in comm->messages */
    uint64_t record; /* of the recorder; 0: none */
} cti_comm_call;

CT_MUST_CHECK ct_status cti_comm_reserve_messages(ct_comm *comm, int n, ct_err *err);
/* Adds a message unless it is empty. step: tells the rounds of one call apart. */
void cti_comm_push(cti_comm_call *call, bool is_send, int peer, const void *data, size_t size_bytes, uint64_t step);
/* Moves what was pushed; breaks the world where that fails. */
CT_MUST_CHECK ct_status cti_comm_flush(cti_comm_call *call, ct_err *err);

/* The world is lost, by `text`: tells the store, aborts the engine, writes the flight recorder's file; once. */
void cti_comm_break(cti_comm_world *world, ct_status status, const char *text);
/* Fails with what broke the world. */
CT_MUST_CHECK ct_status cti_comm_fail_broken(cti_comm_world *world, const cti_comm_call *call, ct_err *err);
/* Whether a call of the engine's own may be made; where it fails, it is ended. */
CT_MUST_CHECK ct_status cti_comm_begin_own(cti_comm_call *call, ct_err *err);
/* The end of such a call, that failed by `why` or not. On a device it is enqueued now, and ends in ct_comm_settle. moved: bytes that this rank
 * sends. */
CT_MUST_CHECK ct_status cti_comm_end_own(const cti_comm_call *call, ct_status status, const ct_err *why, int64_t moved, ct_err *err);

/* The collectives in host memory; arguments are checked, size >= 1. Contracts: comm.h. */
CT_MUST_CHECK ct_status cti_built_all_reduce(cti_comm_call *call, const void *in, void *out, int64_t count,
                                             ct_dtype dtype, ct_reduce_op op, ct_err *err);
CT_MUST_CHECK ct_status cti_built_all_gather(cti_comm_call *call, const void *in, void *out, int64_t count,
                                             ct_dtype dtype, ct_err *err);
CT_MUST_CHECK ct_status cti_built_reduce_scatter(cti_comm_call *call, const void *in, void *out, int64_t count,
                                                 ct_dtype dtype, ct_reduce_op op, ct_err *err);
CT_MUST_CHECK ct_status cti_built_broadcast(cti_comm_call *call, void *data, int64_t count, ct_dtype dtype, int root,
                                            ct_err *err);
CT_MUST_CHECK ct_status cti_built_all_to_all_v(cti_comm_call *call, const void *in, const int64_t *in_counts, void *out,
                                               const int64_t *out_counts, ct_dtype dtype, ct_err *err);
CT_MUST_CHECK ct_status cti_built_barrier(cti_comm_call *call, ct_err *err);

#endif
