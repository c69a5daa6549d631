/* SPDX-License-Identifier: Apache-2.0 */
/* npu_wrong: two attentions that look right and are not, for the test of `ctitan check-overrides`: wrong_rope turns
 * the queries twice; wrong_mask lets a token see the documents before its own. */
#include <math.h>
#include <string.h>

#include "ctitan/plugin.h"
#include "ctitan/ops.h"

typedef struct attention_values {
    int64_t dim, n_heads, n_kv_heads, head_dim;
} attention_values;
/* clang-format off */
#define FIELD(name) {#name, CT_FIELD_I64, offsetof(attention_values, name), "1", "", "", "", "", CT_SET_PLAN, NULL, "as in GQAttention"}
/* clang-format on */
static const ct_field attention_fields[] = {FIELD(dim), FIELD(n_heads), FIELD(n_kv_heads), FIELD(head_dim)};

static ct_status build_wrong(const ct_component *self, ct_build *b, const ct_value_id *in, ct_value_id *out,
                             bool is_rope_wrong, ct_err *err)
{
    const attention_values *c = ct_component_values(self);
    ct_graph *g = b->graph;
    ct_value_id qkv[3], heads[3], o, o_bsd;
    CT_TRY(ct_build_child(b, self, "qkv_linear", in, 1, qkv, 3, err));
    for (int i = 0; i < 3; i++) {
        const int64_t dims[4] = {-1, b->seq_len, i == 0 ? c->n_heads : c->n_kv_heads, c->head_dim};
        CT_TRY(ct_op_reshape(g, qkv[i], dims, 4, &heads[i], err));
    }
    CT_TRY(ct_build_child(b, self, "rope", heads, 2, heads, 2, err));
    const double scale = 1.0 / sqrt((double)c->head_dim);
    if (is_rope_wrong) { /* turned twice */
        CT_TRY(ct_build_child(b, self, "rope", heads, 1, heads, 1, err));
        CT_TRY(ct_op_sdpa(g, heads[0], heads[1], heads[2], b->segments, b->n_segments, scale, &o, err));
    } else { /* one segment over everything: the ends of the whole, not of the documents */
        const ct_value *q = ct_graph_value_c(g, heads[0]);
        const int64_t n_tokens = q->dims[0] * q->dims[1];
        const ct_attrs_fill fill = {.value = (double)n_tokens, .dtype = CT_DTYPE_I32, .dims = {1, (int64_t[]){1}}};
        const ct_attrs_fill fill_one = {.value = 1.0, .dtype = CT_DTYPE_I32, .dims = {1, (int64_t[]){1}}};
        ct_value_id ends, one, tnd[3];
        CT_TRY(ct_op_emit(g, CT_OP_fill, &fill, NULL, 0, &ends, err));
        CT_TRY(ct_op_emit(g, CT_OP_fill, &fill_one, NULL, 0, &one, err));
        for (int i = 0; i < 3; i++) {
            const int64_t thd[3] = {-1, i == 0 ? c->n_heads : c->n_kv_heads, c->head_dim};
            CT_TRY(ct_op_reshape(g, heads[i], thd, 3, &tnd[i], err));
        }
        CT_TRY(ct_op_sdpa_tnd(g, tnd[0], tnd[1], tnd[2], ends, ends, one, scale, &o, err));
    }
    const int64_t dims[3] = {-1, b->seq_len, c->n_heads * c->head_dim};
    CT_TRY(ct_op_reshape(g, o, dims, 3, &o_bsd, err));
    return ct_build_child(b, self, "wo", &o_bsd, 1, out, 1, err);
}

static ct_status rope_build(const ct_component *self, ct_build *b, const ct_value_id *in, int32_t n_in, ct_value_id *out,
                            int32_t n_out, ct_err *err)
{
    CT_ASSERT(n_in == 1 && n_out == 1);
    return build_wrong(self, b, in, out, true, err);
}

static ct_status mask_build(const ct_component *self, ct_build *b, const ct_value_id *in, int32_t n_in, ct_value_id *out,
                            int32_t n_out, ct_err *err)
{
    CT_ASSERT(n_in == 1 && n_out == 1);
    return build_wrong(self, b, in, out, false, err);
}

/* clang-format off */
static ct_class wrong_rope_class = {.name = "WrongRopeAttention", .fields = attention_fields, .n_fields = 4,
                                    .values_bytes = sizeof(attention_values), .build = rope_build};
static ct_class wrong_mask_class = {.name = "WrongMaskAttention", .fields = attention_fields, .n_fields = 4,
                                    .values_bytes = sizeof(attention_values), .build = mask_build};
/* clang-format on */

static ct_status wrong_rope(ct_tree *tree, ct_component *matched, const char *args_json, ct_component **out, ct_err *err)
{
    (void)args_json;
    return ct_component_derive(tree, matched, &wrong_rope_class, out, err);
}

static ct_status wrong_mask(ct_tree *tree, ct_component *matched, const char *args_json, ct_component **out, ct_err *err)
{
    (void)args_json;
    return ct_component_derive(tree, matched, &wrong_mask_class, out, err);
}

static ct_status setup(ct_registry *registry, ct_err *err)
{
    const ct_class *attention = ct_registry_class(registry, "GQAttention");
    if (attention == NULL) {
        return CT_FAIL(err, CT_ERR_NOT_FOUND, "npu_wrong: this ctitan has no component 'GQAttention'");
    }
    wrong_rope_class.base = wrong_mask_class.base = attention;
    CT_TRY(ct_registry_add_class(registry, &wrong_rope_class, err));
    CT_TRY(ct_registry_add_class(registry, &wrong_mask_class, err));
    const ct_override rope = {
        .name = "npu_wrong.wrong_rope", .target = attention, .description = "wrong on purpose", .factory = wrong_rope};
    const ct_override mask = {
        .name = "npu_wrong.wrong_mask", .target = attention, .description = "wrong on purpose", .factory = wrong_mask};
    CT_TRY(ct_registry_add_override(registry, &rope, err));
    return ct_registry_add_override(registry, &mask, err);
}

__attribute__((visibility("default"))) const ct_plugin_info *ct_plugin_entry(void);
const ct_plugin_info *ct_plugin_entry(void)
{
    static const ct_plugin_info info = {CT_PLUGIN_ABI, sizeof(ct_plugin_info), "npu_wrong", "0.1.0", setup};
    return &info;
}
