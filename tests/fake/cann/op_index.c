/* SPDX-License-Identifier: Apache-2.0 */
/* Rows and elements by index: Embedding, EmbeddingDenseBackward, IndexSelect, Gather. What hardware does not
 * check is a trap here. */
#include "nnop.h"

#include <string.h>

/* The same elements as integers of their size, so that copies keep every bit. */
static fake_view as_bits(const fake_view *v)
{
    fake_view r = *v;
    size_t size = fake_dtype_size(v->dtype);
    r.dtype = size == 1 ? ACL_INT8 : size == 2 ? ACL_INT16 : size == 4 ? ACL_INT32 : ACL_INT64;
    return r;
}

static int64_t *load_bits(fake_call *c, int i)
{
    fake_view v = as_bits(fake_arg_view(c, i));
    int64_t *x = fake_scrap_new(c, fake_view_count(&v), sizeof *x);
    fake_load_i64(&v, x);
    return x;
}

static void store_bits(fake_call *c, int i, const int64_t *x)
{
    fake_view v = as_bits(fake_arg_view(c, i));
    fake_store_i64(&v, x);
}

/* ---- Embedding: weight, indices, out ---- */

static int check_embedding(fake_call *c)
{
    const fake_view *w = fake_arg_view(c, 0), *ix = fake_arg_view(c, 1);
    fake_view want = *ix;
    if (w->ndim != 2) {
        return fake_refuse_shape(c, "'weight' should have 2 dims");
    }
    if (ix->ndim == FAKE_RANK_MAX) {
        return fake_refuse_shape(c, "'indices' has too many dims");
    }
    want.dim[want.ndim++] = w->dim[1];
    return fake_want_dims(c, 2, want.ndim, want.dim);
}

static void run_embedding(fake_call *c)
{
    const fake_view *w = fake_arg_view(c, 0), *ix = fake_arg_view(c, 1);
    int64_t rows = w->dim[0], width = w->dim[1], n = fake_view_count(ix);
    int64_t *index = fake_arg_i64(c, 1), *x = load_bits(c, 0), *y = fake_scrap_new(c, n * width, sizeof *y);
    for (int64_t i = 0; i < n; i++) {
        if (index[i] < 0) {
            fake_task_text("EZ9999: %s: index %lld is negative", c->op->name, (long long)index[i]);
            c->fault = 507015;
            return;
        }
        if (!fake_index_ok(c, index[i], rows, "index")) {
            continue;
        }
        memcpy(y + i * width, x + index[i] * width, (size_t)width * sizeof *y);
    }
    store_bits(c, 2, y);
}

static const fake_operand embedding[] = {IN("weight", FAKE_ANY), IN("indices", FAKE_INT2),
                                         OUT("out", FAKE_ANY, .like = 1)};
OP(Embedding, ARGS(embedding), .check = check_embedding, .run = run_embedding);
PHASE1(Embedding, const aclTensor *weight, const aclTensor *indices, const aclTensor *out)
{
    PLAN(Embedding, T(weight), T(indices), T(out));
}
PHASE2(Embedding)

/* ---- EmbeddingDenseBackward: grad, indices, numWeights, paddingIdx, scaleGradByFreq, out ---- */

static int check_backward(fake_call *c)
{
    const fake_view *g = fake_arg_view(c, 0), *ix = fake_arg_view(c, 1);
    fake_view want = *ix;
    if (g->ndim < 2) {
        return fake_refuse_shape(c, "'grad' should have 2 to 8 dims");
    }
    if (ix->ndim == FAKE_RANK_MAX) {
        return fake_refuse_shape(c, "'indices' has too many dims");
    }
    want.dim[want.ndim++] = g->dim[g->ndim - 1];
    TRY(fake_want_dims(c, 0, want.ndim, want.dim));
    return fake_want_dims(c, 5, 2, (int64_t[]){c->arg[2].i, g->dim[g->ndim - 1]});
}

/* Half precision is added in half precision: every sum is rounded. */
static void run_backward(fake_call *c)
{
    const fake_view *g = fake_arg_view(c, 0), *out = fake_arg_view(c, 5);
    int64_t width = g->dim[g->ndim - 1], n = fake_view_count(fake_arg_view(c, 1)), rows = c->arg[2].i,
            padding = c->arg[3].i;
    int64_t *index = fake_arg_i64(c, 1), *order = fake_sum_order(c, n),
            *count = fake_scrap_new(c, rows, sizeof *count);
    float *x = fake_arg_f32(c, 0), *sum = fake_new_f32(c, rows * width);
    fake_view row =
        fake_view_dense(out->dtype, 1, &width, fake_scrap_new(c, width, fake_dtype_size(out->dtype)));
    for (int64_t k = 0; k < n; k++) {
        int64_t to = index[order[k]];
        if (to == padding || !fake_index_ok(c, to, rows, "index")) {
            continue;
        }
        float *s = sum + to * width;
        const float *from = x + order[k] * width;
        for (int64_t i = 0; i < width; i++) {
            s[i] += from[i];
        }
        if (out->dtype != ACL_FLOAT) {
            fake_store_f32(&row, s);
            fake_load_f32(&row, s);
        }
        count[to]++;
    }
    for (int64_t i = 0; c->arg[4].i && i < rows * width; i++) {
        sum[i] /= (float)(count[i / width] > 0 ? count[i / width] : 1);
    }
    fake_store_f32(out, sum);
}

static const fake_operand backward[] = {IN("grad", FAKE_FLOAT3), IN("indices", FAKE_INT2),
                                        INT("numWeights"),       INT("paddingIdx"),
                                        INT("scaleGradByFreq"),  OUT("out", FAKE_FLOAT3, .like = 1)};
OP(EmbeddingDenseBackward, ARGS(backward), .check = check_backward, .run = run_backward);
PHASE1(EmbeddingDenseBackward, const aclTensor *grad, const aclTensor *indices, uint64_t numWeights,
       uint64_t paddingIdx, bool scaleGradByFreq, const aclTensor *out)
{
    PLAN(EmbeddingDenseBackward, T(grad), T(indices), I(numWeights), I(paddingIdx), I(scaleGradByFreq),
         T(out));
}
PHASE2(EmbeddingDenseBackward)

/* ---- IndexSelect, Gather: self, dim, index, out ---- */

static int check_select(fake_call *c)
{
    fake_view want = *fake_arg_view(c, 0);
    const fake_view *ix = fake_arg_view(c, 2);
    TRY(fake_want_dim(c, 1, want.ndim));
    if (ix->ndim > 1) {
        return fake_refuse_shape(c, "'index' should have at most one dim");
    }
    if (want.ndim > 0) {
        want.dim[c->arg[1].i] = fake_view_count(ix);
    }
    return fake_want_dims(c, 3, want.ndim, want.dim);
}

static int check_gather(fake_call *c)
{
    const fake_view *x = fake_arg_view(c, 0), *ix = fake_arg_view(c, 2);
    TRY(fake_want_dim(c, 1, x->ndim));
    if (ix->ndim != x->ndim) {
        return fake_refuse_shape(c, "'index' should have as many dims as 'self'");
    }
    for (int d = 0; d < x->ndim; d++) {
        if (d != c->arg[1].i && ix->dim[d] > x->dim[d]) {
            return fake_refuse_shape(c, "dim %d of 'index' is longer than that of 'self'", d);
        }
    }
    return fake_want_dims_of(c, 3, 2);
}

/* Both: the output's element (.., k, ..) is self's (.., index, ..). */
static void run_gather(fake_call *c)
{
    const fake_view *x = fake_arg_view(c, 0), *out = fake_arg_view(c, 3);
    int dim = (int)c->arg[1].i, ndim = x->ndim;
    int64_t n = fake_view_count(out), *index = fake_arg_i64(c, 2), *from = load_bits(c, 0),
            *y = fake_scrap_new(c, n, sizeof *y);
    fake_view dense = fake_view_dense(x->dtype, ndim, x->dim, NULL);
    for (int64_t k = 0; k < n; k++) {
        int64_t at = 0, rest = k, along = 0;
        for (int d = ndim - 1; d >= 0; d--) {
            int64_t i = rest % out->dim[d];
            rest /= out->dim[d];
            if (d == dim) {
                along = i;
            } else {
                at += i * dense.stride[d];
            }
        }
        int64_t to = index[c->op->code ? k : along];
        if (fake_index_ok(c, to, ndim > 0 ? x->dim[dim] : 1, "index")) {
            y[k] = from[at + (ndim > 0 ? to * dense.stride[dim] : 0)];
        }
    }
    store_bits(c, 3, y);
}

static const fake_operand gather[] = {IN("self", FAKE_ANY), INT("dim"), IN("index", FAKE_INT2),
                                      OUT("out", FAKE_ANY, .like = 1)};
#define GATHER(Name, check_, code_)                                                          \
    OP(Name, ARGS(gather), .code = code_, .check = check_, .run = run_gather);               \
    PHASE1(Name, const aclTensor *self, int64_t dim, const aclTensor *index, aclTensor *out) \
    {                                                                                        \
        PLAN(Name, T(self), I(dim), T(index), T(out));                                       \
    }                                                                                        \
    PHASE2(Name)
GATHER(IndexSelect, check_select, 0)
GATHER(Gather, check_gather, 1)
