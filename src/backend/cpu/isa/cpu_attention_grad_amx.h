/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient's blocks on AMX's tiles. A part of cpu_attention_grad.c, which includes it once. */
#ifndef CTI_BACKEND_CPU_ISA_CPU_ATTENTION_GRAD_AMX_H
#define CTI_BACKEND_CPU_ISA_CPU_ATTENTION_GRAD_AMX_H

/* bwd_scratch's `tiles`, cut. Weights and ds have an upper and a lower part. */
typedef struct bwd_tiles {
    uint16_t *k, *v;            /* [KEYS][tile_h] */
    uint16_t *k_columns;        /* [hp][KEYS] */
    uint16_t *q, *d_o;          /* words of two elements [tile_h / 2][lanes] */
    uint16_t *q_pairs, *do_pairs; /* words of two queries [QUERIES / 2][h] */
    uint16_t *rows;             /* [QUERIES][tile_h] */
    uint16_t *p[2], *ds[2];     /* [CTI_AC][QUERIES] */
    uint16_t *ds_pairs[2];      /* words of two keys [CTI_AC / 2][lanes] */
    float *s, *dp;              /* [CTI_AC][lanes] */
} bwd_tiles;

static bwd_tiles bwd_tiles_of(const attn *a, float *p)
{
    const int64_t ld = tile_h(a);
    bwd_tiles t;
    t.s = p;
    t.dp = t.s + CTI_AC * CTI_ANQ;
    t.k = (uint16_t *)(void *)(t.dp + CTI_AC * CTI_ANQ);
    t.v = t.k + KEYS * ld;
    t.k_columns = t.v + KEYS * ld;
    t.q = t.k_columns + KEYS * a->hp;
    t.d_o = t.q + CTI_ANQ * ld;
    t.q_pairs = t.d_o + CTI_ANQ * ld;
    t.do_pairs = t.q_pairs + QUERIES * a->hp;
    t.rows = t.do_pairs + QUERIES * a->hp;
    t.p[0] = t.rows + QUERIES * ld;
    t.p[1] = t.p[0] + CTI_AC * QUERIES;
    t.ds[0] = t.p[1] + CTI_AC * QUERIES;
    t.ds[1] = t.ds[0] + CTI_AC * QUERIES;
    t.ds_pairs[0] = t.ds[1] + CTI_AC * QUERIES;
    t.ds_pairs[1] = t.ds_pairs[0] + CTI_AC * CTI_ANQ;
    return t;
}

/* From scores and dp of 32 keys, the first of which is key j of the block, to weights and ds. */
CTI_INLINE void grad_tiles(const int nv, const attn_view *w, int64_t j, float factor, const float *lse, const float *delta,
                           const bwd_tiles *t)
{
    const vf c = v_set1(factor);
    for (int64_t i = 0; i < CTI_AC; i += 2) {
        const bool is_whole = j + i >= w->some_lo && j + i + 2 <= w->some_hi;
        vf e[2][CTI_AQ], ds[2][CTI_AQ];
        CTI_UNROLL
        for (int r = 0; r < 2; r++) {
            const float *s = t->s + (i + r) * nv * CTI_VL, *dp = t->dp + (i + r) * nv * CTI_VL;
            CTI_UNROLL
            for (int v = 0; v < nv; v++) {
                e[r][v] = v_fma(v_load(s + v * CTI_VL), c, -v_load(lse + v * CTI_VL));
            }
            v_exp2_negs(nv, e[r]);
            CTI_UNROLL
            for (int v = 0; v < nv; v++) {
                e[r][v] = is_whole ? e[r][v] : only_seen(w, v, j + i + r, e[r][v]);
                ds[r][v] = e[r][v] * (v_load(dp + v * CTI_VL) - v_load(delta + v * CTI_VL));
                ds[r][v] = is_whole ? ds[r][v] : only_seen(w, v, j + i + r, ds[r][v]); /* not 0 times what is not finite */
                const vf high = upper_part(e[r][v]);
                store_upper(t->p[0] + (i + r) * QUERIES + v * CTI_VL, high);
                store_upper(t->p[1] + (i + r) * QUERIES + v * CTI_VL, e[r][v] - high);
            }
        }
        CTI_UNROLL
        for (int v = 0; v < nv; v++) {
            const vf high[2] = {upper_part(ds[0][v]), upper_part(ds[1][v])}, low[2] = {ds[0][v] - high[0], ds[1][v] - high[1]};
            CTI_UNROLL
            for (int r = 0; r < 2; r++) {
                store_upper(t->ds[0] + (i + r) * QUERIES + v * CTI_VL, high[r]);
                store_upper(t->ds[1] + (i + r) * QUERIES + v * CTI_VL, low[r]);
            }
            vi16_store(t->ds_pairs[0] + (i * nv + 2 * v) * CTI_VL, pair_of(high[0], high[1]));
            vi16_store(t->ds_pairs[1] + (i * nv + 2 * v) * CTI_VL, pair_of(low[0], low[1]));
        }
    }
}

/* Queries [token, token + nq) of one head and their d_o, packed; as many rows as `lanes`, zeros up to QUERIES. */
static void pack_query_tiles(const attn *a, const ct_tensor *d_o, int64_t head, int64_t token, int64_t nq, int64_t lanes,
                             const bwd_tiles *t)
{
    const int64_t ld = tile_h(a);
    pack_tile_rows(t->rows, ld, a, a->q, a->heads, head, token, nq, QUERIES);
    pack_tile_lanes(t->q, t->rows, ld, lanes);
    pack_tile_pairs(t->q_pairs, a->hp, t->rows, ld, QUERIES);
    pack_tile_rows(t->rows, ld, a, d_o, a->heads, head, token, nq, QUERIES);
    pack_tile_lanes(t->d_o, t->rows, ld, lanes);
    pack_tile_pairs(t->do_pairs, a->hp, t->rows, ld, QUERIES);
    for (int part = 0; part < 2; part++) { /* lanes that a block of fewer vectors leaves as they are */
        memset(t->p[part], 0, (size_t)(CTI_AC * QUERIES) * sizeof *t->p[part]);
        memset(t->ds[part], 0, (size_t)(CTI_AC * QUERIES) * sizeof *t->ds[part]);
    }
}

/* The products of bwd_block() over keys [j0, j1) of the packed block, whole 32s; dq goes to f->dq_lanes. */
CTI_INLINE void bwd_tiles_block(const int nv, const attn *a, const bwd_scratch *f, const attn_view *w, int64_t j0, int64_t j1,
                                const float *lse, const float *delta, attn_ahead *next)
{
    const bwd_tiles t = bwd_tiles_of(a, f->tiles);
    const int64_t ld = tile_h(a), queries = cti_round_up(nv * AT, AK);
    for (int64_t c = j0; c < j1; c += CTI_AC) {
        for (int64_t j = 0; j < CTI_AC; j += AT) {
            look_ahead(next);
            look_ahead(next);
            tile_lanes(nv, ld, t.k + (c + j) * ld, t.q, t.s + j * nv * CTI_VL);
            tile_lanes(nv, ld, t.v + (c + j) * ld, t.d_o, t.dp + j * nv * CTI_VL);
        }
        grad_tiles(nv, w, c, a->scale * CTI_LOG2E, lse, delta, &t);
        for (int64_t e = 0; e < a->hp; e += AT) {
            tile_add_lanes(nv, CTI_AC, t.k_columns + e * KEYS + c, KEYS, t.ds_pairs[0], t.ds_pairs[1], f->dq_lanes + e * nv * CTI_VL);
        }
        for (int64_t j = 0; j < CTI_AC; j += AT) {
            for (int64_t e = 0; e < a->hp; e += AT) {
                const int64_t at = (c + j) * a->hp + e;
                tile_add_rows(queries, t.p[0] + j * QUERIES, t.p[1] + j * QUERIES, QUERIES, t.do_pairs + 2 * e, a->hp, f->dv + at, a->hp);
                tile_add_rows(queries, t.ds[0] + j * QUERIES, t.ds[1] + j * QUERIES, QUERIES, t.q_pairs + 2 * e, a->hp, f->dk + at, a->hp);
            }
        }
    }
}

static void pack_key_tiles(const attn *a, int64_t kv_head, int64_t key, int64_t bk, const bwd_scratch *f)
{
    const bwd_tiles t = bwd_tiles_of(a, f->tiles);
    const int64_t ld = tile_h(a), pad = cti_round_up(bk, AK);
    pack_tile_rows(t.k, ld, a, a->k, a->kv_heads, kv_head, key, bk, pad);
    pack_tile_rows(t.v, ld, a, a->v, a->kv_heads, kv_head, key, bk, pad);
    pack_tile_columns(t.k_columns, KEYS, a->h, t.k, ld, pad);
}

#endif
