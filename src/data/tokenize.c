/* SPDX-License-Identifier: Apache-2.0 */
/* A corpus to files of tokens: documents are read in order, encoded by several threads, written in order. */
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/num.h"
#include "base/pool.h"
#include "data/data_internal.h"
#include "data/token_writer.h"

enum { BATCH_DOCUMENTS = 1024, BATCH_BYTES = 8 << 20, KEPT_BYTES = 256 << 10 };

/* A document on its way. */
typedef struct item {
    ct_document document;
    ct_sample sample;
    cti_line_fault fault;
    ct_status status; /* of the processor, but for bad documents */
    ct_err error;
} item;

typedef struct job {
    const ct_alloc *alloc;
    const ct_corpus *corpus;
    const ct_processor *processor;
    const ct_tokenize_options *o;
    ct_tokenize_result *result;
    ct_reader *reader; /* owns */
    void **states;     /* owns; one a thread */
    int n_threads;
    item *items; /* owns */
    int64_t next; /* document to be read */
    cti_token_writer writer;
    bool is_open; /* a file is being written */
    bool is_folder;
} job;

/* Identity of what is tokenized: files by name, size and fingerprint, and how they are read. */
static uint64_t source_hash(const ct_corpus *corpus)
{
    const int64_t facts[] = {corpus->n_documents, corpus->records, (int64_t)corpus->utf8, corpus->max_document_bytes, corpus->begin_id};
    uint64_t hash = cti_hash64(facts, sizeof facts, 1);
    hash = cti_hash64(corpus->text_field, strlen(corpus->text_field), hash);
    for (int64_t i = 0; i < corpus->n_parts; i++) {
        const cti_corpus_part *part = &corpus->parts[i];
        const char *name = cti_path_base(part->path);
        hash = cti_hash64(name, strlen(name), hash ^ part->source.stamp.fingerprint);
    }
    return hash;
}

static cti_tokens_header header_of(const job *j, int64_t first_document)
{
    return (cti_tokens_header){.token_bytes = j->o->vocab_size <= 65536 ? 2 : 4,
                               .vocab_size = j->o->vocab_size,
                               .tokenizer_hash = j->o->tokenizer_hash,
                               .first_document = first_document,
                               .source_documents = j->corpus->n_documents,
                               .source_hash = source_hash(j->corpus),
                               .shard_tokens = j->is_folder ? j->o->shard_tokens : 0};
}

/* --- reading and encoding a batch --- */

static ct_status read_batch(job *j, int64_t *out_n, ct_err *err)
{
    size_t bytes = 0;
    int64_t n = 0;
    while (n < BATCH_DOCUMENTS && bytes < BATCH_BYTES && j->next < j->corpus->n_documents) {
        item *it = &j->items[n++];
        it->status = CT_OK;
        it->sample.ids.n = it->sample.labels.n = 0;
        CT_TRY(cti_reader_read(j->reader, j->next++, &it->document, &j->result->repairs, &it->fault, err));
        bytes += it->document.text.len + (size_t)it->document.ids.n * sizeof(int32_t) + 64;
    }
    *out_n = n;
    return CT_OK;
}

static void encode(void *ctx, int64_t first, int64_t end, int thread)
{
    const job *j = ctx;
    void *state = j->processor->open != NULL ? j->states[thread] : (void *)(uintptr_t)j->processor->ctx;
    for (int64_t i = first; i < end; i++) {
        item *it = &j->items[i];
        if (it->fault.bad != CT_BAD_NONE) {
            continue;
        }
        it->error = (ct_err){0};
        it->status = j->processor->process(state, &it->document, &it->sample, &it->error);
        if (it->status == CT_ERR_DATA) {
            it->status = CT_OK;
            it->fault = (cti_line_fault){.bad = CT_BAD_CONTENT};
            (void)snprintf(it->fault.detail, sizeof it->fault.detail, "%.*s", (int)sizeof it->fault.detail - 1, it->error.message);
        }
    }
}

/* Memory that a large document took is given back. */
static void trim(item *it)
{
    if (it->document.text.cap > KEPT_BYTES) {
        cti_str_deinit(&it->document.text);
    }
    if (it->document.ids.cap * (int64_t)sizeof(int32_t) > KEPT_BYTES) {
        ct_tokens_deinit(&it->document.ids);
    }
    if (it->sample.ids.cap * (int64_t)sizeof(int32_t) > KEPT_BYTES) {
        ct_tokens_deinit(&it->sample.ids);
    }
}

/* --- writing --- */

static ct_status note_bad(job *j, int64_t number, const item *it, ct_err *err)
{
    ct_tokenize_result *r = j->result;
    if (j->o->bad_policy == CT_BAD_FAIL) {
        return cti_corpus_fail(j->corpus, number, &it->fault, err);
    }
    r->n_bad[it->fault.bad]++;
    r->n_bad_total++;
    if (r->n_examples < CT_LOADER_N_EXAMPLES) {
        ct_err why = {0};
        (void)cti_corpus_fail(j->corpus, number, &it->fault, &why); /* for its words */
        (void)snprintf(r->examples[r->n_examples++], sizeof r->examples[0], "%.*s", (int)sizeof r->examples[0] - 1, why.message);
    }
    return CT_OK;
}

static ct_status check_ids(const job *j, int64_t number, const ct_sample *sample, ct_err *err)
{
    if (sample->labels.n > 0) {
        return CT_FAIL(err, CT_ERR_UNSUPPORTED, "document %lld has labels of its own, as chats have; files of tokens do not hold them",
                       (long long)number);
    }
    for (int64_t i = 0; i < sample->ids.n; i++) {
        if (sample->ids.ids[i] < 0 || sample->ids.ids[i] >= j->o->vocab_size) {
            char place[CTI_PLACE_BYTES];
            ct_corpus_place(j->corpus, number, place, sizeof place);
            return CT_FAIL(err, CT_ERR_DATA, "%s: token id %d; ids of [0, %lld) are wanted", place, sample->ids.ids[i],
                           (long long)j->o->vocab_size);
        }
    }
    return CT_OK;
}

static char *shard_path(const job *j, int64_t i, ct_err *err)
{
    char name[40];
    (void)snprintf(name, sizeof name, "tokens-%05lld.ctok", (long long)i); /* fits */
    return cti_path_join(j->alloc, j->o->output, name, err);
}

static ct_status open_file(job *j, int64_t first_document, ct_err *err)
{
    const cti_tokens_header header = header_of(j, first_document);
    char *path = j->is_folder ? shard_path(j, j->result->n_files, err) : ct_alloc_strdup(j->alloc, j->o->output, err);
    if (path == NULL) {
        return CT_ERR_MEMORY;
    }
    j->is_open = true;
    const ct_status st = cti_token_writer_open(&j->writer, j->alloc, path, &header, err);
    ct_alloc_free(j->alloc, path);
    return st;
}

static ct_status close_file(job *j, bool is_last, ct_err *err)
{
    CT_TRY(cti_token_writer_finish(&j->writer, is_last, err));
    cti_token_writer_deinit(&j->writer);
    j->is_open = false;
    j->result->n_files++;
    return CT_OK;
}

static ct_status write_batch(job *j, int64_t n, ct_err *err)
{
    for (int64_t i = 0; i < n; i++) {
        item *it = &j->items[i];
        const int64_t number = j->next - n + i;
        if (it->status != CT_OK) {
            return CT_FAIL(err, it->status, "document %lld: %s", (long long)number, it->error.message);
        }
        if (it->fault.bad != CT_BAD_NONE) {
            it->sample.ids.n = it->sample.labels.n = 0;
            CT_TRY(note_bad(j, number, it, err));
        }
        CT_TRY(check_ids(j, number, &it->sample, err));
        if (!j->is_open) {
            CT_TRY(open_file(j, number, err));
        }
        CT_TRY(cti_token_writer_add(&j->writer, it->sample.ids.ids, it->sample.ids.n, err));
        j->result->n_documents++;
        j->result->n_tokens += it->sample.ids.n;
        j->result->n_short += it->sample.ids.n < 2;
        if (j->is_folder && j->writer.header.n_tokens >= j->o->shard_tokens) {
            CT_TRY(close_file(j, number + 1 == j->corpus->n_documents, err));
        }
        trim(it);
    }
    return CT_OK;
}

static ct_status run(job *j, ct_err *err)
{
    while (j->next < j->corpus->n_documents) {
        int64_t n = 0;
        CT_TRY(read_batch(j, &n, err));
        cti_pool_tasks(n, j->n_threads, encode, j);
        CT_TRY(write_batch(j, n, err));
        if (j->o->progress != NULL) {
            j->o->progress(j->o->ctx, j->result->n_documents, j->result->n_tokens);
        }
    }
    return j->is_open ? close_file(j, true, err) : CT_OK;
}

/* --- what is there already --- */

/* "NAME.tmp.PID" of a process that is gone. */
static bool is_left_over(const char *name)
{
    const char *at = strstr(name, ".ctok.tmp.");
    int64_t pid;
    return at != NULL && cti_parse_i64(at + 10, &pid) && pid > 0 && pid < INT32_MAX && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

/* Takes over a whole file of the same set that begins at the document wanted next. */
static ct_status take_over(job *j, const char *path, bool *out_taken, ct_err *err)
{
    cti_source source = {.path = path};
    cti_token_file file = {0};
    const cti_tokens_header want = header_of(j, j->next);
    int fd;
    *out_taken = false;
    CT_TRY(cti_data_open(path, &fd, err));
    ct_err why = {0};
    ct_status st = cti_stamp_take(path, fd, &source.stamp, &why);
    if (st == CT_OK) {
        st = cti_tokens_open_own(&source, fd, &file, &why);
    }
    (void)close(fd); /* nothing was written */
    const cti_tokens_header *h = &file.header;
    if (st != CT_OK || h->token_bytes != want.token_bytes || h->vocab_size != want.vocab_size || h->tokenizer_hash != want.tokenizer_hash ||
        h->first_document != want.first_document || h->source_documents != want.source_documents || h->source_hash != want.source_hash ||
        h->shard_tokens != want.shard_tokens || h->n_documents > j->corpus->n_documents - j->next) {
        return CT_OK;
    }
    *out_taken = true;
    j->next += h->n_documents;
    j->result->n_files++;
    j->result->n_files_kept++;
    j->result->n_documents += h->n_documents;
    j->result->n_tokens += h->n_tokens;
    return CT_OK;
}

/* Sorts the folder's files out: taken over, left over, in the way. */
static ct_status enter_folder(job *j, ct_err *err)
{
    cti_names names;
    CT_TRY(cti_make_dirs(j->o->output, err));
    CT_TRY(cti_list_dir(j->alloc, j->o->output, &names, err));
    ct_status st = CT_OK;
    for (size_t i = 0; st == CT_OK && i < names.n; i++) {
        char *path = cti_path_join(j->alloc, j->o->output, names.names[i], err);
        char *next = path != NULL ? shard_path(j, j->result->n_files, err) : NULL;
        bool taken = false;
        if (next == NULL) {
            st = CT_ERR_MEMORY;
        } else if (cti_ends_with(names.names[i], ".ctok")) {
            if (strcmp(path, next) == 0) {
                st = take_over(j, path, &taken, err);
            }
            if (st == CT_OK && !taken && !j->o->replace) {
                st = CT_FAIL(err, CT_ERR_USAGE, "'%s' is not of this set (another dataset, tokenizer or size of files): choose an empty folder, or --replace",
                             path);
            } else if (st == CT_OK && !taken) {
                (void)unlink(path); /* a failure is told when its name is written */
            }
        } else if (is_left_over(names.names[i])) {
            (void)unlink(path); /* only room is lost where it stays */
        }
        ct_alloc_free(j->alloc, path);
        ct_alloc_free(j->alloc, next);
    }
    cti_names_free(j->alloc, &names);
    return st;
}

/* What goes into a folder may replace what is there, so the data set must be elsewhere. */
static ct_status check_apart(const job *j, ct_err *err)
{
    struct stat out, in;
    if (stat(j->o->output, &out) != 0) {
        return CT_OK; /* it will be made */
    }
    for (int64_t i = 0; i < j->corpus->n_parts; i++) {
        const char *path = j->corpus->parts[i].path, *base = cti_path_base(path);
        cti_str folder = {.alloc = j->alloc};
        cti_str_add_n(&folder, base > path ? path : ".", base > path ? (size_t)(base - path) : 1);
        const ct_status st = cti_str_check(&folder, err);
        const bool is_same = st == CT_OK && stat(cti_str_text(&folder), &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino;
        cti_str_deinit(&folder);
        CT_TRY(st);
        if (is_same) {
            return CT_FAIL(err, CT_ERR_USAGE, "'%s' holds the data set itself ('%s'): choose another folder", j->o->output, path);
        }
    }
    return CT_OK;
}

/* Files "X.ctok.tmp.PID" beside X.ctok that calls which were killed have left. */
static ct_status clear_left_over(const job *j, ct_err *err)
{
    const char *path = j->o->output, *base = cti_path_base(path);
    cti_str folder = {.alloc = j->alloc};
    cti_str_add_n(&folder, base > path ? path : ".", base > path ? (size_t)(base - path) : 1);
    CT_TRY(cti_str_check(&folder, err));
    cti_names names = {0};
    ct_status st = CT_OK;
    if (cti_list_dir(j->alloc, cti_str_text(&folder), &names, NULL) != CT_OK) {
        names.n = 0; /* told where the file is made */
    }
    for (size_t i = 0; i < names.n && st == CT_OK; i++) {
        if (cti_starts_with(names.names[i], base) && is_left_over(names.names[i])) {
            char *old = cti_path_join(j->alloc, cti_str_text(&folder), names.names[i], err);
            st = old != NULL ? CT_OK : CT_ERR_MEMORY;
            if (old != NULL) {
                (void)unlink(old); /* only room is lost where it stays */
            }
            ct_alloc_free(j->alloc, old);
        }
    }
    cti_names_free(j->alloc, &names);
    cti_str_deinit(&folder);
    return st;
}

static ct_status check_output(job *j, ct_err *err)
{
    const char *output = j->o->output;
    if (output == NULL || output[0] == '\0') {
        return CT_FAIL(err, CT_ERR_USAGE, "no output is given: a file X.ctok or a folder");
    }
    j->is_folder = !cti_ends_with(output, ".ctok") || cti_path_is_dir(output);
    if (j->is_folder) {
        CT_TRY(check_apart(j, err));
        return enter_folder(j, err);
    }
    if (cti_path_exists(output) && !j->o->replace) {
        return CT_FAIL(err, CT_ERR_USAGE, "'%s' is there already: choose another name, or --replace", output);
    }
    return clear_left_over(j, err);
}

static ct_status set_up(job *j, ct_err *err)
{
    j->items = CT_NEW_ARRAY(j->alloc, item, BATCH_DOCUMENTS, err);
    j->states = CT_NEW_ARRAY(j->alloc, void *, j->n_threads, err);
    if (j->items == NULL || j->states == NULL) {
        return CT_ERR_MEMORY;
    }
    for (int64_t i = 0; i < BATCH_DOCUMENTS; i++) {
        ct_document_init(&j->items[i].document, j->alloc);
        ct_sample_init(&j->items[i].sample, j->alloc);
    }
    for (int i = 0; i < j->n_threads && j->processor->open != NULL; i++) {
        CT_TRY(j->processor->open(j->processor->ctx, j->alloc, &j->states[i], err));
    }
    return ct_reader_create(j->alloc, j->corpus, &j->reader, err);
}

static void tear_down(job *j)
{
    for (int64_t i = 0; j->items != NULL && i < BATCH_DOCUMENTS; i++) {
        if (j->items[i].document.text.alloc != NULL) {
            ct_document_deinit(&j->items[i].document);
            ct_sample_deinit(&j->items[i].sample);
        }
    }
    for (int i = 0; j->states != NULL && i < j->n_threads; i++) {
        if (j->states[i] != NULL) {
            j->processor->close(j->states[i]);
        }
    }
    ct_reader_destroy(&j->reader);
    ct_alloc_free(j->alloc, j->items);
    ct_alloc_free(j->alloc, j->states);
    cti_token_writer_deinit(&j->writer);
}

ct_status ct_corpus_tokenize(const ct_alloc *alloc, const ct_corpus *corpus, const ct_processor *processor,
                             const ct_tokenize_options *options, ct_tokenize_result *out_result, ct_err *err)
{
    *out_result = (ct_tokenize_result){0};
    if (options->vocab_size <= 0 || options->vocab_size > INT64_C(2147483648) || options->shard_tokens < 0) {
        return CT_FAIL(err, CT_ERR_RANGE, "a vocabulary of %lld and files of %lld tokens; 1 to 2^31, and not below 0, are wanted",
                       (long long)options->vocab_size, (long long)options->shard_tokens);
    }
    ct_tokenize_options o = *options;
    o.shard_tokens = o.shard_tokens > 0 ? o.shard_tokens : (int64_t)1 << 30;
    job j = {.alloc = alloc,
             .corpus = corpus,
             .processor = processor,
             .o = &o,
             .result = out_result,
             .n_threads = cti_pool_threads(),
             .writer = {.output = {.fd = -1}}};
    if (o.bad_policy == CT_BAD_FAIL) {
        CT_TRY(ct_corpus_check_whole(corpus, err));
    }
    CT_TRY(check_output(&j, err));
    ct_status st = set_up(&j, err);
    if (st == CT_OK) {
        st = run(&j, err);
    }
    tear_down(&j);
    return st;
}
