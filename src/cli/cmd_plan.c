/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan plan`: what a run would take, for one rank of any number of them, on this machine or on a device that is not here. */
#include "cli/cmd_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/npu/npu.h"
#include "backend/null/null.h"
#include "base/base.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "model/model.h"
#include "train/planner.h"

extern char **environ;

static const char usage[] =
    "usage: " CTI_PROGRAM " plan --module llama3 --config llama3_8b [--ranks N] [--rank R] [--target DEVICE] [--json] [settings of train]\n\n"
    "Plans one rank of a run without running it: memory by class and where it is largest, work, collectives, and the least time that\n"
    "a step can take. Exit code 2 where the run does not fit, with changes that make it fit.\n\n"
    "  --ranks N        ranks of the run (1)\n"
    "  --rank R         the rank to plan (0)\n"
    "  --target DEVICE  cpu: this machine (the default), or a device that need not be here:\n";

typedef struct plan_args {
    int64_t n_ranks, rank;
    const char *target;
    bool as_json, wants_help;
    const char **rest; /* owns the array: what goes to the settings */
    int n_rest;
} plan_args;

static void print_help(void)
{
    printf("%s", usage);
    for (size_t i = 0; cti_target_at(i) != NULL; i++) {
        printf("                     %-16s %s\n", cti_target_at(i)->name, cti_target_at(i)->what);
    }
    printf("  --json           the same as JSON\n\n"
           "Memory is exact for this machine's CPU; for Ascend devices without what CANN's operators want for themselves, for others without any workspace.\n"
           "Every setting of `" CTI_PROGRAM " train` may be given: " CTI_PROGRAM " train --help lists them.\n");
}

static ct_status number(const char *name, const char *text, int64_t low, int64_t *out, ct_err *err)
{
    enum { MOST = 1 << 20 };
    return cti_parse_i64(text, out) && *out >= low && *out <= MOST
               ? CT_OK
               : CT_FAIL(err, CT_ERR_USAGE, "%s: '%s' is given, a number from %" PRId64 " to %d is wanted", name, text, low, MOST);
}

static ct_status parse(const ct_alloc *alloc, int argc, char **argv, plan_args *a, ct_err *err)
{
    static const char *const own[] = {"--dataloader.dataset", "--validator.dataloader.dataset"};
    enum { N_OWN = sizeof own / sizeof own[0] };
    *a = (plan_args){.n_ranks = 1, .target = "cpu"};
    a->rest = CT_NEW_ARRAY(alloc, const char *, argc + 2 * N_OWN, err);
    if (a->rest == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int i = 1; i < argc; i++) {
        const char *value;
        if ((value = cti_option_value("--ranks", argc, argv, &i)) != NULL) {
            CT_TRY(number("--ranks", value, 1, &a->n_ranks, err));
        } else if ((value = cti_option_value("--rank", argc, argv, &i)) != NULL) {
            CT_TRY(number("--rank", value, 0, &a->rank, err));
        } else if ((value = cti_option_value("--target", argc, argv, &i)) != NULL) {
            a->target = value;
        } else if (cti_str_eq(argv[i], "--json")) {
            a->as_json = true;
        } else if (cti_str_eq(argv[i], "--help") || cti_str_eq(argv[i], "-h")) {
            a->wants_help = true;
        } else {
            a->rest[a->n_rest++] = argv[i];
        }
    }
    /* A plan reads no data: a data set that would have to be fetched is no reason to refuse it. */
    for (int f = 0; f < N_OWN; f++) {
        bool is_given = false;
        for (int i = 1; i < argc; i++) {
            is_given |= cti_starts_with(argv[i], own[f]);
        }
        if (!is_given) {
            a->rest[a->n_rest++] = own[f];
            a->rest[a->n_rest++] = "c4_test";
        }
    }
    return a->rank < a->n_ranks ? CT_OK
                                : CT_FAIL(err, CT_ERR_USAGE, "--rank: %" PRId64 " is not one of %" PRId64 " ranks (--ranks)", a->rank,
                                          a->n_ranks);
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

static void print_row(const char *what, int64_t bytes)
{
    char text[32];
    printf("  %-34s %12s\n", what, cti_format_bytes(bytes, text));
}

static const struct {
    ct_value_kind kind;
    const char *name, *key;
} classes[] = {{CT_VALUE_PARAM, "parameters", "parameters"}, {CT_VALUE_STATE, "optimizer states", "optimizer_states"},
               {CT_VALUE_GRAD, "gradients", "gradients"},    {CT_VALUE_CONST, "tables", "tables"},
               {CT_VALUE_INPUT, "inputs", "inputs"},         {CT_VALUE_ACT, "activations", "activations"}};
enum { N_CLASSES = sizeof classes / sizeof classes[0] };

static void print_memory(const cti_run_estimate *e)
{
    char total[32], have[32];
    printf("memory of a rank\n");
    for (size_t i = 0; i < N_CLASSES; i++) {
        const bool holds_gradients = classes[i].kind == CT_VALUE_ACT && e->class_bytes[CT_VALUE_GRAD] == 0;
        if (e->class_bytes[classes[i].kind] > 0) {
            print_row(holds_gradients ? "activations and gradients" : classes[i].name, e->class_bytes[classes[i].kind]);
        }
    }
    print_row("workspace", e->workspace_bytes);
    if (e->engine_bytes > 0) {
        print_row("HCCL's buffers, beside the block", e->engine_bytes);
    }
    printf("  %-34s %12s", "in one block", cti_format_bytes(e->total_bytes, total));
    if (e->memory_bytes > 0) {
        printf("   %.1f %% of %s: %s", 100.0 * (double)e->total_bytes / (double)e->memory_bytes, cti_format_bytes(e->memory_bytes, have),
               e->fits ? "fits" : "DOES NOT FIT");
    }
    printf("\n  most is alive at the %s: %s, of which\n", e->largest_live_at, cti_format_bytes(e->largest_live_bytes, total));
    for (int i = 0; i < e->n_live; i++) {
        const cti_estimate_live *l = &e->live[i];
        printf("  %12s  %4" PRId64 " x %-26s %s of %s\n", cti_format_bytes(l->size_bytes, total), l->count, l->shape, l->op,
               l->scope[0] != '\0' ? l->scope : "the model");
    }
}

/* What activation checkpointing chose. */
static void print_recompute(const cti_run_estimate *e)
{
    char kept[32], whole[32], blocks[48];
    if (e->shape.step.recompute.mode == CT_RECOMPUTE_NONE) {
        return;
    }
    printf("activation checkpointing keeps %s of %s that backward reads of the blocks, and runs again\n",
           cti_format_bytes(e->recompute.kept_bytes, kept), cti_format_bytes(e->recompute.whole_bytes, whole));
    for (int i = 0; i < e->n_again; i++) {
        const cti_estimate_again *a = &e->again[i];
        (void)snprintf(blocks, sizeof blocks, "(%" PRId64 " to %" PRId64 ")", a->first, a->last);
        printf("  %4" PRId64 " x %-10s of %-34s %-12s %9.3f TFLOP\n", a->count, a->op, a->scope, blocks, a->flops / 1e12);
    }
    if (e->n_again == 0) {
        printf("  nothing\n");
    }
}

static const char *seconds_text(double s, char buf[32])
{
    (void)(s >= 1.0 ? snprintf(buf, 32, "%.2f s", s) : snprintf(buf, 32, "%.2f ms", s * 1e3));
    return buf;
}

static void print_work(const cti_run_estimate *e, bool is_here)
{
    char text[32], more[32], bytes[32], reduced[32];
    const double sum = e->forward_flops + e->backward_flops + e->optimizer_flops;
    printf("work of a step and rank\n");
    printf("  %-34s %9.3f TFLOP (forward %.3f, backward %.3f of which recomputed %.3f)\n", "arithmetic", sum / 1e12, e->forward_flops / 1e12,
           e->backward_flops / 1e12, e->recompute_flops / 1e12);
    print_row("read and written by all nodes", (int64_t)e->memory_traffic_bytes);
    for (int a = 0; a < CT_AXIS_COUNT; a++) {
        const cti_estimate_traffic *t = &e->traffic[a];
        if (t->n_gathers + t->n_scatters + t->n_reduces > 0) {
            printf("  sent over %-24s %12s (%" PRId64 " all_gather %s, %" PRId64 " reduce_scatter %s, %" PRId64 " all_reduce %s)\n",
                   ct_axis_name((ct_axis)a), cti_format_bytes((int64_t)(t->gather_bytes + t->scatter_bytes + t->reduce_bytes), text), t->n_gathers,
                   cti_format_bytes((int64_t)t->gather_bytes, more), t->n_scatters, cti_format_bytes((int64_t)t->scatter_bytes, bytes), t->n_reduces,
                   cti_format_bytes((int64_t)t->reduce_bytes, reduced));
        }
    }
    if (e->compute_s > 0.0) {
        const double tokens = (double)(e->shape.global_batch * e->shape.seq_len) / (double)e->mesh.world_size;
        const double least = e->compute_s > e->comm_s ? e->compute_s : e->comm_s, inline_s = e->compute_s + e->comm_s;
        printf("time of a step, at the %s\n", is_here ? "peak measured on this machine, memory not counted" : "device's published rates");
        printf("  %-34s %12s   %.0f tokens/s a rank\n", "at least (all overlapped)", seconds_text(least, text), tokens / least);
        if (e->comm_s > 0.0) {
            printf("  %-34s %12s   %.0f tokens/s a rank\n", "collectives in line with compute", seconds_text(inline_s, text), tokens / inline_s);
        }
        printf("  kernels reach a share of these rates: docs/benchmarks.md\n");
    } else {
        printf("  the rates of this device are not known: no time\n");
    }
}

static void print_text(const cti_run_estimate *e, const cti_run_config *run, const plan_args *a, ct_dtype compute)
{
    char params[32], flops[32], budget[128];
    const cti_run_shape *s = &e->shape;
    const cti_model_spec_config *names = ct_component_values(ct_component_find(run->root, "model_spec"));
    printf("%s %s: %s parameters, %s FLOPs a token at %" PRId64 " (6 N and the whole square of attention)\n", names->name, names->flavor,
           cti_format_thousands(e->n_params, params), cti_format_thousands((int64_t)e->flops_per_token, flops), s->seq_len);
    printf("rank %" PRId64 " of %" PRId64, a->rank, a->n_ranks);
    for (int axis = 0; axis < CT_AXIS_COUNT; axis++) {
        if (e->mesh.degree[axis] > 1) {
            printf(", %s %" PRId64, ct_axis_name((ct_axis)axis), e->mesh.degree[axis]);
        }
    }
    printf("; on %s, computing in %s\n", e->device, ct_dtype_name(compute));
    printf("a step: %" PRId64 " rows of %" PRId64 " tokens over all ranks, %" PRId64 " micro-batch(es) of %" PRId64 " rows a rank; %d nodes\n",
           s->global_batch, s->seq_len, s->accumulation, s->local_batch, e->n_nodes);
    printf("the run: %s\n", cti_budget_text(&e->budget, budget));
    print_memory(e);
    print_recompute(e);
    print_work(e, cti_str_eq(a->target, "cpu"));
}

static ct_status print_json(const ct_alloc *alloc, const cti_run_estimate *e, ct_err *err)
{
    json_t *memory = json_object(), *live = json_array(), *again = json_array(), *traffic = json_object(), *advice = json_array();
    for (size_t i = 0; i < N_CLASSES; i++) {
        json_object_set_new(memory, classes[i].key, json_integer((json_int_t)e->class_bytes[classes[i].kind]));
    }
    json_object_set_new(memory, "workspace", json_integer((json_int_t)e->workspace_bytes));
    json_object_set_new(memory, "engine_buffers", json_integer((json_int_t)e->engine_bytes));
    json_object_set_new(memory, "total", json_integer((json_int_t)e->total_bytes));
    json_object_set_new(memory, "device", json_integer((json_int_t)e->memory_bytes));
    json_object_set_new(memory, "largest_live", json_integer((json_int_t)e->largest_live_bytes));
    for (int i = 0; i < e->n_live; i++) {
        json_array_append_new(live, json_pack("{s:s, s:s, s:s, s:I, s:I}", "scope", e->live[i].scope, "op", e->live[i].op, "shape", e->live[i].shape,
                                              "count", (json_int_t)e->live[i].count, "bytes", (json_int_t)e->live[i].size_bytes));
    }
    for (int a = 0; a < CT_AXIS_COUNT; a++) {
        const cti_estimate_traffic *t = &e->traffic[a];
        json_object_set_new(traffic, ct_axis_name((ct_axis)a), json_pack("{s:I, s:f, s:I, s:f, s:I, s:f}", "all_gathers", (json_int_t)t->n_gathers,
                            "all_gather_bytes", t->gather_bytes, "reduce_scatters", (json_int_t)t->n_scatters, "reduce_scatter_bytes",
                            t->scatter_bytes, "all_reduces", (json_int_t)t->n_reduces, "all_reduce_bytes", t->reduce_bytes));
    }
    for (int i = 0; i < e->n_advice; i++) {
        json_array_append_new(advice, json_string(e->advice[i]));
    }
    for (int i = 0; i < e->n_again; i++) {
        json_array_append_new(again, json_pack("{s:s, s:s, s:I, s:f}", "scope", e->again[i].scope, "op", e->again[i].op, "count",
                                               (json_int_t)e->again[i].count, "flops", e->again[i].flops));
    }
    json_t *json = json_pack("{s:s, s:b, s:I, s:f, s:o, s:s, s:o, s:f, s:f, s:f, s:f, s:f, s:o, s:f, s:f, s:o, s:I, s:I, s:o}", "device", e->device, "fits", e->fits,
                             "parameters", (json_int_t)e->n_params, "flops_per_token", e->flops_per_token, "memory_bytes", memory, "largest_live_at",
                             e->largest_live_at, "live", live, "forward_flops", e->forward_flops, "backward_flops", e->backward_flops,
                             "recompute_flops", e->recompute_flops, "optimizer_flops", e->optimizer_flops, "memory_traffic_bytes",
                             e->memory_traffic_bytes, "collectives", traffic, "compute_seconds", e->compute_s, "collective_seconds", e->comm_s,
                             "advice", advice, "block_bytes", (json_int_t)e->recompute.whole_bytes, "kept_block_bytes",
                             (json_int_t)e->recompute.kept_bytes, "run_again", again);
    if (json == NULL) {
        return CT_FAIL(err, CT_ERR_MEMORY, "no memory for the plan as JSON");
    }
    json_object_set_new(json, "steps", json_integer((json_int_t)e->budget.steps)); /* 0: only the data can tell */
    json_object_set_new(json, "tokens", json_integer((json_int_t)(e->budget.tokens > 0 ? e->budget.tokens : e->budget.steps * e->budget.step_tokens)));
    char *text = NULL;
    const ct_status st = cti_json_dump(alloc, json, 2, &text, err);
    json_decref(json);
    if (st == CT_OK) {
        printf("%s\n", text);
    }
    ct_alloc_free(alloc, text);
    return st;
}

static ct_dtype compute_dtype(const cti_run_config *run, const cti_target *target, const ct_alloc *alloc, const ct_backend *backend)
{
    bool has_bf16 = target != NULL;
    void *device = NULL;
    ct_device_facts facts = {0};
    if (target == NULL && backend->device_open(alloc, 0, &device, NULL) == CT_OK) {
        has_bf16 = backend->device_facts(device, &facts, NULL) == CT_OK && facts.has_native_bf16;
        backend->device_close(&device);
    }
    return cti_run_compute_dtype(run->root, has_bf16);
}

static ct_status plan(const ct_alloc *alloc, const cti_env *env, cti_run_config *run, const plan_args *a, bool *out_fits, ct_err *err)
{
    cti_overrides_applied applied;
    const cti_target *target = NULL;
    if (!cti_str_eq(a->target, "cpu")) {
        CT_TRY(cti_target_find(a->target, &target, err));
    }
    CT_TRY(cti_run_config_override(alloc, env->registry, env->plugins, run, a->n_ranks, true, &applied, err));
    const ct_backend *backend = target == NULL ? cti_backends()[0] : target->soc != NULL ? ct_backend_npu() : ct_backend_null();
    const cti_plan_request request = {.run = run, .n_ranks = a->n_ranks, .rank = a->rank, .backend = backend, .target = target,
                                      .compute_dtype = compute_dtype(run, target, alloc, backend)};
    cti_run_estimate *e = NULL;
    CT_TRY(cti_run_estimate_create(alloc, &request, &e, err));
    ct_status st = CT_OK;
    if (a->as_json) {
        st = print_json(alloc, e, err);
    } else {
        print_text(e, run, a, request.compute_dtype);
        for (int i = 0; i < e->n_advice; i++) {
            printf("%s%s\n", i == 0 ? "it would fit with\n  " : "  ", e->advice[i]);
        }
        if (!e->fits && e->n_advice == 0) {
            printf("no batch, recomputation or number of ranks alone makes it fit\n");
        }
    }
    if (st == CT_OK && fflush(stdout) != 0) {
        st = CT_FAIL(err, CT_ERR_IO, "standard output cannot be written");
    }
    *out_fits = e->fits;
    cti_run_estimate_destroy(&e);
    return st;
}

int cti_cmd_plan(int argc, char **argv)
{
    const ct_alloc *alloc = ct_alloc_system();
    ct_err err = {0};
    cti_env env = {0};
    cti_run_config run = {0};
    cti_problems problems = {.text = {.alloc = alloc}};
    plan_args a;
    bool fits = true;
    ct_status st;
    CT_TRY_GOTO(st, parse(alloc, argc, argv, &a, &err), out);
    if (a.wants_help) {
        print_help();
        goto out;
    }
    CT_TRY_GOTO(st, cti_env_create(alloc, &env, &err), out);
    const cti_resolve_options options = {.argc = a.n_rest,
                                         .argv = a.rest,
                                         .environ_list = (const char *const *)environ,
                                         .world_size = a.n_ranks,
                                         .plan_only = true};
    CT_TRY_GOTO(st, cti_run_config_resolve(alloc, env.registry, env.plugins, &options, &problems, &run, &err), out);
    st = plan(alloc, &env, &run, &a, &fits, &err);
out:;
    int code = ct_status_exit_code(st);
    if (problems.n > 0) {
        fprintf(stderr, "%s", cti_str_text(&problems.text));
    } else if (st != CT_OK) {
        code = cti_report("plan", st, &err);
    } else if (!fits) {
        code = ct_status_exit_code(CT_ERR_USAGE);
    }
    ct_alloc_free(alloc, (void *)(uintptr_t)a.rest);
    cti_problems_deinit(&problems);
    cti_run_config_deinit(&run);
    cti_env_deinit(alloc, &env);
    return code;
}
