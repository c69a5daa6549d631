/* SPDX-License-Identifier: Apache-2.0 */
/* Validation. */
#include "train/validate.h"

#include <inttypes.h>

#include "base/base.h"
#include "train/trainer.h"

ct_status cti_validator_build(cti_trainer *t, const cti_step_options *options, ct_err *err)
{
    const cti_validator_config *c = CTI_SECTION(t->root, "validator", validator);
    return c->enable ? cti_eval_create(t->alloc, ct_component_find(t->root, "model_spec"), options, t->step, &t->validator.eval, err) : CT_OK;
}

ct_status cti_validator_open(cti_trainer *t, ct_err *err)
{
    cti_validator *v = &t->validator;
    if (v->eval == NULL) {
        return CT_OK;
    }
    const cti_validator_config *c = CTI_SECTION(t->root, "validator", validator);
    const cti_dataloader_config *data = CTI_SECTION(t->root, "validator.dataloader", dataloader);
    const int64_t n = t->local_batch * t->seq_len, dp = ct_mesh_dp_degree(&t->mesh);
    CT_TRY(cti_trainer_open_data(t, data, &v->sources, &v->chat, &v->loader_options, err));
    ct_loader_options *o = &v->loader_options;
    o->streams = data->streams.is_set ? data->streams.value : dp;
    if (o->streams % dp != 0 || o->rows % o->streams != 0) {
        return CT_FAIL(err, CT_ERR_USAGE, "--validator.dataloader.streams: %" PRId64 " streams must be a multiple of the %" PRId64
                       " data ranks and divide the %" PRId64 " rows of a micro-batch", o->streams, dp, o->rows);
    }
    o->n_local_streams = o->streams / dp;
    o->first_stream = ct_mesh_dp_rank(&t->mesh) * o->n_local_streams;
    o->repeat = c->steps > 0;
    o->prefetch_batches = 0; /* training's loader has the threads */
    o->workers = 0;
    v->room = CT_NEW_ARRAY(t->alloc, int32_t, 7 * n, err);
    if (v->room == NULL) {
        return CT_ERR_MEMORY;
    }
    v->batch = (ct_batch){.tokens = v->room, .labels = v->room + n, .positions = v->room + 2 * n, .segments = v->room + 3 * n, .segments_cap = n};
    ct_loader *loader = NULL; /* what is wrong with the data is told before step 1 */
    const ct_processor processor = v->chat != NULL ? ct_processor_of_chat(v->chat) : ct_processor_of_text(&t->text);
    const ct_status st = ct_loader_create(t->alloc, v->sources.items, v->sources.n, &processor, o, &loader, err);
    ct_loader_destroy(&loader);
    if (st != CT_OK) {
        ct_err_prefix(err, "validation");
    }
    return st;
}

static ct_status write_input(cti_trainer *t, ct_value_id value, const void *host, ct_err *err)
{
    enum { EVAL_GRAPH = 1 };
    const ct_graph *g = t->validator.eval->graph;
    return value == CT_NO_VALUE ? CT_OK
                                : ct_runtime_write(t->engine->runtime, EVAL_GRAPH, value, host, ct_value_size_bytes(ct_graph_value_c(g, value)), err);
}

/* The sum of the losses of this rank's labels in one batch. */
static ct_status run_batch(cti_trainer *t, double *out_sum, ct_err *err)
{
    const cti_validator *v = &t->validator;
    const ct_build *b = &v->eval->build;
    const int32_t n_segments = (int32_t)v->batch.n_segments;
    const float one = 1.0F; /* not divided: batches may have different numbers of labels */
    CT_TRY(write_input(t, b->tokens, v->batch.tokens, err));
    CT_TRY(write_input(t, b->labels, v->batch.labels, err));
    CT_TRY(write_input(t, b->positions, v->batch.positions, err));
    CT_TRY(write_input(t, b->segments, v->batch.segments, err));
    CT_TRY(write_input(t, b->n_segments, &n_segments, err));
    CT_TRY(write_input(t, b->inv_tokens, &one, err));
    CT_TRY(ct_runtime_run(t->engine->runtime, 1, CT_PROGRAM_EVAL, err));
    return ct_runtime_read(t->engine->runtime, 1, v->eval->loss, out_sum, sizeof *out_sum, err);
}

/* Whether any rank was asked to stop: all leave the validation after the same batch. */
static ct_status agree_to_stop(const cti_trainer *t, bool *out_stop, ct_err *err)
{
    int64_t asked = t->o.stop != NULL && *t->o.stop;
    CT_TRY(ct_comm_all_reduce(t->world, &asked, &asked, 1, CT_DTYPE_I64, CT_REDUCE_SUM, NULL, err));
    *out_stop = asked > 0;
    return CT_OK;
}

/* Ranks that share the data have as many batches each. *out_stopped: left on request, with no loss. */
static ct_status run_all(cti_trainer *t, ct_loader *loader, double *out_loss, int64_t *out_tokens, bool *out_stopped, ct_err *err)
{
    cti_validator *v = &t->validator;
    const cti_validator_config *c = CTI_SECTION(t->root, "validator", validator);
    const bool is_partial = ct_graph_value_c(v->eval->graph, v->eval->loss)->placement[CT_AXIS_TP].kind == CT_PLACE_PARTIAL;
    double sum = 0.0;
    int64_t n_valid = 0, n_batches = 0;
    for (; c->steps < 0 || n_batches < c->steps; n_batches++) {
        double batch;
        const ct_status st = ct_loader_next(loader, &v->batch, err);
        if (st == CT_END_OF_DATA) {
            break;
        }
        CT_TRY(st);
        CT_TRY(cti_trainer_settle(t, run_batch(t, &batch, err), err));
        sum += batch;
        n_valid += v->batch.n_valid;
        CT_TRY(agree_to_stop(t, out_stopped, err));
        if (*out_stopped) {
            return CT_OK;
        }
    }
    const int64_t copies = t->mesh.world_size / ct_mesh_dp_degree(&t->mesh); /* ranks that share their rows */
    CT_TRY(ct_comm_all_reduce(t->world, &sum, &sum, 1, CT_DTYPE_F64, CT_REDUCE_SUM, NULL, err));
    CT_TRY(ct_comm_all_reduce(t->world, &n_valid, &n_valid, 1, CT_DTYPE_I64, CT_REDUCE_SUM, NULL, err));
    n_valid /= copies;
    if (n_valid == 0) {
        return CT_FAIL(err, CT_ERR_DATA, "validation: no label counts in the %" PRId64 " batches of '%s'", n_batches,
                       CTI_SECTION(t->root, "validator.dataloader", dataloader)->dataset);
    }
    *out_loss = sum / (is_partial ? 1.0 : (double)copies) / (double)n_valid;
    *out_tokens = n_batches * t->local_batch * t->seq_len / copies;
    return CT_OK;
}

ct_status cti_validator_run(cti_trainer *t, int64_t step, ct_err *err)
{
    cti_validator *v = &t->validator;
    if (v->eval == NULL || (step != 1 && step % CTI_SECTION(t->root, "validator", validator)->freq != 0)) {
        return CT_OK;
    }
    const int64_t start = cti_now_ns(), span = CTI_PHASE_BEGIN(t, "eval");
    const ct_processor processor = v->chat != NULL ? ct_processor_of_chat(v->chat) : ct_processor_of_text(&t->text);
    ct_loader *loader = NULL;
    double loss = 0.0;
    int64_t tokens = 0;
    bool is_stopped = false;
    ct_status st = ct_loader_create(t->alloc, v->sources.items, v->sources.n, &processor, &v->loader_options, &loader, err);
    if (st == CT_OK) {
        st = run_all(t, loader, &loss, &tokens, &is_stopped, err);
    }
    ct_loader_destroy(&loader);
    CTI_PHASE_END(t, "eval", span, st == CT_OK);
    if (st != CT_OK) {
        ct_err_prefix(err, "validation after step %" PRId64, step);
        return st;
    }
    const int64_t spent = cti_now_ns() - start;
    t->longest_validation_ns = cti_max_i64(t->longest_validation_ns, spent);
    if (is_stopped) { /* the next step saves and ends */
        CT_INFO(t->log, "Validation after step %" PRId64 " is left: the run was asked to stop", step);
        return CT_OK;
    }
    cti_metrics_log_validation(&t->metrics, t->log, step, loss, (double)tokens, spent);
    cti_observer_validated(t, step, loss, (double)tokens / ((double)spent / 1e9));
    t->metrics.last_ns += spent; /* not training time */
    return CT_OK;
}

void cti_validator_close(cti_trainer *t)
{
    cti_validator *v = &t->validator;
    ct_sources_close(&v->sources);
    ct_chat_destroy(&v->chat);
    ct_alloc_free(t->alloc, v->room);
    cti_eval_destroy(&v->eval);
    v->room = NULL;
}
