/* SPDX-License-Identifier: Apache-2.0 */
/* Shell-style matching in time length(pattern) * length(text): on a mismatch only the last `*` takes one byte
 * more. */
#include <stddef.h>

#include "base/str.h"

/* The end of the set that opens at p[0] == '[' (one past its ']'), or NULL where it is never closed. A ']'
 * right after the opening, or after its negation, is a member. */
static const char *set_end(const char *p)
{
    p++;
    if (*p == '!' || *p == '^') {
        p++;
    }
    if (*p == ']') {
        p++;
    }
    while (*p != '\0' && *p != ']') {
        p++;
    }
    return *p == ']' ? p + 1 : NULL;
}

static bool set_holds(const char *p, const char *end, unsigned char c)
{
    p++;
    end--;
    const bool negated = *p == '!' || *p == '^';
    if (negated) {
        p++;
    }
    bool found = false;
    while (p < end) {
        const unsigned char low = (unsigned char)*p;
        if (end - p >= 3 && p[1] == '-') {
            found = found || (low <= c && c <= (unsigned char)p[2]);
            p += 3;
        } else {
            found = found || low == c;
            p++;
        }
    }
    return found != negated;
}

/* Does the one-byte item at p match c? *out_next is the item after it. */
static bool item_matches(const char *p, unsigned char c, const char **out_next)
{
    *out_next = p + 1;
    if (*p == '?') {
        return true;
    }
    if (*p == '[') {
        const char *end = set_end(p);
        if (end != NULL) {
            *out_next = end;
            return set_holds(p, end, c);
        }
    }
    return (unsigned char)*p == c;
}

bool cti_glob_match(const char *pattern, const char *text)
{
    const char *p = pattern, *t = text;
    const char *after_star = NULL; /* the pattern after the last `*` */
    const char *star_text = NULL;  /* where the text after that `*` is tried to begin */
    while (*t != '\0') {
        const char *next;
        if (*p == '*') {
            after_star = ++p;
            star_text = t;
        } else if (*p != '\0' && item_matches(p, (unsigned char)*t, &next)) {
            p = next;
            t++;
        } else if (after_star != NULL) {
            p = after_star;
            t = ++star_text;
        } else {
            return false;
        }
    }
    while (*p == '*') {
        p++;
    }
    return *p == '\0';
}
