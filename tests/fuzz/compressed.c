/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: data base */
/* Mutated gzip and zstd files: never a crash or a hang; the index is in order; what is indexed is read, forwards and by points alike, to
 * equal bytes; what is not whole says so. */
#include "fuzz/data_files.h"
#include "unit/data_packed.h"

/* The documents' lines one by one; by_point: each from a cursor of its own, which seeks. */
static void read_lines(const fuzz_case *c, const cti_source *source, const cti_index *index, bool by_point, cti_str *out)
{
    cti_cursor cursor;
    cti_cursor_init(&cursor, ct_alloc_system());
    const int64_t n = index->n - (index->damage[0] != '\0');
    cti_str_reset(out);
    for (int64_t k = 0; k < n; k++) {
        const int64_t i = by_point ? n - 1 - k : k;
        const unsigned char *line;
        size_t size;
        bool is_long;
        ct_err err = {0};
        if (cti_cursor_open(&cursor, source, NULL, &err) != CT_OK ||
            cti_cursor_line(&cursor, index->offsets[i], 100, 1 << 20, &line, &size, &is_long, &err) != CT_OK) {
            fail_msg("case %llu: document %lld of %lld: %s", (unsigned long long)c->seed, (long long)i, (long long)n, err.message);
        }
        assert_false(is_long);
        if (by_point) { /* in the order of reading */
            cti_str whole = {.alloc = ct_alloc_system()};
            cti_str_add_n(&whole, line, size);
            cti_str_add_n(&whole, out->data, out->len);
            cti_str_deinit(out);
            *out = whole;
        } else {
            cti_str_add_n(out, line, size);
        }
    }
    cti_cursor_deinit(&cursor);
}

static void streams(void **state)
{
    (void)state;
    enum { N_SAMPLES = 5 };
    char folder[512], path[600];
    cti_str lines = {.alloc = ct_alloc_system()}, bytes = {.alloc = ct_alloc_system()};
    cti_str a = {.alloc = ct_alloc_system()}, b = {.alloc = ct_alloc_system()}, samples[N_SAMPLES];
    int64_t n = 0, n_whole = 0, n_damaged = 0;
    test_folder_make(folder, sizeof folder);
    (void)snprintf(path, sizeof path, "%s/data", folder);
    add_lines(&lines, 3000, 1);
    for (int i = 0; i < N_SAMPLES; i++) {
        samples[i] = (cti_str){.alloc = ct_alloc_system()};
    }
    add_gzip(&samples[0], lines.data, lines.len, 6);
    add_gzip(&samples[1], lines.data, 1000, 0);
    add_gzip(&samples[1], lines.data + 1000, lines.len - 1000, 9);
    add_zstd(&samples[2], lines.data, lines.len);
    add_skippable(&samples[3], "skip");
    add_zstd(&samples[3], lines.data, 700);
    add_zstd(&samples[3], lines.data + 700, lines.len - 700);
    for (int i = 0; i < 12; i++) { /* small members */
        add_gzip(&samples[4], lines.data + 200 * i, 200, 1);
    }
    for (fuzz_case c = fuzz_begin("compressed", 1000); fuzz_next(&c); n++) {
        const size_t which = fuzz_below(&c, N_SAMPLES);
        fuzz_mutate(&c, &bytes, samples[which].data, samples[which].len, NULL, 0);
        fuzz_put(path, bytes.data, bytes.len);
        cti_source source = {.path = path, .codec = which == 2 || which == 3 ? CT_CODEC_ZSTD : CT_CODEC_GZIP};
        cti_index index;
        ct_err err = {0};
        int fd;
        assert_int_equal(cti_data_open(path, &fd, &err), CT_OK);
        assert_int_equal(cti_stamp_take(path, fd, &source.stamp, &err), CT_OK);
        assert_int_equal(close(fd), 0);
        if (cti_index_build(ct_alloc_system(), &source, CT_FILE_JSONL, &index, &err) != CT_OK) {
            fail_msg("case %llu: %s", (unsigned long long)c.seed, err.message);
        }
        const bool is_damaged = index.damage[0] != '\0';
        n_damaged += is_damaged;
        n_whole += !is_damaged;
        for (int64_t i = 0; i < index.n; i++) {
            assert_true(index.offsets[i] <= index.size_bytes && (i == 0 || index.offsets[i] > index.offsets[i - 1]));
        }
        source.points = index.points;
        source.n_points = index.n_points;
        source.windows = index.windows;
        source.windows_size = index.windows_size;
        read_lines(&c, &source, &index, false, &a);
        read_lines(&c, &source, &index, true, &b);
        assert_int_equal(a.len, b.len);
        assert_memory_equal(cti_str_text(&a), cti_str_text(&b), a.len);
        cti_index_deinit(ct_alloc_system(), &index);
    }
    printf("%lld streams: %lld whole, %lld damaged\n", (long long)n, (long long)n_whole, (long long)n_damaged);
    assert_true(n < 500 || (n_whole > 0 && n_damaged > n / 2));
    for (int i = 0; i < N_SAMPLES; i++) {
        cti_str_deinit(&samples[i]);
    }
    cti_str_deinit(&lines), cti_str_deinit(&bytes), cti_str_deinit(&a), cti_str_deinit(&b);
    test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(streams)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
