/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing through jansson; writing our own, since jansson prints doubles with a fixed number of digits. */
#include "base/json.h"

#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"

enum { JSON_MAX_DEPTH = 2048 }; /* jansson's own bound when it parses */

ct_status cti_json_parse(const char *text, size_t size, const char *name, json_t **out_json, ct_err *err)
{
    json_error_t error;
    json_t *json = json_loadb(size == 0 ? "" : text, size,
                              JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (json == NULL) {
        const ct_status status =
            json_error_code(&error) == json_error_out_of_memory ? CT_ERR_MEMORY : CT_ERR_FORMAT;
        return CT_FAIL(err, status, "'%s', line %d, column %d: not valid JSON: %s", name, error.line,
                       error.column, error.text);
    }
    *out_json = json;
    return CT_OK;
}

ct_status cti_json_read_file(const ct_alloc *alloc, const char *path, json_t **out_json, ct_err *err)
{
    char *text;
    size_t size;
    CT_TRY(cti_file_read(alloc, path, 0, &text, &size, err));
    const ct_status st = cti_json_parse(text, size, path, out_json, err);
    ct_alloc_free(alloc, text);
    return st;
}

static void write_string(cti_str *out, const char *text, size_t size)
{
    static const char names[] = "btn?fr"; /* \b is 8, \t 9, \n 10, \f 12, \r 13 */
    cti_str_add_char(out, '"');
    size_t done = 0;
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != '"' && c != '\\') {
            continue;
        }
        cti_str_add_n(out, text + done, i - done);
        done = i + 1;
        if (c >= 0x20) {
            cti_str_printf(out, "\\%c", c);
        } else if (c >= 8 && c <= 13 && c != 11) {
            cti_str_printf(out, "\\%c", names[c - 8]);
        } else {
            cti_str_printf(out, "\\u%04x", c);
        }
    }
    cti_str_add_n(out, text + done, size - done);
    cti_str_add_char(out, '"');
}

/* After an opening bracket, a comma, or before a closing bracket. */
static void write_break(cti_str *out, int indent, int depth)
{
    if (indent > 0) {
        cti_str_printf(out, "\n%*s", indent * depth, "");
    }
}

static ct_status write_value(cti_str *out, const json_t *json, int indent, int depth, ct_err *err);

static ct_status write_object(cti_str *out, const json_t *json, int indent, int depth, ct_err *err)
{
    json_t *object = (json_t *)(uintptr_t)json; /* jansson's iterator takes no const; nothing is changed */
    bool first = true;
    cti_str_add_char(out, '{');
    for (void *it = json_object_iter(object); it != NULL; it = json_object_iter_next(object, it)) {
        if (!first) {
            cti_str_add(out, indent > 0 ? "," : ", ");
        }
        first = false;
        write_break(out, indent, depth + 1);
        const char *key = json_object_iter_key(it);
        write_string(out, key, strlen(key));
        cti_str_add(out, ": ");
        CT_TRY(write_value(out, json_object_iter_value(it), indent, depth + 1, err));
    }
    if (!first) {
        write_break(out, indent, depth);
    }
    cti_str_add_char(out, '}');
    return CT_OK;
}

static ct_status write_array(cti_str *out, const json_t *json, int indent, int depth, ct_err *err)
{
    const size_t n = json_array_size(json);
    cti_str_add_char(out, '[');
    for (size_t i = 0; i < n; i++) {
        if (i > 0) {
            cti_str_add(out, indent > 0 ? "," : ", ");
        }
        write_break(out, indent, depth + 1);
        CT_TRY(write_value(out, json_array_get(json, i), indent, depth + 1, err));
    }
    if (n > 0) {
        write_break(out, indent, depth);
    }
    cti_str_add_char(out, ']');
    return CT_OK;
}

static ct_status write_value(cti_str *out, const json_t *json, int indent, int depth, ct_err *err)
{
    if (json == NULL) {
        return CT_FAIL(err, CT_ERR_FORMAT, "a JSON value to be written is missing");
    }
    if (depth > JSON_MAX_DEPTH) {
        return CT_FAIL(err, CT_ERR_FORMAT, "a JSON value is nested deeper than %d levels",
                       (int)JSON_MAX_DEPTH);
    }
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        return write_object(out, json, indent, depth, err);
    case JSON_ARRAY:
        return write_array(out, json, indent, depth, err);
    case JSON_STRING:
        write_string(out, json_string_value(json), json_string_length(json));
        return CT_OK;
    case JSON_INTEGER:
        cti_str_printf(out, "%" PRId64, (int64_t)json_integer_value(json));
        return CT_OK;
    case JSON_REAL: {
        char buf[32];
        cti_str_add(out, cti_format_f64(json_real_value(json), buf)); /* jansson holds finite ones only */
        return CT_OK;
    }
    case JSON_TRUE:
        cti_str_add(out, "true");
        return CT_OK;
    case JSON_FALSE:
        cti_str_add(out, "false");
        return CT_OK;
    case JSON_NULL:
        cti_str_add(out, "null");
        return CT_OK;
    }
    return CT_FAIL(err, CT_ERR_FORMAT, "a JSON value is of unknown type %d", (int)json_typeof(json));
}

/* Dumps into out, which the caller deinits in any case. */
static ct_status dump(cti_str *out, const json_t *json, int indent, ct_err *err)
{
    CT_TRY(write_value(out, json, indent, 0, err));
    return cti_str_check(out, err);
}

ct_status cti_json_dump(const ct_alloc *alloc, const json_t *json, int indent, char **out_text, ct_err *err)
{
    cti_str out = {.alloc = alloc};
    const ct_status st = dump(&out, json, indent, err);
    if (st != CT_OK) {
        cti_str_deinit(&out);
        return st;
    }
    *out_text = out.data;
    return CT_OK;
}

ct_status cti_json_write_file(const char *path, const json_t *json, int indent, ct_err *err)
{
    cti_str out = {.alloc = ct_alloc_system()};
    ct_status st = dump(&out, json, indent, err);
    if (st == CT_OK) {
        cti_str_add_char(&out, '\n');
        st = cti_str_check(&out, err);
    }
    if (st == CT_OK) {
        st = cti_file_write_atomic(path, out.data, out.len, err);
    } else {
        ct_err_prefix(err, "'%s'", path);
    }
    cti_str_deinit(&out);
    return st;
}

static const char *type_name(const json_t *json)
{
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a real number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        return "null";
    }
    return "of unknown type";
}

static ct_status member(const json_t *obj, const char *key, const char *where, json_t **out, ct_err *err)
{
    if (!json_is_object(obj)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s' should be an object with '%s', but is %s", where, key,
                       obj == NULL ? "missing" : type_name(obj));
    }
    json_t *value = json_object_get(obj, key);
    if (value == NULL) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': '%s' is missing", where, key);
    }
    *out = value;
    return CT_OK;
}

static ct_status wrong_type(const json_t *value, const char *key, const char *where, const char *wanted,
                            ct_err *err)
{
    return CT_FAIL(err, CT_ERR_FORMAT, "'%s': '%s' should be %s, but is %s", where, key, wanted,
                   type_name(value));
}

ct_status cti_json_get_str(const json_t *obj, const char *key, const char *where, const char **out,
                           ct_err *err)
{
    json_t *value = NULL;
    CT_TRY(member(obj, key, where, &value, err));
    if (!json_is_string(value)) {
        return wrong_type(value, key, where, "a string", err);
    }
    if (strlen(json_string_value(value)) != json_string_length(value)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': '%s' holds a NUL character", where, key);
    }
    *out = json_string_value(value);
    return CT_OK;
}

ct_status cti_json_get_i64(const json_t *obj, const char *key, const char *where, int64_t *out, ct_err *err)
{
    json_t *value = NULL;
    CT_TRY(member(obj, key, where, &value, err));
    if (!json_is_integer(value)) {
        return wrong_type(value, key, where, "an integer", err);
    }
    *out = json_integer_value(value);
    return CT_OK;
}

ct_status cti_json_get_f64(const json_t *obj, const char *key, const char *where, double *out, ct_err *err)
{
    json_t *value = NULL;
    CT_TRY(member(obj, key, where, &value, err));
    if (!json_is_number(value)) {
        return wrong_type(value, key, where, "a number", err);
    }
    *out = json_number_value(value);
    return CT_OK;
}

ct_status cti_json_get_bool(const json_t *obj, const char *key, const char *where, bool *out, ct_err *err)
{
    json_t *value = NULL;
    CT_TRY(member(obj, key, where, &value, err));
    if (!json_is_boolean(value)) {
        return wrong_type(value, key, where, "true or false", err);
    }
    *out = json_is_true(value);
    return CT_OK;
}

ct_status cti_json_get_obj(const json_t *obj, const char *key, const char *where, json_t **out, ct_err *err)
{
    json_t *value = NULL;
    CT_TRY(member(obj, key, where, &value, err));
    if (!json_is_object(value)) {
        return wrong_type(value, key, where, "an object", err);
    }
    *out = value;
    return CT_OK;
}

ct_status cti_json_get_arr(const json_t *obj, const char *key, const char *where, json_t **out, ct_err *err)
{
    json_t *value = NULL;
    CT_TRY(member(obj, key, where, &value, err));
    if (!json_is_array(value)) {
        return wrong_type(value, key, where, "an array", err);
    }
    *out = value;
    return CT_OK;
}
