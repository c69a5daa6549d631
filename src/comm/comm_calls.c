/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of groups: checks of arguments, tags, statistics, records. The collectives themselves are the engine's, or those of comm_built.c. */
#include <inttypes.h>

#include "base/hash.h"
#include "base/num.h"
#include "base/str.h"
#include "comm/comm_internal.h"

/* ---- messages ---- */

ct_status cti_comm_reserve_messages(ct_comm *comm, int n, ct_err *err)
{
    if (n <= comm->cap_messages) {
        return CT_OK;
    }
    void *grown = ct_alloc_resize(comm->world->alloc, comm->messages, (size_t)n, sizeof *comm->messages, err);
    if (grown == NULL) {
        return CT_ERR_MEMORY;
    }
    comm->messages = grown;
    comm->cap_messages = n;
    return CT_OK;
}

void cti_comm_push(cti_comm_call *call, bool is_send, int peer, const void *data, size_t size_bytes, uint64_t step)
{
    ct_comm *comm = call->comm;
    if (size_bytes == 0) {
        return;
    }
    CT_ASSERT(call->n_messages < comm->cap_messages);
    const uint64_t what[] = {comm->desc.id, call->op, call->number, step, size_bytes};
    union {
        const void *in;
        void *out;
    } pointer = {.in = data}; /* an engine only reads from what it sends */
    comm->messages[call->n_messages++] = (ct_comm_message){.peer = peer,
                                                           .is_send = is_send,
                                                           .data = pointer.out,
                                                           .size_bytes = size_bytes,
                                                           .tag = cti_hash64(what, sizeof what, 0)};
    int64_t *counter = is_send ? &comm->stats.op[call->op].sent_bytes : &comm->stats.op[call->op].received_bytes;
    *counter += (int64_t)size_bytes;
}

ct_status cti_comm_flush(cti_comm_call *call, ct_err *err)
{
    ct_comm *comm = call->comm;
    cti_comm_world *world = comm->world;
    int n = call->n_messages;
    call->n_messages = 0;
    if (n == 0) {
        return CT_OK;
    }
    pthread_mutex_lock(&world->lock);
    int64_t timeout_ms = world->timeout_ms;
    bool broken = world->broken != CT_OK;
    pthread_mutex_unlock(&world->lock);
    if (broken) {
        return cti_comm_fail_broken(world, call, err);
    }
    ct_err inner = {0};
    ct_status st =
        world->engine->exchange(world->ctx, comm->group, &comm->desc, comm->messages, n, timeout_ms, NULL, &inner);
    if (st == CT_ERR_PEER || st == CT_ERR_TIMEOUT) {
        cti_comm_break(world, st, inner.message);
        return cti_comm_fail_broken(world, call, err);
    }
    if (st != CT_OK) {
        return CT_FAIL(err, st, "%s in group '%s': %.1500s", ct_comm_op_name(call->op), comm->name, inner.message);
    }
    return CT_OK;
}

/* ---- calls ---- */

/* True where we build the collective in host memory. */
static bool is_built(const ct_comm *comm)
{
    return comm->world->engine->all_reduce == NULL;
}

static ct_status check_call(const ct_comm *comm, ct_comm_op op, int64_t count, ct_dtype dtype, const void *stream,
                            ct_err *err)
{
    int64_t bytes;
    if ((unsigned)dtype >= CT_DTYPE_COUNT) {
        return CT_FAIL(err, CT_ERR_SHAPE, "%s in group '%s': dtype number %d does not exist", ct_comm_op_name(op),
                       comm->name, (int)dtype);
    }
    if (count < 0 || !cti_mul_i64(count, (int64_t)ct_dtype_size_bytes(dtype) * comm->desc.size, &bytes)) {
        return CT_FAIL(err, CT_ERR_RANGE, "%s in group '%s': a count of %" PRId64 " elements", ct_comm_op_name(op),
                       comm->name, count);
    }
    if (stream != NULL && comm->world->engine->device == NULL) {
        return CT_FAIL(err, CT_ERR_STATE, "%s in group '%s': the engine '%s' works in host memory and has no streams",
                       ct_comm_op_name(op), comm->name, comm->world->engine->name);
    }
    return CT_OK;
}

static ct_status check_reducible(const ct_comm *comm, ct_comm_op op, ct_dtype dtype, ct_reduce_op reduce, ct_err *err)
{
    if ((CT_COMM_REDUCIBLE & (1u << dtype)) == 0) {
        return CT_FAIL(err, CT_ERR_SHAPE, "%s in group '%s': %s cannot be reduced (f32, bf16, f64, i32, i64 can)",
                       ct_comm_op_name(op), comm->name, ct_dtype_name(dtype));
    }
    if ((unsigned)reduce >= CT_REDUCE_COUNT) {
        return CT_FAIL(err, CT_ERR_RANGE, "%s in group '%s': reduction number %d does not exist", ct_comm_op_name(op),
                       comm->name, (int)reduce);
    }
    return CT_OK;
}

static ct_status check_peer(const ct_comm *comm, ct_comm_op op, int peer, ct_err *err)
{
    if (peer < 0 || peer >= comm->desc.size) {
        return CT_FAIL(err, CT_ERR_RANGE, "%s in group '%s': there is no rank %d (0..%d)", ct_comm_op_name(op),
                       comm->name, peer, comm->desc.size - 1);
    }
    return CT_OK;
}

/* The one place where a collective begins, and the one where it ends: recorder.h. */
static cti_comm_call begin(ct_comm *comm, ct_comm_op op, int64_t count, ct_dtype dtype, int root)
{
    comm->stats.op[op].n_calls++;
    cti_comm_call call = {.comm = comm, .op = op, .number = comm->n_collectives++};
    call.record = cti_recorder_begin(comm->world->recorder, comm->recorder_group, op, call.number + 1,
                                     count * (int64_t)ct_dtype_size_bytes(dtype), dtype, root);
    cti_recorder_start(comm->world->recorder, call.record);
    return call;
}

static ct_status end(const cti_comm_call *call, ct_status status)
{
    cti_recorder_end(call->comm->world->recorder, call->record, status == CT_OK);
    return status;
}

static int64_t bytes_of(int64_t count, ct_dtype dtype)
{
    return count * (int64_t)ct_dtype_size_bytes(dtype);
}

/* What each of a ring sends of `count` elements that go round once: all but its own piece. */
static int64_t ring_bytes(const ct_comm *comm, int64_t count, ct_dtype dtype)
{
    return bytes_of(count, dtype) * (comm->desc.size - 1) / comm->desc.size;
}

ct_status ct_comm_all_reduce(ct_comm *comm, const void *in, void *out, int64_t count, ct_dtype dtype, ct_reduce_op op,
                             void *stream, ct_err *err)
{
    CT_TRY(check_call(comm, CT_COMM_ALL_REDUCE, count, dtype, stream, err));
    CT_TRY(check_reducible(comm, CT_COMM_ALL_REDUCE, dtype, op, err));
    if (count == 0) {
        return CT_OK;
    }
    cti_comm_call call = begin(comm, CT_COMM_ALL_REDUCE, count, dtype, -1);
    const ct_comm_engine *e = comm->world->engine;
    if (is_built(comm)) {
        return end(&call, cti_built_all_reduce(&call, in, out, count, dtype, op, err));
    }
    ct_err why = {0};
    CT_TRY(cti_comm_begin_own(&call, err));
    return cti_comm_end_own(&call, e->all_reduce(comm->world->ctx, comm->group, in, out, count, dtype, op, stream, &why), &why,
                   ring_bytes(comm, 2 * count, dtype), err);
}

ct_status ct_comm_all_gather(ct_comm *comm, const void *in, void *out, int64_t count, ct_dtype dtype, void *stream,
                             ct_err *err)
{
    CT_TRY(check_call(comm, CT_COMM_ALL_GATHER, count, dtype, stream, err));
    if (count == 0) {
        return CT_OK;
    }
    cti_comm_call call = begin(comm, CT_COMM_ALL_GATHER, count, dtype, -1);
    const ct_comm_engine *e = comm->world->engine;
    if (is_built(comm)) {
        return end(&call, cti_built_all_gather(&call, in, out, count, dtype, err));
    }
    ct_err why = {0};
    CT_TRY(cti_comm_begin_own(&call, err));
    return cti_comm_end_own(&call, e->all_gather(comm->world->ctx, comm->group, in, out, count, dtype, stream, &why), &why,
                   (comm->desc.size - 1) * bytes_of(count, dtype), err);
}

ct_status ct_comm_reduce_scatter(ct_comm *comm, const void *in, void *out, int64_t count, ct_dtype dtype,
                                 ct_reduce_op op, void *stream, ct_err *err)
{
    CT_TRY(check_call(comm, CT_COMM_REDUCE_SCATTER, count, dtype, stream, err));
    CT_TRY(check_reducible(comm, CT_COMM_REDUCE_SCATTER, dtype, op, err));
    if (count == 0) {
        return CT_OK;
    }
    cti_comm_call call = begin(comm, CT_COMM_REDUCE_SCATTER, count, dtype, -1);
    const ct_comm_engine *e = comm->world->engine;
    if (is_built(comm)) {
        return end(&call, cti_built_reduce_scatter(&call, in, out, count, dtype, op, err));
    }
    ct_err why = {0};
    CT_TRY(cti_comm_begin_own(&call, err));
    return cti_comm_end_own(&call, e->reduce_scatter(comm->world->ctx, comm->group, in, out, count, dtype, op, stream, &why), &why,
                   (comm->desc.size - 1) * bytes_of(count, dtype), err);
}

ct_status ct_comm_broadcast(ct_comm *comm, void *data, int64_t count, ct_dtype dtype, int root, void *stream,
                            ct_err *err)
{
    CT_TRY(check_call(comm, CT_COMM_BROADCAST, count, dtype, stream, err));
    CT_TRY(check_peer(comm, CT_COMM_BROADCAST, root, err));
    if (count == 0) {
        return CT_OK;
    }
    cti_comm_call call = begin(comm, CT_COMM_BROADCAST, count, dtype, root);
    const ct_comm_engine *e = comm->world->engine;
    if (is_built(comm)) {
        return end(&call, cti_built_broadcast(&call, data, count, dtype, root, err));
    }
    ct_err why = {0};
    CT_TRY(cti_comm_begin_own(&call, err));
    return cti_comm_end_own(&call, e->broadcast(comm->world->ctx, comm->group, data, count, dtype, root, stream, &why), &why,
                   ring_bytes(comm, count, dtype), err);
}

ct_status ct_comm_all_to_all_v(ct_comm *comm, const void *in, const int64_t *in_counts, void *out,
                               const int64_t *out_counts, ct_dtype dtype, void *stream, ct_err *err)
{
    int64_t total_in = 0, total_out = 0;
    for (int i = 0; i < comm->desc.size; i++) {
        CT_TRY(check_call(comm, CT_COMM_ALL_TO_ALL, in_counts[i], dtype, stream, err));
        CT_TRY(check_call(comm, CT_COMM_ALL_TO_ALL, out_counts[i], dtype, stream, err));
        if (!cti_add_i64(total_in, in_counts[i], &total_in) || !cti_add_i64(total_out, out_counts[i], &total_out)) {
            return CT_FAIL(err, CT_ERR_RANGE, "all_to_all in group '%s': the counts overflow", comm->name);
        }
    }
    CT_TRY(check_call(comm, CT_COMM_ALL_TO_ALL, total_in, dtype, stream, err));
    CT_TRY(check_call(comm, CT_COMM_ALL_TO_ALL, total_out, dtype, stream, err));
    if (in_counts[comm->desc.rank] != out_counts[comm->desc.rank]) {
        return CT_FAIL(err, CT_ERR_RANGE, "all_to_all in group '%s': this rank sends %" PRId64 " elements to itself but "
                       "expects %" PRId64, comm->name, in_counts[comm->desc.rank], out_counts[comm->desc.rank]);
    }
    cti_comm_call call = begin(comm, CT_COMM_ALL_TO_ALL, total_in, dtype, -1);
    const ct_comm_engine *e = comm->world->engine;
    if (is_built(comm)) {
        return end(&call, cti_built_all_to_all_v(&call, in, in_counts, out, out_counts, dtype, err));
    }
    ct_err why = {0};
    CT_TRY(cti_comm_begin_own(&call, err));
    return cti_comm_end_own(&call, e->all_to_all_v(comm->world->ctx, comm->group, in, in_counts, out, out_counts, dtype, stream, &why), &why,
                   bytes_of(total_in - in_counts[comm->desc.rank], dtype), err);
}

ct_status ct_comm_all_to_all(ct_comm *comm, const void *in, void *out, int64_t count, ct_dtype dtype, void *stream,
                             ct_err *err)
{
    CT_TRY(check_call(comm, CT_COMM_ALL_TO_ALL, count, dtype, stream, err));
    if (count == 0) {
        return CT_OK;
    }
    for (int i = 0; i < comm->desc.size; i++) {
        comm->counts[i] = count;
    }
    return ct_comm_all_to_all_v(comm, in, comm->counts, out, comm->counts, dtype, stream, err);
}

ct_status ct_comm_barrier(ct_comm *comm, void *stream, ct_err *err)
{
    CT_TRY(check_call(comm, CT_COMM_BARRIER, 0, CT_DTYPE_U8, stream, err));
    cti_comm_call call = begin(comm, CT_COMM_BARRIER, 0, CT_DTYPE_U8, -1);
    const ct_comm_engine *e = comm->world->engine;
    if (is_built(comm)) {
        return end(&call, cti_built_barrier(&call, err));
    }
    ct_err why = {0};
    CT_TRY(cti_comm_begin_own(&call, err));
    return cti_comm_end_own(&call, e->barrier(comm->world->ctx, comm->group, stream, &why), &why,
                   0, err);
}

/* ---- point to point ---- */

/* is_copied: they are in host memory; an engine of a device gets them with the others. */
static ct_status copy_to_self(const ct_p2p *messages, int n, int me, bool is_copied, ct_err *err)
{
    int next_recv = 0;
    for (int i = 0; i < n; i++) {
        if (messages[i].peer != me || messages[i].kind != CT_P2P_SEND) {
            continue;
        }
        while (next_recv < n && (messages[next_recv].peer != me || messages[next_recv].kind != CT_P2P_RECV)) {
            next_recv++;
        }
        size_t size = (size_t)messages[i].count * ct_dtype_size_bytes(messages[i].dtype);
        if (next_recv == n || (size_t)messages[next_recv].count * ct_dtype_size_bytes(messages[next_recv].dtype) != size) {
            return CT_FAIL(err, CT_ERR_RANGE, "exchange: a rank's message of %zu bytes to itself has no receive of that size",
                           size);
        }
        if (size > 0 && is_copied) {
            memcpy(messages[next_recv].data, messages[i].data, size);
        }
        next_recv++;
    }
    for (; next_recv < n; next_recv++) {
        if (messages[next_recv].peer == me && messages[next_recv].kind == CT_P2P_RECV) {
            return CT_FAIL(err, CT_ERR_RANGE, "exchange: a rank receives from itself what it does not send");
        }
    }
    return CT_OK;
}

ct_status ct_comm_exchange(ct_comm *comm, const ct_p2p *messages, int n_messages, void *stream, ct_err *err)
{
    int me = comm->desc.rank;
    for (int i = 0; i < n_messages; i++) {
        CT_TRY(check_call(comm, CT_COMM_EXCHANGE, messages[i].count, messages[i].dtype, stream, err));
        CT_TRY(check_peer(comm, CT_COMM_EXCHANGE, messages[i].peer, err));
    }
    CT_TRY(cti_comm_reserve_messages(comm, n_messages, err));
    const bool is_device = comm->world->engine->device != NULL;
    CT_TRY(copy_to_self(messages, n_messages, me, !is_device, err));
    comm->stats.op[CT_COMM_EXCHANGE].n_calls++;
    cti_comm_call call = {.comm = comm, .op = CT_COMM_EXCHANGE};
    int64_t bytes = 0;
    int first_peer = -1;
    for (int i = 0; i < n_messages; i++) {
        const ct_p2p *m = &messages[i];
        if ((m->peer == me && !is_device) || m->count == 0) {
            continue;
        }
        bytes += m->count * (int64_t)ct_dtype_size_bytes(m->dtype);
        first_peer = first_peer < 0 ? m->peer : first_peer;
        bool is_send = m->kind == CT_P2P_SEND;
        call.number = is_send ? comm->n_sent[m->peer]++ : comm->n_got[m->peer]++;
        cti_comm_push(&call, is_send, m->peer, m->data, (size_t)m->count * ct_dtype_size_bytes(m->dtype), 0);
    }
    if (call.n_messages == 0) {
        return CT_OK;
    }
    cti_recorder *rec = comm->world->recorder;
    call.record = cti_recorder_begin(rec, comm->recorder_group, CT_COMM_EXCHANGE, (uint64_t)comm->stats.op[CT_COMM_EXCHANGE].n_calls, bytes,
                                     messages[0].dtype, first_peer);
    cti_recorder_start(rec, call.record);
    if (!is_device) {
        return end(&call, cti_comm_flush(&call, err));
    }
    ct_err why = {0};
    CT_TRY(cti_comm_begin_own(&call, err));
    const int n = call.n_messages;
    call.number = (uint64_t)comm->stats.op[CT_COMM_EXCHANGE].n_calls - 1;
    call.n_messages = 0;
    return cti_comm_end_own(&call, comm->world->engine->exchange(comm->world->ctx, comm->group, &comm->desc, comm->messages, n, 0, stream, &why), &why, 0, err);
}

ct_status ct_comm_send(ct_comm *comm, const void *data, int64_t count, ct_dtype dtype, int peer, void *stream,
                       ct_err *err)
{
    union {
        const void *in;
        void *out;
    } pointer = {.in = data};
    ct_p2p message = {CT_P2P_SEND, peer, pointer.out, count, dtype};
    return ct_comm_exchange(comm, &message, 1, stream, err);
}

ct_status ct_comm_recv(ct_comm *comm, void *data, int64_t count, ct_dtype dtype, int peer, void *stream, ct_err *err)
{
    ct_p2p message = {CT_P2P_RECV, peer, data, count, dtype};
    return ct_comm_exchange(comm, &message, 1, stream, err);
}

/* ---- agreement ---- */

enum { DIGEST_BYTES = 48 }; /* length (8), hash in hex (33), zeros */

ct_status ct_comm_check_same(ct_comm *comm, const void *data, size_t size_bytes, const char *what, ct_err *err)
{
    int n = comm->desc.size;
    char *all = ct_alloc_zeroed(comm->world->alloc, (size_t)n, DIGEST_BYTES, err);
    if (all == NULL) {
        return CT_ERR_MEMORY;
    }
    char *mine = all + (size_t)comm->desc.rank * DIGEST_BYTES;
    uint64_t length = size_bytes;
    memcpy(mine, &length, sizeof length);
    char hex[33];
    cti_hash128_hex(data, size_bytes, hex);
    memcpy(mine + 8, hex, sizeof hex);
    ct_status st = ct_comm_all_gather(comm, mine, all, DIGEST_BYTES, CT_DTYPE_U8, NULL, err);
    for (int r = 1; r < n && st == CT_OK; r++) {
        if (memcmp(all, all + (size_t)r * DIGEST_BYTES, DIGEST_BYTES) != 0) {
            st = CT_FAIL(err, CT_ERR_USAGE, "%s: rank %d and rank %d differ; all ranks must have the same", what,
                         comm->world_ranks[r], comm->world_ranks[0]);
        }
    }
    ct_alloc_free(comm->world->alloc, all);
    return st;
}
