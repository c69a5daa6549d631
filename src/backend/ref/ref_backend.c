/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the reference backend and its device, the host. */
#include <assert.h>
#include <stdio.h>

#include "backend/host_memory.h"
#include "backend/ref/ref.h"
#include "backend/ref/support.h"
#include "base/sys.h"

#define HAVE(op, types) [CT_OP_##op] = {.run = cti_ref_##op, .dtypes = (types)},
#define WORK(op, types) \
    [CT_OP_##op] = {.run = cti_ref_##op, .dtypes = (types), .workspace_bytes = cti_ref_##op##_workspace_bytes},
#define NONE(op, reason) [CT_OP_##op] = {.why_not = (reason)},
static const ct_kernel REF_KERNELS[] = {CTI_REF_SUPPORT(HAVE, WORK, NONE)};
#define ONE(op, x) +1
static_assert(0 CTI_REF_SUPPORT(ONE, ONE, ONE) == CT_OP_COUNT, "ref: one row per op");

typedef struct ref_device {
    const ct_alloc *alloc; /* borrows */
} ref_device;

static ct_status device_open(const ct_alloc *alloc, int32_t index, void **out_device, ct_err *err)
{
    if (index < 0) {
        return CT_FAIL(err, CT_ERR_RANGE, "ref: device index is %d; it must be at least 0", (int)index);
    }
    ref_device *device = CT_NEW(alloc, ref_device, err);
    if (device == NULL) {
        return CT_ERR_MEMORY;
    }
    device->alloc = alloc;
    *out_device = device;
    return CT_OK;
}

static void device_close(void **device)
{
    if (*device != NULL) {
        ct_alloc_free(((ref_device *)*device)->alloc, *device);
        *device = NULL;
    }
}

static ct_status device_facts(void *device, ct_device_facts *out_facts, ct_err *err)
{
    (void)device;
    (void)err;
    *out_facts = (ct_device_facts){.type = "CPU", .memory_bytes = cti_memory_bytes()};
    cti_cpu_name(out_facts->name, sizeof out_facts->name);
    return CT_OK;
}

static ct_status memory_alloc(void *device, size_t bytes, void **out_ptr, ct_err *err)
{
    return cti_host_memory_alloc(((ref_device *)device)->alloc, bytes, out_ptr, err);
}

static void memory_free(void *device, void *ptr, size_t bytes)
{
    (void)bytes;
    cti_host_memory_free(((ref_device *)device)->alloc, ptr);
}

static ct_status copy(void *device, void *dst, const void *src, size_t bytes, void *stream, ct_err *err)
{
    (void)device;
    (void)stream;
    (void)err;
    if (bytes > 0) {
        memcpy(dst, src, bytes);
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

static const ct_backend REF_BACKEND = {
    .abi = CT_BACKEND_ABI,
    .size_bytes = sizeof(ct_backend),
    .name = "ref",
    .kernels = REF_KERNELS,
    .device_open = device_open,
    .device_close = device_close,
    .device_facts = device_facts,
    .memory_alloc = memory_alloc,
    .memory_free = memory_free,
    .copy_to_device = copy,
    .copy_to_host = copy,
    .synchronize = synchronize,
};

const ct_backend *ct_backend_ref(void)
{
    return &REF_BACKEND;
}
