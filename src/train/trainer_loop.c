/* SPDX-License-Identifier: Apache-2.0 */
/* The step loop. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "config/config.h"
#include "train/trainer.h"

static ct_status write_input(cti_trainer *t, ct_value_id value, const void *host, ct_err *err)
{
    return ct_runtime_write(t->engine->runtime, 0, value, host,
                            ct_value_size_bytes(ct_graph_value_c(t->step->graph, value)), err);
}

/* dp_shard varies faster than dp_replicate in the order of data ranks. */
ct_status cti_data_gather(cti_trainer *t, const int64_t *mine, int64_t *out, int64_t n, ct_err *err)
{
    const int64_t shard = t->mesh.degree[CT_AXIS_DP_SHARD], replicate = t->mesh.degree[CT_AXIS_DP_REPLICATE];
    int64_t *line = out + t->mesh.coord[CT_AXIS_DP_REPLICATE] * shard * n; /* in place for the second gather */
    if (shard > 1) {
        CT_TRY(ct_comm_all_gather(t->data_axis[CT_AXIS_DP_SHARD], mine, line, n, CT_DTYPE_I64, NULL, err));
    } else {
        memcpy(line, mine, (size_t)n * sizeof *mine);
    }
    return replicate > 1 ? ct_comm_all_gather(t->data_axis[CT_AXIS_DP_REPLICATE], line, out, shard * n, CT_DTYPE_I64, NULL, err) : CT_OK;
}

/* All micro-batches of the step, and the number of labels that count over all ranks. CT_END_OF_DATA where any rank has no more. */
static ct_status fetch(cti_trainer *t, ct_err *err)
{
    const int64_t start = cti_now_ns();
    int64_t counts[4] = {0, 0, 0, 0}; /* valid labels; ranks at the end; halves of the hash, whose sums do not overflow */
    uint64_t hash = 0;
    for (int64_t m = 0; m < t->accumulation; m++) {
        const ct_status st = ct_loader_next(t->loader, &t->batches[m], err);
        if (st == CT_END_OF_DATA) {
            counts[1] = 1;
            break;
        }
        CT_TRY(st);
        counts[0] += t->batches[m].n_valid;
        hash += t->batches[m].hash * (2 * (uint64_t)m + 1); /* the order of micro-batches counts */
        if (t->batches[m].epoch > 0 && !t->has_read_all) {
            t->has_read_all = true;
            cti_trainer_log_data(t, "first pass");
        }
    }
    t->metrics.fetch_ns += cti_now_ns() - start;
    t->metrics.fetches += t->accumulation;
    t->local_valid = counts[0];
    counts[2] = (int64_t)(hash >> 32);
    counts[3] = (int64_t)(hash & UINT32_MAX);
    CT_TRY(ct_comm_all_reduce(t->world, counts, counts, 4, CT_DTYPE_I64, CT_REDUCE_SUM, NULL, err));
    if (counts[1] > 0) {
        return CT_END_OF_DATA;
    }
    const int64_t copies = t->mesh.world_size / ct_mesh_dp_degree(&t->mesh); /* ranks that share their rows, as those of tp do */
    for (int i = 0; i < 4; i++) {
        counts[i] /= copies;
    }
    if (counts[0] == 0) {
        return CT_FAIL(err, CT_ERR_DATA, "step %" PRId64 ": no label of the whole batch counts", t->current_step + 1);
    }
    t->global_valid = counts[0];
    t->batch_hash = ((uint64_t)counts[2] << 32) + (uint64_t)counts[3];
    return CT_OK;
}

static ct_status feed_micro_batch(cti_trainer *t, int32_t index, float inv_tokens, ct_err *err)
{
    const ct_batch *b = &t->batches[index];
    const int32_t n_segments = (int32_t)b->n_segments, first = index == 0;
    CT_TRY(write_input(t, t->step->build.tokens, b->tokens, err));
    CT_TRY(write_input(t, t->step->build.labels, b->labels, err));
    CT_TRY(write_input(t, t->step->build.positions, b->positions, err));
    CT_TRY(write_input(t, t->step->build.segments, b->segments, err));
    CT_TRY(write_input(t, t->step->build.n_segments, &n_segments, err));
    CT_TRY(write_input(t, t->step->build.inv_tokens, &inv_tokens, err));
    return t->step->optim.first != CT_NO_VALUE ? write_input(t, t->step->optim.first, &first, err) : CT_OK;
}

static ct_status feed_update(cti_trainer *t, int64_t step, ct_err *err)
{
    double lr[CTI_MAX_PARAM_GROUPS];
    CT_ASSERT(t->n_groups <= CTI_MAX_PARAM_GROUPS);
    const double factor = ct_lr_factor(&t->schedule, step - 1);
    for (int32_t g = 0; g < t->n_groups; g++) {
        lr[g] = t->groups[g].lr * factor;
    }
    CT_TRY(write_input(t, t->step->optim.lr, lr, err));
    return write_input(t, t->step->optim.step, &step, err);
}

static ct_status run_action(cti_trainer *t, const cti_action *a, int64_t step, ct_err *err)
{
    if (a->program == CT_PROGRAM_FORWARD) {
        const int64_t start = CTI_PHASE_BEGIN(t, "post_dataloading_process");
        const ct_status st = feed_micro_batch(t, a->micro_batch, (float)(1.0 / (double)t->global_valid), err);
        CTI_PHASE_END(t, "post_dataloading_process", start, st == CT_OK);
        CT_TRY(st);
    } else if (a->program == CT_PROGRAM_OPTIMIZER) {
        CT_TRY(feed_update(t, step, err));
    }
    return cti_observer_run(t, a->program, a->micro_batch, err);
}

/* All actions but the last, then the last: the optimizer. */
static ct_status run_actions(cti_trainer *t, int64_t step, ct_err *err)
{
    const int32_t n_actions = (int32_t)(2 * t->accumulation + 1);
    ct_status st = CT_OK;
    int64_t start = CTI_PHASE_BEGIN(t, "fwd_bwd");
    for (int32_t i = 0; i < n_actions - 1 && st == CT_OK; i++) {
        st = run_action(t, &t->actions[i], step, err);
    }
    CTI_PHASE_END(t, "fwd_bwd", start, st == CT_OK);
    CT_TRY(st);
    start = CTI_PHASE_BEGIN(t, "optim");
    st = run_action(t, &t->actions[n_actions - 1], step, err);
    CTI_PHASE_END(t, "optim", start, st == CT_OK);
    return st;
}

ct_status cti_trainer_step(cti_trainer *t, double *out_loss, double *out_norm, ct_err *err)
{
    const int64_t step = t->current_step + 1;
    ct_comm_note(t->world, step, "data");
    const int64_t start = CTI_PHASE_BEGIN(t, "fetching_batch");
    const ct_status st = fetch(t, err);
    CTI_PHASE_END(t, "fetching_batch", start, st == CT_OK || st == CT_END_OF_DATA);
    CT_TRY(st);
    ct_comm_note(t->world, step, "step");
    cti_trace_scalar(cti_observer_trace(t), CTI_HERE, "local_valid_tokens", (double)t->local_valid);
    CT_TRY(run_actions(t, step, err));
    int32_t go;
    CT_TRY(ct_runtime_read(t->engine->runtime, 0, t->step->optim.loss, out_loss, sizeof *out_loss, err));
    CT_TRY(ct_runtime_read(t->engine->runtime, 0, t->step->optim.norm, out_norm, sizeof *out_norm, err));
    CT_TRY(ct_runtime_read(t->engine->runtime, 0, t->step->optim.go, &go, sizeof go, err));
    *out_loss = isnan(*out_loss) ? (double)NAN : *out_loss; /* its sign says nothing, and would be printed */
    *out_norm = isnan(*out_norm) ? (double)NAN : *out_norm;
    t->n_nonfinite = go ? 0 : t->n_nonfinite + 1;
    const int64_t may_be = CTI_SECTION(t->root, "training", training)->max_nonfinite_steps;
    if (!go && t->n_nonfinite > may_be) {
        return CT_FAIL(err, CT_ERR_NUMERIC,
                       "step %" PRId64 ": loss is %g and gradient norm %g; nothing was updated, the last checkpoint holds%s%s",
                       step, *out_loss, *out_norm, may_be > 0 ? " (--training.max-nonfinite-steps were so)" : "",
                       t->n_rollbacks > 0 ? " (after --training.max-rollbacks)" : "");
    }
    if (!go) {
        CT_WARN(t->log, "step %" PRId64 ": loss is %g and gradient norm %g; nothing was updated, %" PRId64 " of at most %" PRId64 " such steps in a row",
                step, *out_loss, *out_norm, t->n_nonfinite, may_be);
    }
    t->current_step = step;
    t->tokens_seen += t->global_batch * t->seq_len;
    t->metrics.tokens += t->global_batch * t->seq_len / t->mesh.world_size; /* rates are those of one rank of all that share the rows */
    t->metrics.steps++;
    return CT_OK;
}

/* Whether another step, and a checkpoint after it, might end past the limit. */
static bool is_time_up(const cti_trainer *t)
{
    const double minutes = CTI_SECTION(t->root, "training", training)->time_limit_minutes;
    const int64_t end = cti_now_ns() + t->longest_step_ns + t->longest_save_ns + t->longest_validation_ns;
    return minutes > 0.0 && (double)(end - t->opened_ns) > minutes * 60e9;
}

/* Ranks agree at the end of a step whether any of them was asked to stop, and tell the largest of their own mean losses. */
static ct_status agree(cti_trainer *t, bool *out_stop, double *out_max_loss, ct_err *err)
{
    double local, both[2] = {(t->o.stop != NULL && *t->o.stop) || is_time_up(t), -HUGE_VAL};
    CT_TRY(ct_runtime_read(t->engine->runtime, 0, t->step->optim.local_loss, &local, sizeof local, err));
    if (t->local_valid > 0) { /* the loss is divided by the labels of all ranks */
        both[1] = t->local_valid == t->global_valid ? local : local * ((double)t->global_valid / (double)t->local_valid);
    }
    CT_TRY(ct_comm_all_reduce(t->world, both, both, 2, CT_DTYPE_F64, CT_REDUCE_MAX, NULL, err));
    *out_stop = both[0] > 0.0;
    *out_max_loss = both[1];
    return CT_OK;
}

static void log_step(cti_trainer *t, int64_t step, double loss, double max_loss, double norm)
{
    cti_step_numbers numbers;
    cti_metrics_log(&t->metrics, t->log, step, loss, norm, &numbers);
    numbers.max_loss = max_loss;
    cti_trace_scalar(cti_observer_trace(t), CTI_HERE, "global_valid_tokens", (double)t->global_valid);
    cti_observer_logged(t, step, &numbers);
}

ct_status cti_trainer_settle(cti_trainer *t, ct_status status, ct_err *err)
{
    return t->device_world != NULL ? ct_comm_settle(t->device_world, status, err) : status;
}

/* The step, and what its line and its records say. */
static ct_status step_and_tell(cti_trainer *t, cti_step_report *out, ct_err *err)
{
    const int64_t step = t->current_step + 1;
    const bool is_logged = step == 1 || step == t->loaded_step + 1 || step % CTI_SECTION(t->root, "metrics", metrics)->log_freq == 0;
    ct_status st = cti_trainer_settle(t, cti_trainer_step(t, &out->loss, &out->grad_norm, err), err);
    if (st == CT_OK) {
        const int64_t start = CTI_PHASE_BEGIN(t, "collect_dist_metrics");
        st = cti_trainer_settle(t, agree(t, &t->is_stopping, &out->max_loss, err), err);
        CTI_PHASE_END(t, "collect_dist_metrics", start, st == CT_OK);
    }
    if (st == CT_ERR_PEER || st == CT_ERR_TIMEOUT || st == CT_ERR_BACKEND) { /* which rank and which collective it says; here is when */
        ct_err_prefix(err, "step %" PRId64, step);
    }
    CT_TRY(st);
    out->was_updated = t->n_nonfinite == 0;
    if (is_logged) {
        log_step(t, step, out->loss, out->max_loss, out->grad_norm);
    }
    return CT_OK;
}

ct_status cti_trainer_start(cti_trainer *t, ct_err *err)
{
    const int64_t load_start = CTI_PHASE_BEGIN(t, "checkpoint_load");
    const ct_status st = cti_trainer_load(t, err);
    CTI_PHASE_END(t, "checkpoint_load", load_start, st == CT_OK);
    CT_TRY(st);
    t->loaded_step = t->current_step;
    CT_TRY(cti_trainer_plan_length(t, 0, err)); /* what is left of a budget in tokens */
    if (CTI_SECTION(t->root, "checkpoint", checkpoint)->create_seed_checkpoint) {
        CT_TRY(cti_trainer_save(t, 0, true, true, err));
        CT_INFO(t->log, "Created seed checkpoint");
        t->is_seed_only = true;
        return CT_OK;
    }
    if (t->loaded_step >= t->last_step) {
        char text[128];
        CT_WARN(t->log, "The checkpoint is at step %" PRId64 ", the run ends with step %" PRId64 " (%s): nothing is left to do", t->loaded_step,
                t->last_step, cti_budget_text(&t->budget, text));
    }
    cti_observer_start(t);
    if (t->loaded_step == 0 && !CTI_SECTION(t->root, "debug", debug)->seed.is_set) {
        CT_INFO(t->log, "Initial weights are drawn with seed %" PRIu64 " (--debug.seed %" PRIu64 " repeats them)", t->seed, t->seed);
    }
    CT_INFO(t->log, "Training starts at step %" PRId64, t->loaded_step + 1);
    return CT_OK;
}

bool cti_trainer_is_done(const cti_trainer *t)
{
    return t->is_seed_only || t->is_stopping || t->is_out_of_data ||
           t->current_step >= t->last_step;
}

static ct_status go_back(cti_trainer *t, const char *why, ct_err *err)
{
    const int64_t from = t->current_step;
    const ct_status st = cti_trainer_go_back(t, err);
    if (st != CT_OK) {
        ct_err_prefix(err, "%s; --training.max-rollbacks", why);
        return st;
    }
    t->n_rollbacks++;
    t->n_nonfinite = 0;
    CT_WARN(t->log, "%s: gone back to step %" PRId64 ", %" PRId64 " of at most %" PRId64 " times; the batches of %" PRId64 " steps are not read again", why,
            t->current_step, t->n_rollbacks, CTI_SECTION(t->root, "training", training)->max_rollbacks, from + 1 - t->current_step);
    double max_loss;
    return agree(t, &t->is_stopping, &max_loss, err); /* a run that only goes back can be stopped, too; what it went back to is saved */
}

ct_status cti_trainer_advance(cti_trainer *t, cti_step_report *out, ct_err *err)
{
    const cti_comm_config *comm = CTI_SECTION(t->root, "comm", comm);
    const int64_t step = t->current_step + 1, began = cti_now_ns();
    *out = (cti_step_report){0};
    cti_observer_step_begin(t, step);
    ct_err why = {0};
    ct_status st = step_and_tell(t, out, &why);
    const bool goes_back = st == CT_ERR_NUMERIC && t->n_rollbacks < CTI_SECTION(t->root, "training", training)->max_rollbacks;
    if (st != CT_OK && !goes_back) {
        *err = why;
    }
    out->spent_ns = cti_now_ns() - began;
    t->longest_step_ns = cti_max_i64(t->longest_step_ns, out->spent_ns);
    cti_observer_step_end(t, step, out->loss, st == CT_OK);
    if (st == CT_END_OF_DATA) {
        CT_WARN(t->log, "Ran out of data; last step was canceled.");
        t->is_out_of_data = true;
    }
    if (goes_back) {
        return go_back(t, why.message, err);
    }
    CT_TRY(st);
    if (CTI_SECTION(t->root, "debug", debug)->log_batch_hash) {
        CT_INFO(t->log, "Batch of step %" PRId64 ": tokens %016" PRIx64, step, t->batch_hash);
    }
    ct_comm_note(t->world, step, "saving");
    CT_TRY(cti_trainer_save(t, step, step == t->last_step, t->is_stopping, err));
    ct_comm_note(t->world, step, "testing");
    CT_TRY(t->is_stopping ? CT_OK : cti_validator_run(t, step, err));
    if (step == t->loaded_step + 1) {
        char span[32];
        CT_INFO(t->log, "Synchronizing and adjusting timeout for all ProcessGroups to %s",
                cti_format_timedelta(comm->train_timeout_seconds, span));
        CT_TRY(ct_comm_barrier(t->world, NULL, err)); /* whoever still saves or validates has the longer limit */
        ct_comm_set_timeout(t->world, cti_limit_ms(comm->train_timeout_seconds));
    }
    return CT_OK;
}

ct_status cti_trainer_finish(cti_trainer *t, ct_err *err)
{
    if (t->is_seed_only) {
        return CT_OK;
    }
    if (t->loader != NULL) {
        cti_trainer_log_data(t, "whole run");
    }
    if (t->is_stopping && t->current_step < t->last_step) {
        return CT_FAIL(err, CT_ERR_STOPPED, "stopped %s after step %" PRId64 " of %" PRId64,
                       t->o.stop != NULL && *t->o.stop ? "on request" : "by the time limit, or on another rank's request", t->current_step,
                       t->last_step);
    }
    ct_comm_note(t->world, t->current_step, "ending");
    CT_TRY(ct_comm_barrier(t->world, NULL, err));
    cti_observer_traffic(t);
    CT_INFO(t->log, "Training completed");
    return CT_OK;
}

ct_status cti_trainer_run(cti_trainer *t, ct_err *err)
{
    CT_TRY(cti_trainer_start(t, err));
    while (!cti_trainer_is_done(t)) {
        cti_step_report report;
        const ct_status st = cti_trainer_advance(t, &report, err);
        if (st != CT_OK && st != CT_END_OF_DATA) {
            return st;
        }
    }
    return cti_trainer_finish(t, err);
}
