/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens a second that the loader gives, and what it takes of memory: plain and gzip, shuffled or not, both packings, 0 to 2 workers.
 *
 *     bench_loader [MIB [SECONDS]]      size of the corpus that is made from the one that comes with ctitan (32), seconds a row (1)
 *
 * Each row opens the loader on the corpus, whose index is kept by then, takes batches of 8 rows of 512 tokens until the time is over, and counts tokens from
 * the second batch on. CPU: seconds of all the loader's threads a second of time. Memory: the most that the loader held at once, index included. */
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

#include "base/base.h"
#include "data/data.h"

#ifndef CT_BENCH_SHARE
#error "the folder with demo.jsonl and tokenizer/"
#endif

enum { SEQ_LEN = 512, ROWS = 8 };

static atomic_llong live, peak;

/* The system's allocator, with a count of bytes. */
static void *counting(void *ctx, void *ptr, size_t size_bytes)
{
    const ct_alloc *under = ct_alloc_system();
    (void)ctx;
    const long long before = ptr != NULL ? (long long)malloc_usable_size(ptr) : 0;
    void *p = under->resize(under->ctx, ptr, size_bytes);
    const long long after = p != NULL ? (long long)malloc_usable_size(p) : 0;
    const long long now = atomic_fetch_add(&live, after - before) + after - before;
    long long most = atomic_load(&peak);
    while (now > most && !atomic_compare_exchange_weak(&peak, &most, now)) {
    }
    return p;
}

static void must(ct_status st, const ct_err *err)
{
    if (st != CT_OK) {
        fprintf(stderr, "bench_loader: %s\n", err->message);
        exit(1);
    }
}

/* The shipped lines again and again, each with a number, so that no two are alike. */
static void make_corpus(const char *folder, int64_t mib, char *plain, char *packed, size_t size)
{
    ct_err err = {0};
    char *data = NULL;
    size_t n = 0;
    cti_str text = {.alloc = ct_alloc_system()};
    must(cti_file_read(ct_alloc_system(), CT_BENCH_SHARE "/demo.jsonl", 0, &data, &n, &err), &err);
    for (int64_t copy = 0; (int64_t)text.len < mib << 20; copy++) {
        for (const char *line = data; line < data + n;) {
            const char *end = memchr(line, '\n', (size_t)(data + n - line));
            const size_t len = (size_t)(end - line);
            cti_str_add_n(&text, line, len - 2); /* "} */
            cti_str_printf(&text, " Copy %lld.\"}\n", (long long)copy);
            line = end + 1;
        }
    }
    must(cti_str_check(&text, &err), &err);
    (void)snprintf(plain, size, "%s/bench.jsonl", folder);
    (void)snprintf(packed, size, "%s/bench-gz.jsonl.gz", folder);
    must(cti_file_write_atomic(plain, text.data, text.len, &err), &err);
    gzFile gz = gzopen(packed, "wb6");
    if (gz == NULL || gzwrite(gz, text.data, (unsigned)text.len) != (int)text.len || gzclose(gz) != Z_OK) {
        fprintf(stderr, "bench_loader: '%s' cannot be written\n", packed);
        exit(1);
    }
    ct_alloc_free(ct_alloc_system(), data);
    cti_str_deinit(&text);
}

static double cpu_seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void row(const char *path, const char *cache, const ct_tokenizer *tokenizer, ct_loader_options o, double seconds)
{
    const ct_alloc alloc = {.resize = counting};
    const ct_text_processor text = {.tokenizer = tokenizer, .flags = CT_ENCODE_DOCUMENT};
    const ct_processor processor = ct_processor_of_text(&text);
    static int32_t room[7 * SEQ_LEN * ROWS];
    const int64_t n = SEQ_LEN * ROWS;
    ct_batch b = {.tokens = room, .labels = room + n, .positions = room + 2 * n, .segments = room + 3 * n, .segments_cap = n};
    ct_corpus *corpus = NULL;
    ct_loader *loader = NULL;
    ct_err err = {0};
    atomic_store(&peak, atomic_load(&live));
    must(ct_corpus_open(&alloc, path, &(ct_corpus_options){.cache_dir = cache}, &corpus, &err), &err);
    const ct_data_source source = {corpus, 1.0};
    o.seq_len = SEQ_LEN;
    o.rows = ROWS;
    o.n_local_streams = o.streams;
    o.repeat = true;
    o.packing_bins = 8;
    o.prefetch_batches = 2;
    must(ct_loader_create(&alloc, &source, 1, &processor, &o, &loader, &err), &err);
    must(ct_loader_next(loader, &b, &err), &err);
    const int64_t start = cti_now_ns();
    const double cpu = cpu_seconds();
    int64_t tokens = 0;
    while ((double)(cti_now_ns() - start) < seconds * 1e9) {
        must(ct_loader_next(loader, &b, &err), &err);
        tokens += b.n_valid;
    }
    const double took = (double)(cti_now_ns() - start) / 1e9;
    const double used = cpu_seconds() - cpu;
    printf("%-6s %-8s %-18s %8lld %8d %12.0f %6.2f %15.0f %10.1f\n", strstr(path, ".gz") != NULL ? "gzip" : "plain", o.shuffle ? "shuffled" : "in order",
           o.packing == CT_PACK_FIRST_FIT ? "first-fit" : "concat-then-split", (long long)o.streams, o.workers, (double)tokens / took,
           used / took, (double)tokens / used, (double)atomic_load(&peak) / (1 << 20));
    fflush(stdout);
    ct_loader_destroy(&loader);
    ct_corpus_destroy(&corpus);
}

int main(int argc, char **argv)
{
    const int64_t mib = argc > 1 ? strtoll(argv[1], NULL, 10) : 32;
    const double seconds = argc > 2 ? strtod(argv[2], NULL) : 1.0;
    char folder[] = "/tmp/bench-loader-XXXXXX", plain[128], packed[128];
    ct_err err = {0};
    ct_tokenizer *tokenizer = NULL;
    if (mib < 1 || mib > 1024 || !(seconds > 0.0) || mkdtemp(folder) == NULL) {
        fprintf(stderr, "bench_loader [MIB of 1 to 1024 [SECONDS]]\n");
        return 2;
    }
    make_corpus(folder, mib, plain, packed, sizeof plain);
    must(ct_tokenizer_open(ct_alloc_system(), CT_BENCH_SHARE "/tokenizer", NULL, &tokenizer, &err), &err);
    printf("%lld MiB of JSON lines, %d cores\n", (long long)mib, cti_usable_cores());
    printf("%-6s %-8s %-18s %8s %8s %12s %6s %15s %10s\n", "file", "order", "packing", "streams", "workers", "tokens/s", "CPU", "tokens/CPU s",
           "MiB held");
    for (int gz = 0; gz < 2; gz++) {
        const char *path = gz ? packed : plain;
        for (int workers = 0; workers <= 2; workers++) {
            row(path, folder, tokenizer, (ct_loader_options){.streams = 1, .workers = workers}, seconds);
            row(path, folder, tokenizer, (ct_loader_options){.streams = 1, .workers = workers, .shuffle = true}, seconds);
        }
        row(path, folder, tokenizer, (ct_loader_options){.streams = 1, .packing = CT_PACK_FIRST_FIT, .shuffle = true}, seconds);
        row(path, folder, tokenizer, (ct_loader_options){.streams = 8, .workers = 2}, seconds);
    }
    ct_tokenizer_destroy(&tokenizer);
    must(cti_remove_tree(folder, &err), &err);
    return 0;
}
