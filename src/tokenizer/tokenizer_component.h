/* SPDX-License-Identifier: Apache-2.0 */
/* What the parsers of components share: one component with its place, and the tables of those that are known. */
#ifndef CTI_TOKENIZER_COMPONENT_H
#define CTI_TOKENIZER_COMPONENT_H

#include "tokenizer/tokenizer_internal.h"

/* One component with what its parser needs. */
typedef struct cti_component {
    ct_tokenizer *tok;
    const json_t *json;
    const char *type;  /* its "type" */
    const char *where; /* "tokenizer.json: pre_tokenizer Split" */
} cti_component;

typedef ct_status (*cti_component_parser)(const cti_component *c, ct_err *err);
typedef struct cti_component_row {
    const char *type;
    cti_component_parser parse;
    const char *const *keys; /* members it may have */
} cti_component_row;

#define CTI_KEYS(...) ((const char *const[]){"type", __VA_ARGS__, NULL})
#define CTI_NO_KEYS ((const char *const[]){"type", NULL})
#define CTI_METASPACE_KEYS CTI_KEYS("replacement", "prepend_scheme", "add_prefix_space", "split", "str_rep")

/* A component or null; a Sequence's members (under `list`), one after another. Sequences nest a few levels at most. what:
 * "normalizer" and so on; rows end with a row of zeros. */
CT_MUST_CHECK ct_status cti_parse_components(ct_tokenizer *tok, const json_t *json, const char *what, const char *list,
                                             const char *name, const cti_component_row *rows, ct_err *err);
/* A string member. Borrowed from the JSON. */
CT_MUST_CHECK ct_status cti_get_string(const cti_component *c, const char *key, const char **out, size_t *out_size,
                                       ct_err *err);
/* A string member of one character. */
CT_MUST_CHECK ct_status cti_get_character(const cti_component *c, const char *key, char out[5], ct_err *err);
/* The member 'pattern': {"String": "..."} or {"Regex": "..."}. */
CT_MUST_CHECK ct_status cti_get_pattern(const cti_component *c, cti_pattern *out, ct_err *err);
/* prepend_scheme of Metaspace, or the older add_prefix_space (true: always, false: never); always where neither is there. */
CT_MUST_CHECK ct_status cti_get_scheme(const cti_component *c, cti_scheme *out, ct_err *err);
char *cti_copy_bytes(const ct_alloc *alloc, const char *bytes, size_t size, ct_err *err); /* with a NUL behind */

#endif
