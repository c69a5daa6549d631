/* SPDX-License-Identifier: Apache-2.0 */
/* A file of settings as a tree of texts with their places; no text has a meaning yet, since only the setting that it is for knows
 * whether `no` is a word or a boolean, and `010` a number.
 *
 *     cti_doc *doc;
 *     CT_TRY(cti_doc_parse(arena, "my.yaml", text, size, &doc, &problems, err));
 *     if (doc != NULL) { … doc->kind == CTI_DOC_MAP … }
 *
 * YAML 1.1 as libyaml reads it, or JSON where the name ends in ".json". An alias stands for the node of its anchor: nodes are shared, and
 * what they would take written out is bounded.
 */
#ifndef CTI_CONFIG_DOC_H
#define CTI_CONFIG_DOC_H

#include "config/config.h"

typedef enum cti_doc_kind { CTI_DOC_SCALAR, CTI_DOC_LIST, CTI_DOC_MAP } cti_doc_kind;
typedef struct cti_doc cti_doc;
struct cti_doc {
    cti_doc_kind kind;
    int32_t line, column; /* from 1; of a shared node: where it was written */
    const char *text;     /* SCALAR: UTF-8 without NUL */
    bool is_quoted;       /* SCALAR: a text by its spelling, never null */
    cti_doc **items;      /* LIST: elements, MAP: values */
    cti_doc **keys;       /* MAP: scalars, no two the same ('-' counts as '_') */
    size_t n;
    size_t weight; /* bytes that it would take, written out */
};

enum { CTI_DOC_MAX_BYTES = 8 << 20, CTI_DOC_MAX_DEPTH = 64 };

/* *out_doc is NULL where the text cannot be read: then a problem "name:line:column: …" was added. A text without content is an empty
 * map. Nodes live in the arena. Fails: ERR_MEMORY. */
CT_MUST_CHECK ct_status cti_doc_parse(ct_arena *arena, const char *name, const char *text, size_t size, cti_doc **out_doc,
                                      cti_problems *problems, ct_err *err);
/* The value of a map's key; NULL where there is none. `out_key` may be NULL. */
const cti_doc *cti_doc_get(const cti_doc *map, const char *key, const cti_doc **out_key);
/* Plain null, Null, NULL, ~, None or nothing. */
bool cti_doc_is_null(const cti_doc *doc);

/* Between doc.c, doc_yaml.c and doc_json.c. */
typedef struct cti_doc_reader {
    ct_arena *arena;
    const char *name;
    cti_problems *problems;
    size_t weight; /* of all nodes so far, aliases written out */
    ct_err *err;
} cti_doc_reader;
cti_doc *cti_doc_new(cti_doc_reader *r, cti_doc_kind kind, int32_t line, int32_t column);
/* Adds to a list (key NULL) or a map. */
CT_MUST_CHECK ct_status cti_doc_add(cti_doc_reader *r, cti_doc *to, cti_doc *key, cti_doc *value);
/* Adds problems for keys that stand in the map twice; false where there are any. */
bool cti_doc_check_keys(cti_doc_reader *r, const cti_doc *map);
CT_MUST_CHECK ct_status cti_doc_read_yaml(cti_doc_reader *r, const char *text, size_t size, cti_doc **out_doc);
CT_MUST_CHECK ct_status cti_doc_read_json(cti_doc_reader *r, const char *text, size_t size, cti_doc **out_doc);

#endif
