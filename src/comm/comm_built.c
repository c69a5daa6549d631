/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives built from exchange, in host memory. Every member talks to every other one: the bytes are those of a ring,
 * the rounds are few, and the pieces of a sum arrive apart, so that they can be added in their own order. */
#include "base/num.h"
#include "comm/comm_internal.h"

#define SMALL_ALL_REDUCE_BYTES ((size_t)16384) /* up to this everybody sends all to all: one round instead of two */

static const unsigned char *at_in(const void *base, int64_t elements, size_t size)
{
    return (const unsigned char *)base + (size_t)elements * size;
}

static unsigned char *at_out(void *base, int64_t elements, size_t size)
{
    return (unsigned char *)base + (size_t)elements * size;
}

static void copy(void *out, const void *in, size_t size_bytes)
{
    if (out != in && size_bytes > 0) {
        memcpy(out, in, size_bytes);
    }
}

static ct_status reserve_scratch(ct_comm *comm, ct_err *err)
{
    if (comm->scratch == NULL) {
        comm->scratch = ct_alloc_zeroed(comm->world->alloc, CTI_COMM_SCRATCH_BYTES, 1, err);
    }
    return comm->scratch == NULL ? CT_ERR_MEMORY : CT_OK;
}

/* Elements per member of n that one round of a reduction stages. */
static int64_t piece_elements(int n, size_t size)
{
    int64_t most = (int64_t)(CTI_COMM_SCRATCH_BYTES / size / (size_t)n);
    return most > 64 ? most / 64 * 64 : cti_max_i64(most, 1);
}

static bool is_small_all_reduce(int n, size_t size_bytes)
{
    return size_bytes <= SMALL_ALL_REDUCE_BYTES && size_bytes <= CTI_COMM_SCRATCH_BYTES / (size_t)n;
}

/* Sends piece j ([starts[j], +lengths[j]) of in) to member j, receives the others' pieces of ours and adds them up into
 * out. Here piece j starts at j*stride + offset and has clamp(limit - j*stride, 0, length) elements. */
typedef struct pieces {
    int64_t stride, offset, length, limit;
} pieces;

static int64_t length_of(const pieces *p, int member)
{
    return cti_max_i64(0, cti_min_i64(p->length, p->limit - member * p->stride));
}

static ct_status reduce_round(cti_comm_call *call, const void *in, void *out, const pieces *p, ct_dtype dtype,
                              ct_reduce_op op, uint64_t step, ct_err *err)
{
    ct_comm *comm = call->comm;
    size_t size = ct_dtype_size_bytes(dtype);
    int me = comm->desc.rank, n = comm->desc.size;
    int64_t mine = length_of(p, me);
    CT_ASSERT((size_t)n * (size_t)p->length * size <= CTI_COMM_SCRATCH_BYTES);
    for (int k = 1; k < n; k++) {
        int from = (me - k + n) % n;
        unsigned char *staged = at_out(comm->scratch, from * p->length, size);
        comm->parts[from] = staged;
        cti_comm_push(call, false, from, staged, (size_t)mine * size, step);
    }
    for (int k = 1; k < n; k++) {
        int to = (me + k) % n;
        cti_comm_push(call, true, to, at_in(in, to * p->stride + p->offset, size), (size_t)length_of(p, to) * size,
                      step);
    }
    comm->parts[me] = at_in(in, me * p->stride + p->offset, size);
    CT_TRY(cti_comm_flush(call, err));
    if (mine > 0) {
        cti_reduce_halves(comm->parts, n, out, mine, dtype, op);
    }
    return CT_OK;
}

ct_status cti_built_reduce_scatter(cti_comm_call *call, const void *in, void *out, int64_t count, ct_dtype dtype,
                                   ct_reduce_op op, ct_err *err)
{
    ct_comm *comm = call->comm;
    size_t size = ct_dtype_size_bytes(dtype);
    if (comm->desc.size == 1) {
        copy(out, in, (size_t)count * size);
        return CT_OK;
    }
    CT_TRY(reserve_scratch(comm, err));
    int64_t piece = piece_elements(comm->desc.size, size);
    uint64_t step = 0;
    for (int64_t done = 0; done < count; done += piece, step++) {
        int64_t length = cti_min_i64(piece, count - done);
        pieces p = {.stride = count, .offset = done, .length = length, .limit = INT64_MAX};
        CT_TRY(reduce_round(call, in, at_out(out, done, size), &p, dtype, op, step, err));
    }
    return CT_OK;
}

/* Everybody gets everything and adds it up: for what is bound by latency. */
static ct_status all_reduce_small(cti_comm_call *call, const void *in, void *out, int64_t count, ct_dtype dtype,
                                  ct_reduce_op op, ct_err *err)
{
    ct_comm *comm = call->comm;
    size_t size_bytes = (size_t)count * ct_dtype_size_bytes(dtype);
    int me = comm->desc.rank, n = comm->desc.size;
    for (int k = 1; k < n; k++) {
        int from = (me - k + n) % n;
        unsigned char *staged = comm->scratch + (size_t)from * size_bytes;
        comm->parts[from] = staged;
        cti_comm_push(call, false, from, staged, size_bytes, 0);
    }
    for (int k = 1; k < n; k++) {
        cti_comm_push(call, true, (me + k) % n, in, size_bytes, 0);
    }
    comm->parts[me] = in;
    CT_TRY(cti_comm_flush(call, err));
    cti_reduce_halves(comm->parts, n, out, count, dtype, op);
    return CT_OK;
}

ct_status cti_built_all_reduce(cti_comm_call *call, const void *in, void *out, int64_t count, ct_dtype dtype,
                               ct_reduce_op op, ct_err *err)
{
    ct_comm *comm = call->comm;
    size_t size = ct_dtype_size_bytes(dtype);
    int me = comm->desc.rank, n = comm->desc.size;
    if (n == 1) {
        copy(out, in, (size_t)count * size);
        return CT_OK;
    }
    CT_TRY(reserve_scratch(comm, err));
    size_t size_bytes = (size_t)count * size;
    if (is_small_all_reduce(n, size_bytes)) {
        return all_reduce_small(call, in, out, count, dtype, op, err);
    }
    int64_t whole = piece_elements(n, size) * n;
    uint64_t step = 0;
    for (int64_t done = 0; done < count; done += whole, step += 2) {
        int64_t span = cti_min_i64(whole, count - done);
        int64_t length = cti_ceil_div(span, n);
        pieces p = {.stride = length, .offset = 0, .length = length, .limit = span};
        unsigned char *to = at_out(out, done, size);
        CT_TRY(reduce_round(call, at_in(in, done, size), at_out(to, cti_min_i64(span, me * length), size), &p, dtype, op,
                            step, err));
        for (int k = 1; k < n; k++) {
            int from = (me - k + n) % n;
            cti_comm_push(call, false, from, at_out(to, cti_min_i64(span, from * length), size),
                          (size_t)length_of(&p, from) * size, step + 1);
        }
        for (int k = 1; k < n; k++) {
            cti_comm_push(call, true, (me + k) % n, at_out(to, cti_min_i64(span, me * length), size),
                          (size_t)length_of(&p, me) * size, step + 1);
        }
        CT_TRY(cti_comm_flush(call, err));
    }
    return CT_OK;
}

ct_status cti_built_all_gather(cti_comm_call *call, const void *in, void *out, int64_t count, ct_dtype dtype,
                               ct_err *err)
{
    size_t size_bytes = (size_t)count * ct_dtype_size_bytes(dtype);
    int me = call->comm->desc.rank, n = call->comm->desc.size;
    copy((unsigned char *)out + (size_t)me * size_bytes, in, size_bytes);
    for (int k = 1; k < n; k++) {
        int from = (me - k + n) % n;
        cti_comm_push(call, false, from, (unsigned char *)out + (size_t)from * size_bytes, size_bytes, 0);
    }
    for (int k = 1; k < n; k++) {
        cti_comm_push(call, true, (me + k) % n, in, size_bytes, 0);
    }
    return cti_comm_flush(call, err);
}

/* A binomial tree: member v (counted from the root) receives from v without its lowest bit, then sends to v + each lower
 * power of two. */
ct_status cti_built_broadcast(cti_comm_call *call, void *data, int64_t count, ct_dtype dtype, int root, ct_err *err)
{
    size_t size_bytes = (size_t)count * ct_dtype_size_bytes(dtype);
    int n = call->comm->desc.size;
    int v = (call->comm->desc.rank - root + n) % n;
    int bit = 1;
    while (bit < n && (v & bit) == 0) {
        bit <<= 1;
    }
    if (v != 0) {
        cti_comm_push(call, false, (v - bit + root) % n, data, size_bytes, 0);
        CT_TRY(cti_comm_flush(call, err));
    }
    for (bit >>= 1; bit > 0; bit >>= 1) {
        if (v + bit < n) {
            cti_comm_push(call, true, (v + bit + root) % n, data, size_bytes, 0);
        }
    }
    return cti_comm_flush(call, err);
}

static int64_t sum_before(const int64_t *counts, int member)
{
    int64_t sum = 0;
    for (int i = 0; i < member; i++) {
        sum += counts[i];
    }
    return sum;
}

ct_status cti_built_all_to_all_v(cti_comm_call *call, const void *in, const int64_t *in_counts, void *out,
                                 const int64_t *out_counts, ct_dtype dtype, ct_err *err)
{
    size_t size = ct_dtype_size_bytes(dtype);
    int me = call->comm->desc.rank, n = call->comm->desc.size;
    copy(at_out(out, sum_before(out_counts, me), size), at_in(in, sum_before(in_counts, me), size),
         (size_t)in_counts[me] * size);
    for (int k = 1; k < n; k++) {
        int from = (me - k + n) % n;
        cti_comm_push(call, false, from, at_out(out, sum_before(out_counts, from), size),
                      (size_t)out_counts[from] * size, 0);
    }
    for (int k = 1; k < n; k++) {
        int to = (me + k) % n;
        cti_comm_push(call, true, to, at_in(in, sum_before(in_counts, to), size), (size_t)in_counts[to] * size, 0);
    }
    return cti_comm_flush(call, err);
}

/* Dissemination (Hensgen, Finkel, Manber 1988): after round k everybody knows of 2^(k+1) members. */
ct_status cti_built_barrier(cti_comm_call *call, ct_err *err)
{
    unsigned char sent = 1, got = 0;
    int me = call->comm->desc.rank, n = call->comm->desc.size;
    for (int hop = 1; hop < n; hop *= 2) {
        cti_comm_push(call, false, (me - hop + n) % n, &got, 1, (uint64_t)hop);
        cti_comm_push(call, true, (me + hop) % n, &sent, 1, (uint64_t)hop);
        CT_TRY(cti_comm_flush(call, err));
    }
    return CT_OK;
}

/* ---- what they send ---- */

static int64_t all_reduce_elements(int n, int rank, int64_t count, size_t size)
{
    const int64_t whole = piece_elements(n, size) * n, n_full = count / whole, span = count % whole;
    const pieces p = {.stride = cti_ceil_div(span, n), .length = cti_ceil_div(span, n), .limit = span};
    const int64_t mine = length_of(&p, rank);
    /* A round sends the others' pieces to be added, then the own sum to all. */
    return n_full * 2 * (whole / n) * (n - 1) + (span - mine) + (n - 1) * mine;
}

int64_t ct_comm_built_sent_bytes(ct_comm_op op, int n, int rank, int64_t count, ct_dtype dtype)
{
    const int64_t size = (int64_t)ct_dtype_size_bytes(dtype);
    switch (op) {
    case CT_COMM_ALL_REDUCE:
        return is_small_all_reduce(n, (size_t)(count * size)) ? (n - 1) * count * size
                                                              : all_reduce_elements(n, rank, count, (size_t)size) * size;
    case CT_COMM_ALL_GATHER:
    case CT_COMM_REDUCE_SCATTER:
    case CT_COMM_ALL_TO_ALL:
        return (n - 1) * count * size;
    case CT_COMM_BROADCAST:
    case CT_COMM_EXCHANGE:
    case CT_COMM_BARRIER:
    case CT_COMM_OP_COUNT:
        break;
    }
    return 0;
}
