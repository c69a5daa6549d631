/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: base */
/* labels: fast */
/* What the double of libhccl computes: every call on two and four ranks, in processes and in place, late, and
 * the order of sums. */
#include "hccl_test.h"

#include <math.h>

enum { N = 6 };
static void *comm, *stream;
static uint32_t me, all;

static void enter(uint32_t rank, uint32_t n, const struct root *root)
{
    me = rank;
    all = n;
    GIVES(0, hccl.HcclCommInitRootInfo(n, root, rank, &comm));
    stream = new_stream();
}

static void *upload(const void *bytes, size_t size)
{
    void *p = device_bytes(size);
    GIVES(0, acl.aclrtMemcpy(p, size, bytes, size, 1));
    return p;
}

/* Waits, and holds the float32 data on the device against what they should be. */
static void expect(const void *p, const float *want, size_t n)
{
    float got[64];
    GIVES(0, acl.aclrtSynchronizeStream(stream));
    GIVES(0, acl.aclrtMemcpy(got, sizeof got, p, n * sizeof got[0], 2));
    for (size_t i = 0; i < n; i++) {
        if (got[i] != want[i]) {
            (void)fprintf(stderr, "rank %u, element %zu: wanted %g, got %g\n", me, i, (double)want[i],
                          (double)got[i]);
            _exit(2);
        }
    }
}

/* Element i of rank r's data. */
static float element(uint32_t r, size_t i)
{
    return (float)(100 * (int)r + (int)i + 1);
}

static void *mine(size_t n)
{
    float values[64];
    for (size_t i = 0; i < n; i++) {
        values[i] = element(me, i);
    }
    return upload(values, n * sizeof values[0]);
}

static void reductions(void)
{
    float sum[64], max[64], min[64], prod[64];
    for (size_t i = 0; i < (size_t)N * all; i++) {
        sum[i] = 0;
        prod[i] = 1;
        for (uint32_t r = 0; r < all; r++) {
            sum[i] += element(r, i);
            prod[i] *= element(r, i);
        }
        max[i] = element(all - 1, i);
        min[i] = element(0, i);
    }
    float *in = mine(N), *out = (float *)(void *)device_bytes(N * sizeof(float));
    GIVES(0, hccl.HcclAllReduce(in, out, N, FP32, SUM, comm, stream));
    expect(out, sum, N);
    GIVES(0, hccl.HcclAllReduce(in, out, N, FP32, MAX, comm, stream));
    expect(out, max, N);
    GIVES(0, hccl.HcclAllReduce(in, out, N, FP32, MIN, comm, stream));
    expect(out, min, N);
    GIVES(0, hccl.HcclAllReduce(in, out, N, FP32, PROD, comm, stream));
    expect(out, prod, 2); /* small ones: exact in every order */
    GIVES(0, hccl.HcclReduce(in, out, N, FP32, SUM, all - 1, comm, stream));
    if (me == all - 1) {
        expect(out, sum, N);
    }
    float *big = mine((size_t)N * all);
    GIVES(0, hccl.HcclReduceScatter(big, out, N, FP32, SUM, comm, stream));
    expect(out, sum + (size_t)me * N, N);
    GIVES(0, hccl.HcclAllReduce(in, in, N, FP32, SUM, comm, stream)); /* in place */
    expect(in, sum, N);
}

static void moves(void)
{
    float gathered[64], first[64], swapped[64];
    for (uint32_t r = 0; r < all; r++) {
        for (size_t i = 0; i < N; i++) {
            gathered[r * N + i] = element(r, i);
            swapped[r * N + i] = element(r, me * N + i);
        }
    }
    for (size_t i = 0; i < N; i++) {
        first[i] = element(1, i);
    }
    float *in = mine(N), *big = (float *)(void *)device_bytes((size_t)N * all * sizeof(float));
    GIVES(0, hccl.HcclAllGather(in, big, N, FP32, comm, stream));
    expect(big, gathered, (size_t)N * all);
    GIVES(0, hccl.HcclBroadcast(in, N, FP32, 1, comm, stream));
    expect(in, first, N);
    float *wide = mine((size_t)N * all);
    GIVES(0, hccl.HcclAlltoAll(wide, N, FP32, big, N, FP32, comm, stream));
    expect(big, swapped, (size_t)N * all);
    GIVES(0, hccl.HcclScatter(me == 0 ? wide : NULL, in, N, FP32, 0, comm, stream));
    for (size_t i = 0; i < N; i++) {
        first[i] = element(0, me * N + i);
    }
    expect(in, first, N);
    /* The own place of the whole, in place. */
    float *whole = (float *)(void *)device_bytes((size_t)N * all * sizeof(float));
    float *own = mine(N);
    GIVES(0, acl.aclrtMemcpyAsync(whole + (size_t)me * N, N * 4, own, N * 4, 3, stream));
    GIVES(0, hccl.HcclAllGather(whole + (size_t)me * N, whole, N, FP32, comm, stream));
    expect(whole, gathered, (size_t)N * all);
    GIVES(0, hccl.HcclBarrier(comm, stream));
}

/* Rank r sends r + 1 elements to every rank, each from another place. */
static void uneven(void)
{
    uint64_t send_counts[8], send_displs[8], recv_counts[8], recv_displs[8], at = 0;
    float want[64];
    for (uint32_t r = 0; r < all; r++) {
        send_counts[r] = me + 1;
        send_displs[r] = (uint64_t)r * 5;
        recv_counts[r] = r + 1;
        recv_displs[r] = at;
        for (size_t i = 0; i <= r; i++) {
            want[at + i] = element(r, me * 5 + i);
        }
        at += r + 1;
    }
    float *in = mine(40), *out = (float *)(void *)device_bytes(64 * sizeof(float));
    GIVES(0, hccl.HcclAlltoAllV(in, send_counts, send_displs, FP32, out, recv_counts, recv_displs, FP32, comm,
                                stream));
    (void)memset(send_counts, 0, sizeof send_counts); /* read before the call returned */
    (void)memset(recv_displs, 0, sizeof recv_displs);
    expect(out, want, at);
}

static void pairs(void)
{
    float want[N];
    float *in = mine(N), *out = (float *)(void *)device_bytes(N * sizeof(float));
    uint32_t next = (me + 1) % all, previous = (me + all - 1) % all;
    for (size_t i = 0; i < N; i++) {
        want[i] = element(previous, i);
    }
    for (int round = 0; round < 40; round++) { /* more than the ring of shared memory has */
        struct pair_item items[] = {{0, in, N, FP32, next}, {1, out, N, FP32, previous}};
        GIVES(0, hccl.HcclBatchSendRecv(items, 2, comm, stream));
    }
    expect(out, want, N);
    if (me % 2 == 0) {
        GIVES(0, hccl.HcclSend(in, N, FP32, next, comm, stream));
        GIVES(0, hccl.HcclRecv(out, N, FP32, previous, comm, stream));
    } else {
        GIVES(0, hccl.HcclRecv(out, N, FP32, previous, comm, stream));
        GIVES(0, hccl.HcclSend(in, N, FP32, next, comm, stream));
    }
    expect(out, want, N);
}

/* bf16 and fp16 round after each addition; integers wrap. */
static void types(void)
{
    uint16_t halves[] = {0x3f80, 0x4380}; /* bf16 1, 256 */
    uint16_t *in = upload(halves, sizeof halves), got[2];
    GIVES(0, hccl.HcclAllReduce(in, in, 2, BFP16, SUM, comm, stream));
    GIVES(0, acl.aclrtSynchronizeStream(stream));
    GIVES(0, acl.aclrtMemcpy(got, sizeof got, in, sizeof got, 2));
    GIVES(all == 2 ? 0x4000 : 0x4080, got[0]);
    GIVES(all == 2 ? 0x4400 : 0x4480, got[1]);
    uint16_t half[] = {0x3c00, 0x6800}; /* fp16 1, 2048 */
    in = upload(half, sizeof half);
    GIVES(0, hccl.HcclAllReduce(in, in, 2, FP16, SUM, comm, stream));
    GIVES(0, acl.aclrtSynchronizeStream(stream));
    GIVES(0, acl.aclrtMemcpy(got, sizeof got, in, sizeof got, 2));
    GIVES(all == 2 ? 0x4000 : 0x4400, got[0]);
    int64_t wide = INT64_C(1) << 62, *whole = upload(&wide, 8);
    GIVES(0, hccl.HcclAllReduce(whole, whole, 1, INT64, MAX, comm, stream));
    GIVES(0, acl.aclrtSynchronizeStream(stream));
    GIVES(0, acl.aclrtMemcpy(&wide, 8, whole, 8, 2));
    HOLDS(wide == INT64_C(1) << 62);
}

/* The even ranks make a communicator of their own. */
static void parts(void)
{
    uint32_t ids[4], n = 0;
    for (uint32_t r = 0; r < all; r += 2) {
        ids[n++] = r;
    }
    if (me % 2 != 0) {
        return;
    }
    struct config config = plain_config();
    (void)snprintf(config.name, sizeof config.name, "evens");
    void *part = NULL;
    char name[128];
    uint32_t size = 0, id = 9;
    GIVES(0, hccl.HcclCreateSubCommConfig(&comm, n, ids, 77, me / 2, &config, &part));
    GIVES(0, hccl.HcclGetRankSize(part, &size));
    GIVES(n, size);
    GIVES(0, hccl.HcclGetRankId(part, &id));
    GIVES(me / 2, id);
    GIVES(0, hccl.HcclGetCommName(part, name));
    HOLDS(strcmp(name, "evens") == 0);
    float *in = mine(1), want = 0;
    for (uint32_t r = 0; r < all; r += 2) {
        want += element(r, 0);
    }
    GIVES(0, hccl.HcclAllReduce(in, in, 1, FP32, SUM, part, stream));
    expect(in, &want, 1);
    GIVES(0, hccl.HcclCommDestroy(part));
}

static void everything(uint32_t rank, uint32_t n, const struct root *root)
{
    enter(rank, n, root);
    int error = 9;
    GIVES(0, hccl.HcclGetCommAsyncError(comm, &error));
    GIVES(0, error);
    reductions();
    moves();
    uneven();
    pairs();
    types();
    parts();
    GIVES(0, acl.aclrtSynchronizeStream(stream));
    GIVES(0, hccl.HcclCommDestroy(comm));
    GIVES(0, acl.fake_rule_hits(FAKE_R_UNORDERED) + acl.fake_rule_hits(FAKE_R_UNORDERED_HOST));
    GIVES(0, acl.fake_live_count(FAKE_COMM));
}

static void two(void)
{
    ranks(2, false, everything);
}

static void four(void)
{
    ranks(4, false, everything);
}

static void two_on_one_card(void)
{
    ranks(2, true, everything);
}

/* How many different sums 30 AllReduces of the same numbers give. */
static int sums;

static void order_body(uint32_t rank, uint32_t n, const struct root *root)
{
    static const float values[] = {1e8f, 1, -1e8f, 1};
    enter(rank, n, root);
    float *in = upload(&values[rank], 4), *out = (float *)(void *)device_bytes(4), seen[30], got = 0;
    sums = 0;
    for (int i = 0; i < 30; i++) {
        GIVES(0, hccl.HcclAllReduce(in, out, 1, FP32, SUM, comm, stream));
        GIVES(0, acl.aclrtSynchronizeStream(stream));
        GIVES(0, acl.aclrtMemcpy(&got, 4, out, 4, 2));
        int k = 0;
        while (k < sums && seen[k] != got) {
            k++;
        }
        seen[k] = got;
        sums += k == sums;
    }
}

static void any_order(void)
{
    ranks(4, false, order_body);
    HOLDS(sums > 1);
}

static void one_order(void)
{
    ranks(4, false, order_body);
    GIVES(1, sums);
}

/* A process that uses two devices: its streams must wait for the collective by an event. */
static void waits_body(uint32_t rank, uint32_t n, const struct root *root)
{
    enter(rank, n, root);
    void *other = new_stream(), *event = NULL;
    float *in = mine(N), want[N], *copy = (float *)(void *)device_bytes(N * 4);
    GIVES(0, acl.aclrtCreateEventExWithFlag(&event, 1));
    GIVES(0, hccl.HcclAllReduce(in, in, N, FP32, SUM, comm, stream));
    GIVES(0, acl.aclrtRecordEvent(event, stream));
    GIVES(0, acl.aclrtStreamWaitEvent(other, event));
    GIVES(0, acl.aclrtMemcpyAsync(copy, N * 4, in, N * 4, 3, other));
    for (size_t i = 0; i < N; i++) {
        want[i] = element(0, i) + element(1, i);
    }
    stream = other;
    expect(copy, want, N);
    GIVES(0, acl.fake_rule_hits(FAKE_R_UNORDERED));
}

static void waits(void)
{
    ranks(2, false, waits_body);
}

static void alone_body(uint32_t rank, uint32_t n, const struct root *root)
{
    enter(rank, n, root);
    float *in = mine(N), *out = (float *)(void *)device_bytes(N * 4), want[N];
    for (size_t i = 0; i < N; i++) {
        want[i] = element(0, i);
    }
    GIVES(0, hccl.HcclAllReduce(in, out, N, FP32, SUM, comm, stream));
    expect(out, want, N);
    GIVES(0, hccl.HcclAllReduce(in, in, N, FP32, SUM, comm, stream));
    GIVES(0, hccl.HcclSend(in, N, FP32, 0, comm, stream));
    GIVES(0, hccl.HcclRecv(in, N, FP32, 0, comm, stream));
    expect(in, want, N);
    HOLDS(strcmp(hccl.HcclGetErrorString(0), hccl.HcclGetErrorString(7)) != 0);
    HOLDS(hccl.HcclGetErrorString(4711) != NULL);
}

static void alone(void)
{
    ranks(1, false, alone_body);
}

static const struct {
    const char *name;
    void (*run)(void);
    const char *settings;
} cases[] = {
    {"one rank", alone, NULL},
    {"two ranks", two, "FAKE_CANN_DEVICES=4"},
    {"four ranks", four, "FAKE_CANN_DEVICES=4"},
    {"four ranks, late", four, "FAKE_CANN_DEVICES=4 FAKE_CANN_LATE=5"},
    {"two ranks on one card", two_on_one_card, "HCCL_NPU_SOCKET_PORT_RANGE=60000-60200"},
    {"any order of ranks", any_order, "FAKE_CANN_DEVICES=4"},
    {"one order of ranks", one_order, "FAKE_CANN_DEVICES=4 HCCL_DETERMINISTIC=true"},
    {"streams wait by events", waits, NULL},
};

int main(void)
{
    int bad = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pid_t child = fork();
        if (child == 0) {
            set_words(cases[i].settings);
            load_acl();
            cases[i].run();
            _exit(0);
        }
        int status = -1;
        (void)waitpid(child, &status, 0);
        if (status != 0) {
            (void)fprintf(stderr, "%s: failed (status 0x%x)\n", cases[i].name, status);
            bad++;
        }
    }
    return bad == 0 ? 0 : 1;
}
