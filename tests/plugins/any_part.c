/* SPDX-License-Identifier: Apache-2.0 */
/* any_part: overrides of sections and of the loss, and replacements of parts that are right, wrong by little, or of other parameters; for the
 * tests of overrides and of `ctitan check-overrides`. Everything through the installed headers. */
#include <string.h>

#include "ctitan/plugin.h"
#include "ctitan/ops.h"

static ct_class good_norm, wide_norm, late_norm, swapped, renamed, deeper, same_loss, cold_loss;

/* The same class with other values: sections, and what has only numbers to change. */
static ct_status same_class(ct_tree *tree, ct_component *matched, const char *args_json, ct_component **out, ct_err *err)
{
    CT_TRY(ct_component_derive(tree, matched, matched->cls, out, err));
    return ct_component_set_json(tree, *out, args_json, err);
}

static ct_status rms(const ct_component *self, ct_build *b, const ct_value_id *in, double times, ct_value_id *out, ct_err *err)
{
    const struct norm_values {
        int64_t normalized_shape;
        double eps;
    } *c = ct_component_values(self);
    const ct_init init = {CT_INIT_CONST, 1.0, 0.0, 0.0, 0.0};
    ct_value_id w, x;
    CT_TRY(ct_build_param(b, "weight", &c->normalized_shape, 1, &init, &w, err));
    CT_TRY(ct_op_scale(b->graph, in[0], 2.0, &x, err)); /* norm(2 x) with 4 eps is norm(x) with eps */
    return ct_op_rmsnorm(b->graph, x, w, 4.0 * times * c->eps, &out[0], err);
}

static ct_status good_norm_build(const ct_component *self, ct_build *b, const ct_value_id *in, int32_t n_in, ct_value_id *out, int32_t n_out, ct_err *err)
{
    CT_ASSERT(n_in == 1 && n_out == 1);
    return rms(self, b, in, 1.0, out, err);
}

static ct_status wide_norm_build(const ct_component *self, ct_build *b, const ct_value_id *in, int32_t n_in, ct_value_id *out, int32_t n_out, ct_err *err)
{
    CT_ASSERT(n_in == 1 && n_out == 1);
    return rms(self, b, in, 1.02, out, err);
}

/* Right in training and in the prompt. */
static ct_status late_norm_build(const ct_component *self, ct_build *b, const ct_value_id *in, int32_t n_in, ct_value_id *out, int32_t n_out, ct_err *err)
{
    CT_ASSERT(n_in == 1 && n_out == 1);
    return rms(self, b, in, b->mode == CT_BUILD_DECODE ? 100.0 : 1.0, out, err);
}

/* Feed-forward parts: gate and up changed for each other; w3 under another name; more parameters than wanted. */
static ct_status feed_forward(const ct_component *self, ct_build *b, const ct_value_id *in, const char *gate_name, const char *up_name, const char *scope,
                              ct_value_id *out, ct_err *err)
{
    ct_value_id gate, up, hidden;
    CT_TRY(ct_build_child(b, self, gate_name, in, 1, &gate, 1, err));
    if (scope != NULL) {
        CT_TRY(ct_graph_push_scope(b->graph, scope, err));
    }
    CT_TRY(ct_build_child(b, self, up_name, in, 1, &up, 1, err));
    if (scope != NULL) {
        ct_graph_pop_scope(b->graph);
    }
    CT_TRY(ct_op_silu_mul(b->graph, gate, up, &hidden, err));
    return ct_build_child(b, self, "w2", &hidden, 1, out, 1, err);
}

static ct_status swapped_build(const ct_component *self, ct_build *b, const ct_value_id *in, int32_t n_in, ct_value_id *out, int32_t n_out, ct_err *err)
{
    CT_ASSERT(n_in == 1 && n_out == 1);
    return feed_forward(self, b, in, "w3", "w1", NULL, out, err);
}

static ct_status renamed_build(const ct_component *self, ct_build *b, const ct_value_id *in, int32_t n_in, ct_value_id *out, int32_t n_out, ct_err *err)
{
    CT_ASSERT(n_in == 1 && n_out == 1);
    return feed_forward(self, b, in, "w1", "w3", "up", out, err);
}

static ct_status deeper_build(const ct_component *self, ct_build *b, const ct_value_id *in, int32_t n_in, ct_value_id *out, int32_t n_out, ct_err *err)
{
    const struct {
        int64_t dim, hidden_dim;
    } *c = ct_component_values(self);
    const ct_init init = {CT_INIT_CONST, 1.0, 0.0, 0.0, 0.0};
    ct_value_id w, x;
    CT_ASSERT(n_in == 1 && n_out == 1);
    CT_TRY(ct_build_param(b, "scale", &c->dim, 1, &init, &w, err));
    CT_TRY(ct_op_rmsnorm(b->graph, in[0], w, 1e-5, &x, err));
    return feed_forward(self, b, &x, "w1", "w3", NULL, out, err);
}

/* hidden [B, S, D], head [V, D], labels, inv_tokens -> loss, of logits that are multiplied by `factor`. */
static ct_status loss(ct_build *b, const ct_value_id *in, double factor, ct_value_id *out, ct_err *err)
{
    const ct_attrs_loss attrs = {.chunks = 2};
    ct_value_id ins[4] = {in[0], in[1], in[2], in[3]}, outs[3];
    if (factor < 1.0) {
        CT_TRY(ct_op_scale(b->graph, in[0], factor, &ins[0], err));
    }
    CT_TRY(ct_op_emit(b->graph, b->mode == CT_BUILD_TRAIN ? CT_OP_linear_cross_entropy : CT_OP_linear_cross_entropy_eval, &attrs, ins, 4, outs, err));
    out[0] = outs[0];
    return CT_OK;
}

static ct_status same_loss_build(const ct_component *self, ct_build *b, const ct_value_id *in, int32_t n_in, ct_value_id *out, int32_t n_out, ct_err *err)
{
    (void)self;
    CT_ASSERT(n_in == 4 && n_out == 1);
    return loss(b, in, 1.0, out, err);
}

static ct_status cold_loss_build(const ct_component *self, ct_build *b, const ct_value_id *in, int32_t n_in, ct_value_id *out, int32_t n_out, ct_err *err)
{
    (void)self;
    CT_ASSERT(n_in == 4 && n_out == 1);
    return loss(b, in, 0.5, out, err);
}

#define DERIVED(name, cls)                                                                                                              \
    static ct_status name(ct_tree *tree, ct_component *matched, const char *args_json, ct_component **out, ct_err *err)                 \
    {                                                                                                                                   \
        CT_TRY(ct_component_derive(tree, matched, &(cls), out, err));                                                                   \
        return ct_component_set_json(tree, *out, args_json, err);                                                                       \
    }
DERIVED(make_good_norm, good_norm)
DERIVED(make_wide_norm, wide_norm)
DERIVED(make_late_norm, late_norm)
DERIVED(make_swapped, swapped)
DERIVED(make_renamed, renamed)
DERIVED(make_deeper, deeper)
DERIVED(make_same_loss, same_loss)
DERIVED(make_cold_loss, cold_loss)

typedef ct_status (*build_fn)(const ct_component *self, ct_build *build, const ct_value_id *in, int32_t n_in, ct_value_id *out, int32_t n_out, ct_err *err);
static const char *const first_block[] = {"*.layers.0.*"};

/* cls NULL: the target's own class. */
static const struct row {
    const char *name, *target, *class_name;
    ct_class *cls;
    build_fn build;
    ct_override_fn factory;
    bool only_first;
} rows[] = {
    {"any_part.good_norm", "RMSNorm", "GoodNorm", &good_norm, good_norm_build, make_good_norm, false},
    {"any_part.wide_norm", "RMSNorm", "WideNorm", &wide_norm, wide_norm_build, make_wide_norm, false},
    {"any_part.late_norm", "RMSNorm", "LateNorm", &late_norm, late_norm_build, make_late_norm, false},
    {"any_part.swapped", "FeedForward", "Swapped", &swapped, swapped_build, make_swapped, true},
    {"any_part.renamed", "FeedForward", "Renamed", &renamed, renamed_build, make_renamed, true},
    {"any_part.deeper", "FeedForward", "Deeper", &deeper, deeper_build, make_deeper, true},
    {"any_part.same_loss", "ChunkedCELoss", "SameLoss", &same_loss, same_loss_build, make_same_loss, false},
    {"any_part.cold_loss", "ChunkedCELoss", "ColdLoss", &cold_loss, cold_loss_build, make_cold_loss, false},
    {"any_part.rope", "ComplexRoPE", NULL, NULL, NULL, same_class, false},
    {"any_part.head", "Linear", NULL, NULL, NULL, same_class, false},
    {"any_part.embedding", "Embedding", NULL, NULL, NULL, same_class, false},
    {"any_part.kwargs", "OptimizerKwargs", NULL, NULL, NULL, same_class, false},
    {"any_part.metrics", "MetricsProcessor", NULL, NULL, NULL, same_class, false},
    {"any_part.loader", "HuggingFaceTextDataLoader", NULL, NULL, NULL, same_class, false},
    {"any_part.checkpoint", "CheckpointManager", NULL, NULL, NULL, same_class, false},
    {"any_part.training", "TrainingConfig", NULL, NULL, NULL, same_class, false},
    {"any_part.validator", "Validator", NULL, NULL, NULL, same_class, false},
};

static ct_status setup(ct_registry *registry, ct_err *err)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const ct_class *target = ct_registry_class(registry, rows[i].target);
        if (target == NULL) {
            return CT_FAIL(err, CT_ERR_NOT_FOUND, "any_part: this ctitan has no component '%s'", rows[i].target);
        }
        if (rows[i].cls != NULL) {
            *rows[i].cls = *target;
            rows[i].cls->name = rows[i].class_name;
            rows[i].cls->base = target;
            rows[i].cls->build = rows[i].build;
            CT_TRY(ct_registry_add_class(registry, rows[i].cls, err));
        }
        const ct_override row = {.name = rows[i].name, .target = target, .fqns = rows[i].only_first ? first_block : NULL,
                                 .n_fqns = rows[i].only_first ? 1 : 0, .factory = rows[i].factory};
        CT_TRY(ct_registry_add_override(registry, &row, err));
    }
    return CT_OK;
}

__attribute__((visibility("default"))) const ct_plugin_info *ct_plugin_entry(void);
const ct_plugin_info *ct_plugin_entry(void)
{
    static const ct_plugin_info info = {CT_PLUGIN_ABI, sizeof(ct_plugin_info), "any_part", "0.1.0", setup};
    return &info;
}
