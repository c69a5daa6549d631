/* SPDX-License-Identifier: Apache-2.0 */
/* The map of the room `comm`: how ranks find each other and move tensors.
 *
 *   comm/bootstrap.h   rank, size, key-value store        comm/comm.h        groups and collectives (this file)
 *   comm/engine.h      what an engine must provide        comm/engines.h     choosing one by world size and name
 *   comm/local/        one process: copies                comm/gloo/         host memory over TCP, by Gloo
 *   comm/mpi/          host memory by an MPI: a module    comm/module.h      loading one
 *   comm/hccl/         memory of Ascend NPUs, by HCCL
 *   comm/selftest.h    is what arrives right, how fast
 *   comm/recorder.h    the last calls of this rank        comm/flight.h      reading them, and who hangs
 *   comm/stream.h      collectives beside the computation, started and waited for
 *
 *     ct_comm *world, *tp;
 *     CT_TRY(ct_comm_world_create(alloc, engine, boot, NULL, &world, err));
 *     CT_TRY(ct_comm_split(world, "tp", (const int[]){2, 3}, 2, &tp, err));        // on ranks 2 and 3
 *     CT_TRY(ct_comm_all_reduce(tp, grad, grad, n, CT_DTYPE_F32, CT_REDUCE_SUM, NULL, err));
 *     ct_comm_destroy(&tp);
 *     ct_comm_destroy(&world);
 *
 * Rules for every call below.
 * - Counts are elements. `in` and `out` are dense, in the memory of the engine (host memory for local, gloo and mpi).
 * - `stream` is NULL for host engines and the call then blocks until its work is done; a device engine enqueues on it, and what goes wrong
 *   later is told where the stream is waited for: ct_comm_settle says what was on it.
 * - Members of a group make the same calls in the same order. Messages match by group, call number, kind and length: ranks
 *   that do not agree get CT_ERR_TIMEOUT, never each other's wrong bytes. A count of 0 returns at once.
 * - Sums are ordered: over ranks [a, b) they are the sum over the lower half, [a, a + (b-a)/2), plus that over the upper half.
 *   All members get the same bits, whatever the timing, the engine's chunking and the count. bf16 is added in f32 and
 *   rounded once. Integers wrap. Of max and min NaN is the result where any member has NaN. A device engine adds f32 and bf16 in its own
 *   order and rounding, the same in each run where options.is_deterministic; its sums of f64 are ordered as all others are. What max and min make of NaN is its own.
 * - Fails: CT_ERR_PEER naming the rank that is gone; CT_ERR_TIMEOUT naming the rank waited for; CT_ERR_SHAPE for a
 *   dtype that cannot be reduced; CT_ERR_RANGE for a negative count or a rank outside the group. After ERR_PEER or
 *   ERR_TIMEOUT the world is broken: every further call of all its groups fails with that error, here and, since our
 *   connections are closed, on the other ranks.
 * - Threads: one at a time per group; different groups may be used by different threads at once.
 */
#ifndef CT_COMM_COMM_H
#define CT_COMM_COMM_H

#include <stdbool.h>
#include <stdint.h>

#include "comm/bootstrap.h"
#include "ctitan/alloc.h"
#include "ctitan/dtype.h"

typedef struct ct_comm ct_comm;
struct ct_comm_engine; /* comm/engine.h */

/* clang-format off */
#define CT_COMM_OP_LIST(X)                  \
    X(ALL_REDUCE,     all_reduce)           \
    X(ALL_GATHER,     all_gather)           \
    X(REDUCE_SCATTER, reduce_scatter)       \
    X(BROADCAST,      broadcast)            \
    X(ALL_TO_ALL,     all_to_all)           \
    X(EXCHANGE,       exchange)             \
    X(BARRIER,        barrier)
/* clang-format on */

typedef enum ct_comm_op {
#define CT_COMM_OP_ENUM(NAME, name) CT_COMM_##NAME,
    CT_COMM_OP_LIST(CT_COMM_OP_ENUM)
#undef CT_COMM_OP_ENUM
        CT_COMM_OP_COUNT
} ct_comm_op;

const char *ct_comm_op_name(ct_comm_op op); /* "all_reduce" */

typedef enum ct_reduce_op { CT_REDUCE_SUM, CT_REDUCE_MAX, CT_REDUCE_MIN, CT_REDUCE_COUNT } ct_reduce_op;

/* What is reduced: f32, bf16, f64, i32, i64. What is only moved: every dtype. */
#define CT_COMM_REDUCIBLE (CT_BIT(F32) | CT_BIT(BF16) | CT_BIT(F64) | CT_BIT(I32) | CT_BIT(I64))

typedef struct ct_comm_options {
    int64_t timeout_ms; /* of connecting and of each call; 0: 300000 */
    int64_t n_records;  /* last calls that the flight recorder keeps (recorder.h), 64 bytes each; 0: none */
    const char *record_path; /* the file that they are written to when a call fails; NULL: none (borrowed during the call) */
    const char *version;     /* of the program, for that file; NULL: "" */
    ct_comm *record_with;    /* another world of the same ranks, whose flight recorder keeps this one's calls too; destroyed after it; NULL: none */
    bool is_deterministic;   /* sums have the same bits in each run, on devices too */
} ct_comm_options;

/**
 * The group of all ranks. All ranks call it; it returns when all are connected.
 *
 * engine   ct_comm_local_engine() or ct_comm_gloo_engine(), or cti_comm_engine_pick() of comm/engines.h  (borrowed, static)
 * boot     (borrowed until the world is destroyed)
 * options  NULL: the defaults
 *
 * Fails: CT_ERR_STATE where world_size is above 1 and the engine knows one process only; CT_ERR_TIMEOUT naming the
 *        ranks that did not come.
 */
CT_MUST_CHECK ct_status ct_comm_world_create(const ct_alloc *alloc, const struct ct_comm_engine *engine,
                                             ct_bootstrap *boot, const ct_comm_options *options, ct_comm **out_comm,
                                             ct_err *err);

/**
 * A group of some ranks of another. Only its members call it, with the same name and list; no message is exchanged by host
 * engines. A mesh axis is one call per rank with the list of its own line.
 *
 * name     "dp_shard", "tp", ...: appears in errors and statistics; part of the group's identity
 * ranks    [n]  ranks in `parent`, each once, the caller among them; their order is the order of the group
 *
 * Fails: CT_ERR_RANGE for a bad list; CT_ERR_STATE where a group with the same name and list is open.
 */
CT_MUST_CHECK ct_status ct_comm_split(ct_comm *parent, const char *name, const int *ranks, int n, ct_comm **out_comm,
                                      ct_err *err);
/* Groups before their world. Says nothing to the others: where all is well, a barrier on the world goes before. */
void ct_comm_destroy(ct_comm **comm);

int ct_comm_rank(const ct_comm *comm);                     /* in this group */
int ct_comm_size(const ct_comm *comm);                     /* of this group */
int ct_comm_world_rank_of(const ct_comm *comm, int rank);  /* of member `rank` of this group */
const char *ct_comm_name(const ct_comm *comm);             /* "world" or the name given to split */
const char *ct_comm_engine_name(const ct_comm *comm);      /* "local", "gloo", "mpi", "hccl" */
const char *ct_comm_device(const ct_comm *comm);           /* the backend in whose memory calls work; NULL: the host's */
/* What this rank does now, for the table that names ranks that hang: step of training (below 0: unchanged) and a word of at most 15
 * bytes ("step", "saving"; "": unchanged). Cheap. */
void ct_comm_note(ct_comm *comm, int64_t step, const char *what);
/* For a device engine, whose calls are enqueued: `status` and `err` are how waiting for the device's streams ended (which is CT_OK, or a failure
 * of any call before), so that the flight recorder knows what is complete. A failure gets this rank and the collectives that were enqueued since the
 * last time, and breaks the world where it is one of the device. Any group; returns status. Host engines: does nothing. */
CT_MUST_CHECK ct_status ct_comm_settle(ct_comm *comm, ct_status status, ct_err *err);
/* Of this call on; for the whole world (all its groups). > 0. */
void ct_comm_set_timeout(ct_comm *comm, int64_t timeout_ms);

/* out = in combined over all members. out may be in itself; otherwise they do not overlap. */
CT_MUST_CHECK ct_status ct_comm_all_reduce(ct_comm *comm, const void *in, void *out, int64_t count, ct_dtype dtype,
                                           ct_reduce_op op, void *stream, ct_err *err);
/* out [size*count]: member r's in [count] at r*count. in may be out + rank*count (in place); otherwise no overlap. */
CT_MUST_CHECK ct_status ct_comm_all_gather(ct_comm *comm, const void *in, void *out, int64_t count, ct_dtype dtype,
                                           void *stream, ct_err *err);
/* in [size*count], out [count]: member r gets the combination of everyone's piece r. out may be in + rank*count. */
CT_MUST_CHECK ct_status ct_comm_reduce_scatter(ct_comm *comm, const void *in, void *out, int64_t count, ct_dtype dtype,
                                               ct_reduce_op op, void *stream, ct_err *err);
/* data [count] of member root goes to all. */
CT_MUST_CHECK ct_status ct_comm_broadcast(ct_comm *comm, void *data, int64_t count, ct_dtype dtype, int root,
                                          void *stream, ct_err *err);
/* in, out [size*count]: piece j of in goes to member j, piece i of out comes from member i. No overlap. */
CT_MUST_CHECK ct_status ct_comm_all_to_all(ct_comm *comm, const void *in, void *out, int64_t count, ct_dtype dtype,
                                           void *stream, ct_err *err);
/* The same with own counts per member, pieces end to end: in_counts[j] elements go to j, out_counts[i] come from i.
 * in_counts[j] here equals out_counts[me] there; both arrays [size], in host memory, read before the call returns. */
CT_MUST_CHECK ct_status ct_comm_all_to_all_v(ct_comm *comm, const void *in, const int64_t *in_counts, void *out,
                                             const int64_t *out_counts, ct_dtype dtype, void *stream, ct_err *err);
/* Returns when all members have called it; on a device, when its stream has come that far, too. */
CT_MUST_CHECK ct_status ct_comm_barrier(ct_comm *comm, void *stream, ct_err *err);

/* One message of an exchange. */
typedef struct ct_p2p {
    enum { CT_P2P_SEND, CT_P2P_RECV } kind;
    int peer;      /* member of the group; may be this rank: its k-th send is its k-th receive of the same exchange */
    void *data;    /* [count]; read only for a send */
    int64_t count; /* elements */
    ct_dtype dtype;
} ct_p2p;

/* All messages at once, so that a ring or a neighbour swap cannot deadlock; returns when all are done (a device engine: are enqueued). Between two ranks
 * the k-th send matches the k-th receive. Only the ranks concerned call it. A send may wait for its receiver. */
CT_MUST_CHECK ct_status ct_comm_exchange(ct_comm *comm, const ct_p2p *messages, int n_messages, void *stream,
                                         ct_err *err);
CT_MUST_CHECK ct_status ct_comm_send(ct_comm *comm, const void *data, int64_t count, ct_dtype dtype, int peer,
                                     void *stream, ct_err *err);
CT_MUST_CHECK ct_status ct_comm_recv(ct_comm *comm, void *data, int64_t count, ct_dtype dtype, int peer, void *stream,
                                     ct_err *err);

/* Fails with CT_ERR_USAGE on all members, naming `what` and the first rank that differs from member 0, unless the bytes
 * are equal everywhere (settings, the plan, the data set). Compares lengths and 128-bit hashes. Host engines only. */
CT_MUST_CHECK ct_status ct_comm_check_same(ct_comm *comm, const void *data, size_t size_bytes, const char *what,
                                           ct_err *err);

/* What this rank moved in this group since it was created. Pieces that stay on the rank do not count; of a device engine's collectives, what a
 * ring moves. */
typedef struct ct_comm_stats {
    struct {
        int64_t n_calls;
        int64_t sent_bytes, received_bytes;
    } op[CT_COMM_OP_COUNT];
} ct_comm_stats;
void ct_comm_get_stats(const ct_comm *comm, ct_comm_stats *out_stats);
/* sent_bytes that one call adds on member `rank` of n where the engine has no collectives of its own (gloo, mpi): for plans. all_reduce,
 * all_gather, reduce_scatter and all_to_all of `count` as in the calls above; others: 0. */
int64_t ct_comm_built_sent_bytes(ct_comm_op op, int n, int rank, int64_t count, ct_dtype dtype);

#endif
