/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of the doubles: the libraries' functions by dlsym, and tables of rows that each break one
 * rule in a process of their own. */
#ifndef CT_TESTS_FAKE_CANN_TEST_H
#define CT_TESTS_FAKE_CANN_TEST_H

#include "fake/cann/fake.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAKE_LIB CT_BINARY_DIR "/fake_cann/lib64/"

/* The test's own copy of the prototypes. */
#define ACL_FUNCTIONS(X)                                                                           \
    X(int, aclInit, (const char *))                                                                \
    X(int, aclFinalize, (void))                                                                    \
    X(int, aclFinalizeReference, (uint64_t *))                                                     \
    X(const char *, aclGetRecentErrMsg, (void))                                                    \
    X(const char *, aclrtGetSocName, (void))                                                       \
    X(int, aclrtGetDeviceCount, (uint32_t *))                                                      \
    X(int, aclrtSetDevice, (int32_t))                                                              \
    X(int, aclrtGetDevice, (int32_t *))                                                            \
    X(int, aclrtResetDevice, (int32_t))                                                            \
    X(int, aclrtQueryDeviceStatus, (int32_t, int *))                                               \
    X(int, aclrtCreateContext, (void **, int32_t))                                                 \
    X(int, aclrtDestroyContext, (void *))                                                          \
    X(int, aclrtSetCurrentContext, (void *))                                                       \
    X(int, aclrtGetCurrentContext, (void **))                                                      \
    X(int, aclrtSynchronizeDevice, (void))                                                         \
    X(int, aclrtCreateStream, (void **))                                                           \
    X(int, aclrtCreateStreamWithConfig, (void **, uint32_t, uint32_t))                             \
    X(int, aclrtDestroyStream, (void *))                                                           \
    X(int, aclrtSynchronizeStream, (void *))                                                       \
    X(int, aclrtSynchronizeStreamWithTimeout, (void *, int32_t))                                   \
    X(int, aclrtStreamQuery, (void *, int *))                                                      \
    X(int, aclrtSetStreamFailureMode, (void *, uint64_t))                                          \
    X(int, aclrtStreamWaitEvent, (void *, void *))                                                 \
    X(int, aclrtLaunchHostFunc, (void *, void (*)(void *), void *))                                \
    X(int, aclrtCreateEvent, (void **))                                                            \
    X(int, aclrtCreateEventWithFlag, (void **, uint32_t))                                          \
    X(int, aclrtCreateEventExWithFlag, (void **, uint32_t))                                        \
    X(int, aclrtDestroyEvent, (void *))                                                            \
    X(int, aclrtRecordEvent, (void *, void *))                                                     \
    X(int, aclrtResetEvent, (void *, void *))                                                      \
    X(int, aclrtQueryEventStatus, (void *, int *))                                                 \
    X(int, aclrtSynchronizeEvent, (void *))                                                        \
    X(int, aclrtSynchronizeEventWithTimeout, (void *, int32_t))                                    \
    X(int, aclrtEventElapsedTime, (float *, void *, void *))                                       \
    X(int, aclrtMalloc, (void **, size_t, int))                                                    \
    X(int, aclrtMallocAlign32, (void **, size_t, int))                                             \
    X(int, aclrtFree, (void *))                                                                    \
    X(int, aclrtMallocHost, (void **, size_t))                                                     \
    X(int, aclrtFreeHost, (void *))                                                                \
    X(int, aclrtHostRegister, (void *, uint64_t, int, void **))                                    \
    X(int, aclrtHostUnregister, (void *))                                                          \
    X(int, aclrtMemcpy, (void *, size_t, const void *, size_t, int))                               \
    X(int, aclrtMemcpyAsync, (void *, size_t, const void *, size_t, int, void *))                  \
    X(int, aclrtMemcpy2d, (void *, size_t, const void *, size_t, size_t, size_t, int))             \
    X(int, aclrtMemset, (void *, size_t, int32_t, size_t))                                         \
    X(int, aclrtMemsetAsync, (void *, size_t, int32_t, size_t, void *))                            \
    X(int, aclrtGetMemInfo, (int, size_t *, size_t *))                                             \
    X(int, aclrtSetSysParamOpt, (int, int64_t))                                                    \
    X(int, aclrtCtxSetSysParamOpt, (int, int64_t))                                                 \
    X(int, aclrtCtxGetSysParamOpt, (int, int64_t *))                                               \
    X(int, aclrtGetSysParamOpt, (int, int64_t *))                                                  \
    X(int, aclrtGetRunMode, (int *))                                                               \
    X(int, aclrtGetVersion, (int32_t *, int32_t *, int32_t *))                                     \
    X(int, aclrtDeviceCanAccessPeer, (int32_t *, int32_t, int32_t))                                \
    X(int, aclrtDeviceEnablePeerAccess, (int32_t, uint32_t))                                       \
    X(size_t, aclDataTypeSize, (int))                                                              \
    X(uint16_t, aclFloatToFloat16, (float))                                                        \
    X(float, aclFloat16ToFloat, (uint16_t))                                                        \
    X(uint64_t, fake_rule_hits, (int))                                                             \
    X(long, fake_live_count, (int))                                                                \
    X(void *, fake_at, (const void *))                                                             \
    X(int, fake_launch,                                                                            \
      (const char *, void *, const struct fake_range *, size_t, fake_kernel, const void *, size_t, \
       fake_done))

static struct {
#define FIELD(type, name, arguments) type(*name) arguments;
    ACL_FUNCTIONS(FIELD)
#undef FIELD
} acl;

static void *open_library(const char *name)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s%s", FAKE_LIB, name);
    void *library = dlopen(path, RTLD_NOW);
    if (library == NULL) {
        (void)fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
    return library;
}

static void *find_symbol(void *library, const char *name)
{
    void *symbol = dlsym(library, name);
    if (symbol == NULL) {
        (void)fprintf(stderr, "%s: not found\n", name);
        exit(3);
    }
    return symbol;
}

__attribute__((unused)) static void load_acl(void)
{
    void *library = open_library("libascendcl.so");
#define LOAD(type, name, arguments) *(void **)&acl.name = find_symbol(library, #name);
    ACL_FUNCTIONS(LOAD)
#undef LOAD
}

/* In a row's function: what a call must return. */
#define GIVES(want, call)                                                                             \
    do {                                                                                              \
        long gives_got = (long)(call);                                                                \
        if (gives_got != (long)(want)) {                                                              \
            const char *gives_text = acl.aclGetRecentErrMsg();                                        \
            (void)fprintf(stderr, "%s:%d: %s: wanted %ld, got %ld (%s)\n", __FILE__, __LINE__, #call, \
                          (long)(want), gives_got, gives_text == NULL ? "no text" : gives_text);      \
            _exit(2);                                                                                 \
        }                                                                                             \
    } while (0)
#define HOLDS(condition) GIVES(1, (condition) ? 1 : 0)
#define TEXT_HAS(part) \
    HOLDS(acl.aclGetRecentErrMsg() != NULL && strstr(acl.aclGetRecentErrMsg(), part) != NULL)

enum { RULE_CODE, RULE_TRAP, RULE_LINT };
struct rule {
    const char *name;
    int severity;
};
static const struct rule all_rules[] = {
#define CODE RULE_CODE
#define TRAP RULE_TRAP
#define LINT RULE_LINT
#define ROW(id, severity, text) {#id, severity},
    FAKE_RULES(ROW)
#undef ROW
#undef CODE
#undef TRAP
#undef LINT
};

/* One way to break a rule. `settings`: NAME=VALUE words for the process, or NULL. Rules that only an abort
 * can end: `only_abort`. */
struct row {
    enum fake_rule rule;
    void (*run)(void);
    const char *settings;
    bool only_abort;
};

static void set_words(const char *words)
{
    char copy[512];
    (void)snprintf(copy, sizeof copy, "%s", words == NULL ? "" : words);
    for (char *save = NULL, *word = strtok_r(copy, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save)) {
        char *equals = strchr(word, '=');
        *equals = '\0';
        (void)setenv(word, equals + 1, 1);
    }
}

/* Runs the row in a child with FAKE_CANN_TRAPS=`traps`; its standard error in out; its wait status. */
static int run_row(const struct row *row, const char *traps, char *out, size_t size)
{
    int ends[2];
    if (pipe(ends) != 0) {
        abort();
    }
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        (void)dup2(ends[1], 2);
        (void)close(ends[0]);
        (void)close(ends[1]);
        (void)setenv("FAKE_CANN_TRAPS", traps, 1);
        set_words(row->settings);
        load_acl();
        row->run();
        _exit(acl.fake_rule_hits((int)row->rule) > 0 ? 0 : 1);
    }
    (void)close(ends[1]);
    size_t used = 0;
    ssize_t n = 0;
    while ((n = read(ends[0], out + used, size - 1 - used)) > 0) {
        used += (size_t)n;
    }
    out[used] = '\0';
    (void)close(ends[0]);
    int status = 0;
    (void)waitpid(child, &status, 0);
    return status;
}

/* All rows; the number that were not caught. */
__attribute__((unused)) static int run_rows(const struct row *rows, size_t n)
{
    int bad = 0;
    for (size_t i = 0; i < n; i++) {
        const struct rule *rule = &all_rules[rows[i].rule];
        char out[16384], wanted[128];
        (void)snprintf(wanted, sizeof wanted, "trap %s: ", rule->name);
        int status = rows[i].only_abort ? 0 : run_row(&rows[i], "record", out, sizeof out);
        if (status != 0) {
            (void)fprintf(stderr, "row %zu, %s: not caught (status 0x%x)\n%s\n", i, rule->name, status, out);
            bad++;
            continue;
        }
        if (rule->severity != RULE_TRAP) {
            continue;
        }
        status = run_row(&rows[i], "abort", out, sizeof out);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || strstr(out, wanted) == NULL) {
            (void)fprintf(stderr, "row %zu, %s: the process did not abort (status 0x%x)\n%s\n", i, rule->name,
                          status, out);
            bad++;
        }
    }
    return bad;
}

/* How many of the rules [from, to) no row breaks; each is named. */
__attribute__((unused)) static int unbroken(const struct row *rows, size_t n, int from, int to)
{
    int missing = 0;
    for (int rule = from; rule < to; rule++) {
        bool broken = false;
        for (size_t i = 0; i < n; i++) {
            broken = broken || (int)rows[i].rule == rule;
        }
        if (!broken) {
            (void)fprintf(stderr, "rule %s: no row breaks it\n", all_rules[rule].name);
            missing++;
        }
    }
    return missing;
}

#endif
