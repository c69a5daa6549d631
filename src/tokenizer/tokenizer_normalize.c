/* SPDX-License-Identifier: Apache-2.0 */
/* The normalizer: Unicode's normal forms (tables of utf8proc), lower case, replacement, a prefix. */
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

static int combining_class(int32_t cp)
{
    return utf8proc_get_property(cp)->combining_class;
}

/* Canonical ordering of a run of marks: stable, by combining class; counted per class so that a text of marks only stays
 * linear. tmp holds n points. */
static void order_run(int32_t *run, size_t n, int32_t *tmp)
{
    size_t at[257] = {0};
    for (size_t i = 0; i < n; i++) {
        at[combining_class(run[i]) + 1]++;
    }
    for (int c = 0; c < 256; c++) {
        at[c + 1] += at[c];
    }
    for (size_t i = 0; i < n; i++) {
        tmp[at[combining_class(run[i])]++] = run[i];
    }
    memcpy(run, tmp, n * sizeof *run);
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
        int boundclass = 0;
        const utf8proc_ssize_t k =
            utf8proc_decompose_char((utf8proc_int32_t)cp, scratch->points + n, 32, options, &boundclass);
        CT_ASSERT(k >= 0 && k <= 32);
        n += (size_t)k;
    }
    CT_TRY(points_reserve(scratch, 2 * n, err));
    int32_t *points = scratch->points;
    for (size_t i = 0; i < n; i++) {
        size_t stop = i;
        bool disorder = false;
        while (stop < n && combining_class(points[stop]) != 0) {
            disorder |= stop > i && combining_class(points[stop]) < combining_class(points[stop - 1]);
            stop++;
        }
        if (disorder) {
            order_run(points + i, stop - i, points + n);
        }
        i = stop;
    }
    if (compose) {
        const utf8proc_ssize_t k = utf8proc_normalize_utf32(
            points, (utf8proc_ssize_t)n, (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
        CT_ASSERT(k >= 0);
        n = (size_t)k;
    }
    for (size_t i = 0; i < n; i++) {
        char utf8[4];
        cti_str_add_n(out, utf8, (size_t)cti_utf8_encode((uint32_t)points[i], utf8));
    }
    return CT_OK;
}

static void lowercase(const char *text, size_t size, cti_str *out)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + size;
    while (p < end) {
        uint32_t cp = 0;
        p += cti_utf8_decode(p, end, &cp);
        if (cp == 0x130) { /* the only character whose lower case has two (SpecialCasing) */
            cti_str_add(out, "i\xcc\x87");
            continue;
        }
        char utf8[4];
        cti_str_add_n(out, utf8, (size_t)cti_utf8_encode((uint32_t)utf8proc_tolower((utf8proc_int32_t)cp), utf8));
    }
}

static ct_status replace(const cti_norm *norm, cti_scratch *scratch, const char *text, size_t size, cti_str *out, ct_err *err)
{
    cti_walk walk = cti_walk_start(&norm->pattern, scratch->matcher, text, size);
    size_t done = 0, start = 0, end = 0;
    for (;;) {
        CT_TRY(cti_walk_next(&walk, &start, &end, err));
        if (start == SIZE_MAX) {
            break;
        }
        cti_str_add_n(out, text + done, start - done);
        cti_str_add_n(out, norm->content, norm->content_size);
        done = end;
    }
    cti_str_add_n(out, text + done, size - done);
    return CT_OK;
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
        lowercase(text, size, out);
        return CT_OK;
    case CTI_NORM_REPLACE:
        return replace(norm, scratch, text, size, out, err);
    case CTI_NORM_PREPEND:
        cti_str_add_n(out, norm->content, norm->content_size);
        cti_str_add_n(out, text, size);
        return CT_OK;
    case CTI_NORM_COUNT:
        break;
    }
    return CT_OK;
}

ct_status cti_normalize(const cti_norm *norms, size_t n_norms, cti_scratch *scratch, const char *text, size_t size,
                        const char **out_text, size_t *out_size, ct_err *err)
{
    for (size_t i = 0; i < n_norms && size > 0; i++) {
        if (norms[i].kind <= CTI_NORM_NFKD && is_ascii(text, size)) {
            continue;
        }
        cti_str *out = text == scratch->norm_a.data ? &scratch->norm_b : &scratch->norm_a;
        cti_str_reset(out);
        CT_TRY(norm_apply(&norms[i], scratch, text, size, out, err));
        CT_TRY(cti_str_check(out, err));
        text = cti_str_text(out);
        size = out->len;
    }
    *out_text = text;
    *out_size = size;
    return CT_OK;
}
