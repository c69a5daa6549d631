/* SPDX-License-Identifier: Apache-2.0 */
/* Ill-formed UTF-8 to U+FFFD. */
#include "data/data_internal.h"

static const char replacement[3] = {'\xef', '\xbf', '\xbd'};

/* Unicode 15, table 3-7: the range of the second byte for each lead byte. */
static bool second_fits(unsigned char lead, unsigned char second)
{
    const unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    return second >= low && second <= high;
}

size_t cti_utf8_bad_part(const unsigned char *p, const unsigned char *end)
{
    const unsigned char lead = p[0];
    const size_t whole = lead < 0xc2 || lead > 0xf4 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    size_t n = 1;
    while (n < whole && p + n < end && (n == 1 ? second_fits(lead, p[n]) : (p[n] & 0xc0u) == 0x80u)) {
        n++;
    }
    return n < whole || whole == 1 ? n : 1;
}

int64_t cti_text_add_repaired(cti_str *out, const unsigned char *bytes, size_t size)
{
    const unsigned char *p = bytes;
    const unsigned char *end = bytes + size;
    const unsigned char *run = p;
    int64_t n_repaired = 0;
    while (p < end) {
        uint64_t eight;
        if (end - p >= 8 && (memcpy(&eight, p, sizeof eight), (eight & UINT64_C(0x8080808080808080)) == 0)) {
            p += 8;
            continue;
        }
        if (*p < 0x80) {
            p++;
            continue;
        }
        const int n = cti_utf8_len(p, end);
        if (n > 0) {
            p += n;
            continue;
        }
        cti_str_add_n(out, run, (size_t)(p - run));
        cti_str_add_n(out, replacement, sizeof replacement);
        p += cti_utf8_bad_part(p, end);
        run = p;
        n_repaired++;
    }
    cti_str_add_n(out, run, (size_t)(end - run));
    return n_repaired;
}
