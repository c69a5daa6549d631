/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills. Synchronous ones do not wait for streams; asynchronous ones with pageable memory wait for
 * theirs, as the real ones do. */
#include "acl_internal.h"

#include <stdlib.h>
#include <string.h>

enum { H2H, H2D, D2H, D2D, BY_ADDRESS, BUFFERED_H2D, KINDS };
enum { POISON = 0xdb }; /* what the target of a queued copy holds until the copy runs */

/* The bytes of a pinned source, until the host has synchronised with the copy. */
struct snapshot {
    struct snapshot *next;
    const char *name;
    uintptr_t from;
    size_t size;
    int slot;
    uint64_t step;
    bool over; /* told, or another task may have written there since */
    unsigned char bytes[];
};
static struct snapshot *snapshots;

/* `rows` rows of `width` bytes; one row: a plain copy. */
struct copy {
    const char *name;
    void *dst;
    const void *src;
    size_t dpitch, spitch, width, rows;
    int value;                 /* of a fill: src is NULL */
    struct snapshot *snapshot; /* of a pinned source when it was queued */
    bool poisoned;             /* a pinned target */
};

static size_t extent(size_t pitch, size_t width, size_t rows)
{
    return (rows - 1) * pitch + width;
}

static bool is_pinned(uintptr_t at)
{
    struct block *block = is_device_address(at) ? NULL : block_find(at);
    return block != NULL && !block->freed;
}

static void move(const struct copy *copy)
{
    char *dst = alias_of((uintptr_t)copy->dst);
    const char *src = copy->src == NULL ? NULL : alias_of((uintptr_t)copy->src);
    for (size_t r = 0; r < copy->rows; r++) {
        if (src == NULL) {
            (void)memset(dst + r * copy->dpitch, copy->value, copy->width);
        } else {
            (void)memmove(dst + r * copy->dpitch, src + r * copy->spitch, copy->width);
        }
    }
}

static void snapshot_check(struct snapshot *snapshot)
{
    if (!snapshot->over && memcmp(snapshot->bytes, alias_of(snapshot->from), snapshot->size) != 0) {
        snapshot->over = true;
        fake_trap(FAKE_R_PINNED_CHANGED,
                  "%s: the host changed the source at %p before it synchronised with the copy",
                  snapshot->name, (void *)snapshot->from); /* NOLINT */
    }
}

void snapshots_release(void)
{
    for (struct snapshot **at = &snapshots; *at != NULL;) {
        struct snapshot *snapshot = *at;
        if (snapshot->step > cann.host.at[snapshot->slot]) {
            at = &snapshot->next;
            continue;
        }
        snapshot_check(snapshot);
        *at = snapshot->next;
        free(snapshot);
    }
}

/* A task is to write [from, to): what was there need not stay. */
static void snapshots_overwritten(uintptr_t from, uintptr_t to)
{
    for (struct snapshot *snapshot = snapshots; snapshot != NULL; snapshot = snapshot->next) {
        snapshot->over = snapshot->over || (snapshot->from < to && from < snapshot->from + snapshot->size);
    }
}

static struct snapshot *snapshot_take(const char *name, uintptr_t from, size_t size,
                                      const struct stream *stream)
{
    struct snapshot *snapshot = malloc(sizeof *snapshot + size);
    if (snapshot == NULL) {
        abort();
    }
    *snapshot = (struct snapshot){snapshots, name, from, size, stream->slot, stream->issued + 1, false};
    (void)memcpy(snapshot->bytes, alias_of(from), size);
    snapshots = snapshot;
    return snapshot;
}

static int run_copy(void *arg)
{
    struct copy *copy = arg;
    if (copy->snapshot != NULL) {
        cann_lock();
        snapshot_check(copy->snapshot);
        cann_unlock();
    }
    const unsigned char *target = alias_of((uintptr_t)copy->dst);
    bool whole = true;
    for (size_t r = 0; copy->poisoned && r < copy->rows; r++) {
        for (size_t i = 0; i < copy->width; i++) {
            whole = whole && target[r * copy->dpitch + i] == POISON;
        }
    }
    if (!whole) {
        fake_trap(FAKE_R_PINNED_TOUCHED, "%s: the host wrote to the target at %p before the copy ran",
                  copy->name, copy->dst);
    }
    move(copy);
    return 0;
}

/* The blocks of both sides, and whether a copy between them is allowed; false: a trap was told. */
static bool sides(const struct copy *copy, struct context *context, struct block **out_src,
                  struct block **out_dst)
{
    uintptr_t src = (uintptr_t)copy->src, dst = (uintptr_t)copy->dst;
    *out_src = *out_dst = NULL;
    if (src != 0 && (is_device_address(src) || is_pinned(src))) {
        *out_src =
            block_checked(copy->name, "source", src, extent(copy->spitch, copy->width, copy->rows), -1);
        if (*out_src == NULL) {
            return false;
        }
    }
    if (is_device_address(dst) || is_pinned(dst)) {
        *out_dst =
            block_checked(copy->name, "destination", dst, extent(copy->dpitch, copy->width, copy->rows), -1);
        if (*out_dst == NULL) {
            return false;
        }
    }
    if (src != 0 && *out_src != NULL && *out_src == *out_dst &&
        src < dst + extent(copy->dpitch, copy->width, copy->rows) &&
        dst < src + extent(copy->spitch, copy->width, copy->rows) && copy->rows == 1) {
        fake_trap(FAKE_R_COPY_OVERLAP, "%s: %zu bytes from %p to %p", copy->name, copy->width, copy->src,
                  copy->dst);
        return false;
    }
    int from = *out_src == NULL ? -1 : (*out_src)->device, to = *out_dst == NULL ? -1 : (*out_dst)->device;
    if (from >= 0 && to >= 0 && from != to) {
        int here = context->device, there = from == here ? to : from;
        if ((from != here && to != here) || !cann.devices[here].peer[there]) {
            fake_trap(FAKE_R_PEER_NOT_ENABLED,
                      "%s: from device %d to device %d while the current device is %d, without "
                      "aclrtDeviceEnablePeerAccess",
                      copy->name, from, to, here);
            return false;
        }
    }
    return true;
}

static int copy_now(const struct copy *copy, struct context *context)
{
    struct block *src = NULL, *dst = NULL;
    if (!sides(copy, context, &src, &dst)) {
        return E_INVALID_PARAM;
    }
    if (src != NULL) {
        host_access(copy->name, src, (uintptr_t)copy->src, extent(copy->spitch, copy->width, copy->rows),
                    false);
    }
    if (dst != NULL) {
        host_access(copy->name, dst, (uintptr_t)copy->dst, extent(copy->dpitch, copy->width, copy->rows),
                    true);
    }
    move(copy);
    return 0;
}

/* Checks of the arguments that both kinds of call share: < 0 go on, otherwise what to return. */
static int check(const struct copy *copy, size_t max, int kind)
{
    if (copy->width == 0 || copy->rows == 0) {
        return 0;
    }
    if (copy->dst == NULL || copy->src == NULL) {
        return fake_code(FAKE_R_COPY_NULL, E_INVALID_PARAM, "EH0001: %s: from %p to %p", copy->name,
                         copy->src, copy->dst);
    }
    if (copy->rows == 1 && copy->width > max) {
        return fake_code(FAKE_R_COPY_MAX, E_RT_PARAM, "EE1001: %s: %zu bytes into %zu", copy->name,
                         copy->width, max);
    }
    if (copy->width > copy->dpitch || copy->width > copy->spitch) {
        return fake_code(FAKE_R_COPY_PITCH, E_RT_PARAM,
                         "EE1001: %s: rows of %zu bytes with pitches %zu and %zu", copy->name, copy->width,
                         copy->dpitch, copy->spitch);
    }
    if (kind < 0 || kind >= KINDS) {
        return fake_code(FAKE_R_COPY_KIND, E_INVALID_PARAM, "EH0001: %s: kind %d", copy->name, kind);
    }
    return copy->dst == copy->src ? 0 : -1;
}

static int copy_sync(const struct copy *copy, size_t max, int kind)
{
    struct context *context = enter(copy->name);
    if (context == NULL) {
        return E_RT_CONTEXT_NULL;
    }
    int code = check(copy, max, kind);
    if (code >= 0) {
        return code;
    }
    cann_lock();
    code = lost_code(context->device);
    code = code != 0 ? code : copy_now(copy, context);
    cann_unlock();
    return code;
}

/* Queues the copy; its host side is pinned. */
static int queue_copy(struct copy *copy, struct stream *stream, struct context *context)
{
    struct block *src = NULL, *dst = NULL;
    if (!sides(copy, context, &src, &dst)) {
        return E_INVALID_PARAM;
    }
    size_t read = copy->src == NULL ? 0 : extent(copy->spitch, copy->width, copy->rows);
    size_t written = extent(copy->dpitch, copy->width, copy->rows);
    uintptr_t from = (uintptr_t)copy->src, to = (uintptr_t)copy->dst;
    if (src != NULL && src->device < 0 && !block_busy(src, from, from + read)) {
        copy->snapshot = snapshot_take(copy->name, from, read, stream);
    }
    bool to_pinned = dst != NULL && dst->device < 0;
    if (to_pinned) {
        snapshots_overwritten(to, to + written);
    }
    if (to_pinned && !block_busy(dst, to, to + written)) {
        copy->poisoned = true;
        for (size_t r = 0; r < copy->rows; r++) {
            (void)memset((char *)alias_of(to) + r * copy->dpitch, POISON, copy->width);
        }
    }
    if (to_pinned && copy->rows == 1) {
        pinned_protect(to, to + written, stream->slot, stream->issued + 1);
    }
    struct fake_range ranges[] = {{copy->src, read, FAKE_READ, "source"},
                                  {copy->dst, written, FAKE_WRITE, "destination"}};
    int code = launch(copy->name, stream, ranges, 2, run_copy, copy, sizeof *copy, NULL, true);
    if (code != 0 && copy->snapshot != NULL) {
        copy->snapshot->over = true;
    }
    return code;
}

static int copy_async(struct copy *copy, size_t max, int kind, void *stream_handle)
{
    struct context *context = enter(copy->name);
    if (context == NULL) {
        return E_RT_CONTEXT_NULL;
    }
    int code = check(copy, max, kind);
    if (code >= 0) {
        return code;
    }
    cann_lock();
    struct stream *stream = stream_of(copy->name, stream_handle, context, true, &code);
    if (stream == NULL) {
        cann_unlock();
        return code;
    }
    uintptr_t from = (uintptr_t)copy->src, to = (uintptr_t)copy->dst;
    bool src_device = is_device_address(from), dst_device = is_device_address(to);
    bool src_pageable = !src_device && !is_pinned(from), dst_pageable = !dst_device && !is_pinned(to);
    if ((!src_device && !dst_device) || kind == H2H) {
        code = fake_code(FAKE_R_COPY_HOST_TO_HOST, E_FEATURE, "EE1001: %s: from host to host", copy->name);
    } else if ((src_pageable && (kind == D2H || kind == D2D)) ||
               (dst_pageable && (kind == H2D || kind == D2D || kind == BUFFERED_H2D))) {
        code = fake_code(FAKE_R_COPY_DIRECTION, E_RT_PARAM,
                         "EE1001: %s: kind %d with host memory that is not registered on the %s side",
                         copy->name, kind, src_pageable ? "source" : "destination");
    } else if (src_pageable || dst_pageable) {
        fake_lint(FAKE_R_COPY_PAGEABLE, "%s: host memory at %p is not pinned: the call waits for the stream",
                  copy->name, src_pageable ? copy->src : copy->dst);
        code = stream_wait(copy->name, stream, stream->issued, -1);
        code = code != 0 ? code : copy_now(copy, context);
    } else {
        code = queue_copy(copy, stream, context);
    }
    cann_unlock();
    return code;
}

ACL int aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count, int kind)
{
    struct copy copy = {.name = "aclrtMemcpy",
                        .dst = dst,
                        .src = src,
                        .dpitch = count,
                        .spitch = count,
                        .width = count,
                        .rows = 1};
    return copy_sync(&copy, destMax, kind);
}

ACL int aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count, int kind, void *stream)
{
    struct copy copy = {.name = "aclrtMemcpyAsync",
                        .dst = dst,
                        .src = src,
                        .dpitch = count,
                        .spitch = count,
                        .width = count,
                        .rows = 1};
    return copy_async(&copy, destMax, kind, stream);
}

ACL int aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                      int kind)
{
    struct copy copy = {.name = "aclrtMemcpy2d",
                        .dst = dst,
                        .src = src,
                        .dpitch = dpitch,
                        .spitch = spitch,
                        .width = width,
                        .rows = height};
    return copy_sync(&copy, dpitch, kind);
}

ACL int aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                           size_t height, int kind, void *stream)
{
    struct copy copy = {.name = "aclrtMemcpy2dAsync",
                        .dst = dst,
                        .src = src,
                        .dpitch = dpitch,
                        .spitch = spitch,
                        .width = width,
                        .rows = height};
    return copy_async(&copy, dpitch, kind, stream);
}

/* < 0: go on. */
static int check_fill(const struct copy *fill, size_t max)
{
    if (fill->width == 0) {
        return 0;
    }
    if (fill->dst == NULL) {
        return fake_code(FAKE_R_COPY_NULL, E_INVALID_PARAM, "EH0001: %s: NULL", fill->name);
    }
    if (fill->width > max) {
        return fake_code(FAKE_R_COPY_MAX, E_RT_PARAM, "EE1001: %s: %zu bytes into %zu", fill->name,
                         fill->width, max);
    }
    return -1;
}

static int not_fillable(const struct copy *fill)
{
    return fake_code(FAKE_R_MEMSET_HOST, E_RT_PARAM, "EE1001: %s: %p is host memory of the program",
                     fill->name, fill->dst);
}

ACL int aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count)
{
    struct copy fill = {
        .name = "aclrtMemset", .dst = devPtr, .dpitch = count, .width = count, .rows = 1, .value = value};
    struct context *context = enter(fill.name);
    if (context == NULL) {
        return E_RT_CONTEXT_NULL;
    }
    int code = check_fill(&fill, maxCount);
    if (code >= 0) {
        return code;
    }
    cann_lock();
    uintptr_t at = (uintptr_t)devPtr;
    if (!is_device_address(at) && !is_pinned(at)) {
        code = not_fillable(&fill);
    } else {
        code = lost_code(context->device);
        code = code != 0 ? code : copy_now(&fill, context);
    }
    cann_unlock();
    return code;
}

ACL int aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count, void *stream_handle)
{
    struct copy fill = {.name = "aclrtMemsetAsync",
                        .dst = devPtr,
                        .dpitch = count,
                        .width = count,
                        .rows = 1,
                        .value = value};
    struct context *context = enter(fill.name);
    if (context == NULL) {
        return E_RT_CONTEXT_NULL;
    }
    int code = check_fill(&fill, maxCount);
    if (code >= 0) {
        return code;
    }
    cann_lock();
    uintptr_t at = (uintptr_t)devPtr;
    struct stream *stream = stream_of(fill.name, stream_handle, context, true, &code);
    if (stream != NULL) {
        code = !is_device_address(at) && !is_pinned(at) ? not_fillable(&fill)
                                                        : queue_copy(&fill, stream, context);
    }
    cann_unlock();
    return code;
}
