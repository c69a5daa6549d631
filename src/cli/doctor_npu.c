/* SPDX-License-Identifier: Apache-2.0 */
/* What training on Ascend NPUs wants: driver, device files, CANN and its kernels, HCCL's variables and ports. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cann/cann.h"
#include "cli/doctor.h"
#include "cli/probe.h"

#define SET_ENV "source CANN's set_env.sh (/usr/local/Ascend/cann/set_env.sh, /usr/local/Ascend/ascend-toolkit/set_env.sh)"

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* The value behind "Version=" in a version.info; "" where it has none. */
static void version_in(const char *text, char *out, size_t size)
{
    const char *at = strstr(text, "Version=");
    at = at == NULL ? strstr(text, "version=") : at;
    (void)snprintf(out, size, "%.*s", at != NULL ? (int)strcspn(at + 8, "\r\n]") : 0, at != NULL ? at + 8 : "");
}

static void check_driver(cti_doctor *d, cti_verdict absent)
{
    char *text = cti_doctor_read(d, "/usr/local/Ascend/driver/version.info");
    char version[128] = "";
    if (text == NULL) {
        cti_doctor_add(d, absent, "driver", "install the driver and firmware of the device on the host; in a container map /usr/local/Ascend/driver into it",
                       "/usr/local/Ascend/driver/version.info is not there");
        return;
    }
    version_in(text, version, sizeof version);
    cti_doctor_add(d, CTI_VERDICT_OK, "driver", NULL, "version %s", version[0] != '\0' ? version : "unknown");
    ct_alloc_free(d->alloc, text);
}

/* The numbers of /dev/davinci<N>, and the three files that every process opens. */
static int check_device_files(cti_doctor *d, cti_verdict absent)
{
    static const char *const SHARED[] = {"/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc"};
    char path[4096], closed[256] = "";
    int n = 0;
    for (int i = 0; i < 64; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "/dev/davinci%d", i);
        const bool is_there = access(cti_doctor_path(d, name, path, sizeof path), F_OK) == 0;
        n += is_there;
        if (is_there && access(path, R_OK | W_OK) != 0 && closed[0] == '\0') {
            (void)snprintf(closed, sizeof closed, "%s: %s", name, strerror(errno)); /* NOLINT(concurrency-mt-unsafe) */
        }
    }
    for (size_t i = 0; i < 3; i++) {
        if (access(cti_doctor_path(d, SHARED[i], path, sizeof path), R_OK | W_OK) != 0 && closed[0] == '\0') {
            (void)snprintf(closed, sizeof closed, "%s: %s", SHARED[i], strerror(errno)); /* NOLINT(concurrency-mt-unsafe) */
        }
    }
    cti_doctor_add(d, n == 0 ? absent : closed[0] != '\0' ? CTI_VERDICT_FAIL : CTI_VERDICT_OK, "device files",
                   n == 0 ? "see that the driver is loaded (npu-smi info); in a container map /dev/davinci0 …, /dev/davinci_manager, /dev/devmm_svm, /dev/hisi_hdc"
                          : "be in the group of the driver (HwHiAiUser), or map the files into the container with read and write",
                   "%d of /dev/davinci*%s%s", n, closed[0] != '\0' ? "; " : "", closed);
    return n;
}

static bool is_stub_folder(const char *path, size_t size)
{
    while (size > 0 && path[size - 1] == '/') {
        size--;
    }
    size_t at = size;
    while (at > 0 && path[at - 1] != '/') {
        at--;
    }
    const size_t n = size - at;
    return (n == 4 && memcmp(path + at, "stub", 4) == 0) || (n == 6 && memcmp(path + at, "devlib", 6) == 0);
}

/* Libraries for linking do nothing when they are called. */
static void check_stubs(cti_doctor *d)
{
    const char *list = variable("LD_LIBRARY_PATH");
    for (const char *at = list; at != NULL && *at != '\0';) {
        const size_t n = strcspn(at, ":");
        if (is_stub_folder(at, n)) {
            cti_doctor_add(d, CTI_VERDICT_FAIL, "stub libraries", "take it out of LD_LIBRARY_PATH: what lies there is for linking, and its functions do nothing",
                           "LD_LIBRARY_PATH has '%.*s'", (int)n, at);
            return;
        }
        at += n + (at[n] == ':');
    }
    cti_doctor_add(d, CTI_VERDICT_OK, "stub libraries", NULL, "none in LD_LIBRARY_PATH");
}

static const char *key(const json_t *answer, const char *name)
{
    const char *text = json_string_value(json_object_get(answer, name));
    return text != NULL ? text : "";
}

static void check_version(cti_doctor *d, const char *version)
{
    cti_doctor_add(d, cti_cann_is_known_version(version) ? CTI_VERDICT_OK : CTI_VERDICT_WARN, "CANN version",
                   "this program is written for CANN 8.0 to 9.x: with another, look first whether ctitan check-overrides and a run of ten steps agree with the CPU",
                   "%s", version[0] != '\0' ? version : "the libraries do not tell it");
}

/* Operators find their kernels below ASCEND_OPP_PATH. */
static void check_kernels(cti_doctor *d, const char *cann_version)
{
    const char *opp = variable("ASCEND_OPP_PATH");
    char path[4096], version[128] = "";
    if (opp == NULL) {
        cti_doctor_add(d, CTI_VERDICT_FAIL, "kernel package", SET_ENV, "ASCEND_OPP_PATH is not set: operators fail with 561107");
        return;
    }
    (void)snprintf(path, sizeof path, "%s/built-in/op_impl/ai_core/tbe", opp);
    if (!cti_path_is_dir(path)) {
        cti_doctor_add(d, CTI_VERDICT_FAIL, "kernel package", "install CANN's kernel package of this chip (Ascend-cann-kernels-…), and " SET_ENV,
                       "'%s' has no built-in/op_impl/ai_core/tbe: operators fail with 561112", opp);
        return;
    }
    (void)snprintf(path, sizeof path, "%s/version.info", opp);
    char *text = NULL;
    size_t size = 0;
    if (cti_file_read(d->alloc, path, 1 << 16, &text, &size, NULL) == CT_OK) {
        version_in(text, version, sizeof version);
    }
    ct_alloc_free(d->alloc, text);
    const bool differs = version[0] != '\0' && cann_version[0] != '\0' && strstr(cann_version, version) == NULL;
    cti_doctor_add(d, differs ? CTI_VERDICT_WARN : CTI_VERDICT_OK, "kernel package", "install toolkit and kernel package of one version", "'%s'%s%s%s%s", opp,
                   version[0] != '\0' ? ", version " : "", version, differs ? ", and the toolkit is " : "", differs ? cann_version : "");
}

/* A toolkit without a part of them loads, and training fails at the first op that wants one. */
static void check_operators(cti_doctor *d, const json_t *answer)
{
    const int n = (int)json_integer_value(json_object_get(answer, "n_operators")), n_missing = (int)json_integer_value(json_object_get(answer, "n_missing"));
    const bool is_empty = n_missing == n;
    cti_doctor_add(d, is_empty ? CTI_VERDICT_FAIL : n_missing > 0 ? CTI_VERDICT_WARN : CTI_VERDICT_OK, "operators",
                   is_empty ? "install the whole toolkit: libopapi.so or the libraries that it was split into (libopapi_*.so, libaclnn_*.so)"
                            : "a run that needs one of them ends before its first step and names it: install a newer toolkit, or its whole package",
                   "%d of %d%s%s", n - n_missing, n, n_missing > 0 && !is_empty ? "; not there: " : "", is_empty ? "" : key(answer, "missing"));
}

static void check_visible(cti_doctor *d, const json_t *answer, bool is_loaded)
{
    const char *list = getenv("ASCEND_RT_VISIBLE_DEVICES");
    const int n_devices = (int)json_integer_value(json_object_get(answer, "n_devices")), wanted = list != NULL ? cti_npu_count_visible(list) : 0;
    if (list != NULL && wanted < 0) {
        cti_doctor_add(d, CTI_VERDICT_FAIL, "visible devices", "write numbers in ascending order with commas and nothing else: 0,1,2", "ASCEND_RT_VISIBLE_DEVICES is '%s'", list);
    } else if (is_loaded && list != NULL && wanted != n_devices) {
        cti_doctor_add(d, CTI_VERDICT_FAIL, "visible devices", "name devices that npu-smi info shows and that are mapped into the container",
                       "ASCEND_RT_VISIBLE_DEVICES is '%s', CANN sees %d", list, n_devices);
    } else if (is_loaded) {
        const char *error = key(answer, "error");
        cti_doctor_add(d, n_devices > 0 ? CTI_VERDICT_OK : d->wants_npu ? CTI_VERDICT_FAIL : CTI_VERDICT_WARN, "devices",
                       "see that npu-smi info shows them, and that their files are mapped into the container", "CANN sees %d%s%s%s%s", n_devices,
                       key(answer, "soc")[0] != '\0' ? ", " : "", key(answer, "soc"), error[0] != '\0' ? ": " : "", error);
    }
}

static void check_cann(cti_doctor *d, cti_verdict absent)
{
    ct_err err = {0};
    json_t *answer = NULL;
    const ct_status st = cti_probe(d->alloc, "CANN", cti_probe_cann, d->timeout_ms, &answer, &err);
    const bool is_loaded = st == CT_OK && json_is_true(json_object_get(answer, "is_loaded"));
    if (!is_loaded) {
        cti_doctor_add(d, st != CT_OK ? CTI_VERDICT_FAIL : absent, "CANN", st != CT_OK ? "see whether npu-smi info answers, and whether another process holds the device" : SET_ENV,
                       "%s", st != CT_OK ? err.message : key(answer, "error"));
    } else {
        const char *root = key(answer, "root"), *hccl = key(answer, "hccl_error");
        cti_doctor_add(d, CTI_VERDICT_OK, "CANN", NULL, "loads from %s", root[0] != '\0' ? root : "where the loader finds it");
        check_version(d, key(answer, "version"));
        check_operators(d, answer);
        check_kernels(d, key(answer, "version"));
        cti_doctor_add(d, hccl[0] == '\0' ? CTI_VERDICT_OK : CTI_VERDICT_FAIL, "HCCL", "install the whole toolkit: several devices train together over libhccl.so", "%s",
                       hccl[0] == '\0' ? "loads" : hccl);
    }
    check_visible(d, answer, is_loaded);
    json_decref(answer);
}

bool cti_doctor_parse_ports(const char *text, int *out_n)
{
    *out_n = 0;
    if (cti_str_eq(text, "auto")) {
        return true;
    }
    for (const char *at = text;; at++) {
        char *end;
        if (*at < '0' || *at > '9') {
            return false;
        }
        const long first = strtol(at, &end, 10);
        long last = first;
        if (*end == '-') {
            at = end + 1;
            if (*at < '0' || *at > '9') {
                return false;
            }
            last = strtol(at, &end, 10);
        }
        if (first < 1 || last < first || last > 65535 || (*end != ',' && *end != '\0')) {
            return false;
        }
        *out_n += (int)(last - first + 1);
        if (*end == '\0') {
            return true;
        }
        at = end;
    }
}

/* A value that HCCL refuses makes every communicator fail with EI0001. */
static void check_variables(cti_doctor *d)
{
    static const struct {
        const char *name;
        int64_t low, high;
    } NUMBERS[] = {{"HCCL_CONNECT_TIMEOUT", 120, 7200}, {"HCCL_EXEC_TIMEOUT", 0, INT32_MAX}, {"HCCL_IF_BASE_PORT", 1024, 65520}, {"HCCL_BUFFSIZE", 1, INT32_MAX}};
    static const char *const PORTS[] = {"HCCL_NPU_SOCKET_PORT_RANGE", "HCCL_HOST_SOCKET_PORT_RANGE"};
    int n_wrong = 0;
    for (size_t i = 0; i < sizeof NUMBERS / sizeof NUMBERS[0]; i++) {
        const char *value = variable(NUMBERS[i].name);
        int64_t number;
        if (value != NULL && (!cti_parse_i64(value, &number) || number < NUMBERS[i].low || number > NUMBERS[i].high)) {
            cti_doctor_add(d, CTI_VERDICT_FAIL, "HCCL variables", "unset it, or give it a value in this range: HCCL refuses others (EI0001)", "%s is '%s', wanted %lld to %lld",
                           NUMBERS[i].name, value, (long long)NUMBERS[i].low, (long long)NUMBERS[i].high);
            n_wrong++;
        }
    }
    for (size_t i = 0; i < 2; i++) {
        const char *value = variable(PORTS[i]);
        int n;
        if (value != NULL && !cti_doctor_parse_ports(value, &n)) {
            cti_doctor_add(d, CTI_VERDICT_FAIL, "HCCL variables", "write auto, or ports and ranges with commas: 60000-60050,61000", "%s is '%s'", PORTS[i], value);
            n_wrong++;
        }
    }
    const char *order = variable("HCCL_DETERMINISTIC"), *limit = variable("HCCL_EXEC_TIMEOUT");
    if (order != NULL && strcmp(order, "false") != 0 && strcmp(order, "true") != 0 && strcmp(order, "strict") != 0) {
        cti_doctor_add(d, CTI_VERDICT_FAIL, "HCCL variables", "unset it, or write true: HCCL refuses others (EI0001)", "HCCL_DETERMINISTIC is '%s', wanted false, true or strict",
                       order);
        n_wrong++;
    }
    if (limit != NULL && strcmp(limit, "0") == 0) {
        cti_doctor_add(d, CTI_VERDICT_WARN, "HCCL variables", "unset it, or write a large number of seconds", "HCCL_EXEC_TIMEOUT is 0, no limit: older releases end after 30 minutes all the same");
        n_wrong++;
    }
    if (n_wrong == 0) {
        cti_doctor_add(d, CTI_VERDICT_OK, "HCCL variables", NULL, "HCCL_NPU_SOCKET_PORT_RANGE %s, HCCL_HOST_SOCKET_PORT_RANGE %s",
                       variable(PORTS[0]) != NULL ? variable(PORTS[0]) : "not set (auto where several ranks run)",
                       variable(PORTS[1]) != NULL ? variable(PORTS[1]) : "not set (likewise)");
    }
}

static bool is_port_taken(int port)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_ANY)};
    const bool is_taken = fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 && errno == EADDRINUSE;
    if (fd >= 0) {
        (void)close(fd);
    }
    return is_taken;
}

/* HCCL's own choice on the host; another job may have them, or any program as its own end of a connection. */
static void check_ports(cti_doctor *d)
{
    enum { FIRST = 60000, LAST = 60031 };
    int n = 0, first = 0;
    for (int port = FIRST; port <= LAST; port++) {
        const bool is_taken = is_port_taken(port);
        first = is_taken && n == 0 ? port : first;
        n += is_taken;
    }
    if (n == 0) {
        cti_doctor_add(d, CTI_VERDICT_OK, "HCCL ports", NULL, "%d to %d of this host are free", FIRST, LAST);
    } else {
        const char *range = variable("HCCL_HOST_SOCKET_PORT_RANGE");
        cti_doctor_add(d, range != NULL ? CTI_VERDICT_OK : CTI_VERDICT_WARN, "HCCL ports",
                       "nothing for ctitan, which sets HCCL_HOST_SOCKET_PORT_RANGE=auto; other programs want HCCL_IF_BASE_PORT or that variable (EI0019, EJ0003)",
                       "%d of %d to %d are taken on this host, first %d%s%s", n, FIRST, LAST, first, range != NULL ? "; HCCL_HOST_SOCKET_PORT_RANGE is " : "",
                       range != NULL ? range : "");
    }
}

void cti_doctor_check_npu(cti_doctor *d)
{
    if (!d->has_ascend && !d->wants_npu) {
        cti_doctor_add(d, CTI_VERDICT_OK, "NPUs", NULL, "nothing of Ascend is here (`ctitan doctor npu` says what they need)");
        return;
    }
    const cti_verdict absent = d->wants_npu ? CTI_VERDICT_FAIL : CTI_VERDICT_WARN;
    check_driver(d, absent);
    (void)check_device_files(d, absent);
    check_stubs(d);
    check_cann(d, absent);
    check_variables(d);
    check_ports(d);
}
