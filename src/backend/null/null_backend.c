/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the null backend and its device: a counter of addresses given out. */
#include "backend/null/null.h"

#include <string.h>

#define NULL_DTYPES ((1u << CT_DTYPE_COUNT) - 1u)
#define NULL_FIRST_ADDRESS ((uintptr_t)1 << 20)
#define NULL_ALIGN ((uintptr_t)64)

typedef struct null_device {
    const ct_alloc *alloc; /* borrows */
    uintptr_t next;        /* the address of the next allocation */
} null_device;

static ct_status run_nothing(const ct_launch *launch, ct_err *err)
{
    (void)launch;
    (void)err;
    return CT_OK;
}

#define NULL_ROW(name, ...) [CT_OP_##name] = {.run = run_nothing, .dtypes = NULL_DTYPES},
static const ct_kernel NULL_KERNELS[] = {CT_OP_LIST(NULL_ROW)};
static const ct_kernel NULL_ANY = {.run = run_nothing, .dtypes = NULL_DTYPES};

static ct_status device_open(const ct_alloc *alloc, int32_t index, void **out_device, ct_err *err)
{
    (void)index;
    null_device *device = CT_NEW(alloc, null_device, err);
    if (device == NULL) {
        return CT_ERR_MEMORY;
    }
    *device = (null_device){alloc, NULL_FIRST_ADDRESS};
    *out_device = device;
    return CT_OK;
}

static void device_close(void **device)
{
    if (*device != NULL) {
        ct_alloc_free(((null_device *)*device)->alloc, *device);
        *device = NULL;
    }
}

static ct_status device_facts(void *device, ct_device_facts *out_facts, ct_err *err)
{
    (void)device;
    (void)err;
    *out_facts = (ct_device_facts){.name = "null", .type = "null", .has_native_bf16 = true};
    return CT_OK;
}

static ct_status memory_alloc(void *device, size_t bytes, void **out_ptr, ct_err *err)
{
    null_device *d = device;
    if (bytes > UINTPTR_MAX - NULL_ALIGN - d->next) {
        return CT_FAIL(err, CT_ERR_MEMORY, "null: %zu bytes are more than there are addresses left", bytes);
    }
    *out_ptr = (void *)d->next;
    d->next += (bytes + NULL_ALIGN) / NULL_ALIGN * NULL_ALIGN; /* at least one step, so that addresses differ */
    return CT_OK;
}

static void memory_free(void *device, void *ptr, size_t bytes)
{
    (void)device;
    (void)ptr;
    (void)bytes;
}

static ct_status copy_to_device(void *device, void *dst, const void *src, size_t bytes, void *stream, ct_err *err)
{
    (void)device;
    (void)dst;
    (void)src;
    (void)bytes;
    (void)stream;
    (void)err;
    return CT_OK;
}

static ct_status copy_to_host(void *device, void *dst, const void *src, size_t bytes, void *stream, ct_err *err)
{
    (void)device;
    (void)src;
    (void)stream;
    (void)err;
    if (bytes > 0) {
        memset(dst, 0, bytes);
    }
    return CT_OK;
}

static ct_status synchronize(void *device, void *stream, ct_err *err)
{
    (void)device;
    (void)stream;
    (void)err;
    return CT_OK;
}

static const ct_backend NULL_BACKEND = {
    .abi = CT_BACKEND_ABI,
    .size_bytes = sizeof(ct_backend),
    .name = "null",
    .kernels = NULL_KERNELS,
    .device_open = device_open,
    .device_close = device_close,
    .device_facts = device_facts,
    .memory_alloc = memory_alloc,
    .memory_free = memory_free,
    .copy_to_device = copy_to_device,
    .copy_to_host = copy_to_host,
    .synchronize = synchronize,
    .any = &NULL_ANY,
};

const ct_backend *ct_backend_null(void)
{
    return &NULL_BACKEND;
}
