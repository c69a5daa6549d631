/* SPDX-License-Identifier: Apache-2.0 */
/* The update of one Flat group: Adam in one node; SGD as momentum and descend; Muon as momentum, newton_schulz of whole matrices, descend.
 *
 * A rank of a Flat group holds a range of elements that cuts matrices anywhere. Adam and SGD go element by element. For Muon the directions of the
 * whole group are gathered, each rank makes some of the matrices (dealt by their cost; the others' elements are 0) and one reduce_scatter brings every
 * rank the made elements of its range: a sum of one number and zeros, so that the bits do not depend on how many ranks there are. */
#include <inttypes.h>
#include <math.h>

#include "base/num.h"
#include "optim/optim_internal.h"

ct_status cti_optim_segments(cti_optim_emit *e, const ct_flat_group *group, ct_i64_list *out, ct_err *err)
{
    int64_t *rows = ct_arena_alloc(ct_graph_arena(e->g), (size_t)group->n_members * 3 * sizeof *rows, err);
    if (rows == NULL) {
        return CT_ERR_MEMORY;
    }
    const int64_t coord = e->mesh->coord[CT_AXIS_DP_SHARD];
    int64_t shard_begin, shard_end;
    ct_flat_range(group->total, e->layout->degree, coord, &shard_begin, &shard_end);
    int64_t n = 0;
    for (int32_t m = 0; m < group->n_members; m++) {
        int64_t begin, end;
        ct_flat_local_range(group, m, e->layout->degree, coord, &begin, &end);
        if (begin == end) {
            continue;
        }
        begin += group->members[m].offset - shard_begin;
        end += group->members[m].offset - shard_begin;
        const int64_t g = e->group_of[group->members[m].param_index];
        if (n > 0 && rows[n - 1] == g && rows[n - 2] == begin) {
            rows[n - 2] = end;
            continue;
        }
        rows[n++] = begin;
        rows[n++] = end;
        rows[n++] = g;
    }
    *out = (ct_i64_list){n, rows};
    return CT_OK;
}

/* One number of every optimizer group. */
static ct_status per_group(cti_optim_emit *e, double (*of)(const ct_optim_group *group), ct_f64_list *out, ct_err *err)
{
    const int32_t n = e->spec->n_groups;
    double *x = ct_arena_alloc(ct_graph_arena(e->g), (size_t)n * sizeof *x, err);
    if (x == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int32_t k = 0; k < n; k++) {
        x[k] = of(&e->spec->groups[k]);
    }
    *out = (ct_f64_list){n, x};
    return CT_OK;
}

static double beta1_of(const ct_optim_group *g)
{
    return g->beta1;
}
static double beta2_of(const ct_optim_group *g)
{
    return g->beta2;
}
static double eps_of(const ct_optim_group *g)
{
    return g->eps;
}
static double decay_of(const ct_optim_group *g) /* of the parameter itself */
{
    return g->kind == CT_OPTIM_ADAMW || g->kind == CT_OPTIM_MUON ? g->weight_decay : 0.0;
}
static double l2_of(const ct_optim_group *g) /* through the gradient */
{
    return g->kind == CT_OPTIM_ADAM || g->kind == CT_OPTIM_SGD ? g->weight_decay : 0.0;
}
static double momentum_of(const ct_optim_group *g)
{
    return g->momentum;
}
static double share_of(const ct_optim_group *g)
{
    return g->kind == CT_OPTIM_MUON ? 1.0 - g->momentum : 1.0;
}
static double nothing_of(const ct_optim_group *g)
{
    (void)g;
    return 0.0;
}

static ct_status emit_adam(cti_optim_emit *e, int32_t i, const ct_optim_values *v, ct_value_id coef, ct_err *err)
{
    const ct_flat_group *group = &e->layout->groups[i];
    ct_attrs_adamw attrs = {0};
    CT_TRY(per_group(e, beta1_of, &attrs.beta1, err));
    CT_TRY(per_group(e, beta2_of, &attrs.beta2, err));
    CT_TRY(per_group(e, eps_of, &attrs.eps, err));
    CT_TRY(per_group(e, decay_of, &attrs.weight_decay, err));
    CT_TRY(per_group(e, l2_of, &attrs.l2, err));
    CT_TRY(cti_optim_segments(e, group, &attrs.segments, err));
    const ct_value *flat = ct_graph_value_c(e->g, e->flats[i]);
    const ct_dtype dtype = e->spec->has_bf16_moments ? CT_DTYPE_BF16 : flat->dtype;
    const int64_t n_local = flat->dims[0];
    ct_value_id m1, m2, out[3];
    CT_TRY(cti_optim_named(e, CT_VALUE_STATE, "exp_avg", group->name, dtype, n_local, &m1, err));
    CT_TRY(cti_optim_named(e, CT_VALUE_STATE, "exp_avg_sq", group->name, dtype, n_local, &m2, err));
    const ct_value_id in[8] = {e->flats[i], e->acc[i], m1, m2, v->lr, v->step, coef, v->go};
    return ct_op_emit(e->g, CT_OP_adamw, &attrs, in, 8, out, err);
}

/* Whether a member's direction is more than its gradient. */
static bool has_momentum(const cti_optim_emit *e, const ct_flat_group *group)
{
    for (int32_t m = 0; m < group->n_members; m++) {
        if (e->spec->groups[e->group_of[group->members[m].param_index]].momentum != 0.0) {
            return true;
        }
    }
    return false;
}

/* The direction of the local shard, and the state that it leaves. */
static ct_status emit_momentum(cti_optim_emit *e, int32_t i, const ct_optim_values *v, ct_value_id coef, ct_value_id *out_d, ct_err *err)
{
    const ct_flat_group *group = &e->layout->groups[i];
    const int32_t n = e->spec->n_groups;
    ct_attrs_momentum attrs = {.nesterov = {n, ct_arena_alloc(ct_graph_arena(e->g), (size_t)n * sizeof(int64_t), err)}};
    if (attrs.nesterov.items == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int32_t k = 0; k < n; k++) {
        attrs.nesterov.items[k] = e->spec->groups[k].is_nesterov;
    }
    CT_TRY(cti_optim_segments(e, group, &attrs.segments, err));
    CT_TRY(per_group(e, momentum_of, &attrs.momentum, err));
    CT_TRY(per_group(e, share_of, &attrs.share, err));
    CT_TRY(per_group(e, l2_of, &attrs.weight_decay, err));
    const ct_value flat = *ct_graph_value_c(e->g, e->flats[i]);
    ct_value_id m, out[2];
    CT_TRY(cti_optim_named(e, CT_VALUE_STATE, "momentum_buffer", group->name, flat.dtype, flat.dims[0], &m, err));
    const ct_value_id in[5] = {m, e->acc[i], e->flats[i], coef, v->go};
    CT_TRY(ct_op_emit(e->g, CT_OP_momentum, &attrs, in, 5, out, err));
    *out_d = out[1];
    return CT_OK;
}

/* coef CT_NO_VALUE: d is the direction; else the gradient, of which it is a multiple, with an L2 penalty. */
static ct_status emit_descend(cti_optim_emit *e, int32_t i, const ct_optim_values *v, ct_value_id d, ct_value_id coef, ct_err *err)
{
    ct_attrs_descend attrs = {0};
    ct_value_id out;
    CT_TRY(cti_optim_segments(e, &e->layout->groups[i], &attrs.segments, err));
    CT_TRY(per_group(e, decay_of, &attrs.weight_decay, err));
    CT_TRY(per_group(e, coef != CT_NO_VALUE ? l2_of : nothing_of, &attrs.l2, err));
    const ct_value_id in[5] = {e->flats[i], d, v->lr, v->go, coef};
    return ct_op_emit(e->g, CT_OP_descend, &attrs, in, coef != CT_NO_VALUE ? 5 : 4, &out, err);
}

static ct_status emit_sgd(cti_optim_emit *e, int32_t i, const ct_optim_values *v, ct_value_id coef, ct_err *err)
{
    ct_value_id d;
    if (!has_momentum(e, &e->layout->groups[i])) {
        return emit_descend(e, i, v, e->acc[i], coef, err);
    }
    CT_TRY(emit_momentum(e, i, v, coef, &d, err));
    return emit_descend(e, i, v, d, CT_NO_VALUE, err);
}

double ct_muon_scale(ct_muon_adjust adjust, int64_t rows, int64_t cols)
{
    const double r = (double)rows, c = (double)cols;
    switch (adjust) {
    case CT_MUON_ORIGINAL:
        return sqrt(fmax(1.0, r / c));
    case CT_MUON_MATCH_RMS_ADAMW:
        return 0.2 * sqrt(fmax(r, c));
    case CT_MUON_SPECTRAL_UNCLAMPED:
        return sqrt(r / c);
    }
    return 1.0;
}

/* The matrices of a Flat group that this rank makes: each goes to the rank that has the least work so far. */
static ct_status my_matrices(cti_optim_emit *e, const ct_flat_group *group, ct_attrs_newton_schulz *attrs, ct_err *err)
{
    const int64_t degree = e->layout->degree, coord = e->mesh->coord[CT_AXIS_DP_SHARD];
    int64_t *rows = ct_arena_alloc(ct_graph_arena(e->g), (size_t)group->n_members * 4 * sizeof *rows, err);
    double *scale = ct_arena_alloc(ct_graph_arena(e->g), (size_t)group->n_members * sizeof *scale, err);
    double *work = ct_arena_alloc(ct_graph_arena(e->g), (size_t)degree * sizeof *work, err);
    if (rows == NULL || scale == NULL || work == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int64_t k = 0; k < degree; k++) {
        work[k] = 0.0;
    }
    int64_t n = 0;
    for (int32_t m = 0; m < group->n_members; m++) {
        const ct_flat_member *member = &group->members[m];
        const int64_t g = e->group_of[member->param_index];
        if (member->ndim != 2) {
            return CT_FAIL(err, CT_ERR_USAGE, "optimizer.param-groups.%" PRId64 ": Muon takes matrices, '%s' has %d dims; a group before it can give "
                           "what is no matrix, the embedding and the head to AdamW", g, member->name, member->ndim);
        }
        if (member->cut.is_cut) {
            return CT_FAIL(err, CT_ERR_UNSUPPORTED, "optimizer.param-groups.%" PRId64 ": Muon takes whole matrices, '%s' is cut by tensor parallelism", g,
                           member->name);
        }
        int64_t owner = 0;
        for (int64_t k = 1; k < degree; k++) {
            owner = work[k] < work[owner] ? k : owner;
        }
        const double r = (double)cti_min_i64(member->dims[0], member->dims[1]);
        work[owner] += r * r * (double)cti_max_i64(member->dims[0], member->dims[1]);
        if (owner == coord) {
            const int64_t row[4] = {member->offset, member->dims[0], member->dims[1], g};
            for (int k = 0; k < 4; k++) {
                rows[4 * n + k] = row[k];
            }
            scale[n++] = ct_muon_scale(e->spec->groups[g].adjust, member->dims[0], member->dims[1]);
        }
    }
    attrs->matrices = (ct_i64_list){4 * n, rows};
    attrs->scale = (ct_f64_list){n, scale};
    return CT_OK;
}

static ct_status emit_muon(cti_optim_emit *e, int32_t i, const ct_optim_values *v, ct_value_id coef, ct_err *err)
{
    const int32_t n = e->spec->n_groups;
    const int64_t degree = e->layout->degree;
    ct_attrs_newton_schulz attrs = {.steps = {n, ct_arena_alloc(ct_graph_arena(e->g), (size_t)n * sizeof(int64_t), err)},
                                    .coefficients = {3 * n, ct_arena_alloc(ct_graph_arena(e->g), (size_t)(3 * n) * sizeof(double), err)}};
    ct_value_id d;
    if (attrs.steps.items == NULL || attrs.coefficients.items == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int32_t k = 0; k < n; k++) {
        attrs.steps.items[k] = e->spec->groups[k].ns_steps;
        for (int j = 0; j < 3; j++) {
            attrs.coefficients.items[3 * k + j] = e->spec->groups[k].ns_coefficients[j];
        }
    }
    CT_TRY(per_group(e, eps_of, &attrs.eps, err));
    CT_TRY(my_matrices(e, &e->layout->groups[i], &attrs, err));
    CT_TRY(emit_momentum(e, i, v, coef, &d, err));
    const ct_attrs_all_gather gather = {CT_AXIS_DP_SHARD, degree, -1};
    const ct_attrs_collective scatter = {CT_AXIS_DP_SHARD, degree};
    ct_value_id in = d;
    if (degree > 1) {
        CT_TRY(ct_op_emit(e->g, CT_OP_all_gather, &gather, &in, 1, &d, err));
        in = d;
    }
    CT_TRY(ct_op_emit(e->g, CT_OP_newton_schulz, &attrs, &in, 1, &d, err));
    if (degree > 1) {
        in = d;
        CT_TRY(ct_op_emit(e->g, CT_OP_reduce_scatter, &scatter, &in, 1, &d, err));
    }
    return emit_descend(e, i, v, d, CT_NO_VALUE, err);
}

ct_status cti_optim_update(cti_optim_emit *e, int32_t i, const ct_optim_values *v, ct_value_id coef, ct_err *err)
{
    const ct_flat_group *group = &e->layout->groups[i];
    switch (e->spec->groups[e->group_of[group->members[0].param_index]].kind) {
    case CT_OPTIM_ADAMW:
    case CT_OPTIM_ADAM:
        return emit_adam(e, i, v, coef, err);
    case CT_OPTIM_SGD:
        return emit_sgd(e, i, v, coef, err);
    case CT_OPTIM_MUON:
        return emit_muon(e, i, v, coef, err);
    case CT_OPTIM_PLUGIN:
        return cti_optim_plugin(e, i, v, coef, err);
    }
    return CT_OK;
}
