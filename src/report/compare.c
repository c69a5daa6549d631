/* SPDX-License-Identifier: Apache-2.0 */
/* Runs summed up, told apart and compared. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "report/report_internal.h"

static double relative_difference(double a, double b)
{
    const double scale = fmax(fabs(a), fabs(b));
    if (!isfinite(a) || !isfinite(b)) {
        return (isnan(a) && isnan(b)) || a == b ? 0.0 : (double)INFINITY;
    }
    return scale > 0.0 ? fabs(a - b) / scale : 0.0;
}

cti_parting cti_runs_compare(const cti_table *a, const cti_table *b, const char *name, double tolerance)
{
    cti_parting p = {.first_different = -1, .first_beyond = -1, .largest_at = -1};
    const int32_t ca = cti_table_column(a, name), cb = cti_table_column(b, name);
    if (ca < 0 || cb < 0) {
        return p;
    }
    for (int64_t i = 0, k = 0; i < a->n_rows && k < b->n_rows;) {
        if (a->steps[i] != b->steps[k]) {
            a->steps[i] < b->steps[k] ? i++ : k++;
            continue;
        }
        const double x = cti_table_at(a, i, ca), y = cti_table_at(b, k, cb), difference = relative_difference(x, y);
        p.n_common++;
        if (difference > 0.0 && p.first_different < 0) {
            p.first_different = a->steps[i];
            p.a_different = x;
            p.b_different = y;
        }
        if (difference > tolerance && p.first_beyond < 0) {
            p.first_beyond = a->steps[i];
            p.a_beyond = x;
            p.b_beyond = y;
        }
        if (difference > p.largest) {
            p.largest = difference;
            p.largest_at = a->steps[i];
        }
        i++;
        k++;
    }
    return p;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Of the values that are finite; NaN where there are none. The first row is left out where there are others: it holds the start. */
static ct_status median(const cti_table *t, const char *name, double *out, ct_err *err)
{
    const int32_t column = cti_table_column(t, name);
    double *sorted = CT_NEW_ARRAY(t->alloc, double, t->n_rows + 1, err);
    if (sorted == NULL) {
        return CT_ERR_MEMORY;
    }
    size_t n = 0;
    for (int64_t i = t->n_rows > 1; i < t->n_rows; i++) {
        const double v = cti_table_at(t, i, column);
        sorted[n] = v;
        n += isfinite(v) ? 1 : 0;
    }
    qsort(sorted, n, sizeof *sorted, by_value);
    *out = n == 0 ? (double)NAN : n % 2 == 1 ? sorted[n / 2] : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]);
    ct_alloc_free(t->alloc, sorted);
    return CT_OK;
}

ct_status cti_run_sum(const cti_run_record *run, cti_run_sums *out, ct_err *err)
{
    const cti_table *t = &run->table;
    const double none = (double)NAN;
    *out = (cti_run_sums){.last_loss = none, .least_loss = none, .tokens = none, .peak_gib = none, .hours = none};
    CT_TRY(median(t, CTI_COLUMN_TPS, &out->median_tps, err));
    CT_TRY(median(t, CTI_COLUMN_MFU, &out->median_mfu, err));
    if (t->n_rows == 0) {
        return CT_OK;
    }
    const int32_t loss = cti_table_column(t, CTI_COLUMN_LOSS), memory = cti_table_column(t, CTI_COLUMN_RESERVED);
    out->last_step = t->steps[t->n_rows - 1];
    out->last_loss = cti_table_at(t, t->n_rows - 1, loss);
    out->tokens = cti_table_at(t, t->n_rows - 1, cti_table_column(t, CTI_COLUMN_TOKENS));
    out->hours = (t->times[t->n_rows - 1] - t->times[0]) / 3600.0;
    for (int64_t i = 0; i < t->n_rows; i++) {
        const double v = cti_table_at(t, i, loss);
        if (isfinite(v) && !(v >= out->least_loss)) {
            out->least_loss = v;
            out->least_loss_step = t->steps[i];
        }
        out->peak_gib = fmax(out->peak_gib, cti_table_at(t, i, memory)); /* fmax passes NaN over */
    }
    return CT_OK;
}

/* The last parts of a path, as many as asked for. */
static const char *path_end(const char *path, int n_parts)
{
    for (size_t i = strlen(path); i > 0; i--) {
        if (path[i - 1] == '/' && path[i] != '\0' && --n_parts == 0) {
            return path + i;
        }
    }
    return path;
}

ct_status cti_run_labels(const cti_run_record *runs, size_t n, cti_str *room, const char **out_labels, ct_err *err)
{
    enum { MOST_PARTS = 8 };
    size_t at[CTI_REPORT_MAX_RUNS];
    int n_parts = 1;
    for (; n_parts < MOST_PARTS; n_parts++) {
        bool are_distinct = true;
        for (size_t i = 0; i < n; i++) {
            for (size_t k = 0; k < i; k++) {
                are_distinct = are_distinct && strcmp(path_end(runs[i].folder, n_parts), path_end(runs[k].folder, n_parts)) != 0;
            }
        }
        if (are_distinct) {
            break;
        }
    }
    for (size_t i = 0; i < n; i++) {
        at[i] = room->len;
        cti_str_add(room, path_end(runs[i].folder, n_parts));
        cti_str_add_char(room, '\0');
    }
    CT_TRY(cti_str_check(room, err));
    for (size_t i = 0; i < n; i++) {
        out_labels[i] = room->data + at[i];
    }
    return CT_OK;
}
