/* SPDX-License-Identifier: Apache-2.0 */
/* HCCL's engine on the doubles of CANN: every collective, dtype and size on 2 and 4 ranks and on groups of them; sums of f64 have the bits of every
 * other engine; faults have one clear error each, on all ranks, and nothing hangs. With CT_NPU_HARDWARE=1 the collectives of two ranks run on two real devices. */
/* rooms: backend/npu comm/hccl comm/local comm cann backend base */
/* labels: slow */
#include "base/num.h"
#include "comm/comm_reduce.h"
#include "dist/hccl_fork.h"

enum { MAX_RANKS = 4 };

/* f32 and bf16: whole numbers of -8 to 8, whose sums are exact in any order; f64: anything; integers: all bits. */
static void fill(void *data, ct_dtype dtype, int64_t count, int world_rank, uint64_t salt)
{
    uint64_t state = salt * 1000 + (uint64_t)world_rank;
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits = state += 0x9e3779b97f4a7c15u; /* splitmix64 */
        bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
        bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
        bits ^= bits >> 31;
        const float whole = (float)(int)(bits % 17) - 8.0f;
        switch (dtype) {
        case CT_DTYPE_F32:
            ((float *)data)[i] = whole;
            break;
        case CT_DTYPE_BF16:
        case CT_DTYPE_F16: /* only moved */
            ((uint16_t *)data)[i] = cti_f32_to_bf16(whole);
            break;
        case CT_DTYPE_F64:
            ((double *)data)[i] = ((double)(bits >> 11) * 0x1p-53 - 0.5) * (i % 3 == 0 ? 1e4 : 1e-2);
            break;
        case CT_DTYPE_I32:
            ((int32_t *)data)[i] = (int32_t)(uint32_t)bits;
            break;
        case CT_DTYPE_I64:
            ((int64_t *)data)[i] = (int64_t)bits;
            break;
        case CT_DTYPE_U8:
        case CT_DTYPE_COUNT:
            ((uint8_t *)data)[i] = (uint8_t)bits;
            break;
        }
    }
}

static void *host(size_t bytes)
{
    void *p = ct_alloc_zeroed(ct_alloc_system(), bytes + 1, 1, NULL);
    CHECK(p != NULL);
    return p;
}

static void drop_host(void *p)
{
    ct_alloc_free(ct_alloc_system(), p);
}

/* What every member puts in, [size * count] each. */
static void make_parts(const ct_comm *comm, ct_dtype dtype, int64_t count, uint64_t salt, void *parts[MAX_RANKS])
{
    for (int i = 0; i < ct_comm_size(comm); i++) {
        parts[i] = host((size_t)(count * ct_comm_size(comm)) * ct_dtype_size_bytes(dtype));
        fill(parts[i], dtype, count * ct_comm_size(comm), ct_comm_world_rank_of(comm, i), salt);
    }
}

static void drop_parts(const ct_comm *comm, void *parts[MAX_RANKS])
{
    for (int i = 0; i < ct_comm_size(comm); i++) {
        drop_host(parts[i]);
    }
}

/* By halves, which is exact where the order does not matter. */
static void expect_reduced(const ct_comm *comm, const void *got, void *const parts[MAX_RANKS], int64_t from, int64_t count, ct_dtype dtype, ct_reduce_op op)
{
    const size_t size = ct_dtype_size_bytes(dtype);
    const void *at[MAX_RANKS];
    void *want = host((size_t)count * size);
    for (int i = 0; i < ct_comm_size(comm); i++) {
        at[i] = (const char *)parts[i] + (size_t)from * size;
    }
    cti_reduce_halves(at, ct_comm_size(comm), want, count, dtype, op);
    CHECK(memcmp(got, want, (size_t)count * size) == 0);
    drop_host(want);
}

static void try_reductions(hccl_rank *r, ct_comm *comm, ct_dtype dtype, int64_t count, ct_reduce_op op)
{
    const int n = ct_comm_size(comm), me = ct_comm_rank(comm);
    const size_t size = ct_dtype_size_bytes(dtype), bytes = (size_t)count * size;
    ct_err err = {0};
    void *parts[MAX_RANKS], *got = host((size_t)n * bytes);
    make_parts(comm, dtype, count, 1, parts);
    void *in = hccl_put(r, parts[me], (size_t)n * bytes), *out = hccl_put(r, NULL, (size_t)n * bytes);
    TRY(ct_comm_all_reduce(comm, in, out, count, dtype, op, r->stream, &err));
    hccl_get(r, got, out, bytes);
    expect_reduced(comm, got, parts, 0, count, dtype, op);
    TRY(ct_comm_reduce_scatter(comm, in, out, count, dtype, op, r->stream, &err));
    hccl_get(r, got, out, bytes);
    expect_reduced(comm, got, parts, me * count, count, dtype, op);
    TRY(ct_comm_all_reduce(comm, in, in, n * count, dtype, op, r->stream, &err)); /* in place */
    hccl_get(r, got, in, (size_t)n * bytes);
    expect_reduced(comm, got, parts, 0, n * count, dtype, op);
    hccl_drop(r, in, (size_t)n * bytes);
    hccl_drop(r, out, (size_t)n * bytes);
    drop_parts(comm, parts);
    drop_host(got);
}

static void try_moves(hccl_rank *r, ct_comm *comm, ct_dtype dtype, int64_t count)
{
    const int n = ct_comm_size(comm), me = ct_comm_rank(comm), next = (me + 1) % n, last = (me + n - 1) % n;
    const size_t bytes = (size_t)count * ct_dtype_size_bytes(dtype);
    ct_err err = {0};
    void *parts[MAX_RANKS];
    char *got = host((size_t)n * bytes);
    make_parts(comm, dtype, count, 2, parts);
    char *in = hccl_put(r, parts[me], (size_t)n * bytes), *out = hccl_put(r, NULL, (size_t)n * bytes);
    TRY(ct_comm_all_gather(comm, in, out, count, dtype, r->stream, &err));
    hccl_get(r, got, out, (size_t)n * bytes);
    for (int i = 0; i < n; i++) {
        CHECK(memcmp(got + (size_t)i * bytes, parts[i], bytes) == 0);
    }
    TRY(ct_comm_all_to_all(comm, in, out, count, dtype, r->stream, &err));
    hccl_get(r, got, out, (size_t)n * bytes);
    for (int i = 0; i < n; i++) {
        CHECK(memcmp(got + (size_t)i * bytes, (char *)parts[i] + (size_t)me * bytes, bytes) == 0);
    }
    const ct_p2p ring[] = {{CT_P2P_SEND, next, in, count, dtype},
                           {CT_P2P_SEND, me, in, count, dtype},
                           {CT_P2P_RECV, last, out, count, dtype},
                           {CT_P2P_RECV, me, out + bytes, count, dtype}};
    if (n > 1) {
        TRY(ct_comm_exchange(comm, ring, 4, r->stream, &err));
        hccl_get(r, got, out, 2 * bytes);
        CHECK(memcmp(got, parts[last], bytes) == 0 && memcmp(got + bytes, parts[me], bytes) == 0);
    }
    for (int root = 0; root < n; root++) {
        TRY(r->npu->copy_to_device(r->device, out, parts[me], bytes, r->stream, &err));
        TRY(ct_comm_broadcast(comm, out, count, dtype, root, r->stream, &err));
        hccl_get(r, got, out, bytes);
        CHECK(memcmp(got, parts[root], bytes) == 0);
    }
    hccl_drop(r, in, (size_t)n * bytes);
    hccl_drop(r, out, (size_t)n * bytes);
    drop_parts(comm, parts);
    drop_host(got);
}

/* Member i sends i * 3 + j elements to j. */
static void try_all_to_all_v(hccl_rank *r, ct_comm *comm)
{
    const int n = ct_comm_size(comm), me = ct_comm_rank(comm);
    int64_t in_counts[MAX_RANKS], out_counts[MAX_RANKS], in[64], out[64], n_in = 0, n_out = 0, at = 0;
    ct_err err = {0};
    for (int j = 0; j < n; j++) {
        in_counts[j] = me * 3 + j;
        out_counts[j] = j * 3 + me;
        n_out += out_counts[j];
        for (int64_t k = 0; k < in_counts[j]; k++) {
            in[n_in++] = me * 10000 + j * 100 + k;
        }
    }
    void *from = hccl_put(r, in, (size_t)n_in * 8), *to = hccl_put(r, NULL, (size_t)n_out * 8);
    TRY(ct_comm_all_to_all_v(comm, from, in_counts, to, out_counts, CT_DTYPE_I64, r->stream, &err));
    hccl_get(r, out, to, (size_t)n_out * 8);
    for (int j = 0; j < n; j++) {
        for (int64_t k = 0; k < out_counts[j]; k++) {
            CHECK(out[at++] == j * 10000 + me * 100 + k);
        }
    }
    hccl_drop(r, from, (size_t)n_in * 8);
    hccl_drop(r, to, (size_t)n_out * 8);
}

static void try_all(hccl_rank *r, ct_comm *comm)
{
    static const ct_dtype reducible[] = {CT_DTYPE_F32, CT_DTYPE_BF16, CT_DTYPE_F64, CT_DTYPE_I32, CT_DTYPE_I64};
    static const int64_t counts[] = {0, 1, 3, 4097};
    ct_err err = {0};
    for (size_t d = 0; d < sizeof reducible / sizeof reducible[0]; d++) {
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            try_reductions(r, comm, reducible[d], counts[c], CT_REDUCE_SUM);
        }
        try_reductions(r, comm, reducible[d], 257, CT_REDUCE_MAX);
        try_reductions(r, comm, reducible[d], 257, CT_REDUCE_MIN);
    }
    for (int d = 0; d < CT_DTYPE_COUNT; d++) {
        try_moves(r, comm, (ct_dtype)d, 257);
    }
    if (ct_comm_size(comm) > 1) {
        try_all_to_all_v(r, comm);
    }
    TRY(ct_comm_barrier(comm, r->stream, &err));
}

static void collectives(hccl_rank *r)
{
    ct_err err = {0};
    const int me = ct_comm_rank(r->world), n = ct_comm_size(r->world);
    CHECK(strcmp(ct_comm_engine_name(r->world), "hccl") == 0 && strcmp(ct_comm_device(r->world), "npu") == 0);
    try_all(r, r->world);
    float x = 1.0f;
    void *p = hccl_put(r, &x, sizeof x);
    CHECK(ct_comm_all_reduce(r->world, p, p, 1, CT_DTYPE_F32, CT_REDUCE_SUM, NULL, &err) == CT_ERR_STATE); /* without a stream */
    err = (ct_err){0};
    CHECK(ct_comm_all_reduce(r->world, p, p, 1, CT_DTYPE_F16, CT_REDUCE_SUM, r->stream, &err) == CT_ERR_SHAPE);
    hccl_drop(r, p, sizeof x);
    if (n != 4) {
        return;
    }
    ct_comm *line, *column, *backwards, *alone;
    err = (ct_err){0};
    TRY(ct_comm_split(r->world, "tp", (const int[]){me / 2 * 2, me / 2 * 2 + 1}, 2, &line, &err));
    TRY(ct_comm_split(r->world, "dp", (const int[]){me % 2, me % 2 + 2}, 2, &column, &err));
    TRY(ct_comm_split(r->world, "back", (const int[]){3, 2, 1, 0}, 4, &backwards, &err));
    TRY(ct_comm_split(line, "alone", (const int[]){me % 2}, 1, &alone, &err));
    try_all(r, line);
    try_all(r, column);
    try_all(r, backwards);
    try_all(r, alone);
    ct_comm_destroy(&alone);
    ct_comm_destroy(&backwards);
    ct_comm_destroy(&column);
    ct_comm_destroy(&line);
    TRY(ct_comm_split(r->world, "tp", (const int[]){me / 2 * 2, me / 2 * 2 + 1}, 2, &line, &err)); /* the name and list again */
    try_all_to_all_v(r, line);
    ct_comm_destroy(&line);
}

static void two_ranks(void **state)
{
    (void)state;
    hccl_expect(&(hccl_case){.n = 2, .body = collectives, .faulty = -1});
}

static void four_ranks(void **state)
{
    (void)state;
    hccl_expect(&(hccl_case){.n = 4, .body = collectives, .faulty = -1});
}

static void the_same_bits(hccl_rank *r)
{
    enum { N = 4099 };
    ct_err err = {0};
    float *in = host(N * sizeof *in), *first = host(N * sizeof *in), *again = host(N * sizeof *in);
    for (int i = 0; i < N; i++) {
        in[i] = (float)(i % 97) * 1e-3f + (float)ct_comm_rank(r->world) * 1e3f / (float)(i + 1);
    }
    void *from = hccl_put(r, in, N * sizeof *in), *to = hccl_put(r, NULL, N * sizeof *in);
    for (int turn = 0; turn < 8; turn++) {
        TRY(ct_comm_all_reduce(r->world, from, to, N, CT_DTYPE_F32, CT_REDUCE_SUM, r->stream, &err));
        hccl_get(r, turn == 0 ? first : again, to, N * sizeof *in);
        CHECK(turn == 0 || memcmp(first, again, N * sizeof *in) == 0);
    }
    hccl_drop(r, from, N * sizeof *in);
    hccl_drop(r, to, N * sizeof *in);
    drop_host(in);
    drop_host(first);
    drop_host(again);
}

static void deterministic_sums_repeat(void **state)
{
    (void)state;
    hccl_expect(&(hccl_case){.n = 4, .body = the_same_bits, .faulty = -1, .is_deterministic = true});
}

/* ---- faults ---- */

static ct_status all_reduce_once(hccl_rank *r, ct_err *err)
{
    float x = 1.0f;
    void *p = hccl_put(r, &x, sizeof x);
    const ct_status st = ct_comm_all_reduce(r->world, p, p, 1, CT_DTYPE_F32, CT_REDUCE_SUM, r->stream, err);
    return ct_comm_settle(r->world, st == CT_OK ? r->npu->synchronize(r->device, r->stream, err) : st, err);
}

/* The double counts what a broken rank leaves; here it is the error that counts. */
static void expect_error(hccl_rank *r, ct_status st, const ct_err *err, const char *const *words)
{
    bool is_named = st != CT_OK;
    for (int i = 0; words[i] != NULL; i++) {
        is_named = is_named && strstr(err->message, words[i]) != NULL;
    }
    if (!is_named) {
        (void)fprintf(stderr, "rank %d: %s: %s\n", ct_comm_rank(r->world), ct_status_name(st), err->message);
    }
    _exit(is_named ? 0 : 1);
}

static void port_of_the_host(hccl_rank *r)
{
    ct_err err = {0};
    const ct_status st = all_reduce_once(r, &err);
    expect_error(r, st, &err, (const char *const[]){"all_reduce in group 'hccl'", "EI0019", "HCCL_HOST_SOCKET_PORT_RANGE", ct_comm_rank(r->world) == 1 ? "rank 0" : "HcclGetRootInfo", NULL});
}

static void port_of_the_npu(hccl_rank *r)
{
    ct_err err = {0};
    const ct_status st = all_reduce_once(r, &err);
    if (ct_comm_rank(r->world) == 1) {
        expect_error(r, st, &err, (const char *const[]){"EI0020", "HCCL_NPU_SOCKET_PORT_RANGE", NULL});
    }
    expect_error(r, st, &err, (const char *const[]){"HCCL communicator of rank 0 of 2", NULL}); /* the other never comes */
}

static void one_is_absent(hccl_rank *r)
{
    ct_err err = {0};
    const ct_status st = all_reduce_once(r, &err);
    CHECK(st == CT_ERR_TIMEOUT);
    CHECK(ct_comm_all_reduce(r->world, &err, &err, 1, CT_DTYPE_F32, CT_REDUCE_SUM, r->stream, NULL) == CT_ERR_TIMEOUT); /* the world is broken */
    expect_error(r, st, &err, (const char *const[]){ct_comm_rank(r->world) == 0 ? "rank 0, with all_reduce 1 of 'hccl'" : "rank 1, with all_reduce 1 of 'hccl'", "EI0002", NULL});
}

static void one_dies(hccl_rank *r)
{
    ct_err err = {0};
    CHECK(all_reduce_once(r, &err) == CT_OK);
    if (ct_comm_rank(r->world) == 1) {
        _exit(0);
    }
    const ct_status st = all_reduce_once(r, &err);
    expect_error(r, st, &err, (const char *const[]){"rank 0, with all_reduce 2 of 'hccl'", NULL});
}

static void no_memory(hccl_rank *r)
{
    ct_err err = {0};
    const ct_status st = all_reduce_once(r, &err);
    if (ct_comm_rank(r->world) == 0) {
        CHECK(st == CT_ERR_MEMORY);
        expect_error(r, st, &err, (const char *const[]){"EI0011", "HCCL_BUFFSIZE", NULL});
    }
    expect_error(r, st, &err, (const char *const[]){"HCCL communicator of rank 1 of 2", NULL});
}

static void faults(void **state)
{
    (void)state;
    const char *const soon = "FAKE_CANN_TIME_SCALE=0.005"; /* 140 s: 0.7 s */
    const hccl_case cases[] = {
        {.n = 2, .body = port_of_the_host, .faulty = 0, .fault = "port_host", .env = {soon}},
        {.n = 2, .body = port_of_the_npu, .faulty = 1, .fault = "port_npu", .env = {soon}},
        {.n = 2, .body = one_is_absent, .faulty = 1, .fault = "hccl_absent", .env = {soon}},
        {.n = 2, .body = one_dies, .faulty = -1, .env = {soon}},
        {.n = 2, .body = no_memory, .faulty = 0, .fault = "oom=2", .env = {soon}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hccl_expect(&cases[i]);
    }
}

/* Two processes on one card meet on its port; with the range that the engine sets they do not. */
static void one_number(hccl_rank *r)
{
    ct_err err = {0};
    float x = 0.0f;
    void *p = hccl_put(r, &(float){2.0f}, sizeof x);
    TRY(ct_comm_all_reduce(r->world, p, p, 1, CT_DTYPE_F32, CT_REDUCE_SUM, r->stream, &err));
    hccl_get(r, &x, p, sizeof x);
    CHECK(x == 4.0f);
    hccl_drop(r, p, sizeof x);
}

static void ports_are_set_where_they_are_not(void **state)
{
    (void)state;
    hccl_expect(&(hccl_case){.n = 2, .body = one_number, .faulty = -1, .shares_device = true});
}

static int need_doubles(void **state)
{
    (void)state;
    static const char *const LIBRARIES[] = {"ascendcl", "nnopbase", "opapi", "hccl"};
    for (size_t i = 0; i < sizeof LIBRARIES / sizeof LIBRARIES[0]; i++) {
        char path[1024];
        (void)snprintf(path, sizeof path, CT_BINARY_DIR "/fake_cann/lib64/lib%s.so", LIBRARIES[i]);
        if (!cti_path_exists(path)) {
            printf("skipped: the double of lib%s is not built\n", LIBRARIES[i]);
            exit(77);
        }
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest on_hardware[] = {cmocka_unit_test(two_ranks)};
    if (hccl_is_on_hardware()) {
        return cmocka_run_group_tests(on_hardware, NULL, NULL);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(two_ranks), cmocka_unit_test(four_ranks), cmocka_unit_test(deterministic_sums_repeat),
                                       cmocka_unit_test(ports_are_set_where_they_are_not), cmocka_unit_test(faults)};
    return cmocka_run_group_tests(tests, need_doubles, NULL);
}
