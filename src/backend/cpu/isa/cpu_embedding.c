/* SPDX-License-Identifier: Apache-2.0 */
/* embedding and its gradient. */
#include <inttypes.h>

#include "backend/cpu/isa/cpu_kernel.h"
#include "base/pool.h"

static ct_status check_ids(const char *op, const ct_tensor *ids, int64_t vocab, ct_err *err)
{
    const int32_t *id = ids->data;
    const int64_t n = t_numel(ids);
    for (int64_t t = 0; t < n; t++) {
        if (id[t] < 0 || id[t] >= vocab) {
            return CT_FAIL(err, CT_ERR_RANGE, "%s: id %" PRId32 " of token %" PRId64 " is outside [0, %" PRId64 ")", op, id[t], t,
                           vocab);
        }
    }
    return CT_OK;
}

static void copy_tokens(void *ctx, int64_t first, int64_t end, int thread)
{
    const ct_launch *launch = ctx;
    const ct_tensor *w = &launch->in[0], *y = &launch->out[0];
    const int32_t *id = launch->in[1].data;
    const int64_t row = t_last(w) * (int64_t)ct_dtype_size_bytes(w->dtype);
    (void)thread;
    for (int64_t t = first; t < end; t++) {
        memcpy((char *)y->data + t * row, (const char *)w->data + id[t] * row, (size_t)row);
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
    return (size_t)(t_numel(&shapes->in[1]) + shapes->out[0].dims[0]) * sizeof(int32_t);
}

typedef struct grad_run {
    const ct_tensor *dy, *dw;
    const int32_t *first, *next;
} grad_run;

/* Rows [begin, end) of dw, each over blocks of its columns. */
static void grad_rows(void *ctx, int64_t begin, int64_t end, int thread)
{
    const grad_run *r = ctx;
    const ct_tensor *dy = r->dy, *dw = r->dw;
    const int64_t d = t_last(dw);
    (void)thread;
    for (int64_t v = begin; v < end; v++) {
        for (int64_t i = 0; i < d; i += CTI_BLOCK) {
            float buf[CTI_BLOCK], rounded[CTI_BLOCK];
            const int64_t n = cti_min_i64(CTI_BLOCK, d - i);
            float *sum = v_out(dw->data, dw->dtype, v * d + i, rounded);
            memset(sum, 0, (size_t)n * sizeof(float));
            for (int32_t t = r->first[v]; t >= 0; t = r->next[t]) {
                const float *p = v_view(dy->data, dy->dtype, t * d + i, n, buf);
                for (int64_t j = 0; j < n; j++) {
                    sum[j] += p[j];
                }
            }
            v_put(dw->data, dw->dtype, v * d + i, rounded, n);
        }
    }
}

/* The tokens of every id as a list in order (first[id], then next[token]), so that threads can share the rows of dw and each
 * row still is summed in order of tokens. */
ct_status CTI_CPU_FN(embedding_grad)(const ct_launch *launch, ct_err *err)
{
    const ct_tensor *dy = &launch->in[0], *ids = &launch->in[1], *dw = &launch->out[0];
    const int64_t tokens = t_numel(ids), vocab = dw->dims[0];
    CT_TRY(check_floats("embedding_grad", "input", launch->in, 1, err));
    CT_TRY(check_scratch("embedding_grad", launch, CTI_CPU_WORKSPACE(embedding_grad)(launch), err));
    CT_TRY(check_ids("embedding_grad", ids, vocab, err));
    const int32_t *id = ids->data;
    int32_t *first = launch->workspace, *next = first + vocab;
    memset(first, 0xff, (size_t)vocab * sizeof *first);
    for (int64_t t = tokens - 1; t >= 0; t--) {
        next[t] = first[id[t]];
        first[id[t]] = (int32_t)t;
    }
    grad_run r = {dy, dw, first, next};
    cti_pool_run(vocab, grain_of(t_last(dw)), grad_rows, &r);
    return CT_OK;
}
