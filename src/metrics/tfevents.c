/* SPDX-License-Identifier: Apache-2.0 */
/* TensorBoard event files. */
#include "metrics/tfevents.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"

uint32_t cti_crc32c(const void *bytes, size_t size)
{
    const unsigned char *p = bytes;
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < size; i++) { /* a few hundred bytes a step: a table is not worth its lines */
        crc ^= p[i];
        for (int k = 0; k < 8; k++) {
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
        }
    }
    return ~crc;
}

uint32_t cti_crc32c_masked(const void *bytes, size_t size)
{
    const uint32_t crc = cti_crc32c(bytes, size);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

static void add_little(cti_str *s, uint64_t value, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++) {
        cti_str_add_char(s, (char)((value >> (8 * i)) & 0xff));
    }
}

/* ---- protocol buffers ------------------------------------------------------------------------------------------ */

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

static void add_varint(cti_str *s, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) {
        cti_str_add_char(s, (char)((value & 0x7f) | 0x80));
    }
    cti_str_add_char(s, (char)value);
}

static void add_key(cti_str *s, uint32_t field, uint32_t type)
{
    add_varint(s, (field << 3) | type);
}

static void add_double(cti_str *s, uint32_t field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_key(s, field, FIXED64);
    add_little(s, bits, 8);
}

static void add_float(cti_str *s, uint32_t field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_key(s, field, FIXED32);
    add_little(s, bits, 4);
}

static void add_int(cti_str *s, uint32_t field, int64_t value)
{
    add_key(s, field, VARINT);
    add_varint(s, (uint64_t)value);
}

static void add_bytes(cti_str *s, uint32_t field, const void *bytes, size_t size)
{
    add_key(s, field, BYTES);
    add_varint(s, size);
    cti_str_add_n(s, bytes, size);
}

/* ---- records --------------------------------------------------------------------------------------------------- */

/* Puts the frame around the message that begins at `at`; 12 bytes before it are left free. */
enum { HEAD_BYTES = 12 };

static size_t open_record(cti_str *out)
{
    const size_t at = out->len;
    add_little(out, 0, 8);
    add_little(out, 0, 4);
    return at;
}

static void close_record(cti_str *out, size_t at)
{
    if (out->failed) {
        return;
    }
    const uint64_t size = out->len - at - HEAD_BYTES;
    for (int i = 0; i < 8; i++) {
        out->data[at + (size_t)i] = (char)((size >> (8 * i)) & 0xff);
    }
    const uint32_t crc = cti_crc32c_masked(out->data + at, 8);
    for (int i = 0; i < 4; i++) {
        out->data[at + 8 + (size_t)i] = (char)((crc >> (8 * i)) & 0xff);
    }
    add_little(out, cti_crc32c_masked(out->data + at + HEAD_BYTES, size), 4);
}

void cti_tfevents_version(cti_str *out, double wall_s)
{
    static const char version[] = "brain.Event:2";
    const size_t at = open_record(out);
    add_double(out, 1, wall_s);
    add_bytes(out, 3, version, sizeof version - 1);
    close_record(out, at);
}

void cti_tfevents_restart(cti_str *out, double wall_s, int64_t step)
{
    static const char start[] = {(1 << 3) | VARINT, 1};
    const size_t at = open_record(out);
    add_double(out, 1, wall_s);
    add_int(out, 2, step);
    add_bytes(out, 7, start, sizeof start);
    close_record(out, at);
}

static size_t varint_bytes(uint64_t value)
{
    size_t n = 1;
    for (; value >= 0x80; value >>= 7) {
        n++;
    }
    return n;
}

static size_t value_bytes(const cti_scalar *s) /* of the message Value */
{
    const size_t tag = strlen(s->name);
    return 1 + varint_bytes(tag) + tag + 1 + 4;
}

void cti_tfevents_scalars(cti_str *out, double wall_s, int64_t step, const cti_scalar *scalars, int n)
{
    size_t summary = 0;
    for (int i = 0; i < n; i++) {
        const size_t size = value_bytes(&scalars[i]);
        summary += scalars[i].is_present ? 1 + varint_bytes(size) + size : 0;
    }
    const size_t at = open_record(out);
    add_double(out, 1, wall_s);
    add_int(out, 2, step);
    add_key(out, 5, BYTES);
    add_varint(out, summary);
    for (int i = 0; i < n; i++) {
        if (scalars[i].is_present) {
            add_key(out, 1, BYTES);
            add_varint(out, value_bytes(&scalars[i]));
            add_bytes(out, 1, scalars[i].name, strlen(scalars[i].name));
            add_float(out, 2, (float)scalars[i].value);
        }
    }
    close_record(out, at);
}

/* ---- where ----------------------------------------------------------------------------------------------------- */

static bool is_run_folder(const char *name) /* YYYYmmdd-HHMM */
{
    for (int i = 0; i < 13; i++) {
        if (i == 8 ? name[i] != '-' : !isdigit((unsigned char)name[i])) {
            return false;
        }
    }
    return name[13] == '\0';
}

/* The newest folder of an earlier start, or "". */
static ct_status newest_folder(const ct_alloc *alloc, const char *base, char out[16], ct_err *err)
{
    out[0] = '\0';
    if (!cti_path_is_dir(base)) {
        return CT_OK;
    }
    cti_names names;
    CT_TRY(cti_list_dir(alloc, base, &names, err));
    for (size_t i = 0; i < names.n; i++) {
        if (is_run_folder(names.names[i])) {
            memcpy(out, names.names[i], 14); /* sorted: the last one stays */
        }
    }
    cti_names_free(alloc, &names);
    return CT_OK;
}

/* Readers go through the files of a folder by name: ours must be the last. */
static ct_status stamp_after(const ct_alloc *alloc, const char *folder, int64_t *stamp, ct_err *err)
{
    static const char head[] = "events.out.tfevents.";
    if (!cti_path_is_dir(folder)) {
        return CT_OK;
    }
    cti_names names;
    CT_TRY(cti_list_dir(alloc, folder, &names, err));
    for (size_t i = 0; i < names.n; i++) {
        if (cti_starts_with(names.names[i], head)) {
            char digits[24] = "";
            int64_t there = 0;
            const size_t n = strspn(names.names[i] + sizeof head - 1, "0123456789");
            memcpy(digits, names.names[i] + sizeof head - 1, n < sizeof digits ? n : 0);
            if (cti_parse_i64(digits, &there) && there < INT64_MAX) {
                *stamp = cti_max_i64(*stamp, there + 1);
            }
        }
    }
    cti_names_free(alloc, &names);
    return CT_OK;
}

ct_status cti_tfevents_path(const ct_alloc *alloc, const char *base, const char *sub, bool is_resumed, int64_t wall_ms, char **out_path,
                            ct_err *err)
{
    char run[16] = "", host[256] = "";
    if (is_resumed) {
        CT_TRY(newest_folder(alloc, base, run, err));
    }
    if (run[0] == '\0') {
        const time_t seconds = (time_t)(wall_ms / 1000);
        struct tm when;
        if (localtime_r(&seconds, &when) == NULL || strftime(run, sizeof run, "%Y%m%d-%H%M", &when) == 0) {
            return CT_FAIL(err, CT_ERR_RANGE, "the clock shows no time");
        }
    }
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') {
        memcpy(host, "localhost", sizeof "localhost");
    }
    cti_str path = {.alloc = alloc};
    int64_t stamp = wall_ms / 1000;
    cti_str_printf(&path, "%s/%s%s%s", base, run, sub[0] != '\0' ? "/" : "", sub);
    ct_status st = cti_str_check(&path, err);
    if (st == CT_OK) {
        st = stamp_after(alloc, cti_str_text(&path), &stamp, err);
    }
    if (st == CT_OK) {
        cti_str_printf(&path, "/events.out.tfevents.%010" PRId64 ".%s.%ld.0", stamp, host, (long)getpid());
        st = cti_str_check(&path, err);
    }
    if (st != CT_OK) {
        cti_str_deinit(&path);
        return st;
    }
    *out_path = path.data;
    return CT_OK;
}
