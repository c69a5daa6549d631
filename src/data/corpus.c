/* SPDX-License-Identifier: Apache-2.0 */
/* A corpus: files and the indexes of their documents. */
#include <stdlib.h>
#include <unistd.h>

#include "base/num.h"
#include "base/pool.h"
#include "data/data_internal.h"

enum { KEPT_PLAIN_BYTES = 16 << 20, KEPT_PACKED_BYTES = 1 << 20, MAX_FRAME_BYTES = 16 << 20 };

void ct_slice(int64_t n, int64_t n_parts, int64_t part, int64_t *out_begin, int64_t *out_end)
{
    const int64_t size = n / n_parts;
    const int64_t n_longer = n % n_parts;
    *out_begin = part * size + cti_min_i64(part, n_longer);
    *out_end = *out_begin + size + (part < n_longer);
}

const char *ct_file_format_words(ct_file_format format)
{
    static const char *const words[] = {
#define CT_FILE_FORMAT_WORDS(NAME, text) [CT_FILE_##NAME] = text,
        CT_FILE_FORMAT_LIST(CT_FILE_FORMAT_WORDS)
#undef CT_FILE_FORMAT_WORDS
    };
    return words[format];
}

const char *ct_codec_words(ct_codec codec)
{
    static const char *const words[] = {[CT_CODEC_NONE] = "plain", [CT_CODEC_GZIP] = "gzip", [CT_CODEC_ZSTD] = "zstd"};
    return words[codec];
}

ct_status ct_data_cache_dir(const ct_alloc *alloc, char **out_path, ct_err *err)
{
    static const struct {
        const char *variable, *below;
    } places[] = {{"CTITAN_CACHE_DIR", ""}, {"XDG_CACHE_HOME", "/ctitan"}, {"HOME", "/.cache/ctitan"}};
    cti_str path = {.alloc = alloc};
    for (size_t i = 0; i < sizeof places / sizeof places[0] && path.len == 0; i++) {
        const char *value = getenv(places[i].variable);
        if (value != NULL && value[0] != '\0') {
            cti_str_add(&path, value);
            cti_str_add(&path, places[i].below);
        }
    }
    cti_str_add(&path, "");
    CT_TRY(cti_str_check(&path, err));
    *out_path = path.data;
    return CT_OK;
}

/* Builds the index of a part and keeps it where a folder is given. */
static ct_status build_index(const ct_corpus *corpus, cti_corpus_part *part, int fd, const char *cache_path, const cti_index_key *key,
                             ct_err *err)
{
    const ct_alloc *alloc = corpus->alloc;
    if (part->format == CT_FILE_LLMC) {
        CT_TRY(cti_tokens_index_llmc(alloc, &part->source, fd, &part->tokens, (int32_t)key->detail, &part->index, err));
    } else {
        CT_TRY(cti_index_build(alloc, &part->source, part->format, &part->index, err));
    }
    if (cache_path == NULL) {
        return CT_OK;
    }
    ct_err why = {0};
    cti_index kept;
    char *folder = cti_path_join(alloc, corpus->cache_dir, "index", err);
    if (folder == NULL) {
        return CT_ERR_MEMORY;
    }
    ct_status st = cti_make_dirs(folder, &why);
    ct_alloc_free(alloc, folder);
    if (st == CT_OK) {
        st = cti_index_store(alloc, cache_path, key, &part->index, &why);
    }
    if (st == CT_OK) {
        st = cti_index_load(cache_path, key, &kept, &why);
    }
    if (st == CT_OK) { /* mapped from now on: its memory can be taken back */
        cti_index_deinit(alloc, &part->index);
        part->index = kept;
    } else {
        const size_t n = strlen(part->note);
        (void)snprintf(part->note + n, sizeof part->note - n, "the index of '%.200s' is not kept: %.300s\n", part->path, why.message);
    }
    return CT_OK;
}

static bool is_worth_keeping(const cti_corpus_part *part)
{
    return part->source.stamp.size_bytes >= (part->source.codec == CT_CODEC_NONE ? KEPT_PLAIN_BYTES : KEPT_PACKED_BYTES);
}

/* The index of a part from the cache, or from the file. */
static ct_status find_index(const ct_corpus *corpus, cti_corpus_part *part, int fd, int32_t begin_id, ct_err *err)
{
    const ct_alloc *alloc = corpus->alloc;
    char *full = realpath(part->path, NULL); /* the system's memory: freed with free */
    char *cache_path = NULL;
    const cti_index_key key = {.path = full != NULL ? full : part->path,
                               .stamp = part->source.stamp,
                               .format = part->format,
                               .codec = part->source.codec,
                               .detail = part->format == CT_FILE_LLMC ? begin_id : 0};
    bool is_found = false;
    ct_err why = {0};
    ct_status st = CT_OK;
    if (corpus->cache_dir[0] != '\0' && is_worth_keeping(part)) {
        st = cti_index_cache_path(alloc, corpus->cache_dir, &key, &cache_path, err);
    }
    if (st == CT_OK && cache_path != NULL) {
        const ct_status loaded = cti_index_load(cache_path, &key, &part->index, &why);
        is_found = loaded == CT_OK;
        if (loaded != CT_OK && loaded != CT_ERR_NOT_FOUND) {
            (void)snprintf(part->note, sizeof part->note, "%.400s; it is built again\n", why.message);
        }
    }
    if (st == CT_OK && !is_found) {
        part->is_index_built = true;
        st = build_index(corpus, part, fd, cache_path, &key, err);
    }
    ct_alloc_free(alloc, cache_path);
    free(full);
    return st;
}

static ct_status open_part(const ct_corpus *corpus, cti_corpus_part *part, ct_err *err)
{
    int fd;
    cti_source *source = &part->source;
    int32_t begin_id = corpus->begin_id;
    source->path = part->path;
    CT_TRY(cti_data_open(part->path, &fd, err));
    ct_status st;
    CT_TRY_GOTO(st, cti_stamp_take(part->path, fd, &source->stamp, err), out);
    CT_TRY_GOTO(st, cti_corpus_format(corpus->alloc, part->path, fd, &source->stamp, &part->format, &source->codec, err), out);
    if (part->format == CT_FILE_TOKENS) {
        CT_TRY_GOTO(st, cti_tokens_open_own(source, fd, &part->tokens, err), out);
    } else if (part->format == CT_FILE_MEGATRON) {
        CT_TRY_GOTO(st, cti_tokens_open_megatron(corpus->alloc, source, &part->tokens, err), out);
    } else if (part->format == CT_FILE_LLMC) {
        CT_TRY_GOTO(st, cti_tokens_open_llmc(source, fd, &begin_id, &part->tokens, err), out);
    }
    if (part->format == CT_FILE_TOKENS || part->format == CT_FILE_MEGATRON) {
        part->n = part->tokens.n_documents;
    } else {
        CT_TRY_GOTO(st, find_index(corpus, part, fd, begin_id, err), out);
        part->n = part->index.n;
    }
    source->points = part->index.points;
    source->n_points = part->index.n_points;
    source->windows = part->index.windows;
    source->windows_size = part->index.windows_size;
out:
    (void)close(fd); /* nothing was written */
    return st;
}

/* Parts opened by several threads; the first that failed counts. */
typedef struct opening {
    ct_corpus *corpus;
    ct_status *statuses; /* owns */
    ct_err *errors;      /* owns; one a thread */
} opening;

static void open_parts(void *ctx, int64_t first, int64_t end, int thread)
{
    const opening *o = ctx;
    for (int64_t i = first; i < end; i++) {
        ct_err *err = &o->errors[thread];
        if (err->status == CT_OK) { /* a thread stops at its first failure */
            o->statuses[i] = open_part(o->corpus, &o->corpus->parts[i], err);
        }
    }
}

static ct_status open_all(ct_corpus *corpus, ct_err *err)
{
    const ct_alloc *alloc = corpus->alloc;
    const int n_threads = cti_pool_threads();
    opening o = {.corpus = corpus};
    o.statuses = CT_NEW_ARRAY(alloc, ct_status, corpus->n_parts, err);
    o.errors = CT_NEW_ARRAY(alloc, ct_err, n_threads, err);
    ct_status st = o.statuses != NULL && o.errors != NULL ? CT_OK : CT_ERR_MEMORY;
    if (st == CT_OK) {
        cti_pool_tasks(corpus->n_parts, n_threads, open_parts, &o);
    }
    for (int t = 0; st == CT_OK && t < n_threads; t++) {
        if (o.errors[t].status != CT_OK) {
            st = CT_FAIL(err, o.errors[t].status, "%s", o.errors[t].message);
        }
    }
    ct_alloc_free(alloc, o.statuses);
    ct_alloc_free(alloc, o.errors);
    CT_TRY(st);
    for (int64_t i = 0; i < corpus->n_parts; i++) {
        cti_corpus_part *part = &corpus->parts[i];
        part->first = corpus->n_documents;
        if (!cti_add_i64(corpus->n_documents, part->n, &corpus->n_documents) ||
            !cti_add_i64(corpus->size_bytes, part->source.stamp.size_bytes, &corpus->size_bytes)) {
            return CT_FAIL(err, CT_ERR_RANGE, "the files up to '%s' hold more than 2^63 documents or bytes", part->path);
        }
        cti_str_add(&corpus->notes, part->note);
    }
    return cti_str_check(&corpus->notes, err);
}

/* All files behind all paths, distinct. */
static ct_status list_all(const ct_alloc *alloc, const char *const *paths, int64_t n_paths, cti_names *out, ct_err *err)
{
    for (int64_t i = 0; i < n_paths; i++) {
        cti_names files = {0};
        CT_TRY(cti_corpus_list(alloc, paths[i], &files, err));
        char **grown = ct_alloc_resize(alloc, out->names, out->n + files.n, sizeof *grown, err);
        if (grown == NULL) {
            cti_names_free(alloc, &files);
            return CT_ERR_MEMORY;
        }
        memcpy(grown + out->n, files.names, files.n * sizeof *grown);
        out->names = grown;
        out->n += files.n;
        ct_alloc_free(alloc, files.names); /* the names themselves have moved */
    }
    return cti_corpus_check_distinct(alloc, out, err);
}

ct_status cti_corpus_set_options(ct_corpus *corpus, const ct_corpus_options *options, ct_err *err)
{
    static const ct_corpus_options defaults;
    const ct_corpus_options *o = options != NULL ? options : &defaults;
    if (o->max_document_bytes < 0 || o->begin_id < 0) {
        return CT_FAIL(err, CT_ERR_RANGE, "max_document_bytes is %lld and begin_id %d; neither may be below 0", (long long)o->max_document_bytes,
                       o->begin_id);
    }
    corpus->records = o->records;
    corpus->utf8 = o->utf8;
    corpus->begin_id = o->begin_id;
    corpus->max_document_bytes = o->max_document_bytes > 0 ? o->max_document_bytes : CT_MAX_DOCUMENT_BYTES;
    corpus->text_field = ct_alloc_strdup(corpus->alloc, o->text_field != NULL ? o->text_field : "text", err);
    if (corpus->text_field == NULL) {
        return CT_ERR_MEMORY;
    }
    if (o->cache_dir == NULL) {
        return ct_data_cache_dir(corpus->alloc, &corpus->cache_dir, err);
    }
    corpus->cache_dir = ct_alloc_strdup(corpus->alloc, o->cache_dir, err);
    return corpus->cache_dir != NULL ? CT_OK : CT_ERR_MEMORY;
}

ct_status ct_corpus_open_list(const ct_alloc *alloc, const char *const *paths, int64_t n_paths, const ct_corpus_options *options,
                              ct_corpus **out_corpus, ct_err *err)
{
    cti_names files = {0};
    if (n_paths <= 0) {
        return CT_FAIL(err, CT_ERR_USAGE, "no path of a dataset is given");
    }
    ct_corpus *corpus = CT_NEW(alloc, ct_corpus, err);
    if (corpus == NULL) {
        return CT_ERR_MEMORY;
    }
    corpus->alloc = alloc;
    corpus->notes.alloc = alloc;
    ct_status st;
    CT_TRY_GOTO(st, cti_corpus_set_options(corpus, options, err), out);
    CT_TRY_GOTO(st, list_all(alloc, paths, n_paths, &files, err), out);
    corpus->parts = CT_NEW_ARRAY(alloc, cti_corpus_part, files.n, err);
    CT_TRY_GOTO(st, corpus->parts != NULL ? CT_OK : CT_ERR_MEMORY, out);
    corpus->n_parts = (int64_t)files.n;
    for (size_t i = 0; i < files.n; i++) {
        corpus->parts[i].path = files.names[i];
        files.names[i] = NULL;
    }
    CT_TRY_GOTO(st, open_all(corpus, err), out);
    if (corpus->n_documents == 0) {
        st = CT_FAIL(err, CT_ERR_DATA, "dataset '%s' has no document: %lld file(s) of %lld bytes in all hold blank lines only",
                     paths[0], (long long)corpus->n_parts, (long long)corpus->size_bytes);
    }
out:
    cti_names_free(alloc, &files);
    if (st != CT_OK) {
        ct_corpus_destroy(&corpus);
        return st;
    }
    *out_corpus = corpus;
    return CT_OK;
}

ct_status ct_corpus_open(const ct_alloc *alloc, const char *path, const ct_corpus_options *options,
                         ct_corpus **out_corpus, ct_err *err)
{
    return ct_corpus_open_list(alloc, &path, 1, options, out_corpus, err);
}

void ct_corpus_destroy(ct_corpus **corpus)
{
    if (corpus == NULL || *corpus == NULL) {
        return;
    }
    ct_corpus *c = *corpus;
    const ct_alloc *alloc = c->alloc;
    for (int64_t i = 0; i < c->n_parts; i++) {
        cti_index_deinit(alloc, &c->parts[i].index);
        cti_token_file_deinit(alloc, &c->parts[i].tokens);
        if (c->parts[i].state != NULL) {
            c->parts[i].dataset->close(c->parts[i].state);
        }
        ct_alloc_free(alloc, c->parts[i].path);
    }
    ct_alloc_free(alloc, c->parts);
    ct_alloc_free(alloc, c->text_field);
    ct_alloc_free(alloc, c->cache_dir);
    cti_str_deinit(&c->notes);
    ct_alloc_free(alloc, c);
    *corpus = NULL;
}

int64_t ct_corpus_n_documents(const ct_corpus *corpus)
{
    return corpus->n_documents;
}

int64_t ct_corpus_n_files(const ct_corpus *corpus)
{
    return corpus->n_parts;
}

int64_t ct_corpus_size_bytes(const ct_corpus *corpus)
{
    return corpus->size_bytes;
}

const char *ct_corpus_text_field(const ct_corpus *corpus)
{
    return corpus->text_field;
}

const char *ct_corpus_notes(const ct_corpus *corpus)
{
    return cti_str_text(&corpus->notes);
}

ct_corpus_file ct_corpus_file_at(const ct_corpus *corpus, int64_t i)
{
    CT_ASSERT(i >= 0 && i < corpus->n_parts);
    const cti_corpus_part *part = &corpus->parts[i];
    const bool is_tokens = part->tokens.token_bytes > 0;
    return (ct_corpus_file){.path = part->path,
                            .format = part->format,
                            .codec = part->source.codec,
                            .size_bytes = part->source.stamp.size_bytes,
                            .contents_bytes = is_tokens ? part->source.stamp.size_bytes : part->index.size_bytes,
                            .n_documents = part->n,
                            .n_tokens = is_tokens ? part->tokens.n_tokens : -1,
                            .fingerprint = part->source.stamp.fingerprint,
                            .damage = part->index.damage[0] != '\0' ? part->index.damage : NULL,
                            .is_index_kept = part->index.map.size > 0,
                            .is_index_built = part->is_index_built};
}

const cti_corpus_part *cti_corpus_part_of(const ct_corpus *corpus, int64_t document)
{
    int64_t low = 0;
    int64_t high = corpus->n_parts;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (corpus->parts[middle].first <= document) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &corpus->parts[low];
}

/* --- what is asked of a whole corpus --- */

ct_status ct_corpus_check_whole(const ct_corpus *corpus, ct_err *err)
{
    for (int64_t i = 0; i < corpus->n_parts; i++) {
        const cti_corpus_part *part = &corpus->parts[i];
        if (part->index.damage[0] != '\0') {
            char place[CTI_PLACE_BYTES];
            ct_corpus_place(corpus, part->first + part->n - 1, place, sizeof place);
            return CT_FAIL(err, CT_ERR_DATA, "%s: %s: %s (documents before it can be used where bad ones are skipped)", place,
                           ct_bad_words(CT_BAD_DAMAGED), part->index.damage);
        }
    }
    return CT_OK;
}

ct_status ct_corpus_check_random_access(const ct_corpus *corpus, ct_err *err)
{
    for (int64_t i = 0; i < corpus->n_parts; i++) {
        const cti_corpus_part *part = &corpus->parts[i];
        int64_t last = 0;
        for (int64_t k = 0; part->source.codec == CT_CODEC_ZSTD && k <= part->source.n_points; k++) {
            const int64_t next = k < part->source.n_points ? part->source.points[k].out : part->index.size_bytes;
            if (next - last > MAX_FRAME_BYTES) {
                return CT_FAIL(err, CT_ERR_UNSUPPORTED,
                               "'%s' has a zstd frame of %lld bytes, which can be read in order only: shuffling is refused; "
                               "zstd -dc '%s' | gzip > FILE.jsonl.gz makes a form that can be read anywhere, as does ctitan data tokenize",
                               part->path, (long long)(next - last), part->path);
            }
            last = next;
        }
    }
    return CT_OK;
}

bool ct_corpus_is_random_access(const ct_corpus *corpus)
{
    return ct_corpus_check_random_access(corpus, NULL) == CT_OK;
}

ct_status ct_corpus_check_tokens(const ct_corpus *corpus, uint64_t tokenizer_hash, int64_t vocab_size, ct_err *err)
{
    for (int64_t i = 0; i < corpus->n_parts; i++) {
        const cti_corpus_part *part = &corpus->parts[i];
        const cti_tokens_header *h = &part->tokens.header; /* zeros but for our format */
        if (h->tokenizer_hash != 0 && tokenizer_hash != 0 && h->tokenizer_hash != tokenizer_hash) {
            return CT_FAIL(err, CT_ERR_DATA,
                           "'%s' was made with another tokenizer (%016llx) than the one of this run (%016llx): their ids mean different things",
                           part->path, (unsigned long long)h->tokenizer_hash, (unsigned long long)tokenizer_hash);
        }
        if (vocab_size > 0 && h->vocab_size > vocab_size) {
            return CT_FAIL(err, CT_ERR_DATA, "'%s' was made with a vocabulary of %lld tokens, the model has %lld", part->path,
                           (long long)h->vocab_size, (long long)vocab_size);
        }
    }
    return CT_OK;
}

ct_status ct_corpus_verify(const ct_corpus *corpus, ct_err *err)
{
    for (int64_t i = 0; i < corpus->n_parts; i++) {
        if (corpus->parts[i].format == CT_FILE_TOKENS) {
            CT_TRY(cti_tokens_verify(&corpus->parts[i].source, &corpus->parts[i].tokens, err));
        }
    }
    return CT_OK;
}
