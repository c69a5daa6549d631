/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters -> Flat groups (FSDP). */
#include <inttypes.h>
#include <string.h>

#include "passes/passes.h"

/* Members that are one value of the graph have one view: it begins with the first of them. */
static bool begins_view(const ct_param *params, const ct_flat_group *group, int32_t m)
{
    return params[group->members[m].param_index].part == 0;
}

/* The flat_split attributes of a group, in the graph's arena. */
static ct_status split_attrs(ct_graph *g, const ct_param *params, const ct_flat_group *group, ct_attrs_flat_split *out, ct_err *err)
{
    int32_t n = 0;
    int64_t n_dims = 0;
    for (int32_t m = 0; m < group->n_members; m++) {
        n += begins_view(params, group, m);
        n_dims += begins_view(params, group, m) ? group->members[m].ndim : 0;
    }
    int64_t *offsets = ct_arena_alloc(ct_graph_arena(g), (size_t)(2 * n + n_dims) * sizeof *offsets, err);
    if (offsets == NULL) {
        return CT_ERR_MEMORY;
    }
    int64_t *ndims = offsets + n, *dims = offsets + 2 * n;
    for (int32_t m = 0, at = 0, view = 0; m < group->n_members; m++) {
        const ct_flat_member *member = &group->members[m];
        if (!begins_view(params, group, m)) {
            continue;
        }
        offsets[view] = member->offset;
        ndims[view++] = member->ndim;
        for (int32_t d = 0; d < member->ndim; d++) {
            const int64_t parts = params[member->param_index].n_parts;
            dims[at++] = d == 0 && parts > 1 ? parts * member->dims[d] : member->dims[d];
        }
    }
    *out = (ct_attrs_flat_split){{n, offsets}, {n, ndims}, {n_dims, dims}};
    return CT_OK;
}

/* x with its gradient summed over an axis, where that has more than one rank. */
static ct_status owe(ct_graph *g, const ct_mesh *mesh, ct_axis axis, ct_dtype reduce_dtype, ct_value_id *x, ct_err *err)
{
    if (mesh == NULL || mesh->degree[axis] == 1) {
        return CT_OK;
    }
    const ct_attrs_all_gather attrs = {axis, mesh->degree[axis], reduce_dtype};
    const ct_value_id in = *x;
    return ct_op_emit(g, CT_OP_owe, &attrs, &in, 1, x, err);
}

static ct_status make_group(ct_graph *g, const ct_param *params, const ct_flat_group *group, int64_t degree, const ct_mesh *mesh,
                            ct_dtype reduce_dtype, ct_value_id *out_flat, ct_err *err)
{
    const ct_alloc *alloc = ct_graph_allocator(g);
    ct_value_id *views = CT_NEW_ARRAY(alloc, ct_value_id, group->n_members, err);
    const char *name = ct_arena_printf(ct_graph_arena(g), err, "flat.%s", group->name);
    if (views == NULL || name == NULL) {
        ct_alloc_free(alloc, views);
        return CT_ERR_MEMORY;
    }
    const ct_value *first = ct_graph_value_c(g, params[group->members[0].param_index].value);
    const ct_value_spec spec = {name, first->dtype, 1, {group->total / degree}, CT_VALUE_PARAM};
    const int32_t tail = ct_graph_order_len(g);
    int32_t at = tail;
    for (int32_t m = 0; m < group->n_members; m++) {
        const int32_t use = cti_first_use(g, params[group->members[m].param_index].value);
        at = use < at ? use : at;
    }
    ct_attrs_flat_split attrs;
    ct_value_id flat = CT_NO_VALUE, full;
    ct_status st;
    CT_TRY_GOTO(st, ct_graph_add_value(g, &spec, &flat, err), out);
    ct_graph_value(g, flat)->placement[CT_AXIS_DP_SHARD] = (ct_placement){.kind = CT_PLACE_FLAT};
    CT_TRY_GOTO(st, ct_graph_set_scope(g, name, err), out);
    full = flat;
    CT_TRY_GOTO(st, owe(g, mesh, CT_AXIS_DP_REPLICATE, reduce_dtype, &full, err), out);
    if (group->is_owing) {
        CT_TRY_GOTO(st, owe(g, mesh, CT_AXIS_TP, reduce_dtype, &full, err), out);
    }
    if (degree > 1) {
        const ct_value_id shard = full;
        const ct_attrs_all_gather gather = {CT_AXIS_DP_SHARD, degree, reduce_dtype};
        CT_TRY_GOTO(st, ct_op_emit(g, CT_OP_all_gather, &gather, &shard, 1, &full, err), out);
    }
    CT_TRY_GOTO(st, split_attrs(g, params, group, &attrs, err), out);
    CT_TRY_GOTO(st, ct_op_emit(g, CT_OP_flat_split, &attrs, &full, 1, views, err), out);
    for (int32_t m = 0, view = -1; m < group->n_members; m++) {
        view += begins_view(params, group, m);
        ct_graph_replace_uses(g, params[group->members[m].param_index].value, views[view], -1);
    }
    CT_TRY_GOTO(st, cti_order_move_tail(g, tail, at, err), out);
    CT_TRY_GOTO(st, ct_graph_set_scope(g, "", err), out);
    *out_flat = flat;
out:
    ct_alloc_free(alloc, views);
    return st;
}

ct_status ct_pass_flat(ct_graph *g, const ct_param *params, int32_t n_params, const ct_flat_layout *layout,
                       const ct_mesh *mesh, ct_dtype reduce_dtype, ct_value_id **out_flats, ct_err *err)
{
    int32_t n_members = 0;
    for (int32_t i = 0; i < layout->n_groups; i++) {
        n_members += layout->groups[i].n_members;
    }
    if (n_members != n_params) {
        return CT_FAIL(err, CT_ERR_STATE, "the flat layout has %d parameters, the graph %d", n_members, n_params);
    }
    ct_value_id *flats = ct_arena_alloc(ct_graph_arena(g), (size_t)layout->n_groups * sizeof *flats, err);
    if (flats == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int32_t i = 0; i < layout->n_groups; i++) {
        CT_TRY(make_group(g, params, &layout->groups[i], layout->degree, mesh, reduce_dtype, &flats[i], err));
    }
    *out_flats = flats;
    return ct_graph_verify(g, err);
}
