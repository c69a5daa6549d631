/* SPDX-License-Identifier: Apache-2.0 */
/* The device of a rank: which kind, which of them, and the dtype that it computes in. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/backend.h"
#include "backend/npu/npu.h"
#include "base/base.h"
#include "base/pool.h"
#include "cann/cann.h"
#include "train/run_shape.h"
#include "train/trainer.h"

#define GIB (1024.0 * 1024.0 * 1024.0)

/* The list of visible devices that CANN reads: what it cannot take it drops, and would leave ranks without devices, or on others. why: of there
 * being none. */
static ct_status check_visible(const ct_backend *backend, int32_t n, const ct_err *why, ct_err *err)
{
    const char *list = cti_str_eq(backend->name, "npu") ? getenv("ASCEND_RT_VISIBLE_DEVICES") : NULL; /* NOLINT(concurrency-mt-unsafe): only read */
    const int wanted = list != NULL ? cti_npu_count_visible(list) : 0;
    if (wanted < 0) {
        return CT_FAIL(err, CT_ERR_USAGE, "ASCEND_RT_VISIBLE_DEVICES is '%s', wanted numbers in ascending order with commas and nothing else: 0,1,2", list);
    }
    if (list != NULL && wanted != n) {
        return CT_FAIL(err, CT_ERR_USAGE, "ASCEND_RT_VISIBLE_DEVICES is '%s', %d device%s, and CANN sees %" PRId32 " of them%s%s", list, wanted,
                       wanted == 1 ? "" : "s", n, why->message[0] != '\0' ? ": " : "", why->message);
    }
    return CT_OK;
}

/* Devices of a kind that can be used, at least one (1 where the device is the host), or why there is none. */
static ct_status count(const cti_trainer *t, const ct_backend *backend, int32_t *out_n, ct_err *err)
{
    *out_n = 1;
    if (backend->device_count == NULL) {
        return CT_OK;
    }
    ct_err why = {0};
    ct_status st = backend->device_count(out_n, &why);
    if (st == CT_OK && *out_n == 0) { /* who opens one is told what is missing */
        void *device = NULL;
        st = backend->device_open(t->alloc, 0, &device, &why);
        if (st == CT_OK) {
            backend->device_close(&device);
            st = CT_FAIL(&why, CT_ERR_NOT_FOUND, "no device is there");
        }
    }
    const cti_cann *cann; /* without CANN nobody reads the list */
    const bool has_library = !cti_str_eq(backend->name, "npu") || cti_cann_load(&cann, NULL) != CT_ERR_NOT_FOUND;
    CT_TRY(has_library ? check_visible(backend, st == CT_OK ? *out_n : 0, &why, err) : CT_OK);
    return st == CT_OK ? CT_OK : CT_FAIL(err, st, "%s", why.message);
}

static ct_status find_kind(cti_trainer *t, const char *name, int32_t *out_n, ct_err *err)
{
    ct_err why = {0};
    CT_TRY(ct_backend_find(t->o.backends, name, &t->backend, err));
    return count(t, t->backend, out_n, &why) == CT_OK
               ? CT_OK
               : CT_FAIL(err, why.status, "--device %s: %s (`ctitan doctor` looks for the cause; --device cpu trains without)", name, why.message);
}

/* What a log line has room for: without "npu 0: ", and of a library that is not there the first clause. */
static void tell_why_not(cti_str *told, const char *kind, const ct_err *why)
{
    const char *text = why->message, *after = strstr(text, ": ");
    text = cti_starts_with(text, kind) && after != NULL ? after + 2 : text;
    const bool is_short = why->status == CT_ERR_NOT_FOUND && strcspn(text, " ") < strcspn(text, ":");
    cti_str_printf(told, "%snot %s: %.*s", told->len > 0 ? "; " : "", kind, is_short ? (int)strcspn(text, ":") : 1000, text);
}

/* The first kind that has devices of its own, else the host; told: why not the others. A list of visible devices that is wrong is a mistake,
 * not a reason to train on the host. */
static ct_status find_best(cti_trainer *t, int32_t *out_n, cti_str *told, ct_err *err)
{
    const ct_backend *host = NULL;
    for (int i = 0; t->o.backends[i] != NULL; i++) {
        ct_err why = {0};
        t->backend = t->o.backends[i];
        if (t->backend->device_count == NULL) {
            host = host != NULL ? host : t->backend;
            continue;
        }
        if (count(t, t->backend, out_n, &why) == CT_OK) {
            return cti_str_check(told, err);
        }
        if (why.status == CT_ERR_USAGE) {
            return CT_FAIL(err, why.status, "%s (--device cpu trains without)", why.message);
        }
        tell_why_not(told, t->backend->name, &why);
    }
    t->backend = host;
    *out_n = 1;
    return host != NULL ? cti_str_check(told, err) : CT_FAIL(err, CT_ERR_UNSUPPORTED, "--device auto: %s", cti_str_text(told));
}

typedef struct seen { /* of a rank, for the others */
    char host[64], list[64];
} seen;

/* Whether the launcher gave each rank of this host a list of its own (as Slurm does). All ranks call it. */
static ct_status have_own_lists(const cti_trainer *t, bool *out, ct_err *err)
{
    const int64_t n = t->mesh.world_size, me = t->mesh.rank;
    const char *list = getenv("ASCEND_RT_VISIBLE_DEVICES"); /* NOLINT(concurrency-mt-unsafe): only read */
    *out = false;
    if (n == 1) {
        return CT_OK;
    }
    seen *all = CT_NEW_ARRAY(t->alloc, seen, n, err);
    if (all == NULL) {
        return CT_ERR_MEMORY;
    }
    if (gethostname(all[me].host, sizeof all[me].host - 1) != 0) {
        all[me].host[0] = '\0';
    }
    (void)snprintf(all[me].list, sizeof all[me].list, "%s", list != NULL ? list : ""); /* cut: then it is not one device */
    const ct_status st = ct_comm_all_gather(t->world, &all[me], all, sizeof *all, CT_DTYPE_U8, NULL, err);
    *out = list != NULL;
    for (int64_t r = 0; r < n && st == CT_OK; r++) {
        *out = *out && (r == me || strcmp(all[r].host, all[me].host) != 0 || strcmp(all[r].list, all[me].list) != 0);
    }
    ct_alloc_free(t->alloc, all);
    return st;
}

/* Each rank of a host takes the device of its local rank; or the only one it sees, where all see others. */
static ct_status choose_index(const cti_trainer *t, int32_t n_devices, int32_t *out_index, ct_err *err)
{
    const ct_place *place = ct_bootstrap_place(t->o.bootstrap);
    bool has_own = false;
    *out_index = 0;
    if (t->backend->device_count == NULL) {
        return CT_OK;
    }
    CT_TRY(have_own_lists(t, &has_own, err));
    const int ranks = place->local_world_size > place->local_rank + 1 ? place->local_world_size : place->local_rank + 1;
    if (n_devices == 1 && has_own) {
        return CT_OK;
    }
    if (ranks > n_devices) {
        const char *list = getenv("ASCEND_RT_VISIBLE_DEVICES"); /* NOLINT(concurrency-mt-unsafe): for the message */
        char last[16] = "";
        if (n_devices > 1) {
            (void)snprintf(last, sizeof last, " to %" PRId32, n_devices - 1);
        }
        return CT_FAIL(err, CT_ERR_USAGE, "this host has local ranks 0 to %d and %s devices 0%s: each rank takes the device of its LOCAL_RANK "
                       "(ASCEND_RT_VISIBLE_DEVICES is %s%s%s; --nproc_per_node says how many ranks)", ranks - 1, t->backend->name, last,
                       list != NULL ? "'" : "", list != NULL ? list : "not set", list != NULL ? "'" : "");
    }
    *out_index = place->local_rank;
    return CT_OK;
}

/* bfloat16 as a default becomes float32 where the device would only imitate it; asked for by name it is imitated. */
static void pick_compute_dtype(cti_trainer *t)
{
    const cti_training_config *c = CTI_SECTION(t->root, "training", training);
    t->compute_dtype = cti_run_compute_dtype(t->root, t->facts.has_native_bf16);
    if (strcmp(c->mixed_precision_param, "bfloat16") == 0 && !t->facts.has_native_bf16) {
        if (t->compute_dtype == CT_DTYPE_F32) {
            CT_INFO(t->log, "%s has no bfloat16 arithmetic: computing in float32 (--training.mixed-precision-param bfloat16 "
                            "imitates it)", t->facts.name);
        } else {
            CT_INFO(t->log, "%s has no bfloat16 arithmetic: it is imitated, and slower than float32", t->facts.name);
        }
    }
    CT_INFO(t->log, "%s capacity: %s with %.2fGiB memory", t->facts.type, t->facts.name, (double)t->facts.memory_bytes / GIB);
    if (t->backend->device_count == NULL) {
        char line[96];
        CT_INFO(t->log, "CPU: %s", cti_pool_describe(line, sizeof line));
    }
}

/* All of it may work with another release; who looks for the cause of wrong numbers shall have read it. */
static void warn_of_version(const cti_trainer *t)
{
    const cti_cann *cann;
    char version[128] = "";
    if (cti_str_eq(t->backend->name, "npu") && cti_cann_load(&cann, NULL) == CT_OK && cti_starts_with(cti_cann_version(cann, version, sizeof version), "CANN ") &&
        !cti_cann_is_known_version(version)) {
        CT_WARN(t->log, "%s is here, wanted CANN 8.0 to 9.x: look whether ctitan check-overrides --device npu and ten steps agree with --device cpu", version);
    }
}

ct_status cti_trainer_open_device(cti_trainer *t, ct_err *err)
{
    const cti_trainer_config *root = ct_component_values(t->root);
    const bool is_auto = cti_str_eq(root->device, "auto");
    cti_str told = {.alloc = t->alloc};
    int32_t n = 0, index = 0;
    ct_status st = is_auto ? find_best(t, &n, &told, err) : find_kind(t, root->device, &n, err);
    if (st == CT_OK && t->mesh.world_size > 1) { /* a rank that failed is not waited for: the launcher ends the others */
        st = ct_comm_check_same(t->world, t->backend->name, strlen(t->backend->name), "what --device auto takes (npu or cpu names it)", err);
        if (st != CT_OK && err != NULL) {
            ct_err_prefix(err, "this rank took '%s'%s%s", t->backend->name, told.len > 0 ? ", " : "", cti_str_text(&told));
        }
    }
    if (st == CT_OK) {
        st = choose_index(t, n, &index, err);
    }
    if (st == CT_OK && t->backend->device_count != NULL) {
        CT_INFO(t->log, "Device: %s %" PRId32 " of %" PRId32 "%s", t->backend->name, index, n, is_auto ? " (--device auto)" : "");
    } else if (st == CT_OK && told.len > 0) { /* whoever sourced CANN's set_env.sh meant to train on NPUs */
        const bool is_surprise = getenv("ASCEND_HOME_PATH") != NULL; /* NOLINT(concurrency-mt-unsafe): only read */
        if (is_surprise) {
            CT_WARN(t->log, "Device: %s (--device auto; %s)", t->backend->name, cti_str_text(&told));
        } else {
            CT_INFO(t->log, "Device: %s (--device auto; %s)", t->backend->name, cti_str_text(&told));
        }
    }
    cti_str_deinit(&told);
    CT_TRY(st);
    ct_backend_npu_set_deterministic(CTI_SECTION(t->root, "debug", debug)->deterministic);
    CT_TRY(t->backend->device_open(t->alloc, index, &t->device, err));
    CT_TRY(t->backend->device_facts(t->device, &t->facts, err));
    warn_of_version(t);
    pick_compute_dtype(t);
    return CT_OK;
}
