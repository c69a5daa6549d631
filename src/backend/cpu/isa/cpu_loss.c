/* SPDX-License-Identifier: Apache-2.0 */
/* linear_cross_entropy, its evaluation and the log-sum-exp of its logits: logits of one chunk of tokens at a time, in f32, made and used up through the
 * shared product; the loss is summed over tokens in order, in f64. */
#include <inttypes.h>
#include <math.h>

#include "backend/cpu/isa/cpu_gemm.h"
#include "backend/cpu/isa/cpu_kernel.h"
#include "base/pool.h"

enum { IGNORED = -100 };
/* Logits of one chunk take at most this, or what attrs.chunks asks for if that is more: with fewer tokens than some hundred, the
 * products would mostly pack w. */
enum { LOGITS_BYTES = 4 << 20 };

typedef struct loss_shape {
    int64_t tokens, d, vocab, chunk;
    size_t logits_at, losses_at, dw_at, gemm_at; /* bytes into the workspace */
} loss_shape;

static loss_shape shape_of(const ct_launch *launch, bool wants_dw)
{
    const ct_tensor *x = &launch->in[0], *w = &launch->in[1];
    const int64_t chunks = cti_max_i64(1, ((const ct_attrs_loss *)launch->attrs)->chunks);
    loss_shape s = {.tokens = t_rows(x), .d = t_last(x), .vocab = w->dims[0]};
    const int64_t near = cti_min_i64(s.tokens, LOGITS_BYTES / 4 / cti_max_i64(1, s.vocab));
    s.chunk = cti_max_i64(1, cti_max_i64(near, cti_ceil_div(s.tokens, chunks)));
    s.losses_at = (size_t)cti_round_up(s.chunk * s.vocab * 4, 64);
    s.dw_at = s.losses_at + (size_t)cti_round_up(s.tokens * 8, 64);
    s.gemm_at = s.dw_at;
    if (wants_dw && launch->out[2].dtype != CT_DTYPE_F32) {
        s.gemm_at += (size_t)cti_round_up(s.vocab * s.d * 4, 64);
    }
    return s;
}

size_t CTI_CPU_WORKSPACE(linear_cross_entropy)(const ct_launch *shapes)
{
    return shape_of(shapes, true).gemm_at + CTI_CPU_FN(gemm_scratch_bytes)(cti_pool_threads());
}
size_t CTI_CPU_WORKSPACE(linear_cross_entropy_eval)(const ct_launch *shapes)
{
    return shape_of(shapes, false).gemm_at + CTI_CPU_FN(gemm_scratch_bytes)(cti_pool_threads());
}

/* One row of logits z: returns log(sum(exp(z))) - z[label], and with grad_scale turns z into its gradient,
 * (softmax(z) - onehot(label)) grad_scale. */
static double row_loss(float *z, int64_t n, int64_t label, const float *grad_scale)
{
    const float ninf = -__builtin_inff();
    vf vmax = v_set1(ninf);
    const float target = z[label];
    int64_t i = 0;
    for (; i + CTI_VL <= n; i += CTI_VL) {
        vmax = v_max(v_load(z + i), vmax);
    }
    if (i < n) {
        vmax = v_max(v_load_part(z + i, n - i, ninf), vmax);
    }
    const float m = v_hmax(vmax);
    const vf vm = v_set1(m);
    vf sum = {0};
    for (i = 0; i + CTI_VL <= n; i += CTI_VL) {
        vf e = v_exp_neg(v_load(z + i) - vm);
        sum += e;
        v_store(z + i, e);
    }
    if (i < n) {
        vf e = v_exp_neg(v_load_part(z + i, n - i, ninf) - vm);
        sum += e;
        v_store_part(z + i, n - i, e);
    }
    const float total = v_hsum(sum);
    if (grad_scale) {
        const float f = *grad_scale / total;
        for (i = 0; i < n; i++) {
            z[i] *= f;
        }
        z[label] -= *grad_scale;
    }
    return log((double)total) + (double)m - (double)target;
}

/* The same for rows of a larger vocabulary whose log-sum-exp is known; a label that lies elsewhere (below 0) counts in the gradients only.
 * exp(z - lse) needs no maximum: it is at most 1. */
static double row_loss_shared(float *z, int64_t n, int64_t label, float lse, const float *grad_scale)
{
    const double loss = label >= 0 ? (double)lse - (double)z[label] : 0.0;
    if (grad_scale) {
        const vf vlse = v_set1(lse), scale = v_set1(*grad_scale);
        int64_t i = 0;
        for (; i + CTI_VL <= n; i += CTI_VL) {
            v_store(z + i, v_exp_neg(v_load(z + i) - vlse) * scale);
        }
        if (i < n) {
            v_store_part(z + i, n - i, v_exp_neg(v_load_part(z + i, n - i, lse) - vlse) * scale);
        }
        if (label >= 0) {
            z[label] -= *grad_scale;
        }
    }
    return loss;
}

static ct_status check_labels(const ct_tensor *labels, int64_t vocab, bool is_shared, ct_err *err)
{
    const int32_t *label = labels->data;
    const int64_t n = t_numel(labels);
    for (int64_t t = 0; t < n; t++) {
        if (label[t] != IGNORED && !(is_shared && label[t] == CT_ID_ELSEWHERE) && (label[t] < 0 || label[t] >= vocab)) {
            return CT_FAIL(err, CT_ERR_RANGE,
                           "linear_cross_entropy: label %" PRId32 " of token %" PRId64 " is neither %d nor in [0, %" PRId64 ")",
                           label[t], t, IGNORED, vocab);
        }
    }
    return CT_OK;
}

/* Tokens of one chunk. */
typedef struct chunk_run {
    float *logits; /* with grad_scale they become their gradients, zero where ignored */
    int64_t vocab;
    const int32_t *labels;
    double *losses;
    const float *grad_scale; /* or NULL */
    const float *lse;        /* of the whole vocabulary; NULL: it is all here */
} chunk_run;

static void chunk_rows(void *ctx, int64_t first, int64_t end, int thread)
{
    const chunk_run *r = ctx;
    (void)thread;
    for (int64_t t = first; t < end; t++) {
        float *z = r->logits + t * r->vocab;
        if (r->labels[t] == IGNORED) {
            r->losses[t] = 0;
            if (r->grad_scale) {
                memset(z, 0, (size_t)r->vocab * sizeof(float));
            }
        } else if (r->lse != NULL) {
            r->losses[t] = row_loss_shared(z, r->vocab, r->labels[t], r->lse[t], r->grad_scale);
        } else {
            r->losses[t] = row_loss(z, r->vocab, r->labels[t], r->grad_scale);
        }
    }
}

typedef struct narrow_run {
    const ct_tensor *to;
    const float *from;
} narrow_run;

static void narrow_rows(void *ctx, int64_t first, int64_t end, int thread)
{
    const narrow_run *r = ctx;
    const int64_t d = t_last(r->to);
    (void)thread;
    v_narrow(r->to->data, r->to->dtype, first * d, r->from + first * d, (end - first) * d);
}

static ct_status run_loss(const ct_launch *launch, bool wants_grads, ct_err *err)
{
    const ct_tensor *x = &launch->in[0], *w = &launch->in[1];
    CT_TRY(check_floats("linear_cross_entropy", "input", launch->in, 2, err));
    const loss_shape s = shape_of(launch, wants_grads);
    CT_TRY(check_scratch("linear_cross_entropy", launch, s.gemm_at + CTI_CPU_FN(gemm_scratch_bytes)(1), err));
    const float *lse = launch->n_in == 5 ? launch->in[4].data : NULL;
    CT_TRY(check_labels(&launch->in[2], s.vocab, lse != NULL, err));
    const int32_t *labels = launch->in[2].data;
    const float inv_tokens = *(const float *)launch->in[3].data;
    char *base = launch->workspace;
    float *logits = (float *)(base + s.logits_at);
    double *losses = (double *)(base + s.losses_at);
    void *scratch = base + s.gemm_at;
    const size_t scratch_bytes = launch->workspace_bytes - s.gemm_at;
    const ct_tensor *dx = wants_grads ? &launch->out[1] : NULL, *dw = wants_grads ? &launch->out[2] : NULL;
    float *dw_sum = NULL;
    if (wants_grads) {
        dw_sum = dw->dtype == CT_DTYPE_F32 ? dw->data : (void *)(base + s.dw_at);
    }
    const size_t x_size = ct_dtype_size_bytes(x->dtype);
    for (int64_t t = 0; t < s.tokens; t += s.chunk) {
        const int64_t n = cti_min_i64(s.chunk, s.tokens - t);
        const cti_cpu_mat x_td = {(const char *)x->data + (size_t)(t * s.d) * x_size, x->dtype, s.d, 1};
        const cti_cpu_mat z_tv = {logits, CT_DTYPE_F32, s.vocab, 1};
        const cti_cpu_gemm fwd = {.m = n, .n = s.vocab, .k = s.d, .a = x_td, .b = {w->data, w->dtype, 1, s.d},
                                  .y = logits, .y_dtype = CT_DTYPE_F32, .ldy = s.vocab};
        CTI_CPU_FN(gemm)(&fwd, scratch, scratch_bytes);
        chunk_run rows = {logits, s.vocab, labels + t, losses + t, wants_grads ? &inv_tokens : NULL,
                          lse != NULL ? lse + t : NULL};
        cti_pool_run(n, grain_of(s.vocab), chunk_rows, &rows);
        if (!wants_grads) {
            continue;
        }
        const cti_cpu_gemm gx = {.m = n, .n = s.d, .k = s.vocab, .a = z_tv, .b = {w->data, w->dtype, s.d, 1},
                                 .y = (char *)dx->data + (size_t)(t * s.d) * ct_dtype_size_bytes(dx->dtype),
                                 .y_dtype = dx->dtype, .ldy = s.d, .may_round_a = true};
        CTI_CPU_FN(gemm)(&gx, scratch, scratch_bytes);
        const cti_cpu_gemm gw = {.m = s.vocab, .n = s.d, .k = n, .a = {logits, CT_DTYPE_F32, 1, s.vocab}, .b = x_td,
                                 .c0 = t > 0 ? dw_sum : NULL, .y = dw_sum, .y_dtype = CT_DTYPE_F32, .ldy = s.d,
                                 .may_round_a = true};
        CTI_CPU_FN(gemm)(&gw, scratch, scratch_bytes);
    }
    double loss = 0;
    for (int64_t t = 0; t < s.tokens; t++) {
        loss += losses[t];
    }
    *(double *)launch->out[0].data = loss * (double)inv_tokens;
    if (wants_grads && s.tokens == 0) {
        memset(dw_sum, 0, (size_t)(s.vocab * s.d) * sizeof(float));
    }
    if (wants_grads && dw->dtype != CT_DTYPE_F32) {
        narrow_run rows = {dw, dw_sum};
        cti_pool_run(s.vocab, grain_of(s.d), narrow_rows, &rows);
    }
    return CT_OK;
}

ct_status CTI_CPU_FN(linear_cross_entropy)(const ct_launch *launch, ct_err *err)
{
    return run_loss(launch, true, err);
}

ct_status CTI_CPU_FN(linear_cross_entropy_eval)(const ct_launch *launch, ct_err *err)
{
    return run_loss(launch, false, err);
}

size_t CTI_CPU_WORKSPACE(linear_lse)(const ct_launch *shapes)
{
    return shape_of(shapes, false).gemm_at + CTI_CPU_FN(gemm_scratch_bytes)(cti_pool_threads());
}

typedef struct lse_run {
    const float *logits;
    int64_t vocab;
    float *lse;
} lse_run;

static float row_lse(const float *z, int64_t n)
{
    const float ninf = -__builtin_inff();
    vf vmax = v_set1(ninf), sum = {0};
    int64_t i = 0;
    for (; i + CTI_VL <= n; i += CTI_VL) {
        vmax = v_max(v_load(z + i), vmax);
    }
    if (i < n) {
        vmax = v_max(v_load_part(z + i, n - i, ninf), vmax);
    }
    const float m = v_hmax(vmax);
    for (i = 0; i + CTI_VL <= n; i += CTI_VL) {
        sum += v_exp_neg(v_load(z + i) - v_set1(m));
    }
    if (i < n) {
        sum += v_exp_neg(v_load_part(z + i, n - i, ninf) - v_set1(m));
    }
    return (float)(log((double)v_hsum(sum)) + (double)m);
}

static void lse_rows(void *ctx, int64_t first, int64_t end, int thread)
{
    const lse_run *r = ctx;
    (void)thread;
    for (int64_t t = first; t < end; t++) {
        r->lse[t] = row_lse(r->logits + t * r->vocab, r->vocab);
    }
}

ct_status CTI_CPU_FN(linear_lse)(const ct_launch *launch, ct_err *err)
{
    const ct_tensor *x = &launch->in[0], *w = &launch->in[1];
    CT_TRY(check_floats("linear_lse", "input", launch->in, 2, err));
    const loss_shape s = shape_of(launch, false);
    CT_TRY(check_scratch("linear_lse", launch, s.gemm_at + CTI_CPU_FN(gemm_scratch_bytes)(1), err));
    char *base = launch->workspace;
    float *logits = (float *)(base + s.logits_at);
    for (int64_t t = 0; t < s.tokens; t += s.chunk) {
        const int64_t n = cti_min_i64(s.chunk, s.tokens - t);
        const cti_cpu_mat x_td = {(const char *)x->data + (size_t)(t * s.d) * ct_dtype_size_bytes(x->dtype), x->dtype, s.d, 1};
        const cti_cpu_gemm fwd = {.m = n, .n = s.vocab, .k = s.d, .a = x_td, .b = {w->data, w->dtype, 1, s.d},
                                  .y = logits, .y_dtype = CT_DTYPE_F32, .ldy = s.vocab};
        CTI_CPU_FN(gemm)(&fwd, base + s.gemm_at, launch->workspace_bytes - s.gemm_at);
        lse_run rows = {logits, s.vocab, (float *)launch->out[0].data + t};
        cti_pool_run(n, grain_of(s.vocab), lse_rows, &rows);
    }
    return CT_OK;
}

ct_status CTI_CPU_FN(lse_merge)(const ct_launch *launch, ct_err *err)
{
    (void)err;
    const float *l = launch->in[0].data;
    float *out = launch->out[0].data;
    const int64_t parts = launch->in[0].dims[0], n = t_numel(&launch->out[0]);
    for (int64_t i = 0; i < n; i++) {
        float max = l[i];
        double sum = 0;
        for (int64_t p = 1; p < parts; p++) {
            max = l[p * n + i] > max ? l[p * n + i] : max;
        }
        for (int64_t p = 0; p < parts; p++) {
            sum += exp((double)l[p * n + i] - (double)max);
        }
        out[i] = (float)(log(sum) + (double)max);
    }
    return CT_OK;
}
