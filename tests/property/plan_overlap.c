/* SPDX-License-Identifier: Apache-2.0 */
/* labels: fast */
/* The memory plan of the compiled step, for every way of recomputing, several sizes and layouts, with collectives in line and beside the
 * computation: no two values whose lives overlap share a byte unless one is a view of the other, updates it, takes the place of an input
 * that dies with it, or is a part of what a join makes of it; what a collective in flight reads and makes is alive until it is waited for;
 * nothing lies outside of the block. What joins must not share, on small graphs. A plan that does share is found out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "model/model.h"
#include "passes/plan.h"
#include "train/step.h"

typedef struct span {
    int64_t begin, end;  /* bytes */
    int32_t def, last;   /* positions */
    int32_t in_flight;   /* a collective beside the computation may use it before this position */
    bool used;
} span;

static bool shares_root(const ct_graph *g, ct_value_id a, ct_value_id b)
{
    while (ct_graph_value_c(g, a)->alias_of != CT_NO_VALUE) {
        a = ct_graph_value_c(g, a)->alias_of;
    }
    while (ct_graph_value_c(g, b)->alias_of != CT_NO_VALUE) {
        b = ct_graph_value_c(g, b)->alias_of;
    }
    return a == b;
}

static bool is_input_of(const ct_graph *g, ct_value_id value, ct_value_id of_producer_of)
{
    const ct_value *v = ct_graph_value_c(g, of_producer_of);
    const ct_node *node = v->producer >= 0 ? ct_graph_node_c(g, v->producer) : NULL;
    for (int32_t i = 0; node != NULL && i < node->n_in; i++) {
        if (node->in[i] >= 0 && shares_root(g, node->in[i], value)) {
            return (ct_op_row(node->op)->flags & (CT_OP_ELEMENTWISE | CT_OP_IN_PLACE)) != 0;
        }
    }
    return false;
}

static ct_value_id root_of(const ct_graph *g, ct_value_id id)
{
    while (ct_graph_value_c(g, id)->alias_of != CT_NO_VALUE) {
        id = ct_graph_value_c(g, id)->alias_of;
    }
    return id;
}

/* Is `part` an input of the join that makes `whole`, and does it lie where the join wants it? */
static bool is_in_its_place(const ct_graph *g, const ct_plan *plan, ct_value_id part, ct_value_id whole)
{
    const ct_value_id root = root_of(g, whole);
    const ct_value *v = ct_graph_value_c(g, root);
    const ct_node *node = v->producer >= 0 ? ct_graph_node_c(g, v->producer) : NULL;
    for (int32_t i = 0; node != NULL && i < node->n_in && (ct_op_row(node->op)->flags & CT_OP_JOIN); i++) {
        const int64_t at = ((const ct_attrs_flat_concat *)node->attrs)->offsets.items[i] * (int64_t)ct_dtype_size_bytes(v->dtype);
        if (shares_root(g, node->in[i], part) && plan->graphs[0].offset[part] == plan->graphs[0].offset[root] + at) {
            return true;
        }
    }
    return false;
}

/* All inputs of all joins lie in their output already. Returns how many there are. */
static int32_t all_joins_in_place(const ct_graph *g, const ct_plan *plan)
{
    int32_t n = 0;
    for (int32_t i = 0; i < ct_graph_order_len(g); i++) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[i]);
        for (int32_t k = 0; k < node->n_in && (ct_op_row(node->op)->flags & CT_OP_JOIN); k++, n++) {
            assert_true(is_in_its_place(g, plan, node->in[k], node->out[0]));
        }
    }
    return n;
}

/* What nodes of stream 1 read and make is in use until a node that waits for them, or the end of their program. */
static void note_flights(const ct_graph *g, span *s)
{
    const int32_t len = ct_graph_order_len(g);
    for (int32_t i = 0, number = 0; i < len; i++) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[i]);
        number = i > 0 && ct_graph_node_c(g, ct_graph_order(g)[i - 1])->program != node->program ? 0 : number;
        if (node->stream == 0) {
            continue;
        }
        number++;
        int32_t end = i + 1;
        while (end < len && ct_graph_node_c(g, ct_graph_order(g)[end])->program == node->program &&
               ct_graph_node_c(g, ct_graph_order(g)[end])->wait < number) {
            end++;
        }
        s[node->in[0]].in_flight = s[node->out[0]].in_flight = end;
    }
}

/* Returns how many pairs of values share memory; -1 where a pair does that may not, which `out_why` (256 bytes) then tells. */
static int64_t check_plan(const ct_graph *g, const ct_plan *plan, const ct_value_id *keep, int n_keep, char *out_why)
{
    const int32_t n = ct_graph_n_values(g), len = ct_graph_order_len(g);
    span *s = CT_NEW_ARRAY(ct_alloc_system(), span, n + 1, NULL);
    for (int32_t i = 0; i < len; i++) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[i]);
        for (int32_t k = 0; k < node->n_in + node->n_out; k++) {
            const ct_value_id id = k < node->n_in ? node->in[k] : node->out[k - node->n_in];
            if (id < 0) {
                continue;
            }
            const ct_value *v = ct_graph_value_c(g, id);
            if (!s[id].used) {
                s[id].def = v->producer < 0 ? 0 : i;
            }
            s[id].used = true;
            s[id].last = v->producer < 0 ? len : i; /* what no node makes is written by the host or persists */
            s[id].begin = plan->graphs[0].offset[id];
            s[id].end = s[id].begin + (int64_t)ct_value_size_bytes(v);
            assert_true(s[id].begin >= 0 && s[id].end <= plan->workspace_offset);
        }
    }
    for (int k = 0; k < n_keep; k++) {
        s[keep[k]].last = len;
    }
    note_flights(g, s);
    int64_t n_shared = 0;
    for (ct_value_id a = 0; a < n && n_shared >= 0; a++) {
        for (ct_value_id b = a + 1; b < n && n_shared >= 0; b++) {
            if (!s[a].used || !s[b].used || s[a].begin >= s[b].end || s[b].begin >= s[a].end) {
                continue;
            }
            n_shared++;
            const ct_value_id first = s[a].def <= s[b].def ? a : b, second = first == a ? b : a;
            if ((s[second].def > s[first].last && s[second].def >= s[first].in_flight) || shares_root(g, a, b)) {
                continue;
            }
            /* in place: the second begins where the first has its last reader, the node that makes it in place */
            if (s[second].def == s[first].last && s[second].def >= s[first].in_flight && is_input_of(g, first, second) &&
                s[a].begin == s[b].begin) {
                continue;
            }
            if (is_in_its_place(g, plan, first, second)) {
                continue;
            }
            (void)snprintf(out_why, 256, "values %d [%d, %d, in flight to %d] and %d [%d, %d] share memory while both live", first, s[first].def,
                           s[first].last, s[first].in_flight, second, s[second].def, s[second].last);
            n_shared = -1;
        }
    }
    ct_alloc_free(ct_alloc_system(), s);
    return n_shared;
}

static int64_t must_hold(const ct_graph *g, const ct_plan *plan, const ct_value_id *keep, int n_keep)
{
    char why[256] = "";
    const int64_t n_shared = check_plan(g, plan, keep, n_keep, why);
    if (n_shared < 0) {
        fail_msg("%s", why);
    }
    return n_shared;
}

/* The compiled step of llama3_debugmodel with its plan. */
typedef struct compiled {
    ct_tree *tree;
    ct_mesh mesh;
    cti_step *step;
    ct_plan *plan;
    ct_value_id keep[CTI_STEP_KEEPS];
} compiled;

static void compile(compiled *c, const int64_t degree[CT_AXIS_COUNT], const cti_step_options *options)
{
    const ct_alloc *alloc = ct_alloc_system();
    ct_err err = {0};
    ct_component *spec;
    const ct_optim_group group = {.pattern = ".*", .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1};
    int64_t n_ranks = 1;
    for (int a = 0; a < CT_AXIS_COUNT; a++) {
        n_ranks *= degree[a];
    }
    assert_int_equal(ct_mesh_init(&c->mesh, degree, n_ranks, 0, &err), CT_OK);
    assert_int_equal(ct_tree_create(alloc, &c->tree, &err), CT_OK);
    assert_int_equal(cti_llama3_spec(c->tree, "debugmodel", &spec, &err), CT_OK);
    cti_step_options o = *options;
    o.mesh = &c->mesh;
    o.optim.groups = &group;
    o.optim.n_groups = 1;
    if (cti_step_create(alloc, spec, &o, &c->step, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    cti_step_keep(c->step, c->keep);
    const ct_plan_item item = {c->step->graph, c->keep, CTI_STEP_KEEPS};
    assert_int_equal(ct_plan_create(alloc, &item, 1, NULL, NULL, &c->plan, &err), CT_OK);
    assert_true(must_hold(c->step->graph, c->plan, c->keep, CTI_STEP_KEEPS) > 0); /* the plan does reuse memory */
}

static void compiled_deinit(compiled *c)
{
    ct_plan_destroy(&c->plan);
    cti_step_destroy(&c->step);
    ct_tree_destroy(&c->tree);
}

static void test_plan(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1, 16}, {3, 40}, {8, 256}};
    static const int64_t one[CT_AXIS_COUNT] = {1, 1, 1, 1, 1, 1};
    for (size_t size = 0; size < 3; size++) {
        for (int mode = 0; mode < 6; mode++) {
            compiled c;
            compile(&c, one, &(cti_step_options){.param_dtype = CT_DTYPE_F32,
                                                 .compute_dtype = mode % 2 == 0 ? CT_DTYPE_F32 : CT_DTYPE_BF16,
                                                 .reduce_dtype = CT_DTYPE_F32,
                                                 .batch = sizes[size][0],
                                                 .seq_len = sizes[size][1],
                                                 .loss_chunks = 4,
                                                 .recompute = {.mode = (ct_recompute_mode)(mode / 2)},
                                                 .optim = {.max_norm = 1.0, .has_one_micro_batch = size == 1}});
            const int32_t n_layers = 6; /* in each q, k and v are one gradient, gate and up too */
            assert_int_equal(all_joins_in_place(c.step->graph, c.plan), c.step->build.n_params - 3 * n_layers);
            int64_t sum = c.plan->workspace_bytes;
            for (int k = 0; k < CT_VALUE_KIND_COUNT; k++) {
                sum += c.plan->class_bytes[k];
            }
            assert_int_equal(sum, c.plan->total_bytes);
            assert_true(c.plan->class_bytes[CT_VALUE_ACT] >= c.plan->graphs[0].largest_live_bytes);
            compiled_deinit(&c);
        }
    }
}

/* Layouts with collectives, in line and beside. */
static void test_layouts(void **state)
{
    (void)state;
    /* pp, dp_replicate, dp_shard, cp, tp, ep */
    static const int64_t degrees[][CT_AXIS_COUNT] = {{1, 1, 2, 1, 1, 1}, {1, 2, 1, 1, 1, 1}, {1, 2, 2, 1, 1, 1}, {1, 1, 2, 1, 2, 1}, {1, 2, 2, 1, 2, 1}};
    for (size_t i = 0; i < sizeof degrees / sizeof degrees[0]; i++) {
        for (int mode = 0; mode < 12; mode++) {
            compiled c;
            compile(&c, degrees[i], &(cti_step_options){.param_dtype = CT_DTYPE_F32,
                                                        .compute_dtype = mode % 2 == 0 ? CT_DTYPE_F32 : CT_DTYPE_BF16,
                                                        .reduce_dtype = CT_DTYPE_F32,
                                                        .batch = 8,
                                                        .seq_len = 64,
                                                        .loss_chunks = 2,
                                                        .is_sequence_parallel = true,
                                                        .is_overlapped = mode % 4 > 1,
                                                        .recompute = {.mode = (ct_recompute_mode)(mode / 4), .reshard_blocks = true},
                                                        .optim = {.max_norm = 1.0, .has_one_micro_batch = i % 2 == 0}});
            int32_t n_beside = 0;
            for (int32_t k = 0; k < ct_graph_order_len(c.step->graph); k++) {
                n_beside += ct_graph_node_c(c.step->graph, ct_graph_order(c.step->graph)[k])->stream == 1;
            }
            assert_int_equal(n_beside > 0, mode % 4 > 1);
            compiled_deinit(&c);
        }
    }
}

/* For each collective beside the computation, what it reads and makes is laid over what a kernel makes meanwhile: each such plan is found out. */
static void test_reuse_is_found(void **state)
{
    (void)state;
    static const int64_t fsdp[CT_AXIS_COUNT] = {1, 1, 2, 1, 1, 1};
    compiled c;
    char why[256];
    int32_t n_tried = 0;
    compile(&c, fsdp, &(cti_step_options){.compute_dtype = CT_DTYPE_F32, .reduce_dtype = CT_DTYPE_F32, .batch = 4, .seq_len = 32, .loss_chunks = 1,
                                          .is_overlapped = true, .recompute = {.reshard_blocks = true},
                                          .optim = {.max_norm = 1.0, .has_one_micro_batch = true}});
    const ct_graph *g = c.step->graph;
    int64_t *offset = c.plan->graphs[0].offset;
    for (int32_t i = 0; i < ct_graph_order_len(g); i++) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[i]);
        if (node->stream != 1) {
            continue;
        }
        int32_t k = i + 1; /* the first kernel behind: it runs meanwhile, or the collective would be in line */
        while (ct_op_row(ct_graph_node_c(g, ct_graph_order(g)[k])->op)->flags & (CT_OP_VIEW | CT_OP_COLLECTIVE)) {
            k++;
        }
        const ct_node *kernel = ct_graph_node_c(g, ct_graph_order(g)[k]);
        const ct_value_id victims[2] = {node->in[0], node->out[0]}, made = kernel->out[0];
        for (int v = 0; v < 2; v++) {
            if (ct_graph_value_c(g, victims[v])->kind != CT_VALUE_ACT || ct_graph_value_c(g, root_of(g, made))->kind != CT_VALUE_ACT) {
                continue;
            }
            const int64_t before = offset[made];
            offset[made] = offset[victims[v]];
            assert_int_equal(check_plan(g, c.plan, c.keep, CTI_STEP_KEEPS, why), -1);
            offset[made] = before;
            n_tried++;
        }
    }
    assert_true(n_tried > 12); /* gathers and reductions of six blocks */
    (void)must_hold(g, c.plan, c.keep, CTI_STEP_KEEPS);
    compiled_deinit(&c);
}

/* x -> two parts -> flat -> y. Lines are added behind; `placed`: which of the two parts must lie in the flat. */
static void test_what_joins_share(void **state)
{
    (void)state;
    static const struct {
        const char *values, *nodes;
        bool placed[2];
    } rows[] = {
        /* the plain case */
        {"", "#2 %3 = flat_concat(%1, %2) {offsets=\"0 32\", total=64} backward\n", {true, true}},
        /* a part that is read later still lies there */
        {"%5 act f32 [32]\n",
         "#2 %3 = flat_concat(%1, %2) {offsets=\"0 32\", total=64} backward\n"
         "#4 %5 = scale(%1) {alpha=2.0} backward\n", {true, true}},
        /* one value twice: the second time it is copied */
        {"", "#2 %3 = flat_concat(%1, %1) {offsets=\"0 32\", total=64} backward\n", {true, false}},
        /* a place off the plan's alignment */
        {"", "#2 %3 = flat_concat(%1, %2) {offsets=\"0 31\", total=64} backward\n", {true, false}},
        /* an update of a part */
        {"%5 act f32 [32] alias %1 0\n",
         "#2 %3 = flat_concat(%1, %2) {offsets=\"0 32\", total=64} backward\n"
         "#4 %5 = accumulate(%1, %0, %6) backward\n", {false, true}},
        /* an update of the whole */
        {"%5 act f32 [64] alias %3 0\n",
         "#2 %3 = flat_concat(%1, %2) {offsets=\"0 32\", total=64} backward\n"
         "#4 %5 = accumulate(%3, %7, %6) backward\n", {false, false}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[2048];
        ct_err err = {0};
        ct_graph *g = NULL;
        ct_plan *plan = NULL;
        const bool has_5 = rows[i].values[0] != '\0', shifted = strstr(rows[i].nodes, "0 31") != NULL;
        (void)snprintf(text, sizeof text,
                       "ctitan graph 1\n%%0 input f32 [32] \"x\"\n%%1 act f32 [32]\n%%2 act f32 [32]\n%%3 act f32 [64]\n%%4 act f32 [64]\n"
                       "%s%%6 input i32 [1] \"first\"\n%%7 input f32 [64] \"z\"\n"
                       "#0 %%1 = scale(%%0) {alpha=2.0} backward\n#1 %%2 = scale(%%0) {alpha=3.0} backward\n%s"
                       "#3 %%4 = scale(%%3) {alpha=2.0} backward\n",
                       has_5 ? rows[i].values : "%5 input f32 [1] \"none\"\n", rows[i].nodes);
        if (ct_graph_parse(ct_alloc_system(), text, strlen(text), "join", &g, &err) != CT_OK) {
            fail_msg("row %zu: %s", i, err.message);
        }
        const ct_value_id keep[1] = {4};
        const ct_plan_item item = {g, keep, 1};
        assert_int_equal(ct_plan_create(ct_alloc_system(), &item, 1, NULL, NULL, &plan, &err), CT_OK);
        const int64_t *offset = plan->graphs[0].offset;
        assert_int_equal(offset[1] == offset[3], rows[i].placed[0]);
        assert_int_equal(offset[2] == offset[3] + (shifted ? 31 : 32) * 4, rows[i].placed[1]);
        (void)must_hold(g, plan, keep, 1);
        ct_plan_destroy(&plan);
        ct_graph_destroy(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plan), cmocka_unit_test(test_layouts), cmocka_unit_test(test_reuse_is_found),
                                       cmocka_unit_test(test_what_joins_share)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
