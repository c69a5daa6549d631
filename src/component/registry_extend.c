/* SPDX-License-Identifier: Apache-2.0 */
/* What plug-ins add to the registry beside overrides and classes: ops, data sets, optimizers, variants of registry functions. Structs and
 * names are copied; functions, and what ops point to, are the plug-in's. */
#include <string.h>

#include "base/str.h"
#include "component/registry_internal.h"
#include "ops/ops.h"

/* ---- ops -------------------------------------------------------------------------------------------------------- */

ct_status ct_registry_add_op(ct_registry *registry, const ct_op *row, int32_t *out_id, ct_err *err)
{
    const char *name = row->name != NULL ? row->name : "";
    for (size_t i = 0; i < registry->n_ops; i++) {
        if (cti_str_eq(ct_op_row(registry->ops[i])->name, name)) {
            return CT_FAIL(err, CT_ERR_RANGE, "the op '%s' is registered already", name);
        }
    }
    void *items = registry->ops;
    CT_TRY(cti_registry_make_room(registry->alloc, &items, registry->n_ops, &registry->cap_ops, sizeof *registry->ops, err));
    registry->ops = items;
    CT_TRY(cti_op_register(row, out_id, err));
    registry->ops[registry->n_ops++] = *out_id;
    return CT_OK;
}

const ct_op *cti_registry_op_at(const ct_registry *registry, size_t i)
{
    return i < registry->n_ops ? ct_op_row(registry->ops[i]) : NULL;
}

const ct_class *cti_registry_class_at(const ct_registry *registry, size_t i)
{
    return i < registry->n_classes ? registry->classes[i] : NULL;
}

/* ---- data sets -------------------------------------------------------------------------------------------------- */

static ct_status check_dotted(const char *what, const char *name, ct_err *err)
{
    if (name == NULL || strchr(name, '.') == NULL || name[0] == '.' || strpbrk(name, "/: \t\n") != NULL) {
        return CT_FAIL(err, CT_ERR_RANGE, "the %s '%.120s': wanted a name such as 'plugin.name', without '/', ':' and blanks", what, name != NULL ? name : "");
    }
    return CT_OK;
}

ct_status ct_registry_add_dataset(ct_registry *registry, const ct_dataset *dataset, ct_err *err)
{
    CT_TRY(check_dotted("data set", dataset->name, err));
    if (dataset->open == NULL || dataset->close == NULL || dataset->read == NULL) {
        return CT_FAIL(err, CT_ERR_RANGE, "the data set '%s' has no function %s", dataset->name,
                       dataset->open == NULL ? "open" : dataset->close == NULL ? "close" : "read");
    }
    if (cti_registry_dataset(registry, dataset->name) != NULL) {
        return CT_FAIL(err, CT_ERR_RANGE, "the data set '%s' is registered already", dataset->name);
    }
    void *items = registry->datasets;
    CT_TRY(cti_registry_make_room(registry->alloc, &items, registry->n_datasets, &registry->cap_datasets, sizeof *registry->datasets, err));
    registry->datasets = items;
    ct_dataset copy = *dataset;
    copy.name = ct_arena_strdup(registry->arena, dataset->name, err);
    copy.description = ct_arena_strdup(registry->arena, dataset->description != NULL ? dataset->description : "", err);
    if (copy.name == NULL || copy.description == NULL) {
        return CT_ERR_MEMORY;
    }
    registry->datasets[registry->n_datasets++] = copy;
    return CT_OK;
}

const ct_dataset *cti_registry_dataset_at(const ct_registry *registry, size_t i)
{
    return i < registry->n_datasets ? &registry->datasets[i] : NULL;
}

const ct_dataset *cti_registry_dataset(const ct_registry *registry, const char *name)
{
    for (size_t i = 0; registry != NULL && i < registry->n_datasets; i++) {
        if (cti_str_eq(registry->datasets[i].name, name)) {
            return &registry->datasets[i];
        }
    }
    return NULL;
}

/* ---- optimizers ------------------------------------------------------------------------------------------------- */

ct_status ct_registry_add_optimizer(ct_registry *registry, const ct_optimizer *optimizer, ct_err *err)
{
    CT_TRY(check_dotted("optimizer", optimizer->name, err));
    if (optimizer->emit == NULL) {
        return CT_FAIL(err, CT_ERR_RANGE, "the optimizer '%s' has no function emit", optimizer->name);
    }
    if (optimizer->states >= 1u << CT_N_STATES) {
        return CT_FAIL(err, CT_ERR_RANGE, "the optimizer '%s' asks for states 0x%x; there are exp_avg 1, exp_avg_sq 2 and momentum_buffer 4", optimizer->name,
                       (unsigned)optimizer->states);
    }
    if (cti_registry_optimizer(registry, optimizer->name) != NULL) {
        return CT_FAIL(err, CT_ERR_RANGE, "the optimizer '%s' is registered already", optimizer->name);
    }
    void *items = registry->optimizers;
    CT_TRY(cti_registry_make_room(registry->alloc, &items, registry->n_optimizers, &registry->cap_optimizers, sizeof *registry->optimizers, err));
    registry->optimizers = items;
    ct_optimizer copy = *optimizer;
    copy.name = ct_arena_strdup(registry->arena, optimizer->name, err);
    copy.description = ct_arena_strdup(registry->arena, optimizer->description != NULL ? optimizer->description : "", err);
    if (copy.name == NULL || copy.description == NULL) {
        return CT_ERR_MEMORY;
    }
    registry->optimizers[registry->n_optimizers++] = copy;
    return CT_OK;
}

const ct_optimizer *cti_registry_optimizer_at(const ct_registry *registry, size_t i)
{
    return i < registry->n_optimizers ? &registry->optimizers[i] : NULL;
}

const ct_optimizer *cti_registry_optimizer(const ct_registry *registry, const char *name)
{
    for (size_t i = 0; registry != NULL && i < registry->n_optimizers; i++) {
        if (cti_str_eq(registry->optimizers[i].name, name)) {
            return &registry->optimizers[i];
        }
    }
    return NULL;
}

/* ---- variants --------------------------------------------------------------------------------------------------- */

ct_status ct_registry_add_variant(ct_registry *registry, const char *module, const char *config, const char *base_module, const char *base_config,
                                  ct_change_fn change, ct_err *err)
{
    if (module == NULL || config == NULL || base_module == NULL || base_config == NULL || change == NULL || module[0] == '\0' || config[0] == '\0') {
        return CT_FAIL(err, CT_ERR_RANGE, "the registry function '%s' of '%s': wanted two names, those of its base, and what changes it",
                       config != NULL ? config : "", module != NULL ? module : "");
    }
    if (cti_registry_find_config(registry, module, config) != NULL) {
        return CT_FAIL(err, CT_ERR_RANGE, "the registry function '%s' of '%s' is registered already", config, module);
    }
    const cti_registry_config *base = cti_registry_find_config(registry, base_module, base_config);
    if (base == NULL || base->refusal != NULL) {
        return CT_FAIL(err, CT_ERR_RANGE, "the registry function '%s' of '%s' goes out from '%s' of '%s', which %s", config, module, base_config, base_module,
                       base == NULL ? "is not there" : "cannot be used");
    }
    void *items = registry->configs;
    CT_TRY(cti_registry_make_room(registry->alloc, &items, registry->n_configs, &registry->cap_configs, sizeof *registry->configs, err));
    registry->configs = items;
    const cti_registry_config row = {.module = ct_arena_strdup(registry->arena, module, err),
                                     .config = ct_arena_strdup(registry->arena, config, err),
                                     .change = change,
                                     .base_module = ct_arena_strdup(registry->arena, base_module, err),
                                     .base_config = ct_arena_strdup(registry->arena, base_config, err)};
    if (row.module == NULL || row.config == NULL || row.base_module == NULL || row.base_config == NULL) {
        return CT_ERR_MEMORY;
    }
    registry->configs[registry->n_configs++] = row;
    return CT_OK;
}

ct_status cti_spec_copy(const ct_component *root, ct_arena *arena, void **out, ct_err *err)
{
    const ct_component *spec = ct_component_child(root, "model_spec");
    *out = NULL;
    if (spec == NULL) {
        return CT_OK;
    }
    *out = ct_arena_alloc(arena, spec->cls->values_bytes + 1, err);
    if (*out == NULL) {
        return CT_ERR_MEMORY;
    }
    if (spec->cls->values_bytes > 0) {
        memcpy(*out, spec->values, spec->cls->values_bytes);
    }
    return CT_OK;
}

bool cti_spec_differs(const ct_component *spec, const void *values)
{
    for (int32_t i = 0; i < spec->cls->n_fields; i++) {
        if (!ct_field_equal(&spec->cls->fields[i], spec->values, values)) {
            return true;
        }
    }
    return false;
}
