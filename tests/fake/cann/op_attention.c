/* SPDX-License-Identifier: Apache-2.0 */
/* FlashAttentionScore, FlashAttentionVarLenScore: softmax(scale * q k^T) v, in float inside. */
#include "op_attention.h"
#include "op_gemm.h"
#include "op_vector.h"

static const op_slots fixed = {.key = 1,
                               .value = 2,
                               .bias = 3,
                               .drop = 4,
                               .padding = 5,
                               .mask = 6,
                               .prefix = 7,
                               .scale = 8,
                               .keep = 9,
                               .pre = 10,
                               .next = 11,
                               .heads = 12,
                               .layout = 13,
                               .precise = 14,
                               .sparse = 15,
                               .max = 16,
                               .sum = 17,
                               .out = 19};
static const op_slots packed = {.key = 1,
                                .value = 2,
                                .bias = 3,
                                .drop = 4,
                                .padding = 5,
                                .mask = 6,
                                .prefix = 7,
                                .lengths_q = 8,
                                .lengths_kv = 9,
                                .scale = 10,
                                .keep = 11,
                                .pre = 12,
                                .next = 13,
                                .heads = 14,
                                .layout = 15,
                                .precise = 16,
                                .sparse = 17,
                                .max = 18,
                                .sum = 19,
                                .out = 21};

static const op_slots *slots_of(const fake_call *c)
{
    return c->op->code ? &packed : &fixed;
}

static int check_score(fake_call *c)
{
    const op_slots *s = slots_of(c);
    TRY(op_attention_check(c, s));
    op_attention a = op_attention_of(c, s);
    fake_view want = *fake_arg_view(c, 0);
    want.dim[want.ndim - 1] = want.ndim == 3 && !a.packed ? a.heads * a.dv : a.dv;
    return fake_want_dims(c, s->out, want.ndim, want.dim);
}

/* Scores to weights in place; the row's maximum and sum. */
static void softmax_row(const op_attention *a, float *x, const unsigned char *masked, int64_t n,
                        float *out_max, float *out_sum)
{
    int64_t hidden = 0;
    for (int64_t j = 0; j < n; j++) {
        x[j] *= a->scale;
    }
    for (int64_t j = 0; masked && j < n; j++) {
        x[j] = masked[j] ? OP_MASKED : x[j];
        hidden += masked[j];
    }
    bool blank = hidden == n && a->blank_rows;
    float top = op_top(x, n);
    for (int64_t j = 0; j < n; j++) {
        x[j] = op_exp(x[j] - top);
    }
    float sum = blank ? 0 : op_sum(x, n);
    for (int64_t j = 0; j < n; j++) {
        x[j] = blank ? 0 : x[j] / sum;
    }
    *out_max = top;
    *out_sum = sum;
}

static void score_head(fake_call *c, const op_slots *s, const op_attention *a, op_piece p, int64_t b,
                       int64_t h, float *max, float *sum, float *work, unsigned char *masked)
{
    int64_t kv = h / (a->heads / a->heads_kv);
    float *q = work, *k = q + p.sq * a->d, *v = k + p.skv * a->d, *x = v + p.skv * a->dv,
          *o = x + p.sq * p.skv;
    fake_view view = op_attention_head(c, s, a, 0, a->heads, p, b, h, false);
    fake_load_f32(&view, q);
    view = op_attention_head(c, s, a, s->key, a->heads_kv, p, b, kv, true);
    fake_load_f32(&view, k);
    view = op_attention_head(c, s, a, s->value, a->heads_kv, p, b, kv, false);
    fake_load_f32(&view, v);
    op_gemm(p.sq, p.skv, a->d, q, k, x);
    bool hides = op_attention_masked(c, s, a, p, b, h, masked);
    for (int64_t i = 0; i < p.sq; i++) {
        float m, e;
        softmax_row(a, x + i * p.skv, hides ? masked + i * p.skv : NULL, p.skv, &m, &e);
        int64_t at = op_attention_stat(a, p, b, h, i);
        for (int64_t r = 0; r < 8; r++) {
            max[at + r] = m;
            sum[at + r] = e;
        }
    }
    op_gemm(p.sq, a->dv, p.skv, x, v, o);
    view = op_attention_head(c, s, a, s->out, a->heads, p, b, h, false);
    fake_store_f32(&view, o);
}

static void run_score(fake_call *c)
{
    const op_slots *s = slots_of(c);
    op_attention a = op_attention_of(c, s);
    int64_t stats = fake_view_count(fake_arg_view(c, s->max));
    float *max = fake_new_f32(c, stats), *sum = fake_new_f32(c, stats);
    float *work = fake_new_f32(c, a.sq * a.d + a.skv * (a.d + a.dv) + a.sq * a.skv + a.sq * a.dv);
    unsigned char *masked = fake_scrap_new(c, a.sq * a.skv, 1);
    for (int64_t b = 0; b < a.batch; b++) {
        op_piece p = op_attention_piece(c, s, &a, b);
        for (int64_t h = 0; h < a.heads; h++) {
            score_head(c, s, &a, p, b, h, max, sum, work, masked);
        }
    }
    fake_store_f32(fake_arg_view(c, s->max), max);
    fake_store_f32(fake_arg_view(c, s->sum), sum);
}

#define INPUTS                                                                                        \
    IN("query", FAKE_FLOAT3), IN("key", FAKE_FLOAT3, .like = 1), IN("value", FAKE_FLOAT3, .like = 1), \
        IN("realShiftOptional", FAKE_FLOAT3, .flags = FAKE_OPTIONAL),                                 \
        IN("dropMaskOptional", FAKE_SET(ACL_UINT8), .flags = FAKE_OPTIONAL),                          \
        IN("paddingMaskOptional", FAKE_FLOAT3, .flags = FAKE_OPTIONAL),                               \
        IN("attenMaskOptional", FAKE_FLAGS, .flags = FAKE_OPTIONAL),                                  \
        INTS("prefixOptional", .flags = FAKE_OPTIONAL)
#define NUMBERS                                                                                    \
    NUMBER("scaleValue"), NUMBER("keepProb"), INT("preTokens"), INT("nextTokens"), INT("headNum"), \
        TEXT("inputLayout"), INT("innerPrecise"), INT("sparseMode")
#define OUTPUTS                                                     \
    OUT("softmaxMaxOut", FAKE_F32), OUT("softmaxSumOut", FAKE_F32), \
        OUT("softmaxOutOut", FAKE_FLOAT3, .flags = FAKE_OPTIONAL),  \
        OUT("attentionOutOut", FAKE_FLOAT3, .like = 1)
static const fake_operand score[] = {INPUTS, NUMBERS, OUTPUTS};
static const fake_operand varlen[] = {INPUTS, INTS("actualSeqQLenOptional", .flags = FAKE_OPTIONAL),
                                      INTS("actualSeqKvLenOptional", .flags = FAKE_OPTIONAL), NUMBERS,
                                      OUTPUTS};

OP(FlashAttentionScore, ARGS(score), .code = 0, .check = check_score, .run = run_score,
   .flags = FAKE_OP_NOT_910A);
PHASE1(FlashAttentionScore, const aclTensor *query, const aclTensor *key, const aclTensor *value,
       const aclTensor *realShiftOptional, const aclTensor *dropMaskOptional,
       const aclTensor *paddingMaskOptional, const aclTensor *attenMaskOptional,
       const aclIntArray *prefixOptional, double scaleValue, double keepProb, int64_t preTokens,
       int64_t nextTokens, int64_t headNum, char *inputLayout, int64_t innerPrecise, int64_t sparseMode,
       const aclTensor *softmaxMaxOut, const aclTensor *softmaxSumOut, const aclTensor *softmaxOutOut,
       const aclTensor *attentionOutOut)
{
    PLAN(FlashAttentionScore, T(query), T(key), T(value), T(realShiftOptional), T(dropMaskOptional),
         T(paddingMaskOptional), T(attenMaskOptional), A(prefixOptional), D(scaleValue), D(keepProb),
         I(preTokens), I(nextTokens), I(headNum), C(inputLayout), I(innerPrecise), I(sparseMode),
         T(softmaxMaxOut), T(softmaxSumOut), T(softmaxOutOut), T(attentionOutOut));
}
PHASE2(FlashAttentionScore)

OP(FlashAttentionVarLenScore, ARGS(varlen), .code = 1, .check = check_score, .run = run_score,
   .flags = FAKE_OP_NOT_910A | FAKE_OP_HOST_DATA);
PHASE1(FlashAttentionVarLenScore, const aclTensor *query, const aclTensor *key, const aclTensor *value,
       const aclTensor *realShiftOptional, const aclTensor *dropMaskOptional,
       const aclTensor *paddingMaskOptional, const aclTensor *attenMaskOptional,
       const aclIntArray *prefixOptional, const aclIntArray *actualSeqQLenOptional,
       const aclIntArray *actualSeqKvLenOptional, double scaleValue, double keepProb, int64_t preTokens,
       int64_t nextTokens, int64_t headNum, char *inputLayout, int64_t innerPrecise, int64_t sparseMode,
       const aclTensor *softmaxMaxOut, const aclTensor *softmaxSumOut, const aclTensor *softmaxOutOut,
       const aclTensor *attentionOutOut)
{
    PLAN(FlashAttentionVarLenScore, T(query), T(key), T(value), T(realShiftOptional), T(dropMaskOptional),
         T(paddingMaskOptional), T(attenMaskOptional), A(prefixOptional), A(actualSeqQLenOptional),
         A(actualSeqKvLenOptional), D(scaleValue), D(keepProb), I(preTokens), I(nextTokens), I(headNum),
         C(inputLayout), I(innerPrecise), I(sparseMode), T(softmaxMaxOut), T(softmaxSumOut), T(softmaxOutOut),
         T(attentionOutOut));
}
PHASE2(FlashAttentionVarLenScore)
