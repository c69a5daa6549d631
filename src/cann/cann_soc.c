/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of each Ascend chip.
 *
 * bf16 peak of a chip = cube cores x clock x 16 x 16 x 16 multiply-adds x 2 (Davinci's cube does one such block a cycle). Cores and clocks
 * stand in the platform_config/<SocName>.ini files that CANN installs (8.1.RC1). torchtitan-npu divides MFU by 373.88e12 (910B1), 353.8944e12
 * (910B2 and 910_9392), 294.912e12 (910B3), 245.76e12 (910B4): where it has a figure ours is that one, so that MFU can be compared; for 910B1 the
 * ini's 24 cores at 1.85 GHz give 363.7e12 and tools report 25 cores, for 910_9392 363.7e12. 910A has no bf16, so that there is no figure.
 * A3 names (910_93xx) are one die of a card sold as 910C, and one device: a card has twice that. 950: the rule on the ini's cores and clocks, not
 * confirmed by the vendor, who tells 1 PFLOP/s in FP8 a card. float32 goes through the cube at a rate that no public file tells: 0. */
#include <string.h>

#include "cann/cann.h"

typedef struct soc {
    const char *prefix; /* of aclrtGetSocName(); the longest one that fits counts */
    double bf16;
    int64_t memory_gib;
    bool has_bf16;
} soc;

static const soc SOCS[] = {
    {"Ascend910B1", 373.88e12, 64, true},     {"Ascend910B2", 353.8944e12, 64, true},   {"Ascend910B3", 294.912e12, 64, true},
    {"Ascend910B4-1", 245.76e12, 64, true},   {"Ascend910B4", 245.76e12, 32, true},     {"Ascend910_9391", 363.7e12, 64, true},
    {"Ascend910_9392", 353.8944e12, 64, true}, {"Ascend910_9381", 353.9e12, 64, true},  {"Ascend910_9382", 353.9e12, 64, true},
    {"Ascend910_9372", 294.9e12, 64, true},   {"Ascend910_9362", 245.8e12, 0, true},    {"Ascend910_9363", 245.8e12, 0, true},
    {"Ascend950PR_957", 378e12, 128, true},   {"Ascend950PR_958", 432e12, 128, true},   {"Ascend950PR_959", 531e12, 128, true},
    {"Ascend950PR_95A", 531e12, 128, true},   {"Ascend950DT_957", 378e12, 144, true},   {"Ascend950DT_958", 432e12, 144, true},
    {"Ascend950DT_959", 531e12, 144, true},   {"Ascend950DT_95A", 531e12, 144, true},   {"Ascend910A", 0, 32, false},
    {"Ascend910ProA", 0, 32, false},          {"Ascend910ProB", 0, 32, false},          {"Ascend910PremiumA", 0, 32, false},
    {"Ascend310", 0, 0, false},
};

static const soc *find(const char *name)
{
    const soc *best = NULL;
    for (size_t i = 0; name != NULL && i < sizeof SOCS / sizeof SOCS[0]; i++) {
        const size_t len = strlen(SOCS[i].prefix);
        if (strncmp(name, SOCS[i].prefix, len) == 0 && (best == NULL || len > strlen(best->prefix))) {
            best = &SOCS[i];
        }
    }
    return best;
}

bool cti_npu_peaks(const char *name, double *out_bf16, double *out_f32)
{
    const soc *s = find(name);
    *out_bf16 = s != NULL ? s->bf16 : 0.0;
    *out_f32 = 0.0;
    return s != NULL;
}

int64_t cti_npu_memory_bytes(const char *name)
{
    const soc *s = find(name);
    return s != NULL ? s->memory_gib << 30 : 0;
}

bool cti_npu_has_bf16(const char *name)
{
    const soc *s = find(name);
    return s == NULL || s->has_bf16;
}
