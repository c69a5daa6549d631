/* SPDX-License-Identifier: Apache-2.0 */
/* The normalizer Precompiled: SentencePiece's table of replacements, a double-array trie (Darts-clone's layout of units) with
 * the texts that stand in.
 *
 * The blob: u32 bytes of the trie, the trie's units (u32, little endian), then the texts, each ended by NUL; a leaf holds the
 * offset of its text. A text is looked up grapheme by grapheme where a grapheme has below 6 bytes, else character by
 * character; of several keys that begin there the shortest wins, as in the library. */
#include <inttypes.h>
#include <utf8proc.h>

#include "tokenizer/tokenizer_internal.h"

struct cti_charsmap {
    const ct_alloc *alloc; /* borrows */
    cti_str blob;          /* owns */
    size_t n_units;
    const char *texts; /* points into blob; blob ends with NUL */
    size_t n_texts;    /* bytes */
};

static uint32_t read_u32(const char *p)
{
    const unsigned char *b = (const unsigned char *)p;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static uint32_t unit_at(const cti_charsmap *map, size_t at)
{
    return at < map->n_units ? read_u32(map->blob.data + 4 + 4 * at) : 0;
}

/* Texts are UTF-8 and leaves (units with the highest bit) begin whole characters of them, so that what is applied leaves UTF-8 behind. */
static ct_status check_texts(const cti_charsmap *map, const char *where, ct_err *err)
{
    const unsigned char *p = (const unsigned char *)map->texts, *end = p + map->n_texts;
    while (p < end) {
        const int n = cti_utf8_len(p, end);
        if (n == 0) {
            return CT_FAIL(err, CT_ERR_FORMAT, "%s: 'precompiled_charsmap' is damaged: byte %zu of its texts is not UTF-8", where,
                           (size_t)(p - (const unsigned char *)map->texts));
        }
        p += n;
    }
    for (size_t i = 0; i < map->n_units; i++) {
        const uint32_t unit = unit_at(map, i), value = unit & 0x7fffffffu;
        if (unit >> 31 != 0 && (value >= map->n_texts || ((unsigned char)map->texts[value] & 0xc0) == 0x80)) {
            return CT_FAIL(err, CT_ERR_FORMAT, "%s: 'precompiled_charsmap' is damaged: unit %zu of its trie wants a text at byte %" PRIu32
                           ", where none of the %zu bytes of texts begins", where, i, value, map->n_texts);
        }
    }
    return CT_OK;
}

ct_status cti_charsmap_create(const ct_alloc *alloc, const char *base64, size_t size, const char *where,
                              cti_charsmap **out_map, ct_err *err)
{
    cti_charsmap *map = CT_NEW(alloc, cti_charsmap, err);
    if (map == NULL) {
        return CT_ERR_MEMORY;
    }
    map->alloc = alloc;
    map->blob.alloc = alloc;
    const bool is_base64 = cti_base64_decode(base64, size, &map->blob);
    ct_status st = cti_str_check(&map->blob, err);
    if (st == CT_OK) {
        const size_t n = map->blob.len, n_trie = n >= 4 ? read_u32(map->blob.data) : 0;
        if (!is_base64 || n_trie == 0 || n_trie % 4 != 0 || n_trie > n - 4) {
            st = CT_FAIL(err, CT_ERR_FORMAT, "%s: 'precompiled_charsmap' is damaged: %s", where,
                         is_base64 ? "its trie is longer than the whole, empty or not of whole units" : "it is not base64");
        } else {
            map->n_units = n_trie / 4;
            map->texts = map->blob.data + 4 + n_trie;
            map->n_texts = n - 4 - n_trie;
            st = check_texts(map, where, err);
        }
    }
    if (st != CT_OK) {
        cti_charsmap_destroy(&map);
        return st;
    }
    *out_map = map;
    return CT_OK;
}

void cti_charsmap_destroy(cti_charsmap **map)
{
    if (*map != NULL) {
        cti_str_deinit(&(*map)->blob);
        ct_alloc_free((*map)->alloc, *map);
        *map = NULL;
    }
}

static size_t unit_offset(uint32_t unit)
{
    return (size_t)(unit >> 10) << ((unit & 0x200) >> 6);
}

/* What stands in for the shortest key that key begins with; NULL: there is none. */
static const char *look_up(const cti_charsmap *map, const unsigned char *key, size_t size)
{
    size_t node = unit_offset(unit_at(map, 0));
    for (size_t i = 0; i < size && key[i] != 0; i++) {
        node ^= key[i];
        const uint32_t unit = unit_at(map, node);
        if ((unit & 0x800000ffu) != key[i]) {
            return NULL;
        }
        node ^= unit_offset(unit);
        if (unit & 0x100) { /* a key ends here: the unit at node is its value */
            const uint32_t value = unit_at(map, node) & 0x7fffffffu;
            return unit_at(map, node) >> 31 != 0 ? map->texts + value : NULL;
        }
    }
    return NULL;
}

void cti_charsmap_apply(const cti_charsmap *map, const char *text, size_t size, cti_str *out)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + size;
    while (p < end) {
        uint32_t cp = 0, next = 0;
        const unsigned char *stop = p + cti_utf8_decode(p, end, &cp);
        utf8proc_int32_t state = 0;
        while (stop < end) {
            const int n = cti_utf8_decode(stop, end, &next);
            if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)cp, (utf8proc_int32_t)next, &state)) {
                break;
            }
            cp = next;
            stop += n;
        }
        const char *whole = stop - p < 6 ? look_up(map, p, (size_t)(stop - p)) : NULL;
        if (whole != NULL) {
            cti_str_add(out, whole);
            p = stop;
        }
        while (p < stop) {
            const int n = cti_utf8_len(p, stop);
            const char *one = look_up(map, p, (size_t)n);
            if (one != NULL) {
                cti_str_add(out, one);
            } else {
                cti_str_add_n(out, p, (size_t)n);
            }
            p += n;
        }
    }
}
