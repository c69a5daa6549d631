/* SPDX-License-Identifier: Apache-2.0 */
/* Rules broken, error texts, counts of calls and launches, handles left at exit, faults on demand, the
 * double's random numbers. */
#include "acl_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum severity { CODE, TRAP, LINT };
static const struct {
    const char *name;
    enum severity severity;
} rules[] = {
#define ROW(id, severity, text) {#id, severity},
    FAKE_RULES(ROW)
#undef ROW
};
static uint64_t hits[FAKE_RULE_COUNT];

enum { MAX_NAMES = 1024, NAME_MAX_BYTES = 64 };
struct count {
    char name[NAME_MAX_BYTES];
    uint64_t calls, launches, launches_before;
};
static struct {
    pthread_mutex_t lock;
    struct count counts[MAX_NAMES];
    int ncounts;
    FILE *steps; /* one line a synchronisation that followed launches */
    uint64_t syncs;
    long live[FAKE_KIND_COUNT];
    struct {
        char kind[32];
        uint64_t uses;
    } faults[32];
    int nfaults;
    uint64_t random_state;
    bool seeded;
} report = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local char recent[4096];     /* reported, not yet asked for */
static _Thread_local char handed_out[4096]; /* what the last aclGetRecentErrMsg returned */
static _Thread_local bool any_recent;

const char *switch_text(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : otherwise;
}

long switch_number(const char *name, long otherwise)
{
    const char *value = switch_text(name, NULL);
    if (value == NULL) {
        return otherwise;
    }
    char *end = NULL;
    long number = strtol(value, &end, 10);
    if (*end != '\0') {
        (void)fprintf(stderr, "fake cann: %s: wanted a number, found '%s'\n", name, value);
        abort();
    }
    return number;
}

double switch_real(const char *name, double otherwise)
{
    const char *value = switch_text(name, NULL);
    return value == NULL ? otherwise : strtod(value, NULL);
}

static void hit(enum fake_rule rule)
{
    (void)__atomic_add_fetch(&hits[rule], 1, __ATOMIC_SEQ_CST);
}

uint64_t fake_rule_hits(int rule)
{
    return rule < 0 || rule >= FAKE_RULE_COUNT ? 0 : __atomic_load_n(&hits[rule], __ATOMIC_SEQ_CST);
}

const char *fake_rule_name(int rule)
{
    return rule < 0 || rule >= FAKE_RULE_COUNT ? NULL : rules[rule].name;
}

static void set_text(const char *text)
{
    (void)snprintf(recent, sizeof recent, "%s", text);
    any_recent = true;
}

int fake_code(enum fake_rule rule, int code, const char *format, ...)
{
    char text[sizeof recent];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hit(rule);
    set_text(text);
    if (switch_number("FAKE_CANN_VERBOSE", 0) != 0) {
        (void)fprintf(stderr, "fake cann: %s: %d: %s\n", rules[rule].name, code, text);
    }
    return code;
}

void fake_trap(enum fake_rule rule, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hit(rule);
    (void)fprintf(stderr, "fake cann: trap %s: %s\n", rules[rule].name, text);
    if (strcmp(switch_text("FAKE_CANN_TRAPS", "abort"), "record") != 0) {
        abort();
    }
}

void fake_lint(enum fake_rule rule, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hit(rule);
    if (fake_rule_hits(rule) == 1 || switch_number("FAKE_CANN_VERBOSE", 0) != 0) {
        (void)fprintf(stderr, "fake cann: lint %s: %s\n", rules[rule].name, text);
    }
    if (strcmp(switch_text("FAKE_CANN_LINTS", "print"), "trap") == 0) {
        abort();
    }
}

void fake_error_text(const char *format, ...)
{
    char text[sizeof recent];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    set_text(text);
}

/* Releases of 8.x say that the text is cleared; the source of 9.x keeps it. FAKE_CANN_ERRMSG=clear|keep
 * chooses. */
ACL const char *aclGetRecentErrMsg(void)
{
    fake_count("aclGetRecentErrMsg");
    if (!any_recent) {
        return NULL;
    }
    (void)memcpy(handed_out, recent, sizeof handed_out);
    if (strcmp(switch_text("FAKE_CANN_ERRMSG", fake_version() < 900 ? "clear" : "keep"), "clear") == 0) {
        any_recent = false;
    }
    return handed_out;
}

/* ---- Counts ------------------------------------------------------------------------------------------ */

static struct count *find_count(const char *name)
{
    for (int i = 0; i < report.ncounts; i++) {
        if (strncmp(report.counts[i].name, name, NAME_MAX_BYTES - 1) == 0) {
            return &report.counts[i];
        }
    }
    if (report.ncounts == MAX_NAMES) {
        return &report.counts[MAX_NAMES - 1];
    }
    struct count *count = &report.counts[report.ncounts++];
    (void)snprintf(count->name, sizeof count->name, "%s", name);
    return count;
}

void fake_count(const char *name)
{
    (void)pthread_mutex_lock(&report.lock);
    find_count(name)->calls++;
    (void)pthread_mutex_unlock(&report.lock);
}

void count_launch(const char *name)
{
    (void)pthread_mutex_lock(&report.lock);
    find_count(name)->launches++;
    (void)pthread_mutex_unlock(&report.lock);
}

static FILE *counts_file(void)
{
    const char *name = switch_text("FAKE_CANN_COUNTS", NULL);
    if (report.steps == NULL && name != NULL) {
        char path[PATH_MAX];
        const char *percent = strstr(name, "%p");
        if (percent == NULL) {
            (void)snprintf(path, sizeof path, "%s", name);
        } else {
            (void)snprintf(path, sizeof path, "%.*s%ld%s", (int)(percent - name), name, (long)getpid(),
                           percent + 2);
        }
        report.steps = fopen(path, "w");
        if (report.steps == NULL) {
            (void)fprintf(stderr, "fake cann: FAKE_CANN_COUNTS: can't write '%s': %s\n", path,
                          strerror(errno));
            abort();
        }
    }
    return report.steps;
}

void count_sync(void)
{
    if (getenv("FAKE_CANN_COUNTS") == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&report.lock);
    uint64_t launches = 0;
    for (int i = 0; i < report.ncounts; i++) {
        launches += report.counts[i].launches - report.counts[i].launches_before;
    }
    FILE *file = launches == 0 ? NULL : counts_file();
    if (file != NULL) {
        (void)fprintf(file, "sync %llu launches %llu", (unsigned long long)++report.syncs,
                      (unsigned long long)launches);
        for (int i = 0; i < report.ncounts; i++) {
            struct count *count = &report.counts[i];
            if (count->launches != count->launches_before) {
                (void)fprintf(file, " %s=%llu", count->name,
                              (unsigned long long)(count->launches - count->launches_before));
                count->launches_before = count->launches;
            }
        }
        (void)fprintf(file, "\n");
        (void)fflush(file);
    }
    (void)pthread_mutex_unlock(&report.lock);
}

static void write_totals(void)
{
    FILE *file = counts_file();
    if (file == NULL) {
        return;
    }
    for (int i = 0; i < report.ncounts; i++) {
        struct count *count = &report.counts[i];
        (void)fprintf(file, "total %s calls %llu launches %llu\n", count->name,
                      (unsigned long long)count->calls, (unsigned long long)count->launches);
    }
    for (int i = 0; i < FAKE_RULE_COUNT; i++) {
        if (hits[i] != 0) {
            (void)fprintf(file, "rule %s %llu\n", rules[i].name, (unsigned long long)hits[i]);
        }
    }
    (void)fclose(file);
}

/* ---- Handles ----------------------------------------------------------------------------------------- */

static const char *const kinds[FAKE_KIND_COUNT] = {
    [FAKE_CONTEXT] = "contexts",
    [FAKE_STREAM] = "streams",
    [FAKE_EVENT] = "events",
    [FAKE_BLOCK] = "blocks of device memory",
    [FAKE_PINNED] = "blocks of pinned host memory",
    [FAKE_REGISTERED] = "registered host ranges",
    [FAKE_PHYSICAL] = "physical memory handles",
    [FAKE_RESERVED] = "reserved address ranges",
    [FAKE_COMM] = "communicators",
    [FAKE_TENSOR] = "tensors",
    [FAKE_SCALAR] = "scalars",
    [FAKE_INT_ARRAY] = "int arrays",
    [FAKE_FLOAT_ARRAY] = "float arrays",
    [FAKE_BOOL_ARRAY] = "bool arrays",
    [FAKE_TENSOR_LIST] = "tensor lists",
    [FAKE_SCALAR_LIST] = "scalar lists",
    [FAKE_EXECUTOR] = "executors whose phase 2 was never called",
    [FAKE_REPEATABLE] = "repeatable executors",
};

void fake_live(enum fake_kind kind, int change)
{
    (void)__atomic_add_fetch(&report.live[kind], change, __ATOMIC_SEQ_CST);
}

long fake_live_count(int kind)
{
    return kind < 0 || kind >= FAKE_KIND_COUNT ? 0 : __atomic_load_n(&report.live[kind], __ATOMIC_SEQ_CST);
}

/* "2 streams, 1 tensors", of the kinds below `end`; whether there are any. */
bool live_text(int end, char *out, size_t size)
{
    bool any = false;
    out[0] = '\0';
    for (int i = 0; i < end; i++) {
        long count = fake_live_count(i);
        if (count != 0) {
            size_t used = strlen(out);
            (void)snprintf(out + used, size - used, "%s%ld %s", any ? ", " : "", count, kinds[i]);
            any = true;
        }
    }
    return any;
}

__attribute__((destructor)) static void at_exit(void)
{
    write_totals();
    char text[1024];
    if (live_text(FAKE_KIND_COUNT, text, sizeof text)) {
        (void)fprintf(stderr, "fake cann: left at exit: %s\n", text);
        if (strcmp(switch_text("FAKE_CANN_LEAKS", "print"), "fail") == 0) {
            (void)fflush(NULL);
            _exit(86);
        }
    }
}

/* ---- Faults, random numbers -------------------------------------------------------------------------- */

bool fake_fault(const char *kind)
{
    const char *list = getenv("FAKE_CANN_FAULT");
    if (list == NULL) {
        return false;
    }
    size_t length = strlen(kind);
    for (const char *at = list; at != NULL && *at != '\0';
         at = strchr(at, ',') != NULL ? strchr(at, ',') + 1 : NULL) {
        if (strncmp(at, kind, length) != 0 ||
            (at[length] != '=' && at[length] != ',' && at[length] != '\0')) {
            continue;
        }
        if (at[length] != '=') {
            return true;
        }
        uint64_t wanted = strtoull(at + length + 1, NULL, 10), use = 0;
        (void)pthread_mutex_lock(&report.lock);
        for (int i = 0; i <= report.nfaults && i < 32; i++) {
            if (i == report.nfaults) {
                (void)snprintf(report.faults[i].kind, sizeof report.faults[i].kind, "%s", kind);
                report.nfaults++;
            }
            if (strcmp(report.faults[i].kind, kind) == 0) {
                use = ++report.faults[i].uses;
                break;
            }
        }
        (void)pthread_mutex_unlock(&report.lock);
        return use == wanted;
    }
    return false;
}

uint64_t fake_random(void)
{
    (void)pthread_mutex_lock(&report.lock);
    if (!report.seeded) {
        report.random_state = (uint64_t)switch_number("FAKE_CANN_SEED", 1) * 0x9e3779b97f4a7c15u + 1;
        report.seeded = true;
    }
    uint64_t x = report.random_state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    (void)pthread_mutex_unlock(&report.lock);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t fake_random_workspace(void)
{
    const char *how = switch_text("FAKE_CANN_WORKSPACE", "random");
    if (strcmp(how, "zero") == 0) {
        return 0;
    }
    if (strcmp(how, "random") != 0) {
        return strtoull(how, NULL, 10);
    }
    uint64_t x = fake_random();
    return (x & 1) == 0 ? 0 : 1 + ((x >> 1) & 0xffff);
}

/* ---- State of libraries under several names ---------------------------------------------------------- */

static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;

void *fake_shared(const char *name, size_t size)
{
    static struct {
        char name[32];
        void *state;
    } slots[16];
    (void)pthread_mutex_lock(&report.lock);
    void *state = NULL;
    for (int i = 0; i < 16 && state == NULL; i++) {
        if (slots[i].state == NULL) {
            (void)snprintf(slots[i].name, sizeof slots[i].name, "%s", name);
            slots[i].state = calloc(1, size);
        }
        if (strcmp(slots[i].name, name) == 0) {
            state = slots[i].state;
        }
    }
    (void)pthread_mutex_unlock(&report.lock);
    return state;
}

void fake_shared_lock(void)
{
    (void)pthread_mutex_lock(&shared_lock);
}

void fake_shared_unlock(void)
{
    (void)pthread_mutex_unlock(&shared_lock);
}
