/* SPDX-License-Identifier: Apache-2.0 */
/* Settings as a file that --config takes back. */
#include <math.h>
#include <string.h>

#include "base/fields.h"
#include "config/config_internal.h"

static bool is_utf8(const char *text)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + strlen(text);
    while (p < end) {
        const int n = cti_utf8_len(p, end);
        if (n <= 0) {
            return false;
        }
        p += n;
    }
    return true;
}

static ct_source source_of(const cti_setting *s)
{
    return (ct_source)s->component->sources[s->field - s->component->cls->fields];
}

/* Files hold UTF-8: a text of other bytes would come back as another one. */
static ct_status check_texts(ct_tree *tree, const cti_settings *settings, ct_err *err)
{
    for (size_t i = 0; i < settings->n; i++) {
        const cti_setting *s = &settings->items[i];
        const char *text = ct_field_text(s->field, s->component->values, ct_tree_arena(tree), err);
        if (text == NULL) {
            return CT_ERR_MEMORY;
        }
        if (!is_utf8(text)) {
            return CT_FAIL(err, CT_ERR_USAGE, "%s: '%.160s' is no UTF-8 and cannot be saved", s->path, text);
        }
    }
    return CT_OK;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

static ct_status no_memory(ct_err *err)
{
    return CT_FAIL(err, CT_ERR_MEMORY, "no memory for the settings as a file");
}

static json_t *given_json(const cti_settings *settings)
{
    json_t *given = json_array();
    for (size_t i = 0; given != NULL && i < settings->n; i++) {
        if (source_of(&settings->items[i]) > CT_SOURCE_REGISTRY &&
            json_array_append_new(given, json_string(settings->items[i].path)) != 0) {
            json_decref(given);
            return NULL;
        }
    }
    return given;
}

ct_status cti_config_file_json(ct_tree *tree, ct_component *root, const char *module, const char *config, json_t **out_json,
                               ct_err *err)
{
    cti_settings settings;
    CT_TRY(cti_settings_list(tree, root, &settings, err));
    CT_TRY(check_texts(tree, &settings, err));
    json_t *values;
    CT_TRY(cti_config_json(tree, root, &values, err));
    json_t *file = json_object();
    const bool ok = file != NULL && json_object_set_new(file, "module", json_string(module)) == 0 &&
                    json_object_set_new(file, "base", json_string(config)) == 0 &&
                    json_object_set_new(file, "given", given_json(&settings)) == 0 && json_object_update(file, values) == 0;
    json_decref(values);
    if (!ok) {
        json_decref(file);
        return no_memory(err);
    }
    *out_json = file;
    return CT_OK;
}

/* ---- YAML ------------------------------------------------------------------------------------------------------ */

/* Text in double quotes: what is not a printable character of every YAML reader is escaped. */
static void add_text(cti_str *out, const char *text)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + strlen(text);
    cti_str_add_char(out, '"');
    while (p < end) {
        uint32_t cp = 0;
        const int n = cti_utf8_decode(p, end, &cp);
        const bool odd = cp < ' ' || (cp >= 0x7f && cp < 0xa0) || cp == 0x2028 || cp == 0x2029 || cp == 0xfeff || (cp & 0xfffe) == 0xfffe;
        if (n <= 0) { /* checked before */
            break;
        }
        if (cp == '"' || cp == '\\') {
            cti_str_printf(out, "\\%c", (char)cp);
        } else if (cp == '\n' || cp == '\t') {
            cti_str_add(out, cp == '\n' ? "\\n" : "\\t");
        } else if (odd) {
            cti_str_printf(out, cp < 0x100 ? "\\x%02x" : cp < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)cp);
        } else {
            cti_str_add_n(out, p, (size_t)n);
        }
        p += n;
    }
    cti_str_add_char(out, '"');
}

/* A word that no reader takes for anything else goes without quotes. */
static bool is_plain_word(const char *text)
{
    static const char *const taken[] = {"true", "false", "yes", "no", "on", "off", "null", "none", "y", "n", "inf", "nan"};
    const unsigned char first = (unsigned char)text[0];
    if (!((first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z'))) {
        return false;
    }
    for (const char *p = text; *p != '\0'; p++) {
        const bool word = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') || strchr("_-./", *p) != NULL;
        if (!word) {
            return false;
        }
    }
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        size_t n = 0;
        while (taken[i][n] != '\0' && (text[n] | 0x20) == taken[i][n]) {
            n++;
        }
        if (taken[i][n] == '\0' && text[n] == '\0') {
            return false;
        }
    }
    return true;
}

static void add_word(cti_str *out, const char *text)
{
    if (is_plain_word(text)) {
        cti_str_add(out, text);
    } else {
        add_text(out, text);
    }
}

static void add_strings(cti_str *out, ct_str_list list)
{
    cti_str_add_char(out, '[');
    for (int64_t i = 0; i < list.n; i++) {
        cti_str_add(out, i > 0 ? ", " : "");
        add_word(out, list.items[i]);
    }
    cti_str_add_char(out, ']');
}

static void add_real(cti_str *out, double value)
{
    char buf[32];
    cti_str_add(out, isnan(value) ? ".nan" : isinf(value) ? (value > 0 ? ".inf" : "-.inf") : cti_format_f64(value, buf));
}

static ct_status add_value(cti_str *out, const ct_field *field, const void *values, ct_arena *arena, ct_err *err)
{
    const void *at = (const char *)values + field->offset;
    const ct_f64_list *reals = at;
    const ct_i64_list *wholes = at;
    const ct_str_lists *lists = at;
    const ct_opt_f64 *real = at;
    switch (field->kind) {
    case CT_FIELD_BOOL:
    case CT_FIELD_I64:
    case CT_FIELD_OPT_I64: {
        const char *word = ct_field_text(field, values, arena, err);
        if (word == NULL) {
            return CT_ERR_MEMORY;
        }
        cti_str_add(out, cti_str_eq(word, "None") ? "null" : word);
        break;
    }
    case CT_FIELD_F64:
        add_real(out, *(const double *)at);
        break;
    case CT_FIELD_OPT_F64:
        if (real->is_set) {
            add_real(out, real->value);
        } else {
            cti_str_add(out, "null");
        }
        break;
    case CT_FIELD_OPT_STR:
    case CT_FIELD_STR:
    case CT_FIELD_CHOICE: {
        const char *text = *(const char *const *)at;
        if (text == NULL && field->kind == CT_FIELD_OPT_STR) {
            cti_str_add(out, "null");
        } else {
            add_word(out, text != NULL ? text : "");
        }
        break;
    }
    case CT_FIELD_STR_LIST:
    case CT_FIELD_TOKENS:
        add_strings(out, *(const ct_str_list *)at);
        break;
    case CT_FIELD_STR_LISTS:
        if (!lists->is_set) {
            cti_str_add(out, "null");
            break;
        }
        cti_str_add_char(out, '[');
        for (int64_t i = 0; i < lists->n; i++) {
            cti_str_add(out, i > 0 ? ", " : "");
            add_strings(out, lists->items[i]);
        }
        cti_str_add_char(out, ']');
        break;
    case CT_FIELD_I64_LIST:
    case CT_FIELD_F64_LIST:
        cti_str_add_char(out, '[');
        for (int64_t i = 0; i < (field->kind == CT_FIELD_I64_LIST ? wholes->n : reals->n); i++) {
            cti_str_add(out, i > 0 ? ", " : "");
            if (field->kind == CT_FIELD_I64_LIST) {
                cti_str_printf(out, "%lld", (long long)wholes->items[i]);
            } else {
                add_real(out, reals->items[i]);
            }
        }
        cti_str_add_char(out, ']');
        break;
    case CT_FIELD_KIND_COUNT:
        break;
    }
    return CT_OK;
}

typedef struct writer {
    ct_arena *arena;
    cti_str *out;
    ct_err *err;
} writer;

/* The values of a component and of those below it. Below a hidden one only what was asked for: the rest follows. */
static ct_status add_component(writer *w, const ct_component *c, int indent, bool is_hidden)
{
    is_hidden = is_hidden || c->is_hidden;
    const bool names_class = c->parent != NULL && (cti_str_eq(c->name, "activation_checkpoint") || cti_str_eq(c->name, "loss"));
    const size_t begin = w->out->len;
    const bool in_list = c->parent != NULL && c->parent->cls == &ct_class_list;
    if (in_list && !is_hidden) { /* all its elements: as many as there are */
        cti_str_printf(w->out, "%*s-\n", indent - 2, "");
    } else if (c->parent != NULL) {
        cti_str_printf(w->out, in_list ? "%*s\"%s\":\n" : "%*s%s:\n", indent - 2, "", c->name);
    }
    const size_t empty = w->out->len;
    if (names_class) {
        cti_str_printf(w->out, "%*sclass: %s\n", indent, "", c->cls->name);
    }
    for (int32_t i = 0; i < c->cls->n_fields; i++) {
        const ct_field *field = &c->cls->fields[i];
        if (is_hidden && (c->sources[i] <= CT_SOURCE_REGISTRY || (field->flags & CT_SET_HIDDEN) != 0)) {
            continue;
        }
        cti_str_printf(w->out, "%*s%s: ", indent, "", field->name);
        CT_TRY(add_value(w->out, field, c->values, w->arena, w->err));
        cti_str_add_char(w->out, '\n');
    }
    for (int32_t i = 0; i < c->n_children; i++) {
        CT_TRY(add_component(w, c->children[i], c->parent != NULL ? indent + 2 : 2, is_hidden));
    }
    if (c->parent != NULL && w->out->len == empty && !w->out->failed) { /* nothing below it */
        w->out->len = begin;
        w->out->data[begin] = '\0';
    }
    return CT_OK;
}

ct_status cti_config_file_yaml(ct_tree *tree, ct_component *root, const char *module, const char *config, cti_str *out, ct_err *err)
{
    cti_settings settings;
    CT_TRY(cti_settings_list(tree, root, &settings, err));
    CT_TRY(check_texts(tree, &settings, err));
    cti_str_add(out, "# All settings of a run. `given` lists those that were asked for by name.\nmodule: ");
    add_word(out, module);
    cti_str_add(out, "\nbase: ");
    add_word(out, config);
    cti_str_add(out, "\ngiven:");
    bool any = false;
    for (size_t i = 0; i < settings.n; i++) {
        if (source_of(&settings.items[i]) > CT_SOURCE_REGISTRY) {
            cti_str_printf(out, "\n  - %s", settings.items[i].path);
            any = true;
        }
    }
    cti_str_add(out, any ? "\n\n" : " []\n\n");
    writer w = {ct_tree_arena(tree), out, err};
    CT_TRY(add_component(&w, root, 0, false));
    return cti_str_check(out, err);
}
