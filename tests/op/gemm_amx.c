/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: backend/cpu backend ops ir mesh base */
/* The product of bf16 operands on AMX's tiles: the tests of gemm_bf16.c. */
#define CTI_CPU_AMX_MODEL
#include "gemm_bf16.c" /* NOLINT(bugprone-suspicious-include) */
