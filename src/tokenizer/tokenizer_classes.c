/* SPDX-License-Identifier: Apache-2.0 */
/* The table of character classes, asked of PCRE2 once: a text of all code points is cut into runs of one class. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <pthread.h>
#include <utf8proc.h>

#include "base/base.h"
#include "tokenizer/tokenizer_internal.h"

enum { N_CLASSES = 8 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static enum { NOT_MADE, MADE, FAILED } state;
static cti_classes table; /* constant once state is MADE */

/* One group a class, in the order of the bits; the class of a match is its highest group. */
static const char runs[] = "([\\p{Lu}\\p{Lt}]+)|(\\p{Ll}+)|([\\p{Lm}\\p{Lo}]+)|(\\p{M}+)|(\\p{N}+)|([\\p{P}\\p{S}]+)|([" CTI_SPACE_SET
                           "]+)|([^\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}" CTI_SPACE_SET "]+)";

static void set_run(uint8_t *flat, const unsigned char *p, const unsigned char *end, int group)
{
    while (p < end) {
        unsigned len = 0;
        const uint32_t cp = cti_point_at(p, &len);
        flat[cp] = (uint8_t)(1u << (group - 1));
        p += len;
    }
}

/* The class of every code point into flat. text: room for all of them as UTF-8. */
static bool ask(uint8_t *flat, unsigned char *text)
{
    size_t size = 0;
    for (uint32_t cp = 0; cp < 0x110000; cp++) {
        size += (size_t)cti_utf8_encode(cp, (char *)text + size); /* 0 for surrogates */
    }
    int error = 0;
    PCRE2_SIZE at = 0;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)runs, sizeof runs - 1, PCRE2_UTF | PCRE2_UCP, &error, &at, NULL);
    pcre2_match_data *match = code ? pcre2_match_data_create(N_CLASSES + 1, NULL) : NULL;
    bool ok = match != NULL;
    if (ok) {
        (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    }
    for (size_t from = 0; ok && from < size;) {
        const int rc = pcre2_match(code, text, size, from, PCRE2_NO_UTF_CHECK, match, NULL);
        const PCRE2_SIZE *v = pcre2_get_ovector_pointer(match);
        ok = rc >= 2 && rc <= N_CLASSES + 1 && v[0] == from && v[1] > from;
        if (ok) {
            set_run(flat, text + from, text + v[1], rc - 1);
            from = v[1];
        }
    }
    pcre2_match_data_free(match);
    pcre2_code_free(code);
    return ok;
}

/* What patterns have beyond the tables of the PCRE2 library at hand. */
static void add_newer(uint8_t *flat)
{
    for (uint32_t cp = 0; cp < 0x110000; cp++) {
        const int c = cti_newer_category(cp);
        if (c >= 0) {
            flat[cp] = c == UTF8PROC_CATEGORY_LU || c == UTF8PROC_CATEGORY_LT   ? CTI_CLASS_UPPER
                       : c == UTF8PROC_CATEGORY_LL                              ? CTI_CLASS_LOWER
                       : c == UTF8PROC_CATEGORY_LM || c == UTF8PROC_CATEGORY_LO ? CTI_CLASS_OTHER_LETTER
                       : c <= UTF8PROC_CATEGORY_ME                              ? CTI_CLASS_MARK
                       : c <= UTF8PROC_CATEGORY_NO                              ? CTI_CLASS_NUMBER
                       : c <= UTF8PROC_CATEGORY_SO                              ? CTI_CLASS_SIGN
                                                                                : CTI_CLASS_REST;
        }
    }
}

/* Equal pages are kept once. */
static bool fold(const uint8_t *flat)
{
    size_t n = 0;
    for (size_t i = 0; i < CTI_CLASS_PAGES; i++) {
        const uint8_t *page = flat + i * CTI_CLASS_PAGE;
        size_t k = n;
        while (k > 0 && memcmp(table.bits[k - 1], page, CTI_CLASS_PAGE) != 0) {
            k--;
        }
        if (k == 0) {
            if (n == CTI_CLASS_MAX_PAGES) {
                return false;
            }
            memcpy(table.bits[n++], page, CTI_CLASS_PAGE);
            k = n;
        }
        table.page[i] = (uint16_t)(k - 1);
    }
    return true;
}

const cti_classes *cti_classes_get(const ct_alloc *alloc)
{
    (void)pthread_mutex_lock(&lock);
    if (state == NOT_MADE) {
        uint8_t *flat = CT_NEW_ARRAY(alloc, uint8_t, 0x110000, NULL);
        unsigned char *text = ct_alloc_resize(alloc, NULL, 4 * 0x110000, 1, NULL);
        if (flat != NULL && text != NULL) { /* without memory the next caller tries again */
            memset(flat, CTI_CLASS_REST, 0x110000);
            const bool ok = ask(flat, text);
            add_newer(flat);
            state = ok && fold(flat) ? MADE : FAILED;
        }
        ct_alloc_free(alloc, flat);
        ct_alloc_free(alloc, text);
    }
    const cti_classes *found = state == MADE ? &table : NULL;
    (void)pthread_mutex_unlock(&lock);
    return found;
}
