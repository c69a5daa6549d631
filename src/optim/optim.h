/* SPDX-License-Identifier: Apache-2.0 */
/* The map of the room `optim`: gradient accumulation, clipping, Adam, SGD and Muon over Flat groups as nodes of the step's graph, and learning-rate
 * schedules.
 *
 *     ct_optim_values v;
 *     CT_TRY(ct_optim_emit(g, layout, flats, grads, loss, &mesh, &spec, &v, err));   // after autodiff, before recompute
 *     lr = spec.groups[0].lr * ct_lr_factor(&schedule, step - 1);
 */
#ifndef CTI_OPTIM_OPTIM_H
#define CTI_OPTIM_OPTIM_H

#include "ctitan/plugin.h"
#include "mesh/flat.h"
#include "mesh/mesh.h"

typedef enum ct_optim_kind { CT_OPTIM_ADAMW, CT_OPTIM_ADAM, CT_OPTIM_SGD, CT_OPTIM_MUON, CT_OPTIM_PLUGIN } ct_optim_kind;
/* What Muon's rate is multiplied with for a matrix of so many rows and columns, as torch.optim.Muon's adjust_lr_fn names it. */
typedef enum ct_muon_adjust {
    CT_MUON_ORIGINAL,          /* sqrt(max(1, rows / cols)) */
    CT_MUON_MATCH_RMS_ADAMW,   /* 0.2 sqrt(max(rows, cols)) */
    CT_MUON_SPECTRAL_UNCLAMPED /* sqrt(rows / cols) */
} ct_muon_adjust;
double ct_muon_scale(ct_muon_adjust adjust, int64_t rows, int64_t cols);

typedef struct ct_optim_group {
    const char *pattern; /* POSIX extended regular expression searched in parameter names; the first group that matches wins */
    ct_optim_kind kind;
    const ct_optimizer *plugin; /* of PLUGIN; borrowed */
    double lr;
    double weight_decay; /* AdamW and Muon: of the parameter, times the rate; Adam and SGD: an L2 penalty in the gradient */
    double beta1, beta2; /* Adam */
    double eps;          /* Adam: added to the root; Muon: least norm to divide by */
    double momentum;     /* SGD, Muon */
    bool is_nesterov;    /* SGD, Muon */
    int64_t ns_steps;
    double ns_coefficients[3];
    ct_muon_adjust adjust;
} ct_optim_group;

/* Flat groups hold parameters of one family, which has one set of states: "" (Adam), "sgd", "muon", the name of a plug-in's. */
const char *ct_optim_family(const ct_optim_group *group);
/* As settings call them: "AdamW", "match_rms_adamw"; "a plug-in's" for PLUGIN, whose names are the plug-ins'. */
const char *ct_optim_name(ct_optim_kind kind);
const char *ct_muon_adjust_name(ct_muon_adjust adjust);

/* out_group_of[i]: the group of the parameter names[i]; out_n[group]: how many it has.
 * ERR_USAGE: a pattern is no regular expression, matches nothing that an earlier one left, or a parameter is matched by none. */
CT_MUST_CHECK ct_status ct_optim_match(const ct_optim_group *groups, int32_t n_groups, const char *const *names, int32_t n_names,
                                       int32_t *out_group_of, int32_t *out_n, ct_err *err);

typedef struct ct_optim_spec {
    const ct_optim_group *groups;
    int32_t n_groups;
    double max_norm;
    bool has_bf16_moments; /* Adam's moments in bf16 instead of the parameters' dtype */
    bool has_one_micro_batch; /* a step: the optimizer reads the gradients where backward made them, nothing is accumulated */
} ct_optim_spec;

/* What the host writes and reads around the emitted programs. */
typedef struct ct_optim_values {
    ct_value_id first; /* INPUT i32 [1]: 1 for the first micro-batch of a step; gradients and loss start anew. CT_NO_VALUE with one micro-batch */
    ct_value_id step;  /* INPUT i64 [1]: number of this update, from 1 */
    ct_value_id lr;    /* INPUT f64 [n_groups] */
    ct_value_id loss;  /* f64 [1]: the step's loss over all data ranks */
    ct_value_id local_loss; /* f64 [1]: this rank's part of it; the same value with one data rank */
    ct_value_id norm;  /* f64 [1]: gradient norm before clipping */
    ct_value_id go;    /* i32 [1]: 1 where the update was made, 0 where something was not finite */
} ct_optim_values;

/* BACKWARD: grads into GRAD "grad.<group>" (the parameters' dtype), loss into STATE "loss"; neither with one micro-batch. OPTIMIZER: loss and squared norm summed over
 * the data axes, clip, the update in place on the PARAMs with STATE "exp_avg.<group>" and "exp_avg_sq.<group>" (Adam) or
 * "momentum_buffer.<group>" (SGD with momentum, Muon).
 * ERR_USAGE: as ct_optim_match, or a parameter that is no matrix for Muon; ERR_UNSUPPORTED: Muon of a matrix that tensor parallelism cuts. */
CT_MUST_CHECK ct_status ct_optim_emit(ct_graph *graph, const ct_flat_layout *layout, const ct_value_id *flats,
                                      const ct_value_id *grads, ct_value_id loss, const ct_mesh *mesh,
                                      const ct_optim_spec *spec, ct_optim_values *out_values, ct_err *err);

typedef enum ct_lr_decay { CT_LR_LINEAR, CT_LR_SQRT, CT_LR_COSINE } ct_lr_decay;
typedef struct ct_lr_schedule {
    int64_t warmup_steps, stable_steps, decay_steps;
    ct_lr_decay decay;
    double min_factor;
    bool is_warmup_cut, is_decay_cut; /* clamped to the total: worth a warning */
} ct_lr_schedule;

/* total: steps the schedule is laid for; decay_ratio < 0: decay right after warm-up. Warm-up and decay are clamped to the total.
 * stable = total + 1 - warmup - decay, so that the last step's rate is not zero (upstream's rule). */
ct_lr_schedule ct_lr_schedule_make(int64_t total_steps, int64_t warmup_steps, double decay_ratio, ct_lr_decay decay,
                                   double min_factor);
/* Factor on the base rate after `done` completed updates: (done+1)/warmup, then 1, then min + (1-min) a with a = 1-p, 1-sqrt(p) or
 * (1+cos(pi p))/2, p = (done+1-warmup-stable)/decay. Never below 0. */
double ct_lr_factor(const ct_lr_schedule *schedule, int64_t done);

#endif
