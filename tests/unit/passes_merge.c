/* SPDX-License-Identifier: Apache-2.0 */
/* labels: fast */
/* The passes that merge products and take sums into the nodes before them: a merged graph computes the same bits, what does not match stays
 * as it was, and the compiled step has no copy, no sum and no rope of its own left. */
#include "op/interp.h"

#include "backend/cpu/cpu.h"
#include "backend/ref/ref.h"
#include "base/rng.h"
#include "model/model.h"
#include "train/step.h"

enum { S = 5, D = 8, F = 12, H = 2, K = 1, HEAD = 4 };

/* A block's projections with views of one group; the letters of `how` break one thing each. */
static ct_graph *projections(char how, ct_value_id *out)
{
    ct_err err = {0};
    ct_graph *g;
    ct_value_id flat, w[6], x, pos, table, q[3], gu[2];
    const int64_t rows[6] = {H * HEAD, K * HEAD, K * HEAD, F, F, D}; /* wq, wk, wv, w1, w3 and one more */
    int64_t offsets[6], ndims[6], dims[12], at = 0;
    for (int i = 0; i < 6; i++) {
        at += how == 'g' ? 32 : 0; /* gaps between neighbours */
        offsets[i] = at;
        ndims[i] = 2;
        dims[2 * i] = rows[i];
        dims[2 * i + 1] = D;
        at += rows[i] * D;
    }
#define OK(expr)                                  \
    do {                                          \
        if ((expr) != CT_OK) {                    \
            fail_msg("%s: %s", #expr, err.message); \
        }                                         \
    } while (0)
    OK(ct_graph_create(ct_alloc_system(), "merge", &g, &err));
    OK(ct_graph_add_value(g, &(ct_value_spec){"flat", CT_DTYPE_F32, 1, {at}, CT_VALUE_INPUT}, &flat, &err));
    OK(ct_graph_add_value(g, &(ct_value_spec){"x", CT_DTYPE_F32, 3, {1, S, D}, CT_VALUE_INPUT}, &x, &err));
    OK(ct_graph_add_value(g, &(ct_value_spec){"pos", CT_DTYPE_I32, 2, {1, S}, CT_VALUE_INPUT}, &pos, &err));
    OK(ct_graph_add_value(g, &(ct_value_spec){"table", CT_DTYPE_F32, 3, {S, HEAD / 2, 2}, CT_VALUE_INPUT}, &table, &err));
    const ct_attrs_flat_split split = {{6, offsets}, {6, ndims}, {12, dims}};
    OK(ct_op_emit(g, CT_OP_flat_split, &split, &flat, 1, w, &err));
    for (int i = 0; i < 3; i++) {
        OK(ct_op_matmul(g, x, w[i], CT_NO_VALUE, false, true, &q[i], &err));
        OK(ct_op_reshape(g, q[i], (int64_t[]){1, S, -1, HEAD}, 4, &q[i], &err));
        if (i == 0 || (i == 1 && how != 'r')) {
            OK(ct_op_rope(g, q[i], pos, table, &q[i], &err));
        }
    }
    for (int i = 0; i < 2; i++) {
        OK(ct_op_matmul(g, x, w[3 + i], CT_NO_VALUE, false, true, &gu[i], &err));
    }
    out[0] = q[0];
    out[1] = q[1];
    out[2] = q[2];
    OK(ct_op_silu_mul(g, gu[how == 's'], gu[how != 's'], &out[3], &err)); /* s: gate and up the other way round */
    OK(ct_op_matmul(g, x, w[how == 'u' ? 0 : 5], CT_NO_VALUE, false, true, &out[4], &err)); /* u: wq is read twice */
    if (how == 'u') {
        OK(ct_op_add(g, gu[0], gu[0], &out[5], &err)); /* and the gate too */
    }
    for (int i = 0; i < 6; i++) { /* readers of the results, so that they have some to lose */
        OK(i == 5 && how != 'u' ? ct_op_scale(g, x, 2.0, &out[5], &err) : ct_op_scale(g, out[i], 2.0, &out[i], &err));
    }
    return g;
}

static int count(const ct_graph *g, int32_t op)
{
    int n = 0;
    for (int32_t i = 0; i < ct_graph_order_len(g); i++) {
        n += ct_graph_node_c(g, ct_graph_order(g)[i])->op == op;
    }
    return n;
}

/* Of these, what backward computes again. */
static int count_again(const ct_graph *g, int32_t op)
{
    int n = 0;
    for (int32_t i = 0; i < ct_graph_order_len(g); i++) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[i]);
        n += node->op == op && node->is_recompute && node->program == CT_PROGRAM_BACKWARD;
    }
    return n;
}

static void run(const ct_graph *g, const ct_backend *backend, interp *out)
{
    interp_init(out, g, backend);
    for (ct_value_id id = 0; id < 4; id++) {
        const cti_rng_key key = cti_rng_key_make(5, ct_graph_value_c(g, id)->name);
        for (int64_t i = 0, n = ct_value_numel(ct_graph_value_c(g, id)); i < n; i++) {
            interp_set(out, id, i, id == 2 ? (double)i : cti_rng_normal(key, (uint64_t)i));
        }
    }
    interp_run(out, CT_PROGRAM_FORWARD);
}

static void test_same_bits(void **state)
{
    (void)state;
    ct_err err = {0};
    for (int b = 0; b < 2; b++) {
        const ct_backend *backend = b == 0 ? ct_backend_ref() : ct_backend_cpu();
        ct_value_id out[6], merged_out[6];
        interp plain, merged;
        ct_graph *g = projections(' ', out), *m = projections(' ', merged_out);
        OK(ct_pass_merge(m, &err));
        assert_int_equal(count(m, CT_OP_qkv_rope), 1);
        assert_int_equal(count(m, CT_OP_swiglu), 1);
        assert_int_equal(count(m, CT_OP_matmul), 3);
        assert_int_equal(count(m, CT_OP_flat_split), 1);
        OK(ct_pass_fuse(m, &err));
        assert_int_equal(count(m, CT_OP_matmul_swiglu), 1);
        assert_int_equal(count(m, CT_OP_matmul), 2);
        assert_int_equal(count(m, CT_OP_swiglu), 0);
        assert_int_equal(count(m, CT_OP_rope) + count(m, CT_OP_silu_mul) + count(m, CT_OP_reshape), 0);
        run(g, backend, &plain);
        run(m, backend, &merged);
        for (int i = 0; i < 6; i++) {
            for (int64_t e = 0, n = ct_value_numel(ct_graph_value_c(g, out[i])); e < n; e++) {
                const double was = interp_get(&plain, out[i], e), is = interp_get(&merged, merged_out[i], e);
                assert_memory_equal(&was, &is, sizeof was);
            }
        }
        interp_deinit(&plain);
        interp_deinit(&merged);
        ct_graph_destroy(&g);
        ct_graph_destroy(&m);
    }
}

static void test_what_stays(void **state)
{
    (void)state;
    static const struct {
        char how;
        int qkv, swiglu; /* merged all the same */
    } rows[] = {{'g', 0, 0}, {'r', 0, 1}, {'s', 1, 0}, {'u', 0, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ct_err err = {0};
        ct_value_id out[6];
        ct_graph *g = projections(rows[i].how, out);
        OK(ct_pass_merge(g, &err));
        assert_int_equal(count(g, CT_OP_qkv_rope), rows[i].qkv);
        assert_int_equal(count(g, CT_OP_swiglu), rows[i].swiglu);
        assert_int_equal(count(g, CT_OP_matmul), 6 - 2 * rows[i].qkv - rows[i].swiglu);
        ct_graph_destroy(&g);
    }
}

/* Nothing but a node's own work is left of the debug model's step. */
static void test_step(void **state)
{
    (void)state;
    const ct_alloc *alloc = ct_alloc_system();
    ct_err err = {0};
    ct_tree *tree;
    ct_component *spec;
    ct_mesh mesh;
    const int64_t degree[CT_AXIS_COUNT] = {1, 1, 1, 1, 1, 1};
    const ct_optim_group group = {.pattern = ".*", .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1};
    OK(ct_mesh_init(&mesh, degree, 1, 0, &err));
    for (int mode = CT_RECOMPUTE_NONE; mode <= CT_RECOMPUTE_FULL; mode++) {
        OK(ct_tree_create(alloc, &tree, &err));
        OK(cti_llama3_spec(tree, "debugmodel", &spec, &err));
        const cti_step_options o = {.mesh = &mesh,
                                    .batch = 2,
                                    .seq_len = 16,
                                    .loss_chunks = 1,
                                    .recompute = {.mode = (ct_recompute_mode)mode},
                                    .optim = {.groups = &group, .n_groups = 1, .max_norm = 1.0, .has_one_micro_batch = true}};
        cti_step *s;
        OK(cti_step_create(alloc, spec, &o, &s, &err));
        static const int32_t gone[] = {CT_OP_add,      CT_OP_rope,          CT_OP_slice, CT_OP_slice_grad, CT_OP_silu_mul,
                                       CT_OP_transpose, CT_OP_silu_mul_grad, CT_OP_concat, CT_OP_accumulate, CT_OP_cast};
        for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) {
            if (count(s->graph, gone[i]) != 0) {
                fail_msg("mode %d: the step has %d of %s", mode, count(s->graph, gone[i]), ct_op_row(gone[i])->name);
            }
        }
        assert_int_equal(count(s->graph, CT_OP_qkv_rope_grad), 6);
        assert_int_equal(count(s->graph, CT_OP_swiglu_grad), 6);
        /* Selective: the product (3rd of its block) is kept, its swiglu alone is made again, of what is kept. */
        assert_int_equal(count(s->graph, CT_OP_matmul_swiglu), mode == CT_RECOMPUTE_FULL ? 12 : 6);
        assert_int_equal(count_again(s->graph, CT_OP_matmul_swiglu), mode == CT_RECOMPUTE_FULL ? 6 : 0);
        assert_int_equal(count(s->graph, CT_OP_swiglu), mode == CT_RECOMPUTE_SELECTIVE ? 6 : 0);
        assert_int_equal(count_again(s->graph, CT_OP_swiglu), mode == CT_RECOMPUTE_SELECTIVE ? 6 : 0);
        cti_step_destroy(&s);
        ct_tree_destroy(&tree);
    }
}

/* What reads the product before its swiglu holds them apart; what reads it behind finds it in the node of both. */
static void test_readers(void **state)
{
    (void)state;
    for (int is_before = 0; is_before < 2; is_before++) {
        ct_err err = {0};
        ct_graph *g;
        ct_value_id x, w, gu, y, other;
        OK(ct_graph_create(ct_alloc_system(), "readers", &g, &err));
        OK(ct_graph_add_value(g, &(ct_value_spec){"x", CT_DTYPE_F32, 2, {S, D}, CT_VALUE_INPUT}, &x, &err));
        OK(ct_graph_add_value(g, &(ct_value_spec){"w", CT_DTYPE_F32, 2, {2 * F, D}, CT_VALUE_INPUT}, &w, &err));
        OK(ct_op_matmul(g, x, w, CT_NO_VALUE, false, true, &gu, &err));
        if (is_before) {
            OK(ct_op_scale(g, gu, 2.0, &other, &err));
        }
        OK(ct_op_emit(g, CT_OP_swiglu, NULL, &gu, 1, &y, &err));
        if (!is_before) {
            OK(ct_op_scale(g, gu, 2.0, &other, &err));
        }
        OK(ct_pass_fuse(g, &err));
        assert_int_equal(count(g, CT_OP_matmul_swiglu), !is_before);
        assert_int_equal(count(g, CT_OP_matmul), is_before);
        const ct_node *reader = ct_graph_node_c(g, ct_graph_value_c(g, other)->producer);
        const ct_node *maker = ct_graph_node_c(g, ct_graph_value_c(g, reader->in[0])->producer);
        assert_int_equal(maker->op, is_before ? CT_OP_matmul : CT_OP_matmul_swiglu);
        ct_graph_destroy(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits), cmocka_unit_test(test_what_stays), cmocka_unit_test(test_step),
                                       cmocka_unit_test(test_readers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
