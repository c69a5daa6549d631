/* SPDX-License-Identifier: Apache-2.0 */
/* What the hot path of encoding shares: classes of characters, the split patterns that are known by hand, the word cache.
 *
 * The usual tokenizer cuts text by one of a few published patterns and merges bytes. Such a pattern is recognised by its text and
 * matched by hand-written code on the UTF-8 bytes; any other pattern goes to PCRE2. Both give the same pieces
 * (tests/property/tokenizer_fast.c). */
#ifndef CTI_TOKENIZER_FAST_H
#define CTI_TOKENIZER_FAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ctitan/alloc.h"
#include "ctitan/status.h"

/* --- classes of characters (tokenizer_classes.c) --- */

/* Each code point has exactly one bit. */
enum {
    CTI_CLASS_UPPER = 1u << 0,  /* Lu Lt */
    CTI_CLASS_LOWER = 1u << 1,  /* Ll */
    CTI_CLASS_OTHER_LETTER = 1u << 2, /* Lm Lo */
    CTI_CLASS_MARK = 1u << 3,   /* M */
    CTI_CLASS_NUMBER = 1u << 4, /* N */
    CTI_CLASS_SIGN = 1u << 5,   /* P S */
    CTI_CLASS_SPACE = 1u << 6,  /* White_Space */
    CTI_CLASS_REST = 1u << 7,   /* controls, unassigned */
    CTI_CLASS_LETTER = CTI_CLASS_UPPER | CTI_CLASS_LOWER | CTI_CLASS_OTHER_LETTER
};

enum { CTI_CLASS_PAGE = 128, CTI_CLASS_PAGES = 0x110000 / CTI_CLASS_PAGE, CTI_CLASS_MAX_PAGES = 512 };

/* Two steps: the page of a code point, then its place there. Page 0 is ASCII. */
typedef struct cti_classes {
    uint16_t page[CTI_CLASS_PAGES];
    uint8_t bits[CTI_CLASS_MAX_PAGES][CTI_CLASS_PAGE];
} cti_classes;

/* The table of this process, made once out of what the PCRE2 library at hand says of every code point (so that both ways of
 * matching agree whatever Unicode version that library has). NULL where that failed: PCRE2 then matches everything.
 * Threads: any. */
const cti_classes *cti_classes_get(const ct_alloc *alloc);

/* The character at p of well-formed UTF-8, and its length. */
static inline uint32_t cti_point_at(const unsigned char *p, unsigned *out_len)
{
    const uint32_t b = p[0];
    if (b < 0x80) {
        *out_len = 1;
        return b;
    }
    if (b < 0xe0) {
        *out_len = 2;
        return (b & 0x1f) << 6 | (p[1] & 0x3fu);
    }
    if (b < 0xf0) {
        *out_len = 3;
        return (b & 0x0f) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
    }
    *out_len = 4;
    return (b & 0x07) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 | (p[3] & 0x3fu);
}

static inline unsigned cti_class_of(const cti_classes *c, uint32_t cp)
{
    return c->bits[c->page[cp / CTI_CLASS_PAGE]][cp % CTI_CLASS_PAGE];
}

/* --- known patterns (tokenizer_known.c) --- */

typedef enum cti_known {
    CTI_KNOWN_NONE,
    CTI_KNOWN_GPT2,
    CTI_KNOWN_LLAMA3,    /* up to three digits: cl100k, Llama 3 */
    CTI_KNOWN_QWEN2,     /* one digit */
    CTI_KNOWN_QWEN3_5,   /* one digit, marks are letters */
    CTI_KNOWN_O200K,     /* words begin where capitals do: GPT-4o, Llama 4 */
    CTI_KNOWN_DIGITS3,   /* DeepSeek V3's three steps; these leave gaps between matches */
    CTI_KNOWN_CJK,
    CTI_KNOWN_DEEPSEEK,
    CTI_KNOWN_COUNT
} cti_known;

/* Which pattern this is, by its text. */
cti_known cti_known_pattern(const char *pattern, size_t size);
const char *cti_known_text(cti_known known); /* its first spelling; NULL for CTI_KNOWN_NONE */

/* The leftmost match at or after `from` < size; false: none. */
bool cti_known_find(const cti_classes *classes, cti_known known, const char *text, size_t size, size_t from,
                    size_t *out_start, size_t *out_end);

/* Whether every text is covered by matches without a gap: each match begins where the one before ended. */
static inline bool cti_known_tiles(cti_known known)
{
    return known >= CTI_KNOWN_GPT2 && known <= CTI_KNOWN_O200K;
}

/* --- the word cache (tokenizer_cache.c) --- */

enum {
    CTI_CACHE_WORD = 15, /* bytes of a short word at most */
    CTI_CACHE_IDS = 4,
    CTI_CACHE_SET_BITS = 15,
    CTI_CACHE_LONG_WORD = 64,
    CTI_CACHE_LONG_IDS = 15,
    CTI_CACHE_LONGS = 4096
};

/* A short word, zeros behind it, its size in the last byte: two of these are one line of the processor's cache. */
typedef struct cti_cache_slot {
    uint64_t key[2];            /* key[1] 0: empty */
    int32_t ids[CTI_CACHE_IDS]; /* -1 behind the last */
} cti_cache_slot;
typedef struct cti_cache_long {
    uint8_t size, n_ids; /* size 0: empty */
    char key[CTI_CACHE_LONG_WORD];
    int32_t ids[CTI_CACHE_LONG_IDS];
} cti_cache_long;
typedef struct cti_cache {
    const ct_alloc *alloc; /* borrows */
    cti_cache_slot slots[1 << CTI_CACHE_SET_BITS][2]; /* the newer one first */
    cti_cache_long longs[CTI_CACHE_LONGS];
} cti_cache;

CT_MUST_CHECK ct_status cti_cache_create(const ct_alloc *alloc, cti_cache **out_cache, ct_err *err);
void cti_cache_destroy(cti_cache **cache);
/* Nothing is kept of a word of no ids or of more than fit. */
void cti_cache_put(cti_cache *cache, const uint64_t key[2], const int32_t *ids, int64_t n);
const cti_cache_long *cti_cache_find_long(cti_cache *cache, const char *word, size_t size); /* size <= CTI_CACHE_LONG_WORD; NULL: none */
void cti_cache_put_long(cti_cache *cache, const char *word, size_t size, const int32_t *ids, int64_t n);

static inline int cti_cache_count(const cti_cache_slot *slot)
{
    return 1 + (slot->ids[1] >= 0) + (slot->ids[2] >= 0) + (slot->ids[3] >= 0);
}

/* The first 16 bytes at p as a key; end: of what may be read; size <= 15. */
static inline void cti_cache_key(const unsigned char *p, const unsigned char *end, size_t size, uint64_t key[2])
{
    unsigned char bytes[16] = {0};
    if (end - p >= 16) {
        memcpy(key, p, 16);
    } else {
        memcpy(bytes, p, size);
        memcpy(key, bytes, 16);
    }
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (size <= 8) {
        key[0] &= size == 0 ? 0 : ~(uint64_t)0 >> (64 - 8 * size);
        key[1] = (uint64_t)size << 56;
    } else {
        key[1] = (key[1] & ~(uint64_t)0 >> (128 - 8 * size)) | (uint64_t)size << 56;
    }
#else
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, p, size);
    bytes[15] = (unsigned char)size;
    memcpy(key, bytes, 16);
#endif
}

static inline size_t cti_cache_set(const uint64_t key[2])
{
    const uint64_t x = (key[0] ^ key[1] * 0xd6e8feb86659fd93u) * 0x9e3779b97f4a7c15u;
    return (size_t)(x >> (64 - CTI_CACHE_SET_BITS));
}

static inline const cti_cache_slot *cti_cache_find(const cti_cache *cache, const uint64_t key[2]) /* NULL: none */
{
    const cti_cache_slot *slot = cache->slots[cti_cache_set(key)];
    if (slot[0].key[0] == key[0] && slot[0].key[1] == key[1]) {
        return slot;
    }
    return slot[1].key[0] == key[0] && slot[1].key[1] == key[1] ? slot + 1 : NULL;
}

#endif
