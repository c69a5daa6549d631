/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: data base */
/* labels: fast */
/* The loader against a naive reading of docs/data-order.md, over random documents (short, long, bad ones too), sources, weights,
 * shuffles, packings, streams, ranks, workers and batches ahead; each rank stops after every batch and goes on in another loader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "data/stream.h"

enum { MAX_SOURCES = 3, MAX_DOCS = 24, MAX_SEQ = 24, MAX_ROWS = 256, N_BATCHES = 8, SHORT = -1, BAD = -2 };

static const ct_alloc *alloc;
static char folder[128];

typedef struct world {
    int n_sources, n_docs[MAX_SOURCES], len[MAX_SOURCES][MAX_DOCS];
    double weight[MAX_SOURCES];
    ct_corpus *corpus[MAX_SOURCES];
    ct_data_source sources[MAX_SOURCES];
    ct_loader_options o; /* of one rank that holds all streams */
} world;

/* One stream's rows, as the rules say. */
typedef struct row {
    int n;
    int32_t token[MAX_SEQ], label[MAX_SEQ], position[MAX_SEQ];
} row;
typedef struct rows {
    int n; /* at most MAX_ROWS; fewer where the data ends */
    row row[MAX_ROWS];
} rows;

/* ---- documents: "SOURCE NUMBER LENGTH" -> 1, LENGTH ids of its own, 2; the first half of every third one is no label ---- */

static int make_ids(int source, int doc, int len, int32_t *ids, int32_t *labels)
{
    int n = 0;
    ids[n++] = 1;
    for (int i = 0; i < len; i++) {
        ids[n++] = (source * 100 + doc) * 1000 + i + 10;
    }
    if (len >= 0) {
        ids[n++] = 2;
    }
    for (int i = 0; i < n; i++) {
        labels[i] = doc % 3 == 0 && i <= n / 2 ? CT_LABEL_IGNORE : ids[i];
    }
    return n;
}

static ct_status process(void *state, const ct_document *document, ct_sample *sample, ct_err *err)
{
    (void)state;
    int source, doc, len;
    int32_t ids[128], labels[128];
    if (sscanf(document->text.data, "%d %d %d", &source, &doc, &len) != 3 || len == BAD) {
        return CT_FAIL(err, CT_ERR_DATA, "a bad one");
    }
    const int n = make_ids(source, doc, len, ids, labels);
    for (int i = 0; i < n; i++) {
        CT_TRY(ct_tokens_push(&sample->ids, ids[i], err));
    }
    for (int i = 0; i < n && doc % 3 == 0; i++) {
        CT_TRY(ct_tokens_push(&sample->labels, labels[i], err));
    }
    return CT_OK;
}

static int below(cti_rng_key key, uint64_t *at, int n)
{
    return (int)cti_rng_below(key, (*at)++, (uint64_t)n);
}

static void make_world(world *w, uint64_t seed)
{
    const cti_rng_key key = cti_rng_key_make(seed, "data mix");
    uint64_t at = 0;
    ct_err err = {0};
    *w = (world){.n_sources = 1 + below(key, &at, MAX_SOURCES)};
    const int streams = 1 << below(key, &at, 3);
    w->o = (ct_loader_options){.seq_len = 6 + below(key, &at, MAX_SEQ - 5),
                               .rows = streams * (1 + below(key, &at, 2)),
                               .streams = streams,
                               .n_local_streams = streams,
                               .bad_policy = CT_BAD_SKIP,
                               .repeat = below(key, &at, 4) > 0,
                               .shuffle = below(key, &at, 2) > 0,
                               .seed = below(key, &at, 1000),
                               .packing = below(key, &at, 2) > 0 ? CT_PACK_FIRST_FIT : CT_PACK_SPLIT,
                               .packing_bins = 1 + below(key, &at, 4)};
    for (int s = 0; s < w->n_sources; s++) {
        cti_str text = {.alloc = alloc};
        char path[160];
        w->n_docs[s] = 8 + below(key, &at, MAX_DOCS - 7);
        w->weight[s] = 0.25 * (1 + below(key, &at, 8));
        for (int d = 0; d < w->n_docs[s]; d++) {
            const int kind = d % 2 == 0 ? 0 : below(key, &at, 8); /* each slice has usable ones */
            w->len[s][d] = kind == 1 ? SHORT : kind == 2 ? BAD : d % 2 == 0 ? below(key, &at, 6) : below(key, &at, 40);
            cti_str_printf(&text, "{\"text\": \"%d %d %d\"}\n", s, d, w->len[s][d]);
        }
        (void)snprintf(path, sizeof path, "%s/%d.jsonl", folder, s);
        assert_int_equal(cti_file_write_atomic(path, text.data, text.len, &err), CT_OK);
        cti_str_deinit(&text);
        if (ct_corpus_open(alloc, path, &(ct_corpus_options){.cache_dir = ""}, &w->corpus[s], &err) != CT_OK) {
            fail_msg("%s", err.message);
        }
        w->sources[s] = (ct_data_source){w->corpus[s], w->weight[s]};
    }
}

static void free_world(world *w)
{
    for (int s = 0; s < w->n_sources; s++) {
        ct_corpus_destroy(&w->corpus[s]);
    }
}

/* ---- the rules ---------------------------------------------------------------------------------------------------- */

typedef struct naive {
    const world *w;
    int64_t begin[MAX_SOURCES], n[MAX_SOURCES], at[MAX_SOURCES], given[MAX_SOURCES];
} naive;

/* The next document of the stream that gives tokens, in mixed order; its number of inputs, 0 at the end. */
static int next_document(naive *v, int32_t *ids, int32_t *labels)
{
    const world *w = v->w;
    for (;;) {
        int best = 0;
        int64_t parts[MAX_SOURCES], sum = 0, most = 0, tokens = 0; /* few tokens: products fit */
        cti_mix_parts(w->sources, w->n_sources, parts);
        for (int s = 0; s < w->n_sources; s++) {
            sum += parts[s];
            tokens += v->given[s];
        }
        for (int s = 0; s < w->n_sources; s++) {
            const int64_t behind = parts[s] * tokens - v->given[s] * sum;
            if (s == 0 || behind > most) {
                best = s;
                most = behind;
            }
        }
        const int64_t epoch = v->at[best] / v->n[best];
        if (!w->o.repeat && epoch > 0) {
            return 0;
        }
        int64_t doc = v->begin[best] + v->at[best]++ % v->n[best];
        if (w->o.shuffle) {
            const cti_permutation p = cti_permutation_make(w->n_docs[best], (uint32_t)(w->o.seed + best + epoch));
            doc = cti_permutation_at(&p, doc);
        }
        const int len = w->len[best][doc];
        const int n = len < 0 ? 0 : make_ids(best, (int)doc, len, ids, labels) - 1;
        if (n > 0 && (w->o.packing == CT_PACK_SPLIT || n <= w->o.seq_len)) {
            v->given[best] += n; /* whole documents are counted when they are chosen; the next choice is made after their last token */
            return n;
        }
    }
}

static void put(row *r, const int32_t *ids, const int32_t *labels, int from, int n)
{
    for (int i = 0; i < n; i++, r->n++) {
        r->token[r->n] = ids[from + i];
        r->label[r->n] = labels[from + i + 1];
        r->position[r->n] = i;
    }
}

static void split_rows(naive *v, rows *out)
{
    int32_t ids[128], labels[128];
    const int seq = (int)v->w->o.seq_len;
    row r = {0};
    int n;
    while (out->n < MAX_ROWS && (n = next_document(v, ids, labels)) > 0) {
        for (int from = 0; from < n && out->n < MAX_ROWS;) {
            const int k = n - from < seq - r.n ? n - from : seq - r.n;
            put(&r, ids, labels, from, k);
            from += k;
            if (r.n == seq) {
                out->row[out->n++] = r;
                r = (row){0};
            }
        }
    }
    if (r.n > 0 && out->n < MAX_ROWS) {
        out->row[out->n++] = r;
    }
}

static void whole_rows(naive *v, rows *out)
{
    int32_t ids[128], labels[128];
    const int seq = (int)v->w->o.seq_len, bins = v->w->o.packing_bins;
    int n = next_document(v, ids, labels);
    while (n > 0 && out->n < MAX_ROWS) {
        static row set[8];
        int32_t order[8];
        int used = 0;
        memset(set, 0, sizeof set);
        while (n > 0) {
            int b = 0;
            while (b < bins && seq - set[b].n < n) {
                b++;
            }
            if (b == bins) {
                break;
            }
            put(&set[b], ids, labels, 0, n);
            used = b + 1 > used ? b + 1 : used;
            n = next_document(v, ids, labels);
        }
        cti_row_order((uint64_t)v->w->o.seed + (uint64_t)out->n, used, order);
        for (int b = 0, before = out->n; b < used && before + b < MAX_ROWS; b++) {
            out->row[out->n++] = set[v->w->o.shuffle ? order[b] : b];
        }
    }
}

static void stream_rows(const world *w, int stream, rows *out)
{
    naive v = {.w = w};
    out->n = 0;
    for (int s = 0; s < w->n_sources; s++) {
        int64_t end;
        ct_slice(w->n_docs[s], w->o.streams, stream, &v.begin[s], &end);
        v.n[s] = end - v.begin[s];
    }
    if (w->o.packing == CT_PACK_SPLIT) {
        split_rows(&v, out);
    } else {
        whole_rows(&v, out);
    }
}

/* ---- the loader --------------------------------------------------------------------------------------------------- */

static ct_loader *open_loader(const world *w, const ct_loader_options *o)
{
    const ct_processor processor = {.process = process};
    ct_loader *l = NULL;
    ct_err err = {0};
    if (ct_loader_create(alloc, w->sources, w->n_sources, &processor, o, &l, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    return l;
}

static ct_batch make_batch(int64_t tokens, int32_t *data)
{
    return (ct_batch){.tokens = data, .labels = data + tokens, .positions = data + 2 * tokens, .segments = data + 3 * tokens, .segments_cap = tokens};
}

/* Row r of the batch against `want` (NULL: padding alone); the pieces of the row are counted on. */
static void check_row(const ct_batch *b, int64_t seq, int64_t r, const row *want, int64_t *n_pieces)
{
    for (int64_t i = 0; i < seq; i++) {
        const int64_t at = r * seq + i;
        const bool is_real = want != NULL && i < want->n;
        assert_int_equal(b->tokens[at], is_real ? want->token[i] : 0);
        assert_int_equal(b->labels[at], is_real ? want->label[i] : CT_LABEL_IGNORE);
        assert_int_equal(b->positions[at], is_real ? want->position[i] : 0);
        if (b->positions[at] == 0) {
            assert_int_equal(b->segments[4 * (*n_pieces)++], at);
        }
    }
}

/* Batch number `batch` of local streams [first, first + n); false where none of them has a row left. */
static bool check_batch(const world *w, const rows *all, const ct_batch *b, int batch, int first, int n)
{
    const int per = (int)(w->o.rows / w->o.streams);
    int64_t n_pieces = 0;
    for (int r = 0; r < n * per; r++) {
        const rows *stream = &all[first + r / per];
        const int k = batch * per + r % per;
        check_row(b, w->o.seq_len, r, k < stream->n ? &stream->row[k] : NULL, &n_pieces);
    }
    assert_int_equal(b->n_segments, n_pieces);
    return true;
}

static bool has_rows(const world *w, const rows *all, int batch, int first, int n)
{
    const int per = (int)(w->o.rows / w->o.streams);
    for (int s = first; s < first + n; s++) {
        if (batch * per < all[s].n) {
            return true;
        }
    }
    return false;
}

/* All batches of some streams, by one loader or by another one for each batch; hashes are added. */
static void run(const world *w, const rows *all, int first, int n, bool is_resumed, uint64_t seed, uint64_t *hashes)
{
    static int32_t data[7 * MAX_SEQ * 8];
    const cti_rng_key key = cti_rng_key_make(seed, "threads");
    uint64_t at = 0;
    ct_loader_options o = w->o;
    o.first_stream = first;
    o.n_local_streams = n;
    o.prefetch_batches = below(key, &at, 3);
    o.workers = below(key, &at, 4);
    ct_loader *l = open_loader(w, &o);
    const int64_t width = ct_stream_state_width(w->n_sources);
    int64_t *states = CT_NEW_ARRAY(alloc, int64_t, n * width, NULL);
    ct_batch b = make_batch(ct_loader_local_rows(l) * o.seq_len, data);
    ct_err err = {0};
    for (int batch = 0; batch < N_BATCHES; batch++) {
        const ct_status st = ct_loader_next(l, &b, &err);
        if (!has_rows(w, all, batch, first, n)) {
            assert_int_equal(st, CT_END_OF_DATA);
            break;
        }
        if (st != CT_OK) {
            fail_msg("seed %llu, batch %d: %s", (unsigned long long)seed, batch, st == CT_END_OF_DATA ? "the end" : err.message);
        }
        (void)check_batch(w, all, &b, batch, first, n);
        hashes[batch] += b.hash;
        if (is_resumed) {
            ct_loader_state(l, states);
            ct_loader_destroy(&l);
            o.prefetch_batches = below(key, &at, 3);
            o.workers = below(key, &at, 4);
            l = open_loader(w, &o);
            if (ct_loader_seek(l, states, &err) != CT_OK) {
                fail_msg("seed %llu, batch %d: %s", (unsigned long long)seed, batch, err.message);
            }
            int64_t again[3 * MAX_SOURCES + 4 * 4 * 4];
            ct_loader_state(l, again);
            assert_memory_equal(again, states, (size_t)(n * width) * sizeof(int64_t));
        }
    }
    ct_loader_destroy(&l);
    ct_alloc_free(alloc, states);
}

static void test_rules_and_resume(void **state)
{
    (void)state;
    static rows all[4];
    static world w;
    const char *given = getenv("CT_TEST_SEED"), *number = getenv("CT_TEST_RUNS");
    const uint64_t base = given != NULL ? strtoull(given, NULL, 10) : 1, n = number != NULL ? strtoull(number, NULL, 10) : 12;
    printf("seeds %llu to %llu (CT_TEST_SEED, CT_TEST_RUNS)\n", (unsigned long long)base, (unsigned long long)(base + n - 1));
    for (uint64_t seed = base; seed < base + n; seed++) {
        make_world(&w, seed);
        for (int s = 0; s < w.o.streams; s++) {
            stream_rows(&w, s, &all[s]);
        }
        uint64_t whole[N_BATCHES] = {0};
        run(&w, all, 0, (int)w.o.streams, false, seed, whole);
        for (int ranks = 1; ranks <= w.o.streams; ranks *= 2) {
            uint64_t parts[N_BATCHES] = {0};
            const int per = (int)w.o.streams / ranks;
            bool is_even = true; /* no rank ends before another */
            for (int k = 0; k < ranks; k++) {
                run(&w, all, k * per, per, true, seed * 31 + (uint64_t)(ranks * 7 + k), parts);
                is_even = is_even && has_rows(&w, all, N_BATCHES - 1, k * per, per);
            }
            if (is_even) {
                assert_memory_equal(whole, parts, sizeof whole);
            }
        }
        free_world(&w);
    }
}

int main(void)
{
    alloc = ct_alloc_system();
    (void)snprintf(folder, sizeof folder, "/tmp/ctitan-mix-%d", (int)getpid());
    if (cti_make_dirs(folder, NULL) != CT_OK) {
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules_and_resume)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return cti_remove_tree(folder, NULL) == CT_OK ? failed : 1;
}
