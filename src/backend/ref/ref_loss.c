/* SPDX-License-Identifier: Apache-2.0 */
/* linear_cross_entropy and its evaluation-only form. One token's logits live at a time, whatever `chunks` says. With
 * p = softmax(logits): dlogit[v] = inv_tokens (p[v] - [v == label]), dx = dlogit w, dw = sum over t of dlogit[v] x[t]. */
#include "backend/ref/ref.h"

enum { IGNORED = -100 };

typedef struct loss_args {
    const ct_tensor *x, *w;
    const int32_t *labels;
    int64_t n_tokens, d, vocab;
    double inv_tokens;
    const ct_tensor *lse; /* of the whole vocabulary; NULL: w is all of it */
} loss_args;

static ct_status loss_args_of(const char *op, const ct_launch *launch, loss_args *out, ct_err *err)
{
    const ct_tensor *x = &launch->in[0], *w = &launch->in[1];
    *out = (loss_args){x, w, launch->in[2].data, cti_ref_rows(x), cti_ref_last_dim(x), w->dims[0],
                       cti_ref_load(&launch->in[3], 0), launch->n_in == 5 ? &launch->in[4] : NULL};
    for (int64_t t = 0; t < out->n_tokens; t++) {
        const int32_t label = out->labels[t];
        const bool is_elsewhere = out->lse != NULL && label == CT_ID_ELSEWHERE;
        if (label != IGNORED && !is_elsewhere && (label < 0 || label >= out->vocab)) {
            return CT_FAIL(err, CT_ERR_RANGE, "%s: labels[%lld] is %d, neither %d nor in [0, %lld)", op, (long long)t,
                           (int)label, (int)IGNORED, (long long)out->vocab);
        }
    }
    return CT_OK;
}

/* Fills logits [V] of token t; returns log(sum(exp(logits))). */
static double token_logits(const loss_args *a, int64_t t, double *logits)
{
    double max = -(double)INFINITY, sum = 0.0;
    for (int64_t v = 0; v < a->vocab; v++) {
        double dot = 0.0;
        for (int64_t j = 0; j < a->d; j++) {
            dot += cti_ref_load(a->x, t * a->d + j) * cti_ref_load(a->w, v * a->d + j);
        }
        logits[v] = dot;
        max = dot > max ? dot : max;
    }
    for (int64_t v = 0; v < a->vocab; v++) {
        sum += exp(logits[v] - max);
    }
    return max + log(sum);
}

/* Logits of the rows here, and the whole vocabulary's log-sum-exp. */
static double token_lse(const loss_args *a, int64_t t, double *logits)
{
    const double own = token_logits(a, t, logits);
    return a->lse != NULL ? cti_ref_load(a->lse, t) : own;
}

size_t cti_ref_linear_lse_workspace_bytes(const ct_launch *launch)
{
    return (size_t)launch->in[1].dims[0] * sizeof(double);
}

ct_status cti_ref_linear_lse(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_tensor *x = &launch->in[0], *w = &launch->in[1];
    const loss_args a = {.x = x, .w = w, .n_tokens = cti_ref_rows(x), .d = cti_ref_last_dim(x), .vocab = w->dims[0]};
    for (int64_t t = 0; t < a.n_tokens; t++) {
        cti_ref_store(&launch->out[0], t, token_logits(&a, t, launch->workspace));
    }
    return CT_OK;
}

ct_status cti_ref_lse_merge(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const ct_tensor *l = &launch->in[0];
    const int64_t parts = l->dims[0], n = cti_ref_numel(&launch->out[0]);
    for (int64_t i = 0; i < n; i++) {
        double max = -(double)INFINITY, sum = 0.0;
        for (int64_t p = 0; p < parts; p++) {
            max = fmax(max, cti_ref_load(l, p * n + i));
        }
        for (int64_t p = 0; p < parts; p++) {
            sum += exp(cti_ref_load(l, p * n + i) - max);
        }
        cti_ref_store(&launch->out[0], i, max + log(sum));
    }
    return CT_OK;
}

size_t cti_ref_linear_cross_entropy_eval_workspace_bytes(const ct_launch *launch)
{
    return (size_t)launch->in[1].dims[0] * sizeof(double);
}

ct_status cti_ref_linear_cross_entropy_eval(const ct_launch *launch, ct_err *err)
{
    loss_args a;
    CT_TRY(loss_args_of("linear_cross_entropy_eval", launch, &a, err));
    double *logits = launch->workspace, total = 0.0;
    for (int64_t t = 0; t < a.n_tokens; t++) {
        if (a.labels[t] != IGNORED && a.labels[t] != CT_ID_ELSEWHERE) {
            const double lse = token_lse(&a, t, logits);
            total += lse - logits[a.labels[t]];
        }
    }
    cti_ref_store(&launch->out[0], 0, a.inv_tokens * total);
    return CT_OK;
}

/* [logits V][dx D][dw V D], f64. */
size_t cti_ref_linear_cross_entropy_workspace_bytes(const ct_launch *launch)
{
    const size_t vocab = (size_t)launch->in[1].dims[0], d = (size_t)launch->in[1].dims[1];
    return (vocab + d + vocab * d) * sizeof(double);
}

ct_status cti_ref_linear_cross_entropy(const ct_launch *launch, ct_err *err)
{
    loss_args a;
    CT_TRY(loss_args_of("linear_cross_entropy", launch, &a, err));
    double *logits = launch->workspace, *dx = logits + a.vocab, *dw = dx + a.d, total = 0.0;
    memset(dw, 0, (size_t)(a.vocab * a.d) * sizeof *dw);
    for (int64_t t = 0; t < a.n_tokens; t++) {
        const int32_t label = a.labels[t];
        memset(dx, 0, (size_t)a.d * sizeof *dx);
        if (label != IGNORED) {
            const double lse = token_lse(&a, t, logits);
            total += label != CT_ID_ELSEWHERE ? lse - logits[label] : 0.0;
            for (int64_t v = 0; v < a.vocab; v++) {
                const double dlogit = a.inv_tokens * (exp(logits[v] - lse) - (v == label ? 1.0 : 0.0));
                for (int64_t j = 0; j < a.d; j++) {
                    dx[j] += dlogit * cti_ref_load(a.w, v * a.d + j);
                    dw[v * a.d + j] += dlogit * cti_ref_load(a.x, t * a.d + j);
                }
            }
        }
        for (int64_t j = 0; j < a.d; j++) {
            cti_ref_store(&launch->out[1], t * a.d + j, dx[j]);
        }
    }
    for (int64_t i = 0; i < a.vocab * a.d; i++) {
        cti_ref_store(&launch->out[2], i, dw[i]);
    }
    cti_ref_store(&launch->out[0], 0, a.inv_tokens * total);
    return CT_OK;
}
