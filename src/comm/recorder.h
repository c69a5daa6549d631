/* SPDX-License-Identifier: Apache-2.0 */
/* The flight recorder: the last calls of this rank, in a ring that is read when something hangs or dies.
 *
 *     uint64_t id = cti_recorder_begin(rec, group, CT_COMM_ALL_REDUCE, number, bytes, dtype, -1);   // the call is scheduled
 *     cti_recorder_start(rec, id);                                                                    // its first byte moves
 *     cti_recorder_end(rec, id, true);                                                                // done; false: failed
 *
 * comm_calls.c does so at one place (begin() and end()) for the collectives of all engines. Calls of a device engine are STARTED when they are enqueued and
 * end, all together, where the device is waited for (cti_recorder_end_from). Any
 * thread may call; rec NULL (recording is off) and id 0 do nothing. Nothing is allocated after creation; a call costs a clock and a
 * lock that nobody holds.
 *
 * The memory is shared with the launcher where it gave us some (ct_place.watch_fd, a memfd): it reads head and ring when the rank was
 * killed or stands still (flight.h). Files: docs/formats/flight-recorder.md.
 */
#ifndef CTI_COMM_RECORDER_H
#define CTI_COMM_RECORDER_H

#include <pthread.h>

#include "comm/comm.h"

typedef enum cti_record_state { CTI_RECORD_NONE, CTI_RECORD_SCHEDULED, CTI_RECORD_STARTED, CTI_RECORD_COMPLETED, CTI_RECORD_FAILED } cti_record_state;

/* Plain data of 64 bytes; in shared memory. Times are of CLOCK_MONOTONIC, which all processes of a host share; 0: not yet. */
typedef struct cti_record {
    uint64_t id;     /* 1, 2, ... over all groups of this rank; 0: never written */
    uint64_t number; /* of the call in its group, from 1: the same on all members */
    int64_t bytes;   /* count times the size of an element, as the call gives it */
    int64_t scheduled_ns, started_ns, ended_ns;
    int64_t step;    /* of training, 0: before the first */
    int16_t group;   /* in head.groups */
    uint8_t op, dtype, state; /* ct_comm_op, ct_dtype, cti_record_state */
    uint8_t pad;
    int16_t peer;    /* root, or first peer of an exchange; -1: none */
} cti_record;

enum { CTI_RECORDER_MAX_GROUPS = 24, CTI_RECORDER_MAX_RECORDS = 10000000 };

/* A group that was opened; further ones of a process are counted under the last entry, "others". */
typedef struct cti_recorder_group {
    uint64_t id;           /* of its name and members: the same on all members */
    uint64_t last_number;  /* of its calls, that are no exchanges, so far */
    int32_t size, rank;    /* members; this rank among them */
    int32_t first, stride; /* its world ranks are first + i * stride; stride 0: they are not so regular */
    char name[32];
} cti_recorder_group;

/* In front of the ring. Strings end with NUL. */
typedef struct cti_recorder_head {
    uint64_t magic; /* CTI_RECORDER_MAGIC once all else is there */
    uint32_t head_bytes, record_bytes;
    int64_t n_records; /* of the ring; record i is at (i - 1) % n_records */
    int64_t n_begun;   /* records so far */
    int64_t step;      /* of training, that is being done */
    int64_t since_ns;  /* when `what` began */
    int64_t limit_ms;  /* for each call, now */
    int32_t rank, world_size, pid, restart;
    int32_t is_broken; /* a call failed since a rank is gone or does not answer */
    int32_t is_dumped; /* the rank wrote its file, or tried to */
    int32_t n_groups;
    char what[16];     /* what the rank does between calls: "starting", "step", "saving", ... */
    char engine[16], version[32], host[64], run_id[128];
    char path[1024];   /* of the file; "": none */
    cti_recorder_group groups[CTI_RECORDER_MAX_GROUPS];
} cti_recorder_head;

#define CTI_RECORDER_MAGIC 0x3174686769464354u /* "TCFight1" */

typedef struct cti_recorder cti_recorder;

/* n_records: of the ring, above 0. path: of the file (copied; absolute, so that the launcher finds it). */
CT_MUST_CHECK ct_status cti_recorder_create(const ct_alloc *alloc, const ct_place *place, const char *engine, int64_t n_records,
                                            const char *path, const char *version, cti_recorder **out, ct_err *err);
void cti_recorder_destroy(cti_recorder **rec);

/* The index for cti_recorder_begin. */
int cti_recorder_add_group(cti_recorder *rec, const char *name, uint64_t id, const int *world_ranks, int size, int rank);
uint64_t cti_recorder_begin(cti_recorder *rec, int group, ct_comm_op op, uint64_t number, int64_t bytes, ct_dtype dtype, int peer);
void cti_recorder_start(cti_recorder *rec, uint64_t id);
void cti_recorder_end(cti_recorder *rec, uint64_t id, bool is_ok);
/* All calls from `first` on that are begun and have not ended. */
void cti_recorder_end_from(cti_recorder *rec, uint64_t first, bool is_ok);
/* what: static; "" leaves it. step below 0 leaves the step. */
void cti_recorder_note(cti_recorder *rec, int64_t step, const char *what);
void cti_recorder_limit(cti_recorder *rec, int64_t limit_ms);
/* The world is broken. Writes the file, once: later calls do nothing. */
CT_MUST_CHECK ct_status cti_recorder_dump(cti_recorder *rec, const char *cause, ct_err *err);

#endif
