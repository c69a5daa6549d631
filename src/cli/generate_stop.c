/* SPDX-License-Identifier: Apache-2.0 */
/* What ends the text that `ctitan generate` writes. */
#include <string.h>

#include "base/base.h"
#include "cli/generate.h"

bool cti_gen_stops_has(const cti_gen_stops *s, int32_t id)
{
    for (int64_t i = 0; i < s->ids.n; i++) {
        if (s->ids.ids[i] == id) {
            return true;
        }
    }
    return false;
}

static ct_status add_id(cti_gen_stops *s, int64_t id, ct_err *err)
{
    const bool is_new = id >= 0 && id <= INT32_MAX && !cti_gen_stops_has(s, (int32_t)id);
    return is_new ? ct_tokens_push(&s->ids, (int32_t)id, err) : CT_OK;
}

/* `eos_token_id` of a file: a number, a list of them, or nothing. *out_has: the file is there. */
static ct_status add_from(cti_gen_stops *s, const ct_alloc *alloc, const char *folder, const char *name, bool *out_has, ct_err *err)
{
    json_t *json = NULL;
    char *path = cti_path_join(alloc, folder, name, err);
    ct_status st = path != NULL ? CT_OK : CT_ERR_MEMORY;
    *out_has = st == CT_OK && cti_path_is_file(path);
    if (*out_has) {
        st = cti_json_read_file(alloc, path, &json, err);
    }
    const json_t *eos = json_object_get(json, "eos_token_id");
    if (st == CT_OK && json_is_integer(eos)) {
        st = add_id(s, json_integer_value(eos), err);
    }
    for (size_t i = 0; st == CT_OK && i < json_array_size(eos); i++) {
        st = add_id(s, json_is_integer(json_array_get(eos, i)) ? json_integer_value(json_array_get(eos, i)) : -1, err);
    }
    json_decref(json);
    ct_alloc_free(alloc, path);
    return st;
}

ct_status cti_gen_stops_add_eos(cti_gen_stops *s, const cti_gen_model *model, ct_err *err)
{
    const char *const folders[] = {model->assets, model->hf_config != NULL ? model->path : model->assets};
    CT_TRY(add_id(s, ct_tokenizer_eos_id(model->tokenizer), err));
    for (int i = 0; i < 2; i++) {
        bool has;
        CT_TRY(add_from(s, model->alloc, folders[i], "generation_config.json", &has, err));
        if (!has) {
            CT_TRY(add_from(s, model->alloc, folders[i], "config.json", &has, err));
        }
    }
    return CT_OK;
}

ct_status cti_gen_stops_add_token(cti_gen_stops *s, const ct_tokenizer *tokenizer, const char *word, ct_err *err)
{
    int64_t id = ct_tokenizer_id_of(tokenizer, word, strlen(word));
    if (id < 0 && (!cti_parse_i64(word, &id) || id < 0 || id >= ct_tokenizer_vocab_size(tokenizer))) {
        return CT_FAIL(err, CT_ERR_USAGE, "--stop-token: '%s' is no token of the tokenizer, nor an id below %d (--stop takes any text)", word,
                       ct_tokenizer_vocab_size(tokenizer));
    }
    return add_id(s, id, err);
}

size_t cti_gen_stops_shown(const cti_gen_stops *s, const char *text, size_t size, bool *out_is_end)
{
    size_t shown = size;
    *out_is_end = false;
    for (int64_t i = 0; i < s->texts.n; i++) {
        const size_t n = strlen(s->texts.items[i]);
        const char *found = memmem(text, size, s->texts.items[i], n);
        if (found != NULL && (!*out_is_end || (size_t)(found - text) < shown)) {
            shown = (size_t)(found - text);
            *out_is_end = true;
        }
    }
    if (*out_is_end) {
        return shown;
    }
    for (int64_t i = 0; i < s->texts.n; i++) {
        const size_t n = strlen(s->texts.items[i]);
        for (size_t begin = size >= n ? size - n + 1 : 0; begin < shown; begin++) {
            if (memcmp(text + begin, s->texts.items[i], size - begin) == 0) {
                shown = begin;
            }
        }
    }
    return shown;
}
