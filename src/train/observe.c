/* SPDX-License-Identifier: Apache-2.0 */
/* A trainer's records: which files there are, and what goes into them. */
#include "train/observe.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "model/model.h"
#include "train/trainer.h"

#define GIB (1024.0 * 1024.0 * 1024.0)

struct cti_observer {
    cti_writer *writer; /* owns; NULL: nothing is written */
    cti_trace *trace;   /* owns; NULL: off */
    cti_writer_file *csv, *validation, *events; /* the writer's */
    cti_profile *profile; /* owns; NULL: off */
    cti_progress progress;
    ct_arena *arena;    /* owns: names of scalars, shapes of ops */
    const char *lr_names[64];
    const char **shapes; /* per position of the order; NULL until asked for */
    cti_scalar scalars[CTI_MAX_SCALARS];
    int n_scalars;
    cti_str text;       /* reused */
    int64_t loaded_step, step, step_start_ns;
    int32_t micro_batch;
    ct_program_id program; /* that runs */
    bool is_recording;
    int folder_lock; /* of the dump folder, on the rank that writes metrics.csv and run.json; -1 */
};

/* The columns of validation.csv. */
#define VALIDATION_SCALARS(loss, tps, tokens)                                                                      \
    {"validation_metrics/loss", (loss), true}, {"validation_metrics/throughput(tps)", (tps), true}, \
    {"n_tokens_seen", (tokens), true}

/* ---- scalars --------------------------------------------------------------------------------------------------- */

static void put(cti_observer *o, const char *name, double value, bool is_present)
{
    CT_ASSERT(o->n_scalars < CTI_MAX_SCALARS);
    o->scalars[o->n_scalars++] = (cti_scalar){name, value, is_present};
}

/* Bytes of the block that are in use at the fullest moment: all but the holes between activations. */
static int64_t most_in_use(const ct_plan *plan)
{
    return plan->total_bytes - plan->graphs[0].arena_bytes + plan->graphs[0].largest_live_bytes;
}

/* The one list of a logged step's scalars, under TorchTitan's names. */
static void fill_scalars(cti_observer *o, const cti_trainer *t, int64_t step, const cti_step_numbers *n)
{
    const double active = (double)most_in_use(t->engine->plan), reserved = (double)n->peak_bytes;
    const double capacity = (double)t->metrics.memory_bytes, factor = ct_lr_factor(&t->schedule, step - 1);
    const bool has_capacity = capacity > 0.0;
    o->n_scalars = 0;
    put(o, "loss_metrics/global_avg_loss", n->loss, true);
    put(o, "loss_metrics/global_max_loss", n->max_loss, true);
    put(o, "grad_norm", n->grad_norm, true);
    put(o, "throughput(tps)", n->rates.tokens_per_second, true);
    put(o, "tflops", n->rates.tflops, true);
    put(o, "mfu(%)", n->rates.mfu_percent, n->rates.has_mfu);
    put(o, "time_metrics/end_to_end(s)", n->seconds_per_step, true);
    put(o, "time_metrics/data_loading(s)", n->data_seconds, true);
    put(o, "time_metrics/data_loading(%)", n->data_percent, true);
    put(o, "memory/max_active(GiB)", active / GIB, true);
    put(o, "memory/max_active(%)", has_capacity ? 100.0 * active / capacity : 0.0, has_capacity);
    put(o, "memory/max_reserved(GiB)", reserved / GIB, true);
    put(o, "memory/max_reserved(%)", has_capacity ? 100.0 * reserved / capacity : 0.0, has_capacity);
    put(o, "memory/num_alloc_retries", 0.0, true); /* memory is planned: there is nothing to try again */
    put(o, "memory/num_ooms", 0.0, true);
    put(o, "n_tokens_seen", (double)t->tokens_seen, true);
    for (int32_t g = 0; g < t->n_groups; g++) {
        put(o, o->lr_names[g], t->groups[g].lr * factor, true);
    }
}

/* "lr/AdamW", or "lr/AdamW/0", "lr/AdamW/1" where there are several groups. */
static ct_status name_rates(cti_observer *o, const cti_trainer *t, ct_err *err)
{
    const ct_component *list = ct_component_find(t->root, "optimizer.param_groups");
    for (int32_t g = 0; g < t->n_groups; g++) {
        const cti_param_group_config *c = ct_component_values(list->children[g]);
        o->lr_names[g] = t->n_groups == 1 ? ct_arena_printf(o->arena, err, "lr/%s", c->optimizer_name)
                                          : ct_arena_printf(o->arena, err, "lr/%s/%d", c->optimizer_name, g);
        if (o->lr_names[g] == NULL) {
            return CT_ERR_MEMORY;
        }
    }
    return CT_OK;
}

/* ---- files ----------------------------------------------------------------------------------------------------- */

static const char *dump_folder(const cti_trainer *t)
{
    return ((const cti_trainer_config *)ct_component_values(t->root))->dump_folder;
}

static ct_status open_trace(cti_observer *o, cti_trainer *t, ct_err *err)
{
    const ct_place *place = ct_bootstrap_place(t->o.bootstrap);
    cti_str folder = {.alloc = t->alloc};
    cti_str_printf(&folder, "%s/structured_logs", dump_folder(t));
    ct_status st = cti_str_check(&folder, err);
    if (st == CT_OK) {
        const cti_trace_options options = {
            .folder = cti_str_text(&folder), .rank = place->rank, .local_rank = place->local_rank, .source = "training"};
        st = cti_trace_open(t->alloc, o->writer, &options, &o->trace, err);
    }
    cti_str_deinit(&folder);
    if (o->trace != NULL) {
        CT_INFO(t->log, "Structured logging -> JSONL: %s", cti_trace_path(o->trace));
    }
    return st;
}

/* <dump folder>/<name>.csv, without rows of steps that will be done again. */
static ct_status open_csv(cti_observer *o, cti_trainer *t, const char *name, const cti_scalar *scalars, int n_scalars, cti_writer_file **out_file,
                          ct_err *err)
{
    cti_str path = {.alloc = t->alloc}, header = {.alloc = t->alloc};
    bool was_moved = false;
    cti_str_printf(&path, "%s/%s", dump_folder(t), name);
    if (t->mesh.rank != 0) {
        cti_str_printf(&path, ".rank_%" PRId64, t->mesh.rank);
    }
    cti_str_add(&path, ".csv");
    cti_csv_header(&header, scalars, n_scalars);
    ct_status st = cti_str_check(path.failed ? &path : &header, err);
    if (st == CT_OK) {
        st = cti_make_dirs(dump_folder(t), err);
    }
    if (st == CT_OK) {
        st = cti_csv_prepare(t->alloc, cti_str_text(&path), cti_str_text(&header), o->loaded_step, &was_moved, err);
    }
    if (st == CT_OK) {
        *out_file = cti_writer_open(o->writer, cti_str_text(&path));
    }
    cti_str_deinit(&path);
    cti_str_deinit(&header);
    return st;
}

static ct_status open_events(cti_observer *o, cti_trainer *t, ct_err *err)
{
    const cti_metrics_config *c = CTI_SECTION(t->root, "metrics", metrics);
    cti_str base = {.alloc = t->alloc};
    char sub[32] = "", *path = NULL;
    if (c->save_for_all_ranks) {
        (void)snprintf(sub, sizeof sub, "rank_%" PRId64, t->mesh.rank); /* fits */
    }
    cti_str_printf(&base, "%s/%s", dump_folder(t), c->save_tb_folder);
    const int64_t now = cti_wall_ms();
    ct_status st = cti_str_check(&base, err);
    if (st == CT_OK) {
        st = cti_tfevents_path(t->alloc, cti_str_text(&base), sub, o->loaded_step > 0, now, &path, err);
    }
    if (st == CT_OK) {
        o->events = cti_writer_open(o->writer, path);
        if (o->events != NULL) {
            CT_INFO(t->log, "TensorBoard logging enabled. Logs will be saved at %s", path);
        }
        cti_str_reset(&o->text);
        cti_tfevents_version(&o->text, (double)now / 1e3);
        if (o->loaded_step > 0) {
            cti_tfevents_restart(&o->text, (double)now / 1e3, o->loaded_step + 1);
        }
        cti_writer_add(o->events, o->text.data, o->text.len);
    }
    ct_alloc_free(t->alloc, path);
    cti_str_deinit(&base);
    return st;
}

/* run.json: what the run is, for whoever looks at its numbers later. */
static ct_status write_facts(cti_observer *o, cti_trainer *t, ct_err *err)
{
    char host[256] = "", when[32];
    const ct_device_facts *f = &t->engine->facts;
    const cti_model_spec_config *model = ct_component_values(ct_component_find(t->root, "model_spec"));
    json_t *settings = NULL;
    cti_format_wall(cti_wall_ms(), when);
    ct_err ignored = {0};
    if (gethostname(host, sizeof host - 1) != 0) {
        host[0] = '\0';
    }
    if (cti_config_json_sources(t->o.run->tree, t->root, &settings, &ignored) != CT_OK) {
        settings = json_object();
    }
    json_t *json = json_pack(
        "{s:s, s:s, s:I, s:s, s:s, s:s, s:{s:s, s:s, s:s, s:i, s:I, s:f}, s:I, s:I, s:f, s:s, s:I, s:I, s:I, s:o}", "version",
        t->o.version, "started", when, "resumed_from_step", (json_int_t)o->loaded_step, "module",
        t->o.module != NULL ? t->o.module : "", "model", model->name, "flavor", model->flavor, "machine", "host", host, "device", f->name,
        "device_type", f->type, "cores", cti_usable_cores(), "memory_bytes", (json_int_t)f->memory_bytes, "peak_flops",
        t->metrics.peak_flops, "world_size", (json_int_t)t->mesh.world_size, "parameters", (json_int_t)t->n_params, "flops_per_token",
        t->metrics.flops_per_token, "compute_dtype", ct_dtype_name(t->compute_dtype), "tokens_per_step",
        (json_int_t)(t->global_batch * t->seq_len), "planned_bytes", (json_int_t)t->engine->plan->total_bytes, "seed",
        (json_int_t)t->seed, "settings", settings);
    if (json == NULL) {
        return CT_FAIL(err, CT_ERR_FORMAT, "the facts of this run are no UTF-8 text, or memory ran out");
    }
    char *path = cti_path_join(t->alloc, dump_folder(t), "run.json", err);
    ct_status st = path != NULL ? cti_make_dirs(dump_folder(t), err) : CT_ERR_MEMORY;
    if (st == CT_OK) {
        st = cti_json_write_file(path, json, 1, err);
    }
    json_decref(json);
    ct_alloc_free(t->alloc, path);
    return st;
}

static ct_status open_profile(cti_observer *o, cti_trainer *t, ct_err *err)
{
    const cti_profiler_config *c = CTI_SECTION(t->root, "profiler", profiler);
    const cti_profile_schedule schedule = {.freq = c->profile_freq,
                                           .warmup = c->profiler_warmup,
                                           .active = c->profiler_active,
                                           .repeat = c->profiler_repeat.is_set ? c->profiler_repeat.value : 0,
                                           .skip_first = c->profiler_skip_first.is_set ? c->profiler_skip_first.value : 0,
                                           .skips_first_wait =
                                               c->profiler_skip_first_wait.is_set && c->profiler_skip_first_wait.value != 0};
    const ct_plan *plan = t->engine->plan;
    o->shapes = ct_arena_alloc(o->arena, (size_t)(ct_graph_order_len(t->step->graph) + 1) * sizeof *o->shapes, err);
    if (o->shapes == NULL) {
        return CT_ERR_MEMORY;
    }
    CT_INFO(t->log, "Profiling active. Traces will be saved at %s/%s", dump_folder(t), c->save_traces_folder);
    return cti_profile_create(t->alloc, &schedule, plan->total_bytes - plan->graphs[0].arena_bytes, &o->profile, err);
}

/* Two runs would mix their rows in one metrics.csv, and the later would write over the other's run.json. False: another run has them. */
static bool claim_dump_folder(cti_observer *o, const cti_trainer *t, ct_err *err)
{
    int code = 0;
    if (cti_make_dirs(dump_folder(t), err) != CT_OK || cti_lock_folder(dump_folder(t), &o->folder_lock, &code, err) != CT_OK) {
        return true; /* the files themselves will say it */
    }
    const bool is_ours = code == EWOULDBLOCK && t->folder_lock >= 0 && cti_is_same_file(t->folder_lock, dump_folder(t)); /* checkpoints lie there, too */
    return code != EWOULDBLOCK || is_ours;
}

static void warn_of(cti_observer *o, ct_status st, ct_err *err)
{
    if (st != CT_OK) {
        cti_writer_warn(o->writer, err->message);
        *err = (ct_err){0};
    }
}

void cti_observer_open(cti_trainer *t)
{
    ct_err err = {0};
    cti_observer *o = CT_NEW(t->alloc, cti_observer, &err);
    ct_status st = o != NULL ? ct_arena_create(t->alloc, 0, &o->arena, &err) : CT_ERR_MEMORY;
    if (st == CT_OK) {
        o->text.alloc = t->alloc;
        st = cti_writer_create(t->alloc, t->log, &o->writer, &err);
    }
    if (st != CT_OK) {
        CT_WARN(t->log, "%s; training goes on without records", err.message);
        if (o != NULL) {
            ct_arena_destroy(&o->arena);
        }
        ct_alloc_free(t->alloc, o);
        return;
    }
    t->observer = o;
    o->folder_lock = -1;
    if (CTI_SECTION(t->root, "debug", debug)->enable_structured_logging) {
        warn_of(o, open_trace(o, t, &err), &err);
    }
}

void cti_observer_start(cti_trainer *t)
{
    cti_observer *o = t->observer;
    const cti_metrics_config *c = CTI_SECTION(t->root, "metrics", metrics);
    ct_err err = {0};
    if (o == NULL) {
        return;
    }
    o->loaded_step = t->current_step;
    warn_of(o, name_rates(o, t, &err), &err);
    const cti_step_numbers none = {0};
    fill_scalars(o, t, 1, &none);
    const bool writes = t->mesh.rank == 0 || c->save_for_all_ranks;
    bool has_folder = true;
    if (c->enable_csv && t->mesh.rank == 0) {
        has_folder = claim_dump_folder(o, t, &err);
        err = (ct_err){0};
        if (!has_folder) {
            CT_WARN(t->log, "another run writes its records into '%s': metrics.csv and run.json of this one are left out (choose another "
                    "--dump-folder to have them)", dump_folder(t));
        }
    }
    if (c->enable_csv && writes && has_folder) {
        warn_of(o, open_csv(o, t, "metrics", o->scalars, o->n_scalars, &o->csv, &err), &err);
        const cti_scalar validation[] = {VALIDATION_SCALARS(0.0, 0.0, 0.0)};
        if (CTI_SECTION(t->root, "validator", validator)->enable) {
            warn_of(o, open_csv(o, t, "validation", validation, (int)(sizeof validation / sizeof *validation), &o->validation, &err), &err);
        }
    }
    if (c->enable_csv && t->mesh.rank == 0 && has_folder) {
        warn_of(o, write_facts(o, t, &err), &err);
    }
    if (c->enable_tensorboard && writes) {
        warn_of(o, open_events(o, t, &err), &err);
    }
    if (CTI_SECTION(t->root, "profiler", profiler)->enable_profiling) {
        warn_of(o, open_profile(o, t, &err), &err);
    }
    if (t->o.is_interactive && c->enable_progress && t->mesh.rank == 0) {
        cti_progress_init(&o->progress, t->alloc, t->log, t->last_step);
    }
    cti_trace_instant(o->trace, CTI_HERE, "training_start", "Training starts");
}

void cti_observer_close(cti_trainer *t)
{
    cti_observer *o = t->observer;
    if (o == NULL) {
        return;
    }
    cti_progress_deinit(&o->progress);
    cti_trace_close(&o->trace);
    cti_writer_destroy(&o->writer);
    if (o->folder_lock >= 0) {
        (void)close(o->folder_lock);
    }
    cti_profile_destroy(&o->profile);
    cti_str_deinit(&o->text);
    ct_arena_destroy(&o->arena);
    ct_alloc_free(t->alloc, o);
    t->observer = NULL;
}

void cti_observer_flush(cti_trainer *t)
{
    if (t->observer != NULL) {
        cti_writer_flush(t->observer->writer);
    }
}

cti_trace *cti_observer_trace(const cti_trainer *t)
{
    return t->observer != NULL ? t->observer->trace : NULL;
}

/* ---- the profile ----------------------------------------------------------------------------------------------- */

static void add_shape(cti_str *s, const ct_graph *g, ct_value_id id)
{
    if (id == CT_NO_VALUE) {
        cti_str_add(s, "-");
        return;
    }
    const ct_value *v = ct_graph_value_c(g, id);
    cti_str_printf(s, "%s[", ct_dtype_name(v->dtype));
    for (int32_t d = 0; d < v->ndim; d++) {
        cti_str_printf(s, "%s%" PRId64, d > 0 ? "," : "", v->dims[d]);
    }
    cti_str_add_char(s, ']');
}

/* "f32[512,256] f32[256,256] -> f32[512,256]", made once a node. */
static const char *shapes_of(cti_observer *o, const ct_graph *g, const ct_node *node, int32_t position)
{
    if (o->shapes[position] == NULL) {
        cti_str_reset(&o->text);
        for (int32_t i = 0; i < node->n_in + node->n_out; i++) {
            cti_str_add(&o->text, i == 0 ? "" : i == node->n_in ? " -> " : " ");
            add_shape(&o->text, g, i < node->n_in ? node->in[i] : node->out[i - node->n_in]);
        }
        o->shapes[position] = ct_arena_strdup(o->arena, cti_str_text(&o->text), NULL); /* NULL where memory ran out: none shown */
    }
    return o->shapes[position];
}

static void on_event(void *ctx, const ct_runtime_event *e)
{
    cti_trainer *t = ctx;
    cti_observer *o = t->observer;
    const ct_graph *g = t->step->graph;
    cti_span span = {.name = "wait",
                     .category = "wait",
                     .program = ct_program_name(o->program),
                     .begin_ns = e->begin_ns,
                     .end_ns = e->end_ns,
                     .step = o->step,
                     .micro_batch = o->micro_batch,
                     .number = e->number,
                     .live_bytes = -1};
    if (e->kind != CT_RUNTIME_WAIT) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[e->position]);
        const ct_op *op = ct_op_row(node->op);
        span.name = op->name;
        span.category = e->kind == CT_RUNTIME_START ? "start" : op->flags & CT_OP_COLLECTIVE ? "collective" : "op";
        span.scope = node->scope;
        span.shapes = shapes_of(o, g, node, e->position);
        span.stream = e->kind == CT_RUNTIME_NODE ? node->stream : 0;
        span.live_bytes = node->stream == 0 ? t->engine->plan->graphs[e->graph].live_bytes[e->position] : -1;
    }
    cti_profile_add(o->profile, &span);
}

static void add_outer_span(cti_observer *o, const char *name, const char *category, int64_t begin_ns, int32_t micro_batch)
{
    cti_profile_add(o->profile, &(cti_span){.name = name,
                                            .category = category,
                                            .begin_ns = begin_ns,
                                            .end_ns = cti_now_ns(),
                                            .step = o->step,
                                            .micro_batch = micro_batch,
                                            .live_bytes = -1});
}

ct_status cti_observer_run(cti_trainer *t, ct_program_id program, int32_t micro_batch, ct_err *err)
{
    cti_observer *o = t->observer;
    if (o == NULL || !o->is_recording) {
        return ct_runtime_run(t->engine->runtime, 0, program, err);
    }
    const int64_t begin = cti_now_ns();
    o->micro_batch = program == CT_PROGRAM_OPTIMIZER ? -1 : micro_batch;
    o->program = program;
    ct_runtime_set_hook(t->engine->runtime, on_event, t);
    const ct_status st = ct_runtime_run(t->engine->runtime, 0, program, err);
    ct_runtime_set_hook(t->engine->runtime, NULL, NULL);
    add_outer_span(o, ct_program_name(program), "program", begin, o->micro_batch);
    return st;
}

static void write_profile(cti_observer *o, cti_trainer *t, int64_t step)
{
    const cti_profiler_config *c = CTI_SECTION(t->root, "profiler", profiler);
    const int64_t start = CTI_PHASE_BEGIN(t, "kineto_profiler_step_call");
    cti_str path = {.alloc = t->alloc};
    ct_err err = {0};
    CT_INFO(t->log, "Dumping profiler traces at step %" PRId64, step);
    cti_str_printf(&path, "%s/%s/iteration_%" PRId64 "/rank%" PRId64 "_trace.json.gz", dump_folder(t), c->save_traces_folder, step,
                   t->mesh.rank);
    ct_status st = cti_str_check(&path, &err);
    if (st == CT_OK) {
        st = cti_profile_write(o->profile, cti_str_text(&path), t->mesh.rank, &err);
    }
    cti_str_deinit(&path);
    CTI_PHASE_END(t, "kineto_profiler_step_call", start, st == CT_OK);
    if (st == CT_OK) {
        CT_INFO(t->log, "Finished dumping profiler traces in %.2f seconds", cti_seconds_since(start));
    }
    warn_of(o, st, &err);
    t->metrics.last_ns += cti_now_ns() - start; /* writing it down is not training time */
}

/* ---- traffic --------------------------------------------------------------------------------------------------- */

static int64_t sent_bytes(const cti_trainer *t, int axis)
{
    ct_comm_stats stats;
    int64_t sum = 0;
    ct_comm_get_stats(t->axis[axis], &stats);
    ct_runtime_add_stats(t->engine->runtime, axis, &stats);
    for (int op = 0; op < CT_COMM_OP_COUNT; op++) {
        sum += stats.op[op].sent_bytes;
    }
    return sum;
}

void cti_observer_traffic(cti_trainer *t)
{
    char line[256] = "", bytes[32], name[64];
    size_t used = 0;
    for (int a = 0; a < CT_MAX_AXES; a++) {
        if (t->axis[a] == NULL) {
            continue;
        }
        const int64_t sent = sent_bytes(t, a);
        (void)snprintf(name, sizeof name, "sent_bytes/%s", ct_axis_name((ct_axis)a));
        cti_trace_scalar(cti_observer_trace(t), CTI_HERE, name, (double)sent);
        used += (size_t)snprintf(line + used, sizeof line - used, "%s%s over %s", used > 0 ? ", " : "", cti_format_bytes(sent, bytes),
                                 ct_axis_name((ct_axis)a)); /* six axes fit */
    }
    if (used > 0) {
        CT_INFO(t->log, "Sent to other ranks: %s", line);
    }
}

/* ---- steps ----------------------------------------------------------------------------------------------------- */

int64_t cti_phase_begin(cti_trainer *t, const cti_where *where, const char *name)
{
    (void)cti_trace_begin(cti_observer_trace(t), where, name);
    return cti_now_ns();
}

void cti_phase_end(cti_trainer *t, const cti_where *where, const char *name, int64_t start_ns, bool is_ok)
{
    cti_observer *o = t->observer;
    if (o != NULL && o->is_recording) {
        add_outer_span(o, name, "host", start_ns, -1);
    }
    cti_trace_end(cti_observer_trace(t), where, name, start_ns, is_ok);
}

void cti_observer_step_begin(cti_trainer *t, int64_t step)
{
    cti_observer *o = t->observer;
    if (o == NULL) {
        return;
    }
    o->step = step;
    o->is_recording = cti_profile_records(o->profile, step);
    cti_trace_step(o->trace, step, step - o->loaded_step);
    (void)cti_trace_begin(o->trace, CTI_HERE, "step");
    o->step_start_ns = cti_now_ns();
}

void cti_observer_step_end(cti_trainer *t, int64_t step, double loss, bool is_ok)
{
    cti_observer *o = t->observer;
    if (o == NULL) {
        return;
    }
    cti_trace_end(o->trace, CTI_HERE, "step", o->step_start_ns, is_ok);
    if (o->is_recording) {
        add_outer_span(o, "step", "step", o->step_start_ns, -1);
        o->is_recording = false;
        if (cti_profile_ends(o->profile, step)) {
            write_profile(o, t, step);
        }
    }
    if (is_ok) {
        cti_progress_step(&o->progress, step, loss, t->global_batch * t->seq_len, cti_now_ns());
    }
}

void cti_observer_validated(cti_trainer *t, int64_t step, double loss, double tokens_per_second)
{
    cti_observer *o = t->observer;
    if (o == NULL || (o->validation == NULL && o->events == NULL)) {
        return;
    }
    const double now_s = (double)cti_wall_ms() / 1e3;
    if (o->validation != NULL) {
        const cti_scalar row[] = {VALIDATION_SCALARS(loss, tokens_per_second, (double)t->tokens_seen)};
        cti_str_reset(&o->text);
        cti_csv_row(&o->text, step, now_s, row, (int)(sizeof row / sizeof *row));
        cti_writer_add(o->validation, o->text.data, o->text.len);
    }
    if (o->events == NULL) {
        return;
    }
    const double gib = (double)cti_peak_rss_bytes() / (1024.0 * 1024.0 * 1024.0);
    const cti_scalar scalars[] = {{"validation_metrics/loss", loss, true},
                                  {"validation_metrics/throughput(tps)", tokens_per_second, true},
                                  {"validation_metrics/memory/max_active(GiB)", gib, true},
                                  {"validation_metrics/memory/max_reserved(GiB)", gib, true}};
    cti_str_reset(&o->text);
    cti_tfevents_scalars(&o->text, now_s, step, scalars, (int)(sizeof scalars / sizeof scalars[0]));
    cti_writer_add(o->events, o->text.data, o->text.len);
}

void cti_observer_logged(cti_trainer *t, int64_t step, const cti_step_numbers *numbers)
{
    cti_observer *o = t->observer;
    if (o == NULL || (o->csv == NULL && o->events == NULL)) {
        return;
    }
    const double now_s = (double)cti_wall_ms() / 1e3;
    fill_scalars(o, t, step, numbers);
    if (o->csv != NULL) {
        cti_str_reset(&o->text);
        cti_csv_row(&o->text, step, now_s, o->scalars, o->n_scalars);
        cti_writer_add(o->csv, o->text.data, o->text.len);
    }
    if (o->events != NULL) {
        cti_str_reset(&o->text);
        cti_tfevents_scalars(&o->text, now_s, step, o->scalars, o->n_scalars);
        cti_writer_add(o->events, o->text.data, o->text.len);
    }
}
