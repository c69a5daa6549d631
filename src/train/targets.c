/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of devices. Sources: the vendors' data sheets (dense rates, without sparsity; memory and link bandwidth) and, for peaks that
 * differ between sheets, the table of torchtitan 0.3.0 (components/metrics) so that MFU means the same; memory as drivers report it.
 * Ascend: peaks by the chip's name in src/cann/cann_soc.c, where their sources stand; a card sold as 910C is two dies, two devices; memory of a
 * 64 GB device as its driver reports it (60.9 to 61.3 GiB), of 950 as announced (950PR 128 GB at 1.6 TB/s, 950DT 144 GB at 4 TB/s).
 * Bandwidths of 910B and 910C are not published. */
#include "train/targets.h"

#include "base/base.h"
#include "base/nearest.h"
#include "cann/cann.h"

/* clang-format off */
static const cti_target targets[] = {
    /* name          what                        GiB    bf16        f32        GB/s    link GB/s, soc */
    {"a100-40g",    "NVIDIA A100 SXM 40GB",      39.4,  312e12,     19.5e12,   1555.0, 300.0, NULL},
    {"a100-80g",    "NVIDIA A100 SXM 80GB",      79.2,  312e12,     19.5e12,   2039.0, 300.0, NULL},
    {"h100-sxm",    "NVIDIA H100 SXM 80GB",      79.1,  989e12,     67e12,     3350.0, 450.0, NULL},
    {"h100-pcie",   "NVIDIA H100 PCIe 80GB",     79.1,  756e12,     51e12,     2000.0, 64.0, NULL},
    {"h200",        "NVIDIA H200 SXM",           139.8, 989e12,     67e12,     4800.0, 450.0, NULL},
    {"b200",        "NVIDIA B200 SXM",           178.3, 2250e12,    75e12,     8000.0, 900.0, NULL},
    {"l40s",        "NVIDIA L40S",               44.4,  362e12,     91.6e12,   864.0,  32.0, NULL},
    {"ascend-910b1",   "Ascend 910B1",           61.0,  0.0,        0.0,       0.0,    0.0,   "Ascend910B1"},
    {"ascend-910b2",   "Ascend 910B2",           61.0,  0.0,        0.0,       0.0,    0.0,   "Ascend910B2"},
    {"ascend-910b3",   "Ascend 910B3",           61.0,  0.0,        0.0,       0.0,    0.0,   "Ascend910B3"},
    {"ascend-910b4",   "Ascend 910B4",           29.5,  0.0,        0.0,       0.0,    0.0,   "Ascend910B4"},
    {"ascend-910b4-1", "Ascend 910B4-1",         61.0,  0.0,        0.0,       0.0,    0.0,   "Ascend910B4-1"},
    {"ascend-910c",    "Ascend 910C (A3), one of its two dies", 61.0, 0.0, 0.0, 0.0,   0.0,   "Ascend910_9392"},
    {"ascend-910c-9382", "Ascend 910_9382 (A3), one die", 61.0, 0.0, 0.0,      0.0,    0.0,   "Ascend910_9382"},
    {"ascend-910c-9372", "Ascend 910_9372 (A3), one die", 61.0, 0.0, 0.0,      0.0,    0.0,   "Ascend910_9372"},
    {"ascend-950pr-957", "Ascend 950PR 957x",    119.2, 0.0,        0.0,       1600.0, 0.0,   "Ascend950PR_957"},
    {"ascend-950pr-958", "Ascend 950PR 958x",    119.2, 0.0,        0.0,       1600.0, 0.0,   "Ascend950PR_958"},
    {"ascend-950pr-959", "Ascend 950PR 959x",    119.2, 0.0,        0.0,       1600.0, 0.0,   "Ascend950PR_959"},
    {"ascend-950dt-957", "Ascend 950DT 957x",    134.1, 0.0,        0.0,       4000.0, 0.0,   "Ascend950DT_957"},
    {"ascend-950dt-958", "Ascend 950DT 958x",    134.1, 0.0,        0.0,       4000.0, 0.0,   "Ascend950DT_958"},
    {"ascend-950dt-959", "Ascend 950DT 959x",    134.1, 0.0,        0.0,       4000.0, 0.0,   "Ascend950DT_959"},
};
/* clang-format on */
enum { N_TARGETS = sizeof targets / sizeof targets[0] };

const cti_target *cti_target_at(size_t i)
{
    return i < N_TARGETS ? &targets[i] : NULL;
}

ct_status cti_target_find(const char *name, const cti_target **out_target, ct_err *err)
{
    const char *names[N_TARGETS];
    char list[512] = "";
    for (size_t i = 0; i < N_TARGETS; i++) {
        if (cti_str_eq(targets[i].name, name)) {
            *out_target = &targets[i];
            return CT_OK;
        }
        names[i] = targets[i].name;
        const size_t used = strlen(list);
        (void)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    int nearest = cti_nearest(name, names, N_TARGETS);
    for (int i = N_TARGETS - 1; i >= 0 && name[0] != '\0'; i--) { /* "h100" begins "h100-sxm" */
        nearest = cti_starts_with(names[i], name) ? i : nearest;
    }
    return CT_FAIL(err, CT_ERR_USAGE, "--target: '%s' is not known%s%s%s; there are cpu (this machine), %s", name,
                   nearest >= 0 ? "; did you mean '" : "", nearest >= 0 ? names[nearest] : "", nearest >= 0 ? "'" : "", list);
}

double cti_target_peak(const cti_target *target, bool is_bf16)
{
    double bf16 = target->peak_bf16, f32 = target->peak_f32;
    if (target->soc != NULL) {
        (void)cti_npu_peaks(target->soc, &bf16, &f32); /* 0 where the name is not known */
    }
    return is_bf16 ? bf16 : f32;
}
