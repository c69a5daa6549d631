/* SPDX-License-Identifier: Apache-2.0 */
/* linear_cross_entropy, its evaluation-only form, linear_lse, lse_merge. Logits live one chunk at a time, in f32: what is bf16 is widened first, since
 * CANN's products of bf16 are rounded to bf16 (HF32, which the cube takes instead of f32, holds bf16 exactly). With p = exp(logits - lse):
 * dlogit = inv_tokens (p - [v == label]), dx = dlogit w, dw = sum of dlogit^T x. The one-hot part is CANN's NLLLossBackward. */
#include "backend/npu/npu_table.h"

enum { IGNORED = -100, SUM = 2 }; /* NLLLossBackward's reduction */

typedef struct loss {
    cti_npu_view x, w, w32; /* [T, D], [V, D], w in f32 */
    cti_npu_view lse;       /* f32 [T]; of the whole vocabulary where that is given, else filled chunk by chunk */
    cti_npu_view here, used; /* f32 [T]: 1 where the label is one of ours; where there is a label at all */
    cti_npu_view target, index; /* i32 [T]: the label or -100; the label or 0 */
    cti_npu_view inv;       /* f32 [1] */
    cti_npu_view rows;      /* f32 [T]: each token's loss */
    int64_t tokens, d, vocab, chunk;
    bool is_given, was_bf16;
} loss;

static int64_t chunk_of(int64_t tokens, int64_t chunks)
{
    return chunks > 0 && tokens > 0 ? (tokens + chunks - 1) / chunks : tokens;
}

static loss loss_of(cti_npu_seq *s, const ct_launch *l)
{
    loss a = {.x = cti_npu_rows(&l->in[0]), .w = cti_npu_of(&l->in[1])};
    a.tokens = a.x.dims[0];
    a.d = a.x.dims[1];
    a.vocab = a.w.dims[0];
    a.chunk = chunk_of(a.tokens, ((const ct_attrs_loss *)l->attrs)->chunks);
    a.was_bf16 = a.x.dtype != ACL_FLOAT;
    a.w32 = cti_npu_f32(s, a.w);
    return a;
}

static void labels_of(cti_npu_seq *s, const ct_launch *l, loss *a)
{
    const int64_t n = a->tokens;
    const cti_npu_view labels = cti_npu_flat(&l->in[2]), is_here = cti_npu_temp(s, ACL_BOOL, NPU_DIMS(n)), is_used = cti_npu_temp(s, ACL_BOOL, NPU_DIMS(n)),
                       other = cti_npu_temp(s, ACL_INT32, NPU_DIMS(n));
    a->inv = cti_npu_flat(&l->in[3]);
    a->is_given = l->n_in == 5 && l->in[4].ndim >= 0;
    a->lse = a->is_given ? cti_npu_flat(&l->in[4]) : cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(n));
    a->here = cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(n));
    a->used = cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(n));
    a->target = cti_npu_temp(s, ACL_INT32, NPU_DIMS(n));
    a->index = cti_npu_temp(s, ACL_INT32, NPU_DIMS(n));
    a->rows = cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(n));
    NPU_CALL(s, GeScalar, NPU_T(s, labels), cti_npu_scalar(s, ACL_INT32, 0), NPU_T(s, is_here));
    NPU_CALL(s, NeScalar, NPU_T(s, labels), cti_npu_scalar(s, ACL_INT32, IGNORED), NPU_T(s, is_used));
    NPU_CALL(s, Cast, NPU_T(s, is_here), ACL_FLOAT, NPU_T(s, a->here));
    NPU_CALL(s, Cast, NPU_T(s, is_used), ACL_FLOAT, NPU_T(s, a->used));
    cti_npu_fill(s, other, IGNORED);
    NPU_CALL(s, SWhere, NPU_T(s, is_here), NPU_T(s, labels), NPU_T(s, other), NPU_T(s, a->target));
    cti_npu_zero(s, other);
    NPU_CALL(s, SWhere, NPU_T(s, is_here), NPU_T(s, labels), NPU_T(s, other), NPU_T(s, a->index));
}

/* Tokens [at, at + n): x in f32, and logits [n, V]. */
static cti_npu_view logits_of(cti_npu_seq *s, const loss *a, int64_t at, int64_t n, cti_npu_view logits, cti_npu_view x32)
{
    const cti_npu_view part = cti_npu_part(a->x, at * a->d, NPU_DIMS(n, a->d)), wide = a->was_bf16 ? cti_npu_as(x32, NPU_DIMS(n, a->d)) : part;
    if (a->was_bf16) {
        cti_npu_cast(s, wide, part);
    }
    cti_npu_mm(s, logits, wide, cti_npu_t(a->w32), false, a->was_bf16);
    return wide;
}

/* rows = (lse - logit of the label), 0 where the label is not ours; and lse where it is not given. */
static void rows_of(cti_npu_seq *s, const loss *a, int64_t at, int64_t n, cti_npu_view logits, cti_npu_view picked)
{
    const cti_npu_view lse = cti_npu_part(a->lse, at, NPU_DIMS(n)), rows = cti_npu_part(a->rows, at, NPU_DIMS(n));
    if (!a->is_given) {
        NPU_CALL(s, LogSumExp, NPU_T(s, logits), NPU_I(s, 1), false, NPU_T(s, lse));
    }
    NPU_CALL(s, Gather, NPU_T(s, logits), 1, NPU_T(s, cti_npu_part(a->index, at, NPU_DIMS(n, 1))), NPU_T(s, cti_npu_as(picked, NPU_DIMS(n, 1))));
    NPU_CALL(s, Sub, NPU_T(s, lse), NPU_T(s, cti_npu_as(picked, NPU_DIMS(n))), NPU_F(s, 1.0), NPU_T(s, rows));
    NPU_CALL(s, InplaceMul, NPU_T(s, rows), NPU_T(s, cti_npu_part(a->here, at, NPU_DIMS(n))));
}

static void total_of(cti_npu_seq *s, const loss *a, cti_npu_view out)
{
    const cti_npu_view sum = cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(1));
    NPU_CALL(s, ReduceSum, NPU_T(s, a->rows), NPU_I(s, 0), true, ACL_FLOAT, NPU_T(s, sum));
    NPU_CALL(s, InplaceMul, NPU_T(s, sum), NPU_T(s, a->inv));
    cti_npu_cast(s, out, sum);
}

void cti_npu_op_linear_cross_entropy_eval(cti_npu_seq *s, const ct_launch *l)
{
    const cti_npu_view out = cti_npu_flat(&l->out[0]);
    if (cti_npu_n_rows(&l->in[0]) == 0) {
        cti_npu_zero(s, out);
        return;
    }
    loss a = loss_of(s, l);
    labels_of(s, l, &a);
    const cti_npu_view picked = cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(a.chunk)), logits = cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(a.chunk, a.vocab));
    const cti_npu_view x32 = a.was_bf16 ? cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(a.chunk, a.d)) : a.x;
    for (int64_t at = 0; at < a.tokens; at += a.chunk) {
        const int64_t n = cti_min_i64(a.chunk, a.tokens - at);
        const cti_npu_view part = cti_npu_as(logits, NPU_DIMS(n, a.vocab));
        (void)logits_of(s, &a, at, n, part, x32);
        rows_of(s, &a, at, n, part, picked);
    }
    total_of(s, &a, out);
}

/* logits -> dlogits, in place. */
static void dlogits_of(cti_npu_seq *s, const loss *a, int64_t at, int64_t n, cti_npu_view logits, cti_npu_view one_hot, cti_npu_view weight, cti_npu_view one,
                       cti_npu_view factor)
{
    const cti_npu_view column = cti_npu_part(a->lse, at, NPU_DIMS(n, 1)), by_row = cti_npu_as(factor, NPU_DIMS(n, 1));
    NPU_CALL(s, Sub, NPU_T(s, logits), NPU_T(s, column), NPU_F(s, 1.0), NPU_T(s, logits));
    NPU_CALL(s, Exp, NPU_T(s, logits), NPU_T(s, logits));
    NPU_CALL(s, Mul, NPU_T(s, cti_npu_part(a->used, at, NPU_DIMS(n, 1))), NPU_T(s, a->inv), NPU_T(s, by_row));
    NPU_CALL(s, InplaceMul, NPU_T(s, logits), NPU_T(s, by_row));
    NPU_CALL(s, NLLLossBackward, NPU_T(s, a->inv), NPU_T(s, logits), NPU_T(s, cti_npu_part(a->target, at, NPU_DIMS(n))), NPU_T(s, weight), SUM, IGNORED,
             NPU_T(s, one), NPU_T(s, one_hot));
    NPU_CALL(s, InplaceAdd, NPU_T(s, logits), NPU_T(s, one_hot), NPU_F(s, 1.0));
}

void cti_npu_op_linear_cross_entropy(cti_npu_seq *s, const ct_launch *l)
{
    const cti_npu_view out = cti_npu_flat(&l->out[0]), dx = cti_npu_rows(&l->out[1]), dw = cti_npu_of(&l->out[2]);
    if (cti_npu_n_rows(&l->in[0]) == 0) {
        cti_npu_zero(s, out);
        cti_npu_zero(s, dw);
        return;
    }
    loss a = loss_of(s, l);
    labels_of(s, l, &a);
    const cti_npu_view picked = cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(a.chunk)), logits = cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(a.chunk, a.vocab)),
                       one_hot = cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(a.chunk, a.vocab)), weight = cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(a.vocab)),
                       one = cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(1));
    const cti_npu_view x32 = a.was_bf16 ? cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(a.chunk, a.d)) : a.x,
                       dx32 = a.was_bf16 ? cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(a.chunk, a.d)) : dx,
                       dw32 = a.was_bf16 ? cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(a.vocab, a.d)) : dw;
    cti_npu_fill(s, weight, 1.0);
    cti_npu_fill(s, one, 1.0);
    for (int64_t at = 0; at < a.tokens; at += a.chunk) {
        const int64_t n = cti_min_i64(a.chunk, a.tokens - at);
        const cti_npu_view part = cti_npu_as(logits, NPU_DIMS(n, a.vocab)), to = cti_npu_part(dx, at * a.d, NPU_DIMS(n, a.d)),
                           wide = a.was_bf16 ? cti_npu_as(dx32, NPU_DIMS(n, a.d)) : to;
        const cti_npu_view x = logits_of(s, &a, at, n, part, x32);
        rows_of(s, &a, at, n, part, picked);
        dlogits_of(s, &a, at, n, part, cti_npu_as(one_hot, NPU_DIMS(n, a.vocab)), weight, one, picked);
        cti_npu_mm(s, wide, part, a.w32, false, a.was_bf16);
        if (a.was_bf16) {
            cti_npu_cast(s, to, wide);
        }
        cti_npu_mm(s, dw32, cti_npu_t(part), x, at > 0, a.was_bf16);
    }
    if (a.was_bf16) {
        cti_npu_cast(s, dw, dw32);
    }
    total_of(s, &a, out);
}

void cti_npu_op_linear_lse(cti_npu_seq *s, const ct_launch *l)
{
    const cti_npu_view out = cti_npu_flat(&l->out[0]);
    if (cti_npu_numel(&out) == 0) {
        return;
    }
    const loss a = loss_of(s, l);
    const cti_npu_view logits = cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(a.chunk, a.vocab));
    const cti_npu_view x32 = a.was_bf16 ? cti_npu_temp(s, ACL_FLOAT, NPU_DIMS(a.chunk, a.d)) : a.x;
    for (int64_t at = 0; at < a.tokens; at += a.chunk) {
        const int64_t n = cti_min_i64(a.chunk, a.tokens - at);
        const cti_npu_view part = cti_npu_as(logits, NPU_DIMS(n, a.vocab));
        (void)logits_of(s, &a, at, n, part, x32);
        NPU_CALL(s, LogSumExp, NPU_T(s, part), NPU_I(s, 1), false, NPU_T(s, cti_npu_part(out, at, NPU_DIMS(n))));
    }
}

void cti_npu_op_lse_merge(cti_npu_seq *s, const ct_launch *l)
{
    const cti_npu_view out = cti_npu_flat(&l->out[0]);
    const int64_t n = cti_npu_numel(&out);
    if (n > 0) {
        NPU_CALL(s, LogSumExp, NPU_T(s, cti_npu_as(cti_npu_of(&l->in[0]), NPU_DIMS(l->in[0].dims[0], n))), NPU_I(s, 0), false, NPU_T(s, out));
    }
}
