/* SPDX-License-Identifier: Apache-2.0 */
/* Rates and metrics.csv. */
#include "metrics/series.h"

#include <inttypes.h>
#include <string.h>

#include "base/file.h"

cti_rates cti_rates_of(double tokens, double seconds, int64_t n_sharing, double flops_per_token, double peak_flops)
{
    cti_rates r = {0};
    r.tokens_per_second = seconds > 0.0 ? tokens / (seconds * (double)n_sharing) : 0.0;
    const double flops = flops_per_token * r.tokens_per_second;
    r.tflops = flops / 1e12;
    r.has_mfu = peak_flops > 0.0;
    r.mfu_percent = r.has_mfu ? 100.0 * flops / peak_flops : 0.0;
    return r;
}

void cti_csv_header(cti_str *out, const cti_scalar *scalars, int n)
{
    cti_str_add(out, "step,time");
    for (int i = 0; i < n; i++) {
        cti_str_add_char(out, ',');
        cti_str_add(out, scalars[i].name);
    }
    cti_str_add_char(out, '\n');
}

/* Whole numbers without ".0"; all others the shortest text that reads back. */
static void add_number(cti_str *out, double value)
{
    char text[32];
    cti_format_f64(value, text);
    const size_t n = strlen(text);
    cti_str_add_n(out, text, n > 2 && strcmp(text + n - 2, ".0") == 0 ? n - 2 : n);
}

void cti_csv_row(cti_str *out, int64_t step, double wall_s, const cti_scalar *scalars, int n)
{
    cti_str_printf(out, "%" PRId64 ",%.3f", step, wall_s);
    for (int i = 0; i < n; i++) {
        cti_str_add_char(out, ',');
        if (scalars[i].is_present) {
            add_number(out, scalars[i].value);
        }
    }
    cti_str_add_char(out, '\n');
}

static ct_status move_away(const ct_alloc *alloc, const char *path, ct_err *err)
{
    cti_str to = {.alloc = alloc};
    ct_status st = CT_OK;
    for (int n = 1; st == CT_OK; n++) {
        cti_str_reset(&to);
        cti_str_printf(&to, "%s.%d", path, n);
        st = cti_str_check(&to, err);
        if (st == CT_OK && !cti_path_exists(cti_str_text(&to))) {
            st = cti_rename(path, cti_str_text(&to), err);
            break;
        }
    }
    cti_str_deinit(&to);
    return st;
}

/* The length of the rows to keep: whole lines whose steps rise and are not above the resumed one. */
static size_t keep_rows(const char *text, size_t size, int64_t resumed_step)
{
    size_t at = 0;
    int64_t last = 0;
    while (at < size) {
        const char *newline = memchr(text + at, '\n', size - at);
        char digits[24] = "";
        int64_t step;
        const size_t n = strspn(text + at, "0123456789"); /* the text ends with NUL */
        memcpy(digits, text + at, n < sizeof digits ? n : 0);
        if (newline == NULL || !cti_parse_i64(digits, &step) || text[at + n] != ',' || step <= last || step > resumed_step) {
            break;
        }
        last = step;
        at = (size_t)(newline - text) + 1;
    }
    return at;
}

ct_status cti_csv_prepare(const ct_alloc *alloc, const char *path, const char *header, int64_t resumed_step, bool *out_moved, ct_err *err)
{
    char *text = NULL;
    size_t size = 0;
    cti_str fresh = {.alloc = alloc};
    ct_status st = CT_OK;
    *out_moved = false;
    if (cti_path_exists(path)) {
        CT_TRY_GOTO(st, cti_file_read(alloc, path, 0, &text, &size, err), out);
    }
    const size_t n_header = strlen(header);
    const bool goes_on = size >= n_header && memcmp(text, header, n_header) == 0 && resumed_step > 0;
    if (size > n_header && !goes_on) {
        CT_TRY_GOTO(st, move_away(alloc, path, err), out);
        *out_moved = true;
    }
    cti_str_add(&fresh, header);
    if (goes_on) {
        cti_str_add_n(&fresh, text + n_header, keep_rows(text + n_header, size - n_header, resumed_step));
    }
    CT_TRY_GOTO(st, cti_str_check(&fresh, err), out);
    if (fresh.len != size || memcmp(fresh.data, text, size) != 0) {
        st = cti_file_write_atomic(path, fresh.data, fresh.len, err);
    }
out:
    ct_alloc_free(alloc, text);
    cti_str_deinit(&fresh);
    return st;
}
