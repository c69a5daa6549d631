/* SPDX-License-Identifier: Apache-2.0 */
/* Where results become too large for the caches. */
#include "backend/cpu/cpu.h"

/* Most of the last-level cache that a machine's ranks share; nobody finds there what was written before as much again. */
int64_t cti_cpu_past_bytes = 24 << 20;
