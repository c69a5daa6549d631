/* SPDX-License-Identifier: Apache-2.0 */
/* Values: making them, truth, going over them, equality and order, dicts. */
#include <math.h>

#include "base/hash.h"
#include "base/num.h"
#include "jinja/jinja_internal.h"

enum { SMALL_DICT = 8 };

const char *cti_jn_type_name(cti_jn_val v)
{
    switch (v.kind) {
    case JN_ABSENT:
    case JN_UNDEFINED:
        return "undefined";
    case JN_NONE:
        return "None";
    case JN_BOOL:
        return "bool";
    case JN_INT:
        return "int";
    case JN_FLOAT:
        return "float";
    case JN_STR:
        return "str";
    case JN_LIST:
        return "list";
    case JN_TUPLE:
        return "tuple";
    case JN_RANGE:
        return "range";
    case JN_VIEW:
        return "view of a dict";
    case JN_GENERATOR:
        return "generator";
    case JN_DICT:
        return "dict";
    case JN_NAMESPACE:
        return "namespace";
    case JN_MACRO:
        return "macro";
    case JN_FUNCTION:
        return "function";
    case JN_METHOD:
        return "method";
    case JN_LOOP:
        return "loop";
    }
    return "?";
}

ct_status cti_jn_step(cti_jn_ctx *x, int64_t n)
{
    x->steps += n;
    return x->steps > x->max_steps
               ? JN_FAIL(x, CT_ERR_RANGE, "the rendering takes more than %lld steps", (long long)x->max_steps)
               : CT_OK;
}

void *cti_jn_alloc(cti_jn_ctx *x, size_t count, size_t size_bytes)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size_bytes, &bytes) || bytes > (size_t)x->max_memory ||
        (x->memory += (int64_t)bytes + 16) > x->max_memory) {
        (void)JN_FAIL(x, CT_ERR_RANGE, "the rendering takes more than %lld bytes of memory",
                      (long long)x->max_memory);
        return NULL;
    }
    return ct_arena_alloc(x->arena, bytes == 0 ? 1 : bytes, x->err);
}

/* The status behind a NULL of cti_jn_alloc. */
static ct_status alloc_status(const cti_jn_ctx *x)
{
    return x->memory > x->max_memory ? CT_ERR_RANGE : CT_ERR_MEMORY;
}

ct_status cti_jn_str_borrow(cti_jn_ctx *x, const char *p, size_t n, cti_jn_val *out)
{
    CT_TRY(cti_jn_step(x, (int64_t)(n / 64)));
    cti_jn_str *s = cti_jn_alloc(x, 1, sizeof *s);
    if (s == NULL) {
        return alloc_status(x);
    }
    *s = (cti_jn_str){.p = p, .n = n, .chars = cti_jn_count_chars(p, n)};
    *out = cti_jn_text(s);
    return CT_OK;
}

ct_status cti_jn_str_new(cti_jn_ctx *x, const char *p, size_t n, cti_jn_val *out)
{
    char *copy = cti_jn_alloc(x, n, 1);
    if (copy == NULL) {
        return alloc_status(x);
    }
    if (n > 0) {
        memcpy(copy, p, n);
    }
    return cti_jn_str_borrow(x, copy, n, out);
}

ct_status cti_jn_str_of(cti_jn_ctx *x, cti_str *text, cti_jn_val *out)
{
    ct_status st = cti_jn_check_text(x, text);
    if (st == CT_OK) {
        st = cti_jn_str_new(x, cti_str_text(text), text->len, out);
    }
    cti_str_deinit(text);
    return st;
}

ct_status cti_jn_undefined(cti_jn_ctx *x, cti_jn_val *out, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    CT_TRY(cti_jn_str_new(x, text, strlen(text), out));
    out->kind = JN_UNDEFINED;
    return CT_OK;
}

ct_status cti_jn_seq_new(cti_jn_ctx *x, cti_jn_kind kind, size_t n, cti_jn_val *out)
{
    CT_TRY(cti_jn_step(x, (int64_t)n));
    cti_jn_seq *seq = cti_jn_alloc(x, 1, sizeof *seq);
    cti_jn_val *v = seq == NULL ? NULL : cti_jn_alloc(x, n, sizeof *v);
    if (v == NULL) {
        return alloc_status(x);
    }
    seq->v = v;
    seq->n = n;
    *out = JN_VALUE(kind, seq, seq);
    return CT_OK;
}

/* --- dicts
 * ------------------------------------------------------------------------------------------------------- */

bool cti_jn_is_number(cti_jn_val v)
{
    return v.kind == JN_BOOL || v.kind == JN_INT || v.kind == JN_FLOAT;
}

static int64_t as_int(cti_jn_val v)
{
    return v.kind == JN_BOOL ? v.as.b : v.as.i;
}

double cti_jn_as_double(cti_jn_val v)
{
    return v.kind == JN_FLOAT ? v.as.f : (double)as_int(v);
}

bool cti_jn_is_hashable(cti_jn_val v, int depth)
{
    if (v.kind == JN_TUPLE) {
        for (size_t i = 0; i < v.as.seq->n; i++) {
            if (depth > 20 || !cti_jn_is_hashable(v.as.seq->v[i], depth + 1)) {
                return false;
            }
        }
        return true;
    }
    return v.kind == JN_NONE || cti_jn_is_number(v) || v.kind == JN_STR || v.kind == JN_UNDEFINED;
}

/* Equal keys have equal hashes: True, 1 and 1.0 are one key. */
static uint64_t hash_of(cti_jn_val v)
{
    if (v.kind == JN_STR) {
        return cti_hash64(v.as.s->p, v.as.s->n, 1);
    }
    if (cti_jn_is_number(v)) {
        const double d = cti_jn_as_double(v) + 0.0; /* no negative zero */
        return cti_hash64(&d, sizeof d, 2);
    }
    uint64_t h = (uint64_t)v.kind;
    for (size_t i = 0; v.kind == JN_TUPLE && i < v.as.seq->n; i++) {
        h = h * 0x9e3779b97f4a7c15u + hash_of(v.as.seq->v[i]);
    }
    return h;
}

ct_status cti_jn_dict_new(cti_jn_ctx *x, cti_jn_kind kind, size_t cap, cti_jn_val *out)
{
    cti_jn_dict *d = cti_jn_alloc(x, 1, sizeof *d);
    cti_jn_pair *pairs = d == NULL ? NULL : cti_jn_alloc(x, cap, sizeof *pairs);
    if (pairs == NULL) {
        return alloc_status(x);
    }
    d->pairs = pairs;
    d->cap = cap;
    *out = JN_VALUE(kind, dict, d);
    return CT_OK;
}

/* The pair of the key, or NULL; *out_slot is where a new one goes in the table. */
static ct_status find(cti_jn_ctx *x, const cti_jn_dict *d, cti_jn_val key, cti_jn_pair **out,
                      size_t *out_slot)
{
    bool same = false;
    *out = NULL;
    *out_slot = 0;
    CT_TRY(cti_jn_step(x, 1));
    if (d->table == NULL) {
        for (size_t i = 0; i < d->n; i++) {
            CT_TRY(cti_jn_equal(x, d->pairs[i].key, key, 0, &same));
            if (same) {
                *out = &d->pairs[i];
                return CT_OK;
            }
        }
        return CT_OK;
    }
    size_t slot = hash_of(key) & (d->table_size - 1);
    for (; d->table[slot] != 0; slot = (slot + 1) & (d->table_size - 1)) {
        cti_jn_pair *p = &d->pairs[d->table[slot] - 1];
        CT_TRY(cti_jn_equal(x, p->key, key, 0, &same));
        if (same) {
            *out = p;
            return CT_OK;
        }
    }
    *out_slot = slot;
    return CT_OK;
}

static ct_status grow(cti_jn_ctx *x, cti_jn_dict *d)
{
    if (d->n == d->cap) {
        const size_t cap = d->cap < 4 ? 4 : 2 * d->cap;
        cti_jn_pair *pairs = cti_jn_alloc(x, cap, sizeof *pairs);
        if (pairs == NULL) {
            return alloc_status(x);
        }
        memcpy(pairs, d->pairs, d->n * sizeof *pairs);
        d->pairs = pairs;
        d->cap = cap;
    }
    if (d->n < SMALL_DICT || (d->table != NULL && 2 * (d->n + 1) <= d->table_size)) {
        return CT_OK;
    }
    const size_t size = d->table == NULL ? 32 : 2 * d->table_size;
    uint32_t *table = cti_jn_alloc(x, size, sizeof *table);
    if (table == NULL) {
        return alloc_status(x);
    }
    for (size_t i = 0; i < d->n; i++) {
        size_t slot = hash_of(d->pairs[i].key) & (size - 1);
        while (table[slot] != 0) {
            slot = (slot + 1) & (size - 1);
        }
        table[slot] = (uint32_t)i + 1;
    }
    d->table = table;
    d->table_size = size;
    return CT_OK;
}

ct_status cti_jn_dict_put(cti_jn_ctx *x, cti_jn_dict *d, cti_jn_val key, cti_jn_val value)
{
    if (!cti_jn_is_hashable(key, 0)) {
        return JN_FAIL(x, key.kind > JN_TUPLE && key.kind != JN_DICT ? CT_ERR_UNSUPPORTED : CT_ERR_DATA,
                       "a value of type %s cannot be a key of a dict", cti_jn_type_name(key));
    }
    CT_TRY(grow(x, d));
    cti_jn_pair *pair;
    size_t slot;
    CT_TRY(find(x, d, key, &pair, &slot));
    if (pair != NULL) {
        pair->value = value;
        return CT_OK;
    }
    d->pairs[d->n++] = (cti_jn_pair){.key = key, .value = value};
    if (d->table != NULL) {
        d->table[slot] = (uint32_t)d->n;
    }
    return CT_OK;
}

ct_status cti_jn_dict_find(cti_jn_ctx *x, const cti_jn_dict *d, cti_jn_val key, cti_jn_pair **out)
{
    size_t slot;
    if (key.kind > JN_TUPLE && key.kind != JN_DICT &&
        key.kind != JN_VIEW) { /* known by its identity; never a key here */
        *out = NULL;
        return CT_OK;
    }
    if (!cti_jn_is_hashable(key, 0)) {
        return JN_FAIL(x, CT_ERR_DATA, "a value of type %s cannot be a key of a dict", cti_jn_type_name(key));
    }
    return find(x, d, key, out, &slot);
}

cti_jn_pair *cti_jn_dict_find_text(const cti_jn_dict *d, const char *p, size_t n)
{
    size_t i = 0, slot = 0;
    if (d->table != NULL) {
        slot = cti_hash64(p, n, 1) & (d->table_size - 1);
    }
    for (;; i++, slot = (slot + 1) & (d->table_size - 1)) {
        const size_t at = d->table == NULL ? i + 1 : d->table[slot];
        if (at == 0 || at > d->n) {
            return NULL;
        }
        const cti_jn_val key = d->pairs[at - 1].key;
        if (key.kind == JN_STR && key.as.s->n == n && memcmp(key.as.s->p, p, n) == 0) {
            return &d->pairs[at - 1];
        }
    }
}

ct_status cti_jn_from_json(cti_jn_ctx *x, const json_t *json, int depth, cti_jn_val *out)
{
    CT_TRY(cti_jn_step(x, 1));
    if (depth > JN_MAX_VALUE_DEPTH) {
        return JN_FAIL(x, CT_ERR_RANGE, "a variable is nested deeper than %d levels",
                       (int)JN_MAX_VALUE_DEPTH);
    }
    switch (json_typeof(json)) {
    case JSON_OBJECT: {
        json_t *object =
            (json_t *)(uintptr_t)json; /* jansson's iterator takes no const; nothing is changed */
        CT_TRY(cti_jn_dict_new(x, JN_DICT, json_object_size(json), out));
        for (void *it = json_object_iter(object); it != NULL; it = json_object_iter_next(object, it)) {
            cti_jn_val key, value;
            const char *name = json_object_iter_key(it);
            CT_TRY(cti_jn_str_borrow(x, name, strlen(name), &key));
            CT_TRY(cti_jn_from_json(x, json_object_iter_value(it), depth + 1, &value));
            CT_TRY(cti_jn_dict_put(x, out->as.dict, key, value));
        }
        return CT_OK;
    }
    case JSON_ARRAY:
        CT_TRY(cti_jn_seq_new(x, JN_LIST, json_array_size(json), out));
        for (size_t i = 0; i < out->as.seq->n; i++) {
            CT_TRY(cti_jn_from_json(x, json_array_get(json, i), depth + 1, &out->as.seq->v[i]));
        }
        return CT_OK;
    case JSON_STRING:
        return cti_jn_str_borrow(x, json_string_value(json), json_string_length(json), out);
    case JSON_INTEGER:
        *out = cti_jn_int(json_integer_value(json));
        return CT_OK;
    case JSON_REAL:
        *out = cti_jn_float(json_real_value(json));
        return CT_OK;
    case JSON_TRUE:
    case JSON_FALSE:
        *out = cti_jn_bool(json_is_true(json));
        return CT_OK;
    case JSON_NULL:
        *out = cti_jn_none();
        return CT_OK;
    }
    return JN_FAIL(x, CT_ERR_DATA, "a variable is of unknown type");
}

/* --- truth, iteration, equality, order
 * --------------------------------------------------------------------------- */

ct_status cti_jn_truth(cti_jn_ctx *x, cti_jn_val v, bool *out)
{
    *out = true;
    switch (v.kind) {
    case JN_ABSENT:
    case JN_UNDEFINED:
    case JN_NONE:
        *out = false;
        break;
    case JN_BOOL:
        *out = v.as.b;
        break;
    case JN_INT:
        *out = v.as.i != 0;
        break;
    case JN_FLOAT:
        *out = v.as.f != 0.0;
        break;
    case JN_STR:
        *out = v.as.s->n > 0;
        break;
    case JN_LIST:
    case JN_TUPLE:
    case JN_RANGE:
    case JN_VIEW:
        *out = v.as.seq->n > 0;
        break;
    case JN_DICT:
        *out = v.as.dict->n > 0;
        break;
    case JN_LOOP: {
        int64_t length = 0;
        CT_TRY(cti_jn_loop_length(x, v.as.loop, &length));
        *out = length > 0;
        break;
    }
    case JN_GENERATOR:
    case JN_NAMESPACE:
    case JN_MACRO:
    case JN_FUNCTION:
    case JN_METHOD:
        break;
    }
    return CT_OK;
}

static ct_status chars_of(cti_jn_ctx *x, const cti_jn_str *s, cti_jn_val *out)
{
    CT_TRY(cti_jn_seq_new(x, JN_LIST, (size_t)s->chars, out));
    size_t at = 0;
    for (size_t i = 0; i < out->as.seq->n; i++) {
        const int n = cti_utf8_len((const unsigned char *)s->p + at, (const unsigned char *)s->p + s->n);
        CT_TRY(cti_jn_str_borrow(x, s->p + at, (size_t)n, &out->as.seq->v[i]));
        at += (size_t)n;
    }
    return CT_OK;
}

ct_status cti_jn_iterate(cti_jn_ctx *x, cti_jn_val v, cti_jn_seq **out)
{
    cti_jn_val list = {0};
    switch (v.kind) {
    case JN_LIST:
    case JN_TUPLE:
    case JN_RANGE:
    case JN_VIEW:
        *out = v.as.seq;
        return CT_OK;
    case JN_GENERATOR:
        if (v.as.seq->is_spent) {
            CT_TRY(cti_jn_seq_new(x, JN_LIST, 0, &list));
            *out = list.as.seq;
            return CT_OK;
        }
        v.as.seq->is_spent = true;
        if (v.as.seq->lazy != NULL) {
            const cti_jn_lazy *lazy = v.as.seq->lazy;
            CT_TRY(lazy->fn(x, lazy->v, &lazy->args, &list));
            *v.as.seq = *list.as.seq;
            v.as.seq->is_spent = true;
        }
        *out = v.as.seq;
        return CT_OK;
    case JN_UNDEFINED:
    case JN_ABSENT:
        CT_TRY(cti_jn_seq_new(x, JN_LIST, 0, &list));
        break;
    case JN_STR:
        CT_TRY(chars_of(x, v.as.s, &list));
        break;
    case JN_DICT:
        CT_TRY(cti_jn_seq_new(x, JN_LIST, v.as.dict->n, &list));
        for (size_t i = 0; i < v.as.dict->n; i++) {
            list.as.seq->v[i] = v.as.dict->pairs[i].key;
        }
        break;
    case JN_LOOP:
        return JN_FAIL(x, CT_ERR_UNSUPPORTED, "going over 'loop' is not supported in templates here");
    case JN_NONE:
    case JN_BOOL:
    case JN_INT:
    case JN_FLOAT:
    case JN_NAMESPACE:
    case JN_MACRO:
    case JN_FUNCTION:
    case JN_METHOD:
        return JN_FAIL(x, CT_ERR_DATA, "a value of type %s cannot be gone over", cti_jn_type_name(v));
    }
    *out = list.as.seq;
    return CT_OK;
}

/* -1, 0, 1; 2 where one is NaN. Exact for all int64 and doubles. */
static int order_numbers(cti_jn_val a, cti_jn_val b)
{
    if (a.kind != JN_FLOAT && b.kind != JN_FLOAT) {
        const int64_t i = as_int(a), j = as_int(b);
        return i < j ? -1 : i > j;
    }
    if (a.kind == JN_FLOAT && b.kind == JN_FLOAT) {
        return isnan(a.as.f) || isnan(b.as.f) ? 2 : a.as.f < b.as.f ? -1 : a.as.f > b.as.f;
    }
    if (a.kind == JN_FLOAT) {
        const int order = order_numbers(b, a);
        return order == 2 ? 2 : -order;
    }
    if (isnan(b.as.f)) {
        return 2;
    }
    if (b.as.f >= 0x1p63 || b.as.f < -0x1p63) {
        return b.as.f > 0 ? -1 : 1;
    }
    const int64_t i = as_int(a), whole = (int64_t)b.as.f;
    const double rest = b.as.f - (double)whole;
    return i != whole ? (i < whole ? -1 : 1) : rest > 0 ? -1 : rest < 0;
}

static bool is_listlike(cti_jn_val v)
{
    return v.kind == JN_LIST || v.kind == JN_TUPLE || v.kind == JN_RANGE;
}

ct_status cti_jn_equal(cti_jn_ctx *x, cti_jn_val a, cti_jn_val b, int depth, bool *out)
{
    CT_TRY(cti_jn_step(x, 1));
    *out = false;
    if (depth > JN_MAX_VALUE_DEPTH) {
        return JN_FAIL(x, CT_ERR_RANGE, "values nested deeper than %d levels are compared",
                       (int)JN_MAX_VALUE_DEPTH);
    }
    if (cti_jn_is_number(a) && cti_jn_is_number(b)) {
        *out = order_numbers(a, b) == 0;
    } else if (a.kind != b.kind) {
        *out = false;
    } else if (a.kind == JN_STR) {
        CT_TRY(cti_jn_step(x, (int64_t)(a.as.s->n / 64)));
        *out = a.as.s->n == b.as.s->n && memcmp(a.as.s->p, b.as.s->p, a.as.s->n) == 0;
    } else if (a.kind == JN_NONE || a.kind == JN_UNDEFINED) {
        *out = true;
    } else if (is_listlike(a)) {
        *out = a.as.seq->n == b.as.seq->n;
        for (size_t i = 0; *out && i < a.as.seq->n; i++) {
            CT_TRY(cti_jn_equal(x, a.as.seq->v[i], b.as.seq->v[i], depth + 1, out));
        }
    } else if (a.kind == JN_DICT) {
        *out = a.as.dict->n == b.as.dict->n;
        for (size_t i = 0; *out && i < a.as.dict->n; i++) {
            cti_jn_pair *other = NULL;
            CT_TRY(cti_jn_dict_find(x, b.as.dict, a.as.dict->pairs[i].key, &other));
            *out = other != NULL;
            if (other != NULL) {
                CT_TRY(cti_jn_equal(x, a.as.dict->pairs[i].value, other->value, depth + 1, out));
            }
        }
    } else if (a.kind == JN_VIEW) {
        return JN_FAIL(x, CT_ERR_UNSUPPORTED, "comparing views of dicts is not supported in templates here");
    } else if (a.kind == JN_FUNCTION) {
        *out = a.as.i == b.as.i;
    } else {
        *out = a.as.seq == b.as.seq; /* the same object */
    }
    return CT_OK;
}

static bool holds(cti_jn_op op, int order)
{
    return order != 2 && (op == JN_LT   ? order < 0
                          : op == JN_LE ? order <= 0
                          : op == JN_GT ? order > 0
                                        : order >= 0);
}

ct_status cti_jn_compare(cti_jn_ctx *x, cti_jn_op op, cti_jn_val a, cti_jn_val b, int depth, bool *out)
{
    CT_TRY(cti_jn_step(x, 1));
    if (depth > JN_MAX_VALUE_DEPTH) {
        return JN_FAIL(x, CT_ERR_RANGE, "values nested deeper than %d levels are compared",
                       (int)JN_MAX_VALUE_DEPTH);
    }
    if (cti_jn_is_number(a) && cti_jn_is_number(b)) {
        *out = holds(op, order_numbers(a, b));
        return CT_OK;
    }
    if (a.kind == JN_STR && b.kind == JN_STR) { /* UTF-8 sorts as its code points do */
        const size_t n = a.as.s->n < b.as.s->n ? a.as.s->n : b.as.s->n;
        const int order = n == 0 ? 0 : memcmp(a.as.s->p, b.as.s->p, n);
        CT_TRY(cti_jn_step(x, (int64_t)(n / 64)));
        *out = holds(op, order != 0              ? (order < 0 ? -1 : 1)
                         : a.as.s->n < b.as.s->n ? -1
                                                 : a.as.s->n > b.as.s->n);
        return CT_OK;
    }
    if (a.kind == b.kind && (a.kind == JN_LIST || a.kind == JN_TUPLE)) {
        const size_t n = a.as.seq->n < b.as.seq->n ? a.as.seq->n : b.as.seq->n;
        for (size_t i = 0; i < n; i++) {
            bool same = false;
            CT_TRY(cti_jn_equal(x, a.as.seq->v[i], b.as.seq->v[i], depth + 1, &same));
            if (!same) {
                return cti_jn_compare(x, op, a.as.seq->v[i], b.as.seq->v[i], depth + 1, out);
            }
        }
        *out = holds(op, a.as.seq->n < b.as.seq->n ? -1 : a.as.seq->n > b.as.seq->n);
        return CT_OK;
    }
    if (a.kind == JN_UNDEFINED || b.kind == JN_UNDEFINED) {
        const cti_jn_str *why = a.kind == JN_UNDEFINED ? a.as.s : b.as.s;
        return JN_FAIL(x, CT_ERR_DATA, "%.*s", JN_P(why));
    }
    return JN_FAIL(x, CT_ERR_DATA, "values of types %s and %s have no order", cti_jn_type_name(a),
                   cti_jn_type_name(b));
}

ct_status cti_jn_less(cti_jn_ctx *x, cti_jn_val a, cti_jn_val b, bool *out)
{
    return cti_jn_compare(x, JN_LT, a, b, 0, out);
}
