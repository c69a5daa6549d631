/* rooms: base */
/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines: their form, levels, hook and wholeness. */
#include "base_test.h"

#include <pthread.h>
#include <regex.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "ctitan/log.h"

static int matches(const char *pattern, const char *text)
{
    regex_t regex;
    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    const int rc = regexec(&regex, text, 0, NULL, 0);
    regfree(&regex);
    return rc == 0;
}

static void lines_have_the_form(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    ct_err err = {0};
    ct_log *log;
    assert_int_equal(ct_log_create(ct_alloc_system(), stream, CT_LOG_INFO, &log, &err), CT_OK);
    ct_log_line(log, CT_LOG_DEBUG, "dropped");
    assert_int_equal(size, 0);
    CT_INFO(log, "step: %2d  loss: %.4f", 1, 8.25);
    assert_true(
        matches("^\\[titan\\] [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2},[0-9]{3} - root - INFO - "
                "step:  1  loss: 8\\.2500\n$",
                text));
    CT_WARN(log, "w");
    CT_ERROR(log, "e");
    assert_true(matches(" - root - WARNING - w\n.* - root - ERROR - e\n$", text));
    CT_INFO(NULL, "nothing");
    ct_log_destroy(&log);
    assert_null(log);
    ct_log_destroy(&log);
    (void)fclose(stream);
    free(text);
}

static void any_length_is_whole(void **state)
{
    (void)state;
    for (int n = 1900; n < 2100; n++) {
        char *text = NULL;
        size_t size = 0;
        FILE *stream = open_memstream(&text, &size);
        ct_log *log;
        assert_int_equal(ct_log_create(ct_alloc_system(), stream, CT_LOG_INFO, &log, NULL), CT_OK);
        CT_INFO(log, "%0*d", n, 7);
        assert_true(cti_ends_with(text, "00007\n"));
        assert_int_equal(strlen(strstr(text, "INFO - ") + 7), n + 1);
        ct_log_destroy(&log);
        (void)fclose(stream);
        free(text);
    }
}

static void no_memory_leaves_the_beginning(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    test_alloc t;
    test_alloc_init(&t, 2);
    ct_log *log;
    assert_int_equal(ct_log_create(&t.alloc, stream, CT_LOG_INFO, &log, NULL), CT_OK);
    CT_ERROR(log, "begin %05000d", 7);
    assert_non_null(strstr(text, "ERROR - begin 0000"));
    assert_int_equal(text[size - 1], '\n');
    assert_int_equal(strlen(text), size);
    ct_log_destroy(&log);
    assert_int_equal(t.n_live, 0);
    (void)fclose(stream);
    free(text);
}

static void keep_hooked(void *ctx, ct_log_level level, const char *text)
{
    cti_str_printf(ctx, "%d:%s|", (int)level, text);
}

static void hook_sees_the_text(void **state)
{
    (void)state;
    FILE *stream = fopen("/dev/null", "w");
    assert_non_null(stream);
    ct_log *log;
    assert_int_equal(ct_log_create(ct_alloc_system(), stream, CT_LOG_INFO, &log, NULL), CT_OK);
    cti_str seen = {.alloc = ct_alloc_system()};
    ct_log_set_hook(log, keep_hooked, &seen);
    CT_INFO(log, "a\nb");
    ct_log_line(log, CT_LOG_DEBUG, "dropped");
    CT_WARN(log, "%03000d", 1);
    ct_log_set_hook(log, NULL, NULL);
    CT_INFO(log, "unseen");
    assert_true(cti_starts_with(cti_str_text(&seen), "1:a\nb|2:000"));
    assert_int_equal(seen.len, strlen("1:a\nb|2:|") + 3000);
    cti_str_deinit(&seen);
    ct_log_destroy(&log);
    (void)fclose(stream);
}

enum { N_THREADS = 4, N_LINES = 200 };

static void *write_lines(void *ctx)
{
    for (int i = 0; i < N_LINES; i++) {
        CT_INFO(ctx, "%0500d", i);
    }
    return NULL;
}

static void threads_do_not_mix_lines(void **state)
{
    (void)state;
    FILE *stream = tmpfile();
    assert_non_null(stream);
    ct_log *log;
    assert_int_equal(ct_log_create(ct_alloc_system(), stream, CT_LOG_INFO, &log, NULL), CT_OK);
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, log), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    rewind(stream);
    char line[1024];
    int n = 0;
    while (fgets(line, sizeof line, stream) != NULL) {
        assert_true(cti_starts_with(line, "[titan] "));
        assert_int_equal(strlen(strstr(line, " - INFO - ")), 10 + 500 + 1);
        n++;
    }
    assert_int_equal(n, N_THREADS * N_LINES);
    ct_log_destroy(&log);
    (void)fclose(stream);
}

static void wall_clock_text(void **state)
{
    (void)state;
    assert_int_equal(setenv("TZ", "UTC0", 1), 0);
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {{0, "1970-01-01 00:00:00,000"},
                {1700000000123, "2023-11-14 22:13:20,123"},
                {-1, "1969-12-31 23:59:59,999"},
                {951782399999, "2000-02-28 23:59:59,999"}};
    char buf[32];
    for (size_t i = 0; i < N_OF(rows); i++) {
        cti_format_wall(rows[i].ms, buf);
        assert_string_equal(buf, rows[i].text);
    }
    cti_format_wall(INT64_MAX, buf);
    assert_true(strlen(buf) < 32);
    cti_format_wall(INT64_MIN, buf);
    assert_true(strlen(buf) < 32);
    const int64_t start = cti_now_ns();
    assert_true(cti_now_ns() >= start);
    assert_true(cti_seconds_since(start) >= 0.0);
    assert_true(cti_seconds_since(start - 2000000000) >= 2.0);
    assert_true(cti_wall_ms() > 1700000000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_have_the_form),
        cmocka_unit_test(any_length_is_whole),
        cmocka_unit_test(no_memory_leaves_the_beginning),
        cmocka_unit_test(hook_sees_the_text),
        cmocka_unit_test(threads_do_not_mix_lines),
        cmocka_unit_test(wall_clock_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
