/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory of host backends: 64-byte aligned and zeroed, out of a ct_alloc. */
#ifndef CTI_BACKEND_HOST_MEMORY_H
#define CTI_BACKEND_HOST_MEMORY_H

#include "ctitan/alloc.h"

#define CTI_HOST_ALIGN 64

/* bytes may be 0: the pointer is then valid to free, not to read. ERR_MEMORY naming the size. */
CT_MUST_CHECK ct_status cti_host_memory_alloc(const ct_alloc *alloc, size_t bytes, void **out_ptr, ct_err *err);
void cti_host_memory_free(const ct_alloc *alloc, void *ptr); /* NULL is fine */

#endif
