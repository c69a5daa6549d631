/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and text, in both directions. strtod and printf see digits and an exponent only, never a decimal
 * point, so that no locale can change the result. */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The text without the blanks round it. */
static void strip(const char **text, const char **end)
{
    while (is_blank(**text)) {
        (*text)++;
    }
    *end = *text + strlen(*text);
    while (*end > *text && is_blank((*end)[-1])) {
        (*end)--;
    }
}

/* Takes '+' or '-'. True for '-'. */
static bool take_sign(const char **p, const char *end)
{
    if (*p < end && (**p == '-' || **p == '+')) {
        return *(*p)++ == '-';
    }
    return false;
}

/* Steps to the next digit of a group such as 1_000; single underscores stand between digits only.
 * False at the end of the group; the caller sees what follows it. */
static bool next_digit(const char **p, const char *end, const char *group, int *out_digit)
{
    const char *q = *p;
    if (q > group && q + 1 < end && *q == '_' && is_digit(q[1])) {
        q++;
    }
    if (q >= end || !is_digit(*q)) {
        return false;
    }
    *out_digit = *q - '0';
    *p = q + 1;
    return true;
}

bool cti_parse_i64(const char *text, int64_t *out)
{
    if (text == NULL) {
        return false;
    }
    const char *p = text, *end;
    strip(&p, &end);
    const bool negative = take_sign(&p, end);
    const char *group = p;
    int64_t value = 0; /* kept negative: that side reaches further */
    int digit;
    while (next_digit(&p, end, group, &digit)) {
        if (__builtin_mul_overflow(value, (int64_t)10, &value) ||
            __builtin_sub_overflow(value, (int64_t)digit, &value)) {
            return false;
        }
    }
    if (p == group || p != end || (!negative && value == INT64_MIN)) {
        return false;
    }
    *out = negative ? value : -value;
    return true;
}

/* What is kept of a decimal number. A double's exact halfway points have at most 767 digits, so that with a
 * sticky digit after 800 the rounding is right for any length. */
enum { DECIMAL_MAX_DIGITS = 800, DECIMAL_MAX_EXPONENT = 100000000 };

typedef struct decimal {
    char digits[DECIMAL_MAX_DIGITS + 32]; /* n digits without leading zeros; room for 'e' and an exponent */
    int n;
    bool sticky;      /* a digit other than 0 was left out */
    int64_t exponent; /* value = digits * 10^exponent */
} decimal;

static void decimal_add(decimal *d, int digit, bool is_fraction)
{
    if (d->n == 0 && digit == 0) {
        d->exponent -= is_fraction;
    } else if (d->n < DECIMAL_MAX_DIGITS) {
        d->digits[d->n++] = (char)('0' + digit);
        d->exponent -= is_fraction;
    } else {
        d->sticky = d->sticky || digit != 0;
        d->exponent += !is_fraction;
    }
}

/* Parses digits[.digits][e[sign]digits] or .digits[…]. False where the text is none. */
static bool decimal_parse(const char *p, const char *end, decimal *d)
{
    int digit, n_digits = 0;
    const char *group = p;
    for (; next_digit(&p, end, group, &digit); n_digits++) {
        decimal_add(d, digit, false);
    }
    if (p < end && *p == '.') {
        group = ++p;
        for (; next_digit(&p, end, group, &digit); n_digits++) {
            decimal_add(d, digit, true);
        }
    }
    if (n_digits == 0) {
        return false;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        const bool negative = take_sign(&p, end);
        group = p;
        int64_t exponent = 0;
        while (next_digit(&p, end, group, &digit)) {
            exponent = exponent < DECIMAL_MAX_EXPONENT ? exponent * 10 + digit : exponent;
        }
        if (p == group) {
            return false;
        }
        d->exponent += negative ? -exponent : exponent;
    }
    return p == end;
}

static double decimal_value(decimal *d)
{
    if (d->n == 0) {
        return 0.0;
    }
    if (d->sticky) {
        d->digits[d->n++] = '1';
        d->exponent--;
    }
    (void)snprintf(d->digits + d->n, sizeof d->digits - (size_t)d->n, "e%lld", (long long)d->exponent);
    return strtod(d->digits, NULL); /* infinity where it overflows, 0 or a subnormal where it underflows */
}

static bool is_word(const char *p, const char *end, const char *word)
{
    return (size_t)(end - p) == strlen(word) && strncasecmp(p, word, strlen(word)) == 0;
}

bool cti_parse_f64(const char *text, double *out)
{
    if (text == NULL) {
        return false;
    }
    const char *p = text, *end;
    strip(&p, &end);
    const bool negative = take_sign(&p, end);
    double value;
    if (is_word(p, end, "inf") || is_word(p, end, "infinity")) {
        value = __builtin_inf();
    } else if (is_word(p, end, "nan")) {
        value = __builtin_nan("");
    } else {
        decimal d;
        d.n = 0;
        d.sticky = false;
        d.exponent = 0;
        if (!decimal_parse(p, end, &d)) {
            return false;
        }
        value = decimal_value(&d);
        if (__builtin_isinf(value)) {
            return false; /* a finite number that does not fit */
        }
    }
    *out = negative ? -value : value;
    return true;
}

char *cti_format_thousands(int64_t value, char buf[32])
{
    char reversed[32];
    int n = 0, n_digits = 0;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        if (n_digits > 0 && n_digits % 3 == 0) {
            reversed[n++] = ',';
        }
        reversed[n++] = (char)('0' + (int)(rest % 10));
        n_digits++;
        rest /= 10;
    } while (rest > 0);
    if (value < 0) {
        reversed[n++] = '-';
    }
    for (int i = 0; i < n; i++) {
        buf[i] = reversed[n - 1 - i];
    }
    buf[n] = '\0';
    return buf;
}

/* 1 to 17 digits d and an exponent with value = 0.ddd * 10^point. */
typedef struct shortest {
    char digits[20];
    int n, point;
} shortest;

static bool reads_back(const shortest *s, double value)
{
    char text[48];
    (void)snprintf(text, sizeof text, "%se%d", s->digits, s->point - s->n);
    const double back = strtod(text, NULL);
    return memcmp(&back, &value, sizeof back) == 0;
}

/* One unit more in the last digit. */
static void round_away(shortest *s)
{
    int i = s->n - 1;
    while (i >= 0 && s->digits[i] == '9') {
        s->digits[i--] = '0';
    }
    if (i >= 0) {
        s->digits[i]++;
    } else { /* 99 -> 100, kept to n digits */
        s->digits[0] = '1';
        s->point++;
    }
}

/* For finite value > 0: the fewest digits that read back. The nearest decimal of n digits may fail and the
 * one above it not, since below a power of two the doubles lie twice as dense as above. */
static shortest shortest_digits(double value)
{
    shortest s = {.n = 0};
    /* A decimal of up to 15 digits is what %.15g prints of its double (DBL_DIG), zeros behind it apart: no need to try fewer. */
    for (int n = value >= DBL_MIN ? DBL_DIG : 1; n <= 17; n++) {
        char text[48];
        (void)snprintf(text, sizeof text, "%.*e", n - 1, value);
        s.n = 0;
        const char *p = text;
        for (; *p != 'e'; p++) {
            if (is_digit(*p)) {
                s.digits[s.n++] = *p;
            }
        }
        s.digits[s.n] = '\0';
        s.point = (int)strtol(p + 1, NULL, 10) + 1;
        if (reads_back(&s, value)) {
            break;
        }
        shortest above = s;
        round_away(&above);
        if (n < 17 && reads_back(&above, value)) {
            s = above;
            break;
        }
    }
    while (s.n > 1 && s.digits[s.n - 1] == '0') {
        s.digits[--s.n] = '\0';
    }
    return s;
}

char *cti_format_f64(double value, char buf[32])
{
    if (__builtin_isnan(value)) {
        return memcpy(buf, "nan", 4);
    }
    char *p = buf;
    if (__builtin_signbit(value)) {
        *p++ = '-';
        value = -value;
    }
    if (__builtin_isinf(value)) {
        memcpy(p, "inf", 4);
        return buf;
    }
    if (value <= 0.0) {
        memcpy(p, "0.0", 4);
        return buf;
    }
    const shortest s = shortest_digits(value);
    if (s.point > 16 || s.point < -3) { /* Python's borders: 1e16 and 0.0001 */
        *p++ = s.digits[0];
        if (s.n > 1) {
            *p++ = '.';
            memcpy(p, s.digits + 1, (size_t)s.n - 1);
            p += s.n - 1;
        }
        const int exponent = s.point - 1;
        (void)snprintf(p, 8, "e%c%02d", exponent < 0 ? '-' : '+',
                       (exponent < 0 ? -exponent : exponent) % 1000);
        return buf;
    }
    int i = 0;
    if (s.point <= 0) {
        *p++ = '0';
    }
    for (; i < s.point; i++) {
        *p++ = i < s.n ? s.digits[i] : '0';
    }
    *p++ = '.';
    for (int zeros = s.point; zeros < 0; zeros++) {
        *p++ = '0';
    }
    if (i >= s.n) {
        *p++ = '0';
    }
    for (; i < s.n; i++) {
        *p++ = s.digits[i];
    }
    *p = '\0';
    return buf;
}

char *cti_format_bytes(int64_t bytes, char buf[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    const char *sign = bytes < 0 ? "-" : "";
    uint64_t rest = bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;
    int unit = 0;
    if (rest < 1024) {
        (void)snprintf(buf, 32, "%s%u B", sign, (unsigned)rest);
        return buf;
    }
    while (unit < 6 && rest >> (10 * (unit + 1)) != 0) {
        unit++;
    }
    int shift = 10 * unit;
    if (shift > 50) { /* room for the factor 100; what is dropped is below a thousandth of a hundredth */
        rest >>= 10;
        shift -= 10;
    }
    uint64_t hundredths = (rest >> shift) * 100;
    hundredths += ((rest & (((uint64_t)1 << shift) - 1)) * 100 + ((uint64_t)1 << (shift - 1))) >> shift;
    if (hundredths >= 102400 && unit < 6) {
        hundredths = 100;
        unit++;
    }
    (void)snprintf(buf, 32, "%s%u.%02u %s", sign, (unsigned)(hundredths / 100), (unsigned)(hundredths % 100),
                   units[unit]);
    return buf;
}
