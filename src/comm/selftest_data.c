/* SPDX-License-Identifier: Apache-2.0 */
/* What the self-test sends, and whether it came. */
#include <string.h>

#include "base/num.h"
#include "comm/selftest_internal.h"

static ct_comm *comm_of(const cti_selftest_state *s, int group)
{
    return s->groups[group].comm;
}

/* A wrong result: counted by element, the first is kept. */
typedef struct tally {
    int64_t n_wrong, first;
} tally;

static void wrong(tally *t, int64_t index)
{
    t->first = t->n_wrong == 0 ? index : t->first;
    t->n_wrong++;
}

static void note(cti_selftest_state *s, const tally *t, const cti_selftest_failure *what)
{
    if (t->n_wrong > 0 && s->n_mine < CTI_SELFTEST_MAX_FAILURES) {
        cti_selftest_failure *f = &s->mine[s->n_mine++];
        *f = *what;
        f->rank = ct_comm_rank(s->groups[0].comm);
        f->n_wrong = t->n_wrong;
        f->first = t->first;
    }
}

int64_t cti_selftest_count(ct_comm_op op, int n, int64_t size_bytes, ct_dtype dtype)
{
    const int64_t elements = size_bytes / (int64_t)ct_dtype_size_bytes(dtype);
    const bool is_whole = op == CT_COMM_ALL_REDUCE || op == CT_COMM_BROADCAST;
    return cti_max_i64(1, is_whole ? elements : elements / n);
}

ct_status cti_selftest_call(cti_selftest_state *s, int group, ct_comm_op op, int64_t count, ct_dtype dtype, int root, ct_err *err)
{
    ct_comm *comm = comm_of(s, group);
    switch (op) {
    case CT_COMM_ALL_REDUCE:
        return ct_comm_all_reduce(comm, s->in, s->out, count, dtype, CT_REDUCE_SUM, NULL, err);
    case CT_COMM_ALL_GATHER:
        return ct_comm_all_gather(comm, s->in, s->out, count, dtype, NULL, err);
    case CT_COMM_REDUCE_SCATTER:
        return ct_comm_reduce_scatter(comm, s->in, s->out, count, dtype, CT_REDUCE_SUM, NULL, err);
    case CT_COMM_BROADCAST:
        return ct_comm_broadcast(comm, s->out, count, dtype, root, NULL, err);
    case CT_COMM_ALL_TO_ALL:
        return ct_comm_all_to_all(comm, s->in, s->out, count, dtype, NULL, err);
    case CT_COMM_BARRIER:
        return ct_comm_barrier(comm, NULL, err);
    case CT_COMM_EXCHANGE:
    case CT_COMM_OP_COUNT:
        break;
    }
    return CT_FAIL(err, CT_ERR_STATE, "the self-test does not call %s", ct_comm_op_name(op));
}

/* ---- whole numbers: exact in f32 in any order of summation, for up to 16384 members ------------------------------ */

/* What member r puts at place i: both parts are below 2^10, and so is their share of a sum below 2^24. */
static float number_of(int member, int64_t i)
{
    return (float)(i % 509) + (float)(member % 509);
}

static float sum_of(int n, int64_t i)
{
    int64_t members = 0;
    for (int r = 0; r < n; r++) {
        members += r % 509;
    }
    return (float)(n * (i % 509) + members);
}

/* out [count] at `at` of the whole, of one member, or of their sum. */
static tally compare_numbers(const float *out, int64_t at, int64_t count, int n, int member)
{
    tally t = {0};
    const float rest = member < 0 ? sum_of(n, 0) : number_of(member, 0), times = member < 0 ? (float)n : 1.0f;
    for (int64_t i = 0; i < count; i++) {
        if (out[i] != times * (float)((at + i) % 509) + rest) {
            wrong(&t, i);
        }
    }
    return t;
}

ct_status cti_selftest_check(cti_selftest_state *s, int group, ct_comm_op op, int64_t size_bytes, ct_err *err)
{
    ct_comm *comm = comm_of(s, group);
    const int n = ct_comm_size(comm), me = ct_comm_rank(comm), root = n - 1;
    const int64_t count = cti_selftest_count(op, n, size_bytes, CT_DTYPE_F32);
    const bool has_pieces = op == CT_COMM_REDUCE_SCATTER || op == CT_COMM_ALL_TO_ALL;
    const bool reduces = op == CT_COMM_ALL_REDUCE || op == CT_COMM_REDUCE_SCATTER;
    float *in = op == CT_COMM_BROADCAST ? s->out : s->in, *out = s->out;
    memset(s->out, 0xff, s->room_bytes); /* NaN: what is not written is wrong */
    const int64_t n_in = has_pieces ? n * count : count;
    for (int64_t i = 0; i < n_in; i++) {
        in[i] = number_of(me, i);
    }
    CT_TRY(cti_selftest_call(s, group, op, count, CT_DTYPE_F32, root, err));
    cti_selftest_failure f = {.from = -1, .op = op, .group = group, .dtype = CT_DTYPE_F32, .size_bytes = size_bytes, .n_elements = count};
    if (reduces || op == CT_COMM_BROADCAST) {
        const int64_t at = op == CT_COMM_REDUCE_SCATTER ? me * count : 0;
        const tally t = compare_numbers(out, at, count, n, reduces ? -1 : root);
        f.from = reduces ? -1 : ct_comm_world_rank_of(comm, root);
        note(s, &t, &f);
        return CT_OK;
    }
    for (int r = 0; r < n; r++) { /* all_gather and all_to_all: a piece of each member */
        const tally t = compare_numbers(out + r * count, has_pieces ? me * count : 0, count, n, r);
        f.from = ct_comm_world_rank_of(comm, r);
        note(s, &t, &f);
    }
    return CT_OK;
}

/* ---- bits of ordered sums ----------------------------------------------------------------------------------------- */

/* Values of sizes so apart that the order of a sum changes its last bits. (splitmix64 of Steele, Lea, Flood 2014.) */
static double value_of(int member, int64_t i)
{
    uint64_t x = ((uint64_t)member << 40) + (uint64_t)i + 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    return ((double)(x >> 11) * 0x1p-53 - 0.5) * (i % 3 == 0 ? 1e4 : 1e-2);
}

static void store(void *data, ct_dtype dtype, int64_t i, double value)
{
    if (dtype == CT_DTYPE_F32) {
        ((float *)data)[i] = (float)value;
    } else if (dtype == CT_DTYPE_BF16) {
        ((uint16_t *)data)[i] = cti_f32_to_bf16((float)value);
    } else if (dtype == CT_DTYPE_F64) {
        ((double *)data)[i] = value;
    } else {
        ((int64_t *)data)[i] = (int64_t)(value * 0x1p40);
    }
}

/* The value as it goes into a sum. */
static double addend(ct_dtype dtype, int member, int64_t i)
{
    const double v = value_of(member, i);
    return dtype == CT_DTYPE_BF16 ? (double)cti_bf16_to_f32(cti_f32_to_bf16((float)v)) : dtype == CT_DTYPE_F64 ? v : (double)(float)v;
}

/* Members [a, b): the lower half plus the upper half, rounded to the accumulator's dtype each time. */
static double ordered_sum(ct_dtype dtype, int a, int b, int64_t i)
{
    if (b - a == 1) {
        return addend(dtype, a, i);
    }
    const int middle = a + (b - a) / 2;
    const double lower = ordered_sum(dtype, a, middle, i), upper = ordered_sum(dtype, middle, b, i);
    return dtype == CT_DTYPE_F64 ? lower + upper : (double)((float)lower + (float)upper);
}

static void store_sum(void *data, ct_dtype dtype, int n, int64_t i)
{
    if (dtype != CT_DTYPE_I64) {
        store(data, dtype, 0, ordered_sum(dtype, 0, n, i));
        return;
    }
    uint64_t sum = 0;
    for (int r = 0; r < n; r++) {
        int64_t x;
        store(&x, dtype, 0, value_of(r, i));
        sum += (uint64_t)x;
    }
    memcpy(data, &sum, sizeof sum);
}

ct_status cti_selftest_check_bits(cti_selftest_state *s, int group, ct_comm_op op, int64_t size_bytes, ct_dtype dtype, ct_err *err)
{
    ct_comm *comm = comm_of(s, group);
    const int n = ct_comm_size(comm), me = ct_comm_rank(comm);
    const int64_t count = cti_selftest_count(op, n, size_bytes, dtype);
    const bool is_scatter = op == CT_COMM_REDUCE_SCATTER;
    for (int64_t i = 0; i < (is_scatter ? n * count : count); i++) {
        store(s->in, dtype, i, value_of(me, i));
    }
    memset(s->out, 0xff, s->room_bytes);
    CT_TRY(cti_selftest_call(s, group, op, count, dtype, 0, err));
    const size_t size = ct_dtype_size_bytes(dtype);
    tally t = {0};
    for (int64_t i = 0; i < count; i++) {
        unsigned char want[8];
        store_sum(want, dtype, n, is_scatter ? me * count + i : i);
        if (memcmp(want, (const unsigned char *)s->out + (size_t)i * size, size) != 0) {
            wrong(&t, i);
        }
    }
    const cti_selftest_failure f = {.from = -1, .op = op, .group = group, .dtype = dtype, .is_bits = 1, .size_bytes = size_bytes, .n_elements = count};
    note(s, &t, &f);
    return CT_OK;
}

/* ---- links -------------------------------------------------------------------------------------------------------- */

static unsigned char byte_of(int64_t i, int from, int to)
{
    return (unsigned char)((((uint64_t)i + 1) * 2654435761u + (uint64_t)from * 40503u + (uint64_t)to * 30011u) >> 11);
}

void cti_selftest_fill_link(void *data, int64_t size_bytes, int from, int to)
{
    for (int64_t i = 0; i < size_bytes; i++) {
        ((unsigned char *)data)[i] = byte_of(i, from, to);
    }
}

void cti_selftest_check_link(cti_selftest_state *s, const void *data, int64_t size_bytes, int from, int to)
{
    tally t = {0};
    for (int64_t i = 0; i < size_bytes; i++) {
        if (((const unsigned char *)data)[i] != byte_of(i, from, to)) {
            wrong(&t, i);
        }
    }
    const cti_selftest_failure f = {.from = from, .op = CT_COMM_EXCHANGE, .dtype = CT_DTYPE_U8, .size_bytes = size_bytes, .n_elements = size_bytes};
    note(s, &t, &f);
}
