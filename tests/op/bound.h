/* SPDX-License-Identifier: Apache-2.0 */
/* How far a kernel may be from the exact answer, element by element:
 *
 *     |got - exact| <= r u_out |exact| + (2 (n + 8) u_acc + m u_f + s) S + tiny
 *
 * u_out, u_f    unit roundoffs of the output's dtype and of the op's dtype f
 * u_acc         unit roundoff of the accumulator: f32's, f64's where f is f64
 * n             terms of the longest sum behind the element; 8: a few more operations, such as an exp of some ulp
 * S             the sum of the terms' magnitudes, so that cancellation is paid for where it happens
 * m             intermediates that may be rounded to f: none for REORDERED, 4 for APPROXIMATE (p and ds of attention, dlogits, what swiglu reads)
 * s             relative change of a softmax weight by the rounding of its score: 2 (inner + 4) u_acc max|q||k|
 * r             1 where the exact answer is in f64, 2 where it was itself stored in f32 (lse, rstd)
 * tiny          the smallest normal float: flushing to zero is allowed
 *
 * Where op_has_f32_scalars is set (the npu backend): sumsq adds up in f32, and AdamW's hyper-parameters are f32, so that 1 - beta is off by u_acc.
 *
 * S of each op is computed below from the f64 inputs. Included by op/harness.h. */
#ifndef CT_TESTS_OP_BOUND_H
#define CT_TESTS_OP_BOUND_H

#include <float.h>

static bool op_has_f32_scalars;

typedef struct op_terms {
    double *magnitude; /* S, one per element of the output; starts as |exact| */
    double n;
    double score; /* s */
    double absolute; /* added as it is */
} op_terms;

static inline double op_row_norm_max(const ct_tensor *t, int64_t row)
{
    double max = 0.0;
    for (int64_t i = 0, n = op_numel(t); row > 0 && i < n; i += row) {
        double sum = 0.0;
        for (int64_t j = 0; j < row; j++) {
            sum += op_get(t, i + j) * op_get(t, i + j);
        }
        max = fmax(max, sqrt(sum));
    }
    return max;
}

static inline int64_t op_last(const ct_tensor *t)
{
    return t->dims[t->ndim - 1];
}
static inline int64_t op_rows_of(const ct_tensor *t)
{
    return op_last(t) > 0 ? op_numel(t) / op_last(t) : 0;
}

/* S of matmul: the product of the magnitudes. */
static inline void op_terms_matmul(const op_case *w, op_terms *t)
{
    const ct_attrs_matmul *a = w->attrs;
    const int64_t ar = op_rows_of(&w->in[0]), ac = op_last(&w->in[0]), br = op_rows_of(&w->in[1]), bc = op_last(&w->in[1]);
    const int64_t m = a->ta ? ac : ar, p = a->ta ? ar : ac, q = a->tb ? br : bc;
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < q; j++) {
            double sum = w->n_in > 2 && w->in[2].ndim >= 0 ? fabs(op_get(&w->in[2], i * q + j)) : 0.0;
            for (int64_t k = 0; k < p; k++) {
                sum += fabs(op_get(&w->in[0], a->ta ? k * ac + i : i * ac + k) *
                            op_get(&w->in[1], a->tb ? j * bc + k : k * bc + j));
            }
            t->magnitude[i * q + j] = sum;
        }
    }
    t->n = (double)p + 1.0;
}

/* S of matmul_swiglu's output k: gu as matmul; an error of gu's halves g and u changes y by at most 1.1 |u| and |silu(g)| times it. */
static inline void op_terms_matmul_swiglu(const op_case *w, const op_result *exact, op_terms *t, int32_t k)
{
    if (k == 0) {
        op_terms_matmul(w, t);
        return;
    }
    const ct_tensor *gu = &exact->out[0];
    const int64_t f = op_last(&exact->out[1]), rows = op_rows_of(&exact->out[1]);
    op_terms of = {.magnitude = op_must(ct_arena_alloc(w->arena, (size_t)(op_numel(gu) + 1) * sizeof(double), NULL))};
    op_terms_matmul(w, &of);
    t->n = of.n;
    for (int64_t i = 0; i < rows * f; i++) {
        const int64_t at_g = i / f * 2 * f + i % f, at_u = at_g + f;
        const double g = op_get(gu, at_g), u = op_get(gu, at_u);
        t->magnitude[i] = 1.1 * fabs(u) * of.magnitude[at_g] + fabs(g / (1.0 + exp(-g))) * of.magnitude[at_u];
    }
}

static inline void op_terms_embedding_grad(const op_case *w, op_terms *t, int64_t vocab)
{
    const int64_t d = op_last(&w->in[0]);
    memset(t->magnitude, 0, (size_t)(vocab * d) * sizeof(double));
    for (int64_t i = 0, n = op_numel(&w->in[1]); i < n; i++) {
        const int64_t id = (int64_t)op_get(&w->in[1], i);
        for (int64_t j = 0; id >= 0 && id < vocab && j < d; j++) {
            t->magnitude[id * d + j] += fabs(op_get(&w->in[0], i * d + j));
        }
    }
    t->n = (double)op_numel(&w->in[1]);
}

static inline void op_terms_rmsnorm_grad(const op_case *w, op_terms *t, int32_t k)
{
    const ct_tensor *dy = &w->in[0], *x = &w->in[1], *g = &w->in[2], *rstd = &w->in[3];
    const int64_t d = op_last(x), n = op_numel(rstd);
    memset(t->magnitude, 0, (size_t)(k == 0 ? n * d : d) * sizeof(double));
    for (int64_t i = 0; i < n; i++) {
        const double r = op_get(rstd, i);
        double dot = 0.0;
        for (int64_t j = 0; j < d; j++) {
            dot += fabs(op_get(dy, i * d + j) * op_get(x, i * d + j) * op_get(g, j));
        }
        for (int64_t j = 0; j < d; j++) {
            const double a = fabs(op_get(x, i * d + j)), b = fabs(op_get(dy, i * d + j));
            if (k == 0) {
                const double c = w->n_in > 4 ? fabs(op_get(&w->in[4], i * d + j)) : 0.0;
                t->magnitude[i * d + j] = r * (b * fabs(op_get(g, j)) + a * r * r * dot / (double)d) + c;
            } else {
                t->magnitude[j] += a * b * r;
            }
        }
    }
    t->n = (double)(k == 0 ? d : n);
}

static inline double op_silu_grad_size(double dy, double g, double u, bool is_dg)
{
    const double s = 1.0 / (1.0 + exp(-g));
    return fabs(dy * (is_dg ? u * s * (1.0 + fabs(g) * (1.0 - s)) : g * s));
}
static inline void op_terms_silu_mul_grad(const op_case *w, op_terms *t, int32_t k)
{
    for (int64_t i = 0, n = op_numel(&w->in[0]); i < n; i++) {
        t->magnitude[i] = op_silu_grad_size(op_get(&w->in[0], i), op_get(&w->in[1], i), op_get(&w->in[2], i), k == 0);
    }
    t->n = 4.0;
}
static inline void op_terms_swiglu_grad(const op_case *w, op_terms *t)
{
    const int64_t f = op_last(&w->in[0]);
    for (int64_t i = 0, n = op_numel(&w->in[0]); i < n; i++) {
        const int64_t g = i / f * 2 * f + i % f;
        const double dy = op_get(&w->in[0], i), at_g = op_get(&w->in[1], g), at_u = op_get(&w->in[1], g + f);
        t->magnitude[g] = op_silu_grad_size(dy, at_g, at_u, true);
        t->magnitude[g + f] = op_silu_grad_size(dy, at_g, at_u, false);
    }
    t->n = 4.0;
}

/* One segment of an attention case, from its table or its ends. */
static inline void op_segment(const op_case *w, int32_t at, bool by_ends, int64_t i, int64_t out[4])
{
    if (by_ends) {
        out[0] = i > 0 ? (int64_t)op_get(&w->in[at], i - 1) : 0;
        out[1] = (int64_t)op_get(&w->in[at], i) - out[0];
        out[2] = i > 0 ? (int64_t)op_get(&w->in[at + 1], i - 1) : 0;
        out[3] = (int64_t)op_get(&w->in[at + 1], i) - out[2];
        return;
    }
    for (int64_t k = 0; k < 4; k++) {
        out[k] = (int64_t)op_get(&w->in[at], 4 * i + k);
    }
}

/* S of o (k 0 of sdpa: weights times |v|) or of dq, dk, dv. exact: o and lse of the f64 run, or the gradient's inputs. */
static inline void op_terms_attention(const op_case *w, const op_result *exact, op_terms *t, int32_t k, bool is_grad, bool by_ends)
{
    const ct_attrs_sdpa *a = w->attrs;
    const int32_t at = is_grad ? 1 : 0, seg_at = at + (is_grad ? 5 : 3);
    const ct_tensor *q = &w->in[at], *key = &w->in[at + 1], *v = &w->in[at + 2];
    const ct_tensor *lse = is_grad ? &w->in[5] : &exact->out[1];
    const int64_t h = op_last(q), heads = q->dims[q->ndim - 2], kv_heads = key->dims[key->ndim - 2];
    const int64_t n_seg = (int64_t)op_get(&w->in[seg_at + (by_ends ? 2 : 1)], 0);
    memset(t->magnitude, 0, (size_t)op_numel(&exact->out[k]) * sizeof(double));
    for (int64_t n = 0; n < n_seg; n++) {
        int64_t s[4];
        op_segment(w, seg_at, by_ends, n, s);
        for (int64_t i = 0; i < s[1] * heads; i++) {
            const int64_t tq = s[0] + i / heads, head = i % heads, kv = head / (heads / kv_heads), row = (tq * heads + head) * h;
            const int64_t diagonal = i / heads + s[3] - s[1];
            for (int64_t j = 0; j < s[3]; j++) {
                if ((a->causal && j > diagonal) || (a->window > 0 && j <= diagonal - a->window)) {
                    continue;
                }
                const int64_t col = ((s[2] + j) * kv_heads + kv) * h;
                double dot = 0.0, dov = 0.0;
                for (int64_t e = 0; e < h; e++) {
                    dot += op_get(q, row + e) * op_get(key, col + e);
                    dov += is_grad ? fabs(op_get(&w->in[0], row + e)) * (fabs(op_get(v, col + e)) + fabs(op_get(&w->in[4], row + e)))
                                   : 0.0;
                }
                const double p = exp(dot * a->scale - op_get(lse, tq * heads + head));
                for (int64_t e = 0; e < h; e++) {
                    const double ds = fabs(a->scale) * p * dov;
                    if (!is_grad) {
                        t->magnitude[row + e] += p * fabs(op_get(v, col + e));
                    } else if (k == 0) {
                        t->magnitude[row + e] += ds * fabs(op_get(key, col + e));
                    } else {
                        t->magnitude[col + e] += k == 1 ? ds * fabs(op_get(q, row + e)) : p * fabs(op_get(&w->in[0], row + e));
                    }
                }
            }
        }
    }
    t->n = (double)(op_numel(q) / h + op_numel(key) / h + h);
}

/* The largest |score|, by Cauchy and Schwarz. */
static inline double op_score_max(const op_case *w, int32_t at, double scale)
{
    const int64_t h = op_last(&w->in[at]);
    return fabs(scale) * op_row_norm_max(&w->in[at], h) * op_row_norm_max(&w->in[at + 1], h);
}

/* dx: inv (sum_v p |w| + |w_label|); dw likewise with |x|; the loss: inv sum_t (|lse| + |logit|). */
static inline void op_terms_loss(const op_case *w, op_terms *t, int32_t k, double u_acc)
{
    const ct_tensor *x = &w->in[0], *head = &w->in[1];
    const int64_t d = op_last(x), n = op_numel(&w->in[2]), vocab = head->dims[0];
    const double inv = fabs(op_get(&w->in[3], 0)), score = 2.0 * ((double)d + 4.0) * u_acc * op_score_max(w, 0, 1.0);
    double *logit = op_must(ct_arena_alloc(w->arena, (size_t)(vocab + 1) * sizeof(double), NULL)), loss = 0.0;
    memset(t->magnitude, 0, (size_t)(k == 0 ? 1 : k == 1 ? n * d : vocab * d) * sizeof(double));
    for (int64_t i = 0; i < n; i++) {
        const int64_t label = (int64_t)op_get(&w->in[2], i);
        double sum = 0.0;
        if (label == -100) {
            continue;
        }
        for (int64_t v = 0; v < vocab; v++) {
            logit[v] = 0.0;
            for (int64_t j = 0; j < d; j++) {
                logit[v] += op_get(x, i * d + j) * op_get(head, v * d + j);
            }
            sum += exp(logit[v]);
        }
        sum = w->n_in == 5 ? exp(op_get(&w->in[4], i)) : sum;
        loss += label >= 0 ? fabs(log(sum)) + fabs(logit[label]) : 0.0;
        t->absolute += k == 0 ? inv * score : 0.0;
        for (int64_t v = 0; k > 0 && v < vocab; v++) {
            const double p = inv * (exp(logit[v]) / sum + (v == label ? 1.0 : 0.0));
            for (int64_t j = 0; j < d; j++) {
                t->magnitude[(k == 1 ? i : v) * d + j] += p * fabs(op_get(k == 1 ? head : x, (k == 1 ? v : i) * d + j));
            }
        }
    }
    if (k == 0) {
        t->magnitude[0] = inv * loss;
    }
    t->score = k == 0 ? 0.0 : score;
    t->n = (double)(vocab + n + d);
}

static inline void op_terms_adamw(const op_case *w, op_terms *t, int32_t k)
{
    const ct_attrs_adamw *a = w->attrs;
    const double coef = op_get(&w->in[6], 0), step = op_get(&w->in[5], 0);
    for (int64_t s = 0; s + 2 < a->segments.n; s += 3) {
        const int64_t group = a->segments.items[s + 2];
        const double b1 = a->beta1.items[group], b2 = a->beta2.items[group], lr = op_get(&w->in[4], group);
        for (int64_t i = a->segments.items[s]; i < a->segments.items[s + 1]; i++) {
            const double p = op_get(&w->in[0], i), l2 = a->l2.n > 0 ? a->l2.items[group] : 0.0;
            const double g = fabs(op_get(&w->in[1], i) * coef) + fabs(l2 * p);
            const double m = fabs(b1 * op_get(&w->in[2], i)) + fabs((1.0 - b1) * g);
            const double v = b2 * op_get(&w->in[3], i) + (1.0 - b2) * g * g;
            const double denom = sqrt(v / (1.0 - pow(b2, step))) + a->eps.items[group];
            const double update = denom > 0.0 ? lr / (1.0 - pow(b1, step)) * m / denom : 0.0;
            t->magnitude[i] = k == 1 ? m : k == 2 ? v : fabs(p) * (1.0 + lr * a->weight_decay.items[group]) + update;
            if (op_has_f32_scalars) { /* in units of 2 (n + 8) u_acc */
                t->magnitude[i] += (k == 1 ? g : k == 2 ? g * g : update * (1.0 / (1.0 - b1) + 1.0 / (1.0 - b2))) / 32.0;
            }
        }
    }
    t->n = 8.0;
}

static inline void op_terms_momentum(const op_case *w, op_terms *t, int32_t k)
{
    const ct_attrs_momentum *a = w->attrs;
    for (int64_t s = 0; s + 2 < a->segments.n && op_get(&w->in[4], 0) != 0.0; s += 3) {
        const int64_t group = a->segments.items[s + 2];
        const double mu = a->momentum.items[group];
        for (int64_t i = a->segments.items[s]; i < a->segments.items[s + 1]; i++) {
            const double x = a->share.items[group] * (fabs(op_get(&w->in[1], i) * op_get(&w->in[3], 0)) +
                                                      fabs(a->weight_decay.items[group] * op_get(&w->in[2], i)));
            const double kept = fabs(mu * op_get(&w->in[0], i)) + x;
            t->magnitude[i] = k == 0 ? kept : x + mu * kept + kept;
        }
    }
    t->n = 8.0;
}

static inline void op_terms_descend(const op_case *w, op_terms *t)
{
    const ct_attrs_descend *a = w->attrs;
    for (int64_t s = 0; s + 2 < a->segments.n; s += 3) {
        const int64_t group = a->segments.items[s + 2];
        const double lr = op_get(&w->in[2], group);
        for (int64_t i = a->segments.items[s]; i < a->segments.items[s + 1]; i++) {
            const double p = fabs(op_get(&w->in[0], i));
            t->magnitude[i] = p * (1.0 + lr * a->weight_decay.items[group] + lr * a->l2.items[group]) + lr * fabs(op_get(&w->in[1], i));
        }
    }
    t->n = 8.0;
}

/* By norms: |x|_F <= q = 1.3 sqrt(r) at every turn (1 before the first, where no singular value is above 1). A product of A [., k] and B is off by at
 * most 2 k u |A| |B|; a turn's error passes the next turns, each of which stretches it at most by the polynomial's slope, 4, the sums of its norms. */
static inline void op_terms_newton_schulz(const op_case *w, op_terms *t, double u_acc)
{
    const ct_attrs_newton_schulz *a = w->attrs;
    for (int64_t i = 0; i + 3 < a->matrices.n; i += 4) {
        const int64_t rows = a->matrices.items[i + 1], cols = a->matrices.items[i + 2], steps = a->steps.items[a->matrices.items[i + 3]];
        const double r = (double)(rows < cols ? rows : cols), n = (double)(rows < cols ? cols : rows), q = 1.3 * sqrt(r);
        const double *abc = a->coefficients.items + 3 * a->matrices.items[i + 3];
        const double inner = fabs(abc[1]) * sqrt(r) + fabs(abc[2]) * q * q, poly = fabs(abc[0]) * sqrt(r) + inner * q * q;
        const double turn = 2.0 * (n + r + 8.0) * u_acc * (q * q * (inner + fabs(abc[2]) * q * q) + 2.0 * poly) * q;
        double e = 4.0 * (n + 8.0) * u_acc;
        for (int64_t s = 0; s < steps; s++) {
            e = 4.0 * e + turn;
        }
        t->absolute = fmax(t->absolute, a->scale.items[i / 4] * e);
    }
}

/* Bounds of output k. c: the case as the backend ran it; wide: with f64 inputs; exact: ref's outputs of it. */
static inline double *op_bound(const op_case *c, const op_case *wide, const op_result *exact, int32_t k, ct_dtype out_dtype)
{
    const int64_t n = op_numel(&exact->out[k]);
    const double u_f = ct_dtype_unit_roundoff(c->f), u_out = ct_dtype_unit_roundoff(out_dtype);
    const double u_acc = (c->op == CT_OP_sumsq && !op_has_f32_scalars) || c->f == CT_DTYPE_F64 ? ct_dtype_unit_roundoff(CT_DTYPE_F64)
                                                                      : ct_dtype_unit_roundoff(CT_DTYPE_F32);
    op_terms t = {.magnitude = op_must(ct_arena_alloc(c->arena, (size_t)(n + 1) * sizeof(double), NULL)), .n = 1.0};
    for (int64_t i = 0; i < n; i++) {
        t.magnitude[i] = fabs(op_get(&exact->out[k], i));
    }
    const bool is_grad = c->op == CT_OP_sdpa_grad || c->op == CT_OP_sdpa_tnd_grad;
    switch (c->op) {
    case CT_OP_matmul:
        op_terms_matmul(wide, &t);
        break;
    case CT_OP_matmul_swiglu:
        op_terms_matmul_swiglu(wide, exact, &t, k);
        break;
    case CT_OP_embedding_grad:
        op_terms_embedding_grad(wide, &t, exact->out[0].dims[0]);
        break;
    case CT_OP_rmsnorm:
        t.n = (double)op_last(&c->in[0]);
        break;
    case CT_OP_rmsnorm_grad:
        op_terms_rmsnorm_grad(wide, &t, k);
        break;
    case CT_OP_silu_mul_grad:
        op_terms_silu_mul_grad(wide, &t, k);
        break;
    case CT_OP_swiglu_grad:
        op_terms_swiglu_grad(wide, &t);
        break;
    case CT_OP_sdpa:
    case CT_OP_sdpa_tnd:
    case CT_OP_sdpa_grad:
    case CT_OP_sdpa_tnd_grad: {
        const int32_t at = is_grad ? 1 : 0;
        const ct_attrs_sdpa *a = c->attrs;
        const double score = 2.0 * ((double)op_last(&c->in[at]) + 4.0) * u_acc * op_score_max(wide, at, a->scale);
        if (!is_grad && k == 1) {
            t.n = (double)(op_numel(&c->in[1]) / (op_last(&c->in[1]) > 0 ? op_last(&c->in[1]) : 1));
            t.absolute = score + (t.n + 8.0) * u_acc;
        } else {
            op_terms_attention(wide, exact, &t, k, is_grad, c->op == CT_OP_sdpa_tnd || c->op == CT_OP_sdpa_tnd_grad);
            t.score = score;
        }
        break;
    }
    case CT_OP_linear_cross_entropy:
    case CT_OP_linear_cross_entropy_eval:
        op_terms_loss(wide, &t, k, u_acc);
        break;
    case CT_OP_linear_lse: /* the sum of exponentials, and the scores in them */
        t.n = (double)op_last(&c->in[0]) + (double)c->in[1].dims[0];
        t.absolute = 2.0 * ((double)op_last(&c->in[0]) + 4.0) * u_acc * op_score_max(wide, 0, 1.0) + (t.n + 8.0) * u_acc;
        break;
    case CT_OP_lse_merge:
        t.n = (double)c->in[0].dims[0];
        t.absolute = (t.n + 8.0) * u_acc;
        break;
    case CT_OP_sumsq:
        t.n = (double)op_numel(&c->in[0]);
        break;
    case CT_OP_adamw:
        op_terms_adamw(wide, &t, k);
        break;
    case CT_OP_momentum:
        op_terms_momentum(wide, &t, k);
        break;
    case CT_OP_descend:
        op_terms_descend(wide, &t);
        break;
    case CT_OP_newton_schulz:
        op_terms_newton_schulz(wide, &t, u_acc);
        break;
    default:
        t.n = 4.0;
        break;
    }
    const double rounding = exact->out[k].dtype == CT_DTYPE_F64 && out_dtype != CT_DTYPE_F64 ? 1.0 : 2.0;
    const bool may_round = ct_op_row(c->op)->tolerance == CT_TOL_APPROXIMATE &&
                           (is_grad || (c->op == CT_OP_sdpa && k == 0) || (c->op == CT_OP_sdpa_tnd && k == 0) ||
                            ((c->op == CT_OP_linear_cross_entropy || c->op == CT_OP_matmul_swiglu) && k > 0));
    const double relative = 2.0 * (t.n + 8.0) * u_acc + (may_round ? 4.0 * u_f : 0.0) + t.score;
    for (int64_t i = 0; i < n; i++) {
        const double value = fabs(op_get(&exact->out[k], i));
        t.magnitude[i] = isfinite(value) ? rounding * u_out * value + relative * t.magnitude[i] + t.absolute + (double)FLT_MIN : 0.0;
    }
    return t.magnitude;
}

#endif
