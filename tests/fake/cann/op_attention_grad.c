/* SPDX-License-Identifier: Apache-2.0 */
/* FlashAttentionScoreGrad, FlashAttentionUnpaddingScoreGrad: weights anew from the statistics, then
 * dv = w^T dy, ds = w (dy v^T - sum(dy out)), dq = scale ds k, dk = scale ds^T q; in float inside. */
#include "op_attention.h"
#include "op_gemm.h"
#include "op_vector.h"

static const op_slots fixed = {.key = 1,
                               .value = 2,
                               .dy = 3,
                               .bias = 4,
                               .drop = 5,
                               .padding = 6,
                               .mask = 7,
                               .max = 8,
                               .sum = 9,
                               .out = 11,
                               .prefix = 12,
                               .scale = 13,
                               .keep = 14,
                               .pre = 15,
                               .next = 16,
                               .heads = 17,
                               .layout = 18,
                               .precise = 19,
                               .sparse = 20,
                               .dq = 21,
                               .dk = 22,
                               .dv = 23};
static const op_slots packed = {.key = 1,
                                .value = 2,
                                .dy = 3,
                                .bias = 4,
                                .drop = 5,
                                .padding = 6,
                                .mask = 7,
                                .max = 8,
                                .sum = 9,
                                .out = 11,
                                .prefix = 12,
                                .lengths_q = 13,
                                .lengths_kv = 14,
                                .scale = 15,
                                .keep = 16,
                                .pre = 17,
                                .next = 18,
                                .heads = 19,
                                .layout = 20,
                                .precise = 21,
                                .sparse = 22,
                                .dq = 23,
                                .dk = 24,
                                .dv = 25};

static const op_slots *slots_of(const fake_call *c)
{
    return c->op->code ? &packed : &fixed;
}

static int check_grad(fake_call *c)
{
    const op_slots *s = slots_of(c);
    TRY(op_attention_check(c, s));
    op_attention a = op_attention_of(c, s);
    fake_view want = *fake_arg_view(c, 0);
    want.dim[want.ndim - 1] = want.ndim == 3 && !a.packed ? a.heads * a.dv : a.dv;
    TRY(fake_want_dims(c, s->out, want.ndim, want.dim));
    TRY(fake_want_dims(c, s->dy, want.ndim, want.dim));
    TRY(fake_want_dims_of(c, s->dq, 0));
    TRY(fake_want_dims_of(c, s->dk, s->key));
    return fake_want_dims_of(c, s->dv, s->value);
}

/* Memory of one head: matrices in rows of queries unless they end in `t`. */
typedef struct buffers {
    float *q, *k, *kt, *vt, *dy, *o, *w, *ds, *wt, *dst, *dq, *dk, *dv, *row_q, *row_dy;
    unsigned char *masked;
} buffers;

static buffers buffers_new(fake_call *c, const op_attention *a)
{
    int64_t nq = a->sq * a->d, nk = a->skv * a->d, nv = a->skv * a->dv, no = a->sq * a->dv,
            ns = a->sq * a->skv;
    return (buffers){.q = fake_new_f32(c, nq),
                     .k = fake_new_f32(c, nk),
                     .kt = fake_new_f32(c, nk),
                     .vt = fake_new_f32(c, nv),
                     .dy = fake_new_f32(c, no),
                     .o = fake_new_f32(c, no),
                     .w = fake_new_f32(c, ns),
                     .ds = fake_new_f32(c, ns),
                     .wt = fake_new_f32(c, ns),
                     .dst = fake_new_f32(c, ns),
                     .dq = fake_new_f32(c, nq),
                     .dk = fake_new_f32(c, nk),
                     .dv = fake_new_f32(c, nv),
                     .row_q = fake_new_f32(c, nq),
                     .row_dy = fake_new_f32(c, no),
                     .masked = fake_scrap_new(c, ns, 1)};
}

static void load(fake_call *c, const op_slots *s, const op_attention *a, int i, op_piece p, int64_t b,
                 int64_t h, bool transposed, float *x)
{
    bool is_kv = i == s->key || i == s->value;
    fake_view v = op_attention_head(c, s, a, i, is_kv ? a->heads_kv : a->heads, p, b, h, transposed);
    fake_load_f32(&v, x);
}

/* Weights of one head, from scores in f->w and the forward's statistics; then ds in f->ds. */
static void weights(const op_attention *a, op_piece p, int64_t b, int64_t h, const float *max,
                    const float *sum, bool hides, buffers *f)
{
    for (int64_t i = 0; i < p.sq; i++) {
        int64_t at = op_attention_stat(a, p, b, h, i);
        float *w = f->w + i * p.skv, *ds = f->ds + i * p.skv, top = max[at], part = 1 / sum[at];
        const unsigned char *masked = hides ? f->masked + i * p.skv : NULL;
        int64_t hidden = 0;
        for (int64_t j = 0; j < p.skv; j++) {
            w[j] *= a->scale;
        }
        for (int64_t j = 0; masked && j < p.skv; j++) {
            w[j] = masked[j] ? OP_MASKED : w[j];
            hidden += masked[j];
        }
        bool blank = hidden == p.skv && a->blank_rows;
        for (int64_t j = 0; j < p.skv; j++) {
            w[j] = blank ? 0 : op_exp(w[j] - top) * part;
        }
        float dot = op_dot(f->dy + i * a->dv, f->o + i * a->dv, a->dv);
        for (int64_t j = 0; j < p.skv; j++) {
            ds[j] = w[j] * (ds[j] - dot) * a->scale;
        }
    }
}

/* Adds one query head's part to dk and dv; queries in the order given. */
static void add_kv(const op_attention *a, op_piece p, const int64_t *order, buffers *f, float *dk, float *dv)
{
    for (int64_t r = 0; r < p.sq; r++) {
        int64_t i = order[r];
        for (int64_t j = 0; j < p.skv; j++) {
            f->wt[j * p.sq + r] = f->w[i * p.skv + j];
            f->dst[j * p.sq + r] = f->ds[i * p.skv + j];
        }
        for (int64_t e = 0; e < a->d; e++) {
            f->row_q[r * a->d + e] = f->q[i * a->d + e];
        }
        for (int64_t e = 0; e < a->dv; e++) {
            f->row_dy[r * a->dv + e] = f->dy[i * a->dv + e];
        }
    }
    op_gemm(p.skv, a->d, p.sq, f->dst, f->row_q, f->dk);
    op_gemm(p.skv, a->dv, p.sq, f->wt, f->row_dy, f->dv);
    for (int64_t n = 0; n < p.skv * a->d; n++) {
        dk[n] += f->dk[n];
    }
    for (int64_t n = 0; n < p.skv * a->dv; n++) {
        dv[n] += f->dv[n];
    }
}

static void store(fake_call *c, const op_slots *s, const op_attention *a, int i, int64_t heads, op_piece p,
                  int64_t b, int64_t h, float *x)
{
    fake_view v = op_attention_head(c, s, a, i, heads, p, b, h, false);
    fake_store_f32(&v, x);
}

static void run_grad(fake_call *c)
{
    const op_slots *s = slots_of(c);
    op_attention a = op_attention_of(c, s);
    float *max = fake_arg_f32(c, s->max), *sum = fake_arg_f32(c, s->sum);
    float *dk = fake_new_f32(c, a.skv * a.d), *dv = fake_new_f32(c, a.skv * a.dv);
    buffers f = buffers_new(c, &a);
    int64_t group = a.heads / a.heads_kv;
    for (int64_t b = 0; b < a.batch; b++) {
        op_piece p = op_attention_piece(c, s, &a, b);
        int64_t *order = fake_sum_order(c, p.sq), *heads = fake_sum_order(c, group);
        for (int64_t kv = 0; kv < a.heads_kv; kv++) {
            load(c, s, &a, s->key, p, b, kv, false, f.k);
            load(c, s, &a, s->key, p, b, kv, true, f.kt);
            load(c, s, &a, s->value, p, b, kv, true, f.vt);
            for (int64_t n = 0; n < p.skv * a.d; n++) {
                dk[n] = 0;
            }
            for (int64_t n = 0; n < p.skv * a.dv; n++) {
                dv[n] = 0;
            }
            for (int64_t g = 0; g < group; g++) {
                int64_t h = kv * group + heads[g];
                load(c, s, &a, 0, p, b, h, false, f.q);
                load(c, s, &a, s->dy, p, b, h, false, f.dy);
                load(c, s, &a, s->out, p, b, h, false, f.o);
                op_gemm(p.sq, p.skv, a.d, f.q, f.kt, f.w);
                op_gemm(p.sq, p.skv, a.dv, f.dy, f.vt, f.ds);
                weights(&a, p, b, h, max, sum, op_attention_masked(c, s, &a, p, b, h, f.masked), &f);
                op_gemm(p.sq, a.d, p.skv, f.ds, f.k, f.dq);
                store(c, s, &a, s->dq, a.heads, p, b, h, f.dq);
                add_kv(&a, p, order, &f, dk, dv);
            }
            store(c, s, &a, s->dk, a.heads_kv, p, b, kv, dk);
            store(c, s, &a, s->dv, a.heads_kv, p, b, kv, dv);
        }
    }
}

#define INPUTS                                                                                            \
    IN("query", FAKE_FLOAT3), IN("keyIn", FAKE_FLOAT3, .like = 1), IN("value", FAKE_FLOAT3, .like = 1),   \
        IN("dy", FAKE_FLOAT3, .like = 1), IN("pseShiftOptional", FAKE_FLOAT3, .flags = FAKE_OPTIONAL),    \
        IN("dropMaskOptional", FAKE_SET(ACL_UINT8), .flags = FAKE_OPTIONAL),                              \
        IN("paddingMaskOptional", FAKE_FLOAT3, .flags = FAKE_OPTIONAL),                                   \
        IN("attenMaskOptional", FAKE_FLAGS, .flags = FAKE_OPTIONAL), IN("softmaxMaxOptional", FAKE_F32),  \
        IN("softmaxSumOptional", FAKE_F32), IN("softmaxInOptional", FAKE_FLOAT3, .flags = FAKE_OPTIONAL), \
        IN("attentionInOptional", FAKE_FLOAT3, .like = 1), INTS("prefixOptional", .flags = FAKE_OPTIONAL)
#define NUMBERS                                                                                    \
    NUMBER("scaleValue"), NUMBER("keepProb"), INT("preTokens"), INT("nextTokens"), INT("headNum"), \
        TEXT("inputLayout"), INT("innerPrecise"), INT("sparseMode")
#define OUTPUTS                                                                 \
    OUT("dqOut", FAKE_FLOAT3, .like = 1), OUT("dkOut", FAKE_FLOAT3, .like = 1), \
        OUT("dvOut", FAKE_FLOAT3, .like = 1), OUT("dpseOut", FAKE_FLOAT3, .flags = FAKE_OPTIONAL)
static const fake_operand score_grad[] = {INPUTS, NUMBERS, OUTPUTS};
static const fake_operand unpadding_grad[] = {INPUTS, INTS("actualSeqQLenOptional", .flags = FAKE_OPTIONAL),
                                              INTS("actualSeqKvLenOptional", .flags = FAKE_OPTIONAL), NUMBERS,
                                              OUTPUTS};

OP(FlashAttentionScoreGrad, ARGS(score_grad), .code = 0, .check = check_grad, .run = run_grad,
   .flags = FAKE_OP_NOT_910A);
PHASE1(FlashAttentionScoreGrad, const aclTensor *query, const aclTensor *keyIn, const aclTensor *value,
       const aclTensor *dy, const aclTensor *pseShiftOptional, const aclTensor *dropMaskOptional,
       const aclTensor *paddingMaskOptional, const aclTensor *attenMaskOptional,
       const aclTensor *softmaxMaxOptional, const aclTensor *softmaxSumOptional,
       const aclTensor *softmaxInOptional, const aclTensor *attentionInOptional,
       const aclIntArray *prefixOptional, double scaleValue, double keepProb, int64_t preTokens,
       int64_t nextTokens, int64_t headNum, char *inputLayout, int64_t innerPrecise, int64_t sparseMode,
       const aclTensor *dqOut, const aclTensor *dkOut, const aclTensor *dvOut, const aclTensor *dpseOut)
{
    PLAN(FlashAttentionScoreGrad, T(query), T(keyIn), T(value), T(dy), T(pseShiftOptional),
         T(dropMaskOptional), T(paddingMaskOptional), T(attenMaskOptional), T(softmaxMaxOptional),
         T(softmaxSumOptional), T(softmaxInOptional), T(attentionInOptional), A(prefixOptional),
         D(scaleValue), D(keepProb), I(preTokens), I(nextTokens), I(headNum), C(inputLayout), I(innerPrecise),
         I(sparseMode), T(dqOut), T(dkOut), T(dvOut), T(dpseOut));
}
PHASE2(FlashAttentionScoreGrad)

OP(FlashAttentionUnpaddingScoreGrad, ARGS(unpadding_grad), .code = 1, .check = check_grad, .run = run_grad,
   .flags = FAKE_OP_NOT_910A | FAKE_OP_HOST_DATA);
PHASE1(FlashAttentionUnpaddingScoreGrad, const aclTensor *query, const aclTensor *keyIn,
       const aclTensor *value, const aclTensor *dy, const aclTensor *pseShiftOptional,
       const aclTensor *dropMaskOptional, const aclTensor *paddingMaskOptional,
       const aclTensor *attenMaskOptional, const aclTensor *softmaxMaxOptional,
       const aclTensor *softmaxSumOptional, const aclTensor *softmaxInOptional,
       const aclTensor *attentionInOptional, const aclIntArray *prefixOptional,
       const aclIntArray *actualSeqQLenOptional, const aclIntArray *actualSeqKvLenOptional, double scaleValue,
       double keepProb, int64_t preTokens, int64_t nextTokens, int64_t headNum, char *inputLayout,
       int64_t innerPrecise, int64_t sparseMode, const aclTensor *dqOut, const aclTensor *dkOut,
       const aclTensor *dvOut, const aclTensor *dpseOut)
{
    PLAN(FlashAttentionUnpaddingScoreGrad, T(query), T(keyIn), T(value), T(dy), T(pseShiftOptional),
         T(dropMaskOptional), T(paddingMaskOptional), T(attenMaskOptional), T(softmaxMaxOptional),
         T(softmaxSumOptional), T(softmaxInOptional), T(attentionInOptional), A(prefixOptional),
         A(actualSeqQLenOptional), A(actualSeqKvLenOptional), D(scaleValue), D(keepProb), I(preTokens),
         I(nextTokens), I(headNum), C(inputLayout), I(innerPrecise), I(sparseMode), T(dqOut), T(dkOut),
         T(dvOut), T(dpseOut));
}
PHASE2(FlashAttentionUnpaddingScoreGrad)
