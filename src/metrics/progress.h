/* SPDX-License-Identifier: Apache-2.0 */
/* The line below the log on a terminal: a bar, the time that is left, tokens per second, the loss as a curve.
 *
 *     step 120/1000 ━━━──────────────── 12%  ETA 0:03:20  12,345 tok/s  loss 3.2101 █▆▅▄▃▃▂▁
 *
 * It is drawn by the log itself (ct_log_set_status), in the same write as the lines above it, so that neither garbles the other; no
 * terminal mode is changed. The width of the terminal is asked for at each drawing. */
#ifndef CTI_METRICS_PROGRESS_H
#define CTI_METRICS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "ctitan/log.h"

enum { CTI_PROGRESS_LOSSES = 64, CTI_PROGRESS_MIN_MS = 250 };

typedef struct cti_progress {
    ct_log *log;             /* NULL: there is no view, all calls do nothing */
    int64_t n_steps;         /* number of the last one */
    int64_t first_step, first_ns; /* where this process began to count time: after its first step */
    int64_t last_drawn_ns;
    double losses[CTI_PROGRESS_LOSSES]; /* a ring of means of `stride` steps */
    int n_losses;            /* in the ring */
    int64_t stride, n_in_mean;
    double sum;
    cti_str text;            /* reused */
} cti_progress;

/* Whether a view makes sense: stream is a terminal that can move its cursor, and nobody asked for plain output. Reads the environment
 * (TERM, NO_COLOR, CI), for the command line. */
bool cti_terminal_is_interactive(int fd);

void cti_progress_init(cti_progress *progress, const ct_alloc *alloc, ct_log *log, int64_t n_steps);
void cti_progress_deinit(cti_progress *progress); /* takes the line away */
/* After each step; draws at most every CTI_PROGRESS_MIN_MS. now_ns: cti_now_ns. tokens_per_step: over all ranks. */
void cti_progress_step(cti_progress *progress, int64_t step, double loss, int64_t tokens_per_step, int64_t now_ns);

/* The text for a terminal of `columns`; what does not fit is left out, from the right. For the tests. */
void cti_progress_format(const cti_progress *progress, int64_t step, double loss, double tokens_per_second, double seconds_left, int columns,
                         cti_str *out);

#endif
