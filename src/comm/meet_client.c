/* SPDX-License-Identifier: Apache-2.0 */
/* The launchers' lines, and what the server says to a client. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comm/meet.h"

int cti_meet_split(char *line, char *fields[CTI_MEET_MAX_FIELDS])
{
    int n = 0;
    while (n < CTI_MEET_MAX_FIELDS) {
        fields[n++] = line;
        char *tab = strchr(line, '\t');
        if (tab == NULL || n == CTI_MEET_MAX_FIELDS) {
            break;
        }
        *tab = '\0';
        line = tab + 1;
    }
    return n;
}

bool cti_meet_number(const char *text, int64_t low, int64_t high, int *out)
{
    int64_t value;
    if (!cti_parse_i64(text, &value) || value < low || value > high) {
        return false;
    }
    *out = (int)value;
    return true;
}

bool cti_meet_cut_line(cti_str *in, cti_str *out_line)
{
    char *newline = in->len > 0 ? memchr(in->data, '\n', in->len) : NULL;
    if (newline == NULL) {
        return false;
    }
    const size_t n = (size_t)(newline - in->data);
    cti_str_reset(out_line);
    cti_str_add_n(out_line, in->data, n);
    in->len -= n + 1;
    memmove(in->data, newline + 1, in->len + 1);
    return !out_line->failed;
}

bool cti_meet_send_line(const ct_alloc *alloc, int fd, const char *fmt, ...)
{
    cti_str line = {.alloc = alloc};
    va_list args;
    va_start(args, fmt);
    cti_str_vprintf(&line, fmt, args);
    va_end(args);
    cti_str_add_char(&line, '\n');
    /* Few and short lines: a peer whose buffer is full has not read for long. */
    const bool ok = !line.failed && send(fd, line.data, line.len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)line.len;
    cti_str_deinit(&line);
    return ok;
}

const char *cti_meet_clean(const char *text, char *buf, size_t size)
{
    size_t n = 0;
    for (; text[n] != '\0' && n + 1 < size; n++) {
        buf[n] = (unsigned char)text[n] < ' ' || text[n] == 127 ? ' ' : text[n];
    }
    buf[n] = '\0';
    return buf;
}

void cti_meet_keep_alive(int fd)
{
    /* Silent for 5 s: asked every 3 s; four times without an answer, or bytes unread for as long: gone. */
    const int on = 1, idle_s = 5, interval_s = 3, count = 4;
    const unsigned unread_ms = 17000;
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unread_ms, sizeof unread_ms);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void cti_meet_client_init(cti_meet_client *c, const ct_alloc *alloc, int fd)
{
    *c = (cti_meet_client){.fd = fd, .in.alloc = alloc, .line.alloc = alloc};
}

void cti_meet_client_deinit(cti_meet_client *c)
{
    if (c->fd >= 0) {
        (void)close(c->fd);
        c->fd = -1;
    }
    cti_str_deinit(&c->in);
    cti_str_deinit(&c->line);
}

static bool parse(char *line, cti_meet_message *m)
{
    char *f[CTI_MEET_MAX_FIELDS];
    const int n = cti_meet_split(line, f);
    int again, own;
    *m = (cti_meet_message){.text = "", .address = ""};
    if (strcmp(f[0], "WELCOME") == 0 && n == 1) {
        m->kind = CTI_MEET_WELCOME;
        return true;
    }
    if (strcmp(f[0], "REFUSED") == 0 && n == 2) {
        m->kind = CTI_MEET_REFUSED;
        m->text = f[1];
        return true;
    }
    if ((strcmp(f[0], "STOP") == 0 || strcmp(f[0], "HALT") == 0) && n == 1) {
        m->kind = f[0][0] == 'S' ? CTI_MEET_STOP : CTI_MEET_HALT;
        return true;
    }
    if (strcmp(f[0], "ROW") == 0 && n == 3) {
        m->kind = CTI_MEET_ROW;
        f[2][-1] = '\t'; /* head and call, as cti_flight_pack made them */
        m->text = f[1];
        return true;
    }
    if (strcmp(f[0], "START") == 0 && n == 7) {
        m->kind = CTI_MEET_START;
        m->address = f[5];
        return cti_meet_number(f[1], 0, INT32_MAX, &m->restart) && cti_meet_number(f[2], 0, CTI_MEET_MAX_NODES, &m->node_rank) &&
               cti_meet_number(f[3], 0, INT32_MAX, &m->first_rank) && cti_meet_number(f[4], 1, INT32_MAX, &m->world_size) &&
               cti_meet_number(f[6], 1, 65535, &m->port) && strlen(m->address) < 64;
    }
    if (strcmp(f[0], "END") == 0 && n == 6) {
        m->kind = CTI_MEET_END;
        m->text = f[5];
        if (!cti_meet_number(f[1], 0, INT32_MAX, &m->restart) || !cti_meet_number(f[2], 0, 255, &m->exit_code) ||
            !cti_meet_number(f[3], 0, 1, &again) || !cti_meet_number(f[4], 0, 1, &own)) {
            return false;
        }
        m->again = again == 1;
        m->own = own == 1;
        return true;
    }
    return false;
}

int cti_meet_take(cti_meet_client *c, cti_meet_message *out)
{
    for (;;) {
        if (cti_meet_cut_line(&c->in, &c->line)) {
            return parse(c->line.data, out) ? 1 : -1;
        }
        char buf[CTI_MEET_MAX_LINE];
        const ssize_t n = c->in.len < CTI_MEET_MAX_LINE ? recv(c->fd, buf, sizeof buf, MSG_DONTWAIT) : 0;
        if (n < 0) {
            return errno == EAGAIN || errno == EINTR ? 0 : -1;
        }
        cti_str_add_n(&c->in, buf, (size_t)n);
        if (n == 0 || c->in.failed) {
            return -1;
        }
    }
}
