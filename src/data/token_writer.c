/* SPDX-License-Identifier: Apache-2.0 */
/* Writing one file of tokens. */
#include "data/token_writer.h"

#include "base/hash.h"
#include "base/num.h"

enum { BLOCK = CTI_TOKENS_SUM_BLOCK_BYTES };

static ct_status add_offset(cti_token_writer *w, ct_err *err)
{
    const int64_t n = w->header.n_documents;
    if (n == w->cap_offsets) {
        const int64_t cap = w->cap_offsets == 0 ? 1024 : 2 * w->cap_offsets;
        int64_t *grown = ct_alloc_resize(w->alloc, w->offsets, (size_t)cap, sizeof *grown, err);
        if (grown == NULL) {
            return CT_ERR_MEMORY;
        }
        w->offsets = grown;
        w->cap_offsets = cap;
    }
    w->offsets[n] = w->header.n_tokens;
    return CT_OK;
}

ct_status cti_token_writer_open(cti_token_writer *w, const ct_alloc *alloc, const char *path, const cti_tokens_header *header, ct_err *err)
{
    *w = (cti_token_writer){.alloc = alloc, .output = {.fd = -1}, .header = *header};
    memcpy(w->header.magic, cti_tokens_magic, sizeof w->header.magic);
    w->header.version = CTI_TOKENS_VERSION;
    w->header.header_bytes = CTI_TOKENS_HEADER_BYTES;
    w->block = ct_alloc_resize(alloc, NULL, BLOCK, 1, err);
    if (w->block == NULL) {
        return CT_ERR_MEMORY;
    }
    static const unsigned char zeros[CTI_TOKENS_HEADER_BYTES];
    CT_TRY(cti_output_open(&w->output, alloc, path, err));
    return cti_output_add(&w->output, zeros, sizeof zeros, err); /* the header comes last */
}

static ct_status flush(cti_token_writer *w, ct_err *err)
{
    if (w->n_block == 0) {
        return CT_OK;
    }
    w->header.tokens_sum = cti_hash64(w->block, w->n_block, w->header.tokens_sum);
    CT_TRY(cti_output_add(&w->output, w->block, w->n_block, err));
    w->n_block = 0;
    return CT_OK;
}

ct_status cti_token_writer_add(cti_token_writer *w, const int32_t *ids, int64_t n, ct_err *err)
{
    CT_TRY(add_offset(w, err));
    w->header.n_documents++;
    w->header.n_tokens += n;
    for (int64_t i = 0; i < n; i++) {
        if (w->header.token_bytes == 2) {
            const uint16_t id = (uint16_t)ids[i];
            memcpy(w->block + w->n_block, &id, sizeof id);
        } else {
            memcpy(w->block + w->n_block, &ids[i], sizeof ids[i]);
        }
        w->n_block += w->header.token_bytes;
        if (w->n_block == BLOCK) {
            CT_TRY(flush(w, err));
        }
    }
    return CT_OK;
}

ct_status cti_token_writer_finish(cti_token_writer *w, bool is_last, ct_err *err)
{
    static const unsigned char zeros[8];
    cti_tokens_header *h = &w->header;
    CT_TRY(flush(w, err));
    CT_TRY(add_offset(w, err));
    CT_TRY(cti_output_add(&w->output, zeros, (size_t)(cti_round_up(w->output.size, 8) - w->output.size), err));
    const size_t size = (size_t)(h->n_documents + 1) * sizeof(int64_t);
    for (size_t at = 0; at < size; at += BLOCK) {
        const size_t n = size - at < BLOCK ? size - at : BLOCK;
        h->offsets_sum = cti_hash64((const char *)w->offsets + at, n, h->offsets_sum);
        CT_TRY(cti_output_add(&w->output, (const char *)w->offsets + at, n, err));
    }
    h->flags = is_last ? CTI_TOKENS_LAST : 0;
    h->file_bytes = w->output.size;
    h->header_sum = cti_tokens_header_sum(h);
    CT_TRY(cti_output_put(&w->output, 0, h, sizeof *h, err));
    return cti_output_finish(&w->output, err);
}

void cti_token_writer_deinit(cti_token_writer *w)
{
    cti_output_deinit(&w->output);
    if (w->alloc != NULL) {
        ct_alloc_free(w->alloc, w->block);
        ct_alloc_free(w->alloc, w->offsets);
    }
    *w = (cti_token_writer){.output = {.fd = -1}};
}
