/* SPDX-License-Identifier: Apache-2.0 */
/* One part of a model, or the whole, alone on a device with its gradients: what override_proof.c compares. */
#ifndef CTI_TRAIN_OVERRIDE_PROBE_H
#define CTI_TRAIN_OVERRIDE_PROBE_H

#include "ctitan/backend.h"
#include "ctitan/component.h"
#include "train/engine.h"

typedef struct cti_probe_shape {
    int64_t dim, n_heads, n_kv_heads, ffn_hidden, vocab, batch, seq_len;
} cti_probe_shape;

typedef struct cti_probe {
    const ct_alloc *alloc;
    ct_graph *graph; /* owns */
    ct_build build;
    cti_engine *engine; /* owns */
    ct_dtype dtype;
    cti_probe_shape shape;
    ct_value_id x, w, y, loss; /* x, w, y: CT_NO_VALUE in the whole model */
    ct_value_id *wrt, *grads;  /* x where there is one, then each parameter of `build` (joined ones: the same value); the graph's */
    int32_t n_wrt;
} cti_probe;

/* unit: the part, in its parent; NULL: the whole model. x [B, S, D] -> y, and a loss on y with a random head; all in `dtype`.
 * ERR_UNSUPPORTED where the backend has no kernel for something, or the part no gradient. */
CT_MUST_CHECK ct_status cti_probe_create(const ct_alloc *alloc, const ct_backend *backend, const ct_component *root, const ct_component *unit,
                                         ct_dtype dtype, const cti_probe_shape *shape, cti_probe **out_probe, ct_err *err);
void cti_probe_destroy(cti_probe **probe);
/* Random inputs (x times scale) and weights, alike in every format; forward and backward. */
CT_MUST_CHECK ct_status cti_probe_run(cti_probe *probe, double scale, ct_err *err);
/* Quantity i: 0 forward (y; the loss), then the gradients, of x where there is one and of each parameter. *out_values: the caller frees. */
CT_MUST_CHECK ct_status cti_probe_read(cti_probe *probe, int32_t i, double **out_values, int64_t *out_n, ct_err *err);
int32_t cti_probe_count(const cti_probe *probe);
/* "forward", "gradient of x", "gradient of w1.weight": memory of the graph's arena; NULL out of memory. */
const char *cti_probe_name(cti_probe *probe, int32_t i, ct_err *err);

/* The same weights for a generator (cti_weight_source). ctx: its ct_flat_layout. */
CT_MUST_CHECK ct_status cti_probe_weight(const void *ctx, const char *name, int64_t begin, int64_t end, ct_dtype dtype, void *dst, ct_err *err);

#endif
