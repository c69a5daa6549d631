/* SPDX-License-Identifier: Apache-2.0 */
/* The forward pass's blocks on AMX's tiles. A part of cpu_attention.c, which includes it once. */
#ifndef CTI_BACKEND_CPU_ISA_CPU_ATTENTION_FWD_AMX_H
#define CTI_BACKEND_CPU_ISA_CPU_ATTENTION_FWD_AMX_H

/* fwd_scratch's `tiles`, cut. */
typedef struct fwd_tiles {
    uint16_t *k;     /* [KEYS][tile_h] */
    uint16_t *v;     /* [hp][KEYS] */
    uint16_t *rows;  /* [KEYS][tile_h] */
    uint16_t *p[2];  /* upper and lower part of the weights: words of two keys [KEYS / 2][lanes] */
    uint16_t *q;     /* per block of queries words of two elements [tile_h / 2][lanes] */
} fwd_tiles;

static fwd_tiles fwd_tiles_of(const attn *a, uint16_t *p)
{
    fwd_tiles t;
    t.k = p;
    t.v = t.k + KEYS * tile_h(a);
    t.rows = t.v + KEYS * a->hp;
    t.p[0] = t.rows + KEYS * tile_h(a);
    t.p[1] = t.p[0] + KEYS * CTI_ANQ;
    t.q = t.p[1] + KEYS * CTI_ANQ;
    return t;
}

/* softmax_lanes() of scores that lack their factor; the weights go to t->p. j1 - j0 is even. */
CTI_INLINE void softmax_tiles(const int nv, const float *s, int64_t j0, int64_t j1, float factor, float *m, float *l, float *o, int64_t hp,
                              const fwd_tiles *t)
{
    const vf ninf = v_set1(-__builtin_inff()), c = v_set1(factor);
    vf top[CTI_AQ], sum[CTI_AQ], shift[CTI_AQ], shrink[CTI_AQ];
    for (int v = 0; v < nv; v++) {
        top[v] = ninf;
        sum[v] = (vf){0};
    }
    for (int64_t j = j0; j < j1; j++) {
        CTI_UNROLL
        for (int v = 0; v < nv; v++) {
            top[v] = v_max(v_load(s + (j * nv + v) * CTI_VL), top[v]);
        }
    }
    for (int v = 0; v < nv; v++) {
        const vf before = v_load(m + v * CTI_VL), now = v_max(top[v] * c, before);
        shift[v] = v_select((vi)(now == ninf), (vf){0}, now);
        shrink[v] = v_exp2_neg(before - shift[v]);
        v_store(m + v * CTI_VL, now);
    }
    for (int64_t j = j0; j < j1; j += 2) {
        const int64_t at = (j - j0) * nv * CTI_VL; /* words of two keys are as long as a key's elements */
        vf e[2][CTI_AQ];
        CTI_UNROLL
        for (int i = 0; i < 2; i++) {
            CTI_UNROLL
            for (int v = 0; v < nv; v++) {
                e[i][v] = v_load(s + ((j + i) * nv + v) * CTI_VL) * c - shift[v]; /* rounded as shift was: 0 at the top, however large */
            }
            v_exp2_negs(nv, e[i]);
        }
        CTI_UNROLL
        for (int v = 0; v < nv; v++) {
            const vf high[2] = {upper_part(e[0][v]), upper_part(e[1][v])};
            sum[v] += e[0][v];
            sum[v] += e[1][v];
            vi16_store(t->p[0] + at + 2 * v * CTI_VL, pair_of(high[0], high[1]));
            vi16_store(t->p[1] + at + 2 * v * CTI_VL, pair_of(e[0][v] - high[0], e[1][v] - high[1]));
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

/* The rest of fwd_block() on tiles: what queries from i0 on see is in w. */
CTI_INLINE void fwd_tiles_block(const int nv, const attn *a, const fwd_scratch *f, int64_t i0, const attn_view *w, attn_ahead *next)
{
    const fwd_tiles t = fwd_tiles_of(a, f->tiles);
    const int64_t j0 = w->all_lo / AK * AK, j1 = cti_round_up(w->all_hi, AK), ld = tile_h(a);
    float *o = f->o + i0 * a->hp;
    for (int64_t j = j0; j < j1; j += AT) {
        look_ahead(next);
        look_ahead(next);
        tile_lanes(nv, ld, t.k + j * ld, t.q + i0 * ld, f->s + j * nv * CTI_VL);
    }
    attn_mask(nv, f->s, w, j0, j1);
    softmax_tiles(nv, f->s, j0, j1, a->scale * CTI_LOG2E, f->m + i0, f->l + i0, o, a->hp, &t);
    for (int64_t e = 0; e < a->hp; e += AT) {
        tile_add_lanes(nv, j1 - j0, t.v + e * KEYS + j0, KEYS, t.p[0], t.p[1], o + e * nv * CTI_VL);
    }
}

/* Queries of a run, packed. */
static void pack_query_tiles(const attn *a, const attn_segment *seg, int64_t head, int64_t first, int64_t n, const fwd_tiles *t)
{
    for (int64_t i = 0; i < n; i += CTI_ANQ) {
        const int64_t ni = cti_min_i64(CTI_ANQ, n - i), lanes = attn_vectors(ni) * CTI_VL, ld = tile_h(a);
        pack_tile_rows(t->rows, ld, a, a->q, a->heads, head, seg->q_start + first + i, ni, lanes);
        pack_tile_lanes(t->q + i * ld, t->rows, ld, lanes);
    }
}

/* Keys and values [key, key + bk), packed. */
static void pack_key_tiles(const attn *a, int64_t kv_head, int64_t key, int64_t bk, const fwd_tiles *t)
{
    const int64_t ld = tile_h(a), pad = cti_round_up(bk, AK);
    pack_tile_rows(t->k, ld, a, a->k, a->kv_heads, kv_head, key, bk, pad);
    pack_tile_rows(t->rows, ld, a, a->v, a->kv_heads, kv_head, key, bk, pad);
    pack_tile_columns(t->v, KEYS, a->h, t->rows, ld, pad);
}

#endif
