/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_config.json: which tokens are BOS, EOS and PAD, and what is added to the vocabulary. Other members (class,
 * chat template, lengths) do not touch ids and are left alone. */
#include "tokenizer/tokenizer_internal.h"

/* Where the token is an added token already, tokenizer.json has said how it is matched; it only becomes special (docs/differences.md). */
static ct_status put_token(ct_tokenizer *tok, cti_added token, const char *where, ct_err *err)
{
    for (size_t i = 0; i < tok->n_added; i++) {
        const cti_added *known = &tok->added[i];
        if (known->size == token.size && memcmp(known->content, token.content, token.size) == 0) {
            const int32_t id = token.id;
            token = *known;
            token.special = true;
            token.id = id < 0 ? known->id : id;
            break;
        }
    }
    return cti_added_put(tok, token, where, err);
}

static ct_status token_of(const json_t *json, cti_added *out, const char *where, ct_err *err)
{
    const json_t *content = json_is_object(json) ? json_object_get(json, "content") : json;
    if (!json_is_string(content)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s must be a string or an object with 'content'", where);
    }
    *out = (cti_added){
        .id = -1, .content = (char *)(uintptr_t)json_string_value(content), .size = json_string_length(content), .special = true};
    if (json_is_object(json)) {
        CT_TRY(cti_get_bool(json, "single_word", false, where, &out->single_word, err));
        CT_TRY(cti_get_bool(json, "lstrip", false, where, &out->lstrip, err));
        CT_TRY(cti_get_bool(json, "rstrip", false, where, &out->rstrip, err));
        CT_TRY(cti_get_bool(json, "normalized", true, where, &out->normalized, err));
        CT_TRY(cti_get_bool(json, "special", true, where, &out->special, err));
    }
    return CT_OK;
}

static ct_status parse_decoder_table(ct_tokenizer *tok, const json_t *table, const char *name, ct_err *err)
{
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)table, key, value)
    {
        char where[512];
        (void)snprintf(where, sizeof where, "%.350s: added_tokens_decoder '%.80s'", name, key);
        int64_t id = -1;
        if (!cti_parse_i64(key, &id) || id < 0 || id >= CTI_MAX_IDS) {
            return CT_FAIL(err, CT_ERR_FORMAT, "%s: the key is not an id", where);
        }
        cti_added token;
        CT_TRY(token_of(value, &token, where, err));
        token.id = (int32_t)id;
        const bool special = token.special;
        CT_TRY(special ? put_token(tok, token, where, err) : cti_added_put(tok, token, where, err));
    }
    return CT_OK;
}

/* The token of a role, added where it is not known. *out is left alone where the file names none. */
static ct_status parse_role(ct_tokenizer *tok, const json_t *root, const char *key, const char *name, int32_t *out, ct_err *err)
{
    const json_t *value = json_object_get(root, key);
    if (value == NULL || json_is_null(value) || (json_is_string(value) && json_string_length(value) == 0)) {
        return CT_OK;
    }
    char where[512];
    (void)snprintf(where, sizeof where, "%.350s: %s", name, key);
    cti_added token;
    CT_TRY(token_of(value, &token, where, err));
    token.special = true;
    CT_TRY(put_token(tok, token, where, err));
    if (out != NULL) {
        *out = cti_vocab_find(&tok->vocab, token.content, token.size);
    }
    return CT_OK;
}

ct_status cti_special_map_parse(ct_tokenizer *tok, const json_t *root, const char *name, ct_err *err)
{
    static const char *const keys[] = {"bos_token", "eos_token", "pad_token"};
    int32_t *const roles[] = {&tok->bos_id, &tok->eos_id, &tok->pad_id};
    if (!json_is_object(root)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: not a JSON object", name);
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (*roles[i] < 0) {
            CT_TRY(parse_role(tok, root, keys[i], name, roles[i], err));
        }
    }
    return CT_OK;
}

ct_status cti_tokenizer_config_parse(ct_tokenizer *tok, const json_t *root, const char *name, ct_err *err)
{
    static const char *const keys[] = {"bos_token", "eos_token",  "pad_token", "unk_token",
                                       "sep_token", "cls_token", "mask_token"};
    if (!json_is_object(root)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: not a JSON object", name);
    }
    int32_t *const roles[] = {&tok->bos_id, &tok->eos_id, &tok->pad_id};
    CT_TRY(parse_decoder_table(tok, json_object_get(root, "added_tokens_decoder"), name, err));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        CT_TRY(parse_role(tok, root, keys[i], name, i < 3 ? roles[i] : NULL, err));
    }
    const json_t *chat = json_object_get(root, "chat_template");
    tok->has_chat_template |= chat != NULL && !json_is_null(chat);
    bool bos = false, eos = false;
    CT_TRY(cti_get_bool(root, "add_bos_token", false, name, &bos, err));
    CT_TRY(cti_get_bool(root, "add_eos_token", false, name, &eos, err));
    tok->default_flags = (bos ? (unsigned)CT_ENCODE_BOS : 0u) | (eos ? (unsigned)CT_ENCODE_EOS : 0u);
    return CT_OK;
}
