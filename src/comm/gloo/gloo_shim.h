/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine needs of Gloo, as C: a connected full mesh and an exchange of messages. No C++ exception crosses it. */
#ifndef CTI_COMM_GLOO_SHIM_H
#define CTI_COMM_GLOO_SHIM_H

#include <stddef.h>
#include <stdint.h>

#include "comm/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cti_gloo cti_gloo;

typedef enum cti_gloo_result { CTI_GLOO_OK, CTI_GLOO_PEER, CTI_GLOO_TIMEOUT, CTI_GLOO_FAILED } cti_gloo_result;

/* The store that Gloo connects through. Both return 0, or anything else where they failed (the reason stays with ctx). */
typedef struct cti_gloo_store {
    void *ctx;
    int (*set)(void *ctx, const char *key, const void *data, size_t size_bytes);
    /* Waits. take(to, data, size) is called once with the value where it is there. */
    int (*get)(void *ctx, const char *key, int64_t timeout_ms, void (*take)(void *to, const void *data, size_t size),
               void *to);
} cti_gloo_store;

/* Connects all ranks. iface: the name of an interface, or NULL; then host is the address to listen on.
 * text [text_size]: Gloo's words where this fails. */
cti_gloo_result cti_gloo_open(const cti_gloo_store *store, int rank, int size, const char *host, const char *iface,
                              int64_t timeout_ms, cti_gloo **out, char *text, size_t text_size);
void cti_gloo_close(cti_gloo *gloo);
/* Closes the connections; what others wait for from us then fails there. */
void cti_gloo_abort(cti_gloo *gloo);
/* Starts all, waits for all. world_ranks: those of the peers. *out_peer: the world rank whose message failed. */
cti_gloo_result cti_gloo_exchange(cti_gloo *gloo, const int *world_ranks, const ct_comm_message *messages, int n,
                                  int64_t timeout_ms, int *out_peer, char *text, size_t text_size);

#ifdef __cplusplus
}
#endif
#endif
