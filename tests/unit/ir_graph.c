/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: ir base */
/* The graph as a container: values, names, nodes, order, scopes. */
#include "unit/base_test.h"

#include "ir/ir.h"

static ct_graph *graph_new(const ct_alloc *alloc)
{
    ct_graph *g;
    ct_err err = {0};
    assert_int_equal(ct_graph_create(alloc, "g", &g, &err), CT_OK);
    return g;
}

static ct_value_id input(ct_graph *g, const char *name)
{
    ct_value_id id;
    ct_err err = {0};
    assert_int_equal(
        ct_graph_add_value(g, &(ct_value_spec){name, CT_DTYPE_BF16, 2, {3, 5}, CT_VALUE_INPUT}, &id, &err),
        CT_OK);
    return id;
}

/* A node of one input and one output; what the op means is nothing to the container. */
static ct_node_id node(ct_graph *g, ct_value_id in)
{
    ct_node_id id;
    ct_err err = {0};
    const ct_value_spec out = {"", CT_DTYPE_F32, 1, {7}, CT_VALUE_ACT};
    assert_int_equal(ct_graph_add_node(g, 4, &(int64_t){42}, sizeof(int64_t), &in, 1, &out, 1, &id, &err),
                     CT_OK);
    return id;
}

static void values(void **state)
{
    (void)state;
    ct_graph *g = graph_new(ct_alloc_system());
    const ct_value_id x = input(g, "x");
    const ct_value *v = ct_graph_value_c(g, x);
    assert_string_equal(v->name, "x");
    assert_int_equal(v->producer, -1);
    assert_int_equal(v->alias_of, CT_NO_VALUE);
    assert_int_equal(ct_value_numel(v), 15);
    assert_int_equal(ct_value_size_bytes(v), 30);
    assert_int_equal(ct_graph_find(g, "x"), x);
    assert_int_equal(ct_graph_find(g, "y"), CT_NO_VALUE);
    assert_int_equal(ct_graph_find(g, ""), CT_NO_VALUE);
    /* Names that a pass sets later are found too. */
    const ct_node_id n = node(g, x);
    ct_graph_value(g, ct_graph_node(g, n)->out[0])->name = "loss";
    assert_int_equal(ct_graph_find(g, "loss"), ct_graph_node(g, n)->out[0]);
    assert_int_equal(ct_graph_value_c(g, ct_graph_node(g, n)->out[0])->producer, n);
    ct_graph_destroy(&g);
    assert_null(g);
    ct_graph_destroy(&g);
    ct_graph_destroy(NULL);
}

static void bad_values(void **state)
{
    (void)state;
    static const struct {
        ct_value_spec spec;
        ct_status status;
        const char *words;
    } table[] = {
        /* clang-format off */
        {{"x", CT_DTYPE_F32, 1, {1}, CT_VALUE_PARAM}, CT_ERR_RANGE, "has a value 'x' already"},
        {{"", CT_DTYPE_F32, 1, {1}, CT_VALUE_PARAM}, CT_ERR_RANGE, "a value of kind 'param' needs a name"},
        {{NULL, CT_DTYPE_F32, 1, {1}, CT_VALUE_GRAD}, CT_ERR_RANGE, "needs a name"},
        {{"y", CT_DTYPE_COUNT, 1, {1}, CT_VALUE_INPUT}, CT_ERR_SHAPE, "is no dtype"},
        {{"y", CT_DTYPE_F32, 7, {1}, CT_VALUE_INPUT}, CT_ERR_SHAPE, "7 dims; a tensor has 0 to 6"},
        {{"y", CT_DTYPE_F32, -1, {1}, CT_VALUE_INPUT}, CT_ERR_SHAPE, "-1 dims"},
        {{"y", CT_DTYPE_F32, 2, {1, -2}, CT_VALUE_INPUT}, CT_ERR_SHAPE, "dim 1 is -2, less than 0"},
        {{"y", CT_DTYPE_U8, 2, {INT64_MAX, 2}, CT_VALUE_INPUT}, CT_ERR_SHAPE, "does not fit"},
        {{"y", CT_DTYPE_F64, 1, {INT64_MAX / 4}, CT_VALUE_INPUT}, CT_ERR_SHAPE, "does not fit"},
        {{"y", CT_DTYPE_F32, 1, {1}, CT_VALUE_KIND_COUNT}, CT_ERR_RANGE, "is no kind of value"},
        /* clang-format on */
    };
    ct_graph *g = graph_new(ct_alloc_system());
    (void)input(g, "x");
    for (size_t i = 0; i < N_OF(table); i++) {
        ct_err err = {0};
        ct_value_id id = 77;
        const ct_status st = ct_graph_add_value(g, &table[i].spec, &id, &err);
        if (st != table[i].status || strstr(err.message, table[i].words) == NULL) {
            fail_msg("case %zu: %s, '%s'", i, ct_status_name(st), err.message);
        }
        assert_int_equal(id, 77);
        assert_int_equal(ct_graph_n_values(g), 1);
    }
    ct_err err = {0};
    ct_node_id n;
    assert_int_equal(ct_graph_add_node(g, 0, NULL, 0, (ct_value_id[]){1}, 1, NULL, 0, &n, &err),
                     CT_ERR_RANGE);
    err = (ct_err){0};
    assert_int_equal(
        ct_graph_add_node(g, 0, NULL, 0, (ct_value_id[]){0}, 1, &(ct_value_spec){.ndim = 9}, 1, &n, &err),
        CT_ERR_SHAPE);
    assert_int_equal(ct_graph_n_nodes(g), 0);
    ct_graph_destroy(&g);
}

/* Growth: thousands of values, every name found, addresses and contents stay. */
static void many(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    test_alloc t;
    test_alloc_init(&t, 0);
    ct_graph *g = graph_new(&t.alloc);
    char name[32];
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "layers.%d.w", i);
        assert_int_equal(input(g, name), 2 * i);
        assert_int_equal(node(g, 2 * i), i);
    }
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "layers.%d.w", i);
        assert_int_equal(ct_graph_find(g, name), 2 * i);
        assert_int_equal(ct_graph_order(g)[i], i);
        const ct_node *n = ct_graph_node_c(g, i);
        assert_int_equal(n->in[0], 2 * i);
        assert_int_equal(n->out[0], 2 * i + 1);
        assert_int_equal(*(const int64_t *)n->attrs, 42);
    }
    ct_graph_destroy(&g);
    assert_int_equal(t.n_live, 0);
}

static void scopes(void **state)
{
    (void)state;
    ct_graph *g = graph_new(ct_alloc_system());
    ct_err err = {0};
    const ct_value_id x = input(g, "x");
    assert_string_equal(ct_graph_scope(g), "");
    assert_int_equal(ct_graph_push_scope(g, "layers.3", &err), CT_OK);
    assert_int_equal(ct_graph_push_scope(g, "wq", &err), CT_OK);
    ct_graph_set_program(g, CT_PROGRAM_EVAL);
    assert_string_equal(ct_graph_node(g, node(g, x))->scope, "layers.3.wq");
    assert_int_equal(ct_graph_set_scope(g, "other", &err), CT_OK);
    assert_string_equal(ct_graph_scope(g), "other");
    ct_graph_pop_scope(g);
    assert_string_equal(ct_graph_scope(g), "layers.3");
    ct_graph_pop_scope(g);
    assert_string_equal(ct_graph_scope(g), "");
    assert_string_equal(ct_graph_node(g, 0)->scope, "layers.3.wq");
    assert_int_equal(ct_graph_node(g, 0)->program, CT_PROGRAM_EVAL);
    assert_int_equal(cti_graph_program(g), CT_PROGRAM_EVAL);
    assert_string_equal(ct_program_name(CT_PROGRAM_BACKWARD_WEIGHT), "backward_weight");
    assert_string_equal(cti_value_kind_name(CT_VALUE_CONST), "const");
    ct_graph_destroy(&g);
}

static void order(void **state)
{
    (void)state;
    ct_graph *g = graph_new(ct_alloc_system());
    ct_err err = {0};
    const ct_value_id x = input(g, "x"), y = input(g, "y");
    for (int i = 0; i < 4; i++) {
        (void)node(g, x);
    }
    const ct_node_id twice[] = {0, 1, 0}, beyond[] = {0, 4}, fresh[] = {3, 1, 0};
    assert_int_equal(ct_graph_set_order(g, twice, 3, &err), CT_ERR_RANGE);
    assert_string_equal(err.message, "order: node 0 comes twice");
    err = (ct_err){0};
    assert_int_equal(ct_graph_set_order(g, beyond, 2, &err), CT_ERR_RANGE);
    assert_int_equal(ct_graph_order_len(g), 4);
    err = (ct_err){0};
    assert_int_equal(ct_graph_set_order(g, fresh, 3, &err), CT_OK);
    assert_int_equal(ct_graph_order_len(g), 3);
    assert_memory_equal(ct_graph_order(g), fresh, sizeof fresh);
    const ct_value_id view = ct_graph_node(g, 1)->out[0], early = ct_graph_node(g, 3)->out[0];
    ct_graph_value(g, view)->alias_of = x;
    ct_graph_value(g, early)->alias_of = x;
    assert_int_equal(ct_graph_n_nodes(g), 4);
    ct_graph_replace_uses(g, x, y, 0); /* after position 0, which node 3 has */
    assert_int_equal(ct_graph_node(g, 3)->in[0], x);
    assert_int_equal(ct_graph_node(g, 1)->in[0], y);
    assert_int_equal(ct_graph_node(g, 0)->in[0], y);
    assert_int_equal(ct_graph_node(g, 2)->in[0], x); /* dead */
    assert_int_equal(ct_graph_value(g, view)->alias_of, y); /* a view follows its node */
    assert_int_equal(ct_graph_value(g, early)->alias_of, x);
    ct_graph_replace_uses(g, x, y, -1);
    assert_int_equal(ct_graph_node(g, 3)->in[0], y);
    assert_int_equal(ct_graph_set_order(g, ct_graph_order(g), 1, &err), CT_OK);
    assert_int_equal(ct_graph_order_len(g), 1);
    assert_int_equal(ct_graph_set_order(g, NULL, 0, &err), CT_OK);
    assert_int_equal(node(g, x), 4);
    assert_int_equal(ct_graph_order(g)[0], 4);
    ct_graph_destroy(&g);
}

/* Memory that runs out anywhere: ERR_MEMORY, a graph that still works, no leak. */
static void memory_runs_out(void **state)
{
    (void)state;
    for (int64_t fail_at = 1;; fail_at++) {
        test_alloc t;
        test_alloc_init(&t, fail_at);
        ct_graph *g = NULL;
        ct_err err = {0};
        ct_status st = ct_graph_create(&t.alloc, "g", &g, &err);
        for (int i = 0; i < 40 && st == CT_OK; i++) {
            char name[16];
            (void)snprintf(name, sizeof name, "v%d", i);
            ct_value_id x;
            ct_node_id n;
            const ct_value_spec spec = {name, CT_DTYPE_F32, 1, {3}, CT_VALUE_INPUT};
            const int32_t before = ct_graph_n_values(g);
            st = ct_graph_push_scope(g, "a", &err);
            st = st != CT_OK ? st : ct_graph_add_value(g, &spec, &x, &err);
            st = st != CT_OK
                     ? st
                     : ct_graph_add_node(g, 0, name, 4, &x, 1, (ct_value_spec[2]){spec, spec}, 2, &n, &err);
            if (st == CT_OK) {
                st = ct_graph_set_order(g, &n, 1, &err);
            } else {
                assert_true(ct_graph_n_values(g) <= before + 1);
                assert_int_equal(ct_graph_find(g, name) >= 0, ct_graph_n_values(g) > before);
            }
        }
        ct_graph_destroy(&g);
        assert_int_equal(t.n_live, 0);
        if (t.n_calls < fail_at) {
            assert_int_equal(st, CT_OK);
            break;
        }
        assert_int_equal(st, CT_ERR_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values), cmocka_unit_test(bad_values), cmocka_unit_test(many),
        cmocka_unit_test(scopes), cmocka_unit_test(order),      cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
