/* SPDX-License-Identifier: Apache-2.0 */
/* sdpa and sdpa_tnd, forward, and segment_ends. A task is one head of a run of queries of one segment; its keys and values are
 * packed block by block, softmax is kept running (Milakov and Gimelshein 2018, arXiv 1805.02867). */
#include <math.h>

#include "backend/cpu/isa/cpu_attention.h"
#include "base/pool.h"

/* Queries of one task, whole panels. */
#define RUN (CTI_MR * (192 / CTI_MR))
/* Keys of one block. */
#define KEYS CTI_KC

/* Per-thread buffers, all from one block of floats. */
typedef struct fwd_scratch {
    float *q;      /* [RUN / MR] panels [h][MR] */
    float *o;      /* [RUN][hp] */
    float *k;      /* [KEYS / NR] panels [h][NR] */
    float *v;      /* head rows, KEYS long */
    float *s;      /* [MR][KLD] scores of one panel of queries, in units of ln 2 */
    float *m, *l;  /* [RUN + VL] running max and sum */
} fwd_scratch;

static size_t fwd_floats(const attn *a)
{
    return (size_t)(RUN * (a->h + a->hp) + KEYS * (a->h + a->hp) + CTI_MR * CTI_KLD + 2 * (RUN + CTI_VL));
}

static fwd_scratch fwd_cut(const attn *a, float *p)
{
    fwd_scratch f;
    f.o = p;
    f.v = f.o + RUN * a->hp;
    f.s = f.v + KEYS * a->hp;
    f.q = f.s + CTI_MR * CTI_KLD;
    f.k = f.q + RUN * a->h;
    f.m = f.k + KEYS * a->h;
    f.l = f.m + RUN + CTI_VL;
    return f;
}

/* The largest score of one row in columns [c0, c1), whole panels, per lane; scores outside [lo, hi) become -inf first. */
CTI_INLINE vf mask_and_max(float *s, int64_t c0, int64_t c1, int64_t lo, int64_t hi)
{
    mask_row(s, c0, c1, lo, hi);
    vf m0 = v_load(s + c0), m1 = v_load(s + c0 + CTI_VL);
    for (int64_t j = c0 + CTI_NR; j < c1; j += CTI_NR) {
        m0 = v_max(v_load(s + j), m0);
        m1 = v_max(v_load(s + j + CTI_VL), m1);
    }
    return v_max(m0, m1);
}

/* Scores become 2^(score - shift); returns their sum per lane. */
CTI_INLINE vf exp_and_sum(float *s, int64_t c0, int64_t c1, float shift)
{
    const vf vs = v_set1(shift);
    vf s0 = {0}, s1 = {0};
    for (int64_t j = c0; j < c1; j += CTI_NR) {
        vf e0 = v_exp2_neg(v_load(s + j) - vs), e1 = v_exp2_neg(v_load(s + j + CTI_VL) - vs);
        v_store(s + j, e0);
        v_store(s + j + CTI_VL, e1);
        s0 += e0;
        s1 += e1;
    }
    return s0 + s1;
}

/* The running softmax of one panel: scores in columns [c0, c1) become weights, max m and sum l go on, sums o of before shrink. */
CTI_INLINE void softmax_panel(float *s, int64_t c0, int64_t c1, const int64_t *lo, const int64_t *hi, float *m, float *l, float *o,
                              int64_t hp)
{
    const float ninf = -__builtin_inff();
    float top[CTI_MR], sum[CTI_MR];
    for (int i = 0; i < CTI_MR; i++) {
        top[i] = v_hmax(mask_and_max(s + i * CTI_KLD, c0, c1, lo[i], hi[i]));
    }
    for (int i = 0; i < CTI_MR; i++) {
        top[i] = top[i] > m[i] ? top[i] : m[i];
        sum[i] = v_hsum(exp_and_sum(s + i * CTI_KLD, c0, c1, top[i] == ninf ? 0.0f : top[i]));
    }
    for (int i = 0; i < CTI_MR; i++) {
        if (top[i] != m[i] && m[i] != ninf) {
            const vf shrink = v_exp2_neg(v_set1(m[i] - top[i]));
            l[i] *= shrink[0];
            for (int64_t e = 0; e < hp; e += CTI_VL) {
                v_store(o + i * hp + e, v_load(o + i * hp + e) * shrink);
            }
        }
        m[i] = top[i];
        l[i] += sum[i];
    }
}

/* One panel of queries, i0 of the run on, against the packed key block [k0, k0 + bk) of the segment. */
static void fwd_panel(const attn *a, const attn_segment *seg, const fwd_scratch *f, int64_t first, int64_t i0, int64_t n, int64_t k0,
                      int64_t bk)
{
    int64_t lo[CTI_MR], hi[CTI_MR], all_lo = bk, all_hi = 0;
    for (int64_t i = 0; i < CTI_MR; i++) {
        lo[i] = hi[i] = 0;
        if (i0 + i < n) {
            visible_keys(a, seg, first + i0 + i, &lo[i], &hi[i]);
            lo[i] = cti_min_i64(cti_max_i64(lo[i] - k0, 0), bk);
            hi[i] = cti_min_i64(cti_max_i64(hi[i] - k0, 0), bk);
            if (lo[i] < hi[i]) {
                all_lo = cti_min_i64(all_lo, lo[i]);
                all_hi = cti_max_i64(all_hi, hi[i]);
            }
        }
    }
    if (all_lo >= all_hi) {
        return;
    }
    const int64_t c0 = all_lo / CTI_NR * CTI_NR, c1 = cti_round_up(all_hi, CTI_NR);
    const float *q = f->q + i0 * a->h;
    for (int64_t j = c0; j < c1; j += CTI_NR) {
        cti_ukr(2, CTI_A_PANEL, a->h, q, f->k + j * a->h, NULL, 0, f->s + j, CTI_KLD);
    }
    float *o = f->o + i0 * a->hp;
    softmax_panel(f->s, c0, c1, lo, hi, f->m + i0, f->l + i0, o, a->hp);
    ukr_head(CTI_A_ROWS, c1 - c0, f->s + c0, f->v, KEYS, c0, a->hp, o, true);
}

/* Queries [first, first + n) of the segment, one head. */
static void fwd_run(const attn *a, const attn_segment *seg, int64_t head, int64_t first, int64_t n, const ct_tensor *out, float *lse,
                    const fwd_scratch *f)
{
    const int64_t kv_head = head / (a->heads / a->kv_heads);
    const int64_t n_pad = cti_round_up(n, CTI_MR);
    prefetch_head(a, a->q, a->heads, head, seg->q_start + first, n);
    pack_head_queries(f->q, a, a->q, head, seg->q_start + first, n, a->scale * CTI_LOG2E);
    memset(f->o, 0, (size_t)(n_pad * a->hp) * sizeof(float));
    for (int64_t i = 0; i < n_pad; i++) {
        f->m[i] = -__builtin_inff();
        f->l[i] = 0;
    }
    int64_t lo, hi, unused;
    visible_keys(a, seg, first, &lo, &unused);
    visible_keys(a, seg, first + n - 1, &unused, &hi);
    for (int64_t k0 = lo / KEYS * KEYS; k0 < hi; k0 += KEYS) {
        const int64_t bk = cti_min_i64(KEYS, seg->k_len - k0);
        prefetch_head(a, a->k, a->kv_heads, kv_head, seg->k_start + k0, bk);
        prefetch_head(a, a->v, a->kv_heads, kv_head, seg->k_start + k0, bk);
        pack_head_keys(f->k, a, a->k, a->kv_heads, kv_head, seg->k_start + k0, bk);
        pack_head_rows(f->v, a, a->v, a->kv_heads, kv_head, seg->k_start + k0, bk, KEYS);
        for (int64_t i = 0; i < n; i += CTI_MR) {
            fwd_panel(a, seg, f, first, i, n, k0, bk);
        }
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = (seg->q_start + first + i) * a->heads + head;
        float *o = f->o + i * a->hp;
        if (f->l[i] > 0) {
            const vf inv = v_set1(1.0f / f->l[i]);
            for (int64_t e = 0; e < a->hp; e += CTI_VL) {
                v_store(o + e, v_load(o + e) * inv);
            }
            lse[row] = f->m[i] * CTI_LN2 + logf(f->l[i]);
        } else if (f->l[i] != f->l[i]) { /* NaN among the scores */
            lse[row] = f->l[i];
        }
        v_narrow(out->data, out->dtype, row * a->h, o, a->h);
    }
}

typedef struct fwd_tasks {
    const attn *a;
    const ct_tensor *o;
    float *lse, *scratch;
} fwd_tasks;

/* Task t: head t % heads of run t / heads, counted over the segments. */
static void fwd_task(void *ctx, int64_t begin, int64_t end, int thread)
{
    const fwd_tasks *r = ctx;
    const attn *a = r->a;
    const fwd_scratch f = fwd_cut(a, r->scratch + (size_t)thread * fwd_floats(a));
    for (int64_t t = begin; t < end; t++) {
        int64_t run = t / a->heads;
        for (int64_t i = 0; i < a->n_segments; i++) {
            const attn_segment s = segment_at(a, i);
            const int64_t runs = cti_ceil_div(s.q_len, RUN);
            if (run >= runs) {
                run -= runs;
                continue;
            }
            const int64_t step = cti_round_up(cti_ceil_div(s.q_len, runs), CTI_MR);
            const int64_t first = (runs - 1 - run) * step; /* later queries see more keys: they go first */
            if (first < s.q_len) {
                fwd_run(a, &s, t % a->heads, first, cti_min_i64(step, s.q_len - first), r->o, r->lse, &f);
            }
            break;
        }
    }
}

static ct_status forward(const char *op, const ct_launch *launch, bool by_ends, ct_err *err)
{
    attn a;
    attn_shapes(launch, 0, &a);
    CT_TRY(check_floats(op, "input", launch->in, 3, err));
    CT_TRY(attn_segments(op, launch, 3, by_ends, &a, err));
    const size_t per_thread = fwd_floats(&a) * sizeof(float);
    CT_TRY(check_scratch(op, launch, per_thread, err));
    const int threads = (int)cti_min_i64(cti_pool_threads(), (int64_t)(launch->workspace_bytes / per_thread));
    const ct_tensor *o = &launch->out[0];
    float *lse = launch->out[1].data;
    memset(o->data, 0, (size_t)t_numel(o) * ct_dtype_size_bytes(o->dtype)); /* tokens in no segment */
    for (int64_t i = 0; i < a.n_q * a.heads; i++) {
        lse[i] = -__builtin_inff();
    }
    int64_t n_runs = 0;
    for (int64_t i = 0; i < a.n_segments; i++) {
        n_runs += cti_ceil_div(segment_at(&a, i).q_len, RUN);
    }
    fwd_tasks tasks = {&a, o, lse, launch->workspace};
    cti_pool_tasks(n_runs * a.heads, threads, fwd_task, &tasks);
    return CT_OK;
}

size_t CTI_CPU_WORKSPACE(sdpa)(const ct_launch *shapes)
{
    attn a;
    attn_shapes(shapes, 0, &a);
    return fwd_floats(&a) * sizeof(float) * (size_t)cti_pool_threads();
}
size_t CTI_CPU_WORKSPACE(sdpa_tnd)(const ct_launch *shapes)
{
    return CTI_CPU_WORKSPACE(sdpa)(shapes);
}
ct_status CTI_CPU_FN(sdpa)(const ct_launch *launch, ct_err *err)
{
    return forward("sdpa", launch, false, err);
}
ct_status CTI_CPU_FN(sdpa_tnd)(const ct_launch *launch, ct_err *err)
{
    return forward("sdpa_tnd", launch, true, err);
}

ct_status CTI_CPU_FN(segment_ends)(const ct_launch *launch, ct_err *err)
{
    const ct_tensor *table = &launch->in[0];
    const int32_t n = *(const int32_t *)launch->in[1].data;
    int32_t *ends_q = launch->out[0].data, *ends_k = launch->out[1].data;
    if (n < 0 || n > table->dims[0]) {
        return CT_FAIL(err, CT_ERR_RANGE, "segment_ends: %" PRId32 " segments, the table holds %" PRId64, n, table->dims[0]);
    }
    int32_t q = 0, k = 0;
    for (int64_t i = 0; i < table->dims[0]; i++) {
        const int32_t *r = (const int32_t *)table->data + 4 * i;
        if (i < n) {
            if (r[0] != q || r[2] != k || r[1] < 0 || r[3] < 0) {
                return CT_FAIL(err, CT_ERR_RANGE,
                               "segment_ends: segment %" PRId64 " starts at q %" PRId32 ", k %" PRId32 ", the one before ends at q %"
                               PRId32 ", k %" PRId32, i, r[0], r[2], q, k);
            }
            q += r[1];
            k += r[3];
        }
        ends_q[i] = q;
        ends_k[i] = k;
    }
    return CT_OK;
}
