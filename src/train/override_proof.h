/* SPDX-License-Identifier: Apache-2.0 */
/* Proves a replacement of parts of the model, or of the loss, equal to what it replaces: both run forward and backward on the same inputs and weights,
 * at several sizes, beside the stock part in double on the reference backend. What can be taken out of the model is compared alone (attention,
 * feed_forward, norms, whole blocks; what stands within them as part of them); everything is compared in the whole model too.
 *
 *     cti_proof *proof;
 *     CT_TRY(cti_proof_create(alloc, registry, plugins, cpu, ref, "x.norm", &proof, err));
 *     … proof->lines, proof->is_forward_equal …
 *     cti_proof_destroy(&proof);
 */
#ifndef CTI_TRAIN_OVERRIDE_PROOF_H
#define CTI_TRAIN_OVERRIDE_PROOF_H

#include "component/component.h"
#include "ctitan/backend.h"

/* One quantity in one number format: the place where the difference comes nearest to what is allowed, or is farthest above. */
typedef struct cti_proof_line {
    const char *unit; /* "feed_forward", "model" */
    const char *what; /* "forward", "gradient of x", "gradient of w1.weight" */
    ct_dtype dtype;   /* f64: on the reference backend; else on the device */
    const char *shape; /* where it is: "2 x 24 tokens, dim 64, inputs x 0.001" */
    double difference; /* the largest of an element, from the stock part in double */
    double allowed;    /* f32, bf16: 3 times the stock part's own, and 4 roundings of the largest element (or 1 of the largest of all gradients,
                          for those that cancel); f64: 64 times what the stock part's f32 error is in roundings */
} cti_proof_line;

typedef struct cti_proof {
    const ct_alloc *alloc;
    ct_arena *arena; /* owns all below */
    int64_t n_nodes;          /* that the override replaces in llama3's debug model */
    const char *first_node;   /* the first log line of it */
    bool has_ops;             /* false: it replaces settings alone, and there is nothing to compare */
    bool replaces_attention;
    cti_proof_line *lines;
    int32_t n_lines, cap_lines;
    bool is_forward_equal, are_gradients_equal;
    const char *mismatch; /* NULL; or in which parameters the two differ, so that their checkpoints are not each other's */
    const char *skipped;  /* "": all was compared; else what was not, with the reason, a line each */
} cti_proof;

/* target: an entry of override.imports ("plugin.name", "plugin.name={…}"). backend: where f32 and bf16 run; ref: the reference.
 * ERR_USAGE: unknown target, or it matches nothing in the debug model; ERR_UNSUPPORTED: the device cannot run one of the two in f32. */
CT_MUST_CHECK ct_status cti_proof_create(const ct_alloc *alloc, const ct_registry *registry, cti_plugins *plugins, const ct_backend *backend,
                                         const ct_backend *ref, const char *target, cti_proof **out_proof, ct_err *err);
void cti_proof_destroy(cti_proof **proof);

#endif
