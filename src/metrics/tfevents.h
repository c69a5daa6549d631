/* SPDX-License-Identifier: Apache-2.0 */
/* TensorBoard event files: records of a length and an Event message, each with a checksum.
 *
 * Record: u64 length, u32 masked CRC-32C of those 8 bytes, the message, u32 masked CRC-32C of it; little-endian.
 * Messages are encoded by hand: three of them with nine fields in all are fewer lines than a schema, a compiler that must run on the
 * building host and a library that must be on the target. Field numbers (TensorFlow's event.proto and summary.proto):
 *   Event      1 wall_time double, 2 step int64, 3 file_version string, 5 summary, 7 session_log
 *   Summary    1 value (repeated): 1 tag string, 2 simple_value float
 *   SessionLog 1 status enum (1: START) */
#ifndef CTI_METRICS_TFEVENTS_H
#define CTI_METRICS_TFEVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "metrics/series.h"

/* CRC-32C (Castagnoli, reflected 0x82f63b78), and its masked form: rotated right by 15, plus 0xa282ead8. */
uint32_t cti_crc32c(const void *bytes, size_t size);
uint32_t cti_crc32c_masked(const void *bytes, size_t size);

/* Each appends one record to out. wall_s: seconds since 1970. */
void cti_tfevents_version(cti_str *out, double wall_s); /* opens every file */
/* Whoever reads the folder drops what earlier files say of steps from `step` on: they are done again. */
void cti_tfevents_restart(cti_str *out, double wall_s, int64_t step);
/* One event with all scalars that are present. */
void cti_tfevents_scalars(cti_str *out, double wall_s, int64_t step, const cti_scalar *scalars, int n);

/* The folder and file to write to, under `base` (such as outputs/tb):
 * a fresh run gets base/YYYYmmdd-HHMM (local time), a resumed one the folder of that form that is newest, so that its axis continues.
 * sub: "" or "rank_3". The file is events.out.tfevents.<seconds>.<host>.<pid>.0, seconds such that it sorts after those that are
 * there. Caller frees *out_path. */
CT_MUST_CHECK ct_status cti_tfevents_path(const ct_alloc *alloc, const char *base, const char *sub, bool is_resumed, int64_t wall_ms,
                                          char **out_path, ct_err *err);

#endif
