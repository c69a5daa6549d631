/* SPDX-License-Identifier: Apache-2.0 */
/* One node of a file into one field: the field's kind says what the text means, never YAML. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/fields.h"
#include "config/files.h"

static const char *kind_name(const cti_doc *doc)
{
    return doc->kind == CTI_DOC_LIST ? "a list" : doc->kind == CTI_DOC_MAP ? "a section" : "one value";
}

static ct_status wanted_one(const ct_field *field, const cti_doc *doc, ct_err *err)
{
    const char *metavar = ct_field_metavar(field);
    return CT_FAIL(err, CT_ERR_USAGE, "wanted %s, found %s", metavar[0] != '\0' ? metavar : "one value", kind_name(doc));
}

/* YAML 1.1's other words for true and false. */
static const char *bool_word(const char *text)
{
    static const char *const words[][2] = {{"yes", "true"}, {"Yes", "true"}, {"YES", "true"}, {"on", "true"}, {"On", "true"},
                                           {"ON", "true"}, {"TRUE", "true"}, {"no", "false"}, {"No", "false"}, {"NO", "false"},
                                           {"off", "false"}, {"Off", "false"}, {"OFF", "false"}, {"FALSE", "false"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (cti_str_eq(text, words[i][0])) {
            return words[i][1];
        }
    }
    return text;
}

/* YAML's spellings of what Python calls inf and nan. */
static const char *real_word(const char *text)
{
    static const char *const words[][2] = {{".inf", "inf"}, {"+.inf", "inf"}, {"-.inf", "-inf"}, {".nan", "nan"}, {".Inf", "inf"},
                                           {"-.Inf", "-inf"}, {".NaN", "nan"}, {".INF", "inf"}, {"-.INF", "-inf"}, {".NAN", "nan"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (cti_str_eq(text, words[i][0])) {
            return words[i][1];
        }
    }
    return text;
}

/* 010 is eight to some readers and ten to others: neither here. */
static bool is_octal_like(const char *text)
{
    text += *text == '-' || *text == '+';
    return text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

static ct_status word_of(const ct_field *field, const cti_doc *doc, const char **out, ct_err *err)
{
    *out = doc->text;
    if (doc->kind != CTI_DOC_SCALAR) {
        return wanted_one(field, doc, err);
    }
    if (cti_doc_is_null(doc)) {
        return CT_FAIL(err, CT_ERR_USAGE, "has no value (%s); a text is written in quotes", doc->text[0] != '\0' ? doc->text : "empty");
    }
    if (field->kind == CT_FIELD_BOOL && !doc->is_quoted) {
        *out = bool_word(doc->text);
    } else if (field->kind == CT_FIELD_F64 || field->kind == CT_FIELD_OPT_F64 || field->kind == CT_FIELD_F64_LIST) {
        *out = real_word(doc->text);
    } else if ((field->kind == CT_FIELD_I64 || field->kind == CT_FIELD_OPT_I64 || field->kind == CT_FIELD_I64_LIST) &&
               is_octal_like(doc->text)) {
        return CT_FAIL(err, CT_ERR_USAGE, "'%.80s' begins with 0: eights or tens? write it without", doc->text);
    }
    return CT_OK;
}

/* A text that cannot be taken for None. */
static ct_status set_text(const ct_field *field, void *values, const char *text, ct_arena *arena, ct_err *err)
{
    ct_field as_text = *field;
    as_text.kind = CT_FIELD_STR;
    return ct_field_set(&as_text, values, &text, 1, arena, err);
}

/* Arguments in a file, as JSON says them: a plain word is a number, true, false or null where it can be one, else a text. */
static json_t *json_of(const cti_doc *doc)
{
    if (doc->kind == CTI_DOC_SCALAR) {
        json_t *word = NULL;
        if (cti_doc_is_null(doc)) {
            return json_null();
        }
        if (!doc->is_quoted) {
            const char *text = bool_word(doc->text);
            word = strspn(text, "+-.0123456789eEtruefals") == strlen(text) ? json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL) : NULL;
        }
        return word != NULL ? word : json_string(doc->text);
    }
    json_t *out = doc->kind == CTI_DOC_LIST ? json_array() : json_object();
    for (size_t i = 0; i < doc->n && out != NULL; i++) {
        json_t *item = json_of(doc->items[i]);
        const int failed = doc->kind == CTI_DOC_LIST ? json_array_append_new(out, item) : json_object_set_new(out, doc->keys[i]->text, item);
        if (failed != 0) {
            json_decref(out);
            out = NULL;
        }
    }
    return out;
}

/* "- plugin.name: {key: value}" -> "plugin.name={…}" */
static ct_status token_of(const ct_field *field, const cti_doc *doc, ct_arena *arena, const char **out, ct_err *err)
{
    if (doc->kind != CTI_DOC_MAP || doc->n != 1 || doc->items[0]->kind != CTI_DOC_MAP) {
        return word_of(field, doc, out, err);
    }
    json_t *json = json_of(doc->items[0]);
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    json_decref(json);
    *out = text != NULL ? ct_arena_printf(arena, err, "%s=%s", doc->keys[0]->text, text) : NULL;
    free(text);
    return *out != NULL ? CT_OK : CT_FAIL(err, CT_ERR_MEMORY, "out of memory while reading arguments");
}

/* The texts of a list; each as `field`'s kind reads a word. */
static ct_status words_of(const ct_field *field, const cti_doc *doc, ct_arena *arena, const char ***out, ct_err *err)
{
    const char **words = ct_arena_alloc(arena, (doc->n + 1) * sizeof *words, err);
    if (words == NULL) {
        return CT_ERR_MEMORY;
    }
    for (size_t i = 0; i < doc->n; i++) {
        CT_TRY(field->kind == CT_FIELD_TOKENS ? token_of(field, doc->items[i], arena, &words[i], err) : word_of(field, doc->items[i], &words[i], err));
    }
    *out = words;
    return CT_OK;
}

/* Lists of texts: each element is an element, whatever commas and blanks it holds. */
static ct_status set_texts(const ct_field *field, void *values, const cti_doc *doc, ct_arena *arena, ct_err *err)
{
    const char **words;
    ct_field as_tokens = *field;
    as_tokens.kind = CT_FIELD_TOKENS;
    CT_TRY(words_of(field, doc, arena, &words, err));
    return ct_field_set(&as_tokens, values, words, doc->n, arena, err);
}

static ct_status set_lists(const ct_field *field, void *values, const cti_doc *doc, ct_arena *arena, ct_err *err)
{
    ct_str_lists lists = {true, (int64_t)doc->n, ct_arena_alloc(arena, (doc->n + 1) * sizeof(ct_str_list), err)};
    if (lists.items == NULL) {
        return CT_ERR_MEMORY;
    }
    const ct_field one = {.name = field->name, .kind = CT_FIELD_STR_LIST, .default_text = "", .low = "", .high = ""};
    for (size_t i = 0; i < doc->n; i++) {
        if (cti_doc_is_null(doc->items[i])) {
            return wanted_one(&one, doc->items[i], err);
        }
        CT_TRY(cti_field_from_doc(&one, &lists.items[i], doc->items[i], arena, err));
    }
    if (field->refusal != NULL) {
        return CT_FAIL(err, CT_ERR_USAGE, "is refused: %s (leave it at '%s')", field->refusal, field->default_text);
    }
    memcpy((char *)values + field->offset, &lists, sizeof lists);
    return CT_OK;
}

/* What a command line would say in one word. */
static ct_status set_split(const ct_field *field, void *values, const cti_doc *doc, ct_arena *arena, ct_err *err)
{
    const char *word;
    cti_tokens tokens;
    CT_TRY(word_of(field, doc, &word, err));
    CT_TRY(cti_field_split(field, word, arena, &tokens, err));
    return ct_field_set(field, values, tokens.items, tokens.n, arena, err);
}

ct_status cti_field_from_doc(const ct_field *field, void *values, const cti_doc *doc, ct_arena *arena, ct_err *err)
{
    static const char *const none = "None";
    const char *word;
    const bool is_list = doc->kind == CTI_DOC_LIST;
    switch (field->kind) {
    case CT_FIELD_BOOL:
    case CT_FIELD_I64:
    case CT_FIELD_F64:
    case CT_FIELD_STR:
    case CT_FIELD_CHOICE:
        CT_TRY(word_of(field, doc, &word, err));
        return ct_field_set(field, values, &word, 1, arena, err);
    case CT_FIELD_OPT_I64:
    case CT_FIELD_OPT_F64:
        if (cti_doc_is_null(doc)) {
            return ct_field_set(field, values, &none, 1, arena, err);
        }
        CT_TRY(word_of(field, doc, &word, err));
        if (cti_str_eq(word, none)) {
            return CT_FAIL(err, CT_ERR_USAGE, "'None' in quotes is no number");
        }
        return ct_field_set(field, values, &word, 1, arena, err);
    case CT_FIELD_OPT_STR:
        if (cti_doc_is_null(doc)) {
            return ct_field_set(field, values, &none, 1, arena, err);
        }
        CT_TRY(word_of(field, doc, &word, err));
        return set_text(field, values, word, arena, err);
    case CT_FIELD_STR_LIST:
    case CT_FIELD_TOKENS:
        return is_list ? set_texts(field, values, doc, arena, err) : set_split(field, values, doc, arena, err);
    case CT_FIELD_STR_LISTS:
        if (cti_doc_is_null(doc)) {
            return ct_field_set(field, values, &none, 1, arena, err);
        }
        return is_list ? set_lists(field, values, doc, arena, err) : set_split(field, values, doc, arena, err);
    case CT_FIELD_I64_LIST:
    case CT_FIELD_F64_LIST: {
        const char **words;
        if (!is_list) {
            return set_split(field, values, doc, arena, err);
        }
        CT_TRY(words_of(field, doc, arena, &words, err));
        return ct_field_set(field, values, words, doc->n, arena, err);
    }
    case CT_FIELD_KIND_COUNT:
        break;
    }
    CT_ASSERT(field->kind < CT_FIELD_KIND_COUNT);
    return CT_ERR_STATE;
}
