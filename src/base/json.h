/* SPDX-License-Identifier: Apache-2.0 */
/* JSON: jansson with our errors. Rooms use jansson's json_t and its getters; parsing and writing go through here. */
#ifndef CTI_BASE_JSON_H
#define CTI_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "ctitan/alloc.h"

/* Parses size bytes. Errors say `name`, line, column and what is wrong. Duplicate keys, bytes after the value, invalid
 * UTF-8 and nesting above jansson's limit are errors; NUL inside strings is allowed. Caller: json_decref. */
CT_MUST_CHECK ct_status cti_json_parse(const char *text, size_t size, const char *name, json_t **out_json, ct_err *err);
CT_MUST_CHECK ct_status cti_json_read_file(const ct_alloc *alloc, const char *path, json_t **out_json, ct_err *err);
/* indent 0: one line; else that many blanks. Keys in insertion order; non-ASCII kept; doubles round-trip. Newline at
 * the end. Written atomically. */
CT_MUST_CHECK ct_status cti_json_write_file(const char *path, const json_t *json, int indent, ct_err *err);
/* Caller frees with ct_alloc_free. */
CT_MUST_CHECK ct_status cti_json_dump(const ct_alloc *alloc, const json_t *json, int indent, char **out_text,
                                      ct_err *err);

/* Typed members of an object; ERR_FORMAT naming `where` and the key where it is missing or of another type. */
CT_MUST_CHECK ct_status cti_json_get_str(const json_t *obj, const char *key, const char *where, const char **out,
                                         ct_err *err);
CT_MUST_CHECK ct_status cti_json_get_i64(const json_t *obj, const char *key, const char *where, int64_t *out,
                                         ct_err *err);
CT_MUST_CHECK ct_status cti_json_get_f64(const json_t *obj, const char *key, const char *where, double *out,
                                         ct_err *err);
CT_MUST_CHECK ct_status cti_json_get_bool(const json_t *obj, const char *key, const char *where, bool *out,
                                          ct_err *err);
CT_MUST_CHECK ct_status cti_json_get_obj(const json_t *obj, const char *key, const char *where, json_t **out,
                                         ct_err *err);
CT_MUST_CHECK ct_status cti_json_get_arr(const json_t *obj, const char *key, const char *where, json_t **out,
                                         ct_err *err);

#endif
