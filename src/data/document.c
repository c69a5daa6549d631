/* SPDX-License-Identifier: Apache-2.0 */
/* Documents and samples, and the processor that encodes text. */
#include "base/hash.h"
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
        CT_TRY(ct_tokens_reserve(&sample->ids, document->ids.n, err));
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

/* Words, digits, blanks, punctuation, contractions, scripts, marks, emoji: what rules of splitting and merging treat in their own ways. */
static const char probe[] =
    "The quick brown fox doesn't jump over 13 lazy dogs, it'll wait;  two  blanks\tand\r\nlines.\n\n  1234567890 3.14e-10 (x+y)*z != 0x1F\n"
    "\xc3\x9c" "ber na\xc3\xaf" "ve caf\xc3\xa9 e\xcc\x81 \xd0\x9f\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82 \xe4\xb8\xad\xe6\x96\x87"
    "\xe3\x81\x8b\xe3\x82\xab\xef\xbc\xa1 \xd8\xb3\xd9\x84\xd8\xa7\xd9\x85 \xf0\x9f\x98\x80\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb\xc2\xa0|\n"
    "def f(a_b, *args): return {\"k\": [a_b]*2}  # TODO https://example.org/?q=1&r=%20\n<|begin_of_text|><s>[INST]</s>\n";

static ct_status add_ids(const ct_text_processor *text, const cti_str *words, ct_tokens *ids, uint64_t *hash, ct_err *err)
{
    ct_err why = {0};
    CT_TRY(cti_str_check(words, err));
    ids->n = 0;
    const ct_status st = ct_tokenizer_encode(text->tokenizer, cti_str_text(words), words->len, text->flags, ids, &why);
    if (st == CT_ERR_DATA) { /* a vocabulary that cannot express the words is known by its tokens */
        return CT_OK;
    }
    *hash = cti_hash64(ids->ids, (size_t)ids->n * sizeof(int32_t), *hash);
    return st == CT_OK ? CT_OK : CT_FAIL(err, st, "%s", why.message);
}

static int by_id(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Each added token, by id, within a word, between blanks, in other case: how it is matched shows. */
static ct_status add_added(const ct_tokenizer *t, ct_tokens *ids, cti_str *words, ct_err *err)
{
    ids->n = 0;
    for (int32_t i = 0, id; (id = ct_tokenizer_added_id(t, i)) >= 0; i++) {
        CT_TRY(ct_tokens_push(ids, id, err));
    }
    if (ids->n > 0) {
        qsort(ids->ids, (size_t)ids->n, sizeof *ids->ids, by_id);
    }
    for (int64_t i = 0; i < ids->n; i++) {
        size_t size = 0;
        const char *token = ct_tokenizer_token_of(t, ids->ids[i], &size);
        cti_str_add(words, "x");
        cti_str_add_n(words, token, size);
        cti_str_add(words, "y  ");
        cti_str_add_n(words, token, size);
        cti_str_add(words, "  z ");
        for (size_t k = 0; k < size; k++) {
            cti_str_printf(words, "%c", token[k] >= 'A' && token[k] <= 'Z' ? token[k] | 0x20 : token[k]);
        }
        for (size_t k = 0; k < size; k++) {
            cti_str_printf(words, "%c", token[k] >= 'a' && token[k] <= 'z' ? token[k] & ~0x20 : token[k]);
        }
        cti_str_add(words, "\n");
    }
    return CT_OK;
}

ct_status ct_text_processor_hash(const ct_alloc *alloc, const ct_text_processor *text, uint64_t *out_hash, ct_err *err)
{
    const ct_tokenizer *t = text->tokenizer;
    ct_tokens ids = {.alloc = alloc}, all = {.alloc = alloc};
    cti_str words = {.alloc = alloc};
    ct_status st = CT_OK;
    const int32_t n = ct_tokenizer_vocab_size(t);
    const int32_t facts[] = {(int32_t)text->flags, n, ct_tokenizer_bos_id(t), ct_tokenizer_eos_id(t)};
    uint64_t hash = cti_hash64(facts, sizeof facts, 2);
    for (int32_t id = 0; id < n; id++) {
        size_t size = 0;
        const char *token = ct_tokenizer_token_of(t, id, &size);
        hash = token != NULL ? cti_hash64(token, size, hash) : hash + 1;
        if (token != NULL) {
            CT_TRY_GOTO(st, ct_tokens_push(&all, id, err), out);
        }
    }
    cti_str_add_n(&words, probe, sizeof probe - 1);
    CT_TRY_GOTO(st, add_ids(text, &words, &ids, &hash, err), out);
    cti_str_reset(&words);
    CT_TRY_GOTO(st, add_added(t, &ids, &words, err), out);
    CT_TRY_GOTO(st, add_ids(text, &words, &ids, &hash, err), out);
    cti_str_reset(&words);
    CT_TRY_GOTO(st, ct_tokenizer_decode(t, all.ids, all.n, 0, &words, err), out); /* merges, scores: all tokens as one text */
    CT_TRY_GOTO(st, add_ids(text, &words, &ids, &hash, err), out);
    *out_hash = hash != 0 ? hash : 1;
out:
    ct_tokens_deinit(&ids);
    ct_tokens_deinit(&all);
    cti_str_deinit(&words);
    return st;
}
