/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators: root info, creation, what they are, their end. */
#include "hccl_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

static const char magic_text[] = "fake hccl root info";

struct hccl *hccl_state(void)
{
    static struct hccl *state;
    if (state == NULL) {
        state = fake_shared("hccl", sizeof *state);
    }
    return state;
}

double hccl_now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Between looks at shared memory. */
void hccl_pause(int *turns)
{
    struct timespec pause = {0, *turns < 20 ? 20000 : 300000};
    *turns += 1;
    (void)nanosleep(&pause, NULL);
}

/* ---- The environment --------------------------------------------------------------------------------- */

static double scale(void)
{
    const char *text = getenv("FAKE_CANN_TIME_SCALE");
    return text == NULL ? 1 : strtod(text, NULL);
}

/* A whole number in [low, high], or -1. */
static long number_in(const char *text, long low, long high)
{
    char *end = NULL;
    errno = 0;
    long value = strtol(text, &end, 10);
    return end == text || *end != '\0' || errno != 0 || value < low || value > high ? -1 : value;
}

static bool good_ports(const char *text)
{
    if (strcmp(text, "auto") == 0) {
        return true;
    }
    for (;;) {
        char *end = NULL;
        long low = strtol(text, &end, 10), high = low;
        if (end == text) {
            return false;
        }
        if (*end == '-') {
            text = end + 1;
            high = strtol(text, &end, 10);
            if (end == text) {
                return false;
            }
        }
        if (low < 1 || high > 65535 || low > high || (*end != ',' && *end != '\0')) {
            return false;
        }
        if (*end == '\0') {
            return true;
        }
        text = end + 1;
    }
}

static bool one_of(const char *text, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strcasecmp(text, *words) == 0) {
            return true;
        }
    }
    return false;
}

static bool good_variable(const char *name, const char *text)
{
    static const char *const deterministic[] = {"false", "true", "strict", NULL};
    static const char *const modes[] = {"HOST", "AI_CPU", "AIV", "HOST_TS", "AICPU_TS", NULL};
    if (strcmp(name, "HCCL_CONNECT_TIMEOUT") == 0) {
        return number_in(text, 120, 7200) >= 0;
    }
    if (strcmp(name, "HCCL_EXEC_TIMEOUT") == 0) {
        return number_in(text, 0, 2147483647) >= 0;
    }
    if (strcmp(name, "HCCL_BUFFSIZE") == 0) {
        return number_in(text, 1, 65536) >= 0;
    }
    if (strcmp(name, "HCCL_IF_BASE_PORT") == 0) {
        return number_in(text, 1024, 65520) >= 0;
    }
    if (strcmp(name, "HCCL_WHITELIST_DISABLE") == 0) {
        return number_in(text, 0, 1) >= 0;
    }
    if (strcmp(name, "HCCL_DETERMINISTIC") == 0) {
        return one_of(text, deterministic);
    }
    if (strcmp(name, "HCCL_OP_EXPANSION_MODE") == 0) {
        return one_of(text, modes);
    }
    return good_ports(text);
}

static int check_environment(const char *call)
{
    static const char *const names[] = {
        "HCCL_CONNECT_TIMEOUT",   "HCCL_EXEC_TIMEOUT",           "HCCL_BUFFSIZE",
        "HCCL_IF_BASE_PORT",      "HCCL_WHITELIST_DISABLE",      "HCCL_DETERMINISTIC",
        "HCCL_OP_EXPANSION_MODE", "HCCL_HOST_SOCKET_PORT_RANGE", "HCCL_NPU_SOCKET_PORT_RANGE"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = getenv(names[i]);
        if (text != NULL && !good_variable(names[i], text)) {
            return fake_code(FAKE_R_HCCL_ENVIRONMENT, H_PARA,
                             "EI0001: %s: environment variable %s: value '%s' is invalid", call, names[i],
                             text);
        }
    }
    return 0;
}

static long variable(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text == NULL ? otherwise : strtol(text, NULL, 10);
}

double exec_timeout_s(void)
{
    long seconds = variable("HCCL_EXEC_TIMEOUT", 1836);
    return seconds == 0 ? -1 : (double)seconds * scale();
}

bool comm_deterministic(const struct comm *comm)
{
    const char *text = getenv("HCCL_DETERMINISTIC");
    if (text != NULL) {
        return strcasecmp(text, "false") != 0;
    }
    return comm->deterministic >= 0 && comm->deterministic != 0xffff ? comm->deterministic > 0
                                                                     : hccl_state()->deterministic > 0;
}

/* ---- Creation ---------------------------------------------------------------------------------------- */

HCCL int HcclGetRootInfo(struct root_info *info)
{
    fake_count("HcclGetRootInfo");
    if (info == NULL) {
        return fake_code(FAKE_R_HCCL_NULL, H_PTR, "EI0003: HcclGetRootInfo: rootInfo is NULL");
    }
    if (fake_device() < 0) {
        return fake_code(FAKE_R_HCCL_NO_DEVICE, H_RUNTIME,
                         "EI9999: HcclGetRootInfo: this thread has no device");
    }
    int code = check_environment("HcclGetRootInfo");
    if (code != 0) {
        return code;
    }
    if (fake_fault("port_host")) {
        fake_error_text("EI0019: HcclGetRootInfo: the host's network adapter could not bind port 60000: the "
                        "port is in use by another process. "
                        "EJ0003: set HCCL_IF_BASE_PORT or HCCL_HOST_SOCKET_PORT_RANGE");
        return H_TCP_CONNECT;
    }
    struct hccl *hccl = hccl_state();
    fake_shared_lock();
    int number = hccl->roots++;
    fake_shared_unlock();
    (void)memset(info, 0x5a, sizeof *info);
    (void)memcpy(info->internal, magic_text, sizeof magic_text);
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)snprintf(info->internal + 64, NAME_BYTES, "/fake_hccl_%ld_%d_%llx", (long)getpid(), number,
                   (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec);
    struct meeting *meeting = meet_create(info->internal + 64);
    if (meeting == NULL) {
        fake_error_text("EI9999: HcclGetRootInfo: shared memory: %s", strerror(errno));
        return H_SYSCALL;
    }
    meet_close(meeting);
    return 0;
}

/* The first fields of a configuration, as version 5 has them. */
struct config {
    size_t size;
    uint32_t magic, version;
    uint64_t reserved;
    uint32_t buffer_mb, deterministic;
    char name[128], udi[128];
    uint32_t expansion, traffic_class, service_level;
};

static void use_config(struct comm *comm, const struct config *config)
{
    comm->deterministic = -1;
    comm->buffer_bytes = (size_t)variable("HCCL_BUFFSIZE", 200) << 21; /* twice */
    if (config == NULL) {
        return;
    }
    if (config->size >= offsetof(struct config, deterministic) && config->buffer_mb != 0xffffffff) {
        comm->buffer_bytes = (size_t)config->buffer_mb << 21;
    }
    if (config->size >= offsetof(struct config, name) && config->deterministic != 0xffffffff) {
        comm->deterministic = (int)config->deterministic;
    }
    if (config->size >= offsetof(struct config, udi)) {
        (void)snprintf(comm->given_name, NAME_BYTES, "%.*s", (int)sizeof config->name - 1, config->name);
    }
}

/* Comes to the meeting and waits for the others. */
static int meet(const char *call, struct comm *comm, struct meeting *meeting)
{
    uint32_t nranks = 0;
    if (!atomic_compare_exchange_strong(&meeting->nranks, &nranks, comm->nranks) && nranks != comm->nranks) {
        return fake_code(FAKE_R_HCCL_RANKS, H_PARA, "EI0015: %s: rank %u says %u ranks, another rank %u",
                         call, comm->rank, comm->nranks, nranks);
    }
    if (atomic_exchange(&meeting->here[comm->rank], 1) != 0) {
        fake_trap(FAKE_R_HCCL_ROOT_REUSED, "%s: root info %s: rank %u has come before", call, comm->name,
                  comm->rank);
        return H_INTERNAL;
    }
    int physical = fake_physical(comm->device);
    atomic_store(&meeting->device[comm->rank], physical + 1);
    (void)atomic_fetch_add(&meeting->joined, 1);
    long seconds = variable("HCCL_CONNECT_TIMEOUT", 120) + 20;
    double until = hccl_now_s() + (double)seconds * scale();
    int turns = 0;
    while (atomic_load(&meeting->joined) < comm->nranks) {
        if (hccl_now_s() > until) {
            char missing[256] = "";
            for (uint32_t r = 0; r < comm->nranks; r++) {
                if (atomic_load(&meeting->here[r]) == 0) {
                    (void)snprintf(missing + strlen(missing), sizeof missing - strlen(missing), " %u", r);
                }
            }
            return fake_code(FAKE_R_HCCL_ABSENT_INIT, H_TIMEOUT,
                             "EI0015: %s: root info exchange failed: after %ld s these ranks have not "
                             "come:%s (EI0006: HCCL_CONNECT_TIMEOUT)",
                             call, seconds, missing);
        }
        hccl_pause(&turns);
    }
    for (uint32_t r = 0; r < comm->nranks; r++) {
        if (r != comm->rank && atomic_load(&meeting->device[r]) == physical + 1 &&
            getenv("HCCL_NPU_SOCKET_PORT_RANGE") == NULL) {
            return fake_code(FAKE_R_HCCL_PORT_NPU, H_UNAVAIL,
                             "EI0020: %s: Communication_Error_Bind_IP_Port: port 16666 of device %d is "
                             "another rank's (HCCL_NPU_SOCKET_PORT_RANGE)",
                             call, physical);
        }
    }
    return 0;
}

static void forget(struct comm *comm)
{
    meet_close(comm->meeting);
    fake_own_block_free(comm->buffer);
    (void)pthread_mutex_destroy(&comm->lock);
    free(comm);
}

/* Creates with rank and nranks set; `name` is the meeting's. */
static int create(const char *call, const char *name, uint32_t nranks, uint32_t rank,
                  const struct config *config, bool make, void **out)
{
    struct comm *comm = calloc(1, sizeof *comm);
    if (comm == NULL) {
        return H_MEMORY;
    }
    (void)pthread_mutex_init(&comm->lock, NULL);
    (void)snprintf(comm->name, NAME_BYTES, "%s", name);
    comm->nranks = nranks;
    comm->rank = rank;
    comm->device = fake_device();
    use_config(comm, config);
    comm->buffer = fake_own_block(comm->buffer_bytes);
    int code = 0;
    if (comm->buffer == NULL) {
        code = fake_code(FAKE_R_HCCL_OUT_OF_MEMORY, H_MEMORY,
                         "EI0011: %s: no device memory for buffers of %zu bytes (2 x HCCL_BUFFSIZE)", call,
                         comm->buffer_bytes);
    }
    if (code == 0 && fake_fault("port_npu")) {
        code = fake_code(FAKE_R_HCCL_PORT_NPU, H_UNAVAIL,
                         "EI0020: %s: Communication_Error_Bind_IP_Port: port 16666 is another process's "
                         "(HCCL_NPU_SOCKET_PORT_RANGE)",
                         call);
    }
    if (code == 0) {
        comm->meeting = make ? meet_create(name) : meet_open(name, false);
        if (comm->meeting == NULL) {
            fake_trap(FAKE_R_HCCL_ROOT_REUSED,
                      "%s: root info %s: its ranks have met before, or its maker has ended", call, name);
            code = H_INTERNAL;
        }
    }
    code = code != 0 ? code : meet(call, comm, comm->meeting);
    if (code != 0) {
        forget(comm);
        return code;
    }
    if (atomic_fetch_add(&comm->meeting->left, 1) + 1 == nranks) {
        meet_unlink(name); /* all are here: nobody else may come */
    }
    struct hccl *hccl = hccl_state();
    fake_shared_lock();
    if (hccl->ncomms < MAX_COMMS) {
        hccl->comms[hccl->ncomms++] = comm;
    }
    fake_shared_unlock();
    fake_live(FAKE_COMM, 1);
    *out = comm;
    return 0;
}

/* One creation at a time, but for ranks of one communicator on several devices. */
static bool creation_begins(const char *call, const char *name)
{
    struct hccl *hccl = hccl_state();
    fake_shared_lock();
    bool wrong = hccl->creating > 0 &&
                 (strcmp(hccl->creating_name, name) != 0 || hccl->creating_device == fake_device());
    char other[NAME_BYTES];
    (void)snprintf(other, sizeof other, "%s", hccl->creating_name);
    hccl->creating++;
    (void)snprintf(hccl->creating_name, NAME_BYTES, "%s", name);
    hccl->creating_device = fake_device();
    fake_shared_unlock();
    if (wrong) {
        fake_trap(FAKE_R_HCCL_CONCURRENT_INIT, "%s: of %s while %s is being created in this process", call,
                  name, other);
    }
    return !wrong;
}

static void creation_ends(void)
{
    fake_shared_lock();
    hccl_state()->creating--;
    fake_shared_unlock();
}

static int init(const char *call, uint32_t nranks, const struct root_info *info, uint32_t rank,
                const struct config *config, bool with_config, void **comm)
{
    fake_count(call);
    if (info == NULL || comm == NULL || (with_config && config == NULL)) {
        return fake_code(FAKE_R_HCCL_NULL, H_PTR, "EI0003: %s: rootInfo %p, config %p, comm %p", call,
                         (const void *)info, (const void *)config, (void *)comm);
    }
    if (config != NULL && (config->magic != 0xf0f0f0f0 || config->size < 24)) {
        return fake_code(FAKE_R_HCCL_MAGIC, H_PARA,
                         "EI0003: %s: the configuration's magic is 0x%x, its size %zu", call, config->magic,
                         config->size);
    }
    if (fake_device() < 0) {
        return fake_code(FAKE_R_HCCL_NO_DEVICE, H_RUNTIME, "EI9999: %s: this thread has no device", call);
    }
    if (nranks == 0 || rank >= nranks || nranks > MAX_RANKS) {
        return fake_code(FAKE_R_HCCL_RANKS, H_PARA, "EI0003: %s: rank %u of %u (the double takes up to %d)",
                         call, rank, nranks, MAX_RANKS);
    }
    if (memcmp(info->internal, magic_text, sizeof magic_text) != 0) {
        return fake_code(FAKE_R_HCCL_ROOT_INFO, H_PARA,
                         "EI0003: %s: the root info is not what HcclGetRootInfo made", call);
    }
    int code = check_environment(call);
    if (code != 0) {
        return code;
    }
    code = creation_begins(call, info->internal + 64)
               ? create(call, info->internal + 64, nranks, rank, config, false, comm)
               : H_INTERNAL;
    creation_ends();
    return code;
}

HCCL int HcclCommInitRootInfo(uint32_t nRanks, const struct root_info *rootInfo, uint32_t rank, void **comm)
{
    return init("HcclCommInitRootInfo", nRanks, rootInfo, rank, NULL, false, comm);
}

HCCL int HcclCommInitRootInfoConfig(uint32_t nRanks, const struct root_info *rootInfo, uint32_t rank,
                                    const struct config *config, void **comm)
{
    return init("HcclCommInitRootInfoConfig", nRanks, rootInfo, rank, config, true, comm);
}

HCCL int HcclCreateSubCommConfig(void **parent, uint32_t rankNum, const uint32_t *rankIds, uint64_t subCommId,
                                 uint32_t subCommRankId, const struct config *config, void **subComm)
{
    static const char call[] = "HcclCreateSubCommConfig";
    if (parent == NULL || *parent == NULL || rankIds == NULL || config == NULL || subComm == NULL) {
        fake_count(call);
        return fake_code(FAKE_R_HCCL_NULL, H_PTR, "EI0003: %s: an argument is NULL", call);
    }
    struct comm *comm = NULL;
    int code = comm_enter(call, *parent, &comm);
    if (code != 0) {
        return code;
    }
    if (config->magic != 0xf0f0f0f0 || config->size < 24) {
        code = fake_code(FAKE_R_HCCL_MAGIC, H_PARA, "EI0003: %s: the configuration's magic is 0x%x", call,
                         config->magic);
    }
    bool good = rankNum > 0 && rankNum <= comm->nranks && subCommRankId < rankNum &&
                rankIds[subCommRankId] == comm->rank;
    for (uint32_t i = 0; good && i < rankNum; i++) {
        good = rankIds[i] < comm->nranks;
        for (uint32_t k = 0; good && k < i; k++) {
            good = rankIds[k] != rankIds[i];
        }
    }
    if (code == 0 && !good) {
        code = fake_code(FAKE_R_HCCL_SUB, H_PARA, "EI0003: %s: %u ranks of %u, this one (%u) as %u", call,
                         rankNum, comm->nranks, comm->rank, subCommRankId);
    }
    char name[NAME_BYTES];
    (void)snprintf(name, sizeof name, "%.90s_%llx", comm->name, (unsigned long long)subCommId);
    comm_leave(comm);
    if (code != 0) {
        return code;
    }
    code = creation_begins(call, name) ? create(call, name, rankNum, subCommRankId, config, true, subComm)
                                       : H_INTERNAL;
    creation_ends();
    return code;
}

/* ---- Use and end ------------------------------------------------------------------------------------- */

static struct comm *find(const void *handle)
{
    struct hccl *hccl = hccl_state();
    struct comm *found = NULL;
    fake_shared_lock();
    for (int i = 0; i < hccl->ncomms; i++) {
        if (hccl->comms[i] == handle && !hccl->comms[i]->dead) {
            found = hccl->comms[i];
        }
    }
    fake_shared_unlock();
    return found;
}

int fake_hccl_is_inside(const void *handle)
{
    struct comm *comm = find(handle);
    return comm != NULL && atomic_load(&comm->inside) != 0;
}

int comm_enter(const char *name, void *handle, struct comm **out)
{
    fake_count(name);
    if (handle == NULL) {
        return fake_code(FAKE_R_HCCL_NULL, H_PTR, "EI0003: %s: comm is NULL", name);
    }
    if (fake_device() < 0) {
        return fake_code(FAKE_R_HCCL_NO_DEVICE, H_RUNTIME, "EI9999: %s: this thread has no device", name);
    }
    struct comm *comm = find(handle);
    if (comm == NULL) {
        return fake_code(FAKE_R_HCCL_DEAD, H_PARA, "EI0003: %s: communicator %p is destroyed or none", name,
                         handle);
    }
    if (comm->device != fake_device()) {
        return fake_code(FAKE_R_HCCL_OTHER_DEVICE, H_PARA,
                         "EI0003: %s: the communicator is of device %d, the thread's device is %d", name,
                         comm->device, fake_device());
    }
    if (atomic_fetch_add(&comm->inside, 1) != 0) {
        fake_lint(FAKE_R_HCCL_THREADS,
                  "%s: another thread is inside a call of this communicator: their order is undefined", name);
    }
    (void)pthread_mutex_lock(&comm->lock);
    if (fake_fault("hccl_slow")) {
        struct timespec pause = {0, 500000000};
        (void)nanosleep(&pause, NULL);
    }
    *out = comm;
    return 0;
}

void comm_leave(struct comm *comm)
{
    (void)pthread_mutex_unlock(&comm->lock);
    (void)atomic_fetch_sub(&comm->inside, 1);
}

HCCL int HcclCommDestroy(void *handle)
{
    fake_count("HcclCommDestroy");
    if (handle == NULL) {
        return 0;
    }
    if (fake_device() < 0) {
        return fake_code(FAKE_R_HCCL_NO_DEVICE, H_RUNTIME,
                         "EI9999: HcclCommDestroy: this thread has no device");
    }
    struct comm *comm = find(handle);
    if (comm == NULL) {
        return fake_code(FAKE_R_HCCL_DEAD, H_PARA,
                         "EI0003: HcclCommDestroy: communicator %p is destroyed or none", handle);
    }
    if (atomic_load(&comm->inside) != 0) {
        return fake_code(FAKE_R_HCCL_BUSY_DESTROY, H_AGAIN,
                         "EI9999: HcclCommDestroy: another thread is inside a call of this communicator");
    }
    if (atomic_load(&comm->pending) != 0 || !fake_synced(comm->buffer)) {
        fake_trap(FAKE_R_HCCL_DESTROY_PENDING,
                  "HcclCommDestroy: the host has not synchronised with work of this communicator");
        return H_INTERNAL;
    }
    comm->dead = true;
    meet_close(comm->meeting);
    comm->meeting = NULL;
    for (uint32_t r = 0; r < comm->nranks; r++) {
        if (comm->files_pid[r] != 0) {
            (void)close(comm->files[r]);
        }
    }
    fake_own_block_free(comm->buffer);
    fake_live(FAKE_COMM, -1);
    return 0; /* the struct stays, so that its handle is known as dead */
}

static int ask(const char *name, void *handle, const void *out, struct comm **comm)
{
    if (out == NULL) {
        return fake_code(FAKE_R_HCCL_NULL, H_PTR, "EI0003: %s: the result is NULL", name);
    }
    return comm_enter(name, handle, comm);
}

HCCL int HcclGetRankSize(void *handle, uint32_t *size)
{
    struct comm *comm = NULL;
    int code = ask("HcclGetRankSize", handle, size, &comm);
    if (code == 0) {
        *size = comm->nranks;
        comm_leave(comm);
    }
    return code;
}

HCCL int HcclGetRankId(void *handle, uint32_t *rank)
{
    struct comm *comm = NULL;
    int code = ask("HcclGetRankId", handle, rank, &comm);
    if (code == 0) {
        *rank = comm->rank;
        comm_leave(comm);
    }
    return code;
}

HCCL int HcclGetCommName(void *handle, char *name)
{
    struct comm *comm = NULL;
    int code = ask("HcclGetCommName", handle, name, &comm);
    if (code == 0) {
        (void)memcpy(name, comm->given_name[0] != '\0' ? comm->given_name : comm->name, NAME_BYTES);
        comm_leave(comm);
    }
    return code;
}

HCCL int HcclGetCommAsyncError(void *handle, int *error)
{
    struct comm *comm = NULL;
    int code = ask("HcclGetCommAsyncError", handle, error, &comm);
    if (code == 0) {
        *error = 0; /* of remote RDMA only */
        comm_leave(comm);
    }
    return code;
}

HCCL const char *HcclGetErrorString(int code)
{
    static const char *const texts[] = {"no error",
                                        "parameter error",
                                        "empty pointer",
                                        "memory error",
                                        "internal error",
                                        "feature not supported",
                                        "not found",
                                        "resource unavailable",
                                        "system call error",
                                        "timeout",
                                        "open file failure",
                                        "tcp connect failure",
                                        "roce connect failure",
                                        "tcp transfer failure",
                                        "roce transfer failure",
                                        "runtime error",
                                        "driver error",
                                        "profiling error",
                                        "cce error",
                                        "network error",
                                        "try again",
                                        "remote error",
                                        "suspending"};
    return code >= 0 && code < (int)(sizeof texts / sizeof texts[0]) ? texts[code] : "unknown error";
}

HCCL uint32_t HcclGetCommConfigCapability(void)
{
    return fake_version() < 900 ? 5 : 12;
}

union config_value {
    int32_t value;
};

HCCL int HcclSetConfig(int config, union config_value value)
{
    fake_count("HcclSetConfig");
    if (config != 0 || value.value < 0 || value.value > 2) {
        return fake_code(FAKE_R_HCCL_CONFIG, H_PARA, "EI0003: HcclSetConfig: option %d, value %d", config,
                         value.value);
    }
    if (value.value == 2 && !fake_soc_is("Ascend910B")) {
        return fake_code(FAKE_R_HCCL_CONFIG, H_NOT_SUPPORT, "EI0003: HcclSetConfig: strict determinism on %s",
                         fake_soc());
    }
    hccl_state()->deterministic = value.value; /* without effect where HCCL_DETERMINISTIC is set */
    return 0;
}

HCCL int HcclGetConfig(int config, union config_value *value)
{
    fake_count("HcclGetConfig");
    if (value == NULL) {
        return fake_code(FAKE_R_HCCL_NULL, H_PTR, "EI0003: HcclGetConfig: the result is NULL");
    }
    value->value = hccl_state()->deterministic;
    return config == 0 ? 0
                       : fake_code(FAKE_R_HCCL_CONFIG, H_PARA, "EI0003: HcclGetConfig: option %d", config);
}
