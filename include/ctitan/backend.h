/* SPDX-License-Identifier: Apache-2.0 */
/* A backend: memory, copies, one kernel or one reason per op. */
#ifndef CTITAN_BACKEND_H
#define CTITAN_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "ctitan/graph.h"
#include "ctitan/op_list.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CT_BACKEND_ABI 3

typedef struct ct_tensor {
    void *data; /* device memory; NULL while only shapes are asked about */
    ct_dtype dtype;
    int32_t ndim;
    int64_t dims[CT_MAX_NDIM]; /* contiguous, row-major */
    const void *host; /* what the host wrote last into an input of the graph, for kernels that take values from the host (lengths, rates); NULL
                         where the host did not write it, or the value is large (above CT_MIRROR_MAX_BYTES), or on host backends */
} ct_tensor;
#define CT_MIRROR_MAX_BYTES (1 << 20)

typedef struct ct_launch {
    const ct_tensor *in; /* an absent optional input has ndim -1 */
    int32_t n_in;
    const ct_tensor *out;
    int32_t n_out;
    const void *attrs;
    void *workspace; /* 64-byte aligned, as many bytes as workspace_bytes() asked for */
    size_t workspace_bytes;
    void *stream; /* NULL on host backends; else what ct_backend.stream gave: run() enqueues there and returns */
    void *device; /* of device_open; NULL while only shapes are asked about */
    void *state;  /* what prepare() made for this launch; NULL without one */
} ct_launch;

/* A kernel allocates nothing, waits for nothing, reads no setting, and keeps no state but launch->state. */
typedef ct_status (*ct_kernel_fn)(const ct_launch *launch, ct_err *err);

typedef struct ct_kernel {
    ct_kernel_fn run;                                      /* NULL: why_not says why */
    uint32_t dtypes;                                       /* CT_BIT()s of the op's dtype `f` that it takes */
    size_t (*workspace_bytes)(const ct_launch *shapes_only); /* NULL: none needed */
    const char *why_not;
    /* Optional: called once for each launch, when all of its addresses are known; what it makes (descriptors, executors) is launch->state of
     * every run of that launch, until release. */
    ct_status (*prepare)(const ct_launch *launch, void **out_state, ct_err *err);
    void (*release)(void *device, void *state);
} ct_kernel;

/* One kernel of a registered op (ct_op.kernels). */
typedef struct ct_op_kernel {
    const char *backend; /* "cpu", "ref", "npu": its name; "ctitan plan" for a device that is not here needs none */
    ct_kernel kernel;
} ct_op_kernel;

typedef struct ct_device_facts {
    char name[128];        /* "AMD EPYC" */
    char type[16];         /* "CPU", "CUDA", "NPU" as log lines say it */
    int64_t memory_bytes;
    double peak_flops;     /* 0: unknown; what MFU divides by */
    double peak_flops_bf16; /* the same where the compute dtype is bf16; 0: as peak_flops */
    bool has_native_bf16;
    int64_t memory_free_bytes; /* 0: not known */
    char bus_id[32];           /* "0000:c1:00.0"; "": not known */
    char health[32];           /* "OK", or what is wrong in the device's words; "": not known */
} ct_device_facts;

/* Functions are required but for those from `device_count` on, which are NULL where the device is the host's own memory: calls there
 * end when their work has ended. On a device, work is enqueued on streams: number 0 is that of computation, 1 that of collectives
 * beside it; in each, work runs in order. Copies are enqueued too, and copy_to_host and synchronize return when their stream is empty. */
typedef struct ct_backend {
    uint32_t abi;        /* CT_BACKEND_ABI */
    uint32_t size_bytes; /* sizeof(ct_backend) as the backend saw it */
    const char *name;    /* "ref", "cpu" */
    const ct_kernel *kernels; /* CT_OP_COUNT rows */
    ct_status (*device_open)(const ct_alloc *alloc, int32_t index, void **out_device, ct_err *err);
    void (*device_close)(void **device);
    ct_status (*device_facts)(void *device, ct_device_facts *out_facts, ct_err *err);
    ct_status (*memory_alloc)(void *device, size_t bytes, void **out_ptr, ct_err *err); /* 64-byte aligned, zeroed */
    void (*memory_free)(void *device, void *ptr, size_t bytes);
    ct_status (*copy_to_device)(void *device, void *dst, const void *src_host, size_t bytes, void *stream, ct_err *err);
    ct_status (*copy_to_host)(void *device, void *dst_host, const void *src, size_t bytes, void *stream, ct_err *err);
    ct_status (*synchronize)(void *device, void *stream, ct_err *err); /* a fault of enqueued work shows here, if not before */
    ct_status (*device_count)(int32_t *out_n, ct_err *err); /* usable ones, 0 where there is none; fails where that cannot be known */
    void *(*stream)(void *device, int32_t number);
    /* Event `event` (0, 1, ...; made at its first use) comes when all that is enqueued on stream now has ended. Recording again moves it. */
    ct_status (*event_record)(void *device, int32_t event, void *stream, ct_err *err);
    /* What is enqueued on stream from now on waits for the event's last record before this call. */
    ct_status (*stream_wait)(void *device, void *stream, int32_t event, ct_err *err);
    const ct_kernel *any; /* for registered ops that bring no kernel for this backend; NULL: they cannot run here (all but null) */
} ct_backend;

#ifdef __cplusplus
}
#endif
#endif
