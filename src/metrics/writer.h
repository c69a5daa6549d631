/* SPDX-License-Identifier: Apache-2.0 */
/* Files that grow line by line, written by a thread of its own: the caller only copies bytes into memory, a slow or full disk never
 * holds it up. Bytes reach the file within CTI_WRITER_DELAY_MS, all of them at close.
 *
 *     cti_writer *w;
 *     CT_TRY(cti_writer_create(alloc, log, &w, err));
 *     cti_writer_file *f = cti_writer_open(w, "outputs/metrics.csv");   // NULL where that failed: all calls take NULL
 *     cti_writer_add(f, line, size);
 *     cti_writer_destroy(&w);
 *
 * The first failure of any file is one warning in the log; that file takes nothing more, and later failures are silent. */
#ifndef CTI_METRICS_WRITER_H
#define CTI_METRICS_WRITER_H

#include <stddef.h>

#include "ctitan/alloc.h"
#include "ctitan/log.h"

enum {
    CTI_WRITER_DELAY_MS = 200,
    CTI_WRITER_MAX_FILES = 16,
    CTI_WRITER_MAX_PENDING = 64 << 20 /* bytes of one file that wait; a disk that is further behind counts as failed */
};

typedef struct cti_writer cti_writer;
typedef struct cti_writer_file cti_writer_file;

/* Starts the thread; it takes no signals. log is borrowed, may be NULL. */
CT_MUST_CHECK ct_status cti_writer_create(const ct_alloc *alloc, ct_log *log, cti_writer **out_writer, ct_err *err);
/* Writes all that waits and ends the thread. */
void cti_writer_destroy(cti_writer **writer);
/* Appends to the file at path, made with the folders above it where they are missing. NULL where that failed (warned of). Owned by
 * the writer. writer may be NULL: NULL. */
cti_writer_file *cti_writer_open(cti_writer *writer, const char *path);
/* Copies bytes for the thread to write; never waits for the disk. file may be NULL. Any thread. */
void cti_writer_add(cti_writer_file *file, const void *bytes, size_t size);
/* Returns when all that was added before is written or given up. */
void cti_writer_flush(cti_writer *writer);
/* The one warning, for failures of others that share it (why: a whole sentence, without full stop). */
void cti_writer_warn(cti_writer *writer, const char *why);

#endif
