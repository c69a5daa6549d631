/* SPDX-License-Identifier: Apache-2.0 */
/* The flavours of llama3 and the tree each one is. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "config/config.h"
#include "model/model.h"

/* X(flavor, dim, layers, heads, kv heads, ffn multiplier (0: none), multiple_of, vocabulary, tied, RoPE's scaling factor).
 * 1B and 3B are Llama 3.2's, 8B, 70B and 405B are 3.1's. */
#define FLAVORS(X)                                                                                                   \
    X("debugmodel", 256, 6, 16, 16, 0.0, 256, 2048, false, 8)                                                           \
    X("1B", 2048, 16, 32, 8, 1.5, 1024, 128256, true, 32)                                                                \
    X("3B", 3072, 28, 24, 8, 1.0, 1024, 128256, true, 32)                                                                \
    X("8B", 4096, 32, 32, 8, 1.3, 1024, 128256, false, 8)                                                               \
    X("70B", 8192, 80, 64, 8, 1.3, 4096, 128256, false, 8)                                                              \
    X("405B", 16384, 126, 128, 8, 1.2, 4096, 128256, false, 8)

typedef struct flavor {
    const char *name;
    int64_t dim, n_layers, n_heads, n_kv_heads;
    double ffn_mult;
    int64_t multiple_of, vocab_size;
    bool tied;
    double rope_factor;
} flavor;
static const flavor flavors[] = {
#define FLAVOR_ROW(...) {__VA_ARGS__},
    FLAVORS(FLAVOR_ROW)
#undef FLAVOR_ROW
};
enum { N_FLAVORS = sizeof flavors / sizeof flavors[0] };

/* int(2 * 4 * dim / 3), times the multiplier, rounded up to a multiple. */
static int64_t ffn_hidden(const flavor *f)
{
    int64_t h = 8 * f->dim / 3;
    if (f->ffn_mult > 0.0) {
        h = (int64_t)(f->ffn_mult * (double)h);
    }
    return cti_round_up(h, f->multiple_of);
}

static ct_status add(ct_tree *tree, ct_component *parent, const char *name, const ct_class *cls, ct_component **out,
                     ct_err *err)
{
    CT_TRY(ct_component_create(tree, cls, out, err));
    return ct_component_add(tree, parent, name, *out, err);
}

static ct_status add_linear(ct_tree *tree, ct_component *parent, const char *name, int64_t in, int64_t out_features,
                            double std, double cutoff, ct_err *err)
{
    ct_component *c;
    CT_TRY(add(tree, parent, name, &cti_linear_class, &c, err));
    *(cti_linear_config *)c->values = (cti_linear_config){in, out_features, std, cutoff};
    return CT_OK;
}

static ct_status add_norm(ct_tree *tree, ct_component *parent, const char *name, const cti_model_spec_config *m, ct_err *err)
{
    ct_component *c;
    CT_TRY(add(tree, parent, name, &cti_rmsnorm_class, &c, err));
    *(cti_rmsnorm_config *)c->values = (cti_rmsnorm_config){m->dim, m->norm_eps};
    return CT_OK;
}

static ct_status add_rope(ct_tree *tree, ct_component *attention, const cti_model_spec_config *m, int64_t head_dim, ct_err *err)
{
    ct_component *c;
    CT_TRY(add(tree, attention, "rope", &cti_rope_class, &c, err));
    cti_rope_config *rope = c->values;
    rope->head_dim = head_dim;
    rope->theta = m->rope_theta;
    rope->scaling = m->rope_scaling;
    rope->scaling_factor = m->rope_scaling_factor;
    return CT_OK;
}

static ct_status add_layer(ct_tree *tree, ct_component *layers, const cti_model_spec_config *m, int64_t index, ct_err *err)
{
    const int64_t h = m->head_dim.is_set ? m->head_dim.value : m->dim / m->n_heads;
    const double depth_std = 0.02 / sqrt(2.0 * (double)(index + 1));
    char name[24];
    (void)snprintf(name, sizeof name, "%lld", (long long)index); /* fits */
    ct_component *block, *attention, *c;
    CT_TRY(add(tree, layers, name, &cti_block_class, &block, err));
    CT_TRY(add(tree, block, "attention", &cti_attention_class, &attention, err));
    *(cti_attention_config *)attention->values = (cti_attention_config){m->dim, m->n_heads, m->n_kv_heads, h};
    CT_TRY(add_rope(tree, attention, m, h, err));
    CT_TRY(add(tree, attention, "qkv_linear", &cti_qkv_class, &c, err));
    *(cti_qkv_config *)c->values = (cti_qkv_config){m->dim, m->n_heads, m->n_kv_heads, h, 0.02};
    CT_TRY(add_linear(tree, attention, "wo", m->n_heads * h, m->dim, depth_std, 2.0, err));
    CT_TRY(add(tree, attention, "inner_attention", &cti_segment_attention_class, &c, err));
    ct_component *ffn;
    CT_TRY(add(tree, block, "feed_forward", &cti_feed_forward_class, &ffn, err));
    *(cti_feed_forward_config *)ffn->values = (cti_feed_forward_config){m->dim, m->ffn_hidden};
    CT_TRY(add_linear(tree, ffn, "w1", m->dim, m->ffn_hidden, 0.02, 2.0, err));
    CT_TRY(add_linear(tree, ffn, "w2", m->ffn_hidden, m->dim, depth_std, 2.0, err));
    CT_TRY(add_linear(tree, ffn, "w3", m->dim, m->ffn_hidden, depth_std, 2.0, err));
    CT_TRY(add_norm(tree, block, "attention_norm", m, err));
    return add_norm(tree, block, "ffn_norm", m, err);
}

/* The loss's vocabulary is the model's unless someone else set it. */
static void set_loss_vocabulary(ct_component *spec, int64_t rows)
{
    ct_component *fn = spec->parent != NULL ? ct_component_find(spec->parent, "loss.loss_fn") : NULL;
    fn = fn == NULL && spec->parent != NULL ? ct_component_child(spec->parent, "loss") : fn;
    if (fn != NULL && ct_class_is_a(fn->cls, &cti_cross_entropy_class)) {
        cti_cross_entropy_config *c = fn->values;
        const ct_field *field = ct_field_find(fn->cls->fields, (size_t)fn->cls->n_fields, "global_vocab_size");
        if (c->global_vocab_size.is_set && fn->sources[field - fn->cls->fields] <= CT_SOURCE_REGISTRY) {
            c->global_vocab_size.value = rows;
        }
    }
}

ct_status cti_llama3_build(ct_tree *tree, ct_component *spec, ct_err *err)
{
    const cti_model_spec_config *m = spec->values;
    ct_component *model, *c, *layers;
    CT_TRY(ct_component_create(tree, &cti_decoder_class, &model, err));
    *(cti_decoder_config *)model->values =
        (cti_decoder_config){m->dim, m->n_layers, m->vocab_size, m->max_seq_len, m->tied_embeddings};
    model->is_hidden = true;
    const double head_std = 1.0 / sqrt((double)m->dim);
    CT_TRY(add(tree, model, "tok_embeddings", &cti_embedding_class, &c, err));
    /* A tied embedding starts as the head would. */
    *(cti_embedding_config *)c->values = (cti_embedding_config){m->vocab_size, m->dim, m->tied_embeddings ? head_std : 1.0};
    CT_TRY(add(tree, model, "layers", &ct_class_list, &layers, err));
    for (int64_t i = 0; i < m->n_layers; i++) {
        CT_TRY(add_layer(tree, layers, m, i, err));
    }
    CT_TRY(add_norm(tree, model, "norm", m, err));
    if (!m->tied_embeddings) {
        CT_TRY(add_linear(tree, model, "lm_head", m->dim, m->vocab_size, head_std, 3.0 * head_std, err));
    }
    set_loss_vocabulary(spec, m->vocab_size);
    ct_component *old = ct_component_child(spec, "model");
    return old != NULL ? ct_component_replace(old, model, err) : ct_component_add(tree, spec, "model", model, err);
}

ct_status cti_llama3_spec(ct_tree *tree, const char *name, ct_component **out_spec, ct_err *err)
{
    const flavor *f = NULL;
    for (int i = 0; i < N_FLAVORS; i++) {
        if (strcmp(flavors[i].name, name) == 0) {
            f = &flavors[i];
        }
    }
    if (f == NULL) {
        return CT_FAIL(err, CT_ERR_NOT_FOUND, "llama3 has no flavor '%s': debugmodel, 1B, 3B, 8B, 70B and 405B exist", name);
    }
    ct_component *spec;
    CT_TRY(ct_component_create(tree, &cti_model_spec_class, &spec, err));
    cti_model_spec_config *m = spec->values;
    m->flavor = f->name;
    m->dim = f->dim;
    m->n_layers = f->n_layers;
    m->n_heads = f->n_heads;
    m->n_kv_heads = f->n_kv_heads;
    m->ffn_hidden = ffn_hidden(f);
    m->vocab_size = f->vocab_size;
    m->tied_embeddings = f->tied;
    m->rope_scaling_factor = f->rope_factor;
    CT_TRY(cti_llama3_build(tree, spec, err));
    *out_spec = spec;
    return CT_OK;
}
