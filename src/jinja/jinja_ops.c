/* SPDX-License-Identifier: Apache-2.0 */
/* Operators and subscripts, with Python's meaning. */
#include <math.h>

#include "base/num.h"
#include "jinja/jinja_internal.h"

static ct_status no_operator(cti_jn_ctx *x, cti_jn_op op, cti_jn_val a, cti_jn_val b)
{
    static const char *const names[] = {"+", "-", "*", "/", "//", "%", "**"};
    if (op == JN_MOD && a.kind == JN_STR) {
        return JN_FAIL(x, CT_ERR_UNSUPPORTED,
                       "formatting a text with '%%' is not supported in templates here");
    }
    if (op == JN_SUB && (a.kind == JN_VIEW || b.kind == JN_VIEW)) {
        return JN_FAIL(x, CT_ERR_UNSUPPORTED, "sets are not supported in templates here");
    }
    if (a.kind == JN_UNDEFINED || b.kind == JN_UNDEFINED) {
        const cti_jn_str *why = a.kind == JN_UNDEFINED ? a.as.s : b.as.s;
        return JN_FAIL(x, CT_ERR_DATA, "%.*s", JN_P(why));
    }
    return JN_FAIL(x, CT_ERR_DATA, "'%s' is not for values of types %s and %s", names[op],
                   cti_jn_type_name(a), cti_jn_type_name(b));
}

static ct_status too_big(cti_jn_ctx *x)
{
    return JN_FAIL(x, CT_ERR_UNSUPPORTED, "an integer beyond 64 bits is not supported in templates here");
}

static ct_status by_zero(cti_jn_ctx *x)
{
    return JN_FAIL(x, CT_ERR_DATA, "division by zero");
}

static ct_status int_power(cti_jn_ctx *x, int64_t a, int64_t b, cti_jn_val *out)
{
    int64_t r = 1;
    if (b < 0) {
        if (a == 0) {
            return by_zero(x);
        }
        *out = cti_jn_float(pow((double)a, (double)b));
        return CT_OK;
    }
    if (a == 0 || a == 1 || a == -1) {
        *out = cti_jn_int(b == 0 ? 1 : a == -1 && b % 2 == 0 ? 1 : a);
        return CT_OK;
    }
    for (; b > 0; b--) {
        if (!cti_mul_i64(r, a, &r)) {
            return too_big(x);
        }
    }
    *out = cti_jn_int(r);
    return CT_OK;
}

static ct_status int_binary(cti_jn_ctx *x, cti_jn_op op, int64_t a, int64_t b, cti_jn_val *out)
{
    int64_t r = 0;
    bool fits = true;
    if (op == JN_ADD) {
        fits = cti_add_i64(a, b, &r);
    } else if (op == JN_SUB) {
        fits = !__builtin_sub_overflow(a, b, &r);
    } else if (op == JN_MUL) {
        fits = cti_mul_i64(a, b, &r);
    } else if (op == JN_POW) {
        return int_power(x, a, b, out);
    } else if (b == 0) {
        return by_zero(x);
    } else if (op == JN_DIV) {
        *out = cti_jn_float((double)a / (double)b);
        return CT_OK;
    } else if (b == -1) {
        fits = op == JN_MOD || !__builtin_sub_overflow((int64_t)0, a, &r);
    } else {
        const int64_t rest = a % b;
        const bool other_sign = rest != 0 && (rest < 0) != (b < 0);
        r = op == JN_MOD ? rest + (other_sign ? b : 0) : a / b - other_sign;
    }
    *out = cti_jn_int(r);
    return fits ? CT_OK : too_big(x);
}

/* Python's float division with floor, Objects/floatobject.c's results: the remainder has the divisor's sign.
 */
static void float_divmod(double a, double b, double *out_div, double *out_mod)
{
    double mod = fmod(a, b), div = (a - mod) / b;
    if (mod < 0.0 || mod > 0.0) {
        if ((b < 0) != (mod < 0)) {
            mod += b;
            div -= 1.0;
        }
    } else {
        mod = copysign(0.0, b);
    }
    if (div < 0.0 || div > 0.0) {
        const double whole = floor(div);
        div = div - whole > 0.5 ? whole + 1.0 : whole;
    } else {
        div = copysign(0.0, a / b);
    }
    *out_div = div;
    *out_mod = mod;
}

static ct_status float_binary(cti_jn_ctx *x, cti_jn_op op, double a, double b, cti_jn_val *out)
{
    double r = 0, other = 0;
    const bool is_zero = !(b < 0.0 || b > 0.0) && !isnan(b);
    if (op == JN_ADD) {
        r = a + b;
    } else if (op == JN_SUB) {
        r = a - b;
    } else if (op == JN_MUL) {
        r = a * b;
    } else if (op == JN_POW) {
        if (b < 0 && !(a < 0.0 || a > 0.0) && !isnan(a)) {
            return by_zero(x);
        }
        if (a < 0 && isfinite(a) && isfinite(b) && floor(b) < b) {
            return JN_FAIL(x, CT_ERR_UNSUPPORTED, "complex numbers are not supported in templates here");
        }
        r = pow(a, b);
        if (isinf(r) && isfinite(a) && isfinite(b)) {
            return JN_FAIL(x, CT_ERR_DATA, "the result of '**' is too large");
        }
    } else if (is_zero) {
        return by_zero(x);
    } else if (op == JN_DIV) {
        r = a / b;
    } else if (op == JN_FLOORDIV) {
        float_divmod(a, b, &r, &other);
    } else {
        float_divmod(a, b, &other, &r);
    }
    *out = cti_jn_float(r);
    return CT_OK;
}

/* Would the filter `escape` change it? */
static bool has_markup(const cti_jn_str *s)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->p[i] != '\0' && strchr("&<>'\"", s->p[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static ct_status add_texts(cti_jn_ctx *x, const cti_jn_str *a, const cti_jn_str *b, cti_jn_val *out)
{
    if (a->is_safe != b->is_safe && has_markup(a->is_safe ? b : a)) {
        return JN_FAIL(x, CT_ERR_UNSUPPORTED,
                       "'+' of a text marked by the filter 'safe' and one that would be escaped");
    }
    if (a->n + b->n > x->max_output) {
        return JN_FAIL(x, CT_ERR_RANGE, "a text of more than %zu bytes is being made", x->max_output);
    }
    char *p = cti_jn_alloc(x, a->n + b->n, 1);
    cti_jn_str *s = p == NULL ? NULL : cti_jn_alloc(x, 1, sizeof *s);
    if (s == NULL) {
        return x->memory > x->max_memory ? CT_ERR_RANGE : CT_ERR_MEMORY;
    }
    CT_TRY(cti_jn_step(x, (int64_t)((a->n + b->n) / 64)));
    memcpy(p, a->p, a->n);
    memcpy(p + a->n, b->p, b->n);
    *s = (cti_jn_str){
        .p = p, .n = a->n + b->n, .chars = a->chars + b->chars, .is_safe = a->is_safe || b->is_safe};
    *out = cti_jn_text(s);
    return CT_OK;
}

static ct_status add_lists(cti_jn_ctx *x, cti_jn_val a, cti_jn_val b, cti_jn_val *out)
{
    CT_TRY(cti_jn_seq_new(x, a.kind, a.as.seq->n + b.as.seq->n, out));
    if (a.as.seq->n > 0) {
        memcpy(out->as.seq->v, a.as.seq->v, a.as.seq->n * sizeof(cti_jn_val));
    }
    if (b.as.seq->n > 0) {
        memcpy(out->as.seq->v + a.as.seq->n, b.as.seq->v, b.as.seq->n * sizeof(cti_jn_val));
    }
    return CT_OK;
}

static ct_status repeat(cti_jn_ctx *x, cti_jn_val v, int64_t times, cti_jn_val *out)
{
    const size_t n = v.kind == JN_STR ? v.as.s->n : v.as.seq->n;
    const size_t k = times < 0 ? 0 : (size_t)times;
    size_t total;
    if (__builtin_mul_overflow(n, k, &total) || total > (size_t)x->max_memory) {
        return JN_FAIL(x, CT_ERR_RANGE, "a value repeated %lld times is too large", (long long)times);
    }
    if (v.kind == JN_STR) {
        char *p = cti_jn_alloc(x, total, 1);
        if (p == NULL) {
            return x->memory > x->max_memory ? CT_ERR_RANGE : CT_ERR_MEMORY;
        }
        for (size_t i = 0; i < k && n > 0; i++) {
            memcpy(p + i * n, v.as.s->p, n);
        }
        return cti_jn_str_borrow(x, p, total, out);
    }
    CT_TRY(cti_jn_seq_new(x, v.kind, total, out));
    for (size_t i = 0; i < total; i++) {
        out->as.seq->v[i] = v.as.seq->v[i % n];
    }
    return CT_OK;
}

static bool is_repeatable(cti_jn_val v)
{
    return v.kind == JN_STR || v.kind == JN_LIST || v.kind == JN_TUPLE;
}

static bool is_whole(cti_jn_val v)
{
    return v.kind == JN_INT || v.kind == JN_BOOL;
}

static int64_t whole(cti_jn_val v)
{
    return v.kind == JN_BOOL ? v.as.b : v.as.i;
}

ct_status cti_jn_binary(cti_jn_ctx *x, cti_jn_op op, cti_jn_val a, cti_jn_val b, cti_jn_val *out)
{
    if (is_whole(a) && is_whole(b)) {
        return int_binary(x, op, whole(a), whole(b), out);
    }
    if (cti_jn_is_number(a) && cti_jn_is_number(b)) {
        return float_binary(x, op, cti_jn_as_double(a), cti_jn_as_double(b), out);
    }
    if (op == JN_ADD && a.kind == JN_STR && b.kind == JN_STR) {
        return add_texts(x, a.as.s, b.as.s, out);
    }
    if (op == JN_ADD && a.kind == b.kind && (a.kind == JN_LIST || a.kind == JN_TUPLE)) {
        return add_lists(x, a, b, out);
    }
    if (op == JN_MUL && is_repeatable(a) && is_whole(b)) {
        return repeat(x, a, whole(b), out);
    }
    if (op == JN_MUL && is_whole(a) && is_repeatable(b)) {
        return repeat(x, b, whole(a), out);
    }
    return no_operator(x, op, a, b);
}

ct_status cti_jn_unary(cti_jn_ctx *x, bool negative, cti_jn_val a, cti_jn_val *out)
{
    if (is_whole(a)) {
        int64_t r = whole(a);
        if (negative && __builtin_sub_overflow((int64_t)0, r, &r)) {
            return too_big(x);
        }
        *out = cti_jn_int(r);
        return CT_OK;
    }
    if (a.kind == JN_FLOAT) {
        *out = cti_jn_float(negative ? -a.as.f : a.as.f);
        return CT_OK;
    }
    return a.kind == JN_UNDEFINED
               ? JN_FAIL(x, CT_ERR_DATA, "%.*s", JN_P(a.as.s))
               : JN_FAIL(x, CT_ERR_DATA, "a sign is not for a value of type %s", cti_jn_type_name(a));
}

ct_status cti_jn_contains(cti_jn_ctx *x, cti_jn_val item, cti_jn_val container, bool *out)
{
    *out = false;
    if (container.kind == JN_STR) {
        if (item.kind != JN_STR) {
            return JN_FAIL(x, CT_ERR_DATA, "'in' a text wants a text, but is given a value of type %s",
                           cti_jn_type_name(item));
        }
        const cti_jn_str *s = container.as.s, *part = item.as.s;
        CT_TRY(cti_jn_step(x, (int64_t)(s->n / 64)));
        *out = part->n == 0 || (part->n <= s->n && memmem(s->p, s->n, part->p, part->n) != NULL);
        return CT_OK;
    }
    if (container.kind == JN_DICT) {
        cti_jn_pair *pair = NULL;
        CT_TRY(cti_jn_dict_find(x, container.as.dict, item, &pair));
        *out = pair != NULL;
        return CT_OK;
    }
    cti_jn_seq *seq = NULL;
    CT_TRY(cti_jn_iterate(x, container, &seq));
    if (container.kind == JN_VIEW && strcmp(seq->view_name, "dict_keys") == 0 &&
        (item.kind == JN_LIST || item.kind == JN_DICT || item.kind == JN_VIEW || item.kind == JN_TUPLE) &&
        !cti_jn_is_hashable(item, 0)) {
        return JN_FAIL(x, CT_ERR_DATA, "a value of type %s cannot be a key of a dict",
                       cti_jn_type_name(item));
    }
    for (size_t i = 0; i < seq->n && !*out; i++) {
        CT_TRY(cti_jn_equal(x, seq->v[i], item, 0, out));
    }
    return CT_OK;
}

/* --- attributes and subscripts
 * ----------------------------------------------------------------------------------- */

static ct_status no_attribute(cti_jn_ctx *x, cti_jn_val v, const cti_jn_str *name, cti_jn_val *out)
{
    return cti_jn_undefined(x, out, "a value of type %s has no '%.*s'", cti_jn_type_name(v), JN_P(name));
}

/* What Python's getattr finds; *out_found false where it finds nothing. */
static ct_status own_attribute(cti_jn_ctx *x, cti_jn_val v, const cti_jn_str *name, cti_jn_val *out,
                               bool *out_found)
{
    *out_found = true;
    if (v.kind == JN_LOOP) {
        return cti_jn_loop_attr(x, v.as.loop, name, out, out_found);
    }
    if (name->n > 4 && memcmp(name->p, "__", 2) == 0 && memcmp(name->p + name->n - 2, "__", 2) == 0) {
        return JN_FAIL(x, CT_ERR_UNSUPPORTED, "the attribute '%.*s' must not be read by a template",
                       JN_P(name));
    }
    if (v.kind == JN_NAMESPACE) {
        cti_jn_pair *pair = cti_jn_dict_find_text(v.as.dict, name->p, name->n);
        *out_found = pair != NULL;
        if (pair != NULL) {
            *out = pair->value;
        }
        return CT_OK;
    }
    const cti_jn_method_row *row = cti_jn_method_find(v, name);
    if (row == NULL) {
        *out_found = false;
        return CT_OK;
    }
    if (row->fn == NULL) {
        return JN_FAIL(x, CT_ERR_UNSUPPORTED, "'%s' of a value of type %s is not supported in templates here",
                       row->name, cti_jn_type_name(v));
    }
    cti_jn_method *m = cti_jn_alloc(x, 1, sizeof *m);
    if (m == NULL) {
        return x->memory > x->max_memory ? CT_ERR_RANGE : CT_ERR_MEMORY;
    }
    *m = (cti_jn_method){.self = v, .row = row};
    *out = JN_VALUE(JN_METHOD, method, m);
    return CT_OK;
}

ct_status cti_jn_attr(cti_jn_ctx *x, cti_jn_val v, const cti_jn_str *name, cti_jn_val *out)
{
    bool found = false;
    if (v.kind == JN_UNDEFINED) {
        return JN_FAIL(x, CT_ERR_DATA, "%.*s, so it has no '%.*s'", JN_P(v.as.s), JN_P(name));
    }
    CT_TRY(own_attribute(x, v, name, out, &found));
    if (found) {
        return CT_OK;
    }
    cti_jn_pair *pair = v.kind == JN_DICT ? cti_jn_dict_find_text(v.as.dict, name->p, name->n) : NULL;
    if (pair != NULL) {
        *out = pair->value;
        return CT_OK;
    }
    return no_attribute(x, v, name, out);
}

static bool is_indexable(cti_jn_val v)
{
    return v.kind == JN_STR || v.kind == JN_LIST || v.kind == JN_TUPLE || v.kind == JN_RANGE;
}

static int64_t length_of(cti_jn_val v)
{
    return v.kind == JN_STR ? v.as.s->chars : (int64_t)v.as.seq->n;
}

static ct_status item_at(cti_jn_ctx *x, cti_jn_val v, int64_t at, cti_jn_val *out)
{
    const int64_t n = length_of(v);
    at += at < 0 ? n : 0;
    if (at < 0 || at >= n) {
        return cti_jn_undefined(x, out, "a %s of %lld has no such item", cti_jn_type_name(v), (long long)n);
    }
    if (v.kind != JN_STR) {
        *out = v.as.seq->v[at];
        return CT_OK;
    }
    const cti_jn_str *s = v.as.s;
    const size_t from = cti_jn_char_offset(s, at);
    CT_TRY(cti_jn_step(x, s->chars == (int64_t)s->n ? 1 : (int64_t)(from / 64)));
    const int k = cti_utf8_len((const unsigned char *)s->p + from, (const unsigned char *)s->p + s->n);
    return cti_jn_str_borrow(x, s->p + from, (size_t)k, out);
}

ct_status cti_jn_item(cti_jn_ctx *x, cti_jn_val v, cti_jn_val key, cti_jn_val *out)
{
    if (v.kind == JN_UNDEFINED) {
        return JN_FAIL(x, CT_ERR_DATA, "%.*s, so it has no items", JN_P(v.as.s));
    }
    if (is_indexable(v) && is_whole(key)) {
        return item_at(x, v, whole(key), out);
    }
    if (v.kind == JN_DICT && cti_jn_is_hashable(key, 0)) {
        cti_jn_pair *pair = NULL;
        CT_TRY(cti_jn_dict_find(x, v.as.dict, key, &pair));
        if (pair != NULL) {
            *out = pair->value;
            return CT_OK;
        }
    }
    if (key.kind == JN_STR) {
        bool found = false;
        CT_TRY(own_attribute(x, v, key.as.s, out, &found));
        return found ? CT_OK : no_attribute(x, v, key.as.s, out);
    }
    return cti_jn_undefined(x, out, "a value of type %s has no item of that kind", cti_jn_type_name(v));
}

/* Python's rules (PySlice_AdjustIndices): where it starts and how many. */
static int64_t adjust_slice(int64_t n, const cti_jn_val parts[3], int64_t step, int64_t *out_start)
{
    int64_t start = step < 0 ? n - 1 : 0, stop = step < 0 ? -1 : n;
    int64_t *const ends[2] = {&start, &stop};
    for (int i = 0; i < 2; i++) {
        if (parts[i].kind != JN_NONE) {
            int64_t at = whole(parts[i]);
            if (at < 0) {
                at = at < -n ? -1 : at + n;
                at = at < 0 ? (step < 0 ? -1 : 0) : at;
            } else if (at >= n) {
                at = step < 0 ? n - 1 : n;
            }
            *ends[i] = at;
        }
    }
    *out_start = start;
    if (step < 0) {
        return stop < start ? (start - stop - 1) / (step == INT64_MIN ? INT64_MAX : -step) + 1 : 0;
    }
    return start < stop ? (stop - start - 1) / step + 1 : 0;
}

static ct_status slice_text(cti_jn_ctx *x, const cti_jn_str *s, int64_t start, int64_t count, int64_t step,
                            cti_jn_val *out)
{
    CT_TRY(cti_jn_step(x, (int64_t)(s->n / 64)));
    if (step == 1 || count <= 1) {
        const size_t from = count == 0 ? 0 : cti_jn_char_offset(s, start);
        const size_t to = count == 0 ? 0 : cti_jn_char_offset(s, start + count);
        return cti_jn_str_borrow(x, s->p + from, to - from, out);
    }
    cti_jn_val chars;
    cti_jn_seq *seq = NULL;
    CT_TRY(cti_jn_iterate(x, cti_jn_text(s), &seq));
    cti_str text = {.alloc = x->template->alloc};
    for (int64_t i = 0; i < count; i++) {
        chars = seq->v[start + i * step];
        cti_str_add_n(&text, chars.as.s->p, chars.as.s->n);
    }
    return cti_jn_str_of(x, &text, out);
}

ct_status cti_jn_slice(cti_jn_ctx *x, cti_jn_val v, const cti_jn_val parts[3], cti_jn_val *out)
{
    if (v.kind == JN_UNDEFINED) {
        return JN_FAIL(x, CT_ERR_DATA, "%.*s, so it has no items", JN_P(v.as.s));
    }
    if (!is_indexable(v)) {
        return JN_FAIL(x, CT_ERR_DATA, "a value of type %s has no slices", cti_jn_type_name(v));
    }
    for (int i = 0; i < 3; i++) {
        if (parts[i].kind != JN_NONE && !is_whole(parts[i])) {
            return JN_FAIL(x, CT_ERR_DATA, "a part of a slice should be an integer, but is of type %s",
                           cti_jn_type_name(parts[i]));
        }
    }
    const int64_t step = parts[2].kind == JN_NONE ? 1 : whole(parts[2]);
    int64_t start = 0;
    if (step == 0) {
        return JN_FAIL(x, CT_ERR_DATA, "a slice's step is 0");
    }
    const int64_t count = adjust_slice(length_of(v), parts, step, &start);
    if (v.kind == JN_STR) {
        return slice_text(x, v.as.s, start, count, step, out);
    }
    CT_TRY(cti_jn_seq_new(x, v.kind, (size_t)count, out));
    for (int64_t i = 0; i < count; i++) {
        out->as.seq->v[i] = v.as.seq->v[start + i * step];
    }
    return CT_OK;
}
