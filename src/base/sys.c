/* SPDX-License-Identifier: Apache-2.0 */
/* The host, from /proc and the control groups (Linux). */
#include "base/sys.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/str.h"

enum { SYS_PATH_BYTES = 4096, SYS_TEXT_BYTES = 4096 };

/* The first bytes of a small file as text; false where there is none. */
static bool read_text(const char *path, char *buf, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    size_t len = 0;
    while (len < size - 1) {
        const ssize_t n = read(fd, buf + len, size - 1 - len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            break;
        }
        len += (size_t)n;
    }
    buf[len] = '\0';
    (void)close(fd); /* nothing was written */
    return len > 0;
}

/* A decimal number at the start of text; false for "max" and the like. *out_rest is what follows. */
static bool leading_number(const char *text, int64_t *out, const char **out_rest)
{
    int64_t value = 0;
    const char *p = text;
    while (*p == ' ' || *p == '\t') {
        p++;
    }
    const char *first = p;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (__builtin_mul_overflow(value, (int64_t)10, &value) ||
            __builtin_add_overflow(value, (int64_t)(*p - '0'), &value)) {
            value = INT64_MAX / 16;
        }
    }
    *out_rest = p;
    *out = value;
    return p > first;
}

/* This process's group as /proc/self/cgroup has it: version 2 ("0::/path") or version 1's line of one
 * controller. */
static bool group_path(const char *root, const char *controller, char *out, size_t size)
{
    char text[SYS_TEXT_BYTES], file[SYS_PATH_BYTES];
    (void)snprintf(file, sizeof file, "%s/proc/self/cgroup", root);
    if (!read_text(file, text, sizeof text)) {
        return false;
    }
    for (char *line = text; line != NULL && *line != '\0';) {
        char *end = strchr(line, '\n');
        if (end != NULL) {
            *end = '\0';
        }
        char *names = strchr(line, ':');
        char *path = names == NULL ? NULL : strchr(names + 1, ':');
        if (path != NULL) {
            *path++ = '\0';
            names++;
            bool found = controller == NULL && strncmp(line, "0:", 2) == 0 && *names == '\0';
            while (controller != NULL && names != NULL && !found) {
                char *comma = strchr(names, ',');
                if (comma != NULL) {
                    *comma++ = '\0';
                }
                found = strcmp(names, controller) == 0;
                names = comma;
            }
            if (found && strlen(path) < size) {
                memcpy(out, path, strlen(path) + 1);
                return true;
            }
        }
        line = end == NULL ? NULL : end + 1;
    }
    return false;
}

/* Calls visit(folder, value) for the process's group and each one above it up to the mount, since each may
 * set a bound. Inside a container the path may name folders of the host that are not seen; the mount itself
 * then counts. */
static void visit_groups(const char *root, const char *controller, void (*visit)(const char *folder, int64_t *value),
                         int64_t *value)
{
    char path[SYS_PATH_BYTES / 2], folder[SYS_PATH_BYTES];
    if (!group_path(root, controller, path, sizeof path)) {
        return;
    }
    for (;;) {
        size_t n = strlen(path);
        while (n > 0 && path[n - 1] == '/') {
            path[--n] = '\0';
        }
        (void)snprintf(folder, sizeof folder, "%s/sys/fs/cgroup%s%s%s", root, controller == NULL ? "" : "/",
                       controller == NULL ? "" : controller, path);
        visit(folder, value);
        if (n == 0) {
            return;
        }
        *strrchr(path, '/') = '\0';
    }
}

static bool read_group_file(const char *folder, const char *name, char *buf, size_t size)
{
    char path[SYS_PATH_BYTES + 64];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return read_text(path, buf, size);
}

static void lower_to(int64_t bound, int64_t *value)
{
    if (bound > 0 && bound < *value) {
        *value = bound;
    }
}

static int64_t cores_of_quota(int64_t quota_us, int64_t period_us)
{
    return quota_us > 0 && period_us > 0 ? (quota_us - 1) / period_us + 1 : 0;
}

static void cores_v2(const char *folder, int64_t *cores)
{
    char text[128];
    int64_t quota, period;
    const char *rest;
    if (read_group_file(folder, "cpu.max", text, sizeof text) && leading_number(text, &quota, &rest) &&
        leading_number(rest, &period, &rest)) {
        lower_to(cores_of_quota(quota, period), cores);
    }
}

static void cores_v1(const char *folder, int64_t *cores)
{
    char quota_text[64], period_text[64];
    int64_t quota, period;
    const char *rest;
    if (read_group_file(folder, "cpu.cfs_quota_us", quota_text, sizeof quota_text) && /* -1: none */
        read_group_file(folder, "cpu.cfs_period_us", period_text, sizeof period_text) &&
        leading_number(quota_text, &quota, &rest) && leading_number(period_text, &period, &rest)) {
        lower_to(cores_of_quota(quota, period), cores);
    }
}

static void memory_v2(const char *folder, int64_t *bytes)
{
    char text[64];
    int64_t limit;
    const char *rest;
    if (read_group_file(folder, "memory.max", text, sizeof text) && leading_number(text, &limit, &rest)) {
        lower_to(limit, bytes);
    }
}

static void memory_v1(const char *folder, int64_t *bytes)
{
    char text[64];
    int64_t limit;
    const char *rest;
    if (read_group_file(folder, "memory.limit_in_bytes", text, sizeof text) &&
        leading_number(text, &limit, &rest)) {
        lower_to(limit, bytes);
    }
}

static int64_t affinity_cores(void)
{
    for (int n = CPU_SETSIZE; n <= 1 << 20; n *= 2) {
        cpu_set_t *set = CPU_ALLOC(n);
        if (set == NULL) {
            break;
        }
        const size_t size = CPU_ALLOC_SIZE(n);
        const int rc = sched_getaffinity(0, size, set);
        const int code = errno;
        const int count = rc == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (rc == 0) {
            return count;
        }
        if (code != EINVAL) { /* EINVAL: the host has more cores than the set */
            break;
        }
    }
    return sysconf(_SC_NPROCESSORS_ONLN);
}

int cti_usable_cores(void)
{
    return cti_quota_cores("", affinity_cores());
}

int cti_quota_cores(const char *root, int64_t cores)
{
    visit_groups(root, NULL, cores_v2, &cores);
    visit_groups(root, "cpu", cores_v1, &cores);
    return cores < 1 ? 1 : cores > INT32_MAX ? INT32_MAX : (int)cores;
}

int64_t cti_memory_bytes(void)
{
    const int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    int64_t bytes;
    if (pages <= 0 || page <= 0 || __builtin_mul_overflow(pages, page, &bytes)) {
        bytes = INT64_MAX;
    }
    visit_groups("", NULL, memory_v2, &bytes);
    visit_groups("", "memory", memory_v1, &bytes);
    return bytes;
}

/* A field such as "VmHWM:    1234 kB" of /proc/self/status, in bytes; 0 where it is not there. */
static int64_t status_bytes(const char *field)
{
    char text[SYS_TEXT_BYTES];
    if (!read_text("/proc/self/status", text, sizeof text)) {
        return 0;
    }
    const char *at = strstr(text, field);
    int64_t kib;
    const char *rest;
    return at != NULL && leading_number(at + strlen(field), &kib, &rest) ? kib * 1024 : 0;
}

int64_t cti_rss_bytes(void)
{
    return status_bytes("\nVmRSS:");
}

int64_t cti_peak_rss_bytes(void)
{
    const int64_t bytes = status_bytes("\nVmHWM:");
    if (bytes > 0) {
        return bytes;
    }
    struct rusage usage; /* also counts what ran before exec, hence the second choice */
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_maxrss * 1024 : 0;
}

/* The value of the first "key : value" line, up to the line's end. */
static bool info_value(const char *text, const char *key, char *buf, size_t size)
{
    const char *at = strstr(text, key);
    const char *colon = at == NULL ? NULL : strchr(at, ':');
    if (colon == NULL) {
        return false;
    }
    colon++;
    colon += strspn(colon, " \t");
    const size_t n = strcspn(colon, "\n");
    if (n == 0) {
        return false;
    }
    (void)snprintf(buf, size, "%.*s", (int)n, colon);
    return true;
}

void cti_cpu_name(char *buf, size_t size)
{
    static const struct {
        const char *code, *name;
    } implementers[] = {{"0x41", "Arm"},       {"0x42", "Broadcom"}, {"0x43", "Cavium"}, {"0x46", "Fujitsu"},
                        {"0x48", "HiSilicon"}, {"0x4e", "NVIDIA"},   {"0x50", "APM"},    {"0x51", "Qualcomm"},
                        {"0x61", "Apple"},     {"0x70", "Phytium"},  {"0xc0", "Ampere"}};
    char text[SYS_TEXT_BYTES], code[32];
    if (read_text("/proc/cpuinfo", text, sizeof text)) {
        if (info_value(text, "model name", buf, size)) {
            return;
        }
        if (info_value(text, "CPU implementer", code, sizeof code)) {
            for (size_t i = 0; i < sizeof implementers / sizeof *implementers; i++) {
                if (strcmp(code, implementers[i].code) == 0) {
                    (void)snprintf(buf, size, "%s", implementers[i].name);
                    return;
                }
            }
        }
    }
    (void)snprintf(buf, size, "unknown");
}

ct_status cti_exe_dir(const ct_alloc *alloc, char **out_dir, ct_err *err)
{
    char path[SYS_PATH_BYTES + 1];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    if (n < 0) {
        char buf[128];
        return CT_FAIL(err, CT_ERR_IO, "'/proc/self/exe' cannot be read: %s",
                       strerror_r(errno, buf, sizeof buf));
    }
    if ((size_t)n >= sizeof path) {
        return CT_FAIL(err, CT_ERR_RANGE, "the path of the running program is longer than %d bytes",
                       SYS_PATH_BYTES);
    }
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    if (slash == NULL) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s' is not a path of a program", path);
    }
    slash[slash == path ? 1 : 0] = '\0';
    char *dir = ct_alloc_strdup(alloc, path, err);
    if (dir == NULL) {
        return CT_ERR_MEMORY;
    }
    *out_dir = dir;
    return CT_OK;
}

ct_status cti_self_dir(const ct_alloc *alloc, char **out_dir, ct_err *err)
{
    static const char here;
    Dl_info info;
    struct link_map *map = NULL;
    if (dladdr1(&here, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL || map->l_name[0] == '\0') { /* "": the executable */
        return cti_exe_dir(alloc, out_dir, err);
    }
    char *path = realpath(map->l_name, NULL);
    if (path == NULL) {
        char buf[128];
        return CT_FAIL(err, CT_ERR_IO, "'%s': where this library lies cannot be found: %s", map->l_name, strerror_r(errno, buf, sizeof buf));
    }
    char *slash = strrchr(path, '/'); /* there is one: the path is absolute */
    slash[slash == path ? 1 : 0] = '\0';
    *out_dir = ct_alloc_strdup(alloc, path, err);
    free(path);
    return *out_dir != NULL ? CT_OK : CT_ERR_MEMORY;
}
