/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is written piece by piece and appears whole or not at all. */
#ifndef CTI_DATA_OUTPUT_H
#define CTI_DATA_OUTPUT_H

#include "base/str.h"

/* Zero-initialise. */
typedef struct cti_output {
    const ct_alloc *alloc;
    char *path, *temp; /* own */
    int fd;            /* owns */
    bool is_open;
    int64_t size;          /* bytes written so far, those in the buffer too */
    unsigned char *buffer; /* owns */
    size_t n_buffer;
} cti_output;

/* Opens "PATH.tmp.PID" for writing. */
CT_MUST_CHECK ct_status cti_output_open(cti_output *output, const ct_alloc *alloc, const char *path, ct_err *err);
CT_MUST_CHECK ct_status cti_output_add(cti_output *output, const void *data, size_t size, ct_err *err);
/* Writes over bytes that were written: for a header whose numbers are known at the end. */
CT_MUST_CHECK ct_status cti_output_put(cti_output *output, int64_t offset, const void *data, size_t size, ct_err *err);
/* Brings it to the disk under its name; an older file of that name is replaced. */
CT_MUST_CHECK ct_status cti_output_finish(cti_output *output, ct_err *err);
/* Closes; removes what was not finished. */
void cti_output_deinit(cti_output *output);

#endif
