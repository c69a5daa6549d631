/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: ops ir base */
/* The text form of graphs: printing, reading back, and what the reader refuses. */
#include "unit/ops_cases.h"

static char *print(const ct_graph *g)
{
    char *text;
    ct_err err = {0};
    if (ct_graph_print(g, ct_alloc_system(), &text, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    return text;
}

static ct_graph *parse(const char *text, const char *name)
{
    ct_graph *g;
    ct_err err = {0};
    if (ct_graph_parse(ct_alloc_system(), text, strlen(text), name, &g, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    return g;
}

static void assert_same_values(const ct_graph *a, const ct_graph *b)
{
    assert_int_equal(ct_graph_n_values(a), ct_graph_n_values(b));
    for (int32_t i = 0; i < ct_graph_n_values(a); i++) {
        const ct_value *x = ct_graph_value_c(a, i), *y = ct_graph_value_c(b, i);
        assert_string_equal(x->name, y->name);
        assert_int_equal(x->dtype, y->dtype);
        assert_int_equal(x->ndim, y->ndim);
        assert_memory_equal(x->dims, y->dims, sizeof x->dims);
        assert_int_equal(x->kind, y->kind);
        assert_memory_equal(x->placement, y->placement, sizeof x->placement);
        assert_int_equal(x->producer, y->producer);
        assert_int_equal(x->alias_of, y->alias_of);
        assert_int_equal(x->alias_offset, y->alias_offset);
    }
}

static void assert_same_nodes(const ct_graph *a, const ct_graph *b)
{
    assert_int_equal(ct_graph_n_nodes(a), ct_graph_n_nodes(b));
    for (int32_t i = 0; i < ct_graph_n_nodes(a); i++) {
        const ct_node *x = ct_graph_node_c(a, i), *y = ct_graph_node_c(b, i);
        assert_int_equal(x->op, y->op);
        assert_int_equal(x->n_in, y->n_in);
        assert_int_equal(x->n_out, y->n_out);
        for (int32_t k = 0; k < x->n_in; k++) {
            assert_int_equal(x->in[k], y->in[k]);
        }
        for (int32_t k = 0; k < x->n_out; k++) {
            assert_int_equal(x->out[k], y->out[k]);
        }
        assert_string_equal(x->scope, y->scope);
        assert_int_equal(x->program, y->program);
        assert_int_equal(x->stream, y->stream);
        assert_int_equal(x->is_recompute, y->is_recompute);
        const ct_op *op = ct_op_row(x->op);
        for (int32_t k = 0; k < op->n_attr_fields; k++) {
            assert_true(ct_field_equal(&op->attr_fields[k], x->attrs, y->attrs));
        }
    }
    assert_int_equal(ct_graph_order_len(a), ct_graph_order_len(b));
    for (int32_t i = 0; i < ct_graph_order_len(a); i++) {
        assert_int_equal(ct_graph_order(a)[i], ct_graph_order(b)[i]);
    }
}

/* Prints, reads back, compares, prints again. */
static void assert_round_trip(const ct_graph *g)
{
    char *text = print(g);
    ct_graph *back = parse(text, ct_graph_name(g));
    assert_string_equal(ct_graph_name(back), ct_graph_name(g));
    assert_same_values(g, back);
    assert_same_nodes(g, back);
    char *again = print(back);
    assert_string_equal(text, again);
    ct_alloc_free(ct_alloc_system(), again);
    ct_graph_destroy(&back);
    ct_alloc_free(ct_alloc_system(), text);
}

static void every_op(void **state)
{
    (void)state;
    ct_graph *g = case_graph_of_all();
    ct_err err = {0};
    if (ct_graph_verify(g, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    assert_round_trip(g);
    ct_graph_destroy(&g);
}

/* Nodes out of order, dead nodes, inputs with higher ids than outputs, as passes leave them. */
static void after_passes(void **state)
{
    (void)state;
    ct_graph *g = case_graph_of_all();
    ct_err err = {0};
    const int32_t n = ct_graph_n_nodes(g);
    ct_node_id order[256];
    int32_t n_order = 0;
    assert_true(n < 256);
    for (int32_t i = n - 1; i >= 0; i--) {
        if (i % 5 != 0) {
            order[n_order++] = i;
        }
    }
    assert_int_equal(ct_graph_set_order(g, order, n_order, &err), CT_OK);
    ct_graph_node(g, 0)->in[0] = ct_graph_n_values(g) - 1;
    ct_value *v = ct_graph_value(g, ct_graph_node(g, 1)->out[0]);
    v->kind = CT_VALUE_GRAD;
    v->name = "a name set later";
    assert_round_trip(g);
    ct_graph_destroy(&g);
}

static void empty(void **state)
{
    (void)state;
    ct_graph *g = case_graph("empty");
    char *text = print(g);
    assert_string_equal(text, "ctitan graph 1\n");
    assert_round_trip(g);
    ct_alloc_free(ct_alloc_system(), text);
    ct_graph_destroy(&g);
}

/* The exact words, so that the format cannot change unseen. */
static void format(void **state)
{
    (void)state;
    ct_graph *g = case_graph("format");
    ct_err err = {0};
    ct_value_id x, w, y, z;
    const ct_value_spec xs = {"x", CT_DTYPE_F32, 2, {2, 4}, CT_VALUE_INPUT},
                        ws = {"layers.0.wq", CT_DTYPE_F32, 2, {6, 4}, CT_VALUE_PARAM};
    assert_int_equal(ct_graph_add_value(g, &xs, &x, &err), CT_OK);
    assert_int_equal(ct_graph_add_value(g, &ws, &w, &err), CT_OK);
    ct_graph_value(g, w)->placement[3].kind = CT_PLACE_SHARD;
    ct_graph_value(g, w)->placement[3].dim = 0;
    assert_int_equal(ct_graph_push_scope(g, "layers.0", &err), CT_OK);
    assert_int_equal(ct_op_matmul(g, x, w, CT_NO_VALUE, false, true, &y, &err), CT_OK);
    ct_graph_pop_scope(g);
    ct_graph_set_program(g, CT_PROGRAM_BACKWARD);
    assert_int_equal(ct_op_reshape(g, y, (int64_t[]){3, -1}, 2, &z, &err), CT_OK);
    ct_graph_node(g, 1)->stream = 1;
    ct_graph_node(g, 1)->is_recompute = true;
    char *text = print(g);
    assert_string_equal(text, "ctitan graph 1\n"
                              "%0 input f32 [2 4] \"x\"\n"
                              "%1 param f32 [6 4] \"layers.0.wq\" place [R R R S0 R R]\n"
                              "%2 act f32 [2 6]\n"
                              "%3 act f32 [3 4] alias %2 0\n"
                              "#0 %2 = matmul(%0, %1) {ta=false, tb=true} forward \"layers.0\"\n"
                              "#1 %3 = reshape(%2) {dims=\"3 -1\"} backward stream 1 recompute\n");
    ct_alloc_free(ct_alloc_system(), text);
    ct_graph_destroy(&g);
}

static void refused(void **state)
{
    (void)state;
#define HEAD "ctitan graph 1\n"
#define X HEAD "%0 input f32 [2] \"x\"\n"
    static const struct {
        const char *text, *words;
        ct_status status;
    } table[] = {
        /* clang-format off */
        {"", "line 1, column 1: wanted 'ctitan graph 1', found ''", CT_ERR_FORMAT},
        {"ctitan graph 2\n", "wanted 'ctitan graph 1', found 'ctitan graph 2'", CT_ERR_FORMAT},
        {"ctitan graph 12\n", "wanted the end of the line", CT_ERR_FORMAT},
        {HEAD "%1 act f32 []\n", "line 2, column 2: wanted the next value's id, found '1 act", CT_ERR_FORMAT},
        {HEAD "%99999999999999999999 act f32 []\n", "the next value's id", CT_ERR_FORMAT},
        {HEAD "%0 thing f32 []\n", "wanted a kind of value", CT_ERR_FORMAT},
        {HEAD "%0 input f33 []\n", "wanted a dtype, found 'f33", CT_ERR_FORMAT},
        {HEAD "%0 input f32 [-1] \"x\"\n", "wanted a dim of 0 or more", CT_ERR_FORMAT},
        {HEAD "%0 input f32 [1 1 1 1 1 1 1] \"x\"\n", "no more dims", CT_ERR_FORMAT},
        {HEAD "%0 input f32 [1] \"x\n", "a text that is closed", CT_ERR_FORMAT},
        {HEAD "%0 input f32 [1] \"x\\x00\"\n", "a text without NUL", CT_ERR_FORMAT},
        {HEAD "%0 input f32 [1] \"x\\n\"\n", "no escapes but", CT_ERR_FORMAT},
        {HEAD "%0 input f32 [1]\n", "line 2: a value of kind 'input' needs a name", CT_ERR_RANGE},
        {HEAD "%0 input f32 [4611686018427387904 4] \"x\"\n", "line 2: value 'x': its size does not fit", CT_ERR_SHAPE},
        {X "%1 input f32 [2] \"x\"\n", "line 3: graph 'bad' has a value 'x' already", CT_ERR_RANGE},
        {HEAD "%0 input f32 [2] \"x\" place [R R Q R R R]\n", "wanted a placement", CT_ERR_FORMAT},
        {HEAD "%0 input f32 [2] \"x\" place [R R]\n", "wanted a placement", CT_ERR_FORMAT},
        {HEAD "%0 input f32 [2] \"x\" alias %3 0\n", "the alias is no value", CT_ERR_FORMAT},
        {X "#0 %1 = scale(%0) {alpha=1.0} forward\n", "an output is no value", CT_ERR_FORMAT},
        {X "%1 act f32 [2]\n#1 %1 = scale(%0) {alpha=1.0} forward\n", "nodes must be numbered from 0", CT_ERR_FORMAT},
        {X "%1 act f32 [2]\n#0 %1 = scale(%9) {alpha=1.0} forward\n", "an input is no value", CT_ERR_FORMAT},
        {X "%1 act f32 [2]\n#0 %1 = scael(%0) {alpha=1.0} forward\n", "wanted an op, found 'scael", CT_ERR_FORMAT},
        {X "%1 act f32 [2]\n#0 %1 = scale(%0) forward\n", "wanted '{'", CT_ERR_FORMAT},
        {X "%1 act f32 [2]\n#0 %1 = scale(%0) {beta=1} forward\n", "op 'scale' has no attribute 'beta'", CT_ERR_FORMAT},
        {X "%1 act f32 [2]\n#0 %1 = scale(%0) {alpha=x} forward\n", "attribute 'alpha': 'x' is no number", CT_ERR_FORMAT},
        {X "%1 act f32 [2]\n#0 %1 = scale(%0) {alpha=1, alpha=1} forward\n", "attribute 'alpha' comes twice", CT_ERR_FORMAT},
        {X "%1 act f32 [2]\n#0 %1 = matmul(%0, %0) {ta=true} forward\n", "op 'matmul' wants attribute 'tb'", CT_ERR_FORMAT},
        {X "%1 act f32 [2]\n#0 %1 = scale(%0) {alpha=1} forwards\n", "wanted a program", CT_ERR_FORMAT},
        {X "%1 act f32 [2]\n#0 %1 = scale(%0) {alpha=1} forward stream 256\n", "wanted a stream", CT_ERR_FORMAT},
        {X "%1 act f32 [2]\n#0 %1 = add(%0, %0) forward what\n", "the end of the line", CT_ERR_FORMAT},
        {X "%1 act f32 [2]\n%2 act f32 [2]\n#0 %2 = add(%0, %0) forward\n#1 %1 = add(%0, %0) forward\n",
         "outputs must be numbered in order of nodes", CT_ERR_FORMAT},
        {X "%1 act f32 [2]\n#0 %1 = add(%0, %0) forward\n#1 %1 = add(%0, %0) forward\n", "made twice", CT_ERR_FORMAT},
        {X "%1 act f32 [2]\n#0 %1 = add(%0 %0) forward\n", "wanted ','", CT_ERR_FORMAT},
        /* clang-format on */
    };
    for (size_t i = 0; i < N_OF(table); i++) {
        ct_graph *g = NULL;
        ct_err err = {0};
        const ct_status st =
            ct_graph_parse(ct_alloc_system(), table[i].text, strlen(table[i].text), "bad", &g, &err);
        if (st != table[i].status || err.status != st || strstr(err.message, table[i].words) == NULL ||
            g != NULL) {
            fail_msg("case %zu: %s, '%s'; wanted '%s'", i, ct_status_name(st), err.message, table[i].words);
        }
    }
}

/* Memory that runs out anywhere gives ERR_MEMORY and no leak. */
static void memory_runs_out(void **state)
{
    (void)state;
    ct_graph *g = case_graph_of_all();
    char *text = print(g);
    for (int64_t fail_at = 1;; fail_at++) {
        test_alloc t;
        test_alloc_init(&t, fail_at);
        ct_graph *back = NULL;
        char *again = NULL;
        ct_err err = {0};
        ct_status st = ct_graph_parse(&t.alloc, text, strlen(text), "all", &back, &err);
        st = st == CT_OK ? ct_graph_verify(back, &err) : st;
        st = st == CT_OK ? ct_graph_print(back, &t.alloc, &again, &err) : st;
        ct_alloc_free(&t.alloc, again);
        ct_graph_destroy(&back);
        assert_int_equal(t.n_live, 0);
        if (t.n_calls < fail_at) {
            assert_int_equal(st, CT_OK);
            break;
        }
        assert_int_equal(st, CT_ERR_MEMORY);
        assert_int_equal(err.status, CT_ERR_MEMORY);
    }
    ct_alloc_free(ct_alloc_system(), text);
    ct_graph_destroy(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_op), cmocka_unit_test(after_passes), cmocka_unit_test(empty),
        cmocka_unit_test(format),   cmocka_unit_test(refused),      cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
