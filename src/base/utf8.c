/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 as RFC 3629 has it: no surrogates, no overlong forms, nothing above U+10FFFF. */
#include "base/str.h"

int cti_utf8_decode(const unsigned char *p, const unsigned char *end, uint32_t *out_cp)
{
    if (p >= end) {
        return 0;
    }
    const unsigned char lead = *p;
    if (lead < 0x80) {
        *out_cp = lead;
        return 1;
    }
    const int n = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || end - p < n) {
        return 0;
    }
    uint32_t cp = lead & (0xffu >> (n + 1));
    for (int i = 1; i < n; i++) {
        if ((p[i] & 0xc0u) != 0x80u) {
            return 0;
        }
        cp = cp << 6 | (p[i] & 0x3fu);
    }
    static const uint32_t lowest[5] = {0, 0, 0x80, 0x800, 0x10000};
    if (cp < lowest[n] || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff)) {
        return 0;
    }
    *out_cp = cp;
    return n;
}

int cti_utf8_len(const unsigned char *p, const unsigned char *end)
{
    uint32_t cp;
    return cti_utf8_decode(p, end, &cp);
}

int cti_utf8_encode(uint32_t cp, char out[4])
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff)) {
        return 0;
    }
    const int n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--) {
        out[i] = (char)(unsigned char)(0x80u | (cp & 0x3fu));
        cp >>= 6;
    }
    out[0] = (char)(unsigned char)((0xf00u >> n & 0xffu) | cp);
    return n;
}
