/* SPDX-License-Identifier: Apache-2.0 */
/* The pool. A run is published as one word, which workers join and leave by compare-and-swap; the caller closes it when nothing
 * is left to take and waits only for those inside. So a worker that comes late, because it slept or the core was another
 * process's, costs nothing: the others have done its part. */
#include "base/pool.h"
#include "ctitan/parallel.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/pool_settings.h"

/* pool.state: how many workers are inside, whether new ones may come, whether the caller sleeps until they are out, and the
 * run's number, which may wrap: a worker that takes a new run for an old one just does not come. */
#define INSIDE ((uint32_t)0x7ff)
#define CLOSED ((uint32_t)1 << 11)
#define CALLER_SLEEPS ((uint32_t)1 << 12)
#define RUN_SHIFT 13
_Static_assert(CTI_POOL_MAX <= 0x7ff, "workers are counted in eleven bits");

/* Who sleeps on the word: bit of worker i, and the caller's. Workers past the 31st share a bit. */
#define CALLER_BIT ((uint32_t)1 << 31)

enum {
    LINE = 64, /* bytes of a cache line */
    LOOKS = 32 /* at the word between two at the clock */
};

/* A thread's part of a run: turns [next, end). */
typedef struct part {
    alignas(LINE) _Atomic int64_t next;
    int64_t end;
} part;

static struct {
    alignas(LINE) _Atomic uint32_t state;
    _Atomic int32_t n_sleepers;     /* workers */
    _Atomic int32_t run_threads;    /* of the run, the caller's included */
    alignas(LINE) _Atomic bool busy; /* a run is on; its caller alone touches what follows */
    cti_pool_fn fn;
    void *ctx;
    int64_t grain;
    int n_parts;
    int n_workers; /* made, or tried to */
    bool is_full;  /* the system gave no more */
    alignas(LINE) part parts[CTI_POOL_MAX];
} pool = {.state = CLOSED};

static cti_pool_settings settings;
static _Atomic int n_threads; /* 0: settings were not read yet */

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("isb" ::: "memory"); /* yield does nothing on most cores */
#endif
}

static void futex_wait(uint32_t value, uint32_t bits)
{
    /* Comes back early, too: who called looks again. */
    (void)syscall(SYS_futex, &pool.state, FUTEX_WAIT_BITSET_PRIVATE, value, NULL, NULL, bits);
}

static void futex_wake(uint32_t bits)
{
    (void)syscall(SYS_futex, &pool.state, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, NULL, NULL, bits);
}

static uint32_t bit_of(int worker)
{
    return (uint32_t)1 << (worker <= 31 ? worker - 1 : 30);
}

static uint32_t bits_below(int threads)
{
    return threads > 31 ? CALLER_BIT - 1 : ((uint32_t)1 << (threads - 1)) - 1;
}

/* ---- spinning ---------------------------------------------------------------------------------------------------- */

typedef struct spin {
    int64_t begin_ns, look_ns; /* when it began, and when to see whether the core is wanted by others */
} spin;

static spin spin_begin(void)
{
    const int64_t now = cti_now_ns();
    return (spin){now, now + settings.spin_ns};
}

/* This thread was sent off its core not long ago: another one waits for it. */
static bool is_core_wanted(int64_t now)
{
    enum { MEMORY_NS = 20000000 }; /* a few turns of the scheduler */
    static _Thread_local int64_t n_seen, wanted_until;
    struct rusage usage;
    if (getrusage(RUSAGE_THREAD, &usage) == 0 && usage.ru_nivcsw != n_seen) {
        n_seen = usage.ru_nivcsw;
        wanted_until = now + MEMORY_NS;
    }
    return now < wanted_until;
}

/* Asked every few looks: false, it is time to sleep. */
static bool spin_on(spin *s)
{
    const int64_t now = cti_now_ns();
    if (now < s->look_ns) {
        return true;
    }
    s->look_ns = now + settings.spin_ns;
    return now - s->begin_ns < settings.long_spin_ns && !is_core_wanted(now);
}

/* ---- a run, seen from any thread of it --------------------------------------------------------------------------- */

static void take_turns(int thread)
{
    const int64_t grain = pool.grain;
    for (int i = 0; i < pool.n_parts; i++) {
        part *p = &pool.parts[(thread + i) % pool.n_parts];
        while (atomic_load_explicit(&p->next, memory_order_relaxed) < p->end) {
            const int64_t first = atomic_fetch_add_explicit(&p->next, grain, memory_order_relaxed);
            if (first >= p->end) {
                break;
            }
            pool.fn(pool.ctx, first, cti_min_i64(first + grain, p->end), thread);
        }
    }
}

/* ---- workers ----------------------------------------------------------------------------------------------------- */

static bool is_for(uint32_t state, uint32_t last_run, int worker)
{
    return (state & CLOSED) == 0 && state >> RUN_SHIFT != last_run &&
           worker < atomic_load_explicit(&pool.run_threads, memory_order_relaxed);
}

/* The state of a run that the worker may join. */
static uint32_t wait_for_run(uint32_t last_run, int worker)
{
    spin s = spin_begin();
    do {
        for (int i = 0; i < LOOKS; i++) {
            const uint32_t state = atomic_load_explicit(&pool.state, memory_order_relaxed);
            if (is_for(state, last_run, worker)) {
                return state;
            }
            relax();
        }
    } while (spin_on(&s));
    for (;;) {
        atomic_fetch_add(&pool.n_sleepers, 1); /* before the look: either the caller sees it, or this the new run */
        const uint32_t state = atomic_load(&pool.state);
        const bool found = is_for(state, last_run, worker);
        if (!found) {
            futex_wait(state, bit_of(worker));
        }
        atomic_fetch_sub(&pool.n_sleepers, 1);
        if (found) {
            return state;
        }
    }
}

static void *work(void *arg)
{
    const int worker = (int)(intptr_t)arg;
    char name[16];
    (void)snprintf(name, sizeof name, "ct-pool-%d", worker);
    (void)pthread_setname_np(pthread_self(), name);
    cti_pool_bind_worker(&settings, worker);
    for (uint32_t last_run = 0;;) {
        uint32_t state = wait_for_run(last_run, worker);
        if (!atomic_compare_exchange_strong_explicit(&pool.state, &state, state + 1, memory_order_acquire,
                                                     memory_order_relaxed)) {
            continue; /* another came or went, or the run is over: look again */
        }
        last_run = state >> RUN_SHIFT;
        if (worker < atomic_load_explicit(&pool.run_threads, memory_order_relaxed)) { /* surely this run's, from here on */
            take_turns(worker);
        }
        state = atomic_fetch_sub_explicit(&pool.state, 1, memory_order_release) - 1;
        if ((state & (CALLER_SLEEPS | INSIDE)) == CALLER_SLEEPS) {
            futex_wake(CALLER_BIT);
        }
    }
    return NULL;
}

/* Workers up to n - 1; as many as the system gives. */
static void make_workers(int n)
{
    sigset_t all, before;
    pthread_attr_t attr;
    if (pool.n_workers + 1 >= n || pool.is_full || pthread_attr_init(&attr) != 0) {
        return;
    }
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before); /* signals are for the program's own threads */
    while (pool.n_workers + 1 < n && !pool.is_full) {
        pthread_t thread;
        pool.is_full = pthread_create(&thread, &attr, work, (void *)(intptr_t)(pool.n_workers + 1)) != 0;
        pool.n_workers += !pool.is_full;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
}

/* ---- the caller -------------------------------------------------------------------------------------------------- */

static void wait_until_left(void)
{
    uint32_t state = atomic_fetch_or_explicit(&pool.state, CLOSED, memory_order_acq_rel);
    if ((state & INSIDE) == 0) {
        return;
    }
    spin s = spin_begin();
    do {
        for (int i = 0; i < LOOKS; i++) {
            if ((atomic_load_explicit(&pool.state, memory_order_acquire) & INSIDE) == 0) {
                return;
            }
            relax();
        }
    } while (spin_on(&s));
    state = atomic_fetch_or_explicit(&pool.state, CALLER_SLEEPS, memory_order_acq_rel) | CALLER_SLEEPS;
    while ((state & INSIDE) != 0) {
        futex_wait(state, CALLER_BIT);
        state = atomic_load_explicit(&pool.state, memory_order_acquire);
    }
}

static void run_with(int threads, int n_parts, int64_t n, int64_t grain, cti_pool_fn fn, void *ctx)
{
    const int64_t n_turns = cti_ceil_div(n, grain);
    pool.fn = fn;
    pool.ctx = ctx;
    pool.grain = grain;
    pool.n_parts = n_parts;
    for (int i = 0; i < n_parts; i++) {
        const int64_t each = n_turns / n_parts, more = n_turns % n_parts; /* the first `more` parts have one turn more */
        atomic_store_explicit(&pool.parts[i].next, (each * i + cti_min_i64(i, more)) * grain, memory_order_relaxed);
        pool.parts[i].end = cti_min_i64((each * (i + 1) + cti_min_i64(i + 1, more)) * grain, n);
    }
    atomic_store_explicit(&pool.run_threads, threads, memory_order_relaxed);
    const uint32_t last = atomic_load_explicit(&pool.state, memory_order_relaxed);
    atomic_store(&pool.state, ((last >> RUN_SHIFT) + 1) << RUN_SHIFT); /* open, nobody inside */
    if (atomic_load(&pool.n_sleepers) > 0) {
        futex_wake(bits_below(threads));
    }
    take_turns(0);
    wait_until_left();
}

static void run(int64_t max_threads, bool has_parts, int64_t n, int64_t grain, cti_pool_fn fn, void *ctx)
{
    if (n <= 0) {
        return;
    }
    int threads = (int)cti_min_i64(cti_min_i64(cti_pool_threads(), max_threads), cti_ceil_div(n, grain));
    if (threads > 1 && !atomic_exchange_explicit(&pool.busy, true, memory_order_acquire)) {
        make_workers(threads);
        threads = (int)cti_min_i64(threads, pool.n_workers + 1);
        if (threads > 1) {
            run_with(threads, has_parts ? threads : 1, n, grain, fn, ctx);
            atomic_store_explicit(&pool.busy, false, memory_order_release);
            return;
        }
        atomic_store_explicit(&pool.busy, false, memory_order_release);
    }
    fn(ctx, 0, n, 0);
}

void cti_pool_run(int64_t n, int64_t grain, cti_pool_fn fn, void *ctx)
{
    run(CTI_POOL_MAX, true, n, grain, fn, ctx);
}

void cti_pool_tasks(int64_t n, int max_threads, cti_pool_fn fn, void *ctx)
{
    run(max_threads, false, n, 1, fn, ctx);
}

/* ---- settings ---------------------------------------------------------------------------------------------------- */

/* Only the thread that forked is there; a run of another one will never end. */
static void after_fork(void)
{
    atomic_store(&pool.state, CLOSED);
    atomic_store(&pool.n_sleepers, 0);
    atomic_store(&pool.busy, false);
    pool.n_workers = 0;
    pool.is_full = false;
}

static void read_settings(void)
{
    cti_pool_settings_read(&settings);
    (void)pthread_atfork(NULL, NULL, after_fork); /* without memory for it a forked child would have one thread */
    cti_pool_bind_process(&settings);
    atomic_store(&n_threads, settings.n_threads);
}

int cti_pool_threads(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int n = atomic_load_explicit(&n_threads, memory_order_acquire);
    if (n == 0) {
        (void)pthread_once(&once, read_settings);
        n = atomic_load(&n_threads);
    }
    return n;
}

void cti_pool_set_threads(int n)
{
    (void)cti_pool_threads(); /* reads the rest */
    atomic_store(&n_threads, n);
}

ct_status cti_pool_check(ct_err *err)
{
    (void)cti_pool_threads(); /* reads them */
    return settings.wrong[0] == '\0' ? CT_OK : CT_FAIL(err, CT_ERR_USAGE, "%s", settings.wrong);
}

const char *cti_pool_describe(char *buf, size_t size)
{
    const int n = cti_pool_threads();
    (void)snprintf(buf, size, "%d thread%s (%s)", n, n == 1 ? "" : "s", settings.why);
    return buf;
}

int ct_parallel_threads(void)
{
    return cti_pool_threads();
}

void ct_parallel_for(int64_t n, int64_t grain, ct_parallel_fn fn, void *ctx)
{
    cti_pool_run(n, grain, fn, ctx);
}
