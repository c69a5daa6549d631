/* SPDX-License-Identifier: Apache-2.0 */
/* embedding, embedding_grad, local_ids. */
#include "backend/ref/ref.h"

ct_status cti_ref_check_ids(const char *op, const char *what, const ct_tensor *ids, int64_t limit, ct_err *err)
{
    const int32_t *id = ids->data;
    const int64_t n = cti_ref_numel(ids);
    for (int64_t i = 0; i < n; i++) {
        if (id[i] < 0 || id[i] >= limit) {
            return CT_FAIL(err, CT_ERR_RANGE, "%s: %s[%lld] is %d, outside [0, %lld)", op, what, (long long)i, (int)id[i],
                           (long long)limit);
        }
    }
    return CT_OK;
}

/* The same, and CT_ID_ELSEWHERE. */
static ct_status check_ids(const char *op, const ct_tensor *ids, int64_t limit, ct_err *err)
{
    const int32_t *id = ids->data;
    const int64_t n = cti_ref_numel(ids);
    for (int64_t i = 0; i < n; i++) {
        if (id[i] != CT_ID_ELSEWHERE && (id[i] < 0 || id[i] >= limit)) {
            return CT_FAIL(err, CT_ERR_RANGE, "%s: ids[%lld] is %d, outside [0, %lld)", op, (long long)i, (int)id[i], (long long)limit);
        }
    }
    return CT_OK;
}

ct_status cti_ref_local_ids(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_attrs_local_ids *a = launch->attrs;
    const int32_t *id = launch->in[0].data;
    int32_t *out = launch->out[0].data;
    const int64_t n = cti_ref_numel(&launch->in[0]);
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = id[i] - a->start;
        out[i] = id[i] == -100 ? -100 : id[i] >= 0 && at >= 0 && at < a->count ? (int32_t)at : CT_ID_ELSEWHERE;
    }
    return CT_OK;
}

ct_status cti_ref_embedding(const ct_launch *launch, ct_err *err)
{
    const ct_tensor *w = &launch->in[0], *ids = &launch->in[1], *y = &launch->out[0];
    CT_TRY(check_ids("embedding", ids, w->dims[0], err));
    const int64_t n = cti_ref_numel(ids);
    const size_t row_bytes = (size_t)w->dims[1] * ct_dtype_size_bytes(w->dtype);
    for (int64_t t = 0; t < n; t++) {
        const int32_t id = ((const int32_t *)ids->data)[t];
        char *row = (char *)y->data + (size_t)t * row_bytes;
        if (id == CT_ID_ELSEWHERE) {
            memset(row, 0, row_bytes);
        } else {
            memcpy(row, (const char *)w->data + (size_t)id * row_bytes, row_bytes);
        }
    }
    return CT_OK;
}

/* Tokens sorted by id, keeping their order: [ends i64 V][order i64 T][sum f64 D]. */
size_t cti_ref_embedding_grad_workspace_bytes(const ct_launch *launch)
{
    const int64_t d = cti_ref_last_dim(&launch->out[0]);
    return (size_t)(launch->out[0].dims[0] + cti_ref_numel(&launch->in[1])) * sizeof(int64_t) + (size_t)d * sizeof(double);
}

ct_status cti_ref_embedding_grad(const ct_launch *launch, ct_err *err)
{
    const ct_tensor *dy = &launch->in[0], *ids = &launch->in[1], *dw = &launch->out[0];
    const int64_t vocab = dw->dims[0], d = dw->dims[1], n = cti_ref_numel(ids);
    const int32_t *id = ids->data;
    CT_TRY(check_ids("embedding_grad", ids, vocab, err));
    int64_t *next = launch->workspace, *order = next + vocab;
    double *sum = (double *)(order + n);
    for (int64_t v = 0; v < vocab; v++) {
        next[v] = 0;
    }
    for (int64_t t = 0; t < n; t++) {
        if (id[t] != CT_ID_ELSEWHERE) {
            next[id[t]]++;
        }
    }
    for (int64_t v = 0, start = 0; v < vocab; v++) {
        const int64_t count = next[v];
        next[v] = start;
        start += count;
    }
    for (int64_t t = 0; t < n; t++) {
        if (id[t] == CT_ID_ELSEWHERE) {
            continue;
        }
        order[next[id[t]]++] = t; /* afterwards next[v] is where v's tokens end */
    }
    for (int64_t v = 0, i = 0; v < vocab; v++) {
        memset(sum, 0, (size_t)d * sizeof *sum);
        for (; i < next[v]; i++) {
            for (int64_t j = 0; j < d; j++) {
                sum[j] += cti_ref_load(dy, order[i] * d + j);
            }
        }
        for (int64_t j = 0; j < d; j++) {
            cti_ref_store(dw, v * d + j, sum[j]);
        }
    }
    return CT_OK;
}
