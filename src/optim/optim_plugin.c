/* SPDX-License-Identifier: Apache-2.0 */
/* The update of one Flat group by a plug-in's optimizer, and what is asked of it. */
#include "optim/optim_internal.h"

static const char *const state_names[CT_N_STATES] = {"exp_avg", "exp_avg_sq", "momentum_buffer"};

static ct_status numbers_of(cti_optim_emit *e, const ct_optimizer_group **out, ct_err *err)
{
    const int32_t n = e->spec->n_groups;
    ct_optimizer_group *groups = ct_arena_alloc(ct_graph_arena(e->g), (size_t)n * sizeof *groups, err);
    if (groups == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int32_t k = 0; k < n; k++) {
        const ct_optim_group *g = &e->spec->groups[k];
        groups[k] = (ct_optimizer_group){g->weight_decay, g->beta1, g->beta2, g->eps, g->momentum, g->is_nesterov};
    }
    *out = groups;
    return CT_OK;
}

/* Whether a node from position `from` on overwrites the whole value. */
static bool is_updated(const ct_graph *g, int32_t from, ct_value_id value)
{
    const int64_t n = ct_value_numel(ct_graph_value_c(g, value));
    for (int32_t i = from; i < ct_graph_order_len(g); i++) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[i]);
        for (int32_t o = 0; o < node->n_out && (ct_op_row(node->op)->flags & CT_OP_UPDATE) != 0; o++) {
            const ct_value *v = ct_graph_value_c(g, node->out[o]);
            if (v->alias_of == value && ct_value_numel(v) == n) {
                return true;
            }
        }
    }
    return false;
}

ct_status cti_optim_plugin(cti_optim_emit *e, int32_t i, const ct_optim_values *v, ct_value_id coef, ct_err *err)
{
    const ct_flat_group *group = &e->layout->groups[i];
    const ct_optimizer *o = e->spec->groups[e->group_of[group->members[0].param_index]].plugin;
    const ct_value flat = *ct_graph_value_c(e->g, e->flats[i]);
    ct_optimizer_call call = {.graph = e->g,
                              .param = e->flats[i],
                              .grad = e->acc[i],
                              .lr = v->lr,
                              .step = v->step,
                              .coef = coef,
                              .go = v->go,
                              .n_groups = e->spec->n_groups};
    if (ct_graph_value_c(e->g, call.grad)->dtype != flat.dtype) { /* of one micro-batch: as backward made it */
        CT_TRY(ct_op_cast(e->g, call.grad, flat.dtype, &call.grad, err));
    }
    for (int s = 0; s < CT_N_STATES; s++) {
        call.states[s] = CT_NO_VALUE;
        if ((o->states >> s & 1) != 0) {
            CT_TRY(cti_optim_named(e, CT_VALUE_STATE, state_names[s], group->name, flat.dtype, flat.dims[0], &call.states[s], err));
        }
    }
    CT_TRY(numbers_of(e, &call.groups, err));
    CT_TRY(cti_optim_segments(e, group, &call.segments, err));
    const int32_t from = ct_graph_order_len(e->g);
    const ct_status st = o->emit(&call, err);
    if (st != CT_OK) {
        ct_err_prefix(err, "the optimizer '%s'", o->name);
        return st;
    }
    for (int s = -1; s < CT_N_STATES; s++) {
        const ct_value_id value = s < 0 ? call.param : call.states[s];
        if (value != CT_NO_VALUE && !is_updated(e->g, from, value)) {
            return CT_FAIL(err, CT_ERR_PLUGIN, "the optimizer '%s' overwrites no %s: an update op whose output is its input is wanted", o->name,
                           s < 0 ? "parameters" : state_names[s]);
        }
    }
    return CT_OK;
}
