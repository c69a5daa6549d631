/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix product of bf16 operands, on levels that multiply bf16 (cpu_dot_bf16.h). */
#ifndef CTI_BACKEND_CPU_ISA_CPU_GEMM_BF16_H
#define CTI_BACKEND_CPU_ISA_CPU_GEMM_BF16_H

#include "backend/cpu/isa/cpu_dot_bf16.h"
#include "backend/cpu/isa/cpu_gemm.h"

/* Multiply-adds of bf16 pairs, or tiles, without end: n rounds; returns their FLOPs, 0 where the level has none. */
double CTI_CPU_FN(dot_loop)(int64_t n);

#if CTI_HAS_DP_BF16
/* Whether gemm_bf16() takes it: a and b are bf16, or a is f32 and g allows its rounding. */
bool CTI_CPU_FN(gemm_is_bf16)(const cti_cpu_gemm *g);

/* y = a b (+ c0), as gemm(); y may be f32 or bf16. k is cut into blocks of one size, at most 512; a block's sum starts from zero
 * and adds pair by pair, on AMX 32 by 32 (what is missing at the end is zero), blocks are added in order, after c0, all in f32; a
 * bf16 y is rounded once, at the end. No element's sum depends on how the output is tiled, so neither on the number of threads.
 * scratch_bytes of at least gemm_bf16_scratch_bytes(1); threads share the tiles where it is enough for all of the pool's. */
void CTI_CPU_FN(gemm_bf16)(const cti_cpu_gemm *g, void *scratch, size_t scratch_bytes);
size_t CTI_CPU_FN(gemm_bf16_scratch_bytes)(int n_threads);
#endif

#endif
