/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan run` on several hosts: finding the meeting, joining it, and waiting for the others. What comes then is
 * cmd_run_supervise.c's. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/cmd_run.h"
#include "comm/store.h"

enum { WELCOME_MS = 15000, DIAL_SLICE_MS = 500 };

/* Whether a signal asks us to end. */
static bool take_signal(int signal_fd)
{
    struct signalfd_siginfo info;
    while (read(signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGCHLD) {
            return true;
        }
    }
    return false;
}

static ct_status stopped(const cti_run_nodes *nodes, ct_err *err)
{
    return CT_FAIL(err, CT_ERR_STOPPED, "stopped on request before all %d nodes were there", nodes->o->n_nodes);
}

static ct_status dial(cti_run_nodes *nodes, int signal_fd, int *out_fd, ct_err *err)
{
    const cti_run_options *o = nodes->o;
    const int64_t deadline_ns = cti_now_ns() + o->join_timeout_ms * 1000000;
    for (;;) {
        ct_err why = {0};
        /* A name may get its address only when its host has started, so that this is tried again, too. */
        if (cti_store_dial(o->endpoint_host, o->endpoint_port, DIAL_SLICE_MS, out_fd, &why) == CT_OK) {
            return CT_OK;
        }
        struct pollfd p = {.fd = signal_fd, .events = POLLIN};
        if (poll(&p, 1, why.status == CT_ERR_TIMEOUT ? 0 : DIAL_SLICE_MS) > 0 && take_signal(signal_fd)) {
            return stopped(nodes, err);
        }
        if (cti_now_ns() >= deadline_ns) {
            return CT_FAIL(err, CT_ERR_TIMEOUT, "nobody serves the meeting of the nodes at %s:%d within %" PRId64 " s: %s; %s does, where it "
                           "runs", o->endpoint_host, o->endpoint_port, o->join_timeout_ms / 1000, why.message,
                           o->is_c10d ? "the node on that host" : "node 0");
        }
    }
}

static ct_status on_unexpected(const cti_run_nodes *nodes, const cti_meet_message *m, cti_meet_kind wanted, ct_err *err)
{
    const cti_run_options *o = nodes->o;
    switch (m->kind) {
    case CTI_MEET_REFUSED:
        return CT_FAIL(err, CT_ERR_USAGE, "the node that serves %s:%d turns this one away: %s", o->endpoint_host, o->endpoint_port,
                       m->text);
    case CTI_MEET_END:
        return CT_FAIL(err, m->exit_code == 2 ? CT_ERR_USAGE : CT_ERR_TIMEOUT, "%s", m->text);
    case CTI_MEET_STOP:
    case CTI_MEET_HALT:
        return CT_FAIL(err, CT_ERR_STOPPED, "another node was asked to stop");
    case CTI_MEET_WELCOME:
    case CTI_MEET_START:
    case CTI_MEET_ROW:
        break;
    }
    return CT_FAIL(err, CT_ERR_PEER, "the node that serves %s:%d says %d where %d was wanted", o->endpoint_host, o->endpoint_port,
                   (int)m->kind, (int)wanted);
}

/* Until the message of that kind comes; time_ms -1: as long as the server has patience. */
static ct_status await(cti_run_nodes *nodes, cti_meet_kind kind, int time_ms, int signal_fd, cti_meet_message *out, ct_err *err)
{
    const cti_run_options *o = nodes->o;
    const int64_t deadline_ns = cti_now_ns() + (int64_t)time_ms * 1000000;
    for (;;) {
        const int rc = cti_meet_take(&nodes->client, out);
        if (rc > 0 && out->kind == CTI_MEET_ROW) { /* of the start before */
            continue;
        }
        if (rc > 0) {
            return out->kind == kind ? CT_OK : on_unexpected(nodes, out, kind, err);
        }
        const int64_t left_ms = (deadline_ns - cti_now_ns()) / 1000000;
        if (kind == CTI_MEET_WELCOME && (rc < 0 || left_ms <= 0)) {
            return CT_FAIL(err, CT_ERR_PEER, "what listens at %s:%d is no `ctitan run` that waits for nodes", o->endpoint_host,
                           o->endpoint_port);
        }
        if (rc < 0) {
            return CT_FAIL(err, CT_ERR_PEER, "the node that serves %s:%d is gone", o->endpoint_host, o->endpoint_port);
        }
        struct pollfd p[2] = {{.fd = nodes->client.fd, .events = POLLIN}, {.fd = signal_fd, .events = POLLIN}};
        if (poll(p, 2, time_ms < 0 ? -1 : (int)left_ms) < 0 && errno != EINTR) {
            return CT_FAIL(err, CT_ERR_IO, "waiting for the nodes failed: %s", strerror(errno));
        }
        if (p[1].revents != 0 && take_signal(signal_fd)) {
            return stopped(nodes, err);
        }
    }
}

/* Serves where it is this host's to do. With c10d another launcher of this host may do so already. */
static ct_status serve(cti_run_nodes *nodes, const ct_alloc *alloc, int *out_own_fd, ct_err *err)
{
    const cti_run_options *o = nodes->o;
    const bool is_ours = o->is_c10d ? o->is_host == 1 || (o->is_host < 0 && cti_store_host_is_ours(o->endpoint_host)) : o->node_rank == 0;
    int fd, port;
    *out_own_fd = -1;
    if (!is_ours) {
        return CT_OK;
    }
    ct_err why = {0};
    ct_status st = cti_store_listen(o->endpoint_host, o->endpoint_port, &fd, &port, &why);
    if (st != CT_OK && o->is_c10d && o->is_host < 0) {
        return CT_OK;
    }
    if (st != CT_OK) {
        return CT_FAIL(err, st, "the meeting of the nodes cannot be served: %s", why.message);
    }
    const cti_meet_rules rules = {cti_version_text(), o->run_id, o->n_nodes, o->max_restarts, o->join_timeout_ms,
                                  cti_store_host_is_ours(o->endpoint_host) ? "" : "the endpoint is no address of this host"};
    return cti_meet_server_start(alloc, fd, &rules, &nodes->server, out_own_fd, err);
}

ct_status cti_run_nodes_join(cti_run_nodes *nodes, const ct_alloc *alloc, const cti_run_options *o, const char *host, int signal_fd,
                             ct_err *err)
{
    int fd = -1;
    cti_meet_message m;
    char id[256], name[80];
    *nodes = (cti_run_nodes){.o = o};
    cti_meet_client_init(&nodes->client, alloc, -1);
    if (strlen(o->run_id) >= 128 || strcmp(cti_meet_clean(o->run_id, id, sizeof id), o->run_id) != 0) {
        return CT_FAIL(err, CT_ERR_USAGE, "--rdzv-id: at most 127 bytes without control characters are possible");
    }
    CT_TRY(serve(nodes, alloc, &fd, err));
    if (fd < 0) {
        CT_TRY(dial(nodes, signal_fd, &fd, err));
        cti_meet_keep_alive(fd);
    }
    nodes->client.fd = fd;
    if (!cti_meet_send_line(alloc, fd, "JOIN\t%d\t%s\t%s\t%d\t%d\t%d\t%d\t%s", CTI_MEET_PROTOCOL, cti_version_text(), o->run_id,
                            o->n_nodes, o->node_rank, o->n_ranks, o->max_restarts, cti_meet_clean(host, name, sizeof name))) {
        return CT_FAIL(err, CT_ERR_PEER, "the node that serves %s:%d is gone", o->endpoint_host, o->endpoint_port);
    }
    return await(nodes, CTI_MEET_WELCOME, WELCOME_MS, signal_fd, &m, err);
}

ct_status cti_run_nodes_start(cti_run_nodes *nodes, int restart, int store_port, int signal_fd, ct_err *err)
{
    cti_meet_message m;
    (void)cti_meet_send_line(nodes->client.in.alloc, nodes->client.fd, "READY\t%d\t%d", restart, store_port); /* gone: seen by await */
    CT_TRY(await(nodes, CTI_MEET_START, -1, signal_fd, &m, err));
    nodes->node_rank = m.node_rank;
    nodes->first_rank = m.first_rank;
    nodes->world_size = m.world_size;
    nodes->port = m.port;
    (void)snprintf(nodes->address, sizeof nodes->address, "%s", m.address[0] != '\0' ? m.address : nodes->o->endpoint_host); /* fits */
    return CT_OK;
}

void cti_run_nodes_leave(cti_run_nodes *nodes)
{
    cti_meet_client_deinit(&nodes->client);
    cti_meet_server_stop(&nodes->server);
}
