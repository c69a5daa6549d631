/* SPDX-License-Identifier: Apache-2.0 */
/* The filters: the table, and those on single values; those on sequences are in jinja_sequences.c. */
#include <math.h>

#include "base/num.h"
#include "jinja/jinja_internal.h"

#define FILTER(name) \
    static ct_status name(cti_jn_ctx *x, cti_jn_val v, const cti_jn_args *args, cti_jn_val *out)

static ct_status no_args(cti_jn_ctx *x, const char *what, const cti_jn_args *args)
{
    return args->n + args->n_keys > 0 ? JN_FAIL(x, CT_ERR_DATA, "the filter '%s' takes no arguments", what)
                                      : CT_OK;
}

typedef void (*cased_fn)(cti_str *out, const char *p, size_t n);

static ct_status cased(cti_jn_ctx *x, cti_jn_val v, cased_fn add, cti_jn_val *out)
{
    cti_jn_val s;
    CT_TRY(cti_jn_to_str(x, v, &s));
    CT_TRY(cti_jn_step(x, (int64_t)(s.as.s->n / 8)));
    cti_str text = {.alloc = x->template->alloc};
    add(&text, s.as.s->p, s.as.s->n);
    return cti_jn_str_of(x, &text, out);
}

static void add_lower(cti_str *out, const char *p, size_t n)
{
    cti_jn_add_cased(out, p, n, JN_LOWER);
}

static void add_upper(cti_str *out, const char *p, size_t n)
{
    cti_jn_add_cased(out, p, n, JN_UPPER);
}

/* jinja2's own: words are what stands between blanks and - ( { [ <. */
static void add_title(cti_str *out, const char *p, size_t n)
{
    for (size_t i = 0; i < n && !out->failed;) {
        uint32_t cp = 0;
        size_t end = i;
        const char *stop = p + n;
        int k = cti_utf8_decode((const unsigned char *)p + i, (const unsigned char *)stop, &cp);
        const bool separates =
            cti_jn_is_space(cp) || (cp < 0x80 && strchr("-({[<", (int)cp) != NULL && cp != 0);
        while (end < n) {
            const int len = cti_utf8_decode((const unsigned char *)p + end, (const unsigned char *)stop, &cp);
            if ((cti_jn_is_space(cp) || (cp < 0x80 && strchr("-({[<", (int)cp) != NULL && cp != 0)) !=
                separates) {
                break;
            }
            end += (size_t)len;
        }
        k = separates ? (int)(end - i) : k;
        cti_jn_add_cased(out, p + i, (size_t)k, JN_UPPER);
        cti_jn_add_cased(out, p + i + k, end - i - (size_t)k, JN_LOWER);
        i = end;
    }
}

FILTER(filter_lower)
{
    CT_TRY(no_args(x, "lower", args));
    return cased(x, v, add_lower, out);
}

FILTER(filter_upper)
{
    CT_TRY(no_args(x, "upper", args));
    return cased(x, v, add_upper, out);
}

FILTER(filter_title)
{
    CT_TRY(no_args(x, "title", args));
    return cased(x, v, add_title, out);
}

FILTER(filter_capitalize)
{
    CT_TRY(no_args(x, "capitalize", args));
    return cased(x, v, cti_jn_add_capitalized, out);
}

FILTER(filter_string)
{
    CT_TRY(no_args(x, "string", args));
    if (v.kind == JN_STR) {
        *out = v;
        return CT_OK;
    }
    return cti_jn_to_str(x, v, out);
}

FILTER(filter_safe)
{
    cti_jn_val s;
    CT_TRY(no_args(x, "safe", args));
    CT_TRY(cti_jn_to_str(x, v, &s));
    cti_jn_str *marked = cti_jn_alloc(x, 1, sizeof *marked);
    if (marked == NULL) {
        return x->memory > x->max_memory ? CT_ERR_RANGE : CT_ERR_MEMORY;
    }
    *marked = *s.as.s;
    marked->is_safe = true;
    *out = cti_jn_text(marked);
    return CT_OK;
}

FILTER(filter_default)
{
    cti_jn_val slots[2];
    bool takes_falsy = false, is_true = false;
    CT_TRY(cti_jn_bind(x, "default", args, "default_value boolean", 0, slots));
    if (slots[0].kind == JN_ABSENT) {
        CT_TRY(cti_jn_str_borrow(x, "", 0, &slots[0]));
    }
    CT_TRY(cti_jn_truth(x, slots[1], &takes_falsy));
    *out = v;
    if (v.kind != JN_UNDEFINED && takes_falsy) {
        CT_TRY(cti_jn_truth(x, v, &is_true));
    }
    if (v.kind == JN_UNDEFINED || (takes_falsy && !is_true)) {
        *out = slots[0];
    }
    return CT_OK;
}

FILTER(filter_trim)
{
    static const cti_jn_str name = {.p = "strip", .n = 5, .chars = 5};
    cti_jn_val s, slot;
    CT_TRY(cti_jn_bind(x, "trim", args, "chars", 0, &slot));
    CT_TRY(cti_jn_to_str(x, v, &s));
    const cti_jn_args given = {.v = &slot, .n = slot.kind != JN_ABSENT};
    return cti_jn_method_find(s, &name)->fn(x, s, &given, out);
}

FILTER(filter_replace)
{
    static const cti_jn_str name = {.p = "replace", .n = 7, .chars = 7};
    cti_jn_val s, slots[3];
    CT_TRY(cti_jn_bind(x, "replace", args, "old new count", 2, slots));
    CT_TRY(cti_jn_to_str(x, v, &s));
    CT_TRY(cti_jn_to_str(x, slots[0], &slots[0]));
    CT_TRY(cti_jn_to_str(x, slots[1], &slots[1]));
    const bool has_count = slots[2].kind != JN_ABSENT && slots[2].kind != JN_NONE;
    const cti_jn_args given = {.v = slots, .n = has_count ? 3 : 2};
    return cti_jn_method_find(s, &name)->fn(x, s, &given, out);
}

FILTER(filter_indent)
{
    static const cti_jn_str name = {.p = "splitlines", .n = 10, .chars = 10};
    const cti_jn_args none = {0};
    cti_jn_val slots[3], lines, whole;
    bool first = false, blank = false;
    const cti_jn_str *s = NULL;
    cti_str prefix = {.alloc = x->template->alloc}, text = {.alloc = x->template->alloc};
    CT_TRY(cti_jn_bind(x, "indent", args, "width first blank", 0, slots));
    CT_TRY(cti_jn_want_str(x, "indent: what is indented", v, &s));
    CT_TRY(cti_jn_truth(x, slots[1], &first));
    CT_TRY(cti_jn_truth(x, slots[2], &blank));
    int64_t width = 4;
    if (slots[0].kind != JN_STR && slots[0].kind != JN_ABSENT) {
        CT_TRY(cti_jn_want_int(x, "indent: the width", slots[0], &width));
    }
    if (width > 1000) {
        return JN_FAIL(x, CT_ERR_RANGE, "indent: a width of at most 1000 is supported");
    }
    cti_str_add_n(&text, s->p, s->n);
    cti_str_add_char(&text, '\n');
    CT_TRY(cti_jn_str_of(x, &text, &whole));
    CT_TRY(cti_jn_method_find(whole, &name)->fn(x, whole, &none, &lines));
    if (slots[0].kind == JN_STR) {
        cti_str_add_n(&prefix, slots[0].as.s->p, slots[0].as.s->n);
    } else {
        cti_str_printf(&prefix, "%*s", (int)(width < 0 ? 0 : width), "");
    }
    for (size_t i = 0; i < lines.as.seq->n && !text.failed; i++) {
        const cti_jn_str *line = lines.as.seq->v[i].as.s;
        cti_str_add(&text, i > 0 ? "\n" : "");
        if (i == 0 ? first : (blank || line->n > 0)) {
            cti_str_add_n(&text, cti_str_text(&prefix), prefix.len);
        }
        cti_str_add_n(&text, line->p, line->n);
        if (text.len > x->max_output) {
            break; /* refused below */
        }
    }
    cti_str_deinit(&prefix);
    return cti_jn_str_of(x, &text, out);
}

/* --- numbers
 * ----------------------------------------------------------------------------------------------------- */

enum { MAX_NUMBER_BYTES = 400 };

/* The text of a number, NUL-terminated; false where it is too long or holds NUL. */
static bool number_text(const cti_jn_str *s, char buf[MAX_NUMBER_BYTES])
{
    if (s->n >= MAX_NUMBER_BYTES || memchr(s->p, '\0', s->n) != NULL) {
        return false;
    }
    memcpy(buf, s->p, s->n);
    buf[s->n] = '\0';
    return true;
}

/* True where it is a float's text, as Python's float() takes it; numbers beyond the range become infinite. */
static bool parse_float(const cti_jn_str *s, double *out)
{
    char buf[MAX_NUMBER_BYTES];
    if (!number_text(s, buf)) {
        return false;
    }
    if (cti_parse_f64(buf, out)) {
        return true;
    }
    char *e = strpbrk(buf, "eE"); /* 1e999: the mantissa alone says that it is a number */
    if (e == NULL || strspn(e + 1, "+0123456789") != strlen(e + 1) || e[1] == '\0') {
        return false;
    }
    *e = '\0';
    if (!cti_parse_f64(buf, out)) {
        return false;
    }
    *out = copysign(INFINITY, *out);
    return true;
}

static ct_status truncate_float(cti_jn_ctx *x, double d, cti_jn_val fallback, cti_jn_val *out)
{
    if (isnan(d)) {
        *out = fallback;
        return CT_OK;
    }
    if (d >= 0x1p63 || d < -0x1p63) {
        return JN_FAIL(x, isinf(d) ? CT_ERR_DATA : CT_ERR_UNSUPPORTED, "int: %s",
                       isinf(d) ? "an infinite number is no integer"
                                : "an integer beyond 64 bits is not supported in templates here");
    }
    *out = cti_jn_int((int64_t)d);
    return CT_OK;
}

FILTER(filter_int)
{
    cti_jn_val slots[2];
    int64_t base = 10, i;
    double d;
    char buf[MAX_NUMBER_BYTES];
    CT_TRY(cti_jn_bind(x, "int", args, "default base", 0, slots));
    const cti_jn_val fallback = slots[0].kind == JN_ABSENT ? cti_jn_int(0) : slots[0];
    if (slots[1].kind != JN_ABSENT) {
        CT_TRY(cti_jn_want_int(x, "int: the base", slots[1], &base));
    }
    if (base != 10 && v.kind == JN_STR) {
        return JN_FAIL(x, CT_ERR_UNSUPPORTED,
                       "int: another base than ten is not supported in templates here");
    }
    *out = fallback;
    if (v.kind == JN_UNDEFINED) {
        return JN_FAIL(x, CT_ERR_DATA, "int: %.*s", JN_P(v.as.s));
    }
    if (v.kind == JN_INT || v.kind == JN_BOOL) {
        *out = cti_jn_int(v.kind == JN_BOOL ? v.as.b : v.as.i);
    } else if (v.kind == JN_FLOAT) {
        return truncate_float(x, v.as.f, fallback, out);
    } else if (v.kind == JN_STR && number_text(v.as.s, buf)) {
        if (cti_parse_i64(buf, &i)) {
            *out = cti_jn_int(i);
        } else if (parse_float(v.as.s, &d)) {
            if (isinf(d)) {
                return CT_OK; /* OverflowError, which is caught here */
            }
            return truncate_float(x, d, fallback, out);
        }
    }
    return CT_OK;
}

FILTER(filter_float)
{
    cti_jn_val slot;
    double d;
    CT_TRY(cti_jn_bind(x, "float", args, "default", 0, &slot));
    if (v.kind == JN_UNDEFINED) {
        return JN_FAIL(x, CT_ERR_DATA, "float: %.*s", JN_P(v.as.s));
    }
    if (cti_jn_is_number(v)) {
        *out = cti_jn_float(cti_jn_as_double(v));
    } else if (v.kind == JN_STR && parse_float(v.as.s, &d)) {
        *out = cti_jn_float(d);
    } else {
        *out = slot.kind == JN_ABSENT ? cti_jn_float(0.0) : slot;
    }
    return CT_OK;
}

FILTER(filter_abs)
{
    CT_TRY(no_args(x, "abs", args));
    if (!cti_jn_is_number(v)) {
        return JN_FAIL(x, CT_ERR_DATA, "abs wants a number, but is given a value of type %s",
                       cti_jn_type_name(v));
    }
    if (v.kind == JN_FLOAT) {
        *out = cti_jn_float(fabs(v.as.f));
        return CT_OK;
    }
    return cti_jn_unary(x, v.kind == JN_INT && v.as.i < 0, v, out);
}

/* Python's round(): half to even, of the double's exact value. */
static ct_status round_common(cti_jn_ctx *x, cti_jn_val v, int64_t precision, cti_jn_val *out)
{
    char buf[MAX_NUMBER_BYTES];
    if (v.kind != JN_FLOAT) {
        if (precision < 0) {
            return JN_FAIL(x, CT_ERR_UNSUPPORTED,
                           "round: a negative precision is not supported in templates here");
        }
        *out = cti_jn_int(v.kind == JN_BOOL ? v.as.b : v.as.i);
        return CT_OK;
    }
    if (precision < 0) {
        return JN_FAIL(x, CT_ERR_UNSUPPORTED,
                       "round: a negative precision is not supported in templates here");
    }
    double d = v.as.f;
    if (precision <= 60 && isfinite(d) && fabs(d) < 0x1p60) {
        (void)snprintf(buf, sizeof buf, "%.*f", (int)precision, d);
        (void)cti_parse_f64(buf, &d);
        d = copysign(d, v.as.f);
    }
    *out = cti_jn_float(d);
    return CT_OK;
}

FILTER(filter_round)
{
    cti_jn_val slots[2];
    int64_t precision = 0;
    CT_TRY(cti_jn_bind(x, "round", args, "precision method", 0, slots));
    if (slots[0].kind != JN_ABSENT) {
        CT_TRY(cti_jn_want_int(x, "round: the precision", slots[0], &precision));
    }
    if (!cti_jn_is_number(v)) {
        return JN_FAIL(x, CT_ERR_DATA, "round wants a number, but is given a value of type %s",
                       cti_jn_type_name(v));
    }
    if (slots[1].kind == JN_ABSENT || cti_jn_is_text(slots[1], "common")) {
        return round_common(x, v, precision, out);
    }
    const bool is_ceil = cti_jn_is_text(slots[1], "ceil");
    if (!is_ceil && !cti_jn_is_text(slots[1], "floor")) {
        return JN_FAIL(x, CT_ERR_DATA, "round: the method should be 'common', 'ceil' or 'floor'");
    }
    if (precision < 0 || precision > 15 || !isfinite(cti_jn_as_double(v))) {
        return JN_FAIL(x, CT_ERR_UNSUPPORTED,
                       "round: '%s' of this number and precision is not supported in templates here",
                       is_ceil ? "ceil" : "floor");
    }
    const double scale = pow(10.0, (double)precision), d = cti_jn_as_double(v) * scale;
    *out = cti_jn_float(((is_ceil ? ceil(d) : floor(d)) + 0.0) / scale);
    return CT_OK;
}

const cti_jn_filter_row *cti_jn_filter_find(const char *p, size_t n)
{
    static const cti_jn_filter_row rows[] = {{"abs", filter_abs},
                                             {"capitalize", filter_capitalize},
                                             {"count", cti_jn_filter_length},
                                             {"d", filter_default},
                                             {"default", filter_default},
                                             {"dictsort", cti_jn_filter_dictsort},
                                             {"first", cti_jn_filter_first},
                                             {"float", filter_float},
                                             {"indent", filter_indent},
                                             {"int", filter_int},
                                             {"items", cti_jn_filter_items},
                                             {"join", cti_jn_filter_join},
                                             {"last", cti_jn_filter_last},
                                             {"length", cti_jn_filter_length},
                                             {"list", cti_jn_filter_list},
                                             {"lower", filter_lower},
                                             {"map", cti_jn_filter_map},
                                             {"max", cti_jn_filter_max},
                                             {"min", cti_jn_filter_min},
                                             {"reject", cti_jn_filter_reject},
                                             {"rejectattr", cti_jn_filter_rejectattr},
                                             {"replace", filter_replace},
                                             {"reverse", cti_jn_filter_reverse},
                                             {"round", filter_round},
                                             {"safe", filter_safe},
                                             {"select", cti_jn_filter_select},
                                             {"selectattr", cti_jn_filter_selectattr},
                                             {"sort", cti_jn_filter_sort},
                                             {"string", filter_string},
                                             {"sum", cti_jn_filter_sum},
                                             {"title", filter_title},
                                             {"tojson", cti_jn_to_json},
                                             {"trim", filter_trim},
                                             {"unique", cti_jn_filter_unique},
                                             {"upper", filter_upper},
                                             {"attr", NULL},
                                             {"batch", NULL},
                                             {"center", NULL},
                                             {"e", NULL},
                                             {"escape", NULL},
                                             {"filesizeformat", NULL},
                                             {"forceescape", NULL},
                                             {"format", NULL},
                                             {"groupby", NULL},
                                             {"pprint", NULL},
                                             {"random", NULL},
                                             {"slice", NULL},
                                             {"striptags", NULL},
                                             {"truncate", NULL},
                                             {"urlencode", NULL},
                                             {"urlize", NULL},
                                             {"wordcount", NULL},
                                             {"wordwrap", NULL},
                                             {"xmlattr", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strlen(rows[i].name) == n && memcmp(rows[i].name, p, n) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}
