/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank does to try an engine: every collective, dtype and odd size, on the world and on groups of it, against plain host loops. */
#ifndef TESTS_DIST_COMM_BODIES_H
#define TESTS_DIST_COMM_BODIES_H

#include "base/num.h"
#include "dist/comm_fork.h"

enum { MAX_RANKS = 4, GUARD = 0xA5 };

static const ct_dtype reducible[] = {CT_DTYPE_F32, CT_DTYPE_BF16, CT_DTYPE_F64, CT_DTYPE_I32, CT_DTYPE_I64};
/* Around the block of the reduction, the small all_reduce and (4 MiB / size / ranks) the piece of a round. */
static const int64_t counts[] = {0, 1, 3, 257, 4097};
static const int64_t big_count = 800011;

/* Values whose sums round differently in different orders. (splitmix64 of Steele, Lea, Flood 2014: cheaper than base/rng.) */
static void fill(void *data, ct_dtype dtype, int64_t count, int world_rank, uint64_t salt)
{
    uint64_t state = salt * 1000 + (uint64_t)world_rank;
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits = state += 0x9e3779b97f4a7c15u;
        bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
        bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
        bits ^= bits >> 31;
        double v = ((double)(bits >> 11) * 0x1p-53 - 0.5) * (i % 3 == 0 ? 1e4 : 1e-2);
        switch ((int)dtype) {
        case CT_DTYPE_F32:
            ((float *)data)[i] = (float)v;
            break;
        case CT_DTYPE_BF16:
            ((uint16_t *)data)[i] = cti_f32_to_bf16((float)v);
            break;
        case CT_DTYPE_F64:
            ((double *)data)[i] = v;
            break;
        case CT_DTYPE_I32:
            ((int32_t *)data)[i] = (int32_t)(uint32_t)bits;
            break;
        case CT_DTYPE_I64:
            ((int64_t *)data)[i] = (int64_t)bits;
            break;
        default:
            ((uint8_t *)data)[i] = (uint8_t)bits;
            break;
        }
    }
}

/* One element as its accumulator, and back; plain recursion over halves. Independent of src/comm/comm_reduce.c. */
typedef union number {
    float f;
    double d;
    uint32_t u32;
    uint64_t u64;
} number;

static number load(const void *data, ct_dtype dtype, int64_t i)
{
    number x = {.u64 = 0};
    switch ((int)dtype) {
    case CT_DTYPE_F32:
        x.f = ((const float *)data)[i];
        break;
    case CT_DTYPE_BF16:
        x.f = cti_bf16_to_f32(((const uint16_t *)data)[i]);
        break;
    case CT_DTYPE_F64:
        x.d = ((const double *)data)[i];
        break;
    case CT_DTYPE_I32:
        x.u32 = ((const uint32_t *)data)[i];
        break;
    default:
        x.u64 = ((const uint64_t *)data)[i];
        break;
    }
    return x;
}

static number combine(number a, number b, ct_dtype dtype, ct_reduce_op op)
{
    number r = {.u64 = 0};
    bool first;
    switch ((int)dtype) {
    case CT_DTYPE_F32:
    case CT_DTYPE_BF16:
        first = op == CT_REDUCE_MAX ? a.f > b.f : a.f < b.f;
        r.f = op == CT_REDUCE_SUM ? a.f + b.f : (first ? a.f : b.f);
        break;
    case CT_DTYPE_F64:
        first = op == CT_REDUCE_MAX ? a.d > b.d : a.d < b.d;
        r.d = op == CT_REDUCE_SUM ? a.d + b.d : (first ? a.d : b.d);
        break;
    case CT_DTYPE_I32:
        first = op == CT_REDUCE_MAX ? (int32_t)a.u32 > (int32_t)b.u32 : (int32_t)a.u32 < (int32_t)b.u32;
        r.u32 = op == CT_REDUCE_SUM ? a.u32 + b.u32 : (first ? a.u32 : b.u32);
        break;
    default:
        first = op == CT_REDUCE_MAX ? (int64_t)a.u64 > (int64_t)b.u64 : (int64_t)a.u64 < (int64_t)b.u64;
        r.u64 = op == CT_REDUCE_SUM ? a.u64 + b.u64 : (first ? a.u64 : b.u64);
        break;
    }
    return r;
}

static number halves(void *const *parts, int a, int b, ct_dtype dtype, int64_t i, ct_reduce_op op)
{
    if (b - a == 1) {
        return load(parts[a], dtype, i);
    }
    int middle = a + (b - a) / 2;
    return combine(halves(parts, a, middle, dtype, i, op), halves(parts, middle, b, dtype, i, op), dtype, op);
}

static void expect_reduced(const void *out, void *const *parts, int n, ct_dtype dtype, int64_t from, int64_t count,
                           ct_reduce_op op)
{
    for (int64_t i = 0; i < count; i++) {
        number want = halves(parts, 0, n, dtype, from + i, op);
        uint16_t narrow = dtype == CT_DTYPE_BF16 ? cti_f32_to_bf16(want.f) : 0;
        const void *bytes = dtype == CT_DTYPE_BF16 ? (const void *)&narrow : (const void *)&want;
        size_t size = ct_dtype_size_bytes(dtype);
        CHECK(memcmp((const char *)out + (size_t)i * size, bytes, size) == 0);
    }
}

typedef struct buffers {
    void *parts[MAX_RANKS]; /* what each member puts in: [size * count] */
    unsigned char *out;     /* [size * count] elements and a guard */
} buffers;

static buffers make_buffers(const ct_comm *comm, ct_dtype dtype, int64_t count, uint64_t salt)
{
    buffers b = {.out = NULL};
    int n = ct_comm_size(comm);
    size_t bytes = (size_t)(count * n) * ct_dtype_size_bytes(dtype);
    for (int r = 0; r < n; r++) {
        b.parts[r] = CT_NEW_ARRAY(ct_alloc_system(), char, bytes + 64, NULL);
        CHECK(b.parts[r] != NULL);
        fill(b.parts[r], dtype, count * n, ct_comm_world_rank_of(comm, r), salt);
    }
    b.out = CT_NEW_ARRAY(ct_alloc_system(), unsigned char, bytes + 64, NULL);
    CHECK(b.out != NULL);
    memset(b.out, GUARD, bytes + 64);
    return b;
}

static void free_buffers(const ct_comm *comm, buffers *b)
{
    for (int r = 0; r < ct_comm_size(comm); r++) {
        ct_alloc_free(ct_alloc_system(), b->parts[r]);
    }
    ct_alloc_free(ct_alloc_system(), b->out);
}

static void expect_guard(const buffers *b, size_t written_bytes)
{
    for (size_t i = 0; i < 64; i++) {
        CHECK(b->out[written_bytes + i] == GUARD);
    }
}

static void try_reductions(ct_comm *comm, ct_dtype dtype, int64_t count, ct_reduce_op op)
{
    int n = ct_comm_size(comm), me = ct_comm_rank(comm);
    size_t size = ct_dtype_size_bytes(dtype);
    ct_err err = {0};
    buffers b = make_buffers(comm, dtype, count, 1);
    TRY(ct_comm_all_reduce(comm, b.parts[me], b.out, count, dtype, op, NULL, &err));
    expect_reduced(b.out, b.parts, n, dtype, 0, count, op);
    expect_guard(&b, (size_t)count * size);
    memset(b.out, GUARD, (size_t)count * size);
    TRY(ct_comm_reduce_scatter(comm, b.parts[me], b.out, count, dtype, op, NULL, &err));
    expect_reduced(b.out, b.parts, n, dtype, me * count, count, op);
    expect_guard(&b, (size_t)count * size);
    /* In place: the piece of a reduce_scatter, then the whole of an all_reduce. */
    unsigned char *all = b.out;
    memcpy(all, b.parts[me], (size_t)(n * count) * size);
    unsigned char *mine = all + (size_t)(me * count) * size;
    TRY(ct_comm_reduce_scatter(comm, all, mine, count, dtype, op, NULL, &err));
    expect_reduced(mine, b.parts, n, dtype, me * count, count, op);
    memcpy(all, b.parts[me], (size_t)(n * count) * size);
    TRY(ct_comm_all_reduce(comm, all, all, n * count, dtype, op, NULL, &err));
    expect_reduced(all, b.parts, n, dtype, 0, n * count, op);
    expect_guard(&b, (size_t)(n * count) * size);
    free_buffers(comm, &b);
}

static void try_moves(ct_comm *comm, ct_dtype dtype, int64_t count)
{
    int n = ct_comm_size(comm), me = ct_comm_rank(comm);
    size_t bytes = (size_t)count * ct_dtype_size_bytes(dtype);
    ct_err err = {0};
    buffers b = make_buffers(comm, dtype, count, 2);
    TRY(ct_comm_all_gather(comm, b.parts[me], b.out, count, dtype, NULL, &err));
    for (int r = 0; r < n; r++) {
        CHECK(memcmp(b.out + (size_t)r * bytes, b.parts[r], bytes) == 0);
    }
    expect_guard(&b, (size_t)n * bytes);
    TRY(ct_comm_all_to_all(comm, b.parts[me], b.out, count, dtype, NULL, &err));
    for (int r = 0; r < n; r++) {
        CHECK(memcmp(b.out + (size_t)r * bytes, (char *)b.parts[r] + (size_t)me * bytes, bytes) == 0);
    }
    for (int root = 0; root < n; root++) {
        memcpy(b.out, b.parts[me], bytes);
        TRY(ct_comm_broadcast(comm, b.out, count, dtype, root, NULL, &err));
        CHECK(memcmp(b.out, b.parts[root], bytes) == 0);
    }
    /* A ring that would deadlock with blocking sends, and a message to itself. */
    int next = (me + 1) % n, last = (me + n - 1) % n;
    ct_p2p ring[] = {{CT_P2P_SEND, next, b.parts[me], count, dtype},
                     {CT_P2P_SEND, me, b.parts[me], count, dtype},
                     {CT_P2P_RECV, last, b.out, count, dtype},
                     {CT_P2P_RECV, me, b.out + bytes, count, dtype}};
    if (n > 1) {
        TRY(ct_comm_exchange(comm, ring, 4, NULL, &err));
        CHECK(memcmp(b.out, b.parts[last], bytes) == 0);
        CHECK(memcmp(b.out + bytes, b.parts[me], bytes) == 0);
    }
    expect_guard(&b, (size_t)n * bytes);
    free_buffers(comm, &b);
}

/* Member i sends i*3 + j elements to j. */
static void try_all_to_all_v(ct_comm *comm)
{
    int n = ct_comm_size(comm), me = ct_comm_rank(comm);
    int64_t in_counts[MAX_RANKS], out_counts[MAX_RANKS], in[64], out[64], n_in = 0, n_out = 0;
    for (int j = 0; j < n; j++) {
        in_counts[j] = me * 3 + j;
        out_counts[j] = j * 3 + me;
        for (int64_t k = 0; k < in_counts[j]; k++) {
            in[n_in++] = me * 10000 + j * 100 + k;
        }
    }
    ct_err err = {0};
    TRY(ct_comm_all_to_all_v(comm, in, in_counts, out, out_counts, CT_DTYPE_I64, NULL, &err));
    for (int j = 0; j < n; j++) {
        for (int64_t k = 0; k < out_counts[j]; k++) {
            CHECK(out[n_out++] == j * 10000 + me * 100 + k);
        }
    }
}

static void try_point_to_point(ct_comm *comm)
{
    ct_err err = {0};
    int64_t data[3] = {0, 0, 0};
    for (int64_t i = 0; i < 3; i++) {
        if (ct_comm_rank(comm) == 0) {
            data[0] = 40 + i;
            TRY(ct_comm_send(comm, data, 1, CT_DTYPE_I64, 1, NULL, &err));
        } else if (ct_comm_rank(comm) == 1) {
            TRY(ct_comm_recv(comm, &data[i], 1, CT_DTYPE_I64, 0, NULL, &err));
            CHECK(data[i] == 40 + i);
        }
    }
}

static void try_nan(ct_comm *comm)
{
    float in[2] = {1.0f, (float)ct_comm_rank(comm)}, out[2];
    ct_err err = {0};
    if (ct_comm_rank(comm) == ct_comm_size(comm) - 1) {
        in[0] = (float)NAN;
    }
    TRY(ct_comm_all_reduce(comm, in, out, 2, CT_DTYPE_F32, CT_REDUCE_MAX, NULL, &err));
    CHECK(isnan(out[0]) && out[1] == (float)(ct_comm_size(comm) - 1));
    TRY(ct_comm_all_reduce(comm, in, out, 2, CT_DTYPE_F32, CT_REDUCE_MIN, NULL, &err));
    CHECK(isnan(out[0]) && out[1] == 0.0f);
}

static void try_all(ct_comm *comm)
{
    ct_err err = {0};
    for (size_t d = 0; d < sizeof reducible / sizeof reducible[0]; d++) {
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            try_reductions(comm, reducible[d], counts[c], CT_REDUCE_SUM);
        }
        try_reductions(comm, reducible[d], 257, CT_REDUCE_MAX);
        try_reductions(comm, reducible[d], 257, CT_REDUCE_MIN);
    }
    for (int d = 0; d < CT_DTYPE_COUNT; d++) {
        if (d != CT_DTYPE_F16) {
            try_moves(comm, (ct_dtype)d, 257);
        }
    }
    try_moves(comm, CT_DTYPE_U8, 1);
    try_all_to_all_v(comm);
    if (ct_comm_size(comm) > 1) {
        try_point_to_point(comm);
        try_nan(comm);
    }
    TRY(ct_comm_barrier(comm, NULL, &err));
}

static void collectives(ct_comm *world)
{
    ct_err err = {0};
    int me = ct_comm_rank(world), n = ct_comm_size(world);
    try_all(world);
    try_reductions(world, CT_DTYPE_F32, big_count, CT_REDUCE_SUM);
    if (n != 4) {
        return;
    }
    /* 2 x 2: lines and columns, and a group in another order than the world's. */
    ct_comm *line, *column, *backwards, *alone;
    TRY(ct_comm_split(world, "tp", (const int[]){me / 2 * 2, me / 2 * 2 + 1}, 2, &line, &err));
    TRY(ct_comm_split(world, "dp", (const int[]){me % 2, me % 2 + 2}, 2, &column, &err));
    TRY(ct_comm_split(world, "back", (const int[]){3, 2, 1, 0}, 4, &backwards, &err));
    TRY(ct_comm_split(line, "alone", (const int[]){me % 2}, 1, &alone, &err));
    CHECK(ct_comm_rank(line) == me % 2 && ct_comm_rank(column) == me / 2 && ct_comm_rank(backwards) == 3 - me);
    try_all(line);
    try_all(column);
    try_all(backwards);
    try_all(alone);
    CHECK(ct_comm_split(world, "back", (const int[]){3, 2, 1, 0}, 4, &backwards, &err) == CT_ERR_STATE);
    ct_comm_destroy(&alone);
    ct_comm_destroy(&backwards);
    ct_comm_destroy(&column);
    ct_comm_destroy(&line);
    /* The same name and list again, after it was closed. */
    TRY(ct_comm_split(world, "tp", (const int[]){me / 2 * 2, me / 2 * 2 + 1}, 2, &line, &err));
    try_point_to_point(line);
    ct_comm_destroy(&line);
}

/* What a call is counted for is what ct_comm_built_sent_bytes says that it will be. */
static void expect_sent(ct_comm *world, ct_comm_op op, int64_t count, ct_dtype dtype)
{
    ct_err err = {0};
    ct_comm_stats before, after;
    int n = ct_comm_size(world);
    buffers b = make_buffers(world, dtype, count, 3);
    const void *in = b.parts[ct_comm_rank(world)];
    ct_comm_get_stats(world, &before);
    if (op == CT_COMM_ALL_REDUCE) {
        TRY(ct_comm_all_reduce(world, in, b.out, count, dtype, CT_REDUCE_SUM, NULL, &err));
    } else if (op == CT_COMM_REDUCE_SCATTER) {
        TRY(ct_comm_reduce_scatter(world, in, b.out, count, dtype, CT_REDUCE_SUM, NULL, &err));
    } else if (op == CT_COMM_ALL_GATHER) {
        TRY(ct_comm_all_gather(world, in, b.out, count, dtype, NULL, &err));
    } else {
        TRY(ct_comm_all_to_all(world, in, b.out, count, dtype, NULL, &err));
    }
    ct_comm_get_stats(world, &after);
    CHECK(after.op[op].n_calls == before.op[op].n_calls + (count > 0));
    CHECK(after.op[op].sent_bytes - before.op[op].sent_bytes == ct_comm_built_sent_bytes(op, n, ct_comm_rank(world), count, dtype));
    free_buffers(world, &b);
}

static void statistics(ct_comm *world)
{
    ct_err err = {0};
    float in[6] = {0}, out[6];
    ct_comm_stats stats;
    int n = ct_comm_size(world);
    TRY(ct_comm_all_gather(world, in, out, 3, CT_DTYPE_F32, NULL, &err));
    ct_comm_get_stats(world, &stats);
    CHECK(stats.op[CT_COMM_ALL_GATHER].n_calls == 1);
    CHECK(stats.op[CT_COMM_ALL_GATHER].sent_bytes == (n - 1) * 12);
    CHECK(stats.op[CT_COMM_ALL_GATHER].received_bytes == (n - 1) * 12);
    CHECK(stats.op[CT_COMM_ALL_REDUCE].n_calls == 0);
    static const ct_comm_op ops[] = {CT_COMM_ALL_REDUCE, CT_COMM_REDUCE_SCATTER, CT_COMM_ALL_GATHER, CT_COMM_ALL_TO_ALL};
    static const int64_t lengths[] = {0, 1, 3, 4096, 4097, 8192, 8193, 100001, 1500007};
    for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++) {
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            expect_sent(world, ops[o], lengths[i], CT_DTYPE_F32);
        }
        expect_sent(world, ops[o], 8191, CT_DTYPE_BF16);
        expect_sent(world, ops[o], 700001, CT_DTYPE_BF16);
    }
    /* All the same, then one that differs: every rank names it. */
    TRY(ct_comm_check_same(world, "abc", 3, "the settings", &err));
    const char *text = ct_comm_rank(world) == 1 ? "abd" : "abc";
    CHECK(ct_comm_check_same(world, text, 3, "the settings", &err) == CT_ERR_USAGE);
    CHECK(strstr(err.message, "the settings: rank 1 and rank 0 differ") != NULL);
}

#endif
