/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of calls, in memory of our own or of the launcher's. */
#include "comm/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/str.h"
#include "comm/flight.h"

_Static_assert(sizeof(cti_record) == 64, "a record is a line of the cache");

struct cti_recorder {
    const ct_alloc *alloc; /* borrows */
    void *map;             /* owns; head, then the ring */
    size_t map_bytes;
    cti_recorder_head *head;
    cti_record *ring;
    pthread_mutex_t lock; /* guards head and ring */
};

/* Memory that the launcher made for us: an empty memfd that may be sealed, which a file of the user's never is. */
static bool is_for_us(int fd)
{
    struct stat st;
    return fd > 0 && fcntl(fd, F_GET_SEALS) == 0 && fstat(fd, &st) == 0 && st.st_size == 0;
}

static ct_status map_memory(cti_recorder *r, int fd, int64_t n_records, ct_err *err)
{
    const bool is_shared = is_for_us(fd);
    r->map_bytes = sizeof *r->head + (size_t)n_records * sizeof *r->ring;
    if (is_shared && ftruncate(fd, (off_t)r->map_bytes) != 0) {
        return CT_FAIL(err, CT_ERR_MEMORY, "no memory for the flight recorder's %" PRId64 " entries: %s", n_records, strerror(errno));
    }
    void *map = mmap(NULL, r->map_bytes, PROT_READ | PROT_WRITE, MAP_POPULATE | (is_shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS),
                     is_shared ? fd : -1, 0);
    if (is_shared) {
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* not for what this process starts */
    }
    if (map == MAP_FAILED) {
        return CT_FAIL(err, CT_ERR_MEMORY, "no memory for the flight recorder's %" PRId64 " entries: %s", n_records, strerror(errno));
    }
    r->map = map;
    r->head = map;
    r->ring = (cti_record *)(void *)((char *)map + sizeof *r->head);
    return CT_OK;
}

ct_status cti_recorder_create(const ct_alloc *alloc, const ct_place *place, const char *engine, int64_t n_records, const char *path,
                              const char *version, cti_recorder **out, ct_err *err)
{
    if (n_records < 1 || n_records > CTI_RECORDER_MAX_RECORDS) {
        return CT_FAIL(err, CT_ERR_RANGE, "the flight recorder keeps 1 to %d entries, found %" PRId64, CTI_RECORDER_MAX_RECORDS, n_records);
    }
    cti_recorder *r = CT_NEW(alloc, cti_recorder, err);
    if (r == NULL) {
        return CT_ERR_MEMORY;
    }
    r->alloc = alloc;
    const ct_status st = map_memory(r, place->watch_fd, n_records, err);
    if (st != CT_OK) {
        ct_alloc_free(alloc, r);
        return st;
    }
    (void)pthread_mutex_init(&r->lock, NULL);
    cti_recorder_head *h = r->head;
    h->head_bytes = sizeof *h;
    h->record_bytes = sizeof *r->ring;
    h->n_records = n_records;
    h->rank = place->rank;
    h->world_size = place->world_size;
    h->pid = (int32_t)getpid();
    h->restart = place->restart;
    h->since_ns = cti_now_ns();
    (void)snprintf(h->what, sizeof h->what, "starting"); /* fits; so do these, or they are cut */
    (void)snprintf(h->engine, sizeof h->engine, "%s", engine);
    (void)snprintf(h->version, sizeof h->version, "%s", version);
    (void)snprintf(h->run_id, sizeof h->run_id, "%s", place->run_id);
    (void)snprintf(h->path, sizeof h->path, "%s", strlen(path) < sizeof h->path ? path : "");
    if (gethostname(h->host, sizeof h->host - 1) != 0) {
        (void)snprintf(h->host, sizeof h->host, "this host");
    }
    atomic_thread_fence(memory_order_release);
    h->magic = CTI_RECORDER_MAGIC;
    *out = r;
    return CT_OK;
}

void cti_recorder_destroy(cti_recorder **rec)
{
    cti_recorder *r = *rec;
    if (r == NULL) {
        return;
    }
    (void)munmap(r->map, r->map_bytes);
    (void)pthread_mutex_destroy(&r->lock);
    ct_alloc_free(r->alloc, r);
    *rec = NULL;
}

int cti_recorder_add_group(cti_recorder *r, const char *name, uint64_t id, const int *world_ranks, int size, int rank)
{
    if (r == NULL) {
        return 0;
    }
    pthread_mutex_lock(&r->lock);
    cti_recorder_head *h = r->head;
    const int index = h->n_groups < CTI_RECORDER_MAX_GROUPS ? h->n_groups : CTI_RECORDER_MAX_GROUPS - 1;
    const bool is_rest = h->n_groups >= CTI_RECORDER_MAX_GROUPS;
    cti_recorder_group *g = &h->groups[index];
    *g = (cti_recorder_group){.id = is_rest ? 0 : id, .size = is_rest ? 0 : size, .rank = rank, .first = world_ranks[0],
                              .stride = size > 1 ? world_ranks[1] - world_ranks[0] : 1};
    for (int i = 1; i < size; i++) {
        g->stride = world_ranks[i] == g->first + i * g->stride ? g->stride : 0;
    }
    (void)snprintf(g->name, sizeof g->name, "%s", is_rest ? "others" : name); /* cut where too long */
    h->n_groups = index + 1;
    pthread_mutex_unlock(&r->lock);
    return index;
}

static cti_record *record_of(cti_recorder *r, uint64_t id)
{
    cti_record *e = &r->ring[(id - 1) % (uint64_t)r->head->n_records];
    return e->id == id ? e : NULL; /* NULL: the ring went round */
}

uint64_t cti_recorder_begin(cti_recorder *r, int group, ct_comm_op op, uint64_t number, int64_t bytes, ct_dtype dtype, int peer)
{
    if (r == NULL) {
        return 0;
    }
    const int64_t now = cti_now_ns();
    pthread_mutex_lock(&r->lock);
    cti_recorder_head *h = r->head;
    const uint64_t id = (uint64_t)h->n_begun + 1;
    cti_record *e = &r->ring[(id - 1) % (uint64_t)h->n_records];
    *e = (cti_record){.number = number,
                      .bytes = bytes,
                      .scheduled_ns = now,
                      .step = h->step,
                      .group = (int16_t)group,
                      .op = (uint8_t)op,
                      .dtype = (uint8_t)dtype,
                      .state = CTI_RECORD_SCHEDULED,
                      .peer = (int16_t)peer};
    e->id = id;
    h->n_begun = (int64_t)id;
    if (op != CT_COMM_EXCHANGE) {
        h->groups[group].last_number = number;
    }
    pthread_mutex_unlock(&r->lock);
    return id;
}

void cti_recorder_start(cti_recorder *r, uint64_t id)
{
    if (r == NULL || id == 0) {
        return;
    }
    const int64_t now = cti_now_ns();
    pthread_mutex_lock(&r->lock);
    cti_record *e = record_of(r, id);
    if (e != NULL) {
        e->started_ns = now;
        e->state = CTI_RECORD_STARTED;
    }
    pthread_mutex_unlock(&r->lock);
}

void cti_recorder_end(cti_recorder *r, uint64_t id, bool is_ok)
{
    if (r == NULL || id == 0) {
        return;
    }
    const int64_t now = cti_now_ns();
    pthread_mutex_lock(&r->lock);
    cti_record *e = record_of(r, id);
    if (e != NULL) {
        e->ended_ns = now;
        e->state = is_ok ? CTI_RECORD_COMPLETED : CTI_RECORD_FAILED;
    }
    pthread_mutex_unlock(&r->lock);
}

void cti_recorder_end_from(cti_recorder *r, uint64_t first, bool is_ok)
{
    if (r == NULL || first == 0) {
        return;
    }
    const int64_t now = cti_now_ns();
    pthread_mutex_lock(&r->lock);
    const uint64_t last = (uint64_t)r->head->n_begun, n = (uint64_t)r->head->n_records;
    for (uint64_t id = last >= n && first <= last - n ? last - n + 1 : first; id <= last; id++) {
        cti_record *e = record_of(r, id);
        if (e != NULL && (e->state == CTI_RECORD_SCHEDULED || e->state == CTI_RECORD_STARTED)) {
            e->ended_ns = now;
            e->state = is_ok ? CTI_RECORD_COMPLETED : CTI_RECORD_FAILED;
        }
    }
    pthread_mutex_unlock(&r->lock);
}

void cti_recorder_note(cti_recorder *r, int64_t step, const char *what)
{
    if (r == NULL) {
        return;
    }
    pthread_mutex_lock(&r->lock);
    if (step >= 0) {
        r->head->step = step;
    }
    if (what[0] != '\0') {
        (void)snprintf(r->head->what, sizeof r->head->what, "%s", what);
        r->head->since_ns = cti_now_ns();
    }
    pthread_mutex_unlock(&r->lock);
}

void cti_recorder_limit(cti_recorder *r, int64_t limit_ms)
{
    if (r != NULL) {
        pthread_mutex_lock(&r->lock);
        r->head->limit_ms = limit_ms;
        pthread_mutex_unlock(&r->lock);
    }
}

ct_status cti_recorder_dump(cti_recorder *r, const char *cause, ct_err *err)
{
    if (r == NULL) {
        return CT_OK;
    }
    pthread_mutex_lock(&r->lock);
    r->head->is_broken = 1;
    const bool is_first = !r->head->is_dumped && r->head->path[0] != '\0';
    r->head->is_dumped = 1;
    const ct_status st = is_first ? cti_flight_write(r->alloc, r->head, r->ring, "lost a rank", cause, err) : CT_OK;
    pthread_mutex_unlock(&r->lock);
    return st;
}
