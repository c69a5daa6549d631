/* SPDX-License-Identifier: Apache-2.0 */
/* Printed forms of a tree: JSON, JSON and text with sources, and the hash of what the plan depends on. */
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "config/config_internal.h"

/* ---- one value as JSON ----------------------------------------------------------------------------------------- */

/* Text may come from a command line and hold any bytes; JSON holds UTF-8: what is none becomes U+FFFD. */
static json_t *json_text(const char *text, ct_arena *arena, ct_err *err)
{
    if (text == NULL) {
        return json_null();
    }
    const unsigned char *p = (const unsigned char *)text;
    const unsigned char *end = p + strlen(text);
    char *clean = ct_arena_alloc(arena, 3 * strlen(text) + 1, err);
    if (clean == NULL) {
        return NULL;
    }
    char *out = clean;
    while (p < end) {
        const int n = cti_utf8_len(p, end);
        if (n > 0) {
            memcpy(out, p, (size_t)n);
            out += n;
            p += n;
        } else {
            memcpy(out, "\xef\xbf\xbd", 3);
            out += 3;
            p++;
        }
    }
    *out = '\0';
    return json_string(clean);
}

/* JSON has no inf and no nan: those are text. */
static json_t *json_number(double value)
{
    char buf[32];
    return isfinite(value) ? json_real(value) : json_string(cti_format_f64(value, buf));
}

/* Appends and gives up the reference; false where memory ran out. */
static bool append(json_t *array, json_t *item)
{
    return item != NULL && json_array_append_new(array, item) == 0;
}

static json_t *json_str_list(ct_str_list list, ct_arena *arena, ct_err *err)
{
    json_t *array = json_array();
    for (int64_t i = 0; array != NULL && i < list.n; i++) {
        if (!append(array, json_text(list.items[i], arena, err))) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *json_list(const ct_field *field, const void *at, ct_arena *arena, ct_err *err)
{
    const ct_i64_list *whole = at;
    const ct_f64_list *real = at;
    const ct_str_lists *lists = at;
    int64_t n = 0;
    if (field->kind == CT_FIELD_STR_LISTS) {
        if (!lists->is_set) {
            return json_null();
        }
        n = lists->n;
    } else {
        n = field->kind == CT_FIELD_I64_LIST ? whole->n : real->n;
    }
    json_t *array = json_array();
    for (int64_t i = 0; array != NULL && i < n; i++) {
        json_t *item;
        if (field->kind == CT_FIELD_STR_LISTS) {
            item = json_str_list(lists->items[i], arena, err);
        } else {
            item = field->kind == CT_FIELD_I64_LIST ? json_integer(whole->items[i]) : json_number(real->items[i]);
        }
        if (!append(array, item)) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *json_value(const ct_field *field, const void *values, ct_arena *arena, ct_err *err)
{
    const void *at = (const char *)values + field->offset;
    switch (field->kind) {
    case CT_FIELD_BOOL:
        return json_boolean(*(const bool *)at);
    case CT_FIELD_I64:
        return json_integer(*(const int64_t *)at);
    case CT_FIELD_F64:
        return json_number(*(const double *)at);
    case CT_FIELD_STR:
    case CT_FIELD_CHOICE:
    case CT_FIELD_OPT_STR:
        return json_text(*(const char *const *)at, arena, err);
    case CT_FIELD_OPT_I64: {
        const ct_opt_i64 *v = at;
        return v->is_set ? json_integer(v->value) : json_null();
    }
    case CT_FIELD_OPT_F64: {
        const ct_opt_f64 *v = at;
        return v->is_set ? json_number(v->value) : json_null();
    }
    case CT_FIELD_STR_LIST:
    case CT_FIELD_TOKENS:
        return json_str_list(*(const ct_str_list *)at, arena, err);
    case CT_FIELD_STR_LISTS:
    case CT_FIELD_I64_LIST:
    case CT_FIELD_F64_LIST:
        return json_list(field, at, arena, err);
    case CT_FIELD_KIND_COUNT:
        break;
    }
    return NULL;
}

static ct_status no_memory(ct_err *err)
{
    return CT_FAIL(err, CT_ERR_MEMORY, "no memory for the settings as JSON");
}

/* ---- the tree -------------------------------------------------------------------------------------------------- */

/* A list whose children are named 0, 1, 2 … */
static bool is_array(const ct_component *component)
{
    if (component->cls != &ct_class_list || component->n_children == 0) {
        return false;
    }
    for (int32_t i = 0; i < component->n_children; i++) {
        int64_t index;
        if (!cti_parse_i64(component->children[i]->name, &index) || index != i) {
            return false;
        }
    }
    return true;
}

static ct_status tree_json(ct_arena *arena, const ct_component *component, bool is_hidden, json_t **out, ct_err *err)
{
    is_hidden = is_hidden || component->is_hidden;
    const bool array = is_array(component);
    json_t *json = array ? json_array() : json_object();
    if (json == NULL) {
        return no_memory(err);
    }
    ct_status st = CT_OK;
    const ct_class *cls = component->cls;
    const bool names_class = cls != &ct_class_list && (is_hidden || cls->base != NULL ||
                                                       cti_str_eq(component->name, "activation_checkpoint") ||
                                                       cti_str_eq(component->name, "model_spec") ||
                                                       cti_str_eq(component->name, "loss"));
    if (names_class && json_object_set_new(json, "class", json_string(cls->name)) != 0) {
        st = no_memory(err);
    }
    for (int32_t i = 0; st == CT_OK && i < cls->n_fields; i++) {
        json_t *value = json_value(&cls->fields[i], component->values, arena, err);
        if (value == NULL || json_object_set_new(json, cls->fields[i].name, value) != 0) {
            st = no_memory(err);
        }
    }
    for (int32_t i = 0; st == CT_OK && i < component->n_children; i++) {
        json_t *child = NULL;
        st = tree_json(arena, component->children[i], is_hidden, &child, err);
        if (st == CT_OK && (array ? json_array_append_new(json, child)
                                  : json_object_set_new(json, component->children[i]->name, child)) != 0) {
            st = no_memory(err);
        }
    }
    if (st != CT_OK) {
        json_decref(json);
        return st;
    }
    *out = json;
    return CT_OK;
}

ct_status cti_config_json(ct_tree *tree, ct_component *root, json_t **out_json, ct_err *err)
{
    return tree_json(ct_tree_arena(tree), root, false, out_json, err);
}

ct_status cti_config_json_sources(ct_tree *tree, ct_component *root, json_t **out_json, ct_err *err)
{
    cti_settings settings;
    CT_TRY(cti_settings_list(tree, root, &settings, err));
    json_t *json = json_object();
    if (json == NULL) {
        return no_memory(err);
    }
    for (size_t i = 0; i < settings.n; i++) {
        const cti_setting *s = &settings.items[i];
        json_t *entry = json_object();
        json_t *value = json_value(s->field, s->component->values, ct_tree_arena(tree), err);
        const bool ok = entry != NULL && value != NULL && json_object_set(entry, "value", value) == 0 &&
                        json_object_set_new(entry, "source", json_string(cti_setting_source(s))) == 0 &&
                        json_object_set(json, s->path, entry) == 0;
        json_decref(value);
        json_decref(entry);
        if (!ok) {
            json_decref(json);
            return no_memory(err);
        }
    }
    *out_json = json;
    return CT_OK;
}

ct_status cti_config_text(ct_tree *tree, ct_component *root, bool all, cti_str *out, ct_err *err)
{
    cti_settings settings;
    CT_TRY(cti_settings_list(tree, root, &settings, err));
    for (size_t i = 0; i < settings.n; i++) {
        const cti_setting *s = &settings.items[i];
        if (!all && !s->is_listed && s->component->sources[s->field - s->component->cls->fields] <= CT_SOURCE_REGISTRY) {
            continue;
        }
        const char *value = ct_field_text(s->field, s->component->values, ct_tree_arena(tree), err);
        if (value == NULL) {
            return CT_ERR_MEMORY;
        }
        cti_str_printf(out, "%s = ", s->path);
        for (const char *p = value; *p != '\0'; p++) { /* one line, whatever the text holds */
            cti_str_printf(out, (unsigned char)*p < ' ' || *p == 0x7f ? "\\x%02x" : "%c", (unsigned)(unsigned char)*p);
        }
        cti_str_printf(out, "  (%s)\n", cti_setting_source(s));
    }
    return cti_str_check(out, err);
}

/* ---- changes --------------------------------------------------------------------------------------------------- */

/* The saved value of a setting; NULL where there is none. */
static const json_t *saved_value(const json_t *saved, const char *path)
{
    char name[128];
    while (saved != NULL && *path != '\0') {
        const size_t n = strcspn(path, ".");
        int64_t index;
        if (n >= sizeof name) {
            return NULL;
        }
        memcpy(name, path, n);
        name[n] = '\0';
        saved = json_is_array(saved) ? (cti_parse_i64(name, &index) ? json_array_get(saved, (size_t)index) : NULL)
                                     : json_object_get(saved, name);
        path += n + (path[n] == '.');
    }
    return saved;
}

/* The layout is not among them: any one reads a checkpoint of any other. */
static bool shapes_training(const cti_setting *s)
{
    static const char *const sections[] = {"training.", "optimizer.", "lr_scheduler.", "dataloader.", "tokenizer.", "model_spec.", "loss.", "override."};
    bool is = cti_str_eq(s->path, "debug.seed");
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        is = is || cti_starts_with(s->path, sections[i]);
    }
    return is && s->is_listed && (s->field->flags & CTI_SET_NO_EFFECT) == 0;
}

static ct_status add_json(cti_str *out, const json_t *json, ct_err *err)
{
    char *text = NULL;
    CT_TRY(cti_json_dump(out->alloc, json, 0, &text, err));
    cti_str_add_n(out, text, strcspn(text, "\n"));
    ct_alloc_free(out->alloc, text);
    return CT_OK;
}

ct_status cti_config_changes(ct_tree *tree, ct_component *root, const json_t *saved, cti_str *out, ct_err *err)
{
    cti_settings settings;
    CT_TRY(cti_settings_list(tree, root, &settings, err));
    for (size_t i = 0; i < settings.n; i++) {
        const cti_setting *s = &settings.items[i];
        const json_t *before = shapes_training(s) ? saved_value(saved, s->path) : NULL;
        if (before == NULL) {
            continue;
        }
        json_t *now = json_value(s->field, s->component->values, ct_tree_arena(tree), err);
        if (now == NULL) {
            return no_memory(err);
        }
        ct_status st = CT_OK;
        if (json_equal(before, now) == 0) {
            cti_str_printf(out, "%s%s ", out->len > 0 ? ", " : "", s->path);
            st = add_json(out, before, err);
            cti_str_add(out, " -> ");
            st = st == CT_OK ? add_json(out, now, err) : st;
        }
        json_decref(now);
        CT_TRY(st);
    }
    return cti_str_check(out, err);
}

/* Ranks that differ in them would call different collectives, or train different models. Paths may differ from host to host. */
static bool is_shared(const cti_setting *s)
{
    static const char *const sections[] = {"training.", "optimizer.", "lr_scheduler.", "checkpoint.", "validator.", "debug.seed"};
    bool is = false;
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        is = is || cti_starts_with(s->path, sections[i]);
    }
    const bool is_text = s->field->kind == CT_FIELD_STR || s->field->kind == CT_FIELD_OPT_STR;
    return (s->field->flags & CT_SET_PLAN) != 0 || (is && !is_text && (s->field->flags & CTI_SET_NO_EFFECT) == 0);
}

ct_status cti_config_shared(ct_tree *tree, ct_component *root, cti_str *out, ct_err *err)
{
    cti_settings settings;
    const ct_component *last = NULL;
    CT_TRY(cti_settings_list(tree, root, &settings, err));
    for (size_t i = 0; i < settings.n; i++) {
        const cti_setting *s = &settings.items[i];
        const char *dot = strrchr(s->path, '.');
        if (s->component != last && dot != NULL) {
            cti_str_printf(out, "%.*s=%s\n", (int)(dot - s->path), s->path, s->component->cls->name);
        }
        last = s->component;
        if (!is_shared(s)) {
            continue;
        }
        const char *value = ct_field_text(s->field, s->component->values, ct_tree_arena(tree), err);
        if (value == NULL) {
            return CT_ERR_MEMORY;
        }
        cti_str_printf(out, "%s=", s->path);
        for (const char *p = value; *p != '\0'; p++) {
            cti_str_add_char(out, *p == '\n' ? ' ' : *p);
        }
        cti_str_add_char(out, '\n');
    }
    return cti_str_check(out, err);
}

/* ---- hash of the plan ------------------------------------------------------------------------------------------ */

static ct_status add_plan(ct_tree *tree, const ct_component *component, cti_str *out, ct_err *err)
{
    const ct_class *cls = component->cls;
    cti_str_printf(out, "%s{%s\n", component->name, cls->name);
    for (int32_t i = 0; i < cls->n_fields; i++) {
        const ct_field *field = &cls->fields[i];
        if ((field->flags & CT_SET_PLAN) == 0) {
            continue;
        }
        const char *value = ct_field_text(field, component->values, ct_tree_arena(tree), err);
        if (value == NULL) {
            return CT_ERR_MEMORY;
        }
        cti_str_printf(out, "%s=%zu:%s\n", field->name, strlen(value), value);
    }
    for (int32_t i = 0; i < component->n_children; i++) {
        CT_TRY(add_plan(tree, component->children[i], out, err));
    }
    cti_str_add(out, "}\n");
    return CT_OK;
}

ct_status cti_config_plan_hash(ct_tree *tree, ct_component *root, char out_hex[33], ct_err *err)
{
    cti_str plan = {.alloc = cti_tree_alloc(tree)};
    ct_status st = add_plan(tree, root, &plan, err);
    if (st == CT_OK) {
        st = cti_str_check(&plan, err);
    }
    if (st == CT_OK) {
        cti_hash128_hex(plan.data, plan.len, out_hex);
    }
    cti_str_deinit(&plan);
    return st;
}
