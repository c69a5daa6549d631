/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: ops ir base */
/* Rows of the op list and the shape rule of every op, from a table of good and bad cases. */
#include "unit/ops_cases.h"

static void add_specs(cti_str *s, const ct_graph *g, const ct_value_id *ids, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        const ct_value *v = ct_graph_value_c(g, ids[i]);
        cti_str_printf(s, "%s%s[", i == 0 ? "" : " ", ct_dtype_name(v->dtype));
        for (int32_t d = 0; d < v->ndim; d++) {
            cti_str_printf(s, "%s%" PRId64, d == 0 ? "" : ",", v->dims[d]);
        }
        cti_str_add(s, "]");
    }
}

static void shapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(op_cases); i++) {
        const op_case *c = &op_cases[i];
        ct_graph *g = case_graph("shapes");
        ct_err err = {0};
        ct_value_id outs[16];
        int32_t n_out;
        const ct_status st = case_emit(g, c, outs, &n_out, &err);
        if (!op_case_is_good(c)) {
            if (st != CT_ERR_SHAPE || strstr(err.message, c->wanted + 1) == NULL ||
                strstr(err.message, c->op) != err.message) {
                fail_msg("%s {%s} (%s): status %s, '%s'; wanted '%s'", c->op, c->attrs, c->inputs,
                         ct_status_name(st), err.message, c->wanted + 1);
            }
            assert_int_equal(ct_graph_n_nodes(g), 0);
        } else {
            if (st != CT_OK) {
                fail_msg("%s {%s} (%s): %s", c->op, c->attrs, c->inputs, err.message);
            }
            cti_str s = {.alloc = ct_alloc_system()};
            add_specs(&s, g, outs, n_out);
            assert_string_equal(cti_str_text(&s), c->wanted);
            cti_str_deinit(&s);
            assert_int_equal(ct_graph_verify(g, &err), CT_OK);
            assert_int_equal(ct_graph_reinfer(g, &err), CT_OK);
            assert_int_equal(ct_graph_verify(g, &err), CT_OK);
        }
        ct_graph_destroy(&g);
    }
}

static void every_op_has_cases(void **state)
{
    (void)state;
    int n_good[CT_OP_COUNT] = {0}, n_bad[CT_OP_COUNT] = {0};
    for (size_t i = 0; i < N_OF(op_cases); i++) {
        const ct_op *op = ct_op_find(op_cases[i].op);
        assert_non_null(op);
        n_good[op->id] += op_case_is_good(&op_cases[i]);
        n_bad[op->id] += !op_case_is_good(&op_cases[i]);
    }
    for (int32_t i = 0; i < CT_OP_COUNT; i++) {
        if (n_good[i] == 0 || n_bad[i] == 0) {
            fail_msg("op '%s' has %d good and %d bad cases", ct_op_row(i)->name, n_good[i], n_bad[i]);
        }
    }
}

static void rows(void **state)
{
    (void)state;
    for (int32_t i = 0; i < CT_OP_COUNT; i++) {
        const ct_op *op = ct_op_row(i);
        assert_int_equal(op->id, i);
        assert_ptr_equal(ct_op_find(op->name), op);
        assert_non_null(op->shape);
        assert_true(op->n_attr_fields == 0 || op->attrs_bytes > 0);
    }
    assert_null(ct_op_row(-1));
    assert_null(ct_op_row(CT_OP_COUNT));
    assert_null(ct_op_find("matmul2"));
    assert_int_equal(ct_op_row(CT_OP_matmul)->attrs_bytes, sizeof(ct_attrs_matmul));
    assert_int_equal(ct_op_row(CT_OP_adamw)->n_attr_fields, 6);
    assert_int_equal(ct_op_row(CT_OP_rmsnorm)->attr_fields[0].kind, CT_FIELD_F64);
}

/* Lists in attributes are copied: the caller's may go. */
static void attrs_are_copied(void **state)
{
    (void)state;
    ct_graph *g = case_graph("copy");
    ct_err err = {0};
    ct_value_id x, y;
    const ct_value_spec spec = {"x", CT_DTYPE_F32, 2, {2, 6}, CT_VALUE_INPUT};
    assert_int_equal(ct_graph_add_value(g, &spec, &x, &err), CT_OK);
    int64_t dims[] = {3, 4};
    assert_int_equal(ct_op_reshape(g, x, dims, 2, &y, &err), CT_OK);
    dims[0] = dims[1] = 99;
    assert_int_equal(ct_graph_verify(g, &err), CT_OK);
    assert_int_equal(ct_graph_value_c(g, y)->alias_of, x);
    ct_graph_destroy(&g);
}

static void aliases(void **state)
{
    (void)state;
    ct_graph *g = case_graph("alias");
    ct_err err = {0};
    ct_value_id outs[16];
    int32_t n;
    for (size_t i = 0; i < N_OF(op_cases); i++) {
        const op_case *c = &op_cases[i];
        if (!op_case_is_good(c)) {
            continue;
        }
        assert_int_equal(case_emit(g, c, outs, &n, &err), CT_OK);
        const ct_op *op = ct_op_find(c->op);
        const ct_node *node = ct_graph_node_c(g, ct_graph_n_nodes(g) - 1);
        for (int32_t k = 0; k < n; k++) {
            const ct_value *v = ct_graph_value_c(g, outs[k]);
            assert_int_equal(v->kind, CT_VALUE_ACT);
            if ((op->flags & (CT_OP_VIEW | CT_OP_UPDATE)) == 0) {
                assert_int_equal(v->alias_of, CT_NO_VALUE);
            } else if (op->id == CT_OP_momentum && k == 1) {
                assert_int_equal(v->alias_of, CT_NO_VALUE);
            } else {
                const ct_value *of = ct_graph_value_c(g, v->alias_of);
                assert_int_equal(v->dtype, of->dtype);
                assert_true(v->alias_offset + ct_value_numel(v) <= ct_value_numel(of));
            }
        }
        if (op->id == CT_OP_adamw) {
            assert_int_equal(ct_graph_value_c(g, outs[1])->alias_of, node->in[2]);
            assert_int_equal(ct_graph_value_c(g, outs[2])->alias_of, node->in[3]);
        }
        if (op->id == CT_OP_flat_split) {
            assert_int_equal(ct_graph_value_c(g, outs[1])->alias_offset, 6);
        }
    }
    ct_graph_destroy(&g);
}

static void emit_refuses(void **state)
{
    (void)state;
    ct_graph *g = case_graph("refuse");
    ct_err err = {0};
    ct_value_id y;
    assert_int_equal(ct_op_emit(g, CT_OP_COUNT, NULL, NULL, 0, &y, &err), CT_ERR_UNSUPPORTED);
    assert_int_equal(ct_graph_push_scope(g, "layers.3", NULL), CT_OK);
    err = (ct_err){0};
    assert_int_equal(ct_op_add(g, 0, 7, &y, &err), CT_ERR_SHAPE);
    assert_string_equal(err.message, "'layers.3': add: input 0 is missing (value 0)");
    ct_graph_destroy(&g);
}

/* More inputs and outputs than fit on the stack, and more than an op may have. */
static void many_values(void **state)
{
    (void)state;
    enum { MANY = 100 };
    ct_graph *g = case_graph("many");
    ct_err err = {0};
    ct_value_id flat, sums[MANY], views[MANY], total;
    const ct_value_spec spec = {"flat", CT_DTYPE_F32, 1, {2 * MANY}, CT_VALUE_INPUT};
    assert_int_equal(ct_graph_add_value(g, &spec, &flat, &err), CT_OK);
    static int64_t offsets[CTI_OP_MAX_IN + 1], ones[CTI_OP_MAX_IN + 1];
    for (int64_t i = 0; i <= CTI_OP_MAX_IN; i++) {
        offsets[i] = 2 * i;
        ones[i] = 1;
    }
    ct_attrs_flat_split split = {{MANY, offsets}, {MANY, ones}, {MANY, ones}};
    assert_int_equal(ct_op_emit(g, CT_OP_flat_split, &split, &flat, 1, views, &err), CT_OK);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(ct_graph_value_c(g, views[i])->alias_offset, 2 * i);
        assert_int_equal(ct_op_emit(g, CT_OP_sumsq, &(ct_attrs_sumsq){1}, &views[i], 1, &sums[i], &err), CT_OK);
    }
    assert_int_equal(ct_op_emit(g, CT_OP_add_n, NULL, sums, MANY, &total, &err), CT_OK);
    assert_int_equal(ct_graph_verify(g, &err), CT_OK);
    assert_int_equal(ct_op_emit(g, CT_OP_add_n, NULL, views, MANY, &total, &err), CT_ERR_SHAPE);
    assert_non_null(strstr(err.message, "… 100 inputs): input 0 must be f64"));
    err = (ct_err){0};
    split.offsets.n = split.ndims.n = split.dims.n = CTI_OP_MAX_IN + 1;
    assert_int_equal(ct_op_emit(g, CT_OP_flat_split, &split, &flat, 1, views, &err), CT_ERR_SHAPE);
    assert_non_null(strstr(err.message, "4097 outputs; the most is 4096"));
    ct_graph_destroy(&g);
}

/* The typed emitters hand inputs and attributes on as they are. */
static void emitters(void **state)
{
    (void)state;
    ct_graph *g = case_graph("emitters");
    ct_err err = {0};
    static const char *const words[] = {"f32[1,4,2,6]", "f32[4,2,6]", "i32[1,4]", "f32[8,3,2]",  "i32[2,4]",
                                        "i32[1]",       "f32[9,6]",   "f32[6]",   "f32[1,8,2,6]"};
    enum { X, X3, POS, TABLE, SEGMENTS, N_SEGMENTS, EMB, NORM, CACHE, COUNT };
    ct_value_id v[COUNT], y, z;
    for (int i = 0; i < COUNT; i++) {
        ct_value_spec spec = case_spec(words[i]);
        char name[8];
        (void)snprintf(name, sizeof name, "v%d", i);
        spec.name = name;
        spec.kind = i == CACHE ? CT_VALUE_STATE : CT_VALUE_INPUT;
        assert_int_equal(ct_graph_add_value(g, &spec, &v[i], &err), CT_OK);
    }
    assert_int_equal(ct_op_embedding(g, v[EMB], v[POS], &y, &err), CT_OK);
    assert_int_equal(ct_op_rmsnorm(g, y, v[NORM], 1e-6, &y, &err), CT_OK);
    assert_int_equal(ct_op_matmul(g, y, v[EMB], CT_NO_VALUE, false, true, &z, &err), CT_OK);
    assert_int_equal(ct_op_matmul(g, y, v[EMB], z, false, true, &z, &err), CT_OK);
    assert_int_equal(ct_op_silu_mul(g, z, z, &z, &err), CT_OK);
    assert_int_equal(ct_op_scale(g, z, 0.5, &z, &err), CT_OK);
    assert_int_equal(ct_op_mul(g, z, z, &z, &err), CT_OK);
    assert_int_equal(ct_op_cast(g, z, CT_DTYPE_BF16, &z, &err), CT_OK);
    assert_int_equal(ct_op_rope(g, v[X], v[POS], v[TABLE], &y, &err), CT_OK);
    ct_value_id cos, sin, ends_q, ends_k;
    assert_int_equal(ct_op_rope_rows(g, v[POS], v[TABLE], &cos, &sin, &err), CT_OK);
    assert_int_equal(ct_op_rotary_mul(g, v[X], cos, sin, &y, &err), CT_OK);
    assert_int_equal(ct_op_sdpa(g, y, y, y, v[SEGMENTS], v[N_SEGMENTS], 0.25, &z, &err), CT_OK);
    const ct_attrs_sdpa *sdpa = ct_graph_node_c(g, ct_graph_n_nodes(g) - 1)->attrs;
    assert_true(sdpa->scale == 0.25 && sdpa->causal && sdpa->window == 0);
    assert_int_equal(ct_op_segment_ends(g, v[SEGMENTS], v[N_SEGMENTS], &ends_q, &ends_k, &err), CT_OK);
    assert_int_equal(ct_op_sdpa_tnd(g, v[X3], v[X3], v[X3], ends_q, ends_k, v[N_SEGMENTS], 0.5, &z, &err),
                     CT_OK);
    assert_int_equal(ct_op_kv_append(g, v[CACHE], y, v[N_SEGMENTS], &z, &err), CT_OK);
    assert_int_equal(ct_graph_value_c(g, z)->alias_of, v[CACHE]);
    assert_int_equal(ct_graph_verify(g, &err), CT_OK);
    assert_int_equal(ct_op_rmsnorm(g, y, v[EMB], 1e-6, &z, &err), CT_ERR_SHAPE);
    ct_graph_destroy(&g);
}

static void costs(void **state)
{
    (void)state;
    static const struct {
        const char *op, *attrs, *inputs;
        double flops, bytes;
    } table[] = {
        /* clang-format off */
        {"matmul", "tb=true", "bf16[2,3,4] bf16[5,4]", 2.0 * 6 * 4 * 5, 2.0 * (24 + 20 + 30)},
        {"matmul", "ta=true", "f32[3,2] f32[3,5] f32[2,5]", 2.0 * 2 * 3 * 5 + 10, 4.0 * (6 + 15 + 10 + 10)},
        {"sdpa", "", "f32[2,3,4,8] f32[2,5,2,8] f32[2,5,2,8] i32[6,4] i32[1]", 4.0 * 2 * 3 * 5 * 4 * 8,
         4.0 * (192 + 160 + 160 + 24 + 1 + 192 + 24)},
        {"sdpa_tnd", "", "f32[6,4,8] f32[5,2,8] f32[5,2,8] i32[3] i32[3] i32[1]", 4.0 * 6 * 5 * 4 * 8,
         4.0 * (192 + 80 + 80 + 3 + 3 + 1 + 192 + 24)},
        {"linear_cross_entropy_eval", "", "f32[2,3,8] f32[10,8] i32[2,3] f32[1]", 2.0 * 6 * 8 * 10, 4.0 * (48 + 80 + 6 + 1) + 8},
        {"linear_cross_entropy", "", "f32[2,3,8] f32[10,8] i32[2,3] f32[1]", 6.0 * 6 * 8 * 10,
         4.0 * (48 + 80 + 6 + 1 + 48 + 80) + 8},
        {"reshape", "dims=12", "f32[2,6]", 0, 0},
        {"add", "", "f32[2,3] f32[2,3]", 0, 4.0 * 18},
        /* clang-format on */
    };
    for (size_t i = 0; i < N_OF(table); i++) {
        ct_graph *g = case_graph("cost");
        ct_err err = {0};
        ct_value_id outs[16];
        int32_t n;
        const op_case c = {table[i].op, table[i].attrs, table[i].inputs, ""};
        assert_int_equal(case_emit(g, &c, outs, &n, &err), CT_OK);
        if (ct_graph_flops(g, CT_PROGRAM_FORWARD) != table[i].flops ||
            ct_graph_flops(g, CT_PROGRAM_EVAL) != 0.0) {
            fail_msg("%s: %f FLOPs, wanted %f", c.op, ct_graph_flops(g, CT_PROGRAM_FORWARD), table[i].flops);
        }
        const double bytes = cti_node_bytes(g, ct_graph_node_c(g, 0));
        if (bytes != table[i].bytes) {
            fail_msg("%s: %f bytes, wanted %f", c.op, bytes, table[i].bytes);
        }
        ct_graph_destroy(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),   cmocka_unit_test(every_op_has_cases),
        cmocka_unit_test(rows),     cmocka_unit_test(attrs_are_copied),
        cmocka_unit_test(aliases),  cmocka_unit_test(emit_refuses),
        cmocka_unit_test(costs),    cmocka_unit_test(many_values),
        cmocka_unit_test(emitters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
