/* SPDX-License-Identifier: Apache-2.0 */
/* The map of the room `base`: what everything else stands on. No state but the thread pool; knows nothing of graphs or devices.
 *
 *   ctitan/status.h  statuses, ct_err, CT_TRY            ctitan/alloc.h  allocator, arena
 *   ctitan/log.h     log lines                            ctitan/dtype.h  element types
 *   base/num.h       checked products, bf16, rounding     base/str.h      string buffer, spans, numbers as text
 *   base/file.h      files: read, map, atomic write       base/json.h     JSON with places in errors (jansson)
 *   base/hash.h      XXH3                                 base/rng.h      counter-based generator, normals
 *   base/clock.h     monotonic and wall clock             base/sys.h      cores, memory, exe folder, page size
 *   base/nearest.h   the nearest names to a misspelt one  base/pool.h    the threads that compute
 */
#ifndef CTI_BASE_BASE_H
#define CTI_BASE_BASE_H

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/nearest.h"
#include "base/num.h"
#include "base/pool.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/sys.h"
#include "ctitan/alloc.h"
#include "ctitan/dtype.h"
#include "ctitan/log.h"
#include "ctitan/status.h"

#endif
