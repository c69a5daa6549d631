/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: data base */
/* labels: fast */
/* What users count on: each document once, other orders in other epochs, shares of the sources, rows of whole documents, and the
 * same tokens in every layout. */
#include "unit/data_test.h"

/* A document's id is its number in its source plus 1000 times the source; it gives as many inputs as its text has bytes, all of its id. */
static ct_status process_ids(void *state, const ct_document *document, ct_sample *sample, ct_err *err)
{
    (void)state;
    const int32_t id = (int32_t)strtol(cti_str_text(&document->text), NULL, 10);
    for (size_t i = 0; i <= document->text.len; i++) {
        CT_TRY(ct_tokens_push(&sample->ids, id, err));
    }
    return CT_OK;
}

/* n documents "ID" padded with blanks to len(i) bytes. */
static ct_corpus *ids_corpus(data_folder *f, const char *name, int first_id, int n, int (*len)(int i))
{
    cti_str text = {.alloc = ct_alloc_system()};
    for (int i = 0; i < n; i++) {
        cti_str_printf(&text, "{\"text\":\"%-*d\"}\n", len(i), first_id + i);
    }
    ct_corpus *corpus = open_corpus(put_bytes(f, name, text.data, text.len));
    cti_str_deinit(&text);
    return corpus;
}

static int len_8(int i)
{
    (void)i;
    return 8;
}
static int len_10(int i)
{
    (void)i;
    return 10;
}
static int len_1000(int i)
{
    (void)i;
    return 1000;
}
static int len_mixed(int i)
{
    return 4 + i * 7 % 13;
}

static ct_loader *open_mix(const ct_data_source *sources, int32_t n, const ct_loader_options *o)
{
    const ct_processor processor = {.process = process_ids};
    ct_loader *loader = NULL;
    ct_err err = {0};
    if (ct_loader_create(ct_alloc_system(), sources, n, &processor, o, &loader, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    return loader;
}

/* Shuffled epochs are permutations, each another one; without shuffle they are file order, each time. */
static void epochs_differ_when_shuffled(void **state)
{
    ct_corpus *corpus = ids_corpus(*state, "x.jsonl", 0, 8, len_8);
    const ct_data_source source = {corpus, 1.0};
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        const ct_loader_options o = {.seq_len = 8, .rows = 8, .streams = 1, .n_local_streams = 1, .repeat = true, .shuffle = shuffle, .seed = 42};
        ct_loader *loader = open_mix(&source, 1, &o);
        int32_t order[3][8];
        ct_batch b = batch_make(64);
        for (int e = 0; e < 3; e++) {
            int seen = 0;
            must_next(loader, &b);
            for (int i = 0; i < 8; i++) {
                order[e][i] = b.tokens[8 * i];
                seen |= 1 << order[e][i];
            }
            assert_int_equal(seen, 0xff);
        }
        for (int e = 0; e < 3; e++) {
            assert_int_equal(memcmp(order[e], order[(e + 1) % 3], sizeof order[0]) == 0, !shuffle);
        }
        batch_free(&b);
        ct_loader_destroy(&loader);
    }
    ct_corpus_destroy(&corpus);
}

/* 12 documents, one epoch: 12 uses with any number of threads. */
static void each_document_once(void **state)
{
    ct_corpus *corpus = ids_corpus(*state, "x.jsonl", 0, 12, len_8);
    const ct_data_source source = {corpus, 1.0};
    static const int workers[] = {0, 1, 2, 5};
    for (size_t k = 0; k < N_OF(workers); k++) {
        const ct_loader_options o = {.seq_len = 8, .rows = 1, .streams = 1, .n_local_streams = 1, .workers = workers[k], .prefetch_batches = 2};
        ct_loader *loader = open_mix(&source, 1, &o);
        ct_batch b = batch_make(8);
        for (int32_t i = 0; i < 12; i++) {
            must_next(loader, &b);
            assert_int_equal(b.tokens[0], i);
            assert_int_equal(b.tokens[7], i);
        }
        assert_int_equal(ct_loader_next(loader, &b, NULL), CT_END_OF_DATA);
        assert_int_equal(ct_loader_get_stats(loader).n_documents, 12);
        batch_free(&b);
        ct_loader_destroy(&loader);
    }
    ct_corpus_destroy(&corpus);
}

/* A global batch of 8 rows in 4 streams holds the same tokens on 1, 2 and 4 ranks, with 0 and 3 threads. */
static void same_batches_on_any_ranks(void **state)
{
    ct_corpus *corpus = ids_corpus(*state, "x.jsonl", 0, 100, len_mixed);
    const ct_data_source source = {corpus, 1.0};
    uint64_t want[20] = {0};
    for (int ranks = 1; ranks <= 4; ranks *= 2) {
        for (int workers = 0; workers <= 3; workers += 3) {
            uint64_t got[20] = {0};
            for (int r = 0; r < ranks; r++) {
                const ct_loader_options o = {.seq_len = 16, .rows = 8, .streams = 4, .first_stream = r * 4 / ranks,
                                             .n_local_streams = 4 / ranks, .repeat = true, .shuffle = true, .seed = 7,
                                             .packing = CT_PACK_FIRST_FIT, .packing_bins = 3, .workers = workers, .prefetch_batches = 2};
                ct_loader *loader = open_mix(&source, 1, &o);
                ct_batch b = batch_make(16 * 8 / ranks);
                for (int i = 0; i < 20; i++) {
                    must_next(loader, &b);
                    got[i] += b.hash;
                }
                batch_free(&b);
                ct_loader_destroy(&loader);
            }
            if (ranks == 1 && workers == 0) {
                memcpy(want, got, sizeof want);
            }
            assert_memory_equal(got, want, sizeof want);
        }
    }
    ct_corpus_destroy(&corpus);
}

/* Long and short documents share rows: shares are of tokens, and right at every moment. */
static void shares_are_of_tokens(void **state)
{
    ct_corpus *corpora[3] = {ids_corpus(*state, "a.jsonl", 0, 20, len_1000), ids_corpus(*state, "b.jsonl", 1000, 200, len_10),
                             ids_corpus(*state, "c.jsonl", 2000, 50, len_mixed)};
    static const struct {
        double weight[3];
        int n;
    } mixes[] = {{{1.0, 1.0}, 2}, {{0.9, 0.1}, 2}, {{1.0, 1.0, 1.0}, 3}, {{0.7, 0.02, 0.28}, 3}, {{1e-3, 5.0, 2.0}, 3}};
    for (size_t m = 0; m < N_OF(mixes); m++) {
        ct_data_source sources[3];
        double sum = 0.0;
        for (int k = 0; k < mixes[m].n; k++) {
            sources[k] = (ct_data_source){corpora[k], mixes[m].weight[k]};
            sum += mixes[m].weight[k];
        }
        for (int whole = 0; whole < 2; whole++) {
            const ct_loader_options o = {.seq_len = 1000, .rows = 1, .streams = 1, .n_local_streams = 1, .repeat = true, .packing_bins = 1,
                                         .packing = whole ? CT_PACK_FIRST_FIT : CT_PACK_SPLIT};
            ct_loader *loader = open_mix(sources, mixes[m].n, &o);
            ct_batch b = batch_make(1000);
            int64_t given[3] = {0}, total = 0;
            for (int i = 0; i < 1000; i++) {
                must_next(loader, &b);
                for (int64_t at = 0; at < 1000; at++) {
                    if (b.labels[at] != CT_LABEL_IGNORE) {
                        given[b.tokens[at] / 1000]++;
                        total++;
                    }
                }
                for (int k = 0; k < mixes[m].n; k++) {
                    const double ideal = sources[k].weight / sum * (double)total, off = (double)given[k] - ideal;
                    /* ahead: by less than one of its documents; behind: by what the others are ahead. 1: parts of 10^9 are rounded */
                    const double longest = k == 0 ? 1000.0 : 16.0;
                    assert_true(off <= longest + 1.0);
                    assert_true(off >= -(k == 0 ? 32.0 : 1016.0) - 1.0);
                }
            }
            batch_free(&b);
            ct_loader_destroy(&loader);
        }
    }
    for (int k = 0; k < 3; k++) {
        ct_corpus_destroy(&corpora[k]);
    }
}

/* Very unequal weights: the small source is read again and again or hardly at all, never beyond its end, and never more than one draw off. */
static void unequal_weights(void **state)
{
    ct_corpus *corpora[2] = {ids_corpus(*state, "a.jsonl", 0, 100, len_8), ids_corpus(*state, "b.jsonl", 1000, 100, len_8)};
    static const double weights[] = {0.999, 0.001};
    for (int swapped = 0; swapped < 2; swapped++) {
        const ct_data_source sources[2] = {{corpora[0], weights[swapped]}, {corpora[1], weights[!swapped]}};
        const ct_loader_options o = {.seq_len = 8, .rows = 1, .streams = 1, .n_local_streams = 1, .repeat = true};
        ct_loader *loader = open_mix(sources, 2, &o);
        ct_batch b = batch_make(8);
        int n[2] = {0};
        for (int draw = 1; draw <= 1000; draw++) {
            must_next(loader, &b);
            const int k = b.tokens[0] >= 1000;
            assert_int_equal(b.tokens[0], 1000 * k + n[k] % 100);
            n[k]++;
            assert_true(n[0] <= weights[swapped] * draw + 1.0 && n[0] >= weights[swapped] * draw - 1.0);
        }
        batch_free(&b);
        ct_loader_destroy(&loader);
    }
    ct_corpus_destroy(&corpora[0]);
    ct_corpus_destroy(&corpora[1]);
}

/* A finite mix ends at the turn of the source that has ended. */
static void finite_mix_ends(void **state)
{
    ct_corpus *a = ids_corpus(*state, "a.jsonl", 0, 2, len_8), *b = ids_corpus(*state, "b.jsonl", 1000, 9, len_8);
    const ct_data_source sources[] = {{a, 1.0}, {b, 1.0}};
    const ct_loader_options o = {.seq_len = 8, .rows = 1, .streams = 1, .n_local_streams = 1};
    static const int32_t want[] = {0, 1000, 1, 1001};
    ct_loader *loader = open_mix(sources, 2, &o);
    ct_batch batch = batch_make(8);
    for (size_t i = 0; i < N_OF(want); i++) {
        must_next(loader, &batch);
        assert_int_equal(batch.tokens[0], want[i]);
    }
    assert_int_equal(ct_loader_next(loader, &batch, NULL), CT_END_OF_DATA);
    batch_free(&batch);
    ct_loader_destroy(&loader);
    ct_corpus_destroy(&a);
    ct_corpus_destroy(&b);
}

/* First-fit by hand: 2 open rows of 10; a document of 11 is dropped. */
static void first_fit_by_hand(void **state)
{
    static const int lengths[] = {6, 7, 3, 4, 11, 2, 10, 1, 1};
    cti_str text = {.alloc = ct_alloc_system()};
    for (size_t i = 0; i < N_OF(lengths); i++) {
        cti_str_printf(&text, "{\"text\":\"%-*d\"}\n", lengths[i], (int)i + 1);
    }
    ct_corpus *corpus = open_corpus(put_bytes(*state, "x.jsonl", text.data, text.len));
    cti_str_deinit(&text);
    const ct_data_source source = {corpus, 1.0};
    const ct_loader_options o = {.seq_len = 10, .rows = 1, .streams = 1, .n_local_streams = 1, .packing = CT_PACK_FIRST_FIT, .packing_bins = 2};
    /* 6 opens row 0, 7 row 1, 3 goes to row 0, 4 nowhere: out; 4 and 2 in row 0, 10 in row 1, 1 and 1 in row 0 */
    static const int32_t want[4][10] = {{1, 1, 1, 1, 1, 1, 3, 3, 3, 0}, {2, 2, 2, 2, 2, 2, 2, 0, 0, 0},
                                        {4, 4, 4, 4, 6, 6, 8, 9, 0, 0}, {7, 7, 7, 7, 7, 7, 7, 7, 7, 7}};
    static const int32_t positions[10] = {0, 1, 2, 3, 0, 1, 0, 0, 0, 0};
    static const int32_t segments[6][4] = {{0, 4, 0, 4}, {4, 2, 4, 2}, {6, 1, 6, 1}, {7, 1, 7, 1}, {8, 1, 8, 1}, {9, 1, 9, 1}};
    ct_loader *loader = open_mix(&source, 1, &o);
    ct_batch b = batch_make(10);
    for (size_t i = 0; i < 4; i++) {
        must_next(loader, &b);
        assert_memory_equal(b.tokens, want[i], sizeof want[i]);
        for (int k = 0; k < 10; k++) {
            assert_int_equal(b.labels[k], want[i][k] > 0 ? want[i][k] : CT_LABEL_IGNORE);
        }
        if (i == 2) {
            assert_memory_equal(b.positions, positions, sizeof positions);
            assert_memory_equal(b.segments, segments, sizeof segments);
            assert_int_equal(b.n_segments, 6);
            assert_int_equal(b.n_valid, 8);
        }
    }
    assert_int_equal(ct_loader_next(loader, &b, NULL), CT_END_OF_DATA);
    assert_int_equal(ct_loader_get_stats(loader).n_long, 1);
    batch_free(&b);
    ct_loader_destroy(&loader);
    ct_corpus_destroy(&corpus);
}

/* Documents none of which fits are an answer, not a search without end. */
static void nothing_fits(void **state)
{
    ct_corpus *corpus = ids_corpus(*state, "x.jsonl", 0, 5, len_10);
    const ct_data_source source = {corpus, 1.0};
    for (int n = 0; n < 8; n++) {
        const ct_loader_options o = {.seq_len = 9, .rows = 1, .streams = 1, .n_local_streams = 1, .repeat = true, .shuffle = n % 2 == 1,
                                     .packing = CT_PACK_FIRST_FIT, .packing_bins = 8, .workers = n / 2 % 2, .prefetch_batches = n / 4};
        ct_loader *loader = open_mix(&source, 1, &o);
        ct_batch b = batch_make(9);
        ct_err err = {0};
        assert_int_equal(ct_loader_next(loader, &b, &err), CT_ERR_DATA);
        assert_says(&err, "fits into a row whole");
        batch_free(&b);
        ct_loader_destroy(&loader);
    }
    ct_corpus_destroy(&corpus);
}

/* A document a thousand times longer than what a ring's items keep, and many of them: memory is given back. */
static int len_long(int i)
{
    return i % 2 == 0 ? 300000 : 3;
}

static void long_documents_with_workers(void **state)
{
    ct_corpus *corpus = ids_corpus(*state, "x.jsonl", 0, 12, len_long);
    const ct_data_source source = {corpus, 1.0};
    const ct_loader_options o = {.seq_len = 1 << 16, .rows = 2, .streams = 2, .n_local_streams = 2, .workers = 3, .prefetch_batches = 1};
    ct_loader *loader = open_mix(&source, 1, &o);
    ct_batch b = batch_make(1 << 17);
    int64_t n = 0;
    ct_status st;
    while ((st = ct_loader_next(loader, &b, NULL)) == CT_OK) {
        n += b.n_valid;
    }
    assert_int_equal(st, CT_END_OF_DATA);
    assert_int_equal(n, 6 * 300003);
    batch_free(&b);
    ct_loader_destroy(&loader);
    ct_corpus_destroy(&corpus);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(epochs_differ_when_shuffled),
        IN_FOLDER(each_document_once),
        IN_FOLDER(same_batches_on_any_ranks),
        IN_FOLDER(shares_are_of_tokens),
        IN_FOLDER(unequal_weights),
        IN_FOLDER(finite_mix_ends),
        IN_FOLDER(first_fit_by_hand),
        IN_FOLDER(nothing_fits),
        IN_FOLDER(long_documents_with_workers),
    };
    return cmocka_run_group_tests_name("data_order", tests, NULL, NULL);
}
