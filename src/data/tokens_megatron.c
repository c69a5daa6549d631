/* SPDX-License-Identifier: Apache-2.0 */
/* Megatron's indexed data sets: X.bin holds the tokens alone, X.idx says where sequences lie and which make a document.
 *
 * X.idx: "MMIDIDX\0\0" (9 bytes), u64 version 1, u8 code of the element type, u64 number of sequences S, u64 number of entries D; then
 * S int32 lengths in tokens, S int64 places in X.bin in bytes, D int64 numbers of sequences: document d is the sequences
 * [entry d, entry d+1), so there are D - 1 documents. Multimodal sets have S bytes of modes behind it, which are let lie. */
#include <unistd.h>

#include "base/num.h"
#include "data/data_internal.h"

enum { IDX_HEADER_BYTES = 9 + 8 + 1 + 8 + 8, BLOCK_ROWS = 64 << 10 };
static const char idx_magic[9] = "MMIDIDX\0";

/* Codes of element types. */
static const struct {
    const char *name;
    int bytes;
    bool is_signed;
} types[] = {[1] = {"uint8", 1, false}, [2] = {"int8", 1, true},      [3] = {"int16", 2, true},
             [4] = {"int32", 4, true},  [5] = {"int64", 8, true},     [6] = {"float64", 0, true},
             [7] = {"float32", 0, true}, [8] = {"uint16", 2, false}};

ct_status cti_tokens_idx_path(const ct_alloc *alloc, const char *bin_path, char **out_path, ct_err *err)
{
    cti_str path = {.alloc = alloc};
    cti_str_add_n(&path, bin_path, strlen(bin_path) - (cti_ends_with(bin_path, ".bin") ? 4 : 0));
    cti_str_add(&path, ".idx");
    CT_TRY(cti_str_check(&path, err));
    *out_path = path.data;
    return CT_OK;
}

static uint64_t u64_at(const unsigned char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static ct_status read_header(int fd, cti_token_file *f, ct_err *err)
{
    unsigned char head[IDX_HEADER_BYTES];
    const char *path = f->idx_path;
    const int64_t size = f->idx.stamp.size_bytes;
    if (size < IDX_HEADER_BYTES) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s' has %lld bytes; the header of Megatron's .idx has %d", path, (long long)size, IDX_HEADER_BYTES);
    }
    CT_TRY(cti_source_read(&f->idx, fd, 0, head, sizeof head, err));
    if (memcmp(head, idx_magic, sizeof idx_magic) != 0) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s' does not begin with MMIDIDX, as Megatron's .idx does", path);
    }
    if (u64_at(head + 9) != 1) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s' has version %llu; version 1 is read", path, (unsigned long long)u64_at(head + 9));
    }
    const unsigned code = head[17];
    if (code == 0 || code >= sizeof types / sizeof types[0] || types[code].bytes == 0) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s' holds elements of type code %u%s%s%s; whole numbers are wanted (codes 1 to 5 and 8)", path, code,
                       code == 6 || code == 7 ? " (" : "", code == 6 || code == 7 ? types[code].name : "", code == 6 || code == 7 ? ")" : "");
    }
    const uint64_t n_sequences = u64_at(head + 18), n_entries = u64_at(head + 26);
    const uint64_t most = (uint64_t)size;
    if (n_sequences > most / 12 || n_entries > most / 8 || n_entries == 0 ||
        IDX_HEADER_BYTES + 12 * n_sequences + 8 * n_entries > most) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s' has %lld bytes, too few for %llu sequences and %llu entries of documents (1 at least)", path,
                       (long long)size, (unsigned long long)n_sequences, (unsigned long long)n_entries);
    }
    const uint64_t need = IDX_HEADER_BYTES + 12 * n_sequences + 8 * n_entries;
    if (most != need && most != need + n_sequences) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s' has %lld bytes; %llu sequences and %llu entries of documents make %llu", path, (long long)size,
                       (unsigned long long)n_sequences, (unsigned long long)n_entries, (unsigned long long)need);
    }
    f->token_bytes = types[code].bytes;
    f->is_signed = types[code].is_signed;
    f->n_sequences = (int64_t)n_sequences;
    f->n_documents = (int64_t)n_entries - 1;
    f->lengths_at = IDX_HEADER_BYTES;
    f->pointers_at = f->lengths_at + 4 * f->n_sequences;
    f->documents_at = f->pointers_at + 8 * f->n_sequences;
    return CT_OK;
}

/* Every sequence lies in the .bin. */
static ct_status check_sequences(const cti_source *bin, int fd, cti_token_file *f, int32_t *lengths, int64_t *pointers, ct_err *err)
{
    for (int64_t first = 0; first < f->n_sequences; first += BLOCK_ROWS) {
        const int64_t n = cti_min_i64(BLOCK_ROWS, f->n_sequences - first);
        CT_TRY(cti_source_read(&f->idx, fd, f->lengths_at + 4 * first, lengths, (size_t)n * 4, err));
        CT_TRY(cti_source_read(&f->idx, fd, f->pointers_at + 8 * first, pointers, (size_t)n * 8, err));
        for (int64_t i = 0; i < n; i++) {
            const int64_t bytes = (int64_t)lengths[i] * f->token_bytes;
            if (lengths[i] < 0 || pointers[i] < 0 || pointers[i] > bin->stamp.size_bytes || bytes > bin->stamp.size_bytes - pointers[i]) {
                return CT_FAIL(err, CT_ERR_FORMAT, "'%s': sequence %lld is %d tokens of %d bytes at byte %lld; '%s' has %lld bytes", f->idx_path,
                               (long long)(first + i), lengths[i], f->token_bytes, (long long)pointers[i], bin->path,
                               (long long)bin->stamp.size_bytes);
            }
            f->n_tokens += lengths[i];
        }
    }
    return CT_OK;
}

/* Documents' sequences rise from 0 to all of them. */
static ct_status check_documents(int fd, const cti_token_file *f, int64_t *entries, ct_err *err)
{
    int64_t last = 0;
    const int64_t n_entries = f->n_documents + 1;
    for (int64_t first = 0; first < n_entries; first += BLOCK_ROWS) {
        const int64_t n = cti_min_i64(BLOCK_ROWS, n_entries - first);
        CT_TRY(cti_source_read(&f->idx, fd, f->documents_at + 8 * first, entries, (size_t)n * 8, err));
        for (int64_t i = 0; i < n; i++) {
            const bool is_end = first + i == n_entries - 1;
            if (entries[i] < last || entries[i] > f->n_sequences || (first + i == 0 && entries[i] != 0) || (is_end && entries[i] != f->n_sequences)) {
                return CT_FAIL(err, CT_ERR_FORMAT, "'%s': entry %lld of the documents is sequence %lld; they rise from 0 to the %lld sequences",
                               f->idx_path, (long long)(first + i), (long long)entries[i], (long long)f->n_sequences);
            }
            last = entries[i];
        }
    }
    return CT_OK;
}

ct_status cti_tokens_open_megatron(const ct_alloc *alloc, const cti_source *source, cti_token_file *out, ct_err *err)
{
    int fd = -1;
    int64_t *rows = NULL;
    int32_t *lengths = NULL;
    ct_status st;
    *out = (cti_token_file){0};
    CT_TRY(cti_tokens_idx_path(alloc, source->path, &out->idx_path, err));
    out->idx.path = out->idx_path;
    CT_TRY_GOTO(st, cti_data_open(out->idx_path, &fd, err), out);
    CT_TRY_GOTO(st, cti_stamp_take(out->idx_path, fd, &out->idx.stamp, err), out);
    CT_TRY_GOTO(st, read_header(fd, out, err), out);
    rows = ct_alloc_resize(alloc, NULL, BLOCK_ROWS, sizeof *rows, err);
    lengths = ct_alloc_resize(alloc, NULL, BLOCK_ROWS, sizeof *lengths, err);
    CT_TRY_GOTO(st, rows != NULL && lengths != NULL ? CT_OK : CT_ERR_MEMORY, out);
    CT_TRY_GOTO(st, check_sequences(source, fd, out, lengths, rows, err), out);
    st = check_documents(fd, out, rows, err);
out:
    ct_alloc_free(alloc, rows);
    ct_alloc_free(alloc, lengths);
    if (fd >= 0) {
        (void)close(fd); /* nothing was written */
    }
    return st; /* idx_path is the caller's to free */
}
