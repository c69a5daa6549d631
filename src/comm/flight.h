/* SPDX-License-Identifier: Apache-2.0 */
/* What the flight recorders of the ranks hold, read back, and who hangs. For the launcher, which reads the memory that its ranks share
 * (recorder.h), and for `ctitan flight-recorder`, which reads their files (docs/formats/flight-recorder.md).
 *
 *     cti_flight_rank ranks[N];                                       // the launcher: ranks[r] = (cti_flight_rank){.rank = r}
 *     cti_flight_read_memory(fd, &ranks[r]);                          // for each rank of this host, dead or alive
 *     cti_flight_table(ranks, N, &text);  cti_flight_verdict(ranks, N, &text);
 */
#ifndef CTI_COMM_FLIGHT_H
#define CTI_COMM_FLIGHT_H

#include "base/json.h"
#include "base/str.h"
#include "comm/recorder.h"

/* One rank as it stood. Plain data. */
typedef struct cti_flight_rank {
    int rank;
    bool is_known;          /* head and op are there: the rank had opened its recorder */
    bool has_op;            /* op is the oldest call that is not complete, else the last */
    cti_recorder_head head;
    cti_record op;
    int64_t now_ns;         /* of the clock of op's times: when it was read */
    char state[40];         /* "running", "stopped", "killed by SIGKILL", "exit code 75"; "" not known */
} cti_flight_rank;

/* Reads the memory behind fd; out->rank, out->state stay. False: the rank had not come that far. Nothing that it holds is trusted. */
bool cti_flight_read_memory(int fd, cti_flight_rank *out);
/* Writes the file of a rank that did not (it was killed). Does nothing where it did, or had none to write. */
CT_MUST_CHECK ct_status cti_flight_write_memory(const ct_alloc *alloc, int fd, const char *state, const char *cause, ct_err *err);
/* The file: head and ring as lines of JSON. For recorder.c. */
CT_MUST_CHECK ct_status cti_flight_write(const ct_alloc *alloc, const cti_recorder_head *head, const cti_record *ring, const char *state,
                                         const char *cause, ct_err *err);
/* Reads a file; *out_cause [size]. Fails: CT_ERR_FORMAT naming path and line. */
CT_MUST_CHECK ct_status cti_flight_read_file(const ct_alloc *alloc, const char *path, cti_flight_rank *out, char *out_cause, size_t size,
                                             ct_err *err);

/* One line for the launcher of another host, and back (false: not ours). */
CT_MUST_CHECK ct_status cti_flight_pack(const ct_alloc *alloc, const cti_flight_rank *rank, cti_str *out, ct_err *err);
bool cti_flight_unpack(const char *line, cti_flight_rank *out);

/* Lines with newlines: a row for each rank; then which rank lacks which call that others wait for, and calls that do not match. */
void cti_flight_table(const cti_flight_rank *ranks, int n, cti_str *out);
void cti_flight_verdict(const cti_flight_rank *ranks, int n, cti_str *out);
/* Of a call: "all_reduce 31 of 'world' (16 bytes, i64)". */
void cti_flight_describe(const cti_flight_rank *rank, const cti_record *op, cti_str *out);

#endif
