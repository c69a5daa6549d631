/* SPDX-License-Identifier: Apache-2.0 */
/* Linear, Embedding, RMSNorm, FeedForward. */
#include <inttypes.h>

#include "model/model.h"

static ct_status linear_build(const ct_component *self, ct_build *b, const ct_value_id *in, int32_t n_in, ct_value_id *out,
                              int32_t n_out, ct_err *err)
{
    const cti_linear_config *c = ct_component_values(self);
    CT_ASSERT(n_in <= 1 && n_out == 1);
    const int64_t dims[2] = {c->out_features, c->in_features};
    const ct_init init = {CT_INIT_TRUNC_NORMAL, 0.0, c->init_std, -c->init_cutoff, c->init_cutoff};
    ct_value_id w;
    CT_TRY(ct_build_param(b, "weight", dims, 2, &init, &w, err));
    if (n_in == 0) { /* the head: its weight goes to the loss, which applies it chunk by chunk */
        out[0] = w;
        return CT_OK;
    }
    return ct_op_matmul(b->graph, in[0], w, CT_NO_VALUE, false, true, &out[0], err);
}

static ct_status embedding_build(const ct_component *self, ct_build *b, const ct_value_id *in, int32_t n_in,
                                 ct_value_id *out, int32_t n_out, ct_err *err)
{
    const cti_embedding_config *c = ct_component_values(self);
    CT_ASSERT(n_in == 1 && n_out >= 1);
    const int64_t dims[2] = {c->num_embeddings, c->embedding_dim};
    const ct_init init = {CT_INIT_NORMAL, 0.0, c->init_std, 0.0, 0.0};
    ct_value_id w;
    CT_TRY(ct_build_param(b, "weight", dims, 2, &init, &w, err));
    if (n_out == 2) {
        out[1] = w; /* for a tied head */
    }
    return ct_op_embedding(b->graph, w, in[0], &out[0], err);
}

static ct_status rmsnorm_build(const ct_component *self, ct_build *b, const ct_value_id *in, int32_t n_in, ct_value_id *out,
                               int32_t n_out, ct_err *err)
{
    const cti_rmsnorm_config *c = ct_component_values(self);
    CT_ASSERT(n_in == 1 && n_out == 1);
    const ct_init init = {CT_INIT_CONST, 1.0, 0.0, 0.0, 0.0};
    ct_value_id w;
    CT_TRY(ct_build_param(b, "weight", &c->normalized_shape, 1, &init, &w, err));
    return ct_op_rmsnorm(b->graph, in[0], w, c->eps, &out[0], err);
}

static ct_status feed_forward_build(const ct_component *self, ct_build *b, const ct_value_id *in, int32_t n_in,
                                    ct_value_id *out, int32_t n_out, ct_err *err)
{
    CT_ASSERT(n_in == 1 && n_out == 1);
    ct_value_id gate, up, hidden;
    CT_TRY(ct_build_child(b, self, "w1", in, 1, &gate, 1, err));
    CT_TRY(ct_build_child(b, self, "w3", in, 1, &up, 1, err));
    CT_TRY(ct_op_silu_mul(b->graph, gate, up, &hidden, err));
    return ct_build_child(b, self, "w2", &hidden, 1, out, 1, err);
}

#define ROW(...) CT_FIELD_ROW_IN(cti_linear_config, __VA_ARGS__)
static const ct_field linear_fields[] = {CTI_LINEAR_FIELDS(ROW)};
#undef ROW
#define ROW(...) CT_FIELD_ROW_IN(cti_embedding_config, __VA_ARGS__)
static const ct_field embedding_fields[] = {CTI_EMBEDDING_FIELDS(ROW)};
#undef ROW
#define ROW(...) CT_FIELD_ROW_IN(cti_rmsnorm_config, __VA_ARGS__)
static const ct_field rmsnorm_fields[] = {CTI_RMSNORM_FIELDS(ROW)};
#undef ROW
#define ROW(...) CT_FIELD_ROW_IN(cti_feed_forward_config, __VA_ARGS__)
static const ct_field feed_forward_fields[] = {CTI_FEED_FORWARD_FIELDS(ROW)};
#undef ROW
#define N(a) ((int32_t)(sizeof(a) / sizeof((a)[0])))

const ct_class cti_linear_class = {"Linear", NULL, linear_fields, N(linear_fields), sizeof(cti_linear_config), NULL,
                                   linear_build};
const ct_class cti_embedding_class = {
    "Embedding", NULL, embedding_fields, N(embedding_fields), sizeof(cti_embedding_config), NULL, embedding_build};
const ct_class cti_rmsnorm_class = {"RMSNorm", NULL, rmsnorm_fields, N(rmsnorm_fields), sizeof(cti_rmsnorm_config),
                                    NULL, rmsnorm_build};
const ct_class cti_feed_forward_class = {
    "FeedForward",       NULL, feed_forward_fields, N(feed_forward_fields), sizeof(cti_feed_forward_config), NULL,
    feed_forward_build};
