/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: data base */
/* Packing, order, epochs, faults and the thread that makes batches ahead. */
#include "unit/data_test.h"

#include <stdatomic.h>

/* Documents of given lengths: document i is n bytes of the letter 'a' + i % 26. With encode_bytes it has n + 1 inputs. */
static const char *put_lengths(data_folder *f, const char *name, const int *lengths, size_t n)
{
    cti_str text = {.alloc = ct_alloc_system()};
    for (size_t i = 0; i < n; i++) {
        cti_str_add(&text, "{\"text\":\"");
        for (int k = 0; k < lengths[i]; k++) {
            cti_str_add_char(&text, (char)('a' + i % 26));
        }
        cti_str_add(&text, "\"}\n");
    }
    const char *path = put_bytes(f, name, text.data, text.len);
    cti_str_deinit(&text);
    return path;
}

/* What the ids of a row read like: '<' BOS, letters, '>' EOS, '.' padding. */
static void assert_row(const int32_t *ids, const int32_t *labels, int64_t n, const char *want)
{
    assert_int_equal(strlen(want), n);
    for (int64_t i = 0; i < n; i++) {
        const int32_t id = ids[i];
        const bool is_padding = labels[i] == CT_LABEL_IGNORE;
        const char c = is_padding ? '.' : id == BYTE_BOS ? '<' : id == BYTE_EOS ? '>' : (char)id;
        if (c != want[i] || (is_padding && id != 0)) {
            fail_msg("token %lld is '%c' (%d), '%c' is wanted", (long long)i, c, (int)id, want[i]);
        }
    }
}

static void must_end(ct_loader *loader, ct_batch *batch)
{
    ct_err err = {0};
    assert_int_equal(ct_loader_next(loader, batch, &err), CT_END_OF_DATA);
    assert_int_equal(err.status, CT_OK);
    assert_int_equal(ct_loader_next(loader, batch, &err), CT_END_OF_DATA);
}

/* The whole of a small case by hand: tokens, labels, positions, segments, padding. */
static void by_hand(void **state)
{
    ct_corpus *corpus = open_corpus(put_lengths(*state, "x.jsonl", (const int[]){2, 0, 5}, 3));
    for (int prefetch = 0; prefetch <= 2; prefetch++) {
        const ct_loader_options o = {.seq_len = 4, .rows = 2, .streams = 1, .n_local_streams = 1, .prefetch_batches = prefetch, .workers = prefetch % 3};
        ct_loader *loader = make_loader(corpus, &o);
        ct_batch b = batch_make(8);
        assert_int_equal(ct_loader_local_rows(loader), 2);
        must_next(loader, &b); /* <aa | < | <ccccc */
        assert_row(b.tokens, b.labels, 8, "<aa<<ccc");
        static const int32_t labels[] = {'a', 'a', BYTE_EOS, BYTE_EOS, 'c', 'c', 'c', 'c'};
        static const int32_t positions[] = {0, 1, 2, 0, 0, 1, 2, 3};
        static const int32_t segments[8][4] = {{0, 3, 0, 3}, {3, 1, 3, 1}, {4, 4, 4, 4}};
        assert_memory_equal(b.labels, labels, sizeof labels);
        assert_memory_equal(b.positions, positions, sizeof positions);
        assert_memory_equal(b.segments, segments, sizeof segments);
        assert_int_equal(b.n_segments, 3);
        assert_int_equal(b.n_valid, 8);
        assert_int_equal(b.epoch, 0);
        must_next(loader, &b); /* cc and padding */
        assert_row(b.tokens, b.labels, 8, "cc......");
        static const int32_t last_labels[] = {'c', BYTE_EOS, -100, -100, -100, -100, -100, -100};
        static const int32_t last_positions[] = {0, 1, 0, 0, 0, 0, 0, 0};
        static const int32_t last_segments[8][4] = {{0, 2, 0, 2}, {2, 1, 2, 1}, {3, 1, 3, 1}, {4, 1, 4, 1},
                                                    {5, 1, 5, 1}, {6, 1, 6, 1}, {7, 1, 7, 1}};
        assert_memory_equal(b.labels, last_labels, sizeof last_labels);
        assert_memory_equal(b.positions, last_positions, sizeof last_positions);
        assert_memory_equal(b.segments, last_segments, sizeof last_segments);
        assert_int_equal(b.n_segments, 7);
        assert_int_equal(b.n_valid, 2);
        must_end(loader, &b);
        assert_int_equal(ct_loader_get_stats(loader).n_documents, 3);
        assert_int_equal(ct_loader_get_stats(loader).n_empty, 1);
        batch_free(&b);
        ct_loader_destroy(&loader);
        assert_null(loader);
    }
    ct_corpus_destroy(&corpus);
}

/* Documents much longer than a row, just as long, one longer, tiny: nothing lost, nothing twice. */
static void long_documents(void **state)
{
    static const int lengths[] = {121, 60, 61, 1, 600, 59};
    int64_t n_want = 0;
    int64_t counts[26] = {0};
    for (size_t i = 0; i < N_OF(lengths); i++) {
        n_want += lengths[i] + 1;
    }
    ct_corpus *corpus = open_corpus(put_lengths(*state, "x.jsonl", lengths, N_OF(lengths)));
    const ct_loader_options o = {.seq_len = 60, .rows = 1, .streams = 1, .n_local_streams = 1, .prefetch_batches = 2};
    ct_loader *loader = make_loader(corpus, &o);
    ct_batch b = batch_make(60);
    int64_t n = 0;
    int64_t n_bos = 0;
    ct_status st;
    while ((st = ct_loader_next(loader, &b, NULL)) == CT_OK) {
        for (int64_t i = 0; i < 60 && b.labels[i] != CT_LABEL_IGNORE; i++, n++) {
            n_bos += b.tokens[i] == BYTE_BOS;
            if (b.tokens[i] < BYTE_BOS) {
                counts[b.tokens[i] - 'a']++;
            }
        }
    }
    assert_int_equal(st, CT_END_OF_DATA);
    assert_int_equal(n, n_want);
    assert_int_equal(n_bos, N_OF(lengths));
    for (size_t i = 0; i < N_OF(lengths); i++) {
        assert_int_equal(counts[i], lengths[i]);
    }
    batch_free(&b);
    ct_loader_destroy(&loader);
    ct_corpus_destroy(&corpus);
}

/* Streams read balanced slices, the first ones longer; rows belong to streams; several ranks give what one gives. */
static void streams_and_ranks(void **state)
{
    ct_corpus *corpus = open_corpus(put_lengths(*state, "x.jsonl", (const int[]){3, 3, 3, 3, 3}, 5));
    ct_loader_options o = {.seq_len = 4, .rows = 4, .streams = 2, .n_local_streams = 2, .repeat = true};
    ct_loader *all = make_loader(corpus, &o);
    ct_loader *ranks[2];
    for (int r = 0; r < 2; r++) {
        o.first_stream = r;
        o.n_local_streams = 1;
        o.prefetch_batches = r; /* does not matter */
        ranks[r] = make_loader(corpus, &o);
        assert_int_equal(ct_loader_local_rows(ranks[r]), 2);
    }
    ct_batch whole = batch_make(16);
    ct_batch half = batch_make(8);
    static const char *const want[] = {"<aaa<bbb<ddd<eee", "<ccc<aaa<ddd<eee", "<bbb<ccc<ddd<eee"};
    for (size_t i = 0; i < 3; i++) {
        must_next(all, &whole);
        assert_row(whole.tokens, whole.labels, 16, want[i]);
        uint64_t hash = 0;
        for (int r = 0; r < 2; r++) {
            must_next(ranks[r], &half);
            assert_memory_equal(half.tokens, whole.tokens + 8 * r, 8 * sizeof(int32_t));
            assert_memory_equal(half.labels, whole.labels + 8 * r, 8 * sizeof(int32_t));
            hash += half.hash;
        }
        assert_true(hash == whole.hash);
        assert_int_equal(whole.epoch, i == 0 ? 0 : i == 1 ? 1 : 2); /* the lower of {0,1}, {1,2}, {2,3} */
    }
    batch_free(&whole);
    batch_free(&half);
    ct_loader_destroy(&all);
    ct_loader_destroy(&ranks[0]);
    ct_loader_destroy(&ranks[1]);
    ct_corpus_destroy(&corpus);
}

/* A finite run: a stream that is at its end pads while the other goes on. */
static void uneven_end(void **state)
{
    ct_corpus *corpus = open_corpus(put_lengths(*state, "x.jsonl", (const int[]){3, 3, 3}, 3));
    ct_loader_options o = {.seq_len = 4, .rows = 2, .streams = 2, .n_local_streams = 2, .prefetch_batches = 1};
    ct_loader *loader = make_loader(corpus, &o);
    ct_batch b = batch_make(8);
    must_next(loader, &b);
    assert_row(b.tokens, b.labels, 8, "<aaa<ccc");
    must_next(loader, &b);
    assert_row(b.tokens, b.labels, 8, "<bbb....");
    must_end(loader, &b);
    assert_int_equal(ct_batch_fill_padding(&b, 8, NULL), CT_OK);
    assert_row(b.tokens, b.labels, 8, "........");
    assert_int_equal(b.n_valid, 0);
    assert_int_equal(b.n_segments, 8);
    assert_int_equal(ct_batch_fill_padding(&b, 9, NULL), CT_ERR_RANGE);
    batch_free(&b);
    ct_loader_destroy(&loader);
    ct_corpus_destroy(&corpus);
}

/* EOS (and BOS) as plain ids within a document end nothing: borders come from the packer. */
static ct_status encode_with_eos_inside(void *ctx, const char *text, size_t size, ct_tokens *ids, ct_err *err)
{
    CT_TRY(ct_tokens_push(ids, BYTE_BOS, err));
    CT_TRY(ct_tokens_push(ids, BYTE_EOS, err));
    return encode_bytes(ctx, text, size, ids, err);
}

static void borders_are_not_ids(void **state)
{
    ct_corpus *corpus = open_corpus(put_lengths(*state, "x.jsonl", (const int[]){1, 1}, 2));
    const ct_loader_options o = {.seq_len = 8, .rows = 1, .streams = 1, .n_local_streams = 1};
    ct_loader *loader = NULL;
    assert_int_equal(create_loader(ct_alloc_system(), corpus, encode_with_eos_inside, &o, &loader, NULL), CT_OK);
    ct_batch b = batch_make(8);
    must_next(loader, &b);
    assert_row(b.tokens, b.labels, 8, "<><a<><b");
    static const int32_t positions[] = {0, 1, 2, 3, 0, 1, 2, 3};
    assert_memory_equal(b.positions, positions, sizeof positions);
    assert_int_equal(b.n_segments, 2);
    must_end(loader, &b);
    batch_free(&b);
    ct_loader_destroy(&loader);
    ct_corpus_destroy(&corpus);
}

/* An encoder without BOS and EOS: documents of fewer than 2 ids give nothing and are counted. */
static ct_status encode_plain(void *ctx, const char *text, size_t size, ct_tokens *ids, ct_err *err)
{
    (void)ctx;
    for (size_t i = 0; i < size; i++) {
        CT_TRY(ct_tokens_push(ids, (unsigned char)text[i], err));
    }
    return CT_OK;
}

static void short_documents(void **state)
{
    ct_corpus *corpus = open_corpus(put_lengths(*state, "x.jsonl", (const int[]){1, 3, 0, 2, 1}, 5));
    const ct_loader_options o = {.seq_len = 2, .rows = 1, .streams = 1, .n_local_streams = 1, .repeat = true};
    ct_loader *loader = NULL;
    assert_int_equal(create_loader(ct_alloc_system(), corpus, encode_plain, &o, &loader, NULL), CT_OK);
    ct_batch b = batch_make(2);
    static const char *const want[] = {"bb", "db", "bd"}; /* bbb gives bb, dd gives d */
    for (size_t i = 0; i < N_OF(want); i++) {
        must_next(loader, &b);
        assert_row(b.tokens, b.labels, 2, want[i]);
    }
    assert_int_equal(ct_loader_get_stats(loader).n_short, 3); /* once, not each epoch */
    ct_loader_destroy(&loader);
    ct_corpus_destroy(&corpus);

    corpus = open_corpus(put_lengths(*state, "y.jsonl", (const int[]){1, 0, 1}, 3));
    for (int i = 0; i < 4; i++) { /* nothing usable is an answer, not a search without end */
        const ct_loader_options finite = {.seq_len = 2, .rows = 1, .streams = 1, .n_local_streams = 1, .repeat = i % 2 == 1, .prefetch_batches = i / 2};
        ct_err err = {0};
        assert_int_equal(create_loader(ct_alloc_system(), corpus, encode_plain, &finite, &loader, NULL), CT_OK);
        assert_int_equal(ct_loader_next(loader, &b, &err), CT_ERR_DATA);
        assert_says(&err, "none of the 3 documents");
        ct_loader_destroy(&loader);
    }
    batch_free(&b);
    ct_corpus_destroy(&corpus);
}

static const char bad_lines[] = "{\"text\":\"aaa\"}\n{\"id\":1}\n{\"text\":null}\n{\"text\":2}\n{\"text\":\"bbb\"} {}\n{\"text\":\"ccc\"}\n";

/* The default stops at the bad line, with the batches before it delivered; so does the thread. */
static void bad_fails(void **state)
{
    ct_corpus *corpus = open_corpus(put(*state, "x.jsonl", bad_lines));
    for (int prefetch = 0; prefetch <= 3; prefetch++) {
        const ct_loader_options o = {.seq_len = 4, .rows = 1, .streams = 1, .n_local_streams = 1, .prefetch_batches = prefetch, .workers = prefetch % 3};
        ct_loader *loader = make_loader(corpus, &o);
        ct_batch b = batch_make(4);
        must_next(loader, &b);
        assert_row(b.tokens, b.labels, 4, "<aaa");
        for (int i = 0; i < 2; i++) {
            ct_err err = {0};
            assert_int_equal(ct_loader_next(loader, &b, &err), CT_ERR_DATA);
            assert_says(&err, "x.jsonl' line 2: text field missing");
        }
        batch_free(&b);
        ct_loader_destroy(&loader);
    }
    ct_corpus_destroy(&corpus);
}

static void bad_skipped(void **state)
{
    ct_corpus *corpus = open_corpus(put(*state, "x.jsonl", bad_lines));
    for (int prefetch = 0; prefetch <= 2; prefetch++) {
        const ct_loader_options o = {.seq_len = 4, .rows = 1, .streams = 1, .n_local_streams = 1, .repeat = true,
                                     .bad_policy = CT_BAD_SKIP, .prefetch_batches = prefetch, .workers = prefetch % 3};
        ct_loader *loader = make_loader(corpus, &o);
        ct_batch b = batch_make(4);
        for (int i = 0; i < 6; i++) {
            must_next(loader, &b);
            assert_row(b.tokens, b.labels, 4, i % 2 == 0 ? "<aaa" : "<ccc");
        }
        const ct_loader_stats s = ct_loader_get_stats(loader);
        assert_int_equal(s.n_bad_total, 4);
        assert_int_equal(s.n_bad[CT_BAD_NO_FIELD], 1);
        assert_int_equal(s.n_bad[CT_BAD_FIELD_TYPE], 2);
        assert_int_equal(s.n_bad[CT_BAD_TRAILING], 1);
        assert_int_equal(s.n_examples, 4);
        assert_non_null(strstr(s.examples[0], "line 2"));
        assert_non_null(strstr(s.examples[3], "line 5"));
        batch_free(&b);
        ct_loader_destroy(&loader);
    }
    ct_corpus_destroy(&corpus);
}

/* 1,000 lines: one bad one is within a share of 0.001, two are not. */
static void bad_share(void **state)
{
    for (int n_bad = 1; n_bad <= 2; n_bad++) {
        cti_str text = {.alloc = ct_alloc_system()};
        for (int i = 0; i < 1000; i++) {
            cti_str_add(&text, i == 499 || (n_bad == 2 && i == 700) ? "oops\n" : "{\"text\":\"aaa\"}\n");
        }
        ct_corpus *corpus = open_corpus(put_bytes(*state, "x.jsonl", text.data, text.len));
        const ct_loader_options o = {.seq_len = 4, .rows = 1, .streams = 1, .n_local_streams = 1, .bad_policy = CT_BAD_SKIP,
                                     .max_bad_share = 0.001, .prefetch_batches = 2};
        ct_loader *loader = make_loader(corpus, &o);
        ct_batch b = batch_make(4);
        ct_err err = {0};
        int n = 0;
        ct_status st;
        while ((st = ct_loader_next(loader, &b, &err)) == CT_OK) {
            n++;
        }
        assert_int_equal(st, n_bad == 1 ? CT_END_OF_DATA : CT_ERR_DATA);
        assert_int_equal(n, n_bad == 1 ? 999 : 699);
        if (n_bad == 2) {
            assert_says(&err, "2 of 1000 documents are bad");
            assert_says(&err, "line 701");
        }
        batch_free(&b);
        ct_loader_destroy(&loader);
        ct_corpus_destroy(&corpus);
        cti_str_deinit(&text);
    }
}

static ct_status encode_failing(void *ctx, const char *text, size_t size, ct_tokens *ids, ct_err *err)
{
    if (size == 2) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "no word for two");
    }
    return encode_bytes(ctx, text, size, ids, err);
}

static void encode_faults(void **state)
{
    ct_corpus *corpus = open_corpus(put_lengths(*state, "x.jsonl", (const int[]){3, 2}, 2));
    for (int prefetch = 0; prefetch <= 1; prefetch++) {
        ct_loader_options o = {.seq_len = 4, .rows = 1, .streams = 1, .n_local_streams = 1, .bad_policy = CT_BAD_SKIP,
                               .prefetch_batches = prefetch, .workers = prefetch % 3};
        ct_loader *loader = NULL;
        ct_batch b = batch_make(4);
        ct_err err = {0};
        assert_int_equal(create_loader(ct_alloc_system(), corpus, encode_failing, &o, &loader, NULL), CT_OK);
        must_next(loader, &b);
        assert_int_equal(ct_loader_next(loader, &b, &err), CT_ERR_UNSUPPORTED);
        assert_string_equal(err.message, "document 1: no word for two");
        ct_loader_destroy(&loader);
        o.vocab_size = BYTE_EOS;
        err = (ct_err){0};
        loader = make_loader(corpus, &o);
        assert_int_equal(ct_loader_next(loader, &b, &err), CT_ERR_DATA);
        assert_says(&err, "document 0 gives the token id 257; ids of [0, 257) are wanted");
        ct_loader_destroy(&loader);
        batch_free(&b);
    }
    ct_corpus_destroy(&corpus);
}

static void options_refused(void **state)
{
    ct_corpus *corpus = open_corpus(put_lengths(*state, "x.jsonl", (const int[]){1, 1, 1}, 3));
    static const struct {
        ct_loader_options o;
        ct_status status;
        const char *says;
    } rows[] = {
        {{.seq_len = 0, .rows = 2, .streams = 1, .n_local_streams = 1}, CT_ERR_RANGE, "seq_len must be above 0, found 0"},
        {{.seq_len = 4, .rows = 0, .streams = 1, .n_local_streams = 1}, CT_ERR_RANGE, "rows"},
        {{.seq_len = 4, .rows = 2, .streams = 0, .n_local_streams = 1}, CT_ERR_RANGE, "streams"},
        {{.seq_len = 4, .rows = 2, .streams = -2, .n_local_streams = 1}, CT_ERR_RANGE, "streams"},
        {{.seq_len = 4, .rows = 3, .streams = 2, .n_local_streams = 1}, CT_ERR_RANGE, "3 rows"},
        {{.seq_len = 4, .rows = 2, .streams = 2, .first_stream = 2, .n_local_streams = 1}, CT_ERR_RANGE, "first_stream"},
        {{.seq_len = 4, .rows = 2, .streams = 2, .first_stream = 1, .n_local_streams = 2}, CT_ERR_RANGE, "n_local_streams"},
        {{.seq_len = 4, .rows = 2, .streams = 2, .n_local_streams = 0}, CT_ERR_RANGE, "n_local_streams"},
        {{.seq_len = 4, .rows = 2, .streams = 2, .n_local_streams = INT64_MAX}, CT_ERR_RANGE, "n_local_streams"},
        {{.seq_len = INT64_C(1) << 40, .rows = 2, .streams = 1, .n_local_streams = 1}, CT_ERR_RANGE, "2^31 - 1"},
        {{.seq_len = INT64_MAX, .rows = INT64_MAX, .streams = 1, .n_local_streams = 1}, CT_ERR_RANGE, "2^31 - 1"},
        {{.seq_len = 4, .rows = 2, .streams = 1, .n_local_streams = 1, .prefetch_batches = -1}, CT_ERR_RANGE, "prefetch"},
        {{.seq_len = 4, .rows = 2, .streams = 1, .n_local_streams = 1, .vocab_size = -1}, CT_ERR_RANGE, "vocab_size"},
        {{.seq_len = 4, .rows = 2, .streams = 1, .n_local_streams = 1, .max_bad_share = 1.5}, CT_ERR_RANGE, "max_bad_share"},
        {{.seq_len = 4, .rows = 2, .streams = 1, .n_local_streams = 1, .workers = -1}, CT_ERR_RANGE, "num_workers"},
        {{.seq_len = 4, .rows = 2, .streams = 1, .n_local_streams = 1, .workers = 257}, CT_ERR_RANGE, "num_workers"},
        {{.seq_len = 4, .rows = 2, .streams = 1, .n_local_streams = 1, .seed = -1}, CT_ERR_RANGE, "seed"},
        {{.seq_len = 4, .rows = 2, .streams = 1, .n_local_streams = 1, .packing = CT_PACK_FIRST_FIT}, CT_ERR_RANGE, "num_packing_bins"},
        {{.seq_len = 1 << 20, .rows = 2, .streams = 1, .n_local_streams = 1, .packing = CT_PACK_FIRST_FIT, .packing_bins = 1 << 11},
         CT_ERR_RANGE, "open rows"},
        {{.seq_len = 4, .rows = 4, .streams = 4, .n_local_streams = 1}, CT_ERR_DATA, "has 3 documents, fewer than the 4 streams"},
    };
    for (size_t i = 0; i < N_OF(rows); i++) {
        ct_loader *loader = NULL;
        ct_err err = {0};
        assert_int_equal(create_loader(ct_alloc_system(), corpus, encode_bytes, &rows[i].o, &loader, &err), rows[i].status);
        assert_null(loader);
        assert_says(&err, rows[i].says);
    }
    const ct_loader_options o = {.seq_len = 4, .rows = 2, .streams = 1, .n_local_streams = 1, .repeat = true};
    ct_loader *loader = make_loader(corpus, &o);
    ct_batch b = batch_make(8);
    ct_err err = {0};
    b.segments_cap = 7;
    assert_int_equal(ct_loader_next(loader, &b, &err), CT_ERR_RANGE);
    assert_says(&err, "segments_cap is 7");
    b.segments_cap = 8;
    must_next(loader, &b); /* that did no harm */
    batch_free(&b);
    ct_loader_destroy(&loader);
    ct_corpus_destroy(&corpus);
}

static void out_of_memory(void **state)
{
    ct_corpus *corpus = open_corpus(put_lengths(*state, "x.jsonl", (const int[]){3, 300, 3}, 3));
    ct_batch b = batch_make(8);
    int variant = 0;
    for (int64_t at = 1; variant < 4; at++) {
        /* one thread allocates at a time: the batches' without workers, the worker's with one */
        const ct_loader_options o = {.seq_len = 4, .rows = 2, .streams = 2, .n_local_streams = 2, .prefetch_batches = 2,
                                     .shuffle = true, .packing = variant % 2 == 1 ? CT_PACK_FIRST_FIT : CT_PACK_SPLIT,
                                     .packing_bins = 2, .workers = variant / 2};
        test_alloc t;
        test_alloc_init(&t, at);
        ct_loader *loader = NULL;
        ct_status st = create_loader(&t.alloc, corpus, encode_bytes, &o, &loader, NULL);
        while (st == CT_OK) {
            st = ct_loader_next(loader, &b, NULL);
        }
        ct_loader_destroy(&loader);
        assert_int_equal(t.n_live, 0);
        if (st == CT_END_OF_DATA) {
            assert_true(at > 15);
            variant++;
            at = 0;
            continue;
        }
        assert_int_equal(st, CT_ERR_MEMORY);
    }
    batch_free(&b);
    ct_corpus_destroy(&corpus);
}

/* Counts allocations from any thread. */
static void *counting_resize(void *ctx, void *ptr, size_t size_bytes)
{
    const ct_alloc *under = ct_alloc_system();
    atomic_fetch_add((atomic_llong *)ctx, size_bytes > 0);
    return under->resize(under->ctx, ptr, size_bytes);
}

/* After one pass over the documents nothing is allocated, good and bad ones alike. */
static void no_allocation_later(void **state)
{
    ct_corpus *corpus = open_corpus(put(*state, "x.jsonl", bad_lines));
    atomic_llong n_calls = 0;
    const ct_alloc alloc = {.resize = counting_resize, .ctx = &n_calls};
    const ct_loader_options o = {.seq_len = 3, .rows = 2, .streams = 2, .n_local_streams = 2, .repeat = true,
                                 .bad_policy = CT_BAD_SKIP, .prefetch_batches = 2};
    ct_loader *loader = NULL;
    ct_batch b = batch_make(6);
    assert_int_equal(create_loader(&alloc, corpus, encode_bytes, &o, &loader, NULL), CT_OK);
    for (int i = 0; i < 6; i++) {
        must_next(loader, &b);
    }
    const long long before = atomic_load(&n_calls);
    for (int i = 0; i < 100; i++) {
        must_next(loader, &b);
    }
    assert_int_equal(atomic_load(&n_calls), before);
    batch_free(&b);
    ct_loader_destroy(&loader);
    ct_corpus_destroy(&corpus);
}

/* Destroyed at any moment: before the thread started, while it waits for room, after it ended. */
static void destroyed_early(void **state)
{
    ct_corpus *corpus = open_corpus(put_lengths(*state, "x.jsonl", (const int[]){30, 20, 10}, 3));
    for (int n = 0; n < 60; n++) {
        const ct_loader_options o = {.seq_len = 31, .rows = 1, .streams = 1, .n_local_streams = 1, .repeat = n % 2 == 0,
                                     .prefetch_batches = n % 4, .workers = n % 3,
                                     .packing = n % 5 == 0 ? CT_PACK_FIRST_FIT : CT_PACK_SPLIT, .packing_bins = 2};
        ct_loader *loader = make_loader(corpus, &o);
        ct_batch b = batch_make(31);
        for (int i = 0; i < n % 20; i++) {
            const ct_status st = ct_loader_next(loader, &b, NULL);
            assert_true(st == CT_OK || (st == CT_END_OF_DATA && n % 2 == 1));
        }
        batch_free(&b);
        ct_loader_destroy(&loader);
    }
    ct_loader_destroy(NULL);
    ct_corpus_destroy(&corpus);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(by_hand),
        IN_FOLDER(long_documents),
        IN_FOLDER(streams_and_ranks),
        IN_FOLDER(uneven_end),
        IN_FOLDER(borders_are_not_ids),
        IN_FOLDER(short_documents),
        IN_FOLDER(bad_fails),
        IN_FOLDER(bad_skipped),
        IN_FOLDER(bad_share),
        IN_FOLDER(encode_faults),
        IN_FOLDER(options_refused),
        IN_FOLDER(out_of_memory),
        IN_FOLDER(no_allocation_later),
        IN_FOLDER(destroyed_early),
    };
    return cmocka_run_group_tests_name("data_loader", tests, NULL, NULL);
}
