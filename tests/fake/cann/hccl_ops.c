/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that move data. Each is a task on its stream: it says in shared memory what it wants and where
 * its data lies, waits for the other ranks, holds their words against its own, reads their data and writes
 * its result once all have read. */
#include "hccl_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const operations[] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast",
                                         "Reduce",    "Scatter",   "AlltoAll",      "AlltoAllV",
                                         "Barrier",   "Send",      "Recv",          "BatchSendRecv"};

size_t type_size(int type)
{
    static const uint8_t sizes[T_TYPES] = {1, 2, 4, 2, 4, 8, 8, 1, 2, 4, 8, 2, 16};
    return type < 0 || type >= T_TYPES ? 0 : sizes[type];
}

const char *type_name(int type)
{
    static const char *const names[T_TYPES] = {"int8",  "int16",  "int32", "fp16",   "fp32",
                                               "int64", "uint64", "uint8", "uint16", "uint32",
                                               "fp64",  "bfp16",  "int128"};
    return type < 0 || type >= T_TYPES ? "?" : names[type];
}

/* One call, as its task gets it. */
struct job {
    struct comm *comm;
    enum operation operation;
    uint64_t number; /* of the communicator's calls, or of the pair's */
    const void *send;
    void *recv;
    uint64_t count;
    int type, reduce;
    uint32_t root; /* or the peer */
    uint64_t send_counts[MAX_RANKS], send_displs[MAX_RANKS], recv_counts[MAX_RANKS],
        recv_displs[MAX_RANKS]; /* elements */
    struct item *items;
    uint32_t nitems;
    bool absent;
};
struct item {
    int recv;
    void *buf;
    uint64_t count, number;
    int type;
    uint32_t peer;
};

/* ---- In the task: other ranks' data ------------------------------------------------------------------ */

static void say(int code_is_mismatch, const char *text)
{
    (void)fake_code(code_is_mismatch ? FAKE_R_HCCL_MISMATCH : FAKE_R_HCCL_ABSENT, TASK_TIMEOUT, "%s", text);
    fake_task_text("%s ", text);
}

/* The file behind the device memory of rank r. */
static int file_of(struct comm *comm, uint32_t r, int pid, int file)
{
    if (comm->files_pid[r] != pid) {
        char path[64];
        (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, file);
        comm->files[r] = open(path, O_RDONLY | O_CLOEXEC);
        if (comm->files[r] < 0) {
            perror(path);
            abort();
        }
        comm->files_pid[r] = pid;
    }
    return comm->files[r];
}

static void fetch(struct comm *comm, uint32_t r, int pid, int file, uint64_t offset, void *into, size_t size)
{
    (void)pthread_mutex_lock(&comm->lock);
    int from = file_of(comm, r, pid, file);
    (void)pthread_mutex_unlock(&comm->lock);
    for (size_t done = 0; done < size;) {
        ssize_t n = pread(from, (char *)into + done, size - done, (off_t)(offset + done));
        if (n <= 0) {
            perror("fake cann: data of another rank");
            abort();
        }
        done += (size_t)n;
    }
}

static void fetch_call(struct comm *comm, uint32_t r, const struct call *call, uint64_t skip, void *into,
                       size_t size)
{
    fetch(comm, r, call->pid, call->file, call->offset + skip, into, size);
}

static void *scratch(size_t size)
{
    void *memory = malloc(size == 0 ? 1 : size);
    if (memory == NULL) {
        abort();
    }
    return memory;
}

/* ---- In the task: meeting ---------------------------------------------------------------------------- */

static struct call *slot(const struct job *job, uint32_t rank)
{
    return &job->comm->meeting->calls[rank][job->number % RING];
}

/* Waits until every rank has said (or read) its call of this number; false: time is over, with who is missing
 * told. */
static bool wait_all(const struct job *job, bool for_read)
{
    struct comm *comm = job->comm;
    double seconds = exec_timeout_s(), until = hccl_now_s() + seconds;
    int turns = 0;
    for (uint32_t r = 0; r < comm->nranks;) {
        const struct call *call = slot(job, r);
        if (atomic_load(for_read ? &call->read : &call->ready) >= job->number) {
            r++;
            continue;
        }
        if (seconds >= 0 && hccl_now_s() > until) {
            char text[400];
            (void)snprintf(text, sizeof text,
                           "EI0002: notify wait timed out (HCCL_EXEC_TIMEOUT): rank %u of %u waits in %s "
                           "(call %llu, count %llu, %s) for rank %u",
                           comm->rank, comm->nranks, operations[job->operation],
                           (unsigned long long)job->number, (unsigned long long)job->count,
                           type_name(job->type), r);
            say(0, text);
            return false;
        }
        hccl_pause(&turns);
    }
    return true;
}

/* Whether rank r said the same; otherwise both ranks' words are told. */
static bool agrees(const struct job *job, uint32_t r)
{
    const struct call *call = slot(job, r);
    bool counted = job->operation != ALL_TO_ALL_V;
    if (call->operation == (int)job->operation && call->type == job->type && call->reduce == job->reduce &&
        call->root == (int)job->root && (!counted || call->count == job->count)) {
        return true;
    }
    char text[400];
    (void)snprintf(text, sizeof text,
                   "EI0005: arguments differ between ranks: call %llu of rank %u is %s (count %llu, %s, op "
                   "%d, root %u), of rank %u %s (count %llu, "
                   "%s, op %d, root %d)",
                   (unsigned long long)job->number, job->comm->rank, operations[job->operation],
                   (unsigned long long)job->count, type_name(job->type), job->reduce, job->root, r,
                   operations[call->operation], (unsigned long long)call->count, type_name(call->type),
                   call->reduce, call->root);
    say(1, text);
    return false;
}

/* The order in which ranks are summed: theirs, or (unless deterministic) one that differs from run to run,
 * the same for all ranks. */
static void rank_order(const struct job *job, uint32_t order[MAX_RANKS])
{
    uint64_t x = 0;
    for (const char *at = job->comm->name; *at != '\0'; at++) {
        x = x * 31 + (unsigned char)*at;
    }
    x += job->number * 0x9e3779b97f4a7c15u;
    for (uint32_t i = 0; i < job->comm->nranks; i++) {
        order[i] = i;
    }
    for (uint32_t i = job->comm->nranks; !comm_deterministic(job->comm) && i > 1; i--) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        uint32_t k = (uint32_t)((x >> 33) % i), other = order[k];
        order[k] = order[i - 1];
        order[i - 1] = other;
    }
}

/* The reduction of `count` elements that begin `skip` elements into every rank's data. */
static void *reduced(const struct job *job, uint64_t skip, uint64_t count)
{
    uint32_t order[MAX_RANKS];
    rank_order(job, order);
    size_t size = type_size(job->type), bytes = (size_t)count * size;
    void *sum = scratch(bytes), *next = scratch(bytes);
    for (uint32_t i = 0; i < job->comm->nranks; i++) {
        fetch_call(job->comm, order[i], slot(job, order[i]), skip * size, i == 0 ? sum : next, bytes);
        if (i > 0) {
            reduce_into(sum, next, count, job->type, job->reduce);
        }
    }
    free(next);
    return sum;
}

/* What this rank receives, in new memory (NULL: nothing), and its bytes. */
static char *collect(const struct job *job, size_t *bytes)
{
    struct comm *comm = job->comm;
    size_t size = type_size(job->type), part = (size_t)job->count * size;
    char *out = NULL;
    *bytes = 0;
    switch (job->operation) {
    case ALL_REDUCE:
        *bytes = part;
        return reduced(job, 0, job->count);
    case REDUCE:
        *bytes = comm->rank == job->root ? part : 0;
        return comm->rank == job->root ? reduced(job, 0, job->count) : NULL;
    case REDUCE_SCATTER:
        *bytes = part;
        return reduced(job, comm->rank * job->count, job->count);
    case ALL_GATHER:
        out = scratch(part * comm->nranks);
        for (uint32_t r = 0; r < comm->nranks; r++) {
            fetch_call(comm, r, slot(job, r), 0, out + r * part, part);
        }
        *bytes = part * comm->nranks;
        return out;
    case ALL_TO_ALL:
        out = scratch(part * comm->nranks);
        for (uint32_t r = 0; r < comm->nranks; r++) {
            fetch_call(comm, r, slot(job, r), comm->rank * part, out + r * part, part);
        }
        *bytes = part * comm->nranks;
        return out;
    case BROADCAST:
    case SCATTER:
        if (job->operation == BROADCAST && comm->rank == job->root) {
            return NULL;
        }
        out = scratch(part);
        fetch_call(comm, job->root, slot(job, job->root), job->operation == SCATTER ? comm->rank * part : 0,
                   out, part);
        *bytes = part;
        return out;
    case ALL_TO_ALL_V:
    case BARRIER:
    case SEND:
    case RECV:
    case BATCH:
        break;
    }
    return NULL;
}

/* Fetches and keeps each part until all have read; then writes them where they belong. */
static bool exchange_v(const struct job *job)
{
    struct comm *comm = job->comm;
    size_t size = type_size(job->type);
    char *parts[MAX_RANKS] = {NULL};
    bool good = true;
    for (uint32_t r = 0; r < comm->nranks; r++) {
        const struct call *call = slot(job, r);
        if (call->counts[comm->rank] != job->recv_counts[r]) {
            char text[300];
            (void)snprintf(text, sizeof text,
                           "EI0005: arguments differ between ranks: AlltoAllV: rank %u sends %llu elements "
                           "to rank %u, which expects %llu",
                           r, (unsigned long long)call->counts[comm->rank], comm->rank,
                           (unsigned long long)job->recv_counts[r]);
            say(1, text);
            good = false;
            break;
        }
        parts[r] = scratch((size_t)job->recv_counts[r] * size);
        fetch_call(comm, r, call, call->displs[comm->rank] * size, parts[r],
                   (size_t)job->recv_counts[r] * size);
    }
    atomic_store(&slot(job, comm->rank)->read, job->number);
    good = good && wait_all(job, true);
    for (uint32_t r = 0; r < comm->nranks; r++) {
        if (good && job->recv_counts[r] != 0) {
            (void)memcpy((char *)fake_at(job->recv) + job->recv_displs[r] * size, parts[r],
                         (size_t)job->recv_counts[r] * size);
        }
        free(parts[r]);
    }
    return good;
}

static int failed(struct comm *comm)
{
    atomic_store(&comm->failed, TASK_TIMEOUT);
    return TASK_TIMEOUT;
}

/* A communicator that failed fails on: its later tasks do not wait. */
static int run_collective(void *arg)
{
    struct job *job = arg;
    struct comm *comm = job->comm;
    if (atomic_load(&comm->failed) != 0) {
        return atomic_load(&comm->failed);
    }
    struct call *mine = slot(job, comm->rank);
    if (!job->absent) {
        uint64_t offset = 0;
        const void *data = job->operation == BROADCAST ? job->recv : job->send;
        mine->file = fake_file_of(data, &offset);
        mine->offset = offset;
        mine->pid = (int)getpid();
        mine->operation = (int)job->operation;
        mine->type = job->type;
        mine->reduce = job->reduce;
        mine->root = (int)job->root;
        mine->count = job->count;
        (void)memcpy(mine->counts, job->send_counts, sizeof mine->counts);
        (void)memcpy(mine->displs, job->send_displs, sizeof mine->displs);
        atomic_store(&mine->ready, job->number);
    }
    if (!wait_all(job, false)) {
        return failed(comm);
    }
    for (uint32_t r = 0; r < comm->nranks; r++) {
        if (!agrees(job, r)) {
            return failed(comm);
        }
    }
    if (job->operation == ALL_TO_ALL_V) {
        return exchange_v(job) ? 0 : failed(comm);
    }
    size_t bytes = 0;
    char *result = collect(job, &bytes);
    atomic_store(&mine->read, job->number);
    bool good = wait_all(job, true);
    if (good && bytes != 0) {
        (void)memcpy(fake_at(job->recv), result, bytes);
    }
    free(result);
    return good ? 0 : failed(comm);
}

/* ---- In the task: pairs ------------------------------------------------------------------------------ */

/* In pair_call.read: the receiver wanted something else. */
static const uint64_t refused = UINT64_C(1) << 63;

static bool wait_pair(const struct comm *comm, const _Atomic uint64_t *word, uint64_t number,
                      const char *what, uint32_t peer)
{
    double seconds = exec_timeout_s(), until = hccl_now_s() + seconds;
    for (int turns = 0; atomic_load(word) < number; hccl_pause(&turns)) {
        if (seconds >= 0 && hccl_now_s() > until) {
            char text[300];
            (void)snprintf(
                text, sizeof text,
                "EI0002: notify wait timed out (HCCL_EXEC_TIMEOUT): rank %u waits in %s for rank %u",
                comm->rank, what, peer);
            say(0, text);
            return false;
        }
    }
    return true;
}

static void post(struct comm *comm, const struct item *item)
{
    struct pair_call *call = &comm->meeting->pairs[comm->rank][item->peer][item->number % PAIR_RING];
    uint64_t offset = 0;
    call->file = fake_file_of(item->buf, &offset);
    call->offset = offset;
    call->pid = (int)getpid();
    call->type = item->type;
    call->count = item->count;
    atomic_store(&call->ready, item->number);
}

static bool receive(struct comm *comm, const struct item *item)
{
    struct pair_call *call = &comm->meeting->pairs[item->peer][comm->rank][item->number % PAIR_RING];
    if (!wait_pair(comm, &call->ready, item->number, "Recv", item->peer)) {
        return false;
    }
    if (call->type != item->type || call->count != item->count) {
        char text[300];
        (void)snprintf(
            text, sizeof text,
            "EI0005: arguments differ between ranks: rank %u sends %llu %s, rank %u receives %llu %s",
            item->peer, (unsigned long long)call->count, type_name(call->type), comm->rank,
            (unsigned long long)item->count, type_name(item->type));
        say(1, text);
        atomic_store(&call->read, item->number | refused);
        return false;
    }
    fetch(comm, item->peer, call->pid, call->file, call->offset, fake_at(item->buf),
          (size_t)item->count * type_size(item->type));
    atomic_store(&call->read, item->number);
    return true;
}

static int run_pairs(void *arg)
{
    struct job *job = arg;
    struct comm *comm = job->comm;
    if (atomic_load(&comm->failed) != 0) {
        return atomic_load(&comm->failed);
    }
    for (uint32_t i = 0; i < job->nitems && !job->absent; i++) {
        if (job->items[i].recv == 0) {
            post(comm, &job->items[i]);
        }
    }
    for (uint32_t i = 0; i < job->nitems; i++) {
        if (job->items[i].recv != 0 && !receive(comm, &job->items[i])) {
            return failed(comm);
        }
    }
    for (uint32_t i = 0; i < job->nitems; i++) {
        const struct item *item = &job->items[i];
        if (item->recv != 0) {
            continue;
        }
        const _Atomic uint64_t *read =
            &comm->meeting->pairs[comm->rank][item->peer][item->number % PAIR_RING].read;
        if (!wait_pair(comm, read, item->number, "Send", item->peer)) {
            return failed(comm);
        }
        if ((atomic_load(read) & refused) != 0) {
            char text[300];
            (void)snprintf(text, sizeof text,
                           "EI0005: arguments differ between ranks: rank %u sends %llu %s, and rank %u "
                           "receives something else",
                           comm->rank, (unsigned long long)item->count, type_name(item->type), item->peer);
            say(1, text);
            return failed(comm);
        }
    }
    return 0;
}

static void job_done(void *arg)
{
    struct job *job = arg;
    (void)atomic_fetch_sub(&job->comm->pending, 1);
    free(job->items);
}

/* ---- The calls --------------------------------------------------------------------------------------- */

static int null(const char *name, const char *what)
{
    return fake_code(FAKE_R_HCCL_NULL, H_PTR, "EI0003: %s: %s is NULL", name, what);
}

/* 0, or the error of what every call's count, type and buffer must be. */
static int check_data(const char *name, const void *buffer, const char *what, uint64_t count, int type)
{
    if (type_size(type) == 0) {
        return fake_code(FAKE_R_HCCL_TYPE, H_PARA, "EI0003: %s: data type %d", name, type);
    }
    if (count > 0x7FFFFFFFFu) {
        return fake_code(FAKE_R_HCCL_COUNT, H_PARA, "EI0003: %s: count %llu", name,
                         (unsigned long long)count);
    }
    if (buffer == NULL) {
        return null(name, what);
    }
    if ((uintptr_t)buffer % type_size(type) != 0) {
        fake_trap(FAKE_R_HCCL_ALIGN, "%s: %s at %p is not aligned to %s", name, what, buffer,
                  type_name(type));
        return H_PARA;
    }
    return 0;
}

static int check_reduce(const char *name, int type, int op)
{
    if (op < 0 || op >= R_OPS || type_size(type) == 0) {
        return fake_code(FAKE_R_HCCL_TYPE, H_PARA, "EI0003: %s: reduction %d of data type %d", name, op,
                         type);
    }
    bool has = type == T_INT8 || type == T_INT16 || type == T_INT32 || type == T_INT64 || type == T_FP16 ||
               type == T_FP32 || type == T_BFP16;
    if (fake_soc_is("Ascend950")) {
        has = has || type == T_UINT64 || type == T_FP64;
    }
    if (!has || (op == R_PROD && (type == T_INT16 || type == T_BFP16))) {
        return fake_code(FAKE_R_HCCL_REDUCE, H_NOT_SUPPORT, "EI0003: %s: reduction %d of %s", name, op,
                         type_name(type));
    }
    return 0;
}

/* Queues the job; the call is inside of its communicator. */
static int start(const char *name, struct job *job, const struct fake_range *ranges, size_t nranges,
                 void *stream)
{
    struct comm *comm = job->comm;
    struct fake_range *all = calloc(nranges + 1, sizeof all[0]);
    if (all == NULL) {
        abort();
    }
    all[0] = (struct fake_range){comm->buffer, 1, FAKE_READ, "buffer of the communicator"};
    for (size_t i = 0; i < nranges; i++) {
        all[i + 1] = ranges[i];
    }
    (void)atomic_fetch_add(&comm->pending, 1);
    job->absent = fake_fault("hccl_absent");
    bool pairs = job->operation == SEND || job->operation == RECV || job->operation == BATCH;
    if (!pairs) {
        job->number = ++comm->calls;
    }
    int code = fake_launch(name, stream, all, nranges + 1, pairs ? run_pairs : run_collective, job,
                           sizeof *job, job_done);
    free(all);
    return code == 0 ? 0 : H_RUNTIME;
}

/* A collective with at most one buffer each way. recv_parts, send_parts: how many times `count` elements each
 * buffer holds. */
static int collective(const char *name, enum operation operation, const void *send, uint64_t send_parts,
                      void *recv, uint64_t recv_parts, uint64_t count, int type, int reduce, uint32_t root,
                      void *handle, void *stream)
{
    struct comm *comm = NULL;
    if (operation == ALL_REDUCE && count == 0) { /* before all else */
        fake_count(name);
        return 0;
    }
    if (stream == NULL) {
        fake_count(name);
        return null(name, "stream");
    }
    int code = comm_enter(name, handle, &comm);
    if (code != 0) {
        return code;
    }
    uint64_t n = comm->nranks;
    bool receives = operation != REDUCE || comm->rank == root;
    bool sends = operation != SCATTER || comm->rank == root;
    if (root >= n) {
        code =
            fake_code(FAKE_R_HCCL_RANKS, H_PARA, "EI0003: %s: root %u of %u ranks", name, root, comm->nranks);
    }
    if (code == 0 && reduce >= 0) {
        code = check_reduce(name, type, reduce);
    }
    if (code == 0 && count != 0 && operation != BROADCAST && sends) {
        code = check_data(name, send, "sendBuf", count, type);
    }
    if (code == 0 && count != 0 && receives) {
        code = check_data(name, recv, operation == BROADCAST ? "buf" : "recvBuf", count, type);
    }
    if (code == 0 && count != 0) {
        size_t part = (size_t)count * type_size(type);
        struct job job = {.comm = comm,
                          .operation = operation,
                          .send = sends ? send : comm->buffer,
                          .recv = recv,
                          .count = count,
                          .type = type,
                          .reduce = reduce,
                          .root = root};
        struct fake_range ranges[] = {{operation == BROADCAST || !sends ? NULL : send,
                                       part * (send_parts == 0 ? n : send_parts), FAKE_READ, "sendBuf"},
                                      {receives ? recv : NULL, part * (recv_parts == 0 ? n : recv_parts),
                                       operation == BROADCAST && comm->rank == root ? FAKE_READ : FAKE_WRITE,
                                       operation == BROADCAST ? "buf" : "recvBuf"}};
        if (n > 1 || send != recv) {
            code = start(name, &job, ranges, 2, stream);
        }
    }
    comm_leave(comm);
    return code;
}

enum { NO_REDUCE = -1, BY_RANKS = 0 };

HCCL int HcclAllReduce(void *sendBuf, void *recvBuf, uint64_t count, int dataType, int op, void *comm,
                       void *stream)
{
    return collective("HcclAllReduce", ALL_REDUCE, sendBuf, 1, recvBuf, 1, count, dataType,
                      op < 0 ? R_OPS : op, 0, comm, stream);
}

HCCL int HcclBroadcast(void *buf, uint64_t count, int dataType, uint32_t root, void *comm, void *stream)
{
    return collective("HcclBroadcast", BROADCAST, NULL, 1, buf, 1, count, dataType, NO_REDUCE, root, comm,
                      stream);
}

HCCL int HcclReduceScatter(void *sendBuf, void *recvBuf, uint64_t recvCount, int dataType, int op, void *comm,
                           void *stream)
{
    return collective("HcclReduceScatter", REDUCE_SCATTER, sendBuf, BY_RANKS, recvBuf, 1, recvCount, dataType,
                      op < 0 ? R_OPS : op, 0, comm, stream);
}

HCCL int HcclAllGather(void *sendBuf, void *recvBuf, uint64_t sendCount, int dataType, void *comm,
                       void *stream)
{
    return collective("HcclAllGather", ALL_GATHER, sendBuf, 1, recvBuf, BY_RANKS, sendCount, dataType,
                      NO_REDUCE, 0, comm, stream);
}

HCCL int HcclReduce(void *sendBuf, void *recvBuf, uint64_t count, int dataType, int op, uint32_t root,
                    void *comm, void *stream)
{
    return collective("HcclReduce", REDUCE, sendBuf, 1, recvBuf, 1, count, dataType, op < 0 ? R_OPS : op,
                      root, comm, stream);
}

HCCL int HcclScatter(void *sendBuf, void *recvBuf, uint64_t recvCount, int dataType, uint32_t root,
                     void *comm, void *stream)
{
    return collective("HcclScatter", SCATTER, sendBuf, BY_RANKS, recvBuf, 1, recvCount, dataType, NO_REDUCE,
                      root, comm, stream);
}

HCCL int HcclAlltoAll(const void *sendBuf, uint64_t sendCount, int sendType, const void *recvBuf,
                      uint64_t recvCount, int recvType, void *comm, void *stream)
{
    if (sendBuf != NULL && sendBuf == recvBuf) {
        return fake_code(FAKE_R_HCCL_SAME_BUFFER, H_PARA,
                         "EI0003: HcclAlltoAll: sendBuf and recvBuf are the same");
    }
    if (sendCount != recvCount || sendType != recvType) {
        return fake_code(FAKE_R_HCCL_UNEQUAL, H_PARA,
                         "EI0003: HcclAlltoAll: sends %llu of type %d, receives %llu of type %d",
                         (unsigned long long)sendCount, sendType, (unsigned long long)recvCount, recvType);
    }
    return collective("HcclAlltoAll", ALL_TO_ALL, sendBuf, BY_RANKS, (void *)(uintptr_t)recvBuf, BY_RANKS,
                      sendCount, sendType, NO_REDUCE, 0, comm, stream);
}

/* Elements from the start of the buffer to the end of its last part; copies the host's arrays. */
static uint64_t take_parts(uint32_t nranks, const void *counts, const void *displs,
                           uint64_t out_counts[MAX_RANKS], uint64_t out_displs[MAX_RANKS])
{
    uint64_t end = 0;
    (void)memcpy(out_counts, counts, nranks * sizeof out_counts[0]);
    (void)memcpy(out_displs, displs, nranks * sizeof out_displs[0]);
    for (uint32_t r = 0; r < nranks; r++) {
        end = out_counts[r] != 0 && out_counts[r] + out_displs[r] > end ? out_counts[r] + out_displs[r] : end;
    }
    return end;
}

HCCL int HcclAlltoAllV(const void *sendBuf, const void *sendCounts, const void *sdispls, int sendType,
                       const void *recvBuf, const void *recvCounts, const void *rdispls, int recvType,
                       void *handle, void *stream)
{
    static const char name[] = "HcclAlltoAllV";
    if (stream == NULL || sendCounts == NULL || sdispls == NULL || recvCounts == NULL || rdispls == NULL) {
        return null(name, stream == NULL ? "stream" : "an array of counts or displacements");
    }
    if (sendBuf != NULL && sendBuf == recvBuf) {
        return fake_code(FAKE_R_HCCL_SAME_BUFFER, H_PARA, "EI0003: %s: sendBuf and recvBuf are the same",
                         name);
    }
    struct comm *comm = NULL;
    int code = comm_enter(name, handle, &comm);
    if (code != 0) {
        return code;
    }
    struct job job = {.comm = comm,
                      .operation = ALL_TO_ALL_V,
                      .send = sendBuf,
                      .recv = (void *)(uintptr_t)recvBuf,
                      .type = sendType};
    uint64_t send_end = take_parts(comm->nranks, sendCounts, sdispls, job.send_counts, job.send_displs);
    uint64_t recv_end = take_parts(comm->nranks, recvCounts, rdispls, job.recv_counts, job.recv_displs);
    job.send = send_end == 0 ? comm->buffer : sendBuf;
    if (sendType != recvType) {
        code = fake_code(FAKE_R_HCCL_UNEQUAL, H_PARA, "EI0003: %s: sends type %d, receives type %d", name,
                         sendType, recvType);
    }
    code = code == 0 ? check_data(name, send_end == 0 ? comm->buffer : sendBuf, "sendBuf", send_end, sendType)
                     : code;
    code = code == 0 ? check_data(name, recv_end == 0 ? comm->buffer : recvBuf, "recvBuf", recv_end, recvType)
                     : code;
    if (code == 0) {
        size_t size = type_size(sendType);
        struct fake_range ranges[] = {{sendBuf, (size_t)send_end * size, FAKE_READ, "sendBuf"},
                                      {recvBuf, (size_t)recv_end * size, FAKE_WRITE, "recvBuf"}};
        code = start(name, &job, ranges, 2, stream);
    }
    comm_leave(comm);
    return code;
}

HCCL int HcclBarrier(void *handle, void *stream)
{
    if (stream == NULL) {
        return null("HcclBarrier", "stream");
    }
    struct comm *comm = NULL;
    int code = comm_enter("HcclBarrier", handle, &comm);
    if (code == 0) {
        struct job job = {.comm = comm, .operation = BARRIER, .send = comm->buffer};
        code = start("HcclBarrier", &job, NULL, 0, stream);
        comm_leave(comm);
    }
    return code;
}

struct send_recv_item {
    int type; /* 0 send, 1 receive */
    void *buf;
    uint64_t count;
    int data_type;
    uint32_t remote_rank;
};

static int start_pairs(const char *name, enum operation operation, struct comm *comm,
                       const struct send_recv_item *list, uint32_t n, void *stream)
{
    struct job job = {
        .comm = comm, .operation = operation, .nitems = n, .items = calloc(n, sizeof job.items[0])};
    struct fake_range *ranges = calloc(n + 1, sizeof ranges[0]);
    if (job.items == NULL || ranges == NULL) {
        abort();
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct send_recv_item *item = &list[i];
        uint64_t number =
            item->type == 0 ? ++comm->sent[item->remote_rank] : ++comm->received[item->remote_rank];
        job.items[i] =
            (struct item){item->type, item->buf, item->count, number, item->data_type, item->remote_rank};
        ranges[i] = (struct fake_range){item->buf, (size_t)item->count * type_size(item->data_type),
                                        item->type == 0 ? FAKE_READ : FAKE_WRITE,
                                        item->type == 0 ? "sendBuf" : "recvBuf"};
    }
    int code = start(name, &job, ranges, n, stream);
    free(ranges);
    return code;
}

static int pairs(const char *name, enum operation operation, const struct send_recv_item *list, uint32_t n,
                 void *handle, void *stream)
{
    struct comm *comm = NULL;
    if (stream == NULL) {
        return null(name, "stream");
    }
    int code = comm_enter(name, handle, &comm);
    if (code != 0) {
        return code;
    }
    uint32_t counted = 0;
    for (uint32_t i = 0; i < n && code == 0; i++) {
        if (list[i].remote_rank >= comm->nranks || (list[i].remote_rank == comm->rank && comm->nranks > 1)) {
            code = fake_code(FAKE_R_HCCL_RANKS, H_PARA, "EI0003: %s: peer %u of %u ranks, from rank %u", name,
                             list[i].remote_rank, comm->nranks, comm->rank);
        } else if (list[i].type != 0 && list[i].type != 1) {
            code = fake_code(FAKE_R_HCCL_TYPE, H_PARA, "EI0003: %s: kind %d of an item", name, list[i].type);
        } else if (list[i].count != 0) {
            code = check_data(name, list[i].buf, "a buffer", list[i].count, list[i].data_type);
            counted++;
        }
    }
    if (code == 0 && counted != 0 && comm->nranks > 1) {
        code = start_pairs(name, operation, comm, list, n, stream);
    }
    comm_leave(comm);
    return code;
}

HCCL int HcclSend(void *sendBuf, uint64_t count, int dataType, uint32_t destRank, void *comm, void *stream)
{
    struct send_recv_item item = {0, sendBuf, count, dataType, destRank};
    return pairs("HcclSend", SEND, &item, 1, comm, stream);
}

HCCL int HcclRecv(void *recvBuf, uint64_t count, int dataType, uint32_t srcRank, void *comm, void *stream)
{
    struct send_recv_item item = {1, recvBuf, count, dataType, srcRank};
    return pairs("HcclRecv", RECV, &item, 1, comm, stream);
}

HCCL int HcclBatchSendRecv(struct send_recv_item *sendRecvInfo, uint32_t itemNum, void *comm, void *stream)
{
    if (sendRecvInfo == NULL) {
        return null("HcclBatchSendRecv", "sendRecvInfo");
    }
    return pairs("HcclBatchSendRecv", BATCH, sendRecvInfo, itemNum, comm, stream);
}
