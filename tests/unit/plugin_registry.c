/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: component passes autodiff backend/ref backend/null backend ops base */
/* What plug-ins register: rows that are wrong in every way are refused by name and leave the registry as it was; good ones are known to printer,
 * parser, verifier, shard pass, autodiff and backends until they are taken back. */
#include "unit/base_test.h"

#include "autodiff/autodiff.h"
#include "backend/backend.h"
#include "backend/null/null.h"
#include "backend/ref/ref.h"
#include "component/component.h"
#include "mesh/mesh.h"
#include "ops/ops.h"
#include "passes/passes.h"

#define OK(expr)                                            \
    do {                                                    \
        if ((expr) != CT_OK) {                              \
            fail_msg("%s: %s", #expr, err.message);         \
        }                                                   \
    } while (0)

typedef struct twice_attrs {
    double factor;
    ct_i64_list list;
} twice_attrs;
static const ct_field twice_fields[] = {{"factor", CT_FIELD_F64, offsetof(twice_attrs, factor), "2", "", "", "", "", 0, NULL, ""},
                                        {"list", CT_FIELD_I64_LIST, offsetof(twice_attrs, list), "", "", "", "", "", 0, NULL, ""}};

static ct_status like(const ct_graph *g, const ct_value *const *in, int32_t n_in, const void *attrs, ct_value_spec *out, ct_err *err)
{
    (void)g;
    (void)n_in;
    (void)attrs;
    (void)err;
    *out = (ct_value_spec){.dtype = in[0]->dtype, .ndim = in[0]->ndim};
    memcpy(out->dims, in[0]->dims, sizeof out->dims);
    return CT_OK;
}

static ct_status no_shape(const ct_graph *g, const ct_value *const *in, int32_t n_in, const void *attrs, ct_value_spec *out, ct_err *err)
{
    (void)g;
    (void)in;
    (void)n_in;
    (void)attrs;
    (void)out;
    (void)err;
    return CT_OK;
}

static ct_status product(const ct_graph *g, const ct_value *const *in, int32_t n_in, const void *attrs, ct_value_spec *out, ct_err *err)
{
    CT_TRY(like(g, in, n_in, attrs, out, err));
    if (in[1]->dims[1] != in[0]->dims[in[0]->ndim - 1]) {
        return CT_FAIL(err, CT_ERR_SHAPE, "t.product: widths differ");
    }
    out->dims[out->ndim - 1] = in[1]->dims[0];
    return CT_OK;
}

static ct_status run_nothing(const ct_launch *launch, ct_err *err)
{
    (void)launch;
    (void)err;
    return CT_OK;
}

static ct_status prepare(const ct_launch *launch, void **out_state, ct_err *err)
{
    (void)launch;
    (void)err;
    *out_state = NULL;
    return CT_OK;
}

static int rule; /* what the gradient rule does wrong */
static ct_status gradient(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    ct_value_id dy;
    CT_TRY(ct_grad_output(ctx, node, rule == 1 ? 7 : 0, &dy, err));
    return rule == 3 ? CT_OK : ct_grad_add(ctx, node->in[0], rule == 2 ? 12345 : dy, err);
}

static const ct_op_kernel ref_kernel = {"ref", {.run = run_nothing, .dtypes = CT_BIT(F32)}};

static ct_op good_row(const char *name)
{
    return (ct_op){.name = name, .n_in_min = 1, .n_in_max = 2, .n_out = 1, .shard = CT_SHARD_ROWS, .tolerance = CT_TOL_EXACT, .attr_fields = twice_fields,
                   .n_attr_fields = 2, .attrs_bytes = sizeof(twice_attrs), .shape = like, .gradient = gradient, .kernels = &ref_kernel, .n_kernels = 1};
}

static ct_registry *new_registry(void)
{
    ct_registry *r;
    ct_err err = {0};
    OK(ct_registry_create(ct_alloc_system(), &r, &err));
    return r;
}

/* ---- wrong rows -------------------------------------------------------------------------------------------------- */

static void wrong_rows(void **state)
{
    (void)state;
    static const int32_t outside[] = {5};
    static const ct_op_kernel unnamed = {"", {.run = run_nothing, .dtypes = 1}}, no_run = {"cpu", {.dtypes = 1}}, no_dtype = {"cpu", {.run = run_nothing}},
                              odd_dtype = {"cpu", {.run = run_nothing, .dtypes = 1u << 30}},
                              half = {"npu", {.run = run_nothing, .dtypes = 1, .prepare = prepare}};
    static const ct_op_kernel two[] = {{"cpu", {.run = run_nothing, .dtypes = 1}}, {"cpu", {.run = run_nothing, .dtypes = 1}}};
    static const ct_field far[] = {{"x", CT_FIELD_F64, 8, "0", "", "", "", "", 0, NULL, ""}};
    static const ct_field bad_default[] = {{"x", CT_FIELD_F64, 0, "much", "", "", "", "", 0, NULL, ""}};
    static const ct_field no_text[] = {{"x", CT_FIELD_F64, 0, NULL, "", "", "", "", 0, NULL, ""}};
    static const ct_field no_kind[] = {{"x", (ct_field_kind)99, 0, "", "", "", "", "", 0, NULL, ""}};
    static const ct_field twins[] = {{"x", CT_FIELD_I64, 0, "0", "", "", "", "", 0, NULL, ""}, {"x", CT_FIELD_I64, 8, "0", "", "", "", "", 0, NULL, ""}};
    static const ct_field upon[] = {{"x", CT_FIELD_I64, 0, "0", "", "", "", "", 0, NULL, ""}, {"y", CT_FIELD_I64, 4, "0", "", "", "", "", 0, NULL, ""}};
    ct_registry *r = new_registry();
#define WRONG(change, words)                                                                           \
    do {                                                                                               \
        ct_op row = good_row("t.wrong");                                                               \
        ct_err err = {0};                                                                              \
        int32_t id = -5;                                                                               \
        change;                                                                                        \
        const ct_status st = ct_registry_add_op(r, &row, &id, &err);                                   \
        if (st == CT_OK || strstr(err.message, words) == NULL) {                                       \
            fail_msg("%s: status %d, '%s'; wanted '%s'", #change, (int)st, err.message, words);        \
        }                                                                                              \
        assert_int_equal(id, -5);                                                                      \
        assert_null(ct_op_find("t.wrong"));                                                            \
        assert_null(cti_registry_op_at(r, 0));                                                         \
    } while (0)
    WRONG(row.name = NULL, "wanted a name such as 'plugin.name'");
    WRONG(row.name = "matmul", "wanted a name such as 'plugin.name'");
    WRONG(row.name = "a b.c", "'a b.c'");
    WRONG(row.n_in_max = 17, "takes 1 to 17 inputs; at most 16");
    WRONG(row.n_in_min = -1, "takes -1 to 2");
    WRONG(row.n_in_min = 3, "takes 3 to 2");
    WRONG(row.n_out = 0, "has 0 outputs");
    WRONG(row.n_out = 9, "has 9 outputs; 1 to 8");
    WRONG(row.shape = NULL, "has no shape rule");
    WRONG(row.flags = CT_OP_VIEW, "views, joins and collectives are built in");
    WRONG(row.flags = CT_OP_COLLECTIVE, "views, joins and collectives are built in");
    WRONG(row.flags = 1u << 31, "other flags do not exist");
    WRONG(row.flags = CT_OP_ATTENTION, "attention reads q, k and v");
    WRONG((row.flags = CT_OP_ADDEND, row.n_in_max = 1), "an addend is the one optional input");
    WRONG((row.flags = CT_OP_ELEMENTWISE, row.n_in_min = 0), "what is elementwise has inputs");
    WRONG(row.alias = outside, "is no update");
    WRONG((row.alias = outside, row.flags = CT_OP_UPDATE), "output 0 overwrites input 5 of the 1");
    WRONG((row.n_in_min = 0, row.flags = CT_OP_UPDATE), "output 0 overwrites input 0 of the 0");
    WRONG(row.shard = CT_SHARD_LOSS, "the shard class 'loss', which is not for plug-ins");
    WRONG(row.shard = (ct_shard_class)77, "the shard class '?'");
    WRONG(row.shard = CT_SHARD_PRODUCT, "'product' is about inputs 0 and 1");
    WRONG((row.shard = CT_SHARD_ELEMENT, row.n_in_min = 0), "'element' is about its inputs");
    WRONG(row.shard = CT_SHARD_HALVES, "'halves' is about one input and one output, not 2 and 1");
    WRONG(row.tolerance = (ct_tolerance)9, "tolerance class 9");
    WRONG(row.gradient = NULL, "neither a gradient rule nor a reason");
    WRONG(row.no_gradient = "why", "both a gradient rule and a reason");
    WRONG(row.attr_fields = NULL, "no table of them");
    WRONG(row.attrs_bytes = 0, "has 2 attributes in 0 bytes");
    WRONG(row.attrs_bytes = 16, "the field 'list' lies in bytes 8 to 24 of 16");
    WRONG(row.n_attr_fields = 0, "has 0 attributes in 24 bytes");
    WRONG(row.n_attr_fields = 33, "has 33 attributes");
    WRONG((row.attr_fields = far, row.n_attr_fields = 1, row.attrs_bytes = 8), "the field 'x' lies in bytes 8 to 16 of 8");
    WRONG((row.attr_fields = bad_default, row.n_attr_fields = 1), "the default of the field 'x': 'much'");
    WRONG((row.attr_fields = no_text, row.n_attr_fields = 1), "lacks a text");
    WRONG((row.attr_fields = no_kind, row.n_attr_fields = 1), "has kind 99");
    WRONG((row.attr_fields = twins, row.n_attr_fields = 2), "two fields 'x'");
    WRONG((row.attr_fields = upon, row.n_attr_fields = 2), "'x' and 'y' lie upon each other");
    WRONG(row.kernels = NULL, "no kernel for any backend");
    WRONG(row.n_kernels = 0, "no kernel for any backend");
    WRONG(row.kernels = &unnamed, "kernel 0 names no backend");
    WRONG(row.kernels = &no_run, "its kernel for 'cpu' has no function");
    WRONG(row.kernels = &no_dtype, "its kernel for 'cpu' has no dtype");
    WRONG(row.kernels = &odd_dtype, "bits of dtypes that do not exist");
    WRONG(row.kernels = &half, "its kernel for 'npu' has one of prepare and release");
    WRONG((row.kernels = two, row.n_kernels = 2), "has two kernels for 'cpu'");
    ct_registry_destroy(&r);
}

/* ---- taken back, twice, too many ---------------------------------------------------------------------------------- */

static void names_and_ids(void **state)
{
    (void)state;
    ct_err err = {0};
    ct_registry *a = new_registry(), *b = new_registry();
    const ct_op row = good_row("t.one"), other = good_row("t.two");
    int32_t id = -1, again = -1, second = -1;
    OK(ct_registry_add_op(a, &row, &id, &err));
    assert_true(id >= CT_OP_COUNT);
    assert_string_equal(ct_op_row(id)->name, "t.one");
    assert_int_equal(ct_op_row(id)->id, id);
    assert_int_equal(ct_registry_add_op(a, &row, &again, &err), CT_ERR_RANGE);
    assert_non_null(strstr(err.message, "'t.one' is registered already"));
    err = (ct_err){0};
    OK(ct_registry_add_op(b, &row, &again, &err)); /* the same code in another registry of the process */
    assert_int_equal(again, id);
    ct_op thief = row;
    thief.shape = no_shape;
    const cti_registry_mark before = cti_registry_mark_now(b);
    ct_registry *c = new_registry();
    assert_int_equal(ct_registry_add_op(c, &thief, &again, &err), CT_ERR_RANGE); /* other code with that name */
    ct_registry_destroy(&c);
    err = (ct_err){0};
    OK(ct_registry_add_op(b, &other, &second, &err));
    assert_true(second != id && ct_op_find("t.two") == ct_op_row(second));
    cti_registry_rollback(b, before);
    assert_null(ct_op_find("t.two"));
    assert_null(ct_op_row(second));
    ct_registry_destroy(&b);
    assert_non_null(ct_op_find("t.one")); /* a holds it */
    ct_registry_destroy(&a);
    assert_null(ct_op_find("t.one"));
    assert_null(ct_op_row(id));

    a = new_registry();
    char names[CTI_MAX_REGISTERED_OPS + 1][16];
    ct_status st = CT_OK;
    for (int i = 0; i <= CTI_MAX_REGISTERED_OPS && st == CT_OK; i++) {
        (void)snprintf(names[i], sizeof names[i], "t.n%d", i);
        const ct_op one = good_row(names[i]);
        st = ct_registry_add_op(a, &one, &id, &err);
        assert_int_equal(st, i < CTI_MAX_REGISTERED_OPS ? CT_OK : CT_ERR_UNSUPPORTED);
    }
    assert_non_null(strstr(err.message, "'t.n256' is one too many"));
    ct_registry_destroy(&a);
    assert_null(ct_op_find("t.n0"));
}

/* ---- in graphs ----------------------------------------------------------------------------------------------------- */

static ct_value_id add_value(ct_graph *g, const char *name, ct_value_kind kind, int32_t ndim, int64_t d0, int64_t d1, int64_t d2)
{
    ct_err err = {0};
    ct_value_id id;
    OK(ct_graph_add_value(g, &(ct_value_spec){name, CT_DTYPE_F32, ndim, {d0, d1, d2}, kind}, &id, &err));
    return id;
}

static void in_a_graph(void **state)
{
    (void)state;
    ct_err err = {0};
    ct_registry *r = new_registry();
    ct_graph *g = NULL, *back = NULL;
    char *text = NULL, *again = NULL;
    int32_t id;
    const ct_op row = good_row("t.twice");
    OK(ct_registry_add_op(r, &row, &id, &err));
    OK(ct_graph_create(ct_alloc_system(), "g", &g, &err));
    const ct_value_id x = add_value(g, "x", CT_VALUE_INPUT, 2, 4, 3, 0);
    const twice_attrs attrs = {.factor = 2.5, .list = {3, (int64_t[]){7, -8, 9}}};
    ct_value_id y, in[2] = {x, CT_NO_VALUE};
    OK(ct_op_emit(g, id, &attrs, in, 2, &y, &err));
    in[1] = y;
    OK(ct_op_emit(g, id, &attrs, in, 2, &y, &err));
    OK(ct_graph_verify(g, &err));
    OK(ct_graph_reinfer(g, &err));
    OK(ct_graph_print(g, ct_alloc_system(), &text, &err));
    assert_non_null(strstr(text, "= t.twice(%0, _) {factor=2.5, list=\"7 -8 9\"}"));
    OK(ct_graph_parse(ct_alloc_system(), text, strlen(text), "g", &back, &err));
    OK(ct_graph_print(back, ct_alloc_system(), &again, &err));
    assert_string_equal(text, again);
    assert_int_equal(ct_op_emit(g, id, NULL, in, 2, &y, &err), CT_ERR_STATE);
    assert_non_null(strstr(err.message, "t.twice wants attributes"));

    /* Backends: ref has a kernel for f32, null runs all, one without a kernel says who has some. */
    const ct_kernel *kernel;
    err = (ct_err){0};
    OK(ct_kernel_find(ct_backend_ref(), id, CT_DTYPE_F32, &kernel, &err));
    assert_ptr_equal(kernel, &ref_kernel.kernel);
    OK(ct_kernel_find(ct_backend_null(), id, CT_DTYPE_BF16, &kernel, &err));
    OK(ct_backend_check(ct_backend_null(), &err));
    assert_int_equal(ct_kernel_find(ct_backend_ref(), id, CT_DTYPE_F64, &kernel, &err), CT_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "op t.twice has no kernel for f64; it has: f32"));
    ct_backend other = *ct_backend_ref();
    other.name = "other";
    err = (ct_err){0};
    assert_int_equal(ct_kernel_find(&other, id, CT_DTYPE_F32, &kernel, &err), CT_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "backend 'other' has no kernel for op t.twice: its plug-in brings some for ref"));
    cti_str matrix = {.alloc = ct_alloc_system()};
    const ct_backend *const list[] = {ct_backend_ref(), &other};
    ct_backend_matrix(list, 2, &matrix);
    assert_non_null(strstr(cti_str_text(&matrix), "t.twice                    f32                           -\n"));
    assert_non_null(strstr(cti_str_text(&matrix), "other: t.twice: its plug-in brings no kernel for this backend"));
    cti_str_deinit(&matrix);

    ct_graph_destroy(&back);
    ct_registry_destroy(&r);
    err = (ct_err){0};
    assert_int_equal(ct_graph_parse(ct_alloc_system(), text, strlen(text), "g", &back, &err), CT_ERR_FORMAT);
    assert_int_equal(ct_kernel_find(ct_backend_ref(), id, CT_DTYPE_F32, &kernel, &err), CT_ERR_UNSUPPORTED);
    ct_alloc_free(ct_alloc_system(), text);
    ct_alloc_free(ct_alloc_system(), again);
    ct_graph_destroy(&g);
}

/* Rules that answer nonsense are found out where they answer. */
static void wrong_answers(void **state)
{
    (void)state;
    ct_err err = {0};
    ct_registry *r = new_registry();
    ct_graph *g = NULL;
    int32_t id, updates;
    const twice_attrs attrs = {.factor = 1};
    ct_op row = good_row("t.shapeless");
    row.shape = no_shape;
    OK(ct_registry_add_op(r, &row, &id, &err));
    static const int32_t second[] = {1};
    row = good_row("t.updates");
    row.flags = CT_OP_UPDATE;
    row.alias = second;
    row.n_in_min = 2;
    OK(ct_registry_add_op(r, &row, &updates, &err));
    OK(ct_graph_create(ct_alloc_system(), "g", &g, &err));
    const ct_value_id x = add_value(g, "x", CT_VALUE_INPUT, 2, 4, 3, 0), s = add_value(g, "s", CT_VALUE_STATE, 2, 4, 3, 0),
                      long_one = add_value(g, "l", CT_VALUE_STATE, 2, 5, 3, 0);
    ct_value_id y;
    assert_int_equal(ct_op_emit(g, id, &attrs, &x, 1, &y, &err), CT_ERR_SHAPE);
    assert_non_null(strstr(err.message, "its shape rule gives output 0 no dtype"));
    err = (ct_err){0};
    assert_int_equal(ct_op_emit(g, updates, &attrs, (ct_value_id[]){x, long_one}, 2, &y, &err), CT_ERR_SHAPE);
    assert_non_null(strstr(err.message, "output 0 overwrites input 1, its shape rule gives it another shape"));
    err = (ct_err){0};
    OK(ct_op_emit(g, updates, &attrs, (ct_value_id[]){x, s}, 2, &y, &err));
    assert_int_equal(ct_graph_value_c(g, y)->alias_of, s);
    OK(ct_graph_verify(g, &err));
    OK(ct_op_emit(g, updates, &attrs, (ct_value_id[]){s, y}, 2, &y, &err));
    assert_int_equal(ct_graph_verify(g, &err), CT_ERR_STATE); /* s was overwritten */
    ct_graph_destroy(&g);
    ct_registry_destroy(&r);
}

static void gradient_rules(void **state)
{
    (void)state;
    static const char *const wanted[] = {NULL, "the gradient of output 7 of 1", "gives value 12345, which does not exist", "no gradient for input 0"};
    for (rule = 0; rule < 4; rule++) {
        ct_err err = {0};
        ct_registry *r = new_registry();
        ct_graph *g = NULL;
        int32_t id;
        const twice_attrs attrs = {.factor = 1};
        const ct_op row = good_row("t.twice");
        OK(ct_registry_add_op(r, &row, &id, &err));
        assert_null(cti_grad_why_not(id));
        OK(ct_graph_create(ct_alloc_system(), "g", &g, &err));
        const ct_value_id x = add_value(g, "x", CT_VALUE_INPUT, 2, 4, 3, 0), w = add_value(g, "w", CT_VALUE_PARAM, 2, 5, 3, 0);
        ct_value_id labels, inv, y, loss[3], grad;
        OK(ct_graph_add_value(g, &(ct_value_spec){"labels", CT_DTYPE_I32, 1, {4}, CT_VALUE_INPUT}, &labels, &err));
        OK(ct_graph_add_value(g, &(ct_value_spec){"inv", CT_DTYPE_F32, 1, {1}, CT_VALUE_INPUT}, &inv, &err));
        OK(ct_op_emit(g, id, &attrs, &x, 1, &y, &err));
        const ct_attrs_loss chunks = {.chunks = 1};
        OK(ct_op_emit(g, CT_OP_linear_cross_entropy, &chunks, (ct_value_id[]){y, w, labels, inv}, 4, loss, &err));
        const ct_status st = ct_autodiff(g, loss[0], &x, 1, &grad, &err);
        assert_true((st == CT_OK) == (rule == 0));
        if (rule > 0 && (strstr(err.message, wanted[rule]) == NULL || strstr(err.message, "t.twice") == NULL)) {
            fail_msg("'%s'; wanted '%s'", err.message, wanted[rule]);
        }
        ct_graph_destroy(&g);
        ct_registry_destroy(&r);
    }
    rule = 0;
}

/* A product of a plug-in under tensor parallelism: w cut by rows, so is the output's last dim. */
static void sharded_product(void **state)
{
    (void)state;
    ct_err err = {0};
    ct_registry *r = new_registry();
    ct_graph *g = NULL;
    int32_t id;
    const twice_attrs attrs = {.factor = 1};
    ct_op row = good_row("t.product");
    row.shard = CT_SHARD_PRODUCT;
    row.shape = product;
    row.n_in_min = 2;
    OK(ct_registry_add_op(r, &row, &id, &err));
    OK(ct_graph_create(ct_alloc_system(), "g", &g, &err));
    const ct_value_id x = add_value(g, "x", CT_VALUE_INPUT, 3, 2, 4, 8), w = add_value(g, "w", CT_VALUE_PARAM, 2, 6, 8, 0);
    ct_value_id y;
    OK(ct_op_emit(g, id, &attrs, (ct_value_id[]){x, w}, 2, &y, &err));
    ct_graph_value(g, w)->placement[CT_AXIS_TP] = (ct_placement){.kind = CT_PLACE_SHARD, .dim = 0};
    ct_mesh mesh;
    const int64_t degree[CT_AXIS_COUNT] = {[CT_AXIS_PP] = 1, [CT_AXIS_DP_REPLICATE] = 1, [CT_AXIS_DP_SHARD] = 1, [CT_AXIS_CP] = 1, [CT_AXIS_TP] = 2, [CT_AXIS_EP] = 1};
    OK(ct_mesh_init(&mesh, degree, 2, 1, &err));
    const ct_shard_options options = {.is_sequence_parallel = false};
    OK(ct_pass_shard(g, &mesh, &options, &err));
    assert_int_equal(ct_graph_value_c(g, w)->dims[0], 3);
    assert_int_equal(ct_graph_value_c(g, y)->dims[2], 3);
    ct_graph_destroy(&g);
    ct_registry_destroy(&r);
}

/* ---- classes, data sets, optimizers, variants ---------------------------------------------------------------------- */

static ct_status open_nothing(const ct_alloc *alloc, const char *path, void **out_state, int64_t *out_n, uint64_t *out_identity, ct_err *err)
{
    (void)alloc;
    (void)path;
    (void)out_state;
    (void)out_n;
    (void)out_identity;
    return CT_FAIL(err, CT_ERR_IO, "nothing");
}
static void close_nothing(void *state)
{
    (void)state;
}
static ct_status read_nothing(void *state, int64_t number, ct_text_sink *sink, ct_err *err)
{
    (void)state;
    (void)number;
    return ct_text_add(sink, "", 0, err);
}
ct_status ct_text_add(ct_text_sink *sink, const char *bytes, size_t size, ct_err *err) /* the room data is not part of this test */
{
    (void)sink;
    (void)bytes;
    (void)size;
    (void)err;
    return CT_OK;
}
static ct_status emit_nothing(const ct_optimizer_call *call, ct_err *err)
{
    (void)call;
    (void)err;
    return CT_OK;
}
static ct_status change_nothing(ct_tree *tree, ct_component *root, ct_err *err)
{
    (void)tree;
    (void)root;
    (void)err;
    return CT_OK;
}

static void others(void **state)
{
    (void)state;
    ct_registry *r = new_registry();
    ct_err err = {0};
    static const ct_field bad[] = {{"x", CT_FIELD_I64, 0, "one", "", "", "", "", 0, NULL, ""}};
    const ct_class unnamed = {.name = ""}, no_table = {.name = "C", .n_fields = 1}, no_default = {.name = "C", .fields = bad, .n_fields = 1, .values_bytes = 8};
    const ct_dataset set = {.name = "t.set", .open = open_nothing, .close = close_nothing, .read = read_nothing};
    const ct_dataset undotted = {.name = "set", .open = open_nothing, .close = close_nothing, .read = read_nothing};
    const ct_dataset unread = {.name = "t.set", .open = open_nothing, .close = close_nothing};
    const ct_optimizer lion = {.name = "t.Lion", .states = CT_STATE_EXP_AVG, .emit = emit_nothing};
    const ct_optimizer unmade = {.name = "t.Lion"}, greedy = {.name = "t.Lion", .states = 8, .emit = emit_nothing};
#define REFUSED(call, words)                                                                \
    do {                                                                                    \
        err = (ct_err){0};                                                                  \
        if ((call) != CT_ERR_RANGE || strstr(err.message, words) == NULL) {                 \
            fail_msg("%s: '%s'; wanted '%s'", #call, err.message, words);                   \
        }                                                                                   \
    } while (0)
    REFUSED(ct_registry_add_class(r, &unnamed, &err), "has no name");
    REFUSED(ct_registry_add_class(r, &no_table, &err), "the class 'C' has no table of its fields");
    REFUSED(ct_registry_add_class(r, &no_default, &err), "the class 'C': the default of the field 'x': 'one'");
    REFUSED(ct_registry_add_dataset(r, &undotted, &err), "the data set 'set': wanted a name such as 'plugin.name'");
    REFUSED(ct_registry_add_dataset(r, &unread, &err), "the data set 't.set' has no function read");
    REFUSED(ct_registry_add_optimizer(r, &unmade, &err), "the optimizer 't.Lion' has no function emit");
    REFUSED(ct_registry_add_optimizer(r, &greedy, &err), "asks for states 0x8");
    REFUSED(ct_registry_add_variant(r, "t", "x", "llama9", "y", change_nothing, &err), "goes out from 'y' of 'llama9', which is not there");
    REFUSED(ct_registry_add_variant(r, "t", "x", "llama3", "y", NULL, &err), "wanted two names");
    REFUSED(ct_registry_add_config(r, NULL, "x", NULL, NULL, &err), "wanted two names and a function or a reason");
    const cti_registry_mark before = cti_registry_mark_now(r);
    err = (ct_err){0};
    OK(ct_registry_add_dataset(r, &set, &err));
    OK(ct_registry_add_optimizer(r, &lion, &err));
    REFUSED(ct_registry_add_dataset(r, &set, &err), "'t.set' is registered already");
    REFUSED(ct_registry_add_optimizer(r, &lion, &err), "'t.Lion' is registered already");
    assert_non_null(cti_registry_dataset(r, "t.set"));
    assert_non_null(cti_registry_optimizer(r, "t.Lion"));
    cti_registry_rollback(r, before);
    assert_null(cti_registry_dataset(r, "t.set"));
    assert_null(cti_registry_optimizer(r, "t.Lion"));
    assert_null(cti_registry_dataset(NULL, "t.set"));
    ct_registry_destroy(&r);
}

/* A component whose class has a bad default, never registered: told, not an abort. */
static void bad_defaults(void **state)
{
    (void)state;
    static const ct_field bad[] = {{"x", CT_FIELD_I64, 0, "one", "", "", "", "", 0, NULL, ""}};
    static const ct_class cls = {.name = "C", .fields = bad, .n_fields = 1, .values_bytes = 8};
    ct_tree *tree = NULL;
    ct_component *c;
    ct_err err = {0};
    OK(ct_tree_create(ct_alloc_system(), &tree, &err));
    assert_int_equal(ct_component_create(tree, &cls, &c, &err), CT_ERR_STATE);
    assert_non_null(strstr(err.message, "the default of the field 'x': 'one'"));
    ct_tree_destroy(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(wrong_rows),     cmocka_unit_test(names_and_ids),   cmocka_unit_test(in_a_graph),
                                       cmocka_unit_test(wrong_answers),  cmocka_unit_test(gradient_rules),  cmocka_unit_test(sharded_product),
                                       cmocka_unit_test(others),         cmocka_unit_test(bad_defaults)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
