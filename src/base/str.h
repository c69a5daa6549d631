/* SPDX-License-Identifier: Apache-2.0 */
/* Text: a growing buffer, strict number parsing, numbers printed as Python prints them. */
#ifndef CTI_BASE_STR_H
#define CTI_BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctitan/alloc.h"

/* A growing byte buffer that is always NUL-terminated (data is never NULL after the first call that adds).
 * Zero-initialise with the allocator: `cti_str s = {.alloc = alloc};`. Where memory runs out, `failed` is set and
 * further calls do nothing, so that a chain of calls needs one check at its end. */
typedef struct cti_str {
    const ct_alloc *alloc; /* borrows */
    char *data;            /* owns */
    size_t len, cap;       /* bytes, without the NUL */
    bool failed;
} cti_str;

void cti_str_deinit(cti_str *s);
void cti_str_reset(cti_str *s); /* len 0, memory kept */
bool cti_str_reserve(cti_str *s, size_t extra_bytes);
void cti_str_add(cti_str *s, const char *text);
void cti_str_add_n(cti_str *s, const void *bytes, size_t n);
void cti_str_add_char(cti_str *s, char c);
void cti_str_printf(cti_str *s, const char *fmt, ...) CT_PRINTF(2, 3);
void cti_str_vprintf(cti_str *s, const char *fmt, va_list args) CT_PRINTF(2, 0);
const char *cti_str_text(const cti_str *s); /* "" where nothing was added */
CT_MUST_CHECK ct_status cti_str_check(const cti_str *s, ct_err *err); /* ERR_MEMORY where failed */

bool cti_str_eq(const char *a, const char *b); /* both may be NULL */
bool cti_starts_with(const char *text, const char *prefix);
bool cti_ends_with(const char *text, const char *suffix);
/* Shell-style match, `*` any run (dots and slashes too), `?` one byte, `[...]` sets. No recursion. */
bool cti_glob_match(const char *pattern, const char *text);

/* Whole-string parsing as Python's int() and float() do it: surrounding blanks, sign, `1_000`; for floats also
 * exponents, inf, nan. False where the text is none or does not fit; *out is then untouched. */
bool cti_parse_i64(const char *text, int64_t *out);
bool cti_parse_f64(const char *text, double *out);

/* 1234567 -> "1,234,567". Returns buf. buf holds at least 32 bytes. */
char *cti_format_thousands(int64_t value, char buf[32]);
/* The shortest text that reads back to the same double, as Python's repr: 0.0008, 1e-08, 1.0, inf. buf >= 32 bytes. */
char *cti_format_f64(double value, char buf[32]);
/* 1.5 GiB etc.: "512 B", "3.20 KiB", "1.99 GiB". buf >= 32 bytes. */
char *cti_format_bytes(int64_t bytes, char buf[32]);

/* Length in bytes of the valid UTF-8 character at p (p < end), 0 where the bytes are not one. */
int cti_utf8_len(const unsigned char *p, const unsigned char *end);
/* Decodes the character at p; returns its length in bytes, 0 where invalid (surrogates, overlong, > U+10FFFF). */
int cti_utf8_decode(const unsigned char *p, const unsigned char *end, uint32_t *out_cp);
int cti_utf8_encode(uint32_t cp, char out[4]); /* returns the length, 0 for an invalid code point */

#endif
