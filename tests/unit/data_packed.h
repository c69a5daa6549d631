/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of compressed data: gzip and zstd as their own libraries write them. */
#ifndef CT_TESTS_DATA_PACKED_H
#define CT_TESTS_DATA_PACKED_H

#include <zlib.h>
#include <zstd.h>

#include "unit/data_test.h"

/* Appends one gzip member. */
static inline void add_gzip(cti_str *out, const void *data, size_t size, int level)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    const size_t bound = deflateBound(&z, size);
    assert_true(cti_str_reserve(out, bound));
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)size;
    z.next_out = (Bytef *)out->data + out->len;
    z.avail_out = (uInt)bound;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    out->len += bound - z.avail_out;
    (void)deflateEnd(&z);
}

/* Appends one zstd frame with a check sum. */
static inline void add_zstd(cti_str *out, const void *data, size_t size)
{
    const size_t bound = ZSTD_compressBound(size);
    ZSTD_CCtx *c = ZSTD_createCCtx();
    assert_true(cti_str_reserve(out, bound));
    (void)ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
    const size_t n = ZSTD_compress2(c, out->data + out->len, bound, data, size);
    assert_false(ZSTD_isError(n));
    out->len += n;
    (void)ZSTD_freeCCtx(c);
}

static inline void add_skippable(cti_str *out, const char *text)
{
    const uint32_t head[2] = {0x184d2a53, (uint32_t)strlen(text)};
    cti_str_add_n(out, head, sizeof head);
    cti_str_add(out, text);
}

/* JSON lines of size bytes or a little more: numbered documents of changing length, that compress as text does. */
static inline void add_lines(cti_str *out, size_t size, uint64_t seed)
{
    static const char *const words[] = {"river", "stone", "lamp", "seven", "mill", "north", "of", "and", "the", "grain", "quiet", "road"};
    uint64_t x = seed * 2654435761u + 1;
    for (int64_t i = 0; out->len < size; i++) {
        cti_str_printf(out, "{\"id\": %lld, \"text\": \"number %lld", (long long)i, (long long)i);
        for (uint64_t n = 3 + (x >> 33) % 120; n > 0; n--) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            cti_str_printf(out, " %s%d", words[(x >> 40) % N_OF(words)], (int)((x >> 50) % 50));
        }
        cti_str_add(out, "\"}\n");
    }
    assert_false(out->failed);
}

#endif
