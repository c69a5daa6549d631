/* SPDX-License-Identifier: Apache-2.0 */
/* Documents and samples, and the processor that encodes text. */
#include "data/document.h"

const char *ct_bad_words(ct_bad bad)
{
    static const char *const words[] = {
#define CT_BAD_WORDS(NAME, text) [CT_BAD_##NAME] = text,
        CT_BAD_LIST(CT_BAD_WORDS)
#undef CT_BAD_WORDS
    };
    return words[bad];
}

void ct_document_init(ct_document *document, const ct_alloc *alloc)
{
    *document = (ct_document){.text = {.alloc = alloc}, .ids = {.alloc = alloc}};
}

void ct_document_deinit(ct_document *document)
{
    cti_str_deinit(&document->text);
    ct_tokens_deinit(&document->ids);
}

void ct_sample_init(ct_sample *sample, const ct_alloc *alloc)
{
    *sample = (ct_sample){.ids = {.alloc = alloc}, .labels = {.alloc = alloc}};
}

void ct_sample_deinit(ct_sample *sample)
{
    ct_tokens_deinit(&sample->ids);
    ct_tokens_deinit(&sample->labels);
}

static ct_status reserve(ct_tokens *ids, int64_t n, ct_err *err)
{
    if (n > ids->cap) {
        const int64_t cap = n > 2 * ids->cap ? n : 2 * ids->cap;
        int32_t *grown = ct_alloc_resize(ids->alloc, ids->ids, (size_t)cap, sizeof *grown, err);
        if (grown == NULL) {
            return CT_ERR_MEMORY;
        }
        ids->ids = grown;
        ids->cap = cap;
    }
    return CT_OK;
}

ct_status ct_tokens_push(ct_tokens *ids, int32_t id, ct_err *err)
{
    if (ids->n == ids->cap) {
        CT_TRY(reserve(ids, ids->n < 128 ? 256 : ids->n + 1, err));
    }
    ids->ids[ids->n++] = id;
    return CT_OK;
}

typedef struct text_state {
    const ct_alloc *alloc;
    ct_encoder *encoder; /* owns */
    unsigned flags;
} text_state;

static void close_text(void *state)
{
    text_state *s = state;
    ct_encoder_destroy(&s->encoder);
    ct_alloc_free(s->alloc, s);
}

static ct_status open_text(const void *ctx, const ct_alloc *alloc, void **out_state, ct_err *err)
{
    const ct_text_processor *text = ctx;
    text_state *s = CT_NEW(alloc, text_state, err);
    if (s == NULL) {
        return CT_ERR_MEMORY;
    }
    s->alloc = alloc;
    s->flags = text->flags;
    const ct_status st = ct_encoder_create(alloc, text->tokenizer, &s->encoder, err);
    if (st != CT_OK) {
        close_text(s);
        return st;
    }
    *out_state = s;
    return CT_OK;
}

static ct_status process_text(void *state, const ct_document *document, ct_sample *sample, ct_err *err)
{
    const text_state *s = state;
    switch (document->kind) {
    case CT_DOCUMENT_TEXT:
        return ct_encoder_encode(s->encoder, cti_str_text(&document->text), document->text.len, s->flags, &sample->ids, err);
    case CT_DOCUMENT_IDS:
        CT_TRY(reserve(&sample->ids, sample->ids.n + document->ids.n, err));
        if (document->ids.n > 0) {
            memcpy(sample->ids.ids + sample->ids.n, document->ids.ids, (size_t)document->ids.n * sizeof(int32_t));
        }
        sample->ids.n += document->ids.n;
        return CT_OK;
    case CT_DOCUMENT_RECORD:
    case CT_DOCUMENT_KIND_COUNT:
        break;
    }
    return CT_FAIL(err, CT_ERR_DATA, "a record of several members, text is wanted");
}

ct_processor ct_processor_of_text(const ct_text_processor *text)
{
    return (ct_processor){.ctx = text, .open = open_text, .close = close_text, .process = process_text};
}
