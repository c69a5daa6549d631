/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: model component config passes autodiff ops ir mesh base */
/* labels: fast */
/* Weights that are joined: what ct_build_join makes of the list of parameters and refuses, how their rows are cut by tensor parallelism, where they
 * lie in Flat groups and what one view of them is. */
#include "base/base.h"
#include "component/component.h"
#include "mesh/flat.h"
#include "mesh/mesh.h"
#include "mesh/placement.h"
#include "model/model.h"
#include "passes/passes.h"
#include "unit/base_test.h"

#define OK(expr)                                    \
    do {                                            \
        if ((expr) != CT_OK) {                      \
            fail_msg("%s: %s", #expr, err.message); \
        }                                           \
    } while (0)

static const ct_init zero = {.kind = CT_INIT_CONST};

static ct_build new_build(void)
{
    ct_err err = {0};
    ct_build b = {.mode = CT_BUILD_TRAIN, .param_dtype = CT_DTYPE_F32};
    OK(ct_graph_create(ct_alloc_system(), "join", &b.graph, &err));
    return b;
}

static ct_value_id param(ct_build *b, const char *name, int64_t rows, int64_t cols)
{
    ct_err err = {0};
    ct_value_id id;
    OK(ct_build_param(b, name, (int64_t[]){rows, cols}, 2, &zero, &id, &err));
    return id;
}

static void parts_stay_parameters(void **state)
{
    (void)state;
    ct_err err = {0};
    ct_build b = new_build();
    OK(ct_graph_push_scope(b.graph, "layers.0", &err));
    ct_value_id w[3] = {param(&b, "w1.weight", 6, 4), param(&b, "w3.weight", 6, 4), param(&b, "w2.weight", 4, 6)}, w13, again;
    OK(ct_build_join(&b, "w13.weight", w, 2, &w13, &err));
    ct_graph_pop_scope(b.graph);
    const ct_value *v = ct_graph_value_c(b.graph, w13);
    assert_string_equal(v->name, "layers.0.w13.weight");
    assert_int_equal(v->kind, CT_VALUE_PARAM);
    assert_int_equal(v->dims[0], 12);
    assert_int_equal(v->dims[1], 4);
    assert_int_equal(b.n_params, 3);
    for (int32_t i = 0; i < 2; i++) {
        assert_int_equal(b.params[i].value, w13);
        assert_int_equal(b.params[i].part, i);
        assert_int_equal(b.params[i].n_parts, 2);
        assert_int_equal(b.params[i].dims[0], 6);
    }
    assert_string_equal(b.params[1].name, "layers.0.w3.weight");
    assert_int_equal(b.params[2].n_parts, 0);
    assert_int_equal(ct_build_param(&b, "/layers.0.w3.weight", (int64_t[]){6, 4}, 2, &zero, &again, &err), CT_ERR_STATE);
    assert_non_null(strstr(err.message, "'layers.0.w3.weight' is part of 'layers.0.w13.weight'"));
    ct_graph_destroy(&b.graph);
}

static void what_cannot_be_joined_is_refused(void **state)
{
    (void)state;
    static const struct {
        int pick[3], n;
        ct_status status;
        const char *wanted;
    } rows[] = {
        {{0}, 1, CT_ERR_RANGE, "2 to 255 can"},
        {{0, 2}, 2, CT_ERR_STATE, "number 1"},    /* another lies between them */
        {{1, 0}, 2, CT_ERR_STATE, "number 1"},    /* the other way round */
        {{1, 2}, 2, CT_ERR_SHAPE, "other dims"},
        {{0, 0}, 2, CT_ERR_STATE, "number 1"},
        {{3, 3}, 2, CT_ERR_STATE, "number 0"},    /* an input */
        {{4, 5}, 2, CT_ERR_STATE, "an op reads 'd'"},
        {{6, 7}, 2, CT_ERR_STATE, "number 0"},    /* joined already */
        {{0, 1}, 2, CT_ERR_RANGE, "'a'"},         /* the name is taken */
    };
    for (size_t i = 0; i < N_OF(rows); i++) {
        ct_err err = {0};
        ct_build b = new_build();
        ct_value_id w[8], joined, y;
        w[0] = param(&b, "a", 6, 4);
        w[1] = param(&b, "b", 6, 4);
        w[2] = param(&b, "c", 4, 4);
        OK(ct_graph_add_value(b.graph, &(ct_value_spec){"x", CT_DTYPE_F32, 2, {2, 4}, CT_VALUE_INPUT}, &w[3], &err));
        w[4] = param(&b, "d", 6, 4);
        w[5] = param(&b, "e", 6, 4);
        w[6] = param(&b, "f", 6, 4);
        w[7] = param(&b, "g", 6, 4);
        OK(ct_op_matmul(b.graph, w[3], w[4], CT_NO_VALUE, false, true, &y, &err));
        OK(ct_build_join(&b, "fg", w + 6, 2, &joined, &err));
        ct_value_id picked[3];
        for (int k = 0; k < rows[i].n; k++) {
            picked[k] = w[rows[i].pick[k]];
        }
        const bool is_taken = i == N_OF(rows) - 1;
        const ct_status st = ct_build_join(&b, is_taken ? "a" : "joined", picked, rows[i].n, &joined, &err);
        if (st != rows[i].status || strstr(err.message, rows[i].wanted) == NULL) {
            fail_msg("row %zu: status %d, '%s'", i, (int)st, err.message);
        }
        assert_int_equal(b.params[0].n_parts, 0); /* as it was */
        ct_graph_destroy(&b.graph);
    }
}

/* A rank of two has its rows of each part, and swiglu's halves are its gate and its up; ops that know of no parts refuse. */
static void rows_of_each_part_are_cut(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        ct_err err = {0};
        ct_mesh mesh;
        const int64_t degree[CT_AXIS_COUNT] = {[CT_AXIS_PP] = 1, [CT_AXIS_DP_REPLICATE] = 1, [CT_AXIS_DP_SHARD] = 1, [CT_AXIS_CP] = 1, [CT_AXIS_TP] = 2,
                                               [CT_AXIS_EP] = 1};
        OK(ct_mesh_init(&mesh, degree, 2, 1, &err));
        ct_build b = new_build();
        ct_value_id x, w13, gu, y, out;
        OK(ct_graph_add_value(b.graph, &(ct_value_spec){"x", CT_DTYPE_F32, 3, {1, 2, 4}, CT_VALUE_INPUT}, &x, &err));
        OK(ct_graph_push_scope(b.graph, "layers.0.feed_forward", &err));
        const ct_value_id w[2] = {param(&b, "w1.weight", 6, 4), param(&b, "w3.weight", 6, 4)};
        const ct_value_id w2 = param(&b, "w2.weight", 4, how == 2 ? 12 : 6);
        OK(ct_build_join(&b, "w13.weight", w, 2, &w13, &err));
        OK(ct_op_matmul(b.graph, x, w13, CT_NO_VALUE, false, true, &gu, &err));
        y = gu;
        if (how == 0) {
            OK(ct_op_emit(b.graph, CT_OP_swiglu, NULL, &gu, 1, &y, &err));
            OK(ct_op_matmul(b.graph, y, w2, CT_NO_VALUE, false, true, &out, &err));
        } else if (how == 1) { /* heads of it would be of both parts */
            OK(ct_op_reshape(b.graph, gu, (int64_t[]){-1, 2, 3, 4}, 4, &out, &err));
        } else { /* so would columns of another weight */
            OK(ct_op_matmul(b.graph, gu, w2, CT_NO_VALUE, false, true, &out, &err));
        }
        OK(cti_model_place(&b, &mesh, &err));
        char text[16];
        assert_string_equal(ct_placement_text(ct_graph_value_c(b.graph, w13)->placement[CT_AXIS_TP], text), "S(0/2)");
        const ct_status st = ct_pass_shard(b.graph, &mesh, &(ct_shard_options){0}, &err);
        if (how > 0) {
            assert_int_equal(st, CT_ERR_UNSUPPORTED);
            assert_non_null(strstr(err.message, "S(2/2)"));
        } else {
            OK(st);
            assert_int_equal(ct_graph_value_c(b.graph, w13)->dims[0], 6);
            assert_string_equal(ct_placement_text(ct_graph_value_c(b.graph, gu)->placement[CT_AXIS_TP], text), "S(2/2)");
            assert_string_equal(ct_placement_text(ct_graph_value_c(b.graph, y)->placement[CT_AXIS_TP], text), "S(2)");
            assert_int_equal(ct_graph_value_c(b.graph, y)->dims[2], 3);
        }
        ct_graph_destroy(&b.graph);
    }
}

/* Parts lie without a gap, whatever their size; the view is over both. */
static void parts_lie_end_to_end(void **state)
{
    (void)state;
    ct_err err = {0};
    ct_build b = new_build();
    ct_value_id x, w13, gu, y, out, *flats;
    OK(ct_graph_add_value(b.graph, &(ct_value_spec){"x", CT_DTYPE_F32, 2, {2, 3}, CT_VALUE_INPUT}, &x, &err));
    OK(ct_graph_push_scope(b.graph, "layers.0", &err));
    const ct_value_id norm = param(&b, "before", 1, 3), w[2] = {param(&b, "w1", 5, 3), param(&b, "w3", 5, 3)}, w2 = param(&b, "w2", 3, 5);
    OK(ct_build_join(&b, "w13", w, 2, &w13, &err));
    ct_graph_pop_scope(b.graph);
    OK(ct_op_matmul(b.graph, x, norm, CT_NO_VALUE, false, true, &out, &err));
    OK(ct_op_matmul(b.graph, x, w13, CT_NO_VALUE, false, true, &gu, &err));
    OK(ct_op_emit(b.graph, CT_OP_swiglu, NULL, &gu, 1, &y, &err));
    OK(ct_op_matmul(b.graph, y, w2, CT_NO_VALUE, false, true, &out, &err));
    ct_flat_param params[4] = {{.name = "layers.0.before", .ndim = 2, .dims = {1, 3}}, {.name = "layers.0.w1", .ndim = 2, .dims = {5, 3}},
                               {.name = "layers.0.w3", .ndim = 2, .dims = {5, 3}, .is_joined = true}, {.name = "layers.0.w2", .ndim = 2, .dims = {3, 5}}};
    ct_flat_layout *layout;
    OK(ct_flat_layout_create(ct_alloc_system(), params, 4, 2, &layout, &err));
    assert_int_equal(layout->n_groups, 1);
    const ct_flat_member *m = layout->groups[0].members;
    assert_int_equal(m[1].offset, CT_FLAT_ALIGN);
    assert_int_equal(m[2].offset, CT_FLAT_ALIGN + 15);
    assert_int_equal(m[3].offset, 2 * CT_FLAT_ALIGN);
    OK(ct_pass_flat(b.graph, b.params, b.n_params, layout, NULL, CT_DTYPE_F32, &flats, &err));
    const ct_node *product = NULL;
    for (int32_t i = 0; i < ct_graph_order_len(b.graph); i++) {
        const ct_node *node = ct_graph_node_c(b.graph, ct_graph_order(b.graph)[i]);
        product = node->n_out == 1 && node->out[0] == gu ? node : product;
    }
    assert_non_null(product);
    const ct_value *view = ct_graph_value_c(b.graph, product->in[1]);
    assert_int_equal(view->dims[0], 10);
    assert_int_equal(view->alias_offset, CT_FLAT_ALIGN);
    ct_flat_layout_destroy(&layout);
    /* parts of different families cannot be one value */
    params[2].family = "muon";
    assert_int_equal(ct_flat_layout_create(ct_alloc_system(), params, 4, 2, &layout, &err), CT_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "'layers.0.w1' and 'layers.0.w3' are one weight here"));
    ct_graph_destroy(&b.graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_stay_parameters),
        cmocka_unit_test(what_cannot_be_joined_is_refused),
        cmocka_unit_test(rows_of_each_part_are_cut),
        cmocka_unit_test(parts_lie_end_to_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
