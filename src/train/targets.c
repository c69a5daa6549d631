/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of devices. Sources: the vendors' data sheets (dense rates, without sparsity; memory and link bandwidth) and, for peaks that
 * differ between sheets, the table of torchtitan 0.3.0 (components/metrics) so that MFU means the same; memory as drivers report it.
 * Ascend's rates follow from cores and clock (2 * 16^3 multiply-adds a cycle and core); its bandwidths are not published. */
#include "train/targets.h"

#include "base/base.h"
#include "base/nearest.h"

/* clang-format off */
static const cti_target targets[] = {
    /* name          what                        GiB    bf16        f32        GB/s    link GB/s */
    {"a100-40g",    "NVIDIA A100 SXM 40GB",      39.4,  312e12,     19.5e12,   1555.0, 300.0},
    {"a100-80g",    "NVIDIA A100 SXM 80GB",      79.2,  312e12,     19.5e12,   2039.0, 300.0},
    {"h100-sxm",    "NVIDIA H100 SXM 80GB",      79.1,  989e12,     67e12,     3350.0, 450.0},
    {"h100-pcie",   "NVIDIA H100 PCIe 80GB",     79.1,  756e12,     51e12,     2000.0, 64.0},
    {"h200",        "NVIDIA H200 SXM",           139.8, 989e12,     67e12,     4800.0, 450.0},
    {"b200",        "NVIDIA B200 SXM",           178.3, 2250e12,    75e12,     8000.0, 900.0},
    {"l40s",        "NVIDIA L40S",               44.4,  362e12,     91.6e12,   864.0,  32.0},
    {"ascend-910b1", "Ascend 910B1",             61.0,  373.88e12,  0.0,       0.0,    0.0},
    {"ascend-910b2", "Ascend 910B2",             61.0,  353.8944e12, 0.0,      0.0,    0.0},
    {"ascend-910b3", "Ascend 910B3",             61.0,  294.912e12, 0.0,       0.0,    0.0},
    {"ascend-910b4", "Ascend 910B4",             29.5,  245.76e12,  0.0,       0.0,    0.0},
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
    char list[256] = "";
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
