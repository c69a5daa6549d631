/* SPDX-License-Identifier: Apache-2.0 */
/* Ordered sums in host memory, for collectives that are built and for engines. */
#ifndef CTI_COMM_COMM_REDUCE_H
#define CTI_COMM_COMM_REDUCE_H

#include <stdint.h>

#include "comm/comm.h"

/**
 * out[i] = parts[0][i] combined with parts[1][i] ... by halves: over [a, b) the lower half [a, a + (b-a)/2) first.
 *
 * parts  [n] pointers to count elements each; out may be one of them. dtype is one of CT_COMM_REDUCIBLE.
 * bf16 is combined in f32 and rounded once.
 */
void cti_reduce_halves(const void *const *parts, int n, void *out, int64_t count, ct_dtype dtype, ct_reduce_op op);

#endif
