/* SPDX-License-Identifier: Apache-2.0 */
/* What comm_calls.c shares with engines that have collectives of their own: the end of a call, the end of those that were enqueued on a device, and
 * a world that breaks. */
#include <inttypes.h>

#include "comm/comm_internal.h"

enum { BLAME_WAIT_MS = 2000 };

/* The first rank that notices a loss writes it to the store before it closes its connections; whoever notices only that,
 * reads there who was first. So all ranks name the same culprit. */
static void find_first_cause(ct_bootstrap *boot, char *text, size_t size)
{
    int64_t n;
    void *value = NULL;
    size_t value_size;
    if (ct_bootstrap_add(boot, "comm/n_broken", 1, &n, NULL) != CT_OK) {
        return;
    }
    if (n == 1) {
        ct_status st = ct_bootstrap_set(boot, "comm/broken", text, strlen(text), NULL);
        (void)st; /* where it fails the others know less, and still that we are gone */
    } else if (ct_bootstrap_get(boot, "comm/broken", BLAME_WAIT_MS, &value, &value_size, NULL) == CT_OK) {
        (void)snprintf(text, size, "%.480s", (const char *)value);
        ct_alloc_free(ct_bootstrap_alloc(boot), value);
    }
}

void cti_comm_break(cti_comm_world *world, ct_status status, const char *text)
{
    char cause[sizeof world->broken_text];
    (void)snprintf(cause, sizeof cause, "%.500s", text);
    pthread_mutex_lock(&world->lock);
    bool first = world->broken == CT_OK;
    if (first) {
        world->broken = status;
        memcpy(world->broken_text, cause, sizeof cause);
    }
    pthread_mutex_unlock(&world->lock);
    if (first) {
        find_first_cause(world->boot, cause, sizeof cause);
        pthread_mutex_lock(&world->lock);
        memcpy(world->broken_text, cause, sizeof cause);
        pthread_mutex_unlock(&world->lock);
        world->engine->abort(world->ctx); /* first, so that the others notice */
        const ct_status st = cti_recorder_dump(world->recorder, cause, NULL);
        (void)st; /* a disk that takes nothing must not hide the cause */
    }
}

ct_status cti_comm_fail_broken(cti_comm_world *world, const cti_comm_call *call, ct_err *err)
{
    char text[sizeof world->broken_text];
    pthread_mutex_lock(&world->lock);
    ct_status status = world->broken;
    memcpy(text, world->broken_text, sizeof text);
    pthread_mutex_unlock(&world->lock);
    return CT_FAIL(err, status, "%s in group '%s' of %d ranks: %s", ct_comm_op_name(call->op), call->comm->name,
                   call->comm->desc.size, text);
}

static bool is_broken(cti_comm_world *world)
{
    pthread_mutex_lock(&world->lock);
    const bool broken = world->broken != CT_OK;
    pthread_mutex_unlock(&world->lock);
    return broken;
}

ct_status cti_comm_begin_own(cti_comm_call *call, ct_err *err)
{
    cti_comm_world *world = call->comm->world;
    if (world->engine->device == NULL || !is_broken(world)) {
        return CT_OK;
    }
    cti_recorder_end(world->recorder, call->record, false);
    return cti_comm_fail_broken(world, call, err);
}

ct_status cti_comm_end_own(const cti_comm_call *call, ct_status status, const ct_err *why, int64_t moved, ct_err *err)
{
    cti_comm_world *world = call->comm->world;
    if (status == CT_OK) {
        call->comm->stats.op[call->op].sent_bytes += moved;
        call->comm->stats.op[call->op].received_bytes += moved;
        if (world->engine->device == NULL) {
            cti_recorder_end(world->recorder, call->record, true);
            return CT_OK;
        }
        world->last_enqueued = (struct cti_enqueued){call->comm, call->op, call->number + 1, call->record};
        if (world->n_enqueued++ == 0) {
            world->first_enqueued = world->last_enqueued;
        }
        return CT_OK;
    }
    if (world->engine->device != NULL && (status == CT_ERR_PEER || status == CT_ERR_TIMEOUT || status == CT_ERR_BACKEND)) {
        cti_comm_break(world, status, why->message);
    }
    cti_recorder_end(world->recorder, call->record, false);
    return CT_FAIL(err, status, "%s in group '%s' of %d ranks: %.1500s", ct_comm_op_name(call->op), call->comm->name, call->comm->desc.size,
                   why->message);
}

static void add_enqueued(char *out, size_t size, const struct cti_enqueued *e)
{
    (void)snprintf(out, size, "%s %" PRIu64 " of '%s'", ct_comm_op_name(e->op), e->number, e->comm != NULL ? e->comm->name : "a closed group");
}

ct_status ct_comm_settle(ct_comm *comm, ct_status status, ct_err *err)
{
    cti_comm_world *world = comm->world;
    if (world->engine->device == NULL || (world->n_enqueued == 0 && status == CT_OK)) {
        return status;
    }
    const int64_t n = world->n_enqueued;
    world->n_enqueued = 0;
    cti_recorder_end_from(world->recorder, world->first_enqueued.record, status == CT_OK);
    if (status != CT_ERR_PEER && status != CT_ERR_TIMEOUT && status != CT_ERR_BACKEND) {
        return status;
    }
    char first[120], last[120], which[320];
    ct_err unsaid = {0};
    if (err == NULL || err->status == CT_OK) {
        err = &unsaid;
        (void)CT_FAIL(err, status, "%s", ct_status_sentence(status));
    }
    if (n > 0) {
        add_enqueued(first, sizeof first, &world->first_enqueued);
        add_enqueued(last, sizeof last, &world->last_enqueued);
        (void)snprintf(which, sizeof which, "%s%s%s", first, n > 1 ? " to " : "", n > 1 ? last : "");
        ct_err_prefix(err, "rank %d, with %s on the device's streams (%" PRId64 " in all)", ct_bootstrap_place(world->boot)->rank, which, n);
    }
    cti_comm_break(world, status, err->message);
    return status;
}
