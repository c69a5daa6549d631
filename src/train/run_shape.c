/* SPDX-License-Identifier: Apache-2.0 */
/* Settings -> batch sizes, optimizer groups, recomputation: the options of a step. */
#include "train/run_shape.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/base.h"

/* The settings' choices are these, or a plug-in's; DistMuon is another name of Muon. */
static ct_optim_kind kind_of(const char *name)
{
    if (strchr(name, '.') != NULL) {
        return CT_OPTIM_PLUGIN;
    }
    ct_optim_kind kind = CT_OPTIM_ADAMW;
    while (kind < CT_OPTIM_MUON && strcmp(name, ct_optim_name(kind)) != 0) {
        kind++;
    }
    return kind;
}

static ct_muon_adjust adjust_of(const char *name)
{
    ct_muon_adjust adjust = CT_MUON_ORIGINAL;
    while (adjust < CT_MUON_SPECTRAL_UNCLAMPED && strcmp(name, ct_muon_adjust_name(adjust)) != 0) {
        adjust++;
    }
    return adjust;
}

static ct_status read_group(const ct_registry *registry, int32_t i, const cti_param_group_config *g, const cti_optimizer_kwargs_config *k, ct_optim_group *out, ct_err *err)
{
    const ct_optim_kind kind = kind_of(g->optimizer_name);
    const bool is_muon = kind == CT_OPTIM_MUON;
    const ct_optimizer *plugin = kind == CT_OPTIM_PLUGIN ? cti_registry_optimizer(registry, g->optimizer_name) : NULL;
    if (kind == CT_OPTIM_PLUGIN && plugin == NULL) {
        return CT_FAIL(err, CT_ERR_USAGE, "--optimizer.param-groups.%d.optimizer-name: '%s' is no optimizer: no plug-in has registered it", i, g->optimizer_name);
    }
    if (k->betas.n != 2 || k->ns_coefficients.n != 3) {
        return CT_FAIL(err, CT_ERR_USAGE, "--optimizer.param-groups.%d.optimizer-kwargs: 2 betas and 3 ns-coefficients are wanted, %" PRId64 " and %" PRId64
                       " given", i, k->betas.n, k->ns_coefficients.n);
    }
    *out = (ct_optim_group){.pattern = g->pattern,
                            .kind = kind,
                            .plugin = plugin,
                            .lr = k->lr,
                            .weight_decay = k->weight_decay,
                            .beta1 = k->betas.items[0],
                            .beta2 = k->betas.items[1],
                            .eps = k->eps,
                            .momentum = k->momentum.is_set ? k->momentum.value : is_muon ? 0.95 : 0.0,
                            .is_nesterov = strcmp(k->nesterov, "default") == 0 ? is_muon : strcmp(k->nesterov, "true") == 0,
                            .ns_steps = k->ns_steps,
                            .adjust = adjust_of(k->adjust_lr_fn)};
    memcpy(out->ns_coefficients, k->ns_coefficients.items, sizeof out->ns_coefficients);
    return CT_OK;
}

static ct_status read_groups(const cti_run_config *run, ct_optim_spec *out, ct_err *err)
{
    const ct_component *list = ct_component_find(run->root, "optimizer.param_groups");
    if (list == NULL || list->n_children < 1 || list->n_children > 64) {
        return CT_FAIL(err, CT_ERR_USAGE, "optimizer.param-groups: 1 to 64 groups are wanted");
    }
    ct_optim_group *groups = ct_arena_alloc(ct_tree_arena(run->tree), (size_t)list->n_children * sizeof *groups, err);
    if (groups == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int32_t i = 0; i < list->n_children; i++) {
        const cti_param_group_config *g = ct_component_values(list->children[i]);
        const cti_optimizer_kwargs_config *k = CTI_SECTION(list->children[i], "optimizer_kwargs", optimizer_kwargs);
        CT_TRY(read_group(run->registry, i, g, k, &groups[i], err));
    }
    out->groups = groups;
    out->n_groups = list->n_children;
    return CT_OK;
}

static ct_status recompute_options(const cti_run_config *run, const ct_mesh *mesh, ct_recompute_options *out, int64_t *out_limit_bytes,
                                   ct_err *err)
{
    const ct_component *ac = ct_component_find(run->root, "activation_checkpoint");
    const cti_parallelism_config *p = CTI_SECTION(run->root, "parallelism", parallelism);
    const bool never = strcmp(p->fsdp_reshard_after_forward, "never") == 0;
    const bool always = strcmp(p->fsdp_reshard_after_forward, "always") == 0;
    *out = (ct_recompute_options){.reshard_blocks = always || (!never && mesh->degree[CT_AXIS_DP_SHARD] > 1),
                                  .reshard_head = always};
    if (ac == NULL || ct_class_is_a(ac->cls, &cti_ac_none_class)) {
        return CT_OK;
    }
    if (ct_class_is_a(ac->cls, &cti_ac_full_class)) {
        out->mode = CT_RECOMPUTE_FULL;
    } else if (ct_class_is_a(ac->cls, &cti_ac_selective_class)) {
        out->mode = CT_RECOMPUTE_SELECTIVE;
    } else if (ct_class_is_a(ac->cls, &cti_ac_memory_budget_class)) {
        out->mode = CT_RECOMPUTE_BUDGET;
        const cti_ac_memory_budget_config *c = ct_component_values(ac);
        const double limit_bytes = c->memory_limit_gib * 1024.0 * 1024.0 * 1024.0;
        out->budget = c->memory_budget;
        *out_limit_bytes = limit_bytes < 9e18 ? (int64_t)ceil(limit_bytes) : INT64_MAX; /* what is above 0 stays a limit */
    } else {
        return CT_FAIL(err, CT_ERR_USAGE, "activation-checkpoint:%s is not known; none, selective, full and memory-budget are",
                       ac->cls->name);
    }
    return CT_OK;
}

static ct_status batch_sizes(const cti_run_config *run, const ct_mesh *mesh, cti_run_shape *t, ct_err *err)
{
    const cti_training_config *c = CTI_SECTION(run->root, "training", training);
    const int64_t dp = ct_mesh_dp_degree(mesh);
    t->local_batch = c->local_batch_size;
    t->seq_len = c->seq_len;
    int64_t micro;
    if (!cti_mul_i64(t->local_batch, dp, &micro)) {
        return CT_FAIL(err, CT_ERR_USAGE, "--training.local-batch-size: %" PRId64 " rows on %" PRId64 " ranks are too many",
                       t->local_batch, dp);
    }
    t->global_batch = c->global_batch_size < 0 ? micro : c->global_batch_size;
    if (t->global_batch < micro || t->global_batch % micro != 0) {
        return CT_FAIL(err, CT_ERR_USAGE, "--training.global-batch-size: %" PRId64 " is no multiple of %" PRId64
                       " (local batch size %" PRId64 " x data-parallel degree %" PRId64 "); the nearest are %" PRId64
                       " and %" PRId64, t->global_batch, micro, t->local_batch, dp,
                       cti_max_i64(1, t->global_batch / micro) * micro, (t->global_batch / micro + 1) * micro);
    }
    t->accumulation = t->global_batch / micro;
    return CT_OK;
}

ct_status cti_run_shape_make(const cti_run_config *run, const ct_mesh *mesh, ct_dtype compute_dtype, cti_run_shape *out_shape,
                             ct_err *err)
{
    const cti_training_config *training = CTI_SECTION(run->root, "training", training);
    const cti_debug_config *debug = CTI_SECTION(run->root, "debug", debug);
    const cti_optimizer_config *optimizer = CTI_SECTION(run->root, "optimizer", optimizer);
    const ct_component *loss = ct_component_find(run->root, "loss");
    cti_run_shape shape = {0};
    CT_TRY(batch_sizes(run, mesh, &shape, err));
    const cti_parallelism_config *parallelism = CTI_SECTION(run->root, "parallelism", parallelism);
    shape.step = (cti_step_options){.mesh = mesh,
                                    .param_dtype = strcmp(training->dtype, "bfloat16") == 0 ? CT_DTYPE_BF16 : CT_DTYPE_F32,
                                    .compute_dtype = compute_dtype,
                                    .reduce_dtype = CT_DTYPE_F32,
                                    .batch = shape.local_batch * ct_mesh_dp_degree(mesh),
                                    .seq_len = shape.seq_len,
                                    .loss = loss,
                                    .loss_chunks = 1,
                                    .is_sequence_parallel = parallelism->enable_sequence_parallel,
                                    .is_overlapped = strcmp(parallelism->data_parallel_overlap, "never") != 0,
                                    .optim = {.max_norm = training->max_norm,
                                              .has_bf16_moments = strcmp(optimizer->implementation, "fused_opt_states_bf16") == 0,
                                              .has_one_micro_batch = shape.accumulation == 1},
                                    .dump_dir = debug->dump_graph};
    if (loss != NULL && ct_class_is_a(loss->cls, &cti_chunked_loss_class)) {
        shape.step.loss_chunks = ((const cti_chunked_loss_config *)ct_component_values(loss))->num_chunks;
    }
    CT_TRY(read_groups(run, &shape.step.optim, err));
    CT_TRY(recompute_options(run, mesh, &shape.step.recompute, &shape.memory_limit_bytes, err));
    *out_shape = shape;
    return CT_OK;
}

static ct_source source_of(const ct_component *c, const char *field)
{
    for (int32_t i = 0; i < c->cls->n_fields; i++) {
        if (strcmp(c->cls->fields[i].name, field) == 0) {
            return (ct_source)c->sources[i];
        }
    }
    return CT_SOURCE_DEFAULT;
}

ct_dtype cti_run_compute_dtype(const ct_component *root, bool has_native_bf16)
{
    const ct_component *training = ct_component_find(root, "training");
    const cti_training_config *c = ct_component_values(training);
    const bool is_asked = source_of(training, "mixed_precision_param") > CT_SOURCE_REGISTRY;
    return strcmp(c->mixed_precision_param, "bfloat16") == 0 && (has_native_bf16 || is_asked) ? CT_DTYPE_BF16 : CT_DTYPE_F32;
}
