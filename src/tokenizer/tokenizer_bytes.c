/* SPDX-License-Identifier: Apache-2.0 */
/* The byte alphabet of byte-level BPE, and UTF-8 with its ill-formed parts replaced.
 *
 * The alphabet is the one GPT-2's released encoder uses: the 188 printable bytes of Latin-1 stand for themselves, the
 * other 68, in ascending order, for the characters from U+0100 on. */
#include "tokenizer/tokenizer_internal.h"

static bool stands_for_itself(unsigned byte)
{
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
}

/* The others are 0x00..0x20, 0x7f..0xa0 and 0xad: 33 + 34 + 1. */
uint32_t cti_byte_to_char(unsigned char byte)
{
    if (stands_for_itself(byte)) {
        return byte;
    }
    if (byte <= 0x20) {
        return 0x100u + byte;
    }
    return byte == 0xad ? 0x143u : 0x100u + 33u + (byte - 0x7fu);
}

int cti_char_to_byte(uint32_t cp)
{
    if (cp < 0x100) {
        return stands_for_itself(cp) ? (int)cp : -1;
    }
    if (cp <= 0x120) {
        return (int)(cp - 0x100);
    }
    if (cp <= 0x142) {
        return (int)(cp - 0x121 + 0x7f);
    }
    return cp == 0x143 ? 0xad : -1;
}

void cti_bytes_to_alphabet(const char *bytes, size_t size, cti_str *out)
{
    if (!cti_str_reserve(out, 2 * size)) {
        return;
    }
    for (size_t i = 0; i < size; i++) {
        const uint32_t cp = cti_byte_to_char((unsigned char)bytes[i]);
        if (cp < 0x80) {
            out->data[out->len++] = (char)cp;
        } else {
            out->data[out->len++] = (char)(0xc0 | cp >> 6);
            out->data[out->len++] = (char)(0x80 | (cp & 0x3f));
        }
    }
    out->data[out->len] = '\0';
}

bool cti_alphabet_to_bytes(const char *text, size_t size, cti_str *out)
{
    const size_t before = out->len;
    const unsigned char *p = (const unsigned char *)text, *end = p + size;
    while (p < end) {
        uint32_t cp = 0;
        const int n = cti_utf8_decode(p, end, &cp);
        const int byte = n > 0 ? cti_char_to_byte(cp) : -1;
        if (byte < 0) {
            if (out->len > before) {
                out->len = before;
                out->data[before] = '\0';
            }
            return false;
        }
        cti_str_add_char(out, (char)byte);
        p += n;
    }
    return true;
}

bool cti_base64_decode(const char *text, size_t size, cti_str *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (size % 4 != 0 || !cti_str_reserve(out, size / 4 * 3)) {
        return size == 0;
    }
    const size_t n_pad = size == 0 ? 0 : (size_t)(text[size - 1] == '=') + (size_t)(text[size - 1] == '=' && text[size - 2] == '=');
    for (size_t i = 0; i < size; i += 4) {
        uint32_t word = 0;
        for (size_t k = 0; k < 4; k++) {
            const bool is_pad = i + k >= size - n_pad;
            const char *digit = is_pad ? digits : memchr(digits, text[i + k], 64);
            if (digit == NULL) {
                return false;
            }
            word = word << 6 | (uint32_t)(digit - digits);
        }
        for (size_t k = 0; k < 3 && (i + 4 < size || k < 3 - n_pad); k++) {
            cti_str_add_char(out, (char)(word >> (16 - 8 * k) & 0xff));
        }
    }
    return true;
}

bool cti_utf8_is_valid(const char *text, size_t size)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + size;
    while (p < end) {
        uint64_t word;
        while (end - p >= 8 && (memcpy(&word, p, 8), (word & 0x8080808080808080u) == 0)) {
            p += 8;
        }
        if (p == end) {
            break;
        }
        const int n = cti_utf8_len(p, end);
        if (n == 0) {
            return false;
        }
        p += n;
    }
    return true;
}

/* The longest run that begins a well-formed sequence, at least one byte (Unicode 15, section 3.9, table 3-7). */
size_t cti_utf8_ill_formed(const unsigned char *p, const unsigned char *end, bool *out_open)
{
    const unsigned b = p[0];
    unsigned low = 0x80, high = 0xbf;
    size_t want = 0;
    if (b >= 0xc2 && b <= 0xdf) {
        want = 1;
    } else if (b >= 0xe0 && b <= 0xef) {
        want = 2;
        low = b == 0xe0 ? 0xa0 : 0x80;
        high = b == 0xed ? 0x9f : 0xbf;
    } else if (b >= 0xf0 && b <= 0xf4) {
        want = 3;
        low = b == 0xf0 ? 0x90 : 0x80;
        high = b == 0xf4 ? 0x8f : 0xbf;
    }
    size_t n = 1;
    while (n <= want && p + n < end && p[n] >= low && p[n] <= high) {
        low = 0x80;
        high = 0xbf;
        n++;
    }
    *out_open = n <= want && p + n == end;
    return n;
}

void cti_utf8_repair(const char *text, size_t size, cti_str *out)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + size;
    while (p < end) {
        const int n = cti_utf8_len(p, end);
        if (n > 0) {
            cti_str_add_n(out, p, (size_t)n);
            p += n;
        } else {
            cti_str_add_n(out, "\xef\xbf\xbd", 3);
            bool open = false;
            p += cti_utf8_ill_formed(p, end, &open);
        }
    }
}
