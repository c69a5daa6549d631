/* SPDX-License-Identifier: Apache-2.0 */
/* Reverse-mode differentiation over the graph: marks what needs a gradient, walks the order backwards, sums
 * fan-in. */
#include <inttypes.h>

#include "autodiff/grad.h"
#include "ops/ops.h"

typedef struct grad_row {
    ct_gradient_fn rule; /* NULL: why_not */
    bool takes_all;      /* every output may carry a gradient, not only output 0 */
    const char *why_not;
} grad_row;

enum { OUTS_FIRST, OUTS_ALL };
#define GRAD(op, outs) [CT_OP_##op] = {.rule = cti_rule_##op, .takes_all = OUTS_##outs},
#define NONE(op, reason) [CT_OP_##op] = {.why_not = (reason)},
static const grad_row rows[CT_OP_COUNT] = {CTI_GRAD_LIST(GRAD, NONE)};

/* Of an op that there is. */
static grad_row row_of(const ct_op *op)
{
    return op->id < CT_OP_COUNT ? rows[op->id] : (grad_row){op->gradient, op->gradient_takes_all, op->no_gradient};
}

struct ct_grad_ctx {
    ct_graph *graph;
    ct_value_id loss;
    int32_t n_values;   /* of the forward graph: the length of the arrays */
    bool *is_wanted;    /* owns: reached from a wrt value, and a float */
    ct_value_id *grads; /* owns: the gradient so far */
    int32_t *added_at;  /* owns: position of the forward node that last added to it */
    int32_t pos;        /* of the forward node being answered */
};

static const char *op_name(const ct_node *node)
{
    const ct_op *op = ct_op_row(node->op);
    return op == NULL ? "?" : op->name;
}

const char *cti_grad_why_not(int32_t op)
{
    const ct_op *row = ct_op_row(op);
    return row != NULL ? row_of(row).why_not : NULL;
}

ct_graph *ct_grad_graph(const ct_grad_ctx *ctx)
{
    return ctx->graph;
}

bool ct_grad_is_wanted(const ct_grad_ctx *ctx, ct_value_id value)
{
    return value >= 0 && value < ctx->n_values && ctx->is_wanted[value];
}

bool cti_grad_is_root(const ct_grad_ctx *ctx, const ct_node *node)
{
    return node->n_out > 0 && node->out[0] == ctx->loss;
}

ct_value_id cti_grad_output_as_made(const ct_grad_ctx *ctx, const ct_node *node, int32_t out)
{
    return ctx->grads[node->out[out]];
}

ct_status ct_grad_output(ct_grad_ctx *ctx, const ct_node *node, int32_t out, ct_value_id *out_grad, ct_err *err)
{
    if (out < 0 || out >= node->n_out) {
        return CT_FAIL(err, CT_ERR_STATE, "its rule asks for the gradient of output %d of %d", (int)out, (int)node->n_out);
    }
    const ct_value_id grad = ctx->grads[node->out[out]];
    if (grad == CT_NO_VALUE) {
        *out_grad = CT_NO_VALUE;
        return CT_OK;
    }
    return cti_grad_cast(ctx->graph, grad, ct_graph_value_c(ctx->graph, node->out[out])->dtype, out_grad,
                         err);
}

ct_status cti_grad_cast(ct_graph *g, ct_value_id a, ct_dtype dtype, ct_value_id *out, ct_err *err)
{
    if (ct_graph_value_c(g, a)->dtype == dtype) {
        *out = a;
        return CT_OK;
    }
    return ct_op_cast(g, a, dtype, out, err);
}

ct_status cti_grad_reshape_like(ct_graph *g, ct_value_id a, ct_value_id like, ct_value_id *out, ct_err *err)
{
    const ct_value wanted = *ct_graph_value_c(g, like);
    if (cti_same_dims(ct_graph_value_c(g, a), &wanted)) {
        *out = a;
        return CT_OK;
    }
    return ct_op_reshape(g, a, wanted.dims, wanted.ndim, out, err);
}

ct_status ct_grad_add(ct_grad_ctx *ctx, ct_value_id value, ct_value_id grad, ct_err *err)
{
    if (!ct_grad_is_wanted(ctx, value)) {
        return CT_OK;
    }
    ct_graph *g = ctx->graph;
    if (grad < 0 || grad >= ct_graph_n_values(g)) {
        return CT_FAIL(err, CT_ERR_STATE, "its rule gives value %d, which does not exist, as the gradient of value %%%d '%s'", (int)grad, (int)value,
                       ct_graph_value_c(g, value)->name);
    }
    if (!cti_same_dims(ct_graph_value_c(g, value), ct_graph_value_c(g, grad))) {
        return CT_FAIL(err, CT_ERR_STATE, "the rule made a gradient of other dims for value %%%d '%s'",
                       (int)value, ct_graph_value_c(g, value)->name);
    }
    ctx->added_at[value] = ctx->pos;
    ct_value_id sum = ctx->grads[value];
    if (sum == CT_NO_VALUE) {
        ctx->grads[value] = grad;
        return CT_OK;
    }
    /* Only all_gather makes gradients of another dtype than their value's; the sum keeps the wider one. */
    const ct_dtype a = ct_graph_value_c(g, sum)->dtype, b = ct_graph_value_c(g, grad)->dtype;
    const ct_dtype wide = ct_dtype_unit_roundoff(a) <= ct_dtype_unit_roundoff(b) ? a : b;
    CT_TRY(cti_grad_cast(g, sum, wide, &sum, err));
    CT_TRY(cti_grad_cast(g, grad, wide, &grad, err));
    return ct_op_add(g, sum, grad, &ctx->grads[value], err);
}

static bool is_float(const ct_graph *g, ct_value_id id)
{
    return ct_dtype_is_float(ct_graph_value_c(g, id)->dtype) != 0;
}

static ct_status check_wrt(const ct_grad_ctx *ctx, const ct_value_id *wrt, int32_t n_wrt, ct_err *err)
{
    for (int32_t i = 0; i < n_wrt; i++) {
        if (wrt[i] < 0 || wrt[i] >= ctx->n_values) {
            return CT_FAIL(err, CT_ERR_RANGE, "value %d to differentiate by does not exist", (int)wrt[i]);
        }
        if (!is_float(ctx->graph, wrt[i])) {
            const ct_value *v = ct_graph_value_c(ctx->graph, wrt[i]);
            return CT_FAIL(err, CT_ERR_UNSUPPORTED, "value '%s' is %s; only floats have gradients", v->name,
                           ct_dtype_name(v->dtype));
        }
    }
    return CT_OK;
}

/* The loss has to be output 0 of linear_cross_entropy, read by nobody. out_pos: of its node in the order. */
static ct_status check_root(const ct_grad_ctx *ctx, int32_t *out_pos, ct_err *err)
{
    const ct_graph *g = ctx->graph;
    if (ctx->loss < 0 || ctx->loss >= ctx->n_values) {
        return CT_FAIL(err, CT_ERR_RANGE, "the loss, value %d, does not exist", (int)ctx->loss);
    }
    int32_t pos = -1;
    const ct_node *reader = NULL;
    for (int32_t i = 0; i < ct_graph_order_len(g); i++) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[i]);
        for (int32_t k = 0; k < node->n_in; k++) {
            reader = node->in[k] == ctx->loss ? node : reader;
        }
        if (node->op == CT_OP_linear_cross_entropy && node->out[0] == ctx->loss) {
            pos = i;
        }
    }
    if (pos < 0) {
        return CT_FAIL(
            err, CT_ERR_UNSUPPORTED,
            "value %%%d '%s' is not the loss of a linear_cross_entropy node, the only root of a gradient",
            (int)ctx->loss, ct_graph_value_c(g, ctx->loss)->name);
    }
    if (reader != NULL) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED,
                       "the loss is read by a node (%s) in '%s'; the root of a gradient is read by nobody",
                       op_name(reader), reader->scope);
    }
    *out_pos = pos;
    return CT_OK;
}

/* Marks every float that depends on a wrt value, up to the root. */
static void mark_wanted(ct_grad_ctx *ctx, const ct_value_id *wrt, int32_t n_wrt, int32_t root_pos)
{
    const ct_graph *g = ctx->graph;
    for (int32_t i = 0; i < n_wrt; i++) {
        ctx->is_wanted[wrt[i]] = true;
    }
    for (int32_t pos = 0; pos <= root_pos; pos++) {
        const ct_node *node = ct_graph_node_c(g, ct_graph_order(g)[pos]);
        bool depends = false;
        const bool is_helper = (ct_op_row(node->op)->flags & CT_OP_HELPER) != 0;
        for (int32_t i = 0; i < node->n_in && !depends && !is_helper; i++) {
            depends = ct_grad_is_wanted(ctx, node->in[i]);
        }
        for (int32_t i = 0; i < node->n_out && depends; i++) {
            ctx->is_wanted[node->out[i]] = is_float(g, node->out[i]);
        }
    }
}

/* After its rule ran, every input that wants a gradient has to have got one. */
static ct_status check_answered(const ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    for (int32_t i = 0; i < node->n_in; i++) {
        if (ct_grad_is_wanted(ctx, node->in[i]) && ctx->added_at[node->in[i]] != ctx->pos) {
            return CT_FAIL(err, CT_ERR_UNSUPPORTED, "it has no gradient for input %d, value %%%d '%s'",
                           (int)i, (int)node->in[i], ct_graph_value_c(ctx->graph, node->in[i])->name);
        }
    }
    return CT_OK;
}

static ct_status apply_rule(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    const ct_op *op = ct_op_row(node->op);
    if (op == NULL) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "op %d has no gradient rule", (int)node->op);
    }
    const grad_row row = row_of(op);
    if (row.rule == NULL) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "it has no gradient rule: %s", row.why_not);
    }
    for (int32_t i = 1; i < node->n_out && !row.takes_all; i++) {
        if (ctx->grads[node->out[i]] != CT_NO_VALUE) {
            return CT_FAIL(err, CT_ERR_UNSUPPORTED,
                           "its output %d carries a gradient; its rule takes that of output 0 alone", (int)i);
        }
    }
    CT_TRY(ct_graph_set_scope(ctx->graph, node->scope, err));
    CT_TRY(row.rule(ctx, node, err));
    return check_answered(ctx, node, err);
}

static ct_status walk(ct_grad_ctx *ctx, int32_t root_pos, ct_err *err)
{
    ct_graph *g = ctx->graph;
    for (int32_t pos = root_pos; pos >= 0; pos--) {
        const ct_node_id id = ct_graph_order(g)[pos];
        const ct_node *node = ct_graph_node_c(g, id);
        bool is_reached = pos == root_pos, is_asked = false;
        for (int32_t i = 0; i < node->n_out && !is_reached; i++) {
            is_reached = ctx->grads[node->out[i]] != CT_NO_VALUE;
        }
        for (int32_t i = 0; i < node->n_in && !is_asked; i++) {
            is_asked = ct_grad_is_wanted(ctx, node->in[i]);
        }
        if (!is_reached || !is_asked) {
            continue; /* a wrt value may be made by a node that nobody asks */
        }
        ctx->pos = pos;
        const ct_status st = apply_rule(ctx, node, err);
        if (st != CT_OK) {
            ct_err_prefix(err, "gradient of node %d (%s) in '%s'", (int)id, op_name(node), node->scope);
            return st;
        }
    }
    return CT_OK;
}

static ct_status differentiate(ct_grad_ctx *ctx, const ct_value_id *wrt, int32_t n_wrt, ct_err *err)
{
    int32_t root_pos = -1;
    CT_TRY(check_root(ctx, &root_pos, err));
    CT_TRY(check_wrt(ctx, wrt, n_wrt, err));
    for (int32_t i = 0; i < ctx->n_values; i++) {
        ctx->grads[i] = CT_NO_VALUE;
        ctx->added_at[i] = -1;
    }
    mark_wanted(ctx, wrt, n_wrt, root_pos);
    ct_graph *g = ctx->graph;
    const ct_program_id program = cti_graph_program(g);
    const char *scope = ct_graph_scope(g); /* the arena's: stays */
    const int32_t n_order = ct_graph_order_len(g);
    ct_graph_set_program(g, CT_PROGRAM_BACKWARD);
    const ct_status st = walk(ctx, root_pos, err);
    ct_graph_set_program(g, program);
    /* Half a backward graph is of no use: its nodes leave the order again. err keeps the first failure. */
    const ct_status undone = st == CT_OK ? CT_OK : ct_graph_set_order(g, ct_graph_order(g), n_order, err);
    const ct_status scoped = ct_graph_set_scope(g, scope, err);
    return st != CT_OK ? st : undone != CT_OK ? undone : scoped;
}

ct_status ct_autodiff(ct_graph *g, ct_value_id loss, const ct_value_id *wrt, int32_t n_wrt,
                      ct_value_id *out_grads, ct_err *err)
{
    const ct_alloc *alloc = ct_graph_allocator(g);
    ct_grad_ctx ctx = {.graph = g, .loss = loss, .n_values = ct_graph_n_values(g)};
    ctx.is_wanted = CT_NEW_ARRAY(alloc, bool, ctx.n_values, err);
    ctx.grads = CT_NEW_ARRAY(alloc, ct_value_id, ctx.n_values, err);
    ctx.added_at = CT_NEW_ARRAY(alloc, int32_t, ctx.n_values, err);
    ct_status st = CT_ERR_MEMORY;
    if (ctx.is_wanted != NULL && ctx.grads != NULL && ctx.added_at != NULL) {
        st = differentiate(&ctx, wrt, n_wrt, err);
    }
    for (int32_t i = 0; i < n_wrt && st == CT_OK; i++) {
        out_grads[i] = ctx.grads[wrt[i]];
    }
    ct_alloc_free(alloc, ctx.is_wanted);
    ct_alloc_free(alloc, ctx.grads);
    ct_alloc_free(alloc, ctx.added_at);
    return st;
}
