/* SPDX-License-Identifier: Apache-2.0 */
/* What training on the host wants: cores, huge pages, shared memory, engines, limits. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "backend/cpu/cpu.h"
#include "cli/doctor.h"
#include "cli/probe.h"

static void check_cpu(cti_doctor *d)
{
    char name[128], memory[32];
    int level = 0;
    cti_cpu_name(name, sizeof name);
    for (int i = 0; i < cti_cpu_level_count(); i++) {
        level = cti_cpu_backend_at(i) == ct_backend_cpu() ? i : level;
    }
    cti_doctor_add(d, level > 0 || cti_cpu_level_count() == 1 ? CTI_VERDICT_OK : CTI_VERDICT_WARN, "cpu",
                   "this CPU has no AVX2, or CTITAN_CPU_ISA names the baseline: training is several times slower", "%s, %d usable cores, instruction set %s, %s of memory",
                   name, cti_usable_cores(), cti_cpu_level_name(level), cti_format_bytes(cti_memory_bytes(), memory));
}

static void check_huge_pages(cti_doctor *d)
{
    char *text = cti_doctor_read(d, "/sys/kernel/mm/transparent_hugepage/enabled");
    const bool is_off = text == NULL || strstr(text, "[never]") != NULL;
    const char *open = text != NULL ? strchr(text, '[') : NULL;
    char mode[32] = "not in this kernel";
    if (open != NULL) {
        (void)snprintf(mode, sizeof mode, "%.*s", (int)strcspn(open + 1, "]"), open + 1);
    }
    cti_doctor_add(d, is_off ? CTI_VERDICT_WARN : CTI_VERDICT_OK, "huge pages", "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (without them the CPU's products are slower)",
                   "transparent huge pages: %s", mode);
    ct_alloc_free(d->alloc, text);
}

static void check_shared_memory(cti_doctor *d)
{
    char path[4096], have[32], total[32];
    struct statvfs fs;
    if (statvfs(cti_doctor_path(d, "/dev/shm", path, sizeof path), &fs) != 0) {
        cti_doctor_add(d, CTI_VERDICT_WARN, "shared memory", "mount a tmpfs at /dev/shm: MPI and device drivers want it", "/dev/shm is not there");
        return;
    }
    const int64_t free_bytes = (int64_t)fs.f_bavail * (int64_t)fs.f_frsize, all = (int64_t)fs.f_blocks * (int64_t)fs.f_frsize;
    cti_doctor_add(d, free_bytes < (int64_t)256 << 20 ? CTI_VERDICT_WARN : CTI_VERDICT_OK, "shared memory",
                   "give it at least 256 MiB free, 1 GiB for many ranks (docker run --shm-size 1g), or remove what is left in it: MPI moves messages through it", "/dev/shm: %s free of %s",
                   cti_format_bytes(free_bytes, have), cti_format_bytes(all, total));
}

static void check_engines(cti_doctor *d)
{
    static const char *const WHAT[] = {"engine gloo", "engine mpi"};
    static const char *const KEYS[] = {"gloo", "mpi"};
    static const char *const HINTS[] = {"install libgloo-dev and build again: without it several ranks need --comm.engine mpi",
                                       "only where mpirun or srun is to start ranks over MPI: install libopenmpi-dev or libmpich-dev and build again"};
    ct_err err = {0};
    json_t *answer = NULL;
    const ct_status st = cti_probe(d->alloc, "loading the engines of collectives", cti_probe_engines, d->timeout_ms, &answer, &err);
    for (size_t i = 0; i < 2; i++) {
        const char *why = st != CT_OK ? err.message : json_string_value(json_object_get(answer, KEYS[i]));
        cti_doctor_add(d, why == NULL ? CTI_VERDICT_OK : CTI_VERDICT_WARN, WHAT[i], HINTS[i], "%s", why != NULL ? why : "loads");
    }
    json_decref(answer);
}

static void check_limits(cti_doctor *d)
{
    struct rlimit r;
    char path[4096], bytes[32];
    if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
        cti_doctor_add(d, r.rlim_cur < 1024 ? CTI_VERDICT_WARN : CTI_VERDICT_OK, "open files", "ulimit -n 1024 or more: each rank has connections to all others", "at most %lld",
                       (long long)r.rlim_cur);
    }
    const bool has_rdma = cti_path_exists(cti_doctor_path(d, "/dev/infiniband", path, sizeof path));
    if (getrlimit(RLIMIT_MEMLOCK, &r) == 0 && (has_rdma || d->has_ascend)) { /* without such devices nobody locks memory */
        const bool is_free = r.rlim_cur == RLIM_INFINITY;
        cti_doctor_add(d, is_free ? CTI_VERDICT_OK : CTI_VERDICT_WARN, "locked memory", "ulimit -l unlimited (docker run --ulimit memlock=-1): network cards and NPUs pin buffers", "%s",
                       is_free ? "unlimited" : cti_format_bytes((int64_t)r.rlim_cur, bytes));
    }
}

void cti_doctor_check_host(cti_doctor *d)
{
    check_cpu(d);
    check_huge_pages(d);
    check_shared_memory(d);
    check_limits(d);
    check_engines(d);
}
