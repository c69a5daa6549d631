/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/mpi/mpi_engine.h"

#include <inttypes.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

/* Counts of MPI-3 are ints: longer messages are several, which arrive in order. Small enough that tests cross it. */
static const size_t most_bytes = (size_t)64 << 20;

enum {
    TAG_HERE = 1,  /* of `control`: a rank has come to where a communicator is made */
    TAG_GONE = 2,  /* a rank has left or given up */
    TAG_CODE = 3,  /* the exit code of a rank */
    /* How long a rank that ends waits for the others to end, too: where all is well, where it failed, where it waited in vain before. */
    LEAVE_MS = 300000, LEAVE_FAILED_MS = 30000, LEAVE_BROKEN_MS = 5000,
    N_LOOKS_AFTER_GONE = 64, /* for what a rank had sent before it left */
    N_SPINS = 2000, N_YIELDS = 2000 /* looks at the messages before a wait gives its core away, and before it sleeps */
};

/* MPI is one for the process, and is not opened again after it was finalized. */
static struct mpi_process {
    bool is_open, is_serial; /* is_serial: one thread at a time may call MPI */
    pthread_mutex_t lock;    /* taken around calls where is_serial */
    pthread_mutex_t control_lock; /* one thread looks at `control` */
    int rank, size;
    uint64_t tag_limit;
    MPI_Comm world;   /* all ranks in our order */
    MPI_Comm control; /* the same for what is not of a group */
    bool *gone;       /* [size] ranks that have said so; kept until the process ends */
    int *codes;       /* [size] exit codes of the others, -1: not yet told */
    bool gave_up;
    bool has_said_gone;
    int says_gone, says_code; /* what is sent: outlives the call */
} mpi = {.lock = PTHREAD_MUTEX_INITIALIZER, .control_lock = PTHREAD_MUTEX_INITIALIZER};

typedef struct mpi_ctx {
    const ct_alloc *alloc; /* borrows */
    bool is_aborted;       /* guarded by mpi.control_lock */
} mpi_ctx;

typedef struct mpi_group {
    MPI_Comm comm;
    MPI_Request *requests; /* owns; [cap] */
    MPI_Status *statuses;  /* owns; [cap] */
    int *peers, *indices;  /* own; [cap] */
    int cap;
} mpi_group;

static int64_t now_ms(void)
{
    return cti_now_ns() / 1000000;
}

static void lock_mpi(void)
{
    if (mpi.is_serial) {
        pthread_mutex_lock(&mpi.lock);
    }
}

static void unlock_mpi(void)
{
    if (mpi.is_serial) {
        pthread_mutex_unlock(&mpi.lock);
    }
}

/* One MPI call, under the lock where there must be one. */
#define CALL(result, expression)                                                                                       \
    do {                                                                                                               \
        lock_mpi();                                                                                                    \
        (result) = (expression);                                                                                       \
        unlock_mpi();                                                                                                  \
    } while (0)

static ct_status fail(int code, const char *what, ct_err *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0, ignored;
    CALL(ignored, MPI_Error_string(code, text, &n));
    (void)ignored;
    return CT_FAIL(err, CT_ERR_BACKEND, "MPI: %s: %.300s", what, text);
}

/* Waits a little longer each time. */
static void rest(int64_t round)
{
    if (round < N_SPINS) {
        return;
    }
    if (round < N_SPINS + N_YIELDS) {
        (void)sched_yield();
        return;
    }
    const struct timespec span = {.tv_nsec = 50000};
    (void)nanosleep(&span, NULL);
}

/* ---- who is gone ---- */

/* Takes what the others have said on `control`. */
static void listen(void)
{
    if (pthread_mutex_trylock(&mpi.control_lock) != 0) {
        return; /* another thread is at it */
    }
    for (;;) {
        int there = 0, value = 0, code;
        MPI_Status status;
        CALL(code, MPI_Iprobe(MPI_ANY_SOURCE, TAG_GONE, mpi.control, &there, &status));
        if (code == MPI_SUCCESS && !there) {
            CALL(code, MPI_Iprobe(MPI_ANY_SOURCE, TAG_CODE, mpi.control, &there, &status));
        }
        if (code != MPI_SUCCESS || !there) {
            break;
        }
        CALL(code, MPI_Recv(&value, 1, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, mpi.control, MPI_STATUS_IGNORE));
        if (code != MPI_SUCCESS) {
            break;
        }
        mpi.gone[status.MPI_SOURCE] = true;
        if (status.MPI_TAG == TAG_CODE) {
            mpi.codes[status.MPI_SOURCE] = value;
        }
    }
    pthread_mutex_unlock(&mpi.control_lock);
}

static bool is_gone(int rank)
{
    pthread_mutex_lock(&mpi.control_lock);
    const bool gone = mpi.gone[rank];
    pthread_mutex_unlock(&mpi.control_lock);
    return gone;
}

/* Small messages leave at once; those that nobody takes any more are dropped with the process. */
static void say(int tag, int *value)
{
    for (int r = 0; r < mpi.size; r++) {
        MPI_Request request = MPI_REQUEST_NULL;
        int code = MPI_SUCCESS;
        if (r != mpi.rank) {
            CALL(code, MPI_Isend(value, 1, MPI_INT, r, tag, mpi.control, &request));
        }
        if (code == MPI_SUCCESS && request != MPI_REQUEST_NULL) {
            CALL(code, MPI_Request_free(&request));
        }
    }
}

static void say_gone(void)
{
    pthread_mutex_lock(&mpi.control_lock);
    const bool first = !mpi.has_said_gone;
    mpi.has_said_gone = true;
    pthread_mutex_unlock(&mpi.control_lock);
    if (first) {
        say(TAG_GONE, &mpi.says_gone);
    }
}

/* ---- the end of the process ---- */

/* How many ranks have not told their exit code; the code that all should end with; whether they have one already. */
static int agree(int mine, int *out_code, bool *out_same)
{
    int n_silent = 0, firm = -1;
    bool same = true, any = mine != 0;
    mpi.codes[mpi.rank] = mine;
    for (int r = 0; r < mpi.size; r++) {
        const int c = mpi.codes[r];
        n_silent += c < 0;
        same = same && c == mine;
        any = any || c > 0;
        firm = firm < 0 && c > 0 && c != 75 ? c : firm;
    }
    *out_code = firm > 0 ? firm : any || n_silent > 0 ? 75 : 0;
    *out_same = same;
    return n_silent;
}

static void at_exit(int code, void *ignored)
{
    (void)ignored;
    int done = 0;
    if (!mpi.is_open || MPI_Finalized(&done) != MPI_SUCCESS || done) {
        return;
    }
    mpi.says_code = code;
    say_gone();
    say(TAG_CODE, &mpi.says_code);
    const int64_t began = now_ms(), limit = mpi.gave_up ? LEAVE_BROKEN_MS : code != 0 ? LEAVE_FAILED_MS : LEAVE_MS;
    int n_silent, agreed;
    bool same;
    for (int64_t round = 0; (n_silent = agree(code, &agreed, &same)) > 0 && now_ms() < began + limit; round++) {
        listen();
        rest(round);
    }
    if (same && !mpi.gave_up) {
        (void)MPI_Finalize();
        return;
    }
    (void)fflush(NULL);
    if (n_silent > 0) {
        (void)fprintf(stderr, "rank %d: exit code %d; %d rank(s) did not end within %" PRId64 " s: all are ended with code %d\n", mpi.rank,
                      code, n_silent, limit / 1000, agreed);
    }
    (void)MPI_Abort(MPI_COMM_WORLD, agreed);
}

/* ---- waiting for messages ---- */

typedef struct wait {
    MPI_Request *requests;
    MPI_Status *statuses; /* [n] room */
    const int *peers; /* [n] as ranks of the world */
    int *indices;     /* [n] room */
    int n, n_open;
} wait;

static int first_open(const wait *w)
{
    int i = 0;
    while (i < w->n - 1 && w->requests[i] == MPI_REQUEST_NULL) {
        i++;
    }
    return w->peers[i];
}

/* The first rank that is gone and has a message open; -1: none. */
static int first_gone(const wait *w)
{
    for (int i = 0; i < w->n; i++) {
        if (w->requests[i] != MPI_REQUEST_NULL && is_gone(w->peers[i])) {
            return w->peers[i];
        }
    }
    return -1;
}

static ct_status test(wait *w, ct_err *err)
{
    int n_done = 0, code;
    CALL(code, MPI_Testsome(w->n, w->requests, &n_done, w->indices, w->statuses));
    if (code != MPI_SUCCESS) {
        ct_err inner = {0};
        (void)fail(code, "a message failed", &inner);
        return CT_FAIL(err, CT_ERR_PEER, "rank %d is gone (%s)", first_open(w), inner.message);
    }
    w->n_open -= n_done == MPI_UNDEFINED ? w->n_open : n_done;
    return CT_OK;
}

/* Lets go of what did not come. A receive whose data is under way is left to the end of the process, which is near. */
static void cancel(wait *w)
{
    for (int i = 0; i < w->n; i++) {
        int code, done = 0;
        if (w->requests[i] != MPI_REQUEST_NULL) {
            CALL(code, MPI_Cancel(&w->requests[i]));
            CALL(code, MPI_Test(&w->requests[i], &done, MPI_STATUS_IGNORE));
        }
        if (w->requests[i] != MPI_REQUEST_NULL) {
            CALL(code, MPI_Request_free(&w->requests[i]));
            (void)code;
        }
    }
}

static ct_status wait_all(wait *w, int64_t timeout_ms, ct_err *err)
{
    const int64_t deadline = now_ms() + timeout_ms;
    int n_looks = 0;
    ct_status st = CT_OK;
    for (int64_t round = 0; w->n_open > 0; round++) {
        CT_TRY_GOTO(st, test(w, err), fail);
        if (round >= N_SPINS && round % 16 == 0 && w->n_open > 0) {
            listen();
            const int gone = first_gone(w);
            n_looks = gone >= 0 ? n_looks + 1 : 0;
            if (n_looks > N_LOOKS_AFTER_GONE) {
                st = CT_FAIL(err, CT_ERR_PEER, "rank %d is gone (it has left)", gone);
                goto fail;
            }
            if (now_ms() >= deadline) {
                st = CT_FAIL(err, CT_ERR_TIMEOUT, "rank %d did not answer within %" PRId64 " ms", first_open(w), timeout_ms);
                goto fail;
            }
        }
        rest(round);
    }
    return CT_OK;
fail:
    cancel(w);
    return st;
}

/* Returns when all of `ranks` (of the world) have called it: what blocks without a time limit follows. */
static ct_status wait_here(const ct_alloc *alloc, const int *ranks, int n, MPI_Comm comm, int tag, int64_t timeout_ms, ct_err *err)
{
    MPI_Request *requests = CT_NEW_ARRAY(alloc, MPI_Request, 2 * n, err);
    MPI_Status *statuses = CT_NEW_ARRAY(alloc, MPI_Status, 2 * n, err);
    int *ints = CT_NEW_ARRAY(alloc, int, 5 * n, err); /* peers [2n], indices [2n], what is received [n] */
    static int here = 1;
    wait w = {.requests = requests, .statuses = statuses, .peers = ints, .indices = ints != NULL ? ints + 2 * n : NULL};
    ct_status st = requests == NULL || statuses == NULL || ints == NULL ? CT_ERR_MEMORY : CT_OK;
    for (int i = 0; i < n && st == CT_OK; i++) {
        int code = MPI_SUCCESS;
        if (ranks[i] != mpi.rank) {
            ints[w.n] = ints[w.n + 1] = ranks[i];
            CALL(code, MPI_Irecv(&ints[4 * n + i], 1, MPI_INT, ranks[i], tag, comm, &requests[w.n]));
            w.n += code == MPI_SUCCESS;
        }
        if (code == MPI_SUCCESS && ranks[i] != mpi.rank) {
            CALL(code, MPI_Isend(&here, 1, MPI_INT, ranks[i], tag, comm, &requests[w.n]));
            w.n += code == MPI_SUCCESS;
        }
        st = code == MPI_SUCCESS ? CT_OK : fail(code, "a message cannot be started", err);
    }
    w.n_open = w.n;
    if (st == CT_OK) {
        st = wait_all(&w, timeout_ms, err);
    } else {
        cancel(&w);
    }
    ct_alloc_free(alloc, requests);
    ct_alloc_free(alloc, statuses);
    ct_alloc_free(alloc, ints);
    return st;
}

/* ---- open and close ---- */

static void mpi_close(void *ctx)
{
    mpi_ctx *m = ctx;
    if (m != NULL) {
        say_gone();
        ct_alloc_free(m->alloc, m);
    }
}

static ct_status check_ranks(const ct_place *place, ct_err *err)
{
    int size = 0, code;
    CALL(code, MPI_Comm_size(MPI_COMM_WORLD, &size));
    if (code != MPI_SUCCESS) {
        return fail(code, "the number of ranks", err);
    }
    if (size != place->world_size) {
        return CT_FAIL(err, CT_ERR_USAGE, "MPI knows %d rank(s), WORLD_SIZE is %d: this engine wants ranks that mpirun, or srun --mpi=..., of "
                       "the same MPI started", size, place->world_size);
    }
    return CT_OK;
}

/* Starts MPI. Everything that is made here stays until the process ends. */
static ct_status start(const ct_place *place, ct_err *err)
{
    int flag = 0, provided = MPI_THREAD_SINGLE;
    int code = MPI_Finalized(&flag);
    if (code != MPI_SUCCESS || flag) {
        return CT_FAIL(err, CT_ERR_STATE, "MPI has been finalized in this process and cannot be started again");
    }
    code = MPI_Initialized(&flag);
    code = code != MPI_SUCCESS ? code : flag ? MPI_Query_thread(&provided) : MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    if (code != MPI_SUCCESS) {
        return CT_FAIL(err, CT_ERR_BACKEND, "MPI cannot be started (code %d)", code);
    }
    if (provided < MPI_THREAD_SERIALIZED) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "this MPI lets the main thread call only (thread level %d)", provided);
    }
    mpi.is_serial = provided < MPI_THREAD_MULTIPLE;
    CT_TRY(check_ranks(place, err));
    (void)MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    mpi.rank = place->rank;
    mpi.size = place->world_size;
    /* Our order of ranks, where it is another one than MPI's. */
    code = MPI_Comm_split(MPI_COMM_WORLD, 0, place->rank, &mpi.world);
    code = code != MPI_SUCCESS ? code : MPI_Comm_dup(mpi.world, &mpi.control);
    if (code != MPI_SUCCESS) {
        return fail(code, "communicators", err);
    }
    int rank = -1, *limit = NULL, has_limit = 0;
    (void)MPI_Comm_rank(mpi.world, &rank);
    if (rank != place->rank) {
        return CT_FAIL(err, CT_ERR_USAGE, "RANK is %d, of which MPI makes %d: every rank needs a number of its own", place->rank, rank);
    }
    code = MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &has_limit);
    mpi.tag_limit = code == MPI_SUCCESS && has_limit ? (uint64_t)*limit : 32767; /* the least that the standard allows */
    const ct_alloc *system = ct_alloc_system();
    mpi.gone = CT_NEW_ARRAY(system, bool, mpi.size, err);
    mpi.codes = CT_NEW_ARRAY(system, int, mpi.size, err);
    if (mpi.gone == NULL || mpi.codes == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int r = 0; r < mpi.size; r++) {
        mpi.codes[r] = -1;
    }
    mpi.is_open = true;
    (void)on_exit(at_exit, NULL); /* after MPI's own handlers: runs before them */
    return CT_OK;
}

static ct_status mpi_open(const ct_alloc *alloc, ct_bootstrap *boot, int64_t timeout_ms, void **out_ctx, ct_err *err)
{
    (void)timeout_ms; /* the launcher sees to it that all ranks come */
    if (mpi.is_open) {
        return CT_FAIL(err, CT_ERR_STATE, "the comm engine 'mpi' opens one world a process");
    }
    CT_TRY(start(ct_bootstrap_place(boot), err));
    mpi_ctx *m = CT_NEW(alloc, mpi_ctx, err);
    if (m == NULL) {
        return CT_ERR_MEMORY;
    }
    m->alloc = alloc;
    *out_ctx = m;
    return CT_OK;
}

static void mpi_abort(void *ctx)
{
    mpi_ctx *m = ctx;
    pthread_mutex_lock(&mpi.control_lock);
    m->is_aborted = true;
    mpi.gave_up = true;
    pthread_mutex_unlock(&mpi.control_lock);
    say_gone();
}

/* ---- groups ---- */

static int tag_of(uint64_t tag)
{
    return (int)((tag ^ (tag >> 32)) % (mpi.tag_limit + 1));
}

static void mpi_group_close(void *ctx, void *group)
{
    mpi_ctx *m = ctx;
    mpi_group *g = group;
    int code;
    if (g != NULL) {
        if (g->comm != MPI_COMM_NULL && !m->is_aborted) {
            CALL(code, MPI_Comm_free(&g->comm));
            (void)code;
        }
        ct_alloc_free(m->alloc, g->requests);
        ct_alloc_free(m->alloc, g->statuses);
        ct_alloc_free(m->alloc, g->peers);
        ct_alloc_free(m->alloc, g->indices);
        ct_alloc_free(m->alloc, g);
    }
}

static ct_status make_comm(const ct_comm_group_desc *desc, mpi_group *g, ct_err *err)
{
    MPI_Group all = MPI_GROUP_NULL, members = MPI_GROUP_NULL;
    int code;
    CALL(code, MPI_Comm_group(mpi.world, &all));
    if (code == MPI_SUCCESS) {
        CALL(code, MPI_Group_incl(all, desc->size, desc->world_ranks, &members));
    }
    if (code == MPI_SUCCESS) {
        CALL(code, MPI_Comm_create_group(mpi.world, members, tag_of(desc->id) % 32768, &g->comm));
    }
    lock_mpi();
    if (members != MPI_GROUP_NULL) {
        (void)MPI_Group_free(&members);
    }
    if (all != MPI_GROUP_NULL) {
        (void)MPI_Group_free(&all);
    }
    unlock_mpi();
    if (code != MPI_SUCCESS) {
        return fail(code, "a communicator for a group", err);
    }
    CALL(code, MPI_Comm_set_errhandler(g->comm, MPI_ERRORS_RETURN));
    return CT_OK;
}

static ct_status mpi_group_open(void *ctx, const ct_comm_group_desc *desc, int64_t timeout_ms, void **out_group, ct_err *err)
{
    mpi_ctx *m = ctx;
    mpi_group *g = CT_NEW(m->alloc, mpi_group, err);
    if (g == NULL) {
        return CT_ERR_MEMORY;
    }
    g->comm = MPI_COMM_NULL;
    *out_group = g; /* comm.c closes it where this fails */
    ct_status st = wait_here(m->alloc, desc->world_ranks, desc->size, mpi.world, tag_of(desc->id), timeout_ms, err);
    if (st != CT_OK) {
        ct_err_prefix(err, "group '%s'", desc->name);
        return st;
    }
    return make_comm(desc, g, err);
}

/* ---- exchange ---- */

static ct_status reserve(const ct_alloc *alloc, mpi_group *g, int n, ct_err *err)
{
    if (n <= g->cap) {
        return CT_OK;
    }
    void *requests = ct_alloc_resize(alloc, g->requests, (size_t)n, sizeof *g->requests, err);
    g->requests = requests != NULL ? requests : g->requests;
    void *statuses = ct_alloc_resize(alloc, g->statuses, (size_t)n, sizeof *g->statuses, err);
    g->statuses = statuses != NULL ? statuses : g->statuses;
    void *peers = ct_alloc_resize(alloc, g->peers, (size_t)n, sizeof *g->peers, err);
    g->peers = peers != NULL ? peers : g->peers;
    void *indices = ct_alloc_resize(alloc, g->indices, (size_t)n, sizeof *g->indices, err);
    g->indices = indices != NULL ? indices : g->indices;
    if (requests == NULL || statuses == NULL || peers == NULL || indices == NULL) {
        return CT_ERR_MEMORY;
    }
    g->cap = n;
    return CT_OK;
}

/* Receives first: what is sent then finds its place. */
static int start_messages(mpi_group *g, const ct_comm_group_desc *desc, const ct_comm_message *messages, int n, bool sends, wait *w)
{
    int code = MPI_SUCCESS;
    for (int i = 0; i < n && code == MPI_SUCCESS; i++) {
        const ct_comm_message *m = &messages[i];
        for (size_t done = 0; m->is_send == sends && done < m->size_bytes && code == MPI_SUCCESS; done += most_bytes) {
            const int size = (int)(m->size_bytes - done < most_bytes ? m->size_bytes - done : most_bytes);
            unsigned char *at = (unsigned char *)m->data + done;
            if (sends) {
                CALL(code, MPI_Isend(at, size, MPI_BYTE, m->peer, tag_of(m->tag), g->comm, &g->requests[w->n]));
            } else {
                CALL(code, MPI_Irecv(at, size, MPI_BYTE, m->peer, tag_of(m->tag), g->comm, &g->requests[w->n]));
            }
            g->peers[w->n] = desc->world_ranks[m->peer];
            w->n += code == MPI_SUCCESS;
        }
    }
    return code;
}

static ct_status mpi_exchange(void *ctx, void *group, const ct_comm_group_desc *desc, const ct_comm_message *messages, int n,
                              int64_t timeout_ms, void *stream, ct_err *err)
{
    mpi_ctx *m = ctx;
    mpi_group *g = group;
    size_t n_pieces = 0;
    (void)stream;
    for (int i = 0; i < n; i++) {
        n_pieces += (messages[i].size_bytes + most_bytes - 1) / most_bytes;
    }
    if (n_pieces > INT32_MAX) {
        return CT_FAIL(err, CT_ERR_RANGE, "MPI: a call of %zu messages", n_pieces);
    }
    CT_TRY(reserve(m->alloc, g, (int)n_pieces, err));
    wait w = {.requests = g->requests, .statuses = g->statuses, .peers = g->peers, .indices = g->indices};
    int code = start_messages(g, desc, messages, n, false, &w);
    code = code == MPI_SUCCESS ? start_messages(g, desc, messages, n, true, &w) : code;
    w.n_open = w.n;
    if (code != MPI_SUCCESS) {
        cancel(&w);
        return fail(code, "a message cannot be started", err);
    }
    return wait_all(&w, timeout_ms, err);
}

const ct_comm_engine *ct_comm_mpi_engine(void)
{
    static const ct_comm_engine engine = {
        .abi = CT_COMM_ABI,
        .size_bytes = sizeof(ct_comm_engine),
        .name = "mpi",
        .open = mpi_open,
        .close = mpi_close,
        .abort = mpi_abort,
        .group_open = mpi_group_open,
        .group_close = mpi_group_close,
        .exchange = mpi_exchange,
    };
    return &engine;
}
