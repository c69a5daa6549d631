/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of data: files of one's own, an encode function that needs no vocabulary, batches. */
#ifndef CT_TESTS_DATA_TEST_H
#define CT_TESTS_DATA_TEST_H

#include "data/data.h"
#include "base_test.h"

enum { BYTE_BOS = 256, BYTE_EOS = 257 };

/* BOS, the bytes, EOS. ctx: NULL. */
static inline ct_status encode_bytes(void *ctx, const char *text, size_t size, ct_tokens *ids, ct_err *err)
{
    (void)ctx;
    CT_TRY(ct_tokens_push(ids, BYTE_BOS, err));
    for (size_t i = 0; i < size; i++) {
        CT_TRY(ct_tokens_push(ids, (unsigned char)text[i], err));
    }
    return ct_tokens_push(ids, BYTE_EOS, err);
}

typedef ct_status (*encode_fn)(void *ctx, const char *text, size_t size, ct_tokens *ids, ct_err *err);

static inline ct_status process_encoded(void *state, const ct_document *document, ct_sample *sample, ct_err *err)
{
    encode_fn encode;
    memcpy(&encode, state, sizeof encode);
    return encode(NULL, cti_str_text(&document->text), document->text.len, &sample->ids, err);
}

/* The processor of an encode function; encode lives as long as it. */
static inline ct_processor processor_of(const encode_fn *encode)
{
    return (ct_processor){.ctx = encode, .process = process_encoded};
}

static inline ct_status create_loader(const ct_alloc *a, const ct_corpus *corpus, encode_fn encode, const ct_loader_options *o,
                                      ct_loader **out_loader, ct_err *err)
{
    enum { N_FUNCTIONS = 16 };
    static encode_fn functions[N_FUNCTIONS]; /* as long as their loaders */
    static int n;
    functions[n] = encode;
    const ct_processor processor = processor_of(&functions[n]);
    n = (n + 1) % N_FUNCTIONS;
    const ct_data_source source = {.corpus = corpus, .weight = 1.0};
    return ct_loader_create(a, &source, 1, &processor, o, out_loader, err);
}

/* A folder with one way to put files into it; paths live in one buffer each call. */
typedef struct data_folder {
    char path[512];
    char file[1024]; /* of the last call of put() */
} data_folder;

static inline const char *put_bytes(data_folder *f, const char *name, const void *bytes, size_t size)
{
    ct_err err = {0};
    (void)snprintf(f->file, sizeof f->file, "%s/%s", f->path, name);
    if (cti_file_write_atomic(f->file, bytes, size, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    return f->file;
}

static inline const char *put(data_folder *f, const char *name, const char *text)
{
    return put_bytes(f, name, text, strlen(text));
}

static inline int folder_setup(void **state)
{
    data_folder *f = test_calloc(1, sizeof *f);
    test_folder_make(f->path, sizeof f->path);
    *state = f;
    return 0;
}

static inline int folder_teardown(void **state)
{
    data_folder *f = *state;
    test_folder_remove(f->path);
    test_free(f);
    return 0;
}

static inline ct_corpus *open_corpus(const char *path)
{
    ct_corpus *corpus = NULL;
    ct_err err = {0};
    if (ct_corpus_open(ct_alloc_system(), path, NULL, &corpus, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    return corpus;
}

/* The text of one document, by a reader of its own. */
static inline ct_status read_text(const ct_corpus *corpus, int64_t number, cti_str *text, ct_bad *out_bad, ct_err *err)
{
    ct_reader *reader = NULL;
    ct_document document;
    ct_document_init(&document, ct_alloc_system());
    assert_int_equal(ct_reader_create(ct_alloc_system(), corpus, &reader, NULL), CT_OK);
    const ct_status st = ct_reader_read(reader, number, &document, out_bad, NULL, err);
    cti_str_reset(text);
    cti_str_add_n(text, cti_str_text(&document.text), document.text.len);
    ct_document_deinit(&document);
    ct_reader_destroy(&reader);
    return st;
}

/* A batch of n_tokens with its arrays. */
static inline ct_batch batch_make(int64_t n_tokens)
{
    ct_batch b = {.segments_cap = n_tokens};
    b.tokens = test_calloc((size_t)n_tokens, sizeof(int32_t));
    b.labels = test_calloc((size_t)n_tokens, sizeof(int32_t));
    b.positions = test_calloc((size_t)n_tokens, sizeof(int32_t));
    b.segments = test_calloc((size_t)n_tokens * 4, sizeof(int32_t));
    return b;
}

static inline void batch_free(ct_batch *b)
{
    test_free(b->tokens);
    test_free(b->labels);
    test_free(b->positions);
    test_free(b->segments);
}

static inline void assert_batches_equal(const ct_batch *a, const ct_batch *b)
{
    assert_int_equal(a->segments_cap, b->segments_cap);
    const size_t n = (size_t)a->segments_cap * sizeof(int32_t);
    assert_memory_equal(a->tokens, b->tokens, n);
    assert_memory_equal(a->labels, b->labels, n);
    assert_memory_equal(a->positions, b->positions, n);
    assert_memory_equal(a->segments, b->segments, 4 * n);
    assert_int_equal(a->n_segments, b->n_segments);
    assert_int_equal(a->n_valid, b->n_valid);
    assert_int_equal(a->epoch, b->epoch);
    assert_true(a->hash == b->hash);
}

static inline ct_loader *make_loader(const ct_corpus *corpus, const ct_loader_options *options)
{
    ct_loader *loader = NULL;
    ct_err err = {0};
    if (create_loader(ct_alloc_system(), corpus, encode_bytes, options, &loader, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
    return loader;
}

static inline void must_next(ct_loader *loader, ct_batch *batch)
{
    ct_err err = {0};
    if (ct_loader_next(loader, batch, &err) != CT_OK) {
        fail_msg("%s", err.message);
    }
}

#define assert_says(err, part)                                                                                         \
    do {                                                                                                               \
        if (strstr((err)->message, (part)) == NULL) {                                                                  \
            fail_msg("'%s' does not say '%s'", (err)->message, (part));                                                \
        }                                                                                                              \
    } while (0)

#endif
