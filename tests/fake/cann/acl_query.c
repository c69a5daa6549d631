/* SPDX-License-Identifier: Apache-2.0 */
/* What machine and package this is: names, versions, numbers of cores; sizes of types and half floats. */
#include "acl_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

ACL const char *aclrtGetSocName(void)
{
    enter_free("aclrtGetSocName");
    return strcmp(fake_soc(), "none") == 0 ? NULL : fake_soc();
}

static int null_out(const char *name)
{
    return fake_code(FAKE_R_NULL_OUT, E_INVALID_PARAM, "EH0001: %s: a result is NULL", name);
}

ACL int aclrtGetRunMode(int *mode)
{
    enter_free("aclrtGetRunMode");
    if (mode == NULL) {
        return null_out("aclrtGetRunMode");
    }
    *mode = 1; /* the host of a server */
    return 0;
}

ACL int aclrtGetVersion(int32_t *major, int32_t *minor, int32_t *patch)
{
    enter_free("aclrtGetVersion");
    if (major == NULL || minor == NULL || patch == NULL) {
        return null_out("aclrtGetVersion");
    }
    *major = 1;
    *minor = fake_version() < 900 ? 13 : 17;
    *patch = 0;
    return 0;
}

struct package_version {
    char version[128], major[64], minor[64], release[64], patch[64], reserved[128];
};

static void version_text(char *out, size_t size)
{
    (void)snprintf(out, size, fake_version() < 900 ? "%d.%d.RC1" : "%d.%d.0", fake_version() / 100,
                   fake_version() % 100);
}

ACL int aclsysGetCANNVersion(int name, struct package_version *version)
{
    enter_free("aclsysGetCANNVersion");
    if (version == NULL || name < 0 || name > 7) {
        return null_out("aclsysGetCANNVersion");
    }
    *version = (struct package_version){.release = "0"};
    if (name == 7) { /* the driver */
        (void)snprintf(version->version, sizeof version->version, "%s",
                       switch_text("FAKE_CANN_DRIVER", "25.2.0"));
        return 0;
    }
    version_text(version->version, sizeof version->version);
    (void)snprintf(version->major, sizeof version->major, "%d", fake_version() / 100);
    (void)snprintf(version->minor, sizeof version->minor, "%d", fake_version() % 100);
    return 0;
}

ACL int aclsysGetVersionStr(char *package, char *text)
{
    enter_free("aclsysGetVersionStr");
    if (package == NULL || text == NULL) {
        return null_out("aclsysGetVersionStr");
    }
    if (strcmp(package, "driver") == 0) {
        (void)snprintf(text, 128, "%s", switch_text("FAKE_CANN_DRIVER", "25.2.0"));
    } else {
        version_text(text, 128);
    }
    return 0;
}

ACL int aclsysGetVersionNum(char *package, int32_t *number)
{
    enter_free("aclsysGetVersionNum");
    if (package == NULL || number == NULL) {
        return null_out("aclsysGetVersionNum");
    }
    *number = fake_version() / 100 * 10000000 + fake_version() % 100 * 100000;
    return 0;
}

static const struct {
    const char *prefix;
    int cube, vector, l2_mib;
} socs[] = {{"Ascend910B4-1", 20, 40, 168}, {"Ascend910B4", 20, 40, 96},
            {"Ascend910B3", 20, 40, 192},   {"Ascend910B2", 24, 48, 192},
            {"Ascend910B1", 24, 48, 192},   {"Ascend910_93", 24, 48, 192},
            {"Ascend950", 32, 64, 128},     {"", 32, 32, 32}};

static int64_t soc_number(int what)
{
    size_t i = 0;
    while (!fake_soc_is(socs[i].prefix)) {
        i++;
    }
    return what == 0 ? socs[i].cube : what == 1 ? socs[i].vector : (int64_t)socs[i].l2_mib << 20;
}

ACL int aclGetDeviceCapability(uint32_t deviceId, int info, int64_t *value)
{
    enter_free("aclGetDeviceCapability");
    if (value == NULL || info < 0 || info > 2) {
        return null_out("aclGetDeviceCapability");
    }
    if ((int64_t)deviceId >= visible_devices(NULL, NULL, 0)) {
        return fake_code(FAKE_R_DEVICE_ID, E_RT_DEVICE, "EE1001: aclGetDeviceCapability: device %u",
                         deviceId);
    }
    *value = soc_number(info);
    return 0;
}

ACL int aclrtGetDeviceInfo(uint32_t deviceId, int attr, int64_t *value)
{
    enter_free("aclrtGetDeviceInfo");
    if (value == NULL) {
        return null_out("aclrtGetDeviceInfo");
    }
    int physical[MAX_DEVICES];
    if ((int64_t)deviceId >= visible_devices(physical, NULL, 0)) {
        return fake_code(FAKE_R_DEVICE_ID, E_RT_DEVICE, "EE1001: aclrtGetDeviceInfo: device %u", deviceId);
    }
    switch (attr) {
    case 101:
    case 102:
        *value = soc_number(0);
        return 0;
    case 201:
        *value = soc_number(1);
        return 0;
    case 301:
        *value = (int64_t)device_memory();
        return 0;
    case 302:
        *value = soc_number(2);
        return 0;
    case 402:
        *value = physical[deviceId];
        return 0;
    case 501:
        *value = 0;
        return 0;
    case 601:
        *value = fake_soc_is("Ascend950") ? 3510 : 2201;
        return 0;
    default:
        return fake_code(FAKE_R_SYS_PARAM, E_RT_PARAM, "EE1001: aclrtGetDeviceInfo: attribute %d", attr);
    }
}

struct utilization {
    int32_t cube, vector, aicpu, memory;
    void *reserved;
};

ACL int aclrtGetDeviceUtilizationRate(int32_t deviceId, struct utilization *info)
{
    enter_free("aclrtGetDeviceUtilizationRate");
    if (info == NULL || info->reserved != NULL) {
        return null_out("aclrtGetDeviceUtilizationRate");
    }
    if (deviceId < 0 || deviceId >= visible_devices(NULL, NULL, 0)) {
        return fake_code(FAKE_R_DEVICE_ID, E_RT_DEVICE, "EE1001: aclrtGetDeviceUtilizationRate: device %d",
                         deviceId);
    }
    cann_lock();
    *info = (struct utilization){.memory = (int32_t)(cann.devices[deviceId].used * 100 / device_memory())};
    cann_unlock();
    return 0;
}

ACL int aclrtGetPhyDevIdByLogicDevId(int32_t logic, int32_t *physical)
{
    enter_free("aclrtGetPhyDevIdByLogicDevId");
    if (physical == NULL) {
        return null_out("aclrtGetPhyDevIdByLogicDevId");
    }
    int all[MAX_DEVICES], n = visible_devices(all, NULL, 0);
    if (logic < 0 || logic >= n) {
        return fake_code(FAKE_R_DEVICE_ID, E_RT_DEVICE, "EE1001: aclrtGetPhyDevIdByLogicDevId: device %d",
                         logic);
    }
    *physical = all[logic];
    return 0;
}

ACL int aclrtGetLogicDevIdByPhyDevId(int32_t physical, int32_t *logic)
{
    enter_free("aclrtGetLogicDevIdByPhyDevId");
    if (logic == NULL) {
        return null_out("aclrtGetLogicDevIdByPhyDevId");
    }
    int all[MAX_DEVICES], n = visible_devices(all, NULL, 0);
    for (int i = 0; i < n; i++) {
        if (all[i] == physical) {
            *logic = i;
            return 0;
        }
    }
    return fake_code(FAKE_R_DEVICE_ID, E_RT_DEVICE, "EE1001: aclrtGetLogicDevIdByPhyDevId: device %d",
                     physical);
}

ACL int aclrtDeviceGetUuid(int32_t deviceId, char uuid[16])
{
    enter_free("aclrtDeviceGetUuid");
    int all[MAX_DEVICES], n = visible_devices(all, NULL, 0);
    if (uuid == NULL) {
        return null_out("aclrtDeviceGetUuid");
    }
    if (deviceId < 0 || deviceId >= n) {
        return fake_code(FAKE_R_DEVICE_ID, E_RT_DEVICE, "EE1001: aclrtDeviceGetUuid: device %d", deviceId);
    }
    (void)memset(uuid, 0xfa, 16);
    uuid[15] = (char)all[deviceId];
    return 0;
}

static int last_error(const char *name)
{
    struct context *context = enter(name);
    return context == NULL ? E_RT_CONTEXT_NULL : context->fault;
}

ACL int aclrtPeekAtLastError(int level)
{
    (void)level;
    return last_error("aclrtPeekAtLastError");
}

ACL int aclrtGetLastError(int level)
{
    (void)level;
    return last_error("aclrtGetLastError");
}

ACL size_t aclDataTypeSize(int type)
{
    static const uint8_t sizes[] = {4,  2, 1, 4, 1, 0, 2, 2, 4, 8, 8, 8, 1, 0, 0, 0, 8,
                                    16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 1, 0, 0, 4};
    return type < 0 || type >= (int)sizeof sizes ? 0 : sizes[type];
}

float fake_from_half(uint16_t value)
{
    int exponent = value >> 10 & 31, mantissa = value & 1023;
    float magnitude = exponent == 31 ? (mantissa != 0 ? NAN : INFINITY)
                                     : ldexpf((float)(exponent == 0 ? mantissa : mantissa + 1024),
                                              (exponent == 0 ? 1 : exponent) - 25);
    return (value & 0x8000) != 0 ? -magnitude : magnitude;
}

/* Round to nearest, ties to even. */
uint16_t fake_to_half(float value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    if (isnan(value)) {
        return (uint16_t)(sign | 0x7e00);
    }
    double magnitude = fabs((double)value);
    if (magnitude >= 65520) {
        return (uint16_t)(sign | 0x7c00);
    }
    int exponent = 0;
    (void)frexp(magnitude, &exponent);
    exponent = magnitude == 0 || exponent < -13
                   ? -13
                   : exponent; /* 2^(exponent - 11) is the unit in the last place */
    double units = nearbyint(ldexp(magnitude, 11 - exponent));
    double half = ldexp(units, exponent - 11); /* exact; a carry has moved it to the next binade */
    (void)frexp(half, &exponent);
    if (half < ldexp(1, -14)) {
        return (uint16_t)(sign | (uint16_t)ldexp(half, 24));
    }
    return (uint16_t)(sign | (uint16_t)((exponent + 14) << 10) |
                      (uint16_t)((int)ldexp(half, 11 - exponent) & 1023));
}

ACL float aclFloat16ToFloat(uint16_t value)
{
    return fake_from_half(value);
}

ACL uint16_t aclFloatToFloat16(float value)
{
    return fake_to_half(value);
}
