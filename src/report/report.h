/* SPDX-License-Identifier: Apache-2.0 */
/* The map of the room `report`: what runs left behind, read back, compared and drawn. It reads files only: a run may still be going on,
 * and its files may be damaged or made by others.
 *
 *   run_read.c  metrics.csv, validation.csv, run.json and checkpoints of a folder -> cti_run_record
 *   compare.c   where two runs part             text.c   a summary for the terminal
 *   chart.c     one chart as SVG                page.c   the HTML page
 *
 *     cti_run_record run;
 *     CT_TRY(cti_run_read(alloc, "outputs", &run, err));
 *     CT_TRY(cti_report_page(&run, 1, &options, &html, err));
 *     cti_run_record_deinit(&run);
 */
#ifndef CTI_REPORT_REPORT_H
#define CTI_REPORT_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "ctitan/alloc.h"

enum { CTI_REPORT_MAX_RUNS = 16, CTI_REPORT_MAX_COLUMNS = 512 };

/* The table of a metrics.csv. */
typedef struct cti_table {
    const ct_alloc *alloc;
    int64_t n_rows;
    int32_t n_columns;   /* without step and time */
    char **names;        /* owns; of the columns */
    int64_t *steps;      /* owns; rising strictly */
    double *times;       /* owns; seconds since 1970 */
    double *values;      /* owns; [row * n_columns + column]; NaN where the cell is empty */
} cti_table;

/* Parses the text of a metrics.csv; `name` is for messages. Fails with ERR_FORMAT naming the line where the header is not
 * "step,time,..." or a cell is no number. A last line without newline is being written: left out. Where steps fall back, the rows
 * that are done again go: one clean series. text[size] must be NUL. */
CT_MUST_CHECK ct_status cti_table_parse(const ct_alloc *alloc, const char *text, size_t size, const char *name, cti_table *out_table,
                                        ct_err *err);
void cti_table_deinit(cti_table *table);
int32_t cti_table_column(const cti_table *table, const char *name); /* -1: none */
double cti_table_at(const cti_table *table, int64_t row, int32_t column); /* NaN for column -1 */

typedef struct cti_run_record {
    const ct_alloc *alloc;
    char *folder;         /* owns; as given, without slashes at its end */
    cti_table table;
    cti_table validation; /* of validation.csv; without rows where there is none */
    json_t *facts;        /* owns; run.json; NULL: none */
    const char *note;     /* why facts are missing, NULL where they are not; static */
    int64_t *checkpoints; /* owns; steps, rising */
    size_t n_checkpoints;
} cti_run_record;

/* folder: a run's dump folder, or a file in the form of metrics.csv. ERR_NOT_FOUND where there is none; a run.json that is missing or
 * damaged is a note only. */
CT_MUST_CHECK ct_status cti_run_read(const ct_alloc *alloc, const char *folder, cti_run_record *out_run, ct_err *err);
void cti_run_record_deinit(cti_run_record *run);
/* A member of run.json at a path like "machine/device"; NULL where there is none. Borrowed. */
const json_t *cti_run_fact(const cti_run_record *run, const char *path);

/* ---- comparing ---- */

typedef struct cti_parting {
    int64_t n_common;        /* steps that both runs logged, with a value in both */
    int64_t first_different; /* the first of them whose values are not the same double; -1: none */
    double a_different, b_different;
    int64_t first_beyond;    /* the first whose relative difference is above the tolerance; -1: none */
    double a_beyond, b_beyond;
    double largest;          /* relative difference, |a - b| / max(|a|, |b|); 0 where there is none */
    int64_t largest_at;
} cti_parting;

/* Compares the columns `name` of two runs at the steps that both have. A value that is not finite differs from all but its like. */
cti_parting cti_runs_compare(const cti_table *a, const cti_table *b, const char *name, double tolerance);

/* ---- showing ---- */

typedef struct cti_report_options {
    double tolerance; /* relative */
    const char *version;
} cti_report_options;

/* The names by which runs are told apart: what their folders do not share. Appends n texts, each ended by NUL; out_labels[i] points in. */
CT_MUST_CHECK ct_status cti_run_labels(const cti_run_record *runs, size_t n, cti_str *room, const char **out_labels, ct_err *err);
CT_MUST_CHECK ct_status cti_report_text(const cti_run_record *runs, size_t n, const cti_report_options *options, cti_str *out, ct_err *err);
CT_MUST_CHECK ct_status cti_report_page(const cti_run_record *runs, size_t n, const cti_report_options *options, cti_str *out, ct_err *err);

#endif
