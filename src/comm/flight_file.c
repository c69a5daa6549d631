/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a flight recorder: written from its memory, and read back. */
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/num.h"
#include "comm/flight.h"

#define FORMAT "ctitan-flight-recorder-1"
#define MAX_FILE_BYTES ((size_t)4 << 30)

static const char *const state_names[] = {"none", "scheduled", "started", "completed", "failed"};
enum { N_STATES = sizeof state_names / sizeof state_names[0] };

/* ---- JSON of head and record ---- */

static json_t *text(const char *s)
{
    json_t *j = json_string(s);
    return j != NULL ? j : json_string("?"); /* a host name need not be UTF-8 */
}

/* Microseconds since 1970, so that files of several hosts can be laid side by side. 0 stays. */
static int64_t unix_us(int64_t monotonic_ns, int64_t offset_us)
{
    return monotonic_ns == 0 ? 0 : monotonic_ns / 1000 + offset_us;
}

static json_t *group_json(const cti_recorder_group *g)
{
    char id[24];
    (void)snprintf(id, sizeof id, "%016" PRIx64, g->id);
    return json_pack("{s:s, s:o, s:i, s:i, s:i, s:i, s:I}", "id", id, "name", text(g->name), "size", (int)g->size, "rank", (int)g->rank,
                     "first", (int)g->first, "stride", (int)g->stride, "last_number", (json_int_t)g->last_number);
}

static json_t *head_json(const cti_recorder_head *h, const char *state, const char *cause, int64_t offset_us)
{
    json_t *groups = json_array();
    for (int i = 0; i < h->n_groups && groups != NULL; i++) {
        (void)json_array_append_new(groups, group_json(&h->groups[i]));
    }
    return json_pack("{s:s, s:o, s:o, s:i, s:o, s:i, s:i, s:i, s:o, s:o, s:o, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:o}", "format", FORMAT,
                     "version", text(h->version), "run_id", text(h->run_id), "restart", (int)h->restart, "host", text(h->host), "rank",
                     (int)h->rank, "world_size", (int)h->world_size, "pid", (int)h->pid, "engine", text(h->engine), "state", text(state), "cause", text(cause),
                     "step", (json_int_t)h->step, "doing", text(h->what), "since_us", (json_int_t)unix_us(h->since_ns, offset_us),
                     "limit_ms", (json_int_t)h->limit_ms, "written_us", (json_int_t)unix_us(cti_now_ns(), offset_us), "n_calls",
                     (json_int_t)h->n_begun, "ring", (json_int_t)h->n_records, "groups", groups);
}

/* By hand: there are many, and every value is a number or a word of ours. */
static void add_record(cti_str *out, const cti_recorder_head *h, const cti_record *e, int64_t offset_us)
{
    char id[24] = "0";
    if (e->group >= 0 && e->group < h->n_groups) {
        (void)snprintf(id, sizeof id, "%016" PRIx64, h->groups[e->group].id);
    }
    cti_str_printf(out, "{\"id\": %" PRIu64 ", \"group\": \"%s\", \"number\": %" PRIu64 ", \"op\": \"%s\", \"bytes\": %" PRId64
                   ", \"dtype\": \"%s\", \"peer\": %d, \"state\": \"%s\", \"step\": %" PRId64 ", \"scheduled_us\": %" PRId64
                   ", \"started_us\": %" PRId64 ", \"ended_us\": %" PRId64 "}\n",
                   e->id, id, e->number, ct_comm_op_name((ct_comm_op)e->op), e->bytes, ct_dtype_name((ct_dtype)e->dtype), (int)e->peer,
                   e->state < N_STATES ? state_names[e->state] : "none", e->step, unix_us(e->scheduled_ns, offset_us),
                   unix_us(e->started_ns, offset_us), unix_us(e->ended_ns, offset_us));
}

ct_status cti_flight_write(const ct_alloc *alloc, const cti_recorder_head *h, const cti_record *ring, const char *state, const char *cause,
                           ct_err *err)
{
    const int64_t offset_us = cti_wall_ms() * 1000 - cti_now_ns() / 1000;
    cti_str out = {.alloc = alloc};
    char *line = NULL, folder[sizeof h->path];
    json_t *json = head_json(h, state, cause, offset_us);
    ct_status st = json == NULL ? CT_FAIL(err, CT_ERR_MEMORY, "no memory for the flight recorder's file")
                                : cti_json_dump(alloc, json, 0, &line, err);
    json_decref(json);
    if (st == CT_OK) {
        cti_str_add_n(&out, line, strcspn(line, "\n"));
        cti_str_add_char(&out, '\n');
        const int64_t first = h->n_begun > h->n_records ? h->n_begun - h->n_records : 0;
        for (int64_t i = first; i < h->n_begun; i++) {
            const cti_record *e = &ring[i % h->n_records];
            if (e->id == (uint64_t)i + 1) { /* not one that was being written when the rank was killed */
                add_record(&out, h, e, offset_us);
            }
        }
        st = cti_str_check(&out, err);
    }
    if (st == CT_OK) {
        (void)snprintf(folder, sizeof folder, "%s", h->path);
        char *slash = strrchr(folder, '/');
        if (slash != NULL && slash != folder) {
            *slash = '\0';
            st = cti_make_dirs(folder, err);
        }
    }
    if (st == CT_OK) {
        st = cti_file_write_atomic(h->path, out.data, out.len, err);
    }
    ct_alloc_free(alloc, line);
    cti_str_deinit(&out);
    return st;
}

/* ---- back from shared memory ---- */

/* A copy whose strings end and whose numbers are in range. False: none, or not of this program. */
static bool read_head(int fd, cti_recorder_head *h, int64_t *out_size)
{
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0 || st.st_size < (off_t)sizeof *h || pread(fd, h, sizeof *h, 0) != (ssize_t)sizeof *h) {
        return false;
    }
    if (h->magic != CTI_RECORDER_MAGIC || h->head_bytes != sizeof *h || h->record_bytes != sizeof(cti_record) || h->n_records < 1 ||
        h->n_records > CTI_RECORDER_MAX_RECORDS || h->n_begun < 0 || h->n_groups < 0 || h->n_groups > CTI_RECORDER_MAX_GROUPS ||
        st.st_size < (off_t)(sizeof *h + (size_t)h->n_records * sizeof(cti_record))) {
        return false;
    }
    h->what[sizeof h->what - 1] = h->engine[sizeof h->engine - 1] = h->version[sizeof h->version - 1] = '\0';
    h->host[sizeof h->host - 1] = h->run_id[sizeof h->run_id - 1] = h->path[sizeof h->path - 1] = '\0';
    for (int i = 0; i < h->n_groups; i++) {
        h->groups[i].name[sizeof h->groups[i].name - 1] = '\0';
    }
    *out_size = st.st_size;
    return true;
}

static bool is_sound(const cti_recorder_head *h, const cti_record *e, uint64_t id)
{
    return e->id == id && e->group >= 0 && e->group < h->n_groups && e->op < CT_COMM_OP_COUNT && e->dtype < CT_DTYPE_COUNT &&
           e->state < N_STATES;
}

bool cti_flight_read_memory(int fd, cti_flight_rank *out)
{
    enum { LOOK_BACK = 64 }; /* calls that may be open at once */
    cti_record tail[LOOK_BACK];
    int64_t size;
    out->is_known = out->has_op = false;
    out->now_ns = cti_now_ns();
    if (!read_head(fd, &out->head, &size)) {
        return false;
    }
    out->is_known = true;
    const cti_recorder_head *h = &out->head;
    int64_t id = h->n_begun;
    const int64_t first = cti_max_i64(1, id - cti_min_i64(LOOK_BACK, h->n_records) + 1);
    while (id >= first) { /* one piece of the ring, or two where it goes round */
        const int64_t end = (id - 1) % h->n_records + 1, n = cti_min_i64(end, id - first + 1);
        const off_t at = (off_t)(sizeof *h + (size_t)(end - n) * sizeof *tail);
        if (pread(fd, tail, (size_t)n * sizeof *tail, at) != (ssize_t)((size_t)n * sizeof *tail)) {
            break;
        }
        for (int64_t i = n; i-- > 0; id--) {
            const cti_record *e = &tail[i];
            if (is_sound(h, e, (uint64_t)id) && (!out->has_op || e->state != CTI_RECORD_COMPLETED)) {
                out->op = *e;
                out->has_op = true;
            }
        }
    }
    return true;
}

ct_status cti_flight_write_memory(const ct_alloc *alloc, int fd, const char *state, const char *cause, ct_err *err)
{
    cti_recorder_head head;
    int64_t size;
    if (!read_head(fd, &head, &size) || head.is_dumped || head.path[0] == '\0') {
        return CT_OK;
    }
    cti_record *ring = CT_NEW_ARRAY(alloc, cti_record, head.n_records, err);
    if (ring == NULL) {
        return CT_ERR_MEMORY;
    }
    const size_t bytes = (size_t)head.n_records * sizeof *ring;
    size_t done = 0;
    ssize_t n;
    while (done < bytes && (n = pread(fd, (char *)ring + done, bytes - done, (off_t)(sizeof head + done))) > 0) {
        done += (size_t)n;
    }
    for (int64_t i = 0; i < head.n_records; i++) {
        if (!is_sound(&head, &ring[i], ring[i].id)) {
            ring[i].id = 0;
        }
    }
    const ct_status st = cti_flight_write(alloc, &head, ring, state, cause, err);
    ct_alloc_free(alloc, ring);
    return st;
}

/* ---- back from a file ---- */

static void copy_text(const json_t *obj, const char *key, char *out, size_t size)
{
    const char *s = json_string_value(json_object_get(obj, key));
    (void)snprintf(out, size, "%s", s != NULL ? s : "");
}

static int64_t number(const json_t *obj, const char *key)
{
    return json_integer_value(json_object_get(obj, key));
}

static uint64_t hex_of(const json_t *obj, const char *key)
{
    uint64_t id = 0;
    const char *s = json_string_value(json_object_get(obj, key));
    return s != NULL && sscanf(s, "%" SCNx64, &id) == 1 ? id : 0;
}

static bool take_head(const json_t *j, cti_flight_rank *out)
{
    cti_recorder_head *h = &out->head;
    const char *format = json_string_value(json_object_get(j, "format"));
    const json_t *groups = json_object_get(j, "groups");
    memset(h, 0, sizeof *h);
    if (!cti_str_eq(format, FORMAT) || !json_is_array(groups)) {
        return false;
    }
    copy_text(j, "version", h->version, sizeof h->version);
    copy_text(j, "run_id", h->run_id, sizeof h->run_id);
    copy_text(j, "host", h->host, sizeof h->host);
    copy_text(j, "engine", h->engine, sizeof h->engine);
    copy_text(j, "doing", h->what, sizeof h->what);
    copy_text(j, "state", out->state, sizeof out->state);
    h->rank = (int32_t)number(j, "rank");
    h->world_size = (int32_t)number(j, "world_size");
    h->pid = (int32_t)number(j, "pid");
    h->restart = (int32_t)number(j, "restart");
    h->step = number(j, "step");
    h->since_ns = number(j, "since_us") * 1000;
    h->is_broken = (int32_t)json_is_true(json_object_get(j, "broken"));
    h->limit_ms = number(j, "limit_ms");
    h->n_begun = number(j, "n_calls");
    h->n_records = number(j, "ring");
    out->now_ns = number(j, "written_us") * 1000;
    for (size_t i = 0; i < json_array_size(groups) && i < CTI_RECORDER_MAX_GROUPS; i++) {
        const json_t *g = json_array_get(groups, i);
        cti_recorder_group *to = &h->groups[h->n_groups++];
        to->id = hex_of(g, "id");
        to->last_number = (uint64_t)number(g, "last_number");
        to->size = (int32_t)number(g, "size");
        to->rank = (int32_t)number(g, "rank");
        to->first = (int32_t)number(g, "first");
        to->stride = (int32_t)number(g, "stride");
        copy_text(g, "name", to->name, sizeof to->name);
    }
    out->rank = h->rank;
    out->is_known = h->rank >= 0 && h->world_size > h->rank;
    return out->is_known;
}

static bool take_record(const json_t *j, const cti_recorder_head *h, cti_record *e)
{
    const char *op = json_string_value(json_object_get(j, "op")), *state = json_string_value(json_object_get(j, "state"));
    const char *dtype = json_string_value(json_object_get(j, "dtype"));
    const uint64_t group = hex_of(j, "group");
    ct_dtype type;
    *e = (cti_record){.id = (uint64_t)number(j, "id"), .number = (uint64_t)number(j, "number"), .bytes = number(j, "bytes"),
                      .step = number(j, "step"), .scheduled_ns = number(j, "scheduled_us") * 1000,
                      .started_ns = number(j, "started_us") * 1000, .ended_ns = number(j, "ended_us") * 1000, .group = -1,
                      .op = CT_COMM_OP_COUNT, .state = N_STATES, .peer = (int16_t)number(j, "peer")};
    for (int i = 0; i < CT_COMM_OP_COUNT; i++) {
        e->op = cti_str_eq(op, ct_comm_op_name((ct_comm_op)i)) ? (uint8_t)i : e->op;
    }
    for (int i = 0; i < N_STATES; i++) {
        e->state = cti_str_eq(state, state_names[i]) ? (uint8_t)i : e->state;
    }
    for (int i = 0; i < h->n_groups; i++) {
        e->group = h->groups[i].id == group ? (int16_t)i : e->group;
    }
    if (dtype == NULL || !ct_dtype_parse(dtype, &type)) {
        return false;
    }
    e->dtype = (uint8_t)type;
    return is_sound(h, e, e->id) && e->id > 0;
}

ct_status cti_flight_read_file(const ct_alloc *alloc, const char *path, cti_flight_rank *out, char *out_cause, size_t size, ct_err *err)
{
    char *data = NULL;
    size_t n;
    CT_TRY(cti_file_read(alloc, path, MAX_FILE_BYTES, &data, &n, err));
    ct_status st = CT_OK;
    int64_t line = 1;
    memset(out, 0, sizeof *out);
    for (char *at = data; at < data + n && st == CT_OK; line++) {
        char *newline = memchr(at, '\n', (size_t)(data + n - at));
        const size_t length = newline != NULL ? (size_t)(newline - at) : (size_t)(data + n - at);
        json_t *json = NULL;
        cti_record e;
        st = cti_json_parse(at, length, path, &json, err);
        if (st == CT_OK && line == 1) {
            st = take_head(json, out) ? CT_OK : CT_FAIL(err, CT_ERR_FORMAT, "'%s' is no file of a flight recorder (" FORMAT ")", path);
            copy_text(json, "cause", out_cause, size);
        } else if (st == CT_OK && !take_record(json, &out->head, &e)) {
            st = CT_FAIL(err, CT_ERR_FORMAT, "'%s' line %" PRId64 ": no record of a call", path, line);
        } else if (st == CT_OK && line > 1 && !(out->has_op && out->op.state != CTI_RECORD_COMPLETED)) {
            out->op = e; /* the last, or the oldest that is not complete */
            out->has_op = true;
        }
        json_decref(json);
        at += length + 1;
    }
    if (st == CT_OK && line == 1) {
        st = CT_FAIL(err, CT_ERR_FORMAT, "'%s' is empty", path);
    }
    ct_alloc_free(alloc, data);
    return st;
}

/* ---- between launchers ---- */

ct_status cti_flight_pack(const ct_alloc *alloc, const cti_flight_rank *r, cti_str *out, ct_err *err)
{
    json_t *json = head_json(&r->head, r->state, "", 0);
    char *line = NULL;
    if (json == NULL) {
        return CT_FAIL(err, CT_ERR_MEMORY, "no memory for the table of ranks");
    }
    (void)json_object_set_new(json, "rank", json_integer(r->rank));
    (void)json_object_set_new(json, "known", json_boolean(r->is_known));
    (void)json_object_set_new(json, "broken", json_boolean(r->head.is_broken != 0));
    (void)json_object_set_new(json, "written_us", json_integer(r->now_ns / 1000));
    const ct_status st = cti_json_dump(alloc, json, 0, &line, err);
    json_decref(json);
    if (st == CT_OK) {
        cti_str_add_n(out, line, strcspn(line, "\n"));
        cti_str_add_char(out, '\t');
        if (r->is_known && r->has_op) {
            add_record(out, &r->head, &r->op, 0);
            out->data[--out->len] = '\0'; /* the newline */
        }
    }
    ct_alloc_free(alloc, line);
    return st == CT_OK ? cti_str_check(out, err) : st;
}

bool cti_flight_unpack(const char *line, cti_flight_rank *out)
{
    const char *tab = strchr(line, '\t');
    json_t *head = NULL, *op = NULL;
    memset(out, 0, sizeof *out);
    bool ok = tab != NULL && cti_json_parse(line, (size_t)(tab - line), "a rank", &head, NULL) == CT_OK;
    if (ok) {
        ok = json_is_object(head);
        const bool is_known = json_is_true(json_object_get(head, "known"));
        ok = ok && (take_head(head, out) || !is_known);
        out->rank = (int)number(head, "rank");
        out->is_known = is_known;
        copy_text(head, "state", out->state, sizeof out->state);
    }
    if (ok && tab[1] != '\0') {
        out->has_op = cti_json_parse(tab + 1, strlen(tab + 1), "a call", &op, NULL) == CT_OK && take_record(op, &out->head, &out->op);
    }
    json_decref(head);
    json_decref(op);
    return ok;
}
