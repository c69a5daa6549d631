/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: base */
/* labels: fast */
/* Each rule of the double of libascendcl about copies, streams and events is broken in a process of its own,
 * and caught. */
#include "acl_test.h"

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

/* ---- Copies ------------------------------------------------------------------------------------------ */

static void copy_null(void)
{
    begin();
    GIVES(0, acl.aclrtMemcpy(NULL, 0, NULL, 0, H2D)); /* nothing is copied from nowhere */
    GIVES(100000, acl.aclrtMemcpy(NULL, 1, host, 1, H2D));
    GIVES(100000, acl.aclrtMemcpyAsync(device(32), 1, NULL, 1, H2D, NULL));
    GIVES(100000, acl.aclrtMemset(NULL, 1, 0, 1));
}

static void copy_max(void)
{
    begin();
    char *p = device(32);
    GIVES(107000, acl.aclrtMemcpy(p, 7, host, 8, H2D));
    GIVES(107000, acl.aclrtMemset(p, 7, 0, 8));
    GIVES(0, acl.aclrtMemcpy(p, 8, host, 8, H2D));
}

static void copy_kind(void)
{
    begin();
    char *p = device(32);
    GIVES(100000, acl.aclrtMemcpy(p, 8, host, 8, 6));
    GIVES(100000, acl.aclrtMemcpyAsync(p, 8, p + 8, 8, 7, NULL));
    GIVES(0, acl.aclrtMemcpy(p, 8, host, 8, D2H)); /* synchronous ones go by the addresses */
}

static void copy_direction(void)
{
    begin();
    GIVES(107000, acl.aclrtMemcpyAsync(device(32), 8, host, 8, D2H, NULL));
    GIVES(107000, acl.aclrtMemcpyAsync(host, 8, device(32), 8, H2D, NULL));
}

static void copy_host_to_host(void)
{
    begin();
    GIVES(207000, acl.aclrtMemcpyAsync(host, 8, host + 8, 8, H2H, NULL));
}

static void copy_pitch(void)
{
    begin();
    GIVES(107000, acl.aclrtMemcpy2d(device(64), 8, host, 8, 9, 2, H2D));
}

static void copy_overlap(void)
{
    begin();
    char *p = device(64);
    GIVES(0, acl.aclrtMemcpy(p, 32, p + 32, 32, D2D));
    HOLDS(acl.aclrtMemcpy(p, 32, p + 31, 32, D2D) != 0);
}

static void copy_overlap_queued(void)
{
    begin();
    char *p = device(64);
    HOLDS(acl.aclrtMemcpyAsync(p, 32, p + 31, 32, D2D, NULL) != 0);
}

static void copy_pageable(void)
{
    begin();
    char *p = device(32);
    GIVES(0, acl.aclrtMemcpyAsync(p, 8, host, 8, H2D, NULL));
}

static void memset_host(void)
{
    begin();
    GIVES(107000, acl.aclrtMemset(host, 8, 0, 8));
    GIVES(107000, acl.aclrtMemsetAsync(host, 8, 0, 8, NULL));
    GIVES(0, acl.aclrtMemset(pinned(8), 8, 0, 8));
}

static void pinned_changed(void)
{
    begin();
    void *held = held_stream();
    char *p = pinned(64);
    GIVES(0, acl.aclrtMemcpyAsync(device(64), 64, p, 64, H2D, held));
    p[5] = 77;
    let_go(held);
}

/* Luck in time is no order here, either. */
static void pinned_changed_after(void)
{
    begin();
    void *made = stream();
    char *p = pinned(64);
    GIVES(0, acl.aclrtMemcpyAsync(device(64), 64, p, 64, H2D, made));
    (void)usleep(20000); /* it has most likely run */
    p[5] = 77;
    GIVES(0, acl.aclrtSynchronizeStream(made));
}

static void pinned_written(void)
{
    begin();
    void *held = held_stream();
    char *p = pinned(64);
    GIVES(0, acl.aclrtMemcpyAsync(p, 64, device(64), 64, D2H, held));
    p[5] = 77;
    let_go(held);
}

static void pinned_read(void)
{
    begin();
    void *held = held_stream();
    char *p = pinned(65536);
    GIVES(0, acl.aclrtMemcpyAsync(p, 65536, device(65536), 65536, D2H, held));
    host[0] = p[40000];
}

/* ---- Streams, events, time --------------------------------------------------------------------------- */

static void unordered_writes(void)
{
    begin();
    void *a = stream(), *b = stream();
    char *p = device(64);
    GIVES(0, acl.aclrtMemsetAsync(p, 64, 1, 40, a));
    GIVES(0, acl.aclrtMemsetAsync(p + 32, 32, 2, 32, b));
    GIVES(0, acl.aclrtSynchronizeDevice());
}

static void unordered_read(void)
{
    begin();
    void *a = stream(), *b = stream();
    char *p = device(64), *q = device(64);
    void *late = event(SYNC);
    GIVES(0, acl.aclrtRecordEvent(late, a)); /* too early: it says nothing of what follows */
    GIVES(0, acl.aclrtMemsetAsync(p, 64, 1, 64, a));
    GIVES(0, acl.aclrtStreamWaitEvent(b, late));
    GIVES(0, acl.aclrtMemcpyAsync(q, 64, p, 64, D2D, b));
    GIVES(0, acl.aclrtSynchronizeDevice());
}

static void unordered_workspace(void)
{
    begin();
    void *a = stream(), *b = stream();
    struct fake_range range = {device(64), 64, FAKE_WORKSPACE, "workspace"};
    GIVES(0, acl.fake_launch("op", a, &range, 1, nothing, NULL, 0, NULL));
    GIVES(0, acl.fake_launch("op", b, &range, 1, nothing, NULL, 0, NULL));
    GIVES(0, acl.aclrtSynchronizeDevice());
}

static void unordered_copy(void)
{
    begin();
    char *p = device(64);
    GIVES(0, acl.aclrtMemsetAsync(p, 64, 1, 64, NULL));
    GIVES(0, acl.aclrtMemcpy(host, 64, p, 64, D2H));
    GIVES(0, acl.aclrtSynchronizeDevice());
}

static void unordered_upload(void)
{
    begin();
    void *held = held_stream();
    char *p = device(64), *q = device(64);
    GIVES(0, acl.aclrtMemcpyAsync(q, 64, p, 64, D2D, held));
    GIVES(0, acl.aclrtMemcpy(p, 64, host, 64, H2D)); /* before the task that was to read the old bytes */
    let_go(held);
}

static void timeout_zero(void)
{
    begin();
    GIVES(107000, acl.aclrtSynchronizeStreamWithTimeout(NULL, 0));
    GIVES(107000, acl.aclrtSynchronizeEventWithTimeout(event(SYNC), 0));
    GIVES(0, acl.aclrtSynchronizeStreamWithTimeout(NULL, -1));
}

static void sync_timeout(void)
{
    begin();
    void *held = held_stream();
    GIVES(507046, acl.aclrtSynchronizeStreamWithTimeout(held, 20));
    TEXT_HAS("EE1002");
    let_go(held);
    GIVES(0, acl.aclrtSynchronizeStreamWithTimeout(held, 60000));
}

static void sync_timeout_on_demand(void)
{
    begin();
    GIVES(0, acl.aclrtSynchronizeStream(NULL));
    GIVES(507046, acl.aclrtSynchronizeStream(NULL));
}

static void event_timeout(void)
{
    begin();
    void *held = held_stream(), *made = event(SYNC);
    GIVES(0, acl.aclrtRecordEvent(made, held));
    GIVES(507047, acl.aclrtSynchronizeEventWithTimeout(made, 20));
    let_go(held);
    GIVES(0, acl.aclrtSynchronizeEventWithTimeout(made, 60000));
}

static void deadlock(void)
{
    begin();
    void *made = NULL;
    GIVES(0, acl.aclrtCreateEventWithFlag(&made, SYNC));
    GIVES(0, acl.aclrtStreamWaitEvent(NULL, made));
    (void)acl.aclrtSynchronizeStream(NULL);
}

static void event_flags(void)
{
    begin();
    void *made = NULL;
    GIVES(107000, acl.aclrtCreateEventWithFlag(&made, 0));
    GIVES(107000, acl.aclrtCreateEventExWithFlag(&made, 0x80));
    GIVES(107000, acl.aclrtCreateEventExWithFlag(&made, 0x4));
}

static void wait_without_sync(void)
{
    begin();
    void *made = event(TIME);
    GIVES(0, acl.aclrtRecordEvent(made, NULL));
    GIVES(207000, acl.aclrtStreamWaitEvent(NULL, made));
}

static void wait_unrecorded(void)
{
    begin();
    void *made = NULL;
    GIVES(0, acl.aclrtCreateEvent(&made));
    GIVES(107000, acl.aclrtStreamWaitEvent(NULL, made));
    TEXT_HAS("EE1018");
}

static void wait_unrecorded_ex(void)
{
    begin();
    GIVES(0, acl.aclrtStreamWaitEvent(NULL, event(SYNC)));
}

static void record_without_reset(void)
{
    begin();
    void *made = NULL;
    GIVES(0, acl.aclrtCreateEventWithFlag(&made, SYNC));
    GIVES(0, acl.aclrtRecordEvent(made, NULL));
    GIVES(0, acl.aclrtRecordEvent(made, NULL));
}

static void reset_unsupported(void)
{
    begin();
    void *made = NULL;
    GIVES(207000, acl.aclrtResetEvent(event(SYNC), NULL));
    GIVES(0, acl.aclrtCreateEventWithFlag(&made, TIME));
    GIVES(207000, acl.aclrtResetEvent(made, NULL));
}

static void elapsed_unrecorded(void)
{
    begin();
    void *a = event(TIME), *b = event(TIME);
    float ms = 0;
    GIVES(0, acl.aclrtRecordEvent(a, NULL));
    GIVES(0, acl.aclrtSynchronizeStream(NULL));
    GIVES(507000, acl.aclrtEventElapsedTime(&ms, a, b));
}

static void elapsed_no_time(void)
{
    begin();
    void *a = event(SYNC), *b = event(TIME);
    float ms = 0;
    GIVES(0, acl.aclrtRecordEvent(a, NULL));
    GIVES(0, acl.aclrtRecordEvent(b, NULL));
    GIVES(0, acl.aclrtSynchronizeStream(NULL));
    GIVES(107006, acl.aclrtEventElapsedTime(&ms, a, b));
    GIVES(0, acl.aclrtEventElapsedTime(&ms, b, b));
}

static void after_fault(void)
{
    begin();
    char *p = device(64);
    GIVES(0, acl.aclrtMemsetAsync(p, 64, 1, 64, NULL));
    GIVES(507015, acl.aclrtSynchronizeStream(NULL));
    TEXT_HAS("aicore exception");
    GIVES(507015, acl.aclrtSynchronizeDevice()); /* for ever */
    GIVES(0, acl.aclrtMemsetAsync(p, 64, 1, 64, NULL));
    GIVES(507015, acl.aclrtSynchronizeStream(NULL));
}

#define R(id) FAKE_R_##id
static const struct row rows[] = {
    {R(COPY_NULL), copy_null, NULL, false},
    {R(COPY_MAX), copy_max, NULL, false},
    {R(COPY_KIND), copy_kind, NULL, false},
    {R(COPY_DIRECTION), copy_direction, NULL, false},
    {R(COPY_HOST_TO_HOST), copy_host_to_host, NULL, false},
    {R(COPY_PITCH), copy_pitch, NULL, false},
    {R(COPY_OVERLAP), copy_overlap, NULL, false},
    {R(COPY_OVERLAP), copy_overlap_queued, NULL, false},
    {R(COPY_PAGEABLE), copy_pageable, NULL, false},
    {R(MEMSET_HOST), memset_host, NULL, false},
    {R(PINNED_CHANGED), pinned_changed, NULL, false},
    {R(PINNED_CHANGED), pinned_changed_after, NULL, false},
    {R(PINNED_TOUCHED), pinned_written, NULL, false},
    {R(PINNED_TOUCHED), pinned_read, NULL, true},
    {R(UNORDERED), unordered_writes, NULL, false},
    {R(UNORDERED), unordered_read, NULL, false},
    {R(UNORDERED), unordered_workspace, NULL, false},
    {R(UNORDERED_HOST), unordered_copy, NULL, false},
    {R(UNORDERED_HOST), unordered_copy, "FAKE_CANN_LATE=1000", false},
    {R(UNORDERED_HOST), unordered_upload, NULL, false},
    {R(TIMEOUT_ZERO), timeout_zero, NULL, false},
    {R(SYNC_TIMEOUT), sync_timeout, NULL, false},
    {R(SYNC_TIMEOUT), sync_timeout_on_demand, "FAKE_CANN_FAULT=sync_timeout=2", false},
    {R(EVENT_TIMEOUT), event_timeout, NULL, false},
    {R(DEADLOCK), deadlock, "FAKE_CANN_DEADLOCK=50", false},
    {R(EVENT_FLAGS), event_flags, NULL, false},
    {R(WAIT_WITHOUT_SYNC), wait_without_sync, NULL, false},
    {R(WAIT_UNRECORDED), wait_unrecorded, NULL, false},
    {R(WAIT_UNRECORDED_EX), wait_unrecorded_ex, NULL, false},
    {R(RECORD_WITHOUT_RESET), record_without_reset, NULL, false},
    {R(RESET_UNSUPPORTED), reset_unsupported, NULL, false},
    {R(ELAPSED_UNRECORDED), elapsed_unrecorded, NULL, false},
    {R(ELAPSED_NO_TIME), elapsed_no_time, NULL, false},
    {R(AFTER_FAULT), after_fault, "FAKE_CANN_FAULT=kernel=1", false},
};

int main(void)
{
    size_t n = sizeof rows / sizeof rows[0];
    int from = FAKE_R_COPY_NULL, to = FAKE_R_AFTER_FAULT + 1;
    int bad = run_rows(rows, n) + unbroken(rows, n, from, to);
    (void)printf("%d rules of libascendcl, %zu ways to break them, %d not caught\n", to - from, n, bad);
    return bad == 0 ? 0 : 1;
}
