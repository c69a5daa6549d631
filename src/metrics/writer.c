/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that writes records. */
#include "metrics/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

enum {
    FIRST_RESERVE = 1 << 17, /* of each buffer, touched when the file is opened: no step allocates or takes a page fault */
    ENOUGH = FIRST_RESERVE / 4 /* bytes for which the thread comes before its time */
};

struct cti_writer_file {
    cti_writer *writer;
    char *path;       /* owns */
    int fd;           /* owns; -1 once something failed */
    cti_str waiting;  /* under the lock: added, not yet taken */
    cti_str taken;    /* the thread's own */
    bool is_failed;   /* under the lock */
};

struct cti_writer {
    const ct_alloc *alloc;
    ct_log *log; /* borrows until cti_writer_destroy */
    pthread_mutex_t lock; /* guards what follows and each file's waiting, is_failed */
    pthread_cond_t changed; /* for the thread: something waits, or closing */
    pthread_cond_t written; /* for flush */
    pthread_t thread;
    cti_writer_file *files[CTI_WRITER_MAX_FILES]; /* owns */
    int n_files;
    bool has_work, has_enough, is_idle, is_hurried, is_closing, has_warned;
};

void cti_writer_warn(cti_writer *w, const char *why)
{
    if (w == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&w->lock);
    const bool is_first = !w->has_warned;
    w->has_warned = true;
    (void)pthread_mutex_unlock(&w->lock);
    if (is_first) {
        CT_WARN(w->log, "%s; training goes on without this record (said once, whatever else cannot be written)", why);
    }
}

static void give_up(cti_writer_file *f, int code)
{
    char reason[128], text[1024];
    (void)snprintf(text, sizeof text, "'%s' cannot be written: %s", f->path, strerror_r(code, reason, sizeof reason)); /* cut: a message */
    (void)pthread_mutex_lock(&f->writer->lock);
    f->is_failed = true;
    cti_str_deinit(&f->waiting);
    (void)pthread_mutex_unlock(&f->writer->lock);
    cti_writer_warn(f->writer, text);
}

static void write_taken(cti_writer_file *f)
{
    const char *at = f->taken.data;
    size_t left = f->taken.len;
    while (left > 0 && f->fd >= 0) {
        const ssize_t n = write(f->fd, at, left);
        if (n > 0) {
            at += n;
            left -= (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            const int code = n == 0 ? ENOSPC : errno;
            (void)close(f->fd);
            f->fd = -1;
            give_up(f, code);
        }
    }
    cti_str_reset(&f->taken);
}

/* Under the lock. Lets a batch gather: a thread that woke for each line would take time from the cores that compute. */
static void gather(cti_writer *w)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += CTI_WRITER_DELAY_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    while (!w->is_closing && !w->is_hurried && !w->has_enough && pthread_cond_timedwait(&w->changed, &w->lock, &until) == 0) {
    }
}

static void *run(void *arg)
{
    cti_writer *w = arg;
    (void)pthread_mutex_lock(&w->lock);
    for (;;) {
        while (!w->has_work && !w->is_closing) {
            w->is_idle = true;
            (void)pthread_cond_wait(&w->changed, &w->lock);
        }
        w->is_idle = false;
        if (!w->has_work) {
            break;
        }
        gather(w);
        w->has_work = w->has_enough = false;
        const int n_files = w->n_files;
        for (int i = 0; i < n_files; i++) {
            const cti_str taken = w->files[i]->taken;
            w->files[i]->taken = w->files[i]->waiting;
            w->files[i]->waiting = taken;
        }
        (void)pthread_mutex_unlock(&w->lock);
        for (int i = 0; i < n_files; i++) {
            write_taken(w->files[i]);
        }
        (void)pthread_mutex_lock(&w->lock);
        w->is_hurried = w->is_hurried && w->has_work;
        (void)pthread_cond_broadcast(&w->written);
    }
    (void)pthread_mutex_unlock(&w->lock);
    return NULL;
}

static int start_thread(cti_writer *w)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the thread that trains */
    const int code = pthread_create(&w->thread, NULL, run, w);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

ct_status cti_writer_create(const ct_alloc *alloc, ct_log *log, cti_writer **out_writer, ct_err *err)
{
    cti_writer *w = CT_NEW(alloc, cti_writer, err);
    if (w == NULL) {
        return CT_ERR_MEMORY;
    }
    w->alloc = alloc;
    w->log = log;
    pthread_condattr_t monotonic;
    (void)pthread_mutex_init(&w->lock, NULL); /* none of these can fail on Linux */
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&w->changed, &monotonic);
    (void)pthread_cond_init(&w->written, NULL);
    (void)pthread_condattr_destroy(&monotonic);
    const int code = start_thread(w);
    if (code != 0) {
        char buf[128];
        ct_alloc_free(alloc, w);
        return CT_FAIL(err, CT_ERR_MEMORY, "the thread that writes records cannot be started: %s", strerror_r(code, buf, sizeof buf));
    }
    *out_writer = w;
    return CT_OK;
}

static void free_file(cti_writer *w, cti_writer_file *f)
{
    if (f->fd >= 0) {
        (void)close(f->fd);
    }
    cti_str_deinit(&f->waiting);
    cti_str_deinit(&f->taken);
    ct_alloc_free(w->alloc, f->path);
    ct_alloc_free(w->alloc, f);
}

void cti_writer_destroy(cti_writer **writer)
{
    cti_writer *w = *writer;
    if (w == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&w->lock);
    w->is_closing = true;
    (void)pthread_cond_signal(&w->changed);
    (void)pthread_mutex_unlock(&w->lock);
    (void)pthread_join(w->thread, NULL);
    for (int i = 0; i < w->n_files; i++) {
        free_file(w, w->files[i]);
    }
    (void)pthread_cond_destroy(&w->written);
    (void)pthread_cond_destroy(&w->changed);
    (void)pthread_mutex_destroy(&w->lock);
    ct_alloc_free(w->alloc, w);
    *writer = NULL;
}

static ct_status open_file(cti_writer *w, const char *path, cti_writer_file **out, ct_err *err)
{
    char *folder = ct_alloc_strdup(w->alloc, path, err);
    cti_writer_file *f = CT_NEW(w->alloc, cti_writer_file, err);
    if (f != NULL) {
        *f = (cti_writer_file){.writer = w, .fd = -1, .waiting.alloc = w->alloc, .taken.alloc = w->alloc};
        f->path = ct_alloc_strdup(w->alloc, path, err);
    }
    ct_status st = folder != NULL && f != NULL && f->path != NULL ? CT_OK : CT_ERR_MEMORY;
    char *slash = st == CT_OK ? strrchr(folder, '/') : NULL;
    if (slash != NULL && slash != folder) {
        *slash = '\0';
        st = cti_make_dirs(folder, err);
    }
    if (st == CT_OK) {
        f->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (f->fd < 0) {
            char buf[128];
            st = CT_FAIL(err, CT_ERR_IO, "'%s' cannot be opened: %s", path, strerror_r(errno, buf, sizeof buf));
        } else if (!cti_str_reserve(&f->waiting, FIRST_RESERVE) || !cti_str_reserve(&f->taken, FIRST_RESERVE)) {
            st = CT_FAIL(err, CT_ERR_MEMORY, "no memory for what is written to '%s'", path);
        } else {
            memset(f->waiting.data, 0, FIRST_RESERVE);
            memset(f->taken.data, 0, FIRST_RESERVE);
        }
    }
    ct_alloc_free(w->alloc, folder);
    if (st != CT_OK && f != NULL) {
        free_file(w, f);
    }
    *out = f;
    return st;
}

cti_writer_file *cti_writer_open(cti_writer *w, const char *path)
{
    ct_err err = {0};
    cti_writer_file *f = NULL;
    if (w == NULL) {
        return NULL;
    }
    CT_ASSERT(w->n_files < CTI_WRITER_MAX_FILES);
    if (open_file(w, path, &f, &err) != CT_OK) {
        cti_writer_warn(w, err.message);
        return NULL;
    }
    (void)pthread_mutex_lock(&w->lock);
    w->files[w->n_files++] = f;
    (void)pthread_mutex_unlock(&w->lock);
    return f;
}

void cti_writer_add(cti_writer_file *f, const void *bytes, size_t size)
{
    if (f == NULL || size == 0) {
        return;
    }
    cti_writer *w = f->writer;
    bool is_behind = false;
    (void)pthread_mutex_lock(&w->lock);
    if (!f->is_failed) {
        is_behind = f->waiting.len + size > CTI_WRITER_MAX_PENDING;
        if (!is_behind) {
            cti_str_add_n(&f->waiting, bytes, size);
            is_behind = f->waiting.failed;
        }
        w->has_work = true;
        if (w->is_idle || (!w->has_enough && f->waiting.len > ENOUGH)) {
            w->has_enough = w->has_enough || f->waiting.len > ENOUGH;
            w->is_idle = false;
            (void)pthread_cond_signal(&w->changed);
        }
    }
    (void)pthread_mutex_unlock(&w->lock);
    if (is_behind) { /* the thread keeps the descriptor and may still be in its last write */
        give_up(f, ENOBUFS);
    }
}

void cti_writer_flush(cti_writer *w)
{
    if (w == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&w->lock);
    w->is_hurried = w->has_work = true;
    (void)pthread_cond_signal(&w->changed);
    while (w->is_hurried) {
        (void)pthread_cond_wait(&w->written, &w->lock);
    }
    (void)pthread_mutex_unlock(&w->lock);
}
