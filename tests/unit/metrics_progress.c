/* rooms: metrics base */
/* SPDX-License-Identifier: Apache-2.0 */
/* Which steps are profiled, what a profile holds, and the progress line: how it fits, and that it never garbles the log. */
#include "base_test.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <zlib.h>

#include "base/base.h"
#include "metrics/metrics.h"

/* ---- profile --------------------------------------------------------------------------------------------------- */

/* One letter a step from 1 on: '.' none, 'w' warm-up, 'r' recorded, 'R' recorded and written; as torch.profiler.schedule chooses
 * (wait = freq - warmup - active). */
static void steps_are_chosen(void **state)
{
    (void)state;
    static const struct {
        cti_profile_schedule s;
        const char *steps;
    } cases[] = {
        {{10, 3, 1, 0, 0, false}, "......wwwR......wwwR"},
        {{4, 1, 2, 0, 0, false}, ".wrR.wrR"},
        {{1, 0, 1, 0, 0, false}, "RRRR"},
        {{4, 1, 1, 1, 0, false}, "..wR...."},
        {{4, 1, 1, 2, 3, false}, ".....wR..wR...."},
        {{4, 1, 1, 0, 2, true}, "..wR..wR"},
        {{3, 2, 1, 0, 0, true}, "wwRwwR"},
    };
    for (size_t i = 0; i < N_OF(cases); i++) {
        for (size_t k = 0; cases[i].steps[k] != '\0'; k++) {
            const char letter = ".wrR"[cti_profile_phase(&cases[i].s, (int64_t)k + 1)];
            if (letter != cases[i].steps[k]) {
                fail_msg("case %zu, step %zu: %c", i, k + 1, letter);
            }
        }
    }
}

static json_t *unpack(const char *path)
{
    char *text = calloc(1, 1 << 20);
    ct_err err = {0};
    json_t *json = NULL;
    gzFile file = gzopen(path, "rb"); /* reads plain text too */
    assert_non_null(file);
    const int n = gzread(file, text, 1 << 20);
    assert_true(n > 0);
    assert_int_equal(gzclose(file), Z_OK);
    if (cti_json_parse(text, (size_t)n, path, &json, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    free(text);
    return json;
}

static void a_profile_is_chromes(void **state)
{
    (void)state;
    static const char *const names[] = {"a/rank3_trace.json.gz", "b/rank3_trace.json"};
    char dir[256], path[400];
    ct_err err = {0};
    cti_profile *p;
    const cti_profile_schedule every = {1, 0, 1, 0, 0, false};
    test_folder_make(dir, sizeof dir);
    assert_int_equal(cti_profile_create(ct_alloc_system(), &every, 1000, &p, &err), CT_OK);
    assert_true(cti_profile_records(p, 1) && cti_profile_ends(p, 1));
    assert_false(cti_profile_records(NULL, 1) || cti_profile_ends(NULL, 1));
    for (size_t i = 0; i < N_OF(names); i++) {
        cti_profile_add(p, &(cti_span){"matmul", "op", "layers.\"0\"", "forward", "f32[2] -> f32[2]", 5000000123, 5000001123, 7, 1, 0, 64, 0});
        cti_profile_add(p, &(cti_span){"add", "op", NULL, "forward", NULL, 5000001123, 5000001124, 7, -1, 1, 64, 5});
        cti_profile_add(p, &(cti_span){"forward", "program", NULL, NULL, NULL, 5000000000, 5000002000, 7, 1, 0, -1, 0});
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        assert_int_equal(cti_profile_write(p, path, 3, &err), CT_OK);
        json_t *json = unpack(path), *events = json_object_get(json, "traceEvents");
        /* The process's name, two streams', three spans, one sample of memory (the second is the same). */
        assert_int_equal(json_array_size(events), 7);
        static const char *const streams[] = {"compute", "communication"};
        for (size_t k = 0; k < 2; k++) {
            json_t *named = json_object_get(json_array_get(events, k + 1), "args");
            assert_string_equal(json_string_value(json_object_get(named, "name")), streams[k]);
        }
        json_t *op = json_array_get(events, 3);
        assert_string_equal(json_string_value(json_object_get(op, "name")), "matmul");
        assert_string_equal(json_string_value(json_object_get(op, "ph")), "X");
        assert_true(json_number_value(json_object_get(op, "ts")) == 0.123 && json_number_value(json_object_get(op, "dur")) == 1.0);
        assert_int_equal(json_integer_value(json_object_get(op, "pid")), 3);
        json_t *args = json_object_get(op, "args");
        assert_string_equal(json_string_value(json_object_get(args, "scope")), "layers.\"0\"");
        assert_int_equal(json_integer_value(json_object_get(args, "micro_batch")), 1);
        assert_string_equal(json_string_value(json_object_get(json_array_get(events, 4), "ph")), "C");
        assert_int_equal(json_integer_value(json_object_get(json_object_get(json_array_get(events, 4), "args"), "activations")), 64);
        assert_null(json_object_get(json_object_get(json_array_get(events, 5), "args"), "micro_batch"));
        assert_int_equal(json_integer_value(json_object_get(json_array_get(events, 5), "tid")), 1);
        assert_int_equal(json_integer_value(json_object_get(json_object_get(json_array_get(events, 5), "args"), "number")), 5);
        json_decref(json);
    }
    assert_int_equal(cti_profile_write(p, "/dev/null/x/trace.json", 3, &err), CT_ERR_IO);
    cti_profile_destroy(&p);
    test_folder_remove(dir);
}

/* ---- progress -------------------------------------------------------------------------------------------------- */

static int columns_of(const char *text)
{
    int n = 0;
    for (; *text != '\0'; text++) {
        n += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return n;
}

static void the_line_fits(void **state)
{
    (void)state;
    cti_progress p;
    cti_progress_init(&p, ct_alloc_system(), NULL, 1000);
    for (int i = 0; i < 30; i++) {
        p.losses[p.n_losses++] = 8.0 - i / 10.0;
    }
    for (int columns = 1; columns < 240; columns++) {
        cti_str s = {.alloc = ct_alloc_system()};
        cti_progress_format(&p, 120, 3.21, 12345.6, 200.4, columns, &s);
        assert_true(columns_of(cti_str_text(&s)) < columns || s.len == 0);
        assert_null(strchr(cti_str_text(&s), '\n'));
        cti_str_deinit(&s);
    }
    cti_str s = {.alloc = ct_alloc_system()};
    cti_progress_format(&p, 120, 3.21, 12345.6, 200.4, 200, &s);
    assert_non_null(strstr(cti_str_text(&s), "step 120/1000 ━━━━──────────────────────────  12%  ETA 0:03:20  loss 3.2100  12,345 tok/s "));
    assert_non_null(strstr(cti_str_text(&s), "█"));
    assert_true(cti_ends_with(cti_str_text(&s), "▁"));
    static const struct {
        double left;
        const char *text;
    } times[] = {{0.0, "ETA 0:00:00"}, {90061.0, "ETA 1d 1:01:01"}, {(double)NAN, "ETA ?"}, {(double)INFINITY, "ETA ?"}, {-5.0, "ETA ?"}, {1e30, "ETA ?"}};
    for (size_t i = 0; i < N_OF(times); i++) {
        cti_str_reset(&s);
        cti_progress_format(&p, 1, (double)NAN, (double)INFINITY, times[i].left, 80, &s);
        if (strstr(cti_str_text(&s), times[i].text) == NULL) {
            fail_msg("%s lacks %s", cti_str_text(&s), times[i].text);
        }
    }
    cti_str_deinit(&s);
}

/* The whole stream of bytes: each line of the log whole, the status below it, nothing left at the end; few drawings. */
static void the_log_stays_whole(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    ct_err err = {0};
    ct_log *log;
    cti_progress p;
    FILE *stream = open_memstream(&text, &size);
    assert_int_equal(ct_log_create(ct_alloc_system(), stream, CT_LOG_INFO, &log, &err), CT_OK);
    cti_progress_init(&p, ct_alloc_system(), log, 1000);
    CT_INFO(log, "before");
    fflush(stream);
    assert_null(strchr(text, '\033')); /* nothing is drawn before the first step */
    for (int64_t step = 1; step <= 1000; step++) { /* 10 ms each */
        cti_progress_step(&p, step, 8.0 - (double)step / 500.0, 64, 1000000000 + step * 10000000);
        if (step % 100 == 0) {
            CT_INFO(log, "step %d", (int)step);
        }
    }
    assert_true(p.n_losses <= CTI_PROGRESS_LOSSES && p.stride == 16);
    assert_true(p.losses[0] > p.losses[p.n_losses - 1]);
    cti_progress_deinit(&p);
    CT_INFO(log, "after");
    fflush(stream);
    int n_lines = 0, n_drawn = 0;
    char *line = text;
    for (char *newline; (newline = strchr(line, '\n')) != NULL; line = newline + 1) {
        *newline = '\0';
        char *shown = line; /* what stands in the line when the cursor leaves it: all behind the last erasure */
        for (char *at; (at = strstr(shown, "\r\033[J")) != NULL; shown = at + 4) {
            n_drawn += strncmp(at + 4, "step ", 5) == 0;
        }
        assert_true(cti_starts_with(shown, "[titan] ") && strchr(shown, '\r') == NULL);
        n_lines++;
    }
    assert_int_equal(n_lines, 12);
    assert_true(n_drawn >= 40 && n_drawn <= 42 + 10); /* four a second, and again below each line */
    assert_string_equal(line, ""); /* the last line of the log ended with the status gone */
    ct_log_destroy(&log);
    fclose(stream);
    free(text);
}

/* A terminal that became narrower between two drawings: the line is cut to it, not wrapped. */
static void a_narrower_terminal(void **state)
{
    (void)state;
    ct_err err = {0};
    ct_log *log;
    char bytes[4096];
    struct winsize window = {.ws_row = 24, .ws_col = 120};
    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) {
        skip();
    }
    const int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(slave >= 0);
    FILE *stream = fdopen(slave, "w");
    assert_non_null(stream);
    assert_int_equal(ioctl(master, TIOCSWINSZ, &window), 0);
    assert_int_equal(ct_log_create(ct_alloc_system(), stream, CT_LOG_INFO, &log, &err), CT_OK);
    cti_str wide = {.alloc = ct_alloc_system()};
    for (int i = 0; i < 119; i++) {
        cti_str_add(&wide, "━");
    }
    ct_log_set_status(log, wide.data);
    for (unsigned short columns = 120; columns > 0; columns = (unsigned short)(columns - 17)) {
        window.ws_col = columns;
        assert_int_equal(ioctl(master, TIOCSWINSZ, &window), 0);
        ssize_t n = read(master, bytes, sizeof bytes - 1); /* what was written before */
        assert_true(n > 0);
        CT_INFO(log, "a line");
        size_t size = 0;
        do { /* the line comes in one write, which the terminal may hand on in parts */
            n = read(master, bytes + size, sizeof bytes - 1 - size);
            assert_true(n > 0);
            size += (size_t)n;
            bytes[size] = '\0';
        } while (strstr(bytes, "a line\r\n") == NULL || bytes[size - 1] != '\r');
        assert_int_equal(columns_of(strstr(bytes, "a line\r\n") + 8), columns); /* one less, and the way back */
        CT_INFO(log, "another");
        if (columns <= 17) {
            break;
        }
    }
    cti_str_deinit(&wide);
    ct_log_destroy(&log);
    fclose(stream);
    close(master);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_chosen),
        cmocka_unit_test(a_profile_is_chromes),
        cmocka_unit_test(the_line_fits),
        cmocka_unit_test(the_log_stays_whole),
        cmocka_unit_test(a_narrower_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
