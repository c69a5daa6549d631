/* SPDX-License-Identifier: Apache-2.0 */
/* Checks across settings: one row each (settings it names, predicate, sentence). All are evaluated, every failure is a problem
 * that shows the settings' values and where they came from. */
#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "config/config_internal.h"

typedef struct run {
    ct_component *root;
    int64_t world; /* 0: not known */
    const cti_training_config *training;
    const cti_parallelism_config *parallelism;
    const cti_checkpoint_config *checkpoint;
    const cti_dataloader_config *dataloader;
    const cti_validator_config *validator;
    const cti_dataloader_config *validator_data;
    const cti_optimizer_config *optimizer;
    const cti_profiler_config *profiler;
    cti_degrees degrees; /* dp_shard may be 0: it cannot be known or does not divide */
    cti_str *detail;     /* a predicate may say more; put after the sentence */
} run;

/* ---- degrees --------------------------------------------------------------------------------------------------- */

/* a*b, or INT64_MAX where that does not fit: a degree that no number of ranks equals. */
static int64_t product(int64_t a, int64_t b)
{
    int64_t p;
    return cti_mul_i64(a, b, &p) ? p : INT64_MAX;
}

static int64_t other_degrees(const cti_degrees *d)
{
    return product(product(d->pp, d->dp_replicate), product(d->cp, d->tp));
}

void cti_degrees_of(const ct_component *root, int64_t world_size, cti_degrees *out_degrees)
{
    const cti_parallelism_config *p = CTI_SECTION(root, "parallelism", parallelism);
    cti_degrees d = {.pp = p->pipeline_parallel_degree,
                     .dp_replicate = p->data_parallel_replicate_degree,
                     .dp_shard = p->data_parallel_shard_degree,
                     .cp = p->context_parallel_degree,
                     .tp = p->tensor_parallel_degree,
                     .ep = p->expert_parallel_degree};
    if (d.dp_shard < 0) {
        d.dp_shard = world_size / other_degrees(&d); /* all >= 1 by their bounds */
    }
    *out_degrees = d;
}

static bool no_cp(run *r)
{
    return r->degrees.cp == 1;
}
static bool no_pp(run *r)
{
    return r->degrees.pp == 1;
}
static bool no_ep(run *r)
{
    return r->degrees.ep == 1;
}
static bool shard_not_zero(run *r)
{
    return r->parallelism->data_parallel_shard_degree != 0;
}

static bool degrees_fit(run *r)
{
    const cti_degrees *d = &r->degrees;
    const int64_t shard = r->parallelism->data_parallel_shard_degree;
    if (r->world <= 0 || shard == 0) {
        return true;
    }
    const int64_t others = other_degrees(d);
    const bool fits = shard < 0 ? others <= r->world && r->world % others == 0 : product(others, shard) == r->world;
    if (!fits) {
        char shard_text[40] = "";
        (void)snprintf(shard_text, sizeof shard_text, " x dp_shard %" PRId64, shard); /* fits */
        cti_str_printf(r->detail,
                       "pp %" PRId64 " x dp_replicate %" PRId64 "%s x cp %" PRId64 " x tp %" PRId64 " = %" PRId64
                       ", WORLD_SIZE is %" PRId64 "%s",
                       d->pp, d->dp_replicate, shard < 0 ? "" : shard_text, d->cp, d->tp,
                       shard < 0 ? others : product(others, shard), r->world,
                       r->world == 1 ? ": `ctitan run --nproc_per_node N` starts N, `ctitan plan --ranks N` plans them" : "");
    }
    return fits;
}

/* ---- batches and lengths --------------------------------------------------------------------------------------- */

/* Rows of one micro-batch over all ranks, as far as the data-parallel degree is known. */
static int64_t rows_at_once(const run *r)
{
    const int64_t dp = product(r->degrees.dp_replicate, cti_max_i64(r->degrees.dp_shard, 1));
    return product(r->training->local_batch_size, dp);
}

static bool global_batch_fits(run *r)
{
    const int64_t global = r->training->global_batch_size;
    const int64_t at_once = rows_at_once(r);
    if (global < 0 || (global > 0 && global % at_once == 0)) {
        return true;
    }
    cti_str_printf(r->detail, "wanted -1 or a multiple of %" PRId64, at_once);
    if (global > 0 && at_once < INT64_MAX - global) {
        const int64_t below = global / at_once * at_once;
        if (below > 0) {
            cti_str_printf(r->detail, "; the nearest are %" PRId64 " and %" PRId64, below, below + at_once);
        } else {
            cti_str_printf(r->detail, "; the nearest is %" PRId64, at_once);
        }
    }
    return false;
}

static bool step_counts_fit(run *r)
{
    const int64_t rows = r->training->global_batch_size > 0 ? r->training->global_batch_size : rows_at_once(r);
    int64_t tokens;
    return cti_mul_i64(rows, r->training->seq_len, &tokens) && tokens <= INT32_MAX;
}

static bool seq_len_divides(run *r)
{
    int64_t by = r->parallelism->enable_sequence_parallel ? r->degrees.tp : 1;
    by = product(by, r->degrees.cp > 1 ? product(2, r->degrees.cp) : 1);
    if (r->training->seq_len % by == 0) {
        return true;
    }
    cti_str_printf(r->detail, "wanted a multiple of %" PRId64, by);
    return false;
}

/* A whole number of a component by path and name: the model's own tables are not known here. False where there is none. */
static bool number_at(const run *r, const char *path, const char *name, int64_t *out)
{
    const ct_component *c = ct_component_find(r->root, path);
    const ct_field *field = c != NULL ? ct_field_find(c->cls->fields, (size_t)c->cls->n_fields, name) : NULL;
    if (field == NULL || field->kind != CT_FIELD_I64) {
        return false;
    }
    memcpy(out, (const char *)c->values + field->offset, sizeof *out);
    return true;
}

static bool model_number(const run *r, const char *name, int64_t *out)
{
    return number_at(r, "model_spec.model", name, out);
}

/* What tensor parallelism shares out whole: each must divide by the degree. The vocabulary may be cut unevenly. */
static const struct {
    const char *path, *name, *what;
} shared[] = {
    {"model_spec.model.layers.0.attention", "n_heads", "query heads"},
    {"model_spec.model.layers.0.attention", "n_kv_heads", "key and value heads"},
    {"model_spec.model.layers.0.feed_forward", "hidden_dim", "hidden units"},
};
enum { N_SHARED = sizeof shared / sizeof shared[0] };

static bool tensor_degree_divides(const run *r, int64_t degree, cti_str *detail)
{
    bool fits = true;
    for (int i = 0; i < N_SHARED; i++) {
        int64_t n;
        if (number_at(r, shared[i].path, shared[i].name, &n) && n % degree != 0) {
            if (detail != NULL) {
                cti_str_printf(detail, "%s%" PRId64 " %s", fits ? "" : ", ", n, shared[i].what);
            }
            fits = false;
        }
    }
    return fits;
}

/* All that does not divide, and the nearest degrees that do. */
static bool tensor_degree_fits(run *r)
{
    const int64_t degree = r->degrees.tp;
    if (degree == 1 || tensor_degree_divides(r, degree, r->detail)) {
        return true;
    }
    int64_t least = INT64_MAX, below = 1, above = 0; /* a degree that divides all is at most the least of them */
    for (int i = 0; i < N_SHARED; i++) {
        int64_t n;
        least = number_at(r, shared[i].path, shared[i].name, &n) && n < least ? n : least;
    }
    for (int64_t d = 1; d <= least && above == 0; d++) {
        if (tensor_degree_divides(r, d, NULL)) {
            below = d < degree ? d : below;
            above = d > degree ? d : 0;
        }
    }
    if (above > 0) {
        cti_str_printf(r->detail, "; the nearest that divide all are %" PRId64 " and %" PRId64, below, above);
    } else {
        cti_str_printf(r->detail, "; the nearest that divides all is %" PRId64, below);
    }
    return false;
}

static bool seq_len_in_reach(run *r)
{
    int64_t longest;
    if (!model_number(r, "max_seq_len", &longest) || r->training->seq_len <= longest) {
        return true;
    }
    cti_str_printf(r->detail, "its longest is %" PRId64, longest);
    return false;
}

static bool vocab_is_the_models(run *r)
{
    const ct_component *fn = ct_component_find(r->root, "loss.loss_fn");
    fn = fn != NULL ? fn : ct_component_find(r->root, "loss");
    int64_t rows;
    if (fn == NULL || !ct_class_is_a(fn->cls, &cti_cross_entropy_class) || !model_number(r, "vocab_size", &rows)) {
        return true;
    }
    const ct_opt_i64 *asked = &((const cti_cross_entropy_config *)fn->values)->global_vocab_size;
    if (!asked->is_set || asked->value == rows) {
        return true;
    }
    cti_str_printf(r->detail, "the model has %" PRId64, rows);
    return false;
}

/* ---- data ------------------------------------------------------------------------------------------------------ */

static bool is_hub_dataset(const cti_dataloader_config *d)
{
    static const char *const names[] = {"c4", "c4_validation", "c4_test_varlen"};
    for (size_t i = 0; d->dataset_path == NULL && d->sources.n == 0 && i < sizeof names / sizeof names[0]; i++) {
        if (cti_str_eq(d->dataset, names[i])) {
            return true;
        }
    }
    return false;
}

bool cti_source_spec(const char *text, size_t *out_path_len, double *out_weight)
{
    const char *colon = strrchr(text, ':');
    const bool has_weight = colon != NULL && cti_parse_f64(colon + 1, out_weight);
    if (!has_weight) {
        *out_weight = 1.0;
    }
    *out_path_len = has_weight ? (size_t)(colon - text) : strlen(text);
    return *out_path_len > 0 && *out_weight > 0.0 && *out_weight < 1e300;
}

static bool specs_are_good(const cti_dataloader_config *d, cti_str *detail)
{
    for (int64_t i = 0; i < d->sources.n; i++) {
        size_t n;
        double weight;
        if (!cti_source_spec(d->sources.items[i], &n, &weight)) {
            cti_str_printf(detail, "'%s'", d->sources.items[i]);
            return false;
        }
    }
    return true;
}

static bool sources_are_good(run *r)
{
    return specs_are_good(r->dataloader, r->detail) && specs_are_good(r->validator_data, r->detail);
}

static bool sources_are_few(run *r)
{
    return r->dataloader->sources.n <= 64 && r->validator_data->sources.n <= 64;
}

/* One way to say where the documents are. */
static bool sources_or_path(run *r)
{
    return (r->dataloader->sources.n == 0 || r->dataloader->dataset_path == NULL) &&
           (r->validator_data->sources.n == 0 || r->validator_data->dataset_path == NULL);
}

static bool dataset_is_local(run *r)
{
    return !is_hub_dataset(r->dataloader);
}

static bool validation_is_local(run *r)
{
    return !r->validator->enable || !is_hub_dataset(r->validator_data);
}

static bool streams_divide(run *r)
{
    const ct_opt_i64 streams = r->dataloader->streams;
    const int64_t rows = rows_at_once(r);
    if (!streams.is_set || rows % streams.value == 0) {
        return true;
    }
    cti_str_printf(r->detail, "%" PRId64 " rows at once", rows);
    return false;
}

static bool validator_steps_fit(run *r)
{
    return !r->validator->enable || r->validator->steps != 0;
}

static bool validation_ends(run *r)
{
    return !r->validator->enable || r->validator->steps > 0 || !r->validator_data->infinite;
}

static bool whole_pass_on_one(run *r)
{
    return !r->validator->enable || r->validator->steps > 0 ||
           product(r->degrees.dp_replicate, r->degrees.dp_shard) <= 1;
}

/* ---- checkpoints ----------------------------------------------------------------------------------------------- */

static bool folder_not_blank(run *r)
{
    return r->checkpoint->folder[strspn(r->checkpoint->folder, " \t")] != '\0';
}

static bool folder_is_local(run *r)
{
    return strstr(r->checkpoint->folder, "://") == NULL;
}

static bool keeps_two(run *r)
{
    return r->checkpoint->keep_latest_k != 1;
}

static bool initial_path_is_absolute(run *r)
{
    const char *path = r->checkpoint->initial_load_path;
    return path == NULL || path[0] == '/' || strstr(path, "://") != NULL;
}

static bool initial_path_is_local(run *r)
{
    const char *path = r->checkpoint->initial_load_path;
    return path == NULL || strstr(path, "://") == NULL;
}

static bool hf_load_is_weights(run *r)
{
    return !r->checkpoint->initial_load_in_hf || r->checkpoint->initial_load_model_only;
}

static bool hf_save_is_weights(run *r)
{
    return !r->checkpoint->last_save_in_hf || r->checkpoint->last_save_model_only;
}

static bool excludes(const run *r, const char *name)
{
    const ct_str_list *list = &r->checkpoint->exclude_from_loading;
    for (int64_t i = 0; i < list->n; i++) {
        if (cti_str_eq(list->items[i], name)) {
            return true;
        }
    }
    return false;
}

static bool excludes_known(run *r)
{
    static const char *const legal[] = {"optimizer", "lr_scheduler", "dataloader", "train_state", "model"};
    const ct_str_list *list = &r->checkpoint->exclude_from_loading;
    for (int64_t i = 0; i < list->n; i++) {
        bool known = false;
        for (size_t j = 0; j < sizeof legal / sizeof legal[0]; j++) {
            known = known || cti_str_eq(list->items[i], legal[j]);
        }
        if (!known) {
            cti_str_printf(r->detail, "found '%s'", list->items[i]);
            return false;
        }
    }
    return true;
}

static bool model_is_loaded(run *r)
{
    return !excludes(r, "model");
}

static bool scheduler_goes_with_optimizer(run *r)
{
    return !excludes(r, "optimizer") || excludes(r, "lr_scheduler");
}

static bool seed_save_is_on(run *r)
{
    return !r->checkpoint->create_seed_checkpoint || r->checkpoint->enable;
}

static bool seed_on_one_rank(run *r)
{
    return !r->checkpoint->create_seed_checkpoint || r->world <= 1;
}

static bool seed_can_be_saved(run *r)
{
    return !r->checkpoint->create_seed_checkpoint || !r->checkpoint->load_only;
}

/* ---- optimizer and the rest ------------------------------------------------------------------------------------ */

/* The i-th param group's kwargs; NULL past the last one. */
static const ct_component *group_at(const run *r, int32_t i)
{
    const ct_component *groups = ct_component_find(r->root, "optimizer.param_groups");
    return groups != NULL && i < groups->n_children ? groups->children[i] : NULL;
}

static bool has_groups(run *r)
{
    return group_at(r, 0) != NULL;
}

static bool optimizers_known(run *r)
{
    const ct_component *group;
    for (int32_t i = 0; (group = group_at(r, i)) != NULL; i++) {
        const char *name = ct_class_is_a(group->cls, &cti_param_group_class)
                               ? ((const cti_param_group_config *)group->values)->optimizer_name
                               : "AdamW";
        if (!cti_str_eq(name, "AdamW")) {
            cti_str_printf(r->detail, "group %" PRId32 " asks for '%s'", i, name);
            return false;
        }
    }
    return true;
}

static bool betas_are_two(run *r)
{
    const ct_component *group;
    for (int32_t i = 0; (group = group_at(r, i)) != NULL; i++) {
        const ct_component *kwargs = ct_component_child(group, "optimizer_kwargs");
        if (kwargs == NULL || !ct_class_is_a(kwargs->cls, &cti_optimizer_kwargs_class)) {
            continue;
        }
        const ct_f64_list *betas = &((const cti_optimizer_kwargs_config *)kwargs->values)->betas;
        if (betas->n != 2 || !(betas->items[0] < 1.0) || !(betas->items[1] < 1.0)) {
            cti_str_printf(r->detail, "group %" PRId32, i);
            return false;
        }
    }
    return true;
}

static bool states_keep_their_type(run *r)
{
    return !cti_str_eq(r->optimizer->implementation, "fused_opt_states_bf16");
}

static bool no_memory_budget(run *r)
{
    const ct_component *ac = ct_component_find(r->root, "activation_checkpoint");
    return ac == NULL || ac->cls != &cti_ac_memory_budget_class;
}

/* The model's own tables are not known here: the field is looked up by name. */
static bool no_converters(run *r)
{
    const ct_component *spec = ct_component_find(r->root, "model_spec");
    const ct_field *field = spec != NULL ? ct_field_find(spec->cls->fields, (size_t)spec->cls->n_fields, "converters") : NULL;
    ct_str_list list = {0};
    if (field == NULL || field->kind != CT_FIELD_STR_LIST) {
        return true;
    }
    memcpy(&list, (const char *)spec->values + field->offset, sizeof list);
    return list.n == 0;
}

static bool no_async_tp(run *r)
{
    return !CTI_SECTION(r->root, "compile", compile)->enable_async_tensor_parallel;
}

static bool balancer_known(run *r)
{
    const char *name = r->parallelism->context_parallel_load_balancer;
    return name == NULL || cti_str_eq(name, "headtail") || cti_str_eq(name, "ptrr");
}

static bool schedule_known(run *r)
{
    static const char *const names[] = {"1F1B",          "GPipe",     "Interleaved1F1B",        "LoopedBFS",
                                        "InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV",
                                        "PipelineScheduleSingle", "PipelineScheduleMulti"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (cti_str_eq(r->parallelism->pipeline_parallel_schedule, names[i])) {
            return true;
        }
    }
    return false;
}

static bool microbatch_divides(run *r)
{
    return r->degrees.pp <= 1 ||
           r->training->local_batch_size % r->parallelism->pipeline_parallel_microbatch_size == 0;
}

static bool profile_cycle_fits(run *r)
{
    return !r->profiler->enable_profiling || r->profiler->profile_freq - r->profiler->profiler_warmup >=
                                                 r->profiler->profiler_active;
}

/* ---- the rows -------------------------------------------------------------------------------------------------- */

typedef struct check {
    const char *name;
    const char *settings; /* paths that the problem shows, separated by blanks; the first is the one to change */
    bool (*holds)(run *r);
    const char *sentence;
} check;

#define P "parallelism."
#define C "checkpoint."
/* Other values of the first setting are known, and not there yet: for training only, for a plan too. */
static const check not_trained[] = {
    {"no_converters", "model_spec.converters", no_converters,
     "training in float8, mxfp8 or nvfp4 and products fused with collectives are not there yet: set --model-spec.converters ''"},
    {"no_async_tp", "compile.enable_async_tensor_parallel", no_async_tp,
     "collectives cut up between the products of tensor parallelism are not there yet: set --compile.no-enable-async-tensor-parallel"},
};
static const check not_yet[] = {
    {"no_cp", P "context_parallel_degree", no_cp,
     "context parallelism is not there yet: set --parallelism.context-parallel-degree 1"},
    {"no_pp", P "pipeline_parallel_degree", no_pp,
     "pipeline parallelism is not there yet: set --parallelism.pipeline-parallel-degree 1"},
    {"no_ep", P "expert_parallel_degree", no_ep,
     "expert parallelism is not there yet: set --parallelism.expert-parallel-degree 1"},
    {"optimizers_known", "optimizer.param_groups.0.optimizer_name", optimizers_known,
     "only AdamW is there yet"},
    {"states_keep_their_type", "optimizer.implementation", states_keep_their_type,
     "optimizer states in bfloat16 are not there yet: wanted fused"},
    {"no_memory_budget", "activation_checkpoint.memory_budget", no_memory_budget,
     "activation-checkpoint:memory-budget is not there yet: wanted selective, full or none"},
};
static const check checks[] = {
    {"tensor_degree_fits", P "tensor_parallel_degree", tensor_degree_fits, "the degree must divide what the ranks share"},
    {"shard_not_zero", P "data_parallel_shard_degree", shard_not_zero, "wanted -1 or at least 1"},
    {"degrees_fit",
     P "data_parallel_shard_degree " P "data_parallel_replicate_degree " P "tensor_parallel_degree " P
       "context_parallel_degree " P "pipeline_parallel_degree",
     degrees_fit, "the degrees must multiply to the number of ranks"},
    {"global_batch_fits", "training.global_batch_size training.local_batch_size", global_batch_fits,
     "the global batch must be a multiple of the local batch times the data-parallel degree"},
    {"step_counts_fit", "training.seq_len training.local_batch_size training.global_batch_size", step_counts_fit,
     "the tokens of one step must fit in 31 bits"},
    {"seq_len_divides", "training.seq_len", seq_len_divides,
     "the sequence must divide by the degrees of sequence and context parallelism"},
    {"seq_len_in_reach", "training.seq_len", seq_len_in_reach, "the sequence is longer than the model's positions"},
    {"vocab_is_the_models", "loss.global_vocab_size", vocab_is_the_models, "must be None or the model's vocabulary"},
    {"dataset_is_local", "dataloader.dataset dataloader.dataset_path", dataset_is_local,
     "this data set would be downloaded, which is not there yet: give --dataloader.dataset-path, or take c4_test"},
    {"validation_is_local", "validator.dataloader.dataset validator.dataloader.dataset_path", validation_is_local,
     "this data set would be downloaded, which is not there yet: give --validator.dataloader.dataset-path, or take c4_test"},
    {"sources_are_good", "dataloader.sources validator.dataloader.sources", sources_are_good,
     "wanted PATH or PATH:WEIGHT with a weight above 0 and below 1e300"},
    {"sources_are_few", "dataloader.sources validator.dataloader.sources", sources_are_few, "wanted at most 64"},
    {"sources_or_path", "dataloader.sources dataloader.dataset_path validator.dataloader.sources validator.dataloader.dataset_path",
     sources_or_path, "sources say where all the documents are: leave dataset-path out"},
    {"streams_divide", "dataloader.streams", streams_divide, "must divide the rows of one micro-batch of all ranks"},
    {"validator_steps_fit", "validator.steps", validator_steps_fit, "wanted -1 or at least 1"},
    {"validation_ends", "validator.steps validator.dataloader.infinite", validation_ends,
     "one pass over data that never ends: set --validator.dataloader.no-infinite or a number of steps"},
    {"whole_pass_on_one", "validator.steps", whole_pass_on_one,
     "one pass over all the data needs a data-parallel degree of 1: set a number of steps"},
    {"folder_not_blank", C "folder", folder_not_blank, "must not be blank"},
    {"folder_is_local", C "folder", folder_is_local, "remote storage is not there yet: wanted a folder"},
    {"keeps_two", C "keep_latest_k", keeps_two,
     "wanted 0 (all) or at least 2, so that one is whole while the next is written"},
    {"initial_path_is_absolute", C "initial_load_path", initial_path_is_absolute, "wanted an absolute path"},
    {"initial_path_is_local", C "initial_load_path", initial_path_is_local,
     "remote storage is not there yet: wanted a folder"},
    {"hf_load_is_weights", C "initial_load_in_hf " C "initial_load_model_only", hf_load_is_weights,
     "Hugging Face's layout holds weights only: set --checkpoint.initial-load-model-only"},
    {"hf_save_is_weights", C "last_save_in_hf " C "last_save_model_only", hf_save_is_weights,
     "Hugging Face's layout holds weights only: set --checkpoint.last-save-model-only"},
    {"excludes_known", C "exclude_from_loading", excludes_known,
     "wanted names among optimizer, lr_scheduler, dataloader, train_state"},
    {"model_is_loaded", C "exclude_from_loading", model_is_loaded, "'model' cannot be left out"},
    {"scheduler_goes_with_optimizer", C "exclude_from_loading", scheduler_goes_with_optimizer,
     "'optimizer' cannot be left out without 'lr_scheduler'"},
    {"seed_save_is_on", C "create_seed_checkpoint " C "enable", seed_save_is_on,
     "a seed checkpoint needs --checkpoint.enable"},
    {"seed_on_one_rank", C "create_seed_checkpoint", seed_on_one_rank, "a seed checkpoint is made by one rank alone"},
    {"seed_can_be_saved", C "create_seed_checkpoint " C "load_only", seed_can_be_saved,
     "a seed checkpoint cannot be saved under load-only"},
    {"has_groups", "optimizer.implementation", has_groups, "the optimizer has no param group"},
    {"betas_are_two", "optimizer.param_groups.0.optimizer_kwargs.betas", betas_are_two,
     "wanted two numbers, at least 0 and below 1"},
    {"balancer_known", P "context_parallel_load_balancer", balancer_known, "wanted headtail, ptrr or None"},
    {"schedule_known", P "pipeline_parallel_schedule", schedule_known,
     "wanted 1F1B, GPipe, Interleaved1F1B, LoopedBFS, InterleavedZeroBubble, ZBVZeroBubble, DualPipeV, "
     "PipelineScheduleSingle or PipelineScheduleMulti"},
    {"microbatch_divides", P "pipeline_parallel_microbatch_size training.local_batch_size", microbatch_divides,
     "must divide the local batch"},
    {"profile_cycle_fits", "profiler.profile_freq profiler.profiler_warmup profiler.profiler_active",
     profile_cycle_fits, "a cycle must hold its warm-up and its traced steps"},
};
#undef P
#undef C

/* "--a.b 3 (flag), --c 1 (default)" */
static ct_status add_settings(ct_tree *tree, const cti_settings *settings, const char *paths, cti_str *out, ct_err *err)
{
    ct_arena *arena = ct_tree_arena(tree);
    bool is_first = true;
    for (const char *at = paths; *at != '\0';) {
        const size_t n = strcspn(at, " ");
        const char *path = ct_arena_printf(arena, err, "%.*s", (int)n, at);
        if (path == NULL) {
            return CT_ERR_MEMORY;
        }
        const cti_setting *s = cti_settings_find(settings, path);
        if (s != NULL) {
            const char *flag = cti_flag_name(arena, s->path, err);
            const char *value = ct_field_text(s->field, s->component->values, arena, err);
            if (flag == NULL || value == NULL) {
                return CT_ERR_MEMORY;
            }
            cti_str_printf(out, "%s%s %s (%s)", is_first ? "" : ", ", flag, value, cti_setting_source(s));
            is_first = false;
        }
        at += n + (at[n] == ' ');
    }
    return cti_str_check(out, err);
}

/* Whether the row speaks of a setting whose value was refused already. */
static bool names_refused(const cti_settings *settings, const char *paths, const cti_problems *problems)
{
    for (const char *at = paths; *at != '\0';) {
        const size_t n = strcspn(at, " ");
        char path[128];
        CT_ASSERT(n < sizeof path); /* our own rows */
        memcpy(path, at, n);
        path[n] = '\0';
        const cti_setting *s = cti_settings_find(settings, path);
        for (int i = 0; s != NULL && i < problems->n_refused; i++) {
            if (problems->refused[i] == s->field) {
                return true;
            }
        }
        at += n + (at[n] == ' ');
    }
    return false;
}

static ct_status run_rows(ct_tree *tree, run *r, const check *rows, size_t n_rows, const cti_settings *settings,
                          cti_problems *problems, cti_str *line, ct_err *err)
{
    for (size_t i = 0; i < n_rows; i++) {
        cti_str_reset(r->detail);
        if (rows[i].holds(r) || names_refused(settings, rows[i].settings, problems)) {
            continue;
        }
        cti_str_reset(line);
        CT_TRY(add_settings(tree, settings, rows[i].settings, line, err));
        CT_TRY(cti_str_check(r->detail, err));
        cti_problem_add(problems, "%s: %s%s%s%s", cti_str_text(line), rows[i].sentence, r->detail->len > 0 ? " (" : "",
                        cti_str_text(r->detail), r->detail->len > 0 ? ")" : "");
    }
    return CT_OK;
}

/* The checks that classes bring along (plug-ins' components too). */
static ct_status run_class_checks(ct_tree *tree, const ct_component *component, cti_problems *problems, ct_err *err)
{
    if (component->cls->check != NULL) {
        ct_err why = {0};
        const ct_status st = component->cls->check(component, &why);
        if (st == CT_ERR_MEMORY) {
            return CT_FAIL(err, st, "%s", why.message);
        }
        if (st != CT_OK) {
            const char *fqn = ct_component_fqn(tree, component, err);
            if (fqn == NULL) {
                return CT_ERR_MEMORY;
            }
            cti_problem_add(problems, "%s: %s", fqn[0] != '\0' ? fqn : component->cls->name, why.message);
        }
    }
    for (int32_t i = 0; i < component->n_children; i++) {
        CT_TRY(run_class_checks(tree, component->children[i], problems, err));
    }
    return CT_OK;
}

const char *cti_check_missing(const char *path)
{
    for (size_t i = 0; i < sizeof not_yet / sizeof not_yet[0]; i++) {
        if (cti_str_eq(not_yet[i].settings, path)) {
            return not_yet[i].sentence;
        }
    }
    for (size_t i = 0; i < sizeof not_trained / sizeof not_trained[0]; i++) {
        if (cti_str_eq(not_trained[i].settings, path)) {
            return not_trained[i].sentence;
        }
    }
    return NULL;
}

ct_status cti_checks_run(ct_tree *tree, ct_component *root, int64_t world_size, bool plan_only, cti_problems *problems,
                         ct_err *err)
{
    cti_str detail = {.alloc = problems->text.alloc};
    cti_str line = {.alloc = problems->text.alloc};
    cti_settings settings;
    CT_TRY(cti_settings_list(tree, root, &settings, err));
    run r = {.root = root,
             .world = world_size,
             .training = CTI_SECTION(root, "training", training),
             .parallelism = CTI_SECTION(root, "parallelism", parallelism),
             .checkpoint = CTI_SECTION(root, "checkpoint", checkpoint),
             .dataloader = CTI_SECTION(root, "dataloader", dataloader),
             .validator = CTI_SECTION(root, "validator", validator),
             .validator_data = CTI_SECTION(root, "validator.dataloader", dataloader),
             .optimizer = CTI_SECTION(root, "optimizer", optimizer),
             .profiler = CTI_SECTION(root, "profiler", profiler),
             .detail = &detail};
    cti_degrees_of(root, world_size, &r.degrees);
    ct_status st = CT_OK;
    if (!plan_only) {
        st = run_rows(tree, &r, not_trained, sizeof not_trained / sizeof not_trained[0], &settings, problems, &line, err);
    }
    if (st == CT_OK) {
        st = run_rows(tree, &r, not_yet, sizeof not_yet / sizeof not_yet[0], &settings, problems, &line, err);
    }
    if (st == CT_OK) {
        st = run_rows(tree, &r, checks, sizeof checks / sizeof checks[0], &settings, problems, &line, err);
    }
    if (st == CT_OK) {
        st = run_class_checks(tree, root, problems, err);
    }
    cti_str_deinit(&detail);
    cti_str_deinit(&line);
    CT_TRY(st);
    return cti_str_check(&problems->text, err);
}

ct_status cti_config_no_effect(ct_tree *tree, ct_component *root, const char **out_flags, ct_err *err)
{
    ct_arena *arena = ct_tree_arena(tree);
    cti_settings settings;
    CT_TRY(cti_settings_list(tree, root, &settings, err));
    const char *text = "";
    for (size_t i = 0; i < settings.n; i++) {
        const cti_setting *s = &settings.items[i];
        const ct_source source = s->component->sources[s->field - s->component->cls->fields];
        if ((s->field->flags & CTI_SET_NO_EFFECT) == 0 || source <= CT_SOURCE_REGISTRY) {
            continue;
        }
        const char *flag = cti_flag_name(arena, s->path, err);
        text = flag != NULL ? ct_arena_printf(arena, err, "%s%s%s", text, text[0] != '\0' ? ", " : "", flag) : NULL;
        if (text == NULL) {
            return CT_ERR_MEMORY;
        }
    }
    *out_flags = text;
    return CT_OK;
}
