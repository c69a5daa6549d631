/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of a run: world, mesh, and the groups of its axes, in host memory and in that of devices. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "comm/engines.h"
#include "comm/hccl/hccl_engine.h"
#include "train/run_shape.h"
#include "train/trainer.h"

void cti_trainer_log_mesh(const cti_trainer *t)
{
    char active[160];
    const int64_t *d = t->mesh.degree;
    CT_INFO(t->log, "Building device mesh with parallelism: pp=%" PRId64 ", dp_replicate=%" PRId64 ", dp_shard=%" PRId64
                    ", cp=%" PRId64 ", tp=%" PRId64 ", ep=%" PRId64,
            d[CT_AXIS_PP], d[CT_AXIS_DP_REPLICATE], d[CT_AXIS_DP_SHARD], d[CT_AXIS_CP], d[CT_AXIS_TP], d[CT_AXIS_EP]);
    ct_mesh_active_names(&t->mesh, active, sizeof active);
    CT_INFO(t->log, "Successfully created meshes with active dimensions: %s", active);
}

/* Of the flight recorder, from the root, so that the launcher finds it, too. */
static ct_status record_path(const cti_trainer *t, const cti_comm_config *comm, int rank, char *out, size_t size, ct_err *err)
{
    const char *folder = ((const cti_trainer_config *)ct_component_values(t->root))->dump_folder;
    char here[2048] = "";
    if (folder[0] != '/' && getcwd(here, sizeof here) == NULL) {
        return CT_FAIL(err, CT_ERR_IO, "the working folder has no name: %s", strerror(errno));
    }
    const int n = snprintf(out, size, "%s%s%s/%s/%s%d", here, here[0] != '\0' ? "/" : "", folder, comm->save_traces_folder,
                           comm->save_traces_file_prefix, rank);
    return n > 0 && (size_t)n < size ? CT_OK : CT_FAIL(err, CT_ERR_USAGE, "--comm.save-traces-folder: the path is too long");
}

ct_status cti_trainer_open_ranks(cti_trainer *t, ct_err *err)
{
    const ct_place *place = ct_bootstrap_place(t->o.bootstrap);
    const cti_comm_config *comm = CTI_SECTION(t->root, "comm", comm);
    cti_degrees d;
    cti_degrees_of(t->root, place->world_size, &d);
    const int64_t degree[CT_AXIS_COUNT] = {d.pp, d.dp_replicate, d.dp_shard, d.cp, d.tp, d.ep};
    CT_TRY(ct_mesh_init(&t->mesh, degree, place->world_size, place->rank, err));
    const struct ct_comm_engine *engine;
    CT_TRY(cti_comm_engine_pick(cti_str_eq(comm->engine, "hccl") ? "auto" : comm->engine, place->world_size, &engine, err));
    char path[4096];
    CT_TRY(record_path(t, comm, place->rank, path, sizeof path, err));
    const ct_comm_options options = {.timeout_ms = cti_limit_ms(comm->init_timeout_seconds), .n_records = comm->trace_buf_size,
                                     .record_path = path, .version = t->o.version};
    CT_TRY(ct_comm_world_create(t->alloc, engine, t->o.bootstrap, &options, &t->world, err));
    if (t->o.met != NULL) {
        *t->o.met = 1;
    }
    if (place->world_size > 1) {
        char init[32], train[32];
        CT_INFO(t->log, "Collectives over %s: each may take %s until the first step is done, then %s", engine->name,
                cti_format_timedelta(comm->init_timeout_seconds, init), cti_format_timedelta(comm->train_timeout_seconds, train));
        cti_trainer_log_mesh(t);
    }
    return CT_OK;
}

/* This rank's line of the mesh along an axis. */
static ct_status open_axis(cti_trainer *t, ct_comm *world, ct_axis axis, const char *name, ct_comm **out, ct_err *err)
{
    const int64_t n = t->mesh.degree[axis];
    int64_t *ranks = CT_NEW_ARRAY(t->alloc, int64_t, n, err);
    int *ints = CT_NEW_ARRAY(t->alloc, int, n, err);
    ct_status st = CT_ERR_MEMORY;
    if (ranks != NULL && ints != NULL) {
        ct_mesh_group(&t->mesh, axis, ranks);
        for (int64_t i = 0; i < n; i++) {
            ints[i] = (int)ranks[i];
        }
        st = ct_comm_split(world, name, ints, (int)n, out, err);
    }
    ct_alloc_free(t->alloc, ranks);
    ct_alloc_free(t->alloc, ints);
    return st;
}

/* The limit that is in force: the library reads its own once a process, and the user's comes first. */
static void log_limit(cti_trainer *t, const char *engine)
{
    char text[32];
    const int64_t limit = cti_hccl_limit_seconds();
    if (limit > 0 && limit <= INT32_MAX) {
        CT_INFO(t->log, "Collectives of the step over %s, on the devices: each may take %s (HCCL_EXEC_TIMEOUT)", engine, cti_format_timedelta(limit, text));
    } else {
        CT_INFO(t->log, "Collectives of the step over %s, on the devices", engine);
    }
    if (limit == 0) {
        CT_WARN(t->log, "HCCL_EXEC_TIMEOUT is 0, no limit: older releases of CANN end a collective after 30 minutes all the same");
    }
}

/* The collectives of the step, where it runs on devices. Their library has one limit for all calls of a process. */
static ct_status open_device_world(cti_trainer *t, ct_err *err)
{
    const cti_comm_config *comm = CTI_SECTION(t->root, "comm", comm);
    const ct_comm_engine *engine = cti_comm_engine_of_device(t->backend->name);
    if (engine == NULL) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "the backend '%s' has no collectives: it trains on one rank, found %" PRId64, t->backend->name,
                       t->mesh.world_size);
    }
    const int64_t limit = cti_max_i64(comm->init_timeout_seconds, comm->train_timeout_seconds);
    const ct_comm_options options = {.timeout_ms = cti_limit_ms(limit), .record_with = t->world,
                                     .is_deterministic = CTI_SECTION(t->root, "debug", debug)->deterministic};
    CT_TRY(ct_comm_world_create(t->alloc, engine, t->o.bootstrap, &options, &t->device_world, err));
    log_limit(t, engine->name);
    ct_err why = {0}; /* a group waits minutes for a rank that has no device; the host's engine knows at once */
    const ct_status st = ct_comm_barrier(t->world, NULL, &why);
    return st == CT_OK ? CT_OK : CT_FAIL(err, st, "waiting for the devices of all ranks: %s", why.message);
}

ct_status cti_trainer_open_axes(cti_trainer *t, ct_err *err)
{
    const bool is_device = t->backend->device_count != NULL && t->mesh.world_size > 1;
    if (cti_str_eq(CTI_SECTION(t->root, "comm", comm)->engine, "hccl") && !cti_str_eq(t->backend->name, "npu")) {
        return CT_FAIL(err, CT_ERR_USAGE, "--comm.engine hccl is for NPUs, and this run computes on '%s' (--device)", t->backend->name);
    }
    if (is_device) {
        CT_TRY(open_device_world(t, err));
    }
    for (int a = 0; a < CT_AXIS_COUNT; a++) {
        if (t->mesh.degree[a] == 1) {
            continue;
        }
        const char *name = ct_axis_name((ct_axis)a);
        CT_TRY(open_axis(t, is_device ? t->device_world : t->world, (ct_axis)a, name, &t->axis[a], err));
        t->data_axis[a] = t->axis[a];
        if (is_device) {
            char host_name[64];
            t->data_axis[a] = NULL;
            (void)snprintf(host_name, sizeof host_name, "%.50s.host", name);
            CT_TRY(open_axis(t, t->world, (ct_axis)a, host_name, &t->data_axis[a], err));
        }
    }
    return CT_OK;
}

void cti_trainer_close_ranks(cti_trainer *t)
{
    for (int a = 0; a < CT_MAX_AXES; a++) {
        if (t->data_axis[a] != t->axis[a]) {
            ct_comm_destroy(&t->data_axis[a]);
        }
        ct_comm_destroy(&t->axis[a]);
    }
    ct_comm_destroy(&t->device_world);
    ct_comm_destroy(&t->world);
    if (t->device != NULL) {
        t->backend->device_close(&t->device);
    }
}
