/* SPDX-License-Identifier: Apache-2.0 */
/* The growing buffer and the tests on whole texts. */
#include "base/str.h"

#include <stdio.h>
#include <string.h>

void cti_str_deinit(cti_str *s)
{
    if (s->data != NULL) {
        ct_alloc_free(s->alloc, s->data);
    }
    s->data = NULL;
    s->len = s->cap = 0;
    s->failed = false;
}

void cti_str_reset(cti_str *s)
{
    s->len = 0;
    s->failed = false;
    if (s->data != NULL) {
        s->data[0] = '\0';
    }
}

bool cti_str_reserve(cti_str *s, size_t extra_bytes)
{
    if (s->failed) {
        return false;
    }
    if (s->data != NULL && extra_bytes <= s->cap - s->len) {
        return true;
    }
    if (extra_bytes > PTRDIFF_MAX / 2 - s->len) {
        s->failed = true;
        return false;
    }
    const size_t needed = s->len + extra_bytes;
    size_t cap = s->cap < 32 ? 63 : 2 * s->cap + 1;
    if (cap < needed) {
        cap = needed;
    }
    char *data = ct_alloc_resize(s->alloc, s->data, cap + 1, 1, NULL);
    if (data == NULL) {
        s->failed = true;
        return false;
    }
    data[s->len] = '\0';
    s->data = data;
    s->cap = cap;
    return true;
}

void cti_str_add_n(cti_str *s, const void *bytes, size_t n)
{
    if (!cti_str_reserve(s, n)) {
        return;
    }
    if (n > 0) {
        memcpy(s->data + s->len, bytes, n);
    }
    s->len += n;
    s->data[s->len] = '\0';
}

void cti_str_add(cti_str *s, const char *text)
{
    cti_str_add_n(s, text, strlen(text));
}

void cti_str_add_char(cti_str *s, char c)
{
    cti_str_add_n(s, &c, 1);
}

void cti_str_vprintf(cti_str *s, const char *fmt, va_list args)
{
    if (!cti_str_reserve(s, 1)) {
        return;
    }
    va_list again;
    va_copy(again, args);
    const size_t room = s->cap - s->len + 1;
    const int n = vsnprintf(s->data + s->len, room, fmt, args);
    if (n < 0) {
        s->data[s->len] = '\0';
        s->failed = true;
    } else if ((size_t)n < room) {
        s->len += (size_t)n;
    } else {
        s->data[s->len] = '\0';
        if (cti_str_reserve(s, (size_t)n)) {
            (void)vsnprintf(s->data + s->len, (size_t)n + 1, fmt, again);
            s->len += (size_t)n;
        }
    }
    va_end(again);
}

void cti_str_printf(cti_str *s, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    cti_str_vprintf(s, fmt, args);
    va_end(args);
}

const char *cti_str_text(const cti_str *s)
{
    return s->data == NULL ? "" : s->data;
}

ct_status cti_str_check(const cti_str *s, ct_err *err)
{
    return s->failed ? CT_FAIL(err, CT_ERR_MEMORY, "no memory for a text of %zu bytes and more", s->len)
                     : CT_OK;
}

bool cti_str_eq(const char *a, const char *b)
{
    if (a == NULL || b == NULL) {
        return a == b;
    }
    return strcmp(a, b) == 0;
}

bool cti_starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool cti_ends_with(const char *text, const char *suffix)
{
    const size_t n = strlen(text), m = strlen(suffix);
    return n >= m && memcmp(text + n - m, suffix, m) == 0;
}
