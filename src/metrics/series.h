/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a logged step: how they come about, and the file metrics.csv that keeps them.
 *
 * metrics.csv: a header, then one row a logged step: step, time (seconds since 1970), then the scalars under the names that they have
 * in TensorBoard; an empty cell is a value that is not known. Numbers read back to the same double. Steps rise strictly: a run that
 * is resumed after step R drops the rows above R, which it makes again, so that the file always is one clean series. */
#ifndef CTI_METRICS_SERIES_H
#define CTI_METRICS_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "ctitan/alloc.h"

enum { CTI_MAX_SCALARS = 96 };

typedef struct cti_scalar {
    const char *name; /* "loss_metrics/global_avg_loss"; borrowed */
    double value;
    bool is_present; /* false: not known */
} cti_scalar;

typedef struct cti_rates {
    double tokens_per_second; /* per device */
    double tflops;            /* model FLOPs, TFLOP/s per device */
    double mfu_percent;       /* only where the peak is known */
    bool has_mfu;
} cti_rates;

/* tokens: of the rows that this rank fetched in `seconds`, which n_sharing devices worked on together (context, tensor and pipeline
 * parallelism; 1 without). flops_per_token: of the model, forward and backward. peak_flops: of one device, FLOP/s; 0: not known. */
cti_rates cti_rates_of(double tokens, double seconds, int64_t n_sharing, double flops_per_token, double peak_flops);

/* The header row of these scalars, and a row; both end with a newline. */
void cti_csv_header(cti_str *out, const cti_scalar *scalars, int n);
void cti_csv_row(cti_str *out, int64_t step, double wall_s, const cti_scalar *scalars, int n);

/* Makes the file at path ready to be appended to: with this header (a whole line), and with the rows of steps up to `resumed_step` that
 * it held. resumed_step 0: none of them. Where there is a file that cannot go on (a fresh run, or another header), it is kept as
 * "<path>.<n>", n the first free number, and *out_moved says so. What a crash cut off is dropped. */
CT_MUST_CHECK ct_status cti_csv_prepare(const ct_alloc *alloc, const char *path, const char *header, int64_t resumed_step,
                                        bool *out_moved, ct_err *err);

#endif
