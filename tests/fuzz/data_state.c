/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: data base */
/* Mutated saved states of the data: refused with a reason, or a loader goes on from them without a crash. */
#include "fuzz/fuzz.h"
#include "unit/data_test.h"

static const char *const words[] = {"{", "}", "[", "]", "\"", ",", ":", "0", "-1", "1", "9223372036854775807", "-9223372036854775808", "1e308", "null", "true",
                                    "\"version\": 1", "\"streams\": []", "\"sources\": []", "[0, 0, 0, 0, 0]", "\\u0000", "\xff", "4294967296"};

int main(void)
{
    const ct_alloc *alloc = ct_alloc_system();
    data_folder f;
    ct_err err = {0};
    test_folder_make(f.path, sizeof f.path);
    ct_corpus *a = open_corpus(put(&f, "a.jsonl", "{\"text\":\"one\"}\n{\"text\":\"two\"}\n{\"text\":\"three\"}\n{\"text\":\"four\"}\n"));
    ct_corpus *b = open_corpus(put(&f, "b.jsonl", "{\"text\":\"x\"}\n{\"text\":\"y\"}\n{\"text\":\"z\"}\n"));
    const ct_data_source sources[] = {{a, 0.75}, {b, 0.25}};
    const ct_loader_options o = {.seq_len = 8, .rows = 2, .streams = 2, .n_local_streams = 2, .encode_hash = 5};
    const int64_t states[2][10] = {{0, 0, 1, 7, 3, 1, 100, 0, 2, 90}, {0, 0, 0, 0, 0, 1, 5, 2, 0, 6}};
    char *text = NULL;
    int64_t n_taken = 0;
    cti_str bytes = {.alloc = alloc};
    assert_int_equal(ct_data_state_write(alloc, sources, 2, &o, &states[0][0], 2, &text, &err), CT_OK);
    for (fuzz_case c = fuzz_begin("data_state", 5000); fuzz_next(&c);) {
        int64_t *out = NULL, n = 0;
        err = (ct_err){0};
        fuzz_mutate(&c, &bytes, text, strlen(text), words, N_OF(words));
        const ct_status st = ct_data_state_read(alloc, bytes.data, bytes.len, sources, 2, &o, &out, &n, &err);
        if (st != CT_OK && (st == CT_ERR_MEMORY || err.message[0] == '\0')) {
            fail_msg("seed %llu: %s '%s'", (unsigned long long)c.seed, ct_status_name(st), err.message);
        }
        if (st == CT_OK) {
            n_taken++;
            assert_true(n >= 1);
            volatile int64_t sum = 0;
            for (int64_t i = 0; i < n * ct_stream_state_width(2); i++) {
                sum = out[i];
            }
            (void)sum;
        }
        ct_alloc_free(alloc, out);
    }
    printf("%lld taken\n", (long long)n_taken);
    ct_alloc_free(alloc, text);
    cti_str_deinit(&bytes);
    ct_corpus_destroy(&a);
    ct_corpus_destroy(&b);
    test_folder_remove(f.path);
    return 0;
}
