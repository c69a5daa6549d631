/* SPDX-License-Identifier: Apache-2.0 */
/* sdpa_grad and sdpa_tnd_grad: scores are made again block by block (Dao 2023, arXiv 2307.08691, algorithm 2). A task is one kv
 * head of one segment; within it dk and dv are summed over query blocks in order, dq over key blocks in order. */
#include "backend/cpu/isa/cpu_attention.h"
#include "base/pool.h"

/* Queries of one block: whole panels, few, so that a block of scores stays near. */
#define BQ (CTI_MR * (28 / CTI_MR))
/* Keys of one block. */
#define KEYS CTI_KC
/* A block's keys, with room for the last group of CTI_MR keys. */
#define BK_PAD (KEYS + CTI_MR)

typedef struct bwd_scratch {
    float *k_cols, *v_cols; /* [KEYS / NR] panels [h][NR] */
    float *k_rows;          /* head rows, KEYS long */
    float *q, *d_o;         /* [BQ / MR] panels [h][MR];*/
    float *q_rows, *do_rows; /* head rows, BQ long */
    float *dk, *dv;         /* [BK_PAD][hp] */
    float *dq;              /* [BQ][hp] */
    float *p, *ds;          /* [BQ][KLD] */
} bwd_scratch;

/* Sums in f32 that the outputs are rounded from; dq and dk lack their factor `scale`. */
typedef struct bwd_sums {
    float *dq;    /* [heads][n_q][hp] */
    float *dk;    /* [kv_heads][n_k][hp] */
    float *dv;    /* as dk */
    float *delta; /* [heads][n_q]: rowsum(do * o) */
} bwd_sums;

static size_t bwd_floats(const attn *a)
{
    return (size_t)(a->h * (2 * KEYS + 2 * BQ) + a->hp * (KEYS + 3 * BQ + 2 * BK_PAD) + 2 * BQ * CTI_KLD);
}

static bwd_scratch bwd_cut(const attn *a, float *p)
{
    bwd_scratch f;
    f.p = p;
    f.ds = f.p + BQ * CTI_KLD;
    f.k_rows = f.ds + BQ * CTI_KLD;
    f.q_rows = f.k_rows + KEYS * a->hp;
    f.do_rows = f.q_rows + BQ * a->hp;
    f.dq = f.do_rows + BQ * a->hp;
    f.dk = f.dq + BQ * a->hp;
    f.dv = f.dk + BK_PAD * a->hp;
    f.k_cols = f.dv + BK_PAD * a->hp;
    f.v_cols = f.k_cols + KEYS * a->h;
    f.q = f.v_cols + KEYS * a->h;
    f.d_o = f.q + BQ * a->h;
    return f;
}

static size_t sums_floats(const attn *a)
{
    return (size_t)(a->heads * a->n_q * (a->hp + 1) + 2 * a->kv_heads * a->n_k * a->hp);
}

/* One row: scores in columns [c0, c1) become p = 2^(score - lse), dp becomes ds = p (dp - delta); both 0 outside [lo, hi). */
CTI_INLINE void grad_row(float *p, float *ds, int64_t c0, int64_t c1, int64_t lo, int64_t hi, float lse, float delta)
{
    mask_row(p, c0, c1, lo, hi);
    const vf shift = v_set1(lo < hi ? lse : 0.0f), vdelta = v_set1(delta);
    for (int64_t j = c0; j < c1; j += CTI_VL) {
        vf e = v_exp2_neg(v_load(p + j) - shift);
        v_store(p + j, e);
        v_store(ds + j, e * (v_load(ds + j) - vdelta));
    }
    memset(p + c1, 0, CTI_MR * sizeof(float)); /* the last group of keys may reach past c1 */
    memset(ds + c1, 0, CTI_MR * sizeof(float));
}

typedef struct bwd_task {
    const attn *a;
    const ct_tensor *d_o;
    const float *lse;
    bwd_sums sums;
    attn_segment seg;
    bwd_scratch f;
} bwd_task;

/* Queries [q0, q0 + nq) of the segment against its keys [k0, k0 + bk), which are packed. */
static void bwd_block(const bwd_task *t, int64_t head, int64_t q0, int64_t nq, int64_t k0, int64_t bk)
{
    const attn *a = t->a;
    const bwd_scratch *f = &t->f;
    int64_t lo[BQ], hi[BQ], all_lo = bk, all_hi = 0;
    const int64_t nq_pad = cti_round_up(nq, CTI_MR);
    for (int64_t i = 0; i < nq_pad; i++) {
        lo[i] = hi[i] = 0;
        if (i < nq) {
            visible_keys(a, &t->seg, q0 + i, &lo[i], &hi[i]);
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
    const int64_t token = t->seg.q_start + q0;
    const int64_t ahead = cti_min_i64(BQ, t->seg.q_len - q0 - nq); /* the next block's */
    prefetch_head(a, a->q, a->heads, head, token + nq, ahead);
    prefetch_head(a, t->d_o, a->heads, head, token + nq, ahead);
    pack_head_queries(f->q, a, a->q, head, token, nq, a->scale * CTI_LOG2E);
    pack_head_queries(f->d_o, a, t->d_o, head, token, nq, 1.0f);
    pack_head_rows(f->q_rows, a, a->q, a->heads, head, token, nq, BQ);
    pack_head_rows(f->do_rows, a, t->d_o, a->heads, head, token, nq, BQ);
    for (int64_t i0 = 0; i0 < nq_pad; i0 += CTI_MR) {
        float *p = f->p + i0 * CTI_KLD, *ds = f->ds + i0 * CTI_KLD;
        for (int64_t j = c0; j < c1; j += CTI_NR) {
            cti_ukr(2, CTI_A_PANEL, a->h, f->q + i0 * a->h, f->k_cols + j * a->h, NULL, 0, p + j, CTI_KLD);
            cti_ukr(2, CTI_A_PANEL, a->h, f->d_o + i0 * a->h, f->v_cols + j * a->h, NULL, 0, ds + j, CTI_KLD);
        }
        for (int64_t i = 0; i < CTI_MR; i++) {
            const bool is_row = i0 + i < nq;
            const float lse = is_row ? t->lse[(token + i0 + i) * a->heads + head] * CTI_LOG2E : 0.0f;
            const float delta = is_row ? t->sums.delta[head * a->n_q + token + i0 + i] : 0.0f;
            grad_row(p + i * CTI_KLD, ds + i * CTI_KLD, c0, c1, lo[i0 + i], hi[i0 + i], lse, delta);
        }
        ukr_head(CTI_A_ROWS, c1 - c0, ds + c0, f->k_rows, KEYS, c0, a->hp, f->dq + i0 * a->hp, false);
    }
    for (int64_t j = c0; j < all_hi; j += CTI_MR) {
        ukr_head(CTI_A_COLS, nq_pad, f->p + j, f->do_rows, BQ, 0, a->hp, f->dv + j * a->hp, true);
        ukr_head(CTI_A_COLS, nq_pad, f->ds + j, f->q_rows, BQ, 0, a->hp, f->dk + j * a->hp, true);
    }
    float *dq = t->sums.dq + (head * a->n_q + token) * a->hp;
    for (int64_t e = 0; e < nq * a->hp; e += CTI_VL) {
        v_store(dq + e, v_load(dq + e) + v_load(f->dq + e));
    }
}

static void add_floats(float *dst, const float *src, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        dst[i] += src[i];
    }
}

/* One segment, one kv head. */
static void bwd_segment(const bwd_task *t, int64_t kv_head)
{
    const attn *a = t->a;
    const bwd_scratch *f = &t->f;
    const int64_t group = a->heads / a->kv_heads;
    for (int64_t k0 = 0; k0 < t->seg.k_len; k0 += KEYS) {
        const int64_t bk = cti_min_i64(KEYS, t->seg.k_len - k0), first = t->seg.k_start + k0;
        prefetch_head(a, a->k, a->kv_heads, kv_head, first, bk);
        prefetch_head(a, a->v, a->kv_heads, kv_head, first, bk);
        pack_head_keys(f->k_cols, a, a->k, a->kv_heads, kv_head, first, bk);
        pack_head_keys(f->v_cols, a, a->v, a->kv_heads, kv_head, first, bk);
        pack_head_rows(f->k_rows, a, a->k, a->kv_heads, kv_head, first, bk, KEYS);
        memset(f->dk, 0, (size_t)(BK_PAD * a->hp) * sizeof(float));
        memset(f->dv, 0, (size_t)(BK_PAD * a->hp) * sizeof(float));
        for (int64_t head = kv_head * group; head < (kv_head + 1) * group; head++) {
            for (int64_t q0 = 0; q0 < t->seg.q_len; q0 += BQ) {
                bwd_block(t, head, q0, cti_min_i64(BQ, t->seg.q_len - q0), k0, bk);
            }
        }
        const int64_t at = (kv_head * a->n_k + first) * a->hp;
        add_floats(t->sums.dk + at, f->dk, bk * a->hp);
        add_floats(t->sums.dv + at, f->dv, bk * a->hp);
    }
}

typedef struct delta_run {
    const attn *a;
    const ct_tensor *d_o, *o;
    float *delta; /* of every query and head */
} delta_run;

static void compute_delta(void *ctx, int64_t first, int64_t end, int thread)
{
    const delta_run *r = ctx;
    const attn *a = r->a;
    const ct_tensor *d_o = r->d_o, *o = r->o;
    (void)thread;
    for (int64_t t = first; t < end; t++) {
        for (int64_t head = 0; head < a->heads; head++) {
            const int64_t at = (t * a->heads + head) * a->h;
            float sum = 0;
            for (int64_t e = 0; e < a->h; e += 64) {
                float bd[64], bo[64];
                const int64_t n = cti_min_i64(64, a->h - e);
                const float *pd = v_view(d_o->data, d_o->dtype, at + e, n, bd);
                const float *po = v_view(o->data, o->dtype, at + e, n, bo);
                vf acc = {0};
                int64_t i = 0;
                for (; i + CTI_VL <= n; i += CTI_VL) {
                    acc = v_fma(v_load(pd + i), v_load(po + i), acc);
                }
                sum += v_hsum(acc);
                for (; i < n; i++) {
                    sum += pd[i] * po[i];
                }
            }
            r->delta[head * a->n_q + t] = sum;
        }
    }
}

/* [heads][n][hp] sums times scale, rounded into [n, heads, h]. */
typedef struct sums_run {
    const attn *a;
    const ct_tensor *out;
    const float *sums;
    int64_t heads, n;
    float scale;
} sums_run;

static void write_rows(void *ctx, int64_t first, int64_t end, int thread)
{
    const sums_run *r = ctx;
    const attn *a = r->a;
    (void)thread;
    for (int64_t t = first; t < end; t++) {
        for (int64_t head = 0; head < r->heads; head++) {
            const float *s = r->sums + (head * r->n + t) * a->hp;
            for (int64_t e = 0; e < a->h; e += 64) {
                float buf[64];
                const int64_t m = cti_min_i64(64, a->h - e);
                for (int64_t i = 0; i < m; i++) {
                    buf[i] = s[e + i] * r->scale;
                }
                v_narrow(r->out->data, r->out->dtype, (t * r->heads + head) * a->h + e, buf, m);
            }
        }
    }
}

static void write_sums(const attn *a, const ct_tensor *out, const float *sums, int64_t heads, int64_t n, float scale)
{
    sums_run r = {a, out, sums, heads, n, scale};
    cti_pool_run(n, grain_of(heads * a->h), write_rows, &r);
}

/* Two segments share keys: their sums must not run at once. */
static bool keys_overlap(const attn *a)
{
    int64_t end = 0;
    for (int64_t i = 0; i < a->n_segments; i++) {
        const attn_segment s = segment_at(a, i);
        if (s.k_start < end) {
            return true; /* or out of order, which costs no more than the slower way */
        }
        end = s.k_start + s.k_len;
    }
    return false;
}

typedef struct bwd_tasks {
    const attn *a;
    const ct_tensor *d_o;
    const float *lse;
    bwd_sums sums;
    float *scratch;
    bool apart; /* a task is a kv head of one segment; else of all of them, in order */
} bwd_tasks;

static void bwd_run(void *ctx, int64_t begin, int64_t end, int thread)
{
    const bwd_tasks *r = ctx;
    const attn *a = r->a;
    bwd_task t = {.a = a, .d_o = r->d_o, .lse = r->lse, .sums = r->sums};
    t.f = bwd_cut(a, r->scratch + (size_t)thread * bwd_floats(a));
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = r->apart ? i / a->kv_heads : 0, last = r->apart ? first + 1 : a->n_segments;
        for (int64_t s = first; s < last; s++) {
            t.seg = segment_at(a, s);
            bwd_segment(&t, i % a->kv_heads);
        }
    }
}

static ct_status backward(const char *op, const ct_launch *launch, bool by_ends, ct_err *err)
{
    attn a;
    attn_shapes(launch, 1, &a);
    CT_TRY(check_floats(op, "input", launch->in, 5, err));
    CT_TRY(attn_segments(op, launch, 6, by_ends, &a, err));
    const size_t fixed = sums_floats(&a) * sizeof(float), per_thread = bwd_floats(&a) * sizeof(float);
    CT_TRY(check_scratch(op, launch, fixed + per_thread, err));
    const int threads = (int)cti_min_i64(cti_pool_threads(), (int64_t)((launch->workspace_bytes - fixed) / per_thread));
    float *base = launch->workspace;
    bwd_sums sums;
    sums.dq = base;
    sums.dk = sums.dq + a.heads * a.n_q * a.hp;
    sums.dv = sums.dk + a.kv_heads * a.n_k * a.hp;
    sums.delta = sums.dv + a.kv_heads * a.n_k * a.hp;
    float *scratch = sums.delta + a.heads * a.n_q;
    memset(base, 0, (size_t)(sums.delta - base) * sizeof(float));
    delta_run deltas = {&a, &launch->in[0], &launch->in[4], sums.delta};
    cti_pool_run(a.n_q, grain_of(a.heads * a.h), compute_delta, &deltas);
    /* Where segments share keys a task is a kv head with all segments in order; the sums are the same either way. */
    bwd_tasks tasks = {&a, &launch->in[0], launch->in[5].data, sums, scratch, !keys_overlap(&a)};
    cti_pool_tasks(tasks.apart ? a.n_segments * a.kv_heads : a.kv_heads, threads, bwd_run, &tasks);
    write_sums(&a, &launch->out[0], sums.dq, a.heads, a.n_q, a.scale);
    write_sums(&a, &launch->out[1], sums.dk, a.kv_heads, a.n_k, a.scale);
    write_sums(&a, &launch->out[2], sums.dv, a.kv_heads, a.n_k, 1.0f);
    return CT_OK;
}

size_t CTI_CPU_WORKSPACE(sdpa_grad)(const ct_launch *shapes)
{
    attn a;
    attn_shapes(shapes, 1, &a);
    return (sums_floats(&a) + bwd_floats(&a) * (size_t)cti_pool_threads()) * sizeof(float);
}
size_t CTI_CPU_WORKSPACE(sdpa_tnd_grad)(const ct_launch *shapes)
{
    return CTI_CPU_WORKSPACE(sdpa_grad)(shapes);
}
ct_status CTI_CPU_FN(sdpa_grad)(const ct_launch *launch, ct_err *err)
{
    return backward("sdpa_grad", launch, false, err);
}
ct_status CTI_CPU_FN(sdpa_tnd_grad)(const ct_launch *launch, ct_err *err)
{
    return backward("sdpa_tnd_grad", launch, true, err);
}
