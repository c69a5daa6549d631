/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled training step: model spec -> forward graph -> passes -> programs {forward, backward, optimizer}.
 *
 *     cti_step *step;
 *     CT_TRY(cti_step_create(alloc, model_spec, &options, &step, err));
 *     step->graph, step->layout, step->optim ...
 *     cti_step_destroy(&step);
 *
 * The action list of one update is: for each micro-batch forward, backward (slot 0); then optimizer. */
#ifndef CTI_TRAIN_STEP_H
#define CTI_TRAIN_STEP_H

#include "ctitan/component.h"
#include "mesh/flat.h"
#include "mesh/mesh.h"
#include "optim/optim.h"
#include "passes/passes.h"

/* One action: run `program` on micro-batch `micro_batch`, whose saved activations live in `slot`. */
typedef struct cti_action {
    ct_program_id program;
    int32_t micro_batch, slot;
} cti_action;

typedef struct cti_step_options {
    const ct_mesh *mesh;
    ct_dtype param_dtype;   /* storage */
    ct_dtype compute_dtype;
    ct_dtype reduce_dtype;
    int64_t batch, seq_len; /* rows of a micro-batch over all data ranks, tokens of a row */
    const ct_component *loss; /* as cti_graph_options */
    int64_t loss_chunks;
    bool is_sequence_parallel; /* with tp above 1 */
    bool is_overlapped;        /* collectives of Flat groups beside the computation */
    ct_recompute_options recompute;
    ct_optim_spec optim;
    const char *dump_dir;   /* NULL: none; else "<dir>/NN-<pass>.txt" after each pass */
} cti_step_options;

typedef struct cti_step {
    const ct_alloc *alloc;
    ct_graph *graph;        /* owns */
    ct_flat_layout *layout; /* owns */
    ct_build build;         /* inputs, parameters, constants; memory of the graph's arena */
    ct_value_id *flats;     /* PARAM value of each Flat group; the graph's */
    ct_optim_values optim;
    ct_recompute_report recompute;
} cti_step;

/* The loss alone, of the same model on the same Flat groups: program EVAL. */
typedef struct cti_eval {
    const ct_alloc *alloc;
    ct_graph *graph;  /* owns */
    ct_build build;
    ct_value_id loss; /* f64 [1]: inv_tokens times the sum over this rank's labels; placed as the pass for tp left it */
} cti_eval;

CT_MUST_CHECK ct_status cti_step_create(const ct_alloc *alloc, const ct_component *model_spec,
                                        const cti_step_options *options, cti_step **out_step, ct_err *err);
void cti_step_destroy(cti_step **step);
/* step: the training step of the same options, whose groups it reads. */
CT_MUST_CHECK ct_status cti_eval_create(const ct_alloc *alloc, const ct_component *model_spec, const cti_step_options *options,
                                        const cti_step *step, cti_eval **out_eval, ct_err *err);
void cti_eval_destroy(cti_eval **eval);
/* The values that the host reads after a step: what a plan must keep. */
enum { CTI_STEP_KEEPS = 4 };
void cti_step_keep(const cti_step *step, ct_value_id out_values[CTI_STEP_KEEPS]);
/* The flat layout of a built graph's parameters, after ct_pass_shard. mesh NULL: one rank; optim NULL: no optimizer. */
CT_MUST_CHECK ct_status cti_layout_of(const ct_alloc *alloc, const ct_build *build, const ct_mesh *mesh, const ct_optim_spec *optim,
                                      ct_flat_layout **out_layout, ct_err *err);
/* As ct_optim_match, of the parameters of a built graph. */
CT_MUST_CHECK ct_status cti_groups_of(const ct_alloc *alloc, const ct_build *build, const ct_optim_spec *optim, int32_t *out_group_of,
                                      int32_t *out_n, ct_err *err);
/* Fills out_actions with 2 n_micro_batches + 1 actions. */
void cti_step_actions(int32_t n_micro_batches, cti_action *out_actions);

#endif
