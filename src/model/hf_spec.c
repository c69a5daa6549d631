/* SPDX-License-Identifier: Apache-2.0 */
/* A model as the config.json of a Hugging Face folder tells it. */
#include <inttypes.h>
#include <string.h>

#include "base/base.h"
#include "base/json.h"
#include "model/model.h"

typedef struct reader {
    const json_t *config;
    const char *where;
    ct_err *err;
} reader;

static ct_status refuse(const reader *r, const char *what, const char *found, const char *wanted)
{
    return CT_FAIL(r->err, CT_ERR_UNSUPPORTED, "'%s': %s is '%s'; ctitan's llama3 has %s", r->where, what, found, wanted);
}

/* A whole number above 0; `missing` where it is not there (0: it must be). */
static ct_status get_size(const reader *r, const char *key, int64_t missing, int64_t *out)
{
    enum { HIGHEST = 1 << 30 };
    const json_t *value = json_object_get(r->config, key);
    if ((value == NULL || json_is_null(value)) && missing > 0) {
        *out = missing;
        return CT_OK;
    }
    CT_TRY(cti_json_get_i64(r->config, key, r->where, out, r->err));
    return *out >= 1 && *out <= HIGHEST
               ? CT_OK
               : CT_FAIL(r->err, CT_ERR_FORMAT, "'%s': %s is %" PRId64 ", a number from 1 to 2^30 is wanted", r->where, key, *out);
}

static ct_status get_real(const reader *r, const json_t *from, const char *key, double missing, double *out)
{
    const json_t *value = json_object_get(from, key);
    *out = missing;
    if (value == NULL || json_is_null(value)) {
        return CT_OK;
    }
    *out = json_is_number(value) ? json_number_value(value) : -1.0;
    return *out > 0.0 && *out < 1e30 ? CT_OK : CT_FAIL(r->err, CT_ERR_FORMAT, "'%s': %s must be a number above 0", r->where, key);
}

/* What changes the arithmetic and has no place in the components. */
static ct_status check_kind(const reader *r)
{
    static const char *const biases[] = {"attention_bias", "mlp_bias"};
    const char *type = NULL;
    CT_TRY(cti_json_get_str(r->config, "model_type", r->where, &type, r->err));
    if (strcmp(type, "llama") != 0) {
        return refuse(r, "model_type", type, "'llama' only");
    }
    const char *act = json_string_value(json_object_get(r->config, "hidden_act"));
    if (act != NULL && strcmp(act, "silu") != 0) {
        return refuse(r, "hidden_act", act, "'silu' only");
    }
    for (size_t i = 0; i < sizeof biases / sizeof *biases; i++) {
        if (json_is_true(json_object_get(r->config, biases[i]))) {
            return refuse(r, biases[i], "true", "no biases");
        }
    }
    if (json_is_object(json_object_get(r->config, "quantization_config"))) {
        return refuse(r, "quantization_config", "{...}", "weights of F32, BF16, F16 or F64 only");
    }
    return CT_OK;
}

/* transformers from 5 on: all under rope_parameters; before: rope_theta, and rope_scaling where there is any. */
static ct_status read_rope(const reader *r, cti_model_spec_config *m, cti_rope_config *rope)
{
    const json_t *rule = json_object_get(r->config, "rope_parameters");
    rule = json_is_object(rule) ? rule : json_object_get(r->config, "rope_scaling");
    CT_TRY(get_real(r, r->config, "rope_theta", 10000.0, &m->rope_theta));
    CT_TRY(get_real(r, rule, "rope_theta", m->rope_theta, &m->rope_theta));
    const char *type = json_string_value(json_object_get(rule, "rope_type"));
    type = type != NULL ? type : json_string_value(json_object_get(rule, "type"));
    m->rope_scaling = "none";
    if (type == NULL || strcmp(type, "default") == 0) {
        return CT_OK;
    }
    if (strcmp(type, "llama3") != 0) {
        return refuse(r, "rope_type", type, "'default' and 'llama3'");
    }
    m->rope_scaling = "llama";
    double original;
    CT_TRY(get_real(r, rule, "factor", 8.0, &m->rope_scaling_factor));
    CT_TRY(get_real(r, rule, "low_freq_factor", 1.0, &rope->low_freq_factor));
    CT_TRY(get_real(r, rule, "high_freq_factor", 4.0, &rope->high_freq_factor));
    CT_TRY(get_real(r, rule, "original_max_position_embeddings", 8192.0, &original));
    rope->original_max_position_embeddings = (int64_t)original;
    return CT_OK;
}

static ct_status read_spec(const reader *r, cti_model_spec_config *m, cti_rope_config *rope)
{
    CT_TRY(check_kind(r));
    CT_TRY(get_size(r, "hidden_size", 0, &m->dim));
    CT_TRY(get_size(r, "num_hidden_layers", 0, &m->n_layers));
    CT_TRY(get_size(r, "num_attention_heads", 0, &m->n_heads));
    CT_TRY(get_size(r, "num_key_value_heads", m->n_heads, &m->n_kv_heads));
    CT_TRY(get_size(r, "intermediate_size", 0, &m->ffn_hidden));
    CT_TRY(get_size(r, "vocab_size", 0, &m->vocab_size));
    CT_TRY(get_size(r, "max_position_embeddings", 2048, &m->max_seq_len));
    CT_TRY(get_size(r, "head_dim", cti_max_i64(m->dim / m->n_heads, 1), &m->head_dim.value));
    m->head_dim.is_set = true;
    CT_TRY(get_real(r, r->config, "rms_norm_eps", 1e-6, &m->norm_eps));
    m->tied_embeddings = json_is_true(json_object_get(r->config, "tie_word_embeddings"));
    return read_rope(r, m, rope);
}

ct_status cti_llama3_spec_hf(ct_tree *tree, const json_t *config, const char *where, ct_component **out_spec, ct_err *err)
{
    const reader r = {config, where, err};
    ct_component *usual;
    CT_TRY(cti_llama3_spec(tree, "debugmodel", out_spec, err));
    CT_TRY(ct_component_create(tree, &cti_rope_class, &usual, err));
    cti_rope_config *rope = usual->values;
    cti_model_spec_config *m = (*out_spec)->values;
    m->flavor = "of config.json";
    CT_TRY(read_spec(&r, m, rope));
    if ((*out_spec)->cls->check != NULL) {
        const ct_status st = (*out_spec)->cls->check(*out_spec, err);
        if (st != CT_OK) {
            ct_err_prefix(err, "'%s'", where);
            return st;
        }
    }
    CT_TRY(cti_llama3_build(tree, *out_spec, err));
    ct_component *layers = ct_component_find(*out_spec, "model.layers");
    for (int32_t i = 0; i < layers->n_children; i++) {
        cti_rope_config *to = ct_component_find(layers->children[i], "attention.rope")->values;
        to->low_freq_factor = rope->low_freq_factor;
        to->high_freq_factor = rope->high_freq_factor;
        to->original_max_position_embeddings = rope->original_max_position_embeddings;
    }
    return CT_OK;
}
