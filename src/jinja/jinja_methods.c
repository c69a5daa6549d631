/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of dicts and lists, and which values have which methods. */
#include "jinja/jinja_methods.h"

ct_status cti_jn_plain_args(cti_jn_ctx *x, const char *what, const cti_jn_args *args, size_t least,
                            size_t most)
{
    if (args->n_keys > 0) {
        return JN_FAIL(x, CT_ERR_DATA, "%s: there is no argument '%.*s'", what, JN_P(args->keys[0]));
    }
    return args->n < least || args->n > most
               ? JN_FAIL(x, CT_ERR_DATA, "%s takes %zu to %zu arguments, but is given %zu", what, least, most,
                         args->n)
               : CT_OK;
}

/* --- dicts and lists
 * --------------------------------------------------------------------------------------------- */

static ct_status view(cti_jn_ctx *x, const char *what, cti_jn_val self, const cti_jn_args *args,
                      cti_jn_val *out)
{
    const cti_jn_dict *d = self.as.dict;
    CT_TRY(cti_jn_plain_args(x, what, args, 0, 0));
    CT_TRY(cti_jn_seq_new(x, JN_VIEW, d->n, out));
    out->as.seq->view_name = what[0] == 'i' ? "dict_items" : what[0] == 'k' ? "dict_keys" : "dict_values";
    for (size_t i = 0; i < d->n; i++) {
        cti_jn_val *v = &out->as.seq->v[i];
        if (what[0] == 'i') {
            CT_TRY(cti_jn_seq_new(x, JN_TUPLE, 2, v));
            v->as.seq->v[0] = d->pairs[i].key;
            v->as.seq->v[1] = d->pairs[i].value;
        } else {
            *v = what[0] == 'k' ? d->pairs[i].key : d->pairs[i].value;
        }
    }
    return CT_OK;
}

static JN_METHOD(dict_items)
{
    return view(x, "items", self, args, out);
}

static JN_METHOD(dict_keys)
{
    return view(x, "keys", self, args, out);
}

static JN_METHOD(dict_values)
{
    return view(x, "values", self, args, out);
}

static JN_METHOD(dict_get)
{
    cti_jn_pair *pair = NULL;
    CT_TRY(cti_jn_plain_args(x, "get", args, 1, 2));
    CT_TRY(cti_jn_dict_find(x, self.as.dict, args->v[0], &pair));
    *out = pair != NULL ? pair->value : args->n > 1 ? args->v[1] : cti_jn_none();
    return CT_OK;
}

static ct_status count_item(cti_jn_ctx *x, cti_jn_val self, cti_jn_val item, int64_t *out_n,
                            int64_t *out_first)
{
    *out_n = 0;
    *out_first = -1;
    for (size_t i = 0; i < self.as.seq->n; i++) {
        bool same = false;
        CT_TRY(cti_jn_equal(x, self.as.seq->v[i], item, 0, &same));
        *out_first = same && *out_n == 0 ? (int64_t)i : *out_first;
        *out_n += same;
    }
    return CT_OK;
}

static JN_METHOD(list_count)
{
    int64_t n, first;
    CT_TRY(cti_jn_plain_args(x, "count", args, 1, 1));
    CT_TRY(count_item(x, self, args->v[0], &n, &first));
    *out = cti_jn_int(n);
    return CT_OK;
}

static JN_METHOD(list_index)
{
    int64_t n, first;
    CT_TRY(cti_jn_plain_args(x, "index", args, 1, 1));
    CT_TRY(count_item(x, self, args->v[0], &n, &first));
    if (n == 0) {
        return JN_FAIL(x, CT_ERR_DATA, "index: the value is not in the list");
    }
    *out = cti_jn_int(first);
    return CT_OK;
}

/* --- tables: what Python has and we do not is there with NULL
 * ------------------------------------------------------ */

#define JN_STR_ROW(name) {#name, cti_jn_str_##name},
static const cti_jn_method_row str_rows[] = {JN_STR_METHODS(JN_STR_ROW)
                                             {"casefold", NULL},
                                             {"center", NULL},
                                             {"encode", NULL},
                                             {"expandtabs", NULL},
                                             {"format", NULL},
                                             {"format_map", NULL},
                                             {"isascii", NULL},
                                             {"isdecimal", NULL},
                                             {"isidentifier", NULL},
                                             {"isprintable", NULL},
                                             {"istitle", NULL},
                                             {"ljust", NULL},
                                             {"maketrans", NULL},
                                             {"rjust", NULL},
                                             {"swapcase", NULL},
                                             {"translate", NULL},
                                             {"zfill", NULL},
                                             {NULL, NULL}};
static const cti_jn_method_row dict_rows[] = {
    {"items", dict_items}, {"keys", dict_keys},  {"values", dict_values}, {"get", dict_get},
    {"clear", NULL},       {"copy", NULL},       {"fromkeys", NULL},      {"pop", NULL},
    {"popitem", NULL},     {"setdefault", NULL}, {"update", NULL},        {NULL, NULL}};
static const cti_jn_method_row list_rows[] = {{"count", list_count}, {"index", list_index}, {"append", NULL},
                                              {"clear", NULL},       {"copy", NULL},        {"extend", NULL},
                                              {"insert", NULL},      {"pop", NULL},         {"remove", NULL},
                                              {"reverse", NULL},     {"sort", NULL},        {NULL, NULL}};
static const cti_jn_method_row tuple_rows[] = {{"count", list_count}, {"index", list_index}, {NULL, NULL}};
static const cti_jn_method_row range_rows[] = {{"count", list_count}, {"index", list_index}, {"start", NULL},
                                               {"stop", NULL},        {"step", NULL},        {NULL, NULL}};
static const cti_jn_method_row int_rows[] = {{"as_integer_ratio", NULL},
                                             {"bit_count", NULL},
                                             {"bit_length", NULL},
                                             {"conjugate", NULL},
                                             {"denominator", NULL},
                                             {"from_bytes", NULL},
                                             {"imag", NULL},
                                             {"numerator", NULL},
                                             {"real", NULL},
                                             {"to_bytes", NULL},
                                             {NULL, NULL}};
static const cti_jn_method_row float_rows[] = {
    {"as_integer_ratio", NULL}, {"conjugate", NULL}, {"fromhex", NULL}, {"hex", NULL}, {"imag", NULL},
    {"is_integer", NULL},       {"real", NULL},      {NULL, NULL}};
static const cti_jn_method_row view_rows[] = {{"isdisjoint", NULL}, {"mapping", NULL}, {NULL, NULL}};
static const cti_jn_method_row macro_rows[] = {{"arguments", NULL},
                                               {"caller", NULL},
                                               {"catch_kwargs", NULL},
                                               {"catch_varargs", NULL},
                                               {"explicit_caller", NULL},
                                               {"name", NULL},
                                               {NULL, NULL}};
static const cti_jn_method_row no_rows[] = {{NULL, NULL}};

static const cti_jn_method_row *rows_of(cti_jn_kind kind)
{
    switch (kind) {
    case JN_STR:
        return str_rows;
    case JN_DICT:
        return dict_rows;
    case JN_LIST:
        return list_rows;
    case JN_TUPLE:
        return tuple_rows;
    case JN_RANGE:
        return range_rows;
    case JN_BOOL:
    case JN_INT:
        return int_rows;
    case JN_FLOAT:
        return float_rows;
    case JN_VIEW:
        return view_rows;
    case JN_MACRO:
        return macro_rows;
    case JN_ABSENT:
    case JN_UNDEFINED:
    case JN_NONE:
    case JN_GENERATOR:
    case JN_NAMESPACE:
    case JN_FUNCTION:
    case JN_METHOD:
    case JN_LOOP:
        break;
    }
    return no_rows;
}

const cti_jn_method_row *cti_jn_method_find(cti_jn_val self, const cti_jn_str *name)
{
    for (const cti_jn_method_row *row = rows_of(self.kind); row->name != NULL; row++) {
        if (cti_jn_is_text(cti_jn_text(name), row->name)) {
            return row;
        }
    }
    return NULL;
}
