/* SPDX-License-Identifier: Apache-2.0 */
/* Structured events of a run: one JSON object a line, for machines to read (fields: docs/metrics.md).
 *
 *     cti_trace *trace;
 *     CT_TRY(cti_trace_open(alloc, writer, &options, &trace, err));
 *     cti_trace_step(trace, 7, 7);
 *     const int64_t start = CTI_SPAN_BEGIN(trace, "optim");
 *     ...
 *     CTI_SPAN_END(trace, "optim", start, st == CT_OK);
 *     cti_trace_close(&trace);
 *
 * trace may be NULL everywhere: nothing happens. One thread, that which trains. A record costs about a microsecond and no allocation. */
#ifndef CTI_METRICS_TRACE_H
#define CTI_METRICS_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "metrics/writer.h"

typedef struct cti_trace cti_trace;

typedef struct cti_trace_options {
    const char *folder;    /* outputs/structured_logs */
    int64_t rank, local_rank;
    const char *source;    /* "training" */
    int64_t wall_ms;       /* names the file; 0: now */
} cti_trace_options;

typedef struct cti_where {
    const char *file; /* __FILE__ */
    int line;
    const char *function;
} cti_where;
#define CTI_HERE (&(const cti_where){__FILE__, __LINE__, __func__})

typedef enum cti_step_tag { CTI_TAG_CHECKPOINT_SAVE = 1, CTI_TAG_EVAL = 2, CTI_TAG_GC = 4 } cti_step_tag;

/* The file is <folder>/<source>.global_rank_<rank>.<YYYYmmdd-HHMMSS>-<6 of A-Z0-9>.jsonl; cti_trace_path names it. Its first record is
 * the instant "structured_logger_started". *out_trace is NULL (and CT_OK) where the writer could not open it. */
CT_MUST_CHECK ct_status cti_trace_open(const ct_alloc *alloc, cti_writer *writer, const cti_trace_options *options,
                                       cti_trace **out_trace, ct_err *err);
void cti_trace_close(cti_trace **trace); /* before the writer's end */
const char *cti_trace_path(const cti_trace *trace);

/* Records from here on belong to this step (relative: since the start of this process); its tags start empty. */
void cti_trace_step(cti_trace *trace, int64_t step, int64_t relative_step);
void cti_trace_tag(cti_trace *trace, cti_step_tag tag); /* on records from here to the end of the step */

/* <name>_start; returns the time to hand to the end (monotonic, ns; 0 without a trace). */
int64_t cti_trace_begin(cti_trace *trace, const cti_where *where, const char *name);
/* <name>_end with the span's milliseconds; before it <name>_error where it failed. */
void cti_trace_end(cti_trace *trace, const cti_where *where, const char *name, int64_t start_ns, bool is_ok);
void cti_trace_instant(cti_trace *trace, const cti_where *where, const char *name, const char *message);
void cti_trace_scalar(cti_trace *trace, const cti_where *where, const char *name, double value);

#define CTI_SPAN_BEGIN(trace, name) cti_trace_begin((trace), CTI_HERE, (name))
#define CTI_SPAN_END(trace, name, start_ns, is_ok) cti_trace_end((trace), CTI_HERE, (name), (start_ns), (is_ok))

/* text with what JSON must escape escaped; bytes that are not UTF-8 become U+FFFD. For all that write JSON by hand. */
void cti_json_add_escaped(cti_str *out, const char *text);

#endif
