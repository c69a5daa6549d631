/* SPDX-License-Identifier: Apache-2.0 */
/* Which of CANN's attention calls a table of segments wants. */
#include "backend/npu/npu_segments.h"

#include <string.h>

static int64_t tokens_of(const ct_tensor *t)
{
    return cti_npu_count(t) / (t->dims[t->ndim - 1] * t->dims[t->ndim - 2]);
}

/* Adds a segment where some query sees some key. With causal masks anchored bottom-right the first q_len - k_len queries see none. */
static void add(cti_npu_segments *g, cti_npu_segment seg, bool causal)
{
    if (causal && seg.q_len > seg.k_len) {
        seg.q += seg.q_len - seg.k_len;
        seg.q_len = seg.k_len;
    }
    if (seg.q_len > 0 && seg.k_len > 0) {
        g->list[g->n++] = seg;
    }
}

static void read_table(cti_npu_seq *s, const ct_launch *l, int32_t at, bool by_ends, bool causal, cti_npu_segments *g)
{
    const ct_tensor *in = &l->in[at];
    const int64_t capacity = in[0].dims[0];
    const int32_t *rows = cti_npu_host(s, &in[0]), *ends_k = by_ends ? cti_npu_host(s, &in[1]) : NULL, *n = cti_npu_host(s, &in[by_ends ? 2 : 1]);
    if (s->st != CT_OK) {
        return;
    }
    if (*n < 0 || *n > capacity) {
        NPU_FAIL(s, CT_ERR_RANGE, "%s: n_segments is %d, outside [0, %lld]", s->op, (int)*n, (long long)capacity);
        return;
    }
    for (int32_t i = 0; i < *n && s->st == CT_OK; i++) {
        const int64_t q0 = i > 0 ? rows[i - 1] : 0, k0 = i > 0 && by_ends ? ends_k[i - 1] : 0;
        const int32_t *r = rows + 4 * (int64_t)i;
        const cti_npu_segment seg = by_ends ? (cti_npu_segment){q0, rows[i] - q0, k0, ends_k[i] - k0} : (cti_npu_segment){r[0], r[1], r[2], r[3]};
        if (seg.q < 0 || seg.q_len < 0 || seg.q + seg.q_len > g->q_tokens) {
            NPU_FAIL(s, CT_ERR_RANGE, "%s: segments[%d] has queries [%lld, %lld), outside [0, %lld)", s->op, (int)i, (long long)seg.q,
                     (long long)(seg.q + seg.q_len), (long long)g->q_tokens);
        } else if (seg.k < 0 || seg.k_len < 0 || seg.k + seg.k_len > g->k_tokens) {
            NPU_FAIL(s, CT_ERR_RANGE, "%s: segments[%d] has keys [%lld, %lld), outside [0, %lld)", s->op, (int)i, (long long)seg.k,
                     (long long)(seg.k + seg.k_len), (long long)g->k_tokens);
        } else {
            add(g, seg, causal);
        }
    }
}

static void classify(cti_npu_segments *g)
{
    int64_t q_sum = 0, k_sum = 0;
    bool is_back_to_back = true, is_even = g->n > 0;
    g->is_square = g->is_apart = true;
    for (int64_t i = 0; i < g->n; i++) {
        const cti_npu_segment *seg = &g->list[i];
        is_back_to_back = is_back_to_back && seg->q == q_sum && seg->k == k_sum;
        is_even = is_even && seg->q_len == g->list[0].q_len && seg->k_len == g->list[0].k_len;
        g->is_square = g->is_square && seg->q_len == seg->k_len;
        q_sum += seg->q_len;
        k_sum += seg->k_len;
    }
    for (int64_t i = 1; i < g->n && !is_back_to_back; i++) { /* sorted by keys, or they may overlap */
        g->is_apart = g->is_apart && g->list[i].k >= g->list[i - 1].k + g->list[i - 1].k_len;
    }
    g->q_end = q_sum;
    g->k_end = k_sum;
    g->is_all_q = is_back_to_back && q_sum == g->q_tokens;
    g->is_all_k = is_back_to_back && k_sum == g->k_tokens;
    g->form = !is_back_to_back ? CTI_NPU_ALONE : is_even && g->is_all_q && g->is_all_k ? CTI_NPU_FIXED : CTI_NPU_PACKED;
}

void cti_npu_segments_of(cti_npu_seq *s, const ct_launch *l, int32_t at, bool by_ends, const ct_tensor *q, const ct_tensor *k, cti_npu_segments *out)
{
    const ct_attrs_sdpa *attrs = l->attrs;
    const int64_t capacity = cti_max_i64(l->in[at].dims[0], 1), batch = q->ndim > 3 ? q->dims[0] : 1;
    *out = (cti_npu_segments){.q_tokens = tokens_of(q), .k_tokens = tokens_of(k)};
    out->list = ct_alloc_zeroed(s->dev->alloc, (size_t)cti_max_i64(capacity, batch), sizeof *out->list, s->err);
    if (out->list == NULL) {
        cti_npu_stop(s, CT_ERR_MEMORY);
        return;
    }
    if (s->mode == CTI_NPU_SIZE) {
        for (int64_t b = 0; b < batch; b++) {
            add(out, (cti_npu_segment){b * out->q_tokens / batch, out->q_tokens / batch, b * out->k_tokens / batch, out->k_tokens / batch}, attrs->causal);
        }
    } else {
        read_table(s, l, at, by_ends, attrs->causal, out);
    }
    classify(out);
}

void cti_npu_segments_deinit(cti_npu_seq *s, cti_npu_segments *g)
{
    ct_alloc_free(s->dev->alloc, g->list);
    g->list = NULL;
}
