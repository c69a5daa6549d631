/* SPDX-License-Identifier: Apache-2.0 */
/* What attention and its gradient share: operands, segments, and which keys a query sees.
 *
 * Both walk blocks of queries by blocks of keys, with the matrix product's micro-kernel on each side of the softmax
 * (Dao 2023, arXiv 2307.08691), and leave out what no query of a block sees. A row's sums run over key blocks in order from
 * its segment's start, so they depend neither on threads nor on how queries are cut. */
#ifndef CTI_BACKEND_CPU_ISA_CPU_ATTENTION_H
#define CTI_BACKEND_CPU_ISA_CPU_ATTENTION_H

#include <inttypes.h>

#include "backend/cpu/isa/cpu_gemm.h"
#include "backend/cpu/isa/cpu_kernel.h"

typedef struct attn_segment {
    int64_t q_start, q_len, k_start, k_len; /* tokens */
} attn_segment;

typedef struct attn {
    const ct_tensor *q, *k, *v;
    int64_t n_q, n_k;           /* tokens */
    int64_t heads, kv_heads, h; /* h: head dim */
    int64_t hp;                 /* h rounded up to whole vectors */
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

/* Scores of one row in columns [c0, c1), whole panels: those outside [lo, hi) become -inf. */
CTI_INLINE void mask_row(float *s, int64_t c0, int64_t c1, int64_t lo, int64_t hi)
{
    vi lane;
    for (int i = 0; i < CTI_VL; i++) {
        lane[i] = i;
    }
    const vf ninf = v_set1(-__builtin_inff());
    for (int64_t j = c0; j < lo && j < c1; j += CTI_VL) {
        v_store(s + j, v_select((vi)(lane < v_set1i((int32_t)(lo - j))), ninf, v_load(s + j)));
    }
    for (int64_t j = cti_max_i64(c0, hi / CTI_VL * CTI_VL); j < c1; j += CTI_VL) {
        v_store(s + j, v_select((vi)(lane < v_set1i((int32_t)(hi - j))), v_load(s + j), ninf));
    }
}

/* Fills `a` from a launch's operands; first_qkv is the index of q among the inputs. Without data, shapes only. */
CTI_INLINE void attn_shapes(const ct_launch *launch, int first_qkv, attn *a)
{
    const ct_attrs_sdpa *attrs = launch->attrs;
    const ct_tensor *q = &launch->in[first_qkv];
    *a = (attn){.q = q, .k = q + 1, .v = q + 2, .scale = (float)attrs->scale, .causal = attrs->causal, .window = attrs->window};
    a->h = t_last(q);
    a->hp = cti_round_up(a->h, CTI_VL);
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

/* Rows [first, first + n) of one head as B panels of whole vectors, n_pad rows long: panel p (two vectors wide, the last one
 * maybe one) starts at dst + p * CTI_NR * n_pad; see attn_panels. Rows past n are zero. */
CTI_INLINE void pack_head_rows(float *dst, const attn *a, const ct_tensor *t, int64_t heads, int64_t head, int64_t first, int64_t n,
                               int64_t n_pad)
{
    for (int64_t c = 0; c < a->hp; c += CTI_NR) {
        const int64_t width = cti_min_i64(CTI_NR, a->hp - c);
        float *p = dst + c * n_pad;
        CTI_CPU_FN(pack_rows)(p, width, t->data, t->dtype, heads * a->h, first, n, head * a->h + c, cti_min_i64(width, a->h - c));
        memset(p + n * width, 0, (size_t)((n_pad - n) * width) * sizeof(float));
    }
}
/* Keys as columns: panels of CTI_NR keys, [h][CTI_NR] each; keys past n are zero. */
CTI_INLINE void pack_head_keys(float *dst, const attn *a, const ct_tensor *t, int64_t heads, int64_t head, int64_t first, int64_t n)
{
    for (int64_t j = 0; j < n; j += CTI_NR) {
        CTI_CPU_FN(pack_transposed)(dst + j * a->h, CTI_NR, t->data, t->dtype, heads * a->h, first + j,
                                    cti_min_i64(CTI_NR, n - j), head * a->h, a->h);
    }
}
/* Queries as A panels: CTI_A_PANEL, [h][CTI_MR] each, times scale; queries past n are zero. */
CTI_INLINE void pack_head_queries(float *dst, const attn *a, const ct_tensor *t, int64_t head, int64_t first, int64_t n, float scale)
{
    for (int64_t i = 0; i < n; i += CTI_MR) {
        float *p = dst + i * a->h;
        CTI_CPU_FN(pack_transposed)(p, CTI_MR, t->data, t->dtype, a->heads * a->h, first + i, cti_min_i64(CTI_MR, n - i),
                                    head * a->h, a->h);
        for (int64_t e = 0; e < CTI_MR * a->h; e++) {
            p[e] *= scale;
        }
    }
}

/* c[i, 0..hp) (+)= sum over k of A(i, k) times packed head rows, CTI_MR rows of c at stride hp. */
CTI_INLINE void ukr_head(const cti_a_layout layout, int64_t kc, const float *a, const float *b, int64_t n_pad, int64_t first_row,
                         int64_t hp, float *c, const bool add)
{
    for (int64_t j = 0; j < hp; j += CTI_NR) {
        if (hp - j >= CTI_NR) {
            cti_ukr(2, layout, kc, a, b + j * n_pad + first_row * CTI_NR, add ? c + j : NULL, hp, c + j, hp);
        } else {
            cti_ukr(1, layout, kc, a, b + j * n_pad + first_row * CTI_VL, add ? c + j : NULL, hp, c + j, hp);
        }
    }
}

#endif
