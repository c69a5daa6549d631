/* SPDX-License-Identifier: Apache-2.0 */
/* The map of the room `backend/cpu`: the fast backend of hosts, and the default.
 *
 *     const ct_backend *cpu = ct_backend_cpu();
 *     void *device;
 *     CT_TRY(cpu->device_open(alloc, 0, &device, err));
 *
 *   cpu.h, cpu_backend.c    the device (the host's cores), its memory, the choice of the instruction set
 *   support.h               one row per op
 *   isa/                    the kernels, compiled once per instruction-set level: baseline, and on x86-64 also AVX2 + FMA ("v3"),
 *                           AVX-512 ("v4"), with dot products of bf16 ("v4bf16"), with AMX's tiles of bf16 ("v4amx"); for tests
 *                           also "model", 16 lanes, dot products and tiles in plain C
 *   isa/cpu_vector.h        vectors from and to memory of f32 or bf16, past the caches
 *   isa/cpu_simd.h          vectors of f32         isa/cpu_gemm.h       the shared matrix product
 *   isa/cpu_dot_bf16.h      dot products of bf16   isa/cpu_amx.h        tiles of bf16
 *   isa/cpu_gemm_bf16.h     the matrix product made of them: cpu_tile_bf16.h packs, cpu_ukr_dot.h and cpu_ukr_amx.h multiply
 *   isa/cpu_attention.h     segments and packing   isa/cpu_kernel.h     operands, prototypes
 *   isa/cpu_attention_amx.h attention of bf16 on tiles: cpu_attention_fwd_amx.h, cpu_attention_grad_amx.h
 *
 * Results do not depend on the number of threads: threads share outputs, and sums that cross rows are cut at places that follow
 * from shapes alone. They do differ between levels, within the reordering bound. EXACT ops have the reference's bits.
 * Threads are the pool's (base/pool.h: OMP_NUM_THREADS and others). f32 and bf16; bf16 is widened on its way into f32 arithmetic and
 * rounded once; v4bf16 and v4amx multiply it as it is, into f32 sums, and take subnormal bf16 numbers there as zeros.
 *
 * It does not read settings, but for CTITAN_CPU_ISA = base | v3 | v4 | v4bf16 | v4amx (aarch64: neon), which picks a level for
 * comparisons and for machines whose widest vectors are not their fastest; device_open refuses a name that is none, or that this CPU
 * cannot run. */
#ifndef CTI_BACKEND_CPU_CPU_H
#define CTI_BACKEND_CPU_CPU_H

#include "ctitan/backend.h"

/* The backend at the level that CTITAN_CPU_ISA names, else the best that this CPU runs. Static storage. */
const ct_backend *ct_backend_cpu(void);

/* Kernels that go through memory once write results of so many bytes and more past the caches. Tests set it, between launches. */
extern int64_t cti_cpu_past_bytes;

/* Levels, lowest first; for tests and benchmarks. */
int cti_cpu_level_count(void);
const char *cti_cpu_level_name(int level);
/* The backend at one level; NULL where this CPU cannot run it. */
const ct_backend *cti_cpu_backend_at(int level);
/* FLOP/s of independent fused multiply-adds at this level, on all threads; takes about 2 ms. */
double cti_cpu_measure_peak(int level);
/* As cti_cpu_measure_peak of dot products of bf16 pairs; 0 at levels that have none. */
double cti_cpu_measure_peak_bf16(int level);

#endif
