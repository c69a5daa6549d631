/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a folder, the life of the object, and what can be asked of it. */
#include "tokenizer/tokenizer_internal.h"

enum { MAX_FILE_BYTES = 1 << 30 };

void ct_tokenizer_destroy(ct_tokenizer **tokenizer)
{
    ct_tokenizer *tok = *tokenizer;
    if (tok == NULL) {
        return;
    }
    const ct_alloc *alloc = tok->alloc;
    cti_vocab_deinit(&tok->vocab);
    cti_merges_deinit(&tok->merges);
    ct_alloc_free(alloc, tok->is_model);
    ct_alloc_free(alloc, tok->byte_pairs);
    ct_alloc_free(alloc, tok->prefix);
    ct_alloc_free(alloc, tok->suffix);
    ct_alloc_free(alloc, tok->scores);
    cti_trie_deinit(&tok->pieces, alloc);
    for (size_t i = 0; i < tok->n_norms; i++) {
        cti_norm_deinit(&tok->norms[i], alloc);
    }
    ct_alloc_free(alloc, tok->norms);
    for (size_t i = 0; i < tok->n_steps; i++) {
        cti_step_deinit(&tok->steps[i], alloc);
    }
    ct_alloc_free(alloc, tok->steps);
    for (size_t i = 0; i < tok->n_decs; i++) {
        cti_dec_deinit(&tok->decs[i], alloc);
    }
    ct_alloc_free(alloc, tok->decs);
    for (size_t i = 0; i < tok->n_added; i++) {
        ct_alloc_free(alloc, tok->added[i].content);
    }
    ct_alloc_free(alloc, tok->added);
    for (int i = 0; i < 2; i++) {
        cti_trie_deinit(&tok->raw[i], alloc);
        cti_trie_deinit(&tok->normed[i], alloc);
    }
    ct_alloc_free(alloc, tok->template_before);
    ct_alloc_free(alloc, tok->template_after);
    for (int i = 0; i < CTI_PLACE_COUNT; i++) {
        cti_str_deinit(&tok->decoded[i].bytes);
        ct_alloc_free(alloc, tok->decoded[i].at);
    }
    ct_alloc_free(alloc, tok->special);
    cti_str_deinit(&tok->notes);
    cti_str_deinit(&tok->warnings);
    cti_str_deinit(&tok->pipeline);
    ct_alloc_free(alloc, tok);
    *tokenizer = NULL;
}

static ct_tokenizer *tokenizer_new(const ct_alloc *alloc, const ct_tokenizer_options *options, ct_err *err)
{
    ct_tokenizer *tok = CT_NEW(alloc, ct_tokenizer, err);
    if (tok == NULL) {
        return NULL;
    }
    tok->alloc = alloc;
    tok->options = options ? *options : (ct_tokenizer_options){0};
    cti_vocab_init(&tok->vocab, alloc);
    tok->bos_id = tok->eos_id = tok->pad_id = tok->unk_id = -1;
    tok->notes.alloc = tok->warnings.alloc = tok->pipeline.alloc = alloc;
    if (cti_merges_init(&tok->merges, alloc, err) != CT_OK) {
        ct_tokenizer_destroy(&tok);
    }
    return tok;
}

/* After everything is parsed. */
static ct_status tokenizer_finish(ct_tokenizer *tok, ct_err *err)
{
    if (tok->vocab.n_ids == 0) {
        return CT_FAIL(err, CT_ERR_FORMAT, "the vocabulary is empty");
    }
    cti_scratch scratch;
    ct_status st = cti_scratch_init(&scratch, tok->alloc, false, err);
    st = st == CT_OK ? cti_added_finish(tok, &scratch, err) : st;
    st = st == CT_OK ? cti_decode_prepare(tok, &scratch, err) : st;
    cti_scratch_deinit(&scratch);
    CT_TRY(st);
    CT_TRY(cti_encode_prepare(tok, err));
    CT_TRY(cti_str_check(&tok->notes, err));
    return cti_str_check(&tok->warnings, err);
}

static ct_status parse_config_text(ct_tokenizer *tok, const char *config, size_t size, const char *name, ct_err *err)
{
    json_t *json = NULL;
    CT_TRY(cti_json_parse(config, size, name, &json, err));
    const ct_status st = cti_tokenizer_config_parse(tok, json, name, err);
    json_decref(json);
    return st;
}

ct_status ct_tokenizer_from_json(const ct_alloc *alloc, const char *json, size_t json_size, const char *config,
                                 size_t config_size, const char *name, const ct_tokenizer_options *options,
                                 ct_tokenizer **out_tokenizer, ct_err *err)
{
    ct_tokenizer *tok = tokenizer_new(alloc, options, err);
    json_t *root = NULL;
    ct_status st = tok ? cti_json_parse(json, json_size, name, &root, err) : CT_ERR_MEMORY;
    st = st == CT_OK ? cti_tokenizer_parse(tok, root, name, err) : st;
    json_decref(root);
    st = st == CT_OK && config ? parse_config_text(tok, config, config_size, "tokenizer_config.json", err) : st;
    st = st == CT_OK ? tokenizer_finish(tok, err) : st;
    if (st != CT_OK) {
        ct_tokenizer_destroy(&tok);
        return st;
    }
    *out_tokenizer = tok;
    return CT_OK;
}

/* --- folders --- */

static ct_status read_in(const ct_alloc *alloc, const char *folder, const char *file, char **out_path, char **out_data,
                         size_t *out_size, ct_err *err)
{
    *out_path = cti_path_join(alloc, folder, file, err);
    if (*out_path == NULL) {
        return CT_ERR_MEMORY;
    }
    return cti_file_read(alloc, *out_path, MAX_FILE_BYTES, out_data, out_size, err);
}

static bool has_file(const ct_alloc *alloc, const char *folder, const char *file)
{
    char *path = cti_path_join(alloc, folder, file, NULL);
    const bool has = path != NULL && cti_path_exists(path);
    ct_alloc_free(alloc, path);
    return has;
}

/* Lines of merges.txt: "left right". Blank lines are skipped, and lines that begin with '#' unless they are a merge of two
 * tokens ("# #" is one in GPT-2's file). */
static ct_status parse_merge_lines(ct_tokenizer *tok, const char *data, size_t size, const char *path, ct_err *err)
{
    const char *p = data, *end = data + size;
    int64_t rank = 0, number = 0;
    while (p < end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        const char *stop = newline ? newline : end;
        size_t n = (size_t)(stop - p);
        n -= n > 0 && p[n - 1] == '\r';
        number++;
        const char *blank = memchr(p, ' ', n);
        const size_t left = blank ? (size_t)(blank - p) : n;
        const bool is_pair = blank != NULL && left > 0 && left + 1 < n && memchr(blank + 1, ' ', n - left - 1) == NULL;
        const bool is_comment = n > 0 && p[0] == '#' && (!is_pair || cti_vocab_find(&tok->vocab, p, left) < 0);
        if (n > 0 && !is_comment) {
            char where[512];
            (void)snprintf(where, sizeof where, "'%.400s' line %lld", path, (long long)number);
            if (!is_pair) {
                return CT_FAIL(err, CT_ERR_FORMAT, "%s: not two tokens with a blank between them", where);
            }
            CT_TRY(cti_merge_add(tok, p, left, blank + 1, n - left - 1, rank++, where, err));
        }
        p = stop + (newline != NULL);
    }
    return CT_OK;
}

static ct_status parse_merges_file(ct_tokenizer *tok, const char *folder, ct_err *err)
{
    char *path = NULL, *data = NULL;
    size_t size = 0;
    ct_status st = read_in(tok->alloc, folder, "merges.txt", &path, &data, &size, err);
    st = st == CT_OK ? parse_merge_lines(tok, data, size, path, err) : st;
    ct_alloc_free(tok->alloc, path);
    ct_alloc_free(tok->alloc, data);
    return st;
}

/* The vocabulary of vocab.json or vocab.txt. */
static ct_status open_vocab(ct_tokenizer *tok, const char *folder, const char *file, ct_err *err)
{
    char *path = NULL, *data = NULL;
    size_t size = 0;
    json_t *json = NULL;
    ct_status st = read_in(tok->alloc, folder, file, &path, &data, &size, err);
    if (st == CT_OK && cti_ends_with(file, ".json")) {
        st = cti_json_parse(data, size, path, &json, err);
        st = st == CT_OK ? cti_parse_vocab(tok, json, path, err) : st;
    } else if (st == CT_OK) {
        st = cti_vocab_txt_parse(tok, data, size, path, err);
    }
    json_decref(json);
    ct_alloc_free(tok->alloc, path);
    ct_alloc_free(tok->alloc, data);
    cti_str_printf(&tok->notes, "Loading vocabulary from %s\n", file);
    return st;
}

/* A vocabulary and merges.txt: GPT-2's byte-level BPE. */
static ct_status open_vocab_and_merges(ct_tokenizer *tok, const char *folder, const char *file, ct_err *err)
{
    CT_TRY(open_vocab(tok, folder, file, err));
    CT_TRY(parse_merges_file(tok, folder, err));
    CT_TRY(cti_model_finish(tok, err));
    CT_TRY(cti_add_byte_level(tok, false, true, err));
    CT_TRY(cti_add_decoder_byte_level(tok, err));
    cti_str_printf(&tok->notes, "Loading BPE tokenizer from %s + merges.txt\n", file);
    cti_str_add(&tok->pipeline, "pre_tokenizer: ByteLevel (GPT-2's)\ndecoder: ByteLevel\n");
    return CT_OK;
}

/* A vocabulary alone: each text is one word, as in TorchTitan, which gives it no pre-tokenizer. */
static ct_status open_words(ct_tokenizer *tok, const char *folder, const char *file, ct_err *err)
{
    CT_TRY(open_vocab(tok, folder, file, err));
    tok->model = CTI_MODEL_WORDLEVEL;
    tok->unk_id = cti_vocab_find(&tok->vocab, "[UNK]", 5);
    cti_str_printf(&tok->notes, "Loading WordLevel tokenizer from %s\n", file);
    cti_str_printf(&tok->warnings, "'%s' has %s without merges.txt: a whole text is one word, which the vocabulary holds or not\n", folder,
                   file);
    cti_str_add(&tok->pipeline, "pre_tokenizer: none\ndecoder: none\n");
    return CT_OK;
}

/* Whether tokenizer_config.json says which tokens are added, so that Llama 3's are not. */
static ct_status config_lists_tokens(ct_tokenizer *tok, const char *folder, bool *out, ct_err *err)
{
    *out = false;
    if (!has_file(tok->alloc, folder, "tokenizer_config.json")) {
        return CT_OK;
    }
    char *path = cti_path_join(tok->alloc, folder, "tokenizer_config.json", err);
    json_t *json = NULL;
    const ct_status st = path ? cti_json_read_file(tok->alloc, path, &json, err) : CT_ERR_MEMORY;
    *out = json_object_size(json_object_get(json, "added_tokens_decoder")) > 0;
    json_decref(json);
    ct_alloc_free(tok->alloc, path);
    return st;
}

static ct_status open_tiktoken(ct_tokenizer *tok, const char *folder, ct_err *err)
{
    bool listed = false;
    char *path = NULL, *data = NULL;
    size_t size = 0;
    CT_TRY(config_lists_tokens(tok, folder, &listed, err));
    ct_status st = read_in(tok->alloc, folder, "tokenizer.model", &path, &data, &size, err);
    st = st == CT_OK ? cti_tiktoken_parse(tok, data, size, !listed, path, err) : st;
    ct_alloc_free(tok->alloc, path);
    ct_alloc_free(tok->alloc, data);
    cti_str_printf(&tok->notes, "Loading tiktoken ranks from tokenizer.model, with Llama 3's split pattern%s\n",
                   listed ? "" : " and special tokens");
    cti_str_add(&tok->pipeline, "pre_tokenizer: Split (Llama 3's) ByteLevel\ndecoder: ByteLevel\n");
    return st;
}

static ct_status open_tokenizer_json(ct_tokenizer *tok, const char *folder, ct_err *err)
{
    char *path = cti_path_join(tok->alloc, folder, "tokenizer.json", err);
    if (path == NULL) {
        return CT_ERR_MEMORY;
    }
    json_t *root = NULL;
    ct_status st = cti_json_read_file(tok->alloc, path, &root, err);
    st = st == CT_OK ? cti_tokenizer_parse(tok, root, path, err) : st;
    json_decref(root);
    ct_alloc_free(tok->alloc, path);
    cti_str_add(&tok->notes, "Loading tokenizer from tokenizer.json\n");
    return st;
}

static ct_status open_special_map(ct_tokenizer *tok, const char *folder, ct_err *err)
{
    if (!has_file(tok->alloc, folder, "special_tokens_map.json") || (tok->bos_id >= 0 && tok->eos_id >= 0 && tok->pad_id >= 0)) {
        return CT_OK;
    }
    char *path = cti_path_join(tok->alloc, folder, "special_tokens_map.json", err);
    json_t *json = NULL;
    ct_status st = path ? cti_json_read_file(tok->alloc, path, &json, err) : CT_ERR_MEMORY;
    st = st == CT_OK ? cti_special_map_parse(tok, json, path, err) : st;
    json_decref(json);
    ct_alloc_free(tok->alloc, path);
    return st;
}

static ct_status open_config(ct_tokenizer *tok, const char *folder, ct_err *err)
{
    const bool has_config = has_file(tok->alloc, folder, "tokenizer_config.json");
    char *path = NULL, *data = NULL;
    size_t size = 0;
    ct_status st = has_config ? read_in(tok->alloc, folder, "tokenizer_config.json", &path, &data, &size, err) : CT_OK;
    st = st == CT_OK && has_config ? parse_config_text(tok, data, size, path, err) : st;
    ct_alloc_free(tok->alloc, path);
    ct_alloc_free(tok->alloc, data);
    CT_TRY(st);
    CT_TRY(open_special_map(tok, folder, err));
    tok->has_chat_template |= has_file(tok->alloc, folder, "chat_template.jinja");
    if (!has_config && tok->bos_id < 0 && tok->eos_id < 0) {
        cti_str_printf(&tok->warnings,
                       "'%s' has no tokenizer_config.json: there is no BOS, EOS or PAD token, and documents are not marked off\n",
                       folder);
    } else if (tok->eos_id < 0) {
        cti_str_printf(&tok->warnings, "tokenizer_config.json of '%s' names no eos_token: ends of documents are not marked\n",
                       folder);
    }
    return CT_OK;
}

static ct_status open_folder(ct_tokenizer *tok, const char *folder, ct_err *err)
{
    static const char looked_for[] = "looked for tokenizer.json; vocab.json or vocab.txt, with or without merges.txt; tokenizer.model";
    if (!cti_path_exists(folder)) {
        return CT_FAIL(err, CT_ERR_NOT_FOUND, "tokenizer folder '%s' does not exist (%s in it)", folder, looked_for);
    }
    if (!cti_path_is_dir(folder)) {
        return CT_FAIL(err, CT_ERR_NOT_FOUND, "'%s' is a file; a tokenizer is a folder (%s in it)", folder, looked_for);
    }
    const char *vocab = has_file(tok->alloc, folder, "vocab.json")  ? "vocab.json"
                        : has_file(tok->alloc, folder, "vocab.txt") ? "vocab.txt"
                                                                    : NULL;
    const bool has_merges = has_file(tok->alloc, folder, "merges.txt");
    if (has_file(tok->alloc, folder, "tokenizer.json")) {
        CT_TRY(open_tokenizer_json(tok, folder, err));
    } else if (vocab != NULL) {
        CT_TRY(has_merges ? open_vocab_and_merges(tok, folder, vocab, err) : open_words(tok, folder, vocab, err));
    } else if (has_file(tok->alloc, folder, "tokenizer.model")) {
        CT_TRY(open_tiktoken(tok, folder, err));
    } else {
        return CT_FAIL(err, CT_ERR_NOT_FOUND, "no tokenizer in '%s': %s%s", folder, looked_for,
                       has_merges                                                  ? "; there is merges.txt, but no vocabulary"
                       : has_file(tok->alloc, folder, "original/tokenizer.model") ? "; there is original/tokenizer.model: name that folder"
                                                                                   : "");
    }
    return open_config(tok, folder, err);
}

ct_status ct_tokenizer_open(const ct_alloc *alloc, const char *folder, const ct_tokenizer_options *options,
                            ct_tokenizer **out_tokenizer, ct_err *err)
{
    ct_tokenizer *tok = tokenizer_new(alloc, options, err);
    ct_status st = tok ? open_folder(tok, folder, err) : CT_ERR_MEMORY;
    if (st == CT_OK) {
        st = tokenizer_finish(tok, err);
        if (st != CT_OK) {
            ct_err_prefix(err, "'%s'", folder);
        }
    }
    if (st != CT_OK) {
        ct_tokenizer_destroy(&tok);
        return st;
    }
    *out_tokenizer = tok;
    return CT_OK;
}

/* --- questions --- */

int32_t ct_tokenizer_vocab_size(const ct_tokenizer *tok)
{
    return tok->vocab.n_ids;
}

int32_t ct_tokenizer_n_tokens(const ct_tokenizer *tok)
{
    return tok->vocab.n_tokens;
}

int32_t ct_tokenizer_bos_id(const ct_tokenizer *tok)
{
    return tok->bos_id;
}

int32_t ct_tokenizer_eos_id(const ct_tokenizer *tok)
{
    return tok->eos_id;
}

int32_t ct_tokenizer_pad_id(const ct_tokenizer *tok)
{
    return tok->pad_id;
}

unsigned ct_tokenizer_default_flags(const ct_tokenizer *tok)
{
    return tok->default_flags;
}

int32_t ct_tokenizer_id_of(const ct_tokenizer *tok, const char *token, size_t size)
{
    return cti_vocab_find(&tok->vocab, token, size);
}

const char *ct_tokenizer_token_of(const ct_tokenizer *tok, int32_t id, size_t *out_size)
{
    if (!cti_vocab_has(&tok->vocab, id)) {
        return NULL;
    }
    *out_size = (size_t)tok->vocab.tokens[id].size;
    return cti_vocab_text(&tok->vocab, id);
}

bool ct_tokenizer_is_special(const ct_tokenizer *tok, int32_t id)
{
    return cti_vocab_has(&tok->vocab, id) && tok->special[id];
}

int32_t ct_tokenizer_added_id(const ct_tokenizer *tok, int32_t i)
{
    return i >= 0 && (size_t)i < tok->n_added ? tok->added[i].id : -1;
}

int32_t ct_tokenizer_n_merges(const ct_tokenizer *tok)
{
    return tok->n_merges;
}

const char *ct_tokenizer_notes(const ct_tokenizer *tok)
{
    return cti_str_text(&tok->notes);
}

const char *ct_tokenizer_warnings(const ct_tokenizer *tok)
{
    return cti_str_text(&tok->warnings);
}

const char *ct_tokenizer_pipeline(const ct_tokenizer *tok)
{
    return cti_str_text(&tok->pipeline);
}

const char *ct_tokenizer_model_kind(const ct_tokenizer *tok)
{
    static const char *const names[CTI_MODEL_COUNT] = {"BPE", "WordPiece", "WordLevel", "Unigram"};
    return names[tok->model];
}

bool ct_tokenizer_has_chat_template(const ct_tokenizer *tok)
{
    return tok->has_chat_template;
}
