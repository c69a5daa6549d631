/* SPDX-License-Identifier: Apache-2.0 */
/* Grouped-query attention: projections, rotary position, attention over document segments, KV cache.
 * Shapes: B rows, S tokens, D width, H query heads, K kv heads, h head dim, L cache rows. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "model/model.h"

static ct_status param_linear(ct_build *b, const char *name, ct_value_id x_bsd, int64_t rows, int64_t cols, double std,
                              ct_value_id *out, ct_err *err)
{
    const int64_t dims[2] = {rows, cols};
    const ct_init init = {CT_INIT_TRUNC_NORMAL, 0.0, std, -2.0, 2.0};
    ct_value_id w;
    CT_TRY(ct_build_param(b, name, dims, 2, &init, &w, err));
    return ct_op_matmul(b->graph, x_bsd, w, CT_NO_VALUE, false, true, out, err);
}

static ct_status qkv_build(const ct_component *self, ct_build *b, const ct_value_id *in, int32_t n_in, ct_value_id *out,
                           int32_t n_out, ct_err *err)
{
    const cti_qkv_config *c = ct_component_values(self);
    CT_ASSERT(n_in == 1 && n_out == 3);
    CT_TRY(param_linear(b, "wq.weight", in[0], c->n_heads * c->head_dim, c->dim, c->init_std, &out[0], err));
    CT_TRY(param_linear(b, "wk.weight", in[0], c->n_kv_heads * c->head_dim, c->dim, c->init_std, &out[1], err));
    return param_linear(b, "wv.weight", in[0], c->n_kv_heads * c->head_dim, c->dim, c->init_std, &out[2], err);
}

void cti_rope_frequencies(const cti_rope_config *c, double *out_freqs)
{
    const bool llama = strcmp(c->scaling, "llama") == 0;
    for (int64_t j = 0; j < c->head_dim / 2; j++) {
        double f = pow(c->theta, -2.0 * (double)j / (double)c->head_dim);
        if (llama) { /* Llama 3.1: stretch long wavelengths, keep short ones, blend between */
            const double two_pi = 6.283185307179586476925286766559;
            const double wavelength = two_pi / f;
            const double original = (double)c->original_max_position_embeddings;
            if (wavelength > original / c->low_freq_factor) {
                f = f / c->scaling_factor;
            } else if (wavelength >= original / c->high_freq_factor) {
                const double m =
                    (original / wavelength - c->low_freq_factor) / (c->high_freq_factor - c->low_freq_factor);
                f = (1.0 - m) * f / c->scaling_factor + m * f;
            }
        }
        out_freqs[j] = f;
    }
}

ct_status cti_rope_table(const ct_component *self, float *data, int64_t n, ct_err *err)
{
    const cti_rope_config *c = ct_component_values(self);
    const int64_t half = c->head_dim / 2;
    double freqs[1024];
    if (half < 1 || half > 1024 || n % (2 * half) != 0) {
        return CT_FAIL(err, CT_ERR_SHAPE, "rope: head_dim is %" PRId64 ", an even number from 2 to 2048 is wanted",
                       c->head_dim);
    }
    cti_rope_frequencies(c, freqs);
    for (int64_t pos = 0; pos < n / (2 * half); pos++) {
        for (int64_t j = 0; j < half; j++) {
            const double angle = (double)pos * freqs[j]; /* in f32 it would be off by up to 0.004 at position 131071 */
            data[(pos * half + j) * 2] = (float)cos(angle);
            data[(pos * half + j) * 2 + 1] = (float)sin(angle);
        }
    }
    return CT_OK;
}

static ct_status rope_build(const ct_component *self, ct_build *b, const ct_value_id *in, int32_t n_in, ct_value_id *out,
                            int32_t n_out, ct_err *err)
{
    const cti_rope_config *c = ct_component_values(self);
    CT_ASSERT(n_in == n_out);
    const bool cached = b->mode == CT_BUILD_PREFILL || b->mode == CT_BUILD_DECODE;
    const int64_t dims[3] = {cached ? b->cache_len : b->seq_len, c->head_dim / 2, 2};
    ct_value_id table;
    CT_TRY(ct_build_const(b, "rope_table", dims, 3, self, cti_rope_table, &table, err));
    for (int32_t i = 0; i < n_in; i++) {
        CT_TRY(ct_op_rope(b->graph, in[i], b->positions, table, &out[i], err));
    }
    return CT_OK;
}

static ct_status segment_attention_build(const ct_component *self, ct_build *b, const ct_value_id *in, int32_t n_in,
                                         ct_value_id *out, int32_t n_out, ct_err *err)
{
    (void)self; /* no fields: causal attention within segments is all there is */
    CT_ASSERT(n_in == 3 && n_out == 1);
    const ct_value *q = ct_graph_value_c(b->graph, in[0]);
    const double scale = 1.0 / sqrt((double)q->dims[q->ndim - 1]);
    return ct_op_sdpa(b->graph, in[0], in[1], in[2], b->segments, b->n_segments, scale, out, err);
}

static ct_status attention_build(const ct_component *self, ct_build *b, const ct_value_id *in, int32_t n_in,
                                 ct_value_id *out, int32_t n_out, ct_err *err)
{
    const cti_attention_config *c = ct_component_values(self);
    CT_ASSERT(n_in == 1 && n_out == 1);
    ct_graph *g = b->graph;
    ct_value_id qkv[3], heads[3];
    CT_TRY(ct_build_child(b, self, "qkv_linear", in, 1, qkv, 3, err));
    for (int i = 0; i < 3; i++) {
        const int64_t dims[4] = {-1, b->seq_len, i == 0 ? c->n_heads : c->n_kv_heads, c->head_dim};
        CT_TRY(ct_op_reshape(g, qkv[i], dims, 4, &heads[i], err));
    }
    CT_TRY(ct_build_child(b, self, "rope", heads, 2, heads, 2, err));
    if (b->mode == CT_BUILD_PREFILL || b->mode == CT_BUILD_DECODE) {
        const int64_t dims[4] = {1, b->cache_len, c->n_kv_heads, c->head_dim};
        const ct_dtype dtype = ct_graph_value_c(g, heads[1])->dtype;
        ct_value_id cache;
        CT_TRY(ct_build_state(b, "k_cache", dtype, dims, 4, &cache, err));
        CT_TRY(ct_op_kv_append(g, cache, heads[1], b->cache_start, &heads[1], err));
        CT_TRY(ct_build_state(b, "v_cache", dtype, dims, 4, &cache, err));
        CT_TRY(ct_op_kv_append(g, cache, heads[2], b->cache_start, &heads[2], err));
    }
    ct_value_id o_bshd, o_bsd;
    CT_TRY(ct_build_child(b, self, "inner_attention", heads, 3, &o_bshd, 1, err));
    const int64_t dims[3] = {-1, b->seq_len, c->n_heads * c->head_dim};
    CT_TRY(ct_op_reshape(g, o_bshd, dims, 3, &o_bsd, err));
    return ct_build_child(b, self, "wo", &o_bsd, 1, out, 1, err);
}

#define ROW(...) CT_FIELD_ROW_IN(cti_attention_config, __VA_ARGS__)
static const ct_field attention_fields[] = {CTI_ATTENTION_FIELDS(ROW)};
#undef ROW
#define ROW(...) CT_FIELD_ROW_IN(cti_qkv_config, __VA_ARGS__)
static const ct_field qkv_fields[] = {CTI_QKV_FIELDS(ROW)};
#undef ROW
#define ROW(...) CT_FIELD_ROW_IN(cti_rope_config, __VA_ARGS__)
static const ct_field rope_fields[] = {CTI_ROPE_FIELDS(ROW)};
#undef ROW
#define N(a) ((int32_t)(sizeof(a) / sizeof((a)[0])))

const ct_class cti_attention_class = {
    "GQAttention", NULL, attention_fields, N(attention_fields), sizeof(cti_attention_config), NULL, attention_build};
const ct_class cti_qkv_class = {"FusedQKVLinear", NULL, qkv_fields, N(qkv_fields), sizeof(cti_qkv_config), NULL,
                                qkv_build};
const ct_class cti_rope_class = {"ComplexRoPE", NULL, rope_fields, N(rope_fields), sizeof(cti_rope_config), NULL,
                                 rope_build};
const ct_class cti_segment_attention_class = {"SegmentAttention", NULL, NULL, 0, 0, NULL, segment_attention_build};
