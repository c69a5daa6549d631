/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of strings, which have files of their own. */
#ifndef CTI_JINJA_METHODS_H
#define CTI_JINJA_METHODS_H

#include "jinja/jinja_internal.h"

#define JN_METHOD(name) ct_status name(cti_jn_ctx *x, cti_jn_val self, const cti_jn_args *args, cti_jn_val *out)

/* jinja_methods.c: arguments are given by place only, least to most of them. */
CT_MUST_CHECK ct_status cti_jn_plain_args(cti_jn_ctx *x, const char *what, const cti_jn_args *args, size_t least,
                                          size_t most);
static inline bool cti_jn_is_given(const cti_jn_args *args, size_t i)
{
    return i < args->n && args->v[i].kind != JN_NONE;
}

/* jinja_str.c: case, what a string is made of, its ends. jinja_str_parts.c: what is found in it, what it is cut into. */
#define JN_STR_METHODS(X) \
    X(lower) X(upper) X(title) X(capitalize) X(isalpha) X(isalnum) X(isdigit) X(isnumeric) \
    X(isspace) X(islower) X(isupper) X(strip) X(lstrip) X(rstrip) X(startswith) X(endswith) \
    X(removeprefix) X(removesuffix) X(find) X(rfind) X(index) X(rindex) X(count) X(replace) \
    X(split) X(rsplit) X(partition) X(rpartition) X(splitlines) X(join)
#define JN_STR_METHOD(name) CT_MUST_CHECK JN_METHOD(cti_jn_str_##name);
JN_STR_METHODS(JN_STR_METHOD)
#undef JN_STR_METHOD

#endif
