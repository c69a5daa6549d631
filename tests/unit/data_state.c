/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: data base */
/* labels: fast */
/* The saved state of the data: back as it was, older versions too; what the order hangs on may not change, what it does not may. */
#include "unit/data_test.h"

typedef struct setting {
    ct_corpus *a, *b, *other; /* other: another field's name, as another a */
    ct_data_source sources[3];
    ct_loader_options o;
} setting;

static const int64_t states[2][10] = {{0, 0, 1, 7, 3, 1, 100, 0, 2, 90}, {0, 0, 0, 0, 0, 1, 5, 2, 0, 6}};

static void setting_make(setting *s, data_folder *f)
{
    s->a = open_corpus(put(f, "a.jsonl", "{\"text\":\"one\"}\n{\"text\":\"two\"}\n{\"text\":\"three\"}\n{\"text\":\"four\"}\n"));
    s->b = open_corpus(put(f, "b.jsonl", "{\"text\":\"x\"}\n{\"text\":\"y\"}\n{\"text\":\"z\"}\n{\"text\":\"z\"}\n{\"text\":\"z\"}\n{\"text\":\"z\"}\n"));
    s->other = open_corpus(put(f, "a2.jsonl", "{\"text\":\"one\"}\n{\"text\":\"two\"}\n{\"text\":\"three\"}\n{\"text\":\"FOUR\"}\n"));
    s->sources[0] = (ct_data_source){s->a, 0.75};
    s->sources[1] = (ct_data_source){s->b, 0.25};
    s->sources[2] = (ct_data_source){s->other, 1.0};
    s->o = (ct_loader_options){.seq_len = 8, .rows = 2, .streams = 2, .n_local_streams = 2, .encode_hash = 5};
}

static void setting_free(setting *s)
{
    ct_corpus_destroy(&s->a);
    ct_corpus_destroy(&s->b);
    ct_corpus_destroy(&s->other);
}

static char *written(const setting *s, int32_t n_sources)
{
    char *text = NULL;
    ct_err err = {0};
    if (ct_data_state_write(ct_alloc_system(), s->sources, n_sources, &s->o, &states[0][0], 2, &text, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    return text;
}

static void reads(const char *text, const setting *s, int32_t n_sources, ct_status want, const char *says)
{
    int64_t *out = NULL, n = 0;
    ct_err err = {0};
    const ct_status st = ct_data_state_read(ct_alloc_system(), text, strlen(text), s->sources, n_sources, &s->o, &out, &n, &err);
    if (st != want) {
        fail_msg("status %d where %d is wanted: %s", (int)st, (int)want, err.message);
    }
    if (want == CT_OK) {
        assert_int_equal(n, 2);
        assert_memory_equal(out, states, sizeof states);
    } else {
        assert_says(&err, says);
    }
    ct_alloc_free(ct_alloc_system(), out);
}

static void back_as_it_was(void **state)
{
    setting s;
    setting_make(&s, *state);
    for (int i = 0; i < 4; i++) {
        s.o.shuffle = i % 2 == 1;
        s.o.packing = i / 2 == 1 ? CT_PACK_FIRST_FIT : CT_PACK_SPLIT;
        s.o.packing_bins = 8;
        s.o.seed = INT64_MAX;
        char *text = written(&s, 2);
        reads(text, &s, 2, CT_OK, "");
        for (size_t cut = 0; cut < strlen(text); cut++) { /* a cut text is never taken for a whole one */
            int64_t *out = NULL, n = 0;
            assert_int_not_equal(ct_data_state_read(ct_alloc_system(), text, cut, s.sources, 2, &s.o, &out, &n, NULL), CT_OK);
        }
        ct_alloc_free(ct_alloc_system(), text);
    }
    setting_free(&s);
}

/* Each change of what the order hangs on is named. */
static void changes_are_named(void **state)
{
    setting s, t;
    setting_make(&s, *state);
    s.o.shuffle = true;
    s.o.seed = 42;
    s.o.packing = CT_PACK_FIRST_FIT;
    s.o.packing_bins = 8;
    char *text = written(&s, 2);
    t = s;
    reads(text, &t, 1, CT_ERR_DATA, "there are 1 sources, there were 2");
    t.sources[1].weight = 0.5;
    reads(text, &t, 2, CT_ERR_DATA, "the weight of source 2 is 0.5, was 0.25");
    t = s;
    t.sources[0].corpus = s.b;
    reads(text, &t, 2, CT_ERR_DATA, "file 'b.jsonl' stands where 'a.jsonl' stood");
    t.sources[0].corpus = s.other;
    reads(text, &t, 2, CT_ERR_DATA, "source 1");
    t = s;
    t.o.encode_hash = 6;
    reads(text, &t, 2, CT_ERR_DATA, "the tokenizer is another one");
    t = s;
    t.o.shuffle = false;
    reads(text, &t, 2, CT_ERR_DATA, "shuffle is off, was on");
    t = s;
    t.o.seed = 43;
    reads(text, &t, 2, CT_ERR_DATA, "seed is 43, was 42");
    t = s;
    t.o.packing = CT_PACK_SPLIT;
    reads(text, &t, 2, CT_ERR_DATA, "packing is concat-then-split, was first-fit");
    t = s;
    t.o.packing_bins = 4;
    reads(text, &t, 2, CT_ERR_DATA, "num_packing_bins is 4, was 8");
    t = s;
    t.o.seq_len = 9;
    reads(text, &t, 2, CT_ERR_DATA, "seq_len is 9, was 8");
    ct_alloc_free(ct_alloc_system(), text);
    setting_free(&s);
}

/* What the order does not hang on may change. */
static void free_to_change(void **state)
{
    setting s, t;
    setting_make(&s, *state);
    char *text = written(&s, 2);
    t = s;
    t.o.seed = 43;
    t.o.packing_bins = 3;
    t.o.seq_len = 100;
    t.o.rows = 64;
    t.o.workers = 3;
    t.o.prefetch_batches = 7;
    t.o.vocab_size = 1000;
    t.o.encode_hash = 0; /* unknown */
    reads(text, &t, 2, CT_OK, "");
    ct_alloc_free(ct_alloc_system(), text);
    setting_free(&s);
}

/* Version 2: the tokenizer by a hash of another kind. */
static void version_2(void **state)
{
    setting s;
    setting_make(&s, *state);
    char *text = written(&s, 2), *version = strstr(text, "\"version\""), *hash = strstr(text, "\"tokenizer_hash\"");
    assert_non_null(version);
    assert_non_null(hash);
    *strchr(version, '3') = '2';
    s.o.encode_hash = 6;
    reads(text, &s, 2, CT_OK, "");
    memcpy(hash, "\"encode_hash\"   ", strlen("\"tokenizer_hash\""));
    reads(text, &s, 2, CT_OK, "");
    *strchr(version, '2') = '3';
    reads(text, &s, 2, CT_ERR_FORMAT, "tokenizer_hash");
    ct_alloc_free(ct_alloc_system(), text);
    setting_free(&s);
}

/* Version 1: one source in file order. */
static void version_1(void **state)
{
    setting s;
    ct_err err = {0};
    setting_make(&s, *state);
    const ct_corpus_file file = ct_corpus_file_at(s.a, 0);
    s.o.encode_hash = 0;
    char *v2 = NULL, v1[1024];
    int64_t one[7] = {0};
    assert_int_equal(ct_data_state_write(ct_alloc_system(), s.sources, 1, &s.o, one, 1, &v2, &err), CT_OK);
    const char *hash = strstr(v2, "\"hash\"");
    (void)snprintf(v1, sizeof v1,
                   "{\"version\": 1, \"streams\": [[3, 1, 7], [0, 2, 0]], \"text_field\": \"text\", \"documents\": 4, \"files\": {\"count\": 1, "
                   "%.26s, \"first\": [{\"name\": \"a.jsonl\", \"size_bytes\": %lld, \"fingerprint\": \"%016llx\"}]}, \"encode_hash\": "
                   "\"0000000000000005\"}",
                   hash, (long long)file.size_bytes, (unsigned long long)file.fingerprint);
    int64_t *out = NULL, n = 0;
    if (ct_data_state_read(ct_alloc_system(), v1, strlen(v1), s.sources, 1, &s.o, &out, &n, &err) != CT_OK) {
        fail_msg("%s in %s", err.message, v1);
    }
    static const int64_t want[2][7] = {{0, 0, 0, 7, 3, 1, 0}, {0, 0, 0, 0, 0, 2, 0}};
    assert_int_equal(n, 2);
    assert_memory_equal(out, want, sizeof want);
    ct_alloc_free(ct_alloc_system(), out);
    reads(v1, &s, 2, CT_ERR_DATA, "there are 2 sources, there was 1");
    s.o.shuffle = true;
    reads(v1, &s, 1, CT_ERR_DATA, "shuffle is on, was off");
    s.o.shuffle = false;
    s.o.packing = CT_PACK_FIRST_FIT;
    reads(v1, &s, 1, CT_ERR_DATA, "packing is first-fit");
    v1[strlen("{\"version\": ")] = '4';
    reads(v1, &s, 1, CT_ERR_FORMAT, "version 4, this program reads 1 to 3");
    ct_alloc_free(ct_alloc_system(), v2);
    setting_free(&s);
}

/* Numbers that no stream can stand at are refused by ct_loader_seek, and the loader stays where it was. */
static void impossible_places(void **state)
{
    setting s;
    setting_make(&s, *state);
    static const struct {
        int64_t at[10];
        ct_packing packing;
        const char *says;
    } rows[] = {
        {{1, 0, 0, 0}, CT_PACK_SPLIT, "rows"},
        {{0, 1, 0, 0}, CT_PACK_SPLIT, "rows"},
        {{0, 8, 0, 0}, CT_PACK_FIRST_FIT, "8 of a set"},
        {{-1, 0, 0, 0}, CT_PACK_FIRST_FIT, "rows"},
        {{0, 0, 2, 0}, CT_PACK_SPLIT, "source 2"},
        {{0, 0, 0, -1}, CT_PACK_SPLIT, "token -1"},
        {{0, 0, 0, 1}, CT_PACK_FIRST_FIT, "token 1"},
        {{0, 0, 0, 0, -1}, CT_PACK_SPLIT, "epoch -1"},
        {{0, 0, 0, 0, 0, 4}, CT_PACK_SPLIT, "document 4"},
        {{0, 0, 0, 0, 0, 0, 0, 0, 6}, CT_PACK_SPLIT, "slice of 6 documents"},
        {{0, 0, 0, 0, 0, 0, -3}, CT_PACK_SPLIT, "-3 tokens"},
        {{0, 0, 0, 0, INT64_MAX, 0, 0}, CT_PACK_SPLIT, "epoch"},
    };
    for (size_t i = 0; i < N_OF(rows); i++) {
        const ct_loader_options o = {.seq_len = 4, .rows = 1, .streams = 1, .n_local_streams = 1, .repeat = true, .packing = rows[i].packing, .packing_bins = 8};
        const encode_fn encode = encode_bytes;
        const ct_processor processor = processor_of(&encode);
        ct_loader *loader = NULL;
        ct_err err = {0};
        assert_int_equal(ct_loader_create(ct_alloc_system(), s.sources, 2, &processor, &o, &loader, NULL), CT_OK);
        assert_int_equal(ct_loader_seek(loader, rows[i].at, &err), CT_ERR_RANGE);
        assert_says(&err, rows[i].says);
        ct_batch b = batch_make(4);
        must_next(loader, &b);
        assert_int_equal(b.tokens[0], BYTE_BOS);
        batch_free(&b);
        ct_loader_destroy(&loader);
    }
    setting_free(&s);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(back_as_it_was), IN_FOLDER(changes_are_named), IN_FOLDER(free_to_change),
        IN_FOLDER(version_1),      IN_FOLDER(version_2),      IN_FOLDER(impossible_places),
    };
    return cmocka_run_group_tests_name("data_state", tests, NULL, NULL);
}
