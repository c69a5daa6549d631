/* SPDX-License-Identifier: Apache-2.0 */
/* npu_compat: attention in the form that Ascend's fused operators take. Rotary position by real cos and sin rows (their
 * interleaved rotary multiplication) instead of complex pairs; attention over back-to-back segments given by their cumulative ends
 * (their TND layout) instead of a segment table.
 *
 *     ctitan train … --override.imports npu_compat.npu_attention
 *     ctitan check-overrides npu_compat.npu_attention
 */
#include <math.h>
#include <string.h>

#include "ctitan/plugin.h"
#include "ctitan/ops.h"

/* The fields of GQAttention that a derived component copies by name. */
typedef struct attention_values {
    int64_t dim, n_heads, n_kv_heads, head_dim;
} attention_values;
/* clang-format off */
#define FIELD(name) {#name, CT_FIELD_I64, offsetof(attention_values, name), "1", "", "", "", "", CT_SET_PLAN, NULL, "as in GQAttention"}
/* clang-format on */
static const ct_field attention_fields[] = {FIELD(dim), FIELD(n_heads), FIELD(n_kv_heads), FIELD(head_dim)};

/* The table of the rotary component, made by that component's own rule: it is asked to build once on a throw-away head and the table it
 * declared is taken over. */
static ct_status rope_table(const ct_component *rope, ct_build *b, ct_value_id *out_table, ct_err *err)
{
    *out_table = ct_graph_find(b->graph, "rope_table");
    if (*out_table != CT_NO_VALUE) {
        return CT_OK;
    }
    CT_TRY(rope->cls->build(rope, b, NULL, 0, NULL, 0, err)); /* no heads: declares the table, emits nothing */
    *out_table = ct_graph_find(b->graph, "rope_table");
    return *out_table != CT_NO_VALUE
               ? CT_OK
               : CT_FAIL(err, CT_ERR_STATE, "npu_compat: %s.Config declares no 'rope_table'", rope->cls->name);
}

/* q, k [B, S, H, h] -> rotated, x cos + r(x) sin. */
static ct_status rotate(const ct_component *self, ct_build *b, ct_value_id heads[2], ct_err *err)
{
    const ct_component *rope = ct_component_child(self, "rope");
    if (rope == NULL || rope->cls->build == NULL) {
        return CT_FAIL(err, CT_ERR_STATE, "npu_compat: the attention has no part 'rope'");
    }
    ct_value_id table, cos_bsh, sin_bsh;
    CT_TRY(ct_graph_push_scope(b->graph, "rope", err));
    CT_TRY(rope_table(rope, b, &table, err));
    CT_TRY(ct_op_rope_rows(b->graph, b->positions, table, &cos_bsh, &sin_bsh, err));
    for (int i = 0; i < 2; i++) {
        CT_TRY(ct_op_rotary_mul(b->graph, heads[i], cos_bsh, sin_bsh, &heads[i], err));
    }
    ct_graph_pop_scope(b->graph);
    return CT_OK;
}

/* [B, S, H, h] -> [T, H, h] */
static ct_status to_tnd(ct_build *b, ct_value_id x, ct_value_id *out, ct_err *err)
{
    const ct_value *v = ct_graph_value_c(b->graph, x);
    const int64_t dims[3] = {-1, v->dims[v->ndim - 2], v->dims[v->ndim - 1]};
    return ct_op_reshape(b->graph, x, dims, 3, out, err);
}

static ct_status append_cache(ct_build *b, const attention_values *c, const char *name, ct_value_id *x, ct_err *err)
{
    const int64_t dims[4] = {1, b->cache_len, c->n_kv_heads, c->head_dim};
    ct_value_id cache;
    CT_TRY(ct_build_state(b, name, ct_graph_value_c(b->graph, *x)->dtype, dims, 4, &cache, err));
    return ct_op_kv_append(b->graph, cache, *x, b->cache_start, x, err);
}

static ct_status npu_attention_build(const ct_component *self, ct_build *b, const ct_value_id *in, int32_t n_in,
                                     ct_value_id *out, int32_t n_out, ct_err *err)
{
    const attention_values *c = ct_component_values(self);
    CT_ASSERT(n_in == 1 && n_out == 1);
    ct_graph *g = b->graph;
    ct_value_id qkv[3], heads[3], ends_q, ends_k, o_thd, o_bsd;
    CT_TRY(ct_build_child(b, self, "qkv_linear", in, 1, qkv, 3, err));
    for (int i = 0; i < 3; i++) {
        const int64_t dims[4] = {-1, b->seq_len, i == 0 ? c->n_heads : c->n_kv_heads, c->head_dim};
        CT_TRY(ct_op_reshape(g, qkv[i], dims, 4, &heads[i], err));
    }
    CT_TRY(rotate(self, b, heads, err));
    if (b->mode == CT_BUILD_PREFILL || b->mode == CT_BUILD_DECODE) {
        CT_TRY(append_cache(b, c, "k_cache", &heads[1], err));
        CT_TRY(append_cache(b, c, "v_cache", &heads[2], err));
    }
    CT_TRY(ct_graph_push_scope(g, "inner_attention", err));
    for (int i = 0; i < 3; i++) {
        CT_TRY(to_tnd(b, heads[i], &heads[i], err));
    }
    CT_TRY(ct_op_segment_ends(g, b->segments, b->n_segments, &ends_q, &ends_k, err));
    CT_TRY(ct_op_sdpa_tnd(g, heads[0], heads[1], heads[2], ends_q, ends_k, b->n_segments,
                          1.0 / sqrt((double)c->head_dim), &o_thd, err));
    ct_graph_pop_scope(g);
    const int64_t dims[3] = {-1, b->seq_len, c->n_heads * c->head_dim};
    CT_TRY(ct_op_reshape(g, o_thd, dims, 3, &o_bsd, err));
    return ct_build_child(b, self, "wo", &o_bsd, 1, out, 1, err);
}

/* base is set when the host hands over its registry. */
static ct_class npu_attention_class = {
    .name = "NpuGQAttention",
    .fields = attention_fields,
    .n_fields = sizeof attention_fields / sizeof attention_fields[0],
    .values_bytes = sizeof(attention_values),
    .build = npu_attention_build,
};

static ct_status npu_attention(ct_tree *tree, ct_component *matched, const char *args_json, ct_component **out, ct_err *err)
{
    if (strcmp(args_json, "{}") != 0) {
        return CT_FAIL(err, CT_ERR_USAGE, "npu_compat.npu_attention takes no arguments, found %s", args_json);
    }
    return ct_component_derive(tree, matched, &npu_attention_class, out, err);
}

static ct_status setup(ct_registry *registry, ct_err *err)
{
    const ct_class *attention = ct_registry_class(registry, "GQAttention");
    if (attention == NULL) {
        return CT_FAIL(err, CT_ERR_NOT_FOUND, "npu_compat: this ctitan has no component 'GQAttention'");
    }
    npu_attention_class.base = attention;
    CT_TRY(ct_registry_add_class(registry, &npu_attention_class, err));
    const ct_override row = {.name = "npu_compat.npu_attention",
                             .target = attention,
                             .description = "rotary position and attention in the form of Ascend's fused operators",
                             .factory = npu_attention};
    return ct_registry_add_override(registry, &row, err);
}

__attribute__((visibility("default"))) const ct_plugin_info *ct_plugin_entry(void);
const ct_plugin_info *ct_plugin_entry(void)
{
    static const ct_plugin_info info = {CT_PLUGIN_ABI, sizeof(ct_plugin_info), "npu_compat", "0.1.0", setup};
    return &info;
}
