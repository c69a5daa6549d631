/* SPDX-License-Identifier: Apache-2.0 */
/* embedding and its gradient; ids of a shared vocabulary. */
#include <inttypes.h>

#include "backend/cpu/isa/cpu_vector.h"
#include "base/pool.h"

static ct_status check_ids(const char *op, const ct_tensor *ids, int64_t vocab, ct_err *err)
{
    const int32_t *id = ids->data;
    const int64_t n = t_numel(ids);
    for (int64_t t = 0; t < n; t++) {
        if (id[t] != CT_ID_ELSEWHERE && (id[t] < 0 || id[t] >= vocab)) {
            return CT_FAIL(err, CT_ERR_RANGE, "%s: id %" PRId32 " of token %" PRId64 " is outside [0, %" PRId64 ")", op, id[t], t,
                           vocab);
        }
    }
    return CT_OK;
}

/* Asks for the row of a token that comes soon: nothing else would see it coming. */
CTI_INLINE void ask_ahead(const ct_launch *l, int64_t t, int64_t end, int64_t row)
{
    enum { SOON = 2 };
    const int32_t *id = l->in[1].data;
    if (t + SOON < end && id[t + SOON] != CT_ID_ELSEWHERE) {
        const char *soon = (const char *)l->in[0].data + id[t + SOON] * row;
        for (int64_t i = 0; i < row; i += 64) {
            __builtin_prefetch(soon + i);
        }
    }
}

/* Rows that are written past the caches, as f32 words whatever they are. */
CTI_INLINE void copy_rows(const ct_launch *l, int64_t first, int64_t end, const int64_t words, const int how)
{
    const int32_t *id = l->in[1].data;
    for (int64_t t = first; t < end; t++) {
        ask_ahead(l, t, end, words * (int64_t)sizeof(float));
        if (id[t] == CT_ID_ELSEWHERE) {
            memset((float *)l->out[0].data + t * words, 0, (size_t)words * sizeof(float));
            continue;
        }
        FOR_VECTORS(0, words, i, n, v_set(l->out[0].data, t * words + i, n, v_get(l->in[0].data, id[t] * words + i, n, 0), how);)
    }
}

static void copy_tokens(void *ctx, int64_t first, int64_t end, int thread)
{
    const ct_launch *launch = ctx;
    const ct_tensor *w = &launch->in[0], *y = &launch->out[0];
    const int32_t *id = launch->in[1].data;
    const int64_t row = t_last(w) * (int64_t)ct_dtype_size_bytes(w->dtype);
    (void)thread;
    if (row % (int64_t)sizeof(vf) == 0 && how_of(launch, 0, t_last(w)) & CTI_PAST) {
        copy_rows(launch, first, end, row / 4, CTI_PAST);
        v_fence();
        return;
    }
    for (int64_t t = first; t < end; t++) {
        ask_ahead(launch, t, end, row);
        if (id[t] == CT_ID_ELSEWHERE) {
            memset((char *)y->data + t * row, 0, (size_t)row);
        } else {
            memcpy((char *)y->data + t * row, (const char *)w->data + id[t] * row, (size_t)row);
        }
    }
}

ct_status CTI_CPU_FN(embedding)(const ct_launch *launch, ct_err *err)
{
    const ct_tensor *w = &launch->in[0], *ids = &launch->in[1];
    CT_TRY(check_ids("embedding", ids, w->dims[0], err));
    cti_pool_run(t_numel(ids), grain_of(t_last(w)), copy_tokens, (void *)launch); /* only read */
    return CT_OK;
}

size_t CTI_CPU_WORKSPACE(embedding_grad)(const ct_launch *shapes)
{
    return (size_t)(t_numel(&shapes->in[1]) + shapes->out[0].dims[0] + 1) * sizeof(int32_t);
}

typedef struct grad_run {
    const ct_tensor *dy, *dw;
    const int32_t *start;  /* [vocab + 1]: id v's tokens are tokens[start[v] .. start[v + 1]) */
    const int32_t *tokens; /* by id, in order; n_tokens of them */
    int64_t n_tokens;
    int how;               /* dw is written */
} grad_run;

/* n columns from `at` on of row v, which has tokens: the sum over them in order. Rows of tokens that come soon, also of the next ids, are
 * asked for ahead, for nothing else would see them coming. */
CTI_INLINE void sum_tokens(const grad_run *r, int64_t v, int64_t at, int64_t n, float *sum, const int how)
{
    enum { SOON = 4 };
    const int64_t d = t_last(r->dw), size = how & CTI_IS_BF16 ? 2 : 4;
    for (int64_t i = r->start[v]; i < r->start[v + 1]; i++) {
        const int64_t first = r->tokens[i] * d + at;
        const char *soon = (const char *)r->dy->data + (r->tokens[cti_min_i64(i + SOON, r->n_tokens - 1)] * d + at) * size;
        const bool is_first = i == r->start[v];
        FOR_VECTORS(0, n, c, k, {
            __builtin_prefetch(soon + c * size);
            v_set(sum, c, k, (is_first ? (vf){0} : v_get(sum, c, k, 0)) + v_get(r->dy->data, first + c, k, how), 0);
        })
    }
}

/* Rows [begin, end) of dw, each over blocks of its columns. `how`: of dw. */
CTI_INLINE void grad_span(const grad_run *r, int64_t begin, int64_t end, const int how)
{
    const int64_t d = t_last(r->dw);
    void *dw = r->dw->data;
    for (int64_t v = begin; v < end; v++) {
        for (int64_t i = 0; i < d; i += CTI_BLOCK) {
            float sum[CTI_BLOCK];
            const int64_t n = cti_min_i64(CTI_BLOCK, d - i);
            if (r->start[v] == r->start[v + 1]) {
                FOR_VECTORS(0, n, c, k, v_set(dw, v * d + i + c, k, (vf){0}, how);)
                continue;
            }
            if (r->dy->dtype == CT_DTYPE_BF16) {
                sum_tokens(r, v, i, n, sum, CTI_IS_BF16);
            } else {
                sum_tokens(r, v, i, n, sum, 0);
            }
            FOR_VECTORS(0, n, c, k, v_set(dw, v * d + i + c, k, v_get(sum, c, k, 0), how);)
        }
    }
}

static void grad_rows(void *ctx, int64_t begin, int64_t end, int thread)
{
    const grad_run *r = ctx;
    (void)thread;
    CTI_HOW(r->how, grad_span, r, begin, end);
    v_fence();
}

/* The tokens are sorted by id, so that threads can share the rows of dw and each row still is summed in order of tokens. */
ct_status CTI_CPU_FN(embedding_grad)(const ct_launch *launch, ct_err *err)
{
    const ct_tensor *dy = &launch->in[0], *ids = &launch->in[1], *dw = &launch->out[0];
    const int64_t tokens = t_numel(ids), vocab = dw->dims[0];
    CT_TRY(check_floats("embedding_grad", "input", launch->in, 1, err));
    CT_TRY(check_scratch("embedding_grad", launch, CTI_CPU_WORKSPACE(embedding_grad)(launch), err));
    CT_TRY(check_ids("embedding_grad", ids, vocab, err));
    const int32_t *id = ids->data;
    int32_t *start = launch->workspace, *sorted = start + vocab + 1, total = 0;
    memset(start, 0, (size_t)(vocab + 1) * sizeof *start);
    for (int64_t t = 0; t < tokens; t++) {
        if (id[t] != CT_ID_ELSEWHERE) {
            start[id[t]]++;
        }
    }
    for (int64_t v = 0; v <= vocab; v++) { /* ends; taking the last token first makes them starts */
        total += start[v];
        start[v] = total;
    }
    for (int64_t t = tokens - 1; t >= 0; t--) {
        if (id[t] != CT_ID_ELSEWHERE) {
            sorted[--start[id[t]]] = (int32_t)t;
        }
    }
    grad_run r = {dy, dw, start, sorted, total, how_of(launch, 0, t_last(dw))};
    cti_pool_run(vocab, grain_of(t_last(dw)), grad_rows, &r);
    return CT_OK;
}

ct_status CTI_CPU_FN(local_ids)(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_attrs_local_ids *a = launch->attrs;
    const int32_t *id = launch->in[0].data;
    int32_t *out = launch->out[0].data;
    const int64_t n = t_numel(&launch->in[0]);
    for (int64_t t = 0; t < n; t++) {
        const int64_t at = id[t] - a->start;
        out[t] = id[t] == -100 ? -100 : id[t] >= 0 && at >= 0 && at < a->count ? (int32_t)at : CT_ID_ELSEWHERE;
    }
    return CT_OK;
}
