/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: base */
/* labels: slow */
/* Each rule of the double of libhccl is broken in processes of its own, and caught. */
#include "hccl_test.h"

#include <pthread.h>
#include <sched.h>

/* A communicator of this process alone. */
static void *alone(void)
{
    begin(0);
    struct root root;
    void *comm = NULL;
    GIVES(0, hccl.HcclGetRootInfo(&root));
    GIVES(0, hccl.HcclCommInitRootInfo(1, &root, 0, &comm));
    return comm;
}

static void *join(uint32_t rank, uint32_t n, const struct root *root)
{
    void *comm = NULL;
    GIVES(0, hccl.HcclCommInitRootInfo(n, root, rank, &comm));
    return comm;
}

static void null(void)
{
    void *comm = alone(), *stream = new_stream(), *other = NULL;
    char *a = device_bytes(64), *b = device_bytes(64);
    struct root root;
    uint64_t one[] = {1};
    GIVES(2, hccl.HcclGetRootInfo(NULL));
    TEXT_HAS("EI0003");
    GIVES(2, hccl.HcclCommInitRootInfo(1, NULL, 0, &other));
    GIVES(0, hccl.HcclGetRootInfo(&root));
    GIVES(2, hccl.HcclCommInitRootInfo(1, &root, 0, NULL));
    GIVES(2, hccl.HcclCommInitRootInfoConfig(1, &root, 0, NULL, &other));
    GIVES(2, hccl.HcclAllReduce(a, b, 4, FP32, SUM, comm, NULL));
    GIVES(2, hccl.HcclAllReduce(a, b, 4, FP32, SUM, NULL, stream));
    GIVES(2, hccl.HcclAllReduce(NULL, b, 4, FP32, SUM, comm, stream));
    GIVES(2, hccl.HcclAllGather(a, NULL, 4, FP32, comm, stream));
    GIVES(2, hccl.HcclReduceScatter(NULL, b, 4, FP32, SUM, comm, stream));
    GIVES(2, hccl.HcclBroadcast(NULL, 4, FP32, 0, comm, stream));
    GIVES(2, hccl.HcclSend(a, 4, FP32, 0, comm, NULL));
    GIVES(2, hccl.HcclBarrier(comm, NULL));
    GIVES(2, hccl.HcclAlltoAllV(a, NULL, one, FP32, b, one, one, FP32, comm, stream));
    GIVES(2, hccl.HcclGetRankSize(comm, NULL));
    GIVES(0, hccl.HcclCommDestroy(NULL));
    GIVES(0, hccl.HcclAllReduce(NULL, NULL, 0, FP32, SUM, NULL, NULL)); /* nothing to do comes first */
    GIVES(0, hccl.HcclAllGather(a, b, 0, FP32, comm, stream));
}

static void magic(void)
{
    begin(0);
    struct root root;
    void *comm = NULL;
    struct config config = plain_config();
    config.magic = 1;
    GIVES(0, hccl.HcclGetRootInfo(&root));
    GIVES(1, hccl.HcclCommInitRootInfoConfig(1, &root, 0, &config, &comm));
    config = plain_config();
    config.version = 99; /* a warning only */
    GIVES(0, hccl.HcclCommInitRootInfoConfig(1, &root, 0, &config, &comm));
}

static void wrong_ranks(void)
{
    void *comm = alone(), *stream = new_stream(), *other = NULL;
    char *a = device_bytes(64);
    struct root root;
    GIVES(0, hccl.HcclGetRootInfo(&root));
    GIVES(1, hccl.HcclCommInitRootInfo(0, &root, 0, &other));
    GIVES(1, hccl.HcclCommInitRootInfo(2, &root, 2, &other));
    GIVES(1, hccl.HcclBroadcast(a, 4, FP32, 1, comm, stream));
    GIVES(1, hccl.HcclSend(a, 4, FP32, 1, comm, stream));
}

static void other_number_body(uint32_t rank, uint32_t n, const struct root *root)
{
    void *comm = NULL;
    int code = hccl.HcclCommInitRootInfo(n + rank, root, rank, &comm);
    HOLDS(code == 1 || code == 9); /* who came second learns it at once, the first that one has not come */
}

static void other_number(void)
{
    ranks(2, false, other_number_body);
    struct root root; /* rank 0 may have been the first */
    void *comm = NULL;
    GIVES(0, hccl.HcclGetRootInfo(&root));
    GIVES(1, hccl.HcclCommInitRootInfo(1, &root, 1, &comm));
}

static void count(void)
{
    void *comm = alone(), *stream = new_stream();
    char *a = device_bytes(64), *b = device_bytes(64);
    GIVES(1, hccl.HcclAllReduce(a, b, 0x800000000u, FP32, SUM, comm, stream));
}

static void type(void)
{
    void *comm = alone(), *stream = new_stream();
    char *a = device_bytes(64), *b = device_bytes(64);
    GIVES(1, hccl.HcclAllGather(a, b, 1, 255, comm, stream));
    GIVES(1, hccl.HcclAllReduce(a, b, 1, FP32, 4, comm, stream)); /* there is no average */
}

static void reduce(void)
{
    void *comm = alone(), *stream = new_stream();
    char *a = device_bytes(64), *b = device_bytes(64);
    static const int none[] = {UINT8, UINT16, UINT32, INT128, UINT64, FP64};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        GIVES(5, hccl.HcclAllReduce(a, b, 1, none[i], SUM, comm, stream));
        GIVES(0, hccl.HcclAllGather(a, b, 1, none[i], comm, stream)); /* moving takes any */
    }
    GIVES(5, hccl.HcclReduceScatter(a, b, 1, BFP16, PROD, comm, stream));
    GIVES(5, hccl.HcclAllReduce(a, b, 1, INT16, PROD, comm, stream));
    GIVES(0, hccl.HcclAllReduce(a, b, 1, BFP16, SUM, comm, stream));
}

static void *elsewhere(void *comm)
{
    uint32_t size = 0;
    struct root root;
    GIVES(15, hccl.HcclGetRankSize(comm, &size));
    GIVES(15, hccl.HcclGetRootInfo(&root));
    GIVES(15, hccl.HcclCommDestroy(comm));
    return NULL;
}

static void no_device(void)
{
    void *comm = alone();
    pthread_t thread;
    GIVES(0, pthread_create(&thread, NULL, elsewhere, comm));
    GIVES(0, pthread_join(thread, NULL));
}

static void other_device(void)
{
    void *comm = alone();
    GIVES(0, acl.aclrtSetDevice(1));
    uint32_t size = 0;
    HOLDS(hccl.HcclGetRankSize(comm, &size) != 0);
}

static void same_buffer(void)
{
    void *comm = alone(), *stream = new_stream();
    char *a = device_bytes(64);
    uint64_t one[] = {1}, zero[] = {0};
    GIVES(1, hccl.HcclAlltoAll(a, 1, FP32, a, 1, FP32, comm, stream));
    GIVES(1, hccl.HcclAlltoAllV(a, one, zero, FP32, a, one, zero, FP32, comm, stream));
}

static void unequal(void)
{
    void *comm = alone(), *stream = new_stream();
    char *a = device_bytes(64), *b = device_bytes(64);
    GIVES(1, hccl.HcclAlltoAll(a, 1, FP32, b, 2, FP32, comm, stream));
    GIVES(1, hccl.HcclAlltoAll(a, 1, FP32, b, 1, INT32, comm, stream));
}

static void mismatch_count_body(uint32_t rank, uint32_t n, const struct root *root)
{
    void *comm = join(rank, n, root), *stream = new_stream();
    char *a = device_bytes(64);
    GIVES(0, hccl.HcclAllReduce(a, a, rank == 0 ? 8 : 4, FP32, SUM, comm, stream));
    GIVES(107020, acl.aclrtSynchronizeStream(stream));
    TEXT_HAS("EI0005");
    TEXT_HAS("count 8");
    TEXT_HAS("count 4");
    GIVES(0, hccl.HcclAllReduce(a, a, 4, FP32, SUM, comm, stream)); /* it fails on, at once */
    GIVES(107020, acl.aclrtSynchronizeStream(stream));
}

static void mismatch_count(void)
{
    ranks(2, false, mismatch_count_body);
}

static void mismatch_order_body(uint32_t rank, uint32_t n, const struct root *root)
{
    void *comm = join(rank, n, root), *stream = new_stream();
    char *a = device_bytes(64), *b = device_bytes(128);
    GIVES(0, rank == 0 ? hccl.HcclAllGather(a, b, 4, FP32, comm, stream)
                       : hccl.HcclBroadcast(a, 4, FP32, 0, comm, stream));
    GIVES(107020, acl.aclrtSynchronizeStream(stream));
    TEXT_HAS("AllGather");
    TEXT_HAS("Broadcast");
}

static void mismatch_order(void)
{
    ranks(2, false, mismatch_order_body);
}

static void mismatch_pair_body(uint32_t rank, uint32_t n, const struct root *root)
{
    void *comm = join(rank, n, root), *stream = new_stream();
    char *a = device_bytes(64);
    if (rank == 1) {
        GIVES(0, hccl.HcclSend(a, 4, FP32, 0, comm, stream));
        HOLDS(acl.aclrtSynchronizeStream(stream) == 107020);
        return;
    }
    GIVES(0, hccl.HcclRecv(a, 4, INT32, 1, comm, stream));
    GIVES(107020, acl.aclrtSynchronizeStream(stream));
}

static void mismatch_pair(void)
{
    ranks(2, false, mismatch_pair_body);
}

static void absent_init(void)
{
    begin(0);
    struct root root;
    void *comm = NULL;
    GIVES(0, hccl.HcclGetRootInfo(&root));
    GIVES(9, hccl.HcclCommInitRootInfo(3, &root, 1, &comm));
    TEXT_HAS("EI0015");
    TEXT_HAS("EI0006");
    TEXT_HAS(" 0 2");
}

static void absent_body(uint32_t rank, uint32_t n, const struct root *root)
{
    void *comm = join(rank, n, root), *stream = new_stream();
    char *a = device_bytes(64);
    if (rank == 0) {
        GIVES(0, hccl.HcclAllReduce(a, a, 4, FP32, SUM, comm, stream));
        GIVES(107020, acl.aclrtSynchronizeStream(stream));
        TEXT_HAS("EI0002");
        TEXT_HAS("for rank 1");
    }
}

static void absent(void)
{
    ranks(2, false, absent_body);
}

static void absent_on_demand_body(uint32_t rank, uint32_t n, const struct root *root)
{
    void *comm = join(rank, n, root), *stream = new_stream();
    char *a = device_bytes(64);
    GIVES(0, hccl.HcclAllReduce(a, a, 4, FP32, SUM, comm, stream));
    GIVES(107020, acl.aclrtSynchronizeStream(stream));
    TEXT_HAS("EI0002");
}

static void absent_on_demand(void)
{
    ranks(2, false, absent_on_demand_body);
}

static void absent_receiver_body(uint32_t rank, uint32_t n, const struct root *root)
{
    void *comm = join(rank, n, root), *stream = new_stream();
    char *a = device_bytes(64);
    if (rank == 0) {
        GIVES(0, hccl.HcclSend(a, 4, FP32, 1, comm, stream));
        GIVES(107020, acl.aclrtSynchronizeStream(stream));
    }
}

static void absent_receiver(void)
{
    ranks(2, false, absent_receiver_body);
}

static void one_card_body(uint32_t rank, uint32_t n, const struct root *root)
{
    void *comm = NULL;
    GIVES(7, hccl.HcclCommInitRootInfo(n, root, rank, &comm));
    TEXT_HAS("EI0020");
    TEXT_HAS("HCCL_NPU_SOCKET_PORT_RANGE");
    TEXT_HAS("16666");
}

static void one_card(void)
{
    ranks(2, true, one_card_body);
}

static void port_on_demand(void)
{
    begin(0);
    struct root root;
    void *comm = NULL;
    GIVES(0, hccl.HcclGetRootInfo(&root));
    GIVES(7, hccl.HcclCommInitRootInfo(1, &root, 0, &comm));
}

static void environment(void)
{
    static const char *const bad[][2] = {{"HCCL_CONNECT_TIMEOUT", "60"},
                                         {"HCCL_CONNECT_TIMEOUT", "soon"},
                                         {"HCCL_EXEC_TIMEOUT", "-1"},
                                         {"HCCL_BUFFSIZE", "0"},
                                         {"HCCL_IF_BASE_PORT", "80"},
                                         {"HCCL_NPU_SOCKET_PORT_RANGE", "60000-"},
                                         {"HCCL_NPU_SOCKET_PORT_RANGE", "60200-60000"},
                                         {"HCCL_HOST_SOCKET_PORT_RANGE", "70000"},
                                         {"HCCL_DETERMINISTIC", "yes"},
                                         {"HCCL_OP_EXPANSION_MODE", "FAST"},
                                         {"HCCL_WHITELIST_DISABLE", "2"}};
    begin(0);
    struct root root;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        (void)setenv(bad[i][0], bad[i][1], 1);
        GIVES(1, hccl.HcclGetRootInfo(&root));
        TEXT_HAS("EI0001");
        TEXT_HAS(bad[i][0]);
        (void)unsetenv(bad[i][0]);
    }
    (void)setenv("HCCL_NPU_SOCKET_PORT_RANGE", "60000-60200,61000", 1);
    (void)setenv("HCCL_HOST_SOCKET_PORT_RANGE", "auto", 1);
    GIVES(0, hccl.HcclGetRootInfo(&root));
}

static void root_info(void)
{
    begin(0);
    struct root root = {{0}};
    void *comm = NULL;
    GIVES(1, hccl.HcclCommInitRootInfo(1, &root, 0, &comm));
}

static void root_reused(void)
{
    begin(0);
    struct root root;
    void *comm = NULL;
    GIVES(0, hccl.HcclGetRootInfo(&root));
    GIVES(0, hccl.HcclCommInitRootInfo(1, &root, 0, &comm));
    HOLDS(hccl.HcclCommInitRootInfo(1, &root, 0, &comm) != 0);
}

static void *join_alone(void *arg)
{
    void *comm = NULL;
    GIVES(0, acl.aclrtSetDevice(0));
    int code = hccl.HcclCommInitRootInfo(2, arg, 0, &comm);
    HOLDS(code == 9 || code == 4); /* alone, or the one that is told */
    return NULL;
}

static void concurrent_init(void)
{
    begin(0);
    struct root first, second;
    void *comm = NULL;
    GIVES(0, hccl.HcclGetRootInfo(&first));
    GIVES(0, hccl.HcclGetRootInfo(&second));
    pthread_t thread;
    GIVES(0, pthread_create(&thread, NULL, join_alone, &first));
    while (acl.fake_rule_hits(FAKE_R_HCCL_CONCURRENT_INIT) == 0 &&
           hccl.HcclCommInitRootInfo(1, &second, 0, &comm) == 0) { /* until the thread is in its call */
        GIVES(0, hccl.HcclCommDestroy(comm));
        GIVES(0, hccl.HcclGetRootInfo(&second));
    }
    GIVES(0, pthread_join(thread, NULL));
}

static void *slow_call(void *comm)
{
    uint32_t size = 0;
    GIVES(0, acl.aclrtSetDevice(0));
    GIVES(0, hccl.HcclGetRankSize(comm, &size));
    return NULL;
}

static void threads(void)
{
    void *comm = alone();
    pthread_t thread;
    GIVES(0, pthread_create(&thread, NULL, slow_call, comm));
    while (acl.fake_rule_hits(FAKE_R_HCCL_THREADS) == 0) {
        (void)slow_call(comm);
    }
    GIVES(0, pthread_join(thread, NULL));
}


static void busy_destroy(void)
{
    void *comm = alone();
    pthread_t thread;
    GIVES(0, pthread_create(&thread, NULL, slow_call, comm));
    while (hccl.fake_hccl_is_inside(comm) == 0) {
        (void)sched_yield();
    }
    GIVES(20, hccl.HcclCommDestroy(comm)); /* the call takes half a second */
    GIVES(0, pthread_join(thread, NULL));
    GIVES(0, hccl.HcclCommDestroy(comm));
}

static void dead(void)
{
    void *comm = alone();
    uint32_t size = 0;
    GIVES(0, hccl.HcclCommDestroy(comm));
    GIVES(1, hccl.HcclCommDestroy(comm));
    GIVES(1, hccl.HcclGetRankSize(comm, &size));
}

static void destroy_pending(void)
{
    void *comm = alone(), *stream = new_stream();
    char *a = device_bytes(64), *b = device_bytes(64);
    GIVES(0, hccl.HcclAllReduce(a, b, 4, FP32, SUM, comm, stream));
    HOLDS(hccl.HcclCommDestroy(comm) != 0);
    GIVES(0, acl.aclrtSynchronizeStream(stream));
    GIVES(0, hccl.HcclCommDestroy(comm));
}

static void align(void)
{
    void *comm = alone(), *stream = new_stream();
    char *a = device_bytes(64), *b = device_bytes(64);
    HOLDS(hccl.HcclAllReduce(a + 2, b, 4, FP32, SUM, comm, stream) != 0);
}

static void out_of_memory(void)
{
    begin(0);
    struct root root;
    void *comm = NULL;
    GIVES(0, hccl.HcclGetRootInfo(&root));
    GIVES(3, hccl.HcclCommInitRootInfo(1, &root, 0, &comm));
    struct config config = plain_config();
    config.buffer_mb = 10;
    GIVES(0, hccl.HcclCommInitRootInfoConfig(1, &root, 0, &config, &comm));
    size_t free_bytes = 0, total = 0;
    GIVES(0, acl.aclrtGetMemInfo(1, &free_bytes, &total));
    GIVES(20 << 20, total - free_bytes);
    GIVES(0, hccl.HcclCommDestroy(comm));
    GIVES(0, acl.aclrtGetMemInfo(1, &free_bytes, &total));
    GIVES(0, total - free_bytes);
}

static void set_config(void)
{
    begin(0);
    GIVES(1, hccl.HcclSetConfig(0, (union value){3}));
    GIVES(1, hccl.HcclSetConfig(7, (union value){0}));
    GIVES(0, hccl.HcclSetConfig(0, (union value){2}));
}

static void sub(void)
{
    void *comm = alone(), *part = NULL;
    struct config config = plain_config();
    uint32_t beyond[] = {1}, twice[] = {0, 0}, good[] = {0};
    GIVES(1, hccl.HcclCreateSubCommConfig(&comm, 1, beyond, 5, 0, &config, &part));
    GIVES(1, hccl.HcclCreateSubCommConfig(&comm, 2, twice, 5, 0, &config, &part));
    GIVES(1, hccl.HcclCreateSubCommConfig(&comm, 1, good, 5, 1, &config, &part));
    GIVES(0, hccl.HcclCreateSubCommConfig(&comm, 1, good, 5, 0, &config, &part));
}

#define R(id) FAKE_R_HCCL_##id
static const struct row rows[] = {
    {R(NULL), null, NULL, false},
    {R(MAGIC), magic, NULL, false},
    {R(RANKS), wrong_ranks, NULL, false},
    {R(RANKS), other_number, "FAKE_CANN_TIME_SCALE=0.003", false},
    {R(COUNT), count, NULL, false},
    {R(TYPE), type, NULL, false},
    {R(REDUCE), reduce, NULL, false},
    {R(NO_DEVICE), no_device, NULL, false},
    {R(OTHER_DEVICE), other_device, NULL, false},
    {R(SAME_BUFFER), same_buffer, NULL, false},
    {R(UNEQUAL), unequal, NULL, false},
    {R(MISMATCH), mismatch_count, NULL, false},
    {R(MISMATCH), mismatch_order, NULL, false},
    {R(MISMATCH), mismatch_pair, NULL, false},
    {R(ABSENT_INIT), absent_init, "FAKE_CANN_TIME_SCALE=0.001", false},
    {R(ABSENT), absent, "FAKE_CANN_TIME_SCALE=0.001 HCCL_EXEC_TIMEOUT=200 HCCL_CONNECT_TIMEOUT=7200", false},
    {R(ABSENT), absent_on_demand,
     "FAKE_CANN_FAULT=hccl_absent FAKE_CANN_TIME_SCALE=0.001 HCCL_EXEC_TIMEOUT=200 "
     "HCCL_CONNECT_TIMEOUT=7200",
     false},
    {R(ABSENT), absent_receiver, "FAKE_CANN_TIME_SCALE=0.001 HCCL_EXEC_TIMEOUT=200 HCCL_CONNECT_TIMEOUT=7200",
     false},
    {R(PORT_NPU), one_card, NULL, false},
    {R(PORT_NPU), port_on_demand, "FAKE_CANN_FAULT=port_npu=1", false},
    {R(ENVIRONMENT), environment, NULL, false},
    {R(ROOT_INFO), root_info, NULL, false},
    {R(ROOT_REUSED), root_reused, NULL, false},
    {R(CONCURRENT_INIT), concurrent_init, "FAKE_CANN_TIME_SCALE=0.002", false},
    {R(THREADS), threads, "FAKE_CANN_FAULT=hccl_slow=1", false},
    {R(BUSY_DESTROY), busy_destroy, "FAKE_CANN_FAULT=hccl_slow", false},
    {R(DEAD), dead, NULL, false},
    {R(DESTROY_PENDING), destroy_pending, NULL, false},
    {R(ALIGN), align, NULL, false},
    {R(OUT_OF_MEMORY), out_of_memory, "FAKE_CANN_MEMORY=64", false},
    {R(CONFIG), set_config, NULL, false},
    {R(SUB), sub, NULL, false},
};

int main(void)
{
    size_t n = sizeof rows / sizeof rows[0];
    int from = FAKE_R_HCCL_NULL, to = FAKE_R_HCCL_SUB + 1;
    int bad = run_rows(rows, n) + unbroken(rows, n, from, to);
    (void)printf("%d rules of libhccl, %zu ways to break them, %d not caught\n", to - from, n, bad);
    return bad == 0 ? 0 : 1;
}
