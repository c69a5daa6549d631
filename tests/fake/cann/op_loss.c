/* SPDX-License-Identifier: Apache-2.0 */
/* Losses of class indices: NLLLoss, CrossEntropyLoss and their gradients. */
#include "nnop.h"
#include "op_vector.h"

enum { NONE, MEAN, SUM };

#define TARGETS (FAKE_INT2 | FAKE_SET(ACL_UINT8))

/* The class of a row, or -1 where it is ignored. */
static int64_t class_of(fake_call *c, const int64_t *target, int64_t row, int64_t classes, int64_t ignore)
{
    return target[row] == ignore || !fake_index_ok(c, target[row], classes, "target") ? -1 : target[row];
}

/* ---- NLLLoss: self, target, weight, reduction, ignoreIndex, out, totalWeight ---- */

static int check_nll_common(fake_call *c, int self, int target, int weight, int64_t reduction)
{
    const fake_view *x = fake_arg_view(c, self);
    if (x->ndim != 2 && x->ndim != 1) {
        return fake_refuse_shape(c, "'self' should have the dims [N,C] or [C]");
    }
    if (reduction < NONE || reduction > SUM) {
        return fake_refuse_value(c, "'reduction' is %lld, wanted 0 to 2", (long long)reduction);
    }
    if (x->ndim == 2) {
        TRY(fake_want_dims(c, target, 1, &x->dim[0]));
    } else if (fake_view_count(fake_arg_view(c, target)) != 1) {
        return fake_refuse_shape(c, "'target' should have one element");
    }
    return fake_want_dims(c, weight, 1, &x->dim[x->ndim - 1]);
}

static int check_one(fake_call *c, int i)
{
    return fake_view_count(fake_arg_view(c, i)) == 1
               ? 0
               : fake_refuse_shape(c, "'%s' should have one element", c->op->args[i].name);
}

static int check_nll(fake_call *c)
{
    const fake_view *x = fake_arg_view(c, 0);
    TRY(check_nll_common(c, 0, 1, 2, c->arg[3].i));
    TRY(check_one(c, 6));
    return c->arg[3].i == NONE && x->ndim == 2 ? fake_want_dims(c, 5, 1, &x->dim[0]) : check_one(c, 5);
}

static void run_nll(fake_call *c)
{
    const fake_view *v = fake_arg_view(c, 0);
    int64_t classes = v->dim[v->ndim - 1], rows = v->ndim == 2 ? v->dim[0] : 1, reduction = c->arg[3].i;
    float *x = fake_arg_f32(c, 0), *w = fake_arg_f32(c, 2), *out = fake_new_f32(c, rows), sum = 0, total = 0;
    int64_t *target = fake_arg_i64(c, 1), *order = fake_sum_order(c, rows);
    for (int64_t k = 0; k < rows; k++) {
        int64_t r = order[k], t = class_of(c, target, r, classes, c->arg[4].i);
        out[r] = t < 0 ? 0 : -w[t] * x[r * classes + t];
        sum += out[r];
        total += t < 0 ? 0 : w[t];
    }
    if (reduction != NONE) {
        out[0] = reduction == MEAN ? sum / total : sum;
    }
    fake_store_f32(fake_arg_view(c, 5), out);
    fake_store_f32(fake_arg_view(c, 6), &total);
}

static const fake_operand nll[] = {IN("self", FAKE_FLOAT3),
                                   IN("target", TARGETS),
                                   IN("weight", FAKE_FLOAT3, .like = 1),
                                   INT("reduction"),
                                   INT("ignoreIndex"),
                                   OUT("out", FAKE_FLOAT3, .like = 1),
                                   OUT("totalWeightOut", FAKE_FLOAT3, .like = 1)};
OP(NLLLoss, ARGS(nll), .check = check_nll, .run = run_nll);
PHASE1(NLLLoss, const aclTensor *self, const aclTensor *target, const aclTensor *weight, int64_t reduction,
       int64_t ignoreIndex, aclTensor *out, aclTensor *totalWeightOut)
{
    PLAN(NLLLoss, T(self), T(target), T(weight), I(reduction), I(ignoreIndex), T(out), T(totalWeightOut));
}
PHASE2(NLLLoss)

/* gradOutput, self, target, weight, reduction, ignoreIndex, totalWeight, out */
static int check_nll_backward(fake_call *c)
{
    const fake_view *x = fake_arg_view(c, 1);
    TRY(check_nll_common(c, 1, 2, 3, c->arg[4].i));
    TRY(check_one(c, 6));
    TRY(c->arg[4].i == NONE && x->ndim == 2 ? fake_want_dims(c, 0, 1, &x->dim[0]) : check_one(c, 0));
    return fake_want_dims_of(c, 7, 1);
}

static void run_nll_backward(fake_call *c)
{
    const fake_view *v = fake_arg_view(c, 1);
    int64_t classes = v->dim[v->ndim - 1], rows = v->ndim == 2 ? v->dim[0] : 1, reduction = c->arg[4].i;
    float *g = fake_arg_f32(c, 0), *w = fake_arg_f32(c, 3), *total = fake_arg_f32(c, 6),
          *dx = fake_new_f32(c, rows * classes);
    int64_t *target = fake_arg_i64(c, 2);
    for (int64_t r = 0; r < rows; r++) {
        int64_t t = class_of(c, target, r, classes, c->arg[5].i);
        if (t >= 0) {
            float d = -w[t] * g[reduction == NONE ? r : 0];
            dx[r * classes + t] = reduction == MEAN ? d / total[0] : d;
        }
    }
    fake_store_f32(fake_arg_view(c, 7), dx);
}

static const fake_operand nll_backward[] = {IN("gradOutput", FAKE_FLOAT3),
                                            IN("self", FAKE_FLOAT3, .like = 1),
                                            IN("target", TARGETS),
                                            IN("weight", FAKE_FLOAT3, .like = 1),
                                            INT("reduction"),
                                            INT("ignoreIndex"),
                                            IN("totalWeight", FAKE_FLOAT3, .like = 1),
                                            OUT("out", FAKE_FLOAT3, .like = 1)};
OP(NLLLossBackward, ARGS(nll_backward), .check = check_nll_backward, .run = run_nll_backward);
PHASE1(NLLLossBackward, const aclTensor *gradOutput, const aclTensor *self, const aclTensor *target,
       const aclTensor *weight, int64_t reduction, int64_t ignoreIndex, const aclTensor *totalWeight,
       aclTensor *out)
{
    PLAN(NLLLossBackward, T(gradOutput), T(self), T(target), T(weight), I(reduction), I(ignoreIndex),
         T(totalWeight), T(out));
}
PHASE2(NLLLossBackward)

/* ---- CrossEntropyLoss: input, target, weight, reduction, ignoreIndex, labelSmoothing, lseSquareScale,
 * returnZloss, loss, logProb, zloss, lse ---- */

static int reduction_of(const char *text)
{
    return strcmp(text, "mean") == 0   ? MEAN
           : strcmp(text, "sum") == 0  ? SUM
           : strcmp(text, "none") == 0 ? NONE
                                       : -1;
}

static int check_entropy_common(fake_call *c, int x, int target, int weight, int reduction)
{
    const fake_view *v = fake_arg_view(c, x);
    if (v->ndim != 2) {
        return fake_refuse_shape(c, "'%s' should have the dims [N,C]", c->op->args[x].name);
    }
    if (reduction_of(c->arg[reduction].text) < 0) {
        return fake_refuse_value(c, "the reduction '%s' is none of mean, sum, none", c->arg[reduction].text);
    }
    TRY(fake_want_dims(c, target, 1, &v->dim[0]));
    return c->arg[weight].given ? fake_want_dims(c, weight, 1, &v->dim[1]) : 0;
}

static int check_entropy(fake_call *c)
{
    const fake_view *x = fake_arg_view(c, 0);
    int64_t one = 1;
    TRY(check_entropy_common(c, 0, 1, 2, 3));
    if (!(c->arg[5].d >= 0 && c->arg[5].d <= 1)) {
        return fake_refuse_value(c, "'labelSmoothing' is %g, outside [0, 1]", c->arg[5].d);
    }
    const int64_t *n = reduction_of(c->arg[3].text) == NONE ? &x->dim[0] : &one;
    TRY(fake_want_dims(c, 8, 1, n));
    TRY(fake_want_dims_of(c, 9, 0));
    TRY(fake_want_dims(c, 10, 1, n));
    return fake_want_dims(c, 11, 1, &x->dim[0]);
}

/* Smoothing as in PyTorch: (1 - s) of the target's class, s spread over all classes; the mean is over the
 * targets' weights. */
static void run_entropy(fake_call *c)
{
    const fake_view *v = fake_arg_view(c, 0);
    int64_t rows = v->dim[0], classes = v->dim[1];
    int reduction = reduction_of(c->arg[3].text);
    float *x = fake_arg_f32(c, 0), *w = c->arg[2].given ? fake_arg_f32(c, 2) : NULL,
          smooth = (float)c->arg[5].d;
    float *out = fake_new_f32(c, rows), *zero = fake_new_f32(c, rows), *e = fake_new_f32(c, classes);
    float sum = 0, total = 0;
    int64_t *target = fake_arg_i64(c, 1);
    for (int64_t r = 0; r < rows; r++) {
        float *y = x + r * classes, top = op_top(y, classes);
        for (int64_t i = 0; i < classes; i++) {
            y[i] -= top;
            e[i] = op_exp(y[i]);
        }
        float lse = logf(op_sum(e, classes));
        for (int64_t i = 0; i < classes; i++) {
            y[i] -= lse;
        }
        float all = w ? op_dot(w, y, classes) : op_sum(y, classes);
        int64_t t = class_of(c, target, r, classes, c->arg[4].i);
        if (t >= 0) {
            float wt = w ? w[t] : 1;
            out[r] = -(1 - smooth) * wt * y[t] - (smooth > 0 ? smooth / (float)classes * all : 0);
            sum += out[r];
            total += wt;
        }
    }
    if (reduction != NONE) {
        out[0] = reduction == MEAN ? sum / total : sum;
    }
    fake_store_f32(fake_arg_view(c, 8), out);
    fake_store_f32(fake_arg_view(c, 9), x);
    /* What the z-loss outputs get while they have no effect is not written anywhere: zeros. */
    fake_store_f32(fake_arg_view(c, 10), zero);
    fake_store_f32(fake_arg_view(c, 11), zero);
}

static const fake_operand entropy[] = {IN("input", FAKE_FLOAT3),
                                       IN("target", FAKE_INT2),
                                       IN("weightOptional", FAKE_F32, .flags = FAKE_OPTIONAL),
                                       TEXT("reductionOptional"),
                                       INT("ignoreIndex"),
                                       NUMBER("labelSmoothing"),
                                       NUMBER("lseSquareScaleForZloss"),
                                       INT("returnZloss"),
                                       OUT("lossOut", FAKE_FLOAT3, .like = 1),
                                       OUT("logProbOut", FAKE_FLOAT3, .like = 1),
                                       OUT("zlossOut", FAKE_FLOAT3, .like = 1),
                                       OUT("lseForZlossOut", FAKE_FLOAT3, .like = 1)};
OP(CrossEntropyLoss, ARGS(entropy), .check = check_entropy, .run = run_entropy,
   .flags = FAKE_OP_GENERATED | FAKE_OP_NOT_910A);
PHASE1(CrossEntropyLoss, const aclTensor *input, const aclTensor *target, const aclTensor *weightOptional,
       char *reductionOptional, int64_t ignoreIndex, double labelSmoothing, double lseSquareScaleForZloss,
       bool returnZloss, const aclTensor *lossOut, const aclTensor *logProbOut, const aclTensor *zlossOut,
       const aclTensor *lseForZlossOut)
{
    PLAN(CrossEntropyLoss, T(input), T(target), T(weightOptional), C(reductionOptional), I(ignoreIndex),
         D(labelSmoothing), D(lseSquareScaleForZloss), I(returnZloss), T(lossOut), T(logProbOut), T(zlossOut),
         T(lseForZlossOut));
}
PHASE2(CrossEntropyLoss)

/* gradLoss, logProb, target, weight, gradZloss, lseForZloss, reduction, ignoreIndex, labelSmoothing,
 * lseSquareScale, out */
static int check_entropy_grad(fake_call *c)
{
    const fake_view *x = fake_arg_view(c, 1);
    TRY(check_entropy_common(c, 1, 2, 3, 6));
    if (c->arg[8].d < 0 || c->arg[8].d > 0) {
        return fake_refuse_value(c, "'labelSmoothing' is %g, wanted 0", c->arg[8].d);
    }
    if (reduction_of(c->arg[6].text) == NONE) {
        TRY(fake_want_dims(c, 0, 1, &x->dim[0]));
    } else {
        TRY(fake_want_dims(c, 0, 0, NULL));
    }
    return fake_want_dims_of(c, 10, 1);
}

static void run_entropy_grad(fake_call *c)
{
    const fake_view *v = fake_arg_view(c, 1);
    int64_t rows = v->dim[0], classes = v->dim[1], *target = fake_arg_i64(c, 2);
    int reduction = reduction_of(c->arg[6].text);
    float *g = fake_arg_f32(c, 0), *y = fake_arg_f32(c, 1), *w = c->arg[3].given ? fake_arg_f32(c, 3) : NULL,
          total = 0;
    for (int64_t r = 0; r < rows; r++) {
        int64_t t = class_of(c, target, r, classes, c->arg[7].i);
        total += t < 0 ? 0 : w ? w[t] : 1;
    }
    for (int64_t r = 0; r < rows; r++) {
        int64_t t = class_of(c, target, r, classes, c->arg[7].i);
        float *p = y + r * classes, scale = t < 0 ? 0 : g[reduction == NONE ? r : 0] * (w ? w[t] : 1);
        if (reduction == MEAN && t >= 0) {
            scale /= total;
        }
        for (int64_t i = 0; i < classes; i++) {
            p[i] = t < 0 ? 0 : op_exp(p[i]) * scale;
        }
        if (t >= 0) {
            p[t] -= scale;
        }
    }
    fake_store_f32(fake_arg_view(c, 10), y);
}

static const fake_operand entropy_grad[] = {IN("gradLoss", FAKE_FLOAT3),
                                            IN("logProb", FAKE_FLOAT3, .like = 1),
                                            IN("target", FAKE_SET(ACL_INT64)),
                                            IN("weightOptional", FAKE_F32, .flags = FAKE_OPTIONAL),
                                            IN("gradZlossOptional", FAKE_FLOAT3, .flags = FAKE_OPTIONAL),
                                            IN("lseForZlossOptional", FAKE_FLOAT3, .flags = FAKE_OPTIONAL),
                                            TEXT("reductionOptional"),
                                            INT("ignoreIndex"),
                                            NUMBER("labelSmoothing"),
                                            NUMBER("lseSquareScaleForZloss"),
                                            OUT("out", FAKE_FLOAT3, .like = 1)};
OP(CrossEntropyLossGrad, ARGS(entropy_grad), .check = check_entropy_grad, .run = run_entropy_grad,
   .flags = FAKE_OP_GENERATED | FAKE_OP_NOT_910A);
PHASE1(CrossEntropyLossGrad, const aclTensor *gradLoss, const aclTensor *logProb, const aclTensor *target,
       const aclTensor *weightOptional, const aclTensor *gradZlossOptional,
       const aclTensor *lseForZlossOptional, char *reductionOptional, int64_t ignoreIndex,
       double labelSmoothing, double lseSquareScaleForZloss, const aclTensor *out)
{
    PLAN(CrossEntropyLossGrad, T(gradLoss), T(logProb), T(target), T(weightOptional), T(gradZlossOptional),
         T(lseForZlossOptional), C(reductionOptional), I(ignoreIndex), D(labelSmoothing),
         D(lseSquareScaleForZloss), T(out));
}
PHASE2(CrossEntropyLossGrad)
