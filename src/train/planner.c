/* SPDX-License-Identifier: Apache-2.0 */
/* A run's memory, work and limit of speed from its graph, and what would make it fit. */
#include "train/planner.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "comm/hccl/hccl_engine.h"
#include "comm/comm.h"
#include "model/model.h"
#include "ops/ops.h"
#include "runtime/runtime.h"

/* What is changed to see whether it makes a run fit. */
typedef struct variant {
    ct_recompute_mode recompute;
    double budget; /* of CT_RECOMPUTE_BUDGET */
    int64_t local_batch, n_ranks;
} variant;

/* A step and its plan for one variant. */
typedef struct drawn {
    ct_mesh mesh;
    cti_run_shape shape;
    cti_step *step; /* owns */
    cti_eval *eval; /* owns; NULL: no validation */
    ct_plan *plan;  /* owns */
} drawn;

static size_t workspace(void *ctx, const ct_node *node, const ct_launch *shapes_only)
{
    return ct_runtime_workspace(ctx, node, shapes_only);
}

static void drawn_deinit(drawn *d)
{
    ct_plan_destroy(&d->plan);
    cti_eval_destroy(&d->eval);
    cti_step_destroy(&d->step);
}

static ct_status mesh_of(const cti_run_config *run, int64_t n_ranks, int64_t rank, ct_mesh *out, ct_err *err)
{
    cti_degrees d;
    cti_degrees_of(run->root, n_ranks, &d);
    const int64_t degree[CT_AXIS_COUNT] = {d.pp, d.dp_replicate, d.dp_shard, d.cp, d.tp, d.ep};
    return ct_mesh_init(out, degree, n_ranks, rank, err);
}

/* variant NULL: as the settings say. */
static ct_status draw(const ct_alloc *alloc, const cti_plan_request *r, const variant *v, drawn *out, ct_err *err)
{
    drawn d = {0};
    ct_status st;
    *out = d;
    CT_TRY(mesh_of(r->run, v != NULL ? v->n_ranks : r->n_ranks, v != NULL ? 0 : r->rank, &out->mesh, err));
    CT_TRY(cti_run_shape_make(r->run, &out->mesh, r->compute_dtype, &out->shape, err));
    if (v != NULL) {
        out->shape.local_batch = v->local_batch;
        out->shape.step.batch = v->local_batch * ct_mesh_dp_degree(&out->mesh);
        out->shape.step.recompute.mode = v->recompute;
        out->shape.step.recompute.budget = v->budget;
        out->shape.step.dump_dir = NULL;
    } else if (r->has_budget) {
        out->shape.step.recompute.budget = r->budget;
    }
    CT_TRY_GOTO(st, cti_step_create(alloc, ct_component_find(r->run->root, "model_spec"), &out->shape.step, &out->step, err), fail);
    ct_value_id keep[CTI_STEP_KEEPS];
    cti_step_keep(out->step, keep);
    const ct_component *spec = ct_component_find(r->run->root, "model_spec");
    if (CTI_SECTION(r->run->root, "validator", validator)->enable) {
        CT_TRY_GOTO(st, cti_eval_create(alloc, spec, &out->shape.step, out->step, &out->eval, err), fail);
    }
    const ct_plan_item items[2] = {{out->step->graph, keep, CTI_STEP_KEEPS},
                                   {out->eval != NULL ? out->eval->graph : NULL, out->eval != NULL ? &out->eval->loss : NULL, 1}};
    CT_TRY_GOTO(st, ct_plan_create(alloc, items, out->eval != NULL ? 2 : 1, workspace, (void *)(uintptr_t)r->backend, &out->plan, err), fail);
    return CT_OK;
fail:
    drawn_deinit(out);
    return st;
}

/* ---- device ------------------------------------------------------------------------------------------------------ */

typedef struct rates {
    double flops, memory_bytes_s, link_bytes_s; /* 0: not known */
    bool is_built; /* collectives are our own */
} rates;

static ct_status know_device(const ct_alloc *alloc, const cti_plan_request *r, cti_run_estimate *e, rates *out, ct_err *err)
{
    const bool is_bf16 = r->compute_dtype == CT_DTYPE_BF16;
    if (r->target != NULL) {
        (void)snprintf(e->device, sizeof e->device, "%s", r->target->what);
        e->memory_bytes = (int64_t)(r->target->memory_gib * 1024.0 * 1024.0 * 1024.0);
        *out = (rates){cti_target_peak(r->target, is_bf16), r->target->memory_gb_s * 1e9, r->target->link_gb_s * 1e9, false};
        return CT_OK;
    }
    ct_device_facts facts;
    if (r->facts != NULL) {
        facts = *r->facts;
    } else {
        void *device = NULL;
        CT_TRY(r->backend->device_open(alloc, 0, &device, err));
        const ct_status st = r->backend->device_facts(device, &facts, err);
        r->backend->device_close(&device);
        CT_TRY(st);
    }
    (void)snprintf(e->device, sizeof e->device, "%.100s (this machine)", facts.name);
    e->memory_bytes = facts.memory_bytes;
    *out = (rates){.is_built = r->backend->device_count == NULL, .flops = is_bf16 && facts.peak_flops_bf16 > 0.0 ? facts.peak_flops_bf16 : facts.peak_flops};
    return CT_OK;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static const char *const program_names[] = {[CT_PROGRAM_FORWARD] = "forward", [CT_PROGRAM_BACKWARD] = "backward",
                                            [CT_PROGRAM_OPTIMIZER] = "optimizer"};

static const char *program_name(int program)
{
    const size_t n = sizeof program_names / sizeof program_names[0];
    return program >= 0 && (size_t)program < n && program_names[program] != NULL ? program_names[program] : "another program";
}

static void shape_text(const ct_value *v, char *out, size_t size)
{
    int used = snprintf(out, size, "%s [", ct_dtype_name(v->dtype));
    for (int i = 0; i < v->ndim && used > 0 && (size_t)used < size; i++) {
        used += snprintf(out + used, size - (size_t)used, "%s%" PRId64, i > 0 ? ", " : "", v->dims[i]);
    }
    if (used > 0 && (size_t)used < size) {
        (void)snprintf(out + used, size - (size_t)used, "]");
    }
}

enum { MAX_KINDS = 128 };
typedef struct live_kinds {
    cti_estimate_live kinds[MAX_KINDS];
    int n;
} live_kinds;

/* "layers.12.attention" -> "layers.*.attention" */
static void scope_pattern(const char *scope, char *out, size_t size)
{
    size_t n = 0;
    for (const char *p = scope; *p != '\0' && n + 1 < size;) {
        if (*p >= '0' && *p <= '9' && (p == scope || p[-1] == '.')) {
            out[n++] = '*';
            p += strspn(p, "0123456789");
        } else {
            out[n++] = *p++;
        }
    }
    out[n] = '\0';
}

/* Adds a value to those of its kind. */
static void note_live(live_kinds *l, const ct_value *v, const ct_node *maker)
{
    cti_estimate_live fresh = {.count = 1, .size_bytes = (int64_t)ct_value_size_bytes(v)};
    scope_pattern(maker->scope, fresh.scope, sizeof fresh.scope);
    (void)snprintf(fresh.op, sizeof fresh.op, "%s", ct_op_row(maker->op)->name);
    shape_text(v, fresh.shape, sizeof fresh.shape);
    for (int i = 0; i < l->n; i++) {
        cti_estimate_live *k = &l->kinds[i];
        if (strcmp(k->scope, fresh.scope) == 0 && strcmp(k->op, fresh.op) == 0 && strcmp(k->shape, fresh.shape) == 0) {
            k->count++;
            k->size_bytes += fresh.size_bytes;
            return;
        }
    }
    if (l->n < MAX_KINDS) {
        l->kinds[l->n++] = fresh;
    }
}

static int by_bytes(const void *pa, const void *pb)
{
    const cti_estimate_live *a = pa, *b = pb;
    return a->size_bytes != b->size_bytes ? (a->size_bytes > b->size_bytes ? -1 : 1) : strcmp(a->scope, b->scope);
}

/* Marks what nodes at or after the peak read, and what the host does. */
static void mark_alive(const ct_graph_plan *p, const ct_value_id *keep, int32_t n_keep, bool *is_alive)
{
    for (int32_t i = p->largest_live_at; i < ct_graph_order_len(p->graph); i++) {
        const ct_node *node = ct_graph_node_c(p->graph, ct_graph_order(p->graph)[i]);
        for (int32_t k = 0; k < node->n_in; k++) {
            if (node->in[k] != CT_NO_VALUE) {
                is_alive[p->part_of[node->in[k]]] = true;
            }
        }
        for (int32_t o = 0; o < node->n_out && i == p->largest_live_at; o++) {
            is_alive[p->part_of[node->out[o]]] = true;
        }
    }
    for (int32_t k = 0; k < n_keep; k++) {
        is_alive[p->part_of[keep[k]]] = true;
    }
}

/* The values alive at the place where activations need most. */
static ct_status look_at_peak(cti_run_estimate *e, const ct_graph_plan *p, const ct_value_id *keep, int32_t n_keep, ct_err *err)
{
    const ct_graph *g = p->graph;
    if (p->largest_live_at >= ct_graph_order_len(g)) {
        return CT_OK;
    }
    bool *is_alive = ct_alloc_zeroed(e->alloc, (size_t)p->n_values + 1, sizeof *is_alive, err);
    live_kinds *kinds = CT_NEW(e->alloc, live_kinds, err);
    if (is_alive == NULL || kinds == NULL) {
        ct_alloc_free(e->alloc, is_alive);
        ct_alloc_free(e->alloc, kinds);
        return CT_ERR_MEMORY;
    }
    const ct_node *peak = ct_graph_node_c(g, ct_graph_order(g)[p->largest_live_at]);
    e->largest_live_bytes = p->largest_live_bytes;
    (void)snprintf(e->largest_live_at, sizeof e->largest_live_at, "%s of %s (%s)", program_name(peak->program),
                   peak->scope[0] != '\0' ? peak->scope : "the model", ct_op_row(peak->op)->name);
    mark_alive(p, keep, n_keep, is_alive);
    for (int32_t i = 0; i <= p->largest_live_at; i++) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[i]);
        for (int32_t o = 0; o < node->n_out; o++) {
            const ct_value *v = ct_graph_value_c(g, node->out[o]);
            if (v->kind == CT_VALUE_ACT && v->alias_of == CT_NO_VALUE && p->part_of[node->out[o]] == node->out[o] && is_alive[node->out[o]]) {
                note_live(kinds, v, node);
            }
        }
    }
    qsort(kinds->kinds, (size_t)kinds->n, sizeof kinds->kinds[0], by_bytes);
    e->n_live = kinds->n < CTI_ESTIMATE_N_LIVE ? kinds->n : CTI_ESTIMATE_N_LIVE;
    memcpy(e->live, kinds->kinds, (size_t)e->n_live * sizeof e->live[0]);
    ct_alloc_free(e->alloc, kinds);
    ct_alloc_free(e->alloc, is_alive);
    return CT_OK;
}

/* Adds a node that is run again to those of its kind. */
static void note_again(cti_run_estimate *e, const ct_node *node, double flops)
{
    cti_estimate_again fresh = {.count = 1, .flops = flops};
    const size_t digits = strcspn(node->scope, "0123456789");
    fresh.first = fresh.last = node->scope[digits] != '\0' ? strtoll(node->scope + digits, NULL, 10) : 0;
    scope_pattern(node->scope, fresh.scope, sizeof fresh.scope);
    (void)snprintf(fresh.op, sizeof fresh.op, "%s", ct_op_row(node->op)->name);
    for (int i = 0; i < e->n_again; i++) {
        cti_estimate_again *a = &e->again[i];
        if (strcmp(a->scope, fresh.scope) == 0 && strcmp(a->op, fresh.op) == 0) {
            a->count++;
            a->flops += flops;
            a->first = fresh.first < a->first ? fresh.first : a->first;
            a->last = fresh.last > a->last ? fresh.last : a->last;
            return;
        }
    }
    if (e->n_again < CTI_ESTIMATE_N_AGAIN) {
        e->again[e->n_again++] = fresh;
    }
}

/* ---- work -------------------------------------------------------------------------------------------------------- */

/* Bytes that this rank sends in one call: exactly where our own collectives do it, by the formula of rings on devices. */
static double sent_bytes(const cti_run_estimate *e, const ct_graph *g, const ct_node *node, bool is_built)
{
    const ct_attrs_collective *a = node->attrs; /* all_gather's begin alike */
    const ct_value *in = ct_graph_value_c(g, node->in[0]), *out = ct_graph_value_c(g, node->out[0]);
    const int64_t n = e->mesh.degree[a->axis], size = (int64_t)ct_dtype_size_bytes(in->dtype);
    const bool is_gather = node->op == CT_OP_all_gather, is_scatter = node->op == CT_OP_reduce_scatter;
    if (is_built) {
        const ct_comm_op op = is_gather ? CT_COMM_ALL_GATHER : is_scatter ? CT_COMM_REDUCE_SCATTER : CT_COMM_ALL_REDUCE;
        const int64_t count = (int64_t)ct_value_size_bytes(is_scatter ? out : in) / size;
        return (double)ct_comm_built_sent_bytes(op, (int)n, (int)e->mesh.coord[a->axis], count, in->dtype);
    }
    const double whole = (double)ct_value_size_bytes(is_gather ? out : in) * (double)(n - 1) / (double)n;
    return is_gather || is_scatter ? whole : 2.0 * whole;
}

static void count_collective(cti_run_estimate *e, const ct_graph *g, const ct_node *node, double times, bool is_built)
{
    cti_estimate_traffic *t = &e->traffic[((const ct_attrs_collective *)node->attrs)->axis];
    const double bytes = times * sent_bytes(e, g, node, is_built);
    if (node->op == CT_OP_all_gather) {
        t->n_gathers += (int64_t)times;
        t->gather_bytes += bytes;
    } else if (node->op == CT_OP_reduce_scatter) {
        t->n_scatters += (int64_t)times;
        t->scatter_bytes += bytes;
    } else {
        t->n_reduces += (int64_t)times;
        t->reduce_bytes += bytes;
    }
}

static void count_work(cti_run_estimate *e, const ct_graph *g, const rates *r)
{
    for (int32_t i = 0; i < ct_graph_order_len(g); i++) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[i]);
        const double times = node->program == CT_PROGRAM_OPTIMIZER ? 1.0 : (double)e->shape.accumulation;
        const uint32_t flags = ct_op_row(node->op)->flags;
        const bool is_again = node->is_recompute && strncmp(node->scope, "flat.", 5) != 0;
        const double flops = times * cti_node_flops(g, node), bytes = times * cti_node_bytes(g, node);
        if (is_again && (flags & CT_OP_VIEW) == 0) {
            note_again(e, node, flops);
        }
        if ((flags & CT_OP_COLLECTIVE) != 0) {
            count_collective(e, g, node, times, r->is_built);
            continue;
        }
        e->forward_flops += node->program == CT_PROGRAM_FORWARD ? flops : 0.0;
        e->backward_flops += node->program == CT_PROGRAM_BACKWARD ? flops : 0.0;
        e->recompute_flops += is_again ? flops : 0.0;
        e->optimizer_flops += node->program == CT_PROGRAM_OPTIMIZER ? flops : 0.0;
        e->memory_traffic_bytes += bytes;
        if (r->flops > 0.0) {
            e->compute_s += fmax(flops / r->flops, r->memory_bytes_s > 0.0 ? bytes / r->memory_bytes_s : 0.0);
        }
    }
    for (int a = 0; a < CT_AXIS_COUNT && r->link_bytes_s > 0.0; a++) {
        const cti_estimate_traffic *t = &e->traffic[a];
        e->comm_s += (t->gather_bytes + t->scatter_bytes + t->reduce_bytes) / r->link_bytes_s;
    }
}

/* HCCL keeps a buffer for each group: one of each axis that has ranks, one more where collectives run beside the computation. */
static void count_groups(const cti_plan_request *r, const ct_graph *g, cti_run_estimate *e)
{
    bool is_beside[CT_AXIS_COUNT] = {false};
    int64_t n = 0;
    if (r->target != NULL ? r->target->soc == NULL : !cti_str_eq(r->backend->name, "npu")) {
        return;
    }
    for (int32_t i = 0; i < ct_graph_order_len(g); i++) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[i]);
        if ((ct_op_row(node->op)->flags & CT_OP_COLLECTIVE) != 0 && node->stream != 0) {
            is_beside[((const ct_attrs_collective *)node->attrs)->axis] = true;
        }
    }
    for (int a = 0; a < CT_AXIS_COUNT; a++) {
        n += e->mesh.degree[a] > 1 ? 1 + is_beside[a] : 0;
    }
    e->engine_bytes = n * cti_hccl_group_bytes();
    e->memory_bytes = e->memory_bytes > 0 ? cti_max_i64(1, e->memory_bytes - e->engine_bytes) : 0;
}

/* ---- advice ------------------------------------------------------------------------------------------------------ */

/* What a variant needs: all of it, and the part that does not grow with the rows (parameters, states, gradients). */
typedef struct need {
    int64_t total, fixed;
} need;

static need need_of(const ct_plan *plan)
{
    const int64_t *c = plan->class_bytes;
    const int64_t grads = c[CT_VALUE_GRAD] > 0 ? c[CT_VALUE_GRAD] : c[CT_VALUE_PARAM]; /* with one micro-batch they lie among the activations */
    return (need){plan->total_bytes, c[CT_VALUE_PARAM] + c[CT_VALUE_STATE] + grads + c[CT_VALUE_CONST]};
}

static ct_status needs(const ct_alloc *alloc, const cti_plan_request *r, const variant *v, need *out, ct_err *err)
{
    drawn d;
    CT_TRY(draw(alloc, r, v, &d, err));
    *out = need_of(d.plan);
    drawn_deinit(&d);
    return CT_OK;
}

static void advise(cti_run_estimate *e, int64_t bytes, const char *what)
{
    char text[32];
    if (bytes <= e->memory_bytes && e->n_advice < CTI_ESTIMATE_N_ADVICE) {
        (void)snprintf(e->advice[e->n_advice++], sizeof e->advice[0], "%s (needs %s)", what, cti_format_bytes(bytes, text));
    }
}

enum { MOST_TRIES = 3 }; /* plans that are drawn to check one guess */

/* The largest half, quarter, ... of the batch that fits: guessed from what grows with the rows, then planned. */
static ct_status advise_batch(const ct_alloc *alloc, const cti_plan_request *r, const variant *now, const need *has, const char *with,
                              cti_run_estimate *e, ct_err *err)
{
    variant v = *now;
    const double a_row = (double)(has->total - has->fixed) / (double)now->local_batch;
    const double room = (double)(e->memory_bytes - has->fixed);
    v.local_batch /= 2;
    while (v.local_batch > 1 && a_row * (double)v.local_batch > 2.0 * room) { /* a rough guess: begin above it */
        v.local_batch /= 2;
    }
    for (int i = 0; i < MOST_TRIES && v.local_batch >= 1; i++, v.local_batch /= 2) {
        need then;
        char what[128];
        CT_TRY(needs(alloc, r, &v, &then, err));
        if (then.total <= e->memory_bytes) {
            (void)snprintf(what, sizeof what, "--training.local-batch-size %" PRId64 "%s", v.local_batch, with);
            advise(e, then.total, what);
            break;
        }
    }
    return CT_OK;
}

/* Parameters and states are shared by the ranks: the number of them at which the rest fits, guessed, then planned. */
static ct_status advise_ranks(const ct_alloc *alloc, const cti_plan_request *r, const variant *now, const need *has, const char *with,
                              cti_run_estimate *e, ct_err *err)
{
    const cti_parallelism_config *p = CTI_SECTION(r->run->root, "parallelism", parallelism);
    const double room = (double)(e->memory_bytes - (has->total - has->fixed));
    enum { MOST_RANKS = 1 << 14 };
    variant v = *now;
    if (p->data_parallel_shard_degree >= 0 || room <= 0.0) {
        return CT_OK;
    }
    do {
        v.n_ranks *= 2;
    } while (v.n_ranks < MOST_RANKS && (double)has->fixed * (double)now->n_ranks / (double)v.n_ranks > room);
    for (int i = 0; i < MOST_TRIES && v.n_ranks <= MOST_RANKS; i++, v.n_ranks *= 2) {
        need then;
        CT_TRY(needs(alloc, r, &v, &then, err));
        if (then.total <= e->memory_bytes) {
            char what[96];
            (void)snprintf(what, sizeof what, "%" PRId64 " ranks%s", v.n_ranks, with);
            advise(e, then.total, what);
            break;
        }
    }
    return CT_OK;
}

ct_status cti_fit_budget(const ct_alloc *alloc, const cti_plan_request *request, int64_t limit_bytes, double *out_budget, ct_err *err)
{
    enum { PARTS = 64 };
    ct_mesh mesh;
    cti_run_shape shape;
    need then;
    CT_TRY(mesh_of(request->run, request->n_ranks, 0, &mesh, err));
    CT_TRY(cti_run_shape_make(request->run, &mesh, request->compute_dtype, &shape, err));
    variant v = {CT_RECOMPUTE_BUDGET, 0.0, shape.local_batch, request->n_ranks};
    CT_TRY(needs(alloc, request, &v, &then, err));
    if (then.total > limit_bytes) {
        char least[32], limit[32];
        return CT_FAIL(err, CT_ERR_USAGE, "--activation-checkpoint.memory-limit-gib: a rank that recomputes all of its blocks needs %s, the limit is %s",
                       cti_format_bytes(then.total, least), cti_format_bytes(limit_bytes, limit));
    }
    int low = 0, high = PARTS + 1; /* low fits; high does not, or is none */
    while (high - low > 1) {
        const int middle = high > PARTS && low == 0 ? PARTS : low + (high - low) / 2; /* all of them first */
        v.budget = (double)middle / PARTS;
        CT_TRY(needs(alloc, request, &v, &then, err));
        *(then.total <= limit_bytes ? &low : &high) = middle;
    }
    *out_budget = (double)low / PARTS;
    return CT_OK;
}

/* The largest budget, in twentieths, that fits: guessed between full and none, then planned. */
static ct_status advise_budget(const ct_alloc *alloc, const cti_plan_request *r, const variant *now, const need *full, cti_run_estimate *e,
                               ct_err *err)
{
    variant v = *now;
    need none, then;
    v.recompute = CT_RECOMPUTE_NONE;
    CT_TRY(needs(alloc, r, &v, &none, err));
    v.recompute = CT_RECOMPUTE_BUDGET;
    if (full->total > e->memory_bytes || none.total <= e->memory_bytes) {
        return CT_OK;
    }
    int twentieths = (int)(20.0 * (double)(e->memory_bytes - full->total) / (double)(none.total - full->total));
    for (int i = 0; i < MOST_TRIES && twentieths >= 1; i++, twentieths--) {
        v.budget = twentieths / 20.0;
        CT_TRY(needs(alloc, r, &v, &then, err));
        if (then.total <= e->memory_bytes) {
            char what[96];
            (void)snprintf(what, sizeof what, "activation-checkpoint:memory-budget --activation-checkpoint.memory-budget %g", v.budget);
            advise(e, then.total, what);
            break;
        }
    }
    return CT_OK;
}

/* Ways out, each planned: recomputing more, fewer rows, more ranks; where none is enough, two at once. */
static ct_status give_advice(const ct_alloc *alloc, const cti_plan_request *r, const need *has, cti_run_estimate *e, ct_err *err)
{
    static const char *const names[] = {[CT_RECOMPUTE_SELECTIVE] = "activation-checkpoint:selective", [CT_RECOMPUTE_FULL] = "activation-checkpoint:full"};
    const variant now = {e->shape.step.recompute.mode, e->shape.step.recompute.budget, e->shape.local_batch, r->n_ranks};
    need least = *has;
    variant v = now;
    for (int mode = CT_RECOMPUTE_SELECTIVE; mode <= CT_RECOMPUTE_FULL && now.recompute != CT_RECOMPUTE_FULL; mode++) {
        if (mode == CT_RECOMPUTE_FULL || now.recompute == CT_RECOMPUTE_NONE) {
            v.recompute = (ct_recompute_mode)mode;
            CT_TRY(needs(alloc, r, &v, &least, err));
            advise(e, least.total, names[mode]);
        }
    }
    if (now.recompute != CT_RECOMPUTE_FULL) {
        CT_TRY(advise_budget(alloc, r, &now, &least, e, err));
    }
    CT_TRY(advise_batch(alloc, r, &now, has, "", e, err));
    CT_TRY(advise_ranks(alloc, r, &now, has, "", e, err));
    if (e->n_advice == 0 && now.recompute != CT_RECOMPUTE_FULL) {
        CT_TRY(advise_batch(alloc, r, &v, &least, " with activation-checkpoint:full", e, err));
        CT_TRY(advise_ranks(alloc, r, &v, &least, " with activation-checkpoint:full", e, err));
    }
    if (e->n_advice == 0 && now.local_batch > 1) {
        v.local_batch = 1;
        CT_TRY(needs(alloc, r, &v, &least, err));
        CT_TRY(advise_ranks(alloc, r, &v, &least, ", --training.local-batch-size 1 and activation-checkpoint:full", e, err));
    }
    return CT_OK;
}

/* The request with the budget that its settings' limit comes to. */
static ct_status with_budget(const ct_alloc *alloc, const cti_plan_request *request, cti_plan_request *out, ct_err *err)
{
    ct_mesh mesh;
    cti_run_shape shape;
    *out = *request;
    CT_TRY(mesh_of(request->run, request->n_ranks, request->rank, &mesh, err));
    CT_TRY(cti_run_shape_make(request->run, &mesh, request->compute_dtype, &shape, err));
    out->has_budget = shape.memory_limit_bytes > 0;
    return out->has_budget ? cti_fit_budget(alloc, request, shape.memory_limit_bytes, &out->budget, err) : CT_OK;
}

ct_status cti_run_estimate_create(const ct_alloc *alloc, const cti_plan_request *given, cti_run_estimate **out_estimate, ct_err *err)
{
    cti_plan_request fitted;
    const cti_plan_request *request = &fitted;
    CT_TRY(with_budget(alloc, given, &fitted, err));
    drawn d = {0};
    rates r = {0};
    ct_status st;
    cti_run_estimate *e = CT_NEW(alloc, cti_run_estimate, err);
    if (e == NULL) {
        return CT_ERR_MEMORY;
    }
    e->alloc = alloc;
    CT_TRY_GOTO(st, know_device(alloc, request, e, &r, err), fail);
    CT_TRY_GOTO(st, draw(alloc, request, NULL, &d, err), fail);
    e->mesh = d.mesh;
    e->shape = d.shape;
    e->shape.step.mesh = &e->mesh;
    CT_TRY_GOTO(st, cti_budget_make(request->run, e->shape.global_batch * e->shape.seq_len, 0, &e->budget, err), fail);
    cti_model_counts counts;
    CT_TRY_GOTO(st, cti_model_count(alloc, ct_component_find(request->run->root, "model_spec"), d.shape.seq_len, &counts, err), fail);
    e->n_params = counts.n_params;
    e->flops_per_token = counts.flops_per_token;
    memcpy(e->class_bytes, d.plan->class_bytes, sizeof e->class_bytes);
    e->workspace_bytes = d.plan->workspace_bytes;
    e->total_bytes = d.plan->total_bytes;
    count_groups(request, d.step->graph, e);
    e->fits = e->memory_bytes == 0 || e->total_bytes <= e->memory_bytes;
    e->n_nodes = ct_graph_order_len(d.step->graph);
    e->recompute = d.step->recompute;
    ct_value_id keep[CTI_STEP_KEEPS];
    cti_step_keep(d.step, keep);
    CT_TRY_GOTO(st, look_at_peak(e, &d.plan->graphs[0], keep, CTI_STEP_KEEPS, err), fail);
    count_work(e, d.step->graph, &r);
    const need has = need_of(d.plan);
    drawn_deinit(&d);
    if (!e->fits) {
        CT_TRY_GOTO(st, give_advice(alloc, request, &has, e, err), fail);
    }
    *out_estimate = e;
    return CT_OK;
fail:
    drawn_deinit(&d);
    cti_run_estimate_destroy(&e);
    return st;
}

void cti_run_estimate_destroy(cti_run_estimate **estimate)
{
    if (estimate != NULL && *estimate != NULL) {
        ct_alloc_free((*estimate)->alloc, *estimate);
        *estimate = NULL;
    }
}
