/* SPDX-License-Identifier: Apache-2.0 */
/* Bootstrap: one process keeps the store as a table; several reach it through store_client.c. */
#include <inttypes.h>
#include <pthread.h>

#include "comm/bootstrap.h"
#include "comm/store.h"

enum { WAIT_FOR_OTHERS_MS = 10000 };

struct ct_bootstrap {
    const ct_alloc *alloc; /* borrows */
    ct_place place;
    cti_store_server *server; /* owns; NULL where another process serves */
    cti_store_client *client; /* owns; NULL with one process */
    cti_store_table table;    /* with one process */
    pthread_mutex_t lock;     /* guards table */
};

static ct_status open_store(ct_bootstrap *b, int64_t timeout_ms, ct_err *err)
{
    const ct_place *p = &b->place;
    if (p->rank == 0 && !p->store_is_supervised) {
        int fd, port;
        ct_status st = cti_store_listen(p->master_addr, p->master_port, &fd, &port, err);
        if (st != CT_OK) {
            ct_err_prefix(err, "rank 0 cannot serve the store at MASTER_ADDR:MASTER_PORT");
            return st;
        }
        CT_TRY(cti_store_server_start(b->alloc, fd, p->world_size, p->run_id, &b->server, err));
    }
    cti_store_hello hello = {p->rank, p->world_size, p->restart, p->run_id};
    return cti_store_client_connect(b->alloc, p->master_addr, p->master_port, &hello, timeout_ms, &b->client, err);
}

ct_status ct_bootstrap_create(const ct_alloc *alloc, const ct_place *place, int64_t timeout_ms,
                              ct_bootstrap **out_boot, ct_err *err)
{
    ct_bootstrap *b = CT_NEW(alloc, ct_bootstrap, err);
    if (b == NULL) {
        return CT_ERR_MEMORY;
    }
    b->alloc = alloc;
    b->place = *place;
    cti_store_table_init(&b->table, alloc);
    (void)pthread_mutex_init(&b->lock, NULL);
    if (place->world_size > 1) {
        ct_status st = open_store(b, timeout_ms, err);
        if (st != CT_OK) {
            cti_store_client_destroy(&b->client);
            cti_store_server_stop(&b->server);
            ct_bootstrap_destroy(&b);
            return st;
        }
    }
    *out_boot = b;
    return CT_OK;
}

void ct_bootstrap_destroy(ct_bootstrap **boot)
{
    ct_bootstrap *b = *boot;
    if (b == NULL) {
        return;
    }
    cti_store_client_destroy(&b->client);
    if (b->server != NULL) {
        cti_store_server_wait_left(b->server, 0, WAIT_FOR_OTHERS_MS);
        cti_store_server_stop(&b->server);
    }
    cti_store_table_deinit(&b->table);
    (void)pthread_mutex_destroy(&b->lock);
    ct_alloc_free(b->alloc, b);
    *boot = NULL;
}

const ct_place *ct_bootstrap_place(const ct_bootstrap *b)
{
    return &b->place;
}

const ct_alloc *ct_bootstrap_alloc(const ct_bootstrap *b)
{
    return b->alloc;
}

const char *ct_bootstrap_local_addr(const ct_bootstrap *b)
{
    return b->client != NULL ? cti_store_client_local_addr(b->client) : "";
}

static ct_status check_key(const char *key, ct_err *err)
{
    size_t size = strlen(key);
    if (size < 1 || size > CT_STORE_MAX_KEY_BYTES) {
        return CT_FAIL(err, CT_ERR_RANGE, "a store key has 1..%d bytes, this one has %zu", CT_STORE_MAX_KEY_BYTES, size);
    }
    return CT_OK;
}

ct_status ct_bootstrap_set(ct_bootstrap *b, const char *key, const void *value, size_t size_bytes, ct_err *err)
{
    if (b->client != NULL) {
        return cti_store_client_set(b->client, key, value, size_bytes, err);
    }
    CT_TRY(check_key(key, err));
    if (size_bytes > CT_STORE_MAX_VALUE_BYTES) {
        return CT_FAIL(err, CT_ERR_RANGE, "store key '%s': a value has at most %d bytes, this one has %zu", key,
                       CT_STORE_MAX_VALUE_BYTES, size_bytes);
    }
    pthread_mutex_lock(&b->lock);
    ct_status st = cti_store_table_set(&b->table, key, value, size_bytes, err);
    pthread_mutex_unlock(&b->lock);
    return st;
}

ct_status ct_bootstrap_get(ct_bootstrap *b, const char *key, int64_t timeout_ms, void **out_value, size_t *out_size,
                           ct_err *err)
{
    if (b->client != NULL) {
        return cti_store_client_get(b->client, key, timeout_ms, out_value, out_size, err);
    }
    CT_TRY(check_key(key, err));
    ct_status st = CT_OK;
    pthread_mutex_lock(&b->lock);
    const cti_store_entry *entry = cti_store_table_find(&b->table, key);
    if (entry == NULL) {
        st = CT_FAIL(err, CT_ERR_TIMEOUT, "store key '%s' is not set and there is one process only", key);
    } else {
        char buf[32];
        size_t size;
        const void *bytes = cti_store_entry_bytes(entry, buf, &size);
        char *copy = ct_alloc_zeroed(b->alloc, size + 1, 1, err);
        st = copy == NULL ? CT_ERR_MEMORY : CT_OK;
        if (copy != NULL) {
            memcpy(copy, bytes, size);
            *out_value = copy;
            *out_size = size;
        }
    }
    pthread_mutex_unlock(&b->lock);
    return st;
}

ct_status ct_bootstrap_add(ct_bootstrap *b, const char *key, int64_t amount, int64_t *out_value, ct_err *err)
{
    if (b->client != NULL) {
        return cti_store_client_add(b->client, key, amount, out_value, err);
    }
    CT_TRY(check_key(key, err));
    pthread_mutex_lock(&b->lock);
    ct_status st = cti_store_table_add(&b->table, key, amount, out_value, err);
    pthread_mutex_unlock(&b->lock);
    return st;
}
