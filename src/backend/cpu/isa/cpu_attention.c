/* SPDX-License-Identifier: Apache-2.0 */
/* sdpa and sdpa_tnd, forward, and segment_ends. A task is one head of a run of queries of one segment; its keys and values are
 * packed block by block, softmax is kept running (Milakov and Gimelshein 2018, arXiv 1805.02867). */
#include <math.h>

#include "backend/cpu/isa/cpu_attention_amx.h"
#include "base/pool.h"

/* Queries of one task: whole blocks. */
#define RUN (CTI_ANQ * (480 / CTI_ANQ))
/* Keys of one block. */
#define KEYS 256

/* Per-thread buffers, all from one block of floats. */
typedef struct fwd_scratch {
    float *k;      /* [KEYS][hp] */
    float *v;      /* [hp / AR] panels [KEYS][AR] */
    float *rows;   /* [KEYS][hp] */
    float *s;      /* [KEYS][lanes] scores of one block of queries, in units of ln 2, then weights */
    float *q;      /* per block of queries [h][lanes] */
    float *o;      /* per block of queries [hp][lanes] */
    float *m, *l;  /* [RUN] running max and sum */
    uint16_t *tiles; /* NULL, or buffers of cpu_attention_fwd_amx.h in place of k, v and q */
} fwd_scratch;

/* Floats of cpu_attention_fwd_amx.h's buffers. */
CTI_INLINE int64_t fwd_tiles_floats(const attn *a)
{
#if CTI_HAS_AMX
    return attn_on_tiles(a) ? (KEYS * (2 * tile_h(a) + a->hp) + RUN * tile_h(a) + 2 * KEYS * CTI_ANQ) / 2 : 0;
#else
    (void)a;
    return 0;
#endif
}

static size_t fwd_floats(const attn *a)
{
    const int64_t tiles = fwd_tiles_floats(a), plain = 2 * KEYS * a->hp + RUN * a->h;
    return (size_t)(KEYS * (a->hp + CTI_ANQ) + RUN * (a->hp + 2) + (tiles > 0 ? tiles : plain));
}

static fwd_scratch fwd_cut(const attn *a, float *p)
{
    fwd_scratch f = {0};
    f.rows = p;
    f.s = f.rows + KEYS * a->hp;
    f.o = f.s + KEYS * CTI_ANQ;
    f.m = f.o + RUN * a->hp;
    f.l = f.m + RUN;
    float *rest = f.l + RUN;
    if (fwd_tiles_floats(a) > 0) {
        f.tiles = (uint16_t *)(void *)rest;
        return f;
    }
    f.k = rest;
    f.v = f.k + KEYS * a->hp;
    f.q = f.v + KEYS * a->hp;
    return f;
}

/* Scores of keys [j0, j1) become weights; max m and sum l go on, sums o of before shrink. */
CTI_INLINE void softmax_lanes(const int nv, float *s, int64_t j0, int64_t j1, float *m, float *l, float *o, int64_t hp)
{
    const vf ninf = v_set1(-__builtin_inff());
    vf top[CTI_AQ], sum[CTI_AQ], shift[CTI_AQ], shrink[CTI_AQ];
    for (int v = 0; v < nv; v++) {
        top[v] = v_load(m + v * CTI_VL);
    }
    for (int64_t j = j0; j < j1; j++) {
        CTI_UNROLL
        for (int v = 0; v < nv; v++) {
            top[v] = v_max(v_load(s + (j * nv + v) * CTI_VL), top[v]);
        }
    }
    for (int v = 0; v < nv; v++) {
        shift[v] = v_select((vi)(top[v] == ninf), (vf){0}, top[v]);
        shrink[v] = v_exp2_neg(v_load(m + v * CTI_VL) - shift[v]);
        sum[v] = (vf){0};
        v_store(m + v * CTI_VL, top[v]);
    }
    for (int64_t j = j0; j < j1; j++) {
        float *p = s + j * nv * CTI_VL;
        vf e[CTI_AQ];
        CTI_UNROLL
        for (int v = 0; v < nv; v++) {
            e[v] = v_load(p + v * CTI_VL) - shift[v];
        }
        v_exp2_negs(nv, e);
        CTI_UNROLL
        for (int v = 0; v < nv; v++) {
            v_store(p + v * CTI_VL, e[v]);
            sum[v] += e[v];
        }
    }
    for (int v = 0; v < nv; v++) {
        v_store(l + v * CTI_VL, v_fma(v_load(l + v * CTI_VL), shrink[v], sum[v]));
    }
    for (int64_t e = 0; e < hp; e++) {
        CTI_UNROLL
        for (int v = 0; v < nv; v++) {
            float *p = o + (e * nv + v) * CTI_VL;
            v_store(p, v_load(p) * shrink[v]);
        }
    }
}

#if CTI_HAS_AMX
#include "backend/cpu/isa/cpu_attention_fwd_amx.h"
#endif

/* Block of queries [i0, i0 + n) of the run against the packed key block [k0, k0 + bk) of the segment. */
CTI_INLINE void fwd_block(const int nv, const attn *a, const attn_segment *seg, const fwd_scratch *f, int64_t first, int64_t i0, int64_t n,
                          int64_t k0, int64_t bk, attn_ahead *next)
{
    attn_view w;
    attn_look(a, seg, first + i0, n, nv * CTI_VL, k0, bk, &w);
    if (w.all_lo >= w.all_hi) {
        return;
    }
#if CTI_HAS_AMX
    if (f->tiles) {
        fwd_tiles_block(nv, a, f, i0, &w, next);
        return;
    }
#endif
    const int64_t j0 = w.all_lo / CTI_AR * CTI_AR, j1 = cti_round_up(w.all_hi, CTI_AR);
    const float *q = f->q + i0 * a->h;
    float *o = f->o + i0 * a->hp;
    for (int64_t j = j0; j < j1; j += CTI_AR) {
        look_ahead(next);
        ukr_lanes(nv, a->h, f->k + j * a->hp, a->hp, 1, q, f->s + j * nv * CTI_VL, false);
    }
    attn_mask(nv, f->s, &w, j0, j1);
    softmax_lanes(nv, f->s, j0, j1, f->m + i0, f->l + i0, o, a->hp);
    for (int64_t e = 0; e < a->hp; e += CTI_AR) {
        ukr_lanes(nv, j1 - j0, f->v + e * KEYS + j0 * CTI_AR, 1, CTI_AR, f->s + j0 * nv * CTI_VL, o + e * nv * CTI_VL, true);
    }
}

static void fwd_blocks(const attn *a, const attn_segment *seg, const fwd_scratch *f, int64_t first, int64_t n, int64_t k0, int64_t bk,
                       attn_ahead *next)
{
    for (int64_t i = 0; i < n; i += CTI_ANQ) {
        const int64_t ni = cti_min_i64(CTI_ANQ, n - i);
        switch (attn_vectors(ni)) {
        case 1:
            fwd_block(1, a, seg, f, first, i, ni, k0, bk, next);
            break;
        case 2:
            fwd_block(2, a, seg, f, first, i, ni, k0, bk, next);
            break;
        default:
            fwd_block(3, a, seg, f, first, i, ni, k0, bk, next);
        }
    }
}

/* Queries [i0, i0 + n) of the run are done: their rows of the outputs. */
static void fwd_write(const attn *a, const fwd_scratch *f, int64_t head, int64_t token, int64_t i0, int64_t n, const ct_tensor *out,
                      float *lse)
{
    const int64_t lanes = attn_vectors(n) * CTI_VL;
    float inv[CTI_ANQ];
    for (int64_t i = 0; i < n; i++) {
        const float l = f->l[i0 + i];
        const int64_t row = (token + i0 + i) * a->heads + head;
        inv[i] = l > 0 ? 1.0f / l : l; /* 0 where it sees nothing; NaN among its scores stays one */
        lse[row] = l > 0 ? f->m[i0 + i] * CTI_LN2 + logf(l) : l != l ? l : -__builtin_inff();
    }
    CTI_CPU_FN(pack_transposed)(f->rows, a->hp, f->o + i0 * a->hp, CT_DTYPE_F32, lanes, 0, a->hp, 0, n);
    for (int64_t i = 0; i < n; i++) {
        float *row = f->rows + i * a->hp;
        for (int64_t e = 0; e < a->hp; e += CTI_VL) {
            v_store(row + e, v_load(row + e) * inv[i]);
        }
        v_narrow(out->data, out->dtype, ((token + i0 + i) * a->heads + head) * a->h, row, a->h);
    }
}

/* What this task writes, and what that of the next head reads, where a head's rows of them are few enough to wait in a cache. */
static attn_ahead look_where(const attn *a, const attn_segment *seg, int64_t head, int64_t first, int64_t n, const ct_tensor *out)
{
    attn_ahead w = {0};
    if (seg->k_len > KEYS || a->heads != a->kv_heads) {
        return w;
    }
    w.tokens = cti_min_i64(n, seg->k_len); /* both have so many rows */
    ahead_add(&w, a, out, a->heads, head, seg->q_start + first);
    if (head + 1 < a->heads) {
        ahead_add(&w, a, a->q, a->heads, head + 1, seg->q_start + first);
        ahead_add(&w, a, a->k, a->heads, head + 1, seg->k_start);
        ahead_add(&w, a, a->v, a->heads, head + 1, seg->k_start);
    }
    return w;
}

static void pack_queries(const attn *a, const attn_segment *seg, int64_t head, int64_t first, int64_t n, const fwd_scratch *f)
{
#if CTI_HAS_AMX
    if (f->tiles) {
        const fwd_tiles t = fwd_tiles_of(a, f->tiles);
        pack_query_tiles(a, seg, head, first, n, &t);
        return;
    }
#endif
    for (int64_t i = 0; i < n; i += CTI_ANQ) {
        const int64_t ni = cti_min_i64(CTI_ANQ, n - i);
        pack_head_lanes(f->q + i * a->h, attn_vectors(ni) * CTI_VL, a, a->q, head, seg->q_start + first + i, ni, a->scale * CTI_LOG2E);
    }
}

static void pack_keys(const attn *a, int64_t kv_head, int64_t key, int64_t bk, const fwd_scratch *f)
{
#if CTI_HAS_AMX
    if (f->tiles) {
        const fwd_tiles t = fwd_tiles_of(a, f->tiles);
        pack_key_tiles(a, kv_head, key, bk, &t);
        return;
    }
#endif
    const int64_t pad = cti_round_up(bk, CTI_AR);
    pack_head(f->k, a->hp, a, a->k, a->kv_heads, kv_head, key, bk, pad);
    pack_head(f->rows, a->hp, a, a->v, a->kv_heads, kv_head, key, bk, pad);
    pack_head_panels(f->v, KEYS, f->rows, a->hp, pad);
}

/* Queries [first, first + n) of the segment, one head. */
static void fwd_run(const attn *a, const attn_segment *seg, int64_t head, int64_t first, int64_t n, const ct_tensor *out, float *lse,
                    const fwd_scratch *f)
{
    const int64_t kv_head = head / (a->heads / a->kv_heads);
    prefetch_head(a, a->q, a->heads, head, seg->q_start + first, n);
    pack_queries(a, seg, head, first, n, f);
    const int64_t n_lanes = cti_round_up(n, CTI_ANQ);
    memset(f->o, 0, (size_t)(n_lanes * a->hp) * sizeof(float));
    for (int64_t i = 0; i < n_lanes; i++) {
        f->m[i] = -__builtin_inff();
        f->l[i] = 0;
    }
    attn_ahead next = look_where(a, seg, head, first, n, out);
    int64_t lo, hi, unused;
    visible_keys(a, seg, first, &lo, &unused);
    visible_keys(a, seg, first + n - 1, &unused, &hi);
    for (int64_t k0 = lo / KEYS * KEYS; k0 < hi; k0 += KEYS) {
        const int64_t bk = cti_min_i64(KEYS, hi - k0), key = seg->k_start + k0;
        prefetch_head(a, a->k, a->kv_heads, kv_head, key, bk);
        prefetch_head(a, a->v, a->kv_heads, kv_head, key, bk);
        pack_keys(a, kv_head, key, bk, f);
        fwd_blocks(a, seg, f, first, n, k0, bk, &next);
    }
    for (int64_t i = 0; i < n; i += CTI_ANQ) {
        fwd_write(a, f, head, seg->q_start + first, i, cti_min_i64(CTI_ANQ, n - i), out, lse);
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
    attn_tiles_begin(f.tiles);
    for (int64_t t = begin; t < end; t++) {
        int64_t run = t / a->heads;
        for (int64_t i = 0; i < a->n_segments; i++) {
            const attn_segment s = segment_at(a, i);
            const int64_t runs = cti_ceil_div(s.q_len, RUN);
            if (run >= runs) {
                run -= runs;
                continue;
            }
            const int64_t step = cti_round_up(cti_ceil_div(s.q_len, runs), CTI_ANQ);
            const int64_t first = (runs - 1 - run) * step; /* later queries see more keys: they go first */
            if (first < s.q_len) {
                fwd_run(a, &s, t % a->heads, first, cti_min_i64(step, s.q_len - first), r->o, r->lse, &f);
            }
            break;
        }
    }
    attn_tiles_end(f.tiles);
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
    if (!attn_covers(&a, false)) { /* tokens in no segment */
        memset(o->data, 0, (size_t)t_numel(o) * ct_dtype_size_bytes(o->dtype));
        for (int64_t i = 0; i < a.n_q * a.heads; i++) {
            lse[i] = -__builtin_inff();
        }
    }
    int64_t n_runs = 0;
    for (int64_t i = 0; i < a.n_segments; i++) {
        n_runs += cti_ceil_div(segment_at(&a, i).q_len, RUN);
    }
    fwd_tasks tasks = {&a, o, lse, launch->workspace};
    attn_share(n_runs * a.heads, threads, fwd_task, &tasks);
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
