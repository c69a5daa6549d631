/* SPDX-License-Identifier: Apache-2.0 */
/* The components of tokenizer.json: normalizer, pre-tokenizer, post-processor, decoder. Each becomes steps; a component, a
 * member or a value that is not known here is refused by name. */
#include "tokenizer/tokenizer_component.h"

enum { MAX_DEPTH = 8 }; /* of Sequences in Sequences */

static ct_status parse_one(ct_tokenizer *tok, const json_t *json, const char *what, const char *name,
                           const cti_component_row *rows, ct_err *err)
{
    const char *type = json_string_value(json_object_get(json, "type"));
    if (type == NULL) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: %s has no type", name, what);
    }
    char where[512];
    (void)snprintf(where, sizeof where, "%.350s: %s %.100s", name, what, type);
    for (; rows->type != NULL; rows++) {
        if (strcmp(rows->type, type) == 0) {
            CT_TRY(cti_check_keys(json, rows->keys, where, err));
            cti_str_printf(&tok->pipeline, " %s", type);
            return rows->parse(&(cti_component){.tok = tok, .json = json, .type = type, .where = where}, err);
        }
    }
    return CT_FAIL(err, CT_ERR_UNSUPPORTED, "%s is not implemented", where);
}

static ct_status parse_tree(ct_tokenizer *tok, const json_t *json, const char *what, const char *list, const char *name,
                            const cti_component_row *rows, int depth, ct_err *err)
{
    if (json == NULL || json_is_null(json)) {
        return CT_OK;
    }
    if (!json_is_object(json)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: %s must be an object or null", name, what);
    }
    if (!cti_str_eq(json_string_value(json_object_get(json, "type")), "Sequence")) {
        return parse_one(tok, json, what, name, rows, err);
    }
    const json_t *members = json_object_get(json, list);
    if (!json_is_array(members) || depth == 0) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: %s Sequence %s", name, what,
                       depth == 0 ? "is nested too deep" : "has no list of members");
    }
    for (size_t i = 0; i < json_array_size(members); i++) {
        if (json_is_null(json_array_get(members, i))) {
            return CT_FAIL(err, CT_ERR_FORMAT, "%s: %s Sequence holds null", name, what);
        }
        CT_TRY(parse_tree(tok, json_array_get(members, i), what, list, name, rows, depth - 1, err));
    }
    return CT_OK;
}

ct_status cti_parse_components(ct_tokenizer *tok, const json_t *json, const char *what, const char *list, const char *name,
                               const cti_component_row *rows, ct_err *err)
{
    cti_str *line = &tok->pipeline;
    cti_str_printf(line, "%s:", what);
    CT_TRY(parse_tree(tok, json, what, list, name, rows, MAX_DEPTH, err));
    cti_str_add(line, json == NULL || json_is_null(json) ? " none\n" : "\n");
    return cti_str_check(line, err);
}

ct_status cti_get_string(const cti_component *c, const char *key, const char **out, size_t *out_size, ct_err *err)
{
    const json_t *value = json_object_get(c->json, key);
    if (!json_is_string(value)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: '%s' must be a string", c->where, key);
    }
    *out = json_string_value(value);
    *out_size = json_string_length(value);
    return CT_OK;
}

char *cti_copy_bytes(const ct_alloc *alloc, const char *bytes, size_t size, ct_err *err)
{
    char *copy = CT_NEW_ARRAY(alloc, char, size + 1, err);
    if (copy != NULL) {
        memcpy(copy, bytes, size);
    }
    return copy;
}

ct_status cti_get_pattern(const cti_component *c, cti_pattern *out, ct_err *err)
{
    const json_t *pattern = json_object_get(c->json, "pattern");
    const json_t *string = json_object_get(pattern, "String"), *regex = json_object_get(pattern, "Regex");
    if (json_object_size(pattern) != 1 || !(json_is_string(string) || json_is_string(regex))) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: 'pattern' must be {\"String\": ...} or {\"Regex\": ...}", c->where);
    }
    if (regex != NULL || json_string_length(string) == 0) { /* an empty string matches everywhere, as an empty pattern does */
        regex = regex ? regex : string;
        return cti_regex_create(c->tok->alloc, json_string_value(regex), json_string_length(regex), c->where, &out->regex, err);
    }
    out->literal_size = json_string_length(string);
    out->literal = cti_copy_bytes(c->tok->alloc, json_string_value(string), out->literal_size, err);
    return out->literal ? CT_OK : CT_ERR_MEMORY;
}

ct_status cti_get_character(const cti_component *c, const char *key, char out[5], ct_err *err)
{
    const char *text = NULL;
    size_t size = 0;
    CT_TRY(cti_get_string(c, key, &text, &size, err));
    const unsigned char *p = (const unsigned char *)text;
    if (size == 0 || (size_t)cti_utf8_len(p, p + size) != size || *text == '\0') {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: '%s' must be one character", c->where, key);
    }
    memcpy(out, text, size);
    out[size] = '\0';
    return CT_OK;
}

ct_status cti_get_scheme(const cti_component *c, cti_scheme *out, ct_err *err)
{
    static const char *const names[CTI_SCHEME_COUNT] = {"never", "first", "always"};
    const json_t *scheme = json_object_get(c->json, "prepend_scheme");
    bool prefix = true;
    CT_TRY(cti_get_bool(c->json, "add_prefix_space", true, c->where, &prefix, err));
    *out = prefix ? CTI_SCHEME_ALWAYS : CTI_SCHEME_NEVER;
    if (scheme == NULL || json_is_null(scheme)) {
        return CT_OK;
    }
    for (int i = 0; i < CTI_SCHEME_COUNT; i++) {
        if (cti_str_eq(names[i], json_string_value(scheme))) {
            *out = (cti_scheme)i;
            return CT_OK;
        }
    }
    return CT_FAIL(err, CT_ERR_UNSUPPORTED, "%s: prepend_scheme must be always, first or never", c->where);
}

/* --- normalizer --- */

/* Takes what norm owns, also on failure. */
static ct_status add_norm(ct_tokenizer *tok, cti_norm norm, ct_err *err)
{
    cti_norm *norms = ct_alloc_resize(tok->alloc, tok->norms, tok->n_norms + 1, sizeof *norms, err);
    if (norms == NULL) {
        cti_norm_deinit(&norm, tok->alloc);
        return CT_ERR_MEMORY;
    }
    tok->norms = norms;
    norms[tok->n_norms++] = norm;
    return CT_OK;
}

static ct_status norm_simple(const cti_component *c, ct_err *err)
{
    static const struct {
        const char *type;
        cti_norm_kind kind;
    } rows[] = {{"NFC", CTI_NORM_NFC},
                {"NFD", CTI_NORM_NFD},
                {"NFKC", CTI_NORM_NFKC},
                {"NFKD", CTI_NORM_NFKD},
                {"Lowercase", CTI_NORM_LOWERCASE},
                {"StripAccents", CTI_NORM_STRIP_ACCENTS},
                {"Nmt", CTI_NORM_NMT},
                {"ByteLevel", CTI_NORM_BYTE_LEVEL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].type, c->type) == 0) {
            return add_norm(c->tok, (cti_norm){.kind = rows[i].kind}, err);
        }
    }
    return CT_FAIL(err, CT_ERR_UNSUPPORTED, "%s is not implemented", c->where);
}

static ct_status norm_strip(const cti_component *c, ct_err *err)
{
    cti_norm norm = {.kind = CTI_NORM_STRIP};
    CT_TRY(cti_get_bool(c->json, "strip_left", true, c->where, &norm.left, err));
    CT_TRY(cti_get_bool(c->json, "strip_right", true, c->where, &norm.right, err));
    return add_norm(c->tok, norm, err);
}

/* strip_accents null: as lowercase. */
static ct_status norm_bert(const cti_component *c, ct_err *err)
{
    bool clean = true, chinese = true, lower = true, accents = true;
    CT_TRY(cti_get_bool(c->json, "clean_text", true, c->where, &clean, err));
    CT_TRY(cti_get_bool(c->json, "handle_chinese_chars", true, c->where, &chinese, err));
    CT_TRY(cti_get_bool(c->json, "lowercase", true, c->where, &lower, err));
    CT_TRY(cti_get_bool(c->json, "strip_accents", lower, c->where, &accents, err));
    const struct {
        bool wanted;
        cti_norm_kind kind;
    } parts[] = {{clean, CTI_NORM_CLEAN},     {chinese, CTI_NORM_CHINESE},  {accents, CTI_NORM_NFD},
                 {accents, CTI_NORM_NONSPACING}, {lower, CTI_NORM_LOWERCASE}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].wanted) {
            CT_TRY(add_norm(c->tok, (cti_norm){.kind = parts[i].kind}, err));
        }
    }
    return CT_OK;
}

static ct_status norm_precompiled(const cti_component *c, ct_err *err)
{
    cti_norm norm = {.kind = CTI_NORM_CHARSMAP};
    const char *base64 = NULL;
    size_t size = 0;
    CT_TRY(cti_get_string(c, "precompiled_charsmap", &base64, &size, err));
    CT_TRY(cti_charsmap_create(c->tok->alloc, base64, size, c->where, &norm.charsmap, err));
    return add_norm(c->tok, norm, err);
}

static ct_status norm_content(const cti_component *c, const char *key, cti_norm norm, ct_err *err)
{
    const char *content = NULL;
    ct_status st = cti_get_string(c, key, &content, &norm.content_size, err);
    if (st == CT_OK) {
        norm.content = cti_copy_bytes(c->tok->alloc, content, norm.content_size, err);
        st = norm.content ? CT_OK : CT_ERR_MEMORY;
    }
    if (st != CT_OK) {
        cti_norm_deinit(&norm, c->tok->alloc);
        return st;
    }
    return add_norm(c->tok, norm, err);
}

static ct_status norm_replace(const cti_component *c, ct_err *err)
{
    cti_norm norm = {.kind = CTI_NORM_REPLACE};
    CT_TRY(cti_get_pattern(c, &norm.pattern, err));
    return norm_content(c, "content", norm, err);
}

static ct_status norm_prepend(const cti_component *c, ct_err *err)
{
    return norm_content(c, "prepend", (cti_norm){.kind = CTI_NORM_PREPEND}, err);
}

ct_status cti_parse_normalizer(ct_tokenizer *tok, const json_t *json, const char *name, ct_err *err)
{
    const cti_component_row rows[] = {{"NFC", norm_simple, CTI_NO_KEYS},
                                  {"NFD", norm_simple, CTI_NO_KEYS},
                                  {"NFKC", norm_simple, CTI_NO_KEYS},
                                  {"NFKD", norm_simple, CTI_NO_KEYS},
                                  {"Lowercase", norm_simple, CTI_NO_KEYS},
                                  {"StripAccents", norm_simple, CTI_NO_KEYS},
                                  {"Nmt", norm_simple, CTI_NO_KEYS},
                                  {"ByteLevel", norm_simple, CTI_NO_KEYS},
                                  {"Strip", norm_strip, CTI_KEYS("strip_left", "strip_right")},
                                  {"BertNormalizer", norm_bert,
                                   CTI_KEYS("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")},
                                  {"Replace", norm_replace, CTI_KEYS("pattern", "content")},
                                  {"Prepend", norm_prepend, CTI_KEYS("prepend")},
                                  {"Precompiled", norm_precompiled, CTI_KEYS("precompiled_charsmap")},
                                  {0}};
    return cti_parse_components(tok, json, "normalizer", "normalizers", name, rows, err);
}

/* --- pre-tokenizer --- */

/* Takes what step owns, also on failure. */
static ct_status add_step(ct_tokenizer *tok, cti_step step, ct_err *err)
{
    cti_step *steps = ct_alloc_resize(tok->alloc, tok->steps, tok->n_steps + 1, sizeof *steps, err);
    if (steps == NULL) {
        cti_step_deinit(&step, tok->alloc);
        return CT_ERR_MEMORY;
    }
    tok->steps = steps;
    steps[tok->n_steps++] = step;
    return CT_OK;
}

static ct_status add_split(ct_tokenizer *tok, const char *pattern, cti_behaviour behaviour, bool invert, ct_err *err)
{
    cti_step step = {.kind = CTI_STEP_SPLIT, .behaviour = behaviour, .invert = invert};
    CT_TRY(cti_regex_create(tok->alloc, pattern, strlen(pattern), "built-in pattern", &step.pattern.regex, err));
    return add_step(tok, step, err);
}

ct_status cti_add_split_pattern(ct_tokenizer *tok, const char *pattern, ct_err *err)
{
    return add_split(tok, pattern, CTI_BEHAVIOUR_ISOLATED, false, err);
}

ct_status cti_add_byte_level(ct_tokenizer *tok, bool prefix_space, bool use_regex, ct_err *err)
{
    if (prefix_space) {
        CT_TRY(add_step(tok, (cti_step){.kind = CTI_STEP_PREFIX_SPACE}, err));
    }
    if (use_regex) {
        CT_TRY(add_split(tok, CTI_GPT2_PATTERN, CTI_BEHAVIOUR_ISOLATED, false, err));
    }
    return add_step(tok, (cti_step){.kind = CTI_STEP_BYTES}, err);
}

static ct_status pre_byte_level(const cti_component *c, ct_err *err)
{
    bool prefix_space = false, use_regex = false;
    CT_TRY(cti_get_bool(c->json, "add_prefix_space", true, c->where, &prefix_space, err));
    CT_TRY(cti_get_bool(c->json, "use_regex", true, c->where, &use_regex, err));
    return cti_add_byte_level(c->tok, prefix_space, use_regex, err);
}

static ct_status get_behaviour(const cti_component *c, cti_behaviour *out, ct_err *err)
{
    static const char *const names[CTI_BEHAVIOUR_COUNT] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext",
                                                           "Contiguous"};
    const char *found = NULL;
    size_t size = 0;
    CT_TRY(cti_get_string(c, "behavior", &found, &size, err));
    for (int i = 0; i < CTI_BEHAVIOUR_COUNT; i++) {
        if (strcmp(names[i], found) == 0) {
            *out = (cti_behaviour)i;
            return CT_OK;
        }
    }
    return CT_FAIL(err, CT_ERR_UNSUPPORTED, "%s: behavior '%.80s' is not implemented", c->where, found);
}

static ct_status pre_split(const cti_component *c, ct_err *err)
{
    cti_step step = {.kind = CTI_STEP_SPLIT};
    CT_TRY(get_behaviour(c, &step.behaviour, err));
    CT_TRY(cti_get_bool(c->json, "invert", false, c->where, &step.invert, err));
    CT_TRY(cti_get_pattern(c, &step.pattern, err));
    return add_step(c->tok, step, err);
}

static ct_status add_class(ct_tokenizer *tok, bool (*is_in)(uint32_t cp), cti_behaviour behaviour, ct_err *err)
{
    return add_step(tok, (cti_step){.kind = CTI_STEP_SPLIT, .behaviour = behaviour, .pattern.is_in = is_in}, err);
}

static ct_status pre_digits(const cti_component *c, ct_err *err)
{
    bool individual = false;
    CT_TRY(cti_get_bool(c->json, "individual_digits", false, c->where, &individual, err));
    return add_class(c->tok, cti_is_numeric, individual ? CTI_BEHAVIOUR_ISOLATED : CTI_BEHAVIOUR_CONTIGUOUS, err);
}

static ct_status pre_whitespace_split(const cti_component *c, ct_err *err)
{
    return add_class(c->tok, cti_is_space, CTI_BEHAVIOUR_REMOVED, err);
}

/* Runs of \w and runs of what is neither \w nor blank. */
static ct_status pre_whitespace(const cti_component *c, ct_err *err)
{
    CT_TRY(pre_whitespace_split(c, err));
    return add_class(c->tok, cti_is_word, CTI_BEHAVIOUR_CONTIGUOUS, err);
}

static ct_status pre_punctuation(const cti_component *c, ct_err *err)
{
    cti_behaviour behaviour = CTI_BEHAVIOUR_ISOLATED;
    if (json_object_get(c->json, "behavior") != NULL) {
        CT_TRY(get_behaviour(c, &behaviour, err));
    }
    return add_class(c->tok, cti_is_punctuation, behaviour, err);
}

static ct_status pre_bert(const cti_component *c, ct_err *err)
{
    CT_TRY(pre_whitespace_split(c, err));
    return add_class(c->tok, cti_is_punctuation, CTI_BEHAVIOUR_ISOLATED, err);
}

static ct_status add_literal(ct_tokenizer *tok, const char *text, cti_behaviour behaviour, ct_err *err)
{
    cti_step step = {.kind = CTI_STEP_SPLIT, .behaviour = behaviour, .pattern.literal_size = strlen(text)};
    step.pattern.literal = cti_copy_bytes(tok->alloc, text, step.pattern.literal_size, err);
    return step.pattern.literal ? add_step(tok, step, err) : CT_ERR_MEMORY;
}

static ct_status pre_delimiter(const cti_component *c, ct_err *err)
{
    char delimiter[5];
    CT_TRY(cti_get_character(c, "delimiter", delimiter, err));
    return add_literal(c->tok, delimiter, CTI_BEHAVIOUR_REMOVED, err);
}

static ct_status pre_fixed_length(const cti_component *c, ct_err *err)
{
    cti_step step = {.kind = CTI_STEP_FIXED};
    CT_TRY(cti_json_get_i64(c->json, "length", c->where, &step.length, err));
    if (step.length < 1) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: 'length' must be at least 1", c->where);
    }
    return add_step(c->tok, step, err);
}

static ct_status pre_metaspace(const cti_component *c, ct_err *err)
{
    cti_step step = {.kind = CTI_STEP_METASPACE};
    bool split = true;
    CT_TRY(cti_get_character(c, "replacement", step.mark, err));
    CT_TRY(cti_get_scheme(c, &step.scheme, err));
    CT_TRY(cti_get_bool(c->json, "split", true, c->where, &split, err));
    c->tok->wants_start |= step.scheme == CTI_SCHEME_FIRST;
    CT_TRY(add_step(c->tok, step, err));
    return split ? add_literal(c->tok, step.mark, CTI_BEHAVIOUR_MERGED_WITH_NEXT, err) : CT_OK;
}

ct_status cti_parse_pre_tokenizer(ct_tokenizer *tok, const json_t *json, const char *name, ct_err *err)
{
    const cti_component_row rows[] = {{"ByteLevel", pre_byte_level, CTI_KEYS("add_prefix_space", "trim_offsets", "use_regex")},
                                  {"Split", pre_split, CTI_KEYS("pattern", "behavior", "invert")},
                                  {"Digits", pre_digits, CTI_KEYS("individual_digits")},
                                  {"Whitespace", pre_whitespace, CTI_NO_KEYS},
                                  {"WhitespaceSplit", pre_whitespace_split, CTI_NO_KEYS},
                                  {"Punctuation", pre_punctuation, CTI_KEYS("behavior")},
                                  {"BertPreTokenizer", pre_bert, CTI_NO_KEYS},
                                  {"CharDelimiterSplit", pre_delimiter, CTI_KEYS("delimiter")},
                                  {"FixedLength", pre_fixed_length, CTI_KEYS("length")},
                                  {"Metaspace", pre_metaspace, CTI_METASPACE_KEYS},
                                  {0}};
    return cti_parse_components(tok, json, "pre_tokenizer", "pretokenizers", name, rows, err);
}

