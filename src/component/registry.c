/* SPDX-License-Identifier: Apache-2.0 */
/* The registry: registry functions, overrides and classes by name, in order of registration. Names are copied; classes and
 * functions are the caller's static storage. */
#include <string.h>

#include "base/fields.h"
#include "base/nearest.h"
#include "base/str.h"
#include "component/registry_internal.h"
#include "ops/ops.h"

enum { MAX_NAMES = 512 };

ct_status ct_registry_create(const ct_alloc *alloc, ct_registry **out_registry, ct_err *err)
{
    ct_registry *registry = CT_NEW(alloc, ct_registry, err);
    if (registry == NULL) {
        return CT_ERR_MEMORY;
    }
    registry->alloc = alloc;
    const ct_status st = ct_arena_create(alloc, 0, &registry->arena, err);
    if (st != CT_OK) {
        ct_alloc_free(alloc, registry);
        return st;
    }
    *out_registry = registry;
    return CT_OK;
}

void ct_registry_destroy(ct_registry **registry)
{
    if (registry == NULL || *registry == NULL) {
        return;
    }
    ct_registry *r = *registry;
    ct_alloc_free(r->alloc, r->configs);
    ct_alloc_free(r->alloc, r->overrides);
    ct_alloc_free(r->alloc, (void *)(uintptr_t)r->classes);
    cti_registry_rollback(r, (cti_registry_mark){0});
    ct_alloc_free(r->alloc, r->ops);
    ct_alloc_free(r->alloc, r->datasets);
    ct_alloc_free(r->alloc, r->optimizers);
    ct_arena_destroy(&r->arena);
    ct_alloc_free(r->alloc, r);
    *registry = NULL;
}

ct_status cti_registry_make_room(const ct_alloc *alloc, void **items, size_t n, size_t *cap, size_t item_bytes, ct_err *err)
{
    if (n < *cap) {
        return CT_OK;
    }
    const size_t room = *cap == 0 ? 16 : *cap * 2;
    void *grown = ct_alloc_resize(alloc, *items, room, item_bytes, err);
    if (grown == NULL) {
        return CT_ERR_MEMORY;
    }
    *items = grown;
    *cap = room;
    return CT_OK;
}

const cti_registry_config *cti_registry_find_config(const ct_registry *r, const char *module, const char *config)
{
    for (size_t i = 0; i < r->n_configs; i++) {
        if (cti_str_eq(r->configs[i].module, module) && cti_str_eq(r->configs[i].config, config)) {
            return &r->configs[i];
        }
    }
    return NULL;
}

ct_status ct_registry_add_config(ct_registry *registry, const char *module, const char *config, ct_config_fn make,
                                 const char *refusal, ct_err *err)
{
    if (module == NULL || config == NULL || module[0] == '\0' || config[0] == '\0' || (make == NULL && refusal == NULL)) {
        return CT_FAIL(err, CT_ERR_RANGE, "'%s' '%s': wanted two names and a function or a reason", module != NULL ? module : "", config != NULL ? config : "");
    }
    if (cti_registry_find_config(registry, module, config) != NULL) {
        return CT_FAIL(err, CT_ERR_RANGE, "the registry function '%s' of '%s' is registered already", config, module);
    }
    void *items = registry->configs;
    CT_TRY(cti_registry_make_room(registry->alloc, &items, registry->n_configs, &registry->cap_configs, sizeof *registry->configs,
                     err));
    registry->configs = items;
    const cti_registry_config row = {.module = ct_arena_strdup(registry->arena, module, err),
                                     .config = ct_arena_strdup(registry->arena, config, err),
                                     .make = make,
                                     .refusal =
                                         refusal != NULL ? ct_arena_strdup(registry->arena, refusal, err) : NULL};
    if (row.module == NULL || row.config == NULL || (refusal != NULL && row.refusal == NULL)) {
        return CT_ERR_MEMORY;
    }
    registry->configs[registry->n_configs++] = row;
    return CT_OK;
}

static ct_status copy_override(ct_arena *arena, const ct_override *row, ct_override *out, ct_err *err)
{
    *out = *row;
    out->name = ct_arena_strdup(arena, row->name, err);
    out->description = ct_arena_strdup(arena, row->description != NULL ? row->description : "", err);
    if (out->name == NULL || out->description == NULL) {
        return CT_ERR_MEMORY;
    }
    if (row->fqns != NULL) {
        const char **fqns = ct_arena_alloc(arena, ((size_t)row->n_fqns + 1) * sizeof *fqns, err);
        if (fqns == NULL) {
            return CT_ERR_MEMORY;
        }
        for (int32_t i = 0; i < row->n_fqns; i++) {
            fqns[i] = ct_arena_strdup(arena, row->fqns[i], err);
            if (fqns[i] == NULL) {
                return CT_ERR_MEMORY;
            }
        }
        out->fqns = fqns;
    }
    return CT_OK;
}

ct_status ct_registry_add_override(ct_registry *registry, const ct_override *override_row, ct_err *err)
{
    const char *name = override_row->name;
    if (name == NULL || strchr(name, '.') == NULL) {
        return CT_FAIL(err, CT_ERR_RANGE, "the override '%s': wanted a name such as 'plugin.name'",
                       name != NULL ? name : "");
    }
    if (override_row->target == NULL || override_row->factory == NULL) {
        return CT_FAIL(err, CT_ERR_RANGE, "the override '%s' has no %s", name,
                       override_row->target == NULL ? "target class" : "factory");
    }
    if (cti_registry_override(registry, name) != NULL) {
        return CT_FAIL(err, CT_ERR_RANGE, "the override '%s' is registered already", name);
    }
    void *items = registry->overrides;
    CT_TRY(cti_registry_make_room(registry->alloc, &items, registry->n_overrides, &registry->cap_overrides,
                     sizeof *registry->overrides, err));
    registry->overrides = items;
    ct_override copy;
    CT_TRY(copy_override(registry->arena, override_row, &copy, err));
    registry->overrides[registry->n_overrides++] = copy;
    return CT_OK;
}

ct_status ct_registry_add_class(ct_registry *registry, const ct_class *cls, ct_err *err)
{
    if (cls->name == NULL || cls->name[0] == '\0' || cls->n_fields < 0 || (cls->n_fields > 0 && cls->fields == NULL)) {
        return CT_FAIL(err, CT_ERR_RANGE, "the class '%s' has %s", cls->name != NULL ? cls->name : "",
                       cls->name == NULL || cls->name[0] == '\0' ? "no name" : "no table of its fields");
    }
    if (ct_registry_class(registry, cls->name) != NULL) {
        return CT_FAIL(err, CT_ERR_RANGE, "the class '%s' is registered already", cls->name);
    }
    const ct_status st = cti_fields_check(cls->fields, cls->n_fields, cls->values_bytes, err);
    if (st != CT_OK) {
        ct_err_prefix(err, "the class '%s'", cls->name);
        return st;
    }
    void *items = (void *)(uintptr_t)registry->classes;
    CT_TRY(cti_registry_make_room(registry->alloc, &items, registry->n_classes, &registry->cap_classes, sizeof *registry->classes,
                     err));
    registry->classes = items;
    registry->classes[registry->n_classes++] = cls;
    return CT_OK;
}

const ct_class *ct_registry_class(const ct_registry *registry, const char *name)
{
    for (size_t i = 0; i < registry->n_classes; i++) {
        if (cti_str_eq(registry->classes[i]->name, name)) {
            return registry->classes[i];
        }
    }
    return NULL;
}

ct_status cti_register_sections(ct_registry *registry, ct_err *err)
{
    const ct_class *cls;
    for (size_t i = 0; (cls = cti_section_class_at(i)) != NULL; i++) {
        CT_TRY(ct_registry_add_class(registry, cls, err));
    }
    return CT_OK;
}

void cti_registry_add_builder(ct_registry *registry, const ct_class *spec_class, cti_builder_fn build)
{
    size_t i = 0;
    while (i < registry->n_builders && registry->builders[i].cls != spec_class) {
        i++;
    }
    CT_ASSERT(i < sizeof registry->builders / sizeof registry->builders[0]);
    registry->builders[i].cls = spec_class;
    registry->builders[i].build = build;
    registry->n_builders += i == registry->n_builders;
}

cti_builder_fn cti_registry_builder(const ct_registry *registry, const ct_class *spec_class)
{
    for (size_t i = 0; i < registry->n_builders; i++) {
        if (registry->builders[i].cls == spec_class) {
            return registry->builders[i].build;
        }
    }
    return NULL;
}

/* ---- transactions and look-ups --------------------------------------------------------------------------------- */

cti_registry_mark cti_registry_mark_now(const ct_registry *registry)
{
    return (cti_registry_mark){registry->n_configs, registry->n_overrides, registry->n_classes,
                               registry->n_ops,     registry->n_datasets,  registry->n_optimizers};
}

void cti_registry_rollback(ct_registry *registry, cti_registry_mark mark)
{
    CT_ASSERT(mark.n_configs <= registry->n_configs && mark.n_overrides <= registry->n_overrides &&
              mark.n_classes <= registry->n_classes && mark.n_ops <= registry->n_ops && mark.n_datasets <= registry->n_datasets &&
              mark.n_optimizers <= registry->n_optimizers);
    registry->n_configs = mark.n_configs;
    registry->n_overrides = mark.n_overrides;
    registry->n_classes = mark.n_classes;
    while (registry->n_ops > mark.n_ops) {
        cti_op_release(registry->ops[--registry->n_ops]);
    }
    registry->n_datasets = mark.n_datasets;
    registry->n_optimizers = mark.n_optimizers;
}

bool cti_registry_has_module(const ct_registry *registry, const char *module)
{
    for (size_t i = 0; i < registry->n_configs; i++) {
        if (cti_str_eq(registry->configs[i].module, module)) {
            return true;
        }
    }
    return false;
}

bool cti_registry_config_at(const ct_registry *registry, size_t i, const char **out_module, const char **out_config,
                            const char **out_refusal)
{
    if (i >= registry->n_configs) {
        return false;
    }
    *out_module = registry->configs[i].module;
    *out_config = registry->configs[i].config;
    *out_refusal = registry->configs[i].refusal;
    return true;
}

const ct_override *cti_registry_override(const ct_registry *registry, const char *name)
{
    for (size_t i = 0; i < registry->n_overrides; i++) {
        if (cti_str_eq(registry->overrides[i].name, name)) {
            return &registry->overrides[i];
        }
    }
    return NULL;
}

const ct_override *cti_registry_override_at(const ct_registry *registry, size_t i)
{
    return i < registry->n_overrides ? &registry->overrides[i] : NULL;
}

const char *cti_registry_override_names(const ct_registry *registry, const char *plugin, ct_arena *arena, ct_err *err)
{
    const size_t n = strlen(plugin);
    const char *text = "";
    for (size_t i = 0; i < registry->n_overrides && text != NULL; i++) {
        const char *name = registry->overrides[i].name;
        if (strncmp(name, plugin, n) == 0 && name[n] == '.') {
            text = ct_arena_printf(arena, err, "%s%s%s", text, text[0] != '\0' ? ", " : "", name);
        }
    }
    return text;
}

/* The module's functions (module NULL: the modules), those that can be used first; each name once. */
static size_t collect_names(const ct_registry *r, const char *module, const char *names[MAX_NAMES], size_t *out_usable)
{
    size_t n = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < r->n_configs && n < MAX_NAMES; i++) {
            const cti_registry_config *c = &r->configs[i];
            if ((c->refusal == NULL) != (pass == 0) || (module != NULL && !cti_str_eq(c->module, module))) {
                continue;
            }
            const char *name = module != NULL ? c->config : c->module;
            bool have = false;
            for (size_t j = 0; j < n; j++) {
                have = have || cti_str_eq(names[j], name);
            }
            if (!have) {
                names[n++] = name;
            }
        }
        *out_usable = pass == 0 ? n : *out_usable;
    }
    return n;
}

/* "'x' is no <what>[ (nearest: 'y')]; there are a, b, c" */
static ct_status unknown_name(const ct_registry *r, const char *given, const char *flag, const char *module,
                              ct_err *err)
{
    const char *names[MAX_NAMES];
    size_t n_usable = 0;
    const size_t n = collect_names(r, module, names, &n_usable);
    if (module != NULL && n_usable == 0) { /* a family whose every name is refused: the reason is worth more */
        for (size_t i = 0; i < r->n_configs; i++) {
            if (cti_str_eq(r->configs[i].module, module)) {
                return CT_FAIL(err, CT_ERR_USAGE, "--module: '%s' is refused: %s", module, r->configs[i].refusal);
            }
        }
    }
    const int nearest = cti_nearest(given, names, n);
    cti_str text = {.alloc = r->alloc};
    for (size_t i = 0; i < n_usable; i++) {
        cti_str_printf(&text, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    const ct_status st =
        CT_FAIL(err, CT_ERR_USAGE, "%s: '%.160s' is not known%s%s%s%s%s; there %s %s", flag, given,
                module != NULL ? " in " : "", module != NULL ? module : "", nearest >= 0 ? " (nearest: '" : "",
                nearest >= 0 ? names[nearest] : "", nearest >= 0 ? "')" : "", n_usable == 1 ? "is" : "are",
                n_usable > 0 ? cti_str_text(&text) : "none");
    cti_str_deinit(&text);
    return st;
}

/* A variant of a variant is no circle: its base was there when it was registered. */
static ct_status make_variant(const ct_registry *registry, const cti_registry_config *row, ct_tree *tree, ct_component **out_root, ct_err *err)
{
    void *before;
    CT_TRY(cti_registry_make(registry, row->base_module, row->base_config, tree, out_root, err));
    CT_TRY(cti_spec_copy(*out_root, ct_tree_arena(tree), &before, err));
    const ct_component *was = ct_component_child(*out_root, "model_spec");
    ct_status st = row->change(tree, *out_root, err);
    ct_component *spec = ct_component_child(*out_root, "model_spec");
    const bool is_resized = spec != NULL && spec == was && cti_spec_differs(spec, before);
    const cti_builder_fn build = is_resized ? cti_registry_builder(registry, spec->cls) : NULL;
    if (st == CT_OK && build != NULL) {
        st = build(tree, spec, err);
    }
    if (st != CT_OK) {
        ct_err_prefix(err, "the registry function '%s' of '%s'", row->config, row->module);
    }
    return st;
}

ct_status cti_registry_make(const ct_registry *registry, const char *module, const char *config, ct_tree *tree,
                            ct_component **out_root, ct_err *err)
{
    if (!cti_registry_has_module(registry, module)) {
        return unknown_name(registry, module, "--module", NULL, err);
    }
    const cti_registry_config *row = cti_registry_find_config(registry, module, config);
    if (row == NULL) {
        return unknown_name(registry, config, "--config", module, err);
    }
    if (row->refusal != NULL) {
        return CT_FAIL(err, CT_ERR_USAGE, "--config: '%s' is refused: %s", config, row->refusal);
    }
    if (row->change == NULL) {
        CT_TRY(row->make(tree, out_root, err));
    } else {
        CT_TRY(make_variant(registry, row, tree, out_root, err));
    }
    return cti_mark_registry_sources(tree, *out_root, err);
}
