/* SPDX-License-Identifier: Apache-2.0 */
/* The levels that a test of the CPU backend's kernels runs at: those of this machine, or, where a file defines CT_MODEL_LEVEL and includes
 * such a test, the level `model` alone: 16 lanes, dot products and tiles of bf16 in plain C, so that what AVX-512 and AMX compute with is
 * tested on every machine, and under sanitizers. */
#ifndef CT_TESTS_OP_LEVELS_H
#define CT_TESTS_OP_LEVELS_H

#include "backend/cpu/cpu.h"
#include "ctitan/op_list.h"

static inline int level_count(void)
{
#if defined(CT_MODEL_LEVEL)
    return 1;
#else
    return cti_cpu_level_count();
#endif
}
static inline const char *level_name(int level)
{
#if defined(CT_MODEL_LEVEL)
    (void)level;
    return "model";
#else
    return cti_cpu_level_name(level);
#endif
}
/* NULL where this CPU cannot run it. */
static inline const ct_backend *level_at(int level)
{
#if defined(CT_MODEL_LEVEL)
    extern const ct_kernel cti_cpu_kernels_model[CT_OP_COUNT];
    static ct_backend model;
    model = *cti_cpu_backend_at(level);
    model.kernels = cti_cpu_kernels_model;
    return &model;
#else
    return cti_cpu_backend_at(level);
#endif
}

#endif
