/* rooms: report metrics base */
/* SPDX-License-Identifier: Apache-2.0 */
/* Reading tables back, telling where runs part, axes, and what a page does with hostile names. */
#include "base_test.h"

#include <math.h>

#include "base/base.h"
#include "report/report_internal.h"

static ct_status parse(const char *text, cti_table *t, ct_err *err)
{
    return cti_table_parse(ct_alloc_system(), text, strlen(text), "m.csv", t, err);
}

static void tables_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *error; /* NULL: none */
        int64_t n_rows, last_step;
        double last; /* of the last column; NaN: empty */
    } cases[] = {
        {"step,time,a,b\n1,10.5,2,3\n2,11,,4.5\n", NULL, 2, 2, 4.5},
        {"step,time,a,b\n1,10.5,2,\n", NULL, 1, 1, (double)NAN},
        {"step,time,a\n1,1,7\n2,1,8\n3,1,9\n2,1,10\n", NULL, 2, 2, 10.0}, /* done again */
        {"step,time,a\n1,1,7\n2,1,8\n2,1", NULL, 2, 2, 8.0},               /* being written */
        {"step,time,a\n1,1,nan\n\n4,1,inf\n", NULL, 2, 4, (double)INFINITY},
        {"step,time,a\n", NULL, 0, 0, 0.0},
        {"step,time,a", NULL, 0, 0, 0.0},
        {"", "line 1 does not begin with 'step,time,'", 0, 0, 0.0},
        {"step,time\n", "line 1 does not begin", 0, 0, 0.0},
        {"loss,step\n1,2\n", "line 1 does not begin", 0, 0, 0.0},
        {"step,time,a\n1,1,x\n", "line 2, cell 3: a number is wanted, 'x' found", 0, 0, 0.0},
        {"step,time,a\n1,1\n", "line 2 has fewer cells", 0, 0, 0.0},
        {"step,time,a\n1\n", "line 2 has fewer cells", 0, 0, 0.0},
        {"step,time,a\n1,1,2,3\n", "line 2 has more cells", 0, 0, 0.0},
        {"step,time,a\n-1,1,2\n", "line 2, cell 1: a step is wanted, '-1' found", 0, 0, 0.0},
        {"step,time,a\n1.5,1,2\n", "a step is wanted", 0, 0, 0.0},
        {"step,time,a\n,1,2\n", "a step is wanted", 0, 0, 0.0},
        {"step,time,a\n1e300,1,2\n", "a step is wanted", 0, 0, 0.0},
    };
    for (size_t i = 0; i < N_OF(cases); i++) {
        cti_table t;
        ct_err err = {0};
        const ct_status st = parse(cases[i].text, &t, &err);
        if (cases[i].error != NULL) {
            assert_int_equal(st, CT_ERR_FORMAT);
            if (strstr(err.message, cases[i].error) == NULL || strstr(err.message, "m.csv") == NULL) {
                fail_msg("case %zu: %s", i, err.message);
            }
            continue;
        }
        if (st != CT_OK) {
            fail_msg("case %zu: %s", i, err.message);
        }
        assert_int_equal(t.n_rows, cases[i].n_rows);
        if (t.n_rows > 0) {
            assert_int_equal(t.steps[t.n_rows - 1], cases[i].last_step);
            const double last = cti_table_at(&t, t.n_rows - 1, t.n_columns - 1);
            assert_true(last == cases[i].last || (isnan(last) && isnan(cases[i].last)));
        }
        cti_table_deinit(&t);
    }
}

static void allocations_may_fail(void **state)
{
    (void)state;
    static const char text[] = "step,time,a,b\n1,1,2,3\n2,1,2,3\n";
    for (int64_t fail_at = 1; fail_at < 100; fail_at++) {
        test_alloc a;
        ct_err err = {0};
        cti_table t;
        test_alloc_init(&a, fail_at);
        const ct_status st = cti_table_parse(&a.alloc, text, sizeof text - 1, "m.csv", &t, &err);
        if (st == CT_OK) {
            cti_table_deinit(&t);
            assert_int_equal(a.n_live, 0);
            return;
        }
        assert_int_equal(st, CT_ERR_MEMORY);
        assert_int_equal(a.n_live, 0);
    }
    fail();
}

static void runs_part_where_they_part(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        int64_t n_common, first_different, first_beyond, largest_at;
    } cases[] = {
        {"1,0,2\n2,0,3\n", "1,0,2\n2,0,3\n", 2, -1, -1, -1},
        {"1,0,2\n2,0,3\n3,0,4\n", "1,0,2\n2,0,3.0000000000000004\n3,0,5\n", 3, 2, 3, 3},
        {"1,0,2\n3,0,3\n5,0,4\n", "2,0,2\n3,0,3.03\n4,0,9\n5,0,4\n", 2, 3, 3, 3}, /* only steps of both */
        {"1,0,2\n", "2,0,2\n", 0, -1, -1, -1},
        {"1,0,nan\n2,0,inf\n3,0,1\n", "1,0,nan\n2,0,inf\n3,0,inf\n", 3, 3, 3, 3},
        {"1,0,0\n2,0,-1\n", "1,0,-0.0\n2,0,1\n", 2, 2, 2, 2},
        {"1,0,1000\n2,0,1000\n", "1,0,1005\n2,0,1011\n", 2, 1, 2, 2}, /* the tolerance is a hundredth */
        {"", "1,0,2\n", 0, -1, -1, -1},
    };
    for (size_t i = 0; i < N_OF(cases); i++) {
        char a[200], b[200];
        cti_table ta, tb;
        ct_err err = {0};
        snprintf(a, sizeof a, "step,time,loss\n%s", cases[i].a);
        snprintf(b, sizeof b, "step,time,loss\n%s", cases[i].b);
        assert_int_equal(parse(a, &ta, &err), CT_OK);
        assert_int_equal(parse(b, &tb, &err), CT_OK);
        const cti_parting p = cti_runs_compare(&ta, &tb, "loss", i == 2 ? 1e-3 : 1e-2);
        if (p.n_common != cases[i].n_common || p.first_different != cases[i].first_different ||
            p.first_beyond != cases[i].first_beyond || p.largest_at != cases[i].largest_at) {
            fail_msg("case %zu: %d %d %d %d", i, (int)p.n_common, (int)p.first_different, (int)p.first_beyond, (int)p.largest_at);
        }
        assert_int_equal(cti_runs_compare(&ta, &tb, "nothing", 0.0).n_common, 0);
        cti_table_deinit(&ta);
        cti_table_deinit(&tb);
    }
}

static void axes_are_readable(void **state)
{
    (void)state;
    static const struct {
        double value, tick;
        const char *text;
    } cases[] = {{0.0, 0.5, "0"},         {2.5, 0.5, "2.5"},     {3.0, 1.0, "3"},      {1500.0, 500.0, "1.5k"}, {20000.0, 5000.0, "20k"},
                 {1234.0, 1.0, "1234"},   {2e6, 5e5, "2.0M"},    {1e9, 2e8, "1.0G"},   {0.0008, 0.0002, "0.0008"}, {0.00012, 0.00004, "0.00012"},
                 {-2.5, 0.5, "-2.5"},     {1e13, 5e12, "10T"},   {0.25, 0.05, "0.25"}, {1e-12, 0.1, "0"}};
    for (size_t i = 0; i < N_OF(cases); i++) {
        char buf[32];
        assert_string_equal(cti_tick_text(cases[i].value, cases[i].tick, buf), cases[i].text);
    }
}

static void a_chart_takes_any_value(void **state)
{
    (void)state;
    static const double sets[][4] = {{1, 2, 3, 4}, {0, 0, 0, 0}, {1e308, -1e308, 1e308, 0}, {1e-310, 2e-310, 0, 0},
                                     {-5, -5, -5, -5}, {5, (double)NAN, (double)INFINITY, 6}, {(double)NAN, (double)NAN, (double)NAN, (double)NAN}};
    static const double x[4] = {1, 2, 3, 4}, same_x[4] = {7, 7, 7, 7};
    for (size_t i = 0; i < N_OF(sets); i++) {
        for (int k = 0; k < 4; k++) {
            const cti_curve curve = {k % 2 ? x : same_x, sets[i], k < 2 ? 4 : 1, 0, false};
            const cti_chart chart = {"t", "", "step", &curve, 1, k == 1};
            cti_str out = {.alloc = ct_alloc_system()};
            cti_chart_draw(&chart, &out);
            assert_int_equal(cti_str_check(&out, NULL), CT_OK);
            assert_null(strstr(cti_str_text(&out), "nan"));
            assert_null(strstr(cti_str_text(&out), "inf"));
            cti_str_deinit(&out);
        }
    }
    const cti_chart empty = {"t", "", "step", NULL, 0, true};
    cti_str out = {.alloc = ct_alloc_system()};
    cti_chart_draw(&empty, &out);
    assert_non_null(strstr(cti_str_text(&out), "</svg>"));
    cti_str_deinit(&out);
}

/* A curve of a million rows is some hundreds of points, and none of its peaks is lost. */
static void long_runs_keep_their_peaks(void **state)
{
    (void)state;
    enum { N = 100000 };
    double *x = calloc(N, sizeof *x), *y = calloc(N, sizeof *y);
    for (int i = 0; i < N; i++) {
        x[i] = i + 1;
        y[i] = i == 77777 ? 42.0 : 1.0;
    }
    const cti_curve curve = {x, y, N, 0, false};
    const cti_chart chart = {"t", "", "step", &curve, 1, false};
    cti_str out = {.alloc = ct_alloc_system()};
    cti_chart_draw(&chart, &out);
    assert_non_null(strstr(cti_str_text(&out), "77778,42 "));
    assert_true(out.len < 30000);
    cti_str_deinit(&out);
    free(x);
    free(y);
}

static void names_cannot_escape(void **state)
{
    (void)state;
    char dir[256], csv[400], facts[400], bad[300];
    ct_err err = {0};
    test_folder_make(dir, sizeof dir);
    snprintf(bad, sizeof bad, "%s/<script>alert(1)<script>'\"&\x1b[2J\xff", dir);
    assert_int_equal(cti_make_dirs(bad, &err), CT_OK);
    snprintf(csv, sizeof csv, "%s/metrics.csv", bad);
    snprintf(facts, sizeof facts, "%s/run.json", bad);
    static const char table[] = "step,time,loss_metrics/global_avg_loss,lr/<b>\n1,1,2,3\n";
    static const char json[] = "{\"model\": \"</td><script>x\", \"flavor\": 7, \"settings\": {\"</code><i>\": {\"value\": \"<u>\", \"source\": \"flag\"}, \"k\": 3}}";
    assert_int_equal(cti_file_write_atomic(csv, table, sizeof table - 1, &err), CT_OK);
    assert_int_equal(cti_file_write_atomic(facts, json, sizeof json - 1, &err), CT_OK);
    cti_run_record run;
    assert_int_equal(cti_run_read(ct_alloc_system(), bad, &run, &err), CT_OK);
    const cti_report_options options = {.tolerance = 1e-4, .version = "0"};
    cti_str html = {.alloc = ct_alloc_system()}, text = {.alloc = ct_alloc_system()};
    assert_int_equal(cti_report_page(&run, 1, &options, &html, &err), CT_OK);
    assert_int_equal(cti_report_text(&run, 1, &options, &text, &err), CT_OK);
    static const char *const never[] = {"<script>alert", "</td><script>", "<u>", "</code><i>", "\x1b", "\xff\xff", "http:", "https:", "src="};
    for (size_t i = 0; i < N_OF(never); i++) {
        const char *at = strstr(cti_str_text(&html), never[i]);
        if (at != NULL && strncmp(at, "http://www.w3.org/2000/svg", 26) != 0) { /* a name, not a place */
            fail_msg("the page holds %s", never[i]);
        }
    }
    assert_non_null(strstr(cti_str_text(&html), "&lt;script&gt;alert(1)"));
    assert_non_null(strstr(cti_str_text(&html), "<title>"));
    assert_null(strchr(cti_str_text(&text), '\x1b'));
    cti_str_deinit(&html);
    cti_str_deinit(&text);
    cti_run_record_deinit(&run);
    /* Damaged facts are a note, not an error; a missing table is one. */
    assert_int_equal(cti_file_write_atomic(facts, "{\"model\": ", 10, &err), CT_OK);
    snprintf(csv, sizeof csv, "%s//", bad);
    assert_int_equal(cti_run_read(ct_alloc_system(), csv, &run, &err), CT_OK);
    assert_string_equal(run.folder, bad);
    assert_string_equal(run.note, "run.json cannot be read");
    cti_run_record_deinit(&run);
    assert_int_equal(cti_run_read(ct_alloc_system(), dir, &run, &err), CT_ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, "holds no metrics.csv"));
    test_folder_remove(dir);
}

static void labels_tell_runs_apart(void **state)
{
    (void)state;
    cti_run_record runs[3] = {{.folder = (char[]){"a/x/out"}}, {.folder = (char[]){"a/y/out"}}, {.folder = (char[]){"b"}}};
    const char *labels[3];
    cti_str room = {.alloc = ct_alloc_system()};
    assert_int_equal(cti_run_labels(runs, 1, &room, labels, NULL), CT_OK);
    assert_string_equal(labels[0], "out");
    cti_str_reset(&room);
    assert_int_equal(cti_run_labels(runs, 3, &room, labels, NULL), CT_OK);
    assert_string_equal(labels[0], "x/out");
    assert_string_equal(labels[1], "y/out");
    assert_string_equal(labels[2], "b");
    cti_str_deinit(&room);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_read),       cmocka_unit_test(allocations_may_fail),
        cmocka_unit_test(runs_part_where_they_part), cmocka_unit_test(axes_are_readable),
        cmocka_unit_test(a_chart_takes_any_value), cmocka_unit_test(long_runs_keep_their_peaks),
        cmocka_unit_test(names_cannot_escape),   cmocka_unit_test(labels_tell_runs_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
