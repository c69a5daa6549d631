/* SPDX-License-Identifier: Apache-2.0 */
/* The map of the room `model`: the components of Llama-class models, their flavours, and counts made from them.
 *
 *   llama3.c            flavours of llama3: builds the `model_spec` subtree; saved.c: from a checkpoint's settings; hf_spec.c: from a config.json
 *   decoder.c           Decoder, TransformerBlock: order of parts and residuals
 *   attention.c         GQAttention, FusedQKVLinear, ComplexRoPE, SegmentAttention
 *   layers.c            Linear, Embedding, RMSNorm, FeedForward
 *   graphs.c            the graphs of a run (train, eval, prefill, decode) from a tree
 *   registry_llama3.c   the registry functions
 *
 * Contracts of the parts (what an override must keep): attention, feed_forward and norms take x [B, S, D] and give y [B, S, D];
 * FusedQKVLinear gives q [B, S, H h], k, v [B, S, K h]; ComplexRoPE takes and gives [B, S, H, h]; SegmentAttention takes q
 * [B, S, H, h], k, v [..., K, h] and gives o like q; Decoder takes nothing and gives the normed hidden states [B, S, D] and the
 * lm_head's weight [V, D]; a loss with ops of its own takes those two, labels and inv_tokens, and gives the loss f64 [1], which in training must
 * be output 0 of a linear_cross_entropy. No component knows how many ranks there are; reshapes leave dim 0 as -1.
 */
#ifndef CTI_MODEL_MODEL_H
#define CTI_MODEL_MODEL_H

#include <jansson.h>

#include "ctitan/component.h"
#include "ctitan/ops.h"

/* Model fields: numbers of things (N), real numbers (R). */
#define CTI_R(X, name, def, low, high, help) X(name, F64, def, low, high, "", "", CT_SET_PLAN, NULL, help)
#define CTI_N(X, name, def, high, unit, help) X(name, I64, def, "1", high, "", unit, CT_SET_PLAN, NULL, help)

/* What the tree below `model_spec` is built from: another value builds it anew (cti_llama3_build). */
#define CTI_MODEL_SPEC_FIELDS(X)                                                                                     \
    X(name, STR, "llama3", "", "", "", "", CT_SET_PLAN | CT_SET_HIDDEN, NULL, "model family")                        \
    X(flavor, STR, "debugmodel", "", "", "", "", CT_SET_PLAN | CT_SET_HIDDEN, NULL, "size within the family")        \
    CTI_N(X, dim, "256", "1048576", "", "width of the model")                                                        \
    CTI_N(X, n_layers, "6", "4096", "layers", "transformer blocks")                                                  \
    CTI_N(X, n_heads, "16", "65536", "heads", "query heads")                                                         \
    CTI_N(X, n_kv_heads, "16", "65536", "heads", "key and value heads")                                              \
    X(head_dim, OPT_I64, "None", "2", "2048", "", "", CT_SET_PLAN, NULL, "width of a head; None: dim / n_heads")     \
    CTI_N(X, ffn_hidden, "768", "16777216", "", "inner width of the feed-forward part")                              \
    CTI_N(X, vocab_size, "2048", "16777216", "tokens", "rows of the embedding and of the head")                      \
    X(tied_embeddings, BOOL, "false", "", "", "", "", CT_SET_PLAN, NULL, "the head is the embedding: one parameter") \
    CTI_N(X, max_seq_len, "131072", "1073741824", "tokens", "longest sequence the rotary tables are meant for")      \
    X(norm_eps, F64, "1e-05", "0", "1", "", "", CT_SET_PLAN, NULL, "added to the mean square in norms")              \
    X(rope_theta, F64, "500000", "1", "1e+30", "", "", CT_SET_PLAN, NULL, "base of the rotary frequencies")          \
    X(rope_scaling, CHOICE, "llama", "", "", "none|llama", "", CT_SET_PLAN, NULL,                                    \
      "llama: long wavelengths are stretched as in Llama 3.1")                                                       \
    X(rope_scaling_factor, F64, "8", "1", "1e+06", "", "", CT_SET_PLAN, NULL,                                        \
      "long wavelengths are stretched by this")                                                                      \
    X(converters, STR_LIST, "", "", "", "", "", CT_SET_PLAN, NULL,                                                   \
      "number formats of the products: float8, mxfp8, nvfp4, nvfp4_first_85_pct, dist_gemm; none of them can be trained in yet")
/* All of it repeats the spec: set that. */
#define CTI_D(X, name, KIND, def, help) X(name, KIND, def, "", "", "", "", CT_SET_PLAN | CT_SET_HIDDEN, NULL, help)
#define CTI_DECODER_FIELDS(X)                                                                                        \
    CTI_D(X, dim, I64, "256", "width")                                                                               \
    CTI_D(X, n_layers, I64, "6", "transformer blocks")                                                               \
    CTI_D(X, vocab_size, I64, "2048", "rows of the embedding and of the head")                                       \
    CTI_D(X, max_seq_len, I64, "131072", "longest sequence the rotary tables are meant for")                         \
    CTI_D(X, tied_embeddings, BOOL, "false", "the head is the embedding")
#define CTI_LINEAR_FIELDS(X)                                                                                         \
    CTI_N(X, in_features, "1", "16777216", "", "columns of the weight")                                              \
    CTI_N(X, out_features, "1", "16777216", "", "rows of the weight")                                                \
    CTI_R(X, init_std, "0.02", "0", "1000", "standard deviation of the weight at the start")                         \
    CTI_R(X, init_cutoff, "2", "0", "1e+06", "absolute cut-off of the initial weight")
#define CTI_EMBEDDING_FIELDS(X)                                                                                      \
    CTI_N(X, num_embeddings, "1", "16777216", "", "rows")                                                            \
    CTI_N(X, embedding_dim, "1", "16777216", "", "columns")                                                          \
    CTI_R(X, init_std, "1", "0", "1000", "standard deviation of the weight at the start")
#define CTI_RMSNORM_FIELDS(X)                                                                                        \
    CTI_N(X, normalized_shape, "1", "16777216", "", "width")                                                         \
    CTI_R(X, eps, "1e-05", "0", "1", "added to the mean square")
#define CTI_FEED_FORWARD_FIELDS(X)                                                                                   \
    CTI_N(X, dim, "1", "16777216", "", "width")                                                                      \
    CTI_N(X, hidden_dim, "1", "16777216", "", "inner width")
#define CTI_ATTENTION_FIELDS(X)                                                                                      \
    CTI_N(X, dim, "1", "16777216", "", "width")                                                                      \
    CTI_N(X, n_heads, "1", "16777216", "", "query heads")                                                            \
    CTI_N(X, n_kv_heads, "1", "16777216", "", "key and value heads")                                                 \
    CTI_N(X, head_dim, "1", "16777216", "", "width of a head")
#define CTI_QKV_FIELDS(X)                                                                                            \
    CTI_N(X, dim, "1", "16777216", "", "width")                                                                      \
    CTI_N(X, n_heads, "1", "16777216", "", "query heads")                                                            \
    CTI_N(X, n_kv_heads, "1", "16777216", "", "key and value heads")                                                 \
    CTI_N(X, head_dim, "1", "16777216", "", "width of a head")                                                       \
    CTI_R(X, init_std, "0.02", "0", "1000", "standard deviation of the weights at the start")
#define CTI_ROPE_FIELDS(X)                                                                                           \
    CTI_N(X, head_dim, "1", "16777216", "", "width of a head")                                                       \
    CTI_R(X, theta, "500000", "1", "1e+30", "base of the frequencies")                                               \
    X(scaling, CHOICE, "llama", "", "", "none|llama", "", CT_SET_PLAN, NULL, "rule of the long wavelengths")         \
    CTI_R(X, scaling_factor, "8", "1", "1e+06", "long wavelengths are stretched by this")                            \
    CTI_R(X, low_freq_factor, "1", "0", "1e+06", "wavelengths above original length / this are long")                \
    CTI_R(X, high_freq_factor, "4", "0", "1e+06", "wavelengths below original length / this are short")              \
    CTI_N(X, original_max_position_embeddings, "8192", "16777216", "", "original length")

typedef struct cti_model_spec_config {
    CTI_MODEL_SPEC_FIELDS(CT_FIELD_MEMBER)
} cti_model_spec_config;
typedef struct cti_decoder_config {
    CTI_DECODER_FIELDS(CT_FIELD_MEMBER)
} cti_decoder_config;
typedef struct cti_linear_config {
    CTI_LINEAR_FIELDS(CT_FIELD_MEMBER)
} cti_linear_config;
typedef struct cti_embedding_config {
    CTI_EMBEDDING_FIELDS(CT_FIELD_MEMBER)
} cti_embedding_config;
typedef struct cti_rmsnorm_config {
    CTI_RMSNORM_FIELDS(CT_FIELD_MEMBER)
} cti_rmsnorm_config;
typedef struct cti_feed_forward_config {
    CTI_FEED_FORWARD_FIELDS(CT_FIELD_MEMBER)
} cti_feed_forward_config;
typedef struct cti_attention_config {
    CTI_ATTENTION_FIELDS(CT_FIELD_MEMBER)
} cti_attention_config;
typedef struct cti_qkv_config {
    CTI_QKV_FIELDS(CT_FIELD_MEMBER)
} cti_qkv_config;
typedef struct cti_rope_config {
    CTI_ROPE_FIELDS(CT_FIELD_MEMBER)
} cti_rope_config;

extern const ct_class cti_model_spec_class, cti_decoder_class, cti_block_class, cti_linear_class, cti_embedding_class,
    cti_rmsnorm_class, cti_feed_forward_class, cti_attention_class, cti_qkv_class, cti_rope_class,
    cti_segment_attention_class;

/* The `model_spec` subtree of a flavour: "debugmodel", "1B", "3B", "8B", "70B", "405B". ERR_NOT_FOUND names the flavours. */
CT_MUST_CHECK ct_status cti_llama3_spec(ct_tree *tree, const char *flavor, ct_component **out_spec, ct_err *err);

/* The same with the sizes that `config` has, the settings in a checkpoint (cti_config_json), where it has any. What overrides put in the
 * place of parts is left out. */
CT_MUST_CHECK ct_status cti_llama3_spec_saved(const ct_alloc *alloc, ct_tree *tree, const char *flavor, const json_t *config,
                                              ct_component **out_spec, ct_err *err);
/* The spec of a Hugging Face folder from its config.json (`where` in errors). ERR_UNSUPPORTED naming what makes it another model than Llama. */
CT_MUST_CHECK ct_status cti_llama3_spec_hf(ct_tree *tree, const json_t *config, const char *where, ct_component **out_spec, ct_err *err);
/* Builds `model_spec`'s child `model` anew from the fields of `spec`; a loss whose vocabulary the registry function set follows.
 * What `spec->cls->check` refuses may be built all the same: the checks come later. */
CT_MUST_CHECK ct_status cti_llama3_build(ct_tree *tree, ct_component *spec, ct_err *err);

/* Registers llama3's classes and registry functions (registry_llama3.c). */
CT_MUST_CHECK ct_status cti_register_llama3(ct_registry *registry, ct_err *err);

/* Rotary frequencies theta^(-2j/h), j < h/2, scaled as the fields say (llama: Llama 3.1's rule). */
void cti_rope_frequencies(const cti_rope_config *config, double *out_freqs);
/* table [L, h/2, 2] of (cos, sin) of position * frequency, each rounded once. */
ct_status cti_rope_table(const ct_component *self, float *data, int64_t n, ct_err *err);

/* Counts, made by building the model's graph without any memory behind it. */
typedef struct cti_model_counts {
    int64_t n_params;
    double flops_per_token; /* 6 N_mm + 6 layers heads (2 h) S; no causal discount (upstream's count) */
    int64_t n_tensors;
} cti_model_counts;
CT_MUST_CHECK ct_status cti_model_count(const ct_alloc *alloc, const ct_component *model_spec, int64_t seq_len,
                                        cti_model_counts *out_counts, ct_err *err);

/* The forward graph of one micro-batch. inputs are declared, the model and the loss are built; *build holds the parameters and
 * constants (memory of the graph's arena).  TRAIN: *out is the loss (output 0 of linear_cross_entropy); EVAL: the loss without
 * gradients; PREFILL, DECODE: logits [1, V] of the row that the input `logit_row` i32 [1] names. */
typedef struct cti_graph_options {
    ct_build_mode mode;
    ct_dtype param_dtype;
    int64_t batch, seq_len; /* global rows and tokens of a micro-batch */
    int64_t cache_len;
    const ct_component *loss; /* NULL, or one whose class builds nothing: linear_cross_entropy; else what an override put there */
    int64_t loss_chunks;
} cti_graph_options;
CT_MUST_CHECK ct_status cti_graph_build(const ct_alloc *alloc, const ct_component *model_spec,
                                        const cti_graph_options *options, ct_graph **out_graph, ct_build *build,
                                        ct_value_id *out, ct_err *err);

/* Sets the placements of parameters on the axis tp, before ct_pass_shard. ERR_USAGE naming a parameter that the degree does not divide. */
struct ct_mesh;
CT_MUST_CHECK ct_status cti_model_place(const ct_build *build, const struct ct_mesh *mesh, ct_err *err);

#endif
