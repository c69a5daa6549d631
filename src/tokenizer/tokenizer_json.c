/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.json: its head, its model and its added tokens. The components in between are in tokenizer_pipeline.c. */
#include "tokenizer/tokenizer_internal.h"

ct_status cti_get_bool(const json_t *obj, const char *key, bool fallback, const char *where, bool *out, ct_err *err)
{
    const json_t *value = json_object_get(obj, key);
    if (value != NULL && !json_is_null(value) && !json_is_boolean(value)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: '%s' must be true or false", where, key);
    }
    *out = json_is_boolean(value) ? json_is_true(value) : fallback;
    return CT_OK;
}

ct_status cti_check_keys(const json_t *obj, const char *const *names, const char *where, ct_err *err)
{
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)obj, key, value)
    {
        size_t i = 0;
        while (names[i] != NULL && strcmp(names[i], key) != 0) {
            i++;
        }
        if (names[i] == NULL) {
            return CT_FAIL(err, CT_ERR_UNSUPPORTED, "%s: the member '%s' is not implemented", where, key);
        }
    }
    return CT_OK;
}

/* --- the model --- */

ct_status cti_parse_vocab(ct_tokenizer *tok, const json_t *vocab, const char *where, ct_err *err)
{
    if (!json_is_object(vocab)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: 'vocab' must be an object of tokens and ids", where);
    }
    const int64_t n = (int64_t)json_object_size(vocab);
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)vocab, key, value)
    {
        const json_int_t id = json_integer_value(value);
        /* Holes are allowed; an id far above the number of tokens is damage, and would cost memory. */
        if (!json_is_integer(value) || id < 0 || id >= 4 * n + 65536) {
            return CT_FAIL(err, CT_ERR_FORMAT, "%s: the id of '%.80s' is not a number that suits a vocabulary of %lld tokens",
                           where, key, (long long)n);
        }
        const ct_status st = cti_vocab_add(&tok->vocab, (int32_t)id, key, strlen(key), err);
        if (st != CT_OK) {
            ct_err_prefix(err, "%s", where);
            return st;
        }
    }
    return cti_vocab_finish(tok, err);
}

ct_status cti_vocab_finish(ct_tokenizer *tok, ct_err *err)
{
    tok->n_is_model = tok->vocab.n_ids;
    tok->is_model = CT_NEW_ARRAY(tok->alloc, bool, tok->n_is_model, err);
    if (tok->is_model == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int32_t i = 0; i < 2048; i++) {
        tok->char_ids[i] = -1;
    }
    for (int32_t id = 0; id < tok->n_is_model; id++) {
        tok->is_model[id] = cti_vocab_has(&tok->vocab, id);
        if (tok->is_model[id] && tok->vocab.tokens[id].size > 0 && tok->vocab.tokens[id].size <= 2) {
            const unsigned char *p = (const unsigned char *)cti_vocab_text(&tok->vocab, id);
            uint32_t cp = 0;
            if (cti_utf8_decode(p, p + tok->vocab.tokens[id].size, &cp) == tok->vocab.tokens[id].size) {
                tok->char_ids[cp] = id;
            }
        }
    }
    return CT_OK;
}

ct_status cti_merge_add(ct_tokenizer *tok, const char *left, size_t left_size, const char *right, size_t right_size,
                        int64_t rank, const char *where, ct_err *err)
{
    const int32_t l = cti_vocab_find(&tok->vocab, left, left_size), r = cti_vocab_find(&tok->vocab, right, right_size);
    cti_str whole = {.alloc = tok->alloc};
    cti_str_add_n(&whole, left, left_size);
    const size_t cut = tok->prefix ? strlen(tok->prefix) : 0; /* the right part's prefix goes */
    cti_str_add_n(&whole, right + cti_min_i64((int64_t)cut, (int64_t)right_size), right_size > cut ? right_size - cut : 0);
    ct_status st = cti_str_check(&whole, err);
    const int32_t id = st == CT_OK ? cti_vocab_find(&tok->vocab, whole.data, whole.len) : -1;
    cti_str_deinit(&whole);
    CT_TRY(st);
    if (l < 0 || r < 0 || id < 0) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: merge %lld of '%.*s' and '%.*s': %s is not in the vocabulary", where,
                       (long long)rank, (int)cti_min_i64((int64_t)left_size, 80), left,
                       (int)cti_min_i64((int64_t)right_size, 80), right,
                       l < 0   ? "the first"
                       : r < 0 ? "the second"
                               : "what they make");
    }
    tok->n_merges++;
    return cti_merges_put(&tok->merges, (cti_merge){.left = l, .right = r, .rank = (int32_t)rank, .id = id}, err);
}

/* "a b": the parts are known by the blank between them. Where tokens hold blanks themselves, by the only cut that gives
 * tokens of the vocabulary. */
static ct_status merge_of_string(ct_tokenizer *tok, const char *text, size_t size, int64_t rank, const char *where, ct_err *err)
{
    size_t cut = SIZE_MAX, n_blanks = 0, n_cuts = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] != ' ') {
            continue;
        }
        n_blanks++;
        cut = n_blanks == 1 ? i : cut;
    }
    if (n_blanks > 1) {
        for (size_t i = 1; i + 1 < size; i++) {
            if (text[i] == ' ' && cti_vocab_find(&tok->vocab, text, i) >= 0 &&
                cti_vocab_find(&tok->vocab, text + i + 1, size - i - 1) >= 0) {
                cut = i;
                n_cuts++;
            }
        }
    }
    if (n_blanks == 0 || (n_blanks > 1 && n_cuts != 1) || cut == 0 || cut + 1 == size) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: merge %lld, '%.*s', is not two tokens with a blank between them", where,
                       (long long)rank, (int)cti_min_i64((int64_t)size, 80), text);
    }
    return cti_merge_add(tok, text, cut, text + cut + 1, size - cut - 1, rank, where, err);
}

static ct_status parse_merges(ct_tokenizer *tok, const json_t *merges, const char *where, ct_err *err)
{
    if (!json_is_array(merges) || json_array_size(merges) > INT32_MAX) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: 'merges' must be a list", where);
    }
    int64_t rank = 0;
    for (size_t i = 0; i < json_array_size(merges); i++) {
        const json_t *merge = json_array_get(merges, i);
        if (json_is_string(merge)) {
            if (i == 0 && cti_starts_with(json_string_value(merge), "#version")) {
                continue;
            }
            CT_TRY(merge_of_string(tok, json_string_value(merge), json_string_length(merge), rank, where, err));
        } else {
            const json_t *left = json_array_get(merge, 0), *right = json_array_get(merge, 1);
            if (json_array_size(merge) != 2 || !json_is_string(left) || !json_is_string(right)) {
                return CT_FAIL(err, CT_ERR_FORMAT, "%s: merge %lld is neither a string nor a list of two", where, (long long)rank);
            }
            CT_TRY(cti_merge_add(tok, json_string_value(left), json_string_length(left), json_string_value(right),
                                 json_string_length(right), rank, where, err));
        }
        rank++;
    }
    return CT_OK;
}

ct_status cti_model_finish(ct_tokenizer *tok, ct_err *err)
{
    (void)err;
    for (int byte = 0; byte < 256; byte++) {
        char name[8];
        (void)snprintf(name, sizeof name, "<0x%02X>", (unsigned)byte);
        const int32_t id = cti_vocab_find(&tok->vocab, name, 6);
        tok->byte_ids[byte] = id >= 0 && id < tok->n_is_model ? id : -1;
    }
    return CT_OK;
}

static ct_status parse_bpe(ct_tokenizer *tok, const json_t *model, const char *where, ct_err *err)
{
    static const char *const keys[] = {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                                       "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges", NULL};
    CT_TRY(cti_check_keys(model, keys, where, err));
    const json_t *dropout = json_object_get(model, "dropout");
    if (dropout != NULL && !json_is_null(dropout) && !(json_is_number(dropout) && json_number_value(dropout) == 0.0)) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "%s: 'dropout' other than null or 0 makes ids random, which is not implemented",
                       where);
    }
    tok->model = CTI_MODEL_BPE;
    CT_TRY(cti_get_affix(tok, model, "continuing_subword_prefix", where, &tok->prefix, err));
    CT_TRY(cti_get_affix(tok, model, "end_of_word_suffix", where, &tok->suffix, err));
    CT_TRY(cti_get_bool(model, "fuse_unk", false, where, &tok->fuse_unk, err));
    CT_TRY(cti_get_bool(model, "byte_fallback", false, where, &tok->byte_fallback, err));
    CT_TRY(cti_get_bool(model, "ignore_merges", false, where, &tok->ignore_merges, err));
    CT_TRY(cti_parse_vocab(tok, json_object_get(model, "vocab"), where, err));
    CT_TRY(parse_merges(tok, json_object_get(model, "merges"), where, err));
    return cti_model_finish(tok, err);
}

/* A model without a type (older files) is known by what it holds. */
static const char *model_type(const json_t *model)
{
    const json_t *type = json_object_get(model, "type");
    if (type != NULL) {
        return json_is_string(type) ? json_string_value(type) : "(not a string)";
    }
    return json_object_get(model, "merges")                     ? "BPE"
           : json_object_get(model, "max_input_chars_per_word") ? "WordPiece"
           : json_is_array(json_object_get(model, "vocab"))     ? "Unigram"
           : json_is_object(json_object_get(model, "vocab"))    ? "WordLevel"
                                                                : "(none)";
}

static ct_status parse_model(ct_tokenizer *tok, const json_t *model, const char *name, ct_err *err)
{
    static const struct {
        const char *type;
        ct_status (*parse)(ct_tokenizer *tok, const json_t *model, const char *where, ct_err *err);
    } rows[] = {{"BPE", parse_bpe},
                {"WordPiece", cti_parse_wordpiece},
                {"WordLevel", cti_parse_wordlevel},
                {"Unigram", cti_parse_unigram}};
    char where[512];
    (void)snprintf(where, sizeof where, "%.400s: model", name);
    if (!json_is_object(model)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s is missing or not an object", where);
    }
    const char *type = model_type(model);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].type, type) == 0) {
            return rows[i].parse(tok, model, where, err);
        }
    }
    return CT_FAIL(err, CT_ERR_UNSUPPORTED, "%s: type '%.80s' is not implemented; BPE, WordPiece, WordLevel and Unigram are",
                   where, type);
}

/* After the added tokens: the unknown token may be one of them. */
static ct_status parse_unk(ct_tokenizer *tok, const json_t *model, const char *name, ct_err *err)
{
    const json_t *unk = json_object_get(model, "unk_token");
    if (unk == NULL || json_is_null(unk) || tok->model != CTI_MODEL_BPE) { /* the others have found theirs */
        return CT_OK;
    }
    if (!json_is_string(unk)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: model: 'unk_token' must be a string", name);
    }
    tok->unk_id = cti_vocab_find(&tok->vocab, json_string_value(unk), json_string_length(unk));
    if (tok->unk_id < 0) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: model: unk_token '%.80s' is not in the vocabulary", name,
                       json_string_value(unk));
    }
    return CT_OK;
}

/* --- added tokens --- */

static ct_status parse_added(ct_tokenizer *tok, const json_t *list, const char *name, ct_err *err)
{
    static const char *const keys[] = {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special", NULL};
    if (list == NULL || json_is_null(list)) {
        return CT_OK;
    }
    char where[512];
    (void)snprintf(where, sizeof where, "%.400s: added_tokens", name);
    if (!json_is_array(list)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s must be a list", where);
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        const json_t *id = json_object_get(entry, "id"), *content = json_object_get(entry, "content");
        if (!json_is_integer(id) || !json_is_string(content) || json_integer_value(id) < 0 ||
            json_integer_value(id) >= CTI_MAX_IDS) {
            return CT_FAIL(err, CT_ERR_FORMAT, "%s: entry %zu needs an 'id' below %d and a 'content'", where, i, CTI_MAX_IDS);
        }
        CT_TRY(cti_check_keys(entry, keys, where, err));
        cti_added token = {.id = (int32_t)json_integer_value(id),
                           .content = (char *)(uintptr_t)json_string_value(content),
                           .size = json_string_length(content)};
        CT_TRY(cti_get_bool(entry, "single_word", false, where, &token.single_word, err));
        CT_TRY(cti_get_bool(entry, "lstrip", false, where, &token.lstrip, err));
        CT_TRY(cti_get_bool(entry, "rstrip", false, where, &token.rstrip, err));
        CT_TRY(cti_get_bool(entry, "special", false, where, &token.special, err));
        CT_TRY(cti_get_bool(entry, "normalized", !token.special, where, &token.normalized, err));
        CT_TRY(cti_added_put(tok, token, where, err));
    }
    return CT_OK;
}

/* --- the whole --- */

ct_status cti_tokenizer_parse(ct_tokenizer *tok, const json_t *root, const char *name, ct_err *err)
{
    static const char *const keys[] = {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                                       "post_processor", "decoder", "model", NULL};
    if (!json_is_object(root)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: not a JSON object", name);
    }
    CT_TRY(cti_check_keys(root, keys, name, err));
    const json_t *version = json_object_get(root, "version");
    if (version != NULL && !cti_str_eq(json_string_value(version), "1.0")) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "%s: version must be \"1.0\"", name);
    }
    /* Both would change the ids of a document; a trainer packs whole documents. */
    static const char *const cutting[] = {"truncation", "padding"};
    for (int i = 0; i < 2; i++) {
        const json_t *value = json_object_get(root, cutting[i]);
        if (value != NULL && !json_is_null(value)) {
            return CT_FAIL(err, CT_ERR_UNSUPPORTED, "%s: '%s' is not implemented; set it to null in the file", name,
                           cutting[i]);
        }
    }
    const json_t *model = json_object_get(root, "model");
    CT_TRY(parse_model(tok, model, name, err));
    CT_TRY(parse_added(tok, json_object_get(root, "added_tokens"), name, err));
    CT_TRY(parse_unk(tok, model, name, err));
    CT_TRY(cti_parse_normalizer(tok, json_object_get(root, "normalizer"), name, err));
    CT_TRY(cti_parse_pre_tokenizer(tok, json_object_get(root, "pre_tokenizer"), name, err));
    CT_TRY(cti_parse_post_processor(tok, json_object_get(root, "post_processor"), name, err));
    return cti_parse_decoder(tok, json_object_get(root, "decoder"), name, err);
}
