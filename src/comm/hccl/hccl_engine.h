/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives in the memory of Ascend NPUs, by HCCL (src/cann/cann.h opens it). None of it has run on hardware yet: docs/backends.md.
 *
 * - The device that the calling thread has set (the backend's device_open does) is the one of every group; the streams are the backend's.
 * - open() sets, where more than one rank runs and the user did not: HCCL_NPU_SOCKET_PORT_RANGE and HCCL_HOST_SOCKET_PORT_RANGE to `auto`,
 *   HCCL_CONNECT_TIMEOUT (120 to 7200) and HCCL_EXEC_TIMEOUT to the world's time limit in seconds. HCCL reads them once a process.
 * - Every group is a communicator, made from a root info that member 0 puts into the bootstrap store under the group's identity; the world's own
 *   one at its first call. Groups are opened one after the other, in the same order on all their members. Each takes twice its buffer of device
 *   memory: 100 MB, or what HCCL_BUFFSIZE says.
 * - f32, bf16, i32 and i64 are reduced by HCCL, in its order (the same in each run where the group is deterministic, or HCCL_DETERMINISTIC says
 *   so). Sums of f64, which it has on newest chips only, are gathered and added on the host by halves, with the bits of every other engine:
 *   that call waits for its stream, and is meant for the few numbers that a step has of them. f16 is only moved.
 * - What fails later is told where the stream is waited for. abort() leaves communicators as they are: a call in flight ends with its time limit,
 *   or with the process. */
#ifndef CTI_COMM_HCCL_HCCL_ENGINE_H
#define CTI_COMM_HCCL_HCCL_ENGINE_H

#include "comm/engine.h"

const ct_comm_engine *ct_comm_hccl_engine(void);

/* Device memory that one group takes: twice its buffer. */
int64_t cti_hccl_group_bytes(void);
/* The limit of each collective in seconds, by HCCL_EXEC_TIMEOUT as open() left it; 0: none; -1: not a number. */
int64_t cti_hccl_limit_seconds(void);

#endif
