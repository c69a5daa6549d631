/* SPDX-License-Identifier: Apache-2.0 */
/* sdpa_grad and sdpa_tnd_grad: scores are made again block by block (Dao 2023, arXiv 2307.08691, algorithm 2). A task is one kv
 * head of one segment; within it dk and dv are summed over query blocks in order, dq over key blocks in order. */
#include "backend/cpu/isa/cpu_attention_amx.h"
#include "base/pool.h"

/* Keys of one block. */
#define KEYS 256
/* A block's keys, with room for the last group of CTI_HR keys. */
#define BK_PAD (KEYS + CTI_HR)

typedef struct bwd_scratch {
    float *k, *v;            /* [KEYS][hp] */
    float *k_panels;         /* [hp / AR] panels [KEYS][AR] */
    float *q, *d_o;          /* [h][lanes] */
    float *q_rows, *do_rows; /* head rows, one a query */
    float *dk, *dv;          /* [BK_PAD][hp] */
    float *dq, *dq_lanes;    /* [queries][hp], [hp][lanes] */
    float *p, *ds;           /* [CTI_AC][lanes] */
    float *tiles;            /* NULL, or buffers of cpu_attention_grad_amx.h in place of all but dq, dk, dv */
} bwd_scratch;

/* Sums in f32 that the outputs are rounded from; dq and dk lack their factor `scale`. */
typedef struct bwd_sums {
    float *dq;    /* [heads][n_q][hp] */
    float *dk;    /* [kv_heads][n_k][hp] */
    float *dv;    /* as dk */
    float *delta; /* [heads][n_q]: rowsum(do * o) */
} bwd_sums;

/* Floats of cpu_attention_grad_amx.h's buffers. */
CTI_INLINE int64_t bwd_tiles_floats(const attn *a)
{
#if CTI_HAS_AMX
    const int64_t words = tile_h(a) * (2 * KEYS + 2 * CTI_ANQ + QUERIES) + a->hp * (KEYS + 2 * QUERIES) +
                          CTI_AC * (4 * QUERIES + 2 * CTI_ANQ);
    return attn_on_tiles(a) ? 2 * CTI_AC * CTI_ANQ + words / 2 : 0;
#else
    (void)a;
    return 0;
#endif
}

static size_t bwd_floats(const attn *a)
{
    const int64_t tiles = bwd_tiles_floats(a), plain = 2 * a->h * CTI_ANQ + a->hp * (3 * KEYS + 2 * CTI_ANQ) + 2 * CTI_AC * CTI_ANQ;
    return (size_t)(2 * a->hp * (CTI_ANQ + BK_PAD) + (tiles > 0 ? tiles : plain));
}

static bwd_scratch bwd_cut(const attn *a, float *p)
{
    bwd_scratch f = {0};
    f.dq = p;
    f.dq_lanes = f.dq + CTI_ANQ * a->hp;
    f.dk = f.dq_lanes + CTI_ANQ * a->hp;
    f.dv = f.dk + BK_PAD * a->hp;
    float *rest = f.dv + BK_PAD * a->hp;
    if (bwd_tiles_floats(a) > 0) {
        f.tiles = rest;
        return f;
    }
    f.p = rest;
    f.ds = f.p + CTI_AC * CTI_ANQ;
    f.k = f.ds + CTI_AC * CTI_ANQ;
    f.v = f.k + KEYS * a->hp;
    f.k_panels = f.v + KEYS * a->hp;
    f.q_rows = f.k_panels + KEYS * a->hp;
    f.do_rows = f.q_rows + CTI_ANQ * a->hp;
    f.q = f.do_rows + CTI_ANQ * a->hp;
    f.d_o = f.q + CTI_ANQ * a->h;
    return f;
}

static size_t sums_floats(const attn *a)
{
    return (size_t)(a->heads * a->n_q * (a->hp + 1) + 2 * a->kv_heads * a->n_k * a->hp);
}

/* Weights p = 2^(score - lse) and ds = p (dp - delta) of keys [j, j + CTI_AR): both products begin at what is to be taken off. */
CTI_INLINE void grad_tile(const int nv, const attn *a, const bwd_scratch *f, const attn_view *w, int64_t j, const float *lse,
                          const float *delta, float *p, float *ds)
{
    vf acc[CTI_AR][CTI_AQ];
    CTI_UNROLL
    for (int i = 0; i < CTI_AR; i++) {
        CTI_UNROLL
        for (int v = 0; v < nv; v++) {
            acc[i][v] = -v_load(lse + v * CTI_VL);
        }
    }
    add_lanes(nv, a->h, f->k + j * a->hp, a->hp, 1, f->q, acc);
    const bool is_whole = all_see(w, j);
    CTI_UNROLL
    for (int i = 0; i < CTI_AR; i++) {
        v_exp2_negs(nv, acc[i]);
        CTI_UNROLL
        for (int v = 0; v < nv; v++) {
            const vf e = acc[i][v];
            v_store(p + (i * nv + v) * CTI_VL, is_whole ? e : only_seen(w, v, j + i, e));
            acc[i][v] = -v_load(delta + v * CTI_VL);
        }
    }
    add_lanes(nv, a->h, f->v + j * a->hp, a->hp, 1, f->d_o, acc);
    CTI_UNROLL
    for (int i = 0; i < CTI_AR; i++) {
        CTI_UNROLL
        for (int v = 0; v < nv; v++) {
            const vf d = acc[i][v] * v_load(p + (i * nv + v) * CTI_VL);
            v_store(ds + (i * nv + v) * CTI_VL, is_whole ? d : only_seen(w, v, j + i, d));
        }
    }
}

typedef struct bwd_task {
    const attn *a;
    const ct_tensor *d_o, *o;
    const float *lse;
    const ct_tensor *out; /* dq, dk, dv: written here where no other task has a part in them; else NULL, all goes to the sums */
    bwd_sums sums;
    attn_segment seg;
    bwd_scratch f;
    attn_ahead next; /* what this head writes and what the next one reads */
} bwd_task;

#if CTI_HAS_AMX
#include "backend/cpu/isa/cpu_attention_grad_amx.h"
#endif

/* The same on vectors. */
CTI_INLINE void bwd_lanes_block(const int nv, bwd_task *t, int64_t head, int64_t token, int64_t nq, const attn_view *w, const float *lse,
                                const float *delta)
{
    const attn *a = t->a;
    const bwd_scratch *f = &t->f;
    const int64_t lanes = nv * CTI_VL, j0 = w->all_lo / CTI_AR * CTI_AR, j1 = cti_round_up(w->all_hi, CTI_AR);
    pack_head_lanes(f->q, lanes, a, a->q, head, token, nq, a->scale * CTI_LOG2E);
    pack_head_lanes(f->d_o, lanes, a, t->d_o, head, token, nq, 1.0f);
    pack_head_rows(f->q_rows, a, a->q, a->heads, head, token, nq);
    pack_head_rows(f->do_rows, a, t->d_o, a->heads, head, token, nq);
    for (int64_t c = j0; c < j1; c += CTI_AC) {
        const int64_t nc = cti_min_i64(CTI_AC, j1 - c), past = cti_round_up(nc, CTI_HR) - nc; /* rows too many in the last group */
        for (int64_t j = 0; j < nc; j += CTI_AR) {
            look_ahead(&t->next);
            grad_tile(nv, a, f, w, c + j, lse, delta, f->p + j * lanes, f->ds + j * lanes);
        }
        memset(f->p + nc * lanes, 0, (size_t)(past * lanes) * sizeof(float));
        memset(f->ds + nc * lanes, 0, (size_t)(past * lanes) * sizeof(float));
        for (int64_t e = 0; e < a->hp; e += CTI_AR) {
            ukr_lanes(nv, nc, f->k_panels + e * KEYS + c * CTI_AR, 1, CTI_AR, f->ds, f->dq_lanes + e * lanes, true);
        }
        for (int64_t j = 0; j < nc; j += CTI_HR) {
            ukr_head(nq, f->p + j * lanes, lanes, f->do_rows, a->hp, f->dv + (c + j) * a->hp);
            ukr_head(nq, f->ds + j * lanes, lanes, f->q_rows, a->hp, f->dk + (c + j) * a->hp);
        }
    }
}

/* Queries [q0, q0 + nq) of the segment against its keys [k0, k0 + bk), which are packed. */
CTI_INLINE void bwd_block(const int nv, bwd_task *t, int64_t head, int64_t q0, int64_t nq, int64_t k0, int64_t bk)
{
    const attn *a = t->a;
    const bwd_scratch *f = &t->f;
    const int64_t lanes = nv * CTI_VL, token = t->seg.q_start + q0;
    attn_view w;
    attn_look(a, &t->seg, q0, nq, lanes, k0, bk, &w);
    if (w.all_lo >= w.all_hi) {
        return;
    }
    const int64_t ahead = cti_min_i64(CTI_ANQ, t->seg.q_len - q0 - nq); /* the next block's */
    prefetch_head(a, a->q, a->heads, head, token + nq, ahead);
    prefetch_head(a, t->d_o, a->heads, head, token + nq, ahead);
    float lse[CTI_ANQ] = {0}, delta[CTI_ANQ] = {0};
    for (int64_t i = 0; i < lanes; i++) {
        lse[i] = i < nq && w.lo[i] < w.hi[i] ? t->lse[(token + i) * a->heads + head] * CTI_LOG2E : 0.0f;
        delta[i] = i < nq ? t->sums.delta[head * a->n_q + token + i] : 0.0f;
    }
    memset(f->dq_lanes, 0, (size_t)(a->hp * lanes) * sizeof(float));
#if CTI_HAS_AMX
    if (f->tiles) {
        const bwd_tiles tiles = bwd_tiles_of(a, f->tiles);
        pack_query_tiles(a, t->d_o, head, token, nq, lanes, &tiles);
        bwd_tiles_block(nv, a, f, &w, w.all_lo / AK * AK, cti_round_up(w.all_hi, AK), lse, delta, &t->next);
    }
#endif
    if (!f->tiles) {
        bwd_lanes_block(nv, t, head, token, nq, &w, lse, delta);
    }
    CTI_CPU_FN(pack_transposed)(f->dq, a->hp, f->dq_lanes, CT_DTYPE_F32, lanes, 0, a->hp, 0, nq);
    float *dq = t->sums.dq + (head * a->n_q + token) * a->hp;
    for (int64_t e = 0; e < nq * a->hp; e += CTI_VL) {
        v_store(dq + e, v_load(dq + e) + v_load(f->dq + e));
    }
}

static void bwd_blocks(bwd_task *t, int64_t head, int64_t k0, int64_t bk)
{
    for (int64_t q0 = 0; q0 < t->seg.q_len; q0 += CTI_ANQ) {
        const int64_t nq = cti_min_i64(CTI_ANQ, t->seg.q_len - q0);
        switch (attn_vectors(nq)) {
        case 1:
            bwd_block(1, t, head, q0, nq, k0, bk);
            break;
        case 2:
            bwd_block(2, t, head, q0, nq, k0, bk);
            break;
        default:
            bwd_block(3, t, head, q0, nq, k0, bk);
        }
    }
}

/* Rows [first, first + n) of one head of `out`: sums [n][hp] times scale, rounded. */
static void write_head(const attn *a, const ct_tensor *out, int64_t heads, int64_t head, int64_t first, int64_t n, float *sums, float scale)
{
    for (int64_t e = 0; e < n * a->hp; e += CTI_VL) {
        v_store(sums + e, v_load(sums + e) * scale);
    }
    for (int64_t i = 0; i < n; i++) {
        v_narrow(out->data, out->dtype, ((first + i) * heads + head) * a->h, sums + i * a->hp, a->h);
    }
}

static void add_floats(float *dst, const float *src, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        dst[i] += src[i];
    }
}

/* delta of the segment's queries, one head. */
static void compute_delta(const bwd_task *t, int64_t head)
{
    const attn *a = t->a;
    for (int64_t q = t->seg.q_start; q < t->seg.q_start + t->seg.q_len; q++) {
        const int64_t at = (q * a->heads + head) * a->h;
        float sum = 0;
        for (int64_t e = 0; e < a->h; e += 64) {
            float bd[64], bo[64];
            const int64_t n = cti_min_i64(64, a->h - e);
            const float *pd = v_view(t->d_o->data, t->d_o->dtype, at + e, n, bd);
            const float *po = v_view(t->o->data, t->o->dtype, at + e, n, bo);
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
        t->sums.delta[head * a->n_q + q] = sum;
    }
}

/* What this kv head's task writes, and what that of the next one reads, where a head's rows of them are few enough to wait in a cache. */
static attn_ahead look_where(const bwd_task *t, int64_t kv_head)
{
    const attn *a = t->a;
    attn_ahead w = {.tokens = cti_min_i64(t->seg.q_len, t->seg.k_len)};
    if (t->seg.k_len > KEYS || a->heads != a->kv_heads) {
        w.tokens = 0;
        return w;
    }
    for (int i = 0; t->out && i < 3; i++) {
        ahead_add(&w, a, &t->out[i], a->heads, kv_head, i == 0 ? t->seg.q_start : t->seg.k_start);
    }
    if (kv_head + 1 < a->kv_heads) {
        ahead_add(&w, a, t->d_o, a->heads, kv_head + 1, t->seg.q_start);
        ahead_add(&w, a, t->o, a->heads, kv_head + 1, t->seg.q_start);
        ahead_add(&w, a, a->q, a->heads, kv_head + 1, t->seg.q_start);
        ahead_add(&w, a, a->k, a->heads, kv_head + 1, t->seg.k_start);
        ahead_add(&w, a, a->v, a->heads, kv_head + 1, t->seg.k_start);
    }
    return w;
}

static void pack_keys(const attn *a, int64_t kv_head, int64_t first, int64_t bk, const bwd_scratch *f)
{
#if CTI_HAS_AMX
    if (f->tiles) {
        pack_key_tiles(a, kv_head, first, bk, f);
        return;
    }
#endif
    const int64_t pad = cti_round_up(bk, CTI_AR);
    pack_head(f->k, a->hp, a, a->k, a->kv_heads, kv_head, first, bk, pad);
    pack_head(f->v, a->hp, a, a->v, a->kv_heads, kv_head, first, bk, pad);
    pack_head_panels(f->k_panels, KEYS, f->k, a->hp, pad);
}

/* One segment, one kv head. */
static void bwd_segment(bwd_task *t, int64_t kv_head)
{
    const attn *a = t->a;
    const bwd_scratch *f = &t->f;
    const int64_t group = a->heads / a->kv_heads;
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; head++) {
        compute_delta(t, head);
    }
    t->next = look_where(t, kv_head);
    for (int64_t head = kv_head * group; t->out && head < (kv_head + 1) * group; head++) {
        memset(t->sums.dq + (head * a->n_q + t->seg.q_start) * a->hp, 0, (size_t)(t->seg.q_len * a->hp) * sizeof(float));
    }
    for (int64_t k0 = 0; k0 < t->seg.k_len; k0 += KEYS) {
        const int64_t bk = cti_min_i64(KEYS, t->seg.k_len - k0), first = t->seg.k_start + k0;
        prefetch_head(a, a->k, a->kv_heads, kv_head, first, bk);
        prefetch_head(a, a->v, a->kv_heads, kv_head, first, bk);
        pack_keys(a, kv_head, first, bk, f);
        const int64_t touched = cti_min_i64(BK_PAD, cti_round_up(bk, CTI_AR) + 2 * CTI_HR);
        memset(f->dk, 0, (size_t)(touched * a->hp) * sizeof(float));
        memset(f->dv, 0, (size_t)(touched * a->hp) * sizeof(float));
        for (int64_t head = kv_head * group; head < (kv_head + 1) * group; head++) {
            bwd_blocks(t, head, k0, bk);
        }
        if (t->out) {
            write_head(a, &t->out[1], a->kv_heads, kv_head, first, bk, f->dk, a->scale);
            write_head(a, &t->out[2], a->kv_heads, kv_head, first, bk, f->dv, 1.0f);
            continue;
        }
        const int64_t at = (kv_head * a->n_k + first) * a->hp;
        add_floats(t->sums.dk + at, f->dk, bk * a->hp);
        add_floats(t->sums.dv + at, f->dv, bk * a->hp);
    }
    for (int64_t head = kv_head * group; t->out && head < (kv_head + 1) * group; head++) {
        float *dq = t->sums.dq + (head * a->n_q + t->seg.q_start) * a->hp;
        write_head(a, &t->out[0], a->heads, head, t->seg.q_start, t->seg.q_len, dq, a->scale);
    }
}

typedef struct sums_run {
    const attn *a;
    const ct_tensor *out;
    float *sums;
    int64_t heads, n;
    float scale;
} sums_run;

static void write_heads(void *ctx, int64_t first, int64_t end, int thread)
{
    const sums_run *r = ctx;
    (void)thread;
    for (int64_t head = first; head < end; head++) {
        write_head(r->a, r->out, r->heads, head, 0, r->n, r->sums + head * r->n * r->a->hp, r->scale);
    }
}

/* [heads][n][hp] sums times scale, rounded into [n, heads, h]. */
static void write_sums(const attn *a, const ct_tensor *out, float *sums, int64_t heads, int64_t n, float scale)
{
    sums_run r = {a, out, sums, heads, n, scale};
    cti_pool_run(heads, 1, write_heads, &r);
}

/* Two segments share queries or keys: their sums must not run at once. */
static bool segments_overlap(const attn *a)
{
    int64_t q_end = 0, k_end = 0;
    for (int64_t i = 0; i < a->n_segments; i++) {
        const attn_segment s = segment_at(a, i);
        if (s.q_start < q_end || s.k_start < k_end) {
            return true; /* or out of order, which costs no more than the slower way */
        }
        q_end = s.q_start + s.q_len;
        k_end = s.k_start + s.k_len;
    }
    return false;
}

typedef struct bwd_tasks {
    const attn *a;
    const ct_tensor *d_o, *o;
    const float *lse;
    const ct_tensor *out;
    bwd_sums sums;
    float *scratch;
    bool apart; /* a task is a kv head of one segment; else of all of them, in order */
} bwd_tasks;

static void bwd_run(void *ctx, int64_t begin, int64_t end, int thread)
{
    const bwd_tasks *r = ctx;
    const attn *a = r->a;
    bwd_task t = {.a = a, .d_o = r->d_o, .o = r->o, .lse = r->lse, .out = r->apart ? r->out : NULL, .sums = r->sums};
    t.f = bwd_cut(a, r->scratch + (size_t)thread * bwd_floats(a));
    attn_tiles_begin(t.f.tiles);
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = r->apart ? i / a->kv_heads : 0, last = r->apart ? first + 1 : a->n_segments;
        for (int64_t s = first; s < last; s++) {
            t.seg = segment_at(a, s);
            bwd_segment(&t, i % a->kv_heads);
        }
    }
    attn_tiles_end(t.f.tiles);
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
    /* Where segments share tokens a task is a kv head with all segments in order; the sums are the same either way. */
    const bool apart = !segments_overlap(&a);
    bwd_tasks tasks = {&a, &launch->in[0], &launch->in[4], launch->in[5].data, launch->out, sums, scratch, apart};
    if (!apart) {
        memset(base, 0, (size_t)(sums.delta - base) * sizeof(float));
    }
    for (int i = 0; apart && i < 3; i++) { /* tokens in no segment */
        if (!attn_covers(&a, i > 0)) {
            memset(launch->out[i].data, 0, (size_t)t_numel(&launch->out[i]) * ct_dtype_size_bytes(launch->out[i].dtype));
        }
    }
    attn_share(apart ? a.n_segments * a.kv_heads : a.kv_heads, threads, bwd_run, &tasks);
    if (!apart) {
        write_sums(&a, &launch->out[0], sums.dq, a.heads, a.n_q, a.scale);
        write_sums(&a, &launch->out[1], sums.dk, a.kv_heads, a.n_k, a.scale);
        write_sums(&a, &launch->out[2], sums.dv, a.kv_heads, a.n_k, 1.0f);
    }
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
