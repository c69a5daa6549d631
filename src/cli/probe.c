/* SPDX-License-Identifier: Apache-2.0 */
/* Vendors' libraries, asked in a child process. */
#include "cli/probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "cann/cann.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "comm/module.h"

/* ---- the child ------------------------------------------------------------------------------------------------------ */

/* Libraries print what they like: it goes to nobody. */
static void silence(void)
{
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        (void)dup2(null, STDOUT_FILENO);
        (void)dup2(null, STDERR_FILENO);
    }
}

static void answer(const ct_alloc *alloc, cti_probe_fn fn, int to)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    silence();
    json_t *json = fn(alloc);
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;
    for (size_t at = 0, size = text != NULL ? strlen(text) : 0; at < size;) {
        const ssize_t n = write(to, text + at, size - at);
        if (n <= 0 && errno != EINTR) {
            break;
        }
        at += n > 0 ? (size_t)n : 0;
    }
    (void)close(to);
    (void)kill(getpid(), SIGKILL); /* what libraries do at exit may take long, and is nobody's business here */
}

/* ---- the parent ----------------------------------------------------------------------------------------------------- */

/* All that the child says; false: it took too long. */
static bool read_answer(int from, int64_t timeout_ms, cti_str *out)
{
    const int64_t end = cti_now_ns() + timeout_ms * 1000000;
    for (;;) {
        const int64_t left_ms = (end - cti_now_ns()) / 1000000;
        struct pollfd p = {.fd = from, .events = POLLIN};
        if (left_ms <= 0) {
            return false;
        }
        if (poll(&p, 1, (int)cti_min_i64(left_ms, 1000)) <= 0) {
            continue;
        }
        char piece[4096];
        const ssize_t n = read(from, piece, sizeof piece);
        if (n == 0) {
            return true;
        }
        if (n > 0) {
            cti_str_add_n(out, piece, (size_t)n);
        } else if (errno != EINTR && errno != EAGAIN) {
            return true;
        }
    }
}

ct_status cti_probe(const ct_alloc *alloc, const char *what, cti_probe_fn fn, int64_t timeout_ms, json_t **out_answer, ct_err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return CT_FAIL(err, CT_ERR_IO, "%s: no pipe: %s", what, strerror(errno)); /* NOLINT(concurrency-mt-unsafe) */
    }
    (void)fflush(NULL); /* the child must not write it again */
    const pid_t child = fork();
    if (child < 0) {
        (void)close(ends[0]);
        (void)close(ends[1]);
        return CT_FAIL(err, CT_ERR_IO, "%s: no process: %s", what, strerror(errno)); /* NOLINT(concurrency-mt-unsafe) */
    }
    if (child == 0) {
        (void)close(ends[0]);
        answer(alloc, fn, ends[1]);
        _exit(1);
    }
    (void)close(ends[1]);
    cti_str text = {.alloc = alloc};
    int state = 0;
    const bool is_in_time = read_answer(ends[0], timeout_ms, &text);
    (void)close(ends[0]);
    (void)kill(child, SIGKILL);
    while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
    }
    ct_status st = CT_OK;
    if (!is_in_time) {
        st = CT_FAIL(err, CT_ERR_TIMEOUT, "%s did not answer within %lld s", what, (long long)(timeout_ms / 1000));
    } else if (text.len == 0) {
        st = CT_FAIL(err, CT_ERR_BACKEND, "%s ended the process that asked it (signal %d)", what, WIFSIGNALED(state) ? WTERMSIG(state) : 0);
    } else {
        st = cti_json_parse(text.data, text.len, what, out_answer, err);
    }
    cti_str_deinit(&text);
    return st;
}

bool cti_probe_timeout_option(int argc, char **argv, int *i, int64_t *out_ms, ct_status *out_st, ct_err *err)
{
    const char *value = cti_option_value("--timeout-seconds", argc, argv, i);
    int64_t seconds;
    if (value == NULL) {
        return false;
    }
    if (!cti_parse_i64(value, &seconds) || seconds < 1 || seconds > 3600) {
        *out_st = CT_FAIL(err, CT_ERR_USAGE, "--timeout-seconds: wanted a whole number of 1 to 3600, found '%s'", value);
    } else {
        *out_ms = seconds * 1000;
    }
    return true;
}

/* ---- what is asked --------------------------------------------------------------------------------------------------- */

static json_t *text_or_null(const char *text)
{
    return text[0] != '\0' ? json_string(text) : json_null();
}

static json_t *number_or_null(int64_t value, bool is_known)
{
    return is_known ? json_integer(value) : json_null();
}

static json_t *devices_and_why(json_t *devices, const char *why)
{
    return json_pack("{s:o, s:o}", "devices", devices, "why_not", text_or_null(why));
}

static void add_npu(json_t *devices, const ct_alloc *alloc, const ct_backend *npu, int32_t index)
{
    ct_err err = {0};
    void *device = NULL;
    ct_device_facts f = {0};
    ct_status st = npu->device_open(alloc, index, &device, &err);
    if (st == CT_OK) {
        st = npu->device_facts(device, &f, &err);
        npu->device_close(&device);
    }
    const bool has_free = f.memory_free_bytes > 0 && f.memory_bytes > 0;
    json_t *row = json_pack("{s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:n}", "kind", "npu", "index", (int)index, "name", text_or_null(f.name), "health",
                            text_or_null(st == CT_OK ? f.health : err.message), "memory_used_bytes",
                            number_or_null(f.memory_bytes - f.memory_free_bytes, has_free), "memory_total_bytes",
                            number_or_null(f.memory_bytes, f.memory_bytes > 0), "bus_id", text_or_null(f.bus_id), "processes");
    (void)json_array_append_new(devices, row); /* fails without memory only: the row is missing then */
}

json_t *cti_probe_npus(const ct_alloc *alloc)
{
    ct_err err = {0};
    int32_t n = 0;
    json_t *devices = json_array();
    const ct_backend *npu = NULL;
    for (int i = 0; cti_backends()[i] != NULL; i++) {
        npu = cti_str_eq(cti_backends()[i]->name, "npu") ? cti_backends()[i] : npu;
    }
    if (npu == NULL) {
        return devices_and_why(devices, "this build has no backend for it");
    }
    if (npu->device_count(&n, &err) == CT_OK && n == 0) { /* who opens one is told what is missing */
        void *device = NULL;
        if (npu->device_open(alloc, 0, &device, &err) == CT_OK) {
            npu->device_close(&device);
            n = 1;
        }
    }
    for (int32_t i = 0; i < n; i++) {
        add_npu(devices, alloc, npu, i);
    }
    return devices_and_why(devices, err.status != CT_OK ? err.message : "");
}

json_t *cti_probe_cann(const ct_alloc *alloc)
{
    (void)alloc;
    ct_err err = {0}, hccl_err = {0};
    const cti_cann *cann = NULL;
    const cti_hccl *hccl = NULL;
    char version[128] = "", missing[600] = "";
    uint32_t n = 0;
    int n_operators = 0, n_missing = 0;
    const char *soc = NULL;
    if (cti_cann_load(&cann, &err) == CT_OK) {
        (void)cti_cann_version(cann, version, sizeof version);
        n_missing = cti_cann_count_missing(cann, &n_operators, missing, sizeof missing);
        const aclError code = cann->aclrtGetDeviceCount(&n);
        if (code != 0) {
            n = 0;
            (void)cti_acl_fail(cann, code, &err, "aclrtGetDeviceCount");
        }
        soc = n > 0 && cann->aclrtGetSocName != NULL ? cann->aclrtGetSocName() : NULL;
        if (cti_hccl_load(&hccl, &hccl_err) == CT_OK) {
            hccl_err = (ct_err){0};
        }
    }
    return json_pack("{s:b, s:s, s:s, s:s, s:o, s:o, s:i, s:o, s:i, s:i, s:s}", "is_loaded", cann != NULL, "root", cti_cann_root(), "version", version, "libraries",
                     cti_cann_libraries(), "error", err.status != CT_OK ? json_string(err.message) : json_null(), "hccl_error",
                     hccl_err.status != CT_OK ? json_string(hccl_err.message) : json_null(), "n_devices", (int)n, "soc",
                     soc != NULL ? json_string(soc) : json_null(), "n_operators", n_operators, "n_missing", n_missing, "missing", missing);
}

json_t *cti_probe_engines(const ct_alloc *alloc)
{
    static const char *const NAMES[] = {"gloo", "mpi"};
    static const char *const HINTS[] = {"install libgloo-dev and build again", "install libopenmpi-dev or libmpich-dev and build again"};
    (void)alloc;
    json_t *all = json_object();
    for (size_t i = 0; i < 2; i++) {
        ct_err err = {0};
        const ct_comm_engine *engine;
        const bool is_there = cti_comm_module_load(NAMES[i], HINTS[i], &engine, &err) == CT_OK;
        (void)json_object_set_new(all, NAMES[i], is_there ? json_null() : json_string(err.message));
    }
    return all;
}

/* ---- NVIDIA: libnvidia-ml.so.1 of its driver, by the names and layouts of nvml.h ------------------------------------- */

typedef struct nvml_memory {
    unsigned long long total, free, used;
} nvml_memory;
typedef struct nvml_pci {
    char legacy[16];
    unsigned int domain, bus, device, ids, subsystem;
    char id[32];
} nvml_pci;
typedef struct nvml_process { /* of nvmlDeviceGetComputeRunningProcesses_v3 */
    unsigned int pid;
    unsigned long long bytes;
    unsigned int gpu_instance, compute_instance;
} nvml_process;

typedef struct nvml {
    int (*init)(void);
    int (*count)(unsigned int *n);
    int (*handle)(unsigned int index, void **device);
    int (*name)(void *device, char *out, unsigned int size);
    int (*memory)(void *device, nvml_memory *out);
    int (*pci)(void *device, nvml_pci *out);
    int (*processes)(void *device, unsigned int *n, nvml_process *out); /* may be missing */
    const char *(*error)(int code);
} nvml;

static bool load_nvml(nvml *n, char *why, size_t size)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (library == NULL) {
        (void)snprintf(why, size, "libnvidia-ml.so.1, a part of the driver, is not there");
        return false;
    }
    static const char *const NAMES[] = {"nvmlInit_v2",         "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2",
                                        "nvmlDeviceGetName",   "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetPciInfo_v3",
                                        "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlErrorString"};
    void *found[sizeof NAMES / sizeof NAMES[0]];
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        found[i] = dlsym(library, NAMES[i]);
        if (found[i] == NULL && i != 6) {
            (void)snprintf(why, size, "libnvidia-ml.so.1 has no %s()", NAMES[i]);
            return false;
        }
    }
    _Static_assert(sizeof *n == sizeof found, "one name a member");
    memcpy(n, found, sizeof found); /* ISO C has no cast from object to function */
    return true;
}

static json_t *nvidia_processes(const nvml *n, void *device)
{
    enum { MOST = 64 };
    nvml_process list[MOST];
    unsigned int count = MOST;
    if (n->processes == NULL || n->processes(device, &count, list) != 0) {
        return json_null();
    }
    json_t *all = json_array();
    for (unsigned int i = 0; i < count && i < MOST; i++) {
        const bool is_known = list[i].bytes != ~0ull; /* NVML's "not available" */
        (void)json_array_append_new(all, json_pack("{s:i, s:o}", "pid", (int)list[i].pid, "memory_bytes", number_or_null((int64_t)list[i].bytes, is_known)));
    }
    return all;
}

json_t *cti_probe_nvidia(const ct_alloc *alloc)
{
    (void)alloc;
    nvml n;
    char why[256] = "";
    unsigned int count = 0;
    json_t *devices = json_array();
    if (!load_nvml(&n, why, sizeof why)) {
        return devices_and_why(devices, why);
    }
    int code = n.init();
    code = code == 0 ? n.count(&count) : code;
    if (code != 0) {
        (void)snprintf(why, sizeof why, "the driver says: %s", n.error(code));
        count = 0;
    } else if (count == 0) {
        (void)snprintf(why, sizeof why, "the driver sees no device");
    }
    for (unsigned int i = 0; i < count; i++) {
        void *device = NULL;
        char name[96] = "";
        nvml_memory memory = {0};
        nvml_pci pci = {0};
        code = n.handle(i, &device);
        const bool has_memory = code == 0 && n.memory(device, &memory) == 0;
        if (code == 0 && n.name(device, name, sizeof name) != 0) {
            name[0] = '\0';
        }
        if (code == 0 && n.pci(device, &pci) != 0) {
            pci.id[0] = '\0';
        }
        pci.id[sizeof pci.id - 1] = '\0';
        (void)json_array_append_new(devices,
                                    json_pack("{s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "kind", "nvidia", "index", (int)i, "name", text_or_null(name), "health",
                                              code == 0 ? json_string("OK") : json_string(n.error(code)), "memory_used_bytes",
                                              number_or_null((int64_t)memory.used, has_memory), "memory_total_bytes",
                                              number_or_null((int64_t)memory.total, has_memory), "bus_id", text_or_null(pci.id), "processes",
                                              code == 0 ? nvidia_processes(&n, device) : json_null()));
    }
    return devices_and_why(devices, why);
}
