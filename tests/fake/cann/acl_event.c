/* SPDX-License-Identifier: Apache-2.0 */
/* Events of the three kinds: plain and Ex ones get a new record each time; those of aclrtCreateEventWithFlag
 * are one flag on the device. */
#include "acl_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int create_event(const char *name, void **out, enum event_kind kind, uint32_t flags)
{
    struct context *context = enter(name);
    if (context == NULL) {
        return E_RT_CONTEXT_NULL;
    }
    if (out == NULL) {
        return fake_code(FAKE_R_NULL_OUT, E_INVALID_PARAM, "EH0001: %s: the result is NULL", name);
    }
    if (flags == 0 || (flags & ~0x7bu) != 0) {
        return fake_code(FAKE_R_EVENT_FLAGS, E_RT_PARAM, "EE1001: %s: flag 0x%x", name, flags);
    }
    cann_lock();
    struct event *event = handle_new(HANDLE_EVENT);
    event->context = context;
    event->kind = kind;
    event->flags = flags;
    cann_unlock();
    fake_live(FAKE_EVENT, 1);
    (void)__atomic_add_fetch(&cann.devices[context->device].events, 1, __ATOMIC_SEQ_CST);
    *out = event;
    return 0;
}

ACL int aclrtCreateEvent(void **event)
{
    return create_event("aclrtCreateEvent", event, EVENT_PLAIN, FLAG_SYNC | FLAG_TIME);
}

ACL int aclrtCreateEventWithFlag(void **event, uint32_t flag)
{
    return create_event("aclrtCreateEventWithFlag", event, EVENT_FLAG, flag);
}

ACL int aclrtCreateEventExWithFlag(void **event, uint32_t flag)
{
    return create_event("aclrtCreateEventExWithFlag", event, EVENT_EX, flag);
}

/* An event argument; NULL with *code set where it is none. */
static struct event *event_of(const char *name, void *handle, int *code)
{
    struct event *event = handle;
    *code = 0;
    if (handle == NULL) {
        *code = fake_code(FAKE_R_NULL_HANDLE, E_INVALID_PARAM, "EH0001: %s: the event is NULL", name);
        return NULL;
    }
    if (!handle_is(HANDLE_EVENT, handle) || event->dead) {
        fake_trap(FAKE_R_BAD_HANDLE, "%s: event %p is %s", name, handle,
                  handle_is(HANDLE_EVENT, handle)    ? "destroyed"
                  : handle_is(HANDLE_STREAM, handle) ? "a stream"
                                                     : "no event");
        fake_error_text("EE1017: %s: event %p is no valid handle", name, handle);
        *code = E_RT_HANDLE;
        return NULL;
    }
    return event;
}

ACL int aclrtDestroyEvent(void *handle)
{
    enter_free("aclrtDestroyEvent");
    cann_lock();
    int code = 0;
    struct event *event = event_of("aclrtDestroyEvent", handle, &code);
    if (event != NULL) {
        event->dead = true; /* what is queued goes on with it */
        record_unref(event->record);
        event->record = NULL;
        fake_live(FAKE_EVENT, -1);
        (void)__atomic_sub_fetch(&cann.devices[event->context->device].events, 1, __ATOMIC_SEQ_CST);
    }
    cann_unlock();
    return code;
}

/* Event and stream arguments of the calls that queue something; both of the current context. */
static struct event *event_and_stream(const char *name, void *handle, void *stream_handle,
                                      struct stream **out_stream, int *code)
{
    struct context *context = enter(name);
    if (context == NULL) {
        *code = E_RT_CONTEXT_NULL;
        return NULL;
    }
    cann_lock();
    struct event *event = event_of(name, handle, code);
    *out_stream = event == NULL ? NULL : stream_of(name, stream_handle, context, true, code);
    if (*code == 0 && event->context != context && event->context->device == context->device) {
        *code = fake_code(FAKE_R_OTHER_CONTEXT, E_RT_STREAM_CONTEXT,
                          "EE1010: %s: the event belongs to another context", name);
    }
    if (*code == 0) {
        *code = lost_code(context->device);
    }
    if (*code != 0) {
        cann_unlock();
        return NULL;
    }
    return event;
}

ACL int aclrtRecordEvent(void *handle, void *stream_handle)
{
    int code = 0;
    struct stream *stream = NULL;
    struct event *event = event_and_stream("aclrtRecordEvent", handle, stream_handle, &stream, &code);
    if (event == NULL) {
        return code;
    }
    if (event->kind == EVENT_FLAG && (event->flags & FLAG_SYNC) != 0) {
        if (event->armed) {
            fake_trap(FAKE_R_RECORD_WITHOUT_RESET,
                      "aclrtRecordEvent: event %p of aclrtCreateEventWithFlag is recorded again without "
                      "aclrtResetEvent",
                      handle);
        }
        event->armed = true;
    }
    struct record *record = calloc(1, sizeof *record);
    if (record == NULL) {
        abort();
    }
    record->refs = 2; /* the event's and the task's */
    record->stream = stream;
    record_unref(event->record);
    event->record = record;
    struct task *task = task_new(stream, TASK_RECORD, "aclrtRecordEvent", 0);
    task->record = record;
    task->event = event;
    task_queue(stream, task);
    cann_unlock();
    return 0;
}

ACL int aclrtResetEvent(void *handle, void *stream_handle)
{
    int code = 0;
    struct stream *stream = NULL;
    struct event *event = event_and_stream("aclrtResetEvent", handle, stream_handle, &stream, &code);
    if (event == NULL) {
        return code;
    }
    if (event->kind == EVENT_EX || (event->flags & FLAG_SYNC) == 0) {
        code = fake_code(FAKE_R_RESET_UNSUPPORTED, E_FEATURE, "EE1001: aclrtResetEvent: %s",
                         event->kind == EVENT_EX ? "not of an Ex event" : "the event has no ACL_EVENT_SYNC");
    } else if (event->kind == EVENT_FLAG) {
        struct task *task = task_new(stream, TASK_RESET, "aclrtResetEvent", 0);
        task->event = event;
        task_queue(stream, task);
        event->armed = false;
    }
    cann_unlock();
    return code;
}

static int wait_event(const char *name, void *stream_handle, void *handle)
{
    int code = 0;
    struct stream *stream = NULL;
    struct event *event = event_and_stream(name, handle, stream_handle, &stream, &code);
    if (event == NULL) {
        return code;
    }
    if ((event->flags & FLAG_SYNC) == 0) {
        code = fake_code(FAKE_R_WAIT_WITHOUT_SYNC, E_FEATURE,
                         "EE1001: %s: the event was made without ACL_EVENT_SYNC", name);
    } else if (event->record == NULL && event->kind == EVENT_PLAIN) {
        code =
            fake_code(FAKE_R_WAIT_UNRECORDED, E_RT_PARAM, "EE1018: %s: the event was never recorded", name);
    } else if (event->record == NULL && event->kind == EVENT_EX) {
        fake_lint(FAKE_R_WAIT_UNRECORDED_EX, "%s: Ex event %p was never recorded: the stream does not wait",
                  name, handle);
        if (strcmp(switch_text("FAKE_CANN_EX_WAIT", "allow"), "trap") == 0) {
            abort();
        }
    } else if (event->kind == EVENT_FLAG) {
        struct task *task = task_new(stream, TASK_WAIT_FLAG, name, 0);
        task->event = event;
        task_queue(stream, task);
    } else if (event->record->stream != stream) {
        struct task *task = task_new(stream, TASK_WAIT, name, 0);
        task->record = event->record;
        task->record->refs++;
        task->event = event;
        task_queue(stream, task);
    }
    cann_unlock();
    return code;
}

ACL int aclrtStreamWaitEvent(void *stream, void *event)
{
    return wait_event("aclrtStreamWaitEvent", stream, event);
}

ACL int aclrtStreamWaitEventWithTimeout(void *stream, void *event, int32_t timeout)
{
    if (timeout == 0) {
        return fake_code(FAKE_R_TIMEOUT_ZERO, E_RT_PARAM,
                         "EE1001: aclrtStreamWaitEventWithTimeout: a time-out of 0");
    }
    return wait_event("aclrtStreamWaitEventWithTimeout", stream, event);
}

/* ---- The host asks ----------------------------------------------------------------------------------- */

static void host_knows(const struct record *record)
{
    clock_join(&cann.host, &record->clock);
    pinned_release();
}

ACL int aclrtQueryEventStatus(void *handle, int *status)
{
    enter_free("aclrtQueryEventStatus");
    if (status == NULL) {
        return fake_code(FAKE_R_NULL_OUT, E_INVALID_PARAM,
                         "EH0001: aclrtQueryEventStatus: the result is NULL");
    }
    cann_lock();
    int code = 0;
    struct event *event = event_of("aclrtQueryEventStatus", handle, &code);
    if (event != NULL) {
        release_all();
        bool done = event->record == NULL ? event->kind == EVENT_EX : event->record->done;
        *status = done ? 1 : 0;
        if (done && event->record != NULL) {
            host_knows(event->record);
        }
    }
    cann_unlock();
    return code;
}

ACL int aclrtQueryEventWaitStatus(void *handle, int *status)
{
    int recorded = 0;
    int code = status == NULL ? fake_code(FAKE_R_NULL_OUT, E_INVALID_PARAM,
                                          "EH0001: aclrtQueryEventWaitStatus: the result is NULL")
                              : aclrtQueryEventStatus(handle, &recorded);
    if (code == 0) {
        *status = recorded == 1 ? 0 : 1;
    }
    return code;
}

static int synchronize_event(const char *name, void *handle, int timeout_ms)
{
    enter_free(name);
    if (timeout_ms == 0) {
        return fake_code(FAKE_R_TIMEOUT_ZERO, E_RT_PARAM, "EE1001: %s: a time-out of 0", name);
    }
    cann_lock();
    int code = 0;
    struct event *event = event_of(name, handle, &code);
    struct record *record = event == NULL ? NULL : event->record;
    if (record != NULL) {
        record->refs++;
        release_all();
        double start = now_ms();
        while (!record->done && code == 0) {
            struct timespec until;
            (void)clock_gettime(CLOCK_MONOTONIC, &until);
            until.tv_nsec += 1000000;
            until.tv_sec += until.tv_nsec / 1000000000;
            until.tv_nsec %= 1000000000;
            (void)pthread_cond_timedwait(&cann.changed, &cann.lock, &until);
            if (timeout_ms > 0 && now_ms() - start >= timeout_ms && !record->done) {
                code = fake_code(FAKE_R_EVENT_TIMEOUT, E_EVENT_TIMEOUT,
                                 "EE1002: %s: the event did not come in %d ms", name, timeout_ms);
            }
        }
        if (code == 0) {
            host_knows(record);
            code = context_fault(record->stream->context);
        }
        record_unref(record);
    }
    cann_unlock();
    count_sync();
    return code;
}

ACL int aclrtSynchronizeEvent(void *event)
{
    return synchronize_event("aclrtSynchronizeEvent", event, -1);
}

ACL int aclrtSynchronizeEventWithTimeout(void *event, int32_t timeout)
{
    return synchronize_event("aclrtSynchronizeEventWithTimeout", event, timeout);
}

/* 0, or why the event has no time. */
static int event_time(const char *name, void *handle, double *ms)
{
    int code = 0;
    struct event *event = event_of(name, handle, &code);
    if (event == NULL) {
        return code;
    }
    if (event->record == NULL) {
        return fake_code(FAKE_R_ELAPSED_UNRECORDED, E_INTERNAL, "EE9999: %s: an event was not recorded",
                         name);
    }
    if ((event->flags & FLAG_TIME) == 0 || !event->record->done) {
        return fake_code(FAKE_R_ELAPSED_NO_TIME, E_RT_TIMESTAMP, "EE1001: %s: an event has no time stamp%s",
                         name, event->record->done ? ": it was made without ACL_EVENT_TIME_LINE" : " yet");
    }
    *ms = event->record->ms;
    return 0;
}

ACL int aclrtEventElapsedTime(float *ms, void *start, void *end)
{
    enter_free("aclrtEventElapsedTime");
    if (ms == NULL) {
        return fake_code(FAKE_R_NULL_OUT, E_INVALID_PARAM,
                         "EH0001: aclrtEventElapsedTime: the result is NULL");
    }
    double from = 0, to = 0;
    cann_lock();
    int code = event_time("aclrtEventElapsedTime", start, &from);
    code = code != 0 ? code : event_time("aclrtEventElapsedTime", end, &to);
    cann_unlock();
    *ms = code == 0 ? (float)(to - from) : 0;
    return code;
}

ACL int aclrtEventGetTimestamp(void *event, uint64_t *timestamp_us)
{
    enter_free("aclrtEventGetTimestamp");
    if (timestamp_us == NULL) {
        return fake_code(FAKE_R_NULL_OUT, E_INVALID_PARAM,
                         "EH0001: aclrtEventGetTimestamp: the result is NULL");
    }
    double ms = 0;
    cann_lock();
    int code = event_time("aclrtEventGetTimestamp", event, &ms);
    cann_unlock();
    *timestamp_us = (uint64_t)(ms * 1000);
    return code;
}

ACL int aclrtGetEventAvailNum(uint32_t *count)
{
    if (enter("aclrtGetEventAvailNum") == NULL) {
        return E_RT_CONTEXT_NULL;
    }
    if (count == NULL) {
        return fake_code(FAKE_R_NULL_OUT, E_INVALID_PARAM,
                         "EH0001: aclrtGetEventAvailNum: the result is NULL");
    }
    *count = 65536 - (uint32_t)fake_live_count(FAKE_EVENT);
    return 0;
}
