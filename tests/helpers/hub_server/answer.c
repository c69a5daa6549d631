/* SPDX-License-Identifier: Apache-2.0 */
/* Requests, the faults that hold for them, answers. */
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helpers/hub_server/server.h"
#include "hub/sha.h"

enum { MAX_FAULTS = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    char line[1024];
    int left;
} known[MAX_FAULTS]; /* how often each line of faults still holds */
static int n_known;

char *hub_slurp(const char *path, size_t *out_size)
{
    char *data = NULL;
    ct_err err = {0};
    *out_size = 0;
    return cti_file_read(ct_alloc_system(), path, 0, &data, out_size, &err) == CT_OK ? data : NULL;
}

char *hub_in_root(const char *fmt, ...)
{
    cti_str s = {.alloc = ct_alloc_system()};
    va_list args;
    va_start(args, fmt);
    cti_str_printf(&s, "%s/", hub_root);
    cti_str_vprintf(&s, fmt, args);
    va_end(args);
    return s.data;
}

void hub_find_fault(hub_request *r)
{
    char *name = hub_in_root("faults"), *next = NULL;
    size_t size;
    struct stat s = {0};
    static struct timespec last;
    pthread_mutex_lock(&lock);
    if (stat(name, &s) == 0 && (s.st_mtim.tv_sec != last.tv_sec || s.st_mtim.tv_nsec != last.tv_nsec)) { /* a new file: all lines hold anew */
        last = s.st_mtim;
        n_known = 0;
    }
    char *text = hub_slurp(name, &size);
    ct_alloc_free(ct_alloc_system(), name);
    if (text == NULL) {
        pthread_mutex_unlock(&lock);
        return;
    }
    for (char *line = strtok_r(text, "\n", &next); line != NULL; line = strtok_r(NULL, "\n", &next)) {
        int times, i;
        char pattern[512];
        hub_fault f = {0};
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

int hub_send_all(int fd, const void *data, size_t n)
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

void hub_decode(char *text)
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

void hub_get_header(const char *head, const char *name, char *to, size_t cap)
{
    const char *at = strcasestr(head, name);
    if (at != NULL) {
        at += strlen(name);
        (void)snprintf(to, cap, "%.*s", (int)strcspn(at, "\r\n"), at);
    }
}

int hub_get_query(const hub_request *r, const char *name, char *to, size_t cap)
{
    for (const char *at = r->query; *at != '\0';) {
        const size_t n = strcspn(at, "&");
        if (strncmp(at, name, strlen(name)) == 0 && at[strlen(name)] == '=') {
            (void)snprintf(to, cap, "%.*s", (int)(n - strlen(name) - 1), at + strlen(name) + 1);
            for (char *c = to; *c != '\0'; c++) {
                *c = (char)(*c == '+' ? ' ' : *c);
            }
            hub_decode(to);
            return 1;
        }
        at += n + (at[n] == '&');
    }
    to[0] = '\0';
    return 0;
}

static void note(const hub_request *r, int status)
{
    pthread_mutex_lock(&lock);
    fprintf(hub_log, "%d %s port%d token=%s%s range=%s if-range=%s\n", status, r->target, r->which + 1,
            r->auth[0] == '\0' ? "none" : strstr(r->auth, "good") != NULL ? "good" : "other", r->cookie[0] != '\0' ? "+cookie" : "", r->range, r->if_range);
    fflush(hub_log);
    pthread_mutex_unlock(&lock);
}

int hub_is_kind(const hub_request *r, const char *kind)
{
    return strcmp(r->f.kind, kind) == 0;
}

static void send_endless(const hub_request *r)
{
    static const char zeros[65536];
    while (hub_send_all(r->fd, zeros, sizeof zeros) == 0) {
    }
}

void hub_answer(hub_request *r, int status, const char *headers, const void *body, size_t size)
{
    if (hub_is_kind(r, "endless")) {
        note(r, status);
        if (hub_send_all(r->fd, "HTTP/1.1 200 X\r\nConnection: close\r\n\r\n", 37) == 0) {
            send_endless(r);
        }
        return;
    }
    char head[4096];
    const int n = snprintf(head, sizeof head, "HTTP/1.1 %d X\r\nContent-Length: %zu\r\nConnection: close\r\n%s\r\n", status, size, headers);
    note(r, status);
    if (hub_send_all(r->fd, head, (size_t)n) == 0) {
        (void)hub_send_all(r->fd, body, size);
    }
}

void hub_answer_error(hub_request *r, int status, const char *code, const char *text)
{
    char headers[512], body[512];
    (void)snprintf(headers, sizeof headers, "X-Error-Code: %.60s\r\nX-Error-Message: %.300s\r\n", code, text);
    const int n = snprintf(body, sizeof body, "{\"error\": \"%.100s\", \"Message\": \"%.100s\", \"Success\": false}", text, text);
    hub_answer(r, status, headers, body, (size_t)n);
}

/* --- bodies with faults --- */

static void wait_for_file(const char *name)
{
    char *path = hub_in_root("%s", name);
    while (!cti_path_exists(path)) {
        (void)poll(NULL, 0, 5);
    }
    ct_alloc_free(ct_alloc_system(), path);
}

static void send_body(hub_request *r, const char *data, size_t n)
{
    const char *kind = r->f.kind;
    size_t k = 0;
    char name[256] = "";
    (void)sscanf(r->f.rest, "%zu %255s", &k, name);
    const size_t part = k < n ? k : n;
    if (strcmp(kind, "cut") == 0) {
        (void)hub_send_all(r->fd, data, part);
    } else if (strcmp(kind, "hold") == 0) {
        (void)hub_send_all(r->fd, data, part);
        wait_for_file(name);
        (void)hub_send_all(r->fd, data + part, n - part);
    } else if (strcmp(kind, "stall") == 0) {
        char byte;
        (void)hub_send_all(r->fd, data, part);
        while (recv(r->fd, &byte, 1, 0) > 0) {
        }
    } else if (strcmp(kind, "drip") == 0 && k > 0) {
        for (size_t at = 0; at < n; at += k) {
            if (hub_send_all(r->fd, data + at, k < n - at ? k : n - at) != 0) {
                return;
            }
        }
    } else if (strcmp(kind, "endless") == 0) {
        send_endless(r);
    } else {
        (void)hub_send_all(r->fd, data, n);
    }
}

void hub_send_file(hub_request *r, const char *data, size_t size)
{
    char head[2048], etag[128], hex[65], length[64] = "", range[128] = "";
    cti_sha sha;
    cti_sha256_init(&sha);
    cti_sha_update(&sha, data, size);
    cti_sha_hex(&sha, hex);
    (void)snprintf(etag, sizeof etag, "\"%.100s\"", hub_is_kind(r, "etag") ? r->f.rest : hex);
    size_t from = 0, n = size;
    char padded[1 << 16] = "";
    const int wants = sscanf(r->range, "bytes=%zu-", &from) == 1 && !hub_is_kind(r, "norange") && (r->if_range[0] == '\0' || strcmp(r->if_range, etag) == 0);
    from = wants ? from : 0;
    if (wants && from >= size) {
        hub_answer(r, 416, "", "", 0);
        return;
    }
    n -= from;
    data += from;
    if (wants) {
        (void)snprintf(range, sizeof range, "Content-Range: bytes %zu-%zu/%zu\r\n", from + (hub_is_kind(r, "badrange") ? 1 : 0), size - 1, size);
    }
    if (hub_is_kind(r, "longer") && n < sizeof padded - 100) {
        memcpy(padded, data, n);
        n += (size_t)strtoul(r->f.rest, NULL, 10);
        data = padded;
    } else if (hub_is_kind(r, "shorter")) {
        n -= (size_t)strtoul(r->f.rest, NULL, 10);
    }
    if (!hub_is_kind(r, "endless") && !hub_is_kind(r, "nolength")) {
        (void)snprintf(length, sizeof length, "Content-Length: %zu\r\n", n);
    }
    note(r, wants ? 206 : 200);
    const int k = snprintf(head, sizeof head, "HTTP/1.1 %d X\r\n%s%sETag: %s\r\nConnection: close\r\n\r\n", wants ? 206 : 200, length, range, etag);
    if (hub_send_all(r->fd, head, (size_t)k) == 0) {
        send_body(r, data, n);
    }
}
