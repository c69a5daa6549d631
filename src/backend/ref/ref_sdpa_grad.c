/* SPDX-License-Identifier: Apache-2.0 */
/* sdpa_grad, sdpa_tnd_grad (Dao 2023). With p = exp(scale q k - lse), D = rowsum(do * o) and ds = scale p (do v - D):
 *     dq = sum over j of ds k,  dk = sum over i of ds q,  dv = sum over i of p do.
 * lse is read as it was saved (f32): a caller that merged parts of the keys hands in the merged o and lse. */
#include "backend/ref/ref_sdpa.h"

/* [dk Tk K h][dv Tk K h][dq h], f64. */
size_t cti_ref_sdpa_grad_workspace_bytes(const ct_launch *launch)
{
    const ct_tensor *k = &launch->in[2];
    return (size_t)(2 * cti_ref_numel(k) + cti_ref_last_dim(k)) * sizeof(double);
}
size_t cti_ref_sdpa_tnd_grad_workspace_bytes(const ct_launch *launch)
{
    return cti_ref_sdpa_grad_workspace_bytes(launch);
}

/* Adds what query token tq, head `head`, gives over keys [first, last) to dk and dv; writes its dq. */
static void grad_row(const ct_launch *launch, double scale, int64_t tq, int64_t head, int64_t first, int64_t last)
{
    const ct_tensor *grad = &launch->in[0], *q = &launch->in[1], *k = &launch->in[2], *v = &launch->in[3];
    const int64_t h = q->dims[q->ndim - 1], heads = q->dims[q->ndim - 2], kv_heads = k->dims[k->ndim - 2];
    const int64_t kv = head / (heads / kv_heads), row = (tq * heads + head) * h, nk = cti_ref_numel(k);
    double *dk = launch->workspace, *dv = dk + nk, *dq = dv + nk;
    const double lse = cti_ref_load(&launch->in[5], tq * heads + head);
    double delta = 0.0;
    for (int64_t e = 0; e < h; e++) {
        delta += cti_ref_load(grad, row + e) * cti_ref_load(&launch->in[4], row + e);
        dq[e] = 0.0;
    }
    for (int64_t j = first; j < last; j++) {
        const int64_t key = (j * kv_heads + kv) * h;
        double score = 0.0, dp = 0.0;
        for (int64_t e = 0; e < h; e++) {
            score += cti_ref_load(q, row + e) * cti_ref_load(k, key + e);
            dp += cti_ref_load(grad, row + e) * cti_ref_load(v, key + e);
        }
        const double p = exp(score * scale - lse), ds = scale * p * (dp - delta);
        for (int64_t e = 0; e < h; e++) {
            dq[e] += ds * cti_ref_load(k, key + e);
            dk[key + e] += ds * cti_ref_load(q, row + e);
            dv[key + e] += p * cti_ref_load(grad, row + e);
        }
    }
    for (int64_t e = 0; e < h; e++) {
        cti_ref_store(&launch->out[0], row + e, dq[e]);
    }
}

static ct_status attend_grad(const char *op, bool by_ends, const ct_launch *launch, ct_err *err)
{
    const ct_attrs_sdpa *attrs = launch->attrs;
    const ct_tensor *q = &launch->in[1], *k = &launch->in[2], *dq = &launch->out[0];
    const int64_t q_tokens = cti_ref_count(q, 0, q->ndim - 2), k_tokens = cti_ref_count(k, 0, k->ndim - 2);
    const int64_t heads = q->dims[q->ndim - 2], nk = cti_ref_numel(k);
    cti_ref_segments segments;
    CT_TRY(cti_ref_segments_of(op, &launch->in[6], by_ends, q_tokens, k_tokens, &segments, err));
    double *dk = launch->workspace, *dv = dk + nk;
    memset(dk, 0, (size_t)(2 * nk) * sizeof *dk);
    memset(dq->data, 0, (size_t)cti_ref_numel(dq) * ct_dtype_size_bytes(dq->dtype));
    for (int32_t n = 0; n < segments.n; n++) {
        const cti_ref_segment s = cti_ref_segment_at(&segments, n);
        for (int64_t i = 0; i < s.q_len; i++) {
            int64_t first, last;
            cti_ref_visible(attrs, &s, i, &first, &last);
            for (int64_t head = 0; head < heads; head++) {
                grad_row(launch, attrs->scale, s.q_start + i, head, s.k_start + first, s.k_start + last);
            }
        }
    }
    for (int64_t i = 0; i < nk; i++) {
        cti_ref_store(&launch->out[1], i, dk[i]);
        cti_ref_store(&launch->out[2], i, dv[i]);
    }
    return CT_OK;
}

ct_status cti_ref_sdpa_grad(const ct_launch *launch, ct_err *err)
{
    return attend_grad("sdpa_grad", false, launch, err);
}

ct_status cti_ref_sdpa_tnd_grad(const ct_launch *launch, ct_err *err)
{
    return attend_grad("sdpa_tnd_grad", true, launch, err);
}
