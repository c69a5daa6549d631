/* SPDX-License-Identifier: Apache-2.0 */
/* Split patterns matched by hand. What each alternative of a pattern can match at a place is decided by the class of the character
 * there and of the next one, so no alternative is tried and given up; the comments quote the alternatives. */
#include "tokenizer/tokenizer_internal.h"
#include "tokenizer/tokenizer_words.h"

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define BLANKS "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPERS "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWERS "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"

static const struct {
    const char *pattern;
    cti_known known;
} rows[] = {
    {"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+", CTI_KNOWN_GPT2},
    {"'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+", CTI_KNOWN_GPT2},
    {CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" BLANKS, CTI_KNOWN_LLAMA3},
    {"'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" BLANKS, CTI_KNOWN_LLAMA3},
    {CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" BLANKS, CTI_KNOWN_QWEN2},
    {CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" BLANKS, CTI_KNOWN_QWEN3_5},
    {"[^\\r\\n\\p{L}\\p{N}]?" UPPERS "*" LOWERS "+" CONTRACTIONS "?|[^\\r\\n\\p{L}\\p{N}]?" UPPERS "+" LOWERS "*" CONTRACTIONS
     "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" BLANKS,
     CTI_KNOWN_O200K},
    {"\\p{N}{1,3}", CTI_KNOWN_DIGITS3},
    {"[\xe4\xb8\x80-\xe9\xbe\xa5\xe3\x81\x80-\xe3\x82\x9f\xe3\x82\xa0-\xe3\x83\xbf]+", CTI_KNOWN_CJK},
    {"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" BLANKS,
     CTI_KNOWN_DEEPSEEK},
};

cti_known cti_known_pattern(const char *pattern, size_t size)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strlen(rows[i].pattern) == size && memcmp(rows[i].pattern, pattern, size) == 0) {
            return rows[i].known;
        }
    }
    return CTI_KNOWN_NONE;
}

const char *cti_known_text(cti_known known)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].known == known) {
            return rows[i].pattern;
        }
    }
    return NULL;
}

/* --- patterns that leave gaps --- */

static bool find_digits(const cti_classes *c, const unsigned char *p, const unsigned char *end, const unsigned char **start,
                        const unsigned char **stop)
{
    p = cti_run(c, p, end, 0xffu & ~(unsigned)CTI_CLASS_NUMBER);
    *start = p;
    *stop = cti_up_to(c, p, end, CTI_CLASS_NUMBER, 3);
    return p < end;
}

/* Kana and ideographs up to U+9FA5. */
static bool is_cjk(uint32_t cp)
{
    return (cp >= 0x4e00 && cp <= 0x9fa5) || (cp >= 0x3040 && cp <= 0x30ff);
}

static bool find_cjk(const unsigned char *p, const unsigned char *end, const unsigned char **start, const unsigned char **stop)
{
    unsigned len = 0;
    while (p < end && (*p < 0xe3 || *p > 0xe9 || !is_cjk(cti_point_at(p, &len)))) {
        p++;
    }
    *start = p;
    while (p < end && *p >= 0xe3 && is_cjk(cti_point_at(p, &len))) {
        p += len;
    }
    *stop = p;
    return *start < end;
}

static bool is_ascii_letter(unsigned char b)
{
    return (unsigned char)((b | 0x20u) - 'a') < 26;
}

/* One place of the third step; NULL: no alternative matches there. */
static const unsigned char *deepseek_at(const cti_classes *c, const unsigned char *p, const unsigned char *end)
{
    const unsigned word = CTI_CLASS_LETTER | CTI_CLASS_MARK;
    unsigned len = 0;
    const unsigned is = cti_class_at(c, p, &len);
    const unsigned char *q = p + len;
    if (*p < 0x80 && is == CTI_CLASS_SIGN && q < end && is_ascii_letter(*q)) { /* [!-~][A-Za-z]+ */
        while (q < end && is_ascii_letter(*q)) {
            q++;
        }
        return q;
    }
    if (is & word) { /* [\p{L}\p{M}]+ */
        return cti_run(c, q, end, word);
    }
    unsigned next_len = 0;
    const unsigned next = q < end ? cti_class_at(c, q, &next_len) : 0;
    if (is != CTI_CLASS_SIGN && *p != '\r' && *p != '\n' && (next & word)) { /* [^\r\n\p{L}\p{P}\p{S}][\p{L}\p{M}]+ */
        return cti_run(c, q + next_len, end, word);
    }
    if (is == CTI_CLASS_SIGN || (*p == ' ' && next == CTI_CLASS_SIGN)) { /* ?[\p{P}\p{S}]+[\r\n]* */
        return cti_newlines(cti_run(c, q, end, CTI_CLASS_SIGN), end);
    }
    return is == CTI_CLASS_SPACE ? cti_blanks(c, p, end, true) : NULL;
}

static bool find_deepseek(const cti_classes *c, const unsigned char *p, const unsigned char *end, const unsigned char **start,
                          const unsigned char **stop)
{
    while (p < end && (*stop = deepseek_at(c, p, end)) == NULL) {
        unsigned len = 0;
        (void)cti_point_at(p, &len);
        p += len;
    }
    *start = p;
    return p < end;
}

bool cti_known_find(const cti_classes *c, cti_known known, const char *text, size_t size, size_t from, size_t *out_start,
                    size_t *out_end)
{
    const unsigned char *base = (const unsigned char *)text, *p = base + from, *end = base + size, *start = p, *stop = end;
    if (p == end) {
        return false;
    }
    bool found = true;
    switch (known) {
    case CTI_KNOWN_GPT2:
        stop = cti_next_gpt2(c, p, end);
        break;
    case CTI_KNOWN_LLAMA3:
        stop = cti_next_llama3(c, p, end);
        break;
    case CTI_KNOWN_QWEN2:
        stop = cti_next_qwen2(c, p, end);
        break;
    case CTI_KNOWN_QWEN3_5:
        stop = cti_next_qwen3_5(c, p, end);
        break;
    case CTI_KNOWN_O200K:
        stop = cti_next_o200k(c, p, end);
        break;
    case CTI_KNOWN_DIGITS3:
        found = find_digits(c, p, end, &start, &stop);
        break;
    case CTI_KNOWN_CJK:
        found = find_cjk(p, end, &start, &stop);
        break;
    case CTI_KNOWN_DEEPSEEK:
        found = find_deepseek(c, p, end, &start, &stop);
        break;
    case CTI_KNOWN_NONE:
    case CTI_KNOWN_COUNT:
        return false;
    }
    *out_start = (size_t)(start - base);
    *out_end = (size_t)(stop - base);
    return found;
}
