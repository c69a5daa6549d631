/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors of a Llama under native and Hugging Face names. */
#include <inttypes.h>
#include <stdio.h>

#include "ckpt/hf_internal.h"

/* X(native, hf, rows, columns (0: a vector), permuted heads), within a layer */
#define LAYER_TENSORS(X)                                                                                             \
    X("attention.qkv_linear.wq", "self_attn.q_proj", s->n_heads * s->head_dim, s->dim, s->n_heads)                   \
    X("attention.qkv_linear.wk", "self_attn.k_proj", s->n_kv_heads * s->head_dim, s->dim, s->n_kv_heads)             \
    X("attention.qkv_linear.wv", "self_attn.v_proj", s->n_kv_heads * s->head_dim, s->dim, 0)                         \
    X("attention.wo", "self_attn.o_proj", s->dim, s->n_heads * s->head_dim, 0)                                       \
    X("feed_forward.w1", "mlp.gate_proj", s->ffn_hidden, s->dim, 0)                                                  \
    X("feed_forward.w3", "mlp.up_proj", s->ffn_hidden, s->dim, 0)                                                    \
    X("feed_forward.w2", "mlp.down_proj", s->dim, s->ffn_hidden, 0)                                                  \
    X("attention_norm", "input_layernorm", s->dim, 0, 0)                                                             \
    X("ffn_norm", "post_attention_layernorm", s->dim, 0, 0)
#define COUNT(...) +1
enum { PER_LAYER = 0 LAYER_TENSORS(COUNT) };

int32_t cti_hf_n_tensors(const ct_hf_shape *s)
{
    return (int32_t)(2 + PER_LAYER * s->n_layers + !s->is_tied);
}

static void set(cti_hf_tensor *t, int64_t rows, int64_t cols, int64_t heads)
{
    t->ndim = cols > 0 ? 2 : 1;
    t->dims[0] = rows;
    t->dims[1] = cols > 0 ? cols : 1;
    t->permuted_heads = heads;
}

void cti_hf_tensor_at(const ct_hf_shape *s, int32_t i, cti_hf_tensor *t)
{
    const int32_t layered = (int32_t)(PER_LAYER * s->n_layers);
    if (i == 0) {
        (void)snprintf(t->native, sizeof t->native, "tok_embeddings.weight"); /* these all fit */
        (void)snprintf(t->hf, sizeof t->hf, "model.embed_tokens.weight");
        set(t, s->vocab_size, s->dim, 0);
    } else if (i <= layered) {
        const int32_t layer = (i - 1) / PER_LAYER, part = (i - 1) % PER_LAYER;
        int32_t at = 0;
#define PICK(native_, hf_, rows, cols, heads)                                                                        \
    if (at++ == part) {                                                                                              \
        (void)snprintf(t->native, sizeof t->native, "layers.%d." native_ ".weight", layer);                          \
        (void)snprintf(t->hf, sizeof t->hf, "model.layers.%d." hf_ ".weight", layer);                                \
        set(t, rows, cols, heads);                                                                                   \
    }
        LAYER_TENSORS(PICK)
#undef PICK
    } else if (i == layered + 1) {
        (void)snprintf(t->native, sizeof t->native, "norm.weight");
        (void)snprintf(t->hf, sizeof t->hf, "model.norm.weight");
        set(t, s->dim, 0, 0);
    } else {
        (void)snprintf(t->native, sizeof t->native, "lm_head.weight");
        (void)snprintf(t->hf, sizeof t->hf, "lm_head.weight");
        set(t, s->vocab_size, s->dim, 0);
    }
}

int64_t cti_hf_row_of(int64_t native_row, int64_t head_dim)
{
    const int64_t head = native_row / head_dim, in_head = native_row % head_dim;
    return head * head_dim + in_head % 2 * (head_dim / 2) + in_head / 2;
}
