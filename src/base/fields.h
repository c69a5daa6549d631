/* SPDX-License-Identifier: Apache-2.0 */
/* What the rooms need of field tables beside ctitan/field.h: text cut into tokens and back. */
#ifndef CTI_BASE_FIELDS_H
#define CTI_BASE_FIELDS_H

#include "ctitan/field.h"

typedef struct cti_tokens {
    const char **items;
    size_t n;
} cti_tokens;

/* Cuts text into the tokens of `field`: one (the whole text) for kinds of one token; at blanks for the others, where
 * '…' holds blanks and '' a quote inside quotes, as ct_field_text writes them. Arena's memory.
 * Fails: ERR_USAGE for a quote that is not closed. */
CT_MUST_CHECK ct_status cti_field_split(const ct_field *field, const char *text, ct_arena *arena, cti_tokens *out_tokens,
                                        ct_err *err);

/* True for the kinds that take several tokens on the command line. */
bool cti_field_is_variadic(const ct_field *field);

/* A table that is not ours: names, kinds, texts that are there, values inside values_bytes and not upon each other, defaults that parse.
 * ERR_RANGE naming the field and what is wrong with it. */
CT_MUST_CHECK ct_status cti_fields_check(const ct_field *fields, int64_t n, size_t values_bytes, ct_err *err);

/* Equal where '-' counts as '_'. */
bool cti_name_eq(const char *a, const char *b);

#endif
