/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of CANN in its own words, with what to do about them. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cann/cann.h"

typedef struct code_row {
    int code;
    ct_status status;
    const char *meaning;
    const char *hint; /* NULL: none */
} code_row;

#define NO_DEVICE "check that the driver is loaded (npu-smi info), that the device is mapped into the container, and that no other process holds it"
#define KERNEL_FAULT "CTITAN_NPU_SYNC=1 makes each operator wait, so that the failing one is named; the device must be opened anew"
#define HANG "see first whether a collective waits for a rank that stopped"
#define HARDWARE "take the card out of use"
#define NO_MEMORY "`ctitan plan` says what the run needs; other processes and HCCL's buffers (2 x HCCL_BUFFSIZE a group) take from the same"
#define NO_KERNELS "install the kernel package of this chip and source CANN's set_env.sh"

static const code_row CODES[] = {
    {100000, CT_ERR_BACKEND, "invalid argument", NULL},
    {100001, CT_ERR_BACKEND, "ACL is not initialised", NULL},
    {100002, CT_ERR_BACKEND, "ACL is initialised already", NULL},
    {100037, CT_ERR_BACKEND, "ACL is finalised already", NULL},
    {107000, CT_ERR_BACKEND, "invalid argument of the runtime", NULL},
    {107001, CT_ERR_BACKEND, "invalid device number", "the index is outside of the visible devices (ASCEND_RT_VISIBLE_DEVICES renumbers them from 0)"},
    {107002, CT_ERR_BACKEND, "the thread has no current device", NULL},
    {107003, CT_ERR_BACKEND, "stream of another context", NULL},
    {107006, CT_ERR_BACKEND, "event without a time", NULL},
    {107017, CT_ERR_BACKEND, "invalid handle", NULL},
    {107018, CT_ERR_BACKEND, "invalid kind of memory", NULL},
    {107019, CT_ERR_TIMEOUT, "a wait took too long", HANG},
    {107020, CT_ERR_TIMEOUT, "a task took too long", HANG},
    {107022, CT_ERR_BACKEND, "the device's tasks were aborted", NULL},
    {107023, CT_ERR_BACKEND, "the stream was aborted", NULL},
    {161001, CT_ERR_BACKEND, "a required operand is missing", NULL},
    {161002, CT_ERR_UNSUPPORTED, "a dtype, shape or value is not accepted", NULL},
    {200000, CT_ERR_MEMORY, "allocation failed", NULL},
    {200001, CT_ERR_UNSUPPORTED, "not supported", NULL},
    {207000, CT_ERR_UNSUPPORTED, "not supported by this device", NULL},
    {207001, CT_ERR_MEMORY, "device memory ran out", NO_MEMORY},
    {207004, CT_ERR_NOT_FOUND, "no device", NO_DEVICE},
    {207005, CT_ERR_BACKEND, "a resource could not be had", NULL},
    {207006, CT_ERR_BACKEND, "no permission", "the user must be in the driver's group (HwHiAiUser)"},
    {207007, CT_ERR_BACKEND, "no events are left", NULL},
    {207008, CT_ERR_BACKEND, "no streams are left", NULL},
    {207018, CT_ERR_MEMORY, "device memory ran out", NO_MEMORY},
    {361001, CT_ERR_BACKEND, "the runtime failed inside of an operator", NULL},
    {500000, CT_ERR_BACKEND, "internal error", NULL},
    {507000, CT_ERR_BACKEND, "internal error of the runtime", NULL},
    {507010, CT_ERR_BACKEND, "the device's heartbeat is lost", HARDWARE},
    {507014, CT_ERR_BACKEND, "a kernel took too long", KERNEL_FAULT},
    {507015, CT_ERR_BACKEND, "a kernel failed", KERNEL_FAULT},
    {507016, CT_ERR_BACKEND, "a kernel trapped", KERNEL_FAULT},
    {507017, CT_ERR_BACKEND, "a kernel on the device's CPU took too long", KERNEL_FAULT},
    {507018, CT_ERR_BACKEND, "a kernel on the device's CPU failed", KERNEL_FAULT},
    {507033, CT_ERR_BACKEND, "the device could not be opened", NO_DEVICE},
    {507034, CT_ERR_BACKEND, "a vector kernel took too long", KERNEL_FAULT},
    {507035, CT_ERR_BACKEND, "a vector kernel failed", KERNEL_FAULT},
    {507046, CT_ERR_TIMEOUT, "a stream did not end in time", HANG},
    {507047, CT_ERR_TIMEOUT, "an event did not come in time", HANG},
    {507053, CT_ERR_BACKEND, "device memory error", HARDWARE},
    {507054, CT_ERR_BACKEND, "device memory error of several bits (ECC)", HARDWARE},
    {507055, CT_ERR_BACKEND, "device memory is suspect", HARDWARE},
    {507056, CT_ERR_BACKEND, "link error", HARDWARE},
    {507057, CT_ERR_BACKEND, "a remote device is suspect", HARDWARE},
    {507899, CT_ERR_BACKEND, "internal error of the driver", NO_DEVICE},
    {507901, CT_ERR_BACKEND, "the connection to the device is lost", "end the run; trying again does not help before the device is reset"},
    {561000, CT_ERR_BACKEND, "internal error of an operator", NULL},
    {561001, CT_ERR_UNSUPPORTED, "shapes do not fit", NULL},
    {561002, CT_ERR_UNSUPPORTED, "the operator cannot be cut into tiles for these shapes", NULL},
    {561003, CT_ERR_UNSUPPORTED, "the kernel is not there", NO_KERNELS},
    {561103, CT_ERR_BACKEND, "an inner step of the operator failed", "often CANN and driver are of versions that do not fit"},
    {561107, CT_ERR_BACKEND, "ASCEND_OPP_PATH is not set", "source CANN's set_env.sh"},
    {561112, CT_ERR_BACKEND, "the kernel package is not installed", NO_KERNELS},
};

#define HOST_PORT "another job of this host has the port: set HCCL_HOST_SOCKET_PORT_RANGE=auto or HCCL_IF_BASE_PORT"
#define NO_BUFFER "no memory for HCCL: lower HCCL_BUFFSIZE, or have fewer groups"
#define BAD_LINK "a link between devices failed"

static const struct {
    const char *code, *hint;
} TEXTS[] = {
    {"EI0020", "processes that share a card want the same port of it: set HCCL_NPU_SOCKET_PORT_RANGE (such as 60000-60200, or auto) on all ranks"},
    {"EI0019", HOST_PORT},
    {"EJ0003", HOST_PORT},
    {"EJ0001", "another process still holds the card; end it, or wait"},
    {"EI0001", "`ctitan doctor npu` says what this variable may be"},
    {"EI0002", "a rank stopped, or is slower than HCCL_EXEC_TIMEOUT allows"},
    {"EI0003", "a collective was called with a bad argument"},
    {"EI0005", "ranks called a collective with different arguments"},
    {"EI0006", "a rank did not connect in time: see which is missing, or raise HCCL_CONNECT_TIMEOUT on all ranks"},
    {"EI0007", NO_BUFFER},
    {"EI0011", NO_BUFFER},
    {"EI0008", "ranks have different versions of HCCL"},
    {"EI0010", BAD_LINK},
    {"EI0012", BAD_LINK},
    {"EI0013", BAD_LINK},
    {"EI0015", "not all ranks came to the exchange of root information"},
    {"EE2002", "ASCEND_RT_VISIBLE_DEVICES must be an ascending list of device numbers, such as 0,1,2"},
    {"EL0003", "see (npu-smi info) that the driver is loaded, that the device is mapped into the container, and that driver and CANN fit"},
    {"EL0004", "the driver has no memory, of the device or pinned of the host, or the device is busy"},
};

static const code_row *find(int code)
{
    for (size_t i = 0; i < sizeof CODES / sizeof CODES[0]; i++) {
        if (CODES[i].code == code) {
            return &CODES[i];
        }
    }
    return NULL;
}

const char *cti_acl_meaning(int code)
{
    const code_row *row = find(code);
    return row != NULL ? row->meaning : NULL;
}

const char *cti_acl_hint(int code)
{
    const code_row *row = find(code);
    return row != NULL ? row->hint : NULL;
}

const char *cti_cann_text_hint(const char *words)
{
    for (size_t i = 0; words != NULL && i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
        if (strstr(words, TEXTS[i].code) != NULL) {
            return TEXTS[i].hint;
        }
    }
    return NULL;
}

/* CANN's words on one line, "" where it says nothing. Asked for once: 9.x may give the same text again and again. */
static void take_words(const cti_cann *cann, char *out, size_t size)
{
    const char *words = cann != NULL && cann->aclGetRecentErrMsg != NULL ? cann->aclGetRecentErrMsg() : NULL;
    size_t n = 0;
    for (; words != NULL && *words != '\0' && n + 1 < size; words++) {
        const char c = (unsigned char)*words < ' ' ? ' ' : *words;
        if (c != ' ' || (n > 0 && out[n - 1] != ' ')) {
            out[n++] = c;
        }
    }
    while (n > 0 && (out[n - 1] == ' ' || out[n - 1] == '.')) {
        n--;
    }
    out[n] = '\0';
}

static ct_status fail(const cti_cann *cann, int code, const char *meaning, const char *hint, ct_status status, ct_err *err, const char *what, va_list args)
    CT_PRINTF(7, 0);
static ct_status fail_code(const cti_cann *cann, int code, ct_err *err, const char *what, va_list args) CT_PRINTF(4, 0);

static ct_status fail(const cti_cann *cann, int code, const char *meaning, const char *hint, ct_status status, ct_err *err, const char *what, va_list args)
{
    char context[1024], words[700];
    (void)vsnprintf(context, sizeof context, what, args);
    take_words(cann, words, sizeof words);
    const char *of_text = cti_cann_text_hint(words);
    hint = of_text != NULL ? of_text : hint;
    if (code == 107001 || code == 207004 || code == 507033) {
        const char *visible = getenv("ASCEND_RT_VISIBLE_DEVICES"); /* NOLINT(concurrency-mt-unsafe): nothing of ours writes the environment */
        const size_t len = strlen(context);
        (void)snprintf(context + len, sizeof context - len, " (ASCEND_RT_VISIBLE_DEVICES %s%.100s)", visible != NULL ? "is " : "is not set",
                       visible != NULL ? visible : "");
    }
    return CT_FAIL(err, status, "%s: error %d%s%s%s%s%s%s%s", context, code, meaning != NULL ? " (" : "", meaning != NULL ? meaning : "",
                   meaning != NULL ? ")" : "", words[0] != '\0' ? ": " : "", words, hint != NULL ? "; " : "", hint != NULL ? hint : "");
}

static ct_status fail_code(const cti_cann *cann, int code, ct_err *err, const char *what, va_list args)
{
    const code_row *row = find(code);
    return fail(cann, code, row != NULL ? row->meaning : NULL, row != NULL ? row->hint : NULL, row != NULL ? row->status : CT_ERR_BACKEND, err, what, args);
}

ct_status cti_acl_fail(const cti_cann *cann, aclError code, ct_err *err, const char *what, ...)
{
    va_list args;
    va_start(args, what);
    const ct_status st = fail_code(cann, code, err, what, args);
    va_end(args);
    return st;
}

ct_status cti_aclnn_fail(const cti_cann *cann, aclnnStatus code, ct_err *err, const char *what, ...)
{
    va_list args;
    va_start(args, what);
    const ct_status st = fail_code(cann, code, err, what, args);
    va_end(args);
    return st;
}

ct_status cti_hccl_fail(const cti_hccl *hccl, HcclResult code, ct_err *err, const char *what, ...)
{
    static const char SOCKETS[] = "another process of this card or host may have the port: set HCCL_NPU_SOCKET_PORT_RANGE and HCCL_HOST_SOCKET_PORT_RANGE (such as auto) on all ranks";
    const cti_cann *cann = NULL;
    if (cti_cann_load(&cann, NULL) != CT_OK) { /* it is loaded where HCCL is */
        cann = NULL;
    }
    const char *meaning = hccl != NULL && hccl->HcclGetErrorString != NULL ? hccl->HcclGetErrorString(code) : NULL;
    ct_status status = CT_ERR_BACKEND;
    const char *hint = NULL;
    if (code == HCCL_E_TIMEOUT) {
        status = CT_ERR_TIMEOUT;
        hint = "a rank is missing or slow; HCCL_CONNECT_TIMEOUT and HCCL_EXEC_TIMEOUT must be alike on all ranks";
    } else if (code == HCCL_E_MEMORY || code == HCCL_E_OOM) {
        status = CT_ERR_MEMORY;
        hint = "a group takes 2 x HCCL_BUFFSIZE MB of device memory: lower it, or have fewer groups";
    } else if (code == HCCL_E_UNAVAIL || code == HCCL_E_TCP_CONNECT) {
        hint = SOCKETS;
    } else if (code == HCCL_E_REMOTE || code == HCCL_E_TCP_TRANSFER || code == HCCL_E_ROCE_CONNECT || code == HCCL_E_ROCE_TRANSFER || code == HCCL_E_NETWORK) {
        status = CT_ERR_PEER;
    }
    va_list args;
    va_start(args, what);
    const ct_status st = fail(cann, (int)code, meaning, hint, status, err, what, args);
    va_end(args);
    return st;
}
