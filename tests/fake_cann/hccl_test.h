/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of the double of libhccl: its functions, and bodies that run as the ranks of a communicator.
 */
#ifndef CT_TESTS_FAKE_CANN_HCCL_TEST_H
#define CT_TESTS_FAKE_CANN_HCCL_TEST_H

#include "fake_cann.h"

struct root {
    char bytes[4108];
};
union value {
    int32_t value;
};
struct pair_item {
    int type;
    void *buf;
    uint64_t count;
    int data_type;
    uint32_t remote;
};
struct config { /* version 5 */
    size_t size;
    uint32_t magic, version;
    uint64_t reserved;
    uint32_t buffer_mb, deterministic;
    char name[128], udi[128];
    uint32_t expansion, traffic_class, service_level;
};

#define HCCL_FUNCTIONS(X)                                                                                    \
    X(int, HcclGetRootInfo, (struct root *))                                                                 \
    X(int, HcclCommInitRootInfo, (uint32_t, const struct root *, uint32_t, void **))                         \
    X(int, HcclCommInitRootInfoConfig,                                                                       \
      (uint32_t, const struct root *, uint32_t, const struct config *, void **))                             \
    X(int, HcclCreateSubCommConfig,                                                                          \
      (void **, uint32_t, uint32_t *, uint64_t, uint32_t, struct config *, void **))                         \
    X(int, HcclCommDestroy, (void *))                                                                        \
    X(int, HcclGetRankSize, (void *, uint32_t *))                                                            \
    X(int, HcclGetRankId, (void *, uint32_t *))                                                              \
    X(int, HcclGetCommName, (void *, char *))                                                                \
    X(int, HcclGetCommAsyncError, (void *, int *))                                                           \
    X(const char *, HcclGetErrorString, (int))                                                               \
    X(int, HcclSetConfig, (int, union value))                                                                \
    X(int, HcclAllReduce, (void *, void *, uint64_t, int, int, void *, void *))                              \
    X(int, HcclBroadcast, (void *, uint64_t, int, uint32_t, void *, void *))                                 \
    X(int, HcclReduceScatter, (void *, void *, uint64_t, int, int, void *, void *))                          \
    X(int, HcclAllGather, (void *, void *, uint64_t, int, void *, void *))                                   \
    X(int, HcclReduce, (void *, void *, uint64_t, int, int, uint32_t, void *, void *))                       \
    X(int, HcclScatter, (void *, void *, uint64_t, int, uint32_t, void *, void *))                           \
    X(int, HcclAlltoAll, (const void *, uint64_t, int, const void *, uint64_t, int, void *, void *))         \
    X(int, HcclAlltoAllV,                                                                                    \
      (const void *, const void *, const void *, int, const void *, const void *, const void *, int, void *, \
       void *))                                                                                              \
    X(int, HcclBarrier, (void *, void *))                                                                    \
    X(int, HcclSend, (void *, uint64_t, int, uint32_t, void *, void *))                                      \
    X(int, HcclRecv, (void *, uint64_t, int, uint32_t, void *, void *))                                      \
    X(int, HcclBatchSendRecv, (struct pair_item *, uint32_t, void *, void *))                                \
    X(int, fake_hccl_is_inside, (const void *))

static struct {
#define FIELD(type, name, arguments) type(*name) arguments;
    HCCL_FUNCTIONS(FIELD)
#undef FIELD
} hccl;

enum { INT8, INT16, INT32, FP16, FP32, INT64, UINT64, UINT8, UINT16, UINT32, FP64, BFP16, INT128 };
enum { SUM, PROD, MAX, MIN };

static void load_hccl(void)
{
    void *library = open_library("libhccl.so");
#define LOAD(type, name, arguments) *(void **)&hccl.name = find_symbol(library, #name);
    HCCL_FUNCTIONS(LOAD)
#undef LOAD
}

static void begin(int device)
{
    load_hccl();
    GIVES(0, acl.aclInit(NULL));
    GIVES(0, acl.aclrtSetDevice(device));
}

static void *new_stream(void)
{
    void *made = NULL;
    GIVES(0, acl.aclrtCreateStream(&made));
    return made;
}

static char *device_bytes(size_t size)
{
    void *made = NULL;
    GIVES(0, acl.aclrtMalloc(&made, size, 0));
    return made;
}

static struct config plain_config(void)
{
    return (struct config){.size = 300,
                           .magic = 0xf0f0f0f0,
                           .version = 5,
                           .buffer_mb = 0xffffffff,
                           .deterministic = 0xffffffff,
                           .traffic_class = 0xffffffff,
                           .service_level = 0xffffffff};
}

/* Runs body in `n` processes, rank r on device r (or all on device 0): this one is rank 0. Those others must
 * end well. */
__attribute__((unused)) static void ranks(uint32_t n, bool one_device,
                                          void (*body)(uint32_t rank, uint32_t n, const struct root *root))
{
    begin(0);
    struct root root;
    GIVES(0, hccl.HcclGetRootInfo(&root));
    pid_t children[16];
    for (uint32_t r = 1; r < n; r++) {
        children[r] = fork();
        if (children[r] == 0) {
            GIVES(0, acl.aclrtSetDevice(one_device ? 0 : (int32_t)r));
            body(r, n, &root);
            _exit(0);
        }
    }
    body(0, n, &root);
    for (uint32_t r = 1; r < n; r++) {
        int status = -1;
        (void)waitpid(children[r], &status, 0);
        GIVES(0, status);
    }
}

#endif
