/* SPDX-License-Identifier: Apache-2.0 */
/* The components of tokenizer.json: normalizer, pre-tokenizer, post-processor, decoder. Each becomes steps; a component, a
 * member or a value that is not known here is refused by name. */
#include "tokenizer/tokenizer_internal.h"

/* One component with what its parser needs. */
typedef struct component {
    ct_tokenizer *tok;
    const json_t *json;
    const char *type;  /* its "type" */
    const char *where; /* "tokenizer.json: pre_tokenizer Split" */
} component;

typedef ct_status (*component_parser)(const component *c, ct_err *err);
typedef struct component_row {
    const char *type;
    component_parser parse;
    const char *const *keys; /* members it may have */
} component_row;

#define KEYS(...) ((const char *const[]){"type", __VA_ARGS__, NULL})
#define NO_KEYS ((const char *const[]){"type", NULL})

static ct_status parse_one(ct_tokenizer *tok, const json_t *json, const char *what, const char *name,
                           const component_row *rows, ct_err *err)
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
            return rows->parse(&(component){.tok = tok, .json = json, .type = type, .where = where}, err);
        }
    }
    return CT_FAIL(err, CT_ERR_UNSUPPORTED, "%s is not implemented", where);
}

/* A component or null; a Sequence's members (under `list`), one after another. Sequences nest a few levels at most. */
static ct_status parse_tree(ct_tokenizer *tok, const json_t *json, const char *what, const char *list, const char *name,
                            const component_row *rows, int depth, ct_err *err)
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

/* A string member; *out NULL where it is missing or null and `fallback` says so. */
static ct_status get_string(const component *c, const char *key, const char **out, size_t *out_size, ct_err *err)
{
    const json_t *value = json_object_get(c->json, key);
    if (!json_is_string(value)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: '%s' must be a string", c->where, key);
    }
    *out = json_string_value(value);
    *out_size = json_string_length(value);
    return CT_OK;
}

static char *copy_bytes(const ct_alloc *alloc, const char *bytes, size_t size, ct_err *err)
{
    char *copy = CT_NEW_ARRAY(alloc, char, size + 1, err);
    if (copy != NULL) {
        memcpy(copy, bytes, size);
    }
    return copy;
}

/* {"String": "..."} or {"Regex": "..."}. */
static ct_status get_pattern(const component *c, cti_pattern *out, ct_err *err)
{
    const json_t *pattern = json_object_get(c->json, "pattern");
    const json_t *string = json_object_get(pattern, "String"), *regex = json_object_get(pattern, "Regex");
    if (json_object_size(pattern) != 1 || !(json_is_string(string) || json_is_string(regex))) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: 'pattern' must be {\"String\": ...} or {\"Regex\": ...}", c->where);
    }
    if (regex != NULL) {
        return cti_regex_create(c->tok->alloc, json_string_value(regex), json_string_length(regex), c->where, &out->regex, err);
    }
    out->literal_size = json_string_length(string);
    out->literal = copy_bytes(c->tok->alloc, json_string_value(string), out->literal_size, err);
    return out->literal ? CT_OK : CT_ERR_MEMORY;
}

/* --- normalizer --- */

/* Takes what norm owns, also on failure. */
static ct_status add_norm(ct_tokenizer *tok, cti_norm norm, ct_err *err)
{
    cti_norm *norms = ct_alloc_resize(tok->alloc, tok->norms, tok->n_norms + 1, sizeof *norms, err);
    if (norms == NULL) {
        cti_pattern_deinit(&norm.pattern, tok->alloc);
        ct_alloc_free(tok->alloc, norm.content);
        return CT_ERR_MEMORY;
    }
    tok->norms = norms;
    norms[tok->n_norms++] = norm;
    return CT_OK;
}

static ct_status norm_simple(const component *c, ct_err *err)
{
    static const char *const names[] = {
        [CTI_NORM_NFC] = "NFC",   [CTI_NORM_NFD] = "NFD",   [CTI_NORM_NFKC] = "NFKC",
        [CTI_NORM_NFKD] = "NFKD", [CTI_NORM_LOWERCASE] = "Lowercase"};
    for (int kind = 0; kind <= CTI_NORM_LOWERCASE; kind++) {
        if (strcmp(names[kind], c->type) == 0) {
            return add_norm(c->tok, (cti_norm){.kind = (cti_norm_kind)kind}, err);
        }
    }
    return CT_FAIL(err, CT_ERR_UNSUPPORTED, "%s is not implemented", c->where);
}

static ct_status norm_content(const component *c, const char *key, cti_norm norm, ct_err *err)
{
    const char *content = NULL;
    ct_status st = get_string(c, key, &content, &norm.content_size, err);
    if (st == CT_OK) {
        norm.content = copy_bytes(c->tok->alloc, content, norm.content_size, err);
        st = norm.content ? CT_OK : CT_ERR_MEMORY;
    }
    if (st != CT_OK) {
        cti_pattern_deinit(&norm.pattern, c->tok->alloc);
        return st;
    }
    return add_norm(c->tok, norm, err);
}

static ct_status norm_replace(const component *c, ct_err *err)
{
    cti_norm norm = {.kind = CTI_NORM_REPLACE};
    CT_TRY(get_pattern(c, &norm.pattern, err));
    return norm_content(c, "content", norm, err);
}

static ct_status norm_prepend(const component *c, ct_err *err)
{
    return norm_content(c, "prepend", (cti_norm){.kind = CTI_NORM_PREPEND}, err);
}

ct_status cti_parse_normalizer(ct_tokenizer *tok, const json_t *json, const char *name, ct_err *err)
{
    const component_row rows[] = {{"NFC", norm_simple, NO_KEYS},
                                  {"NFD", norm_simple, NO_KEYS},
                                  {"NFKC", norm_simple, NO_KEYS},
                                  {"NFKD", norm_simple, NO_KEYS},
                                  {"Lowercase", norm_simple, NO_KEYS},
                                  {"Replace", norm_replace, KEYS("pattern", "content")},
                                  {"Prepend", norm_prepend, KEYS("prepend")},
                                  {0}};
    return parse_tree(tok, json, "normalizer", "normalizers", name, rows, 8, err);
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

static ct_status pre_byte_level(const component *c, ct_err *err)
{
    bool prefix_space = false, use_regex = false;
    CT_TRY(cti_get_bool(c->json, "add_prefix_space", true, c->where, &prefix_space, err));
    CT_TRY(cti_get_bool(c->json, "use_regex", true, c->where, &use_regex, err));
    return cti_add_byte_level(c->tok, prefix_space, use_regex, err);
}

static ct_status get_behaviour(const component *c, cti_behaviour *out, ct_err *err)
{
    static const char *const names[CTI_BEHAVIOUR_COUNT] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext",
                                                           "Contiguous"};
    const char *found = NULL;
    size_t size = 0;
    CT_TRY(get_string(c, "behavior", &found, &size, err));
    for (int i = 0; i < CTI_BEHAVIOUR_COUNT; i++) {
        if (strcmp(names[i], found) == 0) {
            *out = (cti_behaviour)i;
            return CT_OK;
        }
    }
    return CT_FAIL(err, CT_ERR_UNSUPPORTED, "%s: behavior '%.80s' is not implemented", c->where, found);
}

static ct_status pre_split(const component *c, ct_err *err)
{
    cti_step step = {.kind = CTI_STEP_SPLIT};
    CT_TRY(get_behaviour(c, &step.behaviour, err));
    CT_TRY(cti_get_bool(c->json, "invert", false, c->where, &step.invert, err));
    CT_TRY(get_pattern(c, &step.pattern, err));
    return add_step(c->tok, step, err);
}

static ct_status pre_digits(const component *c, ct_err *err)
{
    bool individual = false;
    CT_TRY(cti_get_bool(c->json, "individual_digits", false, c->where, &individual, err));
    return add_split(c->tok, "\\p{N}", individual ? CTI_BEHAVIOUR_ISOLATED : CTI_BEHAVIOUR_CONTIGUOUS, false, err);
}

static ct_status pre_whitespace(const component *c, ct_err *err)
{
    return add_split(c->tok, "\\w+|[^\\w\\s]+", CTI_BEHAVIOUR_REMOVED, true, err);
}

static ct_status pre_whitespace_split(const component *c, ct_err *err)
{
    return add_split(c->tok, "\\s", CTI_BEHAVIOUR_REMOVED, false, err);
}

/* Punctuation of Unicode and the ASCII symbols, as the component has it. */
static ct_status pre_punctuation(const component *c, ct_err *err)
{
    cti_behaviour behaviour = CTI_BEHAVIOUR_ISOLATED;
    if (json_object_get(c->json, "behavior") != NULL) {
        CT_TRY(get_behaviour(c, &behaviour, err));
    }
    return add_split(c->tok, "[\\p{P}$+<=>\\^`|~]", behaviour, false, err);
}

static ct_status metaspace_mark(const component *c, char mark[5], ct_err *err)
{
    const char *text = NULL;
    size_t size = 0;
    CT_TRY(get_string(c, "replacement", &text, &size, err));
    const unsigned char *p = (const unsigned char *)text;
    if (size == 0 || (size_t)cti_utf8_len(p, p + size) != size) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: 'replacement' must be one character", c->where);
    }
    memcpy(mark, text, size);
    mark[size] = '\0';
    return CT_OK;
}

/* prepend_scheme, or the older add_prefix_space (true: always, false: never); always where neither is there. */
static ct_status metaspace_scheme(const component *c, cti_scheme *out, ct_err *err)
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

static ct_status pre_metaspace(const component *c, ct_err *err)
{
    cti_step step = {.kind = CTI_STEP_METASPACE};
    bool split = true;
    CT_TRY(metaspace_mark(c, step.mark, err));
    CT_TRY(metaspace_scheme(c, &step.scheme, err));
    CT_TRY(cti_get_bool(c->json, "split", true, c->where, &split, err));
    CT_TRY(add_step(c->tok, step, err));
    if (!split) {
        return CT_OK;
    }
    cti_step at_mark = {.kind = CTI_STEP_SPLIT, .behaviour = CTI_BEHAVIOUR_MERGED_WITH_NEXT};
    at_mark.pattern.literal_size = strlen(step.mark);
    at_mark.pattern.literal = copy_bytes(c->tok->alloc, step.mark, at_mark.pattern.literal_size, err);
    return at_mark.pattern.literal ? add_step(c->tok, at_mark, err) : CT_ERR_MEMORY;
}

#define METASPACE_KEYS KEYS("replacement", "prepend_scheme", "add_prefix_space", "split", "str_rep")

ct_status cti_parse_pre_tokenizer(ct_tokenizer *tok, const json_t *json, const char *name, ct_err *err)
{
    const component_row rows[] = {{"ByteLevel", pre_byte_level, KEYS("add_prefix_space", "trim_offsets", "use_regex")},
                                  {"Split", pre_split, KEYS("pattern", "behavior", "invert")},
                                  {"Digits", pre_digits, KEYS("individual_digits")},
                                  {"Whitespace", pre_whitespace, NO_KEYS},
                                  {"WhitespaceSplit", pre_whitespace_split, NO_KEYS},
                                  {"Punctuation", pre_punctuation, KEYS("behavior")},
                                  {"Metaspace", pre_metaspace, METASPACE_KEYS},
                                  {0}};
    return parse_tree(tok, json, "pre_tokenizer", "pretokenizers", name, rows, 8, err);
}

/* --- post-processor: ids before and after the text --- */

static ct_status push_id(const component *c, int64_t id, int32_t **ids, size_t *n, ct_err *err)
{
    if (id < 0 || id >= CTI_MAX_IDS || !cti_vocab_has(&c->tok->vocab, (int32_t)id)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: id %lld is not in the vocabulary", c->where, (long long)id);
    }
    int32_t *grown = ct_alloc_resize(c->tok->alloc, *ids, *n + 1, sizeof *grown, err);
    if (grown == NULL) {
        return CT_ERR_MEMORY;
    }
    *ids = grown;
    grown[(*n)++] = (int32_t)id;
    return CT_OK;
}

/* Ids that go in front of those that are there. */
static void rotate(int32_t *ids, size_t n, size_t n_old)
{
    for (size_t i = n_old; i < n; i++) {
        const int32_t id = ids[i];
        memmove(ids + (i - n_old) + 1, ids + (i - n_old), n_old * sizeof *ids);
        ids[i - n_old] = id;
    }
}

static ct_status post_byte_level(const component *c, ct_err *err)
{
    (void)c; /* it moves offsets only */
    (void)err;
    return CT_OK;
}

static ct_status template_token(const component *c, const char *id, int32_t **ids, size_t *n, ct_err *err)
{
    const json_t *token = json_object_get(json_object_get(c->json, "special_tokens"), id);
    const json_t *list = json_object_get(token, "ids");
    if (!json_is_array(list)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: special token '%.80s' has no ids", c->where, id);
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *value = json_array_get(list, i);
        CT_TRY(push_id(c, json_is_integer(value) ? json_integer_value(value) : -1, ids, n, err));
    }
    return CT_OK;
}

static ct_status post_template(const component *c, ct_err *err)
{
    const json_t *single = json_object_get(c->json, "single");
    if (!json_is_array(single)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "%s: 'single' must be a list", c->where);
    }
    ct_tokenizer *tok = c->tok;
    const size_t n_old = tok->n_before;
    int n_texts = 0;
    for (size_t i = 0; i < json_array_size(single); i++) {
        const json_t *piece = json_array_get(single, i);
        const json_t *special = json_object_get(piece, "SpecialToken"), *text = json_object_get(piece, "Sequence");
        const char *id = json_string_value(json_object_get(special ? special : text, "id"));
        if (id == NULL || json_object_size(piece) != 1) {
            return CT_FAIL(err, CT_ERR_FORMAT, "%s: piece %zu of 'single' is neither SpecialToken nor Sequence", c->where, i);
        }
        if (special != NULL) {
            CT_TRY(n_texts == 0 ? template_token(c, id, &tok->template_before, &tok->n_before, err)
                                : template_token(c, id, &tok->template_after, &tok->n_after, err));
        } else if (strcmp(id, "A") != 0 || n_texts++ > 0) {
            return CT_FAIL(err, CT_ERR_UNSUPPORTED, "%s: 'single' must hold the text, $A, once", c->where);
        }
    }
    if (n_texts == 0) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "%s: 'single' leaves out the text, $A", c->where);
    }
    rotate(tok->template_before, tok->n_before, n_old);
    return CT_OK;
}

/* BertProcessing and RobertaProcessing: cls, text, sep. */
static ct_status post_cls_sep(const component *c, ct_err *err)
{
    ct_tokenizer *tok = c->tok;
    const json_t *cls = json_array_get(json_object_get(c->json, "cls"), 1);
    const json_t *sep = json_array_get(json_object_get(c->json, "sep"), 1);
    const size_t n_old = tok->n_before;
    CT_TRY(push_id(c, json_is_integer(cls) ? json_integer_value(cls) : -1, &tok->template_before, &tok->n_before, err));
    CT_TRY(push_id(c, json_is_integer(sep) ? json_integer_value(sep) : -1, &tok->template_after, &tok->n_after, err));
    rotate(tok->template_before, tok->n_before, n_old);
    return CT_OK;
}

ct_status cti_parse_post_processor(ct_tokenizer *tok, const json_t *json, const char *name, ct_err *err)
{
    const component_row rows[] = {{"ByteLevel", post_byte_level, KEYS("add_prefix_space", "trim_offsets", "use_regex")},
                                  {"TemplateProcessing", post_template, KEYS("single", "pair", "special_tokens")},
                                  {"BertProcessing", post_cls_sep, KEYS("sep", "cls")},
                                  {"RobertaProcessing", post_cls_sep, KEYS("sep", "cls", "trim_offsets", "add_prefix_space")},
                                  {0}};
    return parse_tree(tok, json, "post_processor", "processors", name, rows, 8, err);
}

/* --- decoder --- */

/* Takes what dec owns, also on failure. */
static ct_status add_dec(ct_tokenizer *tok, cti_dec dec, ct_err *err)
{
    cti_dec *decs = ct_alloc_resize(tok->alloc, tok->decs, tok->n_decs + 1, sizeof *decs, err);
    if (decs == NULL) {
        ct_alloc_free(tok->alloc, dec.from);
        ct_alloc_free(tok->alloc, dec.to);
        return CT_ERR_MEMORY;
    }
    tok->decs = decs;
    decs[tok->n_decs++] = dec;
    tok->has_decoder = true;
    return CT_OK;
}

ct_status cti_add_decoder_byte_level(ct_tokenizer *tok, ct_err *err)
{
    return add_dec(tok, (cti_dec){.kind = CTI_DEC_BYTE_LEVEL}, err);
}

static ct_status dec_byte_level(const component *c, ct_err *err)
{
    return cti_add_decoder_byte_level(c->tok, err);
}

static ct_status dec_byte_fallback(const component *c, ct_err *err)
{
    return add_dec(c->tok, (cti_dec){.kind = CTI_DEC_BYTE_FALLBACK}, err);
}

static ct_status dec_fuse(const component *c, ct_err *err)
{
    (void)err;
    c->tok->has_decoder = true; /* tokens are always put together without blanks here */
    return CT_OK;
}

static ct_status dec_pair(const component *c, const char *from, size_t from_size, const char *to, size_t to_size, ct_err *err)
{
    const ct_alloc *alloc = c->tok->alloc;
    cti_dec dec = {.kind = CTI_DEC_REPLACE, .from_size = from_size, .to_size = to_size};
    dec.from = copy_bytes(alloc, from, from_size, err);
    dec.to = copy_bytes(alloc, to, to_size, err);
    if (dec.from == NULL || dec.to == NULL) {
        ct_alloc_free(alloc, dec.from);
        ct_alloc_free(alloc, dec.to);
        return CT_ERR_MEMORY;
    }
    return add_dec(c->tok, dec, err);
}

static ct_status dec_replace(const component *c, ct_err *err)
{
    const json_t *from = json_object_get(json_object_get(c->json, "pattern"), "String");
    const char *to = NULL;
    size_t to_size = 0;
    if (!json_is_string(from) || json_string_length(from) == 0) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "%s: only {\"String\": ...} is implemented for 'pattern'", c->where);
    }
    CT_TRY(get_string(c, "content", &to, &to_size, err));
    return dec_pair(c, json_string_value(from), json_string_length(from), to, to_size, err);
}

static ct_status dec_strip(const component *c, ct_err *err)
{
    const char *content = NULL;
    size_t size = 0;
    int64_t start = 0, stop = 0;
    CT_TRY(get_string(c, "content", &content, &size, err));
    CT_TRY(cti_json_get_i64(c->json, "start", c->where, &start, err));
    CT_TRY(cti_json_get_i64(c->json, "stop", c->where, &stop, err));
    if (start < 0 || start > 1 || stop != 0 || size == 0 || size > 4 || !c->tok->has_decoder) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "%s: only one character at the start of the whole text (after Fuse) is implemented",
                       c->where);
    }
    if (start == 1) {
        memcpy(c->tok->strip_first, content, size);
        c->tok->strip_first[size] = '\0';
    }
    return CT_OK;
}

static ct_status dec_metaspace(const component *c, ct_err *err)
{
    char mark[5];
    cti_scheme scheme = CTI_SCHEME_ALWAYS;
    CT_TRY(metaspace_mark(c, mark, err));
    CT_TRY(metaspace_scheme(c, &scheme, err));
    if (scheme != CTI_SCHEME_NEVER) {
        c->tok->strip_first[0] = ' ';
        c->tok->strip_first[1] = '\0';
    }
    return dec_pair(c, mark, strlen(mark), " ", 1, err);
}

ct_status cti_parse_decoder(ct_tokenizer *tok, const json_t *json, const char *name, ct_err *err)
{
    const component_row rows[] = {{"ByteLevel", dec_byte_level, KEYS("add_prefix_space", "trim_offsets", "use_regex")},
                                  {"ByteFallback", dec_byte_fallback, NO_KEYS},
                                  {"Fuse", dec_fuse, NO_KEYS},
                                  {"Replace", dec_replace, KEYS("pattern", "content")},
                                  {"Strip", dec_strip, KEYS("content", "start", "stop")},
                                  {"Metaspace", dec_metaspace, METASPACE_KEYS},
                                  {0}};
    return parse_tree(tok, json, "decoder", "decoders", name, rows, 8, err);
}
