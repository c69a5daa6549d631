/* SPDX-License-Identifier: Apache-2.0 */
/* The backend `npu`: Huawei's Ascend devices by CANN (src/cann). Without CANN on the machine it has no device, and opening one says what is missing.
 *
 * Everything is enqueued on the device's streams. Kernels are sequences of CANN's operators (npu_seq.h); which of them are prepared once and which
 * begin anew in each step, their precision, and what has run on hardware (nothing): docs/backends.md.
 *
 * Environment, read when a device is opened:
 *   CTITAN_NPU_PREPARE=0   operators are not prepared: each begins anew at each launch
 *   CTITAN_NPU_SYNC=1      each operator ends before the next begins, so that a fault names its operator (ASCEND_LAUNCH_BLOCKING=1 does the same)
 * and, for messages, ASCEND_RT_VISIBLE_DEVICES.
 *
 * Memory beside the plan's: 4 MiB on the device for the mask of attention, where there is attention, a spare workspace where an operator asks for
 * more than it did at plan time, 8 MiB of pinned host memory. Threads: any, one at a time a device. */
#ifndef CTI_BACKEND_NPU_NPU_H
#define CTI_BACKEND_NPU_NPU_H

#include "ctitan/backend.h"

const ct_backend *ct_backend_npu(void);

/* Devices opened from now on add up in one order (--debug.deterministic): CANN's switch, for the process and for the device's context. */
void ct_backend_npu_set_deterministic(bool is_on);

#endif
