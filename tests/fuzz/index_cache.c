/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: data base */
/* Mutated kept indexes, most with their check sum made right again, as a hostile one would have: refused, or lines and places are read
 * through it without a crash. */
#include "base/hash.h"
#include "fuzz/data_files.h"
#include "unit/data_packed.h"

/* docs/formats/data-index.md */
enum { HEADER = 272, SUM_AT = 16, SUMMED_FROM = 24, SIZE_AT = 24, DOCUMENTS_AT = 72, POINTS_AT = 80, WINDOWS_AT = 88, PATH_AT = 108 };

static uint64_t number_at(const cti_str *bytes, size_t at, size_t width)
{
    uint64_t v = 0;
    memcpy(&v, bytes->data + at, width);
    return v;
}

static void mend(cti_str *bytes)
{
    if (bytes->len < HEADER) {
        return;
    }
    const uint64_t size = bytes->len;
    memcpy(bytes->data + SIZE_AT, &size, 8);
    const size_t parts[] = {(size_t)((number_at(bytes, PATH_AT, 4) + 7) / 8 * 8), (size_t)number_at(bytes, DOCUMENTS_AT, 8) * 8,
                            (size_t)number_at(bytes, POINTS_AT, 8) * 40, (size_t)number_at(bytes, WINDOWS_AT, 8)};
    uint64_t sum = cti_hash64(bytes->data + SUMMED_FROM, HEADER - SUMMED_FROM, 1);
    size_t at = HEADER;
    for (size_t i = 0; i < N_OF(parts); i++) {
        if (parts[i] > bytes->len - at) {
            return;
        }
        sum = cti_hash64(bytes->data + at, parts[i], sum);
        at += parts[i];
    }
    memcpy(bytes->data + SUM_AT, &sum, 8);
}

/* Points nearer to each other than those of an index that is built, so that a case costs little. */
static void add_points(const cti_source *source, cti_index *index)
{
    static unsigned char out[1 << 20];
    cti_decoder d;
    size_t n = 1;
    int fd;
    index->own_points = (cti_points){.alloc = ct_alloc_system(), .windows = {.alloc = ct_alloc_system()}, .span = 20000};
    assert_int_equal(cti_source_open(source, &fd, NULL), CT_OK);
    assert_int_equal(cti_decoder_init(&d, ct_alloc_system(), source, fd, &index->own_points, NULL), CT_OK);
    assert_int_equal(cti_decoder_seek(&d, NULL, NULL), CT_OK);
    while (n > 0) {
        assert_int_equal(cti_decoder_next(&d, out, sizeof out, &n, NULL), CT_OK);
    }
    cti_decoder_deinit(&d);
    assert_int_equal(close(fd), 0);
    index->points = index->own_points.points;
    index->n_points = index->own_points.n;
    index->windows = (const unsigned char *)index->own_points.windows.data;
    index->windows_size = (int64_t)index->own_points.windows.len;
    assert_true(index->n_points >= 2);
}

static void kept(void **state)
{
    (void)state;
    char folder[512], data[600], cache[600];
    cti_str lines = {.alloc = ct_alloc_system()}, packed = {.alloc = ct_alloc_system()}, bytes = {.alloc = ct_alloc_system()};
    char *sample = NULL;
    size_t size = 0;
    int64_t n = 0, n_loaded = 0, n_read = 0;
    uint64_t x = 1;
    int fd;
    test_folder_make(folder, sizeof folder);
    (void)snprintf(data, sizeof data, "%s/a.jsonl.gz", folder);
    (void)snprintf(cache, sizeof cache, "%s/kept", folder);
    while (lines.len < 250000) { /* several blocks */
        for (int i = 0; i < 5000; i++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            cti_str_add_char(&lines, "abcdefgh"[x >> 61]);
        }
        cti_str_add_char(&lines, '\n');
    }
    add_gzip(&packed, lines.data, lines.len, 1);
    fuzz_put(data, packed.data, packed.len);
    cti_source source = {.path = data, .codec = CT_CODEC_GZIP};
    cti_index index;
    assert_int_equal(cti_data_open(data, &fd, NULL), CT_OK);
    assert_int_equal(cti_stamp_take(data, fd, &source.stamp, NULL), CT_OK);
    assert_int_equal(close(fd), 0);
    assert_int_equal(cti_index_build(ct_alloc_system(), &source, CT_FILE_JSONL, &index, NULL), CT_OK);
    add_points(&source, &index);
    const cti_index_key key = {.path = data, .stamp = source.stamp, .format = CT_FILE_JSONL, .codec = CT_CODEC_GZIP};
    assert_int_equal(cti_index_store(ct_alloc_system(), cache, &key, &index, NULL), CT_OK);
    cti_index_deinit(ct_alloc_system(), &index);
    assert_int_equal(cti_file_read(ct_alloc_system(), cache, 0, &sample, &size, NULL), CT_OK);
    for (fuzz_case c = fuzz_begin("index_cache", 1000); fuzz_next(&c); n++) {
        ct_err err = {0};
        fuzz_mutate(&c, &bytes, sample, size, NULL, 0);
        if (fuzz_below(&c, 8) != 0) {
            mend(&bytes);
        }
        fuzz_put(cache, bytes.data, bytes.len);
        const ct_status st = cti_index_load(cache, &key, &index, &err);
        if (st != CT_OK) {
            fuzz_check_refusal(&c, st, &err);
            continue;
        }
        n_loaded++;
        source.points = index.points;
        source.n_points = index.n_points;
        source.windows = index.windows;
        source.windows_size = index.windows_size;
        cti_cursor cursor;
        cti_cursor_init(&cursor, ct_alloc_system());
        for (int i = 0; i < 3 && index.n > 0; i++) {
            const unsigned char *line;
            size_t length;
            bool is_long;
            ct_err why = {0};
            const int64_t offset = index.offsets[fuzz_below(&c, (size_t)index.n)];
            ct_status read = cti_cursor_open(&cursor, &source, NULL, &why);
            if (read == CT_OK) {
                read = cti_cursor_line(&cursor, offset, 100, 100000, &line, &length, &is_long, &why);
            }
            n_read += read == CT_OK;
            if (read != CT_OK) {
                fuzz_check_refusal(&c, read, &why);
            }
        }
        cti_cursor_deinit(&cursor);
        cti_index_deinit(ct_alloc_system(), &index);
    }
    printf("%lld kept indexes: %lld taken, %lld lines read through them\n", (long long)n, (long long)n_loaded, (long long)n_read);
    assert_true(n < 300 || (n_loaded > n / 20 && n_loaded < n));
    ct_alloc_free(ct_alloc_system(), sample);
    cti_str_deinit(&lines), cti_str_deinit(&packed), cti_str_deinit(&bytes);
    test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
