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
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "hub/sha.h"

enum { MAX_FAULTS = 64, HEAD_BYTES = 32768 };

static const char *root;
static int ports[2];
static FILE *log_file;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    char line[1024];
    int left;
} known[MAX_FAULTS]; /* how often each line of faults still holds */
static int n_known;

typedef struct fault {
    char kind[32], rest[900];
} fault;

typedef struct request {
    int fd, which; /* the port's index */
    char method[8], target[8192], raw[8192], path[8192], query[8192]; /* path: raw, decoded */
    char auth[512], cookie[512], range[128], if_range[256];
    fault f;
} request;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static char *slurp(const char *path, size_t *out_size)
{
    char *data = NULL;
    ct_err err = {0};
    *out_size = 0;
    return cti_file_read(ct_alloc_system(), path, 0, &data, out_size, &err) == CT_OK ? data : NULL;
}

static char *in_root(const char *fmt, ...) CT_PRINTF(1, 2);
static char *in_root(const char *fmt, ...)
{
    cti_str s = {.alloc = ct_alloc_system()};
    va_list args;
    va_start(args, fmt);
    cti_str_printf(&s, "%s/", root);
    cti_str_vprintf(&s, fmt, args);
    va_end(args);
    return s.data;
}

/* The first line of ROOT/faults that holds for the path and is not used up. */
static void find_fault(request *r)
{
    char *name = in_root("faults"), *next = NULL;
    size_t size;
    struct stat s = {0};
    static struct timespec last;
    pthread_mutex_lock(&lock);
    if (stat(name, &s) == 0 && (s.st_mtim.tv_sec != last.tv_sec || s.st_mtim.tv_nsec != last.tv_nsec)) { /* a new file: all lines hold anew */
        last = s.st_mtim;
        n_known = 0;
    }
    char *text = slurp(name, &size);
    ct_alloc_free(ct_alloc_system(), name);
    if (text == NULL) {
        pthread_mutex_unlock(&lock);
        return;
    }
    for (char *line = strtok_r(text, "\n", &next); line != NULL; line = strtok_r(NULL, "\n", &next)) {
        int times, i;
        char pattern[512];
        fault f = {0};
        if (sscanf(line, "%d %511s %31s %899[^\n]", &times, pattern, f.kind, f.rest) < 3 || !cti_glob_match(pattern, r->path)) {
            continue;
        }
        for (i = 0; i < n_known && strcmp(known[i].line, line) != 0; i++) {
        }
        if (i == n_known && n_known < MAX_FAULTS) {
            (void)snprintf(known[i].line, sizeof known[i].line, "%s", line);
            known[i].left = times;
            n_known++;
        }
        if (i < n_known && known[i].left > 0) {
            known[i].left--;
            r->f = f;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    free(text);
}

static int send_all(int fd, const void *data, size_t n)
{
    for (size_t at = 0; at < n;) {
        const ssize_t k = send(fd, (const char *)data + at, n - at, MSG_NOSIGNAL);
        if (k <= 0) {
            return -1;
        }
        at += (size_t)k;
    }
    return 0;
}

static void decode(char *text)
{
    char *to = text;
    for (char *c = text; *c != '\0'; c++) {
        unsigned byte;
        if (*c == '%' && sscanf(c + 1, "%2x", &byte) == 1) {
            *to++ = (char)byte;
            c += 2;
        } else {
            *to++ = *c;
        }
    }
    *to = '\0';
}

static void get_header(const char *head, const char *name, char *to, size_t cap)
{
    const char *at = strcasestr(head, name);
    if (at != NULL) {
        at += strlen(name);
        (void)snprintf(to, cap, "%.*s", (int)strcspn(at, "\r\n"), at);
    }
}

static int get_query(const request *r, const char *name, char *to, size_t cap)
{
    for (const char *at = r->query; *at != '\0';) {
        const size_t n = strcspn(at, "&");
        if (strncmp(at, name, strlen(name)) == 0 && at[strlen(name)] == '=') {
            (void)snprintf(to, cap, "%.*s", (int)(n - strlen(name) - 1), at + strlen(name) + 1);
            for (char *c = to; *c != '\0'; c++) {
                *c = (char)(*c == '+' ? ' ' : *c);
            }
            decode(to);
            return 1;
        }
        at += n + (at[n] == '&');
    }
    to[0] = '\0';
    return 0;
}

static void note(const request *r, int status)
{
    pthread_mutex_lock(&lock);
    fprintf(log_file, "%d %s port%d token=%s%s range=%s if-range=%s\n", status, r->target, r->which + 1,
            r->auth[0] == '\0' ? "none" : strstr(r->auth, "good") != NULL ? "good" : "other", r->cookie[0] != '\0' ? "+cookie" : "", r->range, r->if_range);
    fflush(log_file);
    pthread_mutex_unlock(&lock);
}

static int is_kind(const request *r, const char *kind)
{
    return strcmp(r->f.kind, kind) == 0;
}

static void send_endless(const request *r)
{
    static const char zeros[65536];
    while (send_all(r->fd, zeros, sizeof zeros) == 0) {
    }
}

static void answer(request *r, int status, const char *headers, const void *body, size_t size)
{
    if (is_kind(r, "endless")) {
        note(r, status);
        if (send_all(r->fd, "HTTP/1.1 200 X\r\nConnection: close\r\n\r\n", 37) == 0) {
            send_endless(r);
        }
        return;
    }
    char head[4096];
    const int n = snprintf(head, sizeof head, "HTTP/1.1 %d X\r\nContent-Length: %zu\r\nConnection: close\r\n%s\r\n", status, size, headers);
    note(r, status);
    if (send_all(r->fd, head, (size_t)n) == 0) {
        (void)send_all(r->fd, body, size);
    }
}

static void answer_error(request *r, int status, const char *code, const char *text)
{
    char headers[512], body[512];
    (void)snprintf(headers, sizeof headers, "X-Error-Code: %.60s\r\nX-Error-Message: %.300s\r\n", code, text);
    const int n = snprintf(body, sizeof body, "{\"error\": \"%.100s\", \"Message\": \"%.100s\", \"Success\": false}", text, text);
    answer(r, status, headers, body, (size_t)n);
}

/* --- bodies with faults --- */

static void wait_for_file(const char *name)
{
    char *path = in_root("%s", name);
    while (!cti_path_exists(path)) {
        (void)poll(NULL, 0, 5);
    }
    ct_alloc_free(ct_alloc_system(), path);
}

static void send_body(request *r, const char *data, size_t n)
{
    const char *kind = r->f.kind;
    size_t k = 0;
    char name[256] = "";
    (void)sscanf(r->f.rest, "%zu %255s", &k, name);
    const size_t part = k < n ? k : n;
    if (strcmp(kind, "cut") == 0) {
        (void)send_all(r->fd, data, part);
    } else if (strcmp(kind, "hold") == 0) {
        (void)send_all(r->fd, data, part);
        wait_for_file(name);
        (void)send_all(r->fd, data + part, n - part);
    } else if (strcmp(kind, "stall") == 0) {
        char byte;
        (void)send_all(r->fd, data, part);
        while (recv(r->fd, &byte, 1, 0) > 0) {
        }
    } else if (strcmp(kind, "drip") == 0 && k > 0) {
        for (size_t at = 0; at < n; at += k) {
            if (send_all(r->fd, data + at, k < n - at ? k : n - at) != 0) {
                return;
            }
        }
    } else if (strcmp(kind, "endless") == 0) {
        send_endless(r);
    } else {
        (void)send_all(r->fd, data, n);
    }
}

static void send_file(request *r, const char *data, size_t size)
{
    char head[2048], etag[128], hex[65], length[64] = "", range[128] = "";
    cti_sha sha;
    cti_sha256_init(&sha);
    cti_sha_update(&sha, data, size);
    cti_sha_hex(&sha, hex);
    (void)snprintf(etag, sizeof etag, "\"%.100s\"", is_kind(r, "etag") ? r->f.rest : hex);
    size_t from = 0, n = size;
    char padded[1 << 16] = "";
    const int wants = sscanf(r->range, "bytes=%zu-", &from) == 1 && !is_kind(r, "norange") && (r->if_range[0] == '\0' || strcmp(r->if_range, etag) == 0);
    from = wants ? from : 0;
    if (wants && from >= size) {
        answer(r, 416, "", "", 0);
        return;
    }
    n -= from;
    data += from;
    if (wants) {
        (void)snprintf(range, sizeof range, "Content-Range: bytes %zu-%zu/%zu\r\n", from + (is_kind(r, "badrange") ? 1 : 0), size - 1, size);
    }
    if (is_kind(r, "longer") && n < sizeof padded - 100) {
        memcpy(padded, data, n);
        n += (size_t)strtoul(r->f.rest, NULL, 10);
        data = padded;
    } else if (is_kind(r, "shorter")) {
        n -= (size_t)strtoul(r->f.rest, NULL, 10);
    }
    if (!is_kind(r, "endless") && !is_kind(r, "nolength")) {
        (void)snprintf(length, sizeof length, "Content-Length: %zu\r\n", n);
    }
    note(r, wants ? 206 : 200);
    const int k = snprintf(head, sizeof head, "HTTP/1.1 %d X\r\n%s%sETag: %s\r\nConnection: close\r\n\r\n", wants ? 206 : 200, length, range, etag);
    if (send_all(r->fd, head, (size_t)k) == 0) {
        send_body(r, data, n);
    }
}

/* --- listings --- */

static void add_entry(cti_str *out, int is_hf, const char *base, const char *path, int is_dir)
{
    char hex[65], head[64];
    size_t size = 0;
    cti_sha sha;
    char *full = in_root("%s/%s", base, path);
    if (out->len > 0) {
        cti_str_add(out, "\n");
    }
    if (is_dir) {
        cti_str_printf(out, is_hf ? "{\"type\":\"directory\",\"oid\":\"0\",\"size\":0,\"path\":\"%s\"}" : "{\"Type\":\"tree\",\"Path\":\"%s\",\"Size\":0}", path);
    } else {
        char *data = slurp(full, &size);
        const int is_git = cti_ends_with(path, ".json") || cti_ends_with(path, ".txt") || strchr(cti_path_base(path), '.') == NULL;
        if (is_hf && is_git) {
            cti_sha1_init(&sha);
            cti_sha_update(&sha, head, (size_t)snprintf(head, sizeof head, "blob %zu", size) + 1);
        } else {
            cti_sha256_init(&sha);
        }
        cti_sha_update(&sha, data, size);
        cti_sha_hex(&sha, hex);
        if (!is_hf) {
            cti_str_printf(out, "{\"Type\":\"blob\",\"Path\":\"%s\",\"Size\":%zu,\"Sha256\":\"%s\"}", path, size, hex);
        } else if (is_git) {
            cti_str_printf(out, "{\"type\":\"file\",\"oid\":\"%s\",\"size\":%zu,\"path\":\"%s\"}", hex, size, path);
        } else {
            cti_str_printf(out, "{\"type\":\"file\",\"oid\":\"%040d\",\"size\":%zu,\"lfs\":{\"oid\":\"%s\",\"size\":%zu,\"pointerSize\":134},\"path\":\"%s\"}", 0,
                           size, hex, size, path);
        }
        free(data);
    }
    free(full);
}

static void walk(cti_str *out, int is_hf, const char *base, const char *below, int recursive)
{
    char *dir = in_root("%s/%s", base, below);
    cti_names names = {0};
    ct_err err = {0};
    if (cti_list_dir(ct_alloc_system(), dir, &names, &err) == CT_OK) {
        for (size_t i = 0; i < names.n; i++) {
            char path[2048], *full;
            (void)snprintf(path, sizeof path, "%s%s%s", below, below[0] != '\0' ? "/" : "", names.names[i]);
            full = in_root("%s/%s", base, path);
            const int is_dir = cti_path_is_dir(full);
            add_entry(out, is_hf, base, path, is_dir);
            if (is_dir && recursive) {
                walk(out, is_hf, base, path, 1);
            }
            free(full);
        }
        cti_names_free(ct_alloc_system(), &names);
    }
    free(dir);
}

static void send_listing(request *r, int is_hf, const char *base)
{
    cti_str lines = {.alloc = ct_alloc_system()}, body = {.alloc = ct_alloc_system()};
    char below[1024], word[64], headers[1024] = "", *next = NULL, *own = in_root("%s.listing", base);
    size_t own_size, from = 0, per_page = SIZE_MAX, i = 0;
    char *own_text = slurp(own, &own_size);
    free(own);
    if (own_text != NULL) {
        answer(r, 200, "", own_text, own_size);
        free(own_text);
        return;
    }
    (void)get_query(r, "Root", below, sizeof below);
    walk(&lines, is_hf, base, below, is_hf || (get_query(r, "Recursive", word, sizeof word) && strcmp(word, "True") == 0));
    if (get_query(r, "cursor", word, sizeof word)) {
        from = strtoul(word, NULL, 10);
    }
    per_page = is_kind(r, "pages") ? strtoul(r->f.rest, NULL, 10) : per_page;
    cti_str_add(&body, is_hf ? "[" : "{\"Code\":200,\"Data\":{\"Files\":[");
    const size_t start = body.len;
    for (char *line = lines.data != NULL ? strtok_r(lines.data, "\n", &next) : NULL; line != NULL; line = strtok_r(NULL, "\n", &next), i++) {
        if (i == from + per_page) {
            (void)snprintf(headers, sizeof headers, "Link: <http://127.0.0.1:%d%.700s?recursive=true&cursor=%zu>; rel=\"next\"\r\n", ports[r->which], r->raw, i);
        }
        if (i >= from && i - from < per_page && (is_hf || i < 3000)) { /* where ModelScope ends */
            cti_str_printf(&body, "%s%s", body.len > start ? "," : "", line);
        }
    }
    cti_str_add(&body, is_hf ? "]" : "]},\"Message\":\"success\",\"Success\":true}");
    answer(r, 200, headers, body.data, body.len);
    cti_str_deinit(&lines);
    cti_str_deinit(&body);
}

/* --- routes --- */

static int exists(const char *base, const char *suffix)
{
    char *path = in_root("%s%s", base, suffix);
    const int yes = cti_path_exists(path);
    free(path);
    return yes;
}

/* 0: may go on. */
static int refuse(request *r, const char *base, const char *revision)
{
    const int is_good = strcmp(r->auth, "Bearer good") == 0;
    if (!exists(base, "")) {
        answer_error(r, r->auth[0] != '\0' ? 404 : 401, "RepoNotFound", "Repository not found");
    } else if (exists(base, ".private") && !is_good) {
        answer_error(r, 401, "", "Invalid username or password.");
    } else if (exists(base, ".gated") && !is_good) {
        answer_error(r, 403, "GatedRepo", "Access to this model is restricted");
    } else if (strcmp(revision, "main") != 0 && strcmp(revision, "master") != 0 && strcmp(revision, "refs/pr/1") != 0) {
        answer_error(r, 404, "RevisionNotFound", "Invalid rev id");
    } else {
        return 0;
    }
    return 1;
}

static void serve_path(request *r, const char *base, const char *path)
{
    size_t size;
    char *full = is_kind(r, "file") ? in_root("%s", r->f.rest) : in_root("%s/%s", base, path);
    char *data = strstr(path, "..") == NULL ? slurp(full, &size) : NULL;
    if (data == NULL) {
        answer_error(r, 404, "EntryNotFound", "Entry not found");
    } else {
        send_file(r, data, size);
    }
    free(full);
    free(data);
}

static void route(request *r)
{
    char owner[128], name[128], base[300], revision[256], path[4096];
    int n = 0;
    if (is_kind(r, "status")) {
        int status = 0, at = 0;
        char headers[1024] = "";
        (void)sscanf(r->f.rest, "%d %n", &status, &at);
        if (r->f.rest[at] != '\0') {
            (void)snprintf(headers, sizeof headers, "%s\r\n", r->f.rest + at);
        }
        answer(r, status, headers, "", 0);
        return;
    }
    if (is_kind(r, "redirect")) {
        cti_str h = {.alloc = ct_alloc_system()};
        cti_str_add(&h, "Location: ");
        for (const char *c = r->f.rest; *c != '\0'; c++) {
            if (*c == '%' && (c[1] == '1' || c[1] == '2')) {
                cti_str_printf(&h, "%d", ports[*++c - '1']);
            } else {
                cti_str_add_char(&h, *c);
            }
        }
        cti_str_add(&h, "\r\n");
        answer(r, 302, h.data, "", 0);
        cti_str_deinit(&h);
        return;
    }
    if (is_kind(r, "echo")) {
        char words[1024];
        (void)snprintf(words, sizeof words, "the token %s is not valid", r->auth);
        answer_error(r, 401, "", words);
        return;
    }
    if (sscanf(r->raw, "/api/models/%127[^/]/%127[^/]/tree/%255[^/]", owner, name, revision) == 3) {
        decode(revision);
        (void)snprintf(base, sizeof base, "%s/%s", owner, name);
        if (!refuse(r, base, revision)) {
            send_listing(r, 1, base);
        }
    } else if (sscanf(r->path, "/api/v1/models/%127[^/]/%127[^/]/repo/file%n", owner, name, &n) == 2 && n > 0) {
        (void)snprintf(base, sizeof base, "%s/%s", owner, name);
        (void)get_query(r, "Revision", revision, sizeof revision);
        if (!refuse(r, base, revision)) {
            send_listing(r, 0, base);
        }
    } else if (sscanf(r->path, "/api/v1/models/%127[^/]/%127[^/]/rep%n", owner, name, &n) == 2 && n > 0) {
        (void)snprintf(base, sizeof base, "%s/%s", owner, name);
        (void)get_query(r, "Revision", revision, sizeof revision);
        (void)get_query(r, "FilePath", path, sizeof path);
        if (!refuse(r, base, revision)) {
            serve_path(r, base, path);
        }
    } else if (sscanf(r->raw, "/%127[^/]/%127[^/]/resolve/%255[^/]/%4095[^\n]", owner, name, revision, path) == 4) {
        decode(revision);
        decode(path);
        (void)snprintf(base, sizeof base, "%s/%s", owner, name);
        if (!refuse(r, base, revision)) {
            serve_path(r, base, path);
        }
    } else if (sscanf(r->path, "/cdn/%127[^/]/%127[^/]/%4095[^\n]", owner, name, path) == 3) {
        (void)snprintf(base, sizeof base, "%s/%s", owner, name);
        serve_path(r, base, path);
    } else {
        answer_error(r, 404, "", "no such address");
    }
}

static void *serve(void *arg)
{
    request *r = arg;
    char *head = calloc(1, HEAD_BYTES);
    size_t n = 0;
    while (head != NULL && n < HEAD_BYTES - 1 && strstr(head, "\r\n\r\n") == NULL) {
        const ssize_t k = recv(r->fd, head + n, HEAD_BYTES - 1 - n, 0);
        if (k <= 0) {
            break;
        }
        n += (size_t)k;
        if (head[0] == 0x16) { /* TLS: we have none */
            (void)send_all(r->fd, "HTTP/1.1 400 X\r\n\r\n", 18);
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
        decode(r->path);
        get_header(head, "\r\nAuthorization: ", r->auth, sizeof r->auth);
        get_header(head, "\r\nCookie: ", r->cookie, sizeof r->cookie);
        get_header(head, "\r\nRange: ", r->range, sizeof r->range);
        get_header(head, "\r\nIf-Range: ", r->if_range, sizeof r->if_range);
        find_fault(r);
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
    char *path = in_root("%s", name);
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
    root = argv[1];
    (void)signal(SIGPIPE, SIG_IGN);
    char *log_path = in_root("log"), number[32];
    log_file = fopen(log_path, "ae");
    if (log_file == NULL) {
        die("hub_server: log");
    }
    struct pollfd fds[3] = {{.fd = STDIN_FILENO, .events = POLLIN}};
    for (int i = 0; i < 2; i++) {
        fds[1 + i] = (struct pollfd){.fd = listen_on(&ports[i]), .events = POLLIN};
    }
    (void)snprintf(number, sizeof number, "%d", ports[1]);
    tell("port2", number);
    (void)snprintf(number, sizeof number, "%d", ports[0]);
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
            request *r = calloc(1, sizeof *r);
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
