/* SPDX-License-Identifier: Apache-2.0 */
/* sdpa, sdpa_tnd, segment_ends: attention over the segments of packed tokens, one query row at a time. */
#include "backend/ref/ref_sdpa.h"

ct_status cti_ref_segments_of(const char *op, const ct_tensor *in, bool by_ends, int64_t q_tokens, int64_t k_tokens,
                              cti_ref_segments *out, ct_err *err)
{
    const int64_t capacity = in[0].dims[0];
    *out = by_ends ? (cti_ref_segments){NULL, in[0].data, in[1].data, *(const int32_t *)in[2].data}
                   : (cti_ref_segments){in[0].data, NULL, NULL, *(const int32_t *)in[1].data};
    if (out->n < 0 || out->n > capacity) {
        return CT_FAIL(err, CT_ERR_RANGE, "%s: n_segments is %d, outside [0, %lld]", op, (int)out->n, (long long)capacity);
    }
    for (int32_t i = 0; i < out->n; i++) {
        const cti_ref_segment s = cti_ref_segment_at(out, i);
        if (s.q_start < 0 || s.q_len < 0 || s.q_start + s.q_len > q_tokens) {
            return CT_FAIL(err, CT_ERR_RANGE, "%s: segments[%d] has queries [%lld, %lld), outside [0, %lld)", op, (int)i,
                           (long long)s.q_start, (long long)(s.q_start + s.q_len), (long long)q_tokens);
        }
        if (s.k_start < 0 || s.k_len < 0 || s.k_start + s.k_len > k_tokens) {
            return CT_FAIL(err, CT_ERR_RANGE, "%s: segments[%d] has keys [%lld, %lld), outside [0, %lld)", op, (int)i,
                           (long long)s.k_start, (long long)(s.k_start + s.k_len), (long long)k_tokens);
        }
    }
    return CT_OK;
}

/* Row of query token tq and head `head` over keys [first, last) (token numbers). */
static void attend_row(const ct_launch *launch, double scale, int64_t tq, int64_t head, int64_t first, int64_t last)
{
    const ct_tensor *q = &launch->in[0], *k = &launch->in[1], *v = &launch->in[2];
    const int64_t h = q->dims[q->ndim - 1], heads = q->dims[q->ndim - 2], kv_heads = k->dims[k->ndim - 2];
    const int64_t kv = head / (heads / kv_heads);
    double *p = launch->workspace, *sum_v = p + cti_ref_count(k, 0, k->ndim - 2);
    double max = -(double)INFINITY, sum = 0.0;
    for (int64_t j = first; j < last; j++) {
        double dot = 0.0;
        for (int64_t e = 0; e < h; e++) {
            dot += cti_ref_load(q, (tq * heads + head) * h + e) * cti_ref_load(k, (j * kv_heads + kv) * h + e);
        }
        p[j] = dot * scale;
        max = p[j] > max ? p[j] : max;
    }
    memset(sum_v, 0, (size_t)h * sizeof *sum_v);
    for (int64_t j = first; j < last; j++) {
        p[j] = exp(p[j] - max);
        sum += p[j];
        for (int64_t e = 0; e < h; e++) {
            sum_v[e] += p[j] * cti_ref_load(v, (j * kv_heads + kv) * h + e);
        }
    }
    for (int64_t e = 0; e < h; e++) {
        cti_ref_store(&launch->out[0], (tq * heads + head) * h + e, last > first ? sum_v[e] / sum : 0.0);
    }
    cti_ref_store(&launch->out[1], tq * heads + head, last > first ? max + log(sum) : -(double)INFINITY);
}

static ct_status attend(const char *op, bool by_ends, const ct_launch *launch, ct_err *err)
{
    const ct_attrs_sdpa *attrs = launch->attrs;
    const ct_tensor *q = &launch->in[0], *k = &launch->in[1], *o = &launch->out[0], *lse = &launch->out[1];
    const int64_t q_tokens = cti_ref_count(q, 0, q->ndim - 2), k_tokens = cti_ref_count(k, 0, k->ndim - 2);
    const int64_t heads = q->dims[q->ndim - 2];
    cti_ref_segments segments;
    CT_TRY(cti_ref_segments_of(op, &launch->in[3], by_ends, q_tokens, k_tokens, &segments, err));
    memset(o->data, 0, (size_t)cti_ref_numel(o) * ct_dtype_size_bytes(o->dtype));
    for (int64_t i = 0; i < q_tokens * heads; i++) {
        cti_ref_store(lse, i, -(double)INFINITY);
    }
    for (int32_t n = 0; n < segments.n; n++) {
        const cti_ref_segment s = cti_ref_segment_at(&segments, n);
        for (int64_t i = 0; i < s.q_len; i++) {
            int64_t first, last;
            cti_ref_visible(attrs, &s, i, &first, &last);
            for (int64_t head = 0; head < heads; head++) {
                attend_row(launch, attrs->scale, s.q_start + i, head, s.k_start + first, s.k_start + last);
            }
        }
    }
    return CT_OK;
}

/* [scores Tk][sums of v h], f64. */
size_t cti_ref_sdpa_workspace_bytes(const ct_launch *launch)
{
    const ct_tensor *k = &launch->in[1];
    return (size_t)(cti_ref_count(k, 0, k->ndim - 2) + cti_ref_last_dim(k)) * sizeof(double);
}
size_t cti_ref_sdpa_tnd_workspace_bytes(const ct_launch *launch)
{
    return cti_ref_sdpa_workspace_bytes(launch);
}

ct_status cti_ref_sdpa(const ct_launch *launch, ct_err *err)
{
    return attend("sdpa", false, launch, err);
}

ct_status cti_ref_sdpa_tnd(const ct_launch *launch, ct_err *err)
{
    return attend("sdpa_tnd", true, launch, err);
}

ct_status cti_ref_segment_ends(const ct_launch *launch, ct_err *err)
{
    const int64_t capacity = launch->in[0].dims[0];
    const int32_t *rows = launch->in[0].data, n = *(const int32_t *)launch->in[1].data;
    int32_t *ends_q = launch->out[0].data, *ends_k = launch->out[1].data;
    if (n < 0 || n > capacity) {
        return CT_FAIL(err, CT_ERR_RANGE, "segment_ends: n_segments is %d, outside [0, %lld]", (int)n, (long long)capacity);
    }
    int64_t end_q = 0, end_k = 0;
    for (int32_t i = 0; i < n; i++) {
        const int32_t *r = rows + 4 * (int64_t)i;
        if (r[0] != end_q || r[2] != end_k || r[1] < 0 || r[3] < 0 || end_q + r[1] > INT32_MAX || end_k + r[3] > INT32_MAX) {
            return CT_FAIL(err, CT_ERR_RANGE,
                           "segment_ends: segments[%d] is (%d, %d, %d, %d); back to back it would start at query %lld and key %lld",
                           (int)i, (int)r[0], (int)r[1], (int)r[2], (int)r[3], (long long)end_q, (long long)end_k);
        }
        end_q += r[1];
        end_k += r[3];
    }
    int32_t q = 0, k = 0;
    for (int64_t i = 0; i < capacity; i++) {
        q += i < n ? rows[4 * i + 1] : 0;
        k += i < n ? rows[4 * i + 3] : 0;
        ends_q[i] = q;
        ends_k[i] = k;
    }
    return CT_OK;
}
