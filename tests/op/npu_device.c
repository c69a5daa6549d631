/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: backend/npu cann backend/ref backend ops ir mesh base */
/* labels: slow */
/* The npu backend's device over the doubles of CANN's libraries: memory, copies, streams, events, and what is said where CANN, its device or its
 * memory fails. Each case is a process of its own, since CANN is loaded once in one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "backend/backend.h"
#include "backend/npu/npu.h"
#include "base/base.h"
#include "npu.h"

static const ct_backend *npu;

/* ---- bodies: what a process does ----------------------------------------------------------------------------------- */

static ct_status run_op(void *device, int32_t op, void *block, void *stream, ct_err *err)
{
    const ct_tensor a = {.data = block, .dtype = CT_DTYPE_F32, .ndim = 1, .dims = {64}};
    ct_tensor y = a;
    const ct_tensor in[] = {a, a};
    y.data = (char *)block + 256;
    y.dims[0] = op == CT_OP_swiglu ? 32 : 64;
    const ct_launch launch = {.in = in, .n_in = 2, .out = &y, .n_out = 1, .device = device, .stream = stream};
    return npu->kernels[op].run(&launch, err);
}

/* Opens a device, runs two adds and waits. */
static ct_status add_twice(ct_err *err)
{
    void *device = NULL, *block = NULL;
    const ct_alloc *alloc = ct_alloc_system();
    ct_status st = npu->device_open(alloc, 0, &device, err);
    if (st != CT_OK) {
        return st;
    }
    st = npu->memory_alloc(device, 1 << 20, &block, err);
    for (int i = 0; i < 2 && st == CT_OK; i++) {
        st = run_op(device, CT_OP_add, block, npu->stream(device, 0), err);
    }
    if (st == CT_OK) {
        st = npu->synchronize(device, npu->stream(device, 0), err);
    }
    npu->memory_free(device, block, 1 << 20);
    npu->device_close(&device);
    return st;
}

static ct_status swiglu(ct_err *err)
{
    void *device = NULL, *block = NULL;
    ct_status st = npu->device_open(ct_alloc_system(), 0, &device, err);
    if (st != CT_OK) {
        return st;
    }
    st = npu->memory_alloc(device, 4096, &block, err);
    if (st == CT_OK) {
        st = run_op(device, CT_OP_swiglu, block, npu->stream(device, 0), err);
    }
    npu->memory_free(device, block, 4096);
    npu->device_close(&device);
    return st;
}

static ct_status count(ct_err *err)
{
    int32_t n = -1;
    CT_TRY(npu->device_count(&n, err));
    return n == 0 ? CT_END_OF_DATA : CT_OK;
}

static ct_status open_second(ct_err *err)
{
    void *device = NULL;
    const ct_status st = npu->device_open(ct_alloc_system(), 2, &device, err);
    npu->device_close(&device);
    return st;
}

static ct_status deterministic(ct_err *err)
{
    ct_backend_npu_set_deterministic(true);
    return add_twice(err);
}

/* What stream 0 makes is read on stream 1 behind an event, and what that makes by the host; an event that was never recorded is no wait; memory is zeros
 * at first; small and large copies arrive. The doubles see every access that nothing orders. */
enum { LARGE = 5 << 20 };
static unsigned char host[LARGE], back[LARGE];

static ct_status use_memory_and_streams(void *device, void *block, ct_err *err)
{
    void *const s0 = npu->stream(device, 0), *const s1 = npu->stream(device, 1);
    float x[64], y[64];
    ct_status st = s0 != s1 && npu->stream(device, 2) == NULL ? CT_OK : CT_ERR_STATE;
    CT_TRY(st);
    memset(back, 1, LARGE);
    CT_TRY(npu->copy_to_host(device, back, block, LARGE, s0, err));
    st = memcmp(host, back, LARGE) == 0 && (uintptr_t)block % 64 == 0 ? CT_OK : CT_ERR_NUMERIC; /* zeros */
    for (int i = 0; i < LARGE; i++) {
        host[i] = (unsigned char)(i * 7);
    }
    CT_TRY(npu->copy_to_device(device, block, host, LARGE, s0, err));
    memset(host, 0xee, 100); /* the caller's again */
    CT_TRY(npu->copy_to_host(device, back, block, LARGE, NULL, err));
    for (int i = 0; i < LARGE; i++) {
        st = back[i] == (unsigned char)(i * 7) ? st : CT_ERR_NUMERIC;
    }
    CT_TRY(npu->stream_wait(device, s0, 40, err));
    for (int round = 0; round < 200; round++) { /* the ring of pinned memory goes round, events are recorded again */
        for (int i = 0; i < 64; i++) {
            x[i] = (float)(i + round);
        }
        CT_TRY(npu->copy_to_device(device, block, x, sizeof x, s0, err));
        CT_TRY(npu->copy_to_device(device, (char *)block + 4096, host, 200000, s0, err));
        x[0] = -1.0F;
        CT_TRY(run_op(device, CT_OP_add, block, s0, err));
        CT_TRY(npu->event_record(device, 17, s0, err));
        CT_TRY(npu->stream_wait(device, s1, 17, err));
        CT_TRY(run_op(device, CT_OP_mul, (char *)block + 256, s1, err));
        CT_TRY(npu->event_record(device, 3, s1, err));
        CT_TRY(npu->stream_wait(device, s0, 3, err));
        CT_TRY(npu->copy_to_host(device, y, (char *)block + 512, sizeof y, s0, err));
        for (int i = 0; i < 64; i++) {
            const float sum = 2.0F * (float)(i + round);
            st = y[i] == sum * sum ? st : CT_ERR_NUMERIC;
        }
    }
    return st;
}

static ct_status memory_and_streams(ct_err *err)
{
    void *device = NULL, *block = NULL;
    ct_status st = npu->device_open(ct_alloc_system(), 0, &device, err);
    st = st == CT_OK ? npu->memory_alloc(device, LARGE, &block, err) : st;
    st = st == CT_OK ? use_memory_and_streams(device, block, err) : st;
    if (device != NULL) {
        npu->memory_free(device, block, LARGE);
    }
    npu->device_close(&device);
    return st;
}

static ct_status facts(ct_err *err)
{
    void *device = NULL;
    ct_device_facts f;
    CT_TRY(npu->device_open(ct_alloc_system(), 1, &device, err));
    CT_TRY(npu->device_facts(device, &f, err));
    npu->device_close(&device);
    return CT_FAIL(err, CT_END_OF_DATA, "%s %s %lld of %lld %.4g %s bf16 %d", f.type, f.name, (long long)(f.memory_free_bytes >> 20), (long long)(f.memory_bytes >> 20),
                   f.peak_flops_bf16, f.health, (int)f.has_native_bf16);
}

/* Another thread than the one that opened the device. */
static ct_status thread_status;
static void *thread_body(void *err)
{
    thread_status = add_twice(err);
    return NULL;
}
static ct_status other_thread(ct_err *err)
{
    void *device = NULL, *block = NULL;
    pthread_t thread;
    CT_TRY(npu->device_open(ct_alloc_system(), 0, &device, err));
    CT_TRY(npu->memory_alloc(device, 1024, &block, err));
    if (pthread_create(&thread, NULL, thread_body, err) != 0) {
        return CT_ERR_STATE;
    }
    (void)pthread_join(thread, NULL);
    CT_TRY(thread_status);
    CT_TRY(npu->copy_to_host(device, &(float){0}, block, 4, NULL, err)); /* this thread's device still */
    npu->memory_free(device, block, 1024);
    npu->device_close(&device);
    return CT_OK;
}

/* ---- processes ----------------------------------------------------------------------------------------------------- */

typedef ct_status (*body_fn)(ct_err *err);

typedef struct device_case {
    const char *name;
    body_fn body;
    const char *home;       /* arguments of fake_cann_home; NULL: the doubles as they are */
    const char *set[4];     /* NAME=VALUE */
    ct_status status;
    const char *says[4];
} device_case;

static const device_case CASES[] = {
    {"memory, copies, streams, events", memory_and_streams, NULL, {"FAKE_CANN_LEAKS=fail", "FAKE_CANN_LINTS=trap"}, CT_OK, {NULL}},
    {"the same without Ex events and aligned blocks", memory_and_streams, "--without aclrtCreateEventExWithFlag,aclrtMallocAlign32", {"FAKE_CANN_LEAKS=fail"}, CT_OK, {NULL}},
    {"the same, everything late", memory_and_streams, NULL, {"FAKE_CANN_LATE=1"}, CT_OK, {NULL}},
    {"two threads", other_thread, NULL, {"FAKE_CANN_LEAKS=fail"}, CT_OK, {NULL}},
    {"operators by their split names", add_twice, "--split", {NULL}, CT_OK, {NULL}},
    {"8.1's functions", add_twice, "--cann 8.1", {"FAKE_CANN_VERSION=8.1"}, CT_OK, {NULL}},
    {"sums in one order", deterministic, NULL, {NULL}, CT_OK, {NULL}},
    {"sums in one order, no switch", deterministic, "--without aclrtSetSysParamOpt", {NULL}, CT_ERR_UNSUPPORTED, {"npu 0", "--debug.deterministic", "aclrtSetSysParamOpt"}},
    {"facts", facts, NULL, {"FAKE_CANN_SOC=Ascend910B2", "FAKE_CANN_MEMORY=1000"}, CT_END_OF_DATA, {"NPU Ascend910B2", " of 1000 3.539e+14 OK bf16 1"}},
    {"facts of a chip without a name", facts, NULL, {"FAKE_CANN_SOC=none"}, CT_END_OF_DATA, {"NPU Ascend ", " 0 OK bf16 1"}},
    {"no CANN", count, "-", {NULL}, CT_END_OF_DATA, {NULL}},
    {"no CANN, a device all the same", add_twice, "-", {NULL}, CT_ERR_NOT_FOUND, {"npu 0: there is no CANN", "set_env.sh"}},
    {"no driver", add_twice, NULL, {"FAKE_CANN_DEVICES=0"}, CT_ERR_NOT_FOUND, {"npu 0", "207004", "npu-smi"}},
    {"no driver, counted", count, NULL, {"FAKE_CANN_DEVICES=0"}, CT_END_OF_DATA, {NULL}},
    {"a list that goes down", count, NULL, {"ASCEND_RT_VISIBLE_DEVICES=1,0"}, CT_ERR_NOT_FOUND, {"EE2002", "(ASCEND_RT_VISIBLE_DEVICES is 1,0)", "ascending"}},
    {"a device that is not there", open_second, NULL, {"ASCEND_RT_VISIBLE_DEVICES=1"}, CT_ERR_RANGE, {"device 2 was asked for, there are 1 (ASCEND_RT_VISIBLE_DEVICES is 1)"}},
    {"a device that cannot be opened", add_twice, NULL, {"FAKE_CANN_FAULT=open=1"}, CT_ERR_BACKEND, {"npu 0: aclrtSetDevice", "507033", "EL0003"}},
    {"no memory", add_twice, NULL, {"FAKE_CANN_FAULT=oom=1"}, CT_ERR_MEMORY, {"aclrtMalloc of 1048576 bytes (", " are free of ", "207001 (device memory ran out)", "EL0004"}},
    {"no pinned memory", memory_and_streams, NULL, {"FAKE_CANN_FAULT=oom_host=1"}, CT_ERR_MEMORY, {"aclrtMallocHost", "207001"}},
    {"a kernel that fails", add_twice, NULL, {"FAKE_CANN_FAULT=vector=2"}, CT_ERR_BACKEND, {"aclrtSynchronizeStream (computation)", "507035", "CTITAN_NPU_SYNC=1"}},
    {"a kernel that fails, waited for", add_twice, NULL, {"FAKE_CANN_FAULT=vector=2", "CTITAN_NPU_SYNC=1"}, CT_ERR_BACKEND, {"add: aclnnAdd (waited for) of f32 [64]", "507035"}},
    {"memory with wrong bits", add_twice, NULL, {"FAKE_CANN_FAULT=ecc=2"}, CT_ERR_BACKEND, {"507054", "ECC", "take the card out of use"}},
    {"a device that is lost", add_twice, NULL, {"FAKE_CANN_FAULT=lost=1"}, CT_ERR_BACKEND, {"heartbeat"}},
    {"a wait without end", add_twice, NULL, {"FAKE_CANN_FAULT=sync_timeout=1"}, CT_ERR_TIMEOUT, {"507046", "EE1002", "collective"}},
    {"an operator that is not there", swiglu, "--without aclnnSwiGlu,aclnnSwiGluGetWorkspaceSize", {NULL}, CT_ERR_UNSUPPORTED,
     {"the installed CANN (CANN 9.", "no operator for 'swiglu': aclnnSwiGlu() or aclnnSwiGluGetWorkspaceSize()", "libopapi.so", "libaclnn_math.so"}},
    {"half an operator", swiglu, "--without aclnnSwiGlu", {NULL}, CT_ERR_UNSUPPORTED, {"no operator for 'swiglu'"}},
    {"a runtime without a function", count, "--without aclrtMemcpyAsync", {NULL}, CT_ERR_UNSUPPORTED, {"CANN's runtime (CANN 9.", "written for CANN 8.0 to 9.x) has no function aclrtMemcpyAsync()", "libascendcl.so"}},
    {"no operators' interface", count, "--no libnnopbase", {NULL}, CT_ERR_UNSUPPORTED, {"CANN's operator interface (CANN 9.", "has no function aclCreateTensor()", "libnnopbase.so"}},
    {"kernels that cannot be found", add_twice, NULL, {"ASCEND_OPP_PATH="}, CT_ERR_BACKEND, {"561107", "add: aclnnAddGetWorkspaceSize of f32 [64], f32 [64], f32 [64]", "set_env.sh"}},
};

static void set_all(const device_case *c, const char *home)
{
    (void)setenv("ASCEND_HOME_PATH", home, 1);
    (void)unsetenv("ASCEND_TOOLKIT_HOME");
    for (int i = 0; i < 4 && c->set[i] != NULL; i++) {
        char name[64];
        const char *equals = strchr(c->set[i], '=');
        (void)snprintf(name, sizeof name, "%.*s", (int)(equals - c->set[i]), c->set[i]);
        (void)(equals[1] != '\0' ? setenv(name, equals + 1, 1) : unsetenv(name));
    }
}

static void run_case(const device_case *c, int number)
{
    char home[128] = CT_BINARY_DIR "/fake_cann", command[1024], text[CT_ERR_MESSAGE_BYTES];
    int ends[2], code = 0;
    if (c->home != NULL) {
        (void)snprintf(home, sizeof home, "/tmp/ctitan-npu-%d-%d", (int)getpid(), number);
        if (strcmp(c->home, "-") != 0) { /* "-": a folder that is not there */
            (void)snprintf(command, sizeof command, "%s/bin/fake_cann_home %s/fake_cann %s %s", CT_BINARY_DIR, CT_BINARY_DIR, home, c->home);
            if (system(command) != 0) {
                fail_msg("'%s' failed", command);
            }
        }
    }
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        ct_err err = {0};
        set_all(c, home);
        const ct_status st = c->body(&err);
        const ssize_t n = write(ends[1], err.message, strlen(err.message));
        (void)close(ends[1]);
        exit(n < 0 ? 99 : (int)st); /* through the handlers of the doubles, which look for leaks */
    }
    (void)close(ends[1]);
    const ssize_t n = read(ends[0], text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    (void)close(ends[0]);
    assert_int_equal(waitpid(child, &code, 0), child);
    if (c->home != NULL && strcmp(c->home, "-") != 0) {
        (void)snprintf(command, sizeof command, "rm -rf %s", home);
        assert_int_equal(system(command), 0);
    }
    if (!WIFEXITED(code) || WEXITSTATUS(code) != (int)c->status) {
        fail_msg("%s: ended with %s %d, wanted %s: %s", c->name, WIFEXITED(code) ? "status" : "signal", WIFEXITED(code) ? WEXITSTATUS(code) : WTERMSIG(code),
                 ct_status_name(c->status), text);
    }
    for (int i = 0; i < 4 && c->says[i] != NULL; i++) {
        if (strstr(text, c->says[i]) == NULL) {
            fail_msg("%s: '%s' does not say '%s'", c->name, text, c->says[i]);
        }
    }
}

static void all_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        run_case(&CASES[i], (int)i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_cases)};
    if (!npu_use_doubles()) {
        return 77;
    }
    npu = ct_backend_npu();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
