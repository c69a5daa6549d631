/* SPDX-License-Identifier: Apache-2.0 */
/* Proves an override of attention equal to what it replaces, before anything is trained with it:
 *   rope  the rotated q and k are bit for bit those of the stock component, over random and extreme inputs;
 *   mask  the attention op's output lies within a computed bound of plain causal attention per document, in double, on the q, k, v that
 *         the replacement itself made.
 * The attention op of either graph is found by its property CT_OP_ATTENTION, so plug-ins' own ops are found too. */
#ifndef CTI_TRAIN_OVERRIDE_CHECK_H
#define CTI_TRAIN_OVERRIDE_CHECK_H

#include "component/component.h"
#include "ctitan/backend.h"

typedef struct cti_override_proof {
    bool is_rope_equal, is_mask_equal;
    char rope[512]; /* what was compared, or where and by how much it differs */
    char mask[512];
} cti_override_proof;

/* target: "plugin.override". ERR_UNSUPPORTED where it replaces no attention; ERR_USAGE for unknown targets. */
CT_MUST_CHECK ct_status cti_override_check(const ct_alloc *alloc, const ct_registry *registry, cti_plugins *plugins,
                                           const ct_backend *backend, const char *target,
                                           cti_override_proof *out_proof, ct_err *err);

#endif
