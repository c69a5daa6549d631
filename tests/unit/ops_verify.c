/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: ops ir base */
/* The verifier: a sound graph passes, and each violation is found and named. */
#include "unit/ops_cases.h"

/* x -> rmsnorm -> matmul -> add(y, y) forward; adamw-like updates in the optimizer program. */
typedef struct sample {
    ct_graph *g;
    ct_value_id x, w, y, z;                /* y = matmul(x, w); z = add(y, y) */
    ct_value_id acc, grad, first, acc_new; /* accumulate, backward */
    ct_value_id sum;                       /* sumsq(acc_new), optimizer */
    ct_node_id matmul, add, accumulate, sumsq;
} sample;

static ct_value_id value(ct_graph *g, const char *name, ct_dtype dtype, ct_value_kind kind, int64_t n)
{
    ct_value_id id;
    ct_err err = {0};
    assert_int_equal(ct_graph_add_value(g, &(ct_value_spec){name, dtype, 1, {n}, kind}, &id, &err), CT_OK);
    return id;
}

static sample sample_make(void)
{
    sample s = {.g = case_graph("sample")};
    ct_err err = {0};
    const ct_value_spec x = {"x", CT_DTYPE_F32, 2, {2, 3}, CT_VALUE_INPUT},
                        w = {"w", CT_DTYPE_F32, 2, {3, 4}, CT_VALUE_PARAM};
    assert_int_equal(ct_graph_add_value(s.g, &x, &s.x, &err), CT_OK);
    assert_int_equal(ct_graph_add_value(s.g, &w, &s.w, &err), CT_OK);
    s.acc = value(s.g, "acc", CT_DTYPE_F32, CT_VALUE_GRAD, 8);
    s.grad = value(s.g, "grad", CT_DTYPE_F32, CT_VALUE_INPUT, 8);
    s.first = value(s.g, "first", CT_DTYPE_I32, CT_VALUE_INPUT, 1);
    assert_int_equal(ct_graph_set_scope(s.g, "head", &err), CT_OK);
    assert_int_equal(ct_op_matmul(s.g, s.x, s.w, CT_NO_VALUE, false, false, &s.y, &err), CT_OK);
    assert_int_equal(ct_op_add(s.g, s.y, s.y, &s.z, &err), CT_OK);
    ct_graph_set_program(s.g, CT_PROGRAM_BACKWARD);
    assert_int_equal(
        ct_op_emit(s.g, CT_OP_accumulate, NULL, (ct_value_id[]){s.acc, s.grad, s.first}, 3, &s.acc_new, &err),
        CT_OK);
    ct_graph_set_program(s.g, CT_PROGRAM_OPTIMIZER);
    assert_int_equal(ct_op_emit(s.g, CT_OP_sumsq, &(ct_attrs_sumsq){1}, &s.acc_new, 1, &s.sum, &err), CT_OK);
    s.matmul = 0;
    s.add = 1;
    s.accumulate = 2;
    s.sumsq = 3;
    assert_int_equal(ct_graph_verify(s.g, &err), CT_OK);
    return s;
}

/* What is done to the sample before it is verified. */
/* clang-format off */
static void swap_order(sample *s) { assert_int_equal(ct_graph_set_order(s->g, (ct_node_id[]){1, 0, 2, 3}, 4, NULL), CT_OK); }
static void drop_producer(sample *s) { assert_int_equal(ct_graph_set_order(s->g, (ct_node_id[]){1, 2, 3}, 3, NULL), CT_OK); }
static void swap_programs(sample *s) { assert_int_equal(ct_graph_set_order(s->g, (ct_node_id[]){0, 2, 1, 3}, 4, NULL), CT_OK); }
static void bad_program(sample *s) { ct_graph_node(s->g, s->sumsq)->program = CT_PROGRAM_COUNT; }
static void bad_dims(sample *s) { ct_graph_value(s->g, s->y)->dims[1] = 5; }
static void bad_dtype(sample *s) { ct_graph_value(s->g, s->z)->dtype = CT_DTYPE_BF16; }
static void bad_input_dims(sample *s) { ct_graph_value(s->g, s->w)->dims[0] = 5; }
static void bad_op(sample *s) { ct_graph_node(s->g, s->add)->op = 1000; }
static void bad_arity(sample *s) { ct_graph_node(s->g, s->add)->n_in = 1; }
static void bad_n_out(sample *s) { ct_graph_node(s->g, s->add)->n_out = 0; }
static void no_attrs(sample *s) { ct_graph_node(s->g, s->matmul)->attrs = NULL; }
static void input_beyond(sample *s) { ct_graph_node(s->g, s->add)->in[1] = 1000; }
static void input_absent(sample *s) { ct_graph_node(s->g, s->add)->in[1] = CT_NO_VALUE; }
static void output_beyond(sample *s) { ct_graph_node(s->g, s->add)->out[0] = 1000; }
static void made_twice(sample *s) { ct_graph_node(s->g, s->add)->out[0] = s->y; }
static void makes_input(sample *s) { ct_graph_node(s->g, s->add)->out[0] = s->x; }
static void wrong_producer(sample *s) { ct_graph_value(s->g, s->z)->producer = s->matmul; }
static void alias_of_source(sample *s) { ct_graph_value(s->g, s->w)->alias_of = s->x; }
static void alias_unasked(sample *s) { ct_graph_value(s->g, s->z)->alias_of = s->y; }
static void alias_missing(sample *s) { ct_graph_value(s->g, s->acc_new)->alias_of = CT_NO_VALUE; }
static void alias_offset(sample *s) { ct_graph_value(s->g, s->acc_new)->alias_offset = 4; }
static void act_unmade(sample *s) { ct_graph_value(s->g, s->x)->kind = CT_VALUE_ACT; }
static void bad_kind(sample *s) { ct_graph_value(s->g, s->x)->kind = CT_VALUE_KIND_COUNT; }
static void same_name(sample *s) { ct_graph_value(s->g, s->w)->name = "x"; }
static void no_name(sample *s) { ct_graph_value(s->g, s->w)->name = ""; }
static void const_update(sample *s) { ct_graph_value(s->g, s->acc)->kind = CT_VALUE_CONST; }
/* clang-format on */
static void stale_in_program(sample *s)
{
    ct_node *n = ct_graph_node(s->g, s->sumsq);
    n->program = CT_PROGRAM_BACKWARD;
    n->in[0] = s->acc;
}

static void violations(void **state)
{
    (void)state;
    static const struct {
        void (*spoil)(sample *s);
        const char *words;
    } table[] = {
        /* clang-format off */
        {swap_order, "node 1 (add) in 'head': reads %5, which no earlier node of the order makes"},
        {drop_producer, "reads %5, which no earlier node of the order makes"},
        {swap_programs, "of program 'forward' comes after one of 'backward'; the order is by program"},
        {bad_program, "the order is by program"},
        {bad_dims, "node 0 (matmul) in 'head': output %5 is f32 [2, 5]; its op makes f32 [2, 4]"},
        {bad_dtype, "output %6 is bf16 [2, 4]; its op makes f32 [2, 4]"},
        {bad_input_dims, "matmul(f32 [2, 3], f32 [5, 4])"},
        {bad_op, "node 1 (?) in 'head': 1000 is no op's id"},
        {bad_arity, "add takes 2 inputs, not 1"},
        {bad_n_out, "has 0 outputs; its op makes 1"},
        {no_attrs, "has no attributes"},
        {input_beyond, "input 1 is value 1000, which does not exist"},
        {input_absent, "add: input 1 is missing"},
        {output_beyond, "output 0 is value 1000, which does not exist"},
        {made_twice, "makes %5, which node 0 makes"},
        {makes_input, "makes %0 'x', which node -1 makes"},
        {wrong_producer, "makes %6, which node 0 makes"},
        {alias_of_source, "value %1 'w' has no producer but aliases %0"},
        {alias_unasked, "output %6 aliases %5 at 0; its op wants %-1 at 0"},
        {alias_missing, "output %7 aliases %-1 at 0; its op wants %2 at 0"},
        {alias_offset, "output %7 aliases %2 at 4"},
        {act_unmade, "value %0 'x' is an activation that no node makes"},
        {bad_kind, "its kind or dtype is out of range"},
        {same_name, "two values have the name 'x'"},
        {no_name, "value %1 of kind 'param' has no name"},
        {const_update, "node 2 (accumulate) in 'head': overwrites the constant 'acc'"},
        {stale_in_program, "node 3 (sumsq) in 'head': reads %2 'acc' after node 2 overwrote it"},
        /* clang-format on */
    };
    for (size_t i = 0; i < N_OF(table); i++) {
        sample s = sample_make();
        table[i].spoil(&s);
        ct_err err = {0};
        const ct_status st = ct_graph_verify(s.g, &err);
        if (st != CT_ERR_STATE || strstr(err.message, table[i].words) == NULL ||
            strncmp(err.message, "graph 'sample': ", 16) != 0) {
            fail_msg("case %zu: %s, '%s'; wanted '%s'", i, ct_status_name(st), err.message, table[i].words);
        }
        ct_graph_destroy(&s.g);
    }
}

/* A program reads what the one before it left in a persistent value: the old name of it is right there. */
static void next_program_reads_the_source(void **state)
{
    (void)state;
    sample s = sample_make();
    ct_err err = {0};
    ct_graph_node(s.g, s.sumsq)->in[0] = s.acc;
    assert_int_equal(ct_graph_verify(s.g, &err), CT_OK);
    ct_graph_destroy(&s.g);
}

/* Views: an update of one part spoils what overlaps it and nothing else. */
static void overlap(void **state)
{
    (void)state;
    for (int reads = 0; reads < 3; reads++) {
        ct_graph *g = case_graph("overlap");
        ct_err err = {0};
        const ct_value_id flat = value(g, "flat", CT_DTYPE_F32, CT_VALUE_GRAD, 12),
                          x = value(g, "g", CT_DTYPE_F32, CT_VALUE_INPUT, 6),
                          first = value(g, "first", CT_DTYPE_I32, CT_VALUE_INPUT, 1);
        ct_value_id views[2], made, sum;
        const ct_attrs_flat_split split = {.offsets = {2, (int64_t[]){0, 6}},
                                           .ndims = {2, (int64_t[]){1, 1}},
                                           .dims = {2, (int64_t[]){6, 6}}};
        assert_int_equal(ct_op_emit(g, CT_OP_flat_split, &split, &flat, 1, views, &err), CT_OK);
        assert_int_equal(
            ct_op_emit(g, CT_OP_accumulate, NULL, (ct_value_id[]){views[1], x, first}, 3, &made, &err),
            CT_OK);
        const ct_value_id read[] = {views[0], views[1], flat};
        assert_int_equal(ct_op_emit(g, CT_OP_sumsq, &(ct_attrs_sumsq){1}, &read[reads], 1, &sum, &err), CT_OK);
        const ct_status st = ct_graph_verify(g, &err);
        assert_int_equal(st, reads == 0 ? CT_OK : CT_ERR_STATE);
        ct_graph_destroy(&g);
    }
}

/* A view that a later program reads was made before the update: stale in any program. */
static void stale_view_in_later_program(void **state)
{
    (void)state;
    sample s = sample_make();
    ct_err err = {0};
    ct_value_id view, sum;
    ct_graph_set_program(s.g, CT_PROGRAM_FORWARD);
    assert_int_equal(ct_op_reshape(s.g, s.acc, (int64_t[]){2, 4}, 2, &view, &err), CT_OK);
    ct_graph_set_program(s.g, CT_PROGRAM_OPTIMIZER);
    assert_int_equal(ct_op_emit(s.g, CT_OP_sumsq, &(ct_attrs_sumsq){1}, &view, 1, &sum, &err), CT_OK);
    assert_int_equal(ct_graph_set_order(s.g, (ct_node_id[]){0, 1, 4, 2, 3, 5}, 6, &err), CT_OK);
    assert_int_equal(ct_graph_verify(s.g, &err), CT_ERR_STATE);
    assert_non_null(strstr(err.message, "after node 2 overwrote it"));
    ct_graph_destroy(&s.g);
}

/* Nodes of stream 1 run beside the others: who reads what they make, or overwrites what they use, has waited. */
static void streams(void **state)
{
    (void)state;
#define GATHER "#0 %1 = all_gather(%0) {axis=2, degree=2, reduce_dtype=0} forward \"flat.a\" stream 1\n"
    static const struct {
        const char *nodes, *why; /* NULL: sound */
    } rows[] = {
        {GATHER "#1 %2 = add(%1, %3) forward wait 1\n", NULL},
        {GATHER "#1 %2 = add(%1, %3) forward\n", "reads %1, which stream 1 may not have made yet"},
        {GATHER "#1 %2 = add(%1, %3) forward wait 2\n", "waits for 2 nodes of stream 1; 1 have begun"},
        {GATHER "#1 %2 = add(%3, %3) forward wait 1\n", NULL},
        {GATHER "#1 %2 = all_reduce(%1) {axis=1, degree=2} forward stream 1\n", NULL}, /* one after another */
        {GATHER "#1 %2 = add(%1, %3) backward\n", NULL}, /* a program ends with all of its nodes */
        {"#0 %1 = all_gather(%0) {axis=2, degree=2, reduce_dtype=0} forward\n#1 %2 = add(%1, %3) forward wait 1\n",
         "waits for 1 nodes of stream 1; 0 have begun"},
        {GATHER "#1 %2 = accumulate(%0, %4, %5) forward\n", "overwrites %2, which stream 1 may still use"},
        {GATHER "#1 %2 = accumulate(%0, %4, %5) forward wait 1\n", NULL},
    };
#undef GATHER
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[1024];
        ct_err err = {0};
        ct_graph *g = NULL;
        const bool updates = strstr(rows[i].nodes, "accumulate") != NULL;
        (void)snprintf(text, sizeof text,
                       "ctitan graph 1\n%%0 grad f32 [4] \"g\"\n%%1 act f32 [8]\n%%2 act f32 [%s\n%%3 input f32 [8] \"x\"\n"
                       "%%4 input f32 [4] \"d\"\n%%5 input i32 [1] \"first\"\n%s",
                       updates ? "4] alias %0 0" : "8]", rows[i].nodes);
        if (ct_graph_parse(ct_alloc_system(), text, strlen(text), "streams", &g, &err) != CT_OK) {
            fail_msg("row %zu: %s", i, err.message);
        }
        const ct_status st = ct_graph_verify(g, &err);
        if (rows[i].why == NULL && st != CT_OK) {
            fail_msg("row %zu: %s", i, err.message);
        }
        assert_int_equal(st, rows[i].why == NULL ? CT_OK : CT_ERR_STATE);
        assert_true(rows[i].why == NULL || strstr(err.message, rows[i].why) != NULL);
        ct_graph_destroy(&g);
    }
}

/* Inputs of other dims, then everything after them follows. */
static void reinfer(void **state)
{
    (void)state;
    sample s = sample_make();
    ct_err err = {0};
    ct_value *x = ct_graph_value(s.g, s.x), *w = ct_graph_value(s.g, s.w);
    x->dims[0] = 7;
    x->dtype = w->dtype = CT_DTYPE_BF16;
    assert_int_equal(ct_graph_verify(s.g, &err), CT_ERR_STATE);
    err = (ct_err){0};
    assert_int_equal(ct_graph_reinfer(s.g, &err), CT_OK);
    assert_int_equal(ct_graph_verify(s.g, &err), CT_OK);
    assert_int_equal(ct_graph_value_c(s.g, s.z)->dims[0], 7);
    assert_int_equal(ct_graph_value_c(s.g, s.z)->dtype, CT_DTYPE_BF16);
    w->dims[0] = 5;
    assert_int_equal(ct_graph_reinfer(s.g, &err), CT_ERR_SHAPE);
    assert_non_null(strstr(err.message, "node 0 in 'head': matmul(bf16 [7, 3], bf16 [5, 4])"));
    ct_graph_destroy(&s.g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(violations), cmocka_unit_test(next_program_reads_the_source),
        cmocka_unit_test(overlap),    cmocka_unit_test(stale_view_in_later_program),
        cmocka_unit_test(reinfer),    cmocka_unit_test(streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
