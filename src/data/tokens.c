/* SPDX-License-Identifier: Apache-2.0 */
/* Our files of tokens: what their header and offsets must be. */
#include "data/tokens.h"

#include <unistd.h>

#include "base/hash.h"
#include "base/num.h"
#include "data/data_internal.h"

_Static_assert(sizeof(cti_tokens_header) == CTI_TOKENS_HEADER_BYTES, "the header's form on disk");
const unsigned char cti_tokens_magic[8] = {0x89, 'C', 'T', 'O', 'K', '\r', '\n', 0x1a};
enum { SUMMED_FROM = 24, BLOCK = CTI_TOKENS_SUM_BLOCK_BYTES };

uint64_t cti_tokens_header_sum(const cti_tokens_header *header)
{
    return cti_hash64((const unsigned char *)header + SUMMED_FROM, sizeof *header - SUMMED_FROM, CTI_TOKENS_VERSION);
}

/* Where the offsets begin; false where the header's numbers fit no file. */
static bool lay_out(const cti_tokens_header *h, int64_t *out_offsets_at)
{
    int64_t tokens, offsets, end;
    if (h->n_tokens < 0 || h->n_documents < 0 || h->n_documents == INT64_MAX || h->n_tokens > INT64_MAX / 8 ||
        !cti_mul_i64(h->n_tokens, h->token_bytes, &tokens) || !cti_mul_i64(h->n_documents + 1, 8, &offsets) ||
        !cti_add_i64(cti_round_up(CTI_TOKENS_HEADER_BYTES + tokens, 8), offsets, &end)) {
        return false;
    }
    *out_offsets_at = end - offsets;
    return end == h->file_bytes;
}

static ct_status check_header(const cti_source *source, const cti_tokens_header *h, int64_t *out_offsets_at, ct_err *err)
{
    const char *path = source->path;
    if (memcmp(h->magic, cti_tokens_magic, sizeof h->magic) != 0) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s' is no .ctok file by its first 8 bytes", path);
    }
    if (h->version != CTI_TOKENS_VERSION || h->header_bytes != CTI_TOKENS_HEADER_BYTES) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s' has version %u with a header of %u bytes; version %d with %d is wanted", path, h->version,
                       h->header_bytes, CTI_TOKENS_VERSION, CTI_TOKENS_HEADER_BYTES);
    }
    if (cti_tokens_header_sum(h) != h->header_sum) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': the check sum of its header is wrong", path);
    }
    if (h->token_bytes != 2 && h->token_bytes != 4) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s' has %u bytes a token; 2 or 4 are wanted", path, h->token_bytes);
    }
    if (h->vocab_size < 0 || h->vocab_size > (h->token_bytes == 2 ? INT64_C(65536) : INT64_C(2147483648))) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s' has a vocabulary of %lld, which %u bytes a token do not hold", path, (long long)h->vocab_size,
                       h->token_bytes);
    }
    if (!lay_out(h, out_offsets_at)) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': %lld tokens of %u bytes and %lld documents do not make %lld bytes", path,
                       (long long)h->n_tokens, h->token_bytes, (long long)h->n_documents, (long long)h->file_bytes);
    }
    if (h->file_bytes != source->stamp.size_bytes) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s' is %s: it has %lld bytes, %lld are wanted by its header", path,
                       source->stamp.size_bytes < h->file_bytes ? "cut off" : "too long", (long long)source->stamp.size_bytes,
                       (long long)h->file_bytes);
    }
    return CT_OK;
}

/* Hands [begin, end) of a file over in blocks; see: false stops. */
static ct_status each_block(const cti_source *source, int fd, int64_t begin, int64_t end,
                            bool (*see)(void *ctx, const unsigned char *block, size_t size), void *ctx, ct_err *err)
{
    unsigned char *block = ct_alloc_resize(ct_alloc_system(), NULL, BLOCK, 1, err);
    ct_status st = block != NULL ? CT_OK : CT_ERR_MEMORY;
    bool goes_on = true;
    for (int64_t at = begin; st == CT_OK && goes_on && at < end; at += BLOCK) {
        const size_t n = (size_t)cti_min_i64(BLOCK, end - at);
        st = cti_source_read(source, fd, at, block, n, err);
        goes_on = st == CT_OK && see(ctx, block, n);
    }
    ct_alloc_free(ct_alloc_system(), block);
    return st;
}

typedef struct rising {
    uint64_t sum;
    int64_t n, last, limit;
    bool is_wrong;
} rising;

static bool see_offsets(void *ctx, const unsigned char *block, size_t size)
{
    rising *r = ctx;
    r->sum = cti_hash64(block, size, r->sum);
    for (size_t i = 0; i < size && !r->is_wrong; i += 8, r->n++) {
        int64_t offset;
        memcpy(&offset, block + i, sizeof offset);
        r->is_wrong = offset < r->last || offset > r->limit || (r->n == 0 && offset != 0);
        r->last = offset;
    }
    return !r->is_wrong;
}

ct_status cti_tokens_open_own(const cti_source *source, int fd, cti_token_file *out, ct_err *err)
{
    cti_tokens_header h;
    if (source->stamp.size_bytes < (int64_t)sizeof h) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s' has %lld bytes; the header of a .ctok file has %zu", source->path,
                       (long long)source->stamp.size_bytes, sizeof h);
    }
    CT_TRY(cti_source_read(source, fd, 0, &h, sizeof h, err));
    int64_t offsets_at = 0;
    CT_TRY(check_header(source, &h, &offsets_at, err));
    rising r = {.limit = h.n_tokens};
    CT_TRY(each_block(source, fd, offsets_at, h.file_bytes, see_offsets, &r, err));
    if (r.is_wrong || r.last != h.n_tokens) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': the offset of document %lld is wrong: they rise from 0 to the %lld tokens", source->path,
                       (long long)(r.is_wrong ? r.n - 1 : r.n), (long long)h.n_tokens);
    }
    if (r.sum != h.offsets_sum) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s': the check sum of its offsets is wrong", source->path);
    }
    *out = (cti_token_file){.token_bytes = (int)h.token_bytes,
                            .n_tokens = h.n_tokens,
                            .n_documents = h.n_documents,
                            .tokens_at = CTI_TOKENS_HEADER_BYTES,
                            .offsets_at = offsets_at,
                            .header = h};
    return CT_OK;
}

static bool see_tokens(void *ctx, const unsigned char *block, size_t size)
{
    uint64_t *sum = ctx;
    *sum = cti_hash64(block, size, *sum);
    return true;
}

ct_status cti_tokens_verify(const cti_source *source, const cti_token_file *file, ct_err *err)
{
    int fd;
    uint64_t sum = 0;
    CT_TRY(cti_source_open(source, &fd, err));
    const ct_status st = each_block(source, fd, file->tokens_at, file->tokens_at + file->n_tokens * file->token_bytes, see_tokens, &sum, err);
    (void)close(fd); /* nothing was written */
    CT_TRY(st);
    return sum == file->header.tokens_sum ? CT_OK : CT_FAIL(err, CT_ERR_FORMAT, "'%s': the check sum of its tokens is wrong", source->path);
}

void cti_token_file_deinit(const ct_alloc *alloc, cti_token_file *file)
{
    ct_alloc_free(alloc, file->idx_path);
    file->idx_path = NULL;
}

/* --- llm.c: 256 int32, of which the first three are magic, version and the number of tokens; then the tokens --- */

enum { LLMC_HEADER_BYTES = 1024 };
static const struct {
    int32_t magic, version, token_bytes, begin_id;
} llmc_kinds[] = {{20240520, 1, 2, 50256}, {20240801, 7, 4, 128000}};

bool cti_tokens_is_llmc(const unsigned char *bytes, size_t size)
{
    int32_t magic = 0;
    if (size >= sizeof magic) {
        memcpy(&magic, bytes, sizeof magic);
    }
    return magic == llmc_kinds[0].magic || magic == llmc_kinds[1].magic;
}

ct_status cti_tokens_open_llmc(const cti_source *source, int fd, int32_t *begin_id, cti_token_file *out, ct_err *err)
{
    int32_t head[3];
    const int64_t size = source->stamp.size_bytes;
    if (size < LLMC_HEADER_BYTES) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s' has %lld bytes; the header of an llm.c file has %d", source->path, (long long)size,
                       LLMC_HEADER_BYTES);
    }
    CT_TRY(cti_source_read(source, fd, 0, head, sizeof head, err));
    const int kind = head[0] == llmc_kinds[0].magic ? 0 : 1;
    if (head[1] != llmc_kinds[kind].version) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s' is an llm.c file %d of version %d; version %d is read", source->path, head[0], head[1],
                       llmc_kinds[kind].version);
    }
    const int64_t wanted = LLMC_HEADER_BYTES + (int64_t)head[2] * llmc_kinds[kind].token_bytes;
    if (head[2] < 0 || wanted != size) {
        return CT_FAIL(err, CT_ERR_FORMAT, "'%s' has %lld bytes; its header tells of %d tokens of %d bytes, which are %lld", source->path,
                       (long long)size, head[2], llmc_kinds[kind].token_bytes, (long long)wanted);
    }
    *begin_id = *begin_id != 0 ? *begin_id : llmc_kinds[kind].begin_id;
    *out = (cti_token_file){
        .token_bytes = llmc_kinds[kind].token_bytes, .n_tokens = head[2], .tokens_at = LLMC_HEADER_BYTES};
    return CT_OK;
}

typedef struct borders {
    const ct_alloc *alloc;
    int64_t *offsets; /* owns */
    int64_t n, cap, at;
    int token_bytes;
    int32_t begin_id;
    ct_err *err;
    bool failed;
} borders;

static bool see_borders(void *ctx, const unsigned char *block, size_t size)
{
    borders *b = ctx;
    for (size_t i = 0; i < size; i += (size_t)b->token_bytes, b->at++) {
        uint16_t narrow;
        uint32_t id;
        if (b->token_bytes == 2) {
            memcpy(&narrow, block + i, sizeof narrow);
            id = narrow;
        } else {
            memcpy(&id, block + i, sizeof id);
        }
        if (id != (uint32_t)b->begin_id && b->at > 0) {
            continue;
        }
        if (b->n == b->cap) {
            const int64_t cap = b->cap == 0 ? 1024 : 2 * b->cap;
            int64_t *grown = ct_alloc_resize(b->alloc, b->offsets, (size_t)cap, sizeof *grown, b->err);
            if (grown == NULL) {
                b->failed = true;
                return false;
            }
            b->offsets = grown;
            b->cap = cap;
        }
        b->offsets[b->n++] = b->at;
    }
    return true;
}

ct_status cti_tokens_index_llmc(const ct_alloc *alloc, const cti_source *source, int fd, const cti_token_file *file, int32_t begin_id,
                                cti_index *out_index, ct_err *err)
{
    borders b = {.alloc = alloc, .token_bytes = file->token_bytes, .begin_id = begin_id, .err = err};
    ct_status st = each_block(source, fd, file->tokens_at, source->stamp.size_bytes, see_borders, &b, err);
    st = st == CT_OK && b.failed ? CT_ERR_MEMORY : st;
    if (st == CT_OK) {
        st = cti_source_check(source, fd, err);
    }
    if (st != CT_OK) {
        ct_alloc_free(alloc, b.offsets);
        return st;
    }
    *out_index = (cti_index){.offsets = b.offsets, .own_offsets = b.offsets, .n = b.n, .size_bytes = file->n_tokens};
    return CT_OK;
}
