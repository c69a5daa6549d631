/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: autodiff ops ir base */
/* The backward graph that ct_autodiff builds: which nodes, in which order and scope, and what it refuses.
 * That gradients are right in numbers is tests/op/autodiff_fd.c's. */
#include "unit/ops_cases.h"

#include "autodiff/autodiff.h"

typedef struct net {
    ct_graph *g;
    ct_err err;
    ct_value_id w_head, labels, inv_tokens, loss;
} net;

static net net_make(void)
{
    net n = {.g = case_graph("net")};
    return n;
}

static ct_value_id param(net *n, const char *name, ct_dtype dtype, int32_t ndim, int64_t d0, int64_t d1,
                         int64_t d2, int64_t d3)
{
    ct_value_id id;
    const ct_value_spec spec = {
        name, dtype, ndim, {d0, d1, d2, d3}, dtype == CT_DTYPE_I32 ? CT_VALUE_INPUT : CT_VALUE_PARAM};
    if (ct_graph_add_value(n->g, &spec, &id, &n->err) != CT_OK) {
        fail_msg("%s", n->err.message);
    }
    return id;
}

#define OK(expr)                                       \
    do {                                               \
        if ((expr) != CT_OK) {                         \
            fail_msg("%s: %s", #expr, n->err.message); \
        }                                              \
    } while (0)

/* loss over x [T, D] */
static void head(net *n, ct_value_id x)
{
    const ct_value v = *ct_graph_value_c(n->g, x);
    ct_value_spec labels = {"labels", CT_DTYPE_I32, v.ndim - 1, {0}, CT_VALUE_INPUT};
    memcpy(labels.dims, v.dims, sizeof labels.dims);
    OK(ct_graph_add_value(n->g, &labels, &n->labels, &n->err));
    OK(ct_graph_add_value(n->g, &(ct_value_spec){"inv_tokens", CT_DTYPE_F32, 1, {1}, CT_VALUE_INPUT},
                          &n->inv_tokens, &n->err));
    n->w_head = param(n, "head", v.dtype, 2, 9, v.dims[v.ndim - 1], 0, 0);
    ct_value_id outs[3];
    const ct_attrs_loss attrs = {.chunks = 1};
    OK(ct_op_emit(n->g, CT_OP_linear_cross_entropy, &attrs,
                  (ct_value_id[]){x, n->w_head, n->labels, n->inv_tokens}, 4, outs, &n->err));
    n->loss = outs[0];
}

/* The nodes of program BACKWARD as text, without value ids: "matmul{ta=false, tb=true}@scope ...". */
static char *backward_text(net *n)
{
    cti_str s = {.alloc = ct_alloc_system()};
    ct_arena *arena;
    OK(ct_arena_create(ct_alloc_system(), 0, &arena, &n->err));
    for (int32_t i = 0; i < ct_graph_order_len(n->g); i++) {
        const ct_node *node = ct_graph_node_c(n->g, ct_graph_order(n->g)[i]);
        if (node->program != CT_PROGRAM_BACKWARD) {
            continue;
        }
        const ct_op *op = ct_op_row(node->op);
        cti_str_printf(&s, "%s%s", s.len == 0 ? "" : " ", op->name);
        for (int32_t k = 0; k < op->n_attr_fields; k++) {
            cti_str_printf(&s, "%s%s", k == 0 ? "{" : ",",
                           ct_field_text(&op->attr_fields[k], node->attrs, arena, &n->err));
        }
        cti_str_add(&s, op->n_attr_fields > 0 ? "}" : "");
        if (node->scope[0] != '\0') {
            cti_str_printf(&s, "@%s", node->scope);
        }
    }
    cti_str_add(&s, "");
    ct_arena_destroy(&arena);
    return s.data;
}

static void assert_backward(net *n, const char *wanted)
{
    char *text = backward_text(n);
    assert_string_equal(text == NULL ? "" : text, wanted);
    ct_alloc_free(ct_alloc_system(), text);
}

static void assert_grad_like(net *n, ct_value_id grad, ct_value_id value)
{
    assert_true(grad >= 0);
    assert_true(cti_same_dims(ct_graph_value_c(n->g, grad), ct_graph_value_c(n->g, value)));
    assert_int_equal(ct_graph_value_c(n->g, grad)->dtype, ct_graph_value_c(n->g, value)->dtype);
}

static void head_alone(void **state)
{
    (void)state;
    net made = net_make(), *n = &made;
    const ct_value_id x = param(n, "x", CT_DTYPE_F32, 2, 4, 6, 0, 0),
                      other = param(n, "other", CT_DTYPE_F32, 1, 3, 0, 0, 0);
    head(n, x);
    ct_value_id grads[3];
    OK(ct_autodiff(n->g, n->loss, (ct_value_id[]){x, n->w_head, other}, 3, grads, &n->err));
    assert_int_equal(grads[0], n->loss + 1); /* the loss node's own outputs: nothing is emitted */
    assert_int_equal(grads[1], n->loss + 2);
    assert_int_equal(grads[2], CT_NO_VALUE);
    assert_backward(n, "");
    ct_graph_destroy(&n->g);
}

/* Reverse order, scopes, fan-in in a fixed order; what nobody asks for is not emitted; scope and program are
 * as they were. */
static void chain(void **state)
{
    (void)state;
    net made = net_make(), *n = &made;
    const ct_value_id x = param(n, "x", CT_DTYPE_F32, 2, 4, 6, 0, 0),
                      w = param(n, "w", CT_DTYPE_F32, 1, 6, 0, 0, 0),
                      wq = param(n, "wq", CT_DTYPE_F32, 2, 6, 6, 0, 0),
                      side = param(n, "side", CT_DTYPE_F32, 2, 4, 6, 0, 0);
    ct_value_id h, q, s, unused;
    OK(ct_graph_push_scope(n->g, "layers.0", &n->err));
    OK(ct_op_rmsnorm(n->g, x, w, 1e-5, &h, &n->err));
    OK(ct_op_add(n->g, side, side, &unused, &n->err)); /* on no way to the loss */
    OK(ct_op_matmul(n->g, h, wq, CT_NO_VALUE, false, true, &q, &n->err));
    ct_graph_pop_scope(n->g);
    OK(ct_graph_push_scope(n->g, "residual", &n->err));
    OK(ct_op_add(n->g, q, h, &s, &n->err));
    OK(ct_op_add(n->g, s, x, &s, &n->err));
    ct_graph_pop_scope(n->g);
    head(n, s);
    OK(ct_graph_push_scope(n->g, "now", &n->err));
    ct_value_id grads[3];
    OK(ct_autodiff(n->g, n->loss, (ct_value_id[]){wq, w, side}, 3, grads, &n->err));
    assert_string_equal(ct_graph_scope(n->g), "now");
    assert_int_equal(cti_graph_program(n->g), CT_PROGRAM_FORWARD);
    /* Nobody asks for x's gradient or for anything before w, yet h's has two parts: from the residual, then
     * from wq. */
    assert_backward(
        n, "matmul{false,false}@layers.0 add@layers.0 matmul{true,false}@layers.0 rmsnorm_grad@layers.0");
    assert_grad_like(n, grads[0], wq);
    assert_grad_like(n, grads[1], w);
    assert_int_equal(grads[2], CT_NO_VALUE);
    OK(ct_graph_verify(n->g, &n->err));
    ct_graph_destroy(&n->g);
}

/* Every differentiable op, every attribute variant that changes the rule: dims and dtypes of gradients are
 * those of the values, the graph verifies, and the nodes are the expected ones. */
static void rules(void **state)
{
    (void)state;
    static const struct {
        const char *op, *attrs, *inputs; /* inputs: f32 ones are differentiated by */
        const char
            *wanted; /* backward nodes after the gradient of the output came in through mul or cast+reshape */
    } table[] = {
        /* clang-format off */
        {"embedding", "", "f32[10,4] i32[2,3]", "embedding_grad{10}"},
        {"matmul", "", "f32[2,3,4] f32[4,5]", "matmul{false,true} matmul{true,false}"},
        {"matmul", "tb=true", "f32[2,3,4] f32[5,4]", "matmul{false,false} matmul{true,false}"},
        {"matmul", "ta=true", "f32[2,3,4] f32[2,3,5]", "matmul{false,true} matmul{false,false}"},
        {"matmul", "ta=true", "f32[2,3,4] f32[6,5]", "matmul{false,true} reshape{2 3 4} matmul{false,false} reshape{6 5}"},
        {"matmul", "ta=true;tb=true", "f32[2,3,4] f32[5,6]", "matmul{true,true} reshape{2 3 4} matmul{true,true}"},
        {"matmul", "", "f32[6,4] f32[2,2,5] f32[6,5]", "matmul{false,true} matmul{true,false} reshape{2 2 5}"},
        {"matmul", "tb=true", "f32[6,4] f32[2,2,4] f32[6,4]", "matmul{false,false} matmul{true,false} reshape{2 2 4}"},
        {"add", "", "f32[2,3] f32[2,3]", ""},
        {"mul", "", "f32[2,3] f32[2,3]", "mul mul"},
        {"scale", "alpha=0.25", "f32[2,3]", "scale{0.25}"},
        {"reshape", "dims=6", "f32[2,3]", "reshape{2 3}"},
        {"transpose", "perm=2 0 1", "f32[2,3,4]", "transpose{1 2 0}"},
        {"slice", "dim=1;start=2;len=3", "f32[2,6]", "slice_grad{1,2,6}"},
        {"concat", "dim=1", "f32[2,3] f32[2,4]", "slice{1,0,3} slice{1,3,4}"},
        {"rmsnorm", "", "f32[2,3,4] f32[4]", "rmsnorm_grad"},
        {"rope", "", "f32[2,3,4,8] i32[2,3] F32[16,4,2]", "rope{true}"},
        {"rope", "inverse=true", "f32[2,3,4,8] i32[2,3] F32[16,4,2]", "rope{false}"},
        {"qkv_rope", "heads=2;kv_heads=1", "f32[2,3,16] i32[2,3] F32[16,2,2]", "fill{0.0,0,2 3 1 4} fill{0.0,0,2 3 1 4} qkv_rope_grad"},
        {"rotary_mul", "", "f32[2,3,4,8] F32[2,3,8] F32[2,3,8]", "rotary_mul{true}"},
        {"sdpa", "scale=0.5;window=2", "f32[2,3,4,8] f32[2,5,2,8] f32[2,5,2,8] i32[6,4] i32[1]", "sdpa_grad{0.5,true,2}"},
        {"sdpa_tnd", "scale=0.5;causal=false", "f32[6,4,8] f32[5,2,8] f32[5,2,8] i32[3] i32[3] i32[1]", "sdpa_tnd_grad{0.5,false,0}"},
        {"silu_mul", "", "f32[2,3] f32[2,3]", "silu_mul_grad"},
        {"swiglu", "", "f32[2,3,8]", "swiglu_grad"},
        {"flat_split", "offsets=8 0 4;ndims=1 2 1;dims=3 2 2 4", "f32[12]", "flat_concat{8,12}"},
        {"reduce_scatter", "axis=1;degree=2", "f32[4,6]", "all_gather{1,2,-1}"},
        {"all_gather", "axis=1;degree=2", "f32[4,6]", "reduce_scatter{1,2}"},
        {"all_reduce", "axis=1;degree=2", "f32[4,6]", ""},
        {"owe", "axis=4;degree=2;reduce_dtype=-1", "f32[4,6]", "all_reduce{4,2}"},
        /* clang-format on */
    };
    for (size_t i = 0; i < N_OF(table); i++) {
        net made = net_make(), *n = &made;
        const ct_op *op = ct_op_find(table[i].op);
        void *attrs = case_attrs(n->g, op, table[i].attrs);
        ct_value_id in[8], outs[8], wrt[8], grads[8], flat, x;
        int32_t n_in = 0, n_wrt = 0;
        char word[64];
        for (const char *p = table[i].inputs; (p = case_next(p, ' ', word, sizeof word)) != NULL; n_in++) {
            const bool is_table = word[0] == 'F'; /* a float that is not differentiated by */
            word[0] = (char)(is_table ? 'f' : word[0]);
            ct_value_spec spec = case_spec(word);
            char name[16];
            (void)snprintf(name, sizeof name, "in%d", (int)n_in);
            spec.name = name;
            OK(ct_graph_add_value(n->g, &spec, &in[n_in], &n->err));
            if (word[0] == 'f' && !is_table) {
                wrt[n_wrt++] = in[n_in];
            }
        }
        OK(ct_op_emit(n->g, op->id, attrs, in, n_in, outs, &n->err));
        /* The first output, as one row [1, N], into the loss. */
        OK(ct_op_reshape(n->g, outs[0], (int64_t[]){1, -1}, 2, &flat, &n->err));
        OK(ct_op_scale(n->g, flat, 2.0, &x, &n->err));
        head(n, x);
        OK(ct_autodiff(n->g, n->loss, wrt, n_wrt, grads, &n->err));
        if (ct_graph_verify(n->g, &n->err) != CT_OK) {
            fail_msg("%s: %s", table[i].op, n->err.message);
        }
        for (int32_t k = 0; k < n_wrt; k++) {
            assert_grad_like(n, grads[k], wrt[k]);
        }
        char *text = backward_text(n);
        const char *rest = strstr(text, "scale{2.0}");
        assert_ptr_equal(rest, text);
        rest += strlen("scale{2.0}");
        if (ct_graph_value_c(n->g, outs[0])->ndim != 2 || ct_graph_value_c(n->g, outs[0])->dims[0] != 1) {
            assert_non_null(strstr(rest, " reshape{"));
            rest = strchr(rest, '}') + 1;
        }
        rest += *rest == ' ';
        if (strcmp(rest, table[i].wanted) != 0) {
            fail_msg("%s {%s}: '%s', wanted '%s'", table[i].op, table[i].attrs, rest, table[i].wanted);
        }
        ct_alloc_free(ct_alloc_system(), text);
        ct_graph_destroy(&n->g);
    }
}

/* FSDP's path: shard f32 -> bf16 -> gather -> views; back: flat_concat bf16 -> f32 -> reduce_scatter f32, and
 * no cast after it. */
static void fsdp(void **state)
{
    (void)state;
    net made = net_make(), *n = &made;
    const ct_value_id shard = param(n, "flat", CT_DTYPE_F32, 1, 24, 0, 0, 0),
                      x = param(n, "x", CT_DTYPE_BF16, 2, 4, 6, 0, 0);
    ct_value_id half, whole, views[2], y, grad;
    OK(ct_op_cast(n->g, shard, CT_DTYPE_BF16, &half, &n->err));
    OK(ct_op_emit(n->g, CT_OP_all_gather,
                  &(ct_attrs_all_gather){.axis = 2, .degree = 2, .reduce_dtype = CT_DTYPE_F32}, &half, 1,
                  &whole, &n->err));
    const ct_attrs_flat_split split = {.offsets = {2, (int64_t[]){0, 36}},
                                       .ndims = {2, (int64_t[]){2, 1}},
                                       .dims = {3, (int64_t[]){6, 6, 12}}};
    OK(ct_op_emit(n->g, CT_OP_flat_split, &split, &whole, 1, views, &n->err));
    OK(ct_op_matmul(n->g, x, views[0], CT_NO_VALUE, false, true, &y, &n->err));
    head(n, y);
    OK(ct_autodiff(n->g, n->loss, &shard, 1, &grad, &n->err));
    assert_backward(n, "matmul{true,false} flat_concat{0,48} cast{0} reduce_scatter{2,2}");
    assert_grad_like(n, grad, shard);
    OK(ct_graph_verify(n->g, &n->err));
    ct_graph_destroy(&n->g);
}

/* A bf16 value that an all_gather and another op read: the sum is kept in the wider dtype. */
static void mixed_dtypes(void **state)
{
    (void)state;
    net made = net_make(), *n = &made;
    const ct_value_id w = param(n, "w", CT_DTYPE_BF16, 2, 4, 6, 0, 0);
    ct_value_id whole, part, s, grad;
    OK(ct_op_emit(n->g, CT_OP_all_gather,
                  &(ct_attrs_all_gather){.axis = 0, .degree = 2, .reduce_dtype = CT_DTYPE_F32}, &w, 1, &whole,
                  &n->err));
    OK(ct_op_emit(n->g, CT_OP_slice, &(ct_attrs_slice){0, 0, 4}, &whole, 1, &part, &n->err));
    OK(ct_op_add(n->g, part, w, &s, &n->err));
    head(n, s);
    OK(ct_autodiff(n->g, n->loss, &w, 1, &grad, &n->err));
    assert_backward(n, "slice_grad{0,0,8} cast{0} reduce_scatter{0,2} cast{0} add");
    assert_int_equal(ct_graph_value_c(n->g, grad)->dtype, CT_DTYPE_F32);
    ct_graph_destroy(&n->g);
}

/* Each refusal leaves the order, the scope and the program as they were. */
static void assert_refused(net *n, ct_value_id loss, ct_value_id wrt, ct_status status, const char *words)
{
    const int32_t before = ct_graph_order_len(n->g);
    ct_value_id grad = 77;
    ct_err err = {0};
    const ct_status st = ct_autodiff(n->g, loss, &wrt, 1, &grad, &err);
    if (st != status || strstr(err.message, words) == NULL) {
        fail_msg("%s, '%s'; wanted '%s'", ct_status_name(st), err.message, words);
    }
    assert_int_equal(ct_graph_order_len(n->g), before);
    assert_int_equal(grad, 77);
    assert_string_equal(ct_graph_scope(n->g), "");
    assert_int_equal(cti_graph_program(n->g), CT_PROGRAM_FORWARD);
    OK(ct_graph_verify(n->g, &n->err));
}

static void refused(void **state)
{
    (void)state;
    net made = net_make(), *n = &made;
    const ct_value_id x = param(n, "x", CT_DTYPE_F32, 4, 2, 3, 4, 8),
                      pos = param(n, "pos", CT_DTYPE_I32, 2, 2, 3, 0, 0),
                      table = param(n, "table", CT_DTYPE_F32, 3, 16, 4, 2, 0),
                      first = param(n, "first", CT_DTYPE_I32, 1, 1, 0, 0, 0);
    ct_value_id cos, sin, turned, again, norm[2], w = param(n, "w", CT_DTYPE_F32, 1, 8, 0, 0, 0);
    OK(ct_graph_set_scope(n->g, "rows", &n->err));
    OK(ct_op_rope_rows(n->g, pos, table, &cos, &sin, &n->err));
    OK(ct_graph_set_scope(n->g, "", &n->err));
    OK(ct_op_rotary_mul(n->g, x, cos, sin, &turned, &n->err));
    OK(ct_op_rope(n->g, turned, pos, table, &again, &n->err));
    OK(ct_op_emit(n->g, CT_OP_rmsnorm, &(ct_attrs_rmsnorm){1e-5}, (ct_value_id[]){again, w}, 2, norm,
                  &n->err));
    head(n, norm[0]);
    assert_refused(n, n->loss, 1000, CT_ERR_RANGE, "value 1000 to differentiate by does not exist");
    assert_refused(n, 1000, x, CT_ERR_RANGE, "the loss, value 1000, does not exist");
    assert_refused(n, n->loss, pos, CT_ERR_UNSUPPORTED, "value 'pos' is i32; only floats have gradients");
    assert_refused(n, n->loss + 1, x, CT_ERR_UNSUPPORTED, "is not the loss of a linear_cross_entropy node");
    assert_refused(n, x, x, CT_ERR_UNSUPPORTED, "is not the loss of a linear_cross_entropy node");
    assert_refused(n, n->loss, table, CT_ERR_UNSUPPORTED,
                   "(rope) in '': it has no gradient for input 2, value %2 'table'");
    assert_refused(n, n->loss, n->inv_tokens, CT_ERR_UNSUPPORTED,
                   "(linear_cross_entropy) in '': it has no gradient for input 3");
    ct_graph_destroy(&n->g);

    *n = net_make(); /* an output that its rule does not take: rstd */
    const ct_value_id x2 = param(n, "x", CT_DTYPE_F32, 2, 4, 8, 0, 0),
                      w2 = param(n, "w", CT_DTYPE_F32, 1, 8, 0, 0, 0);
    ct_value_id rows;
    OK(ct_op_emit(n->g, CT_OP_rmsnorm, &(ct_attrs_rmsnorm){1e-5}, (ct_value_id[]){x2, w2}, 2, norm, &n->err));
    OK(ct_op_reshape(n->g, norm[1], (int64_t[]){1, 4}, 2, &rows, &n->err));
    head(n, rows);
    assert_refused(n, n->loss, x2, CT_ERR_UNSUPPORTED, "its output 1 carries a gradient");
    /* The same loss, read by a node. */
    ct_value_id doubled;
    OK(ct_op_scale(n->g, n->loss, 2.0, &doubled, &n->err));
    assert_refused(n, n->loss, x2, CT_ERR_UNSUPPORTED, "the loss is read by a node (scale)");
    ct_graph_destroy(&n->g);

    *n = net_make(); /* a loss inside a loss */
    const ct_value_id x3 = param(n, "x", CT_DTYPE_F64, 2, 4, 8, 0, 0);
    const ct_value_id w3 = param(n, "w", CT_DTYPE_F64, 2, 9, 8, 0, 0),
                      l3 = param(n, "l", CT_DTYPE_I32, 1, 4, 0, 0, 0),
                      i3 = param(n, "i", CT_DTYPE_F32, 1, 1, 0, 0, 0);
    ct_value_id inner[3], one;
    OK(ct_op_emit(n->g, CT_OP_linear_cross_entropy, &(ct_attrs_loss){1}, (ct_value_id[]){x3, w3, l3, i3}, 4,
                  inner, &n->err));
    OK(ct_op_reshape(n->g, inner[0], (int64_t[]){1, 1}, 2, &one, &n->err));
    head(n, one);
    assert_refused(n, n->loss, x3, CT_ERR_UNSUPPORTED, "it is a loss inside a loss; a graph has one");
    ct_graph_destroy(&n->g);

    *n = net_make(); /* an op without a rule on the way */
    const ct_value_id cache = param(n, "cache", CT_DTYPE_F32, 4, 1, 8, 1, 4),
                      k = param(n, "k", CT_DTYPE_F32, 4, 1, 2, 1, 4),
                      start = param(n, "start", CT_DTYPE_I32, 1, 1, 0, 0, 0);
    ct_value_id filled, row;
    OK(ct_graph_set_scope(n->g, "layers.1", &n->err));
    OK(ct_op_kv_append(n->g, cache, k, start, &filled, &n->err));
    OK(ct_graph_set_scope(n->g, "", &n->err));
    OK(ct_op_reshape(n->g, filled, (int64_t[]){1, -1}, 2, &row, &n->err));
    head(n, row);
    assert_refused(
        n, n->loss, k, CT_ERR_UNSUPPORTED,
        "gradient of node 0 (kv_append) in 'layers.1': it has no gradient rule: it updates state in place");
    (void)first;
    ct_graph_destroy(&n->g);

    *n = net_make(); /* views that overlap */
    const ct_value_id flat = param(n, "flat", CT_DTYPE_F32, 1, 12, 0, 0, 0);
    ct_value_id views[2], sum;
    const ct_attrs_flat_split split = {.offsets = {2, (int64_t[]){0, 4}},
                                       .ndims = {2, (int64_t[]){2, 2}},
                                       .dims = {4, (int64_t[]){1, 6, 1, 6}}};
    OK(ct_op_emit(n->g, CT_OP_flat_split, &split, &flat, 1, views, &n->err));
    OK(ct_op_add(n->g, views[0], views[1], &sum, &n->err));
    head(n, sum);
    assert_refused(n, n->loss, flat, CT_ERR_SHAPE,
                   "(flat_split) in '': flat_concat(f32 [1, 6], f32 [1, 6]): input 1 at 4 begins before");
    ct_graph_destroy(&n->g);
}

static void memory_runs_out(void **state)
{
    (void)state;
    for (int64_t fail_at = 1;; fail_at++) {
        test_alloc t;
        test_alloc_init(&t, 0);
        net made = {0}, *n = &made;
        OK(ct_graph_create(&t.alloc, "net", &n->g, &n->err));
        const ct_value_id x = param(n, "x", CT_DTYPE_F32, 2, 4, 6, 0, 0);
        ct_value_id y = x, grad;
        for (int i = 0; i < 30; i++) {
            OK(ct_op_mul(n->g, y, y, &y, &n->err));
        }
        head(n, y);
        t.fail_at = t.n_calls + fail_at;
        ct_err err = {0};
        const ct_status st = ct_autodiff(n->g, n->loss, &x, 1, &grad, &err);
        const bool is_done = t.n_calls < t.fail_at;
        ct_graph_destroy(&n->g);
        assert_int_equal(t.n_live, 0);
        assert_int_equal(st, is_done ? CT_OK : CT_ERR_MEMORY);
        if (is_done) {
            break;
        }
    }
}

/* The rows of the gradient list name every op once (a static_assert counts them); reasons are sentences. */
static void rows(void **state)
{
    (void)state;
    assert_null(cti_grad_why_not(CT_OP_matmul));
    assert_non_null(cti_grad_why_not(CT_OP_adamw));
    assert_null(cti_grad_why_not(-1));
    assert_null(cti_grad_why_not(CT_OP_COUNT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(head_alone),      cmocka_unit_test(chain),
        cmocka_unit_test(rules),           cmocka_unit_test(fsdp),
        cmocka_unit_test(mixed_dtypes),    cmocka_unit_test(refused),
        cmocka_unit_test(memory_runs_out), cmocka_unit_test(rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
