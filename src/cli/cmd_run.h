/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan run`: what torchrun is. cmd_run.c reads the command line, cmd_run_supervise.c starts and watches the ranks of this host,
 * cmd_run_lines.c carries their lines, cmd_run_watch.c sees who hangs, cmd_run_nodes.c meets the launchers of other hosts (comm/meet.h).
 *
 *     ctitan run --nproc_per_node=4 --local-ranks-filter 0 --tee 3 -m torchtitan.train --module llama3 ...
 */
#ifndef CTI_CLI_CMD_RUN_H
#define CTI_CLI_CMD_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"
#include "comm/meet.h"
#include "ctitan/alloc.h"

enum { CTI_RUN_MAX_RANKS = 1024, CTI_RUN_STDOUT = 1, CTI_RUN_STDERR = 2 };

/* A command line that was read. Strings borrow from argv or are static. */
typedef struct cti_run_options {
    int n_ranks;
    const char *role;        /* "default" */
    const char *run_id;      /* never empty */
    char run_id_buf[32];     /* where none was given */
    int n_nodes;             /* hosts; 1: no meeting */
    int node_rank;           /* -1: not given */
    bool standalone;
    bool is_c10d;            /* nodes without a rank are numbered as they come, and the endpoint's host serves */
    int is_host;             /* 1: serves the meeting; 0: does not; -1: decided by where the endpoint is */
    char endpoint_host[256]; /* where the nodes meet; "" where not given */
    int endpoint_port;
    int64_t join_timeout_ms;
    char master_addr[256]; /* where the ranks' store is; "localhost" */
    int master_port;       /* 0: choose a free one */
    int max_restarts;        /* 0: none */
    int64_t grace_ms;        /* between the request to stop and SIGKILL */
    const char *log_dir;     /* NULL: none */
    unsigned char tee[CTI_RUN_MAX_RANKS];      /* CTI_RUN_STDOUT | CTI_RUN_STDERR: prefixed on the console */
    unsigned char redirect[CTI_RUN_MAX_RANKS]; /* likewise: to the file only */
    bool shown[CTI_RUN_MAX_RANKS];             /* its lines go to the console */
    bool help;
    bool search_path;    /* child_path is looked up in PATH */
    const char *child_path;
    char **child_argv; /* owns the array; NULL at the end */
} cti_run_options;

/* Reads the command line; argv[0] is "run". Fails with CT_ERR_USAGE (CT_ERR_UNSUPPORTED for what torchrun has and we have not).
 * Frees nothing on success: cti_run_options_deinit does. */
CT_MUST_CHECK ct_status cti_run_parse(const ct_alloc *alloc, int argc, char **argv, cti_run_options *out_options,
                                      ct_err *err);
void cti_run_options_deinit(const ct_alloc *alloc, cti_run_options *options);

/* Starts the ranks and returns when all of them ended: the exit code of the whole. Blocks SIGINT, SIGTERM, SIGHUP and
 * SIGCHLD in the calling thread while it runs. */
CT_MUST_CHECK ct_status cti_run_supervise(const ct_alloc *alloc, const cti_run_options *options, int *out_exit_code,
                                          ct_err *err);

/* The sub-command. Returns the exit code. */
int cti_cmd_run(int argc, char **argv);

/* ---- cmd_run_nodes.c: this host's part in a run over several ---- */

typedef struct cti_run_nodes {
    const cti_run_options *o; /* borrows */
    cti_meet_server *server;  /* owns; NULL where another host serves */
    cti_meet_client client;
    int node_rank, first_rank, world_size, port; /* once started */
    char address[256];                           /* of the ranks' store */
} cti_run_nodes;

/* Serves the meeting or finds it, and is taken in. A signal that signal_fd brings ends the wait with CT_ERR_STOPPED. Fails:
 * CT_ERR_USAGE where the others want something else, CT_ERR_TIMEOUT where nobody serves in time, CT_ERR_PEER. */
CT_MUST_CHECK ct_status cti_run_nodes_join(cti_run_nodes *nodes, const ct_alloc *alloc, const cti_run_options *options,
                                           const char *host, int signal_fd, ct_err *err);
/* Waits until all nodes are ready for this start. store_port: where this host serves the meeting, and so the ranks' store; else 0. */
CT_MUST_CHECK ct_status cti_run_nodes_start(cti_run_nodes *nodes, int restart, int store_port, int signal_fd, ct_err *err);
/* Says goodbye; the one that serves waits until the others heard the end. */
void cti_run_nodes_leave(cti_run_nodes *nodes);

/* ---- cmd_run_lines.c: one stream of one rank ---- */

enum { CTI_RUN_TAIL_BYTES = 4096 };

typedef struct cti_run_stream {
    int pipe_fd;    /* owns; what the rank writes; -1: closed or never piped */
    int console_fd; /* 1, 2 or -1: not shown */
    int file_fd;    /* owns; -1: none */
    char prefix[80]; /* "[default0]:" or "" */
    cti_str line;    /* the unfinished line */
    cti_str tail;    /* the last lines of a stream that is not shown, for when its rank fails */
    bool keep_tail;
} cti_run_stream;

/* Reads what is there (at most one bufferful) and passes whole lines on. False at the end of the stream. */
bool cti_run_stream_read(cti_run_stream *stream);
/* Reads all that is there, passes on the unfinished line too, closes the pipe and the file. */
void cti_run_stream_finish(cti_run_stream *stream);
/* Writes the tail to stderr, each line with the prefix. */
void cti_run_stream_show_tail(cti_run_stream *stream);
void cti_run_stream_deinit(cti_run_stream *stream);

#endif
