/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of a component from a JSON object: the arguments of an override. */
#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "config/config_internal.h"

static const char *type_name(const json_t *json)
{
    static const char *const names[] = {[JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list", [JSON_STRING] = "a text", [JSON_INTEGER] = "a number",
                                        [JSON_REAL] = "a number", [JSON_TRUE] = "true", [JSON_FALSE] = "false", [JSON_NULL] = "null"};
    return names[json_typeof(json)];
}

static bool is_text_kind(ct_field_kind kind)
{
    return kind == CT_FIELD_STR || kind == CT_FIELD_OPT_STR || kind == CT_FIELD_CHOICE || kind == CT_FIELD_STR_LIST || kind == CT_FIELD_TOKENS;
}

/* One value as a command line would write it. */
static ct_status word_of(const ct_field *field, const json_t *json, ct_arena *arena, const char **out, ct_err *err)
{
    const bool is_optional = field->kind == CT_FIELD_OPT_I64 || field->kind == CT_FIELD_OPT_F64 || field->kind == CT_FIELD_OPT_STR;
    char buf[32];
    *out = NULL;
    switch (json_typeof(json)) {
    case JSON_STRING:
        *out = is_text_kind(field->kind) ? ct_arena_strdup(arena, json_string_value(json), err) : NULL;
        break;
    case JSON_INTEGER:
        *out = is_text_kind(field->kind) ? NULL : ct_arena_printf(arena, err, "%lld", (long long)json_integer_value(json));
        break;
    case JSON_REAL:
        *out = is_text_kind(field->kind) ? NULL : ct_arena_strdup(arena, cti_format_f64(json_real_value(json), buf), err);
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        *out = field->kind == CT_FIELD_BOOL ? (json_is_true(json) ? "true" : "false") : NULL;
        break;
    case JSON_NULL:
        *out = is_optional ? "None" : NULL;
        break;
    case JSON_OBJECT:
    case JSON_ARRAY:
        break;
    }
    if (*out == NULL) {
        const char *metavar = field->kind == CT_FIELD_CHOICE ? field->choices : ct_field_metavar(field);
        return CT_FAIL(err, CT_ERR_USAGE, "'%s': wanted %s, found %s", field->name, metavar[0] != '\0' ? metavar : "true or false", type_name(json));
    }
    return CT_OK;
}

static ct_status set_one(ct_tree *tree, ct_component *component, const char *key, const json_t *value, ct_err *err)
{
    const ct_class *cls = component->cls;
    const ct_field *field = ct_field_find(cls->fields, (size_t)cls->n_fields, key);
    ct_arena *arena = ct_tree_arena(tree);
    const size_t n = json_is_array(value) ? json_array_size(value) : 1;
    const char **words = ct_arena_alloc(arena, (n + 1) * sizeof *words, err);
    if (words == NULL) {
        return CT_ERR_MEMORY;
    }
    if (field == NULL) { /* it says which there are */
        return ct_component_set(tree, component, key, words, 0, CT_SOURCE_OVERRIDE, err);
    }
    for (size_t i = 0; i < n; i++) {
        CT_TRY(word_of(field, json_is_array(value) ? json_array_get(value, i) : value, arena, &words[i], err));
    }
    ct_err why = {0};
    ct_status st;
    ct_field as_tokens = *field; /* texts of a list are elements, whatever commas they hold */
    if (field->kind == CT_FIELD_STR_LIST && json_is_array(value)) {
        as_tokens.kind = CT_FIELD_TOKENS;
        st = ct_field_set(&as_tokens, component->values, words, n, arena, &why);
        component->sources[field - cls->fields] = CT_SOURCE_OVERRIDE;
    } else if (n != 1 && field->kind != CT_FIELD_I64_LIST && field->kind != CT_FIELD_F64_LIST && field->kind != CT_FIELD_TOKENS) {
        return CT_FAIL(err, CT_ERR_USAGE, "'%s': wanted one value, found a list of %zu", field->name, n);
    } else {
        st = ct_component_set(tree, component, key, words, n, CT_SOURCE_OVERRIDE, &why);
    }
    return st == CT_OK ? CT_OK : CT_FAIL(err, st, "'%s': %s", field->name, why.message);
}

ct_status ct_component_set_json(ct_tree *tree, ct_component *component, const char *args_json, ct_err *err)
{
    json_t *json = NULL, *value;
    const char *key;
    ct_status st = CT_OK;
    CT_TRY(cti_json_parse(args_json, strlen(args_json), "arguments", &json, err));
    if (!json_is_object(json)) {
        st = CT_FAIL(err, CT_ERR_USAGE, "arguments: wanted a JSON object, found %s", type_name(json));
    }
    json_object_foreach(json, key, value)
    {
        st = st == CT_OK ? set_one(tree, component, key, value, err) : st;
    }
    json_decref(json);
    return st;
}
