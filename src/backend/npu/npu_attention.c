/* SPDX-License-Identifier: Apache-2.0 */
/* sdpa, sdpa_tnd and their gradients by CANN's flash attention, and segment_ends. Lengths are values of the host, so that first phases begin anew in each
 * run. CANN keeps the maximum and the sum of each row's softmax, eight times over, heads before tokens inside of each segment; ours is their
 * log-sum-exp, tokens before heads. Backward the maximum is said to be lse and the sum 1: exp(score - lse) / 1 is the same weight. */
#include <math.h>

#include "backend/npu/npu_segments.h"

enum {
    STATS = 8,            /* copies of each statistic */
    MOST_SEGMENTS = 2048, /* a call takes in CANN 8 */
    MODE_ALL = 0,
    MODE_CAUSAL = 2,       /* anchored top-left */
    MODE_CAUSAL_RIGHT = 3, /* anchored bottom-right */
    MODE_BAND = 4
};

typedef struct attention {
    cti_npu_segments g;
    cti_npu_view q, k, v;  /* [T, heads, h] */
    int64_t heads, kv_heads, h;
    double scale;
    int64_t mode, before, after;
    bool has_mask;
    void *mask;
} attention;

static void attention_of(cti_npu_seq *s, const ct_launch *l, int32_t at, bool by_ends, attention *a)
{
    const ct_attrs_sdpa *attrs = l->attrs;
    const ct_tensor *q = &l->in[at], *k = &l->in[at + 1];
    const bool is_grad = at > 0;
    *a = (attention){.q = cti_npu_of(q), .k = cti_npu_of(k), .v = cti_npu_of(&l->in[at + 2]), .heads = q->dims[q->ndim - 2], .kv_heads = k->dims[k->ndim - 2],
                     .h = cti_npu_last(q), .scale = attrs->scale, .before = INT32_MAX, .after = INT32_MAX};
    if (a->heads * a->h == 0 || cti_npu_count(k) == 0 || cti_npu_count(q) == 0) {
        return; /* no segments: all is zeros */
    }
    cti_npu_segments_of(s, l, at + (is_grad ? 5 : 3), by_ends, q, k, &a->g);
    a->has_mask = attrs->causal || attrs->window > 0;
    a->mode = !a->has_mask ? MODE_ALL : attrs->window > 0 ? MODE_BAND : a->g.is_square ? MODE_CAUSAL : MODE_CAUSAL_RIGHT;
    if (attrs->window > 0) {
        a->before = attrs->window - 1;
        a->after = attrs->causal ? 0 : INT32_MAX;
    }
    if (a->has_mask && s->st == CT_OK && s->mode != CTI_NPU_SIZE) {
        cti_npu_stop(s, cti_npu_mask(s->dev, &a->mask, s->err));
    }
}

static const aclTensor *mask_of(cti_npu_seq *s, const attention *a)
{
    const cti_npu_view mask = {.data = a->mask, .dtype = ACL_BOOL};
    return a->has_mask ? NPU_T(s, cti_npu_as(mask, NPU_DIMS(CTI_NPU_MASK_SIDE, CTI_NPU_MASK_SIDE))) : NULL;
}

/* Tokens [at, at + n) of [T, heads, h]. */
static cti_npu_view tokens_of(cti_npu_view t, int64_t at, int64_t n, int64_t heads, int64_t h)
{
    return cti_npu_part(t, at * heads * h, NPU_DIMS(n, heads, h));
}

/* A call's part of the work: `n` segments from `first` on. FIXED and ALONE: rows of equal length. */
typedef struct part {
    int64_t first, n;
    int64_t q, q_len, k, k_len; /* tokens that the call covers */
    bool is_packed;
} part;

static part part_at(const attention *a, int64_t first)
{
    const cti_npu_segments *g = &a->g;
    const cti_npu_segment *seg = &g->list[first];
    part p = {.first = first, .n = 1, .q = seg->q, .q_len = seg->q_len, .k = seg->k, .k_len = seg->k_len};
    if (g->form == CTI_NPU_FIXED) {
        p.n = g->n;
        p.q_len = g->q_tokens;
        p.k_len = g->k_tokens;
    } else if (g->form == CTI_NPU_PACKED) {
        p.is_packed = true;
        p.n = cti_min_i64(MOST_SEGMENTS, g->n - first);
        const cti_npu_segment *last = seg + p.n - 1;
        p.q_len = last->q + last->q_len - seg->q;
        p.k_len = last->k + last->k_len - seg->k;
    }
    return p;
}

static cti_npu_view operand(const part *p, cti_npu_view t, int64_t at, int64_t n, int64_t heads, int64_t h)
{
    return p->is_packed ? tokens_of(t, at, n, heads, h) : cti_npu_part(t, at * heads * h, NPU_DIMS(p->n, n / p->n, heads, h));
}
static cti_npu_view q_like(const attention *a, const part *p, cti_npu_view t)
{
    return operand(p, t, p->q, p->q_len, a->heads, a->h);
}
static cti_npu_view k_like(const attention *a, const part *p, cti_npu_view t)
{
    return operand(p, t, p->k, p->k_len, a->kv_heads, a->h);
}

static cti_npu_view stats_temp(cti_npu_seq *s, const attention *a, const part *p)
{
    return p->is_packed ? cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(p->q_len, a->heads, STATS)) : cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(p->n, a->heads, p->q_len / p->n, STATS));
}

/* Ends of the part's segments, from the part's beginning: what CANN calls actual lengths. */
static const aclIntArray *ends_of(cti_npu_seq *s, const attention *a, const part *p, bool of_keys)
{
    int64_t ends[MOST_SEGMENTS];
    for (int64_t i = 0; i < p->n; i++) {
        const cti_npu_segment *seg = &a->g.list[p->first + i];
        ends[i] = of_keys ? seg->k + seg->k_len - p->k : seg->q + seg->q_len - p->q;
    }
    return cti_npu_array(s, ends, p->n);
}

/* Between lse [T, heads] and CANN's order [heads, tokens] of each segment. Both views start at the part. */
static void reorder(cti_npu_seq *s, const attention *a, const part *p, cti_npu_view lse, cti_npu_view stats, bool is_back)
{
    const int64_t rows = p->is_packed ? 1 : p->n;
    for (int64_t i = 0; i < (p->is_packed ? p->n : 1); i++) {
        const cti_npu_segment *seg = &a->g.list[p->first + i];
        const int64_t at = (seg->q - p->q) * a->heads, len = seg->q_len, whole = len * a->heads;
        const cti_npu_view ours = cti_npu_strided(lse, at, NPU_DIMS(rows, a->heads, len, 1), (const int64_t[]){whole, 1, a->heads, 1});
        if (is_back) { /* each value eight times */
            cti_npu_spread(s, cti_npu_part(stats, at * STATS, NPU_DIMS(rows, a->heads, len, STATS)), ours);
        } else {
            cti_npu_spread(s, ours, cti_npu_part(stats, at, NPU_DIMS(rows, a->heads, len, 1)));
        }
    }
}

static void forward_part(cti_npu_seq *s, const attention *a, const part *p, cti_npu_view o, cti_npu_view lse)
{
    static char tnd[] = "TND", bsnd[] = "BSND";
    const size_t mark = s->at;
    const int64_t n = p->q_len * a->heads;
    const cti_npu_view max = stats_temp(s, a, p), sum = stats_temp(s, a, p), logs = cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(n)), whole = cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(n));
    if (p->is_packed) {
        NPU_CALL(s, FlashAttentionVarLenScore, NPU_T(s, q_like(a, p, a->q)), NPU_T(s, k_like(a, p, a->k)), NPU_T(s, k_like(a, p, a->v)), NULL, NULL, NULL,
                 mask_of(s, a), NULL, ends_of(s, a, p, false), ends_of(s, a, p, true), a->scale, 1.0, a->before, a->after, a->heads, tnd, 0, a->mode, NPU_T(s, max),
                 NPU_T(s, sum), NULL, NPU_T(s, q_like(a, p, o)));
    } else {
        NPU_CALL(s, FlashAttentionScore, NPU_T(s, q_like(a, p, a->q)), NPU_T(s, k_like(a, p, a->k)), NPU_T(s, k_like(a, p, a->v)), NULL, NULL, NULL, mask_of(s, a),
                 NULL, a->scale, 1.0, a->before, a->after, a->heads, bsnd, 0, a->mode, NPU_T(s, max), NPU_T(s, sum), NULL, NPU_T(s, q_like(a, p, o)));
    }
    const int64_t dims[] = {n}, strides[] = {STATS};
    NPU_CALL(s, Log, NPU_T(s, cti_npu_strided(sum, 0, 1, dims, strides)), NPU_T(s, logs));
    NPU_CALL(s, Add, NPU_T(s, cti_npu_strided(max, 0, 1, dims, strides)), NPU_T(s, logs), NPU_F(s, 1.0), NPU_T(s, whole));
    reorder(s, a, p, cti_npu_part(lse, p->q * a->heads, NPU_DIMS(n)), whole, false);
    s->at = mark;
}

static void forward(cti_npu_seq *s, const ct_launch *l, bool by_ends)
{
    attention a;
    const cti_npu_view o = cti_npu_of(&l->out[0]), lse = cti_npu_flat(&l->out[1]);
    attention_of(s, l, 0, by_ends, &a);
    if (!a.g.is_all_q) {
        cti_npu_zero(s, cti_npu_flat(&l->out[0]));
        cti_npu_fill(s, lse, -(double)INFINITY);
    }
    for (int64_t i = 0; i < a.g.n && s->st == CT_OK;) {
        const part p = part_at(&a, i);
        forward_part(s, &a, &p, o, lse);
        i += p.n;
    }
    if (s->mode == CTI_NPU_SIZE && a.g.n > 0) { /* the other form that is likely */
        a.g.form = CTI_NPU_PACKED;
        const part p = part_at(&a, 0);
        forward_part(s, &a, &p, o, lse);
    }
    cti_npu_segments_deinit(s, &a.g);
}

void cti_npu_op_sdpa(cti_npu_seq *s, const ct_launch *l)
{
    forward(s, l, false);
}

void cti_npu_op_sdpa_tnd(cti_npu_seq *s, const ct_launch *l)
{
    forward(s, l, true);
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

typedef struct grads {
    cti_npu_view dout, o, lse, dq, dk, dv;
} grads;

static void backward_part(cti_npu_seq *s, const attention *a, const part *p, const grads *g)
{
    static char tnd[] = "TND", bsnd[] = "BSND";
    const size_t mark = s->at;
    const cti_npu_view max = stats_temp(s, a, p), sum = stats_temp(s, a, p), nothing = cti_npu_temp(s, a->q.dtype, NPU_DIMS(0));
    const bool is_shared = !a->g.is_apart || s->mode == CTI_NPU_SIZE; /* several segments add to the same keys */
    cti_npu_view dk = k_like(a, p, g->dk), dv = k_like(a, p, g->dv);
    const cti_npu_view dk_all = dk, dv_all = dv;
    if (is_shared) {
        dk = cti_npu_temp(s, dk.dtype, dk.ndim, dk.dims);
        dv = cti_npu_temp(s, dv.dtype, dv.ndim, dv.dims);
    }
    reorder(s, a, p, cti_npu_part(g->lse, p->q * a->heads, NPU_DIMS(p->q_len * a->heads)), max, true);
    cti_npu_fill(s, sum, 1.0);
    if (p->is_packed) {
        NPU_CALL(s, FlashAttentionUnpaddingScoreGrad, NPU_T(s, q_like(a, p, a->q)), NPU_T(s, k_like(a, p, a->k)), NPU_T(s, k_like(a, p, a->v)),
                 NPU_T(s, q_like(a, p, g->dout)), NULL, NULL, NULL, mask_of(s, a), NPU_T(s, max), NPU_T(s, sum), NULL, NPU_T(s, q_like(a, p, g->o)), NULL,
                 ends_of(s, a, p, false), ends_of(s, a, p, true), a->scale, 1.0, a->before, a->after, a->heads, tnd, 0, a->mode, NPU_T(s, q_like(a, p, g->dq)),
                 NPU_T(s, dk), NPU_T(s, dv), NPU_T(s, nothing));
    } else {
        NPU_CALL(s, FlashAttentionScoreGrad, NPU_T(s, q_like(a, p, a->q)), NPU_T(s, k_like(a, p, a->k)), NPU_T(s, k_like(a, p, a->v)),
                 NPU_T(s, q_like(a, p, g->dout)), NULL, NULL, NULL, mask_of(s, a), NPU_T(s, max), NPU_T(s, sum), NULL, NPU_T(s, q_like(a, p, g->o)), NULL, a->scale,
                 1.0, a->before, a->after, a->heads, bsnd, 0, a->mode, NPU_T(s, q_like(a, p, g->dq)), NPU_T(s, dk), NPU_T(s, dv), NPU_T(s, nothing));
    }
    if (is_shared) {
        NPU_CALL(s, InplaceAdd, NPU_T(s, dk_all), NPU_T(s, dk), NPU_F(s, 1.0));
        NPU_CALL(s, InplaceAdd, NPU_T(s, dv_all), NPU_T(s, dv), NPU_F(s, 1.0));
    }
    s->at = mark;
}

static void backward(cti_npu_seq *s, const ct_launch *l, bool by_ends)
{
    attention a;
    const grads g = {cti_npu_of(&l->in[0]), cti_npu_of(&l->in[4]), cti_npu_flat(&l->in[5]), cti_npu_of(&l->out[0]), cti_npu_of(&l->out[1]), cti_npu_of(&l->out[2])};
    attention_of(s, l, 1, by_ends, &a);
    if (!a.g.is_all_q) {
        cti_npu_zero(s, cti_npu_flat(&l->out[0]));
    }
    if (!a.g.is_all_k || !a.g.is_apart) {
        cti_npu_zero(s, cti_npu_flat(&l->out[1]));
        cti_npu_zero(s, cti_npu_flat(&l->out[2]));
    }
    for (int64_t i = 0; i < a.g.n && s->st == CT_OK;) {
        const part p = part_at(&a, i);
        backward_part(s, &a, &p, &g);
        i += p.n;
    }
    if (s->mode == CTI_NPU_SIZE && a.g.n > 0) {
        a.g.form = CTI_NPU_PACKED;
        const part p = part_at(&a, 0);
        backward_part(s, &a, &p, &g);
    }
    cti_npu_segments_deinit(s, &a.g);
}

void cti_npu_op_sdpa_grad(cti_npu_seq *s, const ct_launch *l)
{
    backward(s, l, false);
}

void cti_npu_op_sdpa_tnd_grad(cti_npu_seq *s, const ct_launch *l)
{
    backward(s, l, true);
}

/* ---- segment_ends, on the host, which knows the table ---------------------------------------------------------------- */

void cti_npu_op_segment_ends(cti_npu_seq *s, const ct_launch *l)
{
    const int64_t capacity = l->in[0].dims[0];
    const int32_t *rows = cti_npu_host(s, &l->in[0]), *n = cti_npu_host(s, &l->in[1]);
    if (s->st != CT_OK || n == NULL) {
        return;
    }
    if (*n < 0 || *n > capacity) {
        NPU_FAIL(s, CT_ERR_RANGE, "segment_ends: n_segments is %d, outside [0, %lld]", (int)*n, (long long)capacity);
        return;
    }
    int32_t *ends = ct_alloc_zeroed(s->dev->alloc, (size_t)capacity * 2 + 1, sizeof *ends, s->err);
    if (ends == NULL) {
        cti_npu_stop(s, CT_ERR_MEMORY);
        return;
    }
    int64_t q = 0, k = 0;
    for (int64_t i = 0; i < capacity && s->st == CT_OK; i++) {
        const int32_t *r = rows + 4 * i;
        if (i < *n && (r[0] != q || r[2] != k || r[1] < 0 || r[3] < 0 || q + r[1] > INT32_MAX || k + r[3] > INT32_MAX)) {
            NPU_FAIL(s, CT_ERR_RANGE, "segment_ends: segments[%lld] is (%d, %d, %d, %d); back to back it would start at query %lld and key %lld", (long long)i,
                     (int)r[0], (int)r[1], (int)r[2], (int)r[3], (long long)q, (long long)k);
        }
        q += i < *n ? r[1] : 0;
        k += i < *n ? r[3] : 0;
        ends[i] = (int32_t)q;
        ends[capacity + i] = (int32_t)k;
    }
    cti_npu_put(s, &l->out[0], ends, (size_t)capacity * sizeof *ends);
    cti_npu_put(s, &l->out[1], ends + capacity, (size_t)capacity * sizeof *ends);
    ct_alloc_free(s->dev->alloc, ends);
}
