/* SPDX-License-Identifier: Apache-2.0 */
/* What goes into the trainer (text and JSONL files, folders) and what comes out (a Hugging Face folder). */
#include "tokenizer/tokenizer_internal.h"
#include "tokenizer/tokenizer_train_internal.h"

/* --- out --- */

static json_t *vocab_json(const ct_tokenizer_trainer *t)
{
    json_t *vocab = json_object();
    for (int32_t id = 0; id < t->vocab.n_ids; id++) {
        cti_str key = {.alloc = t->alloc};
        cti_str_add_n(&key, cti_vocab_text(&t->vocab, id), (size_t)t->vocab.tokens[id].size);
        const int failed = json_object_set_new_nocheck(vocab, cti_str_text(&key), json_integer(id));
        cti_str_deinit(&key);
        if (failed) {
            json_decref(vocab);
            return NULL;
        }
    }
    return vocab;
}

static json_t *token_json(const ct_tokenizer_trainer *t, int32_t id)
{
    return json_stringn_nocheck(cti_vocab_text(&t->vocab, id), (size_t)t->vocab.tokens[id].size);
}

static json_t *tokenizer_json(const ct_tokenizer_trainer *t)
{
    json_t *added = json_array(), *merges = json_array();
    for (size_t i = 0; i < t->n_specials; i++) {
        (void)json_array_append_new(added, json_pack("{s:i,s:s,s:b,s:b,s:b,s:b,s:b}", "id", (int)i, "content", t->specials[i],
                                                     "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized", 0,
                                                     "special", 1));
    }
    for (size_t i = 0; i < t->n_merges; i++) {
        (void)json_array_append_new(
            merges, json_pack("[o,o]", token_json(t, t->merges[i].left), token_json(t, t->merges[i].right)));
    }
    if (json_array_size(added) != t->n_specials || json_array_size(merges) != t->n_merges) {
        json_decref(added);
        json_decref(merges);
        return NULL;
    }
    json_t *split = json_pack("{s:s,s:{s:s},s:s,s:b}", "type", "Split", "pattern", "Regex", t->pattern, "behavior", "Isolated",
                              "invert", 0);
    json_t *bytes = json_pack("{s:s,s:b,s:b,s:b}", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 1,
                              "use_regex", 0);
    json_t *decoder = json_pack("{s:s,s:b,s:b,s:b}", "type", "ByteLevel", "add_prefix_space", 1, "trim_offsets", 1,
                                "use_regex", 1);
    json_t *model = json_pack("{s:s,s:n,s:n,s:n,s:n,s:b,s:b,s:b,s:o,s:o}", "type", "BPE", "dropout", "unk_token",
                              "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0, "byte_fallback", 0,
                              "ignore_merges", 0, "vocab", vocab_json(t), "merges", merges);
    return json_pack("{s:s,s:n,s:n,s:o,s:n,s:{s:s,s:[o,o]},s:n,s:o,s:o}", "version", "1.0", "truncation", "padding",
                     "added_tokens", added, "normalizer", "pre_tokenizer", "type", "Sequence", "pretokenizers", split,
                     bytes, "post_processor", "decoder", decoder, "model", model);
}

static json_t *config_json(const ct_tokenizer_trainer *t)
{
    static const char *const keys[3] = {"bos_token", "eos_token", "pad_token"};
    json_t *config = json_pack("{s:s,s:b}", "tokenizer_class", "PreTrainedTokenizerFast", "clean_up_tokenization_spaces", 0);
    for (int i = 0; i < 3 && config != NULL; i++) {
        if (t->roles[i] != NULL && json_object_set_new(config, keys[i], json_string(t->roles[i])) != 0) {
            json_decref(config);
            return NULL;
        }
    }
    return config;
}

ct_status ct_tokenizer_trainer_dump(const ct_tokenizer_trainer *t, char **out_tokenizer_json, char **out_config_json,
                                    ct_err *err)
{
    if (!t->trained || t->vocab.n_ids < t->vocab_size) {
        return CT_FAIL(err, CT_ERR_STATE, "there is no trained vocabulary to write");
    }
    json_t *tokenizer = tokenizer_json(t), *config = config_json(t);
    char *text = NULL, *config_text = NULL;
    ct_status st = CT_OK;
    if (tokenizer == NULL || config == NULL) {
        st = CT_FAIL(err, CT_ERR_MEMORY, "out of memory for tokenizer.json");
    }
    if (st == CT_OK) {
        st = cti_json_dump(t->alloc, tokenizer, 2, &text, err);
    }
    if (st == CT_OK) {
        st = cti_json_dump(t->alloc, config, 2, &config_text, err);
    }
    json_decref(tokenizer);
    json_decref(config);
    if (st != CT_OK) {
        ct_alloc_free(t->alloc, text);
        return st;
    }
    *out_tokenizer_json = text;
    *out_config_json = config_text;
    return CT_OK;
}

ct_status ct_tokenizer_trainer_write(const ct_tokenizer_trainer *t, const char *folder, ct_err *err)
{
    char *texts[2] = {NULL, NULL};
    CT_TRY(ct_tokenizer_trainer_dump(t, &texts[0], &texts[1], err));
    static const char *const names[2] = {"tokenizer.json", "tokenizer_config.json"};
    ct_status st = cti_make_dirs(folder, err);
    for (int i = 0; i < 2 && st == CT_OK; i++) {
        char *path = cti_path_join(t->alloc, folder, names[i], err);
        st = path ? cti_file_write_atomic(path, texts[i], strlen(texts[i]), err) : CT_ERR_MEMORY;
        ct_alloc_free(t->alloc, path);
    }
    ct_alloc_free(t->alloc, texts[0]);
    ct_alloc_free(t->alloc, texts[1]);
    return st;
}

/* --- in --- */

static ct_status add_line(ct_tokenizer_trainer *t, const char *path, int64_t line_number, const char *line, size_t size,
                          const char *field, ct_err *err)
{
    json_t *json = NULL;
    ct_status st = cti_json_parse(line, size, "document", &json, err);
    const json_t *text = st == CT_OK ? json_object_get(json, field) : NULL;
    if (st == CT_OK && !json_is_object(json)) {
        st = CT_FAIL(err, CT_ERR_DATA, "a document must be a JSON object");
    } else if (st == CT_OK && !json_is_string(text)) {
        st = CT_FAIL(err, CT_ERR_DATA, "field '%s' %s", field, text ? "is not a string" : "is missing");
    }
    if (st == CT_OK) {
        st = ct_tokenizer_trainer_add(t, json_string_value(text), json_string_length(text), err);
    }
    if (st != CT_OK) {
        ct_err_prefix(err, "'%s' line %lld", path, (long long)line_number);
    }
    json_decref(json);
    return st;
}

static ct_status add_jsonl(ct_tokenizer_trainer *t, const char *path, const char *data, size_t size, const char *field,
                           ct_err *err)
{
    const char *p = data, *end = data + size;
    if (size >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0) {
        p += 3;
    }
    for (int64_t number = 1; p < end; number++) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        const char *stop = newline ? newline : end;
        size_t n = (size_t)(stop - p);
        while (n > 0 && (p[n - 1] == '\r' || p[n - 1] == ' ' || p[n - 1] == '\t')) {
            n--;
        }
        if (n > 0) {
            CT_TRY(add_line(t, path, number, p, n, field, err));
        }
        p = stop + (newline != NULL);
    }
    return CT_OK;
}

static ct_status add_file(ct_tokenizer_trainer *t, const char *path, const char *field, ct_err *err)
{
    const bool is_jsonl = cti_ends_with(path, ".jsonl");
    if (!is_jsonl && !cti_ends_with(path, ".txt")) {
        return CT_FAIL(err, CT_ERR_USAGE, "'%s' is neither .txt nor .jsonl nor a folder of them", path);
    }
    cti_file_map map;
    CT_TRY(cti_file_map_open(path, &map, err));
    const ct_status st = is_jsonl ? add_jsonl(t, path, (const char *)map.data, map.size, field, err)
                                  : ct_tokenizer_trainer_add(t, map.data, map.size, err);
    cti_file_map_close(&map);
    return st;
}

/* A stack of paths that are still to be visited, deepest last. */
typedef struct path_stack {
    const ct_alloc *alloc;
    char **paths; /* owns */
    size_t n, cap;
} path_stack;

static ct_status stack_push(path_stack *s, char *path /* taken */, ct_err *err)
{
    if (path == NULL) {
        return CT_ERR_MEMORY;
    }
    if (s->n == s->cap) {
        const size_t cap = s->cap ? s->cap * 2 : 16;
        char **paths = ct_alloc_resize(s->alloc, s->paths, cap, sizeof *paths, err);
        if (paths == NULL) {
            ct_alloc_free(s->alloc, path);
            return CT_ERR_MEMORY;
        }
        s->paths = paths;
        s->cap = cap;
    }
    s->paths[s->n++] = path;
    return CT_OK;
}

static ct_status push_folder(path_stack *s, const char *folder, ct_err *err)
{
    cti_names names = {0};
    CT_TRY(cti_list_dir(s->alloc, folder, &names, err));
    ct_status st = CT_OK;
    for (size_t i = names.n; i-- > 0 && st == CT_OK;) { /* backwards, so that the first name is visited first */
        char *path = cti_path_join(s->alloc, folder, names.names[i], err);
        if (path != NULL && !cti_path_is_dir(path) && !cti_ends_with(path, ".txt") && !cti_ends_with(path, ".jsonl")) {
            ct_alloc_free(s->alloc, path);
            continue;
        }
        st = stack_push(s, path, err);
    }
    cti_names_free(s->alloc, &names);
    return st;
}

static ct_status add_path(ct_tokenizer_trainer *t, const char *given, const char *field, ct_err *err)
{
    path_stack stack = {.alloc = t->alloc};
    int64_t n_files = 0, n_folders = 0;
    ct_status st = stack_push(&stack, ct_alloc_strdup(t->alloc, given, err), err);
    while (stack.n > 0 && st == CT_OK) {
        char *path = stack.paths[--stack.n];
        if (!cti_path_exists(path)) {
            st = CT_FAIL(err, CT_ERR_NOT_FOUND, "'%s' does not exist", path);
        } else if (!cti_path_is_dir(path)) {
            st = add_file(t, path, field, err);
            n_files++;
        } else if (++n_folders > 100000) {
            st = CT_FAIL(err, CT_ERR_DATA, "'%s' holds more than 100000 folders (a link that leads back?)", given);
        } else {
            st = push_folder(&stack, path, err);
        }
        ct_alloc_free(t->alloc, path);
    }
    while (stack.n > 0) {
        ct_alloc_free(t->alloc, stack.paths[--stack.n]);
    }
    ct_alloc_free(t->alloc, stack.paths);
    if (st == CT_OK && n_files == 0) {
        st = CT_FAIL(err, CT_ERR_NOT_FOUND, "'%s' holds no .txt and no .jsonl file", given);
    }
    return st;
}

ct_status ct_tokenizer_train(const ct_alloc *alloc, const ct_tokenizer_train_config *config, const char *const *paths,
                             size_t n_paths, const char *field, const char *folder,
                             ct_tokenizer_train_counts *out_counts, ct_err *err)
{
    ct_tokenizer_trainer *t = NULL;
    CT_TRY(ct_tokenizer_trainer_create(alloc, config, &t, err));
    ct_status st = CT_OK;
    for (size_t i = 0; i < n_paths && st == CT_OK; i++) {
        st = add_path(t, paths[i], field ? field : "text", err);
    }
    if (st == CT_OK) {
        st = ct_tokenizer_trainer_train(t, err);
    }
    if (st == CT_OK) {
        st = ct_tokenizer_trainer_write(t, folder, err);
    }
    if (st == CT_OK && out_counts != NULL) {
        *out_counts = ct_tokenizer_trainer_counts(t);
    }
    ct_tokenizer_trainer_destroy(&t);
    return st;
}
