/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, LogSoftmax and their gradients along one dim; sums in float. */
#include "nnop.h"
#include "op_vector.h"

/* Moves the dim to the end: element (r, i) of `n` by `len` lies at r / inner * len * inner + i * inner + r %
 * inner. */
typedef struct lines {
    int64_t n, len, inner;
} lines;

static lines lines_of(const fake_view *v, int64_t dim)
{
    lines l = {.len = v->ndim > 0 ? v->dim[dim] : 1, .inner = 1};
    for (int d = (int)dim + 1; d < v->ndim; d++) {
        l.inner *= v->dim[d];
    }
    l.n = l.len > 0 ? fake_view_count(v) / l.len : 0;
    return l;
}

static int64_t line_at(const lines *l, int64_t r)
{
    return r / l->inner * l->len * l->inner + r % l->inner;
}

/* self, dim, out */
static int check_softmax(fake_call *c)
{
    TRY(fake_want_dim(c, 1, c->arg[0].view.ndim));
    return fake_want_dims_of(c, 2, 0);
}

static void run_softmax(fake_call *c)
{
    lines l = lines_of(fake_arg_view(c, 0), c->arg[1].i);
    float *x = fake_arg_f32(c, 0), *y = fake_new_f32(c, l.len), *e = fake_new_f32(c, l.len);
    for (int64_t r = 0; r < l.n; r++) {
        float *line = x + line_at(&l, r);
        for (int64_t i = 0; i < l.len; i++) {
            y[i] = line[i * l.inner];
        }
        float top = op_top(y, l.len);
        for (int64_t i = 0; i < l.len; i++) {
            y[i] -= top;
            e[i] = op_exp(y[i]);
        }
        float sum = op_sum(e, l.len), lse = logf(sum);
        for (int64_t i = 0; i < l.len; i++) {
            line[i * l.inner] = c->op->code ? y[i] - lse : e[i] / sum;
        }
    }
    fake_store_f32(fake_arg_view(c, 2), x);
}

/* gradOutput, output, dim, out */
static int check_backward(fake_call *c)
{
    TRY(fake_want_dim(c, 2, c->arg[0].view.ndim));
    TRY(fake_want_dims_of(c, 1, 0));
    return fake_want_dims_of(c, 3, 0);
}

static void run_backward(fake_call *c)
{
    lines l = lines_of(fake_arg_view(c, 0), c->arg[2].i);
    float *g = fake_arg_f32(c, 0), *y = fake_arg_f32(c, 1), *t = fake_new_f32(c, l.len),
          *u = fake_new_f32(c, l.len);
    for (int64_t r = 0; r < l.n; r++) {
        int64_t at = line_at(&l, r);
        for (int64_t i = 0; i < l.len; i++) {
            t[i] = g[at + i * l.inner];
            u[i] = y[at + i * l.inner];
        }
        float sum = c->op->code ? op_sum(t, l.len) : op_dot(t, u, l.len);
        for (int64_t i = 0; i < l.len; i++) {
            g[at + i * l.inner] = c->op->code ? t[i] - op_exp(u[i]) * sum : u[i] * (t[i] - sum);
        }
    }
    fake_store_f32(fake_arg_view(c, 3), g);
}

static const fake_operand softmax[] = {IN("self", FAKE_FLOAT3), INT("dim"), OUT("out", FAKE_FLOAT3)};
static const fake_operand backward[] = {IN("gradOutput", FAKE_FLOAT3), IN("output", FAKE_FLOAT3, .like = 1),
                                        INT("dim"), OUT("out", FAKE_FLOAT3)};
#define SOFTMAX(Name, code_)                                                            \
    OP(Name, ARGS(softmax), .code = code_, .check = check_softmax, .run = run_softmax); \
    PHASE1(Name, const aclTensor *self, int64_t dim, aclTensor *out)                    \
    {                                                                                   \
        PLAN(Name, T(self), I(dim), T(out));                                            \
    }                                                                                   \
    PHASE2(Name)
#define BACKWARD(Name, code_)                                                                       \
    OP(Name, ARGS(backward), .code = code_, .check = check_backward, .run = run_backward);          \
    PHASE1(Name, const aclTensor *gradOutput, const aclTensor *output, int64_t dim, aclTensor *out) \
    {                                                                                               \
        PLAN(Name, T(gradOutput), T(output), I(dim), T(out));                                       \
    }                                                                                               \
    PHASE2(Name)
SOFTMAX(Softmax, 0)
SOFTMAX(LogSoftmax, 1)
BACKWARD(SoftmaxBackward, 0)
BACKWARD(LogSoftmaxBackward, 1)
