/* SPDX-License-Identifier: Apache-2.0 */
/* Values as text: Python's str(), repr() and json.dumps(). */
#include <inttypes.h>
#include <math.h>

#include "jinja/jinja_internal.h"

ct_status cti_jn_check_text(cti_jn_ctx *x, const cti_str *text)
{
    CT_TRY(cti_str_check(text, x->err));
    return text->len > (size_t)x->max_memory || text->len > x->max_output
               ? JN_FAIL(x, CT_ERR_RANGE, "a text of more than %zu bytes is being made", x->max_output)
               : CT_OK;
}

static void add_str_repr(cti_str *out, const cti_jn_str *s)
{
    const bool has_single = memchr(s->p, '\'', s->n) != NULL;
    const char quote = has_single && memchr(s->p, '"', s->n) == NULL ? '"' : '\'';
    cti_str_add_char(out, quote);
    for (size_t i = 0; i < s->n;) {
        uint32_t cp = 0;
        const int n =
            cti_utf8_decode((const unsigned char *)s->p + i, (const unsigned char *)s->p + s->n, &cp);
        if (cp == (uint32_t)quote || cp == '\\') {
            cti_str_add_char(out, '\\');
            cti_str_add_char(out, (char)cp);
        } else if (cp == '\n' || cp == '\r' || cp == '\t') {
            cti_str_add(out, cp == '\n' ? "\\n" : cp == '\r' ? "\\r" : "\\t");
        } else if (cti_jn_is_printable(cp)) {
            cti_str_add_n(out, s->p + i, (size_t)n);
        } else {
            cti_str_printf(out, cp < 0x100 ? "\\x%02x" : cp < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)cp);
        }
        i += (size_t)(n == 0 ? 1 : n);
    }
    cti_str_add_char(out, quote);
}

static ct_status add_seq(cti_jn_ctx *x, cti_str *out, cti_jn_val v, int depth)
{
    const cti_jn_seq *seq = v.as.seq;
    const bool is_tuple = v.kind == JN_TUPLE;
    if (v.kind == JN_VIEW) {
        cti_str_printf(out, "%s(", seq->view_name);
    }
    cti_str_add_char(out, is_tuple ? '(' : '[');
    for (size_t i = 0; i < seq->n; i++) {
        cti_str_add(out, i > 0 ? ", " : "");
        CT_TRY(cti_jn_add_repr(x, out, seq->v[i], depth + 1));
    }
    cti_str_add(out, is_tuple ? (seq->n == 1 ? ",)" : ")") : "]");
    if (v.kind == JN_VIEW) {
        cti_str_add_char(out, ')');
    }
    return CT_OK;
}

static ct_status add_dict(cti_jn_ctx *x, cti_str *out, cti_jn_val v, int depth)
{
    const cti_jn_dict *d = v.as.dict;
    cti_str_add(out, v.kind == JN_NAMESPACE ? "<Namespace {" : "{");
    for (size_t i = 0; i < d->n; i++) {
        cti_str_add(out, i > 0 ? ", " : "");
        CT_TRY(cti_jn_add_repr(x, out, d->pairs[i].key, depth + 1));
        cti_str_add(out, ": ");
        CT_TRY(cti_jn_add_repr(x, out, d->pairs[i].value, depth + 1));
    }
    cti_str_add(out, v.kind == JN_NAMESPACE ? "}>" : "}");
    return CT_OK;
}

ct_status cti_jn_add_repr(cti_jn_ctx *x, cti_str *out, cti_jn_val v, int depth)
{
    char buf[32];
    CT_TRY(cti_jn_step(x, 1));
    CT_TRY(cti_jn_check_text(x, out));
    if (depth > JN_MAX_VALUE_DEPTH) {
        return JN_FAIL(x, CT_ERR_RANGE, "a value nested deeper than %d levels is printed",
                       (int)JN_MAX_VALUE_DEPTH);
    }
    switch (v.kind) {
    case JN_ABSENT:
    case JN_UNDEFINED:
        cti_str_add(out, "Undefined");
        return CT_OK;
    case JN_NONE:
        cti_str_add(out, "None");
        return CT_OK;
    case JN_BOOL:
        cti_str_add(out, v.as.b ? "True" : "False");
        return CT_OK;
    case JN_INT:
        cti_str_printf(out, "%" PRId64, v.as.i);
        return CT_OK;
    case JN_FLOAT:
        cti_str_add(out, cti_format_f64(v.as.f, buf));
        return CT_OK;
    case JN_STR:
        CT_TRY(cti_jn_step(x, (int64_t)(v.as.s->n / 16)));
        if (v.as.s->is_safe) {
            return JN_FAIL(x, CT_ERR_UNSUPPORTED,
                           "a text marked by the filter 'safe' inside a list or dict that is printed");
        }
        add_str_repr(out, v.as.s);
        return CT_OK;
    case JN_LIST:
    case JN_TUPLE:
    case JN_VIEW:
        return add_seq(x, out, v, depth);
    case JN_DICT:
    case JN_NAMESPACE:
        return add_dict(x, out, v, depth);
    case JN_RANGE:
    case JN_GENERATOR:
    case JN_MACRO:
    case JN_FUNCTION:
    case JN_METHOD:
    case JN_LOOP:
        break;
    }
    return JN_FAIL(x, CT_ERR_UNSUPPORTED, "printing a %s is not supported in templates here",
                   cti_jn_type_name(v));
}

ct_status cti_jn_add_str(cti_jn_ctx *x, cti_str *out, cti_jn_val v)
{
    if (v.kind == JN_STR) {
        CT_TRY(cti_jn_step(x, (int64_t)(v.as.s->n / 64)));
        cti_str_add_n(out, v.as.s->p, v.as.s->n);
        return cti_jn_check_text(x, out);
    }
    if (v.kind == JN_UNDEFINED || v.kind == JN_ABSENT) {
        return CT_OK;
    }
    return cti_jn_add_repr(x, out, v, 0);
}

ct_status cti_jn_to_str(cti_jn_ctx *x, cti_jn_val v, cti_jn_val *out)
{
    if (v.kind == JN_STR && !v.as.s->is_safe) {
        *out = v;
        return CT_OK;
    }
    cti_str text = {.alloc = x->template->alloc};
    const ct_status st = cti_jn_add_str(x, &text, v);
    if (st != CT_OK) {
        cti_str_deinit(&text);
        return st;
    }
    return cti_jn_str_of(x, &text, out);
}

/* --- JSON
 * -------------------------------------------------------------------------------------------------------- */

typedef struct writer {
    cti_jn_ctx *x;
    cti_str *out;
    bool is_ascii, sorts;
    bool is_indented;
    const char *indent; /* one level's */
    size_t indent_size;
    const char *item_separator, *key_separator;
    size_t item_size, key_size;
} writer;

static void write_string(const writer *w, const cti_jn_str *s)
{
    static const char names[] = "btn?fr"; /* \b is 8, \t 9, \n 10, \f 12, \r 13 */
    cti_str_add_char(w->out, '"');
    for (size_t i = 0; i < s->n;) {
        uint32_t cp = 0;
        const int n =
            cti_utf8_decode((const unsigned char *)s->p + i, (const unsigned char *)s->p + s->n, &cp);
        if (cp == '"' || cp == '\\') {
            cti_str_printf(w->out, "\\%c", (char)cp);
        } else if (cp >= 8 && cp <= 13 && cp != 11) {
            cti_str_printf(w->out, "\\%c", names[cp - 8]);
        } else if (cp < 0x20 || (w->is_ascii && cp >= 0x7f && cp < 0x10000)) {
            cti_str_printf(w->out, "\\u%04x", (unsigned)cp);
        } else if (w->is_ascii && cp >= 0x10000) {
            cti_str_printf(w->out, "\\u%04x\\u%04x", (unsigned)(0xd800 + ((cp - 0x10000) >> 10)),
                           (unsigned)(0xdc00 + ((cp - 0x10000) & 0x3ff)));
        } else {
            cti_str_add_n(w->out, s->p + i, (size_t)n);
        }
        i += (size_t)(n == 0 ? 1 : n);
    }
    cti_str_add_char(w->out, '"');
}

static void json_break(const writer *w, int depth)
{
    if (w->is_indented) {
        cti_str_add_char(w->out, '\n');
        for (int i = 0; i < depth && !w->out->failed; i++) {
            cti_str_add_n(w->out, w->indent, w->indent_size);
        }
    }
}

static ct_status json_value(const writer *w, cti_jn_val v, int depth);

static ct_status json_key(const writer *w, cti_jn_val key)
{
    if (key.kind == JN_STR) {
        write_string(w, key.as.s);
        return CT_OK;
    }
    if (key.kind == JN_TUPLE) {
        return JN_FAIL(w->x, CT_ERR_DATA, "tojson: a tuple cannot be a key");
    }
    cti_str_add_char(w->out, '"');
    CT_TRY(json_value(w, key, 0));
    cti_str_add_char(w->out, '"');
    return CT_OK;
}

/* The pairs in the order of their keys. */
static ct_status sorted_pairs(cti_jn_ctx *x, const cti_jn_dict *d, cti_jn_pair **out)
{
    cti_jn_val copy;
    CT_TRY(cti_jn_dict_new(x, JN_DICT, d->n, &copy));
    cti_jn_pair *p = copy.as.dict->pairs;
    for (size_t i = 0; i < d->n; i++) {
        size_t j = i;
        for (; j > 0; j--) {
            bool less = false;
            CT_TRY(cti_jn_less(x, d->pairs[i].key, p[j - 1].key, &less));
            if (!less) {
                break;
            }
            p[j] = p[j - 1];
        }
        p[j] = d->pairs[i];
    }
    *out = p;
    return CT_OK;
}

static ct_status json_dict(const writer *w, const cti_jn_dict *d, int depth)
{
    cti_jn_pair *pairs = d->pairs;
    if (d->n == 0) {
        cti_str_add(w->out, "{}");
        return CT_OK;
    }
    if (w->sorts) {
        CT_TRY(sorted_pairs(w->x, d, &pairs));
    }
    cti_str_add_char(w->out, '{');
    for (size_t i = 0; i < d->n; i++) {
        if (i > 0) {
            cti_str_add_n(w->out, w->item_separator, w->item_size);
        }
        json_break(w, depth + 1);
        CT_TRY(json_key(w, pairs[i].key));
        cti_str_add_n(w->out, w->key_separator, w->key_size);
        CT_TRY(json_value(w, pairs[i].value, depth + 1));
    }
    json_break(w, depth);
    cti_str_add_char(w->out, '}');
    return CT_OK;
}

static ct_status json_list(const writer *w, const cti_jn_seq *seq, int depth)
{
    if (seq->n == 0) {
        cti_str_add(w->out, "[]");
        return CT_OK;
    }
    cti_str_add_char(w->out, '[');
    for (size_t i = 0; i < seq->n; i++) {
        if (i > 0) {
            cti_str_add_n(w->out, w->item_separator, w->item_size);
        }
        json_break(w, depth + 1);
        CT_TRY(json_value(w, seq->v[i], depth + 1));
    }
    json_break(w, depth);
    cti_str_add_char(w->out, ']');
    return CT_OK;
}

static ct_status json_value(const writer *w, cti_jn_val v, int depth)
{
    CT_TRY(cti_jn_step(w->x, 1));
    CT_TRY(cti_jn_check_text(w->x, w->out));
    if (depth > JN_MAX_VALUE_DEPTH) {
        return JN_FAIL(w->x, CT_ERR_RANGE, "tojson: nested deeper than %d levels", (int)JN_MAX_VALUE_DEPTH);
    }
    switch (v.kind) {
    case JN_NONE:
        cti_str_add(w->out, "null");
        return CT_OK;
    case JN_BOOL:
        cti_str_add(w->out, v.as.b ? "true" : "false");
        return CT_OK;
    case JN_INT:
        return cti_jn_add_repr(w->x, w->out, v, 0);
    case JN_FLOAT:
        if (isnan(v.as.f) || isinf(v.as.f)) {
            cti_str_add(w->out, isnan(v.as.f) ? "NaN" : v.as.f > 0 ? "Infinity" : "-Infinity");
            return CT_OK;
        }
        return cti_jn_add_repr(w->x, w->out, v, 0);
    case JN_STR:
        CT_TRY(cti_jn_step(w->x, (int64_t)(v.as.s->n / 16)));
        write_string(w, v.as.s);
        return CT_OK;
    case JN_LIST:
    case JN_TUPLE:
        return json_list(w, v.as.seq, depth);
    case JN_DICT:
        return json_dict(w, v.as.dict, depth);
    case JN_ABSENT:
    case JN_UNDEFINED:
    case JN_RANGE:
    case JN_VIEW:
    case JN_GENERATOR:
    case JN_NAMESPACE:
    case JN_MACRO:
    case JN_FUNCTION:
    case JN_METHOD:
    case JN_LOOP:
        break;
    }
    return JN_FAIL(w->x, CT_ERR_DATA, "tojson: a value of type %s is none of JSON's", cti_jn_type_name(v));
}

static ct_status set_indent(writer *w, cti_jn_val v)
{
    if (v.kind == JN_ABSENT || v.kind == JN_NONE) {
        return CT_OK;
    }
    w->is_indented = true;
    w->item_separator = ",";
    w->item_size = 1;
    if (v.kind == JN_STR) {
        w->indent = v.as.s->p;
        w->indent_size = v.as.s->n;
        return CT_OK;
    }
    static const char blanks[] = "                                                                ";
    int64_t n = 0;
    CT_TRY(cti_jn_want_int(w->x, "tojson: indent", v, &n));
    if (n >= (int64_t)sizeof blanks) {
        return JN_FAIL(w->x, CT_ERR_RANGE, "tojson: an indent of at most %zu is supported",
                       sizeof blanks - 1);
    }
    w->indent = blanks;
    w->indent_size = n < 0 ? 0 : (size_t)n;
    return CT_OK;
}

static ct_status set_separators(writer *w, cti_jn_val v)
{
    if (v.kind == JN_ABSENT || v.kind == JN_NONE) {
        return CT_OK;
    }
    if ((v.kind != JN_TUPLE && v.kind != JN_LIST) || v.as.seq->n != 2 || v.as.seq->v[0].kind != JN_STR ||
        v.as.seq->v[1].kind != JN_STR) {
        return JN_FAIL(w->x, CT_ERR_DATA, "tojson: 'separators' should be two strings");
    }
    w->item_separator = v.as.seq->v[0].as.s->p;
    w->item_size = v.as.seq->v[0].as.s->n;
    w->key_separator = v.as.seq->v[1].as.s->p;
    w->key_size = v.as.seq->v[1].as.s->n;
    return CT_OK;
}

ct_status cti_jn_to_json(cti_jn_ctx *x, cti_jn_val v, const cti_jn_args *args, cti_jn_val *out)
{
    cti_str text = {.alloc = x->template->alloc};
    cti_jn_val slots[4];
    CT_TRY(cti_jn_bind(x, "tojson", args, "ensure_ascii indent separators sort_keys", 0, slots));
    writer w = {
        .x = x, .out = &text, .item_separator = ", ", .item_size = 2, .key_separator = ": ", .key_size = 2};
    CT_TRY(cti_jn_truth(x, slots[0], &w.is_ascii));
    CT_TRY(set_indent(&w, slots[1]));
    CT_TRY(set_separators(&w, slots[2]));
    CT_TRY(cti_jn_truth(x, slots[3], &w.sorts));
    const ct_status st = json_value(&w, v, 0);
    if (st != CT_OK) {
        cti_str_deinit(&text);
        return st;
    }
    return cti_jn_str_of(x, &text, out);
}
