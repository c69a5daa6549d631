/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of overrides. */
#ifndef CTI_COMPONENT_OVERRIDES_INTERNAL_H
#define CTI_COMPONENT_OVERRIDES_INTERNAL_H

#include "component/component.h"

/* One node that one override wants. */
typedef struct cti_claim {
    const ct_override *row;
    const cti_override_entry *entry;
    ct_component *node;
    const char *fqn;
    ct_component *with; /* its replacement, or the node itself */
} cti_claim;

typedef struct cti_override_work {
    ct_tree *tree;
    ct_arena *arena;
    cti_claim *claims; /* the arena's */
    size_t n, cap;
} cti_override_work;

/* The lines of all claims, and "Applied N override(s)". */
CT_MUST_CHECK ct_status cti_overrides_lines(const cti_override_work *work, const ct_alloc *alloc, cti_overrides_applied *applied, ct_err *err);
/* What a replacement must be, whoever made it (override_rules.c): apart from the tree, laid out as the classes that it says it is, every value in
 * its field's bounds. ERR_PLUGIN or ERR_USAGE, without the override's name. */
CT_MUST_CHECK ct_status cti_override_check_made(ct_tree *tree, const cti_claim *claim, ct_err *err);
/* What the trainer reads by its C struct must still be of that class. */
CT_MUST_CHECK ct_status cti_override_check_kind(const ct_registry *registry, const cti_claim *claim, ct_err *err);

#endif
