/* SPDX-License-Identifier: Apache-2.0 */
/* Data sets and optimizers of plug-ins, which settings name as "<plug-in>.<name>". */
#include <string.h>

#include "base/str.h"
#include "component/component.h"

typedef struct finder {
    const ct_registry *registry;
    cti_plugins *plugins;
    ct_tree *tree;
    cti_problems *problems;
} finder;

enum what { DATASET, OPTIMIZER };

static bool is_there(const finder *f, enum what what, const char *name)
{
    return what == DATASET ? cti_registry_dataset(f->registry, name) != NULL : cti_registry_optimizer(f->registry, name) != NULL;
}

/* "a.x, a.y" of the plug-in's. */
static const char *names_of(const finder *f, enum what what, const char *plugin, ct_err *err)
{
    const size_t n = strlen(plugin);
    const char *text = "", *name = "";
    for (size_t i = 0; text != NULL && name != NULL; i++) {
        const ct_dataset *d = what == DATASET ? cti_registry_dataset_at(f->registry, i) : NULL;
        const ct_optimizer *o = what == OPTIMIZER ? cti_registry_optimizer_at(f->registry, i) : NULL;
        name = d != NULL ? d->name : o != NULL ? o->name : NULL;
        if (name != NULL && strncmp(name, plugin, n) == 0 && name[n] == '.') {
            text = ct_arena_printf(ct_tree_arena(f->tree), err, "%s%s%s", text, text[0] != '\0' ? ", " : "", name);
        }
    }
    return text;
}

/* A name with a dot; `flag` is the setting's. A data set without a plug-in of that name may be a file: it is left alone. */
static ct_status find(const finder *f, enum what what, const char *flag, const char *name, ct_err *err)
{
    const char *dot = strrchr(name, '.');
    if (dot == NULL || dot == name || strchr(name, '/') != NULL || is_there(f, what, name)) {
        return CT_OK;
    }
    const char *plugin = ct_arena_printf(ct_tree_arena(f->tree), err, "%.*s", (int)(dot - name), name);
    if (plugin == NULL) {
        return CT_ERR_MEMORY;
    }
    if (f->plugins == NULL || (what == DATASET && !cti_plugins_finds(f->plugins, plugin))) {
        return CT_OK;
    }
    ct_err why = {0};
    const ct_status st = cti_plugins_load(f->plugins, plugin, &why);
    if (st == CT_ERR_USAGE) {
        cti_problem_add(f->problems, "%s: '%s': %s", flag, name, why.message);
        return CT_OK;
    }
    if (st != CT_OK) {
        return CT_FAIL(err, st, "%s: '%s': %s", flag, name, why.message);
    }
    if (!is_there(f, what, name)) {
        const char *have = names_of(f, what, plugin, err);
        if (have == NULL) {
            return CT_ERR_MEMORY;
        }
        cti_problem_add(f->problems, "%s: '%s' is no %s: the plug-in '%s' has %s", flag, name, what == DATASET ? "data set" : "optimizer", plugin,
                        have[0] != '\0' ? have : "none");
    }
    return CT_OK;
}

static ct_status find_datasets(const finder *f, const ct_component *loader, const char *flag, ct_err *err)
{
    if (loader == NULL || !ct_class_is_a(loader->cls, &cti_dataloader_class)) {
        return CT_OK;
    }
    const cti_dataloader_config *c = loader->values;
    const char *own = ct_arena_printf(ct_tree_arena(f->tree), err, "%s.dataset", flag);
    const char *list = ct_arena_printf(ct_tree_arena(f->tree), err, "%s.sources", flag);
    if (own == NULL || list == NULL) {
        return CT_ERR_MEMORY;
    }
    if (c->sources.n == 0) {
        return find(f, DATASET, own, c->dataset, err);
    }
    for (int64_t i = 0; i < c->sources.n; i++) {
        size_t n;
        double weight;
        if (cti_source_spec(c->sources.items[i], &n, &weight)) { /* what is none, a check refuses */
            const char *name = ct_arena_printf(ct_tree_arena(f->tree), err, "%.*s", (int)n, c->sources.items[i]);
            if (name == NULL) {
                return CT_ERR_MEMORY;
            }
            CT_TRY(find(f, DATASET, list, name, err));
        }
    }
    return CT_OK;
}

ct_status cti_extensions_load(const ct_registry *registry, cti_plugins *plugins, ct_tree *tree, const ct_component *root, cti_problems *problems,
                              ct_err *err)
{
    const finder f = {registry, plugins, tree, problems};
    CT_TRY(find_datasets(&f, ct_component_find(root, "dataloader"), "--dataloader", err));
    CT_TRY(find_datasets(&f, ct_component_find(root, "validator.dataloader"), "--validator.dataloader", err));
    const ct_component *groups = ct_component_find(root, "optimizer.param_groups");
    for (int32_t i = 0; groups != NULL && i < groups->n_children; i++) {
        const ct_component *group = groups->children[i];
        if (ct_class_is_a(group->cls, &cti_param_group_class)) {
            const char *flag = ct_arena_printf(ct_tree_arena(tree), err, "--optimizer.param-groups.%d.optimizer-name", (int)i);
            if (flag == NULL) {
                return CT_ERR_MEMORY;
            }
            CT_TRY(find(&f, OPTIMIZER, flag, ((const cti_param_group_config *)group->values)->optimizer_name, err));
        }
    }
    return CT_OK;
}
