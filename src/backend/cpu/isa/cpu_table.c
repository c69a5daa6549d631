/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel table of this level, and the loop that measures what its fused multiply-add can reach. */
#include "backend/cpu/cpu_internal.h"
#include "backend/cpu/isa/cpu_kernel.h"

#define HAVE(op, types) [CT_OP_##op] = {.run = CTI_CPU_FN(op), .dtypes = (types)},
#define SCRATCH(op, types)                                                                                           \
    [CT_OP_##op] = {.run = CTI_CPU_FN(op), .dtypes = (types), .workspace_bytes = CTI_CPU_WORKSPACE(op)},
#define NONE(op, reason) [CT_OP_##op] = {.why_not = (reason)},
const ct_kernel CTI_CPU_FN(kernels)[CT_OP_COUNT] = {CTI_CPU_SUPPORT(HAVE, SCRATCH, NONE)};
#define ONE(op, x) +1
static_assert(0 CTI_CPU_SUPPORT(ONE, ONE, ONE) == CT_OP_COUNT, "cpu: one row per op");

double CTI_CPU_FN(fma_loop)(int64_t n)
{
    enum { CHAINS = 10 };
    vf acc[CHAINS];
    for (int i = 0; i < CHAINS; i++) {
        acc[i] = v_set1((float)i);
    }
    vf x = v_set1(0.999f), y = v_set1(0.001f);
    for (int64_t k = 0; k < n; k++) {
        CTI_UNROLL
        for (int i = 0; i < CHAINS; i++) {
            acc[i] = v_fma(acc[i], x, y);
        }
    }
    vf sum = acc[0];
    for (int i = 1; i < CHAINS; i++) {
        sum += acc[i];
    }
    volatile float sink = v_hsum(sum); /* keeps the loop */
    (void)sink;
    return (double)n * CHAINS * CTI_VL * 2;
}
