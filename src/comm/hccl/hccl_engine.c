/* SPDX-License-Identifier: Apache-2.0 */
/* Groups over HCCL: environment, root infos, communicators, and the calls. */
#include "comm/hccl/hccl_engine.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "cann/cann.h"
#include "comm/comm_reduce.h"

enum { BUFFER_MB = 100, SCRATCH_BYTES = 1 << 16 };

typedef struct opened { /* how often groups of an id were opened: each needs a root info of its own */
    struct opened *next; /* owns */
    uint64_t id;
    int n;
} opened;

typedef struct hccl_ctx {
    const ct_alloc *alloc; /* borrows */
    ct_bootstrap *boot;    /* borrows */
    const cti_cann *cann;
    const cti_hccl *hccl;
    int64_t timeout_ms;
    opened *opened;
    atomic_bool is_aborted;
} hccl_ctx;

typedef struct hccl_group {
    hccl_ctx *ctx;
    const ct_comm_group_desc *desc; /* borrows */
    HcclComm comm;        /* owns; NULL: not made yet */
    aclrtStream stream;   /* borrows: of the last call; NULL: none */
    unsigned char *device; /* owns: SCRATCH_BYTES of device memory, made with the first sum of f64 or barrier */
    unsigned char *host;   /* owns: as many of the host's */
    const void **parts;    /* owns; [size] */
    uint64_t *counts;      /* owns; [4 * size] of all_to_all_v */
    HcclSendRecvItem *items; /* owns */
    int n_items;             /* that there is room for */
} hccl_group;

/* ---- open ---------------------------------------------------------------------------------------------------------- */

static ct_status set_default(const char *name, const char *value, ct_err *err)
{
    const char *have = getenv(name); /* NOLINT(concurrency-mt-unsafe): before HCCL starts its threads */
    if (have != NULL && have[0] != '\0') {
        return CT_OK;
    }
    return setenv(name, value, 1) == 0 ? CT_OK : CT_FAIL(err, CT_ERR_MEMORY, "%s cannot be set to '%s'", name, value); /* NOLINT(concurrency-mt-unsafe) */
}

/* Two processes of one host, or two jobs, would meet on HCCL's own fixed ports (16666; 60000 on). */
static ct_status set_environment(int64_t timeout_ms, ct_err *err)
{
    char connect[32], exec[32];
    const int64_t seconds = cti_max_i64(1, (timeout_ms + 999) / 1000);
    (void)snprintf(connect, sizeof connect, "%" PRId64, cti_min_i64(7200, cti_max_i64(120, seconds)));
    (void)snprintf(exec, sizeof exec, "%" PRId64, cti_min_i64(INT32_MAX, seconds));
    CT_TRY(set_default("HCCL_NPU_SOCKET_PORT_RANGE", "auto", err));
    CT_TRY(set_default("HCCL_HOST_SOCKET_PORT_RANGE", "auto", err));
    CT_TRY(set_default("HCCL_CONNECT_TIMEOUT", connect, err));
    return set_default("HCCL_EXEC_TIMEOUT", exec, err);
}

static void hccl_close(void *ctx)
{
    hccl_ctx *h = ctx;
    if (h == NULL) {
        return;
    }
    while (h->opened != NULL) {
        opened *next = h->opened->next;
        ct_alloc_free(h->alloc, h->opened);
        h->opened = next;
    }
    ct_alloc_free(h->alloc, h);
}

static ct_status hccl_open(const ct_alloc *alloc, ct_bootstrap *boot, int64_t timeout_ms, void **out_ctx, ct_err *err)
{
    hccl_ctx *h = CT_NEW(alloc, hccl_ctx, err);
    if (h == NULL) {
        return CT_ERR_MEMORY;
    }
    h->alloc = alloc;
    h->boot = boot;
    h->timeout_ms = timeout_ms;
    atomic_init(&h->is_aborted, false);
    *out_ctx = h;
    if (ct_bootstrap_place(boot)->world_size > 1) {
        CT_TRY(set_environment(timeout_ms, err));
    }
    CT_TRY(cti_cann_load(&h->cann, err));
    return cti_hccl_load(&h->hccl, err);
}

static void hccl_abort(void *ctx)
{
    hccl_ctx *h = ctx;
    atomic_store(&h->is_aborted, true);
}

/* What the user gave HCCL as a buffer's size; 0: nothing, and ours counts. */
static int64_t buffer_mb(void)
{
    const char *text = getenv("HCCL_BUFFSIZE"); /* NOLINT(concurrency-mt-unsafe) */
    int64_t mb = 0;
    return text != NULL && text[0] != '\0' ? (cti_parse_i64(text, &mb) && mb > 0 && mb < INT32_MAX ? mb : 1) : 0; /* what is none HCCL refuses itself */
}

int64_t cti_hccl_group_bytes(void)
{
    const int64_t mb = buffer_mb();
    return 2 * (mb > 0 ? mb : BUFFER_MB) * 1024 * 1024;
}

int64_t cti_hccl_limit_seconds(void)
{
    const char *text = getenv("HCCL_EXEC_TIMEOUT"); /* NOLINT(concurrency-mt-unsafe) */
    int64_t seconds = 0;
    return text != NULL && cti_parse_i64(text, &seconds) && seconds >= 0 ? seconds : -1;
}

/* ---- communicators ------------------------------------------------------------------------------------------------- */

static ct_status count_opening(hccl_ctx *h, uint64_t id, int *out_n, ct_err *err)
{
    opened *o = h->opened;
    while (o != NULL && o->id != id) {
        o = o->next;
    }
    if (o == NULL) {
        o = CT_NEW(h->alloc, opened, err);
        if (o == NULL) {
            return CT_ERR_MEMORY;
        }
        *o = (opened){.next = h->opened, .id = id};
        h->opened = o;
    }
    *out_n = ++o->n;
    return CT_OK;
}

/* Member 0 makes the root info; where it cannot, the others are told why instead of waiting for it. The value's first byte: 1, a root info follows;
 * 0, a message and its status. */
static ct_status publish_root(hccl_group *g, const char *key, HcclRootInfo *out, ct_err *err)
{
    hccl_ctx *h = g->ctx;
    unsigned char value[1 + sizeof *out];
    ct_err why = {0};
    const HcclResult code = h->hccl->HcclGetRootInfo(out);
    if (code != HCCL_SUCCESS) {
        const ct_status st = cti_hccl_fail(h->hccl, code, &why, "HcclGetRootInfo");
        value[0] = 0;
        value[1] = (unsigned char)st;
        (void)snprintf((char *)value + 2, sizeof value - 2, "%.2000s", why.message);
        const ct_status told = ct_bootstrap_set(h->boot, key, value, 2 + strlen((char *)value + 2), NULL);
        (void)told; /* the others wait for their time limit, then */
        return CT_FAIL(err, st, "%s", why.message);
    }
    value[0] = 1;
    memcpy(value + 1, out, sizeof *out);
    return ct_bootstrap_set(h->boot, key, value, sizeof value, err);
}

static ct_status fetch_root(hccl_group *g, const char *key, HcclRootInfo *out, ct_err *err)
{
    hccl_ctx *h = g->ctx;
    void *value = NULL;
    size_t size = 0;
    ct_err why = {0};
    ct_status st = ct_bootstrap_get(h->boot, key, h->timeout_ms, &value, &size, &why);
    if (st == CT_ERR_TIMEOUT) {
        return CT_FAIL(err, st, "rank %d did not begin to make the group within %" PRId64 " ms", g->desc->world_ranks[0], h->timeout_ms);
    }
    if (st != CT_OK) {
        return CT_FAIL(err, st, "%s", why.message);
    }
    const unsigned char *bytes = value;
    if (size == 1 + sizeof *out && bytes[0] == 1) {
        memcpy(out, bytes + 1, sizeof *out);
    } else if (size > 2 && bytes[0] == 0) {
        st = CT_FAIL(err, CT_ERR_PEER, "rank %d cannot make the group: %s", g->desc->world_ranks[0], (const char *)bytes + 2);
    } else {
        st = CT_FAIL(err, CT_ERR_FORMAT, "the root info of rank %d has %zu bytes, wanted %zu", g->desc->world_ranks[0], size, 1 + sizeof *out);
    }
    ct_alloc_free(ct_bootstrap_alloc(h->boot), value);
    return st;
}

static ct_status make_comm(hccl_group *g, ct_err *err)
{
    hccl_ctx *h = g->ctx;
    const ct_comm_group_desc *d = g->desc;
    int number = 0;
    char key[64];
    HcclRootInfo root;
    CT_TRY(count_opening(h, d->id, &number, err));
    (void)snprintf(key, sizeof key, "hccl/%016" PRIx64 "/%d", d->id, number);
    CT_TRY(d->rank == 0 ? publish_root(g, key, &root, err) : fetch_root(g, key, &root, err));
    HcclCommConfig config;
    cti_hccl_config_init(&config);
    if (buffer_mb() == 0) {
        config.hcclBufferSize = BUFFER_MB;
    }
    if (d->is_deterministic) {
        config.hcclDeterministic = 1;
    }
    const HcclResult code = h->hccl->HcclCommInitRootInfoConfig != NULL
                                ? h->hccl->HcclCommInitRootInfoConfig((uint32_t)d->size, &root, (uint32_t)d->rank, &config, &g->comm)
                                : h->hccl->HcclCommInitRootInfo((uint32_t)d->size, &root, (uint32_t)d->rank, &g->comm);
    if (code != HCCL_SUCCESS) {
        g->comm = NULL;
        return cti_hccl_fail(h->hccl, code, err, "HCCL communicator of rank %d of %d", d->rank, d->size);
    }
    return CT_OK;
}

static void hccl_group_close(void *ctx, void *group)
{
    hccl_ctx *h = ctx;
    hccl_group *g = group;
    if (g == NULL) {
        return;
    }
    if (!atomic_load(&h->is_aborted)) { /* else it may hold calls that never end */
        if (g->stream != NULL) {
            (void)h->cann->aclrtSynchronizeStream(g->stream); /* who used it has heard of a fault */
        }
        if (g->comm != NULL) {
            (void)h->hccl->HcclCommDestroy(g->comm);
        }
        if (g->device != NULL) {
            (void)h->cann->aclrtFree(g->device);
        }
    }
    ct_alloc_free(h->alloc, g->host);
    ct_alloc_free(h->alloc, g->parts);
    ct_alloc_free(h->alloc, g->counts);
    ct_alloc_free(h->alloc, g->items);
    ct_alloc_free(h->alloc, g);
}

static ct_status hccl_group_open(void *ctx, const ct_comm_group_desc *desc, int64_t timeout_ms, void **out_group, ct_err *err)
{
    hccl_ctx *h = ctx;
    (void)timeout_ms; /* HCCL has one, of the process */
    hccl_group *g = CT_NEW(h->alloc, hccl_group, err);
    if (g == NULL) {
        return CT_ERR_MEMORY;
    }
    *g = (hccl_group){.ctx = h, .desc = desc};
    g->parts = CT_NEW_ARRAY(h->alloc, const void *, desc->size, err);
    g->counts = CT_NEW_ARRAY(h->alloc, uint64_t, 4 * (int64_t)desc->size, err);
    ct_status st = g->parts != NULL && g->counts != NULL ? CT_OK : CT_ERR_MEMORY;
    if (st == CT_OK && !desc->is_world) {
        st = make_comm(g, err);
        if (st != CT_OK && err != NULL) {
            ct_err_prefix(err, "group '%s' of %d ranks", desc->name, desc->size);
        }
    }
    if (st != CT_OK) {
        hccl_group_close(ctx, g);
        return st;
    }
    *out_group = g;
    return CT_OK;
}

/* ---- calls --------------------------------------------------------------------------------------------------------- */

/* A call begins: the communicator is there, and the stream is one that HCCL takes. */
static ct_status use(hccl_group *g, void *stream, ct_err *err)
{
    if (atomic_load(&g->ctx->is_aborted)) {
        return CT_FAIL(err, CT_ERR_STATE, "HCCL was given up after a failure");
    }
    if (stream == NULL) {
        return CT_FAIL(err, CT_ERR_STATE, "HCCL wants a stream of the device");
    }
    if (g->comm == NULL) {
        CT_TRY(make_comm(g, err));
    }
    g->stream = stream;
    return CT_OK;
}

static ct_status result(const hccl_group *g, HcclResult code, const char *call, ct_err *err)
{
    return code == HCCL_SUCCESS ? CT_OK : cti_hccl_fail(g->ctx->hccl, code, err, "%s", call);
}

static ct_status acl(const hccl_group *g, aclError code, const char *call, ct_err *err)
{
    return code == 0 ? CT_OK : cti_acl_fail(g->ctx->cann, code, err, "%s", call);
}

static HcclDataType hccl_dtype(ct_dtype dtype)
{
    switch (dtype) {
    case CT_DTYPE_F32:
        return HCCL_DATA_TYPE_FP32;
    case CT_DTYPE_BF16:
        return HCCL_DATA_TYPE_BFP16;
    case CT_DTYPE_F16:
        return HCCL_DATA_TYPE_FP16;
    case CT_DTYPE_F64:
        return HCCL_DATA_TYPE_FP64;
    case CT_DTYPE_I32:
        return HCCL_DATA_TYPE_INT32;
    case CT_DTYPE_I64:
        return HCCL_DATA_TYPE_INT64;
    case CT_DTYPE_U8:
    case CT_DTYPE_COUNT:
        break;
    }
    return HCCL_DATA_TYPE_UINT8;
}

static HcclReduceOp hccl_reduce(ct_reduce_op op)
{
    return op == CT_REDUCE_MAX ? HCCL_REDUCE_MAX : op == CT_REDUCE_MIN ? HCCL_REDUCE_MIN : HCCL_REDUCE_SUM;
}

/* HCCL's functions take what they only read as void *. */
static void *unconst(const void *p)
{
    union {
        const void *in;
        void *out;
    } pointer = {.in = p};
    return pointer.out;
}

static ct_status reserve_scratch(hccl_group *g, ct_err *err)
{
    if (g->device == NULL) {
        void *p = NULL;
        CT_TRY(acl(g, g->ctx->cann->aclrtMalloc(&p, SCRATCH_BYTES, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc of HCCL's scratch", err));
        g->device = p;
    }
    if (g->host == NULL) {
        g->host = ct_alloc_zeroed(g->ctx->alloc, SCRATCH_BYTES, 1, err);
    }
    return g->host != NULL ? CT_OK : CT_ERR_MEMORY;
}

/* Combines in[count] of all members by halves into out, on the host: gather, wait, add, write back. out NULL: another member's piece. */
static ct_status reduce_f64(hccl_group *g, const double *in, double *out, int64_t count, ct_reduce_op op, void *stream, ct_err *err)
{
    const cti_cann *cann = g->ctx->cann;
    const int64_t n = g->desc->size, room = SCRATCH_BYTES / (n * (int64_t)sizeof(double));
    if (room < 1) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "f64 over %" PRId64 " ranks: at most %zu are combined", n, SCRATCH_BYTES / sizeof(double));
    }
    CT_TRY(reserve_scratch(g, err));
    for (int64_t done = 0; done < count; done += room) {
        const int64_t piece = cti_min_i64(room, count - done);
        const size_t bytes = (size_t)piece * sizeof(double);
        CT_TRY(result(g, g->ctx->hccl->HcclAllGather(unconst(in + done), g->device, (uint64_t)piece, HCCL_DATA_TYPE_FP64, g->comm, stream), "HcclAllGather", err));
        CT_TRY(acl(g, cann->aclrtSynchronizeStream(stream), "waiting for HcclAllGather", err));
        if (out == NULL) {
            continue;
        }
        CT_TRY(acl(g, cann->aclrtMemcpy(g->host, SCRATCH_BYTES, g->device, (size_t)n * bytes, ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy", err));
        for (int64_t r = 0; r < n; r++) {
            g->parts[r] = g->host + (size_t)r * bytes;
        }
        cti_reduce_halves(g->parts, (int)n, g->host, piece, CT_DTYPE_F64, op);
        CT_TRY(acl(g, cann->aclrtMemcpy(out + done, bytes, g->host, bytes, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy", err));
    }
    return CT_OK;
}

static ct_status hccl_all_reduce(void *ctx, void *group, const void *in, void *out, int64_t count, ct_dtype dtype, ct_reduce_op op, void *stream, ct_err *err)
{
    hccl_group *g = group;
    (void)ctx;
    CT_TRY(use(g, stream, err));
    if (dtype == CT_DTYPE_F64) {
        return reduce_f64(g, in, out, count, op, stream, err);
    }
    return result(g, g->ctx->hccl->HcclAllReduce(unconst(in), out, (uint64_t)count, hccl_dtype(dtype), hccl_reduce(op), g->comm, stream), "HcclAllReduce", err);
}

static ct_status hccl_all_gather(void *ctx, void *group, const void *in, void *out, int64_t count, ct_dtype dtype, void *stream, ct_err *err)
{
    hccl_group *g = group;
    (void)ctx;
    CT_TRY(use(g, stream, err));
    return result(g, g->ctx->hccl->HcclAllGather(unconst(in), out, (uint64_t)count, hccl_dtype(dtype), g->comm, stream), "HcclAllGather", err);
}

static ct_status hccl_reduce_scatter(void *ctx, void *group, const void *in, void *out, int64_t count, ct_dtype dtype, ct_reduce_op op, void *stream,
                                     ct_err *err)
{
    hccl_group *g = group;
    (void)ctx;
    CT_TRY(use(g, stream, err));
    if (dtype == CT_DTYPE_F64) {
        for (int r = 0; r < g->desc->size; r++) {
            CT_TRY(reduce_f64(g, (const double *)in + r * count, r == g->desc->rank ? out : NULL, count, op, stream, err));
        }
        return CT_OK;
    }
    return result(g, g->ctx->hccl->HcclReduceScatter(unconst(in), out, (uint64_t)count, hccl_dtype(dtype), hccl_reduce(op), g->comm, stream),
                  "HcclReduceScatter", err);
}

static ct_status hccl_broadcast(void *ctx, void *group, void *data, int64_t count, ct_dtype dtype, int root, void *stream, ct_err *err)
{
    hccl_group *g = group;
    (void)ctx;
    CT_TRY(use(g, stream, err));
    return result(g, g->ctx->hccl->HcclBroadcast(data, (uint64_t)count, hccl_dtype(dtype), (uint32_t)root, g->comm, stream), "HcclBroadcast", err);
}

static ct_status hccl_all_to_all_v(void *ctx, void *group, const void *in, const int64_t *in_counts, void *out, const int64_t *out_counts, ct_dtype dtype,
                                   void *stream, ct_err *err)
{
    hccl_group *g = group;
    (void)ctx;
    CT_TRY(use(g, stream, err));
    const int n = g->desc->size;
    uint64_t *sent = g->counts, *sent_at = sent + n, *got = sent_at + n, *got_at = got + n, in_sum = 0, out_sum = 0;
    for (int i = 0; i < n; i++) {
        sent[i] = (uint64_t)in_counts[i];
        sent_at[i] = in_sum;
        got[i] = (uint64_t)out_counts[i];
        got_at[i] = out_sum;
        in_sum += sent[i];
        out_sum += got[i];
    }
    if (g->ctx->hccl->HcclAlltoAllV == NULL) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "this CANN has no HcclAlltoAllV");
    }
    const HcclDataType type = hccl_dtype(dtype);
    return result(g, g->ctx->hccl->HcclAlltoAllV(in, sent, sent_at, type, out, got, got_at, type, g->comm, stream), "HcclAlltoAllV", err);
}

/* The k-th message to oneself goes to the k-th from oneself: a copy on the stream. */
static ct_status copy_to_self(hccl_group *g, const ct_comm_message *messages, int n, void *stream, ct_err *err)
{
    int next = 0;
    for (int i = 0; i < n; i++) {
        if (messages[i].peer != g->desc->rank || !messages[i].is_send) {
            continue;
        }
        while (next < n && (messages[next].peer != g->desc->rank || messages[next].is_send)) {
            next++;
        }
        CT_ASSERT(next < n); /* comm.c has seen to it */
        const ct_comm_message *to = &messages[next++];
        CT_TRY(acl(g, g->ctx->cann->aclrtMemcpyAsync(to->data, to->size_bytes, messages[i].data, messages[i].size_bytes, ACL_MEMCPY_DEVICE_TO_DEVICE, stream),
                   "aclrtMemcpyAsync", err));
    }
    return CT_OK;
}

static ct_status hccl_exchange(void *ctx, void *group, const ct_comm_group_desc *desc, const ct_comm_message *messages, int n, int64_t timeout_ms,
                               void *stream, ct_err *err)
{
    hccl_group *g = group;
    (void)ctx;
    (void)desc;
    (void)timeout_ms;
    CT_TRY(use(g, stream, err));
    if (n > g->n_items) {
        void *grown = ct_alloc_resize(g->ctx->alloc, g->items, (size_t)n, sizeof *g->items, err);
        if (grown == NULL) {
            return CT_ERR_MEMORY;
        }
        g->items = grown;
        g->n_items = n;
    }
    uint32_t n_items = 0;
    for (int i = 0; i < n; i++) {
        if (messages[i].peer != g->desc->rank) {
            g->items[n_items++] = (HcclSendRecvItem){.sendRecvType = messages[i].is_send ? HCCL_SEND : HCCL_RECV,
                                                     .buf = messages[i].data,
                                                     .count = messages[i].size_bytes,
                                                     .dataType = HCCL_DATA_TYPE_UINT8,
                                                     .remoteRank = (uint32_t)messages[i].peer};
        }
    }
    CT_TRY(copy_to_self(g, messages, n, stream, err));
    if (n_items == 0) {
        return CT_OK;
    }
    if (g->ctx->hccl->HcclBatchSendRecv == NULL) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "this CANN has no HcclBatchSendRecv");
    }
    return result(g, g->ctx->hccl->HcclBatchSendRecv(g->items, n_items, g->comm, stream), "HcclBatchSendRecv", err);
}

/* A sum of one number where this CANN has no barrier: its result is there when all have come. */
static ct_status hccl_barrier(void *ctx, void *group, void *stream, ct_err *err)
{
    hccl_group *g = group;
    (void)ctx;
    CT_TRY(use(g, stream, err));
    if (g->ctx->hccl->HcclBarrier != NULL) {
        CT_TRY(result(g, g->ctx->hccl->HcclBarrier(g->comm, stream), "HcclBarrier", err));
    } else {
        CT_TRY(reserve_scratch(g, err));
        CT_TRY(acl(g, g->ctx->cann->aclrtMemsetAsync(g->device, sizeof(int32_t), 0, sizeof(int32_t), stream), "aclrtMemsetAsync", err));
        CT_TRY(result(g, g->ctx->hccl->HcclAllReduce(g->device, g->device, 1, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, g->comm, stream), "HcclAllReduce", err));
    }
    return acl(g, g->ctx->cann->aclrtSynchronizeStream(stream), "waiting for a barrier", err);
}

const ct_comm_engine *ct_comm_hccl_engine(void)
{
    static const ct_comm_engine engine = {
        .abi = CT_COMM_ABI,
        .size_bytes = sizeof(ct_comm_engine),
        .name = "hccl",
        .device = "npu",
        .open = hccl_open,
        .close = hccl_close,
        .abort = hccl_abort,
        .group_open = hccl_group_open,
        .group_close = hccl_group_close,
        .exchange = hccl_exchange,
        .all_reduce = hccl_all_reduce,
        .all_gather = hccl_all_gather,
        .reduce_scatter = hccl_reduce_scatter,
        .broadcast = hccl_broadcast,
        .all_to_all_v = hccl_all_to_all_v,
        .barrier = hccl_barrier,
    };
    return &engine;
}
