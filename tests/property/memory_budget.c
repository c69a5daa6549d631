/* SPDX-License-Identifier: Apache-2.0 */
/* labels: fast */
/* Activation checkpointing by budget, on random sizes and layouts: a larger budget never recomputes more; what is kept, and the live set,
 * stay under what the budget allows; 0 is full and 1 is none; at the bytes that selective keeps one block never recomputes more than it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/rng.h"
#include "model/model.h"
#include "passes/plan.h"
#include "train/step.h"

typedef struct shape {
    int64_t n_layers, rows, seq_len;
    int64_t degree[CT_AXIS_COUNT]; /* pp, dp_replicate, dp_shard, cp, tp, ep */
    ct_dtype compute;
    bool is_sequence_parallel;
} shape;

typedef struct outcome {
    int64_t whole, kept, largest_live;
    double cost;
    int32_t n_nodes;
} outcome;

static outcome planned(const shape *s, ct_recompute_mode mode, double budget)
{
    const ct_alloc *alloc = ct_alloc_system();
    ct_err err = {0};
    ct_tree *tree;
    ct_component *spec;
    ct_mesh mesh;
    cti_step *step = NULL;
    ct_plan *plan = NULL;
    const int64_t world = s->degree[CT_AXIS_DP_REPLICATE] * s->degree[CT_AXIS_DP_SHARD] * s->degree[CT_AXIS_TP];
    assert_int_equal(ct_tree_create(alloc, &tree, &err), CT_OK);
    assert_int_equal(cti_llama3_spec(tree, "debugmodel", &spec, &err), CT_OK);
    ct_component_find(spec, "model.layers")->n_children = (int32_t)s->n_layers;
    assert_int_equal(ct_mesh_init(&mesh, s->degree, world, 0, &err), CT_OK);
    const ct_optim_group group = {.pattern = ".*", .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1};
    const bool is_sharded = s->degree[CT_AXIS_DP_SHARD] > 1;
    const cti_step_options options = {.mesh = &mesh, .param_dtype = CT_DTYPE_F32, .compute_dtype = s->compute, .reduce_dtype = CT_DTYPE_F32,
                                      .batch = s->rows * ct_mesh_dp_degree(&mesh), .seq_len = s->seq_len, .loss_chunks = 8,
                                      .is_sequence_parallel = s->is_sequence_parallel,
                                      .recompute = {.mode = mode, .budget = budget, .reshard_blocks = is_sharded},
                                      .optim = {.groups = &group, .n_groups = 1, .max_norm = 1.0, .has_one_micro_batch = true}};
    if (cti_step_create(alloc, spec, &options, &step, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    ct_value_id keep[CTI_STEP_KEEPS];
    cti_step_keep(step, keep);
    const ct_plan_item item = {step->graph, keep, CTI_STEP_KEEPS};
    if (ct_plan_create(alloc, &item, 1, NULL, NULL, &plan, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    const outcome out = {step->recompute.whole_bytes, step->recompute.kept_bytes, plan->graphs[0].largest_live_bytes, step->recompute.again_cost,
                         ct_graph_order_len(step->graph)};
    ct_plan_destroy(&plan);
    cti_step_destroy(&step);
    ct_tree_destroy(&tree);
    return out;
}

static shape random_shape(uint64_t seed)
{
    const cti_rng_key key = cti_rng_key_make(seed, "memory_budget");
    const bool is_tp = cti_rng_below(key, 0, 3) == 0;
    shape s = {.n_layers = 1 + (int64_t)cti_rng_below(key, 1, 4),
               .rows = 1 + (int64_t)cti_rng_below(key, 2, 4),
               .seq_len = 16 * (1 + (int64_t)cti_rng_below(key, 3, 64)),
               .degree = {1, 1, 1 + (int64_t)cti_rng_below(key, 4, 3), 1, is_tp ? 2 : 1, 1},
               .compute = cti_rng_below(key, 5, 2) == 0 ? CT_DTYPE_F32 : CT_DTYPE_BF16};
    s.is_sequence_parallel = is_tp && cti_rng_below(key, 6, 2) == 0;
    return s;
}

static void check_shape(uint64_t seed)
{
    const shape s = random_shape(seed);
    const outcome none = planned(&s, CT_RECOMPUTE_NONE, 0.0), full = planned(&s, CT_RECOMPUTE_FULL, 0.0);
    const outcome selective = planned(&s, CT_RECOMPUTE_SELECTIVE, 0.0);
    const double all = (double)(none.kept - full.kept);
    outcome last = full;
    assert_int_equal(none.kept, none.whole);
    for (int i = 0; i <= 12; i++) {
        const double budget = i / 12.0;
        const outcome b = planned(&s, CT_RECOMPUTE_BUDGET, budget);
        if (b.cost > last.cost) {
            fail_msg("seed %llu: budget %g costs %g, a smaller one %g", (unsigned long long)seed, budget, b.cost, last.cost);
        }
        if ((double)b.kept > (double)full.kept + budget * all || (double)b.largest_live > (double)full.largest_live + budget * all) {
            fail_msg("seed %llu: budget %g keeps %lld of %lld to %lld bytes, %lld are alive at once, of full %lld", (unsigned long long)seed, budget,
                     (long long)b.kept, (long long)full.kept, (long long)none.kept, (long long)b.largest_live, (long long)full.largest_live);
        }
        if (i == 0) {
            assert_true(b.n_nodes == full.n_nodes && b.kept == full.kept && b.largest_live == full.largest_live);
        }
        last = b;
    }
    assert_true(last.n_nodes == none.n_nodes && last.kept == none.kept && last.largest_live == none.largest_live && last.cost <= 0.0);
    if (s.n_layers == 1) {
        const outcome as_much = planned(&s, CT_RECOMPUTE_BUDGET, (double)(selective.kept - full.kept) / all);
        if (as_much.cost > selective.cost) {
            fail_msg("seed %llu: at the bytes of selective %g is recomputed, by selective %g", (unsigned long long)seed, as_much.cost, selective.cost);
        }
    }
}

static void test_random_shapes(void **state)
{
    (void)state;
    const char *given = getenv("CTITAN_SEED");
    const uint64_t first = given != NULL ? strtoull(given, NULL, 10) : 1;
    printf("seeds %llu to %llu\n", (unsigned long long)first, (unsigned long long)first + 23);
    for (uint64_t seed = first; seed < first + 24; seed++) {
        check_shape(seed);
    }
}

/* A block of more nodes than all choices are weighed of: it is walked greedily, and the same holds. Every value is made of the two before
 * it; backward reads all or every third. */
static ct_recompute_report long_block(int n, int every, ct_recompute_mode mode, double budget)
{
    ct_err err = {0};
    ct_graph *g = NULL;
    ct_recompute_report report;
    ct_value_id v[64], last;
    assert_int_equal(ct_graph_create(ct_alloc_system(), "long", &g, &err), CT_OK);
    const ct_value_spec x = {"x", CT_DTYPE_F32, 2, {64, 64}, CT_VALUE_INPUT}, y = {"y", CT_DTYPE_F32, 2, {64, 64}, CT_VALUE_INPUT};
    assert_int_equal(ct_graph_add_value(g, &x, &v[0], &err), CT_OK);
    assert_int_equal(ct_graph_add_value(g, &y, &v[1], &err), CT_OK);
    ct_graph_set_program(g, CT_PROGRAM_FORWARD);
    assert_int_equal(ct_graph_set_scope(g, "layers.0.chain", &err), CT_OK);
    for (int i = 2; i < n; i++) {
        const ct_status st = i % 5 == 0 ? ct_op_add(g, v[i - 1], v[i - 2], &v[i], &err)
                                        : ct_op_matmul(g, v[i - 1], v[i - 1], v[i - 2], i % 2 == 0, i % 2 != 0, &v[i], &err);
        assert_int_equal(st, CT_OK);
    }
    ct_graph_set_program(g, CT_PROGRAM_BACKWARD);
    assert_int_equal(ct_graph_set_scope(g, "", &err), CT_OK);
    last = v[0];
    for (int i = n - 1; i >= 2; i -= every) {
        assert_int_equal(ct_op_cast(g, v[i], CT_DTYPE_BF16, &last, &err), CT_OK);
    }
    const ct_recompute_options options = {.mode = mode, .budget = budget};
    if (ct_pass_recompute(g, &options, &report, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    ct_graph_destroy(&g);
    return report;
}

static void test_long_blocks(void **state)
{
    (void)state;
    for (int every = 1; every <= 3; every += 2) {
        const ct_recompute_report none = long_block(40, every, CT_RECOMPUTE_NONE, 0.0), full = long_block(40, every, CT_RECOMPUTE_FULL, 0.0);
        ct_recompute_report last = full;
        assert_true(full.again_cost > 0.0 && full.kept_bytes < none.kept_bytes);
        for (int i = 0; i <= 40; i++) {
            const ct_recompute_report b = long_block(40, every, CT_RECOMPUTE_BUDGET, i / 40.0);
            assert_true(b.again_cost <= last.again_cost);
            assert_true((double)b.kept_bytes <= (double)full.kept_bytes + i / 40.0 * (double)(none.kept_bytes - full.kept_bytes));
            last = b;
        }
        assert_true(last.kept_bytes == none.kept_bytes && last.again_cost <= 0.0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_shapes), cmocka_unit_test(test_long_blocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
