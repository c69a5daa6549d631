/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan doctor`: what is missing here, and what to do about it. */
#include "cli/cmd_doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/doctor.h"
#include "cli/probe.h"

static const char usage[] =
    "usage: " CTI_PROGRAM " doctor [npu] [--json] [--timeout-seconds N]\n\n"
    "Looks at this machine and its environment: one line a thing, with ok, warn or fail, and what to do. Devices are not touched, and a library\n"
    "that does not answer is given up. What belongs to NPUs is looked at where anything of Ascend is here (a driver, CANN, a\n"
    "device file); with `npu` it must be there.\n\n"
    "  --json               the same as JSON\n"
    "  --timeout-seconds N  how long a library may take (30)\n\n"
    "Exit code: 0 where no line says fail, 1 else.\n";

static const char *const verdicts[] = {[CTI_VERDICT_OK] = "ok", [CTI_VERDICT_WARN] = "warn", [CTI_VERDICT_FAIL] = "fail"};

void cti_doctor_add(cti_doctor *d, cti_verdict verdict, const char *what, const char *todo, const char *found, ...)
{
    cti_str text = {.alloc = d->alloc};
    va_list args;
    va_start(args, found);
    cti_str_vprintf(&text, found, args);
    va_end(args);
    d->n_warnings += verdict == CTI_VERDICT_WARN;
    d->n_failures += verdict == CTI_VERDICT_FAIL;
    (void)json_array_append_new(d->findings, json_pack("{s:s, s:s, s:s, s:o}", "verdict", verdicts[verdict], "what", what, "found", cti_str_text(&text), "do",
                                                       todo != NULL && verdict != CTI_VERDICT_OK ? json_string(todo) : json_null()));
    cti_str_deinit(&text);
}

const char *cti_doctor_path(const cti_doctor *d, const char *path, char *buf, size_t size)
{
    (void)snprintf(buf, size, "%s%s", d->root, path); /* cut where too long: then it is not there */
    return buf;
}

char *cti_doctor_read(const cti_doctor *d, const char *path)
{
    char whole[4096], *text = NULL;
    size_t size = 0;
    return cti_file_read(d->alloc, cti_doctor_path(d, path, whole, sizeof whole), 1 << 16, &text, &size, NULL) == CT_OK ? text : NULL;
}

/* Anything: a driver, a device file, CANN. */
static bool has_ascend(const cti_doctor *d)
{
    static const char *const PATHS[] = {"/usr/local/Ascend", "/dev/davinci_manager", "/dev/davinci0"};
    static const char *const VARIABLES[] = {"ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH"};
    char path[4096];
    bool has = false;
    for (size_t i = 0; i < 3; i++) {
        has = has || cti_path_exists(cti_doctor_path(d, PATHS[i], path, sizeof path)) || getenv(VARIABLES[i]) != NULL;
    }
    return has;
}

static const char *text_of(const json_t *finding, const char *key)
{
    return json_string_value(json_object_get(finding, key));
}

static void print(const cti_doctor *d)
{
    for (size_t i = 0; i < json_array_size(d->findings); i++) {
        const json_t *f = json_array_get(d->findings, i);
        const char *todo = text_of(f, "do");
        printf("%-4s  %-18s  %s\n", text_of(f, "verdict"), text_of(f, "what"), text_of(f, "found"));
        if (todo != NULL) {
            printf("%-4s  %-18s  -> %s\n", "", "", todo);
        }
    }
    printf("\n%d failed, %d warning%s\n", d->n_failures, d->n_warnings, d->n_warnings == 1 ? "" : "s");
}

int cti_cmd_doctor(int argc, char **argv)
{
    const char *root = getenv("CTITAN_DOCTOR_ROOT");
    cti_doctor d = {.alloc = ct_alloc_system(), .findings = json_array(), .root = root != NULL ? root : "", .timeout_ms = CTI_PROBE_TIMEOUT_MS};
    bool is_json = false;
    ct_err err = {0};
    ct_status st = CT_OK;
    for (int i = 1; i < argc && st == CT_OK; i++) {
        if (cti_str_eq(argv[i], "--help") || cti_str_eq(argv[i], "-h")) {
            printf("%s", usage);
            json_decref(d.findings);
            return 0;
        }
        if (cti_str_eq(argv[i], "--json")) {
            is_json = true;
        } else if (cti_str_eq(argv[i], "npu")) {
            d.wants_npu = true;
        } else if (!cti_probe_timeout_option(argc, argv, &i, &d.timeout_ms, &st, &err)) {
            st = CT_FAIL(&err, CT_ERR_USAGE, "'%s': wanted npu or an option; --help says more", argv[i]);
        }
    }
    if (st == CT_OK) {
        d.has_ascend = has_ascend(&d);
        cti_doctor_check_host(&d);
        cti_doctor_check_npu(&d);
        if (is_json) {
            char *text = NULL;
            st = cti_json_dump(d.alloc, d.findings, 2, &text, &err);
            printf("%s\n", st == CT_OK ? text : "");
            ct_alloc_free(d.alloc, text);
        } else {
            print(&d);
        }
    }
    json_decref(d.findings);
    return st != CT_OK ? cti_report("doctor", st, &err) : d.n_failures > 0;
}
