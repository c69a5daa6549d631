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

#define CT_BACKEND_ABI 2

typedef struct ct_tensor {
    void *data; /* device memory; NULL while only shapes are asked about */
    ct_dtype dtype;
    int32_t ndim;
    int64_t dims[CT_MAX_NDIM]; /* contiguous, row-major */
} ct_tensor;

typedef struct ct_launch {
    const ct_tensor *in; /* an absent optional input has ndim -1 */
    int32_t n_in;
    const ct_tensor *out;
    int32_t n_out;
    const void *attrs;
    void *workspace; /* 64-byte aligned, as many bytes as workspace_bytes() asked for */
    size_t workspace_bytes;
    void *stream; /* NULL on host backends */
} ct_launch;

/* A kernel allocates nothing, waits for nothing, keeps no state, reads no setting. */
typedef ct_status (*ct_kernel_fn)(const ct_launch *launch, ct_err *err);

typedef struct ct_kernel {
    ct_kernel_fn run;                                      /* NULL: why_not says why */
    uint32_t dtypes;                                       /* CT_BIT()s of the op's dtype `f` that it takes */
    size_t (*workspace_bytes)(const ct_launch *shapes_only); /* NULL: none needed */
    const char *why_not;
} ct_kernel;

typedef struct ct_device_facts {
    char name[128];        /* "AMD EPYC" */
    char type[16];         /* "CPU", "CUDA", "NPU" as log lines say it */
    int64_t memory_bytes;
    double peak_flops;     /* 0: unknown; what MFU divides by */
    double peak_flops_bf16; /* the same where the compute dtype is bf16; 0: as peak_flops */
    bool has_native_bf16;
} ct_device_facts;

/* X(ret, name, params): every function is required. */
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
    ct_status (*synchronize)(void *device, void *stream, ct_err *err);
} ct_backend;

#ifdef __cplusplus
}
#endif
#endif
