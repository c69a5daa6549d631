/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled training step. */
#include "train/step.h"

#include <stdio.h>
#include <string.h>

#include "autodiff/autodiff.h"
#include "base/base.h"
#include "mesh/placement.h"
#include "model/model.h"

typedef struct dump {
    const char *dir;
    int32_t n; /* passes so far */
} dump;

/* Every pass leaves a graph that the verifier accepts; with --debug.dump-graph its text goes to a file. */
static ct_status after_pass(dump *d, const ct_alloc *alloc, const ct_graph *g, const char *pass, ct_err *err)
{
    ct_status st = ct_graph_verify(g, err);
    if (st != CT_OK) {
        ct_err_prefix(err, "after pass '%s'", pass);
        return st;
    }
    if (d->dir == NULL) {
        return CT_OK;
    }
    char *text = NULL;
    cti_str path = {.alloc = alloc};
    CT_TRY_GOTO(st, cti_make_dirs(d->dir, err), out);
    cti_str_printf(&path, "%s/%02d-%s.txt", d->dir, d->n++, pass);
    CT_TRY_GOTO(st, cti_str_check(&path, err), out);
    CT_TRY_GOTO(st, ct_graph_print(g, alloc, &text, err), out);
    st = cti_file_write_atomic(cti_str_text(&path), text, strlen(text), err);
out:
    ct_alloc_free(alloc, text);
    cti_str_deinit(&path);
    return st;
}

ct_status cti_groups_of(const ct_alloc *alloc, const ct_build *build, const ct_optim_spec *optim, int32_t *out_group_of, int32_t *out_n,
                        ct_err *err)
{
    const char **names = ct_alloc_zeroed(alloc, (size_t)build->n_params + 1, sizeof *names, err);
    if (names == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int32_t i = 0; i < build->n_params; i++) {
        names[i] = build->params[i].name;
    }
    const ct_status st = ct_optim_match(optim->groups, optim->n_groups, names, build->n_params, out_group_of, out_n, err);
    ct_alloc_free(alloc, names);
    return st;
}

/* The family of optimizers that each parameter belongs to. */
static ct_status set_families(const ct_alloc *alloc, const ct_build *build, const ct_optim_spec *optim, ct_flat_param *params, ct_err *err)
{
    if (optim == NULL) {
        return CT_OK;
    }
    int32_t *of = CT_NEW_ARRAY(alloc, int32_t, build->n_params + optim->n_groups, err);
    if (of == NULL) {
        return CT_ERR_MEMORY;
    }
    const ct_status st = cti_groups_of(alloc, build, optim, of, of + build->n_params, err);
    for (int32_t i = 0; i < build->n_params && st == CT_OK; i++) {
        params[i].family = ct_optim_family(&optim->groups[of[i]]);
    }
    ct_alloc_free(alloc, of);
    return st;
}

ct_status cti_layout_of(const ct_alloc *alloc, const ct_build *build, const ct_mesh *mesh, const ct_optim_spec *optim, ct_flat_layout **out_layout,
                        ct_err *err)
{
    ct_flat_param *params = CT_NEW_ARRAY(alloc, ct_flat_param, build->n_params, err);
    if (params == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int32_t i = 0; i < build->n_params; i++) {
        const ct_param *from = &build->params[i];
        const ct_value *v = ct_graph_value_c(build->graph, from->value);
        const ct_placement p = v->placement[CT_AXIS_TP];
        params[i] = (ct_flat_param){.name = from->name, .ndim = v->ndim, .is_owing = p.kind == CT_PLACE_OWING, .is_joined = from->part > 0};
        memcpy(params[i].dims, v->dims, sizeof params[i].dims);
        params[i].dims[0] = from->n_parts > 1 ? v->dims[0] / from->n_parts : v->dims[0];
        if (p.kind == CT_PLACE_SHARD) {
            int64_t begin, end;
            ct_shard_range(build->params[i].dims[p.dim], mesh->degree[CT_AXIS_TP], mesh->coord[CT_AXIS_TP], &begin, &end);
            params[i].cut = (ct_flat_cut){true, p.dim, build->params[i].dims[p.dim], begin};
        }
    }
    ct_status st = set_families(alloc, build, optim, params, err);
    if (st == CT_OK) {
        st = ct_flat_layout_create(alloc, params, build->n_params, mesh != NULL ? mesh->degree[CT_AXIS_DP_SHARD] : 1, out_layout, err);
    }
    ct_alloc_free(alloc, params);
    return st;
}

void cti_step_keep(const cti_step *s, ct_value_id out[CTI_STEP_KEEPS])
{
    out[0] = s->optim.loss;
    out[1] = s->optim.norm;
    out[2] = s->optim.go;
    out[3] = s->optim.local_loss;
}

static ct_status run_passes(cti_step *s, const ct_component *spec, const cti_step_options *o, ct_err *err)
{
    dump d = {.dir = o->dump_dir};
    const cti_graph_options graph_options = {.mode = CT_BUILD_TRAIN,
                                             .param_dtype = o->param_dtype,
                                             .batch = o->batch,
                                             .seq_len = o->seq_len,
                                             .loss = o->loss,
                                             .loss_chunks = o->loss_chunks};
    ct_value_id loss;
    CT_TRY(cti_graph_build(s->alloc, spec, &graph_options, &s->graph, &s->build, &loss, err));
    ct_graph *g = s->graph;
    CT_TRY(after_pass(&d, s->alloc, g, "forward", err));
    const ct_shard_options shard = {.is_sequence_parallel = o->is_sequence_parallel};
    CT_TRY(cti_model_place(&s->build, o->mesh, err));
    CT_TRY(ct_pass_shard(g, o->mesh, &shard, err));
    CT_TRY(after_pass(&d, s->alloc, g, "shard", err));
    CT_TRY(cti_layout_of(s->alloc, &s->build, o->mesh, &o->optim, &s->layout, err));
    CT_TRY(ct_pass_flat(g, s->build.params, s->build.n_params, s->layout, o->mesh, o->reduce_dtype, &s->flats, err));
    CT_TRY(after_pass(&d, s->alloc, g, "flat", err));
    CT_TRY(ct_pass_precision(g, o->compute_dtype, err));
    CT_TRY(after_pass(&d, s->alloc, g, "precision", err));
    CT_TRY(ct_pass_merge(g, err));
    CT_TRY(after_pass(&d, s->alloc, g, "merge", err));

    ct_value_id *grads = ct_arena_alloc(ct_graph_arena(g), (size_t)s->layout->n_groups * sizeof *grads, err);
    if (grads == NULL) {
        return CT_ERR_MEMORY;
    }
    CT_TRY(ct_autodiff(g, loss, s->flats, s->layout->n_groups, grads, err));
    CT_TRY(after_pass(&d, s->alloc, g, "autodiff", err));
    CT_TRY(ct_optim_emit(g, s->layout, s->flats, grads, loss, o->mesh, &o->optim, &s->optim, err));
    CT_TRY(after_pass(&d, s->alloc, g, "optimizer", err));
    CT_TRY(ct_pass_recompute(g, &o->recompute, &s->recompute, err));
    CT_TRY(after_pass(&d, s->alloc, g, "recompute", err));
    CT_TRY(ct_pass_fuse(g, err));
    CT_TRY(after_pass(&d, s->alloc, g, "fuse", err));
    ct_value_id keep[CTI_STEP_KEEPS];
    cti_step_keep(s, keep);
    CT_TRY(ct_pass_schedule(g, keep, CTI_STEP_KEEPS, o->is_overlapped, err));
    return after_pass(&d, s->alloc, g, "schedule", err);
}

ct_status cti_step_create(const ct_alloc *alloc, const ct_component *model_spec, const cti_step_options *options,
                          cti_step **out_step, ct_err *err)
{
    cti_step *s = CT_NEW(alloc, cti_step, err);
    if (s == NULL) {
        return CT_ERR_MEMORY;
    }
    s->alloc = alloc;
    const ct_status st = run_passes(s, model_spec, options, err);
    if (st != CT_OK) {
        cti_step_destroy(&s);
        return st;
    }
    *out_step = s;
    return CT_OK;
}

void cti_step_destroy(cti_step **step)
{
    if (*step == NULL) {
        return;
    }
    ct_graph_destroy(&(*step)->graph);
    ct_flat_layout_destroy(&(*step)->layout);
    ct_alloc_free((*step)->alloc, *step);
    *step = NULL;
}

void cti_step_actions(int32_t n_micro_batches, cti_action *out_actions)
{
    for (int32_t m = 0; m < n_micro_batches; m++) {
        out_actions[2 * m] = (cti_action){CT_PROGRAM_FORWARD, m, 0};
        out_actions[2 * m + 1] = (cti_action){CT_PROGRAM_BACKWARD, m, 0};
    }
    out_actions[2 * n_micro_batches] = (cti_action){CT_PROGRAM_OPTIMIZER, 0, 0};
}

static ct_status eval_passes(cti_eval *e, const ct_component *spec, const cti_step_options *o, const cti_step *step, ct_err *err)
{
    const cti_graph_options options = {.mode = CT_BUILD_EVAL,
                                       .param_dtype = o->param_dtype,
                                       .batch = o->batch,
                                       .seq_len = o->seq_len,
                                       .loss = o->loss,
                                       .loss_chunks = o->loss_chunks};
    const ct_shard_options shard = {.is_sequence_parallel = o->is_sequence_parallel};
    ct_value_id *flats;
    CT_TRY(cti_graph_build(e->alloc, spec, &options, &e->graph, &e->build, &e->loss, err));
    CT_TRY(cti_model_place(&e->build, o->mesh, err));
    CT_TRY(ct_pass_shard(e->graph, o->mesh, &shard, err));
    CT_TRY(ct_pass_flat(e->graph, e->build.params, e->build.n_params, step->layout, o->mesh, o->reduce_dtype, &flats, err));
    CT_TRY(ct_pass_precision(e->graph, o->compute_dtype, err));
    CT_TRY(ct_pass_merge(e->graph, err));
    CT_TRY(ct_pass_fuse(e->graph, err));
    return ct_pass_schedule(e->graph, &e->loss, 1, o->is_overlapped, err);
}

ct_status cti_eval_create(const ct_alloc *alloc, const ct_component *model_spec, const cti_step_options *options, const cti_step *step,
                          cti_eval **out_eval, ct_err *err)
{
    cti_eval *e = CT_NEW(alloc, cti_eval, err);
    if (e == NULL) {
        return CT_ERR_MEMORY;
    }
    e->alloc = alloc;
    const ct_status st = eval_passes(e, model_spec, options, step, err);
    if (st != CT_OK) {
        cti_eval_destroy(&e);
        return st;
    }
    *out_eval = e;
    return CT_OK;
}

void cti_eval_destroy(cti_eval **eval)
{
    if (*eval != NULL) {
        ct_graph_destroy(&(*eval)->graph);
        ct_alloc_free((*eval)->alloc, *eval);
        *eval = NULL;
    }
}
