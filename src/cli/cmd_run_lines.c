/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks write, line by line: a line goes out with one write, so that those of several ranks never mix. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "cli/cmd_run.h"

enum {
    READ_BYTES = 65536,
    MAX_LINE_BYTES = 1 << 20, /* a longer line is cut here */
    MAX_LAST_READS = 64,      /* of a rank that ended: more than a pipe holds, should a process that it left behind write on */
    STUCK_POLL_MS = 100
};

/* Whether a request to stop waits (the supervisor blocks these signals and takes them when it has written). */
static bool stop_is_pending(void)
{
    sigset_t set;
    return sigpending(&set) == 0 &&
           (sigismember(&set, SIGINT) == 1 || sigismember(&set, SIGTERM) == 1 || sigismember(&set, SIGHUP) == 1);
}

/* Writes all of it. Where the reader is gone, or takes nothing while we are asked to stop, the rest is dropped: the ranks come
 * first. A pipe that is ready takes PIPE_BUF bytes without blocking. */
static void write_all(int fd, const char *data, size_t size)
{
    static bool is_stuck; /* a reader took nothing when we were asked to stop: not waited for again */
    while (size > 0) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        const int ready = poll(&p, 1, is_stuck ? 0 : STUCK_POLL_MS);
        if (ready == 0) {
            is_stuck = is_stuck || stop_is_pending();
            if (is_stuck) {
                return;
            }
            continue;
        }
        const ssize_t n = write(fd, data, size < PIPE_BUF ? size : PIPE_BUF);
        if (n > 0) {
            data += n;
            size -= (size_t)n;
        } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
            return;
        }
    }
}

static void write_line(int fd, const char *prefix, const char *line, size_t size, cti_str *scratch)
{
    cti_str_reset(scratch);
    cti_str_add(scratch, prefix);
    cti_str_add_n(scratch, line, size);
    if (!scratch->failed) {
        write_all(fd, scratch->data, scratch->len);
    }
}

/* Drops the oldest lines where there are too many bytes; of a line that is too long its end is kept. */
static void keep_tail(cti_run_stream *s, const char *line, size_t size)
{
    if (size > CTI_RUN_TAIL_BYTES) {
        line += size - CTI_RUN_TAIL_BYTES;
        size = CTI_RUN_TAIL_BYTES;
    }
    size_t drop = 0;
    while (s->tail.len - drop + size > CTI_RUN_TAIL_BYTES) {
        const char *newline = memchr(s->tail.data + drop, '\n', s->tail.len - drop);
        drop = newline != NULL ? (size_t)(newline - s->tail.data) + 1 : s->tail.len;
    }
    if (drop > 0) {
        memmove(s->tail.data, s->tail.data + drop, s->tail.len - drop + 1);
        s->tail.len -= drop;
    }
    cti_str_add_n(&s->tail, line, size);
}

/* One line with its newline, or the last one without. */
static void pass_line(cti_run_stream *s, const char *line, size_t size, cti_str *scratch)
{
    if (s->file_fd >= 0) {
        write_all(s->file_fd, line, size);
    }
    if (s->console_fd >= 0) {
        write_line(s->console_fd, s->prefix, line, size, scratch);
    } else if (s->keep_tail) {
        keep_tail(s, line, size);
    }
}

static void pass_whole_lines(cti_run_stream *s)
{
    cti_str scratch = {.alloc = s->line.alloc};
    size_t done = 0;
    const char *newline;
    while (done < s->line.len && (newline = memchr(s->line.data + done, '\n', s->line.len - done)) != NULL) {
        size_t size = (size_t)(newline - (s->line.data + done)) + 1;
        pass_line(s, s->line.data + done, size, &scratch);
        done += size;
    }
    if (s->line.len - done > MAX_LINE_BYTES) {
        cti_str_add_char(&s->line, '\n');
        pass_line(s, s->line.data + done, s->line.len - done, &scratch);
        done = s->line.len;
    }
    if (done > 0) {
        memmove(s->line.data, s->line.data + done, s->line.len - done);
        s->line.len -= done;
        s->line.data[s->line.len] = '\0';
    }
    cti_str_deinit(&scratch);
}

bool cti_run_stream_read(cti_run_stream *s)
{
    char buf[READ_BYTES];
    ssize_t n = read(s->pipe_fd, buf, sizeof buf);
    if (n < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    if (n == 0) {
        return false;
    }
    cti_str_add_n(&s->line, buf, (size_t)n);
    if (s->line.failed) { /* no memory: what came goes out as it is */
        cti_str_deinit(&s->line);
        write_all(s->console_fd >= 0 ? s->console_fd : STDERR_FILENO, buf, (size_t)n);
        return true;
    }
    pass_whole_lines(s);
    return true;
}

/* True where a read would give bytes at once. */
static bool has_bytes(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) > 0 && (p.revents & POLLIN) != 0;
}

void cti_run_stream_finish(cti_run_stream *s)
{
    for (int i = 0; i < MAX_LAST_READS && s->pipe_fd >= 0 && has_bytes(s->pipe_fd) && cti_run_stream_read(s); i++) {
    }
    if (s->line.len > 0) {
        /* With a prefix the next line could be another rank's, so that this one gets its newline. */
        if (s->prefix[0] != '\0') {
            cti_str_add_char(&s->line, '\n');
        }
        cti_str scratch = {.alloc = s->line.alloc};
        pass_line(s, s->line.data, s->line.len, &scratch);
        cti_str_deinit(&scratch);
        cti_str_reset(&s->line);
    }
    if (s->pipe_fd >= 0) {
        (void)close(s->pipe_fd);
        s->pipe_fd = -1;
    }
    if (s->file_fd >= 0) {
        (void)close(s->file_fd);
        s->file_fd = -1;
    }
}

void cti_run_stream_show_tail(cti_run_stream *s)
{
    cti_str scratch = {.alloc = s->line.alloc};
    const char *p = cti_str_text(&s->tail), *end = p + s->tail.len;
    while (p < end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        size_t size = newline != NULL ? (size_t)(newline - p) + 1 : (size_t)(end - p);
        write_line(STDERR_FILENO, s->prefix, p, size, &scratch);
        if (newline == NULL) {
            write_all(STDERR_FILENO, "\n", 1);
        }
        p += size;
    }
    cti_str_deinit(&scratch);
    cti_str_reset(&s->tail);
}

void cti_run_stream_deinit(cti_run_stream *s)
{
    cti_run_stream_finish(s);
    cti_str_deinit(&s->line);
    cti_str_deinit(&s->tail);
}
