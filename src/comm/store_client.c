/* SPDX-License-Identifier: Apache-2.0 */
/* The store's client, and the sockets of both sides. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/num.h"
#include "base/str.h"
#include "comm/store.h"
#include "comm/store_wire.h"

enum { ANSWER_MARGIN_MS = 60000 }; /* how much later than due an answer may come before the store counts as gone */

struct cti_store_client {
    const ct_alloc *alloc; /* borrows */
    int fd;                /* owns */
    char where[300];       /* "host:port" */
    char local_addr[INET6_ADDRSTRLEN];
    int restart;
    pthread_mutex_t lock; /* guards the connection: one request at a time */
    bool broken;
    cti_str reply;
};

static int64_t now_ms(void)
{
    return cti_now_ns() / 1000000;
}

static ct_status resolve(const char *host, int port, int flags, struct addrinfo **out, ct_err *err)
{
    char service[16];
    (void)snprintf(service, sizeof service, "%d", port);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
    int rc = getaddrinfo(host, service, &hints, out);
    if (rc != 0 && host != NULL && cti_str_eq(host, "localhost")) { /* bare containers have no /etc/hosts (RFC 6761 says what the name means) */
        rc = getaddrinfo("127.0.0.1", service, &hints, out);
    }
    if (rc != 0) {
        return CT_FAIL(err, CT_ERR_USAGE, "cannot find the address of '%s': %s", host == NULL ? "*" : host,
                       gai_strerror(rc));
    }
    return CT_OK;
}

static bool is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, a, sizeof in);
        return (ntohl(in.sin_addr.s_addr) >> 24) == 127;
    }
    if (a->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, a, sizeof in6);
        return IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
    }
    return false;
}

/* -1 and errno where it cannot be. */
static int listen_on(const struct addrinfo *a)
{
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    int on = 1, off = 0;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (a->ai_family == AF_INET6) {
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    }
    if (bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, SOMAXCONN) < 0) {
        int saved = errno;
        (void)close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

static int port_of(int fd)
{
    struct sockaddr_storage a;
    socklen_t size = sizeof a;
    if (getsockname(fd, (struct sockaddr *)&a, &size) < 0) {
        return 0;
    }
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    memcpy(&in, &a, sizeof in);
    memcpy(&in6, &a, sizeof in6);
    return ntohs(a.ss_family == AF_INET ? in.sin_port : in6.sin6_port);
}

ct_status cti_store_listen(const char *host, int port, int *out_fd, int *out_port, ct_err *err)
{
    struct addrinfo *list = NULL;
    CT_TRY(resolve(host, port, 0, &list, err));
    bool local_name = strcmp(host, "localhost") == 0 ||
                      (is_loopback(list->ai_addr) && (host[0] == ':' || (host[0] >= '0' && host[0] <= '9')));
    if (!local_name) {
        freeaddrinfo(list);
        list = NULL;
        CT_TRY(resolve(NULL, port, AI_PASSIVE, &list, err));
    }
    int fd = -1, saved = 0;
    /* IPv6's wildcard takes both families, so it goes first; of loopback addresses IPv4 goes first. */
    for (int round = 0; round < 2 && fd < 0; round++) {
        int family = (round == 0) == local_name ? AF_INET : AF_INET6;
        for (const struct addrinfo *a = list; a != NULL && fd < 0; a = a->ai_next) {
            if (a->ai_family == family && (fd = listen_on(a)) < 0 && saved != EADDRINUSE) {
                saved = errno;
            }
        }
    }
    freeaddrinfo(list);
    if (fd < 0) {
        return CT_FAIL(err, CT_ERR_IO, "cannot listen on %s:%d: %s", host, port, strerror(saved));
    }
    *out_fd = fd;
    *out_port = port_of(fd);
    return CT_OK;
}

/* Waits for events until deadline. False: too late. */
static bool wait_fd(int fd, short events, int64_t deadline_ms)
{
    for (;;) {
        int64_t left = deadline_ms - now_ms();
        struct pollfd p = {.fd = fd, .events = events};
        int n = poll(&p, 1, left <= 0 ? 0 : (left > 60000 ? 60000 : (int)left));
        if (n > 0) {
            return true;
        }
        if (left <= 0) {
            return false;
        }
    }
}

/* -1 and errno where nobody answers there. */
static int connect_once(const struct addrinfo *a, int64_t deadline_ms)
{
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -1;
    }
    int problem = 0;
    if (connect(fd, a->ai_addr, a->ai_addrlen) < 0) {
        problem = errno;
        if (problem == EINPROGRESS) {
            socklen_t size = sizeof problem;
            problem = 0;
            if (!wait_fd(fd, POLLOUT, deadline_ms)) {
                problem = ETIMEDOUT;
            } else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &size) < 0) {
                problem = errno;
            }
        }
    }
    if (problem != 0) {
        (void)close(fd);
        errno = problem;
        return -1;
    }
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    return fd;
}

ct_status cti_store_dial(const char *host, int port, int64_t timeout_ms, int *out_fd, ct_err *err)
{
    int64_t deadline_ms = now_ms() + timeout_ms;
    int64_t pause_ms = 10;
    struct addrinfo *list = NULL;
    CT_TRY(resolve(host, port, 0, &list, err));
    int fd = -1, saved = 0;
    for (;;) {
        for (const struct addrinfo *a = list; a != NULL && fd < 0; a = a->ai_next) {
            fd = connect_once(a, deadline_ms);
            saved = fd < 0 && (saved == 0 || a == list) ? errno : saved;
        }
        if (fd >= 0 || now_ms() + pause_ms > deadline_ms) {
            break;
        }
        struct timespec pause = {.tv_sec = 0, .tv_nsec = (long)pause_ms * 1000000};
        (void)nanosleep(&pause, NULL);
        pause_ms = pause_ms < 200 ? pause_ms * 2 : 200;
    }
    freeaddrinfo(list);
    if (fd < 0) {
        return CT_FAIL(err, CT_ERR_TIMEOUT, "%s", strerror(saved));
    }
    *out_fd = fd;
    return CT_OK;
}

bool cti_store_host_is_ours(const char *host)
{
    struct addrinfo *list = NULL;
    if (resolve(host, 0, 0, &list, NULL) != CT_OK) {
        return false;
    }
    bool ours = false;
    for (const struct addrinfo *a = list; a != NULL && !ours; a = a->ai_next) {
        const int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ours = fd >= 0 && bind(fd, a->ai_addr, a->ai_addrlen) == 0;
        if (fd >= 0) {
            (void)close(fd);
        }
    }
    freeaddrinfo(list);
    return ours;
}

static ct_status gone(cti_store_client *c, const char *why, ct_err *err)
{
    c->broken = true;
    return CT_FAIL(err, CT_ERR_PEER, "the store of this run at %s is gone (%s): rank 0 or its supervisor ended", c->where,
                   why);
}

static ct_status send_all(cti_store_client *c, const void *data, size_t size, ct_err *err)
{
    const char *p = data;
    int64_t deadline_ms = now_ms() + ANSWER_MARGIN_MS;
    while (size > 0) {
        ssize_t n = send(c->fd, p, size, MSG_NOSIGNAL);
        if (n > 0) {
            p += n;
            size -= (size_t)n;
        } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
            return gone(c, strerror(errno), err);
        } else if (!wait_fd(c->fd, POLLOUT, deadline_ms)) {
            return gone(c, "it takes no bytes", err);
        }
    }
    return CT_OK;
}

static ct_status receive_all(cti_store_client *c, void *data, size_t size, int64_t deadline_ms, ct_err *err)
{
    char *p = data;
    while (size > 0) {
        ssize_t n = recv(c->fd, p, size, 0);
        if (n > 0) {
            p += n;
            size -= (size_t)n;
        } else if (n == 0) {
            return gone(c, "connection closed", err);
        } else if (errno != EAGAIN && errno != EINTR) {
            return gone(c, strerror(errno), err);
        } else if (!wait_fd(c->fd, POLLIN, deadline_ms)) {
            return gone(c, "it does not answer", err);
        }
    }
    return CT_OK;
}

/* Reads one reply into c->reply (without the code). */
static ct_status receive_reply(cti_store_client *c, int64_t timeout_ms, int *out_code, ct_err *err)
{
    unsigned char head[5];
    int64_t deadline_ms = now_ms() + timeout_ms + ANSWER_MARGIN_MS;
    CT_TRY(receive_all(c, head, sizeof head, deadline_ms, err));
    size_t size = (size_t)cti_wire_get(head, 4);
    if (size < 1 || size > CTI_WIRE_MAX_REPLY || head[4] > CTI_WIRE_FULL) {
        c->broken = true;
        return CT_FAIL(err, CT_ERR_USAGE,
                       "what listens at %s is not a ctitan store (does another launcher hold MASTER_PORT?)", c->where);
    }
    cti_str_reset(&c->reply);
    if (!cti_str_reserve(&c->reply, size)) {
        c->broken = true;
        return CT_FAIL(err, CT_ERR_MEMORY, "no memory for %zu bytes from the store", size);
    }
    CT_TRY(receive_all(c, c->reply.data, size - 1, deadline_ms, err));
    c->reply.len = size - 1;
    c->reply.data[size - 1] = '\0';
    *out_code = head[4];
    return CT_OK;
}

/* head (size field included) and then value, and the reply to it. */
static ct_status ask(cti_store_client *c, const cti_str *head, const void *value, size_t value_size, int64_t timeout_ms,
                     int *out_code, ct_err *err)
{
    CT_TRY(cti_str_check(head, err));
    if (c->broken) {
        return CT_FAIL(err, CT_ERR_PEER, "the store of this run at %s is gone", c->where);
    }
    CT_TRY(send_all(c, head->data, head->len, err));
    CT_TRY(send_all(c, value, value_size, err));
    return receive_reply(c, timeout_ms, out_code, err);
}

/* Size field, op, key length, key: as docs/formats/store.md says. */
static ct_status start_request(const cti_store_client *c, int op, const char *key, size_t rest_size, cti_str *head,
                               ct_err *err)
{
    size_t key_size = strlen(key);
    if (key_size < 1 || key_size > CT_STORE_MAX_KEY_BYTES) {
        return CT_FAIL(err, CT_ERR_RANGE, "a store key has 1..%d bytes, this one has %zu", CT_STORE_MAX_KEY_BYTES,
                       key_size);
    }
    char prefix[16] = "";
    if (c->restart > 0) {
        (void)snprintf(prefix, sizeof prefix, "%d/", c->restart);
    }
    size_t full = key_size + strlen(prefix);
    unsigned char p[7];
    cti_wire_put(p, 3 + full + rest_size, 4);
    p[4] = (unsigned char)op;
    cti_wire_put(p + 5, full, 2);
    head->alloc = c->alloc;
    cti_str_add_n(head, p, sizeof p);
    cti_str_add(head, prefix);
    cti_str_add(head, key);
    return CT_OK;
}

static ct_status unexpected(const cti_store_client *c, int code, const char *key, ct_err *err)
{
    switch (code) {
    case CTI_WIRE_STATE:
        return CT_FAIL(err, CT_ERR_STATE, "store key '%s' holds a value, not a counter", key);
    case CTI_WIRE_FULL:
        return CT_FAIL(err, CT_ERR_RANGE, "the store takes no more (key '%s'): it is full or a counter overflows", key);
    case CTI_WIRE_REFUSED:
        return CT_FAIL(err, CT_ERR_USAGE, "the store at %s turns us away: %.300s", c->where, cti_str_text(&c->reply));
    default:
        return CT_FAIL(err, CT_ERR_FORMAT, "the store at %s answers with code %d", c->where, code);
    }
}

ct_status cti_store_client_set(cti_store_client *c, const char *key, const void *value, size_t size_bytes, ct_err *err)
{
    if (size_bytes > CT_STORE_MAX_VALUE_BYTES) {
        return CT_FAIL(err, CT_ERR_RANGE, "store key '%.100s': a value has at most %d bytes, this one has %zu", key,
                       CT_STORE_MAX_VALUE_BYTES, size_bytes);
    }
    cti_str head = {.alloc = c->alloc};
    int code = CTI_WIRE_OK;
    CT_TRY(start_request(c, CTI_WIRE_SET, key, size_bytes, &head, err));
    pthread_mutex_lock(&c->lock);
    ct_status st = ask(c, &head, value, size_bytes, 0, &code, err);
    if (st == CT_OK && code != CTI_WIRE_OK) {
        st = unexpected(c, code, key, err);
    }
    pthread_mutex_unlock(&c->lock);
    cti_str_deinit(&head);
    return st;
}

ct_status cti_store_client_get(cti_store_client *c, const char *key, int64_t timeout_ms, void **out_value,
                               size_t *out_size, ct_err *err)
{
    cti_str head = {.alloc = c->alloc};
    unsigned char wait[8];
    int code = CTI_WIRE_OK;
    char *copy = NULL;
    timeout_ms = timeout_ms < 0 ? 0 : timeout_ms;
    cti_wire_put(wait, (uint64_t)timeout_ms, 8);
    CT_TRY(start_request(c, CTI_WIRE_GET, key, sizeof wait, &head, err));
    pthread_mutex_lock(&c->lock);
    ct_status st = ask(c, &head, wait, sizeof wait, timeout_ms, &code, err);
    if (st == CT_OK && code == CTI_WIRE_TIMEOUT) {
        st = CT_FAIL(err, CT_ERR_TIMEOUT, "store key '%s' was not set within %" PRId64 " ms", key, timeout_ms);
    } else if (st == CT_OK && code != CTI_WIRE_OK) {
        st = unexpected(c, code, key, err);
    } else if (st == CT_OK) {
        copy = ct_alloc_zeroed(c->alloc, c->reply.len + 1, 1, err);
        st = copy == NULL ? CT_ERR_MEMORY : CT_OK;
    }
    if (st == CT_OK) {
        memcpy(copy, c->reply.data, c->reply.len);
        *out_value = copy;
        *out_size = c->reply.len;
    }
    pthread_mutex_unlock(&c->lock);
    cti_str_deinit(&head);
    return st;
}

ct_status cti_store_client_add(cti_store_client *c, const char *key, int64_t amount, int64_t *out_value, ct_err *err)
{
    cti_str head = {.alloc = c->alloc};
    unsigned char bytes[8];
    int code = CTI_WIRE_OK;
    cti_wire_put(bytes, (uint64_t)amount, 8);
    CT_TRY(start_request(c, CTI_WIRE_ADD, key, sizeof bytes, &head, err));
    pthread_mutex_lock(&c->lock);
    ct_status st = ask(c, &head, bytes, sizeof bytes, 0, &code, err);
    if (st == CT_OK && (code != CTI_WIRE_OK || c->reply.len != 8)) {
        st = unexpected(c, code, key, err);
    }
    if (st == CT_OK) {
        *out_value = (int64_t)cti_wire_get((const unsigned char *)c->reply.data, 8);
    }
    pthread_mutex_unlock(&c->lock);
    cti_str_deinit(&head);
    return st;
}

static ct_status greet(cti_store_client *c, const cti_store_hello *hello, int64_t timeout_ms, ct_err *err)
{
    unsigned char bytes[CTI_WIRE_HELLO_BYTES] = {0};
    memcpy(bytes, CTI_WIRE_MAGIC, 8);
    cti_wire_put(bytes + 8, (uint64_t)hello->rank, 4);
    cti_wire_put(bytes + 12, (uint64_t)hello->world_size, 4);
    cti_wire_put(bytes + 16, cti_hash64(hello->run_id, strlen(hello->run_id), 0), 8);
    cti_wire_put(bytes + 24, (uint64_t)hello->restart, 4);
    int code = CTI_WIRE_OK;
    CT_TRY(send_all(c, bytes, sizeof bytes, err));
    CT_TRY(receive_reply(c, timeout_ms - ANSWER_MARGIN_MS, &code, err));
    return code == CTI_WIRE_OK ? CT_OK : unexpected(c, code, "greeting", err);
}

static void find_local_addr(cti_store_client *c)
{
    struct sockaddr_storage a;
    socklen_t size = sizeof a;
    char host[NI_MAXHOST];
    if (getsockname(c->fd, (struct sockaddr *)&a, &size) < 0 ||
        getnameinfo((struct sockaddr *)&a, size, host, sizeof host, NULL, 0, NI_NUMERICHOST) != 0) {
        return;
    }
    char *zone = strchr(host, '%');
    if (zone != NULL) {
        *zone = '\0';
    }
    (void)snprintf(c->local_addr, sizeof c->local_addr, "%.45s", host);
}

ct_status cti_store_client_connect(const ct_alloc *alloc, const char *host, int port, const cti_store_hello *hello,
                                   int64_t timeout_ms, cti_store_client **out_client, ct_err *err)
{
    int64_t deadline_ms = now_ms() + timeout_ms;
    int fd = -1;
    ct_status dialled = cti_store_dial(host, port, timeout_ms, &fd, err);
    if (dialled != CT_OK) {
        if (dialled == CT_ERR_TIMEOUT) {
            ct_err_prefix(err, "no store answers at %s:%d (rank 0 serves it) within %" PRId64 " ms", host, port, timeout_ms);
        }
        return dialled;
    }
    cti_store_client *c = CT_NEW(alloc, cti_store_client, err);
    if (c == NULL) {
        (void)close(fd);
        return CT_ERR_MEMORY;
    }
    c->alloc = alloc;
    c->fd = fd;
    c->restart = hello->restart;
    c->reply.alloc = alloc;
    (void)snprintf(c->where, sizeof c->where, "%s:%d", host, port);
    (void)pthread_mutex_init(&c->lock, NULL);
    find_local_addr(c);
    ct_status st = greet(c, hello, cti_max_i64(deadline_ms - now_ms(), 1000), err);
    if (st != CT_OK) {
        cti_store_client_destroy(&c);
        return st;
    }
    *out_client = c;
    return CT_OK;
}

void cti_store_client_destroy(cti_store_client **client)
{
    cti_store_client *c = *client;
    if (c == NULL) {
        return;
    }
    (void)close(c->fd); /* the server takes the end of the connection as goodbye */
    cti_str_deinit(&c->reply);
    (void)pthread_mutex_destroy(&c->lock);
    ct_alloc_free(c->alloc, c);
    *client = NULL;
}

const char *cti_store_client_local_addr(const cti_store_client *c)
{
    return c->local_addr;
}
