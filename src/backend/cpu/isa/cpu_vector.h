/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of f32 from and to memory of f32 or bf16, for kernels that go through memory once. `is_bf16` is a constant at each call: a
 * kernel is written once, as an inline function of it, and compiled for both. */
#ifndef CTI_BACKEND_CPU_ISA_CPU_VECTOR_H
#define CTI_BACKEND_CPU_ISA_CPU_VECTOR_H

#include "backend/cpu/isa/cpu_simd.h"

/* Elements [i, i + CTI_VL). */
CTI_INLINE vf v_fetch(const void *data, int64_t i, const bool is_bf16)
{
    return is_bf16 ? v_from_bf16((const uint16_t *)data + i) : v_load((const float *)data + i);
}
CTI_INLINE void v_place(void *data, int64_t i, vf v, const bool is_bf16)
{
    if (is_bf16) {
        v_to_bf16((uint16_t *)data + i, v);
    } else {
        v_store((float *)data + i, v);
    }
}
/* Elements [i, i + n), n < CTI_VL; the other lanes are zero. */
CTI_INLINE vf v_fetch_part(const void *data, int64_t i, int64_t n, const bool is_bf16)
{
    float buf[CTI_VL] = {0};
    for (int64_t k = 0; k < n; k++) {
        buf[k] = is_bf16 ? cti_bf16_to_f32(((const uint16_t *)data)[i + k]) : ((const float *)data)[i + k];
    }
    return v_load(buf);
}
CTI_INLINE void v_place_part(void *data, int64_t i, int64_t n, vf v, const bool is_bf16)
{
    float buf[CTI_VL];
    v_store(buf, v);
    for (int64_t k = 0; k < n; k++) {
        if (is_bf16) {
            ((uint16_t *)data)[i + k] = cti_f32_to_bf16(buf[k]);
        } else {
            ((float *)data)[i + k] = buf[k];
        }
    }
}

#endif
