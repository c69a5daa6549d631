/* rooms: metrics base */
/* SPDX-License-Identifier: Apache-2.0 */
/* What a run leaves behind, byte for byte: TensorBoard's records, metrics.csv over a resume, JSON lines, the writing thread. */
#include "base_test.h"

#include <math.h>
#include <signal.h>
#include <unistd.h>

#include "base/base.h"
#include "metrics/metrics.h"

static char *text_of(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    ct_err err = {0};
    if (cti_file_read(ct_alloc_system(), path, 0, &text, &size, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    return text;
}

/* ---- TensorBoard ----------------------------------------------------------------------------------------------- */

/* RFC 3720, B.4, and the check value of the polynomial; the masked form for a length of 24 as TensorBoard 2.x reads it. */
static void checksums_are_crc32c(void **state)
{
    (void)state;
    unsigned char bytes[32];
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(cti_crc32c(bytes, 32), 0x8a9136aau);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(cti_crc32c(bytes, 32), 0x62a8ab43u);
    for (int i = 0; i < 32; i++) {
        bytes[i] = (unsigned char)i;
    }
    assert_int_equal(cti_crc32c(bytes, 32), 0x46dd794eu);
    assert_int_equal(cti_crc32c("123456789", 9), 0xe3069283u);
    assert_int_equal(cti_crc32c("", 0), 0);
    const unsigned char length[8] = {24};
    assert_int_equal(cti_crc32c_masked(length, 8), 0x224b7fa3u);
}

typedef struct record {
    double wall;
    int64_t step;
    char version[32];
    bool is_restart;
    int n;
    char tags[CTI_MAX_SCALARS][64];
    float values[CTI_MAX_SCALARS];
} record;

static uint64_t little(const unsigned char *p, int n)
{
    uint64_t v = 0;
    for (int i = 0; i < n; i++) {
        v |= (uint64_t)p[i] << (8 * i);
    }
    return v;
}

static uint64_t varint(const unsigned char **p)
{
    uint64_t v = 0;
    for (int shift = 0;; shift += 7) {
        const unsigned char c = *(*p)++;
        v |= (uint64_t)(c & 0x7f) << shift;
        if (c < 0x80) {
            return v;
        }
    }
}

static void read_value(const unsigned char *p, size_t n, record *r)
{
    const unsigned char *end = p + n;
    assert_int_equal(*p++, 0x0a);
    const uint64_t tag = varint(&p);
    memcpy(r->tags[r->n], p, tag);
    p += tag;
    assert_int_equal(*p++, 0x15);
    const uint32_t bits = (uint32_t)little(p, 4);
    memcpy(&r->values[r->n++], &bits, 4);
    assert_ptr_equal(p + 4, end);
}

static const unsigned char *read_record(const unsigned char *p, record *r)
{
    *r = (record){0};
    const uint64_t size = little(p, 8);
    assert_int_equal(little(p + 8, 4), cti_crc32c_masked(p, 8));
    const unsigned char *at = p + 12, *end = at + size;
    assert_int_equal(little(end, 4), cti_crc32c_masked(at, size));
    while (at < end) {
        const unsigned char key = *at++;
        if (key == (1 << 3 | 1)) {
            const uint64_t bits = little(at, 8);
            memcpy(&r->wall, &bits, 8);
            at += 8;
        } else if (key == 2 << 3) {
            r->step = (int64_t)varint(&at);
        } else {
            const size_t n = varint(&at);
            if (key == (3 << 3 | 2)) {
                memcpy(r->version, at, n);
            } else if (key == (7 << 3 | 2)) {
                r->is_restart = n == 2 && at[0] == 8 && at[1] == 1;
            } else {
                assert_int_equal(key, 5 << 3 | 2);
                for (const unsigned char *v = at; v < at + n;) {
                    assert_int_equal(*v++, 0x0a);
                    const size_t n_value = varint(&v);
                    read_value(v, n_value, r);
                    v += n_value;
                }
            }
            at += n;
        }
    }
    assert_ptr_equal(at, end);
    return end + 4;
}

static void events_read_back(void **state)
{
    (void)state;
    const cti_scalar scalars[] = {{"loss_metrics/global_avg_loss", 8.25, true}, {"mfu(%)", 1.0, false}, {"grad_norm", (double)NAN, true}};
    cti_str s = {.alloc = ct_alloc_system()};
    cti_tfevents_version(&s, 1.5);
    cti_tfevents_restart(&s, 2.5, 6);
    cti_tfevents_scalars(&s, 3.5, 1234567890123, scalars, 3);
    record r;
    const unsigned char *p = read_record((unsigned char *)s.data, &r);
    assert_string_equal(r.version, "brain.Event:2");
    assert_true(r.wall == 1.5);
    p = read_record(p, &r);
    assert_true(r.is_restart && r.step == 6);
    p = read_record(p, &r);
    assert_ptr_equal(p, s.data + s.len);
    assert_int_equal(r.step, 1234567890123);
    assert_int_equal(r.n, 2);
    assert_string_equal(r.tags[0], "loss_metrics/global_avg_loss");
    assert_true(r.values[0] == 8.25F && isnan(r.values[1]));
    assert_string_equal(r.tags[1], "grad_norm");
    cti_str_deinit(&s);
}

static void event_files_follow_each_other(void **state)
{
    (void)state;
    char dir[256], base[300];
    char *path = NULL, *second = NULL;
    ct_err err = {0};
    test_folder_make(dir, sizeof dir);
    snprintf(base, sizeof base, "%s/tb", dir);
    const int64_t when = 1796036636789;
    assert_int_equal(cti_tfevents_path(ct_alloc_system(), base, "rank_3", false, when, &path, &err), CT_OK);
    cti_writer *w;
    assert_int_equal(cti_writer_create(ct_alloc_system(), NULL, &w, &err), CT_OK);
    assert_non_null(cti_writer_open(w, path));
    /* Resumed a year later, or in the same second: the same folder, and a file behind the first. */
    assert_int_equal(cti_tfevents_path(ct_alloc_system(), base, "rank_3", true, when + 31536000000, &second, &err), CT_OK);
    const char *slash = strrchr(path, '/');
    assert_memory_equal(path, second, (size_t)(slash - path));
    ct_alloc_free(ct_alloc_system(), second);
    assert_int_equal(cti_tfevents_path(ct_alloc_system(), base, "rank_3", true, when, &second, &err), CT_OK);
    assert_memory_equal(path, second, (size_t)(slash - path));
    assert_true(strcmp(second, path) > 0);
    ct_alloc_free(ct_alloc_system(), second);
    /* A fresh start a year later: a folder of its own. */
    assert_int_equal(cti_tfevents_path(ct_alloc_system(), base, "rank_3", false, when + 31536000000, &second, &err), CT_OK);
    assert_memory_not_equal(path, second, (size_t)(slash - path));
    ct_alloc_free(ct_alloc_system(), second);
    ct_alloc_free(ct_alloc_system(), path);
    cti_writer_destroy(&w);
    test_folder_remove(dir);
}

/* ---- metrics.csv ----------------------------------------------------------------------------------------------- */

static void csv_goes_on(void **state)
{
    (void)state;
    static const struct {
        const char *before; /* NULL: no file */
        int64_t resumed_step;
        const char *after;
        bool is_moved;
    } cases[] = {
        {NULL, 0, "step,time,a\n", false},
        {NULL, 5, "step,time,a\n", false},
        {"step,time,a\n1,0.000,1\n2,0.000,2\n3,0.000,3\n", 2, "step,time,a\n1,0.000,1\n2,0.000,2\n", false},
        {"step,time,a\n1,0.000,1\n2,0.000,2\n", 2, "step,time,a\n1,0.000,1\n2,0.000,2\n", false},
        {"step,time,a\n1,0.000,1\n2,0.0", 2, "step,time,a\n1,0.000,1\n", false},          /* a crash cut it */
        {"step,time,a\n1,0.000,1\n1,0.000,2\n2,0.0,3\n", 2, "step,time,a\n1,0.000,1\n", false}, /* steps must rise */
        {"step,time,a\nx\n", 2, "step,time,a\n", false},
        {"step,time,a\n1,0.000,1\n", 0, "step,time,a\n", true}, /* a fresh run keeps the old one's file */
        {"step,time,b\n1,0.000,1\n", 1, "step,time,a\n", true},
        {"", 3, "step,time,a\n", false},
        {"step,time,a\n", 0, "step,time,a\n", false},
    };
    for (size_t i = 0; i < N_OF(cases); i++) {
        char dir[256], path[300], moved[310];
        ct_err err = {0};
        bool was_moved = false;
        test_folder_make(dir, sizeof dir);
        snprintf(path, sizeof path, "%s/metrics.csv", dir);
        snprintf(moved, sizeof moved, "%s.1", path);
        if (cases[i].before != NULL) {
            assert_int_equal(cti_file_write_atomic(path, cases[i].before, strlen(cases[i].before), &err), CT_OK);
        }
        assert_int_equal(cti_csv_prepare(ct_alloc_system(), path, "step,time,a\n", cases[i].resumed_step, &was_moved, &err), CT_OK);
        char *text = text_of(path);
        assert_string_equal(text, cases[i].after);
        ct_alloc_free(ct_alloc_system(), text);
        assert_int_equal(was_moved, cases[i].is_moved);
        assert_int_equal(cti_path_exists(moved), cases[i].is_moved);
        test_folder_remove(dir);
    }
}

static void csv_rows(void **state)
{
    (void)state;
    const cti_scalar scalars[] = {{"loss", 1.0 / 3.0, true}, {"mfu(%)", 0.0, false}, {"n", 1024.0, true}, {"x", (double)INFINITY, true}};
    cti_str s = {.alloc = ct_alloc_system()};
    cti_csv_header(&s, scalars, 4);
    cti_csv_row(&s, 7, 1.25, scalars, 4);
    assert_string_equal(cti_str_text(&s), "step,time,loss,mfu(%),n,x\n7,1.250,0.3333333333333333,,1024,inf\n");
    cti_str_deinit(&s);
}

/* 737,280 FLOPs a token, 1,000 tokens in a second on two devices that share them. */
static void rates_have_the_right_unit(void **state)
{
    (void)state;
    const cti_rates r = cti_rates_of(1000.0, 1.0, 2, 737280.0, 0.0);
    char text[32];
    snprintf(text, sizeof text, "%.6f", r.tflops);
    assert_string_equal(text, "0.000369");
    assert_true(r.tokens_per_second == 500.0 && !r.has_mfu);
    const cti_rates known = cti_rates_of(2000.0, 2.0, 1, 1e6, 1e10);
    assert_true(known.has_mfu && known.mfu_percent == 10.0);
    assert_true(cti_rates_of(10.0, 0.0, 1, 1.0, 1.0).tokens_per_second == 0.0);
}

/* ---- JSON lines ------------------------------------------------------------------------------------------------ */

static void check_line(json_t *line, const char *type, const char *name, const char *event, double value)
{
    assert_string_equal(json_string_value(json_object_get(line, "log_type")), type);
    assert_string_equal(json_string_value(json_object_get(line, "log_type_name")), name);
    if (event == NULL) {
        assert_true(json_is_null(json_object_get(line, "event_name")));
    } else {
        assert_string_equal(json_string_value(json_object_get(line, "event_name")), event);
        assert_true(json_number_value(json_object_get(line, "value")) == value);
    }
    assert_true(json_is_integer(json_object_get(line, "time_us")));
    assert_true(json_is_number(json_object_get(line, "delta_ms")));
    assert_int_equal(json_integer_value(json_object_get(line, "rank")), 2);
    assert_true(cti_starts_with(json_string_value(json_object_get(line, "caller")), json_string_value(json_object_get(line, "log_file"))));
}

static void trace_lines(void **state)
{
    (void)state;
    char dir[256], folder[300], big[3000];
    ct_err err = {0};
    cti_writer *w;
    cti_trace *t;
    test_folder_make(dir, sizeof dir);
    snprintf(folder, sizeof folder, "%s/structured_logs", dir);
    assert_int_equal(cti_writer_create(ct_alloc_system(), NULL, &w, &err), CT_OK);
    const cti_trace_options options = {.folder = folder, .rank = 2, .local_rank = 1, .source = "training", .wall_ms = 1796036636789};
    assert_int_equal(cti_trace_open(ct_alloc_system(), w, &options, &t, &err), CT_OK);
    assert_true(cti_starts_with(cti_path_base(cti_trace_path(t)), "training.global_rank_2.2026"));
    cti_trace_step(t, 7, 2);
    cti_trace_tag(t, CTI_TAG_CHECKPOINT_SAVE);
    cti_trace_tag(t, CTI_TAG_EVAL);
    cti_trace_end(t, CTI_HERE, "optim", cti_trace_begin(t, CTI_HERE, "optim"), false);
    cti_trace_scalar(t, CTI_HERE, "local_valid_tokens", 128.0);
    cti_trace_step(t, 8, 3);
    memset(big, 'x', sizeof big);
    memcpy(big + sizeof big - 12, "\"\\\n\t\x01\xff\xc3\xa9" "end", 12); /* a quote, controls, no UTF-8, é */
    cti_trace_instant(t, CTI_HERE, "training_start", big);
    char *path = ct_alloc_strdup(ct_alloc_system(), cti_trace_path(t), &err);
    cti_trace_close(&t);
    cti_writer_destroy(&w);
    char *text = text_of(path), *at = text;
    json_t *line[7] = {0};
    int n = 0;
    for (char *newline; (newline = strchr(at, '\n')) != NULL; at = newline + 1) {
        assert_true(n < 7);
        if (cti_json_parse(at, (size_t)(newline - at), "line", &line[n++], &err) != CT_OK) {
            fail_msg("%s", err.message);
        }
    }
    assert_int_equal(n, 6);
    check_line(line[0], "instant", "structured_logger_started", NULL, 0.0);
    assert_null(json_object_get(line[0], "step"));
    check_line(line[1], "event", "optim_start", NULL, 0.0);
    check_line(line[2], "event", "optim_error", NULL, 0.0);
    check_line(line[3], "event", "optim_end", NULL, 0.0);
    assert_true(json_number_value(json_object_get(line[3], "value")) >= 0.0);
    check_line(line[4], "instant", "metric_value", "local_valid_tokens", 128.0);
    assert_int_equal(json_array_size(json_object_get(line[4], "step_tags")), 2);
    assert_int_equal(json_integer_value(json_object_get(line[4], "step")), 7);
    check_line(line[5], "instant", "training_start", NULL, 0.0);
    assert_null(json_object_get(line[5], "step_tags"));
    const char *message = json_string_value(json_object_get(line[5], "message"));
    assert_true(strlen(message) < 1010 && strstr(message, "...") != NULL);
    assert_true(cti_ends_with(message, "\"\\\n\t\x01\xef\xbf\xbd\xc3\xa9" "end"));
    for (int i = 0; i < n; i++) {
        assert_int_equal(json_integer_value(json_object_get(line[i], "seq_id")), i);
        json_decref(line[i]);
    }
    ct_alloc_free(ct_alloc_system(), text);
    ct_alloc_free(ct_alloc_system(), path);
    test_folder_remove(dir);
}

/* ---- the writer ------------------------------------------------------------------------------------------------ */

static void failures_are_warned_of_once(void **state)
{
    (void)state;
    char dir[256], path[300], *text = NULL;
    size_t size = 0;
    ct_err err = {0};
    cti_writer *w;
    ct_log *log;
    test_folder_make(dir, sizeof dir);
    FILE *stream = open_memstream(&text, &size);
    assert_int_equal(ct_log_create(ct_alloc_system(), stream, CT_LOG_INFO, &log, &err), CT_OK);
    assert_int_equal(cti_writer_create(ct_alloc_system(), log, &w, &err), CT_OK);
    cti_writer_file *full = cti_writer_open(w, "/dev/full");
    snprintf(path, sizeof path, "%s/good", dir);
    cti_writer_file *good = cti_writer_open(w, path);
    assert_non_null(full);
    cti_writer_add(full, "abc", 3);
    cti_writer_add(good, "one\n", 4);
    cti_writer_flush(w);
    char *written = text_of(path); /* after a flush it is in the file */
    assert_string_equal(written, "one\n");
    ct_alloc_free(ct_alloc_system(), written);
    cti_writer_add(full, "abc", 3);
    assert_null(cti_writer_open(w, "/dev/null/x/y"));
    cti_writer_add(NULL, "abc", 3);
    cti_writer_add(good, "two\n", 4);
    cti_writer_destroy(&w);
    written = text_of(path);
    assert_string_equal(written, "one\ntwo\n");
    ct_alloc_free(ct_alloc_system(), written);
    fflush(stream);
    char *first = strstr(text, "WARNING");
    assert_non_null(first);
    assert_non_null(strstr(text, "'/dev/full' cannot be written: No space left on device"));
    assert_null(strstr(first + 1, "WARNING"));
    ct_log_destroy(&log);
    fclose(stream);
    free(text);
    test_folder_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums_are_crc32c), cmocka_unit_test(events_read_back),
        cmocka_unit_test(event_files_follow_each_other), cmocka_unit_test(csv_goes_on),
        cmocka_unit_test(csv_rows), cmocka_unit_test(rates_have_the_right_unit),
        cmocka_unit_test(trace_lines), cmocka_unit_test(failures_are_warned_of_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
