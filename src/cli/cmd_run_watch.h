/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher's eye on what its ranks do: it shares each one's flight recorder (comm/recorder.h), warns of ranks that others wait for or
 * that were stopped, and when the run breaks prints one table of all ranks and writes the recorder files of those that no longer can.
 *
 *     cti_run_watch_open(&w, alloc, n_local, first_rank, world_size);   // before the ranks start
 *     cti_run_watch_share(&w, r);                                        // in the child, between fork and exec
 *     cti_run_watch_tick(&w);                                            // at least every CTI_RUN_WATCH_TICK_MS
 *     cti_run_watch_ended(&w, r, "killed by SIGKILL");                   // the first time: takes the picture of all
 *     cti_run_watch_report(&w, cause);                                   // when all have ended
 *     cti_run_watch_close(&w);
 */
#ifndef CTI_CLI_CMD_RUN_WATCH_H
#define CTI_CLI_CMD_RUN_WATCH_H

#include <sys/types.h>

#include "comm/flight.h"

enum { CTI_RUN_WATCH_TICK_MS = 2000 };

typedef struct cti_run_watched {
    int fd;    /* owns; memory shared with the rank; -1: none */
    pid_t pid; /* 0: none */
    int64_t stopped_ns; /* since when it is stopped; 0: it is not */
    uint64_t warned_id; /* of the call that was warned of */
} cti_run_watched;

typedef struct cti_run_watch {
    const ct_alloc *alloc; /* borrows */
    int n, first_rank, world_size;
    cti_run_watched *ranks; /* owns; [n] of this host */
    cti_flight_rank *rows;  /* owns; [world_size], by rank: the picture; those of other hosts as they send them */
    bool is_taken;          /* the picture is */
    int n_rows;             /* of the picture, so far */
    bool is_broken;         /* a rank was killed, or lost another: worth a table */
} cti_run_watch;

/* Where memory cannot be had, nothing is watched. One rank alone is not. */
void cti_run_watch_open(cti_run_watch *watch, const ct_alloc *alloc, int n, int first_rank, int world_size);
void cti_run_watch_close(cti_run_watch *watch);
int cti_run_watch_fd(const cti_run_watch *watch, int rank); /* for CTITAN_WATCH_FD; 0: none */
void cti_run_watch_share(const cti_run_watch *watch, int rank);
void cti_run_watch_started(cti_run_watch *watch, int rank, pid_t pid);
/* The rank was stopped by a signal, or goes on. */
void cti_run_watch_stopped(cti_run_watch *watch, int rank, bool is_stopped);
/* Warns. Returns a rank that has been stopped for longer than its calls may take, else -1. */
int cti_run_watch_tick(cti_run_watch *watch);
/* The picture, where it was not taken yet. */
void cti_run_watch_take(cti_run_watch *watch);
void cti_run_watch_ended(cti_run_watch *watch, int rank, bool is_killed, const char *state);
/* A row of another host. */
void cti_run_watch_add_row(cti_run_watch *watch, const char *line);
/* Whether rows of other hosts are still to come. */
bool cti_run_watch_wants_rows(const cti_run_watch *watch);
/* Writes the files of ranks that did not, and prints the table: of all hosts, of this one, or (another host prints it) not. Nothing where
 * all is well. */
typedef enum cti_run_watch_table { CTI_RUN_WATCH_ALL, CTI_RUN_WATCH_OWN, CTI_RUN_WATCH_FILES } cti_run_watch_table;
void cti_run_watch_report(cti_run_watch *watch, cti_run_watch_table table, const char *cause);

#endif
