/* SPDX-License-Identifier: Apache-2.0 */
/* The instruction-set levels that the kernels are compiled for. */
#ifndef CTI_BACKEND_CPU_CPU_INTERNAL_H
#define CTI_BACKEND_CPU_CPU_INTERNAL_H

#include <assert.h>
#include <stdint.h>

#include "ctitan/backend.h"

/* X(name, text): lowest first. The first is what the compiler targets without flags: `neon` on aarch64, `base` elsewhere. The others
 * exist on x86-64 only, where room.cmake defines CTI_CPU_X86_LEVELS. */
#if defined(CTI_CPU_X86_LEVELS)
#define CTI_CPU_LEVEL_LIST(X)                                                                                        \
    X(base, "baseline") X(v3, "AVX2 and FMA") X(v4, "AVX-512") X(v4bf16, "AVX-512 with bf16 dot products")   \
    X(v4amx, "AVX-512 with AMX tiles of bf16")
#elif defined(__aarch64__)
#define CTI_CPU_LEVEL_LIST(X) X(neon, "NEON")
#else
#define CTI_CPU_LEVEL_LIST(X) X(base, "baseline")
#endif

/* Per level: its kernels (CT_OP_COUNT rows), and n rounds of independent fused multiply-adds, or of dot products of bf16 pairs (none
 * where the level lacks them), which return their FLOPs. */
#define CTI_CPU_LEVEL_PROTO(name, text)                                                                              \
    extern const ct_kernel cti_cpu_kernels_##name[CT_OP_COUNT];                                                      \
    double cti_cpu_fma_loop_##name(int64_t n);                                                                       \
    double cti_cpu_dot_loop_##name(int64_t n);
CTI_CPU_LEVEL_LIST(CTI_CPU_LEVEL_PROTO)
#undef CTI_CPU_LEVEL_PROTO

#endif
