/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of the npu backend: contexts of threads, memory, copies, streams, events. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/npu/npu.h"
#include "backend/npu/npu_table.h"

/* The device that is current in a thread, by its serial number, so that a closed one is not taken for a new one at its address. */
static _Thread_local uint64_t entered_serial;
static _Thread_local cti_npu_device *entered;
static _Atomic uint64_t serials;
static _Atomic bool is_deterministic;

void ct_backend_npu_set_deterministic(bool is_on)
{
    is_deterministic = is_on;
}

/* Of the environment, where npu.h lists the names. */
static bool is_set(const char *name, const char *value)
{
    const char *got = getenv(name); /* NOLINT(concurrency-mt-unsafe): nothing of ours writes the environment */
    return got != NULL && strcmp(got, value) == 0;
}

static ct_status failed(const cti_npu_device *dev, aclError e, ct_err *err, const char *what)
{
    return cti_acl_fail(dev->cann, e, err, "npu %d: %s", (int)dev->index, what);
}

#define ACL_TRY(dev, call, err, what)             \
    do {                                          \
        const aclError acl_error_ = (call);       \
        if (acl_error_ != 0) {                    \
            return failed(dev, acl_error_, err, what); \
        }                                         \
    } while (0)

ct_status cti_npu_enter(cti_npu_device *dev, ct_err *err)
{
    if (entered_serial != dev->serial) {
        ACL_TRY(dev, dev->cann->aclrtSetDevice(dev->index), err, "aclrtSetDevice");
        dev->n_set++;
        entered_serial = dev->serial;
        entered = dev;
    }
    return CT_OK;
}

cti_npu_device *cti_npu_current(void)
{
    return entered_serial != 0 ? entered : NULL;
}

static ct_status device_count(int32_t *out_n, ct_err *err)
{
    const cti_cann *cann;
    uint32_t n = 0;
    *out_n = 0;
    ct_err why = {0};
    const ct_status st = cti_cann_load(&cann, &why);
    if (st == CT_ERR_NOT_FOUND) {
        return CT_OK; /* no CANN, no device */
    }
    if (st != CT_OK) {
        return CT_FAIL(err, st, "npu: %s", why.message);
    }
    const aclError e = cann->aclrtGetDeviceCount(&n);
    if (e != 0) { /* CANN on a machine without devices is no failure, a list of devices that cannot be read is one */
        const ct_status failed_by = cti_acl_fail(cann, e, &why, "npu: aclrtGetDeviceCount");
        return e == ACL_ERROR_RT_NO_DEVICE && strstr(why.message, "EE2002") == NULL ? CT_OK : CT_FAIL(err, failed_by, "%s", why.message);
    }
    *out_n = (int32_t)n;
    return CT_OK;
}

static void device_close(void **device);

static ct_status set_up(cti_npu_device *dev, ct_err *err)
{
    CT_TRY(cti_npu_enter(dev, err));
    if (is_deterministic) {
        if (dev->cann->aclrtSetSysParamOpt == NULL || dev->cann->aclrtCtxSetSysParamOpt == NULL) {
            return CT_FAIL(err, CT_ERR_UNSUPPORTED, "npu %d: this CANN has no switch for sums in one order (--debug.deterministic): aclrtSetSysParamOpt is missing",
                           (int)dev->index);
        }
        ACL_TRY(dev, dev->cann->aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1), err, "aclrtSetSysParamOpt of ACL_OPT_DETERMINISTIC");
        ACL_TRY(dev, dev->cann->aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1), err, "aclrtCtxSetSysParamOpt of ACL_OPT_DETERMINISTIC");
    }
    for (int i = 0; i < CTI_NPU_STREAMS; i++) {
        ACL_TRY(dev, dev->cann->aclrtCreateStreamWithConfig(&dev->streams[i], 0, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC), err,
                "aclrtCreateStreamWithConfig");
    }
    return CT_OK;
}

static ct_status device_open(const ct_alloc *alloc, int32_t index, void **out_device, ct_err *err)
{
    const cti_cann *cann;
    ct_err why = {0};
    ct_status st = cti_cann_load(&cann, &why);
    if (st != CT_OK) {
        return CT_FAIL(err, st, "npu %d: %s", (int)index, why.message);
    }
    uint32_t n = 0;
    const aclError e = cann->aclrtGetDeviceCount(&n);
    if (e != 0) {
        return cti_acl_fail(cann, e, err, "npu %d: aclrtGetDeviceCount", (int)index);
    }
    if (index < 0 || (uint32_t)index >= n) {
        const char *visible = getenv("ASCEND_RT_VISIBLE_DEVICES"); /* NOLINT(concurrency-mt-unsafe): for the message */
        return CT_FAIL(err, CT_ERR_RANGE, "npu: device %d was asked for, there are %u (ASCEND_RT_VISIBLE_DEVICES %s%.100s)", (int)index, (unsigned)n,
                       visible != NULL ? "is " : "is not set", visible != NULL ? visible : "");
    }
    cti_npu_device *dev = CT_NEW(alloc, cti_npu_device, err);
    if (dev == NULL) {
        return CT_ERR_MEMORY;
    }
    dev->alloc = alloc;
    dev->cann = cann;
    dev->index = index;
    dev->serial = ++serials;
    dev->is_prepared = !is_set("CTITAN_NPU_PREPARE", "0");
    dev->is_synchronous = is_set("CTITAN_NPU_SYNC", "1") || is_set("ASCEND_LAUNCH_BLOCKING", "1");
    st = set_up(dev, err);
    void *device = dev;
    if (st != CT_OK) {
        device_close(&device);
        return st;
    }
    *out_device = dev;
    return CT_OK;
}

bool cti_npu_is_idle(cti_npu_device *dev)
{
    bool is_idle = true;
    for (int i = 0; i < CTI_NPU_STREAMS && dev->streams[i] != NULL; i++) {
        is_idle = dev->cann->aclrtSynchronizeStream(dev->streams[i]) == 0 && is_idle; /* a fault was told, or is told by synchronize() */
    }
    return is_idle;
}

static void free_all(cti_npu_device *dev)
{
    const cti_cann *cann = dev->cann;
    for (int32_t i = 0; i < dev->n_events; i++) {
        (void)(dev->events[i] != NULL ? cann->aclrtDestroyEvent(dev->events[i]) : 0);
    }
    for (int i = 0; i < CTI_NPU_STREAMS; i++) {
        (void)(dev->streams[i] != NULL ? cann->aclrtDestroyStream(dev->streams[i]) : 0);
        (void)(dev->spare[i] != NULL ? cann->aclrtFree(dev->spare[i]) : 0);
    }
    (void)(dev->mask != NULL ? cann->aclrtFree(dev->mask) : 0);
    (void)(dev->ring != NULL ? cann->aclrtFreeHost(dev->ring) : 0);
    cti_npu_published_deinit(dev);
}

/* Errors are nobody's concern here: what fails was reported where it was used, and all of it goes. */
static void device_close(void **device)
{
    cti_npu_device *dev = *device;
    if (dev == NULL) {
        return;
    }
    const cti_cann *cann = dev->cann;
    if (cti_npu_enter(dev, NULL) == CT_OK) {
        if (cti_npu_is_idle(dev)) {
            free_all(dev);
        } /* else the reset takes what a failed device may still use */
        while (dev->n_set > 0) {
            dev->n_set--;
            (void)cann->aclrtResetDevice(dev->index);
        }
    }
    if (entered == dev) {
        entered = NULL;
        entered_serial = 0;
    }
    ct_alloc_free(dev->alloc, dev->events);
    ct_alloc_free(dev->alloc, dev);
    *device = NULL;
}

static ct_status device_facts(void *device, ct_device_facts *out_facts, ct_err *err)
{
    cti_npu_device *dev = device;
    CT_TRY(cti_npu_enter(dev, err));
    const char *soc = dev->cann->aclrtGetSocName != NULL ? dev->cann->aclrtGetSocName() : NULL;
    size_t free_bytes = 0, total = 0;
    double f32 = 0.0;
    ACL_TRY(dev, dev->cann->aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total), err, "aclrtGetMemInfo");
    *out_facts = (ct_device_facts){.type = "NPU", .memory_bytes = (int64_t)total, .memory_free_bytes = (int64_t)free_bytes, .has_native_bf16 = cti_npu_has_bf16(soc)};
    (void)snprintf(out_facts->name, sizeof out_facts->name, "%.100s", soc != NULL ? soc : "Ascend");
    (void)cti_npu_peaks(soc, &out_facts->peak_flops_bf16, &f32); /* 0 where it is not known */
    out_facts->peak_flops = f32 > 0 ? f32 : out_facts->peak_flops_bf16;
    int status = 0;
    if (dev->cann->aclrtQueryDeviceStatus != NULL && dev->cann->aclrtQueryDeviceStatus(dev->index, &status) == 0) {
        (void)snprintf(out_facts->health, sizeof out_facts->health, "%s", status == ACL_DEVICE_STATUS_NORMAL ? "OK" : "Abnormal");
    }
    return CT_OK;
}

static ct_status allocate(cti_npu_device *dev, size_t bytes, void **out_ptr, ct_err *err)
{
    const cti_cann *cann = dev->cann;
    const aclError e = cann->aclrtMallocAlign32 != NULL ? cann->aclrtMallocAlign32(out_ptr, bytes, ACL_MEM_MALLOC_HUGE_FIRST)
                                                        : cann->aclrtMalloc(out_ptr, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    if (e == 0) {
        return CT_OK;
    }
    char what[160];
    size_t free_bytes = 0, total = 0;
    const bool is_known = cann->aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total) == 0;
    (void)snprintf(what, sizeof what, is_known ? "aclrtMalloc of %zu bytes (%zu are free of %zu)" : "aclrtMalloc of %zu bytes", bytes, free_bytes, total);
    return failed(dev, e, err, what);
}

static ct_status memory_alloc(void *device, size_t bytes, void **out_ptr, ct_err *err)
{
    cti_npu_device *dev = device;
    const size_t size = bytes > 0 ? bytes : 1; /* CANN has no empty blocks */
    CT_TRY(cti_npu_enter(dev, err));
    CT_TRY(allocate(dev, size, out_ptr, err));
    const aclError e = dev->cann->aclrtMemset(*out_ptr, size, 0, size);
    if (e != 0) {
        (void)dev->cann->aclrtFree(*out_ptr); /* the failure that counts is the other */
        *out_ptr = NULL;
        return failed(dev, e, err, "aclrtMemset");
    }
    return CT_OK;
}

/* CANN frees at once, whatever is enqueued: so all that is ends first. What a device that failed may still use stays until it is reset. */
static void memory_free(void *device, void *ptr, size_t bytes)
{
    cti_npu_device *dev = device;
    if (ptr == NULL || cti_npu_enter(dev, NULL) != CT_OK) {
        return;
    }
    cti_npu_forget(dev, ptr, bytes);
    if (cti_npu_is_idle(dev)) {
        (void)dev->cann->aclrtFree(ptr); /* fails for memory that is not ours only */
    }
}

aclrtStream cti_npu_stream(const cti_npu_device *dev, void *stream)
{
    return stream != NULL ? stream : dev->streams[0];
}

ct_status cti_npu_wait(cti_npu_device *dev, aclrtStream stream, ct_err *err)
{
    ACL_TRY(dev, dev->cann->aclrtSynchronizeStream(stream), err, stream == dev->streams[0] ? "aclrtSynchronizeStream (computation)" : "aclrtSynchronizeStream (collectives)");
    return CT_OK;
}

/* Small things go through a ring of pinned memory and are read from there later. Where the ring begins anew, what is read from it has been. Large ones
 * are copied from where they are, behind what is enqueued. */
ct_status cti_npu_upload(cti_npu_device *dev, void *dst, const void *src, size_t bytes, aclrtStream stream, ct_err *err)
{
    enum { LARGE = CTI_NPU_RING_BYTES / 4, ALIGN = 64 };
    if (bytes == 0) {
        return CT_OK;
    }
    if (bytes > LARGE) {
        CT_TRY(cti_npu_wait(dev, stream, err));
        ACL_TRY(dev, dev->cann->aclrtMemcpy(dst, bytes, src, bytes, ACL_MEMCPY_HOST_TO_DEVICE), err, "aclrtMemcpy to the device");
        return CT_OK;
    }
    if (dev->ring == NULL) {
        void *ring = NULL;
        ACL_TRY(dev, dev->cann->aclrtMallocHost(&ring, CTI_NPU_RING_BYTES), err, "aclrtMallocHost of the ring of pinned memory of the host");
        dev->ring = ring;
    }
    if (dev->ring_at + bytes > CTI_NPU_RING_BYTES) {
        for (int i = 0; i < CTI_NPU_STREAMS; i++) {
            CT_TRY(cti_npu_wait(dev, dev->streams[i], err));
        }
        dev->ring_at = 0;
    }
    char *staged = dev->ring + dev->ring_at;
    memcpy(staged, src, bytes);
    dev->ring_at += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    ACL_TRY(dev, dev->cann->aclrtMemcpyAsync(dst, bytes, staged, bytes, ACL_MEMCPY_HOST_TO_DEVICE, stream), err, "aclrtMemcpyAsync to the device");
    return CT_OK;
}

ct_status cti_npu_download(cti_npu_device *dev, void *dst, const void *src, size_t bytes, aclrtStream stream, ct_err *err)
{
    if (bytes > 0) {
        CT_TRY(cti_npu_wait(dev, stream, err));
        ACL_TRY(dev, dev->cann->aclrtMemcpy(dst, bytes, src, bytes, ACL_MEMCPY_DEVICE_TO_HOST), err, "aclrtMemcpy to the host");
    }
    return CT_OK;
}

static ct_status copy_to_device(void *device, void *dst, const void *src, size_t bytes, void *stream, ct_err *err)
{
    cti_npu_device *dev = device;
    CT_TRY(cti_npu_enter(dev, err));
    cti_npu_forget(dev, dst, bytes);
    return cti_npu_upload(dev, dst, src, bytes, cti_npu_stream(dev, stream), err);
}

static ct_status copy_to_host(void *device, void *dst, const void *src, size_t bytes, void *stream, ct_err *err)
{
    cti_npu_device *dev = device;
    CT_TRY(cti_npu_enter(dev, err));
    return cti_npu_download(dev, dst, src, bytes, cti_npu_stream(dev, stream), err);
}

static ct_status synchronize(void *device, void *stream, ct_err *err)
{
    cti_npu_device *dev = device;
    CT_TRY(cti_npu_enter(dev, err));
    return cti_npu_wait(dev, cti_npu_stream(dev, stream), err);
}

static void *stream_of(void *device, int32_t number)
{
    const cti_npu_device *dev = device;
    return number >= 0 && number < CTI_NPU_STREAMS ? dev->streams[number] : NULL;
}

/* Events that may be recorded again: CANN's Ex kind where it is there, else its plain one, which may be too. */
static ct_status event_of(cti_npu_device *dev, int32_t number, aclrtEvent *out, ct_err *err)
{
    if (number < 0) {
        return CT_FAIL(err, CT_ERR_RANGE, "npu %d: event %d was asked for", (int)dev->index, (int)number);
    }
    if (number >= dev->n_events) {
        const int32_t n = number + 16;
        aclrtEvent *events = ct_alloc_resize(dev->alloc, dev->events, (size_t)n, sizeof *events, err);
        if (events == NULL) {
            return CT_ERR_MEMORY;
        }
        memset(events + dev->n_events, 0, (size_t)(n - dev->n_events) * sizeof *events);
        dev->events = events;
        dev->n_events = n;
    }
    if (dev->events[number] == NULL) {
        ACL_TRY(dev,
                dev->cann->aclrtCreateEventExWithFlag != NULL ? dev->cann->aclrtCreateEventExWithFlag(&dev->events[number], ACL_EVENT_SYNC)
                                                              : dev->cann->aclrtCreateEvent(&dev->events[number]),
                err, "aclrtCreateEvent");
    }
    *out = dev->events[number];
    return CT_OK;
}

static ct_status event_record(void *device, int32_t number, void *stream, ct_err *err)
{
    cti_npu_device *dev = device;
    aclrtEvent event = NULL;
    CT_TRY(cti_npu_enter(dev, err));
    CT_TRY(event_of(dev, number, &event, err));
    ACL_TRY(dev, dev->cann->aclrtRecordEvent(event, cti_npu_stream(dev, stream)), err, "aclrtRecordEvent");
    return CT_OK;
}

static ct_status stream_wait(void *device, void *stream, int32_t number, ct_err *err)
{
    cti_npu_device *dev = device;
    CT_TRY(cti_npu_enter(dev, err));
    if (number < 0 || number >= dev->n_events || dev->events[number] == NULL) {
        return CT_OK; /* never recorded: there is nothing to wait for */
    }
    ACL_TRY(dev, dev->cann->aclrtStreamWaitEvent(cti_npu_stream(dev, stream), dev->events[number]), err, "aclrtStreamWaitEvent");
    return CT_OK;
}

ct_status cti_npu_spare(cti_npu_device *dev, aclrtStream stream, size_t bytes, void **out, ct_err *err)
{
    const int i = stream == dev->streams[1];
    if (dev->spare_bytes[i] < bytes) {
        if (dev->spare[i] != NULL) {
            CT_TRY(cti_npu_wait(dev, stream, err));
            (void)dev->cann->aclrtFree(dev->spare[i]); /* ours */
            dev->spare[i] = NULL;
            dev->spare_bytes[i] = 0;
        }
        const size_t size = (bytes + bytes / 4 + ((2u << 20) - 1)) / (2u << 20) * (2u << 20);
        CT_TRY(allocate(dev, size, &dev->spare[i], err));
        dev->spare_bytes[i] = size;
    }
    *out = dev->spare[i];
    return CT_OK;
}

ct_status cti_npu_mask(cti_npu_device *dev, void **out, ct_err *err)
{
    enum { N = CTI_NPU_MASK_SIDE };
    if (dev->mask == NULL) {
        unsigned char *host = CT_NEW_ARRAY(dev->alloc, unsigned char, N * N, err);
        if (host == NULL) {
            return CT_ERR_MEMORY;
        }
        for (size_t row = 0; row < N; row++) {
            memset(host + row * N + row + 1, 1, N - row - 1);
        }
        void *mask = NULL;
        ct_status st = allocate(dev, (size_t)N * N, &mask, err);
        const aclError e = st == CT_OK ? dev->cann->aclrtMemcpy(mask, (size_t)N * N, host, (size_t)N * N, ACL_MEMCPY_HOST_TO_DEVICE) : 0;
        ct_alloc_free(dev->alloc, host);
        if (e != 0) {
            (void)dev->cann->aclrtFree(mask); /* the failure that counts is the other */
            st = failed(dev, e, err, "aclrtMemcpy of attention's mask");
        }
        CT_TRY(st);
        dev->mask = mask;
    }
    *out = dev->mask;
    return CT_OK;
}

static const ct_backend NPU_BACKEND = {
    .abi = CT_BACKEND_ABI,
    .size_bytes = sizeof(ct_backend),
    .name = "npu",
    .kernels = cti_npu_kernels,
    .device_open = device_open,
    .device_close = device_close,
    .device_facts = device_facts,
    .memory_alloc = memory_alloc,
    .memory_free = memory_free,
    .copy_to_device = copy_to_device,
    .copy_to_host = copy_to_host,
    .synchronize = synchronize,
    .device_count = device_count,
    .stream = stream_of,
    .event_record = event_record,
    .stream_wait = stream_wait,
};

const ct_backend *ct_backend_npu(void)
{
    return &NPU_BACKEND;
}
