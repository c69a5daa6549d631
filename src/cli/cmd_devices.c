/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan devices`: what this machine could train on. */
#include "cli/cmd_devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "base/base.h"
#include "cli/cli.h"
#include "cli/probe.h"

static const char usage[] =
    "usage: " CTI_PROGRAM " devices [--json] [--timeout-seconds N]\n\n"
    "Lists what is seen here: Ascend NPUs through CANN, NVIDIA GPUs through their driver, the CPU. Indices are those that training uses: with\n"
    "ASCEND_RT_VISIBLE_DEVICES they count what is visible from 0. A dash: the library does not tell. Nothing is kept busy by it, and a library that\n"
    "does not answer is given up.\n\n"
    "  --json               the same as JSON\n"
    "  --timeout-seconds N  how long a library may take (30)\n";

/* Memory that is in use on the host, by the kernel's count of what a new process could have. */
static int64_t used_host_bytes(int64_t total)
{
    char *text = NULL;
    size_t size = 0;
    int64_t kib = -1;
    if (cti_file_read(ct_alloc_system(), "/proc/meminfo", 1 << 16, &text, &size, NULL) == CT_OK) {
        const char *at = strstr(text, "MemAvailable:");
        kib = at != NULL ? strtoll(at + 13, NULL, 10) : -1;
    }
    ct_alloc_free(ct_alloc_system(), text);
    return kib >= 0 && kib * 1024 <= total ? total - kib * 1024 : -1;
}

static const char *isa_level(void)
{
    for (int i = 0; i < cti_cpu_level_count(); i++) {
        if (cti_cpu_backend_at(i) == ct_backend_cpu()) {
            return cti_cpu_level_name(i);
        }
    }
    return "";
}

static json_t *cpu_row(void)
{
    char name[128];
    cti_cpu_name(name, sizeof name);
    const int64_t total = cti_memory_bytes(), used = used_host_bytes(total);
    return json_pack("{s:s, s:i, s:s, s:s, s:o, s:I, s:n, s:n, s:i, s:s}", "kind", "cpu", "index", 0, "name", name, "health", "OK", "memory_used_bytes",
                     used >= 0 ? json_integer(used) : json_null(), "memory_total_bytes", (json_int_t)total, "bus_id", "processes", "usable_cores",
                     cti_usable_cores(), "instruction_set", isa_level());
}

/* Asks for one kind; its rows go to `devices`, why there are none to `notes`. */
static void add_kind(const ct_alloc *alloc, const char *kind, const char *library, cti_probe_fn fn, int64_t timeout_ms, json_t *devices, json_t *notes)
{
    ct_err err = {0};
    json_t *answer = NULL;
    if (cti_probe(alloc, library, fn, timeout_ms, &answer, &err) != CT_OK) {
        (void)json_object_set_new(notes, kind, json_string(err.message));
        return;
    }
    (void)json_array_extend(devices, json_object_get(answer, "devices"));
    const char *why = json_string_value(json_object_get(answer, "why_not"));
    if (why != NULL && cti_starts_with(why, kind) && strstr(why, ": ") != NULL) { /* "npu 0: ": the line begins with the kind */
        why = strstr(why, ": ") + 2;
    }
    if (why != NULL) {
        (void)json_object_set_new(notes, kind, json_string(why));
    }
    json_decref(answer);
}

static const char *text_of(const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));
    return text != NULL ? text : "-";
}

static void memory_text(const json_t *row, const char *key, char buf[32])
{
    const json_t *value = json_object_get(row, key);
    if (json_is_integer(value)) {
        (void)cti_format_bytes(json_integer_value(value), buf);
    } else {
        (void)snprintf(buf, 32, "-");
    }
}

static void print_row(const json_t *row)
{
    char used[32], total[32], bytes[32];
    memory_text(row, "memory_used_bytes", used);
    memory_text(row, "memory_total_bytes", total);
    const char *health = text_of(row, "health");
    const bool is_long = strlen(health) > 8; /* an error's sentence: below its row */
    printf("%-6s  %5d  %-28s  %-8s  %10s / %-10s  %-16s  ", text_of(row, "kind"), (int)json_integer_value(json_object_get(row, "index")), text_of(row, "name"),
           is_long ? "fault" : health, used, total, text_of(row, "bus_id"));
    const json_t *list = json_object_get(row, "processes");
    if (!json_is_array(list)) {
        printf("-");
    } else if (json_array_size(list) == 0) {
        printf("none");
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *process = json_array_get(list, i);
        memory_text(process, "memory_bytes", bytes);
        printf("%s%d (%s)", i > 0 ? ", " : "", (int)json_integer_value(json_object_get(process, "pid")), bytes);
    }
    printf("\n%s%s%s", is_long ? "        " : "", is_long ? health : "", is_long ? "\n" : "");
}

static void print_table(const json_t *devices, const json_t *notes)
{
    printf("%-6s  %5s  %-28s  %-8s  %10s / %-10s  %-16s  %s\n", "kind", "index", "name", "health", "used", "memory", "bus id", "processes");
    bool has_nvidia = false;
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *row = json_array_get(devices, i);
        print_row(row);
        has_nvidia = has_nvidia || strcmp(text_of(row, "kind"), "nvidia") == 0;
    }
    const json_t *cpu = json_array_get(devices, json_array_size(devices) - 1);
    printf("\ncpu: %d usable core%s, instruction set %s\n", (int)json_integer_value(json_object_get(cpu, "usable_cores")),
           json_integer_value(json_object_get(cpu, "usable_cores")) == 1 ? "" : "s", text_of(cpu, "instruction_set"));
    const char *visible = getenv("ASCEND_RT_VISIBLE_DEVICES");
    if (visible != NULL) {
        printf("npu: ASCEND_RT_VISIBLE_DEVICES is '%s'\n", visible);
    }
    if (has_nvidia) {
        printf("nvidia: " CTI_PROGRAM " has no backend for it yet\n");
    }
    const char *kind;
    const json_t *why;
    json_object_foreach((json_t *)(uintptr_t)notes, kind, why)
    {
        printf("%s: %s\n", kind, json_string_value(why));
    }
}

int cti_cmd_devices(int argc, char **argv)
{
    const ct_alloc *alloc = ct_alloc_system();
    bool is_json = false;
    int64_t timeout_ms = CTI_PROBE_TIMEOUT_MS;
    for (int i = 1; i < argc; i++) {
        ct_err err = {0};
        ct_status st = CT_OK;
        if (cti_str_eq(argv[i], "--help") || cti_str_eq(argv[i], "-h")) {
            printf("%s", usage);
            return 0;
        }
        if (cti_str_eq(argv[i], "--json")) {
            is_json = true;
        } else if (!cti_probe_timeout_option(argc, argv, &i, &timeout_ms, &st, &err)) {
            st = CT_FAIL(&err, CT_ERR_USAGE, "%s: there is no such option; --help says more", argv[i]);
        }
        if (st != CT_OK) {
            return cti_report("devices", st, &err);
        }
    }
    json_t *devices = json_array(), *notes = json_object();
    add_kind(alloc, "npu", "CANN", cti_probe_npus, timeout_ms, devices, notes);
    add_kind(alloc, "nvidia", "libnvidia-ml.so.1", cti_probe_nvidia, timeout_ms, devices, notes);
    (void)json_array_append_new(devices, cpu_row());
    if (is_json) {
        json_t *all = json_pack("{s:O, s:O}", "devices", devices, "notes", notes);
        char *text = NULL;
        ct_err err = {0};
        const ct_status st = cti_json_dump(alloc, all, 2, &text, &err);
        printf("%s\n", st == CT_OK ? text : "");
        ct_alloc_free(alloc, text);
        json_decref(all);
    } else {
        print_table(devices, notes);
    }
    json_decref(devices);
    json_decref(notes);
    return 0;
}
