/* SPDX-License-Identifier: Apache-2.0 */
/* override.imports: collect every claim on the tree as it is, refuse conflicts, make all replacements, then put them in.
 * Nothing is searched again after that, so the order of the entries does not matter. */
#include <string.h>

#include "base/json.h"
#include "base/nearest.h"
#include "component/overrides_internal.h"
#include "component/registry_internal.h"

enum { MAX_NAMES = 256 };

/* ---- tokens ---------------------------------------------------------------------------------------------------- */

static ct_status check_target(const char *target, ct_err *err)
{
    const char *dot = strrchr(target, '.');
    if (strchr(target, ',') != NULL) {
        return CT_FAIL(err, CT_ERR_USAGE, "override.imports: '%.200s': arguments go to one target, not to a list", target);
    }
    if (dot == NULL || dot == target || dot[1] == '\0') {
        return CT_FAIL(err, CT_ERR_USAGE, "override.imports: '%.200s' is no target: wanted plugin.name", target);
    }
    return CT_OK;
}

static ct_status add_entry(const char *target, const char *args_json, cti_override_entry *entries, size_t *n, ct_err *err)
{
    CT_TRY(check_target(target, err));
    for (size_t i = 0; i < *n; i++) {
        if (cti_str_eq(entries[i].target, target)) {
            return CT_FAIL(err, CT_ERR_USAGE, "override.imports: '%.200s' is named by two entries: list it once", target);
        }
    }
    entries[(*n)++] = (cti_override_entry){target, args_json};
    return CT_OK;
}

/* "target={…}" */
static ct_status entry_with_args(const char *token, ct_arena *arena, cti_override_entry *entries, size_t *n, ct_err *err)
{
    char *target = ct_arena_strdup(arena, token, err);
    if (target == NULL) {
        return CT_ERR_MEMORY;
    }
    char *args = strchr(target, '=');
    *args++ = '\0';
    json_t *json = NULL;
    ct_err why = {0};
    const ct_status st = cti_json_parse(args, strlen(args), "arguments", &json, &why);
    const bool is_object = st == CT_OK && json_is_object(json);
    json_decref(json);
    if (st == CT_ERR_MEMORY) {
        return CT_FAIL(err, st, "%s", why.message);
    }
    if (!is_object) {
        return CT_FAIL(err, CT_ERR_USAGE, "override.imports: '%.200s': wanted a JSON object after '='%s%s", target,
                       st != CT_OK ? ": " : ", found another value", st != CT_OK ? why.message : "");
    }
    return add_entry(target, args, entries, n, err);
}

ct_status cti_override_entries(const ct_str_list *tokens, ct_arena *arena, cti_override_entry **out_entries,
                               size_t *out_n, ct_err *err)
{
    size_t room = 1, n = 0;
    for (int64_t i = 0; i < tokens->n; i++) {
        room++;
        for (const char *p = tokens->items[i]; *p != '\0'; p++) {
            room += *p == ',';
        }
    }
    cti_override_entry *entries = ct_arena_alloc(arena, room * sizeof *entries, err);
    if (entries == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int64_t i = 0; i < tokens->n; i++) {
        if (strchr(tokens->items[i], '=') != NULL) {
            CT_TRY(entry_with_args(tokens->items[i], arena, entries, &n, err));
            continue;
        }
        char *at = ct_arena_strdup(arena, tokens->items[i], err);
        if (at == NULL) {
            return CT_ERR_MEMORY;
        }
        while (at != NULL) {
            char *comma = strchr(at, ',');
            if (comma != NULL) {
                *comma++ = '\0';
            }
            CT_TRY(add_entry(at, "{}", entries, &n, err));
            at = comma;
        }
    }
    *out_entries = entries;
    *out_n = n;
    return CT_OK;
}

/* ---- claims ---------------------------------------------------------------------------------------------------- */

static bool row_matches(const ct_override *row, const ct_component *node, const char *fqn)
{
    if (row->is_exact ? node->cls != row->target : !ct_class_is_a(node->cls, row->target)) {
        return false;
    }
    bool matches = row->fqns == NULL;
    for (int32_t i = 0; !matches && i < row->n_fqns; i++) {
        matches = cti_glob_match(row->fqns[i], fqn);
    }
    return matches;
}

static ct_status add_claim(cti_override_work *w, const cti_claim *c, ct_err *err)
{
    if (w->n == w->cap) {
        const size_t room = w->cap == 0 ? 16 : w->cap * 2;
        cti_claim *grown = ct_arena_alloc(w->arena, room * sizeof *grown, err);
        if (grown == NULL) {
            return CT_ERR_MEMORY;
        }
        if (w->n > 0) {
            memcpy(grown, w->claims, w->n * sizeof *grown);
        }
        w->claims = grown;
        w->cap = room;
    }
    w->claims[w->n++] = *c;
    return CT_OK;
}

/* Depth is that of the tree: a handful. */
static ct_status collect(cti_override_work *w, const ct_override *row, const cti_override_entry *entry, ct_component *node, ct_err *err)
{
    const char *fqn = ct_component_fqn(w->tree, node, err);
    if (fqn == NULL) {
        return CT_ERR_MEMORY;
    }
    if (row_matches(row, node, fqn)) {
        if (node->parent == NULL) {
            return CT_FAIL(err, CT_ERR_USAGE, "override '%s' claims the root (%s), which cannot be replaced in place",
                           row->name, node->cls->name);
        }
        const cti_claim c = {.row = row, .entry = entry, .node = node, .fqn = fqn};
        return add_claim(w, &c, err);
    }
    for (int32_t i = 0; i < node->n_children; i++) {
        CT_TRY(collect(w, row, entry, node->children[i], err));
    }
    return CT_OK;
}

static ct_status check_conflicts(const cti_override_work *w, ct_err *err)
{
    for (size_t i = 0; i < w->n; i++) {
        for (const ct_component *at = w->claims[i].node; at != NULL; at = at->parent) {
            for (size_t j = 0; j < w->n; j++) {
                const cti_claim *a = &w->claims[j], *b = &w->claims[i];
                if (a->node != at || a->row == b->row) {
                    continue;
                }
                if (at == b->node) {
                    return CT_FAIL(err, CT_ERR_USAGE,
                                   "the overrides '%s' and '%s' both claim '%s': narrow their fqns to different nodes",
                                   b->row->name, a->row->name, a->fqn);
                }
                return CT_FAIL(err, CT_ERR_USAGE,
                               "the override '%s' claims '%s', which holds '%s', claimed by '%s': narrow their fqns, since "
                               "the result would depend on the order",
                               a->row->name, a->fqn, b->fqn, b->row->name);
            }
        }
    }
    return CT_OK;
}

/* ---- finding the rows ------------------------------------------------------------------------------------------ */

static ct_status find_row(const ct_registry *registry, cti_plugins *plugins, const cti_override_entry *entry,
                          ct_arena *arena, const ct_override **out_row, ct_err *err)
{
    const ct_override *row = cti_registry_override(registry, entry->target);
    if (row == NULL) {
        const char *dot = strrchr(entry->target, '.');
        const char *name = ct_arena_printf(arena, err, "%.*s", (int)(dot - entry->target), entry->target);
        if (name == NULL) {
            return CT_ERR_MEMORY;
        }
        const char *have = cti_registry_override_names(registry, name, arena, err);
        if (plugins != NULL && have != NULL && have[0] == '\0') {
            ct_err why = {0};
            const ct_status st = cti_plugins_load(plugins, name, &why);
            if (st != CT_OK) {
                return CT_FAIL(err, st, "override.imports: '%s': %s", entry->target, why.message);
            }
            row = cti_registry_override(registry, entry->target);
            have = cti_registry_override_names(registry, name, arena, err);
        }
        if (have == NULL) {
            return CT_ERR_MEMORY;
        }
        if (row == NULL) {
            return CT_FAIL(err, CT_ERR_USAGE, "override.imports: '%s' is no override: '%s' has %s", entry->target, name,
                           have[0] != '\0' ? have : "none");
        }
    }
    *out_row = row;
    return CT_OK;
}

/* ---- replacing ------------------------------------------------------------------------------------------------- */

/* Fields of the replacement that neither the old node nor the class's default explains came from the override. */
static ct_status mark_sources(ct_tree *tree, const ct_component *old, ct_component *with, ct_err *err)
{
    ct_component *usual;
    CT_TRY(ct_component_create(tree, with->cls, &usual, err));
    for (int32_t i = 0; i < with->cls->n_fields; i++) {
        const ct_field *field = &with->cls->fields[i];
        const ct_field *from = ct_field_find(old->cls->fields, (size_t)old->cls->n_fields, field->name);
        ct_field at = *field;
        at.offset = 0;
        const char *value = (const char *)with->values + field->offset;
        const bool explained = from != NULL && from->kind == field->kind
                                   ? ct_field_equal(&at, value, (const char *)old->values + from->offset)
                                   : ct_field_equal(field, with->values, usual->values);
        if (!explained) {
            with->sources[i] = CT_SOURCE_OVERRIDE;
        }
    }
    return CT_OK;
}

static ct_status make_all(const ct_registry *registry, cti_override_work *w, ct_err *err)
{
    for (size_t i = 0; i < w->n; i++) {
        cti_claim *c = &w->claims[i];
        ct_err why = {0};
        const ct_status st = c->row->factory(w->tree, c->node, c->entry->args_json, &c->with, &why);
        if (st != CT_OK) {
            return CT_FAIL(err, st, "override '%s' at '%s': %s", c->row->name, c->fqn,
                           why.message[0] != '\0' ? why.message : ct_status_sentence(st));
        }
        if (c->with == NULL) {
            return CT_FAIL(err, CT_ERR_PLUGIN, "override '%s' at '%s': its factory gave no component", c->row->name, c->fqn);
        }
        if (c->with == c->node) {
            continue;
        }
        ct_err fault = {0};
        ct_status made = cti_override_check_made(w->tree, c, &fault);
        made = made == CT_OK ? cti_override_check_kind(registry, c, &fault) : made;
        if (made != CT_OK) {
            return CT_FAIL(err, made, "override '%s' at '%s': %s", c->row->name, c->fqn, fault.message);
        }
        CT_TRY(mark_sources(w->tree, c->node, c->with, err));
    }
    return CT_OK;
}

static ct_status put_in_all(cti_override_work *w, ct_err *err)
{
    for (size_t i = 0; i < w->n; i++) {
        const ct_status st = ct_component_replace(w->claims[i].node, w->claims[i].with, err);
        if (st != CT_OK) {
            ct_err_prefix(err, "override '%s' at '%s'", w->claims[i].row->name, w->claims[i].fqn);
            return st;
        }
    }
    return CT_OK;
}

/* Of the entries that no node matched. */
static ct_status warn_of_unused(const cti_override_work *w, const cti_override_entry *entries, size_t n, cti_overrides_applied *applied, ct_err *err)
{
    const char *text = "";
    for (size_t i = 0; i < n && text != NULL; i++) {
        bool is_used = false;
        for (size_t k = 0; k < w->n && !is_used; k++) {
            is_used = w->claims[k].entry == &entries[i];
        }
        text = is_used ? text : ct_arena_printf(w->arena, err, "%s%s'%s'", text, text[0] != '\0' ? ", " : "", entries[i].target);
    }
    if (text != NULL && text[0] != '\0') {
        text = applied->warning = ct_arena_printf(w->arena, err,
                                                  "override.imports=[%s] produced no replacements. Check that the run has components of the target "
                                                  "class under the names that the override asks for", text);
    }
    return text != NULL ? CT_OK : CT_ERR_MEMORY;
}

ct_status cti_overrides_apply(const ct_registry *registry, cti_plugins *plugins, ct_tree *tree, ct_component *root,
                              cti_overrides_applied *out_applied, ct_err *err)
{
    cti_overrides_applied applied = {0};
    cti_override_work w = {.tree = tree, .arena = ct_tree_arena(tree)};
    const ct_component *section = ct_component_child(root, "override");
    const ct_str_list none = {0};
    const bool has_section = section != NULL && ct_class_is_a(section->cls, &cti_override_class);
    const ct_str_list *tokens = has_section ? &((const cti_override_config *)section->values)->imports : &none;
    cti_override_entry *entries;
    size_t n;
    CT_TRY(cti_override_entries(tokens, w.arena, &entries, &n, err));
    const ct_override **rows = ct_arena_alloc(w.arena, (n + 1) * sizeof *rows, err);
    if (rows == NULL) {
        return CT_ERR_MEMORY;
    }
    for (size_t i = 0; i < n; i++) { /* all plug-ins first: the registry's arrays move while they register */
        CT_TRY(find_row(registry, plugins, &entries[i], w.arena, &rows[i], err));
    }
    for (size_t i = 0; i < n; i++) {
        rows[i] = cti_registry_override(registry, entries[i].target);
        CT_TRY(collect(&w, rows[i], &entries[i], root, err));
    }
    CT_TRY(check_conflicts(&w, err));
    CT_TRY(make_all(registry, &w, err));
    CT_TRY(cti_overrides_lines(&w, registry->alloc, &applied, err));
    CT_TRY(put_in_all(&w, err));
    applied.n_nodes = (int64_t)w.n;
    applied.fqns = ct_arena_alloc(w.arena, (w.n + 1) * sizeof *applied.fqns, err);
    if (applied.fqns == NULL) {
        return CT_ERR_MEMORY;
    }
    for (size_t i = 0; i < w.n; i++) {
        applied.fqns[i] = w.claims[i].fqn;
    }
    CT_TRY(warn_of_unused(&w, entries, n, &applied, err));
    *out_applied = applied;
    return CT_OK;
}
