/* SPDX-License-Identifier: Apache-2.0 */
/* Many documents on several threads. Documents are cut and grouped into tasks of about the same size; each task has ids of its own,
 * which are put together in the documents' order, so that the result does not depend on who did what. */
#include "base/pool.h"
#include "tokenizer/tokenizer_internal.h"

enum { TASK_BYTES = 1 << 18 };

/* A document, or a part of a long one. */
typedef struct part {
    int64_t text;
    size_t from, to;
} part;

typedef struct task {
    int64_t first, end; /* of parts */
    ct_tokens tokens;   /* owns ids */
    ct_status status;
    int64_t failed; /* text */
    ct_err err;
} task;

struct ct_batch_encoder {
    const ct_alloc *alloc;   /* borrows */
    const ct_tokenizer *tok; /* borrows */
    int n_threads;
    ct_encoder **encoders; /* own: one a thread */
    part *parts;           /* owns */
    int64_t n_parts, cap_parts;
    task *tasks; /* owns */
    int64_t n_tasks, cap_tasks;
};

/* What the tasks of one call share. */
typedef struct batch {
    ct_batch_encoder *encoder;
    const ct_text *texts;
    unsigned flags;
    int64_t *ends;
} batch;

ct_status ct_batch_encoder_create(const ct_alloc *alloc, const ct_tokenizer *tokenizer, int n_threads, ct_batch_encoder **out_encoder,
                                  ct_err *err)
{
    ct_batch_encoder *b = CT_NEW(alloc, ct_batch_encoder, err);
    if (b == NULL) {
        return CT_ERR_MEMORY;
    }
    b->alloc = alloc;
    b->tok = tokenizer;
    b->n_threads = n_threads > 0 && n_threads < cti_pool_threads() ? n_threads : cti_pool_threads();
    b->encoders = CT_NEW_ARRAY(alloc, ct_encoder *, b->n_threads, err);
    ct_status st = b->encoders ? CT_OK : CT_ERR_MEMORY;
    for (int i = 0; i < b->n_threads && st == CT_OK; i++) {
        st = ct_encoder_create(alloc, tokenizer, &b->encoders[i], err);
    }
    if (st != CT_OK) {
        ct_batch_encoder_destroy(&b);
        return st;
    }
    *out_encoder = b;
    return CT_OK;
}

void ct_batch_encoder_destroy(ct_batch_encoder **encoder)
{
    ct_batch_encoder *b = *encoder;
    if (b == NULL) {
        return;
    }
    for (int i = 0; i < b->n_threads && b->encoders != NULL; i++) {
        ct_encoder_destroy(&b->encoders[i]);
    }
    ct_alloc_free(b->alloc, b->encoders);
    for (int64_t i = 0; i < b->cap_tasks; i++) {
        ct_alloc_free(b->alloc, b->tasks[i].tokens.ids);
    }
    ct_alloc_free(b->alloc, b->tasks);
    ct_alloc_free(b->alloc, b->parts);
    ct_alloc_free(b->alloc, b);
    *encoder = NULL;
}

static ct_status push_part(ct_batch_encoder *b, part p, ct_err *err)
{
    if (b->n_parts == b->cap_parts) {
        const int64_t cap = b->cap_parts ? 2 * b->cap_parts : 256;
        part *parts = ct_alloc_resize(b->alloc, b->parts, (size_t)cap, sizeof *parts, err);
        if (parts == NULL) {
            return CT_ERR_MEMORY;
        }
        b->parts = parts;
        b->cap_parts = cap;
    }
    b->parts[b->n_parts++] = p;
    return CT_OK;
}

static ct_status push_task(ct_batch_encoder *b, int64_t first, int64_t end, ct_err *err)
{
    if (b->n_tasks == b->cap_tasks) {
        const int64_t cap = b->cap_tasks ? 2 * b->cap_tasks : 64;
        task *tasks = ct_alloc_resize(b->alloc, b->tasks, (size_t)cap, sizeof *tasks, err);
        if (tasks == NULL) {
            return CT_ERR_MEMORY;
        }
        for (int64_t i = b->cap_tasks; i < cap; i++) {
            tasks[i] = (task){.tokens = {.alloc = b->alloc}};
        }
        b->tasks = tasks;
        b->cap_tasks = cap;
    }
    task *t = &b->tasks[b->n_tasks++];
    t->first = first;
    t->end = end;
    t->tokens.n = t->tokens.n_dropped = 0;
    t->status = CT_OK;
    t->err = (ct_err){0};
    return CT_OK;
}

static ct_status lay_out(ct_batch_encoder *b, const ct_text *texts, int64_t n, ct_err *err)
{
    b->n_parts = b->n_tasks = 0;
    int64_t first = 0;
    size_t size = 0; /* of the task being filled */
    for (int64_t i = 0; i < n; i++) {
        size_t from = 0;
        do {
            const size_t to = texts[i].size - from <= TASK_BYTES ? texts[i].size : cti_cut(b->tok, texts[i].data, texts[i].size, from + TASK_BYTES);
            CT_TRY(push_part(b, (part){.text = i, .from = from, .to = to}, err));
            size += to - from;
            from = to;
            if (size >= TASK_BYTES) {
                CT_TRY(push_task(b, first, b->n_parts, err));
                first = b->n_parts;
                size = 0;
            }
        } while (from < texts[i].size);
    }
    return first < b->n_parts ? push_task(b, first, b->n_parts, err) : CT_OK;
}

static void run_tasks(void *ctx, int64_t first, int64_t end, int thread)
{
    const batch *run = ctx;
    const ct_batch_encoder *b = run->encoder;
    cti_scratch *scratch = cti_encoder_scratch(b->encoders[thread]);
    for (int64_t i = first; i < end; i++) {
        task *t = &b->tasks[i];
        for (int64_t k = t->first; k < t->end && t->status == CT_OK; k++) {
            const part *p = &b->parts[k];
            const ct_text *text = &run->texts[p->text];
            t->failed = p->text;
            if (p->from == 0) {
                t->status = cti_encode_before(b->tok, run->flags, &t->tokens, &t->err);
            }
            if (t->status == CT_OK && p->to > p->from) {
                t->status = cti_encode_text(b->tok, scratch, text->data + p->from, p->to - p->from, p->from, run->flags, &t->tokens, &t->err);
            }
            if (t->status == CT_OK && p->to == text->size) {
                t->status = cti_encode_after(b->tok, run->flags, &t->tokens, &t->err);
                if (run->ends != NULL) {
                    run->ends[p->text] = t->tokens.n; /* of the task, for now */
                }
            }
        }
    }
}

ct_status ct_batch_encoder_encode(ct_batch_encoder *b, const ct_text *texts, int64_t n, unsigned flags, ct_tokens *tokens, int64_t *ends,
                                  ct_err *err)
{
    CT_TRY(lay_out(b, texts, n, err));
    batch run = {.encoder = b, .texts = texts, .flags = flags, .ends = ends};
    cti_pool_tasks(b->n_tasks, b->n_threads, run_tasks, &run);
    int64_t n_ids = 0;
    for (int64_t i = 0; i < b->n_tasks; i++) {
        const task *t = &b->tasks[i];
        if (t->status != CT_OK) {
            if (err != NULL) {
                *err = t->err;
            }
            ct_err_prefix(err, "document %lld", (long long)t->failed);
            return t->status;
        }
        n_ids += t->tokens.n;
    }
    CT_TRY(ct_tokens_reserve(tokens, n_ids, err));
    for (int64_t i = 0; i < b->n_tasks; i++) {
        const task *t = &b->tasks[i];
        for (int64_t k = t->first; k < t->end && ends != NULL; k++) {
            if (b->parts[k].to == texts[b->parts[k].text].size) {
                ends[b->parts[k].text] += tokens->n;
            }
        }
        if (t->tokens.n > 0) {
            memcpy(tokens->ids + tokens->n, t->tokens.ids, (size_t)t->tokens.n * sizeof *tokens->ids);
        }
        tokens->n += t->tokens.n;
        tokens->n_dropped += t->tokens.n_dropped;
    }
    return CT_OK;
}
