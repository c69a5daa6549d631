/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of component: what a registry holds. */
#ifndef CTI_COMPONENT_REGISTRY_INTERNAL_H
#define CTI_COMPONENT_REGISTRY_INTERNAL_H

#include "component/component.h"

typedef struct cti_registry_config {
    const char *module, *config; /* owned by the arena */
    ct_config_fn make;           /* NULL where refusal is not */
    const char *refusal;         /* the arena's; NULL: can be used */
} cti_registry_config;

struct ct_registry {
    const ct_alloc *alloc; /* borrows */
    ct_arena *arena;       /* owns: names */
    cti_registry_config *configs; /* own the arrays */
    ct_override *overrides;
    const ct_class **classes;
    struct {
        const ct_class *cls;
        cti_builder_fn build;
    } builders[8];
    size_t n_builders;
    size_t n_configs, cap_configs, n_overrides, cap_overrides, n_classes, cap_classes;
};

#endif
