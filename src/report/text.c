/* SPDX-License-Identifier: Apache-2.0 */
/* The report as text. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/report_internal.h"

/* Names come from folders: what would move a terminal's cursor is left out. */
static void add_plain(cti_str *out, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++) {
        cti_str_add_char(out, *p < 0x20 || *p == 0x7f ? '?' : (char)*p);
    }
}

static void add_value(cti_str *out, const char *what, double value, const char *unit)
{
    char text[32];
    if (isfinite(value)) {
        cti_str_printf(out, ", %s%s%s", what, cti_short_number(value, text), unit);
    }
}

static ct_status add_run(cti_str *out, const cti_run_record *run, const char *label, ct_err *err)
{
    cti_run_sums s;
    CT_TRY(cti_run_sum(run, &s, err));
    const char *model = json_string_value(cti_run_fact(run, "model")), *flavor = json_string_value(cti_run_fact(run, "flavor"));
    add_plain(out, label);
    cti_str_add(out, ": ");
    if (model != NULL && flavor != NULL) {
        add_plain(out, model);
        cti_str_add_char(out, ' ');
        add_plain(out, flavor);
        cti_str_add(out, ", ");
    }
    cti_str_printf(out, "%" PRId64 " rows to step %" PRId64, run->table.n_rows, s.last_step);
    add_value(out, "loss ", s.last_loss, "");
    if (isfinite(s.least_loss)) {
        char text[32];
        cti_str_printf(out, " (least %s at step %" PRId64 ")", cti_short_number(s.least_loss, text), s.least_loss_step);
    }
    add_value(out, "", s.median_tps, " tok/s");
    add_value(out, "MFU ", s.median_mfu, " %");
    add_value(out, "", s.peak_gib, " GiB");
    if (run->note != NULL) {
        cti_str_printf(out, " (%s)", run->note);
    }
    cti_str_add_char(out, '\n');
    return CT_OK;
}

static void add_parting(cti_str *out, const char *what, const cti_parting *p, double tolerance)
{
    char a[32], b[32];
    cti_str_printf(out, "  %-14s", what);
    if (p->n_common == 0) {
        cti_str_add(out, "no step in common\n");
        return;
    }
    if (p->first_different < 0) {
        cti_str_printf(out, "the same to the last bit at all %" PRId64 " steps that both logged\n", p->n_common);
        return;
    }
    cti_str_printf(out, "first differs at step %" PRId64 " (%s, %s); ", p->first_different, cti_format_f64(p->a_different, a),
                   cti_format_f64(p->b_different, b));
    if (p->first_beyond < 0) {
        cti_str_printf(out, "never by more than %g; ", tolerance);
    } else {
        cti_str_printf(out, "by more than %g from step %" PRId64 " on (%s, %s); ", tolerance, p->first_beyond, cti_format_f64(p->a_beyond, a),
                       cti_format_f64(p->b_beyond, b));
    }
    cti_str_printf(out, "most at step %" PRId64 ": %.3g (relative, %" PRId64 " steps in common)\n", p->largest_at, p->largest, p->n_common);
}

ct_status cti_report_text(const cti_run_record *runs, size_t n, const cti_report_options *options, cti_str *out, ct_err *err)
{
    static const char *const columns[][2] = {{"loss", CTI_COLUMN_LOSS}, {"gradient norm", CTI_COLUMN_NORM}};
    cti_str room = {.alloc = out->alloc};
    const char *labels[CTI_REPORT_MAX_RUNS];
    ct_status st = cti_run_labels(runs, n, &room, labels, err);
    for (size_t i = 0; i < n && st == CT_OK; i++) {
        st = add_run(out, &runs[i], labels[i], err);
    }
    for (size_t i = 1; i < n && st == CT_OK; i++) {
        add_plain(out, labels[0]);
        cti_str_add(out, " and ");
        add_plain(out, labels[i]);
        cti_str_add(out, "\n");
        for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++) {
            const cti_parting p = cti_runs_compare(&runs[0].table, &runs[i].table, columns[c][1], options->tolerance);
            add_parting(out, columns[c][0], &p, options->tolerance);
        }
    }
    cti_str_deinit(&room);
    return st == CT_OK ? cti_str_check(out, err) : st;
}
