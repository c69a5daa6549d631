/* SPDX-License-Identifier: Apache-2.0 */
/* Shared inside the room `report`. */
#ifndef CTI_REPORT_REPORT_INTERNAL_H
#define CTI_REPORT_REPORT_INTERNAL_H

#include "report/report.h"

#define CTI_COLUMN_LOSS "loss_metrics/global_avg_loss"
#define CTI_COLUMN_NORM "grad_norm"
#define CTI_COLUMN_TOKENS "n_tokens_seen"
#define CTI_COLUMN_TPS "throughput(tps)"
#define CTI_COLUMN_MFU "mfu(%)"
#define CTI_COLUMN_RESERVED "memory/max_reserved(GiB)"
#define CTI_COLUMN_ACTIVE "memory/max_active(GiB)"

/* Text for HTML: & < > " ' escaped, control characters and what is not UTF-8 replaced. */
void cti_html_add(cti_str *out, const char *text);

/* What a run comes to. Values are NaN, steps 0 where there is nothing. */
typedef struct cti_run_sums {
    int64_t last_step;
    double last_loss, least_loss;
    int64_t least_loss_step;
    double tokens, median_tps, median_mfu, peak_gib, hours;
} cti_run_sums;
ct_status cti_run_sum(const cti_run_record *run, cti_run_sums *out, ct_err *err);

/* One curve. */
typedef struct cti_curve {
    const double *x, *y; /* borrowed; points with a value that is not finite are gaps */
    int64_t n;
    int color;           /* 0 to 7: the variables --c0 to --c7 of the page */
    bool is_dashed;
} cti_curve;

typedef struct cti_chart {
    const char *title, *unit; /* unit "": none */
    const char *x_title;      /* "step", "tokens" */
    const cti_curve *curves;
    size_t n_curves;
    bool begins_at_zero;      /* the y axis */
} cti_chart;

void cti_chart_draw(const cti_chart *chart, cti_str *out);
/* "1.5M", "12", "2.5e-05": for axes. buf holds 32 bytes. */
const char *cti_tick_text(double value, double tick, char buf[32]);
/* The number as people read it: 6 digits at most. */
const char *cti_short_number(double value, char buf[32]);

#endif
