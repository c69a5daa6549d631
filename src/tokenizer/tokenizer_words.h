/* SPDX-License-Identifier: Apache-2.0 */
/* The next word of the patterns that cover every text without a gap, inline: the encoder's loop is compiled once a pattern.
 * p < end, well-formed UTF-8; each function returns where the match that begins at p ends, beyond p. */
#ifndef CTI_TOKENIZER_WORDS_H
#define CTI_TOKENIZER_WORDS_H

#include "tokenizer/tokenizer_fast.h"

#define CTI_HOT static inline __attribute__((always_inline))

CTI_HOT unsigned cti_class_at(const cti_classes *c, const unsigned char *p, unsigned *out_len)
{
    if (*p < 0x80) {
        *out_len = 1;
        return c->bits[0][*p]; /* page 0 comes first */
    }
    const uint32_t cp = cti_point_at(p, out_len);
    return cti_class_of(c, cp);
}

/* Letters of ASCII among the 8 bytes at p, from the first on. */
CTI_HOT unsigned cti_ascii_letters8(const unsigned char *p)
{
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    uint64_t w;
    memcpy(&w, p, 8);
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    w = __builtin_bswap64(w);
#endif
    const uint64_t x = (w & ~tops) | ones * 0x20;              /* lower case */
    const uint64_t not_letter = (~(x + ones * (0x80 - 'a')) | (x + ones * (0x7f - 'z')) | w) & tops;
    return not_letter ? (unsigned)__builtin_ctzll(not_letter) / 8 : 8;
}

/* Behind the characters of these classes. */
CTI_HOT const unsigned char *cti_run(const cti_classes *c, const unsigned char *p, const unsigned char *end, unsigned classes)
{
    for (;;) {
        if ((classes & CTI_CLASS_LETTER) == CTI_CLASS_LETTER && !(classes & CTI_CLASS_SPACE)) {
            unsigned n = 8;
            while (n == 8 && end - p >= 8) {
                n = cti_ascii_letters8(p);
                p += n;
            }
        }
        while (p < end && *p < 0x80) {
            if (!(c->bits[0][*p] & classes)) {
                return p;
            }
            p++;
        }
        if (p == end) {
            return p;
        }
        unsigned len = 0;
        if (!(cti_class_of(c, cti_point_at(p, &len)) & classes)) {
            return p;
        }
        p += len;
    }
}

CTI_HOT const unsigned char *cti_up_to(const cti_classes *c, const unsigned char *p, const unsigned char *end, unsigned classes, int n)
{
    unsigned len = 0;
    while (n-- > 0 && p < end && (cti_class_at(c, p, &len) & classes)) {
        p += len;
    }
    return p;
}

CTI_HOT const unsigned char *cti_newlines(const unsigned char *p, const unsigned char *end)
{
    while (p < end && (*p == '\r' || *p == '\n')) {
        p++;
    }
    return p;
}

/* At a blank: `\s*[\r\n]+` (where lines: true), else `\s+(?!\S)`, else `\s+`. All of a run that ends the text; through its last
 * newline; all but its last character; a single one. */
CTI_HOT const unsigned char *cti_blanks(const cti_classes *c, const unsigned char *p, const unsigned char *end, bool lines)
{
    const unsigned char *first = p, *last = p, *behind_newline = NULL;
    unsigned len = 0;
    while (p < end && cti_class_at(c, p, &len) == CTI_CLASS_SPACE) {
        last = p;
        p += len;
        if (lines && (*last == '\n' || *last == '\r')) {
            behind_newline = p;
        }
    }
    if (behind_newline != NULL) {
        return behind_newline;
    }
    return p == end || last == first ? p : last;
}

/* `(?i:'s|'t|'re|'ve|'m|'ll|'d)` at p, which may be end: behind it, or p. Without case U+017F is an s. */
CTI_HOT const unsigned char *cti_contraction(const unsigned char *p, const unsigned char *end, bool any_case)
{
    if (end - p < 2 || *p != '\'') {
        return p;
    }
    const unsigned fold = any_case ? 0x20 : 0, a = p[1] | fold;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') {
        return p + 2;
    }
    if (end - p < 3) {
        return p;
    }
    const unsigned b = p[2] | fold;
    if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') || (any_case && p[1] == 0xc5 && p[2] == 0xbf)) {
        return p + 3;
    }
    return p;
}

CTI_HOT const unsigned char *cti_next_gpt2(const cti_classes *c, const unsigned char *p, const unsigned char *end)
{
    const unsigned other = 0xffu & ~(unsigned)(CTI_CLASS_SPACE | CTI_CLASS_LETTER | CTI_CLASS_NUMBER);
    const unsigned char *q = cti_contraction(p, end, false);
    if (q > p) {
        return q;
    }
    q = p + (*p == ' ');
    unsigned len = 0;
    const unsigned is = q < end ? cti_class_at(c, q, &len) : CTI_CLASS_SPACE;
    if (is & CTI_CLASS_LETTER) { /* ?\p{L}+ */
        return cti_run(c, q + len, end, CTI_CLASS_LETTER);
    }
    if (is == CTI_CLASS_NUMBER) { /* ?\p{N}+ */
        return cti_run(c, q + len, end, CTI_CLASS_NUMBER);
    }
    if (is != CTI_CLASS_SPACE) { /* ?[^\s\p{L}\p{N}]+ */
        return cti_run(c, q + len, end, other);
    }
    return cti_blanks(c, p, end, false);
}

/* word: what a word is made of; digits: most of one piece. */
CTI_HOT const unsigned char *cti_next_lines(const cti_classes *c, const unsigned char *p, const unsigned char *end, unsigned word,
                                            int digits)
{
    const unsigned other = 0xffu & ~(CTI_CLASS_SPACE | CTI_CLASS_NUMBER | word);
    unsigned len = 0, next_len = 0;
    const unsigned is = cti_class_at(c, p, &len);
    const unsigned char *q = p + len;
    if (is & word) { /* \p{L}+ */
        return cti_run(c, q, end, word);
    }
    if (is == CTI_CLASS_NUMBER) { /* \p{N}{1,3} */
        return cti_up_to(c, q, end, CTI_CLASS_NUMBER, digits - 1);
    }
    if (*p == '\'') {
        const unsigned char *behind = cti_contraction(p, end, true);
        if (behind > p) {
            return behind;
        }
    }
    const unsigned next = q < end ? cti_class_at(c, q, &next_len) : 0;
    if ((next & word) && *p != '\n' && *p != '\r') { /* [^\r\n\p{L}\p{N}]\p{L}+ */
        return cti_run(c, q + next_len, end, word);
    }
    if ((is & other) || (*p == ' ' && (next & other))) { /* ?[^\s\p{L}\p{N}]+[\r\n]* */
        return cti_newlines(cti_run(c, q, end, other), end);
    }
    return cti_blanks(c, p, end, true);
}

CTI_HOT const unsigned char *cti_next_llama3(const cti_classes *c, const unsigned char *p, const unsigned char *end)
{
    return cti_next_lines(c, p, end, CTI_CLASS_LETTER, 3);
}

CTI_HOT const unsigned char *cti_next_qwen2(const cti_classes *c, const unsigned char *p, const unsigned char *end)
{
    return cti_next_lines(c, p, end, CTI_CLASS_LETTER, 1);
}

CTI_HOT const unsigned char *cti_next_qwen3_5(const cti_classes *c, const unsigned char *p, const unsigned char *end)
{
    return cti_next_lines(c, p, end, CTI_CLASS_LETTER | CTI_CLASS_MARK, 1);
}

/* `U*L+` or else `U+L*` from p on, U and L the two sets of o200k, which share what has no case; p where neither matches. */
CTI_HOT const unsigned char *cti_cased(const cti_classes *c, const unsigned char *p, const unsigned char *end, bool is_second)
{
    const unsigned both = CTI_CLASS_OTHER_LETTER | CTI_CLASS_MARK;
    const unsigned char *q = p, *behind_both = NULL;
    unsigned len = 0, is = 0;
    while (q < end && ((is = cti_class_at(c, q, &len)) & (CTI_CLASS_UPPER | both))) {
        q += len;
        behind_both = is & both ? q : behind_both;
    }
    if (q < end && is == CTI_CLASS_LOWER) {
        return cti_run(c, q, end, CTI_CLASS_LOWER | both);
    }
    if (behind_both != NULL) {
        return behind_both; /* U* gives back what L+ needs: one character that both hold */
    }
    return is_second ? q : p;
}

CTI_HOT const unsigned char *cti_next_o200k(const cti_classes *c, const unsigned char *p, const unsigned char *end)
{
    const unsigned other = 0xffu & ~(unsigned)(CTI_CLASS_SPACE | CTI_CLASS_LETTER | CTI_CLASS_NUMBER);
    unsigned len = 0, next_len = 0;
    const unsigned is = cti_class_at(c, p, &len);
    const unsigned char *q = p + len;
    if (is == CTI_CLASS_NUMBER) {
        return cti_up_to(c, q, end, CTI_CLASS_NUMBER, 2);
    }
    const bool is_letter = (is & CTI_CLASS_LETTER) != 0;
    if (*p != '\r' && *p != '\n') {
        /* [^\r\n\p{L}\p{N}]? takes what it can; a mark may be that, or the word itself */
        const unsigned char *from = is_letter ? p : q;
        for (int second = 0; second < 2; second++) {
            const unsigned char *stop = cti_cased(c, from, end, second != 0);
            if (stop > from) {
                return cti_contraction(stop, end, true);
            }
            if (is == CTI_CLASS_MARK && (stop = cti_cased(c, p, end, second != 0)) > p) {
                return cti_contraction(stop, end, true);
            }
        }
    }
    const unsigned next = q < end ? cti_class_at(c, q, &next_len) : 0;
    if ((is & other) || (*p == ' ' && (next & other))) { /* ?[^\s\p{L}\p{N}]+[\r\n/]* */
        q = cti_run(c, q, end, other);
        while (q < end && (*q == '\r' || *q == '\n' || *q == '/')) {
            q++;
        }
        return q;
    }
    return cti_blanks(c, p, end, true);
}

#endif
