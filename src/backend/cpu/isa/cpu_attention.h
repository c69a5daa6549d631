/* SPDX-License-Identifier: Apache-2.0 */
/* What attention and its gradient share: operands, segments, which keys a query sees, and the micro-kernel.
 *
 * Both walk blocks of queries by blocks of keys (Dao 2023, arXiv 2307.08691) and leave out what no query of a block sees. A row's
 * sums run over key blocks in order from its segment's start, so they depend neither on threads nor on how queries are cut. */
#ifndef CTI_BACKEND_CPU_ISA_CPU_ATTENTION_H
#define CTI_BACKEND_CPU_ISA_CPU_ATTENTION_H

#include <inttypes.h>

#include "backend/cpu/isa/cpu_gemm.h"
#include "backend/cpu/isa/cpu_kernel.h"
#include "base/pool.h"

typedef struct attn_segment {
    int64_t q_start, q_len, k_start, k_len; /* tokens */
} attn_segment;

typedef struct attn {
    const ct_tensor *q, *k, *v;
    int64_t n_q, n_k;           /* tokens */
    int64_t heads, kv_heads, h; /* h: head dim */
    int64_t hp;                 /* h rounded up to whole vectors and groups of CTI_AR */
    const int32_t *table;       /* [C, 4], or NULL: segments by their ends */
    const int32_t *ends_q, *ends_k;
    int64_t n_segments;
    float scale;
    bool causal;
    int64_t window; /* 0: none */
} attn;

CTI_INLINE attn_segment segment_at(const attn *a, int64_t i)
{
    if (a->table) {
        const int32_t *r = a->table + 4 * i;
        return (attn_segment){r[0], r[1], r[2], r[3]};
    }
    const int64_t q0 = i > 0 ? a->ends_q[i - 1] : 0, k0 = i > 0 ? a->ends_k[i - 1] : 0;
    return (attn_segment){q0, a->ends_q[i] - q0, k0, a->ends_k[i] - k0};
}

/* Keys [*lo, *hi) of its segment that query i of it sees; lo >= hi: none. */
CTI_INLINE void visible_keys(const attn *a, const attn_segment *s, int64_t i, int64_t *lo, int64_t *hi)
{
    const int64_t diagonal = i + s->k_len - s->q_len;
    *hi = a->causal ? cti_min_i64(s->k_len, diagonal + 1) : s->k_len;
    *lo = a->window > 0 ? cti_max_i64(0, diagonal - a->window + 1) : 0;
}

/* Queries lie in the lanes, keys in the rows: max, sum and mask of a softmax then go lane by lane, and what is done to a block of
 * scores is one loop over memory. A block of queries is up to CTI_AQ vectors wide; the micro-kernel makes CTI_AR rows at a time. */
#define CTI_AQ 3
#if CTI_VL == 16 || CTI_HAS_NEON
#define CTI_AR 8
#else
#define CTI_AR 4
#endif
#define CTI_ANQ (CTI_AQ * CTI_VL)

/* Rows of keys that are summed over queries at a time; and keys that go through all products of a block together, so that their scores
 * stay in the first-level cache: whole groups of both kinds. */
#if CTI_VL == 16
#define CTI_HR 16
#define CTI_AC 32
#else
#define CTI_HR CTI_MR
#define CTI_AC 48
#endif

/* acc[i][v] += sum over k of a[i * a_row + k * a_k] b[k, v]; rows of b are nv vectors long. nv, and a_row == 1 or a_k == 1, are constants at
 * every call. */
CTI_INLINE void add_lanes(const int nv, int64_t kc, const float *a, int64_t a_row, int64_t a_k, const float *b, vf acc[CTI_AR][CTI_AQ])
{
#pragma GCC unroll 4
    for (int64_t k = 0; k < kc; k++) {
        vf x[CTI_AQ];
        CTI_UNROLL
        for (int v = 0; v < nv; v++) {
            x[v] = v_load(b + v * CTI_VL);
        }
        CTI_UNROLL
        for (int i = 0; i < CTI_AR; i++) {
            const vf y = v_set1(a[i * a_row]);
            CTI_UNROLL
            for (int v = 0; v < nv; v++) {
                acc[i][v] = v_fma(y, x[v], acc[i][v]);
            }
        }
        a += a_k;
        b += nv * CTI_VL;
    }
}

/* c[i, 0..nv vectors) (+)= the same for i < CTI_AR; rows of c are nv vectors long; add is a constant too. */
CTI_INLINE void ukr_lanes(const int nv, int64_t kc, const float *a, int64_t a_row, int64_t a_k, const float *b, float *c, const bool add)
{
    vf acc[CTI_AR][CTI_AQ];
    CTI_UNROLL
    for (int i = 0; i < CTI_AR; i++) {
        CTI_UNROLL
        for (int v = 0; v < nv; v++) {
            acc[i][v] = add ? v_load(c + (i * nv + v) * CTI_VL) : (vf){0};
        }
    }
    add_lanes(nv, kc, a, a_row, a_k, b, acc);
    CTI_UNROLL
    for (int i = 0; i < CTI_AR; i++) {
        CTI_UNROLL
        for (int v = 0; v < nv; v++) {
            v_store(c + (i * nv + v) * CTI_VL, acc[i][v]);
        }
    }
}

/* What the queries of a block see of a block of keys, in keys of the block: query i those in [lo[i], hi[i]); lanes without a query
 * none. all_lo, all_hi: what any of them sees (all_lo >= all_hi: nothing), some_lo, some_hi: what all of them see. */
typedef struct attn_view {
    int32_t lo[CTI_ANQ], hi[CTI_ANQ];
    int64_t all_lo, all_hi, some_lo, some_hi;
} attn_view;

CTI_INLINE void attn_look(const attn *a, const attn_segment *s, int64_t first, int64_t n, int64_t lanes, int64_t k0, int64_t bk,
                          attn_view *w)
{
    w->all_lo = bk;
    w->all_hi = 0;
    w->some_lo = 0;
    w->some_hi = n < lanes ? 0 : bk;
    for (int64_t i = 0; i < lanes; i++) {
        int64_t lo = 0, hi = 0;
        if (i < n) {
            visible_keys(a, s, first + i, &lo, &hi);
            lo = cti_min_i64(cti_max_i64(lo - k0, 0), bk);
            hi = cti_min_i64(cti_max_i64(hi - k0, 0), bk);
            if (lo < hi) {
                w->all_lo = cti_min_i64(w->all_lo, lo);
                w->all_hi = cti_max_i64(w->all_hi, hi);
            }
            w->some_lo = cti_max_i64(w->some_lo, lo);
            w->some_hi = cti_min_i64(w->some_hi, hi);
        }
        w->lo[i] = (int32_t)lo;
        w->hi[i] = (int32_t)hi;
    }
}

/* Do all queries see keys [j, j + CTI_AR)? */
CTI_INLINE bool all_see(const attn_view *w, int64_t j)
{
    return j >= w->some_lo && j + CTI_AR <= w->some_hi;
}
/* x in the lanes of vector v whose queries see key j, else 0. */
CTI_INLINE vf only_seen(const attn_view *w, int v, int64_t j, vf x)
{
    vi lo, hi;
    memcpy(&lo, w->lo + v * CTI_VL, sizeof lo);
    memcpy(&hi, w->hi + v * CTI_VL, sizeof hi);
    const vi key = v_set1i((int32_t)j);
    return (vf)((vi)x & (vi)(lo <= key) & (vi)(key < hi));
}

/* Scores of keys [j0, j1) that a query does not see become -inf. */
CTI_INLINE void attn_mask(const int nv, float *s, const attn_view *w, int64_t j0, int64_t j1)
{
    const vf ninf = v_set1(-__builtin_inff());
    vi lo[CTI_AQ], hi[CTI_AQ];
    for (int v = 0; v < nv; v++) {
        memcpy(&lo[v], w->lo + v * CTI_VL, sizeof lo[v]);
        memcpy(&hi[v], w->hi + v * CTI_VL, sizeof hi[v]);
    }
    for (int64_t j = j0; j < j1; j++) {
        if (j >= w->some_lo && j < w->some_hi) {
            j = cti_min_i64(w->some_hi, j1) - 1; /* all see these */
            continue;
        }
        const vi key = v_set1i((int32_t)j);
        for (int v = 0; v < nv; v++) {
            float *p = s + (j * nv + v) * CTI_VL;
            v_store(p, v_select((vi)(lo[v] <= key) & (vi)(key < hi[v]), v_load(p), ninf));
        }
    }
}

/* Fills `a` from a launch's operands; first_qkv is the index of q among the inputs. Without data, shapes only. */
CTI_INLINE void attn_shapes(const ct_launch *launch, int first_qkv, attn *a)
{
    const ct_attrs_sdpa *attrs = launch->attrs;
    const ct_tensor *q = &launch->in[first_qkv];
    *a = (attn){.q = q, .k = q + 1, .v = q + 2, .scale = (float)attrs->scale, .causal = attrs->causal, .window = attrs->window};
    a->h = t_last(q);
    a->hp = cti_round_up(a->h, CTI_VL > CTI_AR ? CTI_VL : CTI_AR);
    a->heads = q->dims[q->ndim - 2];
    a->kv_heads = a->k->dims[a->k->ndim - 2];
    a->n_q = t_rows(q) / a->heads;
    a->n_k = t_rows(a->k) / a->kv_heads;
}

/* Reads the segments (table at input `at`, or ends there and after it) and checks them against the shapes. */
CTI_INLINE ct_status attn_segments(const char *op, const ct_launch *launch, int at, bool by_ends, attn *a, ct_err *err)
{
    const ct_tensor *n = &launch->in[by_ends ? at + 2 : at + 1];
    if (by_ends) {
        a->ends_q = launch->in[at].data;
        a->ends_k = launch->in[at + 1].data;
    } else {
        a->table = launch->in[at].data;
    }
    a->n_segments = *(const int32_t *)n->data;
    const int64_t capacity = launch->in[at].dims[0];
    if (a->n_segments < 0 || a->n_segments > capacity) {
        return CT_FAIL(err, CT_ERR_RANGE, "%s: %" PRId64 " segments, the table holds %" PRId64, op, a->n_segments, capacity);
    }
    for (int64_t i = 0; i < a->n_segments; i++) {
        attn_segment s = segment_at(a, i);
        if (s.q_start < 0 || s.q_len < 0 || s.q_start + s.q_len > a->n_q || s.k_start < 0 || s.k_len < 0 ||
            s.k_start + s.k_len > a->n_k) {
            return CT_FAIL(err, CT_ERR_RANGE,
                           "%s: segment %" PRId64 " is q [%" PRId64 ", +%" PRId64 ") k [%" PRId64 ", +%" PRId64
                           "), there are %" PRId64 " queries and %" PRId64 " keys",
                           op, i, s.q_start, s.q_len, s.k_start, s.k_len, a->n_q, a->n_k);
        }
    }
    return CT_OK;
}

/* Every query (key) is in a segment. */
CTI_INLINE bool attn_covers(const attn *a, bool keys)
{
    int64_t end = 0;
    for (int64_t i = 0; i < a->n_segments; i++) {
        const attn_segment s = segment_at(a, i);
        const int64_t start = keys ? s.k_start : s.q_start;
        if (start > end) {
            return false;
        }
        end = cti_max_i64(end, start + (keys ? s.k_len : s.q_len));
    }
    return end == (keys ? a->n_k : a->n_q);
}

/* Asks for rows [first, first + n) of one head: they are a token apart, which no hardware prefetcher follows well. */
CTI_INLINE void prefetch_head(const attn *a, const ct_tensor *t, int64_t heads, int64_t head, int64_t first, int64_t n)
{
    const int64_t size = (int64_t)ct_dtype_size_bytes(t->dtype);
    const char *p = (const char *)t->data + (first * heads + head) * a->h * size;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t e = 0; e < a->h * size; e += 64) {
            __builtin_prefetch(p + e, 0, 2);
        }
        p += heads * a->h * size;
    }
}

/* Rows of heads that are needed soon, asked for a token at a time while others are computed: what comes from memory then comes beside the
 * computation. Rows of all of them are `stride` bytes apart. */
typedef struct attn_ahead {
    const char *row[8];
    int64_t stride[8];
    int n;
    int64_t bytes, tokens; /* of a row; left to ask for */
} attn_ahead;

/* Rows from token `first` on of one head of t. */
CTI_INLINE void ahead_add(attn_ahead *w, const attn *a, const ct_tensor *t, int64_t heads, int64_t head, int64_t first)
{
    const int64_t size = (int64_t)ct_dtype_size_bytes(t->dtype);
    w->bytes = cti_max_i64(w->bytes, a->h * size);
    w->row[w->n] = (const char *)t->data + (first * heads + head) * a->h * size;
    w->stride[w->n++] = heads * a->h * size;
}
CTI_INLINE void look_ahead(attn_ahead *w)
{
    if (w->tokens <= 0) {
        return;
    }
    w->tokens--;
    for (int i = 0; i < w->n; i++) {
        for (int64_t e = 0; e < w->bytes; e += 64) {
            __builtin_prefetch(w->row[i] + e, 0, 2);
        }
        w->row[i] += w->stride[i];
    }
}

/* Rows [first, first + n) of one head, ld floats apart, zeros up to ld and up to row n_pad. */
CTI_INLINE void pack_head(float *dst, int64_t ld, const attn *a, const ct_tensor *t, int64_t heads, int64_t head, int64_t first,
                          int64_t n, int64_t n_pad)
{
    CTI_CPU_FN(pack_rows)(dst, ld, t->data, t->dtype, heads * a->h, first, n, head * a->h, a->h);
    memset(dst + n * ld, 0, (size_t)((n_pad - n) * ld) * sizeof(float));
}
/* n such rows as panels of CTI_AR elements, [len][CTI_AR] each: what the micro-kernel reads where it sums over rows. */
CTI_INLINE void pack_head_panels(float *dst, int64_t len, const float *rows, int64_t ld, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t e = 0; e < ld; e += CTI_AR) {
            memcpy(dst + e * len + i * CTI_AR, rows + i * ld + e, CTI_AR * sizeof(float));
        }
    }
}
/* Rows [first, first + n) of one head as B panels of whole vectors: panel p (two vectors wide, the last one maybe one) starts at
 * dst + p * CTI_NR * n. */
CTI_INLINE void pack_head_rows(float *dst, const attn *a, const ct_tensor *t, int64_t heads, int64_t head, int64_t first, int64_t n)
{
    for (int64_t c = 0; c < a->hp; c += CTI_NR) {
        const int64_t width = cti_min_i64(CTI_NR, a->hp - c);
        CTI_CPU_FN(pack_rows)(dst + c * n, width, t->data, t->dtype, heads * a->h, first, n, head * a->h + c,
                              cti_min_i64(width, a->h - c));
    }
}
/* c[i, 0..nv vectors) += sum over k < n of x[i * lanes + k] b[k, v], `rows` rows of c, hp apart. nv, 1 or 2, and rows are constants. */
CTI_INLINE void head_rows(const int nv, const int rows, int64_t n, const float *x, int64_t lanes, const float *b, int64_t hp, float *c)
{
    vf acc[CTI_HR][2];
    CTI_UNROLL
    for (int i = 0; i < rows; i++) {
        acc[i][0] = acc[i][1] = (vf){0};
    }
#pragma GCC unroll 4
    for (int64_t k = 0; k < n; k++) {
        const vf b0 = v_load(b), b1 = nv == 2 ? v_load(b + CTI_VL) : b0;
        CTI_UNROLL
        for (int i = 0; i < rows; i++) {
            const vf y = v_set1(x[i * lanes + k]);
            acc[i][0] = v_fma(y, b0, acc[i][0]);
            if (nv == 2) {
                acc[i][1] = v_fma(y, b1, acc[i][1]);
            }
        }
        b += nv * CTI_VL;
    }
    CTI_UNROLL
    for (int i = 0; i < rows; i++) {
        v_store(c + i * hp, v_load(c + i * hp) + acc[i][0]);
        if (nv == 2) {
            v_store(c + i * hp + CTI_VL, v_load(c + i * hp + CTI_VL) + acc[i][1]);
        }
    }
}
/* c[i, 0..hp) += sum over k < n of x[i * lanes + k] times packed head rows, CTI_HR rows of c. */
CTI_INLINE void ukr_head(int64_t n, const float *x, int64_t lanes, const float *b, int64_t hp, float *c)
{
    enum { TWICE = CTI_VL == 16 ? CTI_HR / 2 : CTI_HR }; /* rows of two vectors that fit in the registers */
    for (int64_t j = 0; j < hp; j += CTI_NR) {
        if (hp - j < CTI_NR) {
            head_rows(1, CTI_HR, n, x, lanes, b + j * n, hp, c + j);
            continue;
        }
        for (int i = 0; i < CTI_HR; i += TWICE) {
            head_rows(2, TWICE, n, x + i * lanes, lanes, b + j * n, hp, c + i * hp + j);
        }
    }
}
/* Queries as lanes: [h][lanes], times scale; lanes past n are zero. */
CTI_INLINE void pack_head_lanes(float *dst, int64_t lanes, const attn *a, const ct_tensor *t, int64_t head, int64_t first, int64_t n,
                                float scale)
{
    CTI_CPU_FN(pack_transposed)(dst, lanes, t->data, t->dtype, a->heads * a->h, first, n, head * a->h, a->h);
    for (int64_t e = 0; e < a->h * lanes; e += CTI_VL) {
        v_store(dst + e, v_load(dst + e) * scale);
    }
}
/* Runs tasks 0..n of threads that have scratch: each thread its own part, so that it finds rows that it made before, where all have. */
CTI_INLINE void attn_share(int64_t n, int threads, cti_pool_fn fn, void *ctx)
{
    if (threads == cti_pool_threads()) {
        cti_pool_run(n, 1, fn, ctx);
    } else {
        cti_pool_tasks(n, threads, fn, ctx);
    }
}
/* Vectors that n queries of a block take. */
CTI_INLINE int attn_vectors(int64_t n)
{
    return (int)cti_min_i64(CTI_AQ, cti_ceil_div(n, CTI_VL));
}

#endif
