/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: data base */
/* labels: fast */
/* The loader against a naive reading of its rules, over random documents, lengths, streams and ranks: the same tokens, labels, positions and
 * segments; ranks together give what one process gives; going on from a saved state at any batch gives what never stopping gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "data/data.h"

enum { BOS = 300, EOS = 301, MAX_DOCS = 40 };
static const ct_alloc *alloc;
static char path[256];
static int n_docs, doc_len[MAX_DOCS];

/* A document is its bytes between BOS and EOS. */
static ct_status process(void *state, const ct_document *document, ct_sample *sample, ct_err *err)
{
    (void)state;
    CT_TRY(ct_tokens_push(&sample->ids, BOS, err));
    for (size_t i = 0; i < document->text.len; i++) {
        CT_TRY(ct_tokens_push(&sample->ids, (unsigned char)document->text.data[i], err));
    }
    return ct_tokens_push(&sample->ids, EOS, err);
}

static char doc_char(int doc, int i)
{
    return (char)('a' + (doc * 7 + i * 3) % 26);
}

static void write_docs(cti_rng_key key)
{
    cti_str s = {.alloc = alloc};
    ct_err err = {0};
    n_docs = 8 + (int)cti_rng_below(key, 1, MAX_DOCS - 8);
    for (int d = 0; d < n_docs; d++) {
        doc_len[d] = (int)cti_rng_below(key, 10 + (uint64_t)d, 60);
        cti_str_add(&s, "{\"text\": \"");
        for (int i = 0; i < doc_len[d]; i++) {
            cti_str_add_char(&s, doc_char(d, i));
        }
        cti_str_add(&s, "\"}\n");
    }
    assert_int_equal(cti_file_write_atomic(path, s.data, s.len, &err), CT_OK);
    cti_str_deinit(&s);
}

/* Stream s's k-th token, label and position in its document, by the rules. */
static void naive(int streams, int s, int64_t k, int *token, int *label, int *pos)
{
    const int per = n_docs / streams, extra = n_docs % streams;
    const int begin = s * per + (s < extra ? s : extra), count = per + (s < extra);
    int64_t at = 0;
    for (int64_t j = 0;; j++) {
        const int d = begin + (int)(j % count), n = doc_len[d] + 1; /* ids without the last */
        if (k < at + n) {
            const int i = (int)(k - at);
            *pos = i;
            *token = i == 0 ? BOS : doc_char(d, i - 1);
            *label = i == doc_len[d] ? EOS : doc_char(d, i);
            return;
        }
        at += n;
    }
}

typedef struct room {
    int32_t *data;
    ct_batch batch;
} room;

static room room_make(int64_t tokens)
{
    room r = {CT_NEW_ARRAY(alloc, int32_t, tokens * 7, NULL), {0}};
    r.batch = (ct_batch){.tokens = r.data, .labels = r.data + tokens, .positions = r.data + 2 * tokens,
                         .segments = r.data + 3 * tokens, .segments_cap = tokens};
    return r;
}

static ct_loader *open_loader(const ct_corpus *corpus, int64_t seq, int64_t rows, int streams, int first, int n_local, int prefetch)
{
    const ct_loader_options o = {.seq_len = seq, .rows = rows, .streams = streams, .first_stream = first,
                                 .n_local_streams = n_local, .repeat = true, .prefetch_batches = prefetch};
    const ct_processor processor = {.process = process};
    ct_loader *l = NULL;
    ct_err err = {0};
    const ct_data_source source = {corpus, 1.0};
    if (ct_loader_create(alloc, &source, 1, &processor, &o, &l, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    return l;
}

/* Batch number `b` of rows [first, first + n) against the rules. */
static void check_batch(const ct_batch *batch, int64_t b, int64_t seq, int64_t rows, int streams, int64_t first_row, int64_t n_rows)
{
    const int64_t per_stream = rows / streams;
    int64_t n_segments = 0, covered = 0;
    for (int64_t r = 0; r < n_rows; r++) {
        const int64_t row = first_row + r;
        const int s = (int)(row / per_stream);
        const int64_t stream_row = b * per_stream + row % per_stream;
        int64_t start = 0;
        for (int64_t i = 0; i < seq; i++) {
            int token, label, pos;
            naive(streams, s, stream_row * seq + i, &token, &label, &pos);
            const bool begins = i == 0 || pos == 0;
            start = begins ? i : start;
            assert_int_equal(batch->tokens[r * seq + i], token);
            assert_int_equal(batch->labels[r * seq + i], label);
            assert_int_equal(batch->positions[r * seq + i], i - start);
            if (begins) {
                const int32_t *seg = batch->segments + 4 * n_segments++;
                assert_int_equal(seg[0], r * seq + i);
                assert_int_equal(seg[0], covered);
                assert_true(seg[2] == seg[0] && seg[3] == seg[1]);
                covered += seg[1];
            }
        }
    }
    assert_int_equal(batch->n_segments, n_segments);
    assert_int_equal(covered, n_rows * seq);
    assert_int_equal(batch->n_valid, n_rows * seq);
}

static void test_order_and_resume(void **state)
{
    (void)state;
    const char *given = getenv("CT_TEST_SEED");
    const uint64_t base = given != NULL ? strtoull(given, NULL, 10) : 1;
    printf("seeds %llu to %llu (CT_TEST_SEED)\n", (unsigned long long)base, (unsigned long long)base + 39);
    for (uint64_t seed = base; seed < base + 40; seed++) {
        const cti_rng_key key = cti_rng_key_make(seed, "data");
        ct_err err = {0};
        write_docs(key);
        const int streams = 1 << cti_rng_below(key, 2, 3), ranks = 1 << cti_rng_below(key, 3, (uint64_t)(streams == 1 ? 1 : streams == 2 ? 2 : 3));
        const int64_t seq = 1 + (int64_t)cti_rng_below(key, 4, 50), rows = streams * (1 + (int64_t)cti_rng_below(key, 5, 3));
        const int prefetch = (int)cti_rng_below(key, 6, 3), n_local = streams / ranks;
        ct_corpus *corpus = NULL;
        assert_int_equal(ct_corpus_open(alloc, path, NULL, &corpus, &err), CT_OK);
        room r = room_make(rows * seq);
        uint64_t whole[12], parts[12] = {0};
        ct_loader *one = open_loader(corpus, seq, rows, streams, 0, streams, prefetch);
        for (int64_t b = 0; b < 12; b++) {
            assert_int_equal(ct_loader_next(one, &r.batch, &err), CT_OK);
            check_batch(&r.batch, b, seq, rows, streams, 0, rows);
            whole[b] = r.batch.hash;
        }
        ct_loader_destroy(&one);
        for (int k = 0; k < ranks; k++) {
            ct_loader *l = open_loader(corpus, seq, rows, streams, k * n_local, n_local, prefetch);
            int64_t *at = CT_NEW_ARRAY(alloc, int64_t, n_local * ct_stream_state_width(1), &err);
            for (int64_t b = 0; b < 12; b++) {
                assert_int_equal(ct_loader_next(l, &r.batch, &err), CT_OK);
                check_batch(&r.batch, b, seq, rows, streams, k * rows / ranks, rows / ranks);
                parts[b] += r.batch.hash;
                /* stop here and go on in another loader */
                ct_loader_state(l, at);
                ct_loader_destroy(&l);
                l = open_loader(corpus, seq, rows, streams, k * n_local, n_local, (int)(b % 3));
                assert_int_equal(ct_loader_seek(l, at, &err), CT_OK);
            }
            ct_loader_destroy(&l);
            ct_alloc_free(alloc, at);
        }
        assert_memory_equal(whole, parts, sizeof whole);
        ct_alloc_free(alloc, r.data);
        ct_corpus_destroy(&corpus);
    }
}

int main(void)
{
    alloc = ct_alloc_system();
    snprintf(path, sizeof path, "/tmp/ctitan-data-%d.jsonl", (int)getpid());
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order_and_resume)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(path);
    return failed;
}
