/* SPDX-License-Identifier: Apache-2.0 */
/* Files of settings: the chain that base: makes, and what a file says into the tree. */
#include "config/files.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/fields.h"
#include "base/nearest.h"
#include "config/config_internal.h"

enum { MAX_CHAIN = 32, MAX_NAMES = 256, MAX_GIVEN = 10000, MAX_PROBLEMS = 64 };

bool cti_config_is_file(const char *name)
{
    return strchr(name, '/') != NULL || cti_ends_with(name, ".yaml") || cti_ends_with(name, ".yml") || cti_ends_with(name, ".json");
}

/* ---- the chain ------------------------------------------------------------------------------------------------- */

typedef struct chain {
    ct_tree *tree;
    ct_arena *arena;
    cti_config_files files;     /* items: nearest first until the end */
    char *real[MAX_CHAIN];      /* realpath()s: free() */
    const char *why;            /* " (named by a.yaml:1:7)" */
    cti_problems *problems;
    ct_err *err;
} chain;

/* `name` next to the file `from`. */
static const char *beside(chain *c, const char *from, const char *name)
{
    const char *slash = from != NULL && name[0] != '/' ? strrchr(from, '/') : NULL;
    return slash == NULL ? name : ct_arena_printf(c->arena, c->err, "%.*s%s", (int)(slash + 1 - from), from, name);
}

/* Whether the chain has been at this file; then a problem names the way round. */
static ct_status check_cycle(chain *c, const char *path, const char *real, bool *out_is_new)
{
    size_t first = 0;
    while (first < c->files.n && !cti_str_eq(c->real[first], real)) {
        first++;
    }
    *out_is_new = first == c->files.n;
    if (*out_is_new) {
        return CT_OK;
    }
    const char *way = "";
    for (size_t i = first; i < c->files.n && way != NULL; i++) {
        way = ct_arena_printf(c->arena, c->err, "%s%s -> ", way, c->files.items[i].name);
    }
    if (way == NULL) {
        return CT_ERR_MEMORY;
    }
    cti_problem_add(c->problems, "%s: base: leads back to a file that it began from: %s%s", c->files.items[c->files.n - 1].name, way, path);
    return CT_OK;
}

/* A text under one of the keys that are no settings; NULL where it is absent or wrong. */
static const char *own_key(chain *c, const cti_config_file *file, const char *key, const char **out_place)
{
    const cti_doc *at;
    const cti_doc *value = cti_doc_get(file->doc, key, &at);
    if (value == NULL) {
        return NULL;
    }
    if (value->kind != CTI_DOC_SCALAR || value->text[0] == '\0' || cti_doc_is_null(value)) {
        cti_problem_add(c->problems, "%s:%" PRId32 ":%" PRId32 ": %s: wanted a name", file->name, value->line, value->column, key);
        return NULL;
    }
    *out_place = ct_arena_printf(c->arena, c->err, "%s:%" PRId32 ":%" PRId32, file->name, value->line, value->column);
    return value->text;
}

/* Reads the file at `path` to the end of the chain; *out_next names its base where that is a file too. */
static ct_status read_one(chain *c, const char *path, const char **out_next)
{
    char *text;
    size_t size;
    ct_err why = {0};
    bool is_new = false;
    *out_next = NULL;
    char *real = realpath(path, NULL);
    if (real != NULL) {
        const ct_status st = check_cycle(c, path, real, &is_new);
        if (st != CT_OK || !is_new) {
            free(real);
            return st;
        }
    }
    if (c->files.n == MAX_CHAIN) {
        free(real);
        cti_problem_add(c->problems, "%s: base: leads through more than %d files", c->files.items[0].name, MAX_CHAIN);
        return CT_OK;
    }
    c->real[c->files.n] = real;
    cti_config_file *file = &c->files.items[c->files.n++];
    *file = (cti_config_file){.name = path, .source = c->files.n == 1 ? CT_SOURCE_FILE : CT_SOURCE_BASE};
    const ct_status st = cti_file_read(cti_tree_alloc(c->tree), path, CTI_DOC_MAX_BYTES, &text, &size, &why);
    if (st == CT_ERR_MEMORY) {
        return CT_FAIL(c->err, st, "%s", why.message);
    }
    if (st != CT_OK) {
        cti_problem_add(c->problems, "--config: %s%s", why.message, c->why);
        return CT_OK;
    }
    cti_doc *doc;
    const ct_status parsed = cti_doc_parse(c->arena, path, text, size, &doc, c->problems, c->err);
    ct_alloc_free(cti_tree_alloc(c->tree), text);
    CT_TRY(parsed);
    if (doc == NULL) {
        return CT_OK;
    }
    if (doc->kind != CTI_DOC_MAP) {
        cti_problem_add(c->problems, "%s:%" PRId32 ":%" PRId32 ": wanted sections and settings, such as training: {steps: 10}", path,
                        doc->line, doc->column);
        return CT_OK;
    }
    file->doc = doc;
    const char *place = NULL, *unused;
    const char *base = own_key(c, file, "base", &place);
    const char *module = own_key(c, file, "module", &unused);
    c->files.module = c->files.module != NULL ? c->files.module : module;
    if (base == NULL && cti_doc_get(doc, "base", NULL) == NULL) {
        cti_problem_add(c->problems, "%s: base: is missing: the registry function or the file that this one goes on from, such as base: %s",
                        path, "llama3_debugmodel");
    } else if (base != NULL && cti_config_is_file(base)) {
        *out_next = beside(c, path, base);
        c->why = ct_arena_printf(c->arena, c->err, " (the base that %s names)", place != NULL ? place : path);
        return *out_next != NULL && c->why != NULL ? CT_OK : CT_ERR_MEMORY;
    } else {
        c->files.base = base;
        c->files.base_place = place;
    }
    return CT_OK;
}

ct_status cti_config_files_read(ct_tree *tree, const char *path, cti_config_files *out_files, cti_problems *problems,
                                ct_err *err)
{
    ct_arena *arena = ct_tree_arena(tree);
    chain c = {.tree = tree, .arena = arena, .why = "", .problems = problems, .err = err};
    ct_status st = CT_OK;
    c.files.items = ct_arena_alloc(arena, MAX_CHAIN * sizeof *c.files.items, err);
    if (c.files.items == NULL) {
        return CT_ERR_MEMORY;
    }
    const char *next = ct_arena_strdup(arena, path, err);
    st = next == NULL ? CT_ERR_MEMORY : CT_OK;
    while (st == CT_OK && next != NULL) {
        st = read_one(&c, next, &next);
    }
    for (size_t i = 0; i < c.files.n; i++) {
        free(c.real[i]);
    }
    for (size_t i = 0; i < c.files.n / 2; i++) { /* lowest precedence first */
        const cti_config_file swap = c.files.items[i];
        c.files.items[i] = c.files.items[c.files.n - 1 - i];
        c.files.items[c.files.n - 1 - i] = swap;
    }
    *out_files = c.files;
    return st;
}

/* ---- a file into the tree -------------------------------------------------------------------------------------- */

typedef struct filler {
    ct_tree *tree;
    ct_arena *arena;
    const cti_config_file *file;
    const cti_doc *given; /* NULL: all that the file says was asked for */
    ct_component *root;
    cti_problems *problems;
    ct_err *err;
} filler;

static ct_status fill_map(filler *f, ct_component *component, const cti_doc *map);

static const char *path_of(filler *f, const ct_component *component, const char *name)
{
    const char *fqn = ct_component_fqn(f->tree, component, f->err);
    return fqn == NULL ? NULL : ct_arena_printf(f->arena, f->err, "%s%s%s", fqn, fqn[0] != '\0' && name[0] != '\0' ? "." : "", name);
}

/* "my.yaml:3:5: training.steps: " and the sentence. */
static ct_status complain(filler *f, const cti_doc *at, const ct_component *component, const char *name, const char *sentence)
{
    const char *path = path_of(f, component, name);
    if (path == NULL) {
        return CT_ERR_MEMORY;
    }
    cti_problem_add(f->problems, "%s:%" PRId32 ":%" PRId32 ": %.160s%s%s", f->file->name, at->line, at->column, path,
                    path[0] != '\0' ? ": " : "", sentence);
    return CT_OK;
}

static bool was_given(const filler *f, const char *path)
{
    for (size_t i = 0; f->given != NULL && i < f->given->n; i++) {
        if (f->given->items[i]->kind == CTI_DOC_SCALAR && cti_name_eq(f->given->items[i]->text, path)) {
            return true;
        }
    }
    return f->given == NULL;
}

/* A value that the registry function has put there stands in saved files too: the same one is taken. */
static ct_status check_hidden(filler *f, const ct_component *component, const ct_field *field, const cti_doc *value, const char *path)
{
    void *copy = ct_arena_alloc(f->arena, component->cls->values_bytes + 1, f->err);
    ct_err why = {0};
    if (copy == NULL) {
        return CT_ERR_MEMORY;
    }
    memcpy(copy, component->values, component->cls->values_bytes);
    const ct_status st = cti_field_from_doc(field, copy, value, f->arena, &why);
    if (st == CT_ERR_MEMORY) {
        return CT_FAIL(f->err, st, "%s", why.message);
    }
    if (st != CT_OK || !ct_field_equal(field, copy, component->values)) {
        cti_problem_add(f->problems, "%s:%" PRId32 ":%" PRId32 ": %s: is set by the registry function: choose another base",
                        f->file->name, value->line, value->column, path);
    }
    return CT_OK;
}

static ct_status fill_field(filler *f, ct_component *component, const ct_field *field, const cti_doc *key, const cti_doc *value)
{
    const ptrdiff_t i = field - component->cls->fields;
    const char *path = path_of(f, component, field->name);
    if (path == NULL) {
        return CT_ERR_MEMORY;
    }
    if ((field->flags & CT_SET_HIDDEN) != 0) {
        return check_hidden(f, component, field, value, path);
    }
    if (component->origins == NULL) {
        component->origins = ct_arena_alloc(f->arena, ((size_t)component->cls->n_fields + 1) * sizeof *component->origins, f->err);
        if (component->origins == NULL) {
            return CT_ERR_MEMORY;
        }
    }
    const size_t n_name = strlen(f->file->name);
    const char *before = component->origins[i];
    if (before != NULL && strncmp(before, f->file->name, n_name) == 0 && before[n_name] == ':') { /* dotted or short, and long */
        cti_problem_add(f->problems, "%s:%" PRId32 ":%" PRId32 ": %s: is set already, at %s", f->file->name, key->line, key->column, path, before);
        return CT_OK;
    }
    ct_err why = {0};
    const ct_status st = cti_field_from_doc(field, component->values, value, f->arena, &why);
    if (st == CT_ERR_MEMORY) {
        return CT_FAIL(f->err, st, "%s", why.message);
    }
    if (st != CT_OK) {
        cti_problem_add(f->problems, "%s:%" PRId32 ":%" PRId32 ": %s: %s", f->file->name, value->line, value->column, path, why.message);
        cti_problem_refused(f->problems, field);
        return CT_OK;
    }
    if (!was_given(f, path)) {
        component->sources[i] = CT_SOURCE_REGISTRY;
        return CT_OK;
    }
    component->sources[i] = (uint8_t)f->file->source;
    component->origins[i] = ct_arena_printf(f->arena, f->err, "%s:%" PRId32, f->file->name, key->line);
    return component->origins[i] != NULL ? CT_OK : CT_ERR_MEMORY;
}

/* Param groups may be more or fewer than the registry function's: a new one begins as a copy of the first. */
static ct_status fit_list(filler *f, ct_component *list, const cti_doc *value)
{
    if (list->n_children == 0 || list->children[0]->cls != &cti_param_group_class || value->n == 0 || value->n > CTI_MAX_PARAM_GROUPS) {
        return CT_OK;
    }
    list->n_children = value->n < (size_t)list->n_children ? (int32_t)value->n : list->n_children;
    while ((size_t)list->n_children < value->n) {
        ct_component *more;
        const char *name = ct_arena_printf(f->arena, f->err, "%" PRId32, list->n_children);
        if (name == NULL) {
            return CT_ERR_MEMORY;
        }
        CT_TRY(ct_component_derive(f->tree, list->children[0], list->children[0]->cls, &more, f->err));
        CT_TRY(ct_component_add(f->tree, list, name, more, f->err));
    }
    return CT_OK;
}

static ct_status fill_list(filler *f, ct_component *list, const cti_doc *value)
{
    CT_TRY(fit_list(f, list, value));
    if ((size_t)list->n_children != value->n) {
        const bool is_groups = list->n_children > 0 && list->children[0]->cls == &cti_param_group_class;
        const char *sentence = is_groups ? ct_arena_printf(f->arena, f->err, "has %zu entries, wanted 1 to %d", value->n, CTI_MAX_PARAM_GROUPS)
                                         : ct_arena_printf(f->arena, f->err, "has %zu entries, wanted %" PRId32, value->n, list->n_children);
        return sentence == NULL ? CT_ERR_MEMORY : complain(f, value, list, "", sentence);
    }
    for (int32_t i = 0; i < list->n_children; i++) {
        const cti_doc *item = value->items[i];
        if (item->kind == CTI_DOC_MAP) {
            CT_TRY(fill_map(f, list->children[i], item));
        } else {
            CT_TRY(complain(f, item, list->children[i], "", "wanted keys and values"));
        }
    }
    return CT_OK;
}

/* The word that chooses a section's class: activation_checkpoint: full, or class: FullAC below it; loss: {class: …}. */
static ct_status choose_class(filler *f, ct_component *child, const cti_doc *value, ct_component **out)
{
    const bool is_ac = child->parent == f->root && cti_str_eq(child->name, "activation_checkpoint");
    const bool is_loss = child->parent == f->root && cti_str_eq(child->name, "loss");
    const cti_doc *word = value->kind == CTI_DOC_MAP ? cti_doc_get(value, "class", NULL) : is_ac ? value : NULL;
    *out = child;
    if (word == NULL) {
        return CT_OK;
    }
    if (word->kind != CTI_DOC_SCALAR || cti_doc_is_null(word)) { /* `none` is a word and no null */
        return complain(f, word, child, "", is_ac ? "wanted selective, full, memory-budget or none" : "class: wanted a name");
    }
    if (cti_str_eq(word->text, child->cls->name)) {
        return CT_OK;
    }
    const ct_class *cls = NULL;
    for (int i = 0; is_ac && i < cti_n_ac_kinds; i++) {
        cls = cti_str_eq(word->text, cti_ac_kinds[i].cls->name) ? cti_ac_kinds[i].cls : cls;
    }
    if (is_ac && cls == NULL) {
        const char *given = ct_arena_printf(f->arena, f->err, "%s:%" PRId32 ":%" PRId32 ": activation_checkpoint", f->file->name, word->line, word->column);
        if (given == NULL) {
            return CT_ERR_MEMORY;
        }
        const cti_ac_kind *kind = cti_ac_kind_find(word->text, given, f->problems);
        cls = kind != NULL ? kind->cls : child->cls;
    }
    if (is_loss) {
        cls = cti_str_eq(word->text, cti_chunked_loss_class.name)    ? &cti_chunked_loss_class
              : cti_str_eq(word->text, cti_cross_entropy_class.name) ? &cti_cross_entropy_class
                                                                     : NULL;
    }
    if (cls == NULL) {
        return complain(f, word, child, "class",
                        is_loss ? "wanted ChunkedCELoss or CrossEntropyLoss" : "is another than the registry function's: choose another base");
    }
    if (is_loss) {
        CT_TRY(cti_set_loss(f->tree, f->root, cls, f->err));
    } else {
        CT_TRY(cti_set_ac(f->tree, f->root, cls, f->err));
    }
    *out = ct_component_child(f->root, is_ac ? "activation_checkpoint" : "loss");
    return CT_OK;
}

static ct_status fill_child(filler *f, ct_component *child, const cti_doc *value)
{
    CT_TRY(choose_class(f, child, value, &child));
    if (value->kind == CTI_DOC_LIST && child->cls == &ct_class_list) {
        return fill_list(f, child, value);
    }
    if (value->kind == CTI_DOC_MAP) {
        return fill_map(f, child, value);
    }
    const bool is_word = value->kind == CTI_DOC_SCALAR && child->parent == f->root && cti_str_eq(child->name, "activation_checkpoint");
    return is_word || cti_doc_is_null(value) ? CT_OK : complain(f, value, child, "", "is a section: wanted keys and values below it");
}

/* What the key was meant to be: a name that may stand here, else a setting of that name somewhere else. */
static ct_status unknown_key(filler *f, const ct_component *component, const cti_doc *key, const char *name)
{
    const char *names[MAX_NAMES];
    size_t n = 0;
    for (int32_t i = 0; i < component->cls->n_fields && n < MAX_NAMES; i++) {
        names[n++] = component->cls->fields[i].name;
    }
    for (int32_t i = 0; i < component->n_children && n < MAX_NAMES; i++) {
        names[n++] = component->children[i]->name;
    }
    char *word = ct_arena_strdup(f->arena, name, f->err);
    const char *path = path_of(f, component, name);
    if (word == NULL || path == NULL) {
        return CT_ERR_MEMORY;
    }
    for (char *p = word; *p != '\0'; p++) {
        *p = *p == '-' ? '_' : *p;
    }
    const int nearest = cti_nearest(word, names, n);
    const char *place = ct_arena_printf(f->arena, f->err, "%s:%" PRId32 ":%" PRId32 ": %.160s", f->file->name, key->line, key->column, path);
    if (place == NULL) {
        return CT_ERR_MEMORY;
    }
    if (nearest >= 0 && cti_moved_flag(path) == NULL) {
        cti_problem_add(f->problems, "%s: unknown key (nearest: %s)", place, names[nearest]);
        return CT_OK;
    }
    cti_settings settings;
    CT_TRY(cti_settings_list(f->tree, f->root, &settings, f->err));
    return cti_unknown_setting(f->tree, &settings, place, path, CTI_AS_KEY, f->problems, f->err);
}

/* The component above a path's last dot, and its field; false where there is none. */
static bool field_at(const filler *f, const char *path, ct_component **out_of, const ct_field **out_field)
{
    char above[128];
    const char *last = strrchr(path, '.');
    if (last == NULL || (size_t)(last - path) >= sizeof above) {
        return false;
    }
    memcpy(above, path, (size_t)(last - path));
    above[last - path] = '\0';
    ct_component *of = ct_component_find(f->root, above);
    *out_field = of != NULL ? ct_field_find(of->cls->fields, (size_t)of->cls->n_fields, last + 1) : NULL;
    *out_of = of;
    return *out_field != NULL;
}

/* A short name: the setting that it stands for, that of every param group where it is one of a group. */
static ct_status fill_alias(filler *f, const char *whole, const cti_doc *key, const cti_doc *value, bool *out_is_known)
{
    char path[128];
    cti_alias_group groups[CTI_MAX_PARAM_GROUPS];
    const ct_field *field, *first;
    ct_component *of;
    int32_t n = 0;
    *out_is_known = field_at(f, whole, &of, &first);
    if (!*out_is_known) {
        return CT_OK;
    }
    while (n < CTI_MAX_PARAM_GROUPS && cti_alias_group_path(whole, n, path, sizeof path) && field_at(f, path, &of, &field) && field == first) {
        groups[n++].component = of;
    }
    if (n == 0) {
        return fill_field(f, of, first, key, value);
    }
    const char *given = ct_arena_printf(f->arena, f->err, "%s:%" PRId32 ":%" PRId32 ": %s", f->file->name, key->line, key->column, key->text);
    if (given == NULL) {
        return CT_ERR_MEMORY;
    }
    if (cti_alias_groups_differ(groups, n, first, given, f->problems)) {
        return CT_OK;
    }
    const int before = f->problems->n;
    for (int32_t i = 0; i < n && f->problems->n == before; i++) {
        CT_TRY(fill_field(f, groups[i].component, first, key, value));
    }
    return CT_OK;
}

static ct_status fill_key(filler *f, ct_component *component, const cti_doc *key, const char *name, const cti_doc *value)
{
    if (f->problems->n >= MAX_PROBLEMS) { /* a file of another kind: the first ones tell it */
        return CT_OK;
    }
    const ct_field *field = ct_field_find(component->cls->fields, (size_t)component->cls->n_fields, name);
    if (field != NULL) {
        return fill_field(f, component, field, key, value);
    }
    ct_component *child = ct_component_child(component, name);
    if (child != NULL) {
        return fill_child(f, child, value);
    }
    if (cti_str_eq(name, "*") && component->cls == &ct_class_list && value->kind == CTI_DOC_MAP) {
        for (int32_t i = 0; i < component->n_children; i++) {
            CT_TRY(fill_map(f, component->children[i], value));
        }
        return CT_OK;
    }
    const char *dot = strchr(name, '.');
    if (dot != NULL) {
        const char *head = ct_arena_printf(f->arena, f->err, "%.*s", (int)(dot - name), name);
        if (head == NULL) {
            return CT_ERR_MEMORY;
        }
        child = ct_component_child(component, head);
        if (child != NULL && dot[1] != '\0') {
            return fill_key(f, child, key, dot + 1, value);
        }
    }
    const char *path = path_of(f, component, name);
    if (path == NULL) {
        return CT_ERR_MEMORY;
    }
    const char *whole = cti_alias_path(path);
    bool is_known = false;
    if (whole != NULL) {
        CT_TRY(fill_alias(f, whole, key, value, &is_known));
    }
    return is_known ? CT_OK : unknown_key(f, component, key, name);
}

static ct_status fill_map(filler *f, ct_component *component, const cti_doc *map)
{
    static const char *const own[] = {"base", "module", "given"};
    for (int round = 0; round < 2; round++) { /* the sections first that bring others: fields, param groups */
        for (size_t i = 0; i < map->n; i++) {
            const cti_doc *key = map->keys[i];
            bool is_own = cti_str_eq(key->text, "class");
            for (size_t j = 0; component->parent == NULL && j < 3; j++) {
                is_own = is_own || cti_str_eq(key->text, own[j]);
            }
            const bool is_early = (component == f->root && (cti_name_eq(key->text, "activation_checkpoint") || cti_str_eq(key->text, "loss") ||
                                                            cti_str_eq(key->text, "optimizer"))) ||
                                  cti_name_eq(key->text, "param_groups");
            if (!is_own && is_early == (round == 0)) {
                CT_TRY(fill_key(f, component, key, key->text, map->items[i]));
            }
        }
    }
    return CT_OK;
}

static ct_status check_given(filler *f)
{
    const cti_doc *given = cti_doc_get(f->file->doc, "given", NULL);
    if (given == NULL || cti_doc_is_null(given)) {
        return CT_OK;
    }
    if (given->kind != CTI_DOC_LIST || given->n > MAX_GIVEN) {
        cti_problem_add(f->problems, "%s:%" PRId32 ":%" PRId32 ": given: wanted a list of settings' names", f->file->name, given->line, given->column);
        return CT_OK;
    }
    f->given = given;
    return CT_OK;
}

ct_status cti_config_doc_apply(ct_tree *tree, ct_component *component, const cti_config_file *file, cti_problems *problems,
                               ct_err *err)
{
    filler f = {.tree = tree, .arena = ct_tree_arena(tree), .file = file, .root = component, .problems = problems, .err = err};
    if (file->doc == NULL) {
        return CT_OK;
    }
    CT_TRY(check_given(&f));
    CT_TRY(fill_map(&f, component, file->doc));
    return cti_str_check(&problems->text, err);
}

ct_status cti_config_files_apply(ct_tree *tree, ct_component *root, const cti_config_files *files, cti_problems *problems,
                                 ct_err *err)
{
    for (size_t i = 0; i < files->n; i++) {
        CT_TRY(cti_config_doc_apply(tree, root, &files->items[i], problems, err));
    }
    return CT_OK;
}
