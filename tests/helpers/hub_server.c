/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: hub base */
/* An HTTP server for tests, which speaks the APIs of Hugging Face and of ModelScope, and goes wrong when it is told to.
 *
 *   hub_server ROOT       serves ROOT/<owner>/<name>/...; writes its ports to ROOT/port and ROOT/port2 (another origin, as a CDN's),
 *                         one line a request to ROOT/log; ends when its standard input does
 *
 * Listings are made from the files, with true sizes and sums: Git's for .json, .txt and files without a dot, SHA-256 for the rest.
 * ROOT/<owner>/<name>.listing, where it is there, is sent instead of the listing. ROOT/<owner>/<name>.gated, .private: 403, 401 without
 * the token "good". ROOT/faults is read before each request; a line is
 *
 *   TIMES PATTERN KIND [ARGUMENTS]
 *
 * for the first TIMES requests whose path matches the pattern:
 *   status CODE [HEADER: VALUE]    that answer, without a body       cut N              N bytes of the body, then the end
 *   redirect URL                   %1 and %2 are the two ports       hold N FILE        N bytes, the rest once ROOT/FILE is there
 *   file PATH                      another file of ROOT instead      stall N            N bytes, then nothing
 *   norange                        the whole, whatever is asked      endless            bytes without end and length
 *   longer N, shorter N            Content-Length and body so        etag TEXT          another ETag
 *   drip N                         pieces of N bytes                 echo               401 whose words hold the token
 *   badrange                       206 from another place            pages N            listing in pages of N files
 *   nolength                       no Content-Length
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "helpers/hub_server/server.h"

enum { HEAD_BYTES = 32768 };

const char *hub_root;
int hub_ports[2];
FILE *hub_log;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* --- routes --- */

static int exists(const char *base, const char *suffix)
{
    char *path = hub_in_root("%s%s", base, suffix);
    const int yes = cti_path_exists(path);
    free(path);
    return yes;
}

/* 0: may go on. */
static int refuse(hub_request *r, const char *base, const char *revision)
{
    const int is_good = strcmp(r->auth, "Bearer good") == 0;
    if (!exists(base, "")) {
        hub_answer_error(r, r->auth[0] != '\0' ? 404 : 401, "RepoNotFound", "Repository not found");
    } else if (exists(base, ".private") && !is_good) {
        hub_answer_error(r, 401, "", "Invalid username or password.");
    } else if (exists(base, ".gated") && !is_good) {
        hub_answer_error(r, 403, "GatedRepo", "Access to this model is restricted");
    } else if (strcmp(revision, "main") != 0 && strcmp(revision, "master") != 0 && strcmp(revision, "refs/pr/1") != 0) {
        hub_answer_error(r, 404, "RevisionNotFound", "Invalid rev id");
    } else {
        return 0;
    }
    return 1;
}

static void serve_path(hub_request *r, const char *base, const char *path)
{
    size_t size;
    char *full = hub_is_kind(r, "file") ? hub_in_root("%s", r->f.rest) : hub_in_root("%s/%s", base, path);
    char *data = strstr(path, "..") == NULL ? hub_slurp(full, &size) : NULL;
    if (data == NULL) {
        hub_answer_error(r, 404, "EntryNotFound", "Entry not found");
    } else {
        hub_send_file(r, data, size);
    }
    free(full);
    free(data);
}

static void route(hub_request *r)
{
    char owner[128], name[128], base[300], revision[256], path[4096];
    int n = 0;
    if (hub_is_kind(r, "status")) {
        int status = 0, at = 0;
        char headers[1024] = "";
        (void)sscanf(r->f.rest, "%d %n", &status, &at);
        if (r->f.rest[at] != '\0') {
            (void)snprintf(headers, sizeof headers, "%s\r\n", r->f.rest + at);
        }
        hub_answer(r, status, headers, "", 0);
        return;
    }
    if (hub_is_kind(r, "redirect")) {
        cti_str h = {.alloc = ct_alloc_system()};
        cti_str_add(&h, "Location: ");
        for (const char *c = r->f.rest; *c != '\0'; c++) {
            if (*c == '%' && (c[1] == '1' || c[1] == '2')) {
                cti_str_printf(&h, "%d", hub_ports[*++c - '1']);
            } else {
                cti_str_add_char(&h, *c);
            }
        }
        cti_str_add(&h, "\r\n");
        hub_answer(r, 302, h.data, "", 0);
        cti_str_deinit(&h);
        return;
    }
    if (hub_is_kind(r, "echo")) {
        char words[1024];
        (void)snprintf(words, sizeof words, "the token %s is not valid", r->auth);
        hub_answer_error(r, 401, "", words);
        return;
    }
    if (sscanf(r->raw, "/api/models/%127[^/]/%127[^/]/tree/%255[^/]", owner, name, revision) == 3) {
        hub_decode(revision);
        (void)snprintf(base, sizeof base, "%s/%s", owner, name);
        if (!refuse(r, base, revision)) {
            hub_send_listing(r, 1, base);
        }
    } else if (sscanf(r->path, "/api/v1/models/%127[^/]/%127[^/]/repo/file%n", owner, name, &n) == 2 && n > 0) {
        (void)snprintf(base, sizeof base, "%s/%s", owner, name);
        (void)hub_get_query(r, "Revision", revision, sizeof revision);
        if (!refuse(r, base, revision)) {
            hub_send_listing(r, 0, base);
        }
    } else if (sscanf(r->path, "/api/v1/models/%127[^/]/%127[^/]/rep%n", owner, name, &n) == 2 && n > 0) {
        (void)snprintf(base, sizeof base, "%s/%s", owner, name);
        (void)hub_get_query(r, "Revision", revision, sizeof revision);
        (void)hub_get_query(r, "FilePath", path, sizeof path);
        if (!refuse(r, base, revision)) {
            serve_path(r, base, path);
        }
    } else if (sscanf(r->raw, "/%127[^/]/%127[^/]/resolve/%255[^/]/%4095[^\n]", owner, name, revision, path) == 4) {
        hub_decode(revision);
        hub_decode(path);
        (void)snprintf(base, sizeof base, "%s/%s", owner, name);
        if (!refuse(r, base, revision)) {
            serve_path(r, base, path);
        }
    } else if (sscanf(r->path, "/cdn/%127[^/]/%127[^/]/%4095[^\n]", owner, name, path) == 3) {
        (void)snprintf(base, sizeof base, "%s/%s", owner, name);
        serve_path(r, base, path);
    } else {
        hub_answer_error(r, 404, "", "no such address");
    }
}

static void *serve(void *arg)
{
    hub_request *r = arg;
    char *head = calloc(1, HEAD_BYTES);
    size_t n = 0;
    while (head != NULL && n < HEAD_BYTES - 1 && strstr(head, "\r\n\r\n") == NULL) {
        const ssize_t k = recv(r->fd, head + n, HEAD_BYTES - 1 - n, 0);
        if (k <= 0) {
            break;
        }
        n += (size_t)k;
        if (head[0] == 0x16) { /* TLS: we have none */
            (void)hub_send_all(r->fd, "HTTP/1.1 400 X\r\n\r\n", 18);
            break;
        }
    }
    if (head != NULL && sscanf(head, "%7s %8191s", r->method, r->target) == 2) {
        const char *target = r->target;
        if (strncmp(target, "http://", 7) == 0) { /* we are somebody's proxy */
            target = strchr(target + 7, '/') != NULL ? strchr(target + 7, '/') : "/";
        }
        (void)snprintf(r->raw, sizeof r->raw, "%.*s", (int)strcspn(target, "?"), target);
        memcpy(r->path, r->raw, sizeof r->path);
        (void)snprintf(r->query, sizeof r->query, "%s", strchr(target, '?') != NULL ? strchr(target, '?') + 1 : "");
        hub_decode(r->path);
        hub_get_header(head, "\r\nAuthorization: ", r->auth, sizeof r->auth);
        hub_get_header(head, "\r\nCookie: ", r->cookie, sizeof r->cookie);
        hub_get_header(head, "\r\nRange: ", r->range, sizeof r->range);
        hub_get_header(head, "\r\nIf-Range: ", r->if_range, sizeof r->if_range);
        hub_find_fault(r);
        route(r);
    }
    free(head);
    (void)shutdown(r->fd, SHUT_RDWR);
    (void)close(r->fd);
    free(r);
    return NULL;
}

static int listen_on(int *out_port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof a;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) != 0 || listen(fd, 64) != 0 || getsockname(fd, (struct sockaddr *)&a, &size) != 0) {
        die("hub_server: listen");
    }
    *out_port = ntohs(a.sin_port);
    return fd;
}

static void tell(const char *name, const char *text)
{
    ct_err err = {0};
    char *path = hub_in_root("%s", name);
    if (cti_file_write_atomic(path, text, strlen(text), &err) != CT_OK) {
        fprintf(stderr, "hub_server: %s\n", err.message);
        exit(1);
    }
    free(path);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: hub_server ROOT\n");
        return 2;
    }
    hub_root = argv[1];
    (void)signal(SIGPIPE, SIG_IGN);
    char *log_path = hub_in_root("log"), number[32];
    hub_log = fopen(log_path, "ae");
    if (hub_log == NULL) {
        die("hub_server: log");
    }
    struct pollfd fds[3] = {{.fd = STDIN_FILENO, .events = POLLIN}};
    for (int i = 0; i < 2; i++) {
        fds[1 + i] = (struct pollfd){.fd = listen_on(&hub_ports[i]), .events = POLLIN};
    }
    (void)snprintf(number, sizeof number, "%d", hub_ports[1]);
    tell("port2", number);
    (void)snprintf(number, sizeof number, "%d", hub_ports[0]);
    tell("port", number); /* last: now both can be asked */
    for (;;) {
        if (poll(fds, 3, -1) < 0 && errno != EINTR) {
            die("hub_server: poll");
        }
        if ((fds[0].revents & (POLLIN | POLLHUP)) != 0) {
            free(log_path);
            _exit(0); /* threads may hold connections */
        }
        for (int i = 0; i < 2; i++) {
            if ((fds[1 + i].revents & POLLIN) == 0) {
                continue;
            }
            hub_request *r = calloc(1, sizeof *r);
            pthread_t thread = {0};
            if (r == NULL) {
                die("hub_server: memory");
            }
            r->which = i;
            r->fd = accept4(fds[1 + i].fd, NULL, NULL, SOCK_CLOEXEC);
            const int one = 1;
            (void)setsockopt(r->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            if (r->fd < 0 || pthread_create(&thread, NULL, serve, r) != 0) {
                die("hub_server: thread");
            }
            (void)pthread_detach(thread);
        }
    }
}
