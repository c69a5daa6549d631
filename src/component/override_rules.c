/* SPDX-License-Identifier: Apache-2.0 */
/* What the replacements of overrides must be, whoever made them; and the settings of a run after its overrides. */
#include <string.h>

#include "base/str.h"
#include "component/overrides_internal.h"

/* A class that says it is a `base` is read through base's struct. */
static ct_status check_layout(const ct_class *cls, ct_err *err)
{
    for (const ct_class *base = cls->base; base != NULL; base = base->base) {
        if (cls->values_bytes < base->values_bytes) {
            return CT_FAIL(err, CT_ERR_PLUGIN, "the class '%s' says it is a '%s', whose values have %zu bytes, and has %zu", cls->name, base->name,
                           base->values_bytes, cls->values_bytes);
        }
        for (int32_t i = 0; i < base->n_fields; i++) {
            const ct_field *wanted = &base->fields[i];
            const ct_field *found = ct_field_find(cls->fields, (size_t)cls->n_fields, wanted->name);
            if (found == NULL || found->kind != wanted->kind || found->offset != wanted->offset) {
                return CT_FAIL(err, CT_ERR_PLUGIN, "the class '%s' says it is a '%s', whose field '%s' it %s", cls->name, base->name, wanted->name,
                               found == NULL ? "lacks" : "has in another place or of another kind");
            }
        }
    }
    return CT_OK;
}

static bool has_bounds(ct_field_kind kind)
{
    return kind == CT_FIELD_I64 || kind == CT_FIELD_F64 || kind == CT_FIELD_OPT_I64 || kind == CT_FIELD_OPT_F64 || kind == CT_FIELD_CHOICE;
}

/* A factory may have written values without asking anyone: each is read back as a setting would be. */
static ct_status check_bounds(ct_tree *tree, const ct_component *with, ct_err *err)
{
    ct_arena *arena = ct_tree_arena(tree);
    void *scratch = ct_arena_alloc(arena, with->cls->values_bytes + 1, err);
    if (scratch == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int32_t i = 0; i < with->cls->n_fields; i++) {
        const ct_field *field = &with->cls->fields[i];
        if (!has_bounds(field->kind)) {
            continue;
        }
        const char *text = ct_field_text(field, with->values, arena, err);
        ct_err why = {0};
        if (text == NULL) {
            return CT_ERR_MEMORY;
        }
        const ct_status st = ct_field_set(field, scratch, &text, 1, arena, &why);
        if (st != CT_OK) {
            return CT_FAIL(err, st, "'%s': %s", field->name, why.message);
        }
    }
    return CT_OK;
}

ct_status cti_override_check_made(ct_tree *tree, const cti_claim *c, ct_err *err)
{
    if (c->with->cls == NULL || c->with->parent != NULL) {
        return CT_FAIL(err, CT_ERR_PLUGIN, "its factory gave %s",
                       c->with->cls == NULL ? "a component without a class" : "a component that stands in the tree already");
    }
    CT_TRY(check_layout(c->with->cls, err));
    return check_bounds(tree, c->with, err);
}

ct_status cti_override_check_kind(const ct_registry *registry, const cti_claim *c, ct_err *err)
{
    const ct_class *old = c->node->cls, *with = c->with->cls;
    bool is_read = cti_section_family(old) >= 0;
    bool is_kin = cti_section_family(old) == cti_section_family(with);
    for (const ct_class *cls = old; cls != NULL && !is_read; cls = cls->base) {
        is_read = cti_registry_builder(registry, cls) != NULL; /* the spec of a model */
        is_kin = is_read ? ct_class_is_a(with, cls) : is_kin;
    }
    return is_read && !is_kin ? CT_FAIL(err, CT_ERR_PLUGIN, "%s.Config is read by the trainer: '%s' must say that it is one (ct_class.base)", old->name,
                                        with->name)
                              : CT_OK;
}

ct_status cti_run_config_override(const ct_alloc *alloc, const ct_registry *registry, cti_plugins *plugins, const cti_run_config *run,
                                  int64_t world_size, bool plan_only, cti_overrides_applied *out_applied, ct_err *err)
{
    CT_TRY(cti_overrides_apply(registry, plugins, run->tree, run->root, out_applied, err));
    if (out_applied->n_nodes == 0) {
        return CT_OK;
    }
    cti_problems problems = {.text = {.alloc = alloc}};
    ct_status st = cti_checks_run(run->tree, run->root, world_size, plan_only, &problems, err);
    if (st == CT_OK && problems.n > 0) {
        const char *text = cti_str_text(&problems.text);
        st = CT_FAIL(err, CT_ERR_USAGE, "after the overrides: %.*s", (int)strcspn(text, "\n"), text);
    }
    cti_problems_deinit(&problems);
    return st;
}
