/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: a queue and a thread each. Tasks run late, after random pauses, and never on the thread that
 * queued them. */
#include "acl_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void record_unref(struct record *record)
{
    if (record != NULL && --record->refs == 0) {
        free(record);
    }
}

void release_all(void)
{
    for (int s = 1; s < MAX_SLOTS; s++) {
        if (cann.slots[s] != NULL) {
            cann.slots[s]->released = cann.slots[s]->issued;
        }
    }
    (void)pthread_cond_broadcast(&cann.changed);
}

/* cann.changed, for at most `ms`. */
static void wait_changed(double ms)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + (int64_t)(ms * 1e6);
    until.tv_sec += ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    (void)pthread_cond_timedwait(&cann.changed, &cann.lock, &until);
}

/* ---- The stream's thread ----------------------------------------------------------------------------- */

static void pause_at_random(void)
{
    long most = switch_number("FAKE_CANN_DELAY", 100);
    uint64_t x = most <= 0 ? 1 : fake_random();
    if (x % 16 == 0) {
        struct timespec pause = {0, (long)((x >> 8) % (uint64_t)most) * 1000};
        (void)nanosleep(&pause, NULL);
    }
}

static void wait_for_start(struct stream *stream, const struct task *task)
{
    long late = switch_number("FAKE_CANN_LATE", 0);
    while (late > 0 && stream->released < task->step && now_ms() < task->queued_ms + (double)late) {
        wait_changed(task->queued_ms + (double)late - now_ms());
    }
}

static bool ranges_live(struct task *task)
{
    bool live = true;
    for (size_t i = 0; i < task->nranges; i++) {
        if (task->ranges[i].block->freed) {
            fake_trap(FAKE_R_USE_AFTER_FREE, "%s: %s: block %u was freed before the task ran", task->name,
                      task->ranges[i].range.what, task->ranges[i].block->number);
            live = false;
        }
    }
    return live;
}

static void fail(struct stream *stream, const struct task *task, int code)
{
    struct context *context = stream->context;
    if (context->fault == 0) {
        context->fault = code;
        (void)snprintf(context->fault_text, sizeof context->fault_text,
                       "%.511s%.80s: task %llu of stream %d failed with %d",
                       task->text[0] != '\0' ? task->text : "EZ9999: ", task->name,
                       (unsigned long long)task->number, stream->id, code);
    }
}

/* Faults on demand at the n-th kernel of the process. */
static int demanded(struct stream *stream, struct task *task)
{
    if (fake_fault("kernel")) {
        (void)snprintf(task->text, sizeof task->text, "EZ9999: aicore exception, ");
        return E_KERNEL;
    }
    if (fake_fault("vector")) {
        (void)snprintf(task->text, sizeof task->text, "EZ9999: vector core exception, ");
        return E_VECTOR;
    }
    if (fake_fault("ecc")) {
        cann.devices[stream->device].abnormal = true;
        (void)snprintf(task->text, sizeof task->text, "EZ9999: HBM multi-bit ECC error, ");
        return E_ECC;
    }
    if (fake_fault("lost")) {
        cann.devices[stream->device].abnormal = cann.devices[stream->device].lost = true;
        (void)snprintf(task->text, sizeof task->text, "EZ9999: lost the heartbeat of the device, ");
        return E_HEARTBEAT;
    }
    return 0;
}

static void run_kernel(struct stream *stream, struct task *task)
{
    bool live = ranges_live(task);
    for (size_t i = 0; live && i < task->nranges; i++) {
        struct fake_range *range = &task->ranges[i].range;
        uintptr_t from = (uintptr_t)range->address;
        struct access access = {from,       from + range->size, task->step,
                                task->name, stream->slot,       (range->use & ~FAKE_READ) != 0};
        access_check(task->ranges[i].block, &access, &stream->clock);
    }
    int code = stream->context->fault != 0 && stream->context->stop ? -1 : demanded(stream, task);
    (void)pthread_mutex_unlock(&cann.lock);
    pause_at_random();
    if (live && code == 0) {
        for (size_t i = 0; i < task->nranges; i++) {
            struct fake_range *range = &task->ranges[i].range;
            if (range->use == FAKE_WORKSPACE) {
                (void)memset(alias_of((uintptr_t)range->address), (int)(fake_random() & 0xff), range->size);
            }
        }
        running = task;
        code = task->kernel(task->arg);
        running = NULL;
    }
    if (task->done != NULL) {
        task->done(task->arg);
    }
    (void)pthread_mutex_lock(&cann.lock);
    for (size_t i = 0; i < task->nranges; i++) {
        struct block *block = task->ranges[i].block;
        block->pending--;
        if ((task->ranges[i].range.use & ~FAKE_READ) != 0 && !block->freed && !guards_whole(block)) {
            fake_trap(FAKE_R_GUARD, "%s: %s: bytes around block %u (%zu bytes) were written", task->name,
                      task->ranges[i].range.what, block->number, block->size);
        }
    }
    if (code > 0) {
        fail(stream, task, code);
    }
}

static void run_task(struct stream *stream, struct task *task)
{
    clock_join(&stream->clock, &task->host);
    stream->clock.at[stream->slot] = task->step;
    switch (task->kind) {
    case TASK_KERNEL:
        run_kernel(stream, task);
        break;
    case TASK_RECORD:
        task->record->clock = stream->clock;
        task->record->ms = now_ms();
        task->record->done = true;
        if (task->event->kind == EVENT_FLAG) {
            task->event->set = true;
            task->event->set_clock =
                task->event->set_clock == NULL ? calloc(1, sizeof(struct clock)) : task->event->set_clock;
            if (task->event->set_clock == NULL) {
                abort();
            }
            *task->event->set_clock = stream->clock;
        }
        break;
    case TASK_WAIT:
        while (!task->record->done && !stream->quit) {
            wait_changed(1000);
        }
        clock_join(&stream->clock, &task->record->clock);
        break;
    case TASK_WAIT_FLAG:
        stream->blocked_on = task->event;
        while (!task->event->set && !stream->quit) {
            wait_changed(1000);
        }
        stream->blocked_on = NULL;
        if (task->event->set_clock != NULL) { /* NULL: given up */
            clock_join(&stream->clock, task->event->set_clock);
        }
        break;
    case TASK_RESET:
        task->event->set = false;
        break;
    }
    record_unref(task->record);
}

static void *stream_thread(void *arg)
{
    struct stream *stream = arg;
    current = stream->context;
    (void)pthread_mutex_lock(&cann.lock);
    for (;;) {
        while (stream->head == NULL && !stream->quit) {
            (void)pthread_cond_wait(&cann.changed, &cann.lock);
        }
        struct task *task = stream->head;
        if (task == NULL) {
            break;
        }
        wait_for_start(stream, task);
        run_task(stream, task);
        stream->head = task->next;
        stream->tail = stream->head == NULL ? NULL : stream->tail;
        stream->done = task->step;
        free(task->ranges);
        free(task);
        (void)pthread_cond_broadcast(&cann.changed);
    }
    (void)pthread_mutex_unlock(&cann.lock);
    return NULL;
}

/* ---- Queueing ---------------------------------------------------------------------------------------- */

struct stream *stream_new(struct context *context, bool is_default)
{
    int slot = 1;
    while (slot < MAX_SLOTS && cann.slots[slot] != NULL) {
        slot++;
    }
    if (slot == MAX_SLOTS) {
        return NULL;
    }
    struct stream *stream = handle_new(HANDLE_STREAM);
    stream->context = context;
    stream->device = context->device;
    stream->slot = slot;
    stream->id = cann.stream_ids++;
    stream->is_default = is_default;
    stream->clock = cann.host;
    stream->issued = stream->done = stream->released = cann.slot_steps[slot];
    stream->clock.at[slot] = stream->issued;
    cann.host.at[slot] = stream->issued;
    cann.slots[slot] = stream;
    if (pthread_create(&stream->thread, NULL, stream_thread, stream) != 0) {
        perror("fake cann: a thread for a stream");
        abort();
    }
    return stream;
}

struct stream *stream_of(const char *name, void *handle, struct context *context, bool same_context,
                         int *code)
{
    *code = 0;
    if (handle == NULL) {
        if (context->default_stream == NULL) {
            context->default_stream = stream_new(context, true);
        }
        return context->default_stream;
    }
    struct stream *stream = handle;
    if (!handle_is(HANDLE_STREAM, handle) || stream->dead || stream->context->dead) {
        fake_trap(FAKE_R_BAD_HANDLE, "%s: stream %p is %s", name, handle,
                  handle_is(HANDLE_STREAM, handle)  ? "destroyed"
                  : handle_is(HANDLE_EVENT, handle) ? "an event"
                                                    : "no stream");
        fake_error_text("EE1017: %s: stream %p is no valid handle", name, handle);
        *code = E_RT_HANDLE;
        return NULL;
    }
    if (same_context && stream->context != context) {
        *code = fake_code(FAKE_R_OTHER_CONTEXT, E_RT_STREAM_CONTEXT,
                          "EE1010: %s: stream %d belongs to another context than the current one", name,
                          stream->id);
        return NULL;
    }
    return stream;
}

struct task *task_new(struct stream *stream, enum task_kind kind, const char *name, size_t arg_size)
{
    struct task *task = aligned_alloc(16, (sizeof *task + arg_size + 15) / 16 * 16);
    if (task == NULL) {
        abort();
    }
    (void)memset(task, 0, sizeof *task);
    task->kind = kind;
    task->stream = stream;
    task->name = name;
    return task;
}

void task_queue(struct stream *stream, struct task *task)
{
    task->step = ++stream->issued;
    cann.slot_steps[stream->slot] = stream->issued;
    task->number = ++cann.tasks;
    task->queued_ms = now_ms();
    task->host = cann.host;
    if (stream->tail != NULL) {
        stream->tail->next = task;
    } else {
        stream->head = task;
    }
    stream->tail = task;
    (void)pthread_cond_broadcast(&cann.changed);
}

/* Checks the ranges that count; false: one is wrong and a trap was told. */
static bool check_ranges(const char *name, const struct stream *stream, const struct fake_range *ranges,
                         size_t n, struct task_range *out, size_t *out_n, bool peer)
{
    *out_n = 0;
    bool good = true;
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].address == NULL || ranges[i].size == 0) {
            continue;
        }
        uintptr_t from = (uintptr_t)ranges[i].address;
        struct block *block =
            block_checked(name, ranges[i].what, from, ranges[i].size, peer ? -1 : stream->device);
        if (block == NULL) {
            good = false;
            continue;
        }
        out[(*out_n)++] = (struct task_range){ranges[i], block};
        if (ranges[i].use != FAKE_WORKSPACE) {
            continue;
        }
        if (from % 32 != 0 || block->device < 0) {
            fake_trap(FAKE_R_WORKSPACE_ALIGN, "%s: the workspace at %p is not 32-byte aligned device memory",
                      name, ranges[i].address);
            good = false;
        }
        for (size_t k = 0; k < n; k++) {
            uintptr_t other = (uintptr_t)ranges[k].address;
            if (k != i && other != 0 && other < from + ranges[i].size && from < other + ranges[k].size) {
                fake_trap(FAKE_R_WORKSPACE_OVERLAP, "%s: the workspace overlaps %s", name, ranges[k].what);
                good = false;
            }
        }
    }
    return good;
}

int launch(const char *name, struct stream *stream, const struct fake_range *ranges, size_t nranges,
           fake_kernel kernel, const void *arg, size_t arg_size, fake_done done, bool peer)
{
    struct context *context = stream->context;
    struct task_range *checked = calloc(nranges + 1, sizeof checked[0]);
    struct task *task = task_new(stream, TASK_KERNEL, name, arg_size);
    if (checked == NULL) {
        abort();
    }
    if (arg_size != 0) {
        (void)memcpy(task->arg, arg, arg_size);
    }
    bool good = check_ranges(name, stream, ranges, nranges, checked, &task->nranges, peer);
    int code = lost_code(stream->device);
    if (good && code == 0 && context->fault != 0) {
        fake_lint(FAKE_R_AFTER_FAULT, "%s is queued after %s", name, context->fault_text);
        code = context->stop ? E_STREAM_ABORT : 0;
    }
    if (!good || code != 0) {
        free(checked);
        if (done != NULL) {
            done(task->arg);
        }
        free(task);
        return good ? code : E_INVALID_PARAM;
    }
    task->kernel = kernel;
    task->done = done;
    task->ranges = checked;
    for (size_t i = 0; i < task->nranges; i++) {
        checked[i].block->pending++;
        checked[i].block->pending_name = name;
    }
    count_launch(name);
    task_queue(stream, task);
    return 0;
}

int fake_launch(const char *name, void *handle, const struct fake_range *ranges, size_t nranges,
                fake_kernel kernel, const void *arg, size_t arg_size, fake_done done)
{
    struct context *context = current_context();
    if (context == NULL) {
        if (done != NULL) {
            done((void *)arg); /* NOLINT: a copy is not needed where it does not run */
        }
        return fake_code(FAKE_R_NO_CONTEXT, E_RT_CONTEXT_NULL,
                         "EE1001: %s: this thread has no current context", name);
    }
    cann_lock();
    int code = 0;
    struct stream *stream = stream_of(name, handle, context, false, &code);
    if (stream != NULL && stream->device != context->device) {
        fake_trap(FAKE_R_OTHER_DEVICE, "%s: the stream is of device %d, the thread's device is %d", name,
                  stream->device, context->device);
        code = E_RT_STREAM_CONTEXT;
    }
    if (stream != NULL && code == 0) {
        code = launch(name, stream, ranges, nranges, kernel, arg, arg_size, done, false);
    } else if (done != NULL) {
        done((void *)arg); /* NOLINT */
    }
    cann_unlock();
    return code;
}

int fake_stream_device(void *handle)
{
    struct context *context = current_context();
    if (handle == NULL) {
        return context == NULL ? -1 : context->device;
    }
    cann_lock();
    int device = handle_is(HANDLE_STREAM, handle) && !((struct stream *)handle)->dead
                     ? ((struct stream *)handle)->device
                     : -1;
    cann_unlock();
    return device;
}

void fake_task_text(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(running->text, sizeof running->text, format, args);
    va_end(args);
}

const char *fake_task_name(void)
{
    return running == NULL ? "" : running->name;
}

uint64_t fake_task_number(void)
{
    return running == NULL ? 0 : running->number;
}

/* ---- Waiting ----------------------------------------------------------------------------------------- */

int context_fault(struct context *context)
{
    if (context->fault != 0) {
        fake_error_text("%s", context->fault_text);
    }
    return context->fault;
}

void host_joins(struct stream *stream)
{
    struct clock known = stream->clock;
    known.at[stream->slot] = stream->done; /* not the task that runs now */
    clock_join(&cann.host, &known);
    pinned_release();
}

int stream_wait(const char *name, struct stream *stream, uint64_t step, int timeout_ms)
{
    double start = now_ms(), quiet = start, deadlock = (double)switch_number("FAKE_CANN_DEADLOCK", 10000);
    uint64_t seen = stream->done;
    if (fake_fault("sync_timeout")) {
        return fake_code(FAKE_R_SYNC_TIMEOUT, E_STREAM_TIMEOUT, "EE1002: %s: stream %d is not done in time",
                         name, stream->id);
    }
    release_all();
    while (stream->done < step) {
        wait_changed(timeout_ms < 0 ? 100 : 1);
        quiet = seen != stream->done || stream->blocked_on == NULL ? now_ms() : quiet;
        seen = stream->done;
        if (timeout_ms >= 0 && now_ms() - start >= timeout_ms && stream->done < step) {
            return fake_code(FAKE_R_SYNC_TIMEOUT, E_STREAM_TIMEOUT,
                             "EE1002: %s: stream %d is not done after %d ms", name, stream->id, timeout_ms);
        }
        if (now_ms() - quiet > deadlock) {
            fake_trap(FAKE_R_DEADLOCK, "%s: stream %d waits for an event that was never recorded", name,
                      stream->id);
            return E_STREAM_TIMEOUT;
        }
    }
    host_joins(stream);
    return context_fault(stream->context);
}
