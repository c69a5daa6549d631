/* SPDX-License-Identifier: Apache-2.0 */
/* Decoder and TransformerBlock: the order of parts and the residual stream. */
#include <inttypes.h>
#include <stdio.h>

#include "model/model.h"

static ct_status block_build(const ct_component *self, ct_build *b, const ct_value_id *in, int32_t n_in, ct_value_id *out,
                             int32_t n_out, ct_err *err)
{
    CT_ASSERT(n_in == 1 && n_out == 1);
    ct_value_id normed, y, mid;
    CT_TRY(ct_build_child(b, self, "attention_norm", in, 1, &normed, 1, err));
    CT_TRY(ct_build_child(b, self, "attention", &normed, 1, &y, 1, err));
    CT_TRY(ct_op_add(b->graph, in[0], y, &mid, err));
    CT_TRY(ct_build_child(b, self, "ffn_norm", &mid, 1, &normed, 1, err));
    CT_TRY(ct_build_child(b, self, "feed_forward", &normed, 1, &y, 1, err));
    return ct_op_add(b->graph, mid, y, &out[0], err);
}

static ct_status decoder_build(const ct_component *self, ct_build *b, const ct_value_id *in, int32_t n_in, ct_value_id *out,
                               int32_t n_out, ct_err *err)
{
    (void)in;
    CT_ASSERT(n_in == 0 && n_out == 2);
    const cti_decoder_config *c = ct_component_values(self);
    ct_value_id embedded[2], x;
    CT_TRY(ct_build_child(b, self, "tok_embeddings", &b->tokens, 1, embedded, 2, err));
    x = embedded[0];
    CT_TRY(ct_graph_push_scope(b->graph, "layers", err));
    const ct_component *layers = ct_component_child(self, "layers");
    for (int32_t i = 0; i < layers->n_children; i++) {
        CT_TRY(ct_build_child(b, layers, layers->children[i]->name, &x, 1, &x, 1, err));
    }
    ct_graph_pop_scope(b->graph);
    CT_TRY(ct_build_child(b, self, "norm", &x, 1, &out[0], 1, err));
    if (c->tied_embeddings) {
        out[1] = embedded[1];
        return CT_OK;
    }
    return ct_build_child(b, self, "lm_head", NULL, 0, &out[1], 1, err);
}

#define ROW(...) CT_FIELD_ROW_IN(cti_decoder_config, __VA_ARGS__)
static const ct_field decoder_fields[] = {CTI_DECODER_FIELDS(ROW)};
#undef ROW
#define ROW(...) CT_FIELD_ROW_IN(cti_model_spec_config, __VA_ARGS__)
static const ct_field model_spec_fields[] = {CTI_MODEL_SPEC_FIELDS(ROW)};
#undef ROW
#define N(a) ((int32_t)(sizeof(a) / sizeof((a)[0])))

static ct_status model_spec_check(const ct_component *self, ct_err *err)
{
    const cti_model_spec_config *m = ct_component_values(self);
    if (!m->head_dim.is_set && m->dim % m->n_heads != 0) {
        return CT_FAIL(err, CT_ERR_USAGE, "dim %" PRId64 " does not divide by n_heads %" PRId64 ": change one, or set head_dim", m->dim,
                       m->n_heads);
    }
    if (m->n_heads % m->n_kv_heads != 0) {
        return CT_FAIL(err, CT_ERR_USAGE, "n_heads %" PRId64 " does not divide by n_kv_heads %" PRId64, m->n_heads, m->n_kv_heads);
    }
    const int64_t h = m->head_dim.is_set ? m->head_dim.value : m->dim / m->n_heads;
    if (h % 2 != 0 || h < 2 || h > 2048) {
        return CT_FAIL(err, CT_ERR_USAGE, "a head is %" PRId64 " wide, an even number from 2 to 2048 is wanted (%s)", h,
                       m->head_dim.is_set ? "head_dim" : "dim / n_heads");
    }
    return CT_OK;
}

const ct_class cti_block_class = {"Llama3TransformerBlock", NULL, NULL, 0, 0, NULL, block_build};
const ct_class cti_decoder_class = {"Llama3Model", NULL, decoder_fields, N(decoder_fields), sizeof(cti_decoder_config),
                                    NULL, decoder_build};
const ct_class cti_model_spec_class = {
    "ModelSpec", NULL, model_spec_fields, N(model_spec_fields), sizeof(cti_model_spec_config), model_spec_check, NULL};
