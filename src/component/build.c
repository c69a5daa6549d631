/* SPDX-License-Identifier: Apache-2.0 */
/* What components call while they emit ops: children, parameters, constants, states. Lists live in the graph's arena and
 * grow by doubling; the blocks they outgrow go with the graph. */
#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "component/component.h"

ct_status ct_build_child(ct_build *build, const ct_component *parent, const char *child, const ct_value_id *in,
                         int32_t n_in, ct_value_id *out, int32_t n_out, ct_err *err)
{
    const ct_component *component = ct_component_child(parent, child);
    const char *scope = ct_graph_scope(build->graph);
    if (component == NULL) {
        return CT_FAIL(err, CT_ERR_NOT_FOUND, "'%s' (%s) has no part '%s'", scope, parent->cls->name, child);
    }
    if (component->cls->build == NULL) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "'%s.%s': the class '%s' emits no ops", scope, child,
                       component->cls->name);
    }
    CT_TRY(ct_graph_push_scope(build->graph, component->name, err));
    const ct_status st = component->cls->build(component, build, in, n_in, out, n_out, err);
    ct_graph_pop_scope(build->graph);
    return st;
}

/* "<scope>.<name>"; "/name" is `name` alone. Arena's memory. */
static const char *whole_name(ct_build *build, const char *name, ct_err *err)
{
    const char *scope = ct_graph_scope(build->graph);
    ct_arena *arena = ct_graph_arena(build->graph);
    if (name[0] == '/') {
        return ct_arena_strdup(arena, name + 1, err);
    }
    return ct_arena_printf(arena, err, "%s%s%s", scope, scope[0] != '\0' ? "." : "", name);
}

/* Room for one more item in a list of the arena. */
static ct_status make_room(ct_arena *arena, void **items, int32_t n, int32_t *cap, size_t item_bytes, ct_err *err)
{
    if (n < *cap) {
        return CT_OK;
    }
    const int32_t room = *cap < 16 ? 16 : *cap * 2;
    void *grown = ct_arena_alloc(arena, (size_t)room * item_bytes, err);
    if (grown == NULL) {
        return CT_ERR_MEMORY;
    }
    if (n > 0) {
        memcpy(grown, *items, (size_t)n * item_bytes);
    }
    *items = grown;
    *cap = room;
    return CT_OK;
}

static ct_status check_dims(const char *name, const int64_t *dims, int32_t ndim, ct_err *err)
{
    if (ndim < 0 || ndim > CT_MAX_NDIM) {
        return CT_FAIL(err, CT_ERR_SHAPE, "'%s': %" PRId32 " dims, at most %d are taken", name, ndim, CT_MAX_NDIM);
    }
    for (int32_t i = 0; i < ndim; i++) {
        if (dims[i] < 1) {
            return CT_FAIL(err, CT_ERR_SHAPE, "'%s': dim %" PRId32 " is %" PRId64 ", wanted at least 1", name, i,
                           dims[i]);
        }
    }
    return CT_OK;
}

static bool same_dims(const ct_value *value, const int64_t *dims, int32_t ndim)
{
    return value->ndim == ndim && (ndim == 0 || memcmp(value->dims, dims, (size_t)ndim * sizeof *dims) == 0);
}

static ct_status declare(ct_build *build, const char *name, ct_dtype dtype, ct_value_kind kind, const int64_t *dims,
                         int32_t ndim, ct_value_id *out_value, ct_err *err)
{
    ct_value_spec spec = {.name = name, .dtype = dtype, .ndim = ndim, .kind = kind};
    if (ndim > 0) {
        memcpy(spec.dims, dims, (size_t)ndim * sizeof *dims);
    }
    return ct_graph_add_value(build->graph, &spec, out_value, err);
}

ct_status ct_build_param(ct_build *build, const char *name, const int64_t *dims, int32_t ndim, const ct_init *init,
                         ct_value_id *out_value, ct_err *err)
{
    const char *whole = whole_name(build, name, err);
    if (whole == NULL) {
        return CT_ERR_MEMORY;
    }
    CT_TRY(check_dims(whole, dims, ndim, err));
    for (int32_t i = 0; i < build->n_params; i++) {
        if (strcmp(build->params[i].name, whole) != 0) {
            continue;
        }
        if (build->params[i].n_parts > 1) {
            return CT_FAIL(err, CT_ERR_STATE, "the parameter '%s' is part of '%s' already", whole,
                           ct_graph_value_c(build->graph, build->params[i].value)->name);
        }
        if (!same_dims(ct_graph_value_c(build->graph, build->params[i].value), dims, ndim)) {
            return CT_FAIL(err, CT_ERR_SHAPE, "the parameter '%s' is declared twice with different dims", whole);
        }
        *out_value = build->params[i].value;
        return CT_OK;
    }
    void *items = build->params;
    CT_TRY(make_room(ct_graph_arena(build->graph), &items, build->n_params, &build->cap_params, sizeof(ct_param), err));
    build->params = items;
    ct_param param = {.name = whole, .ndim = ndim, .init = *init};
    if (ndim > 0) {
        memcpy(param.dims, dims, (size_t)ndim * sizeof *dims);
    }
    CT_TRY(declare(build, whole, build->param_dtype, CT_VALUE_PARAM, dims, ndim, &param.value, err));
    build->params[build->n_params++] = param;
    *out_value = param.value;
    return CT_OK;
}

static bool is_read(const ct_graph *g, ct_value_id value)
{
    for (int32_t at = 0; at < ct_graph_order_len(g); at++) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[at]);
        for (int32_t i = 0; i < node->n_in; i++) {
            if (node->in[i] == value) {
                return true;
            }
        }
    }
    return false;
}

/* The first of the n parameters of `values` in the list, each of which can be joined. */
static ct_status find_parts(const ct_build *build, const char *name, const ct_value_id *values, int32_t n, int32_t *out_first, ct_err *err)
{
    int32_t first = 0;
    while (first < build->n_params && build->params[first].value != values[0]) {
        first++;
    }
    for (int32_t i = 0; i < n; i++) {
        const ct_param *p = first + i < build->n_params ? &build->params[first + i] : NULL;
        if (p == NULL || p->value != values[i] || p->n_parts > 1) {
            return CT_FAIL(err, CT_ERR_STATE, "'%s' cannot be joined: number %" PRId32 " is no parameter that was declared directly after the one before "
                           "and stands alone", name, i);
        }
        if (p->ndim < 1 || p->ndim != build->params[first].ndim || memcmp(p->dims, build->params[first].dims, sizeof p->dims) != 0) {
            return CT_FAIL(err, CT_ERR_SHAPE, "'%s' cannot be joined: '%s' and '%s' have other dims", name, build->params[first].name, p->name);
        }
        if (is_read(build->graph, p->value)) {
            return CT_FAIL(err, CT_ERR_STATE, "'%s' cannot be joined: an op reads '%s' already", name, p->name);
        }
    }
    *out_first = first;
    return CT_OK;
}

ct_status ct_build_join(ct_build *build, const char *name, const ct_value_id *params, int32_t n, ct_value_id *out_value, ct_err *err)
{
    const char *whole = whole_name(build, name, err);
    int32_t first;
    if (whole == NULL) {
        return CT_ERR_MEMORY;
    }
    if (n < 2 || n > UINT8_MAX) {
        return CT_FAIL(err, CT_ERR_RANGE, "'%s': %" PRId32 " parameters cannot be joined, 2 to %d can", whole, n, UINT8_MAX);
    }
    CT_TRY(find_parts(build, whole, params, n, &first, err));
    ct_param *parts = &build->params[first];
    int64_t dims[CT_MAX_NDIM];
    memcpy(dims, parts->dims, sizeof dims);
    if (!cti_mul_i64(dims[0], n, &dims[0])) {
        return CT_FAIL(err, CT_ERR_SHAPE, "'%s' has too many rows", whole);
    }
    CT_TRY(declare(build, whole, build->param_dtype, CT_VALUE_PARAM, dims, parts->ndim, out_value, err));
    for (int32_t i = 0; i < n; i++) {
        parts[i].value = *out_value;
        parts[i].part = i;
        parts[i].n_parts = n;
    }
    return CT_OK;
}

/* Whether two components of one class hold the same values, so that they fill a constant alike. */
static bool fill_alike(const ct_component *a, const ct_component *b)
{
    if (a == b || a->cls != b->cls) {
        return true; /* of another class with the same rule: its own business */
    }
    for (int32_t i = 0; i < a->cls->n_fields; i++) {
        if (!ct_field_equal(&a->cls->fields[i], a->values, b->values)) {
            return false;
        }
    }
    return true;
}

ct_status ct_build_const(ct_build *build, const char *name, const int64_t *dims, int32_t ndim, const ct_component *self,
                         ct_const_fn fill, ct_value_id *out_value, ct_err *err)
{
    CT_TRY(check_dims(name, dims, ndim, err));
    for (int32_t i = 0; i < build->n_consts; i++) {
        const ct_const *c = &build->consts[i];
        if (strcmp(c->name, name) != 0) {
            continue;
        }
        if (!same_dims(ct_graph_value_c(build->graph, c->value), dims, ndim)) {
            return CT_FAIL(err, CT_ERR_SHAPE, "the constant '%s' is declared twice with different dims", name);
        }
        if (c->fill != fill || !fill_alike(c->component, self)) {
            return CT_FAIL(err, CT_ERR_STATE, "the constant '%s' is declared by two components that fill it differently",
                           name);
        }
        *out_value = c->value;
        return CT_OK;
    }
    ct_arena *arena = ct_graph_arena(build->graph);
    const char *copy = ct_arena_strdup(arena, name, err);
    if (copy == NULL) {
        return CT_ERR_MEMORY;
    }
    void *items = build->consts;
    CT_TRY(make_room(arena, &items, build->n_consts, &build->cap_consts, sizeof(ct_const), err));
    build->consts = items;
    ct_const c = {.name = copy, .component = self, .fill = fill};
    CT_TRY(declare(build, copy, CT_DTYPE_F32, CT_VALUE_CONST, dims, ndim, &c.value, err));
    build->consts[build->n_consts++] = c;
    *out_value = c.value;
    return CT_OK;
}

ct_status ct_build_state(ct_build *build, const char *name, ct_dtype dtype, const int64_t *dims, int32_t ndim,
                         ct_value_id *out_value, ct_err *err)
{
    const char *whole = whole_name(build, name, err);
    if (whole == NULL) {
        return CT_ERR_MEMORY;
    }
    CT_TRY(check_dims(whole, dims, ndim, err));
    return declare(build, whole, dtype, CT_VALUE_STATE, dims, ndim, out_value, err);
}
