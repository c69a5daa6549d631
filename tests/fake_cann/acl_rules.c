/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: base */
/* labels: fast */
/* Each rule of the double of libascendcl about devices, contexts, handles and memory is broken in a process
 * of its own, and caught. */
#include "acl_test.h"

#include <pthread.h>

/* ---- Call order, device, context --------------------------------------------------------------------- */

static void init_again(void)
{
    GIVES(0, acl.aclInit(NULL));
    GIVES(100002, acl.aclInit(NULL));
    uint64_t left = 0;
    GIVES(0, acl.aclFinalizeReference(&left));
    GIVES(1, left);
    GIVES(0, acl.aclFinalizeReference(&left));
    GIVES(100037, acl.aclFinalizeReference(&left));
}

static void init_other_config(void)
{
    char path[] = CT_BINARY_DIR "/fake_acl_json_XXXXXX";
    int file = mkstemp(path);
    GIVES(14, write(file, "{\"a\": \"other\"}", 14));
    GIVES(0, acl.aclInit(NULL));
    GIVES(100000, acl.aclInit(path));
    (void)unlink(path);
}

static void finalize_again(void)
{
    GIVES(0, acl.aclInit(NULL));
    GIVES(100002, acl.aclInit(NULL));
    GIVES(0, acl.aclFinalize());
    GIVES(100037, acl.aclFinalize());
}

static void not_initialised(void)
{
    uint32_t count = 0;
    GIVES(0, acl.aclrtGetDeviceCount(&count));
}

static void *without_context(void *unused)
{
    size_t a = 0, b = 0;
    void *p = NULL;
    int i = 0;
    int64_t value = 0;
    GIVES(107002, acl.aclrtGetDevice(&i));
    TEXT_HAS("no current context");
    GIVES(107002, acl.aclrtMalloc(&p, 32, 0));
    GIVES(107002, acl.aclrtMallocAlign32(&p, 32, 0));
    GIVES(107002, acl.aclrtMallocHost(&p, 32));
    GIVES(107002, acl.aclrtMemcpy(host, 1, host + 1, 1, H2H));
    GIVES(107002, acl.aclrtMemcpyAsync(host, 1, host + 1, 1, H2H, NULL));
    GIVES(107002, acl.aclrtMemset(host, 1, 0, 1));
    GIVES(107002, acl.aclrtMemsetAsync(host, 1, 0, 1, NULL));
    GIVES(107002, acl.aclrtCreateStream(&p));
    GIVES(107002, acl.aclrtCreateStreamWithConfig(&p, 0, 3));
    GIVES(107002, acl.aclrtDestroyStream(host));
    GIVES(107002, acl.aclrtSynchronizeStream(NULL));
    GIVES(107002, acl.aclrtStreamQuery(NULL, &i));
    GIVES(107002, acl.aclrtCreateEvent(&p));
    GIVES(107002, acl.aclrtCreateEventWithFlag(&p, SYNC));
    GIVES(107002, acl.aclrtCreateEventExWithFlag(&p, SYNC));
    GIVES(107002, acl.aclrtRecordEvent(host, NULL));
    GIVES(107002, acl.aclrtStreamWaitEvent(NULL, host));
    GIVES(107002, acl.aclrtResetEvent(host, NULL));
    GIVES(107002, acl.aclrtGetMemInfo(1, &a, &b));
    GIVES(107002, acl.aclrtSynchronizeDevice());
    GIVES(107002, acl.aclrtCtxSetSysParamOpt(0, 1));
    GIVES(107002, acl.aclrtCtxGetSysParamOpt(0, &value));
    GIVES(107002, acl.fake_launch("op", NULL, NULL, 0, NULL, NULL, 0, NULL));
    /* Allowed all the same. */
    uint32_t count = 0;
    GIVES(0, acl.aclrtGetDeviceCount(&count));
    GIVES(2, count);
    HOLDS(acl.aclrtGetSocName() != NULL);
    GIVES(0, acl.aclrtQueryDeviceStatus(0, &i));
    GIVES(0, acl.aclrtSetSysParamOpt(0, 1));
    GIVES(0, acl.aclrtGetSysParamOpt(0, &value));
    GIVES(1, value);
    return unused;
}

static void no_context(void)
{
    GIVES(0, acl.aclInit(NULL));
    (void)without_context(NULL);
}

/* The context of one thread is not that of another. */
static void no_context_in_thread(void)
{
    begin();
    void *block = device(32), *made = event(SYNC);
    pthread_t thread;
    GIVES(0, pthread_create(&thread, NULL, without_context, NULL));
    GIVES(0, pthread_join(thread, NULL));
    GIVES(0, acl.aclrtFree(block));
    GIVES(0, acl.aclrtDestroyEvent(made));
}

static void device_id(void)
{
    GIVES(0, acl.aclInit(NULL));
    GIVES(107001, acl.aclrtSetDevice(-1));
    GIVES(107001, acl.aclrtSetDevice(2));
    GIVES(107001, acl.aclrtResetDevice(7));
}

static void visible_list(void)
{
    GIVES(0, acl.aclInit(NULL));
    uint32_t count = 7;
    GIVES(207004, acl.aclrtGetDeviceCount(&count));
    GIVES(0, count);
    TEXT_HAS("EE2002");
    GIVES(207004, acl.aclrtSetDevice(0));
}

static void reset_too_often(void)
{
    begin();
    GIVES(0, acl.aclrtSetDevice(0));
    GIVES(0, acl.aclrtResetDevice(0));
    int id = -1;
    GIVES(0, acl.aclrtGetDevice(&id));
    GIVES(0, acl.aclrtResetDevice(0));
    GIVES(107002, acl.aclrtGetDevice(&id));
    GIVES(507007, acl.aclrtResetDevice(0));
}

static void live_at_reset(void)
{
    begin();
    (void)device(100);
    GIVES(0, acl.aclrtResetDevice(0));
}

static void live_at_finalize(void)
{
    begin();
    (void)event(SYNC);
    GIVES(0, acl.aclFinalize());
}

static void other_context(void)
{
    begin();
    char *block = device(64);
    void *mine = NULL, *other = NULL, *made = NULL;
    void *first_stream = stream(), *first_event = event(SYNC);
    GIVES(0, acl.aclrtGetCurrentContext(&mine));
    GIVES(0, acl.aclrtCreateContext(&other, 0));
    GIVES(0, acl.aclrtCreateStream(&made));
    GIVES(107003, acl.aclrtMemsetAsync(block, 64, 0, 64, first_stream));
    TEXT_HAS("EE1010");
    GIVES(107003, acl.aclrtMemcpyAsync(block, 64, block + 32, 8, D2D, first_stream));
    GIVES(107003, acl.aclrtRecordEvent(first_event, made));
    GIVES(107003, acl.aclrtRecordEvent(event(SYNC), first_stream));
    GIVES(107003, acl.aclrtStreamWaitEvent(first_stream, first_event));
    GIVES(107003, acl.aclrtResetEvent(first_event, first_stream));
    GIVES(107003, acl.aclrtDestroyStream(first_stream));
    GIVES(0, acl.aclrtSynchronizeStream(first_stream)); /* it switches by itself */
    GIVES(0, acl.aclrtDestroyStream(made));
    GIVES(0, acl.aclrtDestroyContext(other));
    GIVES(0, acl.aclrtSetCurrentContext(mine));
    GIVES(0, acl.aclrtDestroyStream(first_stream));
}

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static void other_device(void)
{
    begin();
    char *block = device(64);
    GIVES(0, acl.aclrtSetDevice(1));
    struct fake_range range = {block, 64, FAKE_READ, "self"};
    HOLDS(acl.fake_launch("op", NULL, &range, 1, nothing, NULL, 0, NULL) != 0);
}

static void other_device_stream(void)
{
    begin();
    void *made = stream();
    GIVES(0, acl.aclrtSetDevice(1));
    HOLDS(acl.fake_launch("op", made, NULL, 0, nothing, NULL, 0, NULL) != 0);
}

static void sys_param(void)
{
    begin();
    GIVES(0, acl.aclrtSetSysParamOpt(0, 3));
    GIVES(107000, acl.aclrtSetSysParamOpt(0, 4));
    GIVES(107000, acl.aclrtSetSysParamOpt(1, 2));
    GIVES(107000, acl.aclrtCtxSetSysParamOpt(9, 1));
    GIVES(0, acl.aclrtCtxSetSysParamOpt(0, 1));
    int64_t value = 0;
    GIVES(0, acl.aclrtGetSysParamOpt(0, &value)); /* the setter of a context writes the process's, too */
    GIVES(1, value);
}

static void sys_param_unset(void)
{
    begin();
    int64_t value = 0;
    GIVES(107021, acl.aclrtCtxGetSysParamOpt(0, &value));
}

static void null_out(void)
{
    begin();
    GIVES(100000, acl.aclrtGetDeviceCount(NULL));
    GIVES(100000, acl.aclrtCreateStream(NULL));
    GIVES(100000, acl.aclrtGetMemInfo(1, NULL, NULL));
}

static void peer_arguments(void)
{
    begin();
    HOLDS(acl.aclrtDeviceEnablePeerAccess(0, 0) != 0);
    HOLDS(acl.aclrtDeviceEnablePeerAccess(1, 1) != 0);
}

static void peer_not_enabled(void)
{
    begin();
    char *first = device(64);
    GIVES(0, acl.aclrtSetDevice(1));
    char *second = device(64);
    HOLDS(acl.aclrtMemcpy(second, 64, first, 64, D2D) != 0);
    GIVES(0, acl.aclrtDeviceEnablePeerAccess(0, 0));
    GIVES(0, acl.aclrtMemcpy(second, 64, first, 64, D2D));
}

/* ---- Handles ----------------------------------------------------------------------------------------- */

static void dead_stream(void)
{
    begin();
    void *made = stream();
    GIVES(0, acl.aclrtDestroyStream(made));
    GIVES(107017, acl.aclrtSynchronizeStream(made));
    TEXT_HAS("EE1017");
}

static void dead_stream_twice(void)
{
    begin();
    void *made = stream();
    GIVES(0, acl.aclrtDestroyStream(made));
    GIVES(107017, acl.aclrtDestroyStream(made));
}

static void dead_event(void)
{
    begin();
    void *made = event(SYNC);
    GIVES(0, acl.aclrtDestroyEvent(made));
    GIVES(107017, acl.aclrtRecordEvent(made, NULL));
}

static void event_as_stream(void)
{
    begin();
    GIVES(107017, acl.aclrtSynchronizeStream(event(SYNC)));
}

static void garbage_event(void)
{
    begin();
    GIVES(107017, acl.aclrtSynchronizeEvent(host));
}

static void dead_context(void)
{
    begin();
    void *other = NULL;
    GIVES(0, acl.aclrtCreateContext(&other, 0));
    GIVES(0, acl.aclrtDestroyContext(other));
    GIVES(107017, acl.aclrtSetCurrentContext(other));
}

static void null_handle(void)
{
    begin();
    GIVES(100000, acl.aclrtDestroyStream(NULL));
    GIVES(100000, acl.aclrtDestroyEvent(NULL));
    GIVES(100000, acl.aclrtDestroyContext(NULL));
    GIVES(0, acl.aclrtSynchronizeStream(NULL)); /* the default stream */
}

static void destroy_busy_stream(void)
{
    begin();
    void *made = stream();
    GIVES(0, acl.aclrtMemsetAsync(device(64), 64, 0, 64, made));
    GIVES(0, acl.aclrtDestroyStream(made));
}

static void stream_limit(void)
{
    begin();
    void *made = NULL;
    int code = 0, n = 0;
    while (code == 0 && n < 3000) {
        code = acl.aclrtCreateStream(&made);
        n++;
    }
    GIVES(207008, code);
}

static void stream_arguments(void)
{
    begin();
    void *made = NULL;
    GIVES(107000, acl.aclrtCreateStreamWithConfig(&made, 0, 0x40));
    GIVES(0, acl.aclrtCreateStreamWithConfig(&made, 0, 3));
}

static void failure_mode(void)
{
    begin();
    void *made = stream();
    GIVES(107000, acl.aclrtSetStreamFailureMode(made, 2));
    GIVES(0, acl.aclrtSetStreamFailureMode(made, 1));
    GIVES(107000, acl.aclrtSetStreamFailureMode(made, 1));
}

/* ---- Memory ------------------------------------------------------------------------------------------ */

static void alloc_arguments(void)
{
    begin();
    void *p = NULL;
    GIVES(100000, acl.aclrtMalloc(&p, 0, 0));
    GIVES(100000, acl.aclrtMalloc(NULL, 1, 0));
    GIVES(100000, acl.aclrtMallocHost(&p, 0));
}

static void alloc_policy(void)
{
    begin();
    void *p = NULL;
    GIVES(107000, acl.aclrtMalloc(&p, 32, 8));
}

static void free_null(void)
{
    begin();
    GIVES(100000, acl.aclrtFree(NULL));
    GIVES(100000, acl.aclrtFreeHost(NULL));
}

static void free_twice(void)
{
    begin();
    char *p = device(32);
    GIVES(0, acl.aclrtFree(p));
    (void)acl.aclrtFree(p);
}

static void free_host_twice(void)
{
    begin();
    char *p = pinned(32);
    GIVES(0, acl.aclrtFreeHost(p));
    (void)acl.aclrtFreeHost(p);
}

static void free_inside(void)
{
    begin();
    (void)acl.aclrtFree(device(64) + 32);
}

static void free_host_by_free(void)
{
    begin();
    (void)acl.aclrtFree(pinned(64));
}

static void free_pageable(void)
{
    begin();
    (void)acl.aclrtFreeHost(host);
}

static void unregister_unknown(void)
{
    begin();
    (void)acl.aclrtHostUnregister(host);
}

static void free_queued(void)
{
    begin();
    void *held = held_stream();
    char *p = device(64);
    GIVES(0, acl.aclrtMemsetAsync(p, 64, 0, 64, held));
    (void)acl.aclrtFree(p);
    let_go(held);
}

/* Luck in time is no order: the task is over, and the host has not asked. */
static void free_unsynchronised(void)
{
    begin();
    void *made = stream(), *other = stream();
    char *p = device(64);
    GIVES(0, acl.aclrtMemsetAsync(p, 64, 0, 64, made));
    atomic_store(&gate_open, false);
    GIVES(0, acl.aclrtSynchronizeStream(other));
    (void)usleep(20000);
    (void)acl.aclrtFree(p);
}

static void free_host_queued(void)
{
    begin();
    void *held = held_stream();
    char *p = pinned(64);
    GIVES(0, acl.aclrtMemcpyAsync(device(64), 64, p, 64, H2D, held));
    (void)acl.aclrtFreeHost(p);
    let_go(held);
}

static void out_of_memory(void)
{
    begin();
    size_t free_bytes = 0, total = 0;
    GIVES(0, acl.aclrtGetMemInfo(1, &free_bytes, &total));
    GIVES(1 << 20, total);
    void *p = NULL;
    GIVES(207001, acl.aclrtMalloc(&p, (1 << 20) - 16, 0)); /* rounded up, and 32 bytes more */
    GIVES(207001, acl.aclrtMallocAlign32(&p, (1 << 20) + 1, 0));
    GIVES(0, acl.aclrtMallocAlign32(&p, (1 << 20) - 16, 0));
    GIVES(0, acl.aclrtGetMemInfo(1, &free_bytes, &total));
    GIVES(0, free_bytes);
    GIVES(0, acl.aclrtFree(p));
    GIVES(0, acl.aclrtMalloc(&p, 100, 0));
    GIVES(0, acl.aclrtGetMemInfo(1, &free_bytes, &total));
    GIVES((1 << 20) - 160, free_bytes);
}

static void out_of_memory_on_demand(void)
{
    begin();
    void *p = NULL;
    GIVES(0, acl.aclrtMalloc(&p, 32, 0));
    GIVES(207001, acl.aclrtMalloc(&p, 32, 0));
    GIVES(0, acl.aclrtMalloc(&p, 32, 0));
}

static void host_reads_device(void)
{
    begin();
    volatile char *p = device(64);
    host[0] = p[3];
}

static void host_writes_device(void)
{
    begin();
    volatile char *p = device(64);
    p[3] = 1;
}

static int write_behind(void *arg)
{
    char *block = acl.fake_at(*(void **)arg);
    block[100] = 1;
    return 0;
}

static int write_before(void *arg)
{
    char *block = acl.fake_at(*(void **)arg);
    block[-1] = 1;
    return 0;
}

static void guard(fake_kernel kernel)
{
    begin();
    char *p = device(100);
    struct fake_range range = {p, 100, FAKE_WRITE, "out"};
    GIVES(0, acl.fake_launch("op", NULL, &range, 1, kernel, &p, sizeof p, NULL));
    GIVES(0, acl.aclrtSynchronizeStream(NULL));
}

static void guard_behind(void)
{
    guard(write_behind);
}

static void guard_before(void)
{
    guard(write_before);
}

static void range_unknown(void)
{
    begin();
    struct fake_range range = {host, 64, FAKE_READ, "self"};
    HOLDS(acl.fake_launch("op", NULL, &range, 1, nothing, NULL, 0, NULL) != 0);
}

static void range_outside(void)
{
    begin();
    char *p = device(100);
    struct fake_range range = {p + 40, 64, FAKE_READ, "self"};
    HOLDS(acl.fake_launch("op", NULL, &range, 1, nothing, NULL, 0, NULL) != 0);
}

static void copy_outside(void)
{
    begin();
    HOLDS(acl.aclrtMemcpy(host, 200, device(100), 101, D2H) != 0);
}

static void use_after_free(void)
{
    begin();
    char *p = device(100);
    GIVES(0, acl.aclrtFree(p));
    struct fake_range range = {p, 64, FAKE_READ, "self"};
    HOLDS(acl.fake_launch("op", NULL, &range, 1, nothing, NULL, 0, NULL) != 0);
}

static void copy_after_free(void)
{
    begin();
    char *p = device(100);
    GIVES(0, acl.aclrtFree(p));
    HOLDS(acl.aclrtMemcpy(host, 64, p, 64, D2H) != 0);
}

static void workspace_align(void)
{
    begin();
    struct fake_range range = {device(100) + 8, 64, FAKE_WORKSPACE, "workspace"};
    HOLDS(acl.fake_launch("op", NULL, &range, 1, nothing, NULL, 0, NULL) != 0);
}

static void workspace_on_host(void)
{
    begin();
    struct fake_range range = {pinned(100), 64, FAKE_WORKSPACE, "workspace"};
    HOLDS(acl.fake_launch("op", NULL, &range, 1, nothing, NULL, 0, NULL) != 0);
}

static void workspace_overlap(void)
{
    begin();
    char *p = device(256);
    struct fake_range ranges[] = {{p, 128, FAKE_WORKSPACE, "workspace"}, {p + 100, 100, FAKE_READ, "self"}};
    HOLDS(acl.fake_launch("op", NULL, ranges, 2, nothing, NULL, 0, NULL) != 0);
}

static void register_arguments(void)
{
    begin();
    void *p = NULL;
    GIVES(100000, acl.aclrtHostRegister(NULL, 64, 0, &p));
    GIVES(0, acl.aclrtHostRegister(host, 64, 0, &p));
    GIVES(100000, acl.aclrtHostRegister(host + 32, 64, 0, &p));
    GIVES(0, acl.aclrtHostUnregister(host));
}

#define R(id) FAKE_R_##id
static const struct row rows[] = {
    {R(INIT_AGAIN), init_again, NULL, false},
    {R(INIT_OTHER_CONFIG), init_other_config, NULL, false},
    {R(FINALIZE_AGAIN), finalize_again, NULL, false},
    {R(FINALIZE_AGAIN), init_again, NULL, false},
    {R(NOT_INITIALISED), not_initialised, NULL, false},
    {R(NO_CONTEXT), no_context, NULL, false},
    {R(NO_CONTEXT), no_context_in_thread, NULL, false},
    {R(DEVICE_ID), device_id, NULL, false},
    {R(VISIBLE_LIST), visible_list, "ASCEND_RT_VISIBLE_DEVICES=1,0", false},
    {R(VISIBLE_LIST), visible_list, "ASCEND_RT_VISIBLE_DEVICES=0,0", false},
    {R(VISIBLE_LIST), visible_list, "ASCEND_RT_VISIBLE_DEVICES=", false},
    {R(VISIBLE_LIST), visible_list, "ASCEND_RT_VISIBLE_DEVICES=x,0", false},
    {R(VISIBLE_LIST), visible_list, "ASCEND_RT_VISIBLE_DEVICES=2", false},
    {R(RESET_TOO_OFTEN), reset_too_often, NULL, false},
    {R(LIVE_AT_RESET), live_at_reset, NULL, false},
    {R(LIVE_AT_FINALIZE), live_at_finalize, NULL, false},
    {R(OTHER_CONTEXT), other_context, NULL, false},
    {R(OTHER_DEVICE), other_device, NULL, false},
    {R(OTHER_DEVICE), other_device_stream, NULL, false},
    {R(SYS_PARAM), sys_param, NULL, false},
    {R(SYS_PARAM_UNSET), sys_param_unset, NULL, false},
    {R(NULL_OUT), null_out, NULL, false},
    {R(PEER_ARGUMENTS), peer_arguments, NULL, false},
    {R(PEER_NOT_ENABLED), peer_not_enabled, NULL, false},
    {R(BAD_HANDLE), dead_stream, NULL, false},
    {R(BAD_HANDLE), dead_stream_twice, NULL, false},
    {R(BAD_HANDLE), dead_event, NULL, false},
    {R(BAD_HANDLE), event_as_stream, NULL, false},
    {R(BAD_HANDLE), garbage_event, NULL, false},
    {R(BAD_HANDLE), dead_context, NULL, false},
    {R(NULL_HANDLE), null_handle, NULL, false},
    {R(DESTROY_BUSY_STREAM), destroy_busy_stream, NULL, false},
    {R(STREAM_LIMIT), stream_limit, NULL, false},
    {R(STREAM_ARGUMENTS), stream_arguments, NULL, false},
    {R(FAILURE_MODE), failure_mode, NULL, false},
    {R(ALLOC_ARGUMENTS), alloc_arguments, NULL, false},
    {R(ALLOC_POLICY), alloc_policy, NULL, false},
    {R(FREE_NULL), free_null, NULL, false},
    {R(FREE_TWICE), free_twice, NULL, false},
    {R(FREE_TWICE), free_host_twice, NULL, false},
    {R(FREE_UNKNOWN), free_inside, NULL, false},
    {R(FREE_UNKNOWN), free_host_by_free, NULL, false},
    {R(FREE_UNKNOWN), free_pageable, NULL, false},
    {R(FREE_UNKNOWN), unregister_unknown, NULL, false},
    {R(FREE_IN_USE), free_queued, NULL, false},
    {R(FREE_IN_USE), free_unsynchronised, NULL, false},
    {R(FREE_IN_USE), free_host_queued, NULL, false},
    {R(OUT_OF_MEMORY), out_of_memory, "FAKE_CANN_MEMORY=1", false},
    {R(OUT_OF_MEMORY), out_of_memory_on_demand, "FAKE_CANN_FAULT=oom=2", false},
    {R(HOST_TOUCHES_DEVICE), host_reads_device, NULL, true},
    {R(HOST_TOUCHES_DEVICE), host_writes_device, NULL, true},
    {R(GUARD), guard_behind, NULL, false},
    {R(GUARD), guard_before, NULL, false},
    {R(RANGE_UNKNOWN), range_unknown, NULL, false},
    {R(RANGE_OUTSIDE), range_outside, NULL, false},
    {R(RANGE_OUTSIDE), copy_outside, NULL, false},
    {R(USE_AFTER_FREE), use_after_free, NULL, false},
    {R(USE_AFTER_FREE), copy_after_free, NULL, false},
    {R(WORKSPACE_ALIGN), workspace_align, NULL, false},
    {R(WORKSPACE_ALIGN), workspace_on_host, NULL, false},
    {R(WORKSPACE_OVERLAP), workspace_overlap, NULL, false},
    {R(REGISTER_ARGUMENTS), register_arguments, NULL, false},
};

int main(void)
{
    size_t n = sizeof rows / sizeof rows[0];
    int from = FAKE_R_INIT_AGAIN, to = FAKE_R_REGISTER_ARGUMENTS + 1;
    int bad = run_rows(rows, n) + unbroken(rows, n, from, to);
    (void)printf("%d rules of libascendcl, %zu ways to break them, %d not caught\n", to - from, n, bad);
    return bad == 0 ? 0 : 1;
}
