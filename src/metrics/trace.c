/* SPDX-License-Identifier: Apache-2.0 */
/* Structured events as JSON lines. */
#include "metrics/trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { MAX_MESSAGE = 1000, KEPT_MESSAGE = 500 }; /* bytes: a longer message keeps its ends */

struct cti_trace {
    const ct_alloc *alloc;
    cti_writer_file *file; /* borrowed from the writer */
    char *path;
    cti_str line;          /* reused */
    cti_str identity;      /* the fields that never change */
    int64_t step, relative_step;
    bool has_step;
    unsigned tags;
    int64_t last_ns, seq_id;
};

void cti_json_add_escaped(cti_str *out, const char *text)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + strlen(text);
    while (p < end) {
        const int n = cti_utf8_len(p, end);
        if (n == 0) {
            cti_str_add(out, "\\ufffd");
            p++;
            continue;
        }
        if (*p == '"' || *p == '\\') {
            cti_str_add_char(out, '\\');
            cti_str_add_char(out, (char)*p);
        } else if (*p < 0x20) {
            cti_str_printf(out, "\\u%04x", (unsigned)*p);
        } else {
            cti_str_add_n(out, p, (size_t)n);
        }
        p += n;
    }
}

static void add_text(cti_str *s, const char *key, const char *text)
{
    cti_str_printf(s, ",\"%s\":\"", key);
    cti_json_add_escaped(s, text);
    cti_str_add_char(s, '"');
}

/* As a build folder may be anywhere, a source is named from "src/" on. */
static const char *source_path(const char *file)
{
    const char *at = file;
    for (const char *p = strstr(file, "/src/"); p != NULL; p = strstr(p + 1, "/src/")) {
        at = p + 1;
    }
    return at;
}

static void add_step(cti_trace *t)
{
    static const struct {
        cti_step_tag tag;
        const char *name;
    } names[] = {{CTI_TAG_GC, "gc"}, {CTI_TAG_CHECKPOINT_SAVE, "checkpoint_save"}, {CTI_TAG_EVAL, "eval"}};
    if (!t->has_step) {
        return;
    }
    cti_str_printf(&t->line, ",\"step\":%" PRId64 ",\"relative_step\":%" PRId64, t->step, t->relative_step);
    const char *separator = ",\"step_tags\":[\"";
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (t->tags & (unsigned)names[i].tag) {
            cti_str_printf(&t->line, "%s%s", separator, names[i].name);
            separator = "\",\"";
        }
    }
    cti_str_add(&t->line, t->tags != 0 ? "\"]" : "");
}

static void add_number(cti_str *s, const char *key, double value)
{
    char text[32];
    if (isfinite(value)) {
        cti_str_printf(s, ",\"%s\":%s", key, cti_format_f64(value, text));
    } else { /* JSON has no such numbers */
        cti_str_printf(s, ",\"%s\":\"%s\"", key, cti_format_f64(value, text));
    }
}

typedef struct record {
    const char *type; /* "event", "instant" */
    const char *name, *suffix;
    const char *event_name; /* NULL: null */
    const double *value;    /* NULL: null */
    const char *message;    /* NULL: the name */
} record;

static void emit(cti_trace *t, const cti_where *where, const record *r)
{
    struct timespec wall;
    const int64_t now = cti_now_ns();
    (void)clock_gettime(CLOCK_REALTIME, &wall);
    const int64_t us = (int64_t)wall.tv_sec * 1000000 + wall.tv_nsec / 1000;
    cti_str *s = &t->line;
    cti_str_reset(s);
    cti_str_printf(s, "{\"time\":%" PRId64 ",\"time_ms\":%" PRId64 ",\"time_us\":%" PRId64 ",\"delta_ms\":%.3f,\"seq_id\":%" PRId64,
                   us / 1000000, us / 1000, us, (double)(now - t->last_ns) / 1e6, t->seq_id++);
    cti_str_add(s, cti_str_text(&t->identity));
    add_step(t);
    cti_str_printf(s, ",\"log_type\":\"%s\",\"log_type_name\":\"%s%s\"", r->type, r->name, r->suffix);
    if (r->event_name != NULL) {
        add_text(s, "event_name", r->event_name);
    } else {
        cti_str_add(s, ",\"event_name\":null");
    }
    if (r->value != NULL) {
        add_number(s, "value", *r->value);
    } else {
        cti_str_add(s, ",\"value\":null");
    }
    const char *file = source_path(where->file);
    cti_str_printf(s, ",\"caller\":\"%s:%d:%s\",\"log_file\":\"%s\",\"log_function\":\"%s\",\"log_level\":\"INFO\",\"logger_name\":\"root\",\"stack_info\":null", file, where->line,
                   where->function, file, where->function);
    if (r->message != NULL) {
        add_text(s, "message", r->message);
    } else {
        cti_str_printf(s, ",\"message\":\"%s%s\"", r->name, r->suffix);
    }
    cti_str_add(s, "}\n");
    t->last_ns = now;
    if (!s->failed) {
        cti_writer_add(t->file, s->data, s->len);
    }
}

static void make_identity(cti_trace *t, const cti_trace_options *o)
{
    char host[256] = "";
    if (gethostname(host, sizeof host - 1) != 0) {
        host[0] = '\0';
    }
    t->identity.alloc = t->alloc;
    cti_str_printf(&t->identity, ",\"pid\":%ld,\"tid\":%ld", (long)getpid(), (long)gettid());
    add_text(&t->identity, "host_name", host);
    cti_str_printf(&t->identity, ",\"rank\":%" PRId64 ",\"global_rank\":%" PRId64 ",\"local_rank\":%" PRId64, o->rank, o->rank, o->local_rank);
    add_text(&t->identity, "source", o->source);
}

static ct_status make_path(cti_trace *t, const cti_trace_options *o, ct_err *err)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    const time_t seconds = (time_t)((o->wall_ms != 0 ? o->wall_ms : cti_wall_ms()) / 1000);
    unsigned char draw[6] = {0};
    char when[32] = "", code[7] = "";
    struct tm tm;
    if (localtime_r(&seconds, &tm) == NULL || strftime(when, sizeof when, "%Y%m%d-%H%M%S", &tm) == 0) {
        return CT_FAIL(err, CT_ERR_RANGE, "the clock shows no time");
    }
    if (getrandom(draw, sizeof draw, 0) != (ssize_t)sizeof draw) {
        memcpy(draw, &t, sizeof draw); /* a name, not a secret */
    }
    for (int i = 0; i < 6; i++) {
        code[i] = letters[draw[i] % 36];
    }
    cti_str path = {.alloc = t->alloc};
    cti_str_printf(&path, "%s/%s.global_rank_%" PRId64 ".%s-%s.jsonl", o->folder, o->source, o->rank, when, code);
    t->path = path.data;
    return cti_str_check(&path, err);
}

ct_status cti_trace_open(const ct_alloc *alloc, cti_writer *writer, const cti_trace_options *o, cti_trace **out_trace, ct_err *err)
{
    *out_trace = NULL;
    cti_trace *t = CT_NEW(alloc, cti_trace, err);
    if (t == NULL) {
        return CT_ERR_MEMORY;
    }
    t->alloc = alloc;
    t->line.alloc = alloc;
    t->last_ns = cti_now_ns();
    make_identity(t, o);
    ct_status st = make_path(t, o, err);
    if (st == CT_OK) {
        st = cti_str_check(&t->identity, err);
    }
    t->file = st == CT_OK ? cti_writer_open(writer, t->path) : NULL;
    if (t->file == NULL || !cti_str_reserve(&t->line, 1024)) {
        cti_trace_close(&t);
        return st;
    }
    cti_trace_instant(t, CTI_HERE, "structured_logger_started", t->path);
    *out_trace = t;
    return CT_OK;
}

void cti_trace_close(cti_trace **trace)
{
    cti_trace *t = *trace;
    if (t == NULL) {
        return;
    }
    ct_alloc_free(t->alloc, t->path);
    cti_str_deinit(&t->line);
    cti_str_deinit(&t->identity);
    ct_alloc_free(t->alloc, t);
    *trace = NULL;
}

const char *cti_trace_path(const cti_trace *t)
{
    return t == NULL ? "" : t->path;
}

void cti_trace_step(cti_trace *t, int64_t step, int64_t relative_step)
{
    if (t != NULL) {
        t->step = step;
        t->relative_step = relative_step;
        t->has_step = true;
        t->tags = 0;
    }
}

void cti_trace_tag(cti_trace *t, cti_step_tag tag)
{
    if (t != NULL) {
        t->tags |= (unsigned)tag;
    }
}

int64_t cti_trace_begin(cti_trace *t, const cti_where *where, const char *name)
{
    if (t == NULL) {
        return 0;
    }
    emit(t, where, &(record){.type = "event", .name = name, .suffix = "_start"});
    return cti_now_ns();
}

void cti_trace_end(cti_trace *t, const cti_where *where, const char *name, int64_t start_ns, bool is_ok)
{
    if (t == NULL) {
        return;
    }
    const double ms = (double)(cti_now_ns() - start_ns) / 1e6;
    if (!is_ok) {
        emit(t, where, &(record){.type = "event", .name = name, .suffix = "_error"});
    }
    emit(t, where, &(record){.type = "event", .name = name, .suffix = "_end", .value = &ms});
}

void cti_trace_instant(cti_trace *t, const cti_where *where, const char *name, const char *message)
{
    char cut[MAX_MESSAGE + 8];
    if (t == NULL) {
        return;
    }
    const size_t n = strlen(message);
    if (n > MAX_MESSAGE) {
        (void)snprintf(cut, sizeof cut, "%.*s...%s", (int)KEPT_MESSAGE, message, message + n - KEPT_MESSAGE); /* fits by its sizes */
        message = cut;
    }
    emit(t, where, &(record){.type = "instant", .name = name, .suffix = "", .message = message});
}

void cti_trace_scalar(cti_trace *t, const cti_where *where, const char *name, double value)
{
    if (t != NULL) {
        emit(t, where, &(record){.type = "instant", .name = "metric_value", .suffix = "", .event_name = name, .value = &value});
    }
}
