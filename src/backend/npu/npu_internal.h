/* SPDX-License-Identifier: Apache-2.0 */
/* A device of the npu backend, and what its files share. Kernels see npu_seq.h. */
#ifndef CTI_BACKEND_NPU_NPU_INTERNAL_H
#define CTI_BACKEND_NPU_NPU_INTERNAL_H

#include "cann/cann.h"
#include "ctitan/backend.h"

enum {
    CTI_NPU_STREAMS = 2,
    CTI_NPU_PUBLISHED = 64,
    CTI_NPU_RING_BYTES = 8 << 20,
    CTI_NPU_MASK_SIDE = 2048 /* of attention's mask: what sparse modes 2, 3 and 4 want */
};

/* The host's copy of what a kernel put into device memory, for kernels that take it from the host. */
typedef struct cti_npu_published {
    const char *begin, *end; /* device memory; NULL: free */
    void *host;              /* pinned; owns */
    size_t capacity;         /* bytes */
    void *pending;           /* the stream on which it is on its way here; NULL: it is here */
} cti_npu_published;

typedef struct cti_npu_device {
    const ct_alloc *alloc; /* borrows */
    const cti_cann *cann;
    int32_t index;
    uint64_t serial;             /* no other device of the process had it */
    _Atomic int32_t n_set;       /* calls of aclrtSetDevice, each of which must be taken back */
    bool is_prepared, is_synchronous;
    aclrtStream streams[CTI_NPU_STREAMS];
    aclrtEvent *events;
    int32_t n_events;
    void *spare[CTI_NPU_STREAMS];
    size_t spare_bytes[CTI_NPU_STREAMS];
    char *ring;                  /* pinned memory for copies to the device; NULL: none yet */
    size_t ring_at;
    void *mask;                  /* device memory, [2048, 2048] bytes, 1 above the diagonal; NULL: none yet */
    cti_npu_published published[CTI_NPU_PUBLISHED];
    int32_t next_published;
} cti_npu_device;

/* Makes the device the calling thread's. */
CT_MUST_CHECK ct_status cti_npu_enter(cti_npu_device *dev, ct_err *err);
/* The device that the calling thread entered last, NULL where there is none: for questions about shapes, which carry no device. */
cti_npu_device *cti_npu_current(void);

/* stream, or that of computation where it is NULL. */
aclrtStream cti_npu_stream(const cti_npu_device *dev, void *stream);
/* Enqueues a copy of host memory, which may be changed as soon as this returns. */
CT_MUST_CHECK ct_status cti_npu_upload(cti_npu_device *dev, void *dst, const void *src, size_t bytes, aclrtStream stream, ct_err *err);
/* Copies to the host and returns when it is there. */
CT_MUST_CHECK ct_status cti_npu_download(cti_npu_device *dev, void *dst, const void *src, size_t bytes, aclrtStream stream, ct_err *err);
CT_MUST_CHECK ct_status cti_npu_wait(cti_npu_device *dev, aclrtStream stream, ct_err *err);
/* Waits for all streams; false where the device failed, and may use its memory still. */
bool cti_npu_is_idle(cti_npu_device *dev);
/* At least `bytes` of workspace beside the plan's for that stream; older work on it may be waited for. */
CT_MUST_CHECK ct_status cti_npu_spare(cti_npu_device *dev, aclrtStream stream, size_t bytes, void **out, ct_err *err);
CT_MUST_CHECK ct_status cti_npu_mask(cti_npu_device *dev, void **out, ct_err *err);

/* Says that device memory [at, at + bytes) holds these values from now on (host NULL: that they are read back on `stream`, behind what is enqueued). */
CT_MUST_CHECK ct_status cti_npu_publish(cti_npu_device *dev, const void *at, const void *host, size_t bytes, aclrtStream stream, ct_err *err);
/* Memory is written to: what was published there counts no more. */
void cti_npu_forget(cti_npu_device *dev, const void *at, size_t bytes);
/* What was published of exactly that memory, or NULL (OK). Waits where it is on its way. */
CT_MUST_CHECK ct_status cti_npu_find_published(cti_npu_device *dev, const void *at, size_t bytes, const void **out, ct_err *err);
void cti_npu_published_deinit(cti_npu_device *dev);

#endif
