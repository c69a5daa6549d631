/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/gloo/gloo_engine.h"

#include <inttypes.h>

#include "base/str.h"
#include "comm/gloo/gloo_shim.h"

enum { TEXT_BYTES = 400 };

typedef struct gloo_ctx {
    const ct_alloc *alloc; /* borrows */
    ct_bootstrap *boot;    /* borrows */
    cti_gloo *gloo;        /* owns */
    ct_err store_err;      /* why the store failed, while connecting */
} gloo_ctx;

static int store_set(void *ctx, const char *key, const void *data, size_t size_bytes)
{
    gloo_ctx *g = ctx;
    char full[CT_STORE_MAX_KEY_BYTES];
    (void)snprintf(full, sizeof full, "gloo/%s", key);
    return ct_bootstrap_set(g->boot, full, data, size_bytes, &g->store_err) == CT_OK ? 0 : -1;
}

static int store_get(void *ctx, const char *key, int64_t timeout_ms,
                     void (*take)(void *to, const void *data, size_t size), void *to)
{
    gloo_ctx *g = ctx;
    char full[CT_STORE_MAX_KEY_BYTES];
    void *value = NULL;
    size_t size;
    (void)snprintf(full, sizeof full, "gloo/%s", key);
    ct_err err = {0};
    ct_status st = ct_bootstrap_get(g->boot, full, timeout_ms, &value, &size, &err);
    int64_t rank;
    if (st == CT_ERR_TIMEOUT && cti_parse_i64(key, &rank)) { /* Gloo's keys are the ranks */
        (void)CT_FAIL(&g->store_err, CT_ERR_TIMEOUT, "rank %" PRId64 " did not come within %" PRId64 " ms", rank,
                      timeout_ms);
    } else if (st != CT_OK) {
        (void)CT_FAIL(&g->store_err, st, "%s", err.message);
    }
    if (st != CT_OK) {
        return -1;
    }
    take(to, value, size);
    ct_alloc_free(ct_bootstrap_alloc(g->boot), value);
    return 0;
}

static void gloo_close(void *ctx)
{
    gloo_ctx *g = ctx;
    if (g != NULL) {
        cti_gloo_close(g->gloo);
        ct_alloc_free(g->alloc, g);
    }
}

static ct_status gloo_open(const ct_alloc *alloc, ct_bootstrap *boot, int64_t timeout_ms, void **out_ctx, ct_err *err)
{
    const ct_place *place = ct_bootstrap_place(boot);
    gloo_ctx *g = CT_NEW(alloc, gloo_ctx, err);
    if (g == NULL) {
        return CT_ERR_MEMORY;
    }
    g->alloc = alloc;
    g->boot = boot;
    *out_ctx = g;
    if (place->world_size == 1) {
        return CT_OK; /* nobody to connect to, and every group has one member */
    }
    const char *iface = getenv("GLOO_SOCKET_IFNAME"); /* NOLINT(concurrency-mt-unsafe) */
    iface = iface != NULL && iface[0] != '\0' ? iface : NULL;
    const char *host = ct_bootstrap_local_addr(boot);
    cti_gloo_store store = {.ctx = g, .set = store_set, .get = store_get};
    char text[TEXT_BYTES] = "";
    cti_gloo_result result =
        cti_gloo_open(&store, place->rank, place->world_size, host, iface, timeout_ms, &g->gloo, text, sizeof text);
    if (result == CTI_GLOO_OK) {
        return CT_OK;
    }
    if (g->store_err.status != CT_OK) {
        return CT_FAIL(err, g->store_err.status, "rank %d cannot connect to the others: %s", place->rank,
                       g->store_err.message);
    }
    ct_status st = result == CTI_GLOO_TIMEOUT ? CT_ERR_TIMEOUT : CT_ERR_PEER;
    return CT_FAIL(err, st, "rank %d cannot connect to the others (Gloo on %s %s): %s", place->rank,
                   iface != NULL ? "interface" : "address", iface != NULL ? iface : host, text);
}

static void gloo_abort(void *ctx)
{
    gloo_ctx *g = ctx;
    if (g->gloo != NULL) {
        cti_gloo_abort(g->gloo);
    }
}

static ct_status fail(cti_gloo_result result, int peer, int64_t timeout_ms, const char *text, ct_err *err)
{
    if (result == CTI_GLOO_TIMEOUT) {
        return CT_FAIL(err, CT_ERR_TIMEOUT, "rank %d did not answer within %" PRId64 " ms", peer, timeout_ms);
    }
    if (result == CTI_GLOO_PEER) {
        return CT_FAIL(err, CT_ERR_PEER, "rank %d is gone (%s)", peer, text);
    }
    return CT_FAIL(err, CT_ERR_BACKEND, "Gloo failed towards rank %d: %s", peer, text);
}

static ct_status gloo_exchange(void *ctx, void *group, const ct_comm_group_desc *desc, const ct_comm_message *messages,
                               int n, int64_t timeout_ms, void *stream, ct_err *err)
{
    gloo_ctx *g = ctx;
    (void)group;
    (void)stream;
    char text[TEXT_BYTES] = "";
    int peer = -1;
    cti_gloo_result result =
        cti_gloo_exchange(g->gloo, desc->world_ranks, messages, n, timeout_ms, &peer, text, sizeof text);
    return result == CTI_GLOO_OK ? CT_OK : fail(result, peer, timeout_ms, text, err);
}

const ct_comm_engine *ct_comm_gloo_engine(void)
{
    static const ct_comm_engine engine = {
        .abi = CT_COMM_ABI,
        .size_bytes = sizeof(ct_comm_engine),
        .name = "gloo",
        .open = gloo_open,
        .close = gloo_close,
        .abort = gloo_abort,
        .exchange = gloo_exchange,
    };
    return &engine;
}
