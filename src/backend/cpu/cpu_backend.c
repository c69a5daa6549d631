/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU backend's device: the choice of the instruction-set level, memory in huge pages, and facts. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#if defined(CTI_CPU_X86_LEVELS)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "backend/cpu/cpu.h"
#include "backend/cpu/cpu_internal.h"
#include "base/clock.h"
#include "base/num.h"
#include "base/pool.h"
#include "base/sys.h"

enum { HUGE_PAGE = 2 << 20, PAGE = 4096 };

typedef enum cpu_level {
#define LEVEL_ENUM(name, text) LEVEL_##name,
    CTI_CPU_LEVEL_LIST(LEVEL_ENUM)
#undef LEVEL_ENUM
        LEVEL_COUNT
} cpu_level;

typedef struct cpu_device {
    const ct_alloc *alloc; /* borrows */
    cpu_level level;
} cpu_device;

#if defined(CTI_CPU_X86_LEVELS)
/* Intel's cores that have AVX512_FP16, Sapphire Rapids and on, multiply pairs of bf16 at half the rate of f32 (bench_limits): widening is
 * faster there, where AMX is not to be had. */
static bool has_slow_dots(void)
{
    enum { AVX512_FP16 = 1 << 23 };
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __builtin_cpu_is("intel") && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & AVX512_FP16) != 0;
}

/* AMX's bf16 tiles, and the kernel's leave to use their 8 KiB of registers, which holds for all threads of the process. Asked for once: a
 * thread with a small signal stack, which such registers do not fit on, has it refused, and must not change the level of a run. */
static bool has_amx(void)
{
    static _Atomic int known; /* 0: not asked yet, 1: no, 2: yes */
    if (known != 0) {
        return known == 2;
    }
    enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24, ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    unsigned a = 0, b = 0, c = 0, d = 0;
    const bool has = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & AMX_BF16) && (d & AMX_TILE) &&
                     syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
    int unknown = 0;
    (void)atomic_compare_exchange_strong(&known, &unknown, has ? 2 : 1); /* the first answer stays */
    return known == 2;
}
#endif

static bool cpu_runs(cpu_level level)
{
    switch (level) {
#if defined(__aarch64__)
    case LEVEL_neon:
#else
    case LEVEL_base:
#endif
        return true;
#if defined(CTI_CPU_X86_LEVELS)
    case LEVEL_v3:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    case LEVEL_v4:
        return cpu_runs(LEVEL_v3) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    case LEVEL_v4bf16:
        return cpu_runs(LEVEL_v4) && __builtin_cpu_supports("avx512bf16");
    case LEVEL_v4amx:
        return cpu_runs(LEVEL_v4bf16) && has_amx();
#endif
    case LEVEL_COUNT:
        break;
    }
    return false;
}

int cti_cpu_level_count(void)
{
    return LEVEL_COUNT;
}

const char *cti_cpu_level_name(int level)
{
    static const char *const NAMES[] = {
#define LEVEL_NAME(name, text) #name,
        CTI_CPU_LEVEL_LIST(LEVEL_NAME)
#undef LEVEL_NAME
    };
    return NAMES[level];
}

/* The one place of this room that reads the environment; see cpu.h. NULL or "": no wish. */
static const char *wanted_level(void)
{
    return getenv("CTITAN_CPU_ISA"); /* NOLINT(concurrency-mt-unsafe): nothing of ours writes the environment */
}

/* A level that runs, but is slower than the one below it. */
static bool is_no_gain(cpu_level level)
{
#if defined(CTI_CPU_X86_LEVELS)
    return level == LEVEL_v4bf16 && has_slow_dots();
#else
    (void)level;
    return false;
#endif
}

/* The wanted level where there is one that runs, else the best. */
static cpu_level choose_level(void)
{
    const char *wanted = wanted_level();
    cpu_level best = (cpu_level)0;
    for (int i = 0; i < LEVEL_COUNT; i++) {
        if (cpu_runs((cpu_level)i)) {
            if (wanted && strcmp(wanted, cti_cpu_level_name(i)) == 0) {
                return (cpu_level)i;
            }
            best = is_no_gain((cpu_level)i) ? best : (cpu_level)i;
        }
    }
    return best;
}

/* "base, v3 or v4" */
static void list_levels(char *out, size_t size)
{
    size_t at = 0;
    for (int i = 0; i < LEVEL_COUNT && at < size; i++) {
        const char *before = i == 0 ? "" : i + 1 < LEVEL_COUNT ? ", " : " or ";
        at += (size_t)snprintf(out + at, size - at, "%s%s", before, cti_cpu_level_name(i));
    }
}

static ct_status check_wanted(ct_err *err)
{
    const char *wanted = wanted_level();
    if (!wanted || !wanted[0]) {
        return CT_OK;
    }
    for (int i = 0; i < LEVEL_COUNT; i++) {
        if (strcmp(wanted, cti_cpu_level_name(i)) == 0) {
            if (cpu_runs((cpu_level)i)) {
                return CT_OK;
            }
            return CT_FAIL(err, CT_ERR_UNSUPPORTED, "CTITAN_CPU_ISA is '%s', this CPU cannot run it; the best it can is '%s'", wanted,
                           cti_cpu_level_name((int)choose_level()));
        }
    }
    char names[80];
    list_levels(names, sizeof names);
    return CT_FAIL(err, CT_ERR_USAGE, "CTITAN_CPU_ISA is '%s', wanted %s", wanted, names);
}

/* n rounds return their FLOPs. */
typedef double (*loop_fn)(int64_t n);

static const struct {
    loop_fn fma, dot;
} LOOPS[] = {
#define LEVEL_LOOP(name, text) {cti_cpu_fma_loop_##name, cti_cpu_dot_loop_##name},
    CTI_CPU_LEVEL_LIST(LEVEL_LOOP)
#undef LEVEL_LOOP
};

typedef struct peak_run {
    loop_fn loop;
    _Atomic int64_t flops;
} peak_run;

static void run_loop(void *ctx, int64_t first, int64_t end, int thread)
{
    enum { N = 10000 };
    peak_run *run = ctx;
    (void)thread;
    run->flops += (int64_t)run->loop((end - first) * N);
}

static double measure(loop_fn loop)
{
    /* A round takes about a quarter of a millisecond: the best one counts. Several turns a thread, so that one that comes late does
     * not halve the rate. */
    enum { ROUNDS = 8, TURNS = 8 };
    const int threads = cti_pool_threads();
    double best = 0;
    for (int r = 0; r < ROUNDS; r++) {
        peak_run run = {.loop = loop};
        const int64_t start = cti_now_ns();
        cti_pool_tasks((int64_t)threads * TURNS, threads, run_loop, &run);
        const double rate = (double)run.flops / cti_seconds_since(start);
        best = rate > best ? rate : best;
    }
    return best;
}

double cti_cpu_measure_peak(int level)
{
    return measure(LOOPS[level].fma);
}

double cti_cpu_measure_peak_bf16(int level)
{
    return LOOPS[level].dot(1) > 0 ? measure(LOOPS[level].dot) : 0;
}

static ct_status open_at(cpu_level level, const ct_alloc *alloc, int32_t index, void **out_device, ct_err *err)
{
    if (index != 0) {
        return CT_FAIL(err, CT_ERR_RANGE, "cpu: device %d was asked for, there is only device 0", (int)index);
    }
    CT_TRY(check_wanted(err));
    CT_TRY(cti_pool_check(err));
    cpu_device *device = CT_NEW(alloc, cpu_device, err);
    if (!device) {
        return CT_ERR_MEMORY;
    }
    device->alloc = alloc;
    device->level = level;
    *out_device = device;
    return CT_OK;
}

static void device_close(void **device)
{
    cpu_device *d = *device;
    if (d) {
        ct_alloc_free(d->alloc, d);
        *device = NULL;
    }
}

/* Peaks are measured once in a process (about 2 ms each), at the first call, so that opening costs nothing. bf16 is native where its
 * products are: levels without them widen it, even where the CPU has them. */
static ct_status device_facts(void *device, ct_device_facts *out_facts, ct_err *err)
{
    static _Atomic double peaks[LEVEL_COUNT], peaks_bf16[LEVEL_COUNT];
    (void)err;
    const cpu_level level = ((const cpu_device *)device)->level;
    if (peaks[level] <= 0) {
        peaks_bf16[level] = cti_cpu_measure_peak_bf16((int)level);
        peaks[level] = cti_cpu_measure_peak((int)level);
    }
    memset(out_facts, 0, sizeof *out_facts);
    cti_cpu_name(out_facts->name, sizeof out_facts->name);
    (void)snprintf(out_facts->type, sizeof out_facts->type, "CPU");
    out_facts->memory_bytes = cti_memory_bytes();
    out_facts->peak_flops = peaks[level];
    out_facts->peak_flops_bf16 = peaks_bf16[level];
    out_facts->has_native_bf16 = peaks_bf16[level] > 0;
    return CT_OK;
}

/* Bytes that are mapped for a request: whole pages, huge ones from 2 MiB on. */
static size_t mapped_bytes(size_t bytes)
{
    const int64_t page = bytes >= HUGE_PAGE ? HUGE_PAGE : PAGE;
    return (size_t)cti_round_up((int64_t)(bytes ? bytes : 1), page);
}

/* First touch here, not in the first step. */
static void touch(void *start, int64_t first, int64_t end, int thread)
{
    (void)thread;
    for (int64_t p = first; p < end; p += PAGE) {
        *(volatile char *)((char *)start + p) = 0;
    }
}

static ct_status memory_alloc(void *device, size_t bytes, void **out_ptr, ct_err *err)
{
    (void)device;
    if (bytes > (size_t)INT64_MAX - 2 * HUGE_PAGE) {
        return CT_FAIL(err, CT_ERR_MEMORY, "cpu: %zu bytes are more than an address space holds", bytes);
    }
    const size_t size = mapped_bytes(bytes), slack = bytes >= HUGE_PAGE ? HUGE_PAGE : 0;
    char *base = mmap(NULL, size + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
        return CT_FAIL(err, CT_ERR_MEMORY, "cpu: the system has no %zu bytes", bytes);
    }
    char *start = base;
    if (slack) { /* cut to a border of huge pages; unaligned ends would stay small pages */
        start += (size_t)cti_round_up((int64_t)(uintptr_t)base, HUGE_PAGE) - (uintptr_t)base;
        if (start > base) {
            (void)munmap(base, (size_t)(start - base)); /* trimming a mapping of our own cannot fail in a way that matters */
        }
        if (base + slack > start) {
            (void)munmap(start + size, (size_t)(base + slack - start));
        }
        (void)madvise(start, size, MADV_HUGEPAGE); /* a kernel without them is only slower */
    }
    cti_pool_run((int64_t)size, HUGE_PAGE, touch, start);
    *out_ptr = start;
    return CT_OK;
}

static void memory_free(void *device, void *ptr, size_t bytes)
{
    (void)device;
    if (ptr) {
        (void)munmap(ptr, mapped_bytes(bytes)); /* fails for a pointer that is not ours only */
    }
}

static ct_status copy(void *device, void *dst, const void *src, size_t bytes, void *stream, ct_err *err)
{
    (void)device;
    (void)stream;
    (void)err;
    if (bytes > 0) {
        memcpy(dst, src, bytes);
    }
    return CT_OK;
}

static ct_status synchronize(void *device, void *stream, ct_err *err)
{
    (void)device;
    (void)stream;
    (void)err;
    return CT_OK;
}

#define LEVEL_OPEN(name, text)                                                                                       \
    static ct_status open_##name(const ct_alloc *alloc, int32_t index, void **out_device, ct_err *err)                \
    {                                                                                                                \
        return open_at(LEVEL_##name, alloc, index, out_device, err);                                                 \
    }
CTI_CPU_LEVEL_LIST(LEVEL_OPEN)
#undef LEVEL_OPEN

static const ct_backend BACKENDS[] = {
#define LEVEL_BACKEND(name_, text)                                                                                   \
    {                                                                                                                \
        .abi = CT_BACKEND_ABI,                                                                                       \
        .size_bytes = sizeof(ct_backend),                                                                            \
        .name = "cpu",                                                                                               \
        .kernels = cti_cpu_kernels_##name_,                                                                          \
        .device_open = open_##name_,                                                                                 \
        .device_close = device_close,                                                                                \
        .device_facts = device_facts,                                                                                \
        .memory_alloc = memory_alloc,                                                                                \
        .memory_free = memory_free,                                                                                  \
        .copy_to_device = copy,                                                                                      \
        .copy_to_host = copy,                                                                                        \
        .synchronize = synchronize,                                                                                  \
    },
    CTI_CPU_LEVEL_LIST(LEVEL_BACKEND)
#undef LEVEL_BACKEND
};

const ct_backend *cti_cpu_backend_at(int level)
{
    return cpu_runs((cpu_level)level) ? &BACKENDS[level] : NULL;
}

const ct_backend *ct_backend_cpu(void)
{
    return &BACKENDS[choose_level()];
}
