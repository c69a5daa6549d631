/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: data base */
/* Files of tokens: ours, Megatron's and llm.c's; what is refused in them; rows equal to those of the text. */
#include <sys/resource.h>
#include <signal.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/pool.h"
#include "data/data_internal.h"
#include "unit/data_packed.h"

enum { VOCAB = 258 }; /* bytes, BOS, EOS */

static ct_status tokenize(const ct_corpus *corpus, const ct_tokenize_options *options, ct_tokenize_result *result, ct_err *err)
{
    static const encode_fn encode = encode_bytes;
    const ct_processor processor = processor_of(&encode);
    return ct_corpus_tokenize(ct_alloc_system(), corpus, &processor, options, result, err);
}

/* As a processor of text does with ids, and encode_bytes with text. */
static ct_status take_any(void *state, const ct_document *document, ct_sample *sample, ct_err *err)
{
    (void)state;
    if (document->kind == CT_DOCUMENT_TEXT) {
        return encode_bytes(NULL, cti_str_text(&document->text), document->text.len, &sample->ids, err);
    }
    for (int64_t i = 0; i < document->ids.n; i++) {
        CT_TRY(ct_tokens_push(&sample->ids, document->ids.ids[i], err));
    }
    return CT_OK;
}

static void assert_ids(const ct_corpus *corpus, int64_t number, const int32_t *ids, int64_t n)
{
    ct_reader *reader = NULL;
    ct_document document;
    ct_err err = {0};
    ct_document_init(&document, ct_alloc_system());
    assert_int_equal(ct_reader_create(ct_alloc_system(), corpus, &reader, NULL), CT_OK);
    if (ct_reader_read(reader, number, &document, NULL, NULL, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(document.kind, CT_DOCUMENT_IDS);
    assert_int_equal(document.ids.n, n);
    assert_memory_equal(document.ids.ids != NULL ? document.ids.ids : (int32_t *)(uintptr_t)ids, ids, (size_t)n * sizeof *ids);
    ct_document_deinit(&document);
    ct_reader_destroy(&reader);
}
#define IDS(corpus, number, ...) \
    assert_ids(corpus, number, (const int32_t[]){__VA_ARGS__}, (int64_t)(sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t)))

static void refused(const char *path, ct_status status, const char *says)
{
    ct_corpus *corpus = NULL;
    ct_err err = {0};
    const ct_status st = ct_corpus_open(ct_alloc_system(), path, NULL, &corpus, &err);
    if (st != status) {
        fail_msg("%s instead of %s: %s", ct_status_name(st), ct_status_name(status), err.message);
    }
    assert_says(&err, says);
    assert_says(&err, path);
}

/* Rows from two corpora are equal, to the hash, with bad documents, blank ones, streams and epochs. */
static void assert_same_order(const ct_corpus *a, const ct_corpus *b, bool shuffle)
{
    const ct_processor any = {.process = take_any, .ctx = ""};
    const ct_loader_options o = {.seq_len = 16, .rows = 4, .streams = 2, .n_local_streams = 2, .vocab_size = VOCAB, .bad_policy = CT_BAD_SKIP, .repeat = true, .shuffle = shuffle, .seed = 3};
    ct_loader *la = NULL, *lb = NULL;
    ct_batch x = batch_make(64), y = batch_make(64);
    assert_int_equal(ct_loader_create(ct_alloc_system(), &(ct_data_source){.corpus = a, .weight = 1.0}, 1, &any, &o, &la, NULL), CT_OK);
    assert_int_equal(ct_loader_create(ct_alloc_system(), &(ct_data_source){.corpus = b, .weight = 1.0}, 1, &any, &o, &lb, NULL), CT_OK);
    for (int i = 0; i < 200; i++) {
        must_next(la, &x);
        must_next(lb, &y);
        assert_batches_equal(&x, &y);
    }
    assert_true(x.epoch >= 2);
    ct_loader_destroy(&la);
    ct_loader_destroy(&lb);
    batch_free(&x);
    batch_free(&y);
}

static void assert_same_rows(const ct_corpus *a, const ct_corpus *b)
{
    assert_same_order(a, b, false);
    assert_same_order(a, b, true);
}

static void add_documents(cti_str *lines)
{
    for (int i = 0; i < 60; i++) {
        if (i % 17 == 4) {
            cti_str_add(lines, "{\"text\":\"\"}\n");
        } else {
            cti_str_printf(lines, i % 13 == 5 ? "{\"text\": %d}\n" : "{\"text\":\"document %d of the set\"}\n", i);
        }
    }
    assert_false(lines->failed);
}

static void rows_equal_those_of_text(void **state)
{
    data_folder *f = *state;
    cti_str lines = {.alloc = ct_alloc_system()};
    char one[1100], folder[1100];
    ct_tokenize_result r;
    ct_err err = {0};
    add_documents(&lines);
    ct_corpus *text = open_corpus(put_bytes(f, "a.jsonl", lines.data, lines.len));
    (void)snprintf(one, sizeof one, "%s/one.ctok", f->path);
    (void)snprintf(folder, sizeof folder, "%s/many", f->path);
    ct_tokenize_options o = {.output = one, .vocab_size = VOCAB, .tokenizer_hash = 7};
    assert_int_equal(tokenize(text, &o, &r, &err), CT_ERR_DATA);
    assert_says(&err, "a.jsonl' line 6");
    assert_false(cti_path_exists(one));
    o.bad_policy = CT_BAD_SKIP;
    assert_int_equal(tokenize(text, &o, &r, NULL), CT_OK);
    assert_int_equal(r.n_documents, 60);
    assert_int_equal(r.n_bad[CT_BAD_FIELD_TYPE], 5);
    assert_int_equal(r.n_bad_total, 5);
    assert_int_equal(r.n_files, 1);
    ct_corpus *tokens = open_corpus(one);
    assert_int_equal(ct_corpus_n_documents(tokens), 60);
    assert_int_equal(ct_corpus_file_at(tokens, 0).n_tokens, r.n_tokens);
    assert_same_rows(text, tokens);
    err = (ct_err){0};
    assert_int_equal(ct_corpus_check_tokens(tokens, 7, VOCAB, NULL), CT_OK);
    assert_int_equal(ct_corpus_check_tokens(tokens, 0, 0, NULL), CT_OK);
    assert_int_equal(ct_corpus_check_tokens(tokens, 8, VOCAB, &err), CT_ERR_DATA);
    assert_says(&err, "another tokenizer (0000000000000007) than the one of this run (0000000000000008)");
    err = (ct_err){0};
    assert_int_equal(ct_corpus_check_tokens(tokens, 7, VOCAB - 1, &err), CT_ERR_DATA);
    assert_says(&err, "a vocabulary of 258 tokens, the model has 257");
    ct_corpus_destroy(&tokens);
    /* in files, four bytes a token, with other numbers of threads: the same rows, the same bytes */
    o = (ct_tokenize_options){.output = folder, .vocab_size = 70000, .bad_policy = CT_BAD_SKIP, .shard_tokens = 300};
    char *bytes[2];
    size_t sizes[2];
    for (int threads = 1; threads <= 2; threads++) {
        char name[1200];
        cti_pool_set_threads(threads == 1 ? 1 : 4);
        assert_int_equal(tokenize(text, &o, &r, NULL), CT_OK);
        assert_true(r.n_files > 3);
        assert_int_equal(r.n_files_kept, 0);
        (void)snprintf(name, sizeof name, "%s/tokens-00001.ctok", folder);
        assert_int_equal(cti_file_read(ct_alloc_system(), name, 0, &bytes[threads - 1], &sizes[threads - 1], NULL), CT_OK);
        tokens = open_corpus(folder);
        assert_int_equal(ct_corpus_n_documents(tokens), 60);
        assert_same_rows(text, tokens);
        ct_corpus_destroy(&tokens);
        assert_int_equal(cti_remove_tree(folder, NULL), CT_OK);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(bytes[0], bytes[1], sizes[0]);
    ct_alloc_free(ct_alloc_system(), bytes[0]);
    ct_alloc_free(ct_alloc_system(), bytes[1]);
    ct_corpus_destroy(&text);
    cti_str_deinit(&lines);
}

/* A set that was interrupted goes on behind its whole files; another set is not mixed in. */
static void goes_on(void **state)
{
    data_folder *f = *state;
    cti_str lines = {.alloc = ct_alloc_system()};
    char folder[1000], name[1200], left[1300];
    ct_tokenize_result whole, r;
    ct_err err = {0};
    add_documents(&lines);
    ct_corpus *text = open_corpus(put_bytes(f, "a.jsonl", lines.data, lines.len));
    (void)snprintf(folder, sizeof folder, "%s/set", f->path);
    ct_tokenize_options o = {.output = folder, .vocab_size = VOCAB, .bad_policy = CT_BAD_SKIP, .shard_tokens = 300};
    assert_int_equal(tokenize(text, &o, &whole, NULL), CT_OK);
    (void)snprintf(name, sizeof name, "%s/tokens-%05lld.ctok", folder, (long long)whole.n_files - 1);
    assert_int_equal(unlink(name), 0);
    (void)snprintf(left, sizeof left, "%s.tmp.2147483600", name); /* of a process that was killed */
    assert_int_equal(cti_file_write_atomic(left, "half", 4, NULL), CT_OK);
    assert_int_equal(tokenize(text, &o, &r, NULL), CT_OK);
    assert_int_equal(r.n_files_kept, whole.n_files - 1);
    assert_int_equal(r.n_files, whole.n_files);
    assert_int_equal(r.n_tokens, whole.n_tokens);
    assert_false(cti_path_exists(left));
    ct_corpus *tokens = open_corpus(folder);
    assert_same_rows(text, tokens);
    ct_corpus_destroy(&tokens);
    assert_int_equal(truncate(name, 100), 0); /* no file of ours ends so, but a disk may */
    assert_int_equal(tokenize(text, &o, &r, &err), CT_ERR_USAGE);
    assert_says(&err, "is not of this set");
    o.shard_tokens = 200;
    assert_int_equal(tokenize(text, &o, &r, NULL), CT_ERR_USAGE);
    o.replace = true;
    assert_int_equal(tokenize(text, &o, &r, NULL), CT_OK);
    assert_int_equal(r.n_files_kept, 0);
    tokens = open_corpus(folder);
    assert_same_rows(text, tokens);
    ct_corpus_destroy(&tokens);
    ct_corpus_destroy(&text);
    cti_str_deinit(&lines);
}

/* A disk that fills up: an error that names the file, and nothing left behind. */
static void full_disk(void **state)
{
    data_folder *f = *state;
    cti_str lines = {.alloc = ct_alloc_system()};
    char one[1100];
    ct_tokenize_result r;
    ct_err err = {0};
    add_lines(&lines, 3 << 20, 1);
    ct_corpus *text = open_corpus(put_bytes(f, "a.jsonl", lines.data, lines.len));
    (void)snprintf(one, sizeof one, "%s/one.ctok", f->path);
    struct rlimit saved;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &saved), 0);
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 2 << 20, .rlim_max = saved.rlim_max}), 0);
    const ct_status st = tokenize(text, &(ct_tokenize_options){.output = one, .vocab_size = VOCAB}, &r, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &saved), 0);
    assert_int_equal(st, CT_ERR_IO);
    assert_says(&err, "one.ctok' cannot be written");
    cti_names names;
    assert_int_equal(cti_list_dir(ct_alloc_system(), f->path, &names, NULL), CT_OK);
    assert_int_equal(names.n, 1);
    cti_names_free(ct_alloc_system(), &names);
    ct_corpus_destroy(&text);
    cti_str_deinit(&lines);
}

/* Each fault of our format, its check sum made right again where it is not the fault. */
static void own_format_refused(void **state)
{
    data_folder *f = *state;
    char one[1100];
    ct_tokenize_result r;
    ct_corpus *text = open_corpus(put(f, "a.jsonl", "{\"text\":\"abc\"}\n{\"text\":\"de\"}\n"));
    (void)snprintf(one, sizeof one, "%s/one.ctok", f->path);
    assert_int_equal(tokenize(text, &(ct_tokenize_options){.output = one, .vocab_size = VOCAB}, &r, NULL), CT_OK);
    ct_corpus_destroy(&text);
    ct_err err = {0};
    text = open_corpus(put(f, "b.jsonl", "{\"text\":\"\xc3\xa9\"}"));
    assert_int_equal(tokenize(text, &(ct_tokenize_options){.output = one, .vocab_size = VOCAB}, &r, &err), CT_ERR_USAGE);
    assert_says(&err, "is there already");
    err = (ct_err){0};
    assert_int_equal(tokenize(text, &(ct_tokenize_options){.output = one, .vocab_size = 257, .replace = true}, &r, &err), CT_ERR_DATA);
    assert_says(&err, "b.jsonl' line 1 (the last, without a newline): token id 257; ids of [0, 257) are wanted");
    ct_corpus_destroy(&text);
    char *bytes;
    size_t size;
    assert_int_equal(cti_file_read(ct_alloc_system(), one, 0, &bytes, &size, NULL), CT_OK);
    ct_corpus *tokens = open_corpus(one); /* the failure above has left it */
    IDS(tokens, 0, BYTE_BOS, 'a', 'b', 'c', BYTE_EOS);
    IDS(tokens, 1, BYTE_BOS, 'd', 'e', BYTE_EOS);
    ct_corpus_destroy(&tokens);
#define FAULT(field, value, says)                                                       \
    do {                                                                                \
        cti_tokens_header h;                                                            \
        memcpy(&h, bytes, sizeof h);                                                    \
        h.field = (value);                                                              \
        h.header_sum = cti_tokens_header_sum(&h);                                       \
        cti_str copy = {.alloc = ct_alloc_system()};                                    \
        cti_str_add_n(&copy, &h, sizeof h);                                             \
        cti_str_add_n(&copy, bytes + sizeof h, size - sizeof h);                        \
        refused(put_bytes(f, "x.ctok", copy.data, copy.len), CT_ERR_FORMAT, says);      \
        cti_str_deinit(&copy);                                                          \
    } while (0)
    FAULT(magic[1], 'X', "is no .ctok file");
    FAULT(version, 2, "has version 2");
    FAULT(token_bytes, 3, "has 3 bytes a token");
    FAULT(vocab_size, 65537, "a vocabulary of 65537, which 2 bytes a token do not hold");
    FAULT(vocab_size, -1, "a vocabulary of -1");
    FAULT(n_tokens, 1000, "1000 tokens of 2 bytes and 2 documents do not make");
    FAULT(n_tokens, INT64_MAX, "do not make");
    FAULT(n_documents, INT64_MAX, "do not make");
    FAULT(n_documents, -1, "do not make");
    FAULT(file_bytes, 5, "do not make 5 bytes");
    FAULT(offsets_sum, 5, "the check sum of its offsets is wrong");
    bytes[20] ^= 1;
    refused(put_bytes(f, "x.ctok", bytes, size), CT_ERR_FORMAT, "the check sum of its header is wrong");
    bytes[20] ^= 1;
    bytes[size - 24] ^= 1; /* the first offset */
    refused(put_bytes(f, "x.ctok", bytes, size), CT_ERR_FORMAT, "the offset of document 0 is wrong");
    bytes[size - 24] ^= 1;
    bytes[size - 8] ^= 1; /* the end */
    refused(put_bytes(f, "x.ctok", bytes, size), CT_ERR_FORMAT, "the offset of document");
    bytes[size - 8] ^= 1;
    for (size_t cut = 0; cut < size; cut++) {
        refused(put_bytes(f, "x.ctok", bytes, cut), CT_ERR_FORMAT, cut < 128 ? "the header of a .ctok file has 128" : "is cut off");
    }
    bytes[130] ^= 1; /* a token: found by reading all of them */
    tokens = open_corpus(put_bytes(f, "x.ctok", bytes, size));
    err = (ct_err){0};
    assert_int_equal(ct_corpus_verify(tokens, &err), CT_ERR_FORMAT);
    assert_says(&err, "the check sum of its tokens is wrong");
    ct_corpus_destroy(&tokens);
    ct_alloc_free(ct_alloc_system(), bytes);
}

/* --- Megatron --- */

typedef struct megatron {
    uint64_t version;
    unsigned char code;
    uint64_t n_sequences, n_entries;
    int32_t lengths[8];
    int64_t pointers[8], entries[8];
    size_t cut; /* bytes left out at the end */
} megatron;

static const char *put_megatron(data_folder *f, const megatron *m, const void *bin, size_t bin_size)
{
    static char path[1100];
    cti_str idx = {.alloc = ct_alloc_system()};
    cti_str_add_n(&idx, "MMIDIDX\0", 9);
    cti_str_add_n(&idx, &m->version, 8);
    cti_str_add_n(&idx, &m->code, 1);
    cti_str_add_n(&idx, &m->n_sequences, 8);
    cti_str_add_n(&idx, &m->n_entries, 8);
    const size_t n = m->n_sequences < 8 ? m->n_sequences : 8, n_entries = m->n_entries < 8 ? m->n_entries : 8;
    cti_str_add_n(&idx, m->lengths, 4 * n);
    cti_str_add_n(&idx, m->pointers, 8 * n);
    cti_str_add_n(&idx, m->entries, 8 * n_entries);
    put_bytes(f, "m.idx", idx.data, idx.len - m->cut);
    (void)snprintf(path, sizeof path, "%s", put_bytes(f, "m.bin", bin, bin_size));
    cti_str_deinit(&idx);
    return path;
}

static void megatron_files(void **state)
{
    data_folder *f = *state;
    static const uint16_t bin[] = {5, 6, 7, 65535, 1, 2};
    const megatron good = {.version = 1, .code = 8, .n_sequences = 3, .n_entries = 4, .lengths = {2, 3, 1}, .pointers = {0, 4, 10}, .entries = {0, 2, 2, 3}};
    ct_corpus *corpus = open_corpus(put_megatron(f, &good, bin, sizeof bin));
    assert_int_equal(ct_corpus_file_at(corpus, 0).format, CT_FILE_MEGATRON);
    assert_int_equal(ct_corpus_n_documents(corpus), 3);
    assert_int_equal(ct_corpus_file_at(corpus, 0).n_tokens, 6);
    IDS(corpus, 0, 5, 6, 7, 65535, 1);
    assert_ids(corpus, 1, NULL, 0);
    IDS(corpus, 2, 2);
    ct_corpus_destroy(&corpus);
    char path[1100];
    for (int i = 0; i < 3; i++) { /* by the folder, the common beginning and the .idx */
        (void)snprintf(path, sizeof path, "%s%s", f->path, i == 0 ? "" : i == 1 ? "/m" : "/m.idx");
        corpus = open_corpus(path);
        assert_int_equal(ct_corpus_n_documents(corpus), 3);
        ct_corpus_destroy(&corpus);
    }
    static const struct {
        unsigned char code;
        size_t bytes;
        int64_t one;
        int32_t want;
    } types[] = {{1, 1, 200, 200}, {2, 1, 100, 100}, {3, 2, 30000, 30000}, {4, 4, 128000, 128000}, {5, 8, 128000, 128000}};
    for (size_t i = 0; i < N_OF(types); i++) {
        const megatron m = {.version = 1, .code = types[i].code, .n_sequences = 1, .n_entries = 2, .lengths = {1}, .entries = {0, 1}};
        corpus = open_corpus(put_megatron(f, &m, &types[i].one, types[i].bytes));
        assert_ids(corpus, 0, &types[i].want, 1);
        ct_corpus_destroy(&corpus);
    }
    const int64_t negative = -1;
    const megatron m = {.version = 1, .code = 4, .n_sequences = 1, .n_entries = 2, .lengths = {1}, .entries = {0, 1}};
    corpus = open_corpus(put_megatron(f, &m, &negative, 4));
    ct_reader *reader = NULL;
    ct_document document;
    ct_err err = {0};
    ct_bad bad;
    ct_document_init(&document, ct_alloc_system());
    assert_int_equal(ct_reader_create(ct_alloc_system(), corpus, &reader, NULL), CT_OK);
    assert_int_equal(ct_reader_read(reader, 0, &document, &bad, NULL, &err), CT_ERR_DATA);
    assert_int_equal(bad, CT_BAD_CONTENT);
    assert_says(&err, "m.bin' document 0: cannot be used: token 0 is no id");
    ct_document_deinit(&document);
    ct_reader_destroy(&reader);
    ct_corpus_destroy(&corpus);
}

static void megatron_refused(void **state)
{
    data_folder *f = *state;
    static const uint16_t bin[] = {5, 6, 7, 65535, 1, 2};
    const megatron good = {.version = 1, .code = 8, .n_sequences = 3, .n_entries = 4, .lengths = {2, 3, 1}, .pointers = {0, 4, 10}, .entries = {0, 2, 2, 3}};
#define WRONG(change, says)                                                             \
    do {                                                                                \
        megatron m = good;                                                              \
        change;                                                                         \
        ct_corpus *corpus = NULL;                                                       \
        ct_err err = {0};                                                               \
        const char *path = put_megatron(f, &m, bin, sizeof bin);                        \
        assert_int_equal(ct_corpus_open(ct_alloc_system(), path, NULL, &corpus, &err), CT_ERR_FORMAT); \
        assert_says(&err, says);                                                        \
        assert_says(&err, "m.idx");                                                     \
    } while (0)
    WRONG(m.version = 2, "has version 2; version 1 is read");
    WRONG(m.code = 6, "type code 6 (float64)");
    WRONG(m.code = 0, "type code 0; whole numbers");
    WRONG(m.code = 9, "type code 9;");
    WRONG(m.n_sequences = UINT64_MAX, "too few for 18446744073709551615 sequences");
    WRONG(m.n_entries = UINT64_MAX / 2, "too few for");
    WRONG(m.n_entries = 0, "(1 at least)");
    WRONG(m.cut = 1, "too few for");
    WRONG(m.cut = 100, "the header of Megatron's .idx has 34");
    WRONG(m.lengths[1] = -1, "sequence 1 is -1 tokens");
    WRONG(m.lengths[2] = 2, "sequence 2 is 2 tokens of 2 bytes at byte 10;");
    WRONG(m.pointers[0] = -2, "at byte -2;");
    WRONG(m.pointers[0] = INT64_MAX, "sequence 0");
    WRONG(m.entries[0] = 1, "entry 0 of the documents is sequence 1");
    WRONG(m.entries[2] = 1, "entry 2 of the documents is sequence 1");
    WRONG(m.entries[3] = 4, "entry 3 of the documents is sequence 4");
    WRONG(m.entries[3] = 2, "entry 3 of the documents is sequence 2; they rise from 0 to the 3 sequences");
    put(f, "m.idx", "something else that is long enough");
    char path[1100];
    (void)snprintf(path, sizeof path, "%s/m.bin", f->path);
    ct_corpus *corpus = NULL;
    ct_err err = {0};
    assert_int_equal(ct_corpus_open(ct_alloc_system(), path, NULL, &corpus, &err), CT_ERR_FORMAT);
    assert_says(&err, "does not begin with MMIDIDX");
    assert_int_equal(unlink(path), 0);
    (void)snprintf(path, sizeof path, "%s/m.idx", f->path);
    refused(path, CT_ERR_NOT_FOUND, "which does not lie beside it");
}

/* --- llm.c --- */

static const char *put_llmc(data_folder *f, int32_t magic, int32_t version, int32_t n, const void *tokens, size_t size)
{
    cti_str bytes = {.alloc = ct_alloc_system()};
    const int32_t head[256] = {magic, version, n};
    cti_str_add_n(&bytes, head, sizeof head);
    cti_str_add_n(&bytes, tokens, size);
    const char *path = put_bytes(f, "l.bin", bytes.data, bytes.len);
    cti_str_deinit(&bytes);
    return path;
}

static void llmc_files(void **state)
{
    data_folder *f = *state;
    static const uint16_t gpt2[] = {9, 8, 50256, 1, 2, 50256, 50256, 65000};
    static const uint32_t llama[] = {128000, 5, 128000, 6, 7};
    ct_corpus *corpus = open_corpus(put_llmc(f, 20240520, 1, 8, gpt2, sizeof gpt2));
    assert_int_equal(ct_corpus_file_at(corpus, 0).format, CT_FILE_LLMC);
    assert_int_equal(ct_corpus_n_documents(corpus), 4);
    IDS(corpus, 0, 9, 8);
    IDS(corpus, 1, 50256, 1, 2);
    IDS(corpus, 2, 50256);
    IDS(corpus, 3, 50256, 65000);
    ct_corpus_destroy(&corpus);
    corpus = NULL;
    assert_int_equal(ct_corpus_open(ct_alloc_system(), f->file, &(ct_corpus_options){.begin_id = 2}, &corpus, NULL), CT_OK);
    assert_int_equal(ct_corpus_n_documents(corpus), 2);
    IDS(corpus, 1, 2, 50256, 50256, 65000);
    ct_corpus_destroy(&corpus);
    corpus = open_corpus(put_llmc(f, 20240801, 7, 5, llama, sizeof llama));
    assert_int_equal(ct_corpus_n_documents(corpus), 2);
    IDS(corpus, 1, 128000, 6, 7);
    ct_corpus_destroy(&corpus);
    refused(put_llmc(f, 20240520, 2, 8, gpt2, sizeof gpt2), CT_ERR_FORMAT, "of version 2; version 1 is read");
    refused(put_llmc(f, 20240801, 1, 5, llama, sizeof llama), CT_ERR_FORMAT, "of version 1; version 7 is read");
    refused(put_llmc(f, 20240520, 1, 9, gpt2, sizeof gpt2), CT_ERR_FORMAT, "has 1040 bytes; its header tells of 9 tokens of 2 bytes, which are 1042");
    refused(put_llmc(f, 20240520, 1, -1, gpt2, sizeof gpt2), CT_ERR_FORMAT, "its header tells of -1 tokens");
    refused(put_llmc(f, 20240520, 1, 8, gpt2, sizeof gpt2 - 1), CT_ERR_FORMAT, "has 1039 bytes");
    refused(put_bytes(f, "l.bin", &(int32_t){20240520}, 4), CT_ERR_FORMAT, "has 4 bytes; the header of an llm.c file has 1024");
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(rows_equal_those_of_text), IN_FOLDER(goes_on),          IN_FOLDER(full_disk),  IN_FOLDER(own_format_refused),
        IN_FOLDER(megatron_files),           IN_FOLDER(megatron_refused), IN_FOLDER(llmc_files),
    };
    return cmocka_run_group_tests_name("data_tokens", tests, NULL, NULL);
}
