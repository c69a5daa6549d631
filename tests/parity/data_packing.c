/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: data base */
/* labels: fast */
/* Rows of whole documents, and the order of their going out, against grain's first-fit packing (recorded by data/packing.py). */
#include "unit/base_test.h"

#include "data/stream.h"

/* grain 0.2.18, numpy 2.4.6; document i (from 1) has 1 + ((i-1)^2 * 7 + (i-1) * 3) % seq inputs */
static const struct {
    int32_t seq, bins;
    bool is_shuffled;
    int64_t seed;
    int32_t n, n_flat;
    int32_t flat[98]; /* the documents of each row, then 0 */
} cases[] = {
    /* clang-format off */
    {10, 2, false, 42, 8, 11, {1, 2, 3, 4, 0, 5, 6, 7, 0, 8, 0}},
    {10, 2, true, 42, 8, 11, {5, 6, 7, 0, 1, 2, 3, 4, 0, 8, 0}},
    {10, 4, true, 42, 3, 4, {1, 2, 3, 0}},
    {10, 8, true, 7, 40, 53, {1, 2, 3, 4, 0, 21, 22, 23, 24, 0, 25, 26, 27, 0, 8, 10, 0, 15, 16, 17, 19, 0, 18, 20, 0, 5, 6, 7, 9, 0, 11, 12, 13, 14, 0, 34, 35, 36, 37, 0, 28, 29, 31, 32, 0, 38, 39, 0, 40, 0, 30, 33, 0}},
    {16, 8, true, 1000, 60, 96, {6, 0, 5, 0, 4, 10, 0, 7, 0, 1, 2, 3, 12, 0, 9, 13, 0, 8, 0, 11, 0, 24, 0, 16, 18, 0, 22, 0, 14, 15, 17, 0, 23, 0, 19, 20, 26, 0, 25, 0, 21, 0, 37, 0, 31, 32, 0, 39, 0, 29, 30, 0, 27, 28, 33, 35, 0, 38, 0, 34, 0, 36, 0, 54, 0, 41, 44, 45, 49, 0, 43, 48, 0, 40, 42, 0, 53, 0, 52, 0, 46, 47, 0, 50, 51, 0, 55, 60, 0, 57, 0, 59, 0, 56, 58, 0}},
    {12, 3, true, 0, 60, 98, {5, 0, 1, 2, 0, 3, 4, 0, 9, 10, 0, 7, 8, 0, 6, 0, 11, 13, 0, 12, 0, 14, 0, 18, 0, 15, 16, 0, 17, 19, 0, 22, 24, 0, 23, 0, 20, 21, 25, 0, 26, 28, 0, 29, 0, 27, 0, 30, 0, 33, 34, 0, 31, 32, 0, 36, 0, 35, 37, 0, 38, 0, 41, 43, 0, 42, 0, 39, 40, 0, 44, 45, 49, 0, 47, 0, 46, 48, 0, 50, 52, 0, 51, 0, 53, 0, 54, 0, 55, 56, 0, 57, 58, 0, 60, 0, 59, 0}},
    {9, 5, false, 3, 50, 73, {1, 2, 4, 6, 7, 10, 0, 3, 0, 5, 0, 8, 11, 0, 9, 0, 12, 13, 0, 14, 16, 0, 15, 17, 19, 22, 0, 18, 20, 0, 21, 0, 23, 25, 0, 24, 26, 28, 31, 0, 27, 29, 33, 0, 30, 34, 0, 32, 0, 35, 37, 38, 40, 0, 36, 42, 43, 0, 39, 0, 41, 0, 44, 0, 45, 46, 47, 49, 0, 48, 0, 50, 0}},
    {16, 8, true, 4294967293, 60, 96, {4, 10, 0, 11, 0, 8, 0, 1, 2, 3, 12, 0, 7, 0, 9, 13, 0, 5, 0, 6, 0, 22, 0, 19, 20, 26, 0, 23, 0, 14, 15, 17, 0, 25, 0, 24, 0, 21, 0, 16, 18, 0, 31, 32, 0, 34, 0, 29, 30, 0, 38, 0, 39, 0, 27, 28, 33, 35, 0, 36, 0, 37, 0, 43, 48, 0, 46, 47, 0, 52, 0, 40, 42, 0, 41, 44, 45, 49, 0, 50, 51, 0, 53, 0, 54, 0, 59, 0, 57, 0, 55, 60, 0, 56, 58, 0}},
    /* clang-format on */
};

/* Sends the set's rows out: the documents of each, then 0. */
static void send(const cti_bins *bins, int32_t *flat, int32_t *n_flat)
{
    for (int32_t r = 0; r < bins->n_rows; r++) {
        const int64_t row = bins->order[r] * bins->seq_len;
        for (int64_t i = 0; i < bins->filled[bins->order[r]]; i++) {
            if (bins->positions[row + i] == 0) {
                flat[(*n_flat)++] = bins->tokens[row + i];
            }
        }
        flat[(*n_flat)++] = 0;
    }
}

static void rows_of_grain(void **state)
{
    (void)state;
    for (size_t c = 0; c < N_OF(cases); c++) {
        int32_t flat[98 * 2] = {0}, n_flat = 0, n_sent = 0;
        int32_t ids[32];
        cti_bins bins;
        assert_int_equal(cti_bins_init(&bins, ct_alloc_system(), cases[c].bins, cases[c].seq, NULL), CT_OK);
        cti_bins_clear(&bins);
        for (int32_t i = 0; i < cases[c].n; i++) {
            const int32_t n = 1 + (i * i * 7 + i * 3) % cases[c].seq;
            for (int32_t k = 0; k <= n; k++) {
                ids[k] = i + 1;
            }
            const ct_sample sample = {.ids = {.ids = ids, .n = n + 1}};
            if (!cti_bins_add(&bins, &sample)) {
                cti_bins_close(&bins, cases[c].is_shuffled, (uint64_t)(cases[c].seed + n_sent));
                send(&bins, flat, &n_flat);
                n_sent += bins.n_rows;
                cti_bins_clear(&bins);
                assert_true(cti_bins_add(&bins, &sample));
            }
        }
        cti_bins_close(&bins, cases[c].is_shuffled, (uint64_t)(cases[c].seed + n_sent));
        send(&bins, flat, &n_flat);
        assert_int_equal(n_flat, cases[c].n_flat);
        assert_memory_equal(flat, cases[c].flat, (size_t)n_flat * sizeof(int32_t));
        cti_bins_deinit(&bins, ct_alloc_system());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_of_grain)};
    return cmocka_run_group_tests_name("data_packing", tests, NULL, NULL);
}
