/* SPDX-License-Identifier: Apache-2.0 */
/* Letters: case, blanks, what prints, as Python's str sees them (utf8proc's tables, and Unicode's
 * SpecialCasing for letters whose other case is more than one). */
#include <utf8proc.h>

#include "jinja/jinja_internal.h"

typedef struct special {
    uint32_t from;
    uint32_t to[3];
} special;

/* clang-format off */
static const special upper_specials[] = {
    {0xdf, {0x53, 0x53}}, {0x149, {0x2bc, 0x4e}}, {0x1f0, {0x4a, 0x30c}}, {0x390, {0x399, 0x308, 0x301}},
    {0x3b0, {0x3a5, 0x308, 0x301}}, {0x587, {0x535, 0x552}}, {0x1e96, {0x48, 0x331}}, {0x1e97, {0x54, 0x308}},
    {0x1e98, {0x57, 0x30a}}, {0x1e99, {0x59, 0x30a}}, {0x1e9a, {0x41, 0x2be}}, {0x1f50, {0x3a5, 0x313}},
    {0x1f52, {0x3a5, 0x313, 0x300}}, {0x1f54, {0x3a5, 0x313, 0x301}}, {0x1f56, {0x3a5, 0x313, 0x342}},
    {0x1f80, {0x1f08, 0x399}}, {0x1f81, {0x1f09, 0x399}}, {0x1f82, {0x1f0a, 0x399}},
    {0x1f83, {0x1f0b, 0x399}}, {0x1f84, {0x1f0c, 0x399}}, {0x1f85, {0x1f0d, 0x399}},
    {0x1f86, {0x1f0e, 0x399}}, {0x1f87, {0x1f0f, 0x399}}, {0x1f88, {0x1f08, 0x399}},
    {0x1f89, {0x1f09, 0x399}}, {0x1f8a, {0x1f0a, 0x399}}, {0x1f8b, {0x1f0b, 0x399}},
    {0x1f8c, {0x1f0c, 0x399}}, {0x1f8d, {0x1f0d, 0x399}}, {0x1f8e, {0x1f0e, 0x399}},
    {0x1f8f, {0x1f0f, 0x399}}, {0x1f90, {0x1f28, 0x399}}, {0x1f91, {0x1f29, 0x399}},
    {0x1f92, {0x1f2a, 0x399}}, {0x1f93, {0x1f2b, 0x399}}, {0x1f94, {0x1f2c, 0x399}},
    {0x1f95, {0x1f2d, 0x399}}, {0x1f96, {0x1f2e, 0x399}}, {0x1f97, {0x1f2f, 0x399}},
    {0x1f98, {0x1f28, 0x399}}, {0x1f99, {0x1f29, 0x399}}, {0x1f9a, {0x1f2a, 0x399}},
    {0x1f9b, {0x1f2b, 0x399}}, {0x1f9c, {0x1f2c, 0x399}}, {0x1f9d, {0x1f2d, 0x399}},
    {0x1f9e, {0x1f2e, 0x399}}, {0x1f9f, {0x1f2f, 0x399}}, {0x1fa0, {0x1f68, 0x399}},
    {0x1fa1, {0x1f69, 0x399}}, {0x1fa2, {0x1f6a, 0x399}}, {0x1fa3, {0x1f6b, 0x399}},
    {0x1fa4, {0x1f6c, 0x399}}, {0x1fa5, {0x1f6d, 0x399}}, {0x1fa6, {0x1f6e, 0x399}},
    {0x1fa7, {0x1f6f, 0x399}}, {0x1fa8, {0x1f68, 0x399}}, {0x1fa9, {0x1f69, 0x399}},
    {0x1faa, {0x1f6a, 0x399}}, {0x1fab, {0x1f6b, 0x399}}, {0x1fac, {0x1f6c, 0x399}},
    {0x1fad, {0x1f6d, 0x399}}, {0x1fae, {0x1f6e, 0x399}}, {0x1faf, {0x1f6f, 0x399}},
    {0x1fb2, {0x1fba, 0x399}}, {0x1fb3, {0x391, 0x399}}, {0x1fb4, {0x386, 0x399}}, {0x1fb6, {0x391, 0x342}},
    {0x1fb7, {0x391, 0x342, 0x399}}, {0x1fbc, {0x391, 0x399}}, {0x1fc2, {0x1fca, 0x399}},
    {0x1fc3, {0x397, 0x399}}, {0x1fc4, {0x389, 0x399}}, {0x1fc6, {0x397, 0x342}},
    {0x1fc7, {0x397, 0x342, 0x399}}, {0x1fcc, {0x397, 0x399}}, {0x1fd2, {0x399, 0x308, 0x300}},
    {0x1fd3, {0x399, 0x308, 0x301}}, {0x1fd6, {0x399, 0x342}}, {0x1fd7, {0x399, 0x308, 0x342}},
    {0x1fe2, {0x3a5, 0x308, 0x300}}, {0x1fe3, {0x3a5, 0x308, 0x301}}, {0x1fe4, {0x3a1, 0x313}},
    {0x1fe6, {0x3a5, 0x342}}, {0x1fe7, {0x3a5, 0x308, 0x342}}, {0x1ff2, {0x1ffa, 0x399}},
    {0x1ff3, {0x3a9, 0x399}}, {0x1ff4, {0x38f, 0x399}}, {0x1ff6, {0x3a9, 0x342}},
    {0x1ff7, {0x3a9, 0x342, 0x399}}, {0x1ffc, {0x3a9, 0x399}}, {0xfb00, {0x46, 0x46}}, {0xfb01, {0x46, 0x49}},
    {0xfb02, {0x46, 0x4c}}, {0xfb03, {0x46, 0x46, 0x49}}, {0xfb04, {0x46, 0x46, 0x4c}},
    {0xfb05, {0x53, 0x54}}, {0xfb06, {0x53, 0x54}}, {0xfb13, {0x544, 0x546}}, {0xfb14, {0x544, 0x535}},
    {0xfb15, {0x544, 0x53b}}, {0xfb16, {0x54e, 0x546}}, {0xfb17, {0x544, 0x53d}},};
static const special title_specials[] = {
    {0xdf, {0x53, 0x73}}, {0x149, {0x2bc, 0x4e}}, {0x1f0, {0x4a, 0x30c}}, {0x390, {0x399, 0x308, 0x301}},
    {0x3b0, {0x3a5, 0x308, 0x301}}, {0x587, {0x535, 0x582}}, {0x1e96, {0x48, 0x331}}, {0x1e97, {0x54, 0x308}},
    {0x1e98, {0x57, 0x30a}}, {0x1e99, {0x59, 0x30a}}, {0x1e9a, {0x41, 0x2be}}, {0x1f50, {0x3a5, 0x313}},
    {0x1f52, {0x3a5, 0x313, 0x300}}, {0x1f54, {0x3a5, 0x313, 0x301}}, {0x1f56, {0x3a5, 0x313, 0x342}},
    {0x1fb2, {0x1fba, 0x345}}, {0x1fb4, {0x386, 0x345}}, {0x1fb6, {0x391, 0x342}},
    {0x1fb7, {0x391, 0x342, 0x345}}, {0x1fc2, {0x1fca, 0x345}}, {0x1fc4, {0x389, 0x345}},
    {0x1fc6, {0x397, 0x342}}, {0x1fc7, {0x397, 0x342, 0x345}}, {0x1fd2, {0x399, 0x308, 0x300}},
    {0x1fd3, {0x399, 0x308, 0x301}}, {0x1fd6, {0x399, 0x342}}, {0x1fd7, {0x399, 0x308, 0x342}},
    {0x1fe2, {0x3a5, 0x308, 0x300}}, {0x1fe3, {0x3a5, 0x308, 0x301}}, {0x1fe4, {0x3a1, 0x313}},
    {0x1fe6, {0x3a5, 0x342}}, {0x1fe7, {0x3a5, 0x308, 0x342}}, {0x1ff2, {0x1ffa, 0x345}},
    {0x1ff4, {0x38f, 0x345}}, {0x1ff6, {0x3a9, 0x342}}, {0x1ff7, {0x3a9, 0x342, 0x345}},
    {0xfb00, {0x46, 0x66}}, {0xfb01, {0x46, 0x69}}, {0xfb02, {0x46, 0x6c}}, {0xfb03, {0x46, 0x66, 0x69}},
    {0xfb04, {0x46, 0x66, 0x6c}}, {0xfb05, {0x53, 0x74}}, {0xfb06, {0x53, 0x74}}, {0xfb13, {0x544, 0x576}},
    {0xfb14, {0x544, 0x565}}, {0xfb15, {0x544, 0x56b}}, {0xfb16, {0x54e, 0x576}}, {0xfb17, {0x544, 0x56d}},};
/* clang-format on */

static const special *special_find(const special *rows, size_t n, uint32_t cp)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        const size_t mid = (lo + hi) / 2;
        if (rows[mid].from < cp) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < n && rows[lo].from == cp ? &rows[lo] : NULL;
}

static uint32_t decode(const char *p, const char *end, size_t *out_n)
{
    uint32_t cp = 0;
    const int n = cti_utf8_decode((const unsigned char *)p, (const unsigned char *)end, &cp);
    *out_n = n == 0 ? 1 : (size_t)n;
    return cp;
}

bool cti_jn_is_space(uint32_t cp)
{
    return (cp >= 9 && cp <= 13) || (cp >= 0x1c && cp <= 0x20) || cp == 0x85 || cp == 0xa0 || cp == 0x1680 ||
           (cp >= 0x2000 && cp <= 0x200a) || cp == 0x2028 || cp == 0x2029 || cp == 0x202f || cp == 0x205f ||
           cp == 0x3000;
}

bool cti_jn_is_printable(uint32_t cp)
{
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return false;
    case UTF8PROC_CATEGORY_ZS:
        return cp == ' ';
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO:
        return true;
    }
    return false;
}

bool cti_jn_is_letter(uint32_t cp)
{
    const utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

bool cti_jn_is_digit(uint32_t cp)
{
    return utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_ND || cp == 0xb2 || cp == 0xb3 ||
           cp == 0xb9 || cp == 0x2070 || (cp >= 0x2074 && cp <= 0x2079) || (cp >= 0x2080 && cp <= 0x2089);
}

bool cti_jn_is_numeric(uint32_t cp)
{
    const utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_NO;
}

typedef enum casing { UNCASED, LOWER, UPPER, TITLE } casing;

static casing casing_of(uint32_t cp)
{
    const utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    if (c == UTF8PROC_CATEGORY_LL || cp == 0xaa || cp == 0xba || (cp >= 0x2170 && cp <= 0x217f) ||
        (cp >= 0x24d0 && cp <= 0x24e9)) {
        return LOWER;
    }
    if (c == UTF8PROC_CATEGORY_LU || (cp >= 0x2160 && cp <= 0x216f) || (cp >= 0x24b6 && cp <= 0x24cf)) {
        return UPPER;
    }
    return c == UTF8PROC_CATEGORY_LT ? TITLE : UNCASED;
}

static bool is_case_ignorable(uint32_t cp)
{
    const utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_ME || c == UTF8PROC_CATEGORY_CF ||
           c == UTF8PROC_CATEGORY_LM || c == UTF8PROC_CATEGORY_SK || cp == '\'' || cp == '.' || cp == ':' ||
           cp == 0xb7 || cp == 0x2019;
}

/* Unicode 15, table 3-17, Final_Sigma: a cased letter before, none after. at is the sigma's place. */
static bool is_final_sigma(const char *p, size_t n, size_t at)
{
    size_t i = at, k;
    bool before = false;
    while (i > 0) {
        do {
            i--;
        } while (i > 0 && ((unsigned char)p[i] & 0xc0) == 0x80);
        const uint32_t cp = decode(p + i, p + n, &k);
        if (!is_case_ignorable(cp)) {
            before = casing_of(cp) != UNCASED;
            break;
        }
    }
    for (i = at + 2; before && i < n; i += k) {
        const uint32_t cp = decode(p + i, p + n, &k);
        if (!is_case_ignorable(cp)) {
            return casing_of(cp) == UNCASED;
        }
    }
    return before;
}

static void add_cp(cti_str *out, uint32_t cp)
{
    char bytes[4];
    cti_str_add_n(out, bytes, (size_t)cti_utf8_encode(cp, bytes));
}

/* The character at p[at] in another case. */
static void add_char(cti_str *out, const char *p, size_t n, size_t at, uint32_t cp, cti_jn_case c)
{
    enum { CAPITAL_SIGMA = 0x3a3, SIGMA = 0x3c3, FINAL_SIGMA = 0x3c2, DOTTED_I = 0x130 };
    if (cp < 0x80) {
        const bool is_lower = cp >= 'a' && cp <= 'z', is_upper = cp >= 'A' && cp <= 'Z';
        cti_str_add_char(out, (char)(c == JN_LOWER ? (is_upper ? cp + 32 : cp) : (is_lower ? cp - 32 : cp)));
        return;
    }
    if (c == JN_LOWER) {
        if (cp == CAPITAL_SIGMA) {
            add_cp(out, is_final_sigma(p, n, at) ? FINAL_SIGMA : SIGMA);
        } else if (cp == DOTTED_I) {
            add_cp(out, 'i');
            add_cp(out, 0x307);
        } else {
            add_cp(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp));
        }
        return;
    }
    const special *s = c == JN_UPPER
                           ? special_find(upper_specials, sizeof upper_specials / sizeof *upper_specials, cp)
                           : special_find(title_specials, sizeof title_specials / sizeof *title_specials, cp);
    if (s == NULL) {
        add_cp(out, (uint32_t)(c == JN_UPPER ? utf8proc_toupper((utf8proc_int32_t)cp)
                                             : utf8proc_totitle((utf8proc_int32_t)cp)));
        return;
    }
    for (size_t i = 0; i < 3 && s->to[i] != 0; i++) {
        add_cp(out, s->to[i]);
    }
}

void cti_jn_add_cased(cti_str *out, const char *p, size_t n, cti_jn_case c)
{
    size_t k;
    for (size_t i = 0; i < n && !out->failed; i += k) {
        const uint32_t cp = decode(p + i, p + n, &k);
        add_char(out, p, n, i, cp, c);
    }
}

void cti_jn_add_capitalized(cti_str *out, const char *p, size_t n)
{
    size_t k;
    for (size_t i = 0; i < n && !out->failed; i += k) {
        const uint32_t cp = decode(p + i, p + n, &k);
        add_char(out, p, n, i, cp, i == 0 ? JN_TITLE : JN_LOWER);
    }
}

void cti_jn_add_titled(cti_str *out, const char *p, size_t n)
{
    size_t k;
    bool in_word = false;
    for (size_t i = 0; i < n && !out->failed; i += k) {
        const uint32_t cp = decode(p + i, p + n, &k);
        add_char(out, p, n, i, cp, in_word ? JN_LOWER : JN_TITLE);
        in_word = casing_of(cp) != UNCASED;
    }
}

bool cti_jn_is_cased_all(const char *p, size_t n, cti_jn_case c)
{
    bool any = false;
    size_t k;
    for (size_t i = 0; i < n; i += k) {
        const casing is = casing_of(decode(p + i, p + n, &k));
        if (is != UNCASED && is != (c == JN_LOWER ? LOWER : UPPER)) {
            return false;
        }
        any = any || is != UNCASED;
    }
    return any;
}

size_t cti_jn_blank_front(const char *p, size_t n)
{
    size_t i = 0, k;
    while (i < n && cti_jn_is_space(decode(p + i, p + n, &k))) {
        i += k;
    }
    return i;
}

size_t cti_jn_blank_back(const char *p, size_t n)
{
    size_t end = n, k;
    while (end > 0) {
        size_t i = end - 1;
        while (i > 0 && ((unsigned char)p[i] & 0xc0) == 0x80) {
            i--;
        }
        if (!cti_jn_is_space(decode(p + i, p + n, &k))) {
            break;
        }
        end = i;
    }
    return n - end;
}

int64_t cti_jn_count_chars(const char *p, size_t n)
{
    int64_t chars = 0;
    for (size_t i = 0; i < n; i++) {
        chars += ((unsigned char)p[i] & 0xc0) != 0x80;
    }
    return chars;
}

size_t cti_jn_char_offset(const cti_jn_str *s, int64_t index)
{
    if (s->chars == (int64_t)s->n) {
        return (size_t)index;
    }
    size_t i = 0;
    for (; i < s->n; i++) {
        if (((unsigned char)s->p[i] & 0xc0) != 0x80 && index-- == 0) {
            break;
        }
    }
    return i;
}
