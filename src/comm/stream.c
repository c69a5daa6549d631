/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of collectives for engines whose calls block: a ring of calls, a thread, a lock and two conditions. */
#include "comm/stream.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"

typedef struct entry {
    const ct_comm_call *call;
    int64_t begin_ns, end_ns;
} entry;

struct ct_comm_stream {
    const ct_alloc *alloc; /* borrows */
    entry *ring;           /* owns; [cap]; call n is at n % cap */
    int32_t cap;
    pthread_t thread;
    pthread_mutex_t lock;              /* guards what follows */
    pthread_cond_t has_work, has_done; /* the thread waits for the first, the caller for the second */
    int64_t n_started, n_done;
    int64_t wanted; /* the caller sleeps until n_done reaches this; 0: it does not sleep */
    bool is_idle;   /* the thread sleeps */
    bool stop;
    ct_status status; /* of the first call that failed */
    ct_err error;
};

ct_status ct_comm_call_run(const ct_comm_call *c, ct_err *err)
{
    ct_status st = CT_OK;
    switch (c->kind) {
    case CT_COMM_ALL_GATHER:
        st = ct_comm_all_gather(c->comm, c->in, c->out, c->count, c->dtype, c->stream, err);
        break;
    case CT_COMM_REDUCE_SCATTER:
        st = ct_comm_reduce_scatter(c->comm, c->in, c->out, c->count, c->dtype, c->reduce, c->stream, err);
        break;
    case CT_COMM_ALL_REDUCE:
        st = ct_comm_all_reduce(c->comm, c->in, c->out, c->count, c->dtype, c->reduce, c->stream, err);
        break;
    case CT_COMM_BROADCAST:
    case CT_COMM_ALL_TO_ALL:
    case CT_COMM_EXCHANGE:
    case CT_COMM_BARRIER:
    case CT_COMM_OP_COUNT:
        st = CT_FAIL(err, CT_ERR_UNSUPPORTED, "no stream runs '%s'", ct_comm_op_name(c->kind));
        break;
    }
    if (st != CT_OK && c->what != NULL) {
        ct_err_prefix(err, "node '%s'", c->what);
    }
    return st;
}

static void *run(void *arg)
{
    ct_comm_stream *s = arg;
    (void)pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->stop && s->n_done == s->n_started) {
            s->is_idle = true;
            (void)pthread_cond_wait(&s->has_work, &s->lock);
            s->is_idle = false;
        }
        if (s->stop) {
            break;
        }
        entry *e = &s->ring[(s->n_done + 1) % s->cap];
        const bool is_well = s->status == CT_OK;
        (void)pthread_mutex_unlock(&s->lock);
        ct_err err = {0};
        e->begin_ns = cti_now_ns();
        const ct_status st = is_well ? ct_comm_call_run(e->call, &err) : CT_OK;
        e->end_ns = cti_now_ns();
        (void)pthread_mutex_lock(&s->lock);
        if (st != CT_OK) {
            s->status = st;
            s->error = err;
        }
        s->n_done++;
        if (s->wanted > 0 && s->n_done >= s->wanted) {
            (void)pthread_cond_signal(&s->has_done);
        }
    }
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

static ct_status start_thread(ct_comm_stream *s, ct_err *err)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the thread that trains */
    const int code = pthread_create(&s->thread, NULL, run, s);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    char buf[128];
    return code == 0 ? CT_OK
                     : CT_FAIL(err, CT_ERR_MEMORY, "the thread of collectives cannot be started: %s",
                               strerror_r(code, buf, sizeof buf));
}

ct_status ct_comm_stream_create(const ct_alloc *alloc, int32_t max_in_flight, ct_comm_stream **out_stream, ct_err *err)
{
    CT_ASSERT(max_in_flight > 0);
    ct_comm_stream *s = CT_NEW(alloc, ct_comm_stream, err);
    if (s == NULL) {
        return CT_ERR_MEMORY;
    }
    s->alloc = alloc;
    s->cap = max_in_flight;
    s->ring = CT_NEW_ARRAY(alloc, entry, max_in_flight, err);
    (void)pthread_mutex_init(&s->lock, NULL); /* none of these can fail on Linux */
    (void)pthread_cond_init(&s->has_work, NULL);
    (void)pthread_cond_init(&s->has_done, NULL);
    const ct_status st = s->ring == NULL ? CT_ERR_MEMORY : start_thread(s, err);
    if (st != CT_OK) {
        ct_alloc_free(alloc, s->ring);
        ct_alloc_free(alloc, s);
        return st;
    }
    *out_stream = s;
    return CT_OK;
}

void ct_comm_stream_destroy(ct_comm_stream **stream)
{
    ct_comm_stream *s = *stream;
    if (s == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&s->lock);
    s->stop = true;
    (void)pthread_cond_signal(&s->has_work);
    (void)pthread_mutex_unlock(&s->lock);
    (void)pthread_join(s->thread, NULL);
    (void)pthread_cond_destroy(&s->has_work);
    (void)pthread_cond_destroy(&s->has_done);
    (void)pthread_mutex_destroy(&s->lock);
    ct_alloc_free(s->alloc, s->ring);
    ct_alloc_free(s->alloc, s);
    *stream = NULL;
}

int64_t ct_comm_stream_start(ct_comm_stream *s, const ct_comm_call *call)
{
    (void)pthread_mutex_lock(&s->lock);
    CT_ASSERT(s->n_started - s->n_done < s->cap);
    const int64_t number = ++s->n_started;
    s->ring[number % s->cap].call = call;
    const bool wake = s->is_idle;
    (void)pthread_mutex_unlock(&s->lock);
    if (wake) {
        (void)pthread_cond_signal(&s->has_work);
    }
    return number;
}

ct_status ct_comm_stream_wait(ct_comm_stream *s, int64_t number, ct_err *err)
{
    (void)pthread_mutex_lock(&s->lock);
    CT_ASSERT(number <= s->n_started);
    s->wanted = number;
    while (s->n_done < number) {
        (void)pthread_cond_wait(&s->has_done, &s->lock);
    }
    s->wanted = 0;
    const ct_status st = s->status;
    (void)pthread_mutex_unlock(&s->lock);
    return st == CT_OK ? CT_OK : CT_FAIL(err, st, "%s", s->error.message); /* written once, before n_done rose */
}

void ct_comm_stream_times(const ct_comm_stream *s, int64_t number, int64_t *out_begin_ns, int64_t *out_end_ns)
{
    *out_begin_ns = s->ring[number % s->cap].begin_ns;
    *out_end_ns = s->ring[number % s->cap].end_ns;
}
