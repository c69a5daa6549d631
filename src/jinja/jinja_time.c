/* SPDX-License-Identifier: Apache-2.0 */
/* strftime, in English whatever the locale. */
#include "jinja/jinja_internal.h"

static const char *const days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                   "Thursday", "Friday", "Saturday"};
static const char *const months[] = {"January", "February", "March",     "April",   "May",      "June",
                                     "July",    "August",   "September", "October", "November", "December"};

/* Adds what the directive c stands for; `bare` leaves zeros at the front out. False where it is none of ours.
 */
static bool add_directive(cti_str *out, char c, bool bare, const struct tm *t)
{
    const unsigned wday = (unsigned)t->tm_wday % 7, mon = (unsigned)t->tm_mon % 12;
    const int hour12 = t->tm_hour % 12 == 0 ? 12 : t->tm_hour % 12;
    switch (c) {
    case '%':
        cti_str_add_char(out, '%');
        return !bare;
    case 'a':
        cti_str_printf(out, "%.3s", days[wday]);
        return !bare;
    case 'A':
        cti_str_add(out, days[wday]);
        return !bare;
    case 'b':
        cti_str_printf(out, "%.3s", months[mon]);
        return !bare;
    case 'B':
        cti_str_add(out, months[mon]);
        return !bare;
    case 'p':
        cti_str_add(out, t->tm_hour < 12 ? "AM" : "PM");
        return !bare;
    case 'Y':
        cti_str_printf(out, "%d", t->tm_year + 1900);
        return !bare;
    case 'F':
        cti_str_printf(out, "%d-%02d-%02d", t->tm_year + 1900, t->tm_mon + 1, t->tm_mday);
        return !bare;
    case 'T':
        cti_str_printf(out, "%02d:%02d:%02d", t->tm_hour, t->tm_min, t->tm_sec);
        return !bare;
    case 'd':
        cti_str_printf(out, bare ? "%d" : "%02d", t->tm_mday);
        return true;
    case 'e':
        cti_str_printf(out, "%2d", t->tm_mday);
        return !bare;
    case 'm':
        cti_str_printf(out, bare ? "%d" : "%02d", t->tm_mon + 1);
        return true;
    case 'y':
        cti_str_printf(out, bare ? "%d" : "%02d", t->tm_year % 100);
        return true;
    case 'H':
        cti_str_printf(out, bare ? "%d" : "%02d", t->tm_hour);
        return true;
    case 'I':
        cti_str_printf(out, bare ? "%d" : "%02d", hour12);
        return true;
    case 'M':
        cti_str_printf(out, bare ? "%d" : "%02d", t->tm_min);
        return true;
    case 'S':
        cti_str_printf(out, bare ? "%d" : "%02d", t->tm_sec);
        return true;
    case 'j':
        cti_str_printf(out, bare ? "%d" : "%03d", t->tm_yday + 1);
        return true;
    default:
        return false;
    }
}

static bool format(cti_str *out, const char *p, size_t n, const struct tm *now, const char **out_bad)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] != '%') {
            cti_str_add_char(out, p[i]);
            continue;
        }
        *out_bad = "%";
        const bool bare = i + 1 < n && p[i + 1] == '-';
        const size_t at = i + 1 + bare;
        if (at >= n) {
            return false;
        }
        *out_bad = p + i;
        if (!add_directive(out, p[at], bare, now)) {
            return false;
        }
        i = at;
    }
    return true;
}

bool cti_jn_time_check(const char *p, size_t n, const char **out_bad)
{
    const struct tm now = {.tm_mday = 1};
    cti_str text = {.alloc = ct_alloc_system()};
    const bool is_good = format(&text, p, n, &now, out_bad);
    cti_str_deinit(&text);
    return is_good;
}

void cti_jn_time_format(cti_str *out, const char *p, size_t n, const struct tm *now)
{
    const char *bad = NULL;
    (void)format(out, p, n, now, &bad);
}
