/* SPDX-License-Identifier: Apache-2.0 */
/* The normalizer's steps: Unicode's normal forms (tables of utf8proc), steps by character, replacement, a prefix. */
#include <utf8proc.h>

#include "tokenizer/tokenizer_internal.h"

static ct_status points_reserve(cti_scratch *scratch, size_t n, ct_err *err)
{
    if (n > scratch->cap_points) {
        const size_t cap = n + n / 2 + 64;
        int32_t *points = ct_alloc_resize(scratch->alloc, scratch->points, cap, sizeof *points, err);
        if (points == NULL) {
            return CT_ERR_MEMORY;
        }
        scratch->points = points;
        scratch->cap_points = cap;
    }
    return CT_OK;
}

/* Canonical ordering of a run of marks: stable, by combining class; counted per class so that a text of marks only stays
 * linear. tmp holds n points. */
static void order_run(int32_t *run, size_t n, int32_t *tmp)
{
    size_t at[257] = {0};
    for (size_t i = 0; i < n; i++) {
        at[cti_combining_class((uint32_t)run[i]) + 1]++;
    }
    for (int c = 0; c < 256; c++) {
        at[c + 1] += at[c];
    }
    for (size_t i = 0; i < n; i++) {
        tmp[at[cti_combining_class((uint32_t)run[i])]++] = run[i];
    }
    memcpy(run, tmp, n * sizeof *run);
}

static void order_marks(int32_t *points, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t stop = i;
        bool disorder = false;
        int last = 0;
        for (int c; stop < n && (c = cti_combining_class((uint32_t)points[stop])) != 0; stop++) {
            disorder |= c < last;
            last = c;
        }
        if (disorder) {
            order_run(points + i, stop - i, points + n);
        }
        i = stop;
    }
}

/* Puts points together, run by run between the characters that the library does not know, which stand alone. Returns how
 * many are left. */
static size_t compose_points(int32_t *points, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n;) {
        size_t stop = i;
        while (stop < n && cti_decomposes((uint32_t)points[stop]) &&
               (utf8proc_get_property(points[stop])->combining_class == 0 || cti_combining_class((uint32_t)points[stop]) != 0)) {
            stop++;
        }
        if (stop > i) {
            const utf8proc_ssize_t k = utf8proc_normalize_utf32(
                points + i, (utf8proc_ssize_t)(stop - i), (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
            CT_ASSERT(k >= 0);
            memmove(points + kept, points + i, (size_t)k * sizeof *points);
            kept += (size_t)k;
        }
        if (stop < n) {
            points[kept++] = points[stop++];
        }
        i = stop;
    }
    return kept;
}

static ct_status normal_form(cti_norm_kind kind, cti_scratch *scratch, const char *text, size_t size, cti_str *out,
                             ct_err *err)
{
    const bool compat = kind == CTI_NORM_NFKC || kind == CTI_NORM_NFKD;
    const bool compose = kind == CTI_NORM_NFC || kind == CTI_NORM_NFKC;
    const utf8proc_option_t options =
        (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compat ? UTF8PROC_COMPAT : 0));
    const unsigned char *p = (const unsigned char *)text, *end = p + size;
    size_t n = 0;
    while (p < end) {
        uint32_t cp = 0;
        p += cti_utf8_decode(p, end, &cp);
        CT_TRY(points_reserve(scratch, n + 32, err)); /* the longest decomposition has 18 */
        if (cp < 0xa0 || !cti_decomposes(cp)) {
            scratch->points[n++] = (int32_t)cp;
            continue;
        }
        int boundclass = 0;
        const utf8proc_ssize_t k =
            utf8proc_decompose_char((utf8proc_int32_t)cp, scratch->points + n, 32, options, &boundclass);
        CT_ASSERT(k >= 0 && k <= 32);
        n += (size_t)k;
    }
    CT_TRY(points_reserve(scratch, 2 * n, err));
    int32_t *points = scratch->points;
    order_marks(points, n);
    n = compose ? compose_points(points, n) : n;
    for (size_t i = 0; i < n; i++) {
        char utf8[4];
        cti_str_add_n(out, utf8, (size_t)cti_utf8_encode((uint32_t)points[i], utf8));
    }
    return CT_OK;
}

static void add_point(cti_str *out, uint32_t cp)
{
    char utf8[4];
    cti_str_add_n(out, utf8, (size_t)cti_utf8_encode(cp, utf8));
}

/* Control characters that Nmt takes away, and those that it makes blanks (of SentencePiece's rule of this name). */
static bool nmt_removes(uint32_t cp)
{
    return (cp >= 1 && cp <= 8) || cp == 0xb || (cp >= 0xe && cp <= 0x1f) || cp == 0x7f || cp == 0x8f || cp == 0x9f;
}

static bool nmt_blanks(uint32_t cp)
{
    return cp == 9 || cp == 0xa || cp == 0xc || cp == 0xd || cp == 0x1680 || (cp >= 0x200b && cp <= 0x200f) || cp == 0x2028 ||
           cp == 0x2029 || cp == 0x2581 || cp == 0xfeff || cp == 0xfffd;
}

/* The kinds that look at one character at a time. */
static void by_character(cti_norm_kind kind, const char *text, size_t size, cti_str *out)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + size;
    while (p < end) {
        uint32_t cp = 0;
        p += cti_utf8_decode(p, end, &cp);
        if (kind == CTI_NORM_LOWERCASE) {
            add_point(out, cp == 0x130 ? 'i' : cti_to_lower(cp));
            if (cp == 0x130) { /* the only character whose lower case has two (SpecialCasing) */
                add_point(out, 0x307);
            }
        } else if (kind == CTI_NORM_CHINESE && cti_is_chinese(cp)) {
            add_point(out, ' ');
            add_point(out, cp);
            add_point(out, ' ');
        } else if (!(kind == CTI_NORM_STRIP_ACCENTS && cti_is_combining_mark(cp)) &&
                   !(kind == CTI_NORM_NONSPACING && cti_is_nonspacing_mark(cp)) &&
                   !(kind == CTI_NORM_NMT && nmt_removes(cp)) && !(kind == CTI_NORM_CLEAN && cti_is_bert_removed(cp))) {
            const bool blank = (kind == CTI_NORM_NMT && nmt_blanks(cp)) || (kind == CTI_NORM_CLEAN && cti_is_space(cp));
            add_point(out, blank ? ' ' : cp);
        }
    }
}

static void strip(const cti_norm *norm, const char *text, size_t size, cti_str *out)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + size;
    uint32_t cp = 0;
    for (int n; norm->left && p < end && (n = cti_utf8_decode(p, end, &cp), cti_is_space(cp));) {
        p += n;
    }
    while (norm->right && p < end) {
        const unsigned char *last = end - 1;
        while (last > p && (*last & 0xc0) == 0x80) {
            last--;
        }
        (void)cti_utf8_decode(last, end, &cp);
        if (!cti_is_space(cp)) {
            break;
        }
        end = last;
    }
    cti_str_add_n(out, p, (size_t)(end - p));
}

static bool is_ascii(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)text[i] >= 0x80) {
            return false;
        }
    }
    return true;
}

static ct_status norm_apply(const cti_norm *norm, cti_scratch *scratch, const char *text, size_t size, cti_str *out,
                            ct_err *err)
{
    switch (norm->kind) {
    case CTI_NORM_NFC:
    case CTI_NORM_NFD:
    case CTI_NORM_NFKC:
    case CTI_NORM_NFKD:
        return normal_form(norm->kind, scratch, text, size, out, err);
    case CTI_NORM_LOWERCASE:
    case CTI_NORM_STRIP_ACCENTS:
    case CTI_NORM_NMT:
    case CTI_NORM_CLEAN:
    case CTI_NORM_CHINESE:
    case CTI_NORM_NONSPACING:
        by_character(norm->kind, text, size, out);
        return CT_OK;
    case CTI_NORM_STRIP:
        strip(norm, text, size, out);
        return CT_OK;
    case CTI_NORM_BYTE_LEVEL:
        cti_bytes_to_alphabet(text, size, out);
        return CT_OK;
    case CTI_NORM_CHARSMAP:
        cti_charsmap_apply(norm->charsmap, text, size, out);
        return CT_OK;
    case CTI_NORM_REPLACE:
        return cti_pattern_replace(&norm->pattern, scratch->matcher, text, size, norm->content, norm->content_size, out, err);
    case CTI_NORM_PREPEND:
        cti_str_add_n(out, norm->content, norm->content_size);
        cti_str_add_n(out, text, size);
        return CT_OK;
    case CTI_NORM_COUNT:
        break;
    }
    return CT_OK;
}

void cti_norm_deinit(cti_norm *norm, const ct_alloc *alloc)
{
    cti_pattern_deinit(&norm->pattern, alloc);
    ct_alloc_free(alloc, norm->content);
    cti_charsmap_destroy(&norm->charsmap);
}

/* Of what Replace leaves: a match's new content stands for the last character that it replaces. */
static ct_status replaced_first(const cti_norm *norm, cti_scratch *scratch, const char *text, size_t size, size_t first,
                                size_t *out_first, ct_err *err)
{
    cti_walk walk = cti_walk_start(&norm->pattern, scratch->matcher, text, size);
    size_t done = 0, start = 0, end = 0;
    *out_first = 0;
    while (done < first) {
        CT_TRY(cti_walk_next(&walk, &start, &end, err));
        if (start >= first) { /* or SIZE_MAX: no more matches */
            *out_first += first - done;
            return CT_OK;
        }
        *out_first += start - done + (end <= first ? norm->content_size : 0);
        done = end;
    }
    return CT_OK;
}

/* How many bytes of what a step makes of a text stand for the text's first character; `first`: how many of the text do. */
static ct_status first_after(const cti_norm *norm, cti_scratch *scratch, const char *text, size_t size, size_t first,
                             size_t *out_first, ct_err *err)
{
    cti_str begin = {.alloc = scratch->alloc};
    ct_status st;
    if (norm->kind == CTI_NORM_PREPEND) {
        *out_first = norm->content_size + first;
        return CT_OK;
    }
    if (norm->kind == CTI_NORM_REPLACE) {
        return replaced_first(norm, scratch, text, size, first, out_first, err);
    }
    if (norm->kind == CTI_NORM_STRIP) {
        strip(&(cti_norm){.kind = CTI_NORM_STRIP, .left = norm->left}, text, size, &begin);
        *out_first = cti_left_of(first, size - begin.len, size);
    } else {
        CT_TRY_GOTO(st, norm_apply(norm, scratch, text, first, &begin, err), out);
        /* What a table of characters takes away in front moves the rest up. */
        *out_first = begin.len == 0 && norm->kind == CTI_NORM_CHARSMAP ? 1 : begin.len;
    }
    st = cti_str_check(&begin, err);
out:
    cti_str_deinit(&begin);
    return st;
}

ct_status cti_normalize(const cti_norm *norms, size_t n_norms, cti_scratch *scratch, const char *text, size_t size,
                        const char **out_text, size_t *out_size, size_t *out_first, ct_err *err)
{
    size_t first = out_first != NULL ? (size_t)cti_utf8_len((const unsigned char *)text, (const unsigned char *)text + size) : 0;
    for (size_t i = 0; i < n_norms && size > 0; i++) {
        if (norms[i].kind <= CTI_NORM_NFKD && is_ascii(text, size)) {
            continue;
        }
        if (first > 0) {
            CT_TRY(first_after(&norms[i], scratch, text, size, first, &first, err));
        }
        cti_str *out = text == scratch->norm_a.data ? &scratch->norm_b : &scratch->norm_a;
        cti_str_reset(out);
        CT_TRY(norm_apply(&norms[i], scratch, text, size, out, err));
        CT_TRY(cti_str_check(out, err));
        text = cti_str_text(out);
        size = out->len;
        while (first < size && (text[first] & 0xc0) == 0x80) { /* put together with what follows: a whole character */
            first++;
        }
        first = first < size ? first : size;
    }
    *out_text = text;
    *out_size = size;
    if (out_first != NULL) {
        *out_first = first;
    }
    return CT_OK;
}
