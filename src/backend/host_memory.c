/* SPDX-License-Identifier: Apache-2.0 */
/* The block as the allocator gave it stands in the word before the aligned pointer. */
#include "backend/host_memory.h"

#include <string.h>

ct_status cti_host_memory_alloc(const ct_alloc *alloc, size_t bytes, void **out_ptr, ct_err *err)
{
    const size_t extra = CTI_HOST_ALIGN + sizeof(void *);
    if (bytes > SIZE_MAX - extra) {
        return CT_FAIL(err, CT_ERR_MEMORY, "%zu bytes are more than can be addressed", bytes);
    }
    char *block = ct_alloc_zeroed(alloc, bytes + extra, 1, err);
    if (block == NULL) {
        return CT_ERR_MEMORY;
    }
    const size_t past = (size_t)((uintptr_t)(block + sizeof(void *)) % CTI_HOST_ALIGN);
    char *ptr = block + sizeof(void *) + (past == 0 ? 0 : CTI_HOST_ALIGN - past);
    memcpy(ptr - sizeof block, &block, sizeof block);
    *out_ptr = ptr;
    return CT_OK;
}

void cti_host_memory_free(const ct_alloc *alloc, void *ptr)
{
    if (ptr == NULL) {
        return;
    }
    void *block;
    memcpy(&block, (char *)ptr - sizeof block, sizeof block);
    ct_alloc_free(alloc, block);
}
