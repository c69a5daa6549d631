/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about the process and the host. */
#ifndef CTI_BASE_SYS_H
#define CTI_BASE_SYS_H

#include <stddef.h>
#include <stdint.h>

#include "ctitan/alloc.h"

/* Cores this process may use: affinity mask, bounded by the cgroup v1/v2 CPU quota (rounded up). At least 1. */
int cti_usable_cores(void);
/* `cores`, bounded by the quota that the files under `root` tell ("": the host's). At least 1. For cti_usable_cores and its test. */
int cti_quota_cores(const char *root, int64_t cores);
/* Physical memory in bytes, bounded by the cgroup limit. */
int64_t cti_memory_bytes(void);
int64_t cti_rss_bytes(void);      /* resident now */
int64_t cti_peak_rss_bytes(void); /* high-water mark */
/* "AMD EPYC" or "unknown"; from /proc/cpuinfo ("model name", or the implementer on Arm). */
void cti_cpu_name(char *buf, size_t size);
/* Folder of the running executable, symbolic links resolved. Caller frees. */
CT_MUST_CHECK ct_status cti_exe_dir(const ct_alloc *alloc, char **out_dir, ct_err *err);
/* The same of the shared library that this code is part of; that of the executable where it is part of a program. A library that was
 * opened by a relative path is sought from the working directory of now. */
CT_MUST_CHECK ct_status cti_self_dir(const ct_alloc *alloc, char **out_dir, ct_err *err);

#endif
