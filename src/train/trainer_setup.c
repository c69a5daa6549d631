/* SPDX-License-Identifier: Apache-2.0 */
/* Settings -> mesh, model, device, data. The order of what is logged is that of upstream's trainer. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/base.h"
#include "model/model.h"
#include "train/planner.h"
#include "train/run_shape.h"
#include "train/trainer.h"

#define GIB (1024.0 * 1024.0 * 1024.0)

static ct_status print_config(cti_trainer *t, ct_err *err)
{
    const cti_debug_config *debug = CTI_SECTION(t->root, "debug", debug);
    const cti_trainer_config *root = ct_component_values(t->root);
    if (!debug->print_config && debug->save_config_file == NULL) {
        return CT_OK;
    }
    json_t *json = NULL;
    char *text = NULL, *path = NULL;
    cti_str yaml = {.alloc = t->alloc};
    ct_status st;
    CT_TRY_GOTO(st, cti_run_config_json(t->o.run, &json, err), out);
    if (debug->print_config) {
        CT_TRY_GOTO(st, cti_json_dump(t->alloc, json, 2, &text, err), out);
        CT_INFO(t->log, "Running with configs: %s", text);
    }
    if (debug->save_config_file != NULL) {
        path = cti_path_join(t->alloc, root->dump_folder, debug->save_config_file, err);
        st = path == NULL ? CT_ERR_MEMORY : CT_OK;
        if (st == CT_OK && t->mesh.rank == 0) {
            char *slash = strrchr(path, '/');
            if (slash != NULL && slash != path) {
                *slash = '\0';
                CT_TRY_GOTO(st, cti_make_dirs(path, err), out);
                *slash = '/';
            }
            if (cti_ends_with(path, ".yaml") || cti_ends_with(path, ".yml")) {
                CT_TRY_GOTO(st, cti_run_config_yaml(t->o.run, &yaml, err), out);
                CT_TRY_GOTO(st, cti_file_write_atomic(path, yaml.data, yaml.len, err), out);
            } else {
                CT_TRY_GOTO(st, cti_json_write_file(path, json, 2, err), out);
            }
        }
        CT_INFO(t->log, "Saved job configs to %s", path != NULL ? path : "");
    }
out:
    json_decref(json);
    cti_str_deinit(&yaml);
    ct_alloc_free(t->alloc, text);
    ct_alloc_free(t->alloc, path);
    return st;
}

static ct_status apply_overrides(cti_trainer *t, ct_err *err)
{
    cti_overrides_applied applied;
    CT_TRY(cti_run_config_override(t->alloc, t->o.registry, t->o.plugins, t->o.run, t->mesh.world_size, false, &applied, err));
    for (size_t i = 0; i < applied.n_lines; i++) {
        CT_INFO(t->log, "%s", applied.lines[i]);
    }
    if (applied.warning != NULL) {
        CT_WARN(t->log, "%s", applied.warning);
    }
    return CT_OK;
}

/* "'betas': (0.9, 0.95), 'eps': 1e-08": what the optimizer of a group is told beside rate and decay. */
static void group_numbers(const ct_optim_group *g, char *out, size_t size)
{
    char a[32], b[32], c[32], d[32];
    const char *nesterov = g->is_nesterov ? "True" : "False";
    switch (g->kind) {
    case CT_OPTIM_ADAMW:
    case CT_OPTIM_ADAM:
        (void)snprintf(out, size, "'betas': (%s, %s), 'eps': %s", cti_format_f64(g->beta1, a), cti_format_f64(g->beta2, b), cti_format_f64(g->eps, c));
        break;
    case CT_OPTIM_SGD:
        (void)snprintf(out, size, "'momentum': %s, 'nesterov': %s", cti_format_f64(g->momentum, a), nesterov);
        break;
    case CT_OPTIM_PLUGIN: /* it may use any of these */
        (void)snprintf(out, size, "'betas': (%s, %s), 'eps': %s, 'momentum': %s, 'nesterov': %s", cti_format_f64(g->beta1, a), cti_format_f64(g->beta2, b),
                       cti_format_f64(g->eps, c), cti_format_f64(g->momentum, d), nesterov);
        break;
    case CT_OPTIM_MUON:
        (void)snprintf(out, size, "'momentum': %s, 'nesterov': %s, 'ns_coefficients': (%s, %s, %s), 'ns_steps': %" PRId64 ", 'adjust_lr_fn': '%s'",
                       cti_format_f64(g->momentum, a), nesterov, cti_format_f64(g->ns_coefficients[0], b),
                       cti_format_f64(g->ns_coefficients[1], c), cti_format_f64(g->ns_coefficients[2], d), g->ns_steps, ct_muon_adjust_name(g->adjust));
        break;
    }
}

/* Each group with the number of parameters that it takes. */
static ct_status log_optimizer(const cti_trainer *t, ct_err *err)
{
    const ct_optim_spec spec = {.groups = t->groups, .n_groups = t->n_groups};
    int32_t *of = CT_NEW_ARRAY(t->alloc, int32_t, t->step->build.n_params + t->n_groups, err);
    if (of == NULL) {
        return CT_ERR_MEMORY;
    }
    int32_t *n = of + t->step->build.n_params;
    const ct_status st = cti_groups_of(t->alloc, &t->step->build, &spec, of, n, err);
    for (int32_t i = 0; i < t->n_groups && st == CT_OK; i++) {
        char lr[32], wd[32], numbers[256];
        const ct_optim_group *g = &t->groups[i];
        group_numbers(g, numbers, sizeof numbers);
        CT_INFO(t->log, "Optimizer %s: %d params [%s] {'lr': %s, %s, 'weight_decay': %s}", g->plugin != NULL ? g->plugin->name : ct_optim_name(g->kind), n[i], g->pattern, cti_format_f64(g->lr, lr),
                numbers, cti_format_f64(g->weight_decay, wd));
    }
    ct_alloc_free(t->alloc, of);
    return st;
}

static void make_schedule(cti_trainer *t, bool is_told)
{
    const cti_lr_scheduler_config *c = CTI_SECTION(t->root, "lr_scheduler", lr_scheduler);
    const int64_t total = c->total_steps.is_set ? c->total_steps.value : cti_max_i64(1, t->last_step);
    const double ratio = c->decay_ratio.is_set ? c->decay_ratio.value : -1.0;
    const ct_lr_decay decay = strcmp(c->decay_type, "linear") == 0 ? CT_LR_LINEAR
                              : strcmp(c->decay_type, "sqrt") == 0 ? CT_LR_SQRT
                                                                   : CT_LR_COSINE;
    t->schedule = ct_lr_schedule_make(total, c->warmup_steps, ratio, decay, c->min_lr_factor);
    if (t->schedule.is_warmup_cut && is_told) {
        CT_WARN(t->log, "Warmup steps (%" PRId64 ") exceed total steps (%" PRId64 "). Adjusting warmup steps to %" PRId64 ".",
                c->warmup_steps, total, total);
    }
    if (t->schedule.is_decay_cut && is_told) {
        CT_WARN(t->log, "Warmup (%" PRId64 ") + decay (%" PRId64 ") steps exceed total steps (%" PRId64
                        "). Adjusting decay steps to %" PRId64 ".",
                t->schedule.warmup_steps, ct_lr_schedule_make(total, 0, ratio, decay, 0.0).decay_steps, total,
                t->schedule.decay_steps);
    }
}

ct_status cti_trainer_plan_length(cti_trainer *t, int64_t epoch_tokens, ct_err *err)
{
    const int64_t before = t->last_step;
    if (epoch_tokens > 0 || t->budget.step_tokens == 0) {
        CT_TRY(cti_budget_make(t->o.run, t->global_batch * t->seq_len, epoch_tokens, &t->budget, err));
    }
    t->last_step = cti_budget_last_step(&t->budget, t->current_step, t->tokens_seen);
    if (t->last_step != before) {
        make_schedule(t, t->last_step > 0);
    }
    return CT_OK;
}

/* A run that the device has no room for: the numbers, and what would make it fit. */
static ct_status refuse_too_large(cti_trainer *t, const ct_backend *backend, const ct_err *why, ct_err *err)
{
    const cti_plan_request request = {.run = t->o.run, .n_ranks = t->mesh.world_size, .rank = t->mesh.rank, .backend = backend,
                                      .facts = &t->facts, .compute_dtype = t->compute_dtype};
    cti_run_estimate *e = NULL;
    if (cti_run_estimate_create(t->alloc, &request, &e, NULL) != CT_OK || e->fits) {
        cti_run_estimate_destroy(&e);
        return CT_FAIL(err, CT_ERR_MEMORY, "%s", why->message);
    }
    char need[32], have[32];
    cti_str ways = {.alloc = t->alloc};
    for (int i = 0; i < e->n_advice; i++) {
        cti_str_printf(&ways, "%s%s", i == 0 ? "; it would fit with " : ", or ", e->advice[i]);
    }
    const ct_status st = CT_FAIL(err, CT_ERR_USAGE, "the run needs %s on each rank, the device has %s%s (`ctitan plan` shows where it goes)",
                                 cti_format_bytes(e->total_bytes, need), cti_format_bytes(e->memory_bytes, have), cti_str_text(&ways));
    cti_str_deinit(&ways);
    cti_run_estimate_destroy(&e);
    return st;
}

/* All ranks take what rank 0 finds. */
static ct_status fit_budget(cti_trainer *t, const ct_backend *backend, int64_t limit_bytes, double *out_budget, ct_err *err)
{
    const cti_plan_request request = {.run = t->o.run, .n_ranks = t->mesh.world_size, .backend = backend, .facts = &t->facts, .compute_dtype = t->compute_dtype};
    CT_TRY(cti_fit_budget(t->alloc, &request, limit_bytes, out_budget, err));
    return ct_comm_broadcast(t->world, out_budget, 1, CT_DTYPE_F64, 0, NULL, err);
}

static ct_status build_model(cti_trainer *t, ct_err *err)
{
    const ct_component *spec = ct_component_find(t->root, "model_spec");
    const cti_model_spec_config *names = ct_component_values(spec);
    CT_INFO(t->log, "Building %s %s", names->name, names->flavor);
    CT_TRY(cti_trainer_open_device(t, err));
    CT_TRY(cti_trainer_open_axes(t, err));
    const ct_backend *backend = t->backend;
    cti_run_shape shape;
    CT_TRY(cti_run_shape_make(t->o.run, &t->mesh, t->compute_dtype, &shape, err));
    if (shape.memory_limit_bytes > 0) {
        CT_TRY(fit_budget(t, backend, shape.memory_limit_bytes, &shape.step.recompute.budget, err));
    }
    t->local_batch = shape.local_batch;
    t->global_batch = shape.global_batch;
    t->accumulation = shape.accumulation;
    t->seq_len = shape.seq_len;
    t->groups = shape.step.optim.groups;
    t->n_groups = shape.step.optim.n_groups;
    cti_model_counts counts;
    CT_TRY(cti_model_count(t->alloc, spec, t->seq_len, &counts, err));
    t->n_params = counts.n_params;
    char text[32];
    const cti_metrics_config *metrics = CTI_SECTION(t->root, "metrics", metrics);
    const bool color = !metrics->disable_color_printing && !t->o.is_plain;
    CT_INFO(t->log, "%sModel %s %s %ssize: %s total parameters%s", color ? "\033[34m" : "", names->name, names->flavor,
            color ? "\033[31m" : "", cti_format_thousands(counts.n_params, text), color ? "\033[39m" : "");
    if (t->mesh.world_size == 1) {
        cti_trainer_log_mesh(t);
    }
    const ct_component *ac = ct_component_find(t->root, "activation_checkpoint");
    if (shape.step.recompute.mode != CT_RECOMPUTE_NONE) {
        CT_INFO(t->log, "Applied %s activation checkpointing to the model", ac->cls->name);
    }
    if (shape.step.recompute.mode == CT_RECOMPUTE_BUDGET) {
        CT_INFO(t->log, "Selected %g budget option", shape.step.recompute.budget);
    }
    CT_TRY(cti_step_create(t->alloc, spec, &shape.step, &t->step, err));
    if (t->mesh.degree[CT_AXIS_TP] > 1) {
        CT_INFO(t->log, "Applied Tensor Parallelism to the model");
    }
    CT_INFO(t->log, "Applied %s to the model", t->mesh.degree[CT_AXIS_DP_REPLICATE] > 1 ? "HSDP" : "FSDP");
    CT_TRY(cti_validator_build(t, &shape.step, err));
    ct_value_id keep[CTI_STEP_KEEPS];
    cti_step_keep(t->step, keep);
    const cti_eval *eval = t->validator.eval;
    const ct_plan_item items[2] = {{t->step->graph, keep, CTI_STEP_KEEPS},
                                   {eval != NULL ? eval->graph : NULL, eval != NULL ? &eval->loss : NULL, 1}};
    ct_err why = {0};
    t->host_bytes = cti_rss_bytes(); /* without the block */
    const ct_status st = cti_engine_create_on(t->alloc, backend, t->device, items, eval != NULL ? 2 : 1, t->axis, &t->engine, &why);
    if (st != CT_OK) {
        return st == CT_ERR_MEMORY ? refuse_too_large(t, backend, &why, err) : CT_FAIL(err, st, "%s", why.message);
    }
    cti_metrics_start(&t->metrics, &t->engine->facts, t->compute_dtype, counts.flops_per_token,
                      backend->device_count != NULL ? t->engine->plan->total_bytes : 0, color);
    return cti_engine_init_consts(t->engine, &t->step->build, err);
}

static ct_status init_weights(cti_trainer *t, ct_err *err)
{
    const cti_debug_config *debug = CTI_SECTION(t->root, "debug", debug);
    int64_t seed = debug->seed.value;
    if (!debug->seed.is_set) {
        if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) {
            seed = cti_wall_ms();
        }
        seed &= 0x7fffffff;
        CT_TRY(ct_comm_broadcast(t->world, &seed, 1, CT_DTYPE_I64, 0, NULL, err));
    }
    t->seed = (uint64_t)seed;
    return cti_engine_init_weights(t->engine, t->step->layout, &t->step->build, t->mesh.coord[CT_AXIS_DP_SHARD], t->seed,
                                   err);
}

static void log_device(const cti_trainer *t)
{
    const ct_device_facts *f = &t->engine->facts;
    if (t->metrics.peak_flops > 0.0) {
        CT_INFO(t->log, "Peak FLOPS used for computing MFU: %.3e (%s, %s, dense)", t->metrics.peak_flops, f->name,
                ct_dtype_name(t->compute_dtype));
    } else {
        CT_INFO(t->log, "Peak FLOPS of %s in %s are not known: no MFU", f->name, ct_dtype_name(t->compute_dtype));
    }
    const double bytes = (double)t->engine->plan->total_bytes;
    CT_INFO(t->log, "%s memory usage for model: %.2fGiB(%.2f%%)", f->type, bytes / GIB,
            f->memory_bytes > 0 ? 100.0 * bytes / (double)f->memory_bytes : 0.0);
    cti_log_plan(t->log, t->engine->plan);
}

static ct_status open_tokenizer(cti_trainer *t, ct_err *err)
{
    const cti_trainer_config *root = ct_component_values(t->root);
    const cti_tokenizer_config *c = CTI_SECTION(t->root, "tokenizer", tokenizer);
    char *folder = root->hf_assets_path[0] != '\0' ? ct_alloc_strdup(t->alloc, root->hf_assets_path, err)
                                                   : cti_path_join(t->alloc, t->o.share_dir, "tokenizer", err);
    if (folder == NULL) {
        return CT_ERR_MEMORY;
    }
    t->text.flags = CT_ENCODE_DOCUMENT | (strcmp(c->special_text, "match") == 0 ? CT_ENCODE_MATCH_SPECIAL : 0u);
    ct_status st = ct_tokenizer_open(t->alloc, folder, NULL, &t->tokenizer, err);
    char *path = st == CT_OK ? cti_path_join(t->alloc, folder, "tokenizer.json", err) : NULL;
    if (st == CT_OK) {
        CT_INFO(t->log, "Loading tokenizer from %s", path != NULL && cti_path_is_file(path) ? path : folder);
    }
    ct_alloc_free(t->alloc, path);
    ct_alloc_free(t->alloc, folder);
    CT_TRY(st);
    if (ct_tokenizer_warnings(t->tokenizer)[0] != '\0') {
        CT_WARN(t->log, "%s", ct_tokenizer_warnings(t->tokenizer));
    }
    const cti_decoder_config *d = ct_component_values(ct_component_find(t->root, "model_spec.model"));
    if (ct_tokenizer_vocab_size(t->tokenizer) > d->vocab_size) {
        return CT_FAIL(err, CT_ERR_USAGE, "the tokenizer has %d ids, the model's vocabulary %" PRId64 " rows: take a model with at least as many "
                       "rows (--config), or a tokenizer that fits (--hf-assets-path; ctitan tokenizer train FILES --vocab-size %" PRId64
                       " --output DIR makes one)", ct_tokenizer_vocab_size(t->tokenizer), d->vocab_size, d->vocab_size);
    }
    t->text.tokenizer = t->tokenizer;
    CT_TRY(ct_text_processor_hash(t->alloc, &t->text, &t->text_hash, err));
    t->encode_hash = t->text_hash;
    return CT_OK;
}

static ct_status make_batches(cti_trainer *t, ct_err *err)
{
    const int64_t n = t->local_batch * t->seq_len;
    t->batches = CT_NEW_ARRAY(t->alloc, ct_batch, t->accumulation, err);
    t->actions = CT_NEW_ARRAY(t->alloc, cti_action, 2 * t->accumulation + 1, err);
    t->batch_room = CT_NEW_ARRAY(t->alloc, int32_t, t->accumulation * n * 7, err);
    if (t->batches == NULL || t->actions == NULL || t->batch_room == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int64_t m = 0; m < t->accumulation; m++) {
        int32_t *room = t->batch_room + m * n * 7;
        t->batches[m] = (ct_batch){.tokens = room,
                                   .labels = room + n,
                                   .positions = room + 2 * n,
                                   .segments = room + 3 * n,
                                   .segments_cap = n};
    }
    cti_step_actions((int32_t)t->accumulation, t->actions);
    return CT_OK;
}

/* What the host holds beside the device's block: the program, its libraries and the graph, as measured before the block was taken, and what
 * tokenizer and data added; batches; what comes later. Of a mapped corpus any part may be in memory, which the system takes back. */
static void log_host_memory(const cti_trainer *t)
{
    char program[32], batches[32], corpus[32], all[32];
    const int64_t beside = t->host_bytes + cti_trainer_loader_bytes(t) + CTI_HOST_REST_BYTES + (t->mesh.world_size > 1 ? CTI_HOST_RANKS_BYTES : 0);
    CT_INFO(t->log, "Host memory beside it: program, graph and tokenizer %s, batches %s, corpus %s (read piece by piece); the process takes some %s",
            cti_format_bytes(t->host_bytes, program), cti_format_bytes(cti_trainer_loader_bytes(t), batches),
            cti_format_bytes(ct_sources_size_bytes(&t->sources), corpus), cti_format_bytes(t->engine->plan->total_bytes + beside, all));
}

static ct_status setup(cti_trainer *t, ct_err *err)
{
    const cti_trainer_config *root = ct_component_values(t->root);
    const char *no_effect;
    CT_TRY(cti_config_no_effect(t->o.run->tree, t->root, &no_effect, err));
    if (no_effect[0] != '\0') {
        CT_INFO(t->log, "Accepted, without effect here: %s", no_effect);
    }
    cti_observer_open(t);
    const int64_t start = CTI_PHASE_BEGIN(t, "torch_distributed_init");
    const ct_status st = cti_trainer_open_ranks(t, err);
    CTI_PHASE_END(t, "torch_distributed_init", start, st == CT_OK);
    CT_TRY(st);
    CT_TRY(print_config(t, err));
    CT_TRY(apply_overrides(t, err));
    /* Sections are read from here on: overrides may have put others in their place. */
    const cti_checkpoint_config *checkpoint = CTI_SECTION(t->root, "checkpoint", checkpoint);
    const cti_debug_config *debug = CTI_SECTION(t->root, "debug", debug);
    CT_TRY(cti_trainer_check_same(t, err));
    const int64_t build_start = CTI_PHASE_BEGIN(t, "model_parallelism_init");
    const ct_status built = build_model(t, err);
    CTI_PHASE_END(t, "model_parallelism_init", build_start, built == CT_OK);
    CT_TRY(built);
    log_device(t);
    CT_TRY(log_optimizer(t, err));
    CT_TRY(cti_trainer_plan_length(t, 0, err));
    if (debug->print_shards) {
        cti_log_shards(t->log, t);
    }
    const int64_t built_bytes = cti_rss_bytes();
    CT_TRY(open_tokenizer(t, err));
    CT_TRY(cti_trainer_open_sources(t, err));
    CT_TRY(cti_validator_open(t, err));
    int64_t epoch_tokens;
    CT_TRY(cti_trainer_count_epoch(t, &epoch_tokens, err));
    CT_TRY(cti_trainer_plan_length(t, epoch_tokens, err));
    CT_TRY(make_batches(t, err));
    t->host_bytes += cti_max_i64(0, cti_rss_bytes() - built_bytes);
    CT_TRY(init_weights(t, err)); /* which takes time: what can be refused has been by now */
    log_host_memory(t);
    if (checkpoint->enable) {
        CT_INFO(t->log, "Checkpointing active. Checkpoints will be loaded from and saved to %s/%s", root->dump_folder,
                checkpoint->folder);
    }
    CT_INFO(t->log, "Trainer is initialized with local batch size %" PRId64 ", global batch size %" PRId64
                    ", gradient accumulation steps %" PRId64 ", sequence length %" PRId64 ", total steps %" PRId64
                    " (warmup %" PRId64 ")",
            t->local_batch, t->global_batch, t->accumulation, t->seq_len, t->last_step, t->schedule.warmup_steps);
    if (t->budget.tokens > 0) {
        char text[128];
        CT_INFO(t->log, "Training budget: %s", cti_budget_text(&t->budget, text));
    }
    return CT_OK;
}

ct_status cti_trainer_open(const cti_trainer_options *options, cti_trainer **out_trainer, ct_err *err)
{
    cti_trainer *t = CT_NEW(options->alloc, cti_trainer, err);
    if (t == NULL) {
        return CT_ERR_MEMORY;
    }
    t->o = *options;
    t->folder_lock = -1;
    t->opened_ns = cti_now_ns();
    t->alloc = options->alloc;
    t->log = options->log;
    t->root = options->run->root;
    const ct_status st = setup(t, err);
    if (st != CT_OK) {
        cti_trainer_close(&t);
        return st;
    }
    *out_trainer = t;
    return CT_OK;
}

void cti_trainer_close(cti_trainer **trainer)
{
    cti_trainer *t = *trainer;
    if (t == NULL) {
        return;
    }
    const int64_t start = CTI_PHASE_BEGIN(t, "torch_distributed_teardown");
    cti_validator_close(t);
    ct_loader_destroy(&t->loader);
    ct_sources_close(&t->sources);
    ct_chat_destroy(&t->chat);
    ct_tokenizer_destroy(&t->tokenizer);
    ct_alloc_free(t->alloc, t->batches);
    ct_alloc_free(t->alloc, t->actions);
    ct_alloc_free(t->alloc, t->batch_room);
    cti_engine_destroy(&t->engine);
    cti_step_destroy(&t->step);
    cti_trainer_close_ranks(t);
    CTI_PHASE_END(t, "torch_distributed_teardown", start, true);
    cti_observer_close(t);
    if (t->folder_lock >= 0) {
        (void)close(t->folder_lock);
    }
    ct_alloc_free(t->alloc, t);
    *trainer = NULL;
}
