/* SPDX-License-Identifier: Apache-2.0 */
/* fused_swiglu: the feed-forward part with one weight w13 for gate and up, w1's rows above w3's: the input is read once, by one product.
 * Checkpoints, Hugging Face folders, optimizers and their states go on knowing w1 and w3 (ct_build_join), so runs with and without it
 * continue each other's checkpoints.
 *
 *     ctitan train … --override.imports fused_swiglu.fused_swiglu
 *     ctitan check-overrides fused_swiglu.fused_swiglu
 */
#include <string.h>

#include "ctitan/plugin.h"
#include "ctitan/ops.h"

typedef struct swiglu_values {
    int64_t dim, hidden_dim;
} swiglu_values;
/* clang-format off */
#define FIELD(name) {#name, CT_FIELD_I64, offsetof(swiglu_values, name), "1", "", "", "", "", CT_SET_PLAN, NULL, "as in FeedForward"}
/* clang-format on */
static const ct_field swiglu_fields[] = {FIELD(dim), FIELD(hidden_dim)};

/* x [B, S, D] -> w2 (silu(w1 x) * w3 x). Without an input, a Linear declares its weight and emits nothing. */
static ct_status swiglu_build(const ct_component *self, ct_build *b, const ct_value_id *in, int32_t n_in, ct_value_id *out, int32_t n_out,
                              ct_err *err)
{
    CT_ASSERT(n_in == 1 && n_out == 1);
    ct_value_id w[2], w13, gate_up, hidden;
    CT_TRY(ct_build_child(b, self, "w1", NULL, 0, &w[0], 1, err));
    CT_TRY(ct_build_child(b, self, "w3", NULL, 0, &w[1], 1, err));
    CT_TRY(ct_build_join(b, "w13.weight", w, 2, &w13, err));
    CT_TRY(ct_op_matmul(b->graph, in[0], w13, CT_NO_VALUE, false, true, &gate_up, err));
    CT_TRY(ct_op_emit(b->graph, CT_OP_swiglu, NULL, &gate_up, 1, &hidden, err));
    return ct_build_child(b, self, "w2", &hidden, 1, out, 1, err);
}

/* base is set when the host hands over its registry. */
static ct_class swiglu_class = {
    .name = "FusedSwiGLU",
    .fields = swiglu_fields,
    .n_fields = sizeof swiglu_fields / sizeof swiglu_fields[0],
    .values_bytes = sizeof(swiglu_values),
    .build = swiglu_build,
};

static ct_status fused_swiglu(ct_tree *tree, ct_component *matched, const char *args_json, ct_component **out, ct_err *err)
{
    if (strcmp(args_json, "{}") != 0) {
        return CT_FAIL(err, CT_ERR_USAGE, "fused_swiglu.fused_swiglu takes no arguments, found %s", args_json);
    }
    return ct_component_derive(tree, matched, &swiglu_class, out, err);
}

static ct_status setup(ct_registry *registry, ct_err *err)
{
    const ct_class *feed_forward = ct_registry_class(registry, "FeedForward");
    if (feed_forward == NULL) {
        return CT_FAIL(err, CT_ERR_NOT_FOUND, "fused_swiglu: this ctitan has no component 'FeedForward'");
    }
    swiglu_class.base = feed_forward;
    CT_TRY(ct_registry_add_class(registry, &swiglu_class, err));
    const ct_override row = {.name = "fused_swiglu.fused_swiglu",
                             .target = feed_forward,
                             .description = "gate and up as one weight w13 and one product",
                             .factory = fused_swiglu};
    return ct_registry_add_override(registry, &row, err);
}

__attribute__((visibility("default"))) const ct_plugin_info *ct_plugin_entry(void);
const ct_plugin_info *ct_plugin_entry(void)
{
    static const ct_plugin_info info = {CT_PLUGIN_ABI, sizeof(ct_plugin_info), "fused_swiglu", "0.1.0", setup};
    return &info;
}
