/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of strings: case, what they are made of, their ends. */
#include "jinja/jinja_methods.h"

/* --- strings: case
 * ----------------------------------------------------------------------------------------------- */

static ct_status cased(cti_jn_ctx *x, const char *what, cti_jn_val self, const cti_jn_args *args, int how,
                       cti_jn_val *out)
{
    const cti_jn_str *s = self.as.s;
    CT_TRY(cti_jn_plain_args(x, what, args, 0, 0));
    CT_TRY(cti_jn_step(x, (int64_t)(s->n / 8)));
    cti_str text = {.alloc = x->template->alloc};
    if (how == JN_LOWER || how == JN_UPPER) {
        cti_jn_add_cased(&text, s->p, s->n, (cti_jn_case)how);
    } else if (how == JN_TITLE) {
        cti_jn_add_titled(&text, s->p, s->n);
    } else {
        cti_jn_add_capitalized(&text, s->p, s->n);
    }
    return cti_jn_str_of(x, &text, out);
}

JN_METHOD(cti_jn_str_lower)
{
    return cased(x, "lower", self, args, JN_LOWER, out);
}

JN_METHOD(cti_jn_str_upper)
{
    return cased(x, "upper", self, args, JN_UPPER, out);
}

JN_METHOD(cti_jn_str_title)
{
    return cased(x, "title", self, args, JN_TITLE, out);
}

JN_METHOD(cti_jn_str_capitalize)
{
    return cased(x, "capitalize", self, args, JN_TITLE + 1, out);
}

/* --- strings: what they are made of
 * ------------------------------------------------------------------------------ */

typedef bool (*letter_fn)(uint32_t cp);

static bool is_letter_or_number(uint32_t cp)
{
    return cti_jn_is_letter(cp) || cti_jn_is_numeric(cp);
}

static ct_status all_are(cti_jn_ctx *x, const char *what, cti_jn_val self, const cti_jn_args *args,
                         letter_fn is, cti_jn_val *out)
{
    const cti_jn_str *s = self.as.s;
    CT_TRY(cti_jn_plain_args(x, what, args, 0, 0));
    bool all = s->n > 0;
    for (size_t i = 0; i < s->n && all;) {
        uint32_t cp = 0;
        i +=
            (size_t)cti_utf8_decode((const unsigned char *)s->p + i, (const unsigned char *)s->p + s->n, &cp);
        all = is(cp);
    }
    *out = cti_jn_bool(all);
    return CT_OK;
}

JN_METHOD(cti_jn_str_isalpha)
{
    return all_are(x, "isalpha", self, args, cti_jn_is_letter, out);
}

JN_METHOD(cti_jn_str_isalnum)
{
    return all_are(x, "isalnum", self, args, is_letter_or_number, out);
}

JN_METHOD(cti_jn_str_isdigit)
{
    return all_are(x, "isdigit", self, args, cti_jn_is_digit, out);
}

JN_METHOD(cti_jn_str_isnumeric)
{
    return all_are(x, "isnumeric", self, args, cti_jn_is_numeric, out);
}

JN_METHOD(cti_jn_str_isspace)
{
    return all_are(x, "isspace", self, args, cti_jn_is_space, out);
}

JN_METHOD(cti_jn_str_islower)
{
    CT_TRY(cti_jn_plain_args(x, "islower", args, 0, 0));
    *out = cti_jn_bool(cti_jn_is_cased_all(self.as.s->p, self.as.s->n, JN_LOWER));
    return CT_OK;
}

JN_METHOD(cti_jn_str_isupper)
{
    CT_TRY(cti_jn_plain_args(x, "isupper", args, 0, 0));
    *out = cti_jn_bool(cti_jn_is_cased_all(self.as.s->p, self.as.s->n, JN_UPPER));
    return CT_OK;
}

/* --- strings: ends
 * ----------------------------------------------------------------------------------------------- */

/* Is the character of n bytes at p one of chars? */
static bool is_one_of(const cti_jn_str *chars, const char *p, size_t n)
{
    for (size_t i = 0; i < chars->n;) {
        const int k =
            cti_utf8_len((const unsigned char *)chars->p + i, (const unsigned char *)chars->p + chars->n);
        if ((size_t)k == n && memcmp(chars->p + i, p, n) == 0) {
            return true;
        }
        i += k == 0 ? 1 : (size_t)k;
    }
    return false;
}

static ct_status strip(cti_jn_ctx *x, const char *what, cti_jn_val self, const cti_jn_args *args, bool left,
                       bool right, cti_jn_val *out)
{
    const cti_jn_str *s = self.as.s, *chars = NULL;
    CT_TRY(cti_jn_plain_args(x, what, args, 0, 1));
    if (cti_jn_is_given(args, 0)) {
        CT_TRY(cti_jn_want_str(x, what, args->v[0], &chars));
    }
    size_t from = 0, to = s->n;
    if (chars == NULL) {
        from = left ? cti_jn_blank_front(s->p, s->n) : 0;
        to -= right ? cti_jn_blank_back(s->p + from, s->n - from) : 0;
        return cti_jn_str_borrow(x, s->p + from, to - from, out);
    }
    while (left && from < to) {
        const int k = cti_utf8_len((const unsigned char *)s->p + from, (const unsigned char *)s->p + to);
        CT_TRY(cti_jn_step(x, (int64_t)(1 + chars->n / 16)));
        if (!is_one_of(chars, s->p + from, (size_t)k)) {
            break;
        }
        from += (size_t)k;
    }
    while (right && to > from) {
        size_t at = to - 1;
        while (at > from && ((unsigned char)s->p[at] & 0xc0) == 0x80) {
            at--;
        }
        CT_TRY(cti_jn_step(x, (int64_t)(1 + chars->n / 16)));
        if (!is_one_of(chars, s->p + at, to - at)) {
            break;
        }
        to = at;
    }
    return cti_jn_str_borrow(x, s->p + from, to - from, out);
}

JN_METHOD(cti_jn_str_strip)
{
    return strip(x, "strip", self, args, true, true, out);
}

JN_METHOD(cti_jn_str_lstrip)
{
    return strip(x, "lstrip", self, args, true, false, out);
}

JN_METHOD(cti_jn_str_rstrip)
{
    return strip(x, "rstrip", self, args, false, true, out);
}

static bool has_end(const cti_jn_str *s, const cti_jn_str *part, bool at_front)
{
    return part->n <= s->n && memcmp(at_front ? s->p : s->p + s->n - part->n, part->p, part->n) == 0;
}

/* A prefix or suffix, or a tuple of some. */
static ct_status has_ends(cti_jn_ctx *x, const char *what, cti_jn_val self, const cti_jn_args *args,
                          bool at_front, cti_jn_val *out)
{
    const cti_jn_str *part = NULL;
    CT_TRY(cti_jn_plain_args(x, what, args, 1, 1));
    bool has = false;
    if (args->v[0].kind == JN_TUPLE) {
        const cti_jn_seq *seq = args->v[0].as.seq;
        for (size_t i = 0; i < seq->n && !has; i++) {
            CT_TRY(cti_jn_want_str(x, what, seq->v[i], &part));
            has = has_end(self.as.s, part, at_front);
        }
    } else {
        CT_TRY(cti_jn_want_str(x, what, args->v[0], &part));
        has = has_end(self.as.s, part, at_front);
    }
    *out = cti_jn_bool(has);
    return CT_OK;
}

JN_METHOD(cti_jn_str_startswith)
{
    return has_ends(x, "startswith", self, args, true, out);
}

JN_METHOD(cti_jn_str_endswith)
{
    return has_ends(x, "endswith", self, args, false, out);
}

static ct_status remove_end(cti_jn_ctx *x, const char *what, cti_jn_val self, const cti_jn_args *args,
                            bool at_front, cti_jn_val *out)
{
    const cti_jn_str *s = self.as.s, *part = NULL;
    CT_TRY(cti_jn_plain_args(x, what, args, 1, 1));
    CT_TRY(cti_jn_want_str(x, what, args->v[0], &part));
    const size_t cut = has_end(s, part, at_front) ? part->n : 0;
    return cti_jn_str_borrow(x, s->p + (at_front ? cut : 0), s->n - cut, out);
}

JN_METHOD(cti_jn_str_removeprefix)
{
    return remove_end(x, "removeprefix", self, args, true, out);
}

JN_METHOD(cti_jn_str_removesuffix)
{
    return remove_end(x, "removesuffix", self, args, false, out);
}
