/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines. */
#include "ctitan/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"

struct ct_log {
    const ct_alloc *alloc; /* borrows until ct_log_destroy */
    FILE *stream;          /* borrows until ct_log_destroy; written under lock; NULL: only the hook sees the lines */
    ct_log_level level;
    pthread_mutex_t lock; /* guards stream, hook, hook_ctx */
    void (*hook)(void *ctx, ct_log_level level, const char *text);
    void *hook_ctx;
    char *status; /* owns; the text of the line below the log; NULL until there is one; under lock */
    size_t status_bytes; /* 0: none is shown */
};

enum { LOG_STACK_BYTES = 2048, LOG_HEAD_BYTES = 96, LOG_STATUS_BYTES = 1024 };

/* To the first column and away with what stands there and below, where a terminal that became narrower may have put the rest of the line. The
 * status leaves the cursor at its line's start, so that whoever writes next (a shell, when we were killed) writes over it. */
static const char erase_line[] = "\r\033[J";

ct_status ct_log_create(const ct_alloc *alloc, FILE *stream, ct_log_level level, ct_log **out_log,
                        ct_err *err)
{
    ct_log *log = CT_NEW(alloc, ct_log, err);
    if (log == NULL) {
        return CT_ERR_MEMORY;
    }
    log->alloc = alloc;
    log->stream = stream;
    log->level = level;
    if (pthread_mutex_init(&log->lock, NULL) != 0) {
        ct_alloc_free(alloc, log);
        return CT_FAIL(err, CT_ERR_MEMORY, "the log's lock cannot be made");
    }
    *out_log = log;
    return CT_OK;
}

void ct_log_destroy(ct_log **log)
{
    if (log == NULL || *log == NULL) {
        return;
    }
    ct_log_set_status(*log, NULL);
    (void)pthread_mutex_destroy(&(*log)->lock);
    ct_alloc_free((*log)->alloc, (*log)->status);
    ct_alloc_free((*log)->alloc, *log);
    *log = NULL;
}

static const char *level_name(ct_log_level level)
{
    switch (level) {
    case CT_LOG_DEBUG:
        return "DEBUG";
    case CT_LOG_INFO:
        return "INFO";
    case CT_LOG_WARNING:
        return "WARNING";
    case CT_LOG_ERROR:
        return "ERROR";
    case CT_LOG_LEVEL_COUNT:
        break;
    }
    return "UNKNOWN";
}

/* One write where the stream has a descriptor. Failures are dropped: there is nowhere to report them. */
static void write_out(FILE *stream, const char *bytes, size_t size)
{
    if (stream == NULL) {
        return;
    }
    (void)fflush(stream);
    const int fd = fileno(stream);
    if (fd < 0) { /* a stream in memory */
        (void)fwrite(bytes, 1, size, stream);
        (void)fflush(stream);
        return;
    }
    while (size > 0) {
        const ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return;
        }
        bytes += n;
        size -= (size_t)n;
    }
}

/* Bytes of the status that the terminal has room for as it is now, lest it wraps; its characters are one column wide. */
static size_t status_that_fits(const ct_log *log)
{
    struct winsize window = {0};
    const int fd = log->stream != NULL ? fileno(log->stream) : -1;
    if (fd < 0 || ioctl(fd, TIOCGWINSZ, &window) != 0 || window.ws_col == 0) {
        return log->status_bytes;
    }
    size_t n = 0;
    for (int columns = 0; n < log->status_bytes; n++) {
        columns += ((unsigned char)log->status[n] & 0xc0) != 0x80;
        if (columns >= window.ws_col) {
            break;
        }
    }
    return n;
}

/* Under the lock: the line in the status's place and the status below it, as one write. False where memory ran out. */
static bool write_above_status(ct_log *log, const char *line, size_t size)
{
    const size_t n_erase = sizeof erase_line - 1, n_status = status_that_fits(log);
    char own[LOG_STATUS_BYTES + 64];
    const bool is_short = n_erase + size + n_status + 1 <= sizeof own; /* a status alone always is */
    char *all = is_short ? own : ct_alloc_resize(log->alloc, NULL, n_erase + size + n_status + 1, 1, NULL);
    if (all == NULL) {
        return false;
    }
    memcpy(all, erase_line, n_erase);
    memcpy(all + n_erase, line, size);
    memcpy(all + n_erase + size, log->status, n_status);
    all[n_erase + size + n_status] = '\r';
    write_out(log->stream, all, n_erase + size + n_status + 1);
    if (!is_short) {
        ct_alloc_free(log->alloc, all);
    }
    return true;
}

void ct_log_set_status(ct_log *log, const char *text)
{
    if (log == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&log->lock);
    if (log->status == NULL && text != NULL) {
        log->status = ct_alloc_resize(log->alloc, NULL, LOG_STATUS_BYTES, 1, NULL);
    }
    if (log->status != NULL) {
        const bool was_there = log->status_bytes > 0;
        const int n = text == NULL ? 0 : snprintf(log->status, LOG_STATUS_BYTES, "%.1000s", text);
        log->status_bytes = n > 0 ? (size_t)n : 0;
        if (log->status_bytes > 0) {
            (void)write_above_status(log, "", 0); /* takes no memory */
        } else if (was_there) {
            write_out(log->stream, erase_line, sizeof erase_line - 1);
        }
    }
    (void)pthread_mutex_unlock(&log->lock);
}

int ct_log_fd(const ct_log *log)
{
    return log == NULL || log->stream == NULL ? -1 : fileno(log->stream);
}

void ct_log_line(ct_log *log, ct_log_level level, const char *fmt, ...)
{
    if (log == NULL || level < log->level) {
        return;
    }
    char stack[LOG_STACK_BYTES];
    char *line = stack;
    size_t cap = sizeof stack;
    char when[32];
    cti_format_wall(cti_wall_ms(), when);
    const int n_head = snprintf(stack, LOG_HEAD_BYTES, "[titan] %s - root - %s - ", when, level_name(level));
    const size_t head = n_head < 0 ? 0 : (size_t)n_head;

    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    const int n_text = vsnprintf(stack + head, cap - head, fmt, args);
    size_t text = n_text < 0 ? 0 : (size_t)n_text;
    if (head + text + 2 > cap) {
        char *big = ct_alloc_resize(log->alloc, NULL, head + text + 2, 1, NULL);
        if (big != NULL) {
            memcpy(big, stack, head);
            line = big;
            cap = head + text + 2;
            (void)vsnprintf(line + head, cap - head, fmt, again);
        } else { /* better the beginning than nothing, for this may be the report of it */
            text = cap - head - 2;
        }
    }
    va_end(again);
    va_end(args);

    line[head + text] = '\n';
    (void)pthread_mutex_lock(&log->lock);
    if (log->status_bytes == 0 || !write_above_status(log, line, head + text + 1)) {
        write_out(log->stream, line, head + text + 1);
    }
    void (*hook)(void *, ct_log_level, const char *) = log->hook;
    void *hook_ctx = log->hook_ctx;
    (void)pthread_mutex_unlock(&log->lock);
    if (hook != NULL) { /* outside the lock: a hook may log */
        line[head + text] = '\0';
        hook(hook_ctx, level, line + head);
    }
    if (line != stack) {
        ct_alloc_free(log->alloc, line);
    }
}

void ct_log_set_hook(ct_log *log, void (*hook)(void *ctx, ct_log_level level, const char *text), void *ctx)
{
    if (log == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&log->lock);
    log->hook = hook;
    log->hook_ctx = ctx;
    (void)pthread_mutex_unlock(&log->lock);
}
