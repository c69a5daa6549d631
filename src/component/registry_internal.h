/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of component: what a registry holds. */
#ifndef CTI_COMPONENT_REGISTRY_INTERNAL_H
#define CTI_COMPONENT_REGISTRY_INTERNAL_H

#include "component/component.h"

typedef struct cti_registry_config {
    const char *module, *config; /* owned by the arena */
    ct_config_fn make;           /* NULL where refusal or change is not */
    const char *refusal;         /* the arena's; NULL: can be used */
    ct_change_fn change;         /* NULL: no variant */
    const char *base_module, *base_config; /* of a variant; the arena's */
} cti_registry_config;

struct ct_registry {
    const ct_alloc *alloc; /* borrows */
    ct_arena *arena;       /* owns: names */
    cti_registry_config *configs; /* own the arrays */
    ct_override *overrides;
    const ct_class **classes;
    int32_t *ops; /* ids, held */
    ct_dataset *datasets;
    ct_optimizer *optimizers;
    struct {
        const ct_class *cls;
        cti_builder_fn build;
    } builders[8];
    size_t n_builders;
    size_t n_configs, cap_configs, n_overrides, cap_overrides, n_classes, cap_classes;
    size_t n_ops, cap_ops, n_datasets, cap_datasets, n_optimizers, cap_optimizers;
};

/* The fields of `root`'s model_spec in the arena, to see later what has changed. NULL where there is no spec. */
CT_MUST_CHECK ct_status cti_spec_copy(const ct_component *root, ct_arena *arena, void **out, ct_err *err);
bool cti_spec_differs(const ct_component *spec, const void *values);
/* Room for one more item. */
CT_MUST_CHECK ct_status cti_registry_make_room(const ct_alloc *alloc, void **items, size_t n, size_t *cap, size_t item_bytes, ct_err *err);
/* NULL where the module has no function of this name. */
const cti_registry_config *cti_registry_find_config(const ct_registry *registry, const char *module, const char *config);

#endif
