/* SPDX-License-Identifier: Apache-2.0 */
/* A corpus: mapped files and an index of their documents. */
#include "base/hash.h"
#include "base/num.h"
#include "data/data_internal.h"

void ct_slice(int64_t n, int64_t n_parts, int64_t part, int64_t *out_begin, int64_t *out_end)
{
    const int64_t size = n / n_parts;
    const int64_t n_longer = n % n_parts;
    *out_begin = part * size + cti_min_i64(part, n_longer);
    *out_end = *out_begin + size + (part < n_longer);
}

static ct_status add_document(ct_corpus *corpus, int64_t offset, ct_err *err)
{
    if (corpus->n_documents == corpus->cap_documents) {
        const int64_t cap = corpus->cap_documents == 0 ? 1024 : 2 * corpus->cap_documents;
        int64_t *offsets = ct_alloc_resize(corpus->alloc, corpus->offsets, (size_t)cap, sizeof *offsets, err);
        if (offsets == NULL) {
            return CT_ERR_MEMORY;
        }
        corpus->offsets = offsets;
        corpus->cap_documents = cap;
    }
    corpus->offsets[corpus->n_documents++] = offset;
    return CT_OK;
}

static bool is_blank_line(const unsigned char *p, const unsigned char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n')) {
        p++;
    }
    return p == end;
}

const unsigned char *cti_line_end(const unsigned char *p, const unsigned char *end)
{
    const unsigned char *newline = memchr(p, '\n', (size_t)(end - p));
    return newline != NULL ? newline : end;
}

static ct_status index_lines(ct_corpus *corpus, const cti_file_map *map, ct_err *err)
{
    const unsigned char *end = map->data + map->size;
    const unsigned char *p = map->data + cti_bom_bytes(map->data, map->size);
    while (p < end) {
        const unsigned char *stop = cti_line_end(p, end);
        if (!is_blank_line(p, stop)) {
            CT_TRY(add_document(corpus, p - map->data, err));
        }
        p = stop < end ? stop + 1 : end;
    }
    return CT_OK;
}

static ct_status index_part(ct_corpus *corpus, cti_corpus_part *part, ct_err *err)
{
    const size_t bom = cti_bom_bytes(part->map.data, part->map.size);
    part->first = corpus->n_documents;
    if (part->format == CT_FILE_JSONL) {
        CT_TRY(index_lines(corpus, &part->map, err));
    } else if (!is_blank_line(part->map.data + bom, part->map.data + part->map.size)) {
        CT_TRY(add_document(corpus, (int64_t)bom, err));
    }
    part->n = corpus->n_documents - part->first;
    corpus->size_bytes += (int64_t)part->map.size;
    return CT_OK;
}

static ct_status open_parts(ct_corpus *corpus, const cti_names *files, ct_err *err)
{
    corpus->parts = CT_NEW_ARRAY(corpus->alloc, cti_corpus_part, files->n, err);
    if (corpus->parts == NULL) {
        return CT_ERR_MEMORY;
    }
    for (size_t i = 0; i < files->n; i++) {
        cti_corpus_part *part = &corpus->parts[corpus->n_parts++];
        part->path = ct_alloc_strdup(corpus->alloc, files->names[i], err);
        if (part->path == NULL) {
            return CT_ERR_MEMORY;
        }
        CT_TRY(cti_file_map_open(part->path, &part->map, err));
        CT_TRY(cti_corpus_format(part->path, &part->map, &part->format, err));
        CT_TRY(index_part(corpus, part, err));
    }
    return CT_OK;
}

ct_status ct_corpus_open(const ct_alloc *alloc, const char *path, const ct_corpus_options *options,
                         ct_corpus **out_corpus, ct_err *err)
{
    cti_names files = {0};
    ct_corpus *corpus = CT_NEW(alloc, ct_corpus, err);
    if (corpus == NULL) {
        return CT_ERR_MEMORY;
    }
    corpus->alloc = alloc;
    ct_status st;
    const char *field = options != NULL && options->text_field != NULL ? options->text_field : "text";
    corpus->text_field = ct_alloc_strdup(alloc, field, err);
    if (corpus->text_field == NULL) {
        st = CT_ERR_MEMORY;
        goto out;
    }
    CT_TRY_GOTO(st, cti_corpus_list(alloc, path, &files, err), out);
    CT_TRY_GOTO(st, open_parts(corpus, &files, err), out);
    if (corpus->n_documents == 0) {
        st = CT_FAIL(err, CT_ERR_DATA, "dataset '%s' has no document: %lld file(s) of %lld bytes in all hold blank lines only",
                     path, (long long)corpus->n_parts, (long long)corpus->size_bytes);
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

void ct_corpus_destroy(ct_corpus **corpus)
{
    if (corpus == NULL || *corpus == NULL) {
        return;
    }
    ct_corpus *c = *corpus;
    const ct_alloc *alloc = c->alloc;
    for (int64_t i = 0; i < c->n_parts; i++) {
        cti_file_map_close(&c->parts[i].map);
        ct_alloc_free(alloc, c->parts[i].path);
    }
    ct_alloc_free(alloc, c->parts);
    ct_alloc_free(alloc, c->offsets);
    ct_alloc_free(alloc, c->text_field);
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

ct_corpus_file ct_corpus_file_at(const ct_corpus *corpus, int64_t i)
{
    CT_ASSERT(i >= 0 && i < corpus->n_parts);
    const cti_corpus_part *part = &corpus->parts[i];
    const size_t n = part->map.size < 4096 ? part->map.size : 4096;
    uint64_t print = cti_hash64(part->map.data, n, part->map.size);
    print = cti_hash64(part->map.data + part->map.size - n, n, print);
    return (ct_corpus_file){.path = part->path,
                            .format = part->format,
                            .size_bytes = (int64_t)part->map.size,
                            .n_documents = part->n,
                            .fingerprint = print};
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

/* Counted only where an error is told: the index keeps no line numbers. */
static int64_t line_number(const cti_corpus_part *part, int64_t offset)
{
    int64_t n = 1;
    const unsigned char *p = part->map.data;
    const unsigned char *stop = p + offset;
    while ((p = memchr(p, '\n', (size_t)(stop - p))) != NULL) {
        p++;
        n++;
    }
    return n;
}

void ct_corpus_place(const ct_corpus *corpus, int64_t number, char *out, size_t size)
{
    const cti_corpus_part *part = cti_corpus_part_of(corpus, number);
    const unsigned char *file_end = part->map.data + part->map.size;
    const int64_t offset = corpus->offsets[number];
    const bool is_last = cti_line_end(part->map.data + offset, file_end) == file_end;
    (void)snprintf(out, size, "'%s' line %lld%s", part->path, (long long)line_number(part, offset),
                   is_last ? " (the last, without a newline)" : "");
}
