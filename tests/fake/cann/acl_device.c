/* SPDX-License-Identifier: Apache-2.0 */
/* Start and end, devices, contexts, what they are like, and the options of the process. */
#include "acl_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct cann cann = {.lock = PTHREAD_MUTEX_INITIALIZER};
_Thread_local struct context *current;
_Thread_local struct task *running;

__attribute__((constructor)) static void at_start(void)
{
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&cann.changed, &attr);
    (void)pthread_condattr_destroy(&attr);
}

void cann_lock(void)
{
    (void)pthread_mutex_lock(&cann.lock);
}

void cann_unlock(void)
{
    (void)pthread_mutex_unlock(&cann.lock);
}

double now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

struct context *current_context(void)
{
    return current == NULL || current->dead ? NULL : current;
}

void enter_free(const char *name)
{
    fake_count(name);
    if (!cann.init) {
        fake_lint(FAKE_R_NOT_INITIALISED, "%s before aclInit or after aclFinalize", name);
    }
}

struct context *enter(const char *name)
{
    enter_free(name);
    struct context *context = current_context();
    if (context == NULL) {
        (void)fake_code(FAKE_R_NO_CONTEXT, E_RT_CONTEXT_NULL,
                        "EE1001: %s: this thread has no current context", name);
    }
    return context;
}

int fake_device(void)
{
    struct context *context = current_context();
    return context == NULL ? -1 : context->device;
}

void *fake_context(void)
{
    return current_context();
}

bool fake_initialised(void)
{
    return cann.init;
}

int fake_deterministic(void)
{
    return (int)cann.params[0];
}

const char *fake_soc(void)
{
    return switch_text("FAKE_CANN_SOC", "Ascend910B4");
}

bool fake_soc_is(const char *prefix)
{
    return strncmp(fake_soc(), prefix, strlen(prefix)) == 0;
}

/* "9.1" is 901. */
int fake_version(void)
{
    int major = 9, minor = 1;
    (void)sscanf(switch_text("FAKE_CANN_VERSION", "9.1"), "%d.%d", &major, &minor);
    return major * 100 + minor;
}

int lost_code(int device)
{
    if (cann.devices[device].lost) {
        fake_error_text("EZ9999: lost the heartbeat of device %d", device);
        return E_HEARTBEAT;
    }
    return 0;
}

/* ---- Start and end ----------------------------------------------------------------------------------- */

ACL int aclInit(const char *configPath)
{
    fake_count("aclInit");
    char config[sizeof cann.config] = "";
    FILE *file = configPath == NULL ? NULL : fopen(configPath, "r");
    if (file != NULL) {
        (void)fread(config, 1, sizeof config - 1, file);
        (void)fclose(file);
    }
    cann_lock();
    int code = 0;
    if (!cann.init) {
        cann.init = true;
        cann.references = 1;
        (void)memcpy(cann.config, config, sizeof config);
    } else if (strcmp(config, cann.config) != 0) {
        code = fake_code(FAKE_R_INIT_OTHER_CONFIG, E_INVALID_PARAM,
                         "EH0001: aclInit: another configuration than before");
    } else {
        cann.references++;
        code = fake_code(FAKE_R_INIT_AGAIN, E_REPEAT_INITIALIZE, "EH0001: aclInit: called before");
    }
    cann_unlock();
    return code;
}

static int finalize(const char *name, bool at_once, uint64_t *out_references)
{
    fake_count(name);
    cann_lock();
    int code = 0;
    if (!cann.init) {
        code = fake_code(FAKE_R_FINALIZE_AGAIN, E_REPEAT_FINALIZE, "EH0001: %s: not initialised", name);
    } else if (--cann.references == 0 || at_once) {
        char text[1024];
        if (live_text(FAKE_TENSOR, text, sizeof text)) {
            fake_lint(FAKE_R_LIVE_AT_FINALIZE, "%s: still there: %s", name, text);
        }
        cann.init = false;
        cann.references = 0;
    }
    if (out_references != NULL) {
        *out_references = (uint64_t)cann.references;
    }
    cann_unlock();
    return code;
}

ACL int aclFinalize(void)
{
    return finalize("aclFinalize", true, NULL);
}

ACL int aclFinalizeReference(uint64_t *refCount)
{
    return finalize("aclFinalizeReference", false, refCount);
}

/* ---- Devices ----------------------------------------------------------------------------------------- */

/* A token of digits alone; < 0 where it is something else. */
static long token_number(const char *at, size_t length)
{
    long number = 0;
    for (size_t i = 0; i < length; i++) {
        if (at[i] < '0' || at[i] > '9' || number > 100000) {
            return -1;
        }
        number = number * 10 + (at[i] - '0');
    }
    return length == 0 ? -1 : number;
}

int visible_devices(int out_physical[MAX_DEVICES], char *why, size_t why_size)
{
    long devices = switch_number("FAKE_CANN_DEVICES", 2);
    devices = devices > MAX_DEVICES ? MAX_DEVICES : devices;
    int physical[MAX_DEVICES], n = 0;
    const char *list = getenv("ASCEND_RT_VISIBLE_DEVICES");
    if (list == NULL) {
        for (; n < devices; n++) {
            physical[n] = n;
        }
    }
    for (const char *at = list; at != NULL;) {
        size_t length = strcspn(at, ",");
        long id = token_number(at, length);
        if (id < 0 || id >= devices) {
            break; /* what came before stays */
        }
        if (n > 0 && id <= physical[n - 1]) {
            if (why != NULL) {
                (void)snprintf(why, why_size, "'%s' is not in ascending order", list);
            }
            return -1;
        }
        physical[n++] = (int)id;
        at = at[length] == ',' && n < MAX_DEVICES ? at + length + 1 : NULL;
    }
    if (list != NULL && n == 0) {
        if (why != NULL) {
            (void)snprintf(why, why_size, "'%s' names no device", list);
        }
        return -1;
    }
    if (out_physical != NULL) {
        (void)memcpy(out_physical, physical, (size_t)n * sizeof physical[0]);
    }
    return n;
}

int fake_physical(int device)
{
    int physical[MAX_DEVICES];
    return device < 0 || device >= visible_devices(physical, NULL, 0) ? -1 : physical[device];
}

ACL int aclrtGetDeviceCount(uint32_t *count)
{
    enter_free("aclrtGetDeviceCount");
    if (count == NULL) {
        return fake_code(FAKE_R_NULL_OUT, E_INVALID_PARAM, "EH0001: aclrtGetDeviceCount: the result is NULL");
    }
    char why[512] = "";
    int n = visible_devices(NULL, why, sizeof why);
    *count = n > 0 ? (uint32_t)n : 0;
    if (n < 0) {
        return fake_code(FAKE_R_VISIBLE_LIST, E_NO_DEVICE,
                         "EE2002: aclrtGetDeviceCount: ASCEND_RT_VISIBLE_DEVICES: %s", why);
    }
    if (n == 0) {
        fake_error_text("EL0003: aclrtGetDeviceCount: the driver knows no device");
        return E_NO_DEVICE;
    }
    return 0;
}

/* 0, or the error of an id that is not visible. */
static int check_device(const char *name, int64_t id)
{
    char why[512] = "";
    int n = visible_devices(NULL, why, sizeof why);
    if (n < 0) {
        return fake_code(FAKE_R_VISIBLE_LIST, E_NO_DEVICE, "EE2002: %s: ASCEND_RT_VISIBLE_DEVICES: %s", name,
                         why);
    }
    if (id < 0 || id >= n) {
        return fake_code(FAKE_R_DEVICE_ID, E_RT_DEVICE, "EE1001: %s: device %lld of %d visible ones", name,
                         (long long)id, n);
    }
    return 0;
}

static struct context *context_new(int device, bool is_default)
{
    struct context *context = handle_new(HANDLE_CONTEXT);
    context->device = device;
    context->is_default = is_default;
    return context;
}

ACL int aclrtSetDevice(int32_t deviceId)
{
    enter_free("aclrtSetDevice");
    int code = check_device("aclrtSetDevice", deviceId);
    if (code != 0) {
        return code;
    }
    if (fake_fault("open")) {
        fake_error_text("EL0003: aclrtSetDevice: the driver could not open device %d", deviceId);
        return E_SETUP;
    }
    cann_lock();
    struct device *device = &cann.devices[deviceId];
    if (device->context == NULL) {
        device->context = context_new(deviceId, true);
    }
    device->references++;
    current = device->context;
    cann_unlock();
    return 0;
}

ACL int aclrtGetDevice(int32_t *deviceId)
{
    struct context *context = enter("aclrtGetDevice");
    if (context == NULL) {
        return E_RT_CONTEXT_NULL;
    }
    if (deviceId == NULL) {
        return fake_code(FAKE_R_NULL_OUT, E_INVALID_PARAM, "EH0001: aclrtGetDevice: the result is NULL");
    }
    *deviceId = context->device;
    return 0;
}

static int reset_device(const char *name, int32_t id, bool force)
{
    enter_free(name);
    int code = check_device(name, id);
    if (code != 0) {
        return code;
    }
    cann_lock();
    struct device *device = &cann.devices[id];
    if (device->references == 0) {
        code =
            fake_code(FAKE_R_RESET_TOO_OFTEN, E_RESET, "EE1001: %s: device %d is not set any more", name, id);
    } else if (--device->references == 0 || force) {
        char text[256];
        if (device_holds(id, text, sizeof text)) {
            fake_lint(FAKE_R_LIVE_AT_RESET, "%s: device %d still has %s", name, id, text);
        }
        device->references = 0;
        struct stream *stream = device->context->default_stream;
        if (stream != NULL) {
            (void)stream_wait(name, stream, stream->issued, -1);
            stream->dead = true;
        }
        device->context->dead = true;
        device->context = NULL;
    }
    cann_unlock();
    return code;
}

ACL int aclrtResetDevice(int32_t deviceId)
{
    return reset_device("aclrtResetDevice", deviceId, false);
}

ACL int aclrtResetDeviceForce(int32_t deviceId)
{
    return reset_device("aclrtResetDeviceForce", deviceId, true);
}

ACL int aclrtQueryDeviceStatus(int32_t deviceId, int *status)
{
    enter_free("aclrtQueryDeviceStatus");
    if (status == NULL) {
        return fake_code(FAKE_R_NULL_OUT, E_INVALID_PARAM,
                         "EH0001: aclrtQueryDeviceStatus: the result is NULL");
    }
    int code = check_device("aclrtQueryDeviceStatus", deviceId);
    if (code == 0) {
        *status = cann.devices[deviceId].abnormal ? 1 : 0;
    }
    return code;
}

/* ---- Contexts ---------------------------------------------------------------------------------------- */

ACL int aclrtCreateContext(void **context, int32_t deviceId)
{
    enter_free("aclrtCreateContext");
    if (context == NULL) {
        return fake_code(FAKE_R_NULL_OUT, E_INVALID_PARAM, "EH0001: aclrtCreateContext: the result is NULL");
    }
    int code = check_device("aclrtCreateContext", deviceId);
    if (code == 0) {
        cann_lock();
        *context = current = context_new(deviceId, false);
        cann_unlock();
        fake_live(FAKE_CONTEXT, 1);
    }
    return code;
}

/* A context argument; NULL with *code set. */
static struct context *context_of(const char *name, void *handle, int *code)
{
    struct context *context = handle;
    *code = 0;
    if (handle == NULL) {
        *code = fake_code(FAKE_R_NULL_HANDLE, E_INVALID_PARAM, "EH0001: %s: NULL", name);
        return NULL;
    }
    if (!handle_is(HANDLE_CONTEXT, handle) || context->dead) {
        fake_trap(FAKE_R_BAD_HANDLE, "%s: context %p is destroyed or none", name, handle);
        fake_error_text("EE1017: %s: context %p is no valid handle", name, handle);
        *code = E_RT_HANDLE;
        return NULL;
    }
    return context;
}

ACL int aclrtDestroyContext(void *handle)
{
    enter_free("aclrtDestroyContext");
    int code = 0;
    struct context *context = context_of("aclrtDestroyContext", handle, &code);
    if (context == NULL) {
        return code;
    }
    if (context->is_default) {
        fake_trap(FAKE_R_BAD_HANDLE, "aclrtDestroyContext: the default context of a device");
        return E_RT_HANDLE;
    }
    cann_lock();
    if (context->default_stream != NULL) {
        (void)stream_wait("aclrtDestroyContext", context->default_stream, context->default_stream->issued,
                          -1);
        context->default_stream->dead = true;
    }
    context->dead = true;
    cann_unlock();
    fake_live(FAKE_CONTEXT, -1);
    return 0;
}

ACL int aclrtSetCurrentContext(void *handle)
{
    enter_free("aclrtSetCurrentContext");
    int code = 0;
    struct context *context = context_of("aclrtSetCurrentContext", handle, &code);
    if (context != NULL) {
        current = context;
    }
    return code;
}

ACL int aclrtGetCurrentContext(void **context)
{
    struct context *mine = enter("aclrtGetCurrentContext");
    if (mine == NULL) {
        return E_RT_CONTEXT_NULL;
    }
    if (context == NULL) {
        return fake_code(FAKE_R_NULL_OUT, E_INVALID_PARAM,
                         "EH0001: aclrtGetCurrentContext: the result is NULL");
    }
    *context = mine;
    return 0;
}

/* ---- Options ----------------------------------------------------------------------------------------- */

static int set_param(const char *name, int opt, int64_t value, struct context *context)
{
    bool known = opt >= 0 && opt <= 2 && value >= 0 && value <= (opt == 0 ? 3 : 1);
    if (!known) {
        return fake_code(FAKE_R_SYS_PARAM, E_RT_PARAM, "EE1001: %s: option %d, value %lld", name, opt,
                         (long long)value);
    }
    cann_lock();
    cann.params[opt] = value; /* what phase 1 of every op reads; the setter of a context writes it, too */
    cann.params_set[opt] = true;
    if (context != NULL) {
        context->params[opt] = value;
        context->params_set[opt] = true;
    }
    cann_unlock();
    return 0;
}

ACL int aclrtSetSysParamOpt(int opt, int64_t value)
{
    enter_free("aclrtSetSysParamOpt");
    return set_param("aclrtSetSysParamOpt", opt, value, NULL);
}

ACL int aclrtCtxSetSysParamOpt(int opt, int64_t value)
{
    struct context *context = enter("aclrtCtxSetSysParamOpt");
    return context == NULL ? E_RT_CONTEXT_NULL : set_param("aclrtCtxSetSysParamOpt", opt, value, context);
}

static int get_param(const char *name, int opt, int64_t *value, const int64_t *values, const bool *set)
{
    if (value == NULL) {
        return fake_code(FAKE_R_NULL_OUT, E_INVALID_PARAM, "EH0001: %s: the result is NULL", name);
    }
    if (opt < 0 || opt > 2) {
        return fake_code(FAKE_R_SYS_PARAM, E_RT_PARAM, "EE1001: %s: option %d", name, opt);
    }
    if (set != NULL && !set[opt]) {
        return fake_code(FAKE_R_SYS_PARAM_UNSET, E_RT_UNSET, "EE1001: %s: option %d was never set", name,
                         opt);
    }
    *value = values[opt];
    return 0;
}

ACL int aclrtGetSysParamOpt(int opt, int64_t *value)
{
    enter_free("aclrtGetSysParamOpt");
    return get_param("aclrtGetSysParamOpt", opt, value, cann.params, NULL);
}

ACL int aclrtCtxGetSysParamOpt(int opt, int64_t *value)
{
    struct context *context = enter("aclrtCtxGetSysParamOpt");
    return context == NULL
               ? E_RT_CONTEXT_NULL
               : get_param("aclrtCtxGetSysParamOpt", opt, value, context->params, context->params_set);
}

ACL int aclrtSetOpWaitTimeout(uint32_t timeout)
{
    (void)timeout;
    return enter("aclrtSetOpWaitTimeout") == NULL ? E_RT_CONTEXT_NULL : 0;
}

ACL int aclrtSetOpExecuteTimeOut(uint32_t timeout)
{
    (void)timeout;
    return enter("aclrtSetOpExecuteTimeOut") == NULL ? E_RT_CONTEXT_NULL : 0;
}

/* ---- Peers ------------------------------------------------------------------------------------------- */

ACL int aclrtDeviceCanAccessPeer(int32_t *can, int32_t deviceId, int32_t peer)
{
    enter_free("aclrtDeviceCanAccessPeer");
    if (can == NULL) {
        return fake_code(FAKE_R_NULL_OUT, E_INVALID_PARAM,
                         "EH0001: aclrtDeviceCanAccessPeer: the result is NULL");
    }
    int code = check_device("aclrtDeviceCanAccessPeer", deviceId);
    code = code != 0 ? code : check_device("aclrtDeviceCanAccessPeer", peer);
    *can = code == 0 && deviceId != peer && switch_number("FAKE_CANN_PEER", 1) != 0 ? 1 : 0;
    return code;
}

static int set_peer(const char *name, int32_t peer, uint32_t flags, bool on)
{
    struct context *context = enter(name);
    if (context == NULL) {
        return E_RT_CONTEXT_NULL;
    }
    int code = check_device(name, peer);
    if (code == 0 && (peer == context->device || flags != 0)) {
        code = fake_code(FAKE_R_PEER_ARGUMENTS, E_RT_PARAM, "EE1001: %s: peer %d of device %d, flags %u",
                         name, peer, context->device, flags);
    }
    if (code == 0) {
        cann_lock();
        cann.devices[context->device].peer[peer] = on;
        cann_unlock();
    }
    return code;
}

ACL int aclrtDeviceEnablePeerAccess(int32_t peer, uint32_t flags)
{
    return set_peer("aclrtDeviceEnablePeerAccess", peer, flags, true);
}

ACL int aclrtDeviceDisablePeerAccess(int32_t peer)
{
    return set_peer("aclrtDeviceDisablePeerAccess", peer, 0, false);
}
