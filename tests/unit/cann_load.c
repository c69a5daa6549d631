/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: cann base */
/* What is said where there is no CANN, where a library is for linking only, and of codes and chips. The loaded libraries themselves: tests/fake/cann. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cann/cann.h"

/* Loading happens once a process: each case is a child, which writes its message to a pipe. */
static void load_in_child(const char *home, ct_status *out_status, char *out, size_t size)
{
    int ends[2], code = 0;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const cti_hccl *hccl;
        ct_err err = {0};
        (void)setenv("ASCEND_HOME_PATH", home, 1);
        (void)unsetenv("ASCEND_TOOLKIT_HOME");
        (void)unsetenv("LD_LIBRARY_PATH");
        const ct_status st = cti_hccl_load(&hccl, &err);
        const ct_status second = cti_hccl_load(&hccl, NULL);
        const ssize_t n = write(ends[1], err.message, strlen(err.message));
        _exit(n < 0 || second != st ? 255 : (int)st);
    }
    close(ends[1]);
    const ssize_t n = read(ends[0], out, size - 1);
    out[n > 0 ? n : 0] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &code, 0), child);
    *out_status = (ct_status)WEXITSTATUS(code);
}

static void wants(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("'%s' does not say '%s'", text, part);
    }
}

static void no_cann(void **state)
{
    (void)state;
    ct_status st;
    char text[4096];
    if (access("/usr/local/Ascend", F_OK) == 0) {
        skip(); /* this machine has one */
    }
    load_in_child("/nonexistent/cann", &st, text, sizeof text);
    assert_int_equal(st, CT_ERR_NOT_FOUND);
    wants(text, "there is no CANN");
    wants(text, "'/nonexistent/cann'");
    wants(text, "set_env.sh");
}

/* The library of a folder named devlib is found through a link, and refused; a file that is no library is told as the loader tells it. */
static void refused_libraries(void **state)
{
    (void)state;
    ct_status st;
    char text[4096], dir[] = "/tmp/ctitan-cann-XXXXXX", path[256], link[256];
    if (access("/usr/local/Ascend", F_OK) == 0) {
        skip();
    }
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/devlib", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/lib64", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/devlib/libascendcl.so", dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    (void)snprintf(link, sizeof link, "%s/lib64/libascendcl.so", dir);
    assert_int_equal(symlink(path, link), 0);
    load_in_child(dir, &st, text, sizeof text);
    assert_int_equal(st, CT_ERR_NOT_FOUND);
    wants(text, "is a library for linking only");
    (void)snprintf(path, sizeof path, "%s/lib64/libacl_rt.so", dir);
    file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs("not a library", file);
    fclose(file);
    load_in_child(dir, &st, text, sizeof text);
    assert_int_equal(st, CT_ERR_NOT_FOUND);
    wants(text, "libacl_rt.so: file too short");
    (void)unlink(link);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/devlib/libascendcl.so", dir);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/devlib", dir);
    (void)rmdir(path);
    (void)snprintf(path, sizeof path, "%s/lib64", dir);
    (void)rmdir(path);
    (void)rmdir(dir);
}

static const char *words_now;
static const char *words(void)
{
    return words_now;
}

static void errors(void **state)
{
    (void)state;
    static const struct {
        int code;
        const char *words;
        ct_status status;
        const char *parts[3];
    } rows[] = {
        {207001, "EL0004: out of\n  memory.\n", CT_ERR_MEMORY, {"malloc of 7 bytes: error 207001 (device memory ran out): EL0004: out of memory; ", "device is busy", NULL}},
        {207001, NULL, CT_ERR_MEMORY, {"ctitan plan", NULL, NULL}},
        {507015, "", CT_ERR_BACKEND, {"a kernel failed", "CTITAN_NPU_SYNC=1", NULL}},
        {507046, NULL, CT_ERR_TIMEOUT, {"collective", NULL, NULL}},
        {507054, NULL, CT_ERR_BACKEND, {"ECC", "take the card out of use", NULL}},
        {561107, NULL, CT_ERR_BACKEND, {"ASCEND_OPP_PATH", "set_env.sh", NULL}},
        {424242, NULL, CT_ERR_BACKEND, {"malloc of 7 bytes: error 424242", NULL, NULL}},
        {107001, "EE2002", CT_ERR_BACKEND, {"ASCEND_RT_VISIBLE_DEVICES is not set", "ascending list", NULL}},
    };
    (void)unsetenv("ASCEND_RT_VISIBLE_DEVICES");
    const cti_cann cann = {.aclGetRecentErrMsg = words};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ct_err err = {0};
        words_now = rows[i].words;
        assert_int_equal(cti_acl_fail(&cann, rows[i].code, &err, "malloc of %d bytes", 7), rows[i].status);
        for (int k = 0; k < 3 && rows[i].parts[k] != NULL; k++) {
            wants(err.message, rows[i].parts[k]);
        }
    }
    wants(cti_cann_text_hint("[PID: 1] EI0020: Communication_Error_Bind_IP_Port"), "HCCL_NPU_SOCKET_PORT_RANGE");
    assert_null(cti_cann_text_hint("nothing known"));
    assert_null(cti_cann_text_hint(NULL));
}

static void chips(void **state)
{
    (void)state;
    double bf16, f32;
    assert_true(cti_npu_peaks("Ascend910B3", &bf16, &f32));
    assert_true(bf16 == 294.912e12 && f32 == 0.0);
    assert_true(cti_npu_peaks("Ascend910B4-1", &bf16, &f32));
    assert_true(cti_npu_memory_bytes("Ascend910B4-1") == INT64_C(64) << 30);
    assert_true(cti_npu_memory_bytes("Ascend910B4") == INT64_C(32) << 30);
    assert_true(cti_npu_peaks("Ascend950DT_9591", &bf16, &f32));
    assert_true(bf16 == 531e12);
    assert_false(cti_npu_peaks("Ascend9999", &bf16, &f32));
    assert_true(bf16 == 0.0);
    assert_false(cti_npu_peaks(NULL, &bf16, &f32));
    assert_false(cti_npu_has_bf16("Ascend310P3"));
    assert_false(cti_npu_has_bf16("Ascend910ProA"));
    assert_true(cti_npu_has_bf16("Ascend910_9392"));
    HcclCommConfig config;
    cti_hccl_config_init(&config);
    assert_true(config.size == 300 && config.magic == 0xf0f0f0f0u && config.hcclBufferSize == UINT32_MAX && config.hcclCommName[0] == '\0');
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_cann), cmocka_unit_test(refused_libraries), cmocka_unit_test(errors), cmocka_unit_test(chips)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
