/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of a file of settings. */
#include "config/doc.h"

#include <stdlib.h>
#include <string.h>

#include "base/fields.h"

cti_doc *cti_doc_new(cti_doc_reader *r, cti_doc_kind kind, int32_t line, int32_t column)
{
    cti_doc *doc = ct_arena_alloc(r->arena, sizeof *doc, r->err);
    if (doc != NULL) {
        *doc = (cti_doc){.kind = kind, .line = line, .column = column, .text = "", .weight = 1};
    }
    return doc;
}

ct_status cti_doc_add(cti_doc_reader *r, cti_doc *to, cti_doc *key, cti_doc *value)
{
    const size_t n = to->n;
    if ((n & (n - 1)) == 0) { /* the arrays grow when their length is 0, 1, 2, 4, … */
        const size_t room = n == 0 ? 1 : n * 2;
        cti_doc **items = ct_arena_alloc(r->arena, room * sizeof(cti_doc *), r->err);
        cti_doc **keys = key != NULL ? ct_arena_alloc(r->arena, room * sizeof(cti_doc *), r->err) : NULL;
        if (items == NULL || (key != NULL && keys == NULL)) {
            return CT_ERR_MEMORY;
        }
        if (n > 0) {
            memcpy(items, to->items, n * sizeof(cti_doc *));
        }
        if (n > 0 && key != NULL) {
            memcpy(keys, to->keys, n * sizeof(cti_doc *));
        }
        to->items = items;
        to->keys = keys;
    }
    to->items[n] = value;
    if (key != NULL) {
        to->keys[n] = key;
        to->weight += key->weight;
    }
    to->weight += value->weight;
    to->n = n + 1;
    return CT_OK;
}

static unsigned char fold(char c)
{
    return (unsigned char)(c == '-' ? '_' : c);
}

static int compare_keys(const void *a, const void *b)
{
    const cti_doc *x = *(cti_doc *const *)a, *y = *(cti_doc *const *)b;
    const char *p = x->text, *q = y->text;
    while (*p != '\0' && fold(*p) == fold(*q)) {
        p++;
        q++;
    }
    const int order = (fold(*p) > fold(*q)) - (fold(*p) < fold(*q));
    return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

bool cti_doc_check_keys(cti_doc_reader *r, const cti_doc *map)
{
    bool ok = true;
    cti_doc **sorted = ct_arena_alloc(r->arena, (map->n + 1) * sizeof(cti_doc *), r->err);
    if (sorted == NULL) {
        return false;
    }
    for (size_t i = 0; i < map->n; i++) {
        sorted[i] = map->keys[i];
    }
    qsort(sorted, map->n, sizeof(cti_doc *), compare_keys);
    for (size_t i = 1; i < map->n; i++) {
        if (cti_name_eq(sorted[i - 1]->text, sorted[i]->text)) {
            cti_problem_add(r->problems, "%s:%d:%d: the key '%.80s' is there already, in line %d", r->name, sorted[i]->line,
                            sorted[i]->column, sorted[i]->text, sorted[i - 1]->line);
            ok = false;
        }
    }
    return ok;
}

const cti_doc *cti_doc_get(const cti_doc *map, const char *key, const cti_doc **out_key)
{
    for (size_t i = 0; map->kind == CTI_DOC_MAP && i < map->n; i++) {
        if (cti_name_eq(map->keys[i]->text, key)) {
            if (out_key != NULL) {
                *out_key = map->keys[i];
            }
            return map->items[i];
        }
    }
    return NULL;
}

bool cti_doc_is_null(const cti_doc *doc)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL", "None"};
    for (size_t i = 0; doc->kind == CTI_DOC_SCALAR && !doc->is_quoted && i < sizeof words / sizeof words[0]; i++) {
        if (cti_str_eq(doc->text, words[i])) {
            return true;
        }
    }
    return false;
}

ct_status cti_doc_parse(ct_arena *arena, const char *name, const char *text, size_t size, cti_doc **out_doc,
                        cti_problems *problems, ct_err *err)
{
    cti_doc_reader r = {.arena = arena, .name = name, .problems = problems, .err = err};
    *out_doc = NULL;
    return cti_ends_with(name, ".json") ? cti_doc_read_json(&r, text, size, out_doc)
                                        : cti_doc_read_yaml(&r, text, size, out_doc);
}
