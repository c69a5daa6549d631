/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: data base */
/* Mutated files of tokens, ours, Megatron's and llm.c's: refused in words, or every document is read or refused in words. Half of ours
 * have their check sums made right again, so that what lies behind them is reached. */
#include "base/hash.h"
#include "data/token_writer.h"
#include "fuzz/data_files.h"

static void make_own(const char *path)
{
    cti_token_writer w = {.output = {.fd = -1}};
    const cti_tokens_header header = {.token_bytes = 2, .vocab_size = 300, .tokenizer_hash = 5, .source_documents = 6};
    static const int32_t ids[] = {1, 2, 3, 299, 5, 6, 7};
    assert_int_equal(cti_token_writer_open(&w, ct_alloc_system(), path, &header, NULL), CT_OK);
    for (int64_t n = 0; n < 6; n++) {
        assert_int_equal(cti_token_writer_add(&w, ids, n, NULL), CT_OK);
    }
    assert_int_equal(cti_token_writer_finish(&w, true, NULL), CT_OK);
    cti_token_writer_deinit(&w);
}

/* Makes the check sums right where the numbers allow to find what is summed. */
static void mend_own(cti_str *bytes)
{
    cti_tokens_header h;
    if (bytes->len < sizeof h) {
        return;
    }
    memcpy(&h, bytes->data, sizeof h);
    h.file_bytes = (int64_t)bytes->len;
    if (h.n_documents >= 0 && h.n_documents < 1000 && (size_t)(h.n_documents + 1) * 8 <= bytes->len) {
        const size_t n = (size_t)(h.n_documents + 1) * 8;
        h.offsets_sum = cti_hash64(bytes->data + bytes->len - n, n, 0);
    }
    h.header_sum = cti_tokens_header_sum(&h);
    memcpy(bytes->data, &h, sizeof h);
}

static void make_idx(cti_str *out)
{
    static const uint64_t counts[] = {3, 4};
    static const int32_t lengths[] = {2, 3, 1};
    static const int64_t pointers[] = {0, 4, 10}, entries[] = {0, 2, 2, 3};
    static const uint64_t version = 1;
    cti_str_add_n(out, "MMIDIDX\0", 9);
    cti_str_add_n(out, &version, 8);
    cti_str_add_char(out, 8);
    cti_str_add_n(out, counts, sizeof counts);
    cti_str_add_n(out, lengths, sizeof lengths);
    cti_str_add_n(out, pointers, sizeof pointers);
    cti_str_add_n(out, entries, sizeof entries);
}

static void files(void **state)
{
    (void)state;
    char folder[512], own[600], bin[600], idx[600], llmc[600];
    char *sample = NULL;
    size_t size = 0;
    cti_str idx_sample = {.alloc = ct_alloc_system()}, llmc_sample = {.alloc = ct_alloc_system()}, bytes = {.alloc = ct_alloc_system()};
    static const uint16_t tokens[] = {50256, 6, 7, 65535, 50256, 2};
    static const int32_t head[256] = {20240520, 1, 6};
    int64_t n = 0, n_open[3] = {0}, n_tried[3] = {0}, n_read = 0;
    test_folder_make(folder, sizeof folder);
    (void)snprintf(own, sizeof own, "%s/a.ctok", folder);
    (void)snprintf(bin, sizeof bin, "%s/m.bin", folder);
    (void)snprintf(idx, sizeof idx, "%s/m.idx", folder);
    (void)snprintf(llmc, sizeof llmc, "%s/l.bin", folder);
    make_own(own);
    assert_int_equal(cti_file_read(ct_alloc_system(), own, 0, &sample, &size, NULL), CT_OK);
    make_idx(&idx_sample);
    fuzz_put(bin, tokens, sizeof tokens);
    cti_str_add_n(&llmc_sample, head, sizeof head);
    cti_str_add_n(&llmc_sample, tokens, sizeof tokens);
    for (fuzz_case c = fuzz_begin("token_files", 3000); fuzz_next(&c); n++) {
        const size_t which = fuzz_below(&c, 3);
        const char *path = which == 0 ? own : which == 1 ? bin : llmc;
        if (which == 0) {
            fuzz_mutate(&c, &bytes, sample, size, NULL, 0);
            if (fuzz_below(&c, 4) != 0) {
                mend_own(&bytes);
            }
            fuzz_put(own, bytes.data, bytes.len);
        } else if (which == 1) {
            fuzz_mutate(&c, &bytes, idx_sample.data, idx_sample.len, NULL, 0);
            fuzz_put(idx, bytes.data, bytes.len);
        } else {
            /* the header's first numbers and the tokens: the rest of it is not read */
            cti_str_reset(&bytes);
            cti_str tail = {.alloc = ct_alloc_system()};
            fuzz_mutate(&c, &tail, tokens, sizeof tokens, NULL, 0);
            cti_str_add_n(&bytes, head, sizeof head);
            cti_str_add_n(&bytes, tail.data, tail.len);
            const int32_t told = fuzz_below(&c, 2) == 0 ? (int32_t)(tail.len / 2) : (int32_t)fuzz_below(&c, 1u << 31);
            memcpy(bytes.data + 8, &told, sizeof told);
            fuzz_put(llmc, bytes.data, bytes.len);
            cti_str_deinit(&tail);
        }
        ct_corpus *corpus = NULL;
        ct_err err = {0};
        const ct_corpus_options o = {.cache_dir = "", .max_document_bytes = fuzz_below(&c, 2) == 0 ? 0 : 4};
        const ct_status st = ct_corpus_open(ct_alloc_system(), path, &o, &corpus, &err);
        n_tried[which]++;
        if (st != CT_OK) {
            fuzz_check_refusal(&c, st, &err);
            continue;
        }
        n_open[which]++;
        n_read += fuzz_read_all(&c, corpus);
        const ct_status verified = ct_corpus_verify(corpus, NULL); /* right or wrong, but no crash */
        assert_true(verified == CT_OK || verified == CT_ERR_FORMAT);
        ct_corpus_destroy(&corpus);
    }
    printf("opened: ours %lld of %lld, Megatron's %lld of %lld, llm.c's %lld of %lld; %lld documents read\n", (long long)n_open[0],
           (long long)n_tried[0], (long long)n_open[1], (long long)n_tried[1], (long long)n_open[2], (long long)n_tried[2], (long long)n_read);
    for (int i = 0; i < 3; i++) {
        assert_true(n < 1000 || (n_open[i] > n_tried[i] / 100 && n_open[i] < n_tried[i]));
    }
    ct_alloc_free(ct_alloc_system(), sample);
    cti_str_deinit(&idx_sample), cti_str_deinit(&llmc_sample), cti_str_deinit(&bytes);
    test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
