/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of ops as a Chrome trace. */
#include "metrics/profile.h"

#include <inttypes.h>
#include <string.h>
#include <zlib.h>

#include "base/file.h"
#include "base/num.h"
#include "base/str.h"
#include "metrics/trace.h"

struct cti_profile {
    const ct_alloc *alloc;
    cti_profile_schedule schedule;
    int64_t persistent_bytes;
    cti_span *spans; /* owns */
    size_t n, cap;
    bool is_cut; /* memory ran out */
};

cti_step_phase cti_profile_phase(const cti_profile_schedule *s, int64_t step)
{
    int64_t at = step - 1 - s->skip_first;
    const int64_t wait = s->freq - s->warmup - s->active;
    if (at < 0) {
        return CTI_PHASE_NONE;
    }
    at += s->skips_first_wait ? wait : 0;
    if (s->repeat > 0 && at / s->freq >= s->repeat) {
        return CTI_PHASE_NONE;
    }
    at %= s->freq;
    if (at < wait) {
        return CTI_PHASE_NONE;
    }
    if (at < wait + s->warmup) {
        return CTI_PHASE_WARMUP;
    }
    return at + 1 < s->freq ? CTI_PHASE_RECORD : CTI_PHASE_RECORD_LAST;
}

ct_status cti_profile_create(const ct_alloc *alloc, const cti_profile_schedule *schedule, int64_t persistent_bytes,
                             cti_profile **out_profile, ct_err *err)
{
    cti_profile *p = CT_NEW(alloc, cti_profile, err);
    if (p == NULL) {
        return CT_ERR_MEMORY;
    }
    *p = (cti_profile){.alloc = alloc, .schedule = *schedule, .persistent_bytes = persistent_bytes};
    *out_profile = p;
    return CT_OK;
}

void cti_profile_destroy(cti_profile **profile)
{
    if (*profile != NULL) {
        ct_alloc_free((*profile)->alloc, (*profile)->spans);
        ct_alloc_free((*profile)->alloc, *profile);
        *profile = NULL;
    }
}

bool cti_profile_records(const cti_profile *p, int64_t step)
{
    return p != NULL && cti_profile_phase(&p->schedule, step) >= CTI_PHASE_RECORD;
}

bool cti_profile_ends(const cti_profile *p, int64_t step)
{
    return p != NULL && cti_profile_phase(&p->schedule, step) == CTI_PHASE_RECORD_LAST;
}

void cti_profile_add(cti_profile *p, const cti_span *span)
{
    if (p->n == p->cap) {
        const size_t cap = p->cap == 0 ? 4096 : 2 * p->cap;
        cti_span *spans = ct_alloc_resize(p->alloc, p->spans, cap, sizeof *spans, NULL);
        if (spans == NULL) {
            p->is_cut = true;
            return;
        }
        p->spans = spans;
        p->cap = cap;
    }
    p->spans[p->n++] = *span;
}

static void add_text(cti_str *s, const char *key, const char *text, const char *separator)
{
    if (text != NULL && text[0] != '\0') {
        cti_str_printf(s, "%s\"%s\":\"", separator, key);
        cti_json_add_escaped(s, text);
        cti_str_add_char(s, '"');
    }
}

/* Microseconds with the nanoseconds behind the point: ends of spans stay where they are, so that inner ones stay inside. */
static void add_us(cti_str *s, const char *key, int64_t ns)
{
    cti_str_printf(s, ",\"%s\":%" PRId64 ".%03" PRId64, key, ns / 1000, ns % 1000);
}

static void add_span(cti_str *s, const cti_span *span, int64_t start, int64_t rank)
{
    cti_str_add(s, ",\n{\"ph\":\"X\"");
    add_text(s, "name", span->name, ",");
    add_text(s, "cat", span->category, ",");
    add_us(s, "ts", span->begin_ns - start);
    add_us(s, "dur", span->end_ns - span->begin_ns);
    cti_str_printf(s, ",\"pid\":%" PRId64 ",\"tid\":%" PRId32 ",\"args\":{\"step\":%" PRId64, rank, span->stream, span->step);
    if (span->micro_batch >= 0) {
        cti_str_printf(s, ",\"micro_batch\":%" PRId32, span->micro_batch);
    }
    if (span->number > 0) {
        cti_str_printf(s, ",\"number\":%" PRId32, span->number);
    }
    add_text(s, "scope", span->scope, ",");
    add_text(s, "program", span->program, ",");
    add_text(s, "shapes", span->shapes, ",");
    cti_str_add(s, "}}");
}

static void add_memory(cti_str *s, int64_t at_ns, int64_t rank, int64_t persistent, int64_t activations)
{
    cti_str_add(s, ",\n{\"ph\":\"C\",\"name\":\"memory (bytes)\"");
    add_us(s, "ts", at_ns);
    cti_str_printf(s, ",\"pid\":%" PRId64 ",\"args\":{\"persistent\":%" PRId64 ",\"activations\":%" PRId64 "}}", rank, persistent, activations);
}

static void add_all(const cti_profile *p, int64_t rank, cti_str *s)
{
    int64_t start = INT64_MAX;
    int32_t n_streams = 1;
    for (size_t i = 0; i < p->n; i++) {
        start = cti_min_i64(start, p->spans[i].begin_ns);
        n_streams = p->spans[i].stream >= n_streams ? p->spans[i].stream + 1 : n_streams;
    }
    cti_str_printf(s, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
                      "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%" PRId64 ",\"args\":{\"name\":\"rank %" PRId64 "\"}}", rank, rank);
    for (int32_t t = 0; t < n_streams; t++) {
        cti_str_printf(s, ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%" PRId64 ",\"tid\":%" PRId32
                          ",\"args\":{\"name\":\"%s\"}}", rank, t, t == 0 ? "compute" : "communication");
    }
    int64_t before = -1;
    for (size_t i = 0; i < p->n; i++) {
        const cti_span *span = &p->spans[i];
        add_span(s, span, start, rank);
        if (span->live_bytes >= 0 && span->live_bytes != before) {
            add_memory(s, span->begin_ns - start, rank, p->persistent_bytes, span->live_bytes);
            before = span->live_bytes;
        }
    }
    cti_str_add(s, "\n]}\n");
}

/* One gzip member. */
static ct_status compress_gzip(const cti_str *text, cti_str *out, ct_err *err)
{
    z_stream z = {0};
    enum { GZIP = 16 + 15, MEMORY_LEVEL = 8 };
    if (deflateInit2(&z, 3, Z_DEFLATED, GZIP, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
        return CT_FAIL(err, CT_ERR_MEMORY, "no memory to compress the trace");
    }
    const uLong bound = deflateBound(&z, (uLong)text->len);
    int code = Z_MEM_ERROR;
    if (text->len <= UINT32_MAX && bound <= UINT32_MAX && cti_str_reserve(out, bound)) {
        z.next_in = (Bytef *)text->data;
        z.avail_in = (uInt)text->len;
        z.next_out = (Bytef *)out->data;
        z.avail_out = (uInt)bound;
        code = deflate(&z, Z_FINISH);
        out->len = bound - z.avail_out;
    }
    (void)deflateEnd(&z);
    return code == Z_STREAM_END ? CT_OK : CT_FAIL(err, CT_ERR_MEMORY, "the trace of %zu bytes cannot be compressed", text->len);
}

static ct_status make_parent(const ct_alloc *alloc, const char *path, ct_err *err)
{
    char *folder = ct_alloc_strdup(alloc, path, err);
    if (folder == NULL) {
        return CT_ERR_MEMORY;
    }
    char *slash = strrchr(folder, '/');
    ct_status st = CT_OK;
    if (slash != NULL && slash != folder) {
        *slash = '\0';
        st = cti_make_dirs(folder, err);
    }
    ct_alloc_free(alloc, folder);
    return st;
}

ct_status cti_profile_write(cti_profile *p, const char *path, int64_t rank, ct_err *err)
{
    cti_str text = {.alloc = p->alloc}, packed = {.alloc = p->alloc};
    ct_status st;
    if (p->is_cut) {
        st = CT_FAIL(err, CT_ERR_MEMORY, "memory ran out for the trace '%s'", path);
        goto out;
    }
    add_all(p, rank, &text);
    CT_TRY_GOTO(st, cti_str_check(&text, err), out);
    const cti_str *bytes = &text;
    if (cti_ends_with(path, ".gz")) {
        CT_TRY_GOTO(st, compress_gzip(&text, &packed, err), out);
        bytes = &packed;
    }
    CT_TRY_GOTO(st, make_parent(p->alloc, path, err), out);
    st = cti_file_write_atomic(path, bytes->data, bytes->len, err);
out:
    p->n = 0;
    p->is_cut = false;
    cti_str_deinit(&text);
    cti_str_deinit(&packed);
    return st;
}
