/* SPDX-License-Identifier: Apache-2.0 */
/* A device with programs on it. */
#include "train/engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/pool.h"

static size_t workspace(void *ctx, const ct_node *node, const ct_launch *shapes_only)
{
    return ct_runtime_workspace(ctx, node, shapes_only);
}

static ct_status start_runtime(cti_engine *e, ct_comm *const comms[CT_MAX_AXES], ct_err *err)
{
    ct_runtime_graph graphs[4];
    CT_ASSERT(e->plan->n_graphs <= 4);
    for (int32_t i = 0; i < e->plan->n_graphs; i++) {
        const ct_graph_plan *p = &e->plan->graphs[i];
        graphs[i].graph = p->graph;
        graphs[i].offset = p->offset;
        memcpy(graphs[i].begin, p->begin, sizeof p->begin);
        memcpy(graphs[i].end, p->end, sizeof p->end);
    }
    const ct_runtime_layout layout = {graphs, e->plan->n_graphs, e->plan->total_bytes, e->plan->workspace_offset,
                                      e->plan->workspace_bytes};
    return ct_runtime_create(e->alloc, e->backend, e->device, &layout, comms, &e->runtime, err);
}

/* A device may have memory in use already: other processes' and its own driver's. */
static ct_status check_room(const cti_engine *e, ct_err *err)
{
    const int64_t free_bytes = e->facts.memory_free_bytes > 0 ? e->facts.memory_free_bytes : e->facts.memory_bytes;
    if (free_bytes <= 0 || e->plan->total_bytes <= free_bytes) {
        return CT_OK;
    }
    char want[32], have[32], left[48] = "";
    if (e->facts.memory_free_bytes > 0) {
        char bytes[32];
        (void)snprintf(left, sizeof left, ", %s of it free", cti_format_bytes(free_bytes, bytes));
    }
    return CT_FAIL(err, CT_ERR_MEMORY, "the plan needs %s, the device has %s%s", cti_format_bytes(e->plan->total_bytes, want),
                   cti_format_bytes(e->facts.memory_bytes, have), left);
}

ct_status cti_engine_create(const ct_alloc *alloc, const ct_backend *backend, const ct_plan_item *items, int32_t n_items,
                            ct_comm *const comms[CT_MAX_AXES], cti_engine **out_engine, ct_err *err)
{
    return cti_engine_create_on(alloc, backend, NULL, items, n_items, comms, out_engine, err);
}

ct_status cti_engine_create_on(const ct_alloc *alloc, const ct_backend *backend, void *device, const ct_plan_item *items, int32_t n_items,
                               ct_comm *const comms[CT_MAX_AXES], cti_engine **out_engine, ct_err *err)
{
    cti_engine *e = CT_NEW(alloc, cti_engine, err);
    if (e == NULL) {
        return CT_ERR_MEMORY;
    }
    e->alloc = alloc;
    e->backend = backend;
    e->device = device;
    e->is_device_borrowed = device != NULL;
    ct_status st = CT_OK;
    if (device == NULL) {
        CT_TRY_GOTO(st, backend->device_open(alloc, 0, &e->device, err), fail);
    }
    CT_TRY_GOTO(st, backend->device_facts(e->device, &e->facts, err), fail);
    for (int32_t i = 0; i < n_items; i++) {
        CT_TRY_GOTO(st, ct_runtime_check(backend, items[i].graph, err), fail);
    }
    CT_TRY_GOTO(st, ct_plan_create(alloc, items, n_items, workspace, (void *)(uintptr_t)backend, &e->plan, err), fail);
    CT_TRY_GOTO(st, check_room(e, err), fail);
    CT_TRY_GOTO(st, start_runtime(e, comms, err), fail);
    *out_engine = e;
    return CT_OK;
fail:
    cti_engine_destroy(&e);
    return st;
}

void cti_engine_destroy(cti_engine **engine)
{
    cti_engine *e = *engine;
    if (e == NULL) {
        return;
    }
    ct_runtime_destroy(&e->runtime);
    ct_plan_destroy(&e->plan);
    if (e->device != NULL && !e->is_device_borrowed) {
        e->backend->device_close(&e->device);
    }
    ct_alloc_free(e->alloc, e);
    *engine = NULL;
}

static ct_status find_flat(const cti_engine *e, const char *prefix, const char *group, const ct_buffer **out, ct_err *err)
{
    char name[512];
    if (snprintf(name, sizeof name, "%s.%s", prefix, group) >= (int)sizeof name) {
        return CT_FAIL(err, CT_ERR_RANGE, "buffer name '%s.%s' is too long", prefix, group);
    }
    *out = ct_plan_find(e->plan, name);
    return *out != NULL ? CT_OK : CT_FAIL(err, CT_ERR_NOT_FOUND, "the plan has no buffer '%s'", name);
}

bool cti_engine_has_flat(const cti_engine *e, const char *prefix, const char *group)
{
    const ct_buffer *b;
    return find_flat(e, prefix, group, &b, NULL) == CT_OK;
}

static ct_status locate(const cti_engine *e, const char *prefix, const char *group, int64_t first, int64_t n,
                        int64_t *out_offset, size_t *out_bytes, ct_err *err)
{
    const ct_buffer *b;
    CT_TRY(find_flat(e, prefix, group, &b, err));
    const int64_t size = (int64_t)ct_dtype_size_bytes(b->dtype);
    if (first < 0 || n < 0 || (first + n) * size > b->size_bytes) {
        return CT_FAIL(err, CT_ERR_RANGE, "elements %" PRId64 "+%" PRId64 " are outside of '%s'", first, n, b->name);
    }
    *out_offset = b->offset + first * size;
    *out_bytes = (size_t)(n * size);
    return CT_OK;
}

ct_status cti_engine_write_flat(cti_engine *e, const char *prefix, const char *group, int64_t first, int64_t n,
                                const void *data, ct_err *err)
{
    int64_t offset;
    size_t bytes;
    CT_TRY(locate(e, prefix, group, first, n, &offset, &bytes, err));
    return ct_runtime_write_at(e->runtime, offset, data, bytes, err);
}

ct_status cti_engine_read_flat(cti_engine *e, const char *prefix, const char *group, int64_t first, int64_t n, void *data,
                               ct_err *err)
{
    int64_t offset;
    size_t bytes;
    CT_TRY(locate(e, prefix, group, first, n, &offset, &bytes, err));
    return ct_runtime_read_at(e->runtime, offset, data, bytes, err);
}

ct_status cti_engine_flat_dtype(const cti_engine *e, const char *prefix, const char *group, ct_dtype *out_dtype,
                                ct_err *err)
{
    const ct_buffer *b;
    CT_TRY(find_flat(e, prefix, group, &b, err));
    *out_dtype = b->dtype;
    return CT_OK;
}

/* ---- weights ---------------------------------------------------------------------------------------------------- */

typedef struct fill_job { /* a member's elements from `begin` on, into host memory */
    const ct_init *init;
    const ct_flat_member *member;
    cti_rng_key key;
    int64_t begin;
    ct_dtype dtype;
    void *out;
} fill_job;

static void init_values(const fill_job *job, int64_t first, double *out, int64_t n)
{
    const ct_init *init = job->init;
    switch (init->kind) {
    case CT_INIT_CONST:
        for (int64_t i = 0; i < n; i++) {
            out[i] = init->value;
        }
        break;
    case CT_INIT_NORMAL:
        cti_rng_normals(job->key, (uint64_t)first, out, n);
        for (int64_t i = 0; i < n; i++) {
            out[i] *= init->std;
        }
        break;
    case CT_INIT_TRUNC_NORMAL:
        cti_rng_trunc_normals(job->key, (uint64_t)first, init->std, init->low, init->high, out, n);
        break;
    }
}

/* Each element is a pure function of its index: who computes it does not matter. */
static void fill_range(void *ctx, int64_t first, int64_t end, int thread)
{
    enum { PIECE = 512 };
    const fill_job *job = ctx;
    double values[PIECE];
    (void)thread;
    for (int64_t at = first, n; at < end; at += n) {
        const int64_t from = ct_flat_whole_run(job->member, job->begin + at, cti_min_i64(PIECE, end - at), &n);
        init_values(job, from, values, n);
        if (job->dtype == CT_DTYPE_BF16) {
            uint16_t *out = (uint16_t *)job->out + at;
            for (int64_t i = 0; i < n; i++) {
                out[i] = cti_f32_to_bf16((float)values[i]);
            }
        } else {
            float *out = (float *)job->out + at;
            for (int64_t i = 0; i < n; i++) {
                out[i] = (float)values[i];
            }
        }
    }
}

enum { INIT_CHUNK = 1 << 17 }; /* elements: half a MiB, which stays in the cache between filling and copying */

static ct_status init_member(cti_engine *e, const ct_flat_layout *layout, const ct_flat_group *group, int32_t m,
                             const ct_init *init, int64_t coord, uint64_t seed, void *host, ct_err *err)
{
    int64_t begin, end, shard_begin, shard_end;
    fill_job job = {.init = init, .member = &group->members[m], .key = cti_rng_key_make(seed, group->members[m].name), .out = host};
    CT_TRY(cti_engine_flat_dtype(e, "flat", group->name, &job.dtype, err));
    ct_flat_local_range(group, m, layout->degree, coord, &begin, &end);
    ct_flat_range(group->total, layout->degree, coord, &shard_begin, &shard_end);
    for (job.begin = begin; job.begin < end; job.begin += INIT_CHUNK) {
        const int64_t n = cti_min_i64(INIT_CHUNK, end - job.begin);
        cti_pool_run(n, 1 << 12, fill_range, &job);
        CT_TRY(cti_engine_write_flat(e, "flat", group->name, group->members[m].offset + job.begin - shard_begin, n, host, err));
    }
    return CT_OK;
}

ct_status cti_engine_init_weights(cti_engine *e, const ct_flat_layout *layout, const ct_build *build, int64_t coord,
                                  uint64_t seed, ct_err *err)
{
    float *host = CT_NEW_ARRAY(e->alloc, float, INIT_CHUNK, err);
    if (host == NULL) {
        return CT_ERR_MEMORY;
    }
    ct_status st = CT_OK;
    for (int32_t g = 0; g < layout->n_groups; g++) {
        for (int32_t m = 0; m < layout->groups[g].n_members && st == CT_OK; m++) {
            st = init_member(e, layout, &layout->groups[g], m,
                             &build->params[layout->groups[g].members[m].param_index].init, coord, seed, host, err);
        }
    }
    ct_alloc_free(e->alloc, host);
    return st;
}

ct_status cti_engine_init_consts(cti_engine *e, const ct_build *build, ct_err *err)
{
    for (int32_t i = 0; i < build->n_consts; i++) {
        const ct_buffer *b = ct_plan_find(e->plan, build->consts[i].name);
        if (b == NULL) {
            continue; /* no node reads it any more */
        }
        const int64_t n = cti_dims_product(b->dims, b->ndim);
        float *host = CT_NEW_ARRAY(e->alloc, float, n, err);
        if (host == NULL) {
            return CT_ERR_MEMORY;
        }
        ct_status st = build->consts[i].fill(build->consts[i].component, host, n, err);
        if (st == CT_OK) {
            st = ct_runtime_write_at(e->runtime, b->offset, host, (size_t)b->size_bytes, err);
        }
        ct_alloc_free(e->alloc, host);
        CT_TRY(st);
    }
    return CT_OK;
}
