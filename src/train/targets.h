/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that a run can be planned for without having one: memory, arithmetic and bandwidth of a name. */
#ifndef CTI_TRAIN_TARGETS_H
#define CTI_TRAIN_TARGETS_H

#include <stdbool.h>

#include "ctitan/status.h"

typedef struct cti_target {
    const char *name; /* "h200" */
    const char *what; /* "NVIDIA H200 SXM" */
    double memory_gib;          /* what the driver reports as total */
    double peak_bf16, peak_f32; /* dense FLOP/s of the matrix units; f32: without TF32 */
    double memory_gb_s;         /* device memory, 1e9 bytes a second; 0: not known */
    double link_gb_s;           /* to the other devices of the host, one direction; 0: not known */
    const char *soc;            /* Ascend: CANN's name of the chip, by which cann/cann.h has its peaks; NULL: peaks stand here */
} cti_target;

/* The target of a name. ERR_USAGE naming the nearest and the list. */
CT_MUST_CHECK ct_status cti_target_find(const char *name, const cti_target **out_target, ct_err *err);
/* The i-th target, NULL past the last. */
const cti_target *cti_target_at(size_t i);
/* Dense FLOP/s in bf16 or f32; 0: not known. */
double cti_target_peak(const cti_target *target, bool is_bf16);

#endif
