/* SPDX-License-Identifier: Apache-2.0 */
/* One line of JSON: checks all of it and takes one text out, without building a tree (RFC 8259). */
#include <stdarg.h>

#include "data/data_internal.h"

typedef struct scan {
    const unsigned char *line, *p, *end;
    const char *field;
    cti_line_fault *fault;
} scan;

static bool fail(scan *s, ct_bad bad, const char *fmt, ...) CT_PRINTF(3, 4);

/* False always, so that callers can return it. */
static bool fail(scan *s, ct_bad bad, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    s->fault->bad = bad;
    s->fault->column = (size_t)(s->p - s->line) + 1;
    (void)vsnprintf(s->fault->detail, sizeof s->fault->detail, fmt, args);
    va_end(args);
    return false;
}

static bool is_blank(unsigned char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void skip_blanks(scan *s)
{
    while (s->p < s->end && is_blank(*s->p)) {
        s->p++;
    }
}

/* "expected X, found Y" at p. */
static bool fail_expected(scan *s, const char *what)
{
    if (s->p == s->end) {
        return fail(s, CT_BAD_CUT_OFF, "the line ends where %s should stand", what);
    }
    const unsigned char c = *s->p;
    if (c > 0x20 && c < 0x7f) {
        return fail(s, CT_BAD_SYNTAX, "%s is wanted, found '%c'", what, c);
    }
    return fail(s, CT_BAD_SYNTAX, "%s is wanted, found byte 0x%02x", what, c);
}

static int hex_digit(unsigned char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    const unsigned char lower = c | 0x20u;
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* p is at the 'u' of an escape; leaves it after the four digits. */
static bool scan_unit(scan *s, uint32_t *out_unit)
{
    uint32_t unit = 0;
    s->p++;
    for (int i = 0; i < 4; i++, s->p++) {
        const int digit = s->p < s->end ? hex_digit(*s->p) : -1;
        if (digit < 0) {
            return fail_expected(s, "a hexadecimal digit of a \\u escape");
        }
        unit = unit << 4 | (uint32_t)digit;
    }
    *out_unit = unit;
    return true;
}

/* p is at the 'u'. A surrogate without its other half becomes U+FFFD. */
static bool scan_u_escape(scan *s, cti_str *out, int64_t *n_lone)
{
    uint32_t cp = 0;
    if (!scan_unit(s, &cp)) {
        return false;
    }
    if (cp >= 0xd800 && cp <= 0xdbff && s->end - s->p >= 2 && s->p[0] == '\\' && s->p[1] == 'u') {
        const unsigned char *before = s->p;
        uint32_t low = 0;
        s->p++;
        if (!scan_unit(s, &low)) {
            return false;
        }
        if (low >= 0xdc00 && low <= 0xdfff) {
            cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
        } else {
            s->p = before; /* an escape of its own */
        }
    }
    if (cp >= 0xd800 && cp <= 0xdfff) {
        cp = 0xfffd;
        ++*n_lone;
    }
    if (out != NULL) {
        char bytes[4];
        cti_str_add_n(out, bytes, (size_t)cti_utf8_encode(cp, bytes));
    }
    return true;
}

static bool scan_escape(scan *s, cti_str *out, int64_t *n_lone)
{
    static const char names[] = "\"\\/bfnrt";
    static const char values[] = "\"\\/\b\f\n\r\t";
    s->p++;
    if (s->p < s->end && *s->p == 'u') {
        return scan_u_escape(s, out, n_lone);
    }
    const char *name = s->p < s->end && *s->p != '\0' ? strchr(names, *s->p) : NULL;
    if (name == NULL) {
        return fail_expected(s, "one of \" \\ / b f n r t u after a backslash");
    }
    if (out != NULL) {
        cti_str_add_char(out, values[name - names]);
    }
    s->p++;
    return true;
}

/* Eight bytes at once: true where none of them is a quote, a backslash or below 0x20 (a byte of 0x80 or more never is). */
static bool are_plain(const unsigned char *p)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones << 7;
    uint64_t v;
    memcpy(&v, p, sizeof v);
    const uint64_t quotes = v ^ (ones * '"'), slashes = v ^ (ones * '\\');
    return ((((quotes - ones) & ~quotes) | ((slashes - ones) & ~slashes) | ((v - ones * 0x20) & ~v)) & highs) == 0;
}

/* p is at the opening quote; leaves it after the closing one. out NULL: checked only. */
static bool scan_string(scan *s, cti_str *out, ct_text_repairs *repairs)
{
    ct_text_repairs none = {0};
    ct_text_repairs *r = repairs != NULL ? repairs : &none;
    s->p++;
    for (;;) {
        const unsigned char *run = s->p;
        while (s->end - s->p >= 8 && are_plain(s->p)) {
            s->p += 8;
        }
        while (s->p < s->end && *s->p != '"' && *s->p != '\\' && *s->p >= 0x20) {
            s->p++;
        }
        if (out != NULL && s->p > run) {
            r->n_invalid_utf8 += cti_text_add_repaired(out, run, (size_t)(s->p - run));
        }
        if (s->p == s->end) {
            return fail(s, CT_BAD_CUT_OFF, "the line ends in the middle of a string");
        }
        if (*s->p == '"') {
            s->p++;
            return true;
        }
        if (*s->p < 0x20) {
            return fail(s, CT_BAD_SYNTAX, "a raw control character (byte 0x%02x) in a string; it must be escaped", *s->p);
        }
        if (!scan_escape(s, out, &r->n_lone_surrogates)) {
            return false;
        }
    }
}

static bool scan_digits(scan *s)
{
    if (s->p == s->end || *s->p < '0' || *s->p > '9') {
        return fail_expected(s, "a digit");
    }
    while (s->p < s->end && *s->p >= '0' && *s->p <= '9') {
        s->p++;
    }
    return true;
}

static bool scan_word(scan *s, const char *word)
{
    for (const char *w = word; *w != '\0'; w++, s->p++) {
        if (s->p == s->end || *s->p != (unsigned char)*w) {
            return fail_expected(s, "a value");
        }
    }
    return true;
}

/* p is at '-', a digit or 'I'. */
static bool scan_number(scan *s)
{
    if (*s->p == '-') {
        s->p++;
    }
    if (s->p < s->end && *s->p == 'I') {
        return scan_word(s, "Infinity");
    }
    if (s->p < s->end && *s->p == '0') {
        s->p++;
        if (s->p < s->end && *s->p >= '0' && *s->p <= '9') {
            return fail(s, CT_BAD_SYNTAX, "a number must not begin with 0");
        }
    } else if (!scan_digits(s)) {
        return false;
    }
    if (s->p < s->end && *s->p == '.') {
        s->p++;
        if (!scan_digits(s)) {
            return false;
        }
    }
    if (s->p < s->end && (*s->p | 0x20u) == 'e') {
        s->p++;
        if (s->p < s->end && (*s->p == '+' || *s->p == '-')) {
            s->p++;
        }
        return scan_digits(s);
    }
    return true;
}

/* A value that is no object or array. */
static bool scan_scalar(scan *s)
{
    if (s->p == s->end) {
        return fail_expected(s, "a value");
    }
    switch (*s->p) {
    case '"':
        return scan_string(s, NULL, NULL);
    case 't':
        return scan_word(s, "true");
    case 'f':
        return scan_word(s, "false");
    case 'n':
        return scan_word(s, "null");
    case 'N':
        return scan_word(s, "NaN");
    case '-':
    case 'I':
        return scan_number(s);
    default:
        return *s->p >= '0' && *s->p <= '9' ? scan_number(s) : fail_expected(s, "a value");
    }
}

/* Blanks, a name in quotes, blanks, a colon, blanks. */
static bool scan_name(scan *s, cti_str *out)
{
    skip_blanks(s);
    if (s->p == s->end || *s->p != '"') {
        return fail_expected(s, "a member's name in quotes");
    }
    if (!scan_string(s, out, NULL)) {
        return false;
    }
    skip_blanks(s);
    if (s->p == s->end || *s->p != ':') {
        return fail_expected(s, "':'");
    }
    s->p++;
    skip_blanks(s);
    return true;
}

/* After a value inside containers: closes what ends here; true with *depth > 0 where a further value follows. */
static bool scan_after_value(scan *s, const unsigned char *kinds, int *depth)
{
    while (*depth > 0) {
        const unsigned char kind = kinds[*depth - 1];
        skip_blanks(s);
        if (s->p < s->end && *s->p == ',') {
            s->p++;
            return kind == '{' ? scan_name(s, NULL) : true;
        }
        if (s->p == s->end || *s->p != kind + 2) { /* '}' is '{' + 2, ']' is '[' + 2 */
            return fail_expected(s, kind == '{' ? "',' or '}'" : "',' or ']'");
        }
        s->p++;
        --*depth;
    }
    return true;
}

static bool scan_value(scan *s)
{
    unsigned char kinds[CTI_JSONL_MAX_DEPTH];
    int depth = 0;
    do {
        skip_blanks(s);
        if (s->p < s->end && (*s->p == '{' || *s->p == '[')) {
            const unsigned char kind = *s->p;
            if (depth == CTI_JSONL_MAX_DEPTH) {
                return fail(s, CT_BAD_TOO_DEEP, "values are nested more than %d deep", CTI_JSONL_MAX_DEPTH);
            }
            s->p++;
            skip_blanks(s);
            kinds[depth++] = kind;
            if (s->p == s->end || *s->p != kind + 2) {
                if (kind == '{' && !scan_name(s, NULL)) {
                    return false;
                }
                continue; /* its first value */
            }
        } else if (!scan_scalar(s)) {
            return false;
        }
        if (!scan_after_value(s, kinds, &depth)) {
            return false;
        }
    } while (depth > 0);
    return true;
}

static const char *type_name(unsigned char first)
{
    switch (first) {
    case '{':
        return "an object";
    case '[':
        return "an array";
    case 'n':
        return "null";
    case 't':
    case 'f':
        return "a boolean";
    case '"':
        return "a string";
    default:
        return "a number";
    }
}

/* One member of the outer object. The name is decoded behind the text and taken off again. */
static bool scan_member(scan *s, cti_str *text, ct_text_repairs *repairs, bool *found)
{
    const size_t mark = text->len;
    skip_blanks(s);
    const unsigned char *at_name = s->p;
    if (!scan_name(s, text)) {
        return false;
    }
    const size_t size = s->field != NULL ? strlen(s->field) : 0;
    const bool is_field = s->field != NULL && text->len - mark == size && (size == 0 || memcmp(text->data + mark, s->field, size) == 0);
    if (!text->failed) {
        text->len = mark;
    }
    if (!is_field) {
        return scan_value(s);
    }
    if (*found) {
        s->p = at_name;
        return fail(s, CT_BAD_FIELD_TWICE, "the field '%.64s' is there twice", s->field);
    }
    *found = true;
    if (s->p < s->end && *s->p == '"') {
        return scan_string(s, text, repairs);
    }
    const unsigned char *at_value = s->p;
    if (!scan_value(s)) {
        return false;
    }
    s->p = at_value;
    return fail(s, CT_BAD_FIELD_TYPE, "the field '%.64s' is %s, a string is wanted", s->field, type_name(*at_value));
}

static bool scan_object(scan *s, cti_str *text, ct_text_repairs *repairs)
{
    bool found = false;
    s->p++;
    skip_blanks(s);
    if (s->p < s->end && *s->p == '}') {
        s->p++;
    } else {
        for (;;) {
            if (!scan_member(s, text, repairs, &found)) {
                return false;
            }
            skip_blanks(s);
            if (s->p < s->end && *s->p == ',') {
                s->p++;
                continue;
            }
            if (s->p == s->end || *s->p != '}') {
                return fail_expected(s, "',' or '}'");
            }
            s->p++;
            break;
        }
    }
    skip_blanks(s);
    if (s->p < s->end) {
        return fail(s, CT_BAD_TRAILING, "something follows the object; one object a line is wanted");
    }
    if (!found && s->field != NULL) {
        s->p = s->line;
        return fail(s, CT_BAD_NO_FIELD, "the object has no field '%.64s' (--dataloader.text-field names another; conversations: --dataloader.format chat)",
                    s->field);
    }
    return true;
}

ct_bad cti_jsonl_text(const unsigned char *line, size_t size, const char *field, cti_str *text,
                      ct_text_repairs *repairs, cti_line_fault *fault)
{
    scan s = {.line = line, .p = line, .end = line + size, .field = field, .fault = fault};
    const size_t mark = text->len;
    ct_text_repairs own = {0};
    bool ok;
    fault->bad = CT_BAD_NONE;
    s.p += cti_bom_bytes(line, size);
    skip_blanks(&s);
    if (s.p < s.end && *s.p == '{') {
        ok = scan_object(&s, text, &own);
    } else {
        const unsigned char *at = s.p;
        ok = scan_value(&s);
        if (ok) {
            s.p = at;
            ok = field != NULL ? fail(&s, CT_BAD_NOT_OBJECT, "%s, an object with a field '%.64s' is wanted", type_name(*at), field)
                               : fail(&s, CT_BAD_NOT_OBJECT, "%s, an object is wanted", type_name(*at));
        }
    }
    if (text->data != NULL) {
        text->len = ok ? text->len : mark;
        text->data[text->len] = '\0';
    }
    if (!ok) {
        return fault->bad;
    }
    repairs->n_invalid_utf8 += own.n_invalid_utf8;
    repairs->n_lone_surrogates += own.n_lone_surrogates;
    return CT_BAD_NONE;
}
