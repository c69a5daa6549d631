/* SPDX-License-Identifier: Apache-2.0 */
/* The log: whole lines on stderr in the form `[titan] YYYY-MM-DD HH:MM:SS,mmm - root - INFO - TEXT`. */
#ifndef CTITAN_LOG_H
#define CTITAN_LOG_H

#include <stdbool.h>
#include <stdio.h>

#include "ctitan/alloc.h"
#include "ctitan/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ct_log_level { CT_LOG_DEBUG, CT_LOG_INFO, CT_LOG_WARNING, CT_LOG_ERROR, CT_LOG_LEVEL_COUNT } ct_log_level;

typedef struct ct_log ct_log;

/* Lines below `level` are dropped. `stream` is borrowed until ct_log_destroy; NULL: lines go to the hook alone. Threads: any may write; each line
 * goes out with one write. Local time. */
CT_MUST_CHECK ct_status ct_log_create(const ct_alloc *alloc, FILE *stream, ct_log_level level, ct_log **out_log,
                                      ct_err *err);
void ct_log_destroy(ct_log **log);
/* log may be NULL: nothing happens. A text of several lines goes out as one write. */
void ct_log_line(ct_log *log, ct_log_level level, const char *fmt, ...) CT_PRINTF(3, 4);
/* Called with each text (no head, no newline) that is written; for progress views and tests. NULL: none. */
void ct_log_set_hook(ct_log *log, void (*hook)(void *ctx, ct_log_level level, const char *text), void *ctx);

/* A line that stays below the log: drawn now, and again behind each line that goes out, in the same write. UTF-8 without newline,
 * narrower than the terminal. NULL or "": taken away. Only for a stream that is a terminal; copied, cut above 1000 bytes. */
void ct_log_set_status(ct_log *log, const char *text);
int ct_log_fd(const ct_log *log); /* the stream's descriptor; -1: none */

#define CT_INFO(log, ...) ct_log_line((log), CT_LOG_INFO, __VA_ARGS__)
#define CT_WARN(log, ...) ct_log_line((log), CT_LOG_WARNING, __VA_ARGS__)
#define CT_ERROR(log, ...) ct_log_line((log), CT_LOG_ERROR, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
