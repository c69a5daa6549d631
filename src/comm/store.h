/* SPDX-License-Identifier: Apache-2.0 */
/* The key-value store behind bootstrap.h: its table, its server (rank 0 or the supervisor) and its client.
 * The wire format is docs/formats/store.md; store_wire.h holds its numbers. */
#ifndef CTI_COMM_STORE_H
#define CTI_COMM_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "ctitan/alloc.h"

/* ---- table ---- */

typedef struct cti_store_entry {
    struct cti_store_entry *next; /* owns */
    char *key;                    /* owns, NUL-terminated */
    bool is_counter;
    int64_t counter;
    char *value; /* owns, NUL-terminated one past size; NULL for a counter */
    size_t size_bytes;
} cti_store_entry;

#define CTI_STORE_BUCKETS 1024u
#define CTI_STORE_MAX_TOTAL_BYTES (256u << 20) /* keys and values together */

typedef struct cti_store_table {
    const ct_alloc *alloc; /* borrows */
    cti_store_entry *buckets[CTI_STORE_BUCKETS];
    size_t total_bytes;
} cti_store_table;

void cti_store_table_init(cti_store_table *table, const ct_alloc *alloc);
void cti_store_table_deinit(cti_store_table *table);
const cti_store_entry *cti_store_table_find(const cti_store_table *table, const char *key); /* NULL: absent */
/* Fails: CT_ERR_RANGE where the table is full, CT_ERR_MEMORY. */
CT_MUST_CHECK ct_status cti_store_table_set(cti_store_table *table, const char *key, const void *value,
                                            size_t size_bytes, ct_err *err);
/* Fails: CT_ERR_STATE where key holds a value; CT_ERR_RANGE where the sum does not fit. */
CT_MUST_CHECK ct_status cti_store_table_add(cti_store_table *table, const char *key, int64_t amount,
                                            int64_t *out_value, ct_err *err);
/* The entry's bytes: the value, or the counter in decimal (written to buf, >= 32 bytes). */
const void *cti_store_entry_bytes(const cti_store_entry *entry, char buf[32], size_t *out_size);

/* ---- server ---- */

/* A listening TCP socket (close-on-exec). host "localhost" or a loopback address: loopback only; else every interface, so
 * that a name which resolves differently here and there does no harm. port 0: a free one. */
CT_MUST_CHECK ct_status cti_store_listen(const char *host, int port, int *out_fd, int *out_port, ct_err *err);

typedef struct cti_store_server cti_store_server;

/* Serves in a thread of its own. listen_fd is taken over, also where this fails. alloc must be safe for threads. Peers that
 * send anything but the protocol are dropped; at most world_size greeted clients and world_size + 64 others are held. */
CT_MUST_CHECK ct_status cti_store_server_start(const ct_alloc *alloc, int listen_fd, int world_size, const char *run_id,
                                               cti_store_server **out_server, ct_err *err);
/* Waits until all ranks have come and gone, timeout_ms at most. n_own: connections of the caller itself, still open. */
void cti_store_server_wait_left(cti_store_server *server, int n_own, int64_t timeout_ms);
void cti_store_server_stop(cti_store_server **server);

/* ---- client ---- */

/* A connection (not blocking, close-on-exec), trying again until timeout_ms have passed. Fails: CT_ERR_TIMEOUT with the cause
 * ("Connection refused"), CT_ERR_USAGE where the host has no address. */
CT_MUST_CHECK ct_status cti_store_dial(const char *host, int port, int64_t timeout_ms, int *out_fd, ct_err *err);
/* Whether an address of host is one of this machine's. */
bool cti_store_host_is_ours(const char *host);

typedef struct cti_store_client cti_store_client;

typedef struct cti_store_hello {
    int rank, world_size, restart;
    const char *run_id; /* borrowed during the call */
} cti_store_hello;

/* Connects, trying again until timeout_ms have passed, and greets. Fails as ct_bootstrap_create says. */
CT_MUST_CHECK ct_status cti_store_client_connect(const ct_alloc *alloc, const char *host, int port,
                                                 const cti_store_hello *hello, int64_t timeout_ms,
                                                 cti_store_client **out_client, ct_err *err);
void cti_store_client_destroy(cti_store_client **client);
const char *cti_store_client_local_addr(const cti_store_client *client);
CT_MUST_CHECK ct_status cti_store_client_set(cti_store_client *client, const char *key, const void *value,
                                             size_t size_bytes, ct_err *err);
CT_MUST_CHECK ct_status cti_store_client_get(cti_store_client *client, const char *key, int64_t timeout_ms,
                                             void **out_value, size_t *out_size, ct_err *err);
CT_MUST_CHECK ct_status cti_store_client_add(cti_store_client *client, const char *key, int64_t amount,
                                             int64_t *out_value, ct_err *err);

#endif
