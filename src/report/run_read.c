/* SPDX-License-Identifier: Apache-2.0 */
/* What a run left behind, read back. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/num.h"
#include "report/report_internal.h"

enum { MAX_CSV_BYTES = 1 << 30, MAX_CELL = 64 };

/* ---- metrics.csv ----------------------------------------------------------------------------------------------- */

void cti_table_deinit(cti_table *t)
{
    for (int32_t i = 0; i < t->n_columns && t->names != NULL; i++) {
        ct_alloc_free(t->alloc, t->names[i]);
    }
    if (t->alloc != NULL) {
        ct_alloc_free(t->alloc, t->names);
        ct_alloc_free(t->alloc, t->steps);
        ct_alloc_free(t->alloc, t->times);
        ct_alloc_free(t->alloc, t->values);
    }
    *t = (cti_table){0};
}

int32_t cti_table_column(const cti_table *t, const char *name)
{
    for (int32_t i = 0; i < t->n_columns; i++) {
        if (strcmp(t->names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

double cti_table_at(const cti_table *t, int64_t row, int32_t column)
{
    return column < 0 ? (double)NAN : t->values[row * t->n_columns + column];
}

/* The next cell of the line [*at, end): its bounds; *at moves behind the comma, or to NULL at the end. */
static const char *next_cell(const char **at, const char *end, size_t *out_size)
{
    const char *begin = *at;
    const char *comma = memchr(begin, ',', (size_t)(end - begin));
    const char *stop = comma != NULL ? comma : end;
    *out_size = (size_t)(stop - begin);
    *at = comma != NULL ? comma + 1 : NULL;
    return begin;
}

static ct_status read_header(cti_table *t, const char *line, const char *end, const char *name, ct_err *err)
{
    static const char head[] = "step,time,";
    const size_t n_head = sizeof head - 1;
    if ((size_t)(end - line) <= n_head || memcmp(line, head, n_head) != 0 || memchr(line, '\0', (size_t)(end - line)) != NULL) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': line 1 does not begin with 'step,time,': this is no metrics.csv", name);
    }
    int32_t n = 1;
    for (const char *p = line + n_head; p < end; p++) {
        n += *p == ',';
    }
    if (n > CTI_REPORT_MAX_COLUMNS) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': line 1 has %d columns, at most %d are read", name, n, (int)CTI_REPORT_MAX_COLUMNS);
    }
    t->names = CT_NEW_ARRAY(t->alloc, char *, n, err);
    if (t->names == NULL) {
        return CT_ERR_MEMORY;
    }
    const char *at = line + n_head;
    while (at != NULL) {
        size_t size;
        const char *cell = next_cell(&at, end, &size);
        char *copy = ct_alloc_resize(t->alloc, NULL, size + 1, 1, err);
        if (copy == NULL) {
            return CT_ERR_MEMORY;
        }
        memcpy(copy, cell, size);
        copy[size] = '\0';
        t->names[t->n_columns++] = copy;
    }
    return CT_OK;
}

static ct_status read_number(const char *cell, size_t size, double *out, const char *name, int64_t line, int32_t column, ct_err *err)
{
    char text[MAX_CELL];
    if (size == 0) {
        *out = (double)NAN;
        return CT_OK;
    }
    const size_t n = size < sizeof text ? size : sizeof text - 1;
    memcpy(text, cell, n);
    text[n] = '\0';
    if (n == size && memchr(text, '\0', n) == NULL && cti_parse_f64(text, out)) {
        return CT_OK;
    }
    return CT_FAIL(err, CT_ERR_FORMAT, "'%s': line %" PRId64 ", cell %d: a number is wanted, '%s' found", name, line, column, text);
}

static ct_status grow(cti_table *t, int64_t *cap, ct_err *err)
{
    const int64_t fresh = *cap == 0 ? 256 : 2 * *cap;
    int64_t n_values;
    if (!cti_mul_i64(fresh, t->n_columns, &n_values)) {
        return CT_FAIL(err, CT_ERR_MEMORY, "the table is too large");
    }
    int64_t *steps = ct_alloc_resize(t->alloc, t->steps, (size_t)fresh, sizeof *steps, err);
    t->steps = steps != NULL ? steps : t->steps;
    double *times = ct_alloc_resize(t->alloc, t->times, (size_t)fresh, sizeof *times, err);
    t->times = times != NULL ? times : t->times;
    double *values = ct_alloc_resize(t->alloc, t->values, (size_t)n_values, sizeof *values, err);
    t->values = values != NULL ? values : t->values;
    if (steps == NULL || times == NULL || values == NULL) {
        return CT_ERR_MEMORY;
    }
    *cap = fresh;
    return CT_OK;
}

static ct_status read_row(cti_table *t, const char *line, const char *end, const char *name, int64_t number, ct_err *err)
{
    const char *at = line;
    double step = 0.0, time = 0.0;
    size_t size;
    const char *cell = next_cell(&at, end, &size);
    CT_TRY(read_number(cell, size, &step, name, number, 1, err));
    if (!(step >= 0.0 && step <= 9007199254740992.0 && step == floor(step))) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': line %" PRId64 ", cell 1: a step is wanted, '%.*s' found", name, number,
                       (int)(size < MAX_CELL ? size : MAX_CELL), cell);
    }
    while (t->n_rows > 0 && t->steps[t->n_rows - 1] >= (int64_t)step) { /* done again */
        t->n_rows--;
    }
    double *values = t->values + t->n_rows * t->n_columns;
    int32_t column = -1;
    while (at != NULL && column < t->n_columns) {
        cell = next_cell(&at, end, &size);
        CT_TRY(read_number(cell, size, column < 0 ? &time : column < t->n_columns ? &values[column] : &step, name, number, column + 3, err));
        column++;
    }
    if (at != NULL || column != t->n_columns) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': line %" PRId64 " has %s cells than line 1", name, number, at != NULL ? "more" : "fewer");
    }
    t->steps[t->n_rows] = (int64_t)step;
    t->times[t->n_rows++] = time;
    return CT_OK;
}

static ct_status read_rows(cti_table *t, const char *text, size_t size, const char *name, ct_err *err)
{
    const char *at = text, *end = text + size;
    int64_t cap = 0, number = 1;
    const char *newline = memchr(at, '\n', size);
    CT_TRY(read_header(t, at, newline != NULL ? newline : end, name, err));
    while (newline != NULL) {
        at = newline + 1;
        number++;
        newline = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        if (newline == NULL || newline == at) {
            continue;
        }
        if (t->n_rows == cap) {
            CT_TRY(grow(t, &cap, err));
        }
        CT_TRY(read_row(t, at, newline, name, number, err));
    }
    return CT_OK;
}

ct_status cti_table_parse(const ct_alloc *alloc, const char *text, size_t size, const char *name, cti_table *out, ct_err *err)
{
    *out = (cti_table){.alloc = alloc};
    const ct_status st = read_rows(out, text, size, name, err);
    if (st != CT_OK) {
        cti_table_deinit(out);
    }
    return st;
}

/* ---- a run's folder -------------------------------------------------------------------------------------------- */

const json_t *cti_run_fact(const cti_run_record *run, const char *path)
{
    const json_t *at = run->facts;
    while (at != NULL && *path != '\0') {
        char key[64];
        const size_t n = strcspn(path, "/");
        if (n >= sizeof key) {
            return NULL;
        }
        memcpy(key, path, n);
        key[n] = '\0';
        at = json_object_get(at, key);
        path += n + (path[n] == '/');
    }
    return at;
}

static void read_facts(cti_run_record *run)
{
    ct_err ignored = {0};
    char *path = cti_path_join(run->alloc, run->folder, "run.json", &ignored);
    if (path != NULL && !cti_path_is_file(path)) {
        run->note = "there is no run.json";
    } else if (path == NULL || cti_json_read_file(run->alloc, path, &run->facts, &ignored) != CT_OK || !json_is_object(run->facts)) {
        json_decref(run->facts);
        run->facts = NULL;
        run->note = "run.json cannot be read";
    }
    ct_alloc_free(run->alloc, path);
}

static int by_step(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static ct_status list_checkpoints(cti_run_record *run, ct_err *err)
{
    const char *name = json_string_value(json_object_get(json_object_get(json_object_get(run->facts, "settings"), "checkpoint.folder"), "value"));
    char *path = cti_path_join(run->alloc, run->folder, name != NULL ? name : "checkpoint", err);
    if (path == NULL) {
        return CT_ERR_MEMORY;
    }
    cti_names names = {0};
    ct_status st = CT_OK;
    if (cti_path_is_dir(path) && cti_list_dir(run->alloc, path, &names, NULL) == CT_OK) {
        run->checkpoints = CT_NEW_ARRAY(run->alloc, int64_t, names.n, err);
        st = run->checkpoints != NULL ? CT_OK : CT_ERR_MEMORY;
        for (size_t i = 0; st == CT_OK && i < names.n; i++) {
            int64_t step;
            if (cti_starts_with(names.names[i], "step-") && cti_parse_i64(names.names[i] + 5, &step)) {
                run->checkpoints[run->n_checkpoints++] = step;
            }
        }
        if (run->n_checkpoints > 1) {
            qsort(run->checkpoints, run->n_checkpoints, sizeof *run->checkpoints, by_step);
        }
        cti_names_free(run->alloc, &names);
    }
    ct_alloc_free(run->alloc, path);
    return st;
}

/* In the form of metrics.csv; a run without validation has none. */
static ct_status read_validation(cti_run_record *run, ct_err *err)
{
    char *path = cti_path_join(run->alloc, run->folder, "validation.csv", err), *text = NULL;
    size_t size = 0;
    ct_status st = path != NULL ? CT_OK : CT_ERR_MEMORY;
    if (st == CT_OK && cti_path_is_file(path)) {
        st = cti_file_read(run->alloc, path, MAX_CSV_BYTES, &text, &size, err);
        st = st == CT_OK ? cti_table_parse(run->alloc, text, size, path, &run->validation, err) : st;
    }
    ct_alloc_free(run->alloc, text);
    ct_alloc_free(run->alloc, path);
    return st;
}

static ct_status read_all(cti_run_record *run, ct_err *err)
{
    const bool is_folder = cti_path_is_dir(run->folder);
    char *path = is_folder ? cti_path_join(run->alloc, run->folder, "metrics.csv", err) : ct_alloc_strdup(run->alloc, run->folder, err);
    char *text = NULL;
    size_t size = 0;
    if (path == NULL) {
        return CT_ERR_MEMORY;
    }
    ct_status st = CT_OK;
    if (is_folder && !cti_path_is_file(path)) {
        st = CT_FAIL(err, CT_ERR_NOT_FOUND, "'%s' holds no metrics.csv: the folder that a run wrote to is wanted (its --dump-folder)", run->folder);
    }
    if (st == CT_OK) {
        st = cti_file_read(run->alloc, path, MAX_CSV_BYTES, &text, &size, err);
    }
    if (st == CT_OK) {
        st = cti_table_parse(run->alloc, text, size, path, &run->table, err);
    }
    ct_alloc_free(run->alloc, text);
    ct_alloc_free(run->alloc, path);
    if (st == CT_OK && is_folder) {
        read_facts(run);
        st = read_validation(run, err);
        st = st == CT_OK ? list_checkpoints(run, err) : st;
    } else {
        run->note = "a table only";
    }
    return st;
}

ct_status cti_run_read(const ct_alloc *alloc, const char *folder, cti_run_record *out, ct_err *err)
{
    *out = (cti_run_record){.alloc = alloc, .folder = ct_alloc_strdup(alloc, folder, err)};
    for (size_t n = out->folder != NULL ? strlen(out->folder) : 0; n > 1 && out->folder[n - 1] == '/'; n--) {
        out->folder[n - 1] = '\0';
    }
    const ct_status st = out->folder != NULL ? read_all(out, err) : CT_ERR_MEMORY;
    if (st != CT_OK) {
        cti_run_record_deinit(out);
    }
    return st;
}

void cti_run_record_deinit(cti_run_record *run)
{
    if (run->alloc == NULL) {
        return;
    }
    cti_table_deinit(&run->table);
    cti_table_deinit(&run->validation);
    json_decref(run->facts);
    ct_alloc_free(run->alloc, run->checkpoints);
    ct_alloc_free(run->alloc, run->folder);
    *run = (cti_run_record){0};
}
