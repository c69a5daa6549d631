/* SPDX-License-Identifier: Apache-2.0 */
/* What is logged of overrides: one line a node, arguments as Python prints them. */
#include "base/json.h"
#include "base/num.h"
#include "base/str.h"
#include "component/overrides_internal.h"

static void add_repr(const json_t *json, cti_str *out);

static void add_text_repr(const char *text, cti_str *out)
{
    const char quote = strchr(text, '\'') != NULL && strchr(text, '"') == NULL ? '"' : '\'';
    cti_str_add_char(out, quote);
    for (; *text != '\0'; text++) {
        if (*text == quote || *text == '\\') {
            cti_str_add_char(out, '\\');
            cti_str_add_char(out, *text);
        } else if (*text == '\n') {
            cti_str_add(out, "\\n");
        } else if ((unsigned char)*text < ' ') {
            cti_str_printf(out, "\\x%02x", (unsigned)(unsigned char)*text);
        } else {
            cti_str_add_char(out, *text);
        }
    }
    cti_str_add_char(out, quote);
}

static void add_dict_repr(const json_t *json, cti_str *out)
{
    const char *key;
    json_t *value;
    bool is_first = true;
    cti_str_add_char(out, '{');
    json_object_foreach((json_t *)(uintptr_t)json, key, value)
    {
        cti_str_add(out, is_first ? "" : ", ");
        add_text_repr(key, out);
        cti_str_add(out, ": ");
        add_repr(value, out);
        is_first = false;
    }
    cti_str_add_char(out, '}');
}

/* As Python's repr prints it. Depth is bounded by the JSON parser. */
static void add_repr(const json_t *json, cti_str *out)
{
    char buf[32];
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        add_dict_repr(json, out);
        break;
    case JSON_ARRAY:
        cti_str_add_char(out, '[');
        for (size_t i = 0; i < json_array_size(json); i++) {
            cti_str_add(out, i > 0 ? ", " : "");
            add_repr(json_array_get(json, i), out);
        }
        cti_str_add_char(out, ']');
        break;
    case JSON_STRING:
        add_text_repr(json_string_value(json), out);
        break;
    case JSON_INTEGER:
        cti_str_printf(out, "%lld", (long long)json_integer_value(json));
        break;
    case JSON_REAL:
        cti_str_add(out, cti_format_f64(json_real_value(json), buf));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        cti_str_add(out, json_is_true(json) ? "True" : "False");
        break;
    case JSON_NULL:
        cti_str_add(out, "None");
        break;
    }
}

/* " with k=v, l=w", or nothing. */
static ct_status add_arguments(const char *args_json, cti_str *out, ct_err *err)
{
    json_t *json;
    CT_TRY(cti_json_parse(args_json, strlen(args_json), "arguments", &json, err));
    const char *key;
    json_t *value;
    const char *before = " with ";
    json_object_foreach(json, key, value)
    {
        cti_str_printf(out, "%s%s=", before, key);
        add_repr(value, out);
        before = ", ";
    }
    json_decref(json);
    return cti_str_check(out, err);
}

static ct_status add_line(ct_arena *arena, cti_overrides_applied *applied, cti_str *text, ct_err *err)
{
    CT_TRY(cti_str_check(text, err));
    const char *copy = ct_arena_strdup(arena, cti_str_text(text), err);
    if (copy == NULL) {
        return CT_ERR_MEMORY;
    }
    applied->lines[applied->n_lines++] = copy;
    return CT_OK;
}

ct_status cti_overrides_lines(const cti_override_work *w, const ct_alloc *alloc, cti_overrides_applied *applied, ct_err *err)
{
    cti_str text = {.alloc = alloc};
    ct_status st = CT_OK;
    applied->lines = ct_arena_alloc(w->arena, (w->n + 1) * sizeof *applied->lines, err);
    if (applied->lines == NULL) {
        return CT_ERR_MEMORY;
    }
    for (size_t i = 0; st == CT_OK && i < w->n; i++) {
        const cti_claim *c = &w->claims[i];
        cti_str_reset(&text);
        cti_str_printf(&text, "[Override] %s: %s %s.Config -> %s.Config", c->row->name, c->fqn, c->node->cls->name,
                       c->with->cls->name);
        st = add_arguments(c->entry->args_json, &text, err);
        if (st == CT_OK) {
            st = add_line(w->arena, applied, &text, err);
        }
    }
    if (st == CT_OK && w->n > 0) {
        cti_str_reset(&text);
        cti_str_printf(&text, "Applied %zu override(s)", w->n);
        st = add_line(w->arena, applied, &text, err);
    }
    cti_str_deinit(&text);
    return st;
}
