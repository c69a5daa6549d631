/* SPDX-License-Identifier: Apache-2.0 */
/* Bootstrap: which rank of how many this process is, and a small key-value store that all of them reach.
 *
 *     ct_place place;
 *     CT_TRY(ct_place_from_env(NULL, NULL, &place, err));             // RANK, WORLD_SIZE, ... as torchrun sets them
 *     ct_bootstrap *boot;
 *     CT_TRY(ct_bootstrap_create(alloc, &place, 300000, &boot, err)); // one process: no sockets at all
 *     ... ct_bootstrap_set / _get / _add, ct_comm_world_create(...)
 *     ct_bootstrap_destroy(&boot);                                    // after the groups
 *
 * Who serves the store: under `ctitan run` the supervisor (it says so by CTITAN_STORE=supervisor), else rank 0, in a
 * background thread, at MASTER_ADDR:MASTER_PORT. The wire format is docs/formats/store.md.
 *
 * It moves ids and addresses (bytes and kilobytes), never tensors; those are comm.h's.
 */
#ifndef CT_COMM_BOOTSTRAP_H
#define CT_COMM_BOOTSTRAP_H

#include <stdbool.h>
#include <stdint.h>

#include "ctitan/alloc.h"

#define CT_STORE_MAX_KEY_BYTES 512
#define CT_STORE_MAX_VALUE_BYTES (1 << 20)

/* Where this process stands. Plain data. */
typedef struct ct_place {
    int rank, world_size;             /* of the whole run */
    int local_rank, local_world_size; /* of this host */
    char master_addr[256];            /* host name or address; "" where world_size is 1 and none was given */
    int master_port;                  /* 1..65535; 0 where none was given */
    char run_id[128];                 /* TORCHELASTIC_RUN_ID; "" where absent. Ranks of other runs are turned away */
    int restart;                      /* TORCHELASTIC_RESTART_COUNT, 0 where absent: part of every store key */
    bool store_is_supervised;         /* the store is served by the supervisor, not by rank 0 */
    int watch_fd;                     /* CTITAN_WATCH_FD: memory of the supervisor's for the flight recorder (recorder.h); 0: none */
} ct_place;

/* Looks a variable up; NULL where unset. */
typedef const char *(*ct_env_lookup)(void *ctx, const char *name);

/**
 * Reads RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT, TORCHELASTIC_RUN_ID,
 * TORCHELASTIC_RESTART_COUNT, TORCHELASTIC_USE_AGENT_STORE, CTITAN_STORE and CTITAN_WATCH_FD.
 *
 * lookup  NULL: the process's environment. ctx is handed to it.
 *
 * Neither RANK nor WORLD_SIZE: what mpirun (Open MPI, or a PMI) or srun set for several processes; on one host they need no MASTER_ADDR and
 * MASTER_PORT. Where torchrun's agent itself serves at MASTER_PORT, the port is one made from it and the run id. Without these, too: rank 0 of 1. LOCAL_RANK and LOCAL_WORLD_SIZE may both be absent (one host is assumed).
 * Fails: CT_ERR_USAGE naming the variable that is missing, is not a number, or contradicts another one.
 */
CT_MUST_CHECK ct_status ct_place_from_env(ct_env_lookup lookup, void *ctx, ct_place *out_place, ct_err *err);

typedef struct ct_bootstrap ct_bootstrap;

/**
 * Opens the store. With world_size 1 it is a table in memory and nothing else. Otherwise the serving rank listens and
 * every rank connects, trying again until timeout_ms have passed, since ranks start in any order.
 *
 * timeout_ms  > 0; for connecting
 *
 * Fails: CT_ERR_TIMEOUT where nobody listens in time; CT_ERR_IO where rank 0 cannot listen; CT_ERR_USAGE where the store
 *        turns us away (another run id, another world size, a rank that is there already) or is none of ours.
 */
CT_MUST_CHECK ct_status ct_bootstrap_create(const ct_alloc *alloc, const ct_place *place, int64_t timeout_ms,
                                            ct_bootstrap **out_boot, ct_err *err);
/* Says goodbye. Rank 0, where it serves the store, first waits (10 s at most) until the others did. */
void ct_bootstrap_destroy(ct_bootstrap **boot);

const ct_place *ct_bootstrap_place(const ct_bootstrap *boot);
const ct_alloc *ct_bootstrap_alloc(const ct_bootstrap *boot);
/* The address of this host by which the store was reached, as text ("127.0.0.1"); "" with world_size 1. */
const char *ct_bootstrap_local_addr(const ct_bootstrap *boot);

/* The store. Keys are 1..CT_STORE_MAX_KEY_BYTES bytes of text, values 0..CT_STORE_MAX_VALUE_BYTES bytes.
 * Threads: any; calls of one process go one after the other, so a get that waits holds up the others.
 * Fails: CT_ERR_PEER where the store is gone, CT_ERR_RANGE beyond the limits above. */
CT_MUST_CHECK ct_status ct_bootstrap_set(ct_bootstrap *boot, const char *key, const void *value, size_t size_bytes,
                                         ct_err *err);
/* Waits until key is set, timeout_ms at most (0: does not wait); then CT_ERR_TIMEOUT. Caller frees *out_value with
 * ct_alloc_free(ct_bootstrap_alloc(boot), ...); it is NUL-terminated one byte past *out_size. */
CT_MUST_CHECK ct_status ct_bootstrap_get(ct_bootstrap *boot, const char *key, int64_t timeout_ms, void **out_value,
                                         size_t *out_size, ct_err *err);
/* Adds to a counter (absent: 0) and gives its new value. Counters and values share the keys; a key that holds a value
 * is CT_ERR_STATE. */
CT_MUST_CHECK ct_status ct_bootstrap_add(ct_bootstrap *boot, const char *key, int64_t amount, int64_t *out_value,
                                         ct_err *err);

#endif
