/* SPDX-License-Identifier: Apache-2.0 */
/* The flavours of llama3 and the tree each one is. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "model/model.h"

/* X(flavor, dim, layers, heads, kv heads, ffn multiplier (0: none), multiple_of, vocabulary, tied) */
#define FLAVORS(X)                                                                                                   \
    X("debugmodel", 256, 6, 16, 16, 0.0, 256, 2048, false)                                                           \
    X("1B", 2048, 16, 32, 8, 1.5, 1024, 128256, true)                                                                \
    X("3B", 3072, 28, 24, 8, 1.0, 1024, 128256, true)                                                                \
    X("8B", 4096, 32, 32, 8, 1.3, 1024, 128256, false)                                                               \
    X("70B", 8192, 80, 64, 8, 1.3, 4096, 128256, false)                                                              \
    X("405B", 16384, 126, 128, 8, 1.2, 4096, 128256, false)

typedef struct flavor {
    const char *name;
    int64_t dim, n_layers, n_heads, n_kv_heads;
    double ffn_mult;
    int64_t multiple_of, vocab_size;
    bool tied;
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

static ct_status add_norm(ct_tree *tree, ct_component *parent, const char *name, int64_t dim, ct_err *err)
{
    ct_component *c;
    CT_TRY(add(tree, parent, name, &cti_rmsnorm_class, &c, err));
    ((cti_rmsnorm_config *)c->values)->normalized_shape = dim;
    return CT_OK;
}

static ct_status add_layer(ct_tree *tree, ct_component *layers, const flavor *f, int64_t index, ct_err *err)
{
    const int64_t h = f->dim / f->n_heads;
    const double depth_std = 0.02 / sqrt(2.0 * (double)(index + 1));
    char name[24];
    (void)snprintf(name, sizeof name, "%lld", (long long)index); /* fits */
    ct_component *block, *attention, *c;
    CT_TRY(add(tree, layers, name, &cti_block_class, &block, err));
    CT_TRY(add(tree, block, "attention", &cti_attention_class, &attention, err));
    *(cti_attention_config *)attention->values = (cti_attention_config){f->dim, f->n_heads, f->n_kv_heads, h};
    CT_TRY(add(tree, attention, "rope", &cti_rope_class, &c, err));
    ((cti_rope_config *)c->values)->head_dim = h;
    CT_TRY(add(tree, attention, "qkv_linear", &cti_qkv_class, &c, err));
    *(cti_qkv_config *)c->values = (cti_qkv_config){f->dim, f->n_heads, f->n_kv_heads, h, 0.02};
    CT_TRY(add_linear(tree, attention, "wo", f->n_heads * h, f->dim, depth_std, 2.0, err));
    CT_TRY(add(tree, attention, "inner_attention", &cti_segment_attention_class, &c, err));
    ct_component *ffn;
    const int64_t hidden = ffn_hidden(f);
    CT_TRY(add(tree, block, "feed_forward", &cti_feed_forward_class, &ffn, err));
    *(cti_feed_forward_config *)ffn->values = (cti_feed_forward_config){f->dim, hidden};
    CT_TRY(add_linear(tree, ffn, "w1", f->dim, hidden, 0.02, 2.0, err));
    CT_TRY(add_linear(tree, ffn, "w2", hidden, f->dim, depth_std, 2.0, err));
    CT_TRY(add_linear(tree, ffn, "w3", f->dim, hidden, depth_std, 2.0, err));
    CT_TRY(add_norm(tree, block, "attention_norm", f->dim, err));
    return add_norm(tree, block, "ffn_norm", f->dim, err);
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
    ct_component *spec, *model, *c, *layers;
    CT_TRY(ct_component_create(tree, &cti_model_spec_class, &spec, err));
    spec->is_hidden = true;
    *(cti_model_spec_config *)spec->values = (cti_model_spec_config){"llama3", f->name};
    CT_TRY(add(tree, spec, "model", &cti_decoder_class, &model, err));
    *(cti_decoder_config *)model->values = (cti_decoder_config){f->dim, f->n_layers, f->vocab_size, 131072, f->tied};
    CT_TRY(add(tree, model, "tok_embeddings", &cti_embedding_class, &c, err));
    /* A tied embedding starts as the head would. */
    *(cti_embedding_config *)c->values =
        (cti_embedding_config){f->vocab_size, f->dim, f->tied ? 1.0 / sqrt((double)f->dim) : 1.0};
    CT_TRY(add(tree, model, "layers", &ct_class_list, &layers, err));
    for (int64_t i = 0; i < f->n_layers; i++) {
        CT_TRY(add_layer(tree, layers, f, i, err));
    }
    CT_TRY(add_norm(tree, model, "norm", f->dim, err));
    if (!f->tied) {
        const double std = 1.0 / sqrt((double)f->dim);
        CT_TRY(add_linear(tree, model, "lm_head", f->dim, f->vocab_size, std, 3.0 * std, err));
    }
    *out_spec = spec;
    return CT_OK;
}
