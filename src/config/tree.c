/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration tree of ctitan/component.h: nodes in one arena. Dropped nodes stay in the arena until the tree goes. */
#include <string.h>

#include "base/fields.h"
#include "base/nearest.h"
#include "base/str.h"
#include "config/config_internal.h"

enum { MAX_CHILDREN = 1 << 20, MAX_NEAREST = 256 };

struct ct_tree {
    const ct_alloc *alloc; /* borrows */
    ct_arena *arena;       /* owns */
};

const ct_class ct_class_list = {.name = "list"};

ct_status ct_tree_create(const ct_alloc *alloc, ct_tree **out_tree, ct_err *err)
{
    ct_tree *tree = CT_NEW(alloc, ct_tree, err);
    if (tree == NULL) {
        return CT_ERR_MEMORY;
    }
    tree->alloc = alloc;
    const ct_status st = ct_arena_create(alloc, 0, &tree->arena, err);
    if (st != CT_OK) {
        ct_alloc_free(alloc, tree);
        return st;
    }
    *out_tree = tree;
    return CT_OK;
}

void ct_tree_destroy(ct_tree **tree)
{
    if (tree == NULL || *tree == NULL) {
        return;
    }
    const ct_alloc *alloc = (*tree)->alloc;
    ct_arena_destroy(&(*tree)->arena);
    ct_alloc_free(alloc, *tree);
    *tree = NULL;
}

const ct_alloc *cti_tree_alloc(const ct_tree *tree)
{
    return tree->alloc;
}

ct_arena *ct_tree_arena(ct_tree *tree)
{
    return tree->arena;
}

/* A node without values set. */
static ct_component *new_node(ct_tree *tree, const ct_class *cls, ct_err *err)
{
    ct_component *node = ct_arena_alloc(tree->arena, sizeof *node, err);
    void *values = ct_arena_alloc(tree->arena, cls->values_bytes + 1, err);
    uint8_t *sources = ct_arena_alloc(tree->arena, (size_t)cls->n_fields + 1, err);
    if (node == NULL || values == NULL || sources == NULL) {
        return NULL;
    }
    *node = (ct_component){.cls = cls, .values = values, .sources = sources, .name = ""};
    return node;
}

ct_status ct_component_create(ct_tree *tree, const ct_class *cls, ct_component **out_component, ct_err *err)
{
    if (cls == NULL) { /* a plug-in that asked for a class that is not there */
        return CT_FAIL(err, CT_ERR_RANGE, "a component was asked for without a class");
    }
    ct_component *node = new_node(tree, cls, err);
    if (node == NULL) {
        return CT_ERR_MEMORY;
    }
    CT_TRY(ct_fields_default(cls->fields, (size_t)cls->n_fields, node->values, tree->arena, err));
    *out_component = node;
    return CT_OK;
}

static bool is_power_of_two(int32_t n)
{
    return (n & (n - 1)) == 0;
}

ct_status ct_component_add(ct_tree *tree, ct_component *parent, const char *name, ct_component *child, ct_err *err)
{
    if (name[0] == '\0' || strchr(name, '.') != NULL) {
        return CT_FAIL(err, CT_ERR_RANGE, "'%s' cannot name a component: wanted one word without dots", name);
    }
    if (ct_component_child(parent, name) != NULL) {
        return CT_FAIL(err, CT_ERR_RANGE, "'%s' already has a component '%s'", parent->cls->name, name);
    }
    if (child->parent != NULL) {
        return CT_FAIL(err, CT_ERR_STATE, "'%s' already stands in the tree as '%s'", child->cls->name, child->name);
    }
    for (const ct_component *above = parent; above != NULL; above = above->parent) {
        if (above == child) {
            return CT_FAIL(err, CT_ERR_STATE, "'%s' cannot be put below itself", child->cls->name);
        }
    }
    if (parent->n_children >= MAX_CHILDREN) {
        return CT_FAIL(err, CT_ERR_RANGE, "'%s' has more than %d children", parent->cls->name, MAX_CHILDREN);
    }
    char *copy = ct_arena_strdup(tree->arena, name, err);
    if (copy == NULL) {
        return CT_ERR_MEMORY;
    }
    /* The array grows when its length is 0, 1, 2, 4, … */
    const int32_t n = parent->n_children;
    if (n == 0 || is_power_of_two(n)) {
        const size_t room = n == 0 ? 1 : (size_t)n * 2;
        ct_component **children = ct_arena_alloc(tree->arena, room * sizeof(ct_component *), err);
        if (children == NULL) {
            return CT_ERR_MEMORY;
        }
        if (n > 0) {
            memcpy(children, parent->children, (size_t)n * sizeof(ct_component *));
        }
        parent->children = children;
    }
    parent->children[n] = child;
    parent->n_children = n + 1;
    child->name = copy;
    child->parent = parent;
    return CT_OK;
}

ct_status ct_component_replace(ct_component *old, ct_component *with, ct_err *err)
{
    if (with == old) {
        return CT_OK;
    }
    ct_component *parent = old->parent;
    if (parent == NULL) {
        return CT_FAIL(err, CT_ERR_RANGE, "'%s' is the root and cannot be replaced in place", old->cls->name);
    }
    if (with->parent != NULL) {
        return CT_FAIL(err, CT_ERR_STATE, "'%s' already stands in the tree as '%s'", with->cls->name, with->name);
    }
    for (const ct_component *above = parent; above != NULL; above = above->parent) {
        if (above == with) {
            return CT_FAIL(err, CT_ERR_STATE, "'%s' cannot be put below itself", with->cls->name);
        }
    }
    for (int32_t i = 0; i < parent->n_children; i++) {
        if (parent->children[i] == old) {
            parent->children[i] = with;
            with->name = old->name;
            with->parent = parent;
            with->is_hidden = with->is_hidden || old->is_hidden;
            old->parent = NULL;
            return CT_OK;
        }
    }
    return CT_FAIL(err, CT_ERR_STATE, "'%s' is no longer in the tree", old->cls->name);
}

/* Equal to the n bytes at `name`, '-' counting as '_'. */
static bool name_is(const char *have, const char *name, size_t n)
{
    size_t i = 0;
    for (; i < n && have[i] != '\0'; i++) {
        const char a = have[i] == '-' ? '_' : have[i];
        const char b = name[i] == '-' ? '_' : name[i];
        if (a != b) {
            return false;
        }
    }
    return i == n && have[i] == '\0';
}

static ct_component *child_n(const ct_component *parent, const char *name, size_t n)
{
    for (int32_t i = 0; i < parent->n_children; i++) {
        if (name_is(parent->children[i]->name, name, n)) {
            return parent->children[i];
        }
    }
    return NULL;
}

ct_component *ct_component_child(const ct_component *parent, const char *name)
{
    return child_n(parent, name, strlen(name));
}

ct_component *ct_component_find(const ct_component *from, const char *path)
{
    const ct_component *at = from;
    if (path[0] == '\0') {
        return (ct_component *)(uintptr_t)at;
    }
    while (at != NULL) {
        const size_t n = strcspn(path, ".");
        at = child_n(at, path, n);
        if (path[n] == '\0') {
            break;
        }
        path += n + 1;
    }
    return (ct_component *)(uintptr_t)at;
}

const void *ct_component_values(const ct_component *component)
{
    return component != NULL ? component->values : NULL;
}

bool ct_class_is_a(const ct_class *cls, const ct_class *base)
{
    while (cls != NULL && cls != base) {
        cls = cls->base;
    }
    return cls != NULL;
}

const char *ct_component_fqn(ct_tree *tree, const ct_component *component, ct_err *err)
{
    size_t length = 0;
    for (const ct_component *at = component; at->parent != NULL; at = at->parent) {
        length += strlen(at->name) + 1;
    }
    char *text = ct_arena_alloc(tree->arena, length + 1, err);
    if (text == NULL || length == 0) {
        return text;
    }
    char *end = text + length - 1; /* of the last name; the rest is zero */
    for (const ct_component *at = component; at->parent != NULL; at = at->parent) {
        const size_t n = strlen(at->name);
        end -= n;
        memcpy(end, at->name, n);
        if (end > text) {
            *--end = '.';
        }
    }
    return text;
}

ct_status ct_component_set(ct_tree *tree, ct_component *component, const char *field, const char *const *tokens,
                           size_t n_tokens, ct_source source, ct_err *err)
{
    const ct_class *cls = component->cls;
    const ct_field *row = ct_field_find(cls->fields, (size_t)cls->n_fields, field);
    if (row == NULL) {
        const char *names[MAX_NEAREST];
        size_t n = 0;
        for (; n < (size_t)cls->n_fields && n < MAX_NEAREST; n++) {
            names[n] = cls->fields[n].name;
        }
        const int nearest = cti_nearest(field, names, n);
        return CT_FAIL(err, CT_ERR_USAGE, "%s has no field '%s'%s%s%s", cls->name, field,
                       nearest >= 0 ? " (nearest: '" : "", nearest >= 0 ? names[nearest] : "",
                       nearest >= 0 ? "')" : "");
    }
    CT_TRY(ct_field_set(row, component->values, tokens, n_tokens, tree->arena, err));
    component->sources[row - cls->fields] = (uint8_t)source;
    if (component->origins != NULL) {
        component->origins[row - cls->fields] = NULL;
    }
    return CT_OK;
}

/* A copy of src and all below it, without a parent. Depth is that of the tree: a handful. */
static ct_status clone(ct_tree *tree, const ct_component *src, const ct_class *cls, ct_component **out, ct_err *err)
{
    ct_component *node;
    CT_TRY(ct_component_create(tree, cls, &node, err));
    for (int32_t i = 0; i < cls->n_fields; i++) {
        const ct_field *to = &cls->fields[i];
        const ct_field *from = ct_field_find(src->cls->fields, (size_t)src->cls->n_fields, to->name);
        if (from == NULL || from->kind != to->kind) {
            continue;
        }
        /* ct_field_copy reads and writes at one offset; the two classes may differ in theirs. */
        ct_field at = *to;
        const char *src_values = (const char *)src->values + from->offset;
        at.offset = 0;
        CT_TRY(ct_field_copy(&at, (char *)node->values + to->offset, src_values, tree->arena, err));
        node->sources[i] = src->sources[from - src->cls->fields];
        if (src->origins != NULL && src->origins[from - src->cls->fields] != NULL) {
            if (node->origins == NULL) {
                node->origins = ct_arena_alloc(tree->arena, ((size_t)cls->n_fields + 1) * sizeof *node->origins, err);
            }
            if (node->origins == NULL) {
                return CT_ERR_MEMORY;
            }
            node->origins[i] = src->origins[from - src->cls->fields];
        }
    }
    for (int32_t i = 0; i < src->n_children; i++) {
        const ct_component *child = src->children[i];
        ct_component *copy;
        CT_TRY(clone(tree, child, child->cls, &copy, err));
        CT_TRY(ct_component_add(tree, node, child->name, copy, err));
    }
    node->is_hidden = src->is_hidden;
    *out = node;
    return CT_OK;
}

ct_status ct_component_derive(ct_tree *tree, const ct_component *src, const ct_class *cls, ct_component **out_component,
                              ct_err *err)
{
    return clone(tree, src, cls, out_component, err);
}
