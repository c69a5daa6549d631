/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding and decoding of documents, for bench/text, which asks by lines and is answered by lines of JSON:
 *
 *     bench_tokenizer FOLDER DOCUMENTS      DOCUMENTS: each document's size as four bytes, the lowest first, then its text
 *     encode N    decode N                  with N threads: seconds, CPU seconds, ids, their CRC-32, peak resident memory
 *     train SIZE                            a vocabulary of SIZE from the documents (FOLDER is then not opened: give -)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "tokenizer/tokenizer.h"

typedef struct bench_text {
    const ct_alloc *alloc;
    ct_tokenizer *tok;
    ct_batch_encoder *batch; /* of n_threads */
    int n_threads;
    char *data;
    size_t size;
    ct_text *texts;
    int64_t n_texts, *ends;
    ct_tokens tokens;
    cti_str back;
} bench_text;

static void must(ct_status st, const ct_err *err)
{
    if (st != CT_OK) {
        (void)fprintf(stderr, "bench_tokenizer: %s\n", err->message);
        exit(1);
    }
}

static uint32_t crc32_of(const void *data, size_t size)
{
    static uint32_t table[256];
    for (uint32_t i = 0; i < 256 && table[255] == 0; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) {
            c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
        }
        table[i] = c;
    }
    uint32_t crc = ~0u;
    for (size_t i = 0; i < size; i++) {
        crc = table[(crc ^ ((const unsigned char *)data)[i]) & 0xff] ^ crc >> 8;
    }
    return ~crc;
}

static void read_documents(bench_text *b, const char *path)
{
    ct_err err = {0};
    must(cti_file_read(b->alloc, path, 0, &b->data, &b->size, &err), &err);
    size_t bytes = 0;
    for (int pass = 0; pass < 2; pass++) {
        b->n_texts = 0;
        for (size_t at = 0; at + 4 <= b->size;) {
            const unsigned char *p = (const unsigned char *)b->data + at;
            const size_t size = p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
            if (pass == 1) {
                b->texts[b->n_texts] = (ct_text){(const char *)p + 4, size};
                bytes += size;
            }
            b->n_texts++;
            at += 4 + size;
        }
        if (pass == 0) {
            b->texts = ct_alloc_zeroed(b->alloc, (size_t)b->n_texts, sizeof *b->texts, &err);
            b->ends = ct_alloc_zeroed(b->alloc, (size_t)b->n_texts, sizeof *b->ends, &err);
        }
    }
    printf("{\"bytes\": %zu, \"documents\": %lld}\n", bytes, (long long)b->n_texts);
}

static void encode(bench_text *b, int n_threads)
{
    ct_err err = {0};
    if (b->n_threads != n_threads) {
        ct_batch_encoder_destroy(&b->batch);
        cti_pool_set_threads(n_threads);
        must(ct_batch_encoder_create(b->alloc, b->tok, n_threads, &b->batch, &err), &err);
        b->n_threads = n_threads;
    }
    b->tokens.n = 0;
    must(ct_batch_encoder_encode(b->batch, b->texts, b->n_texts, 0, &b->tokens, b->ends, &err), &err);
}

/* Documents [first, end) into a text of the thread's own. */
static void decode_some(void *ctx, int64_t first, int64_t end, int thread)
{
    bench_text *b = ctx;
    ct_err err = {0};
    (void)thread;
    cti_str back = {.alloc = b->alloc};
    for (int64_t i = first; i < end; i++) {
        const int64_t from = i > 0 ? b->ends[i - 1] : 0;
        cti_str_reset(&back);
        must(ct_tokenizer_decode(b->tok, b->tokens.ids + from, b->ends[i] - from, 0, &back, &err), &err);
    }
    cti_str_deinit(&back);
}

static void train(const bench_text *b, int32_t vocab_size)
{
    ct_err err = {0};
    ct_tokenizer_trainer *trainer = NULL;
    must(ct_tokenizer_trainer_create(b->alloc, &(ct_tokenizer_train_config){.vocab_size = vocab_size}, &trainer, &err), &err);
    for (int64_t i = 0; i < b->n_texts; i++) {
        must(ct_tokenizer_trainer_add(trainer, b->texts[i].data, b->texts[i].size, &err), &err);
    }
    must(ct_tokenizer_trainer_train(trainer, &err), &err);
    ct_tokenizer_trainer_destroy(&trainer);
}

/* Not ru_maxrss, which a process takes over from its parent. */
static double peak_mib(void)
{
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    double kib = 0.0;
    while (f != NULL && kib == 0.0 && fgets(line, sizeof line, f) != NULL) {
        (void)sscanf(line, "VmHWM: %lf", &kib);
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return kib / 1024.0;
}

static void answer(bench_text *b, const char *what, int n)
{
    const int64_t start = cti_now_ns();
    const clock_t cpu = clock();
    if (strcmp(what, "encode") == 0) {
        encode(b, n);
    } else if (strcmp(what, "decode") == 0) {
        cti_pool_set_threads(n);
        cti_pool_run(b->n_texts, b->n_texts / (8 * n) + 1, decode_some, b);
    } else {
        train(b, n);
    }
    const double seconds = cti_seconds_since(start), cpu_seconds = (double)(clock() - cpu) / CLOCKS_PER_SEC;
    printf("{\"seconds\": %.9f, \"cpu\": %.6f, \"ids\": %lld, \"crc\": %u, \"rss_mb\": %.1f}\n", seconds, cpu_seconds, (long long)b->tokens.n,
           (unsigned)crc32_of(b->tokens.ids, (size_t)b->tokens.n * sizeof *b->tokens.ids), peak_mib());
    (void)fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        (void)fprintf(stderr, "usage: bench_tokenizer FOLDER DOCUMENTS\n");
        return 2;
    }
    bench_text b = {.alloc = ct_alloc_system()};
    b.tokens.alloc = b.back.alloc = b.alloc;
    ct_err err = {0};
    if (strcmp(argv[1], "-") != 0) {
        must(ct_tokenizer_open(b.alloc, argv[1], NULL, &b.tok, &err), &err);
    }
    read_documents(&b, argv[2]);
    (void)fflush(stdout);
    char line[64], what[16];
    int n = 0;
    while (fgets(line, sizeof line, stdin) != NULL && sscanf(line, "%15s %d", what, &n) == 2) {
        answer(&b, what, n);
    }
    ct_batch_encoder_destroy(&b.batch);
    ct_tokens_deinit(&b.tokens);
    ct_tokenizer_destroy(&b.tok);
    ct_alloc_free(b.alloc, b.texts);
    ct_alloc_free(b.alloc, b.ends);
    ct_alloc_free(b.alloc, b.data);
    return 0;
}
