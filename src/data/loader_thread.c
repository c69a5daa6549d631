/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that makes batches ahead of their use: a ring of slots, a lock and a condition; nothing spins or sleeps. */
#include <signal.h>

#include "base/num.h"
#include "data/stream.h"

static ct_status init_slot(cti_slot *slot, const cti_maker *maker, ct_err *err)
{
    const ct_alloc *alloc = maker->alloc;
    const int64_t n = maker->local_rows * maker->options.seq_len;
    ct_batch *b = &slot->batch;
    b->tokens = CT_NEW_ARRAY(alloc, int32_t, n, err);
    b->labels = CT_NEW_ARRAY(alloc, int32_t, n, err);
    b->positions = CT_NEW_ARRAY(alloc, int32_t, n, err);
    b->segments = ct_alloc_zeroed(alloc, (size_t)n, 4 * sizeof(int32_t), err);
    b->segments_cap = n;
    slot->states = CT_NEW_ARRAY(alloc, int64_t, maker->options.n_local_streams * ct_stream_state_width(maker->n_sources), err);
    const bool ok = b->tokens != NULL && b->labels != NULL && b->positions != NULL && b->segments != NULL &&
                    slot->states != NULL;
    return ok ? CT_OK : CT_ERR_MEMORY;
}

ct_status cti_ahead_init(cti_ahead *ahead, cti_maker *maker, int32_t n_slots, ct_err *err)
{
    *ahead = (cti_ahead){.maker = maker, .n_slots = n_slots};
    ahead->slots = CT_NEW_ARRAY(maker->alloc, cti_slot, n_slots, err);
    if (ahead->slots == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int32_t i = 0; i < n_slots; i++) {
        CT_TRY(init_slot(&ahead->slots[i], maker, err));
    }
    ahead->has_lock = pthread_mutex_init(&ahead->lock, NULL) == 0;
    ahead->has_cond = ahead->has_lock && pthread_cond_init(&ahead->changed, NULL) == 0;
    return ahead->has_cond ? CT_OK : CT_FAIL(err, CT_ERR_MEMORY, "the system gives no lock for the loader's thread");
}

void cti_ahead_deinit(cti_ahead *ahead)
{
    if (ahead->maker == NULL) {
        return;
    }
    const ct_alloc *alloc = ahead->maker->alloc;
    cti_ahead_stop(ahead);
    for (int32_t i = 0; ahead->slots != NULL && i < ahead->n_slots; i++) {
        ct_batch *b = &ahead->slots[i].batch;
        ct_alloc_free(alloc, b->tokens);
        ct_alloc_free(alloc, b->labels);
        ct_alloc_free(alloc, b->positions);
        ct_alloc_free(alloc, b->segments);
        ct_alloc_free(alloc, ahead->slots[i].states);
    }
    ct_alloc_free(alloc, ahead->slots);
    if (ahead->has_cond) {
        (void)pthread_cond_destroy(&ahead->changed);
    }
    if (ahead->has_lock) {
        (void)pthread_mutex_destroy(&ahead->lock);
    }
    *ahead = (cti_ahead){0};
}

/* The next slot that may be written; NULL once the thread is to stop. Only this thread fills slots, so the one it is
 * given stays its own until it says so. */
static cti_slot *wait_for_room(cti_ahead *ahead)
{
    cti_slot *slot = NULL;
    (void)pthread_mutex_lock(&ahead->lock);
    while (!atomic_load(&ahead->stop) && ahead->n_full == ahead->n_slots) {
        (void)pthread_cond_wait(&ahead->changed, &ahead->lock);
    }
    if (!atomic_load(&ahead->stop)) {
        slot = &ahead->slots[(ahead->head + ahead->n_full) % ahead->n_slots];
    }
    (void)pthread_mutex_unlock(&ahead->lock);
    return slot;
}

static void *run(void *arg)
{
    cti_ahead *ahead = arg;
    ct_err err = {0};
    for (;;) {
        cti_slot *slot = wait_for_room(ahead);
        if (slot == NULL) {
            return NULL;
        }
        const ct_status st = cti_maker_next(ahead->maker, &slot->batch, &err);
        if (st == CT_OK) {
            cti_maker_states(ahead->maker, slot->states);
            slot->stats = ahead->maker->stats;
        }
        (void)pthread_mutex_lock(&ahead->lock);
        if (st == CT_OK) {
            ahead->n_full++;
        } else {
            ahead->status = st;
            ahead->error = err;
        }
        (void)pthread_cond_signal(&ahead->changed);
        (void)pthread_mutex_unlock(&ahead->lock);
        if (st != CT_OK) {
            return NULL;
        }
    }
}

ct_status cti_start_thread(pthread_t *out_thread, void *(*run_it)(void *arg), void *arg, ct_err *err)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int code = pthread_create(out_thread, NULL, run_it, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0) {
        char buf[128];
        return CT_FAIL(err, CT_ERR_MEMORY, "a thread of the loader's cannot be started: %s", strerror_r(code, buf, sizeof buf));
    }
    return CT_OK;
}

ct_status cti_ahead_start(cti_ahead *ahead, ct_err *err)
{
    if (ahead->is_running) {
        return CT_OK;
    }
    ahead->head = ahead->n_full = 0;
    ahead->status = CT_OK;
    ahead->error = (ct_err){0};
    atomic_store(&ahead->stop, false);
    ahead->maker->feed.stop = &ahead->stop;
    CT_TRY(cti_start_thread(&ahead->thread, run, ahead, err));
    ahead->is_running = true;
    return CT_OK;
}

void cti_ahead_stop(cti_ahead *ahead)
{
    if (!ahead->is_running) {
        return;
    }
    (void)pthread_mutex_lock(&ahead->lock);
    atomic_store(&ahead->stop, true);
    (void)pthread_cond_signal(&ahead->changed);
    (void)pthread_mutex_unlock(&ahead->lock);
    cti_feed_wake(&ahead->maker->feed);
    (void)pthread_join(ahead->thread, NULL);
    ahead->is_running = false;
    ahead->maker->feed.stop = NULL;
}

ct_status cti_ahead_acquire(cti_ahead *ahead, const cti_slot **out_slot, ct_err *err)
{
    ct_status st = CT_OK;
    (void)pthread_mutex_lock(&ahead->lock);
    while (ahead->n_full == 0 && ahead->status == CT_OK) {
        (void)pthread_cond_wait(&ahead->changed, &ahead->lock);
    }
    if (ahead->n_full > 0) {
        *out_slot = &ahead->slots[ahead->head];
    } else {
        st = ahead->status;
        if (st != CT_END_OF_DATA) {
            (void)CT_FAIL(err, st, "%s", ahead->error.message);
        }
    }
    (void)pthread_mutex_unlock(&ahead->lock);
    return st;
}

void cti_ahead_release(cti_ahead *ahead)
{
    (void)pthread_mutex_lock(&ahead->lock);
    ahead->head = (ahead->head + 1) % ahead->n_slots;
    ahead->n_full--;
    (void)pthread_cond_signal(&ahead->changed);
    (void)pthread_mutex_unlock(&ahead->lock);
}
