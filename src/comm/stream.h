/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of collectives beside the computation: calls are started, run one after another in that order, and are waited for by number.
 *
 *     ct_comm_stream *stream;
 *     CT_TRY(ct_comm_stream_create(alloc, 8, &stream, err));
 *     const int64_t n = ct_comm_stream_start(stream, &gather);       // number 1, 2, ...; returns at once
 *     ... compute ...
 *     CT_TRY(ct_comm_stream_wait(stream, n, err));                   // gather and all before it are done
 *     ct_comm_stream_destroy(&stream);
 *
 * Between start and wait neither the call's struct nor its memory is touched: `out` is being written, `in` is being read.
 *
 * Where an engine's calls block (local, gloo, mpi) the stream is a thread. It is the only one that uses the groups of its calls (one
 * thread at a time per group: comm.h), so whoever starts calls on a group here runs none in line on it; another group of the same ranks
 * serves those. Calls of an engine that enqueues on a device need no thread: the runtime orders the device's two streams by events.
 */
#ifndef CT_COMM_STREAM_H
#define CT_COMM_STREAM_H

#include "comm/comm.h"

/* One collective, ready to run. */
typedef struct ct_comm_call {
    ct_comm *comm;    /* borrowed */
    ct_comm_op kind;  /* ALL_REDUCE, ALL_GATHER or REDUCE_SCATTER */
    const void *in;
    void *out;
    int64_t count;    /* as the function of comm.h of that name takes it */
    ct_dtype dtype;
    ct_reduce_op reduce;
    const char *what; /* borrowed: the node that errors name; NULL: they name none */
    void *stream;     /* of the device that the engine works on; NULL for host engines */
} ct_comm_call;

/* Here and now. Fails as the function of comm.h does; ERR_UNSUPPORTED for another kind. */
CT_MUST_CHECK ct_status ct_comm_call_run(const ct_comm_call *call, ct_err *err);

typedef struct ct_comm_stream ct_comm_stream;

/* max_in_flight: calls started and not yet waited for, at most. Nothing is allocated later. */
CT_MUST_CHECK ct_status ct_comm_stream_create(const ct_alloc *alloc, int32_t max_in_flight, ct_comm_stream **out_stream,
                                              ct_err *err);
/* Waits for the call that runs; those behind it are not run. */
void ct_comm_stream_destroy(ct_comm_stream **stream);

/* One thread starts and waits. call is borrowed until it is waited for. Returns its number: one more than the last. */
int64_t ct_comm_stream_start(ct_comm_stream *stream, const ct_comm_call *call);
/* Returns when call `number` and all before it are done. The first failure of any call is that of this and every later wait; calls behind
 * it are not run. */
CT_MUST_CHECK ct_status ct_comm_stream_wait(ct_comm_stream *stream, int64_t number, ct_err *err);
/* When a call that was waited for ran (cti_now_ns); of the last max_in_flight calls. */
void ct_comm_stream_times(const ct_comm_stream *stream, int64_t number, int64_t *out_begin_ns, int64_t *out_end_ns);

#endif
