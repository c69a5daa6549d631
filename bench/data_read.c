/* SPDX-License-Identifier: Apache-2.0 */
/* How fast documents come out of files, before they are tokens: the index, reading in order, reading anywhere. One thread.
 *
 *     bench_data_read FILE...          beside it: time zcat FILE >/dev/null; time zstdcat FILE >/dev/null
 *
 * MB/s are 10^6 bytes of contents (decompressed) a second of CPU time. */
#include <stdio.h>
#include <time.h>

#include "base/base.h"
#include "data/data.h"

enum { N_ANYWHERE = 300 };

/* Of this process: what others take does not count. */
static int64_t cpu_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* which every Linux has */
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static double seconds_since(int64_t began)
{
    return (double)(cpu_ns() - began) * 1e-9;
}

static ct_status read_some(const ct_corpus *corpus, int64_t n, uint64_t step, int64_t *out_n_good, ct_err *err)
{
    const ct_alloc *alloc = ct_alloc_system();
    ct_reader *reader = NULL;
    ct_document document;
    const uint64_t n_all = (uint64_t)ct_corpus_n_documents(corpus);
    ct_status st = ct_reader_create(alloc, corpus, &reader, err);
    ct_document_init(&document, alloc);
    *out_n_good = 0;
    for (int64_t i = 0; st == CT_OK && i < n; i++) {
        ct_bad bad = CT_BAD_NONE;
        ct_err why = {0};
        const int64_t number = (int64_t)((uint64_t)i * step % n_all);
        const ct_status read = ct_reader_read(reader, number, &document, &bad, NULL, &why);
        *out_n_good += read == CT_OK;
        st = read != CT_OK && bad == CT_BAD_NONE ? CT_FAIL(err, read, "%s", why.message) : CT_OK;
    }
    ct_document_deinit(&document);
    ct_reader_destroy(&reader);
    return st;
}

static ct_status measure(const char *path, ct_err *err)
{
    ct_corpus *corpus = NULL;
    int64_t n_good = 0;
    int64_t began = cpu_ns();
    CT_TRY(ct_corpus_open(ct_alloc_system(), path, &(ct_corpus_options){.cache_dir = ""}, &corpus, err));
    const double opened = seconds_since(began);
    const int64_t n = ct_corpus_n_documents(corpus);
    double mb = 0.0;
    for (int64_t i = 0; i < ct_corpus_n_files(corpus); i++) {
        mb += (double)ct_corpus_file_at(corpus, i).contents_bytes * 1e-6;
    }
    began = cpu_ns();
    ct_status st = read_some(corpus, n, 1, &n_good, err);
    const double in_order = seconds_since(began);
    const int64_t n_anywhere = n < N_ANYWHERE ? n : N_ANYWHERE;
    char anywhere[64] = "in order only";
    if (st == CT_OK && ct_corpus_is_random_access(corpus)) {
        began = cpu_ns();
        st = read_some(corpus, n_anywhere, 2654435761u, &n_good, err);
        (void)snprintf(anywhere, sizeof anywhere, "anywhere %.0f documents/s", (double)n_anywhere / seconds_since(began));
    }
    if (st == CT_OK) {
        printf("%s: %.0f MB, %lld documents; index %.0f MB/s; in order %.0f MB/s; %s; memory %.1f MiB at most\n", path, mb, (long long)n,
               mb / opened, mb / in_order, anywhere, (double)cti_peak_rss_bytes() / 1048576.0);
        (void)fflush(stdout);
    }
    ct_corpus_destroy(&corpus);
    return st;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: bench_data_read FILE...\n");
        return 2;
    }
    cti_pool_set_threads(1);
    for (int i = 1; i < argc; i++) {
        ct_err err = {0};
        if (measure(argv[i], &err) != CT_OK) {
            fprintf(stderr, "bench_data_read: %s\n", err.message);
            return 1;
        }
    }
    return 0;
}
