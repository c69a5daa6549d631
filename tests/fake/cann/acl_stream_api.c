/* SPDX-License-Identifier: Apache-2.0 */
/* The calls for streams. */
#include "acl_internal.h"

#include <pthread.h>

static int create_stream(const char *name, void **out, uint32_t flag)
{
    struct context *context = enter(name);
    if (context == NULL) {
        return E_RT_CONTEXT_NULL;
    }
    if (out == NULL) {
        return fake_code(FAKE_R_NULL_OUT, E_INVALID_PARAM, "EH0001: %s: the result is NULL", name);
    }
    if ((flag & ~0x3fu) != 0) {
        return fake_code(FAKE_R_STREAM_ARGUMENTS, E_RT_PARAM, "EE1001: %s: flag 0x%x", name, flag);
    }
    cann_lock();
    struct stream *stream = stream_new(context, false);
    cann_unlock();
    if (stream == NULL) {
        return fake_code(FAKE_R_STREAM_LIMIT, E_NO_STREAM, "EE1001: %s: there are %d streams", name,
                         MAX_SLOTS - 1);
    }
    fake_live(FAKE_STREAM, 1);
    (void)__atomic_add_fetch(&cann.devices[context->device].streams, 1, __ATOMIC_SEQ_CST);
    *out = stream;
    return 0;
}

ACL int aclrtCreateStream(void **stream)
{
    return create_stream("aclrtCreateStream", stream, 0);
}

ACL int aclrtCreateStreamWithConfig(void **stream, uint32_t priority, uint32_t flag)
{
    (void)priority;
    return create_stream("aclrtCreateStreamWithConfig", stream, flag);
}

static int destroy_stream(const char *name, void *handle, bool force)
{
    struct context *context = enter(name);
    if (context == NULL) {
        return E_RT_CONTEXT_NULL;
    }
    if (handle == NULL) {
        return fake_code(FAKE_R_NULL_HANDLE, E_INVALID_PARAM, "EH0001: %s: NULL", name);
    }
    cann_lock();
    int code = 0;
    struct stream *stream = stream_of(name, handle, context, true, &code);
    if (stream != NULL && stream->is_default) {
        fake_trap(FAKE_R_BAD_HANDLE, "%s: the default stream of a context", name);
        code = E_RT_HANDLE;
        stream = NULL;
    }
    if (stream == NULL) {
        cann_unlock();
        return code;
    }
    if (stream->issued > cann.host.at[stream->slot]) {
        fake_lint(FAKE_R_DESTROY_BUSY_STREAM,
                  "%s: stream %d has work that the host has not synchronised with", name, stream->id);
    }
    if (!force) {
        (void)stream_wait(name, stream, stream->issued, -1);
    }
    stream->dead = stream->quit = true;
    stream->released = stream->issued;
    (void)pthread_cond_broadcast(&cann.changed);
    cann_unlock();
    (void)pthread_join(stream->thread, NULL);
    cann_lock();
    cann.slots[stream->slot] = NULL;
    cann_unlock();
    fake_live(FAKE_STREAM, -1);
    (void)__atomic_sub_fetch(&cann.devices[stream->device].streams, 1, __ATOMIC_SEQ_CST);
    return 0;
}

ACL int aclrtDestroyStream(void *stream)
{
    return destroy_stream("aclrtDestroyStream", stream, false);
}

ACL int aclrtDestroyStreamForce(void *stream)
{
    return destroy_stream("aclrtDestroyStreamForce", stream, true);
}

static int synchronize_stream(const char *name, void *handle, int timeout_ms)
{
    struct context *context = enter(name);
    if (context == NULL) {
        return E_RT_CONTEXT_NULL;
    }
    if (timeout_ms == 0) {
        return fake_code(FAKE_R_TIMEOUT_ZERO, E_RT_PARAM, "EE1001: %s: a time-out of 0", name);
    }
    cann_lock();
    int code = 0;
    struct stream *stream = stream_of(name, handle, context, false, &code);
    if (stream != NULL) {
        code = lost_code(stream->device);
        code = code != 0 ? code : stream_wait(name, stream, stream->issued, timeout_ms);
    }
    cann_unlock();
    count_sync();
    return code;
}

ACL int aclrtSynchronizeStream(void *stream)
{
    return synchronize_stream("aclrtSynchronizeStream", stream, -1);
}

ACL int aclrtSynchronizeStreamWithTimeout(void *stream, int32_t timeout)
{
    return synchronize_stream("aclrtSynchronizeStreamWithTimeout", stream, timeout);
}

static int synchronize_device(const char *name, int timeout_ms)
{
    struct context *context = enter(name);
    if (context == NULL) {
        return E_RT_CONTEXT_NULL;
    }
    if (timeout_ms == 0) {
        return fake_code(FAKE_R_TIMEOUT_ZERO, E_RT_PARAM, "EE1001: %s: a time-out of 0", name);
    }
    cann_lock();
    int code = lost_code(context->device);
    for (int s = 1; s < MAX_SLOTS && code == 0; s++) {
        struct stream *stream = cann.slots[s];
        if (stream != NULL && !stream->dead && stream->device == context->device) {
            code = stream_wait(name, stream, stream->issued, timeout_ms);
        }
    }
    cann_unlock();
    count_sync();
    return code;
}

ACL int aclrtSynchronizeDevice(void)
{
    return synchronize_device("aclrtSynchronizeDevice", -1);
}

ACL int aclrtSynchronizeDeviceWithTimeout(int32_t timeout)
{
    return synchronize_device("aclrtSynchronizeDeviceWithTimeout", timeout);
}

ACL int aclrtStreamQuery(void *handle, int *status)
{
    struct context *context = enter("aclrtStreamQuery");
    if (context == NULL) {
        return E_RT_CONTEXT_NULL;
    }
    if (status == NULL) {
        return fake_code(FAKE_R_NULL_OUT, E_INVALID_PARAM, "EH0001: aclrtStreamQuery: the result is NULL");
    }
    cann_lock();
    int code = 0;
    struct stream *stream = stream_of("aclrtStreamQuery", handle, context, false, &code);
    if (stream != NULL) {
        release_all();
        bool done = stream->done == stream->issued;
        *status = done ? 0 : 1;
        if (done) {
            host_joins(stream);
        }
        code = context_fault(stream->context);
    }
    cann_unlock();
    return code;
}

ACL int aclrtStreamGetId(void *handle, int32_t *id)
{
    struct context *context = enter("aclrtStreamGetId");
    if (context == NULL) {
        return E_RT_CONTEXT_NULL;
    }
    if (id == NULL) {
        return fake_code(FAKE_R_NULL_OUT, E_INVALID_PARAM, "EH0001: aclrtStreamGetId: the result is NULL");
    }
    cann_lock();
    int code = 0;
    struct stream *stream = stream_of("aclrtStreamGetId", handle, context, false, &code);
    *id = stream == NULL ? -1 : stream->id;
    cann_unlock();
    return code;
}

ACL int aclrtSetStreamFailureMode(void *handle, uint64_t mode)
{
    struct context *context = enter("aclrtSetStreamFailureMode");
    if (context == NULL) {
        return E_RT_CONTEXT_NULL;
    }
    cann_lock();
    int code = 0;
    struct stream *stream = stream_of("aclrtSetStreamFailureMode", handle, context, true, &code);
    if (stream != NULL && (mode > 1 || stream->mode_set)) {
        code = fake_code(
            FAKE_R_FAILURE_MODE, E_RT_PARAM, "EE1001: aclrtSetStreamFailureMode: mode %llu of stream %d%s",
            (unsigned long long)mode, stream->id, stream->mode_set ? ", which was set before" : "");
    } else if (stream != NULL) {
        stream->mode_set = true;
        stream->context->stop = stream->context->stop || mode == 1;
    }
    cann_unlock();
    return code;
}

ACL int aclrtStreamAbort(void *handle)
{
    struct context *context = enter("aclrtStreamAbort");
    if (context == NULL) {
        return E_RT_CONTEXT_NULL;
    }
    cann_lock();
    int code = 0;
    struct stream *stream = stream_of("aclrtStreamAbort", handle, context, false, &code);
    if (stream != NULL) {
        (void)stream_wait("aclrtStreamAbort", stream, stream->issued, -1);
    }
    cann_unlock();
    return code;
}

ACL int aclrtGetStreamAvailableNum(uint32_t *count)
{
    if (enter("aclrtGetStreamAvailableNum") == NULL) {
        return E_RT_CONTEXT_NULL;
    }
    if (count == NULL) {
        return fake_code(FAKE_R_NULL_OUT, E_INVALID_PARAM,
                         "EH0001: aclrtGetStreamAvailableNum: the result is NULL");
    }
    cann_lock();
    *count = 0;
    for (int s = 1; s < MAX_SLOTS; s++) {
        *count += cann.slots[s] == NULL;
    }
    cann_unlock();
    return 0;
}

ACL int aclrtCtxGetCurrentDefaultStream(void **out)
{
    struct context *context = enter("aclrtCtxGetCurrentDefaultStream");
    if (context == NULL) {
        return E_RT_CONTEXT_NULL;
    }
    if (out == NULL) {
        return fake_code(FAKE_R_NULL_OUT, E_INVALID_PARAM,
                         "EH0001: aclrtCtxGetCurrentDefaultStream: the result is NULL");
    }
    cann_lock();
    int code = 0;
    *out = stream_of("aclrtCtxGetCurrentDefaultStream", NULL, context, false, &code);
    cann_unlock();
    return 0;
}

struct host_call {
    void (*fn)(void *);
    void *args;
};

static int run_host(void *arg)
{
    struct host_call *call = arg;
    struct context *mine = current;
    current = NULL; /* a function of the host must not call the API */
    cann_lock();
    /* What came before is over, and the function may say so to the host's threads. */
    clock_join(&cann.host, &running->stream->clock);
    pinned_release();
    cann_unlock();
    call->fn(call->args);
    current = mine;
    return 0;
}

ACL int aclrtLaunchHostFunc(void *handle, void (*fn)(void *), void *args)
{
    if (enter("aclrtLaunchHostFunc") == NULL) {
        return E_RT_CONTEXT_NULL;
    }
    if (fn == NULL) {
        return fake_code(FAKE_R_NULL_OUT, E_INVALID_PARAM, "EH0001: aclrtLaunchHostFunc: no function");
    }
    struct host_call call = {fn, args};
    return fake_launch("aclrtLaunchHostFunc", handle, NULL, 0, run_host, &call, sizeof call, NULL);
}
