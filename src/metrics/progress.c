/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line. */
#include "metrics/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"

enum { DEFAULT_COLUMNS = 80, MIN_COLUMNS = 20, MAX_BAR = 30, MAX_CURVE = 24 };

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0';
}

bool cti_terminal_is_interactive(int fd)
{
    const char *term = getenv("TERM");
    return isatty(fd) == 1 && term != NULL && term[0] != '\0' && strcmp(term, "dumb") != 0 && !is_set("NO_COLOR") && !is_set("CI");
}

void cti_progress_init(cti_progress *p, const ct_alloc *alloc, ct_log *log, int64_t n_steps)
{
    *p = (cti_progress){.log = log, .n_steps = n_steps, .first_step = -1, .stride = 1, .text = {.alloc = alloc}};
}

void cti_progress_deinit(cti_progress *p)
{
    if (p->log != NULL) {
        ct_log_set_status(p->log, NULL);
        cti_str_deinit(&p->text);
    }
    p->log = NULL;
}

/* The ring holds the whole run: where it is full, neighbours become their mean and a mean counts twice as many steps. */
static void keep_loss(cti_progress *p, double loss)
{
    p->sum += loss;
    p->n_in_mean++;
    if (p->n_in_mean < p->stride) {
        return;
    }
    if (p->n_losses == CTI_PROGRESS_LOSSES) {
        for (int i = 0; i < CTI_PROGRESS_LOSSES / 2; i++) {
            p->losses[i] = 0.5 * (p->losses[2 * i] + p->losses[2 * i + 1]);
        }
        p->n_losses = CTI_PROGRESS_LOSSES / 2;
        p->stride *= 2;
        if (p->n_in_mean < p->stride) { /* half a mean of the new length */
            return;
        }
    }
    p->losses[p->n_losses++] = p->sum / (double)p->n_in_mean;
    p->sum = 0.0;
    p->n_in_mean = 0;
}

static void add_bar(cti_str *out, double share, int width)
{
    const int full = (int)(share * width + 0.5);
    for (int i = 0; i < width; i++) {
        cti_str_add(out, i < full ? "━" : "─");
    }
}

static void add_curve(cti_str *out, const double *losses, int n, int width)
{
    static const char *const blocks[8] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (int i = 0; i < n; i++) {
        low = isfinite(losses[i]) ? fmin(low, losses[i]) : low;
        high = isfinite(losses[i]) ? fmax(high, losses[i]) : high;
    }
    const int columns = n < width ? n : width;
    for (int c = 0; c < columns; c++) {
        const int begin = c * n / columns, end = (c + 1) * n / columns;
        double sum = 0.0;
        for (int i = begin; i < end; i++) {
            sum += losses[i];
        }
        const double mean = sum / (end - begin), height = high > low ? (mean - low) / (high - low) : 0.0;
        cti_str_add(out, !isfinite(mean) ? "?" : blocks[cti_min_i64(7, (int64_t)(height * 8.0))]);
    }
}

static void format_left(double seconds, char buf[32])
{
    if (!(seconds >= 0.0 && seconds < 100.0 * 86400.0)) {
        (void)snprintf(buf, 32, "?");
        return;
    }
    const int64_t s = (int64_t)(seconds + 0.5);
    char days_text[8] = "";
    if (s >= 86400) {
        (void)snprintf(days_text, sizeof days_text, "%dd ", (int)(s / 86400)); /* below 101 */
    }
    (void)snprintf(buf, 32, "%s%" PRId64 ":%02" PRId64 ":%02" PRId64, days_text, s / 3600 % 24, s / 60 % 60, s % 60); /* at most 15 bytes */
}

void cti_progress_format(const cti_progress *p, int64_t step, double loss, double tokens_per_second, double seconds_left, int columns,
                         cti_str *out)
{
    const double share = p->n_steps > 0 ? fmin(1.0, (double)step / (double)p->n_steps) : 0.0;
    char head[64], percent[16], left[32], eta[48], tps[32], rate[48], value[48];
    format_left(seconds_left, left);
    const int widths[] = {snprintf(head, sizeof head, "step %" PRId64 "/%" PRId64, step, p->n_steps),
                          snprintf(percent, sizeof percent, " %3.0f%%", floor(100.0 * share)),
                          snprintf(eta, sizeof eta, "  ETA %s", left),
                          snprintf(value, sizeof value, "  loss %.4f", loss),
                          snprintf(rate, sizeof rate, "  %s tok/s",
                                   tokens_per_second > 0.0 && tokens_per_second < 1e18
                                       ? cti_format_thousands((int64_t)tokens_per_second, tps) : "?")};
    const char *const parts[] = {head, percent, eta, value, rate};
    int room = columns - 1; /* the last column stays free, lest the terminal wraps */
    int n_parts = 0;
    while (n_parts < 5 && widths[n_parts] <= room) {
        room -= widths[n_parts++];
    }
    const int bar = n_parts > 2 && room >= 6 ? (int)cti_min_i64(MAX_BAR, n_parts == 5 ? (room - 1) * 2 / 3 : room - 1) : 0;
    room -= bar > 0 ? bar + 1 : 0;
    for (int i = 0; i < n_parts; i++) {
        cti_str_add(out, parts[i]);
        if (i == 0 && bar > 0) {
            cti_str_add_char(out, ' ');
            add_bar(out, share, bar);
        }
    }
    if (n_parts == 5 && room >= 4 && p->n_losses > 1) {
        cti_str_add_char(out, ' ');
        add_curve(out, p->losses, p->n_losses, (int)cti_min_i64(MAX_CURVE, room - 1));
    }
}

void cti_progress_step(cti_progress *p, int64_t step, double loss, int64_t tokens_per_step, int64_t now_ns)
{
    if (p->log == NULL) {
        return;
    }
    keep_loss(p, loss);
    if (p->first_step < 0) { /* the first step is slower than the others */
        p->first_step = step;
        p->first_ns = now_ns;
    }
    if (p->last_drawn_ns != 0 && step < p->n_steps && now_ns - p->last_drawn_ns < CTI_PROGRESS_MIN_MS * 1000000LL) {
        return;
    }
    p->last_drawn_ns = now_ns;
    const double seconds = (double)(now_ns - p->first_ns) / 1e9;
    const double done = (double)(step - p->first_step);
    const double per_step = done > 0.0 ? seconds / done : (double)NAN;
    struct winsize size = {0};
    const int fd = ct_log_fd(p->log);
    const bool is_known = fd >= 0 && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    cti_str_reset(&p->text);
    cti_progress_format(p, step, loss, per_step > 0.0 ? (double)tokens_per_step / per_step : 0.0, per_step * (double)(p->n_steps - step),
                        is_known ? (int)cti_max_i64(MIN_COLUMNS, size.ws_col) : DEFAULT_COLUMNS, &p->text);
    if (!p->text.failed) {
        ct_log_set_status(p->log, cti_str_text(&p->text));
    }
}
