/* SPDX-License-Identifier: Apache-2.0 */
/* How the launchers of several hosts meet, fail and end together. One of them, the one at the endpoint, serves in a thread of its own;
 * every one, that one too, is a client. docs/formats/launchers.md has the protocol.
 *
 *     cti_meet_server_start(alloc, listen_fd, &rules, &server, &own_fd, err);    // at the endpoint; own_fd is its own client's
 *     cti_meet_client_init(&client, alloc, own_fd);                               // the others: a connection to the endpoint
 *     cti_meet_send(&client, "JOIN\t%d\t...", ...);
 *     while ((rc = cti_meet_take(&client, &message)) > 0) { ... }                 // when client.fd is readable
 */
#ifndef CTI_COMM_MEET_H
#define CTI_COMM_MEET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "ctitan/alloc.h"

enum { CTI_MEET_PROTOCOL = 2, CTI_MEET_MAX_NODES = 4096, CTI_MEET_MAX_LINE = 8192, CTI_MEET_MAX_FIELDS = 12 };

/* ---- lines: fields with tabs between ---- */

/* Splits in place; the number of fields, at most CTI_MEET_MAX_FIELDS (the last one then holds the rest). */
int cti_meet_split(char *line, char *fields[CTI_MEET_MAX_FIELDS]);
/* The number in a field. False: none from low to high. */
bool cti_meet_number(const char *text, int64_t low, int64_t high, int *out);
/* Takes a whole line out of `in`, without its newline. False: there is none yet. */
bool cti_meet_cut_line(cti_str *in, cti_str *out_line);
/* Makes a line of fmt (tabs and all) and sends it. False where the peer is gone or takes nothing. */
bool cti_meet_send_line(const ct_alloc *alloc, int fd, const char *fmt, ...) CT_PRINTF(3, 4);
/* Copies text to buf without tabs, newlines and other control characters. */
const char *cti_meet_clean(const char *text, char *buf, size_t size);
/* Notices within 20 s where the peer's host or the way to it is gone. */
void cti_meet_keep_alive(int fd);

/* ---- server ---- */

/* What all launchers must agree on. Strings are borrowed while the server lives. */
typedef struct cti_meet_rules {
    const char *version, *run_id;
    int n_nodes, max_restarts;
    int64_t join_timeout_ms;
    const char *note; /* added to what is said where nodes are missing; "" for nothing */
} cti_meet_rules;

typedef struct cti_meet_server cti_meet_server;

/* listen_fd is taken over, also where this fails; *out_own_fd: a connection for the caller's own client, who owns it. */
CT_MUST_CHECK ct_status cti_meet_server_start(const ct_alloc *alloc, int listen_fd, const cti_meet_rules *rules,
                                              cti_meet_server **out_server, int *out_own_fd, ct_err *err);
/* Waits until the others have heard how it ended and left (5 s at most). Close the own client before. */
void cti_meet_server_stop(cti_meet_server **server);

/* ---- client ---- */

typedef struct cti_meet_client {
    int fd; /* owns; -1: none */
    cti_str in, line;
} cti_meet_client;

typedef enum cti_meet_kind { CTI_MEET_WELCOME, CTI_MEET_REFUSED, CTI_MEET_START, CTI_MEET_STOP, CTI_MEET_HALT, CTI_MEET_END, CTI_MEET_ROW } cti_meet_kind;

/* From the server. Strings live until the next message. */
typedef struct cti_meet_message {
    cti_meet_kind kind;
    int restart;                                  /* START, END */
    int node_rank, first_rank, world_size, port;  /* START: of this node; where the ranks' store is */
    const char *address;                          /* START: "" where it is the endpoint's host */
    int exit_code;                                /* END */
    bool again, own;                              /* END: all ranks start again; this node told it */
    const char *text;                             /* REFUSED; END: the cause, "" where nothing failed; ROW: of flight.h */
} cti_meet_message;

void cti_meet_client_init(cti_meet_client *client, const ct_alloc *alloc, int fd);
/* 1: a message; 0: none yet; -1: the connection is gone, or what is there speaks otherwise. */
int cti_meet_take(cti_meet_client *client, cti_meet_message *out);
void cti_meet_client_deinit(cti_meet_client *client);

#endif
