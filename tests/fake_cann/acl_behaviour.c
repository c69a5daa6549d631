/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: base */
/* labels: fast */
/* What the double of libascendcl does for programs that keep the rules: order, events of each kind, memory,
 * faults, switches, reports. */
#include "acl_test.h"

#include <math.h>

static void no_rule_broken(void)
{
    for (int rule = 0; rule < FAKE_RULE_COUNT; rule++) {
        if (acl.fake_rule_hits(rule) != 0) {
            (void)fprintf(stderr, "%s was broken\n", all_rules[rule].name);
            _exit(2);
        }
    }
}

/* Up, across two streams, down: with an event between them nothing is wrong, however late things run. */
static void ordered(void)
{
    begin();
    void *a = stream(), *b = stream(), *made = NULL;
    char *from = pinned(65536), *to = pinned(65536), *first = device(65536), *second = device(65536);
    GIVES(0, acl.aclrtCreateEventExWithFlag(&made, SYNC));
    for (int round = 0; round < 20; round++) {
        (void)memset(from, round + 1, 65536);
        GIVES(0, acl.aclrtMemcpyAsync(first, 65536, from, 65536, H2D, a));
        GIVES(0, acl.aclrtRecordEvent(made, a));
        GIVES(0, acl.aclrtStreamWaitEvent(b, made));
        GIVES(0, acl.aclrtMemcpyAsync(second, 65536, first, 65536, D2D, b));
        GIVES(0, acl.aclrtMemcpyAsync(to, 65536, second, 65536, D2H, b));
        GIVES(0, acl.aclrtRecordEvent(made, b));
        GIVES(0, acl.aclrtStreamWaitEvent(a, made)); /* the next round writes `first` again */
        GIVES(0, acl.aclrtSynchronizeStream(b));
        for (int i = 0; i < 65536; i++) {
            HOLDS(to[i] == round + 1);
        }
    }
    GIVES(0, acl.aclrtSynchronizeStream(a));
    GIVES(0, acl.aclrtDestroyEvent(made));
    GIVES(0, acl.aclrtFree(first));
    GIVES(0, acl.aclrtFree(second));
    GIVES(0, acl.aclrtFreeHost(from));
    GIVES(0, acl.aclrtFreeHost(to));
    GIVES(0, acl.aclrtDestroyStream(a));
    GIVES(0, acl.aclrtDestroyStream(b));
    GIVES(0, acl.aclrtResetDevice(0));
    GIVES(0, acl.aclFinalize());
    no_rule_broken();
}

/* Pinned memory as a way station: down and up again on one stream, and rows of a matrix. */
static void stations(void)
{
    begin();
    void *a = stream();
    char *p = device(4096), *q = device(4096), *station = pinned(4096);
    GIVES(0, acl.aclrtMemsetAsync(p, 4096, 9, 4096, a));
    GIVES(0, acl.aclrtMemcpyAsync(station, 4096, p, 4096, D2H, a));
    GIVES(0, acl.aclrtMemcpyAsync(q, 4096, station, 4096, H2D, a));
    GIVES(0, acl.aclrtSynchronizeStream(a));
    HOLDS(station[0] == 9 && station[4095] == 9);
    (void)memset(station, 3, 4096);
    GIVES(0, acl.aclrtMemcpyAsync(p, 4096, station, 4096, H2D,
                                  a)); /* up, and other bytes down to the same place */
    GIVES(0, acl.aclrtMemcpyAsync(station, 4096, q, 4096, D2H, a));
    GIVES(0, acl.aclrtSynchronizeStream(a));
    HOLDS(station[0] == 9 && station[4095] == 9);
    GIVES(0, acl.aclrtMemcpy(host, 4096, p, 4096, D2H));
    HOLDS(host[0] == 3 && host[4095] == 3);
    GIVES(0, acl.aclrtMemcpy(host, 4096, q, 4096, D2H));
    HOLDS(host[0] == 9 && host[4095] == 9);
    GIVES(0, acl.aclrtMemcpy2d(host, 3, q, 64, 3, 10, D2H));
    no_rule_broken();
}

static void nan_filled(void)
{
    begin();
    float values[16];
    GIVES(0, acl.aclrtMemcpy(values, sizeof values, device(sizeof values), sizeof values, D2H));
    for (int i = 0; i < 16; i++) {
        HOLDS(isnan(values[i]));
    }
    HOLDS((uintptr_t)device(64) % 64 == 0 && (uintptr_t)device(64) % 128 != 0);
}

/* The table of kinds of events. */
static void events(void)
{
    begin();
    void *a = stream(), *b = stream(), *plain = NULL, *flag = NULL, *ex = NULL;
    int status = 7;
    GIVES(0, acl.aclrtCreateEvent(&plain));
    GIVES(0, acl.aclrtCreateEventWithFlag(&flag, SYNC | TIME));
    GIVES(0, acl.aclrtCreateEventExWithFlag(&ex, SYNC | TIME));
    GIVES(0, acl.aclrtQueryEventStatus(plain, &status));
    GIVES(0, status);
    GIVES(0, acl.aclrtQueryEventStatus(flag, &status));
    GIVES(0, status);
    GIVES(0, acl.aclrtQueryEventStatus(ex, &status));
    GIVES(1, status);
    GIVES(0, acl.aclrtSynchronizeEvent(plain));
    GIVES(0, acl.aclrtSynchronizeEvent(flag));
    GIVES(0, acl.aclrtSynchronizeEvent(ex));
    /* A wait for one of WithFlag blocks until somebody records. */
    char *p = device(64);
    GIVES(0, acl.aclrtStreamWaitEvent(b, flag));
    GIVES(0, acl.aclrtMemsetAsync(p, 64, 2, 64, b));
    GIVES(0, acl.aclrtMemsetAsync(p, 64, 1, 64, a));
    GIVES(0, acl.aclrtRecordEvent(flag, a));
    GIVES(0, acl.aclrtSynchronizeStream(b));
    GIVES(0, acl.aclrtMemcpy(host, 64, p, 64, D2H));
    GIVES(2, host[0]);
    GIVES(0, acl.aclrtResetEvent(flag, b));
    GIVES(0, acl.aclrtResetEvent(plain, b));
    GIVES(0, acl.aclrtRecordEvent(flag, a));
    /* The others are recorded again at will; a wait is for the latest record before it. */
    GIVES(0, acl.aclrtRecordEvent(ex, a));
    GIVES(0, acl.aclrtRecordEvent(ex, a));
    GIVES(0, acl.aclrtStreamWaitEvent(a, ex));
    GIVES(0, acl.aclrtRecordEvent(plain, b));
    GIVES(0, acl.aclrtStreamWaitEvent(a, plain));
    GIVES(0, acl.aclrtDestroyEvent(plain)); /* while it may be waited for */
    GIVES(0, acl.aclrtSynchronizeDevice());
    float ms = -1;
    GIVES(0, acl.aclrtEventElapsedTime(&ms, flag, ex));
    HOLDS(ms >= 0);
    no_rule_broken();
}

static void errors_keep(void)
{
    begin();
    HOLDS(acl.aclGetRecentErrMsg() == NULL);
    GIVES(100000, acl.aclrtFree(NULL));
    TEXT_HAS("aclrtFree");
    TEXT_HAS("aclrtFree");
}

static void errors_clear(void)
{
    begin();
    GIVES(100000, acl.aclrtFree(NULL));
    const char *text = acl.aclGetRecentErrMsg();
    HOLDS(text != NULL && strstr(text, "EH0001") != NULL);
    HOLDS(acl.aclGetRecentErrMsg() == NULL);
}

static void count_is(uint32_t want)
{
    uint32_t count = 99;
    GIVES(0, acl.aclInit(NULL));
    GIVES(0, acl.aclrtGetDeviceCount(&count));
    GIVES(want, count);
}

static void one_visible(void)
{
    count_is(1);
}

static void two_visible(void)
{
    count_is(2);
}

static void no_driver(void)
{
    uint32_t count = 99;
    GIVES(0, acl.aclInit(NULL));
    GIVES(207004, acl.aclrtGetDeviceCount(&count));
    GIVES(0, count);
}

static void open_fault(void)
{
    GIVES(0, acl.aclInit(NULL));
    GIVES(507033, acl.aclrtSetDevice(0));
    TEXT_HAS("EL0003");
}

static void lost(void)
{
    begin();
    char *p = device(64);
    int status = 0;
    GIVES(0, acl.aclrtMemsetAsync(p, 64, 1, 64, NULL));
    GIVES(507010, acl.aclrtSynchronizeStream(NULL));
    void *more = NULL;
    GIVES(507010, acl.aclrtMalloc(&more, 64, 0));
    GIVES(507010, acl.aclrtMemcpy(host, 64, p, 64, D2H));
    GIVES(507010, acl.aclrtMemsetAsync(p, 64, 1, 64, NULL));
    GIVES(0, acl.aclrtQueryDeviceStatus(0, &status));
    GIVES(1, status);
}

static void ecc(void)
{
    begin();
    char *p = device(64);
    int status = 0;
    GIVES(0, acl.aclrtMemsetAsync(p, 64, 1, 64, NULL));
    GIVES(0, acl.aclrtMemsetAsync(p, 64, 2, 64, NULL));
    GIVES(507054, acl.aclrtSynchronizeDevice());
    TEXT_HAS("ECC");
    GIVES(0, acl.aclrtQueryDeviceStatus(0, &status));
    GIVES(1, status);
}

/* With ACL_STOP_ON_FAILURE what follows a fault does not run. */
static void stops(void)
{
    begin();
    void *a = stream();
    char *p = device(64);
    GIVES(0, acl.aclrtMemset(p, 64, 5, 64));
    GIVES(0, acl.aclrtSetStreamFailureMode(a, 1));
    GIVES(0, acl.aclrtLaunchHostFunc(a, gate, NULL));
    GIVES(0, acl.aclrtMemsetAsync(p, 64, 1, 64, a));
    GIVES(0, acl.aclrtMemsetAsync(p, 64, 2, 64, a));
    atomic_store(&gate_open, true);
    GIVES(507035, acl.aclrtSynchronizeStream(a));
    GIVES(0, acl.aclrtMemcpy(host, 64, p, 64, D2H));
    GIVES(5, host[0]);
    HOLDS(acl.aclrtMemsetAsync(p, 64, 3, 64, a) != 0);
}

/* In late mode nothing is done before the host waits. */
static void late(void)
{
    begin();
    void *a = stream();
    GIVES(0, acl.aclrtMemsetAsync(device(64), 64, 1, 64, a));
    (void)usleep(20000);
    int status = 7;
    GIVES(0, acl.aclrtStreamQuery(a, &status)); /* asking lets it begin */
    GIVES(1, status);
    while (status != 0) {
        (void)usleep(100);
        GIVES(0, acl.aclrtStreamQuery(a, &status));
    }
    no_rule_broken();
}

static void numbers(void)
{
    GIVES(0, acl.aclInit(NULL));
    int mode = 0;
    int32_t major = 0, minor = 0, patch = 0;
    GIVES(0, acl.aclrtGetRunMode(&mode));
    GIVES(1, mode);
    GIVES(0, acl.aclrtGetVersion(&major, &minor, &patch));
    GIVES(13, minor);
    HOLDS(strcmp(acl.aclrtGetSocName(), "Ascend910_9391") == 0);
    GIVES(2, acl.aclDataTypeSize(27));
    GIVES(8, acl.aclDataTypeSize(9));
    GIVES(0, acl.aclDataTypeSize(-1));
    for (unsigned bits = 0; bits < 0x10000; bits++) {
        float value = acl.aclFloat16ToFloat((uint16_t)bits);
        HOLDS(isnan(value) || acl.aclFloatToFloat16(value) == bits);
    }
    static const struct {
        float value;
        unsigned bits;
    } half[] = {{1, 0x3c00},          {65504, 0x7bff},       {65519.996f, 0x7bff},  {65520, 0x7c00},
                {2049, 0x6800},       {2051, 0x6802},        {0x1p-24f, 1},         {0x1p-25f, 0},
                {0x1.8p-25f, 1},      {0x1.ff8p-15f, 0x3ff}, {0x1.ffcp-15f, 0x400}, {-0.0f, 0x8000},
                {0x1.ffep0f, 0x4000}, {-INFINITY, 0xfc00}};
    for (size_t i = 0; i < sizeof half / sizeof half[0]; i++) {
        GIVES(half[i].bits, acl.aclFloatToFloat16(half[i].value));
    }
}

/* ---- Reports at exit
 * --------------------------------------------------------------------------------------- */

static void leaves_things(void)
{
    begin();
    (void)stream();
    (void)device(64);
    exit(0);
}

static void leaves_nothing(void)
{
    begin();
    void *a = stream();
    char *p = device(64);
    GIVES(0, acl.aclrtMemsetAsync(p, 64, 1, 64, a));
    GIVES(0, acl.aclrtMemsetAsync(p, 64, 2, 64, a));
    GIVES(0, acl.aclrtSynchronizeStream(a));
    GIVES(0, acl.aclrtMemsetAsync(p, 64, 3, 64, a));
    GIVES(0, acl.aclrtSynchronizeStream(a));
    GIVES(0, acl.aclrtFree(p));
    GIVES(0, acl.aclrtDestroyStream(a));
    exit(0);
}

#define HOME CT_BINARY_DIR "/fake_cann_test_home"
#define COUNTS CT_BINARY_DIR "/fake_cann_test_counts"

#ifndef CT_EMULATED
static bool has_symbol(const char *library, const char *name)
{
    char path[4096];
    (void)snprintf(path, sizeof path, HOME "/lib64/%s", library);
    void *opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (opened == NULL) {
        (void)fprintf(stderr, "%s\n", dlerror());
        _exit(2);
    }
    return dlsym(opened, name) != NULL;
}

/* A folder made without some functions: dlsym() does not find them, and the libraries still work. */
static void taken_away(void)
{
    GIVES(0, system("'" CT_BINARY_DIR "/bin/fake_cann_home' '" CT_BINARY_DIR "/fake_cann' " HOME
                    " --cann 8.1 --without aclrtMalloc,aclrtSynchronizeDevice --hcomm"));
    HOLDS(!has_symbol("libascendcl.so", "aclrtMalloc"));
    HOLDS(!has_symbol("libascendcl.so", "aclrtSynchronizeDevice"));
    HOLDS(!has_symbol("libascendcl.so", "aclrtLaunchHostFunc"));
    HOLDS(has_symbol("libascendcl.so", "aclrtMallocAlign32"));
    HOLDS(!has_symbol("libhccl.so", "HcclGetRootInfo"));
    HOLDS(has_symbol("libhccl.so", "HcclAllReduce"));
    HOLDS(has_symbol("libhcomm.so", "HcclGetRootInfo"));
    HOLDS(!has_symbol("libhcomm.so", "HcclAllReduce"));
}
#endif

static const struct {
    void (*run)(void);
    const char *settings;
    int exit_code;
} cases[] = {
    {ordered, NULL, 0},
    {ordered, "FAKE_CANN_LATE=3", 0},
    {ordered, "FAKE_CANN_DELAY=2000 FAKE_CANN_SEED=7", 0},
    {stations, NULL, 0},
    {nan_filled, NULL, 0},
    {events, NULL, 0},
    {events, "FAKE_CANN_LATE=3", 0},
    {errors_keep, NULL, 0},
    {errors_clear, "FAKE_CANN_ERRMSG=clear", 0},
    {errors_clear, "FAKE_CANN_VERSION=8.1", 0},
    {one_visible, "ASCEND_RT_VISIBLE_DEVICES=1", 0},
    {one_visible, "ASCEND_RT_VISIBLE_DEVICES=0,x,1", 0},
    {one_visible, "ASCEND_RT_VISIBLE_DEVICES=0,2", 0},
    {two_visible, "ASCEND_RT_VISIBLE_DEVICES=0,1", 0},
    {two_visible, "FAKE_CANN_DEVICES=8 ASCEND_RT_VISIBLE_DEVICES=3,7", 0},
    {no_driver, "FAKE_CANN_DEVICES=0", 0},
    {open_fault, "FAKE_CANN_FAULT=open", 0},
    {lost, "FAKE_CANN_FAULT=lost=1", 0},
    {ecc, "FAKE_CANN_FAULT=oom=9,ecc=2", 0},
    {stops, "FAKE_CANN_FAULT=vector=2", 0}, /* the function of the host was the first task */
    {late, "FAKE_CANN_LATE=60000", 0},
    {numbers, "FAKE_CANN_VERSION=8.1 FAKE_CANN_SOC=Ascend910_9391", 0},
    {leaves_things, NULL, 0},
    {leaves_things, "FAKE_CANN_LEAKS=fail", 86},
    {leaves_nothing, "FAKE_CANN_LEAKS=fail FAKE_CANN_COUNTS=" COUNTS, 0},
#ifndef CT_EMULATED /* system() knows no emulator */
    {taken_away, NULL, 0},
#endif
};

static int check_counts(void)
{
    char text[4096];
    FILE *file = fopen(COUNTS, "r");
    size_t n = file == NULL ? 0 : fread(text, 1, sizeof text - 1, file);
    text[n] = '\0';
    if (file != NULL) {
        (void)fclose(file);
    }
    (void)remove(COUNTS);
    static const char *const wanted[] = {
        "sync 1 launches 2 aclrtMemsetAsync=2\n", "sync 2 launches 1 aclrtMemsetAsync=1\n",
        "total aclrtMemsetAsync calls 3 launches 3\n", "total aclrtMalloc calls 1 launches 0\n"};
    int bad = 0;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        if (strstr(text, wanted[i]) == NULL) {
            (void)fprintf(stderr, "counts: wanted '%s' in:\n%s", wanted[i], text);
            bad++;
        }
    }
    return bad;
}

int main(void)
{
    int bad = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            set_words(cases[i].settings);
            load_acl();
            cases[i].run();
            _exit(0);
        }
        int status = -1;
        (void)waitpid(child, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != cases[i].exit_code) {
            (void)fprintf(stderr, "case %zu (%s): wanted exit code %d, got status 0x%x\n", i,
                          cases[i].settings == NULL ? "" : cases[i].settings, cases[i].exit_code, status);
            bad++;
        }
    }
    bad += check_counts();
    return bad == 0 ? 0 : 1;
}
