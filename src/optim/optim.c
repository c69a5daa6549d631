/* SPDX-License-Identifier: Apache-2.0 */
/* Which parameter belongs to which group; accumulation and clipping as nodes. */
#include "optim/optim.h"

#include <inttypes.h>
#include <regex.h>
#include <string.h>

#include "optim/optim_internal.h"

const char *ct_optim_family(const ct_optim_group *group)
{
    const ct_optim_kind kind = group->kind;
    return kind == CT_OPTIM_PLUGIN ? group->plugin->name : kind == CT_OPTIM_SGD ? "sgd" : kind == CT_OPTIM_MUON ? "muon" : "";
}

const char *ct_optim_name(ct_optim_kind kind)
{
    static const char *const names[] = {
        [CT_OPTIM_ADAMW] = "AdamW", [CT_OPTIM_ADAM] = "Adam", [CT_OPTIM_SGD] = "SGD", [CT_OPTIM_MUON] = "Muon", [CT_OPTIM_PLUGIN] = "a plug-in's"};
    return names[kind];
}

const char *ct_muon_adjust_name(ct_muon_adjust adjust)
{
    static const char *const names[] = {
        [CT_MUON_ORIGINAL] = "original", [CT_MUON_MATCH_RMS_ADAMW] = "match_rms_adamw", [CT_MUON_SPECTRAL_UNCLAMPED] = "spectral_unclamped"};
    return names[adjust];
}

ct_status ct_optim_match(const ct_optim_group *groups, int32_t n_groups, const char *const *names, int32_t n_names, int32_t *out_group_of,
                         int32_t *out_n, ct_err *err)
{
    for (int32_t i = 0; i < n_names; i++) {
        out_group_of[i] = -1;
    }
    for (int32_t p = 0; p < n_groups; p++) {
        regex_t re;
        if (regcomp(&re, groups[p].pattern, REG_EXTENDED | REG_NOSUB) != 0) {
            return CT_FAIL(err, CT_ERR_USAGE, "optimizer.param-groups.%d.pattern: '%s' is no regular expression", p, groups[p].pattern);
        }
        out_n[p] = 0;
        for (int32_t i = 0; i < n_names; i++) {
            if (out_group_of[i] < 0 && regexec(&re, names[i], 0, NULL, 0) == 0) {
                out_group_of[i] = p;
                out_n[p]++;
            }
        }
        regfree(&re);
        if (out_n[p] == 0) {
            return CT_FAIL(err, CT_ERR_USAGE, "optimizer.param-groups.%d.pattern: '%s' matches no parameter", p, groups[p].pattern);
        }
    }
    for (int32_t i = 0; i < n_names; i++) {
        if (out_group_of[i] < 0) {
            return CT_FAIL(err, CT_ERR_USAGE, "no optimizer.param-groups pattern matches the parameter '%s'", names[i]);
        }
    }
    return CT_OK;
}

ct_status cti_optim_named(cti_optim_emit *e, ct_value_kind kind, const char *prefix, const char *name, ct_dtype dtype, int64_t n, ct_value_id *out,
                          ct_err *err)
{
    const char *full = ct_arena_printf(ct_graph_arena(e->g), err, "%s%s%s", prefix, name[0] != '\0' ? "." : "", name);
    if (full == NULL) {
        return CT_ERR_MEMORY;
    }
    const ct_value_spec spec = {full, dtype, 1, {n}, kind};
    return ct_graph_add_value(e->g, &spec, out, err);
}

static ct_status accumulate(cti_optim_emit *e, ct_value_id acc, ct_value_id x, ct_value_id first, ct_value_id *out, ct_err *err)
{
    const ct_value_id in[3] = {acc, x, first};
    return ct_op_emit(e->g, CT_OP_accumulate, NULL, in, 3, out, err);
}

static ct_status reduce_over(cti_optim_emit *e, ct_axis axis, ct_value_id *x, ct_err *err)
{
    if (e->mesh->degree[axis] == 1) {
        return CT_OK;
    }
    const ct_attrs_collective attrs = {axis, e->mesh->degree[axis]};
    const ct_value_id in = *x;
    return ct_op_emit(e->g, CT_OP_all_reduce, &attrs, &in, 1, x, err);
}

/* The gradient of one micro-batch is the step's. Rounded to the parameters' dtype, as accumulating does; where backward made it in bf16 and
 * widened it, its source has the same values. */
static ct_status take_gradient(cti_optim_emit *e, int32_t i, ct_dtype dtype, ct_err *err)
{
    const ct_value *grad = ct_graph_value_c(e->g, e->grads[i]);
    const ct_node *node = grad->producer >= 0 ? ct_graph_node_c(e->g, grad->producer) : NULL;
    e->acc[i] = e->grads[i];
    if (node != NULL && node->op == CT_OP_cast && grad->dtype == CT_DTYPE_F32 &&
        ct_graph_value_c(e->g, node->in[0])->dtype == CT_DTYPE_BF16) {
        e->acc[i] = node->in[0];
        return CT_OK;
    }
    return grad->dtype == dtype ? CT_OK : ct_op_cast(e->g, e->grads[i], dtype, &e->acc[i], err);
}

/* What the optimizer reads: acc[] and the loss. */
static ct_status gather_gradients(cti_optim_emit *e, ct_value_id *loss, ct_optim_values *v, ct_err *err)
{
    const bool is_one = e->spec->has_one_micro_batch;
    ct_value_id loss_acc;
    v->first = CT_NO_VALUE;
    if (!is_one) {
        CT_TRY(cti_optim_named(e, CT_VALUE_INPUT, "first", "", CT_DTYPE_I32, 1, &v->first, err));
        CT_TRY(cti_optim_named(e, CT_VALUE_STATE, "loss", "", CT_DTYPE_F64, 1, &loss_acc, err));
        CT_TRY(accumulate(e, loss_acc, *loss, v->first, loss, err));
    }
    for (int32_t i = 0; i < e->layout->n_groups; i++) {
        if (e->grads[i] == CT_NO_VALUE) {
            return CT_FAIL(err, CT_ERR_STATE, "the loss does not depend on the parameters '%s'", e->layout->groups[i].name);
        }
        const ct_value flat = *ct_graph_value_c(e->g, e->flats[i]);
        if (is_one) {
            CT_TRY(take_gradient(e, i, flat.dtype, err));
        } else {
            CT_TRY(cti_optim_named(e, CT_VALUE_GRAD, "grad", e->layout->groups[i].name, flat.dtype, flat.dims[0], &e->acc[i], err));
            CT_TRY(accumulate(e, e->acc[i], e->grads[i], v->first, &e->acc[i], err));
        }
    }
    return CT_OK;
}

/* One vector of n scalars, by bunches: concat takes 64 inputs. values is overwritten. */
static ct_status vector_of(cti_optim_emit *e, ct_value_id *values, int32_t n, ct_value_id *out, ct_err *err)
{
    enum { BUNCH = 64 };
    const ct_attrs_concat concat = {.dim = 0};
    while (n > 1) {
        int32_t left = 0;
        for (int32_t i = 0; i < n; i += BUNCH) {
            CT_TRY(ct_op_emit(e->g, CT_OP_concat, &concat, values + i, n - i < BUNCH ? n - i : BUNCH, &values[left], err));
            left++;
        }
        n = left;
    }
    *out = values[0];
    return CT_OK;
}

/* The sum of the groups' squared norms, each over its own fixed leaves and then over the ranks that share the group: the order of additions
 * does not depend on how many they are. Shards are disjoint over dp_shard and equal over dp_replicate; parts are disjoint over tp. */
static ct_status square_norm(cti_optim_emit *e, ct_value_id *out, ct_err *err)
{
    const int32_t n = e->layout->n_groups;
    const ct_attrs_sumsq attrs = {.leaves = ct_flat_leaves(e->layout->degree)};
    ct_value_id *squares = ct_arena_alloc(ct_graph_arena(e->g), (size_t)n * sizeof *squares, err);
    int32_t n_all = 0;
    if (squares == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int is_cut = 0; is_cut < 2; is_cut++) {
        const bool is_shared = e->mesh->degree[CT_AXIS_DP_SHARD] > 1 || (is_cut && e->mesh->degree[CT_AXIS_TP] > 1);
        const int32_t first = n_all;
        for (int32_t i = 0; i < n; i++) {
            if (e->layout->groups[i].is_cut == (is_cut != 0)) {
                CT_TRY(ct_op_emit(e->g, CT_OP_sumsq, &attrs, &e->acc[i], 1, &squares[n_all++], err));
            }
        }
        if (is_shared && n_all > first) {
            CT_TRY(vector_of(e, squares + first, n_all - first, &squares[first], err));
            CT_TRY(reduce_over(e, CT_AXIS_DP_SHARD, &squares[first], err));
            if (is_cut) {
                CT_TRY(reduce_over(e, CT_AXIS_TP, &squares[first], err));
            }
            n_all = first + 1;
        }
    }
    return ct_op_emit(e->g, CT_OP_add_n, NULL, squares, n_all, out, err);
}

static ct_status emit_all(cti_optim_emit *e, ct_value_id loss, ct_optim_values *v, ct_err *err)
{
    ct_graph *g = e->g;
    const int32_t n = e->layout->n_groups;
    const ct_value_id root = loss;
    ct_value_id sq, clip[3];
    CT_TRY(ct_graph_set_scope(g, "optimizer", err));
    ct_graph_set_program(g, CT_PROGRAM_BACKWARD);
    CT_TRY(gather_gradients(e, &loss, v, err));
    CT_TRY(cti_optim_named(e, CT_VALUE_INPUT, "step", "", CT_DTYPE_I64, 1, &v->step, err));
    CT_TRY(cti_optim_named(e, CT_VALUE_INPUT, "lr", "", CT_DTYPE_F64, e->spec->n_groups, &v->lr, err));
    ct_graph_set_program(g, CT_PROGRAM_OPTIMIZER);
    CT_TRY(square_norm(e, &sq, err));
    v->local_loss = loss;
    for (int axis = CT_AXIS_COUNT - 1; axis >= 0; axis--) { /* parts of one data rank's loss, such as those over tp */
        const bool is_data = axis == CT_AXIS_DP_SHARD || axis == CT_AXIS_DP_REPLICATE;
        if (!is_data && ct_graph_value_c(g, root)->placement[axis].kind == CT_PLACE_PARTIAL) {
            CT_TRY(reduce_over(e, (ct_axis)axis, &v->local_loss, err));
        }
    }
    v->loss = v->local_loss;
    CT_TRY(reduce_over(e, CT_AXIS_DP_SHARD, &v->loss, err));
    CT_TRY(reduce_over(e, CT_AXIS_DP_REPLICATE, &v->loss, err));
    const ct_attrs_clip attrs = {.max_norm = e->spec->max_norm};
    const ct_value_id in[2] = {sq, v->loss};
    CT_TRY(ct_op_emit(g, CT_OP_clip_coef, &attrs, in, 2, clip, err));
    v->norm = clip[1];
    v->go = clip[2];
    for (int32_t i = 0; i < n; i++) {
        CT_TRY(cti_optim_update(e, i, v, clip[0], err));
    }
    return ct_graph_set_scope(g, "", err);
}

ct_status ct_optim_emit(ct_graph *g, const ct_flat_layout *layout, const ct_value_id *flats, const ct_value_id *grads,
                        ct_value_id loss, const ct_mesh *mesh, const ct_optim_spec *spec, ct_optim_values *out_values,
                        ct_err *err)
{
    int32_t n_params = 0;
    for (int32_t i = 0; i < layout->n_groups; i++) {
        n_params += layout->groups[i].n_members;
    }
    cti_optim_emit e = {.g = g, .layout = layout, .mesh = mesh, .spec = spec, .flats = flats, .grads = grads};
    e.group_of = ct_arena_alloc(ct_graph_arena(g), (size_t)n_params * sizeof *e.group_of, err);
    e.acc = ct_arena_alloc(ct_graph_arena(g), (size_t)layout->n_groups * sizeof *e.acc, err);
    int32_t *n_of = ct_arena_alloc(ct_graph_arena(g), (size_t)spec->n_groups * sizeof *n_of, err);
    const char **names = ct_arena_alloc(ct_graph_arena(g), (size_t)n_params * sizeof *names, err);
    if (e.group_of == NULL || e.acc == NULL || n_of == NULL || names == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int32_t i = 0; i < layout->n_groups; i++) {
        for (int32_t m = 0; m < layout->groups[i].n_members; m++) {
            names[layout->groups[i].members[m].param_index] = layout->groups[i].members[m].name;
        }
    }
    CT_TRY(ct_optim_match(spec->groups, spec->n_groups, names, n_params, e.group_of, n_of, err));
    return emit_all(&e, loss, out_values, err);
}
