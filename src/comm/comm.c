/* SPDX-License-Identifier: Apache-2.0 */
/* Groups: creation and facts. Their calls: comm_calls.c. */
#include <inttypes.h>

#include "base/hash.h"
#include "base/num.h"
#include "base/str.h"
#include "comm/comm_internal.h"

enum { DEFAULT_TIMEOUT_MS = 300000 };

const char *ct_comm_op_name(ct_comm_op op)
{
    static const char *const names[] = {
#define CT_COMM_OP_NAME(NAME, name) [CT_COMM_##NAME] = #name,
        CT_COMM_OP_LIST(CT_COMM_OP_NAME)
#undef CT_COMM_OP_NAME
    };
    return (unsigned)op < CT_COMM_OP_COUNT ? names[op] : "unknown";
}

/* ---- creation ---- */

static void free_group(ct_comm *comm)
{
    const ct_alloc *alloc = comm->world->alloc;
    ct_alloc_free(alloc, comm->world_ranks);
    ct_alloc_free(alloc, comm->n_sent);
    ct_alloc_free(alloc, comm->n_got);
    ct_alloc_free(alloc, comm->messages);
    ct_alloc_free(alloc, comm->scratch);
    ct_alloc_free(alloc, comm->parts);
    ct_alloc_free(alloc, comm->counts);
    ct_alloc_free(alloc, comm);
}

static uint64_t group_id(const char *name, const int *world_ranks, int n)
{
    return cti_hash64(world_ranks, (size_t)n * sizeof *world_ranks, cti_hash64(name, strlen(name), 0));
}

/* The struct with all but the engine's group. */
static ct_status make_group(cti_comm_world *world, const char *name, const int *world_ranks, int n, int rank,
                            ct_comm **out, ct_err *err)
{
    ct_comm *comm = CT_NEW(world->alloc, ct_comm, err);
    if (comm == NULL) {
        return CT_ERR_MEMORY;
    }
    comm->world = world;
    (void)snprintf(comm->name, sizeof comm->name, "%s", name);
    comm->world_ranks = CT_NEW_ARRAY(world->alloc, int, n, err);
    comm->n_sent = CT_NEW_ARRAY(world->alloc, uint64_t, n, err);
    comm->n_got = CT_NEW_ARRAY(world->alloc, uint64_t, n, err);
    comm->parts = CT_NEW_ARRAY(world->alloc, const void *, n, err);
    comm->counts = CT_NEW_ARRAY(world->alloc, int64_t, n, err);
    if (comm->world_ranks == NULL || comm->n_sent == NULL || comm->n_got == NULL || comm->parts == NULL ||
        comm->counts == NULL || cti_comm_reserve_messages(comm, 2 * n, err) != CT_OK) {
        free_group(comm);
        return CT_ERR_MEMORY;
    }
    memcpy(comm->world_ranks, world_ranks, (size_t)n * sizeof *world_ranks);
    comm->desc = (ct_comm_group_desc){.name = comm->name,
                                      .world_ranks = comm->world_ranks,
                                      .size = n,
                                      .rank = rank,
                                      .id = group_id(name, world_ranks, n),
                                      .is_world = world->groups == NULL,
                                      .is_deterministic = world->is_deterministic};
    *out = comm;
    return CT_OK;
}

/* Where the engine has its own collectives, it also needs groups of one (their memory is not ours to copy). */
static bool engine_wants_group(const cti_comm_world *world, int n)
{
    return world->engine->group_open != NULL && (n > 1 || world->engine->all_reduce != NULL);
}

static ct_status open_group(ct_comm *comm, ct_err *err)
{
    cti_comm_world *world = comm->world;
    pthread_mutex_lock(&world->lock);
    int64_t timeout_ms = world->timeout_ms;
    bool taken = false;
    for (const ct_comm *g = world->groups; g != NULL; g = g->next) {
        taken = taken || g->desc.id == comm->desc.id;
    }
    if (!taken) {
        comm->next = world->groups;
        world->groups = comm;
        comm->recorder_group = cti_recorder_add_group(world->recorder, comm->name, comm->desc.id, comm->world_ranks, comm->desc.size,
                                                      comm->desc.rank);
    }
    pthread_mutex_unlock(&world->lock);
    if (taken) {
        return CT_FAIL(err, CT_ERR_STATE, "a group '%s' of the same %d ranks is open already", comm->name,
                       comm->desc.size);
    }
    if (engine_wants_group(world, comm->desc.size)) {
        return world->engine->group_open(world->ctx, &comm->desc, timeout_ms, &comm->group, err);
    }
    return CT_OK;
}

static void close_group(ct_comm *comm)
{
    cti_comm_world *world = comm->world;
    if (comm->group != NULL && world->engine->group_close != NULL) {
        world->engine->group_close(world->ctx, comm->group);
    }
    pthread_mutex_lock(&world->lock);
    for (ct_comm **g = &world->groups; *g != NULL; g = &(*g)->next) {
        if (*g == comm) {
            *g = comm->next;
            break;
        }
    }
    world->first_enqueued.comm = world->first_enqueued.comm == comm ? NULL : world->first_enqueued.comm;
    world->last_enqueued.comm = world->last_enqueued.comm == comm ? NULL : world->last_enqueued.comm;
    pthread_mutex_unlock(&world->lock);
}

static void free_world(cti_comm_world *world)
{
    world->engine->close(world->ctx);
    if (!world->shares_recorder) {
        cti_recorder_destroy(&world->recorder);
    }
    (void)pthread_mutex_destroy(&world->lock);
    ct_alloc_free(world->alloc, world);
}

static ct_status make_world_group(cti_comm_world *world, const ct_place *place, ct_comm **out_comm, ct_err *err)
{
    int *ranks = CT_NEW_ARRAY(world->alloc, int, place->world_size, err);
    if (ranks == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int r = 0; r < place->world_size; r++) {
        ranks[r] = r;
    }
    ct_comm *comm = NULL;
    const char *name = world->engine->device != NULL ? world->engine->name : "world"; /* beside the host's world, in what is recorded */
    ct_status st = make_group(world, name, ranks, place->world_size, place->rank, &comm, err);
    ct_alloc_free(world->alloc, ranks);
    CT_TRY(st);
    st = open_group(comm, err);
    if (st != CT_OK) {
        close_group(comm);
        free_group(comm);
        return st;
    }
    *out_comm = comm;
    return CT_OK;
}

static ct_status check_engine(const ct_comm_engine *engine, int world_size, ct_err *err)
{
    if (engine->abi != CT_COMM_ABI || engine->size_bytes != sizeof *engine) {
        return CT_FAIL(err, CT_ERR_BACKEND, "comm engine '%s' speaks ABI %u (%u bytes), this program %u (%zu bytes)",
                       engine->name, engine->abi, engine->size_bytes, CT_COMM_ABI, sizeof *engine);
    }
    if (engine->max_world_size != 0 && world_size > engine->max_world_size) {
        return CT_FAIL(err, CT_ERR_STATE, "WORLD_SIZE is %d, but the comm engine '%s' connects %d process only",
                       world_size, engine->name, engine->max_world_size);
    }
    return CT_OK;
}

ct_status ct_comm_world_create(const ct_alloc *alloc, const struct ct_comm_engine *engine, ct_bootstrap *boot,
                               const ct_comm_options *options, ct_comm **out_comm, ct_err *err)
{
    const ct_place *place = ct_bootstrap_place(boot);
    CT_TRY(check_engine(engine, place->world_size, err));
    cti_comm_world *world = CT_NEW(alloc, cti_comm_world, err);
    if (world == NULL) {
        return CT_ERR_MEMORY;
    }
    world->alloc = alloc;
    world->engine = engine;
    world->boot = boot;
    world->timeout_ms = options != NULL && options->timeout_ms > 0 ? options->timeout_ms : DEFAULT_TIMEOUT_MS;
    (void)pthread_mutex_init(&world->lock, NULL);
    world->is_deterministic = options != NULL && options->is_deterministic;
    ct_status st = CT_OK;
    if (options != NULL && options->record_with != NULL) {
        world->recorder = options->record_with->world->recorder;
        world->shares_recorder = true;
    } else if (options != NULL && options->n_records > 0 && place->world_size > 1) {
        st = cti_recorder_create(alloc, place, engine->name, options->n_records, options->record_path != NULL ? options->record_path : "",
                                 options->version != NULL ? options->version : "", &world->recorder, err);
        cti_recorder_limit(world->recorder, world->timeout_ms);
    }
    if (st == CT_OK) {
        st = engine->open(alloc, boot, world->timeout_ms, &world->ctx, err);
    }
    if (st == CT_OK) {
        st = make_world_group(world, place, out_comm, err);
    }
    if (st != CT_OK) {
        free_world(world);
    }
    return st;
}

static ct_status check_ranks(const ct_comm *parent, const char *name, const int *ranks, int n, int *out_rank,
                             ct_err *err)
{
    if (n < 1 || n > parent->desc.size) {
        return CT_FAIL(err, CT_ERR_RANGE, "group '%s': %d ranks, its parent '%s' has %d", name, n, parent->name,
                       parent->desc.size);
    }
    *out_rank = -1;
    for (int i = 0; i < n; i++) {
        if (ranks[i] < 0 || ranks[i] >= parent->desc.size) {
            return CT_FAIL(err, CT_ERR_RANGE, "group '%s': there is no rank %d in '%s' (0..%d)", name, ranks[i],
                           parent->name, parent->desc.size - 1);
        }
        for (int j = 0; j < i; j++) {
            if (ranks[j] == ranks[i]) {
                return CT_FAIL(err, CT_ERR_RANGE, "group '%s': rank %d is listed twice", name, ranks[i]);
            }
        }
        *out_rank = ranks[i] == parent->desc.rank ? i : *out_rank;
    }
    if (*out_rank < 0) {
        return CT_FAIL(err, CT_ERR_RANGE, "group '%s': this rank (%d of '%s') is not in the list", name,
                       parent->desc.rank, parent->name);
    }
    return CT_OK;
}

ct_status ct_comm_split(ct_comm *parent, const char *name, const int *ranks, int n, ct_comm **out_comm, ct_err *err)
{
    cti_comm_world *world = parent->world;
    int rank = -1;
    if (strlen(name) < 1 || strlen(name) >= sizeof parent->name) {
        return CT_FAIL(err, CT_ERR_RANGE, "the name of a group has 1..%zu bytes: '%.80s'", sizeof parent->name - 1, name);
    }
    CT_TRY(check_ranks(parent, name, ranks, n, &rank, err));
    int *world_ranks = CT_NEW_ARRAY(world->alloc, int, n, err);
    if (world_ranks == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int i = 0; i < n; i++) {
        world_ranks[i] = parent->world_ranks[ranks[i]];
    }
    ct_comm *comm = NULL;
    ct_status st = make_group(world, name, world_ranks, n, rank, &comm, err);
    ct_alloc_free(world->alloc, world_ranks);
    CT_TRY(st);
    st = open_group(comm, err);
    if (st != CT_OK) {
        close_group(comm);
        free_group(comm);
        return st;
    }
    *out_comm = comm;
    return CT_OK;
}

void ct_comm_destroy(ct_comm **comm)
{
    ct_comm *c = *comm;
    if (c == NULL) {
        return;
    }
    cti_comm_world *world = c->world;
    close_group(c);
    free_group(c);
    *comm = NULL;
    if (world->groups == NULL) {
        free_world(world);
    }
}

/* ---- facts ---- */

int ct_comm_rank(const ct_comm *comm)
{
    return comm->desc.rank;
}

int ct_comm_size(const ct_comm *comm)
{
    return comm->desc.size;
}

int ct_comm_world_rank_of(const ct_comm *comm, int rank)
{
    return rank >= 0 && rank < comm->desc.size ? comm->world_ranks[rank] : -1;
}

const char *ct_comm_name(const ct_comm *comm)
{
    return comm->name;
}

const char *ct_comm_engine_name(const ct_comm *comm)
{
    return comm->world->engine->name;
}

const char *ct_comm_device(const ct_comm *comm)
{
    return comm->world->engine->device;
}

void ct_comm_set_timeout(ct_comm *comm, int64_t timeout_ms)
{
    pthread_mutex_lock(&comm->world->lock);
    comm->world->timeout_ms = cti_max_i64(timeout_ms, 1);
    pthread_mutex_unlock(&comm->world->lock);
    cti_recorder_limit(comm->world->recorder, cti_max_i64(timeout_ms, 1));
}

void ct_comm_note(ct_comm *comm, int64_t step, const char *what)
{
    cti_recorder_note(comm->world->recorder, step, what);
}

void ct_comm_get_stats(const ct_comm *comm, ct_comm_stats *out_stats)
{
    *out_stats = comm->stats;
}
