/* SPDX-License-Identifier: Apache-2.0 */
/* embedding and its gradient. */
#include <inttypes.h>
#include <omp.h>

#include "backend/cpu/isa/cpu_kernel.h"

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

ct_status CTI_CPU_FN(embedding)(const ct_launch *launch, ct_err *err)
{
    const ct_tensor *w = &launch->in[0], *ids = &launch->in[1], *y = &launch->out[0];
    CT_TRY(check_ids("embedding", ids, w->dims[0], err));
    const int32_t *id = ids->data;
    const int64_t n = t_numel(ids), row = t_last(w) * (int64_t)ct_dtype_size_bytes(w->dtype);
#pragma omp parallel for schedule(static) if (n * row > (1 << 18))
    for (int64_t t = 0; t < n; t++) {
        memcpy((char *)y->data + t * row, (const char *)w->data + id[t] * row, (size_t)row);
    }
    return CT_OK;
}

size_t CTI_CPU_WORKSPACE(embedding_grad)(const ct_launch *shapes)
{
    int64_t tokens = t_numel(&shapes->in[1]);
    int64_t vocab = shapes->out[0].dims[0], d = t_last(&shapes->out[0]);
    return (size_t)(tokens + vocab) * sizeof(int32_t) + (size_t)(omp_get_max_threads() * d) * sizeof(float);
}

/* The tokens of every id as a list in order (first[id], then next[token]), so that threads can share the rows of dw and each
 * row still is summed in order of tokens. */
ct_status CTI_CPU_FN(embedding_grad)(const ct_launch *launch, ct_err *err)
{
    const ct_tensor *dy = &launch->in[0], *ids = &launch->in[1], *dw = &launch->out[0];
    const int64_t tokens = t_numel(ids), vocab = dw->dims[0], d = t_last(dw);
    const size_t lists = (size_t)(tokens + vocab) * sizeof(int32_t);
    CT_TRY(check_floats("embedding_grad", "input", launch->in, 1, err));
    CT_TRY(check_scratch("embedding_grad", launch, lists + (size_t)d * sizeof(float), err));
    CT_TRY(check_ids("embedding_grad", ids, vocab, err));
    const int32_t *id = ids->data;
    int32_t *first = launch->workspace, *next = first + vocab;
    float *sums = (float *)(next + tokens);
    memset(first, 0xff, (size_t)vocab * sizeof *first);
    for (int64_t t = tokens - 1; t >= 0; t--) {
        next[t] = first[id[t]];
        first[id[t]] = (int32_t)t;
    }
    const int threads = (int)cti_min_i64(omp_get_max_threads(),
                                         (int64_t)((launch->workspace_bytes - lists) / ((size_t)d * sizeof(float) + !d)));
    const bool is_f32 = dw->dtype == CT_DTYPE_F32;
#pragma omp parallel for schedule(static, 16) num_threads(threads) if (vocab * d > 16384)
    for (int64_t v = 0; v < vocab; v++) {
        float *sum = is_f32 ? (float *)dw->data + v * d : sums + omp_get_thread_num() * d;
        memset(sum, 0, (size_t)d * sizeof(float));
        for (int32_t t = first[v]; t >= 0; t = next[t]) {
            float buf[CTI_BLOCK];
            for (int64_t i = 0; i < d; i += CTI_BLOCK) {
                int64_t n = cti_min_i64(CTI_BLOCK, d - i);
                const float *p = v_view(dy->data, dy->dtype, t * d + i, n, buf);
                for (int64_t j = 0; j < n; j++) {
                    sum[i + j] += p[j];
                }
            }
        }
        if (!is_f32) {
            v_narrow(dw->data, dw->dtype, v * d, sum, d);
        }
    }
    return CT_OK;
}
