/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in with ops of its own: feed-forward layers whose gate is a squared ReLU (So et al. 2021) in place of SiLU. docs/extending.md builds
 * and runs it.
 *
 *     y = r^2 u,  r = max(g, 0);    dg = 2 r u dy,  du = r^2 dy
 */
#include <string.h>

#include <ctitan/plugin.h>

/* ---- kernels: one element at a time, in double for "ref" and in float for "cpu" ----------------------------------------- */

static double get(const ct_tensor *t, int64_t i)
{
    return t->dtype == CT_DTYPE_F64   ? ((const double *)t->data)[i]
           : t->dtype == CT_DTYPE_F32 ? (double)((const float *)t->data)[i]
                                      : (double)ct_bf16_to_f32(((const uint16_t *)t->data)[i]);
}

static void put(const ct_tensor *t, int64_t i, double x)
{
    if (t->dtype == CT_DTYPE_F64) {
        ((double *)t->data)[i] = x;
    } else if (t->dtype == CT_DTYPE_F32) {
        ((float *)t->data)[i] = (float)x;
    } else {
        ((uint16_t *)t->data)[i] = ct_f32_to_bf16((float)x);
    }
}

static int64_t count(const ct_tensor *t)
{
    int64_t n = 1;
    for (int32_t d = 0; d < t->ndim; d++) {
        n *= t->dims[d];
    }
    return n;
}

/* An output may lie where an input lies: all of an element is read before any of it is written. */
#define KERNELS(real, name)                                                                      \
    static void name##_rows(void *ctx, int64_t first, int64_t end, int thread)                   \
    {                                                                                            \
        const ct_launch *l = ctx;                                                                \
        (void)thread;                                                                            \
        for (int64_t i = first; i < end; i++) {                                                  \
            const real g = (real)get(&l->in[0], i), u = (real)get(&l->in[1], i);                 \
            const real r = g > 0 ? g : 0;                                                        \
            put(&l->out[0], i, (double)(r * r * u));                                             \
        }                                                                                        \
    }                                                                                            \
    static void name##_grad_rows(void *ctx, int64_t first, int64_t end, int thread)              \
    {                                                                                            \
        const ct_launch *l = ctx;                                                                \
        (void)thread;                                                                            \
        for (int64_t i = first; i < end; i++) {                                                  \
            const real dy = (real)get(&l->in[0], i);                                             \
            const real g = (real)get(&l->in[1], i), u = (real)get(&l->in[2], i);                 \
            const real r = g > 0 ? g : 0;                                                        \
            put(&l->out[0], i, (double)(2 * r * u * dy));                                        \
            put(&l->out[1], i, (double)(r * r * dy));                                            \
        }                                                                                        \
    }
KERNELS(double, ref)
KERNELS(float, cpu)

enum { GRAIN = 4096 };
#define RUN(name, loop)                                                       \
    static ct_status name(const ct_launch *launch, ct_err *err)               \
    {                                                                         \
        (void)err;                                                            \
        ct_parallel_for(count(&launch->out[0]), GRAIN, loop, (void *)(uintptr_t)launch); \
        return CT_OK;                                                         \
    }
RUN(run_ref, ref_rows)
RUN(run_cpu, cpu_rows)
RUN(run_ref_grad, ref_grad_rows)
RUN(run_cpu_grad, cpu_grad_rows)

#define FLOATS (CT_BIT(F32) | CT_BIT(BF16))
static const ct_op_kernel kernels[] = {{"cpu", {.run = run_cpu, .dtypes = FLOATS}}, {"ref", {.run = run_ref, .dtypes = FLOATS | CT_BIT(F64)}}};
static const ct_op_kernel grad_kernels[] = {{"cpu", {.run = run_cpu_grad, .dtypes = FLOATS}},
                                            {"ref", {.run = run_ref_grad, .dtypes = FLOATS | CT_BIT(F64)}}};

/* ---- the ops: shapes, work, gradient ------------------------------------------------------------------------------------- */

static ct_status like_first(const ct_graph *graph, const ct_value *const *in, int32_t n_in, const void *attrs, ct_value_spec *out, ct_err *err)
{
    (void)graph;
    (void)attrs;
    for (int32_t i = 0; i < n_in; i++) {
        if (!ct_dtype_is_float(in[i]->dtype) || in[i]->dtype != in[0]->dtype || in[i]->ndim != in[0]->ndim ||
            memcmp(in[i]->dims, in[0]->dims, (size_t)in[0]->ndim * sizeof in[0]->dims[0]) != 0) {
            return CT_FAIL(err, CT_ERR_SHAPE, "squared_relu: input %d has another shape or dtype than input 0", (int)i);
        }
    }
    for (int32_t i = 0; i < n_in - 1; i++) { /* gated: one output of two inputs; its gradient: two of three */
        out[i].dtype = in[0]->dtype;
        out[i].ndim = in[0]->ndim;
        memcpy(out[i].dims, in[0]->dims, sizeof out[i].dims);
    }
    return CT_OK;
}

static double three_each(const ct_value *const *in, int32_t n_in, const void *attrs)
{
    (void)n_in;
    (void)attrs;
    return 3.0 * (double)ct_value_numel(in[0]);
}

static int32_t gated, gated_grad; /* ids, given when they are registered */

static ct_status gradient(ct_grad_ctx *ctx, const ct_node *node, ct_err *err)
{
    ct_value_id in[3] = {CT_NO_VALUE, node->in[0], node->in[1]}, d[2];
    CT_TRY(ct_grad_output(ctx, node, 0, &in[0], err));
    CT_TRY(ct_op_emit(ct_grad_graph(ctx), gated_grad, NULL, in, 3, d, err));
    CT_TRY(ct_grad_add(ctx, node->in[0], d[0], err));
    return ct_grad_add(ctx, node->in[1], d[1], err);
}

static const ct_op gated_row = {.name = "squared_relu.gated",
                                .n_in_min = 2,
                                .n_in_max = 2,
                                .n_out = 1,
                                .flags = CT_OP_ELEMENTWISE,
                                .shard = CT_SHARD_ELEMENT,
                                .tolerance = CT_TOL_APPROXIMATE,
                                .shape = like_first,
                                .flops = three_each,
                                .gradient = gradient,
                                .kernels = kernels,
                                .n_kernels = 2};
static const ct_op gated_grad_row = {.name = "squared_relu.gated_grad",
                                     .n_in_min = 3,
                                     .n_in_max = 3,
                                     .n_out = 2,
                                     .flags = CT_OP_ELEMENTWISE,
                                     .shard = CT_SHARD_ELEMENT,
                                     .tolerance = CT_TOL_APPROXIMATE,
                                     .shape = like_first,
                                     .flops = three_each,
                                     .no_gradient = "it is itself a gradient, and second derivatives are not taken",
                                     .kernels = grad_kernels,
                                     .n_kernels = 2};

/* ---- the component: w2 (relu(w1 x)^2 * w3 x), and the override that puts it in place of a FeedForward -------------------- */

static ct_status build(const ct_component *self, ct_build *b, const ct_value_id *in, int32_t n_in, ct_value_id *out, int32_t n_out, ct_err *err)
{
    ct_value_id gate_up[2], hidden;
    CT_TRY(ct_build_child(b, self, "w1", in, n_in, &gate_up[0], 1, err));
    CT_TRY(ct_build_child(b, self, "w3", in, n_in, &gate_up[1], 1, err));
    CT_TRY(ct_op_emit(b->graph, gated, NULL, gate_up, 2, &hidden, err));
    return ct_build_child(b, self, "w2", &hidden, 1, out, n_out, err);
}

static ct_class squared; /* FeedForward's fields; another name and build */

static ct_status make(ct_tree *tree, ct_component *matched, const char *args_json, ct_component **out, ct_err *err)
{
    if (strcmp(args_json, "{}") != 0) {
        return CT_FAIL(err, CT_ERR_USAGE, "squared_relu.feed_forward takes no arguments, found %s", args_json);
    }
    return ct_component_derive(tree, matched, &squared, out, err);
}

static ct_status setup(ct_registry *registry, ct_err *err)
{
    const ct_class *feed_forward = ct_registry_class(registry, "FeedForward");
    if (feed_forward == NULL) {
        return CT_FAIL(err, CT_ERR_NOT_FOUND, "this ctitan has no component 'FeedForward'");
    }
    squared = *feed_forward;
    squared.name = "SquaredReluFeedForward";
    squared.base = feed_forward;
    squared.build = build;
    CT_TRY(ct_registry_add_op(registry, &gated_row, &gated, err));
    CT_TRY(ct_registry_add_op(registry, &gated_grad_row, &gated_grad, err));
    CT_TRY(ct_registry_add_class(registry, &squared, err));
    const ct_override row = {.name = "squared_relu.feed_forward",
                             .target = feed_forward,
                             .description = "a squared ReLU as the gate of every feed-forward layer",
                             .factory = make};
    return ct_registry_add_override(registry, &row, err);
}

__attribute__((visibility("default"))) const ct_plugin_info *ct_plugin_entry(void);
const ct_plugin_info *ct_plugin_entry(void)
{
    static const ct_plugin_info info = {CT_PLUGIN_ABI, sizeof(ct_plugin_info), "squared_relu", "1.0", setup};
    return &info;
}
