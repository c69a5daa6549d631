/* SPDX-License-Identifier: Apache-2.0 */
/* Classes of characters as the library's components have them. utf8proc's tables (of Unicode 14 or later, as the system has
 * it) are the base; the tables beside this file hold what each component knows otherwise, so that ids do not depend on the
 * version of utf8proc or PCRE2. */
#include <utf8proc.h>

#include "tokenizer/tokenizer_internal.h"
#include "tokenizer/tokenizer_unicode_tables.h"

static const unicode_range *find_in(const unicode_range *rows, size_t n, uint32_t cp)
{
    size_t low = 0, high = n;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (rows[mid].last < cp) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < n && rows[low].first <= cp ? &rows[low] : NULL;
}
#define FIND(table, cp) find_in(table, sizeof(table) / sizeof(table)[0], cp)

int cti_category(uint32_t cp)
{
    if (cp < 0x370) { /* before the first of the table */
        return (int)utf8proc_category((utf8proc_int32_t)cp);
    }
    const unicode_range *row = FIND(newer, cp);
    return row ? row->value : (int)utf8proc_category((utf8proc_int32_t)cp);
}

int cti_newer_category(uint32_t cp)
{
    const unicode_range *row = FIND(newer, cp);
    return row ? row->value : -1;
}

static bool is_mark(int category)
{
    return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

bool cti_is_space(uint32_t cp)
{
    return (cp >= 9 && cp <= 13) || cp == 32 || cp == 0x85 || cp == 0xa0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) ||
           cp == 0x2028 || cp == 0x2029 || cp == 0x202f || cp == 0x205f || cp == 0x3000;
}

/* Categories L, M, Nd, Nl and Pc, the circled letters among the symbols, the join controls. */
bool cti_is_word(uint32_t cp)
{
    const int c = cti_category(cp);
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NL) || c == UTF8PROC_CATEGORY_PC || cp == 0x200c ||
           cp == 0x200d || (cp >= 0x24b6 && cp <= 0x24e9) || (cp >= 0x1f130 && cp <= 0x1f149) ||
           (cp >= 0x1f150 && cp <= 0x1f169) || (cp >= 0x1f170 && cp <= 0x1f189);
}

bool cti_is_combining_mark(uint32_t cp)
{
    return is_mark(cti_category(cp)) ? FIND(marks_unknown, cp) == NULL : FIND(marks_only_there, cp) != NULL;
}

bool cti_is_nonspacing_mark(uint32_t cp)
{
    return cti_category(cp) == UTF8PROC_CATEGORY_MN ? FIND(nonspacing_unknown, cp) == NULL
                                                    : FIND(nonspacing_only_there, cp) != NULL;
}

bool cti_is_punctuation(uint32_t cp)
{
    if (cp < 128) {
        return (cp >= 33 && cp <= 47) || (cp >= 58 && cp <= 64) || (cp >= 91 && cp <= 96) || (cp >= 123 && cp <= 126);
    }
    const int c = cti_category(cp);
    return c >= UTF8PROC_CATEGORY_PC && c <= UTF8PROC_CATEGORY_PO ? FIND(punctuation_unknown, cp) == NULL
                                                                  : FIND(punctuation_only_there, cp) != NULL;
}

bool cti_is_numeric(uint32_t cp)
{
    const int c = cti_category(cp);
    return (c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO) || FIND(numeric_newer, cp) != NULL;
}

bool cti_is_bert_removed(uint32_t cp)
{
    return FIND(bert_removed, cp) != NULL;
}

bool cti_is_chinese(uint32_t cp)
{
    return (cp >= 0x4e00 && cp <= 0x9fff) || (cp >= 0x3400 && cp <= 0x4dbf) || (cp >= 0x20000 && cp <= 0x2a6df) ||
           (cp >= 0x2a700 && cp <= 0x2b81f) || (cp >= 0x2b920 && cp <= 0x2ceaf) || (cp >= 0xf900 && cp <= 0xfaff) ||
           (cp >= 0x2f800 && cp <= 0x2fa1f);
}

uint32_t cti_to_lower(uint32_t cp)
{
    const unicode_range *row = cp < 0x1c00 ? NULL : FIND(lower_newer, cp);
    return row ? (uint32_t)((int64_t)cp + row->value) : (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp);
}

bool cti_decomposes(uint32_t cp)
{
    return FIND(newer, cp) == NULL && FIND(decompositions_unknown, cp) == NULL;
}

int cti_combining_class(uint32_t cp)
{
    const int ccc = utf8proc_get_property((utf8proc_int32_t)cp)->combining_class;
    return ccc == 0 || FIND(marks_unknown, cp) != NULL ? 0 : ccc;
}

void cti_unicode_newer_ranges(const char *property, cti_str *out)
{
    /* In the order of utf8proc's constants. */
    static const char names[][3] = {"Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps",
                                    "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf"};
    const bool han = strcmp(property, "Han") == 0;
    const unicode_range *rows = han ? han_newer : newer;
    const size_t n = han ? sizeof han_newer / sizeof *han_newer : sizeof newer / sizeof *newer;
    for (size_t i = 0; i < n; i++) {
        const char *name = han ? property : names[rows[i].value];
        if (strncmp(name, property, strlen(property)) == 0) {
            cti_str_printf(out, rows[i].first == rows[i].last ? "\\x{%x}" : "\\x{%x}-\\x{%x}", (unsigned)rows[i].first,
                           (unsigned)rows[i].last);
        }
    }
}
