/* SPDX-License-Identifier: Apache-2.0 */
/* The store's server: one thread, one poll loop, peers that may be anybody. A client has one request open at a time: its
 * next one is not read before the reply to the last one is sent, so memory per client is bounded by one request and one
 * reply. Only the counters under `lock` are shared with the thread that started it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"
#include "comm/store.h"
#include "comm/store_wire.h"

enum { MAX_STRANGERS = 64 /* beside one per rank */, HELLO_TIMEOUT_MS = 10000, KEEP_BUFFER_BYTES = 65536 };
#define MAX_WAIT_MS ((int64_t)1 << 40) /* longer waits are cut to this, so that deadlines cannot overflow */

typedef struct client {
    int fd;
    bool greeted, closing; /* closing: dropped when its output is out */
    int rank, restart;
    int64_t deadline_ms; /* of the greeting, or of the wait */
    bool waiting;        /* a get waits for wait_key */
    char wait_key[CTI_WIRE_MAX_KEY + 1];
    cti_str in, out;
    size_t out_pos; /* bytes of out that are sent */
} client;

struct cti_store_server {
    const ct_alloc *alloc; /* borrows */
    int listen_fd, wake_fd; /* owns */
    int world_size;
    uint64_t run_hash;
    pthread_t thread;
    cti_store_table table;
    client **clients; /* owns */
    size_t n_clients, cap_clients;
    struct pollfd *polls; /* owns; [cap_clients + 2] */
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    bool stop;
    int n_greeted_ever, n_greeted_now;
};

static int64_t now_ms(void)
{
    return cti_now_ns() / 1000000;
}

static void count_greeted(cti_store_server *s, int ever, int now)
{
    pthread_mutex_lock(&s->lock);
    s->n_greeted_ever += ever;
    s->n_greeted_now += now;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void drop_client(cti_store_server *s, size_t i)
{
    client *c = s->clients[i];
    (void)close(c->fd);
    if (c->greeted) {
        count_greeted(s, 0, -1);
    }
    cti_str_deinit(&c->in);
    cti_str_deinit(&c->out);
    ct_alloc_free(s->alloc, c);
    s->clients[i] = s->clients[--s->n_clients];
}

static void reply(client *c, int code, const void *data, size_t size)
{
    unsigned char head[5];
    cti_wire_put(head, size + 1, 4);
    head[4] = (unsigned char)code;
    cti_str_add_n(&c->out, head, sizeof head);
    cti_str_add_n(&c->out, data, size);
    c->waiting = false;
}

static void refuse(client *c, const char *text)
{
    reply(c, CTI_WIRE_REFUSED, text, strlen(text));
    c->closing = true;
}

static void reply_entry(client *c, const cti_store_entry *entry)
{
    char buf[32];
    size_t size;
    const void *bytes = cti_store_entry_bytes(entry, buf, &size);
    reply(c, CTI_WIRE_OK, bytes, size);
}

/* Takes the greeting at the head of c->in. False: this is no client of ours. */
static bool take_hello(cti_store_server *s, client *c)
{
    const unsigned char *p = (const unsigned char *)c->in.data;
    if (memcmp(p, CTI_WIRE_MAGIC, 8) != 0) {
        return false;
    }
    int64_t rank = (int64_t)cti_wire_get(p + 8, 4);
    int64_t world_size = (int64_t)cti_wire_get(p + 12, 4);
    char text[200];
    if (cti_wire_get(p + 16, 8) != s->run_hash) {
        refuse(c, "it belongs to another run (TORCHELASTIC_RUN_ID differs)");
        return true;
    }
    if (world_size != s->world_size || rank >= world_size) {
        (void)snprintf(text, sizeof text, "rank %lld of %lld came to a run of %d ranks (WORLD_SIZE differs)",
                       (long long)rank, (long long)world_size, s->world_size);
        refuse(c, text);
        return true;
    }
    c->rank = (int)rank;
    c->restart = (int)cti_wire_get(p + 24, 4);
    for (size_t i = 0; i < s->n_clients; i++) {
        const client *other = s->clients[i];
        if (other != c && other->greeted && other->rank == c->rank && other->restart == c->restart) {
            (void)snprintf(text, sizeof text, "rank %d is there already (RANK is the same in two processes)", c->rank);
            refuse(c, text);
            return true;
        }
    }
    c->greeted = true;
    count_greeted(s, 1, 1);
    reply(c, CTI_WIRE_OK, NULL, 0);
    return true;
}

static void wake_waiters(cti_store_server *s, const char *key)
{
    const cti_store_entry *entry = cti_store_table_find(&s->table, key);
    for (size_t i = 0; i < s->n_clients; i++) {
        client *c = s->clients[i];
        if (c->waiting && strcmp(c->wait_key, key) == 0) {
            reply_entry(c, entry);
        }
    }
}

/* One whole request: op, key length, key, rest. False: not of the protocol. */
static bool take_request(cti_store_server *s, client *c, const unsigned char *p, size_t size)
{
    int op = p[0];
    if (op == CTI_WIRE_BYE) {
        c->closing = true;
        return true;
    }
    size_t key_size = size >= 3 ? (size_t)cti_wire_get(p + 1, 2) : 0;
    if (key_size < 1 || key_size > CTI_WIRE_MAX_KEY || key_size > size - 3 || memchr(p + 3, 0, key_size) != NULL) {
        return false;
    }
    char key[CTI_WIRE_MAX_KEY + 1];
    memcpy(key, p + 3, key_size);
    key[key_size] = '\0';
    const unsigned char *rest = p + 3 + key_size;
    size_t rest_size = size - 3 - key_size;
    if (op == CTI_WIRE_SET && rest_size <= CT_STORE_MAX_VALUE_BYTES) {
        ct_status st = cti_store_table_set(&s->table, key, rest, rest_size, NULL);
        reply(c, st == CT_OK ? CTI_WIRE_OK : CTI_WIRE_FULL, NULL, 0);
        if (st == CT_OK) {
            wake_waiters(s, key);
        }
        return true;
    }
    if (op == CTI_WIRE_GET && rest_size == 8) {
        int64_t timeout_ms = (int64_t)cti_wire_get(rest, 8);
        const cti_store_entry *entry = cti_store_table_find(&s->table, key);
        if (entry != NULL) {
            reply_entry(c, entry);
        } else if (timeout_ms <= 0) {
            reply(c, CTI_WIRE_TIMEOUT, NULL, 0);
        } else {
            c->waiting = true;
            c->deadline_ms = now_ms() + (timeout_ms < MAX_WAIT_MS ? timeout_ms : MAX_WAIT_MS);
            memcpy(c->wait_key, key, key_size + 1);
        }
        return true;
    }
    if (op == CTI_WIRE_ADD && rest_size == 8) {
        int64_t value = 0;
        ct_status st = cti_store_table_add(&s->table, key, (int64_t)cti_wire_get(rest, 8), &value, NULL);
        unsigned char out[8];
        cti_wire_put(out, (uint64_t)value, 8);
        reply(c, st == CT_OK ? CTI_WIRE_OK : (st == CT_ERR_STATE ? CTI_WIRE_STATE : CTI_WIRE_FULL), out,
              st == CT_OK ? 8 : 0);
        if (st == CT_OK) {
            wake_waiters(s, key);
        }
        return true;
    }
    return false;
}

/* Empties a buffer; a large one is given back, since most requests are small and clients many. */
static void empty(cti_str *s)
{
    if (s->cap > KEEP_BUFFER_BYTES) {
        cti_str_deinit(s);
    } else {
        cti_str_reset(s);
    }
}

static void eat(cti_str *in, size_t n)
{
    memmove(in->data, in->data + n, in->len - n);
    in->len -= n;
    in->data[in->len] = '\0';
    if (in->len == 0) {
        empty(in);
    }
}

/* Takes what is whole in c->in, one request at a time. False: drop it. */
static bool take_input(cti_store_server *s, client *c)
{
    while (!c->closing && !c->waiting && c->out.len == 0) {
        const unsigned char *p = (const unsigned char *)c->in.data;
        if (!c->greeted) {
            size_t have = c->in.len < 8 ? c->in.len : 8;
            if (have > 0 && memcmp(p, CTI_WIRE_MAGIC, have) != 0) {
                return false;
            }
            if (c->in.len < CTI_WIRE_HELLO_BYTES) {
                return true;
            }
            if (!take_hello(s, c)) {
                return false;
            }
            eat(&c->in, CTI_WIRE_HELLO_BYTES);
            continue;
        }
        if (c->in.len < 4) {
            return true;
        }
        size_t size = (size_t)cti_wire_get(p, 4);
        if (size < 1 || size > CTI_WIRE_MAX_REQUEST) {
            return false;
        }
        if (c->in.len < 4 + size) {
            return true;
        }
        if (!take_request(s, c, p + 4, size)) {
            return false;
        }
        eat(&c->in, 4 + size);
    }
    return true;
}

/* How much more input this client may hand us now: up to the end of one request. */
static size_t room_for_input(const client *c)
{
    if (!c->greeted) {
        return c->in.len < CTI_WIRE_HELLO_BYTES ? CTI_WIRE_HELLO_BYTES - c->in.len : 0;
    }
    size_t limit = 4 + CTI_WIRE_MAX_REQUEST;
    return c->in.len < limit ? limit - c->in.len : 0;
}

/* False: drop it. */
static bool read_client(client *c)
{
    char buf[65536];
    size_t room = room_for_input(c);
    if (room == 0) {
        return true;
    }
    ssize_t n = recv(c->fd, buf, room < sizeof buf ? room : sizeof buf, 0);
    if (n < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    if (n == 0) {
        return false;
    }
    cti_str_add_n(&c->in, buf, (size_t)n);
    return !c->in.failed;
}

/* False: drop it. */
static bool write_client(client *c)
{
    while (c->out_pos < c->out.len) {
        ssize_t n = send(c->fd, c->out.data + c->out_pos, c->out.len - c->out_pos, MSG_NOSIGNAL);
        if (n < 0) {
            return errno == EAGAIN || errno == EINTR;
        }
        c->out_pos += (size_t)n;
    }
    empty(&c->out);
    c->out_pos = 0;
    return !c->closing;
}

/* Makes room for one more client. False where memory ran out. */
static bool reserve_client(cti_store_server *s)
{
    if (s->n_clients < s->cap_clients) {
        return true;
    }
    size_t cap = s->cap_clients * 2 + 16;
    void *clients = ct_alloc_resize(s->alloc, s->clients, cap, sizeof *s->clients, NULL);
    if (clients == NULL) {
        return false;
    }
    s->clients = clients;
    void *polls = ct_alloc_resize(s->alloc, s->polls, cap + 2, sizeof *s->polls, NULL);
    if (polls == NULL) {
        return false;
    }
    s->polls = polls;
    s->cap_clients = cap;
    return true;
}

/* Of the peers that have not greeted, only the latest stay. */
static void limit_strangers(cti_store_server *s)
{
    size_t n = 0, oldest = 0;
    int64_t oldest_deadline = INT64_MAX;
    for (size_t i = 0; i < s->n_clients; i++) {
        if (!s->clients[i]->greeted) {
            n++;
            if (s->clients[i]->deadline_ms < oldest_deadline) {
                oldest_deadline = s->clients[i]->deadline_ms;
                oldest = i;
            }
        }
    }
    if (n >= (size_t)s->world_size + MAX_STRANGERS) {
        drop_client(s, oldest);
    }
}

static void accept_client(cti_store_server *s)
{
    int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
            (void)poll(NULL, 0, 10); /* others may close some; without the pause this would spin */
        }
        return;
    }
    limit_strangers(s);
    client *c = reserve_client(s) ? CT_NEW(s->alloc, client, NULL) : NULL;
    if (c == NULL) {
        (void)close(fd);
        return;
    }
    int on = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    *c = (client){.fd = fd, .rank = -1, .deadline_ms = now_ms() + HELLO_TIMEOUT_MS};
    c->in.alloc = s->alloc;
    c->out.alloc = s->alloc;
    s->clients[s->n_clients++] = c;
}

/* Fills the poll list; returns the time until the next deadline, -1 where there is none. */
static int fill_polls(cti_store_server *s)
{
    int64_t next = INT64_MAX;
    s->polls[0] = (struct pollfd){.fd = s->wake_fd, .events = POLLIN};
    s->polls[1] = (struct pollfd){.fd = s->listen_fd, .events = POLLIN};
    for (size_t i = 0; i < s->n_clients; i++) {
        const client *c = s->clients[i];
        short events = 0;
        if (c->out.len > 0) {
            events = POLLOUT;
        } else if (room_for_input(c) > 0) {
            events = POLLIN;
        }
        s->polls[i + 2] = (struct pollfd){.fd = c->fd, .events = events};
        if ((c->waiting || !c->greeted) && c->deadline_ms < next) {
            next = c->deadline_ms;
        }
    }
    if (next == INT64_MAX) {
        return -1;
    }
    int64_t left = next - now_ms();
    return left < 0 ? 0 : (left > 60000 ? 60000 : (int)left);
}

static bool serve_client(cti_store_server *s, client *c, short revents, int64_t now)
{
    if ((revents & POLLNVAL) != 0 || ((revents & (POLLERR | POLLHUP)) != 0 && (revents & POLLIN) == 0)) {
        return false;
    }
    if ((revents & POLLIN) != 0 && !read_client(c)) {
        return false;
    }
    if (!c->greeted && !c->closing && now >= c->deadline_ms) {
        return false;
    }
    if (c->waiting && now >= c->deadline_ms) {
        reply(c, CTI_WIRE_TIMEOUT, NULL, 0);
    }
    do {
        if (!take_input(s, c) || c->out.failed || (c->closing && c->out.len == 0)) {
            return false;
        }
        if (c->out.len > 0 && !write_client(c)) {
            return false;
        }
    } while (c->out.len == 0 && !c->waiting && c->greeted && c->in.len >= 4 &&
             c->in.len >= 4 + (size_t)cti_wire_get((const unsigned char *)c->in.data, 4));
    return true;
}

static bool should_stop(cti_store_server *s)
{
    pthread_mutex_lock(&s->lock);
    bool stop = s->stop;
    pthread_mutex_unlock(&s->lock);
    return stop;
}

static void *serve(void *arg)
{
    cti_store_server *s = arg;
    while (!should_stop(s)) {
        int timeout_ms = fill_polls(s);
        size_t n = s->n_clients; /* those of the poll list */
        if (poll(s->polls, (nfds_t)(n + 2), timeout_ms) < 0) {
            continue; /* EINTR, or memory for a moment */
        }
        int64_t now = now_ms();
        /* From the end, since dropping moves the last client into the gap: it has been served already. */
        for (size_t i = n; i-- > 0;) {
            if (!serve_client(s, s->clients[i], s->polls[i + 2].revents, now)) {
                drop_client(s, i);
            }
        }
        if ((s->polls[1].revents & POLLIN) != 0) {
            accept_client(s);
        }
    }
    while (s->n_clients > 0) {
        drop_client(s, s->n_clients - 1);
    }
    return NULL;
}

static void free_server(cti_store_server *s)
{
    (void)close(s->listen_fd);
    if (s->wake_fd >= 0) {
        (void)close(s->wake_fd);
    }
    cti_store_table_deinit(&s->table);
    ct_alloc_free(s->alloc, s->clients);
    ct_alloc_free(s->alloc, s->polls);
    (void)pthread_mutex_destroy(&s->lock);
    (void)pthread_cond_destroy(&s->changed);
    ct_alloc_free(s->alloc, s);
}

static void init_sync(cti_store_server *s)
{
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&s->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
    (void)pthread_mutex_init(&s->lock, NULL);
}

ct_status cti_store_server_start(const ct_alloc *alloc, int listen_fd, int world_size, const char *run_id,
                                 cti_store_server **out_server, ct_err *err)
{
    cti_store_server *s = CT_NEW(alloc, cti_store_server, err);
    if (s == NULL) {
        (void)close(listen_fd);
        return CT_ERR_MEMORY;
    }
    s->alloc = alloc;
    s->listen_fd = listen_fd;
    s->world_size = world_size;
    s->run_hash = cti_hash64(run_id, strlen(run_id), 0);
    init_sync(s);
    cti_store_table_init(&s->table, alloc);
    s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int flags = fcntl(listen_fd, F_GETFL);
    if (s->wake_fd < 0 || flags < 0 || fcntl(listen_fd, F_SETFL, flags | O_NONBLOCK) < 0) {
        ct_status st = CT_FAIL(err, CT_ERR_IO, "cannot start the store: %s", strerror(errno));
        free_server(s);
        return st;
    }
    if (!reserve_client(s)) {
        free_server(s);
        return CT_FAIL(err, CT_ERR_MEMORY, "no memory for the store");
    }
    int rc = pthread_create(&s->thread, NULL, serve, s);
    if (rc != 0) {
        free_server(s);
        return CT_FAIL(err, CT_ERR_IO, "cannot start the store's thread: %s", strerror(rc));
    }
    *out_server = s;
    return CT_OK;
}

void cti_store_server_wait_left(cti_store_server *s, int n_own, int64_t timeout_ms)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(timeout_ms / 1000);
    until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_mutex_lock(&s->lock);
    while (s->n_greeted_ever < s->world_size || s->n_greeted_now > n_own) {
        if (pthread_cond_timedwait(&s->changed, &s->lock, &until) != 0) {
            break;
        }
    }
    pthread_mutex_unlock(&s->lock);
}

void cti_store_server_stop(cti_store_server **server)
{
    cti_store_server *s = *server;
    if (s == NULL) {
        return;
    }
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_mutex_unlock(&s->lock);
    uint64_t one = 1;
    ssize_t n = write(s->wake_fd, &one, sizeof one);
    (void)n; /* an eventfd takes a first write */
    (void)pthread_join(s->thread, NULL);
    free_server(s);
    *server = NULL;
}
