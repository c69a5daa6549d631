/* SPDX-License-Identifier: Apache-2.0 */
/* The server of the launchers' meeting: one thread, one poll loop, peers that may be anybody.
 *
 *     gather --all nodes joined and ready--> run --all done, or a node failed--> over
 *        ^------------------- restarts are left: all start again -----------------'  */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "comm/meet.h"

enum {
    MAX_STRANGERS = 64,
    HELLO_TIMEOUT_MS = 10000,
    HOLD_MS = 1000,  /* a rank that lost a peer is an effect: so long the cause may still come */
    LEAVE_MS = 5000, /* for the others to hear how it ended */
    TEXT_BYTES = 512
};

typedef struct peer {
    int fd;
    cti_str in;
    bool joined, ready, done, broken;
    bool is_own; /* of the launcher in this process */
    int wanted, rank; /* -1: any; -1: not decided */
    int n_ranks, port, exit_code;
    char host[80];
    int64_t deadline_ms; /* of the first line */
} peer;

struct cti_meet_server {
    const ct_alloc *alloc; /* borrows */
    cti_meet_rules rules;
    int listen_fd, wake_fd; /* owns */
    pthread_t thread;
    atomic_bool stop;
    enum { GATHER, RUN, OVER } phase;
    int restart;
    bool is_placed, is_stopping;
    int64_t gather_deadline_ms, leave_deadline_ms;
    int64_t held_until_ms; /* 0: no failure is held */
    int held_code;
    const peer *held_from;
    char held_text[TEXT_BYTES];
    int end_code; /* the last verdict */
    char end_text[TEXT_BYTES];
    char turned_away[TEXT_BYTES]; /* who came and was none of the run; for the message when time is over */
    peer **peers;                 /* owns; in order of arrival */
    size_t n_peers, max_peers;
    struct pollfd *polls; /* owns; [max_peers + 2] */
};

static int64_t now_ms(void)
{
    return cti_now_ns() / 1000000;
}

static int n_joined(const cti_meet_server *s)
{
    int n = 0;
    for (size_t i = 0; i < s->n_peers; i++) {
        n += s->peers[i]->joined;
    }
    return n;
}

/* "node 1 (host)", or "the node on host" before it has a number. */
static const char *name_of(const peer *p, char buf[128])
{
    const int rank = p->rank >= 0 ? p->rank : p->wanted;
    if (rank >= 0) {
        (void)snprintf(buf, 128, "node %d (%s)", rank, p->host);
    } else {
        (void)snprintf(buf, 128, "the node on %s", p->host);
    }
    return buf;
}

/* ---- verdicts ---- */

/* Tells all that this start is over. */
static void end_all(cti_meet_server *s, int code, bool again, const peer *from, const char *text)
{
    for (size_t i = 0; i < s->n_peers; i++) {
        peer *p = s->peers[i];
        if (p->joined && !cti_meet_send_line(s->alloc, p->fd, "END\t%d\t%d\t%d\t%d\t%s", s->restart, code, again, p == from, text)) {
            p->broken = true;
        }
        p->ready = p->done = false;
        p->exit_code = 0;
    }
    s->held_until_ms = 0;
    s->end_code = code;
    (void)snprintf(s->end_text, sizeof s->end_text, "%s", text); /* cut where too long */
    s->phase = again ? GATHER : OVER;
    if (again) {
        s->restart++;
        s->gather_deadline_ms = now_ms() + s->rules.join_timeout_ms;
    }
}

static void fail_all(cti_meet_server *s, int code, const peer *from, const char *text)
{
    /* 2: the command line is wrong, and stays so. */
    const bool again = s->phase == RUN && code != 2 && !s->is_stopping && s->restart < s->rules.max_restarts;
    end_all(s, code, again, from, text);
}

static void on_failed(cti_meet_server *s, const peer *p, int code, const char *text)
{
    if (s->phase != RUN) {
        return;
    }
    if (code != ct_status_exit_code(CT_ERR_PEER)) {
        fail_all(s, code, p, text);
    } else if (s->held_until_ms == 0) {
        s->held_until_ms = now_ms() + HOLD_MS;
        s->held_code = code;
        s->held_from = p;
        (void)snprintf(s->held_text, sizeof s->held_text, "%s", text); /* cut where too long */
    }
}

static void drop_peer(cti_meet_server *s, size_t i)
{
    peer *p = s->peers[i];
    memmove(s->peers + i, s->peers + i + 1, (s->n_peers - i - 1) * sizeof(peer *));
    s->n_peers--;
    if (p->joined && (s->phase == RUN || (s->phase == GATHER && s->is_placed))) {
        char text[TEXT_BYTES], name[128];
        (void)snprintf(text, sizeof text, "%s is gone: the connection to its launcher broke", name_of(p, name));
        end_all(s, ct_status_exit_code(CT_ERR_PEER), false, NULL, text);
    }
    if (s->held_from == p) {
        s->held_from = NULL;
    }
    (void)close(p->fd);
    cti_str_deinit(&p->in);
    ct_alloc_free(s->alloc, p);
}

static void on_late(cti_meet_server *s)
{
    char text[TEXT_BYTES], name[128];
    cti_str list = {.alloc = s->alloc};
    int n_here = 0;
    for (size_t i = 0; i < s->n_peers; i++) {
        if (s->peers[i]->joined && (s->peers[i]->ready || !s->is_placed)) {
            cti_str_printf(&list, "%s%s", n_here++ > 0 ? ", " : "", name_of(s->peers[i], name));
        }
    }
    (void)snprintf(text, sizeof text, "%d nodes are wanted, within %" PRId64 " s there came %d: %.200s%s%.150s%s%s", s->rules.n_nodes,
                   s->rules.join_timeout_ms / 1000, n_here, cti_str_text(&list), s->turned_away[0] != '\0' ? "; " : "", s->turned_away,
                   s->rules.note[0] != '\0' ? "; " : "", s->rules.note); /* cut where too long */
    cti_str_deinit(&list);
    end_all(s, ct_status_exit_code(CT_ERR_TIMEOUT), false, NULL, text);
}

/* ---- joining ---- */

/* The address of ours by which a node from elsewhere came: what the ranks here tell the others must be reachable. */
static void find_address(const cti_meet_server *s, char buf[64])
{
    buf[0] = '\0';
    for (size_t i = 0; i < s->n_peers; i++) {
        struct sockaddr_storage a;
        socklen_t size = sizeof a;
        char host[NI_MAXHOST];
        if (!s->peers[i]->joined || getsockname(s->peers[i]->fd, (struct sockaddr *)&a, &size) != 0 ||
            (a.ss_family != AF_INET && a.ss_family != AF_INET6) ||
            getnameinfo((struct sockaddr *)&a, size, host, sizeof host, NULL, 0, NI_NUMERICHOST) != 0) {
            continue;
        }
        const char *text = strncmp(host, "::ffff:", 7) == 0 ? host + 7 : host;
        if (strncmp(text, "127.", 4) != 0 && strcmp(text, "::1") != 0 && strlen(text) < 64) {
            (void)snprintf(buf, 64, "%.63s", text);
            return;
        }
    }
}

static const peer *with_rank(const cti_meet_server *s, int rank)
{
    for (size_t i = 0; i < s->n_peers; i++) {
        if (s->peers[i]->joined && s->peers[i]->rank == rank) {
            return s->peers[i];
        }
    }
    return NULL;
}

/* Numbers that were asked for, then the free ones in order of arrival. */
static void place_nodes(cti_meet_server *s)
{
    for (size_t i = 0; i < s->n_peers; i++) {
        s->peers[i]->rank = s->peers[i]->joined ? s->peers[i]->wanted : -1;
    }
    int next = 0;
    for (size_t i = 0; i < s->n_peers; i++) {
        if (s->peers[i]->joined && s->peers[i]->rank < 0) {
            while (with_rank(s, next) != NULL) {
                next++;
            }
            s->peers[i]->rank = next;
        }
    }
    s->is_placed = true;
}

static void start_if_all_are_here(cti_meet_server *s)
{
    int n = 0, port = 0;
    int64_t world_size = 0;
    for (size_t i = 0; i < s->n_peers; i++) {
        const peer *p = s->peers[i];
        n += p->joined && p->ready;
        port = p->joined && p->port > 0 ? p->port : port;
        world_size += p->joined ? p->n_ranks : 0;
    }
    if (s->phase != GATHER || n < s->rules.n_nodes || port == 0) {
        return;
    }
    if (!s->is_placed) {
        place_nodes(s);
    }
    char address[64];
    find_address(s, address);
    int first_rank = 0;
    s->phase = RUN;
    for (int rank = 0; rank < s->rules.n_nodes; rank++) {
        for (size_t i = 0; i < s->n_peers; i++) {
            peer *p = s->peers[i];
            if (p->joined && p->rank == rank) {
                if (!cti_meet_send_line(s->alloc, p->fd, "START\t%d\t%d\t%d\t%" PRId64 "\t%s\t%d", s->restart, rank, first_rank,
                                        world_size, p->port > 0 ? address : "", port)) {
                    p->broken = true;
                }
                first_rank += p->n_ranks;
            }
        }
    }
}

static void turn_away(cti_meet_server *s, const peer *p, const char *text)
{
    (void)cti_meet_send_line(s->alloc, p->fd, "REFUSED\t%s", text); /* gone: all the better */
    (void)snprintf(s->turned_away, sizeof s->turned_away, "a node on %s was turned away: %.300s", p->host, text);
}

/* JOIN protocol version run nodes rank ranks restarts host. False: drop it. */
static bool on_join(cti_meet_server *s, peer *p, char **f, int n)
{
    char text[TEXT_BYTES] = "", a[128];
    const cti_meet_rules *r = &s->rules;
    int protocol, n_nodes, max_restarts;
    if (n != 9 || !cti_meet_number(f[1], 0, INT32_MAX, &protocol) || !cti_meet_number(f[4], 1, CTI_MEET_MAX_NODES, &n_nodes) ||
        !cti_meet_number(f[5], -1, CTI_MEET_MAX_NODES - 1, &p->wanted) || !cti_meet_number(f[6], 1, 1024, &p->n_ranks) ||
        !cti_meet_number(f[7], 0, INT32_MAX, &max_restarts)) {
        return false;
    }
    (void)cti_meet_clean(f[8], p->host, sizeof p->host);
    (void)name_of(p, a);
    if (strcmp(f[3], r->run_id) != 0) {
        (void)snprintf(text, sizeof text, "its --rdzv-id is '%.100s', this run's is '%.100s'", f[3], r->run_id);
        turn_away(s, p, text);
        return false;
    }
    if (s->phase == OVER && !s->is_placed) { /* the others disagreed before this one came: it ends as they do */
        (void)cti_meet_send_line(s->alloc, p->fd, "END\t%d\t%d\t0\t0\t%s", s->restart, s->end_code, s->end_text);
        return false;
    }
    if (s->phase != GATHER || n_joined(s) >= r->n_nodes) {
        (void)snprintf(text, sizeof text, "run '%.100s' has its %d nodes already", r->run_id, r->n_nodes);
        turn_away(s, p, text);
        return false;
    }
    p->joined = true;
    if (protocol != CTI_MEET_PROTOCOL || strcmp(f[2], r->version) != 0) {
        (void)snprintf(text, sizeof text, "%s runs ctitan %.60s, the node that serves %.60s: they must be the same", a, f[2], r->version);
    } else if (n_nodes != r->n_nodes) {
        (void)snprintf(text, sizeof text, "%s was started with --nnodes %d, the node that serves with %d", a, n_nodes, r->n_nodes);
    } else if (max_restarts != r->max_restarts) {
        (void)snprintf(text, sizeof text, "%s was started with --max-restarts %d, the node that serves with %d", a, max_restarts,
                       r->max_restarts);
    }
    for (size_t i = 0; i < s->n_peers && text[0] == '\0'; i++) {
        const peer *other = s->peers[i];
        if (other != p && other->joined && p->wanted >= 0 && other->wanted == p->wanted) {
            (void)snprintf(text, sizeof text, "node %d came twice, from %s and from %s: each wants its own --node-rank, 0 to %d",
                           p->wanted, other->host, p->host, r->n_nodes - 1);
        }
    }
    if (text[0] != '\0') {
        end_all(s, 2, false, NULL, text);
        return true;
    }
    return cti_meet_send_line(s->alloc, p->fd, "WELCOME");
}

/* False: drop it. */
static bool on_line(cti_meet_server *s, peer *p, char *line)
{
    char *f[CTI_MEET_MAX_FIELDS];
    const int n = cti_meet_split(line, f);
    int restart = 0, number = 0;
    if (!p->joined) {
        return strcmp(f[0], "JOIN") == 0 && on_join(s, p, f, n);
    }
    if ((strcmp(f[0], "STOP") == 0 || strcmp(f[0], "HALT") == 0) && n == 1) {
        s->is_stopping = true;
        for (size_t i = 0; i < s->n_peers; i++) {
            if (s->peers[i] != p && s->peers[i]->joined && !cti_meet_send_line(s->alloc, s->peers[i]->fd, "%s", f[0])) {
                s->peers[i]->broken = true;
            }
        }
        return true;
    }
    if (strcmp(f[0], "ROW") == 0 && n == 3) { /* of a start that is over: to the launcher of this host, which prints */
        for (size_t i = 0; i < s->n_peers; i++) {
            const peer *own = s->peers[i];
            if (own->is_own && !own->broken) {
                (void)cti_meet_send_line(s->alloc, own->fd, "ROW\t%s\t%s", f[1], f[2]); /* it takes nothing: a row less */
            }
        }
        return true;
    }
    if (n < 3 || !cti_meet_number(f[1], 0, INT32_MAX, &restart) || !cti_meet_number(f[2], 0, 65535, &number)) {
        return false;
    }
    if (restart != s->restart) { /* of a start that is over */
        return true;
    }
    if (strcmp(f[0], "READY") == 0 && n == 3) {
        p->ready = true;
        p->port = number;
        start_if_all_are_here(s);
        return true;
    }
    if (strcmp(f[0], "FAILED") == 0 && n == 4 && number <= 255) {
        on_failed(s, p, number, f[3]);
        return true;
    }
    if (strcmp(f[0], "DONE") == 0 && n == 3 && number <= 255 && s->phase == RUN) {
        p->done = true;
        p->exit_code = number;
        int n_done = 0, code = 0;
        for (int rank = 0; rank < s->rules.n_nodes; rank++) {
            const peer *node = with_rank(s, rank);
            n_done += node != NULL && node->done;
            code = node != NULL && node->done && code == 0 ? node->exit_code : code;
        }
        if (n_done == s->rules.n_nodes) {
            end_all(s, code, false, NULL, "");
        }
        return true;
    }
    return strcmp(f[0], "DONE") == 0;
}

/* ---- the loop ---- */

/* False: drop it. */
static bool serve_peer(cti_meet_server *s, peer *p, short revents)
{
    if ((revents & POLLIN) != 0) {
        char buf[CTI_MEET_MAX_LINE];
        const ssize_t n = recv(p->fd, buf, sizeof buf, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            return false;
        }
        cti_str_add_n(&p->in, buf, n > 0 ? (size_t)n : 0);
    } else if ((revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) {
        return false;
    }
    cti_str line = {.alloc = s->alloc};
    bool ok = true;
    while (ok && cti_meet_cut_line(&p->in, &line)) {
        ok = on_line(s, p, line.data);
    }
    ok = ok && !line.failed && !p->in.failed && p->in.len < CTI_MEET_MAX_LINE;
    cti_str_deinit(&line);
    return ok && (p->joined || now_ms() < p->deadline_ms);
}

/* Takes fd over. */
static bool add_peer(cti_meet_server *s, int fd)
{
    peer *p = s->n_peers < s->max_peers ? CT_NEW(s->alloc, peer, NULL) : NULL;
    if (p == NULL) {
        (void)close(fd);
        return false;
    }
    *p = (peer){.fd = fd, .wanted = -1, .rank = -1, .in.alloc = s->alloc, .deadline_ms = now_ms() + HELLO_TIMEOUT_MS};
    cti_meet_keep_alive(fd);
    s->peers[s->n_peers++] = p;
    return true;
}

static int next_timeout_ms(const cti_meet_server *s)
{
    int64_t next = s->held_until_ms > 0 ? s->held_until_ms : INT64_MAX;
    if (s->phase == GATHER) {
        next = cti_min_i64(next, s->gather_deadline_ms);
    }
    if (atomic_load(&s->stop)) {
        next = cti_min_i64(next, s->leave_deadline_ms);
    }
    for (size_t i = 0; i < s->n_peers; i++) {
        if (!s->peers[i]->joined) {
            next = cti_min_i64(next, s->peers[i]->deadline_ms);
        }
    }
    const int64_t left = next == INT64_MAX ? 60000 : next - now_ms() + 1;
    return left < 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

static void *serve(void *arg)
{
    cti_meet_server *s = arg;
    while (!atomic_load(&s->stop) || (n_joined(s) > 0 && now_ms() < s->leave_deadline_ms)) {
        const size_t n = s->n_peers;
        const bool is_full = n == s->max_peers;
        s->polls[0] = (struct pollfd){.fd = atomic_load(&s->stop) ? -1 : s->wake_fd, .events = POLLIN};
        s->polls[1] = (struct pollfd){.fd = is_full ? -1 : s->listen_fd, .events = POLLIN};
        for (size_t i = 0; i < n; i++) {
            s->polls[i + 2] = (struct pollfd){.fd = s->peers[i]->fd, .events = POLLIN};
        }
        if (poll(s->polls, (nfds_t)(n + 2), next_timeout_ms(s)) < 0) {
            continue; /* EINTR, or memory for a moment */
        }
        /* From the end: those before i keep their places when one is dropped. A failure and the end of its node may come
         * together, so that lines are read from all before anybody is taken for gone. */
        bool gone[CTI_MEET_MAX_NODES + MAX_STRANGERS] = {false};
        for (size_t i = 0; i < n; i++) {
            gone[i] = !serve_peer(s, s->peers[i], s->polls[i + 2].revents) || s->peers[i]->broken;
        }
        for (size_t i = n; i-- > 0;) {
            if (gone[i]) {
                drop_peer(s, i);
            }
        }
        if ((s->polls[1].revents & POLLIN) != 0) {
            const int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC);
            if (fd >= 0) {
                (void)add_peer(s, fd);
            } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
                (void)poll(NULL, 0, 10); /* others may close some; without the pause this would spin */
            }
        }
        if (s->held_until_ms > 0 && now_ms() >= s->held_until_ms) {
            fail_all(s, s->held_code, s->held_from, s->held_text);
        }
        if (s->phase == GATHER && now_ms() >= s->gather_deadline_ms) {
            on_late(s);
        }
    }
    return NULL;
}

static void free_server(cti_meet_server *s)
{
    s->phase = OVER;
    while (s->n_peers > 0) {
        drop_peer(s, s->n_peers - 1);
    }
    (void)close(s->listen_fd);
    if (s->wake_fd >= 0) {
        (void)close(s->wake_fd);
    }
    ct_alloc_free(s->alloc, s->peers);
    ct_alloc_free(s->alloc, s->polls);
    ct_alloc_free(s->alloc, s);
}

ct_status cti_meet_server_start(const ct_alloc *alloc, int listen_fd, const cti_meet_rules *rules, cti_meet_server **out_server,
                                int *out_own_fd, ct_err *err)
{
    cti_meet_server *s = CT_NEW(alloc, cti_meet_server, err);
    if (s == NULL) {
        (void)close(listen_fd);
        return CT_ERR_MEMORY;
    }
    int pair[2] = {-1, -1};
    s->alloc = alloc;
    s->rules = *rules;
    s->listen_fd = listen_fd;
    s->gather_deadline_ms = now_ms() + rules->join_timeout_ms;
    s->max_peers = (size_t)rules->n_nodes + MAX_STRANGERS;
    s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    s->peers = CT_NEW_ARRAY(alloc, peer *, s->max_peers, err);
    s->polls = CT_NEW_ARRAY(alloc, struct pollfd, s->max_peers + 2, err);
    ct_status st = s->peers != NULL && s->polls != NULL ? CT_OK : CT_ERR_MEMORY;
    if (st == CT_OK && (s->wake_fd < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)) {
        st = CT_FAIL(err, CT_ERR_IO, "the meeting of the nodes cannot be served: %s", strerror(errno));
    }
    if (st == CT_OK && !add_peer(s, pair[0])) {
        st = CT_FAIL(err, CT_ERR_MEMORY, "no memory for the meeting of the nodes");
    }
    if (st == CT_OK) {
        s->peers[0]->is_own = true;
    }
    const int rc = st == CT_OK ? pthread_create(&s->thread, NULL, serve, s) : 0;
    if (rc != 0) {
        st = CT_FAIL(err, CT_ERR_IO, "the meeting's thread cannot be started: %s", strerror(rc));
    }
    if (st != CT_OK) {
        if (pair[1] >= 0) {
            (void)close(pair[1]);
        }
        free_server(s);
        return st;
    }
    *out_own_fd = pair[1];
    *out_server = s;
    return CT_OK;
}

void cti_meet_server_stop(cti_meet_server **server)
{
    cti_meet_server *s = *server;
    if (s == NULL) {
        return;
    }
    s->leave_deadline_ms = now_ms() + LEAVE_MS; /* read by the thread only after stop is set */
    atomic_store(&s->stop, true);
    const uint64_t one = 1;
    (void)!write(s->wake_fd, &one, sizeof one); /* an eventfd takes a first write */
    (void)pthread_join(s->thread, NULL);
    free_server(s);
    *server = NULL;
}
