/* SPDX-License-Identifier: Apache-2.0 */
/* Standard cases of attention, and attention written out plainly (a dense mask, f64), which knows nothing of any backend. */
#ifndef CT_TESTS_OP_CASES_ATTENTION_H
#define CT_TESTS_OP_CASES_ATTENTION_H

enum { OP_MAX_SEGMENTS = 6 };

typedef struct op_attention_row {
    int64_t batch, q_len, k_len, heads, kv_heads, h;
    bool causal;
    int64_t window;
    double std;
    int32_t n, segments[OP_MAX_SEGMENTS][4];
} op_attention_row;

static const op_attention_row OP_ATTENTION_ROWS[] = {
    {1, 7, 7, 2, 2, 8, true, 0, 1.0, 1, {{0, 7, 0, 7}}},
    {1, 1, 1, 1, 1, 1, true, 0, 1.0, 1, {{0, 1, 0, 1}}},
    /* grouped heads, packed documents with borders on nothing even, tail in no segment */
    {2, 9, 9, 4, 2, 16, true, 0, 1.0, 4, {{0, 5, 0, 5}, {5, 4, 5, 4}, {9, 1, 9, 1}, {10, 6, 10, 6}}},
    /* empty segments, sliding window */
    {1, 13, 13, 2, 1, 6, true, 3, 1.0, 3, {{0, 0, 0, 0}, {0, 12, 0, 12}, {12, 0, 13, 0}}},
    /* decoding with a cache: one query, many keys, a part of the cache unused */
    {2, 1, 16, 4, 4, 8, true, 0, 1.0, 2, {{0, 1, 0, 9}, {1, 1, 16, 16}}},
    /* a chunk of queries at the end of longer keys, with a window */
    {1, 4, 20, 2, 2, 8, true, 5, 1.0, 1, {{0, 4, 3, 15}}},
    {1, 6, 11, 3, 1, 10, false, 0, 1.0, 2, {{0, 2, 0, 7}, {2, 4, 7, 4}}},
    /* more queries than keys: the first see nothing */
    {1, 6, 3, 2, 2, 4, true, 0, 1.0, 1, {{0, 6, 0, 3}}},
    {1, 5, 5, 2, 2, 4, true, 0, 1.0, 0, {{0, 0, 0, 0}}},
    /* over the borders of any tile */
    {1, 130, 130, 2, 1, 64, true, 0, 1.0, 3, {{0, 61, 0, 61}, {61, 66, 61, 66}, {127, 3, 127, 3}}},
    {1, 65, 65, 3, 1, 24, true, 16, 1.0, 1, {{0, 65, 0, 65}}},
    {1, 70, 70, 2, 2, 32, false, 9, 1.0, 1, {{0, 70, 0, 70}}},
    /* sharp softmax */
    {1, 8, 8, 2, 2, 16, true, 0, 6.0, 1, {{0, 8, 0, 8}}},
    {1, 0, 0, 2, 2, 8, true, 0, 1.0, 0, {{0, 0, 0, 0}}},
    /* one token of K and V serves two documents of queries */
    {1, 4, 6, 2, 2, 8, false, 0, 1.0, 2, {{0, 2, 0, 4}, {2, 2, 2, 4}}},
    /* faulty: keys past the end; queries before the beginning; more segments than the table holds */
    {1, 4, 4, 1, 1, 4, true, 0, 1.0, 1, {{0, 4, 1, 4}}},
    {1, 4, 4, 1, 1, 4, true, 0, 1.0, 1, {{-1, 4, 0, 4}}},
    {1, 4, 4, 1, 1, 4, true, 0, 1.0, OP_MAX_SEGMENTS + 1, {{0, 4, 0, 4}}},
};

/* o [Tq, H, h] and lse [Tq, H] in f64, from the segments as a dense mask. */
static inline void op_plain_attention(const op_attention_row *r, double scale, const ct_tensor *q, const ct_tensor *k, const ct_tensor *v,
                                      double *o, double *lse)
{
    const int64_t nq = r->batch * r->q_len, nk = r->batch * r->k_len;
    for (int64_t i = 0; i < nq * r->heads; i++) {
        const int64_t tq = i / r->heads, kv = i % r->heads * r->kv_heads / r->heads;
        double sum = 0.0;
        for (int64_t e = 0; e < r->h; e++) {
            o[i * r->h + e] = 0.0;
        }
        for (int64_t tk = 0; tk < nk; tk++) {
            bool is_seen = false;
            for (int32_t n = 0; n < r->n && n < OP_MAX_SEGMENTS; n++) {
                const int32_t *s = r->segments[n];
                const int64_t a = tq - s[0], b = tk - s[2], diagonal = a + s[3] - s[1];
                is_seen = is_seen || (a >= 0 && a < s[1] && b >= 0 && b < s[3] && (!r->causal || b <= diagonal) &&
                                      (r->window == 0 || b > diagonal - r->window));
            }
            if (!is_seen) {
                continue;
            }
            double dot = 0.0;
            for (int64_t e = 0; e < r->h; e++) {
                dot += op_get(q, i * r->h + e) * op_get(k, (tk * r->kv_heads + kv) * r->h + e);
            }
            const double p = exp(dot * scale);
            sum += p;
            for (int64_t e = 0; e < r->h; e++) {
                o[i * r->h + e] += p * op_get(v, (tk * r->kv_heads + kv) * r->h + e);
            }
        }
        for (int64_t e = 0; e < r->h && sum > 0.0; e++) {
            o[i * r->h + e] /= sum;
        }
        lse[i] = log(sum); /* -inf where nothing is seen */
    }
}

/* Whether the row's segments can be said by their ends (sdpa_tnd: from 0, back to back, no window, no fault that ends cannot say). */
static inline bool op_is_back_to_back(const op_attention_row *r)
{
    int64_t q = 0, k = 0;
    for (int32_t n = 0; n < r->n && n < OP_MAX_SEGMENTS; n++) {
        if (r->segments[n][0] != q || r->segments[n][2] != k) {
            return false;
        }
        q += r->segments[n][1];
        k += r->segments[n][3];
    }
    return r->window == 0;
}

static inline void op_add_segments(op_case *c, const op_attention_row *r, bool by_ends)
{
    int32_t ends[2][OP_MAX_SEGMENTS] = {{0}};
    for (int32_t n = 0; n < OP_MAX_SEGMENTS; n++) {
        for (int k = 0; k < 2; k++) {
            ends[k][n] = (n > 0 ? ends[k][n - 1] : 0) + (n < r->n ? r->segments[n][2 * k + 1] : 0);
        }
    }
    if (by_ends) {
        op_add_data(c, CT_DTYPE_I32, false, ends[0], OP_DIMS(OP_MAX_SEGMENTS));
        op_add_data(c, CT_DTYPE_I32, false, ends[1], OP_DIMS(OP_MAX_SEGMENTS));
    } else {
        op_add_data(c, CT_DTYPE_I32, false, r->segments, OP_DIMS(OP_MAX_SEGMENTS, 4));
    }
    op_add_i32(c, r->n);
}

static inline void op_add_qkv(op_case *c, const op_attention_row *r, bool is_flat)
{
    const int64_t q[4] = {r->batch, r->q_len, r->heads, r->h}, k[4] = {r->batch, r->k_len, r->kv_heads, r->h};
    const int64_t q_flat[3] = {q[0] * q[1], q[2], q[3]}, k_flat[3] = {k[0] * k[1], k[2], k[3]};
    op_add_f(c, r->std, is_flat ? 3 : 4, is_flat ? q_flat : q);
    op_add_f(c, r->std, is_flat ? 3 : 4, is_flat ? k_flat : k);
    op_add_f(c, 1.0, is_flat ? 3 : 4, is_flat ? k_flat : k);
}

/* The i-th row that the op can say; gradients get o and lse of the plain attention, rounded to their dtypes. */
static inline bool op_case_attention(op_case *c, int i)
{
    const bool by_ends = c->op == CT_OP_sdpa_tnd || c->op == CT_OP_sdpa_tnd_grad;
    const bool is_grad = c->op == CT_OP_sdpa_grad || c->op == CT_OP_sdpa_tnd_grad;
    const op_attention_row *r = NULL;
    for (int k = 0, seen = 0; k < OP_COUNT_OF(OP_ATTENTION_ROWS) && r == NULL; k++) {
        if ((!by_ends || op_is_back_to_back(&OP_ATTENTION_ROWS[k])) && seen++ == i) {
            r = &OP_ATTENTION_ROWS[k];
        }
    }
    if (r == NULL) {
        return false;
    }
    const double scale = 1.0 / sqrt((double)r->h);
    c->attrs = OP_ATTRS(c->arena, ct_attrs_sdpa, scale, r->causal, r->window);
    if (!is_grad) {
        op_add_qkv(c, r, by_ends);
        op_add_segments(c, r, by_ends);
        return true;
    }
    const int64_t dims[4] = {r->batch, r->q_len, r->heads, r->h}, flat[3] = {r->batch * r->q_len, r->heads, r->h};
    const int64_t rows = flat[0] * flat[1];
    op_add_f(c, 1.0, by_ends ? 3 : 4, by_ends ? flat : dims);
    op_add_qkv(c, r, by_ends);
    double *o = op_must(ct_arena_alloc(c->arena, (size_t)(rows * r->h + 1) * sizeof(double), NULL));
    double *lse = op_must(ct_arena_alloc(c->arena, (size_t)(rows + 1) * sizeof(double), NULL));
    op_plain_attention(r, scale, &c->in[1], &c->in[2], &c->in[3], o, lse);
    const ct_tensor *o_in = op_add_f(c, 1.0, by_ends ? 3 : 4, by_ends ? flat : dims);
    for (int64_t k = 0; k < rows * r->h; k++) {
        op_set(o_in, k, o[k]);
    }
    const ct_tensor *lse_in = op_add(c, CT_DTYPE_F32, false, 2, flat);
    for (int64_t k = 0; k < rows; k++) {
        op_set(lse_in, k, lse[k]);
    }
    op_add_segments(c, r, by_ends);
    return true;
}

static inline bool op_case_segment_ends(op_case *c, int i)
{
    static const struct {
        int32_t n, rows[OP_MAX_SEGMENTS][4];
    } tables[] = {{3, {{0, 5, 0, 5}, {5, 0, 5, 2}, {5, 4, 7, 4}}}, {0, {{0}}}, {1, {{0, 7, 0, 9}}},
                  {2, {{0, 5, 0, 5}, {6, 1, 5, 1}}},              {1, {{1, 5, 0, 5}}}, {OP_MAX_SEGMENTS + 1, {{0}}}, {-1, {{0}}}};
    if (i >= OP_COUNT_OF(tables)) {
        return false;
    }
    op_add_data(c, CT_DTYPE_I32, false, tables[i].rows, OP_DIMS(OP_MAX_SEGMENTS, 4));
    op_add_i32(c, tables[i].n);
    return true;
}

#endif
